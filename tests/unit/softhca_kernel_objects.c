// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Objects behind uverbs handles: limits and sizes, use counts, events of objects that are gone,
 * and the release of a context. softhca_kernel_multicast.c has membership in multicast groups,
 * softhca_kernel_failures.c the commands that fail half-way.
 */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "libmlx4/src/mlx4-abi.h"
#include "softhca/device/memory/event.h"
#include "softhca/device/memory/exec.h"
#include "softhca/device/memory/tables.h"
#include "softhca/device/memory/txn.h"
#include "softhca/device/queues/cq.h"
#include "softhca/host/process.h"
#include "softhca/kernel/aside.h"
#include "softhca/kernel/ports.h"
#include "softhca/kernel/room.h"
#include "softhca/kernel/show.h"
#include "softhca/kernel/uverbs/commands.h"
#include "softhca/kernel/uverbs/evq.h"
#include "softhca/kernel/uverbs/limits.h"
#include "softhca/kernel/uverbs/room.h"
#include "softhca_kernel.h"

static char page[8192] __attribute__((aligned(4096)));

/* ---- memory regions ---- */

static void regions(void **state)
{
	struct kt *t = kt_start(SH_FACE_OFED, 1, 1);
	struct kctx *ctx = kt_open(t, 0);
	struct uv_reg_mr_resp resp;
	struct uv_reg_mr cmd;
	struct kt_state before, after;
	uint32_t pd, mr, key, other;

	(void)state;
	assert_int_equal(kt_pd(t, ctx, &pd), 0);
	before = kt_state(t);
	cmd = (struct uv_reg_mr){.response = (uintptr_t)&resp,
				 .start = (uintptr_t)page,
				 .length = 100,
				 .hca_va = (uintptr_t)page + 8,
				 .pd_handle = pd};
	assert_int_equal(kt_cmd(t, ctx, UV_REG_MR, &cmd, sizeof(cmd), sizeof(resp)), EINVAL);
	cmd.hca_va = cmd.start;
	cmd.pd_handle = pd + 1;
	assert_int_equal(kt_cmd(t, ctx, UV_REG_MR, &cmd, sizeof(cmd), sizeof(resp)), EINVAL);
	cmd.pd_handle = pd;
	cmd.length = UINT64_MAX;
	assert_int_equal(kt_cmd(t, ctx, UV_REG_MR, &cmd, sizeof(cmd), sizeof(resp)), EINVAL);
	assert_int_equal(kt_mr(t, ctx, pd, page, 100, SH_REMOTE_WRITE, &mr, &key), EINVAL);
	assert_int_equal(kt_mr(t, ctx, pd, page, 100, SH_REMOTE_ATOMIC | SH_REMOTE_READ, &mr, &key),
			 EINVAL);
	/* The limit counts whole pages; the privilege lifts it. */
	t->memlock = 4096;
	assert_int_equal(kt_mr(t, ctx, pd, page + 4000, 200, SH_LOCAL_WRITE, &mr, &key), ENOMEM);
	t->pin_error = EFAULT;
	assert_int_equal(kt_mr(t, ctx, pd, page, 4096, SH_LOCAL_WRITE, &mr, &key), EFAULT);
	t->pin_error = 0;
	after = kt_state(t);
	assert_true(kt_same(&before, &after));
	assert_int_equal(kt_mr(t, ctx, pd, page, 4096, SH_LOCAL_WRITE, &mr, &key), 0);
	assert_true(key >= 0x1000);
	assert_int_equal(kt_mr(t, ctx, pd, page + 4096, 1, 0, &other, &key), ENOMEM);
	t->cap = true;
	assert_int_equal(kt_mr(t, ctx, pd, page + 4096, 1, 0, &other, &key), 0);
	t->cap = false;
	assert_int_equal(kt_dealloc(t, ctx, UV_DEALLOC_PD, pd), EBUSY);
	assert_int_equal(kt_dealloc(t, ctx, UV_DEREG_MR, other), 0);
	assert_int_equal(kt_dealloc(t, ctx, UV_DEREG_MR, mr), 0);
	assert_int_equal(kt_dealloc(t, ctx, UV_DEREG_MR, mr), EINVAL);
	after = kt_state(t);
	assert_true(kt_same(&before, &after));
	assert_int_equal(kt_dealloc(t, ctx, UV_DEALLOC_PD, pd), 0);
	kt_stop(t);
}

/* ---- use counts ---- */

static void busy(void **state)
{
	struct kt *t = kt_start(SH_FACE_OFED, 1, 1);
	struct kctx *ctx = kt_open(t, 0);
	struct kt_state before = kt_state(t), after;
	struct kt_queue cq, srq, qp;
	uint32_t pd;

	(void)state;
	assert_int_equal(kt_pd(t, ctx, &pd), 0);
	assert_int_equal(kt_cq(t, ctx, 100, -1, &cq), 0);
	assert_int_equal(t->r.made_kind, SH_MADE_CQ);
	assert_int_equal(t->r.made_number, cq.number);
	assert_int_equal(kt_srq(t, ctx, pd, 100, 2, &srq), 0);
	assert_int_equal(kt_qp(t, ctx, UV_QPT_RC, pd, cq.handle, srq.handle, &qp), 0);
	assert_int_equal(t->r.made_kind, SH_MADE_QP);
	assert_int_equal(t->r.made_user_handle, qp.user_handle);
	assert_int_equal(kt_dealloc(t, ctx, UV_DEALLOC_PD, pd), EBUSY);
	assert_int_equal(kt_destroy(t, ctx, UV_DESTROY_CQ, cq.handle), EBUSY);
	assert_int_equal(kt_destroy(t, ctx, UV_DESTROY_SRQ, srq.handle), EBUSY);
	assert_int_equal(kt_destroy(t, ctx, UV_DESTROY_QP, qp.handle), 0);
	assert_int_equal(kt_dealloc(t, ctx, UV_DEALLOC_PD, pd), EBUSY);
	assert_int_equal(kt_destroy(t, ctx, UV_DESTROY_SRQ, srq.handle), 0);
	assert_int_equal(kt_destroy(t, ctx, UV_DESTROY_CQ, cq.handle), 0);
	assert_int_equal(kt_dealloc(t, ctx, UV_DEALLOC_PD, pd), 0);
	after = kt_state(t);
	assert_true(kt_same(&before, &after));
	kt_queue_free(&cq);
	kt_queue_free(&srq);
	kt_queue_free(&qp);
	kt_stop(t);
}

/* ---- limits ---- */

struct create_cq {
	struct uv_create_cq core;
	struct mlx4_abi_create_cq drv;
};

static int cq_with(struct kt *t, struct kctx *ctx, uint32_t cqe, uint32_t vector, int channel,
		   uint64_t db)
{
	uint32_t resp[4];
	struct create_cq cmd = {
		.core = {.response = (uintptr_t)resp,
			 .cqe = cqe,
			 .comp_vector = vector,
			 .comp_channel = channel},
		.drv = {.buf_addr = (uintptr_t)page, .db_addr = db},
	};

	return kt_cmd(t, ctx, UV_CREATE_CQ, &cmd, sizeof(cmd), sizeof(resp));
}

static void limits(void **state)
{
	struct kt *t = kt_start(SH_FACE_OFED, 1, 1);
	struct kctx *ctx = kt_open(t, 0);
	struct kt_state before;
	struct kt_state after;
	struct kt_queue q, cq;
	uint32_t pd, resp[8];
	uint64_t db = (uintptr_t)page + 4096;
	struct create_cq small = {
		.core = {.response = (uintptr_t)resp, .cqe = 1, .comp_channel = -1}};
	struct {
		struct uv_create_qp core;
		struct mlx4_abi_create_qp drv;
	} qp, good;
	int fd;

	(void)state;
	assert_int_equal(kt_pd(t, ctx, &pd), 0);
	assert_int_equal(kt_cq(t, ctx, 10, -1, &cq), 0);
	before = kt_state(t);
	t->k.cfg.copy_queues = true;
	assert_int_equal(cq_with(t, ctx, 0, 0, -1, db), EINVAL);
	assert_int_equal(cq_with(t, ctx, 4194304, 0, -1, db), EINVAL);
	assert_int_equal(cq_with(t, ctx, 1, K_COMP_VECTORS, -1, db), EINVAL);
	assert_int_equal(cq_with(t, ctx, 1, 0, 12345, db), EINVAL);
	fd = open("/dev/null", O_RDONLY);
	assert_int_equal(cq_with(t, ctx, 1, 0, fd, db), EINVAL);
	close(fd);
	assert_int_equal(cq_with(t, ctx, 1, 0, -1, db + 2), EINVAL);
	assert_int_equal(cq_with(t, ctx, 1, 0, -1, 16), EFAULT);
	t->memlock = 4096;
	assert_int_equal(cq_with(t, ctx, 1, 0, -1, db), ENOMEM);
	t->memlock = UINT64_MAX;
	/* The command ends after its core, without mlx4's part. */
	assert_int_equal(kt_cmd(t, ctx, UV_CREATE_CQ, &small, sizeof(small.core), 16), EFAULT);
	t->k.cfg.copy_queues = false;

	assert_int_equal(kt_srq(t, ctx, pd, 16384, 1, &q), EINVAL);
	assert_int_equal(kt_srq(t, ctx, pd, 10, 32, &q), EINVAL);
	assert_int_equal(kt_srq(t, ctx, pd + 1, 10, 1, &q), EINVAL);

	good.core = (struct uv_create_qp){
		.response = (uintptr_t)resp,
		.pd_handle = pd,
		.send_cq_handle = cq.handle,
		.recv_cq_handle = cq.handle,
		.max_send_wr = 1,
		.max_recv_wr = 1,
		.max_send_sge = 1,
		.max_recv_sge = 1,
		.qp_type = UV_QPT_RC,
	};
	good.drv = (struct mlx4_abi_create_qp){.buf_addr = (uintptr_t)page,
					       .db_addr = db,
					       .log_sq_bb_count = 1,
					       .log_sq_stride = 6};
#define REFUSED(change, err)                                                                       \
	do {                                                                                       \
		qp = good;                                                                         \
		change;                                                                            \
		assert_int_equal(kt_cmd(t, ctx, UV_CREATE_QP, &qp, sizeof(qp), sizeof(resp)),      \
				 err);                                                             \
	} while (0)
	REFUSED(qp.core.max_recv_wr = 16352, EINVAL);
	REFUSED(qp.core.max_recv_sge = 33, EINVAL);
	REFUSED(qp.core.max_recv_wr = 0, EINVAL);
	REFUSED(qp.core.max_recv_sge = 0, EINVAL);
	REFUSED(qp.drv.log_sq_bb_count = 15, EINVAL);
	REFUSED(qp.drv.log_sq_bb_count = 200, EINVAL);
	REFUSED(qp.drv.log_sq_stride = 5, EINVAL);
	REFUSED(qp.drv.log_sq_stride = 11, EINVAL);
	REFUSED(qp.drv.buf_addr = 4096, EFAULT);
	REFUSED(qp.drv.db_addr = 4096, EFAULT);
	REFUSED(qp.core.pd_handle++, EINVAL);
	REFUSED(qp.core.send_cq_handle++, EINVAL);
	REFUSED(qp.core.recv_cq_handle++, EINVAL);
	REFUSED(qp.core.is_srq = 1, EINVAL);
	REFUSED(qp.core.qp_type = 0, EINVAL);
	REFUSED(qp.core.qp_type = 1, EINVAL);
	REFUSED(qp.core.qp_type = 8, EINVAL);
	REFUSED(qp.core.qp_type = 9, EINVAL);
	REFUSED(qp.core.response = 8, EFAULT);
#undef REFUSED
	after = kt_state(t);
	assert_true(kt_same(&before, &after));
	kt_queue_free(&cq);
	kt_stop(t);
}

/* The kernel gives the sizes that mlx4 gives. */
static void sizes(void **state)
{
	struct kt *t = kt_start(SH_FACE_OFED, 1, 1);
	struct kctx *ctx = kt_open(t, 0);
	struct kt_queue cq, srq;
	struct uv_query_srq_resp resp;
	struct uv_object query = {.response = (uintptr_t)&resp};
	struct uv_modify_srq modify;
	uint32_t pd;

	(void)state;
	assert_int_equal(kt_pd(t, ctx, &pd), 0);
	assert_int_equal(kt_cq(t, ctx, 100, -1, &cq), 0);
	assert_int_equal(kt_srq(t, ctx, pd, 100, 3, &srq), 0);
	query.handle = srq.handle;
	assert_int_equal(kt_cmd(t, ctx, UV_QUERY_SRQ, &query, sizeof(query), sizeof(resp)), 0);
	assert_int_equal(resp.max_wr, 127);
	assert_int_equal(resp.max_sge, 3);
	assert_int_equal(resp.srq_limit, 0);
	modify = (struct uv_modify_srq){
		.srq_handle = srq.handle, .attr_mask = UV_SRQ_LIMIT, .srq_limit = 128};
	assert_int_equal(kt_cmd(t, ctx, UV_MODIFY_SRQ, &modify, sizeof(modify), 0), EINVAL);
	modify.srq_limit = 127;
	assert_int_equal(kt_cmd(t, ctx, UV_MODIFY_SRQ, &modify, sizeof(modify), 0), 0);
	modify.attr_mask |= UV_SRQ_MAX_WR;
	assert_int_equal(kt_cmd(t, ctx, UV_MODIFY_SRQ, &modify, sizeof(modify), 0), EINVAL);
	assert_int_equal(kt_cmd(t, ctx, UV_QUERY_SRQ, &query, sizeof(query), sizeof(resp)), 0);
	assert_int_equal(resp.srq_limit, 127);
	kt_queue_free(&cq);
	kt_queue_free(&srq);
	kt_stop(t);
}

/* ---- another process with the same file ---- */

static void not_the_opener(void **state)
{
	struct kt *t = kt_start(SH_FACE_OFED, 1, 1);
	struct kctx *ctx = kt_open(t, 0);
	struct kproc *own = t->proc,
		     child = {.slot = 100, .pid = getpid(), .user = own->user, .refs = 1};
	struct kt_queue cq, q;
	uint32_t pd, other, mr, key;

	(void)state;
	assert_int_equal(kt_pd(t, ctx, &pd), 0);
	assert_int_equal(kt_cq(t, ctx, 10, -1, &cq), 0);
	t->proc = &child;
	assert_int_equal(kt_mr(t, ctx, pd, page, 100, SH_LOCAL_WRITE, &mr, &key), EINVAL);
	assert_int_equal(kt_cq(t, ctx, 10, -1, &q), EINVAL);
	assert_int_equal(kt_qp(t, ctx, UV_QPT_RC, pd, cq.handle, -1, &q), EINVAL);
	/* Commands that register no memory work. */
	assert_int_equal(kt_pd(t, ctx, &other), 0);
	t->proc = own;
	kt_queue_free(&cq);
	kt_stop(t);
}

/* ---- events ---- */

/* A thread has counted a record of the CQ, and died before it wrote the record. */
static void die_before_the_record(struct kt *t, const struct kevq *e, uint32_t cqn)
{
	struct sh_cq *cq = sh_cq_get(&t->k.dev, 0, cqn);
	struct sh_evq *q = sh_evq(&t->k.dev, e->index);

	assert_true(sh_event_await(e->fifo.fd));
	q->flight_spilled = q->spilled;
	q->flight_log = 0;
	q->flight_piped = 1;
	q->flight_count = cq->comp_events++;
	q->flight_off = (uint64_t)((char *)&cq->comp_events - (char *)t->k.dev.inst);
}

static void events(void **state)
{
	struct kt *t = kt_start(SH_FACE_OFED, 1, 1);
	struct kctx *ctx = kt_open(t, 0);
	struct uv_destroy_cq_resp resp;
	struct uv_object destroy = {.response = (uintptr_t)&resp};
	struct kt_queue a, b;
	uint64_t record;
	struct stat st;
	uint32_t events;
	int fd, i;

	(void)state;
	assert_int_equal(kt_channel(t, ctx, &fd), 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_true(S_ISFIFO(st.st_mode));
	assert_int_equal(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
	assert_int_equal(kt_cq(t, ctx, 10, fd, &a), 0);
	assert_int_equal(kt_cq(t, ctx, 10, fd, &b), 0);
	/*
	 * There are two records of each CQ, and one of a's is read. evq_drop_comp() drops the other
	 * one of a and keeps those of b.
	 */
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	for (i = 0; i < 2; i++) {
		struct sh_cq_info info;

		assert_int_equal(sh_cq_query(&t->k.dev, 0, a.number, &info), 0);
		record = a.user_handle;
		assert_int_equal(write(ctx->evqs->next->fifo.fd, &record, 8), 8);
		record = b.user_handle;
		assert_int_equal(write(ctx->evqs->next->fifo.fd, &record, 8), 8);
	}
	assert_int_equal(read(fd, &record, 8), 8);
	assert_int_equal(record, a.user_handle);
	events = 1;
	die_before_the_record(t, ctx->evqs->next, b.number);
	assert_int_equal(evq_drop_comp(&t->k, ctx->evqs->next, a.user_handle, false, &events), 0);
	assert_int_equal(events, 0);
	/* What is written back does not pass for the record of the dead. */
	assert_int_equal(sh_evq_hold(&t->k.dev, ctx->evqs->next->index), 0);
	sh_evq_release(&t->k.dev, ctx->evqs->next->index);
	assert_int_equal(sh_cq_get(&t->k.dev, 0, b.number)->comp_events, 0);
	assert_int_equal(read(fd, &record, 8), 8);
	assert_int_equal(record, b.user_handle);
	assert_int_equal(read(fd, &record, 8), 8);
	assert_int_equal(record, b.user_handle);
	assert_int_equal(read(fd, &record, 8), -1);
	/* More than one write() takes at once: what stays keeps its order. */
	for (i = 0; i < 4000; i++) {
		record = i % 5 ? (uint64_t)i << 32 : a.user_handle;
		assert_int_equal(write(ctx->evqs->next->fifo.fd, &record, 8), 8);
	}
	events = 801;
	assert_int_equal(evq_drop_comp(&t->k, ctx->evqs->next, a.user_handle, false, &events), 0);
	assert_int_equal(events, 1);
	for (i = 0; i < 4000; i++) {
		if (i % 5 == 0)
			continue;
		assert_int_equal(read(fd, &record, 8), 8);
		assert_int_equal(record, (uint64_t)i << 32);
	}
	assert_int_equal(read(fd, &record, 8), -1);
	destroy.handle = a.handle;
	assert_int_equal(kt_cmd(t, ctx, UV_DESTROY_CQ, &destroy, sizeof(destroy), sizeof(resp)), 0);
	assert_int_equal(resp.comp_events_reported, 0);
	/* The channel lives as long as a CQ reports to it. */
	close(fd);
	evq_client_closed(&t->k, ctx->evqs->next->index, ctx->evqs->next->generation);
	assert_non_null(ctx->evqs->next);
	assert_int_equal(kt_destroy(t, ctx, UV_DESTROY_CQ, b.handle), 0);
	assert_null(ctx->evqs->next);
	kt_queue_free(&a);
	kt_queue_free(&b);
	kt_stop(t);
}

static pthread_barrier_t barrier;

/* Acts as a client that is slow to raise an event of its own. */
static void *hold_queue(void *arg)
{
	struct kctx *ctx = arg;
	struct sh_dev *dev = &ctx->k->dev;

	sh_lock(dev, &sh_evq(dev, ctx->async->index)->lock);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	sh_unlock(dev, &sh_evq(dev, ctx->async->index)->lock);
	sh_exec_release();
	return NULL;
}

/* Events of a port wait for the queue's lock, and keep their order: also one that finds it free. */
static void port_events_held(void **state)
{
	static const uint32_t expected[] = {UV_EV_PORT_ERR, UV_EV_PORT_ACTIVE, UV_EV_PORT_ERR};
	struct kt *t = kt_start(SH_FACE_OFED, 1, 1);
	struct kctx *ctx = kt_open_raw(t, 0);
	uint32_t resp[8];
	struct uv_plain cmd = {.response = (uintptr_t)resp};
	struct sh_port_msg m = {.type = SH_MSG_PORT, .port = 1};
	struct uv_async_record rec;
	struct sh_status st;
	pthread_t thread;
	int fd;

	(void)state;
	assert_int_equal(kt_cmd(t, ctx, UV_GET_CONTEXT, &cmd, sizeof(cmd), 16), 0);
	fd = t->fds[0];
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	for (int ends = 0; ends < 2; ends++) {
		assert_int_equal(pthread_barrier_init(&barrier, NULL, 2), 0);
		assert_int_equal(pthread_create(&thread, NULL, hold_queue, ctx), 0);
		pthread_barrier_wait(&barrier);
		for (int i = 0; i < 3; i++) {
			m.what = i == 1 ? SH_PORT_UP : SH_PORT_DOWN;
			/* The last one comes when the lock is free again. */
			if (i == 2) {
				pthread_barrier_wait(&barrier);
				assert_int_equal(pthread_join(thread, NULL), 0);
			}
			assert_true(port_change(&t->k, &m, true, &st));
			assert_int_equal(st.error, 0);
			assert_int_equal(read(fd, &rec, sizeof(rec)), -1);
		}
		pthread_barrier_destroy(&barrier);
		if (ends)
			break;
		aside_sweep(&t->k);
		for (int i = 0; i < 3; i++) {
			assert_int_equal(read(fd, &rec, sizeof(rec)), sizeof(rec));
			assert_int_equal(rec.event_type, expected[i]);
			assert_int_equal(rec.element, 1);
		}
		assert_int_equal(read(fd, &rec, sizeof(rec)), -1);
		m.what = SH_PORT_UP;
		assert_true(port_change(&t->k, &m, true, &st));
		assert_int_equal(read(fd, &rec, sizeof(rec)), sizeof(rec));
		assert_int_equal(rec.event_type, UV_EV_PORT_ACTIVE);
	}
	/* The program ends before it has got them. */
	close(fd);
	ctx_release(ctx);
	aside_sweep(&t->k);
	kt_stop(t);
}

static void port_events(void **state)
{
	struct kt *t = kt_start(SH_FACE_OFED, 2, 1);
	struct kctx *ctx = kt_open_raw(t, 0), *far = kt_open_host(t, 1, 0);
	uint32_t resp[8];
	struct uv_plain cmd = {.response = (uintptr_t)resp};
	struct sh_port_msg m = {.type = SH_MSG_PORT, .port = 1, .what = SH_PORT_DOWN};
	struct uv_async_record rec;
	struct uv_query_port_resp port;
	struct uv_query_port query = {.response = (uintptr_t)&port, .port_num = 1};
	struct sh_status st;
	int fd;

	(void)state;
	assert_int_equal(kt_cmd(t, ctx, UV_GET_CONTEXT, &cmd, sizeof(cmd), 16), 0);
	fd = t->fds[0];
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	(void)port_change(&t->k, &m, true, &st);
	assert_int_equal(st.error, 0);
	assert_int_equal(read(fd, &rec, sizeof(rec)), sizeof(rec));
	assert_int_equal(rec.event_type, UV_EV_PORT_ERR);
	assert_int_equal(rec.element, 1);
	assert_int_equal(kt_cmd(t, ctx, UV_QUERY_PORT, &query, sizeof(query), sizeof(port)), 0);
	assert_int_equal(port.state, 1);
	/* The port is down already, so there is no event. */
	(void)port_change(&t->k, &m, true, &st);
	assert_int_equal(read(fd, &rec, sizeof(rec)), -1);
	m.what = SH_PORT_UP;
	(void)port_change(&t->k, &m, true, &st);
	assert_int_equal(read(fd, &rec, sizeof(rec)), sizeof(rec));
	assert_int_equal(rec.event_type, UV_EV_PORT_ACTIVE);
	/* Another port has this LID. */
	m.what = SH_PORT_LID;
	m.a = sh_hca(&t->k.dev, 1)->port[0].lid;
	(void)port_change(&t->k, &m, true, &st);
	assert_int_equal(st.error, EBUSY);
	m.a = 77;
	(void)port_change(&t->k, &m, true, &st);
	assert_int_equal(st.error, 0);
	assert_int_equal(read(fd, &rec, sizeof(rec)), sizeof(rec));
	assert_int_equal(rec.event_type, UV_EV_LID_CHANGE);
	assert_int_equal(t->k.dev.inst->lid_port[77], (0 << 8 | 1) + 1);
	m.what = SH_PORT_PKEY;
	m.a = 3;
	m.b = 0x8001;
	(void)port_change(&t->k, &m, true, &st);
	assert_int_equal(read(fd, &rec, sizeof(rec)), sizeof(rec));
	assert_int_equal(rec.event_type, UV_EV_PKEY_CHANGE);
	m.port = 3;
	(void)port_change(&t->k, &m, true, &st);
	assert_int_equal(st.error, ENODEV);
	assert_true(st.text[0]);
	/* The other host got no event. */
	assert_int_equal(read(far->async->fifo.fd, &rec, sizeof(rec)), -1);
	query.port_num = 3;
	assert_int_equal(kt_cmd(t, ctx, UV_QUERY_PORT, &query, sizeof(query), sizeof(port)),
			 EINVAL);
	query.port_num = 0;
	assert_int_equal(kt_cmd(t, ctx, UV_QUERY_PORT, &query, sizeof(query), sizeof(port)),
			 EINVAL);
	close(fd);
	kt_stop(t);
}

/* After a fatal error a card accepts only commands that end objects. Other cards go on. */
static void device_fatal(void **state)
{
	static const enum sh_face faces[] = {SH_FACE_OFED, SH_FACE_MAINLINE};

	(void)state;
	for (int f = 0; f < 2; f++) {
		struct kt *t = kt_start(faces[f], 2, 1);
		struct kctx *ctx = kt_open(t, 0), *far = kt_open_host(t, 1, 0);
		struct sh_port_msg m = {.port = 1, .what = SH_PORT_FATAL};
		struct uv_async_record rec;
		struct kt_queue cq, qp, q;
		uint32_t pd, mr, key, xrcd, other;
		struct sh_status st;

		assert_int_equal(kt_pd(t, ctx, &pd), 0);
		assert_int_equal(kt_mr(t, ctx, pd, page, 4096, SH_LOCAL_WRITE, &mr, &key), 0);
		assert_int_equal(kt_cq(t, ctx, 10, -1, &cq), 0);
		assert_int_equal(kt_qp(t, ctx, UV_QPT_RC, pd, cq.handle, -1, &qp), 0);
		assert_int_equal(kt_xrcd(t, ctx, -1, O_CREAT, &xrcd), 0);
		for (int twice = 0; twice < 2; twice++) {
			(void)port_change(&t->k, &m, true, &st);
			assert_int_equal(st.error, 0);
		}
		assert_int_equal(read(ctx->async->fifo.fd, &rec, sizeof(rec)), sizeof(rec));
		assert_int_equal(rec.event_type, UV_EV_DEVICE_FATAL);
		assert_int_equal(read(ctx->async->fifo.fd, &rec, sizeof(rec)), -1);
		assert_int_equal(read(far->async->fifo.fd, &rec, sizeof(rec)), -1);
		assert_int_equal(t->k.loud, 0);
		m.what = SH_PORT_DOWN;
		(void)port_change(&t->k, &m, true, &st);
		assert_int_equal(st.error, EIO);
		assert_true(st.text[0]);
		assert_int_equal(kt_pd(t, ctx, &other), EIO);
		assert_int_equal(kt_mr(t, ctx, pd, page, 4096, SH_LOCAL_WRITE, &other, &key), EIO);
		assert_int_equal(kt_cq(t, ctx, 10, -1, &q), EIO);
		assert_int_equal(kt_qp(t, ctx, UV_QPT_RC, pd, cq.handle, -1, &q), EIO);
		assert_int_equal(kt_xrcd(t, ctx, -1, O_CREAT, &other), EIO);
		assert_int_equal(kt_pd(t, far, &other), 0);
		assert_int_equal(kt_destroy(t, ctx, UV_DESTROY_QP, qp.handle), 0);
		assert_int_equal(kt_destroy(t, ctx, UV_DESTROY_CQ, cq.handle), 0);
		assert_int_equal(kt_dealloc(t, ctx, UV_DEREG_MR, mr), 0);
		assert_int_equal(kt_dealloc(t, ctx, UV_DEALLOC_PD, pd), 0);
		kt_queue_free(&qp);
		kt_queue_free(&cq);
		kt_stop(t);
	}
}

/* A client has overwritten the LID of a port in device memory. The daemon does not use it. */
static void scribbled_lid(void **state)
{
	static const uint32_t wrong[] = {0, 2, SH_MAX_LIDS, 0x7fffffff, UINT32_MAX};
	struct kt *t = kt_start(SH_FACE_OFED, 1, 1);
	const uint32_t *table = t->k.dev.inst->lid_port, mine = (0 << 8 | 1) + 1;
	struct sh_port_msg m = {.port = 1, .what = SH_PORT_LID};
	struct sh_status st;

	(void)state;
	for (uint32_t i = 0; i < 5; i++) {
		sh_hca(&t->k.dev, 0)->port[0].lid = wrong[i];
		m.a = 70 + i;
		(void)port_change(&t->k, &m, true, &st);
		assert_int_equal(st.error, 0);
		for (uint32_t lid = 0; lid < SH_MAX_LIDS; lid++)
			assert_int_equal(table[lid] == mine, lid == m.a);
		assert_int_equal(table[2], (0 << 8 | 2) + 1);
	}
	kt_stop(t);
}

/* ---- the end of a context ---- */

static void release(void **state)
{
	struct kt *t = kt_start(SH_FACE_OFED, 1, 1);
	struct kt_state before = kt_state(t), after;
	struct kctx *ctx = kt_open(t, 0);
	struct kt_queue cq, srq, qp, xsrq;
	uint32_t pd, mr, key, xrcd, index = ctx->index, generation = ctx->generation;
	char name[64];
	struct stat st;
	int fd;

	(void)state;
	assert_int_equal(kt_pd(t, ctx, &pd), 0);
	assert_int_equal(kt_mr(t, ctx, pd, page, 4096, SH_LOCAL_WRITE, &mr, &key), 0);
	assert_int_equal(kt_channel(t, ctx, &fd), 0);
	assert_int_equal(kt_cq(t, ctx, 10, fd, &cq), 0);
	assert_int_equal(kt_srq(t, ctx, pd, 10, 1, &srq), 0);
	assert_int_equal(kt_qp(t, ctx, UV_QPT_RC, pd, cq.handle, srq.handle, &qp), 0);
	assert_int_equal(kt_xrcd(t, ctx, -1, O_CREAT, &xrcd), 0);
	assert_int_equal(kt_xsrq(t, ctx, pd, xrcd, cq.handle, &xsrq), 0);
	snprintf(name, sizeof(name), "files/c%u.%u", index, generation);
	assert_int_equal(fstatat(t->k.dir_fd, name, &st, 0), 0);
	ctx_gone(ctx);
	assert_int_equal(sh_ctx(&t->k.dev, index)->state, SH_CTX_GONE);
	ctx_release(ctx);
	after = kt_state(t);
	assert_true(kt_same(&before, &after));
	assert_int_equal(fstatat(t->k.dir_fd, name, &st, 0), -1);
	assert_int_equal(sh_ctx(&t->k.dev, index)->state, SH_CTX_FREE);
	assert_null(ctx_get(&t->k, index));
	close(fd);
	kt_queue_free(&cq);
	kt_queue_free(&srq);
	kt_queue_free(&qp);
	kt_queue_free(&xsrq);
	kt_stop(t);
}

/* ---- device memory that a client has written over ---- */

#define SCRIBBLE(slot)                                                                             \
	memset((char *)(slot) + sizeof((slot)->lock), 0xa5, sizeof(*(slot)) - sizeof((slot)->lock))

static void scribbled(void **state)
{
	struct kt *t = kt_start(SH_FACE_OFED, 1, 1);
	struct kt_state before = kt_state(t), after;
	struct kctx *ctx = kt_open(t, 0);
	struct kt_queue cq, srq, qp;
	uint32_t pd, mr, key, xrcd;
	struct sh_mpt *mpt;

	(void)state;
	assert_int_equal(kt_pd(t, ctx, &pd), 0);
	assert_int_equal(kt_mr(t, ctx, pd, page, 4096, SH_LOCAL_WRITE, &mr, &key), 0);
	assert_int_equal(kt_cq(t, ctx, 10, -1, &cq), 0);
	assert_int_equal(kt_srq(t, ctx, pd, 10, 1, &srq), 0);
	assert_int_equal(kt_qp(t, ctx, UV_QPT_RC, pd, cq.handle, srq.handle, &qp), 0);
	assert_int_equal(kt_xrcd(t, ctx, -1, O_CREAT, &xrcd), 0);
	SCRIBBLE(sh_cq_get(&t->k.dev, 0, cq.number));
	SCRIBBLE(sh_srq_get(&t->k.dev, 0, srq.number));
	SCRIBBLE(sh_qp_slot(&t->k.dev, 0, qp.number));
	mpt = (struct sh_mpt *)((char *)t->k.dev.inst + sh_hca(&t->k.dev, 0)->mpt_off) + (key >> 8);
	assert_int_equal(mpt->key, key);
	memset(mpt, 0xa5, sizeof(*mpt));
	/* The daemon survives a look at the damaged objects, and their release removes them. */
	close(show_make(&t->k));
	ctx_release(ctx);
	assert_int_equal(t->k.uverbs->releasing, 0);
	after = kt_state(t);
	assert_true(kt_same(&before, &after));
	kt_queue_free(&cq);
	kt_queue_free(&srq);
	kt_queue_free(&qp);
	kt_stop(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(regions),	  cmocka_unit_test(busy),
		cmocka_unit_test(limits),	  cmocka_unit_test(sizes),
		cmocka_unit_test(not_the_opener), cmocka_unit_test(events),
		cmocka_unit_test(port_events),	  cmocka_unit_test(port_events_held),
		cmocka_unit_test(device_fatal),	  cmocka_unit_test(scribbled_lid),
		cmocka_unit_test(release),	  cmocka_unit_test(scribbled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
