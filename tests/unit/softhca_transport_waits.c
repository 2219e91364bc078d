// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: each pending action is reported with the thread or process that will carry it on,
 * and a thread that waits for a lock with the lock and its holder. A wake-up that was lost is
 * reported as lost; here the test removes what would have come of it.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "softhca/device/memory/exec.h"
#include "softhca/device/memory/tables.h"
#include "softhca/device/queues/attention.h"
#include "softhca/device/waits.h"
#include "softhca_pair.h"

static struct tpair p;

/* ---- looking ---- */

struct wanted {
	enum sh_due_kind kind;
	uint32_t number;
	bool found;
	struct sh_due due;
};

static void take(void *arg, const struct sh_due *due)
{
	struct wanted *w = arg;

	if (due->kind != w->kind || due->number != w->number)
		return;
	w->found = true;
	w->due = *due;
}

static bool is_due(enum sh_due_kind kind, uint32_t number, struct sh_due *due)
{
	struct wanted w = {.kind = kind, .number = number};

	sh_each_due(&p.m->dev, take, &w);
	if (due)
		*due = w.due;
	return w.found;
}

static void count_lost(void *arg, const struct sh_due *due)
{
	*(unsigned int *)arg += due->lost != SH_LOST_NOT;
}

static unsigned int lost(void)
{
	unsigned int n = 0;

	sh_each_due(&p.m->dev, count_lost, &n);
	return n;
}

/* Asserts that this wake-up is lost, and no other. */
static void assert_lost(enum sh_due_kind kind, uint32_t number, enum sh_lost how)
{
	struct sh_due due;

	assert_true(is_due(kind, number, &due));
	assert_int_equal(due.lost, how);
	assert_int_equal(lost(), 1);
}

static struct sh_qp *qp_of(const struct tqp *qp)
{
	return sh_qp_get(&p.m->dev, qp->hca, qp->qpn);
}

static struct sh_cq *cq_of(const struct tcq *cq)
{
	return sh_cq_get(&p.m->dev, cq->hca, cq->cqn);
}

static void open_pair(const struct tpair_opts *opts)
{
	tpair_open(&p, opts);
	sh_proc(&p.m->dev, 1)->pid = (uint32_t)getpid();
}

/* The report says what it could not look into. */
static void test_unseen(void **state)
{
	uint32_t seen_all;

	(void)state;
	open_pair(&(struct tpair_opts){.type = SH_QPT_RC});
	seen_all = sh_each_due(&p.m->dev, count_lost, &(unsigned int){0});
	tpair_close(&p);
	assert_int_equal(seen_all, 0);
	/* Of each QP both queues. The CQs of the test are in device memory. */
	open_pair(&(struct tpair_opts){.type = SH_QPT_RC, .private_memory = true});
	assert_int_equal(sh_each_due(&p.m->dev, count_lost, &(unsigned int){0}), 4);
	tpair_close(&p);
}

/* ---- sending ---- */

static void test_doorbell(void **state)
{
	struct twr wr;
	struct sh_due due;

	(void)state;
	open_pair(&(struct tpair_opts){.type = SH_QPT_RC});
	tpair_recv(&p, 4096, 4096);
	wr = tpair_wr(&p, MLX4_OPCODE_SEND, 8);
	assert_int_equal(lost(), 0);
	tqp_post(&p.a, &wr);
	assert_lost(SH_DUE_SEND, p.a.qpn, SH_LOST_DOORBELL);
	/* A thread of the process is in device code, and may be about to look. */
	assert_true(sh_enter(&p.m->dev));
	assert_int_equal(lost(), 0);
	assert_true(is_due(SH_DUE_SEND, p.a.qpn, &due));
	assert_int_equal(due.count, 1);
	sh_leave(&p.m->dev);
	/* The helper thread has been asked to look. */
	sh_attention_post(&p.m->dev, 1, p.a.hca, p.a.qpn);
	assert_int_equal(lost(), 0);
	assert_true(is_due(SH_DUE_LOOK, 0, &due));
	assert_int_equal(due.count, 1);
	tqp_ring(&p.a);
	assert_false(is_due(SH_DUE_SEND, p.a.qpn, NULL));
	tpair_close(&p);
}

static void test_engine(void **state)
{
	struct twr wr;

	(void)state;
	open_pair(&(struct tpair_opts){.type = SH_QPT_RC});
	tpair_recv(&p, 4096, 4096);
	wr = tpair_wr(&p, MLX4_OPCODE_SEND, 8);
	qp_of(&p.a)->engine = 77;
	tqp_send(&p.a, &wr);
	assert_lost(SH_DUE_SEND, p.a.qpn, SH_LOST_ENGINE);
	tpair_close(&p);
}

static void test_state(void **state)
{
	struct twr wr;
	struct sh_due due;

	(void)state;
	open_pair(&(struct tpair_opts){.type = SH_QPT_RC, .unconnected = true});
	/* An empty queue of zeroes, which could be read as one of posted requests. */
	memset(mock_ptr(&p.a.buf), 0, p.a.buf.len);
	assert_false(is_due(SH_DUE_STATE, p.a.qpn, NULL));
	tqp_init(&p.a, &p.aattr);
	wr = tpair_wr(&p, MLX4_OPCODE_SEND, 8);
	tqp_send(&p.a, &wr);
	assert_true(is_due(SH_DUE_STATE, p.a.qpn, &due));
	assert_int_equal(due.state, SH_QPS_INIT);
	assert_int_equal(lost(), 0);
	tpair_close(&p);
}

/* The daemon is to copy for a thread. */
static void test_copy(void **state)
{
	struct sh_ferries *all;
	struct sh_due due;

	(void)state;
	open_pair(&(struct tpair_opts){.type = SH_QPT_RC});
	all = sh_at(&p.m->dev, SH_FERRIES_OFF);
	all->ferry[5].len = 100;
	all->ferry[5].proc = 3;
	assert_false(is_due(SH_DUE_COPY, 5, NULL));
	all->ferry[5].state = SH_FERRY_ASKED;
	assert_true(is_due(SH_DUE_COPY, 5, &due));
	assert_int_equal(due.proc, 0);
	assert_int_equal(due.count, 100);
	assert_int_equal(due.peer_proc, 3);
	assert_int_equal(lost(), 0);
	all->ferry[5].proc = UINT32_MAX;
	assert_true(is_due(SH_DUE_COPY, 5, &due));
	assert_int_equal(due.peer_proc, 0);
	all->ferry[5].state = SH_FERRY_DONE;
	assert_false(is_due(SH_DUE_COPY, 5, NULL));
	tpair_close(&p);
}

/* The receiver has posted no receive. */
static void test_receiver_not_ready(void **state)
{
	struct twr wr;
	struct sh_due due;
	struct sh_qp *qp;
	uint64_t at;

	(void)state;
	open_pair(&(struct tpair_opts){.type = SH_QPT_RC});
	wr = tpair_wr(&p, MLX4_OPCODE_SEND, 8);
	tqp_send(&p.a, &wr);
	tqp_send(&p.a, &wr);
	assert_true(is_due(SH_DUE_RNR, p.a.qpn, &due));
	assert_int_equal(due.count, 1);
	assert_int_equal(due.untaken, 1);
	assert_int_equal(due.left, 7);
	assert_true(due.until > p.m->shared->now);
	assert_true(due.has_peer);
	assert_int_equal(due.peer_qpn, p.b.qpn);
	assert_int_equal(due.peer_has, 0);
	assert_int_equal(lost(), 0);

	/* The helper thread sleeps until the timer is due, or without a limit. */
	qp = qp_of(&p.a);
	sh_wait_begin(&p.m->dev, SH_WAITS_HELPER, qp->timer_at, sh_proc(&p.m->dev, 1)->attention);
	assert_int_equal(lost(), 0);
	sh_wait_begin(&p.m->dev, SH_WAITS_HELPER, UINT64_MAX, sh_proc(&p.m->dev, 1)->attention);
	assert_lost(SH_DUE_RNR, p.a.qpn, SH_LOST_HELPER);
	sh_wait_end(&p.m->dev);
	assert_int_equal(lost(), 0);

	at = qp->timer_at;
	qp->timer_at = 0;
	assert_lost(SH_DUE_RNR, p.a.qpn, SH_LOST_TIMER);
	qp->timer_at = at;
	tpair_recv(&p, 4096, 4096);
	assert_true(is_due(SH_DUE_RNR, p.a.qpn, &due));
	assert_int_equal(due.peer_has, 1);
	mock_advance(p.m, UINT64_C(1000000000));
	assert_true(is_due(SH_DUE_RNR, p.a.qpn, &due)); /* now it is the second message */
	assert_int_equal(due.untaken, 0);
	/*
	 * Not the receiver is what it waits for, but a lock that a stopped thread has
	 * (sh_put_off()).
	 */
	qp->rnr_waiting = SH_PUT_OFF;
	assert_false(is_due(SH_DUE_RNR, p.a.qpn, NULL));
	assert_true(is_due(SH_DUE_ACK, p.a.qpn, &due));
	assert_true(due.put_off);
	assert_int_equal(due.count, 1);
	assert_int_equal(lost(), 0);
	tpair_close(&p);
}

/* Over XRC, the SRQ that the request names has the receives. */
static void test_srq_not_ready(void **state)
{
	struct twr wr;
	struct sh_due due;

	(void)state;
	open_pair(&(struct tpair_opts){.type = SH_QPT_XRC});
	wr = tpair_wr(&p, MLX4_OPCODE_SEND, 8);
	tqp_send(&p.a, &wr);
	assert_true(is_due(SH_DUE_RNR, p.a.qpn, &due));
	assert_int_equal(due.srqn, p.srq.srqn);
	assert_int_equal(due.peer_has, 0);
	tpair_recv(&p, 4096, 4096);
	assert_true(is_due(SH_DUE_RNR, p.a.qpn, &due));
	assert_int_equal(due.peer_has, 1);
	assert_true(is_due(SH_DUE_RECEIVE, 0, &due));
	assert_int_equal(due.srqn, p.srq.srqn);
	tpair_close(&p);
}

static void test_acknowledgement(void **state)
{
	struct sh_faults *faults;
	struct sh_due due;
	struct twr wr;
	uint64_t deadline;

	(void)state;
	open_pair(&(struct tpair_opts){.type = SH_QPT_RC});
	tpair_recv(&p, 4096, 4096);
	wr = tpair_wr(&p, MLX4_OPCODE_SEND, 8);
	faults = &p.m->inst->faults;
	faults->rule[SH_FAULT_DROP].count = 1;
	faults->active = 1;
	tqp_send(&p.a, &wr);
	assert_true(is_due(SH_DUE_ACK, p.a.qpn, &due));
	assert_int_equal(due.count, 1);
	assert_int_equal(due.left, 7);
	assert_false(due.forever);
	assert_int_equal(lost(), 0);
	deadline = qp_of(&p.a)->deadline;
	qp_of(&p.a)->deadline = 0;
	assert_lost(SH_DUE_ACK, p.a.qpn, SH_LOST_TIMER);
	qp_of(&p.a)->deadline = deadline;
	mock_advance(p.m, UINT64_C(10000000000));
	assert_false(is_due(SH_DUE_ACK, p.a.qpn, NULL));
	tpair_close(&p);
}

/* With timeout 0 the program itself asked to wait for ever. */
static void test_no_timeout(void **state)
{
	struct sh_due due;
	struct twr wr;

	(void)state;
	open_pair(&(struct tpair_opts){.type = SH_QPT_RC, .no_timeout = true});
	wr = tpair_wr(&p, MLX4_OPCODE_SEND, 8);
	p.m->inst->faults.rule[SH_FAULT_DROP].count = 1;
	p.m->inst->faults.active = 1;
	tqp_send(&p.a, &wr);
	assert_true(is_due(SH_DUE_ACK, p.a.qpn, &due));
	assert_true(due.forever);
	assert_int_equal(lost(), 0);
	tpair_close(&p);
}

/* ---- receiving, completions ---- */

static void test_receive(void **state)
{
	struct sh_due due;
	struct twr wr;

	(void)state;
	open_pair(&(struct tpair_opts){.type = SH_QPT_RC});
	tpair_recv(&p, 4096, 4096);
	tpair_recv(&p, 8192, 4096);
	assert_true(is_due(SH_DUE_RECEIVE, p.b.qpn, &due));
	assert_int_equal(due.count, 2);
	assert_int_equal(due.peer_qpn, p.a.qpn);
	assert_int_equal(due.peer_has, 0);
	wr = tpair_wr(&p, MLX4_OPCODE_SEND, 8);
	tqp_post(&p.a, &wr);
	assert_true(is_due(SH_DUE_RECEIVE, p.b.qpn, &due));
	assert_int_equal(due.peer_has, 1);
	tpair_close(&p);
}

static void test_completion(void **state)
{
	struct mlx4_cqe cqe;
	struct sh_due due;
	struct twr wr;

	(void)state;
	open_pair(&(struct tpair_opts){.type = SH_QPT_RC});
	tpair_recv(&p, 4096, 4096);
	tpair_recv(&p, 8192, 4096);
	wr = tpair_wr(&p, MLX4_OPCODE_SEND, 8);
	wr.signaled = false;
	tqp_send(&p.a, &wr);
	assert_true(is_due(SH_DUE_POLL, p.bcq[1].cqn, &due));
	assert_int_equal(due.count, 1);

	/* The CQ is armed after the poll, which announces nothing that was polled. */
	assert_true(tcq_poll(&p.bcq[1], &cqe));
	assert_false(is_due(SH_DUE_POLL, p.bcq[1].cqn, NULL));
	tcq_arm(&p.bcq[1], false);
	assert_int_equal(lost(), 0);
	assert_false(is_due(SH_DUE_EVENT, p.bcq[1].cqn, NULL));
	tqp_send(&p.a, &wr);
	assert_int_equal(lost(), 0);
	/* as if the completion had not been announced */
	cq_of(&p.bcq[1])->armed = SH_ARM_ANY;
	cq_of(&p.bcq[1])->last_notified = 0;
	assert_lost(SH_DUE_EVENT, p.bcq[1].cqn, SH_LOST_EVENT);
	/* as if the device had not seen the doorbell */
	cq_of(&p.bcq[1])->armed = SH_ARM_NONE;
	cq_of(&p.bcq[1])->arm_acted ^= 1u << MLX4_CQ_DB_SN_SHIFT;
	assert_lost(SH_DUE_ARM, p.bcq[1].cqn, SH_LOST_DOORBELL);
	tpair_close(&p);
}

/* ---- threads ---- */

static void test_doze(void **state)
{
	struct sh_ctx *a, *b;

	(void)state;
	open_pair(&(struct tpair_opts){.type = SH_QPT_RC});
	a = sh_ctx(&p.m->dev, p.a.ctx);
	b = sh_ctx(&p.m->dev, p.b.ctx);
	a->dozing = b->dozing = 1;
	sh_wait_begin(&p.m->dev, SH_WAITS_DOZE, sh_proc(&p.m->dev, 1)->roused, 0);
	assert_int_equal(lost(), 0);
	a->dozing = 0;
	assert_lost(SH_DUE_ROUSE, 0, SH_LOST_ROUSE);
	/* The thread has been woken, and has not run yet. */
	sh_proc(&p.m->dev, 1)->roused++;
	assert_int_equal(lost(), 0);
	sh_wait_end(&p.m->dev);
	tpair_close(&p);
}

static void test_attention(void **state)
{
	struct sh_due due;

	(void)state;
	open_pair(&(struct tpair_opts){.type = SH_QPT_RC});
	sh_wait_begin(&p.m->dev, SH_WAITS_HELPER, UINT64_MAX, sh_proc(&p.m->dev, 1)->attention);
	assert_int_equal(lost(), 0);
	/* The mock's futex wakes no thread. */
	sh_attention_post(&p.m->dev, 1, p.a.hca, p.a.qpn);
	assert_lost(SH_DUE_ATTENTION, 0, SH_LOST_ATTENTION);
	assert_true(is_due(SH_DUE_LOOK, 0, &due));
	sh_wait_end(&p.m->dev);
	assert_int_equal(lost(), 0);
	tpair_close(&p);
}

/*
 * What leaves the instance, the wire's engine carries on, whatever the process that posted it does.
 */
static void test_wire(void **state)
{
	struct sh_due due;
	struct twr wr;

	(void)state;
	open_pair(&(struct tpair_opts){.type = SH_QPT_RC});
	p.m->inst->wire.last_lid = 1000;
	p.m->inst->wire.leads = 0xfffe;
	p.m->inst->wire.proc = 5;
	qp_of(&p.a)->path.dlid = 502;
	wr = tpair_wr(&p, MLX4_OPCODE_SEND, 8);
	tqp_post(&p.a, &wr);
	assert_lost(SH_DUE_SEND, p.a.qpn, SH_LOST_DOORBELL);
	sh_attention_post(&p.m->dev, 5, p.a.hca, p.a.qpn);
	assert_int_equal(lost(), 0);
	assert_true(is_due(SH_DUE_SEND, p.a.qpn, &due));
	assert_int_equal(due.proc, 1);
	assert_int_equal(due.carrier, 5);
	/* As the engine leaves it: the request is on its way, and the engine has set a timer. */
	qp_of(&p.a)->sq_next++;
	qp_of(&p.a)->deadline = qp_of(&p.a)->timer_at = p.m->dev.ops->now(p.m->dev.host) + 1000;
	sh_wait_begin(&p.m->dev, SH_WAITS_HELPER, UINT64_MAX, sh_proc(&p.m->dev, 1)->attention);
	assert_true(is_due(SH_DUE_ACK, p.a.qpn, &due));
	assert_int_equal(due.carrier, 5);
	assert_int_equal(lost(), 0);
	qp_of(&p.a)->timer_at = 0;
	assert_lost(SH_DUE_ACK, p.a.qpn, SH_LOST_TIMER);
	sh_wait_end(&p.m->dev);
	qp_of(&p.a)->sq_next--;
	qp_of(&p.a)->deadline = 0;
	tpair_close(&p);
}

static void hold(void *arg)
{
	struct tpair *pair = arg;

	sh_lock(&pair->m->dev, &sh_cq_get(&pair->m->dev, pair->bcq[1].hca, pair->bcq[1].cqn)->lock);
}

struct waiter {
	pid_t pid;
	bool found;
	struct sh_thread thread;
};

static void take_waiter(void *arg, const struct sh_thread *t)
{
	struct waiter *w = arg;

	if (t->tid != (uint32_t)w->pid || t->waits != SH_WAITS_LOCK)
		return;
	w->found = true;
	w->thread = *t;
}

static void take_held(void *arg, const struct sh_held *h)
{
	struct sh_held *out = arg;

	if (h->kind == SH_LOCK_CQ)
		*out = *h;
}

/* The holder is stopped in the middle of device code, as by a debugger. */
static void test_lock(void **state)
{
	const struct timespec moment = {.tv_nsec = 1000000};
	struct sh_held named = {0}, seen = {0};
	struct waiter w = {0};
	pid_t holder;

	(void)state;
	open_pair(&(struct tpair_opts){.type = SH_QPT_RC});
	holder = mock_child(hold, &p);
	assert_int_equal(kill(holder, SIGSTOP), 0);
	w.pid = fork();
	assert_true(w.pid >= 0);
	if (!w.pid) {
		hold(&p);
		_exit(0);
	}
	for (int i = 0; i < 10000 && !w.found; i++) {
		nanosleep(&moment, NULL);
		sh_each_thread(&p.m->dev, take_waiter, &w);
	}
	assert_true(w.found);
	sh_lock_at(&p.m->dev, w.thread.a, &named);
	assert_int_equal(named.kind, SH_LOCK_CQ);
	assert_int_equal(named.hca, p.bcq[1].hca);
	assert_int_equal(named.number, p.bcq[1].cqn);
	assert_int_equal(named.holder.tid, holder);
	assert_false(named.dead);
	sh_each_held(&p.m->dev, take_held, &seen);
	assert_int_equal(seen.number, p.bcq[1].cqn);
	assert_int_equal(seen.holder.tid, holder);
	mock_kill(holder);
	/* By now the waiter has taken the lock over from the dead holder, or it is killed here. */
	kill(w.pid, SIGKILL);
	assert_int_equal(waitpid(w.pid, NULL, 0), w.pid);
	tpair_close(&p);
}

/* Offsets without a lock, and words that name no owner. */
static void test_damage(void **state)
{
	static const uint64_t off[] = {0,
				       8,
				       SH_EVQ_OFF - 8,
				       SH_EVQ_OFF + 8,
				       SH_HCA_OFF + 1,
				       SH_HCA_OFF + SH_HCA_QPS + 8,
				       SH_HCA_OFF + 300 * SH_HCA_SPAN,
				       UINT64_MAX};
	struct sh_held h;
	struct sh_cq *cq;

	(void)state;
	open_pair(&(struct tpair_opts){.type = SH_QPT_RC});
	for (size_t i = 0; i < sizeof(off) / sizeof(off[0]); i++) {
		sh_lock_at(&p.m->dev, off[i], &h);
		assert_int_equal(h.kind, SH_LOCK_UNKNOWN);
	}
	cq = cq_of(&p.bcq[1]);
	cq->lock.owner = UINT64_MAX;
	sh_lock_at(&p.m->dev, (uint64_t)((char *)cq - (char *)p.m->inst), &h);
	assert_true(h.dead);
	qp_of(&p.a)->path.dlid = UINT16_MAX;
	qp_of(&p.a)->log_sq_size = qp_of(&p.a)->sq_shift = UINT8_MAX;
	qp_of(&p.a)->sq_off = UINT32_MAX;
	cq->ctx = UINT32_MAX;
	cq->db.shm_off = UINT64_MAX;
	sh_ctx(&p.m->dev, p.b.ctx)->proc = UINT32_MAX;
	p.m->inst->exec_used = UINT32_MAX;
	lost();
	p.m->inst->exec_used = 1;
	cq->lock.owner = 0;
	tpair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unseen),
		cmocka_unit_test(test_doorbell),
		cmocka_unit_test(test_engine),
		cmocka_unit_test(test_state),
		cmocka_unit_test(test_receiver_not_ready),
		cmocka_unit_test(test_srq_not_ready),
		cmocka_unit_test(test_acknowledgement),
		cmocka_unit_test(test_no_timeout),
		cmocka_unit_test(test_receive),
		cmocka_unit_test(test_completion),
		cmocka_unit_test(test_doze),
		cmocka_unit_test(test_attention),
		cmocka_unit_test(test_wire),
		cmocka_unit_test(test_lock),
		cmocka_unit_test(test_damage),
		cmocka_unit_test(test_copy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
