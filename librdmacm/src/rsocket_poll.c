// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * rpoll() and rselect(), of rsockets and other descriptors. A call sleeps in one poll() of what
 * tells for each.
 */

#define _GNU_SOURCE
#include "rs.h"

enum { FEW = 16 };

/* What one descriptor of the caller has become in the poll() of this call. */
struct entry {
	struct rs *rs;
	uint32_t life;
	struct rs_waiter waiter;
	int first, n; /* in the array of poll() */
	bool listens; /* what it has to tell, its channel tells, too */
};

/* One call. */
struct call {
	struct pollfd *fds, *all;
	struct entry *entries;
	nfds_t nfds;
	bool on_heap; /* all, entries */
	bool joined;  /* in the lists of the rsockets */
	int patience; /* rs_patience() of the least patient one */
	int state;    /* whether the caller's thread can be cancelled: only while it sleeps */
	int ret;
};

static short stream_events(const struct rs *rs)
{
	short events = 0;

	if (rs->state == RS_LISTENING) /* the channel tells the rest */
		return rs_has_requests(rs) ? POLLIN | POLLRDNORM : 0;
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

/* Takes its lock. False: it has been closed since the call began. */
static bool enter(const struct entry *entry)
{
	pthread_mutex_lock(&entry->rs->lock);
	if (entry->rs->life == entry->life)
		return true;
	pthread_mutex_unlock(&entry->rs->lock);
	return false;
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
		if (!enter(&entries[i])) {
			fds[i].revents = POLLNVAL;
			ready++;
			continue;
		}
		rs_keep_alive(rs);
		fds[i].revents = rs_events(rs, fds[i].events);
		if (!fds[i].revents && rs->state != RS_LISTENING) {
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

static void join(struct entry *entries, nfds_t nfds)
{
	nfds_t i;

	for (i = 0; i < nfds; i++) {
		struct rs *rs = entries[i].rs;

		if (!rs || !enter(&entries[i]))
			continue;
		rs_add_waiter(rs, &entries[i].waiter);
		pthread_mutex_unlock(&rs->lock);
	}
}

/* Makes the array for poll(); own < 0: of other descriptors and listeners alone. */
static nfds_t collect(struct call *call, int own)
{
	const struct pollfd *fds = call->fds;
	struct entry *entries = call->entries;
	struct pollfd *all = call->all;
	nfds_t nfds = call->nfds, i, n = 0;
	int patience;

	call->patience = -1;
	for (i = 0; i < nfds; i++) {
		struct rs *rs = entries[i].rs;

		entries[i].first = (int)n;
		entries[i].n = 0;
		entries[i].listens = false;
		if (!rs) {
			all[n++] = (struct pollfd){.fd = fds[i].fd, .events = fds[i].events};
		} else if (enter(&entries[i])) {
			entries[i].listens = rs->state == RS_LISTENING;
			if (entries[i].listens) {
				all[n] = (struct pollfd){.fd = rs->channel->fd,
							 .events = fds[i].events};
				entries[i].n = 1;
			} else if (own >= 0) {
				entries[i].n = rs_poll_fds(rs, &all[n]);
			}
			patience = rs_patience(rs);
			if (patience >= 0 && (call->patience < 0 || call->patience > patience))
				call->patience = patience;
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
		} else if (slept && !enter(&entries[i])) {
			fds[i].revents = POLLNVAL;
		} else if (slept) {
			rs_remove_waiter(rs, &entries[i].waiter);
			if (polled && !entries[i].listens)
				rs_advance(rs, first, entries[i].n);
			fds[i].revents = rs_events(rs, fds[i].events);
			pthread_mutex_unlock(&rs->lock);
		}
		if (rs && entries[i].listens && fds[i].revents != POLLNVAL)
			fds[i].revents |= polled ? first->revents : 0;
		ready += fds[i].revents != 0;
	}
	return ready;
}

static bool all_alone(const struct entry *entries, nfds_t nfds)
{
	nfds_t i;

	for (i = 0; i < nfds; i++)
		if (!entries[i].rs || entries[i].rs->state == RS_LISTENING)
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

static int sleep_in(struct call *call, nfds_t n, int timeout)
{
	int ret;

	cm_let_cancel(call->state);
	ret = poll(call->all, n, timeout);
	if (ret < 0)
		ret = -errno;
	cm_hold_cancel();
	return ret;
}

/* Also when the thread is cancelled while it sleeps. */
static void end_call(void *arg)
{
	struct call *call = arg;
	nfds_t i;

	for (i = 0; call->joined && i < call->nfds; i++) {
		struct rs *rs = call->entries[i].rs;

		if (!rs || !enter(&call->entries[i]))
			continue;
		rs_remove_waiter(rs, &call->entries[i].waiter);
		pthread_mutex_unlock(&rs->lock);
	}
	if (call->on_heap) {
		free(call->all);
		free(call->entries);
	}
}

static int poll_all(struct call *call, int timeout)
{
	struct entry *entries = call->entries;
	struct pollfd *fds = call->fds, *all = call->all;
	nfds_t nfds = call->nfds;
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
			n = collect(call, -1);
			ret = n ? sleep_in(call, n, 0) : 0;
			return ret < 0 ? ret : leave(fds, entries, nfds, all, false, true);
		}
		if (!spin_end)
			spin_end = rs_now_us() + rs_config()->polling_us;
	} while (rs_now_us() < spin_end);

	own = rs_thread_fd();
	if (own < 0)
		return own;
	for (;;) {
		/* In the lists before the last look: what happens after it wakes. */
		join(entries, nfds);
		call->joined = true;
		ready = look(fds, entries, nfds, true);
		n = collect(call, own);
		left = ready ? 0 : milliseconds_left(deadline);
		if (call->patience >= 0 && (left < 0 || left > call->patience))
			left = call->patience;
		ret = sleep_in(call, n, left);
		ready = leave(fds, entries, nfds, all, true, ret >= 0);
		call->joined = false;
		if (ret < 0 && !ready)
			return ret;
		if (ready || !milliseconds_left(deadline))
			return ready;
		own = rs_thread_fd();
		if (own < 0)
			return own;
	}
}

/* Without its lock. If the rsocket has the number after its life was read, that was its life. */
static struct rs *look_up(int fd, uint32_t *life)
{
	struct rs *rs = rs_get(fd);

	if (!rs) {
		rs_await_end(fd);
		rs = rs_get(fd);
	}
	if (!rs)
		return NULL;
	*life = __atomic_load_n(&rs->life, __ATOMIC_ACQUIRE);
	return rs_get(fd) == rs ? rs : NULL;
}

static void run(struct call *call, int timeout)
{
	bool some = false;
	nfds_t i;

	for (i = 0; i < call->nfds; i++) {
		call->entries[i].rs = look_up(call->fds[i].fd, &call->entries[i].life);
		some |= call->entries[i].rs != NULL;
	}
	if (some) {
		call->state = cm_hold_cancel();
		call->ret = poll_all(call, timeout);
		cm_let_cancel(call->state);
	} else {
		call->ret = poll(call->fds, call->nfds, timeout);
		if (call->ret < 0)
			call->ret = -errno;
	}
}

PUBLIC int rpoll(struct pollfd *fds, nfds_t nfds, int timeout)
{
	struct pollfd few_all[2 * FEW + 1];
	struct entry few_entries[FEW];
	struct call call = {
		.fds = fds,
		.nfds = nfds,
		.all = few_all,
		.entries = few_entries,
		.on_heap = nfds > FEW,
		.ret = -ENOMEM,
	};

	if (call.on_heap) {
		call.all = calloc(2 * nfds + 1, sizeof(*call.all));
		call.entries = calloc(nfds, sizeof(*call.entries));
	}
	pthread_cleanup_push(end_call, &call);
	if (call.all && call.entries)
		run(&call, timeout);
	pthread_cleanup_pop(1);
	return cm_return(call.ret);
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

/* -1: for ever; -EINVAL */
static int milliseconds_of(const struct timeval *timeout)
{
	int64_t ms;

	if (!timeout)
		return -1;
	if (timeout->tv_sec < 0 || timeout->tv_usec < 0 || timeout->tv_usec > 999999)
		return -EINVAL;
	ms = timeout->tv_sec * INT64_C(1000) + (timeout->tv_usec + 999) / 1000;
	return ms > INT32_MAX ? INT32_MAX : (int)ms;
}

PUBLIC int rselect(int nfds, fd_set *readfds, fd_set *writefds, fd_set *exceptfds,
		   struct timeval *timeout)
{
	/* volatile: the end of the clean-up handler's scope may be reached by a jump. */
	const volatile int ms = milliseconds_of(timeout);
	fd_set *sets[3] = {readfds, writefds, exceptfds};
	struct pollfd *fds;
	int ret;

	if (nfds < 0 || nfds > FD_SETSIZE || ms == -EINVAL)
		return cm_return(-EINVAL);
	fds = calloc(nfds ? nfds : 1, sizeof(*fds));
	if (!fds)
		return cm_return(-ENOMEM);
	pthread_cleanup_push(free, fds);
	ret = poll_sets(nfds, sets, fds, ms);
	pthread_cleanup_pop(1);
	return cm_return(ret);
}
