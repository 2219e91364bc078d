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
 * instructions of these functions, or the slots from which others call them, and make the system
 * calls on their own. What they unmap does not come here any more, and the C library may get the
 * addresses. own_blind() tells.
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

#include "own.h"
#include "ranges.h"
#include "slots.h"
#include "softhca/shim/signals/handlers.h"

#define MOST 1024

static struct ranges table;
static atomic_flag busy = ATOMIC_FLAG_INIT;
static atomic_bool lost;
static bool usual_heap;

#define FIRST 16 /* bytes of a function; a jump to anywhere takes 12 to 16 */

static struct {
	char first[FIRST];
} before[OWN_SOURCES];
static atomic_bool overwritten;

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

/* Is malloc() in the same file as a function that only the C library has? */
void own_init(void)
{
	void *heap = dlsym(RTLD_DEFAULT, "malloc"),
	     *libc = dlsym(RTLD_DEFAULT, "gnu_get_libc_version");
	Dl_info a, b;

	usual_heap =
		heap && libc && dladdr(heap, &a) && dladdr(libc, &b) && a.dli_fbase == b.dli_fbase;
	for (int i = 0; i < OWN_SOURCES; i++)
		memcpy(before[i].first, own_source(i), FIRST);
}

/* What was unmapped unseen stays unknown, even if the functions are restored. */
bool own_blind(void)
{
	static const char *const name[OWN_SOURCES] = {"munmap", "mmap", "mremap"};
	const void *source[OWN_SOURCES];

	for (int i = 0; i < OWN_SOURCES; i++)
		source[i] = own_source(i);
	for (int i = 0; i < OWN_SOURCES; i++)
		if (memcmp(before[i].first, own_source(i), FIRST))
			atomic_store(&overwritten, true);
	if (!atomic_load(&overwritten) && slots_lead_elsewhere(name, source, OWN_SOURCES))
		atomic_store(&overwritten, true);
	return atomic_load(&overwritten);
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
