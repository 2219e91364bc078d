// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: datagrams take the express way, also to a multicast group that has one member. A
 * group that has several or none, or whose table is being changed, takes the ordinary way.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "softhca/device/memory/mr.h"
#include "softhca/device/queues/qp.h"
#include "softhca/device/transport/express.h"
#include "softhca/device/transport/mcast.h"
#include "softhca_pair.h"

static struct tpair p;

static void open_pair(bool srq)
{
	tpair_open(&p, &(struct tpair_opts){.type = SH_QPT_UD, .srq = srq});
	tfill(p.amem, TMEM / 2, 1);
}

/* Datagrams, also such as go to several QPs in turn within one chain. */
static void test_datagrams(void **state)
{
	(void)state;
	for (uint32_t round = 0; round < 4; round++) {
		bool srq = round & 1, grh = round & 2;
		struct tqp other;

		open_pair(srq);
		tqp_open(&other, p.m, 1, p.b.ctx, p.b.pdn, SH_QPT_UD, 0x55, &p.bcq[0], &p.bcq[1],
			 NULL);
		tqp_up(&other, &p.battr);
		for (uint32_t i = 0; i < 9; i++)
			tpair_recv(&p, 4096 * (i + 1), 4096);
		for (uint32_t i = 0; i < 3; i++)
			tqp_recv(&other, &(struct tsge){p.bmem + 4096 * (i + 20), 4096, p.bkey}, 1);
		for (uint32_t i = 0; i < 12; i++) {
			struct twr wr = tpair_wr(&p, MLX4_OPCODE_SEND, 100);

			wr.sge[0].addr = p.amem + 64 * i;
			wr.signaled = i == 11;
			wr.dqpn = i % 4 == 2 ? other.qpn : p.b.qpn;
			if (grh) {
				wr.grh = true;
				memset(wr.dgid, 0xd7, sizeof(wr.dgid));
			}
			tqp_post(&p.a, &wr);
		}
		tqp_ring(&p.a);
		for (uint32_t i = 0, n = 0, m = 0; i < 12; i++) {
			bool to_other = i % 4 == 2;
			const uint8_t *at = p.bmem + 4096 * (to_other ? m + 20 : n + 1);

			texpect(&p.bcq[1], MLX4_CQE_RECV_SEND, false, to_other ? m++ : n++);
			assert_memory_equal(at + 40, p.amem + 64 * i, 100);
			if (grh)
				assert_memory_equal(at + 24, "\xd7\xd7\xd7\xd7", 4);
		}
		texpect_none(&p.bcq[1]);
		texpect(&p.acq[0], MLX4_OPCODE_SEND, true, 11);
		texpect_none(&p.acq[0]);
		assert_int_equal(tqp_ctx(&p.b)->rcv_packets, 9);
		assert_int_equal(tqp_ctx(&other)->rcv_packets, 3);
		assert_int_equal(tqp_ctx(&other)->messages_received, 3);
		assert_int_equal(tqp_ctx(&p.a)->xmit_packets, 12);
		tpair_close(&p);
	}
}

/*
 * Makes a's region device memory, and one for b behind it, which has this key. Returns where that
 * is.
 */
static uint8_t *in_device_memory(uint32_t key)
{
	struct sh_dev *dev = &p.m->dev;
	uint64_t there = dev->shared_off + TMEM;
	uint8_t *at = sh_at(dev, there);

	assert_int_equal(dev->ops->extend(dev->host, there, TMEM), 0);
	memcpy(at - TMEM, p.amem, TMEM);
	assert_int_equal(sh_mr_share(&p.m->daemon, 0, p.akey, dev->shared_off), 0);
	mock_map(p.m, p.b.ctx, at, TMEM);
	assert_int_equal(
		sh_mr_create(&p.m->daemon, 1, key, p.b.ctx, p.b.pdn, (uintptr_t)at, TMEM, 0xf), 0);
	assert_int_equal(sh_mr_share(&p.m->daemon, 1, key, there), 0);
	return at;
}

/*
 * Header and bytes in device memory, at any address and in a receive that has room for not one byte
 * more: each is where it belongs, and nothing beside it. The last one ends where the region ends.
 */
static void test_header(void **state)
{
	static const uint32_t lens[] = {0, 1, 7, 8, 16, 17, 100, 1000, 64};
	const uint16_t n = sizeof(lens) / sizeof(lens[0]);
	const uint32_t key = 0x4100;
	uint8_t *at;

	(void)state;
	open_pair(false);
	at = in_device_memory(key);
	for (uint16_t i = 0; i < n; i++) {
		struct twr wr = tpair_wr(&p, MLX4_OPCODE_SEND, lens[i]);
		uint32_t room = 40 + lens[i];
		uint8_t *to = i < n - 1 ? at + 4096 * (i + 1) + i : at + TMEM - room;
		uint8_t grh[40] = {0x60, 0x51, 0x23, 0x45, 0, 0, 0x1b, 64};
		uint32_t length = 12 + 8 + (lens[i] + 3) / 4 * 4 + 4;
		uint64_t copies = p.m->shared->copies;

		memset(to - 1, 0xaa, room + (i < n - 1 ? 2 : 1));
		tqp_recv(&p.b, &(struct tsge){to, room, key}, 1);
		wr.grh = true;
		memset(wr.dgid, 0xd0 + i, 16);
		tqp_send(&p.a, &wr);
		texpect(&p.acq[0], MLX4_OPCODE_SEND, true, i);
		texpect(&p.bcq[1], MLX4_CQE_RECV_SEND, false, i);
		grh[4] = (uint8_t)(length >> 8);
		grh[5] = (uint8_t)length;
		memcpy(grh + 8, sh_hca(&p.m->dev, 0)->port[0].gid[0], 16);
		memcpy(grh + 24, wr.dgid, 16);
		assert_memory_equal(to, grh, 40);
		assert_memory_equal(to + 40, p.amem, lens[i]);
		assert_int_equal(to[-1], 0xaa);
		if (i < n - 1)
			assert_int_equal(to[room], 0xaa);
		assert_int_equal(p.m->shared->copies, copies);
		assert_int_equal(tqp_ctx(&p.b)->rcv_packets, i + 1);
	}
	texpect_none(&p.bcq[1]);
	assert_int_equal(sh_mr_destroy(&p.m->daemon, 1, key), 0);
	tpair_close(&p);
}

static const uint8_t group[16] = {0xff, 0x12, 1, 2, 3};

/* Posts a datagram to the group, or to b, without a doorbell. */
static void post_datagram(bool to_group, uint32_t i)
{
	struct twr wr = tpair_wr(&p, MLX4_OPCODE_SEND, 100);

	wr.sge[0].addr = p.amem + 64 * i;
	wr.signaled = false;
	if (to_group) {
		wr.dlid = 0xc005;
		wr.dqpn = 0xffffff;
		wr.grh = true;
		memcpy(wr.dgid, group, 16);
	}
	tqp_post(&p.a, &wr);
}

static void groups_counted(uint32_t sent, uint32_t received)
{
	struct sh_traffic from[SH_MAX_PORTS], to[SH_MAX_PORTS];

	sh_traffic(&p.m->dev, 0, from);
	sh_traffic(&p.m->dev, 1, to);
	assert_int_equal(from[0].xmit_multicast, sent);
	assert_int_equal(to[0].rcv_multicast, received);
}

/* A group of one, of two, of one again, and of none; and other datagrams between. */
static void test_group(void **state)
{
	struct tqp other;

	(void)state;
	open_pair(false);
	tqp_open(&other, p.m, 1, p.b.ctx, p.b.pdn, SH_QPT_UD, 0x55, &p.bcq[0], &p.bcq[1], NULL);
	tqp_up(&other, &p.battr);
	for (uint32_t i = 0; i < 20; i++) {
		tpair_recv(&p, 4096 * (i + 1), 4096);
		tqp_recv(&other, &(struct tsge){p.bmem + 4096 * (i + 30), 4096, p.bkey}, 1);
	}
	assert_int_equal(sh_mcast_attach(&p.m->daemon, 1, group, p.b.qpn), 0);
	for (uint32_t i = 0; i < 9; i++)
		post_datagram(i % 3, i);
	tqp_ring(&p.a);
	for (uint16_t i = 0; i < 9; i++) {
		texpect(&p.bcq[1], MLX4_CQE_RECV_SEND, false, i);
		assert_memory_equal(p.bmem + 4096 * (i + 1) + 40, p.amem + 64 * i, 100);
		if (i % 3)
			assert_memory_equal(p.bmem + 4096 * (i + 1) + 24, group, 16);
	}
	assert_int_equal(tqp_ctx(&p.b)->rcv_packets, 9);
	groups_counted(6, 6);
	assert_int_equal(sh_mcast_attach(&p.m->daemon, 1, group, other.qpn), 0);
	post_datagram(true, 0);
	tqp_ring(&p.a);
	texpect(&p.bcq[1], MLX4_CQE_RECV_SEND, false, 9);
	texpect(&p.bcq[1], MLX4_CQE_RECV_SEND, false, 0);
	groups_counted(7, 7);
	assert_int_equal(sh_mcast_detach(&p.m->daemon, 1, group, p.b.qpn), 0);
	post_datagram(true, 0);
	tqp_ring(&p.a);
	texpect(&p.bcq[1], MLX4_CQE_RECV_SEND, false, 1);
	assert_int_equal(tqp_ctx(&p.b)->rcv_packets, 9);
	assert_int_equal(tqp_ctx(&other)->rcv_packets, 1);
	groups_counted(8, 8);
	/* A port that is down receives nothing, and a group without members loses the datagram. */
	sh_hca(&p.m->dev, 1)->port[0].state = 1;
	post_datagram(true, 0);
	tqp_ring(&p.a);
	texpect_none(&p.bcq[1]);
	sh_hca(&p.m->dev, 1)->port[0].state = 4;
	assert_int_equal(sh_mcast_detach(&p.m->daemon, 1, group, other.qpn), 0);
	post_datagram(true, 0);
	tqp_ring(&p.a);
	texpect_none(&p.bcq[1]);
	assert_int_equal(sh_hca(&p.m->dev, 0)->counters.drops_mcast, 1);
	assert_int_equal(tqp_ctx(&p.a)->sq_una, p.a.head);
	tpair_close(&p);
}

static void hold_groups(void *arg)
{
	sh_lock(&p.m->dev, &sh_hca(&p.m->dev, *(uint32_t *)arg)->mcg_lock);
}

/*
 * A process is stopped with the groups' table of an HCA while another one is in a chain of
 * datagrams, which goes on. If the table is being changed, it first lets go what it holds at the
 * receiver, where the last message may wait.
 */
static void test_group_held(void **state)
{
	(void)state;
	for (uint32_t at = 0; at < 2; at++) {
		struct sh_hca *src;
		struct sh_express e = {0};
		uint8_t data[64] = {1};
		struct sh_seg seg = {(uintptr_t)data, sizeof(data)};
		struct sh_packet d = {.op = SH_PKT_SEND,
				      .service = SH_SVC_UD,
				      .flags = SH_PKT_FIRST | SH_PKT_LAST | SH_PKT_GRH,
				      .npackets = 1,
				      .mtu = 4096,
				      .src_port = 1,
				      .dlid = 0xc005,
				      .dqpn = MLX4_MULTICAST_QPN,
				      .pkey = 0xffff,
				      .payload = {.nseg = 1, .seg = &seg, .len = sizeof(data)}};
		struct sh_packet resp = {0};
		struct sh_qp *from;
		pid_t child;

		open_pair(false);
		src = sh_hca(&p.m->dev, 0);
		for (uint32_t i = 0; i < 4; i++)
			tpair_recv(&p, 4096 * (i + 1), 4096);
		/* The first HCA has a table, too: it is looked at. */
		assert_int_equal(sh_mcast_attach(&p.m->daemon, 0, group, 0x77), 0);
		assert_int_equal(sh_mcast_detach(&p.m->daemon, 0, group, 0x77), 0);
		assert_int_equal(sh_mcast_attach(&p.m->daemon, 1, group, p.b.qpn), 0);
		memcpy(d.grh.dgid, group, 16);
		d.qkey = tqp_ctx(&p.b)->qkey;
		d.slid = tlid(p.m, 0);
		from = tqp_ctx(&p.a);
		assert_true(sh_express_lossy(&e, &p.m->dev, src, from, &d));
		assert_ptr_equal(e.qp, tqp_ctx(&p.b));
		child = mock_child(hold_groups, &at);
		alarm(60);
		assert_true(sh_express_lossy(&e, &p.m->dev, src, from, &d));
		sh_hca(&p.m->dev, at)->mcgs_seq++;
		assert_false(sh_express_lossy(&e, &p.m->dev, src, from, &d));
		alarm(0);
		assert_null(e.qp);
		texpect(&p.bcq[1], MLX4_CQE_RECV_SEND, false, 0);
		texpect(&p.bcq[1], MLX4_CQE_RECV_SEND, false, 1);
		assert_int_equal(sh_trylock(&p.m->dev, &tqp_ctx(&p.b)->rlock), 0);
		sh_unlock(&p.m->dev, &tqp_ctx(&p.b)->rlock);
		mock_kill(child);
		/*
		 * As the daemon leaves it that is killed there: the ordinary way finds the member.
		 */
		sh_deliver_mcast(&p.m->dev, &d, &resp);
		texpect(&p.bcq[1], MLX4_CQE_RECV_SEND, false, 2);
		sh_hca(&p.m->dev, at)->mcgs_seq++;
		assert_true(sh_express_lossy(&e, &p.m->dev, src, from, &d));
		sh_express_end(&e, &p.m->dev);
		texpect(&p.bcq[1], MLX4_CQE_RECV_SEND, false, 3);
		tpair_close(&p);
	}
}

#define CHANGES 2000

static uint32_t changing, wrong;

/* The daemon does not wait for a sender: it tries again. */
static void change(int (*how)(struct sh_dev *, uint32_t, const uint8_t *, uint32_t),
		   const uint8_t gid[16], uint32_t qpn)
{
	int err;

	do
		err = how(&p.m->daemon, 1, gid, qpn);
	while (err == -EINPROGRESS);
	wrong += err != 0;
}

/* Another QP joins and leaves the group, and groups beside it. */
static void *change_groups(void *arg)
{
	const uint32_t qpn = *(const uint32_t *)arg;
	uint8_t near[16];

	memcpy(near, group, 16);
	near[14] = 1;
	for (uint32_t i = 0; i < CHANGES; i++) {
		near[15] = (uint8_t)i;
		change(sh_mcast_attach, near, qpn);
		change(sh_mcast_attach, group, qpn);
		change(sh_mcast_detach, group, qpn);
		change(sh_mcast_detach, near, qpn);
	}
	__atomic_store_n(&changing, 0, __ATOMIC_RELAXED);
	return NULL;
}

/* A member gets each datagram once, whatever the daemon changes meanwhile. */
static void test_group_changes(void **state)
{
	struct tqp other;
	pthread_t thread;
	uint16_t n = 0;

	(void)state;
	open_pair(false);
	/* It has no receives: what it is sent is dropped. */
	tqp_open(&other, p.m, 1, p.b.ctx, p.b.pdn, SH_QPT_UD, 0x55, &p.bcq[0], &p.bcq[1], NULL);
	tqp_up(&other, &p.battr);
	assert_int_equal(sh_mcast_attach(&p.m->daemon, 1, group, p.b.qpn), 0);
	changing = 1;
	assert_int_equal(pthread_create(&thread, NULL, change_groups, &other.qpn), 0);
	while (n < 64 || __atomic_load_n(&changing, __ATOMIC_RELAXED)) {
		tpair_recv(&p, 4096, 4096);
		post_datagram(true, n % 16);
		tqp_ring(&p.a);
		texpect(&p.bcq[1], MLX4_CQE_RECV_SEND, false, n++);
		texpect_none(&p.bcq[1]);
	}
	pthread_join(thread, NULL);
	assert_int_equal(wrong, 0);
	tpair_close(&p);
}

/* The sender itself is the only member: its own QP receives what it sends. */
static void test_own_group(void **state)
{
	(void)state;
	tpair_open(&p, &(struct tpair_opts){.type = SH_QPT_UD, .same_hca = true});
	tfill(p.amem, TMEM / 2, 1);
	tqp_recv(&p.a, &(struct tsge){p.amem + 65536, 4096, p.akey}, 1);
	tqp_recv(&p.a, &(struct tsge){p.amem + 65536 + 4096, 4096, p.akey}, 1);
	assert_int_equal(sh_mcast_attach(&p.m->daemon, 0, group, p.a.qpn), 0);
	post_datagram(true, 0);
	post_datagram(true, 1);
	tqp_ring(&p.a);
	texpect(&p.acq[1], MLX4_CQE_RECV_SEND, false, 0);
	texpect(&p.acq[1], MLX4_CQE_RECV_SEND, false, 1);
	assert_memory_equal(p.amem + 65536 + 40, p.amem, 100);
	assert_memory_equal(p.amem + 65536 + 4096 + 40, p.amem + 64, 100);
	assert_int_equal(tqp_ctx(&p.a)->rcv_packets, 2);
	tpair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_datagrams),     cmocka_unit_test(test_header),
		cmocka_unit_test(test_group),	      cmocka_unit_test(test_group_held),
		cmocka_unit_test(test_group_changes), cmocka_unit_test(test_own_group),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
