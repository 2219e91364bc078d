// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: receive QPs on a mainline kernel: the program names them by number, the kernel by
 * handle. A context registers once. A context that is not registered modifies and queries through a
 * handle that it closes afterwards. Events are those of the legacy API.
 */
#include "fake_mainline.h"

#include <poll.h>

#define QPN 0x800123

static struct ibv_xrc_domain domain;
static int event_fds[2];

static int setup(void **state)
{
	mainline_setup(state);
	if (pipe2(event_fds, O_CLOEXEC))
		return -1;
	context.async_fd = event_fds[0];
	return mainline_open(&domain, -1, O_CREAT);
}

static int teardown(void **state)
{
	close(event_fds[1]);
	return mainline_teardown(state);
}

/* Returns the handle of the receive QP. */
static uint32_t create(void)
{
	struct ibv_qp_init_attr init = {.xrc_domain = &domain};
	uint32_t qpn = 0;

	assert_int_equal(ibv_cmd_create_xrc_rcv_qp(&init, &qpn), 0);
	assert_int_equal(qpn, QPN);
	return mainline.next_handle;
}

static void creation(void **state)
{
	/* As MPI libraries call it: with a domain; the rest means nothing. */
	struct ibv_qp_init_attr init = {
		.send_cq = &send_cq,
		.recv_cq = &recv_cq,
		.srq = &srq,
		.sq_sig_all = 1,
		.cap = {.max_send_wr = 7,
			.max_recv_wr = 7,
			.max_send_sge = 7,
			.max_recv_sge = 7,
			.max_inline_data = 7},
		.xrc_domain = &domain,
	};
	uint64_t user_handle;
	uint32_t qpn = 7;

	(void)state;
	cmd_check_refusals(ibv_cmd_create_xrc_rcv_qp(&init, &qpn));
	assert_int_equal(qpn, 7);
	mainline_forget();
	/* The write that came back short did make a receive QP. */
	mainline.open_qps = 0;

	assert_int_equal(ibv_cmd_create_xrc_rcv_qp(&init, &qpn), 0);
	assert_int_equal(qpn, QPN);
	user_handle = field_get(mainline.bytes[0], 16, 8);
	assert_int_equal(user_handle & 1, 1);
	mainline_expect(0, CREATE_QP, 64, 32, U64(16, user_handle), U32(24, domain.handle),
			U8(60, 1), U8(61, 10));
	mainline_forget();

	assert_int_equal(ibv_cmd_close_xrc_domain(&domain), EBUSY);
	assert_int_equal(ibv_cmd_reg_xrc_rcv_qp(&domain, QPN), 0);
	mainline_silent();

	assert_int_equal(ibv_cmd_unreg_xrc_rcv_qp(&domain, QPN), 0);
	mainline_expect(0, DESTROY_QP, 24, 4, U32(16, mainline.next_handle));
	mainline_forget();
	assert_int_equal(mainline.open_qps, 0);

	assert_int_equal(ibv_cmd_unreg_xrc_rcv_qp(&domain, QPN), EINVAL);
	assert_int_equal(errno, EINVAL);
	mainline_silent();
	assert_int_equal(ibv_cmd_close_xrc_domain(&domain), 0);
}

static void registration(void **state)
{
	static const int errors[] = {EINVAL, EBUSY, EPERM};
	uint64_t user_handle;
	unsigned int i;

	(void)state;
	mainline.refuse_number = OPEN_QP;
	mainline.refuse = EINVAL;
	assert_int_equal(ibv_cmd_reg_xrc_rcv_qp(&domain, QPN), EINVAL);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_cmd_unreg_xrc_rcv_qp(&domain, QPN), EINVAL);
	mainline_commands(OPEN_QP);

	assert_int_equal(ibv_cmd_reg_xrc_rcv_qp(&domain, QPN), 0);
	user_handle = field_get(mainline.bytes[0], 16, 8);
	assert_int_equal(user_handle & 1, 1);
	mainline_expect(0, OPEN_QP, 40, 32, U64(16, user_handle), U32(24, domain.handle),
			U32(28, QPN), U8(32, 10));
	mainline_forget();
	/* Registering again changes nothing. */
	assert_int_equal(ibv_cmd_reg_xrc_rcv_qp(&domain, QPN), 0);
	mainline_silent();
	assert_int_equal(ibv_cmd_close_xrc_domain(&domain), EBUSY);

	/* Each failure to unregister is EINVAL, and the context stays registered, */
	for (i = 0; i < 3; ++i) {
		mainline.refuse_number = DESTROY_QP;
		mainline.refuse = errors[i];
		assert_int_equal(ibv_cmd_unreg_xrc_rcv_qp(&domain, QPN), EINVAL);
		assert_int_equal(errno, EINVAL);
	}
	/* unless the device is gone. */
	mainline.refuse = EIO;
	assert_int_equal(ibv_cmd_unreg_xrc_rcv_qp(&domain, QPN), EIO);

	mainline_forget();
	assert_int_equal(ibv_cmd_unreg_xrc_rcv_qp(&domain, QPN), 0);
	assert_int_equal(ibv_cmd_unreg_xrc_rcv_qp(&domain, QPN), EINVAL);
	mainline_commands(DESTROY_QP);
	assert_int_equal(mainline.open_qps, 0);

	/* Registering once more takes another user handle. */
	assert_int_equal(ibv_cmd_reg_xrc_rcv_qp(&domain, QPN), 0);
	assert_true(field_get(mainline.bytes[0], 16, 8) != user_handle);
}

/* Some kernels crash when OPEN_QP names a domain that they do not know. */
static void domains_not_open(void **state)
{
	struct ibv_xrc_domain other = {.context = &context, .handle = domain.handle + 1};
	struct ibv_qp_init_attr init = {.xrc_domain = &other};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT};
	struct ibv_xrc_domain closed;
	uint32_t qpn;

	(void)state;
	assert_int_equal(mainline_open(&closed, -1, 0), 0);
	assert_int_equal(ibv_cmd_close_xrc_domain(&closed), 0);
	mainline_forget();
	assert_int_equal(ibv_cmd_reg_xrc_rcv_qp(&closed, QPN), EINVAL);
	assert_int_equal(ibv_cmd_create_xrc_rcv_qp(&init, &qpn), EINVAL);
	assert_int_equal(ibv_cmd_reg_xrc_rcv_qp(&other, QPN), EINVAL);
	assert_int_equal(ibv_cmd_unreg_xrc_rcv_qp(&other, QPN), EINVAL);
	assert_int_equal(ibv_cmd_modify_xrc_rcv_qp(&other, QPN, &attr, IBV_QP_STATE), EINVAL);
	assert_int_equal(ibv_cmd_query_xrc_rcv_qp(&other, QPN, &attr, 0, &init), EINVAL);
	mainline_silent();
}

static void modify(void **state)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR, .dest_qp_num = 0x77, .ah_attr = {.dlid = 3}};
	uint32_t handle = create();

	(void)state;
	mainline_forget();
	assert_int_equal(ibv_cmd_modify_xrc_rcv_qp(&domain, QPN, &attr,
						   IBV_QP_STATE | IBV_QP_AV | IBV_QP_DEST_QPN),
			 0);
	mainline_expect(0, MODIFY_QP, 120, 0, U16(28, 3), U32(72, handle), U32(76, 0x100081),
			U32(92, 0x77), U8(104, 2));
	mainline_commands(MODIFY_QP);

	/* This context has no handle of this QP, so the library opens one for the call. */
	assert_int_equal(ibv_cmd_modify_xrc_rcv_qp(&domain, QPN + 1, &attr, IBV_QP_STATE), 0);
	handle = mainline.next_handle;
	mainline_expect(0, OPEN_QP, 40, 32, U64(16, 1), U32(24, domain.handle), U32(28, QPN + 1),
			U8(32, 10));
	assert_int_equal(field_get(mainline.bytes[1], 72, 4), handle);
	assert_int_equal(field_get(mainline.bytes[2], 16, 4), handle);
	mainline_commands(OPEN_QP, MODIFY_QP, DESTROY_QP);
	assert_int_equal(mainline.open_qps, 1);

	mainline.refuse_number = MODIFY_QP;
	mainline.refuse = EINVAL;
	assert_int_equal(ibv_cmd_modify_xrc_rcv_qp(&domain, QPN + 1, &attr, IBV_QP_STATE), EINVAL);
	mainline_commands(OPEN_QP, MODIFY_QP, DESTROY_QP);

	mainline.refuse_number = OPEN_QP;
	mainline.refuse = EINVAL;
	assert_int_equal(ibv_cmd_modify_xrc_rcv_qp(&domain, QPN + 2, &attr, IBV_QP_STATE), EINVAL);
	mainline_commands(OPEN_QP);

	/* That was not a registration. */
	assert_int_equal(ibv_cmd_unreg_xrc_rcv_qp(&domain, QPN + 1), EINVAL);
	assert_int_equal(mainline.open_qps, 1);
}

#define RD	  IBV_QP_MAX_QP_RD_ATOMIC
#define RETRY	  IBV_QP_RETRY_CNT
#define RNR_RETRY IBV_QP_RNR_RETRY

/*
 * Attributes of the sending direction: the library accepts them where an OFED kernel does, and
 * never passes them on.
 */
static void attributes(void **state)
{
	static const struct {
		int to, mask;
		int ret;
	} cases[] = {
		{IBV_QPS_INIT, IBV_QP_STATE | IBV_QP_PORT, 0},
		{IBV_QPS_INIT, IBV_QP_STATE | IBV_QP_PORT | RETRY, EINVAL},
		{IBV_QPS_RTR, IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER, 0},
		{IBV_QPS_RTR, IBV_QP_STATE | RD, EINVAL},
		{IBV_QPS_RTS,
		 IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | RD | RETRY | RNR_RETRY, 0},
		{IBV_QPS_RTS, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | RD | RETRY, EINVAL},
		{IBV_QPS_RTS, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT, EINVAL},
		{IBV_QPS_RTS, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS, 0},
		{IBV_QPS_RTS, IBV_QP_STATE | RNR_RETRY, EINVAL},
		{0, IBV_QP_TIMEOUT | RETRY | RNR_RETRY, 0},
		{IBV_QPS_ERR, IBV_QP_STATE, 0},
		{IBV_QPS_ERR, IBV_QP_STATE | RD, EINVAL},
	};
	struct ibv_qp_attr attr;
	unsigned int i;

	(void)state;
	create();
	mainline_forget();
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
		memset(&attr, 0, sizeof(attr));
		attr.qp_state = cases[i].to;
		if (ibv_cmd_modify_xrc_rcv_qp(&domain, QPN, &attr, cases[i].mask) != cases[i].ret)
			fail_msg("case %u: not %d", i, cases[i].ret);
		if (cases[i].ret) {
			mainline_silent();
			continue;
		}
		assert_int_equal(field_get(mainline.bytes[0], 76, 4),
				 cases[i].mask & ~(RD | RETRY | RNR_RETRY));
		mainline_commands(MODIFY_QP);
	}
}

static void query(void **state)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	uint32_t handle = create();

	(void)state;
	mainline_forget();
	memset(&init, 0xee, sizeof(init));
	memset(&attr, 0, sizeof(attr));
	assert_int_equal(ibv_cmd_query_xrc_rcv_qp(&domain, QPN, &attr, 0x33, &init), 0);
	mainline_expect(0, QUERY_QP, 24, 128, U32(16, handle), U32(20, 0x33));
	mainline_forget();
	assert_int_equal(attr.rq_psn, 0x999);
	assert_int_equal(attr.qp_state, 2);
	assert_int_equal(init.sq_sig_all, 1);
	assert_int_equal(init.cap.max_send_wr, 0);
	assert_int_equal((uintptr_t)init.send_cq & 0xff, 0xee);

	assert_int_equal(ibv_cmd_query_xrc_rcv_qp(&domain, QPN + 1, &attr, 0, &init), 0);
	mainline_commands(OPEN_QP, QUERY_QP, DESTROY_QP);

	attr.rq_psn = 1;
	mainline.refuse_number = QUERY_QP;
	mainline.refuse = EPERM;
	assert_int_equal(ibv_cmd_query_xrc_rcv_qp(&domain, QPN + 1, &attr, 0, &init), EPERM);
	assert_int_equal(attr.rq_psn, 1);
	mainline_commands(OPEN_QP, QUERY_QP, DESTROY_QP);
}

/* A context gets two handles on one domain by opening its file twice. */
static void two_handles(void **state)
{
	struct srq_cmd {
		struct ibv_create_xrc_srq core;
	} cmd;
	struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = 1, .max_sge = 1}};
	struct ibv_create_srq_resp resp;
	struct ibv_xrc_domain first, second, another;
	FILE *file = tmpfile(), *other_file = tmpfile();

	(void)state;
	assert_non_null(file);
	assert_non_null(other_file);
	assert_int_equal(mainline_open(&first, fileno(file), O_CREAT), 0);
	assert_int_equal(mainline_open(&second, fileno(file), O_CREAT), 0);
	assert_int_equal(mainline_open(&another, fileno(other_file), O_CREAT), 0);

	/*
	 * The registration belongs to the context. It keeps the handle through which it was made.
	 */
	assert_int_equal(ibv_cmd_reg_xrc_rcv_qp(&first, QPN), 0);
	assert_int_equal(ibv_cmd_reg_xrc_rcv_qp(&second, QPN), 0);
	mainline_commands(OPEN_QP);
	assert_int_equal(ibv_cmd_close_xrc_domain(&first), EBUSY);
	assert_int_equal(ibv_cmd_unreg_xrc_rcv_qp(&another, QPN), EINVAL);
	assert_int_equal(ibv_cmd_unreg_xrc_rcv_qp(&second, QPN), 0);
	assert_int_equal(ibv_cmd_unreg_xrc_rcv_qp(&first, QPN), EINVAL);
	mainline_commands(DESTROY_QP);

	/* An SRQ of the domain keeps both handles. */
	assert_int_equal(ibv_cmd_create_xrc_srq(&pd, &srq, &srq_attr, first.handle, 1, &cmd.core,
						sizeof(cmd), &resp, sizeof(resp)),
			 0);
	assert_int_equal(ibv_cmd_close_xrc_domain(&second), EBUSY);
	assert_int_equal(ibv_cmd_close_xrc_domain(&first), EBUSY);
	mainline_commands(CREATE_XSRQ);
	assert_int_equal(ibv_cmd_close_xrc_domain(&another), 0);
	assert_int_equal(ibv_cmd_destroy_srq(&srq), 0);
	assert_int_equal(ibv_cmd_close_xrc_domain(&second), 0);
	assert_int_equal(ibv_cmd_close_xrc_domain(&first), 0);
	mainline_commands(CLOSE_XRCD, DESTROY_SRQ, CLOSE_XRCD, CLOSE_XRCD);

	fclose(file);
	fclose(other_file);
}

static void raise_event(uint64_t element, uint32_t type)
{
	uint64_t record[2] = {element, type};

	assert_int_equal(write(event_fds[1], record, sizeof(record)), sizeof(record));
}

static uint64_t last_user_handle(void)
{
	return field_get(mainline.bytes[mainline.commands - 1], 16, 8);
}

static void events(void **state)
{
	static const int types[] = {
		IBV_EVENT_QP_FATAL,	IBV_EVENT_QP_REQ_ERR,	       IBV_EVENT_QP_ACCESS_ERR,
		IBV_EVENT_COMM_EST,	IBV_EVENT_SQ_DRAINED,	       IBV_EVENT_PATH_MIG,
		IBV_EVENT_PATH_MIG_ERR, IBV_EVENT_QP_LAST_WQE_REACHED,
	};
	struct ibv_async_event event;
	uint64_t created, registered;
	unsigned int i;

	(void)state;
	create();
	created = last_user_handle();
	assert_int_equal(ibv_cmd_reg_xrc_rcv_qp(&domain, QPN + 256), 0);
	registered = last_user_handle();
	assert_true(created != registered);

	for (i = 0; i < sizeof(types) / sizeof(types[0]); ++i) {
		raise_event(created, types[i]);
		raise_event(registered, types[i]);
		assert_int_equal(ibv_get_async_event(&context, &event), 0);
		assert_int_equal((uint32_t)event.event_type, 0x80000000u | types[i]);
		assert_int_equal(event.element.xrc_qp_num, QPN);
		ibv_ack_async_event(&event);
		assert_int_equal(ibv_get_async_event(&context, &event), 0);
		assert_int_equal(event.element.xrc_qp_num, QPN + 256);
	}

	/* Other events stay as they are, even those with an odd number. */
	raise_event(PTR(&qp), IBV_EVENT_COMM_EST);
	raise_event(1, IBV_EVENT_PORT_ACTIVE);
	raise_event(PTR(&srq), IBV_EVENT_SRQ_LIMIT_REACHED);
	raise_event(PTR(&send_cq), IBV_EVENT_CQ_ERR);
	assert_int_equal(ibv_get_async_event(&context, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_COMM_EST);
	assert_ptr_equal(event.element.qp, &qp);
	ibv_ack_async_event(&event);
	assert_int_equal(qp.events_completed, 1);
	assert_int_equal(ibv_get_async_event(&context, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_PORT_ACTIVE);
	assert_int_equal(event.element.port_num, 1);
	assert_int_equal(ibv_get_async_event(&context, &event), 0);
	assert_ptr_equal(event.element.srq, &srq);
	assert_int_equal(ibv_get_async_event(&context, &event), 0);
	assert_ptr_equal(event.element.cq, &send_cq);
}

/*
 * The library drops events of a registration that has ended, or of a handle that was not a
 * registration.
 */
static void late_events(void **state)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT};
	struct ibv_async_event event;
	uint64_t before, after;

	(void)state;
	create();
	before = last_user_handle();
	assert_int_equal(ibv_cmd_unreg_xrc_rcv_qp(&domain, QPN), 0);
	assert_int_equal(ibv_cmd_reg_xrc_rcv_qp(&domain, QPN), 0);
	after = last_user_handle();
	mainline_forget();
	assert_int_equal(ibv_cmd_modify_xrc_rcv_qp(&domain, QPN + 1, &attr, IBV_QP_STATE), 0);

	raise_event(before, IBV_EVENT_COMM_EST);
	raise_event(field_get(mainline.bytes[0], 16, 8), IBV_EVENT_COMM_EST);
	raise_event(after, IBV_EVENT_QP_FATAL);
	assert_int_equal(ibv_get_async_event(&context, &event), 0);
	assert_int_equal((uint32_t)event.event_type, 0x80000000u | IBV_EVENT_QP_FATAL);
	assert_int_equal(event.element.xrc_qp_num, QPN);

	raise_event(before, IBV_EVENT_COMM_EST);
	fcntl(context.async_fd, F_SETFL, O_NONBLOCK);
	assert_int_equal(ibv_get_async_event(&context, &event), -1);
	assert_int_equal(errno, EAGAIN);
}

enum { THREADS = 4, ROUNDS = 2000 };

static void *register_much(void *arg)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT};
	uint32_t own = QPN + 10 + (uintptr_t)arg;
	int i;

	/*
	 * One QP of the thread's own, and one that all threads use: the library lets only one of
	 * them ask the kernel at a time.
	 */
	for (i = 0; i < ROUNDS; ++i) {
		if (ibv_cmd_reg_xrc_rcv_qp(&domain, own) || ibv_cmd_reg_xrc_rcv_qp(&domain, QPN))
			return "cannot register";
		ibv_cmd_unreg_xrc_rcv_qp(&domain, QPN);
		if (ibv_cmd_modify_xrc_rcv_qp(&domain, QPN, &attr, IBV_QP_STATE))
			return "cannot modify";
		if (ibv_cmd_unreg_xrc_rcv_qp(&domain, own))
			return "cannot unregister";
	}
	return NULL;
}

static void threads(void **state)
{
	pthread_t thread[THREADS];
	uintptr_t i;
	void *what;

	(void)state;
	for (i = 0; i < THREADS; ++i)
		assert_int_equal(pthread_create(&thread[i], NULL, register_much, (void *)i), 0);
	for (i = 0; i < THREADS; ++i) {
		pthread_join(thread[i], &what);
		if (what)
			fail_msg("%s", (char *)what);
	}
	assert_int_equal(mainline.open_qps, 0);
	assert_int_equal(ibv_cmd_close_xrc_domain(&domain), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	static const struct CMUnitTest tests[] = {
		TEST(creation),	   TEST(registration), TEST(domains_not_open), TEST(modify),
		TEST(attributes),  TEST(query),	       TEST(two_handles),      TEST(events),
		TEST(late_events), TEST(threads),
	};

	return cmocka_run_group_tests_name("XRC receive QPs on mainline", tests, cmd_group_setup,
					   cmd_group_teardown);
}
