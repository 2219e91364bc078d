// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Waits for completions: events and their acknowledgement, limits on waiting, and the meaning of
 * failed completions. */

#include <config.h>

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "pingpong.h"

/* Empty polls between two readings of the clock. */
#define IDLE_POLLS 4096
/* Acknowledge in batches, because each call takes a lock. The counters have 32 bits. */
#define ACK_BATCH 1024

static int timed_out(int timeout)
{
	return pp_fail(
		ETIMEDOUT,
		"Is the other side still running, and was -n the same there? On UC and UD a lost "
		"message is lost for good.",
		"No completion in %d second%s", timeout, pp_plural(timeout));
}

int pp_arm(struct pp_queue *queues, int n)
{
	for (int i = 0; i < n; i++) {
		int err = ibv_req_notify_cq(queues[i].cq, 0);

		if (err)
			return pp_fail(err, NULL, "Couldn't request CQ notification");
	}
	return 0;
}

int pp_wait_event(struct ibv_comp_channel *channel, struct pp_queue *queues, int n, int timeout)
{
	struct ibv_cq *cq;
	void *cq_context;

	if (timeout) {
		struct pollfd fd = {.fd = channel->fd, .events = POLLIN};
		int ready;

		do
			ready = poll(&fd, 1, timeout * 1000);
		while (ready < 0 && errno == EINTR);
		if (!ready)
			return timed_out(timeout);
	}
	errno = 0;
	while (ibv_get_cq_event(channel, &cq, &cq_context)) {
		if (errno != EINTR)
			return pp_fail(errno, NULL, "Failed to get cq_event");
	}
	for (int i = 0; i < n; i++) {
		if (queues[i].cq != cq)
			continue;
		if (++queues[i].unacked == ACK_BATCH) {
			ibv_ack_cq_events(cq, ACK_BATCH);
			queues[i].unacked = 0;
		}
		return pp_arm(&queues[i], 1);
	}
	return pp_fail(0, NULL, "CQ event for unknown CQ %p", (void *)cq);
}

void pp_ack_all(struct pp_queue *queues, int n)
{
	for (int i = 0; i < n; i++) {
		if (queues[i].unacked)
			ibv_ack_cq_events(queues[i].cq, queues[i].unacked);
		queues[i].unacked = 0;
	}
}

static const char *wc_advice(enum ibv_wc_status status)
{
	switch (status) {
	case IBV_WC_RETRY_EXC_ERR:
		return "The other side no longer answers, or no path leads there: was it stopped, "
		       "was -n the same there, is its port active, does -m suit both?";
	case IBV_WC_RNR_RETRY_EXC_ERR:
		return "The other side posts no receives.";
	case IBV_WC_LOC_LEN_ERR:
	case IBV_WC_REM_INV_REQ_ERR:
		return "Both sides need the same size (-s).";
	case IBV_WC_WR_FLUSH_ERR:
		return "The QP had failed before this request; an earlier completion or "
		       "`ibv_asyncwatch` says why.";
	default:
		return NULL;
	}
}

int pp_wc_failed(const struct ibv_wc *wc)
{
	return pp_fail(0, wc_advice(wc->status),
		       "Failed status %s (%d) for wr_id %d on QP 0x%06" PRIx32
		       ", vendor error 0x%02" PRIx32,
		       ibv_wc_status_str(wc->status), wc->status, (int)wc->wr_id, wc->qp_num,
		       wc->vendor_err);
}

int pp_idle(struct pp_watch *watch, int timeout)
{
	if (!timeout)
		return 0;
	if (!watch->idle++)
		watch->since = pp_now_usec();
	else if (watch->idle % IDLE_POLLS == 0 &&
		 pp_now_usec() - watch->since > timeout * 1000000ull)
		return timed_out(timeout);
	return 0;
}
