// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The UD QPs of a datagram rsocket. A datagram that finds no slot of memory is lost, as with UDP.
 */

#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>

#include "rs_dgram.h"

enum { SLOTS_MIN = 16 };

int ds_post_receive(struct ds_qp *qp, uint32_t slot)
{
	struct ibv_sge sge = {.addr = (uintptr_t)ds_slot(qp, slot),
			      .length = DS_GRH + qp->mtu,
			      .lkey = qp->recv_mem.mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1}, *bad;

	return -ibv_post_recv(qp->id->qp, &wr, &bad);
}

bool ds_poll_qp(struct ds_qp *qp)
{
	struct ibv_wc wc[DS_BATCH];
	bool some = false;
	int i, n;

	do {
		n = ibv_poll_cq(qp->cq, DS_BATCH, wc);
		if (n < 0 && !qp->broken)
			qp->broken = some = true;
		for (i = 0; i < n; i++) {
			some = true;
			if (wc[i].status != IBV_WC_SUCCESS) {
				qp->broken = true;
				continue;
			}
			if (!(wc[i].opcode & IBV_WC_RECV)) {
				qp->sq_done = wc[i].wr_id;
				continue;
			}
			qp->ready[qp->ready_tail % qp->recv_slots].slot = (uint32_t)wc[i].wr_id;
			qp->ready[qp->ready_tail % qp->recv_slots].length = wc[i].byte_len;
			qp->ready_tail++;
		}
	} while (n == DS_BATCH);
	return some;
}

static void free_qp(struct ds_qp *qp)
{
	rdma_destroy_qp(qp->id);
	if (qp->cq) {
		if (qp->events)
			ibv_ack_cq_events(qp->cq, qp->events);
		ibv_destroy_cq(qp->cq);
	}
	if (qp->comp) {
		cm_give_up(qp->comp->fd);
		ibv_destroy_comp_channel(qp->comp);
	}
	rs_put_memory(&qp->recv_mem);
	rs_put_memory(&qp->send_mem);
	rdma_destroy_id(qp->id);
	free(qp->ready);
	free(qp);
}

void ds_free_qps(struct rs *rs)
{
	struct ds_qp *qp;

	while ((qp = rs->ds->qps)) {
		rs->ds->qps = qp->next;
		free_qp(qp);
	}
}

void ds_forget_qps(struct rs *rs)
{
	struct ds_qp *qp;

	while ((qp = rs->ds->qps)) {
		rs->ds->qps = qp->next;
		rs_forget_comp_channel(qp->comp);
		rs_forget_memory(&qp->recv_mem);
		rs_forget_memory(&qp->send_mem);
		cm_id_forget(to_cm_id(qp->id));
		free(qp->ready);
		free(qp);
	}
}

static uint32_t slots(uint32_t bytes, uint32_t each, uint32_t most)
{
	uint32_t n = bytes / each;

	if (n > most)
		n = most;
	return n < SLOTS_MIN ? SLOTS_MIN : n;
}

static int make_queues(struct rs *rs, struct ds_qp *qp)
{
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_UD};
	struct epoll_event event = {.events = EPOLLIN};
	int flags;

	errno = 0;
	qp->comp = ibv_create_comp_channel(qp->id->verbs);
	if (!qp->comp)
		return errno ? -errno : -ENOMEM;
	cm_keep(qp->comp->fd);
	flags = fcntl(qp->comp->fd, F_GETFL);
	if (flags < 0 || fcntl(qp->comp->fd, F_SETFL, flags | O_NONBLOCK) ||
	    epoll_ctl(rs->ds->events, EPOLL_CTL_ADD, qp->comp->fd, &event))
		return -errno;
	qp->cq = ibv_create_cq(qp->id->verbs, (int)(qp->recv_slots + qp->send_slots), qp, qp->comp,
			       0);
	if (!qp->cq)
		return errno ? -errno : -ENOMEM;

	attr.send_cq = attr.recv_cq = qp->cq;
	attr.cap.max_send_wr = qp->send_slots;
	attr.cap.max_recv_wr = qp->recv_slots;
	attr.cap.max_send_sge = attr.cap.max_recv_sge = 1;
	attr.cap.max_inline_data = rs->options.inline_size;
	if (rdma_create_qp(qp->id, NULL, &attr)) {
		attr.cap.max_inline_data = 0;
		if (!rs->options.inline_size || rdma_create_qp(qp->id, NULL, &attr))
			return -errno;
	}
	qp->inline_max = attr.cap.max_inline_data < rs->options.inline_size
				 ? attr.cap.max_inline_data
				 : rs->options.inline_size;
	return 0;
}

static int setup(struct rs *rs, struct ds_qp *qp)
{
	struct ibv_port_attr port;
	uint32_t i;
	int ret;

	ret = ibv_query_port(qp->id->verbs, qp->id->port_num, &port);
	if (ret)
		return -ret;
	qp->mtu = 128U << port.active_mtu;
	qp->recv_slots = slots(rs->options.recv_size, DS_GRH + qp->mtu, rs->options.rq_size);
	qp->send_slots = slots(rs->options.send_size, qp->mtu, rs->options.sq_size);
	qp->sq_pos = qp->sq_done = qp->sq_signaled = DS_FIRST_POS;
	qp->ready_head = qp->ready_tail = DS_FIRST_POS;
	qp->ready = calloc(qp->recv_slots, sizeof(*qp->ready));
	if (!qp->ready)
		return -ENOMEM;
	ret = make_queues(rs, qp);
	if (!ret)
		ret = rs_get_memory(qp->id->pd, &qp->recv_mem,
				    (size_t)qp->recv_slots * (DS_GRH + qp->mtu),
				    IBV_ACCESS_LOCAL_WRITE);
	if (!ret)
		ret = rs_get_memory(qp->id->pd, &qp->send_mem, (size_t)qp->send_slots * qp->mtu,
				    IBV_ACCESS_LOCAL_WRITE);
	for (i = 0; !ret && i < qp->recv_slots; i++)
		ret = ds_post_receive(qp, i);
	return ret;
}

int ds_get_qp(struct rs *rs, struct rdma_cm_id **id, struct ds_qp **result)
{
	struct ds_qp *qp;
	int ret;

	for (qp = rs->ds->qps; qp; qp = qp->next) {
		if (qp->id->verbs == (*id)->verbs && qp->id->port_num == (*id)->port_num) {
			*result = qp;
			return 0;
		}
	}
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return -ENOMEM;
	qp->id = *id;
	*id = NULL;
	ret = setup(rs, qp);
	if (ret) {
		free_qp(qp);
		return ret;
	}
	qp->next = rs->ds->qps;
	rs->ds->qps = qp;
	rs_wake(rs);
	*result = qp;
	return 0;
}
