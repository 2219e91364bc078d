# Management datagrams, and the calls on umad files.
check_PROGRAMS += softhca_mads
softhca_mads_SOURCES = softhca_mads.c user.h ../unit/softhca_kernel.c
softhca_mads_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/unit
softhca_mads_LDADD = libdriver.a $(top_builddir)/softhca/kernel/libsofthca-kernel.la \
	$(top_builddir)/softhca/host/libsofthca-host.la $(top_builddir)/softhca/device/libsofthca-device.la
