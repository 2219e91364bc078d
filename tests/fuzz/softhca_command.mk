# The command channel of softhca's kernel.
check_PROGRAMS += softhca_command
softhca_command_SOURCES = softhca_command.c user.h ../unit/softhca_kernel.c
softhca_command_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/unit
softhca_command_LDADD = libdriver.a $(top_builddir)/softhca/kernel/libsofthca-kernel.la \
	$(top_builddir)/softhca/host/libsofthca-host.la $(top_builddir)/softhca/device/libsofthca-device.la
