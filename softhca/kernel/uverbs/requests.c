// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Requests of the control connection that are about device files: opens one, carries out commands
 * that a program has written to it, and hears of mappings.
 */
#include <errno.h>
#include <unistd.h>

#include "softhca/kernel/aside.h"
#include "softhca/kernel/conn.h"
#include "softhca/kernel/kern.h"
#include "softhca/kernel/server.h"
#include "command.h"
#include "context.h"
#include "queue.h"
#include "region.h"
#include "room.h"

static int do_open(struct server *s, struct conn *c, const struct sh_open *m, size_t len)
{
	struct sh_open_reply r = {0};
	struct kctx *ctx;
	int err;

	if (len != sizeof(*m) || !c->proc)
		return -EPROTO;
	err = ctx_open(s->k, c->proc, m->device, &ctx);
	r.error = -err;
	if (err == 0) {
		r.ctx = ctx->index;
		r.generation = ctx->generation;
	}
	return conn_reply(c, &r, sizeof(r), NULL, 0);
}

static int do_opened(struct server *s, struct conn *c, const struct sh_opened *m, size_t len)
{
	if (len != sizeof(*m) || !c->proc)
		return -EPROTO;
	return conn_status(c, ctx_opened(s->k, c->proc, m->ctx));
}

static int do_kick(struct server *s, struct conn *c, const struct sh_kick *m, size_t len)
{
	struct kctx *ctx;

	if (len != sizeof(*m) || !c->proc)
		return -EPROTO;
	ctx = ctx_get(s->k, m->ctx);
	if (!ctx || ctx->generation != m->generation || ctx->host != c->host)
		return conn_status(c, -ENODEV);
	return conn_status(c, ctx_kick(ctx));
}

/*
 * Here and below, -EINPROGRESS means that a client is in the way and that there is no reply. Never
 * if late.
 */
static int do_command(struct server *s, struct conn *c, const struct sh_command *m, size_t len,
		      bool late)
{
	const struct sh_pin_result *pin = (const void *)(m + 1);
	struct sh_command_reply r;
	struct call call = {
		.k = s->k,
		.proc = c->proc,
		.r = &r,
		.late = late,
		.vain = c->kept_len && waits_in_vain(s->k, c->since),
	};
	size_t rest;
	int err;

	if (!c->proc || len < sizeof(*m))
		return -EPROTO;
	rest = len - sizeof(*m);
	if (rest != m->here && rest != m->here + sizeof(*pin))
		return -EPROTO;
	if (m->here && m->here != (m->len < SH_COMMAND_MAX ? m->len : SH_COMMAND_MAX))
		return -EPROTO;
	call.tid = m->tid;
	call.cap_ipc_lock = m->cap_ipc_lock;
	call.memlock_limit = m->memlock_limit;
	if (m->here)
		call.here = (const char *)m + len - m->here;
	if (rest != m->here) {
		call.pinned = pin->done;
		call.pin_error = pin->error > 0 ? -pin->error : 0;
		call.share = pin->share;
		call.have_off = pin->have_off;
	}
	call.ctx = ctx_get(s->k, m->ctx);
	command_reply_clear(&r);
	if (!call.ctx || call.ctx->host != c->host)
		r.error = ENODEV;
	else if (!command_run(&call, m->addr, m->len))
		return -EINPROGRESS;
	if (r.error && s->k->wanted >= 0)
		r.error = -1 - s->k->wanted;
	err = conn_reply(c, &r, SH_COMMAND_REPLY(r.nactions), call.fds, r.nfds);
	while (r.nfds)
		close(call.fds[--r.nfds]);
	return err;
}

/* The answer to a request that would have to be tried again, but is late, is EBUSY. */
static int status_late(struct conn *c, int err, bool late)
{
	if (err == -EINPROGRESS && !late)
		return err;
	return conn_status(c, err == -EINPROGRESS ? -EBUSY : err);
}

static int do_map_failed(struct server *s, struct conn *c, const struct sh_map_failed *m,
			 size_t len, bool late)
{
	struct kctx *ctx;

	if (len != sizeof(*m) || !c->proc)
		return -EPROTO;
	ctx = ctx_get(s->k, m->ctx);
	return status_late(
		c, ctx && ctx->proc == c->proc ? map_failed(ctx, m->uaddr, m->len) : -EINVAL, late);
}

static int do_changed(struct server *s, struct conn *c, const struct sh_changed_msg *m, size_t len,
		      bool late)
{
	if (len != sizeof(*m) || !c->proc)
		return -EPROTO;
	return status_late(c, region_changed(s->k, c->proc, m->what, m->uaddr, m->len, late), late);
}

/* Those that may be tried again. */
_Static_assert(sizeof(struct sh_command) + sizeof(struct sh_pin_result) <= KEPT_MAX &&
		       sizeof(struct sh_map_failed) <= KEPT_MAX &&
		       sizeof(struct sh_changed_msg) <= KEPT_MAX,
	       "such a request is kept with its connection");

int uverbs_serve(struct server *s, struct conn *c, const void *m, size_t len, bool late)
{
	switch (*(const uint32_t *)m) {
	case SH_MSG_OPEN:
		return do_open(s, c, m, len);
	case SH_MSG_OPENED:
		return do_opened(s, c, m, len);
	case SH_MSG_KICK:
		return do_kick(s, c, m, len);
	case SH_MSG_COMMAND:
		return do_command(s, c, m, len, late);
	case SH_MSG_MAP_FAILED:
		return do_map_failed(s, c, m, len, late);
	case SH_MSG_CHANGED:
		return do_changed(s, c, m, len, late);
	}
	return -ENOSYS;
}
