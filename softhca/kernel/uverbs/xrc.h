/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * XRC domains, and the registrations of XRC receive QPs. 0 or -errno.
 */
#ifndef SOFTHCA_KERNEL_UVERBS_XRC_H
#define SOFTHCA_KERNEL_UVERBS_XRC_H

#include <stdbool.h>
#include <stdint.h>

struct kctx;
struct kernel;
struct kqp;
struct kxrc_reg;
struct kxrcd;
struct kxrcd_handle;

/* Registers a context with an XRC receive QP. */
int xrc_rcv_reg_add(struct kernel *k, struct kqp *qp, struct kctx *ctx, struct kxrcd_handle *xh,
		    uint64_t user_handle, struct kxrc_reg **out);
/* late: as of the functions that take objects apart (objects.h). */
int xrc_rcv_reg_del(struct kernel *k, struct kxrc_reg *reg, bool late, uint32_t *events);
struct kxrc_reg *xrc_rcv_reg_find(struct kqp *qp, const struct kctx *ctx);

void xrcd_drop(struct kernel *k, struct kxrcd_handle *xh);
void xrcd_put_user(struct kernel *k, struct kxrcd *d);

#endif
