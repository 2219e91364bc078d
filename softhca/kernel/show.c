// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* What an instance holds, as JSON, for the softhca command and for tests. Changes nothing. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "softhca/device/memory/fault_rule.h"
#include "softhca/device/queues/qp.h"
#include "softhca/host/address.h"
#include "softhca/wire/address.h"
#include "faults.h"
#include "kern.h"
#include "out.h"
#include "ports.h"
#include "process.h"
#include "room.h"
#include "show.h"
#include "wire_engine.h"

static void show_traffic(const struct sh_traffic *t, struct out *o)
{
	out_int(o, "xmit_packets", t->xmit_packets);
	out_int(o, "xmit_data", t->xmit_data);
	out_int(o, "rcv_packets", t->rcv_packets);
	out_int(o, "rcv_data", t->rcv_data);
	out_int(o, "xmit_multicast", t->xmit_multicast);
	out_int(o, "rcv_multicast", t->rcv_multicast);
	out_int(o, "xmit_discards", t->xmit_discards);
	out_int(o, "rcv_errors", t->rcv_errors);
	out_int(o, "rcv_constraint", t->rcv_constraint);
}

/*
 * What rdma_cm takes for this port: its address on the wire, if there is one, and those of the
 * hosts' blocks.
 */
static void show_addresses(struct kernel *k, uint32_t index, uint32_t port, struct out *o)
{
	unsigned int n = k->hcas[index].unit * k->cfg.device.ports + port;
	struct in_addr in = sh_host_address(k->hcas[index].host, n);
	struct in6_addr in6 = sh_host_address6(k->hcas[index].host, n);
	char text[INET6_ADDRSTRLEN];

	out_begin_array(o, "addresses");
	if (k->cfg.device.wire.n) {
		sh_wire_text(text, wire_address(k, index, port));
		out_text(o, NULL, text);
	}
	if (inet_ntop(AF_INET, &in, text, sizeof(text)))
		out_text(o, NULL, text);
	if (inet_ntop(AF_INET6, &in6, text, sizeof(text)))
		out_text(o, NULL, text);
	out_end_array(o);
}

static void show_ports(struct kernel *k, uint32_t index, struct out *o)
{
	const struct sh_hca *hca = sh_hca(&k->dev, index);
	struct sh_traffic traffic[SH_MAX_PORTS];
	uint32_t p, i;

	sh_traffic(&k->dev, index, traffic);
	out_begin_array(o, "ports");
	for (p = 0; p < k->cfg.device.ports; p++) {
		const struct sh_port *port = &hca->port[p];

		out_begin_object(o, NULL);
		out_int(o, "port", p + 1);
		out_text(o, "state", port_active(k, index, p + 1) ? "ACTIVE" : "DOWN");
		out_int(o, "lid", port->lid);
		out_int(o, "sm_lid", port->sm_lid);
		show_addresses(k, index, p + 1, o);
		show_traffic(&traffic[p], o);
		out_begin_array(o, "pkeys");
		for (i = 0; i < SH_PKEYS; i++) {
			if (!port->pkey[i])
				continue;
			out_begin_object(o, NULL);
			out_int(o, "index", i);
			out_hex(o, "pkey", "0x%04" PRIx64, port->pkey[i]);
			out_end_object(o);
		}
		out_end_array(o);
		out_end_object(o);
	}
	out_end_array(o);
}

static void show_counters(struct kernel *k, uint32_t index, struct out *o)
{
	struct sh_counters counters, *c = &counters;

	sh_counters(&k->dev, index, c);
	out_begin_object(o, "counters");
	out_int(o, "xmit_packets", c->xmit_packets);
	out_int(o, "xmit_data", c->xmit_data);
	out_int(o, "rcv_packets", c->rcv_packets);
	out_int(o, "rcv_data", c->rcv_data);
	out_int(o, "messages_sent", c->messages_sent);
	out_int(o, "messages_received", c->messages_received);
	out_int(o, "drops_no_qp", c->drops_no_qp);
	out_int(o, "drops_state", c->drops_state);
	out_int(o, "drops_pkey", c->drops_pkey);
	out_int(o, "drops_qkey", c->drops_qkey);
	out_int(o, "drops_icrc", c->drops_icrc);
	out_int(o, "drops_no_wqe", c->drops_no_wqe);
	out_int(o, "drops_lid", c->drops_lid);
	out_int(o, "drops_port", c->drops_port);
	out_int(o, "drops_path", c->drops_path);
	out_int(o, "drops_mcast", c->drops_mcast);
	out_int(o, "drops_memory", c->drops_memory);
	out_int(o, "drops_fault", c->drops_fault);
	out_int(o, "retries", c->retries);
	out_int(o, "rnr_retries", c->rnr_retries);
	out_int(o, "naks_sent", c->naks_sent);
	out_int(o, "rnr_naks_sent", c->rnr_naks_sent);
	out_int(o, "duplicates", c->duplicates);
	out_int(o, "out_of_sequence", c->out_of_sequence);
	out_int(o, "copies_fallback", c->copies_fallback);
	out_int(o, "copies_foreign", c->copies_foreign);
	ROOMS(show_counters, k, index, o);
	out_end_object(o);
}

static void show_hca(struct kernel *k, uint32_t index, struct out *o)
{
	char text[32];
	uint64_t guid = sh_hca(&k->dev, index)->node_guid;

	snprintf(text, sizeof(text), "mlx4_%u", k->hcas[index].unit);
	out_text(o, "device", text);
	snprintf(text, sizeof(text), "%04x:%04x:%04x:%04x", (unsigned int)(guid >> 48),
		 (unsigned int)(guid >> 32 & 0xffff), (unsigned int)(guid >> 16 & 0xffff),
		 (unsigned int)(guid & 0xffff));
	out_text(o, "node_guid", text);
	out_word(o, "fatal", k->hcas[index].fatal ? "true" : "false");
	show_ports(k, index, o);
	ROOMS(show_hca, k, index, o);
	show_counters(k, index, o);
}

/* What the process calls itself now. Nothing if it has ended. */
static void show_command(int pid, struct out *o)
{
	char path[32], name[32];
	ssize_t len = -1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	len = read(fd, name, sizeof(name) - 1);
	close(fd);
	if (len < 1)
		return;
	/* A newline ends it. */
	name[len - 1] = 0;
	out_path(o, "command", name);
}

static void show_processes(struct kernel *k, struct out *o)
{
	uint32_t i;

	out_begin_array(o, "processes");
	for (i = 1; i < SH_MAX_PROC; i++) {
		if (!k->proc[i])
			continue;
		out_begin_object(o, NULL);
		out_int(o, "pid", k->proc[i]->pid);
		show_command((int)k->proc[i]->pid, o);
		out_int(o, "slot", i);
		out_int(o, "host", k->proc[i]->host);
		out_word(o, "connected", k->proc[i]->connected ? "true" : "false");
		out_int(o, "locked_pages", k->proc[i]->locked);
		out_end_object(o);
	}
	out_end_array(o);
}

static void show_faults(struct kernel *k, struct out *o)
{
	const struct sh_faults *f = &k->dev.inst->faults;

	out_int(o, "fault_seed", k->fault_seed);
	out_int(o, "fault_delay_us", f->rule[SH_FAULT_DELAY].delay_ns / 1000);
	out_begin_array(o, "faults");
	for (uint32_t i = 0; i < SH_FAULT_RULES; i++)
		fault_show(k, &f->rule[i], fault_name(sh_fault_unpack(f->rule[i].scope).kind), o);
	ROOMS(show_faults, k, o);
	out_end_array(o);
}

static void show_daemon(struct kernel *k, struct out *o)
{
	out_begin_object(o, "daemon");
	out_int(o, "commands", k->count.commands);
	out_int(o, "failed", k->count.failed);
	out_int(o, "late", k->count.late);
	out_int(o, "ranges_shared", k->count.queues_shared);
	out_int(o, "ranges_copied", k->count.queues_copied);
	out_int(o, "maps_failed", k->count.maps_failed);
	out_int(o, "pool_pages", k->pool.npages);
	out_int(o, "pool_pages_used", k->pool.used);
	out_int(o, "pool_pages_spare", k->pool.spare);
	out_int(o, "regions_shared", k->count.regions_shared);
	out_int(o, "regions_private", k->count.regions_private);
	out_int(o, "regions_revoked", k->count.regions_revoked);
	out_int(o, "copies_made", k->count.copies_made);
	out_int(o, "shared_pages_used", k->shared.used);
	ROOMS(show_daemon, k, o);
	out_end_object(o);
}

static void show_all(struct kernel *k, struct out *o)
{
	const struct sh_config *cfg = &k->cfg.device;
	uint32_t h, i;

	out_begin_object(o, NULL);
	out_int(o, "version", SH_SHOW_VERSION);
	out_path(o, "instance", k->dir);
	out_int(o, "pid", getpid());
	out_text(o, "kernel", cfg->face == SH_FACE_OFED ? "ofed" : "mainline");
	out_text(o, "mmio", cfg->trap ? "trap" : "kick");
	out_int(o, "driver_abi", cfg->driver_abi);
	out_int(o, "cqe_size", cfg->cqe_size);
	show_daemon(k, o);
	show_processes(k, o);
	show_faults(k, o);
	wire_show(k, o);
	out_begin_array(o, "hosts");
	for (h = 0; h < cfg->hosts; h++) {
		out_begin_object(o, NULL);
		out_int(o, "host", h);
		out_begin_array(o, "hcas");
		for (i = 0; i < cfg->hcas_per_host; i++) {
			out_begin_object(o, NULL);
			show_hca(k, h * cfg->hcas_per_host + i, o);
			out_end_object(o);
		}
		out_end_array(o);
		out_end_object(o);
	}
	out_end_array(o);
	ROOMS(show, k, o);
	out_end_object(o);
	fputc('\n', o->f);
}

int show_make(struct kernel *k)
{
	struct out o = {0};
	int fd, own, err;

	fd = memfd_create("softhca-show", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	o.f = own < 0 ? NULL : fdopen(own, "w");
	if (!o.f) {
		err = -errno;
		if (own >= 0)
			close(own);
		close(fd);
		return err;
	}
	show_all(k, &o);
	err = ferror(o.f) ? -EIO : 0;
	if (fclose(o.f) || lseek(fd, 0, SEEK_SET) < 0)
		err = -EIO;
	if (!err)
		return fd;
	close(fd);
	return err;
}
