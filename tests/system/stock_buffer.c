// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * For wire_buffer.sh, which compiles it and has it preloaded: whatever receive buffer a program
 * asks for, it gets what stock systems give to each socket, 212,992 bytes. The kernel doubles what
 * it is told.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/socket.h>

int setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	int (*next)(int, int, int, const void *, socklen_t);

	const int stock = 212992 / 2;

	if (level == SOL_SOCKET && name == SO_RCVBUF)
		value = &stock;
	*(void **)&next = dlsym(RTLD_NEXT, "setsockopt");
	return next ? next(fd, level, name, value, len) : -1;
}
