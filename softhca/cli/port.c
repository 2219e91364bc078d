// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* `softhca port`: what cables, switches and subnet managers do to a port. */
#include <stdio.h>
#include <string.h>

#include "softhca.h"
#include "softhca/device/memory/layout.h"

/* If wrong is not NULL, says first what was wrong. */
static int port_usage(int status, const char *wrong)
{
	if (wrong)
		complain("%s", wrong);
	fputs("Usage: softhca port NAME [--host K] DEVICE:PORT up|down|lid N|pkey INDEX VALUE|sm "
	      "LID|fatal\n\n"
	      "Change a port of an instance, as cables, switches and subnet managers do; programs "
	      "get the\n"
	      "asynchronous events. fatal makes the whole device fail. Example: softhca port lab "
	      "mlx4_0:1 down\n",
	      status ? stderr : stdout);
	return status;
}

/* Parses "mlx4_3:1". */
static bool parse_port(const char *text, struct sh_port_msg *msg)
{
	unsigned int hca, port;
	int end = 0;

	if (sscanf(text, "mlx4_%u:%u%n", &hca, &port, &end) != 2 || text[end] || !port) {
		complain("\"%s\" does not name a port: write DEVICE:PORT, for example mlx4_0:1",
			 text);
		return false;
	}
	msg->hca = hca;
	msg->port = port;
	return true;
}

static bool parse_change(int argc, const char **argv, struct sh_port_msg *msg)
{
	/* With the ranges that the daemon allows, so that no message names another one. */
	static const struct {
		const char *word;
		int what, values;
		struct {
			const char *what;
			unsigned long min, max;
		} value[2];
	} changes[] = {
		{"up", SH_PORT_UP, 0, {}},
		{"down", SH_PORT_DOWN, 0, {}},
		{"lid", SH_PORT_LID, 1, {{"the LID", 1, SH_SWITCH_LID - 1}}},
		{"pkey",
		 SH_PORT_PKEY,
		 2,
		 {{"the INDEX of the P_Key", 0, SH_PKEYS - 1}, {"the P_Key", 0, 0xffff}}},
		{"sm", SH_PORT_SM, 1, {{"the LID of the subnet manager", 1, 0xbfff}}},
		{"fatal", SH_PORT_FATAL, 0, {}},
	};
	unsigned long value[2] = {0, 0};

	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		if (strcmp(argv[0], changes[i].word))
			continue;
		if (argc - 1 != changes[i].values) {
			complain("the change %s takes %d value%s, not %d; softhca port --help says "
				 "which",
				 argv[0], changes[i].values, changes[i].values == 1 ? "" : "s",
				 argc - 1);
			return false;
		}
		for (int v = 0; v < changes[i].values; v++)
			if (!parse_number(changes[i].value[v].what, argv[1 + v],
					  changes[i].value[v].min, changes[i].value[v].max,
					  &value[v]))
				return false;
		msg->what = changes[i].what;
		msg->a = value[0];
		msg->b = value[1];
		return true;
	}
	complain("unknown change \"%s\": a port can go up or down, get a lid, pkey or sm, or fail "
		 "(fatal)",
		 argv[0]);
	return false;
}

int verb_port(int argc, char **argv)
{
	struct sh_port_msg msg = {.type = SH_MSG_PORT};
	static const char *const missing[] = {
		"which instance? softhca show lists those that run",
		"which port of the instance? Write DEVICE:PORT, for example mlx4_0:1",
		"what is to happen to the port? Add up, down, lid, pkey, sm or fatal",
	};
	const char *word[5], *value; /* the instance, the port, the change and its values */
	unsigned long host;
	int n = 0;

	for (int i = 1; i < argc; i++) {
		if (is_help(argv[i]))
			return port_usage(0, NULL);
		if (take_value("--host", argc, argv, &i, &value)) {
			if (!value)
				return port_usage(EXIT_USAGE,
						  "--host needs the number of a host behind it");
			if (!parse_host(value, &host))
				return EXIT_USAGE;
			msg.host = host;
		} else if (argv[i][0] == '-') {
			complain("softhca port takes the option --host, not \"%s\"", argv[i]);
			return EXIT_USAGE;
		} else if (n == 5) {
			complain("leave \"%s\" out; softhca port --help says what goes with %s",
				 argv[i], word[2]);
			return EXIT_USAGE;
		} else {
			word[n++] = argv[i];
		}
	}
	if (n < 3)
		return port_usage(EXIT_USAGE, missing[n]);
	if (!parse_port(word[1], &msg) || !parse_change(n - 2, word + 2, &msg))
		return EXIT_USAGE;
	return send_to(word[0], &msg, sizeof(msg));
}
