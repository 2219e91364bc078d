// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The route of a stream that connects. ibacm may take seconds for its answer, or give none. A call
 * that takes the next step of a connection has the rsocket's lock, and may be one that never
 * blocks. So a thread asks, without the lock. With the answer it gives the kernel the command whose
 * event is the next step.
 */

#include <signal.h>
#include <string.h>
#include <time.h>

#include "rs.h"

enum { STACK = 256 * 1024, FORK_S = 1 };

struct question {
	struct rs *rs;
	uint32_t life,
		number; /* of the rsocket, and of its question: those of another one are not answered */
	struct sockaddr_storage src, dst;
};

/* ---- Forks ---- */

/*
 * A program of one thread may fork while a thread of this file has the lock of an rsocket, during
 * its command. In the child no thread would release the lock, and rclose() would wait for ever. So
 * a thread of this file takes the lock "answers" before that of the rsocket, and releases it
 * afterwards. fork() takes "answers", too, and so waits for the command. That is short: the command
 * only starts an operation, whose end an event tells. If the kernel does not answer, fork() goes on
 * after FORK_S, and the child initializes the locks anew. The thread changes nothing of the rsocket
 * before the command is answered.
 *
 * The forking thread may itself hold the lock of an rsocket, if it forks in a signal handler. So a
 * thread that has "answers" never waits for the lock of an rsocket.
 */
static pthread_mutex_t answers = PTHREAD_MUTEX_INITIALIZER;
static struct rs *answered;  /* atomic: the rsocket whose lock the holder of "answers" has */
static __thread bool waited; /* this thread forks, and has "answers" */

static void before_fork(void)
{
	struct timespec end;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += FORK_S;
	waited = !pthread_mutex_timedlock(&answers, &end);
}

static void in_parent(void)
{
	if (waited)
		pthread_mutex_unlock(&answers);
}

static void in_child(void)
{
	struct rs *rs = __atomic_exchange_n(&answered, NULL, __ATOMIC_RELAXED);

	if (waited) {
		pthread_mutex_unlock(&answers);
		return;
	}
	if (rs)
		pthread_mutex_init(&rs->lock, NULL);
	pthread_mutex_init(&answers, NULL);
}

static bool forks_are_watched;

static void watch_forks(void)
{
	forks_are_watched = !pthread_atfork(before_fork, in_parent, in_child);
}

static void lock(struct rs *rs)
{
	for (;;) {
		pthread_mutex_lock(&answers);
		if (!pthread_mutex_trylock(&rs->lock))
			break;
		pthread_mutex_unlock(&answers);
		poll(NULL, 0, 1);
	}
	__atomic_store_n(&answered, rs, __ATOMIC_RELAXED);
}

static void unlock(struct rs *rs)
{
	__atomic_store_n(&answered, NULL, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&rs->lock);
	pthread_mutex_unlock(&answers);
}

/* ---- The thread ---- */

static void answer(const struct question *question, const struct ibv_path_data *paths, size_t n)
{
	struct rs *rs = question->rs;
	int ret;

	lock(rs);
	if (rs->life == question->life && rs->questions == question->number &&
	    rs->state == RS_RESOLVING_ROUTE) {
		ret = cm_ask_route(to_cm_id(rs->id), RS_RESOLVE_MS, paths, n);
		if (ret) {
			rs_fail(rs, -ret);
			rs_wake(rs);
		}
	}
	unlock(rs);
}

static void *ask(void *arg)
{
	struct question *question = arg;
	struct ibv_path_data *paths;
	size_t n;

	cm_acm_paths((struct sockaddr *)&question->src, (struct sockaddr *)&question->dst, &paths,
		     &n);
	answer(question, paths, n);
	free(paths);
	free(question);
	return NULL;
}

/* A thread that takes no signal of the program's. */
static bool start(struct question *question)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	sigset_t all, was;
	pthread_attr_t attr;
	pthread_t thread;
	int ret;

	pthread_once(&once, watch_forks);
	if (!forks_are_watched || pthread_attr_init(&attr))
		return false;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	/* Where thread-local variables need more, the usual size. */
	(void)pthread_attr_setstacksize(&attr, STACK);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &was);
	ret = pthread_create(&thread, &attr, ask, question);
	if (ret) {
		pthread_attr_destroy(&attr);
		pthread_attr_init(&attr);
		pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
		ret = pthread_create(&thread, &attr, ask, question);
	}
	pthread_sigmask(SIG_SETMASK, &was, NULL);
	pthread_attr_destroy(&attr);
	return !ret;
}

int rs_ask_route(struct rs *rs)
{
	const struct sockaddr *src = rdma_get_local_addr(rs->id), *dst = rdma_get_peer_addr(rs->id);
	struct question *question;

	rs->state = RS_RESOLVING_ROUTE;
	rs->questions++;
	if (rs->route)
		return rdma_set_option(rs->id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, rs->route,
				       rs->route_len)
			       ? -errno
			       : 0;
	question = cm_acm_is_there() ? calloc(1, sizeof(*question)) : NULL;
	if (question) {
		question->rs = rs;
		question->life = rs->life;
		question->number = rs->questions;
		memcpy(&question->src, src, cm_addr_len(src));
		memcpy(&question->dst, dst, cm_addr_len(dst));
		if (start(question))
			return 0;
		free(question);
	}
	return cm_ask_route(to_cm_id(rs->id), RS_RESOLVE_MS, NULL, 0);
}
