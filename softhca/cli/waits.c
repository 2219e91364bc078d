// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * `softhca show --waits`: which thread waits in which call for what, and whether a wake-up is lost.
 * The command looks for itself and does not ask the daemon, because a daemon that is stopped, or
 * that gets no processor, is among what the command has to report.
 *
 * A look is torn, and a thread between two instructions may owe something to another. So there are
 * two looks, some time apart. What is under way counts as lost if it has not moved in between
 * although its process had a processor, and if by the device's own rules no thread carries it on.
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "softhca.h"
#include "softhca/device/memory/lock.h"
#include "softhca/host/paths.h"
#include "waits.h"

#define APART_MS 500

struct report {
	struct look first, last;
	const char *dir;
	long daemon;
	bool json;
};

/* ---- judgement ---- */

/* Was the process ready, but without a processor between the looks? */
static bool starved(const struct report *r, uint32_t proc)
{
	bool ready = false;

	for (unsigned int i = 0; i < r->last.ntasks; i++) {
		const struct task *t = &r->last.task[i], *before;

		if (t->proc != proc)
			continue;
		before = look_task(&r->first, t->pid, t->tid);
		if (!before || t->ran_ns != before->ran_ns)
			return false;
		ready |= t->state == 'R';
	}
	return ready;
}

static bool stopped(const struct report *r, uint32_t proc)
{
	for (unsigned int i = 0; i < r->last.ntasks; i++)
		if (r->last.task[i].proc == proc && is_stopped(r->last.task[i].state))
			return true;
	return false;
}

static const struct sh_due *same_before(const struct report *r, const struct sh_due *d)
{
	for (unsigned int i = 0; i < r->first.ndue; i++) {
		const struct sh_due *b = &r->first.due[i];

		if (b->kind == d->kind && b->hca == d->hca && b->number == d->number &&
		    b->srqn == d->srqn && b->proc == d->proc && b->progress == d->progress)
			return b;
	}
	return NULL;
}

/* The device fills a receive whether or not the process that posted it runs. */
static bool needs_owner(const struct sh_due *d)
{
	return d->kind != SH_DUE_RECEIVE;
}

static enum verdict judge(const struct report *r, const struct sh_due *d)
{
	const struct sh_due *before = same_before(r, d);
	uint32_t proc = d->carrier ? d->carrier : d->proc;

	if (!before)
		return VERDICT_MOVES;
	if (needs_owner(d) && stopped(r, proc))
		return VERDICT_STOPPED;
	if (needs_owner(d) && starved(r, proc))
		return VERDICT_STARVED;
	return d->lost && before->lost == d->lost ? VERDICT_LOST : VERDICT_WAITS;
}

/* ---- the report ---- */

static void put_int(json_t *o, const char *key, uint64_t value)
{
	json_object_set_new(o, key, json_integer((json_int_t)value));
}

/* Puts null if the value is not known. */
static void put_known(json_t *o, const char *key, bool known, uint64_t value)
{
	json_object_set_new(o, key, known ? json_integer((json_int_t)value) : json_null());
}

static void put_text(json_t *o, const char *key, const char *text)
{
	json_object_set_new(o, key, text ? json_string(text) : json_null());
}

static const char *waits_word(const struct task *t)
{
	static const char *const word[] = {NULL,     "lock",	"doze",	 "timer",
					   "daemon", "command", "pages", "copy"};

	return t->announced && t->slot.waits < sizeof(word) / sizeof(word[0]) ? word[t->slot.waits]
									      : NULL;
}

static json_t *describe_task(const struct report *r, const struct task *t)
{
	static const struct task none;
	const struct task *before = look_task(&r->first, t->pid, t->tid);
	const struct task *b = before ? before : &none;
	json_t *o = json_object();
	char text[WORDS];

	task_words(text, &r->last, t, r->dir);
	put_int(o, "pid", t->pid);
	put_int(o, "tid", t->tid);
	put_known(o, "host", t->host >= 0, (uint64_t)t->host);
	put_text(o, "state", state_word(t->state));
	json_object_set_new(o, "in_device", json_boolean(t->announced && t->slot.inside));
	put_text(o, "waits", waits_word(t));
	put_known(o, "waits_ms", waits_word(t), (r->last.now - t->slot.since) / 1000000);
	put_known(o, "ran_us", before, (t->ran_ns - b->ran_ns) / 1000);
	put_known(o, "queued_us", before, (t->queued_ns - b->queued_ns) / 1000);
	put_text(o, "text", text);
	return o;
}

static json_t *describe_lock(const struct report *r, const struct sh_held *h)
{
	json_t *o = json_object();
	char text[WORDS];

	lock_words(text, &r->last, h);
	put_int(o, "pid", look_pid(&r->last, h->holder.proc));
	put_int(o, "tid", h->holder.tid);
	json_object_set_new(o, "waited_for", json_boolean(h->sleepers));
	put_text(o, "text", text);
	return o;
}

static json_t *describe_due(const struct report *r, const struct sh_due *d, enum verdict v)
{
	json_t *o = json_object();
	char name[WORDS], text[WORDS];

	due_name(name, &r->last, d);
	due_words(text, &r->last, d);
	put_text(o, "verdict", verdict_word(v));
	put_text(o, "kind", due_kind_word(d->kind));
	put_int(o, "pid", look_pid(&r->last, d->proc));
	put_int(o, "hca", d->hca);
	put_int(o, "number", d->number);
	put_int(o, "srqn", d->srqn);
	put_known(o, "peer_pid", d->peer_proc, look_pid(&r->last, d->peer_proc));
	put_known(o, "peer_hca", d->has_peer, d->peer_hca);
	put_known(o, "peer_qpn", d->has_peer, d->peer_qpn);
	put_int(o, "count", d->count);
	put_text(o, "object", name);
	put_text(o, "text", text);
	return o;
}

/* Did the same thread hold the lock in the first look, too? Other locks come and go. */
static bool held_before(const struct report *r, const struct sh_held *h)
{
	for (unsigned int i = 0; i < r->first.nheld; i++) {
		const struct sh_held *b = &r->first.held[i];

		if (b->kind == h->kind && b->hca == h->hca && b->number == h->number &&
		    !((b->owner ^ h->owner) & ~SH_OWNER_SLEEPERS))
			return true;
	}
	return false;
}

static json_t *describe(const struct report *r)
{
	json_t *threads = json_array(), *locks = json_array(), *due = json_array();
	json_t *o = json_object();
	unsigned int lost = 0;

	for (unsigned int i = 0; i < r->last.ntasks; i++)
		json_array_append_new(threads, describe_task(r, &r->last.task[i]));
	for (unsigned int i = 0; i < r->last.nheld; i++)
		if (held_before(r, &r->last.held[i]))
			json_array_append_new(locks, describe_lock(r, &r->last.held[i]));
	for (unsigned int i = 0; i < r->last.ndue; i++) {
		enum verdict v = judge(r, &r->last.due[i]);

		lost += v == VERDICT_LOST;
		json_array_append_new(due, describe_due(r, &r->last.due[i], v));
	}
	put_int(o, "version", SH_SHOW_VERSION);
	put_text(o, "instance", r->dir);
	put_int(o, "daemon", (uint64_t)r->daemon);
	put_int(o, "apart_ms", (r->last.now - r->first.now) / 1000000);
	put_int(o, "lost", lost);
	put_int(o, "unseen", r->last.unseen);
	json_object_set_new(o, "threads", threads);
	json_object_set_new(o, "locks", locks);
	json_object_set_new(o, "outstanding", due);
	return o;
}

/* ---- for people ---- */

static const char *string(const json_t *object, const char *key)
{
	const char *value = json_string_value(json_object_get(object, key));

	return value ? value : "";
}

static json_int_t integer(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

/*
 * Is it a thread of the program that is not on the device, and not the first of its process? Such
 * threads are only counted.
 */
static bool dull(const json_t *t)
{
	return integer(t, "pid") != integer(t, "tid") &&
	       json_is_null(json_object_get(t, "waits")) &&
	       !json_is_true(json_object_get(t, "in_device")) &&
	       strncmp(string(t, "text"), "reads ", 6);
}

static void print_threads(const json_t *threads, json_int_t daemon, json_int_t apart_ms)
{
	json_int_t process = 0;
	unsigned int left_out = 0;
	char line[WORDS + 200];
	size_t index;
	json_t *t;

	json_array_foreach(threads, index, t)
	{
		json_int_t queued_ms = integer(t, "queued_us") / 1000;

		if (integer(t, "pid") != process) {
			process = integer(t, "pid");
			printf("%s %lld", process == daemon ? "daemon" : "process",
			       (long long)process);
			if (!json_is_null(json_object_get(t, "host")))
				printf(", host %lld", (long long)integer(t, "host"));
			putchar('\n');
		}
		if (dull(t)) {
			left_out++;
			continue;
		}
		snprintf(line, sizeof(line), "thread %lld %s: %s", (long long)integer(t, "tid"),
			 string(t, "state"), string(t, "text"));
		/* A thread without a processor for half of the time is starved. */
		if (2 * queued_ms > apart_ms)
			snprintf(line + strlen(line), sizeof(line) - strlen(line),
				 "; without a processor for %lld of %lld ms", (long long)queued_ms,
				 (long long)apart_ms);
		print_wrapped(2, 6, line);
	}
	if (left_out)
		printf("and %u more thread%s, not in softhca's code\n", left_out,
		       left_out == 1 ? "" : "s");
}

static void print_due(const json_t *list, bool lost)
{
	char line[2 * WORDS];
	size_t index;
	json_t *d;

	json_array_foreach(list, index, d)
	{
		if (lost != !strcmp(string(d, "verdict"), "lost"))
			continue;
		print_wrapped(2, 6, string(d, "object"));
		snprintf(line, sizeof(line), "%s: %s", string(d, "verdict"), string(d, "text"));
		print_wrapped(6, 6, line);
	}
}

static void print_text(const json_t *report)
{
	const json_t *due = json_object_get(report, "outstanding"),
		     *locks = json_object_get(report, "locks");
	json_int_t lost = integer(report, "lost"), unseen = integer(report, "unseen");
	size_t index;
	json_t *item;

	print_threads(json_object_get(report, "threads"), integer(report, "daemon"),
		      integer(report, "apart_ms"));
	if (json_array_size(locks))
		puts("\nlocks held in both looks");
	json_array_foreach(locks, index, item) print_wrapped(2, 6, string(item, "text"));
	if (json_array_size(due) > (size_t)lost)
		puts("\noutstanding");
	print_due(due, false);
	printf("\n%s\n", lost ? "lost wake-ups" : "no wake-up is lost");
	print_due(due, true);
	if (unseen)
		printf("%lld queue%s not looked into, because their memory is not shared "
		       "(SOFTHCA_QUEUES=copy)\n",
		       (long long)unseen, unseen == 1 ? " was" : "s were");
}

/* ---- the command ---- */

static void nap(void)
{
	struct timespec left = {.tv_nsec = APART_MS * 1000000L};

	while (nanosleep(&left, &left) && errno == EINTR)
		;
}

static int print(const struct report *r)
{
	json_t *report = describe(r);
	int status = 0;

	if (!report) {
		complain("cannot make the report: memory ran out");
		return EXIT_SELF;
	}
	if (!r->json)
		print_text(report);
	else if (json_dumpf(report, stdout, JSON_INDENT(2)) || putchar('\n') == EOF)
		status = EXIT_SELF;
	if (fflush(stdout) || status) {
		complain("cannot write the output: %s", strerror(errno));
		status = EXIT_SELF;
	}
	json_decref(report);
	return status;
}

int show_waits(const char *instance, bool json)
{
	struct report r = {.json = json};
	char dir[PATH_MAX];
	int err, memory = -1, status = EXIT_SELF;

	err = sh_instance_dir(dir, instance);
	if (!err) {
		r.dir = dir;
		r.daemon = daemon_pid(dir);
		memory = r.daemon ? look_open(r.daemon) : -ENOENT;
		err = memory < 0 ? memory : look_take(&r.first, memory);
	}
	if (!err) {
		nap();
		err = look_take(&r.last, memory);
	}
	if (err && complain_no_proc())
		status = EXIT_SELF;
	else if (err && r.dir && complain_foreign(instance, r.dir))
		status = EXIT_SELF;
	/* The number of a daemon that has ended can be a zombie's, or another user's process. */
	else if (err == -ENOENT || (err && r.dir && !sh_instance_alive(r.dir)))
		complain_absent(instance, r.dir, -ENOENT);
	else if (err)
		complain("cannot read the device memory of instance \"%s\": %s", instance,
			 strerror(-err));
	else
		status = print(&r);
	look_drop(&r.first);
	look_drop(&r.last);
	if (memory >= 0)
		close(memory);
	return status;
}
