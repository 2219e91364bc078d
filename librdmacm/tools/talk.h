// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Ids of one tool that exchange messages, and the options of such tools. Functions that return int
 * return 0, or -1 after a message to standard error. */
#ifndef TALK_H
#define TALK_H

#include <stdbool.h>
#include <stddef.h>

#include <rdma/rdma_verbs.h>

#include "tool.h"

/* One id with what it needs to send and receive. */
struct talker {
	struct rdma_cm_id *id;
	int number;	/* of the connection, from 1 */
	bool connected; /* or member of the group */
	bool over;	/* the peer has disconnected */
	char *buf;	/* of all its messages */
	struct ibv_mr *mr;
	long sent, received; /* completions */
	struct ibv_ah *ah;   /* where datagrams go; NULL: the id has a connection */
	uint32_t remote_qpn, remote_qkey;
};

struct talk {
	const char *name; /* begins its messages */
	const char *server, *bind, *port;
	struct rdma_addrinfo hints;
	long connections, count, size;
	long tos, ack_timeout; /* -1: as the kernel has them */
	size_t grh;	       /* bytes before each message that is received */
	int patience;	       /* ms to wait for a message; -1: for ever */

	struct rdma_event_channel *channel;
	struct talker *talkers;
	struct rdma_addrinfo *res;
	int awaited; /* connections, or groups, that have neither come nor failed */
	int status;  /* 0, or that of the last event that was a failure */

	/* What to do about an event, which is a copy: private_data is no longer valid. talker is
	 * NULL for the listener. */
	int (*event)(struct talk *talk, struct talker *talker, struct rdma_cm_event *event);
	/* What to do about a message of a talker; may be NULL. */
	int (*message)(struct talk *talk, struct talker *talker, struct ibv_wc *wc);
};

/* ---- Options ---- */

/* Takes b, s, c, C, S, t or f of the command line. */
int talk_option(struct talk *talk, int letter, const char *text);

/* What usage says of options that several tools have. */
#define TALK_USAGE_ADDRESSES                                                                       \
	"\t[-s server_address]\n"                                                                  \
	"\t[-b bind_address]\n"                                                                    \
	"\t[-f address_format]\n"                                                                  \
	"\t    name, ip, ipv6, or gid\n"                                                           \
	"\t[-P port_space]\n"
#define TALK_USAGE_MESSAGES                                                                        \
	"\t[-c connections]\n"                                                                     \
	"\t[-C message_count]\n"                                                                   \
	"\t[-S message_size]\n"
#define TALK_USAGE_SPACE "\t[-p port_space - %#x for UDP (default), %#x for IPOIB]\n"

/* Takes the name of a port space for ids of the tool's type. */
int talk_space_name(struct talk *talk, const char *text);

/* Takes the number of a port space for datagrams. */
int talk_port_space(struct talk *talk, const char *text);

/*
 * Finds the addresses into talk->res: that of node, and the own one if bind was given. Without
 * node, that to listen at.
 */
int talk_addresses(struct talk *talk, const char *node);

/* ---- Life ---- */

/* Makes the channel, and an id for each connection if ids is set. */
int talk_open(struct talk *talk, bool ids);

/* Destroys all that there is. */
void talk_close(struct talk *talk);

/* Makes an id that listens at the own address, in *listener; destroy it also after a failure. */
int talk_listen(struct talk *talk, struct rdma_cm_id **listener, int backlog);

/* Makes QP and memory of a talker with an id, and posts its receives. */
int talk_prepare(struct talk *talk, struct talker *talker);

/* ---- Messages ---- */

/* Fails if the message and its GRH exceed the MTU of the talker's port. */
int talk_check_mtu(struct talk *talk, struct talker *talker);

/* Where the datagrams of a talker go. */
int talk_reach(struct talk *talk, struct talker *talker, const struct rdma_ud_param *param);

/* Sends all messages of all talkers that are connected. */
int talk_send(struct talk *talk);

/* Waits until all messages of these talkers are sent, or received. Takes events meanwhile. */
int talk_wait(struct talk *talk, bool sends);

/* ---- Events ---- */

/* Takes one event. Waits for it. */
int talk_event(struct talk *talk);

/* Prints an event that is a failure, and keeps its status. Returns -1. */
int talk_bad_event(struct talk *talk, const struct rdma_cm_event *event);

/* Prints "NAME: WHAT: reason of errno" to standard error. Returns -1. */
int talk_fail(const struct talk *talk, const char *what);

/* Prints how the test ended. Returns what the tool exits with. */
int talk_end(const struct talk *talk, int ret);

#endif
