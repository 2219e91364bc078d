// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: the XRC verbs around the provider's operations. On a device without XRC each of them
 * fails with ENOSYS, in its own way of returning errors, while all other verbs work.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <infiniband/driver.h>

#include "fake_provider.h"

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;

static void open_device(void)
{
	context = ibv_open_device(fake_list[0]);
	assert_non_null(context);
	pd = ibv_alloc_pd(context);
	assert_non_null(pd);
	cq = ibv_create_cq(context, 10, NULL, NULL, 0);
	assert_non_null(cq);
}

static int teardown(void **state)
{
	(void)state;
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_close_device(context), 0);
	return 0;
}

static int with_xrc(void **state)
{
	(void)state;
	fake_hw.device_cap_flags = IBV_DEVICE_XRC;
	fake_hw.no_more_ops = 0;
	open_device();
	return 0;
}

static int with_old_provider(void **state)
{
	(void)state;
	fake_hw.device_cap_flags = IBV_DEVICE_XRC;
	fake_hw.no_more_ops = 1;
	open_device();
	return 0;
}

static int with_old_device(void **state)
{
	(void)state;
	fake_hw.device_cap_flags = ~IBV_DEVICE_XRC;
	fake_hw.no_more_ops = 0;
	open_device();
	return 0;
}

static void domains_and_queues(void **state)
{
	struct ibv_srq_init_attr srq_attr = {.srq_context = &fake_list,
					     .attr = {.max_wr = 5, .max_sge = 1}};
	struct ibv_qp_init_attr qp_attr = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_XRC};
	struct ibv_xrc_domain *domain;
	struct ibv_srq *srq;
	struct ibv_qp *qp;

	(void)state;
	domain = ibv_open_xrc_domain(context, -1, O_CREAT);
	assert_non_null(domain);
	assert_ptr_equal(domain->context, context);
	assert_int_equal(fake_hw.latest, 38);

	srq = ibv_create_xrc_srq(pd, domain, cq, &srq_attr);
	assert_non_null(srq);
	assert_int_equal(fake_hw.latest, 37);
	assert_ptr_equal(srq->context, context);
	assert_ptr_equal(srq->srq_context, &fake_list);
	assert_ptr_equal(srq->pd, pd);
	assert_ptr_equal(srq->xrc_domain, domain);
	assert_ptr_equal(srq->xrc_cq, cq);
	assert_int_equal(srq->events_completed, 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);

	qp_attr.xrc_domain = domain;
	qp = ibv_create_qp(pd, &qp_attr);
	assert_non_null(qp);
	assert_ptr_equal(qp->xrc_domain, domain);
	assert_int_equal(qp->qp_type, IBV_QPT_XRC);
	assert_int_equal(ibv_destroy_qp(qp), 0);

	fake_hw.refuse_number = 39;
	fake_hw.refuse = EBUSY;
	assert_int_equal(ibv_close_xrc_domain(domain), EBUSY);
	assert_int_equal(ibv_close_xrc_domain(domain), 0);
	assert_int_equal(fake_hw.latest, 39);

	fake_hw.refuse_number = 38;
	fake_hw.refuse = EAGAIN;
	errno = 0;
	assert_null(ibv_open_xrc_domain(context, 0, 0));
	assert_int_equal(errno, EAGAIN);
}

static void receive_qps(void **state)
{
	struct ibv_xrc_domain *domain = ibv_open_xrc_domain(context, -1, O_CREAT);
	struct ibv_qp_init_attr init = {.xrc_domain = domain};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT};
	uint32_t qpn = 0;

	(void)state;
	assert_non_null(domain);
	assert_int_equal(ibv_create_xrc_rcv_qp(&init, &qpn), 0);
	assert_int_equal(fake_hw.latest, 40);
	assert_true(qpn != 0);
	assert_int_equal(ibv_modify_xrc_rcv_qp(domain, qpn, &attr, IBV_QP_STATE), 0);
	assert_int_equal(fake_hw.latest, 41);
	assert_int_equal(ibv_query_xrc_rcv_qp(domain, qpn, &attr, IBV_QP_STATE, &init), 0);
	assert_int_equal(fake_hw.latest, 42);
	assert_int_equal(ibv_reg_xrc_rcv_qp(domain, qpn), 0);
	assert_int_equal(fake_hw.latest, 43);

	/* These two set errno as well, because some programs call perror(). */
	fake_hw.refuse_number = 44;
	fake_hw.refuse = EINVAL;
	errno = 0;
	assert_int_equal(ibv_unreg_xrc_rcv_qp(domain, qpn), EINVAL);
	assert_int_equal(errno, EINVAL);
	fake_hw.refuse_number = 43;
	fake_hw.refuse = EINVAL;
	errno = 0;
	assert_int_equal(ibv_reg_xrc_rcv_qp(domain, qpn), EINVAL);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_unreg_xrc_rcv_qp(domain, qpn), 0);
	assert_int_equal(fake_hw.latest, 44);
	assert_int_equal(ibv_close_xrc_domain(domain), 0);
}

static void bad_arguments(void **state)
{
	struct ibv_xrc_domain domain = {.context = context};
	struct ibv_qp_init_attr init = {.xrc_domain = NULL};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT};
	uint32_t qpn;

	(void)state;
	fake_hw.commands = 0;
	assert_int_equal(ibv_create_xrc_rcv_qp(NULL, &qpn), EINVAL);
	assert_int_equal(ibv_create_xrc_rcv_qp(&init, &qpn), EINVAL);
	assert_int_equal(ibv_modify_xrc_rcv_qp(NULL, 1, &attr, 1), EINVAL);
	assert_int_equal(ibv_modify_xrc_rcv_qp(&domain, 1, NULL, 1), EINVAL);
	assert_int_equal(ibv_query_xrc_rcv_qp(NULL, 1, &attr, 1, &init), EINVAL);
	assert_int_equal(ibv_reg_xrc_rcv_qp(NULL, 1), EINVAL);
	assert_int_equal(ibv_unreg_xrc_rcv_qp(NULL, 1), EINVAL);
	assert_int_equal(fake_hw.commands, 0);
}

/* The same for a provider without XRC and for a device without it. */
static void no_xrc(void **state)
{
	struct ibv_xrc_domain domain = {.context = context, .handle = 1};
	struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = 5, .max_sge = 1}};
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_XRC, .xrc_domain = &domain};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT};
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	uint32_t qpn = 7;

#define NO_OBJECT(call)                                                                            \
	do {                                                                                       \
		errno = 0;                                                                         \
		assert_null(call);                                                                 \
		assert_int_equal(errno, ENOSYS);                                                   \
	} while (0)

	(void)state;
	NO_OBJECT(ibv_open_xrc_domain(context, -1, O_CREAT));
	NO_OBJECT(ibv_create_xrc_srq(pd, &domain, cq, &srq_attr));
	NO_OBJECT(ibv_create_qp(pd, &init));
	assert_int_equal(ibv_close_xrc_domain(&domain), ENOSYS);
	assert_int_equal(ibv_create_xrc_rcv_qp(&init, &qpn), ENOSYS);
	assert_int_equal(qpn, 7);
	assert_int_equal(ibv_modify_xrc_rcv_qp(&domain, 1, &attr, 1), ENOSYS);
	assert_int_equal(ibv_query_xrc_rcv_qp(&domain, 1, &attr, 1, &init), ENOSYS);
	errno = 0;
	assert_int_equal(ibv_reg_xrc_rcv_qp(&domain, 1), ENOSYS);
	assert_int_equal(errno, ENOSYS);
	errno = 0;
	assert_int_equal(ibv_unreg_xrc_rcv_qp(&domain, 1), ENOSYS);
	assert_int_equal(errno, ENOSYS);

	srq = ibv_create_srq(pd, &srq_attr);
	assert_non_null(srq);
	init.qp_type = IBV_QPT_RC;
	init.srq = srq;
	qp = ibv_create_qp(pd, &init);
	assert_non_null(qp);
	assert_null(qp->xrc_domain);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void old_provider(void **state)
{
	no_xrc(state);
}

static void old_device(void **state)
{
	no_xrc(state);
}

/* The table of operations may lack any of them. */
static void empty_table(void **state)
{
	struct ibv_xrc_domain domain = {.context = context, .handle = 1};
	struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = 5, .max_sge = 1}};
	struct ibv_qp_init_attr init = {.xrc_domain = &domain};
	struct ibv_more_ops *full = context->more_ops, none = {0};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT};
	uint32_t qpn;

	(void)state;
	context->more_ops = &none;
	NO_OBJECT(ibv_open_xrc_domain(context, -1, O_CREAT));
	NO_OBJECT(ibv_create_xrc_srq(pd, &domain, cq, &srq_attr));
	assert_int_equal(ibv_close_xrc_domain(&domain), ENOSYS);
	assert_int_equal(ibv_create_xrc_rcv_qp(&init, &qpn), ENOSYS);
	assert_int_equal(ibv_modify_xrc_rcv_qp(&domain, 1, &attr, 1), ENOSYS);
	assert_int_equal(ibv_query_xrc_rcv_qp(&domain, 1, &attr, 1, &init), ENOSYS);
	assert_int_equal(ibv_reg_xrc_rcv_qp(&domain, 1), ENOSYS);
	errno = 0;
	assert_int_equal(ibv_unreg_xrc_rcv_qp(&domain, 1), ENOSYS);
	assert_int_equal(errno, ENOSYS);
	context->more_ops = full;
}

int main(void)
{
#define TEST(name, with) cmocka_unit_test_setup_teardown(name, with, teardown)
	static const struct CMUnitTest tests[] = {
		TEST(domains_and_queues, with_xrc),    TEST(receive_qps, with_xrc),
		TEST(bad_arguments, with_xrc),	       TEST(empty_table, with_xrc),
		TEST(old_provider, with_old_provider), TEST(old_device, with_old_device),
	};

	return cmocka_run_group_tests_name("XRC", tests, fake_group_setup, fake_group_teardown);
}
