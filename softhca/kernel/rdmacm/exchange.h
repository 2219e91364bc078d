/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Exchanges of messages: connections (rc.c) and what they have in common with questions for a UD QP
 * (sidr.c). The functions of commands return 0 or -errno.
 */
#ifndef SOFTHCA_KERNEL_RDMACM_EXCHANGE_H
#define SOFTHCA_KERNEL_RDMACM_EXCHANGE_H

#include <stddef.h>
#include <stdint.h>

struct cm_conn_param;
struct cm_id;
struct cm_message;
struct rdmacm;

#define CM_TRIES 15

/* The id's state is checked, and sent, ece and sent.len are set. */
void cm_exchange_connect(struct cm_id *id);
int cm_exchange_accept(struct cm_id *id);
int cm_exchange_rtu(struct cm_id *id);
int cm_exchange_reject(struct cm_id *id, int status, const uint8_t *data, size_t len);
int cm_exchange_disconnect(struct cm_id *id);
void cm_exchange_end(struct cm_id *id); /* the id ends */
void cm_exchange_deliver(struct rdmacm *cm, struct cm_message *m);
void cm_exchange_due(struct cm_id *id);
/* A request of this listener has been read: another one may come. */
void cm_exchange_read(struct cm_id *listener);
/* The peer ended before it heard that the connection stands. */
void cm_exchange_broken(struct cm_id *id);
void cm_exchange_established(struct cm_id *id); /* a packet has come on its QP */

/* rc.c */
void cm_rc_deliver(struct rdmacm *cm, struct cm_message *m);
/* sidr.c */
void cm_sidr_deliver(struct rdmacm *cm, struct cm_message *m);
int cm_sidr_reply(struct cm_id *id, int status, const uint8_t *data, size_t len);

/*
 * request.c: makes an id of a request that has arrived, and tells the listener's program. 0, or a
 * status for REJ; -1: lost.
 */
int cm_request(struct rdmacm *cm, struct cm_message *m);
/* The family of the address that listens for the request; 0: there is none. */
uint16_t cm_request_family(struct rdmacm *cm, const struct cm_message *m);
/* The request that has made the id has come again: its answer may have been lost. */
void cm_exchange_again(struct cm_id *id);
/* Sends the message again that the id is waiting for the answer of. */
void cm_exchange_send(struct cm_id *id);

#endif
