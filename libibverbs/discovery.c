// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Finds the uverbs devices in sysfs and matches them with drivers. Keeps nothing between two runs but
 * abi_ver: whatever is found anew is looked at anew. Runs under the lock of the device list. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ibverbs.h"

/* At or below this nothing but the smallest programs can register their memory. */
#define LOW_MEMLOCK 32768

int abi_ver;

/* Leading number of a sysfs attribute, like "1: CA"; -1 if there is none. */
static int read_number(const char *dir, const char *file)
{
	char path[IBV_SYSFS_PATH_MAX + 32], text[32], *end;
	long value;
	int len;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	len = sysfs_read_text(path, text, sizeof(text));
	if (len < 0)
		return -1;

	value = strtol(text, &end, 10);
	return end == text || value < 0 || value > INT32_MAX ? -1 : (int)value;
}

/* 0, or -ENOSYS: no uverbs in this kernel, or of a version that we do not speak. */
static int check_kernel_abi(const char *class_path)
{
	int version = read_number(class_path, "abi_version");

	/* Silent: a machine without RDMA is no fault. */
	if (version < 0)
		return -ENOSYS;

	if (version < IB_USER_VERBS_MIN_ABI_VERSION || version > IB_USER_VERBS_MAX_ABI_VERSION) {
		ibverbs_fatal("kernel ABI version %d doesn't match library version %d (down to %d). "
		      "Use a libibverbs that is made for this kernel.",
		      version, IB_USER_VERBS_MAX_ABI_VERSION, IB_USER_VERBS_MIN_ABI_VERSION);
		return -ENOSYS;
	}

	abi_ver = version;
	return 0;
}

static void check_memlock_limit(void)
{
	static bool warned;
	struct rlimit rlim;

	if (warned || !geteuid() || getrlimit(RLIMIT_MEMLOCK, &rlim) || rlim.rlim_cur > LOW_MEMLOCK)
		return;

	warned = true;
	ibverbs_warning("RLIMIT_MEMLOCK is %llu bytes, which leaves little memory to register. "
		"Raise it (ulimit -l, or a file in /etc/security/limits.d).",
		(unsigned long long)rlim.rlim_cur);
}

/* The device behind one entry of the class. NULL when the entry is none; a broken one is warned of. */
static struct uverbs_device *read_device(const char *sysfs, const char *class_path, const char *entry)
{
	char path[2 * IBV_SYSFS_PATH_MAX], ibdev[IBV_SYSFS_NAME_MAX];
	struct uverbs_device *dev;
	struct stat st;
	int len;

	len = snprintf(path, sizeof(path), "%s/%s", class_path, entry);
	if (stat(path, &st) || !S_ISDIR(st.st_mode))
		return NULL;

	if (len >= IBV_SYSFS_PATH_MAX || strlen(entry) >= IBV_SYSFS_NAME_MAX) {
		ibverbs_warning("ignoring '%s': its name is too long. Use a shorter SYSFS_PATH.", path);
		return NULL;
	}

	strcat(path, "/ibdev");
	if (sysfs_read_text(path, ibdev, sizeof(ibdev)) <= 0) {
		ibverbs_warning("ignoring '%s/%s', which has no readable attribute 'ibdev'. "
			"Check that the RDMA device of it is still there.", class_path, entry);
		return NULL;
	}

	dev = calloc(1, sizeof(*dev));
	if (!dev)
		return NULL;

	len = snprintf(dev->ibdev_path, sizeof(dev->ibdev_path), "%s/class/infiniband/%s", sysfs, ibdev);
	if (len >= (int)sizeof(dev->ibdev_path)) {
		ibverbs_warning("ignoring '%s': its path is too long. Use a shorter SYSFS_PATH.", ibdev);
		free(dev);
		return NULL;
	}

	snprintf(dev->path, sizeof(dev->path), "%.*s", (int)(strlen(path) - strlen("/ibdev")), path);
	strcpy(dev->name, entry);
	strcpy(dev->ibdev, ibdev);
	dev->abi_version = read_number(dev->path, "abi_version");
	if (dev->abi_version < 0)
		dev->abi_version = 0;

	return dev;
}

/* The list of uverbs devices, uverbs0 first. 0, or -ENOSYS when there is no such class. */
static int find_devices(const char *sysfs, const char *class_path, struct uverbs_device **devices)
{
	struct uverbs_device *dev;
	char **names;
	int n;

	*devices = NULL;
	n = names_read(class_path, &names);
	if (n < 0)
		return n == -ENOMEM ? -ENOMEM : -ENOSYS;

	/* From the last to the first, since each goes to the front of the list. */
	while (n--) {
		dev = read_device(sysfs, class_path, names[n]);
		if (dev) {
			dev->next = *devices;
			*devices = dev;
		}
	}

	names_free(names);
	return 0;
}

static void fill_in(struct ibv_device *vdev, const struct uverbs_device *dev)
{
	int node_type = read_number(dev->ibdev_path, "node_type");

	if (node_type < 0)
		ibverbs_warning("cannot read '%s/node_type'. The device is taken as of unknown type: check its "
			"kernel driver.", dev->ibdev_path);

	vdev->node_type = IBV_NODE_UNKNOWN;
	vdev->transport_type = IBV_TRANSPORT_UNKNOWN;
	if (node_type >= IBV_NODE_CA && node_type <= IBV_NODE_RNIC) {
		vdev->node_type = node_type;
		vdev->transport_type = node_type == IBV_NODE_RNIC ? IBV_TRANSPORT_IWARP : IBV_TRANSPORT_IB;
	}

	strcpy(vdev->dev_name, dev->name);
	strcpy(vdev->dev_path, dev->path);
	strcpy(vdev->name, dev->ibdev);
	strcpy(vdev->ibdev_path, dev->ibdev_path);
}

/* Offers the devices nobody has claimed yet to the drivers that are there. Returns how many are left, or
 * -ENOMEM. */
static int match_devices(struct uverbs_device *devices, struct ibv_device ***list, int *count)
{
	struct uverbs_device *dev;
	struct ibv_device **grown, *vdev;
	int left = 0;

	for (dev = devices; dev; dev = dev->next) {
		if (dev->claimed)
			continue;

		/* Room first: what a driver has made for us cannot be given back. */
		grown = realloc(*list, (*count + 1) * sizeof(**list));
		if (!grown)
			return -ENOMEM;
		*list = grown;

		vdev = drivers_try(dev);
		if (!vdev) {
			++left;
			continue;
		}

		fill_in(vdev, dev);
		dev->claimed = true;
		(*list)[(*count)++] = vdev;
	}

	return left;
}

int discover_devices(struct ibv_device ***list)
{
	const char *sysfs = ibv_get_sysfs_path();
	struct uverbs_device *devices, *dev;
	char class_path[IBV_SYSFS_PATH_MAX + 32];
	int count = 0, ret;

	*list = NULL;

	if ((getenv("RDMAV_FORK_SAFE") || getenv("IBV_FORK_SAFE")) && ibv_fork_init())
		ibverbs_warning("fork() protection was asked for (RDMAV_FORK_SAFE or IBV_FORK_SAFE) and cannot be "
			"had. Do not fork after registering memory.");

	snprintf(class_path, sizeof(class_path), "%s/class/infiniband_verbs", sysfs);
	ret = check_kernel_abi(class_path);
	if (ret)
		return ret;

	check_memlock_limit();

	ret = find_devices(sysfs, class_path, &devices);
	if (ret)
		return ret;

	ret = match_devices(devices, list, &count);
	if (ret > 0) {
		providers_load();
		ret = match_devices(devices, list, &count);
	}
	if (ret >= 0)
		providers_report(devices);

	while ((dev = devices)) {
		devices = dev->next;
		free(dev);
	}

	/* Out of memory on the way: what was found is good. */
	if (ret < 0 && !count) {
		free(*list);
		*list = NULL;
		return ret;
	}

	return count;
}
