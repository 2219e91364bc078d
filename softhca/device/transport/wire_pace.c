// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Measures how long answers on the wire take, so that a requester that hears nothing neither waits
 * long after a loss nor repeats what is merely late. Where programs share processors, either engine
 * may have to wait for one, which is why most late answers are late. So the longest recent time
 * counts, not the mean, and it counts for all QPs that send to that port.
 *
 * A packet that was sent twice is not timed, since an answer may be to either of the two. But if
 * neither was lost, two answers come: then answers take at least as long as the requester waited.
 */
#include "requester.h"
#include "wire.h"

/* Longer than answers take on most networks, if their machines are not busy. */
#define LEAST_NS     UINT64_C(5000000)
#define LONGEST_NS   UINT64_C(1000000000)
#define HALF_NS	     UINT64_C(2000000000) /* after so long, a time counts half */
#define FORGOTTEN_NS UINT64_C(1000000000) /* a packet that is timed for longer gets no answer */

static struct sh_wire_pace *pace_of(struct sh_dev *dev, const struct sh_qp *qp)
{
	return dev->wire && dev->wire->pace ? dev->wire->pace(dev, qp->path.dlid) : NULL;
}

static uint64_t of_late(const struct sh_wire_pace *pace, uint64_t now)
{
	uint64_t at = __atomic_load_n(&pace->at, __ATOMIC_RELAXED);
	uint64_t halved = now > at ? (now - at) / HALF_NS : 0;

	return halved > 63 ? 0 : __atomic_load_n(&pace->longest, __ATOMIC_RELAXED) >> halved;
}

static void take(struct sh_wire_pace *pace, uint64_t ns, uint64_t now)
{
	if (ns > LONGEST_NS)
		ns = LONGEST_NS;
	if (ns < of_late(pace, now))
		return;
	__atomic_store_n(&pace->longest, ns, __ATOMIC_RELAXED);
	__atomic_store_n(&pace->at, now, __ATOMIC_RELAXED);
}

static uint64_t wait_of(const struct sh_wire_pace *pace, uint64_t now)
{
	uint64_t ns = 2 * of_late(pace, now);

	return ns > LEAST_NS ? ns : LEAST_NS;
}

uint64_t sh_wire_pace(struct sh_dev *dev, const struct sh_qp *qp)
{
	const struct sh_wire_pace *pace = pace_of(dev, qp);

	return pace ? wait_of(pace, dev->ops->now(dev->host)) : LEAST_NS;
}

/* The name of a packet, by its QP and PSN; never 0. */
static uint64_t name_of(const struct sh_hca *hca, const struct sh_qp *qp, uint32_t psn)
{
	return ((uint64_t)hca->index << 48 | (uint64_t)qp->qpn << 24 | psn) + 1;
}

static bool is_of(uint64_t name, const struct sh_hca *hca, const struct sh_qp *qp)
{
	return name && (name - 1) >> 24 == name_of(hca, qp, 0) >> 24;
}

void sh_wire_pace_begin(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, uint64_t now)
{
	struct sh_wire_pace *pace = pace_of(dev, qp);
	uint64_t timed;

	if (!pace)
		return;
	/* Left behind by half a circle of PSNs, it would seem to be ahead. */
	if (sh_psn_diff(qp->ack_psn, qp->wire_again) > 0)
		qp->wire_again = qp->ack_psn;
	if (sh_psn_diff(qp->next_psn, qp->wire_again) <= 0)
		return;
	timed = __atomic_load_n(&pace->timed, __ATOMIC_RELAXED);
	if (timed && now < __atomic_load_n(&pace->from, __ATOMIC_RELAXED) + FORGOTTEN_NS)
		return;
	__atomic_store_n(&pace->from, now, __ATOMIC_RELAXED);
	__atomic_compare_exchange_n(&pace->timed, &timed,
				    name_of(hca, qp, sh_psn_add(qp->next_psn, (uint32_t)-1)), false,
				    __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

void sh_wire_pace_end(struct sh_dev *dev, struct sh_hca *hca, const struct sh_qp *qp)
{
	struct sh_wire_pace *pace = pace_of(dev, qp);
	uint64_t timed = pace ? __atomic_load_n(&pace->timed, __ATOMIC_ACQUIRE) : 0, from, now;

	if (!is_of(timed, hca, qp) ||
	    sh_psn_diff(qp->ack_psn, (uint32_t)(timed - 1) & SH_PSN_MASK) <= 0)
		return;
	from = __atomic_load_n(&pace->from, __ATOMIC_RELAXED);
	now = dev->ops->now(dev->host);
	if (__atomic_compare_exchange_n(&pace->timed, &timed, 0, false, __ATOMIC_RELAXED,
					__ATOMIC_RELAXED) &&
	    now > from)
		take(pace, now - from, now);
}

void sh_wire_pace_again(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp)
{
	struct sh_wire_pace *pace = pace_of(dev, qp);
	uint64_t timed = pace ? __atomic_load_n(&pace->timed, __ATOMIC_RELAXED) : 0;

	if (sh_psn_diff(qp->wire_psn, qp->wire_again) > 0)
		qp->wire_again = qp->wire_psn;
	if (is_of(timed, hca, qp))
		__atomic_compare_exchange_n(&pace->timed, &timed, 0, false, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED);
}

void sh_wire_pace_twice(struct sh_dev *dev, struct sh_qp *qp)
{
	struct sh_wire_pace *pace = qp->probed ? pace_of(dev, qp) : NULL;
	uint64_t now;

	if (!pace || sh_psn_diff(qp->ack_psn, (qp->probed - 1) & SH_PSN_MASK) <= 0)
		return;
	qp->probed = 0;
	now = dev->ops->now(dev->host);
	take(pace, wait_of(pace, now), now);
}
