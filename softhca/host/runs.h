/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Which host a process is on, where an instance has several.
 *
 * Two can say it: the environment (SOFTHCA_HOST), and the `softhca run` that the process descends from. A launcher may carry
 * its own environment to every process that it starts on other hosts, over what the remote shell there had set. But
 * inside one `run` a person sets the variable by hand. So each `run` has a tag, "PID.START" (START in clock ticks since
 * boot, as in /proc/PID/stat: no two processes share both), which it puts into the environment as SOFTHCA_RUN and
 * records, with its host, as runs/TAG in the instance. It is a child subreaper: what it started stays below it.
 *
 * A record outlives its run where that has left processes behind, or was killed: what was left has the tag in its environment
 * and is known by the record not to have moved. Such a record goes with the instance.
 */
#ifndef SOFTHCA_HOST_RUNS_H
#define SOFTHCA_HOST_RUNS_H

#define SH_RUN_TAG 48

/* Record this process as a run on that host; its tag. 0 or -errno, and nothing is recorded. */
int sh_run_record(const char *dir, unsigned int host, char tag[SH_RUN_TAG]);

/* Take the record away: no process is left that descends from the run. */
void sh_run_forget(const char *dir, const char *tag);

/*
 * For a new process image with that SOFTHCA_RUN in its environment, or NULL: the host that it is on whatever SOFTHCA_HOST
 * says, or -1: the variable decides. *nearest is the host of the nearest run above it, or -1. Allocates nothing.
 */
int sh_run_host(const char *dir, const char *tag, int *nearest);

#endif
