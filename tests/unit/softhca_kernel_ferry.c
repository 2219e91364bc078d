// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Copies that the daemon makes for threads which the kernel does not let reach into a process: it
 * reaches what the process has registered, and its queues, for a thread that is in device code, and
 * nothing else, whatever another process has written to device memory.
 */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>

#include "softhca/device/memory/exec.h"
#include "softhca/device/memory/lock.h"
#include "softhca/host/ferry.h"
#include "softhca/host/process.h"
#include "softhca/host/witness.h"
#include "softhca/kernel/ferry.h"
#include "softhca/kernel/uverbs/commands.h"
#include "softhca_kernel.h"

#define PAGE 4096

/* The second page is registered. */
static char area[3 * PAGE] __attribute__((aligned(PAGE)));

static struct kt *begin(struct kctx **ctx, uint32_t *mr)
{
	struct kt *t = kt_start(SH_FACE_MAINLINE, 1, 1);
	uint32_t pd, key;

	*ctx = kt_open(t, 0);
	assert_int_equal(kt_pd(t, *ctx, &pd), 0);
	assert_int_equal(
		kt_mr(t, *ctx, pd, area + PAGE, PAGE, SH_LOCAL_WRITE | SH_REMOTE_WRITE, mr, &key),
		0);
	t->proc->user.mem = sh_witness_open(getpid(), t->proc->user.witness);
	assert_true(t->proc->user.mem > 0);
	memset(area, 0, sizeof(area));
	ferry_begin(&t->k);
	return t;
}

static void end(struct kt *t, struct kctx *ctx)
{
	ferry_end(&t->k);
	ctx_release(ctx);
	kt_stop(t);
}

/* A thread that asks. */
static struct asker {
	struct kt *t;
	bool enters, out, over;
	uint32_t proc;
	uint64_t witness;
	struct iovec local, remote;
	long result;
} asker;

static void *ask(void *arg)
{
	struct asker *a = arg;
	struct sh_dev *dev = &a->t->k.dev;

	if (a->enters)
		(void)sh_enter(dev);
	a->result = sh_ferry(a->proc, a->witness, a->out, &a->local, 1, &a->remote);
	if (a->enters)
		sh_leave(dev);
	__atomic_store_n(&a->over, true, __ATOMIC_RELEASE);
	return NULL;
}

static void prepare(struct kt *t, bool out, void *theirs, void *mine, size_t len)
{
	asker.t = t;
	asker.enters = true;
	asker.over = false;
	asker.out = out;
	asker.proc = t->proc->slot;
	asker.witness = t->proc->user.witness;
	asker.local = (struct iovec){mine, len};
	asker.remote = (struct iovec){theirs, len};
}

static long answer(void)
{
	struct kt *t = asker.t;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, ask, &asker), 0);
	while (!__atomic_load_n(&asker.over, __ATOMIC_ACQUIRE)) {
		ferry_serve(&t->k);
		sched_yield();
	}
	pthread_join(thread, NULL);
	return asker.result;
}

static long put(struct kt *t, void *to, const char *text, size_t len)
{
	prepare(t, true, to, (void *)text, len);
	return answer();
}

static long get(struct kt *t, void *from, char *text, size_t len)
{
	prepare(t, false, from, text, len);
	return answer();
}

static void registered(void **state)
{
	struct uv_handle dereg;
	struct kctx *ctx;
	char text[8];
	uint32_t mr;
	struct kt *t = begin(&ctx, &mr);

	(void)state;
	assert_int_equal(put(t, area + PAGE, "abcdefgh", 8), 8);
	assert_memory_equal(area + PAGE, "abcdefgh", 8);
	assert_int_equal(get(t, area + PAGE + 4, text, 4), 4);
	assert_memory_equal(text, "efgh", 4);
	assert_int_equal(put(t, area + 2 * PAGE - 8, "abcdefgh", 8), 8);
	assert_int_equal(put(t, area + 2 * PAGE - 7, "abcdefgh", 8), -EFAULT);
	assert_int_equal(put(t, area + PAGE - 1, "abcdefgh", 8), -EFAULT);
	assert_int_equal(put(t, area, "abcdefgh", 8), -EFAULT);
	assert_int_equal(get(t, area, text, 8), -EFAULT);
	assert_int_equal(area[0] | area[PAGE - 1] | area[2 * PAGE], 0);

	dereg = (struct uv_handle){.handle = mr};
	assert_int_equal(kt_cmd(t, ctx, UV_DEREG_MR, &dereg, sizeof(dereg), 0), 0);
	assert_int_equal(put(t, area + PAGE, "ABCDEFGH", 8), -EFAULT);
	assert_memory_equal(area + PAGE, "abcdefgh", 8);
	end(t, ctx);
}

/* A registration that nobody may write to is read only, though the daemon could. */
static void read_only(void **state)
{
	struct kctx *ctx;
	uint32_t mr, pd, key;
	char text[8];
	struct kt *t = begin(&ctx, &mr);

	(void)state;
	assert_int_equal(kt_pd(t, ctx, &pd), 0);
	assert_int_equal(kt_mr(t, ctx, pd, area, PAGE, 0, &mr, &key), 0);
	memcpy(area, "abcdefgh", 8);
	assert_int_equal(put(t, area, "ABCDEFGH", 8), -EFAULT);
	assert_memory_equal(area, "abcdefgh", 8);
	assert_int_equal(get(t, area, text, 8), 8);
	assert_memory_equal(text, "abcdefgh", 8);
	assert_int_equal(kt_mr(t, ctx, pd, area, PAGE, SH_LOCAL_WRITE, &mr, &key), 0);
	assert_int_equal(put(t, area, "ABCDEFGH", 8), 8);
	assert_memory_equal(area, "ABCDEFGH", 8);
	end(t, ctx);
}

static void queues(void **state)
{
	struct kt_queue cq;
	struct kctx *ctx;
	char text[8];
	uint32_t mr;
	struct kt *t = begin(&ctx, &mr);

	(void)state;
	t->k.cfg.copy_queues = true;
	assert_int_equal(kt_cq(t, ctx, 8, -1, &cq), 0);
	assert_int_equal(get(t, cq.mem, text, 8), 8);
	assert_int_equal(get(t, cq.mem + cq.len - PAGE, text, 8), 8); /* doorbell records */
	ferry_end(&t->k);
	ferry_begin(&t->k);
	ctx_release(ctx);
	assert_int_equal(get(t, cq.mem, text, 8), -EFAULT);
	kt_queue_free(&cq);
	ferry_end(&t->k);
	kt_stop(t);
}

static void another(void **state)
{
	struct kctx *ctx;
	uint32_t mr;
	struct kt *t = begin(&ctx, &mr);

	(void)state;
	prepare(t, true, area + PAGE, "x", 1);
	asker.witness += PAGE;
	assert_int_equal(answer(), -ESRCH);
	prepare(t, true, area + PAGE, "x", 1);
	asker.proc++;
	assert_int_equal(answer(), -ESRCH);
	prepare(t, true, area + PAGE, "x", 1);
	asker.proc = UINT32_MAX;
	assert_int_equal(answer(), -ESRCH);
	close(t->proc->user.mem);
	t->proc->user.mem = 0;
	assert_int_equal(put(t, area + PAGE, "x", 1), -EPERM);
	assert_int_equal(area[PAGE], 0);
	end(t, ctx);
}

static void inside(void **state)
{
	struct kctx *ctx;
	uint32_t mr;
	struct kt *t = begin(&ctx, &mr);

	(void)state;
	prepare(t, true, area + PAGE, "message", 8);
	asker.enters = false;
	assert_int_equal(answer(), -ESRCH);
	assert_int_equal(area[PAGE], 0);
	asker.enters = true;
	asker.over = false;
	assert_int_equal(answer(), 8);
	assert_string_equal(area + PAGE, "message");
	end(t, ctx);
}

/* What other processes can write there is no use to them. */
static void forged(void **state)
{
	struct kctx *ctx;
	uint32_t mr;
	struct kt *t = begin(&ctx, &mr);
	struct sh_ferries *all = sh_at(&t->k.dev, SH_FERRIES_OFF);
	struct sh_ferry *f = &all->ferry[3];
	static const struct {
		uint64_t asker, page;
		uint32_t len;
		int32_t result;
	} no[] = {
		{0, 1, 8, -ESRCH},  {UINT64_MAX, 1, 8, -ESRCH},	       {1, 1, 8, -ESRCH},
		{1, 1, 0, -EFAULT}, {1, 1, SH_FERRY_MAX + 1, -EFAULT}, {1, 1, UINT32_MAX, -EFAULT},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++) {
		f->proc = t->proc->slot;
		f->witness = t->proc->user.witness;
		f->addr = (uintptr_t)area + PAGE * no[i].page;
		f->out = 1;
		f->len = no[i].len;
		f->asker = no[i].asker;
		*(char *)sh_at(&t->k.dev, SH_FERRY_DATA_OFF + 3 * SH_FERRY_MAX) = 'x';
		f->state = SH_FERRY_ASKED;
		all->asked[0] |= 1 << 3;
		ferry_serve(&t->k);
		assert_int_equal(f->state, SH_FERRY_DONE);
		assert_int_equal(f->result, no[i].result);
		assert_int_equal(area[PAGE], 0);
	}
	end(t, ctx);
}

/* How many threads ask now, and the place of one of them. */
static unsigned int asking(struct kt *t, struct sh_ferry **one)
{
	struct sh_ferries *all = sh_at(&t->k.dev, SH_FERRIES_OFF);
	unsigned int n = 0;

	for (int i = 0; i < SH_MAX_EXEC; i++) {
		if (__atomic_load_n(&all->ferry[i].state, __ATOMIC_ACQUIRE) != SH_FERRY_ASKED)
			continue;
		n++;
		if (one)
			*one = &all->ferry[i];
	}
	return n;
}

/* Nor do others make a thread take more than it has asked for. */
static void untrue(void **state)
{
	struct sh_ferry *f = NULL;
	char text[] = "unchanged";
	pthread_t thread;
	struct kctx *ctx;
	uint32_t mr;
	struct kt *t = begin(&ctx, &mr);

	(void)state;
	prepare(t, false, area + PAGE, text, 4);
	assert_int_equal(pthread_create(&thread, NULL, ask, &asker), 0);
	while (!asking(t, &f))
		sched_yield();
	f->len = PAGE;
	f->result = PAGE;
	__atomic_store_n(&f->state, SH_FERRY_DONE, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &f->state, FUTEX_WAKE, 1, NULL, NULL, 0);
	pthread_join(thread, NULL);
	assert_int_equal(asker.result, -EFAULT);
	assert_string_equal(text, "unchanged");
	end(t, ctx);
}

#define CROWD 40
static int held, released;

static void hold(int sig)
{
	(void)sig;
	__atomic_fetch_add(&held, 1, __ATOMIC_SEQ_CST);
	while (!__atomic_load_n(&released, __ATOMIC_SEQ_CST))
		usleep(1000);
}

/* Threads that are stopped while they ask, however many, are in nobody's way. */
static void stopped(void **state)
{
	static struct asker crowd[CROWD];
	pthread_t thread[CROWD];
	struct kctx *ctx;
	uint32_t mr;
	struct kt *t = begin(&ctx, &mr);

	(void)state;
	signal(SIGUSR1, hold);
	for (int i = 0; i < CROWD; i++) {
		prepare(t, true, area + PAGE + 8 * (i + 1), "stopped", 8);
		crowd[i] = asker;
		assert_int_equal(pthread_create(&thread[i], NULL, ask, &crowd[i]), 0);
	}
	while (asking(t, NULL) < CROWD)
		sched_yield();
	for (int i = 0; i < CROWD; i++)
		pthread_kill(thread[i], SIGUSR1);
	while (__atomic_load_n(&held, __ATOMIC_SEQ_CST) < CROWD)
		sched_yield();
	ferry_serve(&t->k);
	assert_int_equal(put(t, area + PAGE, "message", 8), 8);
	assert_string_equal(area + PAGE, "message");
	__atomic_store_n(&released, 1, __ATOMIC_SEQ_CST);
	for (int i = 0; i < CROWD; i++) {
		pthread_join(thread[i], NULL);
		assert_int_equal(crowd[i].result, 8);
		assert_string_equal(area + PAGE + 8 * (i + 1), "stopped");
	}
	end(t, ctx);
}

/* The thread that had the slot before was killed while it asked, before the daemon knew of it. */
static void killed(void **state)
{
	struct kctx *ctx;
	uint32_t mr;
	struct kt *t = begin(&ctx, &mr);
	struct sh_ferries *all = sh_at(&t->k.dev, SH_FERRIES_OFF);

	(void)state;
	for (int i = 0; i < SH_MAX_EXEC; i++) {
		all->ferry[i].asker = UINT64_MAX;
		all->ferry[i].state = SH_FERRY_ASKED;
	}
	assert_int_equal(put(t, area + PAGE, "message", 8), 8);
	assert_string_equal(area + PAGE, "message");
	end(t, ctx);
}

/* A thread that waits when the daemon ends goes on. */
static void closed(void **state)
{
	pthread_t thread;
	struct kctx *ctx;
	uint32_t mr;
	struct kt *t = begin(&ctx, &mr);

	(void)state;
	prepare(t, true, area + PAGE, "message", 8);
	assert_int_equal(pthread_create(&thread, NULL, ask, &asker), 0);
	while (!asking(t, NULL))
		sched_yield();
	ferry_end(&t->k);
	pthread_join(thread, NULL);
	assert_int_equal(asker.result, -EPERM);
	assert_int_equal(area[PAGE], 0);
	end(t, ctx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(registered), cmocka_unit_test(read_only), cmocka_unit_test(queues),
		cmocka_unit_test(another),    cmocka_unit_test(inside),	   cmocka_unit_test(forged),
		cmocka_unit_test(untrue),     cmocka_unit_test(stopped),   cmocka_unit_test(killed),
		cmocka_unit_test(closed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
