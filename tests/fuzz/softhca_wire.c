// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What peers and strangers send to the wire's port: two QPs take each other for QPs of other
 * instances, and an input decides which of their packets arrive, in what order, how often and how
 * damaged, and what else comes that nobody of them sent. Nothing outside of registered memory is
 * touched, every step ends, device memory stays whole, and packets of strangers change nothing
 * about connected QPs.
 *
 *	BYTE	OF AN INPUT
 *	0	the kind of QPs (modulo 5); bit 5 an SRQ, bit 6 each record is a turn of the thread, bit 7 queues that are no device
 *		memory
 *	1..	records:
 *	 0	what happens (enum what); bits 4-7 are flags of it
 *	 1	an argument
 *	 2	bytes that follow
 *	 3..	what they are: a length, changes, a packet from its BTH on
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "revive.h"
#include "softhca/device/memory/exec.h"
#include "softhca/device/memory/instance.h"
#include "softhca/device/transport/wire.h"
#include "softhca/wire/roce.h"

#define A_FAR	 501 /* the LIDs that the two HCAs have on the wire, and a third port's */
#define B_FAR	 502
#define STRANGER 503
#define QUEUE	 256
#define PORTIONS 64 /* of READs, after a packet */

enum what {
	REQUEST,
	RECEIVE,
	ARRIVE,
	DAMAGED,
	LOST,
	TWICE,
	LATE,
	FORGED,
	TIME,
	DRAIN,
	REVIVE,
	WHATS
};
enum {
	TO_B = 16, /* else to a */
	IN_TURN =
		32, /* a forged packet has the number of that QP, and a PSN near that which it expects */
	BY_STRANGER = 64, /* from a port that is no QP's peer */
	REPLY = 128,	  /* ... and a PSN near that which is to be acknowledged */
};

/* The packets on their way, the oldest first. */
static struct {
	struct {
		unsigned char bytes[SH_ROCE_BYTES];
		size_t n;
		uint16_t dlid;
	} packet[QUEUE];
	unsigned int head, tail;
} queue;

static struct sh_roce_way way_from(uint16_t slid, uint16_t dlid)
{
	const struct sh_ip net = sh_ip4(0x0a000000);

	return (struct sh_roce_way){.from = sh_ip_of_lid(net, slid),
				    .to = sh_ip_of_lid(net, dlid),
				    .sport = SH_ROCE_PORT};
}

/* A full queue loses what comes, as a socket's buffer does. */
static void send_packet(struct sh_dev *dev, const struct sh_packet *p, uint16_t dlid,
			const unsigned char *payload, enum sh_wire_fate fate)
{
	struct sh_roce_way way = way_from(A_FAR + B_FAR - dlid, dlid);
	long n;

	(void)dev, (void)fate;
	if ((dlid != A_FAR && dlid != B_FAR) || queue.tail - queue.head == QUEUE)
		return;
	n = sh_roce_encode(p, payload, &way, queue.packet[queue.tail % QUEUE].bytes);
	if (n <= 0)
		abort();
	queue.packet[queue.tail % QUEUE].n = (size_t)n;
	queue.packet[queue.tail++ % QUEUE].dlid = dlid;
}

/* What the thread has gathered in its turn. */
static struct {
	struct sh_packet p;
	uint16_t dlid;
	unsigned char payload[4096];
} waits[64];
static unsigned int nwaits;
static struct sh_wire_turn turn;
static struct sh_wire_pace pace;

static void begin(struct sh_dev *dev)
{
	(void)dev;
	nwaits = 0;
}

static void flush(struct sh_dev *dev)
{
	unsigned int n = nwaits;

	nwaits = 0;
	for (unsigned int i = 0; i < n; i++)
		send_packet(dev, &waits[i].p, waits[i].dlid, waits[i].payload, SH_WIRE_WHOLE);
}

static void gather(struct sh_dev *dev, const struct sh_packet *p, uint16_t dlid,
		   const unsigned char *payload)
{
	if (nwaits == sizeof(waits) / sizeof(waits[0]))
		flush(dev);
	if (p->payload.len > sizeof(waits[0].payload))
		abort();
	waits[nwaits].p = *p;
	waits[nwaits].dlid = dlid;
	if (p->payload.len)
		memcpy(waits[nwaits].payload, payload, p->payload.len);
	nwaits++;
}

static struct sh_wire_turn *turn_of(struct sh_dev *dev)
{
	(void)dev;
	return &turn;
}

static struct sh_wire_pace *pace_of(struct sh_dev *dev, uint16_t dlid)
{
	(void)dev, (void)dlid;
	return &pace;
}

static const struct sh_wire_ops ops = {.send = send_packet,
				       .begin = begin,
				       .gather = gather,
				       .flush = flush,
				       .turn = turn_of,
				       .pace = pace_of};

static void arrive(struct tpair *p, const unsigned char *bytes, size_t n, uint16_t slid,
		   uint16_t dlid)
{
	struct sh_roce_way way = way_from(slid, dlid);
	static unsigned char copy[SH_ROCE_BYTES];
	struct sh_packet packet;
	struct sh_seg seg;

	memcpy(copy, bytes, n);
	if (sh_roce_decode(copy, n - SH_ROCE_HEAD, &way, &packet, &seg) != SH_ROCE_OK)
		return;
	packet.slid = slid;
	packet.dlid = tlid(p->m, dlid == B_FAR);
	if (!sh_enter(&p->m->dev))
		abort();
	sh_wire_arrive(&p->m->dev, dlid == B_FAR, 1, &packet);
	for (int i = 0; i < PORTIONS && sh_wire_go_on(&p->m->dev); i++)
		;
	sh_leave(&p->m->dev);
}

/* Like arrive(), with the ICRC that the bytes ask for. n: with room for it. */
static void arrive_right(struct tpair *p, unsigned char *bytes, size_t n, uint16_t slid,
			 uint16_t dlid)
{
	struct sh_frame f = {.ipv4.protocol = 17, .ipv4.length = (uint16_t)n};
	struct sh_roce_way way = way_from(slid, dlid);
	uint32_t crc;

	/* The ICRC is of a whole BTH. Shorter packets are softhca_packets' matter. */
	if (n < SH_ROCE_HEAD + SH_BTH_BYTES + SH_ICRC_BYTES)
		return;
	sh_roce_set_way(&f, &way);
	f.udp.dport = SH_ROCE_PORT;
	f.udp.length = (uint16_t)(n - SH_IPV4_BYTES);
	sh_ipv4_put(bytes, &f.ipv4);
	sh_udp_put(bytes + SH_IPV4_BYTES, &f.udp);
	crc = sh_frame_icrc(SH_LINK_IP, bytes, n - SH_ICRC_BYTES);
	for (int i = 0; i < SH_ICRC_BYTES; i++)
		bytes[n - SH_ICRC_BYTES + i] = (unsigned char)(crc >> 8 * i);
	arrive(p, bytes, n, slid, dlid);
}

static void request(struct tpair *p, uint8_t arg, const uint8_t *data, size_t len)
{
	static const uint8_t opcodes[] = {MLX4_OPCODE_SEND,	  MLX4_OPCODE_SEND_IMM,
					  MLX4_OPCODE_RDMA_WRITE, MLX4_OPCODE_RDMA_WRITE_IMM,
					  MLX4_OPCODE_RDMA_READ,  MLX4_OPCODE_ATOMIC_CS,
					  MLX4_OPCODE_ATOMIC_FA};
	uint32_t bytes = 0;
	struct twr wr;

	/* A program that overwrites what it has posted makes any QP look damaged. */
	if (p->a.head - tqp_ctx(&p->a)->sq_una >= 1u << p->a.log_sq)
		return;
	for (size_t i = 0; i < len && i < 3; i++)
		bytes |= (uint32_t)data[i] << 8 * i;
	wr = tpair_wr(p, opcodes[arg % 7], arg % 7 > 4 ? 8 : bytes % TMEM);
	wr.solicited = arg & 16;
	wr.fence = arg & 32;
	if (p->a.type == SH_QPT_UD)
		wr.dlid = B_FAR;
	tqp_send(&p->a, &wr);
}

/* The packet that waits longest, with some of its bytes changed: pairs of a place and a value. */
static void damaged(struct tpair *p, uint8_t shorter, const uint8_t *data, size_t len)
{
	static unsigned char bytes[SH_ROCE_BYTES];
	unsigned int at = queue.head % QUEUE;
	size_t n = queue.packet[at].n;

	memcpy(bytes, queue.packet[at].bytes, n);
	for (size_t i = 0; i + 1 < len; i += 2)
		bytes[SH_ROCE_HEAD + data[i] % (n - SH_ROCE_HEAD)] ^= data[i + 1];
	if (n - SH_ROCE_HEAD - SH_ICRC_BYTES > shorter)
		n -= shorter;
	arrive_right(p, bytes, n, A_FAR + B_FAR - queue.packet[at].dlid, queue.packet[at].dlid);
}

/* All that a packet of a stranger might change about a QP that is connected. */
struct sight {
	uint32_t state, next_psn, ack_psn, expected;
};

static struct sight look_at(struct tqp *t)
{
	const struct sh_qp *qp = tqp_ctx(t);

	return (struct sight){qp->state, qp->next_psn, qp->ack_psn, qp->e_psn};
}

static void forged(struct tpair *p, unsigned int flags, uint8_t arg, const uint8_t *data,
		   size_t len)
{
	static unsigned char bytes[SH_ROCE_BYTES];
	struct tqp *t = flags & TO_B ? &p->b : &p->a;
	uint16_t dlid = flags & TO_B ? B_FAR : A_FAR;
	uint16_t slid = flags & BY_STRANGER ? STRANGER : A_FAR + B_FAR - dlid;
	const struct sh_qp *qp = tqp_ctx(t);
	struct sight before = look_at(t), after;
	unsigned char *bth = bytes + SH_ROCE_HEAD;

	memcpy(bth, data, len);
	if (flags & IN_TURN && len >= 12) {
		uint32_t psn = (flags & REPLY ? qp->ack_psn : qp->e_psn) + (uint32_t)(int8_t)arg;

		bth[2] = bth[3] = 0xff;
		for (int i = 0; i < 3; i++) {
			bth[5 + i] = (unsigned char)(t->qpn >> (16 - 8 * i));
			bth[9 + i] = (unsigned char)(psn >> (16 - 8 * i));
		}
	}
	arrive_right(p, bytes, SH_ROCE_HEAD + len + SH_ICRC_BYTES, slid, dlid);
	after = look_at(t);
	if (flags & BY_STRANGER && t->type != SH_QPT_UD && memcmp(&before, &after, sizeof(after)))
		abort();
}

static void next_packet(struct tpair *p, unsigned int what, uint8_t arg, const uint8_t *data,
			size_t len)
{
	unsigned int at = queue.head % QUEUE;
	uint16_t dlid = queue.packet[at].dlid;

	if (queue.head == queue.tail)
		return;
	if (what == DAMAGED)
		damaged(p, arg, data, len);
	else if (what != LOST)
		arrive(p, queue.packet[at].bytes, queue.packet[at].n, A_FAR + B_FAR - dlid, dlid);
	if (what != TWICE && what != DAMAGED)
		queue.head++;
}

/* The packet that waits longest overtakes nobody any more. */
static void late(void)
{
	unsigned int from = queue.head % QUEUE, to = queue.tail % QUEUE;

	if (queue.tail - queue.head < 2)
		return;
	if (from != to)
		queue.packet[to] = queue.packet[from];
	queue.head++, queue.tail++;
}

static void record(struct tpair *p, unsigned int flags, uint8_t arg, const uint8_t *data,
		   size_t len)
{
	unsigned int what = flags % 16 % WHATS;

	switch (what) {
	case REQUEST:
		request(p, arg, data, len);
		break;
	case RECEIVE:
		tpair_recv(p, 0, (uint32_t)arg << 8);
		break;
	case ARRIVE:
	case DAMAGED:
	case LOST:
	case TWICE:
		for (int i = what == DAMAGED ? 0 : arg % 64; i >= 0; i--)
			next_packet(p, what, arg, data, len);
		break;
	case LATE:
		late();
		break;
	case FORGED:
		forged(p, flags, arg, data, len);
		break;
	case TIME:
		let_time_pass(p->m);
		break;
	case DRAIN:
		drain(&p->acq[0]);
		drain(&p->bcq[1]);
		break;
	case REVIVE:
		queue.head = queue.tail;
		revive(&p->a, &p->aattr);
		revive(&p->b, &p->battr);
		break;
	}
}

/* A record, after which nothing waits and no QP is kept. */
static void turn_of_record(struct tpair *p, unsigned int flags, uint8_t arg, const uint8_t *data,
			   size_t len)
{
	sh_wire_begin_turn(&p->m->dev);
	record(p, flags, arg, data, len);
	if (!sh_enter(&p->m->dev))
		abort();
	sh_wire_end_turn(&p->m->dev);
	sh_leave(&p->m->dev);
	if (nwaits || turn.n || turn.depth || tqp_ctx(&p->a)->engine || tqp_ctx(&p->b)->engine)
		abort();
}

/*
 * A receive queue that the input fills over and over is the program's doing. All else would be a
 * fault of the device.
 */
static void complaint(const char *what)
{
	if (!strcmp(what, "a receive queue's record runs ahead of it"))
		return;
	fprintf(stderr, "softhca_wire: %s\n", what);
	abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint32_t types[] = {SH_QPT_RC, SH_QPT_UC, SH_QPT_UD, SH_QPT_XRC,
					 SH_QPT_XRC_INI};
	struct tpair_opts opts = {0};
	struct tpair p;
	bool turns;
	size_t n;

	if (!size)
		return 0;
	turns = data[0] & 64;
	memset(&pace, 0, sizeof(pace));
	opts.type = types[data[0] % 32 % 5];
	opts.srq = data[0] & 32;
	opts.private_memory = data[0] & 128;
	queue.head = queue.tail = 0;
	tpair_open(&p, &opts);
	p.m->on_complaint = complaint;
	p.aattr.path.dlid = B_FAR;
	p.battr.path.dlid = A_FAR;
	tqp_ctx(&p.a)->path.dlid = B_FAR;
	tqp_ctx(&p.b)->path.dlid = A_FAR;
	p.m->inst->wire.last_lid = 1000;
	p.m->inst->wire.leads = 0xfffe;
	p.m->inst->wire.by_gid = 1;
	p.m->inst->wire.mtu = 1024;
	p.m->dev.wire = &ops;
	for (data++, size--; size >= 3; data += 3 + n, size -= 3 + n) {
		n = data[2] < size - 3 ? data[2] : size - 3;
		(turns ? turn_of_record : record)(&p, data[0], data[1], data + 3, n);
		if (p.m->ndefers > MOCK_DEFERS / 2)
			let_time_pass(p.m);
	}
	p.m->shared->complaints = 0;
	tpair_close(&p);
	return 0;
}
