// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: connections by address to peers elsewhere on the wire, as the daemon has them. The
 * test is the wire and the peer: it reads each datagram that leaves, and writes each that comes.
 * Bytes are held against offsets of InfiniBand's chapter 12, as numbers here.
 */
#include "softhca_cm_wire_rig.h"

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
 * The peer ended while the message that the connection stands was still under way to it: it rejects
 * what stands here.
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

/*
 * It ends before it has heard that the connection stands: the peer may think so, and is told until
 * it knows.
 */
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

/*
 * Numbers have 64 bits, and 32 go over the wire: those of older ids are found all the same. 0 is
 * nobody's.
 */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses),	    cmocka_unit_test(request_as_bytes),
		cmocka_unit_test(active),	    cmocka_unit_test(passive),
		cmocka_unit_test(farewell),	    cmocka_unit_test(rejected_late),
		cmocka_unit_test(ends_early),	    cmocka_unit_test(peer_ends),
		cmocka_unit_test(numbers_overflow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
