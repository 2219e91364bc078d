// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Management datagrams from a stranger: two files, on two hosts, whose agents any request may
 * reach. After each input the files are closed, and nothing may be left.
 *
 *	BYTE	OF A RECORD
 *	0	bit 0 which file, bits 1 to 2 what: write, write of much, read or (agent odd) to
 *		QP 1, register; the rest: agent
 *	1	bytes of payload that follow
 *	2..	payload. Of a write: LID, class, method, attribute, then the MAD from its hops on,
 *		or its RMPP header; of a register: its structure. Much is 16 times the LID in
 *		octets, or, where the hop pointer is odd, 36 to 64, by the hop count: about the
 *		length of headers
 */
#include <endian.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "softhca/kernel/umad/agent.h"
#include "softhca/device/transport/gsi.h"
#include "softhca/kernel/umad/file.h"
#include "softhca/kernel/umad/gsi.h"
#include "softhca/kernel/umad/io.h"
#include "softhca/kernel/umad/notice.h"
#include "softhca/kernel/umad/sa_group.h"
#include "softhca/kernel/umad/sa_inform.h"
#include "softhca/kernel/umad/sa_service.h"
#include "softhca/kernel/umad/segments.h"
#include "tests/unit/softhca_kernel.h"

static const uint8_t classes[] = {0x01, 0x81, 0x03, 0x04, 0x32, 0x09, 0x07, 0x10};
static const uint8_t methods[] = {0x01, 0x02, 0x03, 0x05, 0x07, 0x12, 0x81, 0x92, 0x15, 0x06, 0x86};
static struct kt *t;
static struct umad_file *file[2];

static void fail(const char *what)
{
	fprintf(stderr, "%s\n", what);
	abort();
}

static void stop(void)
{
	kt_stop(t);
}

static void begin(int fd[2])
{
	if (!t) {
		t = kt_start(SH_FACE_MAINLINE, 2, 1);
		atexit(stop);
	}
	for (uint32_t i = 0; i < 2; i++) {
		struct kproc p = {.host = i, .pid = getpid()};
		struct umad_reg vendor = {
			.qpn = 1, .mgmt_class = 0x32, .mgmt_class_version = 1, .rmpp_version = 1};
		struct umad_reg one = {.qpn = 0, .mgmt_class = 0x81, .mgmt_class_version = 1};
		struct umad_reg sa = {
			.qpn = 1, .mgmt_class = 3, .mgmt_class_version = 2, .rmpp_version = 1};
		struct umad_reg perf = {.qpn = 1, .mgmt_class = 4, .mgmt_class_version = 1};
		/* Gets long requests in segments. */
		struct umad_reg plain = {.qpn = 1, .mgmt_class = 0x10, .mgmt_class_version = 1};

		if (umad_open(t->k.umad, &p, 0, O_RDWR, &file[i], &fd[i]))
			fail("umad_open");
		vendor.oui[2] = 1;
		memset(vendor.method_mask, 0xff, sizeof(vendor.method_mask));
		memset(one.method_mask, 0xff, sizeof(one.method_mask));
		memset(plain.method_mask, 0xff, sizeof(plain.method_mask));
		if (umad_enable_pkey(file[i]) || umad_register(file[i], &one) ||
		    umad_register(file[i], &sa) || umad_register(file[i], &perf) ||
		    umad_register(file[i], &vendor) || umad_register(file[i], &plain))
			fail("umad_register");
	}
}

/* What the subnet administrator has been told, which outlives files. */
static void forget(void)
{
	(void)sa_service_due(t->k.umad, UINT64_MAX);
	sa_service_forget(t->k.umad);
	sa_inform_forget(t->k.umad);
	for (uint32_t hca = 0; hca < t->k.dev.hcas; hca++)
		for (uint32_t port = 1; port <= t->k.cfg.device.ports; port++)
			sa_group_gone(t->k.umad, hca, port);
	notice_forget(t->k.umad);
	segments_forget(t->k.umad);
	if (t->k.umad->services || t->k.umad->nservices || t->k.umad->informs ||
	    t->k.umad->ninforms || t->k.umad->notices || t->k.umad->reports)
		fail("something is left");
}

static void do_write(struct umad_file *f, uint32_t id, const uint8_t *p, size_t n, size_t len)
{
	static uint8_t out[64 + 4096];
	struct umad_hdr h = {.id = id, .timeout_ms = 1, .retries = 1};
	uint8_t *m = out + 64;

	if (n < 6)
		return;
	memset(out, 0, sizeof(out));
	h.lid = htobe16(p[0] == 255 ? PERMISSIVE : p[0] == 254 ? 1023 : p[0]);
	memcpy(out, &h, sizeof(h));
	m[0] = 1;
	m[AT_CLASS] = classes[p[1] % sizeof(classes)];
	m[AT_CLASS_VERSION] = m[AT_CLASS] == CLASS_SA ? 2 : 1;
	m[AT_METHOD] = methods[p[2] % sizeof(methods)];
	m[AT_TID + 7] = p[3] & 3;
	m[AT_ATTRIBUTE + 1] = p[3];
	m[AT_HOP_POINTER] = p[4];
	m[AT_HOP_COUNT] = p[5];
	p += 6;
	n -= 6;
	memcpy(m + AT_MODIFIER, p, n > 236 ? 236 : n);
	/* A route that begins at this port, else none gets far. */
	if (m[AT_CLASS] == CLASS_DIRECTED && !(p[-3] & 0x80))
		m[AT_INITIAL + 1] = m[AT_RETURN + (m[AT_HOP_COUNT] & 63)] = 1;
	(void)umad_write(f, out, 64 + len);
}

/* What a stranger has written to the FIFO of QP 1: whole records, and parts of them. */
static void do_gsi(const uint8_t *p, size_t n)
{
	struct sh_gsi_record r = {.port = 1, .srcqp = 0x48, .slid = 1, .dlid = 1, .pkey = 0xffff};

	r.mad[0] = 1;
	r.mad[AT_CLASS] = CLASS_SA;
	r.mad[AT_CLASS_VERSION] = 2;
	if (n < 4)
		return;
	r.hca = p[0] & 3;
	r.dlid = p[1];
	r.mad[AT_METHOD] = p[2] & 0x7f;
	r.mad[AT_ATTRIBUTE + 1] = p[3];
	/* Everything before the record of the question, or everything. */
	memcpy(p[1] & 1 ? r.mad + 48 : (uint8_t *)&r, p + 4, n - 4 > 200 ? 200 : n - 4);
	if (write(t->k.umad->gsi, &r, p[2] & 0x80 ? n : sizeof(r)) < 0)
		fail("write");
	gsi_ready(t->k.umad);
}

/* How long a write of much is. */
static size_t much(const uint8_t *p, size_t n)
{
	if (n > 5 && p[4] & 1)
		return MAD_RMPP + p[5] % 29;
	return n ? p[0] * 16 : 0;
}

static void record(uint8_t what, const uint8_t *p, size_t n)
{
	static uint8_t in[1 << 16];
	struct umad_file *f = file[what & 1];
	struct umad_reg2 r = {0};

	switch (what >> 1 & 3) {
	case 0:
		do_write(f, what >> 3, p, n, MAD_SIZE);
		break;
	case 1:
		do_write(f, what >> 3, p, n, much(p, n));
		break;
	case 2:
		if (what >> 3 & 1) {
			do_gsi(p, n);
			break;
		}
		(void)umad_read(f, t->proc, (uintptr_t)in, n ? p[0] * 256 : 320);
		umad_timer_ready(t->k.umad);
		break;
	case 3:
		memcpy(&r, p, n < sizeof(r) ? n : sizeof(r));
		if (what >> 3 & 1)
			(void)umad_unregister(f, what >> 4);
		else
			(void)umad_register2(f, &r);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd[2];

	begin(fd);
	while (size >= 2) {
		size_t n = data[1] < size - 2 ? data[1] : size - 2;

		record(data[0], data + 2, n);
		data += 2 + n;
		size -= 2 + n;
	}
	forget();
	for (int i = 0; i < 2; i++) {
		if (file[i]->bytes > UMAD_BYTES)
			fail("a file has too much");
		umad_free(file[i]);
		close(fd[i]);
	}
	if (t->k.umad->files)
		fail("a file is left");
	return 0;
}
