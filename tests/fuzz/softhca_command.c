// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The command channel of softhca's kernel, with both faces. An input is a list of records. Each
 * says what to send, and which fields of it are honest. Fields that must refer to something mostly
 * do, so that commands get past the first check. After each input everything is released, and
 * nothing may be left.
 *
 *	BYTE	OF A RECORD
 *	0	bit 0 face, bit 1 (with bit 7 of the next) which of two device files, the rest:
 *		which lie, if any
 *	1	command number; from 224 on, a command of rdma_cm: that less 224
 *	2	bytes of payload that follow, modulo 160
 *	3..	payload: what comes behind the header. In an honest record handles are few, sizes
 *		small, addresses good
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/softhca_kernel.h"
#include "user.h"
#include "softhca/kernel/rdmacm/channel.h"
#include "softhca/kernel/rdmacm/command.h"
#include "softhca/kernel/rdmacm/id.h"
#include "softhca/kernel/rdmacm/rdmacm.h"
#include "softhca/kernel/rdmacm/timer.h"
#include "softhca/kernel/uverbs/uverbs-abi.h"

/* The command; queue buffers; doorbell records; the response. */
#define COMMAND	 (ARENA + 16 * 4096)
#define QUEUES	 ARENA
#define RECORDS	 (ARENA + 12 * 4096)
#define RESPONSE (ARENA + 14 * 4096)

#define FACE   1
#define SECOND 2
enum lie {
	LIE_LENGTH,
	LIE_ROOM,
	LIE_RESPONSE,
	LIE_DRIVER,
	LIE_FIELDS,
	LIE_EXTENDED,
	LIE_FAULT,
	LIE_SHORT
}; /* higher: honest */

/* Fields of a command that must make sense, or it does not get far. */
enum kind { END, HANDLE, SIZE, TYPE, STATE, PORT, NONE, MASK, GROUP };
static const struct honest {
	uint32_t command;
	int face;      /* -1: both */
	size_t len;    /* of the core */
	size_t driver; /* bytes behind it */
	struct {
		enum kind kind;
		size_t at;
	} field[10];
} honest[] = {
#define AT(kind, type, field)                                                                      \
	{                                                                                          \
		kind, offsetof(struct type, field)                                                 \
	}
	{UV_GET_CONTEXT, -1, sizeof(struct uv_plain), 0, {{0}}},
	{UV_ALLOC_PD, -1, sizeof(struct uv_plain), 0, {{0}}},
	{UV_DEALLOC_PD, -1, sizeof(struct uv_handle), 0, {AT(HANDLE, uv_handle, handle)}},
	{UV_REG_MR,
	 -1,
	 sizeof(struct uv_reg_mr),
	 0,
	 {AT(SIZE, uv_reg_mr, length), AT(HANDLE, uv_reg_mr, pd_handle)}},
	{UV_DEREG_MR, -1, sizeof(struct uv_handle), 0, {AT(HANDLE, uv_handle, handle)}},
	{UV_CREATE_COMP_CHANNEL, -1, sizeof(struct uv_plain), 0, {{0}}},
	{UV_CREATE_CQ,
	 -1,
	 sizeof(struct uv_create_cq),
	 16,
	 {AT(SIZE, uv_create_cq, cqe), AT(HANDLE, uv_create_cq, comp_vector),
	  AT(NONE, uv_create_cq, comp_channel)}},
	{UV_RESIZE_CQ,
	 -1,
	 sizeof(struct uv_resize_cq),
	 8,
	 {AT(HANDLE, uv_resize_cq, cq_handle), AT(SIZE, uv_resize_cq, cqe)}},
	{UV_DESTROY_CQ, -1, sizeof(struct uv_object), 0, {AT(HANDLE, uv_object, handle)}},
	{UV_CREATE_QP,
	 -1,
	 sizeof(struct uv_create_qp),
	 24,
	 {AT(HANDLE, uv_create_qp, pd_handle), AT(HANDLE, uv_create_qp, send_cq_handle),
	  AT(HANDLE, uv_create_qp, recv_cq_handle), AT(HANDLE, uv_create_qp, srq_handle),
	  AT(SIZE, uv_create_qp, max_recv_wr), AT(PORT, uv_create_qp, max_recv_sge),
	  AT(TYPE, uv_create_qp, sq_sig_all)}},
	{UV_QUERY_QP, -1, sizeof(struct uv_query_qp), 0, {AT(HANDLE, uv_query_qp, qp_handle)}},
	{UV_MODIFY_QP,
	 -1,
	 sizeof(struct uv_modify_qp),
	 0,
	 {AT(HANDLE, uv_modify_qp, qp_handle), AT(MASK, uv_modify_qp, attr.attr_mask),
	  AT(STATE, uv_modify_qp, attr.qp_state), AT(PORT, uv_modify_qp, attr.port_num)}},
	{UV_DESTROY_QP, -1, sizeof(struct uv_object), 0, {AT(HANDLE, uv_object, handle)}},
	{UV_ATTACH_MCAST,
	 -1,
	 sizeof(struct uv_mcast),
	 0,
	 {AT(GROUP, uv_mcast, gid), AT(HANDLE, uv_mcast, qp_handle)}},
	{UV_DETACH_MCAST,
	 -1,
	 sizeof(struct uv_mcast),
	 0,
	 {AT(GROUP, uv_mcast, gid), AT(HANDLE, uv_mcast, qp_handle)}},
	{UV_CREATE_SRQ,
	 -1,
	 sizeof(struct uv_create_srq),
	 16,
	 {AT(HANDLE, uv_create_srq, pd_handle), AT(SIZE, uv_create_srq, max_wr),
	  AT(PORT, uv_create_srq, max_sge)}},
	{UV_MODIFY_SRQ,
	 -1,
	 sizeof(struct uv_modify_srq),
	 0,
	 {AT(HANDLE, uv_modify_srq, srq_handle), AT(PORT, uv_modify_srq, attr_mask),
	  AT(SIZE, uv_modify_srq, srq_limit)}},
	{UV_QUERY_SRQ, -1, sizeof(struct uv_object), 0, {AT(HANDLE, uv_object, handle)}},
	{UV_DESTROY_SRQ, -1, sizeof(struct uv_object), 0, {AT(HANDLE, uv_object, handle)}},
	{UV_CREATE_AH, -1, sizeof(struct uv_create_ah), 0, {AT(HANDLE, uv_create_ah, pd_handle)}},
	{UV_DESTROY_AH, -1, sizeof(struct uv_handle), 0, {AT(HANDLE, uv_handle, handle)}},
	{UV_OPEN_XRC_DOMAIN,
	 0,
	 sizeof(struct uv_open_xrc_domain),
	 0,
	 {AT(NONE, uv_open_xrc_domain, fd)}},
	{UV_CLOSE_XRC_DOMAIN, 0, sizeof(struct uv_object), 0, {AT(HANDLE, uv_object, handle)}},
	{UV_CREATE_XRC_SRQ,
	 0,
	 sizeof(struct uv_create_xrc_srq),
	 16,
	 {AT(HANDLE, uv_create_xrc_srq, pd_handle), AT(SIZE, uv_create_xrc_srq, max_wr),
	  AT(PORT, uv_create_xrc_srq, max_sge), AT(HANDLE, uv_create_xrc_srq, xrcd_handle),
	  AT(HANDLE, uv_create_xrc_srq, xrc_cq)}},
	{UV_CREATE_XRC_RCV_QP,
	 0,
	 sizeof(struct uv_create_xrc_rcv_qp),
	 0,
	 {AT(HANDLE, uv_create_xrc_rcv_qp, xrc_domain_handle)}},
	{UV_MODIFY_XRC_RCV_QP,
	 0,
	 sizeof(struct uv_modify_xrc_rcv_qp),
	 0,
	 {AT(HANDLE, uv_modify_xrc_rcv_qp, xrc_domain_handle),
	  AT(MASK, uv_modify_xrc_rcv_qp, attr.attr_mask),
	  AT(STATE, uv_modify_xrc_rcv_qp, attr.qp_state),
	  AT(PORT, uv_modify_xrc_rcv_qp, attr.port_num)}},
	{UV_QUERY_XRC_RCV_QP,
	 0,
	 sizeof(struct uv_query_xrc_rcv_qp),
	 0,
	 {AT(HANDLE, uv_query_xrc_rcv_qp, xrc_domain_handle)}},
	{UV_REG_XRC_RCV_QP,
	 0,
	 sizeof(struct uv_reg_xrc_rcv_qp),
	 0,
	 {AT(HANDLE, uv_reg_xrc_rcv_qp, xrc_domain_handle)}},
	{UV_UNREG_XRC_RCV_QP,
	 0,
	 sizeof(struct uv_reg_xrc_rcv_qp),
	 0,
	 {AT(HANDLE, uv_reg_xrc_rcv_qp, xrc_domain_handle)}},
	{UV_OPEN_XRCD, 1, sizeof(struct uv_open_xrc_domain), 0, {AT(NONE, uv_open_xrc_domain, fd)}},
	{UV_CLOSE_XRCD, 1, sizeof(struct uv_handle), 0, {AT(HANDLE, uv_handle, handle)}},
	{UV_CREATE_XSRQ,
	 1,
	 sizeof(struct uv_create_xsrq),
	 16,
	 {AT(HANDLE, uv_create_xsrq, pd_handle), AT(SIZE, uv_create_xsrq, max_wr),
	  AT(PORT, uv_create_xsrq, max_sge), AT(PORT, uv_create_xsrq, srq_type),
	  AT(HANDLE, uv_create_xsrq, xrcd_handle), AT(HANDLE, uv_create_xsrq, cq_handle)}},
	{UV_OPEN_QP, 1, sizeof(struct uv_open_qp), 0, {AT(HANDLE, uv_open_qp, pd_handle)}},
#undef AT
};

static struct kt *kernel[2];
static struct cm_channel *channel[2][2]; /* of each face */
static struct kt_state empty[2];

static void fail(const char *what)
{
	fprintf(stderr, "softhca_command: %s\n", what);
	abort();
}

static void set_up(void)
{
	if (kernel[0])
		return;
	user_start();
	/*
	 * In a process the host interface serves one instance at a time, so events of the first
	 * instance are lost.
	 */
	kernel[0] = kt_start(SH_FACE_OFED, 1, 1);
	kernel[1] = kt_start(SH_FACE_MAINLINE, 1, 1);
	for (unsigned int i = 0; i < 4; i++) {
		struct kt *t = kernel[i / 2];
		int fd;

		if (cm_channel_open(t->k.rdmacm, t->proc, O_RDWR, &channel[i / 2][i % 2], &fd) < 0)
			fail("no channel");
		close(fd);
	}
	empty[0] = kt_state(kernel[0]);
	empty[1] = kt_state(kernel[1]);
}

static const struct honest *find(unsigned int face, uint32_t command)
{
	size_t i;

	for (i = 0; i < sizeof(honest) / sizeof(honest[0]); i++)
		if (honest[i].command == command &&
		    (honest[i].face < 0 || (unsigned int)honest[i].face == face))
			return &honest[i];
	return NULL;
}

static void put(unsigned char *buf, size_t at, uint64_t value)
{
	memcpy(buf + at, &value, sizeof(value));
}

static void put32(unsigned char *buf, size_t at, uint32_t value)
{
	memcpy(buf + at, &value, sizeof(value));
}

/* The number of the latest receive QP. An honest command has it behind the domain. */
static uint32_t last_qpn[2];

static void make_honest(unsigned char *buf, const struct honest *h, unsigned int face)
{
	static const uint8_t type[] = {UV_QPT_RC,      UV_QPT_UC,      UV_QPT_UD, UV_QPT_XRC,
				       UV_QPT_XRC_INI, UV_QPT_XRC_TGT, 0,	  8};
	static const uint32_t mask[] = {0x39, 0x71, 0x129181, 0x12e01, 0x1, 0x10001};
	size_t i, at;

	for (i = 0; i < 10 && h->field[i].kind; i++) {
		at = h->field[i].at;
		switch (h->field[i].kind) {
		case HANDLE:
			put32(buf, at, buf[at] % 2);
			break;
		case SIZE:
			put32(buf, at, buf[at] & 0x3f);
			put32(buf, at + 4, 0);
			break;
		case PORT:
			buf[at] %= 3;
			if (h->command != UV_MODIFY_QP && h->command != UV_MODIFY_XRC_RCV_QP)
				put32(buf, at, buf[at]);
			break;
		case TYPE:
			buf[at + 1] = type[buf[at + 1] % 8];
			buf[at + 2] &= 1;
			break;
		case STATE:
			buf[at] %= 7;
			break;
		case MASK:
			put32(buf, at, mask[buf[at] % 6]);
			buf[at + 20] = buf[at + 22] = 0;
			break;
		case NONE:
			put32(buf, at, UINT32_MAX);
			break;
		case GROUP:
			buf[at] = 0xff;
			memset(buf + at + 1, 0, 14);
			break;
		case END:
			break;
		}
	}
	if (!face && h->command >= UV_MODIFY_XRC_RCV_QP)
		put32(buf, h->field[0].at + 4, last_qpn[face]);
	if (face && h->command == UV_OPEN_QP) {
		put32(buf, offsetof(struct uv_open_qp, qpn), last_qpn[face]);
		buf[offsetof(struct uv_open_qp, qp_type)] = UV_QPT_XRC_TGT;
	}
}

static int write_command(struct kt *t, struct kctx *ctx, const void *buf, size_t len)
{
	const struct user_ops *ops = t->k.user;
	int err;

	memcpy(COMMAND, buf, len);
	t->k.user = &user_bounded;
	err = kt_write(t, ctx, COMMAND, len);
	t->k.user = ops;
	return err;
}

static void send_record(struct kt *t, struct kctx *ctx, unsigned int flags, uint32_t command,
			const uint8_t *payload, size_t n)
{
	unsigned char buf[256] __attribute__((aligned(8))) = {0};
	const struct honest *h = find(flags & FACE, command);
	struct uv_hdr hdr = {.command = command, .out_words = 64};
	enum lie lie = flags >> 2;
	size_t len = sizeof(hdr) + (n & ~(size_t)3);

	memcpy(buf + sizeof(hdr), payload, n);
	if (h && lie != LIE_SHORT)
		len = h->len + h->driver;
	if (h && lie != LIE_FIELDS)
		make_honest(buf, h, flags & FACE);
	if (h && h->driver && lie != LIE_DRIVER) {
		put(buf, h->len, (uintptr_t)QUEUES + 4096 * (n % 8));
		if (h->driver > 8)
			put(buf, h->len + 8, (uintptr_t)RECORDS + 8 * (n % 500));
		if (h->driver > 16) {
			buf[h->len + 16] = 1 + n % 5;
			buf[h->len + 17] = 6;
		}
	}
	if (command == UV_REG_MR && lie != LIE_FIELDS) {
		put(buf, offsetof(struct uv_reg_mr, start), (uintptr_t)QUEUES);
		put(buf, offsetof(struct uv_reg_mr, hca_va), (uintptr_t)QUEUES);
	}
	if (!h || h->len > sizeof(struct uv_handle))
		if (lie != LIE_RESPONSE && command != UV_MODIFY_QP && command != UV_MODIFY_SRQ &&
		    command != UV_ATTACH_MCAST && command != UV_DETACH_MCAST &&
		    (flags & FACE || command < UV_MODIFY_XRC_RCV_QP ||
		     command == UV_QUERY_XRC_RCV_QP))
			put(buf, 8, (uintptr_t)RESPONSE);
	if (lie == LIE_ROOM && n)
		hdr.out_words = payload[0];
	hdr.in_words = len / 4;
	if (lie == LIE_LENGTH && n)
		hdr.in_words = payload[n - 1];
	if (lie == LIE_EXTENDED) {
		hdr.command |= UV_EXTENDED;
		hdr.in_words = len < 24 ? 0 : (len - 24) / 8;
		hdr.out_words = 38;
	}
	memcpy(buf, &hdr, sizeof(hdr));
	user_faults = lie == LIE_FAULT ? 1 + n % 3 : 0;
	if (write_command(t, ctx, buf, len) == 0 &&
	    (command == UV_CREATE_XRC_RCV_QP || command == UV_CREATE_QP))
		memcpy(&last_qpn[flags & FACE], RESPONSE + (command == UV_CREATE_QP ? 4 : 0), 4);
	while (t->r.nfds)
		close(t->fds[--t->r.nfds]);
	user_faults = 0;
}

/* ---- rdma_cm ---- */

/* Where each command has its response, its id, and an address; 0xffff: nowhere. */
static const struct {
	uint16_t len, response, id, address;
} cm_honest[] = {
#define NOT 0xffff
	[CM_CREATE_ID] = {24, 8, NOT, NOT},    [CM_DESTROY_ID] = {16, 0, 8, NOT},
	[CM_BIND_IP] = {40, 0, 36, 8},	       [CM_RESOLVE_IP] = {64, NOT, 56, 28},
	[CM_RESOLVE_ROUTE] = {8, NOT, 0, NOT}, [CM_QUERY_ROUTE] = {16, 0, 8, NOT},
	[CM_CONNECT] = {288, NOT, 272, NOT},   [CM_LISTEN] = {8, NOT, 0, NOT},
	[CM_ACCEPT] = {296, NOT, 280, NOT},    [CM_REJECT] = {264, NOT, 0, NOT},
	[CM_DISCONNECT] = {4, NOT, 0, NOT},    [CM_INIT_QP_ATTR] = {16, 0, 8, NOT},
	[CM_GET_EVENT] = {8, 0, NOT, NOT},     [CM_GET_OPTION] = {8, NOT, NOT, NOT},
	[CM_SET_OPTION] = {24, 0, 8, NOT},     [CM_NOTIFY] = {8, NOT, 0, NOT},
	[CM_JOIN_IP_MCAST] = {48, 0, 44, 16},  [CM_LEAVE_MCAST] = {16, 0, 8, NOT},
	[CM_MIGRATE_ID] = {16, 0, 8, NOT},     [CM_QUERY] = {16, 0, 8, NOT},
	[CM_BIND] = {136, NOT, 0, 8},	       [CM_RESOLVE_ADDR] = {272, NOT, 0, 144},
	[CM_JOIN_MCAST] = {152, 0, 16, 24},
};

static void make_cm_honest(unsigned char *body, uint32_t number)
{
	static const uint8_t last[] = {1, 1, 2, 9}; /* of 127.128.0.N */
	static const uint16_t ps[] = {CM_PS_TCP, CM_PS_UDP, CM_PS_IB, CM_PS_IPOIB};
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(7471)};
	uint16_t at = cm_honest[number].address;

	if (at != NOT) {
		in.sin_addr.s_addr = htonl(0x7f800000u | last[body[at] % 4]);
		if (number == CM_JOIN_IP_MCAST || number == CM_JOIN_MCAST)
			in.sin_addr.s_addr = htonl(0xef000000u | body[at] % 2);
		memcpy(body + at, &in, sizeof(in));
	}
	if (number == CM_BIND || number == CM_JOIN_MCAST)
		put32(body, number == CM_BIND ? 4 : 20, sizeof(in));
	if (number == CM_RESOLVE_ADDR)
		put32(body, 8, sizeof(in) << 16);
	if (number == CM_RESOLVE_ADDR || number == CM_RESOLVE_IP)
		put32(body, number == CM_RESOLVE_ADDR ? 4 : 60, 1);
	if (number == CM_RESOLVE_ADDR)
		put32(body, 12, 0);
	if (number == CM_RESOLVE_IP)
		memset(body, 0, sizeof(struct sockaddr_in6));
	if (number == CM_CREATE_ID) {
		memcpy(body + 16, &ps[body[16] % 4], 2);
		body[18] = CM_QPT_RC;
	}
	if (number == CM_CONNECT || number == CM_ACCEPT) {
		put32(body, cm_honest[number].id, body[0]);
		body[cm_honest[number].id - 1] = number == CM_CONNECT || body[1] & 1;
	}
	if (cm_honest[number].response != NOT)
		put(body, cm_honest[number].response, (uintptr_t)RESPONSE);
	if (cm_honest[number].id != NOT)
		put32(body, cm_honest[number].id, body[cm_honest[number].id] % 4);
}

static void send_cm(struct kt *t, struct cm_channel *ch, unsigned int flags, uint32_t number,
		    const uint8_t *payload, size_t n)
{
	struct cm_call c = {.cm = t->k.rdmacm, .proc = t->proc, .ch = ch, .privileged = true};
	const struct user_ops *ops = t->k.user;
	unsigned char buf[sizeof(struct cm_hdr) + 512] = {0};
	struct cm_hdr hdr = {.number = number, .in = (uint16_t)n, .out = 512};
	enum lie lie = flags >> 2;

	memcpy(buf + sizeof(hdr), payload, n);
	if (number < CM_NUMBERS && lie != LIE_FIELDS) {
		if (lie != LIE_SHORT)
			hdr.in = cm_honest[number].len;
		make_cm_honest(buf + sizeof(hdr), number);
	}
	if (lie == LIE_RESPONSE && number < CM_NUMBERS && cm_honest[number].response != NOT)
		put(buf, sizeof(hdr) + cm_honest[number].response, n);
	if (lie == LIE_ROOM && n)
		hdr.out = payload[0];
	memcpy(buf, &hdr, sizeof(hdr));
	memcpy(COMMAND, buf, sizeof(buf));
	user_faults = lie == LIE_FAULT ? 1 + n % 3 : 0;
	t->k.user = &user_bounded;
	(void)cm_command(&c, (uintptr_t)COMMAND, lie == LIE_LENGTH ? n : sizeof(hdr) + hdr.in);
	t->k.user = ops;
	user_faults = 0;
	cm_timer_ready(t->k.rdmacm);
}

static void end_cm(struct kt *t, struct cm_channel *ch[2])
{
	const struct rdmacm *r = t->k.rdmacm;
	uint32_t reported;

	for (int i = 0; i < 2; i++) {
		while (ch[i]->ids)
			cm_id_destroy(ch[i]->ids, &reported);
		if (ch[i]->events || ch[i]->unread)
			fail("an event is left");
	}
	/* A message that arrives can be answered by another one. */
	do
		cm_timer_ready(t->k.rdmacm);
	while (r->messages);
	if (r->ids || r->asked || r->groups || r->messages || r->hosts[0].ids.used ||
	    r->hosts[0].members.used)
		fail("something of rdma_cm is left");
	for (int i = 0; i < CM_SPACES; i++)
		if (r->hosts[0].ports[i])
			fail("a port is left");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kctx *ctx[2][2];
	struct kt_state after;
	unsigned int face, i;
	size_t n;

	set_up();
	user_arena();
	last_qpn[0] = last_qpn[1] = 0;
	for (face = 0; face < 2; face++)
		for (i = 0; i < 2; i++)
			ctx[face][i] = i ? kt_open(kernel[face], 0) : kt_open_raw(kernel[face], 0);
	while (size >= 3) {
		face = data[0] & FACE;
		n = data[2] % 160;
		if (n > size - 3)
			n = size - 3;
		if (data[1] >= 224)
			send_cm(kernel[face], channel[face][!!(data[0] & SECOND)], data[0],
				data[1] - 224u, data + 3, n);
		else
			send_record(kernel[face], ctx[face][!(data[0] & SECOND && data[1] & 0x80)],
				    data[0], data[1] % 48, data + 3, n);
		data += 3 + n;
		size -= 3 + n;
	}
	for (face = 0; face < 2; face++) {
		for (i = 0; i < 2; i++)
			ctx_release(ctx[face][i]);
		end_cm(kernel[face], channel[face]);
		after = kt_state(kernel[face]);
		if (kernel[face]->k.uverbs->releasing || !kt_same(&after, &empty[face]))
			fail("something is left");
	}
	return 0;
}

/* Both the fuzzer and the driver end by exit(). */
static void __attribute__((destructor)) take_down(void)
{
	if (!kernel[0])
		return;
	kt_stop(kernel[0]);
	kt_stop(kernel[1]);
	user_stop();
}
