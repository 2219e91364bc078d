// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * umad as a room of the daemon. What a program has registered and sent belongs to its open file:
 * the end of a process says nothing, the last close of its file does.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>

#include "softhca/device/transport/fabric.h"
#include "softhca/kernel/fs.h"
#include "softhca/kernel/kern.h"
#include "softhca/kernel/lists.h"
#include "softhca/kernel/out.h"
#include "softhca/kernel/rdmacm/room.h"
#include "softhca/kernel/server.h"
#include "softhca/kernel/sysfs.h"
#include "fabric.h"
#include "file.h"
#include "gsi.h"
#include "io.h"
#include "notice.h"
#include "reassemble.h"
#include "room.h"
#include "sa_group.h"
#include "sa_inform.h"
#include "sa_service.h"
#include "segments.h"
#include "sm.h"

static int init(struct kernel *k)
{
	struct umad *u = calloc(1, sizeof(*u));

	k->umad = u;
	if (!u)
		return -ENOMEM;
	u->k = k;
	u->dev = &k->dev;
	u->cfg = &k->cfg.device;
	u->hcas = k->hcas;
	u->cm = cm_of(k);
	u->timer = u->gsi = -1;
	u->off = fabric_ports(u) > UMAD_PORTS;
	if (!u->off) {
		k->switch_lid = SH_SWITCH_LID;
		__atomic_store_n(&k->dev.inst->lid_port[SH_SWITCH_LID], SH_LID_OF_SWITCH,
				 __ATOMIC_RELEASE);
	}
	return umad_timer_init(u);
}

static void end(struct kernel *k)
{
	while (k->umad && k->umad->files)
		umad_free(k->umad->files);
}

static void exit_room(struct kernel *k)
{
	struct umad *u = k->umad;

	if (!u)
		return;
	umad_timer_exit(u);
	gsi_close(u);
	sm_forget(u);
	sa_inform_forget(u);
	sa_service_forget(u);
	segments_forget(u);
	reassemble_forget(u);
	notice_forget(u);
	free(u);
	k->umad = NULL;
}

static int make_one(struct kernel *k, uint32_t host, const char *what, uint32_t n, uint32_t first)
{
	char name[32], dir[256], path[288];
	uint32_t ports = k->cfg.device.ports;
	int err;

	snprintf(name, sizeof(name), "%s%u", what, n);
	err = sysfs_class(k, host * k->cfg.device.hcas_per_host + n / ports, "infiniband_mad", name,
			  dir);
	snprintf(path, sizeof(path), "%s/ibdev", dir);
	err = err ?: file_attribute(k->dir_fd, path, "mlx4_%u\n", n / ports);
	snprintf(path, sizeof(path), "%s/port", dir);
	err = err ?: file_attribute(k->dir_fd, path, "%u\n", n % ports + 1);
	snprintf(path, sizeof(path), "%s/dev", dir);
	err = err ?: file_attribute(k->dir_fd, path, "231:%u\n", first + n);
	/*
	 * The mode that stat() tells is the kernel's, 0600: an instance's files and programs have
	 * one owner.
	 */
	snprintf(path, sizeof(path), "host%u/dev/infiniband/%s", host, name);
	return err ?: file_write(k->dir_fd, path, "%s", "");
}

static int make_files(struct kernel *k, uint32_t host)
{
	uint32_t n = k->cfg.device.hcas_per_host * k->cfg.device.ports;
	char path[128];
	int err;

	if (k->umad->off)
		return 0;
	snprintf(path, sizeof(path), "host%u/sys/class/infiniband_mad", host);
	err = dir_make(k->dir_fd, path);
	snprintf(path, sizeof(path), "host%u/sys/class/infiniband_mad/abi_version", host);
	err = err ?: file_attribute(k->dir_fd, path, "%d\n", UMAD_ABI_VERSION);
	snprintf(path, sizeof(path), "host%u/dev/infiniband", host);
	err = err ?: dir_make(k->dir_fd, path);
	if (!err && k->umad->gsi < 0)
		err = gsi_open(k->umad, k->dir_fd);
	for (uint32_t i = 0; !err && i < n && i < UMAD_MINORS; i++)
		err = make_one(k, host, "umad", i, 0) ?: make_one(k, host, "issm", i, UMAD_MINORS);
	return err;
}

enum { TIMER, GSI };

static int watch_one(struct kernel *k, int fd, uint32_t value)
{
	struct epoll_event ev = {.events = EPOLLIN,
				 .data.u64 = server_room_event(&umad_room, value)};

	if (fd < 0)
		return 0;
	return epoll_ctl(k->epoll, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

static int watch(struct kernel *k)
{
	int err = watch_one(k, k->umad->timer, TIMER);

	return err ? err : watch_one(k, k->umad->gsi, GSI);
}

static void ready(struct kernel *k, uint32_t value)
{
	if (value == GSI)
		gsi_ready(k->umad);
	else
		umad_timer_ready(k->umad);
}

static void closed(struct kernel *k, unsigned int dir, const char *name)
{
	uint32_t index, generation;
	struct umad_file *f;

	(void)dir;
	if (!fifo_name(name, &index, &generation))
		return;
	f = umad_get(k->umad, index, generation);
	if (!f)
		return;
	fifo_doubt(&f->fifo);
	umad_check(f);
}

static void doubted(struct kernel *k)
{
	struct umad_file *f, *next;

	DL_FOREACH_SAFE(k->umad->files, f, next)
	umad_check(f);
}

static void missed(struct kernel *k)
{
	struct umad_file *f;

	DL_FOREACH(k->umad->files, f)
	fifo_doubt(&f->fifo);
	doubted(k);
}

/* A thread may have ended between its sleep and its next read. */
static void level_all(struct kernel *k)
{
	struct umad_file *f;

	DL_FOREACH(k->umad->files, f)
	if (f->unread)
		umad_level(f);
}

static void show_file(const struct umad_file *f, struct out *o)
{
	const struct umad_msg *m;
	uint32_t n = 0;

	DL_COUNT(f->sent, m, n);
	out_begin_object(o, NULL);
	out_int(o, "host", f->host);
	out_int(o, f->issm ? "issm" : "umad", f->fifo.index % UMAD_MINORS);
	out_int(o, "pid", (uint64_t)f->pid);
	out_int(o, "unread", f->nunread);
	out_int(o, "waiting", n);
	out_begin_array(o, "agents");
	for (uint32_t i = 0; i < UMAD_AGENTS; i++) {
		if (!f->agent[i].used)
			continue;
		out_begin_object(o, NULL);
		out_int(o, "id", i);
		out_hex(o, "class", "0x%02" PRIx64, f->agent[i].mgmt_class);
		out_int(o, "version", f->agent[i].version);
		out_end_object(o);
	}
	out_end_array(o);
	out_end_object(o);
}

static void show(struct kernel *k, struct out *o)
{
	const struct umad_file *f;

	out_begin_array(o, "umad_files");
	DL_FOREACH(k->umad->files, f)
	show_file(f, o);
	out_end_array(o);
}

/*
 * As a kernel does that loses a card: ends the waits for datagrams with an error, and later calls
 * find no file.
 */
static void end_of_hca(struct kernel *k, uint32_t hca)
{
	struct umad_file *f, *next;

	DL_FOREACH_SAFE(k->umad->files, f, next)
	if (f->hca == hca)
		umad_free(f);
}

static void port_event(struct kernel *k, uint32_t hca, uint32_t port, enum port_event event)
{
	bool dead = event == PORT_DEVICE_FATAL;
	struct umad *u = k->umad;

	/* Subscribers wait for Reports at the earlier LID. */
	if (event == PORT_LID_CHANGE)
		sa_inform_gone(u, hca, port);
	/* The manager hears of links. It does not hear that an instance ends. */
	if (dead)
		end_of_hca(k, hca);
	if (k->stop || (!dead && event != PORT_ERR && event != PORT_ACTIVE))
		return;
	for (uint32_t p = dead ? 1 : port; p <= (dead ? u->cfg->ports : port); p++) {
		if (event != PORT_ACTIVE) {
			sa_group_gone(u, hca, p);
			sa_inform_gone(u, hca, p);
		}
		notice_link(u, hca, p);
	}
}

static void group(struct kernel *k, const uint8_t mgid[16], bool there)
{
	if (k->umad)
		notice_group(k->umad, mgid, there);
}

const struct room umad_room = {
	.dirs = {{"mads", IN_CLOSE_NOWRITE}},
	.init = init,
	.exit = exit_room,
	.files = make_files,
	.watch = watch,
	.end = end,
	.serve = umad_serve,
	.closed = closed,
	.missed = missed,
	.doubted = doubted,
	.tick = doubted,
	.ready = ready,
	.spill = level_all,
	.port_event = port_event,
	.group = group,
	.show = show,
};
