/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The kernel's own state: what it knows of processes, open device files and the objects behind
 * their handles. Only softhca/kernel includes this file. One thread runs all of it, so nothing here
 * has a lock; device memory is touched through softhca/device. Functions return 0 or -errno and change
 * nothing when they fail, unless they say otherwise.
 */
#ifndef SOFTHCA_KERNEL_KERN_H
#define SOFTHCA_KERNEL_KERN_H

#include <errno.h>
#include <limits.h>
#include <sys/types.h>

/*
 * Without memory for an element uthash does not add it, and its hh.tbl is NULL. By default uthash
 * exits.
 */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>
#include <utlist.h>

#include "numbers.h"
#include "softhca/host/instdir.h"
#include "softhca/protocol.h"
#include "kernel.h"
#include "softhca/kernel/uverbs/uverbs-abi.h"

#define K_PAGE		4096u
#define K_COMP_VECTORS	4
#define K_MAX_WQES	16384
#define K_SPARE_WQES	33		/* headroom of the send queue at its worst */
#define K_MAX_SGE	32
#define K_MAX_SRQ_SGE	31
#define K_MAX_CQES	4194303
#define K_XRC_QPN_BIT	(1u << 23)
#define K_BF_REG_SIZE	512
#define K_PIPE_SIZE	65536		/* of a new FIFO */

#define container_of(ptr, type, member) ((type *)((char *)(ptr) - offsetof(type, member)))

/* ---- the memory and descriptors of clients (user.c); tests put their own in place ---- */

struct user {				/* an address space, not only a process number */
	pid_t pid;
	uint64_t witness;
};
struct user_ops {
	/* 0 or -EFAULT, also if the process has another address space by now */
	int (*read)(void *arg, const struct user *user, uint64_t addr, void *buf, size_t len);
	int (*write)(void *arg, const struct user *user, uint64_t addr, const void *buf,
		     size_t len);
	/* An O_PATH descriptor of the file behind the client's descriptor, or -EBADF. */
	int (*open_fd)(void *arg, pid_t tid, int fd);
};
extern const struct user_ops user_real;

/* ---- pages of device memory that stand in for clients' pages (pool.c, window.c) ---- */

#define POOL_UNIT	256		/* pages of a window */
#define POOL_CHUNK	4096		/* pages by which the limit rises */
struct kwindow;
struct pool {
	uint64_t base, npages, used;	/* used: with memory behind them */
	uint64_t limit;			/* pages from here on are not handed out yet */
	uint64_t windows;		/* windows may begin in so many pages of each chunk */
	uint64_t next, next_unit;	/* where the next search begins */
	uint64_t *map;			/* a bit per page */
	struct kwindow **window;	/* by unit; NULL: its pages are handed out one by one */
	int fd;				/* the memfd */
};
/* windows: half of each chunk is for windows. */
int pool_init(struct pool *p, int fd, uint64_t base, uint64_t size, bool windows);
void pool_exit(struct pool *p);
/* An offset with pages behind it; 0: no memory. */
uint64_t pool_get(struct pool *p, uint64_t npages);
void pool_put(struct pool *p, uint64_t off, uint64_t npages);
/*
 * A whole unit without memory behind it: its number, or UINT64_MAX if no unit is left for windows.
 */
uint64_t pool_claim_unit(struct pool *p);
void pool_release_unit(struct pool *p, uint64_t unit);
/* Puts memory behind pages of a unit. 0 or -ENOMEM. */
int pool_back(struct pool *p, uint64_t off, uint64_t npages);
void pool_unback(struct pool *p, uint64_t off, uint64_t npages);

/* ---- taken away, but not to be reused yet (aside.c) ---- */

struct kernel;
struct aside {
	struct aside *prev, *next;
	uint64_t moment;		/* when its grace began; 0: it waits for a lock instead */
	bool set;			/* it is in one of the two lists */
	struct kproc *proc;		/* the owner of the pages, which outlives this; or NULL */
	/*
	 * Gives back what this is about, and frees it. False: a lock is still held. While the
	 * instance ends: frees it and returns true.
	 */
	bool (*finish)(struct kernel *k, struct aside *a);
};
void aside_until_left(struct kernel *k, struct aside *a, bool (*finish)(struct kernel *k, struct aside *a));
void aside_until_unlocked(struct kernel *k, struct aside *a, bool (*finish)(struct kernel *k, struct aside *a));
void aside_pages(struct kernel *k, struct aside *a, struct kproc *proc,
		 /* Until unlocked, with pages of that process. */
		 bool (*finish)(struct kernel *k, struct aside *a));
/*
 * Does a thread that has been in device code since before this moment run, rather than being
 * stopped there?
 */
bool one_runs(struct kernel *k, uint64_t moment);
/*
 * Has each thread left that has been in device code since before this moment, but for those that
 * wait_no_more() gave up?
 */
bool all_left(struct kernel *k, uint64_t moment);
/* A request has waited too long for these threads. */
void wait_no_more(struct kernel *k, uint64_t moment);
/* Takes it off its list, if it is in one. */
void aside_take(struct kernel *k, struct aside *a);
void aside_sweep(struct kernel *k);
void aside_end(struct kernel *k);

struct kproc;
/*
 * Like pool_get(), but if possible in that window of the process which uaddr falls into.
 * pages_put() takes pages of either kind.
 */
uint64_t pages_get(struct kernel *k, struct kproc *p, uint64_t uaddr, uint64_t npages);
void pages_put(struct kernel *k, uint64_t off, uint64_t npages);

/* ---- handles (handle.c) ---- */

enum uobj_type { UO_PD, UO_MR, UO_CQ, UO_SRQ, UO_QP, UO_AH, UO_XRCD, UO_TYPES };

struct kctx;
struct uobj {
	struct kctx *ctx;
	enum uobj_type type;
	uint32_t handle;
	uint64_t user_handle;
	struct uobj *prev, *next;	/* objects of the context, by type, oldest first */
	/*
	 * The device does not know the object any more. What comes after that may take more than
	 * one try.
	 */
	bool ended, unlocked; /* unlocked: ended without its lock, so that it is set aside */
	bool comp_dropped;
	uint32_t comp, async;		/* events to report */
};
/* One space for each host and type, lowest free number first, as the kernel's idr. */
struct handles {
	/*
	 * NULL: there are no slots yet. The slot of a number that is not given out means nothing.
	 */
	struct uobj **slot;
	struct sh_numbers numbers;
};
int uobj_add(struct kctx *ctx, struct uobj *obj, enum uobj_type type);	/* 0 or -ENOMEM */
void uobj_del(struct uobj *obj);
/* NULL: there is no such handle, it is another context's, or its object is ending. */
void *uobj_get(struct kctx *ctx, enum uobj_type type, uint32_t handle);
/* Also finds an object that is ending: for the command that ends it, which is tried again. */
void *uobj_ending(struct kctx *ctx, enum uobj_type type, uint32_t handle);
void handles_exit(struct handles *h);

static inline int num_get(struct sh_numbers *n, uint32_t *number)
{
	return sh_numbers_get(n, number) < 0 ? -ENOMEM : 0;
}

static inline void num_put(struct sh_numbers *n, uint32_t number)
{
	sh_numbers_put(n, number);
}

/* ---- event queues (evq.c) ---- */

struct kevq {
	uint32_t index, generation;
	struct kctx *ctx;
	bool async, closed;		/* closed: the client has closed its end */
	int fd; /* O_RDWR: keeps the FIFO alive, drains it, polls for room */
	bool polled;			/* waiting for room */
	dev_t dev;
	ino_t ino;
	uint32_t refs;			/* CQs that report here */
	struct kevq *prev, *next;	/* of the context */
	struct aside aside;		/* until its place in device memory is free */
};

/* ---- queue memory (queue.c) ---- */

struct kbuf {				/* whole pages */
	uint64_t uaddr, len;
	uint64_t shm;			/* 0: the client's own pages */
	uint32_t locked;		/* pages accounted */
};
struct dbpage {				/* a page of doorbell records that is in use */
	uint64_t uaddr, shm;
	uint32_t refs;
	UT_hash_handle hh;
};

/* ---- registered memory that is device memory (region.c) ---- */

struct kmr;
struct kregion {			/* whole pages of one process */
	uint64_t uaddr, len;
	uint64_t shm;
	struct kmr *mrs;		/* that use it */
	struct aside aside;
};

/* ---- processes and contexts (context.c) ---- */

/* One image of a process, from its first message to its end or its next exec. */
struct kproc {
	uint32_t slot;			/* in device memory; 0: the daemon */
	pid_t pid;
	uint32_t host;
	int pidfd;
	uint32_t refs;			/* the connection and the contexts */
	bool connected, gone;		/* gone: the slot has been given back */
	uint64_t locked;		/* pages counted against RLIMIT_MEMLOCK */
	struct kwindow *windows;	/* by address */
	struct user user;
	void *regions;			/* a tree of struct kregion, by address */
	/* When regions were revoked to which a thread may still be writing. 0: no thread is. */
	uint64_t revoked;
	struct kmr *unshared;		/* memory regions that are not device memory */
};

enum kctx_state { KC_OPENING, KC_OPEN, KC_RELEASING };
struct kctx {
	struct kernel *k;
	uint32_t index, generation;
	enum kctx_state state;
	bool started;			/* GET_CONTEXT has been done */
	bool gone;			/* its address space has ended */
	bool silenced;			/* gone, and all its QPs are silent */
	struct kproc *proc;
	uint32_t host, hca, device;	/* hca counts over all hosts, device per host */
	struct uobj *objs[UO_TYPES];
	/* The object that was made, or given another buffer, last; NULL when it has ended. */
	struct uobj *newest;
	struct kevq *async, *evqs;	/* evqs: all of them */
	struct dbpage *dbpages;
	uint64_t commands;
};

/* ---- objects ---- */

struct kpd {
	struct uobj u;
	uint32_t pdn, refs;
};
struct kmr {
	struct uobj u;
	struct kpd *pd;
	uint32_t key, access;
	uint64_t locked;		/* pages accounted */
	uint64_t start, len;
	struct kregion *region;		/* NULL: it is in its process's list `unshared` */
	struct kmr *rprev, *rnext;	/* in the list of the region, or in `unshared` */
	uint64_t moment;		/* nonzero: when its key was invalidated */
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
struct kxrcd {				/* a domain of one HCA */
	struct {
		uint64_t dev, ino;
	} key;
	uint32_t hca, xrcdn, pdn;
	int fd;				/* pins the inode; -1: anonymous */
	uint32_t opens;			/* handles */
	uint32_t users;			/* QPs, SRQs, receive QPs */
	struct kqp *qps;		/* kernel-made: receive and target QPs */
	struct kxrcd *prev, *next;	/* of the HCA */
};
struct kxrcd_handle {
	struct uobj u;
	struct kxrcd *d;
	uint32_t srqs;			/* made through this handle */
	/* Registrations, and handles of target QPs, that were made through it. */
	struct kreg *regs;
};
struct ksrq {
	struct uobj u;
	uint32_t srqn, refs, max, max_sge;
	struct kpd *pd;
	struct kcq *cq;			/* XRC */
	struct kxrcd_handle *xh;
	struct kxrcd *d;
	struct kbuf buf;
	uint64_t db;
	uint32_t hca;
	struct aside aside;
};
struct kqp;
/* A context's share in a kernel-made receive QP: a registration (OFED) or a handle (mainline). */
struct kreg {
	struct kqp *qp;
	struct kctx *ctx;
	struct kxrcd_handle *xh;
	uint32_t index;			/* in device memory */
	struct kreg *prev, *next;	/* of the QP */
	struct kreg *xprev, *xnext;	/* of the domain's handle */
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
	struct kctx *ctx;		/* NULL: kernel-made */
	struct kreg *regs;
	struct kqp *dprev, *dnext;	/* of the domain, if kernel-made */
	struct aside aside;
	bool unlocked;			/* ended without its locks */
	bool stuck;			/* unlocked and set aside: counted in stuck_qps */
	/* RESET or ERR, which the QP is to reach: while it is set aside and has not ended. */
	uint32_t next_state;
	UT_hash_handle hh;		/* by number, per HCA */
};
struct kmcast {
	uint8_t gid[16];
	struct kmcast *next;
};
struct kqp_handle {
	struct uobj u;
	struct kqp *qp;
	struct kreg *reg;		/* target QPs */
	bool target;
	struct kmcast *mcast;
};
struct kah {
	struct uobj u;
	struct kpd *pd;
	struct uv_ah_attr attr;
};

struct khca {
	struct kxrcd *xrcds;
	struct kqp *qps;
	struct sh_numbers pdn, xrcdn, mpt, cqn, srqn, qpn;
	uint32_t host, unit;		/* unit counts per host */
	/* It has failed, and takes only commands that end something. */
	bool fatal;
	/* It has failed, and a stopped client holds a QP that is not silent yet. */
	bool loud;
	/* Objects that programs had not destroyed when their file was released. */
	uint64_t left[UO_TYPES];
};
struct khost {
	struct handles handles[UO_TYPES];
};

struct face;
struct kernel {
	struct sh_kernel_config cfg;
	char dir[PATH_MAX];
	struct sh_instdir at;		/* the directory, with its lock */
	int dir_fd, lease_fd;		/* dir_fd: that of at */
	int memfd;
	uint64_t mem_size;
	struct sh_dev dev;
	const struct face *face;
	const struct user_ops *user;
	void *user_arg;
	struct pool pool, shared;	/* for queues; for registered memory */
	/* What is set aside: until threads have left; until locks are free. */
	struct aside *graced, *locked;
	/*
	 * QPs that have ended without their locks and are set aside. While there is one, CQs and
	 * SRQs keep their numbers and pages.
	 */
	uint32_t stuck_qps;
	/*
	 * Threads that have been in device code since before these moments are not waited for any more:
	 * before stale, while they are stopped; before stuck, in any case.
	 */
	uint64_t stale, stuck;
	/* Spilled records could not be moved: a client held the lock of their queue. */
	bool spill_again;
	bool ending;
	struct khost *hosts;
	struct khca *hcas;
	struct kctx *ctx[SH_MAX_CTX];
	struct kproc *proc[SH_MAX_PROC];
	struct kevq *evq[SH_MAX_EVQ];
	/* The queue was freed, but its place is still in use. */
	bool evq_aside[SH_MAX_EVQ];
	uint32_t evq_gen[SH_MAX_EVQ], ctx_gen[SH_MAX_CTX];
	uint32_t evq_next, ctx_next;
	uint32_t fault_seed;		/* for future rules of faults */
	/* Where evq.c puts records aside. It begins with room for as much as a new pipe holds. */
	char *keep;
	size_t keep_size;
	struct sh_numbers reg;		/* entries of registrations; 0: no entry */
	uint32_t reg_backed;		/* entries below have memory behind them */
	uint32_t died_inside;		/* as of the last orphans_free() */
	/* Contexts to release in another try; contexts and HCAs to silence in another try. */
	uint32_t releasing, loud;
	int epoll;			/* -1 in tests */
	bool stop;
	struct {
		uint64_t commands, failed, queues_shared, queues_copied, maps_failed;
		uint64_t regions_shared, regions_private, regions_revoked;
	} count;
};

/*
 * kern.c: everything but the sockets. Returns -errno with what went wrong in text. kern_publish()
 * gives the directory its name, which is the last step, when clients can connect.
 */
int kern_init(struct kernel *k, const struct sh_kernel_config *cfg, char *text, size_t text_len);
int kern_publish(struct kernel *k, char *text, size_t text_len);
void kern_exit(struct kernel *k);

/* context.c */
int proc_attach(struct kernel *k, pid_t pid, uint32_t host, uint32_t again, uint64_t witness,
		struct kproc **out);
void proc_detach(struct kernel *k, struct kproc *p);		/* its connection has closed */
void proc_dead(struct kernel *k, struct kproc *p); /* the process, or its image, has ended */
void proc_put(struct kernel *k, struct kproc *p);
bool number_stopped(int number);	/* the process or thread, by a signal or a debugger */
int ctx_open(struct kernel *k, struct kproc *p, uint32_t device, struct kctx **out);
int ctx_opened(struct kernel *k, struct kproc *p, uint32_t index);
int ctx_kick(struct kctx *ctx);				/* its file has length 0 before */
struct kctx *ctx_get(struct kernel *k, uint32_t index);		/* or NULL */
void ctx_gone(struct kctx *ctx);
/*
 * Ends everything of the context, in the kernel's order. ctx_retry() ends what a stopped client
 * holds.
 */
void ctx_release(struct kctx *ctx);
void ctx_retry(struct kernel *k);

/* evq.c */
int evq_open(struct kctx *ctx, bool async, struct kevq **out, int *client_fd);
void evq_free(struct kernel *k, struct kevq *e);
void evq_put(struct kernel *k, struct kevq *e);			/* one CQ fewer reports here */
void evq_client_closed(struct kernel *k, uint32_t index, uint32_t generation);
/* The completion channel of the context behind that descriptor, or NULL. */
struct kevq *evq_by_fd(struct kctx *ctx, pid_t tid, int fd);
/*
 * Drops the records of an object that has ended. On entry *events is how many were written. On
 * return it is how many were read, and will be acknowledged. -EINPROGRESS: a client holds the
 * queue's lock. late: that is not waited for any more.
 */
int evq_drop_comp(struct kernel *k, struct kevq *e, uint64_t user_handle, bool late, uint32_t *events);
int evq_drop_async(struct kernel *k, struct kevq *e, uint64_t user_handle, enum uobj_type type, bool late,
		   uint32_t *events);
void evq_spill(struct kernel *k);				/* something may have spilled */
void evq_room(struct kernel *k, struct kevq *e);		/* the pipe has room */

/* ---- commands ---- */

struct call {
	struct kernel *k;
	struct kctx *ctx;
	struct kproc *proc;		/* of the caller */
	pid_t tid;
	bool cap_ipc_lock;
	uint64_t memlock_limit;
	/*
	 * The command waits no longer: if it takes something away it succeeds, else it fails with
	 * EBUSY.
	 */
	bool late;
	bool pinned;			/* second pass */
	int pin_error;
	uint32_t share;			/* enum sh_share: what the shim found */
	uint64_t have_off;
	uint64_t resp;			/* address of the response */
	/* Bytes of the command (with header and driver data) and of the response. */
	uint32_t in_len, out_len;
	uint32_t core_in, core_out;	/* where driver data begins in each */
	struct sh_command_reply *r;
	int fds[2];
	/* The command, as far as the daemon looks at it. */
	unsigned char in[512] __attribute__((aligned(8)));
};

struct command {
	int (*fn)(struct call *c);	/* NULL: the face does not have it */
	uint16_t in, out;		/* core sizes; out 0: no response */
	uint16_t drv;			/* out: where driver data begins, if not there */
	const char *name;
};
struct face {
	const char *name;
	const struct command *commands, *extended;
	uint32_t ncommands, nextended;
	/* Error for a known command that the device does not have. */
	int absent;
	int truncated;			/* for a command shorter than its structure */
	/* For a command that destroys something, if its handle names nothing. */
	int no_object;
	bool has_extended;
};
extern const struct face face_ofed, face_mainline;

/*
 * command.c. Fills the reply (error included) and c->fds. False: a client is in the way. The
 * command has changed nothing that the next try would not find so, and is to be run again soon.
 * Never false if c->late.
 */
bool command_run(struct call *c, uint64_t addr, uint64_t len);
/* Writes the response: core, then driver data as far as there is room. */
int call_respond(struct call *c, const void *core, size_t len, const void *drv, size_t drv_len);
int call_driver(struct call *c, void *drv, size_t len);		/* 0 or -EFAULT */
void call_fd(struct call *c, int fd, uint64_t where);
/* 0, or -EINVAL if the caller is not the process whose memory the context means. */
int call_owner(struct call *c);

/* queue.c */
int mem_charge(struct call *c, uint64_t pages);			/* 0 or -ENOMEM */
int buf_map(struct call *c, struct kbuf *b, uint64_t addr, uint64_t len, bool write);
void buf_unmap(struct kctx *ctx, struct kbuf *b);
/* The buffer no longer counts as its process's; its pages are kept. */
void buf_uncount(struct kctx *ctx, struct kbuf *b);
void buf_free(struct kernel *k, struct kbuf *b);
struct sh_umem buf_umem(const struct kctx *ctx, const struct kbuf *b);
int db_get(struct call *c, uint64_t addr, uint32_t len, struct sh_umem *m);
void db_put(struct kctx *ctx, uint64_t addr);
int map_failed(struct kctx *ctx, uint64_t uaddr, uint64_t len);

/* region.c */
/* A new one: shares its pages if that is possible. */
void region_join(struct call *c, struct kmr *mr);
void region_leave(struct kmr *mr);			/* its key is not used any more */
/* An unused one: the caller may have its pages as its own again. */
void region_offer(struct call *c, struct kregion *r);
/*
 * What the shim says about pages (enum sh_changed). To revoke: -EINPROGRESS while a thread may be
 * using them, -EBUSY if it has been for too long.
 */
int region_changed(struct kernel *k, struct kproc *p, uint32_t what, uint64_t uaddr, uint64_t len, bool late);
void regions_orphan(struct kernel *k, struct kproc *p);

static inline uint32_t log2_ceil(uint64_t n)
{
	uint32_t l = 0;

	while ((UINT64_C(1) << l) < n)
		l++;
	return l;
}

/* The commands that both faces have. */
int cmd_get_context(struct call *c);	/* cmd_device.c */
int cmd_query_device(struct call *c);
int cmd_query_port(struct call *c);
void fill_query_device(struct call *c, struct uv_query_device_resp *r);
int cmd_alloc_pd(struct call *c);	/* cmd_mem.c */
int cmd_dealloc_pd(struct call *c);
int cmd_reg_mr(struct call *c);
int cmd_dereg_mr(struct call *c);
int cmd_create_ah(struct call *c);
int cmd_destroy_ah(struct call *c);
int cmd_create_comp_channel(struct call *c);	/* cmd_cq.c */
int cmd_create_cq(struct call *c);
int cmd_resize_cq(struct call *c);
int cmd_destroy_cq(struct call *c);
int cmd_create_srq(struct call *c);	/* cmd_srq.c */
int cmd_modify_srq(struct call *c);
int cmd_query_srq(struct call *c);
int cmd_destroy_srq(struct call *c);
struct srq_request {
	uint64_t user_handle;
	uint32_t pd_handle, max_wr, max_sge;
	bool xrc, tell_srqn;
	uint32_t xrcd_handle, cq_handle;
};
int srq_create(struct call *c, const struct srq_request *rq);
int cmd_query_qp(struct call *c);	/* cmd_qp.c */
int cmd_modify_qp(struct call *c);
int cmd_destroy_qp(struct call *c);
int cmd_attach_mcast(struct call *c);	/* cmd_mcast.c */
int cmd_detach_mcast(struct call *c);
struct qp_request {
	const struct uv_create_qp *cmd;
	uint32_t type;			/* enum sh_qp_type */
	bool no_recv_cq;		/* and no SRQ */
	struct kxrcd *d;
};
int qp_create_user(struct call *c, const struct qp_request *rq);
/* NULL, with *err. */
struct kqp *qp_create_kernel(struct kxrcd *d, struct kernel *k, uint32_t type, uint32_t sq_sig_all, int *err);
int qp_destroy_kernel(struct kernel *k, struct kqp *qp, bool late);
struct kqp *qp_find(struct kernel *k, uint32_t hca, uint32_t qpn);
int qp_modify(struct call *c, struct kqp *qp, const struct uv_qp_dest *dest, const struct uv_qp_dest *alt,
	      const struct uv_modify_attr *a);
int qp_query(struct call *c, struct kqp *qp);
/* reg.c */
int reg_add(struct kernel *k, struct kqp *qp, struct kctx *ctx, struct kxrcd_handle *xh, uint64_t user_handle,
	    struct kreg **out);
/* late: see below. */
int reg_del(struct kernel *k, struct kreg *reg, bool late, uint32_t *events);
struct kreg *reg_find(struct kqp *qp, const struct kctx *ctx);
int cmd_open_xrcd(struct call *c);	/* xrcd.c */
int cmd_close_xrc_domain(struct call *c);	/* OFED */
int cmd_close_xrcd(struct call *c);		/* mainline */
int cmd_unreg_xrc_rcv_qp(struct call *c);	/* OFED; face_ofed.c */
void xrcd_drop(struct kernel *k, struct kxrcd_handle *xh);
void xrcd_put_user(struct kernel *k, struct kxrcd *d);

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

/* sysfs.c */
int sysfs_make(struct kernel *k);
int identity_make(struct kernel *k);	/* names of hosts, and the directory of runs */
/* Writes what changes; pkey: an index. */
int sysfs_port(struct kernel *k, uint32_t hca, uint32_t port, uint32_t pkey);
int file_write(int dirfd, const char *path, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
int dir_make(int dirfd, const char *path);			/* with its parents */

/*
 * ports.c, show.c: for the softhca command. The text of a status says what to do about a failure.
 */
void status_say(struct sh_status *st, int error, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void hcas_retry(struct kernel *k);		/* silences failed HCAs that are still loud */
/* False: a client is in the way, try again. Never false if late. */
bool port_change(struct kernel *k, const struct sh_port_msg *m, bool late, struct sh_status *st);
void ports_end(struct kernel *k); /* the instance ends: a fatal event for every open file */
/*
 * orphans.c: frees the locks that a dead thread held, so that the threads which sleep for them go
 * on.
 */
void orphans_free(struct kernel *k);
void fault_set(struct kernel *k, const struct sh_fault_msg *m, struct sh_status *st);
int show_make(struct kernel *k);	/* a memfd with JSON, or -errno */

/* server.c */
int server_run(struct kernel *k, int ready_fd, struct sh_status *st);

#endif
