// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Knows which threads run a handler of the program on an alternate stack. Such a stack has room for
 * a signal's frame and a few calls, often SIGSTKSZ in all, and a post needs no more on a card.
 * Device code needs more, so doorbells that are rung there are carried out on another stack
 * (doorbells/bus.c).
 *
 * Other threads than these execute nothing for it: shim_unusual, which each post reads, counts
 * them. A handler may leave its stack by a jump. Then the thread finds at its next doorbell that it
 * is not there any more. One that ends, or does not use the device again, stays counted, and posts
 * of its process take a few instructions more. Holds no lock.
 */
#include <signal.h>
#include <ucontext.h>

#include "softhca/shim/attach.h"
#include "softhca/shim/compiler.h"
#include "alternate.h"

static TLS struct {
	uintptr_t from, to; /* to: 0 if this thread is not counted */
} stack;

static bool on_it(void)
{
	uintptr_t at = (uintptr_t)__builtin_frame_address(0);

	return at >= stack.from && at < stack.to;
}

bool alternate_begin(const void *context)
{
	const stack_t *now = &((const ucontext_t *)context)->uc_stack;
	bool counted = stack.to;

	if (now->ss_flags & SS_DISABLE || (counted && on_it()))
		return false;
	stack.from = (uintptr_t)now->ss_sp;
	stack.to = stack.from + now->ss_size;
	if (!on_it())
		stack.to = 0;
	if (stack.to && !counted)
		__atomic_add_fetch(&shim_unusual, SHIM_ALTERNATE, __ATOMIC_RELAXED);
	else if (!stack.to && counted)
		__atomic_sub_fetch(&shim_unusual, SHIM_ALTERNATE, __ATOMIC_RELAXED);
	return stack.to;
}

void alternate_end(void)
{
	if (!stack.to)
		return;
	stack.to = 0;
	__atomic_sub_fetch(&shim_unusual, SHIM_ALTERNATE, __ATOMIC_RELAXED);
}

bool alternate_here(void)
{
	if (stack.to && !on_it())
		alternate_end();
	return stack.to;
}

uint32_t alternate_forked(void)
{
	return stack.to ? SHIM_ALTERNATE : 0;
}
