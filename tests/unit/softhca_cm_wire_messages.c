// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: messages of the wire that are no part of a connection in good order: those from a
 * false source or from strangers, refusals in both directions, the questions and answers of UD,
 * and messages of any bytes.
 */
#include "softhca_cm_wire_rig.h"

/*
 * A request that says that it comes from elsewhere, even from this machine: programs see from where
 * it came.
 */
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
		cmocka_unit_test(false_source), cmocka_unit_test(strangers),
		cmocka_unit_test(refusals),	cmocka_unit_test(datagrams),
		cmocka_unit_test(any_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
