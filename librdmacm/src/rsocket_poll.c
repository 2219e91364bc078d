// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* rpoll() and rselect(), of rsockets and other descriptors. A call sleeps in one poll() of what tells
 * for each. */

#define _GNU_SOURCE
#include "rs.h"

enum { FEW = 16 };

/* What one descriptor of the caller has become in the poll() of this call. */
struct entry {
	struct rs *rs;
	struct rs_waiter waiter;
	int first, n; /* in the array of poll() */
};

static short stream_events(const struct rs *rs)
{
	short events = 0;

	if (rs_is_connecting(rs) || rs->state == RS_NEW)
		return rs->state == RS_NEW ? POLLOUT | POLLHUP : 0;
	if (rs->state == RS_FAILED)
		return POLLIN | POLLOUT | POLLHUP | (rs->error ? POLLERR : 0);
	if (rs_readable(rs))
		events |= POLLIN | POLLRDNORM;
	if (rs_writable(rs))
		events |= POLLOUT | POLLWRNORM;
	if (rs->recv_down)
		events |= POLLRDHUP;
	/* As with TCP, that the peer has closed is no hang-up: this side may not know it yet. */
	if (rs->recv_down && (rs->said_end || (rs->broken && !rs->heard_disconnect)))
		events |= POLLHUP;
	if (rs->error)
		events |= POLLERR;
	return events;
}

/* With the lock. */
static short rs_events(struct rs *rs, short wanted)
{
	short events = rs->ds ? ds_events(rs) : stream_events(rs);

	return events & (wanted | POLLERR | POLLHUP);
}

/* Looks at the queues. The number of descriptors with something to tell. */
static int look(struct pollfd *fds, struct entry *entries, nfds_t nfds, bool arm)
{
	int ready = 0;
	nfds_t i;

	for (i = 0; i < nfds; i++) {
		struct rs *rs = entries[i].rs;

		if (!rs)
			continue;
		pthread_mutex_lock(&rs->lock);
		fds[i].revents = rs_events(rs, fds[i].events);
		if (!fds[i].revents) {
			if (arm)
				rs_arm(rs);
			if (rs_is_connecting(rs))
				rs_progress(rs);
			else if (rs->ds)
				ds_advance(rs);
			else
				rs_poll_queue(rs);
			fds[i].revents = rs_events(rs, fds[i].events);
			if (!fds[i].revents && !arm) {
				rs_look_for_end(rs);
				fds[i].revents = rs_events(rs, fds[i].events);
			}
		}
		pthread_mutex_unlock(&rs->lock);
		ready += fds[i].revents != 0;
	}
	return ready;
}

static void join(struct entry *entries, nfds_t nfds, int own)
{
	nfds_t i;

	for (i = 0; i < nfds; i++) {
		struct rs *rs = entries[i].rs;

		if (!rs)
			continue;
		pthread_mutex_lock(&rs->lock);
		entries[i].waiter.fd = own;
		rs_add_waiter(rs, &entries[i].waiter);
		pthread_mutex_unlock(&rs->lock);
	}
}

/* Makes the array for poll(); own < 0: of other descriptors alone. */
static nfds_t collect(const struct pollfd *fds, struct entry *entries, nfds_t nfds,
		      struct pollfd *all, int own)
{
	nfds_t i, n = 0;

	for (i = 0; i < nfds; i++) {
		struct rs *rs = entries[i].rs;

		entries[i].first = (int)n;
		entries[i].n = 0;
		if (!rs) {
			all[n++] = (struct pollfd){.fd = fds[i].fd, .events = fds[i].events};
		} else if (own >= 0) {
			pthread_mutex_lock(&rs->lock);
			entries[i].n = rs_poll_fds(rs, &all[n]);
			pthread_mutex_unlock(&rs->lock);
			n += entries[i].n;
		}
	}
	if (own >= 0)
		all[n++] = (struct pollfd){.fd = own, .events = POLLIN};
	return n;
}

static int leave(struct pollfd *fds, struct entry *entries, nfds_t nfds, const struct pollfd *all,
		 bool slept, bool polled)
{
	int ready = 0;
	nfds_t i;

	for (i = 0; i < nfds; i++) {
		struct rs *rs = entries[i].rs;
		const struct pollfd *first = &all[entries[i].first];

		if (!rs) {
			fds[i].revents = polled ? first->revents : 0;
		} else if (slept) {
			pthread_mutex_lock(&rs->lock);
			rs_remove_waiter(rs, &entries[i].waiter);
			if (polled)
				rs_advance(rs, first, entries[i].n);
			fds[i].revents = rs_events(rs, fds[i].events);
			pthread_mutex_unlock(&rs->lock);
		}
		ready += fds[i].revents != 0;
	}
	return ready;
}

static bool all_alone(const struct entry *entries, nfds_t nfds)
{
	nfds_t i;

	for (i = 0; i < nfds; i++)
		if (!entries[i].rs)
			return false;
	return true;
}

static int milliseconds_left(int64_t deadline)
{
	int64_t left;

	if (deadline < 0)
		return -1;
	left = deadline - rs_now_us() / 1000;
	return left < 0 ? 0 : left > INT32_MAX ? INT32_MAX : (int)left;
}

static int poll_all(struct pollfd *fds, struct entry *entries, nfds_t nfds, struct pollfd *all,
		    int timeout)
{
	int64_t deadline = rs_deadline(timeout), spin_end = 0;
	bool alone = all_alone(entries, nfds);
	int ready, own, ret, left;
	nfds_t n;

	/* Without sleeping: what is there, in the others too. */
	do {
		ready = look(fds, entries, nfds, false);
		if (ready && alone)
			return ready;
		if (ready || !timeout) {
			n = collect(fds, entries, nfds, all, -1);
			ret = n ? poll(all, n, 0) : 0;
			return ret < 0 ? -errno : leave(fds, entries, nfds, all, false, true);
		}
		if (!spin_end)
			spin_end = rs_now_us() + rs_config()->polling_us;
	} while (rs_now_us() < spin_end);

	own = rs_thread_fd();
	if (own < 0)
		return own;
	for (;;) {
		/* In the lists before the last look: what happens after it wakes. */
		join(entries, nfds, own);
		ready = look(fds, entries, nfds, true);
		n = collect(fds, entries, nfds, all, own);
		left = ready ? 0 : milliseconds_left(deadline);
		ret = poll(all, n, left);
		if (ret < 0)
			ret = -errno;
		ready = leave(fds, entries, nfds, all, true, ret >= 0);
		if (ret < 0 && !ready)
			return ret;
		if (ready || !milliseconds_left(deadline))
			return ready;
		own = rs_thread_fd();
		if (own < 0)
			return own;
	}
}

PUBLIC int rpoll(struct pollfd *fds, nfds_t nfds, int timeout)
{
	struct pollfd few_all[2 * FEW + 1], *all = few_all;
	struct entry few_entries[FEW], *entries = few_entries;
	bool some = false;
	int ret = -ENOMEM;
	nfds_t i;

	if (nfds > FEW) {
		all = calloc(2 * nfds + 1, sizeof(*all));
		entries = calloc(nfds, sizeof(*entries));
		if (!all || !entries)
			goto out;
	}
	for (i = 0; i < nfds; i++) {
		struct rs *rs = rs_get(fds[i].fd);

		/* What a listener has to tell, its channel tells. */
		entries[i].rs = rs && rs->state != RS_LISTENING ? rs : NULL;
		some |= entries[i].rs != NULL;
	}
	if (some)
		ret = poll_all(fds, entries, nfds, all, timeout);
	else
		ret = poll(fds, nfds, timeout) < 0 ? -errno : 0;
	if (!some && !ret)
		for (i = 0; i < nfds; i++)
			ret += fds[i].revents != 0;
out:
	if (all != few_all) {
		free(all);
		free(entries);
	}
	return cm_return(ret);
}

/* ---- rselect() ---- */

enum {
	READS = POLLIN | POLLRDNORM | POLLHUP | POLLERR,
	WRITES = POLLOUT | POLLWRNORM | POLLERR,
};

static int poll_sets(int nfds, fd_set *sets[3], struct pollfd *fds, int timeout)
{
	static const short wanted[3] = {POLLIN, POLLOUT, POLLPRI};
	static const short means[3] = {READS, WRITES, POLLPRI};
	int fd, i, n = 0, ret, found = 0;

	for (fd = 0; fd < nfds; fd++) {
		short events = 0;

		for (i = 0; i < 3; i++)
			if (sets[i] && FD_ISSET(fd, sets[i]))
				events |= wanted[i];
		if (events)
			fds[n++] = (struct pollfd){.fd = fd, .events = events};
	}
	ret = rpoll(fds, n, timeout);
	if (ret < 0)
		return -errno;
	while (n--) {
		if (fds[n].revents & POLLNVAL)
			return -EBADF;
		for (i = 0; i < 3; i++) {
			if (!sets[i] || !(fds[n].events & wanted[i]))
				continue;
			if (fds[n].revents & means[i])
				found++;
			else
				FD_CLR(fds[n].fd, sets[i]);
		}
	}
	return found;
}

PUBLIC int rselect(int nfds, fd_set *readfds, fd_set *writefds, fd_set *exceptfds,
		   struct timeval *timeout)
{
	fd_set *sets[3] = {readfds, writefds, exceptfds};
	struct pollfd *fds;
	int64_t ms = -1;
	int ret;

	if (nfds < 0 || nfds > FD_SETSIZE)
		return cm_return(-EINVAL);
	if (timeout) {
		if (timeout->tv_sec < 0 || timeout->tv_usec < 0 || timeout->tv_usec > 999999)
			return cm_return(-EINVAL);
		ms = timeout->tv_sec * INT64_C(1000) + (timeout->tv_usec + 999) / 1000;
	}
	fds = calloc(nfds ? nfds : 1, sizeof(*fds));
	if (!fds)
		return cm_return(-ENOMEM);
	ret = poll_sets(nfds, sets, fds, ms > INT32_MAX ? INT32_MAX : (int)ms);
	free(fds);
	return cm_return(ret);
}
