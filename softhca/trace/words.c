// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* See words.h. */
#include <endian.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>

#include "words.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define SHOWN	     16 /* of a list's requests, or of a request's pieces of memory */

struct word {
	unsigned int value;
	const char *name;
};
#define WORD(name)                                                                                 \
	{                                                                                          \
		name, #name                                                                        \
	}

static void say_word(struct call *c, const struct word *words, size_t n, unsigned int value)
{
	for (size_t i = 0; i < n; i++)
		if (words[i].value == value) {
			call_say(c, "%s", words[i].name);
			return;
		}
	call_say(c, "%u", value);
}

static void say_mask(struct call *c, const struct word *words, size_t n, unsigned int mask)
{
	const char *between = "";

	if (!mask)
		call_say(c, "0");
	for (size_t i = 0; i < n; i++)
		if (mask & words[i].value) {
			call_say(c, "%s%s", between, words[i].name);
			mask &= ~words[i].value;
			between = "|";
		}
	if (mask)
		call_say(c, "%s%#x", between, mask);
}

/* ---- objects ---- */

void say_context(struct call *c, const struct ibv_context *context)
{
	if (c->on && context && context->device)
		call_say(c, "%.64s", context->device->name);
	else
		call_say(c, "%s", context ? "context" : "NULL");
}

void say_pd(struct call *c, const struct ibv_pd *pd)
{
	if (pd)
		call_say(c, "pd %u", pd->handle);
	else
		call_say(c, "NULL");
}

void say_mr(struct call *c, const struct ibv_mr *mr)
{
	if (mr)
		call_say(c, "mr %#x", mr->lkey);
	else
		call_say(c, "NULL");
}

void say_cq(struct call *c, const struct ibv_cq *cq)
{
	if (cq)
		call_say(c, "cq %u", cq->handle);
	else
		call_say(c, "NULL");
}

void say_srq(struct call *c, const struct ibv_srq *srq)
{
	if (srq)
		call_say(c, "srq %u", srq->handle);
	else
		call_say(c, "NULL");
}

void say_qp(struct call *c, const struct ibv_qp *qp)
{
	if (qp)
		call_say(c, "qp 0x%06x", qp->qp_num);
	else
		call_say(c, "NULL");
}

void say_xrcd(struct call *c, const struct ibv_xrc_domain *d)
{
	if (d)
		call_say(c, "xrcd %u", d->handle);
	else
		call_say(c, "NULL");
}

/* ---- enums and masks ---- */

void say_access(struct call *c, int access)
{
	static const struct word words[] = {
		WORD(IBV_ACCESS_LOCAL_WRITE),
		WORD(IBV_ACCESS_REMOTE_WRITE),
		WORD(IBV_ACCESS_REMOTE_READ),
		WORD(IBV_ACCESS_REMOTE_ATOMIC),
		WORD(IBV_ACCESS_MW_BIND),
		/* rdma-core's */
		{1 << 5, "IBV_ACCESS_ZERO_BASED"},
		{1 << 6, "IBV_ACCESS_ON_DEMAND"},
		{1 << 20, "IBV_ACCESS_RELAXED_ORDERING"},
	};

	say_mask(c, words, COUNT(words), (unsigned int)access);
}

void say_qp_type(struct call *c, unsigned int type)
{
	static const struct word words[] = {
		WORD(IBV_QPT_RC),
		WORD(IBV_QPT_UC),
		WORD(IBV_QPT_UD),
		WORD(IBV_QPT_XRC),
		/* rdma-core's */
		{9, "IBV_QPT_XRC_SEND"},
		{10, "IBV_QPT_XRC_RECV"},
	};

	say_word(c, words, COUNT(words), type);
}

void say_qp_state(struct call *c, unsigned int state)
{
	static const struct word words[] = {
		WORD(IBV_QPS_RESET), WORD(IBV_QPS_INIT), WORD(IBV_QPS_RTR), WORD(IBV_QPS_RTS),
		WORD(IBV_QPS_SQD),   WORD(IBV_QPS_SQE),	 WORD(IBV_QPS_ERR),
	};

	say_word(c, words, COUNT(words), state);
}

void say_qp_mask(struct call *c, int mask)
{
	static const struct word words[] = {
		WORD(IBV_QP_STATE),
		WORD(IBV_QP_CUR_STATE),
		WORD(IBV_QP_EN_SQD_ASYNC_NOTIFY),
		WORD(IBV_QP_ACCESS_FLAGS),
		WORD(IBV_QP_PKEY_INDEX),
		WORD(IBV_QP_PORT),
		WORD(IBV_QP_QKEY),
		WORD(IBV_QP_AV),
		WORD(IBV_QP_PATH_MTU),
		WORD(IBV_QP_TIMEOUT),
		WORD(IBV_QP_RETRY_CNT),
		WORD(IBV_QP_RNR_RETRY),
		WORD(IBV_QP_RQ_PSN),
		WORD(IBV_QP_MAX_QP_RD_ATOMIC),
		WORD(IBV_QP_ALT_PATH),
		WORD(IBV_QP_MIN_RNR_TIMER),
		WORD(IBV_QP_SQ_PSN),
		WORD(IBV_QP_MAX_DEST_RD_ATOMIC),
		WORD(IBV_QP_PATH_MIG_STATE),
		WORD(IBV_QP_CAP),
		WORD(IBV_QP_DEST_QPN),
	};

	say_mask(c, words, COUNT(words), (unsigned int)mask);
}

static void say_wr_opcode(struct call *c, unsigned int opcode)
{
	static const struct word words[] = {
		WORD(IBV_WR_RDMA_WRITE),
		WORD(IBV_WR_RDMA_WRITE_WITH_IMM),
		WORD(IBV_WR_SEND),
		WORD(IBV_WR_SEND_WITH_IMM),
		WORD(IBV_WR_RDMA_READ),
		WORD(IBV_WR_ATOMIC_CMP_AND_SWP),
		WORD(IBV_WR_ATOMIC_FETCH_AND_ADD),
	};

	say_word(c, words, COUNT(words), opcode);
}

static void say_send_flags(struct call *c, int flags)
{
	static const struct word words[] = {
		WORD(IBV_SEND_FENCE),
		WORD(IBV_SEND_SIGNALED),
		WORD(IBV_SEND_SOLICITED),
		WORD(IBV_SEND_INLINE),
	};

	say_mask(c, words, COUNT(words), (unsigned int)flags);
}

void say_oflags(struct call *c, int oflags)
{
	static const struct word words[] = {WORD(O_CREAT), WORD(O_EXCL)};

	say_mask(c, words, COUNT(words), (unsigned int)oflags);
}

void say_event(struct call *c, const struct ibv_async_event *event)
{
	static const struct word words[] = {
		WORD(IBV_EVENT_CQ_ERR),
		WORD(IBV_EVENT_QP_FATAL),
		WORD(IBV_EVENT_QP_REQ_ERR),
		WORD(IBV_EVENT_QP_ACCESS_ERR),
		WORD(IBV_EVENT_COMM_EST),
		WORD(IBV_EVENT_SQ_DRAINED),
		WORD(IBV_EVENT_PATH_MIG),
		WORD(IBV_EVENT_PATH_MIG_ERR),
		WORD(IBV_EVENT_DEVICE_FATAL),
		WORD(IBV_EVENT_PORT_ACTIVE),
		WORD(IBV_EVENT_PORT_ERR),
		WORD(IBV_EVENT_LID_CHANGE),
		WORD(IBV_EVENT_PKEY_CHANGE),
		WORD(IBV_EVENT_SM_CHANGE),
		WORD(IBV_EVENT_SRQ_ERR),
		WORD(IBV_EVENT_SRQ_LIMIT_REACHED),
		WORD(IBV_EVENT_QP_LAST_WQE_REACHED),
		WORD(IBV_EVENT_CLIENT_REREGISTER),
		WORD(IBV_EVENT_GID_CHANGE),
	};

	if (!c->on || !event)
		return;
	/* OFED's, of an XRC receive QP, which has a number only. */
	say_word(c, words, COUNT(words), (unsigned int)event->event_type & 0x7fffffff);
	if ((unsigned int)event->event_type & 0x80000000)
		call_say(c, ", xrc qp 0x%06x", event->element.xrc_qp_num);
}

/* ---- structures ---- */

void say_qp_cap(struct call *c, const struct ibv_qp_cap *cap)
{
	if (c->on)
		call_say(c, "{send_wr %u, recv_wr %u, send_sge %u, recv_sge %u, inline %u}",
			 cap->max_send_wr, cap->max_recv_wr, cap->max_send_sge, cap->max_recv_sge,
			 cap->max_inline_data);
}

void say_qp_init(struct call *c, const struct ibv_qp_init_attr *attr)
{
	if (!c->on)
		return;
	if (!attr) {
		call_say(c, "NULL");
		return;
	}
	call_say(c, "{");
	say_qp_type(c, attr->qp_type);
	call_say(c, ", send_cq ");
	say_cq(c, attr->send_cq);
	call_say(c, ", recv_cq ");
	say_cq(c, attr->recv_cq);
	if (attr->srq) {
		call_say(c, ", ");
		say_srq(c, attr->srq);
	}
	call_say(c, ", cap ");
	say_qp_cap(c, &attr->cap);
	call_say(c, ", sq_sig_all %d}", attr->sq_sig_all);
}

void say_gid(struct call *c, const union ibv_gid *gid)
{
	const uint8_t *b;

	if (!c->on || !gid)
		return;
	b = gid->raw;
	for (int i = 0; i < 16; i += 2)
		call_say(c, "%s%x", i ? ":" : "", (unsigned int)(b[i] << 8 | b[i + 1]));
}

void say_ah_attr(struct call *c, const struct ibv_ah_attr *attr)
{
	if (!c->on)
		return;
	if (!attr) {
		call_say(c, "NULL");
		return;
	}
	call_say(c, "{dlid %u, sl %u, port %u", attr->dlid, attr->sl, attr->port_num);
	if (attr->is_global) {
		call_say(c, ", dgid ");
		say_gid(c, &attr->grh.dgid);
		call_say(c, ", sgid_index %u, hop_limit %u", attr->grh.sgid_index,
			 attr->grh.hop_limit);
	}
	call_say(c, "}");
}

void say_srq_attr(struct call *c, const struct ibv_srq_attr *attr)
{
	if (c->on && attr)
		call_say(c, "{max_wr %u, max_sge %u, srq_limit %u}", attr->max_wr, attr->max_sge,
			 attr->srq_limit);
}

/* Members that are numbers: of one byte, two or four. */
struct member {
	unsigned int mask;
	const char *name;
	size_t at, size;
};
#define MEMBER(mask, name)                                                                         \
	{                                                                                          \
		mask, #name, offsetof(struct ibv_qp_attr, name),                                   \
			sizeof(((struct ibv_qp_attr *)0)->name)                                    \
	}

static unsigned int number_at(const struct ibv_qp_attr *attr, const struct member *m)
{
	const unsigned char *at = (const unsigned char *)attr + m->at;

	if (m->size == 1)
		return *at;
	return m->size == 2 ? *(const uint16_t *)at : *(const uint32_t *)at;
}

void say_qp_attr(struct call *c, const struct ibv_qp_attr *attr, int mask)
{
	static const struct member members[] = {
		MEMBER(IBV_QP_PKEY_INDEX, pkey_index),
		MEMBER(IBV_QP_PORT, port_num),
		MEMBER(IBV_QP_QKEY, qkey),
		MEMBER(IBV_QP_DEST_QPN, dest_qp_num),
		MEMBER(IBV_QP_RQ_PSN, rq_psn),
		MEMBER(IBV_QP_SQ_PSN, sq_psn),
		MEMBER(IBV_QP_TIMEOUT, timeout),
		MEMBER(IBV_QP_RETRY_CNT, retry_cnt),
		MEMBER(IBV_QP_RNR_RETRY, rnr_retry),
		MEMBER(IBV_QP_MAX_QP_RD_ATOMIC, max_rd_atomic),
		MEMBER(IBV_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic),
		MEMBER(IBV_QP_MIN_RNR_TIMER, min_rnr_timer),
		MEMBER(IBV_QP_PATH_MIG_STATE, path_mig_state),
	};
	const char *between = "";

	if (!c->on || !attr)
		return;
	call_say(c, "{");
	if (mask & IBV_QP_STATE) {
		say_qp_state(c, attr->qp_state);
		between = ", ";
	}
	if (mask & IBV_QP_ACCESS_FLAGS) {
		call_say(c, "%s", between);
		say_access(c, attr->qp_access_flags);
		between = ", ";
	}
	if (mask & IBV_QP_PATH_MTU) {
		call_say(c, "%smtu %u", between, 128u << attr->path_mtu % 8);
		between = ", ";
	}
	if (mask & IBV_QP_AV) {
		call_say(c, "%s", between);
		say_ah_attr(c, &attr->ah_attr);
		between = ", ";
	}
	for (size_t i = 0; i < COUNT(members); i++)
		if ((unsigned int)mask & members[i].mask) {
			call_say(c, members[i].mask == IBV_QP_DEST_QPN ? "%s%s 0x%06x" : "%s%s %u",
				 between, members[i].name, number_at(attr, &members[i]));
			between = ", ";
		}
	call_say(c, "}");
}

/* ---- requests ---- */

static void say_pieces(struct call *c, const struct ibv_sge *sge, int n)
{
	call_say(c, ", [");
	for (int i = 0; sge && i < n && i < SHOWN; i++)
		call_say(c, "%s{%#" PRIx64 ", %u, %#x}", i ? ", " : "", sge[i].addr, sge[i].length,
			 sge[i].lkey);
	call_say(c, n > SHOWN ? ", ...]" : "]");
}

/* Behind the SHOWN first ones of a list. True: leave this one out. */
static bool leave_out(struct call *c, int i)
{
	if (i == SHOWN)
		call_say(c, ", ...");
	return i >= SHOWN;
}

static void say_send_one(struct call *c, const struct ibv_qp *qp, const struct ibv_send_wr *wr)
{
	call_say(c, "{wr_id %#" PRIx64 ", ", wr->wr_id);
	say_wr_opcode(c, wr->opcode);
	call_say(c, ", ");
	say_send_flags(c, wr->send_flags);
	say_pieces(c, wr->sg_list, wr->num_sge);
	if (qp->qp_type == IBV_QPT_UD)
		call_say(c, ", to qp 0x%06x", wr->wr.ud.remote_qpn);
	else if (wr->opcode == IBV_WR_RDMA_WRITE || wr->opcode == IBV_WR_RDMA_READ ||
		 wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
		call_say(c, ", remote {%#" PRIx64 ", %#x}", wr->wr.rdma.remote_addr,
			 wr->wr.rdma.rkey);
	else if (wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
		 wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		call_say(c, ", remote {%#" PRIx64 ", %#x}", wr->wr.atomic.remote_addr,
			 wr->wr.atomic.rkey);
	if (wr->opcode == IBV_WR_SEND_WITH_IMM || wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
		call_say(c, ", imm %#x", be32toh(wr->imm_data));
	if (qp->qp_type == IBV_QPT_XRC || (unsigned int)qp->qp_type == 9)
		call_say(c, ", to srq 0x%06x", wr->xrc_remote_srq_num);
	call_say(c, "}");
}

void say_send(struct call *c, const struct ibv_qp *qp, const struct ibv_send_wr *wr)
{
	if (!c->on)
		return;
	say_qp(c, qp);
	for (int i = 0; wr && i < TRACE_WORKS; wr = wr->next, i++) {
		call_work(c,
			  wr->send_flags & IBV_SEND_SIGNALED ? TRACE_POST_SEND
							     : TRACE_POST_UNSIGNALED,
			  qp->context, qp->qp_num, wr->wr_id);
		if (leave_out(c, i))
			continue;
		call_say(c, ", ");
		say_send_one(c, qp, wr);
	}
}

void say_recv(struct call *c, const void *context, enum trace_work_kind kind, uint32_t qpn,
	      const struct ibv_recv_wr *wr)
{
	for (int i = 0; c->on && wr && i < TRACE_WORKS; wr = wr->next, i++) {
		call_work(c, kind, context, qpn, wr->wr_id);
		if (leave_out(c, i))
			continue;
		call_say(c, ", {wr_id %#" PRIx64, wr->wr_id);
		say_pieces(c, wr->sg_list, wr->num_sge);
		call_say(c, "}");
	}
}

/* ---- completions ---- */

static void say_completion(struct call *c, const struct ibv_wc *wc)
{
	static const struct word status[] = {
		WORD(IBV_WC_SUCCESS),		WORD(IBV_WC_LOC_LEN_ERR),
		WORD(IBV_WC_LOC_QP_OP_ERR),	WORD(IBV_WC_LOC_EEC_OP_ERR),
		WORD(IBV_WC_LOC_PROT_ERR),	WORD(IBV_WC_WR_FLUSH_ERR),
		WORD(IBV_WC_MW_BIND_ERR),	WORD(IBV_WC_BAD_RESP_ERR),
		WORD(IBV_WC_LOC_ACCESS_ERR),	WORD(IBV_WC_REM_INV_REQ_ERR),
		WORD(IBV_WC_REM_ACCESS_ERR),	WORD(IBV_WC_REM_OP_ERR),
		WORD(IBV_WC_RETRY_EXC_ERR),	WORD(IBV_WC_RNR_RETRY_EXC_ERR),
		WORD(IBV_WC_LOC_RDD_VIOL_ERR),	WORD(IBV_WC_REM_INV_RD_REQ_ERR),
		WORD(IBV_WC_REM_ABORT_ERR),	WORD(IBV_WC_INV_EECN_ERR),
		WORD(IBV_WC_INV_EEC_STATE_ERR), WORD(IBV_WC_FATAL_ERR),
		WORD(IBV_WC_RESP_TIMEOUT_ERR),	WORD(IBV_WC_GENERAL_ERR),
	};
	static const struct word opcode[] = {
		WORD(IBV_WC_SEND),	WORD(IBV_WC_RDMA_WRITE),	 WORD(IBV_WC_RDMA_READ),
		WORD(IBV_WC_COMP_SWAP), WORD(IBV_WC_FETCH_ADD),		 WORD(IBV_WC_BIND_MW),
		WORD(IBV_WC_RECV),	WORD(IBV_WC_RECV_RDMA_WITH_IMM),
	};

	call_say(c, "{wr_id %#" PRIx64 ", qp 0x%06x, ", wc->wr_id, wc->qp_num);
	say_word(c, status, COUNT(status), wc->status);
	if (wc->status == IBV_WC_SUCCESS) {
		call_say(c, ", ");
		say_word(c, opcode, COUNT(opcode), wc->opcode);
		if (wc->opcode & IBV_WC_RECV)
			call_say(c, ", byte_len %u", wc->byte_len);
		if (wc->opcode & IBV_WC_RECV && wc->wc_flags & IBV_WC_WITH_IMM)
			call_say(c, ", imm %#x", be32toh(wc->imm_data));
	} else {
		call_say(c, ", vendor_err %#x", wc->vendor_err);
	}
	call_say(c, "}");
}

/* The opcode of a completion in error is not valid. */
static enum trace_work_kind kind_of(const struct ibv_wc *wc)
{
	if (wc->status != IBV_WC_SUCCESS)
		return TRACE_DONE_EITHER;
	return wc->opcode & IBV_WC_RECV ? TRACE_DONE_RECV : TRACE_DONE_SEND;
}

void say_completions(struct call *c, const void *context, const struct ibv_wc *wc, int n)
{
	for (int i = 0; c->on && i < n; i++) {
		call_work(c, kind_of(&wc[i]), context, wc[i].qp_num, wc[i].wr_id);
		if (leave_out(c, i))
			continue;
		call_say(c, i ? ", " : " [");
		say_completion(c, &wc[i]);
	}
	if (c->on && n > 0)
		call_say(c, "]");
}
