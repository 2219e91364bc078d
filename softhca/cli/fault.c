// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* `softhca fault`: what happens to packets, and to which. The daemon looks up hosts and QPs. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softhca.h"
#include "softhca/device/memory/fault_rule.h"

/*
 * If wrong is not NULL, says what was wrong, and the first lines alone: so it stays on the screen.
 */
static int usage(int status, const char *wrong)
{
	if (wrong)
		complain("%s", wrong);
	fputs("Usage: softhca fault NAME drop|duplicate|corrupt|cm-drop RATE|COUNT|off [SCOPE] "
	      "[--seed N]\n"
	      "       softhca fault NAME delay|jitter|reorder RATE|COUNT|off [LENGTH] [SCOPE] "
	      "[--seed N]\n"
	      "       softhca fault NAME rate BITS|off [LENGTH] [SCOPE]\n"
	      "       softhca fault NAME partition on|off [SCOPE]\n"
	      "       softhca fault NAME off [SCOPE]\n"
	      "       softhca fault NAME seed N\n"
	      "SCOPE: [--from END] [--to END] [--qp NUMBER]\n",
	      status ? stderr : stdout);
	if (wrong) {
		fputs("softhca fault --help says more.\n", stderr);
		return status;
	}
	fputs("\n"
	      "Drop, duplicate, corrupt or delay packets of the fabric. RATE is the share of all "
	      "packets\n"
	      "from now on that is hit (5% or 0.05). COUNT (a whole number without a sign) hits "
	      "the next\n"
	      "COUNT packets. A corrupted packet reaches its receiver with a wrong ICRC. LENGTH "
	      "(500us,\n"
	      "2ms, 1s) is how long delay holds a packet (100us until it is set); with jitter, "
	      "each waits\n"
	      "for a part of that, which the seed chooses. reorder holds a packet back until "
	      "another one\n"
	      "has passed, or for LENGTH (1ms). rate is what gets through in a second (10mbit; "
	      "also kbit,\n"
	      "gbit): packets wait for those before them, for LENGTH at most (20ms), and are "
	      "dropped\n"
	      "behind that. partition lets nothing through between hosts, in either "
	      "direction.\n\n"
	      "SCOPE limits a fault to packets that END sends (--from) or gets (--to), or that a "
	      "QP sends\n"
	      "or gets (--qp). END is a host (host0, host1, ...), or an address on the wire "
	      "(10.1.2.7).\n"
	      "With several of these, a packet must match all. QPs of different HCAs can have the "
	      "same\n"
	      "NUMBER: name a host as well.\n\n"
	      "cm-drop loses messages by which rdma_cm connects and disconnects; it takes no "
	      "QP.\n\n"
	      "A fault replaces the one of the same kind and SCOPE. The kind with off ends that "
	      "fault;\n"
	      "off ends all kinds with that SCOPE; off without SCOPE, or clear, ends all "
	      "faults.\n"
	      "If there is no such fault, softhca says so and exits with 0.\n\n"
	      "A seed, which softhca show prints, decides which packets a rate hits; seed N starts "
	      "the\n"
	      "sequence again from N.\n"
	      "Example: softhca fault lab drop 5%\n"
	      "         softhca fault lab drop 1% --from host0 --to host1\n"
	      "         softhca fault lab partition on --to 10.1.2.7\n",
	      status ? stderr : stdout);
	return status;
}

/*
 * Parses "5%", "0.05", "12" or "off", which is for this kind of fault of this instance. False after
 * a message.
 */
static bool parse_amount(const char *instance, const char *kind, const char *text,
			 struct sh_fault_msg *msg)
{
	char *end;
	double value = strtod(text, &end);
	bool percent = end != text && !strcmp(end, "%");
	unsigned long count;

	if (!strcmp(text, "off"))
		return true;
	if (end != text && (percent || (!*end && strchr(text, '.')))) {
		if (percent)
			value /= 100;
		if (!(value >= 0 && value <= 1)) {
			complain(
				"cannot set %s on instance \"%s\": a rate is from 0%% to 100%%, or "
				"from 0.0 to 1.0, not \"%s\"",
				kind, instance, text);
			return false;
		}
		msg->rate = (uint32_t)lround(value * SH_FAULT_MILLION);
		return true;
	}
	errno = 0;
	count = strtoul(text, &end, 0);
	if (end == text || *end) {
		complain("cannot set %s on instance \"%s\": \"%s\" is neither a rate (5%%, 0.05) "
			 "nor "
			 "a count (3, the next three packets) nor off",
			 kind, instance, text);
		return false;
	}
	if (errno || strchr(text, '-') || count < 1 || count > UINT32_MAX) {
		complain("cannot set %s on instance \"%s\": a count is from 1 to %u, not \"%s\"; "
			 "off "
			 "ends the fault",
			 kind, instance, UINT32_MAX, text);
		return false;
	}
	msg->count = count;
	return true;
}

/* Parses "10mbit" or "off". False after a message. */
static bool parse_bits(const char *text, struct sh_fault_msg *msg)
{
	static const struct {
		const char *unit;
		double bits;
	} units[] = {{"kbit", 1e3}, {"mbit", 1e6}, {"gbit", 1e9}};
	char *end;
	double value = strtod(text, &end);

	if (!strcmp(text, "off"))
		return true;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (end != text && !strcmp(end, units[i].unit) && value * units[i].bits >= 1e3 &&
		    value * units[i].bits <= 1e12) {
			msg->bits = (uint64_t)llround(value * units[i].bits);
			msg->rate = SH_FAULT_MILLION;
			return true;
		}
	complain("rate must be from 1kbit to 1000gbit a second, with its unit (kbit, mbit, gbit), "
		 "or off, not \"%s\"",
		 text);
	return false;
}

/* Parses "on" or "off". False after a message. */
static bool parse_switch(const char *text, struct sh_fault_msg *msg)
{
	if (!strcmp(text, "on"))
		msg->rate = SH_FAULT_MILLION;
	if (msg->rate || !strcmp(text, "off"))
		return true;
	complain("partition is on or off, not \"%s\"", text);
	return false;
}

/*
 * Parses "host1", or "1" as other options have it, or an address, which the daemon looks up. False
 * after a message.
 */
static bool parse_end(const char *option, const char *text, uint32_t *host, char *address)
{
	const char *digits = strncmp(text, "host", 4) ? text : text + 4;
	char *end;
	unsigned long value = strtoul(digits, &end, 10);

	/*
	 * A number that no host can have is passed on: the daemon says that there is no such host.
	 */
	if (*digits >= '0' && *digits <= '9' && !*end && value < SH_FAULT_ANY) {
		*host = (uint32_t)value;
		return true;
	}
	if (strpbrk(text, ".:") && strlen(text) < SH_FAULT_ADDRESS) {
		strcpy(address, text);
		*host = SH_FAULT_ANY;
		return true;
	}
	complain("%s takes a host (host0, host1, ...) or an address on the wire, not \"%s\"",
		 option, text);
	return false;
}

/* Parses the value of an option. False after a message. */
static bool parse_option(const char *option, const char *text, struct sh_fault_msg *msg)
{
	unsigned long value;

	if (!text) {
		complain("option %s needs a value behind it; softhca fault --help says which",
			 option);
		return false;
	}
	if (!strcmp(option, "--from"))
		return parse_end(option, text, &msg->from, msg->from_address);
	if (!strcmp(option, "--to"))
		return parse_end(option, text, &msg->to, msg->to_address);
	if (!strcmp(option, "--qp")) {
		if (!parse_qp(text, 1, &value))
			return false;
		msg->qpn = (uint32_t)value;
		return true;
	}
	if (!parse_number("the seed", text, 0, UINT32_MAX, &value))
		return false;
	msg->seed = (uint32_t)value;
	msg->seeded = 1;
	return true;
}

/*
 * Options may stand anywhere. Puts the other words into word[]. Returns their number, or -1 after a
 * message.
 */
static int parse_words(int argc, char **argv, const char *word[], int room,
		       struct sh_fault_msg *msg)
{
	static const char *const options[] = {"--from", "--to", "--qp", "--seed"};
	int n = 0;

	for (int i = 0; i < argc; i++) {
		const char *value;
		size_t known = 0;

		while (known < 4 && !take_value(options[known], argc, argv, &i, &value))
			known++;
		if (known < 4) {
			if (!parse_option(options[known], value, msg))
				return -1;
		} else if (argv[i][0] == '-') {
			complain("softhca fault takes the options --from, --to, --qp and --seed, "
				 "not \"%s\"",
				 argv[i]);
			return -1;
		} else if (n == room) {
			complain("leave \"%s\" out: softhca fault has no use for so many words; "
				 "softhca fault --help says which it takes",
				 argv[i]);
			return -1;
		} else {
			word[n++] = argv[i];
		}
	}
	return n;
}

static bool find_kind(const char *text, uint32_t *kind)
{
	static const char *const kinds[SH_FAULT_KINDS + 1] = {
		[SH_FAULT_DROP] = "drop",	    [SH_FAULT_DELAY] = "delay",
		[SH_FAULT_DUPLICATE] = "duplicate", [SH_FAULT_CORRUPT] = "corrupt",
		[SH_FAULT_JITTER] = "jitter",	    [SH_FAULT_REORDER] = "reorder",
		[SH_FAULT_LIMIT] = "rate",	    [SH_FAULT_PARTITION] = "partition",
		[SH_FAULT_KINDS] = "cm-drop",
	};

	for (uint32_t i = 0; i <= SH_FAULT_KINDS; i++)
		if (!strcmp(text, kinds[i])) {
			*kind = i < SH_FAULT_KINDS ? i : SH_FAULT_CM_DROP;
			return true;
		}
	return false;
}

/* Does the word say what is to happen? An instance may have such a name, but hardly ever has. */
static bool is_what(const char *word)
{
	uint32_t kind;

	return find_kind(word, &kind) || !strcmp(word, "off") || !strcmp(word, "clear") ||
	       !strcmp(word, "seed");
}

static int no_instance(const char *first)
{
	complain("which instance? Its name stands in front of \"%s\": softhca fault NAME %s ...; "
		 "softhca show lists those that run",
		 first, first);
	return EXIT_USAGE;
}

static bool parse_kind(const char *text, uint32_t *kind)
{
	if (find_kind(text, kind))
		return true;
	complain("unknown fault \"%s\": packets can be dropped (drop), delayed (delay, jitter, "
		 "rate), "
		 "put out of order (reorder), duplicated (duplicate) or corrupted (corrupt), hosts "
		 "cut off "
		 "(partition), and CM messages dropped (cm-drop)",
		 text);
	return false;
}

static bool scoped(const struct sh_fault_msg *msg)
{
	return msg->from != SH_FAULT_ANY || msg->to != SH_FAULT_ANY || msg->qpn != SH_FAULT_ANY ||
	       *msg->from_address || *msg->to_address;
}

int verb_fault(int argc, char **argv)
{
	struct sh_fault_msg msg = {
		.type = SH_MSG_FAULT,
		.from = SH_FAULT_ANY,
		.to = SH_FAULT_ANY,
		.qpn = SH_FAULT_ANY,
	};
	const char *words[4], **word = words + 1; /* behind the instance */
	unsigned long seed;
	int n;

	for (int i = 1; i < argc; i++)
		if (is_help(argv[i]))
			return usage(0, NULL);
	n = parse_words(argc - 1, argv + 1, words, 4, &msg) - 1;
	if (n < -1)
		return EXIT_USAGE;
	if (n < 0)
		return usage(EXIT_USAGE, "which instance? Its name is the first word: softhca "
					 "fault NAME drop 5%; softhca show lists those that run");
	/* It reads on as the name only if what follows says what is to happen. */
	if (is_what(words[0]) && (n == 0 || !is_what(word[0])))
		return no_instance(words[0]);
	if (n == 1 && (!strcmp(word[0], "off") || !strcmp(word[0], "clear"))) {
		if (msg.seeded) {
			complain("leave --seed out: it is for a fault that you set, and %s ends "
				 "faults",
				 word[0]);
			return EXIT_USAGE;
		}
		msg.kind = SH_FAULT_OFF;
		return send_to(words[0], &msg, sizeof(msg));
	}
	if (n == 2 && !strcmp(word[0], "seed")) {
		if (scoped(&msg) || msg.seeded) {
			complain("seed N takes no options, because it is for all faults; to give "
				 "one fault a seed "
				 "of its own, set that fault with --seed N");
			return EXIT_USAGE;
		}
		if (!parse_number("the seed", word[1], 0, UINT32_MAX, &seed))
			return EXIT_USAGE;
		msg.kind = SH_FAULT_SEED;
		msg.seed = (uint32_t)seed;
		return send_to(words[0], &msg, sizeof(msg));
	}
	if (n == 0)
		return usage(EXIT_USAGE,
			     "what is to happen to packets? Add drop, delay, jitter, reorder, "
			     "duplicate, corrupt, rate, partition or cm-drop, or off");
	if (n == 1 && !strcmp(word[0], "seed"))
		return usage(EXIT_USAGE, "seed needs a number behind it");
	if (!strcmp(word[0], "seed") || !strcmp(word[0], "off") || !strcmp(word[0], "clear")) {
		complain("leave \"%s\" out; softhca fault --help says what goes with %s",
			 word[n - 1], word[0]);
		return EXIT_USAGE;
	}
	if (!parse_kind(word[0], &msg.kind))
		return EXIT_USAGE;
	if (n == 1 && msg.kind == SH_FAULT_LIMIT)
		return usage(EXIT_USAGE, "how much? Add what gets through in a second, such as "
					 "10mbit, or off");
	if (n == 1 && msg.kind == SH_FAULT_PARTITION)
		return usage(EXIT_USAGE, "add on or off");
	if (n == 1)
		return usage(EXIT_USAGE,
			     "how many packets? Add a RATE such as 5%, a COUNT such as 3, or off");
	if (n == 3 && msg.kind != SH_FAULT_DELAY && msg.kind != SH_FAULT_JITTER &&
	    msg.kind != SH_FAULT_REORDER && msg.kind != SH_FAULT_LIMIT) {
		complain("leave \"%s\" out: only delay, jitter, reorder and rate have a length",
			 word[2]);
		return EXIT_USAGE;
	}
	if (!(msg.kind == SH_FAULT_LIMIT       ? parse_bits(word[1], &msg)
	      : msg.kind == SH_FAULT_PARTITION ? parse_switch(word[1], &msg)
					       : parse_amount(words[0], word[0], word[1], &msg)) ||
	    (n == 3 && !parse_length("a delay must be from 1us to 60s", word[2], 1000,
				     SH_FAULT_DELAY_MAX, &msg.delay_ns)))
		return EXIT_USAGE;
	return send_to(words[0], &msg, sizeof(msg));
}
