/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Writes a file in the pcapng format. Its first interface is an InfiniBand link, whose packets are
 * in records of the ERF format. Other programs know no other way for packets with an LRH. The
 * second one, if there is a wire, has IP packets.
 */
#ifndef SOFTHCA_CLI_PCAPNG_H
#define SOFTHCA_CLI_PCAPNG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Each returns 0 or -errno. Times are in ns since 1970. */
int pcapng_begin(FILE *out, const char *hardware, bool wire);
/*
 * One packet of n bytes, of which `have` are at hand, from the LRH to the VCRC. comment NULL: it
 * has none.
 */
int pcapng_packet(FILE *out, uint64_t when, const unsigned char *packet, size_t have, size_t n,
		  const char *comment);
/* The same of the wire, from the IP header to the ICRC. direction: 1 it came, 2 it leaves. */
int pcapng_wire_packet(FILE *out, uint64_t when, const unsigned char *packet, size_t have, size_t n,
		       uint32_t direction, const char *comment);
/* How many packets there were and how many of them were lost, at the end. */
int pcapng_end(FILE *out, uint64_t from, uint64_t to, uint64_t seen, uint64_t lost);

#endif
