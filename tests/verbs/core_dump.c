// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: the core dump of a program with a device is larger by at most 64 MiB than without,
 * and contains registered buffers, whether their pages are shared or not, and whether descriptors
 * are still open or not.
 * Again: SOFTHCA_QUEUES=copy
 * Quick: half
 */
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "verbs_test.h"

#define MORE (64L << 20)
#define MOST (300L << 20) /* largest core that is written */
#define LEN  (3 * 4096)

static uint8_t in_file[LEN] __attribute__((aligned(4096))) = {1};
static uint8_t *at[3]; /* of buffers; the same in all processes */

static const char *const name[] = {"without", "with", "closed"};

static void die(int with) /* 2: after all descriptors were closed */
{
	struct rlimit limit = {MOST, MOST};
	struct side s;

	CHECK_EQ(mkdir(name[with], 0700), 0);
	CHECK_EQ(chdir(name[with]), 0);
	CHECK_EQ(setrlimit(RLIMIT_CORE, &limit), 0);
	CHECK_EQ(prctl(PR_SET_DUMPABLE, 1), 0);
	if (with) {
		side_open(&s, LEN, 64, 0);
		for (int fd = 3; with == 2 && fd < 2000; fd++)
			if (fd != s.context->cmd_fd)
				(void)syscall(SYS_close, fd);
		for (int i = 0; i < 3; i++)
			CHECK(ibv_reg_mr(s.pd, at[i], LEN, IBV_ACCESS_LOCAL_WRITE));
	}
	for (int i = 0; i < 3; i++)
		fill(at[i], LEN, 100 + i);
	abort();
}

/* Maps the only file in the directory. */
static uint8_t *core_of(const char *dir, size_t *size)
{
	char command[64], file[PATH_MAX];
	struct stat st;
	uint8_t *core;
	FILE *f;
	int fd;

	snprintf(command, sizeof(command), "ls %s/*", dir);
	f = popen(command, "r");
	CHECK(f && fgets(file, sizeof(file), f));
	pclose(f);
	file[strcspn(file, "\n")] = '\0';
	fd = open(file, O_RDONLY);
	CHECK(fd >= 0);
	CHECK_EQ(fstat(fd, &st), 0);
	core = mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	CHECK(core != MAP_FAILED);
	*size = st.st_size;
	return core;
}

/* Returns the page that was at an address, or NULL if the core lacks it. */
static const uint8_t *find(const uint8_t *core, size_t size, const void *page)
{
	const Elf64_Ehdr *e = (const void *)core;
	const Elf64_Phdr *p = (const void *)(core + e->e_phoff);
	uint64_t addr = (uintptr_t)page;

	for (unsigned int i = 0; i < e->e_phnum; i++)
		if (p[i].p_type == PT_LOAD && addr >= p[i].p_vaddr &&
		    addr < p[i].p_vaddr + p[i].p_filesz && p[i].p_offset + p[i].p_filesz <= size)
			return core + p[i].p_offset + (addr - p[i].p_vaddr);
	return NULL;
}

static void check(int with, size_t without)
{
	static uint8_t was[LEN];
	size_t size;
	uint8_t *core = core_of(name[with], &size);

	printf("%zu bytes without a device, %zu with\n", without, size);
	CHECK(size <= without + MORE);
	for (int i = 0; i < 3; i++) {
		for (int j = 0; j < LEN; j += 4096) {
			const uint8_t *page = find(core, size, at[i] + j);

			if (!page)
				fprintf(stderr, "buffer %d, at %p, is not in the core\n", i,
					(void *)(at[i] + j));
			CHECK(page);
			memcpy(was + j, page, 4096);
		}
		CHECK_EQ(differs(was, LEN, 100 + i), -1);
	}
}

int main(void)
{
	char pattern[256] = "", dir[PATH_MAX];
	const char *work = getenv("WORK");
	FILE *f = fopen("/proc/sys/kernel/core_pattern", "r");
	size_t without;

	test_begin();
	CHECK(f && fgets(pattern, sizeof(pattern), f));
	fclose(f);
	if (strchr(pattern, '|') || strchr(pattern, '/')) {
		printf("cores of this system go elsewhere: %s", pattern);
		return 77;
	}
	CHECK(work);
	snprintf(dir, sizeof(dir), "%s/core-XXXXXX", work);
	CHECK(mkdtemp(dir));
	CHECK_EQ(chdir(dir), 0);
	at[0] = in_file;
	at[1] = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	at[2] = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(at[1] != MAP_FAILED && at[2] != MAP_FAILED);
	for (int with = 0; with < 3; with++)
		join_killed(spawn(die, with), SIGABRT);
	core_of(name[0], &without);
	check(1, without);
	check(2, without);
	return 0;
}
