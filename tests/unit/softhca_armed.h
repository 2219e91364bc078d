/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A process that is stopped where the life of its thread can be ended
 * (softhca/device/memory/life.h). It shares a struct lives with the test.
 */
#ifndef TESTS_UNIT_SOFTHCA_ARMED_H
#define TESTS_UNIT_SOFTHCA_ARMED_H

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "softhca/device/memory/life.h"

struct lives {
	uint64_t cs, door; /* where its kernel looks, and what is there when it is armed */
	uint32_t begun;
};

/* The process says where its door is, or ends: there, a thread cannot be thrown. */
static inline void show_door(struct lives *l)
{
	if (!sh_self.catches)
		_exit(77);
	__atomic_store_n(&l->cs, (uintptr_t)sh_self.cs, __ATOMIC_SEQ_CST);
	__atomic_store_n(&l->door, (uintptr_t)sh_self.catches, __ATOMIC_SEQ_CST);
}

/* Is this its first life? */
static inline bool first_life(struct lives *l)
{
	return !__atomic_fetch_add(&l->begun, 1, __ATOMIC_SEQ_CST);
}

static inline bool is_armed(pid_t pid, const struct lives *l)
{
	uint64_t says = 0;
	struct iovec local = {&says, sizeof(says)},
		     remote = {(void *)(uintptr_t)l->cs, sizeof(says)};

	return process_vm_readv(pid, &local, 1, &remote, 1, 0) == sizeof(says) && says == l->door;
}

/*
 * Stopped in its loop, where nothing but a switch right before leaves it disarmed. false: it cannot
 * be thrown here.
 */
static inline bool stop_armed(pid_t pid, const struct lives *l)
{
	int status;

	while (!__atomic_load_n(&l->begun, __ATOMIC_SEQ_CST)) {
		if (waitpid(pid, &status, WNOHANG) == pid) {
			assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 77);
			return false;
		}
		usleep(1000);
	}
	for (;;) {
		assert_int_equal(kill(pid, SIGSTOP), 0);
		assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
		assert_true(WIFSTOPPED(status));
		if (is_armed(pid, l))
			return true;
		kill(pid, SIGCONT);
		assert_int_equal(waitpid(pid, &status, WCONTINUED), pid);
		usleep(1000);
	}
}

#endif
