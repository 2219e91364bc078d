/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Agents: who of the open files of a port gets which MADs.
 */
#ifndef SOFTHCA_KERNEL_UMAD_AGENT_H
#define SOFTHCA_KERNEL_UMAD_AGENT_H

#include "umad.h"

/* ioctl() with its argument, which the caller has copied from and copies back. 0 or -errno. */
int umad_register(struct umad_file *f, struct umad_reg *r);
int umad_register2(struct umad_file *f, struct umad_reg2 *r);
int umad_unregister(struct umad_file *f, uint32_t id);
int umad_enable_pkey(struct umad_file *f);

/* Who has registered for such a request on that port: NULL, nobody. */
struct umad_file *umad_agent_for(struct kernel *k, uint32_t hca, uint32_t port, const uint8_t *mad,
				 uint32_t *id);
/* Whose request was it? NULL: nobody waits for the response. *sent: the request. */
struct umad_file *umad_asker(struct kernel *k, uint32_t hca, uint32_t port, const uint8_t *mad,
			     struct umad_msg **sent);
/* Who sends requests with the upper half of this transaction? NULL: nobody any more. */
struct umad_file *umad_agent_of(struct kernel *k, uint32_t hca, uint32_t port, const uint8_t *mad,
				uint32_t *id);
bool mad_class_rmpp(uint8_t mgmt_class);
bool mad_is_rmpp(const uint8_t *mad); /* a segment of a message, or a word about one */
static inline bool mad_class_oui(uint8_t mgmt_class)
{
	return mgmt_class >= CLASS_VENDOR2 && mgmt_class < CLASS_VENDOR2 + 0x20;
}

/* What is kept under that number, and its file. NULL: nothing is any more. */
struct umad_msg *umad_sent(struct kernel *k, uint64_t number, struct umad_file **f);

#endif
