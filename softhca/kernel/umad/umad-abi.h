/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The interface of umad files, version 5, and the formats of management datagrams (MADs). All
 * fields of a MAD are big-endian.
 *
 *	OFFSET	OF A MAD
 *	0	base version, class, class version, method
 *	4	status; of a directed route its direction is bit 15
 *	6	of a directed route: hop pointer, hop count
 *	8	transaction, of which the daemon sets the upper half in requests
 *	16	attribute, reserved
 *	20	modifier
 *	24	RMPP: version, type, response time with flags, status; or of an SMP its M_Key
 *	28	of a segment: its number, from 1; of an acknowledgement, of the last one that has come
 *	32	of the first segment, how much all have together, with headers of the class; of the last
 *		one, how much it has; of others 0; of an acknowledgement, the last one that may be sent
 *	32	of a directed route: source LID, destination LID
 *	56	data of class SA
 *	64	data of SMPs and of performance management
 *	128	of a directed route: initial path, return path of 64 each
 */
#ifndef SOFTHCA_KERNEL_UMAD_ABI_H
#define SOFTHCA_KERNEL_UMAD_ABI_H

#include <stddef.h>
#include <stdint.h>

#define UMAD_ABI_VERSION 5

/* ioctl() */
#define UMAD_REGISTER_AGENT   0xc01c1b01
#define UMAD_UNREGISTER_AGENT 0x40041b02
#define UMAD_ENABLE_PKEY      0x00001b03
#define UMAD_REGISTER_AGENT2  0xc0281b04

struct umad_reg {
	uint32_t id; /* out */
	uint8_t method_mask[16];
	uint8_t qpn, mgmt_class, mgmt_class_version, oui[3], rmpp_version, reserved;
};
struct umad_reg2 {
	uint32_t id; /* out */
	uint32_t qpn;
	uint8_t mgmt_class, mgmt_class_version;
	uint16_t reserved;
	uint32_t flags;
	uint64_t method_mask[2];
	uint32_t oui;
	uint8_t rmpp_version, reserved2[3];
};
_Static_assert(sizeof(struct umad_reg) == 28, "REGISTER_AGENT");
_Static_assert(offsetof(struct umad_reg, qpn) == 20, "REGISTER_AGENT");
_Static_assert(offsetof(struct umad_reg, rmpp_version) == 26, "REGISTER_AGENT");
_Static_assert(sizeof(struct umad_reg2) == 40, "REGISTER_AGENT2");
_Static_assert(offsetof(struct umad_reg2, flags) == 12, "REGISTER_AGENT2");
_Static_assert(offsetof(struct umad_reg2, oui) == 32, "REGISTER_AGENT2");

/* In front of each MAD. Without P_Key index it ends before pkey_index. */
struct umad_hdr {
	uint32_t id, status, timeout_ms, retries, length;
	uint32_t qpn, qkey; /* big-endian, and so are lid and flow_label */
	uint16_t lid;
	uint8_t sl, path_bits, grh_present, gid_index, hop_limit, traffic_class;
	uint8_t gid[16];
	uint32_t flow_label;
	uint16_t pkey_index;
	uint8_t reserved[6];
};
#define UMAD_HDR_OLD offsetof(struct umad_hdr, pkey_index)
_Static_assert(sizeof(struct umad_hdr) == 64 && UMAD_HDR_OLD == 56, "the header");
_Static_assert(offsetof(struct umad_hdr, lid) == 28 && offsetof(struct umad_hdr, gid) == 36,
	       "the header");

#define MAD_SIZE   256
#define MAD_HEADER 24
#define MAD_RMPP   36 /* with the RMPP header */
#define MAD_PATH   64 /* hops that a directed route has room for */

enum mad_class {
	CLASS_SMP = 0x01,
	CLASS_SA = 0x03,
	CLASS_PERF = 0x04,
	CLASS_VENDOR = 0x09, /* of the card, two of them */
	CLASS_CONGESTION = 0x21,
	CLASS_VENDOR2 = 0x30, /* to 0x4f: with an OUI */
	CLASS_DIRECTED = 0x81,
};
enum mad_method {
	METHOD_GET = 0x01,
	METHOD_SET = 0x02,
	METHOD_TRAP = 0x05,
	METHOD_REPORT = 0x06,
	METHOD_TRAP_REPRESS = 0x07,
	METHOD_GET_TABLE = 0x12,
	METHOD_DELETE = 0x15,
	METHOD_RESPONSE = 0x80,
};
enum mad_status {
	STATUS_BUSY = 0x01,
	STATUS_VERSION = 0x04,
	STATUS_METHOD = 0x08,
	STATUS_ATTRIBUTE = 0x0c, /* the method has no such attribute */
	STATUS_VALUE = 0x1c,
	STATUS_DIRECTION = 0x8000, /* a response on its way */
};
enum mad_offset {
	AT_CLASS = 1,
	AT_CLASS_VERSION = 2,
	AT_METHOD = 3,
	AT_STATUS = 4,
	AT_HOP_POINTER = 6,
	AT_HOP_COUNT = 7,
	AT_TID = 8,
	AT_ATTRIBUTE = 16,
	AT_MODIFIER = 20,
	AT_DR_SLID = 32,
	AT_DR_DLID = 34,
	AT_OUI = 37,
	AT_DATA = 64,
	AT_INITIAL = 128,
	AT_RETURN = 192,
};
enum rmpp_offset {
	AT_RMPP_VERSION = 24,
	AT_RMPP_TYPE,
	AT_RMPP_FLAGS,
	AT_RMPP_STATUS,
	AT_RMPP_NUMBER = 28,
	AT_RMPP_LENGTH = 32,
};
enum rmpp_type { RMPP_DATA = 1, RMPP_ACK, RMPP_STOP, RMPP_ABORT };
/* What STOP and ABORT say; those of ABORT go from the first to the last. */
enum rmpp_status {
	RMPP_NO_RESOURCES = 1, /* the only one of STOP */
	RMPP_FIRST_ABORT = 118,
	RMPP_TOO_LONG = 118,
	RMPP_BAD_NUMBER = 120,
	RMPP_BAD_TYPE,
	RMPP_WINDOW_TOO_SMALL,
	RMPP_NUMBER_TOO_BIG,
	RMPP_BAD_STATUS,
	RMPP_BAD_VERSION,
	RMPP_LAST_ABORT = 127,
};
enum rmpp_flag { RMPP_ACTIVE = 1, RMPP_FIRST = 2, RMPP_LAST = 4, RMPP_FLAGS = 7 };
#define PERMISSIVE 0xffff

#endif
