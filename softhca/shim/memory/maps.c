// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Reads /proc/self/maps line by line, and the page map. Allocates no memory. A line longer than the
 * buffer loses its end, which is the name.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "maps.h"
#include "softhca/host/descriptors.h"
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
	m->fd = sh_open_own("/proc/thread-self/maps", O_RDONLY);
	return m->fd < 0 ? m->fd : 0;
}

/*
 * Takes a number and the character that ends it off the text. False: there is no such number. By
 * hand, because scanf() took a fifth of the time of a registration, in which all lines are read.
 */
static bool take_number(const char **at, unsigned int base, char end, uint64_t *value)
{
	const char *p = *at;
	uint64_t v = 0;

	for (;; p++) {
		unsigned int digit =
			*p <= '9' ? (unsigned char)(*p - '0') : (unsigned char)(*p - 'a' + 10);

		if (digit >= base)
			break;
		v = v * base + digit;
	}
	if (p == *at || *p != end)
		return false;
	*at = p + 1;
	*value = v;
	return true;
}

static bool take_perms(const char **at, char perms[5])
{
	if (strnlen(*at, 5) < 5 || (*at)[4] != ' ')
		return false;
	memcpy(perms, *at, 4);
	perms[4] = '\0';
	*at += 5;
	return true;
}

bool maps_next(struct maps *m, struct mapping *out)
{
	uint64_t major, minor;
	const char *line;

	while ((line = maps_line(m))) {
		if (!take_number(&line, 16, '-', &out->start) ||
		    !take_number(&line, 16, ' ', &out->end) || !take_perms(&line, out->perms) ||
		    !take_number(&line, 16, ' ', &out->off) ||
		    !take_number(&line, 16, ':', &major) || !take_number(&line, 16, ' ', &minor) ||
		    !take_number(&line, 10, ' ', &out->ino))
			continue;
		out->dev = makedev((unsigned int)major, (unsigned int)minor);
		/* What is left is the name. */
		out->stack = strstr(line, "[stack") != NULL;
		out->uring = strstr(line, "[io_uring]") != NULL;
		out->rings = out->uring || strstr(line, "/[aio]");
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
	return sh_open_own("/proc/thread-self/pagemap", O_RDONLY);
}

size_t pagemap_read(int fd, uint64_t addr, uint64_t len, uint64_t entry[PAGEMAP_MOST])
{
	size_t want = len / SH_FIRST_PAGE < PAGEMAP_MOST ? len / SH_FIRST_PAGE : PAGEMAP_MOST;
	long got = sh_sys(syscall(SYS_pread64, fd, entry, want * sizeof(*entry),
				  addr / SH_FIRST_PAGE * sizeof(*entry)));

	return got < 0 ? 0 : (size_t)got / sizeof(*entry);
}

int maps_copy(void *to, uint64_t from, size_t len)
{
	int err = sh_peek(to, from, len), fd;
	size_t done = 0;

	if (err != -EFAULT)
		return err;
	fd = sh_open_own("/proc/thread-self/mem", O_RDONLY);
	if (fd < 0)
		return err;
	while (done < len) {
		long got = sh_sys(
			syscall(SYS_pread64, fd, (char *)to + done, len - done, from + done));

		if (got <= 0)
			break;
		done += (size_t)got;
	}
	sh_close(fd);
	return done == len ? 0 : err;
}

int maps_protect_as(uint64_t to, size_t len, uint64_t from, size_t from_len)
{
	int prot = PROT_READ | PROT_WRITE, err = 0;
	uint64_t at = to, end = to + len;
	struct mapping m;
	struct maps maps;

	if (maps_open(&maps))
		return 0;
	while (!err && maps_next(&maps, &m) && m.start < from + from_len) {
		uint64_t until = to + (m.end - from);

		if (m.end <= from)
			continue;
		if (m.end >= from + from_len || until > end)
			until = end;
		prot = mapping_prot(&m);
		if (until > at && prot != (PROT_READ | PROT_WRITE))
			err = (int)sh_sys(syscall(SYS_mprotect, at, until - at, (long)prot));
		at = until;
	}
	maps_close(&maps);
	return err;
}
