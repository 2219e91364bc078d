/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the targets with a pair of QPs do to the pair between steps. No function asserts: QPs may be
 * in any state.
 */
#ifndef TESTS_FUZZ_REVIVE_H
#define TESTS_FUZZ_REVIVE_H

#include <string.h>

#include "softhca_pair.h"
#include "softhca/device/queues/transitions.h"

/* Moves the QP from any state to RTS, with empty queues. */
static void revive(struct tqp *qp, const struct sh_qp_attr *attr)
{
	static const struct {
		uint32_t state, mask;
	} way[] = {
		{SH_QPS_RESET, SH_QPA_STATE},
		{SH_QPS_INIT, SH_QPA_STATE | SH_QPA_PKEY_INDEX | SH_QPA_PORT},
		{SH_QPS_RTR, SH_QPA_STATE},
		{SH_QPS_RTS, SH_QPA_STATE | SH_QPA_SQ_PSN},
	};
	bool ud = qp->type == SH_QPT_UD, acked = !ud && qp->type != SH_QPT_UC;
	struct sh_qp_attr a = *attr;

	for (int i = 0; i < 4; i++) {
		uint32_t mask = way[i].mask;

		a.qp_state = way[i].state;
		if (i == 1)
			mask |= ud ? SH_QPA_QKEY : SH_QPA_ACCESS_FLAGS;
		if (i == 2 && !ud)
			mask |= SH_QPA_AV | SH_QPA_PATH_MTU | SH_QPA_DEST_QPN | SH_QPA_RQ_PSN;
		if (i == 2 && acked)
			mask |= SH_QPA_MAX_DEST_RD_ATOMIC | SH_QPA_MIN_RNR_TIMER;
		if (i == 3 && acked)
			mask |= SH_QPA_TIMEOUT | SH_QPA_RETRY_CNT | SH_QPA_RNR_RETRY |
				SH_QPA_MAX_QP_RD_ATOMIC;
		(void)tqp_modify(qp, &a, mask);
	}
	/* The test's own indices into the rings begin anew, too. */
	qp->head = qp->rq_head = 0;
	if (qp->buf.len)
		memset(mock_ptr(&qp->buf), 0xff, qp->buf.len);
}

static void drain(struct tcq *cq)
{
	struct mlx4_cqe cqe;

	for (unsigned int i = 0; i < 1u << cq->log_size && tcq_poll(cq, &cqe); i++)
		;
}

/*
 * Lets a second pass. Meanwhile no new timer is set: a call that is due could defer itself to the
 * present moment again, for ever.
 */
static void let_time_pass(struct mock *m)
{
	m->no_timers = true;
	mock_advance(m, 1000000000);
	m->no_timers = false;
}

#endif
