// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* See roce.h. */
#include <errno.h>
#include <string.h>

#include "opcode.h"
#include "roce.h"

#define DF	       0x4000
#define TTL	       64
#define TTL_GROUP      1 /* routers do not pass it on */
#define UDP	       17
#define IDENTIFICATION 4 /* its place in the header of IPv4 */

void sh_roce_set_way(struct sh_frame *f, const struct sh_roce_way *way)
{
	uint8_t to[16];

	sh_ip_put(way->to, to);
	f->link = SH_LINK_IP;
	f->udp.sport = way->sport;
	if (sh_ip_is4(way->from)) {
		f->version = 4;
		f->ipv4.id = way->id;
		f->ipv4.ttl = sh_gid_is_group(to) ? TTL_GROUP : TTL;
		f->ipv4.flags = DF;
		sh_put32(f->ipv4.src, (uint32_t)way->from.lo);
		sh_put32(f->ipv4.dst, (uint32_t)way->to.lo);
		return;
	}
	f->version = 6;
	f->global.hop_limit = sh_gid_is_group(to) ? TTL_GROUP : TTL;
	sh_ip_put(way->from, f->global.src);
	sh_ip_put(way->to, f->global.dst);
}

static void set_fields(struct sh_frame *f, const struct sh_packet *p)
{
	bool request = sh_pkt_is_request(p->op);

	f->bth.se = request && p->flags & SH_PKT_SE;
	/* As cards do when their path is the usual one. */
	f->bth.mig = true;
	f->bth.pkey = p->pkey;
	f->bth.qpn = p->dqpn & 0xffffff;
	f->bth.ack = request && p->flags & SH_PKT_ACKREQ && p->service != SH_SVC_UC &&
		     p->service != SH_SVC_UD;
	f->bth.psn = p->psn & 0xffffff;
	f->ext.srqn = p->srqn & 0xffffff;
	f->ext.qkey = p->qkey;
	f->ext.srcqp = p->srcqp & 0xffffff;
	f->ext.va = p->va;
	f->ext.rkey = f->ext.inv_rkey = p->rkey;
	f->ext.dmalen = p->dmalen;
	f->ext.swap_add = p->swap_add;
	f->ext.compare = p->compare;
	f->ext.syndrome = p->syndrome;
	f->ext.msn = p->msn & 0xffffff;
	f->ext.original = p->swap_add;
	memcpy(f->ext.imm, &p->imm_be, sizeof(f->ext.imm));
}

long sh_roce_encode(const struct sh_packet *p, const unsigned char *payload,
		    const struct sh_roce_way *way, unsigned char bytes[SH_ROCE_BYTES])
{
	int operation = sh_bth_operation(p->op, p->flags);
	struct sh_frame f;

	if (operation < 0 || p->service > SH_SVC_XRC)
		return -EINVAL;
	memset(&f, 0, sizeof(f));
	sh_roce_set_way(&f, way);
	f.bth.opcode = (uint8_t)(sh_bth_service(p->service) | operation);
	set_fields(&f, p);
	f.payload = payload;
	f.len = p->payload.len;
	return sh_frame_encode(&f, bytes, SH_ROCE_BYTES);
}

void sh_roce_renumber(unsigned char *bytes, size_t n, uint16_t id)
{
	size_t covered = n - SH_ICRC_BYTES;

	if (bytes[0] >> 4 != 4)
		return;
	sh_put16(bytes + IDENTIFICATION, id);
	sh_put_icrc(bytes + covered, sh_frame_icrc(SH_LINK_IP, bytes, covered));
}

size_t sh_roce_before(const struct sh_packet *p, struct sh_ip to)
{
	int operation = sh_bth_operation(p->op, p->flags), ext;

	if (operation < 0 || p->service > SH_SVC_XRC)
		return 0;
	ext = sh_opcode_ext((uint8_t)(sh_bth_service(p->service) | operation));
	return ext < 0 ? 0 : sh_roce_head(to) + SH_BTH_BYTES + sh_ext_len(ext);
}

void sh_roce_spoil(unsigned char *bytes, long n, uint32_t payload)
{
	bytes[n - SH_ICRC_BYTES - (payload ? 1 + (-payload & 3) : 0)] ^= 1;
}

/* ---- reading ---- */

static bool take_service(struct sh_packet *p, uint8_t opcode)
{
	for (unsigned int i = SH_SVC_RC; i <= SH_SVC_XRC; i++)
		if (sh_bth_service(i) == (opcode & SH_BTH_SERVICE)) {
			p->service = (uint8_t)i;
			return true;
		}
	return false;
}

static void take_message(struct sh_packet *p, uint8_t op, unsigned int place, bool imm)
{
	/* first, middle, last, last with immediate data, only, only with immediate data */
	static const uint8_t flags[] = {SH_PKT_FIRST,
					0,
					SH_PKT_LAST,
					SH_PKT_LAST,
					SH_PKT_FIRST | SH_PKT_LAST,
					SH_PKT_FIRST | SH_PKT_LAST};

	p->op = op;
	p->flags = flags[place] | (imm ? SH_PKT_IMM : 0);
}

/* False: there is no such operation. */
static bool take_operation(struct sh_packet *p, uint8_t opcode)
{
	/* Of first, middle, last and only, where take_message() has them. */
	static const uint8_t read_place[] = {0, 1, 2, 4};
	uint8_t operation = opcode & SH_BTH_OPERATION;
	bool imm = sh_opcode_ext(opcode) & SH_EXT_IMM;

	p->flags = SH_PKT_FIRST | SH_PKT_LAST;
	if (operation <= SH_BTH_SEND_ONLY_IMM) {
		take_message(p, SH_PKT_SEND, operation, imm);
	} else if (operation <= SH_BTH_WRITE_ONLY_IMM) {
		take_message(p, SH_PKT_WRITE, operation - SH_BTH_WRITE_FIRST, imm);
	} else {
		switch (operation) {
		case SH_BTH_READ_REQUEST:
			p->op = SH_PKT_READ;
			break;
		case SH_BTH_READ_FIRST:
		case SH_BTH_READ_MIDDLE:
		case SH_BTH_READ_LAST:
		case SH_BTH_READ_ONLY:
			take_message(p, SH_PKT_READ_RESP, read_place[operation - SH_BTH_READ_FIRST],
				     false);
			break;
		case SH_BTH_ACK:
			p->op = SH_PKT_ACK;
			break;
		case SH_BTH_ATOMIC_ACK:
			p->op = SH_PKT_ATOMIC_RESP;
			break;
		case SH_BTH_COMPARE_SWAP:
			p->op = SH_PKT_CS;
			break;
		case SH_BTH_FETCH_ADD:
			p->op = SH_PKT_FA;
			break;
		case SH_BTH_SEND_LAST_INV:
			take_message(p, SH_PKT_SEND_INV, 2, false);
			break;
		case SH_BTH_SEND_ONLY_INV:
			take_message(p, SH_PKT_SEND_INV, 4, false);
			break;
		default:
			return false;
		}
	}
	return true;
}

static void take_fields(struct sh_packet *p, const struct sh_frame *f)
{
	p->pkey = f->bth.pkey;
	p->dqpn = f->bth.qpn;
	p->psn = f->bth.psn;
	p->flags |= (f->bth.ack ? SH_PKT_ACKREQ : 0) | (f->bth.se ? SH_PKT_SE : 0);
	p->srqn = f->ext.srqn;
	p->qkey = f->ext.qkey;
	p->srcqp = f->ext.srcqp;
	p->va = f->ext.va;
	p->rkey = p->op == SH_PKT_SEND_INV ? f->ext.inv_rkey : f->ext.rkey;
	p->dmalen = f->ext.dmalen;
	p->swap_add = p->op == SH_PKT_ATOMIC_RESP ? f->ext.original : f->ext.swap_add;
	p->compare = f->ext.compare;
	p->syndrome = f->ext.syndrome;
	p->msn = f->ext.msn;
	memcpy(&p->imm_be, f->ext.imm, sizeof(f->ext.imm));
}

/* The headers as they were on the wire, as far as the ICRC covers them. */
static void put_headers(unsigned char *bytes, size_t n, struct sh_frame *f,
			const struct sh_roce_way *way)
{
	sh_roce_set_way(f, way);
	f->udp.dport = SH_ROCE_PORT;
	f->udp.length = (uint16_t)(SH_UDP_BYTES + n);
	if (f->version == 4) {
		f->ipv4.protocol = UDP;
		f->ipv4.length = (uint16_t)(SH_ROCE_HEAD + n);
		sh_ipv4_put(bytes, &f->ipv4);
		bytes += SH_IPV4_BYTES;
	} else {
		f->global.next = UDP;
		f->global.length = f->udp.length;
		sh_global_put(bytes, &f->global);
		bytes += SH_IPV6_BYTES;
	}
	sh_udp_put(bytes, &f->udp);
}

/*
 * Of IPv4: the identification, which a socket does not tell, is what the ICRC says, or the expected
 * one fits.
 */
static enum sh_roce check_icrc(unsigned char *bytes, size_t n, struct sh_frame *f,
			       const struct sh_roce_way *way)
{
	uint16_t id;
	uint32_t crc;

	put_headers(bytes, n, f, way);
	n += sh_roce_head(way->from) - SH_ICRC_BYTES;
	crc = sh_frame_icrc(SH_LINK_IP, bytes, n);
	if (crc == f->icrc)
		return SH_ROCE_OK;
	if (f->version != 4)
		return SH_ROCE_BAD_ICRC;
	if (!sh_icrc_identification(crc, f->icrc, n - 4, &id))
		return SH_ROCE_BAD_ICRC;
	/* What it found is the difference to the expected one. */
	return (id ^ way->id) < SH_ROCE_MERGED ? SH_ROCE_OK : SH_ROCE_GUESSED;
}

enum sh_roce sh_roce_decode(unsigned char *bytes, size_t n, const struct sh_roce_way *way,
			    struct sh_packet *p, struct sh_seg *seg)
{
	const size_t head = sh_roce_head(way->from);
	struct sh_frame f;
	enum sh_roce icrc;

	memset(&f, 0, sizeof(f));
	sh_packet_init(p);
	if (n > SH_ROCE_BYTES - head || sh_transport_decode(bytes + head, n, &f) ||
	    f.len > SH_ROCE_PAYLOAD)
		return SH_ROCE_MALFORMED;
	icrc = check_icrc(bytes, n, &f, way);
	if (icrc == SH_ROCE_BAD_ICRC)
		return icrc;
	if (f.bth.opcode == SH_BTH_NOTIFY)
		return SH_ROCE_NOTICE;
	if (!take_service(p, f.bth.opcode) || !take_operation(p, f.bth.opcode))
		return SH_ROCE_MALFORMED;
	take_fields(p, &f);
	*seg = (struct sh_seg){(uintptr_t)f.payload, f.len};
	p->payload = (struct sh_payload){.nseg = f.len ? 1 : 0, .seg = seg, .len = f.len};
	return icrc;
}

enum sh_roce sh_roce_judge(enum sh_roce decoded, uint16_t sport, uint8_t *credits)
{
	if (sport != SH_ROCE_PORT)
		return decoded == SH_ROCE_GUESSED ? SH_ROCE_OK : decoded;
	if (decoded == SH_ROCE_OK && *credits < SH_ROCE_CREDITS)
		(*credits)++;
	if (decoded != SH_ROCE_GUESSED)
		return decoded;
	if (!*credits)
		return SH_ROCE_OK;
	(*credits)--;
	return SH_ROCE_BAD_ICRC;
}
