// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Finds the uverbs devices in sysfs and matches them with drivers. Only abi_ver outlives a search:
 * the next search reads everything again. Runs under the lock of the device list. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ibverbs.h"

/* With a limit at or below this, only the smallest programs can register their memory. */
#define LOW_MEMLOCK 32768

int abi_ver;

/* Text for a message that says what is wrong with an attribute: its file and content. */
struct problem {
	char text[IBV_SYSFS_PATH_MAX + 160];
};

#define VALUE_SHOWN 40

static void describe(struct problem *problem, const char *path, int len, const char *value,
		     size_t size)
{
	size_t shown = len < 0 ? size : (size_t)len, i;
	char copy[VALUE_SHOWN + 1];

	if (len < 0 && len != -EOVERFLOW) {
		snprintf(problem->text, sizeof(problem->text), "'%s' cannot be read (%s)", path,
			 strerror(-len));
		return;
	}
	if (!len) {
		snprintf(problem->text, sizeof(problem->text), "'%s' is empty", path);
		return;
	}

	for (i = 0; i < shown && i < VALUE_SHOWN; ++i)
		copy[i] = value[i] >= ' ' && value[i] <= '~' ? value[i] : '?';
	copy[i] = '\0';
	snprintf(problem->text, sizeof(problem->text), "'%s' holds '%s%s'", path, copy,
		 shown > i ? "..." : "");
}

/* Reads the number in a sysfs attribute. With more, text may follow the number, as in "1: CA".
 * Returns -ENOENT if there is no such file, and -EINVAL with *problem set for all other
 * failures. */
static int read_number(const char *dir, const char *file, bool more, struct problem *problem)
{
	char path[IBV_SYSFS_PATH_MAX + 32], text[2 * VALUE_SHOWN], *end;
	long value = -1;
	int len;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	len = sysfs_read_text(path, text, sizeof(text));
	if (len > 0) {
		errno = 0;
		value = strtol(text, &end, 10);
		if (end == text || errno || value > INT32_MAX || (!more && end != text + len))
			value = -1;
	}
	if (value >= 0)
		return value;

	describe(problem, path, len, text, sizeof(text));
	return len == -ENOENT ? -ENOENT : -EINVAL;
}

/* Returns 0, or -ENOSYS: the kernel has no uverbs, or an ABI version that the library does not
 * support. */
static int check_kernel_abi(const char *class_path)
{
	struct problem problem;
	int version = read_number(class_path, "abi_version", false, &problem);

	/* No message: it is normal that a machine has no RDMA device. */
	if (version == -ENOENT)
		return -ENOSYS;

	if (version < 0) {
		ibverbs_fatal("the kernel ABI version is not known: %s. Check the kernel module "
			      "ib_uverbs, and SYSFS_PATH "
			      "if it is set.",
			      problem.text);
		return -ENOSYS;
	}

	if (version < IB_USER_VERBS_MIN_ABI_VERSION || version > IB_USER_VERBS_MAX_ABI_VERSION) {
		ibverbs_fatal(
			"kernel ABI version %d doesn't match library version %d (down to %d): see "
			"'%s/abi_version'. Use a libibverbs that is made for this kernel.",
			version, IB_USER_VERBS_MAX_ABI_VERSION, IB_USER_VERBS_MIN_ABI_VERSION,
			class_path);
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

/* Can this be the name of a directory in sysfs? */
static bool is_name(const char *name, int len)
{
	int i;

	for (i = 0; i < len; ++i)
		if (name[i] <= ' ' || name[i] > '~' || name[i] == '/')
			return false;
	return len > 0 && name[0] != '.';
}

/* Returns the device that an entry of the class stands for, or NULL. Warns if the entry is a broken
 * device. */
static struct uverbs_device *read_device(const char *sysfs, const char *class_path,
					 const char *entry)
{
	char path[2 * IBV_SYSFS_PATH_MAX], ibdev[IBV_SYSFS_NAME_MAX];
	struct uverbs_device *dev;
	struct problem problem;
	struct stat st;
	int len;

	len = snprintf(path, sizeof(path), "%s/%s", class_path, entry);
	if (stat(path, &st) || !S_ISDIR(st.st_mode))
		return NULL;

	if (len >= IBV_SYSFS_PATH_MAX || strlen(entry) >= IBV_SYSFS_NAME_MAX) {
		ibverbs_warning("ignoring '%s': its name is too long. Use a shorter SYSFS_PATH.",
				path);
		return NULL;
	}

	strcat(path, "/ibdev");
	len = sysfs_read_text(path, ibdev, sizeof(ibdev));
	if (len < 0 || !is_name(ibdev, len)) {
		describe(&problem, path, len, ibdev, sizeof(ibdev));
		ibverbs_warning("ignoring '%s/%s': %s, not the name of an RDMA device. Check that "
				"the device is still "
				"there.",
				class_path, entry, problem.text);
		return NULL;
	}

	dev = calloc(1, sizeof(*dev));
	if (!dev)
		return NULL;

	len = snprintf(dev->ibdev_path, sizeof(dev->ibdev_path), "%s/class/infiniband/%s", sysfs,
		       ibdev);
	if (len >= (int)sizeof(dev->ibdev_path)) {
		ibverbs_warning("ignoring '%s': its path is too long. Use a shorter SYSFS_PATH.",
				ibdev);
		free(dev);
		return NULL;
	}

	snprintf(dev->path, sizeof(dev->path), "%.*s", (int)(strlen(path) - strlen("/ibdev")),
		 path);
	strcpy(dev->name, entry);
	strcpy(dev->ibdev, ibdev);
	dev->abi_version = read_number(dev->path, "abi_version", false, &problem);
	if (dev->abi_version == -ENOENT) {
		dev->abi_version = 0;
	} else if (dev->abi_version < 0) {
		ibverbs_warning("ignoring '%s': %s, not the ABI version of its driver. Check the "
				"device's kernel driver.",
				dev->path, problem.text);
		free(dev);
		return NULL;
	}

	return dev;
}

/* Makes the list of uverbs devices, uverbs0 first. Returns 0, -ENOMEM, or -ENOSYS if there is no
 * such class. */
static int find_devices(const char *sysfs, const char *class_path, struct uverbs_device **devices)
{
	struct uverbs_device *dev;
	char **names;
	int n;

	*devices = NULL;
	n = names_read(class_path, &names);
	if (n < 0)
		return n == -ENOMEM ? -ENOMEM : -ENOSYS;

	/* From last to first, because each device goes to the front of the list. */
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
	struct problem problem;
	int node_type = read_number(dev->ibdev_path, "node_type", true, &problem);

	if (node_type < 0)
		ibverbs_warning("%s, not a node type. Taking the device as one of unknown type: "
				"check its kernel driver.",
				problem.text);

	vdev->node_type = IBV_NODE_UNKNOWN;
	vdev->transport_type = IBV_TRANSPORT_UNKNOWN;
	if (node_type >= IBV_NODE_CA && node_type <= IBV_NODE_RNIC) {
		vdev->node_type = node_type;
		vdev->transport_type =
			node_type == IBV_NODE_RNIC ? IBV_TRANSPORT_IWARP : IBV_TRANSPORT_IB;
	}

	strcpy(vdev->dev_name, dev->name);
	strcpy(vdev->dev_path, dev->path);
	strcpy(vdev->name, dev->ibdev);
	strcpy(vdev->ibdev_path, dev->ibdev_path);
}

/* Offers the unclaimed devices to the registered drivers. Returns how many are still unclaimed, or
 * -ENOMEM. */
static int match_devices(struct uverbs_device *devices, struct ibv_device ***list, int *count)
{
	struct uverbs_device *dev;
	struct ibv_device **grown, *vdev;
	int left = 0;

	for (dev = devices; dev; dev = dev->next) {
		if (dev->claimed || dev->declined)
			continue;

		/* Grow the list first: a driver cannot take back the device that it has made. */
		grown = realloc(*list, (*count + 1) * sizeof(**list));
		if (!grown)
			return -ENOMEM;
		*list = grown;

		vdev = drivers_try(dev);
		if (!vdev) {
			left += !dev->declined;
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
		ibverbs_warning("fork() protection was asked for (RDMAV_FORK_SAFE or "
				"IBV_FORK_SAFE), but is not "
				"available. Do not fork after registering memory.");

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

	/* After a failure to allocate, the devices found until then are still good. */
	if (ret < 0 && !count) {
		free(*list);
		*list = NULL;
		return ret;
	}

	return count;
}
