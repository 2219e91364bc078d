// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Pages of the client: makes them present when they are registered, and exchanges them for device
 * memory. Knows nothing of their contents.
 */
#include <sys/resource.h>

#include "softhca/device/memory/dev.h"
#include "softhca/host/memory.h"
#include "softhca/host/sys.h"
#include "softhca/protocol.h"
#include "softhca/shim/attach.h"
#include "maps.h"
#include "marks.h"
#include "memory.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

#define PAGE_MAP_MIN (64 << 10) /* bytes; to copy fewer costs no more than the page map */
#define PM_PRESENT   (UINT64_C(1) << 63)
#define PM_SWAP	     (UINT64_C(1) << 62)
#define PM_GUARD     (UINT64_C(1) << 58)

/* For kernels before 5.14: can every page be read? */
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
		err = sh_madvise(start, end - start,
				 write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
	while (err == -EAGAIN || err == -EINTR);
	if (!err)
		return 0;
	if (err == -EINVAL && sh_madvise((uintptr_t)&here & ~(uintptr_t)(SHIM_PAGE - 1), SHIM_PAGE,
					 MADV_POPULATE_READ) == -EINVAL)
		return look(start, end);
	return -EFAULT;
}

/* ---- the contents of pages ---- */

static int kind(uint64_t entry)
{
	return entry & PM_GUARD ? -1 : entry & (PM_PRESENT | PM_SWAP) ? 1 : 0;
}

/*
 * The descriptor by which device memory can be written as a file is, or -1: under a limit of file
 * sizes the kernel sends SIGXFSZ to a thread that writes behind it.
 */
static int writable_fd(void)
{
	struct rlimit limit;

	if (sh_sys(syscall(SYS_prlimit64, 0, RLIMIT_FSIZE, NULL, &limit)) ||
	    limit.rlim_cur != RLIM_INFINITY)
		return -1;
	return shim_memory_fd();
}

/*
 * Copies a run of pages that have contents. As a file, device memory takes half the time that it
 * takes through a mapping, whose pages the kernel would clear and map first.
 */
static int copy_run(int memfd, uint64_t shm_off, uint64_t from, uint64_t len)
{
	while (memfd >= 0 && len) {
		long n = sh_sys(syscall(SYS_pwrite64, memfd, from, len, shm_off));

		if (n <= 0)
			break;
		shm_off += (uint64_t)n;
		from += (uint64_t)n;
		len -= (uint64_t)n;
	}
	return sh_peek(sh_at(&shim_dev, shm_off), from, len);
}

/* Copies the pages of n entries of the page map, in runs of one kind. */
static int copy_runs(int memfd, uint64_t shm_off, uint64_t from, const uint64_t *entry, size_t n)
{
	int err = 0;

	for (size_t i = 0, end; !err && i < n; i = end) {
		for (end = i + 1; end < n && kind(entry[end]) == kind(entry[i]); end++)
			;
		if (kind(entry[i]) < 0)
			err = -EFAULT;
		else if (kind(entry[i]) > 0)
			err = copy_run(memfd, shm_off + i * SHIM_PAGE, from + i * SHIM_PAGE,
				       (end - i) * SHIM_PAGE);
	}
	return err;
}

void shim_copy_open(struct shim_copy *c, uint64_t len)
{
	c->pagemap = len >= PAGE_MAP_MIN ? pagemap_open() : -1;
	c->memory = c->pagemap < 0 ? -1 : writable_fd();
}

void shim_copy_close(const struct shim_copy *c)
{
	if (c->pagemap >= 0)
		sh_close(c->pagemap);
}

int shim_copy_pages(const struct shim_copy *c, uint64_t shm_off, uint64_t from, uint64_t len)
{
	uint64_t entry[PAGEMAP_MOST];
	int err = 0;

	while (c->pagemap >= 0 && len && !err) {
		size_t n = pagemap_read(c->pagemap, from, len, entry);

		if (!n)
			break;
		err = copy_runs(c->memory, shm_off, from, entry, n);
		shm_off += n * SHIM_PAGE;
		from += n * SHIM_PAGE;
		len -= n * SHIM_PAGE;
	}
	return err ? err : copy_run(c->memory, shm_off, from, len);
}

/* ---- queue pages ---- */

/* Maps the same pages once more, which is what an old length of 0 asks for. */
static int map_again(const struct sh_action *action)
{
	long at = sh_sys(syscall(SYS_mremap, sh_at(&shim_dev, action->shm_off), 0UL, action->len,
				 MREMAP_MAYMOVE | MREMAP_FIXED, action->uaddr));

	if (at < 0 && at > -4096)
		return (int)at;
	/* This mapping is the program's, so core dumps have it. */
	(void)sh_madvise(action->uaddr, action->len, MADV_DODUMP);
	return 0;
}

int shim_map_action(const struct sh_action *action)
{
	uint64_t end = action->uaddr + action->len;
	int fd = shim_memory_fd(), err;

	/*
	 * Device code in this process reaches the pages through the process's own mapping of device
	 * memory.
	 */
	err = sh_memory_extend(&shim_dev, action->shm_off, action->len);
	if (err)
		return err;
	if (fd >= 0)
		sh_mmap((void *)(uintptr_t)action->uaddr, action->len, PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd, (off_t)action->shm_off, &err);
	else
		err = map_again(action);
	/* If this fails, a child gets a copy that the program did not want it to have. */
	if (!err)
		marks_give(action->uaddr, end, action->uaddr, MARK_BIT(MARK_DONTFORK));
	return err;
}

bool shim_region_mapped(const struct mapping *m)
{
	return shim_memory_is(m->dev, m->ino) && m->off >= shim_dev.shared_off;
}

int shim_fresh_pages(uint64_t addr, uint64_t len, int prot)
{
	int err = marks_fresh(addr, addr + len, prot);

	if (!err)
		marks_give(addr, addr + len, addr, MARKS_ALL);
	return err;
}

/*
 * An old length of 0 asks for a second mapping of the page, which the kernel refuses for private
 * memory.
 */
bool shim_is_shared(uint64_t addr)
{
	long at = sh_sys(syscall(SYS_mremap, addr, 0UL, SHIM_PAGE, MREMAP_MAYMOVE));

	if (at < 0 && at > -4096)
		return false;
	sh_munmap((void *)at, SHIM_PAGE);
	return true;
}
