// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Completion queues: writing entries, arming, overrun, resizing. The CQ's lock protects all its
 * state. The client owns the consumer's position: the device reads it when the queue seems full,
 * and never waits for it.
 */
#include <errno.h>
#include <string.h>

#include "softhca/device/memory/event.h"
#include "softhca/device/memory/exec.h"
#include "softhca/device/memory/instance.h"
#include "softhca/device/memory/tables.h"
#include "attention.h"
#include "cq.h"
#include "cqe.h"

#define EV_CQ_ERR 0

/* Reads set_ci, as a free-running index at or behind the producer. */
static int read_consumer(struct sh_dev *dev, struct sh_cq *cq)
{
	uint32_t ci;
	int err = sh_umem_load32(dev, &cq->db, offsetof(struct mlx4_cq_dbrec, set_ci), &ci);

	if (!err)
		cq->consumer_seen = cq->producer - ((cq->producer - ci) & MLX4_CQ_DB_CI_MASK);
	return err;
}

SH_OUTLINE void declare_damaged(struct sh_dev *dev, uint32_t hca, struct sh_cq *cq)
{
	uint32_t cqn = (uint32_t)(cq - (struct sh_cq *)sh_hca_table(dev, hca, SH_HCA_CQS));

	cq->live = SH_DAMAGED;
	dev->ops->complain(dev->host, "a damaged CQ", hca, cqn);
	sh_affiliated_event(dev, hca, EV_CQ_ERR, cqn);
}

/* Is the CQ in use, and not overwritten by a program? */
static inline bool usable(struct sh_dev *dev, uint32_t hca, struct sh_cq *cq)
{
	if (__builtin_expect(sh_cq_whole(cq), 1))
		return true;
	if (cq->live == SH_LIVE)
		declare_damaged(dev, hca, cq);
	return false;
}

/* A CQ overruns once: it then stays as it is until it is destroyed. */
static int overrun(struct sh_txn_open *t, const struct sh_hca *hca, struct sh_cq *cq)
{
	if (!cq->overrun) {
		sh_txn_store32(t, &cq->overrun, 1);
		sh_txn_async_event(t, hca->index, EV_CQ_ERR, cq->cqn);
	}
	return -ENOSPC;
}

/* Does the CQ have room for another entry? Returns what sh_cq_put() returns. */
static int room(struct sh_txn_open *t, const struct sh_hca *hca, struct sh_cq *cq)
{
	struct sh_dev *dev = t->dev;

	if (!usable(dev, hca->index, cq) || !sh_ctx_live(dev, cq->ctx))
		return -ENODEV;
	if (cq->overrun)
		return -ENOSPC;
	if (sh_cq_has_room(cq, cq->producer))
		return 0;
	if (read_consumer(dev, cq))
		return -ENODEV;
	return sh_cq_has_room(cq, cq->producer) ? 0 : overrun(t, hca, cq);
}

int sh_cq_put(struct sh_txn_open *t, struct sh_hca *hca, struct sh_cq *cq, const struct sh_cqe *cqe)
{
	uint32_t producer = cq->producer, entries;
	int err = room(t, hca, cq);
	uint64_t word[4];
	bool solicited;

	if (err)
		return err;
	entries = 1u << cq->log_size;
	sh_cqe_format(word, cqe, sh_cqe_owner(producer, entries));
	if (sh_txn_cqe(t, &cq->buf, sh_cqe_at(t->dev, producer, entries), word)) {
		declare_damaged(t->dev, hca->index, cq);
		return -ENODEV;
	}
	solicited = sh_cqe_solicits(cqe);
	sh_txn_cq(t, cq, producer + 1, solicited);
	if (cq->armed == SH_ARM_ANY || (cq->armed == SH_ARM_SOLICITED && solicited)) {
		sh_txn_store_two(t, &cq->armed, SH_ARM_NONE, producer + 1);
		sh_txn_comp_event(t, hca->index, cq->cqn);
	}
	return 0;
}

/* ---- arming ---- */

static void arm(struct sh_dev *dev, uint32_t hca, struct sh_cq *cq, uint32_t word)
{
	uint32_t cmd = word >> MLX4_CQ_DB_CMD_SHIFT & MLX4_CQ_DB_CMD_MASK;
	uint32_t producer = cq->producer, behind = (producer - word) & MLX4_CQ_DB_CI_MASK;
	uint32_t mode = cmd == MLX4_CQ_ARM_NEXT ? SH_ARM_ANY : SH_ARM_SOLICITED, from, last;
	struct sh_txn_open t;

	if (cmd != MLX4_CQ_ARM_NEXT && cmd != MLX4_CQ_ARM_SOLICITED)
		return;
	if (mode < cq->armed)
		mode = cq->armed;
	/* Entries that are neither polled nor announced by an event. */
	from = producer - behind;
	if (behind > 1u << cq->log_size || (int32_t)(cq->last_notified - from) > 0)
		from = cq->last_notified;
	last = mode == SH_ARM_ANY ? producer : cq->solicited_producer;

	sh_txn_begin(&t, dev, &cq->txn, &cq->lock);
	sh_txn_store32(&t, &cq->arm_acted, word);
	if ((int32_t)(last - from) > 0) {
		sh_txn_store32(&t, &cq->armed, SH_ARM_NONE);
		sh_txn_store32(&t, &cq->last_notified, producer);
		sh_txn_comp_event(&t, hca, cq->cqn);
	} else {
		sh_txn_store32(&t, &cq->armed, mode);
	}
	sh_txn_commit(&t);
}

static void arm_again(struct sh_dev *dev, uint64_t key, uint64_t dw);

static void arm_cq(struct sh_dev *dev, uint32_t ctx, uint32_t cqn, uint64_t dw)
{
	const uint32_t dw0 = (uint32_t)dw, dw1 = (uint32_t)(dw >> 32);
	const uint32_t record = MLX4_CQ_DB_SN_MASK << MLX4_CQ_DB_SN_SHIFT |
				MLX4_CQ_DB_CMD_MASK << MLX4_CQ_DB_CMD_SHIFT;
	struct sh_ctx *c = sh_ctx(dev, ctx);
	struct sh_hca *hca = c && sh_ctx_live(dev, ctx) ? sh_hca(dev, c->hca) : NULL;
	struct sh_cq *cq = hca ? sh_cq_of(hca, cqn) : NULL;
	uint32_t word = (dw0 & record) | (dw1 & MLX4_CQ_DB_CI_MASK);

	/* A card that has failed raises no events, not even for what it has completed. */
	if (!cq || __atomic_load_n(&hca->fatal, __ATOMIC_RELAXED))
		return;
	if (sh_lock_within(dev, &cq->lock, SH_WAIT_BRIEFLY) &&
	    sh_defer_or_lock(dev, &cq->lock, arm_again, (uint64_t)ctx << 32 | cqn, dw))
		return;
	if (cq->ctx == ctx && usable(dev, c->hca, cq)) {
		if (dw0 || dw1) {
			/*
			 * word is in the layout of the arm record: the consumer index stands where
			 * the doorbell has the number of the CQ. A thread that was thrown out of
			 * here does the same work again. If its first life has carried out this
			 * arm, it must not arm again: senders may have added CQEs in between, and
			 * those would raise a second event for one request.
			 */
			if (!sh_self.again || word != cq->arm_acted)
				arm(dev, c->hca, cq, word);
		} else if (!sh_umem_load32(dev, &cq->db, offsetof(struct mlx4_cq_dbrec, arm),
					   &word) &&
			   word != cq->arm_acted) {
			arm(dev, c->hca, cq, word);
		}
	}
	sh_unlock(dev, &cq->lock);
}

void sh_arm(struct sh_dev *dev, uint32_t ctx, uint32_t cqn, uint32_t dw0, uint32_t dw1)
{
	sh_self.again = false;
	sh_catch(dev, ctx, cqn, (uint64_t)dw1 << 32 | dw0, arm_cq);
}

static void arm_again(struct sh_dev *dev, uint64_t key, uint64_t dw)
{
	bool entered = sh_enter(dev);

	sh_arm(dev, (uint32_t)(key >> 32), (uint32_t)key, (uint32_t)dw, (uint32_t)(dw >> 32));
	if (entered)
		sh_leave(dev);
}

void sh_arm_lost(struct sh_dev *dev, uint32_t hca, uint32_t cqn)
{
	const struct sh_cq *cq = sh_cq_get(dev, hca, cqn);
	const struct sh_ctx *ctx = cq ? sh_ctx(dev, cq->ctx) : NULL;

	if (ctx && ctx->hca == hca && ctx->proc == dev->proc)
		arm_cq(dev, cq->ctx, cqn, 0);
}

void sh_arm_later(struct sh_dev *dev, uint32_t ctx, uint32_t cqn, uint32_t dw0, uint32_t dw1)
{
	if (!sh_later(sh_arm, ctx, cqn, dw0, dw1))
		sh_attention_mark_cq(dev, ctx, cqn);
}

/* ---- life ---- */

static bool fits(const struct sh_dev *dev, const struct sh_umem *buf, uint32_t log_size)
{
	return log_size <= SH_CQ_MAX_LOG_SIZE &&
	       buf->len >= (uint64_t)sh_cqe_size(dev) << log_size && (buf->shm_off & 7) == 0;
}

int sh_cq_create(struct sh_dev *dev, uint32_t hca, uint32_t cqn, const struct sh_cq_init *init)
{
	struct sh_cq *cq = sh_hca_table(dev, hca, SH_HCA_CQS);
	int err;

	if (!cq || cqn >= 1u << SH_LOG_CQS || !fits(dev, &init->buf, init->log_size) ||
	    init->db.len < 8 || (init->db.uaddr & 7) || (init->db.shm_off & 7) ||
	    !sh_ctx_live(dev, init->ctx))
		return -EINVAL;
	cq += cqn;
	err = sh_promise(dev, cq, sizeof(*cq));
	if (!err)
		err = sh_umem_fill(dev, &init->buf, 0, MLX4_CQE_FILL,
				   (uint64_t)sh_cqe_size(dev) << init->log_size);
	if (err)
		return err;
	sh_lock_init(&cq->lock);
	err = sh_lock_soon(dev, &cq->lock);
	if (err)
		return err;
	if (cq->live) {
		sh_unlock(dev, &cq->lock);
		return -EEXIST;
	}
	cq->cqn = cqn;
	cq->ctx = init->ctx;
	cq->log_size = init->log_size;
	cq->producer = 0;
	cq->solicited_producer = 0;
	cq->armed = SH_ARM_NONE;
	cq->last_notified = 0;
	cq->consumer_seen = 0;
	cq->arm_acted = 0;
	cq->overrun = 0;
	cq->comp_evq = init->comp_evq;
	cq->user_handle = init->user_handle;
	cq->comp_events = 0;
	cq->async_events = 0;
	cq->buf = init->buf;
	cq->db = init->db;
	__atomic_store_n(&cq->live, SH_LIVE, __ATOMIC_RELEASE);
	sh_unlock(dev, &cq->lock);
	return 0;
}

/*
 * Takes the lock of a live CQ for the daemon, and that of a damaged CQ only to destroy it. 0,
 * -ENOENT or -EINPROGRESS.
 */
static int hold(struct sh_dev *dev, uint32_t hca, uint32_t cqn, bool to_destroy, struct sh_cq **out)
{
	struct sh_cq *cq = sh_cq_get(dev, hca, cqn);
	int err;

	if (!cq)
		return -ENOENT;
	err = sh_lock_soon(dev, &cq->lock);
	if (err)
		return err;
	if (to_destroy ? !cq->live : !usable(dev, hca, cq)) {
		sh_unlock(dev, &cq->lock);
		return -ENOENT;
	}
	*out = cq;
	return 0;
}

/*
 * Makes every entry of a buffer look as if the HCA owned it, at the first index >= from that falls
 * on the entry: gives it the owner bit of that index, inverted.
 */
static int fill_phased(struct sh_dev *dev, const struct sh_umem *buf, uint32_t from,
		       uint32_t log_size)
{
	uint32_t size = sh_cqe_size(dev), entries = 1u << log_size, i, n;
	uint8_t chunk[64 * MLX4_CQE_SIZE_LARGE];
	uint32_t per = sizeof(chunk) / size;

	for (i = 0; i < entries; i += n) {
		uint32_t k;
		int err;

		memset(chunk, MLX4_CQE_FILL, sizeof(chunk));
		for (n = 0; n < per && i + n < entries; n++) {
			k = from + ((i + n - from) & (entries - 1));
			if (sh_cqe_owner(k, entries))
				chunk[n * size + size - 1] &= 0xff ^ MLX4_CQE_OWNER;
		}
		err = sh_umem_write(dev, buf, (uint64_t)i * size, chunk, (size_t)n * size);
		if (err)
			return err;
	}
	return 0;
}

int sh_cq_resize(struct sh_dev *dev, uint32_t hca, uint32_t cqn, const struct sh_umem *buf,
		 uint32_t log_size)
{
	uint32_t entries, left, producer;
	uint8_t marker[32] = {0};
	struct sh_txn_open t;
	struct sh_cq *cq;
	int err;

	if (!fits(dev, buf, log_size))
		return -EINVAL;
	err = hold(dev, hca, cqn, false, &cq);
	if (err)
		return err;
	if (log_size == cq->log_size)
		goto out; /* without a marker: the provider looks for none */
	err = read_consumer(dev, cq);
	if (err)
		goto out;
	producer = cq->producer;
	entries = 1u << cq->log_size;
	left = producer - cq->consumer_seen;
	/*
	 * The marker takes an entry of the old buffer and, until it is skipped, an index of the new
	 * one.
	 */
	if (cq->overrun || left >= entries || left + 1 > 1u << log_size) {
		err = -EINVAL;
		goto out;
	}
	err = fill_phased(dev, buf, producer + 1, log_size);
	if (err)
		goto out;
	marker[31] = MLX4_CQE_RESIZE | sh_cqe_owner(producer, entries);
	sh_txn_begin(&t, dev, &cq->txn, &cq->lock);
	err = sh_txn_cqe(&t, &cq->buf, sh_cqe_at(dev, producer, entries), marker);
	if (err)
		goto out;
	sh_txn_store32(&t, &cq->log_size, log_size);
	sh_txn_store32(&t, &cq->producer, producer + 1);
	/*
	 * Every entry that is left moves up by one index, whether an event has announced it or not.
	 */
	sh_txn_store32(&t, &cq->last_notified, cq->last_notified + 1);
	sh_txn_store32(&t, &cq->solicited_producer, cq->solicited_producer + 1);
	sh_txn_store64(&t, &cq->buf.uaddr, buf->uaddr);
	sh_txn_store64(&t, &cq->buf.len, buf->len);
	sh_txn_store64(&t, &cq->buf.shm_off, buf->shm_off);
	sh_txn_commit(&t);
out:
	sh_unlock(dev, &cq->lock);
	return err;
}

int sh_cq_destroy(struct sh_dev *dev, uint32_t hca, uint32_t cqn, uint32_t *comp_events,
		  uint32_t *async_events)
{
	uint32_t comp_evq, async_evq, first, second;
	struct sh_cq *cq;
	int err;

	err = hold(dev, hca, cqn, true, &cq);
	if (err)
		return err;
	comp_evq = cq->comp_evq;
	async_evq = sh_ctx(dev, cq->ctx) ? sh_ctx(dev, cq->ctx)->async_evq : 0;
	if (async_evq == comp_evq)
		async_evq = 0; /* they differ, unless a program has overwritten them */
	first = comp_evq < async_evq ? comp_evq : async_evq;
	second = comp_evq < async_evq ? async_evq : comp_evq;
	err = sh_evq_hold(dev, first);
	if (err)
		goto out;
	err = sh_evq_hold(dev, second);
	if (err)
		goto out_first;
	cq->live = SH_NONE;
	*comp_events =
		comp_evq ? sh_evq_end(dev, comp_evq, &cq->comp_events, cq->user_handle, SH_EV_COMP)
			 : 0;
	*async_events =
		async_evq ? sh_evq_end(dev, async_evq, &cq->async_events, cq->user_handle, SH_EV_CQ)
			  : 0;
	sh_evq_release(dev, second);
out_first:
	sh_evq_release(dev, first);
out:
	sh_unlock(dev, &cq->lock);
	return err;
}

/*
 * Ends an object's events. Without the event queue's lock it can tell only how many records were
 * written.
 */
static uint32_t end_events(struct sh_dev *dev, uint32_t evq, uint32_t *counter, uint64_t element,
			   enum sh_event_kind kind)
{
	uint32_t events;

	if (!evq)
		return 0;
	if (sh_evq_hold(dev, evq))
		return __atomic_load_n(counter, __ATOMIC_SEQ_CST);
	events = sh_evq_end(dev, evq, counter, element, kind);
	sh_evq_release(dev, evq);
	return events;
}

void sh_cq_end(struct sh_dev *dev, uint32_t hca, uint32_t cqn, uint32_t *comp_events,
	       uint32_t *async_events)
{
	struct sh_cq *cq = sh_cq_get(dev, hca, cqn);
	const struct sh_ctx *ctx = cq ? sh_ctx(dev, cq->ctx) : NULL;

	*comp_events = *async_events = 0;
	if (!cq)
		return;
	__atomic_store_n(&cq->live, SH_NONE, __ATOMIC_SEQ_CST);
	*comp_events = end_events(dev, cq->comp_evq, &cq->comp_events, cq->user_handle, SH_EV_COMP);
	*async_events = end_events(dev, ctx ? ctx->async_evq : 0, &cq->async_events,
				   cq->user_handle, SH_EV_CQ);
}

int sh_cq_reclaim(struct sh_dev *dev, uint32_t hca, uint32_t cqn)
{
	struct sh_cq *cq = sh_cq_get(dev, hca, cqn);
	int err = cq ? sh_lock_soon(dev, &cq->lock) : 0;

	if (!cq || err)
		return err;
	cq->live = SH_NONE; /* a thread that held the lock may have marked it damaged */
	sh_unlock(dev, &cq->lock);
	return 0;
}

int sh_cq_query(struct sh_dev *dev, uint32_t hca, uint32_t cqn, struct sh_cq_info *info)
{
	struct sh_cq *cq;
	int err;

	err = hold(dev, hca, cqn, false, &cq);
	/* What the daemon shows need not be from one moment. */
	if (err == -EINPROGRESS)
		cq = sh_cq_get(dev, hca, cqn);
	else if (err)
		return err;
	else
		read_consumer(dev, cq); /* if the memory is gone, the position read last counts */
	*info = (struct sh_cq_info){
		.cqn = cqn,
		.ctx = cq->ctx,
		.entries = 1u << cq->log_size,
		.producer = cq->producer,
		.consumer = cq->consumer_seen,
		.armed = cq->armed,
		.overrun = cq->overrun,
		.comp_evq = cq->comp_evq,
		.comp_events = cq->comp_events,
	};
	if (!err)
		sh_unlock(dev, &cq->lock);
	return 0;
}
