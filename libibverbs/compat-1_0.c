// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * IBVERBS_1.0: devices and contexts, and the registry that tells shadows from current objects.
 * ibv_create_comp_channel() and ibv_destroy_comp_channel() need the registry, because they have one
 * symbol version for callers of both ABIs. registry_lock protects the lists of the registry; no
 * call that may sleep is made while it is held.
 */
#include <errno.h>
#include <stdlib.h>

#include "compat.h"
#include "compat-1_0.h"
#include "ibverbs.h"

/* Device shadows are never freed: programs read context->device after they have freed the list. */
struct shadow_device {
	struct ibv_device_1_0 device;
	struct shadow_device *next;
};

struct shadow_context {
	struct ibv_context_1_0 context;
	struct shadow_context *next;
};

struct shadow_channel {
	struct ibv_comp_channel_1_0 channel;
	struct ibv_comp_channel *real;
	struct shadow_channel *next;
};

static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static struct shadow_device *devices;
static struct shadow_context *contexts;
static struct shadow_channel *channels;

struct ibv_context *compat_real_context(const void *maybe_shadow)
{
	struct ibv_context *real = NULL;
	struct shadow_context *shadow;

	pthread_mutex_lock(&registry_lock);
	for (shadow = contexts; shadow && !real; shadow = shadow->next)
		if (shadow == maybe_shadow)
			real = shadow->context.real_context;
	pthread_mutex_unlock(&registry_lock);

	return real;
}

struct ibv_comp_channel *compat_real_channel(const void *maybe_shadow)
{
	struct ibv_comp_channel *real = NULL;
	struct shadow_channel *shadow;

	pthread_mutex_lock(&registry_lock);
	for (shadow = channels; shadow && !real; shadow = shadow->next)
		if (shadow == maybe_shadow)
			real = shadow->real;
	pthread_mutex_unlock(&registry_lock);

	return real;
}

struct ibv_comp_channel *compat_shadow_channel(struct ibv_comp_channel *real)
{
	struct shadow_channel *shadow;

	/*
	 * As large as a current channel, so that code for either kind does not read past its end.
	 */
	_Static_assert(sizeof(*shadow) >= sizeof(*real),
		       "a 1.0 channel stands in for a current one");
	shadow = calloc(1, sizeof(*shadow));
	if (!shadow)
		return NULL;

	shadow->channel.fd = real->fd;
	shadow->real = real;

	pthread_mutex_lock(&registry_lock);
	shadow->next = channels;
	channels = shadow;
	pthread_mutex_unlock(&registry_lock);

	return (struct ibv_comp_channel *)shadow;
}

void compat_forget_channel(struct ibv_comp_channel *shadow)
{
	struct shadow_channel **link, *found;

	pthread_mutex_lock(&registry_lock);
	for (link = &channels; *link; link = &(*link)->next)
		if ((void *)*link == shadow)
			break;
	found = *link;
	if (found)
		*link = found->next;
	pthread_mutex_unlock(&registry_lock);

	free(found);
}

/* Returns NULL with ENOMEM on failure. */
static struct ibv_device_1_0 *shadow_of_device(struct ibv_device *real)
{
	struct shadow_device *shadow;

	pthread_mutex_lock(&registry_lock);
	for (shadow = devices; shadow; shadow = shadow->next)
		if (shadow->device.real_device == real)
			break;
	if (!shadow) {
		shadow = calloc(1, sizeof(*shadow));
		if (shadow) {
			shadow->device.real_device = real;
			shadow->next = devices;
			devices = shadow;
		}
	}
	pthread_mutex_unlock(&registry_lock);

	return shadow ? &shadow->device : NULL;
}

/*
 * The caller gets the array from its second slot on. The first slot holds the current list for
 * ibv_free_device_list().
 */
struct ibv_device_1_0 **ibv_get_device_list_1_0(int *num)
{
	struct ibv_device **real_list;
	struct ibv_device_1_0 **list;
	int i, n;

	real_list = ibv_get_device_list(&n);
	if (!real_list)
		return NULL;

	list = calloc(n + 2, sizeof(*list));
	if (!list)
		goto err_real;

	list[0] = (struct ibv_device_1_0 *)real_list;
	for (i = 0; i < n; ++i) {
		list[i + 1] = shadow_of_device(real_list[i]);
		if (!list[i + 1])
			goto err_list;
	}

	if (num)
		*num = n;
	return list + 1;

err_list:
	free(list);
err_real:
	ibv_free_device_list(real_list);
	errno = ENOMEM;
	return NULL;
}
symver(ibv_get_device_list_1_0, ibv_get_device_list, "IBVERBS_1.0");

void ibv_free_device_list_1_0(struct ibv_device_1_0 **list)
{
	ibv_free_device_list((struct ibv_device **)list[-1]);
	free(list - 1);
}
symver(ibv_free_device_list_1_0, ibv_free_device_list, "IBVERBS_1.0");

const char *ibv_get_device_name_1_0(struct ibv_device_1_0 *device)
{
	return ibv_get_device_name(device->real_device);
}
symver(ibv_get_device_name_1_0, ibv_get_device_name, "IBVERBS_1.0");

uint64_t ibv_get_device_guid_1_0(struct ibv_device_1_0 *device)
{
	return ibv_get_device_guid(device->real_device);
}
symver(ibv_get_device_guid_1_0, ibv_get_device_guid, "IBVERBS_1.0");

struct ibv_context_1_0 *ibv_open_device_1_0(struct ibv_device_1_0 *device)
{
	struct shadow_context *shadow;
	struct ibv_context *real;

	shadow = calloc(1, sizeof(*shadow));
	if (!shadow)
		return NULL;

	real = ibv_open_device(device->real_device);
	if (!real) {
		free(shadow);
		return NULL;
	}

	shadow->context.device = device;
	shadow->context.cmd_fd = real->cmd_fd;
	shadow->context.async_fd = real->async_fd;
	shadow->context.num_comp_vectors = real->num_comp_vectors;
	shadow->context.real_context = real;
	compat_1_0_set_ops(&shadow->context.ops);

	pthread_mutex_lock(&registry_lock);
	shadow->next = contexts;
	contexts = shadow;
	pthread_mutex_unlock(&registry_lock);

	return &shadow->context;
}
symver(ibv_open_device_1_0, ibv_open_device, "IBVERBS_1.0");

int ibv_close_device_1_0(struct ibv_context_1_0 *context)
{
	struct shadow_context **link;
	int ret;

	ret = ibv_close_device(context->real_context);
	if (ret)
		return ret;

	pthread_mutex_lock(&registry_lock);
	for (link = &contexts; *link; link = &(*link)->next)
		if (&(*link)->context == context) {
			*link = (*link)->next;
			break;
		}
	pthread_mutex_unlock(&registry_lock);

	free(context);
	return 0;
}
symver(ibv_close_device_1_0, ibv_close_device, "IBVERBS_1.0");

int ibv_query_device_1_0(struct ibv_context_1_0 *context, struct ibv_device_attr *device_attr)
{
	return ibv_query_device(context->real_context, device_attr);
}
symver(ibv_query_device_1_0, ibv_query_device, "IBVERBS_1.0");

int ibv_query_port_1_0(struct ibv_context_1_0 *context, uint8_t port_num,
		       struct ibv_port_attr *port_attr)
{
	/*
	 * Calls the function. The macro of the same name would clear bytes of the caller's
	 * structure.
	 */
	return (ibv_query_port)(context->real_context, port_num, port_attr);
}
symver(ibv_query_port_1_0, ibv_query_port, "IBVERBS_1.0");

int ibv_query_gid_1_0(struct ibv_context_1_0 *context, uint8_t port_num, int index,
		      union ibv_gid *gid)
{
	return ibv_query_gid(context->real_context, port_num, index, gid);
}
symver(ibv_query_gid_1_0, ibv_query_gid, "IBVERBS_1.0");

int ibv_query_pkey_1_0(struct ibv_context_1_0 *context, uint8_t port_num, int index, uint16_t *pkey)
{
	return ibv_query_pkey(context->real_context, port_num, index, pkey);
}
symver(ibv_query_pkey_1_0, ibv_query_pkey, "IBVERBS_1.0");
