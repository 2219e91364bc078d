// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What the tests of the ibv_cmd_ calls share: a context on the fake kernel, objects in it, and a
 * kernel ABI version.
 */
#ifndef TESTS_CMD_H
#define TESTS_CMD_H

#include "fake_sysfs.h"
#include "fake_uverbs.h"

#include <infiniband/driver.h>
#include <infiniband/verbs.h>

/* Before each command, fake_dirty() leaves garbage on the stack and on the heap. */
#define ibv_cmd_alloc_pd(...)	       (fake_dirty(), ibv_cmd_alloc_pd(__VA_ARGS__))
#define ibv_cmd_attach_mcast(...)      (fake_dirty(), ibv_cmd_attach_mcast(__VA_ARGS__))
#define ibv_cmd_close_xrc_domain(...)  (fake_dirty(), ibv_cmd_close_xrc_domain(__VA_ARGS__))
#define ibv_cmd_create_ah(...)	       (fake_dirty(), ibv_cmd_create_ah(__VA_ARGS__))
#define ibv_cmd_create_cq(...)	       (fake_dirty(), ibv_cmd_create_cq(__VA_ARGS__))
#define ibv_cmd_create_qp(...)	       (fake_dirty(), ibv_cmd_create_qp(__VA_ARGS__))
#define ibv_cmd_create_srq(...)	       (fake_dirty(), ibv_cmd_create_srq(__VA_ARGS__))
#define ibv_cmd_create_xrc_rcv_qp(...) (fake_dirty(), ibv_cmd_create_xrc_rcv_qp(__VA_ARGS__))
#define ibv_cmd_create_xrc_srq(...)    (fake_dirty(), ibv_cmd_create_xrc_srq(__VA_ARGS__))
#define ibv_cmd_dealloc_pd(...)	       (fake_dirty(), ibv_cmd_dealloc_pd(__VA_ARGS__))
#define ibv_cmd_dereg_mr(...)	       (fake_dirty(), ibv_cmd_dereg_mr(__VA_ARGS__))
#define ibv_cmd_destroy_ah(...)	       (fake_dirty(), ibv_cmd_destroy_ah(__VA_ARGS__))
#define ibv_cmd_destroy_cq(...)	       (fake_dirty(), ibv_cmd_destroy_cq(__VA_ARGS__))
#define ibv_cmd_destroy_qp(...)	       (fake_dirty(), ibv_cmd_destroy_qp(__VA_ARGS__))
#define ibv_cmd_destroy_srq(...)       (fake_dirty(), ibv_cmd_destroy_srq(__VA_ARGS__))
#define ibv_cmd_detach_mcast(...)      (fake_dirty(), ibv_cmd_detach_mcast(__VA_ARGS__))
#define ibv_cmd_get_context(...)       (fake_dirty(), ibv_cmd_get_context(__VA_ARGS__))
#define ibv_cmd_modify_qp(...)	       (fake_dirty(), ibv_cmd_modify_qp(__VA_ARGS__))
#define ibv_cmd_modify_srq(...)	       (fake_dirty(), ibv_cmd_modify_srq(__VA_ARGS__))
#define ibv_cmd_modify_xrc_rcv_qp(...) (fake_dirty(), ibv_cmd_modify_xrc_rcv_qp(__VA_ARGS__))
#define ibv_cmd_open_xrc_domain(...)   (fake_dirty(), ibv_cmd_open_xrc_domain(__VA_ARGS__))
#define ibv_cmd_poll_cq(...)	       (fake_dirty(), ibv_cmd_poll_cq(__VA_ARGS__))
#define ibv_cmd_post_recv(...)	       (fake_dirty(), ibv_cmd_post_recv(__VA_ARGS__))
#define ibv_cmd_post_send(...)	       (fake_dirty(), ibv_cmd_post_send(__VA_ARGS__))
#define ibv_cmd_post_srq_recv(...)     (fake_dirty(), ibv_cmd_post_srq_recv(__VA_ARGS__))
#define ibv_cmd_query_device(...)      (fake_dirty(), ibv_cmd_query_device(__VA_ARGS__))
#define ibv_cmd_query_port(...)	       (fake_dirty(), ibv_cmd_query_port(__VA_ARGS__))
#define ibv_cmd_query_qp(...)	       (fake_dirty(), ibv_cmd_query_qp(__VA_ARGS__))
#define ibv_cmd_query_srq(...)	       (fake_dirty(), ibv_cmd_query_srq(__VA_ARGS__))
#define ibv_cmd_query_xrc_rcv_qp(...)  (fake_dirty(), ibv_cmd_query_xrc_rcv_qp(__VA_ARGS__))
#define ibv_cmd_reg_mr(...)	       (fake_dirty(), ibv_cmd_reg_mr(__VA_ARGS__))
#define ibv_cmd_reg_xrc_rcv_qp(...)    (fake_dirty(), ibv_cmd_reg_xrc_rcv_qp(__VA_ARGS__))
#define ibv_cmd_req_notify_cq(...)     (fake_dirty(), ibv_cmd_req_notify_cq(__VA_ARGS__))
#define ibv_cmd_resize_cq(...)	       (fake_dirty(), ibv_cmd_resize_cq(__VA_ARGS__))
#define ibv_cmd_unreg_xrc_rcv_qp(...)  (fake_dirty(), ibv_cmd_unreg_xrc_rcv_qp(__VA_ARGS__))

#define U8(offset, value)                                                                          \
	{                                                                                          \
		offset, 1, value                                                                   \
	}
#define U16(offset, value)                                                                         \
	{                                                                                          \
		offset, 2, value                                                                   \
	}
#define U32(offset, value)                                                                         \
	{                                                                                          \
		offset, 4, value                                                                   \
	}
#define U64(offset, value)                                                                         \
	{                                                                                          \
		offset, 8, value                                                                   \
	}

/* The fields of an address vector, struct ibv_kern_ah_attr, that begins at `at`. */
#define AV(at, av)                                                                                 \
	U64(at, field_get(av.grh.dgid.raw, 0, 8)), U64(at + 8, field_get(av.grh.dgid.raw, 8, 8)),  \
		U32(at + 16, av.grh.flow_label), U16(at + 20, av.dlid),                            \
		U8(at + 24, av.grh.sgid_index), U8(at + 25, av.grh.hop_limit),                     \
		U8(at + 26, av.grh.traffic_class), U8(at + 27, av.sl),                             \
		U8(at + 28, av.src_path_bits), U8(at + 29, av.static_rate),                        \
		U8(at + 30, av.is_global), U8(at + 31, av.port_num)

static char cmd_sysfs[FAKE_PATH_MAX];
static struct ibv_context context;
static struct ibv_pd pd = {.context = &context, .handle = 0x9d};
static struct ibv_cq send_cq, recv_cq;
static struct ibv_srq srq;
static struct ibv_qp qp;

/* The library reads the kernel's ABI version again at each discovery that finds no device. */
static void cmd_set_abi(int abi)
{
	struct ibv_device **list;
	int n = -1;

	fake_sysfs_abi(cmd_sysfs, abi);
	list = ibv_get_device_list(&n);
	assert_non_null(list);
	assert_int_equal(n, 0);
	ibv_free_device_list(list);
	fake_dirty();
}

static int cmd_group_setup(void **state)
{
	(void)state;
	alarm(60);
	fake_tree_make(cmd_sysfs);
	setenv("SYSFS_PATH", cmd_sysfs, 1);
	unsetenv("RDMAV_DRIVERS");
	unsetenv("IBV_DRIVERS");
	fake_sysfs_abi(cmd_sysfs, 6);
	return 0;
}

static int cmd_group_teardown(void **state)
{
	(void)state;
	fake_tree_remove(cmd_sysfs);
	return 0;
}

static void cmd_init_cq(struct ibv_cq *cq, uint32_t handle)
{
	memset(cq, 0, sizeof(*cq));
	cq->context = &context;
	cq->handle = handle;
	pthread_mutex_init(&cq->mutex, NULL);
	pthread_cond_init(&cq->cond, NULL);
}

static int cmd_query_device(struct ibv_context *ctx, struct ibv_device_attr *attr)
{
	(void)ctx;
	memset(attr, 0, sizeof(*attr));
	attr->device_cap_flags = IBV_DEVICE_XRC;
	return 0;
}

static int cmd_setup(void **state)
{
	(void)state;
	fake_reset();
	fake.hook = fake_ofed;
	memset(&context, 0, sizeof(context));
	context.cmd_fd = fake.fd;
	context.async_fd = -1;
	context.ops.query_device = cmd_query_device;
	pthread_mutex_init(&context.mutex, NULL);

	cmd_init_cq(&send_cq, 0x5c);
	cmd_init_cq(&recv_cq, 0x4c);

	memset(&srq, 0, sizeof(srq));
	srq.context = &context;
	srq.handle = 0x54;
	pthread_mutex_init(&srq.mutex, NULL);
	pthread_cond_init(&srq.cond, NULL);

	memset(&qp, 0, sizeof(qp));
	qp.context = &context;
	qp.pd = &pd;
	qp.send_cq = &send_cq;
	qp.recv_cq = &recv_cq;
	qp.handle = 0x99;
	qp.qp_type = IBV_QPT_RC;
	pthread_mutex_init(&qp.mutex, NULL);
	pthread_cond_init(&qp.cond, NULL);

	cmd_set_abi(6);
	return 0;
}

/*
 * What each command must do if the kernel refuses it: return the kernel's errno. If the write is
 * short, it must return an error and take nothing from the response.
 */
#define cmd_check_refusals(call)                                                                   \
	do {                                                                                       \
		fake.refuse = EPERM;                                                               \
		assert_int_equal(call, EPERM);                                                     \
		errno = EIO;                                                                       \
		fake.shorten = 4;                                                                  \
		assert_int_not_equal(call, 0);                                                     \
	} while (0)

#endif
