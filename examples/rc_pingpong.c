// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* ibv_rc_pingpong: the ping-pong over one RC QP. */

#include <config.h>

#include "pingpong.h"

int main(int argc, char **argv)
{
	static const struct pp_kind kind = {.qp_type = IBV_QPT_RC,
					    .wire_count = 1,
					    .init = pp_init_connected,
					    .connect = pp_connect_rc};
	struct pp_options opt = PP_DEFAULTS;

	pp_parse(argc, argv,
		 PP_COMMON | PP_BIT(PP_MTU) | PP_BIT(PP_RX_DEPTH) | PP_BIT(PP_ITERS) |
			 PP_BIT(PP_ODP) | PP_BIT(PP_IODP) | PP_BIT(PP_PREFETCH) | PP_BIT(PP_TS) |
			 PP_BIT(PP_DM) | PP_BIT(PP_NEW_SEND),
		 &opt);
	return pp_run_pair(&kind, &opt);
}
