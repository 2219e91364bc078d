# Packets, as they come from the wire.
check_PROGRAMS += softhca_packets
softhca_packets_SOURCES = softhca_packets.c
softhca_packets_LDADD = libdriver.a $(top_builddir)/softhca/packet/libsofthca-packet.la
