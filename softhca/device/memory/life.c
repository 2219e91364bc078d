// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The way into code that a thread can be thrown out of, and the landing of a thread that was
 * thrown: life.h has the rules. Takes no lock. Written for x86-64; elsewhere no thread is armed,
 * and others wait for a stopped thread.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "life.h"
#include "thread_pointer.h"

#define RSEQ_CPU 4 /* offset of cpu_id in the kernel's struct rseq */
#define RSEQ_CS	 8 /* and of rseq_cs */
/* For the slots below this number: as many threads of an instance at a time. */
#define DOORS  1024
#define NAP_NS 50000
#define NAPS   64 /* on a busy machine most of them may end in a switch */

/* The C library's, from 2.35 on. */
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

/* The assembler below uses it, which link-time optimization does not see. */
__thread struct sh_self sh_self __attribute__((used));

#if defined(__x86_64__) && !defined(__ILP32__)
extern const char sh_landing[] __attribute__((visibility("hidden")));

/*
 * A thread that lands has nothing but sp. So everything that it needs is on the stack there: the
 * registers that belong to the caller, and the arguments, to call fn again. A thread that does not
 * land has not touched the caller's registers. On the way in and on the way out, armed changes
 * before cs: what cs says is what counts. The signature is the C library's RSEQ_SIG, as an operand
 * of ud1.
 */
__asm__(".text\n"
	".p2align 4\n"
	".globl sh_catch\n"
	".hidden sh_catch\n"
	".hidden sh_thrown\n"
	".type sh_catch, @function\n"
	"sh_catch:\n"
	".cfi_startproc\n"
	"	push %rbp\n .cfi_adjust_cfa_offset 8\n .cfi_rel_offset %rbp, 0\n"
	"	push %rbx\n .cfi_adjust_cfa_offset 8\n .cfi_rel_offset %rbx, 0\n"
	"	push %r12\n .cfi_adjust_cfa_offset 8\n .cfi_rel_offset %r12, 0\n"
	"	push %r13\n .cfi_adjust_cfa_offset 8\n .cfi_rel_offset %r13, 0\n"
	"	push %r14\n .cfi_adjust_cfa_offset 8\n .cfi_rel_offset %r14, 0\n"
	"	push %r15\n .cfi_adjust_cfa_offset 8\n .cfi_rel_offset %r15, 0\n"
	"	push %rdi\n .cfi_adjust_cfa_offset 8\n"
	"	push %rsi\n .cfi_adjust_cfa_offset 8\n"
	"	push %rdx\n .cfi_adjust_cfa_offset 8\n"
	"	push %rcx\n .cfi_adjust_cfa_offset 8\n"
	"	push %r8\n .cfi_adjust_cfa_offset 8\n"
	".Lsh_catch_in:\n"
	"	mov sh_self@gottpoff(%rip), %rax\n"
	"	mov %rsp, %fs:32(%rax)\n"
	"	mov %fs:40(%rax), %r10\n"
	"	mov %fs:24(%rax), %r11\n"
	"	mov %r10, %fs:16(%rax)\n"
	"	mov %r10, (%r11)\n"
	"	call *%r8\n"
	"	mov sh_self@gottpoff(%rip), %rax\n"
	"	mov %fs:24(%rax), %r11\n"
	"	movq $0, %fs:16(%rax)\n"
	"	movq $0, (%r11)\n"
	"	add $88, %rsp\n"
	"	.cfi_remember_state\n"
	"	.cfi_adjust_cfa_offset -88\n"
	"	.cfi_restore %rbp\n .cfi_restore %rbx\n .cfi_restore %r12\n"
	"	.cfi_restore %r13\n .cfi_restore %r14\n .cfi_restore %r15\n"
	"	ret\n"
	"	.cfi_restore_state\n"
	"	.byte 0x0f, 0xb9, 0x3d\n"
	"	.long 0x53053053\n"
	".globl sh_landing\n"
	".hidden sh_landing\n"
	"sh_landing:\n"
	"	mov sh_self@gottpoff(%rip), %rax\n"
	"	mov %fs:32(%rax), %rsp\n"
	"	movq $0, %fs:16(%rax)\n"
	"	cld\n"
	"	mov 40(%rsp), %r15\n"
	"	mov 48(%rsp), %r14\n"
	"	mov 56(%rsp), %r13\n"
	"	mov 64(%rsp), %r12\n"
	"	mov 72(%rsp), %rbx\n"
	"	mov 80(%rsp), %rbp\n"
	"	mov 32(%rsp), %rdi\n"
	"	call sh_thrown\n"
	"	mov 32(%rsp), %rdi\n"
	"	mov 24(%rsp), %rsi\n"
	"	mov 16(%rsp), %rdx\n"
	"	mov 8(%rsp), %rcx\n"
	"	mov (%rsp), %r8\n"
	"	jmp .Lsh_catch_in\n"
	".cfi_endproc\n"
	".size sh_catch, .-sh_catch\n");

/* life.h says what the places of these instructions mean. */
extern const char sh_once_stores[] __attribute__((visibility("hidden")));
__asm__(".text\n"
	".p2align 4\n"
	".globl sh_once\n"
	".hidden sh_once\n"
	".type sh_once, @function\n"
	"sh_once:\n"
	".cfi_startproc\n"
	"	cmp $4, %edx\n"
	"	ja 8f\n"
	"	je 4f\n"
	"	cmp $2, %edx\n"
	"	je 2f\n"
	"	jmp 1f\n"
	"	.p2align 4\n"
	".globl sh_once_stores\n"
	".hidden sh_once_stores\n"
	"sh_once_stores:\n"
	"8:	mov %rsi, (%rdi)\n"
	"	mov %r8, (%rcx)\n"
	"	ret\n"
	"	.p2align 4\n"
	"4:	.byte 0x3e\n" /* three bytes long, as the others are */
	"	mov %esi, (%rdi)\n"
	"	mov %r8, (%rcx)\n"
	"	ret\n"
	"	.p2align 4\n"
	"2:	mov %si, (%rdi)\n"
	"	mov %r8, (%rcx)\n"
	"	ret\n"
	"	.p2align 4\n"
	"1:	mov %sil, (%rdi)\n"
	"	mov %r8, (%rcx)\n"
	"	ret\n"
	".cfi_endproc\n"
	".size sh_once, .-sh_once\n");

/*
 * The kernel clears the thread's word on its way out of the call if it had switched the thread out
 * before. If a signal stops the thread after that, still within the kernel, the thread goes on
 * behind the call and passes no door. So it looks at its door itself, as the first thing it does.
 */
extern const char sh_reach_site[] __attribute__((visibility("hidden")));
__asm__(".text\n"
	".p2align 4\n"
	".globl sh_reach_call\n"
	".hidden sh_reach_call\n"
	".type sh_reach_call, @function\n"
	"sh_reach_call:\n"
	".cfi_startproc\n"
	"	mov %rdi, %rax\n"
	"	mov %rsi, %rdi\n"
	"	mov %rdx, %rsi\n"
	"	mov %rcx, %rdx\n"
	"	mov %r8, %r10\n"
	"	mov %r9, %r8\n"
	"	xor %r9d, %r9d\n"
	".globl sh_reach_site\n"
	".hidden sh_reach_site\n"
	"sh_reach_site:\n"
	"	syscall\n"
	"	mov sh_self@gottpoff(%rip), %rcx\n"
	"	mov %fs:40(%rcx), %rdx\n"
	"	cmpq $0, 16(%rdx)\n"
	"	jne 1f\n"
	"0:	mov %fs:16(%rcx), %rdx\n"
	"	mov %fs:24(%rcx), %r11\n"
	"	mov %rdx, (%r11)\n"
	"	ret\n"
	"1:	lea sh_reach_site(%rip), %rsi\n"
	"	cmp %rsi, 8(%rdx)\n"
	"	jne 0b\n"
	"	mov %fs:24(%rcx), %r11\n"
	"	movq $0, (%r11)\n" /* as the kernel does: a thread that lands is not armed */
	"	jmp sh_landing\n"
	".cfi_endproc\n"
	".size sh_reach_call, .-sh_reach_call\n");

/*
 * The shadow stack, which would not match at the landing. 0: there is none, or the processor does
 * not know the instruction.
 */
static uint64_t shadow_stack(void)
{
	uint64_t at = 0;

	__asm__ volatile(".byte 0xf3, 0x48, 0x0f, 0x1e, 0xc8" : "+a"(at)); /* rdsspq %rax */
	return at;
}

/*
 * Is the kernel from 4.18 to 6.18, whatever name it goes by? Makes the system call itself, because
 * the C library's function may be another one here.
 */
static bool release_is_old(void)
{
	unsigned int number[2] = {0};
	struct utsname name;
	const char *at = name.release;

	if (syscall(SYS_uname, &name))
		return false;
	for (unsigned int i = 0; i < 2; i++, at++) {
		while (*at >= '0' && *at <= '9' && number[i] < 1000)
			number[i] = number[i] * 10 + (unsigned int)(*at++ - '0');
		if (!i && *at != '.')
			return false;
	}
	return number[0] == 4 || number[0] == 5 || (number[0] == 6 && number[1] < 19);
}

/* How often this thread has lost the processor: because it waited, and because another one had to run. */
struct switches {
	long waited, preempted;
};

static bool count_switches(struct switches *n)
{
	struct rusage usage;

	if (syscall(SYS_getrusage, RUSAGE_THREAD, &usage))
		return false;
	*n = (struct switches){usage.ru_nvcsw, usage.ru_nivcsw};
	return true;
}

/*
 * Does the kernel look at the door of a thread that comes out of a system call? A release may have
 * been given changes of a later one. So this thread sleeps in front of a closed door, which a
 * kernel that looks disarms. It must be so two times in which no interrupt has led to a switch,
 * because every kernel looks after that. No kernel looks if there was no switch at all: the timer
 * of a nap may end before the thread has gone to sleep.
 */
static bool kernel_looks(uint64_t *cs)
{
	static struct sh_door closed;
	struct switches before, after;
	unsigned int seen = 0;

	if (!release_is_old() || !count_switches(&after))
		return false;
	closed.abort_ip = (uintptr_t)sh_landing;
	for (unsigned int i = 0; i < NAPS && seen < 2; i++) {
		const struct timespec nap = {.tv_nsec = NAP_NS};
		uint64_t left;

		before = after;
		__atomic_store_n(cs, (uintptr_t)&closed, __ATOMIC_RELAXED);
		syscall(SYS_nanosleep, &nap, NULL);
		left = __atomic_exchange_n(cs, 0, __ATOMIC_RELAXED);
		if (!count_switches(&after))
			return false;
		if (after.waited == before.waited)
			continue;
		if (left)
			return false;
		if (after.preempted == before.preempted)
			seen++;
	}
	return seen == 2;
}

/* The same question for all threads of the process; the first thread finds out. */
static bool can_be_thrown(uint64_t *cs)
{
	enum { UNKNOWN, NO, YES };
	static int can;
	int is = __atomic_load_n(&can, __ATOMIC_RELAXED), saved = errno;

	if (is == UNKNOWN) {
		is = kernel_looks(cs) ? YES : NO;
		__atomic_store_n(&can, is, __ATOMIC_RELAXED);
		errno = saved;
	}
	return is == YES;
}

static uint64_t *kernel_looks_at(void)
{
	char *area;

	if (shadow_stack() || !&__rseq_size || !&__rseq_offset || !__rseq_size)
		return NULL;
	area = (char *)sh_thread_pointer() + __rseq_offset;
	/* Negative: it is not registered, or not any more. */
	return __atomic_load_n((int32_t *)(area + RSEQ_CPU), __ATOMIC_RELAXED) < 0
		       ? NULL
		       : (uint64_t *)(area + RSEQ_CS);
}
#else
static const char sh_landing[1], sh_once_stores[1], sh_reach_site[1];

long sh_reach_call(long number, long a, long b, long c, long d, long e)
{
	long done = syscall(number, a, b, c, d, e, 0UL);

	return done == -1 ? -errno : done;
}

void sh_once(void *at, uint64_t val, unsigned int size, uint64_t *commit, uint64_t word)
{
	switch (size) {
	case 8:
		__atomic_store_n((uint64_t *)at, val, __ATOMIC_RELEASE);
		break;
	case 4:
		__atomic_store_n((uint32_t *)at, (uint32_t)val, __ATOMIC_RELEASE);
		break;
	case 2:
		__atomic_store_n((uint16_t *)at, (uint16_t)val, __ATOMIC_RELEASE);
		break;
	default:
		__atomic_store_n((uint8_t *)at, (uint8_t)val, __ATOMIC_RELEASE);
	}
	__atomic_store_n(commit, word, __ATOMIC_RELEASE);
}

void sh_catch(struct sh_dev *dev, uint32_t a, uint32_t b, uint64_t c, sh_caught_fn *fn)
{
	fn(dev, a, b, c);
}

static bool can_be_thrown(uint64_t *cs)
{
	(void)cs;
	return false;
}

static uint64_t *kernel_looks_at(void)
{
	return NULL;
}
#endif

void sh_life_prepare(const struct sh_dev *dev, uint64_t slot)
{
	static struct sh_door doors[DOORS];
	static __thread uint64_t nowhere;
	uint64_t *cs = kernel_looks_at();

	sh_self.armed = NULL;
	sh_self.cs = cs ? cs : &nowhere;
	sh_self.catches = NULL;
	/*
	 * Without a witness a thread that wants to open the door cannot tell this program from
	 * another (host/witness.h).
	 */
	if (cs && sh_self.word && dev->witness && slot < DOORS && can_be_thrown(cs)) {
		sh_self.catches = &doors[slot];
		doors[slot].len = 0;
		doors[slot].abort_ip = (uintptr_t)sh_landing;
	}
	sh_self.mark = SH_MAGIC;
	sh_self.witness = dev->witness;
	sh_self.engine = (struct sh_engine){0};
	sh_self.once = (uintptr_t)sh_once_stores;
	sh_self.reach = (uintptr_t)sh_reach_site;
}
