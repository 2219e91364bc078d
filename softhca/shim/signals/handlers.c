// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Handlers of the application wait until their thread is out of device code, off the control
 * connection, and not about to open or close a descriptor of this library's (host/descriptors.h).
 * On a card they interrupt none of that. A handler that uses the connection itself would wait for
 * its own thread for ever; one that jumps away with siglongjmp(), throws or ends the thread would
 * leave locks held and doorbells lost. From just before the process's first request on, this
 * library's handler is installed in front of each. If the thread is inside, that handler blocks the
 * signals that can wait, sends the thread the same signal again and returns. The thread unblocks
 * them when it is out, and the kernel delivers what has come. Where the user's signals use up the
 * queue (RLIMIT_SIGPENDING), the kernel takes a signal without what belongs to it: that is kept
 * here. Signals about what the thread itself does (SIGSEGV and its kin, abort()) are left alone.
 *
 * sigaction() writes the table and may run in a handler. So there is no lock, and each entry is
 * written before its handler is installed.
 */
#include <signal.h>
#include <string.h>
#include <ucontext.h>

#include "softhca/device/memory/exec.h"
#include "softhca/host/descriptors.h"
#include "softhca/host/sys.h"
#include "softhca/shim/attach.h"
#include "softhca/shim/compiler.h"
#include "alternate.h"
#include "handlers.h"
#include "softhca/shim/interpose.h"
#include "signals.h"
#include "softhca/shim/stack.h"

#define BIT(sig) (UINT64_C(1) << ((sig)-1))
#define CANNOT_WAIT                                                                                \
	(BIT(SIGSEGV) | BIT(SIGBUS) | BIT(SIGILL) | BIT(SIGFPE) | BIT(SIGTRAP) | BIT(SIGSYS) |     \
	 BIT(SIGABRT))
#define OURS_TO_SAY                                                                                \
	(SA_SIGINFO | (int)SA_RESETHAND) /* this library acts on these, not the kernel */

typedef void handler_fn(int, siginfo_t *, void *);

static struct wanted {
	handler_fn *handler;
	int flags;
} wanted[NSIG];
static int guarding; /* the process that guards its handlers; 0: no process does */
static int adopting; /* a thread adopts all handlers; set before guarding */
static TLS struct {
	bool held;
	uint64_t mask; /* to restore */
} hold;
static TLS unsigned int waits; /* calls of shim_handlers_wait() */

#define FIRST_QUEUED 32 /* below are signals that are pending once at most */
#define KEPT	     4
/*
 * What belongs to signals that this thread has sent itself, and that the kernel may not have: in
 * their order. Signals that can wait are blocked while it changes.
 */
static TLS struct {
	siginfo_t info[KEPT];
	unsigned int n;
} kept;

/* The only use of the real function, so that its address is known before a handler needs it. */
static int real_sigaction(int sig, const struct sigaction *act, struct sigaction *old)
{
	return REAL(sigaction)(sig, act, old);
}

static uint64_t set_mask(uint64_t mask)
{
	uint64_t old = 0;

	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, &old, sizeof(mask));
	return old;
}

/* What this thread is in, but for device code; its end calls shim_signals_release(). */
static bool busy(void)
{
	return waits || shim_control_mine() || stack_on_spare() || sh_section_guarded();
}

void shim_signals_release(void)
{
	if (!hold.held || sh_inside() || busy())
		return;
	hold.held = false;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	set_mask(hold.mask);
}

void shim_handlers_wait(void)
{
	waits++;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

void shim_handlers_go_on(void)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	waits--;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	shim_signals_release();
}

static bool send_myself(int sig, const siginfo_t *info)
{
	return sh_sys(syscall(SYS_rt_tgsigqueueinfo, getpid(), (int)syscall(SYS_gettid), sig,
			      info)) >= 0;
}

/* The kernel takes this always, by itself for all that are pending at the same time. */
static bool send_bare(int sig)
{
	siginfo_t info = {.si_signo = sig, .si_code = SI_USER};

	return send_myself(sig, &info);
}

/*
 * Without room in the queue the kernel refuses a signal that is queued, and takes another one of
 * the program's without what belongs to it.
 */
static bool send_again(int sig, const siginfo_t *info)
{
	bool keeps = kept.n < KEPT && info->si_signo == sig;

	if (sig < FIRST_QUEUED && info->si_code >= 0)
		keeps = false;
	if (send_myself(sig, info)) {
		if (sig < FIRST_QUEUED && keeps)
			kept.info[kept.n++] = *info;
		return true;
	}
	if (!keeps || !send_bare(sig))
		return false;
	kept.info[kept.n++] = *info;
	return true;
}

/* Gives a signal that is being delivered what was kept for it. */
static void complete(int sig, siginfo_t *info)
{
	bool bare = info->si_code == SI_USER && !info->si_pid, more = false;
	uint64_t before;
	unsigned int n = 0;

	if (likely(!kept.n))
		return;
	before = set_mask(~CANNOT_WAIT);
	for (unsigned int i = 0; i < kept.n; i++) {
		if (kept.info[i].si_signo == sig && bare) {
			*info = kept.info[i];
			bare = false;
		} else if (kept.info[i].si_signo == sig && sig < FIRST_QUEUED) {
			continue; /* it has come with what belongs to it, or as one with others */
		} else {
			more |= kept.info[i].si_signo == sig;
			kept.info[n++] = kept.info[i];
		}
	}
	kept.n = n;
	if (more)
		(void)send_bare(sig);
	set_mask(before);
}

/* The signal has interrupted this thread inside: the thread gets it again when it is out. */
static bool put_off(int sig, siginfo_t *info, ucontext_t *uc)
{
	uint64_t before, interrupted, later;

	if (!sh_after_leave(shim_signals_release) && !busy())
		return false;
	before = set_mask(~CANNOT_WAIT);
	if (!send_again(sig, info)) {
		set_mask(before);
		return false;
	}
	/*
	 * If handlers interrupt one another, the lowest writes last. It knows the mask of the
	 * interrupted code.
	 */
	memcpy(&interrupted, &uc->uc_sigmask, sizeof(interrupted));
	hold.mask = interrupted;
	hold.held = true;
	later = interrupted | ~CANNOT_WAIT;
	memcpy(&uc->uc_sigmask, &later, sizeof(later));
	return true;
}

static void on_signal(int sig, siginfo_t *info, void *context)
{
	static const struct sigaction none = {.sa_handler = SIG_DFL};
	struct wanted *w = &wanted[sig];
	handler_fn *handler;
	int saved = errno;

	if (put_off(sig, info, context)) {
		errno = saved;
		return;
	}
	complete(sig, info);
	handler = __atomic_load_n(&w->handler, __ATOMIC_ACQUIRE);
	if (!handler || __atomic_load_n(&w->flags, __ATOMIC_ACQUIRE) & (int)SA_RESETHAND)
		real_sigaction(sig, &none, NULL);
	/*
	 * The program got this function from the kernel itself, and set it for a signal that has no
	 * handler. The signal comes again when this returns.
	 */
	if (!handler)
		(void)send_myself(sig, info);
	errno = saved;
	if (handler) {
		bool blocked = sigismember(&((ucontext_t *)context)->uc_sigmask, SIGBUS) == 1;

		bool alternate = alternate_begin(context);

		handler(sig, info, context);
		if (alternate)
			alternate_end();
		/* In the program's handler for SIGBUS that was so before. */
		if (!blocked)
			shim_signals_handled(context);
	}
}

static bool has_handler(const struct sigaction *act)
{
	return act->sa_handler != SIG_DFL && act->sa_handler != SIG_IGN &&
	       act->sa_handler != SIG_ERR && act->sa_sigaction != on_signal;
}

static bool may_wait(int sig)
{
	return sig > 0 && sig < NSIG && !(CANNOT_WAIT & BIT(sig));
}

static void want(int sig, handler_fn *handler, int flags)
{
	__atomic_store_n(&wanted[sig].handler, handler, __ATOMIC_RELEASE);
	__atomic_store_n(&wanted[sig].flags, flags, __ATOMIC_RELEASE);
}

/* Reports the action as the application set it. */
static void translate(int sig, struct sigaction *old, const struct wanted *was)
{
	if (!may_wait(sig) || old->sa_sigaction != on_signal || !was->handler)
		return;
	old->sa_sigaction = was->handler;
	old->sa_flags = (old->sa_flags & ~OURS_TO_SAY) | (was->flags & OURS_TO_SAY);
}

/*
 * The action that goes to the kernel in place of a handler; the handler goes into the table. A
 * program that got this library's function from the kernel itself and sets it again means the
 * handler in the table, which stays.
 */
static struct sigaction in_front(int sig, const struct sigaction *act)
{
	struct sigaction ours = *act;

	if (has_handler(act))
		want(sig, act->sa_sigaction, act->sa_flags);
	ours.sa_sigaction = on_signal;
	ours.sa_flags = (ours.sa_flags & ~OURS_TO_SAY) | SA_SIGINFO;
	return ours;
}

static int change(int sig, const struct sigaction *act, struct sigaction *old)
{
	struct wanted was = wanted[sig];
	struct sigaction copy;
	int ret;

	/* A child of vfork() has handlers of its own, but shares this memory with its parent. */
	if (act && (has_handler(act) || act->sa_sigaction == on_signal) && guarding == getpid()) {
		copy = in_front(sig, act);
		act = &copy;
	}
	ret = real_sigaction(sig, act, old);
	if (ret < 0 && act == &copy)
		want(sig, was.handler, was.flags);
	if (!ret && old)
		translate(sig, old, &was);
	return ret;
}

static bool guarded(int sig)
{
	return may_wait(sig) && __atomic_load_n(&guarding, __ATOMIC_ACQUIRE) == getpid();
}

static bool same(const struct sigaction *a, const struct sigaction *b)
{
	return a->sa_sigaction == b->sa_sigaction && a->sa_flags == b->sa_flags &&
	       !memcmp(&a->sa_mask, &b->sa_mask, sizeof(uint64_t));
}

/*
 * A thread that began its sigaction() before guarding was set may set another action between the
 * look at the old one and its replacement. The replacement returns that action, and the next turn
 * of the loop puts it in. Each such thread comes here for its own action before it goes on, so the
 * loop ends.
 */
static void adopt(int sig)
{
	struct sigaction now = {0}, put, was = {0}, expected;

	if (real_sigaction(sig, NULL, &now) < 0 || !has_handler(&now))
		return;
	expected = now;
	for (;;) {
		put = has_handler(&now) ? in_front(sig, &now) : now;
		if (real_sigaction(sig, &put, &was) < 0 || was.sa_sigaction == on_signal ||
		    same(&was, &expected))
			return;
		expected = put;
		now = was;
	}
}

/*
 * Waits until the thread that makes the first request has adopted all handlers. That thread is
 * never the caller: its handlers do not run meanwhile.
 */
static void await_adoption(void)
{
	for (unsigned int turn = 0; __atomic_load_n(&adopting, __ATOMIC_ACQUIRE); turn++)
		sh_give_way(turn);
}

int shim_handlers_change(int sig, const struct sigaction *act, struct sigaction *old)
{
	struct wanted was;
	int ret;

	if (may_wait(sig) && __atomic_load_n(&guarding, __ATOMIC_ACQUIRE)) {
		if (guarded(sig))
			await_adoption();
		return change(sig, act, old);
	}
	ret = real_sigaction(sig, act, old);
	if (ret < 0 || !guarded(sig))
		return ret;
	/* Another thread has begun the first request in the meantime. */
	await_adoption();
	was = wanted[sig];
	if (old)
		translate(sig, old, &was);
	if (act)
		adopt(sig);
	return ret;
}

sighandler_t shim_handlers_adopt(int sig, sighandler_t old)
{
	struct sigaction before = {.sa_handler = old};
	struct wanted was;

	if (!may_wait(sig))
		return old;
	if (guarded(sig))
		await_adoption();
	was = wanted[sig];
	translate(sig, &before, &was);
	if (guarded(sig))
		adopt(sig);
	return before.sa_handler;
}

static void adopt_all(void)
{
	for (int sig = 1; sig < NSIG; sig++)
		if (may_wait(sig))
			adopt(sig);
}

static void begin(void)
{
	uint64_t before;
	int none = 0;

	/* A handler of this thread would wait for the adoption for ever. */
	before = set_mask(~UINT64_C(0));
	if (!__atomic_exchange_n(&adopting, 1, __ATOMIC_ACQ_REL)) {
		if (__atomic_compare_exchange_n(&guarding, &none, getpid(), false, __ATOMIC_ACQ_REL,
						__ATOMIC_ACQUIRE))
			adopt_all();
		sh_section_guard(shim_signals_release);
		__atomic_store_n(&adopting, 0, __ATOMIC_RELEASE);
	}
	set_mask(before);
}

void shim_handlers_begin(void)
{
	if (unlikely(!__atomic_load_n(&guarding, __ATOMIC_ACQUIRE)))
		begin();
	/*
	 * A request of this thread must not be interrupted by a handler that another thread has yet
	 * to adopt. In a child of the system call clone() no thread adopts any.
	 */
	for (unsigned int turn = 0;
	     unlikely(__atomic_load_n(&adopting, __ATOMIC_ACQUIRE)) && guarding == getpid(); turn++)
		sh_give_way(turn);
}

void shim_handlers_forked(void)
{
	bool unfinished = adopting && guarding;

	if (guarding)
		guarding = getpid();
	/* The thread that was at it is the parent's. */
	if (unfinished)
		adopt_all();
	adopting = 0;
}
