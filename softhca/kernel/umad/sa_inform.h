/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Subscriptions to notices: InformInfo, and its records.
 */
#ifndef SOFTHCA_KERNEL_UMAD_SA_INFORM_H
#define SOFTHCA_KERNEL_UMAD_SA_INFORM_H

#include "notice.h"
#include "sa_table.h"

#define INFORM_RECORD_SIZE 64

extern const struct sa_component sa_inform_components[];
/* Set(InformInfo), which came to a port: the status of the answer, which is in place. */
int sa_inform_set(struct umad *u, const struct mad_way *w, const struct mad_node *n, uint8_t *mad);
/* Offers the records of all subscriptions. */
void sa_informs(struct sa_table *t);
/* Reports a notice, which names no issuer's GID yet, to all subscribers to such notices. */
void sa_inform(struct umad *u, uint8_t notice[NOTICE_SIZE]);
/* The port cannot be reached any more: its subscriptions end. Or all do. */
void sa_inform_gone(struct umad *u, uint32_t hca, uint32_t port);
void sa_inform_forget(struct umad *u);

#endif
