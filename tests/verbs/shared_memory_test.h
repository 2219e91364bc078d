/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the tests of shared registered memory have in common: a process with two RC QPs connected to
 * each other, so that its device writes to and reads from its own regions; and the question whether
 * a registration shared its pages. A failure ends the test (CHECK).
 */
#ifndef SHARED_MEMORY_TEST_H
#define SHARED_MEMORY_TEST_H

#include <sys/resource.h>

#include "verbs_test.h"

#define PAGE   4096UL
#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

/* The side of this process. A child that opens the device itself opens its own side here. */
extern struct side s;

/* Open and close s, with 16 pages, and the two QPs. */
void up(void);
void down(void);
/* Maps n pages of private memory that have not been touched. */
uint8_t *pages(size_t n);
struct ibv_mr *reg(void *addr, size_t len);
/*
 * Registers the memory and returns whether that shared its pages. Always false if the test has
 * turned sharing off.
 */
bool shares(void *addr, size_t len, struct ibv_mr **mr);
/*
 * Has the device write to [to, to+len) of a region, checks that the data is visible there, and
 * reads it back through the device.
 */
void through(struct ibv_mr *mr, uint8_t *to, size_t len, uint64_t seed);
/*
 * Has the device write where it must not: the completion must have this status. Connects the QPs
 * again.
 */
void refused(struct ibv_mr *mr, uint8_t *to, size_t len, enum ibv_wc_status status);
/*
 * Runs fn(0) in processes of its own, one after the other: once, in the full tier 15 times (30 with
 * both ways of MMIO), or REPEAT times if the environment has that. If the program gets names as
 * arguments, it runs only those.
 */
void repeat(int argc, char **argv, const char *name, void (*fn)(int arg));
/*
 * How often to do what may meet something else: so often in the full tier, in the quick one a
 * quarter.
 */
int rounds(int n);
/*
 * How often to do the same in a scenario: so often if it runs once, a quarter of that each time if
 * it is repeated.
 */
int each_time(int n);
/*
 * Writes the flags of addr's mapping in smaps, and its protection key, to out; "" if there is none.
 */
void attributes_of(const void *addr, char *out, size_t len);
/*
 * Makes an RC QP and connects it to that of the other of two processes, 0 and 1, which meet here.
 * They tell each other their numbers in words 30 to 33 of the board. hasty: it soon gives up on a
 * peer that is silent.
 */
struct ibv_qp *connect_to_other(int me, bool hasty);
/* Limits descriptors to those that are open. Returns the limit before. */
struct rlimit use_up_descriptors(void);
/* Waits until at most this many pages are shared. */
void given_back(uint64_t used);

#endif
