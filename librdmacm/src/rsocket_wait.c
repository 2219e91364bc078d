// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * How calls sleep. Each thread that sleeps has an eventfd and stands in the lists of the rsockets
 * that it sleeps for. A thread that takes something from their queues, or changes them, writes to
 * the eventfds: so no thread misses what another one has seen. rs->lock protects the list.
 */

#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "rs.h"

/* LOOK_US: how much later a program that never sleeps may hear of its peer's end. AGAIN_MS: after
 * how long a thread that sleeps asks again for an event for which there was no memory. */
enum { LOOK_US = 10000, AGAIN_MS = 10 };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;

/*
 * How a thread knows its eventfd again. The program, which knows nothing of it, may have closed it,
 * and a file of the program's may have got the number. The thread must neither read, write nor
 * close that file. The inode does not tell the two apart, since all eventfds and timerfds, among
 * others, have the same. Nor does the kernel's number of an eventfd (eventfd-id), which goes to the
 * next one that is made. So the thread marks its eventfd in a way in which a program has no reason
 * to mark a file: the eventfd belongs to this thread (F_SETOWN_EX), and has a signal (F_SETSIG).
 * Neither has an effect, since an eventfd sends no signals. Where these calls fail, as in a
 * sandbox, the thread has to rely on the inode, and takes a file with the same one for its own.
 */
enum { MARK = SIGCONT };

struct own_file {
	int fd;
	bool marked;
	dev_t dev; /* if it is not marked */
	ino_t ino;
};

struct rs_thread {
	struct own_file wake;	 /* the eventfd */
	struct own_file signals; /* a signalfd, for `watched` */
	sigset_t watched;
	pid_t pid; /* a child must not share them with its parent */
	pid_t tid;
};

static bool bears_marks(const struct rs_thread *own, const struct own_file *file)
{
	struct f_owner_ex owner;

	if (!fcntl(file->fd, F_GETOWN_EX, &owner) && owner.type == F_OWNER_TID &&
	    owner.pid == own->tid)
		return true;
	/* In a child only the signal tells: the thread was the parent's, and may have ended. */
	return own->pid != getpid() && fcntl(file->fd, F_GETSIG) == MARK;
}

static void mark(struct rs_thread *own, struct own_file *file)
{
	struct f_owner_ex owner = {.type = F_OWNER_TID, .pid = own->tid};
	struct stat st;

	if (!fstat(file->fd, &st)) {
		file->dev = st.st_dev;
		file->ino = st.st_ino;
	}
	file->marked = !fcntl(file->fd, F_SETOWN_EX, &owner) && !fcntl(file->fd, F_SETSIG, MARK) &&
		       fcntl(file->fd, F_GETSIG) == MARK && bears_marks(own, file);
}

static bool is_own(const struct rs_thread *own, const struct own_file *file)
{
	struct stat st;

	if (file->fd < 0)
		return false;
	if (file->marked)
		return bears_marks(own, file);
	return !fstat(file->fd, &st) && st.st_dev == file->dev && st.st_ino == file->ino;
}

static void close_own(const struct rs_thread *own, struct own_file *file)
{
	cm_give_up(file->fd);
	if (is_own(own, file))
		close(file->fd);
	file->fd = -1;
}

static void end_thread(void *arg)
{
	struct rs_thread *own = arg;

	close_own(own, &own->wake);
	close_own(own, &own->signals);
	free(own);
}

static void make_key(void)
{
	pthread_key_create(&key, end_thread);
}

/*
 * This thread's own, which stays as long as the thread does: others look at it while the thread
 * sleeps.
 */
static struct rs_thread *this_thread(void)
{
	struct rs_thread *own = pthread_getspecific(key);

	if (own)
		return own;
	own = calloc(1, sizeof(*own));
	if (!own)
		return NULL;
	own->wake.fd = own->signals.fd = -1;
	own->pid = getpid();
	if (!pthread_setspecific(key, own))
		return own;
	free(own);
	return NULL;
}

/* In a child the files are the parent's. */
static void begin_anew(struct rs_thread *own)
{
	const pid_t pid = getpid();

	if (own->tid && own->pid == pid)
		return;
	close_own(own, &own->wake);
	close_own(own, &own->signals);
	own->pid = pid;
	own->tid = (pid_t)syscall(SYS_gettid);
}

static int thread_fd(void)
{
	struct rs_thread *own = this_thread();
	uint64_t count;

	if (!own)
		return -ENOMEM;
	begin_anew(own);
	if (own->wake.fd >= 0) {
		/* From a wake-up that came too late */
		if (is_own(own, &own->wake) &&
		    (read(own->wake.fd, &count, sizeof(count)) >= 0 || errno == EAGAIN))
			return own->wake.fd;
		cm_give_up(own->wake.fd);
	}
	own->wake.fd = cm_keep(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
	if (own->wake.fd < 0)
		return -errno;
	mark(own, &own->wake);
	return own->wake.fd;
}

int rs_thread_fd(void)
{
	int state = cm_hold_cancel(), fd;

	pthread_once(&once, make_key);
	fd = thread_fd();
	cm_let_cancel(state);
	return fd;
}

/*
 * ---- Handlers with SA_RESTART ----
 *
 * poll() ends with EINTR whatever a handler's flags are, and afterwards nothing tells which handler
 * it was: one of one shot is gone, and another thread may have installed it meanwhile. So the
 * thread sleeps with its signals blocked, and with a signalfd that tells of those that wait. It
 * looks at the handlers of these first, and lets the handlers run then.
 *
 * Signals that an instruction causes are not blocked: the kernel would end the process.
 */

/* False: there is no signalfd. */
static bool watch(struct rs_thread *own, const sigset_t *signals)
{
	bool has = is_own(own, &own->signals);
	int fd;

	if (has && !memcmp(signals, &own->watched, sizeof(*signals)))
		return true;
	if (!has) {
		cm_give_up(own->signals.fd);
		own->signals.fd = -1;
	}
	fd = signalfd(own->signals.fd, signals, SFD_NONBLOCK | SFD_CLOEXEC);
	if (fd < 0)
		return false;
	own->watched = *signals;
	if (!has) {
		own->signals.fd = cm_keep(fd);
		mark(own, &own->signals);
	}
	return true;
}

/*
 * Blocks the signals that may end a call. *old: what the thread blocked before; *tells: what
 * becomes readable when one comes. False: nothing has changed, and any handler ends the call.
 */
static bool hold_signals(sigset_t *old, struct pollfd *tells)
{
	static const int caused[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
	struct rs_thread *own = pthread_getspecific(key);
	sigset_t all;
	unsigned int i;

	/* watch() compares all of it, and the C library fills as much as the kernel has. */
	memset(&all, 0, sizeof(all));
	sigfillset(&all);
	for (i = 0; i < sizeof(caused) / sizeof(caused[0]); i++)
		sigdelset(&all, caused[i]);
	if (pthread_sigmask(SIG_BLOCK, &all, old))
		return false;
	for (i = 1; i < NSIG; i++)
		if (sigismember(old, (int)i) == 1)
			sigdelset(&all, (int)i);
	if (!watch(own, &all)) {
		pthread_sigmask(SIG_SETMASK, old, NULL);
		return false;
	}
	*tells = (struct pollfd){.fd = own->signals.fd, .events = POLLIN};
	return true;
}

/* Does a call of a socket go on after the handler of this signal? */
static bool goes_on_after(int signal)
{
	struct sigaction action;

	return sigaction(signal, NULL, &action) || action.sa_handler == SIG_DFL ||
	       action.sa_handler == SIG_IGN || (action.sa_flags & SA_RESTART);
}

/*
 * Lets the handlers of the signals that wait run. 0 or -EINTR, as a call of a socket would have it.
 * If a signal waits for any thread of the process, and another one takes it, this call ends, too.
 */
static int let_signals(const sigset_t *old)
{
	const struct rs_thread *own = pthread_getspecific(key);
	sigset_t waiting;
	int ret = 0, i;

	if (sigpending(&waiting))
		ret = -EINTR;
	for (i = 1; i < NSIG && !ret; i++)
		if (sigismember(&waiting, i) == 1 && sigismember(&own->watched, i) == 1 &&
		    !goes_on_after(i))
			ret = -EINTR;
	pthread_sigmask(SIG_SETMASK, old, NULL);
	return ret;
}

void rs_add_waiter(struct rs *rs, struct rs_waiter *waiter)
{
	waiter->thread = pthread_getspecific(key);
	waiter->next = rs->waiters;
	rs->waiters = waiter;
}

void rs_remove_waiter(struct rs *rs, struct rs_waiter *waiter)
{
	struct rs_waiter **at = &rs->waiters;

	while (*at && *at != waiter)
		at = &(*at)->next;
	if (*at)
		*at = waiter->next;
}

void rs_wake(struct rs *rs)
{
	static const uint64_t one = 1;
	struct rs_waiter *waiter;
	int state;

	if (!rs->waiters)
		return;
	state = cm_hold_cancel();
	/*
	 * If the program has closed an eventfd, the file that has taken its number must not be
	 * written to. That thread cannot be woken.
	 */
	for (waiter = rs->waiters; waiter; waiter = waiter->next)
		if (is_own(waiter->thread, &waiter->thread->wake) &&
		    write(waiter->thread->wake.fd, &one, sizeof(one)) < 0)
			continue; /* full: it is readable */
	cm_let_cancel(state);
}

int rs_poll_fds(const struct rs *rs, struct pollfd *fds)
{
	int n = 0;

	if (rs->ds)
		return ds_poll_fds(rs, fds);
	if (rs->state == RS_NEW || rs->state == RS_FAILED)
		return 0;
	/* The channel of a device that is gone is readable for ever. */
	if (rs->state == RS_CONNECTED && rs->broken)
		return 0;
	/*
	 * A channel whose event cannot be read, for want of memory, would keep every thread awake.
	 */
	fds[n++] = (struct pollfd){.fd = rs->event_waits ? -1 : rs->channel->fd, .events = POLLIN};
	if (rs->state == RS_CONNECTED)
		fds[n++] = (struct pollfd){.fd = rs->comp->fd, .events = POLLIN};
	return n;
}

static void advance_stream(struct rs *rs, const struct pollfd *fds, int n)
{
	if (n > 1 && fds[1].revents && rs->comp)
		rs_drain(rs);
	rs_poll_queue(rs);
	if (n > 0 && (fds[0].revents || rs->event_waits) && rs->state != RS_LISTENING)
		rs_progress(rs);
}

void rs_advance(struct rs *rs, const struct pollfd *fds, int n)
{
	int state = cm_hold_cancel();

	if (rs->ds)
		ds_advance(rs);
	else
		advance_stream(rs, fds, n);
	cm_let_cancel(state);
}

void rs_look_for_end(struct rs *rs)
{
	struct pollfd channel;
	int64_t now;
	int state;

	if (rs->ds || rs->state != RS_CONNECTED || rs->heard_disconnect)
		return;
	now = rs_now_us();
	if (now - rs->looked_us < LOOK_US)
		return;
	rs->looked_us = now;
	rs_keep_alive(rs);
	channel = (struct pollfd){.fd = rs->channel->fd, .events = POLLIN};
	state = cm_hold_cancel();
	if (poll(&channel, 1, 0) > 0)
		rs_progress(rs);
	cm_let_cancel(state);
}

int64_t rs_now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000) + now.tv_nsec / 1000;
}

int64_t rs_deadline(int timeout_ms)
{
	return timeout_ms < 0 ? -1 : rs_now_us() / 1000 + timeout_ms;
}

struct sleep {
	struct rs *rs;
	struct rs_waiter waiter;
	bool held; /* signals, and what the thread blocked before */
	sigset_t blocked;
};

/* Also when the thread is cancelled while it sleeps. */
static void end_sleep(void *arg)
{
	struct sleep *sleep = arg;

	if (sleep->held)
		pthread_sigmask(SIG_SETMASK, &sleep->blocked, NULL);
	pthread_mutex_lock(&sleep->rs->lock);
	rs_remove_waiter(sleep->rs, &sleep->waiter);
}

static void unlock_cancelled(void *arg)
{
	end_sleep(arg);
	pthread_mutex_unlock(&((struct sleep *)arg)->rs->lock);
}

int rs_patience(const struct rs *rs)
{
	if (rs->event_waits)
		return AGAIN_MS;
	if (rs_keeps_alive(rs)) {
		int64_t due = rs->heard_us + rs->options.keep_idle * INT64_C(1000000);

		if (!rs->heard_us)
			return (int)rs->options.keep_idle * 1000;
		return due > rs_now_us() ? (int)((due - rs_now_us()) / 1000) + 1 : 1;
	}
	return -1;
}

/* How long poll() may take, in milliseconds; -1: for ever, 0: the time is over. */
static int sleep_ms(const struct rs *rs, int64_t deadline_ms)
{
	int timeout = rs_patience(rs);

	if (deadline_ms >= 0) {
		int64_t left = deadline_ms - rs_now_us() / 1000;

		if (left <= 0)
			return 0;
		if (timeout < 0 || timeout > left)
			timeout = left > INT32_MAX ? INT32_MAX : (int)left;
	}
	return timeout;
}

int rs_sleep(struct rs *rs, int64_t deadline_ms)
{
	const volatile uint32_t life = rs->life;
	/* volatile: the clean-up handler may be reached by a jump. */
	const volatile int timeout = sleep_ms(rs, deadline_ms);
	struct sleep sleep = {.rs = rs};
	struct pollfd fds[4];
	int n, own, ret;

	if (!timeout)
		return -EAGAIN;
	own = rs_thread_fd();
	if (own < 0)
		return own;
	n = rs_poll_fds(rs, fds);
	fds[n++] = (struct pollfd){.fd = own, .events = POLLIN};
	rs_add_waiter(rs, &sleep.waiter);
	pthread_mutex_unlock(&rs->lock);
	/* A call with a time-out ends by any handler, as that of a socket does. */
	sleep.held = deadline_ms < 0 && hold_signals(&sleep.blocked, &fds[n]);
	pthread_cleanup_push(unlock_cancelled, &sleep);
	ret = poll(fds, (nfds_t)n + sleep.held, timeout);
	if (ret < 0)
		ret = -errno;
	if (sleep.held && ret > 0 && fds[n].revents) {
		/* What has come besides counts for more. */
		if (let_signals(&sleep.blocked) && ret == 1)
			ret = -EINTR;
		sleep.held = false;
	}
	pthread_cleanup_pop(0);
	end_sleep(&sleep);
	if (rs->life != life)
		return -EBADF;
	if (ret < 0)
		return ret;
	rs_keep_alive(rs);
	rs_advance(rs, fds, n - 1);
	return 0;
}

/* -EBADF: it has been closed meanwhile. */
static int spin(struct rs *rs, rs_test *test)
{
	uint32_t us = rs_config()->polling_us, life = rs->life;
	int64_t end;

	if (!us || rs->ds || rs->state != RS_CONNECTED)
		return 0;
	end = rs_now_us() + us;
	do {
		if (rs_poll_queue(rs) && test(rs))
			return 0;
		pthread_mutex_unlock(&rs->lock);
		pthread_mutex_lock(&rs->lock);
		if (rs->life != life)
			return -EBADF;
	} while (rs_now_us() < end);
	return 0;
}

int rs_wait(struct rs *rs, rs_test *test, int64_t deadline_ms)
{
	int ret;

	if (test(rs))
		return 0;
	ret = spin(rs, test);
	if (ret)
		return ret;
	while (!test(rs)) {
		rs_arm(rs);
		if (rs_poll_queue(rs) && test(rs))
			break;
		ret = rs_sleep(rs, deadline_ms);
		if (ret == -EBADF || (ret && !test(rs)))
			return ret;
	}
	return 0;
}
