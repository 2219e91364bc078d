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
struct kreg;
struct kxrcd;
struct kxrcd_handle;

int reg_add(struct kernel *k, struct kqp *qp, struct kctx *ctx, struct kxrcd_handle *xh, uint64_t user_handle,
	    struct kreg **out);
/* late: as of the functions that take objects apart (objects.h). */
int reg_del(struct kernel *k, struct kreg *reg, bool late, uint32_t *events);
struct kreg *reg_find(struct kqp *qp, const struct kctx *ctx);

void xrcd_drop(struct kernel *k, struct kxrcd_handle *xh);
void xrcd_put_user(struct kernel *k, struct kxrcd *d);

#endif
