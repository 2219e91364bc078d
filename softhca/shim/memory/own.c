// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory that the application has mapped for itself. The C library never has anything of its own
 * there: its heap, and its threads' stacks and descriptors, come from calls that do not pass
 * through here. So the C library uses nothing of it in a forked child before the shim's handler
 * runs, and such memory can be device memory across fork() and beside threads. This holds as long
 * as malloc() is the C library's: another heap maps its memory as an application does.
 *
 * Owns the table of such ranges. mmap() may be called in a signal handler, so no thread waits for
 * the lock. A thread that would remove a range and does not get the lock sets `lost`, and the table
 * begins anew. To know too little is safe.
 *
 * Libraries that watch mappings themselves, such as UCX and Open MPI, overwrite the first
 * instructions of these functions and make the system calls on their own: by syscall(), which
 * reports here (by_number.c), or in another way, so that what they unmap is not heard of and the C
 * library may get the addresses. If they overwrite the C library's functions, its own calls come
 * here as well. own_blind() tells.
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

#include "own.h"
#include "ranges.h"
#include "softhca/shim/signals/handlers.h"

#define MOST 1024

static struct ranges table;
static atomic_flag busy = ATOMIC_FLAG_INIT;
static atomic_bool lost;
static bool usual_heap;

#define FIRST 16 /* bytes of a function; a jump to anywhere takes 12 to 16 */

/* What the code of functions came to when calls of them were known to report here, or not to. */
static atomic_uint_least64_t ours, libcs;
static atomic_bool blind;

/* A handler that jumped away would keep the lock, and all memory private from then on. */
static bool lock(void)
{
	shim_handlers_wait();
	if (atomic_flag_test_and_set(&busy)) {
		shim_handlers_go_on();
		return false;
	}
	if (atomic_exchange(&lost, false))
		table.count = 0;
	return true;
}

static void unlock(void)
{
	atomic_flag_clear(&busy);
	shim_handlers_go_on();
}

/* A number that tells the code from what may be written over it: FNV-1a, by words. */
static uint64_t code_of(void *(*function)(int i))
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (int i = 0; i < OWN_SOURCES; i++) {
		uint64_t word[FIRST / sizeof(uint64_t)];

		memcpy(word, function(i), FIRST);
		for (size_t w = 0; w < FIRST / sizeof(uint64_t); w++)
			hash = (hash ^ word[w]) * UINT64_C(0x100000001b3);
	}
	return hash;
}

/* Is malloc() in the same file as a function that only the C library has? */
void own_init(void)
{
	void *heap = dlsym(RTLD_DEFAULT, "malloc"),
	     *libc = dlsym(RTLD_DEFAULT, "gnu_get_libc_version");
	Dl_info a, b;

	usual_heap =
		heap && libc && dladdr(heap, &a) && dladdr(libc, &b) && a.dli_fbase == b.dli_fbase;
	atomic_store(&ours, code_of(own_source));
	atomic_store(&libcs, code_of(own_libc_source));
}

static bool libc_changed(void)
{
	return atomic_load(&libcs) != code_of(own_libc_source);
}

bool own_blind(void)
{
	return atomic_load(&blind) || atomic_load(&ours) != code_of(own_source) || libc_changed();
}

/* What was unmapped unheard of stays unknown, even if the functions are restored. */
void own_look(void)
{
	uint64_t now = code_of(own_source);

	if (!usual_heap || atomic_load(&blind) || (now == atomic_load(&ours) && !libc_changed()))
		return;
	if (!libc_changed() && own_hears())
		atomic_store(&ours, now);
	else
		atomic_store(&blind, true);
}

void own_forked(void)
{
	/* If the lock is taken, another thread of the parent was in the middle of a change. */
	if (atomic_flag_test_and_set(&busy))
		table.count = 0;
	atomic_flag_clear(&busy);
}

void own_mapped(uint64_t addr, uint64_t len)
{
	if (!usual_heap || !lock())
		return;
	/* The table may still have what the program has unmapped here by a direct system call. */
	if (!ranges_remove(&table, addr, len))
		table.count = 0;
	if (table.count < MOST && ranges_room(&table))
		ranges_join(&table, (struct range){addr, len, 0});
	unlock();
}

void own_unmapped(uint64_t addr, uint64_t len)
{
	if (addr >= __atomic_load_n(&table.highest, __ATOMIC_ACQUIRE) ||
	    addr + len <= __atomic_load_n(&table.lowest, __ATOMIC_ACQUIRE))
		return;
	if (!lock()) {
		atomic_store(&lost, true);
		return;
	}
	if (!ranges_remove(&table, addr, len))
		table.count = 0;
	unlock();
}

bool own_has(uint64_t addr, uint64_t len)
{
	bool has = false;
	size_t i;

	if (!lock())
		return false;
	i = ranges_find(&table, addr);
	if (i < table.count)
		has = table.at[i].uaddr <= addr &&
		      addr + len <= table.at[i].uaddr + table.at[i].len;
	unlock();
	return has;
}
