// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* See fake_rdma_cm.h: the provider. */
#include <errno.h>
#include <fcntl.h>

#include "fake_parts.h"

static struct ibv_device device;
static struct ibv_context *opened;
static uint32_t next_qpn;

static int query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	(void)context;
	memset(attr, 0, sizeof(*attr));
	attr->max_qp_rd_atom = 16;
	attr->max_qp_init_rd_atom = 12;
	attr->device_cap_flags = IBV_DEVICE_XRC;
	return 0;
}

static int query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr)
{
	(void)context;
	(void)port;
	memset(attr, 0, sizeof(*attr));
	attr->pkey_tbl_len = 2;
	return 0;
}

static void *object(size_t size)
{
	fake.objects++;
	return calloc(1, size);
}

static int give_back(void *p)
{
	fake.objects--;
	free(p);
	return 0;
}

static struct ibv_pd *alloc_pd(struct ibv_context *context)
{
	(void)context;
	return object(sizeof(struct ibv_pd));
}

static int dealloc_pd(struct ibv_pd *pd)
{
	return give_back(pd);
}

static struct ibv_cq *create_cq(struct ibv_context *context, int cqe,
				struct ibv_comp_channel *channel, int vector)
{
	(void)context;
	(void)vector;
	fake_note("create_cq %d%s\n", cqe, channel ? " channel" : "");
	return object(sizeof(struct ibv_cq));
}

static int destroy_cq(struct ibv_cq *cq)
{
	fake_note("destroy_cq\n");
	return give_back(cq);
}

static struct ibv_srq *create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	(void)pd;
	(void)attr;
	fake_note("create_srq\n");
	return object(sizeof(struct ibv_srq));
}

static struct ibv_srq *create_xrc_srq(struct ibv_pd *pd, struct ibv_xrc_domain *domain,
				      struct ibv_cq *cq, struct ibv_srq_init_attr *attr)
{
	struct ibv_srq *srq = create_srq(pd, attr);

	(void)domain;
	fake_note("xrc%s\n", cq ? " cq" : "");
	srq->xrc_srq_num = 0x55;
	return srq;
}

static int destroy_srq(struct ibv_srq *srq)
{
	fake_note("destroy_srq\n");
	return give_back(srq);
}

static struct ibv_qp *create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp *qp = object(sizeof(*qp));

	(void)pd;
	fake_note("create_qp type %d%s%s\n", attr->qp_type, attr->srq ? " srq" : "",
		  attr->xrc_domain ? " domain" : "");
	qp->qp_num = ++next_qpn;
	attr->cap.max_send_wr += 3;
	return qp;
}

static int modify(const struct ibv_qp_attr *attr, int mask)
{
	fake_note("modify %d mask %x", attr->qp_state, mask);
	if (mask & IBV_QP_MAX_DEST_RD_ATOMIC)
		fake_note(" dest %u", attr->max_dest_rd_atomic);
	if (mask & IBV_QP_MAX_QP_RD_ATOMIC)
		fake_note(" rd %u", attr->max_rd_atomic);
	if (mask & IBV_QP_QKEY)
		fake_note(" qkey %x", attr->qkey);
	fake_note("\n");
	if (fake.fail_modify && fake.fail_modify_state == (int)attr->qp_state) {
		int err = fake.fail_modify;

		fake.fail_modify = 0;
		return err;
	}
	return 0;
}

static int modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	(void)qp;
	return modify(attr, mask);
}

static int destroy_qp(struct ibv_qp *qp)
{
	fake_note("destroy_qp\n");
	return give_back(qp);
}

static int attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	void (*at_attach)(void) = fake.at_attach;

	(void)qp;
	fake_note("attach ..%02x %x\n", gid->raw[15], lid);
	fake.at_attach = NULL;
	if (at_attach)
		at_attach();
	return fake.fail_attach;
}

static int detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	(void)qp;
	fake_note("detach ..%02x %x\n", gid->raw[15], lid);
	return 0;
}

static struct ibv_xrc_domain *open_xrc_domain(struct ibv_context *context, int fd, int oflag)
{
	struct ibv_xrc_domain *domain = object(sizeof(*domain));

	fake_note("open_xrc_domain %d %d\n", fd, !!(oflag & O_CREAT));
	domain->context = context;
	return domain;
}

static int close_xrc_domain(struct ibv_xrc_domain *domain)
{
	fake_note("close_xrc_domain\n");
	return give_back(domain);
}

static int create_xrc_rcv_qp(struct ibv_qp_init_attr *attr, uint32_t *qpn)
{
	fake_note("create_xrc_rcv_qp%s\n", attr->xrc_domain ? " domain" : "");
	*qpn = 0x800001;
	fake.objects++;
	return 0;
}

static int modify_xrc_rcv_qp(struct ibv_xrc_domain *domain, uint32_t qpn, struct ibv_qp_attr *attr,
			     int mask)
{
	(void)domain;
	fake_note("xrc_rcv %x ", qpn);
	return modify(attr, mask);
}

static int unreg_xrc_rcv_qp(struct ibv_xrc_domain *domain, uint32_t qpn)
{
	(void)domain;
	fake_note("unreg_xrc_rcv_qp %x\n", qpn);
	fake.objects--;
	return 0;
}

static struct ibv_more_ops more_ops = {
	.create_xrc_srq = create_xrc_srq,
	.open_xrc_domain = open_xrc_domain,
	.close_xrc_domain = close_xrc_domain,
	.create_xrc_rcv_qp = create_xrc_rcv_qp,
	.modify_xrc_rcv_qp = modify_xrc_rcv_qp,
	.unreg_xrc_rcv_qp = unreg_xrc_rcv_qp,
};

static struct ibv_context *alloc_context(struct ibv_device *dev, int cmd_fd)
{
	struct ibv_context *context = calloc(1, sizeof(*context));

	(void)dev;
	context->cmd_fd = cmd_fd;
	context->async_fd = -1;
	context->num_comp_vectors = 1;
	context->ops.query_device = query_device;
	context->ops.query_port = query_port;
	context->ops.alloc_pd = alloc_pd;
	context->ops.dealloc_pd = dealloc_pd;
	context->ops.create_cq = create_cq;
	context->ops.destroy_cq = destroy_cq;
	context->ops.create_srq = create_srq;
	context->ops.destroy_srq = destroy_srq;
	context->ops.create_qp = create_qp;
	context->ops.modify_qp = modify_qp;
	context->ops.destroy_qp = destroy_qp;
	context->ops.attach_mcast = attach_mcast;
	context->ops.detach_mcast = detach_mcast;
	context->more_ops = &more_ops;
	opened = context;
	return context;
}

static void free_context(struct ibv_context *context)
{
	free(context);
}

struct ibv_device *fake_driver_init(const char *path, int abi_version)
{
	(void)path;
	(void)abi_version;
	device.ops.alloc_context = alloc_context;
	device.ops.free_context = free_context;
	return &device;
}

void fake_provider_reset(void)
{
	next_qpn = 100;
}

void fake_provider_stop(void)
{
	free(opened);
}
