// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: the wire's requesters repeat what is lost soon, and not what is late: where answers
 * take long, few packets are sent twice. A receiver that is not ready is asked as often as the QP
 * allows, however long its answers take.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#include "softhca_wire_rig.h"
#include "softhca/device/memory/instance.h"
#include "softhca/device/transport/timer.h"

static struct sh_wire_pace paces[2];

static struct sh_wire_pace *pace_of(struct sh_dev *dev, uint16_t dlid)
{
	(void)dev;
	return &paces[dlid == B_FAR];
}

static const struct sh_wire_ops paced = {.send = send_packet, .pace = pace_of, .mad = take_mad};

static uint16_t done; /* messages of this pair */

static void open_paced(struct tpair *p)
{
	memset(paces, 0, sizeof(paces));
	done = 0;
	open_pair(p, &(struct tpair_opts){.type = SH_QPT_RC});
	p->m->dev.wire = &paced;
}

/* One message, whose packets arrive after that time, and the answers at once. */
static void late(struct tpair *p, uint8_t opcode, uint32_t len, uint64_t ns)
{
	struct twr wr = tpair_wr(p, opcode, len);

	tqp_send(&p->a, &wr);
	for (uint64_t t = 0; t < ns; t += MS)
		mock_advance(p->m, MS);
	pump(p);
	texpect(&p->acq[0], opcode, true, done++);
}

/*
 * One message whose last packet, of so many, is lost. Returns after how many ms it was sent again.
 */
static unsigned int lost(struct tpair *p, uint8_t opcode, uint32_t len, unsigned int packets)
{
	struct twr wr = tpair_wr(p, opcode, len);
	unsigned int ms = 0, sent;

	queue.lose = queue.sent + packets;
	tqp_send(&p->a, &wr);
	pump(p);
	for (sent = queue.sent; queue.sent == sent; ms++)
		mock_advance(p->m, MS);
	pump(p);
	texpect(&p->acq[0], opcode, true, done++);
	return ms;
}

/* Answers that take long, because other programs have the processors. */
static void test_late(void **state)
{
	static const uint8_t operations[] = {MLX4_OPCODE_RDMA_WRITE, MLX4_OPCODE_RDMA_READ,
					     MLX4_OPCODE_ATOMIC_FA};

	(void)state;
	for (unsigned int i = 0; i < sizeof(operations); i++) {
		bool atomic = operations[i] == MLX4_OPCODE_ATOMIC_FA;
		uint32_t len = atomic ? 8 : 10000;
		struct tpair p;

		open_paced(&p);
		for (unsigned int n = 0; n < 100; n++)
			late(&p, operations[i], len, 20 * MS);
		assert_in_range(tqp_ctx(&p.a)->retries, 1, 3);
		/*
		 * What has been learned of a peer holds for its other QPs, and what comes late now
		 * and then is waited for.
		 */
		for (unsigned int n = 0; n < 100; n++)
			late(&p, operations[i], len, n % 10 ? 0 : 30 * MS);
		assert_in_range(tqp_ctx(&p.a)->retries, 1, 5);
		tpair_close(&p);
	}
}

/* It takes no time to learn from what has come before the wait was over. */
static void test_rising(void **state)
{
	struct tpair p;

	(void)state;
	open_paced(&p);
	for (unsigned int ms = 1; ms < 60; ms++)
		late(&p, MLX4_OPCODE_RDMA_WRITE, 10000, ms * MS);
	assert_int_equal(tqp_ctx(&p.a)->retries, 0);
	tpair_close(&p);
}

/*
 * However often a packet is lost, the next loss costs no more: what was repeated is not measured.
 */
static void test_lost(void **state)
{
	struct tpair p;

	(void)state;
	open_paced(&p);
	for (unsigned int i = 0; i < 100; i++) {
		assert_in_range(lost(&p, MLX4_OPCODE_RDMA_WRITE, 10000, 10), 5, 6);
		assert_in_range(lost(&p, MLX4_OPCODE_RDMA_READ, 10000, 1), 5, 6);
		assert_in_range(lost(&p, MLX4_OPCODE_RDMA_WRITE, 100, 1), 5, 6);
		/* The answer. */
		assert_in_range(lost(&p, MLX4_OPCODE_RDMA_WRITE, 100, 2), 5, 6);
	}
	tpair_close(&p);
}

/*
 * What was busy once is not so for ever. Never longer than the QP's own time-out, four times 67 ms
 * here.
 */
static void test_forgets(void **state)
{
	struct tpair p;
	unsigned int before;

	(void)state;
	open_paced(&p);
	for (unsigned int n = 0; n < 10; n++)
		late(&p, MLX4_OPCODE_RDMA_WRITE, 100, 200 * MS);
	before = lost(&p, MLX4_OPCODE_RDMA_WRITE, 100, 1);
	assert_in_range(before, 200, 300);
	mock_advance(p.m, 30000 * MS);
	assert_in_range(lost(&p, MLX4_OPCODE_RDMA_WRITE, 100, 1), 5, 6);
	tpair_close(&p);
}

/* ---- answers that take some time ---- */

static uint64_t sent_at[QUEUE];

static void send_timed(struct sh_dev *dev, const struct sh_packet *p, uint16_t dlid,
		       const unsigned char *payload, enum sh_wire_fate fate)
{
	sent_at[queue.tail % QUEUE] = dev->ops->now(dev->host);
	send_packet(dev, p, dlid, payload, fate);
}

static const struct sh_wire_ops timed = {.send = send_timed, .pace = pace_of, .mad = take_mad};

#define STEP (MS / 2)

/* For one step. Each packet arrives that long after it was sent. */
static void tick(struct tpair *p, uint64_t takes)
{
	mock_advance(p->m, STEP);
	while (queue.head != queue.tail &&
	       sent_at[queue.head % QUEUE] + takes <= p->m->dev.ops->now(p->m->dev.host))
		deliver_one(p);
}

/*
 * The receiver is never ready. As often as the QP allows, the requester waits and sends again, and
 * then its request fails: not before a card's would, and not much later, although one packet that
 * is sent ahead of time has two answers. code: of the wait; takes: how long a packet and its answer
 * take.
 */
static void never_ready(uint32_t rnr_retry, uint32_t code, uint64_t takes)
{
	uint64_t wait = sh_rnr_ns(code), least = takes + rnr_retry * (takes + wait), most, ns = 0;
	struct sh_counters *c;
	struct tpair p;
	struct twr wr;

	open_pair(&p, &(struct tpair_opts){.type = SH_QPT_RC,
					   .rnr_retry = rnr_retry,
					   .no_rnr_retry = !rnr_retry});
	memset(paces, 0, sizeof(paces));
	p.m->dev.wire = &timed;
	tqp_ctx(&p.b)->min_rnr_timer = (uint8_t)code;
	c = &sh_hca(&p.m->dev, 0)->counters;
	/* For the second answer it may wait longer than it is told to. */
	most = least + (rnr_retry + 1) * 10 * MS + 10 * STEP;
	wr = tpair_wr(&p, MLX4_OPCODE_SEND, 100);
	tqp_send(&p.a, &wr);
	for (; tqp_state(&p.a) == SH_QPS_RTS && ns <= most; ns += STEP)
		tick(&p, takes / 2);
	if (tqp_state(&p.a) != SH_QPS_ERR || ns < least)
		fail_msg("rnr_retry %u, code %u, answers after %u ms: %u ms", rnr_retry, code,
			 (unsigned int)(takes / MS), (unsigned int)(ns / MS));
	assert_int_equal(c->rnr_retries, rnr_retry);
	texpect_error(&p.acq[0], MLX4_SYNDROME_RNR_RETRY_EXC, true, 0);
	while (queue.head != queue.tail)
		tick(&p, takes / 2);
	tpair_close(&p);
}

static void test_never_ready(void **state)
{
	static const uint32_t retries[] = {0, 1, 6};
	static const uint32_t codes[] = {1, 12, 18, 25, 0}; /* .01, .64, 5.12, 61 and 655 ms */
	static const uint64_t takes[] = {0, 3 * MS, 10 * MS};

	(void)state;
	for (unsigned int i = 0; i < 3; i++)
		for (unsigned int k = 0; k < 5; k++)
			for (unsigned int n = 0; n < 3; n++)
				never_ready(retries[i], codes[k], takes[n]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_late),	    cmocka_unit_test(test_rising),
		cmocka_unit_test(test_lost),	    cmocka_unit_test(test_forgets),
		cmocka_unit_test(test_never_ready),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
