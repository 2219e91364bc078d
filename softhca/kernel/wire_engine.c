// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* See wire_engine.h. */
#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "softhca/host/process.h"
#include "softhca/wire/address.h"
#include "softhca/wire/engine.h"
#include "softhca/wire/sockets.h"
#include "kern.h"
#include "out.h"
#include "ports.h"
#include "room.h"
#include "server.h"
#include "wire_engine.h"
#include "wire_groups.h"

#define AT_ONCE 64 /* messages that are read before the loop serves others */
#define LEAVE_TIMES                                                                                \
	25	    /* how often a message of an instance that ends is sent, until it is answered */
#define LEAVE_MS 40 /* and how long after the time before */

/* A daemon has one wire. */
static struct {
	int fd; /* says that interfaces or addresses have changed; -1: nothing does */
	unsigned int index[SH_WIRE_MOST]; /* of the interface of each address, 0: it is at none */
} changes = {.fd = -1};

/* Without such a socket, memberships are those of the interfaces that there were at first. */
static int watch_changes(void)
{
	struct sockaddr_nl to = {.nl_family = AF_NETLINK,
				 .nl_groups =
					 RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);

	if (fd >= 0 && bind(fd, (const struct sockaddr *)&to, sizeof(to)) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

/* What has changed is looked up: messages may be lost. */
static bool has_changed(int fd)
{
	char message[8192];
	bool any = false;

	while (fd >= 0 && (recv(fd, message, sizeof(message), 0) > 0 || errno == ENOBUFS))
		any = true;
	return any;
}

void wire_tick(struct kernel *k)
{
	const struct sh_wire_config *cfg = &k->cfg.device.wire;
	struct wire *w = &k->wire;
	bool moved = false;

	if (!w->pid || !has_changed(changes.fd))
		return;
	for (uint32_t i = 0; i < cfg->n; i++) {
		unsigned int index = sh_wire_index(cfg->address[i]);

		if (index == changes.index[i])
			continue;
		changes.index[i] = index;
		(void)sh_wire_move(w->fd[i], cfg->address[i]);
		moved = true;
	}
	if (!moved)
		return;
	/*
	 * A group's socket is for all addresses of its interface, and any of them may have come or
	 * gone.
	 */
	for (uint32_t i = 0; i < cfg->n; i++)
		wire_groups_lost(k, i);
	wire_groups_again(k);
}

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
	changes.fd = watch_changes();
	for (uint32_t i = 0; i < cfg->n; i++)
		changes.index[i] = sh_wire_index(cfg->address[i]);
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
	if (changes.fd >= 0)
		close(changes.fd);
	changes.fd = -1;
	sh_wire_close(cfg, w->fd);
	wire_groups_end(w, cfg);
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

static void ended(struct kernel *k)
{
	close(k->wire.link);
	k->wire.link = -1;
	k->wire.lost = true;
	__atomic_store_n(&k->dev.inst->wire.proc, 0, __ATOMIC_SEQ_CST);
	if (k->wire.ready)
		ports_fail(k);
	else
		k->stop = true;
}

/* Trusts nothing of it: it comes from another machine. */
static void came(struct kernel *k, const struct sh_wire_mad *m)
{
	if (m->hca < k->dev.hcas && m->port && m->port <= k->cfg.device.ports && m->lid)
		ROOMS(mad, k, m);
}

void wire_event(struct kernel *k)
{
	struct sh_wire_mad m;

	for (int i = 0; i < AT_ONCE; i++) {
		ssize_t n = recv(k->wire.link, &m, sizeof(m), MSG_DONTWAIT);

		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			return;
		if (n <= 0) {
			ended(k);
			return;
		}
		if (n == (ssize_t)sizeof(m))
			came(k, &m);
		else
			k->wire.ready = true;
	}
}

bool wire_send(struct kernel *k, const struct sh_wire_mad *m)
{
	return k->wire.link >= 0 && send(k->wire.link, m, sizeof(*m),
					 MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)sizeof(*m);
}

static bool rooms_leave(struct kernel *k)
{
	bool more = false;

	for (const struct room *const *r = rooms; *r; r++)
		if ((*r)->leave && (*r)->leave(k))
			more = true;
	return more;
}

/* Serves what comes over the wire, and nothing else, for LEAVE_MS. */
static void listen_on(struct kernel *k)
{
	uint64_t now = sh_now(), until = now + LEAVE_MS * UINT64_C(1000000);

	for (; now < until && k->wire.link >= 0; now = sh_now()) {
		struct pollfd p = {.fd = k->wire.link, .events = POLLIN};

		if (poll(&p, 1, (int)((until - now) / 1000000) + 1) > 0)
			wire_event(k);
	}
}

void wire_leave(struct kernel *k)
{
	if (!k->wire.ready)
		return;
	for (int i = 0; i < LEAVE_TIMES && k->wire.link >= 0 && rooms_leave(k); i++)
		listen_on(k);
}

uint16_t wire_lid(const struct kernel *k, struct sh_ip address)
{
	const struct sh_wire_config *cfg = &k->cfg.device.wire;

	return cfg->n ? (uint16_t)sh_wire_lid(cfg, address) : 0;
}

bool wire_own(const struct kernel *k, struct sh_ip address, uint32_t *hca, uint32_t *port)
{
	const struct sh_wire_config *cfg = &k->cfg.device.wire;

	for (uint32_t i = 0; i < cfg->n; i++)
		if (sh_ip_same(cfg->address[i], address)) {
			*hca = i / k->cfg.device.ports;
			*port = i % k->cfg.device.ports + 1;
			return true;
		}
	return false;
}

struct sh_ip wire_address(const struct kernel *k, uint32_t hca, uint32_t port)
{
	const struct sh_wire_config *cfg = &k->cfg.device.wire;
	uint32_t number = hca * k->cfg.device.ports + port - 1;

	return number < cfg->n ? cfg->address[number] : (struct sh_ip){0, 0};
}

struct sh_ip wire_address_of(const struct kernel *k, uint16_t lid)
{
	return sh_wire_address(&k->cfg.device.wire, lid);
}

void wire_show(struct kernel *k, struct out *o)
{
	const struct sh_wire_config *cfg = &k->cfg.device.wire;
	const struct sh_wire *wire = &k->dev.inst->wire;
	char text[SH_WIRE_TEXT];
	uint64_t dropped = 0;

	if (k->cfg.device.loopback) {
		out_begin_object(o, "wire_loopback");
		out_int(o, "packets", wire->sent);
		out_int(o, "unsent", wire->unsent);
		out_int(o, "malformed", wire->malformed);
		out_int(o, "bad_icrc", wire->bad_icrc);
		out_end_object(o);
	}
	if (!cfg->n)
		return;
	out_begin_object(o, "wire");
	sh_wire_text(text, cfg->network);
	out_text(o, "network", text);
	out_int(o, "prefix", cfg->prefix);
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
	out_begin_array(o, "peers");
	for (uint32_t i = 0; i < cfg->peers; i++) {
		out_begin_object(o, NULL);
		sh_wire_text(text, cfg->list.at[i].address);
		out_text(o, "address", text);
		out_int(o, "lid", cfg->list.at[i].lid);
		out_end_object(o);
	}
	out_end_array(o);
	out_text(o, "state", k->wire.lost ? "ended" : k->wire.ready ? "ready" : "starting");
	out_int(o, "pid", (uint64_t)k->wire.pid);
	out_int(o, "mtu", cfg->mtu);
	out_int(o, "receive_buffer", sh_wire_buffer(k->wire.fd[0]));
	out_int(o, "sent", wire->sent);
	out_int(o, "unsent", wire->unsent);
	out_int(o, "received", wire->received);
	wire_groups_show(k, o, &dropped);
	out_int(o, "dropped_by_socket", dropped);
	out_int(o, "malformed", wire->malformed);
	out_int(o, "bad_icrc", wire->bad_icrc);
	out_end_object(o);
}
