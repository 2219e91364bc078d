/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the files of the preloaded library share. Everything here may run in any program, in any
 * thread, and before the library's own constructor. Internal functions return 0 or -errno.
 */
#ifndef SOFTHCA_SHIM_SHIM_H
#define SOFTHCA_SHIM_SHIM_H

#include "config.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "softhca/device/memory/dev.h"
#include "softhca/host/sys.h"
#include "softhca/protocol.h"

#define EXPORT __attribute__((visibility("default")))
#define TLS __thread __attribute__((tls_model("initial-exec")))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#define UVERBS_MAJOR 231
#define UVERBS_MINOR 192
#define SHIM_PAGE 4096UL

/* The function that this library's function of the same name replaces. */
#define REAL(name)                                                                                     \
	({                                                                                             \
		static __typeof__(&name) real_fn;                                                      \
		if (unlikely(!real_fn))                                                                \
			real_fn = (__typeof__(&name))dlsym(RTLD_NEXT, #name);                          \
		real_fn;                                                                               \
	})

/* Returns an internal result as libc does: -1 and errno for an error. */
#define RETURN_ERRNO(result)                                                                           \
	do {                                                                                           \
		long result_ = (result);                                                               \
		if (result_ >= 0)                                                                      \
			return (__typeof__(result))result_;                                            \
		errno = (int)-result_;                                                                 \
		return -1;                                                                             \
	} while (0)

/* ---- the instance (attach.c) ---- */

struct shim {
	bool active;			/* this process belongs to an instance */
	bool several;			/* the instance has more than one host */
	unsigned int host;
	char dir[PATH_MAX];		/* directory of the instance */
	char root[PATH_MAX];		/* dir/host<K>: replaces / in redirected paths */
	size_t root_len;
	dev_t files_dev;		/* file system of the contexts' files */
	ino_t root_ino;
	/*
	 * The way of doorbells is trap, by SOFTHCA_MMIO or else by the instance; known once
	 * connected.
	 */
	bool trap;
};
extern struct shim shim;
extern struct sh_dev shim_dev;		/* inst is NULL before the first connection */
extern uint32_t shim_stale; /* nonzero in a forked child until it has its own connection */

void shim_init(void);
/* ---- messages on standard error, about this process (say.c) ---- */

void shim_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/*
 * Keeps a message, which is printed once, when the program looks for devices: the shim calls
 * shim_say_now() for each path that may be a device's.
 */
void shim_say_later(const char *format, ...) __attribute__((format(printf, 1, 2)));
void shim_say_now(const char *path);
/*
 * Says once why the daemon cannot be reached; err is the -errno of shim_control_get(). Prints
 * nothing for errors that softhca does not cause.
 */
void shim_say_unreachable(int err);

bool shim_host_exists(unsigned int host);	/* by the instance's files; shim.dir is set */
static inline bool shim_active(void)
{
	extern bool shim_ready;

	if (unlikely(!__atomic_load_n(&shim_ready, __ATOMIC_ACQUIRE)))
		shim_init();
	return shim.active;
}

/* Take the control connection, making it first if needed. Nothing is held on failure. */
int shim_control_get(void);
int shim_request(const void *req, size_t len, void *reply, size_t rlen, int *fds, unsigned int *nfds);
void shim_control_put(void);
/*
 * The same without connecting, whatever the connection's state: for moments in which nothing else
 * may happen.
 */
void shim_control_hold(void);
bool shim_control_mine(void);	/* this thread has the connection */
/*
 * The descriptor of device memory, or -1 if it no longer refers to it. The control connection is
 * held.
 */
int shim_memory_fd(void);
/* Is that file device memory? */
bool shim_memory_is(dev_t dev, ino_t ino);
/* For the data path of a forked child: makes a connection of its own. */
bool shim_refresh(void);

/* ---- open device files (context.c) ---- */

#define SHIM_PENDING 16
#define SHIM_EARLY 64
#define SHIM_CQ_CHUNK 1024

struct shim_ctx {
	uint32_t index, generation;
	dev_t dev;
	ino_t ino;
	/*
	 * The page whose mapping says that this address space lives. NULL: the context is
	 * inherited.
	 */
	void *life;
	int life_pid;
	bool wrapped;			/* its operations are wrapped: in trap only poll_cq */
	bool kicked;			/* in addition the UAR pages are memory */
	/* Protected by the control lock: */
	uint64_t pending[SHIM_PENDING];	/* client QPs and CQs that lead to its ibv_context */
	unsigned int npending;
	uint32_t early_qp[SHIM_EARLY], early_cq[SHIM_EARLY];
	unsigned int nearly_qp, nearly_cq;
	/*
	 * CQ numbers by handle, for the arm operation. Each is written once, before the client
	 * knows the handle.
	 */
	uint32_t *cqn[SHIM_CQ_CHUNK];
	struct shim_ctx *next;
};

/* The context that a descriptor refers to, whatever process opened it; or NULL. */
struct shim_ctx *shim_ctx_of_fd(int fd);
struct shim_ctx *shim_ctx_of_stat(int fd, const struct stat *st);
/* The same, but only among the contexts that this process knows already. */
struct shim_ctx *shim_ctx_open_on(int fd);
/* The context of that number and generation, added to the list if it is new. NULL: no memory. */
struct shim_ctx *shim_ctx_known(uint32_t index, uint32_t generation, dev_t dev, ino_t ino);
bool shim_ctx_current(const struct shim_ctx *ctx);
unsigned int shim_ctx_minor(const struct shim_ctx *ctx);
int shim_ctx_path(const char *path, uint32_t *index, uint32_t *generation);	/* 0 or -ENOENT */
/* open() of a device node. Returns a descriptor or -errno. */
int shim_open_device(unsigned int device, int flags);
uint32_t shim_cqn(const struct shim_ctx *ctx, uint32_t handle);		/* 0: unknown */
void shim_set_cqn(struct shim_ctx *ctx, uint32_t handle, uint32_t cqn);
/* Announces for all contexts of this process that a thread may sleep until a CQE comes. */
void shim_contexts_doze(void);
/* Turns the UAR pages into memory. The control connection is held. */
int shim_kick_begins(struct shim_ctx *ctx);
void shim_context_forked(void);

/* ---- commands (command.c) ---- */

long shim_command(struct shim_ctx *ctx, const void *buf, size_t len);
bool shim_has_ipc_lock(void);		/* RLIMIT_MEMLOCK does not apply to this thread */

/* ---- memory of the client (memory.c) ---- */

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

int shim_populate(uint64_t addr, uint64_t len, bool write);
/*
 * Copies whole private pages of this process, in which no other thread runs, to memory that is
 * zero. It skips pages that were never touched, because programs mostly register a large buffer
 * before they use it. Returns 0, or -EFAULT if not all of them can be read.
 */
int shim_copy_pages(char *to, uint64_t from, uint64_t len);
int shim_map_action(const struct sh_action *action);
struct mapping;
/* Registered memory, of this process or its parent, that is device memory. */
bool shim_region_mapped(const struct mapping *m);
/* Maps zeroed private pages in place of what is there. */
int shim_fresh_pages(uint64_t addr, uint64_t len, int prot);
bool shim_marked_dontfork(uint64_t addr);
/* Is something shared mapped there? For callers that cannot read /proc/self/maps. */
bool shim_is_shared(uint64_t addr);

/* ---- registered memory as device memory (share.c); the control connection is held ---- */

void shim_share_examine(uint64_t addr, uint64_t len, struct sh_pin_result *pin);
int shim_share(const struct sh_action *action);
void shim_give_back(const struct sh_action *action);
/*
 * Pages of the range no longer belong to a region, whatever is mapped there now. False: for want of
 * memory they still count as the region's. What is mapped there decides in the end.
 */
bool shim_share_forget(uint64_t addr, uint64_t len);
int shim_changed(uint32_t what, uint64_t addr, uint64_t len);
/*
 * Makes all regions that overlap the range private again. Returns 0, -EBUSY if the process is not
 * still, or -ENOMEM.
 */
int shim_privatize(uint64_t addr, uint64_t len);
/*
 * Makes private the regions that overlap [low, high), and those that may not be device memory
 * beside threads and across fork(). May be called from anywhere: it takes the connection itself.
 * Same results.
 */
int shim_make_private(uint64_t low, uint64_t high);
/* Notes queue pages that are being mapped. */
void shim_share_queue(const struct sh_action *action);
struct ranges;
const struct ranges *shim_share_regions(void);
const struct ranges *shim_share_queues(void);
void shim_share_forked(void);
/*
 * Does the range overlap a region? shim_may_share() needs no connection: a first check, which may
 * say yes too often.
 */
bool shim_may_share(uint64_t addr, uint64_t len);
bool shim_shares(uint64_t addr, uint64_t len);
bool shim_shares_any(void);		/* is there a region, or has there been one? */

/* ---- around fork() (fork.c) ---- */

void shim_fork_prepare(void);
void shim_fork_parent(void);
void shim_fork_child(void);

/*
 * dontfork.c: notes what madvise() was asked for, and knows whether a page is kept from children:
 * 1, 0, or -1 if that is not known.
 */
void shim_dontfork_note(uint64_t addr, uint64_t len, int advice);
int shim_dontfork_known(uint64_t addr);
void shim_dontfork_forked(void);

/* ---- doorbells (bus.c, kick.c, trap.c, signals.c) ---- */

void shim_ring(uint32_t ctx, uint32_t qpn);
void shim_arm(uint32_t ctx, uint32_t cqn, uint32_t dw0, uint32_t dw1);
void shim_recv(uint32_t ctx, uint32_t qpn);
/* One store, as the bus carries it, to a page (0 UAR, 1 BlueFlame) of a context. */
void shim_bus_store(uint32_t ctx, unsigned int page, unsigned int offset, unsigned int width, const uint8_t *value);

/* After a command: wraps the client's operations if its ibv_context can be found by now. */
void shim_kick_try(struct shim_ctx *ctx);

int shim_trap_install(void);
/* Pages of a context's file, from byte off on, have been mapped at start. */
void shim_trap_mapped(const struct shim_ctx *ctx, uint64_t start, uint64_t len, uint64_t off);
void shim_trap_unmapped(uint64_t start, uint64_t end);
void shim_trap_forked(void);
void shim_signals_init(void);
void shim_signals_forked(void);
/*
 * From the first open device on, handlers of the application do not run in the middle of device
 * code or of a request.
 */
void shim_handlers_begin(void);
/* Lets the signals come that were held off meanwhile, if this thread is out of both. */
void shim_signals_release(void);

/* ---- names (names.c) ---- */

/* The path to use instead of path: path itself, or buf. */
const char *shim_redirect(const char *path, char buf[PATH_MAX]);
/* N if the redirected path is the device node uverbsN, else -1. */
int shim_node(const char *redirected);

#endif
