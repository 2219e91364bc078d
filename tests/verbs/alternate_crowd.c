// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: more threads than softhca has stacks of its own post at once from handlers on
 * alternate stacks of the size that docs/softhca.md names. Nothing is written below them, and all
 * messages arrive.
 * Quick: half
 */
#include <pthread.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "verbs_test.h"

#define PAGE	4096UL
#define LEN	64
#define THREADS 24
#define POSTS	(SANITIZED ? 100 : 1000)
#define ROOM	(SANITIZED ? 48UL << 10 : 1024UL) /* as in alternate_stack.c */

static struct one {
	struct side s;
	struct ibv_qp *a, *b;
	pthread_t thread;
} one[THREADS];
static __thread struct one *self;
static __thread int result;

static void on_signal(int sig)
{
	(void)sig;
	result = post_send1(self->a, &self->s, 1, 0, LEN, IBV_SEND_SIGNALED);
}

static void *work(void *arg)
{
	/* In trap the store to the doorbell is a signal, too. */
	size_t frames = !strcmp(getenv("SOFTHCA_MMIO"), "trap") ? 2 : 1;
	stack_t stack = {.ss_size = (frames * getauxval(AT_MINSIGSTKSZ) + ROOM + 15) & ~15UL};
	size_t pages = (stack.ss_size + PAGE - 1) / PAGE;
	uint8_t *mem;

	self = arg;
	mem = mmap(NULL, (pages + 1) * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		   -1, 0);
	CHECK(mem != MAP_FAILED);
	CHECK_EQ(mprotect(mem, PAGE, PROT_NONE), 0);
	stack.ss_sp = mem + PAGE;
	CHECK_EQ(sigaltstack(&stack, NULL), 0);
	for (int i = 0; i < POSTS; i++) {
		CHECK_EQ(post_recv1(self->b, &self->s, 2, PAGE, LEN), 0);
		raise(SIGUSR1);
		CHECK_EQ(result, 0);
		expect_wc(self->s.scq, 1, IBV_WC_SUCCESS);
		expect_wc(self->s.rcq, 2, IBV_WC_SUCCESS);
	}
	return NULL;
}

int main(void)
{
	struct sigaction act = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};

	test_begin();
	for (int i = 0; i < THREADS; i++) {
		side_open(&one[i].s, 2 * PAGE, 16, 0);
		one[i].a = make_qp(&one[i].s, IBV_QPT_RC, NULL, NULL, NULL);
		one[i].b = make_qp(&one[i].s, IBV_QPT_RC, NULL, NULL, NULL);
		connect_pair(&one[i].s, one[i].a, one[i].b);
	}
	CHECK_EQ(sigaction(SIGUSR1, &act, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&one[i].thread, NULL, work, &one[i]), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(one[i].thread, NULL), 0);
	return 0;
}
