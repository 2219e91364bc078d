// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* See mad.h. */
#include <string.h>

#include "address.h"
#include "mad.h"

#define ATTRIBUTE 16
#define MODIFIER  20
#define FROM	  24
#define TO	  28
#define TIMED_OUT 4 /* reason of a REJ */
#define TRIES	  15
#define HOPS	  64
#define NO_LID	  0xffff /* as ports of RoCE have it */
#define ACK_DELAY 15
#define XRC	  3 /* of "service", with 1 of "extended service" */
#define REQ_DATA  164
#define REP_DATA  60
#define REJ_INFO  36
#define REJ_DATA  108
#define SREQ_DATA 40
#define SREP_DATA 120

static const uint16_t attribute[] = {
	[CM_M_REQ] = 0x10,  [CM_M_MRA] = 0x11,	    [CM_M_REJ] = 0x12,
	[CM_M_REP] = 0x13,  [CM_M_RTU] = 0x14,	    [CM_M_DREQ] = 0x15,
	[CM_M_DREP] = 0x16, [CM_M_SIDR_REQ] = 0x17, [CM_M_SIDR_REP] = 0x18,
};

static void put(uint8_t *at, unsigned int bytes, uint64_t v)
{
	while (bytes--) {
		at[bytes] = (uint8_t)v;
		v >>= 8;
	}
}

static uint64_t get(const uint8_t *at, unsigned int bytes)
{
	uint64_t v = 0;

	while (bytes--)
		v = v << 8 | *at++;
	return v;
}

/* ---- the requester ---- */

static uint64_t service(uint16_t ps, const union cm_sockaddr *a)
{
	return (uint64_t)ps << 16 | cm_addr_port(a);
}

/* Room for an address of IPv6. */
static void put_address(uint8_t *at, const union cm_sockaddr *a)
{
	if (a->family == AF_INET)
		memcpy(at + 12, &a->in.sin_addr, 4);
	else
		memcpy(at, &a->in6.sin6_addr, 16);
}

void cm_mad_put_header(uint8_t at[CM_IP_HEADER], const struct cm_message *m)
{
	memset(at, 0, CM_IP_HEADER);
	at[1] = m->src.family == AF_INET ? 4 << 4 : 6 << 4;
	put(at + 2, 2, cm_addr_port(&m->src));
	put_address(at + 4, &m->src);
	put_address(at + 20, &m->dst);
}

/* Programs with addresses of AF_IB write all of the data themselves. */
static void put_data(uint8_t *at, const struct cm_message *m, size_t room)
{
	if (m->src.family == CM_AF_IB) {
		memcpy(at, m->param.data, room);
		return;
	}
	cm_mad_put_header(at, m);
	memcpy(at + CM_IP_HEADER, m->param.data, room - CM_IP_HEADER);
}

static void take_address(const uint8_t *at, uint16_t family, uint16_t port, union cm_sockaddr *a)
{
	memset(a, 0, sizeof(*a));
	a->family = family;
	if (family == AF_INET)
		memcpy(&a->in.sin_addr, at + 12, 4);
	else
		memcpy(&a->in6.sin6_addr, at, 16);
	cm_addr_set_port(a, 0, port);
}

static void take_gid(const uint8_t gid[16], uint64_t sid, union cm_sockaddr *a)
{
	memset(a, 0, sizeof(*a));
	a->family = CM_AF_IB;
	memcpy(a->ib.gid, gid, 16);
	cm_addr_set_port(a, (uint16_t)(sid >> 16), (uint16_t)sid);
}

static void take_whole(const uint8_t *at, struct cm_message *m, uint64_t sid, size_t room)
{
	take_gid(m->sgid, 0, &m->src);
	take_gid(m->dgid, sid, &m->dst);
	memcpy(m->param.data, at, room);
}

bool cm_mad_take_header(const uint8_t at[CM_IP_HEADER], uint16_t port, struct cm_message *m)
{
	uint8_t version = at[1] >> 4;
	uint16_t family = version == 4 ? AF_INET : AF_INET6;

	if (at[0] || (version != 4 && version != 6))
		return false;
	take_address(at + 4, family, (uint16_t)get(at + 2, 2), &m->src);
	take_address(at + 20, family, port, &m->dst);
	return true;
}

static void take_data(const uint8_t *at, struct cm_message *m, uint64_t sid, size_t room)
{
	/* Of another kind of service there is no listener. */
	m->ps = sid >> 32 ? 0 : (uint16_t)(sid >> 16);
	if (!cm_mad_take_header(at, (uint16_t)sid, m)) {
		take_whole(at, m, sid, room);
		return;
	}
	memcpy(m->param.data, at + CM_IP_HEADER, room - CM_IP_HEADER);
}

/* ---- writing ---- */

static void put_ece(uint8_t *mad, const struct cm_message *m)
{
	put(mad + MODIFIER, 4, m->ece.attr_mod);
}

static void write_req(const struct cm_message *m, const struct cm_mad_sender *s, uint8_t *mad)
{
	const struct cm_conn_param *p = &m->param;
	bool xrc = m->qp_type == CM_QPT_XRC_INI;
	uint8_t kind = xrc ? XRC : m->qp_type == CM_QPT_UC;

	put_ece(mad, m);
	put(mad + 29, 3, m->ece.vendor_id);
	put(mad + 32, 8, service(m->ps, &m->dst));
	put(mad + 40, 8, s->guid);
	put(mad + 56, 3, p->qp_num);
	mad[63] = p->initiator_depth;
	mad[67] = (uint8_t)(s->timeout << 3 | kind << 1 | (p->flow_control & 1));
	put(mad + 68, 3, m->psn);
	mad[71] = (uint8_t)(s->timeout << 3);
	put(mad + 72, 2, m->pkey);
	mad[74] = (uint8_t)(m->mtu << 4);
	mad[75] = (uint8_t)(TRIES << 4 | xrc);
	if (!xrc) {
		mad[59] = p->responder_resources;
		mad[71] |= p->retry_count & 7;
		mad[74] |= p->rnr_retry_count & 7;
		mad[75] |= (uint8_t)((p->srq & 1) << 3);
	}
	put(mad + 76, 2, NO_LID);
	put(mad + 78, 2, NO_LID);
	memcpy(mad + 80, m->sgid, 16);
	memcpy(mad + 96, m->dgid, 16);
	mad[115] = m->rate & 0x3f;
	mad[116] = m->tos;
	mad[117] = HOPS;
	mad[119] = (uint8_t)(m->ack_timeout << 3);
	put_data(mad + REQ_DATA, m, CM_REQ_DATA);
}

static void write_rep(const struct cm_message *m, const struct cm_mad_sender *s, uint8_t *mad)
{
	const struct cm_conn_param *p = &m->param;
	bool xrc = m->qp_type == CM_QPT_XRC_TGT;

	put_ece(mad, m);
	mad[39] = (uint8_t)(m->ece.vendor_id >> 16);
	mad[43] = (uint8_t)(m->ece.vendor_id >> 8);
	mad[47] = (uint8_t)m->ece.vendor_id;
	put(mad + (xrc ? 40 : 36), 3, p->qp_num);
	put(mad + 44, 3, m->psn);
	mad[48] = p->responder_resources;
	mad[50] = ACK_DELAY << 3;
	mad[51] = (uint8_t)((p->rnr_retry_count & 7) << 5 | (xrc || p->srq) << 4);
	if (!xrc) {
		mad[49] = p->initiator_depth;
		mad[50] |= p->flow_control & 1;
	}
	put(mad + 52, 8, s->guid);
	memcpy(mad + REP_DATA, p->data, CM_REP_DATA);
}

static void write_rej(const struct cm_message *m, const struct cm_mad_sender *s, uint8_t *mad)
{
	mad[32] = (uint8_t)(m->about << 6);
	put(mad + 34, 2, (uint32_t)m->status);
	/* The receiver may not have answered yet: it finds the connection by its peer's GUID. */
	if (m->status == TIMED_OUT) {
		mad[33] = 8 << 1;
		put(mad + REJ_INFO, 8, s->guid);
	}
	memcpy(mad + REJ_DATA, m->param.data, CM_REJ_DATA);
}

static void write_sidr_req(const struct cm_message *m, uint8_t *mad)
{
	put_ece(mad, m);
	put(mad + 28, 2, m->pkey);
	put(mad + 32, 8, service(m->ps, &m->dst));
	put_data(mad + SREQ_DATA, m, CM_SIDR_REQ_DATA);
}

static void write_sidr_rep(const struct cm_message *m, uint8_t *mad)
{
	put_ece(mad, m);
	put(mad + FROM, 4, m->to);
	mad[28] = (uint8_t)m->status;
	mad[31] = (uint8_t)(m->ece.vendor_id >> 8);
	put(mad + 32, 3, m->param.qp_num);
	mad[35] = (uint8_t)m->ece.vendor_id;
	put(mad + 36, 8, service(m->ps, &m->src));
	put(mad + 44, 4, m->param.qkey);
	memcpy(mad + SREP_DATA, m->param.data, CM_SIDR_REP_DATA);
}

void cm_mad_write(const struct cm_message *m, const struct cm_mad_sender *s, uint8_t mad[CM_MAD])
{
	static const uint8_t head[] = {1, 7, 2, 3};

	memset(mad, 0, CM_MAD);
	memcpy(mad, head, sizeof(head));
	put(mad + 8, 4, 1);
	put(mad + 12, 4, m->from);
	put(mad + ATTRIBUTE, 2, attribute[m->kind]);
	put(mad + FROM, 4, m->from);
	switch (m->kind) {
	case CM_M_REQ:
		write_req(m, s, mad);
		return;
	case CM_M_SIDR_REQ:
		write_sidr_req(m, mad);
		return;
	case CM_M_SIDR_REP:
		write_sidr_rep(m, mad);
		return;
	case CM_M_REP:
		write_rep(m, s, mad);
		break;
	case CM_M_REJ:
		write_rej(m, s, mad);
		break;
	case CM_M_MRA:
		mad[32] = (uint8_t)(m->about << 6);
		mad[33] = (uint8_t)(m->patience << 3);
		break;
	case CM_M_DREQ:
		put(mad + 32, 3, m->peer_qpn);
		break;
	case CM_M_RTU:
	case CM_M_DREP:
		break;
	}
	put(mad + TO, 4, m->to);
}

/* ---- reading ---- */

static bool read_req(const uint8_t *mad, struct cm_message *m)
{
	struct cm_conn_param *p = &m->param;
	uint8_t kind = mad[67] >> 1 & 3;

	m->to = 0;
	m->ece.vendor_id = (uint32_t)get(mad + 29, 3);
	p->qp_num = (uint32_t)get(mad + 56, 3);
	p->responder_resources = mad[59];
	p->initiator_depth = mad[63];
	p->flow_control = mad[67] & 1;
	m->psn = (uint32_t)get(mad + 68, 3);
	p->retry_count = mad[71] & 7;
	m->pkey = (uint16_t)get(mad + 72, 2);
	m->mtu = mad[74] >> 4;
	p->rnr_retry_count = mad[74] & 7;
	p->srq = mad[75] >> 3 & 1;
	memcpy(m->sgid, mad + 80, 16);
	memcpy(m->dgid, mad + 96, 16);
	m->rate = mad[115] & 0x3f;
	m->tos = mad[116];
	m->ack_timeout = mad[119] >> 3;
	m->qp_type = kind == XRC ? CM_QPT_XRC_INI : kind ? CM_QPT_UC : CM_QPT_RC;
	take_data(mad + REQ_DATA, m, get(mad + 32, 8), CM_REQ_DATA);
	/* There are no reliable datagrams, and an MTU of 256 is the least. */
	return kind != 2 && (kind != XRC || (mad[75] & 7) == 1) && m->mtu >= 1 && m->mtu <= 5;
}

static void read_rep(const uint8_t *mad, struct cm_message *m)
{
	struct cm_conn_param *p = &m->param;

	m->ece.vendor_id = (uint32_t)mad[39] << 16 | (uint32_t)mad[43] << 8 | mad[47];
	/* One of the two is there. */
	p->qp_num = (uint32_t)(get(mad + 36, 3) | get(mad + 40, 3));
	m->psn = (uint32_t)get(mad + 44, 3);
	p->responder_resources = mad[48];
	p->initiator_depth = mad[49];
	p->flow_control = mad[50] & 1;
	p->rnr_retry_count = mad[51] >> 5;
	p->srq = mad[51] >> 4 & 1;
	memcpy(p->data, mad + REP_DATA, CM_REP_DATA);
}

static void read_sidr_req(const uint8_t *mad, struct cm_message *m)
{
	m->to = 0;
	m->qp_type = CM_QPT_UD;
	m->pkey = (uint16_t)get(mad + 28, 2);
	take_data(mad + SREQ_DATA, m, get(mad + 32, 8), CM_SIDR_REQ_DATA);
}

static void read_sidr_rep(const uint8_t *mad, struct cm_message *m)
{
	m->from = 0;
	m->to = get(mad + FROM, 4);
	m->status = mad[28];
	m->ece.vendor_id = (uint32_t)mad[31] << 8 | mad[35];
	m->param.qp_num = (uint32_t)get(mad + 32, 3);
	m->param.qkey = (uint32_t)get(mad + 44, 4);
	memcpy(m->param.data, mad + SREP_DATA, CM_SIDR_REP_DATA);
}

/* -1: none of these. */
static int kind_of(const uint8_t *mad)
{
	for (unsigned int i = 0; i < sizeof(attribute) / sizeof(attribute[0]); i++)
		if (get(mad + ATTRIBUTE, 2) == attribute[i])
			return (int)i;
	return -1;
}

void cm_mad_whole(const uint8_t mad[CM_MAD], struct cm_message *m)
{
	uint64_t sid = get(mad + 32, 8);

	if (m->kind == CM_M_REQ)
		take_whole(mad + REQ_DATA, m, sid, CM_REQ_DATA);
	else
		take_whole(mad + SREQ_DATA, m, sid, CM_SIDR_REQ_DATA);
}

bool cm_mad_read(const uint8_t mad[CM_MAD], struct cm_message *m)
{
	int kind = kind_of(mad);

	memset(m, 0, sizeof(*m));
	if (mad[0] != 1 || mad[1] != 7 || mad[2] != 2 || mad[3] != 3 || kind < 0)
		return false;
	m->kind = (enum cm_kind)kind;
	m->from = get(mad + FROM, 4);
	m->to = get(mad + TO, 4);
	m->ece.attr_mod = (uint32_t)get(mad + MODIFIER, 4);
	switch (m->kind) {
	case CM_M_REQ:
		return read_req(mad, m);
	case CM_M_REP:
		read_rep(mad, m);
		break;
	case CM_M_REJ:
		m->about = mad[32] >> 6;
		m->status = (int)get(mad + 34, 2);
		memcpy(m->param.data, mad + REJ_DATA, CM_REJ_DATA);
		break;
	case CM_M_MRA:
		m->about = mad[32] >> 6;
		m->patience = mad[33] >> 3;
		break;
	case CM_M_DREQ:
		m->peer_qpn = (uint32_t)get(mad + 32, 3);
		break;
	case CM_M_SIDR_REQ:
		read_sidr_req(mad, m);
		break;
	case CM_M_SIDR_REP:
		read_sidr_rep(mad, m);
		break;
	case CM_M_RTU:
	case CM_M_DREP:
		break;
	}
	return true;
}
