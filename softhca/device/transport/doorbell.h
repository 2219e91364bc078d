/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Doorbells, BlueFlame writes among them, and what other processes ask this one to look at.
 * Any process calls these, between sh_enter() and sh_leave() unless it says otherwise.
 */
#ifndef SOFTHCA_DEVICE_TRANSPORT_DOORBELL_H
#define SOFTHCA_DEVICE_TRANSPORT_DOORBELL_H

#include "softhca/device/memory/dev.h"

/*
 * The send doorbell (or a BlueFlame write) of a context named this QP. The device ignores unknown
 * numbers and QPs of other contexts.
 */
void sh_ring(struct sh_dev *dev, uint32_t ctx, uint32_t qpn);
/* The same when this thread leaves the device (exec.h). */
void sh_ring_later(struct sh_dev *dev, uint32_t ctx, uint32_t qpn);

/* A receive may have been posted to a QP in the error state. */
void sh_recv_posted(struct sh_dev *dev, uint32_t ctx, uint32_t qpn);
void sh_recv_later(struct sh_dev *dev, uint32_t ctx, uint32_t qpn);
/*
 * Is the QP in the error state, so that sh_recv_posted() has something to do? It nearly never is.
 * Needs no sh_enter().
 */
bool sh_recv_matters(struct sh_dev *dev, uint32_t ctx, uint32_t qpn);
/*
 * Looks at the queues of a QP: runs its requester, or flushes it. Does nothing in a process that
 * does not own the QP, but for the wire's engine.
 */
void sh_look(struct sh_dev *dev, uint32_t hca, uint32_t qpn);
/*
 * The helper thread, and no other one, calls this when sh_proc.attention has changed. Serves the
 * ring of requests to this process.
 */
void sh_attention(struct sh_dev *dev);
/*
 * For another thread of the wire's engine that has a processor: looks at what waits for the helper
 * thread, and leaves it there. The helper thread looks again, and finds nothing to do.
 */
void sh_attention_ahead(struct sh_dev *dev);

#endif
