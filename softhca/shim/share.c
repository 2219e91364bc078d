// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Registered memory becomes device memory, and private again: the contents move while nobody can write to them. In a
 * process with no thread but the caller's and the helper, that is so while signals are blocked; with others, when the
 * kernel holds their stores back (userfaultfd write protection, for system calls that write there too, which takes a
 * privilege). Otherwise memory stays as it is.
 *
 * Owns the table of the regions of this process, for the calls that change mappings (mapcalls.c). It is changed with the
 * control connection held; what is mapped is looked up in /proc, since the C library changes mappings unseen.
 */
#include <linux/userfaultfd.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>

#include "softhca/host/process.h"
#include "maps.h"
#include "shim.h"

/* ---- the table ---- */

struct region {
	uint64_t uaddr, len, shm;
};

static struct region *table;		/* by address */
static size_t count, room;
static uint64_t lowest = UINT64_MAX, highest;	/* of what was ever in the table */

static size_t lower_bound(uint64_t addr)
{
	size_t lo = 0, hi = count;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (table[mid].uaddr + table[mid].len <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static bool table_grow(void)
{
	size_t more = room ? 2 * room : 4096 / sizeof(*table);
	struct region *old = table;
	struct region *grown = sh_pages(more * sizeof(*table));

	if (!grown)
		return false;
	if (table)
		memcpy(grown, table, count * sizeof(*table));
	/* A child that another thread makes in between has one or the other. */
	__atomic_store_n(&table, grown, __ATOMIC_SEQ_CST);
	if (old)
		sh_munmap(old, room * sizeof(*table));
	room = more;
	return true;
}

/* There is room for it. */
static void table_insert(struct region r)
{
	size_t i = lower_bound(r.uaddr);

	memmove(&table[i + 1], &table[i], (count - i) * sizeof(*table));
	table[i] = r;
	count++;
	if (r.uaddr < lowest)
		__atomic_store_n(&lowest, r.uaddr, __ATOMIC_RELEASE);
	if (r.uaddr + r.len > highest)
		__atomic_store_n(&highest, r.uaddr + r.len, __ATOMIC_RELEASE);
}

bool shim_may_share(uint64_t addr, uint64_t len)
{
	return addr < __atomic_load_n(&highest, __ATOMIC_ACQUIRE) &&
	       addr + len > __atomic_load_n(&lowest, __ATOMIC_ACQUIRE);
}

bool shim_shares(uint64_t addr, uint64_t len)
{
	size_t i = lower_bound(addr);

	return i < count && table[i].uaddr < addr + len;
}

void shim_share_forget(uint64_t addr, uint64_t len)
{
	uint64_t end = addr + len;
	size_t i = lower_bound(addr);

	while (i < count && table[i].uaddr < end) {
		struct region r = table[i];

		memmove(&table[i], &table[i + 1], (--count - i) * sizeof(*table));
		/* Two parts may be left of one: there is room for one, and for the other where none is lost entirely. */
		if (r.uaddr < addr) {
			table_insert((struct region){r.uaddr, addr - r.uaddr, r.shm});
			i++;
		}
		if (r.uaddr + r.len > end && (count < room || table_grow()))
			table_insert((struct region){end, r.uaddr + r.len - end, r.shm + (end - r.uaddr)});
	}
}

/* ---- holding off everybody who may write ---- */

struct hold {
	uint64_t mask;			/* signals blocked before */
	int uffd;			/* -1: there is no other thread */
};

static bool alone(void)
{
	struct stat st;

	/* . and .. and one for each thread */
	return sh_stat("/proc/self/task", &st) == 0 && st.st_nlink <= (nlink_t)(3 + sh_process_threads());
}

/* Not for user mode alone: a read() into the pages must wait as well. */
static int uffd_open(void)
{
	struct uffdio_api api = {.api = UFFD_API, .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP};
	int fd;

#ifdef UFFD_FEATURE_WP_HUGETLBFS_SHMEM
	api.features |= UFFD_FEATURE_WP_HUGETLBFS_SHMEM;
#else
	return -ENOSYS;
#endif
	fd = sh_sys(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK));
	if (fd >= 0 && sh_sys(syscall(SYS_ioctl, fd, UFFDIO_API, &api)) < 0) {
		sh_close(fd);
		return -ENOSYS;
	}
	return fd;
}

static bool can_hold(void)
{
	int fd;

	if (alone())
		return true;
	fd = uffd_open();
	if (fd >= 0)
		sh_close(fd);
	return fd >= 0;
}

/* Protection of private memory is a page's that is there; that of shared memory is not. */
static int hold_begin(struct hold *h, uint64_t addr, uint64_t len, bool private)
{
	struct uffdio_register reg = {.range = {addr, len}, .mode = UFFDIO_REGISTER_MODE_WP};
	struct uffdio_writeprotect wp = {.range = {addr, len}, .mode = UFFDIO_WRITEPROTECT_MODE_WP};
	uint64_t all = ~UINT64_C(0);
	int err = 0;

	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &h->mask, sizeof(all));
	h->uffd = -1;
	if (alone())
		return 0;
	h->uffd = uffd_open();
	if (h->uffd < 0)
		err = -EBUSY;
	if (!err && ((private && sh_madvise(addr, len, MADV_POPULATE_READ) < 0) ||
		     sh_sys(syscall(SYS_ioctl, h->uffd, UFFDIO_REGISTER, &reg)) < 0 ||
		     sh_sys(syscall(SYS_ioctl, h->uffd, UFFDIO_WRITEPROTECT, &wp)) < 0)) {
		sh_close(h->uffd);
		err = -EBUSY;
	}
	if (err)
		syscall(SYS_rt_sigprocmask, SIG_SETMASK, &h->mask, NULL, sizeof(h->mask));
	return err;
}

/* Whoever waits goes on, and finds what is mapped there now. */
static void hold_end(struct hold *h)
{
	if (h->uffd >= 0)
		sh_close(h->uffd);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &h->mask, NULL, sizeof(h->mask));
}

/* ---- can it be shared? ---- */

static bool holds(uint64_t start, uint64_t end, uintptr_t addr)
{
	return addr >= start - SHIM_PAGE && addr < end + SHIM_PAGE;
}

void shim_share_examine(uint64_t addr, uint64_t len, struct sh_pin_result *pin)
{
	uint64_t start = addr & ~(uint64_t)(SHIM_PAGE - 1), end = (addr + len + SHIM_PAGE - 1) & ~(uint64_t)(SHIM_PAGE - 1);
	uint64_t at = start;
	bool private = true, shared = true;
	struct mapping m;
	struct maps maps;

	/* What this thread writes itself meanwhile: its stack and its thread-local variables. */
	if (!len || holds(start, end, (uintptr_t)__builtin_frame_address(0)) ||
	    holds(start, end, (uintptr_t)__builtin_thread_pointer()))
		return;
	if (maps_open(&maps))
		return;
	while ((private || shared) && maps_next(&maps, &m)) {
		/* The kernel writes to pages that it has pinned, or from within any system call. */
		if (m.rings)
			private = false;
		if (m.end <= at || at >= end)
			continue;
		if (m.start > at)
			break;
		if (m.ino || m.dev || m.stack || memcmp(m.perms, "rw-p", 4))
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
	else if (private && can_hold())
		pin->share = SH_SHARE_PRIVATE;
}

/* ---- there and back ---- */

int shim_changed(uint32_t what, uint64_t addr, uint64_t len)
{
	struct sh_changed_msg msg = {.type = SH_MSG_CHANGED, .what = what, .uaddr = addr, .len = len};
	struct sh_status status;
	int err = shim_request(&msg, sizeof(msg), &status, sizeof(status), NULL, NULL);

	return err ? err : -status.error;
}

int shim_share(const struct sh_action *a)
{
	struct hold h;
	int err;

	if (a->shm_off > shim_dev.inst->size || a->len > shim_dev.inst->size - a->shm_off)
		return -EINVAL;
	/* What is left there of regions that the C library unmapped unseen is over. */
	shim_share_forget(a->uaddr, a->len);
	if (count == room && !table_grow())
		return -ENOMEM;
	err = hold_begin(&h, a->uaddr, a->len, true);
	if (err)
		return err;
	err = shim_copy_pages(sh_at(&shim_dev, a->shm_off), a->uaddr, a->len, h.uffd < 0);
	if (!err)
		err = shim_map_action(a);
	if (!err) {
		/*
		 * Two mappings, not one: mremap() refuses to work on more than one. The C library's own, in realloc(), would
		 * otherwise let it grow into pages that are not this region's. The first page is the one that is left when it
		 * has shrunk before.
		 */
		if (a->len > SHIM_PAGE)
			sh_madvise(a->uaddr, SHIM_PAGE, MADV_RANDOM);
		table_insert((struct region){a->uaddr, a->len, a->shm_off});
	}
	hold_end(&h);
	return err;
}

/*
 * One mapping of device memory becomes private memory with the same contents. Alone, in its place, where it becomes one
 * with what is around it; before the eyes of other threads in one step.
 */
static int privatize(const struct mapping *m, bool watched)
{
	uint64_t len = m->end - m->start;
	bool dontfork = shim_marked_dontfork(m->start);
	long prot = mapping_prot(m), err;
	void *fresh;
	int failed;

	fresh = watched ? sh_pages(len)
			: sh_mmap((void *)(uintptr_t)m->start, len, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0, &failed);
	if (!fresh)
		return -ENOMEM;
	if (sh_poke((uintptr_t)fresh, sh_at(&shim_dev, m->off), len)) {
		if (watched)
			sh_munmap(fresh, len);
		else
			shim_map_action(&(struct sh_action){.uaddr = m->start, .len = len, .shm_off = m->off});
		return -EFAULT;
	}
	if (dontfork)
		sh_madvise((uintptr_t)fresh, len, MADV_DONTFORK);
	if (prot != (PROT_READ | PROT_WRITE))
		sh_sys(syscall(SYS_mprotect, fresh, len, prot));
	if (!watched)
		return 0;
	err = sh_sys(syscall(SYS_mremap, fresh, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, m->start));
	if (err < 0 && err > -4096) {
		sh_munmap(fresh, len);
		return (int)err;
	}
	return 0;
}

static int give_back(struct region r)
{
	struct mapping m;
	struct maps maps;
	struct hold h;
	int err;

	err = hold_begin(&h, r.uaddr, r.len, false);
	if (err)
		return err;
	err = maps_open(&maps);
	if (!err) {
		while (!err && maps_next(&maps, &m) && m.start < r.uaddr + r.len) {
			if (m.end <= r.uaddr || !shim_memory_is(m.dev, m.ino))
				continue;
			if (m.start < r.uaddr) {
				m.off += r.uaddr - m.start;
				m.start = r.uaddr;
			}
			if (m.end > r.uaddr + r.len)
				m.end = r.uaddr + r.len;
			if (m.off == r.shm + (m.start - r.uaddr))
				err = privatize(&m, h.uffd >= 0);
		}
		maps_close(&maps);
	}
	hold_end(&h);
	/* Pages that are still mapped stay the region's, until the process ends. */
	if (err)
		return err;
	shim_share_forget(r.uaddr, r.len);
	return shim_changed(SH_CHANGED_GONE, r.uaddr, r.len);
}

void shim_give_back(const struct sh_action *a)
{
	(void)give_back((struct region){a->uaddr, a->len, a->shm_off});
}

int shim_privatize(uint64_t addr, uint64_t len)
{
	int err = shim_changed(SH_CHANGED_REVOKE, addr, len);
	size_t i;

	while (!err && (i = lower_bound(addr)) < count && table[i].uaddr < addr + len)
		err = give_back(table[i]);
	return err;
}

/* ---- fork ---- */

/*
 * The child's view is a private copy as of fork(): the parent, which would write on in the same pages, waits for it. A child
 * that dies before it has told closes its end.
 */
static TLS int forking[2] = {-1, -1};

void shim_share_prepare(void)
{
	forking[0] = forking[1] = -1;
	if (__atomic_load_n(&highest, __ATOMIC_ACQUIRE))
		(void)sh_sys(syscall(SYS_pipe2, forking, O_CLOEXEC));
}

void shim_share_parent(void)
{
	char done;

	if (forking[0] < 0)
		return;
	sh_close(forking[1]);
	while (sh_read(forking[0], &done, 1) == -EINTR)
		;
	sh_close(forking[0]);
}

void shim_share_child(void)
{
	char done = 1;

	count = 0;
	highest = 0;
	lowest = UINT64_MAX;
	if (forking[0] < 0)
		return;
	sh_write(forking[1], &done, 1);
	sh_close(forking[0]);
	sh_close(forking[1]);
}
