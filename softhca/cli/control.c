// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* `softhca port` and `softhca fault`: things that happen to a fabric. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "softhca.h"

static int send_to(const char *instance, const void *request, size_t len)
{
	struct sh_hello_reply hello;
	char dir[PATH_MAX];
	int control = reach(instance, dir, &hello);
	int status;

	if (control < 0)
		return EXIT_SELF;
	status = ask(control, request, len, NULL);
	close(control);
	return status;
}

static int port_usage(int status)
{
	fputs("Usage: softhca port NAME [--host K] DEVICE:PORT up|down|lid N|pkey INDEX VALUE|sm LID|fatal\n\n"
	      "Change a port of an instance, as cables, switches and subnet managers do; programs get the asynchronous\n"
	      "events. fatal is about the whole device. Example: softhca port lab mlx4_0:1 down\n",
	      status ? stderr : stdout);
	return status;
}

/* "mlx4_3:1" */
static bool parse_port(const char *text, struct sh_port_msg *msg)
{
	unsigned int hca, port;
	int end = 0;

	if (sscanf(text, "mlx4_%u:%u%n", &hca, &port, &end) != 2 || text[end] || !port) {
		complain("\"%s\" is no port: write DEVICE:PORT, for example mlx4_0:1", text);
		return false;
	}
	msg->hca = hca;
	msg->port = port;
	return true;
}

static bool parse_change(int argc, char **argv, struct sh_port_msg *msg)
{
	static const struct {
		const char *word;
		int what, values;
	} changes[] = {
		{"up", SH_PORT_UP, 0}, {"down", SH_PORT_DOWN, 0}, {"lid", SH_PORT_LID, 1},
		{"pkey", SH_PORT_PKEY, 2}, {"sm", SH_PORT_SM, 1}, {"fatal", SH_PORT_FATAL, 0},
	};
	unsigned long a = 0, b = 0;

	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		if (strcmp(argv[0], changes[i].word))
			continue;
		if (argc - 1 != changes[i].values) {
			complain("%s takes %d value%s", argv[0], changes[i].values, changes[i].values == 1 ? "" : "s");
			return false;
		}
		if (argc > 1 && !parse_number(argv[0], argv[1], 0, 0xffff, &a))
			return false;
		if (argc > 2 && !parse_number("the P_Key", argv[2], 0, 0xffff, &b))
			return false;
		msg->what = changes[i].what;
		msg->a = a;
		msg->b = b;
		return true;
	}
	complain("a port goes up or down, gets a lid, pkey or sm, or fails (fatal); not \"%s\"", argv[0]);
	return false;
}

int verb_port(int argc, char **argv)
{
	struct sh_port_msg msg = {.type = SH_MSG_PORT};
	const char *instance;
	int word = 2;

	if (argc >= 2 && !strcmp(argv[1], "--help"))
		return port_usage(0);
	if (argc < 4)
		return port_usage(EXIT_USAGE);
	instance = argv[1];
	if (!strcmp(argv[word], "--host")) {
		unsigned long host;

		if (argc < 6)
			return port_usage(EXIT_USAGE);
		if (!parse_number("--host", argv[word + 1], 0, SH_MAX_HCAS - 1, &host))
			return EXIT_USAGE;
		msg.host = host;
		word += 2;
	}
	if (!parse_port(argv[word], &msg) || !parse_change(argc - word - 1, argv + word + 1, &msg))
		return EXIT_USAGE;
	return send_to(instance, &msg, sizeof(msg));
}

static int fault_usage(int status)
{
	fputs("Usage: softhca fault NAME drop|duplicate|corrupt RATE|COUNT\n"
	      "       softhca fault NAME delay RATE|COUNT [LENGTH]\n"
	      "       softhca fault NAME seed N\n"
	      "       softhca fault NAME clear\n\n"
	      "Do that to packets of the fabric: RATE is a share of all from now on (5% or 0.05; 0% ends it), COUNT\n"
	      "(a whole number without a sign) is the next so many. A corrupted packet reaches its receiver with a wrong\n"
	      "ICRC. LENGTH is a time (500us, 2ms, 1s; 100us at first). Which packets a rate hits follows\n"
	      "from a seed, which show prints; seed begins anew from N. clear ends all of it.\n"
	      "Example: softhca fault lab drop 5%\n",
	      status ? stderr : stdout);
	return status;
}

/* "5%", "0.05" or "12": false after a message. */
static bool parse_amount(const char *text, struct sh_fault_msg *msg)
{
	char *end;
	double value = strtod(text, &end);
	bool percent = end != text && !strcmp(end, "%");
	unsigned long count;

	if (percent || strchr(text, '.')) {
		if (percent)
			value /= 100;
		if (end == text || (*end && !percent) || !(value >= 0 && value <= 1)) {
			complain("a rate is from 0%% to 100%%, or from 0.0 to 1.0; not \"%s\"", text);
			return false;
		}
		msg->rate = (uint32_t)lround(value * 1e6);
		return true;
	}
	if (!parse_number("the count", text, 1, UINT32_MAX, &count))
		return false;
	msg->count = count;
	return true;
}

/* "500us", "2ms", "1s": false after a message. */
static bool parse_length(const char *text, uint64_t *ns)
{
	static const struct {
		const char *unit;
		double ns;
	} units[] = {{"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
	char *end;
	double value = strtod(text, &end);

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (end != text && !strcmp(end, units[i].unit) && value * units[i].ns >= 1e3 &&
		    value * units[i].ns <= 60e9) {
			*ns = (uint64_t)llround(value * units[i].ns);
			return true;
		}
	complain("a delay is from 1us to 60s, with its unit (us, ms, s); not \"%s\"", text);
	return false;
}

int verb_fault(int argc, char **argv)
{
	static const char *const kinds[SH_FAULT_KINDS] = {
		[SH_FAULT_DROP] = "drop",
		[SH_FAULT_DELAY] = "delay",
		[SH_FAULT_DUPLICATE] = "duplicate",
		[SH_FAULT_CORRUPT] = "corrupt",
	};
	struct sh_fault_msg msg = {.type = SH_MSG_FAULT, .kind = SH_FAULT_CLEAR};

	if (argc >= 2 && !strcmp(argv[1], "--help"))
		return fault_usage(0);
	if (argc == 3 && !strcmp(argv[2], "clear"))
		return send_to(argv[1], &msg, sizeof(msg));
	if (argc == 4 && !strcmp(argv[2], "seed")) {
		unsigned long seed;

		if (!parse_number("the seed", argv[3], 0, UINT32_MAX, &seed))
			return EXIT_USAGE;
		msg.kind = SH_FAULT_SEED;
		msg.count = (uint32_t)seed;
		return send_to(argv[1], &msg, sizeof(msg));
	}
	if (argc != 4 && !(argc == 5 && !strcmp(argv[2], "delay")))
		return fault_usage(EXIT_USAGE);
	for (uint32_t kind = 0; kind < SH_FAULT_KINDS; kind++)
		if (!strcmp(argv[2], kinds[kind]))
			msg.kind = kind;
	if (msg.kind == SH_FAULT_CLEAR) {
		complain("packets can be dropped (drop), delayed (delay), duplicated (duplicate) or corrupted (corrupt); "
			 "not \"%s\"", argv[2]);
		return EXIT_USAGE;
	}
	if (!parse_amount(argv[3], &msg) || (argc == 5 && !parse_length(argv[4], &msg.delay_ns)))
		return EXIT_USAGE;
	return send_to(argv[1], &msg, sizeof(msg));
}
