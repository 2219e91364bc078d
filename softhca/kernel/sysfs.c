// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What /sys and /dev are to the processes of each host: files below host<K>/sys and host<K>/dev
 * with what libraries of both generations, and programs around them, read. The class directories
 * hold links into a tree of PCI devices, as the real ones do. Ports change in place; the directory
 * of a device never does.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "counters.h"
#include "fs.h"
#include "identity.h"
#include "kern.h"
#include "ports.h"
#include "room.h"
#include "sysfs.h"

#define PCI_VENDOR 0x15b3
#define PCI_DEVICE 0x673c /* MT26428: ConnectX-2 QDR, known to every mlx4 provider */

/* The bus number tells the device: each HCA of a host has a bus. */
static void pci_dir(char path[128], uint32_t host, uint32_t unit)
{
	snprintf(path, 128, "host%u/sys/devices/pci0000:00/0000:%02x:00.0", host, unit + 1);
}

static int put(const struct kernel *k, const char *dir, const char *name, const char *value)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/%s", dir, name) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	return file_attribute(k->dir_fd, path, "%s\n", value);
}

static int put_link(const struct kernel *k, const char *target, const char *dir, const char *name)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/%s", dir, name) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	return symlinkat(target, k->dir_fd, path) < 0 ? -errno : 0;
}

int sysfs_class(const struct kernel *k, uint32_t hca, const char *class, const char *name,
		char path[256])
{
	uint32_t host = hca / k->cfg.device.hcas_per_host, unit = hca % k->cfg.device.hcas_per_host;
	char pci[128], text[256], dir[128];
	int err;

	pci_dir(pci, host, unit);
	snprintf(path, 256, "%s/%s/%s", pci, class, name);
	err = dir_make(k->dir_fd, path);
	snprintf(text, sizeof(text), "../../../0000:%02x:00.0", unit + 1);
	err = err ?: put_link(k, text, path, "device");
	snprintf(dir, sizeof(dir), "host%u/sys/class/%s", host, class);
	err = err ?: dir_make(k->dir_fd, dir);
	snprintf(text, sizeof(text), "../../devices/pci0000:00/0000:%02x:00.0/%s/%s", unit + 1,
		 class, name);
	return err ?: put_link(k, text, dir, name);
}

static void guid_text(char text[32], uint64_t guid)
{
	snprintf(text, 32, "%04x:%04x:%04x:%04x", (unsigned int)(guid >> 48),
		 (unsigned int)(guid >> 32 & 0xffff), (unsigned int)(guid >> 16 & 0xffff),
		 (unsigned int)(guid & 0xffff));
}

static void gid_text(char text[64], const uint8_t gid[16])
{
	int i, n = 0;

	for (i = 0; i < 16; i += 2)
		n += snprintf(text + n, 64 - n, "%s%02x%02x", i ? ":" : "", gid[i], gid[i + 1]);
}

void sysfs_hca_dir(const struct kernel *k, char path[256], uint32_t hca)
{
	const struct khca *h = &k->hcas[hca];
	char pci[128];

	pci_dir(pci, h->host, h->unit);
	snprintf(path, 256, "%s/infiniband/mlx4_%u", pci, h->unit);
}

void sysfs_port_dir(const struct kernel *k, char path[256], uint32_t hca, uint32_t port)
{
	size_t len;

	sysfs_hca_dir(k, path, hca);
	len = strlen(path);
	snprintf(path + len, 256 - len, "/ports/%u", port);
}

static int put_pkey(struct kernel *k, const char *dir, uint32_t index, uint16_t pkey)
{
	char name[32], text[16];

	snprintf(name, sizeof(name), "pkeys/%u", index);
	snprintf(text, sizeof(text), "0x%04x", pkey);
	return put(k, dir, name, text);
}

/* Writes the files that events can change. */
int sysfs_port(struct kernel *k, uint32_t hca, uint32_t port, uint32_t pkey)
{
	const struct sh_port *p = &sh_hca(&k->dev, hca)->port[port - 1];
	static const char *const physical[] = {[PORT_POLLING] = "2: Polling",
					       [PORT_DISABLED] = "3: Disabled",
					       [PORT_LINK_UP] = "5: LinkUp"};
	bool active = port_active(k, hca, port);
	char dir[256], text[16];
	int err = 0;

	sysfs_port_dir(k, dir, hca, port);
	err = err ?: put(k, dir, "state", active ? "4: ACTIVE" : "1: DOWN");
	err = err ?: put(k, dir, "phys_state", physical[port_physical(k, hca, port)]);
	snprintf(text, sizeof(text), "0x%x", p->lid);
	err = err ?: put(k, dir, "lid", text);
	snprintf(text, sizeof(text), "0x%x", p->sm_lid);
	err = err ?: put(k, dir, "sm_lid", text);
	snprintf(text, sizeof(text), "0x%08x", port_capabilities(k, hca, port));
	err = err ?: put(k, dir, "cap_mask", text);
	err = err ?: put_pkey(k, dir, pkey, p->pkey[pkey]);
	return err;
}

static int make_port(struct kernel *k, uint32_t hca, uint32_t port)
{
	const struct sh_port *p = &sh_hca(&k->dev, hca)->port[port - 1];
	char dir[256], path[288], text[64];
	uint32_t i;
	int err = 0;

	sysfs_port_dir(k, dir, hca, port);
	snprintf(path, sizeof(path), "%s/gids", dir);
	err = err ?: dir_make(k->dir_fd, path);
	snprintf(path, sizeof(path), "%s/pkeys", dir);
	err = err ?: dir_make(k->dir_fd, path);
	if (err)
		return err;
	err = err ?: put(k, dir, "rate", "40 Gb/sec (4X QDR)");
	err = err ?: put(k, dir, "lid_mask_count", "0");
	err = err ?: put(k, dir, "sm_sl", "0");
	err = err ?: put(k, dir, "link_layer", "InfiniBand");
	for (i = 0; i < SH_GIDS; i++) {
		snprintf(path, sizeof(path), "gids/%u", i);
		gid_text(text, p->gid[i]);
		err = err ?: put(k, dir, path, text);
	}
	for (i = 0; i < SH_PKEYS; i++)
		err = err ?: put_pkey(k, dir, i, p->pkey[i]);
	return err ?: sysfs_port(k, hca, port, 0);
}

/* Reports the machine's processors as they are, and all of them as near. */
static void make_cpus(struct kernel *k, const char *dir, int *err)
{
	long n = sysconf(_SC_NPROCESSORS_CONF), word;
	char text[1024];
	int len = 0;

	if (n < 1)
		n = 1;
	if (n > 2048)
		n = 2048;
	for (word = (n - 1) / 32; word >= 0; word--) {
		unsigned long bits =
			n - word * 32 >= 32 ? 0xffffffffUL : (1UL << (n - word * 32)) - 1;

		len += snprintf(text + len, sizeof(text) - len, "%s%08lx", len ? "," : "", bits);
	}
	*err = *err ?: put(k, dir, "local_cpus", text);
	snprintf(text, sizeof(text), n > 1 ? "0-%ld" : "0", n - 1);
	*err = *err ?: put(k, dir, "local_cpulist", text);
}

static int make_pci(struct kernel *k, const char *dir)
{
	char text[128];
	int err = 0;

	snprintf(text, sizeof(text), "0x%04x", PCI_VENDOR);
	err = err ?: put(k, dir, "vendor", text);
	err = err ?: put(k, dir, "subsystem_vendor", text);
	snprintf(text, sizeof(text), "0x%04x", PCI_DEVICE);
	err = err ?: put(k, dir, "device", text);
	err = err ?: put(k, dir, "subsystem_device", "0x0022");
	err = err ?: put(k, dir, "class", "0x0c0600");
	err = err ?: put(k, dir, "revision", "0xb0");
	err = err ?: put(k, dir, "irq", "0");
	err = err ?: put(k, dir, "numa_node", "-1");
	err = err ?: put(k, dir, "current_link_speed", "5.0 GT/s PCIe");
	err = err ?: put(k, dir, "current_link_width", "8");
	snprintf(text, sizeof(text), "pci:v%08Xd%08Xsv%08Xsd%08Xbc%02Xsc%02Xi%02X", PCI_VENDOR,
		 PCI_DEVICE, PCI_VENDOR, 0x22, 0x0c, 0x06, 0x00);
	err = err ?: put(k, dir, "modalias", text);
	make_cpus(k, dir, &err);
	return err;
}

static int make_hca(struct kernel *k, uint32_t index)
{
	const struct khca *h = &k->hcas[index];
	uint64_t guid = sh_hca(&k->dev, index)->node_guid;
	char pci[128], ib[256], verbs[256], path[288], text[192];
	uint32_t port;
	int err;

	pci_dir(pci, h->host, h->unit);
	snprintf(text, sizeof(text), "mlx4_%u", h->unit);
	err = sysfs_class(k, index, "infiniband", text, ib);
	snprintf(text, sizeof(text), "uverbs%u", h->unit);
	err = err ?: sysfs_class(k, index, "infiniband_verbs", text, verbs);
	err = err ?: make_pci(k, pci);

	err = err ?: put(k, ib, "node_type", "1: CA");
	guid_text(text, guid);
	err = err ?: put(k, ib, "node_guid", text);
	guid_text(text, guid + 3);
	err = err ?: put(k, ib, "sys_image_guid", text);
	identity_describe(k, index, text);
	/* This one programs may write. */
	snprintf(path, sizeof(path), "%s/node_desc", ib);
	err = err ?: file_write(k->dir_fd, path, "%s\n", text);
	err = err ?: put(k, ib, "hw_rev", "b0");
	err = err ?: put(k, ib, "fw_ver", "2.9.1000");
	err = err ?: put(k, ib, "hca_type", "MT26428");
	err = err ?: put(k, ib, "board_id", "MT_0D90110009");
	for (port = 1; port <= k->cfg.device.ports; port++)
		err = err ?: make_port(k, index, port);
	err = err ?: counters_files(k, index);

	snprintf(text, sizeof(text), "mlx4_%u", h->unit);
	err = err ?: put(k, verbs, "ibdev", text);
	snprintf(text, sizeof(text), "231:%u", 192 + h->unit);
	err = err ?: put(k, verbs, "dev", text);
	snprintf(text, sizeof(text), "%u", k->cfg.device.driver_abi);
	err = err ?: put(k, verbs, "abi_version", text);

	snprintf(text, sizeof(text), "host%u/dev/infiniband/uverbs%u", h->host, h->unit);
	err = err ?: file_write(k->dir_fd, text, "%s", "");
	return err;
}

void sysfs_node_description(const struct kernel *k, uint32_t hca, uint8_t text[64])
{
	char path[300], usual[IDENTITY_TEXT] = "";
	ssize_t n = -1;
	int fd;

	sysfs_hca_dir(k, path, hca);
	strcat(path, "/node_desc");
	fd = openat(k->dir_fd, path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, text, 64);
		close(fd);
	}
	for (ssize_t i = 0; i < n; i++)
		if (text[i] == '\n')
			n = i;
	if (n > 0) {
		memset(text + n, 0, 64 - (size_t)n);
		return;
	}
	identity_describe(k, hca, usual);
	memcpy(text, usual, sizeof(usual));
}

int sysfs_make(struct kernel *k)
{
	char path[128];
	uint32_t i, j;
	int err = 0;

	for (i = 0; i < k->cfg.device.hosts; i++) {
		snprintf(path, sizeof(path), "host%u/sys/class/infiniband", i);
		err = err ?: dir_make(k->dir_fd, path);
		snprintf(path, sizeof(path), "host%u/dev/infiniband", i);
		err = err ?: dir_make(k->dir_fd, path);
		for (j = 0; !err && rooms[j]; j++)
			if (rooms[j]->files)
				err = rooms[j]->files(k, i);
	}
	/*
	 * The last HCA first: a tmpfs lists the newest entry first, and programs take the first
	 * device that they find.
	 */
	for (i = k->cfg.device.hosts * k->cfg.device.hcas_per_host; !err && i; i--)
		err = make_hca(k, i - 1);
	return err;
}
