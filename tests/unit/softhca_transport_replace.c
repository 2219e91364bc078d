// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: while a sender stands between two instructions, the receiver destroys the XRC SRQ
 * that the request names, and creates another one with the same number, another PD and another CQ.
 * The request then uses the receive, the PD and the CQ of one of the two SRQs, or of neither.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <cmocka.h>

#include "softhca/device/queues/srq.h"
#include "softhca/device/transport/responder.h"
#include "softhca_scene.h"
#include "softhca_step.h"

#define DOMAIN	9 /* of the receiver's QP and of its first SRQ */
#define NEW_PD	6
#define NEW_CQN 0x9a
#define NEW_KEY 0x2200
#define PLACE	65536 /* where the receives point to; a WRITE goes to the start */
#define LONG	(SH_SHORT + 1000)

/* How the receiver executes the request. PACKETS: the ordinary way, one packet after the other. */
enum way { EXPRESS, ORDINARY, PACKETS };

struct play {
	const char *name;
	uint8_t opcode;
	uint32_t len;
	enum way way;
	/* To memory of the new SRQ's PD. The new SRQ is of another domain, so neither allows it. */
	bool stray;
};

struct stage {
	struct scene s;
	struct tcq cq; /* of the new SRQ */
	struct tsrq srq;
	uint8_t *mem;
	bool replaced;
};

static void stage_open(struct stage *g, const struct play *play)
{
	struct tpair *p = &g->s.p;
	struct mock *m;

	tpair_open(p, &(struct tpair_opts){.type = SH_QPT_XRC, .unconnected = true});
	m = p->m;
	tqp_up(&p->a, &p->aattr);
	tqp_init(&p->b, &p->battr);
	tqp_rtr(&p->b, &p->battr);
	/* In RTR the first packet takes the ordinary way. */
	if (play->way == EXPRESS)
		tqp_rts(&p->b, &p->battr);
	sh_ctx(&m->dev, p->b.ctx)->proc = 2;
	sh_proc(&m->dev, 2)->pid = (uint32_t)getpid();
	tpair_recv(p, PLACE, PLACE);
	/* The victim is a copy of this process, so all of the memory must be there before it is. */
	tcq_open(&g->cq, m, 1, p->b.ctx, NEW_CQN, 7);
	g->mem = mmap(NULL, TMEM, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(g->mem != MAP_FAILED);
	mock_map(m, p->b.ctx, g->mem, TMEM);
	assert_int_equal(
		sh_mr_create(&m->daemon, 1, NEW_KEY, p->b.ctx, NEW_PD, (uintptr_t)g->mem, TMEM,
			     SH_LOCAL_WRITE | SH_REMOTE_WRITE | SH_REMOTE_READ | SH_REMOTE_ATOMIC),
		0);
	m->inst->faults.active = play->way == PACKETS;
	tfill(p->amem, PLACE, 3);
	g->s.wr = tpair_wr(p, play->opcode, play->len);
	if (play->stray) {
		g->s.wr.raddr = (uintptr_t)g->mem;
		g->s.wr.rkey = NEW_KEY;
	}
	tqp_post(&p->a, &g->s.wr);
}

static void stage_close(struct stage *g)
{
	tpair_close(&g->s.p);
	munmap(g->mem, TMEM);
	free(g);
}

static struct sh_srq *srq_of(const struct stage *g)
{
	return sh_srq_get(&g->s.p.m->dev, 1, g->s.p.srq.srqn);
}

/* The daemon could not destroy the SRQ while a thread holds its lock. */
static bool can_be_replaced(const struct stage *g)
{
	return !__atomic_load_n(&srq_of(g)->lock.owner, __ATOMIC_RELAXED);
}

static void replace(struct stage *g, const struct play *play)
{
	struct tpair *p = &g->s.p;
	uint32_t events;

	if (!can_be_replaced(g) ||
	    sh_srq_destroy(&p->m->daemon, 1, p->srq.srqn, &events) == -EINPROGRESS)
		return;
	tsrq_open(&g->srq, p->m, 1, p->b.ctx, NEW_PD, p->srq.srqn,
		  play->stray ? DOMAIN + 1 : DOMAIN, NEW_CQN);
	tsrq_post(&g->srq, &(struct tsge){g->mem + PLACE, PLACE, NEW_KEY}, 1);
	g->replaced = true;
}

static bool untouched(const uint8_t *mem)
{
	for (size_t i = 0; i < TMEM; i++)
		if (mem[i])
			return false;
	return true;
}

static unsigned int arrived(struct tcq *cq)
{
	struct mlx4_cqe cqe;
	unsigned int n;

	for (n = 0; tcq_poll(cq, &cqe); n++)
		assert_int_not_equal(cqe.owner_sr_opcode & 0x1f, MLX4_CQE_ERROR);
	return n;
}

static bool is_write(const struct play *play)
{
	return play->opcode != MLX4_OPCODE_SEND;
}

static void one_or_the_other(struct stage *g, const struct play *play, unsigned int result[3])
{
	struct tpair *p = &g->s.p;
	unsigned int old = arrived(&p->bcq[1]), new = arrived(&g->cq);
	struct mlx4_cqe cqe;
	bool sent;

	assert_true(old + new <= 1);
	sent = tcq_poll(&p->acq[0], &cqe) && (cqe.owner_sr_opcode & 0x1f) != MLX4_CQE_ERROR;
	assert_int_equal(sent, old + new);
	if (g->replaced)
		assert_int_equal(srq_of(g)->consumed, new);
	if (old)
		assert_memory_equal(p->bmem + (is_write(play) ? 0 : PLACE), p->amem, play->len);
	if (new) {
		assert_false(is_write(play));
		assert_memory_equal(g->mem + PLACE, p->amem, play->len);
		assert_true(untouched(p->bmem));
	} else {
		assert_true(untouched(g->mem));
	}
	/* A part of a longer SEND may have been placed before the SRQ was destroyed. */
	if (!old && (is_write(play) || (play->len <= SH_SHORT && play->way != PACKETS)))
		assert_true(untouched(p->bmem));
	result[old ? 0 : new ? 1 : 2]++;
}

static bool has_receiver(const struct stage *g)
{
	return __atomic_load_n(&tqp_ctx((struct tqp *)&g->s.p.b)->rlock.owner, __ATOMIC_RELAXED);
}

/*
 * After how many instructions the sender holds the receiver's lock, and the SRQ can be replaced.
 * With points NULL it only binds symbols, so that later runs take the same steps.
 */
static unsigned int rehearse(const struct play *play, unsigned int *points)
{
	struct stage *g = calloc(1, sizeof(*g));
	unsigned int n = 0, steps = 0;
	pid_t pid;

	stage_open(g, play);
	pid = victim(&g->s);
	if (!points)
		let_run(pid);
	while (points && noted_step(pid)) {
		steps++;
		if (n < MAX_STEPS && has_receiver(g) && can_be_replaced(g))
			points[n++] = steps;
	}
	stage_close(g);
	return n;
}

static void replace_at(const struct play *play, unsigned int at, unsigned int result[3])
{
	struct stage *g = calloc(1, sizeof(*g));
	bool alive;
	pid_t pid;

	stage_open(g, play);
	pid = victim(&g->s);
	alive = walk(pid, at);
	replace(g, play);
	if (alive) {
		assert_int_equal(ptrace(PTRACE_DETACH, pid, NULL, NULL), 0);
		ended(pid);
	}
	one_or_the_other(g, play, result);
	stage_close(g);
}

/*
 * At most how many points of a play are tried in the quick tier; the full tier tries twice as
 * many. A sanitizer makes the ways long. In a stray request the moment that matters is two
 * instructions long: POINTS=100000 in the environment tries each point, which takes many minutes.
 */
#ifdef __SANITIZE_ADDRESS__
#define POINTS_QUICK 2
#define NEAR	     1
#else
#define POINTS_QUICK 12
#define NEAR	     3
#endif

static unsigned int points_apart(unsigned int n)
{
	const char *wanted = getenv("POINTS");
	unsigned int most = stride() == 1 ? 2 * POINTS_QUICK : POINTS_QUICK;

	if (wanted && atoi(wanted) > 0)
		most = (unsigned int)atoi(wanted);
	return n / most + 1;
}

/*
 * Whether the sender locks the SRQ within the next NEAR instructions after point i, or has unlocked
 * it within the last NEAR. What it read of the SRQ too early or too late, it read around there.
 */
static bool beside_lock(const unsigned int *points, unsigned int n, unsigned int i)
{
	for (unsigned int j = i; j + 1 < n && j < i + NEAR; j++)
		if (points[j + 1] != points[j] + 1)
			return true;
	for (unsigned int j = i; j > 0 && j + NEAR > i; j--)
		if (points[j] != points[j - 1] + 1)
			return true;
	return false;
}

static void play_out(const struct play *play)
{
	static unsigned int points[MAX_STEPS];
	unsigned int n, apart, result[3] = {0};

	rehearse(play, NULL);
	n = rehearse(play, points);
	assert_true(n > 0);
	apart = points_apart(n);
	for (unsigned int i = 0; i < n; i++)
		if (i % apart == 0 || beside_lock(points, n, i))
			replace_at(play, points[i], result);
	print_message("# %s: %u points; old SRQ %u, new %u, neither %u\n", play->name,
		      result[0] + result[1] + result[2], result[0], result[1], result[2]);
	if (play->stray)
		assert_int_equal(result[0] + result[1], 0);
}

static void test_send(void **state)
{
	static const struct play plays[] = {
		{"SEND", MLX4_OPCODE_SEND, 200, ORDINARY, false},
		{"SEND on the express way", MLX4_OPCODE_SEND, 200, EXPRESS, false},
		{"long SEND", MLX4_OPCODE_SEND, LONG, ORDINARY, false},
		{"SEND of several packets", MLX4_OPCODE_SEND, 2500, PACKETS, false},
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(plays) / sizeof(plays[0]); i++)
		play_out(&plays[i]);
}

static void test_write(void **state)
{
	static const struct play plays[] = {
		{"WRITE with immediate", MLX4_OPCODE_RDMA_WRITE_IMM, 200, ORDINARY, false},
		{"WRITE with immediate on the express way", MLX4_OPCODE_RDMA_WRITE_IMM, 200,
		 EXPRESS, false},
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(plays) / sizeof(plays[0]); i++)
		play_out(&plays[i]);
}

/*
 * A key that neither SRQ's PD and domain allow opens nothing while one SRQ takes the other's place.
 */
static void test_stray(void **state)
{
	static const struct play plays[] = {
		{"stray WRITE", MLX4_OPCODE_RDMA_WRITE, 200, ORDINARY, true},
		{"stray WRITE on the express way", MLX4_OPCODE_RDMA_WRITE, 200, EXPRESS, true},
		{"stray READ", MLX4_OPCODE_RDMA_READ, 200, ORDINARY, true},
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(plays) / sizeof(plays[0]); i++)
		play_out(&plays[i]);
}

/*
 * The sender is killed in the middle of a message, and the receiver's QP flushes what it had begun.
 */
static void test_flush(void **state)
{
	static const struct play play = {"flush", MLX4_OPCODE_SEND, 2500, PACKETS, false};
	static unsigned int points[MAX_STEPS];
	unsigned int n, apart, begun = 0;

	(void)state;
	rehearse(&play, NULL);
	n = rehearse(&play, points);
	apart = points_apart(n);
	for (unsigned int i = 0; i < n; i += apart) {
		struct stage *g = calloc(1, sizeof(*g));
		struct tpair *p = &g->s.p;
		pid_t pid;

		stage_open(g, &play);
		pid = victim(&g->s);
		assert_true(walk(pid, points[i]));
		replace(g, &play);
		assert_true(g->replaced);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		begun += tqp_ctx(&p->b)->cur_wqe != 0;
		assert_int_equal(tqp_to(&p->b, SH_QPS_ERR), 0);
		assert_int_equal(arrived(&g->cq), 0);
		assert_int_equal(srq_of(g)->consumed, 0);
		assert_true(untouched(g->mem));
		stage_close(g);
	}
	print_message("# flush: in the middle of a message at %u of %u points\n", begun,
		      (n + apart - 1) / apart);
	assert_true(begun > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_send), cmocka_unit_test(test_write),
		cmocka_unit_test(test_stray), cmocka_unit_test(test_flush)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
