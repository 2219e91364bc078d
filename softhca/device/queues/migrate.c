// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Moves a QP from its path to its alternate path. The caller has both locks of the QP.
 */
#include "flush.h"
#include "migrate.h"
#include "qp.h"

void sh_migrate(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp)
{
	/* Pinned: all of it happens, with its event. */
	struct sh_door *door = sh_pin();

	qp->path = qp->alt_path;
	if (qp->alt_port) {
		sh_qp_leave_port(hca, qp);
		qp->port = qp->alt_port;
	}
	qp->pkey_index = qp->alt_pkey_index;
	qp->timeout = qp->alt_timeout;
	qp->mig_state = SH_MIG_MIGRATED;
	sh_qp_event(dev, hca, qp, SH_QPE_PATH_MIG);
	sh_unpin(door);
}
