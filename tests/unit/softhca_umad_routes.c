// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: which way management datagrams take, call by call, without sockets: global and
 * directed routes, which queue pair they have to name, and in which partition they have to be.
 */
#include <endian.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "softhca/device/memory/tables.h"
#include "softhca/device/transport/fault.h"
#include "softhca/kernel/umad/io.h"
#include "softhca_umad_rig.h"

/* Get() from the first port with a global route to a GID. */
static void routed(struct rig *r, uint32_t id, uint16_t lid, uint8_t class, uint16_t attribute,
		   const uint8_t gid[16])
{
	struct umad_hdr *h = (void *)r->out;

	request(r, id, lid, class, class == CLASS_SA ? 2 : 1, 1, attribute);
	h->timeout_ms = 0;
	h->grh_present = 1;
	h->hop_limit = 9;
	h->traffic_class = 3;
	h->flow_label = htobe32(5);
	memcpy(h->gid, gid, 16);
}

static void asked_at(struct rig *r, uint32_t id, uint16_t lid, uint8_t class, uint16_t attribute,
		     const uint8_t gid[16])
{
	const struct umad_hdr *h = (const void *)r->in;

	routed(r, id, lid, class, attribute, gid);
	((struct umad_hdr *)r->out)->timeout_ms = 60000;
	assert_int_equal(put(r, 0, 320), 320);
	assert_in_range(get(r, 0, 320), 64 + 36, 320);
	assert_int_equal(h->status, 0);
	assert_int_equal(be16toh(h->lid), lid);
	assert_int_equal(h->grh_present, 1);
	assert_memory_equal(h->gid, gid, 16);
	/* As kernels would send there. */
	assert_int_equal(h->hop_limit, 0xff);
	assert_int_equal(h->traffic_class, 3);
	assert_int_equal(be32toh(h->flow_label), 5);
}

/*
 * Who answers on a global route says by which of his GIDs he was asked. What is sent to a GID that
 * is not the receiver's is lost, as kernels lose it.
 */
static void global_routes(void **state)
{
	uint8_t gid[16] = {0xfe, 0x80, [9] = 2, 0xc9, 3, 0, 0x20};
	static const uint8_t none[16];
	const struct umad_hdr *h;
	struct sh_port *own, *peer;
	uint32_t perf, sa, ask, serve;
	struct rig r;

	(void)state;
	begin(&r, 2);
	h = (const void *)r.in;
	own = &sh_hca(&r.t->k.dev, 0)->port[0];
	peer = &sh_hca(&r.t->k.dev, 2)->port[0];
	assert_int_equal(reg(&r, 0, 1, 4, 1, 0, 0, 0, &perf), 0);
	assert_int_equal(reg(&r, 0, 1, 3, 2, 1, 0, 0, &sa), 0);
	asked_at(&r, perf, (uint16_t)peer->lid, 4, 0x12, peer->gid[0]);
	asked_at(&r, sa, (uint16_t)own->lid, CLASS_SA, 1, own->gid[0]);
	asked_at(&r, perf, SH_SWITCH_LID, 4, 1, gid);
	/* Between programs, at another of its GIDs. */
	memcpy(peer->gid[2], peer->gid[0], 16);
	peer->gid[2][15] ^= 0x80;
	assert_int_equal(reg(&r, 0, 1, 0x0a, 1, 0, 0, 0, &ask), 0);
	assert_int_equal(reg(&r, 1, 1, 0x0a, 1, 0, 0, 2, &serve), 0);
	routed(&r, ask, (uint16_t)peer->lid, 0x0a, 1, peer->gid[2]);
	assert_int_equal(put(&r, 0, 320), 320);
	assert_int_equal(get(&r, 1, 320), 320);
	assert_memory_equal(h->gid, own->gid[0], 16);
	assert_int_equal(h->gid_index, 2);
	/* Not its own, and none. */
	routed(&r, ask, (uint16_t)peer->lid, 0x0a, 1, own->gid[0]);
	assert_int_equal(put(&r, 0, 320), 320);
	routed(&r, ask, (uint16_t)peer->lid, 0x0a, 1, none);
	assert_int_equal(put(&r, 0, 320), 320);
	assert_int_equal(get(&r, 1, 320), -EAGAIN);
	routed(&r, perf, (uint16_t)peer->lid, 4, 0x12, own->gid[0]);
	((struct umad_hdr *)r.out)->timeout_ms = 60000;
	assert_int_equal(put(&r, 0, 320), 320);
	routed(&r, perf, SH_SWITCH_LID, 4, 1, own->gid[0]);
	mad(&r)[AT_TID + 7]++;
	((struct umad_hdr *)r.out)->timeout_ms = 60000;
	assert_int_equal(put(&r, 0, 320), 320);
	assert_int_equal(get(&r, 0, 320), -EAGAIN);
	end(&r);
}

/* On a directed route: to the switch, and from there to host 1's port 1. Is there an answer? */
static bool reaches(struct rig *r, uint32_t id)
{
	uint8_t *m = request(r, id, 0xffff, 0x81, 1, 1, 0x11);
	static uint32_t tid;

	mad_put32(m, 12, ++tid);
	m[AT_HOP_COUNT] = 2;
	mad_put16(m, AT_DR_SLID, 0xffff);
	mad_put16(m, AT_DR_DLID, 0xffff);
	m[AT_INITIAL + 1] = 1;
	m[AT_INITIAL + 2] = 3;
	assert_int_equal(put(r, 0, 320), 320);
	return get(r, 0, 320) == 320;
}

/*
 * Faults that make packets wait, or send them twice, are not about datagrams: no rule of them
 * chooses, counts or is used up by one, and none stands before a rule that takes the datagram.
 */
static void faults(void **state)
{
	static const uint32_t kinds[] = {SH_FAULT_DELAY, SH_FAULT_DUPLICATE, SH_FAULT_REORDER,
					 SH_FAULT_JITTER, SH_FAULT_LIMIT};
	struct sh_fault_rule *other, *drop;
	uint32_t id;
	struct rig r;

	(void)state;
	begin(&r, 1);
	other = &r.t->k.dev.inst->faults.rule[SH_FAULT_KINDS];
	drop = other + 1;
	assert_int_equal(reg(&r, 0, 0, 0x81, 1, 0, 0, 0, &id), 0);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct sh_fault_scope scope = {kinds[i], SH_FAULT_ANY, SH_FAULT_ANY, SH_FAULT_ANY};

		memset(other, 0, sizeof(*other) * 2);
		other->scope = sh_fault_pack(&scope);
		other->rate = kinds[i] == SH_FAULT_LIMIT || i % 2 ? SH_FAULT_MILLION : 0;
		other->count = other->rate ? 0 : 5;
		other->bits = 1;
		sh_faults_settle(&r.t->k.dev.inst->faults);
		assert_true(reaches(&r, id));
		scope.kind = SH_FAULT_DROP;
		drop->scope = sh_fault_pack(&scope);
		drop->count = 1;
		sh_faults_settle(&r.t->k.dev.inst->faults);
		assert_false(reaches(&r, id));
		assert_int_equal(drop->done, 1);
		assert_true(reaches(&r, id));
		assert_int_equal(drop->done, 1);
		assert_int_equal(other->done, 0);
		assert_int_equal(other->drawn, 0);
		assert_int_equal(other->count, other->rate ? 0 : 5);
	}
	end(&r);
}

static void directed_route(void **state)
{
	struct rig r;
	uint32_t id;

	(void)state;
	begin_hosts(&r, 1, 2);
	assert_int_equal(reg(&r, 0, 0, 0x81, 1, 0, 0, 0, &id), 0);
	assert_true(reaches(&r, id));
	/* Its link is down at the far end, then at the near one. */
	sh_hca(&r.t->k.dev, 1)->port[0].state = 1;
	assert_false(reaches(&r, id));
	sh_hca(&r.t->k.dev, 1)->port[0].state = 4;
	assert_true(reaches(&r, id));
	sh_hca(&r.t->k.dev, 0)->port[0].state = 1;
	assert_false(reaches(&r, id));
	end(&r);
}

/*
 * Subnet management is served on QP 0 only, the rest on QP 1 only: a request to the other one is
 * lost.
 */
static void wrong_queue_pair(void **state)
{
	static const struct {
		uint8_t qpn, class, hops;
		uint32_t to;
		bool lost;
	} cases[] = {
		{1, CLASS_PERF, 0, 0, true},
		{1, CLASS_PERF, 0, 1, false},
		{1, CLASS_SA, 0, 0, true},
		{0, CLASS_SMP, 0, 1, true},
		{0, CLASS_SMP, 0, 77, true},
		{0, CLASS_SMP, 0, 0, false},
		{0, CLASS_DIRECTED, 1, 1, true},
		{0, CLASS_DIRECTED, 1, 0, false},
		/* That one does not leave its port, and is on its way to no queue pair. */
		{0, CLASS_DIRECTED, 0, 1, false},
	};
	struct rig r;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool directed = cases[i].class == CLASS_DIRECTED;
		const struct umad_hdr *h = (const void *)r.in;
		uint32_t id;
		uint8_t *m;

		begin(&r, 0);
		assert_int_equal(reg(&r, 0, cases[i].qpn, cases[i].class, 1, 0, 0, 0, &id), 0);
		m = request(&r, id, directed ? 0xffff : 3, cases[i].class, 1, METHOD_GET,
			    cases[i].qpn ? 0x12 : 0x11);
		((struct umad_hdr *)r.out)->qpn = htobe32(cases[i].to);
		((struct umad_hdr *)r.out)->retries = 2;
		if (directed) {
			mad_put32(m, AT_DR_SLID, UINT32_MAX);
			m[AT_HOP_COUNT] = cases[i].hops;
			m[AT_INITIAL + 1] = 1;
		} else if (cases[i].class == CLASS_PERF) {
			m[AT_DATA + 1] = 1;
		}
		assert_int_equal(put(&r, 0, 320), 320);
		for (int again = 0; cases[i].lost && again < 3; again++) {
			assert_int_equal(get(&r, 0, 320), -EAGAIN);
			r.f[0]->sent->due = 1;
			umad_timer_ready(r.t->k.umad);
		}
		assert_int_equal(get(&r, 0, 320), cases[i].lost ? 64 + 24 : 320);
		assert_int_equal(h->status, cases[i].lost ? ETIMEDOUT : 0);
		end(&r);
	}
}

/*
 * Two ports talk on QP 1 by a P_Key that both have, one of them as a full member. What comes names
 * the place in the receiver's own table. A port counts what it does not take, and the sender's time
 * ends.
 */
static void partitions(void **state)
{
	static const struct {
		uint16_t sender, receiver;
		bool arrives;
	} cases[] = {
		{0x8005, 0x8005, true},	 {0x0005, 0x8005, true},  {0x8005, 0x0005, true},
		{0x0005, 0x0005, false}, {0x8005, 0x8006, false}, {0x8000, 0x8000, false},
	};
	const struct umad_hdr *h;
	struct umad_hdr *out;
	struct rig r;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint32_t vendor, perf, serve, id;
		struct sh_hca *to;

		begin(&r, 3);
		h = (const void *)r.in;
		out = (void *)r.out;
		to = sh_hca(&r.t->k.dev, 3);
		sh_hca(&r.t->k.dev, 0)->port[0].pkey[2] = cases[i].sender;
		to->port[0].pkey[5] = cases[i].receiver;
		assert_int_equal(reg(&r, 0, 1, 0x32, 1, 1, 0x1405, 0, &vendor), 0);
		assert_int_equal(reg(&r, 0, 1, 4, 1, 0, 0, 0, &perf), 0);
		assert_int_equal(reg(&r, 1, 1, 0x32, 1, 1, 0x1405, UINT64_MAX, &serve), 0);
		for (int builtin = 0; builtin < 2; builtin++) {
			id = builtin ? perf : vendor;
			request(&r, id, 7, builtin ? 4 : 0x32, 1, 1, builtin ? 0x12 : 0x20);
			mad(&r)[builtin ? AT_DATA + 1 : 38] = builtin ? 1 : 0x14;
			mad(&r)[39] = builtin ? 0 : 0x05;
			out->pkey_index = 2;
			assert_int_equal(put(&r, 0, 320), 320);
			if (!cases[i].arrives) {
				assert_int_equal(get(&r, 1, 320), -EAGAIN);
				assert_int_equal(to->traffic[0].rcv_constraint, 1 + builtin);
				assert_int_equal(to->counters.drops_pkey, 1 + builtin);
				r.f[0]->sent->due = 1;
				umad_timer_ready(r.t->k.umad);
				assert_int_equal(get(&r, 0, 320), 64 + 24);
				assert_int_equal(h->status, ETIMEDOUT);
				continue;
			}
			if (!builtin) {
				assert_int_equal(get(&r, 1, 320), 320);
				assert_int_equal(h->pkey_index, 5);
				memcpy(r.out, r.in, 320);
				out->id = serve;
				mad(&r)[3] = 0x81;
				assert_int_equal(put(&r, 1, 320), 320);
			}
			assert_int_equal(get(&r, 0, 320), 320);
			assert_int_equal(h->status, 0);
			assert_int_equal(h->pkey_index, 2);
			assert_int_equal(to->traffic[0].rcv_constraint, 0);
		}
		end(&r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(global_routes),  cmocka_unit_test(faults),
		cmocka_unit_test(directed_route), cmocka_unit_test(wrong_queue_pair),
		cmocka_unit_test(partitions),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
