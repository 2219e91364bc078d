// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* What the tools share that show devices and send no messages. */

#ifndef TOOL_H
#define TOOL_H

#include <getopt.h>

#include <infiniband/verbs.h>

/* help has a line for each option, in the order of the table that getopt_long() gets. The letter of
 * an option is its val in that table. */
struct tool {
	const char *purpose;
	const struct option *options;
	const char *const *help;
};

/* Returns the name of the program. */
const char *tool_name(const char *argv0);
/* Parses the next option, as getopt_long() does. Handles --help, --version and bad usage, and ends
 * the program then. */
int tool_option(int argc, char **argv, const struct tool *tool);
/* Returns the device list, which may be empty, or NULL after an error message. */
struct ibv_device **tool_devices(int *num);

#endif
