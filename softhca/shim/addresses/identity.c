// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What tells this host from others: its name and its id. If the instance emulates several hosts,
 * each has its own; a single host keeps the machine's. The daemon makes the files that say the same
 * (boot_id, hostname), and names.c finds them.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "softhca/host/address.h"
#include "softhca/shim/attach.h"
#include "softhca/shim/interpose.h"

static bool own_name(char name[SH_HOST_NAME])
{
	if (!shim_active() || !shim.several)
		return false;
	sh_host_name(name, shim.host);
	return true;
}

EXPORT int gethostname(char *out, size_t len)
{
	char name[SH_HOST_NAME];

	if (!own_name(name))
		return REAL(gethostname)(out, len);
	if (strlen(name) >= len) {
		memcpy(out, name, len);
		errno = ENAMETOOLONG;
		return -1;
	}
	strcpy(out, name);
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
	char name[SH_HOST_NAME];
	int ret = REAL(uname)(u);

	if (!ret && own_name(name))
		strcpy(u->nodename, name);
	return ret;
}

/*
 * As libc computes it on a machine without /etc/hostid: from the address that the host's name has,
 * with its halves swapped.
 */
EXPORT long gethostid(void)
{
	in_addr_t address;

	if (!shim_active() || !shim.several)
		return REAL(gethostid)();
	address = sh_host_address(shim.host, 1).s_addr;
	return (int32_t)(address << 16 | address >> 16);
}
