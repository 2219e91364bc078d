// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Wraps the client's operations. In kick the device looks at a queue right after the provider's own
 * post or arm operation returns, because this file has put a wrapper around each. The objects that
 * the client makes lead to its ibv_context: their addresses come with the commands. This file
 * follows a pointer of the client only after it has read it safely and the pointer has led back to
 * the descriptor that the command came through. Wrapping runs under the control lock. The wrappers
 * take no lock, and those of the post and arm operations make no system call of their own. poll_cq
 * is wrapped in trap as well, where the ibv_context can be found: a thread that polls in vain gives
 * way (idle.c), so this wrapper reads the clock, yields and sleeps.
 *
 *	OFFSET	WHAT		of the client's structures, the same in OFED 1.x and in rdma-core
 *	0	context		struct ibv_qp, struct ibv_cq
 *	48, 52	handle, qp_num	struct ibv_qp
 *	24	handle		struct ibv_cq
 *	8	operations	struct ibv_context
 *	264	cmd_fd		struct ibv_context
 */
#include <string.h>

#include "softhca/device/memory/dev.h"
#include "softhca/device/memory/objects.h"
#include "softhca/device/queues/cq.h"
#include "softhca/device/transport/doorbell.h"
#include "softhca/host/process.h"
#include "softhca/host/sys.h"
#include "softhca/shim/attach.h"
#include "bus.h"
#include "softhca/shim/compiler.h"
#include "softhca/shim/files/context.h"
#include "idle.h"
#include "kick.h"

#define SLOTS 4096 /* contexts that a process can have wrapped, with room for the hash */

struct client_context {
	void *device;
	void *op[32];
	int32_t cmd_fd;
};
_Static_assert(offsetof(struct client_context, cmd_fd) == 264, "after 32 operations");

enum { OP_POLL_CQ = 11, OP_REQ_NOTIFY_CQ = 12, OP_POST_SEND = 25, OP_POST_RECV = 26 };
_Static_assert(offsetof(struct client_context, op[OP_POLL_CQ]) == 96, "poll_cq");
_Static_assert(offsetof(struct client_context, op[OP_REQ_NOTIFY_CQ]) == 104, "req_notify_cq");
_Static_assert(offsetof(struct client_context, op[OP_POST_SEND]) == 208, "post_send");
_Static_assert(offsetof(struct client_context, op[OP_POST_RECV]) == 216, "post_recv");

struct client_qp {
	struct client_context *context;
	char other[44];
	uint32_t qp_num;
};
_Static_assert(offsetof(struct client_qp, qp_num) == 52, "qp_num");

struct client_cq {
	struct client_context *context;
	void *channel, *cq_context;
	uint32_t handle;
};
_Static_assert(offsetof(struct client_cq, handle) == 24, "handle");

struct wrapped {
	struct client_context *context;
	const struct shim_ctx *ctx;
	int (*post_send)(struct client_qp *qp, void *wr, void **bad);
	int (*post_recv)(struct client_qp *qp, void *wr, void **bad);
	int (*req_notify_cq)(struct client_cq *cq, int solicited);
	int (*poll_cq)(struct client_cq *cq, int n, void *wc);
};

/*
 * Open addressing by the context's address. An entry stays, and is filled anew when the address is
 * used again.
 */
static struct wrapped table[SLOTS];
static unsigned int used;

static unsigned int hash(const struct client_context *context)
{
	return (unsigned int)(((uintptr_t)context >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 52) %
	       SLOTS;
}

/*
 * For a thread that came here through an operation of the context: what wrap() stored before the
 * operation is loaded after it. The program's load of the operation is its own, so this is a fence
 * and no acquire. On x86 it takes no instruction.
 */
static inline void after_operation(void)
{
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
}

static struct wrapped *find(const struct client_context *context)
{
	unsigned int i = hash(context);

	after_operation();
	while (__atomic_load_n(&table[i].context, __ATOMIC_ACQUIRE) != context) {
		if (unlikely(!table[i].context))
			return NULL;
		i = (i + 1) % SLOTS;
	}
	return &table[i];
}

/* ---- the operations ---- */

static int kick_post_send(struct client_qp *qp, void *wr, void **bad)
{
	const struct wrapped *w = find(qp->context);
	int ret = w->post_send(qp, wr, bad);

	/* The call may have posted requests before it refused one. */
	shim_ring(w->ctx->index, qp->qp_num);
	return ret;
}

static int kick_post_recv(struct client_qp *qp, void *wr, void **bad)
{
	const struct wrapped *w = find(qp->context);
	int ret = w->post_recv(qp, wr, bad);

	shim_recv(w->ctx->index, qp->qp_num);
	return ret;
}

static int kick_req_notify_cq(struct client_cq *cq, int solicited)
{
	const struct wrapped *w = find(cq->context);
	int ret = w->req_notify_cq(cq, solicited);
	uint32_t cqn = shim_cqn(w->ctx, cq->handle);

	if (likely(cqn))
		shim_arm(w->ctx->index, cqn, 0, 0);
	return ret;
}

/* A poll that is looked at. */
static __attribute__((noinline)) int poll_idle(int (*poll_cq)(struct client_cq *, int, void *),
					       struct client_cq *cq, int n, void *wc)
{
	int ret = poll_cq(cq, n, wc);

	if (ret || n <= 0)
		shim_idle_ends();
	else if (shim_idle(cq) && (ret = poll_cq(cq, n, wc)))
		shim_idle_ends();
	return ret;
}

/*
 * Nearly every process has one provider, so its function is known without a lookup of the context.
 */
static int (*the_poll_cq)(struct client_cq *cq, int n, void *wc);

static int kick_poll_cq(struct client_cq *cq, int n, void *wc)
{
	after_operation();
	if (likely(--shim_polls_left >= 0))
		return the_poll_cq(cq, n, wc);
	return poll_idle(the_poll_cq, cq, n, wc);
}

static int kick_poll_cq_of_another(struct client_cq *cq, int n, void *wc)
{
	const struct wrapped *w = find(cq->context);

	if (likely(--shim_polls_left >= 0))
		return w->poll_cq(cq, n, wc);
	return poll_idle(w->poll_cq, cq, n, wc);
}

/* ---- wrapping them; the control lock is held ---- */

/*
 * The ibv_context that the object at addr belongs to, if the client opened it on this context's
 * file.
 */
static struct client_context *context_of(const struct shim_ctx *ctx, uint64_t addr,
					 struct client_context *copy)
{
	uint64_t context;

	if (sh_peek(&context, addr, sizeof(context)) || !context || context % sizeof(void *))
		return NULL;
	if (sh_peek(copy, context, sizeof(*copy)))
		return NULL;
	if (shim_ctx_of_fd(copy->cmd_fd) != ctx)
		return NULL;
	if (!copy->op[OP_POLL_CQ] || !copy->op[OP_POST_SEND] || !copy->op[OP_POST_RECV] ||
	    !copy->op[OP_REQ_NOTIFY_CQ])
		return NULL;
	return (struct client_context *)(uintptr_t)context;
}

static struct wrapped *slot_for(struct client_context *context)
{
	struct wrapped *w = find(context);
	unsigned int i;

	if (w)
		return w;
	if (used >= SLOTS * 3 / 4)
		return NULL;
	used++;
	for (i = hash(context); table[i].context; i = (i + 1) % SLOTS)
		;
	return &table[i];
}

/*
 * Rings for doorbells that other threads stored through the unwrapped operations while the page
 * turned into memory.
 */
static void look_at_early(struct sh_dev *dev, uint64_t index, uint64_t generation)
{
	const struct sh_ctx *c = sh_ctx(dev, (uint32_t)index);
	struct shim_ctx *ctx;

	if (!c || c->state != SH_CTX_LIVE || c->generation != generation)
		return;
	ctx = shim_ctx_known((uint32_t)index, (uint32_t)generation, 0, 0);
	if (!ctx)
		return;
	for (unsigned int i = 0; i < ctx->nearly_qp; i++)
		sh_ring(dev, ctx->index, ctx->early_qp[i]);
	for (unsigned int i = 0; i < ctx->nearly_cq; i++)
		sh_arm(dev, ctx->index, ctx->early_cq[i], 0, 0);
}

static void wrap(struct shim_ctx *ctx, struct client_context *context,
		 const struct client_context *copy)
{
	struct wrapped *w = slot_for(context);
	struct sh_ctx *shared = sh_ctx(&shim_dev, ctx->index);
	uint64_t now;

	if (!w || !shared)
		return;
	w->ctx = ctx;
	if (copy->op[OP_POLL_CQ] != (void *)kick_poll_cq &&
	    copy->op[OP_POLL_CQ] != (void *)kick_poll_cq_of_another) {
		w->poll_cq = (__typeof__(w->poll_cq))copy->op[OP_POLL_CQ];
		if (!the_poll_cq)
			the_poll_cq = w->poll_cq;
	}
	if (!shim.trap && copy->op[OP_POST_SEND] != (void *)kick_post_send) {
		w->post_send = (__typeof__(w->post_send))copy->op[OP_POST_SEND];
		w->post_recv = (__typeof__(w->post_recv))copy->op[OP_POST_RECV];
		w->req_notify_cq = (__typeof__(w->req_notify_cq))copy->op[OP_REQ_NOTIFY_CQ];
	}
	/*
	 * Pairs with find() and after_operation(): a thread that sees the context or an operation
	 * sees what it wraps.
	 */
	__atomic_store_n(&w->context, context, __ATOMIC_RELEASE);
	__atomic_store_n(&context->op[OP_POLL_CQ],
			 w->poll_cq == the_poll_cq ? (void *)kick_poll_cq
						   : (void *)kick_poll_cq_of_another,
			 __ATOMIC_RELEASE);
	ctx->wrapped = true;
	if (shim.trap)
		return;
	__atomic_store_n(&context->op[OP_POST_SEND], (void *)kick_post_send, __ATOMIC_RELEASE);
	__atomic_store_n(&context->op[OP_POST_RECV], (void *)kick_post_recv, __ATOMIC_RELEASE);
	__atomic_store_n(&context->op[OP_REQ_NOTIFY_CQ], (void *)kick_req_notify_cq,
			 __ATOMIC_RELEASE);
	if (shim_kick_begins(ctx))
		return; /* the wrappers stay: a doorbell that also traps does no harm */
	ctx->kicked = true;
	__atomic_store_n(&shared->kick, 1, __ATOMIC_RELEASE);
	now = shim_dev.ops->now(shim_dev.host);
	for (uint64_t ms = 1; ms <= 100; ms *= 10)
		sh_defer(&shim_dev, now + ms * 1000000, look_at_early, ctx->index, ctx->generation);
}

void shim_kick_try(struct shim_ctx *ctx)
{
	unsigned int n = ctx->npending < SHIM_PENDING ? ctx->npending : SHIM_PENDING;
	struct client_context copy, *context;

	/*
	 * An object that is not in these lists could wait for a doorbell that was lost in the
	 * change.
	 */
	if (ctx->nearly_qp == SHIM_EARLY || ctx->nearly_cq == SHIM_EARLY)
		return;
	for (unsigned int i = 0; i < n; i++) {
		context = context_of(ctx, ctx->pending[i], &copy);
		if (context) {
			wrap(ctx, context, &copy);
			return;
		}
	}
}
