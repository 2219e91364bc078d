// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The frozen layouts, checked wherever the library is compiled; the installed headers stay free of it.
 * Kernel structures are the same everywhere, those of the API are as x86-64 has them. No code. */

#include <stddef.h>
#include <infiniband/driver.h>
#include <infiniband/marshall.h>

#define SIZE(type, size) _Static_assert(sizeof(struct type) == (size), "size of " #type)
#define AT(type, member, offset) \
	_Static_assert(offsetof(struct type, member) == (offset), "offset of " #type "." #member)

/*
 * The command channel
 */
SIZE(ibv_query_params, 16);
AT(ibv_query_params, response, 8);

SIZE(ibv_query_params_resp, 4);
AT(ibv_query_params_resp, num_cq_events, 0);

SIZE(ibv_get_context, 16);
AT(ibv_get_context, response, 8);
AT(ibv_get_context, driver_data, 16);

SIZE(ibv_get_context_resp, 8);
AT(ibv_get_context_resp, async_fd, 0);
AT(ibv_get_context_resp, num_comp_vectors, 4);

SIZE(ibv_get_context_v2, 24);
AT(ibv_get_context_v2, response, 8);
AT(ibv_get_context_v2, cq_fd_tab, 16);
AT(ibv_get_context_v2, driver_data, 24);

SIZE(ibv_query_device, 16);
AT(ibv_query_device, response, 8);
AT(ibv_query_device, driver_data, 16);

SIZE(ibv_query_device_resp, 176);
AT(ibv_query_device_resp, fw_ver, 0);
AT(ibv_query_device_resp, node_guid, 8);
AT(ibv_query_device_resp, sys_image_guid, 16);
AT(ibv_query_device_resp, max_mr_size, 24);
AT(ibv_query_device_resp, page_size_cap, 32);
AT(ibv_query_device_resp, vendor_id, 40);
AT(ibv_query_device_resp, vendor_part_id, 44);
AT(ibv_query_device_resp, hw_ver, 48);
AT(ibv_query_device_resp, max_qp, 52);
AT(ibv_query_device_resp, max_qp_wr, 56);
AT(ibv_query_device_resp, device_cap_flags, 60);
AT(ibv_query_device_resp, max_sge, 64);
AT(ibv_query_device_resp, max_sge_rd, 68);
AT(ibv_query_device_resp, max_cq, 72);
AT(ibv_query_device_resp, max_cqe, 76);
AT(ibv_query_device_resp, max_mr, 80);
AT(ibv_query_device_resp, max_pd, 84);
AT(ibv_query_device_resp, max_qp_rd_atom, 88);
AT(ibv_query_device_resp, max_ee_rd_atom, 92);
AT(ibv_query_device_resp, max_res_rd_atom, 96);
AT(ibv_query_device_resp, max_qp_init_rd_atom, 100);
AT(ibv_query_device_resp, max_ee_init_rd_atom, 104);
AT(ibv_query_device_resp, atomic_cap, 108);
AT(ibv_query_device_resp, max_ee, 112);
AT(ibv_query_device_resp, max_rdd, 116);
AT(ibv_query_device_resp, max_mw, 120);
AT(ibv_query_device_resp, max_raw_ipv6_qp, 124);
AT(ibv_query_device_resp, max_raw_ethy_qp, 128);
AT(ibv_query_device_resp, max_mcast_grp, 132);
AT(ibv_query_device_resp, max_mcast_qp_attach, 136);
AT(ibv_query_device_resp, max_total_mcast_qp_attach, 140);
AT(ibv_query_device_resp, max_ah, 144);
AT(ibv_query_device_resp, max_fmr, 148);
AT(ibv_query_device_resp, max_map_per_fmr, 152);
AT(ibv_query_device_resp, max_srq, 156);
AT(ibv_query_device_resp, max_srq_wr, 160);
AT(ibv_query_device_resp, max_srq_sge, 164);
AT(ibv_query_device_resp, max_pkeys, 168);
AT(ibv_query_device_resp, local_ca_ack_delay, 170);
AT(ibv_query_device_resp, phys_port_cnt, 171);
AT(ibv_query_device_resp, reserved, 172);

SIZE(ibv_query_port, 24);
AT(ibv_query_port, response, 8);
AT(ibv_query_port, port_num, 16);
AT(ibv_query_port, reserved, 17);
AT(ibv_query_port, driver_data, 24);

SIZE(ibv_query_port_resp, 40);
AT(ibv_query_port_resp, port_cap_flags, 0);
AT(ibv_query_port_resp, max_msg_sz, 4);
AT(ibv_query_port_resp, bad_pkey_cntr, 8);
AT(ibv_query_port_resp, qkey_viol_cntr, 12);
AT(ibv_query_port_resp, gid_tbl_len, 16);
AT(ibv_query_port_resp, pkey_tbl_len, 20);
AT(ibv_query_port_resp, lid, 22);
AT(ibv_query_port_resp, sm_lid, 24);
AT(ibv_query_port_resp, state, 26);
AT(ibv_query_port_resp, max_mtu, 27);
AT(ibv_query_port_resp, active_mtu, 28);
AT(ibv_query_port_resp, lmc, 29);
AT(ibv_query_port_resp, max_vl_num, 30);
AT(ibv_query_port_resp, sm_sl, 31);
AT(ibv_query_port_resp, subnet_timeout, 32);
AT(ibv_query_port_resp, init_type_reply, 33);
AT(ibv_query_port_resp, active_width, 34);
AT(ibv_query_port_resp, active_speed, 35);
AT(ibv_query_port_resp, phys_state, 36);
AT(ibv_query_port_resp, link_layer, 37);
AT(ibv_query_port_resp, reserved, 38);

SIZE(ibv_alloc_pd, 16);
AT(ibv_alloc_pd, response, 8);
AT(ibv_alloc_pd, driver_data, 16);

SIZE(ibv_alloc_pd_resp, 4);
AT(ibv_alloc_pd_resp, pd_handle, 0);

SIZE(ibv_dealloc_pd, 12);
AT(ibv_dealloc_pd, pd_handle, 8);

SIZE(ibv_reg_mr, 48);
AT(ibv_reg_mr, response, 8);
AT(ibv_reg_mr, start, 16);
AT(ibv_reg_mr, length, 24);
AT(ibv_reg_mr, hca_va, 32);
AT(ibv_reg_mr, pd_handle, 40);
AT(ibv_reg_mr, access_flags, 44);
AT(ibv_reg_mr, driver_data, 48);

SIZE(ibv_reg_mr_resp, 12);
AT(ibv_reg_mr_resp, mr_handle, 0);
AT(ibv_reg_mr_resp, lkey, 4);
AT(ibv_reg_mr_resp, rkey, 8);

SIZE(ibv_dereg_mr, 12);
AT(ibv_dereg_mr, mr_handle, 8);

SIZE(ibv_create_comp_channel, 16);
AT(ibv_create_comp_channel, response, 8);

SIZE(ibv_create_comp_channel_resp, 4);
AT(ibv_create_comp_channel_resp, fd, 0);

SIZE(ibv_create_cq, 40);
AT(ibv_create_cq, response, 8);
AT(ibv_create_cq, user_handle, 16);
AT(ibv_create_cq, cqe, 24);
AT(ibv_create_cq, comp_vector, 28);
AT(ibv_create_cq, comp_channel, 32);
AT(ibv_create_cq, reserved, 36);
AT(ibv_create_cq, driver_data, 40);

SIZE(ibv_create_cq_resp, 8);
AT(ibv_create_cq_resp, cq_handle, 0);
AT(ibv_create_cq_resp, cqe, 4);

SIZE(ibv_create_cq_v2, 32);
AT(ibv_create_cq_v2, response, 8);
AT(ibv_create_cq_v2, user_handle, 16);
AT(ibv_create_cq_v2, cqe, 24);
AT(ibv_create_cq_v2, event_handler, 28);
AT(ibv_create_cq_v2, driver_data, 32);

SIZE(ibv_resize_cq, 24);
AT(ibv_resize_cq, response, 8);
AT(ibv_resize_cq, cq_handle, 16);
AT(ibv_resize_cq, cqe, 20);
AT(ibv_resize_cq, driver_data, 24);

SIZE(ibv_resize_cq_resp, 8);
AT(ibv_resize_cq_resp, cqe, 0);
AT(ibv_resize_cq_resp, reserved, 4);
AT(ibv_resize_cq_resp, driver_data, 8);

SIZE(ibv_poll_cq, 24);
AT(ibv_poll_cq, response, 8);
AT(ibv_poll_cq, cq_handle, 16);
AT(ibv_poll_cq, ne, 20);

SIZE(ibv_poll_cq_resp, 8);
AT(ibv_poll_cq_resp, count, 0);
AT(ibv_poll_cq_resp, reserved, 4);
AT(ibv_poll_cq_resp, wc, 8);

SIZE(ibv_kern_wc, 48);
AT(ibv_kern_wc, wr_id, 0);
AT(ibv_kern_wc, status, 8);
AT(ibv_kern_wc, opcode, 12);
AT(ibv_kern_wc, vendor_err, 16);
AT(ibv_kern_wc, byte_len, 20);
AT(ibv_kern_wc, imm_data, 24);
AT(ibv_kern_wc, qp_num, 28);
AT(ibv_kern_wc, src_qp, 32);
AT(ibv_kern_wc, wc_flags, 36);
AT(ibv_kern_wc, pkey_index, 40);
AT(ibv_kern_wc, slid, 42);
AT(ibv_kern_wc, sl, 44);
AT(ibv_kern_wc, dlid_path_bits, 45);
AT(ibv_kern_wc, port_num, 46);
AT(ibv_kern_wc, reserved, 47);

SIZE(ibv_req_notify_cq, 16);
AT(ibv_req_notify_cq, cq_handle, 8);
AT(ibv_req_notify_cq, solicited, 12);

SIZE(ibv_destroy_cq, 24);
AT(ibv_destroy_cq, response, 8);
AT(ibv_destroy_cq, cq_handle, 16);
AT(ibv_destroy_cq, reserved, 20);

SIZE(ibv_destroy_cq_resp, 8);
AT(ibv_destroy_cq_resp, comp_events_reported, 0);
AT(ibv_destroy_cq_resp, async_events_reported, 4);

SIZE(ibv_destroy_cq_v1, 12);
AT(ibv_destroy_cq_v1, cq_handle, 8);

SIZE(ibv_kern_global_route, 24);
AT(ibv_kern_global_route, dgid, 0);
AT(ibv_kern_global_route, flow_label, 16);
AT(ibv_kern_global_route, sgid_index, 20);
AT(ibv_kern_global_route, hop_limit, 21);
AT(ibv_kern_global_route, traffic_class, 22);
AT(ibv_kern_global_route, reserved, 23);

SIZE(ibv_kern_ah_attr, 32);
AT(ibv_kern_ah_attr, grh, 0);
AT(ibv_kern_ah_attr, dlid, 24);
AT(ibv_kern_ah_attr, sl, 26);
AT(ibv_kern_ah_attr, src_path_bits, 27);
AT(ibv_kern_ah_attr, static_rate, 28);
AT(ibv_kern_ah_attr, is_global, 29);
AT(ibv_kern_ah_attr, port_num, 30);
AT(ibv_kern_ah_attr, reserved, 31);

SIZE(ibv_kern_qp_attr, 144);
AT(ibv_kern_qp_attr, qp_attr_mask, 0);
AT(ibv_kern_qp_attr, qp_state, 4);
AT(ibv_kern_qp_attr, cur_qp_state, 8);
AT(ibv_kern_qp_attr, path_mtu, 12);
AT(ibv_kern_qp_attr, path_mig_state, 16);
AT(ibv_kern_qp_attr, qkey, 20);
AT(ibv_kern_qp_attr, rq_psn, 24);
AT(ibv_kern_qp_attr, sq_psn, 28);
AT(ibv_kern_qp_attr, dest_qp_num, 32);
AT(ibv_kern_qp_attr, qp_access_flags, 36);
AT(ibv_kern_qp_attr, ah_attr, 40);
AT(ibv_kern_qp_attr, alt_ah_attr, 72);
AT(ibv_kern_qp_attr, max_send_wr, 104);
AT(ibv_kern_qp_attr, max_recv_wr, 108);
AT(ibv_kern_qp_attr, max_send_sge, 112);
AT(ibv_kern_qp_attr, max_recv_sge, 116);
AT(ibv_kern_qp_attr, max_inline_data, 120);
AT(ibv_kern_qp_attr, pkey_index, 124);
AT(ibv_kern_qp_attr, alt_pkey_index, 126);
AT(ibv_kern_qp_attr, en_sqd_async_notify, 128);
AT(ibv_kern_qp_attr, sq_draining, 129);
AT(ibv_kern_qp_attr, max_rd_atomic, 130);
AT(ibv_kern_qp_attr, max_dest_rd_atomic, 131);
AT(ibv_kern_qp_attr, min_rnr_timer, 132);
AT(ibv_kern_qp_attr, port_num, 133);
AT(ibv_kern_qp_attr, timeout, 134);
AT(ibv_kern_qp_attr, retry_cnt, 135);
AT(ibv_kern_qp_attr, rnr_retry, 136);
AT(ibv_kern_qp_attr, alt_port_num, 137);
AT(ibv_kern_qp_attr, alt_timeout, 138);
AT(ibv_kern_qp_attr, reserved, 139);

SIZE(ibv_create_qp, 64);
AT(ibv_create_qp, response, 8);
AT(ibv_create_qp, user_handle, 16);
AT(ibv_create_qp, pd_handle, 24);
AT(ibv_create_qp, send_cq_handle, 28);
AT(ibv_create_qp, recv_cq_handle, 32);
AT(ibv_create_qp, srq_handle, 36);
AT(ibv_create_qp, max_send_wr, 40);
AT(ibv_create_qp, max_recv_wr, 44);
AT(ibv_create_qp, max_send_sge, 48);
AT(ibv_create_qp, max_recv_sge, 52);
AT(ibv_create_qp, max_inline_data, 56);
AT(ibv_create_qp, sq_sig_all, 60);
AT(ibv_create_qp, qp_type, 61);
AT(ibv_create_qp, is_srq, 62);
AT(ibv_create_qp, reserved, 63);
AT(ibv_create_qp, driver_data, 64);

SIZE(ibv_create_qp_resp, 32);
AT(ibv_create_qp_resp, qp_handle, 0);
AT(ibv_create_qp_resp, qpn, 4);
AT(ibv_create_qp_resp, max_send_wr, 8);
AT(ibv_create_qp_resp, max_recv_wr, 12);
AT(ibv_create_qp_resp, max_send_sge, 16);
AT(ibv_create_qp_resp, max_recv_sge, 20);
AT(ibv_create_qp_resp, max_inline_data, 24);
AT(ibv_create_qp_resp, reserved, 28);

SIZE(ibv_create_qp_resp_v3, 8);
AT(ibv_create_qp_resp_v3, qp_handle, 0);
AT(ibv_create_qp_resp_v3, qpn, 4);

SIZE(ibv_create_qp_resp_v4, 28);
AT(ibv_create_qp_resp_v4, qp_handle, 0);
AT(ibv_create_qp_resp_v4, qpn, 4);
AT(ibv_create_qp_resp_v4, max_send_wr, 8);
AT(ibv_create_qp_resp_v4, max_recv_wr, 12);
AT(ibv_create_qp_resp_v4, max_send_sge, 16);
AT(ibv_create_qp_resp_v4, max_recv_sge, 20);
AT(ibv_create_qp_resp_v4, max_inline_data, 24);

SIZE(ibv_qp_dest, 32);
AT(ibv_qp_dest, dgid, 0);
AT(ibv_qp_dest, flow_label, 16);
AT(ibv_qp_dest, dlid, 20);
AT(ibv_qp_dest, reserved, 22);
AT(ibv_qp_dest, sgid_index, 24);
AT(ibv_qp_dest, hop_limit, 25);
AT(ibv_qp_dest, traffic_class, 26);
AT(ibv_qp_dest, sl, 27);
AT(ibv_qp_dest, src_path_bits, 28);
AT(ibv_qp_dest, static_rate, 29);
AT(ibv_qp_dest, is_global, 30);
AT(ibv_qp_dest, port_num, 31);

SIZE(ibv_query_qp, 24);
AT(ibv_query_qp, response, 8);
AT(ibv_query_qp, qp_handle, 16);
AT(ibv_query_qp, attr_mask, 20);
AT(ibv_query_qp, driver_data, 24);

SIZE(ibv_query_qp_resp, 128);
AT(ibv_query_qp_resp, dest, 0);
AT(ibv_query_qp_resp, alt_dest, 32);
AT(ibv_query_qp_resp, max_send_wr, 64);
AT(ibv_query_qp_resp, max_recv_wr, 68);
AT(ibv_query_qp_resp, max_send_sge, 72);
AT(ibv_query_qp_resp, max_recv_sge, 76);
AT(ibv_query_qp_resp, max_inline_data, 80);
AT(ibv_query_qp_resp, qkey, 84);
AT(ibv_query_qp_resp, rq_psn, 88);
AT(ibv_query_qp_resp, sq_psn, 92);
AT(ibv_query_qp_resp, dest_qp_num, 96);
AT(ibv_query_qp_resp, qp_access_flags, 100);
AT(ibv_query_qp_resp, pkey_index, 104);
AT(ibv_query_qp_resp, alt_pkey_index, 106);
AT(ibv_query_qp_resp, qp_state, 108);
AT(ibv_query_qp_resp, cur_qp_state, 109);
AT(ibv_query_qp_resp, path_mtu, 110);
AT(ibv_query_qp_resp, path_mig_state, 111);
AT(ibv_query_qp_resp, sq_draining, 112);
AT(ibv_query_qp_resp, max_rd_atomic, 113);
AT(ibv_query_qp_resp, max_dest_rd_atomic, 114);
AT(ibv_query_qp_resp, min_rnr_timer, 115);
AT(ibv_query_qp_resp, port_num, 116);
AT(ibv_query_qp_resp, timeout, 117);
AT(ibv_query_qp_resp, retry_cnt, 118);
AT(ibv_query_qp_resp, rnr_retry, 119);
AT(ibv_query_qp_resp, alt_port_num, 120);
AT(ibv_query_qp_resp, alt_timeout, 121);
AT(ibv_query_qp_resp, sq_sig_all, 122);
AT(ibv_query_qp_resp, reserved, 123);
AT(ibv_query_qp_resp, driver_data, 128);

SIZE(ibv_modify_qp, 120);
AT(ibv_modify_qp, dest, 8);
AT(ibv_modify_qp, alt_dest, 40);
AT(ibv_modify_qp, qp_handle, 72);
AT(ibv_modify_qp, attr_mask, 76);
AT(ibv_modify_qp, qkey, 80);
AT(ibv_modify_qp, rq_psn, 84);
AT(ibv_modify_qp, sq_psn, 88);
AT(ibv_modify_qp, dest_qp_num, 92);
AT(ibv_modify_qp, qp_access_flags, 96);
AT(ibv_modify_qp, pkey_index, 100);
AT(ibv_modify_qp, alt_pkey_index, 102);
AT(ibv_modify_qp, qp_state, 104);
AT(ibv_modify_qp, cur_qp_state, 105);
AT(ibv_modify_qp, path_mtu, 106);
AT(ibv_modify_qp, path_mig_state, 107);
AT(ibv_modify_qp, en_sqd_async_notify, 108);
AT(ibv_modify_qp, max_rd_atomic, 109);
AT(ibv_modify_qp, max_dest_rd_atomic, 110);
AT(ibv_modify_qp, min_rnr_timer, 111);
AT(ibv_modify_qp, port_num, 112);
AT(ibv_modify_qp, timeout, 113);
AT(ibv_modify_qp, retry_cnt, 114);
AT(ibv_modify_qp, rnr_retry, 115);
AT(ibv_modify_qp, alt_port_num, 116);
AT(ibv_modify_qp, alt_timeout, 117);
AT(ibv_modify_qp, reserved, 118);
AT(ibv_modify_qp, driver_data, 120);

SIZE(ibv_destroy_qp, 24);
AT(ibv_destroy_qp, response, 8);
AT(ibv_destroy_qp, qp_handle, 16);
AT(ibv_destroy_qp, reserved, 20);

SIZE(ibv_destroy_qp_resp, 4);
AT(ibv_destroy_qp_resp, events_reported, 0);

SIZE(ibv_destroy_qp_v1, 12);
AT(ibv_destroy_qp_v1, qp_handle, 8);

SIZE(ibv_kern_send_wr, 56);
AT(ibv_kern_send_wr, wr_id, 0);
AT(ibv_kern_send_wr, num_sge, 8);
AT(ibv_kern_send_wr, opcode, 12);
AT(ibv_kern_send_wr, send_flags, 16);
AT(ibv_kern_send_wr, imm_data, 20);
AT(ibv_kern_send_wr, wr, 24);

SIZE(ibv_post_send, 32);
AT(ibv_post_send, response, 8);
AT(ibv_post_send, qp_handle, 16);
AT(ibv_post_send, wr_count, 20);
AT(ibv_post_send, sge_count, 24);
AT(ibv_post_send, wqe_size, 28);
AT(ibv_post_send, send_wr, 32);

SIZE(ibv_post_send_resp, 4);
AT(ibv_post_send_resp, bad_wr, 0);

SIZE(ibv_kern_recv_wr, 16);
AT(ibv_kern_recv_wr, wr_id, 0);
AT(ibv_kern_recv_wr, num_sge, 8);
AT(ibv_kern_recv_wr, reserved, 12);

SIZE(ibv_post_recv, 32);
AT(ibv_post_recv, response, 8);
AT(ibv_post_recv, qp_handle, 16);
AT(ibv_post_recv, wr_count, 20);
AT(ibv_post_recv, sge_count, 24);
AT(ibv_post_recv, wqe_size, 28);
AT(ibv_post_recv, recv_wr, 32);

SIZE(ibv_post_recv_resp, 4);
AT(ibv_post_recv_resp, bad_wr, 0);

SIZE(ibv_post_srq_recv, 32);
AT(ibv_post_srq_recv, response, 8);
AT(ibv_post_srq_recv, srq_handle, 16);
AT(ibv_post_srq_recv, wr_count, 20);
AT(ibv_post_srq_recv, sge_count, 24);
AT(ibv_post_srq_recv, wqe_size, 28);
AT(ibv_post_srq_recv, recv_wr, 32);

SIZE(ibv_post_srq_recv_resp, 4);
AT(ibv_post_srq_recv_resp, bad_wr, 0);

SIZE(ibv_create_ah, 64);
AT(ibv_create_ah, response, 8);
AT(ibv_create_ah, user_handle, 16);
AT(ibv_create_ah, pd_handle, 24);
AT(ibv_create_ah, reserved, 28);
AT(ibv_create_ah, attr, 32);

SIZE(ibv_create_ah_resp, 4);
AT(ibv_create_ah_resp, handle, 0);

SIZE(ibv_destroy_ah, 12);
AT(ibv_destroy_ah, ah_handle, 8);

SIZE(ibv_attach_mcast, 32);
AT(ibv_attach_mcast, gid, 8);
AT(ibv_attach_mcast, qp_handle, 24);
AT(ibv_attach_mcast, mlid, 28);
AT(ibv_attach_mcast, reserved, 30);
AT(ibv_attach_mcast, driver_data, 32);

SIZE(ibv_detach_mcast, 32);
AT(ibv_detach_mcast, gid, 8);
AT(ibv_detach_mcast, qp_handle, 24);
AT(ibv_detach_mcast, mlid, 28);
AT(ibv_detach_mcast, reserved, 30);
AT(ibv_detach_mcast, driver_data, 32);

SIZE(ibv_create_srq, 40);
AT(ibv_create_srq, response, 8);
AT(ibv_create_srq, user_handle, 16);
AT(ibv_create_srq, pd_handle, 24);
AT(ibv_create_srq, max_wr, 28);
AT(ibv_create_srq, max_sge, 32);
AT(ibv_create_srq, srq_limit, 36);
AT(ibv_create_srq, driver_data, 40);

SIZE(ibv_create_srq_resp, 16);
AT(ibv_create_srq_resp, srq_handle, 0);
AT(ibv_create_srq_resp, max_wr, 4);
AT(ibv_create_srq_resp, max_sge, 8);
AT(ibv_create_srq_resp, reserved, 12);

SIZE(ibv_create_srq_resp_v5, 4);
AT(ibv_create_srq_resp_v5, srq_handle, 0);

SIZE(ibv_modify_srq, 24);
AT(ibv_modify_srq, srq_handle, 8);
AT(ibv_modify_srq, attr_mask, 12);
AT(ibv_modify_srq, max_wr, 16);
AT(ibv_modify_srq, srq_limit, 20);
AT(ibv_modify_srq, driver_data, 24);

SIZE(ibv_modify_srq_v3, 32);
AT(ibv_modify_srq_v3, srq_handle, 8);
AT(ibv_modify_srq_v3, attr_mask, 12);
AT(ibv_modify_srq_v3, max_wr, 16);
AT(ibv_modify_srq_v3, max_sge, 20);
AT(ibv_modify_srq_v3, srq_limit, 24);
AT(ibv_modify_srq_v3, reserved, 28);
AT(ibv_modify_srq_v3, driver_data, 32);

SIZE(ibv_query_srq, 24);
AT(ibv_query_srq, response, 8);
AT(ibv_query_srq, srq_handle, 16);
AT(ibv_query_srq, reserved, 20);
AT(ibv_query_srq, driver_data, 24);

SIZE(ibv_query_srq_resp, 16);
AT(ibv_query_srq_resp, max_wr, 0);
AT(ibv_query_srq_resp, max_sge, 4);
AT(ibv_query_srq_resp, srq_limit, 8);
AT(ibv_query_srq_resp, reserved, 12);

SIZE(ibv_destroy_srq, 24);
AT(ibv_destroy_srq, response, 8);
AT(ibv_destroy_srq, srq_handle, 16);
AT(ibv_destroy_srq, reserved, 20);

SIZE(ibv_destroy_srq_resp, 4);
AT(ibv_destroy_srq_resp, events_reported, 0);

SIZE(ibv_destroy_srq_v1, 12);
AT(ibv_destroy_srq_v1, srq_handle, 8);

SIZE(ibv_kern_path_rec, 64);
AT(ibv_kern_path_rec, dgid, 0);
AT(ibv_kern_path_rec, sgid, 16);
AT(ibv_kern_path_rec, dlid, 32);
AT(ibv_kern_path_rec, slid, 34);
AT(ibv_kern_path_rec, raw_traffic, 36);
AT(ibv_kern_path_rec, flow_label, 40);
AT(ibv_kern_path_rec, reversible, 44);
AT(ibv_kern_path_rec, mtu, 48);
AT(ibv_kern_path_rec, pkey, 52);
AT(ibv_kern_path_rec, hop_limit, 54);
AT(ibv_kern_path_rec, traffic_class, 55);
AT(ibv_kern_path_rec, numb_path, 56);
AT(ibv_kern_path_rec, sl, 57);
AT(ibv_kern_path_rec, mtu_selector, 58);
AT(ibv_kern_path_rec, rate_selector, 59);
AT(ibv_kern_path_rec, rate, 60);
AT(ibv_kern_path_rec, packet_life_time_selector, 61);
AT(ibv_kern_path_rec, packet_life_time, 62);
AT(ibv_kern_path_rec, preference, 63);

SIZE(ibv_create_xrc_srq, 48);
AT(ibv_create_xrc_srq, response, 8);
AT(ibv_create_xrc_srq, user_handle, 16);
AT(ibv_create_xrc_srq, pd_handle, 24);
AT(ibv_create_xrc_srq, max_wr, 28);
AT(ibv_create_xrc_srq, max_sge, 32);
AT(ibv_create_xrc_srq, srq_limit, 36);
AT(ibv_create_xrc_srq, xrcd_handle, 40);
AT(ibv_create_xrc_srq, xrc_cq, 44);
AT(ibv_create_xrc_srq, driver_data, 48);

SIZE(ibv_open_xrc_domain, 24);
AT(ibv_open_xrc_domain, response, 8);
AT(ibv_open_xrc_domain, fd, 16);
AT(ibv_open_xrc_domain, oflags, 20);
AT(ibv_open_xrc_domain, driver_data, 24);

SIZE(ibv_open_xrc_domain_resp, 4);
AT(ibv_open_xrc_domain_resp, xrcd_handle, 0);

SIZE(ibv_close_xrc_domain, 24);
AT(ibv_close_xrc_domain, response, 8);
AT(ibv_close_xrc_domain, xrcd_handle, 16);
AT(ibv_close_xrc_domain, reserved, 20);
AT(ibv_close_xrc_domain, driver_data, 24);

SIZE(ibv_create_xrc_rcv_qp, 56);
AT(ibv_create_xrc_rcv_qp, response, 8);
AT(ibv_create_xrc_rcv_qp, user_handle, 16);
AT(ibv_create_xrc_rcv_qp, xrc_domain_handle, 24);
AT(ibv_create_xrc_rcv_qp, max_send_wr, 28);
AT(ibv_create_xrc_rcv_qp, max_recv_wr, 32);
AT(ibv_create_xrc_rcv_qp, max_send_sge, 36);
AT(ibv_create_xrc_rcv_qp, max_recv_sge, 40);
AT(ibv_create_xrc_rcv_qp, max_inline_data, 44);
AT(ibv_create_xrc_rcv_qp, sq_sig_all, 48);
AT(ibv_create_xrc_rcv_qp, qp_type, 49);
AT(ibv_create_xrc_rcv_qp, reserved, 50);
AT(ibv_create_xrc_rcv_qp, driver_data, 56);

SIZE(ibv_create_xrc_rcv_qp_resp, 8);
AT(ibv_create_xrc_rcv_qp_resp, qpn, 0);
AT(ibv_create_xrc_rcv_qp_resp, reserved, 4);

SIZE(ibv_modify_xrc_rcv_qp, 128);
AT(ibv_modify_xrc_rcv_qp, xrc_domain_handle, 8);
AT(ibv_modify_xrc_rcv_qp, qp_num, 12);
AT(ibv_modify_xrc_rcv_qp, dest, 16);
AT(ibv_modify_xrc_rcv_qp, alt_dest, 48);
AT(ibv_modify_xrc_rcv_qp, attr_mask, 80);
AT(ibv_modify_xrc_rcv_qp, qkey, 84);
AT(ibv_modify_xrc_rcv_qp, rq_psn, 88);
AT(ibv_modify_xrc_rcv_qp, sq_psn, 92);
AT(ibv_modify_xrc_rcv_qp, dest_qp_num, 96);
AT(ibv_modify_xrc_rcv_qp, qp_access_flags, 100);
AT(ibv_modify_xrc_rcv_qp, pkey_index, 104);
AT(ibv_modify_xrc_rcv_qp, alt_pkey_index, 106);
AT(ibv_modify_xrc_rcv_qp, qp_state, 108);
AT(ibv_modify_xrc_rcv_qp, cur_qp_state, 109);
AT(ibv_modify_xrc_rcv_qp, path_mtu, 110);
AT(ibv_modify_xrc_rcv_qp, path_mig_state, 111);
AT(ibv_modify_xrc_rcv_qp, en_sqd_async_notify, 112);
AT(ibv_modify_xrc_rcv_qp, max_rd_atomic, 113);
AT(ibv_modify_xrc_rcv_qp, max_dest_rd_atomic, 114);
AT(ibv_modify_xrc_rcv_qp, min_rnr_timer, 115);
AT(ibv_modify_xrc_rcv_qp, port_num, 116);
AT(ibv_modify_xrc_rcv_qp, timeout, 117);
AT(ibv_modify_xrc_rcv_qp, retry_cnt, 118);
AT(ibv_modify_xrc_rcv_qp, rnr_retry, 119);
AT(ibv_modify_xrc_rcv_qp, alt_port_num, 120);
AT(ibv_modify_xrc_rcv_qp, alt_timeout, 121);
AT(ibv_modify_xrc_rcv_qp, reserved, 122);
AT(ibv_modify_xrc_rcv_qp, driver_data, 128);

SIZE(ibv_query_xrc_rcv_qp, 32);
AT(ibv_query_xrc_rcv_qp, response, 8);
AT(ibv_query_xrc_rcv_qp, xrc_domain_handle, 16);
AT(ibv_query_xrc_rcv_qp, qp_num, 20);
AT(ibv_query_xrc_rcv_qp, attr_mask, 24);
AT(ibv_query_xrc_rcv_qp, reserved, 28);
AT(ibv_query_xrc_rcv_qp, driver_data, 32);

SIZE(ibv_reg_xrc_rcv_qp, 16);
AT(ibv_reg_xrc_rcv_qp, xrc_domain_handle, 8);
AT(ibv_reg_xrc_rcv_qp, qp_num, 12);
AT(ibv_reg_xrc_rcv_qp, driver_data, 16);

SIZE(ibv_unreg_xrc_rcv_qp, 16);
AT(ibv_unreg_xrc_rcv_qp, xrc_domain_handle, 8);
AT(ibv_unreg_xrc_rcv_qp, qp_num, 12);
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
AT(ibv_port_attr, state, 0);
AT(ibv_port_attr, max_mtu, 4);
AT(ibv_port_attr, active_mtu, 8);
AT(ibv_port_attr, gid_tbl_len, 12);
AT(ibv_port_attr, port_cap_flags, 16);
AT(ibv_port_attr, max_msg_sz, 20);
AT(ibv_port_attr, bad_pkey_cntr, 24);
AT(ibv_port_attr, qkey_viol_cntr, 28);
AT(ibv_port_attr, pkey_tbl_len, 32);
AT(ibv_port_attr, lid, 34);
AT(ibv_port_attr, sm_lid, 36);
AT(ibv_port_attr, lmc, 38);
AT(ibv_port_attr, max_vl_num, 39);
AT(ibv_port_attr, sm_sl, 40);
AT(ibv_port_attr, subnet_timeout, 41);
AT(ibv_port_attr, init_type_reply, 42);
AT(ibv_port_attr, active_width, 43);
AT(ibv_port_attr, active_speed, 44);
AT(ibv_port_attr, phys_state, 45);
AT(ibv_port_attr, link_layer, 46);
AT(ibv_port_attr, pad, 47);

SIZE(ibv_async_event, 16);
AT(ibv_async_event, element, 0);
AT(ibv_async_event, event_type, 8);

SIZE(ibv_device, 664);
AT(ibv_device, ops, 0);
AT(ibv_device, node_type, 16);
AT(ibv_device, transport_type, 20);
AT(ibv_device, name, 24);
AT(ibv_device, dev_name, 88);
AT(ibv_device, dev_path, 152);
AT(ibv_device, ibdev_path, 408);

SIZE(ibv_device_attr, 232);
AT(ibv_device_attr, fw_ver, 0);
AT(ibv_device_attr, node_guid, 64);
AT(ibv_device_attr, sys_image_guid, 72);
AT(ibv_device_attr, max_mr_size, 80);
AT(ibv_device_attr, page_size_cap, 88);
AT(ibv_device_attr, vendor_id, 96);
AT(ibv_device_attr, vendor_part_id, 100);
AT(ibv_device_attr, hw_ver, 104);
AT(ibv_device_attr, max_qp, 108);
AT(ibv_device_attr, max_qp_wr, 112);
AT(ibv_device_attr, device_cap_flags, 116);
AT(ibv_device_attr, max_sge, 120);
AT(ibv_device_attr, max_sge_rd, 124);
AT(ibv_device_attr, max_cq, 128);
AT(ibv_device_attr, max_cqe, 132);
AT(ibv_device_attr, max_mr, 136);
AT(ibv_device_attr, max_pd, 140);
AT(ibv_device_attr, max_qp_rd_atom, 144);
AT(ibv_device_attr, max_ee_rd_atom, 148);
AT(ibv_device_attr, max_res_rd_atom, 152);
AT(ibv_device_attr, max_qp_init_rd_atom, 156);
AT(ibv_device_attr, max_ee_init_rd_atom, 160);
AT(ibv_device_attr, atomic_cap, 164);
AT(ibv_device_attr, max_ee, 168);
AT(ibv_device_attr, max_rdd, 172);
AT(ibv_device_attr, max_mw, 176);
AT(ibv_device_attr, max_raw_ipv6_qp, 180);
AT(ibv_device_attr, max_raw_ethy_qp, 184);
AT(ibv_device_attr, max_mcast_grp, 188);
AT(ibv_device_attr, max_mcast_qp_attach, 192);
AT(ibv_device_attr, max_total_mcast_qp_attach, 196);
AT(ibv_device_attr, max_ah, 200);
AT(ibv_device_attr, max_fmr, 204);
AT(ibv_device_attr, max_map_per_fmr, 208);
AT(ibv_device_attr, max_srq, 212);
AT(ibv_device_attr, max_srq_wr, 216);
AT(ibv_device_attr, max_srq_sge, 220);
AT(ibv_device_attr, max_pkeys, 224);
AT(ibv_device_attr, local_ca_ack_delay, 226);
AT(ibv_device_attr, phys_port_cnt, 227);

SIZE(ibv_global_route, 24);
AT(ibv_global_route, dgid, 0);
AT(ibv_global_route, flow_label, 16);
AT(ibv_global_route, sgid_index, 20);
AT(ibv_global_route, hop_limit, 21);
AT(ibv_global_route, traffic_class, 22);

SIZE(ibv_grh, 40);
AT(ibv_grh, version_tclass_flow, 0);
AT(ibv_grh, paylen, 4);
AT(ibv_grh, next_hdr, 6);
AT(ibv_grh, hop_limit, 7);
AT(ibv_grh, sgid, 8);
AT(ibv_grh, dgid, 24);

SIZE(ibv_ah_attr, 32);
AT(ibv_ah_attr, grh, 0);
AT(ibv_ah_attr, dlid, 24);
AT(ibv_ah_attr, sl, 26);
AT(ibv_ah_attr, src_path_bits, 27);
AT(ibv_ah_attr, static_rate, 28);
AT(ibv_ah_attr, is_global, 29);
AT(ibv_ah_attr, port_num, 30);

SIZE(ibv_ah, 24);
AT(ibv_ah, context, 0);
AT(ibv_ah, pd, 8);
AT(ibv_ah, handle, 16);

SIZE(ibv_pd, 16);
AT(ibv_pd, context, 0);
AT(ibv_pd, handle, 8);

SIZE(ibv_mr, 48);
AT(ibv_mr, context, 0);
AT(ibv_mr, pd, 8);
AT(ibv_mr, addr, 16);
AT(ibv_mr, length, 24);
AT(ibv_mr, handle, 32);
AT(ibv_mr, lkey, 36);
AT(ibv_mr, rkey, 40);

SIZE(ibv_mw, 24);
AT(ibv_mw, context, 0);
AT(ibv_mw, pd, 8);
AT(ibv_mw, rkey, 16);

SIZE(ibv_mw_bind, 40);
AT(ibv_mw_bind, wr_id, 0);
AT(ibv_mw_bind, mr, 8);
AT(ibv_mw_bind, addr, 16);
AT(ibv_mw_bind, length, 24);
AT(ibv_mw_bind, send_flags, 32);
AT(ibv_mw_bind, mw_access_flags, 36);

SIZE(ibv_wc, 48);
AT(ibv_wc, wr_id, 0);
AT(ibv_wc, status, 8);
AT(ibv_wc, opcode, 12);
AT(ibv_wc, vendor_err, 16);
AT(ibv_wc, byte_len, 20);
AT(ibv_wc, imm_data, 24);
AT(ibv_wc, qp_num, 28);
AT(ibv_wc, src_qp, 32);
AT(ibv_wc, wc_flags, 36);
AT(ibv_wc, pkey_index, 40);
AT(ibv_wc, slid, 42);
AT(ibv_wc, sl, 44);
AT(ibv_wc, dlid_path_bits, 45);

SIZE(ibv_sge, 16);
AT(ibv_sge, addr, 0);
AT(ibv_sge, length, 8);
AT(ibv_sge, lkey, 12);

SIZE(ibv_recv_wr, 32);
AT(ibv_recv_wr, wr_id, 0);
AT(ibv_recv_wr, next, 8);
AT(ibv_recv_wr, sg_list, 16);
AT(ibv_recv_wr, num_sge, 24);

SIZE(ibv_qp_cap, 20);
AT(ibv_qp_cap, max_send_wr, 0);
AT(ibv_qp_cap, max_recv_wr, 4);
AT(ibv_qp_cap, max_send_sge, 8);
AT(ibv_qp_cap, max_recv_sge, 12);
AT(ibv_qp_cap, max_inline_data, 16);

SIZE(ibv_qp_attr, 136);
AT(ibv_qp_attr, qp_state, 0);
AT(ibv_qp_attr, cur_qp_state, 4);
AT(ibv_qp_attr, path_mtu, 8);
AT(ibv_qp_attr, path_mig_state, 12);
AT(ibv_qp_attr, qkey, 16);
AT(ibv_qp_attr, rq_psn, 20);
AT(ibv_qp_attr, sq_psn, 24);
AT(ibv_qp_attr, dest_qp_num, 28);
AT(ibv_qp_attr, qp_access_flags, 32);
AT(ibv_qp_attr, cap, 36);
AT(ibv_qp_attr, ah_attr, 56);
AT(ibv_qp_attr, alt_ah_attr, 88);
AT(ibv_qp_attr, pkey_index, 120);
AT(ibv_qp_attr, alt_pkey_index, 122);
AT(ibv_qp_attr, en_sqd_async_notify, 124);
AT(ibv_qp_attr, sq_draining, 125);
AT(ibv_qp_attr, max_rd_atomic, 126);
AT(ibv_qp_attr, max_dest_rd_atomic, 127);
AT(ibv_qp_attr, min_rnr_timer, 128);
AT(ibv_qp_attr, port_num, 129);
AT(ibv_qp_attr, timeout, 130);
AT(ibv_qp_attr, retry_cnt, 131);
AT(ibv_qp_attr, rnr_retry, 132);
AT(ibv_qp_attr, alt_port_num, 133);
AT(ibv_qp_attr, alt_timeout, 134);

SIZE(ibv_srq_attr, 12);
AT(ibv_srq_attr, max_wr, 0);
AT(ibv_srq_attr, max_sge, 4);
AT(ibv_srq_attr, srq_limit, 8);

SIZE(ibv_srq_init_attr, 24);
AT(ibv_srq_init_attr, srq_context, 0);
AT(ibv_srq_init_attr, attr, 8);

SIZE(ibv_comp_channel, 16);
AT(ibv_comp_channel, context, 0);
AT(ibv_comp_channel, fd, 8);
AT(ibv_comp_channel, refcnt, 12);

SIZE(ibv_sa_path_rec, 64);
AT(ibv_sa_path_rec, dgid, 0);
AT(ibv_sa_path_rec, sgid, 16);
AT(ibv_sa_path_rec, dlid, 32);
AT(ibv_sa_path_rec, slid, 34);
AT(ibv_sa_path_rec, raw_traffic, 36);
AT(ibv_sa_path_rec, flow_label, 40);
AT(ibv_sa_path_rec, hop_limit, 44);
AT(ibv_sa_path_rec, traffic_class, 45);
AT(ibv_sa_path_rec, reversible, 48);
AT(ibv_sa_path_rec, numb_path, 52);
AT(ibv_sa_path_rec, pkey, 54);
AT(ibv_sa_path_rec, sl, 56);
AT(ibv_sa_path_rec, mtu_selector, 57);
AT(ibv_sa_path_rec, mtu, 58);
AT(ibv_sa_path_rec, rate_selector, 59);
AT(ibv_sa_path_rec, rate, 60);
AT(ibv_sa_path_rec, packet_life_time_selector, 61);
AT(ibv_sa_path_rec, packet_life_time, 62);
AT(ibv_sa_path_rec, preference, 63);

SIZE(ibv_sa_mcmember_rec, 64);
AT(ibv_sa_mcmember_rec, mgid, 0);
AT(ibv_sa_mcmember_rec, port_gid, 16);
AT(ibv_sa_mcmember_rec, qkey, 32);
AT(ibv_sa_mcmember_rec, mlid, 36);
AT(ibv_sa_mcmember_rec, mtu_selector, 38);
AT(ibv_sa_mcmember_rec, mtu, 39);
AT(ibv_sa_mcmember_rec, traffic_class, 40);
AT(ibv_sa_mcmember_rec, pkey, 42);
AT(ibv_sa_mcmember_rec, rate_selector, 44);
AT(ibv_sa_mcmember_rec, rate, 45);
AT(ibv_sa_mcmember_rec, packet_life_time_selector, 46);
AT(ibv_sa_mcmember_rec, packet_life_time, 47);
AT(ibv_sa_mcmember_rec, sl, 48);
AT(ibv_sa_mcmember_rec, flow_label, 52);
AT(ibv_sa_mcmember_rec, hop_limit, 56);
AT(ibv_sa_mcmember_rec, scope, 57);
AT(ibv_sa_mcmember_rec, join_state, 58);
AT(ibv_sa_mcmember_rec, proxy_join, 60);

SIZE(ibv_sa_service_rec, 176);
AT(ibv_sa_service_rec, id, 0);
AT(ibv_sa_service_rec, gid, 8);
AT(ibv_sa_service_rec, pkey, 24);
AT(ibv_sa_service_rec, lease, 28);
AT(ibv_sa_service_rec, key, 32);
AT(ibv_sa_service_rec, name, 48);
AT(ibv_sa_service_rec, data8, 112);
AT(ibv_sa_service_rec, data16, 128);
AT(ibv_sa_service_rec, data32, 144);
AT(ibv_sa_service_rec, data64, 160);

SIZE(ibv_device_ops, 16);
AT(ibv_device_ops, alloc_context, 0);
AT(ibv_device_ops, free_context, 8);

SIZE(ibv_context_ops, 256);
AT(ibv_context_ops, query_device, 0);
AT(ibv_context_ops, query_port, 8);
AT(ibv_context_ops, alloc_pd, 16);
AT(ibv_context_ops, dealloc_pd, 24);
AT(ibv_context_ops, reg_mr, 32);
AT(ibv_context_ops, rereg_mr, 40);
AT(ibv_context_ops, dereg_mr, 48);
AT(ibv_context_ops, alloc_mw, 56);
AT(ibv_context_ops, bind_mw, 64);
AT(ibv_context_ops, dealloc_mw, 72);
AT(ibv_context_ops, create_cq, 80);
AT(ibv_context_ops, poll_cq, 88);
AT(ibv_context_ops, req_notify_cq, 96);
AT(ibv_context_ops, cq_event, 104);
AT(ibv_context_ops, resize_cq, 112);
AT(ibv_context_ops, destroy_cq, 120);
AT(ibv_context_ops, create_srq, 128);
AT(ibv_context_ops, modify_srq, 136);
AT(ibv_context_ops, query_srq, 144);
AT(ibv_context_ops, destroy_srq, 152);
AT(ibv_context_ops, post_srq_recv, 160);
AT(ibv_context_ops, create_qp, 168);
AT(ibv_context_ops, query_qp, 176);
AT(ibv_context_ops, modify_qp, 184);
AT(ibv_context_ops, destroy_qp, 192);
AT(ibv_context_ops, post_send, 200);
AT(ibv_context_ops, post_recv, 208);
AT(ibv_context_ops, create_ah, 216);
AT(ibv_context_ops, destroy_ah, 224);
AT(ibv_context_ops, attach_mcast, 232);
AT(ibv_context_ops, detach_mcast, 240);
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
