/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * BTH opcodes: which there are, and what follows the BTH of each. A service is in bits 7 to 5, an
 * operation in bits 4 to 0.
 */
#ifndef SOFTHCA_PACKET_OPCODE_H
#define SOFTHCA_PACKET_OPCODE_H

#include <stdint.h>

enum {
	SH_BTH_RC = 0x00,
	SH_BTH_UC = 0x20,
	SH_BTH_UD = 0x60,
	SH_BTH_CNP = 0x80, /* a service of one opcode: SH_BTH_NOTIFY */
	SH_BTH_XRC = 0xa0,
	SH_BTH_SERVICE = 0xe0,
	SH_BTH_OPERATION = 0x1f,
};

enum {
	SH_BTH_SEND_FIRST = 0x00,
	SH_BTH_SEND_MIDDLE,
	SH_BTH_SEND_LAST,
	SH_BTH_SEND_LAST_IMM,
	SH_BTH_SEND_ONLY,
	SH_BTH_SEND_ONLY_IMM,
	SH_BTH_WRITE_FIRST,
	SH_BTH_WRITE_MIDDLE,
	SH_BTH_WRITE_LAST,
	SH_BTH_WRITE_LAST_IMM,
	SH_BTH_WRITE_ONLY,
	SH_BTH_WRITE_ONLY_IMM,
	SH_BTH_READ_REQUEST,
	SH_BTH_READ_FIRST, /* of the response */
	SH_BTH_READ_MIDDLE,
	SH_BTH_READ_LAST,
	SH_BTH_READ_ONLY,
	SH_BTH_ACK,
	SH_BTH_ATOMIC_ACK,
	SH_BTH_COMPARE_SWAP,
	SH_BTH_FETCH_ADD,
	SH_BTH_SEND_LAST_INV = 0x16,
	SH_BTH_SEND_ONLY_INV = 0x17,
	SH_BTH_NOTIFY = 0x81, /* CNP, the service included */
};

/* The extension headers, in the order in which they follow the BTH. */
enum sh_ext {
	SH_EXT_XRC = 1,
	SH_EXT_DETH = 2,
	SH_EXT_RETH = 4,
	SH_EXT_ATOMIC = 8,
	SH_EXT_AETH = 16,
	SH_EXT_ATOMIC_ACK = 32,
	SH_EXT_IMM = 64,
	SH_EXT_INV = 128, /* IETH */
	/* Not headers: */
	SH_EXT_PAYLOAD = 256, /* it may have a payload */
	SH_EXT_CNP = 512,     /* 16 bytes of zeroes follow */
	SH_EXT_HEADERS = 255,
};

/* A set of enum sh_ext. -1: there is no such opcode. */
int sh_opcode_ext(uint8_t opcode);
/* How many bytes the headers of a set have. */
unsigned int sh_ext_len(int ext);
/* "RC SEND Only". Never NULL. */
const char *sh_opcode_service(uint8_t opcode);
const char *sh_opcode_operation(uint8_t opcode);

#endif
