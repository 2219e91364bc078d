// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What inotify says about the files that programs close. Nothing here waits for a client.
 */
#include <sys/inotify.h>
#include <unistd.h>

#include "softhca/host/process.h"
#include "files.h"
#include "kern.h"
#include "room.h"
#include "server.h"

static void closed(struct server *s, int wd, const char *name)
{
	for (unsigned int i = 0; rooms[i]; i++)
		for (unsigned int j = 0; j < ROOM_DIRS && rooms[i]->dirs[j].name; j++)
			if (s->wd[i][j] == wd && rooms[i]->closed)
				rooms[i]->closed(s->k, j, name);
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
				closed(s, e->wd, e->name);
			else if (e->mask & IN_Q_OVERFLOW)
				ROOMS(missed, s->k);
		}
	if (s->k->doubted && sh_now() < s->k->doubt_soon)
		ROOMS(doubted, s->k);
}
