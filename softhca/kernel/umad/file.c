// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Open umad files. Each is a FIFO (fifo.h) with a byte for each unread MAD.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "softhca/device/memory/instance.h"
#include "softhca/kernel/lists.h"
#include "softhca/kernel/ports.h"
#include "softhca/kernel/process.h"
#include "softhca/kernel/user.h"
#include "softhca/protocol.h"
#include "file.h"
#include "sm.h"

int umad_open(struct umad *u, struct kproc *p, uint32_t minor, uint32_t flags,
	      struct umad_file **out, int *fd)
{
	const struct sh_config *c = u->cfg;
	uint32_t number = minor % UMAD_MINORS;
	uint32_t hca = p->host * c->hcas_per_host + number / c->ports;
	struct umad_file *f;
	int err;

	if (u->off || minor >= 2 * UMAD_MINORS || number >= c->hcas_per_host * c->ports)
		return -ENXIO;
	if (u->hcas[hca].fatal)
		return -ENXIO;
	f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	f->u = u;
	f->host = p->host;
	f->hca = hca;
	f->port = number % c->ports + 1;
	f->pid = p->pid;
	f->issm = minor >= UMAD_MINORS;
	err = fifo_open(&f->fifo, u->k,
			&(struct fifo_opening){.dir = "mads",
					       .index = minor,
					       .generation = ++u->generation,
					       .flags = flags,
					       .pid = p->pid},
			fd);
	/*
	 * Last: it makes the built-in manager give way, and nothing brings back what that forgets.
	 */
	if (!err && f->issm) {
		err = sm_open(u, f->hca, f->port);
		if (err) {
			close(*fd);
			fifo_close(&f->fifo);
		}
	}
	if (err) {
		free(f);
		return err;
	}
	DL_APPEND(u->files, f);
	*out = f;
	return 0;
}

void umad_free(struct umad_file *f)
{
	struct umad_msg *m, *tmp;

	DL_DELETE(f->u->files, f);
	DL_FOREACH_SAFE(f->unread, m, tmp)
	free(m);
	DL_FOREACH_SAFE(f->sent, m, tmp)
	free(m);
	fifo_close(&f->fifo);
	if (f->issm)
		sm_closed(f->u, f->hca, f->port);
	free(f);
}

struct umad_file *umad_get(struct umad *u, uint32_t index, uint32_t generation)
{
	struct umad_file *f;

	DL_FOREACH(u->files, f)
	if (f->fifo.index == index && f->fifo.generation == generation)
		return f;
	return NULL;
}

void umad_check(struct umad_file *f)
{
	if (fifo_unused(&f->fifo))
		umad_free(f);
}

void umad_level(struct umad_file *f)
{
	fifo_level(&f->fifo, f->nunread);
}

struct umad_msg *umad_msg_new(struct umad_file *f, size_t len)
{
	struct umad_msg *m;

	if (f->bytes + sizeof(*m) + len > UMAD_BYTES)
		return NULL;
	m = calloc(1, sizeof(*m) + len);
	if (!m)
		return NULL;
	m->len = len;
	f->bytes += sizeof(*m) + len;
	return m;
}

struct umad_msg *umad_msg_instead(struct umad_file *f, const struct umad_msg *of, size_t len)
{
	size_t room = sizeof(*of) + of->len;
	struct umad_msg *m;

	f->bytes -= room;
	m = umad_msg_new(f, len);
	f->bytes += room;
	return m;
}

void umad_msg_free(struct umad_file *f, struct umad_msg *m)
{
	f->bytes -= sizeof(*m) + m->len;
	free(m);
}

void umad_sent_drop(struct umad_file *f, struct umad_msg *m)
{
	if (f->next_sent == m)
		f->next_sent = m->next;
	DL_DELETE(f->sent, m);
	umad_msg_free(f, m);
}

void umad_queue(struct umad_file *f, struct umad_msg *m)
{
	DL_APPEND(f->unread, m);
	f->nunread++;
	umad_level(f);
}

static int put(struct umad_file *f, struct kproc *p, uint64_t addr, const void *what, size_t len)
{
	return client_write(f->u->k, &p->user, addr, what, len);
}

static long read_one(struct umad_file *f, struct kproc *p, uint64_t addr, uint64_t len)
{
	size_t header = f->pkey ? sizeof(struct umad_hdr) : UMAD_HDR_OLD, first, all;
	struct umad_msg *m = f->unread;
	int err;

	if (len < header)
		return -EINVAL;
	if (!m)
		return -EAGAIN;
	all = m->len;
	first = all < MAD_SIZE ? all : MAD_SIZE;
	if (len < header + first)
		return -EINVAL;
	err = put(f, p, addr, &m->hdr, header);
	err = err ?: put(f, p, addr + header, m->mad, len < header + all ? first : all);
	if (err)
		return err;
	/* The program learns the length from the header, and reads again. */
	if (len < header + all)
		return -ENOSPC;
	DL_DELETE(f->unread, m);
	f->nunread--;
	umad_msg_free(f, m);
	return (long)(header + all);
}

long umad_read(struct umad_file *f, struct kproc *p, uint64_t addr, uint64_t len)
{
	long ret = read_one(f, p, addr, len);

	/* The thread may have taken bytes away before it asked, whatever it is told. */
	if (f->unread || ret > 0)
		umad_level(f);
	return ret;
}
