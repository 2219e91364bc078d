// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Messages on their way. They wait until the command that caused them has been answered, and arrive
 * in order. A message between ports that are not both up is lost.
 */
#include <stdlib.h>
#include <string.h>

#include "softhca/kernel/lists.h"
#include "softhca/kernel/ports.h"
#include "address.h"
#include "exchange.h"
#include "id.h"
#include "message.h"
#include "path.h"
#include "rdmacm.h"
#include "timer.h"
#include "wire.h"

struct cm_message *cm_message_new(const struct cm_id *id, enum cm_kind kind)
{
	struct cm_message *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->kind = kind;
	m->from = id->comm;
	m->to = id->peer;
	m->hca = id->hca;
	m->port = id->port;
	memcpy(m->sgid, id->path.sgid, 16);
	memcpy(m->dgid, id->path.dgid, 16);
	m->far = id->far;
	m->pkey = id->path.pkey;
	m->rate = id->path.rate;
	m->tos = id->tos;
	m->ack_timeout = cm_path_timeout(id);
	m->peer_qpn = id->peer_qpn;
	return m;
}

struct cm_message *cm_message_answer(const struct cm_message *to, enum cm_kind kind)
{
	struct cm_message *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->kind = kind;
	m->from = to->to;
	m->to = to->from;
	m->far = to->far;
	m->pkey = to->pkey;
	m->hca = to->hca;
	m->port = to->port;
	memcpy(m->sgid, to->dgid, 16);
	memcpy(m->dgid, to->sgid, 16);
	return m;
}

void cm_message_send(struct rdmacm *cm, struct cm_message *m)
{
	if (!m)
		return;
	DL_APPEND(cm->messages, m);
	cm->count.sent++;
	cm_timer_set(cm, 1);
}

static void deliver(struct rdmacm *cm, struct cm_message *m)
{
	uint32_t hca, port;

	if (m->far) {
		cm_wire_leave(cm, m);
		return;
	}
	if (!port_active(cm->k, m->hca, m->port) || !cm_port_by_gid(cm, m->dgid, &hca, &port) ||
	    !port_active(cm->k, hca, port)) {
		cm->count.dropped++;
		return;
	}
	if (cm_fault_hits(cm, cm->hcas[m->hca].host, cm->hcas[hca].host)) {
		cm->count.faults++;
		return;
	}
	m->hca = hca;
	m->port = port;
	cm_exchange_deliver(cm, m);
}

void cm_messages_deliver(struct rdmacm *cm)
{
	struct cm_message *m, *tmp, *all = cm->messages;

	/* Those that are sent meanwhile go later. */
	cm->messages = NULL;
	DL_FOREACH_SAFE(all, m, tmp)
	{
		deliver(cm, m);
		free(m);
	}
}

void cm_messages_free(struct rdmacm *cm)
{
	struct cm_message *m, *tmp;

	DL_FOREACH_SAFE(cm->messages, m, tmp)
	free(m);
	cm->messages = NULL;
}
