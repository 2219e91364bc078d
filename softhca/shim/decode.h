/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A store instruction that faulted, as the stores it makes: addresses, widths and values in the order of a bus.
 * Async-signal-safe; knows nothing of devices.
 */
#ifndef SOFTHCA_SHIM_DECODE_H
#define SOFTHCA_SHIM_DECODE_H

#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

typedef void (*sh_store_fn)(void *arg, uint64_t addr, unsigned int width, const uint8_t *value);

void sh_decode_init(void);

/*
 * Carry out the store at the context's RIP that faulted at addr, giving each piece to fn instead of to memory, and
 * step over it: registers change as the processor would have changed them. A repeated string store is taken up to the
 * first element that is not within [first, end), and stays at its instruction when more is to come. Returns 0, or
 * -EINVAL when it is not a store that this knows, or not wholly inside [first, end): nothing has changed then.
 */
int sh_decode_store(ucontext_t *uc, uint64_t addr, uint64_t first, uint64_t end, sh_store_fn fn, void *arg);

#endif
