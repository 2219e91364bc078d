# The command channel of softhca's kernel.
check_PROGRAMS += softhca_command
softhca_command_SOURCES = driver.c softhca_command.c ../unit/softhca_kernel.c
softhca_command_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/unit
softhca_command_LDADD = $(top_builddir)/softhca/kernel/libsofthca-kernel.la $(top_builddir)/softhca/host/libsofthca-host.la \
	$(top_builddir)/softhca/device/libsofthca-device.la
