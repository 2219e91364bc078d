// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* What the ping-pong tools share: options, the address exchange over TCP, message contents and the
 * plain ping-pong. All of it is single-threaded. Functions that fail print why, and return a
 * negative errno value or NULL. */

#ifndef PINGPONG_H
#define PINGPONG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

/* ---- Messages (device.c) ---- */

/* Prints "WHAT: reason of err", then ADVICE on a line of its own. Without a reason pass 0, without
 * advice NULL. EIO has advice of its own, whatever is passed. Returns -err, or -EIO for 0. */
int pp_fail(int err, const char *advice, const char *what, ...)
	__attribute__((format(printf, 3, 4)));

/* What follows the name of things that are counted: "" of one, else "s". */
static inline const char *pp_plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

/* ---- Devices (device.c) ---- */

/* Opens the device called NAME, or with NULL the first one. NULL on failure. */
struct ibv_context *pp_open_device(const char *name);

/* Checks that PORT can carry traffic. Returns 0 or -errno. */
int pp_query_port(struct ibv_context *context, int port, struct ibv_port_attr *attr);

/* Gets the GID that -g selects, or zero without -g. Returns 0 or -errno. */
struct pp_options;
int pp_query_gid(struct ibv_context *context, const struct pp_options *opt,
		 const struct ibv_port_attr *port, union ibv_gid *gid);

/* Advice about an error of a call that registers or allocates memory; NULL without any. */
const char *pp_memory_advice(int err);
/* The same for a device that cannot be opened, */
const char *pp_open_advice(int err);
/* for a list of devices that cannot be made, */
const char *pp_list_advice(int err);
/* and for an empty one. */
const char *pp_none_advice(void);

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
/* Options of all tools that exchange messages. */
#define PP_COMMON                                                                                  \
	(PP_BIT(PP_PORT) | PP_BIT(PP_IB_DEV) | PP_BIT(PP_IB_PORT) | PP_BIT(PP_SIZE) |              \
	 PP_BIT(PP_SL) | PP_BIT(PP_EVENTS) | PP_BIT(PP_GID_IDX) | PP_BIT(PP_CHK) |                 \
	 PP_BIT(PP_VERIFY) | PP_BIT(PP_TIMEOUT) | PP_BIT(PP_HELP) | PP_BIT(PP_VERSION))

struct pp_options {
	const char *server; /* NULL: run as server */
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

#define PP_DEFAULTS                                                                                \
	{                                                                                          \
		.port = 18515, .ib_port = 1, .size = 4096, .mtu = IBV_MTU_1024, .num_qp = 16,      \
		.rx_depth = 500, .clients = 1, .iters = 1000, .gid_idx = -1                        \
	}

/* Parses into *opt, which contains the defaults. KNOWN is a mask of PP_BIT(). Ends the program
 * after --help, --version and bad usage. */
void pp_parse(int argc, char **argv, unsigned int known, struct pp_options *opt);

/* ---- Clock (options.c) ---- */

/* Shows the progress of a long run in a line on standard error, from the first second on, if that
 * is a terminal. The line is removed at the end. If it is not a terminal, nothing is written. */
struct pp_progress {
	bool on; /* only on a terminal */
	bool shown;
	uint64_t next;
};

/* Microseconds of a clock that is never set. */
uint64_t pp_now_usec(void);
void pp_progress_start(struct pp_progress *progress);
void pp_progress_step(struct pp_progress *progress, int done, int total);
void pp_progress_end(struct pp_progress *progress);
/* Prints the two lines at the end. Messages go both ways, so bytes count twice. */
void pp_print_rate(uint32_t size, int iters, uint64_t usec);

/* ---- Addresses and their exchange (exchange.c) ----
 *
 *   rc, uc, ud, srq   "%04x:%06x:%06x:%s"                 LID, QPN, PSN, GID as 32 hex digits           52 bytes with NUL
 *   srq sends PP_SRQ_QPS of them in a row, however many QPs it uses. The client's come first, then the server's.
 *   xsrq              "%04x:%06x:%06x:%06x:%06x:%32s"     LID, receive QPN, send QPN, PSN, SRQ number, GID   66 bytes
 */

/* The address of one side. Members that a kind of ping-pong does not use are 0. */
struct pp_dest {
	union ibv_gid gid;
	uint32_t qpn; /* xsrq: of the receive QP */
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

/* Returns a random PSN of 24 bits. */
uint32_t pp_random_psn(void);
/* msg has room for PP_WIRE_*_LEN bytes. pp_parse_dest() returns 0 or -EPROTO, and prints
 * nothing. */
void pp_format_dest(enum pp_wire wire, const struct pp_dest *dest, char *msg);
int pp_parse_dest(enum pp_wire wire, const char *msg, struct pp_dest *dest);

/* Return a socket or -errno. */
int pp_connect(const struct pp_options *opt);
int pp_listen(const struct pp_options *opt, int backlog);
int pp_accept(const struct pp_options *opt, int listener);

/* Exchange N addresses, one message each. Return 0 or -errno. */
int pp_send_dest(int sock, enum pp_wire wire, const struct pp_dest *dest, int n);
int pp_recv_dest(int sock, enum pp_wire wire, struct pp_dest *dest, int n);
/* Exchange a word with its NUL: "done" from the client when it is connected; with xsrq "END" when
 * all messages have passed, from the client and then from the server. */
int pp_send_word(int sock, const char *word);
int pp_recv_word(int sock, const char *word);
/* Tells the other side that this side no longer needs its QPs, and waits until the other side says
 * the same or has ended. Closes the socket. */
void pp_linger(int sock);

/* ---- Attributes of the transitions (connect.c). Functions with a result return the mask for
 * ibv_modify_qp(). ---- */

#define PP_UD_QKEY 0x11111111 /* used by all generations of ibv_ud_pingpong */

/* Sets the path to REMOTE, by its GID if the user selected a GID index. */
void pp_fill_ah(const struct pp_options *opt, const struct pp_dest *remote, struct ibv_ah_attr *ah);
int pp_init_attr(const struct pp_options *opt, struct ibv_qp_attr *attr);
int pp_rtr_attr(const struct pp_options *opt, const struct pp_dest *remote, uint32_t dest_qpn,
		struct ibv_qp_attr *attr);
int pp_rts_attr(uint32_t psn, struct ibv_qp_attr *attr);

/* ---- Contents (content.c) ---- */

/* One registered region: send buffers, then receive slots, each between guards:
 *
 *   OFFSET in a buffer       SIZE       MEANING
 *   0                        PP_GUARD   guard
 *   PP_GUARD                 headroom   receive slots only: UD puts the GRH here
 *   PP_GUARD + headroom      size       the message
 *   to the stride            >= PP_GUARD   guard
 *
 * Without verification one slot serves all receives, as the bytes are never read. */
#define PP_GUARD 64

/* The memory of one side. pp_content_free() frees it. */
struct pp_content {
	char *base;
	size_t length;
	size_t stride;
	uint32_t size;
	uint32_t headroom;
	int sends;
	int slots;
	int *free_slots; /* ring of slots without a receive; not used with one shared slot */
	int free_head;
	int free_count;
	bool verify;
	uint64_t verified;
	struct ibv_mr *mr;
};

/* MIN_SLOTS: how many receives must be possible at a time; MAX_SLOTS: how many are useful. Returns
 * 0 or -errno. */
int pp_content_init(struct pp_content *content, struct ibv_pd *pd, const struct pp_options *opt,
		    uint32_t headroom, int sends, int min_slots, int max_slots);
/* Returns 0 or the -errno of the deregistration. Has no effect on a zeroed object. */
int pp_content_free(struct pp_content *content);
/* Returns how many receives can be outstanding at a time, at most WANTED. */
int pp_content_depth(const struct pp_content *content, int wanted);
int pp_take_slot(struct pp_content *content);
void pp_slot_sge(const struct pp_content *content, int slot, struct ibv_sge *sge);
void pp_send_sge(const struct pp_content *content, int send, struct ibv_sge *sge);
/* Writes message ITER of the stream (the sender's address) into send buffer SEND. */
void pp_write_message(struct pp_content *content, int send, uint64_t stream, uint64_t iter);
/* Checks message ITER of the stream in SLOT, of which BYTE_LEN bytes arrived, and frees the slot.
 * Returns 0 or -EBADMSG. */
int pp_check_message(struct pp_content *content, int slot, uint64_t stream, uint64_t iter,
		     uint32_t byte_len);
void pp_print_verified(const struct pp_content *content);

/* The seed of the contents of a sender's messages. Both sides know it. */
static inline uint64_t pp_stream(uint32_t send_qpn, uint32_t psn)
{
	return (uint64_t)send_qpn << 32 | psn;
}

/* ---- Completion queues with or without events (queue.c) ---- */

/* A CQ, and the number of its events that are not acknowledged yet. */
struct pp_queue {
	struct ibv_cq *cq;
	unsigned int unacked;
};

#define PP_RECV 1
#define PP_SEND 2

/* Sleeps until the channel has an event, and arms its CQ again. Returns 0 or -errno. */
int pp_wait_event(struct ibv_comp_channel *channel, struct pp_queue *queues, int n, int timeout);
int pp_arm(struct pp_queue *queues, int n);
/* Acknowledges the remaining events: destroying a CQ waits for that. */
void pp_ack_all(struct pp_queue *queues, int n);
/* Prints what the failed completion means. Returns -EIO. */
int pp_wc_failed(const struct ibv_wc *wc);

/* Ends a run that makes no progress for the time that the user has set. Zeroed at first. */
struct pp_watch {
	unsigned int idle;
	uint64_t since;
};

/* For an empty poll. Returns 0, or -ETIMEDOUT after a message. TIMEOUT is in seconds; 0: no
 * limit. */
int pp_idle(struct pp_watch *watch, int timeout);
static inline void pp_busy(struct pp_watch *watch)
{
	watch->idle = 0;
}

/* ---- The plain ping-pong: one CQ, one or more QPs, an SRQ or none (pair.c) ---- */

struct pp_pair;

/* What differs between the four tools. */
struct pp_kind {
	enum ibv_qp_type qp_type;
	bool srq;
	int wire_count;	   /* addresses exchanged, at least one per QP */
	uint32_t headroom; /* bytes that the device puts before each message */
	/* Move the QP from RESET to INIT, and from INIT to RTS towards pair->link[i].remote. They
	 * return 0 or a positive errno value, as ibv_modify_qp() does. */
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
		int pending; /* PP_RECV | PP_SEND: awaited before the next send */
		uint64_t sent, received;
		int send_flags;
	} * link;
	int depth;
	int outstanding; /* receives posted */
};

/* The two steps of pp_kind for connected QPs; the second is for RC (connect.c). */
int pp_init_connected(struct pp_pair *pair, int i);
int pp_connect_rc(struct pp_pair *pair, int i, const char **step);

/* Runs the tool: set-up, exchange, messages, report, clean-up. Returns the exit status. */
int pp_run_pair(const struct pp_kind *kind, const struct pp_options *opt);

#endif
