// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The numbers that the program has for rsockets. Readers take no lock; the lock protects changes.
 * A child has its parent's numbers, but not the rsockets: what it closes stays open in its parent.
 */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "preload.h"

static struct pl_socket *sockets[PL_NUMBERS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int end; /* behind the highest number that was ever used */
static bool child;

static void before_fork(void)
{
	pthread_mutex_lock(&lock);
}

static void in_parent(void)
{
	pthread_mutex_unlock(&lock);
}

static void in_child(void)
{
	int fd;

	for (fd = 0; fd < end; fd++)
		if (sockets[fd])
			sockets[fd]->rs = PL_OF_PARENT;
	child = true;
	pthread_mutex_unlock(&lock);
}

static void watch_forks(void)
{
	pthread_atfork(before_fork, in_parent, in_child);
}

bool pl_is_child(void)
{
	return child;
}

bool pl_is_borrowed(const struct pl_socket *socket)
{
	return socket->rs != PL_OF_PARENT && socket->pid != getpid();
}

struct pl_socket *pl_find(int fd)
{
	if (fd < 0 || fd >= PL_NUMBERS)
		return NULL;
	return __atomic_load_n(&sockets[fd], __ATOMIC_ACQUIRE);
}

int pl_get(int fd)
{
	struct pl_socket *socket = pl_find(fd);

	return socket ? socket->rs : -1;
}

int pl_share(int fd, struct pl_socket *socket)
{
	if (fd >= PL_NUMBERS) {
		errno = EMFILE;
		return -1;
	}
	pthread_mutex_lock(&lock);
	socket->refs++;
	if (fd >= end)
		end = fd + 1;
	__atomic_store_n(&sockets[fd], socket, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&lock);
	return fd;
}

int pl_add(struct pl_socket *socket)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return -1;
	pthread_once(&once, watch_forks);
	socket->pid = getpid();
	if (pl_share(fd, socket) < 0) {
		pl_close_real(fd);
		return -1;
	}
	return fd;
}

struct pl_socket *pl_remove(int fd)
{
	struct pl_socket *socket;

	pthread_mutex_lock(&lock);
	socket = sockets[fd];
	__atomic_store_n(&sockets[fd], NULL, __ATOMIC_RELEASE);
	if (socket && --socket->refs)
		socket = NULL;
	pthread_mutex_unlock(&lock);
	return socket;
}
