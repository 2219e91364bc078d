// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: libraries that watch mappings overwrite the functions which change them, as UCX and Open MPI do. Where they
 * then call the kernel by syscall(), the preloaded library knows the mappings as before: memory beside threads is shared,
 * and calls mean for it what they mean for any memory. Where they do so in another way, overwrite the C library's
 * functions, or bring a heap of their own, memory beside threads stays private. syscall() is what it is without softhca.
 *
 * Quick: half
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "shared_memory_test.h"

#ifdef __x86_64__

static pthread_barrier_t steps;

static void *two_steps(void *arg)
{
	pthread_barrier_wait(&steps);
	pthread_barrier_wait(&steps);
	return arg;
}

static void *nothing(void *arg)
{
	return arg;
}

/* ---- what such libraries put there ---- */

static int unmap_heard(void *addr, size_t len)
{
	return (int)syscall(SYS_munmap, addr, len);
}

static void *map_heard(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	return (void *)syscall(SYS_mmap, addr, len, prot, flags, fd, off);
}

static void *move_heard(void *old, size_t old_len, size_t len, int flags, void *where)
{
	return (void *)syscall(SYS_mremap, old, old_len, len, flags, where);
}

static int advise_heard(void *addr, size_t len, int advice)
{
	return (int)syscall(SYS_madvise, addr, len, advice);
}

static int protect_heard(void *addr, size_t len, int prot)
{
	return (int)syscall(SYS_mprotect, addr, len, prot);
}

static int unmap_unheard(void *addr, size_t len)
{
	return (int)unseen_call(SYS_munmap, (long)addr, (long)len, 0, 0, 0, 0);
}

/* Puts a jump over the first instructions of a function. */
static void take_over(void *function, void *to)
{
	static const unsigned char load[] = {0x49, 0xbb}, jump[] = {0x41, 0xff, 0xe3};
	char *entry = function, *page = entry - (uintptr_t)entry % PAGE;

	CHECK_EQ(unseen_call(SYS_mprotect, (long)page, 2 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
			     0, 0, 0),
		 0);
	memcpy(entry, load, 2); /* mov $to, %r11 */
	memcpy(entry + 2, &to, 8);
	memcpy(entry + 10, jump, 3); /* jmp *%r11 */
	CHECK_EQ(unseen_call(SYS_mprotect, (long)page, 2 * PAGE, PROT_READ | PROT_EXEC, 0, 0, 0),
		 0);
}

/* ---- beside a thread ---- */

static pthread_t thread;

static void begin(void)
{
	up();
	pthread_barrier_init(&steps, NULL, 2);
	CHECK_EQ(pthread_create(&thread, NULL, two_steps, NULL), 0);
	pthread_barrier_wait(&steps);
}

static void end(void)
{
	pthread_t another;

	CHECK_EQ(pthread_create(&another, NULL, nothing, NULL), 0);
	CHECK_EQ(pthread_join(another, NULL), 0);
	pthread_barrier_wait(&steps);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	down();
}

/* As the C library would for its heap, without any function of the program's. */
static uint8_t *map_unseen(void *where, size_t n)
{
	long at = unseen_call(SYS_mmap, (long)where, (long)(n * PAGE), PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

	CHECK(at == (long)where);
	return (uint8_t *)at;
}

/*
 * Memory that was unmapped unseen may be the C library's by now, so nothing becomes shared beside
 * threads any more. What is shared stays so, and threads can be created.
 */
static void unheard(int arg)
{
	uint8_t *early, *pool, *late, *heap;
	struct ibv_mr *early_mr, *late_mr, *heap_mr;

	(void)arg;
	up();
	early = pages(16);
	pool = pages(16);
	late = pages(16);
	CHECK(shares(early, 16 * PAGE, &early_mr));
	pthread_barrier_init(&steps, NULL, 2);
	CHECK_EQ(pthread_create(&thread, NULL, two_steps, NULL), 0);
	pthread_barrier_wait(&steps);
	take_over(dlsym(RTLD_DEFAULT, "munmap"), unmap_unheard);
	CHECK_EQ(munmap(pool, 16 * PAGE), 0);
	heap = map_unseen(pool, 16);
	CHECK(!shares(heap, 16 * PAGE, &heap_mr));
	CHECK(!shares(late, 16 * PAGE, &late_mr));
	through(early_mr, early, 8 * PAGE, 131);
	through(heap_mr, heap, 8 * PAGE, 132);
	through(late_mr, late, 8 * PAGE, 133);
	CHECK_EQ(ibv_dereg_mr(early_mr), 0);
	CHECK_EQ(ibv_dereg_mr(heap_mr), 0);
	CHECK_EQ(ibv_dereg_mr(late_mr), 0);
	CHECK_EQ(differs(early, 8 * PAGE, 132), -1);
	end();
}

/* The same where all goes on by syscall(): what is unmapped and mapped since is known. */
static void heard(int arg)
{
	uint8_t *pool, *first, *heap, *moved;
	struct ibv_mr *mr, *heap_mr;

	(void)arg;
	begin();
	pool = pages(16);
	take_over(dlsym(RTLD_DEFAULT, "munmap"), unmap_heard);
	take_over(dlsym(RTLD_DEFAULT, "mmap"), map_heard);
	take_over(dlsym(RTLD_DEFAULT, "mremap"), move_heard);
	take_over(dlsym(RTLD_DEFAULT, "madvise"), advise_heard);
	take_over(dlsym(RTLD_DEFAULT, "mprotect"), protect_heard);
	CHECK(shares(pool, 16 * PAGE, &mr));
	through(mr, pool, 8 * PAGE, 1);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	CHECK_EQ(munmap(pool, 16 * PAGE), 0);
	heap = map_unseen(pool, 16);
	CHECK(!shares(heap, 16 * PAGE, &heap_mr));
	CHECK_EQ(ibv_dereg_mr(heap_mr), 0);

	first = pages(16);
	CHECK(shares(first, 16 * PAGE, &mr));
	fill(first, 16 * PAGE, 2);
	/* It is zeroes for the process and the device, or the call did nothing to device memory. */
	CHECK_EQ(madvise(first, 4 * PAGE, MADV_DONTNEED), 0);
	for (size_t i = 0; i < 4 * PAGE; i++)
		CHECK_EQ(first[i], 0);
	through(mr, first, 8 * PAGE, 3);
	CHECK_EQ(mprotect(first, PAGE, PROT_NONE), 0);
	refused(mr, first, 100, IBV_WC_REM_ACCESS_ERR);
	CHECK_EQ(mprotect(first, PAGE, PROT_READ | PROT_WRITE), 0);
	fill(first + 8 * PAGE, 8 * PAGE, 4);
	/* Device memory would grow into that of others. */
	moved = mremap(first + 8 * PAGE, 8 * PAGE, 32 * PAGE, MREMAP_MAYMOVE);
	CHECK(moved != MAP_FAILED);
	CHECK_EQ(differs(moved, 8 * PAGE, 4), -1);
	for (size_t i = 8 * PAGE; i < 32 * PAGE; i++)
		CHECK_EQ(moved[i], 0);
	CHECK_EQ(munmap(first, 8 * PAGE), 0);
	refused(mr, first + 4 * PAGE, 100, IBV_WC_REM_ACCESS_ERR);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	CHECK_EQ(munmap(moved, 32 * PAGE), 0);
	end();
}

/* A heap that takes its memory as an application does, as UCX can put there. */
static void *other_malloc(size_t len)
{
	static char small[1 << 20];
	static size_t used;
	void *at = small + used;

	if (len >= PAGE)
		return map_heard(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
				 0);
	used += (len + 15) & ~(size_t)15;
	return used <= sizeof(small) ? at : NULL;
}

static void no_free(void *at)
{
	(void)at;
}

static void other_heap(int arg)
{
	uint8_t *pool;
	struct ibv_mr *mr;

	(void)arg;
	begin();
	pool = pages(16);
	take_over(dlsym(RTLD_DEFAULT, "munmap"), unmap_heard);
	take_over(dlsym(RTLD_DEFAULT, "malloc"), other_malloc);
	take_over(dlsym(RTLD_DEFAULT, "free"), no_free);
	CHECK(!shares(pool, 16 * PAGE, &mr));
	through(mr, pool, 8 * PAGE, 1);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	end();
}

/* The C library calls its own function, whoever has overwritten it: for its heap, too. */
static void libc_heard(int arg)
{
	void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
	uint8_t *chunk;
	struct ibv_mr *mr;

	(void)arg;
	CHECK(libc);
	begin();
	take_over(dlsym(libc, "mmap"), map_heard);
	chunk = malloc(1 << 20);
	CHECK(chunk);
	CHECK(!shares(chunk + 8 * PAGE - (uintptr_t)chunk % PAGE, 16 * PAGE, &mr));
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	free(chunk);
	CHECK_EQ(dlclose(libc), 0);
	end();
}

#endif

/* ---- syscall() ---- */

static void results(void)
{
	void *at;

	errno = 7;
	CHECK_EQ(syscall(SYS_getpid), getpid());
	CHECK_EQ(errno, 7);
	CHECK_EQ(syscall(SYS_close, -1), -1);
	CHECK_EQ(errno, EBADF);
	CHECK_EQ(syscall(100000), -1);
	CHECK_EQ(errno, ENOSYS);
	/* All six arguments arrive. */
	at = (void *)syscall(SYS_mmap, NULL, 4 * PAGE, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0L);
	CHECK(at != MAP_FAILED);
	memset(at, 1, 4 * PAGE);
	CHECK_EQ(syscall(SYS_mmap, at, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 1L), -1);
	CHECK_EQ(errno, EINVAL); /* the offset */
	CHECK_EQ(syscall(SYS_mprotect, at, PAGE, PROT_READ), 0);
	CHECK_EQ(syscall(SYS_mprotect, (char *)at + 1, PAGE, PROT_READ), -1);
	CHECK_EQ(errno, EINVAL);
	CHECK_EQ(syscall(SYS_madvise, at, 2 * PAGE, MADV_DONTNEED), 0);
	CHECK_EQ(((char *)at)[PAGE], 0);
	CHECK_EQ(syscall(SYS_munmap, at, 4 * PAGE), 0);
	CHECK_EQ(syscall(SYS_madvise, at, PAGE, MADV_NORMAL), -1);
	CHECK_EQ(errno, ENOMEM);
	CHECK_EQ(syscall(SYS_process_vm_readv, getpid(), NULL, 0L, NULL, 0L, 1L), -1);
	CHECK_EQ(errno, EINVAL); /* the sixth */
}

/* A child made by number returns from the same call as its parent. */
static void children(void)
{
	int status;
	long pid = syscall(SYS_clone, (long)SIGCHLD, 0L, 0L, 0L, 0L);

	CHECK(pid >= 0);
	if (!pid)
		_exit(3);
	CHECK_EQ(waitpid((pid_t)pid, &status, 0), pid);
	CHECK_EQ(WEXITSTATUS(status), 3);
}

int main(void)
{
	uint64_t used;

	test_begin();
	results();
	children();
	used = hca_counter("shared_pages_used");
#ifdef __x86_64__
	/* The C library's functions are a sanitizer's there. */
	if (!SANITIZED) {
		join(spawn(unheard, 0));
		if (privileged())
			join(spawn(heard, 0));
		else
			printf("# userfaultfd() takes a privilege: that part is left out\n");
		join(spawn(other_heap, 0));
		join(spawn(libc_heard, 0));
	}
#endif
	given_back(used);
	return 0;
}
