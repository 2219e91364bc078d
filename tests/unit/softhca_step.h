/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Traces a child and stops it after each instruction: for tests of what other processes see in
 * between. Include after cmocka.h.
 *
 * A rehearsal takes noted_step() until the child has ended. walk() then brings another child, which
 * does the same, to one of these instructions. It lets that child run up to an address that the
 * rehearsal had not met before, and takes single steps only from there on: a single step takes some
 * twenty microseconds.
 */
#ifndef SOFTHCA_STEP_H
#define SOFTHCA_STEP_H

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>

/* Continues the child up to its next stop. Returns false if it has ended as it should. */
static inline bool until_trap(pid_t pid, int request)
{
	int status;

	assert_int_equal(ptrace(request, pid, NULL, NULL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFSTOPPED(status)) {
		assert_int_equal(WSTOPSIG(status), SIGTRAP);
		return true;
	}
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	return false;
}

/* Executes one instruction of the child. Returns false if the child has ended as it should. */
static inline bool single_step(pid_t pid)
{
	return until_trap(pid, PTRACE_SINGLESTEP);
}

#ifdef __x86_64__
/* Where the child of the last rehearsal was, before its first instruction and after each. */
struct trail {
	pid_t pid;
	unsigned int n, room;
	uintptr_t *at;
};

static inline struct trail *trail(void)
{
	static struct trail t;

	return &t;
}

#define CHILD_PC offsetof(struct user_regs_struct, rip)

static inline void note_place(pid_t pid)
{
	struct trail *t = trail();

	if (t->n == t->room) {
		t->room = t->room ? 2 * t->room : 1 << 14;
		t->at = realloc(t->at, t->room * sizeof(*t->at));
		assert_non_null(t->at);
	}
	errno = 0;
	t->at[t->n++] = (uintptr_t)ptrace(PTRACE_PEEKUSER, pid, (void *)CHILD_PC, NULL);
	assert_int_equal(errno, 0);
}

/* single_step() of a child that rehearses. */
static inline bool noted_step(pid_t pid)
{
	struct trail *t = trail();

	if (t->pid != pid) {
		t->pid = pid;
		t->n = 0;
		note_place(pid);
	}
	if (!single_step(pid))
		return false;
	note_place(pid);
	return true;
}

static inline bool first_visit(const struct trail *t, unsigned int n)
{
	for (unsigned int i = n; i-- > 0;)
		if (t->at[i] == t->at[n])
			return false;
	return true;
}

/* Returns false if the child has ended before it came there. */
static inline bool run_to(pid_t pid, uintptr_t at)
{
	void *pc = (void *)at;
	long text;

	errno = 0;
	text = ptrace(PTRACE_PEEKTEXT, pid, pc, NULL);
	assert_int_equal(errno, 0);
	/* INT3, which leaves the child one byte further. The child's text is a copy of its own. */
	assert_int_equal(ptrace(PTRACE_POKETEXT, pid, pc, (void *)((text & ~0xffL) | 0xcc)), 0);
	if (!until_trap(pid, PTRACE_CONT))
		return false;
	assert_int_equal(ptrace(PTRACE_PEEKUSER, pid, (void *)CHILD_PC, NULL), (long)at + 1);
	assert_int_equal(ptrace(PTRACE_POKEUSER, pid, (void *)CHILD_PC, pc), 0);
	assert_int_equal(ptrace(PTRACE_POKETEXT, pid, pc, (void *)text), 0);
	return true;
}

/*
 * Brings a child that has executed nothing yet to where the rehearsal was after so many steps.
 * Returns false if it has ended before.
 */
static inline bool walk(pid_t pid, unsigned int steps)
{
	const struct trail *t = trail();
	unsigned int done = steps < t->n ? steps : t->n - 1;
	bool alive = true;

	while (done > 0 && !first_visit(t, done))
		done--;
	if (done > 0)
		alive = run_to(pid, t->at[done]);
	for (; alive && done < steps; done++)
		alive = single_step(pid);
	return alive;
}
#else
#define noted_step single_step

static inline bool walk(pid_t pid, unsigned int steps)
{
	bool alive = true;

	while (alive && steps-- > 0)
		alive = single_step(pid);
	return alive;
}
#endif

#endif
