// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * How far device memory is mapped in this process. Owns pool_end and shared_end of struct sh_dev: a
 * thread writes them under `growing`, and any thread reads them. Maps nothing but device memory,
 * and never over another mapping.
 */
#include <pthread.h>

#include "far.h"
#include "memory.h"
#include "sys.h"

#define STEP  (UINT64_C(32) << 20)
#define TRIES 16

static const struct sh_far part[] = {
	{UINT64_C(0x680000000000), UINT64_C(0x700000000000)},
	{UINT64_C(0x800000000), UINT64_C(0x2000000000)},
};

static pthread_mutex_t growing = PTHREAD_MUTEX_INITIALIZER;
/* Set by sh_memory_map(): how much is mapped from the start, and whether that is all of it. */
static uint64_t mapped;
static bool whole;
static unsigned int forking; /* threads that are in fork() */

static void *map_at(uint64_t want, uint64_t off, uint64_t len, int memfd, int *err)
{
	void *at = sh_mmap_unlocked((void *)want, len, PROT_READ | PROT_WRITE,
				    MAP_SHARED | MAP_NORESERVE | (want ? MAP_FIXED_NOREPLACE : 0),
				    memfd, (off_t)off, err);

	if (at && want && (uintptr_t)at != want) {
		/* a kernel that does not know the flag */
		sh_munmap(at, len);
		*err = -EEXIST;
		at = NULL;
	}
	return at;
}

void *sh_memory_map(int memfd, uint64_t size, uint64_t first, int *err)
{
	uint64_t want;
	void *at;

	whole = false;
	mapped = first;
	for (unsigned int n = 0; n < 2 * TRIES; n++) {
		want = sh_far_pick(&part[n / TRIES], size);
		at = want ? map_at(want, 0, first, memfd, err) : NULL;
		if (at)
			return at;
	}
	whole = true;
	mapped = size;
	return map_at(0, 0, size, memfd, err);
}

/*
 * Makes the mapping that ends at this offset longer. A mapping that grows keeps its properties:
 * mlockall() does not lock it, and core dumps leave it out. The kernel refuses where something else
 * is mapped.
 */
static int lengthen(struct sh_dev *dev, uint64_t end, uint64_t by)
{
	long at = sh_sys(syscall(SYS_mremap, (char *)sh_at(dev, end) - SH_FIRST_PAGE, SH_FIRST_PAGE,
				 SH_FIRST_PAGE + by, 0L));

	return at < 0 && at > -4096 ? -ENOMEM : 0;
}

/*
 * Makes the mapping from `begin` to *end longer: it then ends at `need` at least, and at `most` at
 * most.
 */
static int grow(struct sh_dev *dev, uint64_t begin, uint64_t *end, uint64_t need, uint64_t most)
{
	uint64_t have = __atomic_load_n(end, __ATOMIC_RELAXED), want;
	int err;

	if (need <= have)
		return 0;
	if (whole)
		return -ENOMEM;
	want = begin + (need - begin + STEP - 1) / STEP * STEP;
	if (want > most)
		want = most;
	err = lengthen(dev, have, want - have);
	if (err) {
		want = SH_PAGES(need);
		err = lengthen(dev, have, want - have);
	}
	if (!err)
		__atomic_store_n(end, want, __ATOMIC_RELEASE);
	return err;
}

static bool between(uint64_t off, uint64_t len, uint64_t from, uint64_t to)
{
	return off >= from && off <= to && len <= to - off;
}

/*
 * A thread that forks holds `growing` while the C library takes the locks of the heap. The caller
 * may be in a signal handler that interrupted malloc(), so its thread may hold such a lock. The two
 * threads would wait for each other.
 */
static bool take_growing(void)
{
	for (unsigned int turn = 0; pthread_mutex_trylock(&growing); turn++) {
		if (__atomic_load_n(&forking, __ATOMIC_SEQ_CST))
			return false;
		sh_give_way(turn);
	}
	return true;
}

int sh_memory_extend(struct sh_dev *dev, uint64_t off, uint64_t len)
{
	int err = -EINVAL;

	if (!take_growing())
		return -ENOMEM;
	if (between(off, len, dev->pool_off, dev->shared_off))
		err = grow(dev, dev->pool_off, &dev->pool_end, off + len, dev->shared_off);
	else if (between(off, len, dev->shared_off, dev->size))
		err = grow(dev, dev->shared_off, &dev->shared_end, off + len, dev->size);
	pthread_mutex_unlock(&growing);
	return err;
}

/*
 * Nothing can grow here, for example under valgrind, which keeps memory of its own behind the place
 * that was chosen.
 */
static int map_whole(struct sh_dev *dev, int memfd)
{
	void *at;
	int err;

	sh_memory_drop(dev->inst);
	at = map_at(0, 0, dev->size, memfd, &err);
	if (!at)
		return err;
	whole = true;
	mapped = dev->size;
	dev->inst = at;
	dev->pool_end = dev->shared_off;
	dev->shared_end = dev->size;
	return 0;
}

int sh_memory_begin(struct sh_dev *dev, int memfd)
{
	int err;

	if (whole)
		return 0;
	dev->pool_end = dev->pool_off;
	dev->shared_end = dev->shared_off;
	/* The pool does not have a page of its own yet: it grows out of the tables. */
	err = grow(dev, 0, &mapped, dev->pool_off, dev->pool_off);
	if (!err && map_at((uintptr_t)sh_at(dev, dev->shared_off), dev->shared_off, SH_FIRST_PAGE,
			   memfd, &err))
		dev->shared_end += SH_FIRST_PAGE;
	return err ? map_whole(dev, memfd) : 0;
}

void sh_memory_end(struct sh_dev *dev)
{
	if (whole) {
		sh_munmap(dev->inst, dev->size);
		return;
	}
	sh_munmap(dev->inst, dev->pool_end);
	sh_munmap(sh_at(dev, dev->shared_off), dev->shared_end - dev->shared_off);
}

void sh_memory_drop(void *at)
{
	sh_munmap(at, mapped);
}

bool sh_memory_is_base(const struct sh_dev *dev, uint64_t addr, uint64_t off)
{
	return addr - (uintptr_t)dev->inst == off && off < dev->size;
}

void sh_memory_hold(void)
{
	__atomic_add_fetch(&forking, 1, __ATOMIC_SEQ_CST);
	pthread_mutex_lock(&growing);
}

void sh_memory_let_go(void)
{
	__atomic_sub_fetch(&forking, 1, __ATOMIC_SEQ_CST);
	pthread_mutex_unlock(&growing);
}

void sh_memory_forked(void)
{
	forking = 0;
	growing = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}
