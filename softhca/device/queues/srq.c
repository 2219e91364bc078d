// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Shared receive queues: a linked list of WQEs in the client's memory, from which the HCA takes at
 * its own head. The SRQ's lock protects all state. The client owns the links; the device follows a
 * link only within the queue.
 */
#include <errno.h>
#include <string.h>

#include "softhca/device/memory/event.h"
#include "softhca/device/memory/instance.h"
#include "softhca/device/memory/umem.h"
#include "sge.h"
#include "srq.h"
#include "srq_receives.h"

#define EV_SRQ_ERR   14
#define EV_SRQ_LIMIT 15

/* Is the SRQ in use, and not overwritten by a program? */
static inline bool usable(struct sh_dev *dev, uint32_t hca, struct sh_srq *srq)
{
	uint32_t srqn;

	if (__builtin_expect(sh_srq_whole(srq), 1))
		return true;
	if (srq->live == SH_LIVE) {
		srqn = (uint32_t)(srq - (struct sh_srq *)sh_hca_table(dev, hca, SH_HCA_SRQS));
		srq->live = SH_DAMAGED;
		dev->ops->complain(dev->host, "a damaged SRQ", hca, srqn);
		sh_affiliated_event(dev, hca, EV_SRQ_ERR, srqn);
	}
	return false;
}

int sh_srq_available(struct sh_dev *dev, struct sh_srq *srq)
{
	uint32_t posted;

	if (srq->live != SH_LIVE || sh_umem_load32(dev, &srq->db, 0, &posted))
		return 0;
	return (int)sh_posted(posted, srq->consumed);
}

int sh_srq_take(struct sh_txn_open *t, struct sh_hca *hca, struct sh_srq *srq, uint32_t *index)
{
	struct sh_dev *dev = t->dev;
	uint32_t posted, available, next;
	__be16 link;

	if (!usable(dev, hca->index, srq))
		return -EFAULT;
	if (sh_umem_load32(dev, &srq->db, 0, &posted))
		return -EFAULT;
	available = sh_posted(posted, srq->consumed);
	if (!available)
		return -ENOENT;
	srq->seen = posted; /* else the 16-bit counter could wrap unseen by the express way */
	if (sh_umem_read(dev, &srq->buf,
			 sh_srq_at(srq, srq->head) +
				 offsetof(struct mlx4_wqe_srq_next, next_wqe_index),
			 &link, sizeof(link)))
		return -EFAULT;
	next = from_be16(link);
	if (!sh_srq_has(srq, next)) {
		sh_txn_store32(t, &srq->live, SH_DAMAGED);
		sh_txn_async_event(t, hca->index, EV_SRQ_ERR, srq->srqn);
		return -EFAULT;
	}
	*index = srq->head;
	sh_txn_srq(t, srq, next, 1);
	if (sh_srq_limit_reached(srq, available)) {
		sh_txn_store32(t, &srq->limit, 0);
		sh_txn_async_event(t, hca->index, EV_SRQ_LIMIT, srq->srqn);
	}
	return 0;
}

int sh_srq_scatter(struct sh_dev *dev, struct sh_srq *srq, uint32_t index, struct sh_sge *sge,
		   unsigned int max)
{
	struct mlx4_wqe_data data[MLX4_MAX_SGE];
	unsigned int n;

	if (!sh_srq_sound(srq) || !sh_srq_has(srq, index))
		return -EFAULT;
	n = sh_srq_list(srq);
	if (n > max)
		n = max;
	if (n > MLX4_MAX_SGE)
		n = MLX4_MAX_SGE;
	if (sh_umem_read(dev, &srq->buf, sh_srq_at(srq, index) + sizeof(struct mlx4_wqe_srq_next),
			 data, n * sizeof(data[0])))
		return -EFAULT;
	return (int)sh_sge_list(data, n, sge);
}

/* ---- life ---- */

int sh_srq_create(struct sh_dev *dev, uint32_t hca, uint32_t srqn, const struct sh_srq_init *init)
{
	struct sh_srq *srq = sh_hca_table(dev, hca, SH_HCA_SRQS);
	int err;

	if (!srq || srqn >= 1u << SH_LOG_SRQS || init->log_size > SH_SRQ_MAX_LOG_SIZE ||
	    init->wqe_shift < MLX4_MIN_SRQ_SHIFT || init->wqe_shift > SH_SRQ_MAX_WQE_SHIFT ||
	    init->buf.len < (uint64_t)1 << (init->log_size + init->wqe_shift) || init->db.len < 4 ||
	    (init->db.uaddr & 3) || (init->db.shm_off & 3) || !sh_ctx_live(dev, init->ctx))
		return -EINVAL;
	srq += srqn;
	err = sh_promise(dev, srq, sizeof(*srq));
	if (err)
		return err;
	sh_lock_init(&srq->lock);
	err = sh_lock_soon(dev, &srq->lock);
	if (err)
		return err;
	if (srq->live) {
		sh_unlock(dev, &srq->lock);
		return -EEXIST;
	}
	/* Before all else of the new SRQ: pairs with sh_rkey_pd(). */
	__atomic_store_n(&srq->gen, srq->gen + 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	srq->srqn = srqn;
	srq->ctx = init->ctx;
	srq->pdn = init->pdn;
	srq->log_size = init->log_size;
	srq->wqe_shift = init->wqe_shift;
	srq->max_sge = init->max_sge;
	srq->head = 0;
	srq->consumed = 0;
	srq->seen = 0;
	srq->limit = 0;
	srq->xrcd = init->xrcd;
	srq->cqn = init->cqn;
	srq->user_handle = init->user_handle;
	srq->async_events = 0;
	srq->buf = init->buf;
	srq->db = init->db;
	__atomic_store_n(&srq->live, SH_LIVE, __ATOMIC_RELEASE);
	sh_unlock(dev, &srq->lock);
	return 0;
}

/* Takes the lock of a live SRQ for the daemon. 0, -ENOENT or -EINPROGRESS. */
static int hold(struct sh_dev *dev, uint32_t hca, uint32_t srqn, struct sh_srq **out)
{
	struct sh_srq *srq = sh_srq_get(dev, hca, srqn);
	int err;

	if (!srq)
		return -ENOENT;
	err = sh_lock_soon(dev, &srq->lock);
	if (err)
		return err;
	if (!usable(dev, hca, srq)) {
		sh_unlock(dev, &srq->lock);
		return -ENOENT;
	}
	*out = srq;
	return 0;
}

int sh_srq_limit(struct sh_dev *dev, uint32_t hca, uint32_t srqn, uint32_t limit)
{
	struct sh_srq *srq;
	int err = hold(dev, hca, srqn, &srq);

	if (err)
		return err;
	if (limit >> srq->log_size)
		err = -EINVAL;
	else
		srq->limit = limit;
	sh_unlock(dev, &srq->lock);
	return err;
}

int sh_srq_destroy(struct sh_dev *dev, uint32_t hca, uint32_t srqn, uint32_t *async_events)
{
	struct sh_srq *srq = sh_srq_get(dev, hca, srqn);
	uint32_t evq;
	int err;

	if (!srq)
		return -ENOENT;
	err = sh_lock_soon(dev, &srq->lock);
	if (err) {
		/*
		 * Threads that take the lock from now on find the SRQ gone and let go at once. Else
		 * many senders that take it in turn could keep it from the daemon for seconds.
		 */
		__atomic_store_n(&srq->live, SH_NONE, __ATOMIC_SEQ_CST);
		return err;
	}
	evq = sh_ctx(dev, srq->ctx) ? sh_ctx(dev, srq->ctx)->async_evq : 0;
	srq->live = SH_NONE;
	err = sh_evq_hold(dev, evq);
	if (!err) {
		*async_events =
			evq ? sh_evq_end(dev, evq, &srq->async_events, srq->user_handle, SH_EV_SRQ)
			    : 0;
		sh_evq_release(dev, evq);
	}
	sh_unlock(dev, &srq->lock);
	return err;
}

uint32_t sh_srq_end(struct sh_dev *dev, uint32_t hca, uint32_t srqn)
{
	struct sh_srq *srq = sh_srq_get(dev, hca, srqn);
	const struct sh_ctx *ctx = srq ? sh_ctx(dev, srq->ctx) : NULL;
	uint32_t evq = ctx ? ctx->async_evq : 0, events;

	if (!srq)
		return 0;
	__atomic_store_n(&srq->live, SH_NONE, __ATOMIC_SEQ_CST);
	if (!evq)
		return 0;
	if (sh_evq_hold(dev, evq))
		return __atomic_load_n(&srq->async_events, __ATOMIC_SEQ_CST);
	events = sh_evq_end(dev, evq, &srq->async_events, srq->user_handle, SH_EV_SRQ);
	sh_evq_release(dev, evq);
	return events;
}

int sh_srq_reclaim(struct sh_dev *dev, uint32_t hca, uint32_t srqn)
{
	struct sh_srq *srq = sh_srq_get(dev, hca, srqn);
	int err = srq ? sh_lock_soon(dev, &srq->lock) : 0;

	if (!srq || err)
		return err;
	srq->live = SH_NONE; /* a thread that held the lock may have marked it damaged */
	sh_unlock(dev, &srq->lock);
	return 0;
}

int sh_srq_query(struct sh_dev *dev, uint32_t hca, uint32_t srqn, struct sh_srq_info *info)
{
	struct sh_srq *srq;
	int err = hold(dev, hca, srqn, &srq);

	/* Without the lock: each of these numbers changes by one store. */
	if (err == -EINPROGRESS)
		srq = sh_srq_get(dev, hca, srqn);
	else if (err)
		return err;
	*info = (struct sh_srq_info){
		.srqn = srqn,
		.ctx = srq->ctx,
		.pdn = srq->pdn,
		.entries = 1u << srq->log_size,
		.available = (uint32_t)sh_srq_available(dev, srq),
		.limit = srq->limit,
		.xrcd = srq->xrcd,
		.cqn = srq->cqn,
	};
	if (!err)
		sh_unlock(dev, &srq->lock);
	return 0;
}
