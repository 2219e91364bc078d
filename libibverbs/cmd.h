// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* How commands are written to the kernel, and what several of them share. */

#ifndef IBVERBS_CMD_H
#define IBVERBS_CMD_H

#include <string.h>

#include "ibverbs.h"

/* The number of a command in the kernel's ABI version. */
#define CMD_NUMBER(name) (abi_ver > 2 ? IB_USER_VERBS_CMD_##name : IB_USER_VERBS_CMD_##name##_V2)

/* Fills in the header of a command, without and with a response. What a kernel leaves out of its response
 * reads as zero: no events to wait for, nothing granted. */
#define CMD_INIT(cmd, size, name) \
	do { \
		(cmd)->command = CMD_NUMBER(name); \
		(cmd)->in_words = (size) / 4; \
		(cmd)->out_words = 0; \
	} while (0)

#define CMD_INIT_RESP(cmd, size, name, resp, resp_size) \
	do { \
		CMD_INIT(cmd, size, name); \
		(cmd)->out_words = (resp_size) / 4; \
		(cmd)->response = (uintptr_t)(resp); \
		memset((resp), 0, sizeof(*(resp))); \
	} while (0)

/* Hands a command to the kernel. 0, or a positive errno, which errno has too; EIO when the kernel took
 * only a part of it. */
int cmd_write(const struct ibv_context *context, const void *cmd, size_t size);

/* A kernel of an older ABI gave a shorter core response. Moves the provider's part, which came right
 * behind it, to where the current struct ends. */
void cmd_move_driver_resp(void *resp, size_t resp_size, size_t old_core, size_t core);

/* Waits until *completed has reached what the kernel reported. */
void wait_acked(pthread_mutex_t *mutex, pthread_cond_t *cond, const uint32_t *completed, uint32_t reported);

/* The kernel's form of a path, and back. */
void qp_dest_from_ah(struct ibv_qp_dest *dest, const struct ibv_ah_attr *ah);
void ah_from_qp_dest(struct ibv_ah_attr *ah, const struct ibv_qp_dest *dest);

/* What QUERY_QP answers, for both kinds of QP. */
void qp_attr_from_resp(struct ibv_qp_attr *attr, const struct ibv_query_qp_resp *resp);

#endif /* IBVERBS_CMD_H */
