# Unit tests of softhca's kernel: commands in the test's own process.

softhca_kernel_cppflags = $(AM_CPPFLAGS) -I$(top_srcdir)
softhca_kernel_libs = libsofthca-kerneltest.a $(top_builddir)/softhca/kernel/libsofthca-kernel.la \
	$(top_builddir)/softhca/host/libsofthca-host.la $(softhca_ordered) -lcmocka -ldl

check_LIBRARIES += libsofthca-kerneltest.a
libsofthca_kerneltest_a_SOURCES = softhca_kernel.c softhca_kernel.h softhca_place.h
libsofthca_kerneltest_a_CPPFLAGS = $(softhca_kernel_cppflags)

check_PROGRAMS += softhca_kernel_command
softhca_kernel_command_SOURCES = softhca_kernel_command.c
softhca_kernel_command_CPPFLAGS = $(softhca_kernel_cppflags)
softhca_kernel_command_LDADD = $(softhca_kernel_libs)
check_PROGRAMS += softhca_kernel_objects
softhca_kernel_objects_SOURCES = softhca_kernel_objects.c
softhca_kernel_objects_CPPFLAGS = $(softhca_kernel_cppflags)
softhca_kernel_objects_LDADD = $(softhca_kernel_libs)

check_PROGRAMS += softhca_kernel_closes
softhca_kernel_closes_SOURCES = softhca_kernel_closes.c
softhca_kernel_closes_CPPFLAGS = $(softhca_kernel_cppflags)
softhca_kernel_closes_LDADD = $(softhca_kernel_libs)
check_PROGRAMS += softhca_kernel_multicast
softhca_kernel_multicast_SOURCES = softhca_kernel_multicast.c
softhca_kernel_multicast_CPPFLAGS = $(softhca_kernel_cppflags)
softhca_kernel_multicast_LDADD = $(softhca_kernel_libs)
check_PROGRAMS += softhca_kernel_faults
softhca_kernel_faults_SOURCES = softhca_kernel_faults.c
softhca_kernel_faults_CPPFLAGS = $(softhca_kernel_cppflags)
softhca_kernel_faults_LDADD = $(softhca_kernel_libs)
check_PROGRAMS += softhca_kernel_orphans
softhca_kernel_orphans_SOURCES = softhca_kernel_orphans.c
softhca_kernel_orphans_CPPFLAGS = $(softhca_kernel_cppflags) -I$(top_srcdir)/libmlx4/src
softhca_kernel_orphans_LDADD = $(softhca_kernel_libs)
check_PROGRAMS += softhca_kernel_failures
softhca_kernel_failures_SOURCES = softhca_kernel_failures.c
softhca_kernel_failures_CPPFLAGS = $(softhca_kernel_cppflags)
softhca_kernel_failures_LDADD = $(softhca_kernel_libs)
softhca_kernel_failures_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc -Wl,--wrap=calloc -Wl,--wrap=realloc
check_PROGRAMS += softhca_kernel_xrc
softhca_kernel_xrc_SOURCES = softhca_kernel_xrc.c
softhca_kernel_xrc_CPPFLAGS = $(softhca_kernel_cppflags)
softhca_kernel_xrc_LDADD = $(softhca_kernel_libs)
# The daemon in a process of its own.
check_PROGRAMS += softhca_kernel_server
softhca_kernel_server_SOURCES = softhca_kernel_server.c softhca_daemon.c softhca_daemon.h softhca_place.h
softhca_kernel_server_CPPFLAGS = $(softhca_kernel_cppflags)
softhca_kernel_server_LDADD = $(softhca_kernel_libs)
check_PROGRAMS += softhca_kernel_ferry
softhca_kernel_ferry_SOURCES = softhca_kernel_ferry.c
softhca_kernel_ferry_CPPFLAGS = $(softhca_kernel_cppflags)
softhca_kernel_ferry_LDADD = $(softhca_kernel_libs)
check_PROGRAMS += softhca_kernel_conn
softhca_kernel_conn_SOURCES = softhca_kernel_conn.c softhca_daemon.c softhca_daemon.h softhca_place.h
softhca_kernel_conn_CPPFLAGS = $(softhca_kernel_cppflags)
softhca_kernel_conn_LDADD = $(softhca_kernel_libs)
check_PROGRAMS += softhca_kernel_retry
softhca_kernel_retry_SOURCES = softhca_kernel_retry.c softhca_daemon.c softhca_daemon.h softhca_inside_rig.h softhca_place.h
softhca_kernel_retry_CPPFLAGS = $(softhca_kernel_cppflags)
softhca_kernel_retry_LDADD = $(softhca_kernel_libs)
softhca_kernel_retry_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=sh_now

check_PROGRAMS += softhca_kernel_retry_stopped
softhca_kernel_retry_stopped_SOURCES = softhca_kernel_retry_stopped.c softhca_armed.h softhca_daemon.c softhca_daemon.h softhca_inside_rig.h \
	softhca_place.h
softhca_kernel_retry_stopped_CPPFLAGS = $(softhca_kernel_cppflags)
softhca_kernel_retry_stopped_LDADD = $(softhca_kernel_libs)
check_PROGRAMS += softhca_kernel_stopped
softhca_kernel_stopped_SOURCES = softhca_kernel_stopped.c softhca_armed.h
softhca_kernel_stopped_CPPFLAGS = $(softhca_kernel_cppflags)
softhca_kernel_stopped_LDADD = $(softhca_kernel_libs)
check_PROGRAMS += softhca_kernel_scale
softhca_kernel_scale_SOURCES = softhca_kernel_scale.c
softhca_kernel_scale_CPPFLAGS = $(softhca_kernel_cppflags)
softhca_kernel_scale_LDADD = $(softhca_kernel_libs)
check_PROGRAMS += softhca_kernel_abi
softhca_kernel_abi_SOURCES = softhca_kernel_abi.c
softhca_kernel_abi_CPPFLAGS = $(softhca_kernel_cppflags)
softhca_kernel_abi_LDADD = -lcmocka
check_PROGRAMS += softhca_kernel_window
softhca_kernel_window_SOURCES = softhca_kernel_window.c
softhca_kernel_window_CPPFLAGS = $(softhca_kernel_cppflags)
softhca_kernel_window_LDADD = $(softhca_kernel_libs)
softhca_kernel_window_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=fallocate -Wl,--wrap=posix_fallocate
# With rooms of its own beside uverbs.
check_PROGRAMS += softhca_kernel_rooms
softhca_kernel_rooms_SOURCES = softhca_kernel_rooms.c
softhca_kernel_rooms_CPPFLAGS = $(softhca_kernel_cppflags)
softhca_kernel_rooms_LDADD = $(softhca_kernel_libs)
check_PROGRAMS += softhca_umad
softhca_umad_SOURCES = softhca_umad.c softhca_umad_rig.h
softhca_umad_CPPFLAGS = $(softhca_kernel_cppflags)
softhca_umad_LDADD = $(softhca_kernel_libs)
check_PROGRAMS += softhca_umad_routes
softhca_umad_routes_SOURCES = softhca_umad_routes.c softhca_umad_rig.h
softhca_umad_routes_CPPFLAGS = $(softhca_kernel_cppflags)
softhca_umad_routes_LDADD = $(softhca_kernel_libs)
check_PROGRAMS += softhca_umad_sa
softhca_umad_sa_SOURCES = softhca_umad_sa.c softhca_umad_rig.h
softhca_umad_sa_CPPFLAGS = $(softhca_kernel_cppflags)
softhca_umad_sa_LDADD = $(softhca_kernel_libs)
check_PROGRAMS += softhca_umad_service
softhca_umad_service_SOURCES = softhca_umad_service.c softhca_umad_rig.h
softhca_umad_service_CPPFLAGS = $(softhca_kernel_cppflags)
softhca_umad_service_LDADD = $(softhca_kernel_libs)
check_PROGRAMS += softhca_umad_perf
softhca_umad_perf_SOURCES = softhca_umad_perf.c softhca_umad_rig.h
softhca_umad_perf_CPPFLAGS = $(softhca_kernel_cppflags)
softhca_umad_perf_LDADD = $(softhca_kernel_libs)
check_PROGRAMS += softhca_umad_lids
softhca_umad_lids_SOURCES = softhca_umad_lids.c softhca_umad_rig.h
softhca_umad_lids_CPPFLAGS = $(softhca_kernel_cppflags)
softhca_umad_lids_LDADD = $(softhca_kernel_libs)

check_PROGRAMS += softhca_umad_segments
softhca_umad_segments_SOURCES = softhca_umad_segments.c softhca_umad_rig.h
softhca_umad_segments_CPPFLAGS = $(softhca_kernel_cppflags)
softhca_umad_segments_LDADD = $(softhca_kernel_libs)

check_PROGRAMS += softhca_umad_served
softhca_umad_served_SOURCES = softhca_umad_served.c softhca_umad_server.h softhca_umad_rig.h
softhca_umad_served_CPPFLAGS = $(softhca_kernel_cppflags)
softhca_umad_served_LDADD = $(softhca_kernel_libs)

check_PROGRAMS += softhca_umad_responses
softhca_umad_responses_SOURCES = softhca_umad_responses.c softhca_umad_server.h softhca_umad_rig.h
softhca_umad_responses_CPPFLAGS = $(softhca_kernel_cppflags)
softhca_umad_responses_LDADD = $(softhca_kernel_libs)
check_PROGRAMS += softhca_umad_reassemble
softhca_umad_reassemble_SOURCES = softhca_umad_reassemble.c softhca_umad_rig.h
softhca_umad_reassemble_CPPFLAGS = $(softhca_kernel_cppflags)
softhca_umad_reassemble_LDADD = $(softhca_kernel_libs)
check_PROGRAMS += softhca_umad_notice
softhca_umad_notice_SOURCES = softhca_umad_notice.c softhca_umad_rig.h
softhca_umad_notice_CPPFLAGS = $(softhca_kernel_cppflags)
softhca_umad_notice_LDADD = $(softhca_kernel_libs)
check_PROGRAMS += softhca_umad_files
softhca_umad_files_SOURCES = softhca_umad_files.c softhca_umad_rig.h
softhca_umad_files_CPPFLAGS = $(softhca_kernel_cppflags)
softhca_umad_files_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=openat
softhca_umad_files_LDADD = $(softhca_kernel_libs)
check_PROGRAMS += softhca_cm
softhca_cm_SOURCES = softhca_cm.c softhca_cm_rig.h
softhca_cm_CPPFLAGS = $(softhca_kernel_cppflags)
softhca_cm_LDADD = $(softhca_kernel_libs)

check_PROGRAMS += softhca_cm_connect
softhca_cm_connect_SOURCES = softhca_cm_connect.c softhca_cm_rig.h
softhca_cm_connect_CPPFLAGS = $(softhca_kernel_cppflags)
softhca_cm_connect_LDADD = $(softhca_kernel_libs)

check_PROGRAMS += softhca_cm_ud
softhca_cm_ud_SOURCES = softhca_cm_ud.c softhca_cm_rig.h
softhca_cm_ud_CPPFLAGS = $(softhca_kernel_cppflags)
softhca_cm_ud_LDADD = $(softhca_kernel_libs)

check_PROGRAMS += softhca_cm_wire softhca_cm_wire6
softhca_cm_wire_SOURCES = softhca_cm_wire.c softhca_cm_wire_rig.h softhca_cm_rig.h
softhca_cm_wire_CPPFLAGS = $(softhca_kernel_cppflags)
softhca_cm_wire_LDADD = $(softhca_kernel_libs)
softhca_cm_wire6_SOURCES = softhca_cm_wire6.c softhca_cm_rig.h
softhca_cm_wire6_CPPFLAGS = $(softhca_kernel_cppflags)
softhca_cm_wire6_LDADD = $(softhca_kernel_libs)

check_PROGRAMS += softhca_cm_wire_messages
softhca_cm_wire_messages_SOURCES = softhca_cm_wire_messages.c softhca_cm_wire_rig.h softhca_cm_rig.h
softhca_cm_wire_messages_CPPFLAGS = $(softhca_kernel_cppflags)
softhca_cm_wire_messages_LDADD = $(softhca_kernel_libs)

check_PROGRAMS += softhca_cm_life
softhca_cm_life_SOURCES = softhca_cm_life.c
softhca_cm_life_CPPFLAGS = $(softhca_kernel_cppflags)
softhca_cm_life_LDADD = $(softhca_kernel_libs)

check_PROGRAMS += softhca_cm_ib
softhca_cm_ib_SOURCES = softhca_cm_ib.c softhca_cm_rig.h
softhca_cm_ib_CPPFLAGS = $(softhca_kernel_cppflags)
softhca_cm_ib_LDADD = $(softhca_kernel_libs)
check_PROGRAMS += softhca_cm_rows
softhca_cm_rows_SOURCES = softhca_cm_rows.c softhca_cm_rig.h
softhca_cm_rows_CPPFLAGS = $(softhca_kernel_cppflags)
softhca_cm_rows_LDADD = $(softhca_kernel_libs)
