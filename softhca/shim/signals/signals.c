// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * SIGBUS stays with this library, and unblocked, once a device is open. This file stores what the
 * application wants for SIGBUS, tells it when asked, and acts on it. app_lock protects the stored
 * action. The handler reads it without the lock: it could read a torn action only if a SIGBUS of
 * the application came during its own sigaction().
 */
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "softhca/host/sys.h"
#include "softhca/shim/attach.h"
#include "softhca/shim/compiler.h"
#include "handlers.h"
#include "softhca/shim/interpose.h"
#include "signals.h"
#include "softhca/shim/stack.h"

#ifndef SS_AUTODISARM
#define SS_AUTODISARM (1U << 31)
#endif

static struct sigaction app;		      /* what the application set for SIGBUS */
static void (*own)(int, siginfo_t *, void *); /* NULL: the real action is the application's */
static pid_t owner;			      /* the process that all this is about */
static pthread_mutex_t app_lock = PTHREAD_MUTEX_INITIALIZER;
/*
 * No handler of this thread comes while it has the lock: it could call sigaction() itself, or jump
 * away.
 */
static uint64_t lock_app(void)
{
	uint64_t all = ~(UINT64_C(1) << (SIGBUS - 1)), before = 0;

	syscall(SYS_rt_sigprocmask, SIG_BLOCK, &all, &before, sizeof(all));
	pthread_mutex_lock(&app_lock);
	return before;
}

static void unlock_app(uint64_t before)
{
	pthread_mutex_unlock(&app_lock);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof(before));
}

static TLS bool app_blocks; /* this thread believes that it blocks SIGBUS */

EXPORT int sigaction(int sig, const struct sigaction *act, struct sigaction *old);
EXPORT int sigprocmask(int how, const sigset_t *set, sigset_t *old);
EXPORT int pthread_sigmask(int how, const sigset_t *set, sigset_t *old);

sigset_t shim_signals_without_bus(const sigset_t *set)
{
	sigset_t copy = *set;

	sigdelset(&copy, SIGBUS);
	return copy;
}

const sigset_t *shim_signals_open_mask(const sigset_t *set, sigset_t *room)
{
	if (!set || !shim_active() || sigismember(set, SIGBUS) != 1)
		return set;
	*room = shim_signals_without_bus(set);
	return room;
}

void shim_signals_open(void)
{
	uint64_t bus = UINT64_C(1) << (SIGBUS - 1), old = 0;

	syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &bus, &old, sizeof(bus));
	app_blocks = old & bus;
}

void shim_signals_init(void)
{
	sigset_t bus;

	owner = getpid();
	/* A process image that inherited SIGBUS blocked would die at its first doorbell. */
	sigemptyset(&bus);
	sigaddset(&bus, SIGBUS);
	REAL(pthread_sigmask)(SIG_UNBLOCK, &bus, &bus);
	app_blocks = sigismember(&bus, SIGBUS) == 1;
}

void shim_signals_forked(void)
{
	shim_handlers_forked();
	app_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	owner = getpid();
}

static bool has_handler(const struct sigaction *act)
{
	return act->sa_flags & SA_SIGINFO ||
	       (act->sa_handler != SIG_DFL && act->sa_handler != SIG_IGN);
}

/*
 * Makes handler the real one. A call that a SIGBUS interrupts, which is then none of the trap's,
 * goes on as the application has asked. Its stack is not for the kernel: device code may take more
 * than there is.
 */
static int make_real(void (*handler)(int, siginfo_t *, void *), const struct sigaction *asked)
{
	struct sigaction act = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART};

	if (has_handler(asked) && !(asked->sa_flags & SA_RESTART))
		act.sa_flags &= ~SA_RESTART;
	/*
	 * The handler runs device code: a handler of the application must not ring a doorbell
	 * inside it.
	 */
	sigfillset(&act.sa_mask);
	return REAL(sigaction)(SIGBUS, &act, NULL);
}

int shim_signals_own(void (*handler)(int, siginfo_t *, void *))
{
	struct sigaction now;
	uint64_t mask;
	int err = 0;

	mask = lock_app();
	if (REAL(sigaction)(SIGBUS, NULL, &now) < 0) {
		err = -errno;
	} else if (!(now.sa_flags & SA_SIGINFO) || now.sa_sigaction != handler) {
		if (make_real(handler, &now) < 0) {
			err = -errno;
		} else {
			app = now;
			owner = getpid(); /* a child of clone() has no other occasion */
			__atomic_store_n(&own, handler, __ATOMIC_RELEASE);
		}
	}
	unlock_app(mask);
	return err;
}

struct delivery {
	const struct sigaction *act;
	int sig;
	siginfo_t *info;
	void *context;
};

static int deliver(void *arg)
{
	const struct delivery *d = arg;

	if (d->act->sa_flags & SA_SIGINFO)
		d->act->sa_sigaction(d->sig, d->info, d->context);
	else
		d->act->sa_handler(d->sig);
	return 0;
}

/*
 * The same on the stack that the application has for handlers, if this thread is not on it already.
 */
static void deliver_on_stack(struct delivery *d)
{
	struct stack_call call = {.fn = deliver, .arg = d};
	const stack_t none = {.ss_flags = SS_DISABLE};
	stack_t stack;

	if (sh_sys(syscall(SYS_sigaltstack, NULL, &stack)) ||
	    stack.ss_flags & (SS_DISABLE | SS_ONSTACK)) {
		deliver(d);
		return;
	}
	/* As the kernel does it; it gives the stack back when the handler returns. */
	if (stack.ss_flags & (int)SS_AUTODISARM)
		sh_sys(syscall(SYS_sigaltstack, &none, NULL));
	stack_at((char *)(((uintptr_t)stack.ss_sp + stack.ss_size) & ~UINT64_C(15)), &call);
}

void shim_signals_chain(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	struct sigaction act = app;
	struct delivery d = {&act, sig, info, context};
	sigset_t mask;

	if (info->si_code <= 0 && !(act.sa_flags & SA_SIGINFO) && act.sa_handler == SIG_IGN)
		return;
	if (!has_handler(&act)) {
		/*
		 * Restores the kernel's own action. The instruction faults again, or the signal is
		 * sent again.
		 */
		act.sa_handler = SIG_DFL;
		REAL(sigaction)(SIGBUS, &act, NULL);
		if (info->si_code <= 0)
			syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), sig);
		return;
	}
	if (act.sa_flags & (int)SA_RESETHAND) {
		app.sa_handler = SIG_DFL;
		app.sa_flags &= ~SA_SIGINFO;
	}
	sigorset(&mask, &uc->uc_sigmask, &act.sa_mask);
	if (act.sa_flags & SA_NODEFER)
		sigdelset(&mask, SIGBUS);
	else
		sigaddset(&mask, SIGBUS);
	REAL(pthread_sigmask)(SIG_SETMASK, &mask, NULL);
	if (act.sa_flags & SA_ONSTACK)
		deliver_on_stack(&d);
	else
		deliver(&d);
}

/* ---- what the application calls ---- */

/*
 * A child of vfork() has actions of its own, but shares this memory with its parent, which gets to
 * see what the child stores here.
 */
static bool is_owner(void)
{
	return owner == getpid();
}

void shim_signals_handled(void *context)
{
	ucontext_t *uc = context;

	if (!__atomic_load_n(&own, __ATOMIC_ACQUIRE) || sigismember(&uc->uc_sigmask, SIGBUS) != 1)
		return;
	sigdelset(&uc->uc_sigmask, SIGBUS);
	if (is_owner())
		app_blocks = true;
}

/* In a child of vfork(): what is not set there yet is as in the parent. */
static int change_beside(int sig, const struct sigaction *act, struct sigaction *old)
{
	int ret = REAL(sigaction)(sig, act, old);

	if (!ret && old && old->sa_flags & SA_SIGINFO && old->sa_sigaction == own)
		*old = app;
	return ret;
}

EXPORT int sigaction(int sig, const struct sigaction *act, struct sigaction *old)
{
	struct sigaction copy, before;
	uint64_t mask;

	if (!shim_active())
		return REAL(sigaction)(sig, act, old);
	if (sig == SIGBUS && __atomic_load_n(&own, __ATOMIC_ACQUIRE)) {
		if (!is_owner())
			return change_beside(sig, act, old);
		mask = lock_app();
		before = app;
		if (act) {
			app = *act;
			(void)make_real(own, act);
		}
		unlock_app(mask);
		if (old)
			*old = before;
		return 0;
	}
	if (act) {
		copy = *act;
		copy.sa_mask = shim_signals_without_bus(&act->sa_mask);
		act = &copy;
	}
	return shim_handlers_change(sig, act, old);
}

static sighandler_t set_handler(int sig, sighandler_t handler, int flags)
{
	struct sigaction act = {.sa_handler = handler, .sa_flags = flags}, old;

	sigemptyset(&act.sa_mask);
	if (!(flags & (int)SA_RESETHAND))
		sigaddset(&act.sa_mask, sig);
	if (handler == SIG_ERR) {
		errno = EINVAL;
		return SIG_ERR;
	}
	if (sigaction(sig, &act, &old) < 0)
		return SIG_ERR;
	return old.sa_handler;
}

EXPORT sighandler_t signal(int sig, sighandler_t handler)
{
	if (!shim_active())
		return REAL(signal)(sig, handler);
	if (sig != SIGBUS)
		return shim_handlers_adopt(sig, REAL(signal)(sig, handler));
	return set_handler(sig, handler, SA_RESTART);
}

EXPORT sighandler_t bsd_signal(int sig, sighandler_t handler);
EXPORT sighandler_t bsd_signal(int sig, sighandler_t handler)
{
	return set_handler(sig, handler, SA_RESTART);
}

EXPORT sighandler_t __sysv_signal(int sig, sighandler_t handler);
EXPORT sighandler_t __sysv_signal(int sig, sighandler_t handler)
{
	return set_handler(sig, handler, (int)SA_RESETHAND | SA_NODEFER);
}

EXPORT sighandler_t sysv_signal(int sig, sighandler_t handler)
{
	return set_handler(sig, handler, (int)SA_RESETHAND | SA_NODEFER);
}

/*
 * The kernel gets the mask without SIGBUS. The shim remembers what the thread asked for SIGBUS, and
 * reports that.
 */
static int mask_change(int (*real)(int, const sigset_t *, sigset_t *), int how, const sigset_t *set,
		       sigset_t *old)
{
	bool blocked = app_blocks;
	sigset_t copy;
	int ret;

	if (!set)
		goto call;
	if (how == SIG_BLOCK)
		blocked |= sigismember(set, SIGBUS) == 1;
	else if (how == SIG_UNBLOCK)
		blocked &= sigismember(set, SIGBUS) != 1;
	else
		blocked = sigismember(set, SIGBUS) == 1;
	copy = shim_signals_without_bus(set);
	set = &copy;
call:
	ret = real(how, set, old);
	if (ret)
		return ret;
	if (old && app_blocks)
		sigaddset(old, SIGBUS);
	if (app_blocks != blocked && is_owner())
		app_blocks = blocked;
	return 0;
}

EXPORT int sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
	if (!shim_active())
		return REAL(sigprocmask)(how, set, old);
	return mask_change(REAL(sigprocmask), how, set, old);
}

EXPORT int pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
	if (!shim_active())
		return REAL(pthread_sigmask)(how, set, old);
	return mask_change(REAL(pthread_sigmask), how, set, old);
}
