// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: the commands that creating each object sends to the kernel, word by word; address
 * handles; the XRC calls. When the kernel refuses a command, nothing stays behind.
 */
#include <errno.h>
#include <fcntl.h>

#include "fake-kernel.h"

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_xrc_domain *domain;
static struct dev_cq cq;

static uint32_t in_bytes(int command)
{
	return field_get(fk.last[command], 4, 2) * 4;
}

static uint32_t out_bytes(int command)
{
	return field_get(fk.last[command], 6, 2) * 4;
}

static struct ibv_qp_init_attr qp_attr(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq.cq,
		.recv_cq = cq.cq,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = type,
	};

	if (type == IBV_QPT_XRC)
		attr.xrc_domain = domain;
	return attr;
}

static void command_sizes(void **state)
{
	static const struct {
		int command;
		uint32_t in, out;
	} v[] = {
		{IB_USER_VERBS_CMD_ALLOC_PD, 16, 12},
		{IB_USER_VERBS_CMD_CREATE_CQ, 56, 16},
		{IB_USER_VERBS_CMD_RESIZE_CQ, 32, 8},
		{IB_USER_VERBS_CMD_CREATE_SRQ, 56, 24},
		{IB_USER_VERBS_CMD_CREATE_XRC_SRQ, 64, 24},
		{IB_USER_VERBS_CMD_CREATE_QP, 88, 32},
		{IB_USER_VERBS_CMD_OPEN_XRC_DOMAIN, 24, 12},
		{IB_USER_VERBS_CMD_REG_MR, 48, 12},
		{IB_USER_VERBS_CMD_QUERY_DEVICE, 16, sizeof(struct ibv_query_device_resp)},
	};
	struct ibv_qp_init_attr attr = qp_attr(IBV_QPT_XRC);
	struct dev_srq srq, xsrq;
	struct dev_qp qp;
	struct ibv_mr *mr;
	size_t i;

	(void)state;
	dev_create_srq(&srq, pd, NULL, NULL, 1, 1);
	dev_create_srq(&xsrq, pd, domain, cq.cq, 1, 1);
	dev_create_qp(&qp, pd, &attr);
	mr = ibv_reg_mr(pd, &mr, sizeof(mr), IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(mr);
	assert_int_equal(mr->lkey, 0x8100);
	assert_int_equal(mr->rkey, 0x8101);
	assert_int_equal(field_get(fk.last[IB_USER_VERBS_CMD_REG_MR], 16, 8), (uintptr_t)&mr);
	assert_int_equal(field_get(fk.last[IB_USER_VERBS_CMD_REG_MR], 32, 8), (uintptr_t)&mr);
	fk.fail_command = IB_USER_VERBS_CMD_RESIZE_CQ;
	fk.fail_errno = EBUSY;
	assert_int_equal(ibv_resize_cq(cq.cq, 100), EBUSY);

	for (i = 0; i < sizeof(v) / sizeof(v[0]); ++i) {
		assert_int_equal(in_bytes(v[i].command), v[i].in);
		assert_int_equal(fk.last_len[v[i].command], v[i].in);
		assert_int_equal(out_bytes(v[i].command), v[i].out);
	}
	/* The domain's handle is in the SRQ's field. There is no doorbell record. */
	assert_int_equal(field_get(fk.last[IB_USER_VERBS_CMD_CREATE_QP], 36, 4), domain->handle);
	assert_int_equal(field_get(fk.last[IB_USER_VERBS_CMD_CREATE_QP], 62, 1), 0);
	assert_int_equal(field_get(fk.last[IB_USER_VERBS_CMD_CREATE_QP], 72, 8), 0);
	/* The domain and the CQ of the XRC SRQ */
	assert_int_equal(field_get(fk.last[IB_USER_VERBS_CMD_CREATE_XRC_SRQ], 40, 4),
			 domain->handle);
	assert_int_equal(field_get(fk.last[IB_USER_VERBS_CMD_CREATE_XRC_SRQ], 44, 4),
			 cq.cq->handle);

	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_destroy_qp(qp.qp), 0);
	assert_int_equal(ibv_destroy_srq(xsrq.srq), 0);
	assert_int_equal(ibv_destroy_srq(srq.srq), 0);
}

/* Each command that creates an object fails: nothing stays mapped, and errno says why. */
static void refused_creations(void **state)
{
	struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = 1, .max_sge = 1}};
	struct ibv_qp_init_attr rc = qp_attr(IBV_QPT_RC), xrc = qp_attr(IBV_QPT_XRC), before;
	int mapped = fk.mapped, errnum;
	uint32_t qpn;

	(void)state;
#define REFUSED(cmd, call)                                                                         \
	do {                                                                                       \
		for (errnum = 1; errnum < 40; errnum += 11) {                                      \
			fk.fail_command = IB_USER_VERBS_CMD_##cmd;                                 \
			fk.fail_errno = errnum;                                                    \
			errno = 0;                                                                 \
			assert_null(call);                                                         \
			assert_int_equal(errno, errnum);                                           \
			assert_int_equal(fk.mapped, mapped);                                       \
		}                                                                                  \
	} while (0)
	REFUSED(ALLOC_PD, ibv_alloc_pd(ctx));
	REFUSED(REG_MR, ibv_reg_mr(pd, &mapped, 4, 0));
	REFUSED(CREATE_CQ, ibv_create_cq(ctx, 1, NULL, NULL, 0));
	REFUSED(CREATE_SRQ, ibv_create_srq(pd, &srq_attr));
	REFUSED(CREATE_XRC_SRQ, ibv_create_xrc_srq(pd, domain, cq.cq, &srq_attr));
	REFUSED(OPEN_XRC_DOMAIN, ibv_open_xrc_domain(ctx, 5, O_CREAT));
	before = rc;
	REFUSED(CREATE_QP, ibv_create_qp(pd, &rc));
	assert_memory_equal(&rc.cap, &before.cap, sizeof(rc.cap));
	REFUSED(CREATE_QP, ibv_create_qp(pd, &xrc));

	fk.fail_command = IB_USER_VERBS_CMD_CREATE_XRC_RCV_QP;
	fk.fail_errno = EPERM;
	assert_int_equal(ibv_create_xrc_rcv_qp(&xrc, &qpn), EPERM);
}

/*
 * If the kernel refuses to destroy an object, the object keeps all that it needs, and the next try
 * succeeds.
 */
static void refused_destructions(void **state)
{
	struct ibv_qp_init_attr attr = qp_attr(IBV_QPT_RC);
	struct ibv_xrc_domain *d;
	struct ibv_pd *other;
	struct dev_qp qp;
	struct ibv_mr *mr;

	(void)state;
	dev_create_qp(&qp, pd, &attr);
	other = ibv_alloc_pd(ctx);
	mr = ibv_reg_mr(pd, &qp, sizeof(qp), 0);
	d = ibv_open_xrc_domain(ctx, -1, O_CREAT);
	assert_true(other && mr && d);
#define STAYS(cmd, call)                                                                           \
	do {                                                                                       \
		fk.fail_command = IB_USER_VERBS_CMD_##cmd;                                         \
		fk.fail_errno = EBUSY;                                                             \
		assert_int_equal(call, EBUSY);                                                     \
		assert_int_equal(call, 0);                                                         \
	} while (0)
	STAYS(DESTROY_QP, ibv_destroy_qp(qp.qp));
	STAYS(DEALLOC_PD, ibv_dealloc_pd(other));
	STAYS(DEREG_MR, ibv_dereg_mr(mr));
	STAYS(CLOSE_XRC_DOMAIN, ibv_close_xrc_domain(d));
}

static void xrc_calls(void **state)
{
	struct ibv_qp_init_attr init = {.xrc_domain = domain}, queried;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT};
	uint32_t qpn = 0;

	(void)state;
	assert_int_equal(ibv_create_xrc_rcv_qp(&init, &qpn), 0);
	assert_true(qpn & 1 << 23);
	assert_int_equal(field_get(fk.last[IB_USER_VERBS_CMD_CREATE_XRC_RCV_QP], 24, 4),
			 domain->handle);
	assert_int_equal(ibv_modify_xrc_rcv_qp(domain, qpn, &attr, IBV_QP_STATE), 0);
	assert_int_equal(field_get(fk.last[IB_USER_VERBS_CMD_MODIFY_XRC_RCV_QP], 12, 4), qpn);
	assert_int_equal(ibv_reg_xrc_rcv_qp(domain, qpn), 0);
	assert_int_equal(field_get(fk.last[IB_USER_VERBS_CMD_REG_XRC_RCV_QP], 12, 4), qpn);

	memset(&queried, 0xee, sizeof(queried));
	memset(&attr, 0xee, sizeof(attr));
	assert_int_equal(ibv_query_xrc_rcv_qp(domain, qpn, &attr, 0, &queried), 0);
	assert_int_equal(queried.cap.max_send_wr, 1);
	assert_int_equal(queried.cap.max_send_sge, 1);
	assert_int_equal(queried.cap.max_recv_wr, 0);
	assert_int_equal(queried.cap.max_recv_sge, 0);
	assert_int_equal(queried.cap.max_inline_data, 0);
	assert_memory_equal(&attr.cap, &queried.cap, sizeof(attr.cap));
	assert_null(queried.qp_context);
	assert_null(queried.send_cq);
	assert_null(queried.recv_cq);
	assert_null(queried.srq);
	assert_ptr_equal(queried.xrc_domain, domain);
	assert_int_equal(queried.qp_type, IBV_QPT_XRC);

	fk.fail_command = IB_USER_VERBS_CMD_QUERY_XRC_RCV_QP;
	fk.fail_errno = EINVAL;
	memset(&queried, 0xee, sizeof(queried));
	assert_int_equal(ibv_query_xrc_rcv_qp(domain, qpn, &attr, 0, &queried), EINVAL);
	assert_int_equal(queried.cap.max_send_wr, 0xeeeeeeee);

	assert_int_equal(ibv_unreg_xrc_rcv_qp(domain, qpn), 0);
	assert_int_equal(fk.count[IB_USER_VERBS_CMD_UNREG_XRC_RCV_QP], 1);
}

/* Address handles, as they appear in the WQE of a datagram */

static struct dev_qp ud;
static uint32_t posted;

static const uint8_t *datagram_of(struct ibv_ah *ah)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .wr.ud = {ah, 0x123456, 0x87654321}}, *bad;

	assert_int_equal(ibv_post_send(ud.qp, &wr, &bad), 0);
	return dev_sq_slot(&ud, posted++) + 16;
}

static void ah_infiniband(void **state)
{
	struct ibv_ah_attr attr = {.dlid = 0xabcd, .sl = 15, .src_path_bits = 0x7f, .port_num = 1};
	unsigned int asked = fk.count[IB_USER_VERBS_CMD_QUERY_PORT];
	uint8_t expected[48];
	struct ibv_ah *ah;
	int i;

	(void)state;
	for (i = 0; i < 3; ++i) {
		memset(expected, 0, sizeof(expected));
		put_be32(expected, 0, 1 << 24 | 0x1234);
		expected[5] = 0x7f;
		put_be16(expected, 6, 0xabcd);
		put_be32(expected, 12, 15u << 28);
		put_be32(expected, 32, 0x123456);
		put_be32(expected, 36, 0x87654321);
		if (i == 1) {
			attr.static_rate = IBV_RATE_2_5_GBPS;
			expected[10] = 7;
		} else if (i == 2) {
			attr.is_global = 1;
			attr.grh.sgid_index = 9;
			attr.grh.hop_limit = 3;
			attr.grh.traffic_class = 0xff;
			attr.grh.flow_label = 0xffffffff;
			memset(attr.grh.dgid.raw, 0xd9, 16);
			expected[5] = 0xff;
			expected[9] = 9;
			expected[10] = 7;
			expected[11] = 3;
			put_be32(expected, 12, 0xffffffff);
			memset(expected + 16, 0xd9, 16);
		}
		ah = ibv_create_ah(pd, &attr);
		assert_non_null(ah);
		assert_memory_equal(datagram_of(ah), expected, 48);
		assert_int_equal(ibv_destroy_ah(ah), 0);
	}
	/* The provider asks the kernel at most once what kind of port this is. */
	assert_true(fk.count[IB_USER_VERBS_CMD_QUERY_PORT] <= asked + 1);
	assert_int_equal(fk.count[IB_USER_VERBS_CMD_CREATE_AH], 0);

	asked = fk.count[IB_USER_VERBS_CMD_QUERY_PORT];
	attr.port_num = 0;
	errno = 0;
	assert_null(ibv_create_ah(pd, &attr));
	assert_int_equal(errno, EINVAL);
	attr.port_num = 3;
	assert_null(ibv_create_ah(pd, &attr));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(fk.count[IB_USER_VERBS_CMD_QUERY_PORT], asked);
}

static void ah_ethernet(void **state)
{
	static const uint8_t link_local[16] = {0xfe, 0x80, 0,	 0,    0,    0,	   0,	 0,
					       0x02, 0x11, 0x22, 0xff, 0xfe, 0x33, 0x44, 0x55};
	static const uint8_t multicast[16] = {0xff, 0x12, 0, 0, 0,    0,    0,	  0,
					      0,    0,	  0, 0, 0x0a, 0x0b, 0x0c, 0x0d};
	struct ibv_ah_attr attr = {.sl = 5, .port_num = 1, .grh = {.hop_limit = 1}};
	static const uint8_t mac[6] = {0x00, 0x11, 0x22, 0x33, 0x44, 0x55};
	static const uint8_t group[6] = {0x33, 0x33, 0x0a, 0x0b, 0x0c, 0x0d};
	const uint8_t *datagram;
	struct ibv_ah *ah;

	(void)state;
	/* On Ethernet an address must have a GRH. */
	memcpy(attr.grh.dgid.raw, link_local, 16);
	errno = 0;
	assert_null(ibv_create_ah(pd, &attr));
	assert_int_equal(errno, EINVAL);

	attr.is_global = 1;
	memcpy(attr.grh.dgid.raw, link_local, 16);
	ah = ibv_create_ah(pd, &attr);
	assert_non_null(ah);
	datagram = datagram_of(ah);
	assert_int_equal(be32_at(datagram, 0), 1 << 24 | 0x1234);
	assert_int_equal(be16_at(datagram, 40), 0);
	assert_memory_equal(datagram + 42, mac, 6);
	assert_int_equal(be32_at(datagram, 12), 5u << 29);
	assert_int_equal(ibv_destroy_ah(ah), 0);

	/* GID 1 of the port is on a VLAN. */
	attr.grh.sgid_index = 1;
	ah = ibv_create_ah(pd, &attr);
	assert_non_null(ah);
	datagram = datagram_of(ah);
	assert_int_equal(be32_at(datagram, 0), 1 << 29 | 1 << 24 | 0x1234);
	assert_int_equal(be16_at(datagram, 40), 5 << 13 | 0x02a);
	assert_int_equal(ibv_destroy_ah(ah), 0);

	attr.grh.sgid_index = 0;
	memcpy(attr.grh.dgid.raw, multicast, 16);
	ah = ibv_create_ah(pd, &attr);
	assert_non_null(ah);
	datagram = datagram_of(ah);
	assert_int_equal(be32_at(datagram, 0), 1u << 31 | 1 << 24 | 0x1234);
	assert_int_equal(be16_at(datagram, 6), 0xc000);
	assert_memory_equal(datagram + 42, group, 6);
	assert_int_equal(ibv_destroy_ah(ah), 0);

	/* A GID that is neither link-local nor multicast */
	attr.grh.dgid.raw[0] = 0x20;
	errno = 0;
	assert_null(ibv_create_ah(pd, &attr));
	assert_int_equal(errno, EINVAL);
	/* The port has no GID with this index. */
	memcpy(attr.grh.dgid.raw, link_local, 16);
	attr.grh.sgid_index = 77;
	assert_null(ibv_create_ah(pd, &attr));
}

static int setup(void **state)
{
	struct ibv_qp_init_attr attr;
	const char *layer = *state;

	fk_reset();
	if (layer)
		fk.link_layer = atoi(layer);
	ctx = fk_open();
	if (!ctx)
		return -1;
	pd = ibv_alloc_pd(ctx);
	domain = ibv_open_xrc_domain(ctx, -1, O_CREAT);
	dev_create_cq(&cq, ctx, 3);
	attr = qp_attr(IBV_QPT_UD);
	dev_create_qp(&ud, pd, &attr);
	dev_init_qp(&ud);
	posted = 0;
	return !pd || !domain;
}

static int teardown(void **state)
{
	int mapped;

	(void)state;
	if (ibv_destroy_qp(ud.qp) || ibv_destroy_cq(cq.cq) || ibv_close_xrc_domain(domain) ||
	    ibv_dealloc_pd(pd) || ibv_close_device(ctx))
		return -1;
	mapped = fk.mapped;
	fk.mapped = 0;
	return mapped;
}

int main(void)
{
#define TEST(test, layer)                                                                          \
	{                                                                                          \
#test, test, setup, teardown, layer                                                \
	}
	const struct CMUnitTest tests[] = {
		TEST(command_sizes, NULL),	  TEST(refused_creations, NULL),
		TEST(refused_destructions, NULL), TEST(xrc_calls, NULL),
		TEST(ah_infiniband, "1"),	  TEST(ah_infiniband, "0"),
		TEST(ah_ethernet, "2"),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
