// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The options and addresses of tools that exchange messages. */

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "talk.h"

enum { MAX_CONNECTIONS = 65536, MAX_MESSAGES = 1 << 20, MAX_SIZE = 1 << 30 };

int talk_option(struct talk *talk, int letter, const char *text)
{
	switch (letter) {
	case 's':
		talk->server = text;
		return 0;
	case 'b':
		talk->bind = text;
		return 0;
	case 'f':
		return tool_format(&talk->hints, text);
	case 'c':
		return tool_named_number(talk->name, "number of connections", text, 1,
					 MAX_CONNECTIONS, &talk->connections);
	case 'C':
		return tool_named_number(talk->name, "number of messages", text, 0, MAX_MESSAGES,
					 &talk->count);
	case 'S':
		return tool_named_number(talk->name, "size of messages", text, 0, MAX_SIZE,
					 &talk->size);
	default:
		return tool_named_number(talk->name, "type of service", text, 0, 255, &talk->tos);
	}
}

int talk_space_name(struct talk *talk, const char *text)
{
	static const struct {
		const char *name;
		enum rdma_port_space space;
		int qp_type;
	} spaces[] = {
		{"tcp", RDMA_PS_TCP, IBV_QPT_RC},
		{"ib", RDMA_PS_IB, IBV_QPT_RC},
		{"udp", RDMA_PS_UDP, IBV_QPT_UD},
		{"ipoib", RDMA_PS_IPOIB, IBV_QPT_UD},
	};
	size_t i;

	for (i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++) {
		if (spaces[i].qp_type == talk->hints.ai_qp_type &&
		    !strcasecmp(text, spaces[i].name)) {
			talk->hints.ai_port_space = spaces[i].space;
			return 0;
		}
	}
	fprintf(stderr, "%s: '%s' is no port space\n", talk->name, text);
	return -1;
}

int talk_port_space(struct talk *talk, const char *text)
{
	long value;

	if (tool_number(text, 1, 0xffff, &value) &&
	    (value == RDMA_PS_UDP || value == RDMA_PS_IPOIB)) {
		talk->hints.ai_port_space = value;
		return 0;
	}
	fprintf(stderr, "%s: '%s' is no port space: give %#x for UDP or %#x for IPOIB\n",
		talk->name, text, RDMA_PS_UDP, RDMA_PS_IPOIB);
	return -1;
}

static int look_up(struct talk *talk, const char *node, const char *port,
		   const struct rdma_addrinfo *hints, struct rdma_addrinfo **res)
{
	int ret = rdma_getaddrinfo(node, port, hints, res);

	if (!ret)
		return 0;
	fprintf(stderr, "%s: getaddrinfo error: %s (%s, port %s)\n", talk->name,
		ret == -1 || ret == EAI_SYSTEM ? strerror(errno) : gai_strerror(ret),
		node ? node : "any address", port ? port : "any");
	return -1;
}

int talk_addresses(struct talk *talk, const char *node)
{
	struct rdma_addrinfo hints = talk->hints, *own = NULL;
	int ret;

	if (!node) {
		node = talk->bind;
		if (!node && !(hints.ai_flags & RAI_FAMILY))
			node = "0.0.0.0";
		hints.ai_flags |= RAI_PASSIVE;
		return look_up(talk, node, talk->port, &hints, &talk->res);
	}
	if (talk->bind) {
		hints.ai_flags |= RAI_PASSIVE;
		if (look_up(talk, talk->bind, NULL, &hints, &own))
			return -1;
		hints.ai_flags &= ~RAI_PASSIVE;
		hints.ai_src_addr = own->ai_src_addr;
		hints.ai_src_len = own->ai_src_len;
	}
	ret = look_up(talk, node, talk->port, &hints, &talk->res);
	if (own)
		rdma_freeaddrinfo(own);
	return ret;
}
