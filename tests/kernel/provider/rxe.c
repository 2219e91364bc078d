// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A Soft-RoCE provider: registration, contexts, and the operations that are one command each. It is
 * a test's vehicle to a real kernel, complete in what it offers; it reaches peers on this host only
 * (see ah.c).
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rxe.h"

static int rxe_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	struct ibv_query_device cmd;
	uint64_t fw_ver;
	int ret;

	ret = ibv_cmd_query_device(context, attr, &fw_ver, &cmd, sizeof(cmd));
	if (ret)
		return ret;

	snprintf(attr->fw_ver, sizeof(attr->fw_ver), "%u.%u.%u",
		 (unsigned int)(fw_ver >> 32 & 0xffff), (unsigned int)(fw_ver >> 16 & 0xffff),
		 (unsigned int)(fw_ver & 0xffff));
	return 0;
}

static int rxe_query_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *attr)
{
	struct ibv_query_port cmd;

	return ibv_cmd_query_port(context, port_num, attr, &cmd, sizeof(cmd));
}

static struct ibv_pd *rxe_alloc_pd(struct ibv_context *context)
{
	struct ibv_alloc_pd_resp resp;
	struct ibv_alloc_pd cmd;
	struct ibv_pd *pd;
	int ret;

	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;

	ret = ibv_cmd_alloc_pd(context, pd, &cmd, sizeof(cmd), &resp, sizeof(resp));
	if (ret) {
		free(pd);
		errno = ret;
		return NULL;
	}

	return pd;
}

static int rxe_dealloc_pd(struct ibv_pd *pd)
{
	int ret = ibv_cmd_dealloc_pd(pd);

	if (!ret)
		free(pd);
	return ret;
}

static struct ibv_mr *rxe_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	struct ibv_reg_mr_resp resp;
	struct ibv_reg_mr cmd;
	struct ibv_mr *mr;
	int ret;

	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return NULL;

	ret = ibv_cmd_reg_mr(pd, addr, length, (uintptr_t)addr, access, mr, &cmd, sizeof(cmd),
			     &resp, sizeof(resp));
	if (ret) {
		free(mr);
		errno = ret;
		return NULL;
	}

	return mr;
}

static int rxe_dereg_mr(struct ibv_mr *mr)
{
	int ret = ibv_cmd_dereg_mr(mr);

	if (!ret)
		free(mr);
	return ret;
}

static const struct ibv_context_ops rxe_context_ops = {
	.query_device = rxe_query_device,
	.query_port = rxe_query_port,
	.alloc_pd = rxe_alloc_pd,
	.dealloc_pd = rxe_dealloc_pd,
	.reg_mr = rxe_reg_mr,
	.dereg_mr = rxe_dereg_mr,
	.create_cq = rxe_create_cq,
	.poll_cq = rxe_poll_cq,
	.req_notify_cq = ibv_cmd_req_notify_cq,
	.resize_cq = rxe_resize_cq,
	.destroy_cq = rxe_destroy_cq,
	.create_srq = rxe_create_srq,
	.modify_srq = rxe_modify_srq,
	.query_srq = rxe_query_srq,
	.destroy_srq = rxe_destroy_srq,
	.post_srq_recv = rxe_post_srq_recv,
	.create_qp = rxe_create_qp,
	.query_qp = rxe_query_qp,
	.modify_qp = rxe_modify_qp,
	.destroy_qp = rxe_destroy_qp,
	.post_send = rxe_post_send,
	.post_recv = rxe_post_recv,
	.create_ah = rxe_create_ah,
	.destroy_ah = rxe_destroy_ah,
	.attach_mcast = ibv_cmd_attach_mcast,
	.detach_mcast = ibv_cmd_detach_mcast,
};

static struct ibv_context *rxe_alloc_context(struct ibv_device *device, int cmd_fd)
{
	struct ibv_get_context_resp resp;
	struct rxe_context *context;
	struct ibv_get_context cmd;
	int ret;

	(void)device;
	context = calloc(1, sizeof(*context));
	if (!context)
		return NULL;

	context->ibv.cmd_fd = cmd_fd;
	ret = ibv_cmd_get_context(&context->ibv, &cmd, sizeof(cmd), &resp, sizeof(resp));
	if (ret) {
		free(context);
		errno = ret;
		return NULL;
	}

	context->ibv.ops = rxe_context_ops;
	context->ibv.more_ops = &rxe_more_ops;
	context->ah_numbers = getenv("RXE_AH_NUMBERS");
	return &context->ibv;
}

static void rxe_free_context(struct ibv_context *context)
{
	free(to_rxe_context(context));
}

/* The device has no parent on the PCI bus to be told by: it is told by its name. */
static struct ibv_device *rxe_init(const char *uverbs_sys_path, int abi_version)
{
	struct ibv_device *device;
	char name[32];

	if (ibv_read_sysfs_file(uverbs_sys_path, "ibdev", name, sizeof(name)) < 0 ||
	    strncmp(name, "rxe", 3))
		return NULL;

	if (abi_version != RXE_DRIVER_ABI) {
		fprintf(stderr, "librxe: driver ABI %d of %s is not %d\n", abi_version,
			uverbs_sys_path, RXE_DRIVER_ABI);
		return NULL;
	}

	device = calloc(1, sizeof(*device));
	if (!device)
		return NULL;

	device->ops.alloc_context = rxe_alloc_context;
	device->ops.free_context = rxe_free_context;
	return device;
}

static __attribute__((constructor)) void rxe_register(void)
{
	ibv_register_driver("rxe", rxe_init);
}
