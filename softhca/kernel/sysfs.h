/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What programs read of devices and ports in sysfs.
 */
#ifndef SOFTHCA_KERNEL_SYSFS_H
#define SOFTHCA_KERNEL_SYSFS_H

#include <stdbool.h>
#include <stdint.h>

struct kernel;

int sysfs_make(struct kernel *k);

/* Below the instance: the directory of an HCA, which counts over all hosts, and of a port of it. */
void sysfs_hca_dir(const struct kernel *k, char path[256], uint32_t hca);
void sysfs_port_dir(const struct kernel *k, char path[256], uint32_t hca, uint32_t port);

/*
 * Makes the directory of something of an HCA, below its PCI device, with a link to that, and a link
 * from the class. *path: that directory. 0 or -errno.
 */
int sysfs_class(const struct kernel *k, uint32_t hca, const char *class, const char *name,
		char path[256]);

/*
 * What the host's node_desc says, which its administrator may have written: zeros behind it. If
 * that is nothing, what it says at first.
 */
void sysfs_node_description(const struct kernel *k, uint32_t hca, uint8_t text[64]);

/* Writes what changes; pkey: an index. */
int sysfs_port(struct kernel *k, uint32_t hca, uint32_t port, uint32_t pkey);

#endif
