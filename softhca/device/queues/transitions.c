// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The table of QP state transitions with required and optional attributes. Pure: no state, no
 * locks.
 */
#include "softhca/device/memory/qp_attr.h"
#include "transitions.h"

#define S(name) SH_QPS_##name
#define A(name) SH_QPA_##name

enum class { UD, UC, RC, CLASSES };

#define UD_ID  (A(PKEY_INDEX) | A(PORT) | A(QKEY))
#define C_ID   (A(PKEY_INDEX) | A(PORT) | A(ACCESS_FLAGS))
#define C_RTR  (A(AV) | A(PATH_MTU) | A(DEST_QPN) | A(RQ_PSN))
#define C_RTRO (A(ALT_PATH) | A(ACCESS_FLAGS) | A(PKEY_INDEX))
#define C_RUN  (A(CUR_STATE) | A(ALT_PATH) | A(ACCESS_FLAGS) | A(PATH_MIG_STATE))
#define C_SQD  (A(AV) | A(ALT_PATH) | A(ACCESS_FLAGS) | A(PKEY_INDEX) | A(PATH_MIG_STATE))
#define R_RTS  (A(TIMEOUT) | A(RETRY_CNT) | A(RNR_RETRY) | A(MAX_QP_RD_ATOMIC))

struct transition {
	uint8_t from, to;
	uint8_t classes; /* bits of enum class */
	uint32_t required[CLASSES], optional[CLASSES];
};

#define ALL (1 << UD | 1 << UC | 1 << RC)

static const struct transition table[] = {
	{S(RESET), S(INIT), ALL, {UD_ID, C_ID, C_ID}, {0, 0, 0}},
	{S(INIT), S(INIT), ALL, {0, 0, 0}, {UD_ID, C_ID, C_ID}},
	{S(INIT),
	 S(RTR),
	 ALL,
	 {0, C_RTR, C_RTR | A(MAX_DEST_RD_ATOMIC) | A(MIN_RNR_TIMER)},
	 {A(PKEY_INDEX) | A(QKEY), C_RTRO, C_RTRO}},
	{S(RTR),
	 S(RTS),
	 ALL,
	 {A(SQ_PSN), A(SQ_PSN), A(SQ_PSN) | R_RTS},
	 {A(CUR_STATE) | A(QKEY), C_RUN, C_RUN | A(MIN_RNR_TIMER)}},
	{S(RTS), S(RTS), ALL, {0, 0, 0}, {A(CUR_STATE) | A(QKEY), C_RUN, C_RUN | A(MIN_RNR_TIMER)}},
	{S(RTS),
	 S(SQD),
	 ALL,
	 {0, 0, 0},
	 {A(EN_SQD_ASYNC_NOTIFY), A(EN_SQD_ASYNC_NOTIFY), A(EN_SQD_ASYNC_NOTIFY)}},
	{S(SQD), S(RTS), ALL, {0, 0, 0}, {A(CUR_STATE) | A(QKEY), C_RUN, C_RUN | A(MIN_RNR_TIMER)}},
	{S(SQD),
	 S(SQD),
	 ALL,
	 {0, 0, 0},
	 {A(PKEY_INDEX) | A(QKEY), C_SQD,
	  C_SQD | A(PORT) | R_RTS | A(MAX_DEST_RD_ATOMIC) | A(MIN_RNR_TIMER)}},
	{S(SQE),
	 S(RTS),
	 1 << UD | 1 << UC,
	 {0, 0, 0},
	 {A(CUR_STATE) | A(QKEY), A(CUR_STATE) | A(ACCESS_FLAGS), 0}},
	{S(ERR), S(ERR), ALL, {0, 0, 0}, {0, 0, 0}},
};

uint32_t sh_qp_foreign_attrs(uint32_t type)
{
	switch (type) {
	case SH_QPT_XRC_INI:
		return A(MAX_DEST_RD_ATOMIC) | A(MIN_RNR_TIMER);
	case SH_QPT_XRC_TGT:
		return A(RETRY_CNT) | A(RNR_RETRY) | A(MAX_QP_RD_ATOMIC);
	default:
		return 0;
	}
}

static enum class class_of(uint32_t type) {
	return type == SH_QPT_UD   ? UD
	       : type == SH_QPT_UC ? UC
				   : RC;
}

static bool fits(uint32_t required, uint32_t optional, uint32_t mask)
{
	return (mask & required) == required && !(mask & ~(required | optional | A(STATE)));
}

bool sh_qp_transition_ok(uint32_t type, uint32_t from, uint32_t to, uint32_t mask)
{
	uint32_t foreign = sh_qp_foreign_attrs(type);
	enum class c = class_of(type);

	if (from > S(ERR) || to > S(ERR))
		return false;
	if (to == S(RESET) || (to == S(ERR) && from != S(RESET)))
		return fits(0, 0, mask);
	for (unsigned int i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		const struct transition *t = &table[i];

		if (t->from == from && t->to == to)
			return t->classes & 1 << c &&
			       fits(t->required[c] & ~foreign, t->optional[c] & ~foreign, mask);
	}
	return false;
}
