// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Interfaces of the own host's ports, as IP over InfiniBand would have them: getifaddrs() lists one
 * for each port, with its address on the wire or else of the instance's block, behind the
 * machine's. Programs look there for addresses that an RDMA device has. The kernel knows nothing of
 * them: what asks it in other ways (ioctl(), netlink, sysfs) does not find them.
 */
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softhca/host/address.h"
#include "softhca/host/sys.h"
#include "softhca/shim/attach.h"
#include "softhca/shim/interpose.h"
#include "resolve.h"

#define WIRE_MOST 4096 /* bytes of the daemon's list: 64 lines */

union address {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

struct interface {
	struct ifaddrs ifa; /* first */
	union address address;
	char name[IF_NAMESIZE];
};

/* Of all ports: they are in one network. freeifaddrs() knows the entries of this file by them. */
static union address netmask, broadcast;

static bool taken(const struct ifaddrs *list, const char *name)
{
	for (; list; list = list->ifa_next)
		if (!strcmp(list->ifa_name, name))
			return true;
	return false;
}

/* number: where to look for a name; becomes that of the next interface. */
static struct interface *make(const struct ifaddrs *list, const union address *address,
			      unsigned int *number)
{
	bool ipv4 = address->any.sa_family == AF_INET;
	struct interface *i = calloc(1, sizeof(*i));

	if (!i)
		return NULL;
	do
		snprintf(i->name, sizeof(i->name), "ib%u", (*number)++);
	while (taken(list, i->name));
	i->address = *address;
	i->ifa = (struct ifaddrs){
		.ifa_name = i->name,
		.ifa_flags = IFF_UP | IFF_RUNNING | IFF_MULTICAST | (ipv4 ? IFF_BROADCAST : 0),
		.ifa_addr = &i->address.any,
		.ifa_netmask = &netmask.any,
		.ifa_broadaddr = ipv4 ? &broadcast.any : NULL,
	};
	return i;
}

/* The lines of the wire's addresses, ADDRESS/PREFIX each. Nothing: there is no wire. */
static void read_wire(char text[WIRE_MOST])
{
	char path[PATH_MAX];
	long fd, n;

	text[0] = '\0';
	snprintf(path, sizeof(path), "%.*s/host%u/addresses", PATH_MAX - 64, shim.dir, shim.host);
	fd = sh_sys(syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC));
	if (fd < 0)
		return;
	n = sh_sys(syscall(SYS_read, (int)fd, text, (size_t)WIRE_MOST - 1));
	(void)sh_sys(syscall(SYS_close, (int)fd));
	text[n > 0 ? n : 0] = '\0';
}

/* Takes the next line. False: there is no other one. */
static bool next_on_wire(char **rest, union address *a)
{
	char *line = strsep(rest, "\n"), *slash = line ? strchr(line, '/') : NULL;
	union address mask = {.any.sa_family = AF_UNSPEC}, to;
	unsigned int bits;
	uint8_t *bytes;

	if (!slash)
		return false;
	*slash = '\0';
	bits = (unsigned int)atoi(slash + 1);
	memset(a, 0, sizeof(*a));
	if (inet_pton(AF_INET, line, &a->in.sin_addr) == 1) {
		a->in.sin_family = mask.in.sin_family = AF_INET;
		bytes = (uint8_t *)&mask.in.sin_addr;
	} else if (inet_pton(AF_INET6, line, &a->in6.sin6_addr) == 1) {
		a->in6.sin6_family = mask.in6.sin6_family = AF_INET6;
		bytes = mask.in6.sin6_addr.s6_addr;
	} else {
		return false;
	}
	for (unsigned int bit = 0; bit < bits && bit < 128; bit++)
		bytes[bit / 8] |= 0x80 >> bit % 8;
	/* Each call finds the same, so no thread sees another one. */
	to = *a;
	to.in.sin_addr.s_addr |= ~mask.in.sin_addr.s_addr;
	netmask = mask;
	broadcast.in = to.in;
	return true;
}

/* Takes that of port n. False: there is none. */
static bool next_of_block(unsigned int n, union address *a)
{
	if (n > 254 || !shim_has_address(shim.host, n))
		return false;
	memset(a, 0, sizeof(*a));
	a->in = (struct sockaddr_in){.sin_family = AF_INET,
				     .sin_addr = sh_host_address(shim.host, n)};
	netmask.in = (struct sockaddr_in){.sin_family = AF_INET,
					  .sin_addr.s_addr = htonl(SH_HOSTS_NETMASK)};
	broadcast.in =
		(struct sockaddr_in){.sin_family = AF_INET, .sin_addr = sh_host_address(255, 255)};
	return true;
}

EXPORT void freeifaddrs(struct ifaddrs *list)
{
	struct ifaddrs **end = &list, *next;

	while (*end && (*end)->ifa_netmask != &netmask.any)
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
	char text[WIRE_MOST], *rest = text;
	unsigned int n, number = 0;
	union address address;
	struct interface *i;
	bool wire;

	if (!shim_active())
		return REAL(getifaddrs)(out);
	if (REAL(getifaddrs)(&list))
		return -1;
	read_wire(text);
	wire = text[0];
	while (*end)
		end = &(*end)->ifa_next;
	for (n = 1; wire ? next_on_wire(&rest, &address) : next_of_block(n, &address); n++) {
		i = make(list, &address, &number);
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
