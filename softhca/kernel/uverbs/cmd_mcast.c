// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Multicast groups of UD QPs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "softhca/device/transport/mcast.h"
#include "softhca/kernel/kern.h"
#include "softhca/kernel/wire_groups.h"
#include "commands.h"

#define LID_PERMISSIVE 0xffff

static struct kmcast **find(struct kqp_handle *h, const uint8_t gid[16])
{
	struct kmcast **m;

	for (m = &h->mcast; *m; m = &(*m)->next)
		if (!memcmp((*m)->gid, gid, 16))
			break;
	return m;
}

/* Kernels of OFED's time do not check the LID. */
static bool is_group(const struct kernel *k, const struct kqp_handle *h, const uint8_t gid[16],
		     uint16_t lid)
{
	if (k->cfg.device.face == SH_FACE_MAINLINE &&
	    (lid < SH_LID_GROUPS || lid == LID_PERMISSIVE))
		return false;
	/* RoCE's form of a group is for peers on a wire. */
	if (gid[0] != 0xff && !(k->cfg.device.wire.n && sh_gid_is_group(gid)))
		return false;
	return h->qp->type == SH_QPT_UD;
}

int cmd_attach_mcast(struct call *c)
{
	const struct uv_mcast *cmd = (const void *)c->in;
	struct kqp_handle *h = uobj_get(c->ctx, UO_QP, cmd->qp_handle);
	struct kmcast *m;
	int err;

	if (!h)
		return -EINVAL;
	if (*find(h, cmd->gid))
		return 0;
	if (!is_group(c->k, h, cmd->gid, cmd->mlid))
		return -EINVAL;
	m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	memcpy(m->gid, cmd->gid, sizeof(m->gid));
	m->mlid = cmd->mlid;
	err = sh_mcast_attach(&c->k->dev, h->qp->hca, m->gid, h->qp->qpn);
	if (err < 0) {
		free(m);
		return err;
	}
	wire_join(c->k, m->gid);
	m->next = h->mcast;
	h->mcast = m;
	return 0;
}

int cmd_detach_mcast(struct call *c)
{
	const struct uv_mcast *cmd = (const void *)c->in;
	struct kqp_handle *h = uobj_get(c->ctx, UO_QP, cmd->qp_handle);
	struct kmcast **m, *gone;
	int err;

	if (!h || !is_group(c->k, h, cmd->gid, cmd->mlid))
		return -EINVAL;
	m = find(h, cmd->gid);
	if (!*m)
		return -EINVAL;
	err = sh_mcast_detach(&c->k->dev, h->qp->hca, cmd->gid, h->qp->qpn);
	if (err < 0)
		return err;
	wire_part(c->k, cmd->gid);
	gone = *m;
	*m = gone->next;
	free(gone);
	return 0;
}
