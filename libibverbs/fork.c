// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Keeps registered memory out of children, page by page: calls madvise() when the first user of a
 * page comes and when the last one goes. fork_lock protects everything here. */

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ibverbs.h"
#include "ranges.h"

static pthread_mutex_t fork_lock = PTHREAD_MUTEX_INITIALIZER;
static struct ranges ranges;
static bool initialised, too_late, huge_pages;
static uintptr_t page_size;

/* Returns 0 or -errno. */
static int advise(uintptr_t start, uintptr_t last, bool covered)
{
	if (!madvise((void *)start, last - start + 1, covered ? MADV_DONTFORK : MADV_DOFORK))
		return 0;

	/* The program has unmapped the memory before it deregistered it. No child can inherit that
	 * memory. */
	if (!covered && errno == ENOMEM)
		return 0;

	return -errno;
}

/* Does the kernel support MADV_DONTFORK? */
static int try_madvise(void)
{
	void *page;
	int ret = 0;

	page = mmap(NULL, page_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return ENOMEM;

	if (madvise(page, page_size, MADV_DONTFORK) || madvise(page, page_size, MADV_DOFORK))
		ret = ENOSYS;

	munmap(page, page_size);
	return ret;
}

int ibv_fork_init(void)
{
	long size;
	int ret = 0;

	pthread_mutex_lock(&fork_lock);

	if (initialised)
		goto out;

	if (too_late) {
		ret = EINVAL;
		goto out;
	}

	size = sysconf(_SC_PAGESIZE);
	if (size <= 0) {
		ret = errno;
		goto out;
	}
	page_size = size;

	ret = try_madvise();
	if (ret)
		goto out;

	if (ranges_init(&ranges)) {
		ret = ENOMEM;
		goto out;
	}

	huge_pages = !!getenv("RDMAV_HUGEPAGES_SAFE");
	initialised = true;
out:
	pthread_mutex_unlock(&fork_lock);
	return ret ? fail(ret) : 0;
}

/* Returns the largest page size of the mappings in [start, last]: madvise() accepts whole pages
 * only. */
static uintptr_t mapped_page_size(uintptr_t start, uintptr_t last)
{
	unsigned long long from, to, kilobytes;
	uintptr_t largest = page_size;
	bool inside = false;
	char *line = NULL;
	size_t size = 0;
	FILE *smaps;

	smaps = fopen("/proc/self/smaps", "re");
	if (!smaps)
		return largest;

	while (getline(&line, &size, smaps) >= 0) {
		if (sscanf(line, "%llx-%llx ", &from, &to) == 2) {
			if (from > last)
				break;
			inside = to > start;
		} else if (inside && sscanf(line, "KernelPageSize: %llu kB", &kilobytes) == 1) {
			if (kilobytes * 1024 > largest)
				largest = kilobytes * 1024;
		}
	}

	free(line);
	fclose(smaps);
	return largest;
}

static int change_range(void *base, size_t size, bool cover)
{
	uintptr_t start, last, mask;
	int ret = 0;

	if (!size)
		return 0;

	pthread_mutex_lock(&fork_lock);

	if (!initialised) {
		too_late = true;
		goto out;
	}

	start = (uintptr_t)base;
	last = start + size - 1;
	if (last < start) {
		ret = -EINVAL;
		goto out;
	}

	mask = (huge_pages ? mapped_page_size(start, last) : page_size) - 1;
	ret = ranges_change(&ranges, start & ~mask, last | mask, cover, advise);
out:
	pthread_mutex_unlock(&fork_lock);
	if (!ret)
		return 0;

	errno = -ret;
	return -1;
}

int ibv_dontfork_range(void *base, size_t size)
{
	return change_range(base, size, true);
}

int ibv_dofork_range(void *base, size_t size)
{
	return change_range(base, size, false);
}
