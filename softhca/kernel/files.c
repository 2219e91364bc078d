// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What inotify says about the files that programs close. Nothing here waits for a client.
 */
#include <sys/inotify.h>
#include <unistd.h>

#include "files.h"
#include "room.h"
#include "server.h"

void files_drain(struct server *s)
{
	char buf[16384] __attribute__((aligned(8)));
	const struct inotify_event *e;
	ssize_t n, at;

	while ((n = read(s->inotify, buf, sizeof(buf))) > 0)
		for (at = 0; at < n; at += sizeof(*e) + e->len) {
			e = (const struct inotify_event *)(buf + at);
			if (e->len)
				ROOMS(closed, s->k,
				      e->wd == s->events_wd ? ROOM_EVENTS : ROOM_FILES, e->name);
		}
}
