// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The files of sysfs with counters: ports/N/counters, and with mainline kernels hw_counters of the
 * HCA. A file changes only when its value does.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "softhca/device/queues/qp.h"
#include "counters.h"
#include "fs.h"
#include "kern.h"
#include "sysfs.h"

static const char *const names[C_COUNTERS] = {
	[C_SYMBOL_ERROR] = "symbol_error",
	[C_LINK_RECOVERY] = "link_error_recovery",
	[C_LINK_DOWNED] = "link_downed",
	[C_RCV_ERRORS] = "port_rcv_errors",
	[C_RCV_REMOTE_PHYSICAL] = "port_rcv_remote_physical_errors",
	[C_RCV_SWITCH_RELAY] = "port_rcv_switch_relay_errors",
	[C_XMIT_DISCARDS] = "port_xmit_discards",
	[C_XMIT_CONSTRAINT] = "port_xmit_constraint_errors",
	[C_RCV_CONSTRAINT] = "port_rcv_constraint_errors",
	[C_LOCAL_INTEGRITY] = "local_link_integrity_errors",
	[C_BUFFER_OVERRUN] = "excessive_buffer_overrun_errors",
	[C_VL15_DROPPED] = "VL15_dropped",
	[C_XMIT_DATA] = "port_xmit_data",
	[C_RCV_DATA] = "port_rcv_data",
	[C_XMIT_PACKETS] = "port_xmit_packets",
	[C_RCV_PACKETS] = "port_rcv_packets",
	[C_XMIT_WAIT] = "port_xmit_wait",
	[C_UNICAST_XMIT] = "unicast_xmit_packets",
	[C_UNICAST_RCV] = "unicast_rcv_packets",
	[C_MULTICAST_XMIT] = "multicast_xmit_packets",
	[C_MULTICAST_RCV] = "multicast_rcv_packets",
};

/* Those without a source here stay 0. */
enum hw { RQ_DUP, RQ_OOS, RQ_RNR, SQ_RNR, SQ_TO, HW_COUNTED };
static const char *const hw_names[] = {
	[RQ_DUP] = "rq_num_dup",
	[RQ_OOS] = "rq_num_oos",
	[RQ_RNR] = "rq_num_rnr",
	[SQ_RNR] = "sq_num_rnr",
	[SQ_TO] = "sq_num_to",
	"rq_num_lle",
	"sq_num_lle",
	"rq_num_lqpoe",
	"sq_num_lqpoe",
	"rq_num_lpe",
	"sq_num_lpe",
	"rq_num_wrfe",
	"sq_num_wrfe",
	"sq_num_mwbe",
	"sq_num_bre",
	"sq_num_rire",
	"rq_num_rire",
	"sq_num_rae",
	"rq_num_rae",
	"sq_num_roe",
	"sq_num_tree",
	"sq_num_rree",
	"sq_num_oos",
	"rq_num_udsdprd",
	"num_cqovf",
};
#define HW_NAMES (sizeof(hw_names) / sizeof(hw_names[0]))
_Static_assert(HW_COUNTED <= COUNTERS_HW, "a place for each");

static bool mainline(const struct kernel *k)
{
	return k->cfg.device.face == SH_FACE_MAINLINE;
}

/* Kernels of OFED's time have the narrow ones alone. */
static unsigned int port_names(const struct kernel *k)
{
	return mainline(k) ? C_COUNTERS : C_XMIT_WAIT;
}

static int put(struct kernel *k, const char *dir, const char *name, uint64_t value)
{
	char path[320];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return file_attribute(k->dir_fd, path, "%" PRIu64 "\n", value);
}

static void port_values(struct kernel *k, uint32_t hca, uint32_t port, uint64_t v[C_COUNTERS])
{
	uint64_t wide[C_COUNTERS];

	counters_read(k, hca, port, COUNTERS_NARROW, v);
	if (!mainline(k))
		return;
	counters_read(k, hca, port, COUNTERS_WIDE, wide);
	for (unsigned int i = C_XMIT_DATA; i < C_COUNTERS; i++)
		if (i != C_XMIT_WAIT)
			v[i] = wide[i];
}

static void hw_values(struct kernel *k, uint32_t hca, uint64_t v[HW_COUNTED])
{
	struct sh_counters c;

	sh_counters(&k->dev, hca, &c);
	v[RQ_DUP] = c.duplicates;
	v[RQ_OOS] = c.out_of_sequence;
	v[RQ_RNR] = c.rnr_naks_sent;
	v[SQ_RNR] = c.rnr_retries;
	v[SQ_TO] = c.retries;
}

static int port_files(struct kernel *k, uint32_t hca, uint32_t port, bool all)
{
	uint64_t *shown = counters_shown(k, hca, port), v[C_COUNTERS];
	char dir[256];
	int err = 0;

	sysfs_port_dir(k, dir, hca, port);
	strcat(dir, "/counters");
	if (all)
		err = dir_make(k->dir_fd, dir);
	port_values(k, hca, port, v);
	for (unsigned int i = 0; i < port_names(k); i++)
		if (all || shown[i] != v[i]) {
			err = err ?: put(k, dir, names[i], v[i]);
			shown[i] = v[i];
		}
	return err;
}

static int hw_files(struct kernel *k, uint32_t hca, bool all)
{
	uint64_t *shown = counters_hw_shown(k, hca), v[HW_COUNTED];
	char dir[256];
	int err = 0;

	if (!mainline(k))
		return 0;
	sysfs_hca_dir(k, dir, hca);
	strcat(dir, "/hw_counters");
	if (all) {
		err = dir_make(k->dir_fd, dir);
		err = err ?: put(k, dir, "lifespan", 10);
	}
	hw_values(k, hca, v);
	for (unsigned int i = 0; i < (all ? HW_NAMES : HW_COUNTED); i++) {
		uint64_t value = i < HW_COUNTED ? v[i] : 0;

		if (all || shown[i] != value)
			err = err ?: put(k, dir, hw_names[i], value);
		if (i < HW_COUNTED)
			shown[i] = value;
	}
	return err;
}

static int write_hca(struct kernel *k, uint32_t hca, bool all)
{
	int err = hw_files(k, hca, all);

	for (uint32_t port = 1; port <= k->cfg.device.ports; port++)
		err = err ?: port_files(k, hca, port, all);
	return err;
}

int counters_files(struct kernel *k, uint32_t hca)
{
	return write_hca(k, hca, true);
}

void counters_refresh(struct kernel *k, uint32_t host)
{
	uint32_t n = k->counters ? k->cfg.device.hcas_per_host : 0;

	for (uint32_t i = host * n; i < (host + 1) * n; i++)
		(void)write_hca(k, i, false);
}

void counters_tick(struct kernel *k)
{
	for (uint32_t i = 0; i < k->cfg.device.hosts; i++)
		counters_refresh(k, i);
}
