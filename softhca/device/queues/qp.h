/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * QPs: how they come to be and end, and what they tell of themselves. 0 or -errno. The daemon alone
 * calls these.
 */
#ifndef SOFTHCA_DEVICE_QUEUES_QP_H
#define SOFTHCA_DEVICE_QUEUES_QP_H

#include "softhca/device/memory/dev.h"
#include "softhca/device/memory/qp_attr.h"

struct sh_qp;
struct sh_qp_init {
	uint32_t ctx;  /* 0 = kernel-made XRC receive QP: no queues, no CQs */
	uint32_t type; /* enum sh_qp_type */
	uint32_t pdn, send_cqn, recv_cqn, srqn; /* 0 = none */
	uint32_t xrcd;
	uint32_t sq_sig_all;
	uint32_t block_self_mcast; /* datagrams to groups do not come back to it */
	/* Log2 of the number of WQEs. A queue with *_present 0 has size 0. */
	uint32_t log_sq_size, sq_shift;
	uint32_t log_rq_size, rq_shift;
	uint32_t sq_present, rq_present;
	uint64_t user_handle;
	struct sh_umem buf;
	struct sh_umem rq_db; /* 4 bytes */
	/* Capabilities as a query reports them. */
	uint32_t cap_recv_wr, cap_recv_sge;
};

int sh_qp_create(struct sh_dev *dev, uint32_t hca, uint32_t qpn, const struct sh_qp_init *init);

int sh_qp_query(struct sh_dev *dev, uint32_t hca, uint32_t qpn, struct sh_qp_attr *attr);
/* The same without locks, for a QP whose locks a client does not let go of. */
int sh_qp_peek(struct sh_dev *dev, uint32_t hca, uint32_t qpn, struct sh_qp_attr *attr);
/*
 * Once it has returned, the device writes no CQE of the QP. -EINPROGRESS: a client holds a lock, or
 * the wire's engine is about to send what was posted.
 */
int sh_qp_destroy(struct sh_dev *dev, uint32_t hca, uint32_t qpn, uint32_t *async_events);
/*
 * The same in two halves, for an object whose lock a client does not let go of. CQs and SRQs have
 * both halves as well. After _end no thread finds the object any more; it reports what
 * sh_*_destroy() reports. The number and the memory of the object stay in use until _reclaim has
 * returned 0. _reclaim needs the lock: -EINPROGRESS.
 */
uint32_t sh_qp_end(struct sh_dev *dev, uint32_t hca, uint32_t qpn);
int sh_qp_reclaim(struct sh_dev *dev, uint32_t hca, uint32_t qpn);
struct sh_qp_info {
	uint32_t qpn, ctx, type, state, pdn, send_cqn, recv_cqn, srqn, xrcd, dest_qpn, dlid, port;
	uint32_t sq_posted_unfinished, rq_available, retry_left, rnr_left;
	uint64_t messages_sent, messages_received; /* modulo 2^32 */
	uint64_t xmit_data, rcv_data;		   /* bytes of payload since it has had its port */
	uint32_t retries;
	/* Packets that vanished and were for it, or that it sent and that reached no QP. */
	uint32_t drops;
};
int sh_qp_info(struct sh_dev *dev, uint32_t hca, uint32_t qpn, struct sh_qp_info *info);
/*
 * The counters of an HCA, which must exist, with those that its QPs keep themselves. Only for the
 * daemon, because only the daemon ends QPs.
 */
void sh_counters(struct sh_dev *dev, uint32_t hca, struct sh_counters *out);
/* The same for the traffic of each of its ports. */
void sh_traffic(struct sh_dev *dev, uint32_t hca, struct sh_traffic out[SH_MAX_PORTS]);
/*
 * The QP goes to another port, or ends: what it has counted stays with the port. The caller has
 * both locks of the QP, or has made it unreachable. A death in here may count some packets twice.
 */
void sh_qp_leave_port(struct sh_hca *hca, struct sh_qp *qp);
/*
 * Sets the registrations of an XRC receive QP, each of which gets its events: the head of a list in
 * the table of registrations. Only the daemon changes the list.
 */
int sh_qp_set_xrc_regs(struct sh_dev *dev, uint32_t hca, uint32_t qpn, uint32_t head);
/*
 * The address space of the QP's context has ended, or the card has failed: the QP becomes silent,
 * to its peers and its owner.
 */
int sh_qp_silence(struct sh_dev *dev, uint32_t hca, uint32_t qpn);

#endif
