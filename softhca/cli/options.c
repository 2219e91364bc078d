// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The options of `run` and `start`. */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plural.h"
#include "softhca.h"
#include "softhca/wire/address.h"

bool parse_number(const char *what, const char *text, unsigned long min, unsigned long max,
		  unsigned long *value)
{
	char *end;

	errno = 0;
	*value = strtoul(text, &end, 0);
	if (errno || end == text || *end || strchr(text, '-') || *value < min || *value > max) {
		complain("%s must be a number from %lu to %lu, not \"%s\"", what, min, max, text);
		return false;
	}
	return true;
}

bool parse_qp(const char *text, unsigned long min, unsigned long *qpn)
{
	/*
	 * Tools print "QPN 000048", too, which is no decimal number, and strtoul() takes it for
	 * octal.
	 */
	if (text[0] == '0' && isdigit((unsigned char)text[1])) {
		complain(
			"--qp takes 0x000048 or 72, not \"%s\": if that is hexadecimal, write 0x%s",
			text, text);
		return false;
	}
	return parse_number("--qp", text, min, 0xffffff, qpn);
}

bool parse_length(const char *what, const char *text, uint64_t min_ns, uint64_t max_ns,
		  uint64_t *ns)
{
	static const struct {
		const char *unit;
		double ns;
	} units[] = {{"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
	char *end;
	double value = strtod(text, &end);

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (end != text && !strcmp(end, units[i].unit) &&
		    value * units[i].ns >= (double)min_ns &&
		    value * units[i].ns <= (double)max_ns) {
			*ns = (uint64_t)llround(value * units[i].ns);
			return true;
		}
	complain("%s, with its unit (us, ms, s), not \"%s\"", what, text);
	return false;
}

bool take_value(const char *option, int argc, char **argv, int *at, const char **value)
{
	size_t len = strlen(option);

	if (strncmp(argv[*at], option, len) || (argv[*at][len] && argv[*at][len] != '='))
		return false;
	if (argv[*at][len])
		*value = argv[*at] + len + 1;
	else
		*value = *at + 1 < argc ? argv[++*at] : NULL;
	return true;
}

bool parse_host(const char *text, unsigned long *host)
{
	const char *digits = strncmp(text, "host", 4) || !text[4] ? text : text + 4;

	return parse_number("--host", digits, 0, SH_MAX_HCAS - 1, host);
}

static void trace_usage(void)
{
	puts("Usage: softhca trace [OPTIONS] [--] COMMAND [ARGUMENT...]\n\n"
	     "Run a command as softhca run does, and print each verb that it and its children "
	     "call: thread,\n"
	     "time, arguments, result, errno, seconds. Works with any libibverbs. The exit status "
	     "is "
	     "that of\n"
	     "softhca run.\n\n"
	     "  -o FILE           print into FILE instead of standard error\n"
	     "  -w FILE           write a time line of verbs, packets and completions for Perfetto "
	     "(JSON)\n"
	     "  --summary         print a table at the end: calls, errors and time of each verb\n");
}

static void usage(const char *verb)
{
	bool start = !strcmp(verb, "start"), trace = !strcmp(verb, "trace");

	if (trace)
		trace_usage();
	if (start)
		puts("Usage: softhca start [OPTIONS] NAME\n\n"
		     "Start an instance that runs until softhca stop NAME.\n");
	if (!start && !trace)
		puts("Usage: softhca run [OPTIONS] [--] COMMAND [ARGUMENT...]\n\n"
		     "Run a command on a software HCA, in an instance that is made for it. The "
		     "instance ends with the\n"
		     "command and with the processes that the command left in the background. The "
		     "exit status is the\n"
		     "command's; 128 + N if signal N killed it; 125 if softhca itself failed; 126 "
		     "or 127 if the command\n"
		     "cannot be run.\n");
	if (!start)
		puts("  --instance NAME   run in this instance, which softhca start has started\n"
		     "  --host K          run on this host (default 0; outside of an instance, "
		     "what SOFTHCA_HOST says)\n"
		     "  --libibverbs auto|ours|system   which libibverbs and librdmacm programs "
		     "get "
		     "(default auto:\n"
		     "                    softhca's own if the command was linked with OFED's and "
		     "the "
		     "loader does not\n"
		     "                    find that)\n"
		     "  --stats           print at the end what went over each HCA, and what "
		     "programs left open\n"
		     "  --require-traffic exit with 125 if the command succeeds and nothing went "
		     "over an HCA");
	puts("  --hosts N         emulated hosts on one fabric (default 1)\n"
	     "  --hcas N          HCAs per host (default 1)\n"
	     "  --ports 1|2       ports per HCA (default 1)\n"
	     "  --kernel ofed|mainline   kernel whose commands the device files accept (default "
	     "mainline)\n"
	     "  --mmio kick|trap  when the device notices doorbells: after each post, or at each\n"
	     "                    store (default kick)\n"
	     "  --driver-abi 2|3|4   version of the mlx4 driver's commands (default 3; 4 with "
	     "--cqe-size 64)\n"
	     "  --cqe-size 32|64  size of completion queue entries (default 32)\n"
	     "  --wire ADDRESS/PREFIX[,ADDRESS...]  one fabric with the instances at the other "
	     "addresses\n"
	     "                    of that network, over UDP: an address of this machine, of IPv4 "
	     "or "
	     "IPv6,\n"
	     "                    for each port, host after host, which decides its LID\n"
	     "  --peer LID=ADDRESS[,LID=ADDRESS...]  this address outside of that network is on "
	     "the fabric,\n"
	     "                    too, with this LID; at both ends; can be repeated\n"
	     "  --lid LID[,LID...]  LIDs of the ports, where the addresses of --wire give none; "
	     "others name\n"
	     "                    these ports with --peer\n"
	     "  --wire-loopback   for tests: each packet becomes bytes of RoCEv2, which are "
	     "checked and\n"
	     "                    read again\n"
	     "  --cm-timeout TIME how long rdma_cm waits for the answer to a message before it "
	     "sends "
	     "it again, up\n"
	     "                    to 15 times (1ms to 60s, default 4.3s)\n"
	     "  --help");
}

enum {
	OPT_HOSTS = 256,
	OPT_HCAS,
	OPT_PORTS,
	OPT_KERNEL,
	OPT_MMIO,
	OPT_ABI,
	OPT_CQE,
	OPT_CM_TIMEOUT,
	OPT_WIRE,
	OPT_PEER,
	OPT_LID,
	OPT_LOOPBACK,
	OPT_INSTANCE,
	OPT_HOST,
	OPT_LIBRARY,
	OPT_STATS,
	OPT_TRAFFIC,
	OPT_SUMMARY
};

static const struct option options[] = {
	{"hosts", required_argument, NULL, OPT_HOSTS},
	{"hcas", required_argument, NULL, OPT_HCAS},
	{"ports", required_argument, NULL, OPT_PORTS},
	{"kernel", required_argument, NULL, OPT_KERNEL},
	{"mmio", required_argument, NULL, OPT_MMIO},
	{"driver-abi", required_argument, NULL, OPT_ABI},
	{"cqe-size", required_argument, NULL, OPT_CQE},
	{"wire", required_argument, NULL, OPT_WIRE},
	{"peer", required_argument, NULL, OPT_PEER},
	{"lid", required_argument, NULL, OPT_LID},
	{"wire-loopback", no_argument, NULL, OPT_LOOPBACK},
	{"cm-timeout", required_argument, NULL, OPT_CM_TIMEOUT},
	{"instance", required_argument, NULL, OPT_INSTANCE},
	{"host", required_argument, NULL, OPT_HOST},
	{"libibverbs", required_argument, NULL, OPT_LIBRARY},
	{"stats", no_argument, NULL, OPT_STATS},
	{"require-traffic", no_argument, NULL, OPT_TRAFFIC},
	{"summary", no_argument, NULL, OPT_SUMMARY},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

/* Returns 0 for the first word, 1 for the second, or -1 after a message. */
static int parse_word(const char *what, const char *text, const char *first, const char *second)
{
	if (!strcmp(text, first))
		return 0;
	if (!strcmp(text, second))
		return 1;
	complain("%s %s or %s, not \"%s\"", what, first, second, text);
	return -1;
}

/* Options that say nothing about the instance: only run has them. */
static bool of_run_alone(int option)
{
	return option == OPT_HOST || option == OPT_LIBRARY || option == OPT_STATS ||
	       option == OPT_TRAFFIC;
}

static bool of_trace_alone(int option)
{
	return option == OPT_SUMMARY || option == 'o' || option == 'w';
}

static bool take_peer(const char *arg, struct sh_wire_words *words)
{
	int n = 0;

	while (words->peers[n])
		n++;
	if (n < SH_WIRE_PEERS) {
		words->peers[n] = arg;
		return true;
	}
	complain("--peer: there are more than %d peers: name fewer", SH_WIRE_PEERS);
	exit(EXIT_SELF);
}

/* Where the wire leads. Ends the process after a message. */
static void read_wire(struct run_options *opt)
{
	const struct sh_wire_words *words = &opt->words;
	char why[256];

	if (words->wire && sh_wire_parse(words, &opt->device.wire, why, sizeof(why)))
		return;
	if (words->wire)
		complain("%s", why);
	else if (words->lids || words->peers[0])
		complain("%s is about a wire, and the instance has none: name its own address, "
			 "too, with --wire ADDRESS/PREFIX",
			 words->lids ? "--lid" : "--peer");
	else
		return;
	exit(EXIT_SELF);
}

static bool take_option(int option, const char *arg, struct run_options *opt)
{
	unsigned long value;
	int word;

	switch (option) {
	case OPT_HOSTS:
		if (!parse_number("--hosts", arg, 1, SH_MAX_HCAS, &value))
			return false;
		opt->device.hosts = value;
		return true;
	case OPT_HCAS:
		if (!parse_number("--hcas", arg, 1, 32, &value))
			return false;
		opt->device.hcas_per_host = value;
		return true;
	case OPT_PORTS:
		if (!parse_number("--ports", arg, 1, SH_MAX_PORTS, &value))
			return false;
		opt->device.ports = value;
		return true;
	case OPT_KERNEL:
		word = parse_word("--kernel takes", arg, "ofed", "mainline");
		opt->device.face = word == 1 ? SH_FACE_MAINLINE : SH_FACE_OFED;
		return word >= 0;
	case OPT_MMIO:
		word = parse_word("--mmio takes", arg, "kick", "trap");
#ifndef HAVE_TRAP
		if (word == 1) {
			complain("--mmio trap works on x86-64 only: use kick on this machine");
			return false;
		}
#endif
		opt->device.trap = word == 1;
		opt->mmio = arg;
		return word >= 0;
	case OPT_ABI:
		if (!parse_number("--driver-abi", arg, 2, 4, &value))
			return false;
		opt->device.driver_abi = value;
		return true;
	case OPT_CQE:
		word = parse_word("--cqe-size takes", arg, "32", "64");
		opt->device.cqe_size = word == 1 ? 64 : 32;
		return word >= 0;
	case OPT_CM_TIMEOUT:
		return parse_length("--cm-timeout must be from 1ms to 60s", arg, 1000000,
				    UINT64_C(60000000000), &opt->cm_timeout_ns);
	case OPT_WIRE:
		opt->words.wire = arg;
		return true;
	case OPT_LID:
		opt->words.lids = arg;
		return true;
	case OPT_PEER:
		return take_peer(arg, &opt->words);
	case OPT_LOOPBACK:
		return opt->device.loopback = true;
	case OPT_HOST:
		if (!parse_host(arg, &value))
			return false;
		opt->host = value;
		opt->host_given = true;
		return true;
	case OPT_LIBRARY:
		if (!strcmp(arg, "auto")) {
			opt->library = LIBRARY_AUTO;
			return true;
		}
		word = parse_word("--libibverbs takes auto,", arg, "ours", "system");
		opt->library = word == 1 ? LIBRARY_SYSTEM : LIBRARY_OURS;
		return word >= 0;
	case OPT_STATS:
		return opt->stats = true;
	case OPT_TRAFFIC:
		return opt->require_traffic = true;
	case OPT_SUMMARY:
		return opt->summary = true;
	case 'o':
		opt->trace_out = arg;
		return true;
	case 'w':
		opt->trace_json = arg;
		return true;
	default:
		opt->instance = arg;
		return true;
	}
}

/* Checks the values together, and chooses the driver's ABI if none was given. */
static bool consistent(struct run_options *opt, bool shaped, bool start)
{
	if (start && opt->instance) {
		complain("--instance is an option of softhca run; give softhca start the name as "
			 "its last "
			 "argument");
		return false;
	}
	if (opt->instance && shaped) {
		complain("the hosts, kernel and device of a running instance cannot be changed: of "
			 "the options for "
			 "instances, use only --host and --mmio with --instance");
		return false;
	}
	read_wire(opt);
	if (!opt->instance && opt->host >= opt->device.hosts) {
		complain("there is no host %u: the instance is to have %u host%s, counted from 0; "
			 "choose a lower --host, or more --hosts",
			 opt->host, opt->device.hosts, opt->device.hosts == 1 ? "" : "s");
		return false;
	}
	if (opt->device.hosts * opt->device.hcas_per_host > SH_MAX_HCAS) {
		complain("%u hosts with %u HCAs each are more than the %d HCAs that an instance "
			 "can have: lower --hosts or "
			 "--hcas",
			 opt->device.hosts, opt->device.hcas_per_host, SH_MAX_HCAS);
		return false;
	}
	if (opt->device.wire.n && opt->device.loopback) {
		complain("--wire and --wire-loopback do not go together: packets of an instance "
			 "with a wire leave it as bytes anyway");
		return false;
	}
	if (opt->device.wire.n && opt->device.wire.n != opt->device.hosts *
								opt->device.hcas_per_host *
								opt->device.ports) {
		unsigned int ports =
			opt->device.hosts * opt->device.hcas_per_host * opt->device.ports;

		complain("--wire names %u address%s, and the instance has %u port%s: name one "
			 "for each port, in their order",
			 opt->device.wire.n, opt->device.wire.n == 1 ? "" : "es", ports,
			 plural(ports));
		return false;
	}
	if (!opt->device.driver_abi)
		opt->device.driver_abi = opt->device.cqe_size == 64 ? 4 : 3;
	if (opt->device.cqe_size == 64 && opt->device.driver_abi < 4) {
		complain("--cqe-size 64 needs --driver-abi 4: older versions cannot tell the "
			 "library the size");
		return false;
	}
	if (opt->device.face == SH_FACE_MAINLINE && opt->device.driver_abi < 3) {
		complain("--driver-abi 2 needs --kernel ofed: no mainline driver had that version");
		return false;
	}
	return true;
}

/* What getopt_long() did not take: which of its reasons it was. */
static void complain_option(int what, const char *word, const char *verb)
{
	size_t len = strcspn(word, "=");
	int like = 0;

	if (what == ':') {
		complain("option %s needs a value behind it; softhca %s --help says which", word,
			 verb);
		return;
	}
	/*
	 * optopt has an option that getopt_long() knows, and that came with a value it does not
	 * take.
	 */
	if (optopt >= OPT_HOSTS || (optopt == 'h' && word[len])) {
		complain("option %.*s takes no value: leave \"%s\" out", (int)len, word,
			 word + len);
		return;
	}
	for (const struct option *o = options; o->name; o++)
		like += !strncmp(word, "--", 2) && len > 2 && !strncmp(o->name, word + 2, len - 2);
	if (like > 1)
		complain("option %.*s can be any of %d: write more of it; softhca %s --help lists "
			 "the options",
			 (int)len, word, like, verb);
	else if (word[0] == '-' && word[1] == 'n' && !strcmp(verb, "run"))
		complain("option -n is unknown: softhca run starts one command; if that is a "
			 "launcher, its options stand behind it (softhca run -- mpirun -n 4 "
			 "./program), and --hosts N makes N hosts");
	else if (word[0] == '-' && word[1] != '-')
		complain("option -%c is unknown; softhca %s --help lists the options", optopt,
			 verb);
	else
		complain("option %.*s is unknown; softhca %s --help lists the options", (int)len,
			 word, verb);
}

int parse_run_options(int argc, char **argv, bool start, struct run_options *opt)
{
	bool shaped = false;
	int option;

	*opt = (struct run_options){
		.device = {.hosts = 1,
			   .hcas_per_host = 1,
			   .ports = 1,
			   .cqe_size = 32,
			   .face = SH_FACE_MAINLINE},
		.trace = !strcmp(argv[0], "trace"),
	};
	opterr = 0;
	optind = 1;
	for (;;) {
		int word = optind; /* getopt_long() may stay at it, or go past it */

		option = getopt_long(argc, argv, opt->trace ? "+:ho:w:" : "+:h", options, NULL);
		if (option == -1)
			break;
		if (option == 'h') {
			usage(argv[0]);
			return -2;
		}
		if (option == '?' || option == ':') {
			complain_option(option, argv[word], argv[0]);
			return -1;
		}
		if (start && of_run_alone(option)) {
			complain("%s is an option of softhca run; leave it out", argv[word]);
			return -1;
		}
		if (!opt->trace && of_trace_alone(option)) {
			complain("%s is an option of softhca trace; leave it out", argv[word]);
			return -1;
		}
		if (!take_option(option, optarg, opt))
			return -1;
		shaped |= option != OPT_INSTANCE && option != OPT_MMIO && !of_run_alone(option) &&
			  !of_trace_alone(option);
	}
	return consistent(opt, shaped, start) ? optind : -1;
}
