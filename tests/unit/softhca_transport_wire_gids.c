// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: datagrams over the wire, those for QP 1 among them, and peers that are known by GID.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#include "softhca_wire_rig.h"
#include "softhca/device/memory/instance.h"
#include "softhca/device/transport/mcast.h"

/* A datagram that no packet of the wire can carry fails, and says so. */
static void test_long_datagram(void **state)
{
	struct tpair p;
	struct twr wr;

	(void)state;
	for (uint32_t len = 1024; len <= 1025; len++) {
		open_pair(&p, &(struct tpair_opts){.type = SH_QPT_UD});
		wr = tpair_wr(&p, MLX4_OPCODE_SEND, len);
		wr.dlid = B_FAR;
		tfill(p.amem, TMEM, 1);
		tpair_recv(&p, 0, 4096);
		tqp_send(&p.a, &wr);
		pump(&p);
		if (len == 1024) {
			texpect(&p.acq[0], MLX4_OPCODE_SEND, true, 0);
			assert_memory_equal(p.bmem + 40, p.amem, len);
		} else {
			texpect_error(&p.acq[0], MLX4_SYNDROME_LOC_LEN, true, 0);
			assert_int_equal(queue.sent, 0);
		}
		tpair_close(&p);
	}
}

/* ::ffff:10.0.A.B, where A and B are the LID. */
static void set_gid(uint8_t gid[16], uint16_t lid)
{
	const uint8_t mapped[16] = {
		[10] = 0xff, [11] = 0xff, [12] = 10, [14] = lid >> 8, [15] = (uint8_t)lid};

	memcpy(gid, mapped, sizeof(mapped));
}

static void by_gid(uint32_t type, uint16_t lid)
{
	struct tpair p;
	struct twr wr;

	open_pair(&p, &(struct tpair_opts){.type = type, .unconnected = true, .retry = 1});
	p.m->inst->wire.network = sh_ip4(0x0a000000);
	p.aattr.path = p.battr.path = (struct sh_path){.port_num = 1, .is_global = 1};
	set_gid(p.aattr.path.dgid, lid);
	set_gid(p.battr.path.dgid, A_FAR);
	tqp_up(&p.a, &p.aattr);
	tqp_up(&p.b, &p.battr);
	tfill(p.amem, TMEM, 1);
	tpair_recv(&p, 0, 4096);
	wr = tpair_wr(&p, MLX4_OPCODE_SEND, 1000);
	wr.dlid = 0;
	wr.grh = true;
	set_gid(wr.dgid, lid);
	tqp_send(&p.a, &wr);
	pump(&p);
	if (lid == B_FAR) {
		texpect(&p.acq[0], MLX4_OPCODE_SEND, true, 0);
		assert_memory_equal(p.bmem + (type == SH_QPT_UD ? 40 : 0), p.amem, 1000);
	} else {
		assert_int_equal(queue.sent, 0);
		texpect_none(&p.bcq[1]);
	}
	tpair_close(&p);
}

/* A datagram for QP 1 of b, in `packet` as it comes. False: it did not go on. */
static bool goes_on(struct tpair *p, struct sh_packet packet)
{
	unsigned int before = mads;

	sh_wire_arrive(&p->m->dev, 1, 1, &packet);
	return mads == before + 1;
}

/* QP 1 sends to QP 1; only datagrams of the communication manager go on, and only whole ones. */
static void test_qp1(void **state)
{
	struct sh_wire_mad m = {.hca = 0, .port = 1, .lid = B_FAR, .pkey = 0xffff, .mad = {1, 7}};
	struct sh_packet packet, bad;
	struct sh_roce_way way = way_to(B_FAR);
	struct sh_seg seg;
	struct tpair p;

	(void)state;
	open_pair(&p, &(struct tpair_opts){.type = SH_QPT_UD});
	m.mad[255] = 0x5a;
	assert_true(sh_enter(&p.m->dev));
	sh_gsi_leave(&p.m->dev, &m);
	assert_int_equal(queue.tail - queue.head, 1);
	assert_int_equal(queue.packet[queue.head].dlid, B_FAR);
	assert_int_equal(sh_roce_decode(queue.packet[queue.head].bytes,
					(size_t)queue.packet[queue.head].n - SH_ROCE_HEAD, &way,
					&packet, &seg),
			 SH_ROCE_OK);
	queue.head++;
	assert_int_equal(packet.qkey, 0x80010000);
	assert_int_equal(packet.dqpn, 1);
	assert_int_equal(packet.srcqp, 1);
	packet.slid = A_FAR;
	assert_true(goes_on(&p, packet));
	assert_int_equal(came.hca, 1);
	assert_int_equal(came.port, 1);
	assert_int_equal(came.lid, A_FAR);
	assert_memory_equal(came.mad, m.mad, sizeof(m.mad));
	bad = packet;
	bad.qkey = 0x11111111;
	assert_false(goes_on(&p, bad));
	bad = packet;
	bad.pkey = 0x8001;
	assert_false(goes_on(&p, bad));
	bad = packet;
	bad.srcqp = 2;
	assert_false(goes_on(&p, bad));
	bad = packet;
	bad.payload.len = seg.len = 255;
	assert_false(goes_on(&p, bad));
	seg.len = 256;
	bad = packet;
	bad.flags &= (uint8_t)~SH_PKT_LAST;
	assert_false(goes_on(&p, bad));
	bad = packet;
	bad.service = SH_SVC_RC;
	assert_false(goes_on(&p, bad));
	((uint8_t *)(uintptr_t)seg.addr)[1] = 3; /* the subnet administrator's */
	assert_false(goes_on(&p, packet));
	sh_leave(&p.m->dev);
	tpair_close(&p);
}

/*
 * Ports without a LID, as cards and Soft-RoCE have, are reached by GID; addresses behind the
 * network are not.
 */
static void test_gids(void **state)
{
	static const uint32_t types[] = {SH_QPT_RC, SH_QPT_UC, SH_QPT_UD, SH_QPT_XRC};

	(void)state;
	for (unsigned int i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		by_gid(types[i], B_FAR);
		by_gid(types[i], 0x0400 + B_FAR);
	}
}

/* A datagram has come to these ports. */
static void arrives(struct tpair *p, const uint8_t mgid[16], uint64_t ports)
{
	struct sh_packet packet;
	struct sh_seg seg = {(uintptr_t) "abcd", 4};

	sh_packet_init(&packet);
	packet.op = SH_PKT_SEND;
	packet.service = SH_SVC_UD;
	packet.flags = SH_PKT_FIRST | SH_PKT_LAST | SH_PKT_GRH;
	packet.npackets = 1;
	packet.pkey = 0xffff;
	packet.qkey = tqp_ctx(&p->b)->qkey;
	packet.slid = A_FAR;
	packet.dlid = 0xc000;
	packet.dqpn = MLX4_MULTICAST_QPN;
	packet.srcqp = 5;
	packet.payload = (struct sh_payload){.nseg = 1, .seg = &seg, .len = 4};
	memcpy(packet.grh.dgid, mgid, 16);
	tpair_recv(p, 0, 1064);
	tqp_recv(&p->a, &(struct tsge){p->amem + 8192, 1064, p->akey}, 1);
	assert_true(sh_enter(&p->m->dev));
	sh_wire_arrive_group(&p->m->dev, ports, &packet);
	sh_leave(&p->m->dev);
}

/*
 * a is the only member of a group in its instance, then b is one, too. What either sends goes to
 * the wire once, and to each of them once. What comes from there goes to the members at the ports
 * that it came to.
 */
static void group(const uint8_t mgid[16], uint16_t dlid)
{
	struct tsge own;
	struct tpair p;
	struct twr wr;
	uint32_t ports;

	open_pair(&p, &(struct tpair_opts){.type = SH_QPT_UD});
	own = (struct tsge){p.amem + 8192, 1064, p.akey};
	tfill(p.amem, TMEM, 1);
	assert_int_equal(sh_mcast_attach(&p.m->daemon, 1, mgid, p.b.qpn), 0);
	for (unsigned int members = 1; members <= 2; members++) {
		if (members == 2)
			assert_int_equal(sh_mcast_attach(&p.m->daemon, 0, mgid, p.a.qpn), 0);
		tpair_recv(&p, 0, 1064);
		tqp_recv(&p.a, &own, 1);
		wr = tpair_wr(&p, MLX4_OPCODE_SEND, 1000);
		wr.dlid = dlid;
		wr.dqpn = MLX4_MULTICAST_QPN;
		wr.grh = true;
		memcpy(wr.dgid, mgid, 16);
		tqp_send(&p.a, &wr);
		texpect(&p.acq[0], MLX4_OPCODE_SEND, true, members - 1);
		assert_int_equal(queue.sent, members);
		assert_true(queue.packet[queue.head++ % QUEUE].dlid >= 0xc000);
		texpect(&p.bcq[1], MLX4_CQE_RECV_SEND, false, members - 1);
		texpect_none(&p.bcq[1]);
		assert_memory_equal(p.bmem + 40, p.amem, 1000);
		assert_memory_equal(p.bmem + 24, mgid, 16);
		if (members == 2)
			texpect(&p.acq[1], MLX4_CQE_RECV_SEND, false, 0);
		texpect_none(&p.acq[1]);
	}
	assert_int_equal(sh_hca(&p.m->dev, 0)->counters.drops_mcast, 0);
	/* The first port of b alone; that of a is another one. */
	arrives(&p, mgid, 1u << p.m->dev.ports);
	texpect(&p.bcq[1], MLX4_CQE_RECV_SEND, false, 2);
	texpect_none(&p.acq[1]);
	arrives(&p, mgid, 1u | 1u << p.m->dev.ports);
	texpect(&p.bcq[1], MLX4_CQE_RECV_SEND, false, 3);
	texpect(&p.acq[1], MLX4_CQE_RECV_SEND, false, 1);
	/* The same port of b, as the 41st of the instance. */
	ports = p.m->dev.ports;
	p.m->dev.ports = 40;
	arrives(&p, mgid, UINT64_C(1) << 40);
	p.m->dev.ports = ports;
	texpect(&p.bcq[1], MLX4_CQE_RECV_SEND, false, 4);
	texpect_none(&p.acq[1]);
	/* To a group without members. */
	assert_int_equal(sh_mcast_detach(&p.m->daemon, 0, mgid, p.a.qpn), 0);
	arrives(&p, mgid, 1u);
	texpect_none(&p.acq[1]);
	texpect_none(&p.bcq[1]);
	assert_int_equal(sh_hca(&p.m->dev, 0)->counters.drops_mcast, 1);
	tpair_close(&p);
}

static void test_groups(void **state)
{
	static const uint8_t six[16] = {0xff, 0x12, 1},
			     four[16] = {[10] = 0xff, 0xff, 239, 1, 2, 3};

	(void)state;
	group(six, 0xc005);
	group(four, 0xc005);
	/* As RoCE's programs name them. */
	group(four, 0);
	group(six, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_long_datagram),
		cmocka_unit_test(test_qp1),
		cmocka_unit_test(test_gids),
		cmocka_unit_test(test_groups),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
