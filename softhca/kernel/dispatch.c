// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Requests of the control connection: checks each, has it carried out, and replies. Hands the rest
 * to the rooms. Nothing here waits for a client. A request that finds a client's thread in its way
 * gets no reply, and retry.c tries it again. Its client waits for the answer, and sends nothing
 * else meanwhile.
 */
#include <errno.h>
#include <unistd.h>

#include "conn.h"
#include "counters.h"
#include "dispatch.h"
#include "capture.h"
#include "faults.h"
#include "kern.h"
#include "ports.h"
#include "process.h"
#include "room.h"
#include "server.h"
#include "show.h"

static int do_hello(struct server *s, struct conn *c, const struct sh_hello *m, size_t len)
{
	struct kernel *k = s->k;
	struct sh_hello_reply r = {.size = k->mem_size, .hosts = k->cfg.device.hosts};
	int err;

	if (len != sizeof(*m) || c->greeted)
		return -EPROTO;
	if (m->version != SH_WIRE_VERSION) {
		r.error = EPROTO;
	} else if (m->host >= k->cfg.device.hosts) {
		r.error = EINVAL;
	} else if (m->client && m->pid != (uint32_t)c->pid) {
		/*
		 * Another PID namespace: the program's numbers for its peers would be other
		 * processes.
		 */
		r.error = EPERM;
	} else if (m->client) {
		err = proc_attach(k, c->pid, m->host, m->again, m->witness, &c->proc);
		r.error = -err;
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

static int do_show(struct server *s, struct conn *c, size_t len)
{
	struct sh_status st = {0};
	int fd, err;

	if (len != sizeof(struct sh_show))
		return -EPROTO;
	fd = show_make(s->k);
	if (fd < 0)
		return conn_status(c, fd);
	err = conn_reply(c, &st, sizeof(st), &fd, 1);
	close(fd);
	return err;
}

_Static_assert(sizeof(struct sh_port_msg) <= KEPT_MAX, "tried again");

static int do_port(struct server *s, struct conn *c, const struct sh_port_msg *m, size_t len,
		   bool late)
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

static int do_capture(struct server *s, struct conn *c, const struct sh_capture_msg *m, size_t len)
{
	struct sh_status st;

	if (len != sizeof(*m))
		return -EPROTO;
	capture_change(s, c, m, &st);
	return conn_reply(c, &st, sizeof(st), &s->k->memfd, m->on && !st.error ? 1 : 0);
}

static int do_counters(struct server *s, struct conn *c, size_t len)
{
	if (len != sizeof(struct sh_counters_msg))
		return -EPROTO;
	counters_refresh(s->k, c->host);
	return conn_status(c, 0);
}

static int do_stop(struct server *s, struct conn *c, size_t len)
{
	if (len != sizeof(struct sh_stop))
		return -EPROTO;
	s->k->stop = true;
	return conn_status(c, 0);
}

static int serve(struct server *s, struct conn *c, const void *m, size_t len, bool late)
{
	uint32_t type;
	int err;

	if (len < sizeof(type))
		return -EPROTO;
	type = *(const uint32_t *)m;
	if (type == SH_MSG_HELLO)
		return do_hello(s, c, m, len);
	if (!c->greeted)
		return -EPROTO;
	switch (type) {
	case SH_MSG_SHOW:
		return do_show(s, c, len);
	case SH_MSG_PORT:
		return do_port(s, c, m, len, late);
	case SH_MSG_FAULT:
		return do_fault(s, c, m, len);
	case SH_MSG_COUNTERS:
		return do_counters(s, c, len);
	case SH_MSG_CAPTURE:
		return do_capture(s, c, m, len);
	case SH_MSG_STOP:
		return do_stop(s, c, len);
	}
	for (uint32_t i = 0; rooms[i]; i++) {
		err = rooms[i]->serve ? rooms[i]->serve(s, c, m, len, late) : -ENOSYS;
		if (err != -ENOSYS)
			return err;
	}
	return -EPROTO;
}

int dispatch(struct server *s, struct conn *c, const void *m, size_t len, bool late)
{
	int err;

	s->k->given = c->given;
	s->k->wanted = -1;
	err = serve(s, c, m, len, late);
	s->k->given = (struct given){0};
	if (err != -EINPROGRESS)
		conn_given(c, (struct given){0});
	return err;
}
