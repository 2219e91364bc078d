// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Description: the device, its port and its tables are what the kernel's sysfs files say. */

#include <arpa/inet.h>

#include "guest.h"

/* A line of a file below the device in sysfs. */
static void read_sysfs(const char *file, char *text, size_t size)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/infiniband/" DEVICE "/%s", file);
	CHECK(f = fopen(path, "r"));
	CHECK(fgets(text, size, f));
	fclose(f);
	text[strcspn(text, "\n")] = 0;
}

static void list_names_the_device(void)
{
	struct ibv_device **list;
	char guid[32], ours[32];
	uint16_t part[4];
	uint64_t raw;
	int n;

	list = ibv_get_device_list(&n);
	CHECK(list);
	CHECK_EQ(n, 1);
	CHECK(!list[1]);
	CHECK(!strcmp(ibv_get_device_name(list[0]), DEVICE));
	CHECK(!strcmp(list[0]->dev_name, "uverbs0"));
	CHECK_EQ(list[0]->node_type, IBV_NODE_CA);
	CHECK_EQ(list[0]->transport_type, IBV_TRANSPORT_IB);

	raw = ibv_get_device_guid(list[0]);
	memcpy(part, &raw, sizeof(part));
	snprintf(ours, sizeof(ours), "%04x:%04x:%04x:%04x", ntohs(part[0]), ntohs(part[1]),
		 ntohs(part[2]), ntohs(part[3]));
	read_sysfs("node_guid", guid, sizeof(guid));
	CHECK(!strcmp(guid, ours));
	ibv_free_device_list(list);
}

static void contexts_are_independent(void)
{
	struct ibv_context *a = open_device(), *b = open_device();
	struct ibv_pd *pd;

	CHECK(a != b);
	CHECK(a->cmd_fd != b->cmd_fd);
	CHECK(a->async_fd >= 0 && b->async_fd >= 0 && a->async_fd != b->async_fd);
	CHECK(a->num_comp_vectors >= 1);
	CHECK_EQ(ibv_close_device(a), 0);
	CHECK(pd = ibv_alloc_pd(b));
	CHECK_EQ(ibv_dealloc_pd(pd), 0);
	CHECK_EQ(ibv_close_device(b), 0);
}

static void query_device(void)
{
	struct ibv_context *context = open_device();
	struct ibv_device_attr attr;

	memset(&attr, 0xa5, sizeof(attr));
	CHECK_EQ(ibv_query_device(context, &attr), 0);
	CHECK(memchr(attr.fw_ver, 0, sizeof(attr.fw_ver)));
	CHECK(attr.node_guid == ibv_get_device_guid(context->device));
	CHECK_EQ(attr.phys_port_cnt, 1);
	CHECK_EQ(attr.max_pkeys, 64);
	CHECK(attr.max_mr_size > 1 << 20);
	CHECK(attr.page_size_cap & 4096);
	CHECK(attr.max_qp > 100 && attr.max_qp < 1 << 24);
	CHECK(attr.max_qp_wr >= 1024 && attr.max_qp_wr < 1 << 24);
	CHECK(attr.max_sge >= 4 && attr.max_sge < 1024);
	CHECK(attr.max_cqe >= 1024 && attr.max_cqe < 1 << 24);
	CHECK(attr.max_srq > 0 && attr.max_srq_wr >= 1024 && attr.max_srq_sge >= 4);
	CHECK(attr.max_mcast_grp > 0 && attr.max_mcast_qp_attach > 0 && attr.max_ah > 0);
	CHECK_EQ(attr.atomic_cap, IBV_ATOMIC_HCA);
	CHECK(attr.device_cap_flags & IBV_DEVICE_SRQ_RESIZE);
	CHECK(!(attr.device_cap_flags & IBV_DEVICE_XRC));
	CHECK_EQ(ibv_close_device(context), 0);
}

static void query_port(void)
{
	struct ibv_context *context = open_device();
	struct ibv_port_attr attr;
	char state[32];

	memset(&attr, 0xa5, sizeof(attr));
	CHECK_EQ(ibv_query_port(context, 1, &attr), 0);
	read_sysfs("ports/1/state", state, sizeof(state));
	CHECK_EQ(attr.state, atoi(state));
	CHECK_EQ(attr.state, IBV_PORT_ACTIVE);
	CHECK_EQ(attr.link_layer, IBV_LINK_LAYER_ETHERNET);
	CHECK_EQ(attr.max_mtu, IBV_MTU_4096);
	CHECK_EQ(attr.active_mtu, IBV_MTU_1024);
	CHECK(attr.gid_tbl_len >= 2);
	CHECK(attr.pkey_tbl_len >= 1);
	CHECK(attr.max_msg_sz >= 1 << 20);
	CHECK_EQ(attr.lid, 0);
	CHECK_EQ(attr.sm_lid, 0);

	CHECK_EQ(ibv_query_port(context, 0, &attr), EINVAL);
	CHECK_EQ(ibv_query_port(context, 2, &attr), EINVAL);
	CHECK_EQ(ibv_close_device(context), 0);
}

static void gid_table(void)
{
	struct ibv_context *context = open_device();
	char file[64], text[64], address[INET_ADDRSTRLEN];
	struct ibv_port_attr port;
	union ibv_gid gid, parsed;
	int index;

	CHECK_EQ(ibv_query_port(context, 1, &port), 0);

	index = find_gid(context, true, &gid);
	CHECK(inet_ntop(AF_INET, gid.raw + 12, address, sizeof(address)));
	CHECK(!strcmp(address, getenv("GUEST_ADDRESS")));
	snprintf(file, sizeof(file), "ports/1/gids/%d", index);
	read_sysfs(file, text, sizeof(text));
	CHECK_EQ(inet_pton(AF_INET6, text, &parsed), 1);
	CHECK(!memcmp(&gid, &parsed, sizeof(gid)));

	find_gid(context, false, &gid);

	CHECK_EQ(ibv_query_gid(context, 1, port.gid_tbl_len, &gid), -1);
	CHECK_EQ(ibv_query_gid(context, 2, 0, &gid), -1);
	CHECK_EQ(ibv_close_device(context), 0);
}

static void pkey_table(void)
{
	struct ibv_context *context = open_device();
	struct ibv_port_attr port;
	uint16_t pkey = 0;

	CHECK_EQ(ibv_query_port(context, 1, &port), 0);
	CHECK_EQ(ibv_query_pkey(context, 1, 0, &pkey), 0);
	CHECK_EQ(pkey, 0xffff);
	CHECK_EQ(ibv_query_pkey(context, 1, port.pkey_tbl_len, &pkey), -1);
	CHECK_EQ(ibv_close_device(context), 0);
}

const struct guest_test device_tests[] = {
	{"the device list has the device, with its GUID", list_names_the_device},
	{"two contexts are independent of each other", contexts_are_independent},
	{"query_device", query_device},
	{"query_port, and ports that do not exist", query_port},
	{"the GID table", gid_table},
	{"the P_Key table", pkey_table},
	{0},
};
