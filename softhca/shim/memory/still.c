// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Tells when pages of a process can be exchanged unnoticed for others with the same contents. No
 * other thread may run: it could store to the pages in between, sleep on a word in them or read
 * into them. The kernel must not have been lent any of them (rings of asynchronous I/O, pages that
 * vmsplice() gave to a pipe or that a userfaultfd is to fill). No process of the instance may reach
 * into this one, by process_vm_writev() or for the device: such a process waits (host/moves.c).
 * Protection would not hold it off, since the kernel writes to pages that it has pinned without a
 * fault.
 *
 * Owns the stack on which exchanges run. The thread that holds the control connection uses it.
 */
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>

#include "softhca/device/memory/thread_pointer.h"
#include "softhca/host/moves.h"
#include "softhca/host/process.h"
#include "softhca/host/sys.h"
#include "alone.h"
#include "softhca/shim/attach.h"
#include "softhca/shim/interpose.h"
#include "softhca/shim/signals/handlers.h"
#include "maps.h"
#include "memory.h"
#include "rings.h"
#include "share.h"
#include "softhca/shim/stack.h"
#include "still.h"

#define STACK (64 << 10)

/*
 * A pipe, a userfaultfd of the program's, or a ring that another process has as well, has pages of
 * this process. This stays set: nothing tells when the pipe's reader has read them, or what the
 * other process has done with the userfaultfd or the ring by now.
 */
static bool lent;
static bool rings;	/* of asynchronous I/O, at the last look */
static TLS bool passes; /* the fork of this thread gives a ring to the child */
static pthread_mutex_t looking = PTHREAD_MUTEX_INITIALIZER; /* for rings, before a fork */
/* What the C library keeps of a thread, in bytes below and above the thread pointer. */
static uint64_t local_below, local_above;
static char *stack;

/* ---- this process ---- */

/* 1: there is one, or one that children inherit; 0: there is none; or -errno. */
static int rings_mapped(struct maps *maps, bool inherited)
{
	struct mapping m;
	bool found = false;
	int err = maps_open(maps);

	if (err)
		return err;
	while (!found && maps_next(maps, &m))
		found = inherited ? m.uring : m.rings;
	maps_close(maps);
	return found;
}

/* A process that has no descriptor left has hardly made a ring since the last look. */
static int or_last(int found)
{
	return found == -EMFILE || found == -ENFILE ? rings : found;
}

bool still_alone(void)
{
	struct maps maps;
	int found;

	/* The threads of a parent whose memory this process uses are not to be seen. */
	if (still_lent() || shim_borrowed() || !alone())
		return false;
	found = rings_mapped(&maps, false);
	if (!found)
		found = rings_unmapped();
	if (found >= 0)
		rings = found;
	return !or_last(found);
}

bool still_writes(uint64_t start, uint64_t end)
{
	uint64_t mine = sh_thread_pointer(), low, high;

	/*
	 * The kernel stores here as well: the processor that a thread runs on, and a child's number
	 * at fork().
	 */
	if (start < mine + local_above && end > mine - local_below)
		return true;
	if (start < (uintptr_t)stack + STACK && end > (uintptr_t)stack)
		return true;
	return sh_process_helper_memory(&low, &high) && start < high && end > low;
}

/*
 * The kernel pins pages for a ring as long as the ring exists, which it does as long as any process
 * has it. So the pages stay pinned when this process has closed and unmapped its own, and nothing
 * in it shows them. The same holds for what the child lends the ring. (The contexts of libaio are
 * not inherited.) An error does not matter: without /proc the process is never still.
 */
void still_fork(void)
{
	/* A handler that forks may have a small stack. */
	static struct maps maps;
	int found;

	pthread_mutex_lock(&looking);
	found = rings_mapped(&maps, true);
	pthread_mutex_unlock(&looking);
	if (!found)
		found = rings_held();
	passes = or_last(found) > 0;
	if (passes)
		__atomic_store_n(&lent, true, __ATOMIC_RELAXED);
}

void still_forked(void)
{
	looking = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	lent = passes;
}

/* The thread pointer lies between a thread's variables and its descriptor. */
void still_init(void)
{
	const uint32_t *known = dlsym(RTLD_DEFAULT, "_thread_db_sizeof_pthread");
	uint64_t descriptor = known ? *known : SHIM_PAGE;

#ifdef __x86_64__
	/* The size of the variables includes the descriptor's. */
	local_below = sh_thread_size() - (known ? descriptor : 0);
	local_above = descriptor;
#else
	local_below = descriptor;
	local_above = sh_thread_size();
#endif
}

/* ---- other processes ---- */

typedef ssize_t vm_call(pid_t, const struct iovec *, unsigned long, const struct iovec *,
			unsigned long, unsigned long);

/* MPI libraries copy with these calls. The other process may have pages to exchange. */
static ssize_t reach(vm_call *real, pid_t pid, const struct iovec *local, unsigned long nlocal,
		     const struct iovec *remote, unsigned long nremote, unsigned long flags)
{
	struct sh_reach r;
	ssize_t ret;
	int err;

	if (!shim_active() || pid <= 0 || (!shim_dev.inst && !shim_refresh()))
		return real(pid, local, nlocal, remote, nremote, flags);
	/* A handler that jumped away would leave this thread announced for as long as it lives. */
	shim_handlers_wait();
	sh_reach_by_program(&shim_dev.inst->moves, &r, (uint32_t)pid, remote, nremote);
	ret = real(pid, local, nlocal, remote, nremote, flags);
	err = errno;
	sh_reach_end(&shim_dev.inst->moves, &r);
	shim_handlers_go_on();
	errno = err;
	return ret;
}

EXPORT ssize_t process_vm_writev(pid_t pid, const struct iovec *local, unsigned long nlocal,
				 const struct iovec *remote, unsigned long nremote,
				 unsigned long flags)
{
	return reach(REAL(process_vm_writev), pid, local, nlocal, remote, nremote, flags);
}

EXPORT ssize_t process_vm_readv(pid_t pid, const struct iovec *local, unsigned long nlocal,
				const struct iovec *remote, unsigned long nremote,
				unsigned long flags)
{
	return reach(REAL(process_vm_readv), pid, local, nlocal, remote, nremote, flags);
}

bool still_lent(void)
{
	return __atomic_load_n(&lent, __ATOMIC_RELAXED);
}

int still_lend(void)
{
	if (!shim_active() || still_lent())
		return 0;
	if (shim_make_private_first(0, UINT64_MAX) == -EAGAIN)
		return -EAGAIN;
	__atomic_store_n(&lent, true, __ATOMIC_RELAXED);
	return 0;
}

int still_lend_range(const void *arg)
{
	struct uffdio_register r;
	int err = still_lend();

	/*
	 * Beside threads memory may stay device memory. Its pages can be protected from stores, but
	 * never go missing.
	 */
	if (!err && shim_active() && !sh_peek(&r, (uintptr_t)arg, sizeof(r)) && r.range.len &&
	    r.mode != UFFDIO_REGISTER_MODE_WP && shim_shares_now(r.range.start, r.range.len))
		err = -ENOMEM;
	return err;
}

/* What the process stores to such pages goes to the pipe, too, until they have been read. */
EXPORT ssize_t vmsplice(int fd, const struct iovec *iov, size_t n, unsigned int flags)
{
	if (still_lend()) {
		errno = ENOMEM;
		return -1;
	}
	return REAL(vmsplice)(fd, iov, n, flags);
}

/* Under a root without /proc nothing tells any more whether the process is alone. */
EXPORT int chroot(const char *path)
{
	if (shim_active() && shim_make_private_first(0, UINT64_MAX) == -EAGAIN) {
		errno = ENOMEM;
		return -1;
	}
	return REAL(chroot)(path);
}

/* ---- on a stack of this library's ---- */

#define ALL ~UINT64_C(0)
#define SYS (UINT64_C(1) << (SIGSYS - 1))

static uint64_t mask; /* the caller's */

static void block(uint64_t set)
{
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &set, NULL, sizeof(set));
}

void still_hush(void)
{
	block(ALL);
}

void still_unhush(void)
{
	block(ALL & ~(SYS & ~mask));
}

int still_on_own_stack(int (*fn)(void *), void *arg)
{
	uint64_t all = ALL;
	static struct stack_call call;

	if (!STACK_OTHER)
		return -EBUSY;
	if (!stack)
		stack = sh_pages(STACK);
	if (!stack)
		return -ENOMEM;
	call = (struct stack_call){.fn = fn, .arg = arg};
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &mask, sizeof(all));
	stack_at(stack + STACK, &call);
	block(mask);
	return call.result;
}

static struct {
	int (*fn)(void *);
	void *arg;
} job;

static int word; /* of the piece that is being exchanged; negative: there is none */

int still_piece(uint64_t start, uint64_t end)
{
	struct sh_moves *moves = &shim_dev.inst->moves;

	word = word < 0 ? sh_move_begin(moves, start, end) : sh_move_next(moves, word, start, end);
	return word < 0 ? word : 0;
}

static int run_still(void *arg)
{
	int err;

	(void)arg;
	still_unhush();
	if (!still_alone())
		return -EBUSY;
	word = -1;
	err = job.fn(job.arg);
	if (word >= 0)
		sh_move_end(&shim_dev.inst->moves, word);
	return err;
}

int still_run(int (*fn)(void *), void *arg)
{
	job.fn = fn;
	job.arg = arg;
	return still_on_own_stack(run_still, NULL);
}
