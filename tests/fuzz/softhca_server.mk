# The control socket of softhca's daemon.
check_PROGRAMS += softhca_server
softhca_server_SOURCES = softhca_server.c user.h
softhca_server_LDADD = libdriver.a $(top_builddir)/softhca/kernel/libsofthca-kernel.la \
	$(top_builddir)/softhca/host/libsofthca-host.la $(top_builddir)/softhca/device/libsofthca-device.la
