// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The frozen layouts, checked whenever the library is compiled, so that the installed headers
 * contain no checks. Kernel structures have the same layout everywhere; those of the API are
 * checked as x86-64 lays them out. No code. */

#include <stddef.h>
#include <infiniband/driver.h>
#include <infiniband/marshall.h>

#define SIZE(type, size) _Static_assert(sizeof(struct type) == (size), "size of " #type)
#define AT(type, member, offset)                                                                   \
	_Static_assert(offsetof(struct type, member) == (offset), "offset of " #type "." #member)

/*
 * The command channel
 */
SIZE(ibv_query_params, 16);
AT(ibv_query_params, response, 8);

SIZE(ibv_query_params_resp, 4);
AT(ibv_query_params_resp, num_cq_events, 0);
SIZE(ibv_get_context, 16);
AT(ibv_get_context, driver_data, 16);
SIZE(ibv_get_context_resp, 8);
AT(ibv_get_context_resp, num_comp_vectors, 4);
SIZE(ibv_get_context_v2, 24);
AT(ibv_get_context_v2, driver_data, 24);
SIZE(ibv_query_device, 16);
AT(ibv_query_device, driver_data, 16);
SIZE(ibv_query_device_resp, 176);
AT(ibv_query_device_resp, reserved, 172);
SIZE(ibv_query_port, 24);
AT(ibv_query_port, driver_data, 24);
SIZE(ibv_query_port_resp, 40);
AT(ibv_query_port_resp, reserved, 38);
SIZE(ibv_alloc_pd, 16);
AT(ibv_alloc_pd, driver_data, 16);
SIZE(ibv_alloc_pd_resp, 4);
AT(ibv_alloc_pd_resp, pd_handle, 0);
SIZE(ibv_dealloc_pd, 12);
AT(ibv_dealloc_pd, pd_handle, 8);
SIZE(ibv_reg_mr, 48);
AT(ibv_reg_mr, driver_data, 48);
SIZE(ibv_reg_mr_resp, 12);
AT(ibv_reg_mr_resp, rkey, 8);
SIZE(ibv_dereg_mr, 12);
AT(ibv_dereg_mr, mr_handle, 8);
SIZE(ibv_create_comp_channel, 16);
AT(ibv_create_comp_channel, response, 8);
SIZE(ibv_create_comp_channel_resp, 4);
AT(ibv_create_comp_channel_resp, fd, 0);
SIZE(ibv_create_cq, 40);
AT(ibv_create_cq, driver_data, 40);
SIZE(ibv_create_cq_resp, 8);
AT(ibv_create_cq_resp, cqe, 4);
SIZE(ibv_create_cq_v2, 32);
AT(ibv_create_cq_v2, driver_data, 32);
SIZE(ibv_resize_cq, 24);
AT(ibv_resize_cq, driver_data, 24);
SIZE(ibv_resize_cq_resp, 8);
AT(ibv_resize_cq_resp, driver_data, 8);
SIZE(ibv_poll_cq, 24);
AT(ibv_poll_cq, ne, 20);
SIZE(ibv_poll_cq_resp, 8);
AT(ibv_poll_cq_resp, wc, 8);
SIZE(ibv_kern_wc, 48);
AT(ibv_kern_wc, reserved, 47);
SIZE(ibv_req_notify_cq, 16);
AT(ibv_req_notify_cq, solicited, 12);
SIZE(ibv_destroy_cq, 24);
AT(ibv_destroy_cq, reserved, 20);
SIZE(ibv_destroy_cq_resp, 8);
AT(ibv_destroy_cq_resp, async_events_reported, 4);
SIZE(ibv_destroy_cq_v1, 12);
AT(ibv_destroy_cq_v1, cq_handle, 8);
SIZE(ibv_kern_global_route, 24);
AT(ibv_kern_global_route, reserved, 23);
SIZE(ibv_kern_ah_attr, 32);
AT(ibv_kern_ah_attr, reserved, 31);
SIZE(ibv_kern_qp_attr, 144);
AT(ibv_kern_qp_attr, reserved, 139);
SIZE(ibv_create_qp, 64);
AT(ibv_create_qp, driver_data, 64);
SIZE(ibv_create_qp_resp, 32);
AT(ibv_create_qp_resp, reserved, 28);
SIZE(ibv_create_qp_resp_v3, 8);
AT(ibv_create_qp_resp_v3, qpn, 4);
SIZE(ibv_create_qp_resp_v4, 28);
AT(ibv_create_qp_resp_v4, max_inline_data, 24);
SIZE(ibv_qp_dest, 32);
AT(ibv_qp_dest, port_num, 31);
SIZE(ibv_query_qp, 24);
AT(ibv_query_qp, driver_data, 24);
SIZE(ibv_query_qp_resp, 128);
AT(ibv_query_qp_resp, driver_data, 128);
SIZE(ibv_modify_qp, 120);
AT(ibv_modify_qp, driver_data, 120);
SIZE(ibv_destroy_qp, 24);
AT(ibv_destroy_qp, reserved, 20);
SIZE(ibv_destroy_qp_resp, 4);
AT(ibv_destroy_qp_resp, events_reported, 0);
SIZE(ibv_destroy_qp_v1, 12);
AT(ibv_destroy_qp_v1, qp_handle, 8);
SIZE(ibv_kern_send_wr, 56);
AT(ibv_kern_send_wr, wr, 24);
SIZE(ibv_post_send, 32);
AT(ibv_post_send, send_wr, 32);
SIZE(ibv_post_send_resp, 4);
AT(ibv_post_send_resp, bad_wr, 0);
SIZE(ibv_kern_recv_wr, 16);
AT(ibv_kern_recv_wr, reserved, 12);
SIZE(ibv_post_recv, 32);
AT(ibv_post_recv, recv_wr, 32);
SIZE(ibv_post_recv_resp, 4);
AT(ibv_post_recv_resp, bad_wr, 0);
SIZE(ibv_post_srq_recv, 32);
AT(ibv_post_srq_recv, recv_wr, 32);
SIZE(ibv_post_srq_recv_resp, 4);
AT(ibv_post_srq_recv_resp, bad_wr, 0);
SIZE(ibv_create_ah, 64);
AT(ibv_create_ah, attr, 32);
SIZE(ibv_create_ah_resp, 4);
AT(ibv_create_ah_resp, handle, 0);
SIZE(ibv_destroy_ah, 12);
AT(ibv_destroy_ah, ah_handle, 8);
SIZE(ibv_attach_mcast, 32);
AT(ibv_attach_mcast, driver_data, 32);
SIZE(ibv_detach_mcast, 32);
AT(ibv_detach_mcast, driver_data, 32);
SIZE(ibv_create_srq, 40);
AT(ibv_create_srq, driver_data, 40);
SIZE(ibv_create_srq_resp, 16);
AT(ibv_create_srq_resp, reserved, 12);
SIZE(ibv_create_srq_resp_v5, 4);
AT(ibv_create_srq_resp_v5, srq_handle, 0);
SIZE(ibv_modify_srq, 24);
AT(ibv_modify_srq, driver_data, 24);
SIZE(ibv_modify_srq_v3, 32);
AT(ibv_modify_srq_v3, driver_data, 32);
SIZE(ibv_query_srq, 24);
AT(ibv_query_srq, driver_data, 24);
SIZE(ibv_query_srq_resp, 16);
AT(ibv_query_srq_resp, reserved, 12);
SIZE(ibv_destroy_srq, 24);
AT(ibv_destroy_srq, reserved, 20);
SIZE(ibv_destroy_srq_resp, 4);
AT(ibv_destroy_srq_resp, events_reported, 0);
SIZE(ibv_destroy_srq_v1, 12);
AT(ibv_destroy_srq_v1, srq_handle, 8);
SIZE(ibv_kern_path_rec, 64);
AT(ibv_kern_path_rec, preference, 63);
SIZE(ibv_create_xrc_srq, 48);
AT(ibv_create_xrc_srq, driver_data, 48);
SIZE(ibv_open_xrc_domain, 24);
AT(ibv_open_xrc_domain, driver_data, 24);
SIZE(ibv_open_xrc_domain_resp, 4);
AT(ibv_open_xrc_domain_resp, xrcd_handle, 0);
SIZE(ibv_close_xrc_domain, 24);
AT(ibv_close_xrc_domain, driver_data, 24);
SIZE(ibv_create_xrc_rcv_qp, 56);
AT(ibv_create_xrc_rcv_qp, driver_data, 56);
SIZE(ibv_create_xrc_rcv_qp_resp, 8);
AT(ibv_create_xrc_rcv_qp_resp, reserved, 4);
SIZE(ibv_modify_xrc_rcv_qp, 128);
AT(ibv_modify_xrc_rcv_qp, driver_data, 128);
SIZE(ibv_query_xrc_rcv_qp, 32);
AT(ibv_query_xrc_rcv_qp, driver_data, 32);
SIZE(ibv_reg_xrc_rcv_qp, 16);
AT(ibv_reg_xrc_rcv_qp, driver_data, 16);
SIZE(ibv_unreg_xrc_rcv_qp, 16);
AT(ibv_unreg_xrc_rcv_qp, driver_data, 16);
SIZE(ibv_kern_async_event, 16);
AT(ibv_kern_async_event, event_type, 8);
SIZE(ibv_comp_event, 8);

#ifdef __x86_64__

/*
 * The API
 */
SIZE(ibv_context, 336);
AT(ibv_context, device, 0);
AT(ibv_context, ops, 8);
AT(ibv_context, cmd_fd, 264);
AT(ibv_context, async_fd, 268);
AT(ibv_context, num_comp_vectors, 272);
AT(ibv_context, mutex, 280);
AT(ibv_context, abi_compat, 320);
AT(ibv_context, more_ops, 328);

SIZE(ibv_qp, 168);
AT(ibv_qp, context, 0);
AT(ibv_qp, qp_context, 8);
AT(ibv_qp, pd, 16);
AT(ibv_qp, send_cq, 24);
AT(ibv_qp, recv_cq, 32);
AT(ibv_qp, srq, 40);
AT(ibv_qp, handle, 48);
AT(ibv_qp, qp_num, 52);
AT(ibv_qp, state, 56);
AT(ibv_qp, qp_type, 60);
AT(ibv_qp, events_completed, 64);
AT(ibv_qp, xrc_domain, 72);
AT(ibv_qp, mutex, 80);
AT(ibv_qp, cond, 120);

SIZE(ibv_srq, 144);
AT(ibv_srq, context, 0);
AT(ibv_srq, srq_context, 8);
AT(ibv_srq, pd, 16);
AT(ibv_srq, handle, 24);
AT(ibv_srq, events_completed, 28);
AT(ibv_srq, xrc_srq_num, 32);
AT(ibv_srq, xrc_domain, 40);
AT(ibv_srq, xrc_cq, 48);
AT(ibv_srq, mutex, 56);
AT(ibv_srq, cond, 96);

SIZE(ibv_cq, 128);
AT(ibv_cq, context, 0);
AT(ibv_cq, channel, 8);
AT(ibv_cq, cq_context, 16);
AT(ibv_cq, handle, 24);
AT(ibv_cq, cqe, 28);
AT(ibv_cq, comp_events_completed, 32);
AT(ibv_cq, async_events_completed, 36);
AT(ibv_cq, mutex, 40);
AT(ibv_cq, cond, 80);

SIZE(ibv_send_wr, 80);
AT(ibv_send_wr, wr_id, 0);
AT(ibv_send_wr, next, 8);
AT(ibv_send_wr, sg_list, 16);
AT(ibv_send_wr, num_sge, 24);
AT(ibv_send_wr, opcode, 28);
AT(ibv_send_wr, send_flags, 32);
AT(ibv_send_wr, imm_data, 36);
AT(ibv_send_wr, wr, 40);
AT(ibv_send_wr, xrc_remote_srq_num, 72);

SIZE(ibv_qp_init_attr, 72);
AT(ibv_qp_init_attr, qp_context, 0);
AT(ibv_qp_init_attr, send_cq, 8);
AT(ibv_qp_init_attr, recv_cq, 16);
AT(ibv_qp_init_attr, srq, 24);
AT(ibv_qp_init_attr, cap, 32);
AT(ibv_qp_init_attr, qp_type, 52);
AT(ibv_qp_init_attr, sq_sig_all, 56);
AT(ibv_qp_init_attr, xrc_domain, 64);

SIZE(ibv_xrc_domain, 16);
AT(ibv_xrc_domain, context, 0);
AT(ibv_xrc_domain, handle, 8);

SIZE(ibv_port_attr, 48);
AT(ibv_port_attr, pad, 47);

SIZE(ibv_async_event, 16);
AT(ibv_async_event, element, 0);
AT(ibv_async_event, event_type, 8);

SIZE(ibv_device, 664);
AT(ibv_device, ibdev_path, 408);
SIZE(ibv_device_attr, 232);
AT(ibv_device_attr, phys_port_cnt, 227);
SIZE(ibv_global_route, 24);
AT(ibv_global_route, traffic_class, 22);
SIZE(ibv_grh, 40);
AT(ibv_grh, dgid, 24);
SIZE(ibv_ah_attr, 32);
AT(ibv_ah_attr, port_num, 30);
SIZE(ibv_ah, 24);
AT(ibv_ah, handle, 16);
SIZE(ibv_pd, 16);
AT(ibv_pd, handle, 8);
SIZE(ibv_mr, 48);
AT(ibv_mr, rkey, 40);
SIZE(ibv_mw, 24);
AT(ibv_mw, rkey, 16);
SIZE(ibv_mw_bind, 40);
AT(ibv_mw_bind, mw_access_flags, 36);
SIZE(ibv_wc, 48);
AT(ibv_wc, dlid_path_bits, 45);
SIZE(ibv_sge, 16);
AT(ibv_sge, lkey, 12);
SIZE(ibv_recv_wr, 32);
AT(ibv_recv_wr, num_sge, 24);
SIZE(ibv_qp_cap, 20);
AT(ibv_qp_cap, max_inline_data, 16);
SIZE(ibv_qp_attr, 136);
AT(ibv_qp_attr, alt_timeout, 134);
SIZE(ibv_srq_attr, 12);
AT(ibv_srq_attr, srq_limit, 8);
SIZE(ibv_srq_init_attr, 24);
AT(ibv_srq_init_attr, attr, 8);
SIZE(ibv_comp_channel, 16);
AT(ibv_comp_channel, refcnt, 12);
SIZE(ibv_sa_path_rec, 64);
AT(ibv_sa_path_rec, preference, 63);
SIZE(ibv_path_record, 64);
AT(ibv_path_record, service_id, 0);
AT(ibv_path_record, dgid, 8);
AT(ibv_path_record, sgid, 24);
AT(ibv_path_record, dlid, 40);
AT(ibv_path_record, slid, 42);
AT(ibv_path_record, flowlabel_hoplimit, 44);
AT(ibv_path_record, tclass, 48);
AT(ibv_path_record, reversible_numpath, 49);
AT(ibv_path_record, pkey, 50);
AT(ibv_path_record, qosclass_sl, 52);
AT(ibv_path_record, mtu, 54);
AT(ibv_path_record, rate, 55);
AT(ibv_path_record, packetlifetime, 56);
AT(ibv_path_record, preference, 57);
AT(ibv_path_record, reserved, 58);
SIZE(ibv_path_data, 72);
AT(ibv_path_data, flags, 0);
AT(ibv_path_data, reserved, 4);
AT(ibv_path_data, path, 8);
SIZE(ibv_sa_mcmember_rec, 64);
AT(ibv_sa_mcmember_rec, proxy_join, 60);
SIZE(ibv_sa_service_rec, 176);
AT(ibv_sa_service_rec, data64, 160);
SIZE(ibv_device_ops, 16);
AT(ibv_device_ops, free_context, 8);

SIZE(ibv_context_ops, 256);
AT(ibv_context_ops, poll_cq, 88);
AT(ibv_context_ops, req_notify_cq, 96);
AT(ibv_context_ops, post_srq_recv, 160);
AT(ibv_context_ops, post_send, 200);
AT(ibv_context_ops, post_recv, 208);
AT(ibv_context_ops, async_event, 248);

SIZE(ibv_more_ops, 64);
AT(ibv_more_ops, create_xrc_srq, 0);
AT(ibv_more_ops, open_xrc_domain, 8);
AT(ibv_more_ops, close_xrc_domain, 16);
AT(ibv_more_ops, create_xrc_rcv_qp, 24);
AT(ibv_more_ops, modify_xrc_rcv_qp, 32);
AT(ibv_more_ops, query_xrc_rcv_qp, 40);
AT(ibv_more_ops, reg_xrc_rcv_qp, 48);
AT(ibv_more_ops, unreg_xrc_rcv_qp, 56);

#endif
