/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * QP 1 as the UD QPs of programs see it: what they send to it, and what is sent to them. Device
 * code brings the one and delivers the other (softhca/device/transport/gsi.h).
 */
#ifndef SOFTHCA_KERNEL_UMAD_GSI_H
#define SOFTHCA_KERNEL_UMAD_GSI_H

#include "fabric.h"

/*
 * Makes the FIFO that records come in, in the instance's directory, which is dir_fd. 0 or -errno.
 */
int gsi_open(struct umad *u, int dir_fd);
void gsi_close(struct umad *u);
void gsi_ready(struct umad *u); /* the FIFO has something */

/*
 * Sends a MAD to a QP: from the port of `way`, or as the answer of n to what has come by `way`. A
 * MAD longer than one datagram is lost.
 */
void gsi_send(struct umad *u, const struct mad_way *way, const uint8_t *mad, size_t len);
void gsi_answer(struct umad *u, const struct mad_way *way, const struct mad_node *n,
		const uint8_t *mad, size_t len);

#endif
