// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Pages of the client: made present when they are registered, exchanged for device memory when they are queues, and
 * made private again in a forked child. Knows nothing of what they hold.
 */
#include <stdio.h>
#include <string.h>

#include "shim.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

EXPORT int madvise(void *addr, size_t len, int advice)
{
	int ret = REAL(madvise)(addr, len, advice);

	if (!ret)
		shim_dontfork_note((uintptr_t)addr, len, advice);
	return ret;
}

/* For kernels before 5.14: is there something on every page? */
static int look(uint64_t addr, uint64_t end)
{
	for (; addr < end; addr += SHIM_PAGE) {
		char byte;

		if (sh_peek(&byte, addr, 1))
			return -EFAULT;
	}
	return 0;
}

int shim_populate(uint64_t addr, uint64_t len, bool write)
{
	uint64_t start = addr & ~(uint64_t)(SHIM_PAGE - 1);
	uint64_t end = (addr + len + SHIM_PAGE - 1) & ~(uint64_t)(SHIM_PAGE - 1);
	char here;
	int err;

	if (!len)
		return 0;
	if (end <= start)
		return -EFAULT;
	do
		err = sh_madvise(start, end - start, write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
	while (err == -EAGAIN || err == -EINTR);
	if (!err)
		return 0;
	if (err == -EINVAL && sh_madvise((uintptr_t)&here & ~(uintptr_t)(SHIM_PAGE - 1), SHIM_PAGE,
					 MADV_POPULATE_READ) == -EINVAL)
		return look(start, end);
	return -EFAULT;
}

/* ---- /proc/self ---- */

struct lines {
	int fd;
	size_t have, at;
	char buf[4096];
};

/* The next line without its newline, cut to the buffer; NULL at the end. */
static char *next_line(struct lines *l)
{
	for (;;) {
		char *line = l->buf + l->at, *nl = memchr(line, '\n', l->have - l->at);
		long got;

		if (nl) {
			*nl = '\0';
			l->at = (size_t)(nl + 1 - l->buf);
			return line;
		}
		memmove(l->buf, line, l->have - l->at);
		l->have -= l->at;
		l->at = 0;
		if (l->have == sizeof(l->buf))
			l->have = 0;
		got = sh_read(l->fd, l->buf + l->have, sizeof(l->buf) - l->have);
		if (got <= 0)
			return NULL;
		l->have += (size_t)got;
	}
}

static bool marked_dontfork(uint64_t addr)
{
	struct lines l = {.fd = -1};
	bool inside = false, marked = false;
	int known = shim_dontfork_known(addr);
	unsigned long start, end;
	char *line;

	if (known >= 0)
		return known;
	l.fd = sh_open("/proc/self/smaps", O_RDONLY | O_CLOEXEC);
	if (l.fd < 0)
		return false;
	while ((line = next_line(&l))) {
		if (sscanf(line, "%lx-%lx ", &start, &end) == 2) {
			inside = addr >= start && addr < end;
		} else if (inside && !strncmp(line, "VmFlags:", 8)) {
			marked = strstr(line, " dc") != NULL;
			break;
		}
	}
	sh_close(l.fd);
	return marked;
}

/* ---- queue pages ---- */

/* A second mapping of the same pages: that is what an old length of 0 asks for. */
static int map_again(const struct sh_action *action)
{
	long at = sh_sys(syscall(SYS_mremap, sh_at(&shim_dev, action->shm_off), 0UL, action->len,
				 MREMAP_MAYMOVE | MREMAP_FIXED, action->uaddr));

	return at < 0 && at > -4096 ? (int)at : 0;
}

int shim_map_action(const struct sh_action *action)
{
	bool dontfork = marked_dontfork(action->uaddr);
	int fd = shim_memory_fd(), err;

	if (action->shm_off > shim_dev.inst->size || action->len > shim_dev.inst->size - action->shm_off)
		return -EINVAL;
	if (fd >= 0)
		sh_mmap((void *)(uintptr_t)action->uaddr, action->len, PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd, (off_t)action->shm_off, &err);
	else
		err = map_again(action);
	if (!err && dontfork)
		err = sh_madvise(action->uaddr, action->len, MADV_DONTFORK);
	return err;
}

/* Copy a range of device memory that is mapped over pages of the parent's queues into pages of our own. */
static void make_private(uint64_t start, uint64_t len, uint64_t off)
{
	const char *from = sh_at(&shim_dev, off);
	int err;

	if (off > shim_dev.inst->size || len > shim_dev.inst->size - off)
		return;
	if (sh_mmap((void *)start, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0, &err))
		memcpy((void *)start, from, len);
}

/*
 * In the child: queue pages are the parent's and the device's. What pinned private memory is to a child, a copy, they
 * become again. The pages are found by what is mapped now, not by what once was.
 */
void shim_memory_forked(void)
{
	uint64_t own = (uintptr_t)shim_dev.inst;
	struct lines l = {.fd = sh_open("/proc/self/maps", O_RDONLY | O_CLOEXEC)};
	unsigned long start, end, off, inode, own_inode = 0;
	unsigned int major, minor, own_major = 0, own_minor = 0;
	char *line;

	if (l.fd < 0)
		return;
	while ((line = next_line(&l))) {
		if (sscanf(line, "%lx-%lx %*s %lx %x:%x %lu", &start, &end, &off, &major, &minor, &inode) == 6 &&
		    start == own) {
			own_major = major;
			own_minor = minor;
			own_inode = inode;
			break;
		}
	}
	sh_close(l.fd);
	l = (struct lines){.fd = sh_open("/proc/self/maps", O_RDONLY | O_CLOEXEC)};
	if (l.fd < 0)
		return;
	while (own_inode && (line = next_line(&l))) {
		if (sscanf(line, "%lx-%lx %*s %lx %x:%x %lu", &start, &end, &off, &major, &minor, &inode) == 6 &&
		    inode == own_inode && major == own_major && minor == own_minor &&
		    (start < own || start >= own + shim_dev.inst->size))
			make_private(start, end - start, off);
	}
	sh_close(l.fd);
}
