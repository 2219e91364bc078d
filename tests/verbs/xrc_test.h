/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the XRC tests share: a domain file that all processes inherit, XRC SRQs, receive QPs in RTR,
 * send QPs in RTS.
 */
#ifndef XRC_TEST_H
#define XRC_TEST_H

#include "verbs_test.h"

/* Returns a descriptor of a new file without a name. */
int domain_file(void);
/* Opens the domain of the file, and creates it if there is none. */
struct ibv_xrc_domain *domain_of(struct side *s, int fd);
struct ibv_srq *make_xrc_srq(struct side *s, struct ibv_xrc_domain *domain, unsigned int max_wr);
/* Makes a receive QP of the domain, in RESET. Returns its number. */
uint32_t make_rcv_qp(struct ibv_xrc_domain *domain);
/* Move it to a state. Return 0 or a positive errno value. */
int rcv_to_init(struct ibv_xrc_domain *domain, uint32_t qpn, const struct link *l);
int rcv_to_rtr(struct ibv_xrc_domain *domain, uint32_t qpn, const struct link *l);
int rcv_to_state(struct ibv_xrc_domain *domain, uint32_t qpn, enum ibv_qp_state state);
enum ibv_qp_state rcv_state(struct ibv_xrc_domain *domain, uint32_t qpn);
/* Both steps, to INIT and RTR, checked. */
void connect_rcv(struct ibv_xrc_domain *domain, uint32_t qpn, const struct link *l);
/* Posts a SEND of [off, off+len) to an SRQ. */
int post_xrc(struct ibv_qp *qp, struct side *s, uint64_t wr_id, size_t off, uint32_t len,
	     uint32_t srqn, int flags);

#endif
