// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Attributes of QPs, from what both ends of a connection have agreed on. The daemon moves no QP
 * itself.
 */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "attr.h"
#include "id.h"
#include "path.h"
#include "rdmacm.h"

#define M_STATE		0x1u
#define M_ACCESS	0x8u
#define M_PKEY_INDEX	0x10u
#define M_PORT		0x20u
#define M_QKEY		0x40u
#define M_AV		0x80u
#define M_PATH_MTU	0x100u
#define M_TIMEOUT	0x200u
#define M_RETRY_CNT	0x400u
#define M_RNR_RETRY	0x800u
#define M_RQ_PSN	0x1000u
#define M_MAX_RD_ATOMIC 0x2000u
#define M_MIN_RNR_TIMER 0x8000u
#define M_SQ_PSN	0x10000u
#define M_MAX_DEST	0x20000u
#define M_DEST_QPN	0x100000u

#define REMOTE_WRITE  2u
#define REMOTE_READ   4u
#define REMOTE_ATOMIC 8u

enum { INIT = 1, RTR, RTS, ERR = 6 };

/* Of the partition that an AF_IB address names; others are in the one that the first key is of. */
static int pkey_unconnected(const struct cm_id *id)
{
	uint16_t pkey = id->src.family == CM_AF_IB ? be16toh(id->src.ib.pkey) : 0;

	return pkey & 0x7fff ? cm_path_pkey_index(id->cm->dev, id->hca, id->port, pkey) : 0;
}

static int attr_unconnected(const struct cm_id *id, uint32_t state, struct cm_qp_attr *a)
{
	int pkey = pkey_unconnected(id);

	if (pkey < 0)
		return pkey;
	a->pkey_index = (uint16_t)pkey;
	a->mask = M_STATE | M_PKEY_INDEX | M_PORT;
	a->port = (uint8_t)id->port;
	if (cm_id_is_ud(id)) {
		a->mask |= M_QKEY;
		a->qkey = cm_id_qkey(id);
	} else {
		a->mask |= M_ACCESS;
	}
	if (state == RTR)
		a->rq_psn = id->psn;
	return 0;
}

static int attr_init(const struct cm_id *id, struct cm_qp_attr *a)
{
	int pkey = cm_path_pkey_index(id->cm->dev, id->hca, id->port, id->path.pkey);

	a->mask = M_STATE | M_ACCESS | M_PKEY_INDEX | M_PORT;
	a->pkey_index = (uint16_t)(pkey < 0 ? 0 : pkey);
	a->access_flags = REMOTE_WRITE;
	if (id->responder_resources)
		a->access_flags |= REMOTE_READ | REMOTE_ATOMIC;
	a->port = (uint8_t)id->port;
	return 0;
}

static bool answered(const struct cm_id *id)
{
	return id->x >= CM_X_REQ_RECEIVED && id->x <= CM_X_ESTABLISHED;
}

static int attr_rtr(const struct cm_id *id, struct cm_qp_attr *a)
{
	if (!answered(id))
		return -EINVAL;
	a->mask = M_STATE | M_AV | M_PATH_MTU | M_DEST_QPN | M_RQ_PSN;
	cm_path_av(id, &a->ah);
	a->path_mtu = id->path.mtu;
	a->dest_qp_num = id->peer_qpn;
	a->rq_psn = id->psn;
	if (id->qp_type == CM_QPT_RC || id->qp_type == CM_QPT_XRC_TGT) {
		a->mask |= M_MAX_DEST | M_MIN_RNR_TIMER;
		a->max_dest_rd_atomic = id->responder_resources;
	}
	return 0;
}

static int attr_rts(const struct cm_id *id, struct cm_qp_attr *a)
{
	if (!answered(id))
		return -EINVAL;
	a->mask = M_STATE | M_SQ_PSN;
	a->sq_psn = id->peer_psn;
	if (id->qp_type == CM_QPT_RC || id->qp_type == CM_QPT_XRC_INI)
		a->mask |= M_RETRY_CNT | M_RNR_RETRY | M_MAX_RD_ATOMIC | M_TIMEOUT;
	if (id->qp_type == CM_QPT_XRC_TGT)
		a->mask |= M_TIMEOUT;
	a->retry_cnt = id->retry;
	a->rnr_retry = id->rnr;
	a->max_rd_atomic = id->initiator_depth;
	a->timeout = cm_path_timeout(id);
	return 0;
}

int cm_attr(const struct cm_id *id, uint32_t state, struct cm_qp_attr *a)
{
	memset(a, 0, sizeof(*a));
	if (state > ERR)
		return -EINVAL;
	a->qp_state = state;
	if (!id->device)
		return -EINVAL;
	if (id->x == CM_X_NONE || cm_id_is_ud(id))
		return attr_unconnected(id, state, a);
	switch (state) {
	case INIT:
		return attr_init(id, a);
	case RTR:
		return attr_rtr(id, a);
	case RTS:
		return attr_rts(id, a);
	}
	return -EINVAL;
}
