// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: a sender is killed, or stopped for a while, after each of its stores into shared
 * memory, whatever it is doing to its peer at that moment. The others lose no WQE, no CQE and no
 * message, and see none twice.
 */
#include <endian.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "softhca_pair.h"
#include "softhca_scene.h"
#include "softhca_step.h"
#include "softhca/device/queues/qp.h"
#include "softhca/device/queues/srq_receives.h"
#include "softhca/device/transport/express.h"

/*
 * Asserts that every receive completes once: by a message of one of the two peers, or by a flush.
 */
static void survive(struct scene *s, const struct plot *plot)
{
	struct tpair *p = &s->p;
	bool seen[RECEIVES] = {false};
	unsigned int total = 0, good = 0, own = 0, others = 0;
	struct mlx4_cqe cqe;
	struct twr wr;

	p->m->dev.proc = 2;
	wr = other_wr(s);
	/*
	 * Before the daemon has noticed the death, the other peer finds what the victim left
	 * behind. A long message first takes the lock of the SRQ alone.
	 */
	if (shares_receives(plot))
		wr.sge[0].len = plot->type == SH_QPT_UD ? 4096 : SH_SHORT + 1;
	tqp_send(&s->c, &wr);
	wr.sge[0].len = 100;
	/* The daemon cleans up after the victim. */
	sh_ctx(&p->m->dev, p->a.ctx)->state = SH_CTX_GONE;
	assert_int_equal(sh_qp_silence(&p->m->daemon, 0, p->a.qpn), 0);
	assert_int_equal(sh_qp_destroy(&p->m->daemon, 0, p->a.qpn, NULL), 0);
	assert_true(sh_enter(&p->m->dev));
	sh_attention(&p->m->dev);
	sh_leave(&p->m->dev);
	mock_advance(p->m, 100000000);
	/* The receiver ends the connection. */
	assert_int_equal(tqp_to(&p->b, SH_QPS_ERR), 0);
	assert_int_equal(sh_qp_destroy(&p->m->daemon, 1, p->b.qpn, NULL), 0);
	/*
	 * The other peer sends to all receives that are left. For the last messages there may be
	 * none.
	 */
	if (s->other.srqn) {
		struct sh_srq *srq = sh_srq_get(&p->m->dev, 1, s->other.srqn);
		struct twr to = wr;
		int n;

		sh_lock(&p->m->dev, &srq->lock);
		n = sh_srq_available(&p->m->dev, srq);
		sh_unlock(&p->m->dev, &srq->lock);
		to.srqn = s->other.srqn;
		while (n-- > 0)
			tqp_send(&s->c, &to);
	}
	for (uint32_t i = 1; i < RECEIVES; i++)
		tqp_send(&s->c, &wr);
	while (tcq_poll(&p->bcq[1], &cqe)) {
		uint16_t index = be16toh((uint16_t)cqe.wqe_index);
		uint32_t qpn = be32toh((uint32_t)cqe.vlan_my_qpn);
		const uint8_t *at = p->bmem + 65536 * (index + 1) + head_of(plot);

		if (s->other.srqn && be32toh((uint32_t)cqe.g_mlpath_rqpn) == s->other.srqn) {
			assert_int_equal(index, others++);
			continue;
		}
		if (qpn == s->d.qpn && !shares_receives(plot)) {
			own++;
			assert_memory_equal(p->bmem + head_of(plot), p->amem + 32768, 100);
			continue;
		}
		total++;
		assert_in_range(index, 0, RECEIVES - 1);
		assert_false(seen[index]);
		seen[index] = true;
		if ((cqe.owner_sr_opcode & 0x1f) == MLX4_CQE_ERROR) {
			assert_int_equal(qpn, p->b.qpn);
			assert_int_equal(cqe.syndrome, MLX4_SYNDROME_WR_FLUSH);
		} else if (qpn == p->b.qpn) {
			good++;
			assert_int_equal(cqe.owner_sr_opcode & 0x1f,
					 plot->opcode == MLX4_OPCODE_SEND ? MLX4_CQE_RECV_SEND : 0);
			if (plot->opcode == MLX4_OPCODE_SEND)
				assert_memory_equal(at, p->amem, plot->len);
		} else {
			assert_int_equal(qpn, s->d.qpn);
			assert_memory_equal(at, p->amem + 32768, 100);
		}
	}
	assert_int_equal(total, RECEIVES);
	assert_int_equal(others, s->other.srqn ? OTHERS : 0);
	assert_int_equal(own, !shares_receives(plot));
	assert_true(good <= 1 + plot->chain);
	p->m->dev.proc = 1;
}

/*
 * Stores the numbers of instructions after which memory has changed. Returns how many there are.
 * With points NULL it only binds symbols, so that later runs take the same steps.
 */
static unsigned int rehearse(const struct plot *plot, unsigned int *points)
{
	struct area a[NAREAS];
	struct scene *s = calloc(1, sizeof(*s));
	unsigned int n = 0, steps = 0;
	uint64_t before;
	pid_t pid;

	scene_open(s, plot);
	areas(s, a);
	pid = victim(s);
	before = digest(a);
	if (!points)
		let_run(pid);
	while (points && noted_step(pid)) {
		uint64_t now = digest(a);

		assert_true(++steps < MAX_STEPS);
		if (now == before)
			continue;
		before = now;
		assert_true(n < MAX_POINTS);
		points[n++] = steps;
	}
	survive(s, plot);
	tpair_close(&s->p);
	free(s);
	return n;
}

static void play(const struct plot *plot)
{
	static unsigned int points[MAX_POINTS];
	unsigned int n;

	rehearse(plot, NULL);
	n = rehearse(plot, points);
	assert_true(n > 20);
	for (unsigned int i = 0; i <= n; i += i < n && i + stride() > n ? n - i : stride()) {
		struct scene *s = calloc(1, sizeof(*s));
		pid_t pid;

		scene_open(s, plot);
		pid = victim(s);
		if (i < n)
			assert_true(walk(pid, points[i]));
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		survive(s, plot);
		tpair_close(&s->p);
		free(s);
	}
	print_message("# %s: %u points, the last after %u instructions\n", plot->name, n,
		      points[n - 1]);
}

static void test_kill(void **state)
{
	static const struct plot plots[] = {
		{"SEND to an RQ", SH_QPT_RC, false, MLX4_OPCODE_SEND, 200, NULL, 0},
		{"SEND to an SRQ", SH_QPT_RC, true, MLX4_OPCODE_SEND, 200, NULL, 0},
		{"large SEND to an SRQ", SH_QPT_RC, true, MLX4_OPCODE_SEND, 8200, NULL, 0},
		{"SEND over XRC", SH_QPT_XRC, false, MLX4_OPCODE_SEND, 200, NULL, 0},
		{"SENDs to an RQ", SH_QPT_RC, false, MLX4_OPCODE_SEND, 200, NULL, 4},
		{"SENDs over XRC", SH_QPT_XRC, false, MLX4_OPCODE_SEND, 200, NULL, 4},
		{"SENDs to a CQ that seems full", SH_QPT_RC, false, MLX4_OPCODE_SEND, 200,
		 nearly_full, 3},
		{"SENDs to two SRQs", SH_QPT_XRC, false, MLX4_OPCODE_SEND, 200, other_srq, 3},
		{"WRITE with immediate over XRC", SH_QPT_XRC, false, MLX4_OPCODE_RDMA_WRITE_IMM, 50,
		 NULL, 0},
		{"WRITE with an unknown key", SH_QPT_RC, false, MLX4_OPCODE_RDMA_WRITE, 50,
		 bad_rkey, 0},
		{"SEND over UC", SH_QPT_UC, false, MLX4_OPCODE_SEND, 200, NULL, 0},
		{"SENDs over UC to an SRQ", SH_QPT_UC, true, MLX4_OPCODE_SEND, 200, NULL, 4},
		{"WRITE with immediate over UC", SH_QPT_UC, false, MLX4_OPCODE_RDMA_WRITE_IMM, 50,
		 NULL, 0},
		{"SENDs over UC to a CQ that seems full", SH_QPT_UC, false, MLX4_OPCODE_SEND, 200,
		 nearly_full, 3},
		{"SEND over UD", SH_QPT_UD, false, MLX4_OPCODE_SEND, 200, NULL, 0},
		{"SEND over UD with a GRH", SH_QPT_UD, true, MLX4_OPCODE_SEND, 200, with_grh, 0},
		{"SENDs over UD to an SRQ", SH_QPT_UD, true, MLX4_OPCODE_SEND, 200, NULL, 4},
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(plots) / sizeof(plots[0]); i++)
		play(&plots[i]);
}

/* ---- stopped for a while ---- */

/*
 * The other peer sends one message, from a process of its own, because it may have to wait for the
 * stopped one.
 */
static pid_t bystander(struct scene *s)
{
	pid_t pid = fork();
	struct twr wr;

	assert_true(pid >= 0);
	if (pid)
		return pid;
	alarm(60);
	s->p.m->dev.proc = 2;
	wr = other_wr(s);
	tqp_send(&s->c, &wr);
	_exit(0);
}

static void pause_at_each(const struct plot *plot)
{
	static const struct timespec while_stopped = {.tv_nsec = 2000000};
	static unsigned int points[MAX_POINTS];
	unsigned int n;

	rehearse(plot, NULL);
	n = rehearse(plot, points);
	/*
	 * Single steps are slow, so this takes every third of the points at which the kill test
	 * kills.
	 */
	for (unsigned int i = 0; i < n; i += 3 * stride()) {
		struct scene *s = calloc(1, sizeof(*s));
		struct arrivals got;
		pid_t pid, other;

		scene_open(s, plot);
		pid = victim(s);
		assert_true(walk(pid, points[i]));
		other = bystander(s);
		nanosleep(&while_stopped, NULL);
		assert_int_equal(ptrace(PTRACE_DETACH, pid, NULL, NULL), 0);
		ended(pid);
		ended(other);
		got = take_arrivals(s, plot);
		assert_int_equal(got.from_a, 1);
		assert_int_equal(got.from_c, 1);
		tpair_close(&s->p);
		free(s);
	}
}

static void test_stop(void **state)
{
	static const struct plot plots[] = {
		{"SEND to an SRQ", SH_QPT_RC, true, MLX4_OPCODE_SEND, 200, NULL, 0},
		{"large SEND to an SRQ", SH_QPT_RC, true, MLX4_OPCODE_SEND, 8200, NULL, 0},
		{"SEND over XRC", SH_QPT_XRC, false, MLX4_OPCODE_SEND, 200, NULL, 0},
		{"SEND over UC", SH_QPT_UC, true, MLX4_OPCODE_SEND, 200, NULL, 0},
		{"SEND over UD", SH_QPT_UD, true, MLX4_OPCODE_SEND, 200, NULL, 0},
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(plots) / sizeof(plots[0]); i++)
		pause_at_each(&plots[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_kill),
					   cmocka_unit_test(test_stop)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
