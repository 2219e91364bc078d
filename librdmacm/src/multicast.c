// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Multicast groups: an id has a list of those that it has joined. The id's lock protects the list.
 */

#include <string.h>

#include "cm.h"

static void add(struct cm_id *id, struct cm_multicast *group)
{
	pthread_mutex_lock(&id->mutex);
	group->next = id->groups;
	id->groups = group;
	pthread_mutex_unlock(&id->mutex);
}

/* Takes a group off the list: this one, or with group NULL that of the address. */
static struct cm_multicast *take(struct cm_id *id, const struct cm_multicast *group,
				 const struct sockaddr *addr, size_t len)
{
	struct cm_multicast **at, *found;

	pthread_mutex_lock(&id->mutex);
	for (at = &id->groups; *at; at = &(*at)->next)
		if (group ? *at == group
			  : (*at)->addr_len == len && !memcmp(&(*at)->addr, addr, len))
			break;
	found = *at;
	if (found)
		*at = found->next;
	pthread_mutex_unlock(&id->mutex);
	return found;
}

void cm_multicast_free_all(struct cm_id *id)
{
	struct cm_multicast *group, *next;

	for (group = id->groups; group; group = next) {
		next = group->next;
		free(group);
	}
	id->groups = NULL;
}

PUBLIC int rdma_join_multicast(struct rdma_cm_id *rdma_id, struct sockaddr *addr, void *context)
{
	struct cm_id *id = to_cm_id(rdma_id);
	size_t len = cm_addr_len(addr);
	struct cm_multicast *group;
	int ret;

	if (!len)
		return cm_return(-EINVAL);
	group = calloc(1, sizeof(*group));
	if (!group)
		return cm_return(-ENOMEM);
	group->id = id;
	group->context = context;
	memcpy(&group->addr, addr, len);
	group->addr_len = len;

	cm_forget_event(id);
	/* First the list: the event may come before the command has returned. */
	add(id, group);
	ret = cm_family()->join(id, addr, len, (uintptr_t)group, &group->handle);
	if (ret) {
		take(id, group, NULL, 0);
		free(group);
		return cm_return(ret);
	}
	return cm_return(cm_complete(id));
}

int cm_multicast_joined(struct cm_multicast *group, const struct ibv_ah_attr *ah)
{
	int ret;

	group->mgid = ah->grh.dgid;
	group->mlid = ah->dlid;
	if (!group->id->id.qp)
		return 0;
	ret = ibv_attach_mcast(group->id->id.qp, &group->mgid, group->mlid);
	group->attached = !ret;
	return -ret;
}

static void unlock(void *mutex)
{
	pthread_mutex_unlock(mutex);
}

static void await(struct cm_id *id, struct cm_multicast *group, uint32_t reported)
{
	pthread_mutex_lock(&id->mutex);
	pthread_cleanup_push(unlock, &id->mutex);
	while (group->events_completed < reported)
		pthread_cond_wait(&id->cond, &id->mutex);
	pthread_cleanup_pop(1);
}

PUBLIC int rdma_leave_multicast(struct rdma_cm_id *rdma_id, struct sockaddr *addr)
{
	struct cm_id *id = to_cm_id(rdma_id);
	struct ucma_abi_destroy_id cmd = {0};
	struct ucma_abi_destroy_id_resp resp = {0};
	size_t len = cm_addr_len(addr);
	struct cm_multicast *group;
	int ret;

	if (!len)
		return cm_return(-EINVAL);
	group = take(id, NULL, addr, len);
	if (!group)
		return cm_return(-EADDRNOTAVAIL);
	if (group->attached && rdma_id->qp)
		ibv_detach_mcast(rdma_id->qp, &group->mgid, group->mlid);
	group->attached = false;

	cmd.id = group->handle;
	ret = CM_COMMAND_RESP(rdma_id->channel->fd, UCMA_CMD_LEAVE_MCAST, &cmd, &resp);
	if (ret) {
		/* The kernel still has it: its events may come. */
		add(id, group);
		return cm_return(ret);
	}
	cm_forget_event(id);
	await(id, group, resp.events_reported);
	free(group);
	return 0;
}
