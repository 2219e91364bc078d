// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Channels and ids, as `softhca show` prints them. Changes nothing. */
#include <arpa/inet.h>
#include <stdio.h>

#include "softhca/host/process.h"
#include "softhca/kernel/out.h"
#include "softhca/kernel/ports.h"
#include "address.h"
#include "channel.h"
#include "id.h"
#include "mcast.h"
#include "rdmacm.h"
#include "room.h"

static void show_address(struct out *o, const char *name, const union cm_sockaddr *a)
{
	char text[INET6_ADDRSTRLEN] = "", line[INET6_ADDRSTRLEN + 16];

	if (!a->family) {
		out_word(o, name, "null");
		return;
	}
	if (a->family == AF_INET)
		inet_ntop(AF_INET, &a->in.sin_addr, text, sizeof(text));
	else
		inet_ntop(AF_INET6,
			  a->family == AF_INET6 ? (const void *)&a->in6.sin6_addr
						: (const void *)a->ib.gid,
			  text, sizeof(text));
	snprintf(line, sizeof(line), a->family == AF_INET ? "%s:%u" : "[%s]:%u", text,
		 cm_addr_port(a));
	out_text(o, name, line);
}

static const char *state_name(const struct cm_id *id)
{
	static const char *const state[] = {"idle",
					    "bound",
					    "resolving address",
					    "address resolved",
					    "resolving route",
					    "route resolved",
					    "connecting",
					    "disconnected",
					    "listening"};
	static const char *const x[] = {"",
					"request sent",
					"request received",
					"reply sent",
					"reply received",
					"established",
					"disconnecting",
					"disconnect received",
					"time wait",
					"question sent",
					"question received",
					"ended"};

	if (id->state == CM_CONNECTED && id->x != CM_X_NONE)
		return x[id->x];
	return state[id->state];
}

static const char *space_name(uint16_t ps)
{
	switch (ps) {
	case CM_PS_TCP:
		return "TCP";
	case CM_PS_UDP:
		return "UDP";
	case CM_PS_IPOIB:
		return "IPOIB";
	case CM_PS_IB:
		return "IB";
	}
	return "unknown";
}

static uint32_t waiting(const struct cm_id *id)
{
	const struct cm_id *w;
	uint32_t n = 0;

	DL_COUNT2(id->waiting, w, n, wnext);
	return n;
}

static uint32_t groups(const struct cm_id *id)
{
	const struct cm_member *m;
	uint32_t n = 0;

	DL_COUNT(id->members, m, n);
	return n;
}

static uint32_t unread(const struct cm_id *id)
{
	const struct cm_event *e;
	uint32_t n = 0;

	DL_COUNT2(id->events, e, n, next_of_id);
	return n;
}

/* How long it waits for an answer, or its address or connection for something else. */
static void show_due(const struct cm_id *id, struct out *o)
{
	uint64_t now = sh_now();

	if (id->due)
		out_int(o, "due_ms", id->due > now ? (id->due - now) / 1000000 : 0);
	else
		out_word(o, "due_ms", "null");
	out_int(o, "tries_left", id->due ? id->tries : 0);
}

static void show_id(const struct cm_id *id, struct out *o)
{
	char device[16];

	out_begin_object(o, NULL);
	out_int(o, "id", id->number);
	out_text(o, "port_space", space_name(id->ps));
	out_text(o, "state", state_name(id));
	show_address(o, "source", &id->src);
	show_address(o, "destination", &id->dst);
	snprintf(device, sizeof(device), "mlx4_%u", id->device ? id->cm->hcas[id->hca].unit : 0);
	if (id->device)
		out_text(o, "device", device);
	else
		out_word(o, "device", "null");
	out_int(o, "port", id->device ? id->port : 0);
	out_int(o, "qpn", id->qpn);
	if (id->state == CM_LISTENING)
		out_int(o, "backlog", id->backlog);
	else
		out_word(o, "backlog", "null");
	out_int(o, "requests_waiting", waiting(id));
	out_int(o, "groups", groups(id));
	show_due(id, o);
	out_int(o, "events_unread", unread(id));
	out_int(o, "events_read", id->reported);
	out_end_object(o);
}

static void show_channel(const struct cm_channel *ch, struct out *o)
{
	const struct cm_id *id;

	out_begin_object(o, NULL);
	out_int(o, "channel", ch->fifo.index);
	out_int(o, "host", ch->host);
	out_int(o, "pid", (uint64_t)ch->pid);
	out_int(o, "commands", ch->commands);
	out_int(o, "unread_events", ch->unread);
	out_begin_array(o, "ids");
	DL_FOREACH(ch->ids, id)
	show_id(id, o);
	out_end_array(o);
	out_end_object(o);
}

static void show_counts(const struct rdmacm *cm, struct out *o)
{
	static const char *const event[CM_EV_TYPES] = {
		"addr_resolved",   "addr_error",       "route_resolved", "route_error",
		"connect_request", "connect_response", "connect_error",	 "unreachable",
		"rejected",	   "established",      "disconnected",	 "device_removal",
		"multicast_join",  "multicast_error",  "addr_change",	 "timewait_exit",
	};

	out_begin_object(o, "connections");
	out_int(o, "channels", cm->channels.used);
	out_int(o, "ids", HASH_COUNT(cm->ids));
	out_int(o, "timeout_us", cm->response_ns / 1000);
	out_int(o, "messages", cm->count.sent);
	out_int(o, "messages_repeated", cm->count.repeated);
	out_int(o, "messages_given_up", cm->count.given_up);
	out_int(o, "messages_no_path", cm->count.dropped);
	out_int(o, "messages_fault", cm->count.faults);
	out_begin_object(o, "events");
	for (int i = 0; i < CM_EV_TYPES; i++)
		out_int(o, event[i], cm->count.event[i]);
	out_end_object(o);
	out_end_object(o);
}

void cm_show(struct rdmacm *cm, struct out *o)
{
	const struct cm_table *t = &cm->channels;

	show_counts(cm, o);
	out_begin_array(o, "connection_channels");
	for (uint32_t i = 0; i < t->size; i++)
		if (t->slot[i])
			show_channel(t->slot[i], o);
	out_end_array(o);
}
