// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: the fields of a UD completion, and of a completion from any receive QP through an
 * XRC SRQ; entries that belong to no object; the consumer index and the arming as the device sees
 * them. poll_kinds.c has what is common to all kinds of QP.
 */
#include "fake-kernel.h"

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct dev_cq cq;
static struct ibv_xrc_domain *domain;
static struct dev_qp rc, ud, on_srq, xrc;
static struct dev_srq srq, xrc_srq;

static struct ibv_wc poll_one(void)
{
	struct ibv_wc wc;

	memset(&wc, 0xee, sizeof(wc));
	assert_int_equal(ibv_poll_cq(cq.cq, 1, &wc), 1);
	return wc;
}

static void create(struct dev_qp *qp, enum ibv_qp_type type, struct ibv_srq *shared)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq.cq,
		.recv_cq = cq.cq,
		.srq = shared,
		.cap = {.max_send_wr = 20, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = type,
	};

	if (type == IBV_QPT_XRC)
		attr.xrc_domain = domain;
	dev_create_qp(qp, pd, &attr);
	dev_init_qp(qp);
}

static void post_sends(struct dev_qp *qp, uint32_t n, uint64_t first_id)
{
	struct ibv_sge sge = {1, 1, 1};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE}, *bad;

	while (n--) {
		wr.wr_id = first_id++;
		assert_int_equal(ibv_post_send(qp->qp, &wr, &bad), 0);
	}
}

static void post_recvs(struct dev_qp *qp, uint32_t n, uint64_t first_id)
{
	struct ibv_sge sge = {1, 1, 1};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	while (n--) {
		wr.wr_id = first_id++;
		assert_int_equal(ibv_post_recv(qp->qp, &wr, &bad), 0);
	}
}

static uint32_t post_srq(struct dev_srq *d, uint64_t id)
{
	struct ibv_sge sge = {1, 1, 1};
	struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1}, *bad;

	assert_int_equal(ibv_post_srq_recv(d->srq, &wr, &bad), 0);
	return dev_take_srq_wqe(d);
}

static uint32_t sent; /* WQEs of rc that have completed so far */

static void datagrams(void **state)
{
	struct ibv_wc wc;
	int grh;

	(void)state;
	for (grh = 0; grh < 2; ++grh) {
		post_recvs(&ud, 1, 400 + grh);
		dev_write_cqe(&cq, &(struct cqe_fields){.qpn = ud.qp->qp_num,
							.dw1 = 0x85,
							.dw2 = 0x55u << 24 | 0xabcdef |
							       (uint32_t)grh << 31,
							.byte_count = 100,
							.sl_vid = 0xb123,
							.slid = 0x4321,
							.sr_opcode = 1});
		wc = poll_one();
		assert_int_equal(wc.wr_id, 400 + grh);
		assert_int_equal(wc.wc_flags, grh ? IBV_WC_GRH : 0);
		assert_int_equal(wc.src_qp, 0xabcdef);
		assert_int_equal(wc.slid, 0x4321);
		assert_int_equal(wc.sl, 0xb);
		assert_int_equal(wc.dlid_path_bits, 0x55);
		assert_int_equal(wc.pkey_index, 5);
	}
}

/* On Ethernet the completion has the priority bits of the VLAN tag instead of an SL. */
static void datagram_on_ethernet(void **state)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 2};
	struct dev_qp qp;
	struct ibv_wc wc;

	(void)state;
	create(&qp, IBV_QPT_UD, NULL);
	fk.link_layer = IBV_LINK_LAYER_ETHERNET;
	assert_int_equal(ibv_modify_qp(qp.qp, &attr, IBV_QP_STATE | IBV_QP_PORT), 0);
	fk.link_layer = IBV_LINK_LAYER_INFINIBAND;
	post_recvs(&qp, 1, 1);
	dev_write_cqe(&cq, &(struct cqe_fields){.qpn = qp.qp->qp_num,
						.sl_vid = 5 << 13 | 0x123,
						.sr_opcode = 1});
	wc = poll_one();
	assert_int_equal(wc.sl, 5);
	assert_int_equal(ibv_destroy_qp(qp.qp), 0);
}

static void xrc_receive(void **state)
{
	struct ibv_wc wc;
	uint32_t i;

	(void)state;
	for (i = 0; i < 20; ++i) {
		dev_write_cqe(&cq, &(struct cqe_fields){.qpn = 0x8000a0 + i,
							.dw1 = 0x0a0b0c0d,
							.dw2 = xrc_srq.srq->xrc_srq_num,
							.byte_count = 17,
							.wqe_index = post_srq(&xrc_srq, 600 + i),
							.sr_opcode = 2});
		wc = poll_one();
		assert_int_equal(wc.wr_id, 600 + i);
		assert_int_equal(wc.opcode, IBV_WC_RECV);
		assert_int_equal(wc.wc_flags, IBV_WC_WITH_IMM);
		assert_int_equal(wc.byte_len, 17);
		assert_int_equal(wc.qp_num, 0x8000a0 + i);
		assert_int_equal(wc.src_qp, xrc_srq.srq->xrc_srq_num);
	}

	/*
	 * A send completion of an XRC QP has bit 23 in its number too, but belongs to the QP, not
	 * to an SRQ.
	 */
	post_sends(&xrc, 1, 650);
	dev_write_cqe(&cq, &(struct cqe_fields){.qpn = xrc.qp->qp_num, .sr_opcode = 0x48});
	wc = poll_one();
	assert_int_equal(wc.wr_id, 650);
	assert_true(wc.qp_num & 1 << 23);
}

/*
 * An entry that belongs to no object is an error of its own: poll_cq reports it once, and first
 * returns the completions that came before it.
 */
static void entries_of_no_object(void **state)
{
	struct cqe_fields none[] = {
		{.qpn = 0x3ffff, .sr_opcode = 0x4a}, /* no such QP */
		{.qpn = 0x3ffff, .sr_opcode = 1},
		{.qpn = 0x8000a0, .dw2 = 0x1234, .sr_opcode = 1},	/* no such SRQ */
		{.qpn = 0x8000a0, .sr_opcode = 1, .wqe_index = 0xffff}, /* no such WQE */
		{.sr_opcode = 1, .wqe_index = 0xffff},
		{.sr_opcode = 0x4a},		   /* low bits of a QP's number, other high bits */
		{.qpn = 0x8000a0, .sr_opcode = 1}, /* the same for an SRQ's number */
		{.sr_opcode = 0x4a},		   /* a QP of another CQ */
		{.qpn = 0x8000a0, .sr_opcode = 1}, /* an SRQ of another CQ */
	};
	struct dev_cq this = cq, other;
	struct dev_srq other_srq;
	struct dev_qp other_qp;
	struct ibv_wc wc[4];
	size_t i;

	(void)state;
	none[3].dw2 = xrc_srq.srq->xrc_srq_num;
	none[4].qpn = on_srq.qp->qp_num;
	none[5].qpn = rc.qp->qp_num + fk.qp_tab_size;
	none[6].dw2 = xrc_srq.srq->xrc_srq_num + fk.qp_tab_size;
	dev_create_cq(&other, ctx, 1);
	dev_create_srq(&other_srq, pd, domain, other.cq, 1, 1);
	cq = other;
	create(&other_qp, IBV_QPT_RC, NULL);
	cq = this;
	none[7].qpn = other_qp.qp->qp_num;
	none[8].dw2 = other_srq.srq->xrc_srq_num;
	for (i = 0; i < sizeof(none) / sizeof(none[0]); ++i) {
		dev_write_cqe(&cq, &none[i]);
		assert_true(ibv_poll_cq(cq.cq, 4, wc) < 0);
		assert_int_equal(be32_at(cq.db, 0), cq.producer & 0xffffff);
		assert_int_equal(ibv_poll_cq(cq.cq, 4, wc), 0);

		post_sends(&rc, 2, 50);
		dev_write_cqe(&cq, &(struct cqe_fields){.qpn = rc.qp->qp_num,
							.wqe_index = sent++,
							.sr_opcode = 0x48});
		dev_write_cqe(&cq, &none[i]);
		dev_write_cqe(&cq, &(struct cqe_fields){.qpn = rc.qp->qp_num,
							.wqe_index = sent++,
							.sr_opcode = 0x48});
		assert_int_equal(ibv_poll_cq(cq.cq, 4, wc), 1);
		assert_int_equal(wc[0].wr_id, 50);
		assert_true(ibv_poll_cq(cq.cq, 4, wc) < 0);
		assert_int_equal(ibv_poll_cq(cq.cq, 4, wc), 1);
		assert_int_equal(wc[0].wr_id, 51);
	}
	assert_int_equal(ibv_destroy_qp(other_qp.qp), 0);
	assert_int_equal(ibv_destroy_srq(other_srq.srq), 0);
	assert_int_equal(ibv_destroy_cq(other.cq), 0);
}

static void arming(void **state)
{
	struct dev_cq d;
	uint32_t sn, ci, cqn;
	struct ibv_wc wc;
	int solicited;

	(void)state;
	cqn = fk.next_cqn;
	dev_create_cq(&d, ctx, 3);
	for (sn = 1; sn < 10; ++sn) {
		for (solicited = 0; solicited < 2; ++solicited) {
			memset(fk.uar, 0, 4096);
			ci = d.producer;
			assert_int_equal(ibv_req_notify_cq(d.cq, solicited), 0);
			assert_int_equal(be32_at(d.db, 4),
					 (sn & 3) << 28 | (solicited ? 1 : 2) << 24 | ci);
			assert_int_equal(be32_at(fk.uar, 0x20),
					 (sn & 3) << 28 | (solicited ? 1 : 2) << 24 | cqn);
			assert_int_equal(be32_at(fk.uar, 0x24), ci);
		}
		/* The sequence number grows with each event delivered, not with each arming. */
		d.cq->context->ops.cq_event(d.cq);
		post_sends(&rc, 1, 0);
		dev_write_cqe(&d, &(struct cqe_fields){.qpn = 0x3fffe, .sr_opcode = 0x48});
		assert_true(ibv_poll_cq(d.cq, 1, &wc) < 0);
		dev_write_cqe(&cq, &(struct cqe_fields){.qpn = rc.qp->qp_num,
							.wqe_index = sent++,
							.sr_opcode = 0x48});
		poll_one();
	}
	assert_int_equal(ibv_destroy_cq(d.cq), 0);
}

static int open_with(int single_threaded)
{
	fk_reset();
	if (single_threaded)
		setenv("MLX4_SINGLE_THREADED", "1", 1);
	else
		unsetenv("MLX4_SINGLE_THREADED");
	ctx = fk_open();
	if (!ctx)
		return -1;
	pd = ibv_alloc_pd(ctx);
	domain = ibv_open_xrc_domain(ctx, -1, 0);
	dev_create_cq(&cq, ctx, 15);
	dev_create_srq(&srq, pd, NULL, NULL, 7, 1);
	dev_create_srq(&xrc_srq, pd, domain, cq.cq, 7, 1);
	create(&rc, IBV_QPT_RC, NULL);
	create(&ud, IBV_QPT_UD, NULL);
	create(&on_srq, IBV_QPT_RC, srq.srq);
	create(&xrc, IBV_QPT_XRC, NULL);
	sent = 0;
	return !pd || !domain;
}

static int setup(void **state)
{
	(void)state;
	return open_with(0);
}

static int setup_single_threaded(void **state)
{
	(void)state;
	return open_with(1);
}

static int teardown(void **state)
{
	(void)state;
	return ibv_destroy_qp(rc.qp) || ibv_destroy_qp(ud.qp) || ibv_destroy_qp(on_srq.qp) ||
	       ibv_destroy_qp(xrc.qp) || ibv_destroy_srq(srq.srq) || ibv_destroy_srq(xrc_srq.srq) ||
	       ibv_destroy_cq(cq.cq) || ibv_close_xrc_domain(domain) || ibv_dealloc_pd(pd) ||
	       ibv_close_device(ctx);
}

int main(void)
{
#define EACH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
#define EACH_ST(test)                                                                              \
	{                                                                                          \
#test "_single_threaded", test, setup_single_threaded, teardown, NULL              \
	}
	const struct CMUnitTest tests[] = {
		EACH(datagrams),      EACH(datagram_on_ethernet),
		EACH(xrc_receive),    EACH(entries_of_no_object),
		EACH(arming),	      EACH_ST(datagrams),
		EACH_ST(xrc_receive), EACH_ST(entries_of_no_object),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
