// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * See fifo_known.h. A handler of a signal may come in the middle of either function, and a child
 * may be forked there: nothing waits here. An entry that is being changed counts as none, and one
 * whose change was never finished counts as none for ever.
 */
#include "softhca/protocol.h"
#include "softhca/shim/attach.h"
#include "fifo_known.h"

enum { ENTRIES = 64 };

static struct entry {
	uint32_t changes; /* odd: another one is under way */
	uint32_t index, generation, connection;
	uint64_t ino;
} known[ENTRIES];

static bool marked(const struct stat *st)
{
	return S_ISFIFO(st->st_mode) && st->st_mode & SH_FIFO_MARK && st->st_dev == shim.files_dev;
}

void fifo_known_add(const struct stat *st, const struct shim_fifo *f, uint32_t connection)
{
	struct entry *e = &known[st->st_ino % ENTRIES];
	uint32_t changes = __atomic_load_n(&e->changes, __ATOMIC_RELAXED);

	if (!marked(st) || !connection || !f->generation || f->mode != O_RDWR || changes & 1 ||
	    !__atomic_compare_exchange_n(&e->changes, &changes, changes + 1, false,
					 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return;
	__atomic_thread_fence(__ATOMIC_RELEASE);
	__atomic_store_n(&e->index, f->index, __ATOMIC_RELAXED);
	__atomic_store_n(&e->generation, f->generation, __ATOMIC_RELAXED);
	__atomic_store_n(&e->connection, connection, __ATOMIC_RELAXED);
	__atomic_store_n(&e->ino, st->st_ino, __ATOMIC_RELAXED);
	__atomic_store_n(&e->changes, changes + 2, __ATOMIC_RELEASE);
}

bool fifo_known_find(const struct stat *st, struct shim_fifo *f)
{
	struct entry *e = &known[st->st_ino % ENTRIES];
	uint32_t changes;
	uint64_t ino;

	if (!marked(st))
		return false;
	changes = __atomic_load_n(&e->changes, __ATOMIC_ACQUIRE);
	f->index = __atomic_load_n(&e->index, __ATOMIC_RELAXED);
	f->generation = __atomic_load_n(&e->generation, __ATOMIC_RELAXED);
	f->known = __atomic_load_n(&e->connection, __ATOMIC_RELAXED);
	f->mode = O_RDWR;
	ino = __atomic_load_n(&e->ino, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return ino == st->st_ino && f->known && f->known == shim_control_number() &&
	       !(changes & 1) && __atomic_load_n(&e->changes, __ATOMIC_RELAXED) == changes;
}
