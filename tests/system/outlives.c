// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A program that outlives its instance: it registers memory of the heap and a large block, and waits until standard input
 * ends. Then all that it had written must still be there: in the registered memory, around it, and in a child. It frees
 * everything as it would beside a card that is gone. The exit status is 0 if all of this was so.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#define SMALL 64
#define LARGE (1 << 20)
#define MANY  1000

static unsigned char *piece[MANY], *large;

static void must(int good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "outlives: %s: %s\n", what, strerror(errno));
	exit(1);
}

static size_t lost(const unsigned char *at, size_t len, int value)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++)
		n += at[i] != (unsigned char)value;
	return n;
}

static size_t lost_in_all(void)
{
	size_t n = lost(large, LARGE, 'L');

	for (int i = 0; i < MANY; i++)
		n += lost(piece[i], SMALL, i);
	return n;
}

int main(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_mr *mr[MANY / 10], *large_mr;
	struct ibv_context *ctx = NULL;
	struct ibv_pd *pd = NULL;
	struct ibv_cq *cq = NULL;
	size_t n;
	int status;

	must(list && *list && (ctx = ibv_open_device(*list)), "open");
	must((pd = ibv_alloc_pd(ctx)) && (cq = ibv_create_cq(ctx, 10, NULL, NULL, 0)), "PD, CQ");
	must(!posix_memalign((void **)&large, 4096, LARGE), "memory");
	large_mr = ibv_reg_mr(pd, large, LARGE, IBV_ACCESS_LOCAL_WRITE);
	must(!!large_mr, "register the large block");
	memset(large, 'L', LARGE);
	for (int i = 0; i < MANY; i++) {
		must(!!(piece[i] = malloc(SMALL)), "memory");
		memset(piece[i], i, SMALL);
	}
	for (int i = 0; i < MANY / 10; i++)
		must(!!(mr[i] = ibv_reg_mr(pd, piece[i * 10], SMALL, IBV_ACCESS_LOCAL_WRITE)),
		     "register");
	puts("ready");
	fflush(stdout);
	while (getchar() != EOF)
		;
	n = lost_in_all();
	if (n)
		fprintf(stderr, "outlives: %zu bytes of %d are lost\n", n, LARGE + MANY * SMALL);
	if (!fork())
		_exit(lost_in_all() != 0);
	must(wait(&status) > 0 && !status, "the child's memory");
	for (int i = 0; i < MANY / 10; i++)
		ibv_dereg_mr(mr[i]);
	ibv_dereg_mr(large_mr);
	ibv_destroy_cq(cq);
	ibv_dealloc_pd(pd);
	ibv_close_device(ctx);
	ibv_free_device_list(list);
	for (int i = 0; i < MANY; i++)
		free(piece[i]);
	free(large);
	must(!n, "what was lost");
	return 0;
}
