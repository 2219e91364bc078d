/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Addresses of the wire, as text and numbers. The LID of a port is its address less the network:
 * instances agree on LIDs without a word.
 */
#ifndef SOFTHCA_WIRE_ADDRESS_H
#define SOFTHCA_WIRE_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>

#include "softhca/device/memory/instance.h"

/*
 * Reads ADDRESS/PREFIX[,ADDRESS...] into *wire, all but the MTU. False: why[len] says in a sentence
 * what is wrong with it.
 */
bool sh_wire_parse(const char *text, struct sh_wire_config *wire, char *why, size_t len);

/* The LID of an address, or 0: it is not on the wire. */
uint32_t sh_wire_lid(const struct sh_wire_config *wire, uint32_t address);

/* The address of a LID on the wire. */
static inline uint32_t sh_wire_address(const struct sh_wire_config *wire, uint32_t lid)
{
	return wire->network | (lid & ~wire->netmask);
}

/* "10.1.2.3" */
#define SH_WIRE_TEXT 16
void sh_wire_text(char text[SH_WIRE_TEXT], uint32_t address);

#endif
