// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The waits of a requester: for a receiver that was not ready, and for acknowledgements that do not
 * come. The deadline is in the QP, under its lock. At most one pending call of the helper thread
 * counts, and that one looks at the deadline again.
 */
#include "softhca/device/queues/cqe.h"
#include "softhca/device/queues/flush.h"
#include "softhca/device/queues/migrate.h"
#include "completer.h"
#include "requester.h"
#include "timer.h"
#include "wire.h"

static const uint16_t rnr_10us[32] = {
	0,    1,    2,	  3,	4,    6,     8,	    12,	   16,	  24,	 32,
	48,   64,   96,	  128,	192,  256,   384,   512,   768,	  1024,	 1536,
	2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
};

uint64_t sh_rnr_ns(uint32_t code)
{
	return (code & 31 ? rnr_10us[code & 31] : 65536) * UINT64_C(10000);
}

uint64_t sh_ack_ns(uint32_t code)
{
	return code & 31 ? UINT64_C(4096) << (code & 31) : 0;
}

#define RNR_EXACT   8 /* NAKs in a row after which it waits exactly as long as they say */
#define RNR_DOUBLES 6 /* further NAKs that double the wait */
#define RNR_LONGEST UINT64_C(16000000)

/*
 * To try again costs a card nothing, but here it takes a processor from the very receiver that is
 * to become ready. So a requester that may try for ever waits for an eighth of the time that it has
 * already waited, or for 16 ms, if that is longer than what the responder asks for. The
 * specification allows it: the responder's time is the shortest one. Where attempts are counted,
 * each takes as long as it says.
 */
uint64_t sh_rnr_wait(struct sh_qp *qp, uint32_t code)
{
	uint64_t ns = sh_rnr_ns(code), longer = ns;
	uint32_t row = qp->rnr_left - SH_RNR_FOREVER;

	if (qp->rnr_retry != SH_RNR_FOREVER)
		return ns;
	if (row >= RNR_EXACT) {
		row -= RNR_EXACT;
		longer =
			(ns << row / RNR_DOUBLES) * (RNR_DOUBLES + row % RNR_DOUBLES) / RNR_DOUBLES;
	}
	if (longer > RNR_LONGEST)
		return ns > RNR_LONGEST ? ns : RNR_LONGEST;
	qp->rnr_left++;
	return longer;
}

static void fires(struct sh_dev *dev, uint64_t key, uint64_t gen);

static void set(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp)
{
	if (qp->timer_at && qp->timer_at <= qp->deadline)
		return;
	qp->timer_at = qp->deadline;
	qp->timer_gen++;
	/*
	 * If no timer could be set, the QP must not look as if one were set: then the next doorbell
	 * sets one, or does what it was to do (sh_timer_missed()).
	 */
	if (sh_defer(dev, qp->deadline, fires, (uint64_t)hca->index << 32 | qp->qpn, qp->timer_gen))
		qp->timer_at = qp->deadline = 0;
}

void sh_timer_arm(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, uint64_t deadline)
{
	qp->deadline = deadline;
	set(dev, hca, qp);
}

static void go_back(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp)
{
	SH_COUNT(hca, retries, 1);
	qp->retries++;
	if (dev->wire)
		sh_wire_pace_again(dev, hca, qp);
	sh_requester_rewind(qp);
}

void sh_put_off(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp)
{
	if (sh_qp_is_reliable(qp)) {
		qp->retries++;
		sh_requester_rewind(qp);
	}
	/* An answer that is held stays. */
	if (!(qp->rnr_waiting & SH_PUT_OFF))
		qp->rnr_waiting = SH_PUT_OFF;
	sh_timer_arm(dev, hca, qp, dev->ops->now(dev->host) + SH_PUT_OFF_NS);
}

void sh_fail_oldest(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, uint8_t syndrome,
		    uint8_t vendor)
{
	if (sh_send_failed(dev, hca, qp, syndrome, vendor))
		sh_put_off(dev, hca, qp);
}

void sh_fail_source(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp)
{
	sh_fail_oldest(dev, hca, qp, MLX4_SYNDROME_LOC_PROT, SH_VENDOR_NONE);
	/* What an unreliable service has sent, it does not send again. */
	if (!sh_qp_is_reliable(qp) && qp->rnr_waiting & SH_PUT_OFF)
		qp->rnr_waiting |= SH_SOURCE_GONE;
}

void sh_retry(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp)
{
	const uint8_t armed = qp->mig_state == SH_MIG_ARMED ? SH_RETRY_ARMED : 0;

	qp->deadline = 0;
	/* The peer, or the program, has moved the QP since: it has all retries on its new path. */
	if (!armed && qp->retry_left & SH_RETRY_ARMED)
		qp->retry_left = qp->retry_cnt;
	if (!SH_RETRY_LEFT(qp->retry_left)) {
		if (qp->mig_state != SH_MIG_ARMED) {
			sh_fail_oldest(dev, hca, qp, MLX4_SYNDROME_RETRY_EXC, SH_VENDOR_RETRY);
			return;
		}
		if (sh_lock_within(dev, &qp->rlock, SH_WAIT_BRIEFLY)) {
			sh_put_off(dev, hca, qp);
			return;
		}
		sh_migrate(dev, hca, qp);
		sh_unlock(dev, &qp->rlock);
		qp->retry_left = qp->retry_cnt;
	} else {
		qp->retry_left = (uint8_t)(SH_RETRY_LEFT(qp->retry_left) - 1) | armed;
	}
	go_back(dev, hca, qp);
}

/*
 * The loss of the last packet, or of the only answer, shows only as silence. On the wire that
 * happens, and the time-out of the QP is long. So the requester first sends its oldest packet once
 * more, alone and ahead of time (a *probe*), which takes none of its retries. If that packet had
 * arrived, the answer says what else has; if not, it is what the responder waits for.
 */
static bool probe(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp)
{
	if (!dev->wire || qp->probed == qp->ack_psn + 1)
		return false;
	qp->probed = qp->ack_psn + 1;
	go_back(dev, hca, qp);
	return true;
}

/*
 * Retires what an unreliable service has sent, if its CQE was put off (sh_put_off()). held: as in
 * sh_take_held().
 */
static void retire(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, uint32_t held)
{
	struct sh_wqe wqe;

	if (held & SH_SOURCE_GONE)
		sh_fail_source(dev, hca, qp);
	else if (!sh_qp_is_reliable(qp) && qp->sq_next != qp->sq_una &&
		 !sh_wqe_fetch(dev, qp, qp->sq_una, &wqe) && !sh_complete_wqe(dev, hca, qp, &wqe))
		sh_requester_rewind(qp);
}

/* Prepares the requester to send again. */
static void expire(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp)
{
	qp->deadline = 0;
	qp->went_back = 0;
	if (qp->rnr_waiting) {
		uint32_t held = qp->rnr_waiting;

		qp->rnr_waiting = 0;
		retire(dev, hca, qp, held);
		sh_take_held(dev, hca, qp, held);
	} else if (qp->ack_psn != qp->sent_psn &&
		   (qp->state == SH_QPS_RTS || qp->state == SH_QPS_SQD) && !probe(dev, hca, qp)) {
		sh_retry(dev, hca, qp);
	}
}

void sh_timer_missed(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp)
{
	struct sh_door *door = sh_pin();

	expire(dev, hca, qp);
	sh_unpin(door);
}

/*
 * The thread is pinned while it counts a retry, which it must not do twice. If it is thrown before
 * or after that, it begins anew. It then runs the requester in any case: the timer may be gone.
 */
static void fire(struct sh_dev *dev, uint32_t index, uint32_t qpn, uint64_t gen)
{
	struct sh_hca *hca = sh_hca(dev, index);
	struct sh_qp *qp = sh_qp_get(dev, index, qpn & MLX4_QPN_MASK);
	struct sh_door *door;
	bool due = false;

	if (!hca || !qp)
		return;
	if (sh_lock_within(dev, &qp->lock, SH_WAIT_BRIEFLY) &&
	    sh_defer_or_lock(dev, &qp->lock, fires, (uint64_t)index << 32 | qpn, gen))
		return;
	if (qp->qpn != (qpn & MLX4_QPN_MASK)) {
		sh_unlock(dev, &qp->lock);
		return;
	}
	door = sh_pin();
	if (qp->timer_gen == (uint32_t)gen) {
		qp->timer_at = 0;
		due = qp->deadline && qp->deadline <= dev->ops->now(dev->host);
		if (due)
			expire(dev, hca, qp);
		else if (qp->deadline)
			set(dev, hca, qp);
	}
	sh_unpin(door);
	if (due || (sh_self.again && !qp->silent))
		sh_requester_run(dev, hca, qp);
	else
		sh_unlock(dev, &qp->lock);
}

static void fires(struct sh_dev *dev, uint64_t key, uint64_t gen)
{
	sh_catch_in_turn(dev, (uint32_t)(key >> 32), (uint32_t)key, gen, fire);
}
