// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: UD with its 40 bytes, GRH, keys and multicast. UC, which loses messages as a whole
 * and reports nothing.
 */
#include <endian.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "softhca/device/memory/txn.h"
#include "softhca/device/queues/qp.h"
#include "softhca/device/queues/transitions.h"
#include "softhca/device/queues/wqe.h"
#include "softhca/device/transport/fabric.h"
#include "softhca/device/transport/gsi.h"
#include "softhca/device/transport/mcast.h"
#include "softhca/device/transport/responder.h"
#include "softhca_pair.h"

static void fault(struct mock *m, enum sh_fault_kind kind, uint32_t count)
{
	m->inst->faults.rule[kind].count = count;
	m->inst->faults.active = 1;
}

/* ---- UD ---- */

static void test_ud(void **state)
{
	(void)state;
	for (int how = 0; how < 8; how++) {
		struct tpair p;
		bool grh = how & 1;

		tpair_open(&p, &(struct tpair_opts){
				       .type = SH_QPT_UD, .same_hca = how & 2, .srq = how & 4});
		for (uint32_t i = 0; i < 40; i++) {
			uint32_t len = i * 103;
			struct twr wr =
				tpair_wr(&p, i & 1 ? MLX4_OPCODE_SEND_IMM : MLX4_OPCODE_SEND, len);
			struct mlx4_cqe cqe;

			memset(p.bmem, 0xaa, 5000);
			tfill(p.amem, 5000, i);
			tpair_recv(&p, 0, 40 + len);
			wr.imm = i;
			wr.sl = 6;
			wr.grh = grh;
			memset(wr.dgid, 0xd0 + how, 16);
			tqp_send(&p.a, &wr);
			texpect(&p.acq[0], wr.opcode, true, i);
			assert_true(tcq_poll(&p.bcq[1], &cqe));
			assert_int_equal(cqe.owner_sr_opcode & 0x7f,
					 i & 1 ? MLX4_CQE_RECV_SEND_IMM : MLX4_CQE_RECV_SEND);
			assert_int_equal(be32toh((uint32_t)cqe.byte_cnt), 40 + len);
			assert_int_equal(be32toh((uint32_t)cqe.vlan_my_qpn), p.b.qpn);
			assert_int_equal(be32toh((uint32_t)cqe.g_mlpath_rqpn),
					 (grh ? 0x80000000u : 0) | p.a.qpn);
			assert_int_equal(be16toh((uint16_t)cqe.sl_vid), 6 << 12);
			assert_int_equal(be16toh((uint16_t)cqe.rlid), tlid(p.m, 0));
			assert_int_equal(be32toh((uint32_t)cqe.immed_rss_invalid), i & 1 ? i : 0);
			assert_memory_equal(p.bmem + 40, p.amem, len);
			assert_int_equal(p.bmem[40 + len], 0xaa);
			if (!grh) {
				assert_int_equal(p.bmem[0], 0xaa);
				continue;
			}
			assert_int_equal(p.bmem[0], 0x60);
			assert_int_equal(p.bmem[1] & 0xf0, 0x50); /* traffic class 5 */
			assert_int_equal((p.bmem[1] & 0xf) << 16 | p.bmem[2] << 8 | p.bmem[3],
					 0x12345);
			assert_int_equal(p.bmem[6], 0x1b);
			assert_int_equal(p.bmem[7], 64);
			assert_memory_equal(p.bmem + 8, sh_hca(&p.m->dev, 0)->port[0].gid[0], 16);
			assert_memory_equal(p.bmem + 24, wr.dgid, 16);
		}
		texpect_none(&p.bcq[1]);
		tpair_close(&p);
	}
}

/* The 40 bytes may be anywhere in the scatter list. */
static void test_ud_split(void **state)
{
	struct tpair p;
	struct twr wr;

	(void)state;
	tpair_open(&p, &(struct tpair_opts){.type = SH_QPT_UD});
	tqp_recv(&p.b,
		 (struct tsge[]){{p.bmem, 13, p.bkey},
				 {p.bmem + 100, 37, p.bkey},
				 {p.bmem + 1000, 500, p.bkey}},
		 3);
	tfill(p.amem, 500, 1);
	wr = tpair_wr(&p, MLX4_OPCODE_SEND, 400);
	wr.grh = true;
	memset(wr.dgid, 0xee, 16);
	tqp_send(&p.a, &wr);
	texpect(&p.bcq[1], MLX4_CQE_RECV_SEND, false, 0);
	assert_memory_equal(p.bmem + 127, p.amem, 10);
	assert_memory_equal(p.bmem + 1000, p.amem + 10, 390);
	assert_int_equal(p.bmem[126], 0xee);
	assert_int_equal(p.bmem[13], 0);
	tpair_close(&p);
}

/* Datagrams that are not for this QP are dropped. They complete at the sender all the same. */
static void test_ud_drops(void **state)
{
	(void)state;
	for (int how = 0; how < 10; how++) {
		struct tpair p;
		struct twr wr;

		tpair_open(&p, &(struct tpair_opts){.type = SH_QPT_UD});
		if (how)
			tpair_recv(&p, 0, 200);
		wr = tpair_wr(&p, MLX4_OPCODE_SEND, 100);
		switch (how) {
		case 0: /* no receive */
			break;
		case 1:
			wr.qkey ^= 1;
			break;
		case 2: /* the sender sends the Q_Key of its own QP context instead */
			wr.qkey = 0x80010000;
			tqp_ctx(&p.a)->qkey = 0x22;
			break;
		case 3:
			sh_hca(&p.m->dev, 1)->port[0].pkey[0] = 0x8001;
			break;
		case 4: /* two limited members do not communicate */
			sh_hca(&p.m->dev, 0)->port[0].pkey[0] = 0x7fff;
			sh_hca(&p.m->dev, 1)->port[0].pkey[0] = 0x7fff;
			break;
		case 5:
			wr.dqpn = 0x99;
			break;
		case 6:
			wr.dlid = 500;
			break;
		case 7:
			sh_hca(&p.m->dev, 1)->port[0].state = 1;
			break;
		case 8:
			assert_int_equal(tqp_to(&p.b, SH_QPS_RESET), 0);
			break;
		case 9:
			assert_int_equal(sh_qp_silence(&p.m->daemon, 1, p.b.qpn), 0);
			break;
		}
		tqp_send(&p.a, &wr);
		texpect(&p.acq[0], MLX4_OPCODE_SEND, true, 0);
		texpect_none(&p.bcq[1]);
		assert_int_equal(tqp_state(&p.a), SH_QPS_RTS);
		tpair_close(&p);
	}
}

static void test_ud_limited_member(void **state)
{
	struct tpair p;
	struct twr wr;

	(void)state;
	tpair_open(&p, &(struct tpair_opts){.type = SH_QPT_UD});
	sh_hca(&p.m->dev, 0)->port[0].pkey[0] = 0x7fff;
	tpair_recv(&p, 0, 200);
	wr = tpair_wr(&p, MLX4_OPCODE_SEND, 100);
	wr.qkey = 0x80000000u | 5;
	tqp_send(&p.a, &wr);
	texpect(&p.bcq[1], MLX4_CQE_RECV_SEND, false, 0);
	tpair_close(&p);
}

/* ---- from QP 1, which the daemon sends ---- */

static uint8_t mad[SH_GSI_SIZE];
static struct sh_seg mad_at = {(uintptr_t)mad, sizeof(mad)};

/* b's QP gets it, from a's HCA or from the switch. */
static struct sh_packet from_qp1(struct tpair *p, bool of_switch)
{
	tqp_ctx(&p->b)->qkey = SH_GSI_QKEY;
	tfill(mad, sizeof(mad), 7);
	return (struct sh_packet){.op = SH_PKT_SEND,
				  .service = SH_SVC_UD,
				  .flags = SH_PKT_FIRST | SH_PKT_LAST,
				  .npackets = 1,
				  .mtu = 4096,
				  .src_hca = of_switch,
				  .src_port = !of_switch,
				  .slid = of_switch ? SH_SWITCH_LID : tlid(p->m, 0),
				  .dlid = tlid(p->m, 1),
				  .srcqp = SH_GSI_QPN,
				  .dqpn = p->b.qpn,
				  .qkey = SH_GSI_QKEY,
				  .pkey = 0xffff,
				  .payload = {.nseg = 1, .seg = &mad_at, .len = sizeof(mad)}};
}

/* Faults meet what QP 1 sends, also that of the switch. */
static void test_qp1_faults(void **state)
{
	(void)state;
	for (int of_switch = 0; of_switch < 2; of_switch++) {
		const struct sh_counters *c;
		struct sh_packet d;
		struct tpair p;

		tpair_open(&p, &(struct tpair_opts){.type = SH_QPT_UD});
		c = &sh_hca(&p.m->dev, 1)->counters;
		d = from_qp1(&p, of_switch);
		tpair_recv(&p, 0, 400);
		fault(p.m, SH_FAULT_DROP, 1);
		assert_int_equal(sh_gsi_send(&p.m->daemon, &d, false), 0);
		assert_int_equal(c->drops_fault, 1);
		fault(p.m, SH_FAULT_CORRUPT, 1);
		assert_int_equal(sh_gsi_send(&p.m->daemon, &d, false), 0);
		assert_int_equal(c->drops_icrc, 1);
		assert_int_equal(sh_hca(&p.m->dev, 1)->traffic[0].rcv_errors, 1);
		texpect_none(&p.bcq[1]);
		assert_int_equal(sh_gsi_send(&p.m->daemon, &d, false), 0);
		texpect(&p.bcq[1], MLX4_CQE_RECV_SEND, false, 0);
		assert_memory_equal(p.bmem + 40, mad, sizeof(mad));
		tpair_close(&p);
	}
}

struct held {
	struct mock *m;
	struct sh_lock *lock;
};

static struct held later;
static pid_t holder;

static void hold(void *arg)
{
	struct held *h = arg;

	sh_lock(&h->m->dev, h->lock);
}

/* After the daemon has found all locks free. */
static void hold_now(struct mock *m)
{
	m->on_reach = NULL;
	holder = mock_child(hold, &later);
}

/*
 * Another process is in device code with one of the receiver's locks and does not leave. The daemon
 * waits for none of them: it sends the datagram later, also if the lock is taken only when the
 * datagram is on its way. Nothing is lost, and no receive is half completed.
 */
static void test_qp1_waits_for_none(void **state)
{
	(void)state;
	for (int which = 0; which < 10; which++) {
		struct sh_packet d;
		struct tpair p;
		struct sh_hca *hca;

		tpair_open(&p, &(struct tpair_opts){.type = SH_QPT_UD, .srq = which % 5 < 2});
		hca = sh_hca(&p.m->dev, 1);
		later = (struct held){p.m, which % 5 == 0   ? &sh_srq_of(hca, p.srq.srqn)->lock
					   : which % 5 < 3  ? &sh_cq_of(hca, p.bcq[1].cqn)->lock
					   : which % 5 == 3 ? &tqp_ctx(&p.b)->rlock
							    : &tqp_ctx(&p.b)->lock};
		d = from_qp1(&p, which >= 5);
		tpair_recv(&p, 0, 400);
		alarm(60);
		p.m->on_reach = hold_now;
		for (int i = 0; i < 2; i++)
			assert_int_equal(sh_gsi_send(&p.m->daemon, &d, false), -EINPROGRESS);
		assert_null(p.m->on_reach);
		assert_int_equal(hca->counters.drops_memory, 0);
		alarm(0);
		texpect_none(&p.bcq[1]);
		mock_kill(holder);
		assert_int_equal(sh_gsi_send(&p.m->daemon, &d, false), 0);
		texpect(&p.bcq[1], MLX4_CQE_RECV_SEND, false, 0);
		assert_memory_equal(p.bmem + 40, mad, sizeof(mad));
		/*
		 * However often it was tried, the ports count it once; the switch's is none of an
		 * HCA.
		 */
		assert_int_equal(hca->traffic[0].rcv_packets, 1);
		assert_int_equal(tqp_ctx(&p.b)->long_rcv_data, sizeof(mad));
		assert_int_equal(sh_hca(&p.m->dev, 0)->traffic[0].xmit_packets, which < 5);
		tpair_close(&p);
	}
}

/*
 * The receiving process exchanges pages of its memory: what the daemon copied there meanwhile would
 * be lost, although the receive completes. The daemon does not wait either: it sends the datagram
 * later. What it does copy, it has announced.
 */
static void test_qp1_and_exchange(void **state)
{
	(void)state;
	for (int of_switch = 0; of_switch < 2; of_switch++) {
		struct sh_packet d, none;
		struct sh_hca *hca;
		struct tpair p;

		tpair_open(&p, &(struct tpair_opts){.type = SH_QPT_UD});
		hca = sh_hca(&p.m->dev, 1);
		d = from_qp1(&p, of_switch);
		tpair_recv(&p, 0, 400);
		p.m->exchanges = true;
		assert_int_equal(sh_gsi_send(&p.m->daemon, &d, false), -EINPROGRESS);
		sh_packet_init(&none);
		sh_respond_ud(&p.m->daemon, hca, tqp_ctx(&p.b), 1, &d, &none);
		assert_int_equal(none.syndrome, SH_BUSY);
		assert_int_equal(hca->counters.drops_memory, 0);
		texpect_none(&p.bcq[1]);
		p.m->exchanges = false;
		p.m->unannounced = 0;
		assert_int_equal(sh_gsi_send(&p.m->daemon, &d, false), 0);
		texpect(&p.bcq[1], MLX4_CQE_RECV_SEND, false, 0);
		assert_memory_equal(p.bmem + 40, mad, sizeof(mad));
		assert_int_equal(p.m->unannounced, 0);
		assert_int_equal(p.m->reaches, 0);
		tpair_close(&p);
	}
}

/* To a group: its table is one more lock. */
static void test_qp1_group(void **state)
{
	static const uint8_t gid[16] = {0xff, 0x12, 1};
	struct sh_packet d;
	struct tpair p;
	struct held h;
	pid_t child;

	(void)state;
	tpair_open(&p, &(struct tpair_opts){.type = SH_QPT_UD});
	assert_int_equal(sh_mcast_attach(&p.m->daemon, 1, gid, p.b.qpn), 0);
	tpair_recv(&p, 0, 400);
	d = from_qp1(&p, false);
	d.dlid = 0xc005;
	d.dqpn = MLX4_MULTICAST_QPN;
	d.flags |= SH_PKT_GRH;
	memcpy(d.grh.dgid, gid, 16);
	h = (struct held){p.m, &sh_hca(&p.m->dev, 1)->mcg_lock};
	child = mock_child(hold, &h);
	alarm(60);
	assert_int_equal(sh_gsi_send(&p.m->daemon, &d, false), 0);
	alarm(0);
	assert_int_equal(sh_hca(&p.m->dev, 0)->counters.drops_mcast, 1);
	mock_kill(child);
	assert_int_equal(sh_gsi_send(&p.m->daemon, &d, false), 0);
	texpect(&p.bcq[1], MLX4_CQE_RECV_SEND, false, 0);
	tpair_close(&p);
}

/*
 * A receive that is too short fails with LOC_LEN. A datagram that is too long, or a foreign address
 * handle, fails at the sender, whose QP moves to SQE.
 */
static void test_ud_errors(void **state)
{
	for (int how = 0; how < 4; how++) {
		struct tpair p;
		struct twr wr;
		struct sh_qp_attr attr = {.qp_state = SH_QPS_RTS, .cur_qp_state = SH_QPS_SQE};

		(void)state;
		tpair_open(&p, &(struct tpair_opts){.type = SH_QPT_UD});
		tpair_recv(&p, 0, how ? 8000 : 139);
		tpair_recv(&p, 0, 8000);
		wr = tpair_wr(&p, MLX4_OPCODE_SEND, how == 1 ? 4097 : 100);
		if (how == 0) {
			tqp_send(&p.a, &wr);
			texpect(&p.acq[0], MLX4_OPCODE_SEND, true, 0);
			texpect_error(&p.bcq[1], MLX4_SYNDROME_LOC_LEN, false, 0);
			texpect_error(&p.bcq[1], MLX4_SYNDROME_WR_FLUSH, false, 1);
			tpair_close(&p);
			continue;
		}
		if (how == 2)
			wr.av_pd = 99;
		if (how == 3)
			wr.av_port = 2;
		tqp_post(&p.a, &wr);
		tqp_post(&p.a, &wr);
		tqp_ring(&p.a);
		texpect_error(&p.acq[0], how == 1 ? MLX4_SYNDROME_LOC_LEN : MLX4_SYNDROME_LOC_QP_OP,
			      true, 0);
		texpect_error(&p.acq[0], MLX4_SYNDROME_WR_FLUSH, true, 1);
		assert_int_equal(tqp_state(&p.a), SH_QPS_SQE);
		tqp_send(&p.a, &wr);
		texpect_error(&p.acq[0], MLX4_SYNDROME_WR_FLUSH, true, 2);
		/* The QP moves back to RTS and sends again. */
		assert_int_equal(tqp_modify(&p.a, &attr, SH_QPA_STATE | SH_QPA_CUR_STATE), 0);
		wr = tpair_wr(&p, MLX4_OPCODE_SEND, 100);
		tqp_send(&p.a, &wr);
		texpect(&p.acq[0], MLX4_OPCODE_SEND, true, 3);
		texpect(&p.bcq[1], MLX4_CQE_RECV_SEND, false, 0);
		tpair_close(&p);
	}
}

/* ---- multicast ---- */

static void test_multicast(void **state)
{
	struct tpair p;
	struct twr wr;
	struct mlx4_cqe cqe;
	uint8_t gid[16] = {0xff, 0x12, [15] = 1}, other[16] = {0xff, 0x12, [15] = 2};
	uint8_t unicast[16] = {0xfe, 0x80};

	(void)state;
	tpair_open(&p, &(struct tpair_opts){.type = SH_QPT_UD});
	assert_int_equal(sh_mcast_attach(&p.m->daemon, 0, unicast, p.a.qpn), -EINVAL);
	assert_int_equal(sh_mcast_detach(&p.m->daemon, 0, gid, p.a.qpn), -EINVAL);
	for (int twice = 0; twice < 2; twice++) {
		assert_int_equal(sh_mcast_attach(&p.m->daemon, 0, gid, p.a.qpn), 0);
		assert_int_equal(sh_mcast_attach(&p.m->daemon, 1, gid, p.b.qpn), 0);
	}
	for (int i = 0; i < 3; i++) {
		tpair_recv(&p, 0, 200);
		tqp_recv(&p.a, &(struct tsge){p.amem + 8192, 200, p.akey}, 1);
	}
	tfill(p.amem, 100, 1);
	wr = tpair_wr(&p, MLX4_OPCODE_SEND, 100);
	wr.dqpn = 0xffffff;
	wr.dlid = 0xc001;
	wr.grh = true;
	memcpy(wr.dgid, gid, 16);
	tqp_send(&p.a, &wr);
	texpect(&p.acq[0], MLX4_OPCODE_SEND, true, 0);
	assert_true(tcq_poll(&p.acq[1], &cqe)); /* its own loopback */
	assert_int_equal(be32toh((uint32_t)cqe.g_mlpath_rqpn), 0x80000000u | p.a.qpn);
	assert_true(tcq_poll(&p.bcq[1], &cqe));
	assert_int_equal(be32toh((uint32_t)cqe.g_mlpath_rqpn), 0x80000000u | p.a.qpn);
	assert_memory_equal(p.bmem + 40, p.amem, 100);
	assert_memory_equal(p.bmem + 24, gid, 16);
	assert_memory_equal(p.amem + 8192 + 40, p.amem, 100);
	/* Each QP gets it once, though it is attached twice. */
	texpect_none(&p.acq[1]);
	texpect_none(&p.bcq[1]);
	/* No QP is in this group, and none has this Q_Key. */
	memcpy(wr.dgid, other, 16);
	tqp_send(&p.a, &wr);
	memcpy(wr.dgid, gid, 16);
	wr.qkey++;
	tqp_send(&p.a, &wr);
	wr.qkey--;
	texpect_none(&p.acq[1]);
	texpect_none(&p.bcq[1]);
	assert_int_equal(sh_mcast_detach(&p.m->daemon, 1, gid, p.b.qpn), 0);
	assert_int_equal(sh_mcast_detach(&p.m->daemon, 1, gid, p.b.qpn), -EINVAL);
	tqp_send(&p.a, &wr);
	texpect(&p.acq[1], MLX4_CQE_RECV_SEND, false, 1);
	texpect_none(&p.bcq[1]);
	tpair_close(&p);
}

static void test_multicast_limits(void **state)
{
	struct mock *m = mock_new(NULL);
	uint8_t gid[16] = {0xff};

	(void)state;
	for (uint32_t i = 0; i < SH_MCG_QPS; i++)
		assert_int_equal(sh_mcast_attach(&m->daemon, 0, gid, 100 + i), 0);
	assert_int_equal(sh_mcast_attach(&m->daemon, 0, gid, 999), -ENOMEM);
	assert_int_equal(sh_mcast_attach(&m->daemon, 0, gid, 100), 0);
	assert_int_equal(sh_mcast_detach(&m->daemon, 0, gid, 130), 0);
	assert_int_equal(sh_mcast_attach(&m->daemon, 0, gid, 999), 0);
	/* Groups come and go. The table fills, and groups are still found. */
	for (uint32_t i = 1; i < SH_MAX_MCG; i++) {
		gid[14] = i >> 8;
		gid[15] = i & 0xff;
		assert_int_equal(sh_mcast_attach(&m->daemon, 0, gid, i), 0);
	}
	gid[1] = 1;
	assert_int_equal(sh_mcast_attach(&m->daemon, 0, gid, 1), -ENOMEM);
	gid[1] = 0;
	for (uint32_t i = 1; i < SH_MAX_MCG; i++) {
		gid[14] = i >> 8;
		gid[15] = i & 0xff;
		assert_int_equal(sh_mcast_detach(&m->daemon, 0, gid, i), 0);
		assert_int_equal(sh_mcast_detach(&m->daemon, 0, gid, i), -EINVAL);
	}
	gid[1] = 1;
	assert_int_equal(sh_mcast_attach(&m->daemon, 0, gid, 1), 0);
	mock_free(m);
}

/* ---- UC ---- */

static void test_uc(void **state)
{
	static const uint32_t sizes[] = {0, 1, TMTU, TMTU + 1, 10 * TMTU + 3, 200000};

	(void)state;
	for (int how = 0; how < 2; how++) {
		struct tpair p;
		uint16_t n = 0, r = 0;

		tpair_open(&p,
			   &(struct tpair_opts){.type = SH_QPT_UC, .srq = how, .psn = 0xfffff0});
		for (unsigned int i = 0; i < 6; i++) {
			static const uint8_t ops[] = {MLX4_OPCODE_SEND, MLX4_OPCODE_SEND_IMM,
						      MLX4_OPCODE_RDMA_WRITE,
						      MLX4_OPCODE_RDMA_WRITE_IMM};

			for (unsigned int o = 0; o < 4; o++) {
				struct twr wr = tpair_wr(&p, ops[o], sizes[i]);
				struct mlx4_cqe cqe;

				tfill(p.amem, sizes[i], i * 4 + o);
				memset(p.bmem, 0, 300000);
				wr.imm = 5;
				if (o != 2)
					tpair_recv(&p, 0, sizes[i]);
				tqp_send(&p.a, &wr);
				texpect(&p.acq[0], ops[o], true, n++);
				assert_memory_equal(p.bmem, p.amem, sizes[i]);
				if (o == 2)
					continue;
				assert_true(tcq_poll(&p.bcq[1], &cqe));
				assert_int_equal(be32toh((uint32_t)cqe.byte_cnt), sizes[i]);
				assert_int_equal(be16toh((uint16_t)cqe.wqe_index), r++);
			}
		}
		texpect_none(&p.bcq[1]);
		tpair_close(&p);
	}
}

/*
 * A message that misses a packet is dropped, and its receive serves the next one. A receive from an
 * SRQ completes with an error instead.
 */
static void test_uc_loss(void **state)
{
	(void)state;
	for (int srq = 0; srq < 2; srq++) {
		struct tpair p;
		struct twr wr;

		tpair_open(&p, &(struct tpair_opts){.type = SH_QPT_UC, .srq = srq});
		tpair_recv(&p, 0, 10000);
		tpair_recv(&p, 10000, 10000);
		tfill(p.amem, 10000, 4);
		/* faults stay active, so packets travel singly */
		p.m->inst->faults.rule[SH_FAULT_DUPLICATE].rate = 1;
		fault(p.m, SH_FAULT_CORRUPT, 1);
		wr = tpair_wr(&p, MLX4_OPCODE_SEND, 10000);
		tqp_send(&p.a, &wr); /* its first packet is lost */
		texpect(&p.acq[0], MLX4_OPCODE_SEND, true, 0);
		texpect_none(&p.bcq[1]);
		tqp_send(&p.a, &wr);
		texpect(&p.bcq[1], MLX4_CQE_RECV_SEND, false, 0);
		assert_memory_equal(p.bmem, p.amem, 10000);
		/* Now the second packet of a message is lost. */
		p.m->inst->faults.active = 0;
		p.m->inst->faults.rule[SH_FAULT_DUPLICATE].rate = 0;
		tpair_recv(&p, 20000, 10000);
		{
			struct sh_packet pkt, resp;
			struct sh_seg seg = {(uintptr_t)p.amem, TMTU}, out[SH_MAX_SEGS];

			sh_packet_init(&pkt);
			pkt.op = SH_PKT_SEND;
			pkt.service = SH_SVC_UC;
			pkt.flags = SH_PKT_FIRST;
			pkt.slid = tlid(p.m, 0);
			pkt.dlid = tlid(p.m, 1);
			pkt.pkey = 0xffff;
			pkt.src_port = 1;
			pkt.dqpn = p.b.qpn;
			pkt.psn = tqp_ctx(&p.b)->e_psn;
			pkt.npackets = 1;
			pkt.mtu = TMTU;
			pkt.payload = (struct sh_payload){
				.ctx = p.a.ctx, .nseg = 1, .seg = &seg, .len = TMTU};
			sh_deliver(&p.m->dev, &pkt, &resp, out);
			pkt.psn += 2;
			pkt.flags = SH_PKT_LAST;
			sh_deliver(&p.m->dev, &pkt, &resp, out);
		}
		if (srq)
			texpect_error(&p.bcq[1], MLX4_SYNDROME_REM_ABORT, false, 1);
		texpect_none(&p.bcq[1]);
		tqp_ctx(&p.a)->next_psn = tqp_ctx(&p.a)->una_psn;
		tqp_send(&p.a, &wr);
		texpect(&p.bcq[1], MLX4_CQE_RECV_SEND, false, srq ? 2 : 1);
		assert_memory_equal(p.bmem + (srq ? 20000 : 10000), p.amem, 10000);
		tpair_close(&p);
	}
}

/* The receiver reports no errors either. */
static void test_uc_refused(void **state)
{
	(void)state;
	for (int how = 0; how < 4; how++) {
		struct tpair p;
		struct twr wr;

		tpair_open(&p, &(struct tpair_opts){.type = SH_QPT_UC});
		tpair_recv(&p, 0, 100);
		wr = tpair_wr(&p, how == 3 ? MLX4_OPCODE_SEND : MLX4_OPCODE_RDMA_WRITE, 101);
		if (how == 0)
			wr.rkey++;
		if (how == 1)
			wr.raddr += TMEM;
		if (how == 2)
			tqp_ctx(&p.b)->access = 0;
		tfill(p.amem, 101, 1);
		tqp_send(&p.a, &wr);
		texpect(&p.acq[0], wr.opcode, true, 0);
		texpect_none(&p.bcq[1]);
		assert_int_equal(p.bmem[0], 0);
		assert_int_equal(tqp_state(&p.b), SH_QPS_RTS);
		for (uint32_t t = 0; t < 20; t++)
			assert_int_equal(tasync(p.m, p.b.ctx, t), 0);
		wr = tpair_wr(&p, MLX4_OPCODE_SEND, 100);
		tqp_send(&p.a, &wr);
		texpect(&p.bcq[1], MLX4_CQE_RECV_SEND, false, 0);
		assert_memory_equal(p.bmem, p.amem, 100);
		tpair_close(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ud),
		cmocka_unit_test(test_ud_split),
		cmocka_unit_test(test_ud_drops),
		cmocka_unit_test(test_ud_limited_member),
		cmocka_unit_test(test_ud_errors),
		cmocka_unit_test(test_qp1_faults),
		cmocka_unit_test(test_qp1_waits_for_none),
		cmocka_unit_test(test_qp1_and_exchange),
		cmocka_unit_test(test_qp1_group),
		cmocka_unit_test(test_multicast),
		cmocka_unit_test(test_multicast_limits),
		cmocka_unit_test(test_uc),
		cmocka_unit_test(test_uc_loss),
		cmocka_unit_test(test_uc_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
