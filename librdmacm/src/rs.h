// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What the files of rsockets share: rsocket*.c. Internal functions return -errno, as those of cm.h
 * do.
 *
 * The protocol of streams. Everything is an RDMA write with immediate data over RC. Either side has
 * a ring for the data that it receives, and a list of two buffers into which the peer may write,
 * the "target list", which lives in its own memory and is written by the peer. The private data of
 * request and reply are struct rs_hello. Upper 3 bits of the immediate data, in network order:
 *
 *	0 DATA		the lower 29 bits are the length of what was written into the buffer
 *	4 CREDIT	the lower 16 bits: DATA messages up to this number may be sent. The write may have
 *			put another buffer into the target list
 *	6 IOMAP		the write has changed this entry of the table of mapped memory
 *	7 CONTROL	RS_DISCONNECT, RS_KEEPALIVE, RS_SHUTDOWN
 *
 * A buffer is filled to its end before the next one of the list is used, so that the receiver
 * publishes the half of its ring that has been read, in turn. DATA takes a credit; the other
 * messages take receives that each side keeps for them.
 *
 * rs->lock protects all of an rsocket but its number. rs_sleep() and rpoll(), in which threads wait
 * for a peer, give it up. It is held while commands are written, and for the short waits in them:
 * for the device, or for another thread of this process that has to acknowledge an event. With one
 * exception no thread waits with it for anything else: a datagram rsocket that looks for one of the
 * host's own addresses waits for the kernel to resolve it (own_qp()).
 *
 * Another thread may close an rsocket whose number a call has looked up, or in which it sleeps. So
 * the memory of an rsocket is never freed: it becomes another one, with a new life, and its lock
 * stays. A call looks a second time when it has the lock, rs_hold(), and each time that it has been
 * without it. When the life is another one, it leaves with EBADF and touches nothing.
 */
#ifndef RS_H
#define RS_H

#include <endian.h>
#include <poll.h>
#include <sys/socket.h>

#include <rdma/rsocket.h>

#include "cm.h"

/* ---- As it is sent ---- */

struct rs_buffer { /* in the reader's byte order */
	uint64_t addr;
	uint32_t key;
	uint32_t length;
};
_Static_assert(sizeof(struct rs_buffer) == 16, "an entry of the target list");

struct rs_mapping { /* an entry of the table of mapped memory, which follows the target list */
	uint64_t offset;
	struct rs_buffer buffer;
};
_Static_assert(sizeof(struct rs_mapping) == 24, "an entry of the table of mapped memory");

enum { RS_HELLO_VERSION = 1, RS_HELLO_BIG_ENDIAN = 1, RS_HELLO_IOMAP = 2 };

struct rs_hello { /* private data; network order */
	uint8_t version;
	uint8_t flags;
	uint16_t credits;
	uint8_t reserved[3];
	uint8_t iomap_size;	 /* rs_iomap_scale() */
	struct rs_buffer target; /* the list, with its number of entries */
	struct rs_buffer data;	 /* the first buffer in it */
};
_Static_assert(sizeof(struct rs_hello) == 40, "the private data");

enum { RS_DATA = 0, RS_CREDIT = 4, RS_IOMAP = 6, RS_CONTROL = 7, RS_OP_SHIFT = 29 };
enum { RS_DISCONNECT = 0, RS_KEEPALIVE = 1, RS_SHUTDOWN = 2 };

enum {
	RS_TARGETS = 2,
	RS_CONTROLS = 8,      /* sends and receives kept for messages other than DATA */
	RS_LOW_WATER = 2048,  /* space that makes an rsocket writable */
	RS_BUFFER_MIN = 8192, /* four times that: a quarter may wait for its completion's signal */
	RS_QUEUE_MIN = 16,
	RS_QUEUE_MAX = 0x4000, /* credits are 16-bit numbers that wrap */
	RS_BUFFER_MAX = 1 << 28,
	RS_INLINE_MAX = 1024,
	RS_PIECE = 32768,      /* the most that one message tells of */
	RS_STEP = 8192,	       /* of this a write has: see rs_post_piece() */
	RS_IOMAP_MAX = 0x7f00, /* what its byte on the wire can say */
	RS_RESOLVE_MS = 2000,
	RS_FIRST_POS = -(1 << 20), /* soon wraps, so that no test is without it */
	RS_CLOSE_MS = 10000,	   /* for which rclose() lets a peer take the last message */
};

/* ---- An rsocket ---- */

enum rs_state {
	RS_NEW, /* with or without an address */
	RS_LISTENING,
	RS_RESOLVING_ADDR,
	RS_RESOLVING_ROUTE,
	RS_CONNECTING,
	RS_CONNECTED,
	RS_FAILED, /* connecting has failed */
};

struct rs_options {
	uint32_t send_size, recv_size; /* bytes */
	uint32_t sq_size, rq_size;     /* entries */
	uint32_t inline_size;
	uint32_t iomap_size; /* entries that the peer gets */
	bool reuse, v6_only, no_delay, keepalive, oob_inline;
	uint32_t keep_idle, keep_interval, keep_count; /* s, s, times */
	int send_timeout, recv_timeout;		       /* ms; -1: none */
	bool linger;
	uint32_t linger_s;
};

/* One thread that sleeps for this rsocket, and its eventfd. */
struct rs_thread;
struct rs_waiter {
	const struct rs_thread *thread;
	struct rs_waiter *next;
};

struct rs_memory {
	void *at;
	size_t size;
	struct ibv_mr *mr;
};

struct rs_iomr;
struct rs_request;
struct ds;

struct rs {
	int fd;
	int domain, type;
	bool nonblock;
	struct rs_options options;
	struct ds *ds; /* SOCK_DGRAM */
	pid_t pid;     /* that made it: a child has copies */

	pthread_mutex_t lock; /* no thread is cancelled while it holds it (cm_hold_cancel()) */
	int number;	      /* what rs_get() knows it by; -1: nothing */
	uint32_t life;	      /* counts rclose() */
	struct rs *unused;    /* the next one, in rs_alloc() */
	enum rs_state state;
	uint32_t questions; /* for routes: the last one alone counts */
	int error;	    /* SO_ERROR: told once */
	bool bound;
	struct sockaddr_storage
		local;		   /* if it is bound: its address after a failed rconnect(), too */
	bool recv_down, send_down; /* no more data comes, or may go */
	bool broken;		   /* the QP takes nothing any more */
	bool said_end;		   /* that we send no more */
	bool said_disconnect, heard_disconnect;
	bool event_waits;  /* there was no memory for an event of the channel */
	int64_t looked_us; /* when rs_look_for_end() last asked */
	int64_t heard_us;  /* with SO_KEEPALIVE: when something last came, or was asked for */
	struct rs_waiter *waiters;
	struct rs_request *requests; /* of a listener: for which raccept() had not enough */

	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	void *route; /* of RDMA_ROUTE */
	size_t route_len;

	/* Completions */
	struct ibv_comp_channel *comp;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	unsigned int events; /* not acknowledged yet */
	bool armed;

	/* Sending. Positions count bytes and posts for ever. */
	struct rs_memory send_mem; /* ring, then the sources of control messages */
	uint8_t *sbuf;
	uint32_t sbuf_size;
	uint32_t sbuf_offset; /* where the next write's data go; sbuf_pos wraps elsewhere */
	uint32_t sbuf_pos, sbuf_done, sbuf_signaled;
	uint32_t sq_room; /* posts that may be outstanding */
	uint32_t sq_pos, sq_done, sq_signaled;
	uint32_t inline_max;
	uint32_t controls, controls_done;
	uint16_t seq, seq_end; /* of DATA */
	struct rs_buffer target;
	volatile struct rs_buffer *targets; /* the peer writes here */
	unsigned int target_next;

	/* Receiving */
	struct rs_memory recv_mem; /* target list, table of mapped memory, ring */
	uint8_t *rbuf;
	uint32_t rbuf_size;
	uint32_t rbuf_offset, rbuf_bytes; /* where to read, and how much is there */
	uint32_t rbuf_free;		  /* read, but not published again */
	uint32_t rbuf_publish;		  /* offset of the next half to publish */
	uint32_t rq_size, rq_missing;
	uint16_t rseq, rseq_granted;
	uint64_t peer_targets; /* the peer's list */
	uint32_t peer_key, peer_count, peer_next;
	bool peer_swaps; /* it has the other byte order */

	/* Mapped memory (rsocket_iomap.c) */
	volatile struct rs_mapping *iomap; /* what the peer has mapped */
	uint32_t iomap_size;
	uint64_t peer_iomap;
	uint32_t peer_iomap_size;
	struct rs_iomr *iomrs;
};

/* cm_return() for lengths */
static inline ssize_t rs_return(ssize_t ret)
{
	if (ret >= 0)
		return ret;
	errno = (int)-ret;
	return -1;
}

/* ---- Numbers (rsocket_fd.c) ---- */

int rs_set(int fd, struct rs *rs);
/* From now on the number is no rsocket's. Called with the rsocket's lock. */
void rs_clear(struct rs *rs);
/* The descriptor of the number is closed: the number may be any file's. */
void rs_ended(int fd);
/*
 * For a caller that is about to give the number to another file: waits for an rclose() that is
 * about to close it.
 */
void rs_await_end(int fd);
/* NULL: not an rsocket. It may be closed at any time. */
struct rs *rs_get(int fd);
/* The same, with its lock. */
static inline struct rs *rs_hold(int fd)
{
	struct rs *rs = rs_get(fd);

	if (!rs)
		return NULL;
	pthread_mutex_lock(&rs->lock);
	if (__builtin_expect(rs->number == fd, 1))
		return rs;
	pthread_mutex_unlock(&rs->lock);
	return NULL;
}

/* ---- Defaults (rsocket_config.c) ---- */

struct rs_config {
	struct rs_options options;
	uint32_t polling_us; /* for which a call looks before it sleeps */
};

const struct rs_config *rs_config(void);
/* What is possible of what is wanted */
uint32_t rs_fit_buffer(uint32_t size);
uint32_t rs_fit_queue(uint32_t size);
uint32_t rs_fit_iomap(uint32_t size);

/* ---- Life and connections (rsocket.c, rsocket_connect.c, rsocket_route.c) ---- */

struct rs *rs_alloc(int domain, int type, const struct rs_options *options);
/* It has no number any more, or none yet. */
void rs_free(struct rs *rs);
/*
 * The same in a child: frees the copy, and writes no command, so that the parent's connection stays
 * as it is.
 */
void rs_forget(struct rs *rs);
/* A channel that does not block, and a new id on it. */
int rs_new_channel(struct rs *rs);
int rs_new_id(struct rs *rs);
/* Reads events and takes the next step of a connection that is being made, or notices its end. */
void rs_progress(struct rs *rs);
/* The address is resolved: the event of the route follows, or it has failed. */
int rs_ask_route(struct rs *rs);
/* raccept() has put requests back. A child's copies are its parent's. */
bool rs_has_requests(const struct rs *listener);
/* The listener ends: so do, by end(), the rsockets of the requests that it has put back. */
void rs_end_requests(struct rs *listener, void (*end)(struct rs *rs));
/* Connecting has failed. */
void rs_fail(struct rs *rs, int error);
static inline bool rs_is_connecting(const struct rs *rs)
{
	return rs->state >= RS_RESOLVING_ADDR && rs->state <= RS_CONNECTING;
}
/* The pending error, once; 0: none. */
int rs_take_error(struct rs *rs);

/* ---- Queues (rsocket_queue.c) ---- */

/* Registered memory of its own pages, so that a fork leaves the program's alone. */
int rs_get_memory(struct ibv_pd *pd, struct rs_memory *memory, size_t size, int access);
void rs_put_memory(struct rs_memory *memory);
/* In a child: what it has of it. */
void rs_forget_memory(struct rs_memory *memory);
void rs_forget_comp_channel(struct ibv_comp_channel *comp);
/* Buffers, CQ and QP for rs->id. */
int rs_setup(struct rs *rs);
void rs_teardown(struct rs *rs);
/* In a child: what rs_forget() leaves of them. */
void rs_forget_queues(struct rs *rs);
void rs_say_hello(const struct rs *rs, struct rs_hello *hello);
/* -EPROTO: this library cannot work with such a peer. */
int rs_hear_hello(struct rs *rs, const void *data, size_t len);
int rs_start_receiving(struct rs *rs);

/* Takes the completions that are there. True if there were any. */
bool rs_poll_queue(struct rs *rs);
/* Lets the CQ tell the next completion. */
void rs_arm(struct rs *rs);
/* Reads what the completion channel has told. */
void rs_drain(struct rs *rs);
/* After data were read: publishes space and credits as far as due. */
void rs_give_credits(struct rs *rs);
/* -EAGAIN: too many are outstanding. */
int rs_post_control(struct rs *rs, uint32_t op, uint32_t value, const void *data, size_t len,
		    uint64_t addr, uint32_t key);
/*
 * A write of data that go in the entry of the send queue itself; imm < 0: without immediate data.
 */
int rs_post_write(struct rs *rs, struct ibv_sge *sge, uint32_t length, int64_t imm, uint64_t addr,
		  uint32_t key);
/*
 * Writes at most RS_PIECE bytes from the ring. Several writes carry them, and the immediate data of
 * the last one tells of all. softhca holds a lock of the receiver while it copies a longer write,
 * and the receiver would wait for it to give its credits.
 */
int rs_post_piece(struct rs *rs, uint32_t offset, uint32_t length, int64_t imm, uint64_t addr,
		  uint32_t key);
/* The current buffer of the peer is full: takes the next one of the list, if there is one. */
void rs_next_target(struct rs *rs);
void rs_break(struct rs *rs, int error);
/*
 * The device is to find out whether the peer is still there. What was said last asks for that
 * itself; a write behind it would have no completion, for which rclose() would wait.
 */
static inline bool rs_keeps_alive(const struct rs *rs)
{
	return rs->options.keepalive && !rs->ds && rs->state == RS_CONNECTED && !rs->broken &&
	       !rs->said_disconnect;
}
/* With SO_KEEPALIVE, if nothing has come for so long: lets the device find that out. */
void rs_keep_alive(struct rs *rs);

static inline uint32_t rs_sbuf_free(const struct rs *rs)
{
	return rs->sbuf_size - (rs->sbuf_pos - rs->sbuf_done);
}

/* Room in the queue, and in the buffer for something worthwhile. */
static inline bool rs_has_room(const struct rs *rs)
{
	return rs->sq_pos - rs->sq_done < rs->sq_room && rs_sbuf_free(rs) >= RS_LOW_WATER;
}

static inline bool rs_can_send(const struct rs *rs)
{
	return rs->seq != rs->seq_end && rs->target.length && rs_has_room(rs);
}

static inline bool rs_all_sent(const struct rs *rs)
{
	return rs->broken || (rs->controls == rs->controls_done && rs->sq_done == rs->sq_pos);
}

/* ---- Waiting (rsocket_wait.c) ---- */

/* The eventfd of this thread, empty. */
int rs_thread_fd(void);
/* For this thread, which has asked for its eventfd. */
void rs_add_waiter(struct rs *rs, struct rs_waiter *waiter);
void rs_remove_waiter(struct rs *rs, struct rs_waiter *waiter);
/* Something has changed: wakes those that sleep. */
void rs_wake(struct rs *rs);
/* What to poll for, 0 to 2; events is what the caller wants. */
int rs_poll_fds(const struct rs *rs, struct pollfd *fds);
/*
 * The descriptors that rs_poll_fds() named have been polled: reads what they tell, and takes the
 * steps that follow from it.
 */
void rs_advance(struct rs *rs, const struct pollfd *fds, int n);

typedef bool rs_test(const struct rs *rs);
/*
 * Waits, with the lock, until test() holds; the lock is given up meanwhile. deadline_ms: see
 * rs_deadline(). -EINTR, -EAGAIN at the deadline, -EBADF: it has been closed, and is not the
 * caller's.
 */
int rs_wait(struct rs *rs, rs_test *test, int64_t deadline_ms);
/* The same, until something has happened. */
int rs_sleep(struct rs *rs, int64_t deadline_ms);
/* The ms after which a sleeper looks at it again, whatever its descriptors tell; -1: never. */
int rs_patience(const struct rs *rs);
/*
 * For calls that do not sleep and find nothing: takes what the channel tells, every now and then.
 */
void rs_look_for_end(struct rs *rs);
/* ms from now; -1: never */
int64_t rs_deadline(int timeout_ms);
int64_t rs_now_us(void);

/* ---- Data (rsocket_send.c, rsocket_recv.c) ---- */

bool rs_readable(const struct rs *rs);
bool rs_writable(const struct rs *rs);

/* ---- Datagrams (rsocket_dgram.c) ---- */

int ds_create(struct rs *rs);
void ds_close(struct rs *rs);
/* In a child: rs_forget(). */
void ds_forget(struct rs *rs);
/* The calls of programs, with the lock. */
int ds_bind(struct rs *rs, const struct sockaddr *addr, socklen_t len);
int ds_connect(struct rs *rs, const struct sockaddr *addr, socklen_t len);
ssize_t ds_sendv(struct rs *rs, const struct iovec *iov, size_t n, int flags,
		 const struct sockaddr *addr, socklen_t len);
ssize_t ds_recvv(struct rs *rs, const struct iovec *iov, size_t n, int flags, struct sockaddr *addr,
		 socklen_t *len, int *msg_flags);
/* For poll() */
short ds_events(const struct rs *rs);
int ds_poll_fds(const struct rs *rs, struct pollfd *fds);
void ds_advance(struct rs *rs);
bool ds_poll(struct rs *rs);
void ds_arm(struct rs *rs);

/* ---- Mapped memory (rsocket_iomap.c) ---- */

/* Sizes up to 128 as they are, greater ones as multiples of 256: a byte on the wire. */
uint8_t rs_iomap_scale(uint32_t size);
uint32_t rs_iomap_unscale(uint8_t scale);
void rs_iomap_free(struct rs *rs);
void rs_iomap_forget(struct rs *rs);

#endif
