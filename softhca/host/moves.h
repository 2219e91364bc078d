/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A process that exchanges pages of its memory, and threads that reach into it by its addresses:
 * each waits for the other. See struct sh_moves in device/memory/layout.h.
 */
#ifndef SOFTHCA_HOST_MOVES_H
#define SOFTHCA_HOST_MOVES_H

#include <stdbool.h>
#include <sys/uio.h>

#include "softhca/device/memory/layout.h"

/* Words that this thread has taken, for the memory of one or two processes. */
struct sh_reach {
	int word[2];
};

struct sh_seg;

/* Memory of a process, which a thread is about to reach. */
struct sh_reached {
	uint32_t pid; /* 0: no process */
	unsigned int nseg;
	const struct sh_seg *seg; /* nseg 0: any of its memory */
};

/*
 * Called before and after memory of one or two processes is read or written. Waits as long as a
 * piece is being exchanged that the memory overlaps. False: the thread that exchanges it is
 * stopped, and has been waited for; nothing is announced.
 */
bool sh_reach_begin(struct sh_moves *moves, struct sh_reach *r, const struct sh_reached *one,
		    const struct sh_reached *other);
/*
 * The same for a call of the program's, which waits as long as it takes. But it does not wait for a
 * thread that this process traces: that may be stopped in an exchange until its tracer goes on.
 */
void sh_reach_by_program(struct sh_moves *moves, struct sh_reach *r, uint32_t pid,
			 const struct iovec *remote, unsigned long nremote);
/*
 * The same for a caller that does not wait. False: that process is exchanging pages, and nothing is
 * announced.
 */
bool sh_reach_try(struct sh_moves *moves, struct sh_reach *r, uint32_t pid);
/*
 * The same for a caller that copies in place of another thread, which has announced that it reaches
 * into that process. False: that thread has died.
 */
bool sh_reach_for(struct sh_moves *moves, struct sh_reach *r, uint32_t pid, uint32_t thread);
void sh_reach_end(struct sh_moves *moves, const struct sh_reach *r);
/*
 * Called when this process becomes part of an instance. It is not exchanging pages then, but an
 * earlier process with its number may have been killed in an exchange.
 */
void sh_moves_begin(struct sh_moves *moves);
/*
 * Takes back the words of threads that have ended. The daemon calls it when a process has ended:
 * later, other threads of the machine may have the numbers, and the words would count as theirs.
 */
void sh_moves_sweep(struct sh_moves *moves);
/* Has the thread, or the process, with this number ended? A zombie has. */
bool sh_thread_dead(uint32_t number);
/* In a forked child: its thread has a number of its own. */
void sh_moves_forked(void);
/* This thread does not reach anywhere any more, whatever it had begun. */
void sh_reach_forget(struct sh_moves *moves);

/*
 * Around the exchange of a piece of this process's memory: no thread reaches there meanwhile.
 * Returns the word that it took, or -EBUSY if threads have been reaching into this process for
 * long.
 */
int sh_move_begin(struct sh_moves *moves, uint64_t from, uint64_t to);
/*
 * The same for the next piece. The threads that wait for this process have their turn before. The
 * word of the piece before is given back, also if this fails.
 */
int sh_move_next(struct sh_moves *moves, int word, uint64_t from, uint64_t to);
void sh_move_end(struct sh_moves *moves, int word);

#endif
