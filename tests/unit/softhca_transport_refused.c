// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: a sender is stopped at many of its instructions while its request is refused, and
 * its life in the device is ended. As soon as the receiver's QP is in ERR, the sender has the
 * completion of a request that was refused, at once and without a time-out: whether the receiver
 * leaves its QP in ERR, resets it meanwhile, or connects it again. The same holds where the thread
 * does not get the lock of its QP back, for a message that has arrived, and for one whose memory is
 * gone.
 */
#include "softhca/device/queues/qp_halves.h"
#include "softhca_stands_rig.h"

/* A message that arrives goes before the request that is refused. */
static void after_a_send(struct scene *s)
{
	struct twr wr = tpair_wr(&s->p, MLX4_OPCODE_SEND, 200);

	wr.signaled = false;
	tqp_post(&s->p.a, &wr);
	s->wr.rkey++;
}

/* No receive has room for it. */
static void too_long(struct scene *s)
{
	s->wr.sge[0].len = 65536 + 1000;
}

struct refused {
	struct plot plot;
	uint8_t syndrome;
};

static const struct refused refused[] = {
	{{"WRITE", SH_QPT_RC, true, MLX4_OPCODE_RDMA_WRITE, 100, bad_rkey, 0},
	 MLX4_SYNDROME_REM_ACCESS},
	{{"long WRITE", SH_QPT_RC, false, MLX4_OPCODE_RDMA_WRITE, SH_SHORT + 1000, bad_rkey, 0},
	 MLX4_SYNDROME_REM_ACCESS},
	{{"WRITE after a SEND", SH_QPT_RC, false, MLX4_OPCODE_RDMA_WRITE, 100, after_a_send, 0},
	 MLX4_SYNDROME_REM_ACCESS},
	{{"READ", SH_QPT_RC, false, MLX4_OPCODE_RDMA_READ, 100, bad_rkey, 0},
	 MLX4_SYNDROME_REM_ACCESS},
	{{"atomic operation", SH_QPT_RC, false, MLX4_OPCODE_ATOMIC_FA, 8, bad_rkey, 0},
	 MLX4_SYNDROME_REM_ACCESS},
	{{"SEND, whose receive's key is gone", SH_QPT_RC, false, MLX4_OPCODE_SEND, 200, key_gone,
	  0},
	 MLX4_SYNDROME_REM_OP},
	{{"SEND over XRC to a CQ that is full", SH_QPT_XRC, false, MLX4_OPCODE_SEND, 200, cq_full,
	  0},
	 MLX4_SYNDROME_REM_OP},
	{{"SEND that is too long", SH_QPT_RC, true, MLX4_OPCODE_SEND, 200, too_long, 0},
	 MLX4_SYNDROME_REM_INVAL_REQ},
};

static const struct refused *trying;
/* What the receiver does with its QP in ERR before the sender goes on. */
static enum { LEAVES, RESETS, CONNECTS } receiver;
static unsigned int refusals;

/* Of the request that is refused. */
static uint16_t index_of(void)
{
	return trying->plot.twist == after_a_send;
}

/* Is the QP in ERR? What a thread that was ended has left there is carried out first. */
static bool is_failed(struct tqp *qp)
{
	struct sh_dev *daemon = &qp->m->daemon;
	bool failed;

	while (sh_qp_lock_both(daemon, tqp_ctx(qp)))
		look_again(daemon);
	failed = tqp_ctx(qp)->state == SH_QPS_ERR;
	sh_qp_unlock_both(daemon, tqp_ctx(qp));
	return failed;
}

static void reset(struct tqp *qp)
{
	int err;

	while ((err = tqp_to(qp, SH_QPS_RESET)) != 0) {
		assert_int_equal(err, -EINPROGRESS);
		look_again(&qp->m->daemon);
	}
}

static void has_its_completion(struct scene *s, const struct plot *plot, pid_t pid)
{
	struct tpair *p = &s->p;
	bool failed = true;

	(void)plot;
	stop(pid);
	p->m->dev.proc = 2;
	alarm(60);
	left(&p->m->daemon);
	if (receiver != LEAVES) {
		failed = is_failed(&p->b);
		reset(&p->b);
		if (receiver == CONNECTS)
			tqp_up(&p->b, &p->battr);
	}
	alarm(0);
	kill(pid, SIGCONT);
	ended(pid);
	p->m->dev.proc = 1;
	refusals += failed;
	/* A QP that was reset before the request came does not answer. */
	if (!failed)
		return;
	texpect_error(&p->acq[0], trying->syndrome, true, index_of());
	assert_int_equal(tqp_state(&p->a), SH_QPS_ERR);
	/* The request did not come once more. */
	assert_int_equal(tqp_state(&p->b), receiver == LEAVES	? SH_QPS_ERR
					   : receiver == RESETS ? SH_QPS_RESET
								: SH_QPS_RTS);
}

/* No request of this QP is repeated because an answer does not come. */
static void twist_without_timeout(struct scene *s)
{
	trying->plot.twist(s);
	tqp_ctx(&s->p.a)->timeout = 0;
}

/* How many instructions the victim executes. *when: after how many the receiver's QP is in ERR. */
static unsigned int rehearse_refusal(const struct plot *plot, unsigned int *when)
{
	struct scene *s = calloc(1, sizeof(*s));
	unsigned int n = 0;
	pid_t pid;

	scene_open(s, plot);
	*when = 0;
	for (pid = victim(s); noted_step(pid);) {
		n++;
		if (!*when && tqp_ctx(&s->p.b)->state == SH_QPS_ERR)
			*when = n;
	}
	texpect_error(&s->p.acq[0], trying->syndrome, true, index_of());
	tpair_close(&s->p);
	free(s);
	return n;
}

/* From shortly before the move to ERR, which a recovery may carry out, to the end. */
static void stop_after_refusal(const struct refused *r)
{
	const struct plot plot = {r->plot.name,
				  r->plot.type,
				  r->plot.srq,
				  r->plot.opcode,
				  r->plot.len,
				  twist_without_timeout,
				  0};
	unsigned int n, when, apart, thrown = 0;
	enum stopped done = THROWN;

	trying = r;
	refusals = 0;
	rehearse_refusal(&plot, &when);
	n = rehearse_refusal(&plot, &when);
	assert_in_range(when, 100, n);
	apart = (n - when) / (SANITIZED ? 3 : stride() == 1 ? 40 : 15) + 1;
	for (unsigned int i = when - 40; i < n && done != ENDED; i += i < when ? 10 : apart) {
		done = stop_at(&plot, i, has_its_completion);
		thrown += done == THROWN;
	}
	print_message("# %s: %u instructions, ERR after %u, stopped at %u, refused by then at %u\n",
		      plot.name, n, when, thrown, refusals);
	assert_true(refusals > 1 || SANITIZED);
}

static void test_stopped(void **state)
{
	struct mock *m = mock_new(NULL);
	const bool can = can_be_thrown();

	(void)state;
	mock_free(m);
	if (!can) {
		print_message("# left out: no restartable sequences on this system\n");
		skip();
	}
	for (unsigned int i = 0; i < sizeof(refused) / sizeof(refused[0]); i += EACH) {
		receiver = i % 3;
		stop_after_refusal(&refused[i]);
	}
}

/* ---- the lock of its QP is gone when the answer is there ---- */

static void (*real_wake)(void *host, uint32_t proc);

/* The receiver's process is told of the error while the sender holds no requester's lock. */
static void taking_wake(void *host, uint32_t proc)
{
	if (taken_next.lock && !taken_next.lock->owner)
		taken_next.lock->owner = taken_next.word;
	real_wake(host, proc);
}

enum answer { ARRIVED, REFUSED, NO_DATA };

/* The receiver resets its QP before the sender takes the answer in. */
static void lock_gone(uint32_t type, enum answer answer)
{
	const struct plot plot = {"", type, false, MLX4_OPCODE_SEND, 200, NULL, 0};
	const uint32_t len = SH_SHORT + 1000;
	struct scene *s = calloc(1, sizeof(*s));
	struct tpair *p = &s->p;
	static uint8_t gone[SH_SHORT + 1000];
	struct twr wr;
	pid_t pid;

	scene_open(s, &plot);
	without_ends(p->m);
	take_while_copying();
	real_wake = ops.wake;
	ops.wake = taking_wake;
	tqp_ctx(&p->b)->timeout = 0;
	tqp_recv(&p->a, &(struct tsge){p->amem + 100000, 65536, p->akey}, 1);
	wr = tpair_wr(p, answer == REFUSED ? MLX4_OPCODE_RDMA_WRITE : MLX4_OPCODE_SEND, len);
	wr.sge[0] = (struct tsge){p->bmem + 500000, len, p->bkey};
	if (answer == NO_DATA)
		wr.sge[0] = (struct tsge){gone, len, without_memory(p, gone, len)};
	wr.signaled = true;
	wr.raddr = (uintptr_t)p->amem;
	wr.rkey = p->akey + 0x100;
	pid = stand_to_take(s, &p->b);
	tqp_send(&p->b, &wr);
	assert_true(taken_next.lock->owner != 0);
	texpect_none(&p->bcq[0]);
	__atomic_store_n(&taken_next.lock->owner, 0, __ATOMIC_SEQ_CST);
	taken_next.lock = NULL;
	assert_int_equal(tqp_to(&p->a, SH_QPS_RESET), 0);
	end_calls(s, pid);
	if (answer == ARRIVED)
		texpect(&p->bcq[0], MLX4_OPCODE_SEND, true, 0);
	else
		texpect_error(&p->bcq[0],
			      answer == REFUSED ? MLX4_SYNDROME_REM_ACCESS : MLX4_SYNDROME_LOC_PROT,
			      true, 0);
	p->m->dev.proc = 1;
	tpair_close(p);
	free(s);
}

static void test_lock_gone(void **state)
{
	(void)state;
	lock_gone(SH_QPT_RC, ARRIVED);
	lock_gone(SH_QPT_RC, REFUSED);
	lock_gone(SH_QPT_UC, ARRIVED);
	lock_gone(SH_QPT_UC, NO_DATA);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stopped),
		cmocka_unit_test(test_lock_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
