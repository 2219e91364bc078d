// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The device of fake_provider.h. All its state is in fake_hw. One context can be open at a time. */
#include "fake_provider.h"

#include "fake_sysfs.h"
#include "fake_uverbs.h"

#include <infiniband/driver.h>
#include <infiniband/kern-abi.h>

struct fake_hw fake_hw;

static uint32_t next_handle;

static void answer(size_t offset, uint32_t value)
{
	field_put(fake.response, offset, 4, value);
	if (fake.response_len < offset + 4)
		fake.response_len = offset + 4;
}

static int new_pipe(int *write_end)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC))
		abort();
	if (*write_end >= 0)
		close(*write_end);
	*write_end = fds[1];
	return fds[0];
}

/* The kernel: it gives each new object the next handle. */
static void obey(void)
{
	int number = field_get(fake.command, 0, 4);

	memset(fake.response, 0, sizeof(fake.response));
	fake.response_len = 0;
	if (fake_refuse_probe())
		return;
	++fake_hw.commands;
	__atomic_store_n(&fake_hw.latest, number, __ATOMIC_SEQ_CST);
	if (fake_hw.refuse && fake_hw.refuse_number == number) {
		fake.refuse = fake_hw.refuse;
		fake_hw.refuse = 0;
		return;
	}

	switch (number) {
	case IB_USER_VERBS_CMD_GET_CONTEXT:
		answer(0, new_pipe(&fake_hw.async_write));
		answer(4, 2);
		break;
	case IB_USER_VERBS_CMD_QUERY_DEVICE:
		answer(60, fake_hw.device_cap_flags);
		fake.response_len = 176;
		break;
	case IB_USER_VERBS_CMD_QUERY_PORT:
		fake.response[26] = 4;
		fake.response[37] = 2;
		fake.response_len = 40;
		break;
	case IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL:
		answer(0, new_pipe(&fake_hw.comp_write));
		break;
	case IB_USER_VERBS_CMD_CREATE_CQ:
		answer(0, ++next_handle);
		answer(4, field_get(fake.command, 24, 4) + 5);
		break;
	case IB_USER_VERBS_CMD_RESIZE_CQ:
		answer(0, field_get(fake.command, 20, 4) + 5);
		break;
	case IB_USER_VERBS_CMD_REG_MR:
		answer(0, ++next_handle);
		answer(4, 0x1000 + next_handle);
		answer(8, 0x2000 + next_handle);
		break;
	case IB_USER_VERBS_CMD_CREATE_SRQ:
		answer(0, ++next_handle);
		answer(4, field_get(fake.command, 28, 4) + 7);
		answer(8, field_get(fake.command, 32, 4));
		answer(12, 0);
		break;
	case IB_USER_VERBS_CMD_QUERY_SRQ:
		answer(0, 77);
		answer(4, 3);
		answer(12, 0);
		break;
	case IB_USER_VERBS_CMD_CREATE_QP:
		answer(0, ++next_handle);
		answer(4, 0x100 + next_handle);
		answer(8, field_get(fake.command, 40, 4) + 3);
		answer(12, field_get(fake.command, 44, 4) + 3);
		answer(16, field_get(fake.command, 48, 4));
		answer(20, field_get(fake.command, 52, 4));
		answer(24, field_get(fake.command, 56, 4));
		answer(28, 0);
		break;
	case IB_USER_VERBS_CMD_QUERY_QP:
		answer(64, 0x3333);
		fake.response[108] = fake_hw.next_qp_state;
		fake.response[122] = 1;
		fake.response_len = 128;
		break;
	case IB_USER_VERBS_CMD_DESTROY_CQ:
		answer(0, fake_hw.comp_reported);
		answer(4, fake_hw.async_reported);
		break;
	case IB_USER_VERBS_CMD_DESTROY_QP:
	case IB_USER_VERBS_CMD_DESTROY_SRQ:
		answer(0, fake_hw.async_reported);
		break;
	default:
		answer(0, ++next_handle);
		answer(28, 0);
		break;
	}
}

/* The device node is /dev/null. Commands to it never get there, because write() is the test's. */
static int open_node(const char *path, int flags, mode_t mode)
{
	int fd;

	if (!strncmp(path, "/dev/infiniband/", 16)) {
		fd = syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR);
		fake.fd = fd;
		fake.hook = obey;
		return fd;
	}
	return syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int open(const char *path, int flags, ...)
{
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(args, mode_t) : 0;
	va_end(args);
	return open_node(path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(args, mode_t) : 0;
	va_end(args);
	return open_node(path, flags, mode);
}

void fake_async_event(uint64_t element, uint32_t type)
{
	uint64_t record[2] = {element, type};

	assert_int_equal(write(fake_hw.async_write, record, sizeof(record)), sizeof(record));
}

void fake_comp_event(uint64_t cq_handle)
{
	assert_int_equal(write(fake_hw.comp_write, &cq_handle, sizeof(cq_handle)),
			 sizeof(cq_handle));
}

/*
 * A provider's operation that makes an object by a command. If the command fails, there is no
 * object.
 */
#define MAKE(type, command)                                                                        \
	struct type *object = calloc(1, sizeof(*object));                                          \
	int ret;                                                                                   \
                                                                                                   \
	if (!object)                                                                               \
		return NULL;                                                                       \
	ret = command;                                                                             \
	if (ret) {                                                                                 \
		free(object);                                                                      \
		errno = ret;                                                                       \
		return NULL;                                                                       \
	}                                                                                          \
	return object

#define DESTROY(object, command)                                                                   \
	int ret = command;                                                                         \
                                                                                                   \
	if (!ret)                                                                                  \
		free(object);                                                                      \
	return ret

static int query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	struct ibv_query_device cmd;
	uint64_t fw;

	return ibv_cmd_query_device(context, attr, &fw, &cmd, sizeof(cmd));
}

static int query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr)
{
	struct ibv_query_port cmd;

	return ibv_cmd_query_port(context, port, attr, &cmd, sizeof(cmd));
}

static struct ibv_pd *alloc_pd(struct ibv_context *context)
{
	struct ibv_alloc_pd cmd;
	struct ibv_alloc_pd_resp resp;
	MAKE(ibv_pd, ibv_cmd_alloc_pd(context, object, &cmd, sizeof(cmd), &resp, sizeof(resp)));
}

static int dealloc_pd(struct ibv_pd *pd)
{
	DESTROY(pd, ibv_cmd_dealloc_pd(pd));
}

static struct ibv_mr *reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	struct ibv_reg_mr cmd;
	struct ibv_reg_mr_resp resp;
	MAKE(ibv_mr, ibv_cmd_reg_mr(pd, addr, length, (uintptr_t)addr, access, object, &cmd,
				    sizeof(cmd), &resp, sizeof(resp)));
}

static int dereg_mr(struct ibv_mr *mr)
{
	DESTROY(mr, ibv_cmd_dereg_mr(mr));
}

static struct ibv_cq *create_cq(struct ibv_context *context, int cqe,
				struct ibv_comp_channel *channel, int vector)
{
	struct ibv_create_cq cmd;
	struct ibv_create_cq_resp resp;
	MAKE(ibv_cq, ibv_cmd_create_cq(context, cqe, channel, vector, object, &cmd, sizeof(cmd),
				       &resp, sizeof(resp)));
}

static int resize_cq(struct ibv_cq *cq, int cqe)
{
	struct ibv_resize_cq cmd;
	struct ibv_resize_cq_resp resp;

	return ibv_cmd_resize_cq(cq, cqe, &cmd, sizeof(cmd), &resp, sizeof(resp));
}

static int destroy_cq(struct ibv_cq *cq)
{
	DESTROY(cq, ibv_cmd_destroy_cq(cq));
}

static int poll_cq(struct ibv_cq *cq, int ne, struct ibv_wc *wc)
{
	int i;

	fake_hw.posted_to = cq;
	for (i = 0; i < ne && i < fake_hw.num_completions; ++i) {
		memset(&wc[i], 0, sizeof(wc[i]));
		wc[i].wr_id = 100 + i;
		wc[i].byte_len = 1000 + i;
	}
	fake_hw.num_completions -= i;
	return i;
}

static int req_notify_cq(struct ibv_cq *cq, int solicited)
{
	fake_hw.posted_to = cq;
	fake_hw.notified = solicited;
	return 0;
}

static void cq_event(struct ibv_cq *cq)
{
	(void)cq;
	++fake_hw.cq_events;
}

static void async_event(struct ibv_async_event *event)
{
	(void)event;
	++fake_hw.async_events;
}

static struct ibv_srq *create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct ibv_create_srq cmd;
	struct ibv_create_srq_resp resp;
	MAKE(ibv_srq, ibv_cmd_create_srq(pd, object, attr, &cmd, sizeof(cmd), &resp, sizeof(resp)));
}

static int modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
	struct ibv_modify_srq cmd;

	return ibv_cmd_modify_srq(srq, attr, mask, &cmd, sizeof(cmd));
}

static int query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	struct ibv_query_srq cmd;

	return ibv_cmd_query_srq(srq, attr, &cmd, sizeof(cmd));
}

static int destroy_srq(struct ibv_srq *srq)
{
	DESTROY(srq, ibv_cmd_destroy_srq(srq));
}

static struct ibv_qp *create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_create_qp cmd;
	struct ibv_create_qp_resp resp;
	MAKE(ibv_qp, ibv_cmd_create_qp(pd, object, attr, &cmd, sizeof(cmd), &resp, sizeof(resp)));
}

static int query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		    struct ibv_qp_init_attr *init)
{
	struct ibv_query_qp cmd;

	return ibv_cmd_query_qp(qp, attr, mask, init, &cmd, sizeof(cmd));
}

static int modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	struct ibv_modify_qp cmd;

	return ibv_cmd_modify_qp(qp, attr, mask, &cmd, sizeof(cmd));
}

static int destroy_qp(struct ibv_qp *qp)
{
	DESTROY(qp, ibv_cmd_destroy_qp(qp));
}

/* Returns the next free note, or NULL if the request is to be refused. */
static struct fake_posted *post(void)
{
	struct fake_posted *note = &fake_hw.posted[fake_hw.num_posted];

	if (fake_hw.num_posted == fake_hw.refuse_request || fake_hw.num_posted == FAKE_MAX_POSTED)
		return NULL;
	++fake_hw.num_posted;
	memset(note, 0, sizeof(*note));
	return note;
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct fake_posted *note;

	++fake_hw.post_calls;
	fake_hw.posted_to = qp;
	for (; wr; wr = wr->next) {
		note = post();
		if (!note) {
			*bad = wr;
			return ENOMEM;
		}
		note->wr_id = wr->wr_id;
		note->sg_list = wr->sg_list;
		note->num_sge = wr->num_sge;
		note->opcode = wr->opcode;
		note->send_flags = wr->send_flags;
		note->imm_data = wr->imm_data;
		note->xrc_srq_num = wr->xrc_remote_srq_num;
		if (qp->qp_type == IBV_QPT_UD) {
			note->ah = wr->wr.ud.ah;
			note->rkey = wr->wr.ud.remote_qkey;
		} else {
			note->remote_addr = wr->wr.atomic.remote_addr;
			note->compare_add = wr->wr.atomic.compare_add;
			note->swap = wr->wr.atomic.swap;
			note->rkey = wr->wr.atomic.rkey;
		}
	}
	return 0;
}

static int post_recvs(struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct fake_posted *note;

	++fake_hw.post_calls;
	for (; wr; wr = wr->next) {
		note = post();
		if (!note) {
			*bad = wr;
			return ENOMEM;
		}
		note->wr_id = wr->wr_id;
		note->sg_list = wr->sg_list;
		note->num_sge = wr->num_sge;
	}
	return 0;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	fake_hw.posted_to = qp;
	return post_recvs(wr, bad);
}

static int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	fake_hw.posted_to = srq;
	return post_recvs(wr, bad);
}

static struct ibv_ah *create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	MAKE(ibv_ah, ibv_cmd_create_ah(pd, object, attr));
}

static int destroy_ah(struct ibv_ah *ah)
{
	DESTROY(ah, ibv_cmd_destroy_ah(ah));
}

static struct ibv_srq *create_xrc_srq(struct ibv_pd *pd, struct ibv_xrc_domain *domain,
				      struct ibv_cq *cq, struct ibv_srq_init_attr *attr)
{
	struct ibv_create_xrc_srq cmd;
	struct ibv_create_srq_resp resp;
	MAKE(ibv_srq, ibv_cmd_create_xrc_srq(pd, object, attr, domain->handle, cq->handle, &cmd,
					     sizeof(cmd), &resp, sizeof(resp)));
}

static struct ibv_xrc_domain *open_xrc_domain(struct ibv_context *context, int fd, int oflag)
{
	struct ibv_open_xrc_domain_resp resp;
	MAKE(ibv_xrc_domain,
	     ibv_cmd_open_xrc_domain(context, fd, oflag, object, &resp, sizeof(resp)));
}

static int close_xrc_domain(struct ibv_xrc_domain *domain)
{
	DESTROY(domain, ibv_cmd_close_xrc_domain(domain));
}

static struct ibv_more_ops more_ops = {
	.create_xrc_srq = create_xrc_srq,
	.open_xrc_domain = open_xrc_domain,
	.close_xrc_domain = close_xrc_domain,
	.create_xrc_rcv_qp = ibv_cmd_create_xrc_rcv_qp,
	.modify_xrc_rcv_qp = ibv_cmd_modify_xrc_rcv_qp,
	.query_xrc_rcv_qp = ibv_cmd_query_xrc_rcv_qp,
	.reg_xrc_rcv_qp = ibv_cmd_reg_xrc_rcv_qp,
	.unreg_xrc_rcv_qp = ibv_cmd_unreg_xrc_rcv_qp,
};

static struct ibv_context *alloc_context(struct ibv_device *device, int cmd_fd)
{
	struct ibv_context *context = calloc(1, sizeof(*context));
	struct ibv_get_context cmd;
	struct ibv_get_context_resp resp;

	(void)device;
	if (!context)
		return NULL;
	context->cmd_fd = cmd_fd;
	if (ibv_cmd_get_context(context, &cmd, sizeof(cmd), &resp, sizeof(resp))) {
		free(context);
		return NULL;
	}
	context->ops = (struct ibv_context_ops){
		.query_device = query_device,
		.query_port = query_port,
		.alloc_pd = alloc_pd,
		.dealloc_pd = dealloc_pd,
		.reg_mr = reg_mr,
		.dereg_mr = dereg_mr,
		.create_cq = create_cq,
		.poll_cq = poll_cq,
		.req_notify_cq = req_notify_cq,
		.cq_event = cq_event,
		.resize_cq = resize_cq,
		.destroy_cq = destroy_cq,
		.create_srq = create_srq,
		.modify_srq = modify_srq,
		.query_srq = query_srq,
		.destroy_srq = destroy_srq,
		.post_srq_recv = post_srq_recv,
		.create_qp = create_qp,
		.query_qp = query_qp,
		.modify_qp = modify_qp,
		.destroy_qp = destroy_qp,
		.post_send = post_send,
		.post_recv = post_recv,
		.create_ah = create_ah,
		.destroy_ah = destroy_ah,
		.attach_mcast = ibv_cmd_attach_mcast,
		.detach_mcast = ibv_cmd_detach_mcast,
		.async_event = async_event,
	};
	if (fake_hw.no_optional_ops) {
		context->ops.create_srq = NULL;
		context->ops.resize_cq = NULL;
		context->ops.cq_event = NULL;
		context->ops.async_event = NULL;
	}
	if (!fake_hw.no_more_ops)
		context->more_ops = &more_ops;
	return context;
}

static void free_context(struct ibv_context *context)
{
	free(context);
}

static struct ibv_device *init(const char *uverbs_sys_path, int abi_version)
{
	struct ibv_device *device = calloc(1, sizeof(*device));

	(void)uverbs_sys_path;
	(void)abi_version;
	if (device) {
		device->ops.alloc_context = alloc_context;
		device->ops.free_context = free_context;
	}
	return device;
}

void fake_provider_start(void)
{
	alarm(60);
	memset(&fake_hw, 0, sizeof(fake_hw));
	fake_hw.async_write = fake_hw.comp_write = fake_hw.refuse_request = fake_hw.notified = -1;
	fake_hw.device_cap_flags = IBV_DEVICE_XRC;
	fake_tree_make(fake_hw.sysfs);
	fake_sysfs_abi(fake_hw.sysfs, 6);
	fake_sysfs_device(fake_hw.sysfs, "uverbs0", "fake_0", "fake");
	setenv("SYSFS_PATH", fake_hw.sysfs, 1);
	unsetenv("RDMAV_FORK_SAFE");
	unsetenv("IBV_FORK_SAFE");
	ibv_register_driver("fake", init);
}

void fake_provider_stop(void)
{
	if (fake_hw.async_write >= 0)
		close(fake_hw.async_write);
	if (fake_hw.comp_write >= 0)
		close(fake_hw.comp_write);
	fake_tree_remove(fake_hw.sysfs);
}

struct ibv_device **fake_list;

int fake_group_setup(void **state)
{
	(void)state;
	fake_provider_start();
	fake_list = ibv_get_device_list(NULL);
	return fake_list && fake_list[0] ? 0 : -1;
}

int fake_group_teardown(void **state)
{
	(void)state;
	ibv_free_device_list(fake_list);
	fake_provider_stop();
	return 0;
}
