/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The state machine of QPs: which attributes a transition needs and which it takes. */
#ifndef SOFTHCA_DEVICE_QUEUES_TRANSITIONS_H
#define SOFTHCA_DEVICE_QUEUES_TRANSITIONS_H

#include <stdbool.h>
#include <stdint.h>

enum sh_qp_attr_mask { /* as IBV_QP_* */
		       SH_QPA_STATE = 1 << 0,
		       SH_QPA_CUR_STATE = 1 << 1,
		       SH_QPA_EN_SQD_ASYNC_NOTIFY = 1 << 2,
		       SH_QPA_ACCESS_FLAGS = 1 << 3,
		       SH_QPA_PKEY_INDEX = 1 << 4,
		       SH_QPA_PORT = 1 << 5,
		       SH_QPA_QKEY = 1 << 6,
		       SH_QPA_AV = 1 << 7,
		       SH_QPA_PATH_MTU = 1 << 8,
		       SH_QPA_TIMEOUT = 1 << 9,
		       SH_QPA_RETRY_CNT = 1 << 10,
		       SH_QPA_RNR_RETRY = 1 << 11,
		       SH_QPA_RQ_PSN = 1 << 12,
		       SH_QPA_MAX_QP_RD_ATOMIC = 1 << 13,
		       SH_QPA_ALT_PATH = 1 << 14,
		       SH_QPA_MIN_RNR_TIMER = 1 << 15,
		       SH_QPA_SQ_PSN = 1 << 16,
		       SH_QPA_MAX_DEST_RD_ATOMIC = 1 << 17,
		       SH_QPA_PATH_MIG_STATE = 1 << 18,
		       SH_QPA_CAP = 1 << 19,
		       SH_QPA_DEST_QPN = 1 << 20,
};

/*
 * Attributes that a type does not have, and that are dropped from a caller's mask (mainline's
 * halves of XRC).
 */
uint32_t sh_qp_foreign_attrs(uint32_t type);
/* May a QP of this type go from one state to another with this mask? */
bool sh_qp_transition_ok(uint32_t type, uint32_t from, uint32_t to, uint32_t mask);

#endif
