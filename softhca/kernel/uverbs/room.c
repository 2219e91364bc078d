// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * uverbs as a room of the daemon: what the rest of the daemon tells it of, handed to the files that
 * know what to do.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>

#include "softhca/device/memory/event.h"
#include "softhca/device/memory/orphans.h"
#include "softhca/device/memory/tables.h"
#include "softhca/device/queues/qp.h"
#include "softhca/kernel/fs.h"
#include "softhca/kernel/process.h"
#include "softhca/kernel/room.h"
#include "command.h"
#include "context.h"
#include "evq.h"
#include "limits.h"
#include "objects.h"
#include "region.h"
#include "room.h"
#include "uverbs.h"

/* ---- what the room keeps ---- */

/*
 * Sizes and first numbers are a ConnectX's. The allocators differ as those of the two kernels do.
 */
static int make_numbers(struct kernel *k, struct hca_objects *hca)
{
	bool rewind = k->cfg.device.face == SH_FACE_MAINLINE;
	int err;

	err = sh_numbers_init(&hca->pdn, 1u << 15, (1u << 17) - 1, 4, rewind);
	if (!err)
		err = sh_numbers_init(&hca->xrcdn, 1u << 16, (1u << 16) - 1, 1, rewind);
	if (!err)
		err = sh_numbers_init(&hca->mpt, 1u << SH_LOG_MPTS, UINT32_MAX, 16, rewind);
	if (!err)
		err = sh_numbers_init(&hca->cqn, 1u << SH_LOG_CQS, (1u << SH_LOG_CQS) - 1, 128,
				      rewind);
	if (!err)
		err = sh_numbers_init(&hca->srqn, 1u << SH_LOG_SRQS, (1u << SH_LOG_SRQS) - 1, 64,
				      rewind);
	if (!err)
		err = sh_numbers_init(&hca->qpn, 1u << SH_LOG_QPS, K_XRC_QPN_BIT - 1, 72, rewind);
	return err;
}

static int init(struct kernel *k)
{
	uint32_t hosts = k->cfg.device.hosts, hcas = hosts * k->cfg.device.hcas_per_host, i;
	int err;

	k->uverbs = calloc(1, sizeof(*k->uverbs));
	if (!k->uverbs)
		return -ENOMEM;
	k->uverbs->face = k->cfg.device.face == SH_FACE_OFED ? &face_ofed : &face_mainline;
	k->uverbs->hosts = calloc(hosts, sizeof(*k->uverbs->hosts));
	k->uverbs->objects = calloc(hcas, sizeof(*k->uverbs->objects));
	k->uverbs->keep = malloc(K_PIPE_SIZE);
	if (!k->uverbs->hosts || !k->uverbs->objects || !k->uverbs->keep)
		return -ENOMEM;
	k->uverbs->keep_size = K_PIPE_SIZE;
	err = sh_numbers_init(&k->uverbs->xrc_reg, SH_MAX_XRC_REG, SH_MAX_XRC_REG - 1, 1, false);
	for (i = 0; !err && i < hcas; i++)
		err = make_numbers(k, &k->uverbs->objects[i]);
	return err;
}

static void exit_room(struct kernel *k)
{
	uint32_t i, t;

	if (!k->uverbs)
		return;
	for (i = 0; k->uverbs->objects && i < k->cfg.device.hosts * k->cfg.device.hcas_per_host;
	     i++) {
		sh_numbers_fini(&k->uverbs->objects[i].pdn);
		sh_numbers_fini(&k->uverbs->objects[i].xrcdn);
		sh_numbers_fini(&k->uverbs->objects[i].mpt);
		sh_numbers_fini(&k->uverbs->objects[i].cqn);
		sh_numbers_fini(&k->uverbs->objects[i].srqn);
		sh_numbers_fini(&k->uverbs->objects[i].qpn);
	}
	for (i = 0; k->uverbs->hosts && i < k->cfg.device.hosts; i++)
		for (t = 0; t < UO_TYPES; t++)
			handles_exit(&k->uverbs->hosts[i].handles[t]);
	free(k->uverbs->hosts);
	free(k->uverbs->objects);
	free(k->uverbs->keep);
	sh_numbers_fini(&k->uverbs->xrc_reg);
	free(k->uverbs);
	k->uverbs = NULL;
}

static int make_files(struct kernel *k, uint32_t host)
{
	char path[128];
	int err;

	snprintf(path, sizeof(path), "host%u/sys/class/infiniband_verbs", host);
	err = dir_make(k->dir_fd, path);
	if (err)
		return err;
	snprintf(path, sizeof(path), "host%u/sys/class/infiniband_verbs/abi_version", host);
	return file_attribute(k->dir_fd, path, "6\n");
}

static void end(struct kernel *k)
{
	uint32_t i;

	if (!k->uverbs)
		return;
	for (i = 1; i < SH_MAX_CTX; i++)
		if (k->uverbs->ctx[i])
			ctx_gone(k->uverbs->ctx[i]);
	for (i = 1; i < SH_MAX_CTX; i++)
		if (k->uverbs->ctx[i])
			ctx_release(k->uverbs->ctx[i]);
}

/* ---- files and event queues ---- */

static void closed(struct kernel *k, unsigned int dir, const char *name)
{
	uint32_t index, generation;
	struct kctx *ctx;
	char kind;

	if (dir == UVERBS_EVENTS) {
		if (fifo_name(name, &index, &generation))
			evq_client_closed(k, index, generation);
		return;
	}
	if (sscanf(name, "%c%u.%u", &kind, &index, &generation) != 3)
		return;
	ctx = ctx_get(k, index);
	if (!ctx || ctx->generation != generation)
		return;
	if (kind == 'c')
		ctx_release(ctx);
	else if (kind == 'l')
		ctx_life_closed(ctx);
}

static void missed(struct kernel *k)
{
	ctx_missed(k);
	evq_missed(k);
}

static void tick(struct kernel *k)
{
	ctx_tick(k);
	if (k->doubted)
		evq_doubted(k);
}

/* An event queue's pipe has room. */
static void ready(struct kernel *k, uint32_t evq)
{
	if (evq < SH_MAX_EVQ && k->uverbs->evq[evq])
		evq_room(k, k->uverbs->evq[evq]);
}

static bool unfinished(const struct kernel *k)
{
	return k->uverbs->releasing || k->uverbs->loud || k->uverbs->spill_again;
}

static void retry(struct kernel *k)
{
	ctx_retry(k);
	if (k->uverbs->spill_again)
		evq_spill(k);
}

/* ---- processes ---- */

static void detached(struct kernel *k, struct kproc *p)
{
	uint32_t i;

	for (i = 1; i < SH_MAX_CTX; i++)
		if (k->uverbs->ctx[i] && k->uverbs->ctx[i]->proc == p &&
		    k->uverbs->ctx[i]->state == KC_OPENING)
			ctx_release(k->uverbs->ctx[i]);
}

static void dead(struct kernel *k, struct kproc *p)
{
	uint32_t i;

	for (i = 1; i < SH_MAX_CTX; i++)
		if (k->uverbs->ctx[i] && k->uverbs->ctx[i]->proc == p)
			ctx_gone(k->uverbs->ctx[i]);
	regions_orphan(k, p);
}

static bool reachable(struct kernel *k, const struct kproc *p, uint64_t addr, uint64_t len,
		      bool out)
{
	if (region_covers(p, addr, len, out))
		return true;
	for (uint32_t i = 1; i < SH_MAX_CTX; i++)
		if (k->uverbs->ctx[i] && k->uverbs->ctx[i]->proc == p &&
		    queues_cover(k->uverbs->ctx[i], addr, len))
			return true;
	return false;
}

static void orphans_of_hca(struct kernel *k, uint32_t hca)
{
	struct kqp *qp, *tmp;

	HASH_ITER(hh, k->uverbs->objects[hca].qps, qp, tmp)
	sh_orphans_of_qp(&k->dev, hca, qp->qpn);
}

static void queues_of(struct kernel *k, const struct kctx *ctx)
{
	struct uobj *u;

	DL_FOREACH(ctx->objs[UO_SRQ], u)
	sh_orphans_of_srq(&k->dev, ctx->hca, ((struct ksrq *)u)->srqn);
	DL_FOREACH(ctx->objs[UO_CQ], u)
	sh_orphans_of_cq(&k->dev, ctx->hca, ((struct kcq *)u)->cqn);
}

static void orphans(struct kernel *k)
{
	for (uint32_t i = 1; i < SH_MAX_CTX; i++)
		if (k->uverbs->ctx[i])
			queues_of(k, k->uverbs->ctx[i]);
	for (uint32_t i = 1; i < SH_MAX_EVQ; i++)
		if (k->uverbs->evq[i])
			sh_orphans_of_evq(&k->dev, i);
}

/* ---- ports ---- */

/* Raises the event for every open file of the HCA that has an asynchronous event queue. */
static void port_event(struct kernel *k, uint32_t hca, uint32_t port, enum port_event event)
{
	static const uint32_t type[] = {
		[PORT_ACTIVE] = UV_EV_PORT_ACTIVE,
		[PORT_ERR] = UV_EV_PORT_ERR,
		[PORT_LID_CHANGE] = UV_EV_LID_CHANGE,
		[PORT_PKEY_CHANGE] = UV_EV_PKEY_CHANGE,
		[PORT_SM_CHANGE] = UV_EV_SM_CHANGE,
		[PORT_CLIENT_REREGISTER] = UV_EV_CLIENT_REREGISTER,
		[PORT_DEVICE_FATAL] = UV_EV_DEVICE_FATAL,
	};
	uint32_t i;

	for (i = 1; i < SH_MAX_CTX; i++) {
		struct kctx *ctx = ctx_get(k, i);

		if (ctx && ctx->hca == hca && ctx->async)
			evq_port_event(k, ctx->async, port, type[event]);
	}
	evq_spill(k);
}

static int silence(struct kernel *k, uint32_t hca)
{
	struct kqp *qp, *tmp;
	int err = 0;

	HASH_ITER(hh, k->uverbs->objects[hca].qps, qp, tmp)
	if (sh_qp_silence(&k->dev, hca, qp->qpn) == -EINPROGRESS)
		err = -EINPROGRESS;
	return err;
}

static bool next_qp(struct kernel *k, uint32_t hca, const void **at, uint32_t *qpn)
{
	const struct kqp *qp =
		*at ? ((const struct kqp *)*at)->hh.next : k->uverbs->objects[hca].qps;

	if (!qp)
		return false;
	*at = qp;
	*qpn = qp->qpn;
	return true;
}

/* What a program's QP is attached to, as long as it has a port. */
static void groups_of(const struct kctx *ctx,
		      void (*fn)(void *arg, uint16_t mlid, uint32_t hca, uint32_t port), void *arg)
{
	struct uobj *u;

	DL_FOREACH(ctx->objs[UO_QP], u)
	{
		const struct kqp_handle *h = (const struct kqp_handle *)u;
		const struct sh_qp *qp =
			h->mcast ? sh_qp_get(&ctx->k->dev, ctx->hca, h->qp->qpn) : NULL;
		uint32_t port = qp ? qp->port : 0;

		for (const struct kmcast *m = h->mcast;
		     m && port >= 1 && port <= ctx->k->cfg.device.ports; m = m->next)
			fn(arg, m->mlid, ctx->hca, port);
	}
}

static void group_ports(struct kernel *k,
			void (*fn)(void *arg, uint16_t mlid, uint32_t hca, uint32_t port),
			void *arg)
{
	for (uint32_t i = 1; i < SH_MAX_CTX; i++) {
		const struct kctx *ctx = ctx_get(k, i);

		if (ctx)
			groups_of(ctx, fn, arg);
	}
}

const struct room uverbs_room = {
	.dirs = {[UVERBS_FILES] = {"files", IN_CLOSE_WRITE},
		 [UVERBS_EVENTS] = {"events", IN_CLOSE_NOWRITE}},
	.init = init,
	.exit = exit_room,
	.files = make_files,
	.end = end,
	.serve = uverbs_serve,
	.closed = closed,
	.missed = missed,
	.doubted = evq_doubted,
	.ready = ready,
	.spill = evq_spill,
	.unfinished = unfinished,
	.retry = retry,
	.tick = tick,
	.detached = detached,
	.dead = dead,
	.reachable = reachable,
	.orphans_of_hca = orphans_of_hca,
	.orphans = orphans,
	.port_event = port_event,
	.group_ports = group_ports,
	.silence = silence,
	.next_qp = next_qp,
	.show_daemon = uverbs_show_daemon,
	.show_hca = uverbs_show_hca,
	.show_counters = uverbs_show_counters,
};
