/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The objects that programs make.
 */
#ifndef SOFTHCA_KERNEL_UVERBS_OBJECTS_H
#define SOFTHCA_KERNEL_UVERBS_OBJECTS_H

#include <stdbool.h>
#include <stdint.h>

#include "softhca/kernel/aside.h"
#include "softhca/kernel/lists.h"
#include "handle.h"
#include "queue.h"
#include "uverbs-abi.h"

struct kevq;
struct kqp;
struct kregion;
struct kxrcd_handle;
struct sh_dev;

struct kpd {
	struct uobj u;
	uint32_t pdn, refs;
};
struct kmr {
	struct uobj u;
	struct kpd *pd;
	uint32_t key, access;
	uint64_t locked; /* pages accounted */
	uint64_t start, len;
	struct kregion *region;	   /* NULL: it is in its process's list `unshared` */
	struct kmr *rprev, *rnext; /* in the list of the region, or in `unshared` */
	uint64_t moment;	   /* nonzero: when its key was invalidated */
	uint32_t hca;
	struct aside aside;
};
struct kcq {
	struct uobj u;
	uint32_t cqn, refs, entries;
	struct kevq *evq;
	/* old: the library copies from it after a resize. */
	struct kbuf buf, old;
	uint64_t db;
	uint32_t hca;
	struct aside aside;
};
struct kxrcd { /* a domain of one HCA */
	struct {
		uint64_t dev, ino;
	} key;
	uint32_t hca, xrcdn, pdn;
	int fd;			   /* pins the inode; -1: anonymous */
	uint32_t opens;		   /* handles */
	uint32_t users;		   /* QPs, SRQs, receive QPs */
	struct kqp *qps;	   /* kernel-made: receive and target QPs */
	struct kxrcd *prev, *next; /* of the HCA */
};
struct kxrcd_handle {
	struct uobj u;
	struct kxrcd *d;
	uint32_t srqs; /* made through this handle */
	/* Registrations, and handles of target QPs, that were made through it. */
	struct kxrc_reg *regs;
};
struct ksrq {
	struct uobj u;
	uint32_t srqn, refs, max, max_sge;
	struct kpd *pd;
	struct kcq *cq; /* XRC */
	struct kxrcd_handle *xh;
	struct kxrcd *d;
	struct kbuf buf;
	uint64_t db;
	uint32_t hca;
	uint64_t moment; /* XRC: no thread that enters device code later finds it; 0: not ended */
	struct aside aside;
};

/* A context's share in a kernel-made receive QP: a registration (OFED) or a handle (mainline). */
struct kxrc_reg {
	struct kqp *qp;
	struct kctx *ctx;
	struct kxrcd_handle *xh;
	uint32_t index;			/* in device memory */
	struct kxrc_reg *prev, *next;	/* of the QP */
	struct kxrc_reg *xprev, *xnext; /* of the domain's handle */
};
struct kqp {
	uint32_t hca, qpn, type;
	struct kpd *pd;
	struct kcq *scq, *rcq;
	struct ksrq *srq;
	struct kxrcd *d;
	uint32_t cap_recv_wr, cap_recv_sge;
	struct kbuf buf;
	uint64_t db;
	struct kctx *ctx; /* NULL: kernel-made */
	struct kxrc_reg *regs;
	struct kqp *dprev, *dnext; /* of the domain, if kernel-made */
	struct aside aside;
	bool unlocked; /* ended without its locks */
	bool stuck;    /* unlocked and set aside: counted in stuck_qps */
	/* RESET or ERR, which the QP is to reach: while it is set aside and has not ended. */
	uint32_t next_state;
	UT_hash_handle hh; /* by number, per HCA */
};
struct kmcast {
	uint8_t gid[16];
	uint16_t mlid;
	struct kmcast *next;
};
struct kqp_handle {
	struct uobj u;
	struct kqp *qp;
	struct kxrc_reg *reg; /* target QPs */
	bool target;
	struct kmcast *mcast;
};
struct kah {
	struct uobj u;
	struct kpd *pd;
	struct uv_ah_attr attr;
};

/* Of one HCA. */
struct hca_objects {
	struct kxrcd *xrcds;
	struct kqp *qps;
	struct sh_numbers pdn, xrcdn, mpt, cqn, srqn, qpn;
	/* Objects that programs had not destroyed when their file was released. */
	uint64_t left[UO_TYPES];
};
struct khost {
	struct handles handles[UO_TYPES];
};

/*
 * Take objects apart, for the destroy commands and for the release of a context. -EBUSY: in use.
 * -EINPROGRESS: a client holds a lock, try again. late: do without the lock, and set aside what is
 * left. An object that the device does not know any more, because a client has overwritten it, is
 * freed all the same.
 */
int pd_free(struct kpd *pd);
void mr_free(struct kmr *mr);
int cq_free(struct kcq *cq, bool late, uint32_t *comp, uint32_t *async);
int srq_free(struct ksrq *srq, bool late, uint32_t *async);
int qp_free(struct kqp_handle *h, bool late, uint32_t *async);
/*
 * Of a CQ or an SRQ that has ended: can another one have its number and its pages? reclaim: the
 * device's function for those that ended without their lock. cmd_cq.c
 */
bool queue_left(struct kernel *k, const struct uobj *u, uint32_t hca, uint32_t number,
		int (*reclaim)(struct sh_dev *dev, uint32_t hca, uint32_t number));

#endif
