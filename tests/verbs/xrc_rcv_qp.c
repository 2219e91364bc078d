// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: the life of an XRC receive QP: create, every modify and query, register and
 * unregister (idempotence, foreign domains, unknown numbers), and its end with the last
 * registration, whoever had made it and however that one died.
 */
#include <fcntl.h>
#include <signal.h>

#include "xrc_test.h"

static int fd, other_fd;

static void arguments(struct side *s, struct ibv_xrc_domain *domain)
{
	struct ibv_qp_init_attr init = {0};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT};
	uint32_t qpn;

	CHECK_EQ(ibv_create_xrc_rcv_qp(NULL, &qpn), EINVAL);
	CHECK_EQ(ibv_create_xrc_rcv_qp(&init, &qpn), EINVAL);
	CHECK_EQ(ibv_modify_xrc_rcv_qp(NULL, 1, &attr, IBV_QP_STATE), EINVAL);
	CHECK_EQ(ibv_modify_xrc_rcv_qp(domain, 1, NULL, IBV_QP_STATE), EINVAL);
	CHECK_EQ(ibv_query_xrc_rcv_qp(NULL, 1, &attr, 0, &init), EINVAL);
	CHECK_EQ(ibv_reg_xrc_rcv_qp(NULL, 1), EINVAL);
	CHECK_EQ(ibv_unreg_xrc_rcv_qp(NULL, 1), EINVAL);
	/* Unused numbers, and a QP that is not a receive QP. */
	CHECK_EQ(ibv_reg_xrc_rcv_qp(domain, 0x8fffff), EINVAL);
	CHECK_EQ(ibv_unreg_xrc_rcv_qp(domain, 0x8fffff), EINVAL);
	CHECK_EQ(ibv_modify_xrc_rcv_qp(domain, 0x8fffff, &attr, IBV_QP_STATE), EINVAL);
	CHECK_EQ(ibv_query_xrc_rcv_qp(domain, 0x8fffff, &attr, 0, &init), EINVAL);
	struct ibv_qp *rc = make_qp(s, IBV_QPT_RC, NULL, NULL, NULL);
	CHECK_EQ(ibv_reg_xrc_rcv_qp(domain, rc->qp_num), EINVAL);
	CHECK_EQ(ibv_query_xrc_rcv_qp(domain, rc->qp_num, &attr, 0, &init), EINVAL);
	CHECK_EQ(ibv_destroy_qp(rc), 0);
}

static void states(struct side *s, struct ibv_xrc_domain *domain)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	uint32_t qpn = make_rcv_qp(domain);
	struct link l;

	CHECK(qpn & (1 << 23));
	link_defaults(&l, s->lid, 0x123);
	CHECK_EQ(rcv_state(domain, qpn), IBV_QPS_RESET);
	CHECK_EQ(rcv_to_rtr(domain, qpn, &l), EINVAL);
	CHECK_EQ(rcv_state(domain, qpn), IBV_QPS_RESET);
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_INIT, .port_num = 1};
	CHECK_EQ(ibv_modify_xrc_rcv_qp(domain, qpn, &attr, IBV_QP_STATE | IBV_QP_PORT), EINVAL);
	CHECK_EQ(rcv_to_init(domain, qpn, &l), 0);
	CHECK_EQ(rcv_to_init(domain, qpn, &l), 0);
	l.port = 9;
	CHECK_EQ(rcv_to_init(domain, qpn, &l), EINVAL);
	l.port = 1;
	CHECK_EQ(rcv_state(domain, qpn), IBV_QPS_INIT);
	CHECK_EQ(rcv_to_rtr(domain, qpn, &l), 0);

	memset(&init, 0xff, sizeof(init));
	CHECK_EQ(ibv_query_xrc_rcv_qp(domain, qpn, &attr, 0, &init), 0);
	CHECK_EQ(attr.qp_state, IBV_QPS_RTR);
	CHECK_EQ(attr.dest_qp_num, 0x123);
	CHECK_EQ(attr.path_mtu, l.mtu);
	CHECK_EQ(attr.rq_psn, l.psn_theirs);
	CHECK_EQ(attr.max_dest_rd_atomic, 4);
	CHECK_EQ(attr.min_rnr_timer, 1);
	CHECK_EQ(attr.port_num, 1);
	CHECK_EQ(init.qp_type, IBV_QPT_XRC);
	CHECK(init.xrc_domain == domain && !init.send_cq && !init.recv_cq && !init.srq &&
	      !init.qp_context);
	CHECK_EQ(init.cap.max_send_wr, 1);
	CHECK_EQ(init.cap.max_send_sge, 1);
	CHECK_EQ(init.cap.max_recv_wr, 0);
	CHECK_EQ(attr.cap.max_send_wr, 1);

	CHECK_EQ(rcv_to_state(domain, qpn, IBV_QPS_ERR), 0);
	CHECK_EQ(rcv_state(domain, qpn), IBV_QPS_ERR);
	CHECK_EQ(rcv_to_init(domain, qpn, &l), EINVAL);
	CHECK_EQ(rcv_to_state(domain, qpn, IBV_QPS_RESET), 0);
	connect_rcv(domain, qpn, &l);
	CHECK_EQ(ibv_unreg_xrc_rcv_qp(domain, qpn), 0);
	/* That was the last registration. */
	CHECK_EQ(ibv_query_xrc_rcv_qp(domain, qpn, &attr, 0, &init), EINVAL);
	CHECK_EQ(ibv_reg_xrc_rcv_qp(domain, qpn), EINVAL);
}

/* Two open device files of one process: registration is per file. */
static void registrations(struct side *a)
{
	struct ibv_xrc_domain *da = domain_of(a, fd), *db, *foreign = domain_of(a, other_fd);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	uint32_t qpn = make_rcv_qp(da);
	struct side b;
	struct link l;

	side_open(&b, 4096, 16, 0);
	db = domain_of(&b, fd);
	/* Every context with the domain open may modify and query the QP. */
	link_defaults(&l, a->lid, 0x77);
	CHECK_EQ(rcv_to_init(db, qpn, &l), 0);
	CHECK_EQ(rcv_state(db, qpn), IBV_QPS_INIT);
	CHECK_EQ(ibv_unreg_xrc_rcv_qp(db, qpn), EINVAL);
	/* In another domain the QP is unknown. */
	CHECK_EQ(ibv_reg_xrc_rcv_qp(foreign, qpn), EINVAL);
	CHECK_EQ(ibv_unreg_xrc_rcv_qp(foreign, qpn), EINVAL);
	CHECK_EQ(ibv_query_xrc_rcv_qp(foreign, qpn, &attr, 0, &init), EINVAL);
	CHECK_EQ(rcv_to_state(foreign, qpn, IBV_QPS_ERR), EINVAL);

	/*
	 * The creator is registered. Registering again has no effect; one unregistration ends it.
	 */
	CHECK_EQ(ibv_reg_xrc_rcv_qp(da, qpn), 0);
	CHECK_EQ(ibv_reg_xrc_rcv_qp(db, qpn), 0);
	CHECK_EQ(ibv_reg_xrc_rcv_qp(db, qpn), 0);
	CHECK_EQ(ibv_unreg_xrc_rcv_qp(da, qpn), 0);
	CHECK_EQ(ibv_unreg_xrc_rcv_qp(da, qpn), EINVAL);
	CHECK_EQ(rcv_state(da, qpn), IBV_QPS_INIT);
	CHECK_EQ(ibv_unreg_xrc_rcv_qp(db, qpn), 0);
	CHECK_EQ(ibv_unreg_xrc_rcv_qp(db, qpn), EINVAL);
	CHECK_EQ(ibv_query_xrc_rcv_qp(da, qpn, &attr, 0, &init), EINVAL);

	CHECK_EQ(ibv_close_xrc_domain(db), 0);
	CHECK_EQ(ibv_close_xrc_domain(da), 0);
	CHECK_EQ(ibv_close_xrc_domain(foreign), 0);
	side_close(&b);
}

/*
 * A creator that dies after it has moved its QP to a state, with or without another registration.
 */
static void mortal(int state)
{
	struct ibv_xrc_domain *domain;
	uint32_t qpn;
	struct side s;
	struct link l;

	side_open(&s, 4096, 16, 0);
	domain = domain_of(&s, fd);
	qpn = make_rcv_qp(domain);
	link_defaults(&l, s.lid, 0x55);
	if (state >= IBV_QPS_INIT)
		CHECK_EQ(rcv_to_init(domain, qpn, &l), 0);
	if (state >= IBV_QPS_RTR)
		CHECK_EQ(rcv_to_rtr(domain, qpn, &l), 0);
	if (state == IBV_QPS_ERR)
		CHECK_EQ(rcv_to_state(domain, qpn, IBV_QPS_ERR), 0);
	post(0, qpn);
	for (;;)
		pause();
}

static void deaths(struct side *s)
{
	static const int at[] = {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_ERR};
	struct ibv_xrc_domain *domain = domain_of(s, fd);

	for (int i = 0; i < 8; i++) {
		struct ibv_qp_init_attr init;
		struct ibv_qp_attr attr;
		bool registered = i & 1;
		uint32_t qpn;
		pid_t pid;

		post(0, 0);
		pid = spawn(mortal, at[i / 2]);
		await(0, 1);
		qpn = (uint32_t)board->word[0];
		if (registered)
			CHECK_EQ(ibv_reg_xrc_rcv_qp(domain, qpn), 0);
		CHECK_EQ(kill(pid, SIGKILL), 0);
		join_killed(pid, SIGKILL);
		if (registered) {
			CHECK_EQ(rcv_state(domain, qpn), at[i / 2]);
			CHECK_EQ(ibv_unreg_xrc_rcv_qp(domain, qpn), 0);
		}
		CHECK_EQ(ibv_query_xrc_rcv_qp(domain, qpn, &attr, 0, &init), EINVAL);
	}
	CHECK_EQ(ibv_close_xrc_domain(domain), 0);
}

int main(void)
{
	struct ibv_xrc_domain *domain;
	struct side s;

	test_begin();
	fd = domain_file();
	other_fd = domain_file();
	side_open(&s, 4096, 16, 0);
	domain = domain_of(&s, fd);
	arguments(&s, domain);
	states(&s, domain);
	CHECK_EQ(ibv_close_xrc_domain(domain), 0);
	registrations(&s);
	deaths(&s);
	side_close(&s);
	return 0;
}
