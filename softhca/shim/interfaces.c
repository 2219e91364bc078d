// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Interfaces of the own host's ports, as IP over InfiniBand would have them: getifaddrs() lists one
 * for each port, with its address of the instance's block, behind the machine's. Programs look there
 * for addresses that an RDMA device has. The kernel knows nothing of them: what asks it in other
 * ways (ioctl(), netlink, sysfs) does not find them.
 */
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softhca/host/address.h"
#include "attach.h"
#include "interpose.h"
#include "resolve.h"

struct interface {
	struct ifaddrs ifa; /* first */
	struct sockaddr_in address;
	char name[IF_NAMESIZE];
};

/* Of all hosts of the instance. freeifaddrs() knows the entries of this file by them. */
static struct sockaddr_in netmask = {.sin_family = AF_INET};
static struct sockaddr_in broadcast = {.sin_family = AF_INET};

static bool taken(const struct ifaddrs *list, const char *name)
{
	for (; list; list = list->ifa_next)
		if (!strcmp(list->ifa_name, name))
			return true;
	return false;
}

/* number: where to look for a name; becomes that of the next interface. */
static struct interface *make(const struct ifaddrs *list, unsigned int n, unsigned int *number)
{
	struct interface *i = calloc(1, sizeof(*i));

	if (!i)
		return NULL;
	do
		snprintf(i->name, sizeof(i->name), "ib%u", (*number)++);
	while (taken(list, i->name));
	i->address = (struct sockaddr_in){.sin_family = AF_INET,
					  .sin_addr = sh_host_address(shim.host, n)};
	i->ifa = (struct ifaddrs){
		.ifa_name = i->name,
		.ifa_flags = IFF_UP | IFF_BROADCAST | IFF_RUNNING | IFF_MULTICAST,
		.ifa_addr = (struct sockaddr *)&i->address,
		.ifa_netmask = (struct sockaddr *)&netmask,
		.ifa_broadaddr = (struct sockaddr *)&broadcast,
	};
	return i;
}

EXPORT void freeifaddrs(struct ifaddrs *list)
{
	struct ifaddrs **end = &list, *next;

	while (*end && (*end)->ifa_netmask != (struct sockaddr *)&netmask)
		end = &(*end)->ifa_next;
	next = *end;
	*end = NULL;
	while (next) {
		struct interface *ours = (struct interface *)(void *)next;

		next = ours->ifa.ifa_next;
		free(ours);
	}
	if (list)
		REAL(freeifaddrs)(list);
}

EXPORT int getifaddrs(struct ifaddrs **out)
{
	struct ifaddrs *list = NULL, **end = &list;
	unsigned int n, number = 0;
	struct interface *i;

	if (!shim_active())
		return REAL(getifaddrs)(out);
	if (REAL(getifaddrs)(&list))
		return -1;
	netmask.sin_addr.s_addr = htonl(SH_HOSTS_NETMASK);
	broadcast.sin_addr.s_addr = sh_host_address(255, 255).s_addr;
	while (*end)
		end = &(*end)->ifa_next;
	for (n = 1; n < 255 && shim_has_address(shim.host, n); n++) {
		i = make(list, n, &number);
		if (!i) {
			freeifaddrs(list);
			errno = ENOMEM;
			return -1;
		}
		*end = &i->ifa;
		end = &i->ifa.ifa_next;
	}
	*out = list;
	return 0;
}
