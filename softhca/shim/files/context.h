/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Open device files.
 */
#ifndef SOFTHCA_SHIM_CONTEXT_H
#define SOFTHCA_SHIM_CONTEXT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

struct shim_fifo;

#define SHIM_PENDING  16
#define SHIM_EARLY    64
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
	bool wrapped; /* its operations are wrapped: in trap only poll_cq */
	bool kicked;  /* in addition the UAR pages are memory */
	/* Protected by the control lock: */
	uint64_t pending[SHIM_PENDING]; /* client QPs and CQs that lead to its ibv_context */
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
enum shim_file { SHIM_OTHER_FILE, SHIM_UVERBS_FILE, SHIM_CM_FILE, SHIM_UMAD_FILE };
/*
 * What data that is about to be written to the descriptor goes to, as enum shim_file, with the
 * context in *ctx, or the channel or the umad file in *cm; or -errno. In a program that has
 * confined itself it makes no system call for other files.
 */
int shim_file_to_write(int fd, struct shim_ctx **ctx, struct shim_fifo *cm);
/*
 * What data is about to be read from: SHIM_UMAD_FILE or SHIM_CM_FILE, with the file in *file, or
 * SHIM_OTHER_FILE, which may be a context. Every program reads often: there is a system call only
 * under numbers that this process has opened a device file with, or written to one, and in a
 * program that has to do with umad.
 */
int shim_file_to_read(int fd, struct shim_fifo *file);
/* The same under any number. */
int shim_file_read(int fd, struct shim_fifo *file);
/* A device file was opened here. */
void shim_file_note(int fd);
/* Before the program confines itself: notes which descriptors are device files. */
void shim_files_note(void);
struct shim_ctx *shim_ctx_of_stat(int fd, const struct stat *st);
/* The same, but only among the contexts that this process knows already. */
struct shim_ctx *shim_ctx_open_on(int fd);
/* The context of that number and generation, added to the list if it is new. NULL: no memory. */
struct shim_ctx *shim_ctx_known(uint32_t index, uint32_t generation, dev_t dev, ino_t ino);
bool shim_ctx_current(const struct shim_ctx *ctx);
unsigned int shim_ctx_minor(const struct shim_ctx *ctx);
int shim_ctx_path(const char *path, uint32_t *index, uint32_t *generation); /* 0 or -ENOENT */
/* open() of a device node. Returns a descriptor or -errno. */
int shim_open_device(unsigned int device, int flags);
uint32_t shim_cqn(const struct shim_ctx *ctx, uint32_t handle); /* 0: unknown */
void shim_set_cqn(struct shim_ctx *ctx, uint32_t handle, uint32_t cqn);
/* Announces for all contexts of this process that a thread may sleep until a CQE comes. */
void shim_contexts_doze(void);
/* Turns the UAR pages into memory. The control connection is held. */
int shim_kick_begins(struct shim_ctx *ctx);
void shim_context_forked(void);

#endif
