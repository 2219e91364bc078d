// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Open device files. The device and inode numbers of its file identify a context, never the number
 * of a descriptor: duplicates, inherited and passed descriptors all refer to it. Entries are never
 * freed, only reused for a later generation of the same number. list_lock protects the list;
 * readers walk it without the lock.
 */
#include "config.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softhca/device/memory/dev.h"
#include "softhca/host/process.h"
#include "softhca/host/sys.h"
#include "softhca/protocol.h"
#include "softhca/shim/attach.h"
#include "softhca/shim/compiler.h"
#include "context.h"
#include "softhca/shim/memory/memory.h"
#include "names.h"
#include "rdmacm.h"
#include "umad.h"
#include "softhca/shim/sandbox.h"
#include "softhca/shim/say.h"
#include "softhca/shim/stack.h"
#include "softhca/shim/doorbells/trap.h"

static struct shim_ctx *list;
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;

void shim_context_forked(void)
{
	list_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

bool shim_ctx_current(const struct shim_ctx *ctx)
{
	const struct sh_ctx *c = shim_dev.inst ? sh_ctx(&shim_dev, ctx->index) : NULL;

	return c && c->state != SH_CTX_FREE && c->generation == ctx->generation;
}

unsigned int shim_ctx_minor(const struct shim_ctx *ctx)
{
	const struct sh_ctx *c = sh_ctx(&shim_dev, ctx->index);

	return UVERBS_MINOR + (c ? c->hca % shim_dev.hcas_per_host : 0);
}

/*
 * Unmaps the life pages of contexts that have been closed: this process learns of their end in no
 * other way. list_lock is held.
 */
static void sweep(void)
{
	for (struct shim_ctx *c = list; c; c = c->next) {
		if (!c->life || shim_ctx_current(c))
			continue;
		if (c->life_pid == getpid())
			sh_munmap(c->life, SHIM_PAGE);
		c->life = NULL;
	}
}

struct shim_ctx *shim_ctx_known(uint32_t index, uint32_t generation, dev_t dev, ino_t ino)
{
	struct shim_ctx *c;

	pthread_mutex_lock(&list_lock);
	sweep();
	for (c = list; c; c = c->next)
		if (c->index == index)
			break;
	if (!c) {
		c = sh_pages(sizeof(*c));
		if (!c)
			goto out;
		c->index = index;
		c->generation = generation;
		c->dev = dev;
		c->ino = ino;
		c->next = list;
		__atomic_store_n(&list, c, __ATOMIC_RELEASE);
	} else if (c->generation != generation) {
		c->ino = 0;
		c->wrapped = c->kicked = false;
		c->npending = c->nearly_qp = c->nearly_cq = 0;
		for (unsigned int i = 0; i < SHIM_CQ_CHUNK; i++)
			if (c->cqn[i])
				memset(c->cqn[i], 0, SHIM_CQ_CHUNK * sizeof(uint32_t));
		c->dev = dev;
		__atomic_store_n(&c->generation, generation, __ATOMIC_RELEASE);
		__atomic_store_n(&c->ino, ino, __ATOMIC_RELEASE);
	}
out:
	pthread_mutex_unlock(&list_lock);
	return c;
}

/* <dir>/files/c<ctx>.<gen>, with or without " (deleted)" behind it. */
int shim_ctx_path(const char *path, uint32_t *index, uint32_t *generation)
{
	size_t len = strlen(shim.dir);
	unsigned int i, g;
	char after;

	if (strncmp(path, shim.dir, len) || strncmp(path + len, "/files/c", 8))
		return -ENOENT;
	if (sscanf(path + len + 8, "%u.%u%c", &i, &g, &after) < 2)
		return -ENOENT;
	*index = i;
	*generation = g;
	return 0;
}

/* For a descriptor from elsewhere: an earlier image of this process, a parent, a message. */
static struct shim_ctx *recognize(int fd, const struct stat *st)
{
	uint32_t index, generation;
	char path[PATH_MAX];
	struct shim_ctx *c;

	if (!shim_fd_path(fd, path) || shim_ctx_path(path, &index, &generation))
		return NULL;
	if (shim_control_get())
		return NULL;
	shim_control_put();
	c = shim_ctx_known(index, generation, st->st_dev, st->st_ino);
	return c && shim_ctx_current(c) ? c : NULL;
}

struct shim_ctx *shim_ctx_of_stat(int fd, const struct stat *st)
{
	if (!S_ISREG(st->st_mode) || st->st_dev != shim.files_dev)
		return NULL;
	for (struct shim_ctx *c = __atomic_load_n(&list, __ATOMIC_ACQUIRE); c; c = c->next)
		if (c->ino == st->st_ino && c->dev == st->st_dev && shim_ctx_current(c))
			return c;
	if (st->st_size != 0 && st->st_size != 2 * SHIM_PAGE)
		return NULL;
	return recognize(fd, st);
}

struct shim_ctx *shim_ctx_open_on(int fd)
{
	struct stat st;

	if (fd < 0 || sh_fstat(fd, &st) < 0 || st.st_dev != shim.files_dev)
		return NULL;
	for (struct shim_ctx *c = __atomic_load_n(&list, __ATOMIC_ACQUIRE); c; c = c->next)
		if (c->ino == st.st_ino && c->dev == st.st_dev && shim_ctx_current(c))
			return c;
	return NULL;
}

struct shim_ctx *shim_ctx_of_fd(int fd)
{
	struct stat st;

	if (fd < 0 || sh_fstat(fd, &st) < 0)
		return NULL;
	return shim_ctx_of_stat(fd, &st);
}

/* The numbers under which device files were opened here, and may be open still. */
#define NUMBERS 4096
static uint64_t numbers[NUMBERS / 64];

static void note_number(int fd, bool is_device)
{
	uint64_t bit = UINT64_C(1) << (fd % 64);

	if (fd >= NUMBERS)
		return;
	if (is_device)
		__atomic_fetch_or(&numbers[fd / 64], bit, __ATOMIC_RELAXED);
	else if (__atomic_load_n(&numbers[fd / 64], __ATOMIC_RELAXED) & bit)
		__atomic_fetch_and(&numbers[fd / 64], ~bit, __ATOMIC_RELAXED);
}

static enum shim_file look_up(int fd, const struct stat *st, struct shim_ctx **ctx,
			      struct shim_fifo *cm)
{
	*ctx = shim_ctx_of_stat(fd, st);
	if (*ctx)
		return SHIM_UVERBS_FILE;
	if (shim_cm_of_stat(fd, st, cm))
		return SHIM_CM_FILE;
	return shim_umad_of_stat(fd, st, cm) ? SHIM_UMAD_FILE : SHIM_OTHER_FILE;
}

void shim_files_note(void)
{
	struct shim_ctx *ctx;
	struct shim_fifo cm;
	struct stat st;

	for (int fd = 0; fd < NUMBERS; fd++)
		note_number(fd, sh_fstat(fd, &st) >= 0 &&
					look_up(fd, &st, &ctx, &cm) != SHIM_OTHER_FILE);
}

void shim_file_note(int fd)
{
	note_number(fd, true);
}

static bool noted(int fd)
{
	return __atomic_load_n(&numbers[fd / 64], __ATOMIC_RELAXED) >> (fd % 64) & 1;
}

int shim_file_to_write(int fd, struct shim_ctx **ctx, struct shim_fifo *cm)
{
	bool may = fd >= 0 && (fd >= NUMBERS || noted(fd));
	enum shim_file is;
	struct stat st;
	int err;

	if (fd < 0 || (!may && sandbox_told()))
		return SHIM_OTHER_FILE;
	err = sh_fstat(fd, &st);
	/* What is written to the file itself would be lost, and the file spoilt. */
	if (err)
		return may && fd < NUMBERS && err != -EBADF ? err : SHIM_OTHER_FILE;
	is = look_up(fd, &st, ctx, cm);
	note_number(fd, is != SHIM_OTHER_FILE);
	return is;
}

int shim_file_read(int fd, struct shim_fifo *file)
{
	struct stat st;

	if (fd < 0 || sandbox_told() || sh_fstat(fd, &st) < 0)
		return SHIM_OTHER_FILE;
	if (shim_cm_of_stat(fd, &st, file))
		return SHIM_CM_FILE;
	return shim_umad_of_stat(fd, &st, file) ? SHIM_UMAD_FILE : SHIM_OTHER_FILE;
}

int shim_file_to_read(int fd, struct shim_fifo *file)
{
	struct shim_ctx *ctx;
	int is;

	if (fd >= 0 && fd < NUMBERS && unlikely(noted(fd)) && !sandbox_told()) {
		is = shim_file_to_write(fd, &ctx, file);
		return is == SHIM_UMAD_FILE || is == SHIM_CM_FILE ? is : SHIM_OTHER_FILE;
	}
	return shim_umad_to_read(fd, file) ? SHIM_UMAD_FILE : SHIM_OTHER_FILE;
}

/* ---- opening ---- */

/* NULL on failure, with the error in *err. */
static void *map_life(uint32_t index, uint32_t generation, int *err)
{
	char path[PATH_MAX];
	void *at;
	int fd;

	snprintf(path, sizeof(path), "%.*s/files/l%u.%u", PATH_MAX - 64, shim.dir, index,
		 generation);
	fd = sh_open_own(path, O_RDWR);
	if (fd < 0) {
		*err = fd;
		return NULL;
	}
	at = sh_mmap(NULL, SHIM_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0, err);
	sh_close(fd);
	if (at && (*err = sh_madvise((uintptr_t)at, SHIM_PAGE, MADV_DONTFORK)) < 0) {
		sh_munmap(at, SHIM_PAGE);
		return NULL;
	}
	return at;
}

int shim_kick_begins(struct shim_ctx *ctx)
{
	struct sh_kick kick = {
		.type = SH_MSG_KICK, .ctx = ctx->index, .generation = ctx->generation};
	struct sh_status status;
	int err;

	/*
	 * The daemon gives the file its length: in this process the path may lead elsewhere by now,
	 * and a limit on the size of the application's files would apply.
	 */
	err = shim_request(&kick, sizeof(kick), &status, sizeof(status), NULL, NULL);
	return err ? err : -status.error;
}

static int open_file(uint32_t index, uint32_t generation, int flags)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%.*s/files/c%u.%u", PATH_MAX - 64, shim.dir, index,
		 generation);
	return sh_open(path, flags & ~(O_CREAT | O_EXCL | O_TRUNC));
}

struct opening {
	unsigned int device;
	int flags;
};

static int open_device(void *arg)
{
	const struct opening *o = arg;
	struct sh_open open_req = {.type = SH_MSG_OPEN, .device = o->device};
	struct sh_opened opened = {.type = SH_MSG_OPENED};
	struct sh_open_reply reply;
	struct sh_status status;
	struct shim_ctx *ctx;
	struct stat st;
	void *life;
	int fd, err;

	err = shim_control_to_open();
	if (err)
		return err;
	err = shim_request(&open_req, sizeof(open_req), &reply, sizeof(reply), NULL, NULL);
	if (!err)
		err = -reply.error;
	if (err)
		goto out;
	fd = open_file(reply.ctx, reply.generation, o->flags);
	if (fd < 0) {
		err = fd;
		goto out;
	}
	err = sh_fstat(fd, &st);
	if (err)
		goto close_fd;
	life = map_life(reply.ctx, reply.generation, &err);
	ctx = life ? shim_ctx_known(reply.ctx, reply.generation, st.st_dev, st.st_ino) : NULL;
	if (!ctx) {
		err = life ? -ENOMEM : err;
		goto unmap_life;
	}
	opened.ctx = reply.ctx;
	err = shim_request(&opened, sizeof(opened), &status, sizeof(status), NULL, NULL);
	if (!err)
		err = -status.error;
	if (!err)
		err = shim_trap_install();
	if (!err)
		err = sh_process_helper();
	if (err)
		goto unmap_life;
#ifndef HAVE_TRAP
	/*
	 * Stores cannot be seen before the operations are wrapped. kick.c looks for what was stored
	 * until then.
	 */
	err = shim_kick_begins(ctx);
	if (err)
		goto unmap_life;
#endif
	ctx->life = life;
	ctx->life_pid = getpid();
	shim_control_put();
	note_number(fd, true);
	return fd;

unmap_life:
	if (life)
		sh_munmap(life, SHIM_PAGE);
close_fd:
	sh_close(fd);
out:
	shim_control_put();
	if (err == -ENOSPC)
		shim_say_unreachable(err);
	return err;
}

int shim_open_device(unsigned int device, int flags)
{
	struct opening o = {device, flags};

	return stack_spare(open_device, &o);
}

/* Walks the list without its lock, as all readers do. */
void shim_contexts_doze(void)
{
	for (struct shim_ctx *c = __atomic_load_n(&list, __ATOMIC_ACQUIRE); c; c = c->next)
		if (c->life && c->life_pid == sh_process.pid && shim_ctx_current(c))
			__atomic_store_n(&sh_ctx(&shim_dev, c->index)->dozing, 1, __ATOMIC_RELAXED);
}

/* ---- CQ numbers ---- */

uint32_t shim_cqn(const struct shim_ctx *ctx, uint32_t handle)
{
	const uint32_t *chunk;

	if (handle / SHIM_CQ_CHUNK >= SHIM_CQ_CHUNK)
		return 0;
	chunk = __atomic_load_n(&ctx->cqn[handle / SHIM_CQ_CHUNK], __ATOMIC_ACQUIRE);
	return chunk ? __atomic_load_n(&chunk[handle % SHIM_CQ_CHUNK], __ATOMIC_RELAXED) : 0;
}

void shim_set_cqn(struct shim_ctx *ctx, uint32_t handle, uint32_t cqn)
{
	uint32_t **chunk = &ctx->cqn[handle / SHIM_CQ_CHUNK % SHIM_CQ_CHUNK];
	uint32_t *fresh;

	if (handle / SHIM_CQ_CHUNK >= SHIM_CQ_CHUNK)
		return;
	if (!*chunk) {
		fresh = sh_pages(SHIM_CQ_CHUNK * sizeof(uint32_t));
		if (!fresh)
			return;
		__atomic_store_n(chunk, fresh, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&(*chunk)[handle % SHIM_CQ_CHUNK], cqn, __ATOMIC_RELAXED);
}
