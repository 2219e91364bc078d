// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The version of the kernel's interface, and the devices. A device is opened when the first id
 * comes to it and stays open as long as the process lives, since programs keep using id->verbs. Its
 * PD lives from the first id to the last. One lock protects all of this; no thread can be cancelled
 * while it holds it.
 */

#include <fcntl.h>
#include <infiniband/driver.h>

#include "cm.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct cm_device *devices;
static int abi; /* 0: not started */

static int enter(void)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_mutex_lock(&lock);
	return state;
}

static void leave(int state)
{
	pthread_mutex_unlock(&lock);
	pthread_setcancelstate(state, NULL);
}

static int read_abi(void)
{
	static const char *const files[] = {"class/misc/rdma_cm/abi_version",
					    "class/infiniband_ucma/abi_version"};
	const char *sysfs = ibv_get_sysfs_path();
	char text[16];
	unsigned int i;

	for (i = 0; sysfs && i < sizeof(files) / sizeof(files[0]); i++)
		if (ibv_read_sysfs_file(sysfs, files[i], text, sizeof(text)) > 0)
			return atoi(text);
	return RDMA_USER_CM_MAX_ABI_VERSION;
}

static struct cm_device *find(uint64_t guid)
{
	struct cm_device *dev;

	for (dev = devices; dev && dev->guid != guid; dev = dev->next)
		;
	return dev;
}

/* Adds the devices that are not in the list. Keeps their order. */
static int discover(void)
{
	struct cm_device **end, *dev;
	struct ibv_device **list;
	int i, n, ret = 0;

	list = ibv_get_device_list(&n);
	if (!list)
		return errno == ENOSYS ? -ENODEV : -errno;

	for (end = &devices; *end; end = &(*end)->next)
		;
	for (i = 0; i < n; i++) {
		uint64_t guid = ibv_get_device_guid(list[i]);

		if (find(guid))
			continue;
		dev = calloc(1, sizeof(*dev));
		if (!dev) {
			ret = -ENOMEM;
			break;
		}
		dev->device = list[i];
		dev->guid = guid;
		*end = dev;
		end = &dev->next;
	}
	ibv_free_device_list(list);

	return devices ? ret : -ENODEV;
}

int cm_start(void)
{
	int version, state, ret = 0;

	if (__atomic_load_n(&abi, __ATOMIC_ACQUIRE))
		return 0;

	state = enter();
	if (!abi) {
		version = read_abi();
		if (version < RDMA_USER_CM_MIN_ABI_VERSION ||
		    version > RDMA_USER_CM_MAX_ABI_VERSION)
			ret = -EPERM;
		else
			ret = discover();
		if (!ret)
			__atomic_store_n(&abi, version, __ATOMIC_RELEASE);
	}
	leave(state);
	return ret;
}

int cm_abi(void)
{
	return __atomic_load_n(&abi, __ATOMIC_ACQUIRE);
}

static uint8_t depth(int of_device)
{
	return of_device > 0xff ? 0xff : of_device;
}

static int open_device(struct cm_device *dev)
{
	struct ibv_device_attr attr;
	struct ibv_context *verbs;
	int ret;

	if (dev->verbs)
		return 0;

	errno = 0;
	verbs = ibv_open_device(dev->device);
	if (!verbs)
		return errno ? -errno : -ENODEV;

	ret = ibv_query_device(verbs, &attr);
	if (ret) {
		ibv_close_device(verbs);
		return -ret;
	}
	dev->max_responder_resources = depth(attr.max_qp_rd_atom);
	dev->max_initiator_depth = depth(attr.max_qp_init_rd_atom);
	dev->verbs = verbs;
	cm_keep(verbs->cmd_fd);
	cm_keep(verbs->async_fd);
	return 0;
}

static int attach(struct cm_id *id, uint64_t guid)
{
	struct cm_device *dev = find(guid);
	int ret;

	if (!dev) {
		ret = discover();
		if (ret)
			return ret;
		dev = find(guid);
		if (!dev)
			return -ENODEV;
	}
	ret = open_device(dev);
	if (ret)
		return ret;
	if (!dev->pd) {
		errno = 0;
		dev->pd = ibv_alloc_pd(dev->verbs);
		if (!dev->pd)
			return errno ? -errno : -ENOMEM;
	}
	dev->users++;
	id->dev = dev;
	id->id.verbs = dev->verbs;
	id->id.pd = dev->pd;
	return 0;
}

int cm_device_attach(struct cm_id *id, uint64_t guid)
{
	int state, ret;

	if (id->dev)
		return 0;
	state = enter();
	ret = attach(id, guid);
	leave(state);
	return ret;
}

void cm_device_detach(struct cm_id *id)
{
	struct cm_device *dev = id->dev;
	int state;

	if (!dev)
		return;
	state = enter();
	/* Objects that the program has left in the PD keep it: then the next id uses it again. */
	if (!--dev->users && !ibv_dealloc_pd(dev->pd))
		dev->pd = NULL;
	id->dev = NULL;
	leave(state);
}

int cm_domain_get(struct cm_device *dev, struct ibv_xrc_domain **domain)
{
	int state = enter(), ret = 0;

	if (!dev->domain) {
		errno = 0;
		dev->domain = ibv_open_xrc_domain(dev->verbs, -1, O_CREAT);
		if (!dev->domain)
			ret = errno ? -errno : -ENOSYS;
	}
	if (!ret) {
		dev->domain_users++;
		*domain = dev->domain;
	}
	leave(state);
	return ret;
}

void cm_domain_put(struct cm_device *dev)
{
	int state = enter();

	if (!--dev->domain_users && !ibv_close_xrc_domain(dev->domain))
		dev->domain = NULL;
	leave(state);
}

/* ---- All of them, for programs ---- */

static int open_all(struct ibv_context ***list, int *count)
{
	struct ibv_context **all;
	struct cm_device *dev;
	int ret, n = 0;

	ret = discover();
	if (ret)
		return ret;
	for (dev = devices; dev; dev = dev->next)
		n++;
	all = calloc(n + 1, sizeof(*all));
	if (!all)
		return -ENOMEM;

	n = 0;
	for (dev = devices; dev; dev = dev->next) {
		/* One that cannot be opened leaves the others to the program. */
		ret = open_device(dev);
		if (!ret)
			all[n++] = dev->verbs;
	}
	if (!n) {
		free(all);
		return ret;
	}
	*list = all;
	*count = n;
	return 0;
}

PUBLIC struct ibv_context **rdma_get_devices(int *num_devices)
{
	struct ibv_context **list = NULL;
	int state, ret, n = 0;

	ret = cm_start();
	if (!ret) {
		state = enter();
		ret = open_all(&list, &n);
		leave(state);
	}
	if (num_devices)
		*num_devices = n;
	if (ret)
		errno = -ret;
	return list;
}

PUBLIC void rdma_free_devices(struct ibv_context **list)
{
	free(list);
}
