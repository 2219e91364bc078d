/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Two umad files of the daemon, one on port 1 of host 0, the other on that of a host of the test's
 * choice; and how they register, write and read.
 */
#ifndef TESTS_UNIT_SOFTHCA_UMAD_RIG_H
#define TESTS_UNIT_SOFTHCA_UMAD_RIG_H

#include <endian.h>
#include <fcntl.h>
#include <poll.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "softhca/kernel/umad/agent.h"
#include "softhca/kernel/umad/file.h"
#include "softhca/kernel/umad/io.h"
#include "softhca_kernel.h"

/* Each with two ports: LIDs 1 to 18. */
#define HOSTS 9
#define ENDS  (2 * HOSTS)

struct rig {
	struct kt *t;
	struct umad_file *f[2];
	int fd[2];
	uint8_t out[64 + 256], in[64 + 32768];
};

static inline void begin_hosts(struct rig *r, uint32_t second, uint32_t hosts)
{
	memset(r, 0, sizeof(*r));
	r->t = kt_start(SH_FACE_MAINLINE, hosts, 1);
	for (uint32_t i = 0; i < 2; i++) {
		struct kproc p = {.host = i ? second : 0, .pid = getpid()};

		assert_int_equal(umad_open(r->t->k.umad, &p, 0, O_RDWR, &r->f[i], &r->fd[i]), 0);
		assert_int_equal(umad_enable_pkey(r->f[i]), 0);
	}
}

static inline void begin(struct rig *r, uint32_t second)
{
	begin_hosts(r, second, HOSTS);
}

static inline void end(struct rig *r)
{
	for (int i = 0; i < 2; i++) {
		umad_free(r->f[i]);
		close(r->fd[i]);
	}
	assert_null(r->t->k.umad->files);
	kt_stop(r->t);
}

static inline int reg(struct rig *r, int i, uint8_t qpn, uint8_t class, uint8_t version,
		      uint8_t rmpp, uint32_t oui, uint64_t methods, uint32_t *id)
{
	struct umad_reg q = {.qpn = qpn,
			     .mgmt_class = class,
			     .mgmt_class_version = version,
			     .rmpp_version = rmpp,
			     .oui = {(uint8_t)(oui >> 16), (uint8_t)(oui >> 8), (uint8_t)oui}};
	int err;

	memcpy(q.method_mask, &methods, sizeof(methods));
	err = umad_register(r->f[i], &q);
	*id = q.id;
	return err;
}

static inline long put(struct rig *r, int i, size_t len)
{
	return umad_write(r->f[i], r->out, len);
}

static inline long get(struct rig *r, int i, size_t len)
{
	memset(r->in, 0xee, sizeof(r->in));
	return umad_read(r->f[i], r->t->proc, (uintptr_t)r->in, len);
}

static inline uint8_t *mad(struct rig *r)
{
	return r->out + 64;
}

static inline uint8_t *request(struct rig *r, uint32_t id, uint16_t lid, uint8_t class,
			       uint8_t version, uint8_t method, uint16_t attribute)
{
	struct umad_hdr h = {.id = id,
			     .timeout_ms = 60000,
			     .lid = htobe16(lid),
			     .qpn = htobe32(class != CLASS_SMP && class != CLASS_DIRECTED)};
	uint8_t *m = mad(r);

	memset(r->out, 0, sizeof(r->out));
	memcpy(r->out, &h, sizeof(h));
	m[0] = 1;
	m[1] = class;
	m[2] = version;
	m[3] = method;
	mad_put32(m, 12, 0x1234);
	mad_put16(m, 16, attribute);
	return m;
}

static inline bool readable(const struct rig *r, int i)
{
	struct pollfd p = {.fd = r->fd[i], .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

/* Asks by Get or Set of data, and returns the data of the answer; *status: the answer's. */
static inline uint8_t *smp(struct rig *r, uint32_t id, uint16_t lid, uint8_t method,
			   uint16_t attribute, uint32_t modifier, const uint8_t *data,
			   uint32_t *status)
{
	uint8_t *m = request(r, id, lid, 1, 1, method, attribute);

	mad_put32(m, AT_MODIFIER, modifier);
	if (data)
		memcpy(m + 64, data, 64);
	assert_int_equal(put(r, 0, 320), 320);
	assert_int_equal(get(r, 0, 320), 320);
	*status = mad16(r->in + 64, 4);
	return r->in + 128;
}

#endif
