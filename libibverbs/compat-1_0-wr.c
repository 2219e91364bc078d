// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * IBVERBS_1.0: the five operations that the inline verbs of 1.0 call. A work request of 1.0 has
 * next before wr_id, so a list of requests is copied, an array on the stack at a time. The
 * scatter/gather lists are the caller's own. Holds no state and no lock.
 */
#include <string.h>

#include "compat-1_0.h"

#define WR_BATCH 32

/* Behind wr_id and next the two kinds of send request differ only in the address handle. */
#define SEND_WR_TAIL (sizeof(struct ibv_send_wr_1_0) - offsetof(struct ibv_send_wr_1_0, sg_list))

_Static_assert(offsetof(struct ibv_send_wr, sg_list) == offsetof(struct ibv_send_wr_1_0, sg_list),
	       "same tail");
_Static_assert(offsetof(struct ibv_send_wr, wr) == offsetof(struct ibv_send_wr_1_0, wr),
	       "same tail");
_Static_assert(offsetof(struct ibv_send_wr, sg_list) + SEND_WR_TAIL <= sizeof(struct ibv_send_wr),
	       "same tail");

static int poll_cq_1_0(struct ibv_cq_1_0 *cq, int num_entries, struct ibv_wc *wc)
{
	return cq->real_cq->context->ops.poll_cq(cq->real_cq, num_entries, wc);
}

static int req_notify_cq_1_0(struct ibv_cq_1_0 *cq, int solicited_only)
{
	return cq->real_cq->context->ops.req_notify_cq(cq->real_cq, solicited_only);
}

static void copy_send_wr(struct ibv_send_wr *real, const struct ibv_send_wr_1_0 *wr, int is_ud)
{
	memset(real, 0, sizeof(*real));
	real->wr_id = wr->wr_id;
	memcpy(&real->sg_list, &wr->sg_list, SEND_WR_TAIL);
	if (is_ud)
		real->wr.ud.ah = wr->wr.ud.ah ? wr->wr.ud.ah->real_ah : NULL;
}

static int post_send_1_0(struct ibv_qp_1_0 *qp, struct ibv_send_wr_1_0 *wr,
			 struct ibv_send_wr_1_0 **bad_wr)
{
	struct ibv_qp *real_qp = qp->real_qp;
	struct ibv_send_wr batch[WR_BATCH], *real_bad;
	struct ibv_send_wr_1_0 *first, *cur;
	int i, ret;

	for (cur = wr; cur;) {
		first = cur;
		for (i = 0; i < WR_BATCH && cur; ++i, cur = cur->next) {
			copy_send_wr(&batch[i], cur, real_qp->qp_type == IBV_QPT_UD);
			if (i)
				batch[i - 1].next = &batch[i];
		}

		real_bad = batch;
		ret = real_qp->context->ops.post_send(real_qp, batch, &real_bad);
		if (ret) {
			for (i = real_bad - batch; i > 0; --i)
				first = first->next; /* NOLINT(clang-analyzer-core.NullDereference): one of these */
			*bad_wr = first;
			return ret;
		}
	}

	return 0;
}

/* Converts up to WR_BATCH requests. Returns the first request that is left. */
static struct ibv_recv_wr_1_0 *copy_recv_wrs(struct ibv_recv_wr *batch, struct ibv_recv_wr_1_0 *wr)
{
	int i;

	for (i = 0; i < WR_BATCH && wr; ++i, wr = wr->next) {
		batch[i].wr_id = wr->wr_id;
		batch[i].next = NULL;
		batch[i].sg_list = wr->sg_list;
		batch[i].num_sge = wr->num_sge;
		if (i)
			batch[i - 1].next = &batch[i];
	}

	return wr;
}

static struct ibv_recv_wr_1_0 *skip_recv_wrs(struct ibv_recv_wr_1_0 *wr, int n)
{
	while (n-- > 0)
		wr = wr->next;

	return wr;
}

/* Posts to the SRQ, or to the QP if srq is NULL. */
static int post_recv(struct ibv_qp *qp, struct ibv_srq *srq, struct ibv_recv_wr_1_0 *wr,
		     struct ibv_recv_wr_1_0 **bad_wr)
{
	struct ibv_recv_wr batch[WR_BATCH], *real_bad;
	struct ibv_recv_wr_1_0 *next;
	int ret;

	for (; wr; wr = next) {
		next = copy_recv_wrs(batch, wr);
		real_bad = batch;
		ret = srq ? srq->context->ops.post_srq_recv(srq, batch, &real_bad) :
			  /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): one of the two */
			      qp->context->ops.post_recv(qp, batch, &real_bad);
		if (ret) {
			*bad_wr = skip_recv_wrs(wr, real_bad - batch);
			return ret;
		}
	}

	return 0;
}

static int post_recv_1_0(struct ibv_qp_1_0 *qp, struct ibv_recv_wr_1_0 *wr,
			 struct ibv_recv_wr_1_0 **bad_wr)
{
	return post_recv(qp->real_qp, NULL, wr, bad_wr);
}

static int post_srq_recv_1_0(struct ibv_srq_1_0 *srq, struct ibv_recv_wr_1_0 *wr,
			     struct ibv_recv_wr_1_0 **bad_wr)
{
	return post_recv(NULL, srq->real_srq, wr, bad_wr);
}

void compat_1_0_set_ops(struct ibv_context_ops_1_0 *ops)
{
	ops->poll_cq = poll_cq_1_0;
	ops->req_notify_cq = req_notify_cq_1_0;
	ops->post_send = post_send_1_0;
	ops->post_recv = post_recv_1_0;
	ops->post_srq_recv = post_srq_recv_1_0;
}
