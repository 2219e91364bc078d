/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Traces a child and stops it after each instruction: for tests of what other processes see in
 * between. Include after cmocka.h.
 */
#ifndef SOFTHCA_STEP_H
#define SOFTHCA_STEP_H

#include <signal.h>
#include <stdbool.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

/* Executes one instruction of the child. Returns false if the child has ended as it should. */
static inline bool single_step(pid_t pid)
{
	int status;

	assert_int_equal(ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFSTOPPED(status)) {
		assert_int_equal(WSTOPSIG(status), SIGTRAP);
		return true;
	}
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	return false;
}

#endif
