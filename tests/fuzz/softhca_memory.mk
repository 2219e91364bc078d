# Device memory that is overwritten while a device works with it.
check_PROGRAMS += softhca_memory
softhca_memory_SOURCES = softhca_memory.c revive.h ../unit/softhca_pair.c ../unit/softhca_mock.c
softhca_memory_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/unit -I$(top_srcdir) -I$(top_srcdir)/libmlx4/src
softhca_memory_LDADD = libdriver.a $(top_builddir)/softhca/host/libsofthca-host.la \
	$(top_builddir)/softhca/device/libsofthca-device.la -lcmocka
