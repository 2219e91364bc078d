// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What tells this host from others: its name and its id. If the instance emulates several hosts,
 * each has its own, and so has a host that shares the machine with others of its wire; another
 * single host keeps the machine's. The daemon makes the files that say the same (boot_id,
 * hostname), and names.c finds them.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "softhca/host/address.h"
#include "softhca/shim/attach.h"
#include "softhca/shim/interpose.h"

static bool has_name(void)
{
	return shim_active() && shim.name[0];
}

EXPORT int gethostname(char *out, size_t len)
{
	if (!has_name())
		return REAL(gethostname)(out, len);
	if (strlen(shim.name) >= len) {
		memcpy(out, shim.name, len);
		errno = ENAMETOOLONG;
		return -1;
	}
	strcpy(out, shim.name);
	return 0;
}

EXPORT int __gethostname_chk(char *out, size_t len, size_t room);
EXPORT int __gethostname_chk(char *out, size_t len, size_t room)
{
	if (len > room)
		abort();
	return gethostname(out, len);
}

EXPORT int uname(struct utsname *u)
{
	int ret = REAL(uname)(u);

	if (!ret && has_name())
		strcpy(u->nodename, shim.name);
	return ret;
}

/* The address that the host's name has; of one of IPv6, something that is as good. */
static in_addr_t own_address(void)
{
	char text[INET6_ADDRSTRLEN];
	in_addr_t a[4] = {0};

	if (!sh_wire_name_address(shim.name, text))
		return sh_host_address(shim.host, 1).s_addr;
	(void)inet_pton(strchr(text, ':') ? AF_INET6 : AF_INET, text, a);
	return a[0] ^ a[1] ^ a[2] ^ a[3];
}

/*
 * As libc computes it on a machine without /etc/hostid: from the address that the host's name has,
 * with its halves swapped.
 */
EXPORT long gethostid(void)
{
	in_addr_t address;

	if (!has_name())
		return REAL(gethostid)();
	address = own_address();
	return (int32_t)(address << 16 | address >> 16);
}
