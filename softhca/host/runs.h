/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Which host a process is on, in an instance of several hosts.
 *
 * Two things can say it: the environment (SOFTHCA_HOST), and the `softhca run` that the process
 * descends from. A launcher may carry its own environment to every process that it starts on other
 * hosts, and so overwrite what the remote shell set there. But inside one `run` a person sets the
 * variable by hand. So each `run` has a tag, "PID.START". START is in clock ticks since boot, as in
 * /proc/PID/stat: no two processes share both. The run puts the tag into the environment as
 * SOFTHCA_RUN, and records it, with its host, as runs/TAG in the instance. A run is a child
 * subreaper: what it started stays below it.
 *
 * A record outlives its run if the run left processes behind or was killed. Those processes have
 * the tag in their environment, and the record tells that they have not moved. Such a record goes
 * with the instance.
 */
#ifndef SOFTHCA_HOST_RUNS_H
#define SOFTHCA_HOST_RUNS_H

#define SH_RUN_TAG 48

/*
 * Records this process as a run on that host, and returns its tag. 0, or -errno with nothing
 * recorded.
 */
int sh_run_record(const char *dir, unsigned int host, char tag[SH_RUN_TAG]);

/* Removes the record: no process that descends from the run is left. */
void sh_run_forget(const char *dir, const char *tag);

/*
 * For a new process image with that SOFTHCA_RUN in its environment, or NULL: the host that it is on
 * whatever SOFTHCA_HOST says, or -1 if SOFTHCA_HOST decides. *nearest is the host of the nearest
 * run above it, or -1. Allocates no memory.
 */
int sh_run_host(const char *dir, const char *tag, int *nearest);

#endif
