// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The command line of the tools that show devices. Holds no state. */

#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pingpong.h"
#include "tool.h"

const char *tool_name(const char *argv0)
{
	const char *slash = strrchr(argv0, '/');
	const char *name = slash ? slash + 1 : argv0;

	/* The wrapper of an uninstalled program may run lt-NAME. */
	return strncmp(name, "lt-", 3) ? name : name + 3;
}

static void usage(const char *name, const struct tool *tool)
{
	printf("Usage: %s             %s\n\nOptions:\n", name, tool->purpose);
	for (int i = 0; tool->options[i].name; i++) {
		char left[40];
		int n = 0;

		n += tool->options[i].val < 256
			     ? snprintf(left, sizeof left, "-%c, ", tool->options[i].val)
			     : snprintf(left, sizeof left, "    ");
		snprintf(left + n, sizeof left - n, "--%s", tool->options[i].name);
		printf("  %-22s %s\n", left, tool->help[i]);
	}
	printf("  %-22s %s\n", "    --help", "print this text and exit");
	printf("  %-22s %s\n", "    --version", "print the version and exit");
}

int tool_option(int argc, char **argv, const struct tool *tool)
{
	enum { OPT_HELP = 512, OPT_VERSION };
	const char *name = tool_name(argv[0]);
	struct option longs[16] = {};
	char shorts[32];
	int n = 0, s = 0, c;

	for (; tool->options[n].name; n++) {
		longs[n] = tool->options[n];
		if (longs[n].val >= 256)
			continue;
		shorts[s++] = longs[n].val;
		if (longs[n].has_arg)
			shorts[s++] = ':';
	}
	shorts[s] = '\0';
	longs[n++] = (struct option){"help", no_argument, NULL, OPT_HELP};
	longs[n] = (struct option){"version", no_argument, NULL, OPT_VERSION};

	c = getopt_long(argc, argv, shorts, longs, NULL);
	switch (c) {
	case OPT_HELP:
		usage(name, tool);
		exit(0);
	case OPT_VERSION:
		printf("%s (%s) %s\n", name, PACKAGE_NAME, PACKAGE_VERSION);
		exit(0);
	case -1:
		if (optind == argc)
			return -1;
		fprintf(stderr, "%s: takes only options, not '%s'\n", name, argv[optind]);
		/* fall through */
	case '?':
		fprintf(stderr, "  `%s --help` lists the options.\n", name);
		exit(1);
	default:
		return c;
	}
}

struct ibv_device **tool_devices(int *num)
{
	struct ibv_device **list;
	int err;

	errno = 0;
	list = ibv_get_device_list(num);
	err = errno;
	if (!list)
		pp_fail(err, pp_list_advice(err), "Failed to get IB devices list");
	return list;
}
