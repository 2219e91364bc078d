// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The subnet administrator. It makes its records anew for each question, from what the ports are
 * now; a port whose link is down has none. A table is one RMPP message: between two files of an
 * instance no receiver needs its segments.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sa.h"
#include "sa_group.h"
#include "sa_inform.h"
#include "sa_path.h"
#include "sa_service.h"
#include "smp.h"

#define RESPONSE_TIME 16
#define CAP_SA	      0x2200 /* one can join groups, and ask for PortInfo by bits of its mask */
#define SEGMENT	      200

enum sa_attribute {
	CLASS_PORT_INFO = 0x01,
	INFORM_INFO = 0x03,
	SERVICE_RECORD = 0x31,
	GROUP_RECORD = 0x38,
};

/* There are no records: the status that says so. */
static int none(const struct sa_table *t)
{
	if (t->components == sa_path_components && sa_path_stranger(t))
		return SA_STATUS(SA_INVALID_GID);
	return mad_is_get(t->asked) ? SA_STATUS(SA_NO_RECORDS) : 0;
}

/* One message with all records, and the header that its first segment has. */
static int make_table(struct sa_table *a, const uint8_t *mad, uint8_t **more, size_t *more_len)
{
	size_t data = a->n * a->size, segments = data ? (data + SEGMENT - 1) / SEGMENT : 1;
	uint8_t *m = calloc(1, AT_SA + data > MAD_SIZE ? AT_SA + data : MAD_SIZE);

	if (!m)
		return SA_STATUS(SA_NO_RESOURCES);
	memcpy(m, mad, AT_SA);
	memcpy(m + AT_SA, a->data ? a->data : m + AT_SA, data);
	m[AT_RMPP_VERSION] = 1;
	m[AT_RMPP_TYPE] = RMPP_DATA;
	m[AT_RMPP_FLAGS] = RMPP_ACTIVE | RMPP_FIRST | (segments == 1 ? RMPP_LAST : 0);
	m[AT_RMPP_STATUS] = 0;
	mad_put32(m, AT_RMPP_NUMBER, 1);
	mad_put32(m, AT_RMPP_LENGTH, (uint32_t)(data + 20 * segments));
	mad_put16(m, AT_OFFSET, a->n ? (uint32_t)a->size / 8 : 0);
	*more = m;
	*more_len = AT_SA + data;
	return 0;
}

static int class_port_info(uint8_t *mad)
{
	memset(mad + AT_SA, 0, MAD_SIZE - AT_SA);
	mad[AT_SA] = 1;
	mad[AT_SA + 1] = SA_VERSION;
	mad_put16(mad, AT_SA + 2, CAP_SA);
	mad[AT_SA + 7] = RESPONSE_TIME;
	return 0;
}

/* Set and Delete. */
static int change(struct umad *u, const struct mad_way *w, const struct mad_node *n, uint8_t *mad)
{
	bool set = mad[AT_METHOD] == METHOD_SET;

	switch (mad16(mad, AT_ATTRIBUTE)) {
	case INFORM_INFO:
		return set ? sa_inform_set(u, w, n, mad) : STATUS_ATTRIBUTE;
	case SERVICE_RECORD:
		return set ? sa_service_set(u, w, mad) : sa_service_delete(u, w, mad);
	case GROUP_RECORD:
		return set ? sa_group_join(u, mad) : sa_group_leave(u, mad);
	default:
		return STATUS_ATTRIBUTE;
	}
}

bool sa_is_at(struct umad *u, const struct mad_node *n, const uint8_t *mad)
{
	return mad[AT_CLASS] == CLASS_SA && smp_is_sm(u, n);
}

bool sa_ignores(const uint8_t *mad)
{
	uint64_t key = mad64(mad, AT_SM_KEY);

	return key && key != 1 && key != UINT64_C(1) << 56;
}

int sa_answer(struct umad *u, const struct mad_way *w, const struct mad_node *n, uint8_t *mad,
	      uint8_t **more, size_t *more_len)
{
	struct sa_table a = {.u = u, .way = w, .asked = mad};
	uint8_t method = mad[AT_METHOD];
	int status;

	if (method != METHOD_GET && method != METHOD_GET_TABLE && method != METHOD_SET &&
	    method != METHOD_DELETE)
		return -1;
	if (mad[AT_CLASS_VERSION] != SA_VERSION)
		return STATUS_VERSION;
	if (method == METHOD_SET || method == METHOD_DELETE)
		return change(u, w, n, mad);
	if (mad16(mad, AT_ATTRIBUTE) == CLASS_PORT_INFO && method == METHOD_GET)
		return class_port_info(mad);
	if (!sa_collect(&a))
		return STATUS_ATTRIBUTE;
	if (a.failed)
		status = SA_STATUS(SA_NO_RESOURCES);
	else if (!a.n && (status = none(&a)))
		;
	else if (method == METHOD_GET_TABLE && w->qpn > 1 && AT_SA + a.n * a.size > MAD_SIZE)
		status = SA_STATUS(SA_TOO_MANY); /* a QP gets one segment */
	else if (method == METHOD_GET_TABLE)
		status = make_table(&a, mad, more, more_len);
	else if (a.n > 1 && a.components != sa_path_components)
		status = SA_STATUS(SA_TOO_MANY);
	else {
		memset(mad + AT_SA, 0, MAD_SIZE - AT_SA);
		memcpy(mad + AT_SA, a.data, a.size);
		mad_put16(mad, AT_OFFSET, (uint32_t)a.size / 8);
		status = 0;
	}
	free(a.data);
	return status;
}
