// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* What a provider plug-in needs: how to register, and the command channel to the kernel. Every layout
 * in verbs.h that a provider embeds is part of this ABI too. */

#ifndef INFINIBAND_DRIVER_H
#define INFINIBAND_DRIVER_H

#include <infiniband/verbs.h>
#include <infiniband/kern-abi.h>

/* A bare token: plug-ins are named lib<name>-rdmav2.so. */
#define IBV_DEVICE_LIBRARY_EXTENSION rdmav2

#define IBV_CMD_REG_MR_HAS_RESP_PARAMS
#define IBV_CMD_RESIZE_CQ_HAS_RESP_PARAMS

BEGIN_C_DECLS

/*
 * A provider's init function gets the sysfs path of a uverbs device and the ABI version of its kernel
 * driver. It returns NULL when the device is not the provider's, else a struct ibv_device of which it has
 * set ops; the library fills in the rest and keeps the object for the life of the process. A provider that
 * cannot drive a device of its own, and has told the user so in a line on stderr, returns NULL with errno
 * EPROTONOSUPPORT: the library then says nothing more about that device.
 *
 * ops.alloc_context allocates a zeroed struct ibv_context (or one whose more_ops is NULL or valid), sets
 * its cmd_fd and calls ibv_cmd_get_context(); it returns NULL with errno set on failure. ops.free_context
 * frees it; the library closes the descriptors.
 */
typedef struct ibv_device *(*ibv_driver_init_func)(const char *uverbs_sys_path, int abi_version);

/* To be called from a constructor of the plug-in. name is kept, not copied. Drivers are tried in the
 * order of registration. */
void ibv_register_driver(const char *name, ibv_driver_init_func init_func);

/*
 * Commands. cmd points to room for the core struct and whatever the provider adds behind it, cmd_size is
 * the size of both; resp and resp_size likewise. The library fills in the core part of cmd. On success
 * it has filled in the object given (handle, keys, granted sizes), and resp holds the response, the
 * provider's part always at the place that the newest kernel ABI gives it.
 *
 * Each returns 0 or a positive errno: the kernel's, ENOMEM, or ENOSYS where the kernel's ABI version does
 * not have the command. Nothing is changed on failure. The library does not allocate or free objects.
 */
int ibv_cmd_get_context(struct ibv_context *context, struct ibv_get_context *cmd, size_t cmd_size,
			struct ibv_get_context_resp *resp, size_t resp_size);
/* fw_ver of device_attr is zeroed, for the provider to print *raw_fw_ver into. */
int ibv_cmd_query_device(struct ibv_context *context, struct ibv_device_attr *device_attr,
			 uint64_t *raw_fw_ver, struct ibv_query_device *cmd, size_t cmd_size);

/* Fills port_attr, link_layer from kernels that have it. port_num counts from 1. */
int ibv_cmd_query_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *port_attr,
		       struct ibv_query_port *cmd, size_t cmd_size);

/* Sets context and handle of pd. */
int ibv_cmd_alloc_pd(struct ibv_context *context, struct ibv_pd *pd, struct ibv_alloc_pd *cmd,
		     size_t cmd_size, struct ibv_alloc_pd_resp *resp, size_t resp_size);

/* EBUSY while something of it lives. */
int ibv_cmd_dealloc_pd(struct ibv_pd *pd);

/* XRC domains: ENOSYS below kernel ABI 6. open: errors as ibv_open_xrc_domain(). */
int ibv_cmd_open_xrc_domain(struct ibv_context *context, int fd, int oflag, struct ibv_xrc_domain *d,
			    struct ibv_open_xrc_domain_resp *resp, size_t resp_size);

/* EBUSY while this context has something in it. */
int ibv_cmd_close_xrc_domain(struct ibv_xrc_domain *d);

/* Sets context, handle, lkey and rkey of mr. hca_va is the address that peers and sg lists use
 * for addr; both must have the same offset in their page. */
int ibv_cmd_reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t hca_va, int access,
		   struct ibv_mr *mr, struct ibv_reg_mr *cmd, size_t cmd_size,
		   struct ibv_reg_mr_resp *resp, size_t resp_size);

/* Its keys are dead afterwards. EBUSY: memory windows are bound to it. */
int ibv_cmd_dereg_mr(struct ibv_mr *mr);

/* Sets context, handle and cqe, the entries granted, of cq. channel may be NULL. */
int ibv_cmd_create_cq(struct ibv_context *context, int cqe, struct ibv_comp_channel *channel,
		      int comp_vector, struct ibv_cq *cq, struct ibv_create_cq *cmd, size_t cmd_size,
		      struct ibv_create_cq_resp *resp, size_t resp_size);
/* Returns the number of completions, or -1. */
int ibv_cmd_poll_cq(struct ibv_cq *cq, int ne, struct ibv_wc *wc);

/* For providers that cannot arm a CQ by themselves; ConnectX can. */
int ibv_cmd_req_notify_cq(struct ibv_cq *cq, int solicited_only);

/* Sets cqe, the entries granted, of cq. */
int ibv_cmd_resize_cq(struct ibv_cq *cq, int cqe, struct ibv_resize_cq *cmd, size_t cmd_size,
		      struct ibv_resize_cq_resp *resp, size_t resp_size);
/* This and the other destroys wait until the events that the kernel reported are acknowledged. */
int ibv_cmd_destroy_cq(struct ibv_cq *cq);

/* Sets context and handle of srq, and the sizes granted in attr->attr. */
int ibv_cmd_create_srq(struct ibv_pd *pd, struct ibv_srq *srq, struct ibv_srq_init_attr *attr,
		       struct ibv_create_srq *cmd, size_t cmd_size, struct ibv_create_srq_resp *resp,
		       size_t resp_size);
/* xrc_domain and xrc_cq are handles. The SRQ number is in the provider's part of the response. */
int ibv_cmd_create_xrc_srq(struct ibv_pd *pd, struct ibv_srq *srq, struct ibv_srq_init_attr *attr,
			   uint32_t xrc_domain, uint32_t xrc_cq, struct ibv_create_xrc_srq *cmd,
			   size_t cmd_size, struct ibv_create_srq_resp *resp, size_t resp_size);

/* srq_attr_mask is of enum ibv_srq_attr_mask; srq_attr is read only. */
int ibv_cmd_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *srq_attr, int srq_attr_mask,
		       struct ibv_modify_srq *cmd, size_t cmd_size);

/* Fills srq_attr. */
int ibv_cmd_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *srq_attr, struct ibv_query_srq *cmd,
		      size_t cmd_size);

/* EBUSY while QPs use it. */
int ibv_cmd_destroy_srq(struct ibv_srq *srq);

/* Sets context, handle and qp_num of qp, and the sizes granted in attr->cap. */
int ibv_cmd_create_qp(struct ibv_pd *pd, struct ibv_qp *qp, struct ibv_qp_init_attr *attr,
		      struct ibv_create_qp *cmd, size_t cmd_size, struct ibv_create_qp_resp *resp,
		      size_t resp_size);

/* Fills qp_attr and qp_init_attr, whatever attr_mask says. qp itself stays as it is. */
int ibv_cmd_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *qp_attr, int attr_mask,
		     struct ibv_qp_init_attr *qp_init_attr, struct ibv_query_qp *cmd, size_t cmd_size);

/* Sets what attr_mask names; the rest of attr may be anything. qp itself stays as it is. */
int ibv_cmd_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
		      struct ibv_modify_qp *cmd, size_t cmd_size);

/* EBUSY while it is in a multicast group. */
int ibv_cmd_destroy_qp(struct ibv_qp *qp);

/* XRC receive QPs: ENOSYS below kernel ABI 6. query sets cap and sq_sig_all of init_attr only.
 * The QP is the kernel's: its number is all there is of it here. */
int ibv_cmd_create_xrc_rcv_qp(struct ibv_qp_init_attr *init_attr, uint32_t *xrc_rcv_qpn);

/* As ibv_modify_xrc_rcv_qp(). */
int ibv_cmd_modify_xrc_rcv_qp(struct ibv_xrc_domain *d, uint32_t xrc_rcv_qpn, struct ibv_qp_attr *attr,
			      int attr_mask);

/* As ibv_query_xrc_rcv_qp(). */
int ibv_cmd_query_xrc_rcv_qp(struct ibv_xrc_domain *d, uint32_t xrc_rcv_qpn, struct ibv_qp_attr *attr,
			     int attr_mask, struct ibv_qp_init_attr *init_attr);

/* As ibv_reg_xrc_rcv_qp(). */
int ibv_cmd_reg_xrc_rcv_qp(struct ibv_xrc_domain *xrc_domain, uint32_t xrc_qp_num);

/* As ibv_unreg_xrc_rcv_qp(). */
int ibv_cmd_unreg_xrc_rcv_qp(struct ibv_xrc_domain *xrc_domain, uint32_t xrc_qp_num);

/* Posting through the kernel; on failure *bad_wr is the first that was not posted. Not for XRC sends: the
 * command has no room for the SRQ number. */
int ibv_cmd_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);

/* The same for receives. */
int ibv_cmd_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);

/* The same for receives of an SRQ. */
int ibv_cmd_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);

/* For providers whose device must be told of address handles; those of ConnectX are in its
 * requests. */
int ibv_cmd_create_ah(struct ibv_pd *pd, struct ibv_ah *ah, struct ibv_ah_attr *attr);

/* The inverse. */
int ibv_cmd_destroy_ah(struct ibv_ah *ah);

/* lid is the group's, in host order. */
int ibv_cmd_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid);

/* EINVAL: the QP is not in the group. */
int ibv_cmd_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid);

/*
 * Memory that the HCA uses and that is not registered through ibv_reg_mr(): a provider's queues. After
 * ibv_fork_init() the pages of the range are kept from children until as many dofork calls as dontfork
 * calls have covered them. 0, or non-zero with errno set and nothing changed.
 */
int ibv_dontfork_range(void *base, size_t size);

/* The inverse; as above. */
int ibv_dofork_range(void *base, size_t size);

/*
 * sysfs
 */

/* Its root, without a trailing slash. The string stays the library's. */
const char *ibv_get_sysfs_path(void);

/* Reads up to size bytes of dir/file and takes one newline off the end (putting a NUL there). Returns the
 * length, or -1 with errno. Text that fills the buffer, or lacks the newline, is not NUL-terminated. */
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);

/* The Ethernet addressing of a GID on a port whose link layer is Ethernet: mac[6], the VLAN of our own
 * sgid_index, whether there is one, and whether the MAC is a group. -EINVAL: neither a link local nor a
 * multicast GID; -1: no such sgid_index. */
int ibv_resolve_eth_gid(const struct ibv_pd *pd, uint8_t port_num, union ibv_gid *dgid,
			uint8_t sgid_index, uint8_t mac[], uint16_t *vlan, uint8_t *tagged,
			uint8_t *is_mcast);

END_C_DECLS

#endif /* INFINIBAND_DRIVER_H */
