// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: a sender is stopped at many of its instructions, and stays stopped. The others
 * wait for nothing that it holds, and when it continues it makes no late store. So it is with
 * SENDs, WRITEs and atomic operations.
 */
#include "softhca/host/reach.h"
#include "softhca_stop_rig.h"

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
	apart = steps / (SANITIZED ? 15 : stride() == 1 ? 120 : 20) + 1;
	for (unsigned int at = 1; armed_once(at, &stops); at += apart)
		;
	printf("# arm: %u instructions, stopped at %u\n", steps, stops);
	assert_true(stops > 0 || SANITIZED);
}

/* Walks the victim to where it has come out of that call into the receiver's memory. */
static bool behind_call(pid_t pid, unsigned int which)
{
	while (single_step(pid)) {
		uint64_t at = (uint64_t)ptrace(PTRACE_PEEKUSER, pid, (void *)CHILD_PC, NULL);

		if (at == sh_self.reach + 2 && !which--)
			return true;
	}
	return false;
}

/*
 * The kernel has disarmed the victim, which has executed nothing since. Steps do the same: each
 * switches the victim out.
 */
static bool stop_behind(const struct plot *plot, unsigned int which)
{
	struct scene *s = calloc(1, sizeof(*s));
	bool there;
	pid_t pid;

	scene_open(s, plot);
	pid = victim(s);
	there = behind_call(pid, which);
	if (there) {
		assert_int_not_equal(peek(pid, &sh_self.armed), 0);
		assert_int_equal(peek(pid, (void *)(uintptr_t)peek(pid, &sh_self.cs)), 0);
		others_go_on(s, plot, pid);
	}
	tpair_close(&s->p);
	free(s);
	return there;
}

static void test_behind_calls(void **state)
{
	static const struct plot far[] = {
		{"large SEND to an SRQ", SH_QPT_RC, true, MLX4_OPCODE_SEND, 8200, NULL, 0},
		{"WRITE", SH_QPT_RC, true, MLX4_OPCODE_RDMA_WRITE, 100, NULL, 0},
		{"atomic operation", SH_QPT_RC, true, MLX4_OPCODE_ATOMIC_FA, 8, adds, 0},
		{"SEND over XRC", SH_QPT_XRC, false, MLX4_OPCODE_SEND, 200, NULL, 0},
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(far) / sizeof(far[0]); i++) {
		unsigned int calls = 0;

		while (stop_behind(&far[i], calls))
			calls++;
		print_message("# %s: %u calls\n", far[i].name, calls);
		assert_true(calls > 0);
	}
}

static unsigned int landed;
static uint64_t word_at_landing;

static void landing(void *host)
{
	(void)host;
	landed++;
	word_at_landing |= *sh_self.cs;
}

/* A thread or daemon that was late has left the door open, without an end of the life. */
static void finds_it_open(struct sh_dev *dev, uint32_t a, uint32_t b, uint64_t c)
{
	char byte = 1, copy = 0;
	struct iovec here = {&copy, 1}, there = {&byte, 1};

	(void)dev, (void)a, (void)b, (void)c;
	if (landed < 3) {
		sh_self.catches->start_ip = sh_self.reach;
		sh_self.catches->len = 3;
		/* Armed or not: as the kernel happens to switch the thread out. */
		if (landed == 1)
			sh_rearm();
		else
			__atomic_store_n(sh_self.cs, 0, __ATOMIC_RELAXED);
	}
	assert_int_equal(sh_reach_readv(gettid(), &here, 1, &there, 1), 1);
	assert_int_equal(copy, 1);
}

/*
 * It begins its next life with nothing armed, since it does in order there what cannot be left half
 * done.
 */
static void test_lands_by_itself(void **state)
{
	struct mock *m = mock_new(NULL);
	struct sh_host_ops ops = *m->dev.ops;
	int err;

	(void)state;
	ops.gave_up = landing;
	m->dev.ops = &ops;
	m->dev.witness = sh_witness(&err);
	landed = 0;
	word_at_landing = 0;
	assert_true(sh_enter(&m->dev));
	sh_catch(&m->dev, 0, 0, 0, finds_it_open);
	assert_int_equal(landed, 3);
	assert_int_equal(word_at_landing, 0);
	assert_int_equal(sh_self.catches->len, 0);
	sh_leave(&m->dev);
	mock_free(m);
}

static void test_memory(void **state)
{
	(void)state;
	each_plot(memory_is_mine);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_others_go_on), cmocka_unit_test(test_many_groups),
		cmocka_unit_test(test_armed_once),   cmocka_unit_test(test_memory),
		cmocka_unit_test(test_behind_calls), cmocka_unit_test(test_lands_by_itself),
	};
	struct mock *m = mock_new(NULL);
	bool can = can_be_thrown();

	mock_free(m);
	if (!can) {
		printf("1..0 # SKIP no restartable sequences on this system\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
