// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Records of the subnet administrator (SA) as the kernel's connection managers pass them. */

#ifndef INFINIBAND_SA_KERN_ABI_H
#define INFINIBAND_SA_KERN_ABI_H

#include <linux/types.h>

/* A path. The fields have the meaning and byte order of struct ibv_sa_path_rec in sa.h. */
struct ibv_kern_path_rec {
	__u8 dgid[16];
	__u8 sgid[16];
	__u16 dlid;
	__u16 slid;
	__u32 raw_traffic;
	__u32 flow_label;
	__u32 reversible;
	__u32 mtu;
	__u16 pkey;
	__u8 hop_limit;
	__u8 traffic_class;
	__u8 numb_path;
	__u8 sl;
	__u8 mtu_selector;
	__u8 rate_selector;
	__u8 rate;
	__u8 packet_life_time_selector;
	__u8 packet_life_time;
	__u8 preference;
};

#endif /* INFINIBAND_SA_KERN_ABI_H */
