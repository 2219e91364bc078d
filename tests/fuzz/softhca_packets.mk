# Packets, as they come from the wire.
check_PROGRAMS += softhca_packets
softhca_packets_SOURCES = softhca_packets.c
softhca_packets_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/libmlx4/src
softhca_packets_LDADD = libdriver.a $(top_builddir)/softhca/wire/libsofthca-wire.la \
	$(top_builddir)/softhca/packet/libsofthca-packet.la
