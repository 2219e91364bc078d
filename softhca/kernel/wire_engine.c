// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* See wire_engine.h. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "softhca/wire/address.h"
#include "softhca/wire/engine.h"
#include "softhca/wire/sockets.h"
#include "kern.h"
#include "out.h"
#include "ports.h"
#include "server.h"
#include "wire_engine.h"

int wire_begin(struct wire *w, struct sh_wire_config *cfg, const char *dir, int ready_fd,
	       char *text, size_t len)
{
	int err;

	*w = (struct wire){.link = -1};
	if (!cfg->n)
		return 0;
	err = sh_wire_open(cfg, w->fd, text, len);
	if (err)
		return err;
	err = sh_wire_fork(cfg, w->fd, dir, ready_fd, &w->link);
	if (err < 0) {
		snprintf(text, len, "cannot start the wire's process: %s", strerror(-err));
		sh_wire_close(cfg, w->fd);
		return err;
	}
	w->pid = err;
	return 0;
}

void wire_end(struct wire *w, const struct sh_wire_config *cfg)
{
	if (!w->pid)
		return;
	kill(w->pid, SIGKILL);
	while (waitpid(w->pid, NULL, 0) < 0 && errno == EINTR)
		;
	if (w->link >= 0)
		close(w->link);
	sh_wire_close(cfg, w->fd);
	*w = (struct wire){.link = -1};
}

int wire_go(struct kernel *k, struct server *s)
{
	const char byte = SH_WIRE_GO;

	if (!k->wire.pid)
		return 0;
	if (write(k->wire.link, &byte, 1) != 1)
		return -EPIPE;
	return server_watch(s, k->wire.link, SRC_WIRE, 0);
}

void wire_event(struct kernel *k)
{
	char byte;
	ssize_t n = read(k->wire.link, &byte, 1);

	if (n < 0 && errno == EINTR)
		return;
	if (n == 1) {
		k->wire.ready = true;
		return;
	}
	close(k->wire.link);
	k->wire.link = -1;
	k->wire.lost = true;
	__atomic_store_n(&k->dev.inst->wire.proc, 0, __ATOMIC_SEQ_CST);
	if (k->wire.ready)
		ports_fail(k);
	else
		k->stop = true;
}

void wire_show(struct kernel *k, struct out *o)
{
	const struct sh_wire_config *cfg = &k->cfg.device.wire;
	const struct sh_wire *wire = &k->dev.inst->wire;
	char text[SH_WIRE_TEXT];
	uint64_t dropped = 0;

	if (!cfg->n)
		return;
	out_begin_object(o, "wire");
	sh_wire_text(text, cfg->network);
	out_text(o, "network", text);
	out_int(o, "prefix", __builtin_popcount(cfg->netmask));
	out_begin_array(o, "addresses");
	for (uint32_t i = 0; i < cfg->n; i++) {
		out_begin_object(o, NULL);
		sh_wire_text(text, cfg->address[i]);
		out_text(o, "address", text);
		out_int(o, "lid", sh_wire_lid(cfg, cfg->address[i]));
		out_end_object(o);
		dropped += sh_wire_dropped(k->wire.fd[i]);
	}
	out_end_array(o);
	out_text(o, "state", k->wire.lost ? "ended" : k->wire.ready ? "ready" : "starting");
	out_int(o, "pid", (uint64_t)k->wire.pid);
	out_int(o, "mtu", cfg->mtu);
	out_int(o, "receive_buffer", sh_wire_buffer(k->wire.fd[0]));
	out_int(o, "sent", wire->sent);
	out_int(o, "unsent", wire->unsent);
	out_int(o, "received", wire->received);
	out_int(o, "dropped_by_socket", dropped);
	out_int(o, "malformed", wire->malformed);
	out_int(o, "bad_icrc", wire->bad_icrc);
	out_end_object(o);
}
