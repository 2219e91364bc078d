/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Services that programs have registered: ServiceRecord.
 */
#ifndef SOFTHCA_KERNEL_UMAD_SA_SERVICE_H
#define SOFTHCA_KERNEL_UMAD_SA_SERVICE_H

#include "sa_table.h"

#define SERVICE_RECORD_SIZE 176

extern const struct sa_component sa_service_components[];
/* Set and Delete: the status of the answer, which is in place. */
int sa_service_set(struct umad *u, const struct mad_way *w, uint8_t *mad);
int sa_service_delete(struct umad *u, const struct mad_way *w, uint8_t *mad);
/* Offers those of the asker's partitions. */
void sa_services(struct sa_table *t);
/* Ends those whose lease is over. Returns when the next lease is over; 0: there is none. */
uint64_t sa_service_due(struct umad *u, uint64_t now);
void sa_service_forget(struct umad *u);

#endif
