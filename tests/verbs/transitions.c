// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: the whole table of QP transitions by ibv_modify_qp, for RC, UC, UD and XRC: from
 * every state to every state with what is required, without each piece of it, with each optional
 * attribute and with each that is neither; values out of range. What is refused leaves the QP
 * exactly as it was.
 */
#include <fcntl.h>

#include "xrc_test.h"

#define BIT(name)  IBV_QP_##name
#define ATTRIBUTES 21
#define STATES	   (IBV_QPS_ERR + 1)

enum class { UD, UC, RC, CLASSES };

/* In addition: any state to RESET, and any but RESET to ERR, with the state alone. */
static const struct rule {
	enum ibv_qp_state from, to;
	int required[CLASSES], optional[CLASSES];
} rules[] = {
	{IBV_QPS_RESET,
	 IBV_QPS_INIT,
	 {BIT(PKEY_INDEX) | BIT(PORT) | BIT(QKEY), BIT(PKEY_INDEX) | BIT(PORT) | BIT(ACCESS_FLAGS),
	  BIT(PKEY_INDEX) | BIT(PORT) | BIT(ACCESS_FLAGS)},
	 {0}},
	{IBV_QPS_INIT,
	 IBV_QPS_INIT,
	 {0},
	 {BIT(PKEY_INDEX) | BIT(PORT) | BIT(QKEY), BIT(PKEY_INDEX) | BIT(PORT) | BIT(ACCESS_FLAGS),
	  BIT(PKEY_INDEX) | BIT(PORT) | BIT(ACCESS_FLAGS)}},
	{IBV_QPS_INIT,
	 IBV_QPS_RTR,
	 {0, BIT(AV) | BIT(PATH_MTU) | BIT(DEST_QPN) | BIT(RQ_PSN),
	  BIT(AV) | BIT(PATH_MTU) | BIT(DEST_QPN) | BIT(RQ_PSN) | BIT(MAX_DEST_RD_ATOMIC) |
		  BIT(MIN_RNR_TIMER)},
	 {BIT(PKEY_INDEX) | BIT(QKEY), BIT(ALT_PATH) | BIT(ACCESS_FLAGS) | BIT(PKEY_INDEX),
	  BIT(ALT_PATH) | BIT(ACCESS_FLAGS) | BIT(PKEY_INDEX)}},
	{IBV_QPS_RTR,
	 IBV_QPS_RTS,
	 {BIT(SQ_PSN), BIT(SQ_PSN),
	  BIT(SQ_PSN) | BIT(TIMEOUT) | BIT(RETRY_CNT) | BIT(RNR_RETRY) | BIT(MAX_QP_RD_ATOMIC)},
	 {BIT(CUR_STATE) | BIT(QKEY),
	  BIT(CUR_STATE) | BIT(ALT_PATH) | BIT(ACCESS_FLAGS) | BIT(PATH_MIG_STATE),
	  BIT(CUR_STATE) | BIT(ALT_PATH) | BIT(ACCESS_FLAGS) | BIT(PATH_MIG_STATE) |
		  BIT(MIN_RNR_TIMER)}},
	{IBV_QPS_RTS,
	 IBV_QPS_RTS,
	 {0},
	 {BIT(CUR_STATE) | BIT(QKEY),
	  BIT(CUR_STATE) | BIT(ALT_PATH) | BIT(ACCESS_FLAGS) | BIT(PATH_MIG_STATE),
	  BIT(CUR_STATE) | BIT(ALT_PATH) | BIT(ACCESS_FLAGS) | BIT(PATH_MIG_STATE) |
		  BIT(MIN_RNR_TIMER)}},
	{IBV_QPS_RTS,
	 IBV_QPS_SQD,
	 {0},
	 {BIT(EN_SQD_ASYNC_NOTIFY), BIT(EN_SQD_ASYNC_NOTIFY), BIT(EN_SQD_ASYNC_NOTIFY)}},
	{IBV_QPS_SQD,
	 IBV_QPS_RTS,
	 {0},
	 {BIT(CUR_STATE) | BIT(QKEY),
	  BIT(CUR_STATE) | BIT(ALT_PATH) | BIT(ACCESS_FLAGS) | BIT(PATH_MIG_STATE),
	  BIT(CUR_STATE) | BIT(ALT_PATH) | BIT(ACCESS_FLAGS) | BIT(PATH_MIG_STATE) |
		  BIT(MIN_RNR_TIMER)}},
	{IBV_QPS_SQD,
	 IBV_QPS_SQD,
	 {0},
	 {BIT(PKEY_INDEX) | BIT(QKEY),
	  BIT(AV) | BIT(ALT_PATH) | BIT(ACCESS_FLAGS) | BIT(PKEY_INDEX) | BIT(PATH_MIG_STATE),
	  BIT(AV) | BIT(ALT_PATH) | BIT(ACCESS_FLAGS) | BIT(PKEY_INDEX) | BIT(PATH_MIG_STATE) |
		  BIT(PORT) | BIT(TIMEOUT) | BIT(RETRY_CNT) | BIT(RNR_RETRY) |
		  BIT(MAX_QP_RD_ATOMIC) | BIT(MAX_DEST_RD_ATOMIC) | BIT(MIN_RNR_TIMER)}},
	{IBV_QPS_SQE,
	 IBV_QPS_RTS,
	 {0},
	 {BIT(CUR_STATE) | BIT(QKEY), BIT(CUR_STATE) | BIT(ACCESS_FLAGS), 0}},
	{IBV_QPS_ERR, IBV_QPS_ERR, {0}, {0}},
};

static struct side s;
static struct ibv_xrc_domain *domain;
static struct ibv_ah *ah;
static struct ibv_qp *qp;
static enum class class;
static int unseen; /* attributes that this kernel never gets: mainline's half of XRC */

static struct ibv_qp_attr good_values(void)
{
	return (struct ibv_qp_attr){
		.path_mtu = IBV_MTU_512,
		.path_mig_state = IBV_MIG_MIGRATED,
		.qkey = 0x77,
		.rq_psn = 0x111,
		.sq_psn = 0x222,
		.dest_qp_num = 0x4321,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
		.ah_attr = {.dlid = s.lid, .port_num = 1, .sl = 2},
		.alt_ah_attr = {.dlid = s.lid, .port_num = 1},
		.pkey_index = 5,
		.alt_pkey_index = 6,
		.max_rd_atomic = 2,
		.max_dest_rd_atomic = 2,
		.min_rnr_timer = 7,
		.port_num = 1,
		.timeout = 11,
		.retry_cnt = 4,
		.rnr_retry = 5,
		.alt_port_num = 1,
		.alt_timeout = 12,
	};
}

static const struct rule *rule_of(enum ibv_qp_state from, enum ibv_qp_state to)
{
	static const struct rule bare;

	if (to == IBV_QPS_RESET || (to == IBV_QPS_ERR && from != IBV_QPS_RESET))
		return &bare;
	if (from == IBV_QPS_SQE && class == RC)
		return NULL;
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		if (rules[i].from == from && rules[i].to == to)
			return &rules[i];
	return NULL;
}

static int modify(enum ibv_qp_state cur, enum ibv_qp_state to, int mask)
{
	struct ibv_qp_attr attr = good_values();

	attr.cur_qp_state = cur;
	attr.qp_state = to;
	return ibv_modify_qp(qp, &attr, mask);
}

static void step(enum ibv_qp_state from, enum ibv_qp_state to)
{
	CHECK_EQ(modify(from, to, IBV_QP_STATE | rule_of(from, to)->required[class]), 0);
}

static void send_wrong(void)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)s.buf, .length = 8, .lkey = s.mr->lkey ^ 0x01000000};
	struct ibv_send_wr wr = {.wr_id = 5,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .wr.ud = {.ah = ah, .remote_qpn = 1}},
			   *bad;

	CHECK_EQ(ibv_post_send(qp, &wr, &bad), 0);
	expect_wc(s.scq, 5, IBV_WC_LOC_PROT_ERR);
}

/* Moves the QP to the state where a trial begins, by the shortest way. */
static void bring_to(enum ibv_qp_state state)
{
	CHECK_EQ(to_state(qp, IBV_QPS_RESET), 0);
	if (state == IBV_QPS_RESET)
		return;
	step(IBV_QPS_RESET, IBV_QPS_INIT);
	if (state == IBV_QPS_ERR)
		step(IBV_QPS_INIT, IBV_QPS_ERR);
	if (state == IBV_QPS_INIT || state == IBV_QPS_ERR)
		return;
	step(IBV_QPS_INIT, IBV_QPS_RTR);
	if (state == IBV_QPS_RTR)
		return;
	step(IBV_QPS_RTR, IBV_QPS_RTS);
	if (state == IBV_QPS_SQD)
		step(IBV_QPS_RTS, IBV_QPS_SQD);
	if (state != IBV_QPS_SQE)
		return;
	send_wrong();
	CHECK_EQ(real_state(qp), IBV_QPS_SQE);
}

static struct ibv_qp_attr everything(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	memset(&attr, 0, sizeof(attr));
	CHECK_EQ(ibv_query_qp(qp, &attr, ~0, &init), 0);
	return attr;
}

static void trial(enum ibv_qp_state from, enum ibv_qp_state to, int mask, bool allowed)
{
	struct ibv_qp_attr before, after;
	int ret;

	bring_to(from);
	before = everything();
	CHECK_EQ(before.qp_state, from);
	ret = modify(from, to, mask);
	if (ret != (allowed ? 0 : EINVAL))
		fprintf(stderr, "type %d, from %d to %d, mask %#x: errno %d\n", qp->qp_type, from,
			to, mask, ret);
	CHECK_EQ(ret, allowed ? 0 : EINVAL);
	after = everything();
	if (allowed) {
		CHECK_EQ(after.qp_state, to);
		CHECK_EQ(qp->state, to);
	} else {
		CHECK_EQ(memcmp(&before, &after, sizeof(before)), 0);
	}
}

static bool running(enum ibv_qp_state state)
{
	return state >= IBV_QPS_RTR && state <= IBV_QPS_SQE;
}

static void trials(enum ibv_qp_state from, enum ibv_qp_state to)
{
	const struct rule *rule = rule_of(from, to);
	int required, optional;

	if (!rule) {
		/* This transition is refused, whatever the attributes. */
		trial(from, to, IBV_QP_STATE, false);
		for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
			if (rules[i].to == to)
				trial(from, to, IBV_QP_STATE | rules[i].required[class], false);
		return;
	}
	required = rule->required[class];
	optional = rule->optional[class];
	trial(from, to, IBV_QP_STATE | required, true);
	trial(from, to, IBV_QP_STATE | required | optional, true);
	if (from == to)
		trial(from, to, optional & ~IBV_QP_CUR_STATE, true);
	for (int i = 0; i < ATTRIBUTES; i++) {
		int bit = 1 << i;

		if (bit == IBV_QP_STATE)
			continue;
		if (bit & required)
			trial(from, to, (IBV_QP_STATE | required) & ~bit, false);
		else
			trial(from, to, IBV_QP_STATE | required | bit, bit & optional);
	}
	/* cur_qp_state must be the actual state. */
	for (int cur = 0; cur < STATES; cur++) {
		struct ibv_qp_attr attr = good_values();

		if (cur == (int)from && running(from))
			continue;
		bring_to(from);
		attr.qp_state = to;
		attr.cur_qp_state = cur;
		CHECK_EQ(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE | required),
			 EINVAL);
		CHECK_EQ(real_state(qp), from);
	}
}

/* Values that no port or HCA has, in a transition that is valid otherwise. */
static void out_of_range(enum ibv_qp_state from, enum ibv_qp_state to, int bit, const char *what,
			 struct ibv_qp_attr attr)
{
	const struct rule *rule = rule_of(from, to);
	struct ibv_qp_attr before, after;
	int ret;

	if (!((rule->required[class] | rule->optional[class]) & bit) || unseen & bit)
		return;
	bring_to(from);
	before = everything();
	attr.qp_state = to;
	ret = ibv_modify_qp(qp, &attr, IBV_QP_STATE | rule->required[class] | bit);
	if (ret != EINVAL)
		fprintf(stderr, "type %d, %s: errno %d\n", qp->qp_type, what, ret);
	CHECK_EQ(ret, EINVAL);
	after = everything();
	CHECK_EQ(memcmp(&before, &after, sizeof(before)), 0);
}

static void ranges(void)
{
#define WRONG(from, to, bit, change)                                                               \
	do {                                                                                       \
		struct ibv_qp_attr attr = good_values();                                           \
		change;                                                                            \
		out_of_range(IBV_QPS_##from, IBV_QPS_##to, IBV_QP_##bit, #change, attr);           \
	} while (0)
	WRONG(RESET, INIT, PORT, attr.port_num = 0);
	WRONG(RESET, INIT, PORT, attr.port_num = 3);
	WRONG(RESET, INIT, PKEY_INDEX, attr.pkey_index = 128);
	WRONG(INIT, INIT, PORT, attr.port_num = 3);
	WRONG(INIT, INIT, PKEY_INDEX, attr.pkey_index = 0xffff);
	WRONG(INIT, RTR, PKEY_INDEX, attr.pkey_index = 128);
	WRONG(INIT, RTR, PATH_MTU, attr.path_mtu = 0);
	WRONG(INIT, RTR, PATH_MTU, attr.path_mtu = 6);
	WRONG(INIT, RTR, MAX_DEST_RD_ATOMIC, attr.max_dest_rd_atomic = 17);
	WRONG(INIT, RTR, AV, (attr.ah_attr.is_global = 1, attr.ah_attr.grh.sgid_index = 128));
	WRONG(INIT, RTR, ALT_PATH, attr.alt_port_num = 0);
	WRONG(INIT, RTR, ALT_PATH, attr.alt_port_num = 3);
	WRONG(INIT, RTR, ALT_PATH, attr.alt_pkey_index = 128);
	WRONG(RTR, RTS, MAX_QP_RD_ATOMIC, attr.max_rd_atomic = 129);
	WRONG(SQD, SQD, MAX_QP_RD_ATOMIC, attr.max_rd_atomic = 255);
	WRONG(SQD, SQD, PORT, attr.port_num = 0);
#undef WRONG
}

static void table(enum ibv_qp_type type)
{
	static const struct ibv_qp_cap cap = {
		.max_send_wr = 2, .max_recv_wr = 2, .max_send_sge = 1, .max_recv_sge = 1};

	qp = make_qp(&s, type, NULL, type == IBV_QPT_XRC ? domain : NULL, &cap);
	class = type == IBV_QPT_UD ? UD : type == IBV_QPT_UC ? UC : RC;
	unseen = type == IBV_QPT_XRC && !(qp->qp_num & 1 << 23)
			 ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER
			 : 0;
	for (int from = 0; from < STATES; from++) {
		if (from == IBV_QPS_SQE && class == RC)
			continue;
		for (int to = 0; to < STATES; to++)
			trials(from, to);
	}
	ranges();
	CHECK_EQ(ibv_destroy_qp(qp), 0);
}

int main(void)
{
	struct ibv_ah_attr attr = {.port_num = 1};

	test_begin();
	side_open(&s, 4096, 16, 0);
	attr.dlid = s.lid;
	ah = ibv_create_ah(s.pd, &attr);
	CHECK(ah);
	domain = ibv_open_xrc_domain(s.context, -1, O_CREAT);
	CHECK(domain);
	table(IBV_QPT_RC);
	table(IBV_QPT_UC);
	table(IBV_QPT_UD);
	table(IBV_QPT_XRC);
	CHECK(!event_pending(s.context));
	CHECK_EQ(ibv_destroy_ah(ah), 0);
	CHECK_EQ(ibv_close_xrc_domain(domain), 0);
	side_close(&s);
	return 0;
}
