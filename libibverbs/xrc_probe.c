// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Finds out which XRC the kernel has. The choice is kept in abi_compat of the context, which
 * belongs to the library. It is made once and without a lock: threads that make it at the same time
 * find the same, and one of them stores it. */

#include <string.h>

#include "cmd.h"
#include "kern-abi-mainline.h"
#include "xrc.h"

/*
 * The numbers of the XRC commands mean one thing to OFED kernels and another to mainline kernels
 * from 3.3 on. Kernels of later MLNX_OFED have mainline's commands, plus the legacy ones at 43 to
 * 48. The capability bit is the same in all of them. Two commands tell the kernels apart and do no
 * harm on any:
 *
 * - Command 40 with room for a response of 8 bytes. For OFED's CREATE_XRC_RCV_QP this is enough,
 *   and it refuses the domain handle: EINVAL. Mainline's OPEN_QP needs 32 bytes and checks that
 *   first: ENOSPC. (With more room, some mainline kernels would use the bad handle and crash.)
 * - After ENOSPC, command 44 without a response. Mainline has no such command: EINVAL. In the mixed
 *   numbering it is CREATE_XRC_RCV_QP, which needs 8 bytes: ENOSPC.
 *
 * The library writes both as CREATE_XRC_RCV_QP with a handle that is not in use.
 */
enum { PROBE_OFED_OR_OPEN_QP = 40, PROBE_MIXED = 44 };

static const struct xrc_kernel xrc_none = {.release = NULL}; /* the rest is never called */
static struct xrc_context none = {.kernel = &xrc_none};
static struct xrc_context ofed = {.kernel = &xrc_ofed};

/* Writes the command and returns the kernel's answer: 0 or a positive errno value. */
static int probe(struct ibv_context *context, uint32_t number, size_t resp_size)
{
	struct ibv_create_xrc_rcv_qp_resp resp;
	struct ibv_create_xrc_rcv_qp cmd;

	memset(&cmd, 0, sizeof(cmd));
	CMD_INIT_RESP(&cmd, sizeof(cmd), CREATE_XRC_RCV_QP, &resp, resp_size);
	if (!resp_size)
		cmd.response = 0;
	cmd.command = number;
	cmd.xrc_domain_handle = UINT32_MAX;

	return cmd_write(context, &cmd, sizeof(cmd));
}

static int probe_mainline(struct ibv_context *context, struct xrc_context **xrc)
{
	int ret = probe(context, PROBE_MIXED, 0);

	switch (ret) {
	case EINVAL:
	case ENOSYS:
	case EOPNOTSUPP:
	case ENOSPC:
		/* The mixed numbering contains mainline's commands with mainline's numbers. */
		*xrc = xrc_mainline_new();
		return *xrc ? 0 : ENOMEM;
	case 0:
		ibverbs_warning("the kernel numbers its XRC commands in a way not known here "
				"(command %d is OPEN_QP, and "
				"command %d takes any domain). XRC is off for %s: use a libibverbs "
				"made for this kernel.",
				PROBE_OFED_OR_OPEN_QP, PROBE_MIXED,
				context->device ? context->device->name : "the device");
		*xrc = &none;
		return 0;
	default:
		return ret;
	}
}

static int ask_kernel(struct ibv_context *context, struct xrc_context **xrc)
{
	struct ibv_device_attr attr;
	int ret;

	ret = context->ops.query_device(context, &attr);
	if (ret)
		return ret > 0 ? ret : EIO;

	*xrc = &none;
	if (!(attr.device_cap_flags & IBV_DEVICE_XRC))
		return 0;

	ret = probe(context, PROBE_OFED_OR_OPEN_QP, sizeof(struct ibv_create_xrc_rcv_qp_resp));
	switch (ret) {
	case EINVAL:
		/*
		 * A kernel without the command also returns EINVAL, but such a kernel does not
		 * claim to have XRC.
		 */
		*xrc = &ofed;
		return 0;
	case ENOSPC:
		return probe_mainline(context, xrc);
	case 0:
	case ENOSYS:
	case EOPNOTSUPP:
		return 0;
	default:
		return ret;
	}
}

struct xrc_context *xrc_chosen(const struct ibv_context *context)
{
	/* Kernel ABIs below 6 have no XRC, and with 1 and 2 abi_compat has another use. */
	return abi_ver < 6 ? NULL
			   : __atomic_load_n((void *const *)&context->abi_compat, __ATOMIC_ACQUIRE);
}

int xrc_choose(struct ibv_context *context, struct xrc_context **xrc)
{
	struct xrc_context *chosen = xrc_chosen(context);
	void *unchosen = NULL;
	int ret;

	if (abi_ver < 6)
		return ENOSYS;

	if (!chosen) {
		ret = ask_kernel(context, &chosen);
		if (ret)
			return ret;

		if (!__atomic_compare_exchange_n(&context->abi_compat, &unchosen, (void *)chosen,
						 false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
			xrc_release(chosen);
			chosen = unchosen;
		}
	}
	if (chosen == &none)
		return ENOSYS;

	*xrc = chosen;
	return 0;
}
