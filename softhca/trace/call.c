// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Writes records (records.h). Each thread has a file of its own, so there is no lock, and a record
 * that a signal handler would write into the middle of another one is counted as lost instead.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "call.h"

#define FIRST_SIZE 65536u
#define NEXT_SIZE  1048576u

static __thread struct {
	struct trace_file *file;
	size_t size;
	unsigned int number;  /* of the next file */
	unsigned int depth;   /* verbs that this thread is in */
	unsigned int shallow; /* of those, from the outermost on, whose inner verbs are written */
	bool busy;	      /* it writes a record */
	bool failed;	      /* there is no file, and there will be none */
	const void *idle_cq;
	struct trace_record *idle;
} own;

static uint64_t *nowhere; /* TRACE_LOST */
static pthread_key_t at_exit;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* ---- files ---- */

static void drop_file(void)
{
	if (own.file)
		munmap(own.file, own.size);
	own.file = NULL;
	own.idle = NULL;
}

static void on_thread_end(void *unused)
{
	(void)unused;
	drop_file();
	own.busy = false;
}

/* The child of a fork has the thread's memory. The file stays the parent's. */
static void on_fork(void)
{
	drop_file();
	own.number = 0;
	own.depth = own.shallow = 0;
	own.busy = own.failed = false;
}

static void set_up(void)
{
	pthread_key_create(&at_exit, on_thread_end);
	pthread_atfork(NULL, NULL, on_fork);
}

/*
 * Has memory before it is used: a store to a file that cannot grow would end the program. So would
 * a file that may not be that large, by SIGXFSZ.
 */
static struct trace_file *make_file(const char *dir, size_t size)
{
	struct rlimit largest;
	char path[4096];
	void *at = MAP_FAILED;
	int fd, tid = (int)syscall(SYS_gettid);

	if (!getrlimit(RLIMIT_FSIZE, &largest) && largest.rlim_cur < size)
		return NULL;
	do {
		if (snprintf(path, sizeof(path), "%s/%d.%d.%u", dir, (int)getpid(), tid,
			     own.number++) >= (int)sizeof(path))
			return NULL;
		fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	} while (fd < 0 && errno == EEXIST); /* of an image before this one */
	if (fd < 0)
		return NULL;
	if (!posix_fallocate(fd, 0, (off_t)size))
		at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		unlink(path);
	close(fd);
	return at == MAP_FAILED ? NULL : at;
}

/* Before the program can use up its descriptors or its memory, or change its root directory. */
__attribute__((constructor)) static void map_lost(void)
{
	const char *dir = getenv(TRACE_DIRECTORY);
	void *at = MAP_FAILED;
	int err = errno, fd = -1;
	char path[4096];

	if (dir && *dir == '/' &&
	    snprintf(path, sizeof(path), "%s/" TRACE_LOST, dir) < (int)sizeof(path))
		fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd >= 0) {
		at = mmap(NULL, sizeof(*nowhere), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		close(fd);
	}
	if (at != MAP_FAILED)
		nowhere = at;
	errno = err;
}

static void lose(void)
{
	if (own.file)
		own.file->lost++;
	else if (nowhere)
		__atomic_fetch_add(nowhere, 1, __ATOMIC_RELAXED);
}

static bool next_file(void)
{
	const char *dir = getenv(TRACE_DIRECTORY);
	size_t size = own.file ? NEXT_SIZE : FIRST_SIZE;
	struct trace_file *file;
	int cancel;

	if (own.failed)
		return false;
	pthread_once(&once, set_up);
	/* No verb is a point where pthread_cancel() ends a thread. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	file = dir && *dir == '/' ? make_file(dir, size) : NULL;
	pthread_setcancelstate(cancel, NULL);
	if (!file) {
		/* The records so far stay. */
		own.failed = true;
		return false;
	}
	prctl(PR_GET_NAME, file->name);
	__atomic_store_n(&file->magic, TRACE_MAGIC, __ATOMIC_RELEASE);
	drop_file();
	own.file = file;
	own.size = size;
	pthread_setspecific(at_exit, file);
	return true;
}

/* ---- records ---- */

uint64_t call_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

bool call_inside(void)
{
	return own.busy || own.depth > own.shallow;
}

/* Room for the largest record, or NULL. The thread is busy until put(). */
static struct trace_record *take(enum trace_kind kind)
{
	struct trace_record *r;

	if (own.busy) {
		lose();
		return NULL;
	}
	own.busy = true;
	/* A handler that comes from here on does not see a half made record. */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if ((!own.file || sizeof(*own.file) + own.file->used + TRACE_LARGEST > own.size) &&
	    !next_file()) {
		lose();
		own.busy = false;
		return NULL;
	}
	r = (struct trace_record *)((char *)(own.file + 1) + own.file->used);
	memset(r, 0, sizeof(*r));
	r->kind = (uint16_t)kind;
	r->depth = (uint16_t)own.depth;
	own.idle = NULL;
	return r;
}

static void put(struct trace_record *r)
{
	r->size = (uint32_t)((sizeof(*r) + r->works * sizeof(struct trace_work) + r->text + 7) &
			     ~(size_t)7);
	/* Pairs with the command's load: it sees a whole record. */
	__atomic_store_n(&own.file->used, own.file->used + r->size, __ATOMIC_RELEASE);
	own.busy = false;
}

/* The text stands behind the room for all works while the record is made. */
static char *text_of(struct trace_record *r)
{
	return (char *)(r + 1) + TRACE_WORKS * sizeof(struct trace_work);
}

static void settle(struct trace_record *r)
{
	memmove((char *)(r + 1) + r->works * sizeof(struct trace_work), text_of(r), r->text);
}

void call_began(struct call *c, uint64_t when)
{
	if (c->on)
		c->record->when = when;
}

void call_begin(struct call *c, const char *name, bool shallow)
{
	c->saved = errno;
	c->counted = !call_inside();
	c->on = c->counted && (c->record = take(TRACE_BEGIN)) != NULL;
	if (c->counted) {
		own.depth++;
		own.shallow += shallow;
	}
	call_say(c, "%s(", name);
	errno = c->saved;
}

void call_say(struct call *c, const char *format, ...)
{
	struct trace_record *r = c->record;
	int before = errno, n;
	va_list args;

	if (!c->on || r->text >= TRACE_TEXT - 1)
		return;
	va_start(args, format);
	n = vsnprintf(text_of(r) + r->text, TRACE_TEXT - r->text, format, args);
	va_end(args);
	if (n > 0)
		r->text = (uint16_t)(r->text + n < TRACE_TEXT ? r->text + n : TRACE_TEXT - 1);
	errno = before;
}

void call_work(struct call *c, enum trace_work_kind kind, const void *context, uint32_t qpn,
	       uint64_t wr_id)
{
	if (!c->on || c->record->works == TRACE_WORKS)
		return;
	((struct trace_work *)(c->record + 1))[c->record->works++] = (struct trace_work){
		.wr_id = wr_id,
		.qpn = qpn,
		.kind = (uint16_t)kind,
		.context = (uint16_t)((uintptr_t)context >> 5),
	};
}

static void commit(struct call *c)
{
	settle(c->record);
	put(c->record);
	c->record = NULL;
}

void call_enter(struct call *c)
{
	if (c->on) {
		call_say(c, ")");
		if (!c->record->when)
			c->record->when = call_now();
		commit(c);
	}
	errno = c->saved;
}

void call_left(struct call *c, bool failed, int error)
{
	uint64_t now;

	c->saved = errno;
	if (!c->on)
		return;
	now = call_now();
	own.depth--;
	c->record = take(TRACE_END);
	own.depth++;
	c->on = c->record != NULL;
	if (c->on) {
		c->record->when = now;
		c->record->error = failed ? error : 0;
	}
	errno = c->saved;
}

void call_end(struct call *c)
{
	if (c->on)
		commit(c);
	if (c->counted) {
		own.depth--;
		if (own.shallow > own.depth)
			own.shallow = own.depth;
	}
	errno = c->saved;
}

void call_returned(struct call *c, int ret)
{
	call_left(c, ret != 0, ret < 0 ? errno : ret);
	call_say(c, "%d", ret);
}

void call_returned_errno(struct call *c, int ret)
{
	call_left(c, ret < 0, errno);
	call_say(c, "%d", ret);
}

void call_returned_object(struct call *c, const void *object)
{
	call_left(c, !object, errno);
	if (!object)
		call_say(c, "NULL");
}

void call_idle(const void *cq, uint32_t handle, int entries, uint64_t began)
{
	struct call c = {.saved = errno};

	if (!own.busy) {
		/* So that a signal handler's verbs leave the record alone. */
		own.busy = true;
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		if (own.idle && own.idle_cq == cq) {
			own.idle->until = call_now();
			__atomic_store_n(&own.idle->count, own.idle->count + 1, __ATOMIC_RELEASE);
			own.busy = false;
			return;
		}
		own.busy = false;
	}
	c.record = take(TRACE_IDLE);
	c.on = c.record != NULL;
	if (c.on) {
		struct trace_record *r = c.record;

		r->when = began;
		r->until = call_now();
		r->count = 1;
		call_say(&c, "ibv_poll_cq(cq %u, %d)", handle, entries);
		commit(&c);
		own.idle = r;
		own.idle_cq = cq;
	}
	errno = c.saved;
}

/* ---- the library's own functions ---- */

void *call_real(const char *library, const char *name, const char *version)
{
	void *handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD), *found = NULL;

	if (handle) {
		found = dlvsym(handle, name, version);
		if (!found)
			found = dlsym(handle, name);
		/* A library whose function is kept stays loaded. */
		if (!found)
			dlclose(handle);
	}
	return found;
}
