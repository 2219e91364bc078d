// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: connections by address to peers elsewhere on the wire, as the daemon has them. The test is the wire and the peer: it
 * reads each datagram that leaves, and writes each that comes. Bytes are held against offsets of
 * InfiniBand's chapter 12, as numbers here.
 */
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

static void begin_wire(struct rig *r)
{
	static const struct sh_wire_config cfg = {.n = 2,
						  .network = 0x0a010200,
						  .netmask = 0xffffff00,
						  .address = {0x0a010203, 0x0a010204},
						  .mtu = 4096};
	int ends[2];

	memset(r, 0, sizeof(*r));
	r->t = kt_start_wire(SH_FACE_MAINLINE, &cfg);
	r->ch[0] = channel(r, 0, &r->fd[0]);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	r->t->k.wire.link = ends[0];
	wire = ends[1];
}

static void end_wire(struct rig *r)
{
	cm_channel_free(r->ch[0]);
	close(r->fd[0]);
	cm_timer_ready(&r->t->k, 0);
	assert_null(r->t->k.rdmacm->ids);
	close(r->t->k.wire.link);
	r->t->k.wire.link = -1;
	close(wire);
	kt_stop(r->t);
}

/* The attribute of the next datagram that leaves, which is then in `last`; 0: none does. */
static unsigned int leaves(struct rig *r)
{
	for (int i = 0; i < 8; i++)
		cm_timer_ready(&r->t->k, 0);
	if (recv(wire, &last, sizeof(last), MSG_DONTWAIT) != (ssize_t)sizeof(last))
		return 0;
	assert_memory_equal(last.mad, "\1\7\2\3", 4);
	return (unsigned int)last.mad[16] << 8 | last.mad[17];
}

static uint64_t get(size_t at, unsigned int bytes)
{
	uint64_t v = 0;

	while (bytes--)
		v = v << 8 | last.mad[at++];
	return v;
}

static void put(uint8_t *mad, size_t at, unsigned int bytes, uint64_t v)
{
	while (bytes--) {
		mad[at + bytes] = (uint8_t)v;
		v >>= 8;
	}
}

/* A datagram from that LID, with the two numbers. */
static struct sh_wire_mad from(uint16_t lid, unsigned int attribute, uint32_t theirs, uint32_t ours)
{
	struct sh_wire_mad w = {
		.hca = 0, .port = 1, .lid = lid, .pkey = 0xffff, .mad = {1, 7, 2, 3}};

	put(w.mad, 16, 2, attribute);
	put(w.mad, 24, 4, theirs);
	if (attribute != REQ && attribute != SIDR_REQ)
		put(w.mad, 28, 4, ours);
	return w;
}

static void comes(struct rig *r, const struct sh_wire_mad *w)
{
	cm_wire_came(&r->t->k, w);
}

static void comes_plain(struct rig *r, unsigned int attribute, uint32_t ours)
{
	struct sh_wire_mad w = from(FAR, attribute, THEIRS, ours);

	if (attribute == DREQ)
		put(w.mad, 32, 3, 0x123);
	comes(r, &w);
}

static void put_addresses(uint8_t *data)
{
	static const uint8_t addresses[36] = {0, 0x40, 0x12,	  0x34, [16] = 10, 1,
					      2, FAR,  [32] = 10, 1,	2,	   3};

	memcpy(data, addresses, sizeof(addresses));
}

/* A request of a kernel that has Soft-RoCE. */
static struct sh_wire_mad request(void)
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

static struct sh_wire_mad reply(uint32_t ours)
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

static struct cm_id *id_of(struct rig *r, uint32_t number)
{
	return cm_table_get(&r->t->k.rdmacm->hosts[0].ids, number);
}

/* No answer has come in time. */
static void late(struct rig *r, uint32_t id)
{
	cm_id_timer(id_of(r, id), 1);
}

/* *ours: the number of the connection. */
static uint32_t connects(struct rig *r, uint32_t *ours)
{
	uint32_t id = routed(r, 0, CM_PS_TCP, "10.1.2.9");

	assert_int_equal(connect_len(r, 0, id, 3), 0);
	assert_int_equal(leaves(r), REQ);
	*ours = (uint32_t)get(24, 4);
	return id;
}

static uint32_t connected(struct rig *r, uint32_t *ours)
{
	uint32_t id = connects(r, ours);
	struct sh_wire_mad w = reply(*ours);

	comes(r, &w);
	assert_int_equal(event(r, 0), CM_EV_CONNECT_RESPONSE);
	assert_int_equal(accept_len(r, 0, id, 0, 0), 0);
	assert_int_equal(leaves(r), RTU);
	return id;
}

static void addresses(void **state)
{
	struct rig r;
	uint32_t id;

	(void)state;
	begin_wire(&r);
	id = create(&r, 0, CM_PS_TCP);
	assert_int_equal(bind_to(&r, 0, id, "10.1.2.9", PORT), EADDRNOTAVAIL);
	assert_int_equal(bind_to(&r, 0, id, "10.1.2.4", PORT), 0);
	assert_int_equal(id_of(&r, id)->port, 2);
	id = routed(&r, 0, CM_PS_TCP, "10.1.2.4");
	assert_int_equal(id_of(&r, id)->far, 0);
	id = routed(&r, 0, CM_PS_TCP, "127.0.0.1");
	assert_int_equal(id_of(&r, id)->far, 0);
	id = routed(&r, 0, CM_PS_TCP, "10.1.2.9");
	assert_int_equal(id_of(&r, id)->far, FAR);
	assert_int_equal(id_of(&r, id)->path.slid, 3);
	assert_int_equal(id_of(&r, id)->path.dlid, FAR);
	assert_memory_equal(id_of(&r, id)->path.dgid, "\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\1\2\x09",
			    16);
	assert_int_equal(id_of(&r, id)->src.in.sin_addr.s_addr, htonl(0x0a010203));
	id = create(&r, 0, CM_PS_TCP);
	assert_int_equal(resolve(&r, 0, id, "10.1.3.9", 100), 0);
	assert_int_equal(event(&r, 0), CM_EV_ADDR_ERROR);
	end_wire(&r);
}

static void request_as_bytes(void **state)
{
	struct rig r;
	uint32_t ours, id;
	struct sh_wire_mad first;

	(void)state;
	begin_wire(&r);
	id = connects(&r, &ours);
	assert_int_equal(last.hca, 0);
	assert_int_equal(last.port, 1);
	assert_int_equal(last.lid, FAR);
	assert_int_equal(get(12, 4), ours);
	assert_int_not_equal(ours, 0);
	assert_int_equal(get(32, 8), 0x01060000 + PORT);
	assert_true(get(40, 8) == sh_hca(&r.t->k.dev, 0)->node_guid);
	assert_int_equal(get(56, 3), 0x123);
	assert_int_equal(last.mad[59], 3); /* responder resources */
	assert_int_equal(last.mad[63], 1); /* initiator depth */
	assert_int_equal(last.mad[67], 20 << 3);
	assert_int_equal(get(68, 3), id_of(&r, id)->psn);
	assert_int_equal(last.mad[71], 20 << 3 | 5);
	assert_int_equal(get(72, 2), 0xffff);
	assert_int_equal(last.mad[74], 5 << 4 | 6);
	assert_int_equal(last.mad[75], 15 << 4);
	assert_int_equal(get(76, 4), 0xffffffff);
	assert_memory_equal(last.mad + 80, "\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\1\2\3", 16);
	assert_memory_equal(last.mad + 96, "\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\1\2\x09", 16);
	assert_int_equal(last.mad[115], 7);
	assert_int_equal(last.mad[117], 64);
	assert_int_equal(last.mad[118], 0);
	assert_int_equal(last.mad[119], 16 << 3);
	assert_int_equal(get(120, 4) | get(124, 8) | get(132, 8) | get(140, 8) | get(148, 8) |
				 get(156, 8),
			 0);
	assert_int_equal(get(164, 2), 0x0040);
	assert_int_equal(get(166, 2), ntohs(id_of(&r, id)->src.in.sin_port));
	assert_int_equal(get(168, 8) | get(176, 4) | get(184, 8) | get(192, 4), 0);
	assert_int_equal(get(180, 4), 0x0a010203);
	assert_int_equal(get(196, 4), 0x0a010209);
	assert_memory_equal(last.mad + 200, "\x5a\x5a\x5a\0", 4);
	/* Sent again, it is the same. */
	first = last;
	late(&r, id);
	assert_int_equal(leaves(&r), REQ);
	assert_memory_equal(&first, &last, sizeof(last));
	end_wire(&r);
}

static void active(void **state)
{
	struct sh_wire_mad w;
	struct cm_qp_attr a;
	uint32_t ours, id;
	uint64_t due;
	struct rig r;

	(void)state;
	begin_wire(&r);
	id = connects(&r, &ours);
	/* The peer asks for 4.096 us << 21. */
	due = id_of(&r, id)->due;
	w = from(FAR, MRA, THEIRS, ours);
	w.mad[33] = 21 << 3;
	comes(&r, &w);
	assert_in_range(id_of(&r, id)->due, due + 8000000000u, due + 10000000000u);
	w = reply(ours);
	comes(&r, &w);
	comes(&r, &w);
	assert_int_equal(event(&r, 0), CM_EV_CONNECT_RESPONSE);
	assert_int_equal(r.ev.param.conn.qp_num, 0x456);
	assert_int_equal(r.ev.param.conn.responder_resources, 3);
	assert_int_equal(r.ev.param.conn.initiator_depth, 4);
	assert_int_equal(r.ev.param.conn.data[195], 0xa5);
	assert_int_equal(event(&r, 0), -1);
	assert_int_equal(attr(&r, 0, id, 2, &a), 0);
	assert_int_equal(a.dest_qp_num, 0x456);
	assert_int_equal(a.ah.dlid, FAR);
	assert_int_equal(attr(&r, 0, id, 3, &a), 0);
	assert_int_equal(a.sq_psn, 0x654321);
	assert_int_equal(a.rnr_retry, 5);
	assert_int_equal(accept_len(&r, 0, id, 0, 0), 0);
	assert_int_equal(leaves(&r), RTU);
	assert_int_equal(get(24, 4), ours);
	assert_int_equal(get(28, 4), THEIRS);
	/* The peer has not got it. */
	comes(&r, &w);
	assert_int_equal(leaves(&r), RTU);
	assert_int_equal(event(&r, 0), -1);
	/* Another reply to the request, which had come twice: that one ends. */
	w = reply(ours);
	put(w.mad, 24, 4, THEIRS + 1);
	comes(&r, &w);
	assert_int_equal(leaves(&r), REJ);
	assert_int_equal(get(28, 4), THEIRS + 1);
	assert_int_equal(get(34, 2), 6);
	assert_int_equal(two(&r, 0, CM_DISCONNECT, id, 0), 0);
	assert_int_equal(leaves(&r), DREQ);
	assert_int_equal(get(32, 3), 0x456);
	late(&r, id);
	assert_int_equal(leaves(&r), DREQ);
	comes_plain(&r, DREP, ours);
	comes_plain(&r, DREP, ours);
	assert_int_equal(event(&r, 0), CM_EV_DISCONNECTED);
	assert_int_equal(event(&r, 0), -1);
	destroy(&r, 0, id);
	assert_int_equal(leaves(&r), 0);
	end_wire(&r);
}

static void passive(void **state)
{
	struct sh_wire_mad w = request();
	struct cm_qp_attr a;
	uint32_t id, ours;
	struct rig r;

	(void)state;
	begin_wire(&r);
	comes(&r, &w);
	assert_int_equal(leaves(&r), REJ); /* nobody listens */
	assert_int_equal(get(28, 4), THEIRS);
	assert_int_equal(last.mad[32], 0);
	assert_int_equal(get(34, 2), 8);
	listener(&r, 0, CM_PS_TCP, "0.0.0.0", 10);
	comes(&r, &w);
	assert_int_equal(event(&r, 0), CM_EV_CONNECT_REQUEST);
	assert_int_equal(r.ev.param.conn.responder_resources, 2);
	assert_int_equal(r.ev.param.conn.initiator_depth, 5);
	assert_int_equal(r.ev.param.conn.qp_num, 0x789);
	assert_int_equal(r.ev.param.conn.data[55], 0x3c);
	id = r.ev.id;
	assert_int_equal(id_of(&r, id)->dst.in.sin_addr.s_addr, htonl(0x0a010209));
	assert_int_equal(id_of(&r, id)->dst.in.sin_port, htons(0x1234));
	assert_int_equal(id_of(&r, id)->src.in.sin_port, htons(PORT));
	/* It comes again: the peer is to wait for the program. */
	comes(&r, &w);
	assert_int_equal(leaves(&r), MRA);
	assert_int_equal(last.mad[33], 24 << 3);
	assert_int_equal(event(&r, 0), -1);
	assert_int_equal(attr(&r, 0, id, 2, &a), 0);
	assert_int_equal(a.dest_qp_num, 0x789);
	assert_int_equal(a.path_mtu, 3);
	assert_int_equal(accept_len(&r, 0, id, 5, 1), 0);
	assert_int_equal(leaves(&r), REP);
	ours = (uint32_t)get(24, 4);
	assert_int_equal(get(28, 4), THEIRS);
	assert_int_equal(get(36, 3), 0x456);
	assert_int_equal(get(44, 3), id_of(&r, id)->psn);
	assert_int_equal(last.mad[48], 1);
	assert_int_equal(last.mad[49], 2);
	assert_int_equal(last.mad[51], 4 << 5);
	assert_memory_equal(last.mad + 60, "\xa5\xa5\xa5\xa5\xa5\0", 6);
	late(&r, id);
	assert_int_equal(leaves(&r), REP);
	comes(&r, &w);
	comes_plain(&r, RTU, ours);
	comes_plain(&r, RTU, ours);
	assert_int_equal(event(&r, 0), CM_EV_ESTABLISHED);
	assert_int_equal(event(&r, 0), -1);
	assert_int_equal(leaves(&r), 0);
	/* The program ends. Its peer is told until it knows. */
	destroy(&r, 0, id);
	assert_int_equal(leaves(&r), DREQ);
	assert_int_equal(get(24, 4), ours);
	assert_int_equal(get(28, 4), THEIRS);
	assert_int_equal(get(32, 3), 0x789);
	assert_non_null(r.t->k.rdmacm->farewells);
	w = from(STRANGER, DREP, THEIRS, ours);
	comes(&r, &w);
	assert_non_null(r.t->k.rdmacm->farewells);
	comes_plain(&r, DREP, ours);
	assert_null(r.t->k.rdmacm->farewells);
	end_wire(&r);
}

static void farewell(void **state)
{
	uint32_t ours, id;
	struct rig r;

	(void)state;
	begin_wire(&r);
	id = connected(&r, &ours);
	r.t->k.rdmacm->response_ns = 1;
	destroy(&r, 0, id);
	/* For want of an answer it is given up in the end. */
	for (int i = 0; i < 16; i++)
		assert_int_equal(leaves(&r), DREQ);
	assert_int_equal(leaves(&r), 0);
	assert_null(r.t->k.rdmacm->farewells);
	end_wire(&r);
}

/*
 * The peer ended while the message that the connection stands was still under way to it: it rejects what
 * stands here.
 */
static void rejected_late(void **state)
{
	uint32_t ours, id;
	struct rig r;

	(void)state;
	begin_wire(&r);
	id = connected(&r, &ours);
	comes_plain(&r, REJ, ours);
	assert_int_equal(event(&r, 0), CM_EV_DISCONNECTED);
	comes_plain(&r, REJ, ours);
	assert_int_equal(event(&r, 0), -1);
	destroy(&r, 0, id);
	end_wire(&r);
}

/* It ends before it has heard that the connection stands: the peer may think so, and is told until it knows. */
static void ends_early(void **state)
{
	struct sh_wire_mad w = request();
	uint32_t id, ours;
	struct rig r;

	(void)state;
	begin_wire(&r);
	listener(&r, 0, CM_PS_TCP, "0.0.0.0", 10);
	comes(&r, &w);
	assert_int_equal(event(&r, 0), CM_EV_CONNECT_REQUEST);
	id = r.ev.id;
	assert_int_equal(accept_len(&r, 0, id, 5, 1), 0);
	assert_int_equal(leaves(&r), REP);
	ours = (uint32_t)get(24, 4);
	r.t->k.rdmacm->response_ns = 1;
	destroy(&r, 0, id);
	assert_int_equal(leaves(&r), REJ);
	assert_int_equal(leaves(&r), DREQ);
	assert_int_equal(leaves(&r), DREQ);
	comes_plain(&r, DREP, ours);
	assert_null(r.t->k.rdmacm->farewells);
	/* Nothing is said after what had been said before the answer came. */
	while (leaves(&r) == DREQ)
		;
	assert_int_equal(leaves(&r), 0);
	end_wire(&r);
}

/* A request that says that it comes from elsewhere, even from this machine: programs see from where it came. */
static void false_source(void **state)
{
	struct sh_wire_mad w = request();
	struct rig r;

	(void)state;
	begin_wire(&r);
	listener(&r, 0, CM_PS_TCP, "0.0.0.0", 10);
	put(w.mad, 164 + 16, 4, 0x7f000001);
	comes(&r, &w);
	assert_int_equal(event(&r, 0), CM_EV_CONNECT_REQUEST);
	assert_int_equal(id_of(&r, r.ev.id)->dst.in.sin_addr.s_addr, htonl(0x0a010209));
	assert_int_equal(id_of(&r, r.ev.id)->dst.in.sin_port, htons(0x1234));
	end_wire(&r);
}

static void peer_ends(void **state)
{
	uint32_t ours, id;
	struct rig r;

	(void)state;
	begin_wire(&r);
	id = connected(&r, &ours);
	comes_plain(&r, DREQ, ours);
	comes_plain(&r, DREQ, ours);
	assert_int_equal(event(&r, 0), CM_EV_DISCONNECTED);
	assert_int_equal(event(&r, 0), -1);
	assert_int_equal(leaves(&r), 0);
	assert_int_equal(two(&r, 0, CM_DISCONNECT, id, 0), 0);
	assert_int_equal(leaves(&r), DREP);
	comes_plain(&r, DREQ, ours); /* the answer was lost */
	assert_int_equal(leaves(&r), DREP);
	destroy(&r, 0, id);
	comes_plain(&r, DREQ, ours);
	assert_int_equal(leaves(&r), DREP);
	assert_int_equal(get(24, 4), ours);
	assert_int_equal(get(28, 4), THEIRS);
	/* As after a restart: nobody ever had that number. */
	r.t->k.rdmacm->next_comm = 0x1000;
	comes_plain(&r, DREQ, 0x7fffffff);
	assert_int_equal(leaves(&r), DREP);
	assert_int_equal(get(24, 4), 0x7fffffff);
	end_wire(&r);
}

/* Numbers have 64 bits, and 32 go over the wire: those of older ids are found all the same. 0 is nobody's. */
static void numbers_overflow(void **state)
{
	uint32_t first, second, ours[2];
	struct rig r;

	(void)state;
	begin_wire(&r);
	r.t->k.rdmacm->next_comm = 0xfffffffe;
	first = connected(&r, &ours[0]);
	second = connected(&r, &ours[1]);
	assert_int_equal(ours[0], 0xffffffff);
	assert_int_equal(ours[1], 1);
	comes_plain(&r, DREQ, ours[0]);
	assert_int_equal(event(&r, 0), CM_EV_DISCONNECTED);
	assert_int_equal(id_of(&r, first)->x, CM_X_DREQ_RECEIVED);
	assert_int_equal(id_of(&r, second)->x, CM_X_ESTABLISHED);
	end_wire(&r);
}

/* Whoever is not the peer, or does not know the connection's numbers, changes nothing. */
static void strangers(void **state)
{
	static const unsigned int kinds[] = {MRA, REJ, REP, RTU, DREP};
	uint32_t ours, id, asking, other;
	struct sh_wire_mad w;
	struct rig r;
	uint64_t due;

	(void)state;
	begin_wire(&r);
	id = connected(&r, &ours);
	asking = connects(&r, &other);
	due = id_of(&r, asking)->due;
	for (unsigned int i = 0; i < 5; i++) {
		w = from(STRANGER, kinds[i], THEIRS, ours);
		comes(&r, &w);
		w = from(STRANGER, kinds[i], THEIRS, other);
		comes(&r, &w);
		if (kinds[i] == REP)
			continue;
		w = from(FAR, kinds[i], THEIRS + 1, ours);
		comes(&r, &w);
	}
	w = from(FAR, DREQ, THEIRS, ours); /* with a wrong QP */
	comes(&r, &w);
	w = from(FAR, REJ, THEIRS, 0);
	comes(&r, &w);
	while (leaves(&r))
		;
	assert_int_equal(event(&r, 0), -1);
	assert_int_equal(id_of(&r, id)->x, CM_X_ESTABLISHED);
	assert_int_equal(id_of(&r, asking)->x, CM_X_REQ_SENT);
	assert_true(id_of(&r, asking)->due == due);
	/* The peer itself rejects. */
	w = from(FAR, REJ, 0, other);
	put(w.mad, 34, 2, 28);
	memset(w.mad + 108, 0x77, 148);
	comes(&r, &w);
	assert_int_equal(event(&r, 0), CM_EV_REJECTED);
	assert_int_equal(r.ev.status, 28);
	assert_int_equal(r.ev.param.conn.data[147], 0x77);
	end_wire(&r);
}

/* A request is taken back; a request is refused, and the refusal is lost. */
static void refusals(void **state)
{
	struct sh_wire_mad w = request();
	uint32_t ours, id;
	struct rig r;

	(void)state;
	begin_wire(&r);
	listener(&r, 0, CM_PS_TCP, "10.1.2.3", 10);
	comes(&r, &w);
	assert_int_equal(event(&r, 0), CM_EV_CONNECT_REQUEST);
	id = r.ev.id;
	assert_int_equal(reject(&r, 0, id, 4), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(leaves(&r), REJ);
		assert_int_equal(get(28, 4), THEIRS);
		assert_int_equal(get(34, 2), 28);
		comes(&r, &w);
	}
	assert_int_equal(event(&r, 0), -1);
	destroy(&r, 0, id);
	while (leaves(&r))
		;
	/* One whose packets this port does not take. */
	put(w.mad, 24, 4, THEIRS + 1);
	r.t->k.cfg.device.wire.mtu = 1024;
	w.mad[74] = 5 << 4;
	comes(&r, &w);
	assert_int_equal(leaves(&r), REJ);
	assert_int_equal(get(34, 2), 26);
	/* The peer takes a request back before anybody has answered. */
	r.t->k.cfg.device.wire.mtu = 4096;
	put(w.mad, 24, 4, THEIRS + 2);
	comes(&r, &w);
	assert_int_equal(event(&r, 0), CM_EV_CONNECT_REQUEST);
	id = r.ev.id;
	w = from(FAR, REJ, THEIRS + 2, 0);
	put(w.mad, 34, 2, 4);
	comes(&r, &w);
	assert_int_equal(id_of(&r, id)->x, CM_X_ENDED);
	/* And so do we: the peer finds it by our GUID. */
	id = connects(&r, &ours);
	destroy(&r, 0, id);
	assert_int_equal(leaves(&r), REJ);
	assert_int_equal(get(24, 4), ours);
	assert_int_equal(get(28, 4), 0);
	assert_int_equal(last.mad[32], 2 << 6);
	assert_int_equal(last.mad[33], 8 << 1);
	assert_int_equal(get(34, 2), 4);
	assert_true(get(36, 8) == sh_hca(&r.t->k.dev, 0)->node_guid);
	end_wire(&r);
}

static uint32_t create_ud(struct rig *r)
{
	struct cm_number_resp resp;
	struct cm_create_id c = {
		.response = (uintptr_t)&resp, .ps = CM_PS_UDP, .qp_type = CM_QPT_UD};

	assert_int_equal(cmd(r, 0, CM_CREATE_ID, &c, sizeof(c), sizeof(resp)), 0);
	return resp.value;
}

static void datagrams(void **state)
{
	struct sh_wire_mad w = from(FAR, SIDR_REQ, THEIRS, 0);
	uint32_t l, id;
	struct rig r;

	(void)state;
	begin_wire(&r);
	l = create_ud(&r);
	assert_int_equal(bind_to(&r, 0, l, "0.0.0.0", PORT), 0);
	assert_int_equal(two(&r, 0, CM_LISTEN, l, 10), 0);
	put(w.mad, 28, 2, 0xffff);
	put(w.mad, 32, 8, 0x01110000 + PORT);
	put_addresses(w.mad + 40);
	memset(w.mad + 76, 0x3c, 180);
	comes(&r, &w);
	comes(&r, &w);
	assert_int_equal(event(&r, 0), CM_EV_CONNECT_REQUEST);
	assert_int_equal(r.ev.param.ud.data[179], 0x3c);
	id = r.ev.id;
	assert_int_equal(event(&r, 0), -1);
	assert_int_equal(leaves(&r), 0);
	assert_int_equal(accept_len(&r, 0, id, 5, 1), 0);
	/* The answer is lost: the same comes again. */
	for (int i = 0; i < 2; i++) {
		assert_int_equal(leaves(&r), SIDR_REP);
		assert_int_equal(get(24, 4), THEIRS);
		assert_int_equal(last.mad[28], 0);
		assert_int_equal(get(32, 3), 0x456);
		assert_int_equal(get(36, 8), 0x01110000 + PORT);
		assert_int_equal(get(44, 4), 0x01234567);
		assert_memory_equal(last.mad + 120, "\xa5\xa5\xa5\xa5\xa5\0", 6);
		comes(&r, &w);
	}
	while (leaves(&r))
		;
	/* The other side of it. */
	id = create_ud(&r);
	assert_int_equal(resolve(&r, 0, id, "10.1.2.9", 100), 0);
	assert_int_equal(event(&r, 0), CM_EV_ADDR_RESOLVED);
	assert_int_equal(two(&r, 0, CM_RESOLVE_ROUTE, id, 100), 0);
	assert_int_equal(event(&r, 0), CM_EV_ROUTE_RESOLVED);
	assert_int_equal(connect_len(&r, 0, id, 3), 0);
	assert_int_equal(leaves(&r), SIDR_REQ);
	assert_int_equal(get(28, 2), 0xffff);
	assert_int_equal(get(32, 8), 0x01110000 + PORT);
	assert_int_equal(get(40, 2), 0x0040);
	assert_int_equal(get(56, 4), 0x0a010203);
	assert_int_equal(get(72, 4), 0x0a010209);
	assert_memory_equal(last.mad + 76, "\x5a\x5a\x5a\0", 4);
	w = from(FAR, SIDR_REP, (uint32_t)get(24, 4), 0);
	put(w.mad, 28, 4, 0);
	put(w.mad, 32, 3, 0x99);
	put(w.mad, 44, 4, 0x01234567);
	comes(&r, &w);
	comes(&r, &w);
	assert_int_equal(event(&r, 0), CM_EV_ESTABLISHED);
	assert_int_equal(r.ev.param.ud.qp_num, 0x99);
	assert_int_equal(r.ev.param.ud.ah.dlid, FAR);
	assert_int_equal(event(&r, 0), -1);
	end_wire(&r);
}

/* What each message says is read again; of bytes that mean nothing, nothing is left. */
static void any_bytes(void **state)
{
	struct sh_wire_mad w;
	uint32_t ours, seed = 1;
	struct rig r;

	(void)state;
	begin_wire(&r);
	listener(&r, 0, CM_PS_TCP, "0.0.0.0", 10);
	connected(&r, &ours);
	for (int i = 0; i < 20000; i++) {
		w = from(FAR, REQ + (unsigned int)i % 9, THEIRS + (uint32_t)(i % 3), ours);
		for (int j = i % 2 ? 20 : 32; j < 256; j++)
			w.mad[j] = (uint8_t)((seed = seed * 1664525 + 1013904223) >> 24);
		if (i % 4 < 2)
			put(w.mad, 32, 8, 0x01060000 + PORT);
		comes(&r, &w);
		while (leaves(&r))
			;
	}
	end_wire(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses),  cmocka_unit_test(request_as_bytes),
		cmocka_unit_test(active),     cmocka_unit_test(passive),
		cmocka_unit_test(farewell),   cmocka_unit_test(rejected_late),
		cmocka_unit_test(ends_early), cmocka_unit_test(false_source),
		cmocka_unit_test(peer_ends),  cmocka_unit_test(numbers_overflow),
		cmocka_unit_test(strangers),  cmocka_unit_test(refusals),
		cmocka_unit_test(datagrams),  cmocka_unit_test(any_bytes),
	};

	alarm(300);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
