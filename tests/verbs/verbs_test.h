/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the test programs of this folder share. A program is run in `softhca run` by run-matrix, on each kernel face and
 * each MMIO way; it exits 0 when all that it asserts held. Its opening comment says what it proves ("Description:") and
 * what it needs ("Faces:", "Options:", "Seconds:": see run-matrix).
 *
 * Processes: fork before verbs. spawn() starts a child that opens the device for itself; board is memory that all of
 * them share; meet() is a barrier. Every wait is bounded: a process that hangs is killed by its own alarm.
 */
#ifndef VERBS_TEST_H
#define VERBS_TEST_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include <infiniband/verbs.h>

/* The condition, or: say where and what, and end this process (and so the test) with status 1. */
#define CHECK(cond) \
	do { \
		if (!(cond)) \
			check_failed(__FILE__, __LINE__, #cond, errno); \
	} while (0)
/* Both as long long; both values are shown. */
#define CHECK_EQ(a, b) check_equal(__FILE__, __LINE__, #a, #b, (long long)(a), (long long)(b))

void check_failed(const char *file, int line, const char *what, int err) __attribute__((noreturn));
void check_equal(const char *file, int line, const char *a, const char *b, long long va, long long vb);

#define TEST_SECONDS 50

/* ---- processes ---- */

#define BOARD_WORDS 4096
extern struct board {
	uint64_t word[BOARD_WORDS];	/* for the test */
	uint32_t arrived, generation;	/* of meet() */
} *board;

/* First call of main(): sets up board and the alarm. */
void test_begin(void);
/* A child that runs fn(arg) and exits 0. */
pid_t spawn(void (*fn)(int arg), int arg);
/* Wait for a child that must have ended with status 0. */
void join(pid_t pid);
/* Wait for a child that must have been ended by that signal. */
void join_killed(pid_t pid, int signal);
/* Wait until n processes (with those before them, in one round) have come here. */
void meet(uint32_t n);
/* Post and await a word of the board: release and acquire. await() returns when it is at least value. */
void post(unsigned int word, uint64_t value);
void await(unsigned int word, uint64_t value);
void sleep_ms(unsigned int ms);

/* ---- the emulator ---- */

/* `softhca port`, of port 1 of this host's first HCA, as port_change("lid %d", 77). It must succeed. */
void port_change(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* `softhca fault`, as fabric_fault("drop 2"). It must succeed. */
void fabric_fault(const char *what);
/* A counter of the first HCA, as `softhca show --json` has it. */
uint64_t hca_counter(const char *name);

/* ---- verbs ---- */

/* An open device with a PD, and what nearly every test needs. */
struct side {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;	/* NULL unless asked for */
	struct ibv_cq *scq, *rcq;		/* may be one */
	struct ibv_mr *mr;
	uint8_t *buf;
	size_t size;
	uint16_t lid;
};
#define SIDE_CHANNEL 1		/* rcq has a completion channel */
#define SIDE_ONE_CQ 2		/* scq == rcq */

void side_open(struct side *s, size_t size, int cqe, int flags);
void side_close(struct side *s);
struct ibv_context *open_device(unsigned int number);

/* A QP in RESET. cap 0 means 16 work requests, 4 SGEs, no inline. */
struct ibv_qp *make_qp(struct side *s, enum ibv_qp_type type, struct ibv_srq *srq, struct ibv_xrc_domain *domain,
		       const struct ibv_qp_cap *cap);

/* How an RC, UC or XRC QP is connected; defaults (connect_defaults) suit a test that waits for no timer. */
struct link {
	uint16_t dlid;
	uint32_t dest_qpn, psn_mine, psn_theirs;
	enum ibv_mtu mtu;
	uint8_t timeout, retry_cnt, rnr_retry, min_rnr_timer, rd_atomic, dest_rd_atomic, port;
	int access;
};
void link_defaults(struct link *l, uint16_t dlid, uint32_t dest_qpn);
int to_init(struct ibv_qp *qp, const struct link *l);		/* 0 or errno */
int to_rtr(struct ibv_qp *qp, const struct link *l);
int to_rts(struct ibv_qp *qp, const struct link *l);
void connect_qp(struct ibv_qp *qp, const struct link *l);	/* all three, checked */
int to_state(struct ibv_qp *qp, enum ibv_qp_state state);	/* RESET, ERR, SQD: mask STATE alone */
enum ibv_qp_state real_state(struct ibv_qp *qp);		/* as query_qp reports it */
/* Two RC (or UC) QPs of one process, connected to each other; or one to itself. */
void connect_pair(struct side *s, struct ibv_qp *a, struct ibv_qp *b);
/* The same, but with everything else of the link as given. */
void connect_pair_as(struct side *s, struct ibv_qp *a, struct ibv_qp *b, const struct link *like);

int post_recv1(struct ibv_qp *qp, struct side *s, uint64_t wr_id, size_t off, uint32_t len);
int post_srq1(struct ibv_srq *srq, struct side *s, uint64_t wr_id, size_t off, uint32_t len);
int post_send1(struct ibv_qp *qp, struct side *s, uint64_t wr_id, size_t off, uint32_t len, int flags);
int post_rdma1(struct ibv_qp *qp, struct side *s, enum ibv_wr_opcode opcode, uint64_t wr_id, size_t off, uint32_t len,
	       uint64_t raddr, uint32_t rkey, int flags);

/* The next completion, within the bound of the test. */
struct ibv_wc next_wc(struct ibv_cq *cq);
/* The next completion must be this one. */
struct ibv_wc expect_wc(struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_status status);
/* Nothing may come for some time: ms of polling. */
void expect_silence(struct ibv_cq *cq, unsigned int ms);
/*
 * The next asynchronous event, acknowledged; must be of this type (COMM_EST before it is passed over, unless it is what
 * is asked for). Returns its element as ibv_get_async_event gave it.
 */
struct ibv_async_event expect_event(struct ibv_context *context, int type);
/* The pending event must be COMM_EST, of a QP or a receive QP; acknowledged. */
void skip_established(struct ibv_context *context);
bool event_pending(struct ibv_context *context);

/* Contents that tell who sent what: pattern of a seed, and where a buffer first differs from it (-1: nowhere). */
void fill(void *buf, size_t len, uint64_t seed);
long differs(const void *buf, size_t len, uint64_t seed);

#endif
