// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What inotify says about the files that programs close. Nothing here waits for a client.
 */
#include <stdio.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "softhca/kernel/uverbs/context.h"
#include "softhca/kernel/uverbs/evq.h"
#include "files.h"
#include "kern.h"
#include "server.h"

static void file_event(struct server *s, const struct inotify_event *e)
{
	struct kernel *k = s->k;
	unsigned int index, generation;
	struct kctx *ctx;
	char kind;

	if (e->wd == s->events_wd) {
		if (sscanf(e->name, "%u.%u", &index, &generation) == 2)
			evq_client_closed(k, index, generation);
		return;
	}
	if (sscanf(e->name, "%c%u.%u", &kind, &index, &generation) != 3)
		return;
	ctx = ctx_get(k, index);
	if (!ctx || ctx->generation != generation)
		return;
	if (kind == 'c')
		ctx_release(ctx);
	else if (kind == 'l')
		ctx_gone(ctx);
}

void files_drain(struct server *s)
{
	char buf[16384] __attribute__((aligned(8)));
	const struct inotify_event *e;
	ssize_t n, at;

	while ((n = read(s->inotify, buf, sizeof(buf))) > 0)
		for (at = 0; at < n; at += sizeof(*e) + e->len) {
			e = (const struct inotify_event *)(buf + at);
			if (e->len)
				file_event(s, e);
		}
}
