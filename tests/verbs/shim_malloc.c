// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: a program with a malloc() of its own, which opens a file when it is called first,
 * uses a device. jemalloc does so. That file has softhca look for its instance, which must not
 * allocate memory: the allocator has its lock.
 * Quick: half
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "verbs_test.h"

/* A sanitizer has a malloc() of its own, too. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define ROOM (64UL << 20)

static char *memory;
static atomic_size_t used;
static bool begun;
static int opened;

static void *take(size_t align, size_t size)
{
	size_t at, next;

	if (!memory) {
		static const char again[] = "malloc() is called while it begins\n";

		if (begun) {
			(void)!write(STDERR_FILENO, again, sizeof(again) - 1);
			_exit(1);
		}
		begun = true;
		opened = open("/sys/devices/system/cpu/online", O_RDONLY);
		close(opened);
		memory = (char *)syscall(SYS_mmap, NULL, ROOM, PROT_READ | PROT_WRITE,
					 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	}
	at = atomic_load(&used);
	do {
		next = ((at + 16 + align - 1) & ~(align - 1)) + size;
		if (next > ROOM)
			return NULL;
	} while (!atomic_compare_exchange_weak(&used, &at, next));
	*(size_t *)(memory + next - size - sizeof(size_t)) = size;
	return memory + next - size;
}

void *malloc(size_t size)
{
	return take(16, (size + 15) & ~15UL);
}

void free(void *p)
{
	(void)p;
}

/* The memory is never used twice. */
void *calloc(size_t n, size_t size)
{
	return malloc(n * size);
}

void *realloc(void *p, size_t size)
{
	size_t had = p ? ((size_t *)p)[-1] : 0;
	void *to = malloc(size);

	return to && p ? memcpy(to, p, had < size ? had : size) : to;
}

void *memalign(size_t align, size_t size)
{
	return take(align < 16 ? 16 : align, (size + 15) & ~15UL);
}

void *aligned_alloc(size_t align, size_t size)
{
	return memalign(align, size);
}

int posix_memalign(void **to, size_t align, size_t size)
{
	*to = memalign(align, size);
	return *to ? 0 : ENOMEM;
}

/* As the constructor of a library does that begins before softhca's. */
static void first(int argc, char **argv, char **envp)
{
	(void)argc, (void)argv;
	environ = envp;
	free(malloc(1));
}

static __attribute__((used, section(".preinit_array"))) void (*const preinit)(int, char **,
									      char **) = first;
#endif

int main(void)
{
	struct ibv_qp *a, *b;
	struct side s;

	test_begin();
	side_open(&s, 8192, 16, 0);
	a = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	b = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	connect_pair(&s, a, b);
	CHECK_EQ(post_recv1(b, &s, 1, 4096, 64), 0);
	CHECK_EQ(post_send1(a, &s, 1, 0, 64, IBV_SEND_SIGNALED), 0);
	expect_wc(s.scq, 1, IBV_WC_SUCCESS);
	expect_wc(s.rcq, 1, IBV_WC_SUCCESS);
	CHECK_EQ(ibv_destroy_qp(a), 0);
	CHECK_EQ(ibv_destroy_qp(b), 0);
	side_close(&s);
	return 0;
}
