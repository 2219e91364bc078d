// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Reads the files of traced threads (trace/records.h) where they are mapped, while they are
 * written. Anything may be in them, since traced programs can write there: what does not fit ends a
 * file.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace.h"

#define DEPTH 16 /* verbs within verbs */

struct file {
	unsigned int thread, number;
	struct trace_file *at;
	size_t size, done; /* bytes of records that were read */
};

/* The events' own view of a thread. */
struct state {
	const struct trace_record *open[DEPTH]; /* verbs that have not returned */
	unsigned int depth;
	const struct trace_record *idle; /* its last record, which may change */
};

struct trace_reader {
	char *dir;
	struct file *files;
	struct trace_thread *threads;
	struct state *states; /* of threads */
	struct trace_event *events;
	size_t nfiles, nthreads, nevents;
	bool failed; /* memory has run out */
	uint64_t missed;
	uint64_t *lost; /* TRACE_LOST */
};

/* NULL and errno. */
static uint64_t *make_lost(const char *dir)
{
	void *at = MAP_FAILED;
	char path[4096];
	int fd, err;

	snprintf(path, sizeof(path), "%s/" TRACE_LOST, dir);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return NULL;
	err = posix_fallocate(fd, 0, sizeof(uint64_t));
	if (!err) {
		at = mmap(NULL, sizeof(uint64_t), PROT_READ, MAP_SHARED, fd, 0);
		err = errno;
	}
	close(fd);
	errno = err;
	return at == MAP_FAILED ? NULL : at;
}

struct trace_reader *trace_reader_new(const char *dir)
{
	struct trace_reader *r = calloc(1, sizeof(*r));
	int err;

	if (r && (r->dir = strdup(dir)) && (r->lost = make_lost(dir)))
		return r;
	err = errno;
	trace_reader_free(r);
	errno = err;
	return NULL;
}

void trace_reader_free(struct trace_reader *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->nfiles; i++)
		munmap(r->files[i].at, r->files[i].size);
	if (r->lost)
		munmap(r->lost, sizeof(*r->lost));
	free(r->files);
	free(r->threads);
	free(r->states);
	free(r->events);
	free(r->dir);
	free(r);
}

/* Room for one more in an array of n, which doubles when n is a power of two. False: no memory. */
static bool room(void **array, size_t n, size_t size)
{
	void *grown;

	if (n & (n - 1))
		return true;
	grown = reallocarray(*array, n ? n * 2 : 1, size);
	if (grown)
		*array = grown;
	return grown;
}
#define ROOM(r, array, n)                                                                          \
	(room((void **)&(r)->array, n, sizeof(*(r)->array)) || ((r)->failed = true, false))

/* ---- files ---- */

static bool known(const struct trace_reader *r, int pid, int tid, unsigned int number)
{
	for (size_t i = 0; i < r->nfiles; i++) {
		const struct trace_thread *t = &r->threads[r->files[i].thread];

		if (r->files[i].number == number && t->tid == tid && t->pid == pid)
			return true;
	}
	return false;
}

/* The thread's index, or -1. */
static long thread_of(struct trace_reader *r, int pid, int tid, const char name[16])
{
	struct trace_thread *t;

	for (size_t i = 0; i < r->nthreads; i++)
		if (r->threads[i].pid == pid && r->threads[i].tid == tid) {
			memcpy(r->threads[i].name, name, 16);
			return (long)i;
		}
	if (!ROOM(r, threads, r->nthreads) || !ROOM(r, states, r->nthreads))
		return -1;
	t = &r->threads[r->nthreads];
	*t = (struct trace_thread){.pid = pid, .tid = tid};
	memcpy(t->name, name, 16);
	memset(&r->states[r->nthreads], 0, sizeof(r->states[0]));
	return (long)r->nthreads++;
}

static void open_file(struct trace_reader *r, const char *name)
{
	struct trace_file *at = MAP_FAILED;
	struct file *f;
	char path[4096];
	int pid, tid, fd;
	unsigned int number;
	struct stat st;
	long thread;

	if (sscanf(name, "%d.%d.%u", &pid, &tid, &number) != 3 || known(r, pid, tid, number))
		return;
	snprintf(path, sizeof(path), "%s/%s", r->dir, name);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size > (off_t)sizeof(*at))
		at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (at == MAP_FAILED)
		return;
	/* Its maker says last that it is one. The next look may find it so. */
	if (__atomic_load_n(&at->magic, __ATOMIC_ACQUIRE) != TRACE_MAGIC ||
	    !ROOM(r, files, r->nfiles) || (thread = thread_of(r, pid, tid, at->name)) < 0) {
		munmap(at, (size_t)st.st_size);
		return;
	}
	f = &r->files[r->nfiles++];
	*f = (struct file){(unsigned int)thread, number, at, (size_t)st.st_size, 0};
}

static int by_number(const void *a, const void *b)
{
	const struct file *one = a, *other = b;

	if (one->thread != other->thread)
		return one->thread < other->thread ? -1 : 1;
	return one->number < other->number ? -1 : one->number > other->number;
}

static void look_for_files(struct trace_reader *r)
{
	size_t before = r->nfiles;
	DIR *dir = opendir(r->dir);
	const struct dirent *e;

	while (dir && (e = readdir(dir)))
		open_file(r, e->d_name);
	if (dir)
		closedir(dir);
	if (r->nfiles != before)
		qsort(r->files, r->nfiles, sizeof(*r->files), by_number);
}

/* ---- records ---- */

static void add(struct trace_reader *r, unsigned int thread, const struct trace_record *begin,
		const struct trace_record *end)
{
	if (!ROOM(r, events, r->nevents)) {
		r->missed++;
		return;
	}
	r->events[r->nevents++] =
		(struct trace_event){begin, end, r->threads[thread].pid, r->threads[thread].tid};
}

/* Verbs that were left behind without a return, down to this depth. */
static void abandon(struct trace_reader *r, unsigned int thread, unsigned int depth)
{
	struct state *s = &r->states[thread];

	while (s->depth > depth)
		add(r, thread, s->open[--s->depth], NULL);
}

static void take(struct trace_reader *r, unsigned int thread, const struct trace_record *record)
{
	struct state *s = &r->states[thread];

	if (s->idle)
		add(r, thread, s->idle, NULL);
	s->idle = NULL;
	switch (record->kind) {
	case TRACE_BEGIN:
		abandon(r, thread, record->depth);
		if (s->depth < DEPTH)
			s->open[s->depth++] = record;
		break;
	case TRACE_END:
		abandon(r, thread, record->depth + 1u);
		if (s->depth && s->open[s->depth - 1]->depth == record->depth)
			add(r, thread, s->open[--s->depth], record);
		break;
	case TRACE_IDLE:
		s->idle = record;
		break;
	default:
		r->missed++;
	}
}

static bool fits(const struct trace_record *record, size_t left)
{
	return left >= sizeof(*record) && record->size <= left && record->size % 8 == 0 &&
	       record->works <= TRACE_WORKS &&
	       sizeof(*record) + record->works * sizeof(struct trace_work) + record->text <=
		       record->size;
}

static void read_file(struct trace_reader *r, struct file *f)
{
	/* Pairs with the store of the thread, whose record is whole then. */
	uint64_t used = __atomic_load_n(&f->at->used, __ATOMIC_ACQUIRE);

	if (used > f->size - sizeof(*f->at))
		used = f->size - sizeof(*f->at);
	while (f->done < used) {
		const struct trace_record *record =
			(const struct trace_record *)((const char *)(f->at + 1) + f->done);

		if (!fits(record, used - f->done)) {
			r->missed++;
			f->done = f->size;
			break;
		}
		take(r, f->thread, record);
		f->done += record->size;
	}
}

void trace_read(struct trace_reader *r, bool last)
{
	look_for_files(r);
	for (size_t i = 0; i < r->nfiles; i++)
		read_file(r, &r->files[i]);
	for (unsigned int i = 0; last && i < r->nthreads; i++) {
		if (r->states[i].idle)
			add(r, i, r->states[i].idle, NULL);
		r->states[i].idle = NULL;
		abandon(r, i, 0);
	}
}

const struct trace_event *trace_events(const struct trace_reader *r, size_t *n)
{
	*n = r->nevents;
	return r->events;
}

const struct trace_thread *trace_threads(const struct trace_reader *r, size_t *n)
{
	*n = r->nthreads;
	return r->threads;
}

uint64_t trace_lost(const struct trace_reader *r)
{
	uint64_t lost = r->missed + __atomic_load_n(r->lost, __ATOMIC_RELAXED);

	for (size_t i = 0; i < r->nfiles; i++)
		lost += r->files[i].at->lost;
	return lost;
}

const struct trace_work *trace_works(const struct trace_record *r)
{
	return (const struct trace_work *)(r + 1);
}

const char *trace_text(const struct trace_record *r)
{
	return (const char *)(trace_works(r) + r->works);
}

uint64_t trace_until(const struct trace_event *e)
{
	if (e->end)
		return e->end->when;
	return e->begin->kind == TRACE_IDLE ? e->begin->until : e->begin->when;
}

int trace_name_len(const struct trace_event *e)
{
	const char *text = trace_text(e->begin), *end = memchr(text, '(', e->begin->text);

	return (int)(end ? end - text : e->begin->text);
}
