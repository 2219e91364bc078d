// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Around fork(). The memory of a child is a private copy. So registered memory is made private
 * before the fork, where that can be done unnoticed, and the kernel copies it like the rest. Pages
 * that are still device memory (queue pages always are) are not inherited. The parent makes a
 * private copy of them before the fork, and the child puts that in their place before it does
 * anything else. This takes no descriptor, no /proc and no waiting. Where a limit may leave no room
 * for the copy, fork() tries first. If there is no memory for the copy all the same, or for a note
 * about it, the pages are missing in the child: it never has the parent's.
 *
 * The C library and other libraries must not keep anything in such pages that they use in the child
 * before that: see docs/shared-memory.md. The thread holds the control connection from before the
 * fork until after it, so that no other thread exchanges pages meanwhile.
 */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>

#include "softhca/device/memory/dev.h"
#include "softhca/device/memory/exec.h"
#include "softhca/host/memory.h"
#include "softhca/host/sys.h"
#include "softhca/shim/attach.h"
#include "softhca/shim/compiler.h"
#include "fork.h"
#include "softhca/shim/interpose.h"
#include "maps.h"
#include "marks.h"
#include "memory.h"
#include "ranges.h"
#include "softhca/shim/sandbox.h"
#include "softhca/shim/say.h"
#include "share.h"
#include "softhca/shim/stack.h"
#include "still.h"

#define FEW 256 /* mappings that need no memory to be noted */

struct kept {
	uint64_t start, len;
	uint64_t copy; /* 0: there is no copy, and the child has no pages there */
	int prot;
	bool inherited; /* the pages could not be kept from the child */
};

/* Of the fork that has the control connection. */
static struct kept few[FEW];
static struct kept *list = few;
static size_t count, room = FEW;
static bool unlisted; /* pages were kept from the child without a note */
/*
 * The C library lets two threads fork at once. The second thread's prepare() waits for the
 * connection, and must not touch what the first thread has yet to use.
 */
static TLS struct {
	bool lists; /* the list is this thread's */
	bool held;  /* prepare() has taken the connection */
	bool blocked;
	uint64_t mask; /* signals that were blocked before */
} forking;

/*
 * From the listing of queue pages until the child is made. The child moves its copies to these
 * places, so nothing else may come there meanwhile: another thread that unmaps such pages waits.
 */
static pthread_mutex_t listing = PTHREAD_MUTEX_INITIALIZER;

void shim_fork_hold_off(void)
{
	pthread_mutex_lock(&listing);
}

void shim_fork_let(void)
{
	pthread_mutex_unlock(&listing);
}

/* False: there is no memory for another note. */
static bool make_room(void)
{
	struct kept *more;

	if (count < room)
		return true;
	more = sh_pages(2 * room * sizeof(*more));
	if (!more)
		return false;
	memcpy(more, list, count * sizeof(*more));
	if (list != few)
		sh_munmap(list, room * sizeof(*list));
	list = more;
	room *= 2;
	return true;
}

/* A private copy for the child, with the attributes that the program gave the pages. */
static void *copy_of(uint64_t start, uint64_t end, uint64_t off)
{
	uint64_t len = end - start, next;
	bool noreserve = marks_at(start, end, &next) & MARK_BIT(MARK_NORESERVE);
	int err;
	void *copy =
		sh_mmap(NULL, len, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | (noreserve ? MAP_NORESERVE : 0), -1, 0, &err);

	if (copy && sh_poke((uintptr_t)copy, sh_at(&shim_dev, off), len)) {
		sh_munmap(copy, len);
		copy = NULL;
	}
	if (copy)
		marks_give(start, end, (uintptr_t)copy, MARKS_ALL & ~MARK_BIT(MARK_DONTFORK));
	return copy;
}

static void keep_part(uint64_t start, uint64_t end, uint64_t off, int prot)
{
	struct kept *k;
	void *copy;

	if (unlisted || !make_room()) {
		sh_madvise(start, end - start, MADV_DONTFORK);
		unlisted = true;
		return;
	}
	k = &list[count];
	*k = (struct kept){.start = start, .len = end - start, .prot = prot};
	copy = copy_of(start, end, off);
	k->copy = (uintptr_t)copy;
	k->inherited = sh_madvise(start, k->len, MADV_DONTFORK) != 0;
	count++;
}

typedef void each_fn(uint64_t start, uint64_t end, uint64_t off, int prot);

/*
 * Calls fn for the parts of a mapping that the application does not keep from its children. A part
 * has the same attributes everywhere.
 */
static void each_inherited(uint64_t start, uint64_t end, uint64_t off, int prot, each_fn *fn)
{
	uint64_t next;

	for (uint64_t at = start; at < end; at = next)
		if (!(marks_at(at, end, &next) & MARK_BIT(MARK_DONTFORK)))
			fn(at, next, off + (at - start), prot);
}

static void keep(uint64_t start, uint64_t end, uint64_t off, int prot)
{
	each_inherited(start, end, off, prot, keep_part);
}

static void let_part(uint64_t start, uint64_t end, uint64_t off, int prot)
{
	(void)off;
	(void)prot;
	sh_madvise(start, end - start, MADV_DOFORK);
}

/*
 * In the parent: pages that keep() kept from the child without a note. The kernel does not tell
 * them from those that the application keeps from it.
 */
static void let_inherit(uint64_t start, uint64_t end, uint64_t off, int prot)
{
	each_inherited(start, end, off, prot, let_part);
}

/* In the child: pages that could not be kept from it. */
static void drop(uint64_t start, uint64_t end, uint64_t off, int prot)
{
	(void)off;
	(void)prot;
	sh_munmap((void *)(uintptr_t)start, end - start);
}

/* Device memory in the place of the program's own pages. */
static bool is_exchanged(const struct mapping *m)
{
	return shim_memory_is(m->dev, m->ino) && !sh_memory_is_base(&shim_dev, m->start, m->off) &&
	       m->off < shim_dev.size && m->end - m->start <= shim_dev.size - m->off;
}

/*
 * For want of /proc/self/maps: the table says what may be mapped, shim_is_shared() what still is.
 */
static void each_in_table(const struct ranges *t, each_fn *fn)
{
	for (size_t i = 0; i < t->count; i++) {
		struct range r = t->at[i];
		uint64_t len;

		for (uint64_t done = 0; done < r.len; done += len) {
			bool shared = shim_is_shared(r.uaddr + done);

			for (len = SHIM_PAGE;
			     done + len < r.len && shim_is_shared(r.uaddr + done + len) == shared;
			     len += SHIM_PAGE)
				;
			if (shared)
				fn(r.uaddr + done, r.uaddr + done + len, r.shm + done,
				   PROT_READ | PROT_WRITE);
		}
	}
}

/*
 * All signals but SIGSYS: where a filter of system calls has the program answer (SECCOMP_RET_TRAP),
 * the kernel ends a thread that blocks it.
 */
#define SYS	    (UINT64_C(1) << (SIGSYS - 1))
#define ALL_BUT_SYS ~SYS

/*
 * SIGSYS as well, while copies for the child are made, which would miss what a handler stored, and
 * until they are in place.
 */
static void hush(int how)
{
	uint64_t sys = SYS & ~forking.mask;

	syscall(SYS_rt_sigprocmask, how, &sys, NULL, sizeof(sys));
}

/* Calls fn for each mapping of device memory but the process's own mapping of all of it. */
static void each(each_fn *fn)
{
	struct mapping m;
	struct maps maps;
	int err = maps_open(&maps);

	hush(SIG_BLOCK);
	if (err) {
		each_in_table(shim_share_queues(), fn);
		each_in_table(shim_share_regions(), fn);
	} else {
		while (maps_next(&maps, &m))
			if (is_exchanged(&m))
				fn(m.start, m.end, m.off, mapping_prot(&m));
	}
	hush(SIG_UNBLOCK);
	if (!err)
		maps_close(&maps);
}

EXPORT int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void),
			     void *dso);

/*
 * The shim's handlers are registered first: the one before a fork then runs last, and the one in
 * the child first.
 */
EXPORT int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void),
			     void *dso)
{
	(void)shim_active();
	return REAL(__register_atfork)(prepare, parent, child, dso);
}

static void prepare(void)
{
	uint64_t here = (uintptr_t)__builtin_frame_address(0), most = ALL_BUT_SYS;

	forking.lists = forking.held = forking.blocked = false;
	/* This includes the stack, in case the C library forks without a call of fork() below. */
	if (shim_dev.inst)
		(void)shim_make_private_first(here, here + 1);
	/*
	 * A handler that ran in the child before its pages are in place would miss them, and one
	 * that forks would wait for the locks of this fork for ever. First of all: a signal that is
	 * put off while the thread takes the connection would change the mask that is restored.
	 */
	syscall(SYS_rt_sigprocmask, SIG_BLOCK, &most, &forking.mask, sizeof(most));
	forking.blocked = true;
	/*
	 * Not before the process uses a device: each fork() would take longer, and a process that a
	 * filter of system calls has confined may be ended for a look at its descriptors.
	 */
	if (!shim_dev.inst)
		return;
	still_fork();
	if (!shim_control_mine()) {
		shim_control_hold();
		forking.held = true;
	}
	count = 0;
	forking.lists = true;
	pthread_mutex_lock(&listing);
	each(keep);
}

void shim_fork_prepare(void)
{
	prepare();
	/* Last: what comes before it may map more of device memory. */
	sh_memory_hold();
	hush(SIG_BLOCK);
}

void shim_fork_unblock(void)
{
	uint64_t before = forking.mask;

	if (forking.blocked) {
		forking.blocked = false;
		syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof(before));
	}
}

void shim_fork_parent(void)
{
	hush(SIG_UNBLOCK);
	sh_memory_let_go();
	if (!forking.lists) {
		shim_fork_unblock();
		return;
	}
	for (size_t i = 0; i < count; i++) {
		if (!list[i].inherited)
			sh_madvise(list[i].start, list[i].len, MADV_DOFORK);
		if (list[i].copy)
			sh_munmap((void *)(uintptr_t)list[i].copy, list[i].len);
	}
	if (unlisted)
		each(let_inherit);
	unlisted = false;
	count = 0;
	forking.lists = false;
	pthread_mutex_unlock(&listing);
	if (forking.held)
		shim_control_put();
	forking.held = false;
	shim_fork_unblock();
}

/*
 * In the child: is the place free? Another thread of the parent may have mapped something else
 * there the moment before. That mapping is the child's.
 */
static bool is_free(const struct kept *k)
{
	int err;

	return sh_mmap((void *)(uintptr_t)k->start, k->len, PROT_NONE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0,
		       &err) != NULL;
}

void shim_fork_child(void)
{
	listing = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	for (size_t i = 0; forking.lists && i < count; i++) {
		struct kept *k = &list[i];
		void *to = (void *)(uintptr_t)k->start, *copy = (void *)(uintptr_t)k->copy;
		long at = -ENOMEM;

		if (!k->inherited && !is_free(k)) {
			if (copy)
				sh_munmap(copy, k->len);
			continue;
		}
		if (copy && k->prot != (PROT_READ | PROT_WRITE))
			sh_sys(syscall(SYS_mprotect, copy, k->len, (long)k->prot));
		if (copy)
			at = sh_sys(syscall(SYS_mremap, copy, k->len, k->len,
					    MREMAP_MAYMOVE | MREMAP_FIXED, to));
		if (at < 0 && at > -4096) {
			sh_munmap(to, k->len);
			if (copy)
				sh_munmap(copy, k->len);
		}
	}
	hush(SIG_UNBLOCK);
	if (forking.lists && unlisted)
		each(drop);
	unlisted = false;
	count = 0;
	forking.lists = forking.held = false;
}

/* ---- on a stack that the child has from the start ---- */

#define STACK (4 << 20) /* address space only; handlers of the application run on it */

static int fork_there(void *arg)
{
	pid_t pid = REAL(fork)();

	*(int *)arg = errno;
	return pid;
}

/*
 * Calls fn, which forks, on a stack that the child has: the thread's may lie in memory that the
 * application has registered, a coroutine's for instance.
 */
static pid_t fork_by(int (*fn)(void *err))
{
	int pid, err = 0;

	if (!shim_shares_now((uintptr_t)__builtin_frame_address(0), 1)) {
		pid = fn(&err);
		errno = err;
		return pid;
	}
	pid = stack_new(STACK, fn, &err);
	if (pid < 0)
		errno = pid == -ENOMEM ? ENOMEM : err;
	else
		errno = err;
	return pid < 0 ? -1 : pid;
}

/* Could a child have all of the pages? Makes its copies, and takes them back. */
static bool has_room(void)
{
	bool has;

	shim_fork_prepare();
	has = !unlisted;
	for (size_t i = 0; forking.lists && i < count; i++)
		has &= list[i].copy != 0;
	shim_fork_parent();
	return has;
}

static bool is_limited(int what)
{
	struct rlimit limit;

	return !syscall(SYS_prlimit64, 0, what, NULL, &limit) && limit.rlim_cur != RLIM_INFINITY;
}

/*
 * Where a limit may leave no room for copies, makes sure that the child will have all pages, either
 * as copies or because they are private by then. They stay private afterwards. Asks for no limit
 * under a seccomp filter, which may end the process for the question. 0, or -ENOMEM.
 */
static int find_room(void)
{
	if (!shim_shares_any() || sandboxed() ||
	    (!is_limited(RLIMIT_AS) && !is_limited(RLIMIT_DATA)) || has_room())
		return 0;
	(void)shim_make_private_first(0, UINT64_MAX);
	if (has_room())
		return 0;
	shim_say("fork() fails: the limits of memory (ulimit -v, ulimit -d) leave no room for a "
		 "child's copy of memory that is registered; raise them, or fork before memory is "
		 "registered");
	return -ENOMEM;
}

EXPORT pid_t fork(void)
{
	int err;

	if (!shim_active())
		return REAL(fork)();
	/* The child's C library would miss what it has in pages that the child gets only later. */
	err = shim_dev.inst ? shim_make_private_first(0, 0) : 0;
	if (err == -ENOMEM && has_room())
		err = 0;
	else if (shim_dev.inst && (!err || err == -EBUSY))
		err = find_room();
	if (err == -EAGAIN || err == -ENOTCONN || err == -ENOMEM) {
		errno = err == -ENOMEM ? ENOMEM : EAGAIN;
		return -1;
	}
	return fork_by(fork_there);
}

/* Of glibc since 2.34. Headers of earlier ones do not have it. */
EXPORT pid_t _Fork(void);

/*
 * fork() without the handlers of the program and of libraries, for signal handlers. What the shim
 * does around fork() it does here as well.
 */
static int bare_fork_there(void *arg)
{
	pid_t pid;
	int err;

	shim_fork_prepare();
	pid = REAL(_Fork)();
	err = errno;
	if (!pid) {
		shim_forked();
		sh_exec_forked();
	} else {
		shim_fork_parent();
	}
	/* The caller's stack, which the child may have had no pages of until now. */
	*(int *)arg = err;
	return pid;
}

EXPORT pid_t _Fork(void)
{
	if (!REAL(_Fork)) {
		errno = ENOSYS;
		return -1;
	}
	return shim_active() ? fork_by(bare_fork_there) : REAL(_Fork)();
}
