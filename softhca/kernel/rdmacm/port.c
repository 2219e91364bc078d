// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Port numbers. An id has a port from bind, or from its first resolution, until it ends. Ids share
 * a port if their addresses differ, or if all of them have REUSEADDR and no one of them listens.
 * The machine's sockets have ports of their own.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "softhca/device/memory/dev.h"
#include "softhca/device/memory/instance.h"
#include "address.h"
#include "id.h"
#include "port.h"
#include "rdmacm.h"

#define PRIVILEGED 1024
#define FIRST	   32768
#define LAST	   60999

int cm_space_of(uint16_t ps)
{
	switch (ps) {
	case CM_PS_TCP:
		return CM_TCP;
	case CM_PS_UDP:
		return CM_UDP;
	case CM_PS_IPOIB:
		return CM_IPOIB;
	case CM_PS_IB:
		return CM_IB;
	case CM_PS_SDP:
		return CM_SDP;
	}
	return -1;
}

struct cm_port *cm_port_find(struct cm_host *h, enum cm_space space, uint16_t number)
{
	struct cm_port *p;

	HASH_FIND(hh, h->ports[space], &number, sizeof(number), p);
	return p;
}

static int check(const struct cm_port *p, const struct cm_id *id, bool reuse)
{
	const struct cm_id *other;

	DL_FOREACH2(p->ids, other, pnext)
	{
		if (other == id)
			continue;
		if (reuse && other->reuse && other->state != CM_LISTENING)
			continue;
		if (id->afonly && other->afonly && id->src.family != other->src.family)
			continue;
		if (cm_addr_any(id->cm, &id->src) || cm_addr_any(id->cm, &other->src))
			return -EADDRNOTAVAIL;
		if (cm_addr_same(&id->src, &other->src))
			return -EADDRINUSE;
	}
	return 0;
}

static void enter(struct cm_port *p, struct cm_id *id)
{
	id->bound = p;
	DL_APPEND2(p->ids, id, pprev, pnext);
	cm_addr_set_port(&id->src, id->service, p->number);
}

static struct cm_port *make(struct cm_host *h, enum cm_space space, uint16_t number)
{
	struct cm_port *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->number = number;
	p->space = space;
	HASH_ADD(hh, h->ports[space], number, sizeof(p->number), p);
	if (p->hh.tbl)
		return p;
	free(p);
	return NULL;
}

/* Kernels of OFED's time count upwards. */
static int any_port(struct cm_id *id, struct cm_host *h, enum cm_space space)
{
	uint32_t range = LAST - FIRST + 1, at = h->next_port, i;
	struct cm_port *p;
	uint16_t number;

	if (id->cm->cfg->face == SH_FACE_MAINLINE &&
	    getrandom(&at, sizeof(at), GRND_NONBLOCK) != sizeof(at))
		at = h->next_port;
	for (i = 0; i < range; i++) {
		number = (uint16_t)(FIRST + (at + i) % range);
		if (number == h->last_port || cm_port_find(h, space, number))
			continue;
		p = make(h, space, number);
		if (!p)
			return -ENOMEM;
		h->last_port = number;
		h->next_port = (uint16_t)((at + i + 1) % range);
		enter(p, id);
		return 0;
	}
	return -EADDRNOTAVAIL;
}

int cm_port_join(struct cm_id *id, bool privileged)
{
	struct cm_host *h = cm_host_of(id);
	uint16_t number = cm_addr_port(&id->src);
	int space = cm_space_of(id->service), err;
	struct cm_port *p;

	if (space < 0)
		return -EPROTONOSUPPORT;
	if (!number)
		return any_port(id, h, space);
	if (number < PRIVILEGED && !privileged)
		return -EACCES;
	p = cm_port_find(h, space, number);
	err = p ? check(p, id, id->reuse) : 0;
	if (err)
		return err;
	if (!p)
		p = make(h, space, number);
	if (!p)
		return -ENOMEM;
	enter(p, id);
	return 0;
}

int cm_port_alone(struct cm_id *id)
{
	return id->bound ? check(id->bound, id, false) : 0;
}

void cm_port_leave(struct cm_id *id)
{
	struct cm_port *p = id->bound;

	if (!p)
		return;
	id->bound = NULL;
	DL_DELETE2(p->ids, id, pprev, pnext);
	if (p->ids)
		return;
	HASH_DELETE(hh, cm_host_of(id)->ports[p->space], p);
	free(p);
}
