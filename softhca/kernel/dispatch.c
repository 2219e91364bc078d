// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Requests of the control connection: checks each, has it carried out, and replies. Nothing here
 * waits for a client. A request that finds a client's thread in its way gets no reply, and retry.c
 * tries it again. Its client waits for the answer, and sends nothing else meanwhile.
 */
#include <errno.h>
#include <unistd.h>

#include "softhca/kernel/uverbs/command.h"
#include "softhca/kernel/uverbs/context.h"
#include "softhca/kernel/uverbs/queue.h"
#include "softhca/kernel/uverbs/region.h"
#include "conn.h"
#include "dispatch.h"
#include "faults.h"
#include "kern.h"
#include "ports.h"
#include "process.h"
#include "server.h"
#include "show.h"

static int do_hello(struct server *s, struct conn *c, const struct sh_hello *m, size_t len)
{
	struct kernel *k = s->k;
	struct sh_hello_reply r = {.size = k->mem_size, .hosts = k->cfg.device.hosts};
	struct user user = {.pid = c->pid, .witness = m->witness};
	char byte;
	int err;

	if (len != sizeof(*m) || c->greeted)
		return -EPROTO;
	if (m->version != SH_WIRE_VERSION) {
		r.error = EPROTO;
	} else if (m->host >= k->cfg.device.hosts) {
		r.error = EINVAL;
	} else if (m->client) {
		if (k->user->read(k->user_arg, &user, m->witness, &byte, 1) < 0) {
			r.error = EPERM;
		} else {
			err = proc_attach(k, c->pid, m->host, m->again, m->witness, &c->proc);
			r.error = -err;
		}
	}
	if (r.error)
		return conn_reply(c, &r, sizeof(r), NULL, 0);
	c->greeted = true;
	c->host = m->host;
	if (!c->proc)
		return conn_reply(c, &r, sizeof(r), NULL, 0);
	r.proc = c->proc->slot;
	if (c->proc->pidfd >= 0)
		(void)server_watch(s, c->proc->pidfd, SRC_PIDFD, c->proc->slot);
	return conn_reply(c, &r, sizeof(r), &k->memfd, 1);
}

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

static int status(struct conn *c, int err)
{
	struct sh_status st = {.error = -err};

	return conn_reply(c, &st, sizeof(st), NULL, 0);
}

static int do_opened(struct server *s, struct conn *c, const struct sh_opened *m, size_t len)
{
	if (len != sizeof(*m) || !c->proc)
		return -EPROTO;
	return status(c, ctx_opened(s->k, c->proc, m->ctx));
}

static int do_kick(struct server *s, struct conn *c, const struct sh_kick *m, size_t len)
{
	struct kctx *ctx;

	if (len != sizeof(*m) || !c->proc)
		return -EPROTO;
	ctx = ctx_get(s->k, m->ctx);
	if (!ctx || ctx->generation != m->generation || ctx->host != c->host)
		return status(c, -ENODEV);
	return status(c, ctx_kick(ctx));
}

/*
 * Here and below, -EINPROGRESS means that a client is in the way and that there is no reply. Never
 * if late.
 */
static int do_command(struct server *s, struct conn *c, const struct sh_command *m, size_t len, bool late)
{
	const struct sh_pin_result *pin = (const void *)(m + 1);
	struct sh_command_reply r = {0};
	struct call call = {
		.k = s->k, .proc = c->proc, .tid = m->tid, .cap_ipc_lock = m->cap_ipc_lock,
		.memlock_limit = m->memlock_limit, .r = &r, .late = late,
	};
	int err;

	if (!c->proc || (len != sizeof(*m) && len != sizeof(*m) + sizeof(*pin)))
		return -EPROTO;
	if (len != sizeof(*m)) {
		call.pinned = pin->done;
		call.pin_error = pin->error > 0 ? -pin->error : 0;
		call.share = pin->share;
		call.have_off = pin->have_off;
	}
	call.ctx = ctx_get(s->k, m->ctx);
	if (!call.ctx || call.ctx->host != c->host)
		r.error = ENODEV;
	else if (!command_run(&call, m->addr, m->len))
		return -EINPROGRESS;
	err = conn_reply(c, &r, sizeof(r), call.fds, r.nfds);
	while (r.nfds)
		close(call.fds[--r.nfds]);
	return err;
}

/* The answer to a request that would have to be tried again, but is late, is EBUSY. */
static int status_late(struct conn *c, int err, bool late)
{
	if (err == -EINPROGRESS && !late)
		return err;
	return status(c, err == -EINPROGRESS ? -EBUSY : err);
}

static int do_map_failed(struct server *s, struct conn *c, const struct sh_map_failed *m, size_t len, bool late)
{
	struct kctx *ctx;

	if (len != sizeof(*m) || !c->proc)
		return -EPROTO;
	ctx = ctx_get(s->k, m->ctx);
	return status_late(c, ctx && ctx->proc == c->proc ? map_failed(ctx, m->uaddr, m->len) : -EINVAL, late);
}

static int do_changed(struct server *s, struct conn *c, const struct sh_changed_msg *m, size_t len, bool late)
{
	if (len != sizeof(*m) || !c->proc)
		return -EPROTO;
	return status_late(c, region_changed(s->k, c->proc, m->what, m->uaddr, m->len, late), late);
}

static int do_show(struct server *s, struct conn *c, size_t len)
{
	struct sh_status st = {0};
	int fd, err;

	if (len != sizeof(struct sh_show))
		return -EPROTO;
	fd = show_make(s->k);
	if (fd < 0)
		return status(c, fd);
	err = conn_reply(c, &st, sizeof(st), &fd, 1);
	close(fd);
	return err;
}

static int do_port(struct server *s, struct conn *c, const struct sh_port_msg *m, size_t len, bool late)
{
	struct sh_status st;

	if (len != sizeof(*m))
		return -EPROTO;
	if (!port_change(s->k, m, late, &st))
		return -EINPROGRESS;
	return conn_reply(c, &st, sizeof(st), NULL, 0);
}

static int do_fault(struct server *s, struct conn *c, const struct sh_fault_msg *m, size_t len)
{
	struct sh_status st;

	if (len != sizeof(*m))
		return -EPROTO;
	fault_set(s->k, m, &st);
	return conn_reply(c, &st, sizeof(st), NULL, 0);
}

static int do_stop(struct server *s, struct conn *c, size_t len)
{
	if (len != sizeof(struct sh_stop))
		return -EPROTO;
	s->k->stop = true;
	return status(c, 0);
}

int dispatch(struct server *s, struct conn *c, const void *m, size_t len, bool late)
{
	uint32_t type;

	if (len < sizeof(type))
		return -EPROTO;
	type = *(const uint32_t *)m;
	if (type == SH_MSG_HELLO)
		return do_hello(s, c, m, len);
	if (!c->greeted)
		return -EPROTO;
	switch (type) {
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
	case SH_MSG_SHOW:
		return do_show(s, c, len);
	case SH_MSG_PORT:
		return do_port(s, c, m, len, late);
	case SH_MSG_FAULT:
		return do_fault(s, c, m, len);
	case SH_MSG_STOP:
		return do_stop(s, c, len);
	}
	return -EPROTO;
}
