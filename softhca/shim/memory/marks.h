/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Attributes that the program has given its memory (marks.c), and what the kernel alone tells of
 * them (smaps.c).
 */
#ifndef SOFTHCA_SHIM_MARKS_H
#define SOFTHCA_SHIM_MARKS_H

#include <stdbool.h>
#include <stdint.h>

enum mark {
	MARK_DONTFORK,
	MARK_DONTDUMP,
	MARK_WIPEONFORK,
	MARK_HUGE,
	MARK_NOHUGE,
	MARK_MERGE,
	MARK_SEQUENTIAL,
	MARK_RANDOM,
	MARK_NORESERVE,
	MARKS
};
#define MARK_BIT(mark) (1u << (mark))
#define MARKS_ALL      (MARK_BIT(MARKS) - 1)

/* ---- what the program does; any thread may call these at any time ---- */

/* madvise() has succeeded, or has failed halfway. */
void marks_advised(uint64_t addr, uint64_t len, int advice);
void marks_maybe_advised(uint64_t addr, uint64_t len, int advice);
/* mmap() has put new memory there. */
void marks_mapped(uint64_t addr, uint64_t len, bool noreserve);
/* Called before the range is unmapped. True: it had marks. */
bool marks_unmapped(uint64_t addr, uint64_t len);
/* The call that was to unmap a range with marks has failed, perhaps halfway. */
void marks_unsure(void);
/* Memory has moved and has the new length by now. The old place may be the new one. */
void marks_moved(uint64_t from, uint64_t from_len, uint64_t to, uint64_t to_len, bool old_stays);
/* In a forked child: it has not inherited the pages with MARK_DONTFORK. */
void marks_forked(void);

/* ---- what memory has; for the thread that exchanges pages ---- */

/*
 * Reads from the kernel what private memory has, if the table may have missed something. Call it
 * before the pages become device memory: the kernel does not know their marks from then on. False:
 * that cannot be done.
 */
bool marks_learn(uint64_t start, uint64_t end);
/* The marks at start. *next is at most end, and all of [start, *next) has them. */
unsigned int marks_at(uint64_t start, uint64_t end, uint64_t *next);
/*
 * Gives the memory at to those marks of [start, end) that are in the mask `which` and that
 * madvise() can give.
 */
void marks_give(uint64_t start, uint64_t end, uint64_t to, unsigned int which);
/*
 * Maps zeroed private pages over [start, end), with reserved memory or without as the range has it.
 * 0 or -errno.
 */
int marks_fresh(uint64_t start, uint64_t end, int prot);

/* Does the range have an attribute that its pages would lose in an exchange? */
bool marks_any(uint64_t start, uint64_t end);
/* The program asks for one. */
void marks_note(void);
/* Does the mapping that this address is in have a NUMA policy of its own? */
bool marks_policy(uint64_t addr);

/* ---- smaps.c ---- */

/*
 * Calls fn for each mapping in the range, with the marks that the kernel tells. False: it cannot be
 * read, or fn returned false.
 */
bool smaps_each(uint64_t start, uint64_t end,
		bool (*fn)(uint64_t start, uint64_t end, unsigned int marks, void *arg), void *arg);
/* Beside the marks: a protection key, and memory that grows downwards when it is touched below. */
#define SMAPS_KEY   MARK_BIT(MARKS)
#define SMAPS_GROWS MARK_BIT(MARKS + 1)

#endif
