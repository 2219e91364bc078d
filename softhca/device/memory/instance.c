// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * An instance's device memory: its size, its first contents, and the allocation of pages before
 * they are promised. The daemon does this before any other process maps the memory. Also attaching
 * to it, and the look-ups by index.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "exec.h"
#include "fault_rule.h"
#include "instance.h"
#include "tables.h"

#define DEFAULT_POOL   (UINT64_C(4) << 30) /* address space; pages come with use */
#define DEFAULT_SHARED (UINT64_C(8) << 30)
#define OUI	       UINT64_C(0x0002c903)
/*
 * Each has 34 bits: an address of IPv4, or bits of an IPv6 network and a LID; and 2 for the HCA's
 * numbers.
 */
#define WIRE_GUIDS   UINT64_C(0x0002c98000000000)
#define WIRE6_GUIDS  UINT64_C(0x0002c98800000000)
#define MIX	     UINT64_C(0x9e3779b97f4a7c15)
#define NETWORK_BITS 22
#define PAGE	     4096

/* The instance that this process made: where its pages come from. */
static struct {
	void *base;
	int fd;
	uint64_t tables;
	/*
	 * A bit for each page of the tables that has memory, which it keeps as long as the instance
	 * lives. NULL: not known.
	 */
	unsigned char *promised;
} made;

struct sh_proc *sh_proc(const struct sh_dev *dev, uint32_t index)
{
	return index < SH_MAX_PROC ? (struct sh_proc *)sh_at(dev, SH_PROC_OFF) + index : NULL;
}

struct sh_evq *sh_evq(const struct sh_dev *dev, uint32_t index)
{
	return index && index < SH_MAX_EVQ ? (struct sh_evq *)sh_at(dev, SH_EVQ_OFF) + index : NULL;
}

struct sh_hca *sh_hca(const struct sh_dev *dev, uint32_t index)
{
	return sh_hca_table(dev, index, 0);
}

static uint64_t pool_size(const struct sh_config *cfg)
{
	return SH_PAGES(cfg->pool_size ? cfg->pool_size : DEFAULT_POOL);
}

static uint64_t shared_size(const struct sh_config *cfg)
{
	return SH_PAGES(cfg->shared_size ? cfg->shared_size : DEFAULT_SHARED);
}

static uint64_t tables_size(uint64_t hcas)
{
	return SH_HCA_OFF + hcas * SH_HCA_SPAN;
}

uint64_t sh_instance_tables(const struct sh_config *cfg)
{
	return tables_size((uint64_t)cfg->hosts * cfg->hcas_per_host);
}

uint64_t sh_instance_size(const struct sh_config *cfg)
{
	return sh_instance_tables(cfg) + pool_size(cfg) + shared_size(cfg);
}

int sh_reserve(int fd, uint64_t off, uint64_t len)
{
	int err;

	do
		err = posix_fallocate(fd, (off_t)off, (off_t)len);
	while (err == EINTR);
	return err ? -ENOMEM : 0;
}

static bool promised(uint64_t page)
{
	return made.promised && made.promised[page / 8] >> page % 8 & 1;
}

int sh_promise(const struct sh_dev *dev, const void *where, uint64_t len)
{
	uint64_t off = (uint64_t)((const char *)where - (const char *)dev->inst), end = off + len;
	uint64_t page = off / PAGE, last = (end - 1) / PAGE;
	int err;

	if (made.base != dev->inst)
		return 0;
	if (end > made.tables)
		return sh_reserve(made.fd, off, len);
	while (page <= last && promised(page))
		page++;
	if (page > last)
		return 0;
	err = sh_reserve(made.fd, off, len);
	for (; !err && made.promised && page <= last; page++)
		made.promised[page / 8] |= (unsigned char)(1u << page % 8);
	return err;
}

int sh_dev_attach(struct sh_dev *dev, struct sh_instance *base, uint64_t size)
{
	const volatile struct sh_instance *header = base;
	const uint64_t hosts = header->hosts, hcas_per_host = header->hcas_per_host;
	const uint64_t pool_size = header->pool_size, shared_size = header->shared_size;
	const uint32_t ports = header->ports, cqe_size = header->cqe_size;
	const uint64_t hcas = hosts * hcas_per_host;
	const uint64_t pool_off = tables_size(hcas);

	if (size < SH_HCA_OFF || header->magic != SH_MAGIC || header->size != size)
		return -EPROTO;
	if (!hosts || hosts > SH_MAX_HCAS || !hcas_per_host || hcas_per_host > SH_MAX_HCAS ||
	    hcas > SH_MAX_HCAS || header->hcas != hcas || !ports || ports > SH_MAX_PORTS ||
	    (cqe_size != 32 && cqe_size != 64))
		return -EPROTO;
	if (pool_off > size || pool_size > size - pool_off ||
	    shared_size != size - pool_off - pool_size || header->pool_off != pool_off ||
	    header->shared_off != pool_off + pool_size)
		return -EPROTO;
	dev->inst = base;
	dev->hcas = (uint32_t)hcas;
	dev->hcas_per_host = (uint32_t)hcas_per_host;
	dev->ports = ports;
	dev->cqe_size = cqe_size;
	dev->size = size;
	dev->pool_off = pool_off;
	dev->shared_off = pool_off + pool_size;
	dev->pool_end = dev->shared_off;
	dev->shared_end = size;
	return 0;
}

static void port_init(struct sh_port *port, uint64_t guid, uint32_t lid)
{
	int i;

	port->state = 4;
	port->lid = lid;
	port->sm_lid = 1;
	port->gid[0][0] = 0xfe;
	port->gid[0][1] = 0x80;
	for (i = 0; i < 8; i++)
		port->gid[0][8 + i] = (uint8_t)(guid >> (56 - 8 * i));
	port->pkey[0] = 0xffff;
}

static uint32_t lid_at(const struct sh_wire_config *wire, struct sh_ip a)
{
	return sh_wire_list_lid(&wire->list, wire->network, wire->last_lid, a);
}

/*
 * Instances that share a wire must not share GUIDs. Above those of the others, by the address: of
 * IPv6 by the LID, and by the network, so that instances on two wires are hardly taken for one
 * another.
 */
static uint64_t guid_of_address(const struct sh_wire_config *wire, struct sh_ip a)
{
	uint64_t mixed = wire->network.hi * MIX ^ wire->network.lo;

	if (sh_ip_is4(a))
		return WIRE_GUIDS | (a.lo & UINT32_MAX) << 2;
	mixed = (mixed ^ mixed >> 32) * MIX >> (64 - NETWORK_BITS);
	return WIRE6_GUIDS | (mixed * SH_MAX_LIDS + lid_at(wire, a)) << 2;
}

static uint32_t lid_of(const struct sh_wire_config *wire, uint32_t number)
{
	return lid_at(wire, wire->address[number]);
}

static int hca_init(struct sh_instance *inst, int fd, uint32_t index,
		    const struct sh_wire_config *wire)
{
	uint64_t off = SH_HCA_OFF + index * SH_HCA_SPAN;
	struct sh_hca *hca = (struct sh_hca *)((char *)inst + off);
	uint32_t port;
	int err;

	err = sh_reserve(fd, off, sizeof(*hca));
	if (err)
		return err;
	for (unsigned int i = 0; i < SH_ATOMIC_LOCKS; i++)
		sh_lock_init(&hca->atomic_lock[i]);
	sh_lock_init(&hca->mcg_lock);
	sh_lock_init(&hca->port_lock);
	hca->index = index;
	hca->host = index / inst->hcas_per_host;
	/* The node, two ports and the system image take one number each. */
	hca->node_guid = wire->n ? guid_of_address(wire, wire->address[index * inst->ports])
				 : OUI << 32 | (UINT64_C(0x100000) + index * 4);
	hca->qp_off = off + SH_HCA_QPS;
	hca->cq_off = off + SH_HCA_CQS;
	hca->srq_off = off + SH_HCA_SRQS;
	hca->mpt_off = off + SH_HCA_MPTS;
	hca->mcg_off = off + SH_HCA_MCGS;
	/* Odd for ever: groups have members elsewhere (mcast.c). */
	hca->mcgs_seq = !!wire->n;
	for (port = 1; port <= inst->ports; port++) {
		uint32_t number = index * inst->ports + port - 1, lid = number + 1;

		if (wire->n)
			lid = lid_of(wire, number);
		port_init(&hca->port[port - 1], hca->node_guid + port, lid);
		if (wire->n) {
			sh_ip_put(wire->address[number], hca->port[port - 1].gid[1]);
			/* Its own instance's: management datagrams do not cross the wire. */
			hca->port[port - 1].sm_lid = lid_of(wire, 0);
		}
		inst->lid_port[lid] = (index << 8 | port) + 1;
	}
	return 0;
}

/* Each port has an address, and the LID in it is one that a port can have. */
static bool wire_ok(const struct sh_wire_config *wire, uint64_t ports)
{
	if (!wire->n)
		return true;
	if (wire->n != ports || wire->n > SH_WIRE_MOST || wire->mtu < 256 || wire->mtu > 4096 ||
	    wire->last_lid >= SH_SWITCH_LID || wire->list.n > SH_WIRE_LISTED)
		return false;
	for (uint32_t i = 0; i < wire->n; i++)
		if (!lid_of(wire, i))
			return false;
	return true;
}

int sh_instance_init(void *base, int fd, const struct sh_config *cfg)
{
	struct sh_instance *inst = base;
	uint64_t hcas = (uint64_t)cfg->hosts * cfg->hcas_per_host;
	uint32_t i;
	int err;

	if (!hcas || hcas > SH_MAX_HCAS || !cfg->ports || cfg->ports > SH_MAX_PORTS ||
	    hcas * cfg->ports >= SH_SWITCH_LID || (cfg->cqe_size != 32 && cfg->cqe_size != 64) ||
	    !wire_ok(&cfg->wire, hcas * cfg->ports))
		return -EINVAL;
	/*
	 * Contexts, processes and thread slots are small; event queues and registrations get their
	 * pages one by one.
	 */
	err = sh_reserve(fd, 0, SH_EVQ_OFF);
	if (!err)
		err = sh_reserve(fd, SH_FERRIES_OFF, sizeof(struct sh_ferries));
	if (err)
		return err;
	inst->size = sh_instance_size(cfg);
	inst->hosts = cfg->hosts;
	inst->hcas_per_host = cfg->hcas_per_host;
	inst->ports = cfg->ports;
	inst->hcas = (uint32_t)hcas;
	inst->ctx_off = SH_CTX_OFF;
	inst->proc_off = SH_PROC_OFF;
	inst->exec_off = SH_EXEC_OFF;
	inst->evq_off = SH_EVQ_OFF;
	inst->xrc_reg_off = SH_XRC_REG_OFF;
	inst->hca_off = SH_HCA_OFF;
	inst->hca_span = SH_HCA_SPAN;
	inst->pool_off = tables_size(hcas);
	inst->pool_size = pool_size(cfg);
	inst->shared_off = inst->pool_off + inst->pool_size;
	inst->shared_size = shared_size(cfg);
	inst->epoch = 1;
	inst->cqe_size = cfg->cqe_size;
	inst->driver_abi = cfg->driver_abi;
	inst->face = cfg->face;
	inst->trap = cfg->trap;
	if (cfg->wire.n) {
		inst->wire.network = cfg->wire.network;
		inst->wire.last_lid = cfg->wire.last_lid;
		inst->wire.mtu = cfg->wire.mtu;
		inst->wire.list = cfg->wire.list;
		inst->wire.leads = UINT16_MAX - 1; /* but for the permissive LID */
		inst->wire.by_gid = cfg->wire.list.n ? SH_LID_GROUPS : 1;
	}
	inst->faults.active = cfg->loopback ? SH_ACTIVE_LOOPBACK : 0;
	for (i = 0; i < SH_FAULT_KINDS; i++) {
		const struct sh_fault_scope whole = {i, SH_FAULT_ANY, SH_FAULT_ANY, SH_FAULT_ANY};

		inst->faults.rule[i].scope = sh_fault_pack(&whole);
		inst->faults.rule[i].delay_ns = i == SH_FAULT_REORDER ? 1000000
						: i == SH_FAULT_LIMIT ? 20000000
								      : 100000;
		inst->faults.rule[i].seed = cfg->fault_seed | 1;
	}

	sh_lock_init(&inst->recovery);
	err = sh_exec_init(base, fd);
	for (i = 0; i < inst->hcas && !err; i++)
		err = hca_init(inst, fd, i, &cfg->wire);
	if (err)
		return err;
	made.base = base;
	made.fd = fd;
	made.tables = tables_size(hcas);
	free(made.promised);
	made.promised = calloc(made.tables / PAGE / 8 + 1, 1);
	inst->magic = SH_MAGIC;
	return 0;
}
