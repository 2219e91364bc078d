// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: madvise() and process_madvise() mean for registered memory that has become device
 * memory what they mean for any memory. Memory keeps the attributes that the program gave it,
 * before the registration or after it.
 * Quick: half
 */
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "shared_memory_test.h"

/* Of glibc 2.36, and not there before. */
ssize_t process_madvise(int pidfd, const struct iovec *iov, size_t n, int advice,
			unsigned int flags) __attribute__((weak));

/* process_madvise() of the process itself, on a kernel that takes all advice there (Linux 6.13). */
static void advising_oneself(struct ibv_mr *mr, uint8_t *mem)
{
	struct iovec both[] = {{mem, PAGE}, {mem + 4 * PAGE, 2 * PAGE}};
	int self = (int)syscall(SYS_pidfd_open, getpid(), 0);

	if (self < 0 || !process_madvise || process_madvise(self, both, 0, MADV_DONTNEED, 0)) {
		printf("# process_madvise() does not take MADV_DONTNEED: that part is left out\n");
		return;
	}
	fill(mem, 8 * PAGE, 83);
	CHECK_EQ(process_madvise(self, both, 2, MADV_DONTNEED, 0), (long)(3 * PAGE));
	for (size_t i = 0; i < PAGE; i++)
		CHECK_EQ(mem[i], 0);
	for (size_t i = 4 * PAGE; i < 6 * PAGE; i++)
		CHECK_EQ(mem[i], 0);
	fill(mem, 8 * PAGE, 84);
	CHECK_EQ(process_madvise(self, both, 2, 12345, 0), -1);
	CHECK_EQ(errno, EINVAL);
	CHECK_EQ(process_madvise(self, (void *)1, 2, MADV_DONTNEED, 0), -1);
	CHECK_EQ(errno, EFAULT);
	CHECK_EQ(differs(mem, 8 * PAGE, 84), -1);
	through(mr, mem, 8 * PAGE, 85);
	close(self);
}

static void advising(void)
{
	uint8_t *mem = pages(8);
	struct ibv_mr *mr;

	fill(mem, 8 * PAGE, 80);
	CHECK(shares(mem, 8 * PAGE, &mr));
	CHECK_EQ(madvise(mem + 2 * PAGE, 2 * PAGE, MADV_REMOVE), -1);
	CHECK_EQ(errno, EINVAL);
	CHECK_EQ(madvise(mem + PAGE, PAGE, MADV_WILLNEED), 0);
	CHECK_EQ(differs(mem, 8 * PAGE, 80), -1);
	CHECK_EQ(madvise(mem + 2 * PAGE, 2 * PAGE, MADV_DONTNEED), 0);
	CHECK_EQ(differs(mem, 2 * PAGE, 80), -1);
	for (size_t i = 0; i < 2 * PAGE; i++)
		CHECK_EQ(mem[2 * PAGE + i], 0);
	through(mr, mem, 8 * PAGE, 81);
	CHECK_EQ(remap_file_pages(mem, PAGE, 0, 1, 0), -1);
	CHECK_EQ(errno, EINVAL);
	/* Locked memory keeps its contents. A sanitizer's mlock() does nothing. */
	CHECK_EQ(syscall(SYS_mlock, mem + 6 * PAGE, PAGE), 0);
	CHECK_EQ(madvise(mem + 6 * PAGE, PAGE, MADV_DONTNEED), -1);
	CHECK_EQ(errno, EINVAL);
	CHECK_EQ(madvise(mem + 6 * PAGE, PAGE, MADV_FREE), -1);
	CHECK_EQ(errno, EINVAL);
	CHECK_EQ(differs(mem, 8 * PAGE, 82), -1);
	CHECK_EQ(syscall(SYS_munlock, mem + 6 * PAGE, PAGE), 0);
	through(mr, mem, 8 * PAGE, 81);
	CHECK_EQ(differs(mem, 8 * PAGE, 82), -1);
	advising_oneself(mr, mem);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	munmap(mem, 8 * PAGE);
}

/* ---- attributes of memory, from before the registration and from after it ---- */

enum { NO_DUMP, WIPE, HUGE, MERGE, KEY, POLICY, ATTRIBUTES };

static int give(uint8_t *mem, int what)
{
	static const int advice[] = {MADV_DONTDUMP, MADV_WIPEONFORK, MADV_HUGEPAGE, MADV_MERGEABLE};
	const unsigned long node0 = 1;
	int key;

	if (what < KEY)
		return madvise(mem, 4 * PAGE, advice[what]);
	if (what == POLICY)
		return (int)syscall(SYS_mbind, mem, 4 * PAGE, 2 /* MPOL_BIND */, &node0, 64UL, 0UL);
	key = pkey_alloc(0, 0);
	return key < 0 ? key : pkey_mprotect(mem, 4 * PAGE, PROT_READ | PROT_WRITE, key);
}

static int policy_of(const void *addr)
{
	int mode = 0;

	(void)syscall(SYS_get_mempolicy, &mode, NULL, 0UL, addr, 2UL /* MPOL_F_ADDR */);
	return mode;
}

/* In a process of its own: a sanitizer may have given its own memory such attributes. */
static void attributes(int late)
{
	char before[512], after[512];
	struct ibv_mr *mr;

	up();
	for (int what = 0; what < ATTRIBUTES; what++) {
		uint8_t *mem = pages(4);
		int policy;

		memset(mem, 1, 4 * PAGE);
		mr = late && what != POLICY ? reg(mem, 4 * PAGE) : NULL;
		if (give(mem, what)) {
			printf("# no attribute %d here: that part is left out\n", what);
			if (mr)
				CHECK_EQ(ibv_dereg_mr(mr), 0);
			continue;
		}
		attributes_of(mem, before, sizeof(before));
		policy = policy_of(mem);
		if (!mr)
			mr = reg(mem, 4 * PAGE);
		through(mr, mem, 4 * PAGE, 3);
		CHECK_EQ(ibv_dereg_mr(mr), 0);
		attributes_of(mem, after, sizeof(after));
		if (strcmp(before, after))
			fprintf(stderr, "attribute %d:\n%s%s", what, before, after);
		CHECK(!strcmp(before, after));
		CHECK_EQ(policy_of(mem), policy);
		CHECK_EQ(differs(mem, 4 * PAGE, 4), -1);
		munmap(mem, 4 * PAGE);
	}
	down();
}

int main(void)
{
	uint64_t used;

	test_begin();
	used = hca_counter("shared_pages_used");
	for (int late = 0; late < 2; late++)
		join(spawn(attributes, late));
	up();
	advising();
	down();
	given_back(used);
	return 0;
}
