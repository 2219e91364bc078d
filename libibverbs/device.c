// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The device list, and opening and closing devices. Devices stay in memory until the process ends.
 * device_list_lock protects the list and everything that discovery does. */

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "xrc.h"

static pthread_mutex_t device_list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct ibv_device **device_list;
static int num_devices; /* > 0: found; 0: search (again); < 0: -errno, for good */

struct ibv_device **ibv_get_device_list_1_1(int *num)
{
	struct ibv_device **list = NULL;
	int count;

	if (num)
		*num = 0;

	pthread_mutex_lock(&device_list_lock);

	if (!num_devices)
		num_devices = discover_devices(&device_list);
	count = num_devices;
	if (!count) {
		free(device_list);
		device_list = NULL;
	}
	if (count < 0) {
		errno = -count;
		goto out;
	}

	list = calloc(count + 1, sizeof(*list));
	if (!list)
		goto out;

	if (count)
		memcpy(list, device_list, count * sizeof(*list));
	if (num)
		*num = count;
out:
	pthread_mutex_unlock(&device_list_lock);
	return list;
}
default_symver(ibv_get_device_list_1_1, ibv_get_device_list);

void ibv_free_device_list_1_1(struct ibv_device **list)
{
	free(list);
}
default_symver(ibv_free_device_list_1_1, ibv_free_device_list);

const char *ibv_get_device_name_1_1(struct ibv_device *device)
{
	return device->name;
}
default_symver(ibv_get_device_name_1_1, ibv_get_device_name);

uint64_t ibv_get_device_guid_1_1(struct ibv_device *device)
{
	unsigned int part[4];
	uint16_t parts[4];
	uint64_t guid;
	char text[24];
	int i, len, used = 0;

	len = ibv_read_sysfs_file(device->ibdev_path, "node_guid", text, sizeof(text) - 1);
	if (len < 0)
		return 0;
	text[len] = '\0';

	if (sscanf(text, "%4x:%4x:%4x:%4x%n", &part[0], &part[1], &part[2], &part[3], &used) != 4 ||
	    used != len)
		return 0;

	for (i = 0; i < 4; ++i)
		parts[i] = htons(part[i]);
	memcpy(&guid, parts, sizeof(guid));

	return guid;
}
default_symver(ibv_get_device_guid_1_1, ibv_get_device_guid);

struct ibv_context *ibv_open_device_1_1(struct ibv_device *device)
{
	struct ibv_context *context;
	char *path;
	int err, fd;

	if (asprintf(&path, "/dev/infiniband/%s", device->dev_name) < 0)
		return NULL;

	/* Without O_CLOEXEC: programs may rely on passing the descriptor across exec, as they
	 * always could. */
	fd = open(path, O_RDWR);
	err = errno;
	free(path);
	if (fd < 0) {
		errno = err;
		return NULL;
	}

	context = device->ops.alloc_context(device, fd);
	if (!context) {
		err = errno;
		close(fd);
		errno = err;
		return NULL;
	}

	context->device = device;
	context->cmd_fd = fd;
	/* With kernel ABI 1 and 2 ibv_cmd_get_context() has stored the v2 channel there. */
	if (abi_ver > 2)
		context->abi_compat = NULL;
	pthread_mutex_init(&context->mutex, NULL);

	return context;
}
default_symver(ibv_open_device_1_1, ibv_open_device);

int ibv_close_device_1_1(struct ibv_context *context)
{
	struct v2_channel *v2 = abi_ver <= 2 ? context->abi_compat : NULL;
	struct xrc_context *xrc = xrc_chosen(context);
	int async_fd = context->async_fd;
	int cmd_fd = context->cmd_fd;

	context->device->ops.free_context(context);

	close(async_fd);
	close(cmd_fd);
	xrc_release(xrc);
	if (v2) {
		close(v2->channel.fd);
		free(v2);
	}

	return 0;
}
default_symver(ibv_close_device_1_1, ibv_close_device);
