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

static struct cm_multicast **find(struct cm_id *id, const struct sockaddr *addr, size_t len)
{
	struct cm_multicast **at;

	for (at = &id->groups; *at; at = &(*at)->next)
		if ((*at)->addr_len == len && !memcmp(&(*at)->addr, addr, len))
			break;
	return at;
}

/*
 * Takes the group of an address off the list. Waits for a group that is being joined: its event may
 * be here before the command has said which number it has, or that it failed.
 */
static struct cm_multicast *take(struct cm_id *id, const struct sockaddr *addr, size_t len)
{
	struct cm_multicast **at, *found;

	pthread_mutex_lock(&id->mutex);
	for (;;) {
		at = find(id, addr, len);
		found = *at;
		if (!found || !found->joining)
			break;
		pthread_cond_wait(&id->cond, &id->mutex);
	}
	if (found)
		*at = found->next;
	pthread_mutex_unlock(&id->mutex);
	return found;
}

/* The command has returned. A group that was not joined leaves the list. */
static void joined(struct cm_id *id, struct cm_multicast *group, bool is)
{
	struct cm_multicast **at;

	pthread_mutex_lock(&id->mutex);
	group->joining = false;
	for (at = &id->groups; !is && *at; at = &(*at)->next)
		if (*at == group) {
			*at = group->next;
			break;
		}
	pthread_cond_broadcast(&id->cond);
	pthread_mutex_unlock(&id->mutex);
}

static void free_list(struct cm_multicast **list)
{
	struct cm_multicast *group, *next;

	for (group = *list; group; group = next) {
		next = group->next;
		free(group);
	}
	*list = NULL;
}

void cm_multicast_free_all(struct cm_id *id)
{
	free_list(&id->groups);
	free_list(&id->left_groups);
}

PUBLIC int rdma_join_multicast(struct rdma_cm_id *rdma_id, struct sockaddr *addr, void *context)
{
	struct cm_id *id = to_cm_id(rdma_id);
	size_t len = cm_addr_len(addr);
	struct cm_multicast *group;
	int ret, state;

	if (!len)
		return cm_return(-EINVAL);
	group = calloc(1, sizeof(*group));
	if (!group)
		return cm_return(-ENOMEM);
	group->id = id;
	group->context = context;
	memcpy(&group->addr, addr, len);
	group->addr_len = len;
	group->joining = true;

	cm_forget_event(id);
	/* First the list: the event may come before the command has returned. */
	state = cm_hold_cancel();
	add(id, group);
	ret = cm_family()->join(id, addr, len, (uintptr_t)group, &group->handle);
	joined(id, group, !ret);
	cm_let_cancel(state);
	if (ret) {
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
	pthread_mutex_lock(&group->id->mutex);
	group->attached = !ret;
	pthread_mutex_unlock(&group->id->mutex);
	return -ret;
}

static void detach(struct cm_id *id, struct cm_multicast *group)
{
	bool attached;

	pthread_mutex_lock(&id->mutex);
	attached = group->attached;
	group->attached = false;
	pthread_mutex_unlock(&id->mutex);
	if (attached && id->id.qp)
		ibv_detach_mcast(id->id.qp, &group->mgid, group->mlid);
}

struct leaving {
	struct cm_id *id;
	struct cm_multicast *group;
};

/* The thread that read the event may have attached the QP after the group was taken. */
static void stop_waiting(void *arg)
{
	const struct leaving *leaving = arg;
	int state = cm_hold_cancel();

	pthread_mutex_unlock(&leaving->id->mutex);
	detach(leaving->id, leaving->group);
	cm_let_cancel(state);
}

/* The thread has been cancelled: events of the group that were read point to it. */
static void leave_behind(void *arg)
{
	const struct leaving *leaving = arg;
	struct cm_multicast *group = leaving->group;

	pthread_mutex_lock(&leaving->id->mutex);
	group->next = leaving->id->left_groups;
	leaving->id->left_groups = group;
	pthread_mutex_unlock(&leaving->id->mutex);
}

static void await(struct cm_id *id, struct cm_multicast *group, uint32_t reported)
{
	struct leaving leaving = {id, group};

	pthread_cleanup_push(leave_behind, &leaving);
	pthread_mutex_lock(&id->mutex);
	pthread_cleanup_push(stop_waiting, &leaving);
	while (group->events_completed < reported)
		pthread_cond_wait(&id->cond, &id->mutex);
	pthread_cleanup_pop(1);
	pthread_cleanup_pop(0);
}

/* A thread that is cancelled has left the group, or has not: it is never half left. */
static int leave(struct cm_id *id, struct cm_multicast *group, uint32_t *reported)
{
	struct ucma_abi_destroy_id cmd = {.id = group->handle};
	struct ucma_abi_destroy_id_resp resp = {0};
	int ret;

	detach(id, group);
	ret = CM_COMMAND_RESP(cm_fd(id), UCMA_CMD_LEAVE_MCAST, &cmd, &resp);
	/* The kernel still has it: its events may come. */
	if (ret)
		add(id, group);
	*reported = resp.events_reported;
	return ret;
}

PUBLIC int rdma_leave_multicast(struct rdma_cm_id *rdma_id, struct sockaddr *addr)
{
	struct cm_id *id = to_cm_id(rdma_id);
	size_t len = cm_addr_len(addr);
	struct cm_multicast *group;
	uint32_t reported = 0;
	int ret, state;

	if (!len)
		return cm_return(-EINVAL);
	state = cm_hold_cancel();
	group = take(id, addr, len);
	ret = group ? leave(id, group, &reported) : -EADDRNOTAVAIL;
	cm_let_cancel(state);
	if (ret)
		return cm_return(ret);
	cm_forget_event(id);
	await(id, group, reported);
	free(group);
	return 0;
}
