// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* See kinds.h. */
#include <stdio.h>

#include "kinds.h"

const struct kind_info kind_info[KINDS] = {
	[KIND_RC] = {"RC", IBV_QPT_RC, OWN_QUEUE},
	[KIND_UC] = {"UC", IBV_QPT_UC, OWN_QUEUE},
	[KIND_UD] = {"UD", IBV_QPT_UD, OWN_QUEUE},
	[KIND_RC_SRQ] = {"RC_on_SRQ", IBV_QPT_RC, PLAIN_SRQ},
	[KIND_UC_SRQ] = {"UC_on_SRQ", IBV_QPT_UC, PLAIN_SRQ},
	[KIND_UD_SRQ] = {"UD_on_SRQ", IBV_QPT_UD, PLAIN_SRQ},
	[KIND_XRC] = {"XRC", IBV_QPT_XRC, XRC_SRQ},
	[KIND_XRC_RCV_QP] = {"XRC_receive_QP", IBV_QPT_XRC, XRC_SRQ},
	[KIND_XRC_MAINLINE] = {"XRC_of_mainline", IBV_QPT_XRC, XRC_SRQ},
};

enum {
	XRC_BIT = 1 << 23,
	IS_SEND = 0x40,
	CODE_RECV = 0x01,
	CODE_SEND = 0x0a,
	CODE_READ = 0x10,
	CODE_ERROR = 0x1e,
	SYNDROME_FLUSH = 0x05,
};

struct ibv_context *ctx;
struct ibv_pd *pd;
struct ibv_xrc_domain *domain;
static struct ibv_ah *ah;

struct ibv_ah *lane_ah(void)
{
	return ah;
}

static void create_qp(struct lane *l)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = l->scq->cq,
		.recv_cq = l->rcq->cq,
		.srq = kind_info[l->kind].from == PLAIN_SRQ ? l->srq->srq : NULL,
		.cap = {.max_send_wr = LANE_SENDS,
			.max_recv_wr = LANE_RECVS,
			.max_send_sge = 2,
			.max_recv_sge = 1,
			.max_inline_data = 16},
		.qp_type = kind_info[l->kind].type,
	};

	if (is_xrc(l->kind))
		attr.xrc_domain = domain;
	fk.xrc_without_bit = l->kind == KIND_XRC_MAINLINE;
	dev_create_qp(&l->qp, pd, &attr);
	fk.xrc_without_bit = 0;
	dev_init_qp(&l->qp);
	l->recv_qpn = l->qp.qp->qp_num;
	if (l->kind == KIND_XRC_RCV_QP || l->kind == KIND_XRC_MAINLINE)
		l->recv_qpn = fk.next_qpn++ | XRC_BIT;
}

void lane_open(struct lane *l, enum kind kind, struct dev_cq *scq, struct dev_cq *rcq)
{
	*l = (struct lane){.kind = kind, .scq = scq, .rcq = rcq};
	if (kind_info[kind].from == PLAIN_SRQ)
		dev_create_srq(&l->own_srq, pd, NULL, NULL, LANE_RECVS, 1);
	else if (kind_info[kind].from == XRC_SRQ)
		dev_create_srq(&l->own_srq, pd, domain, rcq->cq, LANE_RECVS, 1);
	if (kind_info[kind].from != OWN_QUEUE)
		l->srq = &l->own_srq;
	create_qp(l);
}

void lane_open_beside(struct lane *l, const struct lane *other)
{
	*l = (struct lane){
		.kind = other->kind, .scq = other->scq, .rcq = other->rcq, .srq = other->srq};
	create_qp(l);
}

void lane_destroy_qp(struct lane *l)
{
	assert_int_equal(ibv_destroy_qp(l->qp.qp), 0);
	l->qp.qp = NULL;
}

void lane_destroy_srq(struct lane *l)
{
	assert_int_equal(ibv_destroy_srq(l->own_srq.srq), 0);
	l->own_srq.srq = NULL;
}

void lane_reset_qp(struct lane *l)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};

	assert_int_equal(ibv_modify_qp(l->qp.qp, &attr, IBV_QP_STATE), 0);
	dev_init_qp(&l->qp);
	l->sent = 0;
}

void lane_close(struct lane *l)
{
	if (l->qp.qp)
		lane_destroy_qp(l);
	if (l->own_srq.srq)
		lane_destroy_srq(l);
}

void lane_post_send(struct lane *l, uint64_t id)
{
	struct ibv_sge sge = {1, 1, 1};
	struct ibv_send_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
	struct ibv_send_wr *bad;

	if (kind_info[l->kind].type == IBV_QPT_UD)
		wr.wr.ud.ah = ah;
	assert_int_equal(ibv_post_send(l->qp.qp, &wr, &bad), 0);
}

void lane_post_recv(struct lane *l, uint64_t id)
{
	struct ibv_sge sge = {1, 1, 1};
	struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1}, *bad;

	if (l->srq)
		assert_int_equal(ibv_post_srq_recv(l->srq->srq, &wr, &bad), 0);
	else
		assert_int_equal(ibv_post_recv(l->qp.qp, &wr, &bad), 0);
}

void lane_cqe(struct lane *l, int is_send, uint8_t code, uint8_t syndrome)
{
	struct cqe_fields f = {.qpn = is_send ? l->qp.qp->qp_num : l->recv_qpn,
			       .sr_opcode = code | (is_send ? IS_SEND : 0),
			       .syndrome = syndrome,
			       .vendor = 0xf9,
			       .byte_count = LANE_LENGTH};

	if (is_send) {
		f.wqe_index = l->sent++;
	} else {
		f.wqe_index = l->srq ? dev_take_srq_wqe(l->srq) : l->received;
		++l->received;
		if (kind_info[l->kind].type == IBV_QPT_UD)
			f.dw2 = LANE_SOURCE_QPN;
		else
			f.dw1 = LANE_IMM;
		if (is_xrc(l->kind))
			f.dw2 = l->srq->srq->xrc_srq_num;
	}
	dev_write_cqe(is_send ? l->scq : l->rcq, &f);
}

struct dev_cq *lane_cq(const struct lane *l, enum event e)
{
	return is_recv(e) ? l->rcq : l->scq;
}

void lane_do(struct lane *l, enum event e, uint64_t id)
{
	if (is_recv(e))
		lane_post_recv(l, id);
	else
		lane_post_send(l, id);

	switch (e) {
	case SENT:
		lane_cqe(l, 1, CODE_SEND, 0);
		break;
	case RECEIVED:
		lane_cqe(l, 0, CODE_RECV, 0);
		break;
	case READ_DONE:
		lane_cqe(l, 1, CODE_READ, 0);
		break;
	case SEND_FLUSHED:
		lane_cqe(l, 1, CODE_ERROR, SYNDROME_FLUSH);
		break;
	case RECV_FLUSHED:
		lane_cqe(l, 0, CODE_ERROR, SYNDROME_FLUSH);
		break;
	default:
		fail();
	}
}

void lane_check(const struct lane *l, enum event e, uint64_t id, const struct ibv_wc *wc)
{
	uint32_t src_qp = 0;

	assert_int_equal(wc->wr_id, id);
	assert_int_equal(wc->qp_num, is_recv(e) ? l->recv_qpn : l->qp.qp->qp_num);
	if (e == SEND_FLUSHED || e == RECV_FLUSHED) {
		assert_int_equal(wc->status, IBV_WC_WR_FLUSH_ERR);
		return;
	}
	assert_int_equal(wc->status, IBV_WC_SUCCESS);
	assert_int_equal(wc->opcode, e == RECEIVED    ? IBV_WC_RECV
				     : e == READ_DONE ? IBV_WC_RDMA_READ
						      : IBV_WC_SEND);
	assert_int_equal(wc->wc_flags, 0);
	if (e == SENT)
		return;
	assert_int_equal(wc->byte_len, LANE_LENGTH);
	if (e == READ_DONE)
		return;
	if (is_xrc(l->kind))
		src_qp = l->srq->srq->xrc_srq_num;
	else if (kind_info[l->kind].type == IBV_QPT_UD)
		src_qp = LANE_SOURCE_QPN;
	assert_int_equal(wc->src_qp, src_qp);
}

void lane_expect(const struct lane *l, enum event e, uint64_t id)
{
	struct ibv_wc wc;

	memset(&wc, 0xee, sizeof(wc));
	assert_int_equal(ibv_poll_cq(lane_cq(l, e)->cq, 1, &wc), 1);
	lane_check(l, e, id, &wc);
}

void expect_empty(struct dev_cq *d)
{
	struct ibv_wc wc;

	assert_int_equal(ibv_poll_cq(d->cq, 1, &wc), 0);
	assert_int_equal(be32_at(d->db, 0), d->producer & 0xffffff);
}

struct dev_cq *resizing;

/*
 * Resizes as the device does: gives each entry of the new buffer the owner bit of its phase, writes
 * the marker into the old buffer, and uses the new buffer from then on.
 */
void on_resize(int command, uint8_t *cmd, uint8_t *resp)
{
	uint32_t i = resizing->producer++, n, p;
	uint8_t *entry;

	(void)resp;
	if (command != IB_USER_VERBS_CMD_RESIZE_CQ)
		return;
	entry = resizing->buf + (size_t)(i & (resizing->entries - 1)) * resizing->entry_size +
		resizing->entry_size - 32;
	memset(entry, 0, 31);
	entry[31] = 0x16 | (i & resizing->entries ? 0x80 : 0);

	resizing->entries = field_get(cmd, 20, 4) + 1;
	resizing->buf = (uint8_t *)(uintptr_t)field_get(cmd, 24, 8);
	for (n = resizing->producer; n < resizing->producer + resizing->entries; ++n) {
		p = n & (resizing->entries - 1);
		memset(resizing->buf + (size_t)p * resizing->entry_size, 0x4c,
		       resizing->entry_size);
		resizing->buf[(size_t)(p + 1) * resizing->entry_size - 1] =
			n & resizing->entries ? 0x4c : 0xcc;
	}
}

/*
 * The runner
 */

static const struct variant {
	const char *name;
	int single_threaded;
	uint32_t cqe_size;
} variants[] = {{"locked", 0, 32}, {"single_threaded", 1, 32}, {"large_entries", 0, 64}};
enum { VARIANTS = sizeof(variants) / sizeof(variants[0]) };

struct run {
	const struct kind_case *of;
	enum kind kind;
	const struct variant *variant;
	char name[128];
};

static int setup(void **state)
{
	struct ibv_ah_attr attr = {.dlid = 1, .port_num = 1};
	const struct run *run = *state;

	fk_reset();
	fk.driver_abi = 4;
	fk.dev_caps = 1;
	fk.cqe_size = run->variant->cqe_size;
	if (run->variant->single_threaded)
		setenv("MLX4_SINGLE_THREADED", "1", 1);
	else
		unsetenv("MLX4_SINGLE_THREADED");
	ctx = fk_open();
	if (!ctx)
		return -1;
	pd = ibv_alloc_pd(ctx);
	domain = ibv_open_xrc_domain(ctx, -1, 0);
	ah = pd ? ibv_create_ah(pd, &attr) : NULL;
	return !domain || !ah;
}

static int teardown(void **state)
{
	(void)state;
	fk.hook = NULL;
	return ibv_destroy_ah(ah) || ibv_close_xrc_domain(domain) || ibv_dealloc_pd(pd) ||
	       ibv_close_device(ctx);
}

static void run_one(void **state)
{
	const struct run *run = *state;

	run->of->run(run->kind);
}

static const char *reason(const struct kind_case *of, enum kind kind)
{
	unsigned int i;

	for (i = 0; of->left_out[i].why; ++i)
		if (of->left_out[i].kind == kind)
			return of->left_out[i].why;
	return NULL;
}

int run_kinds(const char *group, const struct kind_case *cases, size_t n)
{
	struct CMUnitTest *tests = calloc(n * KINDS * VARIANTS, sizeof(*tests));
	struct run *runs = calloc(n * KINDS * VARIANTS, sizeof(*runs)), *run = runs;
	const char *why;
	size_t i, count = 0;
	int failed, kind;
	unsigned int v;

	if (!tests || !runs)
		return 1;
	for (i = 0; i < n; ++i) {
		for (kind = 0; kind < KINDS; ++kind) {
			why = reason(&cases[i], kind);
			if (why) {
				printf("# %s is not for %s: %s\n", cases[i].name,
				       kind_info[kind].name, why);
				continue;
			}
			for (v = 0; v < VARIANTS; ++v, ++run) {
				run->of = &cases[i];
				run->kind = kind;
				run->variant = &variants[v];
				snprintf(run->name, sizeof(run->name), "%s/%s/%s", cases[i].name,
					 kind_info[kind].name, variants[v].name);
				tests[count++] = (struct CMUnitTest){run->name, run_one, setup,
								     teardown, run};
			}
		}
	}
	fflush(stdout);
	failed = _cmocka_run_group_tests(group, tests, count, NULL, NULL);
	free(tests);
	free(runs);
	return failed ? 1 : 0;
}
