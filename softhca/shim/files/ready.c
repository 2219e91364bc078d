// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * poll(), select() and their kin of umad and issm files. The FIFO that stands for one tells by
 * itself when there is a datagram to read. But a kernel takes what is written to a umad file at any
 * time, and so says that it can be written; an issm file has no poll operation, and so can be read
 * and written at any time. Whatever else there is to wait for is looked at once in that case.
 * epoll.c does the same for epoll. A mask that a wait has leaves SIGBUS unblocked (masks.c).
 */
#include <poll.h>
#include <stdlib.h>
#include <sys/select.h>

#include "softhca/host/status.h"
#include "softhca/shim/attach.h"
#include "softhca/shim/interpose.h"
#include "softhca/shim/signals/signals.h"
#include "umad.h"

#define OUT  (POLLOUT | POLLWRNORM)
#define IN   (POLLIN | POLLRDNORM)
#define MOST 65536 /* descriptors in a set of select() */

/* What of these events a descriptor always has. */
static short always(int fd, short events)
{
	bool issm = shim_issm_known();
	struct shim_fifo file;

	if (!(events & (issm ? OUT | IN : OUT)) || !shim_umad_to_read(fd, &file))
		return 0;
	return (short)(events & (shim_umad_is_issm(&file) ? OUT | IN : OUT));
}

/* After a poll() that has returned n. */
static int more(struct pollfd *fds, nfds_t nfds, int n)
{
	for (nfds_t i = 0; n >= 0 && i < nfds; i++) {
		short has;

		if (fds[i].fd < 0 || fds[i].revents & POLLNVAL)
			continue;
		has = always(fds[i].fd, fds[i].events);
		if (has && !fds[i].revents)
			n++;
		fds[i].revents = (short)(fds[i].revents | has);
	}
	return n;
}

static int do_poll(struct pollfd *fds, nfds_t nfds, int timeout)
{
	int n;

	if (!shim_umad_known())
		return REAL(poll)(fds, nfds, timeout);
	n = more(fds, nfds, REAL(poll)(fds, nfds, 0));
	return n || !timeout ? n : REAL(poll)(fds, nfds, timeout);
}

static int do_ppoll(struct pollfd *fds, nfds_t nfds, const struct timespec *timeout,
		    const sigset_t *mask)
{
	const struct timespec none = {0};
	sigset_t room;
	int n;

	mask = shim_signals_open_mask(mask, &room);
	if (!shim_umad_known())
		return REAL(ppoll)(fds, nfds, timeout, mask);
	n = more(fds, nfds, REAL(ppoll)(fds, nfds, &none, mask));
	return n ? n : REAL(ppoll)(fds, nfds, timeout, mask);
}

EXPORT int poll(struct pollfd *fds, nfds_t nfds, int timeout)
{
	return do_poll(fds, nfds, timeout);
}

EXPORT int ppoll(struct pollfd *fds, nfds_t nfds, const struct timespec *timeout,
		 const sigset_t *mask)
{
	return do_ppoll(fds, nfds, timeout, mask);
}

EXPORT int __poll_chk(struct pollfd *fds, nfds_t nfds, int timeout, size_t room);
EXPORT int __poll_chk(struct pollfd *fds, nfds_t nfds, int timeout, size_t room)
{
	return room / sizeof(*fds) < nfds ? REAL(__poll_chk)(fds, nfds, timeout, room)
					  : do_poll(fds, nfds, timeout);
}

EXPORT int __ppoll_chk(struct pollfd *fds, nfds_t nfds, const struct timespec *timeout,
		       const sigset_t *mask, size_t room);
EXPORT int __ppoll_chk(struct pollfd *fds, nfds_t nfds, const struct timespec *timeout,
		       const sigset_t *mask, size_t room)
{
	return room / sizeof(*fds) < nfds ? REAL(__ppoll_chk)(fds, nfds, timeout, mask, room)
					  : do_ppoll(fds, nfds, timeout, mask);
}

/* ---- sets ---- */

#define WORD (8 * (int)sizeof(long))

static unsigned long *word_of(fd_set *set, int fd)
{
	return (unsigned long *)set + fd / WORD;
}

static bool is_in(fd_set *set, int fd)
{
	return set && *word_of(set, fd) >> fd % WORD & 1;
}

static int put_in(fd_set *set, int fd)
{
	bool was = is_in(set, fd);

	*word_of(set, fd) |= 1UL << fd % WORD;
	return !was;
}

/*
 * Kernels look at no descriptor beyond the process's table, and a set may have no bits for those.
 */
static int in_table(int n)
{
	struct sh_status_field table = {.name = "FDSize:"};
	int size;

	if (n <= FD_SETSIZE)
		return n;
	if (sh_status_read("/proc/thread-self/status", &table, 1))
		return FD_SETSIZE;
	size = atoi(table.value);
	return size < n ? size : n;
}

/*
 * Those of n descriptors that are always ready: bits of POLLIN and POLLOUT for each. False: there
 * are none.
 */
static bool find(int n, fd_set *in, fd_set *out, unsigned char *ready)
{
	bool any = false;

	for (int fd = 0; fd < n; fd++) {
		short asked =
			(short)((is_in(in, fd) ? POLLIN : 0) | (is_in(out, fd) ? POLLOUT : 0));

		ready[fd] = asked ? (unsigned char)always(fd, asked) : 0;
		any |= ready[fd];
	}
	return any;
}

static int add(int got, int n, fd_set *in, fd_set *out, const unsigned char *ready)
{
	for (int fd = 0; got >= 0 && fd < n; fd++) {
		if (ready[fd] & POLLIN)
			got += put_in(in, fd);
		if (ready[fd] & POLLOUT)
			got += put_in(out, fd);
	}
	return got;
}

/*
 * In functions of their own: a program that has no umad file has no more on its stack than without
 * softhca, and may call select() for any number of descriptors.
 */
static __attribute__((noinline)) int do_select(int n, fd_set *in, fd_set *out, fd_set *except,
					       struct timeval *timeout)
{
	int looked = in_table(n);
	unsigned char ready[looked > 0 && looked <= MOST ? looked : 1];
	struct timeval none = {0};

	if (looked > MOST || !find(looked, in, out, ready))
		return REAL(select)(n, in, out, except, timeout);
	return add(REAL(select)(n, in, out, except, &none), looked, in, out, ready);
}

static __attribute__((noinline)) int do_pselect(int n, fd_set *in, fd_set *out, fd_set *except,
						const struct timespec *timeout,
						const sigset_t *mask)
{
	int looked = in_table(n);
	unsigned char ready[looked > 0 && looked <= MOST ? looked : 1];
	const struct timespec none = {0};

	if (looked > MOST || !find(looked, in, out, ready))
		return REAL(pselect)(n, in, out, except, timeout, mask);
	return add(REAL(pselect)(n, in, out, except, &none, mask), looked, in, out, ready);
}

EXPORT int select(int n, fd_set *in, fd_set *out, fd_set *except, struct timeval *timeout)
{
	if (!shim_umad_known())
		return REAL(select)(n, in, out, except, timeout);
	return do_select(n, in, out, except, timeout);
}

EXPORT int pselect(int n, fd_set *in, fd_set *out, fd_set *except, const struct timespec *timeout,
		   const sigset_t *mask)
{
	sigset_t room;

	mask = shim_signals_open_mask(mask, &room);
	if (!shim_umad_known())
		return REAL(pselect)(n, in, out, except, timeout, mask);
	return do_pselect(n, in, out, except, timeout, mask);
}
