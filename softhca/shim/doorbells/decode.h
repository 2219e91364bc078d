/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Turns a store instruction that faulted into the stores that it makes: addresses, widths and
 * values in the order of a bus. Async-signal-safe. Knows nothing of devices.
 */
#ifndef SOFTHCA_SHIM_DECODE_H
#define SOFTHCA_SHIM_DECODE_H

#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

typedef void (*sh_store_fn)(void *arg, uint64_t addr, unsigned int width, const uint8_t *value);

void sh_decode_init(void);

/*
 * Carries out the store at the context's RIP that faulted at addr. It gives each piece to fn
 * instead of to memory, and steps over the instruction: registers change as the processor would
 * have changed them. A repeated string store is carried out up to the first element that is not
 * within [first, end), and stays at its instruction if elements are left. Returns 0, or -EINVAL if
 * the instruction is not a store that the decoder knows, or the store is not wholly inside [first,
 * end). Then nothing has changed.
 */
int sh_decode_store(ucontext_t *uc, uint64_t addr, uint64_t first, uint64_t end, sh_store_fn fn,
		    void *arg);

#endif
