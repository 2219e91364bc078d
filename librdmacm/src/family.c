// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Which commands the kernel has. Where those that came with AF_IB exist, they serve all families of
 * addresses. If an id of RDMA_PS_IB can be bound to any GID, they exist. The library asks once, on
 * a channel of its own. The thread that asks holds the lock, and cannot be cancelled meanwhile.
 */

#include <endian.h>
#include <string.h>

#include "cm.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const struct cm_family *family;

static bool probe(int fd)
{
	struct ucma_abi_create_id create = {.ps = RDMA_PS_IB, .qp_type = IBV_QPT_RC};
	struct ucma_abi_create_id_resp id = {0};
	struct ucma_abi_bind bind = {.addr_size = sizeof(struct sockaddr_ib)};
	struct ucma_abi_destroy_id destroy = {0};
	struct ucma_abi_destroy_id_resp destroyed;
	struct sockaddr_ib any = {
		.sib_family = AF_IB,
		.sib_sid = htobe64(RDMA_IB_IP_PS_TCP),
		.sib_sid_mask = htobe64(RDMA_IB_IP_PS_MASK),
	};
	int ret;

	if (CM_COMMAND_RESP(fd, UCMA_CMD_CREATE_ID, &create, &id))
		return false;
	bind.id = id.id;
	memcpy(&bind.addr, &any, sizeof(any));
	ret = CM_COMMAND(fd, UCMA_CMD_BIND, &bind);

	destroy.id = id.id;
	CM_COMMAND_RESP(fd, UCMA_CMD_DESTROY_ID, &destroy, &destroyed);
	return !ret;
}

const struct cm_family *cm_family(void)
{
	const struct cm_family *known = __atomic_load_n(&family, __ATOMIC_ACQUIRE);
	struct rdma_event_channel *channel;
	int state, saved = 0;

	if (known)
		return known;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_mutex_lock(&lock);
	if (!family) {
		channel = rdma_create_event_channel();
		if (channel) {
			__atomic_store_n(&family,
					 probe(channel->fd) ? &cm_family_ib : &cm_family_ip,
					 __ATOMIC_RELEASE);
			rdma_destroy_event_channel(channel);
		} else {
			saved = errno;
		}
	}
	known = family;
	pthread_mutex_unlock(&lock);
	pthread_setcancelstate(state, NULL);
	if (!known)
		errno = saved;
	return known;
}
