// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: a signal handler posts from an alternate stack of the size that docs/softhca.md
 * names, also where it is the first post of its thread: SEND, RDMA WRITE, XRC SEND, a receive, the
 * arming of a CQ. The page below the stack cannot be touched. A handler may leave the stack with
 * siglongjmp(). One that opens a file needs no more than SIGSTKSZ has been for decades.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "xrc_test.h"

#define PAGE   4096UL
#define LEN    64
#define ROUNDS 3
/*
 * Beside the frames of signals: what docs/softhca.md says. A sanitizer puts space around each
 * variable.
 */
#define ROOM (SANITIZED ? 48UL << 10 : 1024UL)
/* The stack that shows how deep each operation goes. */
#define DEEP (64UL << 10)

static struct side s;
static struct ibv_qp *a, *b, *sender;
static struct ibv_srq *srq;
static struct ibv_xrc_domain *domain;
static uint32_t rcv_qpn;
static bool xrc, jumps;
static sigjmp_buf back;
static volatile sig_atomic_t result;

static int sends(void)
{
	return post_send1(a, &s, 1, 0, LEN, IBV_SEND_SIGNALED);
}

static int writes(void)
{
	return post_rdma1(a, &s, IBV_WR_RDMA_WRITE, 1, 0, LEN, (uintptr_t)s.buf + PAGE, s.mr->rkey,
			  IBV_SEND_SIGNALED);
}

static int sends_xrc(void)
{
	return post_xrc(sender, &s, 1, 0, LEN, srq->xrc_srq_num, IBV_SEND_SIGNALED);
}

static int receives(void)
{
	return post_recv1(b, &s, 2, PAGE, LEN);
}

static int arms(void)
{
	return ibv_req_notify_cq(s.rcq, 0);
}

enum { SEND, WRITE, XRC_SEND, RECEIVE, ARM, OPERATIONS };
static const struct operation {
	const char *name;
	int (*fn)(void);
	bool completes, takes_receive;
} operations[OPERATIONS] = {
	[SEND] = {"SEND", sends, true, true},
	[WRITE] = {"RDMA WRITE", writes, true, false},
	[XRC_SEND] = {"XRC SEND", sends_xrc, true, false},
	[RECEIVE] = {"receive", receives, false, false},
	[ARM] = {"arm", arms, false, false},
};
static const struct operation *now;

static void on_signal(int sig)
{
	(void)sig;
	result = now->fn();
	if (jumps)
		siglongjmp(back, 1);
}

static void opens(void)
{
	struct ibv_device_attr device;
	struct link l;

	side_open(&s, 64 * PAGE, 64, SIDE_CHANNEL);
	a = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	b = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	connect_pair(&s, a, b);
	CHECK_EQ(ibv_query_device(s.context, &device), 0);
	xrc = device.device_cap_flags & IBV_DEVICE_XRC;
	if (!xrc)
		return;
	domain = domain_of(&s, -1);
	srq = make_xrc_srq(&s, domain, 16);
	rcv_qpn = make_rcv_qp(domain);
	sender = make_qp(&s, IBV_QPT_XRC, NULL, domain, NULL);
	link_defaults(&l, s.lid, sender->qp_num);
	connect_rcv(domain, rcv_qpn, &l);
	link_defaults(&l, s.lid, rcv_qpn);
	connect_qp(sender, &l);
}

static void completes(void)
{
	if (!now->completes)
		return;
	CHECK_EQ(result, 0);
	expect_wc(s.scq, 1, IBV_WC_SUCCESS);
}

static uint8_t *alternate(size_t size)
{
	uint8_t *mem = mmap(NULL, size + 2 * PAGE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack_t stack = {.ss_sp = mem + PAGE, .ss_size = size};
	struct sigaction act = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};

	CHECK(mem != MAP_FAILED);
	CHECK_EQ(mprotect(mem, PAGE, PROT_NONE), 0);
	CHECK_EQ(sigaltstack(&stack, NULL), 0);
	CHECK_EQ(sigaction(SIGUSR1, &act, NULL), 0);
	return mem + PAGE;
}

/* The first operation of the process is done in the handler. */
static void does(const struct operation *what, size_t size)
{
	uint8_t *mem, *at;

	opens();
	if (what == &operations[XRC_SEND] && !xrc)
		return;
	if (what->takes_receive)
		for (unsigned int i = 0; i < 2 * ROUNDS + 1; i++)
			CHECK_EQ(post_recv1(b, &s, 2, PAGE, LEN), 0);
	if (what == &operations[XRC_SEND])
		for (unsigned int i = 0; i < 2 * ROUNDS + 1; i++)
			CHECK_EQ(post_srq1(srq, &s, 2, PAGE, LEN), 0);
	now = what;
	mem = alternate(size);
	/* The loader takes kilobytes of the stack of who calls it first. */
	if (!sigsetjmp(back, 1))
		siglongjmp(back, 1);
	for (unsigned int i = 0; i < ROUNDS; i++) {
		CHECK_EQ(raise(SIGUSR1), 0);
		completes();
	}
	for (at = mem; !*at; at++)
		;
	if (size >= DEEP)
		printf("# %s: %zu bytes of stack\n", what->name, (size_t)(mem + size - at));
	fflush(stdout);
	jumps = true;
	for (volatile unsigned int i = 0; i < ROUNDS; i++) {
		if (!sigsetjmp(back, 1))
			raise(SIGUSR1);
		completes();
	}
	/* And on the stack of the thread. */
	result = what->fn();
	completes();
}

static void shows(int i)
{
	does(&operations[i], DEEP);
}

static size_t frame(void)
{
#ifdef AT_MINSIGSTKSZ
	unsigned long is = getauxval(AT_MINSIGSTKSZ);
#else
	unsigned long is = 0;
#endif

	return is ? is : MINSIGSTKSZ;
}

static void does_in_small(int i)
{
	const char *mmio = getenv("SOFTHCA_MMIO");

	CHECK(mmio);
	/* In trap the store to the doorbell is a signal, too. */
	does(&operations[i], frame() * (!strcmp(mmio, "trap") ? 2 : 1) + ROOM);
}

/* A handler of a crash opens its log so. */
static int uses_files(void)
{
	struct stat st;
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	bool good = fd >= 0 && write(fd, "", 1) == 1 && !stat("/tmp", &st);

	return close(fd) == 0 && good ? 0 : EIO;
}

static const struct operation files = {"files", uses_files, false, false};

static void does_files(int size)
{
	opens();
	now = &files;
	/* Not from the loader's first call, see above. */
	CHECK_EQ(uses_files(), 0);
	alternate((size_t)size);
	result = -1;
	CHECK_EQ(raise(SIGUSR1), 0);
	CHECK_EQ(result, 0);
}

int main(void)
{
	test_begin();
	for (int i = 0; i < OPERATIONS; i++)
		join(spawn(shows, i));
	for (int i = 0; i < OPERATIONS; i++)
		join(spawn(does_in_small, i));
	/* A larger frame fits into no stack of that size anyway. */
	if (!SANITIZED && frame() <= 3584)
		join(spawn(does_files, 8192));
	return 0;
}
