// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Which XRC the kernel has. The choice is kept in the context's abi_compat, which is the library's. It is
 * made once, without a lock: threads that make it together make the same, and one of them wins. */

#include <string.h>

#include "cmd.h"
#include "kern-abi-mainline.h"
#include "xrc.h"

/*
 * The commands of XRC have numbers that mean one thing to OFED kernels, another to mainline from 3.3 on,
 * and to those of later MLNX_OFED mainline's meaning plus the legacy commands at 43 to 48. The capability
 * bit is the same in all. What tells them apart and does no harm on any:
 *
 * - Command 40 with room for a response of 8 bytes. OFED's CREATE_XRC_RCV_QP needs no more, goes on, and
 *   refuses the domain handle: EINVAL. Mainline's OPEN_QP needs 32 and looks at that before anything
 *   else: ENOSPC. (With more room, some mainline kernels would follow the bad handle to their end.)
 * - After ENOSPC, command 44 without a response. Mainline has none: EINVAL. In the mixed numbering it is
 *   CREATE_XRC_RCV_QP, which wants 8 bytes: ENOSPC.
 *
 * Both go out as CREATE_XRC_RCV_QP with a handle that nobody has.
 */
enum { PROBE_OFED_OR_OPEN_QP = 40, PROBE_MIXED = 44 };

static const struct xrc_kernel xrc_none = { .release = NULL };	/* and nobody calls the others */
static struct xrc_context none = { .kernel = &xrc_none };
static struct xrc_context ofed = { .kernel = &xrc_ofed };

/* What the kernel says to the command: 0 or a positive errno. */
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
		/* The mixed numbering has mainline's commands with mainline's numbers, which will do. */
		*xrc = xrc_mainline_new();
		return *xrc ? 0 : ENOMEM;
	case 0:
		ibverbs_warning("the kernel numbers its XRC commands in a way not known here (%d is OPEN_QP, and %d "
				"takes any domain). XRC is off for %s: use a libibverbs that is made for this kernel.",
				PROBE_OFED_OR_OPEN_QP, PROBE_MIXED, context->device ? context->device->name : "it");
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
		/* Or a kernel that has no such command; but it would not claim to have XRC. */
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
	/* Before 6 there is no XRC, and up to 2 abi_compat is taken. */
	return abi_ver < 6 ? NULL : __atomic_load_n((void *const *)&context->abi_compat, __ATOMIC_ACQUIRE);
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

		if (!__atomic_compare_exchange_n(&context->abi_compat, &unchosen, (void *)chosen, false,
						 __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
			xrc_release(chosen);
			chosen = unchosen;
		}
	}
	if (chosen == &none)
		return ENOSYS;

	*xrc = chosen;
	return 0;
}
