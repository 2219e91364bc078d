// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Which sockets become rsockets: without a configuration file all that rsocket() takes; else those
 * that a line names by program, domain, type and protocol. A field may be *, and text behind # is
 * not looked at.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <infiniband/ib.h>
#include <rdma/rsocket.h>

#include "preload.h"

#define FILE_NAME "/etc/rdma/rsocket/preload_config"

enum { ANY = -1, LINES = 64 };

static struct {
	int domain, type, protocol;
} lines[LINES];
static int line_count;
static bool have_file;
static pthread_once_t once = PTHREAD_ONCE_INIT;

struct name {
	const char *name;
	int value;
};

static const struct name domains[] = {{"*", ANY},
				      {"INET", AF_INET},
				      {"AF_INET", AF_INET},
				      {"INET6", AF_INET6},
				      {"AF_INET6", AF_INET6},
				      {"IB", AF_IB},
				      {"AF_IB", AF_IB},
				      {NULL, 0}};
static const struct name types[] = {{"*", ANY},
				    {"STREAM", SOCK_STREAM},
				    {"SOCK_STREAM", SOCK_STREAM},
				    {"DGRAM", SOCK_DGRAM},
				    {"SOCK_DGRAM", SOCK_DGRAM},
				    {NULL, 0}};
static const struct name protocols[] = {
	{"*", ANY},	      {"TCP", IPPROTO_TCP},	    {"IPPROTO_TCP", IPPROTO_TCP},
	{"UDP", IPPROTO_UDP}, {"IPPROTO_UDP", IPPROTO_UDP}, {NULL, 0}};

static bool find(const struct name *names, const char *word, int *value)
{
	for (; names->name; names++) {
		if (strcasecmp(names->name, word))
			continue;
		*value = names->value;
		return true;
	}
	return false;
}

static void read_line(char *line)
{
	char program[64], domain[16], type[16], protocol[16];

	line[strcspn(line, "#\n")] = '\0';
	if (line_count == LINES ||
	    sscanf(line, "%63s%15s%15s%15s", program, domain, type, protocol) != 4)
		return;
	if (strcmp(program, "*") && strcmp(program, program_invocation_short_name))
		return;
	if (find(domains, domain, &lines[line_count].domain) &&
	    find(types, type, &lines[line_count].type) &&
	    find(protocols, protocol, &lines[line_count].protocol))
		line_count++;
}

static void read_config(void)
{
	const char *name = getenv("RS_PRELOAD_CONFIG");
	char line[256];
	FILE *file;

	file = fopen(name ? name : FILE_NAME, "re");
	if (!file)
		return;
	have_file = true;
	while (fgets(line, sizeof(line), file))
		read_line(line);
	fclose(file);
}

static bool matches(int wanted, int value)
{
	return wanted == ANY || wanted == value;
}

bool pl_wanted(int domain, int type, int protocol)
{
	int i;

	type &= ~(SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (domain != AF_INET && domain != AF_INET6 && domain != AF_IB)
		return false;
	if (type != SOCK_STREAM && type != SOCK_DGRAM)
		return false;
	/* What 0 stands for. */
	if (!protocol)
		protocol = type == SOCK_STREAM ? IPPROTO_TCP : IPPROTO_UDP;
	if (protocol != (type == SOCK_STREAM ? IPPROTO_TCP : IPPROTO_UDP))
		return false;

	pthread_once(&once, read_config);
	if (!have_file)
		return true;
	for (i = 0; i < line_count; i++)
		if (matches(lines[i].domain, domain) && matches(lines[i].type, type) &&
		    matches(lines[i].protocol, protocol))
			return true;
	return false;
}

static void set_option(int rs, const char *name, int option)
{
	const char *value = getenv(name);
	int number;

	if (!value)
		return;
	number = (int)strtol(value, NULL, 10);
	rsetsockopt(rs, SOL_RDMA, option, &number, sizeof(number));
}

void pl_set_options(int rs)
{
	set_option(rs, "RS_SQ_SIZE", RDMA_SQSIZE);
	set_option(rs, "RS_RQ_SIZE", RDMA_RQSIZE);
	set_option(rs, "RS_INLINE", RDMA_INLINE);
}
