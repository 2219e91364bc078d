// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * From an address to a port, and to a path. Everything is known at once. The event comes after the
 * command, or for an address that would not answer, after the timeout.
 */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "softhca/device/memory/dev.h"
#include "softhca/device/memory/instance.h"
#include "softhca/host/process.h"
#include "softhca/kernel/ports.h"
#include "address.h"
#include "channel.h"
#include "id.h"
#include "path.h"
#include "port.h"
#include "rdmacm.h"
#include "resolve.h"

/* Takes the port space of an AF_IB address. False: it fits no id of this kind. */
static bool take_service(struct cm_id *id, union cm_sockaddr *a)
{
	uint64_t mask = be64toh(a->ib.sid_mask), sid = be64toh(a->ib.sid) & mask;
	uint16_t services[] = {CM_PS_IB, CM_PS_TCP, CM_PS_UDP};

	for (int i = 0; i < 3; i++) {
		if (id->ps != CM_PS_IB && id->ps != services[i])
			continue;
		if ((sid & ~UINT64_C(0xffff)) != ((uint64_t)services[i] << 16 & mask))
			continue;
		id->service = services[i];
		cm_addr_set_port(a, services[i], (uint16_t)sid);
		return true;
	}
	return false;
}

int cm_bind(struct cm_id *id, const union cm_sockaddr *a, bool privileged)
{
	uint32_t hca = 0, port = 0;
	bool device = false;
	int err;

	if (id->state != CM_IDLE)
		return -EINVAL;
	if (!cm_addr_size(a->family) ||
	    (a->family == CM_AF_IB && id->cm->cfg->face == SH_FACE_OFED))
		return -EAFNOSUPPORT;
	if (!cm_addr_any(id->cm, a)) {
		err = cm_addr_own(id->cm, id->host, a, &hca, &port);
		if (err)
			return err;
		device = true;
	}
	id->src = *a;
	if (!id->afonly_set)
		id->afonly = a->family == AF_INET;
	err = a->family == CM_AF_IB && !take_service(id, &id->src) ? -EADDRNOTAVAIL
								   : cm_port_join(id, privileged);
	if (err) {
		memset(&id->src, 0, sizeof(id->src));
		return err;
	}
	id->device = device;
	id->hca = hca;
	id->port = port;
	id->state = CM_BOUND;
	return 0;
}

/* The own end: what is bound, or the first active port. */
static bool own_port(struct cm_id *id)
{
	if (!id->device)
		id->device = cm_port_first(id->cm, id->host, &id->hca, &id->port);
	return id->device;
}

/* Of the source, whose port stays. */
static void take_address(struct cm_id *id, const union cm_sockaddr *own)
{
	if (own->family == CM_AF_IB)
		memcpy(id->src.ib.gid, own->ib.gid, 16);
	else if (own->family == AF_INET)
		id->src.in.sin_addr = own->in.sin_addr;
	else
		id->src.in6.sin6_addr = own->in6.sin6_addr;
}

static void resolve_any(struct cm_id *id)
{
	uint16_t port = cm_addr_port(&id->src);

	if (!own_port(id)) {
		id->found = -ENODEV;
		return;
	}
	if (id->dst.family == CM_AF_IB) {
		memcpy(id->dst.ib.gid, sh_hca(id->cm->dev, id->hca)->port[id->port - 1].gid[0], 16);
		memcpy(id->src.ib.gid, id->dst.ib.gid, 16);
	} else {
		if (cm_addr_zero(&id->src))
			cm_addr_loopback(&id->src, id->dst.family, port);
		if (cm_addr_zero(&id->dst))
			cm_addr_loopback(&id->dst, id->dst.family, cm_addr_port(&id->dst));
	}
	cm_path_between(id->cm, id->hca, id->port, id->hca, id->port, &id->path);
}

/* The own port has the path to every group. */
static void resolve_group(struct cm_id *id)
{
	union cm_sockaddr own;

	if (!own_port(id)) {
		id->found = -ENODEV;
		return;
	}
	cm_path_between(id->cm, id->hca, id->port, id->hca, id->port, &id->path);
	memset(id->path.dgid, 0, sizeof(id->path.dgid));
	cm_addr_of(id->cm, id->dst.family, id->hca, id->port, &own);
	if (cm_addr_zero(&id->src))
		take_address(id, &own);
}

/*
 * The own end for a GID: the port that has it, or else the first active one in whose subnet it is.
 * The port has to be in the partition that the address names, and an entry of its table without a
 * key counts for the key 0. -ENODEV: there is none.
 */
static int choose_port(struct cm_id *id)
{
	uint32_t n = id->cm->cfg->hcas_per_host, hca, port;
	bool known = id->far || !cm_addr_find(id->cm, id->host, &id->dst, &hca, &port);
	uint16_t pkey = be16toh(id->dst.ib.pkey);

	for (uint32_t i = id->host * n; i < (id->host + 1) * n; i++) {
		for (uint32_t p = 1; p <= id->cm->cfg->ports && !id->cm->hcas[i].fatal; p++) {
			const uint8_t *gid = sh_hca(id->cm->dev, i)->port[p - 1].gid[0];
			bool same = !memcmp(gid, id->dst.ib.gid, 16);

			if (cm_path_pkey_index(id->cm->dev, i, p, pkey) < 0)
				continue;
			if (!same && (id->device || !port_active(id->cm->k, i, p) ||
				      (!known && memcmp(gid, id->dst.ib.gid, 8))))
				continue;
			id->device = true;
			id->hca = i;
			id->port = p;
			if (same)
				return 0;
		}
	}
	return id->device ? 0 : -ENODEV;
}

/* The path tells whether a port has the GID, and is in the partition. */
static void resolve_gid(struct cm_id *id)
{
	cm_path_between(id->cm, id->hca, id->port, id->hca, id->port, &id->path);
	memcpy(id->path.dgid, id->dst.ib.gid, 16);
	id->path.dlid = 0;
	if (cm_addr_any(id->cm, &id->src))
		memcpy(id->src.ib.gid, id->path.sgid, 16);
}

static int route_to_gid(struct cm_id *id)
{
	uint16_t pkey = be16toh(id->src.ib.pkey);
	uint32_t hca, port;

	if (cm_addr_find(id->cm, id->host, &id->dst, &hca, &port))
		return -EINVAL;
	if (pkey & 0x7fff && !cm_path_shared(id->cm->dev, id->hca, id->port, pkey, hca, port))
		return -EINVAL;
	return 0;
}

static void resolve_port(struct cm_id *id)
{
	uint32_t hca, port;
	union cm_sockaddr own;

	id->found = cm_addr_find(id->cm, id->host, &id->dst, &hca, &port);
	if (id->found && id->dst.family == CM_AF_IB) {
		id->found = 0;
		resolve_gid(id);
		return;
	}
	if (id->found)
		return;
	if (!own_port(id)) {
		id->found = -ENODEV;
		return;
	}
	cm_path_between(id->cm, id->hca, id->port, hca, port, &id->path);
	if (!cm_addr_any(id->cm, &id->src))
		return;
	/* An address of the machine is the caller's own, too. */
	own = id->dst;
	if (id->dst.family == CM_AF_IB || hca != id->hca || port != id->port)
		cm_addr_of(id->cm, id->dst.family, id->hca, id->port, &own);
	take_address(id, &own);
}

/* The first message finds out whether a peer is there. */
static void resolve_far(struct cm_id *id)
{
	union cm_sockaddr own;

	if (!own_port(id)) {
		id->found = -ENODEV;
		return;
	}
	cm_path_far(id->cm, id->hca, id->port, id->far, &id->path);
	cm_addr_on_wire(id->cm, id->dst.family, id->hca, id->port, &own);
	if (cm_addr_any(id->cm, &id->src))
		take_address(id, &own);
}

int cm_resolve(struct cm_id *id, const union cm_sockaddr *src, const union cm_sockaddr *dst,
	       uint32_t timeout_ms, bool privileged)
{
	union cm_sockaddr any;
	uint64_t wait = 0;
	int err;

	if (!cm_addr_size(dst->family) ||
	    (dst->family == CM_AF_IB && id->cm->cfg->face == SH_FACE_OFED))
		return -EINVAL;
	if (id->state == CM_IDLE) {
		memset(&any, 0, sizeof(any));
		any.family = dst->family;
		if (dst->family == CM_AF_IB)
			any.ib = (struct cm_sockaddr_ib){.family = CM_AF_IB,
							 .pkey = dst->ib.pkey,
							 .sid = dst->ib.sid & ~htobe64(0xffff),
							 .sid_mask = ~htobe64(0xffff)};
		err = cm_bind(id, src->family ? src : &any, privileged);
		if (err)
			return err;
	}
	if (id->state != CM_BOUND)
		return -EINVAL;
	if (id->src.family != dst->family)
		return -EINVAL;
	id->dst = *dst;
	id->found = 0;
	id->far = cm_addr_far(id->cm, dst);
	if (dst->family == CM_AF_IB && !id->device && !cm_addr_any(id->cm, dst)) {
		err = choose_port(id);
		if (err)
			return err;
	}
	if (id->far)
		resolve_far(id);
	else if (cm_addr_any(id->cm, dst))
		resolve_any(id);
	else if (cm_addr_group(dst))
		resolve_group(id);
	else
		resolve_port(id);
	if (dst->family == CM_AF_IB && !id->found && !cm_addr_any(id->cm, dst))
		cm_path_partition(id, be16toh(id->src.ib.pkey));
	if (id->found == -ETIMEDOUT)
		wait = (uint64_t)timeout_ms * 1000000;
	id->state = CM_ADDR_ASKED;
	cm_id_timer(id, sh_now() + wait);
	return 0;
}

int cm_resolve_route(struct cm_id *id, uint32_t timeout_ms)
{
	uint64_t wait;

	if (id->state != CM_ADDR_RESOLVED || !timeout_ms || !id->device)
		return -EINVAL;
	id->found = port_active(id->cm->k, id->hca, id->port) ? 0 : -ETIMEDOUT;
	if (!id->found && id->dst.family == CM_AF_IB && !id->far &&
	    !cm_addr_any(id->cm, &id->dst) && !cm_addr_group(&id->dst))
		id->found = route_to_gid(id);
	/* The service is what the path is asked for with; all of them are on service level 0. */
	id->path.qos_class = id->tos;
	wait = id->found == -ETIMEDOUT ? (uint64_t)timeout_ms * 1000000 : 0;
	id->state = CM_ROUTE_ASKED;
	cm_id_timer(id, sh_now() + wait);
	return 0;
}

int cm_set_path(struct cm_id *id, const struct cm_path_record *path)
{
	if (id->state != CM_ADDR_RESOLVED)
		return -EINVAL;
	cm_path_take(&id->path, path);
	id->found = 0;
	id->state = CM_ROUTE_ASKED;
	cm_id_timer(id, sh_now());
	return 0;
}

/* Errors go back one stage, so that the program may try again. */
void cm_resolve_due(struct cm_id *id)
{
	bool address = id->state == CM_ADDR_ASKED;
	enum cm_event_type type;
	struct cm_event *e;

	if (address)
		type = id->found ? CM_EV_ADDR_ERROR : CM_EV_ADDR_RESOLVED;
	else
		type = id->found ? CM_EV_ROUTE_ERROR : CM_EV_ROUTE_RESOLVED;
	if (address)
		id->state = id->found ? CM_BOUND : CM_ADDR_RESOLVED;
	else
		id->state = id->found ? CM_ADDR_RESOLVED : CM_ROUTE_RESOLVED;
	id->has_path = id->state == CM_ROUTE_RESOLVED;
	e = cm_event_new(id, type, id->found);
	if (e)
		cm_event_queue(e);
}
