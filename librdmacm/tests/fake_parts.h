/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What the two parts of the fake, its kernel and its provider, ask of each other. */
#ifndef FAKE_PARTS_H
#define FAKE_PARTS_H

#include "fake_rdma_cm.h"

/* Adds to fake.log. */
void fake_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* For ibv_register_driver(). */
struct ibv_device *fake_driver_init(const char *path, int abi_version);
void fake_provider_reset(void);
void fake_provider_stop(void);

#endif
