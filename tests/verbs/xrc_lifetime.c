// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: what keeps a domain busy (SRQs, QPs, registrations: EBUSY), the last reference that
 * destroys it, and a domain that outlives its creator.
 */
#include <fcntl.h>
#include <signal.h>

#include "xrc_test.h"

static int fd;

static void busy(void)
{
	struct ibv_xrc_domain *domain, *second;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	uint32_t qpn;
	struct side s;

	side_open(&s, 4096, 16, 0);
	domain = domain_of(&s, fd);
	srq = make_xrc_srq(&s, domain, 8);
	CHECK_EQ(ibv_close_xrc_domain(domain), EBUSY);
	/* The SRQ keeps its CQ and its PD busy, too. */
	CHECK_EQ(ibv_destroy_cq(s.rcq), EBUSY);
	CHECK_EQ(ibv_dealloc_pd(s.pd), EBUSY);
	CHECK_EQ(ibv_destroy_srq(srq), 0);

	qp = make_qp(&s, IBV_QPT_XRC, NULL, domain, NULL);
	CHECK_EQ(ibv_close_xrc_domain(domain), EBUSY);
	CHECK_EQ(ibv_destroy_qp(qp), 0);

	qpn = make_rcv_qp(domain);
	CHECK_EQ(ibv_close_xrc_domain(domain), EBUSY);
	CHECK_EQ(ibv_unreg_xrc_rcv_qp(domain, qpn), 0);

	/*
	 * Another handle of the same domain, in the same open device: also busy while the first has
	 * a QP.
	 */
	second = domain_of(&s, fd);
	qp = make_qp(&s, IBV_QPT_XRC, NULL, domain, NULL);
	CHECK_EQ(ibv_close_xrc_domain(second), EBUSY);
	CHECK_EQ(ibv_destroy_qp(qp), 0);
	CHECK_EQ(ibv_close_xrc_domain(second), 0);
	CHECK_EQ(ibv_close_xrc_domain(domain), 0);
	CHECK(!ibv_open_xrc_domain(s.context, fd, 0));
	CHECK_EQ(errno, EAGAIN);

	/* An anonymous domain. */
	domain = ibv_open_xrc_domain(s.context, -1, O_CREAT);
	CHECK(domain);
	srq = make_xrc_srq(&s, domain, 8);
	CHECK_EQ(ibv_close_xrc_domain(domain), EBUSY);
	CHECK_EQ(ibv_destroy_srq(srq), 0);
	CHECK_EQ(ibv_close_xrc_domain(domain), 0);
	side_close(&s);
}

/* Makes the domain with objects in it; ends as main() says. */
static void creator(int how)
{
	struct ibv_xrc_domain *domain;
	struct side s;

	side_open(&s, 4096, 16, 0);
	domain = domain_of(&s, fd);
	make_xrc_srq(&s, domain, 8);
	make_qp(&s, IBV_QPT_XRC, NULL, domain, NULL);
	post(1, make_rcv_qp(domain));
	post(0, 1);
	await(2, 1);
	if (how)
		_exit(0);
	for (;;)
		pause();
}

/* The creator ends while another process has the domain open (keep), or while none has. */
static void outlive(int how, bool keep)
{
	struct ibv_xrc_domain *domain = NULL;
	uint32_t qpn;
	struct side s;
	pid_t pid;

	memset(board->word, 0, sizeof(board->word));
	pid = spawn(creator, how);
	await(0, 1);
	qpn = (uint32_t)board->word[1];
	side_open(&s, 4096, 16, 0);
	if (keep) {
		domain = ibv_open_xrc_domain(s.context, fd, 0);
		CHECK(domain);
		CHECK_EQ(ibv_reg_xrc_rcv_qp(domain, qpn), 0);
	}
	post(2, 1);
	if (how) {
		join(pid);
	} else {
		CHECK_EQ(kill(pid, SIGKILL), 0);
		join_killed(pid, SIGKILL);
	}
	if (keep) {
		struct ibv_xrc_domain *again = ibv_open_xrc_domain(s.context, fd, 0);

		CHECK(again);
		CHECK_EQ(rcv_state(domain, qpn), IBV_QPS_RESET);
		CHECK_EQ(ibv_close_xrc_domain(domain), EBUSY);
		CHECK_EQ(ibv_unreg_xrc_rcv_qp(domain, qpn), 0);
		CHECK_EQ(ibv_close_xrc_domain(again), 0);
		CHECK_EQ(ibv_close_xrc_domain(domain), 0);
	}
	CHECK(!ibv_open_xrc_domain(s.context, fd, 0));
	CHECK_EQ(errno, EAGAIN);
	side_close(&s);
}

int main(void)
{
	test_begin();
	fd = domain_file();
	busy();
	for (int how = 0; how < 2; how++) {
		outlive(how, true);
		outlive(how, false);
	}
	return 0;
}
