// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Address handles, both ways that the kernel has: by number, which its answer gives to a request
 * with room for it; or as a whole address vector in every work request, for a provider that asks
 * without. The address vector needs a MAC: the interface's own, or a group's. So peers on other
 * hosts, whose MACs the kernel finds out, have numbers.
 */

#include <errno.h>
#include <net/ethernet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rxe.h"

struct create_ah_resp {
	struct ibv_create_ah_resp core;
	struct rxe_create_ah_resp rxe;
};

_Static_assert(sizeof(struct ibv_create_ah) == 64, "CREATE_AH");
_Static_assert(offsetof(struct create_ah_resp, rxe) == 4, "driver answer of CREATE_AH");
_Static_assert(sizeof(struct create_ah_resp) == 12, "answer of CREATE_AH");

static bool is_ipv4(const union ibv_gid *gid)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	return !memcmp(gid->raw, mapped, sizeof(mapped));
}

/* The address of the interface that the device is on. 0 or -errno. */
static int interface_mac(const struct ibv_device *device, uint8_t *mac)
{
	char name[IBV_SYSFS_NAME_MAX], dir[IBV_SYSFS_PATH_MAX + sizeof(name)], text[32];

	if (ibv_read_sysfs_file(device->ibdev_path, "parent", name, sizeof(name)) < 0)
		return -errno;
	snprintf(dir, sizeof(dir), "%s/class/net/%s", ibv_get_sysfs_path(), name);
	if (ibv_read_sysfs_file(dir, "address", text, sizeof(text)) < 0)
		return -errno;
	if (sscanf(text, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", mac, mac + 1, mac + 2, mac + 3, mac + 4,
		   mac + 5) != ETH_ALEN)
		return -EPROTO;

	return 0;
}

/* 0 or -errno. */
static int resolve_mac(const struct ibv_device *device, const union ibv_gid *dgid, uint8_t *mac)
{
	if (is_ipv4(dgid) && dgid->raw[12] >> 4 == 0xe) {
		memcpy(mac, (const uint8_t[]){0x01, 0x00, 0x5e, dgid->raw[13] & 0x7f}, 4);
		memcpy(mac + 4, dgid->raw + 14, 2);
		return 0;
	}
	if (dgid->raw[0] == 0xff) {
		mac[0] = mac[1] = 0x33;
		memcpy(mac + 2, dgid->raw + 12, 4);
		return 0;
	}

	return interface_mac(device, mac);
}

static void fill_ipv4(struct sockaddr_in *addr, const union ibv_gid *gid)
{
	addr->sin_family = AF_INET;
	memcpy(&addr->sin_addr, gid->raw + 12, sizeof(addr->sin_addr));
}

static void fill_ipv6(struct sockaddr_in6 *addr, const union ibv_gid *gid)
{
	addr->sin6_family = AF_INET6;
	memcpy(&addr->sin6_addr, gid->raw, sizeof(addr->sin6_addr));
}

/* 0 or -errno. */
static int fill_av(struct ibv_context *context, struct rxe_av *av, const struct ibv_ah_attr *attr)
{
	union ibv_gid sgid;

	if (ibv_query_gid(context, attr->port_num, attr->grh.sgid_index, &sgid))
		return -EINVAL;

	av->port_num = attr->port_num;
	memcpy(&av->grh.dgid, &attr->grh.dgid, sizeof(av->grh.dgid));
	av->grh.flow_label = attr->grh.flow_label;
	av->grh.sgid_index = attr->grh.sgid_index;
	av->grh.hop_limit = attr->grh.hop_limit;
	av->grh.traffic_class = attr->grh.traffic_class;

	if (is_ipv4(&attr->grh.dgid)) {
		av->network_type = RXE_NETWORK_TYPE_IPV4;
		fill_ipv4(&av->sgid_addr._sockaddr_in, &sgid);
		fill_ipv4(&av->dgid_addr._sockaddr_in, &attr->grh.dgid);
	} else {
		av->network_type = RXE_NETWORK_TYPE_IPV6;
		fill_ipv6(&av->sgid_addr._sockaddr_in6, &sgid);
		fill_ipv6(&av->dgid_addr._sockaddr_in6, &attr->grh.dgid);
	}

	return resolve_mac(context->device, &attr->grh.dgid, av->dmac);
}

/*
 * CREATE_AH with room for the driver's answer, which ibv_cmd_create_ah() has no way to give. 0 or
 * -errno.
 */
static int create_numbered_ah(struct ibv_pd *pd, struct rxe_ah *ah, const struct ibv_ah_attr *attr)
{
	struct create_ah_resp resp = {0};
	struct ibv_create_ah cmd = {
		.command = IB_USER_VERBS_CMD_CREATE_AH,
		.in_words = sizeof(cmd) / 4,
		.out_words = sizeof(resp) / 4,
		.response = (uintptr_t)&resp,
		.user_handle = (uintptr_t)ah,
		.pd_handle = pd->handle,
		.attr =
			{
				.grh =
					{
						.flow_label = attr->grh.flow_label,
						.sgid_index = attr->grh.sgid_index,
						.hop_limit = attr->grh.hop_limit,
						.traffic_class = attr->grh.traffic_class,
					},
				.dlid = attr->dlid,
				.sl = attr->sl,
				.src_path_bits = attr->src_path_bits,
				.static_rate = attr->static_rate,
				.is_global = attr->is_global,
				.port_num = attr->port_num,
			},
	};

	memcpy(cmd.attr.grh.dgid, attr->grh.dgid.raw, sizeof(cmd.attr.grh.dgid));
	if (write(pd->context->cmd_fd, &cmd, sizeof(cmd)) != sizeof(cmd))
		return -errno;

	ah->ibv.handle = resp.core.handle;
	ah->number = resp.rxe.ah_num;
	return 0;
}

/* Not this port, nor a group. */
static bool is_elsewhere(struct ibv_context *context, const struct ibv_ah_attr *attr)
{
	const union ibv_gid *dgid = &attr->grh.dgid;
	union ibv_gid sgid;

	return dgid->raw[0] != 0xff && !(is_ipv4(dgid) && dgid->raw[12] >> 4 == 0xe) &&
	       !ibv_query_gid(context, attr->port_num, attr->grh.sgid_index, &sgid) &&
	       memcmp(&sgid, dgid, sizeof(sgid));
}

struct ibv_ah *rxe_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct rxe_ah *ah;
	int ret;

	ah = calloc(1, sizeof(*ah));
	if (!ah)
		return NULL;

	if (to_rxe_context(pd->context)->ah_numbers || is_elsewhere(pd->context, attr)) {
		ret = -create_numbered_ah(pd, ah, attr);
	} else {
		ret = -fill_av(pd->context, &ah->av, attr);
		if (!ret)
			ret = ibv_cmd_create_ah(pd, &ah->ibv, attr);
	}
	if (ret) {
		free(ah);
		errno = ret;
		return NULL;
	}

	return &ah->ibv;
}

int rxe_destroy_ah(struct ibv_ah *ah)
{
	int ret = ibv_cmd_destroy_ah(ah);

	if (!ret)
		free(to_rxe_ah(ah));
	return ret;
}
