// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Management datagrams between QP 1 and UD QPs of programs. Trusts nothing of what the FIFO brings.
 * The daemon's helper thread delivers, so that the loop copies nothing. Neither waits for a client:
 * a datagram whose receiver's locks are held is tried again later, and is lost in the end, as
 * datagrams are.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "softhca/device/memory/dev.h"
#include "softhca/device/memory/instance.h"
#include "softhca/device/memory/life.h"
#include "softhca/device/transport/fabric.h"
#include "softhca/device/transport/gsi.h"
#include "softhca/kernel/lists.h"
#include "gsi.h"

#define MOST_LEAVING 4096 /* datagrams that wait for the helper thread */
#define MOST_LATE    64	  /* of these, that wait for locks */
#define AT_ONCE	     64	  /* records that are read before the loop serves others */
#define HOPS	     64

/* A datagram is tried again after FIRST_NS, twice that, up to LONGEST_NS, for GIVE_UP_NS in all. */
#define FIRST_NS   UINT64_C(50000)
#define LONGEST_NS UINT64_C(10000000)
#define GIVE_UP_NS UINT64_C(2000000000)

static void path_of(char path[64])
{
	snprintf(path, 64, "events/%u.%u", SH_GSI_EVQ, SH_GSI_GENERATION);
}

int gsi_open(struct umad *u, int dir_fd)
{
	char path[64];

	path_of(path);
	if (mkfifoat(dir_fd, path, 0600) < 0)
		return -errno;
	u->gsi = openat(dir_fd, path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	return u->gsi < 0 ? -errno : 0;
}

struct leaving {
	struct leaving *prev, *next;
	struct umad *u;
	uint64_t wait, until; /* 0: it waits for no lock */
	struct sh_packet p;
	struct sh_seg seg;
	uint8_t mad[SH_GSI_SIZE];
};

/* Of the list, which the loop and the helper thread change. */
static pthread_mutex_t leavers_lock = PTHREAD_MUTEX_INITIALIZER;

/* The helper thread has ended: what it has not delivered is lost. */
void gsi_close(struct umad *u)
{
	struct leaving *l, *next;

	DL_FOREACH_SAFE(u->leavers, l, next)
	free(l);
	u->leavers = NULL;
	if (u->gsi >= 0)
		close(u->gsi);
	u->gsi = -1;
}

/* ---- to QP 1 ---- */

static void came(struct umad *u, const struct sh_gsi_record *r)
{
	struct mad_way w = {
		.hca = r->hca,
		.port = r->port,
		.slid = r->slid,
		.dlid = r->dlid,
		.qpn = r->srcqp & 0xffffff,
		.to_qpn = SH_GSI_QPN,
		.sl = r->sl & 15,
		.pkey = r->pkey,
		.grh = r->grh,
		.route = r->route,
	};

	if (r->hca >= u->dev->hcas || !r->port || r->port > u->cfg->ports || w.qpn < 2 ||
	    mad_is_smp(r->mad))
		return;
	fabric_send(u, &w, r->mad, sizeof(r->mad));
}

void gsi_ready(struct umad *u)
{
	struct sh_gsi_record r;
	ssize_t n = 1;

	for (int i = 0; i < AT_ONCE; i++) {
		n = read(u->gsi, &r, sizeof(r));
		if (n != (ssize_t)sizeof(r))
			break;
		came(u, &r);
	}
	/*
	 * No sender writes a part of a record. A part is from another program: it is thrown away
	 * with the rest.
	 */
	while (n > 0 && n != (ssize_t)sizeof(r))
		n = read(u->gsi, &r, sizeof(r) - 1);
}

/* ---- from QP 1 ---- */

static void note(struct leaving *l)
{
	pthread_mutex_lock(&leavers_lock);
	DL_APPEND(l->u->leavers, l);
	pthread_mutex_unlock(&leavers_lock);
	__atomic_add_fetch(&l->u->leaving, 1, __ATOMIC_RELAXED);
}

static void drop(struct leaving *l)
{
	pthread_mutex_lock(&leavers_lock);
	DL_DELETE(l->u->leavers, l);
	pthread_mutex_unlock(&leavers_lock);
	__atomic_sub_fetch(&l->u->leaving, 1, __ATOMIC_RELAXED);
	free(l);
}

static void deliver(struct sh_dev *dev, uint64_t a, uint64_t b);

/*
 * A lock is held: tries the datagram again later. False: it has waited for too long, or too many
 * wait.
 */
static bool put_off(struct sh_dev *dev, struct leaving *l)
{
	uint64_t now = dev->ops->now(dev->host);

	if (!l->wait) {
		if (l->u->late >= MOST_LATE)
			return false;
		l->u->late++;
		l->wait = FIRST_NS;
		l->until = now + GIVE_UP_NS;
	} else if (l->wait < LONGEST_NS) {
		l->wait = l->wait * 2 < LONGEST_NS ? l->wait * 2 : LONGEST_NS;
	}
	return now < l->until && sh_defer(dev, now + l->wait, deliver, (uintptr_t)l, 0) >= 0;
}

/* In the helper thread. */
static void deliver(struct sh_dev *dev, uint64_t a, uint64_t b)
{
	struct leaving *l = (struct leaving *)(uintptr_t)a;

	(void)b;
	if (sh_gsi_send(dev, &l->p, l->wait == LONGEST_NS)) {
		if (put_off(dev, l))
			return;
		sh_gsi_lost(dev, &l->p);
	}
	if (l->wait)
		l->u->late--;
	drop(l);
}

static void leave(struct umad *u, const struct sh_packet *p, const uint8_t *mad, size_t len)
{
	struct leaving *l;

	if (len > SH_GSI_SIZE)
		return;
	l = __atomic_load_n(&u->leaving, __ATOMIC_RELAXED) < MOST_LEAVING ? calloc(1, sizeof(*l))
									  : NULL;
	if (!l) {
		sh_gsi_lost(u->dev, p);
		return;
	}
	l->u = u;
	l->p = *p;
	memcpy(l->mad, mad, len);
	l->seg = (struct sh_seg){(uintptr_t)l->mad, SH_GSI_SIZE};
	l->p.op = SH_PKT_SEND;
	l->p.service = SH_SVC_UD;
	l->p.flags |= SH_PKT_FIRST | SH_PKT_LAST;
	l->p.npackets = 1;
	l->p.mtu = 4096;
	l->p.srcqp = SH_GSI_QPN;
	l->p.qkey = SH_GSI_QKEY;
	l->p.payload = (struct sh_payload){.nseg = 1, .seg = &l->seg, .len = SH_GSI_SIZE};
	note(l);
	if (sh_defer(u->dev, u->dev->ops->now(u->dev->host), deliver, (uintptr_t)l, 0) < 0) {
		sh_gsi_lost(u->dev, p);
		drop(l);
	}
}

void gsi_send(struct umad *u, const struct mad_way *w, const uint8_t *mad, size_t len)
{
	struct sh_packet p = {
		.src_hca = w->hca,
		.src_port = (uint8_t)w->port,
		.slid = w->slid,
		.dlid = w->dlid,
		.dqpn = w->to_qpn,
		.pkey = w->pkey,
		.sl = w->sl,
		.flags = w->grh ? SH_PKT_GRH : 0,
		.grh = w->route,
	};

	leave(u, &p, mad, len);
}

void gsi_answer(struct umad *u, const struct mad_way *w, const struct mad_node *n,
		const uint8_t *mad, size_t len)
{
	const struct sh_port *from =
		n->is_switch ? NULL : &sh_hca(u->dev, n->hca)->port[n->port - 1];
	struct sh_packet p = {
		.src_hca = n->is_switch ? w->hca : n->hca,
		.src_port = (uint8_t)(n->is_switch ? 0 : n->port),
		.slid = w->dlid,
		.dlid = w->slid,
		.dqpn = w->qpn,
		.pkey = w->pkey,
		.sl = w->sl,
	};

	if (w->grh && from) {
		p.flags = SH_PKT_GRH;
		p.grh = w->route;
		p.grh.hop_limit = HOPS;
		memcpy(p.grh.sgid, from->gid[0], 16);
		memcpy(p.grh.dgid, w->route.sgid, 16);
	}
	leave(u, &p, mad, len);
}
