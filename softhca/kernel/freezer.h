/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Processes that a cgroup's freezer holds (docker pause). Their state in /proc is that of a thread
 * that sleeps (version 2) or waits for a page (version 1).
 */
#ifndef SOFTHCA_KERNEL_FREEZER_H
#define SOFTHCA_KERNEL_FREEZER_H

#include <stdbool.h>

/* Where cgroups are mounted. Unit tests set it. */
extern const char *freezer_root;

/*
 * Does the freezer hold all threads of the process's cgroup? False, too, where the daemon does not
 * see that cgroup. proc: the process's directory, /proc/PID.
 */
bool freezer_holds(const char *proc);

#endif
