/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the test programs of this folder share. A program is run in `softhca run` by run-matrix, on
 * each kernel face and each MMIO way; it exits 0 when all that it asserts held. Its opening comment
 * says what it proves ("Description:") and what it needs ("Faces:", "Options:", "Seconds:": see
 * run-matrix).
 *
 * Processes: fork before verbs. spawn() starts a child that opens the device for itself; board is
 * memory that all of them share; meet() is a barrier. Every wait is bounded: a process that hangs
 * is killed by its own alarm.
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

/* Checks the condition. If it is false, says where and which, and ends this process (and so the
 * test) with status 1. */
#define CHECK(cond)                                                                                \
	do {                                                                                       \
		if (!(cond))                                                                       \
			check_failed(__FILE__, __LINE__, #cond, errno);                            \
	} while (0)
/* Compares both as long long, and prints both if they differ. */
#define CHECK_EQ(a, b) check_equal(__FILE__, __LINE__, #a, #b, (long long)(a), (long long)(b))

void check_failed(const char *file, int line, const char *what, int err) __attribute__((noreturn));
void check_equal(const char *file, int line, const char *a, const char *b, long long va,
		 long long vb);

/*
 * A sanitizer's heap maps memory as an application does, and a child of a process with busy threads
 * cannot use it.
 */
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

/* How long a process of a test may take: 50 seconds, or as many as TEST_SECONDS of the environment
 * says, for a machine that is slow. */
unsigned int test_seconds(void);

/* ---- processes ---- */

#define BOARD_WORDS 4096
extern struct board {
	uint64_t word[BOARD_WORDS];   /* free for the test to use */
	uint32_t arrived, generation; /* for meet() */
} * board;

/* The first call of main(). Sets up board and the alarm. */
void test_begin(void);
/*
 * Seeds random(): by SEED in the environment, or else anew. A check that fails after it prints how
 * to repeat it.
 */
void test_seed(void);
/* Forks a child that runs fn(arg) and exits with status 0. */
pid_t spawn(void (*fn)(int arg), int arg);
/* Waits for a child, which must have exited with status 0. */
void join(pid_t pid);
/* Waits for a child, which must have been ended by that signal. */
void join_killed(pid_t pid, int signal);
/* Waits until n processes have called this; further calls begin a new round. */
void meet(uint32_t n);
/* Store and await a word of the board, with release and acquire. await() returns when the word is
 * at least value. */
void post(unsigned int word, uint64_t value);
void await(unsigned int word, uint64_t value);
void sleep_ms(unsigned int ms);
/*
 * A test that leaves out a part says so and ends as skipped, whatever else passed: main() returns
 * what test_end() returns, 0 or 77. The reason is the last line that the test prints. Processes
 * that main() starts cannot give one.
 */
void skip_part(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
int test_end(void);
/*
 * Whether this process may register so much. That counts against `ulimit -l`, unless the process
 * has CAP_IPC_LOCK. If it may not, part is skipped, as in "registering a large buffer".
 */
bool may_lock(size_t bytes, const char *part);
/* Skips that part, whatever the limit. */
void lacks_memory_for(const char *part, size_t bytes, uint64_t limit);
/* Whether this user may make user namespaces here. */
bool has_namespaces(void);
/* Keeps this thread, and what it starts, to the first of the processors that it may use. */
void on_one_processor(void);

/* ---- the emulator ---- */

/* Runs `softhca port` for port 1 of this host's first HCA, as in port_change("lid %d", 77). It must
 * succeed. */
void port_change(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Runs `softhca fault`, as in fabric_fault("drop 2"). It must succeed. */
void fabric_fault(const char *what);
/* Returns a counter of the first HCA, by its name in `softhca show --json`. */
uint64_t hca_counter(const char *name);
/* The same of a QP of the first HCA. */
uint64_t qp_counter(uint32_t qpn, const char *name);

/* ---- verbs ---- */

/* An open device with a PD, and what nearly all tests need. */
struct side {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel; /* NULL without SIDE_CHANNEL */
	struct ibv_cq *scq, *rcq;	  /* may be the same */
	struct ibv_mr *mr;
	uint8_t *buf;
	size_t size;
	uint16_t lid;
};
#define SIDE_CHANNEL 1 /* rcq has a completion channel */
#define SIDE_ONE_CQ  2 /* scq == rcq */

void side_open(struct side *s, size_t size, int cqe, int flags);
void side_close(struct side *s);
struct ibv_context *open_device(unsigned int number);

/* Makes a QP in RESET. A NULL cap means 16 work requests, 4 SGEs, no inline data. */
struct ibv_qp *make_qp(struct side *s, enum ibv_qp_type type, struct ibv_srq *srq,
		       struct ibv_xrc_domain *domain, const struct ibv_qp_cap *cap);

/* How an RC, UC or XRC QP is connected. The values of link_defaults() suit a test that waits for no
 * timer. */
struct link {
	uint16_t dlid;
	uint32_t dest_qpn, psn_mine, psn_theirs;
	enum ibv_mtu mtu;
	uint8_t timeout, retry_cnt, rnr_retry, min_rnr_timer, rd_atomic, dest_rd_atomic, port;
	int access;
};
void link_defaults(struct link *l, uint16_t dlid, uint32_t dest_qpn);
int to_init(struct ibv_qp *qp, const struct link *l); /* 0 or a positive errno value */
int to_rtr(struct ibv_qp *qp, const struct link *l);
int to_rts(struct ibv_qp *qp, const struct link *l);
void connect_qp(struct ibv_qp *qp, const struct link *l); /* all three steps, checked */
int to_state(struct ibv_qp *qp, enum ibv_qp_state state); /* RESET, ERR, SQD: no other mask */
enum ibv_qp_state real_state(struct ibv_qp *qp);	  /* as query_qp reports it */
/* Connects two RC (or UC) QPs of one process to each other, or one to itself. */
void connect_pair(struct side *s, struct ibv_qp *a, struct ibv_qp *b);
/* The same, with everything else taken from the link. */
void connect_pair_as(struct side *s, struct ibv_qp *a, struct ibv_qp *b, const struct link *like);

/*
 * Sends 4096 bytes from the beginning of the buffer to what follows them, checks them, and takes
 * the event of the receive's completion. The side has a channel, and 8192 bytes.
 */
void send_with_event(struct side *s, struct ibv_qp *from, struct ibv_qp *to, uint64_t id);

int post_recv1(struct ibv_qp *qp, struct side *s, uint64_t wr_id, size_t off, uint32_t len);
int post_srq1(struct ibv_srq *srq, struct side *s, uint64_t wr_id, size_t off, uint32_t len);
int post_send1(struct ibv_qp *qp, struct side *s, uint64_t wr_id, size_t off, uint32_t len,
	       int flags);
int post_rdma1(struct ibv_qp *qp, struct side *s, enum ibv_wr_opcode opcode, uint64_t wr_id,
	       size_t off, uint32_t len, uint64_t raddr, uint32_t rkey, int flags);

/* Returns the next completion, within the time limit of the test. */
struct ibv_wc next_wc(struct ibv_cq *cq);
/* Returns the next completion, which must be this one. */
struct ibv_wc expect_wc(struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_status status);
/* Polls for ms; no completion may come. */
void expect_silence(struct ibv_cq *cq, unsigned int ms);
/*
 * Takes and acknowledges the next asynchronous event, which must be of this type. Skips COMM_EST
 * before it, unless that is the type. Returns the event as ibv_get_async_event() filled it.
 */
struct ibv_async_event expect_event(struct ibv_context *context, int type);
/* Acknowledges the pending event, which must be COMM_EST, of a QP or a receive QP. */
void skip_established(struct ibv_context *context);
bool event_pending(struct ibv_context *context);

/* Contents that identify their sender: fill() writes the pattern of a seed, differs() returns the
 * offset of the first byte that differs from it, or -1. */
void fill(void *buf, size_t len, uint64_t seed);
long differs(const void *buf, size_t len, uint64_t seed);

/* The bytes of address space that this process has mapped. */
uint64_t address_space(void);

#endif
