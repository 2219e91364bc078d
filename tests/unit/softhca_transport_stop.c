// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: a sender is stopped at many of its instructions, and stays stopped. The others wait
 * for nothing that it holds. When it continues, it makes no late store, loses no message and sends
 * none twice. If its QP has been moved to ERR meanwhile, each message has arrived or is flushed. So
 * it is with WRITEs, with and without immediate data, and with atomic operations.
 */
#include <errno.h>
#include <grp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/user.h>
#include <time.h>
#include <cmocka.h>

#include "softhca/device/queues/modify.h"
#include "softhca/device/queues/qp.h"
#include "softhca/device/queues/transitions.h"
#include "softhca/device/transport/responder.h"
#include "softhca_scene.h"
#include "softhca_step.h"

static bool can_be_thrown(void)
{
	return sh_self.catches != NULL;
}

static uint64_t peek(pid_t pid, const void *at)
{
	return (uint64_t)ptrace(PTRACE_PEEKDATA, pid, at, NULL);
}

/* Is the child at the one instruction where an armed thread cannot be thrown? */
static bool commits(pid_t pid)
{
#ifdef __x86_64__
	return sh_once_commits(&sh_self, (uint64_t)ptrace(PTRACE_PEEKUSER, pid,
							  offsetof(struct user, regs.rip), NULL));
#else
	(void)pid;
	return false;
#endif
}

/*
 * Arms the child's door again, as if the child had not been switched out since it entered: single
 * steps switch it out. Returns false if it cannot be thrown where it is.
 */
static bool arm(pid_t pid)
{
	uint64_t armed = commits(pid) ? 0 : peek(pid, &sh_self.armed);

	if (armed)
		assert_int_equal(ptrace(PTRACE_POKEDATA, pid, peek(pid, &sh_self.cs), armed), 0);
	return armed;
}

static void stop(pid_t pid)
{
	int status;

	assert_int_equal(ptrace(PTRACE_DETACH, pid, NULL, SIGSTOP), 0);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
}

/*
 * Sends one more message from the victim's QP, which works as before. This process posts it, not
 * the one that was stopped.
 */
static void once_more(struct scene *s)
{
	struct tpair *p = &s->p;
	struct mlx4_cqe cqe;
	struct twr wr = s->wr;

	while (tcq_poll(&p->acq[0], &cqe))
		assert_int_not_equal(cqe.owner_sr_opcode & 0x1f, MLX4_CQE_ERROR);
	while (tcq_poll(&p->bcq[1], &cqe))
		;
	wr.signaled = true;
	tqp_send(&p->a, &wr);
	assert_true(tcq_poll(&p->acq[0], &cqe));
	assert_int_equal(cqe.owner_sr_opcode & 0x1f, wr.opcode);
	assert_false(tcq_poll(&p->acq[0], &cqe));
	assert_int_equal(tcq_poll(&p->bcq[1], &cqe), wr.opcode == MLX4_OPCODE_SEND);
	assert_false(tcq_poll(&p->bcq[1], &cqe));
}

#define ADDED 5
#define MINE  0xee

static bool is_write(const struct plot *plot)
{
	return plot->opcode == MLX4_OPCODE_RDMA_WRITE;
}

static bool is_atomic(const struct plot *plot)
{
	return plot->opcode == MLX4_OPCODE_ATOMIC_FA;
}

static void armed(struct scene *s)
{
	tcq_arm(&s->p.bcq[1], false);
}

static bool is_armed(const struct plot *plot)
{
	return plot->twist == armed;
}

static unsigned int events(const struct scene *s)
{
	const struct mock_shared *shared = s->p.m->shared;
	unsigned int n = 0;

	for (uint32_t i = 0; i < shared->nrecords; i++)
		n += shared->record[i].evq == s->p.bcq[1].evq;
	return n;
}

/* The whole WRITE is there: a receiver that polls its memory takes it for a message. */
static bool written(struct scene *s, const struct plot *plot)
{
	return is_write(plot) && !memcmp((void *)(uintptr_t)s->wr.raddr, s->p.amem, plot->len);
}

/* What the victim changes is device memory. */
static void to_shared(struct scene *s)
{
	struct tpair *p = &s->p;
	struct sh_dev *dev = &p->m->dev;
	uint64_t there = dev->shared_off + TMEM;
	void *at = sh_at(dev, there);

	assert_int_equal(dev->ops->extend(dev->host, there, TMEM), 0);
	mock_map(p->m, p->b.ctx, at, TMEM);
	assert_int_equal(sh_mr_create(&p->m->daemon, 1, 0x4100, p->b.ctx, p->b.pdn, (uintptr_t)at,
				      TMEM, 0xf),
			 0);
	assert_int_equal(sh_mr_share(&p->m->daemon, 1, 0x4100, there), 0);
	s->wr.raddr = (uintptr_t)at;
	s->wr.rkey = 0x4100;
}

/* So is what it sends. */
static void in_shared(struct scene *s)
{
	struct sh_dev *dev = &s->p.m->dev;

	to_shared(s);
	memcpy(sh_at(dev, dev->shared_off), s->p.amem, TMEM);
	assert_int_equal(sh_mr_share(&s->p.m->daemon, 0, s->p.akey, dev->shared_off), 0);
}

static void shared_adds(struct scene *s)
{
	to_shared(s);
	s->wr.swap_add = ADDED;
}

static void shared_nearly_full(struct scene *s)
{
	in_shared(s);
	nearly_full(s);
}

static bool is_shared(const struct plot *plot)
{
	return plot->twist == in_shared || plot->twist == shared_adds ||
	       plot->twist == shared_nearly_full;
}

static void key_gone(struct scene *s)
{
	assert_int_equal(sh_mr_destroy(&s->p.m->daemon, 1, s->p.bkey), 0);
}

static void cq_full(struct scene *s)
{
	sh_cq_get(&s->p.m->dev, 1, s->p.bcq[1].cqn)->producer = 1u << s->p.bcq[1].log_size;
}

/* Has the receiver failed a receive, or lost the CQE of one? */
static bool failed(struct scene *s, const struct plot *plot)
{
	const struct sh_cq *cq = sh_cq_get(&s->p.m->dev, 1, s->p.bcq[1].cqn);

	return (plot->twist == key_gone && cq->producer) || (plot->twist == cq_full && cq->overrun);
}

/* Returns whether the other side can see the message before its sender has the acknowledgement. */
static bool visible_to_others(struct scene *s, const struct plot *plot)
{
	return written(s, plot) || failed(s, plot) ||
	       (is_atomic(plot) && *(uint64_t *)(uintptr_t)s->wr.raddr) ||
	       (is_armed(plot) && events(s));
}

static bool all_mine(const struct scene *s, const struct plot *plot)
{
	const uint8_t *at = (void *)(uintptr_t)s->wr.raddr;

	for (uint32_t i = 0; i < plot->len; i++)
		if (at[i] != MINE)
			return false;
	return true;
}

/*
 * Asserts that every message of the victim has arrived once, and one of the other peer. mine: the
 * receiver has used the memory of the WRITE since it saw it.
 */
static void all_arrived(struct scene *s, const struct plot *plot, bool mine)
{
	struct arrivals n = take_arrivals(s, plot);

	/* Of a chain, the message that waits for the next one is lost together with that. */
	if (may_lose(plot))
		assert_in_range(n.from_a, plot->chain ? plot->chain - 1 : 0, plot->chain + 1);
	else
		assert_int_equal(n.from_a, is_write(plot) || is_atomic(plot) ? 0 : plot->chain + 1);
	assert_int_equal(n.from_c, 1);
	assert_int_equal(events(s), is_armed(plot));
	if (is_write(plot))
		assert_true(mine ? all_mine(s, plot) : written(s, plot));
	if (is_atomic(plot))
		assert_int_equal(*(uint64_t *)(uintptr_t)s->wr.raddr, ADDED);
}

/* Does what the daemon does about threads that are in its way. */
static void look_again(struct sh_dev *daemon)
{
	const struct timespec nap = {.tv_nsec = 3000000};
	uint64_t moment = sh_grace_begin(daemon);

	nanosleep(&nap, NULL);
	sh_grace_suspect(daemon, moment);
}

static void left(struct sh_dev *daemon)
{
	uint64_t moment = sh_grace_begin(daemon);

	while (!sh_grace_over(daemon, 0, moment))
		look_again(daemon);
}

/*
 * The victim stays stopped. The other peer sends, keys are invalidated, and neither waits for the
 * victim. Then the victim continues.
 */
static void others_go_on(struct scene *s, const struct plot *plot, pid_t pid)
{
	struct twr wr = other_wr(s);
	bool mine;

	stop(pid);
	s->p.m->dev.proc = 2;
	wr.signaled = true;
	alarm(60);
	tqp_send(&s->c, &wr);
	texpect(&s->ccq[0], MLX4_OPCODE_SEND, true, 0);
	left(&s->p.m->daemon);
	alarm(0);
	mine = written(s, plot);
	if (mine)
		memset((void *)(uintptr_t)s->wr.raddr, MINE, plot->len);
	kill(pid, SIGCONT);
	ended(pid);
	s->p.m->dev.proc = 1;
	all_arrived(s, plot, mine);
	once_more(s);
}

/*
 * The victim stays stopped. The receiver takes its memory back, and what it stores there afterwards
 * stays.
 */
static void memory_is_mine(struct scene *s, const struct plot *plot, pid_t pid)
{
	static uint8_t mine[TMEM];
	uint8_t *theirs = (void *)(uintptr_t)s->wr.raddr;
	struct tpair *p = &s->p;
	int err;

	stop(pid);
	alarm(60);
	assert_int_equal(sh_mr_destroy(&p->m->daemon, 1, p->bkey), 0);
	if (is_shared(plot))
		assert_int_equal(sh_mr_destroy(&p->m->daemon, 1, s->wr.rkey), 0);
	left(&p->m->daemon);
	while ((err = tqp_to(&p->b, SH_QPS_ERR)) == -EINPROGRESS)
		look_again(&p->m->daemon);
	assert_int_equal(err, 0);
	while ((err = sh_qp_destroy(&p->m->daemon, 1, p->b.qpn, NULL)) == -EINPROGRESS)
		look_again(&p->m->daemon);
	assert_int_equal(err, 0);
	alarm(0);
	tfill(theirs, TMEM, 77);
	memcpy(mine, theirs, TMEM);
	kill(pid, SIGCONT);
	ended(pid);
	assert_memory_equal(mine, theirs, TMEM);
}

/*
 * The victim stays stopped, and another process moves its QP to ERR. Each of its messages has
 * arrived, or its send is flushed.
 */
static void none_vanishes(struct scene *s, const struct plot *plot, pid_t pid)
{
	const struct sh_qp_attr to = {.qp_state = SH_QPS_ERR};
	bool told[16] = {false};
	struct mlx4_cqe cqe;
	unsigned int i;
	int err;

	stop(pid);
	alarm(60);
	while ((err = sh_qp_modify(&s->p.m->daemon, 0, s->p.a.qpn, &to, SH_QPA_STATE)) ==
	       -EINPROGRESS)
		look_again(&s->p.m->daemon);
	assert_int_equal(err, 0);
	alarm(0);
	kill(pid, SIGCONT);
	ended(pid);
	while (tcq_poll(&s->p.acq[0], &cqe)) {
		i = be16toh((uint16_t)cqe.wqe_index);
		assert_in_range(i, 0, plot->chain);
		assert_false(told[i]);
		told[i] = true;
	}
	for (i = take_arrivals(s, plot).from_a; i <= plot->chain; i++)
		assert_true(told[i]);
}

/*
 * How many WRITEs with immediate data of the victim have told the receiver. Asserts that each of them
 * is in a receive of its own.
 */
static unsigned int immediates(struct scene *s)
{
	bool seen[RECEIVES] = {false};
	struct mlx4_cqe cqe;
	unsigned int n = 0;

	for (; tcq_poll(&s->p.bcq[1], &cqe); n++) {
		uint16_t index = be16toh((uint16_t)cqe.wqe_index);

		if ((cqe.owner_sr_opcode & 0x1f) == MLX4_CQE_ERROR)
			break;
		assert_int_equal(cqe.owner_sr_opcode & 0x1f, MLX4_CQE_RECV_RDMA_WRITE_IMM);
		assert_in_range(index, 0, RECEIVES - 1);
		assert_false(seen[index]);
		seen[index] = true;
	}
	return n;
}

/* The victim stays stopped, and its life ends. Each of its WRITEs arrives once. */
static void each_once(struct scene *s, const struct plot *plot, pid_t pid)
{
	stop(pid);
	alarm(60);
	left(&s->p.m->daemon);
	alarm(0);
	kill(pid, SIGCONT);
	ended(pid);
	assert_int_equal(immediates(s), plot->chain + 1);
	assert_memory_equal((void *)(uintptr_t)s->wr.raddr, s->p.amem, plot->len);
}

/*
 * The victim stays stopped, and its QP is moved to ERR. Each of its WRITEs has arrived, once, or is
 * flushed.
 */
static void none_doubled(struct scene *s, const struct plot *plot, pid_t pid)
{
	const struct sh_qp_attr to = {.qp_state = SH_QPS_ERR};
	bool flushed[16] = {false};
	struct mlx4_cqe cqe;
	unsigned int i, n;
	int err;

	stop(pid);
	alarm(60);
	while ((err = sh_qp_modify(&s->p.m->daemon, 0, s->p.a.qpn, &to, SH_QPA_STATE)) ==
	       -EINPROGRESS)
		look_again(&s->p.m->daemon);
	assert_int_equal(err, 0);
	alarm(0);
	n = immediates(s);
	assert_in_range(n, 0, plot->chain + 1);
	kill(pid, SIGCONT);
	ended(pid);
	/* What is flushed does not arrive when the victim goes on. */
	assert_int_equal(immediates(s), 0);
	while (tcq_poll(&s->p.acq[0], &cqe)) {
		i = be16toh((uint16_t)cqe.wqe_index);
		assert_in_range(i, 0, plot->chain);
		assert_false(flushed[i]);
		flushed[i] = true;
	}
	for (i = n; i <= plot->chain; i++)
		assert_true(flushed[i]);
}

/*
 * The victim is stopped while it fails a receive. A QP that has failed one is in ERR, and none is
 * failed twice.
 */
static void fails_whole(struct scene *s, const struct plot *plot, pid_t pid)
{
	stop(pid);
	alarm(60);
	left(&s->p.m->daemon);
	alarm(0);
	kill(pid, SIGCONT);
	ended(pid);
	assert_int_equal(tqp_state(&s->p.b) == SH_QPS_ERR, failed(s, plot));
	if (plot->srq)
		assert_int_equal(sh_srq_get(&s->p.m->dev, 1, 0x60)->consumed, failed(s, plot));
}

/*
 * Returns how many instructions the victim executes. *visible: after how many of them the other
 * side can see all that they store there; 0: never.
 */
static unsigned int rehearse(const struct plot *plot, unsigned int *visible, bool stepping)
{
	struct scene *s = calloc(1, sizeof(*s));
	unsigned int n = 0;
	pid_t pid;

	scene_open(s, plot);
	pid = victim(s);
	*visible = 0;
	if (!stepping) {
		let_run(pid);
		visible_to_others(s, plot);
	}
	while (stepping && noted_step(pid)) {
		n++;
		if (!*visible && visible_to_others(s, plot))
			*visible = n;
	}
	tpair_close(&s->p);
	free(s);
	return n;
}

static unsigned int steps_of(const struct plot *plot, unsigned int *visible)
{
	/* The first run only binds symbols, so that later runs take the same steps. */
	rehearse(plot, visible, false);
	return rehearse(plot, visible, true);
}

/*
 * A test that ends no life has tried nothing, so it fails. Not so under a sanitizer: there the code
 * is so long that few of the points may meet an armed thread.
 */
#ifdef __SANITIZE_ADDRESS__
#define SANITIZED true
#define EACH	  3 /* it makes the ways long: every third plot */
#else
#define SANITIZED false
#define EACH	  1
#endif

enum stopped { ENDED, LEFT_ALONE, THROWN };

/*
 * Stops the victim at this point and calls then(). If it cannot be thrown there, it continues at
 * once.
 */
static enum stopped stop_at(const struct plot *plot, unsigned int at,
			    void (*then)(struct scene *, const struct plot *, pid_t))
{
	struct scene *s = calloc(1, sizeof(*s));
	enum stopped done = LEFT_ALONE;
	bool alive;
	pid_t pid;

	scene_open(s, plot);
	pid = victim(s);
	/*
	 * The victim takes fewer steps when this process, of which it is a copy, has bound more
	 * symbols.
	 */
	alive = walk(pid, at);
	if (!alive) {
		done = ENDED;
	} else if (arm(pid)) {
		then(s, plot, pid);
		done = THROWN;
	} else {
		ptrace(PTRACE_DETACH, pid, NULL, NULL);
		ended(pid);
	}
	tpair_close(&s->p);
	free(s);
	return done;
}

/*
 * Stops at every so many instructions and not only after stores, because what the victim has read
 * may be out of date as well.
 */
static void stop_at_each(const struct plot *plot,
			 void (*then)(struct scene *, const struct plot *, pid_t))
{
	unsigned int n, apart, visible, thrown = 0;
	enum stopped done = THROWN;

	n = steps_of(plot, &visible);
	apart = n / (SANITIZED ? 3 : stride() == 1 ? 20 : 8) + 1;
	for (unsigned int i = apart / 2; i < n && done != ENDED; i += apart) {
		done = stop_at(plot, i, then);
		thrown += done == THROWN;
	}
	print_message("# %s: %u instructions, stopped at %u\n", plot->name, n, thrown);
	/*
	 * Under a sanitizer, which makes the ways long, there are few points, and most of them are in
	 * its own code.
	 */
	assert_true(thrown > 3 || SANITIZED);
}

static void adds(struct scene *s)
{
	s->wr.swap_add = ADDED;
}

static const struct plot plots[] = {
	{"SEND to an RQ", SH_QPT_RC, false, MLX4_OPCODE_SEND, 200, NULL, 0},
	{"SEND to an SRQ", SH_QPT_RC, true, MLX4_OPCODE_SEND, 200, NULL, 0},
	{"large SEND to an SRQ", SH_QPT_RC, true, MLX4_OPCODE_SEND, 8200, NULL, 0},
	{"SEND over XRC", SH_QPT_XRC, false, MLX4_OPCODE_SEND, 200, NULL, 0},
	{"SENDs over XRC", SH_QPT_XRC, false, MLX4_OPCODE_SEND, 200, NULL, 3},
	{"SENDs to an RQ", SH_QPT_RC, false, MLX4_OPCODE_SEND, 200, NULL, 4},
	{"SENDs to a CQ that seems full", SH_QPT_RC, false, MLX4_OPCODE_SEND, 200, nearly_full, 3},
	{"WRITE", SH_QPT_RC, true, MLX4_OPCODE_RDMA_WRITE, 100, NULL, 0},
	{"long WRITE", SH_QPT_RC, true, MLX4_OPCODE_RDMA_WRITE, SH_SHORT + 1000, NULL, 0},
	{"SEND to an armed CQ", SH_QPT_RC, false, MLX4_OPCODE_SEND, 200, armed, 0},
	{"atomic operation", SH_QPT_RC, true, MLX4_OPCODE_ATOMIC_FA, 8, adds, 0},
	{"shared WRITE", SH_QPT_RC, true, MLX4_OPCODE_RDMA_WRITE, 104, in_shared, 0},
	{"shared WRITE of odd length", SH_QPT_RC, true, MLX4_OPCODE_RDMA_WRITE, 99, in_shared, 0},
	{"long shared WRITE", SH_QPT_RC, true, MLX4_OPCODE_RDMA_WRITE, SH_SHORT + 1000, in_shared,
	 0},
	{"shared atomic operation", SH_QPT_RC, true, MLX4_OPCODE_ATOMIC_FA, 8, shared_adds, 0},
	{"SEND over UC", SH_QPT_UC, false, MLX4_OPCODE_SEND, 200, NULL, 0},
	{"SENDs over UC", SH_QPT_UC, true, MLX4_OPCODE_SEND, 200, NULL, 3},
	{"SEND over UD", SH_QPT_UD, false, MLX4_OPCODE_SEND, 200, NULL, 0},
	{"SENDs over UD", SH_QPT_UD, true, MLX4_OPCODE_SEND, 200, NULL, 3},
};

static void each_plot(void (*then)(struct scene *, const struct plot *, pid_t))
{
	for (unsigned int i = 0; i < sizeof(plots) / sizeof(plots[0]); i += EACH)
		stop_at_each(&plots[i], then);
}

static void test_others_go_on(void **state)
{
	(void)state;
	each_plot(others_go_on);
}

/* What the kernel says of a thread is long then. */
static void test_many_groups(void **state)
{
	gid_t groups[1000];

	(void)state;
	for (unsigned int i = 0; i < 1000; i++)
		groups[i] = 100000 + i;
	if (setgroups(1000, groups)) {
		print_message("# left out: only root can join groups\n");
		return;
	}
	stop_at_each(&plots[0], others_go_on);
	assert_int_equal(setgroups(0, NULL), 0);
}

/*
 * What the receiver can see before the sender has its acknowledgement is not done again. This stops
 * the sender at the instructions from there on.
 */
static void test_done_once(void **state)
{
	unsigned int apart = SANITIZED	     ? 25
			     : stride() == 1 ? 2
					     : 7,
		     far = 100, visible, thrown, all = 0;

	(void)state;
	for (unsigned int i = 0; i < sizeof(plots) / sizeof(plots[0]); i += EACH) {
		if (!is_write(&plots[i]) && !is_atomic(&plots[i]) && !is_armed(&plots[i]))
			continue;
		steps_of(&plots[i], &visible);
		assert_int_not_equal(visible, 0);
		thrown = 0;
		/* The instructions around the one that makes it visible are the ones that matter. */
		for (unsigned int at = visible - 3; at < visible + far;
		     at += at < visible + 5 ? 1 : apart) {
			enum stopped how = stop_at(&plots[i], at, others_go_on);

			if (how == ENDED)
				break;
			thrown += how == THROWN;
		}
		printf("# %s: %u lives ended when the message was visible\n", plots[i].name,
		       thrown);
		all += thrown;
		/* All but the instruction that commits. In other memory the system commits. */
		assert_true(thrown >= 7 || SANITIZED);
	}
	assert_true(all > 0 || SANITIZED);
}

/*
 * A CQ that is armed once raises one event, even if the thread that arms it is stopped and messages
 * complete meanwhile.
 */
static bool armed_once(unsigned int at, unsigned int *stops)
{
	static const struct plot plot = {"arm", SH_QPT_RC, true, MLX4_OPCODE_SEND, 200, NULL, 0};
	struct scene *s = calloc(1, sizeof(*s));
	bool alive;
	struct twr wr;
	pid_t pid;

	scene_open(s, &plot);
	s->arms = true;
	pid = victim(s);
	alive = walk(pid, at);
	if (alive && arm(pid)) {
		stop(pid);
		wr = s->wr;
		wr.sge[0] = (struct tsge){s->p.amem + 32768, 100, 0x3000};
		wr.nsge = 1;
		wr.signaled = true;
		s->p.m->dev.proc = 2;
		alarm(60);
		tqp_send(&s->c, &wr);
		left(&s->p.m->daemon);
		alarm(0);
		kill(pid, SIGCONT);
		ended(pid);
		assert_int_equal(events(s), 1);
		tqp_send(&s->c, &wr);
		assert_int_equal(events(s), 1);
		s->p.m->dev.proc = 1;
		++*stops;
	} else if (alive) {
		ptrace(PTRACE_DETACH, pid, NULL, NULL);
		ended(pid);
	}
	tpair_close(&s->p);
	free(s);
	return alive;
}

static void test_armed_once(void **state)
{
	static const struct plot plot = {"arm", SH_QPT_RC, true, MLX4_OPCODE_SEND, 200, NULL, 0};
	struct scene *s = calloc(1, sizeof(*s));
	unsigned int stops = 0, steps = 0, apart;
	pid_t pid;

	(void)state;
	scene_open(s, &plot);
	s->arms = true;
	for (pid = victim(s); noted_step(pid); steps++)
		;
	tpair_close(&s->p);
	free(s);
	/* The number of points is the same however long a sanitizer makes the code. */
	apart = steps / (SANITIZED ? 15 : stride() == 1 ? 200 : 40) + 1;
	for (unsigned int at = 1; armed_once(at, &stops); at += apart)
		;
	printf("# arm: %u instructions, stopped at %u\n", steps, stops);
	assert_true(stops > 0 || SANITIZED);
}

static void test_memory(void **state)
{
	(void)state;
	each_plot(memory_is_mine);
}

static void test_error_meanwhile(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < sizeof(plots) / sizeof(plots[0]); i += EACH)
		if (plots[i].chain && !may_lose(&plots[i]))
			stop_at_each(&plots[i], none_vanishes);
}

/* Chains of WRITEs with immediate data, in memory of both kinds. */
static void test_immediates(void **state)
{
	static const struct plot chains[] = {
		{"WRITEs with immediate", SH_QPT_RC, false, MLX4_OPCODE_RDMA_WRITE_IMM, 200, NULL,
		 3},
		{"shared WRITEs with immediate", SH_QPT_RC, false, MLX4_OPCODE_RDMA_WRITE_IMM, 200,
		 in_shared, 3},
		{"shared WRITEs with immediate to an SRQ", SH_QPT_RC, true,
		 MLX4_OPCODE_RDMA_WRITE_IMM, 203, in_shared, 3},
		{"shared WRITEs with immediate to a CQ that seems full", SH_QPT_RC, false,
		 MLX4_OPCODE_RDMA_WRITE_IMM, 200, shared_nearly_full, 3},
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(chains) / sizeof(chains[0]); i++) {
		stop_at_each(&chains[i], each_once);
		stop_at_each(&chains[i], none_doubled);
	}
}

/* An unreliable service does not send again, so the thread must not leave a receive half failed. */
static void test_failed_receive(void **state)
{
	static const struct plot failing[] = {
		{"UD SEND to a key that is gone", SH_QPT_UD, false, MLX4_OPCODE_SEND, 200, key_gone,
		 0},
		{"UD SEND to a full CQ", SH_QPT_UD, false, MLX4_OPCODE_SEND, 200, cq_full, 0},
		{"RC SEND to a full CQ", SH_QPT_RC, true, MLX4_OPCODE_SEND, 200, cq_full, 0},
		{"UC SEND to a full CQ", SH_QPT_UC, false, MLX4_OPCODE_SEND, 200, cq_full, 0},
		{"UC WRITE to a full CQ", SH_QPT_UC, false, MLX4_OPCODE_RDMA_WRITE_IMM, 200,
		 cq_full, 0},
	};
	unsigned int before = 100, far = 160,
		     apart = SANITIZED	     ? 60
			     : stride() == 1 ? 3
					     : 23,
		     visible, thrown;

	(void)state;
	for (unsigned int i = 0; i < sizeof(failing) / sizeof(failing[0]); i++) {
		steps_of(&failing[i], &visible);
		assert_true(visible > before);
		thrown = 0;
		for (unsigned int at = visible - before; at < visible + far; at += apart) {
			enum stopped how = stop_at(&failing[i], at, fails_whole);

			if (how == ENDED)
				break;
			thrown += how == THROWN;
		}
		printf("# %s: %u lives ended\n", failing[i].name, thrown);
		assert_true(thrown > 0 || SANITIZED);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_others_go_on),   cmocka_unit_test(test_many_groups),
		cmocka_unit_test(test_done_once),      cmocka_unit_test(test_armed_once),
		cmocka_unit_test(test_memory),	       cmocka_unit_test(test_error_meanwhile),
		cmocka_unit_test(test_failed_receive), cmocka_unit_test(test_immediates)};
	struct mock *m = mock_new(NULL);
	bool can = can_be_thrown();

	mock_free(m);
	if (!can) {
		printf("1..0 # SKIP no restartable sequences on this system\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
