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

/* A sanitizer's heap maps memory as an application does, and is not for a child of busy threads. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

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
/*
 * Runs fn(0) in processes of its own, one after the other: 3 times, in the full tier 30 times, or as often as the
 * environment's REPEAT says. A program that is given names as arguments runs those alone.
 */
void repeat(int argc, char **argv, const char *name, void (*fn)(int arg));
/* Waits until no more pages than these are shared. */
void given_back(uint64_t used);

#endif
