// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* `softhca port`: what cables, switches and subnet managers do to a port. */
#include <stdio.h>
#include <string.h>

#include "softhca.h"

static int port_usage(int status)
{
	fputs("Usage: softhca port NAME [--host K] DEVICE:PORT up|down|lid N|pkey INDEX VALUE|sm LID|fatal\n\n"
	      "Change a port of an instance, as cables, switches and subnet managers do; programs get the asynchronous\n"
	      "events. fatal makes the whole device fail. Example: softhca port lab mlx4_0:1 down\n",
	      status ? stderr : stdout);
	return status;
}

/* Parses "mlx4_3:1". */
static bool parse_port(const char *text, struct sh_port_msg *msg)
{
	unsigned int hca, port;
	int end = 0;

	if (sscanf(text, "mlx4_%u:%u%n", &hca, &port, &end) != 2 || text[end] || !port) {
		complain("\"%s\" does not name a port: write DEVICE:PORT, for example mlx4_0:1", text);
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
			complain("the change %s takes %d value%s; softhca port --help says which", argv[0], changes[i].values, changes[i].values == 1 ? "" : "s");
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
	complain("unknown change \"%s\": a port can go up or down, get a lid, pkey or sm, or fail (fatal)", argv[0]);
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
