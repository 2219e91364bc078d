// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Faces: mainline
 * Description: two XRC QPs of ibv_create_qp, connected to each other, on a kernel where such QPs
 * only send: it is said when they are connected, the first send ends in an error, and all of it can
 * be taken down again. To a receive QP the same QP sends, and nothing is said.
 */
#include <fcntl.h>

#include "xrc_test.h"

#define LEN 100

/* What connecting prints. */
static char said[1024];

static void connect_listening(struct ibv_qp *qp, const struct link *l)
{
	int saved = dup(2), fds[2];
	ssize_t len;

	CHECK_EQ(pipe(fds), 0);
	CHECK(saved >= 0 && dup2(fds[1], 2) == 2);
	connect_qp(qp, l);
	CHECK(dup2(saved, 2) == 2);
	close(saved);
	close(fds[1]);
	len = read(fds[0], said, sizeof(said) - 1);
	CHECK(len >= 0);
	said[len] = '\0';
	close(fds[0]);
}

int main(void)
{
	struct ibv_qp *one, *other, *sender;
	struct ibv_xrc_domain *domain;
	struct ibv_srq *srq;
	struct side s;
	struct link l;
	uint32_t rcv;

	test_begin();
	side_open(&s, 2 * 4096, 64, 0);
	domain = domain_of(&s, domain_file());
	srq = make_xrc_srq(&s, domain, 8);
	CHECK_EQ(post_srq1(srq, &s, 1, 0, LEN), 0);

	/* Connected to a receive QP, as it should be. */
	rcv = make_rcv_qp(domain);
	CHECK(rcv & (1 << 23));
	sender = make_qp(&s, IBV_QPT_XRC, NULL, domain, NULL);
	CHECK(!(sender->qp_num & (1 << 23)));
	link_defaults(&l, s.lid, sender->qp_num);
	connect_rcv(domain, rcv, &l);
	link_defaults(&l, s.lid, rcv);
	connect_listening(sender, &l);
	CHECK_EQ(strlen(said), 0);
	CHECK_EQ(post_xrc(sender, &s, 7, 4096, LEN, srq->xrc_srq_num, IBV_SEND_SIGNALED), 0);
	expect_wc(s.rcq, 1, IBV_WC_SUCCESS);
	expect_wc(s.scq, 7, IBV_WC_SUCCESS);

	/* Connected to each other, as on OFED kernels. */
	one = make_qp(&s, IBV_QPT_XRC, NULL, domain, NULL);
	other = make_qp(&s, IBV_QPT_XRC, NULL, domain, NULL);
	link_defaults(&l, s.lid, one->qp_num);
	l.timeout = 1;
	connect_listening(other, &l);
	CHECK(strstr(said, "libmlx4: Warning: "));
	CHECK(strstr(said, "ibv_create_xrc_rcv_qp()"));
	l.dest_qpn = other->qp_num;
	connect_listening(one, &l);
	CHECK_EQ(strlen(said), 0); /* the warning comes once */
	CHECK_EQ(post_srq1(srq, &s, 2, 0, LEN), 0);
	CHECK_EQ(post_xrc(one, &s, 8, 4096, LEN, srq->xrc_srq_num, IBV_SEND_SIGNALED), 0);
	expect_wc(s.scq, 8, IBV_WC_RETRY_EXC_ERR);
	CHECK_EQ(ibv_poll_cq(s.rcq, 1, &(struct ibv_wc){0}), 0);

	CHECK_EQ(ibv_close_xrc_domain(domain), EBUSY);
	CHECK_EQ(ibv_destroy_qp(one), 0);
	CHECK_EQ(ibv_destroy_qp(other), 0);
	CHECK_EQ(ibv_destroy_qp(sender), 0);
	CHECK_EQ(ibv_close_xrc_domain(domain), EBUSY);
	CHECK_EQ(ibv_unreg_xrc_rcv_qp(domain, rcv), 0);
	CHECK_EQ(ibv_close_xrc_domain(domain), EBUSY);
	CHECK_EQ(ibv_destroy_srq(srq), 0);
	CHECK_EQ(ibv_close_xrc_domain(domain), 0);
	side_close(&s);
	return 0;
}
