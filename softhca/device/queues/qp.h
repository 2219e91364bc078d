/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * QPs: how they come to be and end, and what they tell of themselves. 0 or -errno. The daemon alone calls these.
 */
#ifndef SOFTHCA_DEVICE_QUEUES_QP_H
#define SOFTHCA_DEVICE_QUEUES_QP_H

#include "softhca/device/memory/dev.h"
#include "softhca/device/memory/qp_attr.h"

struct sh_qp_init {
	uint32_t ctx;			/* 0 = kernel-made XRC receive QP: no queues, no CQs */
	uint32_t type;			/* enum sh_qp_type */
	uint32_t pdn, send_cqn, recv_cqn, srqn;	/* 0 = none */
	uint32_t xrcd;
	uint32_t sq_sig_all;
	uint32_t log_sq_size, sq_shift;	/* log_sq_size/rq: log2 of WQE count; sizes 0 with *_present 0 */
	uint32_t log_rq_size, rq_shift;
	uint32_t sq_present, rq_present;
	uint64_t user_handle;
	struct sh_umem buf;
	struct sh_umem rq_db;		/* 4 bytes */
	/* caps as query reports them */
	uint32_t cap_recv_wr, cap_recv_sge;
};

int sh_qp_create(struct sh_dev *dev, uint32_t hca, uint32_t qpn, const struct sh_qp_init *init);

int sh_qp_query(struct sh_dev *dev, uint32_t hca, uint32_t qpn, struct sh_qp_attr *attr);
/* The same without locks, for a QP whose locks a client does not let go. */
int sh_qp_peek(struct sh_dev *dev, uint32_t hca, uint32_t qpn, struct sh_qp_attr *attr);
/* No CQE for it after return. */
int sh_qp_destroy(struct sh_dev *dev, uint32_t hca, uint32_t qpn, uint32_t *async_events);
/*
 * The same in two halves, for an object whose lock a client does not let go; for CQs and SRQs as well. _end: no thread finds
 * it any more; what it reports as sh_*_destroy() does. Its number and memory stay taken until _reclaim, which needs the lock
 * (-EINPROGRESS), has returned 0.
 */
uint32_t sh_qp_end(struct sh_dev *dev, uint32_t hca, uint32_t qpn);
int sh_qp_reclaim(struct sh_dev *dev, uint32_t hca, uint32_t qpn);
struct sh_qp_info {
	uint32_t qpn, ctx, type, state, pdn, send_cqn, recv_cqn, srqn, xrcd, dest_qpn, dlid, port;
	uint32_t sq_posted_unfinished, rq_available, retry_left, rnr_left;
	uint64_t messages_sent, messages_received;
};
int sh_qp_info(struct sh_dev *dev, uint32_t hca, uint32_t qpn, struct sh_qp_info *info);
/* The counters of an HCA that exists, with those that its QPs keep for themselves. For the daemon, which alone ends QPs. */
void sh_counters(struct sh_dev *dev, uint32_t hca, struct sh_counters *out);
/* Registrations of an XRC receive QP (events go to each): head of a list in the reg table, which the kernel alone changes. */
int sh_qp_set_regs(struct sh_dev *dev, uint32_t hca, uint32_t qpn, uint32_t head);
/*
 * The address space of a context ended, or the card: its QPs become silent, to their peers and
 * their owner.
 */
int sh_qp_silence(struct sh_dev *dev, uint32_t hca, uint32_t qpn);

#endif
