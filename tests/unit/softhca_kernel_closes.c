// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: which closes of files the daemon believes. Before Linux 6.11 inotify reports one
 * also when another program has looked into the directory (O_PATH), and it reports none where its
 * queue overflows. Channels and contexts end when their programs have closed them, and not before.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>
#include <cmocka.h>

#include "softhca/device/memory/tables.h"
#include "softhca/device/memory/qp_context.h"
#include "softhca/host/process.h"
#include "softhca/kernel/room.h"
#include "softhca/kernel/uverbs/commands.h"
#include "softhca/kernel/uverbs/evq.h"
#include "softhca/kernel/uverbs/room.h"
#include "softhca_kernel.h"

static void looked_into(void **state)
{
	struct kt *t = kt_start(SH_FACE_MAINLINE, 1, 1);
	struct kctx *ctx = kt_open(t, 0);
	uint32_t index, generation;
	struct kt_queue cq;
	int fd, twin;

	(void)state;
	assert_int_equal(kt_channel(t, ctx, &fd), 0);
	index = ctx->evqs->next->index;
	generation = ctx->evqs->next->generation;
	evq_client_closed(&t->k, index, generation);
	assert_int_equal(kt_cq(t, ctx, 10, fd, &cq), 0);
	evq_client_closed(&t->k, index, generation);
	assert_int_equal(kt_destroy(t, ctx, UV_DESTROY_CQ, cq.handle), 0);
	kt_queue_free(&cq);
	assert_int_equal(kt_cq(t, ctx, 10, fd, &cq), 0);
	assert_int_equal(kt_destroy(t, ctx, UV_DESTROY_CQ, cq.handle), 0);
	kt_queue_free(&cq);
	/* A forked child has it as well. The close is reported before it is done, and not again. */
	twin = dup(fd);
	close(fd);
	evq_client_closed(&t->k, index, generation);
	assert_non_null(t->k.uverbs->evq[index]);
	close(twin);
	assert_true(t->k.doubted);
	uverbs_room.doubted(&t->k);
	assert_null(t->k.uverbs->evq[index]);
	assert_int_equal(t->k.doubted, 0);
	kt_stop(t);
}

static void missed(void **state)
{
	struct kt *t = kt_start(SH_FACE_MAINLINE, 1, 1);
	struct kctx *ctx = kt_open(t, 0);
	uint32_t context = ctx->index, index;
	int fd, own[2];
	char path[64];

	(void)state;
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "files/%c%u.%u", "cl"[i], ctx -> index,
			 ctx -> generation);
		own[i] = openat(t->k.dir_fd, path, O_RDWR | O_CLOEXEC);
		assert_true(own[i] >= 0);
	}
	assert_int_equal(kt_channel(t, ctx, &fd), 0);
	index = ctx->evqs->next->index;
	uverbs_room.missed(&t->k);
	assert_non_null(t->k.uverbs->evq[index]);
	assert_false(ctx->gone);
	close(fd);
	close(own[1]);
	t->proc->user.witness = 0; /* as if it had executed another program */
	uverbs_room.missed(&t->k);
	assert_null(t->k.uverbs->evq[index]);
	assert_true(ctx->gone);
	assert_non_null(t->k.uverbs->ctx[context]);
	/* The overflow may have come before the close was done. */
	close(own[0]);
	uverbs_room.tick(&t->k);
	assert_null(t->k.uverbs->ctx[context]);
	kt_stop(t);
}

/*
 * On overlayfs a mapping of the second file does not keep it open. That may have been noticed when
 * the client opened the device, or have been among the lost events. The context lives as long as
 * its process.
 */
static void missed_untied(void **state)
{
	(void)state;
	for (int noticed = 0; noticed < 2; noticed++) {
		struct kt *t = kt_start(SH_FACE_MAINLINE, 1, 1);
		struct kctx *ctx = kt_open(t, 0);
		char path[64];
		int own;

		snprintf(path, sizeof(path), "files/c%u.%u", ctx->index, ctx->generation);
		own = openat(t->k.dir_fd, path, O_RDWR | O_CLOEXEC);
		assert_true(own >= 0);
		if (noticed)
			ctx->untied = t->k.uverbs->untied = true;
		uverbs_room.missed(&t->k);
		assert_false(ctx->gone);
		uverbs_room.tick(&t->k);
		assert_false(ctx->gone);
		t->proc->user.witness = 0; /* as if it had executed another program */
		uverbs_room.tick(&t->k);
		assert_true(ctx->gone);
		close(own);
		kt_stop(t);
	}
}

/*
 * A program closes the device and goes on. What it has posted to a peer elsewhere may still leave,
 * for a while: the peer may never answer.
 */
static void unsent(void **state)
{
	struct kt *t = kt_start(SH_FACE_MAINLINE, 1, 1);
	struct kctx *ctx = kt_open(t, 0);
	uint32_t context = ctx->index, pd;
	struct kt_queue cq, own;
	struct sh_qp *qp;

	(void)state;
	assert_int_equal(kt_pd(t, ctx, &pd), 0);
	assert_int_equal(kt_cq(t, ctx, 10, -1, &cq), 0);
	assert_int_equal(kt_qp(t, ctx, UV_QPT_RC, pd, cq.handle, -1, &own), 0);
	qp = sh_qp_get(&t->k.dev, 0, own.number);
	assert_non_null(qp);
	t->k.dev.inst->wire.proc = 1;
	qp->state = SH_QPS_RTS;
	qp->wire_left = SH_WIRE_UNSENT;
	ctx_release(ctx);
	assert_ptr_equal(t->k.uverbs->ctx[context], ctx);
	assert_int_equal(qp->qpn, own.number);
	ctx_retry(&t->k);
	assert_ptr_equal(t->k.uverbs->ctx[context], ctx);
	ctx->leaves_until = sh_now();
	ctx_retry(&t->k);
	assert_null(t->k.uverbs->ctx[context]);
	assert_int_equal(qp->qpn, 0);
	t->k.dev.inst->wire.proc = 0;
	kt_queue_free(&own);
	kt_queue_free(&cq);
	kt_stop(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(looked_into),
		cmocka_unit_test(missed),
		cmocka_unit_test(missed_untied),
		cmocka_unit_test(unsent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
