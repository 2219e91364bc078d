// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: the library's verdict on this kernel is that the device has no XRC: every call of it
 * says ENOSYS, and the question itself has harmed nothing.
 */

#include <fcntl.h>

#include "guest.h"

/* XRC as kernels from 3.3 on number it: the initiator's and the target's QP types. */
#define XRC_INI 9
#define XRC_TGT 10

static void the_verdict(void)
{
	struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = 8, .max_sge = 1}};
	struct ibv_xrc_domain domain = {0};
	struct ibv_qp_init_attr attr, init;
	struct ibv_device_attr dev;
	struct ibv_qp_attr qp_attr = {.qp_state = IBV_QPS_INIT};
	uint32_t qpn = 77;
	struct rig rig;
	int fd;

	rig_up(&rig);
	CHECK_EQ(ibv_query_device(rig.context, &dev), 0);
	CHECK(!(dev.device_cap_flags & IBV_DEVICE_XRC));
	CHECK(rig.context->more_ops);

	CHECK_REFUSED(ibv_open_xrc_domain(rig.context, -1, O_CREAT), ENOSYS);
	CHECK((fd = open("/xrc_domain", O_RDWR | O_CREAT, 0600)) >= 0);
	CHECK_REFUSED(ibv_open_xrc_domain(rig.context, fd, O_CREAT), ENOSYS);
	close(fd);

	domain.context = rig.context;
	CHECK_REFUSED(ibv_create_xrc_srq(rig.pd, &domain, rig.cq, &srq_attr), ENOSYS);
	attr = (struct ibv_qp_init_attr){.xrc_domain = &domain};
	CHECK_EQ(ibv_create_xrc_rcv_qp(&attr, &qpn), ENOSYS);
	CHECK_EQ(qpn, 77);
	CHECK_EQ(ibv_modify_xrc_rcv_qp(&domain, 1, &qp_attr, IBV_QP_STATE), ENOSYS);
	CHECK_EQ(ibv_query_xrc_rcv_qp(&domain, 1, &qp_attr, IBV_QP_STATE, &init), ENOSYS);
	CHECK_EQ(ibv_reg_xrc_rcv_qp(&domain, 1), ENOSYS);
	CHECK_EQ(ibv_unreg_xrc_rcv_qp(&domain, 1), ENOSYS);
	rig_down(&rig);
}

static void xrc_qps_are_refused(void)
{
	static const int types[] = {IBV_QPT_XRC, XRC_INI, XRC_TGT};
	struct ibv_qp_init_attr attr;
	struct ibv_xrc_domain domain;
	struct rig rig;
	int i;

	rig_up(&rig);
	domain = (struct ibv_xrc_domain){.context = rig.context};
	for (i = 0; i < 3; ++i) {
		attr = (struct ibv_qp_init_attr){
			.send_cq = rig.cq,
			.recv_cq = rig.cq,
			.qp_type = types[i],
			.cap = {.max_send_wr = 8,
				.max_send_sge = 1,
				.max_recv_wr = 8,
				.max_recv_sge = 1},
			.xrc_domain = &domain,
		};
		CHECK(!ibv_create_qp(rig.pd, &attr));
		if (types[i] == IBV_QPT_XRC)
			CHECK_EQ(errno, ENOSYS);
	}
	rig_down(&rig);
}

const struct guest_test xrc_tests[] = {
	{"XRC: the verdict on this kernel is that there is none", the_verdict},
	{"XRC: QPs of an XRC type are refused", xrc_qps_are_refused},
	{0},
};
