/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the tests of shared registered memory share: a process with two RC QPs connected to each other, so that its device
 * writes to and reads from its own regions, and whether a registration shared its pages. A failure ends the test (CHECK).
 */
#ifndef SHARED_MEMORY_TEST_H
#define SHARED_MEMORY_TEST_H

#include "verbs_test.h"

#define PAGE 4096UL
#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

/* Of this process. A child that opens the device for itself opens this one anew. */
extern struct side s;

/* s, of 16 pages, and the two QPs. */
void up(void);
void down(void);
/* n pages of private memory that nobody has touched. */
uint8_t *pages(size_t n);
struct ibv_mr *reg(void *addr, size_t len);
/* Registers it, and whether that shared it. Where the way is closed on purpose nothing is. */
bool shares(void *addr, size_t len, struct ibv_mr **mr);
/* What the device writes to [to, to+len) of a region, which must show there; and reads back from it. */
void through(struct ibv_mr *mr, uint8_t *to, size_t len, uint64_t seed);
/* It may not write there: the completion has this status. The QPs are connected anew. */
void refused(struct ibv_mr *mr, uint8_t *to, size_t len, enum ibv_wc_status status);
/* Waits until no more pages than these are shared. */
void given_back(uint64_t used);

#endif
