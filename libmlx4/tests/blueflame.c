// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: for no kind of QP does a post wait for the BlueFlame register. While another thread
 * holds the register, the provider rings the plain doorbell. The device then reads the WQE in
 * memory, where the index and the QP's number must not stand: BlueFlame alone wants them there.
 */
#include "kinds.h"
#include "mlx4.h"

static struct dev_cq cq;

/*
 * Requests that the provider writes to the register: the first by its short way, the others by the
 * general one. UD and UC have no READ, so they leave the last one out: the provider would ring the
 * doorbell for it, and the device would refuse it.
 */
enum way { SHORT, TWO_ENTRIES, SOLICITED_READ, WAYS };

static enum way way_at(uint32_t index, enum kind kind)
{
	int no_read = kind_info[kind].type == IBV_QPT_UC || kind_info[kind].type == IBV_QPT_UD;

	return index % (no_read ? (int)SOLICITED_READ : WAYS);
}

static void post(struct lane *l, enum way way)
{
	struct ibv_sge list[2] = {{(uintptr_t) "0123456789abcdef", 8, 0},
				  {(uintptr_t) "0123456789abcdef", 8, 0}};
	struct ibv_send_wr wr = {.opcode = way == SOLICITED_READ ? IBV_WR_RDMA_READ : IBV_WR_SEND,
				 .sg_list = list,
				 .num_sge = way == TWO_ENTRIES ? 2 : 1,
				 .send_flags = way == SOLICITED_READ
						       ? IBV_SEND_SOLICITED
						       : IBV_SEND_INLINE | IBV_SEND_FENCE},
			   *bad;

	memset(fk.uar, 0, 8192);
	if (kind_info[l->kind].type == IBV_QPT_UD)
		wr.wr.ud.ah = lane_ah();
	assert_int_equal(ibv_post_send(l->qp.qp, &wr, &bad), 0);
}

static void check_memory(const struct lane *l, enum way way, uint32_t index)
{
	const uint8_t *wqe = dev_sq_slot(&l->qp, index);

	assert_int_equal(be32_at(wqe, 0), (way == SOLICITED_READ ? 0x10 : 0x0a) |
						  (index & l->qp.sq_slots ? 1u << 31 : 0));
	/* VLAN tag, and the bits that ask the device to insert it */
	assert_int_equal(be32_at(wqe, 4) >> 8, 0);
	assert_int_equal(wqe[7] >> 6, way != SOLICITED_READ);
}

static void register_taken(enum kind kind)
{
	struct mlx4_context *mctx = to_mlx4_ctx(ctx);
	uint32_t index, rounds;
	struct lane l;
	enum way way;
	uint32_t qpn;
	int taken;

	dev_create_cq(&cq, ctx, 15);
	/* If this number were written there, each of its bits would ask for a VLAN. */
	fk.next_qpn = 0x3ffff;
	lane_open(&l, kind, &cq, &cq);
	qpn = l.qp.qp->qp_num;
	/* In the first round every slot gets a WQE that goes through the register. */
	rounds = 2 * l.qp.sq_slots + 3;
	for (index = 0; index < rounds; ++index) {
		taken = index >= l.qp.sq_slots && !mctx->single_threaded;
		way = way_at(index, kind);
		if (taken)
			mlx4_trylock(&mctx->blueflame_lock);
		post(&l, way);
		if (taken) {
			mlx4_unlock(&mctx->blueflame_lock);
			assert_int_equal(be32_at(fk.uar, 0x14), qpn << 8);
			assert_int_equal(be32_at(fk.bf, 0), 0);
			assert_int_equal(be32_at(fk.bf, 256), 0);
			check_memory(&l, way, index);
		}
		lane_cqe(&l, 1, 0x0a, 0);
		lane_expect(&l, SENT, 0);
	}
	lane_close(&l);
	assert_int_equal(ibv_destroy_cq(cq.cq), 0);
}

/*
 * A register that is free is used and released again. The WQE there has the index and the QP's
 * number.
 */
static void register_free(enum kind kind)
{
	struct mlx4_context *mctx = to_mlx4_ctx(ctx);
	struct lane l;
	enum way way;
	uint32_t qpn, index, offset = mctx->blueflame_offset;

	dev_create_cq(&cq, ctx, 15);
	fk.next_qpn = 0x3ffff;
	lane_open(&l, kind, &cq, &cq);
	qpn = l.qp.qp->qp_num;
	for (index = 0; index < 20; ++index) {
		way = way_at(index, kind);
		post(&l, way);
		assert_int_equal(mctx->blueflame_lock.free, 1);
		assert_int_equal(be32_at(fk.uar, 0x14), 0);
		assert_int_equal(be32_at(fk.bf + offset, 0) >> 8 & 0xffff, index);
		assert_int_equal(be32_at(fk.bf + offset, 4) >> 8, qpn);
		offset ^= 256;
		lane_cqe(&l, 1, 0x0a, 0);
		lane_expect(&l, SENT, 0);
	}
	lane_close(&l);
	assert_int_equal(ibv_destroy_cq(cq.cq), 0);
}

int main(void)
{
	static const struct kind_case cases[] = {
		{.name = "register_taken", .run = register_taken},
		{.name = "register_free", .run = register_free},
	};

	return run_kinds("blueflame", cases, sizeof(cases) / sizeof(cases[0]));
}
