// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * How a requester goes on whose engine was left in the midst of a message: the thread was thrown
 * (life.h), did not get the QP's lock back (sh_lock_within()), or died with the wire's engine.
 */
#include <errno.h>

#include "softhca/device/queues/qp_halves.h"
#include "softhca/device/queues/wqe.h"
#include "completer.h"
#include "requester.h"
#include "timer.h"
#include "wire.h"

/* Has the message that an unreliable service was in the middle of failed? held: rnr_waiting. */
static bool is_source_gone(const struct sh_qp *qp, uint32_t held)
{
	return held & SH_SOURCE_GONE ||
	       __atomic_load_n(&qp->left, __ATOMIC_RELAXED) == sh_left(qp->gen, 0, SH_LEFT_NO_DATA);
}

/*
 * Goes back to the oldest WQE, as if every answer had been lost: nothing is on its way any more,
 * and the thread does not know what has arrived. A reliable service sends it again, and the
 * receiver knows what it has. An unreliable one must not send it again, and may lose it.
 */
static void take_back(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp)
{
	const bool floor = qp->has_floor;
	uint32_t held = qp->rnr_waiting;
	struct sh_door *door;
	struct sh_wqe wqe;

	sh_qp_to_floor(qp);
	/* Pinned: a thread that was thrown here would forget the answer. */
	door = sh_pin();
	qp->deadline = qp->timer_at = 0;
	qp->timer_gen++;
	qp->rnr_waiting = 0;
	sh_progress(qp);
	if (is_source_gone(qp, held)) {
		sh_fail_source(dev, hca, qp);
		sh_unpin(door);
		return;
	}
	if (!sh_qp_is_reliable(qp) && (qp->sq_next != qp->sq_una || qp->next_psn != qp->una_psn) &&
	    !sh_wqe_fetch(dev, qp, qp->sq_una, &wqe)) {
		/* As if all of it had been sent, for sh_put_off(). */
		qp->sq_next = qp->sq_una + 1;
		if (sh_complete_wqe(dev, hca, qp, &wqe) == -EINPROGRESS) {
			sh_unpin(door);
			return;
		}
	}
	/* An answer that is held tells more. */
	if (floor || !(held & SH_IS_HELD))
		qp->ack_psn = qp->una_psn;
	sh_requester_rewind(qp);
	sh_take_held(dev, hca, qp, held);
	sh_take_left(dev, hca, qp);
	sh_unpin(door);
}

void sh_requester_inherit(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp)
{
	take_back(dev, hca, qp);
	qp->engine = 0;
	sh_requester_run(dev, hca, qp);
}

/*
 * Puts in order an engine that its thread has left in the midst of it. The caller holds the
 * requester's lock. If the engine had come to its end, or another thread has moved the QP to ERR or
 * RESET, nothing is to be done. Returns the HCA; NULL: the QP is gone.
 */
static struct sh_hca *end_engine(struct sh_dev *dev, struct sh_qp *qp, uint32_t token)
{
	const struct sh_ctx *ctx = sh_ctx(dev, qp->ctx);
	struct sh_hca *hca = ctx ? sh_hca(dev, ctx->hca) : NULL;

	if (hca && token && qp->engine == token) {
		take_back(dev, hca, qp);
		if (qp->engine == token)
			qp->engine = 0;
	}
	return hca;
}

static void come_back(struct sh_dev *dev, uint32_t token, uint32_t unused, uint64_t at)
{
	struct sh_qp *qp = (struct sh_qp *)((char *)dev->inst + at);
	struct sh_hca *hca;

	(void)unused;
	if (sh_lock_within(dev, &qp->lock, SH_WAIT_BRIEFLY) && sh_requester_leave(dev, qp, token))
		return;
	/*
	 * The thread that left may have been thrown since, and have ended the engine without
	 * running it.
	 */
	hca = end_engine(dev, qp, token);
	if (hca && !qp->silent)
		sh_requester_run(dev, hca, qp);
	else
		sh_unlock(dev, &qp->lock);
}

static void comes_back(struct sh_dev *dev, uint64_t at, uint64_t token)
{
	sh_catch_in_turn(dev, (uint32_t)token, 0, at, come_back);
}

bool sh_requester_leave(struct sh_dev *dev, struct sh_qp *qp, uint32_t token)
{
	return sh_defer_or_lock(dev, &qp->lock, comes_back,
				(uint64_t)((char *)qp - (char *)dev->inst), token);
}

void sh_requester_thrown(struct sh_dev *dev)
{
	struct sh_engine e = sh_self.engine;

	if (!e.qp)
		return;
	/* It is forgotten last: a thread that is thrown out of here comes back to it. */
	if (sh_lock_within(dev, &e.qp->lock, SH_WAIT_BRIEFLY) &&
	    sh_requester_leave(dev, e.qp, e.token)) {
		sh_self.engine.qp = NULL;
		return;
	}
	end_engine(dev, e.qp, e.token);
	sh_self.engine.qp = NULL;
	sh_unlock(dev, &e.qp->lock);
}
