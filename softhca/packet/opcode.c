// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* See opcode.h. Pure functions. */
#include <stdbool.h>
#include <stddef.h>

#include "opcode.h"

enum { RC = 1, UC = 2, UD = 4, XRC = 8 };

static const struct operation {
	const char *name;
	uint8_t services;
	uint16_t ext;
} operations[SH_BTH_OPERATION + 1] = {
	[SH_BTH_SEND_FIRST] = {"SEND First", RC | UC | XRC, SH_EXT_PAYLOAD},
	[SH_BTH_SEND_MIDDLE] = {"SEND Middle", RC | UC | XRC, SH_EXT_PAYLOAD},
	[SH_BTH_SEND_LAST] = {"SEND Last", RC | UC | XRC, SH_EXT_PAYLOAD},
	[SH_BTH_SEND_LAST_IMM] = {"SEND Last Imm", RC | UC | XRC, SH_EXT_PAYLOAD | SH_EXT_IMM},
	[SH_BTH_SEND_ONLY] = {"SEND Only", RC | UC | UD | XRC, SH_EXT_PAYLOAD},
	[SH_BTH_SEND_ONLY_IMM] = {"SEND Only Imm", RC | UC | UD | XRC, SH_EXT_PAYLOAD | SH_EXT_IMM},
	[SH_BTH_WRITE_FIRST] = {"WRITE First", RC | UC | XRC, SH_EXT_PAYLOAD | SH_EXT_RETH},
	[SH_BTH_WRITE_MIDDLE] = {"WRITE Middle", RC | UC | XRC, SH_EXT_PAYLOAD},
	[SH_BTH_WRITE_LAST] = {"WRITE Last", RC | UC | XRC, SH_EXT_PAYLOAD},
	[SH_BTH_WRITE_LAST_IMM] = {"WRITE Last Imm", RC | UC | XRC, SH_EXT_PAYLOAD | SH_EXT_IMM},
	[SH_BTH_WRITE_ONLY] = {"WRITE Only", RC | UC | XRC, SH_EXT_PAYLOAD | SH_EXT_RETH},
	[SH_BTH_WRITE_ONLY_IMM] = {"WRITE Only Imm", RC | UC | XRC,
				   SH_EXT_PAYLOAD | SH_EXT_RETH | SH_EXT_IMM},
	[SH_BTH_READ_REQUEST] = {"READ Request", RC | XRC, SH_EXT_RETH},
	[SH_BTH_READ_FIRST] = {"READ Response First", RC | XRC, SH_EXT_PAYLOAD | SH_EXT_AETH},
	[SH_BTH_READ_MIDDLE] = {"READ Response Middle", RC | XRC, SH_EXT_PAYLOAD},
	[SH_BTH_READ_LAST] = {"READ Response Last", RC | XRC, SH_EXT_PAYLOAD | SH_EXT_AETH},
	[SH_BTH_READ_ONLY] = {"READ Response Only", RC | XRC, SH_EXT_PAYLOAD | SH_EXT_AETH},
	[SH_BTH_ACK] = {"Acknowledge", RC | XRC, SH_EXT_AETH},
	[SH_BTH_ATOMIC_ACK] = {"ATOMIC Acknowledge", RC | XRC, SH_EXT_AETH | SH_EXT_ATOMIC_ACK},
	[SH_BTH_COMPARE_SWAP] = {"CmpSwap", RC | XRC, SH_EXT_ATOMIC},
	[SH_BTH_FETCH_ADD] = {"FetchAdd", RC | XRC, SH_EXT_ATOMIC},
	[SH_BTH_SEND_LAST_INV] = {"SEND Last Inv", RC | XRC, SH_EXT_PAYLOAD | SH_EXT_INV},
	[SH_BTH_SEND_ONLY_INV] = {"SEND Only Inv", RC | XRC, SH_EXT_PAYLOAD | SH_EXT_INV},
};

static uint8_t service_bit(uint8_t opcode)
{
	switch (opcode & SH_BTH_SERVICE) {
	case SH_BTH_RC:
		return RC;
	case SH_BTH_UC:
		return UC;
	case SH_BTH_UD:
		return UD;
	case SH_BTH_XRC:
		return XRC;
	default:
		return 0;
	}
}

static bool is_response(uint8_t operation)
{
	return operation >= SH_BTH_READ_FIRST && operation <= SH_BTH_ATOMIC_ACK;
}

int sh_opcode_ext(uint8_t opcode)
{
	const struct operation *o = &operations[opcode & SH_BTH_OPERATION];
	uint8_t service = service_bit(opcode);
	int ext = o->ext;

	if (opcode == SH_BTH_NOTIFY)
		return SH_EXT_CNP;
	if (!(o->services & service))
		return -1;
	if (service == UD)
		ext |= SH_EXT_DETH;
	/* The answers carry none: it names the SRQ of requests. */
	if (service == XRC && !is_response(opcode & SH_BTH_OPERATION))
		ext |= SH_EXT_XRC;
	return ext;
}

unsigned int sh_ext_len(int ext)
{
	static const uint8_t len[] = {4, 8, 16, 28, 4, 8, 4, 4};
	unsigned int sum = 0;

	for (size_t i = 0; i < sizeof(len); i++)
		if (ext >> i & 1)
			sum += len[i];
	return ext & SH_EXT_CNP ? sum + 16 : sum;
}

const char *sh_opcode_service(uint8_t opcode)
{
	switch (service_bit(opcode)) {
	case RC:
		return "RC";
	case UC:
		return "UC";
	case UD:
		return "UD";
	case XRC:
		return "XRC";
	default:
		return opcode == SH_BTH_NOTIFY ? "CNP" : "?";
	}
}

const char *sh_opcode_operation(uint8_t opcode)
{
	if (opcode == SH_BTH_NOTIFY)
		return "notification";
	return sh_opcode_ext(opcode) < 0 ? "unknown opcode"
					 : operations[opcode & SH_BTH_OPERATION].name;
}
