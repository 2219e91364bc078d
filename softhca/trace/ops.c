// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * See ops.h. A table has, for each context that is open, the operations that were there: the
 * provider's own (inner), and what softhca's preloaded library has put around this file's wrappers
 * since (outer), which calls them in turn. A wrapper that the program calls goes to the outer one.
 * One that is called from there goes to the inner one, and writes nothing.
 *
 * Verbs of other threads may run while an operation is wrapped. The table grows only, and an entry
 * is complete before an operation leads to it.
 */
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>

#include "call.h"
#include "extended.h"
#include "ops.h"
#include "words.h"

#define CONTEXTS 1024

/* Where each operation stands in struct ibv_context_ops: rdma-core gives some other names. */
#define OPERATIONS(X) X(poll_cq) X(req_notify_cq) X(post_srq_recv) X(post_send) X(post_recv)

struct entry {
	struct ibv_context *context;
	struct ibv_context_ops inner, outer; /* those of OPERATIONS; an outer one may be NULL */
	int (*query_port)(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr);
	struct extended_ops extended; /* of rdma-core's contexts */
};

static struct entry table[CONTEXTS];
static unsigned int used;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread unsigned int within; /* operations that this thread is in */

/* ---- the lock ---- */

static sigset_t forking; /* the mask of the thread that forks, which has the lock */

/* No handler runs meanwhile: it could call a verb, or not return. */
static void hold(sigset_t *mask)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, mask);
	pthread_mutex_lock(&lock);
}

static void let_go(const sigset_t *mask)
{
	pthread_mutex_unlock(&lock);
	pthread_sigmask(SIG_SETMASK, mask, NULL);
}

/*
 * fork() waits for the lock, so that the child has a whole table, and no lock that no thread
 * releases.
 */
static void before_fork(void)
{
	sigset_t mask;

	hold(&mask);
	forking = mask;
}

static void after_fork(void)
{
	sigset_t mask = forking;

	let_go(&mask);
}

__attribute__((constructor)) static void begin_forks(void)
{
	pthread_atfork(before_fork, after_fork, after_fork);
}

/* ---- the table ---- */

_Static_assert(offsetof(struct ibv_context, ops.poll_cq) == 96, "the same in rdma-core");
_Static_assert(offsetof(struct ibv_context, ops.post_srq_recv) == 168, "the same in rdma-core");
_Static_assert(offsetof(struct ibv_context, ops.post_recv) == 216, "the same in rdma-core");

/* A wrapper runs only where an entry was complete before. Pairs with the store in ops_wrap(). */
static struct entry *find(const struct ibv_context *context)
{
	unsigned int n = __atomic_load_n(&used, __ATOMIC_ACQUIRE);

	for (unsigned int i = 0; i < n; i++)
		if (__atomic_load_n(&table[i].context, __ATOMIC_ACQUIRE) == context)
			return &table[i];
	return NULL;
}

const struct extended_ops *ops_extended(const struct ibv_context *context)
{
	return &find(context)->extended;
}

#define CHOOSE(e, op)                                                                              \
	({                                                                                         \
		__typeof__((e)->outer.op) outer_ =                                                 \
			__atomic_load_n(&(e)->outer.op, __ATOMIC_ACQUIRE);                         \
		within || !outer_ ? (e)->inner.op : outer_;                                        \
	})

/* ---- the operations ---- */

static int trace_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct entry *e = find(qp->context);
	__typeof__(e->inner.post_send) post = CHOOSE(e, post_send);
	struct call c;
	int ret;

	if (within)
		return post(qp, wr, bad);
	call_begin(&c, "ibv_post_send", false);
	say_send(&c, qp, wr);
	call_enter(&c);
	within++;
	ret = post(qp, wr, bad);
	within--;
	call_returned(&c, ret);
	call_end(&c);
	return ret;
}

static int trace_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct entry *e = find(qp->context);
	__typeof__(e->inner.post_recv) post = CHOOSE(e, post_recv);
	struct call c;
	int ret;

	if (within)
		return post(qp, wr, bad);
	call_begin(&c, "ibv_post_recv", false);
	say_qp(&c, qp);
	say_recv(&c, qp->context, TRACE_POST_RECV, qp->qp_num, wr);
	call_enter(&c);
	within++;
	ret = post(qp, wr, bad);
	within--;
	call_returned(&c, ret);
	call_end(&c);
	return ret;
}

static int trace_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
			       struct ibv_recv_wr **bad)
{
	struct entry *e = find(srq->context);
	__typeof__(e->inner.post_srq_recv) post = CHOOSE(e, post_srq_recv);
	struct call c;
	int ret;

	if (within)
		return post(srq, wr, bad);
	call_begin(&c, "ibv_post_srq_recv", false);
	say_srq(&c, srq);
	say_recv(&c, srq->context, TRACE_POST_SRQ, 0, wr);
	call_enter(&c);
	within++;
	ret = post(srq, wr, bad);
	within--;
	call_returned(&c, ret);
	call_end(&c);
	return ret;
}

static int trace_req_notify_cq(struct ibv_cq *cq, int solicited)
{
	struct entry *e = find(cq->context);
	__typeof__(e->inner.req_notify_cq) notify = CHOOSE(e, req_notify_cq);
	struct call c;
	int ret;

	if (within)
		return notify(cq, solicited);
	call_begin(&c, "ibv_req_notify_cq", false);
	say_cq(&c, cq);
	call_say(&c, ", %d", solicited);
	call_enter(&c);
	within++;
	ret = notify(cq, solicited);
	within--;
	call_returned(&c, ret);
	call_end(&c);
	return ret;
}

static void say_poll(const struct ibv_cq *cq, int n, const struct ibv_wc *wc, int ret,
		     uint64_t began)
{
	struct call c;

	call_begin(&c, "ibv_poll_cq", false);
	say_cq(&c, cq);
	call_say(&c, ", %d", n);
	call_began(&c, began);
	call_enter(&c);
	call_left(&c, ret < 0, 0);
	call_say(&c, "%d", ret);
	say_completions(&c, cq->context, wc, ret);
	call_end(&c);
}

/* Polls that find nothing are many, so this verb is written when it is over. */
static int trace_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	struct entry *e = find(cq->context);
	__typeof__(e->inner.poll_cq) poll = CHOOSE(e, poll_cq);
	uint64_t began;
	int ret;

	if (within || call_inside())
		return poll(cq, n, wc);
	began = call_now();
	within++;
	ret = poll(cq, n, wc);
	within--;
	if (ret)
		say_poll(cq, n, wc, ret, began);
	else
		call_idle(cq, cq->handle, n, began);
	return ret;
}

/* A macro of our header calls this one. rdma-core's has another way (extended.c). */
static int trace_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr)
{
	struct entry *e = find(context);
	struct call c;
	int ret;

	call_begin(&c, "ibv_query_port", false);
	say_context(&c, context);
	call_say(&c, ", %u", port);
	call_enter(&c);
	ret = e->query_port(context, port, attr);
	call_returned(&c, ret);
	if (!ret)
		call_say(&c, " {state %u, lid %u}", attr->state, attr->lid);
	call_end(&c);
	return ret;
}

/* ---- wrapping them ---- */

/* The lock is held. NULL: there is no room, and the context is not traced. */
static struct entry *entry_for(struct ibv_context *context)
{
	struct entry *e = find(context);

	for (unsigned int i = 0; !e && i < used; i++)
		if (!table[i].context)
			e = &table[i];
	if (!e && used < CONTEXTS)
		e = &table[used];
	return e;
}

static void begin(struct entry *e, struct ibv_context *context)
{
	memset(&e->outer, 0, sizeof(e->outer));
	e->inner = context->ops;
	e->query_port = context->ops.query_port;
	__atomic_store_n(&e->context, context, __ATOMIC_RELEASE);
	if (e == &table[used])
		__atomic_store_n(&used, used + 1, __ATOMIC_RELEASE);
	if (!extended_wrap(context, &e->extended) && e->query_port)
		context->ops.query_port = trace_query_port;
}

void ops_wrap(struct ibv_context *context)
{
	struct entry *e;
	sigset_t mask;

	if (!context)
		return;
	e = find(context);
	/* The usual case, for which no thread waits. */
	if (e && __atomic_load_n(&context->ops.poll_cq, __ATOMIC_RELAXED) == trace_poll_cq &&
	    __atomic_load_n(&context->ops.post_send, __ATOMIC_RELAXED) == trace_post_send)
		return;
	hold(&mask);
	e = entry_for(context);
	if (e && e->context != context)
		begin(e, context);
#define WRAP(op)                                                                                   \
	if (e && context->ops.op && context->ops.op != trace_##op) {                               \
		if (context->ops.op != e->inner.op)                                                \
			__atomic_store_n(&e->outer.op, context->ops.op, __ATOMIC_RELEASE);         \
		__atomic_store_n(&context->ops.op, trace_##op, __ATOMIC_RELEASE);                  \
	}
	OPERATIONS(WRAP)
	let_go(&mask);
}

void ops_forget(struct ibv_context *context)
{
	struct entry *e;
	sigset_t mask;

	hold(&mask);
	e = find(context);
	if (e)
		__atomic_store_n(&e->context, NULL, __ATOMIC_RELEASE);
	let_go(&mask);
}
