/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * How the device's packets (transport/packet.h) are named in the base transport header
 * (packet/opcode.h): for what leaves the machine, and for captures.
 */
#ifndef SOFTHCA_WIRE_OPCODE_H
#define SOFTHCA_WIRE_OPCODE_H

#include <stdbool.h>
#include <stdint.h>

#include "softhca/device/transport/packet.h"
#include "softhca/packet/opcode.h"

/* The upper three bits of the opcode, or -1: there is no such service (enum sh_service). */
static inline int sh_bth_service(unsigned int service)
{
	switch (service) {
	case SH_SVC_RC:
		return SH_BTH_RC;
	case SH_SVC_UC:
		return SH_BTH_UC;
	case SH_SVC_UD:
		return SH_BTH_UD;
	case SH_SVC_XRC:
		return SH_BTH_XRC;
	default:
		return -1;
	}
}

/*
 * first, middle, last and only of an operation follow each other; imm: those with immediate data.
 */
static inline int sh_bth_of_message(unsigned int flags, int first, int last_imm, int only,
				    int only_imm)
{
	bool imm = flags & SH_PKT_IMM;

	if (flags & SH_PKT_FIRST)
		return flags & SH_PKT_LAST ? (imm ? only_imm : only) : first;
	if (!(flags & SH_PKT_LAST))
		return first + 1;
	return imm ? last_imm : first + 2;
}

/* The lower five bits, or -1: no packet of that kind leaves an HCA. op and flags are a packet's. */
static inline int sh_bth_operation(unsigned int op, unsigned int flags)
{
	switch (op) {
	case SH_PKT_SEND:
		return sh_bth_of_message(flags, SH_BTH_SEND_FIRST, SH_BTH_SEND_LAST_IMM,
					 SH_BTH_SEND_ONLY, SH_BTH_SEND_ONLY_IMM);
	case SH_PKT_WRITE:
		return sh_bth_of_message(flags, SH_BTH_WRITE_FIRST, SH_BTH_WRITE_LAST_IMM,
					 SH_BTH_WRITE_ONLY, SH_BTH_WRITE_ONLY_IMM);
	case SH_PKT_SEND_INV:
		return flags & SH_PKT_FIRST ? SH_BTH_SEND_ONLY_INV : SH_BTH_SEND_LAST_INV;
	case SH_PKT_READ:
		return SH_BTH_READ_REQUEST;
	case SH_PKT_CS:
		return SH_BTH_COMPARE_SWAP;
	case SH_PKT_FA:
		return SH_BTH_FETCH_ADD;
	case SH_PKT_ACK:
		return SH_BTH_ACK;
	case SH_PKT_READ_RESP:
		return sh_bth_of_message(flags, SH_BTH_READ_FIRST, -1, SH_BTH_READ_ONLY, -1);
	case SH_PKT_ATOMIC_RESP:
		return SH_BTH_ATOMIC_ACK;
	default:
		return -1;
	}
}

#endif
