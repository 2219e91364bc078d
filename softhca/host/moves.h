/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A process that exchanges pages of its memory, and threads that reach into it by its addresses:
 * each waits for the other. See struct sh_moves in device/memory/layout.h.
 */
#ifndef SOFTHCA_HOST_MOVES_H
#define SOFTHCA_HOST_MOVES_H

#include "softhca/device/memory/layout.h"

/* Words that this thread has taken, for the memory of one or two processes. */
struct sh_reach {
	int word[2];
};

/* Called before and after memory of these processes is read or written; 0: no process. */
void sh_reach_begin(struct sh_moves *moves, struct sh_reach *r, uint32_t pid, uint32_t other);
void sh_reach_end(struct sh_moves *moves, const struct sh_reach *r);
/* This thread does not reach anywhere any more, whatever it had begun. */
void sh_reach_forget(struct sh_moves *moves);

/*
 * Around an exchange of this process's pages: no thread reaches into it meanwhile. Returns the word
 * that it took, or -EBUSY if threads have been reaching into this process for long.
 */
int sh_move_begin(struct sh_moves *moves);
void sh_move_end(struct sh_moves *moves, int word);

#endif
