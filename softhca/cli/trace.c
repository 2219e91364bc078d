// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * `softhca trace`: has the command load a library that writes down its verbs (softhca/trace),
 * prints them while the command runs, and makes a time line of them and of the packets in the end.
 * A thread follows the verbs; the main thread waits for the command, as `softhca run` does, and
 * uses nothing of the trace meanwhile.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <uthash.h>

#include "softhca.h"
#include "softhca/host/process.h"
#include "trace.h"

#define LIBRARY	 "libsofthca-trace.so"
#define LOOK_NS	 20000000 /* how often there is something to print */
#define VERB_MAX 48

struct verb_sum {
	char name[VERB_MAX];
	uint64_t calls, errors, total, longest; /* ns */
	UT_hash_handle hh;
};

struct trace {
	char dir[PATH_MAX];
	int place; /* the same, open and locked as long as this trace lives; or -1 */
	struct trace_reader *reader;
	struct trace_packets *packets; /* NULL: no time line */
	FILE *out;		       /* lines, or the table */
	FILE *json;		       /* or NULL */
	const char *out_name, *json_name;
	bool summary;
	struct verb_sum *sums;
	size_t printed; /* events */
	uint64_t began, realtime;
	pthread_t thread;
	bool running;
	pthread_mutex_t lock; /* of over */
	pthread_cond_t wake;
	bool over;
};

/* ---- lines ---- */

static const char *error_name(int error)
{
#define NAME(name)                                                                                 \
	{                                                                                          \
		name, #name                                                                        \
	}
	static const struct {
		int error;
		const char *name;
	} names[] = {
		NAME(EPERM),	   NAME(ENOENT),       NAME(EINTR),	 NAME(EIO),
		NAME(ENXIO),	   NAME(EBADF),	       NAME(EAGAIN),	 NAME(ENOMEM),
		NAME(EACCES),	   NAME(EFAULT),       NAME(EBUSY),	 NAME(EEXIST),
		NAME(ENODEV),	   NAME(EINVAL),       NAME(EMFILE),	 NAME(ENOSPC),
		NAME(ERANGE),	   NAME(ENOSYS),       NAME(EPROTO),	 NAME(EOVERFLOW),
		NAME(EMSGSIZE),	   NAME(EOPNOTSUPP),   NAME(EADDRINUSE), NAME(EADDRNOTAVAIL),
		NAME(ENETUNREACH), NAME(ECONNREFUSED), NAME(ETIMEDOUT),	 NAME(EHOSTUNREACH),
		NAME(ENOTCONN),	   NAME(EISCONN),
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].error == error)
			return names[i].name;
	return NULL;
}

/* Seconds with nanoseconds' digits: "0.000012345". */
static void put_seconds(FILE *out, uint64_t ns)
{
	fprintf(out, "%" PRIu64 ".%09u", ns / 1000000000, (unsigned int)(ns % 1000000000));
}

static void put_result(FILE *out, const struct trace_event *e)
{
	const char *name = error_name(e->end->error);

	/* ibv_ack_cq_events() and the like return nothing. */
	fprintf(out, " = %.*s", e->end->text ? (int)e->end->text : 1,
		e->end->text ? trace_text(e->end) : "?");
	if (!e->end->error)
		return;
	if (name)
		fprintf(out, " %s", name);
	fprintf(out, " (%s)", strerror(e->end->error));
}

static void print_line(struct trace *t, const struct trace_event *e)
{
	uint64_t when = e->begin->when + t->realtime;
	time_t seconds = (time_t)(when / 1000000000);
	struct tm tm;

	localtime_r(&seconds, &tm);
	fprintf(t->out, "%d %02d:%02d:%02d.%06u %.*s", e->tid, tm.tm_hour, tm.tm_min, tm.tm_sec,
		(unsigned int)(when % 1000000000 / 1000), (int)e->begin->text,
		trace_text(e->begin));
	if (e->begin->kind == TRACE_IDLE) {
		fputs(" = 0", t->out);
		if (e->begin->count > 1)
			fprintf(t->out, ", %" PRIu64 " times", e->begin->count);
	} else if (e->end) {
		put_result(t->out, e);
	} else {
		fputs(" <unfinished ...>\n", t->out);
		return;
	}
	fputs(" <", t->out);
	put_seconds(t->out, trace_until(e) > e->begin->when ? trace_until(e) - e->begin->when : 0);
	fputs(">\n", t->out);
}

/* ---- the table ---- */

static void sum_up(struct trace *t, const struct trace_event *e)
{
	uint64_t until = trace_until(e), took = until > e->begin->when ? until - e->begin->when : 0;
	char name[VERB_MAX] = "";
	struct verb_sum *s;

	snprintf(name, sizeof(name), "%.*s", trace_name_len(e), trace_text(e->begin));
	HASH_FIND_STR(t->sums, name, s);
	if (!s) {
		s = calloc(1, sizeof(*s));
		if (!s)
			return;
		memcpy(s->name, name, sizeof(name));
		HASH_ADD_STR(t->sums, name, s);
	}
	s->calls += e->begin->kind == TRACE_IDLE ? e->begin->count : 1;
	s->errors += e->end && e->end->error;
	s->total += took;
	if (e->begin->kind != TRACE_IDLE && took > s->longest)
		s->longest = took;
}

static int by_total(const struct verb_sum *a, const struct verb_sum *b)
{
	return a->total > b->total ? -1 : a->total < b->total;
}

static void print_table(struct trace *t)
{
	struct verb_sum *s;

	HASH_SORT(t->sums, by_total);
	fprintf(t->out, "%12s %12s %12s %10s %8s  %s\n", "seconds", "us/call", "longest us",
		"calls", "errors", "verb");
	for (s = t->sums; s; s = s->hh.next)
		fprintf(t->out, "%12.6f %12.3f %12.3f %10" PRIu64 " %8" PRIu64 "  %s\n",
			(double)s->total / 1e9, (double)s->total / 1e3 / (double)s->calls,
			(double)s->longest / 1e3, s->calls, s->errors, s->name);
}

static void free_sums(struct trace *t)
{
	struct verb_sum *s, *tmp;

	HASH_ITER(hh, t->sums, s, tmp)
	{
		HASH_DEL(t->sums, s);
		free(s);
	}
}

/* ---- following ---- */

static int by_until(const void *a, const void *b)
{
	uint64_t one = trace_until(*(const struct trace_event *const *)a),
		 other = trace_until(*(const struct trace_event *const *)b);

	return one < other ? -1 : one > other;
}

/* Threads that were read one after the other are put in order. */
static void print_new(struct trace *t)
{
	const struct trace_event *events, **sorted;
	size_t n, all;

	events = trace_events(t->reader, &all);
	n = all - t->printed;
	sorted = n ? reallocarray(NULL, n, sizeof(*sorted)) : NULL;
	if (!sorted)
		return;
	for (size_t i = 0; i < n; i++)
		sorted[i] = &events[t->printed + i];
	qsort(sorted, n, sizeof(*sorted), by_until);
	for (size_t i = 0; i < n; i++) {
		if (t->summary)
			sum_up(t, sorted[i]);
		else
			print_line(t, sorted[i]);
	}
	free(sorted);
	t->printed = all;
	fflush(t->out);
}

static void look(struct trace *t, bool last)
{
	trace_read(t->reader, last);
	print_new(t);
	if (t->packets)
		trace_packets_take(t->packets);
}

static void *follow(void *arg)
{
	struct trace *t = arg;
	struct timespec until;
	uint64_t next;
	bool over;

	do {
		look(t, false);
		next = sh_now() + LOOK_NS;
		until.tv_sec = (time_t)(next / 1000000000);
		until.tv_nsec = (long)(next % 1000000000);
		pthread_mutex_lock(&t->lock);
		while (!t->over && pthread_cond_timedwait(&t->wake, &t->lock, &until) != ETIMEDOUT)
			;
		over = t->over;
		pthread_mutex_unlock(&t->lock);
	} while (!over);
	return NULL;
}

/* The command's signals are the main thread's. */
static int start_thread(struct trace *t)
{
	pthread_condattr_t attr;
	sigset_t all, mask;
	int err;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->wake, &attr);
	pthread_condattr_destroy(&attr);
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &mask);
	err = pthread_create(&t->thread, NULL, follow, t);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	t->running = !err;
	return err;
}

static void stop_thread(struct trace *t)
{
	if (!t->running)
		return;
	pthread_mutex_lock(&t->lock);
	t->over = true;
	pthread_cond_signal(&t->wake);
	pthread_mutex_unlock(&t->lock);
	pthread_join(t->thread, NULL);
}

/* ---- beginning and end ---- */

/* Beside the other preloaded library, installed or in a build tree. */
static bool find_library(char path[PATH_MAX])
{
	char shim[PATH_MAX], candidate[PATH_MAX * 2];
	int dir;

	if (!find_shim(shim))
		return false;
	dir = (int)(strrchr(shim, '/') - shim);
	snprintf(candidate, sizeof(candidate), "%.*s/" LIBRARY, dir, shim);
	if (realpath(candidate, path))
		return true;
	snprintf(candidate, sizeof(candidate), "%.*s/../../trace/.libs/" LIBRARY, dir, shim);
	return realpath(candidate, path) != NULL;
}

static bool set_environment(struct trace *t)
{
	char library[PATH_MAX];

	if (!find_library(library)) {
		complain(LIBRARY " is not beside the other library of softhca: install softhca "
				 "again");
		return false;
	}
	if (prepend("LD_PRELOAD", library, ':') || setenv(TRACE_DIRECTORY, t->dir, 1)) {
		complain("cannot set the environment of the command: %s", strerror(errno));
		return false;
	}
	return true;
}

static FILE *open_output(const char *name)
{
	FILE *out = fopen(name, "we");

	if (!out)
		complain("cannot write %s: %s", name, strerror(errno));
	return out;
}

#define PLACE "softhca-trace."

static void remove_at(int at, const char *name, int place)
{
	const struct dirent *e;
	int again = openat(place, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = again < 0 ? NULL : fdopendir(again);

	while (dir && (e = readdir(dir)))
		if (e->d_name[0] >= '0' && e->d_name[0] <= '9')
			unlinkat(place, e->d_name, 0);
	if (dir)
		closedir(dir);
	unlinkat(at, name, AT_REMOVEDIR);
}

/*
 * Opens a place of this user's, and locks it. -1: it is none, or its trace lives. Not every file
 * system has locks: without one a place counts as new, and never as left.
 */
static int lock_place(int at, const char *name, bool is_new)
{
	int place = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (place >= 0 &&
	    (fstat(place, &st) || st.st_uid != geteuid() ||
	     (flock(place, LOCK_EX | LOCK_NB) && (!is_new || errno == EWOULDBLOCK)))) {
		close(place);
		place = -1;
	}
	return place;
}

/* A trace that was killed has left its place, which no process has locked any more. */
static void remove_left_places(const char *tmp)
{
	const struct dirent *e;
	DIR *dir = opendir(tmp);
	int place;

	while (dir && (e = readdir(dir))) {
		if (strncmp(e->d_name, PLACE, sizeof(PLACE) - 1))
			continue;
		place = lock_place(dirfd(dir), e->d_name, false);
		if (place < 0)
			continue;
		remove_at(dirfd(dir), e->d_name, place);
		close(place);
	}
	if (dir)
		closedir(dir);
}

static bool make_place(struct trace *t)
{
	const char *tmp = getenv("TMPDIR");

	if (!tmp || *tmp != '/')
		tmp = "/tmp";
	remove_left_places(tmp);
	/* Before it is locked, another trace may take it for one that was left. */
	for (int i = 0; i < 10; i++) {
		snprintf(t->dir, sizeof(t->dir), "%s/" PLACE "XXXXXX", tmp);
		if (!mkdtemp(t->dir))
			break;
		t->place = lock_place(AT_FDCWD, t->dir, true);
		if (t->place >= 0 && !access(t->dir, F_OK))
			return true;
		if (t->place >= 0)
			close(t->place);
		t->place = -1;
		rmdir(t->dir);
		errno = EBUSY;
	}
	complain("cannot make %s: %s; set TMPDIR to a directory that you can write to", t->dir,
		 strerror(errno));
	t->dir[0] = '\0';
	return false;
}

static void remove_place(const struct trace *t)
{
	if (t->dir[0])
		remove_at(AT_FDCWD, t->dir, t->place);
	if (t->place >= 0)
		close(t->place);
}

static void free_trace(struct trace *t)
{
	remove_place(t);
	trace_reader_free(t->reader);
	trace_packets_free(t->packets);
	free_sums(t);
	if (t->json)
		fclose(t->json);
	if (t->out && t->out != stderr)
		fclose(t->out);
	free(t);
}

struct trace *trace_begin(const struct run_options *opt, const char *dir)
{
	struct trace *t = calloc(1, sizeof(*t));
	int err;

	if (!t) {
		complain("not enough memory");
		return NULL;
	}
	t->place = -1;
	t->out_name = opt->trace_out;
	t->json_name = opt->trace_json;
	t->summary = opt->summary;
	t->out = opt->trace_out ? open_output(opt->trace_out) : stderr;
	if (!t->out || (opt->trace_json && !(t->json = open_output(opt->trace_json))) ||
	    !make_place(t) || !set_environment(t))
		goto failed;
	t->reader = trace_reader_new(t->dir);
	if (!t->reader) {
		complain("cannot begin a trace in %s: %s; set TMPDIR to a directory that has room",
			 t->dir, strerror(errno));
		goto failed;
	}
	/* If this command is killed, it has written whole lines. */
	if (t->out != stderr)
		setvbuf(t->out, NULL, _IOLBF, 65536);
	t->realtime = sh_since_1970();
	t->began = sh_now();
	t->realtime -= t->began;
	/* Without packets the time line has the verbs. */
	if (t->json)
		t->packets = trace_packets_begin(dir);
	err = start_thread(t);
	if (!err)
		return t;
	complain("cannot make a thread: %s", strerror(err));
failed:
	free_trace(t);
	return NULL;
}

static int finish(FILE **out, const char *name)
{
	FILE *closing = *out;
	bool failed;
	int err;

	*out = NULL;
	if (closing == stderr)
		return 0;
	/* What could not be written before fails again, and says why. */
	errno = 0;
	failed = fflush(closing) || ferror(closing);
	err = errno;
	if (fclose(closing) && !failed) {
		failed = true;
		err = errno;
	}
	if (!failed)
		return 0;
	complain("cannot write %s: %s", name, err ? strerror(err) : "an error of input or output");
	return EXIT_SELF;
}

int trace_end(struct trace *t, bool ran)
{
	uint64_t lost;
	uint64_t packets;
	size_t verbs;
	int status = 0, err;

	if (!t)
		return 0;
	/* The reader of the lines may be gone; the files must go, too. */
	signal(SIGPIPE, SIG_IGN);
	stop_thread(t);
	if (t->packets)
		trace_packets_end(t->packets);
	look(t, true);
	if (t->summary)
		print_table(t);
	lost = trace_lost(t->reader);
	trace_events(t->reader, &verbs);
	if (ran && !verbs && !lost)
		complain("no verb was traced: the command called none, or the loader did not take "
			 "the library that traces them, as with static and set-uid programs and "
			 "behind env -i");
	if (lost)
		complain("%" PRIu64
			 " verb%s not in the trace: there was no memory, no descriptor or no "
			 "room in %s for %s, or a signal handler called %s in the middle of "
			 "another one",
			 lost, lost == 1 ? " is" : "s are", t->dir, lost == 1 ? "it" : "them",
			 lost == 1 ? "it" : "them");
	packets = t->packets ? trace_packets_lost(t->packets) : 0;
	if (packets)
		complain("%" PRIu64 " packet%s not in the time line: packets came faster than this "
			 "command took them",
			 packets, packets == 1 ? " is" : "s are");
	if (t->json) {
		err = trace_json(t->json, t->reader, t->packets, t->began);
		if (err == -ENOMEM) {
			complain("not enough memory for the time line");
			status = EXIT_SELF;
		}
		if (finish(&t->json, t->json_name))
			status = EXIT_SELF;
	}
	if (finish(&t->out, t->out_name))
		status = EXIT_SELF;
	free_trace(t);
	return status;
}

int verb_trace(int argc, char **argv)
{
	return run_command(argc, argv);
}
