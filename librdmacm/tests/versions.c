// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: versions 3 and 4 of the kernel's interface are spoken, no other; in version 3 the
 * library takes QPs to INIT and RTS by itself. A process learns the version once, so each case has
 * its own.
 */
#include "fake_rdma_cm.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

static void in_a_child(int abi, int (*check)(void))
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		int ret = fake_start(abi, 0) ? 99 : check();

		fake_stop();
		_exit(ret);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static int is_refused(void)
{
	struct rdma_cm_id *id;
	int n = 7;

	errno = 0;
	if (rdma_create_event_channel() || errno != EPERM)
		return 1;
	errno = 0;
	if (rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP) != -1 || errno != EPERM)
		return 2;
	errno = 0;
	if (rdma_get_devices(&n) || n || errno != EPERM)
		return 3;
	return fake.channels ? 4 : 0;
}

static void other_versions(void **state)
{
	(void)state;
	in_a_child(2, is_refused);
	in_a_child(5, is_refused);
}

static int same(const char *must)
{
	int differs = strcmp(fake.log, must);

	if (differs)
		print_error("asked:\n%smust be:\n%s", fake.log, must);
	fake_ignore();
	return differs;
}

static int abi3_qps(void)
{
	struct sockaddr_in to = {.sin_family = AF_INET};
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct ibv_qp_init_attr attr;
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;
	int ud;

	for (ud = 0; ud < 2; ud++) {
		if (rdma_create_id(channel, &id, NULL, ud ? RDMA_PS_UDP : RDMA_PS_TCP) ||
		    rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 1000))
			return 1;
		fake_event(id, 5 + ud, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
		if (rdma_get_cm_event(channel, &event) || rdma_ack_cm_event(event))
			return 2;
		memset(&attr, 0, sizeof(attr));
		attr.qp_type = ud ? IBV_QPT_UD : IBV_QPT_RC;
		attr.cap.max_send_wr = attr.cap.max_recv_wr = 1;
		fake_ignore();
		if (rdma_create_qp(id, NULL, &attr))
			return 3;
		if (same(ud ? "create_cq 1 channel\ncreate_cq 1 channel\ncreate_qp type 4\n"
			      "modify 1 mask 71 qkey 1234567\nmodify 2 mask 1\nmodify 3 mask "
			      "10001\n"
			    : "create_cq 1 channel\ncreate_cq 1 channel\ncreate_qp type 2\nmodify "
			      "1 mask 39\n"))
			return 4;
		rdma_destroy_qp(id);
		fake.events_reported = 1;
		if (rdma_destroy_id(id))
			return 5;
	}
	rdma_destroy_event_channel(channel);
	return fake.objects || fake.channels ? 6 : 0;
}

static void version_3(void **state)
{
	(void)state;
	in_a_child(3, abi3_qps);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(other_versions),
		cmocka_unit_test(version_3),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
