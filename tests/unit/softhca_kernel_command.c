// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Framing of uverbs commands, on both faces: a malformed write() gets the errno that the kernel
 * gives, and changes nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "softhca_kernel.h"
#include "softhca/kernel/uverbs/uverbs-abi.h"

static int raw(struct kt *t, struct kctx *ctx, uint32_t number, uint16_t in_words,
	       uint16_t out_words, size_t len)
{
	uint32_t buf[64] = {number, in_words | (uint32_t)out_words << 16};

	return kt_write(t, ctx, buf, len);
}

static void framing(enum sh_face face)
{
	struct kt *t = kt_start(face, 1, 1);
	struct kctx *ctx = kt_open_raw(t, 0);
	struct kt_state before = kt_state(t), after;
	uint32_t resp[64];
	struct uv_plain cmd = {.response = (uintptr_t)resp};
	int fd;

	/* Shorter than a header, or of another length than the header says. */
	assert_int_equal(raw(t, ctx, UV_GET_CONTEXT, 1, 0, 4), EINVAL);
	assert_int_equal(raw(t, ctx, UV_GET_CONTEXT, 0, 0, 0), EINVAL);
	assert_int_equal(raw(t, ctx, UV_GET_CONTEXT, 4, 4, 12), EINVAL);
	assert_int_equal(raw(t, ctx, UV_GET_CONTEXT, 3, 4, 16), EINVAL);
	/* No other command works before GET_CONTEXT. */
	assert_int_equal(kt_cmd(t, ctx, UV_ALLOC_PD, &cmd, sizeof(cmd), 12), EINVAL);
	assert_int_equal(kt_cmd(t, ctx, UV_QUERY_DEVICE, &cmd, sizeof(cmd), 176), EINVAL);
	/* Unknown command numbers. */
	assert_int_equal(kt_cmd(t, ctx, 200, &cmd, sizeof(cmd), 0), EINVAL);
	assert_int_equal(kt_cmd(t, ctx, 0x7fffffff, &cmd, sizeof(cmd), 0), EINVAL);
	/* The memory of the command is missing, or that of the response. */
	assert_int_equal(kt_write(t, ctx, (void *)8, 16), EFAULT);
	cmd.response = 8;
	assert_int_equal(kt_cmd(t, ctx, UV_GET_CONTEXT, &cmd, sizeof(cmd), 16), EFAULT);
	cmd.response = (uintptr_t)resp;
	/* No room for the response. */
	assert_int_equal(kt_cmd(t, ctx, UV_GET_CONTEXT, &cmd, sizeof(cmd), 4), ENOSPC);
	after = kt_state(t);
	assert_true(kt_same(&before, &after));

	assert_int_equal(kt_cmd(t, ctx, UV_GET_CONTEXT, &cmd, sizeof(cmd), 16), 0);
	assert_int_equal(t->r.nfds, 1);
	assert_int_equal(t->r.fd_where[0], (uintptr_t)resp);
	assert_int_equal(t->r.fd_cloexec, face == SH_FACE_MAINLINE);
	close(t->fds[0]);
	before = kt_state(t);
	assert_int_equal(kt_cmd(t, ctx, UV_GET_CONTEXT, &cmd, sizeof(cmd), 16), EINVAL);

	/* Every response must fit. */
	assert_int_equal(kt_cmd(t, ctx, UV_QUERY_DEVICE, &cmd, sizeof(cmd), 172), ENOSPC);
	assert_int_equal(kt_cmd(t, ctx, UV_ALLOC_PD, &cmd, sizeof(cmd), 0), ENOSPC);
	assert_int_equal(kt_cmd(t, ctx, UV_CREATE_COMP_CHANNEL, &cmd, sizeof(cmd), 0), ENOSPC);
	/* Shorter than the structure of the command. */
	assert_int_equal(raw(t, ctx, UV_ALLOC_PD, 3, 4, 12),
			 face == SH_FACE_OFED ? EINVAL : ENOSPC);
	/* Commands that mlx4 does not have. */
	assert_int_equal(raw(t, ctx, UV_PEEK_CQ, 4, 0, 16),
			 face == SH_FACE_OFED ? EINVAL : EOPNOTSUPP);
	assert_int_equal(raw(t, ctx, UV_POST_SEND, 8, 1, 32),
			 face == SH_FACE_OFED ? EINVAL : EOPNOTSUPP);
	assert_int_equal(raw(t, ctx, UV_ALLOC_MW, 6, 1, 24),
			 face == SH_FACE_OFED ? EINVAL : EOPNOTSUPP);
	assert_int_equal(raw(t, ctx, UV_REREG_MR, 16, 2, 64),
			 face == SH_FACE_OFED ? EINVAL : EOPNOTSUPP);
	/* A response that cannot be written undoes the command. */
	cmd.response = 8;
	assert_int_equal(kt_cmd(t, ctx, UV_ALLOC_PD, &cmd, sizeof(cmd), 12), EFAULT);
	assert_int_equal(kt_cmd(t, ctx, UV_CREATE_COMP_CHANNEL, &cmd, sizeof(cmd), 4), EFAULT);
	after = kt_state(t);
	assert_true(kt_same(&before, &after));
	/* What follows the structure is driver data, which the kernel ignores here. */
	cmd.response = (uintptr_t)resp;
	{
		uint32_t longer[64] = {0};

		memcpy(longer, &cmd, sizeof(cmd));
		assert_int_equal(kt_cmd(t, ctx, UV_ALLOC_PD, longer, sizeof(longer), 12), 0);
	}
	assert_int_equal(kt_channel(t, ctx, &fd), 0);
	close(fd);
	kt_stop(t);
}

/* The command goes on where there is no memory. What is wrong with its header is found first. */
static void cut_short(void **state)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *two =
		mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint32_t *last = (uint32_t *)(two + page - 8);

	(void)state;
	assert_ptr_not_equal(two, MAP_FAILED);
	assert_int_equal(munmap(two + page, page), 0);
	for (enum sh_face face = SH_FACE_OFED; face <= SH_FACE_MAINLINE; face++) {
		struct kt *t = kt_start(face, 1, 1);
		struct kctx *ctx = kt_open(t, 0);
		struct kt_state before = kt_state(t), after;

		last[0] = UV_ALLOC_PD;
		last[1] = 4 | 3 << 16;
		assert_int_equal(kt_write(t, ctx, last, 20), EINVAL);
		assert_int_equal(kt_write(t, ctx, last, 16), EFAULT);
		last[1] = 4 | 0 << 16;
		assert_int_equal(kt_write(t, ctx, last, 16), ENOSPC);
		last[0] = 200;
		assert_int_equal(kt_write(t, ctx, last, 16), EINVAL);
		last[0] = 0x80000000u | 50;
		assert_int_equal(kt_write(t, ctx, last, 24),
				 face == SH_FACE_OFED ? EINVAL : EOPNOTSUPP);
		last[0] = 0x80000000u | UV_QUERY_DEVICE;
		assert_int_equal(kt_write(t, ctx, last, 24),
				 face == SH_FACE_OFED ? EINVAL : EFAULT);
		assert_int_equal(kt_write(t, ctx, last, 12), EINVAL);
		after = kt_state(t);
		assert_true(kt_same(&before, &after));
		kt_stop(t);
	}
	munmap(two, page);
}

static void framing_ofed(void **state)
{
	(void)state;
	framing(SH_FACE_OFED);
}

static void framing_mainline(void **state)
{
	(void)state;
	framing(SH_FACE_MAINLINE);
}

/* Both kinds of kernel refuse the probe by which a library tells them apart. */
static void probe(void **state)
{
	struct uv_create_xrc_rcv_qp p1 = {.xrc_domain_handle = UINT32_MAX};
	uint32_t resp[2];
	struct kt *t;
	struct kctx *ctx;

	(void)state;
	p1.response = (uintptr_t)resp;
	t = kt_start(SH_FACE_OFED, 1, 1);
	ctx = kt_open(t, 0);
	assert_int_equal(kt_cmd(t, ctx, 40, &p1, sizeof(p1), 8), EINVAL);
	kt_stop(t);
	t = kt_start(SH_FACE_MAINLINE, 1, 1);
	ctx = kt_open(t, 0);
	assert_int_equal(kt_cmd(t, ctx, 40, &p1, sizeof(p1), 8), ENOSPC);
	assert_int_equal(kt_cmd(t, ctx, 44, &p1, sizeof(p1), 0), EINVAL);
	kt_stop(t);
}

/* ---- extended commands ---- */

struct ex_query {
	struct uv_hdr hdr;
	struct uv_ex_hdr ex;
	struct uv_ex_query_device core;
};

static struct ex_query ex_query(void *resp)
{
	return (struct ex_query){
		.hdr = {.command = UV_QUERY_DEVICE | UV_EXTENDED, .in_words = 1, .out_words = 38},
		.ex = {.response = (uintptr_t)resp, .provider_out_words = 6},
	};
}

/* A newer library's fields are zeros where it asks for nothing new. */
static void extended_fields(struct kt *t, struct kctx *ctx)
{
	uint64_t buf[38 + 6];
	struct {
		struct ex_query q;
		uint8_t newer[8];
	} longer = {.q = ex_query(buf)};

	longer.q.hdr.in_words = 2;
	assert_int_equal(kt_write(t, ctx, &longer, sizeof(longer)), 0);
	longer.newer[7] = 1;
	assert_int_equal(kt_write(t, ctx, &longer, sizeof(longer)), EOPNOTSUPP);
	longer.newer[7] = 0;
	longer.newer[0] = 1;
	assert_int_equal(kt_write(t, ctx, &longer, sizeof(longer)), EOPNOTSUPP);
}

static void extended(void **state)
{
	struct uv_ex_query_device_resp *resp;
	uint64_t buf[38 + 6];
	struct ex_query q = ex_query(buf);
	struct kt *t = kt_start(SH_FACE_MAINLINE, 1, 1);
	struct kctx *ctx = kt_open_raw(t, 0);

	(void)state;
	assert_int_equal(kt_write(t, ctx, &q, sizeof(q)), EINVAL);
	ctx = kt_open(t, 0);
	memset(buf, 0xff, sizeof(buf));
	assert_int_equal(kt_write(t, ctx, &q, sizeof(q)), 0);
	resp = (void *)buf;
	assert_int_equal(resp->base.vendor_part_id, 26428);
	assert_int_equal(resp->base.max_qp_wr, 16351);
	assert_int_equal(resp->response_length, 304);
	assert_int_equal(resp->device_cap_flags_ex, resp->base.device_cap_flags);
	assert_true(resp->base.device_cap_flags & 1 << 20);
	assert_int_equal(buf[39], 0);
	extended_fields(t, ctx);

	q = ex_query(buf);
	q.core.comp_mask = 1;
	assert_int_equal(kt_write(t, ctx, &q, sizeof(q)), EINVAL);
	q = ex_query(buf);
	q.ex.reserved = 1;
	assert_int_equal(kt_write(t, ctx, &q, sizeof(q)), EINVAL);
	q = ex_query(buf);
	q.hdr.in_words = 2;
	assert_int_equal(kt_write(t, ctx, &q, sizeof(q)), EINVAL);
	q = ex_query(buf);
	q.hdr.out_words = 1;
	assert_int_equal(kt_write(t, ctx, &q, sizeof(q)), ENOSPC);
	q = ex_query(NULL);
	assert_int_equal(kt_write(t, ctx, &q, sizeof(q)), EINVAL);
	q = ex_query((void *)8);
	assert_int_equal(kt_write(t, ctx, &q, sizeof(q)), EFAULT);
	q = ex_query(buf);
	q.hdr.command = 0x80000000u | 50;
	assert_int_equal(kt_write(t, ctx, &q, sizeof(q)), EOPNOTSUPP);
	q.hdr.command = 0xc0000000u | UV_QUERY_DEVICE;
	assert_int_equal(kt_write(t, ctx, &q, sizeof(q)), EINVAL);
	kt_stop(t);

	/* An OFED kernel has no extended commands. */
	t = kt_start(SH_FACE_OFED, 1, 1);
	ctx = kt_open(t, 0);
	q = ex_query(buf);
	assert_int_equal(kt_write(t, ctx, &q, sizeof(q)), EINVAL);
	kt_stop(t);
}

/* ---- handles ---- */

static void handles(enum sh_face face)
{
	struct kt *t = kt_start(face, 1, 2);
	struct kctx *a = kt_open(t, 0), *b = kt_open(t, 0), *c = kt_open(t, 1);
	int none = face == SH_FACE_OFED ? EINVAL : ENOENT;
	uint32_t pd, again;

	assert_int_equal(kt_pd(t, a, &pd), 0);
	assert_int_equal(kt_dealloc(t, b, UV_DEALLOC_PD, pd), none);
	assert_int_equal(kt_dealloc(t, c, UV_DEALLOC_PD, pd), none);
	assert_int_equal(kt_dealloc(t, a, UV_DEALLOC_PD, pd + 1), none);
	assert_int_equal(kt_dealloc(t, a, UV_DEALLOC_PD, UINT32_MAX), none);
	assert_int_equal(kt_dealloc(t, a, UV_DEREG_MR, pd), none);
	assert_int_equal(kt_dealloc(t, a, UV_DEALLOC_PD, pd), 0);
	assert_int_equal(kt_dealloc(t, a, UV_DEALLOC_PD, pd), none);
	/* A free number is used again. */
	assert_int_equal(kt_pd(t, b, &again), 0);
	assert_int_equal(again, pd);
	kt_stop(t);
}

static void foreign_handles(void **state)
{
	(void)state;
	handles(SH_FACE_OFED);
	handles(SH_FACE_MAINLINE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(framing_ofed), cmocka_unit_test(framing_mainline),
		cmocka_unit_test(cut_short),	cmocka_unit_test(probe),
		cmocka_unit_test(extended),	cmocka_unit_test(foreign_handles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
