// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Writes event records into the FIFOs of the instance, and tells whether one was written. Owns this
 * process's cache of their descriptors. Each descriptor is checked before it is used, because
 * programs close descriptors that they did not open. The FIFOs are opened for reading as well, so
 * that a write never raises SIGPIPE. A thread that holds the cache's lock makes system calls only.
 * The daemon, which has an end of every FIFO anyway, lends it: a further descriptor might not be
 * left.
 */
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>

#include "softhca/device/memory/life.h"
#include "softhca/device/transport/gsi.h"
#include "process.h"
#include "reach.h"

#define CACHED 64

struct pipe_fd {
	uint32_t evq, generation; /* generation 0: empty */
	int fd;
	struct sh_ident id;
};

static struct pipe_fd cache[CACHED];
/* In the daemon: its own end of each queue's FIFO. NULL elsewhere. */
static struct lent {
	uint32_t generation; /* 0: there is none */
	int fd;
} * lent;
/*
 * The lock of both: which thread holds it, by the address of its variable below, and in bit 0
 * whether another one sleeps. A thread can be thrown at any instruction (life.h), and the word says
 * whether it holds the lock then. It may have slept on after the wake-up, or been thrown before it
 * woke another one, so sleepers look now and then.
 */
static uint64_t owner;
#define SLEEPER 1
#define LOOK_MS 5
static __thread uint64_t self __attribute__((tls_model("initial-exec")));

static void futex(int op, uint32_t val, const struct timespec *limit)
{
	uint32_t *word = (uint32_t *)&owner + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);

	syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, val, limit, NULL, 0);
}

static bool exchange(uint64_t was, uint64_t is)
{
	return __atomic_compare_exchange_n(&owner, &was, is, false, __ATOMIC_ACQUIRE,
					   __ATOMIC_RELAXED);
}

/*
 * in_device: the caller is device code, so the thread arms itself again after each sleep. Other callers may be signal
 * handlers on top of device code, which must not be thrown.
 */
static void hold_as(bool in_device)
{
	const struct timespec limit = {.tv_nsec = LOOK_MS * 1000000L};
	const uint64_t me = (uintptr_t)&self;

	if (exchange(0, me))
		return;
	/* A thread that has slept cannot tell whether others sleep. */
	while (!exchange(0, me | SLEEPER)) {
		uint64_t is = __atomic_load_n(&owner, __ATOMIC_RELAXED);

		if (is && ((is & SLEEPER) || exchange(is, is | SLEEPER)))
			futex(FUTEX_WAIT, (uint32_t)(is | SLEEPER), &limit);
		if (in_device && sh_self.word)
			sh_rearm();
	}
}

static void hold(void)
{
	hold_as(false);
}

static void let_go(void)
{
	if (__atomic_exchange_n(&owner, 0, __ATOMIC_RELEASE) & SLEEPER)
		futex(FUTEX_WAKE, 1, NULL);
}

static bool is_mine(void)
{
	return (__atomic_load_n(&owner, __ATOMIC_RELAXED) & ~(uint64_t)SLEEPER) == (uintptr_t)&self;
}

void sh_event_thrown(void)
{
	if (is_mine())
		let_go();
}

static void drop(struct pipe_fd *p)
{
	if (p->generation && sh_ident_holds(p->fd, &p->id))
		sh_close(p->fd);
	p->generation = 0;
}

static void drop_all(void)
{
	for (unsigned int i = 0; i < CACHED; i++)
		drop(&cache[i]);
}

/*
 * The instance has ended, or the process has gone over to another one, whose queues have the same
 * names.
 */
void sh_event_reset(void)
{
	hold();
	drop_all();
	let_go();
}

/*
 * In a child. Another thread of the parent may have held the lock. The descriptors are good in the
 * child as well, but it may never raise an event, and has no helper thread that would close them
 * when the instance ends: a reader in the parent would not find the end of its FIFO.
 */
void sh_event_forked(void)
{
	owner = 0;
	lent = NULL;
	drop_all();
}

void sh_event_lend(uint32_t evq, uint32_t generation, int fd)
{
	hold();
	if (!lent)
		lent = sh_pages(SH_MAX_EVQ * sizeof(*lent));
	if (lent && evq < SH_MAX_EVQ)
		lent[evq] = (struct lent){generation, fd};
	let_go();
}

/* The queue has ended. Its FIFO would live on as long as a process holds it open. */
void sh_event_forget(uint32_t evq)
{
	struct pipe_fd *p = &cache[evq % CACHED];

	hold();
	if (p->evq == evq)
		drop(p);
	if (lent && evq < SH_MAX_EVQ)
		lent[evq].generation = 0;
	let_go();
}

bool sh_event_move(int fd)
{
	bool moved = false;

	/* In a handler of a signal that cannot wait */
	if (is_mine())
		return false;
	hold();
	for (unsigned int i = 0; i < CACHED && !moved; i++) {
		struct pipe_fd *p = &cache[i];
		int twin;

		if (!p->generation || p->fd != fd)
			continue;
		twin = sh_fd_twin(fd);
		if (twin < 0)
			break;
		p->fd = twin;
		sh_close(fd);
		moved = true;
	}
	let_go();
	return moved;
}

/* As long as it has to be: the stack may be small. */
#define PATH_LEN (strlen(sh_process.dir) + 40)

static const char *pipe_path(char *path, size_t len, uint32_t evq, uint32_t generation)
{
	snprintf(path, len, "%s/events/%u.%u", sh_process.dir, evq, generation);
	return path;
}

/* The descriptor of the queue's FIFO, or -errno. */
static int pipe_open(struct pipe_fd *p, uint32_t evq, uint32_t generation)
{
	char path[PATH_LEN];
	int fd;

	drop(p);
	pipe_path(path, sizeof(path), evq, generation);
	fd = sh_open_own(path, O_RDWR | O_NONBLOCK);
	if (fd < 0)
		return fd;
	if (!sh_ident_take(fd, &p->id)) {
		sh_close(fd);
		return -EBADF;
	}
	p->fd = fd;
	p->evq = evq;
	p->generation = generation;
	return fd;
}

static bool is_open(const struct pipe_fd *p, uint32_t evq, uint32_t generation)
{
	struct stat st;

	return p->generation == generation && p->evq == evq && !sh_reach_fstat(p->fd, &st) &&
	       sh_ident_is(&p->id, &st);
}

/* The same, which is open as a rule. A thread that opens it must not be thrown. */
static int pipe_get(struct pipe_fd *p, uint32_t evq, uint32_t generation)
{
	struct sh_door *door;
	int fd;

	if (lent && evq < SH_MAX_EVQ && lent[evq].generation == generation)
		return lent[evq].fd;
	if (is_open(p, evq, generation))
		return p->fd;
	/*
	 * Pairs with tell_end(). The helper thread closes what is open by then, also while the
	 * cache's lock is held.
	 */
	if (__atomic_load_n(&sh_proc(sh_process.dev, sh_process.dev->proc)->ended,
			    __ATOMIC_ACQUIRE))
		return -ENOENT;
	door = sh_pin();
	fd = pipe_open(p, evq, generation);
	sh_unpin(door);
	return fd;
}

/*
 * The time at which a FIFO was written last tells whether a record was written. The kernel stores
 * that time as part of write(), so a thread that is killed has written the record and left the
 * time, or has done neither. Before it writes, a thread sets the time to this one.
 */
#define NEVER 1 /* second of 1970 */

bool sh_event_awaited(int fd)
{
	struct stat st;

	return !sh_fstat(fd, &st) && st.st_mtim.tv_sec == NEVER;
}

bool sh_event_await(int fd)
{
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = NEVER}};

	return !sh_reach_utimens(fd, times);
}

bool sh_event_tells(int fd)
{
	char byte = 0;
	bool tells;

	if (!sh_event_await(fd) || !sh_event_awaited(fd) || sh_write(fd, &byte, 1) != 1)
		return false;
	tells = !sh_event_awaited(fd);
	return sh_read(fd, &byte, 1) == 1 && tells;
}

/* The descriptor that sh_host_event() writes to, or why it does not. */
static int begun;

/*
 * Returns 0 with the lock held, which sh_host_event() releases. A queue that has ended takes every
 * record, since no process will read it. A client that cannot reach the FIFO (it has no descriptor
 * left, or another root directory) leaves the record to the daemon, which knows whether the queue
 * lives.
 */
int sh_host_event_begin(void *host, uint32_t evq)
{
	struct sh_evq *q = sh_evq(sh_process.dev, evq);
	uint32_t generation = q ? q->generation : evq == SH_GSI_EVQ ? SH_GSI_GENERATION : 0;
	int fd = -ENOENT, err = 0;

	(void)host;
	hold_as(true);
	if (generation) {
		fd = pipe_get(&cache[evq % CACHED], evq, generation);
		if (fd < 0 && (sh_process.dev->proc || fd != -ENOENT))
			err = -EAGAIN;
	}
	if (fd >= 0 && q && q->tells && !sh_event_await(fd))
		err = -EAGAIN;
	begun = fd;
	if (err)
		let_go();
	return err;
}

int sh_host_event(void *host, uint32_t evq, const void *record, size_t len)
{
	long done = 0;

	(void)host;
	(void)evq;
	if (begun >= 0) {
		do
			done = sh_reach_write(begun, record, len);
		while (done == -EINTR);
	}
	let_go();
	/* The daemon brings what this process could not write, for whatever reason. */
	return done < 0 ? -EAGAIN : 0;
}

/* By name where it is not open: that needs no descriptor, and this process may have none left. */
bool sh_host_event_written(void *host, uint32_t evq)
{
	struct sh_evq *q = sh_evq(sh_process.dev, evq);
	struct pipe_fd *p = &cache[evq % CACHED];
	char path[PATH_LEN];
	struct stat st;
	int err;

	(void)host;
	if (!q || !q->generation)
		return false;
	hold_as(true);
	if (is_open(p, evq, q->generation))
		err = sh_reach_fstat(p->fd, &st);
	else
		err = sh_reach_stat(pipe_path(path, sizeof(path), evq, q->generation), &st);
	let_go();
	return !err && st.st_mtim.tv_sec != NEVER;
}
