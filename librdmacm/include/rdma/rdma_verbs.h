// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Verbs on ids, for programs that use one QP with one buffer at a time. All functions are inline.
 * Unless one says otherwise, it returns 0 or a positive number, or -1 with the errno of its verb.
 */

#ifndef RDMA_RDMA_VERBS_H
#define RDMA_RDMA_VERBS_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Turns what a verb returned into -1 with errno; 0 and -1 stay. */
static inline int rdma_seterrno(int ret)
{
	if (ret > 0) {
		errno = ret;
		ret = -1;
	}
	return ret;
}

/*
 * Memory regions in the id's PD
 */

/* Registers memory for messages. */
static inline struct ibv_mr *rdma_reg_msgs(struct rdma_cm_id *id, void *addr, size_t length)
{
	return ibv_reg_mr(id->pd, addr, length, IBV_ACCESS_LOCAL_WRITE);
}

/* Registers memory that the peer reads. */
static inline struct ibv_mr *rdma_reg_read(struct rdma_cm_id *id, void *addr, size_t length)
{
	return ibv_reg_mr(id->pd, addr, length, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
}

/* Registers memory that the peer writes. */
static inline struct ibv_mr *rdma_reg_write(struct rdma_cm_id *id, void *addr, size_t length)
{
	return ibv_reg_mr(id->pd, addr, length, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
}

/* Ends a registration. */
static inline int rdma_dereg_mr(struct ibv_mr *mr)
{
	return rdma_seterrno(ibv_dereg_mr(mr));
}

/*
 * Posts of several pieces of memory. context comes back as wr_id.
 */

/* Posts a receive, to the id's SRQ if it has one. */
static inline int rdma_post_recvv(struct rdma_cm_id *id, void *context, struct ibv_sge *sgl,
				  int nsge)
{
	struct ibv_recv_wr wr, *bad;

	wr.wr_id = (uintptr_t)context;
	wr.next = NULL;
	wr.sg_list = sgl;
	wr.num_sge = nsge;

	if (id->srq)
		return rdma_seterrno(ibv_post_srq_recv(id->srq, &wr, &bad));
	return rdma_seterrno(ibv_post_recv(id->qp, &wr, &bad));
}

/* Posts a send. */
static inline int rdma_post_sendv(struct rdma_cm_id *id, void *context, struct ibv_sge *sgl,
				  int nsge, int flags)
{
	struct ibv_send_wr wr, *bad;

	wr.wr_id = (uintptr_t)context;
	wr.next = NULL;
	wr.sg_list = sgl;
	wr.num_sge = nsge;
	wr.opcode = IBV_WR_SEND;
	wr.send_flags = flags;

	return rdma_seterrno(ibv_post_send(id->qp, &wr, &bad));
}

/* Posts an RDMA READ of the peer's memory. */
static inline int rdma_post_readv(struct rdma_cm_id *id, void *context, struct ibv_sge *sgl,
				  int nsge, int flags, uint64_t remote_addr, uint32_t rkey)
{
	struct ibv_send_wr wr, *bad;

	wr.wr_id = (uintptr_t)context;
	wr.next = NULL;
	wr.sg_list = sgl;
	wr.num_sge = nsge;
	wr.opcode = IBV_WR_RDMA_READ;
	wr.send_flags = flags;
	wr.wr.rdma.remote_addr = remote_addr;
	wr.wr.rdma.rkey = rkey;

	return rdma_seterrno(ibv_post_send(id->qp, &wr, &bad));
}

/* Posts an RDMA WRITE to the peer's memory. */
static inline int rdma_post_writev(struct rdma_cm_id *id, void *context, struct ibv_sge *sgl,
				   int nsge, int flags, uint64_t remote_addr, uint32_t rkey)
{
	struct ibv_send_wr wr, *bad;

	wr.wr_id = (uintptr_t)context;
	wr.next = NULL;
	wr.sg_list = sgl;
	wr.num_sge = nsge;
	wr.opcode = IBV_WR_RDMA_WRITE;
	wr.send_flags = flags;
	wr.wr.rdma.remote_addr = remote_addr;
	wr.wr.rdma.rkey = rkey;

	return rdma_seterrno(ibv_post_send(id->qp, &wr, &bad));
}

/*
 * Posts of one piece of memory. mr may be NULL where flags have IBV_SEND_INLINE.
 */

/* Posts a receive; mr must be valid. */
static inline int rdma_post_recv(struct rdma_cm_id *id, void *context, void *addr, size_t length,
				 struct ibv_mr *mr)
{
	struct ibv_sge sge;

	sge.addr = (uintptr_t)addr;
	sge.length = (uint32_t)length;
	sge.lkey = mr->lkey;

	return rdma_post_recvv(id, context, &sge, 1);
}

/* Posts a send. */
static inline int rdma_post_send(struct rdma_cm_id *id, void *context, void *addr, size_t length,
				 struct ibv_mr *mr, int flags)
{
	struct ibv_sge sge;

	sge.addr = (uintptr_t)addr;
	sge.length = (uint32_t)length;
	sge.lkey = mr ? mr->lkey : 0;

	return rdma_post_sendv(id, context, &sge, 1, flags);
}

/* Posts an RDMA READ; mr must be valid. */
static inline int rdma_post_read(struct rdma_cm_id *id, void *context, void *addr, size_t length,
				 struct ibv_mr *mr, int flags, uint64_t remote_addr, uint32_t rkey)
{
	struct ibv_sge sge;

	sge.addr = (uintptr_t)addr;
	sge.length = (uint32_t)length;
	sge.lkey = mr->lkey;

	return rdma_post_readv(id, context, &sge, 1, flags, remote_addr, rkey);
}

/* Posts an RDMA WRITE. */
static inline int rdma_post_write(struct rdma_cm_id *id, void *context, void *addr, size_t length,
				  struct ibv_mr *mr, int flags, uint64_t remote_addr, uint32_t rkey)
{
	struct ibv_sge sge;

	sge.addr = (uintptr_t)addr;
	sge.length = (uint32_t)length;
	sge.lkey = mr ? mr->lkey : 0;

	return rdma_post_writev(id, context, &sge, 1, flags, remote_addr, rkey);
}

/* Posts a datagram to a service; its Q_Key is RDMA_UDP_QKEY. */
static inline int rdma_post_ud_send(struct rdma_cm_id *id, void *context, void *addr, size_t length,
				    struct ibv_mr *mr, int flags, struct ibv_ah *ah,
				    uint32_t remote_qpn)
{
	struct ibv_send_wr wr, *bad;
	struct ibv_sge sge;

	sge.addr = (uintptr_t)addr;
	sge.length = (uint32_t)length;
	sge.lkey = mr ? mr->lkey : 0;

	wr.wr_id = (uintptr_t)context;
	wr.next = NULL;
	wr.sg_list = &sge;
	wr.num_sge = 1;
	wr.opcode = IBV_WR_SEND;
	wr.send_flags = flags;
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = remote_qpn;
	wr.wr.ud.remote_qkey = RDMA_UDP_QKEY;

	return rdma_seterrno(ibv_post_send(id->qp, &wr, &bad));
}

/*
 * Completions of the CQs that rdma_create_qp() has made
 */

/* Waits for one completion of cq, which belongs to channel. Returns 1, or -1. */
static inline int rdma_get_comp(struct ibv_comp_channel *channel, struct ibv_cq *cq,
				struct ibv_wc *wc)
{
	struct ibv_cq *of;
	void *context;
	int ret;

	for (;;) {
		ret = ibv_poll_cq(cq, 1, wc);
		if (ret)
			return ret < 0 ? -1 : ret;
		ret = ibv_req_notify_cq(cq, 0);
		if (ret)
			return rdma_seterrno(ret);
		/* What came before the request causes no event. */
		ret = ibv_poll_cq(cq, 1, wc);
		if (ret)
			return ret < 0 ? -1 : ret;
		if (ibv_get_cq_event(channel, &of, &context))
			return -1;
		ibv_ack_cq_events(of, 1);
	}
}

/* Waits for the completion of a send. Returns 1, or -1. */
static inline int rdma_get_send_comp(struct rdma_cm_id *id, struct ibv_wc *wc)
{
	return rdma_get_comp(id->send_cq_channel, id->send_cq, wc);
}

/* Waits for the completion of a receive. Returns 1, or -1. */
static inline int rdma_get_recv_comp(struct rdma_cm_id *id, struct ibv_wc *wc)
{
	return rdma_get_comp(id->recv_cq_channel, id->recv_cq, wc);
}

#ifdef __cplusplus
}
#endif

#endif /* RDMA_RDMA_VERBS_H */
