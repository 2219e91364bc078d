// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* What a provider plug-in needs: registration, and the command channel to the kernel. All layouts
 * in verbs.h that a provider embeds are part of this ABI too. */

#ifndef INFINIBAND_DRIVER_H
#define INFINIBAND_DRIVER_H

#include <infiniband/verbs.h>
#include <infiniband/kern-abi.h>

/* A bare token, without quotes. Plug-ins are named lib<name>-rdmav2.so. */
#define IBV_DEVICE_LIBRARY_EXTENSION rdmav2

#define IBV_CMD_REG_MR_HAS_RESP_PARAMS
#define IBV_CMD_RESIZE_CQ_HAS_RESP_PARAMS

BEGIN_C_DECLS

/*
 * The init function of a provider. uverbs_sys_path is the sysfs path of a uverbs device, and
 * abi_version the ABI version of its kernel driver. If the provider does not drive the device, the
 * function returns NULL. Otherwise it returns a struct ibv_device in which it has set ops; the
 * library sets the other members and keeps the object until the process ends. If the device is the
 * provider's, but the provider cannot drive it, the function tells the user why in a line on stderr
 * and returns NULL with errno EPROTONOSUPPORT. The library then prints nothing more about it.
 *
 * ops.alloc_context allocates a zeroed struct ibv_context (or one whose more_ops is NULL or valid),
 * sets its cmd_fd and calls ibv_cmd_get_context(). On failure it returns NULL and sets errno.
 * ops.free_context frees the context; the library closes the descriptors.
 */
typedef struct ibv_device *(*ibv_driver_init_func)(const char *uverbs_sys_path, int abi_version);

/* Registers a driver. A constructor of the plug-in calls this. The library keeps name and does not
 * copy it. It tries drivers in the order of registration. */
void ibv_register_driver(const char *name, ibv_driver_init_func init_func);

/*
 * Commands. cmd points to the core struct followed by the provider's part; cmd_size is the size of
 * both. resp and resp_size likewise. The library sets the core part of cmd. On success it has set
 * the members of the object that the command reports (handle, keys, granted sizes), and resp holds
 * the response. The provider's part of it is always where the newest kernel ABI puts it.
 *
 * Each function returns 0 or a positive errno value: the kernel's, ENOMEM, or ENOSYS if the
 * kernel's ABI version does not have the command. On failure nothing has changed. The library
 * neither allocates nor frees objects.
 */
int ibv_cmd_get_context(struct ibv_context *context, struct ibv_get_context *cmd, size_t cmd_size,
			struct ibv_get_context_resp *resp, size_t resp_size);
/* Zeroes fw_ver of device_attr; the provider prints *raw_fw_ver into it. */
int ibv_cmd_query_device(struct ibv_context *context, struct ibv_device_attr *device_attr,
			 uint64_t *raw_fw_ver, struct ibv_query_device *cmd, size_t cmd_size);

/* Fills port_attr, with link_layer if the kernel reports it. port_num counts from 1. */
int ibv_cmd_query_port(struct ibv_context *context, uint8_t port_num,
		       struct ibv_port_attr *port_attr, struct ibv_query_port *cmd,
		       size_t cmd_size);

/* Sets context and handle of pd. */
int ibv_cmd_alloc_pd(struct ibv_context *context, struct ibv_pd *pd, struct ibv_alloc_pd *cmd,
		     size_t cmd_size, struct ibv_alloc_pd_resp *resp, size_t resp_size);

/* EBUSY: an object in the domain exists. */
int ibv_cmd_dealloc_pd(struct ibv_pd *pd);

/* XRC domains: ENOSYS below kernel ABI 6. Opening fails as ibv_open_xrc_domain() does. */
int ibv_cmd_open_xrc_domain(struct ibv_context *context, int fd, int oflag,
			    struct ibv_xrc_domain *d, struct ibv_open_xrc_domain_resp *resp,
			    size_t resp_size);

/* EBUSY: this context has objects or registrations in the domain. */
int ibv_cmd_close_xrc_domain(struct ibv_xrc_domain *d);

/* Sets context, handle, lkey and rkey of mr. hca_va is the address that peers and scatter/gather
 * lists use for addr; both must have the same offset in their page. */
int ibv_cmd_reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t hca_va, int access,
		   struct ibv_mr *mr, struct ibv_reg_mr *cmd, size_t cmd_size,
		   struct ibv_reg_mr_resp *resp, size_t resp_size);

/* Ends the registration. EBUSY: memory windows are bound to it. */
int ibv_cmd_dereg_mr(struct ibv_mr *mr);

/* Sets context, handle and cqe (the granted number of CQEs) of cq. channel may be NULL. */
int ibv_cmd_create_cq(struct ibv_context *context, int cqe, struct ibv_comp_channel *channel,
		      int comp_vector, struct ibv_cq *cq, struct ibv_create_cq *cmd,
		      size_t cmd_size, struct ibv_create_cq_resp *resp, size_t resp_size);
/* Returns the number of completions, or -1 with errno set. */
int ibv_cmd_poll_cq(struct ibv_cq *cq, int ne, struct ibv_wc *wc);

/* For providers that arm a CQ by a command. ConnectX does not need it. */
int ibv_cmd_req_notify_cq(struct ibv_cq *cq, int solicited_only);

/* Sets cqe of cq to the granted number of CQEs. */
int ibv_cmd_resize_cq(struct ibv_cq *cq, int cqe, struct ibv_resize_cq *cmd, size_t cmd_size,
		      struct ibv_resize_cq_resp *resp, size_t resp_size);
/* All destroy commands below wait until the program has acknowledged the events that the kernel
 * reported. */
int ibv_cmd_destroy_cq(struct ibv_cq *cq);

/* Sets context and handle of srq, and the granted sizes in attr->attr. */
int ibv_cmd_create_srq(struct ibv_pd *pd, struct ibv_srq *srq, struct ibv_srq_init_attr *attr,
		       struct ibv_create_srq *cmd, size_t cmd_size,
		       struct ibv_create_srq_resp *resp, size_t resp_size);
/* xrc_domain and xrc_cq are handles. The provider's part of the response has the SRQ number. */
int ibv_cmd_create_xrc_srq(struct ibv_pd *pd, struct ibv_srq *srq, struct ibv_srq_init_attr *attr,
			   uint32_t xrc_domain, uint32_t xrc_cq, struct ibv_create_xrc_srq *cmd,
			   size_t cmd_size, struct ibv_create_srq_resp *resp, size_t resp_size);

/* srq_attr_mask: enum ibv_srq_attr_mask. The function only reads srq_attr. */
int ibv_cmd_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *srq_attr, int srq_attr_mask,
		       struct ibv_modify_srq *cmd, size_t cmd_size);

/* Fills srq_attr. */
int ibv_cmd_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *srq_attr, struct ibv_query_srq *cmd,
		      size_t cmd_size);

/* EBUSY: a QP uses the SRQ. */
int ibv_cmd_destroy_srq(struct ibv_srq *srq);

/* Sets context, handle and qp_num of qp, and the granted sizes in attr->cap. */
int ibv_cmd_create_qp(struct ibv_pd *pd, struct ibv_qp *qp, struct ibv_qp_init_attr *attr,
		      struct ibv_create_qp *cmd, size_t cmd_size, struct ibv_create_qp_resp *resp,
		      size_t resp_size);

/* Fills qp_attr and qp_init_attr for any attr_mask. Does not change qp. */
int ibv_cmd_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *qp_attr, int attr_mask,
		     struct ibv_qp_init_attr *qp_init_attr, struct ibv_query_qp *cmd,
		     size_t cmd_size);

/* Sets the attributes in attr_mask; the other members of attr need not be valid. Does not change
 * qp. */
int ibv_cmd_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
		      struct ibv_modify_qp *cmd, size_t cmd_size);

/* EBUSY: the QP is in a multicast group. */
int ibv_cmd_destroy_qp(struct ibv_qp *qp);

/* XRC receive QPs: ENOSYS below kernel ABI 6. The query sets only cap and sq_sig_all of init_attr.
 * The library has no object for such a QP, only its number. */
int ibv_cmd_create_xrc_rcv_qp(struct ibv_qp_init_attr *init_attr, uint32_t *xrc_rcv_qpn);

/* As ibv_modify_xrc_rcv_qp(). */
int ibv_cmd_modify_xrc_rcv_qp(struct ibv_xrc_domain *d, uint32_t xrc_rcv_qpn,
			      struct ibv_qp_attr *attr, int attr_mask);

/* As ibv_query_xrc_rcv_qp(). */
int ibv_cmd_query_xrc_rcv_qp(struct ibv_xrc_domain *d, uint32_t xrc_rcv_qpn,
			     struct ibv_qp_attr *attr, int attr_mask,
			     struct ibv_qp_init_attr *init_attr);

/* As ibv_reg_xrc_rcv_qp(). */
int ibv_cmd_reg_xrc_rcv_qp(struct ibv_xrc_domain *xrc_domain, uint32_t xrc_qp_num);

/* As ibv_unreg_xrc_rcv_qp(). */
int ibv_cmd_unreg_xrc_rcv_qp(struct ibv_xrc_domain *xrc_domain, uint32_t xrc_qp_num);

/* Posts through the kernel. On failure *bad_wr is the first request that was not posted. EINVAL for
 * XRC sends: the command has no field for the SRQ number. */
int ibv_cmd_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);

/* The same for receives. */
int ibv_cmd_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);

/* The same for receives of an SRQ. */
int ibv_cmd_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);

/* For providers whose device needs address handles in the kernel. ConnectX has the address in its
 * WQEs. */
int ibv_cmd_create_ah(struct ibv_pd *pd, struct ibv_ah *ah, struct ibv_ah_attr *attr);

/* Destroys an address handle of ibv_cmd_create_ah(). */
int ibv_cmd_destroy_ah(struct ibv_ah *ah);

/* lid is the group's, in host order. */
int ibv_cmd_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid);

/* EINVAL: the QP is not in the group. */
int ibv_cmd_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid);

/*
 * For memory that the HCA uses and that ibv_reg_mr() does not register: a provider's queues. After
 * ibv_fork_init() children do not inherit the pages of the range until as many dofork calls as
 * dontfork calls have covered them. Returns 0; or a value other than 0 with errno set, and nothing
 * has changed.
 */
int ibv_dontfork_range(void *base, size_t size);

/* The inverse of ibv_dontfork_range(). Returns as that does. */
int ibv_dofork_range(void *base, size_t size);

/*
 * sysfs
 */

/* Returns the root of sysfs, without a trailing slash. The string belongs to the library. */
const char *ibv_get_sysfs_path(void);

/* Reads up to size bytes of dir/file and replaces one newline at the end by a NUL. Returns the
 * length, or -1 with errno set. Text that fills the buffer or has no newline is not
 * NUL-terminated. */
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);

/* Finds the Ethernet address of a GID on a port with link layer Ethernet: mac[6], the VLAN of the
 * port's own GID sgid_index, *tagged if there is a VLAN, and *is_mcast if the MAC is a group
 * address. -EINVAL: the GID is neither link-local nor multicast; -1: there is no such
 * sgid_index. */
int ibv_resolve_eth_gid(const struct ibv_pd *pd, uint8_t port_num, union ibv_gid *dgid,
			uint8_t sgid_index, uint8_t mac[], uint16_t *vlan, uint8_t *tagged,
			uint8_t *is_mcast);

END_C_DECLS

#endif /* INFINIBAND_DRIVER_H */
