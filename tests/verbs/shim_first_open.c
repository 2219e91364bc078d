// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: a thread sets signal handlers while another opens the first device. The handlers
 * that it has set are those that it reads back, and those that run.
 * Quick: half
 */
#include <pthread.h>
#include <signal.h>

#include "verbs_test.h"

#define OPENS 150

static struct ibv_device **list;
static int opened;
static volatile sig_atomic_t ran;

static void first(int sig)
{
	(void)sig;
	ran = 1;
}

static void second(int sig)
{
	(void)sig;
	ran = 2;
}

/* Sets the handler by sigaction(), or plainly by signal(), a separate function of the C library. */
static sighandler_t set(sighandler_t handler, bool plainly)
{
	struct sigaction act = {.sa_handler = handler, .sa_flags = SA_RESTART}, old;

	if (plainly)
		return signal(SIGUSR1, handler);
	CHECK_EQ(sigaction(SIGUSR1, &act, &old), 0);
	return old.sa_handler;
}

static sighandler_t ask(void)
{
	struct sigaction old;

	CHECK_EQ(sigaction(SIGUSR1, NULL, &old), 0);
	return old.sa_handler;
}

static void *setter(void *arg)
{
	bool plainly = arg != NULL;

	meet(2);
	for (int after = 0; after < 10; after += __atomic_load_n(&opened, __ATOMIC_RELAXED)) {
		CHECK(set(second, plainly) == first);
		CHECK(ask() == second);
		CHECK(set(first, plainly) == second);
		CHECK(ask() == first);
	}
	/* The handler that was set last runs, even if it was set while the other thread opened. */
	CHECK_EQ(raise(SIGUSR1), 0);
	CHECK_EQ(ran, 1);
	CHECK(set(second, plainly) == first);
	CHECK_EQ(raise(SIGUSR1), 0);
	CHECK_EQ(ran, 2);
	return NULL;
}

static void open_first(int plainly)
{
	struct ibv_context *context;
	pthread_t thread;

	CHECK(signal(SIGUSR1, first) == SIG_DFL);
	CHECK_EQ(pthread_create(&thread, NULL, setter, plainly ? &opened : NULL), 0);
	meet(2);
	context = ibv_open_device(list[0]);
	CHECK(context);
	__atomic_store_n(&opened, 1, __ATOMIC_RELAXED);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK_EQ(ibv_close_device(context), 0);
}

int main(void)
{
	test_begin();
	/* The parent opens no device, so each child has a first open of its own. */
	list = ibv_get_device_list(NULL);
	CHECK(list && list[0]);
	for (int i = 0; i < OPENS; i++)
		join(spawn(open_first, i % 2));
	ibv_free_device_list(list);
	return 0;
}
