// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: what the verbs do around the provider's operations. They fill in objects and keep
 * the state of a QP. They do not touch members that the structures of old programs lack. They
 * report errors as their man pages say.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include <infiniband/driver.h>

#include "fake_provider.h"

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;

static int setup(void **state)
{
	(void)state;
	fake_hw.refuse = 0;
	context = ibv_open_device(fake_list[0]);
	assert_non_null(context);
	pd = ibv_alloc_pd(context);
	assert_non_null(pd);
	cq = ibv_create_cq(context, 10, &context, NULL, 0);
	assert_non_null(cq);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_close_device(context), 0);
	return 0;
}

static void open_and_close(void **state)
{
	struct ibv_context *other;
	int async_fd, cmd_fd;

	(void)state;
	other = ibv_open_device(fake_list[0]);
	assert_non_null(other);
	assert_ptr_equal(other->device, fake_list[0]);
	cmd_fd = other->cmd_fd;
	async_fd = other->async_fd;
	assert_true(fcntl(cmd_fd, F_GETFD) >= 0);
	assert_true(fcntl(async_fd, F_GETFD) >= 0);
	assert_int_equal(ibv_close_device(other), 0);
	assert_int_equal(fcntl(cmd_fd, F_GETFD), -1);
	assert_int_equal(fcntl(async_fd, F_GETFD), -1);

	/* If the provider fails, the caller gets its errno and no descriptor stays open. */
	cmd_fd = open("/dev/null", O_RDONLY);
	close(cmd_fd);
	fake_hw.refuse_number = 0;
	fake_hw.refuse = EPERM;
	errno = 0;
	assert_null(ibv_open_device(fake_list[0]));
	assert_int_equal(errno, EPERM);
	assert_int_equal(fcntl(cmd_fd, F_GETFD), -1);
}

static void objects(void **state)
{
	struct ibv_srq_init_attr srq_attr = {.srq_context = &fake_list,
					     .attr = {.max_wr = 10, .max_sge = 2}};
	struct ibv_srq *srq;
	struct ibv_mr *mr;
	char buffer[10];

	(void)state;
	assert_ptr_equal(pd->context, context);
	assert_ptr_equal(cq->context, context);
	assert_ptr_equal(cq->cq_context, &context);
	assert_null(cq->channel);
	assert_int_equal(cq->cqe, 15);
	assert_int_equal(ibv_resize_cq(cq, 40), 0);
	assert_int_equal(cq->cqe, 45);

	mr = ibv_reg_mr(pd, buffer, sizeof(buffer), IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(mr);
	assert_ptr_equal(mr->addr, buffer);
	assert_int_equal(mr->length, sizeof(buffer));
	assert_int_equal(ibv_dereg_mr(mr), 0);

	srq = ibv_create_srq(pd, &srq_attr);
	assert_non_null(srq);
	assert_ptr_equal(srq->context, context);
	assert_ptr_equal(srq->srq_context, &fake_list);
	assert_ptr_equal(srq->pd, pd);
	assert_int_equal(srq->xrc_srq_num, 0);
	assert_null(srq->xrc_domain);
	assert_null(srq->xrc_cq);
	assert_int_equal(srq_attr.attr.max_wr, 17);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void state_of_a_qp(void **state)
{
	struct ibv_qp_init_attr init = {
		.qp_context = &pd, .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_UC};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	(void)state;
	assert_non_null(qp);
	assert_ptr_equal(qp->qp_context, &pd);
	assert_ptr_equal(qp->pd, pd);
	assert_ptr_equal(qp->send_cq, cq);
	assert_ptr_equal(qp->recv_cq, cq);
	assert_null(qp->srq);
	assert_null(qp->xrc_domain);
	assert_int_equal(qp->qp_type, IBV_QPT_UC);
	assert_int_equal(qp->state, IBV_QPS_RESET);
	assert_int_equal(init.cap.max_send_wr, 3);

	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_PORT), 0);
	assert_int_equal(qp->state, IBV_QPS_RESET);
	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
	assert_int_equal(qp->state, IBV_QPS_INIT);
	attr.qp_state = IBV_QPS_RTR;
	fake_hw.refuse_number = 26;
	fake_hw.refuse = EINVAL;
	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), EINVAL);
	assert_int_equal(qp->state, IBV_QPS_INIT);

	fake_hw.next_qp_state = IBV_QPS_ERR;
	assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_PORT, &init), 0);
	assert_int_equal(qp->state, IBV_QPS_INIT);
	fake_hw.refuse_number = 25;
	fake_hw.refuse = EINVAL;
	assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), EINVAL);
	assert_int_equal(qp->state, IBV_QPS_INIT);
	assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
	assert_int_equal(qp->state, IBV_QPS_ERR);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

/*
 * In programs compiled before XRC, struct ibv_qp_init_attr ends earlier. Here it ends with its
 * page, and the next page is unmapped.
 */
static void before_xrc(void **state)
{
	size_t size = sysconf(_SC_PAGESIZE);
	char *pages =
		mmap(NULL, 2 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_qp_init_attr *init;
	struct ibv_qp_attr attr;
	struct ibv_qp *qp;

	(void)state;
	assert_true(pages != MAP_FAILED);
	assert_int_equal(munmap(pages + size, size), 0);
	init = (void *)(pages + size - offsetof(struct ibv_qp_init_attr, xrc_domain));
	init->send_cq = init->recv_cq = cq;
	init->qp_type = IBV_QPT_RC;
	qp = ibv_create_qp(pd, init);
	assert_non_null(qp);
	assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_STATE, init), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	munmap(pages, size);
}

static void query_port(void **state)
{
	struct ibv_port_attr attr;

	(void)state;
	memset(&attr, 0xee, sizeof(attr));
	assert_int_equal(ibv_query_port(context, 1, &attr), 0);
	assert_int_equal(attr.state, IBV_PORT_ACTIVE);
	assert_int_equal(attr.link_layer, IBV_LINK_LAYER_ETHERNET);
	assert_int_equal(attr.pad, 0);

	/*
	 * The inline function clears the new members before it asks the provider. The exported
	 * function does not.
	 */
	memset(&attr, 0xee, sizeof(attr));
	fake_hw.refuse_number = 2;
	fake_hw.refuse = EINVAL;
	assert_int_equal(ibv_query_port(context, 1, &attr), EINVAL);
	assert_int_equal(attr.link_layer, IBV_LINK_LAYER_UNSPECIFIED);
	assert_int_equal(attr.pad, 0);
	memset(&attr, 0xee, sizeof(attr));
	fake_hw.refuse = EINVAL;
	assert_int_equal((ibv_query_port)(context, 1, &attr), EINVAL);
	assert_int_equal(attr.link_layer, 0xee);
	assert_int_equal(attr.pad, 0xee);
}

static void failures(void **state)
{
	struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = 1}};
	struct ibv_qp_init_attr qp_attr = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC};
	struct ibv_device_attr device_attr;
	char buffer[1];

#define NO_OBJECT(number, call)                                                                    \
	do {                                                                                       \
		fake_hw.refuse_number = number;                                                    \
		fake_hw.refuse = EMFILE;                                                           \
		errno = 0;                                                                         \
		assert_null(call);                                                                 \
		assert_int_equal(errno, EMFILE);                                                   \
	} while (0)

	(void)state;
	NO_OBJECT(3, ibv_alloc_pd(context));
	NO_OBJECT(9, ibv_reg_mr(pd, buffer, 1, 0));
	NO_OBJECT(18, ibv_create_cq(context, 1, NULL, NULL, 0));
	NO_OBJECT(32, ibv_create_srq(pd, &srq_attr));
	NO_OBJECT(24, ibv_create_qp(pd, &qp_attr));
	fake_hw.refuse_number = 1;
	fake_hw.refuse = EMFILE;
	assert_int_equal(ibv_query_device(context, &device_attr), EMFILE);
}

/* A provider may lack operations. */
static void missing_operations(void **state)
{
	struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = 1}};
	struct ibv_async_event event;

	(void)state;
	teardown(state);
	fake_hw.no_optional_ops = 1;
	setup(state);
	fake_hw.no_optional_ops = 0;
	assert_int_equal(ibv_resize_cq(cq, 1), ENOSYS);
	assert_null(ibv_create_srq(pd, &srq_attr));

	fake_hw.async_events = 0;
	fake_async_event(1, IBV_EVENT_PORT_ACTIVE);
	assert_int_equal(ibv_get_async_event(context, &event), 0);
	assert_int_equal(fake_hw.async_events, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	static const struct CMUnitTest tests[] = {
		TEST(open_and_close), TEST(objects),  TEST(state_of_a_qp),	TEST(before_xrc),
		TEST(query_port),     TEST(failures), TEST(missing_operations),
	};

	return cmocka_run_group_tests_name("verbs", tests, fake_group_setup, fake_group_teardown);
}
