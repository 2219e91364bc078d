// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What a process does with a queue pair, and how it measures that.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "qp_scale.h"

void die(const char *fmt, ...)
{
	int err = errno;
	va_list ap;

	va_start(ap, fmt);
	fprintf(stderr, "qp_scale: ");
	vfprintf(stderr, fmt, ap);
	fprintf(stderr, ": %s\n", strerror(err));
	va_end(ap);
	exit(1);
}

double now_us(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double median(double *v, int n)
{
	qsort(v, (size_t)n, sizeof(*v), by_value);
	return v[n / 2];
}

void open_side(struct side *s, enum kind kind)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_port_attr port;

	s->kind = kind;
	if (!list || !list[0])
		die("no device");
	s->ctx = ibv_open_device(list[0]);
	if (!s->ctx)
		die("cannot open the device");
	ibv_free_device_list(list);
	if (ibv_query_port(s->ctx, 1, &port))
		die("cannot query the port");
	s->lid = port.lid;
	s->pd = ibv_alloc_pd(s->ctx);
	s->cq = ibv_create_cq(s->ctx, 255, NULL, NULL, 0);
	s->memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	s->mr = s->pd && s->memory != MAP_FAILED
			? ibv_reg_mr(s->pd, s->memory, 4096,
				     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)
			: NULL;
	if (!s->cq || !s->mr)
		die("cannot make the objects that all share");
	if (kind != KIND_RC) {
		s->domain = ibv_open_xrc_domain(s->ctx, -1, O_CREAT);
		if (!s->domain)
			die("cannot open an XRC domain");
	}
}

void create(struct side *s, struct one *q)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = s->cq,
		.recv_cq = s->cq,
		.qp_type = s->kind == KIND_RC ? IBV_QPT_RC : IBV_QPT_XRC,
		.cap = {.max_send_wr = 1, .max_send_sge = 1, .max_recv_wr = 1, .max_recv_sge = 1},
		.xrc_domain = s->domain,
	};

	q->qp = NULL;
	if (s->kind == KIND_XRC_RECV) {
		int err = ibv_create_xrc_rcv_qp(&attr, &q->qpn);

		if (err) {
			errno = err;
			die("cannot create an XRC receive QP");
		}
		return;
	}
	q->qp = ibv_create_qp(s->pd, &attr);
	if (!q->qp)
		die("cannot create a QP");
	q->qpn = q->qp->qp_num;
}

void destroy(struct side *s, struct one *q)
{
	int err = q->qp ? ibv_destroy_qp(q->qp) : ibv_unreg_xrc_rcv_qp(s->domain, q->qpn);

	if (err) {
		errno = err;
		die("cannot destroy a QP");
	}
}

static void modify(struct side *s, struct one *q, struct ibv_qp_attr *attr, int mask)
{
	int err = q->qp ? ibv_modify_qp(q->qp, attr, mask)
			: ibv_modify_xrc_rcv_qp(s->domain, q->qpn, attr, mask);

	if (err) {
		errno = err;
		die("cannot modify a QP to state %d", attr->qp_state);
	}
}

void connect_step(struct side *s, struct one *q, int step)
{
	struct ibv_qp_attr init = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
	};
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = q->qpn,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = {.dlid = s->lid, .port_num = 1},
	};
	struct ibv_qp_attr rts = {
		.qp_state = IBV_QPS_RTS,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 1,
	};

	if (step == 0)
		modify(s, q, &init,
		       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	else if (step == 1)
		modify(s, q, &rtr,
		       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			       IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	else
		modify(s, q, &rts,
		       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			       IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

void connect_qp(struct side *s, struct one *q)
{
	int steps = s->kind == KIND_XRC_RECV ? 2 : 3;

	for (int step = 0; step < steps; step++)
		connect_step(s, q, step);
}

void query(struct side *s, struct one *q)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	int err = q->qp ? ibv_query_qp(q->qp, &attr, IBV_QP_STATE, &init)
			: ibv_query_xrc_rcv_qp(s->domain, q->qpn, &attr, IBV_QP_STATE, &init);

	if (err || attr.qp_state != (s->kind == KIND_XRC_RECV ? IBV_QPS_RTR : IBV_QPS_RTS)) {
		errno = err;
		die("cannot query a QP, or it is in state %d", attr.qp_state);
	}
}

void work(struct side *s, struct one *q)
{
	struct ibv_sge sge = {.addr = (uintptr_t)s->memory, .length = 8, .lkey = s->mr->lkey};
	struct ibv_send_wr wr =
				   {
					   .sg_list = &sge,
					   .num_sge = 1,
					   .opcode = IBV_WR_RDMA_WRITE,
					   .send_flags = IBV_SEND_SIGNALED,
					   .wr.rdma = {.remote_addr = (uintptr_t)s->memory + 64,
						       .rkey = s->mr->rkey},
				   },
			   *bad;
	struct ibv_wc wc;
	int n;

	if (s->kind != KIND_RC)
		return;
	if (ibv_post_send(q->qp, &wr, &bad))
		die("cannot post");
	while ((n = ibv_poll_cq(s->cq, 1, &wc)) == 0)
		;
	if (n < 0 || wc.status || wc.qp_num != q->qpn) {
		errno = EIO;
		die("a completion with status %d of QP 0x%x", wc.status, wc.qp_num);
	}
}
