/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The daemon reads a program's commands, and writes its answers, in the program's memory. Where the
 * program has to supply a page first, or to lift its protection, by a userfaultfd, the program
 * waits for that, and not the daemon. A program that has none pays nothing.
 */
#ifndef SOFTHCA_SHIM_TOUCH_H
#define SOFTHCA_SHIM_TOUCH_H

#include <stdbool.h>
#include <string.h>

#include "softhca/host/sys.h"
#include "softhca/shim/memory/memory.h"
#include "softhca/shim/memory/still.h"

#define TOUCH_MOST (UINT64_C(1) << 20) /* of one command or answer */

/*
 * answer: the daemon is to write there. The byte that is put back is one of those. What cannot be
 * read, or written, the daemon finds out.
 */
static inline void touch(uint64_t addr, uint64_t len, bool answer)
{
	uint64_t end = addr + (len < TOUCH_MOST ? len : TOUCH_MOST);
	char byte;

	if (!still_lent())
		return;
	for (; addr < end; addr = (addr | (SHIM_PAGE - 1)) + 1)
		if (sh_peek(&byte, addr, 1) || (answer && sh_poke(addr, &byte, 1)))
			return;
}

/*
 * A command of uverbs or of rdma_cm, of which have bytes are here: it begins with its number and
 * two lengths, behind which is the address of the answer. An extended one has more of them.
 */
static inline void touch_answer(const void *command, size_t have, uint64_t len)
{
	uint64_t addr;

	if (have < 2 * sizeof(addr) || !len)
		return;
	memcpy(&addr, (const char *)command + sizeof(addr), sizeof(addr));
	touch(addr, len, true);
}

#endif
