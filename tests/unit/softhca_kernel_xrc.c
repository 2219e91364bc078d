// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * XRC on both faces: domains and their inodes, SRQs, receive and target QPs, which object keeps
 * which alive, and every errno.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "softhca/device/memory/event.h"
#include "softhca/device/memory/qp_attr.h"
#include "softhca/kernel/uverbs/commands.h"
#include "softhca/kernel/uverbs/limits.h"
#include "softhca/kernel/uverbs/evq.h"
#include "softhca_kernel.h"

static char dir[] = "/tmp/softhca-xrc.XXXXXX";

static int in_dir(const char *name, int flags)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, flags, 0600);
	assert_true(fd >= 0);
	return fd;
}

static int close_domain(struct kt *t, struct kctx *ctx, uint32_t handle)
{
	return t->k.cfg.device.face == SH_FACE_OFED
		       ? kt_destroy(t, ctx, UV_CLOSE_XRC_DOMAIN, handle)
		       : kt_dealloc(t, ctx, UV_CLOSE_XRCD, handle);
}

/* ---- domains ---- */

static void domains(enum sh_face face)
{
	struct kt *t = kt_start(face, 2, 2);
	struct kctx *a = kt_open(t, 0), *b = kt_open(t, 0), *other_hca = kt_open(t, 1),
		    *other_host = kt_open_host(t, 1, 0);
	struct kt_state before = kt_state(t), after;
	int fd = in_dir("domain", O_RDWR | O_CREAT), ro, directory, path_only;
	uint32_t h1, h2, h3, h4, anon, anon2;
	char from[64], to[64];

	/* Descriptors that are not open, or are open only as a path. */
	assert_int_equal(kt_xrcd(t, a, 12345, O_CREAT, &h1), EBADF);
	assert_int_equal(kt_xrcd(t, a, -2, O_CREAT, &h1), EBADF);
	path_only = in_dir("domain", O_PATH);
	assert_int_equal(kt_xrcd(t, a, path_only, O_CREAT, &h1), EBADF);
	close(path_only);
	/* There is no domain yet. */
	assert_int_equal(kt_xrcd(t, a, fd, 0, &h1), EAGAIN);
	assert_int_equal(kt_xrcd(t, a, fd, O_EXCL, &h1), EAGAIN);
	after = kt_state(t);
	assert_true(kt_same(&before, &after));
	assert_int_equal(kt_xrcd(t, a, fd, O_CREAT | O_EXCL, &h1), 0);
	/* Now there is a domain, for every context of this device that names this inode. */
	assert_int_equal(kt_xrcd(t, b, fd, O_CREAT | O_EXCL, &h2), EINVAL);
	assert_int_equal(kt_xrcd(t, b, fd, O_EXCL, &h2), EINVAL);
	ro = in_dir("domain", O_RDONLY);
	assert_int_equal(kt_xrcd(t, b, ro, 0, &h2), 0);
	close(ro);
	assert_int_equal(kt_xrcd(t, other_hca, fd, 0, &h3), EAGAIN);
	assert_int_equal(kt_xrcd(t, other_host, fd, 0, &h3), EAGAIN);
	assert_int_equal(kt_xrcd(t, other_host, fd, O_CREAT, &h3), 0);
	assert_int_equal(close_domain(t, other_host, h3), 0);
	/* A context that opens the domain again gets another handle. */
	assert_int_equal(kt_xrcd(t, a, fd, O_CREAT, &h3), 0);
	assert_int_not_equal(h3, h1);
	/*
	 * The name does not matter: a hard link is the same inode, a new file of the old name is
	 * not.
	 */
	snprintf(from, sizeof(from), "%s/domain", dir);
	snprintf(to, sizeof(to), "%s/link", dir);
	assert_int_equal(link(from, to), 0);
	ro = in_dir("link", O_RDONLY);
	assert_int_equal(kt_xrcd(t, b, ro, O_EXCL, &h4), EINVAL);
	close(ro);
	unlink(from);
	unlink(to);
	ro = in_dir("domain", O_RDWR | O_CREAT);
	assert_int_equal(kt_xrcd(t, b, ro, 0, &h4), EAGAIN);
	close(ro);
	/* The inode is held: closing every descriptor does not give its number to another file. */
	assert_int_equal(kt_xrcd(t, b, fd, 0, &h4), 0);
	assert_int_equal(close_domain(t, b, h4), 0);
	directory = in_dir(".", O_RDONLY | O_DIRECTORY);
	assert_int_equal(kt_xrcd(t, b, directory, O_CREAT, &h4), 0);
	assert_int_equal(close_domain(t, b, h4), 0);
	close(directory);
	/* Without a descriptor each open makes a domain, whatever the flags. */
	assert_int_equal(kt_xrcd(t, a, -1, 0, &anon), 0);
	assert_int_equal(kt_xrcd(t, a, -1, O_CREAT | O_EXCL, &anon2), 0);
	assert_int_equal(close_domain(t, a, anon), 0);
	assert_int_equal(close_domain(t, a, anon2), 0);
	assert_int_equal(close_domain(t, a, anon2), face == SH_FACE_OFED ? EINVAL : ENOENT);
	assert_int_equal(close_domain(t, b, h1), face == SH_FACE_OFED ? EINVAL : ENOENT);
	/* The domain outlives its creator, and ends with the last handle. */
	assert_int_equal(close_domain(t, a, h1), 0);
	assert_int_equal(close_domain(t, a, h3), 0);
	assert_int_equal(kt_xrcd(t, a, fd, 0, &h1), 0);
	assert_int_equal(close_domain(t, a, h1), 0);
	ctx_release(b);
	assert_int_equal(kt_xrcd(t, a, fd, 0, &h1), EAGAIN);
	after = kt_state(t);
	before.evqs--;
	assert_true(kt_same(&before, &after));
	close(fd);
	unlink(from);
	kt_stop(t);
}

static void domains_ofed(void **state)
{
	(void)state;
	domains(SH_FACE_OFED);
}

static void domains_mainline(void **state)
{
	(void)state;
	domains(SH_FACE_MAINLINE);
}

/* ---- what keeps a domain, a CQ and a PD busy ---- */

static void srqs(enum sh_face face)
{
	struct kt *t = kt_start(face, 1, 1);
	struct kctx *a = kt_open(t, 0), *b = kt_open(t, 0);
	struct kt_state before = kt_state(t), after;
	struct kt_queue cq, srq, q, qp;
	uint32_t pd, pd_b, h, h_b;
	int fd = in_dir("srq", O_RDWR | O_CREAT);
	uint32_t send = face == SH_FACE_OFED ? UV_QPT_XRC : UV_QPT_XRC_INI;

	assert_int_equal(kt_pd(t, a, &pd), 0);
	assert_int_equal(kt_pd(t, b, &pd_b), 0);
	assert_int_equal(kt_cq(t, a, 10, -1, &cq), 0);
	assert_int_equal(kt_xrcd(t, a, fd, O_CREAT, &h), 0);
	assert_int_equal(kt_xrcd(t, b, fd, O_CREAT, &h_b), 0);
	/* The PD, the domain and the CQ must be of the caller's context. */
	assert_int_equal(kt_xsrq(t, a, pd_b, h, cq.handle, &q), EINVAL);
	assert_int_equal(kt_xsrq(t, a, pd, h_b, cq.handle, &q), EINVAL);
	assert_int_equal(kt_xsrq(t, b, pd_b, h_b, cq.handle, &q), EINVAL);
	assert_int_equal(kt_xsrq(t, a, pd, h, cq.handle, &srq), 0);
	assert_true(srq.number >= 64);
	assert_int_equal(kt_destroy(t, a, UV_DESTROY_CQ, cq.handle), EBUSY);
	assert_int_equal(kt_dealloc(t, a, UV_DEALLOC_PD, pd), EBUSY);
	assert_int_equal(close_domain(t, a, h), EBUSY);
	assert_int_equal(close_domain(t, b, h_b), 0);
	/* An ordinary QP cannot use an XRC SRQ. */
	assert_int_equal(kt_qp(t, a, UV_QPT_RC, pd, cq.handle, srq.handle, &q), EINVAL);
	assert_int_equal(kt_destroy(t, a, UV_DESTROY_SRQ, srq.handle), 0);
	/*
	 * A send QP. On the OFED face its command names the domain in place of the SRQ, and the
	 * domain is then busy.
	 */
	if (face == SH_FACE_OFED) {
		assert_int_equal(kt_qp(t, a, send, pd, cq.handle, h + 1, &q), EINVAL);
		assert_int_equal(kt_qp(t, a, send, pd, cq.handle, h_b, &q), EINVAL);
		assert_int_equal(kt_qp(t, a, send, pd, cq.handle, h, &qp), 0);
		assert_true(qp.number & K_XRC_QPN_BIT);
		assert_int_equal(close_domain(t, a, h), EBUSY);
	} else {
		assert_int_equal(kt_qp(t, a, UV_QPT_XRC, pd, cq.handle, h, &q), EINVAL);
		assert_int_equal(kt_qp(t, a, send, pd, cq.handle, -1, &qp), 0);
		assert_false(qp.number & K_XRC_QPN_BIT);
	}
	assert_int_equal(kt_destroy(t, a, UV_DESTROY_QP, qp.handle), 0);
	assert_int_equal(close_domain(t, a, h), 0);
	assert_int_equal(kt_destroy(t, a, UV_DESTROY_CQ, cq.handle), 0);
	assert_int_equal(kt_dealloc(t, a, UV_DEALLOC_PD, pd), 0);
	assert_int_equal(kt_dealloc(t, b, UV_DEALLOC_PD, pd_b), 0);
	after = kt_state(t);
	assert_true(kt_same(&before, &after));
	kt_queue_free(&cq);
	kt_queue_free(&srq);
	kt_queue_free(&qp);
	close(fd);
	kt_stop(t);
}

static void srqs_ofed(void **state)
{
	(void)state;
	srqs(SH_FACE_OFED);
}

static void srqs_mainline(void **state)
{
	(void)state;
	srqs(SH_FACE_MAINLINE);
}

/* ---- OFED's receive QPs ---- */

static int rcv_create(struct kt *t, struct kctx *ctx, uint32_t domain, uint32_t *qpn)
{
	struct uv_create_xrc_rcv_qp_resp resp;
	/* The kernel ignores the sizes and the type. */
	struct uv_create_xrc_rcv_qp cmd = {.response = (uintptr_t)&resp,
					   .xrc_domain_handle = domain,
					   .max_send_wr = 1u << 30,
					   .qp_type = 77};
	int err = kt_cmd(t, ctx, UV_CREATE_XRC_RCV_QP, &cmd, sizeof(cmd), sizeof(resp));

	if (!err)
		*qpn = resp.qpn;
	return err;
}

static int rcv_reg(struct kt *t, struct kctx *ctx, uint32_t number, uint32_t domain, uint32_t qpn)
{
	struct uv_reg_xrc_rcv_qp cmd = {.xrc_domain_handle = domain, .qp_num = qpn};

	return kt_cmd(t, ctx, number, &cmd, sizeof(cmd), 0);
}

static int rcv_init(struct kt *t, struct kctx *ctx, uint32_t domain, uint32_t qpn, uint32_t mask)
{
	struct uv_modify_xrc_rcv_qp cmd = {
		.xrc_domain_handle = domain,
		.qp_num = qpn,
		.attr = {.attr_mask = mask,
			 .qp_state = SH_QPS_INIT,
			 .port_num = 1,
			 .qp_access_flags = SH_REMOTE_WRITE},
	};

	return kt_cmd(t, ctx, UV_MODIFY_XRC_RCV_QP, &cmd, sizeof(cmd), 0);
}

static int rcv_query(struct kt *t, struct kctx *ctx, uint32_t domain, uint32_t qpn,
		     struct uv_query_qp_resp *resp)
{
	struct uv_query_xrc_rcv_qp cmd = {
		.response = (uintptr_t)resp, .xrc_domain_handle = domain, .qp_num = qpn};

	return kt_cmd(t, ctx, UV_QUERY_XRC_RCV_QP, &cmd, sizeof(cmd), sizeof(*resp));
}

#define TO_INIT (UV_QP_STATE | UV_QP_PKEY_INDEX | UV_QP_PORT | UV_QP_ACCESS_FLAGS)

static void receive_qps(void **state)
{
	struct kt *t = kt_start(SH_FACE_OFED, 1, 1);
	struct kctx *a = kt_open(t, 0), *b = kt_open(t, 0), *c = kt_open(t, 0);
	struct kt_state before, after;
	struct uv_query_qp_resp attr;
	struct kt_queue cq, qp;
	uint32_t ha, hb, other, qpn = 0, gone = 0, pd;
	int fd = in_dir("rcv", O_RDWR | O_CREAT);

	(void)state;
	assert_int_equal(kt_xrcd(t, a, fd, O_CREAT, &ha), 0);
	assert_int_equal(kt_xrcd(t, b, fd, 0, &hb), 0);
	assert_int_equal(kt_xrcd(t, b, -1, 0, &other), 0);
	before = kt_state(t);
	assert_int_equal(rcv_create(t, a, ha + 1, &qpn), EINVAL);
	assert_int_equal(rcv_create(t, a, hb, &qpn), EINVAL);
	assert_int_equal(rcv_create(t, a, ha, &qpn), 0);
	assert_true(qpn & K_XRC_QPN_BIT);
	/* Each context that has the domain open can modify and query the QP, registered or not. */
	assert_int_equal(rcv_init(t, b, hb, qpn, TO_INIT & ~UV_QP_PORT), EINVAL);
	assert_int_equal(rcv_init(t, b, hb, qpn, TO_INIT | UV_QP_AV), EINVAL);
	assert_int_equal(rcv_query(t, b, hb, qpn, &attr), 0);
	assert_int_equal(attr.qp_state, SH_QPS_RESET);
	assert_int_equal(rcv_init(t, b, other, qpn, TO_INIT), EINVAL);
	assert_int_equal(rcv_init(t, b, hb, qpn ^ 1, TO_INIT), EINVAL);
	assert_int_equal(rcv_init(t, b, hb, qpn & ~K_XRC_QPN_BIT, TO_INIT), EINVAL);
	assert_int_equal(rcv_init(t, c, hb, qpn, TO_INIT), EINVAL);
	assert_int_equal(rcv_init(t, b, hb, qpn, TO_INIT), 0);
	assert_int_equal(t->r.nrings, 0);
	assert_int_equal(rcv_query(t, a, ha, qpn, &attr), 0);
	assert_int_equal(attr.qp_state, SH_QPS_INIT);
	assert_int_equal(attr.max_recv_wr | attr.max_send_wr | attr.max_inline_data, 0);
	assert_int_equal(rcv_query(t, b, other, qpn, &attr), EINVAL);
	/* An ordinary XRC QP of the domain is not a receive QP. */
	assert_int_equal(kt_pd(t, a, &pd), 0);
	assert_int_equal(kt_cq(t, a, 10, -1, &cq), 0);
	assert_int_equal(kt_qp(t, a, UV_QPT_XRC, pd, cq.handle, ha, &qp), 0);
	assert_int_equal(rcv_query(t, a, ha, qp.number, &attr), EINVAL);
	assert_int_equal(rcv_reg(t, a, UV_REG_XRC_RCV_QP, ha, qp.number), EINVAL);
	assert_int_equal(kt_destroy(t, a, UV_DESTROY_QP, qp.handle), 0);
	assert_int_equal(kt_destroy(t, a, UV_DESTROY_CQ, cq.handle), 0);
	assert_int_equal(kt_dealloc(t, a, UV_DEALLOC_PD, pd), 0);
	/* A context has one registration, however often it registers. */
	assert_int_equal(rcv_reg(t, b, UV_UNREG_XRC_RCV_QP, hb, qpn), EINVAL);
	assert_int_equal(rcv_reg(t, b, UV_REG_XRC_RCV_QP, other, qpn), EINVAL);
	assert_int_equal(rcv_reg(t, b, UV_REG_XRC_RCV_QP, hb, qpn + 1), EINVAL);
	assert_int_equal(rcv_reg(t, a, UV_REG_XRC_RCV_QP, ha, qpn), 0);
	assert_int_equal(rcv_reg(t, b, UV_REG_XRC_RCV_QP, hb, qpn), 0);
	assert_int_equal(rcv_reg(t, b, UV_REG_XRC_RCV_QP, hb, qpn), 0);
	assert_int_equal(close_domain(t, a, ha), EBUSY);
	assert_int_equal(close_domain(t, b, hb), EBUSY);
	/* The creator unregisters. The other context keeps the QP. */
	assert_int_equal(rcv_reg(t, a, UV_UNREG_XRC_RCV_QP, ha, qpn), 0);
	assert_int_equal(rcv_reg(t, a, UV_UNREG_XRC_RCV_QP, ha, qpn), EINVAL);
	assert_int_equal(rcv_query(t, a, ha, qpn, &attr), 0);
	assert_int_equal(rcv_reg(t, b, UV_UNREG_XRC_RCV_QP, hb, qpn), 0);
	assert_int_equal(rcv_query(t, a, ha, qpn, &attr), EINVAL);
	after = kt_state(t);
	assert_true(kt_same(&before, &after));

	/* Contexts end without unregistering: the creator's first, then the last one. */
	assert_int_equal(rcv_create(t, a, ha, &gone), 0);
	assert_int_equal(rcv_reg(t, b, UV_REG_XRC_RCV_QP, hb, gone), 0);
	ctx_release(a);
	assert_int_equal(rcv_query(t, b, hb, gone, &attr), 0);
	ctx_release(b);
	assert_null(qp_find(&t->k, 0, gone));
	assert_int_equal(kt_xrcd(t, c, fd, 0, &ha), EAGAIN);
	kt_queue_free(&cq);
	kt_queue_free(&qp);
	close(fd);
	kt_stop(t);
}

/* A context is registered once, through either of its two handles on the domain. */
static void two_handles(void **state)
{
	struct kt *t = kt_start(SH_FACE_OFED, 1, 1);
	struct kctx *a = kt_open(t, 0);
	struct kt_state before = kt_state(t), after;
	int fd = in_dir("two", O_RDWR | O_CREAT);
	uint32_t h1, h2, qpn = 0;

	(void)state;
	assert_int_equal(kt_xrcd(t, a, fd, O_CREAT, &h1), 0);
	assert_int_equal(kt_xrcd(t, a, fd, O_CREAT, &h2), 0);
	assert_int_equal(rcv_create(t, a, h1, &qpn), 0);
	assert_int_equal(rcv_reg(t, a, UV_REG_XRC_RCV_QP, h2, qpn), 0);
	assert_int_equal(close_domain(t, a, h1), EBUSY);
	assert_int_equal(close_domain(t, a, h2), 0);
	assert_int_equal(rcv_reg(t, a, UV_UNREG_XRC_RCV_QP, h1, qpn), 0);
	assert_int_equal(close_domain(t, a, h1), 0);
	after = kt_state(t);
	assert_true(kt_same(&before, &after));
	close(fd);
	kt_stop(t);
}

/* Each registered context gets one event, with the QP's number. */
static void receive_qp_events(void **state)
{
	struct kt *t = kt_start(SH_FACE_OFED, 1, 1);
	struct kctx *ctx[3] = {kt_open(t, 0), kt_open(t, 0), kt_open(t, 0)};
	int fd = in_dir("events", O_RDWR | O_CREAT), i;
	struct uv_async_record rec;
	uint32_t h[3], qpn = 0;

	(void)state;
	for (i = 0; i < 3; i++)
		assert_int_equal(kt_xrcd(t, ctx[i], fd, O_CREAT, &h[i]), 0);
	assert_int_equal(rcv_create(t, ctx[0], h[0], &qpn), 0);
	assert_int_equal(rcv_reg(t, ctx[1], UV_REG_XRC_RCV_QP, h[1], qpn), 0);
	assert_int_equal(rcv_reg(t, ctx[2], UV_REG_XRC_RCV_QP, h[2], qpn), 0);
	assert_int_equal(rcv_reg(t, ctx[1], UV_UNREG_XRC_RCV_QP, h[1], qpn), 0);
	sh_affiliated_event(&t->k.dev, 0, UV_EV_COMM_EST, qpn);
	for (i = 0; i < 3; i++) {
		if (i != 1) {
			assert_int_equal(read(ctx[i]->async->fifo.fd, &rec, sizeof(rec)),
					 sizeof(rec));
			assert_int_equal(rec.element, qpn);
			assert_int_equal(rec.event_type, UV_EV_COMM_EST | 0x80000000u);
		}
		assert_int_equal(read(ctx[i]->async->fifo.fd, &rec, sizeof(rec)), -1);
	}
	close(fd);
	kt_stop(t);
}

/* ---- mainline's target QPs ---- */

static int tgt_create(struct kt *t, struct kctx *ctx, uint32_t domain, uint64_t user_handle,
		      struct uv_create_qp_resp *resp)
{
	struct uv_create_qp cmd = {.response = (uintptr_t)resp,
				   .user_handle = user_handle,
				   .pd_handle = domain,
				   .qp_type = UV_QPT_XRC_TGT};

	return kt_cmd(t, ctx, UV_CREATE_QP, &cmd, sizeof(cmd), sizeof(*resp));
}

static int tgt_open(struct kt *t, struct kctx *ctx, uint32_t domain, uint32_t qpn, uint32_t type,
		    uint64_t user_handle, struct uv_create_qp_resp *resp)
{
	struct uv_open_qp cmd = {.response = (uintptr_t)resp,
				 .user_handle = user_handle,
				 .pd_handle = domain,
				 .qpn = qpn,
				 .qp_type = type};

	return kt_cmd(t, ctx, UV_OPEN_QP, &cmd, sizeof(cmd), sizeof(*resp));
}

static void target_qps(void **state)
{
	struct kt *t = kt_start(SH_FACE_MAINLINE, 1, 1);
	struct kctx *a = kt_open(t, 0), *b = kt_open(t, 0);
	struct kt_state before, after;
	struct uv_create_qp_resp first, second, again;
	struct uv_query_qp_resp attr;
	struct uv_query_qp query = {.response = (uintptr_t)&attr};
	struct uv_modify_qp modify = {
		.attr = {.attr_mask = TO_INIT,
			 .qp_state = SH_QPS_INIT,
			 .port_num = 1,
			 .qp_access_flags = SH_REMOTE_WRITE},
	};
	struct uv_destroy_resp reported;
	struct uv_object destroy = {.response = (uintptr_t)&reported};
	struct uv_async_record rec;
	int fd = in_dir("tgt", O_RDWR | O_CREAT);
	uint32_t ha, hb, other;

	(void)state;
	assert_int_equal(kt_xrcd(t, a, fd, O_CREAT, &ha), 0);
	assert_int_equal(kt_xrcd(t, b, fd, O_CREAT, &hb), 0);
	assert_int_equal(kt_xrcd(t, b, -1, O_CREAT, &other), 0);
	before = kt_state(t);
	assert_int_equal(tgt_create(t, a, hb, 1, &first), EINVAL);
	assert_int_equal(tgt_create(t, a, ha, 1, &first), 0);
	assert_true(first.qpn & K_XRC_QPN_BIT);
	assert_int_equal(tgt_open(t, b, ha, first.qpn, UV_QPT_XRC_TGT, 2, &second), EINVAL);
	assert_int_equal(tgt_open(t, b, other, first.qpn, UV_QPT_XRC_TGT, 2, &second), EINVAL);
	assert_int_equal(tgt_open(t, b, hb, first.qpn + 1, UV_QPT_XRC_TGT, 2, &second), EINVAL);
	assert_int_equal(tgt_open(t, b, hb, first.qpn, UV_QPT_XRC_INI, 2, &second), EINVAL);
	assert_int_equal(tgt_open(t, b, 999, first.qpn, UV_QPT_XRC_TGT, 2, &second), EINVAL);
	assert_int_equal(tgt_open(t, b, hb, first.qpn, UV_QPT_XRC_TGT, 2, &second), 0);
	assert_int_equal(second.qpn, first.qpn);
	/* A second handle of the same context counts, too. */
	assert_int_equal(tgt_open(t, b, hb, first.qpn, UV_QPT_XRC_TGT, 3, &again), 0);
	assert_int_not_equal(again.qp_handle, second.qp_handle);
	assert_int_equal(close_domain(t, a, ha), EBUSY);
	assert_int_equal(close_domain(t, b, hb), EBUSY);
	/*
	 * All handles stand for one QP. The kernel silently drops attributes of the sending half.
	 */
	modify.qp_handle = second.qp_handle;
	modify.attr.attr_mask |= UV_QP_RETRY_CNT | UV_QP_RNR_RETRY | UV_QP_MAX_QP_RD_ATOMIC;
	assert_int_equal(kt_cmd(t, b, UV_MODIFY_QP, &modify, sizeof(modify), 0), 0);
	query.qp_handle = first.qp_handle;
	assert_int_equal(kt_cmd(t, a, UV_QUERY_QP, &query, sizeof(query), sizeof(attr)), 0);
	assert_int_equal(attr.qp_state, SH_QPS_INIT);
	/* Each handle has its own user handle in events, and its own count. */
	sh_affiliated_event(&t->k.dev, 0, UV_EV_COMM_EST, first.qpn);
	assert_int_equal(read(a->async->fifo.fd, &rec, sizeof(rec)), sizeof(rec));
	assert_int_equal(rec.element, 1);
	assert_int_equal(rec.event_type, UV_EV_COMM_EST);
	assert_int_equal(read(b->async->fifo.fd, &rec, sizeof(rec)), sizeof(rec));
	assert_int_equal(rec.element, 3);
	destroy.handle = first.qp_handle;
	assert_int_equal(kt_cmd(t, a, UV_DESTROY_QP, &destroy, sizeof(destroy), sizeof(reported)),
			 0);
	assert_int_equal(reported.events_reported, 1);
	destroy.handle = second.qp_handle;
	assert_int_equal(kt_cmd(t, b, UV_DESTROY_QP, &destroy, sizeof(destroy), sizeof(reported)),
			 0);
	assert_int_equal(reported.events_reported, 0);
	assert_int_equal(read(b->async->fifo.fd, &rec, sizeof(rec)), -1);
	assert_non_null(qp_find(&t->k, 0, first.qpn));
	destroy.handle = again.qp_handle;
	assert_int_equal(kt_cmd(t, b, UV_DESTROY_QP, &destroy, sizeof(destroy), sizeof(reported)),
			 0);
	assert_int_equal(reported.events_reported, 1);
	assert_null(qp_find(&t->k, 0, first.qpn));
	after = kt_state(t);
	assert_true(kt_same(&before, &after));
	/* A command that fails leaves neither a handle nor a QP. */
	t->fault_writes = 1;
	assert_int_equal(tgt_create(t, a, ha, 1, &first), EFAULT);
	t->fault_writes = 0;
	after = kt_state(t);
	assert_true(kt_same(&before, &after));
	/* The creator's context ends. The QP lives on for the others. */
	assert_int_equal(tgt_create(t, a, ha, 1, &first), 0);
	assert_int_equal(tgt_open(t, b, hb, first.qpn, UV_QPT_XRC_TGT, 2, &second), 0);
	ctx_release(a);
	query.qp_handle = second.qp_handle;
	assert_int_equal(kt_cmd(t, b, UV_QUERY_QP, &query, sizeof(query), sizeof(attr)), 0);
	close(fd);
	kt_stop(t);
}

static int make_dir(void **state)
{
	(void)state;
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	static const char *const names[] = {"domain", "link", "srq", "rcv", "two", "events", "tgt"};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char path[64];

		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		unlink(path);
	}
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(domains_ofed),	     cmocka_unit_test(domains_mainline),
		cmocka_unit_test(srqs_ofed),	     cmocka_unit_test(srqs_mainline),
		cmocka_unit_test(receive_qps),	     cmocka_unit_test(two_handles),
		cmocka_unit_test(receive_qp_events), cmocka_unit_test(target_qps),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
