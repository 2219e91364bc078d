// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What the files of datagram rsockets share: rsocket_dgram*.c. Such an rsocket consists of a UDP
 * socket, whose number and addresses are its own, and a UD QP for each port of a device that its
 * datagrams take.
 *
 * The first datagram to an address goes by UDP, behind struct ds_udp_header, which tells the number
 * of the sender's QP. The receiver answers with its own in a header without data. From then on
 * datagrams go from QP to QP behind struct ds_header. All fields are in network order.
 *
 * Unknown peers may send, too, from addresses that cannot be resolved. So an answer takes no
 * question beyond this host: it names the QP of the port at which the datagram arrived. Only a send
 * to an address resolves it.
 *
 * rs->lock protects everything. A thread gives it away while it resolves the address of a new peer,
 * and holds it while it looks up an address of its own host.
 */
#ifndef RS_DGRAM_H
#define RS_DGRAM_H

#include <netinet/in.h>

#include "rs.h"

enum {
	DS_TAG = 0x55555555,
	DS_GRH = 40,
	DS_BATCH = 16,
	DS_PIECES = 1000,
	DS_HEARD = 64,
	DS_PEERS = 1024,  /* the least recently used is given up for another one */
	DS_AT_ONCE = 128, /* datagrams that one call takes from UDP: others may come as fast */
	DS_PORTS = 8,
	DS_FAILURES = 16,
	DS_FAILURE_MS =
		5000, /* how long sends to an address fail at once after it could not be resolved */
};

struct ds_udp_header {
	uint32_t tag;
	uint8_t version; /* 4, 6: the address */
	uint8_t op;	 /* RS_DATA, RS_CONTROL */
	uint8_t length;	 /* of the header: 16, 28 */
	uint8_t reserved;
	uint32_t qpn; /* in the lower 24 bits */
	union {
		uint32_t ipv4;
		uint8_t ipv6[16];
	} addr; /* where the datagram was sent to; in those of other implementations, the sender's */
};
_Static_assert(sizeof(struct ds_udp_header) == 28, "the header in UDP");

struct ds_header {
	uint8_t version;
	uint8_t length; /* of the header: 8, 24 */
	uint16_t port;	/* with the address: the sender's */
	union {
		uint32_t ipv4;
		struct {
			uint32_t flowinfo;
			uint8_t addr[16];
		} ipv6;
	} addr;
};
_Static_assert(sizeof(struct ds_header) == 24, "the header between QPs");

union ds_addr {
	struct sockaddr sa;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

/*
 * A position counts datagrams and never wraps. (The number of slots is no power of 2, so the slot
 * would jump when a position wrapped.) Positions begin near 2^32, so that every test passes it.
 */
#define DS_FIRST_POS (UINT32_MAX - UINT64_C(99))

/* A QP of one port. Slots of memory, of which each takes a datagram. */
struct ds_qp {
	struct rdma_cm_id *id; /* holds device and QP */
	struct ibv_comp_channel *comp;
	struct ibv_cq *cq;
	bool armed;
	bool broken; /* the device has failed, or is gone */
	unsigned int events;
	struct rs_memory recv_mem, send_mem;
	uint32_t mtu, inline_max;
	uint32_t recv_slots, send_slots;
	uint64_t sq_pos, sq_done, sq_signaled;
	struct {
		uint32_t slot, length;
	} * ready; /* arrived, not read */
	uint64_t ready_head, ready_tail;
	struct ds_qp *next;
};

/* Another rsocket that datagrams go to. */
struct ds_peer {
	union ds_addr addr, source;
	struct ds_qp *qp;
	struct ibv_ah *ah;
	uint32_t qpn;	 /* 0: not known yet */
	uint64_t sq_pos; /* of qp, behind the last datagram to this peer */
	struct ds_header header;
	struct ds_peer *next;
};

/* A datagram that came by UDP */
struct ds_datagram {
	union ds_addr from;
	size_t length;
	struct ds_datagram *next;
	uint8_t data[];
};

/* The number of the QP of a peer that has sent to us, and to which we have not sent. */
struct ds_heard {
	union ds_addr addr;
	uint32_t qpn;
};

/* An address of this host that datagrams have come to, without a port. */
struct ds_port {
	union ds_addr addr;
	struct ds_qp *qp;
};

/* An address, without a port, that could not be resolved. */
struct ds_failure {
	union ds_addr addr;
	int error;
	int64_t until_ms;
};

struct ds {
	int events; /* epoll: the UDP socket and the channels of the QPs */
	bool connected;
	union ds_addr peer; /* of rconnect() */
	struct ds_qp *qps;
	struct ds_peer *peers; /* the last used first */
	struct ds_heard
		heard[DS_HEARD]; /* each has its place by its address: the last one there counts */
	struct ds_port ports[DS_PORTS];
	unsigned int n_ports;
	struct ds_failure failures[DS_FAILURES]; /* in turn */
	unsigned int next_failure;
	unsigned int n_peers;
	struct ds_datagram *first, **end;
	size_t waiting; /* bytes of memory in this list */
};

static inline socklen_t ds_addr_len(const union ds_addr *addr)
{
	return addr->sa.sa_family == AF_INET ? sizeof(addr->v4) : sizeof(addr->v6);
}

bool ds_same_addr(const union ds_addr *a, const union ds_addr *b);
/*
 * An IPv6 socket has its IPv4 peers under mapped addresses, ::ffff:a.b.c.d. rdma_cm knows no such
 * addresses, and what is sent does not have them either: there they are IPv4's.
 */
bool ds_is_mapped(const union ds_addr *addr);
/* The address as rdma_cm and messages have it: a mapped one as that of IPv4, others as they are. */
void ds_unmap(union ds_addr *addr);
/* The address as a socket of the domain has it. */
void ds_map(union ds_addr *addr, int domain);

/* ---- Queues (rsocket_dgram_queue.c) ---- */

/*
 * The QP of the port that an id was resolved to. Makes one, which takes the id over (*id is NULL
 * then), and wakes the threads that sleep: they have not armed it.
 */
int ds_get_qp(struct rs *rs, struct rdma_cm_id **id, struct ds_qp **qp);
void ds_free_qps(struct rs *rs);
void ds_forget_qps(struct rs *rs);
/* Takes completions. True if there were any. */
bool ds_poll_qp(struct ds_qp *qp);
int ds_post_receive(struct ds_qp *qp, uint32_t slot);

static inline uint8_t *ds_slot(const struct ds_qp *qp, uint32_t slot)
{
	return (uint8_t *)qp->recv_mem.at + (size_t)slot * (DS_GRH + qp->mtu);
}

/* ---- Peers (rsocket_dgram_peer.c) ---- */

/*
 * The peer of this address, with a QP and an address handle to it, which is there until the lock is
 * given away. Gives the lock away while it asks for a new one. -EBADF: it has been closed
 * meanwhile.
 */
int ds_get_peer(struct rs *rs, const union ds_addr *addr, struct ds_peer **peer);
void ds_free_peers(struct rs *rs);
void ds_forget_peers(struct rs *rs);
/* Sends by UDP from this address of the host, with the number of the QP. */
ssize_t ds_send_udp(struct rs *rs, const union ds_addr *to, const union ds_addr *source,
		    const struct ds_qp *qp, uint8_t op, const struct iovec *iov, size_t n);
/*
 * Takes what has come by UDP, DS_AT_ONCE at most. True if there was any: threads that sleep may
 * want it.
 */
bool ds_take_udp(struct rs *rs);

#endif
