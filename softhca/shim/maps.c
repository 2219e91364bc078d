// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Reads /proc/self/maps line by line, and the page map. Allocates no memory. A line longer than the
 * buffer loses its end, which is the name.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "maps.h"
#include "softhca/host/sys.h"

char *maps_line(struct maps *m)
{
	for (;;) {
		char *line = m->buf + m->at, *nl = memchr(line, '\n', m->have - m->at);
		long got;

		if (nl) {
			*nl = '\0';
			m->at = (size_t)(nl + 1 - m->buf);
			return line;
		}
		memmove(m->buf, line, m->have - m->at);
		m->have -= m->at;
		m->at = 0;
		if (m->have == sizeof(m->buf))
			m->have = 0;
		got = sh_read(m->fd, m->buf + m->have, sizeof(m->buf) - m->have);
		if (got <= 0)
			return NULL;
		m->have += (size_t)got;
	}
}

int maps_open(struct maps *m)
{
	m->have = m->at = 0;
	m->fd = sh_open_aside("/proc/thread-self/maps", O_RDONLY);
	return m->fd < 0 ? m->fd : 0;
}

bool maps_next(struct maps *m, struct mapping *out)
{
	unsigned long start, end, off, ino;
	unsigned int major, minor;
	const char *line;

	while ((line = maps_line(m))) {
		if (sscanf(line, "%lx-%lx %4s %lx %x:%x %lu", &start, &end, out->perms, &off,
			   &major, &minor, &ino) != 7)
			continue;
		out->start = start;
		out->end = end;
		out->off = off;
		out->dev = makedev(major, minor);
		out->ino = ino;
		out->stack = strstr(line, "[stack") != NULL;
		out->rings = strstr(line, "[io_uring]") || strstr(line, "/[aio]");
		return true;
	}
	return false;
}

void maps_close(struct maps *m)
{
	sh_close(m->fd);
}

int pagemap_open(void)
{
	return sh_open_aside("/proc/thread-self/pagemap", O_RDONLY);
}

size_t pagemap_read(int fd, uint64_t addr, uint64_t len, uint64_t entry[PAGEMAP_MOST])
{
	size_t want = len / SH_FIRST_PAGE < PAGEMAP_MOST ? len / SH_FIRST_PAGE : PAGEMAP_MOST;
	long got = sh_sys(syscall(SYS_pread64, fd, entry, want * sizeof(*entry),
				  addr / SH_FIRST_PAGE * sizeof(*entry)));

	return got < 0 ? 0 : (size_t)got / sizeof(*entry);
}
