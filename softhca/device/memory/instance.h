/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * How device memory comes to be: its size, its tables, and the way of a process to it.
 */
#ifndef SOFTHCA_DEVICE_MEMORY_INSTANCE_H
#define SOFTHCA_DEVICE_MEMORY_INSTANCE_H

#include "dev.h"

/*
 * Where the wire leads (transport/wire.h): addresses of one network, of IPv4 or IPv6, and those of
 * the list. The address of a port less the network is its LID, if the list has no other one for it.
 * n 0: there is no wire; else one address for each port. The list has the peers first.
 */
#define SH_WIRE_MOST 64
struct sh_wire_config {
	uint32_t n;
	uint32_t prefix;   /* bits, as that version of IP counts them */
	uint32_t last_lid; /* that an address can have */
	uint32_t mtu;	   /* payload of a packet: 256 .. 4096 */
	struct sh_ip network;
	struct sh_ip address[SH_WIRE_MOST];
	uint32_t peers;
	struct sh_wire_list list;
};

struct sh_config {
	uint32_t hosts, hcas_per_host, ports;
	uint32_t cqe_size, driver_abi, face, trap;
	uint64_t pool_size;   /* for queues; 0 = the default */
	uint64_t shared_size; /* for registered memory; 0 = the default */
	bool loopback;	      /* each packet goes as the bytes of one (transport/loop.h) */
	uint32_t fault_seed;  /* of the choices of faults, until a rule names another one */
	struct sh_wire_config wire;
};
uint64_t sh_instance_size(const struct sh_config *cfg);
/* How much of it lies before the pool. */
uint64_t sh_instance_tables(const struct sh_config *cfg);
/*
 * Writes the header, tables and port state into zeroed device memory, of which sh_instance_tables()
 * bytes are mapped. fd is its memfd. Allocates pages as it promises them. 0, -EINVAL or -ENOMEM.
 */
int sh_instance_init(void *base, int fd, const struct sh_config *cfg);
/*
 * Uses the device memory that is mapped at base. size is that of its descriptor (fstat), not what
 * the header says. 0, or -EPROTO: it is not an instance, or its parts do not fit together. *dev is
 * then unchanged.
 */
int sh_dev_attach(struct sh_dev *dev, struct sh_instance *base, uint64_t size);
/*
 * Makes sure that [off, off+len) has pages (fallocate on the memfd). 0 or -ENOMEM. Only the daemon
 * calls it.
 */
int sh_reserve(int fd, uint64_t off, uint64_t len);

/*
 * Makes sure that [where, where + len) has pages. The daemon calls it before it puts something into
 * a table. 0 or -ENOMEM.
 */
int sh_promise(const struct sh_dev *dev, const void *where, uint64_t len);

#endif
