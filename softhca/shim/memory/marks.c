// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Attributes that a program has given its memory. An exchange of pages makes a new mapping, which
 * has none of them. The kernel tells what a mapping has only in /proc/self/smaps (smaps.c). So this
 * file keeps a table of what the program asked for, by madvise() and by MAP_NORESERVE, and the
 * attributes are given to the new mapping again. Memory with an attribute that device memory cannot
 * have stays private instead: marks_any() asks smaps about it, in programs that have asked for such
 * an attribute.
 *
 * Owns the table, which `busy` protects. madvise() and mmap() may be called in a signal handler
 * that interrupted a thread inside the table, so a thread waits for the lock only for a while. A
 * thread that does not get it, or finds no memory, sets `missed`: from then on marks_learn() asks
 * smaps before memory is exchanged. What the table has of memory that is device memory is right
 * even so, because the program's calls on such memory are in it.
 */
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "softhca/host/sys.h"
#include "softhca/shim/compiler.h"
#include "maps.h"
#include "marks.h"
#include "memory.h"
#include "ranges.h"
#include "softhca/shim/sandbox.h"
#include "softhca/shim/signals/handlers.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#define MADV_KEEPONFORK 19
#endif
#ifndef MPOL_DEFAULT
#define MPOL_DEFAULT 0
#endif
#ifndef MPOL_F_ADDR
#define MPOL_F_ADDR (1 << 1)
#endif

#define TURNS 10000 /* looks for the lock before a thread does without it */
/* An exchange gives memory the others again. */
#define LOST                                                                                       \
	(MARK_BIT(MARK_DONTDUMP) | MARK_BIT(MARK_WIPEONFORK) | MARK_BIT(MARK_HUGE) |               \
	 MARK_BIT(MARK_NOHUGE) | MARK_BIT(MARK_MERGE) | SMAPS_KEY | SMAPS_GROWS)

static struct ranges table[MARKS];
static atomic_bool used; /* something was ever in the table */
static atomic_flag busy = ATOMIC_FLAG_INIT;
static TLS bool mine;	   /* this thread has the lock, or is about to */
static atomic_bool missed; /* memory may have marks that the table lacks, or lack some of it */
static atomic_bool noted;  /* the program has asked for one of LOST */

static const struct {
	int advice;
	unsigned int sets, clears;
} meaning[] = {
	{MADV_DONTFORK, MARK_BIT(MARK_DONTFORK), 0},
	{MADV_DOFORK, 0, MARK_BIT(MARK_DONTFORK)},
	{MADV_DONTDUMP, MARK_BIT(MARK_DONTDUMP), 0},
	{MADV_DODUMP, 0, MARK_BIT(MARK_DONTDUMP)},
	{MADV_WIPEONFORK, MARK_BIT(MARK_WIPEONFORK), 0},
	{MADV_KEEPONFORK, 0, MARK_BIT(MARK_WIPEONFORK)},
	{MADV_HUGEPAGE, MARK_BIT(MARK_HUGE), MARK_BIT(MARK_NOHUGE)},
	{MADV_NOHUGEPAGE, MARK_BIT(MARK_NOHUGE), MARK_BIT(MARK_HUGE)},
	{MADV_MERGEABLE, MARK_BIT(MARK_MERGE), 0},
	{MADV_UNMERGEABLE, 0, MARK_BIT(MARK_MERGE)},
	{MADV_SEQUENTIAL, MARK_BIT(MARK_SEQUENTIAL), MARK_BIT(MARK_RANDOM)},
	{MADV_RANDOM, MARK_BIT(MARK_RANDOM), MARK_BIT(MARK_SEQUENTIAL)},
	{MADV_NORMAL, 0, MARK_BIT(MARK_SEQUENTIAL) | MARK_BIT(MARK_RANDOM)},
};
#define MEANINGS (sizeof(meaning) / sizeof(meaning[0]))

/* ---- the table ---- */

static bool lock(void)
{
	/* The handler's thread would wait for itself. */
	if (mine)
		return false;
	/* A handler that jumped away would keep the lock. */
	shim_handlers_wait();
	mine = true;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	for (int i = 0; i < TURNS; i++) {
		if (!atomic_flag_test_and_set_explicit(&busy, memory_order_acquire))
			return true;
		sched_yield();
	}
	mine = false;
	shim_handlers_go_on();
	return false;
}

static void unlock(void)
{
	atomic_flag_clear_explicit(&busy, memory_order_release);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	mine = false;
	shim_handlers_go_on();
}

/* The lock is held. */
static void change(uint64_t start, uint64_t end, unsigned int sets, unsigned int clears)
{
	for (unsigned int i = 0; i < MARKS; i++) {
		struct ranges *t = &table[i];
		bool room = true;

		if ((sets | clears) & MARK_BIT(i))
			room = ranges_remove(t, start, end - start);
		if (room && sets & MARK_BIT(i)) {
			room = ranges_room(t);
			if (room)
				ranges_join(t, (struct range){start, end - start, 0});
			atomic_store(&used, true);
		}
		if (!room)
			atomic_store(&missed, true);
	}
}

static uint64_t end_of(uint64_t addr, uint64_t len)
{
	return addr + ((len + SHIM_PAGE - 1) & ~(uint64_t)(SHIM_PAGE - 1));
}

static void update(uint64_t start, uint64_t end, unsigned int sets, unsigned int clears)
{
	if (end <= start || (!sets && !atomic_load_explicit(&used, memory_order_relaxed)))
		return;
	if (lock()) {
		change(start, end, sets, clears);
		unlock();
	} else {
		atomic_store(&missed, true);
	}
}

void marks_advised(uint64_t addr, uint64_t len, int advice)
{
	for (size_t i = 0; i < MEANINGS; i++) {
		if (meaning[i].advice != advice)
			continue;
		if (meaning[i].sets & LOST)
			marks_note();
		update(addr, end_of(addr, len), meaning[i].sets, meaning[i].clears);
	}
}

void marks_maybe_advised(uint64_t addr, uint64_t len, int advice)
{
	for (size_t i = 0; i < MEANINGS; i++)
		if (meaning[i].advice == advice && meaning[i].sets | meaning[i].clears)
			marks_unsure();
	marks_advised(addr, len, advice);
}

void marks_mapped(uint64_t addr, uint64_t len, bool noreserve)
{
	update(addr, end_of(addr, len), noreserve ? MARK_BIT(MARK_NORESERVE) : 0, MARKS_ALL);
}

bool marks_unmapped(uint64_t addr, uint64_t len)
{
	uint64_t end = end_of(addr, len), next;
	bool had;

	if (end <= addr || !atomic_load_explicit(&used, memory_order_relaxed))
		return false;
	had = marks_at(addr, end, &next) || next < end;
	update(addr, end, 0, MARKS_ALL);
	return had;
}

void marks_unsure(void)
{
	atomic_store(&missed, true);
}

void marks_moved(uint64_t from, uint64_t from_len, uint64_t to, uint64_t to_len, bool old_stays)
{
	uint64_t from_end = end_of(from, from_len), to_end = end_of(to, to_len), next;
	uint64_t moved = from_end - from < to_end - to ? from_end - from : to_end - to;
	unsigned int marks = 0;

	if (!atomic_load_explicit(&used, memory_order_relaxed))
		return;
	if (from != to)
		update(to, to_end, 0, MARKS_ALL);
	for (uint64_t at = from; at < from + moved; at = next) {
		marks = marks_at(at, from + moved, &next);
		if (from != to)
			update(to + (at - from), to + (next - from), marks, 0);
	}
	/* What has grown has the attributes of what was there. */
	update(to + moved, to_end, marks, MARKS_ALL);
	if (from != to && !old_stays)
		update(from, from_end, 0, MARKS_ALL);
	else if (from == to)
		update(from + moved, from_end, 0, MARKS_ALL);
}

void marks_forked(void)
{
	struct ranges *gone = &table[MARK_DONTFORK];

	bool was_busy = atomic_flag_test_and_set(&busy);

	/* Another thread of the parent was in the middle of a change. */
	if (was_busy && !mine) {
		for (unsigned int i = 0; i < MARKS; i++)
			table[i].count = 0;
		atomic_store(&missed, true);
	}
	for (size_t i = 0; i < gone->count; i++)
		change(gone->at[i].uaddr, gone->at[i].uaddr + gone->at[i].len, 0,
		       MARKS_ALL & ~MARK_BIT(MARK_DONTFORK));
	gone->count = 0;
	if (!was_busy || !mine)
		atomic_flag_clear(&busy);
}

/* ---- what memory has ---- */

unsigned int marks_at(uint64_t start, uint64_t end, uint64_t *next)
{
	unsigned int marks = 0;

	*next = end;
	if (!atomic_load_explicit(&used, memory_order_relaxed) || !lock())
		return 0;
	for (unsigned int i = 0; i < MARKS; i++) {
		size_t at = ranges_find(&table[i], start);
		const struct range *r = &table[i].at[at];
		uint64_t changes;

		if (at == table[i].count)
			continue;
		changes = r->uaddr > start ? r->uaddr : r->uaddr + r->len;
		if (r->uaddr <= start)
			marks |= MARK_BIT(i);
		if (changes < *next)
			*next = changes;
	}
	unlock();
	return marks;
}

static bool learn(uint64_t start, uint64_t end, unsigned int marks, void *arg)
{
	(void)arg;
	if (!lock())
		return false;
	change(start, end, marks, MARKS_ALL);
	unlock();
	return true;
}

bool marks_learn(uint64_t start, uint64_t end)
{
	return !atomic_load(&missed) || smaps_each(start, end, learn, NULL);
}

void marks_give(uint64_t start, uint64_t end, uint64_t to, unsigned int which)
{
	uint64_t next;

	for (uint64_t at = start; at < end; at = next) {
		unsigned int marks = marks_at(at, end, &next) & which;

		/* The kernel's refusal of one does not keep memory from having the others. */
		for (size_t i = 0; i < MEANINGS; i++)
			if (meaning[i].sets & marks)
				(void)sh_madvise(to + (at - start), next - at, meaning[i].advice);
	}
}

int marks_fresh(uint64_t start, uint64_t end, int prot)
{
	uint64_t next;
	int err = 0;

	for (uint64_t at = start; !err && at < end; at = next) {
		bool noreserve = marks_at(at, end, &next) & MARK_BIT(MARK_NORESERVE);

		sh_mmap((void *)(uintptr_t)at, next - at, prot,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | (noreserve ? MAP_NORESERVE : 0),
			-1, 0, &err);
	}
	return err;
}

void marks_note(void)
{
	atomic_store_explicit(&noted, true, memory_order_relaxed);
}

static bool loses_nothing(uint64_t start, uint64_t end, unsigned int marks, void *arg)
{
	(void)start;
	(void)end;
	(void)arg;
	return !(marks & LOST);
}

bool marks_any(uint64_t start, uint64_t end)
{
	return atomic_load_explicit(&noted, memory_order_relaxed) &&
	       !smaps_each(start, end, loses_nothing, NULL);
}

/*
 * The second word of the mapping's line. A thread's own policy stands there, too, where the mapping
 * has none.
 */
static bool policy_by_file(uint64_t addr)
{
	struct maps m = {.fd = sh_open_own("/proc/thread-self/numa_maps", O_RDONLY)};
	char word[32], last[32] = "default";
	unsigned long from;
	char *line;

	if (m.fd < 0)
		return m.fd != -ENOENT;
	while ((line = maps_line(&m)) && sscanf(line, "%lx %31s", &from, word) == 2 && from <= addr)
		strcpy(last, word);
	maps_close(&m);
	return strcmp(last, "default");
}

/*
 * MPOL_DEFAULT: the mapping has no policy. The kernel does not answer with the thread's own then.
 */
bool marks_policy(uint64_t addr)
{
	int mode = MPOL_DEFAULT;

	if (sandboxed())
		return policy_by_file(addr);
	return sh_sys(syscall(SYS_get_mempolicy, &mode, NULL, 0UL, addr, (long)MPOL_F_ADDR)) >= 0 &&
	       mode != MPOL_DEFAULT;
}
