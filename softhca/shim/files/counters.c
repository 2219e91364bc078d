// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Counters are files like others, which the daemon writes. So that a program reads what is so now,
 * the daemon writes them when one is opened.
 */
#include <errno.h>

#include "softhca/protocol.h"
#include "softhca/shim/attach.h"
#include "counters.h"

void shim_counters_refresh(void)
{
	struct sh_counters_msg req = {.type = SH_MSG_COUNTERS};
	struct sh_status reply;
	int saved = errno;

	if (shim_control_get() == 0) {
		(void)shim_request(&req, sizeof(req), &reply, sizeof(reply), NULL, NULL);
		shim_control_put();
	}
	errno = saved;
}
