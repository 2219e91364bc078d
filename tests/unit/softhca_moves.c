// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: a process that exchanges pages and a process that reaches into it wait for each
 * other, piece by piece, and each has its turn. Neither waits for a process that was killed in the
 * middle, even while its parent has not asked for its status, nor because many others are stopped.
 * The daemon, which waits for nobody, is told. A thread that has reached before makes no system
 * call for it, and a forked child is not taken for its parent.
 */
#include <linux/seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "softhca/host/process.h"
#include "softhca_step.h"

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

/* Announces that this thread reaches anywhere in one or two processes. */
static void reach(struct sh_reach *r, uint32_t pid, uint32_t other)
{
	assert_true(sh_reach_begin(moves, r, &(struct sh_reached){.pid = pid},
				   &(struct sh_reached){.pid = other}));
}

/* The same of one byte. */
static bool reach_at(struct sh_reach *r, uint32_t pid, uint64_t at)
{
	const struct sh_seg seg = {at, 1};

	return sh_reach_begin(moves, r, &(struct sh_reached){pid, 1, &seg},
			      &(struct sh_reached){0});
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
			reach(&r, reaches, 0);
		else if (sh_move_begin(moves, 0x1000, 0x2000) < 0)
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
	reach(&r, (uint32_t)pid, 0);
	sh_reach_end(moves, &r);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void test_dead_reaching(void **state)
{
	pid_t pid = killed_in_the_middle((uint32_t)getpid());
	int word = sh_move_begin(moves, 0, UINT64_MAX);

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
	word = sh_move_begin(moves, 0, UINT64_MAX);
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
	reach(&r, (uint32_t)getpid(), 0);
	assert_true(sh_move_begin(moves, 0, UINT64_MAX) < 0);
	sh_reach_end(moves, &r);
	word = sh_move_begin(moves, 0, UINT64_MAX);
	assert_true(word >= 0);
	sh_move_end(moves, word);
}

/* An exchange waits for a tenth of a second, however long each look takes. */
static void test_bounded(void **state)
{
	struct sh_reach r;

	(void)state;
	reach(&r, (uint32_t)getpid(), 0);
	later = 30000000;
	assert_true(sh_move_begin(moves, 0, UINT64_MAX) < 0);
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
		if (sh_move_begin(moves, 0, UINT64_MAX) < 0)
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
	assert_true(sh_move_begin(moves, 0, UINT64_MAX) < 0);
	sh_reach_end(moves, &r);
	word = sh_move_begin(moves, 0, UINT64_MAX);
	assert_true(word >= 0);
	sh_move_end(moves, word);
}

/*
 * A process that is stopped in the middle of a piece holds off what overlaps the piece, for two
 * seconds, and once. When it goes on it holds off nothing more. The rest of its memory is free.
 */
static void stopped_mover(bool seen)
{
	pid_t pid = stopped_in_the_middle(0);
	struct sh_reach r;

	assert_true(reach_at(&r, (uint32_t)pid, 0xfff));
	sh_reach_end(moves, &r);
	assert_true(reach_at(&r, (uint32_t)pid, 0x2000));
	sh_reach_end(moves, &r);
	sh_reach_by_program(moves, &r, (uint32_t)pid, &(struct iovec){(void *)0x2000, 8}, 1);
	sh_reach_end(moves, &r);
	looks = 0;
	later = 100000000;
	assert_false(reach_at(&r, (uint32_t)pid, 0x1fff));
	assert_in_range(looks, 20, 22);
	looks = 0;
	assert_false(reach_at(&r, (uint32_t)pid, 0x1000));
	if (seen)
		assert_int_equal(looks, 1);
	else
		assert_in_range(looks, 20, 22);
	later = 0;
	for (int i = 0; i < SH_MOVES; i++)
		assert_int_equal(moves->reaching[i], 0);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_true(reach_at(&r, (uint32_t)pid, 0x1fff));
	sh_reach_end(moves, &r);
}

static void test_stopped_mover(void **state)
{
	(void)state;
	stopped_mover(true);
}

static struct rlimit no_descriptors(void)
{
	struct rlimit was, none;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	none = was;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	return was;
}

/* The same for a process that cannot see whether the other one is stopped. It waits each time. */
static void test_unseen_mover(void **state)
{
	struct rlimit was = no_descriptors();

	(void)state;
	stopped_mover(false);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
}

/* One that is stopped before it has begun with a piece holds off nobody, and finds that out. */
static void stopped_before_a_piece(uint64_t step)
{
	struct sh_reach r;
	siginfo_t info;
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		uint64_t mine = (uint64_t)getpid() << 32 | (uint32_t)getpid();
		int word = take(moves->moving, SH_MOVES, mine);

		raise(SIGSTOP);
		_exit(commit(moves, word, mine, 0x1000, 0x2000) || sh_move_begin(moves, 0, 1) >= 0);
	}
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WSTOPPED | WEXITED | WNOWAIT), 0);
	assert_int_equal(info.si_code, CLD_STOPPED);
	later = step;
	assert_true(reach_at(&r, (uint32_t)pid, 0x3000));
	later = 0;
	assert_int_equal(kill(pid, SIGCONT), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	sh_reach_end(moves, &r);
}

static void test_stopped_early(void **state)
{
	(void)state;
	stopped_before_a_piece(0);
}

static void test_unseen_early(void **state)
{
	struct rlimit was = no_descriptors();

	(void)state;
	stopped_before_a_piece(100000000);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
}

/*
 * Starts a child that has a word, and stops before it commits its piece. Its status is 1 if it
 * commits it.
 */
static pid_t before_commit(uint64_t *word)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		uint64_t mine = (uint64_t)getpid() << 32 | (uint32_t)getpid();

		moves->moving[0] = mine;
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		_exit(commit(moves, 0, mine, 0x1000, 0x2000));
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	ptrace(PTRACE_SETOPTIONS, pid, NULL, (void *)PTRACE_O_EXITKILL);
	*word = moves->moving[0];
	return pid;
}

/* The status that it ends with. */
static int let_end(pid_t pid)
{
	int status;

	assert_int_equal(ptrace(PTRACE_CONT, pid, NULL, NULL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/*
 * A process that is stopped at any instruction before it has begun with a piece loses its word to
 * another one. When it goes on it leaves the piece of that one alone, whether that one has
 * committed it or is about to.
 */
static void test_stopped_anywhere(void **state)
{
	const struct sh_seg first = {0x800000, 1}, last = {0xafffff, 1}, his = {0x1800, 1};
	uint32_t me = (uint32_t)getpid();
	uint64_t mine = (uint64_t)me << 32 | me, word;
	bool lost = true;

	(void)state;
	for (unsigned int at = 0; lost; at++) {
		for (int early = 0; lost && early < 2; early++) {
			pid_t pid = before_commit(&word);

			for (unsigned int i = 0; i < at; i++)
				assert_true(single_step(pid));
			lost = stopped_early(moves, 0, word, true);
			if (!lost) {
				assert_int_equal(let_end(pid), 1);
				break;
			}
			moves->moving[0] = mine;
			if (early)
				assert_true(commit(moves, 0, mine, 0x800000, 0xb00000));
			assert_int_equal(let_end(pid), 0);
			if (!early)
				assert_true(commit(moves, 0, mine, 0x800000, 0xb00000));
			assert_int_equal(mover(moves, &(struct sh_reached){me, 1, &first}, &word),
					 0);
			assert_int_equal(mover(moves, &(struct sh_reached){me, 1, &last}, &word),
					 0);
			assert_int_equal(mover(moves, &(struct sh_reached){me, 1, &his}, &word),
					 -1);
			sh_move_end(moves, 0);
		}
		assert_true(at < 1000);
	}
}

/* Whatever a piece is, it holds off all that it overlaps. */
static void test_pieces(void **state)
{
	static const struct {
		uint64_t from, to, at;
		bool held;
	} row[] = {
		{0x1000, 0x2000, 0xfff, false},
		{0x1000, 0x2000, 0x1000, true},
		{0x1000, 0x2000, 0x1fff, true},
		{0x1000, 0x2000, 0x2000, false},
		{0x1800, 0x1801, 0x1801, true},
		{0x1fff, 0x2001, 0x2fff, true},
		{0xfffffffff000, 0x1000000000000, 0xfffffffff000, true},
		{0xfffffffff000, 0x1000000000000, 0xffffffffefff, false},
		{0x1000, 0x1000000, 0xffffff, true},
		{0x1000, 0x1000000, 0x1000000, false},
		/* More than a word can say. */
		{0x1000, 0x1001000, 0x2000000, true},
		{0x1000000000000, 0x1000000001000, 0x1000, true},
		{0, UINT64_MAX, 0x1000, true},
	};
	uint32_t me = (uint32_t)getpid();
	uint64_t theirs;

	(void)state;
	/* The number of a commit begins anew after its last one. */
	for (size_t i = 0; i < 0x11000; i++) {
		size_t n = i % (sizeof(row) / sizeof(row[0]));
		const struct sh_seg seg = {row[n].at, 1};
		int word = sh_move_begin(moves, row[n].from, row[n].to);

		assert_true(word >= 0);
		assert_int_equal(mover(moves, &(struct sh_reached){me, 1, &seg}, &theirs),
				 row[n].held ? word : -1);
		assert_int_equal(mover(moves, &(struct sh_reached){.pid = me}, &theirs), word);
		sh_move_end(moves, word);
	}
}

/*
 * A process whose life in the device has been ended takes back what it had announced, at any
 * moment. That is no other thread's: the daemon takes it back at the same time, and then it is
 * free.
 */
static void test_forget(void **state)
{
	bool ended = false;

	(void)state;
	for (unsigned int at = 0; !ended; at++) {
		int status;
		pid_t pid = fork();
		uint64_t theirs = (uint64_t)getpid() << 32 | 1;

		assert_true(pid >= 0);
		if (!pid) {
			sh_moves_forked();
			moves->reaching[0] = sh_reach_word(thread_number(), 0) | 1;
			ptrace(PTRACE_TRACEME, 0, NULL, NULL);
			raise(SIGSTOP);
			sh_reach_forget(moves);
			raise(SIGSTOP);
			_exit(0);
		}
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		ptrace(PTRACE_SETOPTIONS, pid, NULL, (void *)PTRACE_O_EXITKILL);
		for (unsigned int i = 0; i < at; i++)
			assert_true(single_step(pid));
		ended = !moves->reaching[0];
		moves->reaching[0] = theirs;
		assert_int_equal(ptrace(PTRACE_CONT, pid, NULL, NULL), 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSTOPPED(status));
		assert_int_equal(moves->reaching[0], theirs);
		assert_int_equal(let_end(pid), 0);
		moves->reaching[0] = 0;
		assert_true(at < 1000);
	}
}

/*
 * A thread that waits has its turn before the next piece. One that is stopped while it waits has
 * not.
 */
static void test_turns(void **state)
{
	enum { PIECES = 20 };
	uint32_t *turns =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint32_t me = (uint32_t)getpid();
	struct sh_reach r;
	siginfo_t info;
	int word, had = 0;
	pid_t pid;

	(void)state;
	assert_true(turns != MAP_FAILED);
	word = sh_move_begin(moves, 0x1000, 0x2000);
	assert_true(word >= 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		sh_moves_forked();
		for (;;) {
			reach(&r, me, 0);
			__atomic_add_fetch(turns, 1, __ATOMIC_SEQ_CST);
			sh_reach_end(moves, &r);
		}
	}
	for (int i = 0; i < PIECES; i++) {
		uint32_t before;

		while (!any(moves->reaching, SH_MOVES, me | (uint32_t)SH_MOVES_MARK))
			a_moment(0);
		before = __atomic_load_n(turns, __ATOMIC_SEQ_CST);
		/* The clock hardly moves: there is no limit to a turn. */
		later = 1;
		since = 0;
		given = i % 2 ? UINT64_MAX / 2 : 0;
		word = sh_move_next(moves, word, 0x1000, 0x2000);
		later = 0;
		assert_true(word >= 0);
		/* Others have had more time than this process. */
		if (i % 2)
			assert_int_equal(__atomic_load_n(turns, __ATOMIC_SEQ_CST), before);
		else
			had += __atomic_load_n(turns, __ATOMIC_SEQ_CST) > before;
	}
	/* The exchange may begin just between two looks of a thread that waits. */
	assert_true(had >= PIECES / 2 - 2);
	while (!any(moves->reaching, SH_MOVES, me | (uint32_t)SH_MOVES_MARK))
		a_moment(0);
	assert_int_equal(kill(pid, SIGSTOP), 0);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WSTOPPED | WEXITED | WNOWAIT), 0);
	assert_int_equal(info.si_code, CLD_STOPPED);
	if (any(moves->reaching, SH_MOVES, me | (uint32_t)SH_MOVES_MARK))
		assert_false(awaited(moves, me));
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	sh_move_end(moves, word);
	munmap(turns, 4096);
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
	sh_reach_by_program(moves, &r, (uint32_t)getpid(), NULL, 0);
	assert_true(sh_move_begin(moves, 0, UINT64_MAX) < 0);
	sh_reach_end(moves, &r);
	last = stopped_in_the_middle((uint32_t)getpid());
	assert_true(sh_move_begin(moves, 0, UINT64_MAX) < 0);
	assert_int_equal(kill(last, SIGKILL), 0);
	assert_int_equal(waitpid(last, NULL, 0), last);
	word = sh_move_begin(moves, 0, UINT64_MAX);
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
	assert_memory_equal(moves->moving, none.moving, sizeof(none.moving));
	assert_memory_equal(moves->reaching, none.reaching, sizeof(none.reaching));
	reach(&r, 1, 0);
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
		reach(&r, (uint32_t)getppid(), (uint32_t)getpid());
		sh_reach_end(moves, &r);
		/* From here on a system call other than the last one ends the process. */
		if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
			_exit(1);
		reach(&r, 1, 2);
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
		cmocka_unit_test_setup_teardown(test_stopped_mover, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unseen_mover, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stopped_early, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unseen_early, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stopped_anywhere, setup, teardown),
		cmocka_unit_test_setup_teardown(test_pieces, setup, teardown),
		cmocka_unit_test_setup_teardown(test_forget, setup, teardown),
		cmocka_unit_test_setup_teardown(test_turns, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stopped_everywhere, setup, teardown),
		cmocka_unit_test_setup_teardown(test_sweep, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_system_call, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
