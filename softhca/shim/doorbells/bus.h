/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Doorbells, as the bus carries them to the device.
 */
#ifndef SOFTHCA_SHIM_BUS_H
#define SOFTHCA_SHIM_BUS_H

#include <stdint.h>

void shim_ring(uint32_t ctx, uint32_t qpn);
void shim_arm(uint32_t ctx, uint32_t cqn, uint32_t dw0, uint32_t dw1);
void shim_recv(uint32_t ctx, uint32_t qpn);
/* One store, as the bus carries it, to a page (0 UAR, 1 BlueFlame) of a context. */
void shim_bus_store(uint32_t ctx, unsigned int page, unsigned int offset, unsigned int width,
		    const uint8_t *value);

#endif
