// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: QPs join and leave multicast groups by commands: what the device refuses, how many
 * groups there are, and a client that is stopped while it holds their table.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "softhca/device/memory/exec.h"
#include "softhca/device/memory/tables.h"
#include "softhca/kernel/uverbs/commands.h"
#include "softhca_kernel.h"

static void multicast(void **state)
{
	struct kt *t = kt_start(SH_FACE_OFED, 1, 1);
	struct kctx *ctx = kt_open(t, 0);
	struct uv_mcast m = {.gid = {0xff, 0x12, [15] = 1}};
	struct kt_queue cq, ud, rc;
	uint32_t pd;

	(void)state;
	assert_int_equal(kt_pd(t, ctx, &pd), 0);
	assert_int_equal(kt_cq(t, ctx, 10, -1, &cq), 0);
	assert_int_equal(kt_qp(t, ctx, UV_QPT_UD, pd, cq.handle, -1, &ud), 0);
	assert_int_equal(kt_qp(t, ctx, UV_QPT_RC, pd, cq.handle, -1, &rc), 0);
	m.qp_handle = rc.handle;
	assert_int_equal(kt_cmd(t, ctx, UV_ATTACH_MCAST, &m, sizeof(m), 0), EINVAL);
	m.qp_handle = ud.handle;
	assert_int_equal(kt_cmd(t, ctx, UV_DETACH_MCAST, &m, sizeof(m), 0), EINVAL);
	assert_int_equal(kt_cmd(t, ctx, UV_ATTACH_MCAST, &m, sizeof(m), 0), 0);
	assert_int_equal(kt_cmd(t, ctx, UV_ATTACH_MCAST, &m, sizeof(m), 0), 0);
	assert_int_equal(kt_destroy(t, ctx, UV_DESTROY_QP, ud.handle), EBUSY);
	assert_int_equal(kt_cmd(t, ctx, UV_DETACH_MCAST, &m, sizeof(m), 0), 0);
	m.gid[0] = 0xfe;
	assert_int_equal(kt_cmd(t, ctx, UV_ATTACH_MCAST, &m, sizeof(m), 0), EINVAL);
	m.gid[0] = 0xff;
	assert_int_equal(kt_cmd(t, ctx, UV_ATTACH_MCAST, &m, sizeof(m), 0), 0);
	/* The end of the context ends the membership. */
	ctx_release(ctx);
	kt_queue_free(&cq);
	kt_queue_free(&ud);
	kt_queue_free(&rc);
	kt_stop(t);
}

static int membership(struct kt *t, struct kctx *ctx, uint32_t command, uint32_t qp, uint16_t lid)
{
	struct uv_mcast m = {.gid = {0xff, 0x12, [15] = 1}, .qp_handle = qp, .mlid = lid};

	return kt_cmd(t, ctx, command, &m, sizeof(m), 0);
}

static int attach(struct kt *t, struct kctx *ctx, uint32_t qp, uint16_t lid)
{
	return membership(t, ctx, UV_ATTACH_MCAST, qp, lid);
}

static int detach(struct kt *t, struct kctx *ctx, uint32_t qp, uint16_t lid)
{
	return membership(t, ctx, UV_DETACH_MCAST, qp, lid);
}

/*
 * A mainline kernel refuses to attach or detach a LID that is not a multicast LID. An OFED kernel
 * does not look at it.
 */
static void multicast_lids(void **state)
{
	static const uint16_t wrong[] = {0, 1, 0xbfff, 0xffff}, right[] = {0xc000, 0xfffe};
	static const enum sh_face faces[] = {SH_FACE_OFED, SH_FACE_MAINLINE};

	(void)state;
	for (unsigned int f = 0; f < 2; f++) {
		struct kt *t = kt_start(faces[f], 1, 1);
		int refused = faces[f] == SH_FACE_MAINLINE ? EINVAL : 0;
		struct kctx *ctx = kt_open(t, 0);
		struct kt_queue cq, ud;
		uint32_t pd;

		assert_int_equal(kt_pd(t, ctx, &pd), 0);
		assert_int_equal(kt_cq(t, ctx, 10, -1, &cq), 0);
		assert_int_equal(kt_qp(t, ctx, UV_QPT_UD, pd, cq.handle, -1, &ud), 0);
		for (unsigned int i = 0; i < 4; i++) {
			assert_int_equal(attach(t, ctx, ud.handle, wrong[i]), refused);
			assert_int_equal(detach(t, ctx, ud.handle, wrong[i]), refused);
		}
		for (unsigned int i = 0; i < 2; i++) {
			assert_int_equal(attach(t, ctx, ud.handle, right[i]), 0);
			if (refused)
				assert_int_equal(detach(t, ctx, ud.handle, 2), EINVAL);
			assert_int_equal(detach(t, ctx, ud.handle, right[i]), 0);
		}
		kt_queue_free(&cq);
		kt_queue_free(&ud);
		kt_stop(t);
	}
}

static uint32_t members(struct kt *t)
{
	const struct sh_mcg *g = sh_hca_table(&t->k.dev, 0, SH_HCA_MCGS);
	uint32_t n = 0;

	for (int i = 0; i < SH_MAX_MCG; i++)
		n += g[i].nqps;
	return n;
}

/* A device has exactly as many multicast groups as it says. */
static void multicast_groups(void **state)
{
	struct kt *t = kt_start(SH_FACE_OFED, 1, 1);
	struct kctx *ctx = kt_open(t, 0);
	struct uv_query_device_resp dev = {0};
	struct call c = {.k = &t->k, .ctx = ctx};
	struct uv_mcast m = {.gid = {0xff}, .mlid = 0xc001};
	struct kt_queue cq, ud;
	uint32_t pd, i;

	(void)state;
	fill_query_device(&c, &dev);
	assert_int_equal(dev.max_mcast_grp, 8192); /* as on a ConnectX */
	assert_int_equal(kt_pd(t, ctx, &pd), 0);
	assert_int_equal(kt_cq(t, ctx, 10, -1, &cq), 0);
	assert_int_equal(kt_qp(t, ctx, UV_QPT_UD, pd, cq.handle, -1, &ud), 0);
	m.qp_handle = ud.handle;
	for (i = 0; i <= dev.max_mcast_grp; i++) {
		memcpy(m.gid + 12, &i, sizeof(i));
		assert_int_equal(kt_cmd(t, ctx, UV_ATTACH_MCAST, &m, sizeof(m), 0),
				 i < dev.max_mcast_grp ? 0 : ENOMEM);
	}
	assert_int_equal(members(t), dev.max_mcast_grp);
	ctx_release(ctx);
	assert_int_equal(members(t), 0);
	kt_queue_free(&cq);
	kt_queue_free(&ud);
	kt_stop(t);
}

static pthread_barrier_t barrier;

/* Acts as a client that is stopped while it copies a group. */
static void *hold_groups(void *arg)
{
	struct kt *t = arg;
	struct sh_lock *lock = &sh_hca(&t->k.dev, 0)->mcg_lock;

	sh_lock(&t->k.dev, lock);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	sh_unlock(&t->k.dev, lock);
	sh_exec_release();
	return NULL;
}

/*
 * If a QP cannot leave its groups at once, it does so before it ends. Nothing of it stays in them.
 */
static void multicast_held(void **state)
{
	struct kt *t = kt_start(SH_FACE_OFED, 1, 1);
	struct kt_state before = kt_state(t), after;
	struct kctx *ctx = kt_open(t, 0);
	struct uv_mcast m = {.gid = {0xff, 0x12, [15] = 1}, .mlid = 0xc001};
	struct kt_queue cq, ud;
	pthread_t thread;
	uint32_t pd;

	(void)state;
	assert_int_equal(kt_pd(t, ctx, &pd), 0);
	assert_int_equal(kt_cq(t, ctx, 10, -1, &cq), 0);
	assert_int_equal(kt_qp(t, ctx, UV_QPT_UD, pd, cq.handle, -1, &ud), 0);
	m.qp_handle = ud.handle;
	for (m.gid[15] = 1; m.gid[15] <= 2; m.gid[15]++)
		assert_int_equal(kt_cmd(t, ctx, UV_ATTACH_MCAST, &m, sizeof(m), 0), 0);
	assert_int_equal(members(t), 2);
	assert_int_equal(pthread_barrier_init(&barrier, NULL, 2), 0);
	assert_int_equal(pthread_create(&thread, NULL, hold_groups, t), 0);
	pthread_barrier_wait(&barrier);
	ctx_release(ctx);
	assert_int_equal(t->k.uverbs->releasing, 1);
	assert_non_null(sh_qp_get(&t->k.dev, 0, ud.number));
	pthread_barrier_wait(&barrier);
	assert_int_equal(pthread_join(thread, NULL), 0);
	pthread_barrier_destroy(&barrier);
	ctx_retry(&t->k);
	assert_int_equal(t->k.uverbs->releasing, 0);
	assert_int_equal(members(t), 0);
	after = kt_state(t);
	assert_true(kt_same(&before, &after));
	kt_queue_free(&cq);
	kt_queue_free(&ud);
	kt_stop(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(multicast),
		cmocka_unit_test(multicast_lids),
		cmocka_unit_test(multicast_groups),
		cmocka_unit_test(multicast_held),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
