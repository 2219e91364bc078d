// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The files that say which host this is, below host<K>: its name, and the id of its boot. Instances
 * of several hosts have them, and those that share a machine with others of their wire. Else the
 * single host is the machine. With a wire, host<K>/addresses has a line for each port of the host,
 * its address and prefix, which the shim tells programs. Also the directory where each `softhca
 * run` records itself (softhca/host/runs.h).
 */
#include <errno.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "softhca/host/address.h"
#include "softhca/wire/address.h"
#include "softhca/wire/sockets.h"
#include "fs.h"
#include "identity.h"
#include "kern.h"
#include "ports.h"

/* A random UUID, version 4, as the kernel makes it. */
static int uuid_text(char text[40])
{
	uint8_t id[16];
	int i, n = 0;

	if (getrandom(id, sizeof(id), 0) != sizeof(id))
		return -EIO;
	id[6] = (id[6] & 0x0f) | 0x40;
	id[8] = (id[8] & 0x3f) | 0x80;
	for (i = 0; i < 16; i++)
		n += snprintf(text + n, 40 - n, "%s%02x",
			      i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", id[i]);
	return 0;
}

static int make_host(struct kernel *k, uint32_t host, const char *name)
{
	char path[64], uuid[40];
	int err;

	err = uuid_text(uuid);
	if (err)
		return err;
	snprintf(path, sizeof(path), "host%u/etc", host);
	err = dir_make(k->dir_fd, path);
	snprintf(path, sizeof(path), "host%u/etc/hostname", host);
	err = err ?: file_write(k->dir_fd, path, "%s\n", name);
	snprintf(path, sizeof(path), "host%u/proc/sys/kernel/random", host);
	err = err ?: dir_make(k->dir_fd, path);
	snprintf(path, sizeof(path), "host%u/proc/sys/kernel/hostname", host);
	err = err ?: file_write(k->dir_fd, path, "%s\n", name);
	snprintf(path, sizeof(path), "host%u/proc/sys/kernel/random/boot_id", host);
	return err ?: file_write(k->dir_fd, path, "%s\n", uuid);
}

/* Lines of the host's addresses on the wire. */
static int make_addresses(struct kernel *k, uint32_t host)
{
	const struct sh_wire_config *wire = &k->cfg.device.wire;
	uint32_t ports = k->cfg.device.hcas_per_host * k->cfg.device.ports;
	char text[SH_WIRE_MOST * (SH_WIRE_TEXT + 8)] = "", address[SH_WIRE_TEXT], path[64];
	size_t n = 0;

	for (uint32_t i = host * ports; i < (host + 1) * ports; i++) {
		sh_wire_text(address, wire->address[i]);
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s/%u\n", address, wire->prefix);
	}
	snprintf(path, sizeof(path), "host%u", host);
	if (dir_make(k->dir_fd, path))
		return -errno;
	snprintf(path, sizeof(path), "host%u/addresses", host);
	return file_write(k->dir_fd, path, "%s", text);
}

static void wire_host_name(const struct kernel *k, uint32_t host, char name[SH_WIRE_NAME])
{
	char address[SH_WIRE_TEXT];

	sh_wire_text(address, wire_address(k, host * k->cfg.device.hcas_per_host, 1));
	sh_wire_name(name, address);
}

void identity_describe(const struct kernel *k, uint32_t hca, char text[IDENTITY_TEXT])
{
	const struct khca *h = &k->hcas[hca];
	char name[SH_WIRE_NAME];

	if (k->cfg.device.wire.n)
		wire_host_name(k, h->host, name);
	else
		snprintf(name, sizeof(name), "softhca-host%u", h->host);
	/* "softhca-", and an address of 39 characters at most. */
	snprintf(text, IDENTITY_TEXT, "%.47s HCA-%u", name, h->unit + 1);
}

/*
 * The name that tells a host from the others of its fabric. Programs take two hosts of one name for
 * the same one, and do not use the wire between them. False: the host is the machine.
 */
static bool choose_name(const struct kernel *k, uint32_t host, char name[SH_WIRE_NAME])
{
	const struct sh_config *device = &k->cfg.device;
	char plain[SH_HOST_NAME];

	if (device->wire.n && (device->hosts > 1 || sh_wire_shared(&device->wire))) {
		wire_host_name(k, host, name);
		return true;
	}
	sh_host_name(plain, host);
	snprintf(name, SH_WIRE_NAME, "%s", plain);
	return device->hosts > 1;
}

int identity_make(struct kernel *k)
{
	char name[SH_WIRE_NAME];
	int err = mkdirat(k->dir_fd, "runs", 0700) < 0 ? -errno : 0;

	for (uint32_t i = 0; !err && i < k->cfg.device.hosts; i++) {
		if (choose_name(k, i, name))
			err = make_host(k, i, name);
		if (!err && k->cfg.device.wire.n)
			err = make_addresses(k, i);
	}
	return err;
}
