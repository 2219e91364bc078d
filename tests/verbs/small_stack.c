// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: a thread whose stack is small (PTHREAD_STACK_MIN and 16 KiB) opens the device, makes its
 * objects, registers memory, sends, and closes all of it.
 */
#include <limits.h>
#include <pthread.h>
#include <sys/mman.h>

#include "verbs_test.h"

#define ROOM (16 << 10)
#define PAGE 4096UL
#define DEEP (256UL << 10)

static struct side s;

static void *works(void *arg)
{
	struct ibv_qp *a, *b;

	side_open(&s, 64 << 10, 16, SIDE_CHANNEL);
	a = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	b = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	connect_pair(&s, a, b);
	CHECK_EQ(post_recv1(b, &s, 1, 4096, 4096), 0);
	CHECK_EQ(post_send1(a, &s, 2, 0, 4096, IBV_SEND_SIGNALED), 0);
	expect_wc(s.scq, 2, IBV_WC_SUCCESS);
	expect_wc(s.rcq, 1, IBV_WC_SUCCESS);
	CHECK_EQ(ibv_destroy_qp(a), 0);
	CHECK_EQ(ibv_destroy_qp(b), 0);
	side_close(&s);
	return arg;
}

/* Says how deep it went, below a stack that is deep enough for anything. */
static void measures(int arg)
{
	uint8_t *mem = mmap(NULL, DEEP, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
		*at = mem;
	pthread_attr_t attr;
	pthread_t t;

	(void)arg;
	CHECK(mem != MAP_FAILED);
	CHECK_EQ(pthread_attr_init(&attr), 0);
	CHECK_EQ(pthread_attr_setstack(&attr, mem, DEEP), 0);
	CHECK_EQ(pthread_create(&t, &attr, works, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	while (!*at)
		at++;
	printf("# %zu bytes of stack used, with the thread's variables\n",
	       (size_t)(mem + DEEP - at));
	fflush(stdout);
}

static void is_small(int arg)
{
	pthread_attr_t attr;
	pthread_t t;

	(void)arg;
	CHECK_EQ(pthread_attr_init(&attr), 0);
	CHECK_EQ(pthread_attr_setstacksize(&attr, PTHREAD_STACK_MIN + ROOM), 0);
	CHECK_EQ(pthread_create(&t, &attr, works, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
}

int main(void)
{
	test_begin();
	join(spawn(measures, 0));
	join(spawn(is_small, 0));
	return 0;
}
