// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The numbers that the program has for rsockets, and the calls that make them, copy them and take
 * them away. Readers take no lock; the lock protects changes. A child has its parent's numbers, but
 * not the rsockets: what it closes stays open in its parent.
 */

#define _GNU_SOURCE
/* With it the C library's headers define some of these names, too. */
#undef _FORTIFY_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rdma/rsocket.h>

#include "kept.h"
#include "preload.h"

#ifndef CLOSE_RANGE_UNSHARE
#define CLOSE_RANGE_UNSHARE 2
#endif
#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC 4
#endif

static struct pl_socket *sockets[PL_NUMBERS];
static bool cloexec[PL_NUMBERS]; /* of those */
/*
 * A thread may be in a call on a number that another thread closes, and looks at the structure
 * afterwards. So its memory is never given back: the next new socket has it.
 */
static struct pl_socket *spare;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int end; /* behind the highest number that was ever used */
static bool child;
static pid_t owner; /* of the rsockets: 0 as long as there were none */

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

bool pl_cloexec(int fd)
{
	return __atomic_load_n(&cloexec[fd], __ATOMIC_RELAXED);
}

void pl_set_cloexec(int fd, bool wanted)
{
	__atomic_store_n(&cloexec[fd], wanted, __ATOMIC_RELAXED);
}

/* Is it an rsocket's, and this process may change what it is? */
static bool is_own(int fd)
{
	struct pl_socket *known = pl_find(fd);

	return known && !pl_is_borrowed(known);
}

int pl_share(int fd, struct pl_socket *socket)
{
	if (fd >= PL_NUMBERS) {
		PL_REAL(close)(fd);
		errno = EMFILE;
		return -1;
	}
	pthread_mutex_lock(&lock);
	socket->refs++;
	pl_set_cloexec(fd, false);
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
	__atomic_store_n(&owner, socket->pid, __ATOMIC_RELEASE);
	return pl_share(fd, socket);
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

int pl_next_kept(int from)
{
	socklen_t len = sizeof(from);
	int saved = errno;

	/*
	 * Not for what librdmacm closes itself. And a process that never had rsockets, or shares
	 * the memory of one that has, keeps nothing.
	 */
	if (pl_inside || !__atomic_load_n(&owner, __ATOMIC_ACQUIRE))
		return -1;
	if (IN(rgetsockopt(-1, SOL_RDMA, RS_OPTION_KEPT, &from, &len)))
		from = -1; /* another librdmacm */
	errno = saved;
	return from >= 0 && owner == getpid() ? from : -1;
}

static bool is_kept(int fd)
{
	return fd >= 0 && pl_next_kept(fd) == fd;
}

/* ---- Life ---- */

/* All zero; or NULL. */
static struct pl_socket *structure(void)
{
	struct pl_socket *made;

	pthread_mutex_lock(&lock);
	made = spare;
	if (made)
		spare = made->next;
	pthread_mutex_unlock(&lock);
	if (!made)
		return calloc(1, sizeof(*made));
	memset(made, 0, sizeof(*made));
	return made;
}

static void set_aside(struct pl_socket *unused)
{
	pthread_mutex_lock(&lock);
	unused->next = spare;
	spare = unused;
	pthread_mutex_unlock(&lock);
}

int pl_make(int rs, int domain, int type, int protocol)
{
	struct pl_socket *made = structure();
	int fd, saved;

	if (!made) {
		rclose(rs);
		errno = ENOMEM;
		return -1;
	}
	made->rs = rs;
	made->domain = domain;
	made->type = type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC);
	made->protocol = protocol;
	fd = pl_add(made);
	if (fd < 0) {
		saved = errno;
		rclose(rs);
		set_aside(made);
		errno = saved;
	}
	return fd;
}

int pl_make_at(int fd, int rs)
{
	bool wanted = PL_REAL(fcntl)(fd, F_GETFD) & FD_CLOEXEC;
	struct pl_socket *known;
	int made = pl_make(rs, 0, SOCK_STREAM, 0);

	if (made < 0)
		return -1;
	known = pl_find(made);
	if (PL_REAL(dup3)(made, fd, O_CLOEXEC) < 0) {
		close(made);
		return -1;
	}
	if (pl_share(fd, known) >= 0)
		pl_set_cloexec(fd, wanted);
	close(made);
	return fd;
}

PUBLIC int socket(int domain, int type, int protocol)
{
	int rs, fd;

	/* The device is the parent's. */
	if (pl_inside || pl_is_child() || !pl_wanted(domain, type, protocol))
		return PL_REAL(socket)(domain, type, protocol);
	if (pl_forks())
		return pl_fork_socket(domain, type, protocol);
	rs = IN(rsocket(domain, type, protocol));
	/* Without a device the program has its socket all the same. */
	if (rs < 0)
		return PL_REAL(socket)(domain, type, protocol);
	pl_set_options(rs);
	fd = pl_make(rs, domain, type, protocol);
	if (fd >= 0 && type & SOCK_CLOEXEC)
		pl_set_cloexec(fd, true);
	return fd;
}

int pl_forget(int fd)
{
	struct pl_socket *last = pl_remove(fd);
	int ret = 0;

	if (last) {
		if (last->rs != PL_OF_PARENT)
			ret = IN(rclose(last->rs));
		set_aside(last);
	}
	return ret;
}

PUBLIC int close(int fd)
{
	struct pl_socket *known = pl_find(fd);
	int ret;

	if (!known && is_kept(fd)) {
		errno = EBADF;
		return -1;
	}
	if (!known && !pl_inside)
		pl_fork_forget(fd);
	if (!known || pl_is_borrowed(known))
		return PL_REAL(close)(fd);
	ret = pl_forget(fd);
	PL_REAL(close)(fd);
	return ret;
}

/*
 * The program takes these numbers away, or gives them to other files: does what close() of each
 * would do.
 */
static void forget_range(unsigned int first, unsigned int last)
{
	struct pl_socket *known;

	for (; first <= last && first < PL_NUMBERS; first++) {
		known = pl_find((int)first);
		pl_fork_forget((int)first);
		if (known && !pl_is_borrowed(known))
			pl_forget((int)first);
	}
}

/* C libraries before 2.34 have neither. */
int close_range(unsigned int first, unsigned int last, int flags);
void closefrom(int first);

/* Around what librdmacm has for itself. */
static int close_others(__typeof__(close_range) *real, unsigned int first, unsigned int last,
			int flags)
{
	int kept, ret = 0;

	while (!ret && first <= last && first <= INT_MAX) {
		kept = pl_next_kept((int)first);
		if (kept < 0 || (unsigned int)kept > last)
			return real(first, last, flags);
		if ((unsigned int)kept > first)
			ret = real(first, (unsigned int)kept - 1, flags);
		first = (unsigned int)kept + 1;
	}
	return ret;
}

PUBLIC int close_range(unsigned int first, unsigned int last, int flags)
{
	__typeof__(close_range) *real = (__typeof__(real))dlsym(RTLD_NEXT, "close_range");
	int ret;

	if (!real) {
		errno = ENOSYS;
		return -1;
	}
	/* Of other flags than these the numbers stay, or the call fails. */
	if (first > last || flags & ~CLOSE_RANGE_UNSHARE) {
		ret = real(first, last, flags);
		for (; !ret && flags & CLOSE_RANGE_CLOEXEC && first <= last && first < PL_NUMBERS;
		     first++)
			if (is_own((int)first))
				pl_set_cloexec((int)first, true);
		return ret;
	}
	forget_range(first, last);
	return close_others(real, first, last, flags);
}

PUBLIC void closefrom(int first)
{
	__typeof__(closefrom) *real = (__typeof__(real))dlsym(RTLD_NEXT, "closefrom");
	int fd;

	if (first < 0)
		first = 0;
	forget_range((unsigned int)first, UINT_MAX);
	while ((fd = pl_next_kept(first)) >= 0) {
		for (; first < fd; first++)
			PL_REAL(close)(first);
		first = fd + 1;
	}
	if (real) {
		real(first);
		return;
	}
	for (; first < sysconf(_SC_OPEN_MAX); first++)
		PL_REAL(close)(first);
}

PUBLIC int dup(int oldfd)
{
	struct pl_socket *old = pl_use(oldfd);
	int ret = PL_REAL(dup)(oldfd);

	return ret < 0 || !old || pl_is_borrowed(old) ? ret : pl_share(ret, old);
}

/*
 * Whether newfd is refused as a copy of oldfd, with errno, before it takes the place of an open
 * file.
 */
static bool refused(int oldfd, int newfd)
{
	struct pl_socket *old = pl_find(oldfd);

	if (oldfd != newfd && is_kept(newfd)) {
		errno = EBUSY;
		return true;
	}
	if (old && !pl_is_borrowed(old) && newfd >= PL_NUMBERS) {
		errno = EBADF;
		return true;
	}
	return false;
}

/* The kernel has made newfd a copy of oldfd. */
static int copied(int oldfd, int newfd)
{
	struct pl_socket *old = pl_find(oldfd), *known = pl_find(newfd);

	pl_fork_forget(newfd);
	if ((old && pl_is_borrowed(old)) || (known && pl_is_borrowed(known)))
		return newfd;
	if (known)
		pl_forget(newfd);
	return old ? pl_share(newfd, old) : newfd;
}

PUBLIC int dup2(int oldfd, int newfd)
{
	int ret;

	(void)pl_use(oldfd);
	if (refused(oldfd, newfd))
		return -1;
	ret = PL_REAL(dup2)(oldfd, newfd);
	return ret < 0 || oldfd == newfd ? ret : copied(oldfd, newfd);
}

PUBLIC int dup3(int oldfd, int newfd, int flags)
{
	int ret;

	(void)pl_use(oldfd);
	if (refused(oldfd, newfd))
		return -1;
	ret = PL_REAL(dup3)(oldfd, newfd, flags);
	if (ret >= 0)
		ret = copied(oldfd, newfd);
	if (ret >= 0 && flags & O_CLOEXEC && is_own(ret))
		pl_set_cloexec(ret, true);
	return ret;
}
