# Unit tests of softhca.

softhca_device_cppflags = $(AM_CPPFLAGS) -I$(top_srcdir) -I$(top_srcdir)/libmlx4/src
# The device as it checks the order of locks (softhca_order.h).
softhca_ordered = $(top_builddir)/softhca/device/libsofthca-ordered.a
softhca_device_libs = libsofthca-mock.a $(top_builddir)/softhca/host/libsofthca-host.la $(softhca_ordered) -lcmocka -ldl
# As users get it, for tests that stop a thread at many of its instructions.
softhca_stepped_libs = libsofthca-mock.a $(top_builddir)/softhca/host/libsofthca-host.la \
	$(top_builddir)/softhca/device/libsofthca-device.la -lcmocka

# Compiled as the tree is, whatever make was told for the tests: so without what it was told.
$(softhca_ordered): made-anew
	@MAKEFLAGS="$${MAKEFLAGS%% -- *}" $(MAKE) -C $(top_builddir)/softhca/device libsofthca-ordered.a
.PHONY: made-anew

check_LIBRARIES += libsofthca-mock.a
libsofthca_mock_a_SOURCES = softhca_mock.c softhca_mock.h
libsofthca_mock_a_CPPFLAGS = $(softhca_device_cppflags)

# The device's own state: softhca/device without the transport.
check_PROGRAMS += softhca_numbers softhca_cq softhca_cq_life softhca_srq softhca_mr softhca_event softhca_exec softhca_lock softhca_txn \
	softhca_kill
softhca_numbers_SOURCES = softhca_numbers.c
softhca_numbers_CPPFLAGS = $(softhca_kernel_cppflags)
softhca_numbers_LDADD = $(softhca_kernel_libs)
softhca_cq_SOURCES = softhca_cq.c softhca_cq_rig.h
softhca_cq_CPPFLAGS = $(softhca_device_cppflags)
softhca_cq_LDADD = $(softhca_device_libs)
softhca_cq_life_SOURCES = softhca_cq_life.c softhca_cq_rig.h
softhca_cq_life_CPPFLAGS = $(softhca_device_cppflags)
softhca_cq_life_LDADD = $(softhca_device_libs)
softhca_srq_SOURCES = softhca_srq.c
softhca_srq_CPPFLAGS = $(softhca_device_cppflags)
softhca_srq_LDADD = $(softhca_device_libs)
softhca_mr_SOURCES = softhca_mr.c
softhca_mr_CPPFLAGS = $(softhca_device_cppflags)
softhca_mr_LDADD = $(softhca_device_libs)
softhca_event_SOURCES = softhca_event.c
softhca_event_CPPFLAGS = $(softhca_device_cppflags)
softhca_event_LDADD = $(softhca_device_libs)
softhca_exec_SOURCES = softhca_exec.c softhca_step.h
softhca_exec_CPPFLAGS = $(softhca_device_cppflags)
softhca_exec_LDADD = $(softhca_device_libs)
softhca_lock_SOURCES = softhca_lock.c
softhca_lock_CPPFLAGS = $(softhca_device_cppflags)
softhca_lock_LDADD = $(softhca_device_libs)
softhca_txn_SOURCES = softhca_txn.c
softhca_txn_CPPFLAGS = $(softhca_device_cppflags)
softhca_txn_LDADD = $(softhca_device_libs)
softhca_kill_SOURCES = softhca_kill.c softhca_step.h
softhca_kill_CPPFLAGS = $(softhca_device_cppflags)
softhca_kill_LDADD = $(softhca_device_libs)
# The order in which threads take these locks.
check_PROGRAMS += softhca_lock_order
softhca_lock_order_SOURCES = softhca_lock_order.c softhca_order.h
softhca_lock_order_CPPFLAGS = $(softhca_device_cppflags) -include $(srcdir)/softhca_order.h
softhca_lock_order_CFLAGS = $(AM_CFLAGS) -fno-omit-frame-pointer
softhca_lock_order_LDADD = $(softhca_device_libs)
check_PROGRAMS += softhca_clock
softhca_clock_SOURCES = softhca_clock.c
softhca_clock_CPPFLAGS = $(softhca_device_cppflags)
softhca_clock_LDADD = $(softhca_device_libs)

# The preloaded library.
check_PROGRAMS += softhca_shim_ranges
softhca_shim_ranges_SOURCES = softhca_shim_ranges.c
softhca_shim_ranges_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)
softhca_shim_ranges_LDADD = -lcmocka
check_PROGRAMS += softhca_shim_own
softhca_shim_own_SOURCES = softhca_shim_own.c
softhca_shim_own_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)
softhca_shim_own_LDADD = -lcmocka
check_PROGRAMS += softhca_shim_alone
softhca_shim_alone_SOURCES = softhca_shim_alone.c
softhca_shim_alone_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)
softhca_shim_alone_LDADD = $(top_builddir)/softhca/host/libsofthca-host.la $(top_builddir)/softhca/device/libsofthca-device.la -lcmocka
if TRAP
check_PROGRAMS += softhca_shim_decode
softhca_shim_decode_SOURCES = softhca_shim_decode.c ../../softhca/shim/doorbells/decode.c
softhca_shim_decode_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)
softhca_shim_decode_LDADD = $(ZYDIS_LIBS) -lcmocka
endif
include $(srcdir)/softhca_kernel.mk

# What a process lends to the device.
softhca_host_cppflags = $(AM_CPPFLAGS) -I$(top_srcdir)
softhca_host_libs = $(top_builddir)/softhca/host/libsofthca-host.la $(top_builddir)/softhca/device/libsofthca-device.la -lcmocka
check_PROGRAMS += softhca_instdir
softhca_instdir_SOURCES = softhca_instdir.c softhca_tmp.h
softhca_instdir_CPPFLAGS = $(softhca_host_cppflags)
softhca_instdir_LDADD = $(softhca_host_libs)
softhca_instdir_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=openat -Wl,--wrap=renameat2
check_PROGRAMS += softhca_address
softhca_address_SOURCES = softhca_address.c
softhca_address_CPPFLAGS = $(softhca_host_cppflags)
softhca_address_LDADD = $(softhca_host_libs)
check_PROGRAMS += softhca_life
softhca_life_SOURCES = softhca_life.c
softhca_life_CPPFLAGS = $(softhca_host_cppflags)
softhca_life_LDADD = $(softhca_host_libs)
check_PROGRAMS += softhca_stopped
softhca_stopped_SOURCES = softhca_stopped.c
softhca_stopped_CPPFLAGS = $(softhca_host_cppflags)
softhca_stopped_LDADD = $(softhca_host_libs)
check_PROGRAMS += softhca_host_event
softhca_host_event_SOURCES = softhca_host_event.c
softhca_host_event_CPPFLAGS = $(softhca_host_cppflags)
softhca_host_event_LDADD = $(softhca_host_libs)
check_PROGRAMS += softhca_status
softhca_status_SOURCES = softhca_status.c
softhca_status_CPPFLAGS = $(softhca_host_cppflags)
softhca_status_LDADD = $(softhca_host_libs)
check_PROGRAMS += softhca_pages
softhca_pages_SOURCES = softhca_pages.c
softhca_pages_CPPFLAGS = $(softhca_host_cppflags)
softhca_pages_LDADD = $(softhca_host_libs)
check_PROGRAMS += softhca_calls
softhca_calls_SOURCES = softhca_calls.c
softhca_calls_CPPFLAGS = $(softhca_host_cppflags)
softhca_calls_LDADD = $(softhca_host_libs)
check_PROGRAMS += softhca_memory
softhca_memory_SOURCES = softhca_memory.c
softhca_memory_CPPFLAGS = $(softhca_host_cppflags)
softhca_memory_LDADD = $(softhca_host_libs)
check_PROGRAMS += softhca_moves
softhca_moves_SOURCES = softhca_moves.c softhca_step.h
softhca_moves_CPPFLAGS = $(softhca_host_cppflags)
softhca_moves_LDADD = $(softhca_host_libs)
check_PROGRAMS += softhca_copy_order
softhca_copy_order_SOURCES = softhca_copy_order.c
softhca_copy_order_CPPFLAGS = $(softhca_host_cppflags)
softhca_copy_order_LDADD = -lcmocka
check_PROGRAMS += softhca_paths softhca_copy
softhca_paths_SOURCES = softhca_paths.c softhca_tmp.h
softhca_paths_CPPFLAGS = $(softhca_host_cppflags)
softhca_paths_LDADD = $(softhca_host_libs)
softhca_copy_SOURCES = softhca_copy.c softhca_step.h
softhca_copy_CPPFLAGS = $(softhca_host_cppflags)
softhca_copy_LDADD = $(softhca_host_libs)

# The command.
check_PROGRAMS += softhca_cli_render
softhca_cli_render_SOURCES = softhca_cli_render.c ../../softhca/cli/render.c
softhca_cli_render_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE -I$(top_srcdir)
softhca_cli_render_LDADD = $(JANSSON_LIBS) -lcmocka
check_PROGRAMS += softhca_cli_top
softhca_cli_top_SOURCES = softhca_cli_top.c ../../softhca/cli/top_table.c
softhca_cli_top_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE -I$(top_srcdir)
softhca_cli_top_LDADD = $(JANSSON_LIBS) -lm -lcmocka

# Packets as bytes.
check_PROGRAMS += softhca_packet
softhca_packet_SOURCES = softhca_packet.c
softhca_packet_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)
softhca_packet_LDADD = $(top_builddir)/softhca/packet/libsofthca-packet.la -lcmocka

# The wire's addresses and packets.
check_PROGRAMS += softhca_wire
softhca_wire_SOURCES = softhca_wire.c
softhca_wire_CPPFLAGS = $(softhca_device_cppflags)
softhca_wire_LDADD = $(top_builddir)/softhca/wire/libsofthca-wire.la -lcmocka

# How packets leave by a socket.
check_PROGRAMS += softhca_wire_outgoing
softhca_wire_outgoing_SOURCES = softhca_wire_outgoing.c
softhca_wire_outgoing_CPPFLAGS = $(softhca_device_cppflags) -D_GNU_SOURCE
softhca_wire_outgoing_LDADD = $(top_builddir)/softhca/wire/libsofthca-wire.la -lcmocka

# Copies of packets for captures.
check_PROGRAMS += softhca_tap
softhca_tap_SOURCES = softhca_tap.c softhca_step.h
softhca_tap_CPPFLAGS = $(softhca_device_cppflags)
softhca_tap_LDADD = $(softhca_device_libs)
# The library of `softhca trace`, whose sources stand in a library that programs preload.
check_PROGRAMS += softhca_trace_fork
softhca_trace_fork_SOURCES = softhca_trace_fork.c $(top_srcdir)/softhca/trace/call.c $(top_srcdir)/softhca/trace/ops.c \
	$(top_srcdir)/softhca/trace/words.c
softhca_trace_fork_CPPFLAGS = $(softhca_device_cppflags) -D_GNU_SOURCE
softhca_trace_fork_LDADD = -lcmocka -lpthread -ldl
