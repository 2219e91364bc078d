// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: the system calls that softhca makes for a command of rdma_cm and for one of verbs:
 * none is made twice with the same first argument. A child gives the commands, between marks, and
 * this process counts. Prints how many there were.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

#include "check.h"

enum { MARK = SYS_getppid, MOST = 64 };

static void commands(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct ibv_port_attr port;
	struct ibv_context **devices = rdma_get_devices(NULL);
	struct rdma_cm_id *id;
	uint8_t tos = 0;

	CHECK(channel && devices && !rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	CHECK(!ibv_query_port(devices[0], 1, &port));
	CHECK(!raise(SIGSTOP));
	(void)syscall(MARK);
	CHECK(!rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, sizeof(tos)));
	(void)syscall(MARK);
	CHECK(!ibv_query_port(devices[0], 1, &port));
	(void)syscall(MARK);
	CHECK(!rdma_destroy_id(id));
	rdma_free_devices(devices);
	rdma_destroy_event_channel(channel);
	exit(0);
}

static bool next_call(pid_t child, struct __ptrace_syscall_info *info)
{
	int status;

	do {
		CHECK(!ptrace(PTRACE_SYSCALL, child, NULL, NULL));
		CHECK(waitpid(child, &status, 0) == child);
		if (WIFEXITED(status)) {
			CHECK(!WEXITSTATUS(status));
			return false;
		}
		CHECK(WIFSTOPPED(status));
		CHECK(ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof(*info), info) > 0);
	} while (info->op != PTRACE_SYSCALL_INFO_ENTRY);
	return true;
}

int main(void)
{
	static const char *const of[] = {"before", "rdma_cm", "verbs", "after"};
	unsigned long long seen[MOST][2];
	struct __ptrace_syscall_info info;
	unsigned int n = 0, part = 0, i;
	int status;
	pid_t child;

	alarm(60);
	child = fork();
	CHECK(child >= 0);
	if (!child) {
		CHECK(!ptrace(PTRACE_TRACEME, 0, NULL, NULL));
		commands();
	}
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
	CHECK(!ptrace(PTRACE_SETOPTIONS, child, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL));
	while (next_call(child, &info)) {
		if (info.entry.nr == MARK) {
			if (part)
				printf("%s: %u system calls\n", of[part], n);
			n = 0;
			CHECK(++part < 4);
			continue;
		}
		if (part != 1 && part != 2)
			continue;
		for (i = 0; i < n; i++)
			if (seen[i][0] == info.entry.nr && seen[i][1] == info.entry.args[0]) {
				printf("%s: the system call %llu (%llu, ...) is made twice\n",
				       of[part], (unsigned long long)info.entry.nr,
				       (unsigned long long)info.entry.args[0]);
				return 1;
			}
		CHECK(n < MOST);
		seen[n][0] = info.entry.nr;
		seen[n++][1] = info.entry.args[0];
	}
	CHECK(part == 3);
	return 0;
}
