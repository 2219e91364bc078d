// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Makes registered memory device memory, and private again, while the process is still (still.c).
 * Memory in which the C library may keep something becomes private again before the first thread is
 * created and before fork() (threads.c, fork.c). Beside threads only pages that the application has
 * mapped, and that were never touched, become device memory (own.c, fresh.c). docs/shared-memory.md
 * has the reasons.
 *
 * Owns the table of this process's regions, for the calls that change mappings (mapcalls.h). A
 * thread changes the table only while it holds the control connection. The shim looks up in /proc
 * what is mapped, since the C library changes mappings unseen.
 */
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "softhca/device/memory/dev.h"
#include "softhca/host/memory.h"
#include "softhca/host/process.h"
#include "softhca/host/sys.h"
#include "softhca/protocol.h"
#include "softhca/shim/attach.h"
#include "softhca/shim/compiler.h"
#include "fresh.h"
#include "maps.h"
#include "marks.h"
#include "memory.h"
#include "own.h"
#include "ranges.h"
#include "revoke.h"
#include "share.h"
#include "still.h"

#define PATIENCE_NS UINT64_C(2000000000)

/*
 * A region takes three mappings, of which a process may have 65,530, and each registration and each
 * fork() reads the list of mappings. So with so many regions, further small ones stay private.
 */
#define SMALL_REGIONS 256
#define SMALL	      (UINT64_C(1) << 20)

static struct ranges regions;
static struct ranges queues; /* queue pages and doorbell records; some may be unmapped by now */

bool shim_may_share(uint64_t addr, uint64_t len)
{
	return addr < __atomic_load_n(&regions.highest, __ATOMIC_ACQUIRE) &&
	       addr + len > __atomic_load_n(&regions.lowest, __ATOMIC_ACQUIRE);
}

bool shim_may_queue(uint64_t addr, uint64_t len)
{
	return addr < __atomic_load_n(&queues.highest, __ATOMIC_ACQUIRE) &&
	       addr + len > __atomic_load_n(&queues.lowest, __ATOMIC_ACQUIRE);
}

bool shim_shares(uint64_t addr, uint64_t len)
{
	return ranges_overlap(&regions, addr, len);
}

bool shim_shares_now(uint64_t addr, uint64_t len)
{
	bool shares;

	if (likely(!shim_may_share(addr, len)) || shim_control_mine())
		return false;
	shim_control_hold();
	shares = shim_shares(addr, len);
	shim_control_put();
	return shares;
}

bool shim_shares_any(void)
{
	return __atomic_load_n(&regions.highest, __ATOMIC_ACQUIRE);
}

bool shim_share_forget(uint64_t addr, uint64_t len)
{
	return ranges_remove(&regions, addr, len);
}

const struct ranges *shim_share_regions(void)
{
	return &regions;
}

const struct ranges *shim_share_queues(void)
{
	return &queues;
}

void shim_share_queue(const struct sh_action *a)
{
	/* Without the answer a child gets pages that the program did not want it to have. */
	(void)marks_learn(a->uaddr, a->uaddr + a->len);
	(void)shim_share_forget(a->uaddr, a->len);
	/* A queue that has ended had these pages, which are given out again. */
	if (ranges_hold(&queues, (struct range){a->uaddr, a->len, a->shm_off}))
		return;
	/* If there is no room, only a fork() without /proc misses these pages. */
	if (ranges_remove(&queues, a->uaddr, a->len) && ranges_room(&queues))
		ranges_join(&queues, (struct range){a->uaddr, a->len, a->shm_off});
}

void shim_share_forked(void)
{
	regions.count = queues.count = 0;
	regions.highest = queues.highest = 0;
}

/* ---- can it be shared? ---- */

/*
 * Memory that cannot be made private before a fork must hold nothing that the C library uses in the
 * child.
 */
static bool beside_threads(uint64_t addr, uint64_t len)
{
	return own_has(addr, len) && !own_blind() && fresh_likely(addr, len);
}

void shim_share_examine(uint64_t addr, uint64_t len, struct sh_pin_result *pin)
{
	uint64_t start = addr & ~(uint64_t)(SHIM_PAGE - 1),
		 end = (addr + len + SHIM_PAGE - 1) & ~(uint64_t)(SHIM_PAGE - 1);
	uint64_t at = start;
	bool private = true, shared = true;
	struct mapping m;
	struct maps maps;

	if (!len)
		return;
	if (end - start < SMALL && regions.count >= SMALL_REGIONS &&
	    !shim_shares(start, end - start))
		return;
	if (maps_open(&maps))
		return;
	while ((private || shared) && maps_next(&maps, &m)) {
		if (m.end <= at || at >= end)
			continue;
		if (m.start > at)
			break;
		if (m.ino || m.dev || m.stack || memcmp(m.perms, "rw-p", 4) ||
		    (private && marks_policy(at)))
		private = false;
		if (!shim_memory_is(m.dev, m.ino) || memcmp(m.perms, "rw-s", 4))
			shared = false;
		else if (at == start)
			pin->have_off = m.off + (at - m.start);
		else if (m.off + (at - m.start) != pin->have_off + (at - start))
			shared = false;
		at = m.end;
	}
	maps_close(&maps);
	if (at < end)
		return;
	if (shared)
		pin->share = SH_SHARE_HAVE;
	else if (private && !still_writes(start, end) && !marks_any(start, end) &&
		 (still_alone() || beside_threads(start, end - start)))
		pin->share = SH_SHARE_PRIVATE;
}

/* ---- there and back ---- */

int shim_changed(uint32_t what, uint64_t addr, uint64_t len)
{
	struct sh_changed_msg msg = {
		.type = SH_MSG_CHANGED, .what = what, .uaddr = addr, .len = len};
	struct sh_status status;
	int err = shim_request(&msg, sizeof(msg), &status, sizeof(status), NULL, NULL);

	/* A daemon that lives and does not hear of it would have the device use the old pages. */
	if (err == -EIO && !shim_control_gone())
		err = -ENOTCONN;
	/* The device lives in the programs, and goes on without a daemon. */
	if (err == -EIO && what == SH_CHANGED_REVOKE)
		return revoke_here(&regions, addr, len);
	return err ? err : -status.error;
}

/*
 * Static: what runs while the process is still must not read the caller's stack, whose pages may be
 * the ones that are exchanged.
 */
static struct sh_action moved;

/*
 * Makes two mappings of the region, because mremap() refuses to work on more than one. One that the
 * shim does not see would otherwise let the region grow into pages that are not its own. (realloc()
 * it does see: heap.c.) What the first page gets is not what the program may have given to the
 * second one.
 */
static void split(uint64_t addr, uint64_t len)
{
	uint64_t second = addr + SHIM_PAGE, next;

	if (len > SHIM_PAGE)
		sh_madvise(addr, SHIM_PAGE,
			   marks_at(second, second + SHIM_PAGE, &next) & MARK_BIT(MARK_RANDOM)
				   ? MADV_SEQUENTIAL
				   : MADV_RANDOM);
}

void shim_share_split(uint64_t addr, uint64_t len)
{
	for (size_t i = ranges_find(&regions, addr);
	     i < regions.count && regions.at[i].uaddr < addr + len; i++)
		split(regions.at[i].uaddr, regions.at[i].len);
}

static void add_region(uint64_t len)
{
	ranges_insert(&regions, (struct range){moved.uaddr, len, moved.shm_off});
}

static int map_region(void)
{
	int err = shim_map_action(&moved);

	if (err)
		return err;
	split(moved.uaddr, moved.len);
	add_region(moved.len);
	return 0;
}

/*
 * A copy of so much takes a millisecond or a few, for which peers wait. At multiples of it, because
 * the kernel would have to take huge pages apart elsewhere.
 */
#define PIECE (UINT64_C(4) << 20)

static uint64_t piece_end(uint64_t at, uint64_t end)
{
	uint64_t next = (at | (PIECE - 1)) + 1;

	return next < end ? next : end;
}

static int share_piece(const struct sh_action *piece)
{
	int err = still_piece(piece->uaddr, piece->uaddr + piece->len);
	struct shim_copy c;

	if (err)
		return err;
	shim_copy_open(&c, piece->len);
	still_hush();
	err = shim_copy_pages(&c, piece->shm_off, piece->uaddr, piece->len);
	if (!err)
		err = shim_map_action(piece);
	still_unhush();
	shim_copy_close(&c);
	return err;
}

static struct range leaving;
static int privatize_all(struct mapping m);

/*
 * Puts back what has moved, len bytes, of a region that cannot move as a whole. Returns 0, or len
 * if some of it stays: then all of that stays the region's, whatever is mapped there.
 */
static uint64_t take_back(uint64_t len)
{
	struct mapping m = {.start = moved.uaddr,
			    .end = moved.uaddr + len,
			    .off = moved.shm_off,
			    .perms = "rw-s"};

	leaving = (struct range){moved.uaddr, len, moved.shm_off};
	return len && privatize_all(m) ? len : 0;
}

static uint64_t kept; /* by the region, from its beginning */

static int share(void *arg)
{
	uint64_t end = moved.uaddr + moved.len, at = moved.uaddr, next;
	int err = 0;

	(void)arg;
	while (!err && at < end) {
		next = piece_end(at, end);
		err = share_piece(
			&(struct sh_action){.uaddr = at,
					    .len = next - at,
					    .shm_off = moved.shm_off + (at - moved.uaddr)});
		if (!err)
			at = next;
	}
	kept = err ? take_back(at - moved.uaddr) : moved.len;
	if (kept && (!err || shim_is_shared(moved.uaddr)))
		split(moved.uaddr, kept);
	if (kept)
		add_region(kept);
	return err;
}

int shim_share(const struct sh_action *a)
{
	int err;

	kept = 0;
	err = sh_memory_extend(&shim_dev, a->shm_off, a->len);
	/* Whatever is left here of regions that the C library unmapped unseen has ended. */
	if (!err && (!shim_share_forget(a->uaddr, a->len) || !ranges_room(&regions) ||
		     !marks_learn(a->uaddr, a->uaddr + a->len)))
		err = -ENOMEM;
	if (!err) {
		moved = *a;
		err = still_run(share, NULL);
		if (err == -EBUSY && !kept && own_has(moved.uaddr, moved.len) && !own_blind())
			err = fresh_run(moved.uaddr, moved.len, map_region);
	}
	if (!err)
		return 0;
	/* The device reaches all of it by its addresses then. */
	shim_control_again();
	return shim_changed(SH_CHANGED_GONE, a->uaddr + kept, a->len - kept);
}

static void protect(const struct mapping *m)
{
	long prot = mapping_prot(m);

	if (prot != (PROT_READ | PROT_WRITE))
		sh_sys(syscall(SYS_mprotect, m->start, m->end - m->start, prot));
}

/* Puts device memory back where there was no memory to replace it. */
static void put_back(const struct mapping *m)
{
	shim_map_action(&(struct sh_action){
		.uaddr = m->start, .len = m->end - m->start, .shm_off = m->off});
	protect(m);
	if (m->start == leaving.uaddr)
		split(leaving.uaddr, leaving.len);
}

/*
 * Replaces one mapping of device memory by private memory with the same contents and attributes,
 * which forms one mapping with its neighbours.
 */
static int privatize(const struct mapping *m)
{
	int err;

	still_hush();
	err = marks_fresh(m->start, m->end, PROT_READ | PROT_WRITE) ||
	      sh_poke(m->start, sh_at(&shim_dev, m->off), m->end - m->start);
	if (err)
		put_back(m);
	still_unhush();
	if (err)
		return -ENOMEM;
	marks_give(m->start, m->end, m->start, MARKS_ALL);
	protect(m);
	return 0;
}

/* The same, piece by piece. */
static int privatize_all(struct mapping m)
{
	uint64_t end = m.end;
	int err = 0;

	for (; !err && m.start < end; m.start = m.end) {
		m.end = piece_end(m.start, end);
		err = still_piece(m.start, m.end);
		if (!err)
			err = privatize(&m);
		m.off += m.end - m.start;
	}
	return err;
}

static int give_back_blindly(void)
{
	uint64_t end = leaving.uaddr + leaving.len;
	int err = 0;

	for (uint64_t at = leaving.uaddr, next; !err && at < end; at = next) {
		bool shared = shim_is_shared(at);
		struct mapping m = {
			.start = at, .off = leaving.shm + (at - leaving.uaddr), .perms = "rw-s"};

		for (next = at + SHIM_PAGE; next < end && shim_is_shared(next) == shared;
		     next += SHIM_PAGE)
			;
		m.end = next;
		if (shared)
			err = privatize_all(m);
	}
	return err;
}

static int give_back(void *arg)
{
	struct mapping m;
	struct maps maps;
	int err;

	(void)arg;
	err = maps_open(&maps);
	if (err)
		return give_back_blindly();
	while (!err && maps_next(&maps, &m) && m.start < leaving.uaddr + leaving.len) {
		if (m.end <= leaving.uaddr || !shim_memory_is(m.dev, m.ino))
			continue;
		if (m.start < leaving.uaddr) {
			m.off += leaving.uaddr - m.start;
			m.start = leaving.uaddr;
		}
		if (m.end > leaving.uaddr + leaving.len)
			m.end = leaving.uaddr + leaving.len;
		if (m.off == leaving.shm + (m.start - leaving.uaddr))
			err = privatize_all(m);
	}
	maps_close(&maps);
	return err;
}

#define SEAMS 4096
static uint64_t seams[SEAMS];

static uint64_t *seam(uint64_t at)
{
	return &seams[at / SHIM_PAGE % SEAMS];
}

void shim_note_seam(uint64_t at)
{
	__atomic_store_n(seam(at), at, __ATOMIC_RELAXED);
}

bool shim_is_seam(uint64_t at)
{
	return __atomic_load_n(seam(at), __ATOMIC_RELAXED) == at;
}

/* No other process reaches the pages any more. Pages that stay device memory stay the region's. */
static int make_private(struct range r)
{
	int err;

	leaving = r;
	err = still_run(give_back, NULL);
	if (err)
		return err;
	shim_note_seam(r.uaddr);
	shim_note_seam(r.uaddr + SHIM_PAGE); /* split() */
	shim_note_seam(r.uaddr + r.len);
	(void)shim_share_forget(r.uaddr, r.len);
	/* An error does not matter: a daemon that is gone gives nothing out again. */
	(void)shim_changed(SH_CHANGED_GONE, r.uaddr, r.len);
	return 0;
}

void shim_give_back(const struct sh_action *a)
{
	(void)make_private((struct range){a->uaddr, a->len, a->shm_off});
}

int shim_privatize(uint64_t addr, uint64_t len)
{
	int err = still_alone() ? shim_changed(SH_CHANGED_REVOKE, addr, len) : -EBUSY;
	size_t i;

	while (!err && (i = ranges_find(&regions, addr)) < regions.count &&
	       regions.at[i].uaddr < addr + len)
		err = make_private(regions.at[i]);
	return err;
}

int shim_make_private(uint64_t low, uint64_t high)
{
	int err = 0;
	size_t i = 0;

	/*
	 * The caller may have interrupted a call that holds the connection, in the middle of an
	 * exchange.
	 */
	if (likely(!shim_shares_any()))
		return 0;
	if (shim_control_mine())
		return -EBUSY;
	shim_control_reach();
	while (!err && i < regions.count) {
		struct range r = regions.at[i];

		if (r.uaddr + r.len <= low || r.uaddr >= high) {
			/* A process with threads has no choice. */
			if (own_has(r.uaddr, r.len) && (!own_blind() || !still_alone())) {
				i++;
				continue;
			}
		}
		err = shim_privatize(r.uaddr, r.len);
	}
	shim_control_put();
	return err;
}

int shim_make_private_first(uint64_t low, uint64_t high)
{
	const struct timespec nap = {.tv_nsec = 1000000};
	uint64_t until = 0;
	int err;

	while ((err = shim_make_private(low, high)) == -EBUSY && !shim_control_mine() &&
	       still_alone()) {
		if (!until)
			until = sh_now() + PATIENCE_NS;
		else if (sh_now() > until)
			return -EAGAIN;
		syscall(SYS_nanosleep, &nap, NULL);
	}
	return err;
}
