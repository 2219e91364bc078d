// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: the daemon's room for management datagrams, call by call, without sockets: who may
 * register what, what a write or read refuses, whose answer is whose, time limits, long messages.
 */
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "softhca/device/memory/tables.h"
#include "softhca/device/memory/txn.h"
#include "softhca/device/transport/gsi.h"
#include "softhca/host/process.h"
#include "softhca/kernel/lists.h"
#include "softhca/kernel/ports.h"
#include "softhca/kernel/umad/agent.h"
#include "softhca/kernel/umad/file.h"
#include "softhca/kernel/umad/gsi.h"
#include "softhca/kernel/umad/io.h"
#include "softhca/kernel/uverbs/uverbs-abi.h"
#include "softhca_umad_rig.h"

static void registration(void **state)
{
	static const struct {
		uint8_t qpn, class, version, rmpp;
		uint32_t oui;
		int err;
	} cases[] = {
		{2, 3, 2, 1, 0, -EINVAL},    {0, 3, 2, 1, 0, -EINVAL},
		{1, 1, 1, 0, 0, -EINVAL},    {1, 0x81, 1, 0, 0, -EINVAL},
		{0, 1, 1, 1, 0, -EINVAL},    {1, 4, 1, 1, 0, -EINVAL},
		{1, 3, 2, 2, 0, -EINVAL},    {1, 80, 1, 0, 0, -EINVAL},
		{1, 0x32, 1, 0, 0, -EINVAL}, {1, 0x32, 1, 1, 0x1405, 0},
		{1, 0, 0, 0, 0, 0},	     {1, 3, 2, 1, 0, 0},
		{0, 0x81, 1, 0, 0, 0},	     {0, 1, 1, 0, 0, 0},
		{1, 79, 1, 0, 7, 0},	     {1, 4, 0x83, 0, 0, -EINVAL},
		{1, 4, 255, 0, 0, -EINVAL},  {1, 4, 0x82, 0, 0, 0},
		{1, 0, 255, 0, 0, 0},
	};
	struct rig r;
	uint32_t id, n = 0;

	(void)state;
	begin(&r, 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(reg(&r, 0, cases[i].qpn, cases[i].class, cases[i].version,
				     cases[i].rmpp, cases[i].oui, 2, &id),
				 cases[i].err);
		if (!cases[i].err)
			assert_int_equal(id, n++);
	}
	assert_int_equal(umad_enable_pkey(r.f[0]), -EINVAL);
	/* The methods of the class are taken on this port, whoever asks, and other ones are not. */
	assert_int_equal(reg(&r, 1, 1, 3, 2, 1, 0, 2, &id), -EINVAL);
	assert_int_equal(reg(&r, 1, 1, 3, 2, 1, 0, 4, &id), 0);
	assert_int_equal(reg(&r, 1, 1, 3, 1, 1, 0, 2, &id), 0);
	assert_int_equal(reg(&r, 1, 1, 0x32, 1, 1, 0x1406, 2, &id), 0);
	for (; n < UMAD_AGENTS; n++)
		assert_int_equal(reg(&r, 0, 1, 0, 0, 0, 0, 0, &id), 0);
	assert_int_equal(reg(&r, 0, 1, 0, 0, 0, 0, 0, &id), -ENOMEM);
	/* Kernels of OFED's time know fewer versions. */
	r.t->k.cfg.device.face = SH_FACE_OFED;
	assert_int_equal(reg(&r, 1, 1, 4, 8, 0, 0, 2, &id), -EINVAL);
	assert_int_equal(reg(&r, 1, 1, 4, 7, 0, 0, 2, &id), 0);
	assert_int_equal(reg(&r, 1, 1, 0, 8, 0, 0, 0, &id), 0);
	r.t->k.cfg.device.face = SH_FACE_MAINLINE;
	assert_int_equal(umad_unregister(r.f[0], 2), 0);
	assert_int_equal(umad_unregister(r.f[0], 2), -EINVAL);
	assert_int_equal(umad_unregister(r.f[0], UMAD_AGENTS), -EINVAL);
	assert_int_equal(reg(&r, 1, 1, 3, 2, 1, 0, 2, &id), 0);
	assert_int_equal(reg(&r, 0, 1, 0, 0, 0, 0, 0, &id), 0);
	assert_int_equal(id, 2);
	end(&r);
}

static void refused(void **state)
{
	struct rig r;
	uint32_t smp, perf, directed;

	(void)state;
	begin(&r, 0);
	assert_int_equal(reg(&r, 0, 0, 1, 1, 0, 0, 0, &smp), 0);
	assert_int_equal(reg(&r, 0, 1, 4, 1, 0, 0, 0, &perf), 0);
	assert_int_equal(reg(&r, 0, 0, 0x81, 1, 0, 0, 0, &directed), 0);
	request(&r, smp, 1, 1, 1, 1, 0x11);
	assert_int_equal(put(&r, 0, 64 + 35), -EINVAL);
	assert_int_equal(put(&r, 0, 64 + 257), -EINVAL);
	request(&r, 7, 1, 1, 1, 1, 0x11);
	assert_int_equal(put(&r, 0, 320), -EINVAL);
	/* A class of the other queue pair. */
	request(&r, perf, 1, 1, 1, 1, 0x11);
	assert_int_equal(put(&r, 0, 320), -EINVAL);
	/* Places that a port's tables have not. */
	request(&r, perf, 1, 4, 1, 1, 0x12);
	((struct umad_hdr *)r.out)->pkey_index = SH_PKEYS;
	assert_int_equal(put(&r, 0, 320), -EINVAL);
	((struct umad_hdr *)r.out)->pkey_index = 0;
	((struct umad_hdr *)r.out)->gid_index = SH_GIDS;
	((struct umad_hdr *)r.out)->grh_present = 1;
	assert_int_equal(put(&r, 0, 320), -EINVAL);
	/* Nobody has the LID: the request waits, and its transaction is not to be had again. */
	request(&r, perf, 700, 4, 1, 1, 0x12);
	assert_int_equal(put(&r, 0, 320), 320);
	assert_int_equal(put(&r, 0, 320), -EINVAL);
	/* Routes that cannot begin here. */
	mad_put16(request(&r, directed, 0xffff, 0x81, 1, 1, 0x11), AT_DR_SLID, 0xffff);
	mad(&r)[AT_HOP_COUNT] = 1;
	mad(&r)[AT_INITIAL + 1] = 2;
	assert_int_equal(put(&r, 0, 320), -EINVAL);
	mad(&r)[AT_INITIAL + 1] = 1;
	mad(&r)[AT_HOP_COUNT] = 64;
	assert_int_equal(put(&r, 0, 320), -EINVAL);
	assert_int_equal(get(&r, 0, 320), -EAGAIN);
	assert_int_equal(get(&r, 0, 63), -EINVAL);
	end(&r);
}

static void answers(void **state)
{
	struct rig r;
	uint32_t id[2];

	(void)state;
	begin(&r, 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(reg(&r, i, 0, 1, 1, 0, 0, 0, &id[i]), 0);
	/* The same transaction in both files: each gets its own. */
	for (int i = 0; i < 2; i++) {
		request(&r, id[i], (uint16_t)(2 * i + 3), 1, 1, 1, 0x11);
		assert_int_equal(put(&r, i, 64 + 36), 100);
	}
	for (int i = 0; i < 2; i++) {
		const struct umad_hdr *h = (const void *)r.in;
		const uint8_t *m = r.in + 64;

		assert_true(readable(&r, i));
		assert_int_equal(get(&r, i, 319), -EINVAL);
		assert_int_equal(get(&r, i, 320), 320);
		assert_int_equal(h->status, 0);
		assert_int_equal(h->length, 320);
		assert_int_equal(be16toh(h->lid), 2 * i + 3);
		assert_int_equal(m[3], 0x81);
		assert_int_equal(mad16(m, 4), 0);
		assert_int_equal(mad32(m, 12), 0x1234);
		assert_int_not_equal(mad32(m, 8), 0);
		/* NodeInfo of that host. */
		assert_int_equal(mad64(m, 64 + 20),
				 UINT64_C(0x0002c90300100001) + 4 * (uint64_t)(i + 1));
		assert_false(readable(&r, i));
	}
	/* Attributes that are not there, and values that are refused: an answer that says so. */
	request(&r, id[0], 2, 1, 1, 1, 0x12);
	assert_int_equal(put(&r, 0, 320), 320);
	assert_int_equal(get(&r, 0, 320), 320);
	assert_int_equal(mad16(r.in + 64, 4), 0x0c);
	request(&r, id[0], 2, 1, 1, 2, 0x11);
	assert_int_equal(put(&r, 0, 320), 320);
	assert_int_equal(get(&r, 0, 320), 320);
	assert_int_equal(mad16(r.in + 64, 4), 0x0c);
	assert_int_equal(r.in[64 + 3], 0x81);
	request(&r, id[0], 2, 1, 1, 2, 0x15);
	assert_int_equal(put(&r, 0, 320), 320);
	assert_int_equal(get(&r, 0, 320), 320);
	assert_int_equal(mad16(r.in + 64, 4), 0x1c);
	/* The subnet manager is on one port alone. */
	request(&r, id[0], 2, 1, 1, 1, 0x20);
	assert_int_equal(put(&r, 0, 320), 320);
	assert_int_equal(get(&r, 0, 320), 320);
	assert_int_equal(mad16(r.in + 64, 4), 0x0c);
	end(&r);
}

static void between_programs(void **state)
{
	struct rig r;
	uint32_t ask, serve;
	uint64_t tid;

	(void)state;
	begin(&r, 3);
	assert_int_equal(reg(&r, 0, 1, 0x32, 1, 1, 0x1405, 0, &ask), 0);
	assert_int_equal(reg(&r, 1, 1, 0x32, 1, 1, 0x1405, UINT64_MAX, &serve), 0);
	request(&r, ask, 7, 0x32, 1, 1, 0x20);
	mad(&r)[38] = 0x14;
	mad(&r)[39] = 0x05;
	mad(&r)[50] = 77;
	assert_int_equal(put(&r, 0, 320), 320);
	assert_int_equal(get(&r, 1, 320), 320);
	assert_int_equal(r.in[64 + 50], 77);
	assert_int_equal(be16toh(((struct umad_hdr *)r.in)->lid), 1);
	tid = mad64(r.in + 64, 8);
	memcpy(r.out + 64, r.in + 64, 256);
	((struct umad_hdr *)r.out)->id = serve;
	((struct umad_hdr *)r.out)->lid = htobe16(1);
	((struct umad_hdr *)r.out)->timeout_ms = 0;
	mad(&r)[3] = 0x81;
	assert_int_equal(put(&r, 1, 320), 320);
	assert_int_equal(get(&r, 0, 320), 320);
	assert_int_equal(mad64(r.in + 64, 8), tid);
	/* Nobody waits for a second answer. */
	assert_int_equal(put(&r, 1, 320), 320);
	assert_int_equal(get(&r, 0, 320), -EAGAIN);
	/* Another OUI: the port says that it has no such agent. */
	request(&r, ask, 7, 0x32, 1, 1, 0x20);
	mad(&r)[39] = 0x06;
	assert_int_equal(put(&r, 0, 320), 320);
	assert_int_equal(get(&r, 1, 320), -EAGAIN);
	assert_int_equal(get(&r, 0, 320), 320);
	assert_int_equal(mad16(r.in + 64, 4), 0x0c);
	end(&r);
}

static void time_limits(void **state)
{
	struct umad_msg *m;
	uint64_t since;
	struct rig r;
	uint32_t id;
	size_t full;

	(void)state;
	begin(&r, 0);
	assert_int_equal(reg(&r, 0, 1, 4, 1, 0, 0, 0, &id), 0);
	request(&r, id, 700, 4, 1, 1, 0x12);
	((struct umad_hdr *)r.out)->retries = 2;
	since = sh_now();
	assert_int_equal(put(&r, 0, 320), 320);
	for (int i = 0; i < 3; i++) {
		umad_timer_ready(r.t->k.umad);
		assert_int_equal(get(&r, 0, 320), -EAGAIN);
		m = r.f[0]->sent;
		assert_non_null(m);
		assert_int_equal(m->retries, 2 - i);
		/* Each time it waits as long as the program said. */
		assert_true(m->due >= since + 60 * UINT64_C(1000000000));
		assert_true(m->due <= sh_now() + 60 * UINT64_C(1000000000));
		since = sh_now();
		m->due = 1; /* long ago */
	}
	umad_timer_ready(r.t->k.umad);
	assert_null(r.f[0]->sent);
	assert_true(readable(&r, 0));
	assert_int_equal(get(&r, 0, 320), 64 + 24);
	assert_int_equal(((struct umad_hdr *)r.in)->status, ETIMEDOUT);
	assert_int_equal(((struct umad_hdr *)r.in)->id, id);
	assert_int_equal(mad32(r.in + 64, 12), 0x1234);
	/* A file that has no room left for more is told all the same. */
	request(&r, id, 700, 4, 1, 1, 0x12);
	assert_int_equal(put(&r, 0, 320), 320);
	r.f[0]->sent->due = 1;
	full = UMAD_BYTES - r.f[0]->bytes;
	r.f[0]->bytes += full;
	umad_timer_ready(r.t->k.umad);
	assert_int_equal(get(&r, 0, 320), 64 + 24);
	assert_int_equal(((struct umad_hdr *)r.in)->status, ETIMEDOUT);
	r.f[0]->bytes -= full;
	/* The agent's end ends its requests. */
	request(&r, id, 700, 4, 1, 1, 0x12);
	assert_int_equal(put(&r, 0, 320), 320);
	assert_int_equal(umad_unregister(r.f[0], id), 0);
	assert_null(r.f[0]->sent);
	assert_int_equal(r.f[0]->bytes, 0);
	end(&r);
}

/* What the next calls find where they have their variables. */
static __attribute__((noinline)) void scribble(void)
{
	volatile uint8_t stack[65536];

	for (size_t i = 0; i < sizeof(stack); i++)
		stack[i] = 0xf3;
}

static void sets(void **state)
{
	const struct sh_port_msg down = {.host = 1, .port = 2, .what = SH_PORT_DOWN};
	struct kproc p = {.host = 1, .pid = getpid()};
	struct sh_status st;
	const struct sh_port *port;
	struct umad_file *issm, *second;
	uint32_t id, status;
	uint8_t data[64];
	struct rig r;
	int fd;

	(void)state;
	begin(&r, 0);
	port = &sh_hca(&r.t->k.dev, 1)->port[1]; /* of host 1: LID 4 */
	assert_int_equal(reg(&r, 0, 0, 1, 1, 0, 0, 0, &id), 0);
	assert_int_equal(umad_open(r.t->k.umad, &p, UMAD_MINORS + 1, O_RDWR, &issm, &fd), 0);
	assert_int_equal(umad_open(r.t->k.umad, &p, UMAD_MINORS + 1, O_RDWR, &second, &fd),
			 -EAGAIN);
	memcpy(data, smp(&r, id, 4, 1, 0x15, 0, NULL, &status), 64);
	assert_int_equal(status, 0);
	assert_int_equal(mad32(data, 20), 0x0251086a);
	/* Nobody is the subnet manager: the built-in one has given way. */
	(void)smp(&r, id, 1, 1, 0x20, 0, NULL, &status);
	assert_int_equal(status, 0x0c);
	/* Violations are counted up to what fits. */
	sh_hca(&r.t->k.dev, 1)->traffic[1].rcv_constraint = 0x10000;
	sh_hca(&r.t->k.dev, 1)->counters.drops_qkey = 0x10001;
	memcpy(data, smp(&r, id, 4, 1, 0x15, 0, NULL, &status), 64);
	assert_int_equal(mad16(data, 46), 0xffff);
	assert_int_equal(mad16(data, 48), 0xffff);
	/* What is stored comes back; the rest has its effect. */
	mad_put64(data, 0, 77);
	mad_put16(data, 16, 44);
	mad_put16(data, 18, 4);
	data[51] = 0x80 | 9;
	data[29] = 0;
	(void)smp(&r, id, 4, 2, 0x15, 0, data, &status);
	assert_int_equal(status, 0);
	assert_int_equal(port->lid, 44);
	assert_int_equal(port->sm_lid, 4);
	memcpy(data, smp(&r, id, 44, 1, 0x15, 0, NULL, &status), 64);
	assert_int_equal(mad64(data, 0), 77);
	assert_int_equal(data[51], 9);
	assert_int_equal(data[29], 3);
	/*
	 * A LID that is none; a state that no port has; an LMC; a physical state that no port has;
	 * SM LIDs that are none: nothing changes, also not what comes before it.
	 */
	for (int i = 0; i < 6; i++) {
		uint8_t bad[64];

		memcpy(bad, data, 64);
		mad_put64(bad, 0, 78);
		mad_put16(bad, 16, i ? 45 : SH_MAX_LIDS);
		mad_put16(bad, 18, i == 4 ? 0xc000 : i == 5 ? 0 : 5);
		bad[32] |= i == 1 ? 7 : 0;
		bad[33] = i == 3 ? (uint8_t)((bad[33] & 15) | 6 << 4) : bad[33];
		bad[34] |= i == 2 ? 1 : 0;
		(void)smp(&r, id, 44, 2, 0x15, 0, bad, &status);
		assert_int_equal(status, 0x1c);
		assert_int_equal(port->lid, 44);
		assert_int_equal(port->sm_lid, 4);
		assert_memory_equal(smp(&r, id, 44, 1, 0x15, 0, NULL, &status), data, 64);
	}
	/* The built-in manager's tables are still made when they are asked for. */
	memcpy(data, smp(&r, id, 1023, 1, 0x19, 0, NULL, &status), 64);
	assert_int_equal(data[4], 255);
	assert_int_equal(data[44], 4);
	assert_int_equal(mad16(smp(&r, id, 1023, 1, 0x16, 2 << 16, NULL, &status), 0), 0xffff);
	/* P_Keys, and tables of the switch. */
	memcpy(data, smp(&r, id, 44, 1, 0x16, 0, NULL, &status), 64);
	mad_put16(data, 2, 0x8123);
	(void)smp(&r, id, 44, 2, 0x16, 0, data, &status);
	assert_int_equal(status, 0);
	assert_int_equal(port->pkey[1], 0x8123);
	memcpy(data, smp(&r, id, 1023, 1, 0x19, 0, NULL, &status), 64);
	assert_int_equal(data[1], 1);
	data[1] = 9;
	(void)smp(&r, id, 1023, 2, 0x19, 0, data, &status);
	assert_int_equal(smp(&r, id, 1023, 1, 0x19, 0, NULL, &status)[1], 9);
	assert_int_equal(smp(&r, id, 1023, 1, 0x19, 0, NULL, &status)[44], 4);
	/* A link goes down at either end. */
	memcpy(data, smp(&r, id, 1023, 1, 0x15, 4, NULL, &status), 64);
	data[32] &= 0xf0;
	data[33] = (uint8_t)((data[33] & 15) | 3 << 4);
	(void)smp(&r, id, 1023, 2, 0x15, 4, data, &status);
	assert_int_equal(status, 0);
	assert_int_equal(port->state, 1);
	/* That end is Disabled, and the other one looks for it. */
	assert_int_equal(smp(&r, id, 1023, 1, 0x15, 4, NULL, &status)[33] >> 4, 3);
	assert_int_equal(port_physical(&r.t->k, 1, 2), 2);
	data[33] = (uint8_t)((data[33] & 15) | 2 << 4);
	(void)smp(&r, id, 1023, 2, 0x15, 4, data, &status);
	assert_int_equal(port->state, 4);
	assert_int_equal(smp(&r, id, 1023, 1, 0x15, 4, NULL, &status)[33] >> 4, 5);
	assert_int_equal(port_physical(&r.t->k, 1, 2), 5);
	/* The host's end. */
	(void)port_change(&r.t->k, &down, true, &st);
	assert_int_equal(port->state, 1);
	assert_int_equal(smp(&r, id, 1023, 1, 0x15, 4, NULL, &status)[33] >> 4, 2);
	assert_int_equal(port_physical(&r.t->k, 1, 2), 3);
	(void)smp(&r, id, 1023, 2, 0x15, 4, data, &status);
	assert_int_equal(port->state, 4);
	/* The manager goes: its tables too, the LIDs stay, and SM LIDs are as before. */
	umad_free(issm);
	close(fd);
	assert_int_equal(port->lid, 44);
	assert_int_equal(port->sm_lid, 1);
	assert_int_equal(smp(&r, id, 1023, 1, 0x19, 0, NULL, &status)[1], 1);
	assert_int_equal(smp(&r, id, 1, 1, 0x20, 0, NULL, &status)[20], 3 | 0 << 4);
	assert_int_equal(mad32(smp(&r, id, 44, 1, 0x15, 0, NULL, &status), 20), 0x02510868);
	end(&r);
}

/*
 * A block of P_Keys is one event of the port, however many of them change, as on the card; none if
 * they stay. Which of them were set can be read.
 */
static void pkey_blocks(void **state)
{
	struct kproc p = {.host = 1, .pid = getpid()};
	struct uv_async_record rec[8];
	uint32_t resp[8];
	struct uv_plain open = {.response = (uintptr_t)resp};
	struct umad_file *issm;
	const struct sh_port *port;
	uint32_t id, status;
	uint8_t data[64];
	struct kctx *ctx;
	struct rig r;
	int fd, async;

	(void)state;
	begin(&r, 0);
	port = &sh_hca(&r.t->k.dev, 0)->port[0];
	assert_int_equal(reg(&r, 0, 0, 1, 1, 0, 0, 0, &id), 0);
	assert_int_equal(umad_open(r.t->k.umad, &p, UMAD_MINORS, O_RDWR, &issm, &fd), 0);
	ctx = kt_open_raw(r.t, 0);
	assert_int_equal(kt_cmd(r.t, ctx, UV_GET_CONTEXT, &open, sizeof(open), 16), 0);
	async = r.t->fds[0];
	assert_int_equal(fcntl(async, F_SETFL, O_NONBLOCK), 0);
	for (uint32_t i = 0; i < 32; i++)
		mad_put16(data, i * 2, 0x8100 + i);
	(void)smp(&r, id, 1, METHOD_SET, 0x16, 1, data, &status);
	assert_int_equal(status, 0);
	for (uint32_t i = 0; i < 32; i++)
		assert_int_equal(port->pkey[32 + i], 0x8100 + i);
	assert_int_equal(port->pkey[0], 0xffff);
	assert_int_equal(read(async, rec, sizeof(rec)), sizeof(rec[0]));
	assert_int_equal(rec[0].event_type, UV_EV_PKEY_CHANGE);
	(void)smp(&r, id, 1, METHOD_SET, 0x16, 1, data, &status);
	assert_int_equal(status, 0);
	assert_int_equal(read(async, rec, sizeof(rec)), -1);
	/* Port 1 alone, and whichever block: the others are as they were. */
	assert_int_equal(sh_hca(&r.t->k.dev, 0)->port[1].pkey[32], 0);
	umad_free(issm);
	close(fd);
	close(async);
	end(&r);
}

/* An instance that ends under a subnet manager changes no port any more. */
static void ends_managed(void **state)
{
	struct kproc p = {.host = 1, .pid = getpid()};
	struct umad_file *issm;
	struct rig r;
	int fd;

	(void)state;
	begin(&r, 0);
	assert_int_equal(umad_open(r.t->k.umad, &p, UMAD_MINORS + 1, O_RDWR, &issm, &fd), 0);
	sh_hca(&r.t->k.dev, 1)->port[1].sm_lid = 4;
	r.t->k.stop = true;
	umad_free(issm);
	close(fd);
	assert_int_equal(sh_hca(&r.t->k.dev, 1)->port[1].sm_lid, 4);
	end(&r);
}

/*
 * Somebody does not let go of a CQ where answers of QP 1 go. They are sent when it is free; only so
 * many wait, and an instance ends all the same.
 */
static void receiver_held(void **state)
{
	struct kt_queue cq, qp;
	const struct sh_counters *c;
	struct mad_way w = {.port = 1, .slid = 1, .dlid = 1, .qpn = 1, .pkey = 0xffff};
	uint8_t data[256] = {1};
	struct sh_cq *held;
	struct kctx *ctx;
	struct kernel *k;
	uint32_t pd;
	struct rig r;

	(void)state;
	begin(&r, 0);
	k = &r.t->k;
	ctx = kt_open(r.t, 0);
	assert_int_equal(kt_pd(r.t, ctx, &pd), 0);
	assert_int_equal(kt_cq(r.t, ctx, 8, -1, &cq), 0);
	assert_int_equal(kt_qp(r.t, ctx, UV_QPT_UD, pd, cq.handle, -1, &qp), 0);
	w.to_qpn = qp.number;
	c = &sh_hca(&k->dev, 0)->counters;
	held = sh_cq_of(sh_hca(&k->dev, 0), cq.number);
	alarm(120);
	sh_lock(&k->dev, &held->lock);
	for (int i = 0; i < 3; i++)
		gsi_send(k->umad, &w, data, sizeof(data));
	while (__atomic_load_n(&k->umad->late, __ATOMIC_RELAXED) < 3)
		usleep(100);
	assert_int_equal(c->drops_state, 0);
	sh_unlock(&k->dev, &held->lock);
	/* The QP is in RESET, which is where they end. One may come too early and be lost. */
	while (__atomic_load_n(&k->umad->leaving, __ATOMIC_RELAXED))
		usleep(100);
	assert_int_equal(c->drops_state + c->drops_memory, 3);
	assert_int_equal(k->umad->late, 0);
	sh_lock(&k->dev, &held->lock);
	for (int i = 0; i < 4200; i++)
		gsi_send(k->umad, &w, data, sizeof(data));
	while (__atomic_load_n(&k->umad->leaving, __ATOMIC_RELAXED) > 64)
		usleep(100);
	assert_true(c->drops_state + c->drops_memory >= 3 + 4200 - 64);
	sh_unlock(&k->dev, &held->lock);
	while (__atomic_load_n(&k->umad->leaving, __ATOMIC_RELAXED))
		usleep(100);
	assert_int_equal(c->drops_state + c->drops_memory, 4203);
	/* What a held lock keeps from being freed goes with a daemon. Here it would be a leak. */
#ifndef __SANITIZE_ADDRESS__
	sh_lock(&k->dev, &held->lock);
	gsi_send(k->umad, &w, data, sizeof(data));
#endif
	end(&r);
	alarm(0);
	kt_queue_free(&cq);
	kt_queue_free(&qp);
}

/* What a program's subnet administrator answers has the length of its records. */
static void length_of_answers(void **state)
{
	uint32_t ask, serve;
	struct rig r;

	(void)state;
	begin(&r, 0);
	assert_int_equal(reg(&r, 0, 1, 3, 2, 1, 0, 0, &ask), 0);
	assert_int_equal(reg(&r, 1, 1, 3, 2, 1, 0, UINT64_MAX, &serve), 0);
	for (size_t data = 0; data <= 400; data += 100) {
		request(&r, ask, 1, 3, 2, 0x12, 0x35);
		assert_int_equal(put(&r, 0, 320), 320);
		assert_int_equal(get(&r, 1, 320), 320);
		memcpy(r.out, r.in, 320);
		((struct umad_hdr *)r.out)->id = serve;
		mad(&r)[3] = 0x92;
		mad(&r)[24] = mad(&r)[25] = mad(&r)[26] = 1;
		memset(r.in, 0, 1024);
		memcpy(r.in, r.out, sizeof(r.out));
		assert_int_equal(umad_write(r.f[1], r.in, 64 + 56 + data), 64 + 56 + (long)data);
		assert_int_equal(get(&r, 0, 4096), 64 + 56 + (long)data);
	}
	end(&r);
}

static void tables(void **state)
{
	size_t all = 56 + (ENDS + 1) * (ENDS + 1) * 64; /* the switch is an end, too */
	const uint8_t *m;
	struct rig r;
	uint32_t id;

	(void)state;
	begin(&r, 0);
	assert_int_equal(reg(&r, 0, 1, 3, 2, 1, 0, 0, &id), 0);
	m = r.in + 64;
	request(&r, id, 1, 3, 2, 0x12, 0x35);
	scribble();
	assert_int_equal(put(&r, 0, 320), 320);
	/* Too short: what says how long it is comes all the same, and the message stays. */
	assert_int_equal(get(&r, 0, 320), -ENOSPC);
	assert_int_equal(((struct umad_hdr *)r.in)->length, 64 + all);
	assert_int_equal(m[3], 0x92);
	assert_int_equal(get(&r, 0, sizeof(r.in)), 64 + all);
	assert_int_equal(m[24], 1);
	assert_int_equal(m[25], 1);
	assert_int_equal(m[26] & 7, 3);
	assert_int_equal(mad32(m, 32), all - 56 + 20 * ((all - 56 + 199) / 200));
	assert_int_equal(mad16(m, 44), 8);
	assert_int_equal(mad16(m, all - 64 + 40), 1023); /* the last one's DLID */
	for (size_t at = 56; at < all; at += 64)
		assert_int_equal(mad16(m, at + 52), 0); /* QoS class and SL */
	/* One pair: a message of one segment. */
	request(&r, id, 1, 3, 2, 0x12, 0x35);
	mad_put64(mad(&r), 48, 3 << 4);
	mad_put16(mad(&r), 56 + 40, 5);
	mad_put16(mad(&r), 56 + 42, 2);
	assert_int_equal(put(&r, 0, 320), 320);
	assert_int_equal(get(&r, 0, sizeof(r.in)), 64 + 56 + 64);
	assert_int_equal(m[26] & 7, 7);
	/* None. */
	mad_put16(mad(&r), 56 + 42, 77);
	assert_int_equal(put(&r, 0, 320), 320);
	assert_int_equal(get(&r, 0, sizeof(r.in)), 64 + 56);
	assert_int_equal(mad16(m, 44), 0);
	/* One by Get; an unknown one. */
	request(&r, id, 1, 3, 2, 1, 0x35);
	mad_put64(mad(&r), 48, 1 << 4);
	mad_put16(mad(&r), 56 + 40, 5);
	assert_int_equal(put(&r, 0, 320), 320);
	assert_int_equal(get(&r, 0, sizeof(r.in)), 320);
	assert_int_equal(mad16(m, 4), 0);
	assert_int_equal(mad16(m, 56 + 42), 1);
	mad_put64(mad(&r), 48, 1 << 2);
	mad(&r)[56 + 8] = 0xfe;
	assert_int_equal(put(&r, 0, 320), 320);
	assert_int_equal(get(&r, 0, sizeof(r.in)), 320);
	assert_int_equal(mad16(m, 4), 0x0500);
	/* The administrator is on the port of the subnet manager alone. */
	request(&r, id, 2, 3, 2, 1, 0x35);
	assert_int_equal(put(&r, 0, 320), 320);
	assert_int_equal(get(&r, 0, sizeof(r.in)), 320);
	assert_int_equal(mad16(m, 4), 0x0c);
	end(&r);
}

/* A stranger who never reads takes no more than a file may have. */
static void room(void **state)
{
	struct rig r;
	uint32_t ask, serve, n;
	long ret = 320;

	(void)state;
	begin(&r, 3);
	assert_int_equal(reg(&r, 0, 1, 0x30, 1, 0, 1, 0, &ask), 0);
	assert_int_equal(reg(&r, 1, 1, 0x30, 1, 0, 1, UINT64_MAX, &serve), 0);
	request(&r, ask, 7, 0x30, 1, 3, 0x20);
	mad(&r)[39] = 1;
	((struct umad_hdr *)r.out)->timeout_ms = 0;
	for (n = 0; n < 100000; n++)
		ret = put(&r, 0, 320);
	assert_int_equal(ret, 320);
	assert_true(r.f[1]->bytes <= UMAD_BYTES);
	assert_int_equal(get(&r, 1, 320), 320);
	assert_int_equal(r.f[0]->bytes, 0);
	end(&r);
}

/* A program that does not ask for the P_Key index has headers without it. */
static void short_headers(void **state)
{
	struct kproc p = {.host = 0, .pid = getpid()};
	struct umad_reg q = {.qpn = 0, .mgmt_class = 1, .mgmt_class_version = 1};
	struct umad_file *f;
	struct rig r;
	int fd;

	(void)state;
	begin_hosts(&r, 0, 1);
	assert_int_equal(umad_open(r.t->k.umad, &p, 0, O_RDWR, &f, &fd), 0);
	assert_int_equal(umad_register(f, &q), 0);
	request(&r, q.id, 2, 1, 1, 1, 0x11);
	memmove(r.out + 56, r.out + 64, 256);
	assert_int_equal(umad_write(f, r.out, 56 + 35), -EINVAL);
	assert_int_equal(umad_write(f, r.out, 56 + 256), 56 + 256);
	assert_int_equal(umad_read(f, r.t->proc, (uintptr_t)r.in, 56 + 255), -EINVAL);
	assert_int_equal(umad_read(f, r.t->proc, (uintptr_t)r.in, 56 + 256), 56 + 256);
	assert_int_equal(((struct umad_hdr *)r.in)->length, 56 + 256);
	assert_int_equal(r.in[56 + 3], 0x81);
	assert_int_equal(mad32(r.in + 56, 12), 0x1234);
	umad_free(f);
	close(fd);
	end(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(registration),	 cmocka_unit_test(refused),
		cmocka_unit_test(answers),	 cmocka_unit_test(between_programs),
		cmocka_unit_test(time_limits),	 cmocka_unit_test(tables),
		cmocka_unit_test(sets),		 cmocka_unit_test(length_of_answers),
		cmocka_unit_test(room),		 cmocka_unit_test(ends_managed),
		cmocka_unit_test(receiver_held), cmocka_unit_test(short_headers),
		cmocka_unit_test(pkey_blocks),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
