// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: a process that exchanges pages and a process that reaches into it wait for each
 * other. Neither waits for a process that was killed in the middle, even while its parent has not
 * asked for its status, nor because many others are stopped. The daemon, which waits for nobody, is
 * told. A thread that has reached before makes no system call for it, and a forked child is not
 * taken for its parent.
 */
#include <linux/seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "softhca/host/process.h"

/* Looks at the clock, and how much later each of them is. */
static unsigned int looks;
static uint64_t later;

static uint64_t clock_of_test(void)
{
	return later ? looks++ * later : sh_now();
}

#define sh_now clock_of_test
#include "softhca/host/moves.c"
#undef sh_now

static struct sh_moves *moves;

static int setup(void **state)
{
	(void)state;
	moves = mmap(NULL, sizeof(*moves), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	assert_true(moves != MAP_FAILED);
	alarm(50);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	alarm(0);
	munmap(moves, sizeof(*moves));
	return 0;
}

/*
 * Starts a child that exchanges pages, or reaches into a process, and gets a signal before it has
 * finished. A killed one stays a zombie.
 */
static pid_t met_by(int signal, uint32_t reaches)
{
	struct sh_reach r;
	siginfo_t info;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		sh_moves_forked();
		if (reaches)
			sh_reach_begin(moves, &r, reaches, 0);
		else if (sh_move_begin(moves) < 0)
			_exit(1);
		raise(signal);
		_exit(1);
	}
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WSTOPPED | WEXITED | WNOWAIT), 0);
	assert_int_equal(info.si_code, signal == SIGSTOP ? CLD_STOPPED : CLD_KILLED);
	return pid;
}

static pid_t killed_in_the_middle(uint32_t reaches)
{
	return met_by(SIGKILL, reaches);
}

static pid_t stopped_in_the_middle(uint32_t reaches)
{
	return met_by(SIGSTOP, reaches);
}

static void test_dead_mover(void **state)
{
	pid_t pid = killed_in_the_middle(0);
	struct sh_reach r;

	(void)state;
	sh_reach_begin(moves, &r, (uint32_t)pid, 0);
	sh_reach_end(moves, &r);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void test_dead_reaching(void **state)
{
	pid_t pid = killed_in_the_middle((uint32_t)getpid());
	int word = sh_move_begin(moves);

	(void)state;
	assert_true(word >= 0);
	sh_move_end(moves, word);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* As many processes have died as there are words. One more can still exchange pages. */
static void test_dead_everywhere(void **state)
{
	pid_t pid[SH_MOVES];
	int word;

	(void)state;
	for (int i = 0; i < SH_MOVES; i++)
		pid[i] = killed_in_the_middle(0);
	word = sh_move_begin(moves);
	assert_true(word >= 0);
	sh_move_end(moves, word);
	for (int i = 0; i < SH_MOVES; i++)
		assert_int_equal(waitpid(pid[i], NULL, 0), pid[i]);
}

/*
 * While a living process reaches, the exchange is put off. It succeeds when the process has
 * finished.
 */
static void test_living_reaching(void **state)
{
	struct sh_reach r;
	int word;

	(void)state;
	sh_reach_begin(moves, &r, (uint32_t)getpid(), 0);
	assert_true(sh_move_begin(moves) < 0);
	sh_reach_end(moves, &r);
	word = sh_move_begin(moves);
	assert_true(word >= 0);
	sh_move_end(moves, word);
}

/* An exchange waits for a tenth of a second, however long each look takes. */
static void test_bounded(void **state)
{
	struct sh_reach r;

	(void)state;
	sh_reach_begin(moves, &r, (uint32_t)getpid(), 0);
	later = 30000000;
	assert_true(sh_move_begin(moves) < 0);
	later = 0;
	assert_in_range(looks, 4, 6);
	sh_reach_end(moves, &r);
}

/*
 * Who does not wait is told that the process exchanges pages, also if it is stopped meanwhile, and
 * has announced nothing then. Else the exchange is put off.
 */
static void test_no_wait(void **state)
{
	pid_t pid = fork();
	struct sh_reach r;
	siginfo_t info;
	int word;

	(void)state;
	assert_true(pid >= 0);
	if (!pid) {
		sh_moves_forked();
		if (sh_move_begin(moves) < 0)
			_exit(1);
		raise(SIGSTOP);
		pause();
	}
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WSTOPPED | WEXITED | WNOWAIT), 0);
	assert_int_equal(info.si_code, CLD_STOPPED);
	assert_false(sh_reach_try(moves, &r, (uint32_t)pid));
	for (int i = 0; i < SH_MOVES; i++)
		assert_int_equal(moves->reaching[i], 0);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_true(sh_reach_try(moves, &r, (uint32_t)pid));
	sh_reach_end(moves, &r);
	assert_true(sh_reach_try(moves, &r, (uint32_t)getpid()));
	assert_true(sh_move_begin(moves) < 0);
	sh_reach_end(moves, &r);
	word = sh_move_begin(moves);
	assert_true(word >= 0);
	sh_move_end(moves, word);
}

/*
 * However many threads are stopped while they reach, others can reach, and an exchange still waits
 * for each of them.
 */
static void test_stopped_everywhere(void **state)
{
	enum { MANY = SH_MOVES + 3 };
	pid_t pid[MANY], last;
	struct sh_reach r;
	int word;

	(void)state;
	for (int i = 0; i < MANY; i++)
		pid[i] = stopped_in_the_middle((uint32_t)getppid());
	sh_reach_by_program(moves, &r, (uint32_t)getpid());
	assert_true(sh_move_begin(moves) < 0);
	sh_reach_end(moves, &r);
	last = stopped_in_the_middle((uint32_t)getpid());
	assert_true(sh_move_begin(moves) < 0);
	assert_int_equal(kill(last, SIGKILL), 0);
	assert_int_equal(waitpid(last, NULL, 0), last);
	word = sh_move_begin(moves);
	assert_true(word >= 0);
	sh_move_end(moves, word);
	for (int i = 0; i < MANY; i++) {
		assert_int_equal(kill(pid[i], SIGKILL), 0);
		assert_int_equal(waitpid(pid[i], NULL, 0), pid[i]);
	}
}

/* What killed threads have announced ends with them, before others have their numbers. */
static void test_sweep(void **state)
{
	static const struct sh_moves none;
	pid_t mover = killed_in_the_middle(0), reaching = killed_in_the_middle(1);
	pid_t lives = stopped_in_the_middle(1);
	struct sh_reach r;

	(void)state;
	sh_moves_sweep(moves);
	assert_memory_equal(moves->moving, none.moving, sizeof(none.moving));
	assert_int_equal(any(moves->reaching, sh_reaches(moves), 1), lives);
	assert_int_equal(kill(lives, SIGKILL), 0);
	assert_int_equal(waitpid(lives, NULL, 0), lives);
	assert_int_equal(waitpid(mover, NULL, 0), mover);
	assert_int_equal(waitpid(reaching, NULL, 0), reaching);
	sh_moves_sweep(moves);
	assert_memory_equal(moves, &none, sizeof(none));
	sh_reach_begin(moves, &r, 1, 0);
	sh_moves_sweep(moves);
	assert_int_equal(any(moves->reaching, sh_reaches(moves), 1), getpid());
	sh_reach_end(moves, &r);
}

/* Every copy into private memory of another process begins and ends so. */
static void test_no_system_call(void **state)
{
	struct sh_reach r;
	int status;
	pid_t pid = fork();

	(void)state;
	assert_true(pid >= 0);
	if (!pid) {
		sh_moves_forked();
		sh_reach_begin(moves, &r, (uint32_t)getppid(), (uint32_t)getpid());
		sh_reach_end(moves, &r);
		/* From here on a system call other than the last one ends the process. */
		if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
			_exit(1);
		sh_reach_begin(moves, &r, 1, 2);
		sh_reach_end(moves, &r);
		syscall(SYS_exit, 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_dead_mover, setup, teardown),
		cmocka_unit_test_setup_teardown(test_dead_reaching, setup, teardown),
		cmocka_unit_test_setup_teardown(test_dead_everywhere, setup, teardown),
		cmocka_unit_test_setup_teardown(test_living_reaching, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bounded, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_wait, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stopped_everywhere, setup, teardown),
		cmocka_unit_test_setup_teardown(test_sweep, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_system_call, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
