/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Agents: which of the open files of a port gets which MADs. */
#ifndef SOFTHCA_KERNEL_UMAD_AGENT_H
#define SOFTHCA_KERNEL_UMAD_AGENT_H

#include "umad.h"

/* ioctl() with its argument, which the caller has copied from and copies back. 0 or -errno. */
int umad_register(struct umad_file *f, struct umad_reg *r);
int umad_register2(struct umad_file *f, struct umad_reg2 *r);
int umad_unregister(struct umad_file *f, uint32_t id);
int umad_enable_pkey(struct umad_file *f);

/*
 * The file with an agent for such a request on that port, and the agent's id. NULL: there is none.
 */
struct umad_file *umad_agent_for(struct umad *u, uint32_t hca, uint32_t port, const uint8_t *mad,
				 uint32_t *id);
/* The file that waits for this response. *sent: its request. NULL: no file waits for it. */
struct umad_file *umad_asker(struct umad *u, uint32_t hca, uint32_t port, const uint8_t *mad,
			     struct umad_msg **sent);
/*
 * The file with the agent whose requests have the upper half of this transaction. NULL: it has
 * ended.
 */
struct umad_file *umad_agent_of(struct umad *u, uint32_t hca, uint32_t port, const uint8_t *mad,
				uint32_t *id);
bool mad_class_rmpp(uint8_t mgmt_class);
bool mad_is_rmpp(const uint8_t *mad); /* a segment of a message, or a word about one */
static inline bool mad_class_oui(uint8_t mgmt_class)
{
	return mgmt_class >= CLASS_VENDOR2 && mgmt_class < CLASS_VENDOR2 + 0x20;
}

/* The message that is kept under that number, and its file. NULL: it is kept no more. */
struct umad_msg *umad_sent(struct umad *u, uint64_t number, struct umad_file **f);

#endif
