// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: protection domains and memory regions are made, refused and kept busy as the kernel
 * does it.
 */

#include <sys/mman.h>

#include "guest.h"

#define MANY 64
#define PAGE 4096

static void pd_is_busy_while_used(void)
{
	struct ibv_context *context = open_device();
	struct ibv_pd *pd, *other;
	static char buf[PAGE];
	struct ibv_mr *mr;

	CHECK(pd = ibv_alloc_pd(context));
	CHECK(other = ibv_alloc_pd(context));
	CHECK(pd->handle != other->handle);
	CHECK(pd->context == context);
	CHECK(mr = ibv_reg_mr(pd, buf, sizeof(buf), 0));
	CHECK_EQ(ibv_dealloc_pd(pd), EBUSY);
	CHECK_EQ(ibv_dealloc_pd(other), 0);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	CHECK_EQ(ibv_dealloc_pd(pd), 0);
	CHECK_EQ(ibv_close_device(context), 0);
}

static void regions_have_keys(void)
{
	static const int access[] = {
		0,
		IBV_ACCESS_LOCAL_WRITE,
		IBV_ACCESS_REMOTE_READ,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC,
	};
	struct ibv_context *context = open_device();
	struct ibv_mr *mr[MANY];
	struct ibv_pd *pd;
	int i, j;
	char *buf;

	CHECK(pd = ibv_alloc_pd(context));
	buf = mmap(NULL, MANY * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(buf != MAP_FAILED);

	for (i = 0; i < MANY; ++i) {
		CHECK(mr[i] = ibv_reg_mr(pd, buf + i * PAGE + i, PAGE - i, access[i % 5]));
		CHECK(mr[i]->addr == buf + i * PAGE + i);
		CHECK_EQ(mr[i]->length, PAGE - i);
		CHECK(mr[i]->pd == pd);
		CHECK(mr[i]->lkey);
		for (j = 0; j < i; ++j)
			CHECK(mr[i]->lkey != mr[j]->lkey && mr[i]->handle != mr[j]->handle);
	}
	for (i = 0; i < MANY; ++i)
		CHECK_EQ(ibv_dereg_mr(mr[i]), 0);

	CHECK_EQ(ibv_dealloc_pd(pd), 0);
	CHECK_EQ(ibv_close_device(context), 0);
}

static void bad_regions_are_refused(void)
{
	struct ibv_context *context = open_device();
	static char buf[PAGE];
	struct ibv_pd *pd;
	void *hole;

	CHECK(pd = ibv_alloc_pd(context));
	hole = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(hole != MAP_FAILED);
	CHECK_EQ(munmap(hole, PAGE), 0);

	CHECK_REFUSED(ibv_reg_mr(pd, hole, PAGE, IBV_ACCESS_LOCAL_WRITE), EFAULT);
	CHECK_REFUSED(ibv_reg_mr(pd, buf, sizeof(buf), IBV_ACCESS_REMOTE_WRITE), EINVAL);
	CHECK_REFUSED(ibv_reg_mr(pd, buf, sizeof(buf), IBV_ACCESS_REMOTE_ATOMIC), EINVAL);

	/* None of them has left a reference. */
	CHECK_EQ(ibv_dealloc_pd(pd), 0);
	CHECK_EQ(ibv_close_device(context), 0);
}

static void registration_survives_fork(void)
{
	struct ibv_context *context;
	static char buf[PAGE];
	struct ibv_pd *pd;
	struct ibv_mr *mr;

	CHECK_EQ(ibv_fork_init(), 0);
	context = open_device();
	CHECK(pd = ibv_alloc_pd(context));
	CHECK(mr = ibv_reg_mr(pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE));
	CHECK_EQ(ibv_fork_init(), 0);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	CHECK_EQ(ibv_dealloc_pd(pd), 0);
	CHECK_EQ(ibv_close_device(context), 0);
}

const struct guest_test memory_tests[] = {
	{"a protection domain is busy while a region is in it", pd_is_busy_while_used},
	{"memory regions with every access, each with keys of its own", regions_have_keys},
	{"memory regions that the kernel refuses", bad_regions_are_refused},
	{"ibv_fork_init() and registration", registration_survives_fork},
	{0},
};
