// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Commands: ids, their options, their events. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "channel.h"
#include "command.h"
#include "exchange.h"
#include "id.h"
#include "port.h"
#include "resolve.h"

#define MOST_OF_A_VALUE (4u << 20) /* that a kernel copies */

/* Kernels of OFED's time know no types: the port space tells. They look at it when they bind. */
static int type_of(const struct cm_call *c, const struct cm_create_id *cmd, uint8_t *type)
{
	switch (cmd->ps) {
	case CM_PS_TCP:
		*type = CM_QPT_RC;
		return 0;
	case CM_PS_UDP:
	case CM_PS_IPOIB:
		*type = CM_QPT_UD;
		return 0;
	case CM_PS_IB:
		*type = cmd->qp_type;
		if (cm_ofed(c))
			*type = CM_QPT_RC;
		return 0;
	}
	*type = CM_QPT_RC;
	return cm_ofed(c) ? 0 : -EINVAL;
}

int cm_cmd_create_id(struct cm_call *c)
{
	const struct cm_create_id *cmd = (const void *)c->in;
	struct cm_number_resp resp;
	struct cm_id *id;
	uint32_t reported;
	uint8_t type;
	int err;

	err = type_of(c, cmd, &type);
	if (err)
		return err;
	err = cm_id_new(c->ch, c->ch->host, &id);
	if (err)
		return err;
	id->uid = cmd->uid;
	id->known = true;
	id->ps = id->service = cmd->ps;
	id->qp_type = type;
	resp.value = id->number;
	err = cm_respond(c, cmd->response, &resp, sizeof(resp));
	if (err)
		cm_id_destroy(id, &reported);
	return err;
}

int cm_cmd_destroy_id(struct cm_call *c)
{
	const struct cm_of_id *cmd = (const void *)c->in;
	struct cm_number_resp resp;
	struct cm_id *id;
	int err;

	err = cm_id_get_any(c->ch, cmd->id, &id);
	if (err)
		return err;
	cm_id_destroy(id, &resp.value);
	return cm_respond(c, cmd->response, &resp, sizeof(resp));
}

int cm_cmd_migrate_id(struct cm_call *c)
{
	const struct cm_of_id *cmd = (const void *)c->in;
	struct cm_number_resp resp;
	struct cm_channel *from;
	struct cm_id *id;
	int err;

	err = cm_channel_by_fd(c->cm, c->tid, (int)cmd->value, &from);
	if (err)
		return err;
	if (from->host != c->ch->host)
		return -EINVAL;
	err = cm_id_get(from, cmd->id, &id);
	if (err)
		return err;
	resp.value = id->reported;
	err = cm_respond(c, cmd->response, &resp, sizeof(resp));
	if (!err)
		cm_id_migrate(id, c->ch);
	return err;
}

/* ---- options ---- */

static int user_value(struct cm_call *c, const struct cm_set_option *cmd, void *to, size_t len)
{
	if (cmd->len != len)
		return -EINVAL;
	return cm_read(c, cmd->optval, to, len);
}

static int set_tos(struct cm_call *c, struct cm_id *id, const struct cm_set_option *cmd)
{
	return user_value(c, cmd, &id->tos, sizeof(id->tos));
}

static int set_reuse(struct cm_call *c, struct cm_id *id, const struct cm_set_option *cmd)
{
	int value, err = user_value(c, cmd, &value, sizeof(value));

	if (err)
		return err;
	if (id->state == CM_LISTENING || (!value && id->state != CM_IDLE))
		return -EINVAL;
	id->reuse = value;
	return 0;
}

static int set_afonly(struct cm_call *c, struct cm_id *id, const struct cm_set_option *cmd)
{
	int value, err = user_value(c, cmd, &value, sizeof(value));

	if (err)
		return err;
	if (id->state > CM_BOUND)
		return -EINVAL;
	id->afonly = value;
	id->afonly_set = true;
	return 0;
}

static int set_ack_timeout(struct cm_call *c, struct cm_id *id, const struct cm_set_option *cmd)
{
	uint8_t value;
	int err = user_value(c, cmd, &value, sizeof(value));

	if (err)
		return err;
	if (id->qp_type != CM_QPT_RC && id->qp_type != CM_QPT_XRC_INI)
		return -EINVAL;
	/* A QP has five bits for it, of which cards take no more. */
	id->ack_timeout = value & 31;
	id->ack_timeout_set = true;
	return 0;
}

/*
 * As a kernel copies all paths, each is to be there. At once: other hosts' commands wait as long as
 * this one takes.
 */
static int copy_paths(struct cm_call *c, const struct cm_set_option *cmd,
		      struct cm_path_data **paths)
{
	if (!cmd->len || cmd->len % sizeof(**paths) || cmd->len > MOST_OF_A_VALUE)
		return -EINVAL;
	*paths = malloc(cmd->len);
	if (!*paths)
		return -ENOMEM;
	if (cm_read(c, cmd->optval, *paths, cmd->len) >= 0)
		return 0;
	free(*paths);
	return -EFAULT;
}

/* The first path that is for both directions counts. */
static int set_ib_path(struct cm_call *c, struct cm_id *id, const struct cm_set_option *cmd)
{
	struct cm_path_data *paths;
	uint32_t n = cmd->len / sizeof(*paths), i = 0;
	int err;

	err = copy_paths(c, cmd, &paths);
	if (err)
		return err;
	while (i < n && paths[i].flags != CM_PATH_FLAGS)
		i++;
	err = i < n ? cm_set_path(id, &paths[i].record) : -EINVAL;
	free(paths);
	return err;
}

int cm_cmd_set_option(struct cm_call *c)
{
	const struct cm_set_option *cmd = (const void *)c->in;
	bool ofed = cm_ofed(c);
	struct cm_id *id;
	int err;

	err = cm_call_id(c, cmd->id, &id);
	if (err)
		return err;
	if (cmd->level == CM_LEVEL_IB && cmd->name == CM_IB_PATH)
		return set_ib_path(c, id, cmd);
	if (cmd->level != CM_LEVEL_ID)
		return -ENOSYS;
	if (cmd->name == CM_ID_TOS)
		return set_tos(c, id, cmd);
	if (ofed)
		return -ENOSYS;
	switch (cmd->name) {
	case CM_ID_REUSEADDR:
		return set_reuse(c, id, cmd);
	case CM_ID_AFONLY:
		return set_afonly(c, id, cmd);
	case CM_ID_ACK_TIMEOUT:
		return set_ack_timeout(c, id, cmd);
	}
	return -ENOSYS;
}

/* ---- events ---- */

int cm_cmd_get_event(struct cm_call *c)
{
	/* Kernels of OFED's time know less of an event, and tell all that or nothing. */
	bool ofed = cm_ofed(c);
	size_t size = ofed ? offsetof(struct cm_event_resp, ece) : sizeof(struct cm_event_resp);
	uint64_t response;
	struct cm_event *e = c->ch->events;
	struct cm_id *id, *fresh;
	int err;

	if (ofed && c->out_len < size)
		return -ENOSPC;
	memcpy(&response, c->in, sizeof(response));
	if (!e)
		return -EAGAIN;
	err = cm_respond(c, response, &e->resp, size);
	if (err) {
		/* The thread may have slept before it asked. */
		cm_channel_level(c->ch);
		return err;
	}
	id = e->id;
	fresh = e->fresh;
	cm_event_done(e);
	if (fresh) {
		fresh->hidden = false;
		cm_exchange_read(id);
	}
	return 0;
}
