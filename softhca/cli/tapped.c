// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* See tapped.h. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "softhca/device/transport/packet.h"
#include "softhca/device/transport/timer.h"
#include "softhca/wire/opcode.h"
#include "softhca/wire/roce.h"
#include "tapped.h"

static bool is_request(const struct sh_tapped *t)
{
	return sh_pkt_is_request(t->op);
}

/*
 * What a socket sends does not tell the port that packets come from; softhca's come from RoCE's
 * own.
 */
static void set_way(const struct sh_tapped *t, const struct sh_wire_config *wire,
		    struct sh_frame *f)
{
	const struct sh_roce_way way = {
		.from = sh_wire_address(wire, t->slid),
		.to = t->dlid < SH_LID_GROUPS ? sh_wire_address(wire, t->dlid)
					      : sh_wire_group(wire->network, t->dgid),
		.sport = SH_ROCE_PORT,
	};

	sh_roce_set_way(f, &way);
}

static void set_route(const struct sh_tapped *t, struct sh_frame *f)
{
	f->link = SH_LINK_IB;
	f->lrh.sl = t->sl & 0xf;
	f->lrh.slid = t->slid;
	f->lrh.dlid = t->dlid;
	f->grh = is_request(t) && t->flags & SH_PKT_GRH;
	f->global.traffic_class = t->traffic_class;
	f->global.flow_label = t->flow_label;
	f->global.hop_limit = t->hop_limit;
	memcpy(f->global.src, t->sgid, 16);
	memcpy(f->global.dst, t->dgid, 16);
}

bool tapped_frame(const struct sh_tapped *t, const struct sh_wire_config *wire, struct sh_frame *f)
{
	int service = sh_bth_service(t->service);
	int operation = sh_bth_operation(t->op, t->flags);

	memset(f, 0, sizeof(*f));
	if (service < 0 || operation < 0 || t->have > t->len || t->len > SH_TAP_PAYLOAD)
		return false;
	if (wire && tapped_is_roce(t))
		set_way(t, wire, f);
	else
		set_route(t, f);
	f->bth.opcode = (uint8_t)(service | operation);
	f->bth.se = is_request(t) && t->flags & SH_PKT_SE;
	/* As cards do when their path is the usual one. */
	f->bth.mig = true;
	f->bth.pkey = t->pkey;
	f->bth.qpn = t->dqpn & 0xffffff;
	/* Only acknowledged services ask for acknowledgements. */
	f->bth.ack = is_request(t) && t->flags & SH_PKT_ACKREQ && service != SH_BTH_UC &&
		     service != SH_BTH_UD;
	f->bth.psn = t->psn & 0xffffff;
	f->ext.srqn = t->srqn & 0xffffff;
	f->ext.qkey = t->qkey;
	f->ext.srcqp = t->srcqp & 0xffffff;
	f->ext.va = t->va;
	f->ext.rkey = f->ext.inv_rkey = t->rkey;
	f->ext.dmalen = t->dmalen;
	f->ext.swap_add = t->swap_add;
	f->ext.compare = t->compare;
	f->ext.syndrome = t->syndrome;
	f->ext.msn = t->msn & 0xffffff;
	f->ext.original = t->swap_add;
	memcpy(f->ext.imm, &t->imm, 4);
	return !sh_frame_settle(f, t->len);
}

static void store_vcrc(unsigned char *p, size_t n)
{
	uint16_t crc = sh_frame_vcrc(p, n - SH_VCRC_BYTES);

	p[n - 2] = (unsigned char)crc;
	p[n - 1] = (unsigned char)(crc >> 8);
}

/* Of IPv6 each packet has a checksum of UDP, which the sender's system computes last. */
static size_t sealed(const struct sh_frame *f, unsigned char *p, size_t have, size_t n)
{
	if (f->link == SH_LINK_IP && f->version == 6)
		sh_frame_put_udp_sum(p, have, n);
	return have;
}

size_t tapped_bytes(const struct sh_tapped *t, const struct sh_wire_config *wire,
		    const unsigned char *payload, unsigned char p[TAPPED_BYTES], size_t *n)
{
	const size_t vcrc = tapped_is_roce(t) ? 0 : SH_VCRC_BYTES;
	struct sh_frame f;
	size_t head;
	long len;

	if (!tapped_frame(t, wire, &f))
		return 0;
	head = sh_frame_head(&f);
	*n = head + t->len + f.bth.pad + SH_ICRC_BYTES + vcrc;
	if (t->have < t->len) {
		sh_frame_put_head(&f, p);
		memcpy(p + head, payload, t->have);
		return sealed(&f, p, head + t->have, *n);
	}
	f.payload = payload;
	len = sh_frame_encode(&f, p, TAPPED_BYTES);
	if (len < 0 || (size_t)len != *n)
		return 0;
	/*
	 * A bit of the payload, or of the ICRC if there is none. Links check the VCRC, and what
	 * gets to the receiver has a right one.
	 */
	if (t->fate == SH_FAULT_CORRUPT) {
		p[t->len ? head + t->len - 1 : *n - vcrc - SH_ICRC_BYTES] ^= 1;
		if (vcrc)
			store_vcrc(p, *n);
	}
	return sealed(&f, p, *n, *n);
}

const char *tapped_note(const struct sh_tapped *t, char note[TAPPED_NOTE])
{
	switch (t->fate) {
	case SH_FAULT_DROP:
		return "softhca fault: dropped";
	case SH_FAULT_CORRUPT:
		return "softhca fault: corrupted, one bit is wrong";
	case SH_FAULT_DUPLICATE:
		return t->flags & SH_TAPPED_AGAIN ? "softhca fault: the second of two"
						  : "softhca fault: duplicated, the first of two";
	case SH_FAULT_REORDER:
		return "softhca fault: held back until another packet has passed";
	case SH_FAULT_DELAY:
		snprintf(note, TAPPED_NOTE, "softhca fault: arrives %" PRIu32 " us late",
			 t->delay_us);
		return note;
	default:
		return NULL;
	}
}

/* ---- a line ---- */

struct line {
	char *text;
	size_t at;
};

static __attribute__((format(printf, 2, 3))) void put(struct line *l, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(l->text + l->at, TAPPED_COLUMNS + 1 - l->at, format, args);
	va_end(args);
	if (n > 0)
		l->at += (size_t)n;
	if (l->at > TAPPED_COLUMNS)
		l->at = TAPPED_COLUMNS;
}

static void put_answer(struct line *l, const struct sh_tapped *t)
{
	static const char *const nak[] = {"PSN sequence", "invalid request", "remote access",
					  "remote operation"};
	uint8_t kind = t->syndrome & SH_AETH_KIND, code = t->syndrome & 0x1f;

	if (kind == SH_AETH_RNR)
		put(l, " RNR NAK, %g ms", (double)sh_rnr_ns(code) / 1e6);
	else if (kind == SH_AETH_NAK_SEQ && code < 4)
		put(l, " NAK %s", nak[code]);
	else if (kind)
		put(l, " syndrome 0x%02x", t->syndrome);
}

bool tapped_line(const struct sh_tapped *t, uint64_t when, char line[TAPPED_COLUMNS + 1])
{
	static const char *const fates[SH_FAULT_KINDS] = {
		[SH_FAULT_DROP] = "dropped",	    [SH_FAULT_DELAY] = "delayed",
		[SH_FAULT_DUPLICATE] = "duplicate", [SH_FAULT_CORRUPT] = "corrupted",
		[SH_FAULT_REORDER] = "reordered",
	};
	const time_t seconds = (time_t)(when / 1000000000);
	struct line l = {line, 0};
	struct sh_frame f;
	struct tm tm;
	int ext;

	localtime_r(&seconds, &tm);
	put(&l, "%02d:%02d:%02d.%06u %u > %u", tm.tm_hour, tm.tm_min, tm.tm_sec,
	    (unsigned int)(when % 1000000000 / 1000), t->slid, t->dlid);
	if (!tapped_frame(t, NULL, &f)) {
		put(&l, " a damaged record");
		return false;
	}
	ext = sh_opcode_ext(f.bth.opcode);
	put(&l, " %s %s QP 0x%06x PSN %u", sh_opcode_service(f.bth.opcode),
	    sh_opcode_operation(f.bth.opcode), f.bth.qpn, f.bth.psn);
	if (ext & SH_EXT_PAYLOAD)
		put(&l, " len %u", t->len);
	if (t->fate < SH_FAULT_KINDS && fates[t->fate])
		put(&l, " [%s]", fates[t->fate]);
	if (ext & SH_EXT_AETH)
		put_answer(&l, t);
	if (ext & SH_EXT_XRC)
		put(&l, " SRQ 0x%06x", f.ext.srqn);
	if (ext & SH_EXT_DETH)
		put(&l, " from QP 0x%06x", f.ext.srcqp);
	if (ext & SH_EXT_RETH && !(ext & SH_EXT_PAYLOAD))
		put(&l, " of %u", f.ext.dmalen);
	if (ext & (SH_EXT_RETH | SH_EXT_ATOMIC))
		put(&l, " at 0x%" PRIx64, f.ext.va);
	return true;
}
