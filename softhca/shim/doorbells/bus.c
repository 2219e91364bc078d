// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The UAR as the device sees it: takes stores as a bus carries them and passes them on as
 * doorbells. It is also the only way into device code from this library. Holds no lock.
 */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "softhca/device/memory/exec.h"
#include "softhca/device/memory/objects.h"
#include "softhca/device/queues/attention.h"
#include "softhca/device/queues/cq.h"
#include "softhca/device/transport/doorbell.h"
#include "softhca/shim/attach.h"
#include "bus.h"
#include "softhca/shim/compiler.h"
#include "softhca/shim/signals/alternate.h"
#include "softhca/shim/stack.h"

#define SEND_DOORBELL 0x14
#define ARM_DOORBELL  0x20
#define BF_BUFFER     256

enum bell { RING, RECV, ARM };

SH_INLINE void on_ring(uint32_t ctx, uint32_t qpn)
{
	if (likely(sh_enter(&shim_dev))) {
		sh_ring(&shim_dev, ctx, qpn);
		sh_leave(&shim_dev);
	} else {
		sh_ring_later(&shim_dev, ctx, qpn);
	}
}

SH_INLINE void on_recv(uint32_t ctx, uint32_t qpn)
{
	if (likely(!sh_recv_matters(&shim_dev, ctx, qpn)))
		return;
	if (likely(sh_enter(&shim_dev))) {
		sh_recv_posted(&shim_dev, ctx, qpn);
		sh_leave(&shim_dev);
	} else {
		sh_recv_later(&shim_dev, ctx, qpn);
	}
}

SH_INLINE void on_arm(uint32_t ctx, uint32_t cqn, uint32_t dw0, uint32_t dw1)
{
	if (likely(sh_enter(&shim_dev))) {
		sh_arm(&shim_dev, ctx, cqn, dw0, dw1);
		sh_leave(&shim_dev);
	} else {
		sh_arm_later(&shim_dev, ctx, cqn, dw0, dw1);
	}
}

struct doorbell {
	enum bell bell;
	uint32_t ctx, number, dw0, dw1;
};

/* A forked child makes a connection of its own before its first doorbell. */
static int carry_out(void *arg)
{
	const struct doorbell *d = arg;

	if (shim_stale() && !shim_refresh())
		return 0;
	switch (d->bell) {
	case RING:
		on_ring(d->ctx, d->number);
		break;
	case RECV:
		on_recv(d->ctx, d->number);
		break;
	case ARM:
		on_arm(d->ctx, d->number, d->dw0, d->dw1);
		break;
	}
	return 0;
}

/* The helper thread looks at the queue. */
static void leave(const struct doorbell *d)
{
	if (d->bell == ARM)
		sh_attention_mark_cq(&shim_dev, d->ctx, d->number);
	else
		sh_attention_mark_qp(&shim_dev, d->ctx, d->number);
	sh_attention_marked(&shim_dev);
}

/*
 * The device needs more room than an alternate stack may have. Where many threads at once run
 * handlers on such stacks, no other stack is free. A forked child, which has a connection to make,
 * has one thread.
 */
static __attribute__((noinline)) void unusually(enum bell bell, uint32_t ctx, uint32_t number,
						uint32_t dw0, uint32_t dw1)
{
	struct doorbell d = {bell, ctx, number, dw0, dw1};
	int result, err;

	err = alternate_here() ? stack_spare_only(carry_out, &d, &result) : -ENOMEM;
	if (err == -EBUSY && !shim_stale())
		leave(&d);
	else if (err)
		carry_out(&d);
}

static inline bool usual(void)
{
	return likely(!__atomic_load_n(&shim_unusual, __ATOMIC_ACQUIRE));
}

void shim_ring(uint32_t ctx, uint32_t qpn)
{
	if (usual())
		on_ring(ctx, qpn);
	else
		unusually(RING, ctx, qpn, 0, 0);
}

void shim_arm(uint32_t ctx, uint32_t cqn, uint32_t dw0, uint32_t dw1)
{
	if (usual())
		on_arm(ctx, cqn, dw0, dw1);
	else
		unusually(ARM, ctx, cqn, dw0, dw1);
}

void shim_recv(uint32_t ctx, uint32_t qpn)
{
	if (usual())
		on_recv(ctx, qpn);
	else
		unusually(RECV, ctx, qpn, 0, 0);
}

static uint32_t word(const uint8_t *value)
{
	uint32_t w;

	memcpy(&w, value, sizeof(w));
	return be32toh(w);
}

static void arm(uint32_t ctx, uint32_t dw0, uint32_t dw1)
{
	shim_arm(ctx, dw0 & 0xffffff, dw0, dw1);
}

/*
 * 32-bit code stores the arm doorbell in two halves, in ascending order, under a lock of its own.
 * The second store arms the CQ.
 */
static TLS struct {
	uint32_t ctx, dw0;
} half;

static void uar_store(uint32_t ctx, unsigned int offset, unsigned int width, const uint8_t *value)
{
	if (offset == SEND_DOORBELL && width == 4) {
		shim_ring(ctx, word(value) >> 8);
	} else if (offset == ARM_DOORBELL && width == 8) {
		arm(ctx, word(value), word(value + 4));
	} else if (offset == ARM_DOORBELL && width == 4) {
		half.ctx = ctx;
		half.dw0 = word(value);
	} else if (offset == ARM_DOORBELL + 4 && width == 4 && half.ctx == ctx) {
		arm(ctx, half.dw0, word(value));
		half.ctx = 0;
	}
}

/*
 * The complete WQE is in memory as well. A BlueFlame write adds only the QP number in its second
 * word.
 */
static void bf_store(uint32_t ctx, unsigned int offset, unsigned int width, const uint8_t *value)
{
	unsigned int at = offset % BF_BUFFER;

	if (at == 0 && width >= 8)
		shim_ring(ctx, word(value + 4) >> 8);
	else if (at == 4 && width == 4)
		shim_ring(ctx, word(value) >> 8);
}

void shim_bus_store(uint32_t ctx, unsigned int page, unsigned int offset, unsigned int width,
		    const uint8_t *value)
{
	if (page == 0)
		uar_store(ctx, offset, width, value);
	else
		bf_store(ctx, offset, width, value);
}
