// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: a program that has another time than the machine (here clock_gettime() stands still,
 * as libfaketime can have it) has a device whose timers run: a request that nobody answers ends.
 * Quick: half
 */
#include <time.h>

#include "verbs_test.h"

__attribute__((visibility("default"))) int clock_gettime(clockid_t id, struct timespec *ts)
{
	(void)id;
	*ts = (struct timespec){.tv_sec = 1000};
	return 0;
}

int main(void)
{
	struct side s;
	struct ibv_qp *qp, *peer;
	struct link l;

	test_begin();
	side_open(&s, 8192, 16, 0);
	qp = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	peer = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	link_defaults(&l, s.lid, peer->qp_num);
	l.timeout = 10;
	l.retry_cnt = 1;
	connect_qp(qp, &l);
	CHECK_EQ(post_send1(qp, &s, 1, 0, 64, IBV_SEND_SIGNALED), 0);
	expect_wc(s.scq, 1, IBV_WC_RETRY_EXC_ERR);
	CHECK_EQ(ibv_destroy_qp(qp), 0);
	CHECK_EQ(ibv_destroy_qp(peer), 0);
	side_close(&s);
	return 0;
}
