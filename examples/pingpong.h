// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* What the ping-pong tools share: options, the address exchange over TCP, message contents and the plain ping-pong.
 * Single-threaded throughout. Functions that fail have printed why, and return a negative errno or NULL. */

#ifndef PINGPONG_H
#define PINGPONG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

/* ---- Messages (device.c) ---- */

/* Prints "WHAT: reason of err", then ADVICE on a line of its own; either may be left out (0, NULL). Returns -err, or -EIO for 0. */
int pp_fail(int err, const char *advice, const char *what, ...) __attribute__((format(printf, 3, 4)));

/* ---- Devices (device.c) ---- */

/* The device called NAME, or the first one for NULL, opened. NULL on failure. */
struct ibv_context *pp_open_device(const char *name);

/* Checks that PORT can carry the traffic. Returns 0 or -errno. */
int pp_query_port(struct ibv_context *context, int port, struct ibv_port_attr *attr);

/* The GID that -g chooses, zero for none. Returns 0 or -errno. */
struct pp_options;
int pp_query_gid(struct ibv_context *context, const struct pp_options *opt, const struct ibv_port_attr *port, union ibv_gid *gid);

/* What to do about an error of a call that registers or allocates memory; NULL when nothing special can be said. */
const char *pp_memory_advice(int err);
/* The same for a device that does not open. */
const char *pp_open_advice(int err);

/* ---- Options (options.c) ---- */

enum pp_opt {
	PP_PORT,
	PP_IB_DEV,
	PP_IB_PORT,
	PP_SIZE,
	PP_MTU,
	PP_NUM_QP,
	PP_RX_DEPTH,
	PP_CLIENTS,
	PP_ITERS,
	PP_NUM_TESTS,
	PP_SL,
	PP_EVENTS,
	PP_GID_IDX,
	PP_ODP,
	PP_IODP,
	PP_PREFETCH,
	PP_TS,
	PP_DM,
	PP_NEW_SEND,
	PP_CHK,
	PP_VERIFY,
	PP_DOMAIN,
	PP_TIMEOUT,
	PP_HELP,
	PP_VERSION,
	PP_OPT_COUNT
};

#define PP_BIT(opt) (1u << (opt))
/* Known to every tool that exchanges messages. */
#define PP_COMMON                                                                                                      \
	(PP_BIT(PP_PORT) | PP_BIT(PP_IB_DEV) | PP_BIT(PP_IB_PORT) | PP_BIT(PP_SIZE) | PP_BIT(PP_SL) |                      \
	 PP_BIT(PP_EVENTS) | PP_BIT(PP_GID_IDX) | PP_BIT(PP_VERIFY) | PP_BIT(PP_TIMEOUT) | PP_BIT(PP_HELP) |               \
	 PP_BIT(PP_VERSION))

struct pp_options {
	const char *server; /* NULL: be the server */
	const char *ib_dev;
	const char *domain;
	int port;
	int ib_port;
	uint32_t size;
	enum ibv_mtu mtu;
	int num_qp;
	int rx_depth;
	int clients;
	int iters;
	int sl;
	int gid_idx; /* -1: none */
	int timeout; /* seconds, 0: none */
	bool events;
	bool verify;
};

#define PP_DEFAULTS                                                                                                    \
	{                                                                                                              \
		.port = 18515, .ib_port = 1, .size = 4096, .mtu = IBV_MTU_1024, .num_qp = 16, .rx_depth = 500,         \
		.clients = 1, .iters = 1000, .gid_idx = -1                                                             \
	}

/* Parses into *opt, which holds the defaults; KNOWN is a mask of PP_BIT(). Ends the program for --help, --version and bad usage. */
void pp_parse(int argc, char **argv, unsigned int known, struct pp_options *opt);

/* ---- Clock (options.c) ---- */

/* How far a long run is: a line on standard error, from its first second on, if that is a terminal; in the end it is
 * taken away. Anywhere else nothing is written. */
struct pp_progress {
	bool on; /* only on a terminal */
	bool shown;
	uint64_t next;
};

/* Microseconds of a clock that nobody sets. */
uint64_t pp_now_usec(void);
void pp_progress_start(struct pp_progress *progress);
void pp_progress_step(struct pp_progress *progress, int done, int total);
void pp_progress_end(struct pp_progress *progress);
/* The two lines at the end. Messages have gone both ways, so bytes count twice. */
void pp_print_rate(uint32_t size, int iters, uint64_t usec);

/* ---- Addresses and their exchange (exchange.c) ----
 *
 *   rc, uc, ud, srq   "%04x:%06x:%06x:%s"                 LID, QPN, PSN, GID as 32 hex digits           52 bytes with NUL
 *   srq sends PP_SRQ_QPS of them in a row, however many QPs it uses. The client's come first, then the server's.
 *   xsrq              "%04x:%06x:%06x:%06x:%06x:%32s"     LID, receive QPN, send QPN, PSN, SRQ number, GID   66 bytes
 */

/* One side's address; what a kind of ping-pong has not is 0. */
struct pp_dest {
	union ibv_gid gid;
	uint32_t qpn; /* xsrq: the receive QP's */
	uint32_t send_qpn;
	uint32_t psn;
	uint32_t srqn;
	uint16_t lid;
};

enum pp_wire { PP_WIRE_PLAIN, PP_WIRE_XRC };

#define PP_GID_DIGITS	  32
#define PP_WIRE_PLAIN_LEN sizeof("0000:000000:000000:00000000000000000000000000000000")
#define PP_WIRE_XRC_LEN	  sizeof("0000:000000:000000:000000:000000:00000000000000000000000000000000")
_Static_assert(PP_WIRE_PLAIN_LEN == 52, "what the other generations of these tools send");
_Static_assert(PP_WIRE_XRC_LEN == 66, "what the other generations of these tools send");

#define PP_SRQ_QPS 256

/* 24 bits. */
uint32_t pp_random_psn(void);
/* Both need PP_WIRE_*_LEN bytes. pp_parse_dest returns 0 or -EPROTO, and prints nothing. */
void pp_format_dest(enum pp_wire wire, const struct pp_dest *dest, char *msg);
int pp_parse_dest(enum pp_wire wire, const char *msg, struct pp_dest *dest);

/* A socket, or -errno. */
int pp_connect(const struct pp_options *opt);
int pp_listen(const struct pp_options *opt, int backlog);
int pp_accept(const struct pp_options *opt, int listener);

/* 0 or -errno. N addresses, one message each. */
int pp_send_dest(int sock, enum pp_wire wire, const struct pp_dest *dest, int n);
int pp_recv_dest(int sock, enum pp_wire wire, struct pp_dest *dest, int n);
/* A word with its NUL: the client's "done" when it is connected; xsrq's "END" when all messages have passed, from the client and
 * then from the server. */
int pp_send_word(int sock, const char *word);
int pp_recv_word(int sock, const char *word);
/* Says that this side needs the other's QPs no longer, and waits until the other side says so or has gone. Closes the socket. */
void pp_linger(int sock);

/* ---- Attributes of the transitions (connect.c); those with a result return the mask for ibv_modify_qp() ---- */

#define PP_UD_QKEY 0x11111111 /* what every generation of ibv_ud_pingpong uses */

/* The way to REMOTE, by its GID if a GID index was asked for. */
void pp_fill_ah(const struct pp_options *opt, const struct pp_dest *remote, struct ibv_ah_attr *ah);
int pp_init_attr(const struct pp_options *opt, struct ibv_qp_attr *attr);
int pp_rtr_attr(const struct pp_options *opt, const struct pp_dest *remote, uint32_t dest_qpn, struct ibv_qp_attr *attr);
int pp_rts_attr(uint32_t psn, struct ibv_qp_attr *attr);

/* ---- Contents (content.c) ---- */

/* One registered region: send buffers, then receive slots, each between guards:
 *
 *   OFFSET in a buffer       SIZE       MEANING
 *   0                        PP_GUARD   guard
 *   PP_GUARD                 headroom   receive slots only: where UD puts the GRH
 *   PP_GUARD + headroom      size       the message
 *   to the stride            >= PP_GUARD   guard
 *
 * Without verification one receive slot serves all receives, as the bytes are never looked at. */
#define PP_GUARD 64

/* The memory of one side: send buffers, then receive slots. Freed by pp_content_free(). */
struct pp_content {
	char *base;
	size_t length;
	size_t stride;
	uint32_t size;
	uint32_t headroom;
	int sends;
	int slots;
	int *free_slots; /* a ring of slots that no receive uses; with one shared slot unused */
	int free_head;
	int free_count;
	bool verify;
	uint64_t verified;
	struct ibv_mr *mr;
};

/* MIN_SLOTS: the fewest receives that must be possible at a time; MAX_SLOTS: the most that are useful. 0 or -errno. */
int pp_content_init(struct pp_content *content, struct ibv_pd *pd, const struct pp_options *opt, uint32_t headroom, int sends,
		    int min_slots, int max_slots);
/* 0 or -errno of the deregistration. Harmless on a zeroed object. */
int pp_content_free(struct pp_content *content);
/* The receives that may be outstanding at a time, at most WANTED. */
int pp_content_depth(const struct pp_content *content, int wanted);
int pp_take_slot(struct pp_content *content);
void pp_slot_sge(const struct pp_content *content, int slot, struct ibv_sge *sge);
void pp_send_sge(const struct pp_content *content, int send, struct ibv_sge *sge);
/* Writes message number ITER of the stream (the sender's address) into send buffer SEND. */
void pp_write_message(struct pp_content *content, int send, uint64_t stream, uint64_t iter);
/* Checks message ITER of the stream in SLOT, of which BYTE_LEN bytes came, and frees the slot. 0 or -EBADMSG. */
int pp_check_message(struct pp_content *content, int slot, uint64_t stream, uint64_t iter, uint32_t byte_len);
void pp_print_verified(const struct pp_content *content);

/* Whose messages: the seed of their contents, which both sides know. */
static inline uint64_t pp_stream(uint32_t send_qpn, uint32_t psn)
{
	return (uint64_t)send_qpn << 32 | psn;
}

/* ---- Completion queues with or without events (queue.c) ---- */

/* A CQ, and its events that are not acknowledged yet. */
struct pp_queue {
	struct ibv_cq *cq;
	unsigned int unacked;
};

#define PP_RECV 1
#define PP_SEND 2

/* Sleeps for the next event of the channel and arms its queue again. 0 or -errno. */
int pp_wait_event(struct ibv_comp_channel *channel, struct pp_queue *queues, int n, int timeout);
int pp_arm(struct pp_queue *queues, int n);
/* Acknowledges what is left; destroying a queue waits for it. */
void pp_ack_all(struct pp_queue *queues, int n);
/* Says what the failed completion means. Returns -EIO. */
int pp_wc_failed(const struct ibv_wc *wc);

/* Gives up on a run that makes no progress for the time the user allowed. Starts zeroed. */
struct pp_watch {
	unsigned int idle;
	uint64_t since;
};

/* Nothing came: 0, or -ETIMEDOUT after a message. TIMEOUT in seconds, 0: wait for ever. */
int pp_idle(struct pp_watch *watch, int timeout);
static inline void pp_busy(struct pp_watch *watch)
{
	watch->idle = 0;
}

/* ---- The plain ping-pong: one CQ, one or more QPs, an SRQ or none (pair.c) ---- */

struct pp_pair;

/* What the four have different. */
struct pp_kind {
	enum ibv_qp_type qp_type;
	bool srq;
	int wire_count;	   /* addresses exchanged, at least one for each QP */
	uint32_t headroom; /* what the device puts before each message */
	/* RESET to INIT, and INIT to RTS towards pair->remote[i]. 0 or a positive errno, as ibv_modify_qp(). */
	int (*init)(struct pp_pair *pair, int i);
	int (*connect)(struct pp_pair *pair, int i, const char **step);
};

struct pp_pair {
	const struct pp_kind *kind;
	const struct pp_options *opt;
	struct ibv_port_attr port;
	struct ibv_context *context;
	struct ibv_comp_channel *channel;
	struct ibv_pd *pd;
	struct ibv_srq *srq;
	struct pp_queue queue;
	struct pp_content content;
	int n;
	struct pp_link {
		struct ibv_qp *qp;
		struct ibv_ah *ah; /* UD */
		struct pp_dest local, remote;
		int pending; /* PP_RECV | PP_SEND still awaited before the next send */
		uint64_t sent, received;
		int send_flags;
	} *link;
	int depth;
	int outstanding; /* receives posted */
};

/* The two steps of pp_kind for connected QPs, the second for RC (connect.c). */
int pp_init_connected(struct pp_pair *pair, int i);
int pp_connect_rc(struct pp_pair *pair, int i, const char **step);

/* Runs the tool: set-up, exchange, messages, report, clean-up. Returns the exit status. */
int pp_run_pair(const struct pp_kind *kind, const struct pp_options *opt);

#endif
