// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Requests of the control connection that are about umad: opens it, and carries out its calls. The
 * daemon waits for no thread of a client here.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "softhca/kernel/conn.h"
#include "softhca/kernel/kern.h"
#include "softhca/kernel/process.h"
#include "softhca/kernel/server.h"
#include "agent.h"
#include "file.h"
#include "io.h"
#include "room.h"

static int do_open(struct server *s, struct conn *c, const struct sh_mad_open *m, size_t len)
{
	struct sh_mad_reply r = {0};
	struct umad_file *f;
	int fd, err;

	if (len != sizeof(*m) || !c->proc)
		return -EPROTO;
	err = umad_open(s->k->umad, c->proc, m->minor, m->flags, &f, &fd);
	if (err) {
		r.result = err;
		return conn_reply(c, &r, sizeof(r), NULL, 0);
	}
	err = conn_reply(c, &r, sizeof(r), &fd, 1);
	/* If that was the only one, the loop hears of it. */
	close(fd);
	return err;
}

static int in(struct conn *c, struct umad_file *f, uint64_t addr, void *to, size_t len)
{
	return client_read(f->u->k, &c->proc->user, addr, to, len);
}

static int out(struct conn *c, struct umad_file *f, uint64_t addr, const void *what, size_t len)
{
	return client_write(f->u->k, &c->proc->user, addr, what, len);
}

static long do_write(struct conn *c, struct umad_file *f, const struct sh_mad_call *m)
{
	uint8_t *what;
	long ret;

	if (m->len < UMAD_HDR_OLD + MAD_RMPP || m->len > UMAD_WRITE_MAX)
		return -EINVAL;
	what = malloc(m->len);
	if (!what)
		return -ENOMEM;
	ret = in(c, f, m->addr, what, m->len);
	if (!ret)
		ret = umad_write(f, what, m->len);
	free(what);
	return ret;
}

static long do_register(struct conn *c, struct umad_file *f, uint64_t addr)
{
	struct umad_reg r;
	int err = in(c, f, addr, &r, sizeof(r));

	err = err ?: umad_register(f, &r);
	if (!err && (err = out(c, f, addr, &r.id, sizeof(r.id))))
		(void)umad_unregister(f, r.id);
	return err;
}

static long do_register2(struct conn *c, struct umad_file *f, uint64_t addr)
{
	struct umad_reg2 r;
	int err = in(c, f, addr, &r, sizeof(r)), told;
	uint32_t flags;

	if (err)
		return err;
	flags = r.flags;
	err = umad_register2(f, &r);
	told = err && r.flags == flags ? 0 : out(c, f, addr, &r, sizeof(r));
	if (!err && told)
		(void)umad_unregister(f, r.id);
	return err ? err : told;
}

static long do_ioctl(struct conn *c, struct umad_file *f, const struct sh_mad_call *m)
{
	uint32_t id;
	int err;

	switch (m->request) {
	case UMAD_REGISTER_AGENT:
		return do_register(c, f, m->addr);
	case UMAD_REGISTER_AGENT2:
		/* Kernels of OFED's time have it not. */
		if (f->u->cfg->face == SH_FACE_OFED)
			return -ENOTTY;
		return do_register2(c, f, m->addr);
	case UMAD_UNREGISTER_AGENT:
		err = in(c, f, m->addr, &id, sizeof(id));
		return err ?: umad_unregister(f, id);
	case UMAD_ENABLE_PKEY:
		return umad_enable_pkey(f);
	}
	return -ENOTTY;
}

static int do_call(struct server *s, struct conn *c, const struct sh_mad_call *m, size_t len)
{
	struct sh_mad_reply r = {0};
	struct umad_file *f;

	if (len != sizeof(*m) || !c->proc)
		return -EPROTO;
	f = umad_get(s->k->umad, m->index, m->generation);
	if (!f || f->host != c->host)
		r.result = -EIO;
	else if (f->issm && m->what <= SH_MAD_IOCTL)
		r.result = m->what == SH_MAD_IOCTL ? -ENOTTY : -EINVAL;
	else if (m->what == SH_MAD_WRITE)
		r.result = do_write(c, f, m);
	else if (m->what == SH_MAD_READ)
		r.result = umad_read(f, c->proc, m->addr, m->len);
	else if (m->what == SH_MAD_IOCTL)
		r.result = do_ioctl(c, f, m);
	else
		return -EPROTO;
	return conn_reply(c, &r, sizeof(r), NULL, 0);
}

int umad_serve(struct server *s, struct conn *c, const void *m, size_t len, bool late)
{
	(void)late;
	switch (*(const uint32_t *)m) {
	case SH_MSG_MAD_OPEN:
		return do_open(s, c, m, len);
	case SH_MSG_MAD_CALL:
		return do_call(s, c, m, len);
	}
	return -ENOSYS;
}
