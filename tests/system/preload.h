// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* For programs that test librspreload.so and know of sockets alone. */
#ifndef PRELOAD_H
#define PRELOAD_H

#include <stdbool.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

/* The library gives numbers of /dev/null. */
static inline bool is_rsocket(int fd)
{
	char path[64], to[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, to, sizeof(to) - 1);
	CHECK(n > 0);
	to[n] = '\0';
	return !strcmp(to, "/dev/null");
}

static inline void ended_well(pid_t child)
{
	int status;

	CHECK(child > 0);
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(!status);
}

#endif
