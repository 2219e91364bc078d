/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Two QPs that take each other for QPs of other instances: what one sends is encoded, waits in a
 * queue of the test, which may lose it, and is decoded for the other one.
 */
#ifndef TESTS_UNIT_SOFTHCA_WIRE_RIG_H
#define TESTS_UNIT_SOFTHCA_WIRE_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#include "softhca_pair.h"
#include "softhca/device/memory/exec.h"
#include "softhca/device/transport/wire.h"
#include "softhca/wire/roce.h"

#define A_FAR 501 /* the LIDs that the two HCAs have on the wire */
#define B_FAR 502
#define QUEUE 4096
#define MS    UINT64_C(1000000)

/* The operations that carry a payload: READ from the peer, the others to it. */
static const uint8_t opcodes[] = {MLX4_OPCODE_SEND, MLX4_OPCODE_RDMA_WRITE,
				  MLX4_OPCODE_RDMA_WRITE_IMM, MLX4_OPCODE_RDMA_READ};

static struct {
	struct {
		unsigned char bytes[SH_ROCE_BYTES];
		long n;
		uint16_t dlid;
	} packet[QUEUE];
	unsigned int head, tail, sent;
	unsigned int lose; /* the packet of this number, counted from 1; 0: none */
	bool lose_all;
	unsigned int most;	      /* that waited at once */
	uint32_t reads, longest_read; /* requests for READs, and their bytes */
	unsigned int throw; /* when this many have been sent, the thread is thrown; 0: never */
} queue;

static unsigned int throw_at, thrown; /* for open_pair(); how many times it was */

static inline struct sh_roce_way way_to(uint16_t dlid)
{
	const struct sh_ip net = sh_ip4(0x0a000000);

	return (struct sh_roce_way){.from = sh_ip_of_lid(net, A_FAR + B_FAR - dlid),
				    .to = sh_ip_of_lid(net, dlid),
				    .sport = SH_ROCE_PORT};
}

/*
 * As if the thread had been stopped here, another one had ended its life, and it went on: the
 * kernel would send it there.
 */
static inline void be_thrown(void)
{
#ifdef __x86_64__
	extern void sh_landing(void) __attribute__((visibility("hidden")));

	if (!sh_self.armed)
		return;
	thrown++;
	sh_landing();
#endif
}

static inline void send_packet(struct sh_dev *dev, const struct sh_packet *p, uint16_t dlid,
			       const unsigned char *payload, enum sh_wire_fate fate)
{
	struct sh_roce_way way = way_to(dlid);

	(void)dev, (void)fate;
	if (p->op == SH_PKT_READ) {
		queue.reads++;
		if (p->dmalen > queue.longest_read)
			queue.longest_read = p->dmalen;
	}
	if (++queue.sent == queue.lose || queue.lose_all)
		return;
	assert_true(queue.tail - queue.head < QUEUE);
	queue.packet[queue.tail % QUEUE].n =
		sh_roce_encode(p, payload, &way, queue.packet[queue.tail % QUEUE].bytes);
	queue.packet[queue.tail % QUEUE].dlid = dlid;
	assert_true(queue.packet[queue.tail++ % QUEUE].n > 0);
	if (queue.tail - queue.head > queue.most)
		queue.most = queue.tail - queue.head;
	if (queue.sent == queue.throw)
		be_thrown();
}

static struct sh_wire_mad came; /* the last datagram for QP 1 */
static unsigned int mads;

static inline bool take_mad(struct sh_dev *dev, const struct sh_wire_mad *m)
{
	(void)dev;
	came = *m;
	mads++;
	return true;
}

static const struct sh_wire_ops ops = {.send = send_packet, .mad = take_mad};

static inline void deliver(struct tpair *p, unsigned char *bytes, long n, uint16_t dlid,
			   uint16_t slid)
{
	struct sh_roce_way way = way_to(dlid);
	struct sh_packet packet;
	struct sh_seg seg;

	assert_int_equal(sh_roce_decode(bytes, (size_t)n - SH_ROCE_HEAD, &way, &packet, &seg),
			 SH_ROCE_OK);
	packet.slid = slid;
	packet.dlid = tlid(p->m, dlid == B_FAR);
	assert_true(sh_enter(&p->m->dev));
	sh_wire_arrive(&p->m->dev, dlid == B_FAR, 1, &packet);
	sh_leave(&p->m->dev);
}

static inline void deliver_one(struct tpair *p)
{
	unsigned int i = queue.head++ % QUEUE;
	uint16_t dlid = queue.packet[i].dlid;

	deliver(p, queue.packet[i].bytes, queue.packet[i].n, dlid, A_FAR + B_FAR - dlid);
}

static inline void pump(struct tpair *p)
{
	while (queue.head != queue.tail)
		deliver_one(p);
}

static inline void open_pair(struct tpair *p, const struct tpair_opts *opts)
{
	memset(&queue, 0, sizeof(queue));
	queue.throw = throw_at;
	tpair_open(p, opts);
	tqp_ctx(&p->a)->path.dlid = B_FAR;
	tqp_ctx(&p->b)->path.dlid = A_FAR;
	p->m->inst->wire.last_lid = 1000;
	p->m->inst->wire.leads = 0xfffe;
	p->m->inst->wire.by_gid = 1;
	for (uint32_t i = 0; i < p->m->dev.hcas; i++)
		sh_hca(&p->m->dev, i)->mcgs_seq = 1;
	p->m->inst->wire.mtu = 1024;
	p->m->dev.wire = &ops;
}

#endif
