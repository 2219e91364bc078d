// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: each verb works on a thread whose stack is as small as a stack can be
 * (PTHREAD_STACK_MIN), and in a coroutine with the same stack in a program without threads.
 * Quick: half
 */
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "shared_memory_test.h"
#include "xrc_test.h"

#define DEEP (256UL << 10)
/* A sanitizer puts space around each variable. */
#define ROOM (SANITIZED ? 48 << 10 : 0)

static struct ibv_device **list;
static struct ibv_qp *a, *b, *ud;
static struct ibv_srq *srq, *xrc_srq;
static struct ibv_xrc_domain *domain;
static struct ibv_mr *more;
static struct ibv_ah *ah;
static struct ibv_cq *third;
static uint8_t *memory;
static uint32_t rcv_qpn;
static struct ibv_device_attr device;

static void opens(void)
{
	s.context = ibv_open_device(list[0]);
	CHECK(s.context);
	ibv_free_device_list(list);
}

static void queries(void)
{
	struct ibv_port_attr port;
	union ibv_gid gid;
	uint16_t pkey;

	CHECK_EQ(ibv_query_device(s.context, &device), 0);
	CHECK_EQ(ibv_query_port(s.context, 1, &port), 0);
	s.lid = port.lid;
	CHECK_EQ(ibv_query_gid(s.context, 1, 0, &gid), 0);
	CHECK_EQ(ibv_query_pkey(s.context, 1, 0, &pkey), 0);
}

static void allocates_pd(void)
{
	s.pd = ibv_alloc_pd(s.context);
	CHECK(s.pd);
	s.channel = ibv_create_comp_channel(s.context);
	CHECK(s.channel);
}

static void creates_cqs(void)
{
	s.rcq = ibv_create_cq(s.context, 16, &s, s.channel, 0);
	s.scq = ibv_create_cq(s.context, 16, &s, NULL, 0);
	third = ibv_create_cq(s.context, 16, &s, NULL, 0);
	CHECK(s.rcq && s.scq && third);
	CHECK_EQ(ibv_resize_cq(third, 100), 0);
}

static void registers_untouched(void)
{
	s.mr = ibv_reg_mr(s.pd, s.buf, s.size,
			  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				  IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	CHECK(s.mr);
}

static void registers_touched(void)
{
	more = ibv_reg_mr(s.pd, memory, 64 * PAGE, IBV_ACCESS_LOCAL_WRITE);
	CHECK(more);
}

static void creates_srq(void)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 16, .max_sge = 1}};
	struct ibv_srq_attr attr = {.srq_limit = 2};

	srq = ibv_create_srq(s.pd, &init);
	CHECK(srq);
	CHECK_EQ(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), 0);
	CHECK_EQ(ibv_query_srq(srq, &attr), 0);
	CHECK_EQ(post_srq1(srq, &s, 1, 0, 100), 0);
}

static void creates_qps(void)
{
	a = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	b = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	ud = make_qp(&s, IBV_QPT_UD, NULL, NULL, NULL);
}

static void connects(void)
{
	struct link l;

	connect_pair(&s, a, b);
	CHECK_EQ(real_state(a), IBV_QPS_RTS);
	link_defaults(&l, s.lid, 0);
	connect_qp(ud, &l);
}

static void sends(void)
{
	CHECK_EQ(ibv_req_notify_cq(s.rcq, 0), 0);
	CHECK_EQ(post_recv1(b, &s, 1, 8192, 8192), 0);
	CHECK_EQ(post_send1(a, &s, 2, 0, 8192, IBV_SEND_SIGNALED), 0);
	expect_wc(s.scq, 2, IBV_WC_SUCCESS);
	expect_wc(s.rcq, 1, IBV_WC_SUCCESS);
}

/* The receive comes late. */
static void sends_again(void)
{
	CHECK_EQ(post_send1(a, &s, 2, 0, 8, IBV_SEND_SIGNALED), 0);
	sleep_ms(5);
	CHECK_EQ(post_recv1(b, &s, 1, 8192, 8192), 0);
	expect_wc(s.scq, 2, IBV_WC_SUCCESS);
	expect_wc(s.rcq, 1, IBV_WC_SUCCESS);
}

static void gets_event(void)
{
	struct ibv_cq *cq;
	void *context;

	CHECK_EQ(ibv_get_cq_event(s.channel, &cq, &context), 0);
	ibv_ack_cq_events(cq, 1);
}

static void does(enum ibv_wr_opcode opcode, uint32_t len)
{
	CHECK_EQ(post_rdma1(a, &s, opcode, 3, 0, len, (uintptr_t)s.buf + 16384, s.mr->rkey,
			    IBV_SEND_SIGNALED),
		 0);
	expect_wc(s.scq, 3, IBV_WC_SUCCESS);
}

static void rdma(void)
{
	does(IBV_WR_RDMA_WRITE, 16384);
	does(IBV_WR_RDMA_READ, 16384);
	does(IBV_WR_RDMA_WRITE, 8);
}

/* From pages that are not shared where there are threads. */
static void sends_touched(void)
{
	struct ibv_sge sge = {.addr = (uintptr_t)memory, .length = 8192, .lkey = more->lkey};
	struct ibv_send_wr wr = {.wr_id = 4,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_RDMA_WRITE,
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr.rdma = {(uintptr_t)s.buf, s.mr->rkey}},
			   *bad;

	CHECK_EQ(ibv_post_send(a, &wr, &bad), 0);
	expect_wc(s.scq, 4, IBV_WC_SUCCESS);
}

static void datagrams(void)
{
	struct ibv_ah_attr attr = {.dlid = s.lid, .port_num = 1};
	union ibv_gid group = {.raw = {0xff, 0x12, 0xa0, 0x1b, 0xfe, 0x80, [15] = 9}};

	ah = ibv_create_ah(s.pd, &attr);
	CHECK(ah);
	CHECK_EQ(ibv_attach_mcast(ud, &group, 0xc005), 0);
	CHECK_EQ(ibv_detach_mcast(ud, &group, 0xc005), 0);
	CHECK_EQ(ibv_destroy_ah(ah), 0);
}

static bool has_xrc(void)
{
	return device.device_cap_flags & IBV_DEVICE_XRC;
}

static void xrc(void)
{
	if (!has_xrc())
		return;
	domain = domain_of(&s, -1);
	xrc_srq = make_xrc_srq(&s, domain, 16);
	rcv_qpn = make_rcv_qp(domain);
	CHECK_EQ(ibv_reg_xrc_rcv_qp(domain, rcv_qpn), 0);
	CHECK_EQ(ibv_unreg_xrc_rcv_qp(domain, rcv_qpn), 0);
}

static void fails(void)
{
	CHECK_EQ(to_state(b, IBV_QPS_ERR), 0);
	CHECK_EQ(post_recv1(b, &s, 5, 0, 8), 0);
	expect_wc(s.rcq, 5, IBV_WC_WR_FLUSH_ERR);
	CHECK_EQ(to_state(a, IBV_QPS_RESET), 0);
}

static void destroys(void)
{
	if (has_xrc()) {
		CHECK_EQ(ibv_destroy_srq(xrc_srq), 0);
		CHECK_EQ(ibv_close_xrc_domain(domain), 0);
	}
	CHECK_EQ(ibv_destroy_qp(a), 0);
	CHECK_EQ(ibv_destroy_qp(b), 0);
	CHECK_EQ(ibv_destroy_qp(ud), 0);
	CHECK_EQ(ibv_destroy_srq(srq), 0);
	CHECK_EQ(ibv_destroy_cq(third), 0);
	CHECK_EQ(ibv_dereg_mr(more), 0);
}

static void closes(void)
{
	side_close(&s);
}

static void nothing(void)
{
}

static const struct step {
	const char *name;
	void (*fn)(void);
} steps[] = {
	{"nothing", nothing},
	{"open", opens},
	{"query", queries},
	{"pd, channel", allocates_pd},
	{"cq", creates_cqs},
	{"reg, untouched", registers_untouched},
	{"reg, touched", registers_touched},
	{"srq", creates_srq},
	{"qp", creates_qps},
	{"connect", connects},
	{"send", sends},
	{"event", gets_event},
	{"send again", sends_again},
	{"rdma", rdma},
	{"rdma, private", sends_touched},
	{"datagrams", datagrams},
	{"xrc", xrc},
	{"error", fails},
	{"destroy, dereg", destroys},
	{"close", closes},
};
#define STEPS (sizeof(steps) / sizeof(steps[0]))

static void *stack_of(size_t size)
{
	void *mem =
		mmap(NULL, size + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(mem != MAP_FAILED);
	CHECK_EQ(mprotect(mem, PAGE, PROT_NONE), 0);
	return (uint8_t *)mem + PAGE;
}

static void *in_thread(void *arg)
{
	steps[(uintptr_t)arg].fn();
	return arg;
}

/* Says how deep it went. */
static void runs_in_thread(uintptr_t step, size_t size)
{
	uint8_t *mem = stack_of(size), *at = mem;
	pthread_attr_t attr;
	pthread_t t;

	CHECK_EQ(pthread_attr_init(&attr), 0);
	CHECK_EQ(pthread_attr_setstack(&attr, mem, size), 0);
	CHECK_EQ(pthread_create(&t, &attr, in_thread, (void *)step), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	while (!*at)
		at++;
	printf("# %s: %zu bytes of stack, with the thread's variables\n", steps[step].name,
	       (size_t)(mem + size - at));
	fflush(stdout);
	munmap(mem - PAGE, size + PAGE);
}

/* The first list of devices loads the provider: how much stack that takes is up to the loader. */
static void begin(void)
{
	int n = 0;

	list = ibv_get_device_list(&n);
	CHECK(list && n);
	s.size = 64 * PAGE;
	s.buf = mmap(NULL, s.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(s.buf != MAP_FAILED);
	memory = malloc(65 * PAGE);
	CHECK(memory);
	memset(memory, 1, 65 * PAGE);
}

static void threads(int size)
{
	begin();
	for (uintptr_t i = 0; i < STEPS; i++)
		runs_in_thread(i, (size_t)size);
}

static ucontext_t here, there;
static unsigned int step;

static void in_coroutine(void)
{
	for (;;) {
		steps[step].fn();
		CHECK_EQ(swapcontext(&there, &here), 0);
	}
}

static void coroutine(int size)
{
	uint8_t *mem = stack_of((size_t)size);

	begin();
	CHECK_EQ(getcontext(&there), 0);
	there.uc_stack.ss_sp = mem;
	there.uc_stack.ss_size = (size_t)size;
	makecontext(&there, in_coroutine, 0);
	for (step = 0; step < STEPS; step++)
		CHECK_EQ(swapcontext(&here, &there), 0);
}

int main(void)
{
	test_begin();
	/* A stack that is deep enough for anything: this shows the depth of each step. */
	join(spawn(threads, DEEP));
	join(spawn(threads, PTHREAD_STACK_MIN + ROOM));
	join(spawn(coroutine, PTHREAD_STACK_MIN + ROOM));
	return 0;
}
