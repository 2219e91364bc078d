# Unit tests of softhca's kernel: commands in the test's own process.

softhca_kernel_cppflags = $(AM_CPPFLAGS) -I$(top_srcdir)
softhca_kernel_libs = libsofthca-kerneltest.la $(top_builddir)/softhca/kernel/libsofthca-kernel.la \
	$(top_builddir)/softhca/host/libsofthca-host.la $(top_builddir)/softhca/device/libsofthca-device.la -lcmocka

check_LTLIBRARIES += libsofthca-kerneltest.la
libsofthca_kerneltest_la_SOURCES = softhca_kernel.c softhca_kernel.h
libsofthca_kerneltest_la_CPPFLAGS = $(softhca_kernel_cppflags)

check_PROGRAMS += softhca_kernel_command
softhca_kernel_command_SOURCES = softhca_kernel_command.c
softhca_kernel_command_CPPFLAGS = $(softhca_kernel_cppflags)
softhca_kernel_command_LDADD = $(softhca_kernel_libs)
check_PROGRAMS += softhca_kernel_objects
softhca_kernel_objects_SOURCES = softhca_kernel_objects.c
softhca_kernel_objects_CPPFLAGS = $(softhca_kernel_cppflags)
softhca_kernel_objects_LDADD = $(softhca_kernel_libs)
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
softhca_kernel_server_SOURCES = softhca_kernel_server.c softhca_daemon.c softhca_daemon.h
softhca_kernel_server_CPPFLAGS = $(softhca_kernel_cppflags)
softhca_kernel_server_LDADD = $(softhca_kernel_libs)
check_PROGRAMS += softhca_kernel_conn
softhca_kernel_conn_SOURCES = softhca_kernel_conn.c softhca_daemon.c softhca_daemon.h
softhca_kernel_conn_CPPFLAGS = $(softhca_kernel_cppflags)
softhca_kernel_conn_LDADD = $(softhca_kernel_libs)
check_PROGRAMS += softhca_kernel_retry
softhca_kernel_retry_SOURCES = softhca_kernel_retry.c softhca_daemon.c softhca_daemon.h
softhca_kernel_retry_CPPFLAGS = $(softhca_kernel_cppflags)
softhca_kernel_retry_LDADD = $(softhca_kernel_libs)
check_PROGRAMS += softhca_kernel_stopped
softhca_kernel_stopped_SOURCES = softhca_kernel_stopped.c
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
