/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What happens after the command that causes it has been answered, or later.
 */
#ifndef SOFTHCA_KERNEL_RDMACM_TIMER_H
#define SOFTHCA_KERNEL_RDMACM_TIMER_H

#include <stdint.h>

struct rdmacm;

int cm_timer_init(struct rdmacm *cm);
void cm_timer_exit(struct rdmacm *cm);
/*
 * Between these two a command is carried out. What it makes due at once is done by cm_timer_go(),
 * when the command has been answered, without a turn of the loop.
 */
void cm_timer_hold(struct rdmacm *cm);
void cm_timer_go(struct rdmacm *cm);
/* Has cm_timer_ready() called at that time of sh_now(), or before. 1: at once. */
void cm_timer_set(struct rdmacm *cm, uint64_t due);
/* Delivers messages, and does what is due. */
void cm_timer_ready(struct rdmacm *cm);

#endif
