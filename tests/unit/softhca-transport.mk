# Unit tests of the transport of softhca/device: queue pairs driven by hand on the mock host.

check_LIBRARIES += libsofthca-pair.a
libsofthca_pair_a_SOURCES = softhca_pair.c softhca_pair.h
libsofthca_pair_a_CPPFLAGS = $(softhca_device_cppflags)
softhca_transport_libs = libsofthca-pair.a $(softhca_device_libs)

check_PROGRAMS += softhca_transport_rc
softhca_transport_rc_SOURCES = softhca_transport_rc.c
softhca_transport_rc_CPPFLAGS = $(softhca_device_cppflags)
softhca_transport_rc_LDADD = $(softhca_transport_libs)

check_PROGRAMS += softhca_transport_counters
softhca_transport_counters_SOURCES = softhca_transport_counters.c
softhca_transport_counters_CPPFLAGS = $(softhca_device_cppflags)
softhca_transport_counters_LDADD = $(softhca_transport_libs)

check_PROGRAMS += softhca_transport_errors
softhca_transport_errors_SOURCES = softhca_transport_errors.c
softhca_transport_errors_CPPFLAGS = $(softhca_device_cppflags)
softhca_transport_errors_LDADD = $(softhca_transport_libs)

check_PROGRAMS += softhca_transport_retry
softhca_transport_retry_SOURCES = softhca_transport_retry.c
softhca_transport_retry_CPPFLAGS = $(softhca_device_cppflags)
softhca_transport_retry_LDADD = $(softhca_transport_libs)

check_PROGRAMS += softhca_transport_ud
softhca_transport_ud_SOURCES = softhca_transport_ud.c
softhca_transport_ud_CPPFLAGS = $(softhca_device_cppflags)
softhca_transport_ud_LDADD = $(softhca_transport_libs)

check_PROGRAMS += softhca_transport_states
softhca_transport_states_SOURCES = softhca_transport_states.c
softhca_transport_states_CPPFLAGS = $(softhca_device_cppflags)
softhca_transport_states_LDADD = $(softhca_transport_libs)

softhca_transport_kill_SOURCES = softhca_transport_kill.c softhca_scene.h softhca_step.h
softhca_transport_kill_CPPFLAGS = $(softhca_device_cppflags)
softhca_transport_kill_LDADD = $(softhca_transport_libs)

softhca_transport_stop_SOURCES = softhca_transport_stop.c softhca_stop_rig.h softhca_scene.h softhca_step.h
softhca_transport_stop_CPPFLAGS = $(softhca_device_cppflags)
softhca_transport_stop_LDADD = libsofthca-pair.a $(softhca_stepped_libs)
softhca_transport_rearm_SOURCES = softhca_transport_rearm.c softhca_scene.h softhca_step.h
softhca_transport_rearm_CPPFLAGS = $(softhca_device_cppflags)
softhca_transport_rearm_LDADD = libsofthca-pair.a $(softhca_stepped_libs)

softhca_transport_stop_once_SOURCES = softhca_transport_stop_once.c softhca_stop_rig.h softhca_scene.h softhca_step.h
softhca_transport_stop_once_CPPFLAGS = $(softhca_device_cppflags)
softhca_transport_stop_once_LDADD = libsofthca-pair.a $(softhca_stepped_libs)

softhca_transport_stands_SOURCES = softhca_transport_stands.c softhca_stands_rig.h softhca_stop_rig.h softhca_scene.h softhca_step.h
softhca_transport_stands_CPPFLAGS = $(softhca_device_cppflags)
softhca_transport_stands_LDADD = libsofthca-pair.a $(softhca_stepped_libs)

check_PROGRAMS += softhca_transport_held
softhca_transport_held_SOURCES = softhca_transport_held.c softhca_stands_rig.h softhca_stop_rig.h softhca_scene.h softhca_step.h
softhca_transport_held_CPPFLAGS = $(softhca_device_cppflags)
softhca_transport_held_LDADD = $(softhca_transport_libs)

check_PROGRAMS += softhca_transport_refused
softhca_transport_refused_SOURCES = softhca_transport_refused.c softhca_stands_rig.h softhca_stop_rig.h softhca_scene.h softhca_step.h
softhca_transport_refused_CPPFLAGS = $(softhca_device_cppflags)
softhca_transport_refused_LDADD = libsofthca-pair.a $(softhca_stepped_libs)

check_PROGRAMS += softhca_transport_replace
softhca_transport_replace_SOURCES = softhca_transport_replace.c softhca_scene.h softhca_step.h
softhca_transport_replace_CPPFLAGS = $(softhca_device_cppflags)
softhca_transport_replace_LDADD = libsofthca-pair.a $(softhca_stepped_libs)

check_PROGRAMS += softhca_transport_packets
softhca_transport_packets_SOURCES = softhca_transport_packets.c
softhca_transport_packets_CPPFLAGS = $(softhca_device_cppflags)
softhca_transport_packets_LDADD = $(softhca_transport_libs)

check_PROGRAMS += softhca_transport_threads
softhca_transport_threads_SOURCES = softhca_transport_threads.c
softhca_transport_threads_CPPFLAGS = $(softhca_device_cppflags)
softhca_transport_threads_LDADD = $(softhca_transport_libs)

check_PROGRAMS += softhca_bounds
softhca_bounds_SOURCES = softhca_bounds.c
softhca_bounds_CPPFLAGS = $(softhca_device_cppflags)
softhca_bounds_LDADD = $(softhca_transport_libs)

check_PROGRAMS += softhca_transport_drops
softhca_transport_drops_SOURCES = softhca_transport_drops.c
softhca_transport_drops_CPPFLAGS = $(softhca_device_cppflags)
softhca_transport_drops_LDADD = $(softhca_transport_libs)
softhca_transport_drops_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc -Wl,--wrap=free

check_PROGRAMS += softhca_transport_express
softhca_transport_express_SOURCES = softhca_transport_express.c
softhca_transport_express_CPPFLAGS = $(softhca_device_cppflags)
softhca_transport_express_LDADD = $(softhca_transport_libs)

check_PROGRAMS += softhca_transport_express_ud
softhca_transport_express_ud_SOURCES = softhca_transport_express_ud.c
softhca_transport_express_ud_CPPFLAGS = $(softhca_device_cppflags)
softhca_transport_express_ud_LDADD = $(softhca_transport_libs)

check_PROGRAMS += softhca_transport_rules
softhca_transport_rules_SOURCES = softhca_transport_rules.c softhca_rules_rig.h
softhca_transport_rules_CPPFLAGS = $(softhca_device_cppflags)
softhca_transport_rules_LDADD = $(softhca_transport_libs)

check_PROGRAMS += softhca_transport_executed
softhca_transport_executed_SOURCES = softhca_transport_executed.c softhca_rules_rig.h
softhca_transport_executed_CPPFLAGS = $(softhca_device_cppflags)
softhca_transport_executed_LDADD = $(softhca_transport_libs)

check_PROGRAMS += softhca_transport_line
softhca_transport_line_SOURCES = softhca_transport_line.c softhca_step.h
softhca_transport_line_CPPFLAGS = $(softhca_device_cppflags)
softhca_transport_line_LDADD = $(softhca_transport_libs)

check_PROGRAMS += softhca_transport_doze
softhca_transport_doze_SOURCES = softhca_transport_doze.c
softhca_transport_doze_CPPFLAGS = $(softhca_device_cppflags)
softhca_transport_doze_LDADD = $(softhca_transport_libs)

check_PROGRAMS += softhca_transport_faults
softhca_transport_faults_SOURCES = softhca_transport_faults.c
softhca_transport_faults_CPPFLAGS = $(softhca_device_cppflags)
softhca_transport_faults_LDADD = $(softhca_transport_libs)

check_PROGRAMS += softhca_transport_waits
softhca_transport_waits_SOURCES = softhca_transport_waits.c
softhca_transport_waits_CPPFLAGS = $(softhca_device_cppflags)
softhca_transport_waits_LDADD = $(softhca_transport_libs)

check_PROGRAMS += softhca_transport_counts
softhca_transport_counts_SOURCES = softhca_transport_counts.c
softhca_transport_counts_CPPFLAGS = $(softhca_device_cppflags)
softhca_transport_counts_LDADD = $(softhca_transport_libs)

softhca_wire_libs = libsofthca-pair.a libsofthca-mock.a $(top_builddir)/softhca/wire/libsofthca-wire.la $(softhca_device_libs)

check_PROGRAMS += softhca_transport_wire
softhca_transport_wire_SOURCES = softhca_transport_wire.c softhca_wire_rig.h
softhca_transport_wire_CPPFLAGS = $(softhca_device_cppflags)
softhca_transport_wire_LDADD = $(softhca_wire_libs)

check_PROGRAMS += softhca_transport_wire_read
softhca_transport_wire_read_SOURCES = softhca_transport_wire_read.c softhca_wire_rig.h
softhca_transport_wire_read_CPPFLAGS = $(softhca_device_cppflags)
softhca_transport_wire_read_LDADD = $(softhca_wire_libs)

check_PROGRAMS += softhca_transport_wire_rules
softhca_transport_wire_rules_SOURCES = softhca_transport_wire_rules.c softhca_wire_rig.h
softhca_transport_wire_rules_CPPFLAGS = $(softhca_device_cppflags)
softhca_transport_wire_rules_LDADD = $(softhca_wire_libs)

check_PROGRAMS += softhca_transport_wire_wrap
softhca_transport_wire_wrap_SOURCES = softhca_transport_wire_wrap.c softhca_wire_rig.h
softhca_transport_wire_wrap_CPPFLAGS = $(softhca_device_cppflags)
softhca_transport_wire_wrap_LDADD = $(softhca_wire_libs)

check_PROGRAMS += softhca_transport_wire_pace
softhca_transport_wire_pace_SOURCES = softhca_transport_wire_pace.c softhca_wire_rig.h
softhca_transport_wire_pace_CPPFLAGS = $(softhca_device_cppflags)
softhca_transport_wire_pace_LDADD = $(softhca_wire_libs)

check_PROGRAMS += softhca_transport_wire_turns
softhca_transport_wire_turns_SOURCES = softhca_transport_wire_turns.c softhca_wire_rig.h
softhca_transport_wire_turns_CPPFLAGS = $(softhca_device_cppflags)
softhca_transport_wire_turns_LDADD = $(softhca_wire_libs)

check_PROGRAMS += softhca_transport_wire_links
softhca_transport_wire_links_SOURCES = softhca_transport_wire_links.c softhca_wire_rig.h
softhca_transport_wire_links_CPPFLAGS = $(softhca_device_cppflags)
softhca_transport_wire_links_LDADD = $(softhca_wire_libs)
check_PROGRAMS += softhca_transport_wire_answers
softhca_transport_wire_answers_SOURCES = softhca_transport_wire_answers.c softhca_wire_rig.h
softhca_transport_wire_answers_CPPFLAGS = $(softhca_device_cppflags)
softhca_transport_wire_answers_LDADD = $(softhca_wire_libs)
check_PROGRAMS += softhca_transport_wire_lost
softhca_transport_wire_lost_SOURCES = softhca_transport_wire_lost.c softhca_wire_rig.h
softhca_transport_wire_lost_CPPFLAGS = $(softhca_device_cppflags)
softhca_transport_wire_lost_LDADD = $(softhca_wire_libs)

check_PROGRAMS += softhca_transport_wire_gids
softhca_transport_wire_gids_SOURCES = softhca_transport_wire_gids.c softhca_wire_rig.h
softhca_transport_wire_gids_CPPFLAGS = $(softhca_device_cppflags)
softhca_transport_wire_gids_LDADD = $(softhca_wire_libs)

check_PROGRAMS += softhca_transport_loop
softhca_transport_loop_SOURCES = softhca_transport_loop.c
softhca_transport_loop_CPPFLAGS = $(softhca_device_cppflags)
softhca_transport_loop_LDADD = $(softhca_wire_libs)
