// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Copies that threads of the instance ask for, because the kernel does not let them reach into the
 * process that has the memory. Makes them by the descriptor that the daemon has opened when that
 * process connected. Only what the process has registered is reached, and its queues: a request
 * comes through device memory, where each process of the instance can write. The daemon's thread
 * makes each copy between two commands, so it ends before the command that takes the memory away.
 */
#include <errno.h>

#include "softhca/host/ferry.h"
#include "softhca/host/moves.h"
#include "softhca/host/witness.h"
#include "ferry.h"
#include "kern.h"
#include "process.h"
#include "room.h"

static bool reachable(struct kernel *k, const struct kproc *p, uint64_t addr, uint64_t len,
		      bool out)
{
	for (uint32_t i = 0; rooms[i]; i++)
		if (rooms[i]->reachable && rooms[i]->reachable(k, p, addr, len, out))
			return true;
	return false;
}

static long copy(void *arg, uint32_t tid, uint32_t proc, uint64_t witness, uint64_t addr, void *buf,
		 size_t len, bool out)
{
	struct kernel *k = arg;
	const struct kproc *p = proc < SH_MAX_PROC ? k->proc[proc] : NULL;
	struct sh_reach reach;
	long done;

	if (!p || p->user.witness != witness)
		return -ESRCH;
	if (p->user.mem <= 0)
		return -EPERM;
	/*
	 * What the daemon copies by itself it has announced before (sh_host_reach()). It may be a
	 * queue that is being made.
	 */
	if (!tid)
		return sh_witness_move(p->user.mem, addr, buf, len, out);
	if (addr + len < addr || !reachable(k, p, addr, len, out))
		return -EFAULT;
	if (!sh_reach_for(&k->dev.inst->moves, &reach, (uint32_t)p->pid, tid))
		return -ESRCH;
	done = sh_witness_move(p->user.mem, addr, buf, len, out);
	sh_reach_end(&k->dev.inst->moves, &reach);
	k->count.copies_made += done > 0;
	return done;
}

void ferry_begin(struct kernel *k)
{
	sh_ferry_open(&k->dev, copy, k);
}

void ferry_serve(struct kernel *k)
{
	sh_ferry_serve(&k->dev);
}

void ferry_end(struct kernel *k)
{
	sh_ferry_open(&k->dev, NULL, NULL);
	sh_ferry_serve(&k->dev);
}
