// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Requests of the control connection that are about rdma_cm: opens it, and carries out commands.
 * The daemon waits for no thread of a client here.
 */
#include <errno.h>
#include <unistd.h>

#include "softhca/kernel/conn.h"
#include "softhca/kernel/kern.h"
#include "softhca/kernel/process.h"
#include "softhca/kernel/server.h"
#include "channel.h"
#include "command.h"
#include "room.h"
#include "timer.h"

static int do_open(struct server *s, struct conn *c, const struct sh_cm_open *m, size_t len)
{
	struct sh_cm_reply r = {0};
	struct cm_channel *ch;
	int fd, err;

	if (len != sizeof(*m) || !c->proc)
		return -EPROTO;
	err = cm_channel_open(s->k->rdmacm, c->proc, m->flags, &ch, &fd);
	if (err) {
		r.error = -err;
		return conn_reply(c, &r, sizeof(r), NULL, 0);
	}
	err = conn_reply(c, &r, sizeof(r), &fd, 1);
	/* If that was the only one, the loop hears of it. */
	close(fd);
	return err;
}

/* A program that waits asks in vain before it sleeps, which is no failure. */
static int counted(struct kernel *k, int err)
{
	k->count.commands += err != -EAGAIN;
	k->count.failed += err && err != -EAGAIN;
	return err;
}

static int do_command(struct server *s, struct conn *c, const struct sh_cm_command *m, size_t len)
{
	struct sh_cm_reply r = {0};
	struct rdmacm *cm = s->k->rdmacm;
	struct cm_call call = {.cm = cm, .proc = c->proc};
	int err;

	if (len < sizeof(*m) || len - sizeof(*m) != m->here || !c->proc)
		return -EPROTO;
	if (m->here && m->here != (m->len < SH_COMMAND_MAX ? m->len : SH_COMMAND_MAX))
		return -EPROTO;
	call.text = m->here ? m + 1 : NULL;
	call.text_len = m->here;
	call.tid = (pid_t)m->tid;
	call.privileged = m->privileged;
	cm_timer_hold(cm);
	call.ch = cm_channel_get(cm, m->channel, m->generation);
	if (!call.ch || call.ch->host != c->host)
		r.error = ENODEV;
	else
		r.error = -counted(s->k, cm_command(&call, m->addr, m->len));
	if (r.error && s->k->wanted >= 0)
		r.error = -1 - s->k->wanted;
	err = conn_reply(c, &r, sizeof(r), NULL, 0);
	cm_timer_go(cm);
	return err;
}

int cm_serve(struct server *s, struct conn *c, const void *m, size_t len, bool late)
{
	(void)late;
	switch (*(const uint32_t *)m) {
	case SH_MSG_CM_OPEN:
		return do_open(s, c, m, len);
	case SH_MSG_CM_COMMAND:
		return do_command(s, c, m, len);
	}
	return -ENOSYS;
}
