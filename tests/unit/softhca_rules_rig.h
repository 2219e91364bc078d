/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A pair of QPs whose receiving end gets one request in the express way or in the ordinary one.
 */
#ifndef TESTS_UNIT_SOFTHCA_RULES_RIG_H
#define TESTS_UNIT_SOFTHCA_RULES_RIG_H

#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "softhca/device/memory/exec.h"
#include "softhca/device/memory/tables.h"
#include "softhca/device/queues/wqe.h"
#include "softhca/device/transport/express.h"
#include "softhca_pair.h"

enum {
	WHOLE = SH_PKT_FIRST | SH_PKT_LAST | SH_PKT_ACKREQ,
	LEN = 100,
	SRQN = 0x60,
	IMM = 0x12345678
};

static struct tpair p;
static struct sh_packet req, resp;
static struct sh_seg src, resp_seg[SH_MAX_SEGS];
static uint32_t port;

static inline struct sh_qp *qp(void)
{
	return tqp_ctx(&p.b);
}

static inline struct sh_cq *cq(void)
{
	return sh_cq_get(&p.m->dev, 1, p.bcq[1].cqn);
}

static inline struct sh_srq *srq(void)
{
	return sh_srq_get(&p.m->dev, 1, SRQN);
}

static inline struct sh_mpt *key(void)
{
	return sh_mpt_get(&p.m->dev, 1, p.bkey);
}

/* Opens a pair, and makes the first request from a to b, as a would send it. */
static inline void begin(uint32_t type, bool with_srq, uint8_t op)
{
	tpair_open(&p, &(struct tpair_opts){.type = type, .srq = with_srq});
	tfill(p.amem, TMEM / 2, 1);
	tfill(p.bmem, TMEM / 2, 2);
	port = 1;
	src = (struct sh_seg){(uintptr_t)p.amem, LEN};
	sh_packet_init(&req);
	req.op = op;
	req.service = type == SH_QPT_RC	  ? SH_SVC_RC
		      : type == SH_QPT_UC ? SH_SVC_UC
		      : type == SH_QPT_UD ? SH_SVC_UD
					  : SH_SVC_XRC;
	req.qkey = type == SH_QPT_UD ? qp()->qkey : 0;
	req.flags = WHOLE;
	req.slid = tlid(p.m, 0);
	req.dlid = tlid(p.m, 1);
	req.pkey = 0xffff;
	req.src_port = 1;
	req.srcqp = p.a.qpn;
	req.dqpn = p.b.qpn;
	req.psn = TPSN;
	req.npackets = 1;
	req.mtu = TMTU;
	req.srqn = type == SH_QPT_XRC ? SRQN : 0;
	req.va = (uintptr_t)p.bmem;
	req.rkey = p.bkey;
	req.dmalen = LEN;
	if (op != SH_PKT_READ)
		req.payload = (struct sh_payload){.nseg = 1, .seg = &src, .len = LEN};
}

static inline bool lossy(void)
{
	return qp()->type == SH_QPT_UC || qp()->type == SH_QPT_UD;
}

static inline bool deliver(bool quick)
{
	struct sh_dev *dev = &p.m->dev;
	bool done = true;

	sh_packet_init(&resp);
	assert_true(sh_enter(dev));
	if (quick && lossy())
		done = sh_respond_lossy(dev, sh_hca(dev, 1), qp(), port, &req);
	else if (qp()->type == SH_QPT_UC)
		sh_respond_uc(dev, sh_hca(dev, 1), qp(), port, &req, &resp);
	else if (qp()->type == SH_QPT_UD)
		sh_respond_ud(dev, sh_hca(dev, 1), qp(), port, &req, &resp);
	else if (quick)
		done = sh_respond_express(dev, sh_hca(dev, 1), qp(), port, &req, &resp, resp_seg);
	else
		sh_respond_reliable(dev, sh_hca(dev, 1), qp(), port, &req, &resp, resp_seg);
	sh_leave(dev);
	return done;
}

static inline void end(void)
{
	p.m->shared->complaints = 0;
	tpair_close(&p);
}

#endif
