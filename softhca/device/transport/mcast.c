// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Multicast groups of an HCA: a hash table by GID. The daemon changes it under mcg_lock. A thread
 * that delivers a packet to all members copies them out under mcg_lock, and locks QPs afterwards.
 * The express way asks for an only member without the lock: mcgs_seq tells whether the table has
 * changed meanwhile. A slot that was used once keeps its GID, so that searches go on past it.
 *
 * With a wire each datagram to a group may have receivers elsewhere, too. So the express way has to
 * take none: mcgs_seq stays odd.
 */
#include <errno.h>
#include <string.h>

#include "softhca/device/memory/instance.h"
#include "softhca/device/memory/tables.h"
#include "softhca/device/queues/wqe.h"
#include "fabric.h"
#include "gsi.h"
#include "mcast.h"
#include "responder.h"

/*
 * NULL: there is no such HCA, or none of its groups has ever had a member, so the table has no
 * memory.
 */
static inline struct sh_mcg *groups(struct sh_hca *h)
{
	/* pairs with the release in sh_mcast_attach() */
	if (!h || !__atomic_load_n(&h->mcgs_made, __ATOMIC_ACQUIRE))
		return NULL;
	return sh_table_of(h, SH_HCA_MCGS);
}

/*
 * A GID as the table has it. All words are read and written by atomic operations: a search may read
 * what is being changed.
 */
struct mgid {
	uint32_t word[4];
};

static struct mgid mgid_of(const uint8_t gid[16])
{
	struct mgid m;

	memcpy(m.word, gid, sizeof(m.word));
	return m;
}

static uint32_t word_of(const uint32_t *w)
{
	return __atomic_load_n(w, __ATOMIC_RELAXED);
}

static bool has(const struct sh_mcg *g, const struct mgid *m)
{
	return word_of(&g->gid[3]) == m->word[3] && word_of(&g->gid[2]) == m->word[2] &&
	       word_of(&g->gid[1]) == m->word[1] && word_of(&g->gid[0]) == m->word[0];
}

/* Groups mostly differ in their last bytes. */
static uint32_t hash(const struct mgid *m)
{
	uint64_t h = (m->word[3] ^ (uint64_t)m->word[1] << 32) * UINT64_C(0x9e3779b97f4a7c15);

	h = (h ^ m->word[2] ^ (uint64_t)m->word[0] << 32) * UINT64_C(0xd6e8feb86659fd93);
	return (uint32_t)(h >> 32) % SH_MAX_MCG;
}

/*
 * Returns the group with this GID, or NULL. *spare: a slot that such a group could have, or NULL.
 */
SH_INLINE struct sh_mcg *find(struct sh_mcg *table, const struct mgid *m, struct sh_mcg **spare)
{
	uint32_t at = hash(m);

	if (spare)
		*spare = NULL;
	for (uint32_t i = 0; i < SH_MAX_MCG; i++) {
		struct sh_mcg *g = &table[(at + i) % SH_MAX_MCG];
		uint32_t n = word_of(&g->nqps);

		if (!n && spare && !*spare)
			*spare = g;
		if (n && has(g, m))
			return g;
		if (!word_of(&g->gid[0]) && !word_of(&g->gid[3]))
			return NULL;
	}
	return NULL;
}

static uint32_t members(const struct sh_mcg *g)
{
	uint32_t n = word_of(&g->nqps);

	return n < SH_MCG_QPS ? n : SH_MCG_QPS;
}

static void set(uint32_t *w, uint32_t v)
{
	__atomic_store_n(w, v, __ATOMIC_RELAXED);
}

/*
 * Around each change of the table, under mcg_lock. If the daemon is killed in between, the number
 * stays odd, and senders look at the table under the lock from then on.
 */
static void change_begins(struct sh_hca *h)
{
	set(&h->mcgs_seq, h->mcgs_seq | 1);
	/* pairs with the acquire fence in peek() */
	__atomic_thread_fence(__ATOMIC_RELEASE);
}

static void change_ends(const struct sh_dev *dev, struct sh_hca *h)
{
	uint32_t step = dev->inst->wire.leads ? 2 : 1;

	/* pairs with the acquire load in peek() */
	__atomic_store_n(&h->mcgs_seq, h->mcgs_seq + step, __ATOMIC_RELEASE);
}

int sh_mcast_attach(struct sh_dev *dev, uint32_t hca, const uint8_t gid[16], uint32_t qpn)
{
	struct sh_hca *h = sh_hca(dev, hca);
	struct sh_mcg *table, *g, *spare;
	struct mgid m = mgid_of(gid);
	int err;

	if (!h || !sh_gid_is_group(gid))
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
	g = find(table, &m, &spare);
	for (uint32_t i = 0; g && i < members(g); i++)
		if (g->qpn[i] == qpn)
			goto out;
	g = g ?: spare;
	if (!g || g->nqps >= SH_MCG_QPS) {
		err = -ENOMEM;
		goto out;
	}
	change_begins(h);
	for (int i = 0; i < 4; i++)
		set(&g->gid[i], m.word[i]);
	set(&g->qpn[g->nqps], qpn);
	set(&g->nqps, g->nqps + 1);
	change_ends(dev, h);
out:
	sh_unlock(dev, &h->mcg_lock);
	return err;
}

int sh_mcast_detach(struct sh_dev *dev, uint32_t hca, const uint8_t gid[16], uint32_t qpn)
{
	struct sh_hca *h = sh_hca(dev, hca);
	struct sh_mcg *table = groups(h), *g;
	struct mgid m = mgid_of(gid);
	int err;

	if (!h || !table || !sh_gid_is_group(gid))
		return -EINVAL;
	err = sh_lock_soon(dev, &h->mcg_lock);
	if (err)
		return err;
	err = -EINVAL;
	g = find(table, &m, NULL);
	for (uint32_t i = 0, n = g ? members(g) : 0; i < n; i++) {
		if (g->qpn[i] != qpn)
			continue;
		change_begins(h);
		set(&g->qpn[i], g->qpn[n - 1]);
		set(&g->nqps, n - 1);
		change_ends(dev, h);
		err = 0;
		break;
	}
	sh_unlock(dev, &h->mcg_lock);
	return err;
}

/*
 * Copies out the members that a group has at this HCA, SH_MCG_QPS of them at most. Returns how many
 * there are; in the daemon 0 if the table is locked.
 */
static uint32_t members_at(struct sh_dev *dev, uint32_t index, const uint8_t gid[16], uint32_t *qpn)
{
	struct sh_hca *hca = sh_hca(dev, index);
	struct sh_mcg *table = groups(hca), *g;
	struct mgid m = mgid_of(gid);
	uint32_t n = 0;

	if (!table || sh_lock_mine(dev, &hca->mcg_lock, SH_WAIT_PATIENTLY))
		return 0;
	g = find(table, &m, NULL);
	if (g) {
		n = members(g);
		memcpy(qpn, g->qpn, n * sizeof(qpn[0]));
	}
	sh_unlock(dev, &hca->mcg_lock);
	return n;
}

/*
 * How many members the group has at this HCA, and the first of them. False: the table is being
 * changed.
 */
SH_INLINE bool peek(struct sh_hca *hca, const struct mgid *m, uint32_t *qpn, uint32_t *n)
{
	struct sh_mcg *table = groups(hca), *g;
	uint32_t seq;

	*n = 0;
	if (!table)
		return true;
	/* pairs with the release in change_ends() */
	seq = __atomic_load_n(&hca->mcgs_seq, __ATOMIC_ACQUIRE);
	g = find(table, m, NULL);
	if (g) {
		*n = members(g);
		*qpn = word_of(&g->qpn[0]);
	}
	/* pairs with the release fence in change_begins() */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return !(seq & 1) && word_of(&hca->mcgs_seq) == seq;
}

/* Is the datagram addressed to a group? Without a wire no group has a GID of the other form. */
static bool is_to_group(const struct sh_packet *p)
{
	return p->flags & SH_PKT_GRH && p->grh.dgid[0] == 0xff && p->dlid >= SH_LID_GROUPS;
}

bool sh_is_to_group(const struct sh_packet *p)
{
	return p->service == SH_SVC_UD && p->dqpn == MLX4_MULTICAST_QPN && p->flags & SH_PKT_GRH &&
	       sh_gid_is_group(p->grh.dgid) && p->dlid >= SH_LID_GROUPS;
}

/*
 * Has the QP sent the datagram itself, and does not want it back? Not for what came over the wire,
 * which may have any sender.
 */
static inline bool is_blocked(const struct sh_qp *qp, uint32_t index, const struct sh_packet *p)
{
	return qp->block_self_mcast && p->src_hca == index && p->srcqp == qp->qpn;
}

struct sh_qp *sh_mcast_only(struct sh_dev *dev, const struct sh_packet *p, struct sh_hca **hca)
{
	struct mgid m = mgid_of(p->grh.dgid);
	struct sh_qp *only = NULL;
	uint32_t qpn = 0, n;

	if (!is_to_group(p))
		return NULL;
	for (uint32_t i = 0; i < dev->hcas; i++) {
		struct sh_hca *h = sh_hca_table(dev, i, 0);

		if (!peek(h, &m, &qpn, &n) || n > 1 || (n && only))
			return NULL;
		if (!n)
			continue;
		*hca = h;
		only = sh_qp_of(h, qpn);
		if (!only || is_blocked(only, i, p))
			return NULL;
	}
	return only;
}

/*
 * Delivers the packet, which is from the wire or not, to n members of its group at this HCA.
 * Returns n.
 */
static uint32_t deliver_to(struct sh_dev *dev, struct sh_hca *hca, uint32_t index,
			   const uint32_t *qpn, uint32_t n, const struct sh_packet *p,
			   bool from_wire, struct sh_packet *resp)
{
	uint32_t ports = 0;

	for (uint32_t i = 0; i < n; i++) {
		struct sh_qp *qp = sh_qp_get(dev, index, qpn[i]);
		uint32_t port = qp ? qp->port : 0;

		if (!qp) {
			SH_DROPPED(hca, no_qp, 1);
			continue;
		}
		if (!from_wire && is_blocked(qp, index, p))
			continue;
		if (!sh_port_active(hca, port)) {
			SH_DROPPED_AT(hca, qp, port, 1);
			continue;
		}
		/* A port receives it once, whatever the number of its members. */
		if (!(ports >> port & 1)) {
			SH_COUNT_PORT(hca, port, rcv_multicast, 1);
			SH_COUNT_RCV(hca, port, 1, p->payload.len);
			ports |= 1u << port;
		}
		SH_COUNT_QP(qp, long_rcv_data, p->payload.len);
		sh_respond_ud(dev, hca, qp, port, p, resp);
		/* Others have got it. */
		if (resp->syndrome == SH_BUSY)
			SH_DROPPED_AT(hca, qp, memory, 1);
		resp->syndrome = 0;
	}
	return n;
}

void sh_deliver_mcast(struct sh_dev *dev, const struct sh_packet *p, struct sh_packet *resp)
{
	struct sh_hca *src = sh_hca(dev, p->src_hca);
	uint32_t qpn[SH_MCG_QPS], n = 0;

	if (sh_is_to_group(p))
		for (uint32_t i = 0; i < dev->hcas; i++)
			n += deliver_to(dev, sh_hca(dev, i), i, qpn,
					members_at(dev, i, p->grh.dgid, qpn), p, false, resp);
	/*
	 * A wire may lead to members; if it leads to none, no one hears of it, as on any network.
	 */
	if (!n && src && !(dev->inst->wire.leads && sh_is_to_group(p)))
		SH_DROPPED_AT(src, sh_qp_get(dev, p->src_hca, p->srcqp), mcast, 1);
}

/* Is the QP at one of these ports of the wire? */
static bool is_at(struct sh_dev *dev, uint32_t index, uint32_t qpn, uint64_t ports)
{
	const struct sh_qp *qp = sh_qp_get(dev, index, qpn);
	uint32_t port = qp ? qp->port : 0, number = index * dev->ports + port - 1;

	return port && number < 64 && ports >> number & 1;
}

uint32_t sh_deliver_group(struct sh_dev *dev, uint64_t ports, const struct sh_packet *p)
{
	uint32_t qpn[SH_MCG_QPS], n = 0;
	struct sh_packet resp;

	sh_packet_init(&resp);
	for (uint32_t i = 0; i < dev->hcas; i++) {
		uint32_t all = members_at(dev, i, p->grh.dgid, qpn), here = 0;

		for (uint32_t k = 0; k < all; k++)
			if (is_at(dev, i, qpn[k], ports))
				qpn[here++] = qpn[k];
		n += deliver_to(dev, sh_hca(dev, i), i, qpn, here, p, true, &resp);
	}
	return n;
}
