// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The words of `softhca show --waits`: plain functions of what was seen, without state. */
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "plural.h"
#include "softhca/protocol.h"
#include "waits.h"

/* Appends, and cuts off what does not fit. */
static void add(char text[WORDS], const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(char text[WORDS], const char *format, ...)
{
	size_t len = strlen(text);
	va_list args;

	va_start(args, format);
	vsnprintf(text + len, WORDS - len, format, args);
	va_end(args);
}

const char *verdict_word(enum verdict v)
{
	static const char *const word[] = {"waits", "moves", "stopped", "starved", "lost"};

	return word[v];
}

bool is_stopped(char state)
{
	return state == 'T' || state == 't';
}

const char *state_word(char state)
{
	switch (state) {
	case 'R':
		return "ready";
	case 'S':
		return "sleeps";
	case 'D':
		return "in the kernel";
	case 'T':
	case 't':
		return "stopped";
	case 'Z':
	case 'X':
	case 0:
		return "ended";
	}
	return "idle";
}

/* ---- threads ---- */

/* Are all threads of the process stopped? The signal stops them together. */
static bool process_stopped(const struct look *l, uint32_t pid)
{
	for (unsigned int i = 0; i < l->ntasks; i++)
		if (l->task[i].pid == pid && !is_stopped(l->task[i].state))
			return false;
	return look_task(l, pid, pid);
}

static void add_process(char text[WORDS], const struct look *l, uint32_t proc)
{
	uint32_t pid = look_pid(l, proc);

	if (!proc)
		add(text, "the daemon");
	else
		add(text, "process %" PRIu32, pid);
	if (process_stopped(l, pid))
		add(text, " (stopped)");
}

static void add_device(char text[WORDS], const struct look *l, uint32_t hca)
{
	add(text, "mlx4_%" PRIu32, hca % l->dev.hcas_per_host);
	if (l->dev.hcas > l->dev.hcas_per_host)
		add(text, " of host %" PRIu32, hca / l->dev.hcas_per_host);
}

/* The commands that all kernels number alike. */
static const char *command_name(uint64_t number)
{
	static const char *const name[] = {
		"GET_CONTEXT",	"QUERY_DEVICE", "QUERY_PORT",
		"ALLOC_PD",	"DEALLOC_PD",	"CREATE_AH",
		"MODIFY_AH",	"QUERY_AH",	"DESTROY_AH",
		"REG_MR",	"REG_SMR",	"REREG_MR",
		"QUERY_MR",	"DEREG_MR",	"ALLOC_MW",
		"BIND_MW",	"DEALLOC_MW",	"CREATE_COMP_CHANNEL",
		"CREATE_CQ",	"RESIZE_CQ",	"DESTROY_CQ",
		"POLL_CQ",	"PEEK_CQ",	"REQ_NOTIFY_CQ",
		"CREATE_QP",	"QUERY_QP",	"MODIFY_QP",
		"DESTROY_QP",	"POST_SEND",	"POST_RECV",
		"ATTACH_MCAST", "DETACH_MCAST", "CREATE_SRQ",
		"MODIFY_SRQ",	"QUERY_SRQ",	"DESTROY_SRQ",
	};

	return number < sizeof(name) / sizeof(name[0]) ? name[number] : NULL;
}

static void add_request(char text[WORDS], const struct sh_thread *t)
{
	const char *command = t->a == SH_MSG_COMMAND ? command_name(t->b) : NULL;

	add(text, "waits for the daemon's answer to ");
	if (command)
		add(text, "%s", command);
	else if (t->a == SH_MSG_COMMAND)
		add(text, "uverbs command %" PRIu64, t->b & 0xffffff);
	else
		add(text, "%s",
		    t->a == SH_MSG_OPEN || t->a == SH_MSG_OPENED	  ? "an open()"
		    : t->a == SH_MSG_CHANGED || t->a == SH_MSG_MAP_FAILED ? "a change of mappings"
									  : "a message");
}

static void add_lock(char text[WORDS], const struct look *l, const struct sh_held *h)
{
	switch (h->kind) {
	case SH_LOCK_REQUESTER:
	case SH_LOCK_RESPONDER:
		add(text, "%s lock of QP 0x%06" PRIx32,
		    h->kind == SH_LOCK_REQUESTER ? "requester" : "responder", h->number);
		break;
	case SH_LOCK_CQ:
		add(text, "lock of CQ 0x%06" PRIx32, h->number);
		break;
	case SH_LOCK_SRQ:
		add(text, "lock of SRQ 0x%06" PRIx32, h->number);
		break;
	case SH_LOCK_EVQ:
		add(text, "lock of event queue %" PRIu32, h->number);
		return;
	case SH_LOCK_ATOMICS:
		add(text, "lock of atomics at 0x%" PRIx32 " of a page", h->number);
		break;
	case SH_LOCK_MULTICAST:
		add(text, "lock of multicast groups");
		break;
	case SH_LOCK_PORTS:
		add(text, "lock of ports");
		break;
	case SH_LOCK_RECOVERY:
		add(text, "recovery lock");
		return;
	case SH_LOCK_UNKNOWN:
		add(text, "unknown lock");
		return;
	}
	add(text, ", ");
	add_device(text, l, h->hca);
}

static void add_holder(char text[WORDS], const struct look *l, const struct sh_held *h)
{
	const struct task *t = look_task(l, look_pid(l, h->holder.proc), h->holder.tid);

	if (!h->owner)
		add(text, "free");
	else if (h->dead || !t)
		add(text, "held by a thread that has ended");
	else
		add(text, "held by thread %" PRIu32 " of process %" PRIu32 " (%s)", t->tid, t->pid,
		    state_word(t->state));
}

void lock_words(char text[WORDS], const struct look *l, const struct sh_held *h)
{
	text[0] = '\0';
	add_lock(text, l, h);
	add(text, ": ");
	add_holder(text, l, h);
	if (h->sleepers)
		add(text, ", others wait");
}

static void add_until(char text[WORDS], const struct look *l, uint64_t until)
{
	if (until > l->now)
		add(text, "in %" PRIu64 " ms", (until - l->now + 999999) / 1000000);
	else
		add(text, "%" PRIu64 " ms overdue", (l->now - until) / 1000000);
}

static void add_announced(char text[WORDS], const struct look *l, const struct sh_thread *t)
{
	struct sh_held lock;

	switch (t->waits) {
	case SH_WAITS_LOCK:
		sh_lock_at(&l->dev, t->a, &lock);
		add(text, "waits for the ");
		add_lock(text, l, &lock);
		add(text, ", ");
		add_holder(text, l, &lock);
		break;
	case SH_WAITS_DOZE:
		add(text, "dozes in poll_cq until a completion comes");
		break;
	case SH_WAITS_HELPER:
		add(text, "helper thread, next timer ");
		if (t->a == UINT64_MAX)
			add(text, "not set");
		else
			add_until(text, l, t->a);
		break;
	case SH_WAITS_REQUEST:
		add_request(text, t);
		break;
	case SH_WAITS_CONTROL:
		add(text, "waits for another thread's command to end");
		break;
	case SH_WAITS_PAGES:
		add(text, "waits until pages of process %" PRIu64 " have been exchanged or copied",
		    t->a);
		break;
	case SH_WAITS_COPY:
		add(text,
		    "waits until the daemon has copied for it, from or to memory of process "
		    "%" PRIu32,
		    look_pid(l, t->a < SH_MAX_PROC ? (uint32_t)t->a : 0));
		break;
	case SH_WAITS_NOT:
		break;
	}
}

/*
 * For a thread that reads from the FIFO of an event queue, or of a channel of rdma_cm. False: it
 * does not.
 */
static bool add_event_read(char text[WORDS], const struct look *l, const struct task *t,
			   const char *dir)
{
	char path[64], target[PATH_MAX];
	size_t len = strlen(dir);
	const struct sh_evq *q;
	unsigned int index;
	ssize_t got;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/fd/%ld", t->pid, t->arg);
	got = readlink(path, target, sizeof(target) - 1);
	target[got > 0 ? got : 0] = '\0';
	if (strncmp(target, dir, len))
		return false;
	if (sscanf(target + len, "/channels/%u.", &index) == 1) {
		add(text, "reads events of rdma_cm, of channel %u", index);
		return true;
	}
	if (sscanf(target + len, "/events/%u.", &index) != 1)
		return false;
	q = sh_evq(&l->dev, index);
	add(text, "reads %s events, of event queue %u",
	    q && q->record_size == 8 ? "completion" : "asynchronous", index);
	return true;
}

/* NULL: the C library that this was built with knows no such call. */
static const char *call_name(long call)
{
	static const struct {
		long number;
		const char *name;
	} known[] = {
#include "call_names.h" /* which the Makefile makes of <sys/syscall.h> */
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (known[i].number == call)
			return known[i].name;
	return NULL;
}

void task_words(char text[WORDS], const struct look *l, const struct task *t, const char *dir)
{
	const char *call = call_name(t->call);

	text[0] = '\0';
	if (t->announced && t->slot.waits) {
		add_announced(text, l, &t->slot);
		add(text, "; for %" PRIu64 " ms",
		    l->now > t->slot.since ? (l->now - t->slot.since) / 1000000 : 0);
		return;
	}
	if (t->announced && t->slot.inside)
		add(text, "in device code");
	else if (t->call == SYS_read && add_event_read(text, l, t, dir))
		return;
	else
		add(text, "%s", t->proc ? "in the program" : "in the daemon");
	if (call)
		add(text, ", %s()", call);
	else if (t->call >= 0)
		add(text, ", system call %ld", t->call);
}

/* ---- what is under way ---- */

const char *due_kind_word(enum sh_due_kind kind)
{
	static const char *const word[] = {"send",	"state", "ack",	  "rnr",   "receive",
					   "poll",	"arm",	 "event", "spill", "look",
					   "attention", "rouse", "copy"};

	return word[kind];
}

void due_name(char text[WORDS], const struct look *l, const struct sh_due *d)
{
	bool of_srq = d->kind == SH_DUE_RECEIVE && !d->number;

	text[0] = '\0';
	switch (d->kind) {
	case SH_DUE_LOOK:
	case SH_DUE_ATTENTION:
	case SH_DUE_ROUSE:
	case SH_DUE_COPY:
		break;
	case SH_DUE_SPILL:
		add(text, "event queue %" PRIu32 ", ", d->number);
		break;
	default:
		add_device(text, l, d->hca);
		add(text, " %s 0x%06" PRIx32 ", ",
		    of_srq ? "SRQ"
		    : d->kind == SH_DUE_POLL || d->kind == SH_DUE_ARM || d->kind == SH_DUE_EVENT
			    ? "CQ"
			    : "QP",
		    of_srq ? d->srqn : d->number);
	}
	add_process(text, l, d->proc);
	if (!d->has_peer)
		return;
	add(text, "; peer ");
	add_device(text, l, d->peer_hca);
	add(text, " QP 0x%06" PRIx32, d->peer_qpn);
	if (!d->peer_proc)
		return;
	add(text, ", ");
	add_process(text, l, d->peer_proc);
}

static const char *qp_state(uint32_t state)
{
	static const char *const name[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};

	return state < sizeof(name) / sizeof(name[0]) ? name[state] : "an unknown state";
}

static const char *lost_words(enum sh_lost lost)
{
	switch (lost) {
	case SH_LOST_NOT:
		break;
	case SH_LOST_DOORBELL:
		return "no thread of the process has seen the doorbell";
	case SH_LOST_ENGINE:
		return "the thread that sent from this queue has left it unfinished";
	case SH_LOST_TIMER:
		return "no timer is set";
	case SH_LOST_HELPER:
		return "the helper thread sleeps past that time";
	case SH_LOST_EVENT:
		return "no thread raises the event";
	case SH_LOST_ATTENTION:
		return "no thread has woken the helper thread";
	case SH_LOST_ROUSE:
		return "no thread wakes the dozing thread";
	}
	return "";
}

static void add_timer(char text[WORDS], const struct look *l, const struct sh_due *d)
{
	add(text, ", sent again ");
	add_until(text, l, d->until);
	if (d->put_off)
		return;
	if (d->kind == SH_DUE_RNR && d->left == 7)
		add(text, ", without end");
	else
		add(text, ", %" PRIu32 " %s left", d->left, d->left == 1 ? "retry" : "retries");
}

static void add_send(char text[WORDS], const struct look *l, const struct sh_due *d)
{
	if (d->kind == SH_DUE_SEND) {
		add(text, "%" PRIu32 " request%s posted, not yet taken by the device", d->count,
		    plural(d->count));
	} else if (d->kind == SH_DUE_STATE) {
		add(text, "%" PRIu32 " request%s posted, the QP is in %s", d->count,
		    plural(d->count), qp_state(d->state));
	} else {
		add(text, "%" PRIu32 " request%s not acknowledged", d->count, plural(d->count));
		if (d->kind == SH_DUE_RNR)
			add(text, ", receiver not ready");
		if (d->put_off)
			add(text, ", put off because a stopped thread has a lock");
		if (d->until)
			add_timer(text, l, d);
		else if (d->forever)
			add(text, ", timeout 0: never sent again");
		if (d->untaken)
			add(text, "; %" PRIu32 " posted behind", d->untaken);
		if (d->kind == SH_DUE_RNR && d->has_peer) {
			add(text, "; %" PRIu32 " receive%s posted there", d->peer_has,
			    plural(d->peer_has));
			if (d->srqn)
				add(text, " in SRQ 0x%06" PRIx32, d->srqn);
		}
	}
	if (d->engine && d->lost != SH_LOST_ENGINE)
		add(text, "; a thread is sending");
}

void due_words(char text[WORDS], const struct look *l, const struct sh_due *d)
{
	text[0] = '\0';
	switch (d->kind) {
	case SH_DUE_SEND:
	case SH_DUE_STATE:
	case SH_DUE_ACK:
	case SH_DUE_RNR:
		add_send(text, l, d);
		break;
	case SH_DUE_RECEIVE:
		add(text, "%" PRIu32 " receive%s posted", d->count, plural(d->count));
		if (d->has_peer && d->peer_proc)
			add(text,
			    d->peer_has ? "; the peer has %" PRIu32 " to send"
					: "; the peer has posted nothing",
			    d->peer_has);
		break;
	case SH_DUE_POLL:
		add(text, "%" PRIu32 " completion%s not polled", d->count, plural(d->count));
		break;
	case SH_DUE_ARM:
		add(text, "armed by the program, not yet noticed by the device");
		break;
	case SH_DUE_EVENT:
		add(text, "armed, with %" PRIu32 " completion%s but no event yet", d->count,
		    plural(d->count));
		break;
	case SH_DUE_SPILL:
		add(text, "%" PRIu32 " event%s behind a full pipe: the program does not read them",
		    d->count, plural(d->count));
		break;
	case SH_DUE_LOOK:
		add(text, "the helper thread has to look at %" PRIu32 " QP%s", d->count,
		    plural(d->count));
		break;
	case SH_DUE_ATTENTION:
		add(text, "the helper thread sleeps, although it was asked to look");
		break;
	case SH_DUE_ROUSE:
		add(text, "a thread dozes in poll_cq and is due to be woken");
		break;
	case SH_DUE_COPY:
		add(text, "%" PRIu32 " byte%s to copy from or to memory of process %" PRIu32,
		    d->count, plural(d->count), look_pid(l, d->peer_proc));
		break;
	}
	if (d->lost)
		add(text, ": %s", lost_words(d->lost));
}
