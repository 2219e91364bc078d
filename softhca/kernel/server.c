// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The daemon's loop: hands each event to the file that serves it; ends of processes, the second's
 * tick, the lease. It serves one event at a time, so that nothing in a batch can refer to what was
 * just taken down. Nothing that it calls waits for a client.
 */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/futex.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

#include "softhca/host/process.h"
#include "conn.h"
#include "counters.h"
#include "ferry.h"
#include "files.h"
#include "kern.h"
#include "ports.h"
#include "process.h"
#include "retry.h"
#include "room.h"
#include "server.h"
#include "window.h"
#include "wire_engine.h"

#define LEASE_GRACE 10 /* seconds for the first process to take the lease */

int server_watch(struct server *s, int fd, enum source src, uint32_t value)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.u64 = (uint64_t)src << 32 | value};

	return epoll_ctl(s->k->epoll, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

uint64_t server_room_event(const struct room *room, uint32_t value)
{
	uint64_t src = SRC_ROOM;

	for (uint32_t i = 0; rooms[i] != room; i++)
		src++;
	return src << 32 | value;
}

static void room_ready(struct server *s, uint64_t index, uint32_t value)
{
	for (uint64_t i = 0; rooms[i]; i++)
		if (i == index && rooms[i]->ready)
			rooms[i]->ready(s->k, value);
}

/* ---- time and life ---- */

static void look_at_lease(struct server *s)
{
	struct kernel *k = s->k;

	if (!k->cfg.leased)
		return;
	if (flock(k->lease_fd, LOCK_EX | LOCK_NB) < 0) {
		s->leased_once = true;
		s->idle = 0;
		return;
	}
	flock(k->lease_fd, LOCK_UN);
	if ((s->leased_once || s->ticks > LEASE_GRACE) && ++s->idle >= 2)
		k->stop = true;
}

void server_tick(struct server *s)
{
	s->ticks++;
	conn_listen_again(s);
	ROOMS(spill, s->k);
	pages_rest(s->k);
	ROOMS(tick, s->k);
	wire_tick(s->k);
	counters_tick(s->k);
	look_at_lease(s);
}

static void on_tick(struct server *s)
{
	uint64_t n;

	if (read(s->tick, &n, sizeof(n)) >= 0)
		server_tick(s);
}

/*
 * Tells the loop that the daemon's attention word has changed: a futex cannot be waited for
 * together with descriptors.
 */
static void *attention_thread(void *arg)
{
	struct server *s = arg;
	uint32_t *word = &sh_proc(&s->k->dev, 0)->attention;
	uint32_t seen = __atomic_load_n(word, __ATOMIC_SEQ_CST);
	uint64_t one = 1;

	/*
	 * The main thread sets stop before it changes the word for the last time. This thread may
	 * have read the word only after that.
	 */
	while (!__atomic_load_n(&s->k->stop, __ATOMIC_SEQ_CST)) {
		syscall(SYS_futex, word, FUTEX_WAIT, seen, NULL, NULL, 0);
		if (__atomic_load_n(word, __ATOMIC_SEQ_CST) == seen)
			continue;
		seen = __atomic_load_n(word, __ATOMIC_SEQ_CST);
		if (write(s->attention, &one, sizeof(one)) < 0)
			return NULL;
	}
	return NULL;
}

static void on_attention(struct server *s)
{
	uint64_t n;

	if (read(s->attention, &n, sizeof(n)) <= 0)
		return;
	ferry_serve(s->k);
	ROOMS(spill, s->k);
}

void server_serve(struct server *s, uint64_t what)
{
	struct kernel *k = s->k;
	uint32_t value = (uint32_t)what;

	switch ((enum source)(what >> 32)) {
	case SRC_LISTEN:
		conn_accept(s);
		break;
	case SRC_CONN:
		if ((int)value < s->nconns && s->conns[value])
			conn_serve(s, s->conns[value]);
		break;
	case SRC_INOTIFY:
		files_drain(s);
		break;
	case SRC_SIGNAL:
		k->stop = true;
		break;
	case SRC_TICK:
		on_tick(s);
		break;
	case SRC_ATTENTION:
		on_attention(s);
		break;
	case SRC_PIDFD:
		files_drain(s);
		if (value < SH_MAX_PROC && k->proc[value])
			proc_dead(k, k->proc[value]);
		break;
	case SRC_WIRE:
		wire_event(k);
		break;
	case SRC_AGAIN:
		retry_all(s);
		break;
	default:
		room_ready(s, (what >> 32) - SRC_ROOM, value);
	}
	retry_begin(s);
}

/* ---- setting up ---- */

/* The path of a socket is short, so it is made through the directory's descriptor. */
static int make_socket(struct kernel *k)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd, err;

	snprintf(addr.sun_path, sizeof(addr.sun_path), "/proc/self/fd/%d/control", k->dir_fd);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 || listen(fd, 1024) < 0) {
		err = -errno;
		close(fd);
		return err;
	}
	return fd;
}

/* Through the descriptor: the directory of the instance does not have its name yet. */
static int watch_files(struct server *s)
{
	char path[64];

	for (uint32_t i = 0; rooms[i]; i++)
		for (uint32_t j = 0; j < ROOM_DIRS && rooms[i]->dirs[j].name; j++) {
			const struct room_dir *dir = &rooms[i]->dirs[j];

			snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", s->k->dir_fd,
				 dir->name);
			s->wd[i][j] = inotify_add_watch(s->inotify, path, dir->closing);
			if (s->wd[i][j] < 0)
				return -errno;
		}
	return 0;
}

int server_set_up(struct server *s)
{
	struct kernel *k = s->k;
	struct itimerspec second = {.it_interval.tv_sec = 1, .it_value.tv_sec = 1};
	sigset_t signals;
	int err;

	k->epoll = epoll_create1(EPOLL_CLOEXEC);
	s->inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	s->tick = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	s->again = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	s->attention = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGHUP);
	s->signals = signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
	if (k->epoll < 0 || s->inotify < 0 || s->tick < 0 || s->again < 0 || s->attention < 0 ||
	    s->signals < 0)
		return -errno;
	err = watch_files(s);
	if (err < 0)
		return err;
	if (timerfd_settime(s->tick, 0, &second, NULL) < 0)
		return -errno;
	s->listen_fd = make_socket(k);
	if (s->listen_fd < 0)
		return s->listen_fd;
	if (server_watch(s, s->listen_fd, SRC_LISTEN, 0) < 0 ||
	    server_watch(s, s->inotify, SRC_INOTIFY, 0) < 0 ||
	    server_watch(s, s->signals, SRC_SIGNAL, 0) < 0 ||
	    server_watch(s, s->tick, SRC_TICK, 0) < 0 ||
	    server_watch(s, s->again, SRC_AGAIN, 0) < 0 ||
	    server_watch(s, s->attention, SRC_ATTENTION, 0) < 0)
		return -errno;
	for (uint32_t i = 0; !err && rooms[i]; i++)
		if (rooms[i]->watch)
			err = rooms[i]->watch(k);
	return err;
}

void server_take_down(struct server *s)
{
	int fds[] = {s->listen_fd, s->inotify, s->signals, s->tick, s->again, s->attention};
	int i;

	for (i = 0; i < s->nconns; i++)
		if (s->conns[i])
			conn_close(s, s->conns[i]);
	free(s->conns);
	for (i = 0; i < (int)(sizeof(fds) / sizeof(fds[0])); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	if (s->k->epoll >= 0)
		close(s->k->epoll);
	s->k->epoll = -1;
}

bool server_announce(int ready_fd, const struct sh_status *st)
{
	ssize_t n;

	do
		n = write(ready_fd, st, sizeof(*st));
	while (n < 0 && errno == EINTR);
	close(ready_fd);
	return n >= 0;
}

int server_run(struct kernel *k, int ready_fd, struct sh_status *st)
{
	struct server *s = calloc(1, sizeof(*s));
	struct epoll_event ev;
	pthread_t thread;
	int err = -ENOMEM;

	if (s) {
		*s = (struct server){.k = k,
				     .listen_fd = -1,
				     .inotify = -1,
				     .signals = -1,
				     .tick = -1,
				     .again = -1,
				     .attention = -1};
		err = server_set_up(s);
	}
	if (err == 0)
		err = sh_process_helper();
	if (err == 0)
		ferry_begin(k);
	if (err == 0)
		err = kern_publish(k, st->text, sizeof(st->text));
	if (err == 0)
		err = wire_go(k, s);
	if (err == 0)
		err = -pthread_create(&thread, NULL, attention_thread, s);
	if (err) {
		if (!st->text[0])
			snprintf(st->text, sizeof(st->text),
				 "cannot make the sockets, timers and threads of the daemon: %s; "
				 "the limits are "
				 "ulimit -n, -u, -d and -v, and sysctl fs.inotify",
				 strerror(-err));
		ferry_end(k);
		if (s)
			server_take_down(s);
		free(s);
		return err;
	}
	/* Programs that start then find the wire ready. */
	while (k->wire.pid && !k->wire.ready && !k->stop)
		if (epoll_wait(k->epoll, &ev, 1, -1) == 1)
			server_serve(s, ev.data.u64);
	if (k->wire.lost) {
		err = -ECHILD;
		snprintf(st->text, sizeof(st->text),
			 "the wire's process ended before it was ready; the limits are ulimit -n, "
			 "ulimit -u and ulimit -v, and dmesg says whether the kernel killed it");
	} else if (!server_announce(ready_fd, st)) {
		/*
		 * The process that has started the instance was killed before it heard of it, so no
		 * user knows that there is one to stop.
		 */
		k->stop = true;
	}
	while (!k->stop)
		if (epoll_wait(k->epoll, &ev, 1, -1) == 1)
			server_serve(s, ev.data.u64);
	ferry_end(k);
	ports_end(k);
	wire_leave(k);
	__atomic_add_fetch(&sh_proc(&k->dev, 0)->attention, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &sh_proc(&k->dev, 0)->attention, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
	pthread_join(thread, NULL);
	server_take_down(s);
	free(s);
	return err;
}
