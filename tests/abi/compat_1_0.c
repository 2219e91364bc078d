// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: every call of IBVERBS_1.0, as a program of its time makes it, reaches the provider's
 * current objects and returns the program's own: contexts of objects and events, work requests
 * however long the chain is, and channels.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fake_provider.h"
#include "verbs_1_0.h"

/* The programs of prog.h do not use these. */
struct ibv_async_event {
	union {
		struct ibv_cq *cq;
		struct ibv_qp *qp;
		struct ibv_srq *srq;
		int port_num;
	} element;
	int event_type;
};

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event);
void ibv_ack_async_event(struct ibv_async_event *event);
int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid);
int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid);
V1_0(ibv_get_async_event);
V1_0(ibv_ack_async_event);
V1_0(ibv_attach_mcast);
V1_0(ibv_detach_mcast);

/*
 * What the library keeps behind the visible part of each object: a pointer to the current one. The
 * sizes of pointers, and of the C library's mutex and condition variable, depend on the processor:
 * mutex and condition variable have 24 and 48 bytes on i386, 48 and 48 on arm64.
 */
#if defined(__i386__)
enum { CQ_END = 96, QP_END = 116, SRQ_END = 92, AH_END = 12 };
#elif defined(__aarch64__)
enum { CQ_END = 128, QP_END = 168, SRQ_END = 136, AH_END = 24 };
#else
enum { CQ_END = 120, QP_END = 160, SRQ_END = 128, AH_END = 24 };
#endif
#define REAL(object, offset) (*(void **)((char *)(object) + (offset)))
#define REAL_CQ(cq)	     REAL(cq, CQ_END)
#define REAL_QP(qp)	     REAL(qp, QP_END)
#define REAL_SRQ(srq)	     REAL(srq, SRQ_END)
#define REAL_AH(ah)	     REAL(ah, AH_END)

static struct ibv_device *device;
static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_comp_channel *channel;
static struct ibv_cq *cq, *cq2;
static struct ibv_srq *srq;
static struct ibv_qp *rc, *ud;
static int cq_tag, cq2_tag, srq_tag, rc_tag, ud_tag;

static int group_setup(void **state)
{
	struct ibv_device **list, **again;
	int n = -1;

	(void)state;
	fake_provider_start();
	list = ibv_get_device_list(&n);
	assert_non_null(list);
	assert_int_equal(n, 1);
	assert_null(list[1]);
	device = list[0];

	/* Each list has the same device, which stays when the lists are freed. */
	again = ibv_get_device_list(NULL);
	assert_non_null(again);
	assert_ptr_equal(again[0], device);
	ibv_free_device_list(again);
	ibv_free_device_list(list);
	assert_string_equal(ibv_get_device_name(device), "fake_0");
	assert_true(__builtin_bswap64(ibv_get_device_guid(device)) == 0x0002c90300010203);
	return 0;
}

static int group_teardown(void **state)
{
	(void)state;
	fake_provider_stop();
	return 0;
}

static struct ibv_qp *make_qp(enum ibv_qp_type type, struct ibv_srq *with_srq, void *tag)
{
	struct ibv_qp_init_attr attr = {
		.qp_context = tag,
		.send_cq = cq,
		.recv_cq = cq2,
		.srq = with_srq,
		.cap = {10, 20, 3, 4, 0},
		.qp_type = type,
		.sq_sig_all = 1,
	};
	struct ibv_qp *qp = ibv_create_qp(pd, &attr);

	assert_non_null(qp);
	assert_int_equal(attr.cap.max_send_wr, 13);
	assert_int_equal(attr.cap.max_recv_wr, 23);
	return qp;
}

static int setup(void **state)
{
	struct ibv_srq_init_attr srq_attr = {.srq_context = &srq_tag,
					     .attr = {.max_wr = 50, .max_sge = 1}};

	(void)state;
	fake_hw.refuse = 0;
	fake_hw.refuse_request = -1;
	fake_hw.num_posted = fake_hw.post_calls = 0;
	fake_hw.comp_reported = fake_hw.async_reported = 0;

	context = ibv_open_device(device);
	assert_non_null(context);
	pd = ibv_alloc_pd(context);
	assert_non_null(pd);
	channel = ibv_create_comp_channel(context);
	assert_non_null(channel);
	cq = ibv_create_cq(context, 100, &cq_tag, channel, 1);
	cq2 = ibv_create_cq(context, 100, &cq2_tag, NULL, 0);
	assert_non_null(cq);
	assert_non_null(cq2);
	srq = ibv_create_srq(pd, &srq_attr);
	assert_non_null(srq);
	assert_int_equal(srq_attr.attr.max_wr, 57);
	assert_ptr_equal(srq_attr.srq_context, &srq_tag);
	rc = make_qp(IBV_QPT_RC, NULL, &rc_tag);
	ud = make_qp(IBV_QPT_UD, srq, &ud_tag);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	fake_hw.comp_reported = fake_hw.async_reported = 0;
	assert_int_equal(ibv_destroy_qp(rc), 0);
	assert_int_equal(ibv_destroy_qp(ud), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_destroy_cq(cq2), 0);
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_close_device(context), 0);
	return 0;
}

static void objects_as_the_program_knows_them(void **state)
{
	(void)state;
	assert_ptr_equal(context->device, device);
	assert_true(fcntl(context->cmd_fd, F_GETFD) >= 0);
	assert_true(fcntl(context->async_fd, F_GETFD) >= 0);
	assert_int_equal(context->num_comp_vectors, 2);
	assert_ptr_equal(pd->context, context);
	assert_ptr_equal(cq->context, context);
	assert_ptr_equal(cq->cq_context, &cq_tag);
	assert_int_equal(cq->cqe, 100);
	assert_ptr_equal(srq->context, context);
	assert_ptr_equal(srq->srq_context, &srq_tag);
	assert_ptr_equal(srq->pd, pd);
	assert_ptr_equal(rc->context, context);
	assert_ptr_equal(rc->qp_context, &rc_tag);
	assert_ptr_equal(rc->pd, pd);
	assert_ptr_equal(rc->send_cq, cq);
	assert_ptr_equal(rc->recv_cq, cq2);
	assert_null(rc->srq);
	assert_ptr_equal(ud->srq, srq);
	assert_int_equal(rc->qp_type, IBV_QPT_RC);
	assert_true(rc->qp_num > 0x100 && rc->qp_num != ud->qp_num);
	/* Other operations than the five are missing. */
	assert_null(context->ops.before_poll_cq[0]);
	assert_null(context->ops.after_post_recv[3]);
}

static void queries(void **state)
{
	struct ibv_device_attr device_attr;
	struct {
		struct ibv_port_attr attr;
		uint8_t behind;
	} port;
	struct ibv_srq_attr srq_attr;
	union ibv_gid gid;
	uint16_t pkey;

	(void)state;
	memset(&device_attr, 0xee, sizeof(device_attr));
	assert_int_equal(ibv_query_device(context, &device_attr), 0);
	assert_int_equal(device_attr.fw_ver[0], 0);

	memset(&port, 0xee, sizeof(port));
	assert_int_equal(ibv_query_port(context, 1, &port.attr), 0);
	assert_int_equal(port.attr.state, IBV_PORT_ACTIVE);
	assert_int_equal(port.behind, 0xee);

	/* sysfs has no such files. */
	assert_int_equal(ibv_query_gid(context, 1, 0, &gid), -1);
	assert_int_equal(ibv_query_pkey(context, 1, 0, &pkey), -1);

	assert_int_equal(ibv_query_srq(srq, &srq_attr), 0);
	assert_int_equal(srq_attr.max_wr, 77);
	assert_int_equal(ibv_modify_srq(srq, &srq_attr, 1), 0);
	assert_int_equal(fake_hw.latest, 33);
	assert_int_equal(ibv_resize_cq(cq, 200), 0);
	assert_int_equal(fake_hw.latest, 19);
}

static void query_qp(void **state)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	(void)state;
	fake_hw.next_qp_state = IBV_QPS_RTS;
	memset(&init, 0xee, sizeof(init));
	/* A QP without an SRQ, */
	assert_int_equal(ibv_query_qp(rc, &attr, IBV_QP_STATE, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_RTS);
	assert_ptr_equal(init.qp_context, &rc_tag);
	assert_ptr_equal(init.send_cq, cq);
	assert_ptr_equal(init.recv_cq, cq2);
	assert_null(init.srq);
	assert_int_equal(init.qp_type, IBV_QPT_RC);
	assert_int_equal(init.cap.max_send_wr, 0x3333);
	assert_int_equal(init.sq_sig_all, 1);
	assert_int_equal(rc->state, IBV_QPS_RTS);
	/* and one with an SRQ. */
	assert_int_equal(ibv_query_qp(ud, &attr, IBV_QP_STATE, &init), 0);
	assert_ptr_equal(init.srq, srq);

	memset(&init, 0xee, sizeof(init));
	fake_hw.refuse_number = 25;
	fake_hw.refuse = EPERM;
	assert_int_equal(ibv_query_qp(ud, &attr, IBV_QP_STATE, &init), EPERM);
	assert_int_equal((uintptr_t)init.srq & 0xff, 0xee);

	attr.qp_state = IBV_QPS_RESET;
	assert_int_equal(ibv_modify_qp(rc, &attr, IBV_QP_STATE), 0);
	assert_int_equal(rc->state, IBV_QPS_RESET);
}

static void regions_and_handles(void **state)
{
	struct ibv_ah_attr attr = {.dlid = 1, .port_num = 1};
	union ibv_gid gid = {.raw = {0xff}};
	char buffer[100];
	struct ibv_mr *mr;
	struct ibv_ah *ah;

	(void)state;
	mr = ibv_reg_mr(pd, buffer, sizeof(buffer), 1);
	assert_non_null(mr);
	assert_ptr_equal(mr->context, context);
	assert_ptr_equal(mr->pd, pd);
	assert_true(mr->lkey > 0x1000 && mr->rkey == mr->lkey + 0x1000);
	/* If the kernel refuses, the region stays. */
	fake_hw.refuse_number = 13;
	fake_hw.refuse = EBUSY;
	assert_int_equal(ibv_dereg_mr(mr), EBUSY);
	assert_int_equal(ibv_dereg_mr(mr), 0);

	ah = ibv_create_ah(pd, &attr);
	assert_non_null(ah);
	assert_ptr_equal(ah->context, context);
	assert_ptr_equal(ah->pd, pd);
	assert_int_equal(ibv_destroy_ah(ah), 0);

	assert_int_equal(ibv_attach_mcast(ud, &gid, 0xc000), 0);
	assert_int_equal(fake_hw.latest, 30);
	assert_int_equal(ibv_detach_mcast(ud, &gid, 0xc000), 0);
	assert_int_equal(fake_hw.latest, 31);
}

static void creates_that_fail(void **state)
{
	struct ibv_qp_init_attr qp_attr = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC};
	struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = 1}};
	struct ibv_ah_attr ah_attr = {.dlid = 1};
	char buffer[10];

#define FAILS(number, call)                                                                        \
	do {                                                                                       \
		fake_hw.refuse_number = number;                                                    \
		fake_hw.refuse = EMFILE;                                                           \
		errno = 0;                                                                         \
		assert_null(call);                                                                 \
		assert_int_equal(errno, EMFILE);                                                   \
	} while (0)

	(void)state;
	FAILS(3, ibv_alloc_pd(context));
	FAILS(9, ibv_reg_mr(pd, buffer, sizeof(buffer), 0));
	FAILS(17, ibv_create_comp_channel(context));
	FAILS(18, ibv_create_cq(context, 1, NULL, channel, 0));
	FAILS(32, ibv_create_srq(pd, &srq_attr));
	FAILS(24, ibv_create_qp(pd, &qp_attr));
	FAILS(5, ibv_create_ah(pd, &ah_attr));

	/* An object that the kernel refused to destroy can still be destroyed. */
	fake_hw.refuse_number = 20;
	fake_hw.refuse = EBUSY;
	assert_int_equal(ibv_destroy_cq(cq2), EBUSY);
	fake_hw.refuse_number = 35;
	fake_hw.refuse = EBUSY;
	assert_int_equal(ibv_destroy_srq(srq), EBUSY);
	fake_hw.refuse_number = 27;
	fake_hw.refuse = EBUSY;
	assert_int_equal(ibv_destroy_qp(rc), EBUSY);
	fake_hw.refuse_number = 4;
	fake_hw.refuse = EBUSY;
	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
}

#define CHAIN 100

static void post_send(void **state)
{
	struct ibv_send_wr wr[CHAIN], *bad;
	struct ibv_sge sge;
	int i, stop;

	(void)state;
	memset(wr, 0, sizeof(wr));
	for (i = 0; i < CHAIN; ++i) {
		wr[i].wr_id = 7000 + i;
		wr[i].next = i + 1 < CHAIN ? &wr[i + 1] : NULL;
		wr[i].sg_list = &sge + i;
		wr[i].num_sge = i % 3;
		wr[i].opcode = i % 7;
		wr[i].send_flags = i % 16;
		wr[i].imm_data = 0x12340000 + i;
		wr[i].wr.atomic.remote_addr = 0x100000000 + i;
		wr[i].wr.atomic.compare_add = 0x200000000 + i;
		wr[i].wr.atomic.swap = 0x300000000 + i;
		wr[i].wr.atomic.rkey = 0x4000 + i;
	}

	bad = NULL;
	assert_int_equal(ibv_post_send(rc, wr, &bad), 0);
	assert_null(bad);
	assert_ptr_equal(fake_hw.posted_to, REAL_QP(rc));
	assert_int_equal(fake_hw.num_posted, CHAIN);
	for (i = 0; i < CHAIN; ++i) {
		const struct fake_posted *posted = &fake_hw.posted[i];

		assert_true(posted->wr_id == wr[i].wr_id);
		assert_ptr_equal(posted->sg_list, wr[i].sg_list);
		assert_int_equal(posted->num_sge, wr[i].num_sge);
		assert_int_equal(posted->opcode, wr[i].opcode);
		assert_int_equal(posted->send_flags, wr[i].send_flags);
		assert_int_equal(posted->imm_data, wr[i].imm_data);
		assert_true(posted->remote_addr == wr[i].wr.atomic.remote_addr);
		assert_true(posted->compare_add == wr[i].wr.atomic.compare_add);
		assert_true(posted->swap == wr[i].wr.atomic.swap);
		assert_int_equal(posted->rkey, wr[i].wr.atomic.rkey);
		assert_int_equal(posted->xrc_srq_num, 0);
	}

	/*
	 * Wherever the provider stops, bad_wr is the program's own request, and no request behind
	 * it is posted.
	 */
	for (stop = 0; stop < CHAIN; ++stop) {
		fake_hw.num_posted = 0;
		fake_hw.refuse_request = stop;
		bad = NULL;
		assert_int_equal(ibv_post_send(rc, wr, &bad), ENOMEM);
		assert_ptr_equal(bad, &wr[stop]);
		assert_int_equal(fake_hw.num_posted, stop);
	}

	fake_hw.post_calls = 0;
	assert_int_equal(ibv_post_send(rc, NULL, &bad), 0);
}

static void post_send_ud(void **state)
{
	struct ibv_ah_attr attr = {.dlid = 1, .port_num = 1};
	struct ibv_ah *ah = ibv_create_ah(pd, &attr);
	struct ibv_send_wr wr = {.wr_id = 1, .opcode = IBV_WR_SEND}, *bad;

	(void)state;
	assert_non_null(ah);
	memcpy(&wr.wr, &ah, sizeof(ah));
	((uint32_t *)&wr.wr)[sizeof(ah) / 4 + 1] = 0x1234;
	assert_int_equal(ibv_post_send(ud, &wr, &bad), 0);
	assert_ptr_equal(fake_hw.posted[0].ah, REAL_AH(ah));
	assert_int_equal(fake_hw.posted[0].rkey, 0x1234);
	assert_int_equal(ibv_destroy_ah(ah), 0);
}

static void check_receives(int to_srq)
{
	struct ibv_recv_wr wr[CHAIN], *bad;
	struct ibv_sge sge;
	int i, stop;

	for (i = 0; i < CHAIN; ++i) {
		wr[i].wr_id = 9000 + i;
		wr[i].next = i + 1 < CHAIN ? &wr[i + 1] : NULL;
		wr[i].sg_list = &sge + i;
		wr[i].num_sge = i % 3;
	}

	for (stop = 0; stop <= CHAIN; ++stop) {
		fake_hw.num_posted = 0;
		fake_hw.refuse_request = stop;
		bad = NULL;
		assert_int_equal(to_srq ? ibv_post_srq_recv(srq, wr, &bad)
					: ibv_post_recv(rc, wr, &bad),
				 stop < CHAIN ? ENOMEM : 0);
		assert_ptr_equal(bad, stop < CHAIN ? &wr[stop] : NULL);
		assert_int_equal(fake_hw.num_posted, stop);
	}
	assert_ptr_equal(fake_hw.posted_to, to_srq ? REAL_SRQ(srq) : REAL_QP(rc));
	for (i = 0; i < CHAIN; ++i) {
		assert_true(fake_hw.posted[i].wr_id == wr[i].wr_id);
		assert_ptr_equal(fake_hw.posted[i].sg_list, wr[i].sg_list);
		assert_int_equal(fake_hw.posted[i].num_sge, wr[i].num_sge);
	}
}

static void post_recv(void **state)
{
	(void)state;
	check_receives(0);
	check_receives(1);
}

static void polling(void **state)
{
	struct ibv_wc wc[4];

	(void)state;
	fake_hw.num_completions = 3;
	assert_int_equal(ibv_poll_cq(cq2, 4, wc), 3);
	assert_ptr_equal(fake_hw.posted_to, REAL_CQ(cq2));
	assert_true(wc[2].wr_id == 102);
	assert_int_equal(wc[2].byte_len, 1002);

	assert_int_equal(ibv_req_notify_cq(cq, 1), 0);
	assert_ptr_equal(fake_hw.posted_to, REAL_CQ(cq));
	assert_int_equal(fake_hw.notified, 1);
}

static void completion_events(void **state)
{
	struct ibv_comp_channel *other;
	struct ibv_cq *got;
	void *tag;

	(void)state;
	/* The descriptor is the first member of a channel of 1.0. */
	assert_true(fcntl(channel->fd, F_GETFD) >= 0);
	fake_comp_event((uintptr_t)REAL_CQ(cq));
	fake_comp_event((uintptr_t)REAL_CQ(cq));
	fake_hw.cq_events = 0;
	assert_int_equal(ibv_get_cq_event(channel, &got, &tag), 0);
	assert_ptr_equal(got, cq);
	assert_ptr_equal(tag, &cq_tag);
	assert_int_equal(ibv_get_cq_event(channel, &got, &tag), 0);
	assert_int_equal(fake_hw.cq_events, 2);

	assert_int_equal(fcntl(channel->fd, F_SETFL, O_NONBLOCK), 0);
	got = NULL;
	assert_int_equal(ibv_get_cq_event(channel, &got, &tag), -1);
	assert_int_equal(errno, EAGAIN);
	assert_null(got);

	assert_int_equal(ibv_destroy_comp_channel(channel), EBUSY);
	ibv_ack_cq_events(cq, 2);
	/* If the library did not count these events, the calls would wait for ever. */
	assert_int_equal(ibv_destroy_qp(rc), 0);
	assert_int_equal(ibv_destroy_qp(ud), 0);
	fake_hw.comp_reported = 2;
	assert_int_equal(ibv_destroy_cq(cq), 0);
	fake_hw.comp_reported = 0;

	other = ibv_create_comp_channel(context);
	assert_non_null(other);
	assert_ptr_not_equal(other, channel);
	assert_int_equal(ibv_destroy_comp_channel(other), 0);

	cq = ibv_create_cq(context, 100, &cq_tag, NULL, 1);
	assert_non_null(cq);
	rc = make_qp(IBV_QPT_RC, NULL, &rc_tag);
	ud = make_qp(IBV_QPT_UD, srq, &ud_tag);
}

static void check_event(int type, uint64_t element, void *is)
{
	struct ibv_async_event event;

	fake_async_event(element, type);
	memset(&event, 0xee, sizeof(event));
	assert_int_equal(ibv_get_async_event(context, &event), 0);
	assert_int_equal(event.event_type, type);
	assert_ptr_equal(event.element.cq, is);
	ibv_ack_async_event(&event);
	assert_ptr_equal(event.element.cq, is);
}

static void async_events(void **state)
{
	static const int qp_types[] = {1, 2, 3, 4, 5, 6, 7, 16};
	struct pollfd pfd = {.fd = context->async_fd, .events = POLLIN};
	size_t i;

	(void)state;
	check_event(0, (uintptr_t)REAL_CQ(cq2), cq2);
	for (i = 0; i < sizeof(qp_types) / sizeof(qp_types[0]); ++i)
		check_event(qp_types[i], (uintptr_t)REAL_QP(ud), ud);
	check_event(14, (uintptr_t)REAL_SRQ(srq), srq);
	check_event(15, (uintptr_t)REAL_SRQ(srq), srq);

	/* A port's number is not an object, nor is the number of an XRC QP. */
	assert_int_equal(poll(&pfd, 1, 0), 0);
	fake_async_event(2, 9);
	assert_int_equal(poll(&pfd, 1, 0), 1);
	fake_async_event(0x800123, 0x80000000 | 16);
	for (i = 0; i < 2; ++i) {
		struct ibv_async_event event;

		assert_int_equal(ibv_get_async_event(context, &event), 0);
		assert_int_equal(event.element.port_num, i ? 0x800123 : 2);
		ibv_ack_async_event(&event);
	}

	/*
	 * The library has counted each event once, for the program's own object. Otherwise these
	 * calls would wait for ever.
	 */
	fake_hw.async_reported = 8;
	assert_int_equal(ibv_destroy_qp(ud), 0);
	fake_hw.async_reported = 2;
	assert_int_equal(ibv_destroy_srq(srq), 0);
	fake_hw.async_reported = 0;
	assert_int_equal(ibv_destroy_qp(rc), 0);
	fake_hw.async_reported = 1;
	assert_int_equal(ibv_destroy_cq(cq2), 0);
	fake_hw.async_reported = 0;

	cq2 = ibv_create_cq(context, 100, &cq2_tag, NULL, 0);
	assert_non_null(cq2);
	srq = ibv_create_srq(pd, &(struct ibv_srq_init_attr){.attr = {.max_wr = 1}});
	assert_non_null(srq);
	rc = make_qp(IBV_QPT_RC, NULL, &rc_tag);
	ud = make_qp(IBV_QPT_UD, srq, &ud_tag);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	static const struct CMUnitTest tests[] = {
		TEST(objects_as_the_program_knows_them),
		TEST(queries),
		TEST(query_qp),
		TEST(regions_and_handles),
		TEST(creates_that_fail),
		TEST(post_send),
		TEST(post_send_ud),
		TEST(post_recv),
		TEST(polling),
		TEST(completion_events),
		TEST(async_events),
	};

	return cmocka_run_group_tests_name("IBVERBS_1.0", tests, group_setup, group_teardown);
}
