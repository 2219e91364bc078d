# Packets from the wire.
check_PROGRAMS += softhca_wire
softhca_wire_SOURCES = softhca_wire.c revive.h ../unit/softhca_pair.c ../unit/softhca_mock.c
softhca_wire_CPPFLAGS = $(softhca_memory_CPPFLAGS)
softhca_wire_LDADD = libdriver.a $(top_builddir)/softhca/wire/libsofthca-wire.la \
	$(top_builddir)/softhca/packet/libsofthca-packet.la $(top_builddir)/softhca/host/libsofthca-host.la \
	$(top_builddir)/softhca/device/libsofthca-device.la -lcmocka
