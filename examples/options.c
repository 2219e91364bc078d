// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The command line of the ping-pong tools, with one table for the parser and the help text, and the
 * lines about time. The table is the only state. */

#include <config.h>

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "pingpong.h"
#include "tool.h"

enum unit { FLAG, NUMBER, STRING };

/*
 * In the order of the help text. LETTER is 0 for options without one: see letter_of(). PP_ITERS and
 * PP_NUM_TESTS have the same letter: no tool has both.
 */
static const struct {
	const char *name;
	const char *arg;
	const char *help;
	unsigned long min, max;
	char letter;
	enum unit unit;
} table[PP_OPT_COUNT] = {
	[PP_PORT] = {"port", "port", "listen on/connect to port <port>", 1, 65535, 'p', NUMBER},
	[PP_IB_DEV] = {"ib-dev", "dev", "use IB device <dev> (default first device found)", 0, 0,
		       'd', STRING},
	[PP_IB_PORT] = {"ib-port", "port", "use port <port> of IB device", 1, 255, 'i', NUMBER},
	[PP_SIZE] = {"size", "size", "size of message to exchange", 0, 1u << 31, 's', NUMBER},
	[PP_MTU] = {"mtu", "size", "path MTU", 256, 4096, 'm', NUMBER},
	[PP_NUM_QP] = {"num-qp", "num", "number of QPs to use", 1, PP_SRQ_QPS, 'q', NUMBER},
	[PP_RX_DEPTH] = {"rx-depth", "dep", "number of receives to post at a time", 1, 1 << 20, 'r',
			 NUMBER},
	[PP_CLIENTS] = {"clients", "n", "number of clients, on the server", 1, 16384, 'c', NUMBER},
	[PP_ITERS] = {"iters", "iters", "number of exchanges", 1, INT32_MAX, 'n', NUMBER},
	[PP_NUM_TESTS] = {"num_tests", "n", "number of tests per client", 1, INT32_MAX / 16384, 'n',
			  NUMBER},
	[PP_SL] = {"sl", "sl", "service level value", 0, 15, 'l', NUMBER},
	[PP_EVENTS] = {"events", NULL, "sleep on CQ events (default poll)", 0, 0, 'e', FLAG},
	[PP_GID_IDX] = {"gid-idx", "gid index", "local port gid index", 0, 255, 'g', NUMBER},
	[PP_ODP] = {"odp", NULL, "on demand paging", 0, 0, 'o', FLAG},
	[PP_IODP] = {"iodp", NULL, "implicit on demand paging", 0, 0, 'O', FLAG},
	[PP_PREFETCH] = {"prefetch", NULL, "prefetching for on demand paging", 0, 0, 'P', FLAG},
	[PP_TS] = {"ts", NULL, "completion time stamps", 0, 0, 't', FLAG},
	[PP_DM] = {"dm", NULL, "device memory", 0, 0, 'j', FLAG},
	[PP_NEW_SEND] = {"new_send", NULL, "the later post send API", 0, 0, 'N', FLAG},
	[PP_CHK] = {"chk", NULL, "check the contents of every message (on both sides)", 0, 0, 'c',
		    FLAG},
	[PP_VERIFY] = {"verify", NULL, "check the contents of every message (on both sides)", 0, 0,
		       0, FLAG},
	[PP_DOMAIN] = {"domain", "file",
		       "share the XRC domain of <file> (default: clients /tmp/xrc_domain, the "
		       "server its own)",
		       0, 0, 0, STRING},
	[PP_TIMEOUT] = {"timeout", "s", "fail after <s> seconds without progress (default wait)", 1,
			86400, 0, NUMBER},
	[PP_HELP] = {"help", NULL, "print this text and exit", 0, 0, 0, FLAG},
	[PP_VERSION] = {"version", NULL, "print the version and exit", 0, 0, 0, FLAG},
};

/* Options of later generations. The parser knows them to refuse them with a reason. */
#define DECLINED                                                                                   \
	(PP_BIT(PP_ODP) | PP_BIT(PP_IODP) | PP_BIT(PP_PREFETCH) | PP_BIT(PP_TS) | PP_BIT(PP_DM) |  \
	 PP_BIT(PP_NEW_SEND))

/* -c has always been the number of clients where there is one, and --chk elsewhere. */
static char letter_of(enum pp_opt o, unsigned int known)
{
	return o == PP_CHK && known & PP_BIT(PP_CLIENTS) ? 0 : table[o].letter;
}

static int mtu_bytes(enum ibv_mtu mtu)
{
	return 128 << mtu;
}

static void print_default(enum pp_opt o, const struct pp_options *opt)
{
	switch (o) {
	case PP_PORT:
		printf(" (default %d)", opt->port);
		break;
	case PP_IB_PORT:
		printf(" (default %d)", opt->ib_port);
		break;
	case PP_SIZE:
		printf(" (default %" PRIu32 ")", opt->size);
		break;
	case PP_MTU:
		printf(" (default %d)", mtu_bytes(opt->mtu));
		break;
	case PP_NUM_QP:
		printf(" (default %d)", opt->num_qp);
		break;
	case PP_RX_DEPTH:
		printf(" (default %d)", opt->rx_depth);
		break;
	case PP_CLIENTS:
		printf(" (default %d)", opt->clients);
		break;
	case PP_ITERS:
	case PP_NUM_TESTS:
		printf(" (default %d)", opt->iters);
		break;
	default:
		break;
	}
}

static void usage(const char *prog, unsigned int known, const struct pp_options *opt)
{
	printf("Usage:\n");
	printf("  %s            start a server and wait for connection\n", prog);
	printf("  %s <host>     connect to server at <host>\n\nOptions:\n", prog);
	for (int o = 0; o < PP_OPT_COUNT; o++) {
		char left[40], letter = letter_of(o, known);
		int n = 0;

		if (!(known & ~DECLINED & PP_BIT(o)))
			continue;
		n += letter ? snprintf(left, sizeof left, "-%c, ", letter)
			    : snprintf(left, sizeof left, "    ");
		n += snprintf(left + n, sizeof left - n, "--%s", table[o].name);
		if (table[o].arg)
			snprintf(left + n, sizeof left - n, "=<%s>", table[o].arg);
		printf("  %-22s %s", left, table[o].help);
		print_default(o, opt);
		putchar('\n');
	}
}

static _Noreturn void bad_usage(const char *prog)
{
	fprintf(stderr, "  `%s --help` lists the options.\n", prog);
	exit(1);
}

static unsigned long number(const char *prog, enum pp_opt o, const char *text)
{
	unsigned long value;
	char *end;

	errno = 0;
	value = strtoul(text, &end, 0);
	if (errno || end == text || *end || strchr(text, '-') || value < table[o].min ||
	    value > table[o].max) {
		fprintf(stderr, "%s: --%s takes a number from %lu to %lu, not '%s'\n", prog,
			table[o].name, table[o].min, table[o].max, text);
		bad_usage(prog);
	}
	return value;
}

static enum ibv_mtu mtu_value(const char *prog, unsigned long bytes)
{
	for (enum ibv_mtu mtu = IBV_MTU_256; mtu <= IBV_MTU_4096; mtu++)
		if (mtu_bytes(mtu) == (int)bytes)
			return mtu;
	fprintf(stderr, "%s: --mtu takes 256, 512, 1024, 2048 or 4096, not %lu\n", prog, bytes);
	bad_usage(prog);
}

static void apply(const char *prog, enum pp_opt o, const char *text, unsigned int known,
		  struct pp_options *opt, const struct pp_options *defaults)
{
	unsigned long value = table[o].unit == NUMBER ? number(prog, o, text) : 0;

	if (PP_BIT(o) & DECLINED) {
		fprintf(stderr,
			"%s: --%s is not available: %s came with later generations of verbs than "
			"this library's\n",
			prog, table[o].name, table[o].help);
		bad_usage(prog);
	}
	switch (o) {
	case PP_PORT:
		opt->port = value;
		break;
	case PP_IB_DEV:
		opt->ib_dev = text;
		break;
	case PP_IB_PORT:
		opt->ib_port = value;
		break;
	case PP_SIZE:
		opt->size = value;
		break;
	case PP_MTU:
		opt->mtu = mtu_value(prog, value);
		break;
	case PP_NUM_QP:
		opt->num_qp = value;
		break;
	case PP_RX_DEPTH:
		opt->rx_depth = value;
		break;
	case PP_CLIENTS:
		opt->clients = value;
		break;
	case PP_ITERS:
	case PP_NUM_TESTS:
		opt->iters = value;
		break;
	case PP_SL:
		opt->sl = value;
		break;
	case PP_EVENTS:
		opt->events = true;
		break;
	case PP_GID_IDX:
		opt->gid_idx = value;
		break;
	case PP_CHK:
	case PP_VERIFY:
		opt->verify = true;
		break;
	case PP_DOMAIN:
		opt->domain = text;
		break;
	case PP_TIMEOUT:
		opt->timeout = value;
		break;
	case PP_HELP:
		usage(prog, known, defaults);
		exit(0);
	case PP_VERSION:
		printf("%s (%s) %s\n", prog, PACKAGE_NAME, PACKAGE_VERSION);
		exit(0);
	default:
		break;
	}
}

void pp_parse(int argc, char **argv, unsigned int known, struct pp_options *opt)
{
	const struct pp_options defaults = *opt;
	const char *prog = tool_name(argv[0]);
	struct option longs[PP_OPT_COUNT + 1] = {};
	char shorts[2 * PP_OPT_COUNT + 1];
	int by_letter[128] = {};
	int nl = 0, ns = 0, c;

	for (int o = 0; o < PP_OPT_COUNT; o++) {
		char letter = letter_of(o, known);

		if (!(known & PP_BIT(o)))
			continue;
		longs[nl++] = (struct option){table[o].name,
					      table[o].arg ? required_argument : no_argument, NULL,
					      256 + o};
		if (!letter)
			continue;
		by_letter[(int)letter] = o;
		shorts[ns++] = letter;
		if (table[o].arg)
			shorts[ns++] = ':';
	}
	shorts[ns] = '\0';

	while ((c = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
		if (c == '?')
			bad_usage(prog);
		apply(prog, c >= 256 ? c - 256 : by_letter[c], optarg, known, opt, &defaults);
	}
	if (optind < argc - 1) {
		fprintf(stderr, "%s: takes at most one host name, but there is '%s' after '%s'\n",
			prog, argv[optind + 1], argv[optind]);
		bad_usage(prog);
	}
	opt->server = argv[optind]; /* NULL at the end of argv */
}

/* ---- Clock ---- */

uint64_t pp_now_usec(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000ull + now.tv_nsec / 1000;
}

void pp_progress_start(struct pp_progress *progress)
{
	*progress =
		(struct pp_progress){.on = isatty(STDERR_FILENO), .next = pp_now_usec() + 1000000};
}

void pp_progress_step(struct pp_progress *progress, int done, int total)
{
	uint64_t now;

	if (!progress->on)
		return;
	now = pp_now_usec();
	if (now < progress->next)
		return;
	progress->next = now + 500000;
	progress->shown = true;
	fprintf(stderr, "\r  %d of %d messages received (%d%%) ", done, total,
		(int)(100ll * done / total));
}

void pp_progress_end(struct pp_progress *progress)
{
	if (progress->shown)
		fprintf(stderr, "\r\033[K");
	progress->shown = false;
}

void pp_print_rate(uint32_t size, int iters, uint64_t usec)
{
	const long long bytes = 2ll * size * iters;
	const double time = usec ? usec : 1;

	printf("%lld bytes in %.2f seconds = %.2f Mbit/sec\n", bytes, usec / 1e6,
	       bytes * 8. / time);
	printf("%d iters in %.2f seconds = %.2f usec/iter\n", iters, usec / 1e6,
	       (double)usec / iters);
}
