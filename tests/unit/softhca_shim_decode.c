// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: the decoder takes a store apart into just the stores that the processor makes. Every
 * form runs twice, on plain memory and on a page whose stores fault. What the decoder hands over
 * must leave the same bytes and registers, and come in the order and width of the instruction.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "softhca/shim/doorbells/decode.h"

#define PAGE 4096

/* What a snippet leaves in the registers that string instructions change. */
struct out {
	uint64_t rdi, rcx, rsi, rax;
};

/* rdi: where to store; rsi: 64 bytes to store; rdx: struct out. */
#define SNIPPET(name, text)                                                                        \
	void snippet_##name(void *to, const void *from, struct out *out);                          \
	__asm__(".text\n.globl snippet_" #name "\nsnippet_" #name ":\n" text                       \
		"\nmov %rdi,(%rdx)\nmov %rcx,8(%rdx)\nmov %rsi,16(%rdx)\nmov "                     \
		"%rax,24(%rdx)\ncld\nemms\nret\n")

SNIPPET(mov8, "xor %eax,%eax\nxor %ecx,%ecx\nmov (%rsi),%al\nmov %al,3(%rdi)");
SNIPPET(mov8_high, "xor %ecx,%ecx\nmov (%rsi),%rax\nmov %ah,3(%rdi)");
SNIPPET(mov16, "xor %ecx,%ecx\nmov (%rsi),%rax\nmov %ax,2(%rdi)");
SNIPPET(mov32, "xor %ecx,%ecx\nmov (%rsi),%rax\nmov %eax,0x14(%rdi)");
SNIPPET(mov64, "xor %ecx,%ecx\nmov (%rsi),%rax\nmov %rax,0x20(%rdi)");
SNIPPET(mov64_r15,
	"push %r15\nxor %eax,%eax\nxor %ecx,%ecx\nmov (%rsi),%r15\nmov %r15,0x20(%rdi)\npop %r15");
SNIPPET(mov64_indexed, "xor %eax,%eax\nmov $4,%ecx\nmov (%rsi),%r8\nmov %r8,(%rdi,%rcx,8)");
SNIPPET(movi8, "xor %eax,%eax\nxor %ecx,%ecx\nmovb $0xa5,1(%rdi)");
SNIPPET(movi16, "xor %eax,%eax\nxor %ecx,%ecx\nmovw $0xa5b6,2(%rdi)");
SNIPPET(movi32, "xor %eax,%eax\nxor %ecx,%ecx\nmovl $0x8a5b6c7d,4(%rdi)");
SNIPPET(movi64, "xor %eax,%eax\nxor %ecx,%ecx\nmovq $-123456,8(%rdi)");
SNIPPET(movnti32, "xor %ecx,%ecx\nmov (%rsi),%rax\nmovnti %eax,0x14(%rdi)");
SNIPPET(movnti64, "xor %ecx,%ecx\nmov (%rsi),%rax\nmovnti %rax,0x20(%rdi)");
SNIPPET(movbe32, "xor %ecx,%ecx\nmov (%rsi),%rax\nmovbe %eax,0x14(%rdi)");
SNIPPET(xchg32, "xor %ecx,%ecx\nmov (%rsi),%rax\nxchg %eax,0x14(%rdi)\nxor %eax,%eax");
SNIPPET(movd, "xor %eax,%eax\nxor %ecx,%ecx\nmovdqu (%rsi),%xmm3\nmovd %xmm3,4(%rdi)");
SNIPPET(movq, "xor %eax,%eax\nxor %ecx,%ecx\nmovdqu (%rsi),%xmm3\nmovq %xmm3,8(%rdi)");
SNIPPET(movss, "xor %eax,%eax\nxor %ecx,%ecx\nmovdqu (%rsi),%xmm4\nmovss %xmm4,4(%rdi)");
SNIPPET(movsd_xmm, "xor %eax,%eax\nxor %ecx,%ecx\nmovdqu (%rsi),%xmm4\nmovsd %xmm4,8(%rdi)");
SNIPPET(movlps, "xor %eax,%eax\nxor %ecx,%ecx\nmovdqu (%rsi),%xmm5\nmovlps %xmm5,8(%rdi)");
SNIPPET(movhps, "xor %eax,%eax\nxor %ecx,%ecx\nmovdqu (%rsi),%xmm5\nmovhps %xmm5,8(%rdi)");
SNIPPET(movups, "xor %eax,%eax\nxor %ecx,%ecx\nmovdqu (%rsi),%xmm11\nmovups %xmm11,24(%rdi)");
SNIPPET(movaps, "xor %eax,%eax\nxor %ecx,%ecx\nmovdqu (%rsi),%xmm0\nmovaps %xmm0,32(%rdi)");
SNIPPET(movdqu, "xor %eax,%eax\nxor %ecx,%ecx\nmovdqu (%rsi),%xmm15\nmovdqu %xmm15,9(%rdi)");
SNIPPET(movntdq, "xor %eax,%eax\nxor %ecx,%ecx\nmovdqu (%rsi),%xmm7\nmovntdq %xmm7,16(%rdi)");
SNIPPET(movq_mmx, "xor %eax,%eax\nxor %ecx,%ecx\nmovq (%rsi),%mm5\nmovq %mm5,16(%rdi)");
SNIPPET(pextrd, "xor %eax,%eax\nxor %ecx,%ecx\nmovdqu (%rsi),%xmm2\npextrd $3,%xmm2,4(%rdi)");
SNIPPET(pextrq, "xor %eax,%eax\nxor %ecx,%ecx\nmovdqu (%rsi),%xmm2\npextrq $1,%xmm2,8(%rdi)");
SNIPPET(vmovdqu_xmm,
	"xor %eax,%eax\nxor %ecx,%ecx\nvmovdqu (%rsi),%xmm6\nvmovdqu %xmm6,40(%rdi)\nvzeroupper");
SNIPPET(vmovdqu_ymm,
	"xor %eax,%eax\nxor %ecx,%ecx\nvmovdqu (%rsi),%ymm9\nvmovdqu %ymm9,40(%rdi)\nvzeroupper");
SNIPPET(vmovups_ymm_zero_top, "xor %eax,%eax\nxor %ecx,%ecx\nvzeroupper\nvmovdqu "
			      "(%rsi),%xmm9\nvmovups %ymm9,40(%rdi)\nvzeroupper");
SNIPPET(vextracti128, "xor %eax,%eax\nxor %ecx,%ecx\nvmovdqu (%rsi),%ymm1\nvextractf128 "
		      "$1,%ymm1,16(%rdi)\nvzeroupper");
SNIPPET(vmovdqu64_zmm, "xor %eax,%eax\nxor %ecx,%ecx\nvmovdqu64 (%rsi),%zmm20\nvmovdqu64 "
		       "%zmm20,64(%rdi)\nvzeroupper");
SNIPPET(vmovdqu64_zmm_low, "xor %eax,%eax\nxor %ecx,%ecx\nvmovdqu64 (%rsi),%zmm4\nvmovdqu64 "
			   "%zmm4,64(%rdi)\nvzeroupper");
SNIPPET(stosb, "xor %ecx,%ecx\nmov (%rsi),%rax\nstosb");
SNIPPET(stosd, "xor %ecx,%ecx\nmov (%rsi),%rax\nstosl");
SNIPPET(rep_stosd, "mov $5,%ecx\nmov (%rsi),%rax\nrep stosl");
SNIPPET(rep_stosq_down, "mov $3,%ecx\nmov (%rsi),%rax\nadd $64,%rdi\nstd\nrep stosq");
SNIPPET(movsq, "xor %eax,%eax\nxor %ecx,%ecx\nmovsq");
SNIPPET(rep_movsb, "xor %eax,%eax\nmov $13,%ecx\nrep movsb");
SNIPPET(rep_movsd, "xor %eax,%eax\nmov $6,%ecx\nrep movsl");
SNIPPET(rep_movsq, "xor %eax,%eax\nmov $8,%ecx\nrep movsq");
SNIPPET(rep_none, "xor %eax,%eax\nxor %ecx,%ecx\nrep movsq");
SNIPPET(load, "mov 8(%rdi),%rax");
SNIPPET(add, "addl $1,8(%rdi)");
SNIPPET(over_the_end, "mov (%rsi),%rax\nmov %rax,4092(%rdi)");

static uint8_t plain[2 * PAGE] __attribute__((aligned(PAGE)));
static uint8_t shadow[2 * PAGE] __attribute__((aligned(PAGE)));
static uint8_t *trapped;

static struct {
	unsigned int n;
	uint64_t offset[64];
	unsigned int width[64];
} seen;

static sigjmp_buf refused;

static void take(void *arg, uint64_t addr, unsigned int width, const uint8_t *value)
{
	uint64_t offset = addr - (uintptr_t)arg;

	memcpy(shadow + offset, value, width);
	if (seen.n < 64) {
		seen.offset[seen.n] = offset;
		seen.width[seen.n] = width;
	}
	seen.n++;
}

static void on_bus(int sig, siginfo_t *info, void *uc)
{
	uint64_t start = (uintptr_t)trapped;

	(void)sig;
	if (sh_decode_store(uc, (uintptr_t)info->si_addr, start, start + PAGE, take, trapped))
		siglongjmp(refused, 1);
}

static int setup(void **state)
{
	char name[] = "/tmp/softhca-decode-XXXXXX";
	int fd = mkstemp(name);

	(void)state;
	if (fd < 0)
		return -1;
	unlink(name);
	/* The second page is for a store that leaves the first. */
	trapped = mmap(NULL, 2 * PAGE, PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	sh_decode_init();
	return trapped == MAP_FAILED ? -1 : 0;
}

/* Each test does this, because cmocka has just set handlers of its own. */
static void reset(void)
{
	struct sigaction act = {.sa_sigaction = on_bus, .sa_flags = SA_SIGINFO};

	assert_int_equal(sigaction(SIGBUS, &act, NULL), 0);
	memset(plain, 0xee, sizeof(plain));
	memset(shadow, 0xee, sizeof(shadow));
	seen.n = 0;
}

static uint8_t source[64];

static void compare(void (*fn)(void *, const void *, struct out *), unsigned int n,
		    unsigned int width)
{
	struct out a, b;

	for (unsigned int i = 0; i < sizeof(source); i++)
		source[i] = (uint8_t)(0x91 + 7 * i);
	reset();
	fn(plain, source, &a);
	if (sigsetjmp(refused, 1))
		fail_msg("refused");
	fn(trapped, source, &b);
	assert_memory_equal(plain, shadow, sizeof(plain));
	assert_int_equal(a.rdi - (uintptr_t)plain, b.rdi - (uintptr_t)trapped);
	assert_int_equal(a.rcx, b.rcx);
	assert_int_equal(a.rsi, b.rsi);
	assert_int_equal(a.rax, b.rax);
	assert_int_equal(seen.n, n);
	for (unsigned int i = 0; i < n; i++)
		assert_int_equal(seen.width[i], width);
}

#define SAME(name, n, width)                                                                       \
	static void test_##name(void **state)                                                      \
	{                                                                                          \
		(void)state;                                                                       \
		compare(snippet_##name, n, width);                                                 \
	}
#define SAME_IF(feature, name, n, width)                                                           \
	static void test_##name(void **state)                                                      \
	{                                                                                          \
		(void)state;                                                                       \
		if (__builtin_cpu_supports(feature))                                               \
			compare(snippet_##name, n, width);                                         \
	}

SAME(mov8, 1, 1)
SAME(mov8_high, 1, 1)
SAME(mov16, 1, 2)
SAME(mov32, 1, 4)
SAME(mov64, 1, 8)
SAME(mov64_r15, 1, 8)
SAME(mov64_indexed, 1, 8)
SAME(movi8, 1, 1)
SAME(movi16, 1, 2)
SAME(movi32, 1, 4)
SAME(movi64, 1, 8)
SAME(movnti32, 1, 4)
SAME(movnti64, 1, 8)
SAME_IF("avx2", movbe32, 1, 4) /* every processor with AVX2 has MOVBE */
SAME(xchg32, 1, 4)
SAME(movd, 1, 4)
SAME(movq, 1, 8)
SAME(movss, 1, 4)
SAME(movsd_xmm, 1, 8)
SAME(movlps, 1, 8)
SAME(movhps, 1, 8)
SAME(movups, 1, 16)
SAME(movaps, 1, 16)
SAME(movdqu, 1, 16)
SAME(movntdq, 1, 16)
SAME(movq_mmx, 1, 8)
SAME_IF("sse4.1", pextrd, 1, 4)
SAME_IF("sse4.1", pextrq, 1, 8)
SAME_IF("avx", vmovdqu_xmm, 1, 16)
SAME_IF("avx", vmovdqu_ymm, 1, 32)
SAME_IF("avx", vmovups_ymm_zero_top, 1, 32)
SAME_IF("avx", vextracti128, 1, 16)
SAME_IF("avx512f", vmovdqu64_zmm, 1, 64)
SAME_IF("avx512f", vmovdqu64_zmm_low, 1, 64)
SAME(stosb, 1, 1)
SAME(stosd, 1, 4)
SAME(rep_stosd, 5, 4)
SAME(rep_stosq_down, 3, 8)
SAME(movsq, 1, 8)
SAME(rep_movsb, 13, 1)
SAME(rep_movsd, 6, 4)
SAME(rep_movsq, 8, 8)
SAME(rep_none, 0, 0)

/* The elements come in the order in which the processor stores them. */
static void string_order(void **state)
{
	(void)state;
	compare(snippet_rep_stosq_down, 3, 8);
	assert_int_equal(seen.offset[0], 64);
	assert_int_equal(seen.offset[2], 48);
	compare(snippet_rep_movsq, 8, 8);
	assert_int_equal(seen.offset[0], 0);
	assert_int_equal(seen.offset[7], 56);
}

static void refuse(void (*fn)(void *, const void *, struct out *))
{
	struct out out;

	reset();
	if (!sigsetjmp(refused, 1)) {
		fn(trapped, source, &out);
		fail_msg("the decoder took the instruction for a store");
	}
	assert_int_equal(seen.n, 0);
}

/*
 * The decoder leaves loads, and stores that are not wholly in the page, to the application's own
 * handler.
 */
static void others_refused(void **state)
{
	(void)state;
	refuse(snippet_load);
	refuse(snippet_add);
	refuse(snippet_over_the_end);
}

#define T(name) cmocka_unit_test(test_##name)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(mov8),
		T(mov8_high),
		T(mov16),
		T(mov32),
		T(mov64),
		T(mov64_r15),
		T(mov64_indexed),
		T(movi8),
		T(movi16),
		T(movi32),
		T(movi64),
		T(movnti32),
		T(movnti64),
		T(movbe32),
		T(xchg32),
		T(movd),
		T(movq),
		T(movss),
		T(movsd_xmm),
		T(movlps),
		T(movhps),
		T(movups),
		T(movaps),
		T(movdqu),
		T(movntdq),
		T(movq_mmx),
		T(pextrd),
		T(pextrq),
		T(vmovdqu_xmm),
		T(vmovdqu_ymm),
		T(vmovups_ymm_zero_top),
		T(vextracti128),
		T(vmovdqu64_zmm),
		T(vmovdqu64_zmm_low),
		T(stosb),
		T(stosd),
		T(rep_stosd),
		T(rep_stosq_down),
		T(movsq),
		T(rep_movsb),
		T(rep_movsd),
		T(rep_movsq),
		T(rep_none),
		cmocka_unit_test(string_order),
		cmocka_unit_test(others_refused),
	};

	return cmocka_run_group_tests_name("softhca_shim_decode", tests, setup, NULL);
}
