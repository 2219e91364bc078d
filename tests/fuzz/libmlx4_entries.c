// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Completion queues as a device may leave them for the provider: entries of any contents, in any
 * place, among those that a device would write. The provider polls them, removes those of a QP or
 * an SRQ that goes, and moves them when a queue is resized. QPs of every kind complete there. The
 * provider reads and writes only its own memory, and every call ends. A poll returns a number of
 * completions, or that an entry belongs to nothing.
 *
 *	BYTE	OF AN INPUT
 *	0	modulo 3: with locks, without, with entries of 64 bytes; bits 4-7: of which kinds there are QPs
 *	1..	records:
 *	 0	what happens (enum what)
 *	 1	bits 0-3 which QP, bit 4 which CQ, bits 5-7 flags or a number
 *	 2	bytes that follow
 *	 3..	what they are
 */
#include <stdbool.h>

#include "kinds.h"

enum what {
	POST_SEND,
	POST_RECV,
	ENTRY,
	RAW_ENTRY,
	ANY_ENTRY,
	POLL,
	DESTROY_QP,
	RESET_QP,
	RESIZE,
	DESTROY_SRQ,
	ARM,
	WHATS
};
enum { LANES = KINDS + 1, CQE = 15 };

static struct dev_cq cq[2];
static struct lane lane[LANES];
static bool open_lane[LANES];
static struct ibv_ah *address;

static void start(unsigned int variant)
{
	struct ibv_ah_attr attr = {.dlid = 1, .port_num = 1};

	fk_reset();
	fk.driver_abi = 4;
	fk.dev_caps = 1;
	fk.cqe_size = variant == 2 ? 64 : 32;
	if (variant == 1)
		setenv("MLX4_SINGLE_THREADED", "1", 1);
	else
		unsetenv("MLX4_SINGLE_THREADED");
	ctx = fk_open();
	assert_non_null(ctx);
	pd = ibv_alloc_pd(ctx);
	assert_non_null(pd);
	domain = ibv_open_xrc_domain(ctx, -1, 0);
	assert_non_null(domain);
	address = ibv_create_ah(pd, &attr);
	assert_non_null(address);
	dev_create_cq(&cq[0], ctx, CQE);
	dev_create_cq(&cq[1], ctx, CQE);
}

static void open_one(unsigned int i)
{
	/* The last lane is a second QP on the SRQ of another lane. */
	if (i == KINDS) {
		if (open_lane[KIND_RC_SRQ])
			lane_open_beside(&lane[i], &lane[KIND_RC_SRQ]);
		open_lane[i] = open_lane[KIND_RC_SRQ];
		return;
	}
	lane_open(&lane[i], i, &cq[i % 2], &cq[i / 2 % 2]);
	open_lane[i] = true;
}

static void close_one(unsigned int i)
{
	if (open_lane[i])
		lane_close(&lane[i]);
	open_lane[i] = false;
}

static void stop(void)
{
	/* The last lane shares its SRQ with an earlier one, so it goes first. */
	for (unsigned int i = LANES; i--;)
		close_one(i);
	assert_int_equal(ibv_destroy_cq(cq[0].cq), 0);
	assert_int_equal(ibv_destroy_cq(cq[1].cq), 0);
	assert_int_equal(ibv_destroy_ah(address), 0);
	assert_int_equal(ibv_close_xrc_domain(domain), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_close_device(ctx), 0);
}

/* The provider refuses this when the queue is full. */
static void post_send(struct lane *l, unsigned int flags)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_SEND, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_SEND_WITH_IMM};
	struct ibv_sge sge = {1, 8, 1};
	struct ibv_send_wr wr = {.wr_id = 7,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = opcodes[flags & 3],
				 .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad;

	if (kind_info[l->kind].type == IBV_QPT_UD)
		wr.wr.ud.ah = address;
	if (kind_info[l->kind].type != IBV_QPT_RC)
		wr.opcode = IBV_WR_SEND;
	(void)ibv_post_send(l->qp.qp, &wr, &bad);
}

static void post_recv(struct lane *l)
{
	struct ibv_sge sge = {1, 1, 1};
	struct ibv_recv_wr wr = {.wr_id = 9, .sg_list = &sge, .num_sge = 1}, *bad;

	if (l->srq && l->srq->srq)
		(void)ibv_post_srq_recv(l->srq->srq, &wr, &bad);
	else if (kind_info[l->kind].from == OWN_QUEUE)
		(void)ibv_post_recv(l->qp.qp, &wr, &bad);
}

/*
 * Writes an entry as the device does for this QP, whether or not something was posted. Bytes:
 * opcode, syndrome
 */
static void entry(struct lane *l, unsigned int flags, const uint8_t *p, size_t n)
{
	bool send = flags & 1;

	if (!send && kind_info[l->kind].from != OWN_QUEUE && (!l->srq || !l->srq->srq))
		return;
	lane_cqe(l, send, n > 0 ? p[0] & 0x1f : 1, n > 1 ? p[1] : 0);
}

/*
 * Writes the input's entry to the next place. Its QP number may be that of this QP, and its SRQ
 * number that of this SRQ.
 */
static void raw_entry(struct dev_cq *d, const struct lane *l, unsigned int flags, const uint8_t *p,
		      size_t n)
{
	uint32_t i = d->producer++;
	uint8_t *at =
		d->buf + (size_t)(i & (d->entries - 1)) * d->entry_size + (d->entry_size - 32);

	if (n > 32)
		n = 32;
	memcpy(at, p, n);
	if (flags & 1)
		put_be32(at, 0, flags & 2 ? l->recv_qpn : l->qp.qp ? l->qp.qp->qp_num : 0);
	if (flags & 4 && l->srq && l->srq->srq)
		put_be32(at, 8, l->srq->srq->xrc_srq_num);
	at[31] = (at[31] & 0x7f) | (i & d->entries ? 0x80 : 0);
}

/* Writes an entry to any place, whatever its owner bit. Bytes: the place, the entry */
static void any_entry(struct dev_cq *d, const uint8_t *p, size_t n)
{
	uint8_t *at = d->buf;

	if (!n)
		return;
	at += (size_t)(p[0] & (d->entries - 1)) * d->entry_size + (d->entry_size - 32);
	memcpy(at, p + 1, n - 1 < 32 ? n - 1 : 32);
}

static void poll(struct dev_cq *d, unsigned int flags)
{
	struct ibv_wc wc[8];
	int ne = flags + 1, n;

	memset(wc, 0xee, sizeof(wc));
	n = ibv_poll_cq(d->cq, ne, wc);
	assert_true(n <= ne && n >= -2 && n != -1);
	for (int i = 0; i < n; i++)
		assert_true(wc[i].status <= IBV_WC_GENERAL_ERR);
	/* The provider does not write behind what it returns. */
	for (int i = n < 0 ? 1 : n + 1; i < ne; i++)
		assert_int_equal(wc[i].wr_id, UINT64_C(0xeeeeeeeeeeeeeeee));
}

static void destroy_qp(unsigned int i)
{
	/*
	 * The SRQ goes too, so that the new QP finds nothing old. The QP that shares the SRQ goes
	 * first.
	 */
	if (i == KIND_RC_SRQ)
		close_one(KINDS);
	close_one(i);
	open_one(i);
	if (i == KIND_RC_SRQ)
		open_one(KINDS);
}

/* Only an XRC SRQ can be destroyed while QPs use it. The kernel refuses others. */
static void destroy_srq(struct lane *l)
{
	if (is_xrc(l->kind) && l->own_srq.srq)
		lane_destroy_srq(l);
}

static void resize(struct dev_cq *d, unsigned int flags)
{
	resizing = d;
	fk.hook = on_resize;
	(void)ibv_resize_cq(d->cq, (2 << flags % 6) - 1);
	fk.hook = NULL;
}

static void record(unsigned int what, unsigned int which, const uint8_t *p, size_t n)
{
	struct lane *l = &lane[which % 16 % LANES];
	struct dev_cq *d = &cq[which >> 4 & 1];
	unsigned int flags = which >> 5;

	if (!open_lane[l - lane])
		l = &lane[0];
	switch (what % WHATS) {
	case POST_SEND:
		post_send(l, flags);
		break;
	case POST_RECV:
		post_recv(l);
		break;
	case ENTRY:
		entry(l, flags, p, n);
		break;
	case RAW_ENTRY:
		raw_entry(d, l, flags, p, n);
		break;
	case ANY_ENTRY:
		any_entry(d, p, n);
		break;
	case POLL:
		poll(d, flags);
		break;
	case DESTROY_QP:
		destroy_qp(l - lane);
		break;
	case RESET_QP:
		lane_reset_qp(l);
		break;
	case RESIZE:
		resize(d, flags);
		break;
	case DESTROY_SRQ:
		destroy_srq(l);
		break;
	case ARM:
		assert_int_equal(ibv_req_notify_cq(d->cq, flags & 1), 0);
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint16_t kinds[] = {0x001, 0x3ff, 0x048, 0x181, 0x00a, 0x024, 0x018, 0x240,
					 0x140, 0x0c0, 0x003, 0x006, 0x009, 0x104, 0x208, 0x1ff};
	size_t n;

	if (!size)
		return 0;
	start(data[0] % 16 % 3);
	for (unsigned int i = 0; i < LANES; i++)
		if (!i || kinds[data[0] >> 4] & 1 << i)
			open_one(i);
	for (data++, size--; size >= 3; data += 3 + n, size -= 3 + n) {
		n = data[2] < size - 3 ? data[2] : size - 3;
		record(data[0], data[1], data + 3, n);
	}
	stop();
	return 0;
}
