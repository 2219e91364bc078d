/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A sender that is stopped at many of its instructions, and what the other side can see
 * meanwhile.
 */
#ifndef TESTS_UNIT_SOFTHCA_STOP_RIG_H
#define TESTS_UNIT_SOFTHCA_STOP_RIG_H

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

static inline bool can_be_thrown(void)
{
	return sh_self.catches != NULL;
}

static inline uint64_t peek(pid_t pid, const void *at)
{
	return (uint64_t)ptrace(PTRACE_PEEKDATA, pid, at, NULL);
}

/* Is the child at the one instruction where an armed thread cannot be thrown? */
static inline bool commits(pid_t pid)
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
static inline bool arm(pid_t pid)
{
	uint64_t armed = commits(pid) ? 0 : peek(pid, &sh_self.armed);

	if (armed)
		assert_int_equal(ptrace(PTRACE_POKEDATA, pid, peek(pid, &sh_self.cs), armed), 0);
	return armed;
}

static inline void stop(pid_t pid)
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
static inline void once_more(struct scene *s)
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

static inline bool is_write(const struct plot *plot)
{
	return plot->opcode == MLX4_OPCODE_RDMA_WRITE;
}

static inline bool is_atomic(const struct plot *plot)
{
	return plot->opcode == MLX4_OPCODE_ATOMIC_FA;
}

static inline void armed(struct scene *s)
{
	tcq_arm(&s->p.bcq[1], false);
}

static inline bool is_armed(const struct plot *plot)
{
	return plot->twist == armed;
}

static inline unsigned int events(const struct scene *s)
{
	const struct mock_shared *shared = s->p.m->shared;
	unsigned int n = 0;

	for (uint32_t i = 0; i < shared->nrecords; i++)
		n += shared->record[i].evq == s->p.bcq[1].evq;
	return n;
}

/* The whole WRITE is there: a receiver that polls its memory takes it for a message. */
static inline bool written(struct scene *s, const struct plot *plot)
{
	return is_write(plot) && !memcmp((void *)(uintptr_t)s->wr.raddr, s->p.amem, plot->len);
}

/* What the victim changes is device memory. */
static inline void to_shared(struct scene *s)
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
static inline void in_shared(struct scene *s)
{
	struct sh_dev *dev = &s->p.m->dev;

	to_shared(s);
	memcpy(sh_at(dev, dev->shared_off), s->p.amem, TMEM);
	assert_int_equal(sh_mr_share(&s->p.m->daemon, 0, s->p.akey, dev->shared_off), 0);
}

static inline void shared_adds(struct scene *s)
{
	to_shared(s);
	s->wr.swap_add = ADDED;
}

static inline void shared_nearly_full(struct scene *s)
{
	in_shared(s);
	nearly_full(s);
}

static inline bool is_shared(const struct plot *plot)
{
	return plot->twist == in_shared || plot->twist == shared_adds ||
	       plot->twist == shared_nearly_full;
}

static inline void key_gone(struct scene *s)
{
	assert_int_equal(sh_mr_destroy(&s->p.m->daemon, 1, s->p.bkey), 0);
}

static inline void cq_full(struct scene *s)
{
	sh_cq_get(&s->p.m->dev, 1, s->p.bcq[1].cqn)->producer = 1u << s->p.bcq[1].log_size;
}

/* Has the receiver failed a receive, or lost the CQE of one? */
static inline bool failed(struct scene *s, const struct plot *plot)
{
	const struct sh_cq *cq = sh_cq_get(&s->p.m->dev, 1, s->p.bcq[1].cqn);

	return (plot->twist == key_gone && cq->producer) || (plot->twist == cq_full && cq->overrun);
}

/* Returns whether the other side can see the message before its sender has the acknowledgement. */
static inline bool visible_to_others(struct scene *s, const struct plot *plot)
{
	return written(s, plot) || failed(s, plot) ||
	       (is_atomic(plot) && *(uint64_t *)(uintptr_t)s->wr.raddr) ||
	       (is_armed(plot) && events(s));
}

static inline bool all_mine(const struct scene *s, const struct plot *plot)
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
static inline void all_arrived(struct scene *s, const struct plot *plot, bool mine)
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
static inline void look_again(struct sh_dev *daemon)
{
	const struct timespec nap = {.tv_nsec = 3000000};
	uint64_t moment = sh_grace_begin(daemon);

	nanosleep(&nap, NULL);
	sh_grace_suspect(daemon, moment);
}

static inline void left(struct sh_dev *daemon)
{
	uint64_t moment = sh_grace_begin(daemon);

	while (!sh_grace_over(daemon, 0, moment))
		look_again(daemon);
}

/*
 * Returns how many instructions the victim executes. *visible: after how many of them the other
 * side can see all that they store there; 0: never.
 */
static inline unsigned int rehearse(const struct plot *plot, unsigned int *visible, bool stepping)
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

static inline unsigned int steps_of(const struct plot *plot, unsigned int *visible)
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
static inline enum stopped stop_at(const struct plot *plot, unsigned int at,
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
static inline void stop_at_each(const struct plot *plot,
				void (*then)(struct scene *, const struct plot *, pid_t))
{
	unsigned int n, apart, visible, thrown = 0;
	enum stopped done = THROWN;

	n = steps_of(plot, &visible);
	apart = n / (SANITIZED ? 3 : stride() == 1 ? 15 : 6) + 1;
	for (unsigned int i = apart / 2; i < n && done != ENDED; i += apart) {
		done = stop_at(plot, i, then);
		thrown += done == THROWN;
	}
	print_message("# %s: %u instructions, stopped at %u\n", plot->name, n, thrown);
	/*
	 * Under a sanitizer, which makes the ways long, there are few points, and most of them are
	 * in its own code.
	 */
	assert_true(thrown > 3 || SANITIZED);
}

static inline void adds(struct scene *s)
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

static inline void each_plot(void (*then)(struct scene *, const struct plot *, pid_t))
{
	for (unsigned int i = 0; i < sizeof(plots) / sizeof(plots[0]); i += EACH)
		stop_at_each(&plots[i], then);
}

/*
 * The victim stays stopped. The other peer sends, keys are invalidated, and neither waits for the
 * victim. Then the victim continues.
 */
static inline void others_go_on(struct scene *s, const struct plot *plot, pid_t pid)
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

#endif
