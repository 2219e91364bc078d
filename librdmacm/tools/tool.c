// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Messages and addresses of the tools, and the frame of those that make one connection. */

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "tool.h"

int tool_fail(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	return -1;
}

int tool_fail_at(const char *what, const struct sockaddr *addr)
{
	socklen_t len = addr && addr->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
							    : sizeof(struct sockaddr_in);
	char host[NI_MAXHOST], port[NI_MAXSERV];
	int error = errno;

	if (!addr || getnameinfo(addr, len, host, sizeof(host), port, sizeof(port),
				 NI_NUMERICHOST | NI_NUMERICSERV)) {
		errno = error;
		return tool_fail(what);
	}
	fprintf(stderr, "%s: %s (%s, port %s)\n", what, strerror(error), host, port);
	return -1;
}

struct rdma_addrinfo *tool_address(const char *node, const char *service, int flags, int qp_type)
{
	struct rdma_addrinfo hints, *res;
	int ret;

	memset(&hints, 0, sizeof(hints));
	hints.ai_flags = flags;
	hints.ai_qp_type = qp_type;
	ret = rdma_getaddrinfo(node, service, &hints, &res);
	if (!ret)
		return res;
	fprintf(stderr, "rdma_getaddrinfo: %s (%s, port %s)\n",
		ret == -1 || ret == EAI_SYSTEM ? strerror(errno) : gai_strerror(ret),
		node ? node : "any address", service ? service : "0");
	return NULL;
}

bool tool_number(const char *text, long least, long most, long *value)
{
	char *end;

	errno = 0;
	*value = strtol(text, &end, 0);
	return !errno && end != text && !*end && *value >= least && *value <= most;
}

int tool_named_number(const char *name, const char *what, const char *text, long least, long most,
		      long *value)
{
	if (tool_number(text, least, most, value))
		return 0;
	fprintf(stderr, "%s: '%s' is no %s: give a number from %ld to %ld\n", name, text, what,
		least, most);
	return -1;
}

int tool_port(const char *name, const char *text, const char **port)
{
	char *end;

	errno = 0;
	if (strtol(text, &end, 10) > 0xffff && !*end) {
		fprintf(stderr, "%s: '%s' is no port: give a number from 0 to 65535\n", name, text);
		return -1;
	}
	*port = text;
	return 0;
}

int tool_format(struct rdma_addrinfo *hints, const char *text)
{
	if (!strcasecmp(text, "ip")) {
		hints->ai_flags |= RAI_NUMERICHOST;
	} else if (!strcasecmp(text, "ipv6")) {
		hints->ai_flags |= RAI_NUMERICHOST | RAI_FAMILY;
		hints->ai_family = AF_INET6;
	} else if (!strcasecmp(text, "gid")) {
		hints->ai_flags |= RAI_NUMERICHOST | RAI_FAMILY;
		hints->ai_family = AF_IB;
	} else if (strcasecmp(text, "name") != 0) {
		fprintf(stderr, "'%s' is no address format: give name, ip, ipv6 or gid\n", text);
		return -1;
	}
	return 0;
}

static int usage(const struct tool_program *program, const char *called, int status)
{
	printf("usage: %s\n%s", called, program->usage);
	return status;
}

int tool_main(const struct tool_program *program, int argc, char **argv)
{
	const char *name = program->name ? program->name : argv[0];
	const char *server = program->server, *port = "7471";
	int option, ret, qp_type = IBV_QPT_RC;

	while ((option = getopt(argc, argv, program->letters)) != -1) {
		switch (option) {
		case 'h':
			return usage(program, argv[0], 0);
		case 's':
			server = optarg;
			break;
		case 'p':
			if (tool_port(name, optarg, &port))
				return 1;
			break;
		case 'c':
			if (*optarg != 'r' && *optarg != 'x')
				return usage(program, argv[0], 1);
			qp_type = *optarg == 'x' ? program->xrc_type : IBV_QPT_RC;
			break;
		default:
			return usage(program, argv[0], 1);
		}
	}
	printf("%s: start\n", name);
	ret = program->run(server, port, qp_type);
	printf("%s: end %d\n", name, ret);
	return ret ? 1 : 0;
}

int tool_serve(struct rdma_addrinfo *res, struct ibv_qp_init_attr *attr,
	       int (*serve)(struct rdma_cm_id *id))
{
	struct rdma_cm_id *listen_id, *id;
	int ret = -1;

	if (rdma_create_ep(&listen_id, res, NULL, attr))
		return tool_fail_at("rdma_create_ep", res->ai_src_addr);
	if (rdma_listen(listen_id, 0)) {
		tool_fail("rdma_listen");
	} else if (rdma_get_request(listen_id, &id)) {
		tool_fail("rdma_get_request");
	} else {
		ret = serve(id);
		rdma_destroy_ep(id);
	}
	rdma_destroy_ep(listen_id);
	return ret;
}

struct ibv_qp_init_attr tool_one_message(uint32_t size)
{
	return (struct ibv_qp_init_attr){
		.cap = {.max_send_wr = 1,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = size},
		.sq_sig_all = 1,
	};
}
