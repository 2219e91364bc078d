// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The daemon's loop: control connections, what inotify says about files and event queues, ends of
 * processes, the lease. It serves one event at a time, so that nothing in a batch can refer to what
 * was just taken down. It looks at the files before every message, which keeps the order that a
 * kernel would have seen. Nothing here waits for a client. A send that would block ends the
 * connection. A request that finds a client's thread in its way is kept and tried again, while
 * other clients are served. Its client waits for the answer, and sends nothing else meanwhile.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
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
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "softhca/host/process.h"
#include "softhca/host/sys.h"
#include "softhca/device/memory/exec.h"
#include "softhca/kernel/uverbs/command.h"
#include "softhca/kernel/uverbs/context.h"
#include "softhca/kernel/uverbs/evq.h"
#include "softhca/kernel/uverbs/queue.h"
#include "softhca/kernel/uverbs/region.h"
#include "faults.h"
#include "kern.h"
#include "ports.h"
#include "process.h"
#include "server.h"
#include "show.h"

#define LEASE_GRACE	10	/* seconds for the first process to take the lease */
/*
 * How long threads may be in the way of a request; and how long if they run, since they may be
 * copying much.
 */
#define PATIENCE_NS	UINT64_C(2000000000)
#define PATIENCE_RUN_NS	UINT64_C(10000000000)
/* Until a request is tried again; each nap is twice the one before, up to LAST_NAP_NS. */
#define FIRST_NAP_NS	UINT64_C(50000)
#define LAST_NAP_NS	UINT64_C(10000000)
/* A thread that has been in the way for so long may be stopped. */
#define SUSPECT_NAP_NS	UINT64_C(1500000)
/* The longest nap if no client waits. */
#define IDLE_NAP_NS	UINT64_C(1000000000)
#define KEPT_MAX	128			/* bytes of a request that is tried again */

enum source { SRC_LISTEN, SRC_EVQ, SRC_CONN, SRC_INOTIFY, SRC_SIGNAL, SRC_TICK, SRC_ATTENTION, SRC_PIDFD,
	      SRC_AGAIN };

struct conn {
	int fd;
	bool greeted;
	uint32_t host;
	pid_t pid;
	struct kproc *proc;		/* NULL: the command */
	/*
	 * A request that was tried in vain, its length (0: there is none), and when it came: by the
	 * clock, and for sh_grace_over().
	 */
	uint64_t kept[KEPT_MAX / 8];
	size_t kept_len;
	uint64_t since, moment;
	struct conn *prev, *next;	/* among connections that have such a request */
};

struct server {
	struct kernel *k;
	struct conn **conns;		/* by descriptor */
	int nconns;
	int listen_fd, inotify, signals, tick, attention;
	int again;			/* a timer, for what was not possible yet */
	uint64_t nap;			/* what it is set to; 0: it is not set */
	uint64_t suspect;		/* a moment for sh_grace_suspect(); 0: none yet */
	struct conn *kept;
	int files_wd, events_wd;
	unsigned int ticks, idle;
	bool leased_once;
	/* No descriptor was left for another connection: new ones wait. */
	bool deaf;
	uint64_t message[SH_MSG_MAX / 8];
};

static int watch(struct server *s, int fd, enum source src, uint32_t value)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.u64 = (uint64_t)src << 32 | value};

	return epoll_ctl(s->k->epoll, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

/* ---- files and event queues ---- */

static void file_event(struct server *s, const struct inotify_event *e)
{
	struct kernel *k = s->k;
	unsigned int index, generation;
	struct kctx *ctx;
	char kind;

	if (e->wd == s->events_wd) {
		if (sscanf(e->name, "%u.%u", &index, &generation) == 2)
			evq_client_closed(k, index, generation);
		return;
	}
	if (sscanf(e->name, "%c%u.%u", &kind, &index, &generation) != 3)
		return;
	ctx = ctx_get(k, index);
	if (!ctx || ctx->generation != generation)
		return;
	if (kind == 'c')
		ctx_release(ctx);
	else if (kind == 'l')
		ctx_gone(ctx);
}

static void drain_files(struct server *s)
{
	char buf[16384] __attribute__((aligned(8)));
	const struct inotify_event *e;
	ssize_t n, at;

	while ((n = read(s->inotify, buf, sizeof(buf))) > 0)
		for (at = 0; at < n; at += sizeof(*e) + e->len) {
			e = (const struct inotify_event *)(buf + at);
			if (e->len)
				file_event(s, e);
		}
}

/* ---- connections ---- */

/*
 * A descriptor may be free again. Every tick tries this, too, since not only connections use
 * descriptors.
 */
static void listen_again(struct server *s)
{
	if (s->deaf && watch(s, s->listen_fd, SRC_LISTEN, 0) == 0)
		s->deaf = false;
}

static void forget_request(struct server *s, struct conn *c)
{
	if (c->kept_len)
		DL_DELETE(s->kept, c);
	c->kept_len = 0;
}

static void conn_close(struct server *s, struct conn *c)
{
	forget_request(s, c);
	s->conns[c->fd] = NULL;
	close(c->fd);
	listen_again(s);
	if (c->proc)
		proc_detach(s->k, c->proc);
	free(c);
}

static void conn_accept(struct server *s)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);
	struct conn *c, **grown;
	int fd;

	fd = accept4(s->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd < 0) {
		/*
		 * The connection stays in the socket's queue, where the loop would see it for ever.
		 */
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
			s->deaf = epoll_ctl(s->k->epoll, EPOLL_CTL_DEL, s->listen_fd, NULL) == 0;
		return;
	}
	if (fd >= s->nconns) {
		grown = realloc(s->conns, (fd + 64) * sizeof(*grown));
		if (!grown) {
			close(fd);
			return;
		}
		memset(grown + s->nconns, 0, (fd + 64 - s->nconns) * sizeof(*grown));
		s->conns = grown;
		s->nconns = fd + 64;
	}
	c = calloc(1, sizeof(*c));
	if (!c || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0 ||
	    (cred.uid != geteuid() && cred.uid != 0) || watch(s, fd, SRC_CONN, fd) < 0) {
		free(c);
		close(fd);
		return;
	}
	c->fd = fd;
	c->pid = cred.pid;
	s->conns[fd] = c;
}

/*
 * Sends a reply. -EPIPE: it does not go out at once, so the client does not follow the protocol, or
 * has ended.
 */
static int reply(struct conn *c, const void *data, size_t len, const int *fds, unsigned int nfds)
{
	union {
		struct cmsghdr hdr;
		char buf[CMSG_SPACE(2 * sizeof(int))];
	} control = {0};
	struct iovec iov = {.iov_base = (void *)data, .iov_len = len};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t n;

	if (nfds) {
		msg.msg_control = control.buf;
		msg.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
		control.hdr.cmsg_level = SOL_SOCKET;
		control.hdr.cmsg_type = SCM_RIGHTS;
		control.hdr.cmsg_len = CMSG_LEN(nfds * sizeof(int));
		memcpy(CMSG_DATA(&control.hdr), fds, nfds * sizeof(int));
	}
	n = sendmsg(c->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	return n == (ssize_t)len ? 0 : -EPIPE;
}

static int do_hello(struct server *s, struct conn *c, const struct sh_hello *m, size_t len)
{
	struct kernel *k = s->k;
	struct sh_hello_reply r = {.size = k->mem_size, .hosts = k->cfg.device.hosts};
	struct user user = {.pid = c->pid, .witness = m->witness};
	char byte;
	int err;

	if (len != sizeof(*m) || c->greeted)
		return -EPROTO;
	if (m->version != SH_WIRE_VERSION) {
		r.error = EPROTO;
	} else if (m->host >= k->cfg.device.hosts) {
		r.error = EINVAL;
	} else if (m->client) {
		if (k->user->read(k->user_arg, &user, m->witness, &byte, 1) < 0) {
			r.error = EPERM;
		} else {
			err = proc_attach(k, c->pid, m->host, m->again, m->witness, &c->proc);
			r.error = -err;
		}
	}
	if (r.error)
		return reply(c, &r, sizeof(r), NULL, 0);
	c->greeted = true;
	c->host = m->host;
	if (!c->proc)
		return reply(c, &r, sizeof(r), NULL, 0);
	r.proc = c->proc->slot;
	if (c->proc->pidfd >= 0)
		(void)watch(s, c->proc->pidfd, SRC_PIDFD, c->proc->slot);
	return reply(c, &r, sizeof(r), &k->memfd, 1);
}

static int do_open(struct server *s, struct conn *c, const struct sh_open *m, size_t len)
{
	struct sh_open_reply r = {0};
	struct kctx *ctx;
	int err;

	if (len != sizeof(*m) || !c->proc)
		return -EPROTO;
	err = ctx_open(s->k, c->proc, m->device, &ctx);
	r.error = -err;
	if (err == 0) {
		r.ctx = ctx->index;
		r.generation = ctx->generation;
	}
	return reply(c, &r, sizeof(r), NULL, 0);
}

static int status(struct conn *c, int err)
{
	struct sh_status st = {.error = -err};

	return reply(c, &st, sizeof(st), NULL, 0);
}

static int do_opened(struct server *s, struct conn *c, const struct sh_opened *m, size_t len)
{
	if (len != sizeof(*m) || !c->proc)
		return -EPROTO;
	return status(c, ctx_opened(s->k, c->proc, m->ctx));
}

static int do_kick(struct server *s, struct conn *c, const struct sh_kick *m, size_t len)
{
	struct kctx *ctx;

	if (len != sizeof(*m) || !c->proc)
		return -EPROTO;
	ctx = ctx_get(s->k, m->ctx);
	if (!ctx || ctx->generation != m->generation || ctx->host != c->host)
		return status(c, -ENODEV);
	return status(c, ctx_kick(ctx));
}

/*
 * Here and below, -EINPROGRESS means that a client is in the way and that there is no reply. Never
 * if late.
 */
static int do_command(struct server *s, struct conn *c, const struct sh_command *m, size_t len, bool late)
{
	const struct sh_pin_result *pin = (const void *)(m + 1);
	struct sh_command_reply r = {0};
	struct call call = {
		.k = s->k, .proc = c->proc, .tid = m->tid, .cap_ipc_lock = m->cap_ipc_lock,
		.memlock_limit = m->memlock_limit, .r = &r, .late = late,
	};
	int err;

	if (!c->proc || (len != sizeof(*m) && len != sizeof(*m) + sizeof(*pin)))
		return -EPROTO;
	if (len != sizeof(*m)) {
		call.pinned = pin->done;
		call.pin_error = pin->error > 0 ? -pin->error : 0;
		call.share = pin->share;
		call.have_off = pin->have_off;
	}
	call.ctx = ctx_get(s->k, m->ctx);
	if (!call.ctx || call.ctx->host != c->host)
		r.error = ENODEV;
	else if (!command_run(&call, m->addr, m->len))
		return -EINPROGRESS;
	err = reply(c, &r, sizeof(r), call.fds, r.nfds);
	while (r.nfds)
		close(call.fds[--r.nfds]);
	return err;
}

/* The answer to a request that would have to be tried again, but is late, is EBUSY. */
static int status_late(struct conn *c, int err, bool late)
{
	if (err == -EINPROGRESS && !late)
		return err;
	return status(c, err == -EINPROGRESS ? -EBUSY : err);
}

static int do_map_failed(struct server *s, struct conn *c, const struct sh_map_failed *m, size_t len, bool late)
{
	struct kctx *ctx;

	if (len != sizeof(*m) || !c->proc)
		return -EPROTO;
	ctx = ctx_get(s->k, m->ctx);
	return status_late(c, ctx && ctx->proc == c->proc ? map_failed(ctx, m->uaddr, m->len) : -EINVAL, late);
}

static int do_changed(struct server *s, struct conn *c, const struct sh_changed_msg *m, size_t len, bool late)
{
	if (len != sizeof(*m) || !c->proc)
		return -EPROTO;
	return status_late(c, region_changed(s->k, c->proc, m->what, m->uaddr, m->len, late), late);
}

static int do_show(struct server *s, struct conn *c, size_t len)
{
	struct sh_status st = {0};
	int fd, err;

	if (len != sizeof(struct sh_show))
		return -EPROTO;
	fd = show_make(s->k);
	if (fd < 0)
		return status(c, fd);
	err = reply(c, &st, sizeof(st), &fd, 1);
	close(fd);
	return err;
}

static int do_port(struct server *s, struct conn *c, const struct sh_port_msg *m, size_t len, bool late)
{
	struct sh_status st;

	if (len != sizeof(*m))
		return -EPROTO;
	if (!port_change(s->k, m, late, &st))
		return -EINPROGRESS;
	return reply(c, &st, sizeof(st), NULL, 0);
}

static int do_fault(struct server *s, struct conn *c, const struct sh_fault_msg *m, size_t len)
{
	struct sh_status st;

	if (len != sizeof(*m))
		return -EPROTO;
	fault_set(s->k, m, &st);
	return reply(c, &st, sizeof(st), NULL, 0);
}

static int do_stop(struct server *s, struct conn *c, size_t len)
{
	if (len != sizeof(struct sh_stop))
		return -EPROTO;
	s->k->stop = true;
	return status(c, 0);
}

static int dispatch(struct server *s, struct conn *c, const void *m, size_t len, bool late)
{
	uint32_t type;

	if (len < sizeof(type))
		return -EPROTO;
	type = *(const uint32_t *)m;
	if (type == SH_MSG_HELLO)
		return do_hello(s, c, m, len);
	if (!c->greeted)
		return -EPROTO;
	switch (type) {
	case SH_MSG_OPEN:
		return do_open(s, c, m, len);
	case SH_MSG_OPENED:
		return do_opened(s, c, m, len);
	case SH_MSG_KICK:
		return do_kick(s, c, m, len);
	case SH_MSG_COMMAND:
		return do_command(s, c, m, len, late);
	case SH_MSG_MAP_FAILED:
		return do_map_failed(s, c, m, len, late);
	case SH_MSG_CHANGED:
		return do_changed(s, c, m, len, late);
	case SH_MSG_SHOW:
		return do_show(s, c, len);
	case SH_MSG_PORT:
		return do_port(s, c, m, len, late);
	case SH_MSG_FAULT:
		return do_fault(s, c, m, len);
	case SH_MSG_STOP:
		return do_stop(s, c, len);
	}
	return -EPROTO;
}

/* ---- requests that are tried again ---- */

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static bool unfinished(const struct kernel *k)
{
	return k->graced || k->locked || k->releasing || k->loud || k->spill_again;
}

/* Sets the timer, if there is something to come back to. */
static void nap(struct server *s, uint64_t ns)
{
	struct itimerspec t = {0};
	uint64_t longest = s->kept ? LAST_NAP_NS : IDLE_NAP_NS;

	if (!s->kept && !unfinished(s->k))
		ns = 0;
	else if (ns > longest)
		ns = longest;
	if (ns == s->nap && !ns)
		return;
	s->nap = ns;
	t.it_value.tv_sec = (time_t)(ns / 1000000000);
	t.it_value.tv_nsec = (long)(ns % 1000000000);
	(void)timerfd_settime(s->again, 0, &t, NULL);
}

/* There is something new to come back to, soon. */
static void nap_anew(struct server *s)
{
	if (!s->nap || s->nap > FIRST_NAP_NS)
		nap(s, FIRST_NAP_NS);
}

static int keep_request(struct server *s, struct conn *c, size_t len)
{
	if (len > sizeof(c->kept))
		return -EPROTO;
	memcpy(c->kept, s->message, len);
	c->kept_len = len;
	c->since = now_ns();
	c->moment = sh_grace_begin(&s->k->dev);
	DL_APPEND(s->kept, c);
	nap_anew(s);
	return 0;
}

static bool is_late(struct kernel *k, const struct conn *c)
{
	uint64_t waited = now_ns() - c->since;

	return waited >= PATIENCE_RUN_NS || (waited >= PATIENCE_NS && !one_runs(k, c->moment));
}

/* Before another try after a long nap. A thread that the last such look found, and this one does, has not moved on since. */
static void suspect(struct server *s)
{
	if (s->nap < SUSPECT_NAP_NS) {
		s->suspect = 0;
		return;
	}
	if (s->suspect)
		sh_grace_suspect(&s->k->dev, s->suspect);
	s->suspect = sh_grace_begin(&s->k->dev);
}

static void on_again(struct server *s)
{
	struct conn *c, *tmp;
	uint64_t n;

	if (read(s->again, &n, sizeof(n)) < 0)
		return;
	suspect(s);
	drain_files(s);
	DL_FOREACH_SAFE(s->kept, c, tmp) {
		int err = dispatch(s, c, c->kept, c->kept_len, is_late(s->k, c));

		if (err == -EINPROGRESS)
			continue;
		forget_request(s, c);
		if (err < 0)
			conn_close(s, c);
	}
	if (s->k->releasing + s->k->loud)
		ctx_retry(s->k);
	aside_sweep(s->k);
	if (s->k->spill_again)
		evq_spill(s->k);
	nap(s, s->nap ? s->nap * 2 : FIRST_NAP_NS);
}

static void conn_serve(struct server *s, struct conn *c)
{
	ssize_t n;
	int err;

	n = recv(c->fd, s->message, sizeof(s->message), MSG_DONTWAIT | MSG_TRUNC);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	drain_files(s);
	/* The client has ended, or asks before it has its answer. */
	if (n <= 0 || n > (ssize_t)sizeof(s->message) || c->kept_len) {
		conn_close(s, c);
		return;
	}
	err = dispatch(s, c, s->message, n, false);
	if (err == -EINPROGRESS)
		err = keep_request(s, c, n);
	if (err < 0)
		conn_close(s, c);
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

static void on_tick(struct server *s)
{
	uint64_t n;

	if (read(s->tick, &n, sizeof(n)) < 0)
		return;
	s->ticks++;
	listen_again(s);
	evq_spill(s->k);
	look_at_lease(s);
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

	if (read(s->attention, &n, sizeof(n)) > 0)
		evq_spill(s->k);
}

static void serve(struct server *s, uint64_t what)
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
	case SRC_EVQ:
		if (value < SH_MAX_EVQ && k->evq[value])
			evq_room(k, k->evq[value]);
		break;
	case SRC_INOTIFY:
		drain_files(s);
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
		drain_files(s);
		if (value < SH_MAX_PROC && k->proc[value])
			proc_dead(k, k->proc[value]);
		break;
	case SRC_AGAIN:
		on_again(s);
		break;
	}
	if (!s->nap && unfinished(k))
		nap_anew(s);
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

static int set_up(struct server *s)
{
	struct kernel *k = s->k;
	struct itimerspec second = {.it_interval.tv_sec = 1, .it_value.tv_sec = 1};
	char path[64];
	sigset_t signals;

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
	if (k->epoll < 0 || s->inotify < 0 || s->tick < 0 || s->again < 0 || s->attention < 0 || s->signals < 0)
		return -errno;
	/* Through the descriptor: the directory does not have its name yet. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d/files", k->dir_fd);
	s->files_wd = inotify_add_watch(s->inotify, path, IN_CLOSE_WRITE);
	snprintf(path, sizeof(path), "/proc/self/fd/%d/events", k->dir_fd);
	s->events_wd = inotify_add_watch(s->inotify, path, IN_CLOSE_NOWRITE);
	if (s->files_wd < 0 || s->events_wd < 0 || timerfd_settime(s->tick, 0, &second, NULL) < 0)
		return -errno;
	s->listen_fd = make_socket(k);
	if (s->listen_fd < 0)
		return s->listen_fd;
	if (watch(s, s->listen_fd, SRC_LISTEN, 0) < 0 || watch(s, s->inotify, SRC_INOTIFY, 0) < 0 ||
	    watch(s, s->signals, SRC_SIGNAL, 0) < 0 || watch(s, s->tick, SRC_TICK, 0) < 0 ||
	    watch(s, s->again, SRC_AGAIN, 0) < 0 || watch(s, s->attention, SRC_ATTENTION, 0) < 0)
		return -errno;
	return 0;
}

static void take_down(struct server *s)
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

static void announce(int ready_fd, const struct sh_status *st)
{
	ssize_t n;

	do
		n = write(ready_fd, st, sizeof(*st));
	while (n < 0 && errno == EINTR);
	close(ready_fd);
}

int server_run(struct kernel *k, int ready_fd, struct sh_status *st)
{
	struct server *s = calloc(1, sizeof(*s));
	struct epoll_event ev;
	pthread_t thread;
	int err = -ENOMEM;

	if (s) {
		*s = (struct server){.k = k, .listen_fd = -1, .inotify = -1, .signals = -1, .tick = -1, .again = -1,
				      .attention = -1};
		err = set_up(s);
	}
	if (err == 0)
		err = sh_process_helper();
	if (err == 0)
		err = kern_publish(k, st->text, sizeof(st->text));
	if (err == 0)
		err = -pthread_create(&thread, NULL, attention_thread, s);
	if (err) {
		if (!st->text[0])
			snprintf(st->text, sizeof(st->text), "cannot make the sockets, timers and threads of the daemon: %s; the limits are "
				 "ulimit -n, ulimit -u and sysctl fs.inotify", strerror(-err));
		if (s)
			take_down(s);
		free(s);
		return err;
	}
	announce(ready_fd, st);
	while (!k->stop)
		if (epoll_wait(k->epoll, &ev, 1, -1) == 1)
			serve(s, ev.data.u64);
	ports_end(k);
	__atomic_add_fetch(&sh_proc(&k->dev, 0)->attention, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &sh_proc(&k->dev, 0)->attention, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
	pthread_join(thread, NULL);
	take_down(s);
	free(s);
	return 0;
}

/* ---- the process ---- */

/* All from first on but keep. Linux before 5.9 has no call for it. */
static void close_from(int first, int keep)
{
	struct dirent *entry;
	DIR *dir;
	int fd;

	if ((keep <= first || sh_sys(syscall(SYS_close_range, first, keep - 1, 0)) == 0) &&
	    sh_sys(syscall(SYS_close_range, keep < first ? first : keep + 1, ~0u, 0)) == 0)
		return;
	dir = opendir("/proc/self/fd");
	while (dir && (entry = readdir(dir))) {
		fd = atoi(entry->d_name);
		if (fd >= first && fd != keep && fd != dirfd(dir))
			close(fd);
	}
	if (dir)
		closedir(dir);
}

static void become_daemon(int keep)
{
	struct rlimit files;
	sigset_t all;

	setsid();
	(void)chdir("/");
	umask(022);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	close_from(3, keep);
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &files);
	}
}

int sh_kernel_main(const struct sh_kernel_config *cfg, int ready_fd)
{
	struct sh_status st = {0};
	struct kernel *k;
	int err;

	become_daemon(ready_fd);
	fcntl(ready_fd, F_SETFD, FD_CLOEXEC);
	k = calloc(1, sizeof(*k));
	err = k ? kern_init(k, cfg, st.text, sizeof(st.text)) : -ENOMEM;
	if (!err) {
		err = server_run(k, ready_fd, &st);
		kern_exit(k);
	}
	free(k);
	/* Last: when the command hears of a failure, nothing is left. */
	if (err < 0) {
		st.error = -err;
		announce(ready_fd, &st);
	}
	return err < 0;
}
