// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: rsockets connect and wait as sockets do: poll() and select(), addresses, time-outs,
 * signals, cancelled threads, children.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <rdma/rsocket.h>

#include "rsocket_pair.h"

/* FD_CLOEXEC is the descriptor's. */
static void descriptor_flags(int rs)
{
	CHECK(rfcntl(rs, F_GETFD) == FD_CLOEXEC && fcntl(rs, F_GETFD) == FD_CLOEXEC);
	CHECK(!rfcntl(rs, F_SETFD, 0));
	CHECK(rfcntl(rs, F_GETFD) == 0 && fcntl(rs, F_GETFD) == 0);
	CHECK(!rfcntl(rs, F_SETFD, FD_CLOEXEC));
	CHECK(rfcntl(rs, F_GETFD) == FD_CLOEXEC && fcntl(rs, F_GETFD) == FD_CLOEXEC);
}

static void test_connecting(void)
{
	struct sockaddr_in addr, name;
	socklen_t len = sizeof(name);
	struct pollfd fds[2];
	fd_set reads, writes;
	struct timeval timeout = {0};
	int pipes[2], rs, other, one;
	char data;

	FAILS(rsocket(AF_UNIX, SOCK_STREAM, 0), EAFNOSUPPORT);
	FAILS(rsocket(27 /* AF_IB */, SOCK_STREAM, 0), EAFNOSUPPORT);
	FAILS(rsocket(AF_INET, SOCK_STREAM, IPPROTO_UDP), EPROTONOSUPPORT);
	rs = listener(&addr);
	CHECK(get_int(rs, SOL_SOCKET, SO_ACCEPTCONN) == 1);
	CHECK(!rfcntl(rs, F_SETFL, O_NONBLOCK));
	CHECK(rfcntl(rs, F_GETFL) & O_NONBLOCK);
	descriptor_flags(rs);
	FAILS(raccept(rs, NULL, NULL), EAGAIN);
	other = rsocket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	FAILS(rsend(other, "x", 1, 0), ENOTCONN);
	FAILS(rgetpeername(other, (struct sockaddr *)&name, &len), ENOTCONN);
	FAILS(raccept(other, NULL, NULL), EINVAL);

	CHECK(!pipe(pipes));
	fds[0] = (struct pollfd){.fd = rs, .events = POLLIN};
	fds[1] = (struct pollfd){.fd = pipes[0], .events = POLLIN};
	CHECK(rpoll(fds, 2, 0) == 0);
	CHECK(rpoll(fds, 2, 10) == 0);
	FAILS(rconnect(other, (struct sockaddr *)&addr, sizeof(addr)), EINPROGRESS);
	do {
		fds[0] = (struct pollfd){.fd = rs, .events = POLLIN};
		fds[1] = (struct pollfd){.fd = other, .events = POLLOUT};
		CHECK(rpoll(fds, 2, LONG_MS) > 0);
	} while (!(fds[0].revents & POLLIN));
	one = raccept(rs, (struct sockaddr *)&name, &len);
	CHECK(one >= 0 && name.sin_family == AF_INET);
	descriptor_flags(one);
	CHECK(wait_for(other, POLLOUT) == POLLOUT);
	CHECK(get_int(other, SOL_SOCKET, SO_ERROR) == 0);
	FAILS(rconnect(other, (struct sockaddr *)&addr, sizeof(addr)), EISCONN);
	CHECK(!rgetpeername(other, (struct sockaddr *)&name, &len) &&
	      name.sin_port == addr.sin_port);

	/* rsockets beside other descriptors */
	fds[0] = (struct pollfd){.fd = one, .events = POLLIN};
	fds[1] = (struct pollfd){.fd = pipes[0], .events = POLLIN};
	CHECK(write(pipes[1], "x", 1) == 1);
	CHECK(rpoll(fds, 2, LONG_MS) == 1 && !fds[0].revents && fds[1].revents == POLLIN);
	CHECK(rsend(other, "y", 1, 0) == 1);
	CHECK(wait_for(one, POLLIN) == POLLIN);
	FD_ZERO(&reads);
	FD_ZERO(&writes);
	FD_SET(one, &reads);
	FD_SET(pipes[0], &reads);
	FD_SET(other, &reads);
	FD_SET(other, &writes);
	CHECK(rselect(FD_SETSIZE, &reads, &writes, NULL, NULL) == 3);
	CHECK(FD_ISSET(one, &reads) && FD_ISSET(pipes[0], &reads) && !FD_ISSET(other, &reads) &&
	      FD_ISSET(other, &writes));
	CHECK(rrecv(one, &data, 1, 0) == 1 && data == 'y');
	FD_ZERO(&reads);
	FD_SET(one, &reads);
	CHECK(rselect(one + 1, &reads, NULL, NULL, &timeout) == 0 && !FD_ISSET(one, &reads));
	CHECK(!rclose(other));
	CHECK(!rclose(one));
	CHECK(!rclose(rs));
	close(pipes[0]);
	close(pipes[1]);

	/* Nobody listens there any more. */
	rs = rsocket(AF_INET, SOCK_STREAM, 0);
	FAILS(rconnect(rs, (struct sockaddr *)&addr, sizeof(addr)), ECONNREFUSED);
	FAILS(rconnect(rs, (struct sockaddr *)&addr, sizeof(addr)), ECONNREFUSED);
	CHECK(!rclose(rs));
	rs = rsocket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	FAILS(rconnect(rs, (struct sockaddr *)&addr, sizeof(addr)), EINPROGRESS);
	CHECK(wait_for(rs, POLLOUT) & POLLERR);
	CHECK(get_int(rs, SOL_SOCKET, SO_ERROR) == ECONNREFUSED);
	CHECK(get_int(rs, SOL_SOCKET, SO_ERROR) == 0);
	CHECK(!rclose(rs));
}

struct
try {
	int rs;
	struct sockaddr_in to;
};

static void *connect_one(void *arg)
{
	struct try *try = arg;

	CHECK(!rconnect(try->rs, (struct sockaddr *)&try->to, sizeof(try->to)));
	return NULL;
}

/* Each try leaves from where the program has bound the rsocket. */
static void test_bound(void)
{
	struct sockaddr_in nobody, own, name;
	socklen_t len = sizeof(name);
	pthread_t thread;
	struct try try;
	int rs, one;

	CHECK(!rclose(bound(SOCK_STREAM, &nobody)));
	try.rs = bound(SOCK_STREAM, &own);
	for (int i = 0; i < 3; i++) {
		FAILS(rconnect(try.rs, (struct sockaddr *)&nobody, sizeof(nobody)), ECONNREFUSED);
		CHECK(!rgetsockname(try.rs, (struct sockaddr *)&name, &len));
		CHECK(name.sin_port == own.sin_port);
	}
	rs = listener(&try.to);
	CHECK(!pthread_create(&thread, NULL, connect_one, &try));
	one = raccept(rs, (struct sockaddr *)&name, &len);
	CHECK(one >= 0 && name.sin_port == own.sin_port);
	CHECK(!pthread_join(thread, NULL));
	CHECK(!rclose(one));
	CHECK(!rclose(try.rs));

	/* With its end the port is free. */
	try.rs = bound(SOCK_STREAM, &own);
	FAILS(rconnect(try.rs, (struct sockaddr *)&nobody, sizeof(nobody)), ECONNREFUSED);
	CHECK(!rclose(rs));
	CHECK(!rclose(try.rs));
	rs = rsocket(AF_INET, SOCK_STREAM, 0);
	CHECK(!rbind(rs, (struct sockaddr *)&own, sizeof(own)));
	CHECK(!rclose(rs));
}

static void test_timeouts(void)
{
	struct timeval time = {.tv_usec = 20000};
	char data[4096] = {0};
	int ends[2];

	pair(ends);
	CHECK(!rsetsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time)));
	CHECK(!rsetsockopt(ends[0], SOL_SOCKET, SO_SNDTIMEO, &time, sizeof(time)));
	FAILS(rrecv(ends[0], data, 1, 0), EAGAIN);
	while (rsend(ends[0], data, sizeof(data), 0) > 0)
		;
	CHECK(errno == EAGAIN);
	close_pair(ends);
}

static void interrupt(int signal)
{
	(void)signal;
}

static void *interrupted_reader(void *arg)
{
	char data;

	FAILS(rrecv(*(int *)arg, &data, 1, 0), EINTR);
	__atomic_store_n((int *)arg, -1, __ATOMIC_SEQ_CST);
	return NULL;
}

static void *cancelled_reader(void *arg)
{
	char data;

	rrecv(*(int *)arg, &data, 1, 0);
	return NULL;
}

static void receive_one(int rs)
{
	char data;

	rrecv(rs, &data, 1, 0);
}

static void poll_one(int rs)
{
	struct pollfd fd = {.fd = rs, .events = POLLIN};

	rpoll(&fd, 1, -1);
}

/* More than a call has room for on its stack */
static void poll_many(int rs)
{
	struct pollfd fds[40];

	for (int i = 0; i < 40; i++)
		fds[i] = (struct pollfd){.fd = rs, .events = POLLIN};
	rpoll(fds, 40, -1);
}

static void select_one(int rs)
{
	fd_set reads;

	FD_ZERO(&reads);
	FD_SET(rs, &reads);
	rselect(rs + 1, &reads, NULL, NULL, NULL);
}

struct cancelled {
	int rs;
	void (*call)(int rs);
};

/* Slept once before, as threads have, and then is cancelled at the first opportunity. */
static void *cancelled_at_once(void *arg)
{
	const struct cancelled *c = arg;
	struct pollfd fd = {.fd = c->rs, .events = POLLIN};

	CHECK(rpoll(&fd, 1, 1) == 0);
	/* Long enough for the call to ask for news of the connection */
	usleep(20000);
	pthread_cancel(pthread_self());
	c->call(c->rs);
	return NULL;
}

/* The program's own handlers run with the signals that the thread had blocked. */
static void blocks_nothing(void *unused)
{
	sigset_t blocked;

	(void)unused;
	CHECK(!pthread_sigmask(SIG_BLOCK, NULL, &blocked) && sigismember(&blocked, SIGUSR1) == 0 &&
	      sigismember(&blocked, SIGTERM) == 0);
}

/* What sleeps in the call when it is cancelled */
static void *cancelled_asleep(void *arg)
{
	const struct cancelled *c = arg;

	pthread_cleanup_push(blocks_nothing, NULL);
	c->call(c->rs);
	pthread_cleanup_pop(1);
	return NULL;
}

/* Whatever a thread was cancelled in, others go on with the rsocket. */
static void cancel_in(int rs, int peer, const struct sockaddr_in *to)
{
	static void (*const calls[])(int rs) = {receive_one, poll_one, poll_many, select_one};
	unsigned int i, asleep;
	pthread_t thread;
	void *result;
	char data;

	for (i = 0; i < 2 * sizeof(calls) / sizeof(calls[0]); i++) {
		struct cancelled c = {.rs = rs, .call = calls[i / 2]};

		asleep = i % 2;
		CHECK(!pthread_create(&thread, NULL, asleep ? cancelled_asleep : cancelled_at_once,
				      &c));
		if (asleep) {
			usleep(20000);
			CHECK(!pthread_cancel(thread));
		}
		CHECK(!pthread_join(thread, &result));
		CHECK(result == PTHREAD_CANCELED);
		CHECK(rsendto(peer, "x", 1, 0, (const struct sockaddr *)to, to ? sizeof(*to) : 0) ==
		      1);
		CHECK(rrecv(rs, &data, 1, 0) == 1);
	}
}

/* ASan takes for used what is on the stack of calls that a cancelled thread never returned from. */
#if defined(__SANITIZE_ADDRESS__)
#define CANCELLED_STACK 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CANCELLED_STACK 1
#endif
#endif

static void test_cancellation(void)
{
	struct sockaddr_in addr;
	int ends[2];

#ifdef CANCELLED_STACK
	return;
#endif
	/* A lock that is left behind would never be free. */
	alarm(LONG_MS / 1000);
	pair(ends);
	cancel_in(ends[0], ends[1], NULL);
	close_pair(ends);
	ends[0] = bound(SOCK_DGRAM, &addr);
	ends[1] = rsocket(AF_INET, SOCK_DGRAM, 0);
	cancel_in(ends[0], ends[1], &addr);
	close_pair(ends);
}

static void test_interruption(void)
{
	struct sigaction action = {.sa_handler = interrupt};
	int ends[2], shared;
	pthread_t thread;
	char data;

	pair(ends);
	CHECK(!sigaction(SIGUSR1, &action, NULL));
	shared = ends[0];
	CHECK(!pthread_create(&thread, NULL, interrupted_reader, &shared));
	while (__atomic_load_n(&shared, __ATOMIC_SEQ_CST) >= 0) {
		CHECK(!pthread_kill(thread, SIGUSR1));
		usleep(5000);
	}
	CHECK(!pthread_join(thread, NULL));

	CHECK(!pthread_create(&thread, NULL, cancelled_reader, &ends[0]));
	usleep(20000);
	CHECK(!pthread_cancel(thread));
	CHECK(!pthread_join(thread, NULL));
	/* It has left nothing locked. */
	CHECK(rsend(ends[1], "x", 1, 0) == 1);
	CHECK(rrecv(ends[0], &data, 1, 0) == 1);
	close_pair(ends);
}

/* ---- Other files under the number that the library has for a thread that sleeps ---- */

enum { COUNT = 7 };

static int waited_for; /* a listener that nobody connects to */
static sem_t made, done;

static void sleep_once(void)
{
	struct pollfd fd = {.fd = waited_for, .events = POLLIN};

	CHECK(!rpoll(&fd, 1, 1));
}

static int make_event(void)
{
	return eventfd(COUNT, EFD_NONBLOCK);
}

static int make_timer(void)
{
	const struct itimerspec soon = {.it_value = {.tv_nsec = 1}};
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
	struct pollfd expires = {.fd = fd, .events = POLLIN};

	CHECK(!timerfd_settime(fd, 0, &soon, NULL));
	CHECK(poll(&expires, 1, LONG_MS) == 1);
	return fd;
}

static int next_number(void)
{
	int fd = dup(0);

	CHECK(fd >= 0 && !close(fd));
	return fd;
}

static void *sleep_and_stay(void *arg)
{
	sleep_once();
	CHECK(!sem_post(&made));
	while (sem_wait(&done))
		;
	return arg;
}

/* Another thread's, of the library */
static pthread_t other;

static int make_other(void)
{
	int fd = next_number();

	CHECK(!pthread_create(&other, NULL, sleep_and_stay, NULL));
	while (sem_wait(&made))
		;
	CHECK(fcntl(fd, F_GETFD) != -1);
	return fd;
}

static void *lose_number(void *arg)
{
	int (*make)(void) = *(int (**)(void))arg;
	int fd = next_number(), got;

	sleep_once();
	CHECK(fcntl(fd, F_GETFD) != -1);
	CHECK(!syscall(SYS_close, fd));
	got = make();
	CHECK(got == fd);
	sleep_once();
	return (void *)(intptr_t)fd;
}

static void test_other_files(void)
{
	static int (*const makes[])(void) = {make_event, make_timer, make_other};
	struct sockaddr_in addr;
	uint64_t count = 0;
	pthread_t thread;
	int last, status;
	pid_t child;
	void *fd;

	waited_for = listener(&addr);
	for (unsigned int i = 0; i < sizeof(makes) / sizeof(makes[0]); i++) {
		int unused = next_number();

		CHECK(!pthread_create(&thread, NULL, lose_number, (void *)&makes[i]));
		CHECK(!pthread_join(thread, &fd));
		CHECK(fcntl((int)(intptr_t)fd, F_GETFD) != -1);
		if (makes[i] == make_other) {
			CHECK(!sem_post(&done));
			CHECK(!pthread_join(other, NULL));
		} else {
			CHECK(read((int)(intptr_t)fd, &count, sizeof(count)) == sizeof(count));
			CHECK(count == (makes[i] == make_event ? COUNT : 1));
			CHECK(!close((int)(intptr_t)fd));
		}
		/* The threads have left none of theirs. */
		CHECK(next_number() == unused);
		CHECK(fcntl(unused + 1, F_GETFD) == -1);
	}

	/* A child has its own in place of its parent's, whose number is free for it. */
	sleep_once();
	last = next_number();
	child = fork();
	CHECK(child >= 0);
	if (!child) {
		sleep_once();
		_exit(next_number() != last);
	}
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(!status);
	CHECK(!rclose(waited_for));
}

/* ---- The same while the thread sleeps, and another thread has something to wake it for ---- */

static int asleep_in, number_of_sleeper; /* atomic */

static void *sleep_with_number(void *arg)
{
	char data;

	__atomic_store_n(&number_of_sleeper, next_number(), __ATOMIC_SEQ_CST);
	if (arg)
		poll_one(asleep_in);
	else
		(void)rrecv(asleep_in, &data, 1, 0);
	return NULL;
}

static void wake_with_other_file(bool polls, bool as_event)
{
	int ends[2], fd, got;
	uint64_t count = 0;
	pthread_t thread;
	struct stat st;

	pair(ends);
	asleep_in = ends[0];
	__atomic_store_n(&number_of_sleeper, -1, __ATOMIC_SEQ_CST);
	CHECK(!pthread_create(&thread, NULL, sleep_with_number, polls ? &ends : NULL));
	do
		fd = __atomic_load_n(&number_of_sleeper, __ATOMIC_SEQ_CST);
	while (fd < 0 || fcntl(fd, F_GETFD) == -1);
	/* Most likely it sleeps by then. */
	usleep(50000);
	CHECK(!syscall(SYS_close, fd));
	got = as_event ? make_event() : fileno(tmpfile());
	CHECK(got == fd);
	CHECK(!rshutdown(ends[0], SHUT_RD));
	if (as_event) {
		CHECK(read(fd, &count, sizeof(count)) == sizeof(count));
		CHECK(count == COUNT);
	} else {
		CHECK(!fstat(fd, &st) && st.st_size == 0);
	}
	/* What it sleeps for besides */
	CHECK(rsend(ends[1], "x", 1, 0) == 1);
	CHECK(!pthread_join(thread, NULL));
	CHECK(!close(fd));
	close_pair(ends);
}

static void test_woken_number(void)
{
	alarm(LONG_MS / 1000);
	for (int i = 0; i < 4; i++)
		wake_with_other_file(i & 1, i & 2);
}

/* ---- SA_RESTART ---- */

static struct sockaddr_in restart_at; /* where the program listens, or is bound */
static int restart_rs, handled;	      /* atomic */

static void count_signal(int signal)
{
	(void)signal;
	__atomic_add_fetch(&handled, 1, __ATOMIC_SEQ_CST);
}

static long receives(void)
{
	char data;

	return rrecv(restart_rs, &data, 1, 0);
}

static long receives_all(void)
{
	char data[2];

	return rrecv(restart_rs, data, 2, MSG_WAITALL) == 2 ? 1 : -1;
}

static long sends(void)
{
	static char data[1 << 20];

	return rsend(restart_rs, data, sizeof(data), 0) == sizeof(data) ? 1 : -1;
}

static long accepts(void)
{
	int rs = raccept(restart_rs, NULL, NULL);

	return rs < 0 ? -1 : !rclose(rs);
}

static long connects(void)
{
	return rconnect(restart_rs, (struct sockaddr *)&restart_at, sizeof(restart_at)) ? -1 : 1;
}

struct restarted {
	long (*call)(void);
	long result;
	int error, done; /* atomic */
};

static void *call_it(void *arg)
{
	struct restarted *r = arg;

	r->result = r->call();
	r->error = errno;
	__atomic_store_n(&r->done, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

/* Signals come until the call has ended, or, if it is not to, until some have been handled. */
static bool ends_by_signals(struct restarted *r, pthread_t thread, bool ends)
{
	__atomic_store_n(&handled, 0, __ATOMIC_SEQ_CST);
	while (!__atomic_load_n(&r->done, __ATOMIC_SEQ_CST)) {
		int before = __atomic_load_n(&handled, __ATOMIC_SEQ_CST);

		if (!ends && before >= 5)
			break;
		CHECK(!pthread_kill(thread, SIGUSR1));
		while (__atomic_load_n(&handled, __ATOMIC_SEQ_CST) == before &&
		       !__atomic_load_n(&r->done, __ATOMIC_SEQ_CST))
			usleep(1000);
		usleep(10000);
	}
	return __atomic_load_n(&r->done, __ATOMIC_SEQ_CST);
}

static void handle(int signal, int flags)
{
	struct sigaction action = {.sa_handler = count_signal, .sa_flags = flags};

	CHECK(!sigaction(signal, &action, NULL));
}

/* The call ends with 1 when what follows has been done, and by signals alone only if it is to. */
static void interrupt_call(long (*call)(void), bool ends, void (*follows)(void))
{
	struct restarted r = {.call = call};
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, call_it, &r));
	/* Most likely it sleeps by then: else it does before the last signal. */
	usleep(20000);
	CHECK(ends_by_signals(&r, thread, ends) == ends);
	if (!ends)
		follows();
	CHECK(!pthread_join(thread, NULL));
	CHECK(ends ? r.result == -1 && r.error == EINTR : r.result == 1);
}

static int restart_peer;

static void send_two(void)
{
	CHECK(rsend(restart_peer, "xy", 2, 0) == 2);
}

static void receive_many(void)
{
	static char data[1 << 20];

	CHECK(rrecv(restart_peer, data, sizeof(data), MSG_WAITALL) == sizeof(data));
}

static void send_datagram(void)
{
	CHECK(rsendto(restart_peer, "x", 1, 0, (struct sockaddr *)&restart_at,
		      sizeof(restart_at)) == 1);
}

static void connect_and_close(void)
{
	CHECK(!rclose((int)(intptr_t)connect_there(&restart_at)));
}

static void accept_and_close(void)
{
	int one = raccept(restart_peer, NULL, NULL);

	CHECK(one >= 0 && !rclose(one));
}

static void on_a_stream(long (*call)(void), bool ends, int option, void (*follows)(void))
{
	const struct timeval long_time = {.tv_sec = LONG_MS / 1000};
	int both[2];

	pair(both);
	restart_rs = both[0];
	restart_peer = both[1];
	if (option)
		CHECK(!rsetsockopt(restart_rs, SOL_SOCKET, option, &long_time, sizeof(long_time)));
	interrupt_call(call, ends, follows);
	close_pair(both);
}

static void all_calls(bool end)
{
	on_a_stream(receives, end, 0, send_two);
	if (!end) {
		on_a_stream(receives_all, end, 0, send_two);
		on_a_stream(sends, end, 0, receive_many);
	}
	/* A time-out of the other direction does not matter. */
	on_a_stream(receives, end, SO_SNDTIMEO, send_two);
	restart_rs = listener(&restart_at);
	interrupt_call(accepts, end, connect_and_close);
	CHECK(!rclose(restart_rs));
	restart_rs = bound(SOCK_DGRAM, &restart_at);
	restart_peer = rsocket(AF_INET, SOCK_DGRAM, 0);
	interrupt_call(receives, end, send_datagram);
	CHECK(!rclose(restart_rs));
	CHECK(!rclose(restart_peer));
	/* The connection is not made before it is accepted. */
	restart_peer = listener(&restart_at);
	restart_rs = rsocket(AF_INET, SOCK_STREAM, 0);
	interrupt_call(connects, end, accept_and_close);
	CHECK(!rclose(restart_rs));
	CHECK(!rclose(restart_peer));
}

static long sends_itself(void)
{
	sigset_t blocked;
	long ret;

	CHECK(!sigaddset(memset(&blocked, 0, sizeof(blocked)), SIGUSR2));
	CHECK(!pthread_sigmask(SIG_BLOCK, &blocked, NULL) && !raise(SIGUSR2));
	ret = receives();
	/* What the thread blocks is as it was, and waits still. */
	CHECK(!pthread_sigmask(SIG_BLOCK, NULL, &blocked) && sigismember(&blocked, SIGUSR2) == 1 &&
	      sigismember(&blocked, SIGUSR1) == 0 && sigismember(&blocked, SIGTERM) == 0);
	CHECK(!sigpending(&blocked) && sigismember(&blocked, SIGUSR2) == 1);
	return ret;
}

static void *sends_once(void *arg)
{
	const pid_t tid = *(pid_t *)arg;

	until_asleep(tid);
	CHECK(!syscall(SYS_tgkill, getpid(), tid, SIGUSR1));
	return NULL;
}

/* A handler of one shot, which is gone when the call ends. */
static void once_only(void)
{
	pid_t self = gettid();
	pthread_t thread;
	int ends[2];

	handle(SIGUSR1, SA_RESETHAND);
	pair(ends);
	restart_rs = ends[0];
	CHECK(!pthread_create(&thread, NULL, sends_once, &self));
	FAILS(receives(), EINTR);
	CHECK(!pthread_join(thread, NULL));
	close_pair(ends);
}

static void test_restart(void)
{
	struct pollfd fd = {.events = POLLIN};

	alarm(2 * LONG_MS / 1000);
	handle(SIGUSR1, SA_RESTART);
	all_calls(false);
	/* As with sockets, a time-out that is set makes each signal end the call. */
	on_a_stream(receives, true, SO_RCVTIMEO, NULL);
	/* What other signals have for handlers does not matter. */
	handle(SIGUSR2, 0);
	handle(SIGSEGV, 0);
	on_a_stream(receives, false, 0, send_two);
	on_a_stream(sends_itself, false, 0, send_two);
	once_only();
	handle(SIGUSR1, 0);
	all_calls(true);
	/* poll() is never restarted. */
	handle(SIGALRM, SA_RESTART);
	fd.fd = listener(&restart_at);
	ualarm(10000, 10000);
	FAILS(rpoll(&fd, 1, LONG_MS), EINTR);
	ualarm(0, 0);
	CHECK(!rclose(fd.fd));
}

/* ---- A child that closes what it has inherited ---- */

static void still_works(int ends[2])
{
	char data[2];

	for (int i = 0; i < 2; i++) {
		CHECK(rsend(ends[i], "ab", 2, 0) == 2);
		CHECK(rrecv(ends[!i], data, 2, MSG_WAITALL) == 2 && !memcmp(data, "ab", 2));
	}
}

enum { MAPPED = 200, MAP_SIZE = 128 << 10 };

/*
 * With ibv_fork_init() a child has holes where the rsockets' memory was. What it maps there is its
 * own.
 */
static void map_holes(char *mapped[MAPPED])
{
	for (int i = 0; i < MAPPED; i++) {
		mapped[i] = mmap(NULL, MAP_SIZE, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		CHECK(mapped[i] != MAP_FAILED);
		memset(mapped[i], i, MAP_SIZE);
	}
}

static void are_whole(char *const mapped[MAPPED])
{
	for (int i = 0; i < MAPPED; i++)
		for (int at = 0; at < MAP_SIZE; at += 4096)
			CHECK(mapped[i][at] == (char)i);
}

static void test_child_closes(void)
{
	int ends[2], listening, connecting, one, datagrams[2], status;
	struct sockaddr_in addr, at;
	/* Of its own, since a child does not get the page. */
	void *more = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char data;
	pid_t child;

	alarm(LONG_MS / 1000);
	CHECK(!setenv("RDMAV_FORK_SAFE", "1", 1));
	wish.iomap = 4;
	pair(ends);
	CHECK(more != MAP_FAILED);
	CHECK(riomap(ends[0], more, 4096, PROT_WRITE, 0, -1) != -1);
	still_works(ends);
	listening = listener(&addr);
	connecting = rsocket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	FAILS(rconnect(connecting, (struct sockaddr *)&addr, sizeof(addr)), EINPROGRESS);
	datagrams[0] = bound(SOCK_DGRAM, &at);
	datagrams[1] = rsocket(AF_INET, SOCK_DGRAM, 0);
	for (int i = 0; i < 3; i++) {
		CHECK(rsendto(datagrams[1], "x", 1, 0, (struct sockaddr *)&at, sizeof(at)) == 1);
		CHECK(rrecv(datagrams[0], &data, 1, 0) == 1);
	}
	/* What has not been received yet */
	CHECK(rsend(ends[0], "ab", 2, 0) == 2);
	child = fork();
	CHECK(child >= 0);
	if (!child) {
		int all[] = {ends[0], ends[1], listening, connecting, datagrams[0], datagrams[1]};
		char *mapped[MAPPED];

		/* Quickly: nobody would take the last message. */
		alarm(LONG_MS / 1000);
		map_holes(mapped);
		for (unsigned int i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
			CHECK(!rclose(all[i]));
			CHECK(fcntl(all[i], F_GETFD) == -1 && errno == EBADF);
			FAILS(rclose(all[i]), EBADF);
		}
		are_whole(mapped);
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(!status);
	CHECK(rrecv(ends[1], &data, 1, 0) == 1 && data == 'a');
	CHECK(rrecv(ends[1], &data, 1, 0) == 1 && data == 'b');
	still_works(ends);
	pair(more);
	still_works(more);
	do {
		struct pollfd fds[2] = {{.fd = listening, .events = POLLIN},
					{.fd = connecting, .events = POLLOUT}};

		CHECK(rpoll(fds, 2, LONG_MS) > 0);
		status = fds[0].revents & POLLIN;
	} while (!status);
	one = raccept(listening, NULL, NULL);
	CHECK(one >= 0);
	CHECK(wait_for(connecting, POLLOUT) == POLLOUT);
	CHECK(rsendto(datagrams[1], "x", 1, 0, (struct sockaddr *)&at, sizeof(at)) == 1);
	CHECK(rrecv(datagrams[0], &data, 1, 0) == 1);
	close_pair(ends);
	close_pair(more);
	close_pair(datagrams);
	CHECK(!rclose(one));
	CHECK(!rclose(connecting));
	CHECK(!rclose(listening));
}

static const struct rsocket_test tests[] = {
	{"connecting", test_connecting},     {"bound", test_bound},
	{"timeouts", test_timeouts},	     {"interruption", test_interruption},
	{"cancellation", test_cancellation}, {"other_files", test_other_files},
	{"woken_number", test_woken_number}, {"restart", test_restart},
	{"child_closes", test_child_closes},
};

int main(int argc, char **argv)
{
	return run_tests(tests, sizeof(tests) / sizeof(tests[0]), argc > 1 ? argv[1] : NULL);
}
