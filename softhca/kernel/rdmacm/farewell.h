/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Farewells: ids that have ended while their peer, elsewhere on the wire, was connected. The peer's
 * instance is told until it says that it knows, for as long as an id that lives would wait.
 * Otherwise the loss of one message would leave the peer with a connection to an id that has ended.
 */
#ifndef SOFTHCA_KERNEL_RDMACM_FAREWELL_H
#define SOFTHCA_KERNEL_RDMACM_FAREWELL_H

#include <stdbool.h>
#include <stdint.h>

struct cm_id;
struct cm_message;
struct rdmacm;

/* Sends the DREQ of an id that ends. */
void cm_farewell(struct cm_id *id);
/*
 * Ends a farewell, if the message is its answer. It came from the peer, for an id that has ended.
 */
void cm_farewell_heard(struct rdmacm *cm, const struct cm_message *m);
/* Sends those again that are due. Returns when the next one is; 0: there is none. */
uint64_t cm_farewell_due(struct rdmacm *cm, uint64_t now);
/* Sends all of them again, due or not. False: there are none. */
bool cm_farewells_again(struct rdmacm *cm);
void cm_farewells_free(struct rdmacm *cm);

#endif
