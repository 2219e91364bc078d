// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Finds and opens the device, and words error messages. Holds no state. */

#include <config.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "pingpong.h"
#include "tool.h"

int pp_fail(int err, const char *advice, const char *what, ...)
{
	va_list ap;

	if (err < 0)
		err = -err;
	/* No verb of a failed device works again, so advice about arguments would mislead. */
	if (err == EIO)
		advice = "The device has failed, or was taken away: end this program and the "
			 "others that use it. The kernel's log "
			 "(dmesg) may say why.";
	fflush(stdout);
	va_start(ap, what);
	vfprintf(stderr, what, ap);
	va_end(ap);
	if (err)
		fprintf(stderr, ": %s", strerror(err));
	fputc('\n', stderr);
	if (advice)
		fprintf(stderr, "  %s\n", advice);
	return err ? -err : -EIO;
}

const char *pp_memory_advice(int err)
{
	return err == ENOMEM ? "The locked-memory limit is the usual reason: see `ulimit -l`, and "
			       "raise it in /etc/security/limits.d."
			     : NULL;
}

const char *pp_open_advice(int err)
{
	switch (err) {
	case EACCES:
		return "Devices open to members of the group that owns /dev/infiniband/uverbs* "
		       "(usually rdma).";
	case EPERM:
		return "If no line above says why: a security profile or the rules of a container "
		       "forbid it; a container needs --device /dev/infiniband.";
	case ENOENT:
		return "Its device file is missing: load the module ib_uverbs, or have udev make "
		       "/dev/infiniband/uverbs*; a container "
		       "needs --device /dev/infiniband.";
	case ENODEV:
	case ENXIO:
		return "The device is gone: its driver was unloaded, or the adapter failed. "
		       "ibv_devices lists those that are left.";
	case ENOMEM:
		return "If no line above says why, the memory or the addresses of the process are "
		       "limited: see `ulimit -v` and `ulimit -d`.";
	default:
		return NULL;
	}
}

const char *pp_list_advice(int err)
{
	if (access("/sys/class", F_OK))
		return "/sys is not mounted here: mount -t sysfs sysfs /sys.";
	if (err != ENOSYS)
		return pp_memory_advice(err);
	return "No IB devices found. If no line above says why: load the adapter's driver "
	       "(mlx4_ib) and ib_uverbs. Without an adapter, "
	       "start this command with `softhca run --`.";
}

const char *pp_none_advice(void)
{
	return "If no line above says why: load the adapter's driver (mlx4_ib), and install its "
	       "provider library.";
}

static struct ibv_device *find_device(struct ibv_device **list, const char *name)
{
	if (!list[0]) {
		pp_fail(0, pp_none_advice(), "No IB devices found");
		return NULL;
	}
	if (!name)
		return list[0];
	for (int i = 0; list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			return list[i];
	pp_fail(0, "ibv_devices lists the devices there are.", "IB device %s not found", name);
	return NULL;
}

struct ibv_context *pp_open_device(const char *name)
{
	struct ibv_device **list, *device;
	struct ibv_context *context = NULL;

	list = tool_devices(NULL);
	if (!list)
		return NULL;
	device = find_device(list, name);
	if (device) {
		errno = 0;
		context = ibv_open_device(device);
		if (!context)
			pp_fail(errno, pp_open_advice(errno), "Couldn't get context for %s",
				ibv_get_device_name(device));
	}
	ibv_free_device_list(list);
	return context;
}

int pp_query_port(struct ibv_context *context, int port, struct ibv_port_attr *attr)
{
	const char *device = ibv_get_device_name(context->device);
	int err = ibv_query_port(context, port, attr);

	if (err)
		return pp_fail(err, "-i chooses the port; ibv_devinfo lists the ports there are.",
			       "Couldn't get port info of %s port %d", device, port);
	if (attr->state != IBV_PORT_ACTIVE)
		return pp_fail(ENETDOWN,
			       "It becomes active when the cable is in and a subnet manager has "
			       "configured it.",
			       "Port %d of %s is %s", port, device,
			       ibv_port_state_str(attr->state));
	if (attr->link_layer != IBV_LINK_LAYER_ETHERNET && !attr->lid)
		return pp_fail(ENETDOWN,
			       "A subnet manager assigns LIDs; is one running on this fabric?",
			       "Couldn't get local LID of %s port %d", device, port);
	return 0;
}

int pp_query_gid(struct ibv_context *context, const struct pp_options *opt,
		 const struct ibv_port_attr *port, union ibv_gid *gid)
{
	union ibv_gid new = {};

	errno = 0;
	if (opt->gid_idx >= 0 && ibv_query_gid(context, opt->ib_port, opt->gid_idx, &new))
		return pp_fail(errno, "ibv_devinfo -v lists the GID table.",
			       "Could not get local gid for gid index %d", opt->gid_idx);
	if (opt->gid_idx < 0 && port->link_layer == IBV_LINK_LAYER_ETHERNET)
		return pp_fail(0, "Choose one of the GIDs that ibv_devinfo -v lists.",
			       "An Ethernet port needs a GID (-g)");
	*gid = new;
	return 0;
}
