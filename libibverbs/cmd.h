// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* How commands are written to the kernel, and what several commands share. */

#ifndef IBVERBS_CMD_H
#define IBVERBS_CMD_H

#include <string.h>

#include "ibverbs.h"

/* The number of a command, in the ABI version of the kernel. */
#define CMD_NUMBER(name) (abi_ver > 2 ? IB_USER_VERBS_CMD_##name : IB_USER_VERBS_CMD_##name##_V2)

/* Set the header of a command, without and with a response. The response is zeroed first: members
 * that the kernel does not write say that there are no events to wait for and that nothing was
 * granted. */
#define CMD_INIT(cmd, size, name)                                                                  \
	do {                                                                                       \
		(cmd)->command = CMD_NUMBER(name);                                                 \
		(cmd)->in_words = (size) / 4;                                                      \
		(cmd)->out_words = 0;                                                              \
	} while (0)

#define CMD_INIT_RESP(cmd, size, name, resp, resp_size)                                            \
	do {                                                                                       \
		CMD_INIT(cmd, size, name);                                                         \
		(cmd)->out_words = (resp_size) / 4;                                                \
		(cmd)->response = (uintptr_t)(resp);                                               \
		memset((resp), 0, sizeof(*(resp)));                                                \
	} while (0)

/* Writes a command to the kernel. Returns 0, or a positive errno value and sets errno. EIO: the
 * kernel accepted only part of the command. */
int cmd_write(const struct ibv_context *context, const void *cmd, size_t size);

/* For kernels with an older ABI, whose core response is shorter. Moves the provider's part, which
 * follows it directly, to the end of the current struct. */
void cmd_move_driver_resp(void *resp, size_t resp_size, size_t old_core, size_t core);

/* Waits until *completed has reached reported, the number of events that the kernel reported. */
void wait_acked(pthread_mutex_t *mutex, pthread_cond_t *cond, const uint32_t *completed,
		uint32_t reported);

/* Convert a path to the kernel's form and back. */
void qp_dest_from_ah(struct ibv_qp_dest *dest, const struct ibv_ah_attr *ah);
void ah_from_qp_dest(struct ibv_ah_attr *ah, const struct ibv_qp_dest *dest);

/* Fills attr from the response to QUERY_QP, for QPs and for XRC receive QPs. */
void qp_attr_from_resp(struct ibv_qp_attr *attr, const struct ibv_query_qp_resp *resp);

#endif /* IBVERBS_CMD_H */
