// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: the life of a queue pair: every transition with every attribute; values that are
 * kept and refused; what each state does with posts and packets; and what is left after ERR, RESET
 * and destruction.
 */
#include <endian.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#include "softhca_pair.h"
#include "softhca/device/memory/exec.h"
#include "softhca/device/queues/cq.h"
#include "softhca/device/queues/modify.h"
#include "softhca/device/queues/qp.h"
#include "softhca/device/queues/srq_receives.h"
#include "softhca/device/queues/transitions.h"
#include "softhca/device/transport/doorbell.h"

enum { COMM_EST = 4, LAST_WQE = 16 };

/* ---- the table of transitions, in words, as InfiniBand and the mlx4 driver have it ---- */

struct row {
	const char *from, *to, *type, *required, *optional;
};

static const struct row rows[] = {
	{"RESET", "INIT", "UD", "PKEY_INDEX PORT QKEY", ""},
	{"RESET", "INIT", "UC", "PKEY_INDEX PORT ACCESS_FLAGS", ""},
	{"RESET", "INIT", "RC", "PKEY_INDEX PORT ACCESS_FLAGS", ""},
	{"INIT", "INIT", "UD", "", "PKEY_INDEX PORT QKEY"},
	{"INIT", "INIT", "UC", "", "PKEY_INDEX PORT ACCESS_FLAGS"},
	{"INIT", "INIT", "RC", "", "PKEY_INDEX PORT ACCESS_FLAGS"},
	{"INIT", "RTR", "UD", "", "PKEY_INDEX QKEY"},
	{"INIT", "RTR", "UC", "AV PATH_MTU DEST_QPN RQ_PSN", "ALT_PATH ACCESS_FLAGS PKEY_INDEX"},
	{"INIT", "RTR", "RC", "AV PATH_MTU DEST_QPN RQ_PSN MAX_DEST_RD_ATOMIC MIN_RNR_TIMER",
	 "ALT_PATH ACCESS_FLAGS PKEY_INDEX"},
	{"RTR", "RTS", "UD", "SQ_PSN", "CUR_STATE QKEY"},
	{"RTR", "RTS", "UC", "SQ_PSN", "CUR_STATE ALT_PATH ACCESS_FLAGS PATH_MIG_STATE"},
	{"RTR", "RTS", "RC", "TIMEOUT RETRY_CNT RNR_RETRY SQ_PSN MAX_QP_RD_ATOMIC",
	 "CUR_STATE ALT_PATH ACCESS_FLAGS PATH_MIG_STATE MIN_RNR_TIMER"},
	{"RTS", "RTS", "UD", "", "CUR_STATE QKEY"},
	{"RTS", "RTS", "UC", "", "CUR_STATE ACCESS_FLAGS ALT_PATH PATH_MIG_STATE"},
	{"RTS", "RTS", "RC", "", "CUR_STATE ACCESS_FLAGS ALT_PATH PATH_MIG_STATE MIN_RNR_TIMER"},
	{"RTS", "SQD", "UD", "", "EN_SQD_ASYNC_NOTIFY"},
	{"RTS", "SQD", "UC", "", "EN_SQD_ASYNC_NOTIFY"},
	{"RTS", "SQD", "RC", "", "EN_SQD_ASYNC_NOTIFY"},
	{"SQD", "RTS", "UD", "", "CUR_STATE QKEY"},
	{"SQD", "RTS", "UC", "", "CUR_STATE ALT_PATH ACCESS_FLAGS PATH_MIG_STATE"},
	{"SQD", "RTS", "RC", "", "CUR_STATE ALT_PATH ACCESS_FLAGS PATH_MIG_STATE MIN_RNR_TIMER"},
	{"SQD", "SQD", "UD", "", "PKEY_INDEX QKEY"},
	{"SQD", "SQD", "UC", "", "AV ALT_PATH ACCESS_FLAGS PKEY_INDEX PATH_MIG_STATE"},
	{"SQD", "SQD", "RC", "",
	 "AV ALT_PATH ACCESS_FLAGS PKEY_INDEX PATH_MIG_STATE PORT TIMEOUT RETRY_CNT RNR_RETRY "
	 "MAX_QP_RD_ATOMIC "
	 "MAX_DEST_RD_ATOMIC MIN_RNR_TIMER"},
	{"SQE", "RTS", "UD", "", "CUR_STATE QKEY"},
	{"SQE", "RTS", "UC", "", "CUR_STATE ACCESS_FLAGS"},
	{"ERR", "ERR", "UD", "", ""},
	{"ERR", "ERR", "UC", "", ""},
	{"ERR", "ERR", "RC", "", ""},
};
static const char *const states[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
static const char *const bits[] = {
	"STATE",
	"CUR_STATE",
	"EN_SQD_ASYNC_NOTIFY",
	"ACCESS_FLAGS",
	"PKEY_INDEX",
	"PORT",
	"QKEY",
	"AV",
	"PATH_MTU",
	"TIMEOUT",
	"RETRY_CNT",
	"RNR_RETRY",
	"RQ_PSN",
	"MAX_QP_RD_ATOMIC",
	"ALT_PATH",
	"MIN_RNR_TIMER",
	"SQ_PSN",
	"MAX_DEST_RD_ATOMIC",
	"PATH_MIG_STATE",
	"CAP",
	"DEST_QPN",
};
#define NBITS (sizeof(bits) / sizeof(bits[0]))

static uint32_t mask_of(const char *words)
{
	uint32_t mask = 0;

	for (const char *at = words; *at;) {
		size_t n = strcspn(at, " ");
		unsigned int b;

		for (b = 0; b < NBITS; b++)
			if (strlen(bits[b]) == n && !strncmp(bits[b], at, n))
				break;
		assert_true(b < NBITS);
		mask |= 1u << b;
		at += n + (at[n] == ' ');
	}
	return mask;
}

static const struct row *row_of(unsigned int from, unsigned int to, const char *type)
{
	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (!strcmp(rows[i].from, states[from]) && !strcmp(rows[i].to, states[to]) &&
		    !strcmp(rows[i].type, type))
			return &rows[i];
	return NULL;
}

static void check(uint32_t type, const char *name, uint32_t foreign)
{
	for (unsigned int from = 0; from < 7; from++)
		for (unsigned int to = 0; to < 7; to++) {
			const struct row *row = row_of(from, to, name);
			bool any = to == SH_QPS_RESET || (to == SH_QPS_ERR && from != SH_QPS_RESET);
			uint32_t req = row ? mask_of(row->required) & ~foreign : 0;
			uint32_t opt = row ? mask_of(row->optional) & ~foreign : 0;
			bool may = row || any;

			if (any)
				req = opt = 0;
			assert_int_equal(sh_qp_transition_ok(type, from, to, req | 1), may);
			assert_int_equal(sh_qp_transition_ok(type, from, to, req | opt | 1), may);
			assert_int_equal(sh_qp_transition_ok(type, from, to, req | opt), may);
			for (unsigned int b = 1; b < NBITS; b++) {
				uint32_t bit = 1u << b;

				if (req & bit)
					assert_false(sh_qp_transition_ok(type, from, to,
									 (req | opt | 1) & ~bit));
				else
					assert_int_equal(
						sh_qp_transition_ok(type, from, to, req | 1 | bit),
						may && opt & bit);
			}
			assert_false(sh_qp_transition_ok(type, from, to, req | opt | 1 | 1u << 21));
		}
}

static void test_table(void **state)
{
	(void)state;
	check(SH_QPT_UD, "UD", 0);
	check(SH_QPT_UC, "UC", 0);
	check(SH_QPT_RC, "RC", 0);
	check(SH_QPT_XRC, "RC", 0);
	check(SH_QPT_XRC_INI, "RC", mask_of("MAX_DEST_RD_ATOMIC MIN_RNR_TIMER"));
	check(SH_QPT_XRC_TGT, "RC", mask_of("RETRY_CNT RNR_RETRY MAX_QP_RD_ATOMIC"));
	assert_false(sh_qp_transition_ok(SH_QPT_RC, 7, 0, 1));
	assert_false(sh_qp_transition_ok(SH_QPT_RC, 0, 7, 1));
}

/* ---- values ---- */

static void test_values(void **state)
{
	struct tpair p;
	struct sh_qp_attr a, seen;
	static const struct {
		uint8_t given, kept;
	} depth[] = {{0, 1}, {1, 1}, {2, 2}, {3, 4}, {9, 16}, {100, 128}, {128, 128}};

	(void)state;
	tpair_open(&p, &(struct tpair_opts){.type = SH_QPT_RC, .unconnected = true});
	a = p.aattr;
	a.qp_state = SH_QPS_INIT;
#define INIT_MASK (SH_QPA_STATE | SH_QPA_PKEY_INDEX | SH_QPA_PORT | SH_QPA_ACCESS_FLAGS)
#define REFUSED(field, value, mask)                                                                \
	do {                                                                                       \
		struct sh_qp_attr bad = a;                                                         \
		bad.field = value;                                                                 \
		assert_int_equal(tqp_modify(&p.a, &bad, mask), -EINVAL);                           \
	} while (0)
	REFUSED(port_num, 0, INIT_MASK);
	REFUSED(port_num, 2, INIT_MASK);
	REFUSED(pkey_index, 128, INIT_MASK);
	assert_int_equal(tqp_modify(&p.a, &a, INIT_MASK | SH_QPA_QKEY), -EINVAL);
	assert_int_equal(tqp_modify(&p.a, &a, INIT_MASK & ~SH_QPA_PORT), -EINVAL);
	assert_int_equal(tqp_modify(&p.a, &a, INIT_MASK | SH_QPA_CAP), -EINVAL);
	assert_int_equal(tqp_state(&p.a), SH_QPS_RESET);
	a.qp_access_flags = 0x1f;
	assert_int_equal(tqp_modify(&p.a, &a, INIT_MASK), 0);
	assert_int_equal(sh_qp_query(&p.m->daemon, 0, p.a.qpn, &seen), 0);
	assert_int_equal(seen.qp_access_flags, SH_REMOTE_WRITE | SH_REMOTE_READ | SH_REMOTE_ATOMIC);
	assert_int_equal(seen.max_recv_wr, 32);
	a.qp_state = SH_QPS_RTR;
#define RTR_MASK                                                                                   \
	(SH_QPA_STATE | SH_QPA_AV | SH_QPA_PATH_MTU | SH_QPA_DEST_QPN | SH_QPA_RQ_PSN |            \
	 SH_QPA_MAX_DEST_RD_ATOMIC | SH_QPA_MIN_RNR_TIMER)
	REFUSED(path_mtu, 0, RTR_MASK);
	REFUSED(path_mtu, 6, RTR_MASK);
	REFUSED(max_dest_rd_atomic, 17, RTR_MASK);
	a.path.is_global = 1;
	REFUSED(path.sgid_index, 128, RTR_MASK);
	a.path.is_global = 0;
	REFUSED(alt_port_num, 0, RTR_MASK | SH_QPA_ALT_PATH);
	REFUSED(alt_port_num, 2, RTR_MASK | SH_QPA_ALT_PATH);
	a.alt_port_num = 1;
	REFUSED(alt_pkey_index, 128, RTR_MASK | SH_QPA_ALT_PATH);
	a.max_dest_rd_atomic = 3;
	a.rq_psn = 0x12345678;
	a.dest_qp_num = 0x42;
	assert_int_equal(tqp_modify(&p.a, &a, RTR_MASK), 0);
	assert_int_equal(sh_qp_query(&p.m->daemon, 0, p.a.qpn, &seen), 0);
	assert_int_equal(seen.max_dest_rd_atomic, 4);
	assert_int_equal(seen.rq_psn, 0x345678);
	assert_int_equal(seen.dest_qp_num, 0x42);
	assert_int_equal(seen.path.dlid, a.path.dlid);
	assert_int_equal(seen.path_mtu, 3);
	a.qp_state = SH_QPS_RTS;
#define RTS_MASK                                                                                   \
	(SH_QPA_STATE | SH_QPA_SQ_PSN | SH_QPA_TIMEOUT | SH_QPA_RETRY_CNT | SH_QPA_RNR_RETRY |     \
	 SH_QPA_MAX_QP_RD_ATOMIC)
	REFUSED(max_rd_atomic, 129, RTS_MASK);
	REFUSED(cur_qp_state, SH_QPS_INIT, RTS_MASK | SH_QPA_CUR_STATE);
	REFUSED(cur_qp_state, SH_QPS_SQD, RTS_MASK | SH_QPA_CUR_STATE);
	REFUSED(cur_qp_state, SH_QPS_RTS, SH_QPA_STATE | SH_QPA_CUR_STATE);
	a.cur_qp_state = SH_QPS_RTR;
	assert_int_equal(tqp_modify(&p.a, &a, RTS_MASK | SH_QPA_CUR_STATE), 0);
	assert_int_equal(tqp_to(&p.a, SH_QPS_SQD), 0);
	for (unsigned int i = 0; i < sizeof(depth) / sizeof(depth[0]); i++) {
		a.qp_state = SH_QPS_SQD;
		a.max_rd_atomic = depth[i].given;
		assert_int_equal(tqp_modify(&p.a, &a, SH_QPA_STATE | SH_QPA_MAX_QP_RD_ATOMIC), 0);
		assert_int_equal(sh_qp_query(&p.m->daemon, 0, p.a.qpn, &seen), 0);
		assert_int_equal(seen.max_rd_atomic, depth[i].kept);
	}
	assert_int_equal(tqp_to(&p.a, SH_QPS_INIT), -EINVAL);
	assert_int_equal(tqp_to(&p.a, SH_QPS_RTR), -EINVAL);
	/* RESET clears all attributes. */
	assert_int_equal(tqp_to(&p.a, SH_QPS_RESET), 0);
	assert_int_equal(tqp_to(&p.a, SH_QPS_RESET), 0);
	assert_int_equal(tqp_to(&p.a, SH_QPS_ERR), -EINVAL);
	assert_int_equal(sh_qp_query(&p.m->daemon, 0, p.a.qpn, &seen), 0);
	assert_int_equal(seen.dest_qp_num, 0);
	assert_int_equal(seen.max_recv_wr, 32);
	assert_int_equal(sh_qp_modify(&p.m->daemon, 0, 0x777, &a, 1), -EINVAL);
	tpair_close(&p);
}

/* The mainline face ignores attributes that a half of XRC does not have. */
static void test_xrc_halves(void **state)
{
	struct tpair p;
	struct sh_qp_attr a;

	(void)state;
	tpair_open(&p, &(struct tpair_opts){.type = SH_QPT_XRC_INI, .unconnected = true});
	tqp_up(&p.a, &p.aattr);
	tqp_init(&p.b, &p.battr);
	tqp_rtr(&p.b, &p.battr);
	a = p.battr;
	a.qp_state = SH_QPS_RTS;
	assert_int_equal(tqp_modify(&p.b, &a, SH_QPA_STATE | SH_QPA_SQ_PSN), -EINVAL);
	assert_int_equal(tqp_modify(&p.b, &a,
				    SH_QPA_STATE | SH_QPA_SQ_PSN | SH_QPA_TIMEOUT |
					    SH_QPA_RETRY_CNT | SH_QPA_RNR_RETRY |
					    SH_QPA_MAX_QP_RD_ATOMIC),
			 0);
	tpair_close(&p);
}

static void test_create(void **state)
{
	static const uint32_t nothing[SH_QP_ATOMICS];
	struct tpair p;
	struct sh_qp_init init = {.type = SH_QPT_RC,
				  .log_sq_size = 4,
				  .sq_shift = 6,
				  .sq_present = 1,
				  .log_rq_size = 4,
				  .rq_shift = 4,
				  .rq_present = 1};

	(void)state;
	tpair_open(&p, &(struct tpair_opts){.type = SH_QPT_RC});
	init.ctx = p.a.ctx;
	init.buf = mock_umem(p.m, p.a.ctx, 1024 + 256, true);
	assert_int_equal(sh_qp_create(&p.m->daemon, 0, p.a.qpn, &init), -EEXIST);
	assert_int_equal(sh_qp_create(&p.m->daemon, 0, 0, &init), -EINVAL);
	assert_int_equal(sh_qp_create(&p.m->daemon, 7, 0x99, &init), -EINVAL);
	init.buf.len--;
	assert_int_equal(sh_qp_create(&p.m->daemon, 0, 0x99, &init), -EINVAL);
	init.buf.len++;
	init.sq_shift = 5;
	assert_int_equal(sh_qp_create(&p.m->daemon, 0, 0x99, &init), -EINVAL);
	init.sq_shift = 6;
	assert_int_equal(sh_qp_create(&p.m->daemon, 0, 0x99, &init), 0);
	assert_int_equal(sh_qp_slot(&p.m->dev, 0, 0x99)->rq_off, 1024);
	/* Results of atomics, with which the next QP in this slot must not answer. */
	memset(sh_qp_slot(&p.m->dev, 0, 0x99)->atomic_psn, 7, sizeof(nothing));
	assert_int_equal(sh_qp_destroy(&p.m->daemon, 0, 0x99, NULL), 0);
	assert_int_equal(sh_qp_destroy(&p.m->daemon, 0, 0x99, NULL), -EINVAL);
	/* The queue with the larger stride comes first. */
	init.rq_shift = 7;
	init.log_rq_size = 1;
	assert_int_equal(sh_qp_create(&p.m->daemon, 0, 0x99 + (1u << SH_LOG_QPS), &init), 0);
	assert_null(sh_qp_get(&p.m->dev, 0, 0x99));
	assert_int_equal(sh_qp_slot(&p.m->dev, 0, 0x99)->rq_off, 0);
	assert_memory_equal(sh_qp_slot(&p.m->dev, 0, 0x99)->atomic_psn, nothing, sizeof(nothing));
	assert_int_equal(sh_qp_slot(&p.m->dev, 0, 0x99)->sq_off, 256);
	tpair_close(&p);
}

/* ---- behaviour ---- */

/*
 * Packets before RTR and after ERR are dropped. Receives can be posted from INIT on; sends wait for
 * RTS.
 */
static void test_states(void **state)
{
	struct tpair p;
	struct twr wr;

	(void)state;
	tpair_open(&p, &(struct tpair_opts){.type = SH_QPT_RC, .unconnected = true});
	tqp_up(&p.a, &p.aattr);
	wr = tpair_wr(&p, MLX4_OPCODE_SEND, 8);
	tqp_init(&p.b, &p.battr);
	tpair_recv(&p, 0, 8);
	tpair_recv(&p, 0, 8);
	tqp_send(&p.a, &wr);
	texpect_none(&p.bcq[1]);
	tqp_rtr(&p.b, &p.battr);
	assert_int_equal(tasync(p.m, p.b.ctx, COMM_EST), 0);
	mock_advance(p.m, 1000000000);
	texpect(&p.acq[0], MLX4_OPCODE_SEND, true, 0);
	texpect(&p.bcq[1], MLX4_CQE_RECV_SEND, false, 0);
	assert_int_equal(tasync(p.m, p.b.ctx, COMM_EST), 1);
	tqp_send(&p.a, &wr);
	assert_int_equal(tasync(p.m, p.b.ctx, COMM_EST), 1);
	texpect(&p.acq[0], MLX4_OPCODE_SEND, true, 1);
	texpect(&p.bcq[1], MLX4_CQE_RECV_SEND, false, 1);
	tpair_close(&p);

	/*
	 * A send that was posted in RTR is executed when the QP is in RTS and the doorbell rings.
	 */
	tpair_open(&p, &(struct tpair_opts){.type = SH_QPT_RC, .unconnected = true});
	tqp_up(&p.b, &p.battr);
	tpair_recv(&p, 0, 8);
	tqp_init(&p.a, &p.aattr);
	tqp_rtr(&p.a, &p.aattr);
	wr = tpair_wr(&p, MLX4_OPCODE_SEND, 8);
	tqp_send(&p.a, &wr);
	texpect_none(&p.bcq[1]);
	tqp_rts(&p.a, &p.aattr);
	tqp_ring(&p.a);
	texpect(&p.bcq[1], MLX4_CQE_RECV_SEND, false, 0);
	tpair_close(&p);
}

/* The daemon moves a busy QP to ERR. The owner, another process, goes on flushing. */
static void test_error_by_daemon(void **state)
{
	struct tpair p;
	struct twr wr;

	(void)state;
	tpair_open(&p, &(struct tpair_opts){.type = SH_QPT_RC});
	wr = tpair_wr(&p, MLX4_OPCODE_SEND, 8);
	wr.signaled = false;
	tqp_send(&p.a, &wr); /* waits for a receive */
	tqp_post(&p.a, &wr);
	for (int i = 0; i < 3; i++)
		tqp_recv(&p.a, &(struct tsge){p.amem, 8, p.akey}, 1);
	assert_int_equal(tqp_to(&p.a, SH_QPS_ERR), 0);
	texpect_error(&p.acq[0], MLX4_SYNDROME_WR_FLUSH, true, 0);
	texpect_error(&p.acq[0], MLX4_SYNDROME_WR_FLUSH, true, 1);
	for (int i = 0; i < 3; i++)
		texpect_error(&p.acq[1], MLX4_SYNDROME_WR_FLUSH, false, i);
	assert_int_equal(p.m->shared->wakes[1], 1);
	assert_true(sh_enter(&p.m->dev));
	sh_attention(&p.m->dev);
	sh_leave(&p.m->dev);
	tqp_recv(&p.a, &(struct tsge){p.amem, 8, p.akey}, 1);
	mock_advance(p.m, 60000000);
	texpect_error(&p.acq[1], MLX4_SYNDROME_WR_FLUSH, false, 3);
	assert_int_equal(tqp_to(&p.a, SH_QPS_ERR), 0);
	texpect_none(&p.acq[1]);
	/* The QP's old timer, set when the receiver was not ready, does nothing any more. */
	tpair_recv(&p, 0, 8);
	mock_advance(p.m, 1000000000);
	texpect_none(&p.bcq[1]);
	assert_int_equal(tqp_to(&p.a, SH_QPS_RESET), 0);
	mock_advance(p.m, 1000000000);
	assert_int_equal(p.m->ndefers, 0);
	tpair_close(&p);
}

/* There are more requests for attention than the ring holds. All are served. */
static void test_attention_overflow(void **state)
{
	struct tpair p;
	struct tqp qp[70];
	struct sh_qp_attr attr = tqp_attr(1, 1);

	(void)state;
	tpair_open(&p, &(struct tpair_opts){.type = SH_QPT_RC});
	for (uint32_t i = 0; i < 70; i++) {
		tqp_open(&qp[i], p.m, 0, p.a.ctx, p.a.pdn, SH_QPT_RC, 0x100 + i, &p.acq[0],
			 &p.acq[1], NULL);
		tqp_init(&qp[i], &attr);
		assert_int_equal(tqp_to(&qp[i], SH_QPS_ERR), 0);
	}
	assert_int_equal(sh_proc(&p.m->dev, 1)->ring_lost, 1);
	assert_true(sh_enter(&p.m->dev));
	sh_attention(&p.m->dev);
	sh_leave(&p.m->dev);
	for (uint32_t i = 0; i < 70; i++)
		tqp_recv(&qp[i], &(struct tsge){p.amem, 8, p.akey}, 1);
	mock_advance(p.m, 100000000);
	for (uint32_t i = 0; i < 70; i++)
		texpect_error(&p.acq[1], MLX4_SYNDROME_WR_FLUSH, false, 0);
	texpect_none(&p.acq[1]);
	tpair_close(&p);
}

/*
 * Signal handlers ring more doorbells on top of device code than their thread keeps for later, of
 * QPs and of CQs. The helper thread serves those that did not fit.
 */
static void test_many_doorbells_later(void **state)
{
	enum { KEPT = 64, QPS = 3, CQS = 3 };
	struct tqp qp[QPS];
	struct tcq cq[CQS];
	struct sh_qp_attr attr;
	struct tpair p;

	(void)state;
	tpair_open(&p, &(struct tpair_opts){.type = SH_QPT_RC});
	attr = tqp_attr(tlid(p.m, 1), p.b.qpn);
	for (uint32_t i = 0; i < QPS; i++) {
		struct twr wr = tpair_wr(&p, MLX4_OPCODE_RDMA_WRITE, 8);

		tqp_open(&qp[i], p.m, 0, p.a.ctx, p.a.pdn, SH_QPT_RC, 0x100 + 64 * i, &p.acq[0],
			 &p.acq[1], NULL);
		tqp_up(&qp[i], &attr);
		/* It fails, without a packet: the key is no key. */
		wr.sge[0].key++;
		tqp_post(&qp[i], &wr);
	}
	for (uint32_t i = 0; i < CQS; i++) {
		tcq_open(&cq[i], p.m, 0, p.a.ctx, 0x200 + 64 * i, 4);
		*(uint32_t *)((char *)mock_ptr(&cq[i].db) + 4) = htobe32(1u << 28 | 2u << 24);
	}
	assert_true(sh_enter(&p.m->dev));
	/* These name no QP. */
	for (uint32_t i = 0; i < KEPT; i++)
		sh_ring_later(&p.m->dev, p.a.ctx, 0x1000 + i);
	for (uint32_t i = 0; i < QPS; i++)
		sh_ring_later(&p.m->dev, qp[i].ctx, qp[i].qpn);
	for (uint32_t i = 0; i < CQS; i++)
		sh_arm_later(&p.m->dev, cq[i].ctx, cq[i].cqn, 1u << 28 | 2u << 24 | cq[i].cqn, 0);
	sh_leave(&p.m->dev);
	assert_true(p.m->shared->wakes[1] > 0);
	assert_true(sh_enter(&p.m->dev));
	sh_attention(&p.m->dev);
	sh_leave(&p.m->dev);
	for (uint32_t i = 0; i < QPS; i++)
		texpect_error(&p.acq[0], MLX4_SYNDROME_LOC_PROT, true, 0);
	texpect_none(&p.acq[0]);
	for (uint32_t i = 0; i < CQS; i++)
		assert_int_equal(sh_cq_get(&p.m->dev, 0, cq[i].cqn)->armed, SH_ARM_ANY);
	tpair_close(&p);
}

/* The receives of a QP on an SRQ stay with the SRQ. LAST_WQE is raised once. */
static void test_last_wqe(void **state)
{
	struct tpair p;

	(void)state;
	tpair_open(&p, &(struct tpair_opts){.type = SH_QPT_RC, .srq = true});
	tpair_recv(&p, 0, 8);
	assert_int_equal(tqp_to(&p.b, SH_QPS_ERR), 0);
	assert_int_equal(tqp_to(&p.b, SH_QPS_ERR), 0);
	assert_int_equal(tasync(p.m, p.b.ctx, LAST_WQE), 1);
	texpect_none(&p.bcq[1]);
	assert_int_equal(sh_srq_available(&p.m->dev, sh_srq_get(&p.m->dev, p.b.hca, 0x60)), 1);
	tpair_close(&p);
}

/*
 * The first half of a SEND has arrived when the QP is destroyed, reset or moved to ERR. The SRQ's
 * WQE completes with an error.
 */
static void test_half_a_message(void **state)
{
	(void)state;
	for (int how = 0; how < 3; how++) {
		struct tpair p;
		struct twr wr;

		tpair_open(&p, &(struct tpair_opts){.type = SH_QPT_RC, .srq = true});
		tpair_recv(&p, 0, 5000);
		p.m->inst->faults.active = 1;
		wr = tpair_wr(&p, MLX4_OPCODE_SEND, 5000);
		/* Packets travel singly, and the sender's memory ends after two of them. */
		mock_unmap(p.m, p.a.ctx, p.amem);
		mock_map(p.m, p.a.ctx, p.amem, 2 * TMTU);
		tqp_send(&p.a, &wr);
		texpect_error(&p.acq[0], MLX4_SYNDROME_LOC_PROT, true, 0);
		texpect_none(&p.bcq[1]);
		assert_int_equal(tqp_ctx(&p.b)->cur_wqe, 1);
		if (how == 0)
			assert_int_equal(sh_qp_destroy(&p.m->daemon, p.b.hca, p.b.qpn, NULL), 0);
		else
			assert_int_equal(tqp_to(&p.b, how == 1 ? SH_QPS_RESET : SH_QPS_ERR), 0);
		texpect_error(&p.bcq[1], MLX4_SYNDROME_WR_FLUSH, false, 0);
		texpect_none(&p.bcq[1]);
		assert_int_equal(tasync(p.m, p.b.ctx, LAST_WQE), how == 2);
		tpair_close(&p);
	}
}

/*
 * After RESET the counters and the PSNs begin again, and the device reads the queue from its start.
 */
static void test_again(void **state)
{
	struct tpair p;
	struct twr wr;

	(void)state;
	tpair_open(&p, &(struct tpair_opts){.type = SH_QPT_RC});
	for (int round = 0; round < 3; round++) {
		wr = tpair_wr(&p, MLX4_OPCODE_SEND, 8);
		for (uint16_t i = 0; i < 5; i++) {
			tpair_recv(&p, 0, 8);
			tqp_send(&p.a, &wr);
			texpect(&p.acq[0], MLX4_OPCODE_SEND, true, i);
			texpect(&p.bcq[1], MLX4_CQE_RECV_SEND, false, i);
		}
		assert_int_equal(tqp_to(&p.a, SH_QPS_RESET), 0);
		assert_int_equal(tqp_to(&p.b, SH_QPS_RESET), 0);
		p.a.head = 0;
		p.b.rq_head = 0;
		memset(mock_ptr(&p.b.db), 0, 4);
		for (uint32_t i = 0; i < 1u << p.a.log_sq; i++)
			((uint8_t *)mock_ptr(&p.a.buf))[i << p.a.sq_shift] = 0x80;
		tqp_up(&p.a, &p.aattr);
		tqp_up(&p.b, &p.battr);
	}
	tpair_close(&p);
}

/*
 * A doorbell with a QP number that does not exist, or with that of another context, does nothing.
 */
static void test_foreign_doorbell(void **state)
{
	struct tpair p;
	struct twr wr;

	(void)state;
	tpair_open(&p, &(struct tpair_opts){.type = SH_QPT_RC, .same_hca = true});
	tpair_recv(&p, 0, 8);
	wr = tpair_wr(&p, MLX4_OPCODE_SEND, 8);
	tqp_post(&p.a, &wr);
	assert_true(sh_enter(&p.m->dev));
	sh_ring(&p.m->dev, p.b.ctx, p.a.qpn);
	sh_ring(&p.m->dev, p.a.ctx, p.a.qpn + (1u << SH_LOG_QPS));
	sh_ring(&p.m->dev, p.a.ctx, 0xffffff);
	sh_ring(&p.m->dev, 0, p.a.qpn);
	sh_ring(&p.m->dev, 99999, p.a.qpn);
	sh_leave(&p.m->dev);
	texpect_none(&p.acq[0]);
	tqp_ring(&p.a);
	texpect(&p.acq[0], MLX4_OPCODE_SEND, true, 0);
	tpair_close(&p);
}

static void test_events_of_the_dead(void **state)
{
	struct tpair p;
	uint32_t events = 99;

	(void)state;
	tpair_open(&p, &(struct tpair_opts){.type = SH_QPT_RC, .srq = true});
	assert_int_equal(tqp_to(&p.b, SH_QPS_ERR), 0);
	assert_int_equal(sh_qp_destroy(&p.m->daemon, p.b.hca, p.b.qpn, &events), 0);
	assert_int_equal(events, 1);
	tpair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_xrc_halves),
		cmocka_unit_test(test_create),
		cmocka_unit_test(test_states),
		cmocka_unit_test(test_error_by_daemon),
		cmocka_unit_test(test_attention_overflow),
		cmocka_unit_test(test_many_doorbells_later),
		cmocka_unit_test(test_last_wqe),
		cmocka_unit_test(test_half_a_message),
		cmocka_unit_test(test_again),
		cmocka_unit_test(test_foreign_doorbell),
		cmocka_unit_test(test_events_of_the_dead),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
