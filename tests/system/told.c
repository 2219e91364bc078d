// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A program that is told of the end of its devices. A thread for each device waits in
 * ibv_get_async_event() for IBV_EVENT_DEVICE_FATAL, and prints a line when it comes. Then, or with
 * an argument when standard input ends, each call on the device must return, with an error. The
 * exit status is 0 if all of this was so.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#define DEVICES 4

static void must(int good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "told: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void *wait_for_the_end(void *arg)
{
	struct ibv_context *ctx = arg;
	struct ibv_async_event event;

	must(!ibv_get_async_event(ctx, &event), "ibv_get_async_event");
	printf("%s: %s\n", ibv_get_device_name(ctx->device),
	       event.event_type == IBV_EVENT_DEVICE_FATAL ? "DEVICE_FATAL"
							  : ibv_event_type_str(event.event_type));
	fflush(stdout);
	must(event.event_type == IBV_EVENT_DEVICE_FATAL, "the first event is another");
	ibv_ack_async_event(&event);
	/* No further event comes, and no thread waits for one. */
	must(ibv_get_async_event(ctx, &event) == -1, "another event");
	return NULL;
}

int main(int argc, char **argv)
{
	struct ibv_context *ctx[DEVICES];
	pthread_t thread[DEVICES];
	struct ibv_device **list;
	struct ibv_port_attr port;
	struct ibv_cq *cq;
	int n;

	list = ibv_get_device_list(&n);
	must(list && n > 0 && n <= DEVICES, "devices");
	for (int i = 0; i < n; i++) {
		must(!!(ctx[i] = ibv_open_device(list[i])), "open");
		must(!pthread_create(&thread[i], NULL, wait_for_the_end, ctx[i]), "thread");
	}
	must(!!(cq = ibv_create_cq(ctx[0], 10, NULL, NULL, 0)), "CQ");
	printf("pid=%d\n", (int)getpid());
	fflush(stdout);
	for (int i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
	(void)argv;
	while (argc > 1 && getchar() != EOF)
		;
	must(ibv_query_port(ctx[0], 1, &port) != 0,
	     "ibv_query_port() succeeds without an instance");
	must(!ibv_alloc_pd(ctx[0]), "ibv_alloc_pd() succeeds without an instance");
	ibv_destroy_cq(cq);
	for (int i = 0; i < n; i++)
		ibv_close_device(ctx[i]);
	ibv_free_device_list(list);
	puts("over");
	return 0;
}
