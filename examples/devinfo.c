// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* ibv_devinfo: prints the attributes of devices and ports. Scripts parse these lines, so names,
 * tabs and number formats must not change. */

#include <config.h>

#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/driver.h>

#include "pingpong.h"
#include "tool.h"

/* Returns the text for VALUE, or OTHER. */
static const char *word(const char *const *words, unsigned int n, unsigned int value,
			const char *other)
{
	return value < n && words[value] ? words[value] : other;
}

#define WORD(words, value, other) word(words, sizeof(words) / sizeof *(words), value, other)

static const char *transport_str(enum ibv_transport_type type)
{
	static const char *const words[] = {"InfiniBand", "iWARP"};

	return WORD(words, type, "invalid transport");
}

static const char *port_state_str(enum ibv_port_state state)
{
	static const char *const words[] = {[IBV_PORT_DOWN] = "PORT_DOWN",
					    [IBV_PORT_INIT] = "PORT_INIT",
					    [IBV_PORT_ARMED] = "PORT_ARMED",
					    [IBV_PORT_ACTIVE] = "PORT_ACTIVE"};

	return WORD(words, state, "invalid state");
}

static const char *phys_state_str(uint8_t state)
{
	/* Scripts expect the misspelling. */
	static const char *const words[] = {NULL,
					    "SLEEP",
					    "POLLING",
					    "DISABLED",
					    "PORT_CONFIGURATION TRAINNING",
					    "LINK_UP",
					    "LINK_ERROR_RECOVERY",
					    "PHY TEST"};

	return WORD(words, state, "invalid physical state");
}

static const char *atomic_cap_str(enum ibv_atomic_cap cap)
{
	static const char *const words[] = {"ATOMIC_NONE", "ATOMIC_HCA", "ATOMIC_GLOB"};

	return WORD(words, cap, "invalid atomic capability");
}

static const char *mtu_str(enum ibv_mtu mtu)
{
	static const char *const words[] = {NULL, "256", "512", "1024", "2048", "4096"};

	return WORD(words, mtu, "invalid MTU");
}

static const char *width_str(uint8_t width)
{
	static const char *const words[] = {[1] = "1", [2] = "4", [4] = "8", [8] = "12"};

	return WORD(words, width, "invalid width");
}

static const char *speed_str(uint8_t speed)
{
	static const char *const words[] = {
		[1] = "2.5 Gbps",  [2] = "5.0 Gbps",   [4] = "10.0 Gbps",
		[8] = "10.0 Gbps", [16] = "14.0 Gbps", [32] = "25.0 Gbps"};

	return WORD(words, speed, "invalid speed");
}

static const char *vl_str(uint8_t vl_num)
{
	static const char *const words[] = {NULL, "1", "2", "4", "8", "15"};

	return WORD(words, vl_num, "invalid value");
}

static const char *link_layer_str(uint8_t link_layer)
{
	static const char *const words[] = {"InfiniBand", "InfiniBand", "Ethernet"};

	/* A library or kernel that is older than the field knows only InfiniBand. */
	return WORD(words, link_layer, "Unknown");
}

static void print_guid(const char *label, uint64_t guid)
{
	guid = be64toh(guid);
	printf("\t%s%04x:%04x:%04x:%04x\n", label, (unsigned int)(guid >> 48) & 0xffff,
	       (unsigned int)(guid >> 32) & 0xffff, (unsigned int)(guid >> 16) & 0xffff,
	       (unsigned int)guid & 0xffff);
}

static void print_cap_flags(int flags)
{
	static const struct {
		int flag;
		const char *name;
	} names[] = {
		{IBV_DEVICE_RESIZE_MAX_WR, "RESIZE_MAX_WR"},
		{IBV_DEVICE_BAD_PKEY_CNTR, "BAD_PKEY_CNTR"},
		{IBV_DEVICE_BAD_QKEY_CNTR, "BAD_QKEY_CNTR"},
		{IBV_DEVICE_RAW_MULTI, "RAW_MULTI"},
		{IBV_DEVICE_AUTO_PATH_MIG, "AUTO_PATH_MIG"},
		{IBV_DEVICE_CHANGE_PHY_PORT, "CHANGE_PHY_PORT"},
		{IBV_DEVICE_UD_AV_PORT_ENFORCE, "UD_AV_PORT_ENFORCE"},
		{IBV_DEVICE_CURR_QP_STATE_MOD, "CURR_QP_STATE_MOD"},
		{IBV_DEVICE_SHUTDOWN_PORT, "SHUTDOWN_PORT"},
		{IBV_DEVICE_INIT_TYPE, "INIT_TYPE"},
		{IBV_DEVICE_PORT_ACTIVE_EVENT, "PORT_ACTIVE_EVENT"},
		{IBV_DEVICE_SYS_IMAGE_GUID, "SYS_IMAGE_GUID"},
		{IBV_DEVICE_RC_RNR_NAK_GEN, "RC_RNR_NAK_GEN"},
		{IBV_DEVICE_SRQ_RESIZE, "SRQ_RESIZE"},
		{IBV_DEVICE_N_NOTIFY_CQ, "N_NOTIFY_CQ"},
		{IBV_DEVICE_XRC, "XRC"},
	};
	unsigned int unknown = flags;

	printf("\tdevice_cap_flags:\t\t0x%08x\n", flags);
	for (unsigned int i = 0; i < sizeof names / sizeof *names; i++) {
		if (flags & names[i].flag)
			printf("\t\t\t\t\t%s\n", names[i].name);
		unknown &= ~names[i].flag;
	}
	if (unknown)
		printf("\t\t\t\t\tUnknown flags: 0x%X\n", unknown);
}

static void print_limits(const struct ibv_context *context, const struct ibv_device_attr *attr)
{
	printf("\tmax_mr_size:\t\t\t0x%llx\n", (unsigned long long)attr->max_mr_size);
	printf("\tpage_size_cap:\t\t\t0x%llx\n", (unsigned long long)attr->page_size_cap);
	printf("\tmax_qp:\t\t\t\t%d\n", attr->max_qp);
	printf("\tmax_qp_wr:\t\t\t%d\n", attr->max_qp_wr);
	print_cap_flags(attr->device_cap_flags);
	printf("\tmax_sge:\t\t\t%d\n", attr->max_sge);
	printf("\tmax_sge_rd:\t\t\t%d\n", attr->max_sge_rd);
	printf("\tmax_cq:\t\t\t\t%d\n", attr->max_cq);
	printf("\tmax_cqe:\t\t\t%d\n", attr->max_cqe);
	printf("\tmax_mr:\t\t\t\t%d\n", attr->max_mr);
	printf("\tmax_pd:\t\t\t\t%d\n", attr->max_pd);
	printf("\tmax_qp_rd_atom:\t\t\t%d\n", attr->max_qp_rd_atom);
	printf("\tmax_ee_rd_atom:\t\t\t%d\n", attr->max_ee_rd_atom);
	printf("\tmax_res_rd_atom:\t\t%d\n", attr->max_res_rd_atom);
	printf("\tmax_qp_init_rd_atom:\t\t%d\n", attr->max_qp_init_rd_atom);
	printf("\tmax_ee_init_rd_atom:\t\t%d\n", attr->max_ee_init_rd_atom);
	printf("\tatomic_cap:\t\t\t%s (%d)\n", atomic_cap_str(attr->atomic_cap), attr->atomic_cap);
	printf("\tmax_ee:\t\t\t\t%d\n", attr->max_ee);
	printf("\tmax_rdd:\t\t\t%d\n", attr->max_rdd);
	printf("\tmax_mw:\t\t\t\t%d\n", attr->max_mw);
	printf("\tmax_raw_ipv6_qp:\t\t%d\n", attr->max_raw_ipv6_qp);
	printf("\tmax_raw_ethy_qp:\t\t%d\n", attr->max_raw_ethy_qp);
	printf("\tmax_mcast_grp:\t\t\t%d\n", attr->max_mcast_grp);
	printf("\tmax_mcast_qp_attach:\t\t%d\n", attr->max_mcast_qp_attach);
	printf("\tmax_total_mcast_qp_attach:\t%d\n", attr->max_total_mcast_qp_attach);
	printf("\tmax_ah:\t\t\t\t%d\n", attr->max_ah);
	printf("\tmax_fmr:\t\t\t%d\n", attr->max_fmr);
	if (attr->max_fmr)
		printf("\tmax_map_per_fmr:\t\t%d\n", attr->max_map_per_fmr);
	printf("\tmax_srq:\t\t\t%d\n", attr->max_srq);
	if (attr->max_srq) {
		printf("\tmax_srq_wr:\t\t\t%d\n", attr->max_srq_wr);
		printf("\tmax_srq_sge:\t\t\t%d\n", attr->max_srq_sge);
	}
	printf("\tmax_pkeys:\t\t\t%d\n", attr->max_pkeys);
	printf("\tlocal_ca_ack_delay:\t\t%d\n", attr->local_ca_ack_delay);
	printf("\tnum_comp_vectors:\t\t%d\n", context->num_comp_vectors);
}

static int print_gids(struct ibv_context *context, int port, int length)
{
	static const uint8_t no_interface[8];

	for (int i = 0; i < length; i++) {
		union ibv_gid gid;
		const uint8_t *raw = gid.raw;

		errno = 0;
		if (ibv_query_gid(context, port, i, &gid))
			return pp_fail(
				errno,
				"/sys/class/infiniband/<device>/ports/<port>/gids holds the table.",
				"Failed to query gid to port %d, index %d", port, i);
		if (!memcmp(raw + 8, no_interface, sizeof no_interface))
			continue;
		printf("\t\t\tGID[%3d]:\t\t", i);
		for (int k = 0; k < 16; k += 2)
			printf("%s%02x%02x", k ? ":" : "", raw[k], raw[k + 1]);
		putchar('\n');
	}
	return 0;
}

static int print_port(struct ibv_context *context, int port, bool verbose)
{
	struct ibv_port_attr attr;
	int err = ibv_query_port(context, port, &attr);

	if (err)
		return pp_fail(err, NULL, "Failed to query port %d props", port);
	printf("\t\tport:\t%d\n", port);
	printf("\t\t\tstate:\t\t\t%s (%d)\n", port_state_str(attr.state), attr.state);
	printf("\t\t\tmax_mtu:\t\t%s (%d)\n", mtu_str(attr.max_mtu), attr.max_mtu);
	printf("\t\t\tactive_mtu:\t\t%s (%d)\n", mtu_str(attr.active_mtu), attr.active_mtu);
	printf("\t\t\tsm_lid:\t\t\t%d\n", attr.sm_lid);
	printf("\t\t\tport_lid:\t\t%d\n", attr.lid);
	printf("\t\t\tport_lmc:\t\t0x%02x\n", attr.lmc);
	printf("\t\t\tlink_layer:\t\t%s\n", link_layer_str(attr.link_layer));
	if (!verbose)
		return 0;
	printf("\t\t\tmax_msg_sz:\t\t0x%x\n", attr.max_msg_sz);
	printf("\t\t\tport_cap_flags:\t\t0x%08x\n", attr.port_cap_flags);
	printf("\t\t\tmax_vl_num:\t\t%s (%d)\n", vl_str(attr.max_vl_num), attr.max_vl_num);
	printf("\t\t\tbad_pkey_cntr:\t\t0x%x\n", attr.bad_pkey_cntr);
	printf("\t\t\tqkey_viol_cntr:\t\t0x%x\n", attr.qkey_viol_cntr);
	printf("\t\t\tsm_sl:\t\t\t%d\n", attr.sm_sl);
	printf("\t\t\tpkey_tbl_len:\t\t%d\n", attr.pkey_tbl_len);
	printf("\t\t\tgid_tbl_len:\t\t%d\n", attr.gid_tbl_len);
	printf("\t\t\tsubnet_timeout:\t\t%d\n", attr.subnet_timeout);
	printf("\t\t\tinit_type_reply:\t%d\n", attr.init_type_reply);
	printf("\t\t\tactive_width:\t\t%sX (%d)\n", width_str(attr.active_width),
	       attr.active_width);
	printf("\t\t\tactive_speed:\t\t%s (%d)\n", speed_str(attr.active_speed), attr.active_speed);
	if (attr.phys_state)
		printf("\t\t\tphys_state:\t\t%s (%d)\n", phys_state_str(attr.phys_state),
		       attr.phys_state);
	return print_gids(context, port, attr.gid_tbl_len);
}

static void print_board(const struct ibv_context *context)
{
	char board[256];
	int n = ibv_read_sysfs_file(context->device->ibdev_path, "board_id", board,
				    sizeof board - 1);

	if (n <= 0)
		return;
	board[n] = '\0';
	printf("\tboard_id:\t\t\t%s\n", board);
}

/* PORT 0 means all ports. */
static int print_context(struct ibv_context *context, int port, bool verbose)
{
	const struct ibv_device *device = context->device;
	struct ibv_device_attr attr;
	int err = ibv_query_device(context, &attr);

	if (err)
		return pp_fail(err, NULL, "Failed to query device props of %s", device->name);
	if (port > attr.phys_port_cnt)
		return pp_fail(0, NULL,
			       "Invalid port requested for device %s: it has ports 1 to %d, not %d",
			       device->name, attr.phys_port_cnt, port);
	printf("hca_id:\t%s\n", device->name);
	printf("\ttransport:\t\t\t%s (%d)\n", transport_str(device->transport_type),
	       device->transport_type);
	if (attr.fw_ver[0])
		printf("\tfw_ver:\t\t\t\t%.*s\n", (int)sizeof attr.fw_ver, attr.fw_ver);
	print_guid("node_guid:\t\t\t", attr.node_guid);
	print_guid("sys_image_guid:\t\t\t", attr.sys_image_guid);
	printf("\tvendor_id:\t\t\t0x%04x\n", attr.vendor_id);
	printf("\tvendor_part_id:\t\t\t%d\n", attr.vendor_part_id);
	printf("\thw_ver:\t\t\t\t0x%X\n", attr.hw_ver);
	print_board(context);
	printf("\tphys_port_cnt:\t\t\t%d\n", attr.phys_port_cnt);
	if (verbose)
		print_limits(context, &attr);
	for (int p = port ? port : 1; p <= (port ? port : attr.phys_port_cnt); p++) {
		int ret = print_port(context, p, verbose);

		if (ret)
			return ret;
	}
	putchar('\n');
	return 0;
}

static int print_device(struct ibv_device *device, int port, bool verbose)
{
	struct ibv_context *context;
	int ret, err;

	errno = 0;
	context = ibv_open_device(device);
	if (!context)
		return pp_fail(errno, pp_open_advice(errno), "Failed to open device %s",
			       ibv_get_device_name(device));
	ret = print_context(context, port, verbose);
	err = ibv_close_device(context);
	if (err)
		ret |= pp_fail(err, NULL, "Failed to close device %s", ibv_get_device_name(device));
	return ret;
}

static void print_names(struct ibv_device **list, int n)
{
	printf("%d HCA%s found:\n", n, n == 1 ? "" : "s");
	for (int i = 0; i < n; i++)
		printf("\t%s\n", ibv_get_device_name(list[i]));
	putchar('\n');
}

static int print_devices(struct ibv_device **list, const char *name, int port, bool verbose)
{
	bool found = false;
	int ret = 0;

	for (int i = 0; list[i]; i++) {
		if (name && strcmp(name, ibv_get_device_name(list[i])))
			continue;
		found = true;
		ret |= print_device(list[i], port, verbose);
	}
	if (!found && name)
		return pp_fail(0, "ibv_devices lists the devices there are.",
			       "IB device '%s' wasn't found", name);
	if (!found)
		return pp_fail(0, pp_none_advice(), "No IB devices found");
	return ret;
}

static int port_number(const char *prog, const char *text)
{
	char *end;
	long port = strtol(text, &end, 0);

	if (end == text || *end || port < 1 || port > 255) {
		fprintf(stderr, "%s: --ib-port takes a number from 1 to 255, not '%s'\n", prog,
			text);
		exit(1);
	}
	return port;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"ib-dev", required_argument, NULL, 'd'},
						{"ib-port", required_argument, NULL, 'i'},
						{"list", no_argument, NULL, 'l'},
						{"verbose", no_argument, NULL, 'v'},
						{}};
	static const char *const help[] = {"use IB device <dev> (default all devices)",
					   "use port <port> of IB device (default all ports)",
					   "print only the IB devices names",
					   "print all the attributes of the IB device(s)"};
	static const struct tool tool = {"print the ca attributes", options, help};
	bool verbose = false, names = false;
	const char *name = NULL;
	struct ibv_device **list;
	int c, n, port = 0, ret = 0;

	while ((c = tool_option(argc, argv, &tool)) != -1) {
		switch (c) {
		case 'd':
			name = optarg;
			break;
		case 'i':
			port = port_number(tool_name(argv[0]), optarg);
			break;
		case 'l':
			names = true;
			break;
		case 'v':
			verbose = true;
			break;
		}
	}
	list = tool_devices(&n);
	if (!list)
		return 1;
	if (names)
		print_names(list, n);
	else
		ret = print_devices(list, name, port, verbose);
	ibv_free_device_list(list);
	return ret ? 1 : 0;
}
