// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * rdma_cm as a room of the daemon. Ids belong to open files, not to processes: the end of a process
 * says nothing, the last close of its file does.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/random.h>

#include "softhca/host/process.h"
#include "softhca/kernel/fs.h"
#include "softhca/kernel/kern.h"
#include "softhca/kernel/room.h"
#include "softhca/kernel/server.h"
#include "softhca/protocol.h"
#include "channel.h"
#include "exchange.h"
#include "farewell.h"
#include "fault.h"
#include "group.h"
#include "id.h"
#include "message.h"
#include "rdmacm.h"
#include "room.h"
#include "timer.h"
#include "wire.h"

static int init(struct kernel *k)
{
	struct rdmacm *cm = calloc(1, sizeof(*cm));
	uint32_t first;

	k->rdmacm = cm;
	if (!cm)
		return -ENOMEM;
	cm->k = k;
	cm->dev = &k->dev;
	cm->cfg = &k->cfg.device;
	cm->hcas = k->hcas;
	cm->timer = -1;
	cm->response_ns = k->cfg.cm_timeout_ns ? k->cfg.cm_timeout_ns : SH_CM_TIMEOUT_NS;
	cm->hosts = calloc(cm->cfg->hosts, sizeof(*cm->hosts));
	/*
	 * Peers elsewhere on the wire may still know ids of an earlier instance, and messages of
	 * those may be on their way.
	 */
	if (cm->cfg->wire.n && getrandom(&first, sizeof(first), GRND_NONBLOCK) == sizeof(first))
		cm->next_comm = first;
	return cm->hosts ? cm_timer_init(cm) : -ENOMEM;
}

struct rdmacm *cm_of(struct kernel *k)
{
	return k->rdmacm;
}

static int watch(struct kernel *k)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.u64 = server_room_event(&rdmacm_room, 0)};

	return epoll_ctl(k->epoll, EPOLL_CTL_ADD, k->rdmacm->timer, &ev) < 0 ? -errno : 0;
}

static void ready(struct kernel *k, uint32_t value)
{
	(void)value;
	cm_timer_ready(k->rdmacm);
}

/*
 * Ends what ids have with peers elsewhere, as if their programs had ended. The first call sends the
 * messages, later ones repeat those that have to be answered. Messages that no peer answers need
 * time to leave, too: true if there are any.
 */
static bool leave(struct kernel *k)
{
	struct rdmacm *cm = k->rdmacm;
	bool said = cm_farewells_again(cm);
	struct cm_id *id, *tmp;

	HASH_ITER(hh, cm->ids, id, tmp)
	if (id->far)
		cm_exchange_end(id);
	said = said || cm->farewells || cm->messages;
	while (cm->messages)
		cm_messages_deliver(cm);
	return said;
}

static void end(struct kernel *k)
{
	struct rdmacm *cm = k->rdmacm;

	for (uint32_t i = 0; cm && i < cm->channels.size; i++) {
		struct cm_channel *ch = cm_table_get(&cm->channels, i);

		if (ch)
			cm_channel_free(ch);
	}
}

static void exit_room(struct kernel *k)
{
	struct rdmacm *cm = k->rdmacm;

	if (!cm)
		return;
	cm_messages_free(cm);
	cm_farewells_free(cm);
	cm_timer_exit(cm);
	for (uint32_t i = 0; cm->hosts && i < cm->cfg->hosts; i++) {
		cm_table_exit(&cm->hosts[i].ids);
		cm_table_exit(&cm->hosts[i].members);
	}
	cm_table_exit(&cm->channels);
	cm_due_exit(&cm->due_ids);
	cm_groups_free(cm);
	free(cm->hosts);
	free(cm);
	k->rdmacm = NULL;
}

static int make_files(struct kernel *k, uint32_t host)
{
	char path[128];
	int err;

	snprintf(path, sizeof(path), "host%u/sys/class/misc/rdma_cm", host);
	err = dir_make(k->dir_fd, path);
	snprintf(path, sizeof(path), "host%u/sys/class/misc/rdma_cm/abi_version", host);
	err = err ?: file_attribute(k->dir_fd, path, "4\n");
	snprintf(path, sizeof(path), "host%u/sys/class/misc/rdma_cm/dev", host);
	err = err ?: file_attribute(k->dir_fd, path, "10:%d\n", SH_CM_MINOR);
	snprintf(path, sizeof(path), "host%u/dev/infiniband", host);
	err = err ?: dir_make(k->dir_fd, path);
	snprintf(path, sizeof(path), "host%u/dev/infiniband/rdma_cm", host);
	return err ?: file_write(k->dir_fd, path, "%s", "");
}

static void closed(struct kernel *k, unsigned int dir, const char *name)
{
	uint32_t index, generation;
	struct cm_channel *ch;

	(void)dir;
	if (!fifo_name(name, &index, &generation))
		return;
	ch = cm_channel_get(k->rdmacm, index, generation);
	if (!ch)
		return;
	fifo_doubt(&ch->fifo);
	cm_channel_check(ch);
}

static void doubted(struct kernel *k)
{
	struct rdmacm *cm = k->rdmacm;

	for (uint32_t i = 0; i < cm->channels.size; i++) {
		struct cm_channel *ch = cm_table_get(&cm->channels, i);

		if (ch)
			cm_channel_check(ch);
	}
}

static void missed(struct kernel *k)
{
	struct rdmacm *cm = k->rdmacm;

	for (uint32_t i = 0; i < cm->channels.size; i++) {
		struct cm_channel *ch = cm_table_get(&cm->channels, i);

		if (ch)
			fifo_doubt(&ch->fifo);
	}
	doubted(k);
}

/* A thread may have ended between its sleep and its next command. */
static void level_all(struct kernel *k)
{
	struct rdmacm *cm = k->rdmacm;

	for (uint32_t i = 0; i < cm->channels.size; i++) {
		struct cm_channel *ch = cm_table_get(&cm->channels, i);

		if (ch && ch->unread)
			cm_channel_level(ch);
	}
}

/* The device has ended for the program. Kernels remove it, which ends what its ids had. */
static void port_event(struct kernel *k, uint32_t hca, uint32_t port, enum port_event event)
{
	struct cm_id *id, *tmp;

	(void)port;
	if (event != PORT_DEVICE_FATAL || k->stop)
		return;
	/* The end of one frees no other one. */
	HASH_ITER(hh, k->rdmacm->ids, id, tmp)
	if (id->device && id->hca == hca)
		cm_id_remove(id);
}

static void group_ports(struct kernel *k,
			void (*fn)(void *arg, uint16_t mlid, uint32_t hca, uint32_t port),
			void *arg)
{
	const struct cm_group_port *p;
	const struct cm_group *g;

	DL_FOREACH(k->rdmacm->groups, g)
	DL_FOREACH(g->ports, p)
	fn(arg, g->mlid, p->hca, p->port);
}

static void mad(struct kernel *k, const struct sh_wire_mad *m)
{
	cm_wire_came(k->rdmacm, m);
}

static bool fault(struct kernel *k, const struct sh_fault_msg *m, unsigned int *ended,
		  struct sh_status *st)
{
	return cm_fault_set(k->rdmacm, m, k->fault_seed, ended, st);
}

static void show(struct kernel *k, struct out *o)
{
	cm_show(k->rdmacm, o);
}

static void show_faults(struct kernel *k, struct out *o)
{
	cm_fault_show(k->rdmacm, o);
}

const struct room rdmacm_room = {
	.dirs = {{"channels", IN_CLOSE_NOWRITE}},
	.init = init,
	.exit = exit_room,
	.files = make_files,
	.watch = watch,
	.leave = leave,
	.end = end,
	.serve = cm_serve,
	.closed = closed,
	.missed = missed,
	.doubted = doubted,
	.ready = ready,
	.spill = level_all,
	.tick = doubted,
	.mad = mad,
	.port_event = port_event,
	.group_ports = group_ports,
	.show = show,
	.fault = fault,
	.show_faults = show_faults,
};
