// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * epoll and umad files (ready.c). An instance has the FIFO, which cannot be written. What the
 * program waits for in it is in fdinfo, whatever process has put it there. A thread that sleeps in
 * an instance does not hear of a umad file that another one puts in, as long as that cannot be
 * read. No instance takes an issm file, which has no poll operation.
 */
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>

#include "softhca/host/sys.h"
#include "softhca/shim/attach.h"
#include "softhca/shim/interpose.h"
#include "softhca/shim/signals/signals.h"
#include "umad.h"

#define OUT   (EPOLLOUT | EPOLLWRNORM)
#define OUTS  8 /* umad files of an instance that are to be written */
#define FRESH 16

struct out {
	uint32_t events;
	uint64_t data;
	int fd;
	bool now; /* it is reported, whatever else there is */
};

/* Has this process put such a file in, or got such an instance by fork()? */
static bool outs_seen;
/*
 * (instance << 32 | file) + 1 of those with EPOLLET that have not been reported since they were put
 * in. Another report needs a datagram.
 */
static uint64_t fresh[FRESH];

static uint64_t fresh_word(int epfd, int fd)
{
	return ((uint64_t)(uint32_t)epfd << 32 | (uint32_t)fd) + 1;
}

/* Puts to where from is. False: it is nowhere. */
static bool fresh_change(uint64_t from, uint64_t to)
{
	for (int i = 0; i < FRESH; i++) {
		uint64_t was = from;

		if (__atomic_compare_exchange_n(&fresh[i], &was, to, false, __ATOMIC_ACQ_REL,
						__ATOMIC_RELAXED))
			return true;
	}
	return false;
}

static bool is_fresh(uint64_t word)
{
	for (int i = 0; i < FRESH; i++)
		if (__atomic_load_n(&fresh[i], __ATOMIC_RELAXED) == word)
			return true;
	return false;
}

/* Those whose file has been closed before they were reported make room. */
static void fresh_sweep(void)
{
	struct shim_fifo file;

	for (int i = 0; i < FRESH; i++) {
		uint64_t word = __atomic_load_n(&fresh[i], __ATOMIC_RELAXED);

		if (word && !shim_umad_to_read((int)(uint32_t)(word - 1), &file))
			__atomic_compare_exchange_n(&fresh[i], &word, 0, false, __ATOMIC_ACQ_REL,
						    __ATOMIC_RELAXED);
	}
}

static void fresh_add(uint64_t word)
{
	if (fresh_change(0, word))
		return;
	fresh_sweep();
	(void)fresh_change(0, word);
}

EXPORT int epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	struct shim_fifo file;
	bool out = false, edge = false;
	int ret;

	if (shim_umad_known() && shim_umad_to_read(fd, &file)) {
		if (shim_umad_is_issm(&file) && sh_fcntl(epfd, F_GETFD, 0) >= 0)
			RETURN_ERRNO(-EPERM);
		out = op != EPOLL_CTL_DEL && event && event->events & OUT;
		edge = out && event->events & EPOLLET;
		(void)fresh_change(fresh_word(epfd, fd), 0);
	}
	ret = REAL(epoll_ctl)(epfd, op, fd, event);
	if (!ret && out) {
		__atomic_store_n(&outs_seen, true, __ATOMIC_RELAXED);
		if (edge)
			fresh_add(fresh_word(epfd, fd));
	}
	return ret;
}

static const char *number(const char *at, unsigned int base, uint64_t *value)
{
	*value = 0;
	for (at += strspn(at, " \t");; at++) {
		unsigned int digit = *at >= '0' && *at <= '9'	? (unsigned int)(*at - '0')
				     : *at >= 'a' && *at <= 'f' ? (unsigned int)(*at - 'a' + 10)
								: base;

		if (digit >= base)
			return at;
		*value = *value * base + digit;
	}
}

/* A line about what an instance has: "tfd: 5 events: 4 data: 7 ...", the last two by sixteens. */
static bool is_out(int epfd, const char *line, struct out *o)
{
	const char *events = strstr(line, "events:"), *data = strstr(line, "data:");
	struct shim_fifo file;
	uint64_t value;

	if (strncmp(line, "tfd:", 4) || !events || !data)
		return false;
	(void)number(line + 4, 10, &value);
	o->fd = (int)value;
	(void)number(events + 7, 16, &value);
	o->events = (uint32_t)value;
	(void)number(data + 5, 16, &o->data);
	if (!(o->events & OUT) || !shim_umad_to_read(o->fd, &file))
		return false;
	o->now = !(o->events & EPOLLET) || is_fresh(fresh_word(epfd, o->fd));
	return true;
}

static int find_outs(int epfd, struct out *outs)
{
	char path[64] = "/proc/thread-self/fdinfo/", text[1024];
	int n = 0, fd;
	size_t have = 0;
	long got;

	if (epfd < 0)
		return 0;
	shim_put_number(path + strlen(path), (unsigned int)epfd);
	fd = sh_open_own(path, O_RDONLY);
	if (fd < 0)
		return 0;
	while ((got = sh_read(fd, text + have, sizeof(text) - 1 - have)) > 0) {
		char *line = text, *end;

		have += (size_t)got;
		text[have] = '\0';
		for (; n < OUTS && (end = strchr(line, '\n')); line = end + 1) {
			*end = '\0';
			n += is_out(epfd, line, &outs[n]);
		}
		have -= (size_t)(line - text);
		memmove(text, line, have);
		/* No line is as long as that. */
		if (n == OUTS || have == sizeof(text) - 1)
			break;
	}
	sh_close(fd);
	return n;
}

static bool any_now(const struct out *outs, int n)
{
	for (int i = 0; i < n; i++)
		if (outs[i].now)
			return true;
	return false;
}

/* One that has been reported, and is not to be again until the program says so. */
static void disarm(int epfd, const struct out *o)
{
	struct epoll_event e = {.events = o->events & (EPOLLONESHOT | EPOLLET),
				.data.u64 = o->data};

	if (o->events & EPOLLONESHOT)
		(void)REAL(epoll_ctl)(epfd, EPOLL_CTL_MOD, o->fd, &e);
}

static int report(int epfd, struct epoll_event *events, int max, int got, const struct out *outs,
		  int n)
{
	int native = got;

	for (int i = 0; got >= 0 && i < n; i++) {
		int at = 0;

		while (at < native && events[at].data.u64 != outs[i].data)
			at++;
		/* Where there is no room, the next call reports it. */
		if (at == native && (!outs[i].now || got >= max))
			continue;
		if (outs[i].events & EPOLLET)
			(void)fresh_change(fresh_word(epfd, outs[i].fd), 0);
		if (at == native) {
			at = got++;
			events[at] = (struct epoll_event){.data.u64 = outs[i].data};
			disarm(epfd, &outs[i]);
		}
		events[at].events |= outs[i].events & OUT;
	}
	return got;
}

static int outs_of(int epfd, struct out *outs)
{
	if (likely(!__atomic_load_n(&outs_seen, __ATOMIC_RELAXED)) || !shim_umad_known())
		return 0;
	return find_outs(epfd, outs);
}

EXPORT int epoll_wait(int epfd, struct epoll_event *events, int max, int timeout)
{
	struct out outs[OUTS];
	int n = outs_of(epfd, outs);

	if (any_now(outs, n))
		timeout = 0;
	return report(epfd, events, max, REAL(epoll_wait)(epfd, events, max, timeout), outs, n);
}

EXPORT int epoll_pwait(int epfd, struct epoll_event *events, int max, int timeout,
		       const sigset_t *mask)
{
	struct out outs[OUTS];
	sigset_t room;
	int n = outs_of(epfd, outs), got;

	if (any_now(outs, n))
		timeout = 0;
	mask = shim_signals_open_mask(mask, &room);
	got = REAL(epoll_pwait)(epfd, events, max, timeout, mask);
	return report(epfd, events, max, got, outs, n);
}

/* Of glibc 2.35. */
int epoll_pwait2(int epfd, struct epoll_event *events, int max, const struct timespec *timeout,
		 const sigset_t *mask);
EXPORT int epoll_pwait2(int epfd, struct epoll_event *events, int max,
			const struct timespec *timeout, const sigset_t *mask)
{
	const struct timespec none = {0};
	struct out outs[OUTS];
	sigset_t room;
	int n, got;

	if (!REAL(epoll_pwait2))
		RETURN_ERRNO(-ENOSYS);
	n = outs_of(epfd, outs);
	if (any_now(outs, n))
		timeout = &none;
	mask = shim_signals_open_mask(mask, &room);
	got = REAL(epoll_pwait2)(epfd, events, max, timeout, mask);
	return report(epfd, events, max, got, outs, n);
}
