// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* See wire_groups.h. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "softhca/wire/engine.h"
#include "softhca/wire/sockets.h"
#include "kern.h"
#include "lists.h"
#include "out.h"
#include "wire_groups.h"

struct wire_group {
	uint8_t mgid[16];
	uint32_t members;
	bool unheard; /* at one interface or more */
	struct wire_group *prev, *next;
};

struct wire_groups {
	struct wire_group *first;
	uint32_t unheard_members; /* of groups for which there was no memory */
	uint64_t dropped;	  /* by sockets that are closed */
	struct {
		const struct wire_group *group; /* NULL: the slot is empty */
		uint32_t number;		/* of the address whose interface it is */
		int fd;
	} slot[SH_WIRE_GROUPS];
};

static struct wire_group *find(struct wire_groups *all, const uint8_t mgid[16])
{
	struct wire_group *g;

	DL_FOREACH(all->first, g)
	if (!memcmp(g->mgid, mgid, 16))
		return g;
	return NULL;
}

/* fd -1: the slot becomes empty. False: the engine does not read, or has ended. */
static bool give(struct kernel *k, const struct sh_wire_slot *s, int fd)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} room = {0};
	struct iovec iov = {(void *)(uintptr_t)s, sizeof(*s)};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *c;

	if (k->wire.link < 0)
		return false;
	if (fd >= 0) {
		msg.msg_control = room.bytes;
		msg.msg_controllen = sizeof(room.bytes);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(fd));
		memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	}
	return sendmsg(k->wire.link, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)sizeof(*s);
}

static bool hears(const struct wire_groups *all, const struct wire_group *g, uint32_t number)
{
	for (uint32_t i = 0; i < SH_WIRE_GROUPS; i++)
		if (all->slot[i].group == g && all->slot[i].number == number)
			return true;
	return false;
}

/* False: what comes to the group at the interface of that address is not heard. */
static bool hear(struct kernel *k, const struct wire_group *g, uint32_t number)
{
	const struct sh_wire_config *cfg = &k->cfg.device.wire;
	struct wire_groups *all = k->wire.groups;
	struct sh_wire_slot s = {.slot = 0};
	int fd;

	if (hears(all, g, number))
		return true;
	memcpy(s.mgid, g->mgid, 16);
	/* First: another port's socket may be enough. */
	fd = sh_wire_open_group(cfg, number, g->mgid, &s.ports);
	if (fd < 0)
		return fd == -EALREADY;
	while (s.slot < SH_WIRE_GROUPS && all->slot[s.slot].group)
		s.slot++;
	if (s.slot == SH_WIRE_GROUPS || !give(k, &s, fd)) {
		sh_wire_close_group(cfg, number, fd, g->mgid);
		return false;
	}
	all->slot[s.slot].group = g;
	all->slot[s.slot].number = number;
	all->slot[s.slot].fd = fd;
	return true;
}

/*
 * Whether the engine hears of it or not, the group is left: what it keeps is a socket to which
 * nothing comes.
 */
static void leave_slot(struct kernel *k, uint32_t i)
{
	struct wire_groups *all = k->wire.groups;
	const struct sh_wire_slot s = {.slot = i};

	all->dropped += sh_wire_dropped(all->slot[i].fd);
	sh_wire_close_group(&k->cfg.device.wire, all->slot[i].number, all->slot[i].fd,
			    all->slot[i].group->mgid);
	(void)give(k, &s, -1);
	all->slot[i].group = NULL;
}

static void leave(struct kernel *k, const struct wire_group *g)
{
	for (uint32_t i = 0; i < SH_WIRE_GROUPS; i++)
		if (k->wire.groups->slot[i].group == g)
			leave_slot(k, i);
}

void wire_groups_lost(struct kernel *k, uint32_t number)
{
	struct wire_groups *all = k->wire.groups;

	for (uint32_t i = 0; all && i < SH_WIRE_GROUPS; i++)
		if (all->slot[i].group && all->slot[i].number == number)
			leave_slot(k, i);
}

/* Where it is not heard yet. */
static void hear_all(struct kernel *k, struct wire_group *g)
{
	g->unheard = false;
	for (uint32_t i = 0; i < k->cfg.device.wire.n; i++)
		if (!hear(k, g, i))
			g->unheard = true;
}

void wire_groups_again(struct kernel *k)
{
	struct wire_groups *all = k->wire.groups;
	struct wire_group *g;

	if (!all)
		return;
	DL_FOREACH(all->first, g)
	{
		hear_all(k, g);
	}
}

void wire_join(struct kernel *k, const uint8_t mgid[16])
{
	struct wire_groups *all;
	struct wire_group *g;

	if (!k->wire.pid)
		return;
	if (!k->wire.groups)
		k->wire.groups = calloc(1, sizeof(*k->wire.groups));
	all = k->wire.groups;
	if (!all)
		return;
	g = find(all, mgid);
	if (!g) {
		g = calloc(1, sizeof(*g));
		if (!g) {
			all->unheard_members++;
			return;
		}
		memcpy(g->mgid, mgid, 16);
		DL_APPEND(all->first, g);
		g->unheard = true;
	}
	g->members++;
	if (g->unheard)
		hear_all(k, g);
}

void wire_part(struct kernel *k, const uint8_t mgid[16])
{
	struct wire_groups *all = k->wire.groups;
	struct wire_group *g = all ? find(all, mgid) : NULL;

	if (!g) {
		if (all && all->unheard_members)
			all->unheard_members--;
		return;
	}
	if (--g->members)
		return;
	leave(k, g);
	DL_DELETE(all->first, g);
	free(g);
	/* There is room for others. */
	DL_FOREACH(all->first, g)
	{
		if (g->unheard)
			hear_all(k, g);
		if (g->unheard)
			return;
	}
}

void wire_groups_show(struct kernel *k, struct out *o, uint64_t *dropped)
{
	const struct wire_groups *all = k->wire.groups;
	const struct wire_group *g;
	uint64_t groups = 0, unheard = all ? all->unheard_members : 0;

	if (all) {
		*dropped += all->dropped;
		DL_FOREACH(all->first, g)
		{
			groups++;
			unheard += g->unheard;
		}
		for (uint32_t i = 0; i < SH_WIRE_GROUPS; i++)
			if (all->slot[i].group)
				*dropped += sh_wire_dropped(all->slot[i].fd);
	}
	out_int(o, "groups", groups);
	out_int(o, "groups_unheard", unheard);
}

void wire_groups_end(struct wire *w, const struct sh_wire_config *cfg)
{
	struct wire_group *g, *tmp;

	if (!w->groups)
		return;
	for (uint32_t i = 0; i < SH_WIRE_GROUPS; i++)
		if (w->groups->slot[i].group)
			sh_wire_close_group(cfg, w->groups->slot[i].number, w->groups->slot[i].fd,
					    w->groups->slot[i].group->mgid);
	DL_FOREACH_SAFE(w->groups->first, g, tmp)
	free(g);
	free(w->groups);
	w->groups = NULL;
}
