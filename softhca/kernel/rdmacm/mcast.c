// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Ids in groups. QPs are attached by verbs commands.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "softhca/device/memory/dev.h"
#include "softhca/device/memory/instance.h"
#include "softhca/kernel/lists.h"
#include "address.h"
#include "channel.h"
#include "group.h"
#include "id.h"
#include "mcast.h"
#include "rdmacm.h"

#define SCOPE 2 /* of the broadcast group */

/*
 * Has the instance a wire of IPv6? Groups of IPv6 have the same name there for all, RoCE's ports
 * too.
 */
static bool wire_has_ip6(const struct rdmacm *cm)
{
	const struct sh_wire_config *wire = &cm->cfg->wire;

	return wire->n && !sh_ip_is4(wire->network);
}

/*
 * As IPoIB maps addresses to groups; UDP has groups of its own. On a wire those of IPv4 are again
 * the addresses that they were made of (softhca/wire/address.h); those of IPv6 could not be.
 */
static void mgid_of(struct cm_id *id, const union cm_sockaddr *a, uint8_t mgid[16])
{
	uint16_t pkey = sh_hca(id->cm->dev, id->hca)->port[id->port - 1].pkey[0];
	const uint8_t *in6 = (const uint8_t *)&a->in6.sin6_addr;
	uint32_t in;

	memset(mgid, 0, 16);
	if (a->family == CM_AF_IB) {
		memcpy(mgid, a->ib.gid, 16);
		return;
	}
	if (cm_addr_zero(a))
		return;
	if (a->family == AF_INET6 && in6[0] == 0xff && (in6[1] & 0xf0) == 0x10 && in6[2] == 0xa0 &&
	    in6[3] == 0x1b) {
		memcpy(mgid, in6, 16);
		return;
	}
	if (a->family == AF_INET6 && wire_has_ip6(id->cm) && in6[0] == 0xff) {
		memcpy(mgid, in6, 16);
		return;
	}
	mgid[0] = 0xff;
	mgid[1] = 0x10 | SCOPE;
	mgid[4] = pkey >> 8 | 0x80;
	mgid[5] = pkey & 0xff;
	if (a->family == AF_INET) {
		in = ntohl(a->in.sin_addr.s_addr) & 0x0fffffff;
		mgid[2] = 0x40;
		mgid[3] = 0x1b;
		mgid[12] = in >> 24;
		mgid[13] = in >> 16 & 0xff;
		mgid[14] = in >> 8 & 0xff;
		mgid[15] = in & 0xff;
	} else {
		mgid[2] = 0x60;
		mgid[3] = 0x1b;
		memcpy(mgid + 6, in6 + 6, 10);
	}
	if (id->ps == CM_PS_UDP)
		mgid[3] = 0x01;
}

static void tell(struct cm_id *id, struct cm_member *m)
{
	struct cm_event *e = cm_event_new(id, CM_EV_MULTICAST_JOIN, 0);
	struct cm_ud_param *p;

	if (!e)
		return;
	e->member = m;
	e->resp.uid = m->uid;
	e->resp.id = m->number;
	p = &e->resp.param.ud;
	p->qp_num = 0xffffff;
	p->qkey = m->group->qkey;
	memcpy(p->ah.dgid, m->group->mgid, 16);
	p->ah.dlid = m->group->mlid;
	p->ah.is_global = 1;
	p->ah.port = (uint8_t)id->port;
	cm_event_queue(e);
}

int cm_join(struct cm_id *id, const union cm_sockaddr *a, uint64_t uid, struct cm_member **out)
{
	struct rdmacm *cm = id->cm;
	struct cm_member *m;
	uint8_t mgid[16];
	int err;

	if (!cm_id_is_ud(id) || !id->device ||
	    (id->state != CM_BOUND && id->state != CM_ADDR_RESOLVED))
		return -EINVAL;
	m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	mgid_of(id, a, mgid);
	m->group = cm_group_find(cm, mgid);
	if (!m->group) {
		m->group = cm_group_new(cm, mgid);
		if (m->group) {
			m->group->qkey = cm_id_qkey(id);
			m->group->pkey = sh_hca(id->cm->dev, id->hca)->port[id->port - 1].pkey[0];
		}
	}
	m->port = m->group ? cm_group_port(m->group, id->hca, id->port) : NULL;
	err = m->port ? cm_table_add(&cm_host_of(id)->members, m, &m->number) : -ENOMEM;
	if (err) {
		cm_group_put(cm, m->group);
		free(m);
		return err;
	}
	m->port->ids++;
	m->uid = uid;
	m->id = id;
	DL_APPEND(id->members, m);
	tell(id, m);
	*out = m;
	return 0;
}

void cm_leave(struct cm_member *m, uint32_t *reported)
{
	struct cm_id *id = m->id;
	struct cm_event *e, *tmp;

	DL_FOREACH_SAFE2(id->events, e, tmp, next_of_id)
	if (e->member == m)
		cm_event_drop(e);
	*reported = m->reported;
	DL_DELETE(id->members, m);
	cm_table_del(&cm_host_of(id)->members, m->number);
	m->port->ids--;
	cm_group_put(id->cm, m->group);
	free(m);
}

void cm_members_free(struct cm_id *id)
{
	uint32_t reported;

	while (id->members)
		cm_leave(id->members, &reported);
}
