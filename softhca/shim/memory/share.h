/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Registered memory as device memory. The control connection is held, unless a function says
 * otherwise.
 */
#ifndef SOFTHCA_SHIM_SHARE_H
#define SOFTHCA_SHIM_SHARE_H

#include <stdbool.h>
#include <stdint.h>

struct ranges;
struct sh_action;
struct sh_pin_result;

void shim_share_examine(uint64_t addr, uint64_t len, struct sh_pin_result *pin);
/*
 * If it cannot exchange the pages, it tells the daemon which are not the region's. Returns 0, or
 * what shim_changed() returns: after -ENOTCONN the device would write where the program does not
 * look.
 */
int shim_share(const struct sh_action *action);
void shim_give_back(const struct sh_action *action);
/*
 * Pages of the range no longer belong to a region, whatever is mapped there now. False: for want of
 * memory they still count as the region's. What is mapped there decides in the end.
 */
bool shim_share_forget(uint64_t addr, uint64_t len);
/*
 * Tells the daemon (enum sh_changed). If there is none any more, pages are revoked without it, and
 * the error is -EIO where they are gone. Returns 0, what the daemon answers or would answer, or
 * -ENOTCONN if it cannot be told.
 */
int shim_changed(uint32_t what, uint64_t addr, uint64_t len);
/*
 * Makes all regions that overlap the range private again. Returns 0, -EBUSY if the process is not
 * still, -ENOMEM, or -ENOTCONN if the daemon cannot be told.
 */
int shim_privatize(uint64_t addr, uint64_t len);
/*
 * Makes private the regions that overlap [low, high), and those that may not be device memory
 * beside threads and across fork(). May be called from anywhere: it takes the connection itself.
 * Same results.
 */
int shim_make_private(uint64_t low, uint64_t high);
/*
 * The same, for a call that must not go on while the process, which is alone, has such memory.
 * Waits for other processes that copy from or to this one, or use what was revoked. -EAGAIN: one
 * has done so for two seconds.
 */
int shim_make_private_first(uint64_t low, uint64_t high);
/*
 * Places at which pages that once were device memory begin or end. The kernel may keep the mappings
 * on either side apart for good. Of many places the older ones are forgotten.
 */
void shim_note_seam(uint64_t at);
bool shim_is_seam(uint64_t at);
/* madvise() may have joined mappings of a region in the range that map_region() keeps apart. */
void shim_share_split(uint64_t addr, uint64_t len);
/* Notes queue pages that are being mapped. */
void shim_share_queue(const struct sh_action *action);
const struct ranges *shim_share_regions(void);
const struct ranges *shim_share_queues(void);
void shim_share_forked(void);
/*
 * Does the range overlap a region? shim_may_share() needs no connection: a first check, which may
 * say yes too often.
 */
bool shim_may_share(uint64_t addr, uint64_t len);
bool shim_shares(uint64_t addr, uint64_t len);
/*
 * The same, taking the connection itself. False also in a handler that interrupted a call with it.
 */
bool shim_shares_now(uint64_t addr, uint64_t len);
/* The same of queue pages, which may have been unmapped since. */
bool shim_may_queue(uint64_t addr, uint64_t len);
bool shim_shares_any(void); /* is there a region, or has there been one? */

#endif
