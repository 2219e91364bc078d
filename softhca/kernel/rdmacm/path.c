// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Paths between ports: one for each pair, inside the subnet. All places that tell a path ask here.
 */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "softhca/device/memory/dev.h"
#include "softhca/kernel/ports.h"
#include "softhca/kernel/wire_engine.h"
#include "address.h"
#include "id.h"
#include "path.h"
#include "rdmacm.h"

#define RATE_40	  7    /* of a QDR port with four lanes */
#define LIFE	  14   /* 67 ms: a QP waits twice as long for each retry */
#define ACK_DELAY 15   /* of the device, as its attributes say */
#define EXACTLY	  0x80 /* selector of an attribute of a record */

void cm_path_between(struct rdmacm *cm, uint32_t hca, uint32_t port, uint32_t to_hca,
		     uint32_t to_port, struct cm_path *p)
{
	const struct sh_port *a = &sh_hca(cm->dev, hca)->port[port - 1];
	const struct sh_port *b = &sh_hca(cm->dev, to_hca)->port[to_port - 1];

	memcpy(p->sgid, a->gid[0], 16);
	memcpy(p->dgid, b->gid[0], 16);
	p->slid = (uint16_t)a->lid;
	p->dlid = (uint16_t)b->lid;
	p->pkey = a->pkey[0];
	p->mtu = port_mtu(cm->k);
	p->rate = RATE_40;
	p->life = LIFE;
}

void cm_path_far(struct rdmacm *cm, uint32_t hca, uint32_t port, uint16_t lid, struct cm_path *p)
{
	cm_path_between(cm, hca, port, hca, port, p);
	sh_ip_put(wire_address(cm->k, hca, port), p->sgid);
	sh_ip_put(wire_address_of(cm->k, lid), p->dgid);
	p->dlid = lid;
}

int cm_path_pkey_index(const struct sh_dev *dev, uint32_t hca, uint32_t port, uint16_t pkey)
{
	const struct sh_port *p = &sh_hca(dev, hca)->port[port - 1];
	int found = -ENOENT;

	for (int i = 0; i < SH_PKEYS; i++) {
		if ((p->pkey[i] ^ pkey) & 0x7fff)
			continue;
		if (p->pkey[i] & 0x8000)
			return i;
		if (found < 0)
			found = i;
	}
	return found;
}

bool cm_path_shared(const struct sh_dev *dev, uint32_t hca, uint32_t port, uint16_t pkey,
		    uint32_t to_hca, uint32_t to_port)
{
	int a = cm_path_pkey_index(dev, hca, port, pkey),
	    b = cm_path_pkey_index(dev, to_hca, to_port, pkey);

	return a >= 0 && b >= 0 &&
	       (sh_hca(dev, hca)->port[port - 1].pkey[a] |
		sh_hca(dev, to_hca)->port[to_port - 1].pkey[b]) &
		       0x8000;
}

void cm_path_partition(struct cm_id *id, uint16_t pkey)
{
	int i = pkey & 0x7fff ? cm_path_pkey_index(id->cm->dev, id->hca, id->port, pkey) : -ENOENT;

	if (i >= 0)
		id->path.pkey = sh_hca(id->cm->dev, id->hca)->port[id->port - 1].pkey[i];
}

void cm_path_record(const struct cm_path *p, struct cm_path_record *out)
{
	memset(out, 0, sizeof(*out));
	memcpy(out->dgid, p->dgid, 16);
	memcpy(out->sgid, p->sgid, 16);
	out->dlid = htobe16(p->dlid);
	out->slid = htobe16(p->slid);
	out->reversible_numpath = 0x81;
	out->pkey = htobe16(p->pkey);
	out->qosclass_sl = htobe16((uint16_t)(p->qos_class << 4));
	out->mtu = EXACTLY | p->mtu;
	out->rate = EXACTLY | p->rate;
	out->life = EXACTLY | p->life;
}

void cm_path_take(struct cm_path *p, const struct cm_path_record *in)
{
	memcpy(p->dgid, in->dgid, 16);
	memcpy(p->sgid, in->sgid, 16);
	p->dlid = be16toh(in->dlid);
	p->slid = be16toh(in->slid);
	p->pkey = be16toh(in->pkey);
	p->mtu = in->mtu & 0x3f;
	p->rate = in->rate & 0x3f;
	p->life = in->life & 0x1f;
}

void cm_path_user(const struct cm_path *p, struct cm_user_path *out)
{
	memset(out, 0, sizeof(*out));
	memcpy(out->dgid, p->dgid, 16);
	memcpy(out->sgid, p->sgid, 16);
	out->dlid = htobe16(p->dlid);
	out->slid = htobe16(p->slid);
	out->reversible = 1;
	out->mtu = p->mtu;
	out->pkey = htobe16(p->pkey);
	out->numb_path = 1;
	out->mtu_selector = out->rate_selector = out->life_selector = 2;
	out->rate = p->rate;
	out->life = p->life;
}

void cm_path_av(const struct cm_id *id, struct cm_ah_attr *av)
{
	memset(av, 0, sizeof(*av));
	memcpy(av->dgid, id->path.dgid, 16);
	av->dlid = id->path.dlid;
	av->static_rate = id->path.rate;
	av->port = (uint8_t)id->port;
}

uint8_t cm_path_timeout(const struct cm_id *id)
{
	unsigned int a = id->path.life + 1u, d = ACK_DELAY, t;

	if (id->ack_timeout_set)
		return id->ack_timeout;
	t = a >= d ? a + (d >= a - 1) : d + (a >= d - 1);
	return (uint8_t)(t > 31 ? 31 : t);
}
