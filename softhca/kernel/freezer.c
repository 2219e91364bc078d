// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * See freezer.h. /proc/PID/cgroup has a line for each hierarchy, NUMBER:CONTROLLERS:PATH. That of
 * version 2 has the number 0 and no controllers, and is mounted at the root itself, or at unified/
 * beside those of version 1.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "freezer.h"

const char *freezer_root = "/sys/fs/cgroup";

static bool slurp(const char *path, char *text, size_t room)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, room - 1);

	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return false;
	text[n] = 0;
	return true;
}

/* Does the file of that cgroup contain the word? */
static bool says(const char *below, const char *cgroup, const char *file, const char *word)
{
	char path[4096], text[512];
	int n = snprintf(path, sizeof(path), "%s%s%s/%s", freezer_root, below, cgroup, file);

	return n > 0 && n < (int)sizeof(path) && slurp(path, text, sizeof(text)) &&
	       strstr(text, word);
}

/* Is it one of the names, which commas separate? */
static bool has_name(const char *names, const char *name)
{
	size_t len = strlen(name);

	for (; names; names = strchr(names, ',') ? strchr(names, ',') + 1 : NULL)
		if (!strncmp(names, name, len) && (!names[len] || names[len] == ','))
			return true;
	return false;
}

bool freezer_holds(const char *proc)
{
	char path[256], text[8192], *line, *next, *names, *cgroup;

	snprintf(path, sizeof(path), "%s/cgroup", proc);
	if (!slurp(path, text, sizeof(text)))
		return false;
	for (line = text; line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = 0;
		names = strchr(line, ':');
		cgroup = names ? strchr(names + 1, ':') : NULL;
		if (!cgroup)
			continue;
		*cgroup++ = 0;
		names++;
		if (!*names && (says("", cgroup, "cgroup.events", "frozen 1") ||
				says("/unified", cgroup, "cgroup.events", "frozen 1")))
			return true;
		if (has_name(names, "freezer") &&
		    says("/freezer", cgroup, "freezer.state", "FROZEN"))
			return true;
	}
	return false;
}
