/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Around fork().
 */
#ifndef SOFTHCA_SHIM_FORK_H
#define SOFTHCA_SHIM_FORK_H

void shim_fork_prepare(void);
void shim_fork_parent(void);
void shim_fork_child(void);
/*
 * Between these two no fork of another thread lists queue pages or copies them for a child, and
 * none is between the two. The caller's handlers wait.
 */
void shim_fork_hold_off(void);
void shim_fork_let(void);
/* Last of all in the child: the program's handlers may run. */
void shim_fork_unblock(void);

#endif
