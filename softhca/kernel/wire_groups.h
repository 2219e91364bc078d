/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The groups that QPs of the instance are in, on the wire: the first member has the daemon join the
 * group of IP at each interface of the wire, and the last one has it leave. The engine gets the
 * sockets.
 *
 * A QP is in its group inside the instance all the same if the kernel refuses, or if there are more
 * than SH_WIRE_GROUPS sockets; `softhca show` counts such groups as unheard. Each further member
 * tries again, and so does a QP that leaves another group.
 */
#ifndef SOFTHCA_KERNEL_WIRE_GROUPS_H
#define SOFTHCA_KERNEL_WIRE_GROUPS_H

#include <stdint.h>

#include "softhca/device/memory/instance.h"

struct kernel;
struct out;
struct wire;

/* A QP has been attached; has been detached, or has ended. Without a wire they do nothing. */
void wire_join(struct kernel *k, const uint8_t mgid[16]);
void wire_part(struct kernel *k, const uint8_t mgid[16]);

/*
 * What was joined at the interface of that address is lost; then: joins what is not heard, wherever
 * it can.
 */
void wire_groups_lost(struct kernel *k, uint32_t number);
void wire_groups_again(struct kernel *k);

/* Adds what sockets of groups have dropped to *dropped. */
void wire_groups_show(struct kernel *k, struct out *o, uint64_t *dropped);
void wire_groups_end(struct wire *w, const struct sh_wire_config *cfg);

#endif
