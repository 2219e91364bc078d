// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: a thread in device code that was switched out is soon armed again, so that others
 * can end its life there if it is stopped (softhca/device/memory/life.h). The test switches a
 * sender out at each instruction, and counts how many it executes until it has armed itself again.
 */
#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "softhca/device/transport/responder.h"
#include "softhca_scene.h"
#include "softhca_step.h"

#if defined(__SANITIZE_ADDRESS__) || !defined(__OPTIMIZE__)
#define MOST UINT32_MAX /* the ways are long */
#else
/* gcc -O2 makes 1461 of it, other compilers some more; without the places in between it is 2242. */
#define MOST 2000
#endif

static uint64_t peek(pid_t pid, const void *at)
{
	return (uint64_t)ptrace(PTRACE_PEEKDATA, pid, at, NULL);
}

/*
 * A step switches the sender out, and the kernel then clears the word. So what is found there was
 * stored by the last instruction. While a sender is pinned, and outside of sh_catch(), nothing
 * counts.
 */
static unsigned int longest_way(const struct plot *plot, unsigned int *pinned)
{
	struct scene *s = calloc(1, sizeof(*s));
	unsigned int way = 0, longest = 0;
	uint64_t at, before = 0;
	bool inside = false;
	pid_t pid;

	scene_open(s, plot);
	for (pid = victim(s), *pinned = 0; single_step(pid); before = at) {
		uint64_t armed = peek(pid, &sh_self.armed);

		at = (uint64_t)ptrace(PTRACE_PEEKUSER, pid, (void *)CHILD_PC, NULL);

		*pinned += inside && !armed;
		inside = inside || armed;
		if (!armed || peek(pid, (void *)(uintptr_t)peek(pid, &sh_self.cs)) == armed)
			way = 0;
		else if (at != before) /* a string instruction takes many steps */
			way++;
		if (way > longest)
			longest = way;
	}
	tpair_close(&s->p);
	free(s);
	return longest;
}

static void adds(struct scene *s)
{
	s->wr.swap_add = 5;
}

static void test_ways(void **state)
{
	static const struct plot plots[] = {
		{"SEND", SH_QPT_RC, false, MLX4_OPCODE_SEND, 200, NULL, 0},
		{"SEND to an SRQ", SH_QPT_RC, true, MLX4_OPCODE_SEND, 200, NULL, 0},
		{"large SEND", SH_QPT_RC, true, MLX4_OPCODE_SEND, 8200, NULL, 0},
		{"SENDs over XRC", SH_QPT_XRC, false, MLX4_OPCODE_SEND, 200, NULL, 3},
		{"large SEND over XRC", SH_QPT_XRC, false, MLX4_OPCODE_SEND, 8200, NULL, 0},
		{"SENDs to a CQ that seems full", SH_QPT_RC, false, MLX4_OPCODE_SEND, 200,
		 nearly_full, 3},
		{"WRITE", SH_QPT_RC, true, MLX4_OPCODE_RDMA_WRITE, 100, NULL, 0},
		{"long WRITE", SH_QPT_RC, true, MLX4_OPCODE_RDMA_WRITE, SH_SHORT + 1000, NULL, 0},
		{"WRITEs with immediate", SH_QPT_RC, false, MLX4_OPCODE_RDMA_WRITE_IMM, 200, NULL,
		 3},
		{"READ", SH_QPT_RC, true, MLX4_OPCODE_RDMA_READ, 200, NULL, 0},
		{"long READ", SH_QPT_RC, true, MLX4_OPCODE_RDMA_READ, 8200, NULL, 0},
		{"atomic operation", SH_QPT_RC, true, MLX4_OPCODE_ATOMIC_FA, 8, adds, 0},
		{"SENDs over UC", SH_QPT_UC, true, MLX4_OPCODE_SEND, 200, NULL, 3},
		{"large SEND over UC", SH_QPT_UC, true, MLX4_OPCODE_SEND, 8200, NULL, 0},
		{"SEND over UD", SH_QPT_UD, false, MLX4_OPCODE_SEND, 200, NULL, 0},
		{"SENDs over UD", SH_QPT_UD, true, MLX4_OPCODE_SEND, 200, NULL, 3},
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(plots) / sizeof(plots[0]); i++) {
		unsigned int pinned, longest;

		longest = longest_way(&plots[i], &pinned);
		printf("# %s: armed again after %u instructions at most, %u pinned\n",
		       plots[i].name, longest, pinned);
		assert_in_range(longest, 1, MOST);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_ways)};
	struct mock *m = mock_new(NULL);
	bool can = sh_self.catches;

	mock_free(m);
	if (!can) {
		printf("1..0 # SKIP no restartable sequences on this system\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
