// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: the responder of the reliable transports, packet by packet: sequence, order of
 * opcodes, lengths, duplicates, and the answers to all of these.
 */
#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#include "softhca/device/memory/exec.h"
#include "softhca/device/queues/wqe.h"
#include "softhca/device/transport/fabric.h"
#include "softhca_pair.h"

enum { REQ_ERR = 2 };

static struct tpair p;
static struct sh_packet resp;
static struct sh_seg resp_seg[SH_MAX_SEGS];

static struct sh_packet request(uint8_t op, uint8_t flags, uint32_t psn, uint32_t npackets,
				uint32_t len)
{
	static struct sh_seg seg;
	struct sh_packet pkt;

	sh_packet_init(&pkt);
	seg = (struct sh_seg){(uintptr_t)p.amem, len};
	pkt.op = op;
	pkt.service = SH_SVC_RC;
	pkt.flags = flags;
	pkt.slid = tlid(p.m, 0);
	pkt.dlid = tlid(p.m, 1);
	pkt.pkey = 0xffff;
	pkt.src_port = 1;
	pkt.srcqp = p.a.qpn;
	pkt.dqpn = p.b.qpn;
	pkt.psn = psn & 0xffffff;
	pkt.npackets = npackets;
	pkt.mtu = TMTU;
	pkt.va = (uintptr_t)p.bmem;
	pkt.rkey = p.bkey;
	pkt.dmalen = len;
	if (op == SH_PKT_SEND || op == SH_PKT_WRITE)
		pkt.payload =
			(struct sh_payload){.ctx = p.a.ctx, .nseg = 1, .seg = &seg, .len = len};
	return pkt;
}

static uint8_t deliver(struct sh_packet pkt)
{
	assert_true(sh_enter(&p.m->dev));
	sh_deliver(&p.m->dev, &pkt, &resp, resp_seg);
	sh_leave(&p.m->dev);
	return resp.op;
}

#define F SH_PKT_FIRST
#define L (SH_PKT_LAST | SH_PKT_ACKREQ)

static void open_pair(void)
{
	tpair_open(&p, &(struct tpair_opts){.type = SH_QPT_RC, .psn = 0xfffffe});
	tfill(p.amem, TMEM, 1);
	for (int i = 0; i < 4; i++)
		tqp_recv(&p.b, &(struct tsge){p.bmem + 65536 * i, 65536, p.bkey}, 1);
}

static void nak(uint8_t syndrome, uint32_t psn)
{
	assert_int_equal(resp.op, SH_PKT_ACK);
	assert_int_equal(resp.syndrome, syndrome);
	assert_int_equal(resp.psn, psn & 0xffffff);
}

#define P 0xfffffeu

static void test_sequence(void **state)
{
	(void)state;
	open_pair();
	/*
	 * A packet that is ahead gets one NAK. Then there is no answer until the expected packet
	 * comes.
	 */
	deliver(request(SH_PKT_SEND, F | L, P + 1, 1, 10));
	nak(SH_AETH_NAK_SEQ, P);
	assert_int_equal(deliver(request(SH_PKT_SEND, F | L, P + 2, 1, 10)), SH_PKT_NONE);
	assert_int_equal(deliver(request(SH_PKT_READ, F | L, P + 3, 1, 10)), SH_PKT_NONE);
	deliver(request(SH_PKT_SEND, F | L, P, 1, 10));
	nak(SH_AETH_ACK, P);
	assert_int_equal(resp.msn, 1);
	deliver(request(SH_PKT_SEND, F | L, P + 2, 1, 10));
	nak(SH_AETH_NAK_SEQ, P + 1);
	/*
	 * A packet that is behind is acknowledged again, up to the last packet known, and is not
	 * executed.
	 */
	deliver(request(SH_PKT_SEND, F | L, P, 1, 10));
	nak(SH_AETH_ACK, P);
	texpect(&p.bcq[1], MLX4_CQE_RECV_SEND, false, 0);
	texpect_none(&p.bcq[1]);
	assert_int_equal(sh_hca(&p.m->dev, 1)->counters.duplicates, 1);
	tpair_close(&p);
}

/*
 * An acknowledgement never names the PSN of an answer that the requester may be waiting for:
 * Linux's Soft-RoCE takes it for the answer, and completes a READ without data.
 */
static void test_duplicates_before_reads(void **state)
{
	(void)state;
	open_pair();
	deliver(request(SH_PKT_WRITE, F | L, P, 1, 10));
	assert_int_equal(deliver(request(SH_PKT_READ, F | L, P + 1, 1, 2 * TMTU)),
			 SH_PKT_READ_RESP);
	deliver(request(SH_PKT_WRITE, F | L, P, 1, 10));
	nak(SH_AETH_ACK, P);
	deliver(request(SH_PKT_SEND, F | L, P + 3, 1, 10));
	deliver(request(SH_PKT_SEND, F | L, P + 4, 1, 10));
	deliver(request(SH_PKT_SEND, F | L, P + 3, 1, 10));
	nak(SH_AETH_ACK, P + 4);
	assert_int_equal(deliver(request(SH_PKT_FA, F | L, P + 5, 1, 8)), SH_PKT_ATOMIC_RESP);
	assert_int_equal(deliver(request(SH_PKT_READ, F | L, P + 6, 1, 8)), SH_PKT_READ_RESP);
	deliver(request(SH_PKT_SEND, F | L, P + 3, 1, 10));
	nak(SH_AETH_ACK, P + 4);
	deliver(request(SH_PKT_WRITE, F | L, P, 1, 10));
	nak(SH_AETH_ACK, P);
	deliver(request(SH_PKT_WRITE, F | L, P + 7, 1, 10));
	deliver(request(SH_PKT_WRITE, F | L, P + 7, 1, 10));
	nak(SH_AETH_ACK, P + 7);
	/*
	 * More of them than results are kept: the atomic operation is behind the oldest one that is
	 * known.
	 */
	for (uint32_t i = 0; i < SH_QP_ATOMICS; i++)
		assert_int_equal(deliver(request(SH_PKT_READ, F | L, P + 8 + i, 1, 8)),
				 SH_PKT_READ_RESP);
	deliver(request(SH_PKT_WRITE, F | L, P + 7, 1, 10));
	nak(SH_AETH_ACK, P + 7);
	tpair_close(&p);
}

/* The beginning of a run was executed before. */
static void test_overlap(void **state)
{
	struct sh_packet q;

	(void)state;
	open_pair();
	assert_int_equal(deliver(request(SH_PKT_SEND, F, P, 2, 2 * TMTU)), SH_PKT_NONE);
	deliver(request(SH_PKT_SEND, F | L, P, 5, 4 * TMTU + 100));
	nak(SH_AETH_ACK, P + 4);
	texpect(&p.bcq[1], MLX4_CQE_RECV_SEND, false, 0);
	assert_memory_equal(p.bmem, p.amem, 4 * TMTU + 100);
	assert_int_equal(p.bmem[4 * TMTU + 100], 0);
	/* The same for a WRITE. */
	memset(p.bmem, 0, 65536);
	q = request(SH_PKT_WRITE, F, P + 5, 3, 3 * TMTU);
	q.dmalen = 4 * TMTU;
	assert_int_equal(deliver(q), SH_PKT_NONE);
	deliver(request(SH_PKT_WRITE, F | L, P + 5, 4, 4 * TMTU));
	nak(SH_AETH_ACK, P + 8);
	assert_memory_equal(p.bmem, p.amem, 4 * TMTU);
	tpair_close(&p);
}

/*
 * Each order of first, middle and last, and each length, that no requester sends: the responder
 * sends a NAK, raises an event and moves the QP to ERR.
 */
static void test_malformed(void **state)
{
	(void)state;
	for (int how = 0; how < 15; how++) {
		struct sh_packet q;

		open_pair();
		switch (how) {
		case 0: /* a middle without a first */
			deliver(request(SH_PKT_SEND, 0, P, 1, TMTU));
			break;
		case 1: /* a last without a first */
			deliver(request(SH_PKT_WRITE, L, P, 1, 10));
			break;
		case 2: /* two firsts */
			deliver(request(SH_PKT_SEND, F, P, 1, TMTU));
			deliver(request(SH_PKT_SEND, F, P + 1, 1, TMTU));
			break;
		case 3: /* a SEND that ends as a WRITE */
			deliver(request(SH_PKT_SEND, F, P, 1, TMTU));
			deliver(request(SH_PKT_WRITE, L, P + 1, 1, 10));
			break;
		case 4: /* a READ in the middle of a SEND */
			deliver(request(SH_PKT_SEND, F, P, 1, TMTU));
			deliver(request(SH_PKT_READ, F | L, P + 1, 1, 10));
			break;
		case 5:
			deliver(request(SH_PKT_SEND, F, P, 1, TMTU));
			deliver(request(SH_PKT_CS, F | L, P + 1, 1, 10));
			break;
		case 6: /* short first */
			deliver(request(SH_PKT_SEND, F, P, 1, TMTU - 1));
			break;
		case 7: /* long only */
			deliver(request(SH_PKT_SEND, F | L, P, 1, TMTU + 1));
			break;
		case 8: /* empty last */
			deliver(request(SH_PKT_SEND, F, P, 1, TMTU));
			deliver(request(SH_PKT_SEND, L, P + 1, 1, 0));
			break;
		case 9: /* less than the RETH says */
			q = request(SH_PKT_WRITE, F | L, P, 1, 100);
			q.dmalen = 101;
			deliver(q);
			break;
		case 10: /* more than the RETH says */
			q = request(SH_PKT_WRITE, F | L, P, 1, 100);
			q.dmalen = 99;
			deliver(q);
			break;
		case 11: /* the packets reach the RETH's length before the last one */
			q = request(SH_PKT_WRITE, F, P, 1, TMTU);
			deliver(q);
			break;
		case 12: /* a run with too few bytes for its packets */
			deliver(request(SH_PKT_SEND, F | L, P, 3, 2 * TMTU));
			break;
		case 13:
			q = request(SH_PKT_READ, F | L, P, 1, 0);
			q.dmalen = 0x80000001u;
			deliver(q);
			break;
		case 14: /* an operation that does not exist */
			deliver(request(SH_PKT_READ_RESP, F | L, P, 1, 0));
			break;
		}
		assert_int_equal(resp.op, SH_PKT_ACK);
		assert_int_equal(resp.syndrome, SH_AETH_NAK_REQ);
		assert_int_equal(tasync(p.m, p.b.ctx, REQ_ERR), 1);
		assert_int_equal(tqp_state(&p.b), SH_QPS_ERR);
		/* The receive in use completes with the reason, and the others are flushed. */
		texpect_error(&p.bcq[1],
			      tqp_ctx(&p.b)->msn == 0 && ((how >= 2 && how <= 5) || how == 8)
				      ? MLX4_SYNDROME_REM_INVAL_REQ
				      : MLX4_SYNDROME_WR_FLUSH,
			      false, 0);
		for (int i = 1; i < 4; i++)
			texpect_error(&p.bcq[1], MLX4_SYNDROME_WR_FLUSH, false, i);
		texpect_none(&p.bcq[1]);
		/* From now on the responder answers nothing. */
		assert_int_equal(deliver(request(SH_PKT_SEND, F | L, P, 1, 10)), SH_PKT_NONE);
		tpair_close(&p);
	}
}

/*
 * Atomics that are sent again return the old results and change nothing. READs are executed again,
 * also in parts.
 */
static void test_replay(void **state)
{
	uint64_t *target;

	(void)state;
	open_pair();
	target = (uint64_t *)p.bmem;
	*target = 100;
	for (uint32_t i = 0; i < 40; i++) {
		struct sh_packet q = request(SH_PKT_FA, F | L, P + i, 1, 8);

		q.swap_add = 1;
		assert_int_equal(deliver(q), SH_PKT_ATOMIC_RESP);
		assert_int_equal(resp.swap_add, 100 + i);
	}
	assert_int_equal(*target, 140);
	for (uint32_t i = 0; i < 40; i++) {
		struct sh_packet q = request(SH_PKT_FA, F | L, P + i, 1, 8);
		uint8_t op = deliver(q);

		if (i < 24) {
			assert_int_equal(op, SH_PKT_NONE);
			continue;
		}
		assert_int_equal(op, SH_PKT_ATOMIC_RESP);
		assert_int_equal(resp.psn, (P + i) & 0xffffff);
		assert_int_equal(resp.swap_add, 100 + i);
	}
	assert_int_equal(*target, 140);

	assert_int_equal(deliver(request(SH_PKT_READ, F | L, P + 40, 1, 5 * TMTU)),
			 SH_PKT_READ_RESP);
	assert_int_equal(resp.npackets, 5);
	{
		struct sh_packet q = request(SH_PKT_READ, F | L, P + 42, 1, 3 * TMTU);

		q.va += 2 * TMTU;
		assert_int_equal(deliver(q), SH_PKT_READ_RESP);
		assert_int_equal(resp.psn, (P + 42) & 0xffffff);
		assert_int_equal(resp.npackets, 3);
		assert_int_equal(resp.payload.seg[0].addr, (uintptr_t)p.bmem + 2 * TMTU);
		/*
		 * A READ that is sent again must not go beyond the first one, and must have a valid
		 * key.
		 */
		q.dmalen++;
		assert_int_equal(deliver(q), SH_PKT_NONE);
		q.dmalen--;
		q.rkey++;
		assert_int_equal(deliver(q), SH_PKT_NONE);
	}
	assert_int_equal(tqp_state(&p.b), SH_QPS_RTS);
	assert_int_equal(tqp_ctx(&p.b)->e_psn, (P + 45) & 0xffffff);
	tpair_close(&p);
}

/* After an RNR NAK the responder does not blame the sender for the packets that follow. */
static void test_rnr_then_more(void **state)
{
	(void)state;
	tpair_open(&p, &(struct tpair_opts){.type = SH_QPT_RC, .psn = P});
	deliver(request(SH_PKT_SEND, F, P, 1, TMTU));
	nak(SH_AETH_RNR | 12, P);
	assert_int_equal(deliver(request(SH_PKT_SEND, L, P + 1, 1, 10)), SH_PKT_NONE);
	tqp_recv(&p.b, &(struct tsge){p.bmem, 4096, p.bkey}, 1);
	assert_int_equal(deliver(request(SH_PKT_SEND, F, P, 1, TMTU)), SH_PKT_NONE);
	deliver(request(SH_PKT_SEND, L, P + 1, 1, 10));
	nak(SH_AETH_ACK, P + 1);
	texpect(&p.bcq[1], MLX4_CQE_RECV_SEND, false, 0);
	tpair_close(&p);
}

/* The responder drops packets that are not for this QP, or not from its peer. */
static void test_not_for_this_qp(void **state)
{
	(void)state;
	for (int how = 0; how < 8; how++) {
		struct sh_packet q;

		open_pair();
		q = request(SH_PKT_SEND, F | L, P, 1, 10);
		switch (how) {
		case 0:
			q.service = SH_SVC_XRC;
			break;
		case 1:
			q.service = SH_SVC_UC;
			break;
		case 2:
			q.slid = tlid(p.m, 1);
			break;
		case 3:
			q.slid = 777;
			break;
		case 4:
			q.pkey = 0x8001;
			break;
		case 5:
			q.dqpn ^= 1u << 20;
			break;
		case 6:
			sh_hca(&p.m->dev, 0)->port[0].state = 1;
			break;
		case 7:
			q.dlid = 0;
			break;
		}
		assert_int_equal(deliver(q), SH_PKT_NONE);
		texpect_none(&p.bcq[1]);
		assert_int_equal(tqp_ctx(&p.b)->e_psn, P);
		tpair_close(&p);
	}
}

/*
 * A thread that was thrown, or has died, has listed the last of as many as there is room for, and
 * has not executed it. The requester may still ask for the answer to the first one.
 */
static void test_read_listed(void **state)
{
	const uint32_t last = (P + SH_QP_ATOMICS - 1) & 0xffffff;
	struct sh_qp *qp;
	uint64_t *target;

	(void)state;
	open_pair();
	qp = tqp_ctx(&p.b);
	target = (uint64_t *)p.bmem;
	*target = 100;
	for (unsigned int again = 0; again < 2; again++) {
		struct sh_packet q = request(SH_PKT_FA, F | L, P, 1, 8);

		q.swap_add = 1;
		assert_int_equal(deliver(q), SH_PKT_ATOMIC_RESP);
		assert_int_equal(resp.swap_add, 100);
		for (uint32_t i = 1; i < SH_QP_ATOMICS && !again; i++) {
			if (i == SH_QP_ATOMICS - 1) {
				qp->atomic_psn[qp->atomic_head++ % SH_QP_ATOMICS] =
					(last + 1) | 0x80000000u;
			}
			assert_int_equal(deliver(request(SH_PKT_READ, F | L, P + i, 1, 8)),
					 SH_PKT_READ_RESP);
		}
	}
	assert_int_equal(*target, 101);
	assert_int_equal(qp->atomic_head, SH_QP_ATOMICS);
	tpair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sequence),
		cmocka_unit_test(test_duplicates_before_reads),
		cmocka_unit_test(test_overlap),
		cmocka_unit_test(test_malformed),
		cmocka_unit_test(test_replay),
		cmocka_unit_test(test_read_listed),
		cmocka_unit_test(test_rnr_then_more),
		cmocka_unit_test(test_not_for_this_qp),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
