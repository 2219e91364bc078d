// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Runs functions on another stack than the caller's, which may be as small as PTHREAD_STACK_MIN, or
 * lie in memory that is about to be exchanged. Owns a few stacks for that, which stay mapped. A
 * word of each says which thread runs on it; a signal handler may take another one. Holds no lock.
 */
#include <errno.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "softhca/host/sys.h"
#include "attach.h"
#include "compiler.h"
#include "softhca/shim/signals/handlers.h"
#include "sandbox.h"
#include "stack.h"

#define SPARES 16
#define SIZE   (128 << 10) /* address space only: pages come with use */
/*
 * Address space around a stack. To valgrind a change by less than 2 MB is a frame of the same
 * stack, and what lies in between is not there any more.
 */
#define MARGIN (2 << 20)

#define TRIES 1000 /* of a millisecond each, for one that is free */
/* The owner may make no system call. */
#define UNKNOWN -1

static struct spare {
	char *mem;
	int owner; /* the thread's number; 0: it is free; UNKNOWN */
} spare[SPARES];

/*
 * This thread runs on a spare stack, or is about to. A handler of the program must not run there:
 * it may jump, unwind, look for roots between here and the bottom of the thread's own stack, or
 * need more room. So handlers.c puts it off.
 */
static TLS bool on_spare;

bool stack_on_spare(void)
{
	return on_spare;
}

static void run(struct stack_call *r)
{
	r->result = r->fn(r->arg);
}

/*
 * A thread that is cancelled on the other stack is unwound through the function that says this.
 * Where it takes memory whose size the compiler does not know, the compiler finds its frame, and
 * has unwinders find it, by the frame pointer. The stack pointer says nothing there.
 */
#define BY_FRAME_POINTER()                                                                         \
	do {                                                                                       \
		volatile size_t some = 16;                                                         \
		*(volatile char *)__builtin_alloca(some) = 0;                                      \
	} while (0)

#if defined(__x86_64__)
void stack_at(char *top, struct stack_call *r)
{
	register struct stack_call *arg __asm__("rdi") = r;
	register char *to __asm__("rbx") = top;

	BY_FRAME_POINTER();
	/*
	 * The caller's red zone is left alone: it is on the other stack. The called function saves
	 * rbx.
	 */
	__asm__ volatile("xchgq %%rsp, %%rbx\n\tcall *%[fn]\n\tmovq %%rbx, %%rsp"
			 : "+r"(to), "+r"(arg)
			 : [fn] "r"(run)
			 : "rax", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "cc", "memory",
			   "mm0", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7",
			   "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
}
#elif defined(__aarch64__)
void stack_at(char *top, struct stack_call *r)
{
	register struct stack_call *arg __asm__("x0") = r;
	register char *to __asm__("x19") = top;
	register char *was __asm__("x20");

	BY_FRAME_POINTER();
	__asm__ volatile("mov %[was], sp\n\tmov sp, %[to]\n\tblr %[fn]\n\tmov sp, %[was]"
			 : [was] "=&r"(was), "+r"(arg)
			 : [to] "r"(to), [fn] "r"(run)
			 : "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11",
			   "x12", "x13", "x14", "x15", "x16", "x17", "x18", "x30", "cc", "memory",
			   "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v16", "v17", "v18",
			   "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28",
			   "v29", "v30", "v31");
}
#else
void stack_at(char *top, struct stack_call *r)
{
	(void)top;
	run(r);
}
#endif

int stack_new(size_t size, int (*fn)(void *), void *arg)
{
	struct stack_call call = {.fn = fn, .arg = arg};
	char *mem;

	if (!STACK_OTHER)
		return fn(arg);
	mem = sh_pages(size);
	if (!mem)
		return -ENOMEM;
	stack_at(mem + size, &call);
	sh_munmap(mem, size);
	return call.result;
}

static char *map_spare(void)
{
	int err;
	char *mem = sh_mmap_unlocked(NULL, SIZE + 2 * MARGIN, PROT_NONE,
				     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0, &err);

	if (!mem)
		return NULL;
	if (sh_sys(syscall(SYS_mprotect, mem + MARGIN, (long)SIZE, PROT_READ | PROT_WRITE | 0L))) {
		sh_munmap(mem, SIZE + 2 * MARGIN);
		return NULL;
	}
	return mem + MARGIN;
}

static bool runs_on(const struct spare *s, const void *at)
{
	return s->mem && (const char *)at >= s->mem && (const char *)at < s->mem + SIZE;
}

static bool take(struct spare *s, int from, int to)
{
	return __atomic_compare_exchange_n(&s->owner, &from, to, false, __ATOMIC_ACQUIRE,
					   __ATOMIC_RELAXED);
}

/*
 * NULL: all are in use. A thread that was cancelled on one has not given it back. The number is
 * that of a thread of another process if a child by vfork() is on it.
 */
static struct spare *claim(void)
{
	const bool told = sandbox_told();
	int self;

	if (!STACK_OTHER)
		return NULL;
	self = told ? UNKNOWN : (int)syscall(SYS_gettid);
	for (struct spare *s = spare; s < spare + SPARES; s++)
		if (take(s, 0, self))
			return s;
	for (struct spare *s = spare; !told && s < spare + SPARES; s++) {
		int owner = __atomic_load_n(&s->owner, __ATOMIC_RELAXED);

		if (owner > 0 && sh_sys(syscall(SYS_tkill, owner, 0)) == -ESRCH &&
		    take(s, owner, self))
			return s;
	}
	return NULL;
}

int stack_spare_only(int (*fn)(void *), void *arg, int *result)
{
	struct stack_call call = {.fn = fn, .arg = arg};
	bool outermost = !on_spare;
	struct spare *s;
	int err = -EBUSY;

	on_spare = true;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	s = claim();
	if (s) {
		if (!s->mem && !sandbox_told())
			s->mem = map_spare();
		err = s->mem ? 0 : -ENOMEM;
		if (!err)
			stack_at(s->mem + SIZE, &call);
		__atomic_store_n(&s->owner, 0, __ATOMIC_RELEASE);
	}
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (outermost) {
		on_spare = false;
		shim_signals_release();
	}
	*result = call.result;
	return err;
}

int stack_spare(int (*fn)(void *), void *arg)
{
	int result;

	return stack_spare_only(fn, arg, &result) ? fn(arg) : result;
}

int stack_spare_wait(int (*fn)(void *), void *arg)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	int result, err = stack_spare_only(fn, arg, &result);

	/*
	 * Those that have one give it back soon: no thread waits here that has a lock of the
	 * device.
	 */
	for (int i = 0; STACK_OTHER && err == -EBUSY && !sandbox_told() && i < TRIES; i++) {
		syscall(SYS_nanosleep, &pause, NULL);
		err = stack_spare_only(fn, arg, &result);
	}
	return err ? fn(arg) : result;
}

void stack_forked(void)
{
	for (struct spare *s = spare; s < spare + SPARES; s++)
		if (!runs_on(s, __builtin_frame_address(0)))
			s->owner = 0;
}
