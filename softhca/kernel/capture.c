// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * See capture.h. The word that senders look at is that of the faults: this file changes one bit of
 * it, and transport/fault.c the other.
 */
#include <errno.h>
#include <string.h>

#include "softhca/device/memory/tap.h"
#include "capture.h"
#include "conn.h"
#include "kern.h"
#include "ports.h"
#include "server.h"

static void begin(struct server *s, struct conn *c, const struct sh_capture_msg *m,
		  struct sh_status *st)
{
	struct kernel *k = s->k;

	if (s->capturing) {
		status_say(st, EBUSY,
			   "process %ld captures the packets of this instance: end it first",
			   (long)s->capturing->pid);
		return;
	}
	if (m->host != SH_TAP_ANY && m->host >= k->cfg.device.hosts) {
		status_say(st, ENOENT, "there is no host%u: the instance has %u host%s", m->host,
			   k->cfg.device.hosts,
			   k->cfg.device.hosts == 1 ? ", host0" : "s, from host0");
		return;
	}
	if (sh_tap_begin(&k->dev, m->snap, m->host, m->qpn)) {
		status_say(st, ENOMEM,
			   "the memory limit leaves no room for a capture, which takes %u MiB of "
			   "device memory",
			   (unsigned int)(SH_TAP_SIZE >> 20) + 1);
		return;
	}
	s->capturing = c;
	__atomic_fetch_or(&k->dev.inst->faults.active, SH_ACTIVE_CAPTURE, __ATOMIC_SEQ_CST);
}

void capture_end(struct server *s, const struct conn *c)
{
	if (s->capturing != c)
		return;
	s->capturing = NULL;
	__atomic_fetch_and(&s->k->dev.inst->faults.active, ~SH_ACTIVE_CAPTURE, __ATOMIC_SEQ_CST);
}

void capture_change(struct server *s, struct conn *c, const struct sh_capture_msg *m,
		    struct sh_status *st)
{
	memset(st, 0, sizeof(*st));
	if (m->on)
		begin(s, c, m, st);
	else
		capture_end(s, c);
}
