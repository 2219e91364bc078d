// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: what post_send writes to memory and to the device's registers, byte by byte: every
 * opcode for every QP type, ownership over several rounds, stamps, headroom, doorbells, and every
 * refusal.
 */
#include <errno.h>

#include "fake-kernel.h"

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct dev_cq cq;
static struct ibv_xrc_domain *domain;
static struct ibv_ah *ah;
static uint8_t av[32]; /* the address vector that a WQE should have */

static void create(struct dev_qp *qp, enum ibv_qp_type type, uint32_t wr, uint32_t sge, int sig_all)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq.cq,
		.recv_cq = cq.cq,
		.cap = {.max_send_wr = wr,
			.max_recv_wr = 1,
			.max_send_sge = sge,
			.max_recv_sge = 1},
		.qp_type = type,
		.sq_sig_all = sig_all,
	};

	if (type == IBV_QPT_XRC)
		attr.xrc_domain = domain;
	dev_create_qp(qp, pd, &attr);
	dev_init_qp(qp);
	memset(fk.uar, 0, 4096);
	memset(fk.bf, 0, 4096);
}

static int rang(const struct dev_qp *qp)
{
	uint32_t db = be32_at(fk.uar, 0x14);

	memset(fk.uar, 0, 4096);
	return db == qp->qp->qp_num << 8;
}

/* Completes all that is posted. The application sees one completion. */
static void retire(const struct dev_qp *qp, uint32_t last_index)
{
	struct ibv_wc wc;

	dev_write_cqe(&cq, &(struct cqe_fields){.qpn = qp->qp->qp_num,
						.wqe_index = last_index,
						.sr_opcode = 0x4a});
	assert_int_equal(ibv_poll_cq(cq.cq, 1, &wc), 1);
}

/*
 * The WQE as the device expects it, written from the interface's description. Returns its size in
 * 16-byte units; bytes 4 to 6 are not compared.
 */
static uint32_t expected_wqe(uint8_t *wqe, enum ibv_qp_type type, const struct ibv_send_wr *wr,
			     uint32_t index, uint32_t slots, int sig_all)
{
	static const uint8_t code[] = {0x08, 0x09, 0x0a, 0x0b, 0x10, 0x11, 0x12};
	int imm = wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM || wr->opcode == IBV_WR_SEND_WITH_IMM;
	int atomic = wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
		     wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
	int send = wr->opcode == IBV_WR_SEND || wr->opcode == IBV_WR_SEND_WITH_IMM;
	uint32_t flags = 0, at = 16;
	int i;

	memset(wqe, 0, 1024);
	put_be32(wqe, 0, code[wr->opcode] | (index & slots ? 0x80000000 : 0));
	if (wr->send_flags & IBV_SEND_SIGNALED || sig_all)
		flags |= 3 << 2;
	if (wr->send_flags & IBV_SEND_SOLICITED)
		flags |= 1 << 1;
	if (type == IBV_QPT_XRC)
		flags |= wr->xrc_remote_srq_num << 8;
	put_be32(wqe, 8, flags);
	if (imm)
		memcpy(wqe + 12, &wr->imm_data, 4);

	if (type == IBV_QPT_UD) {
		memcpy(wqe + 16, av, 32);
		put_be32(wqe, 48, wr->wr.ud.remote_qpn);
		put_be32(wqe, 52, wr->wr.ud.remote_qkey);
		at = 64;
	} else if (atomic && type != IBV_QPT_UC) {
		put_be64(wqe, 16, wr->wr.atomic.remote_addr);
		put_be32(wqe, 24, wr->wr.atomic.rkey);
		if (wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
			put_be64(wqe, 32, wr->wr.atomic.swap);
			put_be64(wqe, 40, wr->wr.atomic.compare_add);
		} else {
			put_be64(wqe, 32, wr->wr.atomic.compare_add);
		}
		at = 48;
	} else if (!send && !atomic && !(type == IBV_QPT_UC && wr->opcode == IBV_WR_RDMA_READ)) {
		put_be64(wqe, 16, wr->wr.rdma.remote_addr);
		put_be32(wqe, 24, wr->wr.rdma.rkey);
		at = 32;
	}

	for (i = 0; i < wr->num_sge; ++i, at += 16) {
		put_be32(wqe, at, wr->sg_list[i].length ? wr->sg_list[i].length : 0x80000000);
		put_be32(wqe, at + 4, wr->sg_list[i].lkey);
		put_be64(wqe, at + 8, wr->sg_list[i].addr);
	}
	wqe[7] = at / 16 | (wr->send_flags & IBV_SEND_FENCE ? 0x40 : 0);
	return at / 16;
}

static void check_wqe(const struct dev_qp *qp, enum ibv_qp_type type, const struct ibv_send_wr *wr,
		      uint32_t index, int sig_all)
{
	const uint8_t *slot = dev_sq_slot(qp, index);
	uint8_t wqe[1024];
	uint32_t ds;

	ds = expected_wqe(wqe, type, wr, index, qp->sq_slots, sig_all);
	/* The copy for BlueFlame has more in the first word; only the device looks at it. */
	assert_int_equal(be32_at(slot, 0) & 0xff0000ff, be32_at(wqe, 0));
	assert_memory_equal(slot + 7, wqe + 7, ds * 16 - 7);
}

static struct ibv_send_wr request(enum ibv_qp_type type, enum ibv_wr_opcode opcode, int flags,
				  struct ibv_sge *list, int n)
{
	struct ibv_send_wr wr = {
		.wr_id = 0xabcd000000000000 + opcode,
		.sg_list = list,
		.num_sge = n,
		.opcode = opcode,
		.send_flags = flags,
		.imm_data = 0x44332211,
		.xrc_remote_srq_num = 0x1a2b3c,
	};

	if (type == IBV_QPT_UD) {
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = 0x123456;
		wr.wr.ud.remote_qkey = 0x11111111;
	} else if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = 0x0102030405060708;
		wr.wr.atomic.compare_add = 0x1112131415161718;
		wr.wr.atomic.swap = 0x2122232425262728;
		wr.wr.atomic.rkey = 0x31323334;
	} else {
		wr.wr.rdma.remote_addr = 0x4142434445464748;
		wr.wr.rdma.rkey = 0x51525354;
	}
	return wr;
}

/* Every opcode, QP type, set of plain flags and number of entries, alone and in a list. */
static void golden(void **state)
{
	static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_XRC};
	struct ibv_sge list[4] = {
		{0x1000200030004000, 8, 0x71727374},
		{0x5000600070008000, 0x40000000, 0x81828384},
		{0x9000a000b000c000, 0, 0x91929394},
		{0xd000e000f000f100, 0x7fffffff, 0xa1a2a3a4},
	};
	struct ibv_send_wr wr, pair[2], *bad;
	unsigned int t, flags, n, sig_all;
	uint32_t index;
	struct dev_qp qp;
	int op;

	(void)state;
	for (t = 0; t < 4; ++t) {
		for (sig_all = 0; sig_all < 2; ++sig_all) {
			create(&qp, types[t], 8, 4, sig_all);
			index = 0;
			for (op = 0; op <= IBV_WR_ATOMIC_FETCH_AND_ADD; ++op) {
				for (flags = 0; flags < 8; ++flags) {
					for (n = 0; n <= 4; ++n) {
						wr = request(types[t], op, flags, list, n);
						assert_int_equal(ibv_post_send(qp.qp, &wr, &bad),
								 0);
						check_wqe(&qp, types[t], &wr, index, sig_all);
						retire(&qp, index++);

						pair[0] = request(types[t], op, flags, list, n);
						pair[1] = request(types[t], IBV_WR_SEND, 0,
								  list + 1, 1);
						pair[0].next = &pair[1];
						assert_int_equal(ibv_post_send(qp.qp, pair, &bad),
								 0);
						check_wqe(&qp, types[t], &pair[0], index, sig_all);
						check_wqe(&qp, types[t], &pair[1], index + 1,
							  sig_all);
						retire(&qp, index + 1);
						index += 2;
						assert_true(rang(&qp));
					}
				}
			}
			assert_int_equal(ibv_destroy_qp(qp.qp), 0);
		}
	}
}

/* QP type of the running test */
static enum ibv_qp_type type;

/* Such a QP has READ, too. */
static int has_atomics(void)
{
	return type == IBV_QPT_RC || type == IBV_QPT_XRC;
}

/*
 * From the first post to the third round, the owner bit is valid exactly for the WQEs that are
 * posted, and the headroom is stamped.
 */
static void ownership(uint32_t sges)
{
	struct ibv_sge list[6] = {{1, 1, 1}, {2, 2, 2}, {3, 3, 3}, {4, 4, 4}, {5, 5, 5}, {6, 6, 6}};
	struct ibv_send_wr wr, *bad;
	uint32_t index, i, chunk, spare;
	struct dev_qp qp;
	uint8_t *slot;

	create(&qp, type, 10, sges, 0);
	spare = (2048 >> qp.sq_shift) + 1;
	for (i = 0; i < qp.sq_slots; ++i) {
		slot = dev_sq_slot(&qp, i);
		assert_int_equal(be32_at(slot, 0), 0x80000000);
		assert_int_equal(slot[7], 1 << (qp.sq_shift - 4));
		for (chunk = 64; chunk < 1u << qp.sq_shift; chunk += 64)
			assert_int_equal(be32_at(slot, chunk), 0xffffffff);
	}

	for (index = 0; index < 3 * qp.sq_slots; ++index) {
		wr = request(type, IBV_WR_SEND, IBV_SEND_SIGNALED, list, 1 + index % sges);
		assert_int_equal(ibv_post_send(qp.qp, &wr, &bad), 0);
		assert_true(rang(&qp));
		assert_int_equal(be32_at(dev_sq_slot(&qp, index), 0) >> 31,
				 !!(index & qp.sq_slots));
		for (i = 1; i <= spare; ++i) {
			slot = dev_sq_slot(&qp, index + i);
			/* This WQE is not posted yet: its owner bit is that of the round before. */
			assert_int_not_equal(be32_at(slot, 0) >> 31, !!((index + i) & qp.sq_slots));
			for (chunk = 64; chunk < (slot[7] & 0x3fu) * 16; chunk += 64)
				assert_int_equal(be32_at(slot, chunk), 0xffffffff);
		}
		retire(&qp, index);
	}
	assert_int_equal(ibv_destroy_qp(qp.qp), 0);
}

static void ownership_64(void **state)
{
	(void)state;
	ownership(2);
}

static void ownership_128(void **state)
{
	(void)state;
	ownership(6);
}

/* After a list, all slots of the headroom are stamped, as after single requests. */
static void stamps_in_lists(void **state)
{
	struct ibv_sge list[6] = {{1, 1, 1}, {2, 2, 2}, {3, 3, 3}, {4, 4, 4}, {5, 5, 5}, {6, 6, 6}};
	struct ibv_send_wr wr[5], *bad;
	uint32_t round, index = 0, spare, i;
	struct dev_qp qp;

	(void)state;
	create(&qp, type, 10, 6, 0);
	spare = (2048 >> qp.sq_shift) + 1;
	for (round = 0; round < 60; ++round) {
		for (i = 0; i < 5; ++i) {
			/*
			 * Long and short requests, alone and in turn: each way of posting follows
			 * each other.
			 */
			wr[i] = request(type, IBV_WR_SEND, 0, list, round >> i % 3 & 1 ? 1 : 6);
			wr[i].next = i < 4 ? &wr[i + 1] : NULL;
		}
		assert_int_equal(ibv_post_send(qp.qp, wr, &bad), 0);
		for (i = 0; i < 5; ++i)
			check_wqe(&qp, type, &wr[i], index + i, 0);
		index += 5;
		for (i = 0; i < spare; ++i)
			assert_int_equal(be32_at(dev_sq_slot(&qp, index + i), 64), 0xffffffff);
		retire(&qp, index - 1);
	}
	assert_int_equal(ibv_destroy_qp(qp.qp), 0);
}

/*
 * post_send accepts as many requests as were granted and then fails with ENOMEM. A completion makes
 * room for all requests that it retires.
 */
static void overflow(void **state)
{
	struct ibv_sge sge = {1, 1, 1};
	struct ibv_send_wr wr[4], *bad;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	uint32_t i, granted, before;
	struct dev_qp qp;
	struct ibv_wc wc;

	(void)state;
	create(&qp, type, 5, 1, 0);
	assert_int_equal(ibv_query_qp(qp.qp, &attr, IBV_QP_CAP, &init), 0);
	granted = init.cap.max_send_wr;

	wr[0] = request(type, IBV_WR_SEND, 0, &sge, 1);
	for (i = 0; i < granted; ++i) {
		wr[0].wr_id = i;
		wr[0].send_flags = i == 3 || i == granted - 1 ? IBV_SEND_SIGNALED : 0;
		assert_int_equal(ibv_post_send(qp.qp, wr, &bad), 0);
	}
	assert_true(rang(&qp));
	before = be32_at(dev_sq_slot(&qp, granted), 0);
	bad = NULL;
	assert_int_equal(ibv_post_send(qp.qp, wr, &bad), ENOMEM);
	assert_ptr_equal(bad, wr);
	assert_false(rang(&qp));
	assert_int_equal(be32_at(dev_sq_slot(&qp, granted), 0), before);

	/* WQE 3 completes, which retires the unsignalled ones before it. */
	dev_write_cqe(
		&cq, &(struct cqe_fields){.qpn = qp.qp->qp_num, .wqe_index = 3, .sr_opcode = 0x4a});
	assert_int_equal(ibv_poll_cq(cq.cq, 1, &wc), 1);
	assert_int_equal(wc.wr_id, 3);

	/* Four requests fit; a fifth does not. */
	for (i = 0; i < 4; ++i) {
		wr[i] = request(type, IBV_WR_SEND, 0, &sge, 1);
		wr[i].next = i < 3 ? &wr[i + 1] : &wr[0];
	}
	wr[3].next = NULL;
	assert_int_equal(ibv_post_send(qp.qp, wr, &bad), 0);
	assert_true(rang(&qp));
	assert_int_equal(ibv_post_send(qp.qp, wr + 3, &bad), ENOMEM);

	dev_write_cqe(
		&cq, &(struct cqe_fields){.qpn = qp.qp->qp_num, .wqe_index = 5, .sr_opcode = 0x4a});
	assert_int_equal(ibv_poll_cq(cq.cq, 1, &wc), 1);
	assert_int_equal(wc.wr_id, 5);
	bad = NULL;
	assert_int_equal(ibv_post_send(qp.qp, wr, &bad), ENOMEM);
	assert_ptr_equal(bad, &wr[2]);
	assert_true(rang(&qp));
	assert_int_equal(ibv_destroy_qp(qp.qp), 0);
}

/*
 * A refused request is bad_wr, and its slot stays invalid and stamped. The doorbell rings for the
 * requests before it.
 */
static void refusals(void **state)
{
	struct ibv_sge list[16] = {{1, 1, 1}, {2, 2, 2}};
	struct ibv_send_wr wr[3], *bad;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct dev_qp qp;
	int i, most;

	(void)state;
	create(&qp, type, 8, 6, 0);
	assert_int_equal(ibv_query_qp(qp.qp, &attr, IBV_QP_CAP, &init), 0);
	most = init.cap.max_send_sge;
	for (i = 0; i < 6; ++i) {
		wr[0] = request(type, IBV_WR_SEND, 0, list, 1);
		wr[1] = request(type, IBV_WR_SEND, 0, list, 1);
		wr[2] = request(type, IBV_WR_SEND, 0, list, 1);
		wr[0].next = &wr[1];
		wr[1].next = &wr[2];
		switch (i) {
		case 0:
			wr[1].num_sge = most + 1;
			break;
		case 1:
			wr[1].num_sge = -1;
			break;
		case 2:
			wr[1].opcode = 7;
			break;
		case 3:
			wr[1].opcode = -1;
			break;
		case 4:
			/*
			 * The operands of an atomic take the place of one entry. UC and UD have no
			 * atomics.
			 */
			wr[1] = request(type, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, list,
					has_atomics() ? most : most + 1);
			break;
		case 5:
			list[1].length = 0x80000001;
			list[5] = (struct ibv_sge){5, 5, 5};
			wr[1].num_sge = 6;
			break;
		}
		bad = NULL;
		assert_int_equal(ibv_post_send(qp.qp, wr, &bad), EINVAL);
		assert_ptr_equal(bad, &wr[1]);
		assert_true(rang(&qp));
		assert_int_equal(be32_at(dev_sq_slot(&qp, i), 0) >> 31, 0);
		assert_int_equal(be32_at(dev_sq_slot(&qp, i + 1), 0) >> 31, 1);
		assert_int_equal(be32_at(dev_sq_slot(&qp, i + 1), 64), 0xffffffff);

		/* A refused request that is alone does not ring the doorbell. */
		wr[1].next = NULL;
		assert_int_equal(ibv_post_send(qp.qp, &wr[1], &bad), EINVAL);
		assert_false(rang(&qp));
	}
	assert_int_equal(ibv_post_send(qp.qp, NULL, &bad), 0);
	assert_false(rang(&qp));

	/* a single entry that is too long */
	wr[0] = request(type, IBV_WR_SEND, 0, list + 1, 1);
	assert_int_equal(ibv_post_send(qp.qp, wr, &bad), EINVAL);
	assert_int_equal(ibv_destroy_qp(qp.qp), 0);
}

/*
 * The provider writes a READ to the register even though it has no inline data. A READ may have
 * entries; they fit into the first 64-byte chunk.
 */
static void read_by_blueflame(void **state)
{
	struct ibv_sge list[2] = {{0x1000, 16, 7}, {0x2000, 16, 7}};
	struct ibv_send_wr wr, *bad;
	struct dev_qp qp;
	uint32_t index;
	uint8_t *slot;

	(void)state;
	create(&qp, type, 4, 6, 0);
	for (index = 0; index < 70; ++index) {
		wr = request(type, IBV_WR_RDMA_READ, IBV_SEND_SIGNALED, list, index % 3);
		assert_int_equal(ibv_post_send(qp.qp, &wr, &bad), 0);
		check_wqe(&qp, type, &wr, index, 0);
		slot = dev_sq_slot(&qp, index);
		assert_int_equal(be32_at(fk.uar, 0x14), 0);
		/* The two buffers alternate. The copy has the index and the QP's number. */
		assert_memory_equal(fk.bf + (index & 1) * 256, slot, 64);
		assert_int_equal(be32_at(fk.bf + (index & 1) * 256, 0) >> 8 & 0xffff, index);
		assert_int_equal(be32_at(fk.bf + (index & 1) * 256, 4) >> 8, qp.qp->qp_num);
		retire(&qp, index);
	}
	assert_int_equal(ibv_destroy_qp(qp.qp), 0);
}

/* The index in a BlueFlame WQE, the owner bit and the index of a completion after 65536 posts. */
static void counter_wraps(void **state)
{
	struct ibv_sge sge = {0x1000, 16, 7};
	struct ibv_send_wr wr, *bad;
	struct dev_qp qp;
	uint32_t index;
	struct ibv_wc wc;

	(void)state;
	create(&qp, type, 4, 1, 0);
	wr = request(type, IBV_WR_SEND, IBV_SEND_SIGNALED, &sge, 1);
	for (index = 0; index < 65540; ++index) {
		wr.wr_id = index;
		assert_int_equal(ibv_post_send(qp.qp, &wr, &bad), 0);
		dev_write_cqe(&cq, &(struct cqe_fields){.qpn = qp.qp->qp_num,
							.wqe_index = index,
							.sr_opcode = 0x4a});
		assert_int_equal(ibv_poll_cq(cq.cq, 1, &wc), 1);
		assert_int_equal(wc.wr_id, index);
		assert_int_equal(be32_at(dev_sq_slot(&qp, index), 0) >> 31,
				 !!(index & qp.sq_slots));
	}
	assert_int_equal(ibv_destroy_qp(qp.qp), 0);
}

/*
 * The type of QP, and whether the application promises to use a single thread: the provider has
 * code of its own for that.
 */
static struct variant {
	enum ibv_qp_type type;
	const char *single_threaded;
} variants[] = {
	{IBV_QPT_RC, "0"}, {IBV_QPT_UC, "0"}, {IBV_QPT_UD, "0"}, {IBV_QPT_XRC, "0"},
	{IBV_QPT_RC, "1"}, {IBV_QPT_UC, "1"}, {IBV_QPT_UD, "1"}, {IBV_QPT_XRC, "1"},
};

static int setup(void **state)
{
	const struct variant *variant = *state;

	struct ibv_ah_attr attr = {
		.grh = {.flow_label = 0x54321,
			.sgid_index = 3,
			.hop_limit = 64,
			.traffic_class = 0x77},
		.dlid = 0x1122,
		.sl = 5,
		.src_path_bits = 6,
		.static_rate = IBV_RATE_10_GBPS,
		.is_global = 1,
		.port_num = 2,
	};
	int i;

	fk_reset();
	type = variant->type;
	setenv("MLX4_SINGLE_THREADED", variant->single_threaded, 1);
	ctx = fk_open();
	if (!ctx)
		return -1;
	pd = ibv_alloc_pd(ctx);
	domain = ibv_open_xrc_domain(ctx, -1, 0);
	dev_create_cq(&cq, ctx, 15);

	for (i = 0; i < 16; ++i)
		attr.grh.dgid.raw[i] = 0x20 + i;
	ah = ibv_create_ah(pd, &attr);
	put_be32(av, 0, 2 << 24 | 0x1234);
	av[5] = 0x80 | 6;
	put_be16(av, 6, 0x1122);
	av[9] = 3;
	av[10] = IBV_RATE_10_GBPS + 5;
	av[11] = 64;
	put_be32(av, 12, 5u << 28 | 0x77 << 20 | 0x54321);
	memcpy(av + 16, attr.grh.dgid.raw, 16);
	return !pd || !domain || !ah;
}

static int teardown(void **state)
{
	(void)state;
	return ibv_destroy_ah(ah) || ibv_destroy_cq(cq.cq) || ibv_close_xrc_domain(domain) ||
	       ibv_dealloc_pd(pd) || ibv_close_device(ctx);
}

int main(void)
{
#define ONE(test, name, n)                                                                         \
	{                                                                                          \
#test "/" name, test, setup, teardown, &variants[n]                                \
	}
#define EVERY(test)                                                                                \
	ONE(test, "RC", 0), ONE(test, "UC", 1), ONE(test, "UD", 2), ONE(test, "XRC", 3),           \
		ONE(test, "RC_single_threaded", 4), ONE(test, "UC_single_threaded", 5),            \
		ONE(test, "UD_single_threaded", 6), ONE(test, "XRC_single_threaded", 7)
/* UC and UD have no READ. */
#define WITH_READ(test)                                                                            \
	ONE(test, "RC", 0), ONE(test, "XRC", 3), ONE(test, "RC_single_threaded", 4),               \
		ONE(test, "XRC_single_threaded", 7)
	const struct CMUnitTest tests[] = {
		/* golden has a loop over the types. */
		ONE(golden, "all", 0),	ONE(golden, "all_single_threaded", 4),
		EVERY(ownership_64),	EVERY(ownership_128),
		EVERY(stamps_in_lists), EVERY(overflow),
		EVERY(refusals),	WITH_READ(read_by_blueflame),
		EVERY(counter_wraps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
