// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Commands that fail half-way leave nothing behind. Each access to the client's memory and each
 * allocation fails once. Device memory runs out. The client cannot map the pages that it was given.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>
#include <cmocka.h>

#include "softhca/device/memory/event.h"
#include "softhca/kernel/uverbs/queue.h"
#include "softhca/kernel/uverbs/uverbs-abi.h"
#include "softhca/kernel/window.h"
#include "softhca_kernel.h"

static char page[4096] __attribute__((aligned(4096)));

/* ---- every access of every command fails once, and nothing stays ---- */

enum made { MAKE_PD, MAKE_MR, MAKE_CHANNEL, MAKE_CQ, MAKE_SRQ, MAKE_QP, MAKE_XRCD, MAKE_KINDS };

static int make(struct kt *t, struct kctx *ctx, enum made what, uint32_t pd, uint32_t cq, int *fd,
		struct kt_queue *q)
{
	uint32_t handle, key;

	switch (what) {
	case MAKE_PD:
		return kt_pd(t, ctx, &handle);
	case MAKE_MR:
		return kt_mr(t, ctx, pd, page, 4096, SH_LOCAL_WRITE, &handle, &key);
	case MAKE_CHANNEL:
		return kt_channel(t, ctx, fd);
	case MAKE_CQ:
		return kt_cq(t, ctx, 200, -1, q);
	case MAKE_SRQ:
		return kt_srq(t, ctx, pd, 100, 2, q);
	case MAKE_QP:
		return kt_qp(t, ctx, UV_QPT_RC, pd, cq, -1, q);
	case MAKE_XRCD:
		return kt_xrcd(t, ctx, -1, O_CREAT, &handle);
	default:
		return -1;
	}
}

/*
 * The n-th allocation from now fails; 0: none does. The linker redirects the kernel's allocations
 * here.
 */
static int heap_countdown;

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);

static bool heap_fails(void)
{
	return heap_countdown && !--heap_countdown;
}

void *__wrap_malloc(size_t size)
{
	return heap_fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return heap_fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
	return heap_fails() ? NULL : __real_realloc(p, size);
}

/*
 * Every allocation of every command fails once. Either the command succeeds without that
 * allocation, or it fails with ENOMEM and leaves nothing.
 */
static void no_heap(void **state)
{
	struct kt *t = kt_start(SH_FACE_OFED, 1, 1);
	struct kctx *ctx = kt_open(t, 0);
	int kind, n, err, fd = -1, refused;
	uint32_t pd, scq = 0;

	(void)state;
	assert_int_equal(kt_pd(t, ctx, &pd), 0);
	for (kind = 0; kind < MAKE_KINDS; kind++) {
		refused = 0;
		for (n = 1;; n++) {
			struct kt_state before = kt_state(t), after;
			struct kt_queue q = {.mem = NULL};
			bool failed;

			assert_true(n < 100);
			heap_countdown = n;
			err = make(t, ctx, kind, pd, scq, &fd, &q);
			failed = !heap_countdown;
			heap_countdown = 0;
			if (!err && kind == MAKE_CHANNEL)
				close(fd);
			if (!err && kind == MAKE_CQ)
				scq = q.handle;
			if (!failed) {
				assert_int_equal(err, 0);
				break;
			}
			if (!err)
				continue;
			assert_int_equal(err, ENOMEM);
			after = kt_state(t);
			assert_true(kt_same(&before, &after));
			refused++;
		}
		assert_true(refused > 0);
	}
	kt_stop(t);
}

/* Destroying a CQ needs no heap. Its own records go. Those of its neighbour stay, in order. */
static void no_heap_for_events(void **state)
{
	struct kt *t = kt_start(SH_FACE_OFED, 1, 1);
	struct kctx *ctx = kt_open(t, 0);
	struct uv_destroy_cq_resp resp;
	struct uv_object destroy = {.response = (uintptr_t)&resp};
	struct kt_queue a, b;
	uint64_t record;
	int fd, i;

	(void)state;
	assert_int_equal(kt_channel(t, ctx, &fd), 0);
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(kt_cq(t, ctx, 10, fd, &a), 0);
	assert_int_equal(kt_cq(t, ctx, 10, fd, &b), 0);
	for (i = 0; i < 3; i++) {
		sh_comp_event(&t->k.dev, 0, b.number);
		sh_comp_event(&t->k.dev, 0, a.number);
	}
	destroy.handle = a.handle;
	heap_countdown = 1;
	assert_int_equal(kt_cmd(t, ctx, UV_DESTROY_CQ, &destroy, sizeof(destroy), sizeof(resp)), 0);
	heap_countdown = 0;
	assert_int_equal(resp.comp_events_reported, 0);
	for (i = 0; i < 3; i++) {
		assert_int_equal(read(fd, &record, 8), 8);
		assert_int_equal(record, b.user_handle);
	}
	assert_int_equal(read(fd, &record, 8), -1);
	destroy.handle = b.handle;
	assert_int_equal(kt_cmd(t, ctx, UV_DESTROY_CQ, &destroy, sizeof(destroy), sizeof(resp)), 0);
	assert_int_equal(resp.comp_events_reported, 3);
	close(fd);
	kt_queue_free(&a);
	kt_queue_free(&b);
	kt_stop(t);
}

static void faults(void **state)
{
	int copy, kind, n, write, err, fd = -1;

	(void)state;
	for (copy = 0; copy < 2; copy++) {
		struct kt *t = kt_start(SH_FACE_OFED, 1, 1);
		struct kctx *ctx = kt_open(t, 0);
		struct kt_queue cq, q;
		uint32_t pd;

		t->k.cfg.copy_queues = copy;
		assert_int_equal(kt_pd(t, ctx, &pd), 0);
		assert_int_equal(kt_cq(t, ctx, 10, -1, &cq), 0);
		for (kind = 0; kind < MAKE_KINDS; kind++)
			for (write = 0; write < 2; write++)
				for (n = 1;; n++) {
					struct kt_state before = kt_state(t), after;

					assert_true(n < 100);
					*(write ? &t->fault_writes : &t->fault_reads) = n;
					q.mem = NULL;
					err = make(t, ctx, kind, pd, cq.handle, &fd, &q);
					t->fault_reads = t->fault_writes = 0;
					if (!err)
						break;
					assert_int_equal(err, EFAULT);
					after = kt_state(t);
					assert_true(kt_same(&before, &after));
				}
		close(fd);
		kt_stop(t);
	}
}

/* ---- device memory runs out ---- */

/*
 * Takes all pages of the pool, including those of the window around an address. Returns a page that
 * lies in no window. rest: the pages of the window.
 */
static uint64_t use_pool_up(struct kt *t, const void *near, uint64_t rest[POOL_UNIT])
{
	uint64_t size = POOL_UNIT * K_PAGE, begin = (uintptr_t)near & ~(size - 1), off, last = 0;

	while (pool_claim_unit(&t->k.pool) != UINT64_MAX)
		;
	while ((off = pool_get(&t->k.pool, 1)))
		last = off;
	for (unsigned int i = 0; i < POOL_UNIT; i++)
		rest[i] = pages_get(&t->k, t->proc, begin + i * K_PAGE, 1);
	assert_true(last);
	return last;
}

static void no_memory(void **state)
{
	struct kt *t = kt_start(SH_FACE_OFED, 1, 1);
	struct kctx *ctx = kt_open(t, 0);
	struct kt_queue cq, q;
	struct kt_state before, after;
	uint32_t pd;
	uint64_t last, rest[POOL_UNIT];

	(void)state;
	assert_int_equal(kt_pd(t, ctx, &pd), 0);
	assert_int_equal(kt_cq(t, ctx, 10, -1, &cq), 0);
	last = use_pool_up(t, cq.mem, rest);
	pool_put(&t->k.pool, last, 1);
	before = kt_state(t);
	/* One page is left: for the buffer or for the doorbell record, but not for both. */
	assert_int_equal(kt_qp(t, ctx, UV_QPT_RC, pd, cq.handle, -1, &q), ENOMEM);
	assert_int_equal(kt_cq(t, ctx, 10, -1, &q), ENOMEM);
	assert_int_equal(kt_srq(t, ctx, pd, 10, 1, &q), ENOMEM);
	after = kt_state(t);
	assert_true(kt_same(&before, &after));
	for (unsigned int i = 0; i < POOL_UNIT; i++)
		pages_put(&t->k, rest[i], 1);
	kt_stop(t);
}

/* ---- pages that the client cannot map go back ---- */

static void map_refused(void **state)
{
	struct kt *t = kt_start(SH_FACE_OFED, 1, 1);
	struct kctx *ctx = kt_open(t, 0);
	struct kt_queue cq;
	uint64_t used = t->k.pool.used;
	uint32_t i;

	(void)state;
	t->no_map = true;
	assert_int_equal(kt_cq(t, ctx, 100, -1, &cq), 0);
	assert_int_equal(t->r.nactions, 2);
	assert_int_equal(cq.mem[0], 0);
	for (i = 0; i < 2; i++)
		assert_int_equal(map_failed(ctx, t->r.action[i].uaddr, t->r.action[i].len), 0);
	/*
	 * The client's own page now holds the entries as the device made them, owned by hardware.
	 */
	assert_true(cq.mem[31] & 0x80);
	assert_int_equal(t->k.pool.used, used);
	assert_int_equal(kt_destroy(t, ctx, UV_DESTROY_CQ, cq.handle), 0);
	assert_int_equal(t->proc->locked, 0);
	kt_queue_free(&cq);
	kt_stop(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(faults),
		cmocka_unit_test(no_heap),
		cmocka_unit_test(no_heap_for_events),
		cmocka_unit_test(no_memory),
		cmocka_unit_test(map_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
