/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A daemon whose instance has a wire. The test is the engine and the peer: it takes the datagrams
 * that leave, and writes those that come.
 */
#ifndef TESTS_UNIT_SOFTHCA_CM_WIRE_RIG_H
#define TESTS_UNIT_SOFTHCA_CM_WIRE_RIG_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <cmocka.h>

#include "softhca/device/transport/gsi.h"
#include "softhca/kernel/rdmacm/mad.h"
#include "softhca/kernel/rdmacm/wire.h"
#include "softhca_cm_rig.h"

#define FAR	 9 /* the peer's LID */
#define STRANGER 8
#define THEIRS	 0xabcd0001u /* the peer's number of the connection */

enum { REQ = 0x10, MRA, REJ, REP, RTU, DREQ, DREP, SIDR_REQ, SIDR_REP };

static int wire = -1; /* the engine's end of the link */
static struct sh_wire_mad last;

static inline void begin_wire(struct rig *r)
{
	const struct sh_wire_config cfg = {.n = 2,
					   .network = sh_ip4(0x0a010200),
					   .prefix = 24,
					   .last_lid = 254,
					   .address = {sh_ip4(0x0a010203), sh_ip4(0x0a010204)},
					   .mtu = 4096};
	int ends[2];

	memset(r, 0, sizeof(*r));
	r->t = kt_start_wire(SH_FACE_MAINLINE, &cfg);
	r->ch[0] = channel(r, 0, &r->fd[0]);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	r->t->k.wire.link = ends[0];
	wire = ends[1];
}

static inline void end_wire(struct rig *r)
{
	cm_channel_free(r->ch[0]);
	close(r->fd[0]);
	cm_timer_ready(r->t->k.rdmacm);
	assert_null(r->t->k.rdmacm->ids);
	close(r->t->k.wire.link);
	r->t->k.wire.link = -1;
	close(wire);
	kt_stop(r->t);
}

/* The attribute of the next datagram that leaves, which is then in `last`; 0: none does. */
static inline unsigned int leaves(struct rig *r)
{
	for (int i = 0; i < 8; i++)
		cm_timer_ready(r->t->k.rdmacm);
	if (recv(wire, &last, sizeof(last), MSG_DONTWAIT) != (ssize_t)sizeof(last))
		return 0;
	assert_memory_equal(last.mad, "\1\7\2\3", 4);
	return (unsigned int)last.mad[16] << 8 | last.mad[17];
}

static inline uint64_t get(size_t at, unsigned int bytes)
{
	uint64_t v = 0;

	while (bytes--)
		v = v << 8 | last.mad[at++];
	return v;
}

static inline void put(uint8_t *mad, size_t at, unsigned int bytes, uint64_t v)
{
	while (bytes--) {
		mad[at + bytes] = (uint8_t)v;
		v >>= 8;
	}
}

/* A datagram from that LID, with the two numbers. */
static inline struct sh_wire_mad from(uint16_t lid, unsigned int attribute, uint32_t theirs,
				      uint32_t ours)
{
	struct sh_wire_mad w = {
		.hca = 0, .port = 1, .lid = lid, .pkey = 0xffff, .mad = {1, 7, 2, 3}};

	put(w.mad, 16, 2, attribute);
	put(w.mad, 24, 4, theirs);
	if (attribute != REQ && attribute != SIDR_REQ)
		put(w.mad, 28, 4, ours);
	return w;
}

static inline void comes(struct rig *r, const struct sh_wire_mad *w)
{
	cm_wire_came(r->t->k.rdmacm, w);
}

static inline void comes_plain(struct rig *r, unsigned int attribute, uint32_t ours)
{
	struct sh_wire_mad w = from(FAR, attribute, THEIRS, ours);

	if (attribute == DREQ)
		put(w.mad, 32, 3, 0x123);
	comes(r, &w);
}

static inline void put_addresses(uint8_t *data)
{
	static const uint8_t addresses[36] = {0, 0x40, 0x12,	  0x34, [16] = 10, 1,
					      2, FAR,  [32] = 10, 1,	2,	   3};

	memcpy(data, addresses, sizeof(addresses));
}

/* A request of a kernel that has Soft-RoCE. */
static inline struct sh_wire_mad request(void)
{
	struct sh_wire_mad w = from(FAR, REQ, THEIRS, 0);

	put(w.mad, 32, 8, 0x01060000 + PORT);
	put(w.mad, 56, 3, 0x789);
	w.mad[59] = 5;		     /* responder resources */
	w.mad[63] = 2;		     /* initiator depth */
	put(w.mad, 68, 3, 0x765432); /* PSN */
	w.mad[67] = 20 << 3;
	w.mad[71] = 20 << 3 | 6; /* retries */
	put(w.mad, 72, 2, 0xffff);
	w.mad[74] = 3 << 4 | 7; /* MTU 1024, RNR retries */
	w.mad[75] = 15 << 4;
	put(w.mad, 76, 4, 0xffffffff);
	put_addresses(w.mad + 164);
	memset(w.mad + 200, 0x3c, 56);
	return w;
}

static inline struct sh_wire_mad reply(uint32_t ours)
{
	struct sh_wire_mad w = from(FAR, REP, THEIRS, ours);

	put(w.mad, 36, 3, 0x456);
	put(w.mad, 44, 3, 0x654321);
	w.mad[48] = 4; /* responder resources */
	w.mad[49] = 3; /* initiator depth */
	w.mad[51] = 5 << 5;
	memset(w.mad + 60, 0xa5, 196);
	return w;
}

static inline struct cm_id *id_of(struct rig *r, uint32_t number)
{
	return cm_table_get(&r->t->k.rdmacm->hosts[0].ids, number);
}

/* No answer has come in time. */
static inline void late(struct rig *r, uint32_t id)
{
	cm_id_timer(id_of(r, id), 1);
}

/* *ours: the number of the connection. */
static inline uint32_t connects(struct rig *r, uint32_t *ours)
{
	uint32_t id = routed(r, 0, CM_PS_TCP, "10.1.2.9");

	assert_int_equal(connect_len(r, 0, id, 3), 0);
	assert_int_equal(leaves(r), REQ);
	*ours = (uint32_t)get(24, 4);
	return id;
}

static inline uint32_t connected(struct rig *r, uint32_t *ours)
{
	uint32_t id = connects(r, ours);
	struct sh_wire_mad w = reply(*ours);

	comes(r, &w);
	assert_int_equal(event(r, 0), CM_EV_CONNECT_RESPONSE);
	assert_int_equal(accept_len(r, 0, id, 0, 0), 0);
	assert_int_equal(leaves(r), RTU);
	return id;
}

#endif
