// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* ibv_srq_pingpong: the ping-pong over several RC QPs whose receives come from one SRQ. */

#include <config.h>

#include "pingpong.h"

int main(int argc, char **argv)
{
	static const struct pp_kind kind = {.qp_type = IBV_QPT_RC,
					    .srq = true,
					    .wire_count = PP_SRQ_QPS,
					    .init = pp_init_connected,
					    .connect = pp_connect_rc};
	struct pp_options opt = PP_DEFAULTS;

	pp_parse(argc, argv,
		 PP_COMMON | PP_BIT(PP_MTU) | PP_BIT(PP_NUM_QP) | PP_BIT(PP_RX_DEPTH) |
			 PP_BIT(PP_ITERS) | PP_BIT(PP_ODP),
		 &opt);
	return pp_run_pair(&kind, &opt);
}
