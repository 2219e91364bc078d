// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: copies between contexts: within one process, from or to another process, and between
 * two others. The lists of pieces may be cut in any way. A missing page never causes a fault, and
 * the result says on which side it is missing. A process that has ended gives a result of its own.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "softhca/host/process.h"
#include "softhca/host/witness.h"
#include "softhca_step.h"

#define PAGE 4096
#define AREA (64 * PAGE)
enum { OWN = 1, CHILD = 2, OTHER = 3, GONE = 4, ENDED = 5 };

static struct sh_dev dev;
static uint8_t *area; /* at the same address in every process */
static pid_t child[2];

static enum sh_copy copy(uint32_t to, const void *dst, uint32_t from, const void *src, uint64_t len)
{
	struct sh_seg d = {(uintptr_t)dst, len}, s = {(uintptr_t)src, len};

	return dev.ops->copy(dev.host, to, &d, 1, from, &s, 1, len);
}

/*
 * Starts the process of context ctx, whose memory holds this value. Page 8 is missing there, and
 * page 9 is read-only. The process then stops.
 */
static pid_t memory_of(uint32_t ctx, uint8_t value)
{
	pid_t pid = fork();
	int err;

	if (pid == 0) {
		sh_ctx(&dev, ctx)->witness = sh_witness(&err);
		memset(area, value, 8 * PAGE);
		memset(area + 9 * PAGE, value, AREA - 9 * PAGE);
		munmap(area + 8 * PAGE, PAGE);
		mprotect(area + 9 * PAGE, PAGE, PROT_READ);
		raise(SIGSTOP);
		for (;;)
			pause();
	}
	waitpid(pid, NULL, WUNTRACED);
	return pid;
}

static int setup(void **state)
{
	struct sh_ctx *ctx;

	(void)state;
	/*
	 * As much of device memory as the host looks at: the tables of contexts and processes, and
	 * some shared pages.
	 */
	dev.inst = mmap(NULL, SH_EXEC_OFF + AREA, PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	area = mmap(NULL, AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	dev.proc = OWN;
	if (dev.inst == MAP_FAILED || area == MAP_FAILED || sh_process_init(&dev, "/nowhere"))
		return -1;
	dev.shared_off = SH_EXEC_OFF;
	dev.size = dev.shared_end = SH_EXEC_OFF + AREA;
	child[0] = memory_of(CHILD, 0xc1);
	child[1] = memory_of(OTHER, 0xc2);
	for (int i = OWN; i <= GONE; i++) {
		ctx = sh_ctx(&dev, i);
		ctx->state = i == GONE ? SH_CTX_GONE : SH_CTX_LIVE;
		ctx->pid = i == CHILD ? child[0] : i == OTHER ? child[1] : getpid();
		ctx->proc = i;
	}
	memset(area, 0x11, AREA);
	munmap(area + 8 * PAGE, PAGE);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		kill(child[i], SIGKILL);
		waitpid(child[i], NULL, 0);
	}
	return 0;
}

/* A process with this one's number was killed while it exchanged pages. Nobody waits for it. */
static void predecessor(void **state)
{
	uint8_t buf[16];

	(void)state;
	memset(buf, 0x98, sizeof(buf));
	dev.inst->moves.moving[3] = (uint64_t)getpid() << 32 | (uint32_t)getpid();
	assert_int_equal(sh_process_init(&dev, "/nowhere"), 0);
	alarm(50);
	assert_int_equal(copy(OWN, area, 0, buf, sizeof(buf)), SH_COPY_OK);
	alarm(0);
	assert_memory_equal(area, buf, sizeof(buf));
	memset(area, 0x11, sizeof(buf));
}

/*
 * If a process has executed another program, a page that is missing there is not an error on either
 * side.
 */
static void replaced(void **state)
{
	struct sh_ctx *ctx = sh_ctx(&dev, CHILD), *own = sh_ctx(&dev, OWN);
	uint64_t witness = ctx->witness;
	uint8_t buf[16], was[16];

	(void)state;
	memset(buf, 0x99, sizeof(buf));
	assert_int_equal(copy(CHILD, area + 8 * PAGE, 0, buf, sizeof(buf)), SH_COPY_DST);
	assert_int_equal(copy(0, buf, CHILD, area + 8 * PAGE, sizeof(buf)), SH_COPY_SRC);
	/* The page of the witness is missing; then it is read-only and has other contents. */
	for (int i = 8; i <= 9; i++) {
		ctx->witness = (uintptr_t)area + (size_t)i * PAGE;
		assert_int_equal(copy(CHILD, area + 8 * PAGE, 0, buf, sizeof(buf)), SH_COPY_GONE);
		assert_int_equal(copy(0, was, CHILD, area + 8 * PAGE, sizeof(was)), SH_COPY_GONE);
		/* A copy neither writes nor reads what the other program has at that address. */
		assert_int_equal(copy(CHILD, area, 0, buf, sizeof(buf)), SH_COPY_GONE);
		assert_int_equal(copy(CHILD, area, OTHER, area, sizeof(buf)), SH_COPY_GONE);
		assert_int_equal(copy(OTHER, area, CHILD, area, sizeof(buf)), SH_COPY_GONE);
		assert_int_equal(copy(0, was, CHILD, area, sizeof(was)), SH_COPY_GONE);
	}
	ctx->witness = witness;
	assert_int_equal(copy(OTHER, area + 8 * PAGE, CHILD, area, sizeof(buf)), SH_COPY_DST);
	assert_int_equal(copy(0, was, CHILD, area, sizeof(was)), SH_COPY_OK);
	for (size_t i = 0; i < sizeof(was); i++)
		assert_int_equal(was[i], 0xc1);
	/* The context is of the program that this process ran before. */
	own->proc = ENDED;
	memset(area, 0x11, sizeof(buf));
	assert_int_equal(copy(OWN, area, 0, buf, sizeof(buf)), SH_COPY_GONE);
	own->witness = (uintptr_t)area + 8 * PAGE;
	assert_int_equal(copy(OWN, area, 0, buf, sizeof(buf)), SH_COPY_GONE);
	assert_int_equal(copy(OWN, area, CHILD, area, sizeof(buf)), SH_COPY_GONE);
	assert_int_equal(area[0], 0x11);
	own->proc = OWN;
	own->witness = 0;
}

/*
 * Pages that are device memory: the copy is right for every length and alignment, and stores
 * nothing beside it.
 */
static void shared(void **state)
{
	uint8_t *pages = (uint8_t *)dev.inst + SH_EXEC_OFF, want[700];

	(void)state;
	for (unsigned int i = 0; i < sizeof(want); i++)
		want[i] = (uint8_t)(i * 13 + 1);
	for (unsigned int len = 0; len < 600; len += len < 80 ? 1 : 37) {
		for (unsigned int shift = 0; shift < 20; shift++) {
			struct sh_seg d = {SH_SEG_SHARED | (SH_EXEC_OFF + 64 + shift), len};
			struct sh_seg s = {SH_SEG_SHARED | (SH_EXEC_OFF + PAGE + 7), len};

			memset(pages, 0x77, PAGE);
			memcpy(pages + PAGE + 7, want, len);
			assert_int_equal(dev.ops->copy(dev.host, CHILD, &d, 1, OTHER, &s, 1, len),
					 SH_COPY_OK);
			assert_memory_equal(pages + 64 + shift, want, len);
			assert_int_equal(pages[64 + shift - 1], 0x77);
			assert_int_equal(pages[64 + shift + len], 0x77);
		}
	}
	/* Source and destination overlap, in both directions. */
	memcpy(pages, want, 700);
	for (int by = -3; by <= 3; by += 6) {
		struct sh_seg s = {SH_SEG_SHARED | (SH_EXEC_OFF + 10), 500}, d = {s.addr + by, 500};
		uint8_t before[500];

		memcpy(before, pages + 10, sizeof(before));
		assert_int_equal(dev.ops->copy(dev.host, OWN, &d, 1, OWN, &s, 1, 500), SH_COPY_OK);
		assert_memory_equal(pages + 10 + by, before, 500);
	}
}

/*
 * A program may wait for the last byte of a message, and at once store its answer in the same
 * place. So the copy stores nothing there after the last byte.
 */
static void stored_once(void **state)
{
	volatile uint8_t *at = (uint8_t *)dev.inst + SH_EXEC_OFF + 512;
	uint8_t want[32];

	(void)state;
	memset(want, 0x77, sizeof(want));
	for (unsigned int len = 1; len <= sizeof(want); len++) {
		struct sh_seg d = {SH_SEG_SHARED | (SH_EXEC_OFF + 512), len},
			      s = {(uintptr_t)want, len};
		bool seen = false;
		pid_t pid;

		for (unsigned int i = 0; i < sizeof(want); i++)
			at[i] = 0;
		pid = fork();
		assert_true(pid >= 0);
		if (!pid) {
			ptrace(PTRACE_TRACEME, 0, NULL, NULL);
			raise(SIGSTOP);
			_exit(dev.ops->copy(dev.host, OWN, &d, 1, 0, &s, 1, len) != SH_COPY_OK);
		}
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		ptrace(PTRACE_SETOPTIONS, pid, NULL, (void *)PTRACE_O_EXITKILL);
		while (single_step(pid)) {
			if (seen || !at[len - 1])
				continue;
			seen = true;
			for (unsigned int i = 0; i < len; i++) {
				assert_int_equal(at[i], 0x77);
				at[i] = 0;
			}
		}
		assert_true(seen);
		for (unsigned int i = 0; i < sizeof(want); i++)
			assert_int_equal(at[i], 0);
	}
}

/*
 * Lists in which some pieces are device memory and others are not, on either side. An offset beyond
 * device memory is damage, and the copy does not follow it.
 */
static void shared_in_part(void **state)
{
	static const int others[] = {OWN, CHILD};
	uint8_t *pages = (uint8_t *)dev.inst + SH_EXEC_OFF, got[300];

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct sh_seg src[] = {{(uintptr_t)area + 16 * PAGE, 100},
				       {SH_SEG_SHARED | (SH_EXEC_OFF + 5), 0},
				       {SH_SEG_SHARED | (SH_EXEC_OFF + PAGE), 150},
				       {(uintptr_t)area + 17 * PAGE, 50}};
		struct sh_seg dst[] = {{SH_SEG_SHARED | (SH_EXEC_OFF + 4 * PAGE), 30},
				       {(uintptr_t)area + 40 * PAGE, 200},
				       {SH_SEG_SHARED | (SH_EXEC_OFF + 6 * PAGE), 70}};
		uint8_t one[100], two[150], three[50];

		memset(one, 0xa1, sizeof(one));
		memset(two, 0xa2, sizeof(two));
		memset(three, 0xa3, sizeof(three));
		assert_int_equal(copy(others[i], area + 16 * PAGE, 0, one, 100), SH_COPY_OK);
		assert_int_equal(copy(others[i], area + 17 * PAGE, 0, three, 50), SH_COPY_OK);
		memcpy(pages + PAGE, two, 150);
		assert_int_equal(dev.ops->copy(dev.host, OTHER, dst, 3, others[i], src, 4, 300),
				 SH_COPY_OK);
		memcpy(got, pages + 4 * PAGE, 30);
		assert_int_equal(copy(0, got + 30, OTHER, area + 40 * PAGE, 200), SH_COPY_OK);
		memcpy(got + 230, pages + 6 * PAGE, 70);
		assert_memory_equal(got, one, 100);
		assert_memory_equal(got + 100, two, 150);
		assert_memory_equal(got + 250, three, 50);
	}
	/* One list is shorter than the copy. */
	{
		struct sh_seg few = {SH_SEG_SHARED | SH_EXEC_OFF, 8},
			      many = {SH_SEG_SHARED | (SH_EXEC_OFF + PAGE), 16};

		memset(pages, 0x55, 16);
		assert_int_equal(dev.ops->copy(dev.host, OWN, &many, 1, CHILD, &few, 1, 16),
				 SH_COPY_SRC);
		assert_int_equal(dev.ops->copy(dev.host, OWN, &few, 1, CHILD, &many, 1, 16),
				 SH_COPY_DST);
		for (int i = 8; i < 16; i++)
			assert_int_equal(pages[i], 0x55);
	}
	for (int i = 0; i < 3; i++) {
		static const uint64_t wrong[] = {SH_EXEC_OFF - 8, SH_EXEC_OFF + AREA - 8,
						 ~UINT64_C(0) >> 1};
		struct sh_seg bad = {SH_SEG_SHARED | wrong[i], 16}, good = {(uintptr_t)got, 16};

		assert_int_equal(dev.ops->copy(dev.host, CHILD, &bad, 1, 0, &good, 1, 16),
				 SH_COPY_DST);
		assert_int_equal(dev.ops->copy(dev.host, 0, &good, 1, CHILD, &bad, 1, 16),
				 SH_COPY_SRC);
	}
	assert_int_equal(dev.ops->copy(dev.host, GONE,
				       &(struct sh_seg){SH_SEG_SHARED | SH_EXEC_OFF, 8}, 1, 0,
				       &(struct sh_seg){(uintptr_t)got, 8}, 1, 8),
			 SH_COPY_GONE);
}

static void whole(void **state)
{
	static const int sides[] = {0, OWN, CHILD, OTHER};
	uint8_t want[2 * PAGE], got[2 * PAGE];

	(void)state;
	for (size_t i = 0; i < sizeof(want); i++)
		want[i] = (uint8_t)(i * 7 + i / 256);
	for (int from = 0; from < 4; from++) {
		for (int to = 0; to < 4; to++) {
			uint8_t *src = area + 16 * PAGE + 5, *dst = area + 32 * PAGE + 3;

			assert_int_equal(copy(sides[from], src, 0, want, sizeof(want)), SH_COPY_OK);
			assert_int_equal(copy(sides[to], dst, sides[from], src, sizeof(want)),
					 SH_COPY_OK);
			memset(got, 0, sizeof(got));
			assert_int_equal(copy(0, got, sides[to], dst, sizeof(got)), SH_COPY_OK);
			assert_memory_equal(got, want, sizeof(want));
		}
	}
}

/* Both lists are cut at random, may be longer than the copy, and have empty pieces. */
static void lists(void **state)
{
	static uint8_t model[AREA];
	struct sh_seg d[50], s[50];

	(void)state;
	srand(1);
	for (int round = 0; round < 200; round++) {
		uint32_t from = round % 3 == 0	 ? 0
				: round % 3 == 1 ? OWN
						 : CHILD,
			 to = round & 1 ? CHILD : OWN;
		uint64_t len = 0, room = 0, at, want = 20000 + (uint64_t)rand() % 60000;
		unsigned int ns, nd;
		static uint8_t got[AREA];

		for (ns = 0, at = 12 * PAGE; ns < 50 && len < want; ns++) {
			s[ns] = (struct sh_seg){(uintptr_t)area + at,
						(uint64_t)rand() % 4000 * (rand() % 5 != 0)};
			at += s[ns].len;
			len += s[ns].len;
		}
		if (len > want)
			len = want;
		for (nd = 0, at = 38 * PAGE; nd < 50 && room < len; nd++) {
			d[nd] = (struct sh_seg){(uintptr_t)area + at,
						nd == 49 ? len : (uint64_t)rand() % 4000};
			at += d[nd].len;
			room += d[nd].len;
		}
		if (room < len)
			len = room;
		for (size_t i = 0; i < sizeof(model); i++)
			model[i] = (uint8_t)(rand() >> 3);
		assert_int_equal(copy(from, area + 12 * PAGE, 0, model, 26 * PAGE), SH_COPY_OK);
		assert_int_equal(dev.ops->copy(dev.host, to, d, nd, from, s, ns, len), SH_COPY_OK);
		assert_int_equal(copy(0, got, to, area + 38 * PAGE, len), SH_COPY_OK);
		assert_memory_equal(got, model, len);
	}
}

static void holes(void **state)
{
	static const uint32_t sides[] = {OWN, CHILD};

	(void)state;
	for (int i = 0; i < 2; i++) {
		for (int j = 0; j < 2; j++) {
			uint8_t *edge = area + 8 * PAGE - 100, *good = area + 20 * PAGE;

			assert_int_equal(copy(sides[i], good, sides[j], edge, 200), SH_COPY_SRC);
			assert_int_equal(copy(sides[i], edge, sides[j], good, 200), SH_COPY_DST);
			assert_int_equal(copy(sides[i], edge + 100, sides[j], good, 8),
					 SH_COPY_DST);
			assert_int_equal(copy(sides[i], good, sides[j], edge, 100), SH_COPY_OK);
		}
	}
	/* Between two other processes the copy goes through a buffer. */
	assert_int_equal(copy(OTHER, area, CHILD, area + 8 * PAGE, 8), SH_COPY_SRC);
	assert_int_equal(copy(OTHER, area + 8 * PAGE, CHILD, area, 8), SH_COPY_DST);
	/* A read-only page can be read, but not written. */
	assert_int_equal(copy(OWN, area, CHILD, area + 9 * PAGE, 8), SH_COPY_OK);
	assert_int_equal(copy(CHILD, area + 9 * PAGE, OWN, area, 8), SH_COPY_DST);
}

static enum sh_copy seal(uint32_t to, const void *dst, uint32_t from, const void *src, uint64_t len,
			 uint64_t *commit, uint64_t word)
{
	struct sh_seg d = {(uintptr_t)dst, len}, s = {(uintptr_t)src, len};

	*commit = 1;
	return dev.ops->seal(dev.host, to, &d, from, &s, 1, len, commit, word);
}

/* A copy that commits, to this process and to another one: it does both, or it commits nothing. */
static void seals(void **state)
{
	static const uint32_t sides[] = {OWN, CHILD};
	uint8_t *edge = area + 8 * PAGE - 100, *good = area + 20 * PAGE, got[PAGE], want[PAGE];
	uint64_t *commit = &sh_proc(&dev, OWN)->ring[0], value = 77;
	struct sh_seg all = {(uintptr_t)good, 4096}, piece[40], val = {(uintptr_t)&value, 8};

	(void)state;
	/* That process has not said where it has mapped device memory. */
	assert_int_equal(seal(CHILD, good, OWN, good, 8, commit, 5), SH_COPY_APART);
	assert_int_equal(*commit, 1);
	sh_proc(&dev, CHILD)->base = (uintptr_t)dev.inst;
	for (int i = 0; i < 2; i++) {
		memset(good, 0x20 + i, PAGE);
		memset(want, 0x20 + i, PAGE);
		assert_int_equal(seal(sides[i], area + 30 * PAGE, OWN, good, PAGE, commit, 5),
				 SH_COPY_OK);
		assert_int_equal(*commit, 5);
		assert_int_equal(copy(0, got, sides[i], area + 30 * PAGE, PAGE), SH_COPY_OK);
		assert_memory_equal(got, want, PAGE);
		*commit = 1;
		assert_int_equal(dev.ops->seal(dev.host, sides[i], &all, 0, &val, 1, 8, commit, 6),
				 SH_COPY_OK);
		assert_int_equal(*commit, 6);
		/* The source is missing, or its second half; then the destination. */
		assert_int_equal(seal(sides[i], good, OWN, edge + 100, 8, commit, 5), SH_COPY_SRC);
		assert_int_equal(*commit, 1);
		assert_int_equal(seal(sides[i], good, OWN, edge, 200, commit, 5), SH_COPY_SRC);
		assert_int_equal(*commit, 1);
		assert_int_equal(seal(sides[i], edge + 100, OWN, good, 8, commit, 5), SH_COPY_DST);
		assert_int_equal(*commit, 1);
		assert_int_equal(seal(sides[i], edge, OWN, good, 200, commit, 5), SH_COPY_DST);
		assert_int_equal(*commit, 1);
		/* As many pieces as one call takes, and more. */
		for (int k = 0; k < 40; k++)
			piece[k] = (struct sh_seg){(uintptr_t)good + (size_t)k, k == 3 ? 0 : 1};
		assert_int_equal(
			dev.ops->seal(dev.host, sides[i], &all, OWN, piece, 33, 32, commit, 7),
			SH_COPY_OK);
		assert_int_equal(*commit, 7);
		assert_int_equal(
			dev.ops->seal(dev.host, sides[i], &all, OWN, piece, 34, 33, commit, 8),
			SH_COPY_APART);
		assert_int_equal(*commit, 7);
	}
	assert_int_equal(seal(CHILD, area + 9 * PAGE, OWN, good, 8, commit, 5), SH_COPY_DST);
	assert_int_equal(*commit, 1);
	/* The source is another process's. */
	assert_int_equal(seal(OWN, good, CHILD, good, 8, commit, 5), SH_COPY_APART);
	assert_int_equal(seal(GONE, good, OWN, good, 8, commit, 5), SH_COPY_GONE);
	assert_int_equal(*commit, 1);
	/* It is another program by now, or it has no device memory where it said. */
	sh_ctx(&dev, CHILD)->witness += PAGE;
	assert_int_equal(seal(CHILD, good, OWN, good, 8, commit, 5), SH_COPY_GONE);
	assert_int_equal(*commit, 1);
	sh_ctx(&dev, CHILD)->witness -= PAGE;
	sh_proc(&dev, CHILD)->base =
		(uintptr_t)area + 8 * PAGE - ((uintptr_t)commit - (uintptr_t)dev.inst);
	assert_int_equal(seal(CHILD, good, OWN, good, 8, commit, 5), SH_COPY_OK);
	assert_int_equal(*commit, 5);
	sh_proc(&dev, CHILD)->base = 0;
}

/* The same with memory that is device memory in one of the two. */
static void seals_shared(void **state)
{
	uint64_t *commit = &sh_proc(&dev, OWN)->ring[0];
	uint8_t *shared = sh_at(&dev, dev.shared_off), *own = area + 20 * PAGE, got[64];
	struct sh_seg there = {SH_SEG_SHARED | dev.shared_off, 64};
	struct sh_seg outside = {SH_SEG_SHARED | dev.shared_end, 64};
	struct sh_seg here = {(uintptr_t)own, 64};

	(void)state;
	memset(shared, 1, 64);
	memset(own, 2, 64);
	assert_int_equal(dev.ops->seal(dev.host, CHILD, &there, OWN, &here, 1, 64, commit, 9),
			 SH_COPY_OK);
	assert_memory_equal(shared, own, 64);
	assert_int_equal(*commit, 9);
	memset(shared, 3, 64);
	sh_proc(&dev, CHILD)->base = (uintptr_t)dev.inst;
	assert_int_equal(dev.ops->seal(dev.host, CHILD, &here, OWN, &there, 1, 64, commit, 10),
			 SH_COPY_OK);
	sh_proc(&dev, CHILD)->base = 0;
	assert_int_equal(copy(0, got, CHILD, own, 64), SH_COPY_OK);
	assert_memory_equal(got, shared, 64);
	assert_int_equal(*commit, 10);
	assert_int_equal(dev.ops->seal(dev.host, OWN, &outside, OWN, &here, 1, 64, commit, 11),
			 SH_COPY_APART);
	assert_int_equal(dev.ops->seal(dev.host, OWN, &here, OWN, &outside, 1, 64, commit, 11),
			 SH_COPY_APART);
	assert_int_equal(*commit, 10);
}

static void gone(void **state)
{
	pid_t pid = memory_of(ENDED, 1);
	struct sh_ctx *ctx = sh_ctx(&dev, ENDED);

	(void)state;
	assert_int_equal(copy(GONE, area, OWN, area, 8), SH_COPY_GONE);
	assert_int_equal(copy(OWN, area, GONE, area, 8), SH_COPY_GONE);
	assert_int_equal(copy(SH_MAX_CTX + 5, area, OWN, area, 8), SH_COPY_GONE);
	/* The process is dead, and the daemon has not noticed yet. */
	ctx->state = SH_CTX_LIVE;
	ctx->pid = (uint32_t)pid;
	assert_int_equal(copy(OWN, area, ENDED, area, 8), SH_COPY_OK);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_int_equal(copy(OWN, area, ENDED, area, 8), SH_COPY_GONE);
	assert_int_equal(copy(ENDED, area, OWN, area, 8), SH_COPY_GONE);
}

/*
 * Gives up its privileges and looks at a child that makes itself undumpable. Returns 0 if all
 * results are right, else the number of the wrong one.
 */
static int look_at_undumpable(void)
{
	uint64_t word = 0;
	struct iovec local[] = {{0}, {.iov_base = &word, .iov_len = sizeof(word)}};
	struct iovec remote[] = {{0}, {.iov_base = area, .iov_len = sizeof(word)}};
	int err, ready[2], go[2], result = 0, mem;
	uint64_t at;
	pid_t pid;

	if ((!geteuid() && setresuid(65534, 65534, 65534)) || prctl(PR_SET_DUMPABLE, 1) ||
	    pipe(ready) || pipe(go))
		return 1;
	pid = fork();
	if (pid == 0) {
		at = sh_witness(&err);
		if (!at || write(ready[1], &at, sizeof(at)) != sizeof(at) ||
		    read(go[0], &at, 1) != 1 || prctl(PR_SET_DUMPABLE, 0) ||
		    write(ready[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	if (read(ready[0], &word, sizeof(word)) != sizeof(word))
		return 2;
	/* The memory of that address space, and of no other. */
	if (sh_witness_open(pid, word + 4096) != -ESRCH)
		return 6;
	mem = sh_witness_open(pid, word);
	if (mem < 0 || write(go[1], "", 1) != 1 || read(ready[0], &at, 1) != 1)
		return 7;
	if (sh_witness_open(pid, word) != -EACCES)
		result = 8;
	at = UINT64_C(0x1122334455667788);
	if (sh_witness_move(mem, (uintptr_t)area, &at, sizeof(at), true) != sizeof(at))
		result = 9;
	at = 0;
	if (sh_witness_move(mem, (uintptr_t)area, &at, sizeof(at), false) != sizeof(at) ||
	    at != UINT64_C(0x1122334455667788))
		result = 10;
	if (sh_witness_move(mem, 4096, &at, sizeof(at), false) != -EFAULT)
		result = 11;
	if (sh_witness_readv(pid, word, local, 1, remote, 1) != -EPERM)
		result = 3;
	if (sh_witness_writev(pid, word, local, 1, remote, 1) != -EPERM)
		result = 4;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	if (sh_witness_readv(pid, word, local, 1, remote, 1) != -ESRCH)
		result = 5;
	if (sh_witness_move(mem, (uintptr_t)area, &at, sizeof(at), true) != -ESRCH)
		result = 12;
	return result;
}

/*
 * A living process that another one may not look at is not taken for one that has ended. Who has
 * opened its memory before still reaches it, until it ends.
 */
static void undumpable(void **state)
{
	pid_t pid = fork();
	int status;

	(void)state;
	if (pid == 0)
		_exit(look_at_undumpable());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole),       cmocka_unit_test(shared),
		cmocka_unit_test(stored_once), cmocka_unit_test(shared_in_part),
		cmocka_unit_test(lists),       cmocka_unit_test(holes),
		cmocka_unit_test(gone),	       cmocka_unit_test(predecessor),
		cmocka_unit_test(replaced),    cmocka_unit_test(undumpable),
		cmocka_unit_test(seals),       cmocka_unit_test(seals_shared),
	};

	return cmocka_run_group_tests_name("softhca_copy", tests, setup, teardown);
}
