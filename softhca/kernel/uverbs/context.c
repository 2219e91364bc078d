// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Open device files. A context is released when the last reference to its file goes away. It is
 * gone (no process touches its memory) when the address space that opened it ends, which may be
 * earlier.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "softhca/device/queues/qp.h"
#include "softhca/host/process.h"
#include "softhca/kernel/process.h"
#include "context.h"
#include "evq.h"
#include "objects.h"
#include "uverbs.h"
#include "xrc.h"

#define MISSED_NS (60 * UINT64_C(1000000000))
/* As long as a command waits (kernel/retry.c). */
#define LEAVES_NS UINT64_C(2000000000)

static void file_name(char name[64], char kind, const struct kctx *ctx)
{
	snprintf(name, 64, "files/%c%u.%u", kind, ctx->index, ctx->generation);
}

/* Context 0 is the kernel's own. */
static uint32_t free_context(struct kernel *k)
{
	uint32_t i, index;

	for (i = 0; i < SH_MAX_CTX; i++) {
		index = (k->uverbs->ctx_next + i) % SH_MAX_CTX;
		if (index && !k->uverbs->ctx[index]) {
			k->uverbs->ctx_next = index + 1;
			return index;
		}
	}
	return 0;
}

int ctx_open(struct kernel *k, struct kproc *p, uint32_t device, struct kctx **out)
{
	struct kctx *ctx;
	struct sh_ctx *shared;
	char name[64];
	int err;

	if (device >= k->cfg.device.hcas_per_host)
		return -ENOENT;
	ctx = calloc(1, sizeof(*ctx));
	if (!ctx)
		return -ENOMEM;
	ctx->index = free_context(k);
	if (!ctx->index) {
		free(ctx);
		return -EMFILE;
	}
	if (!++k->uverbs->ctx_gen[ctx->index])
		++k->uverbs->ctx_gen[ctx->index];
	ctx->generation = k->uverbs->ctx_gen[ctx->index];
	ctx->k = k;
	ctx->proc = p;
	ctx->host = p->host;
	ctx->device = device;
	ctx->hca = p->host * k->cfg.device.hcas_per_host + device;
	file_name(name, 'c', ctx);
	if (mknodat(k->dir_fd, name, S_IFREG | 0600, 0) < 0) {
		err = -errno;
		free(ctx);
		return err;
	}
	file_name(name, 'l', ctx);
	if (mknodat(k->dir_fd, name, S_IFREG | 0600, 0) < 0) {
		err = -errno;
		file_name(name, 'c', ctx);
		unlinkat(k->dir_fd, name, 0);
		free(ctx);
		return err;
	}
	shared = sh_ctx(&k->dev, ctx->index);
	memset(shared, 0, sizeof(*shared));
	shared->pid = p->pid;
	shared->witness = p->user.witness;
	shared->proc = p->slot;
	shared->hca = ctx->hca;
	shared->host = ctx->host;
	shared->generation = ctx->generation;
	__atomic_store_n(&shared->state, SH_CTX_LIVE, __ATOMIC_RELEASE);
	p->refs++;
	k->uverbs->ctx[ctx->index] = ctx;
	*out = ctx;
	return 0;
}

int ctx_opened(struct kernel *k, struct kproc *p, uint32_t index)
{
	struct kctx *ctx = ctx_get(k, index);

	if (!ctx || ctx->proc != p || ctx->state != KC_OPENING)
		return -EINVAL;
	ctx->state = KC_OPEN;
	return 0;
}

/* By name: closing a descriptor of the file would say that the file is released. */
int ctx_kick(struct kctx *ctx)
{
	char path[128];

	snprintf(path, sizeof(path), "/proc/self/fd/%d/files/c%u.%u", ctx->k->dir_fd, ctx->index,
		 ctx->generation);
	return truncate(path, 2 * K_PAGE) < 0 ? -errno : 0;
}

struct kctx *ctx_get(struct kernel *k, uint32_t index)
{
	struct kctx *ctx = index && index < SH_MAX_CTX ? k->uverbs->ctx[index] : NULL;

	return ctx && ctx->state != KC_RELEASING ? ctx : NULL;
}

/* Silences the QPs whose locks are free; ctx_retry() comes back to the others. */
static void silence(struct kctx *ctx)
{
	struct kernel *k = ctx->k;
	bool all = true;
	struct uobj *u;

	DL_FOREACH(ctx->objs[UO_QP], u)
	{
		struct kqp *qp = ((struct kqp_handle *)u)->qp;

		if (qp && qp->ctx == ctx &&
		    sh_qp_silence(&k->dev, qp->hca, qp->qpn) == -EINPROGRESS)
			all = false;
	}
	if (!all)
		return;
	ctx->silenced = true;
	k->uverbs->loud--;
}

/* The state alone makes the context's keys useless and keeps every process out of its memory. */
void ctx_gone(struct kctx *ctx)
{
	struct kernel *k = ctx->k;

	if (ctx->gone)
		return;
	ctx->gone = true;
	__atomic_store_n(&sh_ctx(&k->dev, ctx->index)->state, SH_CTX_GONE, __ATOMIC_SEQ_CST);
	k->uverbs->loud++;
	silence(ctx);
}

/* A client that is still opening the device, and lives, has the file mapped. */
void ctx_life_closed(struct kctx *ctx)
{
	if (ctx->state == KC_OPENING && proc_lives(ctx->k, ctx->proc))
		ctx->untied = ctx->k->uverbs->untied = true;
	else
		ctx_gone(ctx);
}

/*
 * The kernel gives a lease for writing only where no other process has the file open. In doubt, it
 * counts as open. If a program opens the file while the daemon has the lease, the kernel sends the
 * daemon SIGURG, which does nothing.
 */
static bool is_open(const struct kctx *ctx, char kind)
{
	char name[64];
	int fd;
	bool alone;

	file_name(name, kind, ctx);
	fd = openat(ctx->k->dir_fd, name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return true;
	alone = fcntl(fd, F_SETSIG, SIGURG) == 0 && fcntl(fd, F_SETLEASE, F_WRLCK) == 0;
	close(fd);
	return !alone;
}

static void end_untied(struct kernel *k)
{
	uint32_t i;

	for (i = 1; k->uverbs->untied && i < SH_MAX_CTX; i++) {
		struct kctx *ctx = k->uverbs->ctx[i];

		if (ctx && ctx->untied && !ctx->gone && proc_ended(ctx->proc))
			ctx_gone(ctx);
	}
}

/*
 * Kernels report a close before it is done, so the look is repeated for a while. Among what was
 * missed may be the close of a second file that a living process has mapped: that file alone ends
 * no context.
 */
static void look_at_files(struct kernel *k)
{
	uint32_t i;

	for (i = 1; i < SH_MAX_CTX; i++) {
		struct kctx *ctx = k->uverbs->ctx[i];

		if (!ctx || ctx->state != KC_OPEN)
			continue;
		if (!is_open(ctx, 'c'))
			ctx_release(ctx);
		else if (!ctx->gone && !ctx->untied && !is_open(ctx, 'l'))
			ctx->untied = k->uverbs->untied = true;
	}
	end_untied(k);
}

void ctx_missed(struct kernel *k)
{
	k->uverbs->missed_until = sh_now() + MISSED_NS;
	look_at_files(k);
}

/* Only what the end of the process or of its connection does not show: an exec behind a fork. */
void ctx_tick(struct kernel *k)
{
	if (sh_now() < k->uverbs->missed_until)
		look_at_files(k);
	else
		end_untied(k);
}

/* What was posted over the wire may wait for answers that never come. */
static int end_qp(struct kctx *ctx, struct kqp_handle *h)
{
	const struct kqp *qp = h->qp;
	uint32_t n;
	int err = qp_free(h, false, &n);

	if (err != -EINPROGRESS || !qp || qp->ctx != ctx || sh_now() < ctx->leaves_until)
		return err;
	err = sh_qp_silence(&ctx->k->dev, qp->hca, qp->qpn);
	return err ? err : qp_free(h, false, &n);
}

static int release_objects(struct kctx *ctx)
{
	struct kernel *k = ctx->k;
	struct uobj *u, *tmp;
	struct kxrcd_handle *xh;
	uint32_t n, m;
	int err;

	DL_FOREACH_SAFE(ctx->objs[UO_AH], u, tmp)
	{
		((struct kah *)u)->pd->refs--;
		uobj_del(u);
		free(u);
	}
	DL_FOREACH_SAFE(ctx->objs[UO_QP], u, tmp)
	{
		err = end_qp(ctx, (struct kqp_handle *)u);
		if (err < 0)
			return err;
	}
	DL_FOREACH_SAFE(ctx->objs[UO_SRQ], u, tmp)
	{
		err = srq_free((struct ksrq *)u, false, &n);
		if (err < 0)
			return err;
	}
	DL_FOREACH_SAFE(ctx->objs[UO_CQ], u, tmp)
	{
		err = cq_free((struct kcq *)u, false, &n, &m);
		if (err < 0)
			return err;
	}
	DL_FOREACH_SAFE(ctx->objs[UO_MR], u, tmp)
	mr_free((struct kmr *)u);
	DL_FOREACH_SAFE(ctx->objs[UO_XRCD], u, tmp)
	{
		xh = (struct kxrcd_handle *)u;
		while (xh->regs) {
			err = xrc_rcv_reg_del(k, xh->regs, false, &n);
			if (err < 0)
				return err;
		}
		xrcd_drop(k, xh);
	}
	DL_FOREACH_SAFE(ctx->objs[UO_PD], u, tmp)
	(void)pd_free((struct kpd *)u);
	return 0;
}

/* Counts what the program has not destroyed itself. */
static void count_left(struct kctx *ctx)
{
	const struct uobj *u;
	int type;

	for (type = 0; type < UO_TYPES; type++)
		DL_FOREACH(ctx->objs[type], u)
	ctx->k->uverbs->objects[ctx->hca].left[type]++;
}

void ctx_release(struct kctx *ctx)
{
	struct kernel *k = ctx->k;
	struct sh_ctx *shared = sh_ctx(&k->dev, ctx->index);
	char name[64];

	if (ctx->state != KC_RELEASING) {
		ctx->state = KC_RELEASING;
		k->uverbs->releasing++;
		ctx->leaves_until = sh_now() + LEAVES_NS;
		count_left(ctx);
	}
	if (release_objects(ctx) < 0)
		return;
	while (ctx->evqs)
		evq_free(k, ctx->evqs);
	file_name(name, 'c', ctx);
	unlinkat(k->dir_fd, name, 0);
	file_name(name, 'l', ctx);
	unlinkat(k->dir_fd, name, 0);
	/*
	 * When the instance ends it stays gone: programs would not recognize a free one, and would
	 * write their commands into its file, which takes them all.
	 */
	if (!k->stop)
		__atomic_store_n(&shared->state, SH_CTX_FREE, __ATOMIC_SEQ_CST);
	k->uverbs->ctx[ctx->index] = NULL;
	k->uverbs->releasing--;
	if (ctx->gone && !ctx->silenced)
		k->uverbs->loud--;
	proc_put(k, ctx->proc);
	free(ctx);
}

void ctx_retry(struct kernel *k)
{
	uint32_t i;

	for (i = 1; k->uverbs->releasing + k->uverbs->loud && i < SH_MAX_CTX; i++) {
		struct kctx *ctx = k->uverbs->ctx[i];

		if (ctx && ctx->gone && !ctx->silenced)
			silence(ctx);
		if (ctx && ctx->state == KC_RELEASING)
			ctx_release(ctx);
	}
}
