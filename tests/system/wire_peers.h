/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * For wire_peers.c: what each of its two processes has and does. One thread. Each function ends the
 * process at the first thing that is not so.
 */
#ifndef WIRE_PEERS_H
#define WIRE_PEERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#define HALF ((size_t)2 << 20)
#define QKEY 0x11111111

struct place {
	uint64_t addr;
	uint32_t qpn, rkey;
	uint16_t lid, pad;
	uint32_t pad2;
	union ibv_gid gid; /* with lid 0 */
};

/* ---- wire_peers_pair.c ---- */

extern struct place mine, theirs;
extern struct ibv_mr *mr;
extern struct ibv_cq *cq;
/*
 * The second QP has a short time-out; NULL: there is none. Requests are posted to qp, which is one
 * of the two.
 */
extern struct ibv_qp *first, *second, *qp;
extern struct ibv_ah *ah;  /* of UD */
extern unsigned char *buf; /* the first half is for sending, the second for what comes */
extern uint32_t first_psn;
extern unsigned int path_mtu; /* in bytes */
extern bool sleeps;	      /* where there is no completion */
extern int tcp;

void connect_tcp(int port, const char *host);
void say(void);
void hear(void);
/* Opens the device. */
void make(void);
/* Makes a QP, and connects it to the one that the other process makes. */
void join(enum ibv_qp_type type, int timeout, int retries);
/* Makes a QP of UD, and an address for that of the other process. */
void join_ud(void);
void post(enum ibv_wr_opcode opcode, size_t local, uint32_t len, uint64_t remote, uint32_t rkey,
	  uint64_t add, uint64_t swap);
void post_receive(size_t local, uint32_t len);
struct ibv_wc completion(void);
void done(void); /* a completion without an error */
/*
 * What a message of that length contains, in the first half; and that it has come, in the second.
 */
void fill(uint32_t len);
void check(uint32_t len);
/* The same at a place in buf, from byte `first` on, of a message or the beginning of one. */
void check_at(size_t place, size_t first, uint32_t len);
void check_of(size_t place, size_t first, uint32_t have, uint32_t len);

/* ---- wire_peers_operations.c ---- */

#define SIZES 13 /* of messages */
extern const uint32_t sizes[SIZES];
void few_sizes(void); /* from now on, for a wire that loses packets */

/* Each of these has its counterpart in the other process. */
void passive(void);
void active(void);
void uc_passive(void);
void uc_active(void);
void ud_passive(void);
void ud_active(void);
void last_passive(void);
void last_active(void);
/* Round by round, until the old process has ended. */
void new_passive(void);
void new_active(void);

/* ---- wire_peers_odd.c ---- */

void uc_lossy_passive(void);
void uc_lossy_active(void);
void mtus_passive(void);
void mtus_active(void);

/* ---- wire_peers_ends.c ---- */

void waits(void); /* for the end of the other process */
void is_killed(void);
/* What the other process does meanwhile: wire_peers.c says it of each. */
void survives(void);
void is_old(void);
void outlives(void);
void stopped(void);
void standing(void);
void is_left(void);

#endif
