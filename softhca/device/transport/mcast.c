// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Multicast groups of an HCA: a hash table by GID. The daemon changes it under mcg_lock. A thread
 * that delivers a packet copies the members out under mcg_lock, and locks QPs afterwards. If it
 * holds other locks already, as the express way does in a chain, it only tries. A slot that was
 * used once keeps its GID, so that searches go on past it.
 */
#include <errno.h>
#include <string.h>

#include "softhca/device/memory/instance.h"
#include "softhca/device/memory/tables.h"
#include "fabric.h"
#include "gsi.h"
#include "mcast.h"
#include "responder.h"

/* NULL: no group of the HCA has ever had a member, so the table has no memory. */
static struct sh_mcg *groups(struct sh_dev *dev, uint32_t hca)
{
	struct sh_hca *h = sh_hca(dev, hca);

	/* pairs with the release in sh_mcast_attach() */
	if (!h || !__atomic_load_n(&h->mcgs_made, __ATOMIC_ACQUIRE))
		return NULL;
	return sh_table_of(h, SH_HCA_MCGS);
}

static uint32_t hash(const uint8_t gid[16])
{
	uint32_t h = 2166136261u;

	for (int i = 0; i < 16; i++)
		h = (h ^ gid[i]) * 16777619u;
	return h % SH_MAX_MCG;
}

/*
 * Returns the group with this GID, or NULL. *spare: a slot that such a group could have, or NULL.
 */
static struct sh_mcg *find(struct sh_mcg *table, const uint8_t gid[16], struct sh_mcg **spare)
{
	uint32_t at = hash(gid);

	if (spare)
		*spare = NULL;
	for (uint32_t i = 0; i < SH_MAX_MCG; i++) {
		struct sh_mcg *g = &table[(at + i) % SH_MAX_MCG];

		if (!g->nqps && spare && !*spare)
			*spare = g;
		if (g->gid[0] != 0xff)
			return NULL;
		if (g->nqps && !memcmp(g->gid, gid, 16))
			return g;
	}
	return NULL;
}

static uint32_t members(const struct sh_mcg *g)
{
	return g->nqps < SH_MCG_QPS ? g->nqps : SH_MCG_QPS;
}

int sh_mcast_attach(struct sh_dev *dev, uint32_t hca, const uint8_t gid[16], uint32_t qpn)
{
	struct sh_hca *h = sh_hca(dev, hca);
	struct sh_mcg *table, *g, *spare;
	int err;

	if (!h || gid[0] != 0xff)
		return -EINVAL;
	table = sh_table_of(h, SH_HCA_MCGS);
	/*
	 * The first member brings memory for the whole table, because senders look through all of
	 * it.
	 */
	err = h->mcgs_made ? 0 : sh_promise(dev, table, sizeof(*table) * SH_MAX_MCG);
	if (err)
		return err;
	__atomic_store_n(&h->mcgs_made, 1, __ATOMIC_RELEASE);
	err = sh_lock_soon(dev, &h->mcg_lock);
	if (err)
		return err;
	g = find(table, gid, &spare);
	if (g) {
		for (uint32_t i = 0; i < members(g); i++)
			if (g->qpn[i] == qpn)
				goto out;
	} else if (spare) {
		g = spare;
		memcpy(g->gid, gid, 16);
	}
	if (!g || g->nqps >= SH_MCG_QPS)
		err = -ENOMEM;
	else
		g->qpn[g->nqps++] = qpn;
out:
	sh_unlock(dev, &h->mcg_lock);
	return err;
}

int sh_mcast_detach(struct sh_dev *dev, uint32_t hca, const uint8_t gid[16], uint32_t qpn)
{
	struct sh_hca *h = sh_hca(dev, hca);
	struct sh_mcg *table = groups(dev, hca), *g;
	int err;

	if (!h || !table || gid[0] != 0xff)
		return -EINVAL;
	err = sh_lock_soon(dev, &h->mcg_lock);
	if (err)
		return err;
	err = -EINVAL;
	g = find(table, gid, NULL);
	for (uint32_t i = 0; g && i < members(g); i++) {
		if (g->qpn[i] != qpn)
			continue;
		g->qpn[i] = g->qpn[g->nqps - 1];
		g->nqps--;
		err = 0;
		break;
	}
	sh_unlock(dev, &h->mcg_lock);
	return err;
}

/*
 * Copies out the members that a group has at this HCA, max of them at most. *n: how many there are.
 * 0, or -EBUSY: the table is locked, and the caller does not wait for it, or is the daemon.
 */
static int members_at(struct sh_dev *dev, uint32_t index, const uint8_t gid[16], bool wait,
		      uint32_t *qpn, uint32_t max, uint32_t *n)
{
	struct sh_mcg *table = groups(dev, index), *g;
	struct sh_hca *hca = sh_hca(dev, index);

	*n = 0;
	if (!table)
		return 0;
	if (wait ? sh_lock_mine(dev, &hca->mcg_lock) : sh_trylock(dev, &hca->mcg_lock))
		return -EBUSY;
	g = find(table, gid, NULL);
	if (g) {
		*n = members(g);
		memcpy(qpn, g->qpn, (*n < max ? *n : max) * sizeof(qpn[0]));
	}
	sh_unlock(dev, &hca->mcg_lock);
	return 0;
}

/* Is the datagram addressed to a group? */
static bool is_to_group(const struct sh_packet *p)
{
	return p->flags & SH_PKT_GRH && p->grh.dgid[0] == 0xff && p->dlid >= 0xc000;
}

struct sh_qp *sh_mcast_only(struct sh_dev *dev, const struct sh_packet *p, bool wait,
			    struct sh_hca **hca)
{
	struct sh_qp *only = NULL;
	uint32_t qpn, n;

	for (uint32_t i = 0; is_to_group(p) && i < dev->hcas; i++) {
		if (members_at(dev, i, p->grh.dgid, wait, &qpn, 1, &n))
			return NULL;
		if (n > 1 || (n && only))
			return NULL;
		if (!n)
			continue;
		*hca = sh_hca(dev, i);
		only = sh_qp_get(dev, i, qpn);
		if (!only)
			return NULL;
	}
	return only;
}

/*
 * Delivers the packet to the members of its group at this HCA. Returns how many there are. In the
 * daemon there are none if the table is locked.
 */
static uint32_t deliver_to(struct sh_dev *dev, struct sh_hca *hca, uint32_t index,
			   const struct sh_packet *p, struct sh_packet *resp)
{
	uint32_t qpn[SH_MCG_QPS], n;

	(void)members_at(dev, index, p->grh.dgid, true, qpn, SH_MCG_QPS, &n);
	for (uint32_t i = 0; i < n; i++) {
		struct sh_qp *qp = sh_qp_get(dev, index, qpn[i]);
		uint32_t port = qp ? qp->port : 0;

		if (!qp) {
			SH_DROPPED(hca, no_qp, 1);
			continue;
		}
		if (!sh_port_active(hca, port)) {
			SH_DROPPED(hca, port, 1);
			continue;
		}
		SH_COUNT_PORT(hca, port, rcv_packets, 1);
		SH_COUNT_PORT(hca, port, rcv_data, p->payload.len);
		SH_COUNT_QP(qp, long_rcv_data, p->payload.len);
		SH_COUNT_PORT(hca, port, rcv_multicast, 1);
		sh_respond_ud(dev, hca, qp, port, p, resp);
		/* Others have got it. */
		if (resp->syndrome == SH_GSI_BUSY)
			SH_DROPPED(hca, memory, 1);
		resp->syndrome = 0;
	}
	return n;
}

void sh_deliver_mcast(struct sh_dev *dev, const struct sh_packet *p, struct sh_packet *resp)
{
	struct sh_hca *src = sh_hca(dev, p->src_hca);
	uint32_t n = 0;

	if (is_to_group(p))
		for (uint32_t i = 0; i < dev->hcas; i++)
			n += deliver_to(dev, sh_hca(dev, i), i, p, resp);
	if (!n && src)
		SH_DROPPED(src, mcast, 1);
}
