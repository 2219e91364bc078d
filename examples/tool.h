// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* What the tools share that look at devices and send nothing. */

#ifndef TOOL_H
#define TOOL_H

#include <getopt.h>

#include <infiniband/verbs.h>

/* One line of help for each option, in the order of the table that getopt_long() gets; letters are those of the table's val. */
struct tool {
	const char *purpose;
	const struct option *options;
	const char *const *help;
};

/* The name that the program goes by. */
const char *tool_name(const char *argv0);
/* Parses one more option, as getopt_long(), and serves --help, --version and bad usage itself, ending the program. */
int tool_option(int argc, char **argv, const struct tool *tool);
/* The device list, which may be empty, or NULL after an explanation. */
struct ibv_device **tool_devices(int *num);

#endif
