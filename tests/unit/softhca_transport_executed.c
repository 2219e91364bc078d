// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: the express responder and the ordinary one execute the same requests in the same
 * way: the data, the CQE, the answer and what the QP counts are the same.
 */
#include "softhca_rules_rig.h"

static void executed(uint32_t type, bool with_srq, uint8_t op, uint8_t flags, unsigned int entries,
		     bool quick)
{
	bool notify = op == SH_PKT_SEND || (op == SH_PKT_WRITE && flags & SH_PKT_IMM),
	     xrc = type == SH_QPT_XRC;
	const uint32_t head = type == SH_QPT_UD ? SH_GRH_LEN : 0;
	struct mlx4_cqe cqe;
	const uint8_t *at;

	begin(type, with_srq, op);
	at = op == SH_PKT_SEND ? p.bmem + 4096 + head : p.bmem;
	for (unsigned int i = 0; i < 2; i++) {
		struct tsge sge[] = {{p.bmem + 4096, 4096, p.bkey},
				     {p.bmem + 4096 + 60, 4096, p.bkey}};

		if (entries == 2)
			sge[0].len = 60;
		if (with_srq || xrc)
			tsrq_post(&p.srq, sge, entries);
		else
			tqp_recv(&p.b, sge, entries);
	}
	req.flags |= flags;
	req.imm_be = htobe32(IMM);
	req.sl = 3;
	if (flags & SH_PKT_GRH)
		memset(&req.grh, 0xd7, sizeof(req.grh));
	/* UC takes any PSN, and UD has none. */
	if (lossy())
		req.psn += 1000;
	assert_true(deliver(quick));
	if (type != SH_QPT_UD)
		assert_int_equal(qp()->e_psn, req.psn + 1);
	assert_int_equal(qp()->msn, !lossy());
	assert_int_equal(qp()->cur_op, SH_RECV_NONE);
	assert_int_equal(qp()->messages_received, 1);
	if (lossy()) {
		assert_int_equal(resp.op, SH_PKT_NONE);
	} else {
		assert_int_equal(resp.op, op == SH_PKT_READ ? SH_PKT_READ_RESP : SH_PKT_ACK);
		assert_int_equal(resp.syndrome, SH_AETH_ACK);
		assert_int_equal(resp.psn, TPSN);
		assert_int_equal(resp.msn, 1);
		assert_int_equal(resp.npackets, 1);
	}
	if (op == SH_PKT_READ) {
		assert_int_equal(resp.payload.len, LEN);
		assert_int_equal(resp.payload.seg[0].addr, (uintptr_t)p.bmem);
		assert_int_equal(resp.payload.ctx, p.b.ctx);
	} else {
		assert_memory_equal(at, p.amem, LEN);
	}
	if (head && flags & SH_PKT_GRH) {
		assert_int_equal(p.bmem[4096] >> 4, 6);
		assert_int_equal(p.bmem[4096 + 5], 12 + 8 + (flags & SH_PKT_IMM ? 4 : 0) + LEN + 4);
		assert_memory_equal(p.bmem + 4096 + 8, req.grh.sgid, 32);
	}
	assert_int_equal(cq()->producer, notify);
	if (with_srq || xrc) {
		assert_int_equal(srq()->head, notify);
		assert_int_equal(srq()->consumed, notify);
	} else {
		assert_int_equal(qp()->rq_consumed, notify);
	}
	assert_int_equal(tcq_poll(&p.bcq[1], &cqe), notify);
	if (notify) {
		assert_int_equal(cqe.owner_sr_opcode & 0x5f,
				 op == SH_PKT_WRITE   ? MLX4_CQE_RECV_RDMA_WRITE_IMM
				 : flags & SH_PKT_IMM ? MLX4_CQE_RECV_SEND_IMM
						      : MLX4_CQE_RECV_SEND);
		assert_int_equal(be32toh((uint32_t)cqe.vlan_my_qpn) & 0xffffff, p.b.qpn);
		assert_int_equal(be32toh((uint32_t)cqe.immed_rss_invalid),
				 flags & SH_PKT_IMM ? IMM : 0);
		assert_int_equal(be32toh((uint32_t)cqe.g_mlpath_rqpn),
				 head  ? p.a.qpn | (flags & SH_PKT_GRH ? 0x80000000u : 0)
				 : xrc ? SRQN
				       : 0);
		assert_int_equal(be16toh((uint16_t)cqe.sl_vid), head ? 3 << 12 : 0);
		assert_int_equal(be16toh((uint16_t)cqe.rlid), head ? tlid(p.m, 0) : 0);
		assert_int_equal(be32toh((uint32_t)cqe.byte_cnt), head + LEN);
		assert_int_equal(be16toh((uint16_t)cqe.wqe_index), 0);
	}
	assert_int_equal(cq()->solicited_producer, notify && flags & SH_PKT_SE ? 1 : 0);
	end();
}

static void execute_all(bool quick)
{
	for (unsigned int i = 0; i < 3; i++) {
		uint32_t type = i == 2 ? SH_QPT_XRC : SH_QPT_RC;

		for (unsigned int entries = 1; entries < 3; entries++) {
			executed(type, i, SH_PKT_SEND, 0, entries, quick);
			executed(type, i, SH_PKT_SEND, SH_PKT_SE, entries, quick);
			executed(type, i, SH_PKT_SEND, SH_PKT_IMM | SH_PKT_SE, entries, quick);
		}
		executed(type, i, SH_PKT_WRITE, 0, 1, quick);
		executed(type, i, SH_PKT_WRITE, SH_PKT_IMM, 1, quick);
		executed(type, i, SH_PKT_WRITE, SH_PKT_IMM | SH_PKT_SE, 1, quick);
		executed(type, i, SH_PKT_READ, 0, 1, quick);
	}
	for (unsigned int i = 0; i < 4; i++) {
		uint32_t type = i < 2 ? SH_QPT_UC : SH_QPT_UD;

		for (unsigned int entries = 1; entries < 3; entries++) {
			executed(type, i & 1, SH_PKT_SEND, 0, entries, quick);
			executed(type, i & 1, SH_PKT_SEND, SH_PKT_SE, entries, quick);
			executed(type, i & 1, SH_PKT_SEND, SH_PKT_IMM | SH_PKT_SE, entries, quick);
		}
		if (type == SH_QPT_UD) {
			executed(type, i & 1, SH_PKT_SEND, SH_PKT_GRH, 1, quick);
			executed(type, i & 1, SH_PKT_SEND, SH_PKT_GRH | SH_PKT_IMM, 2, quick);
			continue;
		}
		executed(type, i & 1, SH_PKT_WRITE, 0, 1, quick);
		executed(type, i & 1, SH_PKT_WRITE, SH_PKT_IMM, 1, quick);
	}
}

static void test_quick_executes(void **state)
{
	(void)state;
	execute_all(true);
}

static void test_ordinary_executes(void **state)
{
	(void)state;
	execute_all(false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_quick_executes),
		cmocka_unit_test(test_ordinary_executes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
