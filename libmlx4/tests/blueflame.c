// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Description: the BlueFlame register is not worth waiting for, for any kind of QP: while another
 * thread holds it the plain doorbell rings, and the WQE in memory, which the device reads then, has
 * neither the index nor the QP's number where the register wants them. */
#include "kinds.h"
#include "mlx4.h"

static struct dev_cq cq;

/* What is better written to the register: the first by the short way, the others by the general
 * one. Datagrams and UC have no READ: what is posted as one rings, and the device refuses it. */
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
	/* VLAN tag, and whether to insert it */
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
	/* A number that would ask for a VLAN in every one of its bits */
	fk.next_qpn = 0x3ffff;
	lane_open(&l, kind, &cq, &cq);
	qpn = l.qp.qp->qp_num;
	/* First every slot gets a WQE for the register. */
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

/* And when it is free it is used, and free again: the WQE there carries both. */
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
