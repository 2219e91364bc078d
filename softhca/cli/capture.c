// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * `softhca capture`: reads the tap (device/memory/tap.h), as a file that other programs dissect or
 * as lines. The daemon switches the tap on and off; this process alone reads it, and senders never
 * wait for it.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "softhca/host/process.h"
#include "pcapng.h"
#include "plural.h"
#include "softhca.h"
#include "tapped.h"

#define MS	  UINT64_C(1000000)
#define PATIENCE  (20 * MS)  /* for a sender that has begun a record */
#define LATE_EACH (100 * MS) /* how often to look for records of senders that were stopped */
#define BATCH	  256
#define HASTY	  (500 * MS) /* two signals that are closer are one: timeout(1) sends its twice */

struct capture {
	struct sh_tap_reader reader;
	struct sh_wire_config wire; /* n is not 0 if there is one */
	struct sh_tapped tapped;
	unsigned char payload[SH_TAP_PAYLOAD];
	FILE *out;
	bool lines;
	unsigned long count; /* ends after so many; 0: never by itself */
	unsigned long snap;  /* bytes of a packet; 0: all */
	uint64_t seen, damaged;
	uint64_t realtime; /* what is to be added to a time of the tap */
	uint64_t began, looked;
	int err;
};

static volatile sig_atomic_t stopped;

/*
 * The first signal ends the capture, the next one the process: its output may never take the rest.
 */
static void on_stop(int sig)
{
	static uint64_t first;
	uint64_t now = sh_now();

	if (!stopped) {
		stopped = 1;
		first = now;
	} else if (now - first >= HASTY) {
		signal(sig, SIG_DFL);
		raise(sig);
	}
}

static void catch_signals(void)
{
	static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
	/*
	 * A write that waits for its reader goes on: a part of a packet would make the file
	 * useless.
	 */
	struct sigaction stop = {.sa_handler = on_stop, .sa_flags = SA_RESTART};

	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
		sigaddset(&stop.sa_mask, ends[i]);
	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
		sigaction(ends[i], &stop, NULL);
}

/* If wrong is not NULL, says first what was wrong. */
static int usage(int status, const char *wrong)
{
	if (wrong)
		complain("%s", wrong);
	fputs("Usage: softhca capture NAME [-w FILE|-] [--count N] [--snap N] [--host K] [--qp "
	      "N]\n\n"
	      "Show the packets of a fabric, until Ctrl-C. With -w, write them to FILE for "
	      "Wireshark, or to\n"
	      "standard output for -w - (pcapng); otherwise print a line for each.\n\n"
	      "  -w FILE     write a file instead of lines\n"
	      "  --count N   end after N packets\n"
	      "  --snap N    keep the first N bytes of each packet\n"
	      "  --host K    packets that host K sends or gets; of datagrams to groups: sends\n"
	      "  --qp N      packets that QP number N sends or gets; of datagrams to groups: "
	      "sends\n\n"
	      "No program waits for a capture. Packets that come too fast for it are counted as "
	      "lost, at the end.\n"
	      "Example: softhca capture lab -w - | tshark -r -\n",
	      status ? stderr : stdout);
	return status;
}

struct options {
	const char *instance, *file;
	unsigned long count, snap, host, qpn;
	bool host_given, qp_given;
};

/* 0: it is none of the options; 1: it was one; -1 after a message. */
static int parse_option(int argc, char **argv, int *at, struct options *o)
{
	static const char *const names[] = {"-w", "--count", "--snap", "--host", "--qp"};
	const char *value;
	size_t i = 0;
	bool ok;

	while (i < 5 && !take_value(names[i], argc, argv, at, &value))
		i++;
	if (i == 5)
		return 0;
	if (!value) {
		complain("option %s needs a value behind it; softhca capture --help says which",
			 names[i]);
		return -1;
	}
	switch (i) {
	case 0:
		o->file = value;
		return 1;
	case 1:
		ok = parse_number("--count", value, 1, ULONG_MAX, &o->count);
		break;
	case 2:
		ok = parse_number("--snap", value, 32, 65535, &o->snap);
		break;
	case 3:
		o->host_given = ok = parse_host(value, &o->host);
		break;
	default:
		o->qp_given = ok = parse_qp(value, 0, &o->qpn);
	}
	return ok ? 1 : -1;
}

/* 0, or an exit status after a message. */
static int parse(int argc, char **argv, struct options *o)
{
	for (int i = 1; i < argc; i++) {
		int known = parse_option(argc, argv, &i, o);

		if (known < 0)
			return EXIT_USAGE;
		if (known)
			continue;
		if (argv[i][0] == '-') {
			complain(
				"softhca capture takes the options -w, --count, --snap, --host and "
				"--qp, not \"%s\"",
				argv[i]);
			return EXIT_USAGE;
		}
		if (o->instance) {
			complain("leave \"%s\" out: softhca capture takes one instance", argv[i]);
			return EXIT_USAGE;
		}
		o->instance = argv[i];
	}
	return o->instance ? 0
			   : usage(EXIT_USAGE, "which instance? softhca show lists those that run");
}

/* Has the instance a wire, and which addresses are on it? */
static int find_wire(int memory, struct sh_wire_config *wire)
{
	const struct sh_instance *inst = mmap(NULL, SH_CTX_OFF, PROT_READ, MAP_SHARED, memory, 0);

	if (inst == MAP_FAILED)
		return -errno;
	*wire = (struct sh_wire_config){.n = inst->wire.last_lid != 0,
					.network = inst->wire.network,
					.last_lid = inst->wire.last_lid,
					.list = inst->wire.list};
	munmap((void *)(uintptr_t)inst, SH_CTX_OFF);
	return 0;
}

/* Maps what the reader needs: the tap, and the slots of threads. */
static int map_tap(int memory, struct sh_tap_reader *r)
{
	void *exec = mmap(NULL, SH_EVQ_OFF - SH_EXEC_OFF, PROT_READ, MAP_SHARED, memory,
			  (off_t)SH_EXEC_OFF);
	void *tap;

	if (exec == MAP_FAILED)
		return -errno;
	tap = mmap(NULL, SH_TAP_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, memory,
		   (off_t)SH_TAP_OFF);
	if (tap == MAP_FAILED)
		return -errno;
	sh_tap_open(r, tap, exec);
	return 0;
}

/* These two return whether it was a packet. */
static bool emit_line(struct capture *c, uint64_t when)
{
	char line[TAPPED_COLUMNS + 1];
	bool good = tapped_line(&c->tapped, when, line);

	if (fprintf(c->out, "%s\n", line) < 0)
		c->err = -EIO;
	return good;
}

static bool emit_packet(struct capture *c, uint64_t when)
{
	unsigned char bytes[TAPPED_BYTES];
	char note[TAPPED_NOTE];
	size_t n, have = tapped_bytes(&c->tapped, &c->wire, c->payload, bytes, &n);

	/* The file has no place for a packet of a wire that is not there. */
	if (!have || (tapped_is_roce(&c->tapped) && !c->wire.n))
		return false;
	if (c->snap && have > c->snap)
		have = c->snap;
	if (tapped_is_roce(&c->tapped))
		c->err = pcapng_wire_packet(c->out, when, bytes, have, n, c->tapped.wire,
					    tapped_note(&c->tapped, note));
	else
		c->err = pcapng_packet(c->out, when, bytes, have, n, tapped_note(&c->tapped, note));
	return true;
}

/* Is the capture over? */
static bool over(const struct capture *c)
{
	return c->err || (c->count && c->seen >= c->count);
}

static void emit(struct capture *c)
{
	uint64_t when = c->tapped.when + c->realtime;

	if (over(c))
		return;
	if (c->lines ? emit_line(c, when) : emit_packet(c, when))
		c->seen++;
	else
		c->damaged++;
}

/* Takes records of senders that were stopped, and have gone on. */
static void take_late(struct capture *c)
{
	while (!over(c) && sh_tap_late(&c->reader, &c->tapped, c->payload))
		emit(c);
}

/* Takes what is there, up to a bound. Returns how many packets there were. */
static unsigned int take(struct capture *c, uint64_t patience)
{
	uint64_t now = sh_now();
	unsigned int n = 0;

	while (n < BATCH && !over(c) &&
	       sh_tap_next(&c->reader, now, patience, &c->tapped, c->payload)) {
		emit(c);
		n++;
	}
	if (now - c->looked >= LATE_EACH) {
		c->looked = now;
		take_late(c);
	}
	return n;
}

static void flush(struct capture *c)
{
	if (!c->err && fflush(c->out))
		c->err = -errno;
}

/* Until a signal, the count, or the end of the instance. */
static void follow(struct capture *c, int control)
{
	struct pollfd daemon = {.fd = control, .events = POLLIN};

	while (!stopped && !over(c)) {
		if (take(c, PATIENCE))
			continue;
		flush(c);
		/* Nothing comes on this connection, so it is readable when the daemon has ended. */
		if (poll(&daemon, 1, 2) > 0)
			break;
	}
}

/*
 * What was in the ring, or on its way, when the capture ended. Its output may be slow, so no clock
 * ends this; sh_tap_next() passes over what does not become ready.
 */
static void finish(struct capture *c)
{
	uint64_t end = __atomic_load_n(&c->reader.tap->head, __ATOMIC_ACQUIRE);

	/* Any program of the instance can write there. */
	if ((int64_t)(end - c->reader.at) > SH_TAP_SLOTS)
		end = c->reader.at + SH_TAP_SLOTS;
	while (!over(c) && (int64_t)(end - c->reader.at) > 0)
		if (!take(c, PATIENCE))
			(void)poll(NULL, 0, 1);
	take_late(c);
}

static void report(struct capture *c, uint64_t lost)
{
	uint64_t damaged = c->damaged + c->reader.damaged;

	if (!c->lines && !c->err)
		c->err = pcapng_end(c->out, c->began, sh_since_1970(), c->seen + lost + damaged,
				    lost + damaged);
	flush(c);
	complain("%" PRIu64 " packet%s captured, %" PRIu64 " lost%s", c->seen, plural(c->seen),
		 lost,
		 lost ? ": they came faster than this command took them; --host, --qp and --snap "
			"make them fewer and shorter"
		      : "");
	if (damaged)
		complain("%" PRIu64 " more %s damaged: a program of the instance has written over "
			 "device memory",
			 damaged, damaged == 1 ? "was" : "were");
}

static int run(struct capture *c, const struct options *o, int control)
{
	struct sh_capture_msg msg = {
		.type = SH_MSG_CAPTURE,
		.on = 1,
		.snap = o->snap ? (uint32_t)o->snap : SH_TAP_PAYLOAD,
		.host = o->host_given ? (uint32_t)o->host : SH_TAP_ANY,
		.qpn = o->qp_given ? (uint32_t)o->qpn : SH_TAP_ANY,
	};
	uint64_t lost;
	int memory, status, err;

	/* A line tells nothing of payloads. */
	if (c->lines)
		msg.snap = 0;
	catch_signals();
	status = ask(control, &msg, sizeof(msg), &memory);
	if (status)
		return status;
	err = map_tap(memory, &c->reader) ?: find_wire(memory, &c->wire);
	close(memory);
	if (err) {
		complain("cannot map the packets: %s", strerror(-err));
		return EXIT_SELF;
	}
	c->began = sh_since_1970();
	c->realtime = c->began - sh_now();
	if (!c->lines)
		c->err = pcapng_begin(c->out, "softhca, a software ConnectX", c->wire.n != 0);
	flush(c);
	follow(c, control);
	/* By itself if the daemon has ended. */
	msg.on = 0;
	if (send(control, &msg, sizeof(msg), MSG_NOSIGNAL) > 0)
		(void)recv(control, &(struct sh_status){0}, sizeof(struct sh_status), 0);
	lost = __atomic_load_n(&c->reader.tap->lost, __ATOMIC_RELAXED);
	finish(c);
	report(c, lost);
	if (!c->err)
		return 0;
	complain("cannot write the packets: %s", strerror(-c->err));
	return EXIT_SELF;
}

/* Where packets go: NULL after a message. */
static FILE *open_output(const char *file)
{
	FILE *out;

	if (!file)
		return stdout;
	if (!strcmp(file, "-")) {
		if (!isatty(STDOUT_FILENO))
			return stdout;
		complain("a terminal cannot show pcapng: leave -w - out for lines, or pipe it, as "
			 "in "
			 "softhca capture NAME -w - | tshark -r -");
		return NULL;
	}
	out = fopen(file, "we");
	if (!out)
		complain("cannot write %s: %s", file, strerror(errno));
	return out;
}

int verb_capture(int argc, char **argv)
{
	struct capture *c;
	struct options o = {0};
	struct sh_hello_reply hello;
	char dir[PATH_MAX];
	int status, control;

	for (int i = 1; i < argc; i++)
		if (is_help(argv[i]))
			return usage(0, NULL);
	status = parse(argc, argv, &o);
	if (status)
		return status;
	control = reach(o.instance, dir, &hello);
	if (control < 0)
		return EXIT_SELF;
	c = calloc(1, sizeof(*c));
	status = EXIT_SELF;
	if (!c) {
		complain("not enough memory");
		goto close;
	}
	c->lines = !o.file;
	c->count = o.count;
	c->snap = o.snap;
	c->out = open_output(o.file);
	if (!c->out)
		goto free;
	status = run(c, &o, control);
	if (c->out != stdout && fclose(c->out) && !status) {
		complain("cannot write %s: %s", o.file, strerror(errno));
		status = EXIT_SELF;
	}
free:
	free(c);
close:
	close(control);
	return status;
}
