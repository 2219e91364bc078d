// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Names and addresses of hosts, as text and numbers only. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "address.h"
int sh_host_of_name(const char *name)
{
	const char *digit = name + 4;
	int host = 0, n;

	if (strncasecmp(name, "host", 4))
		return -1;
	for (n = 0; n < 3 && digit[n] >= '0' && digit[n] <= '9'; n++)
		host = host * 10 + digit[n] - '0';
	if (!n || (n > 1 && digit[0] == '0') || host > 255)
		return -1;
	if (digit[n] == '.')
		n++;
	return digit[n] ? -1 : host;
}

void sh_host_name(char name[SH_HOST_NAME], unsigned int host)
{
	snprintf(name, SH_HOST_NAME, "host%u", host & 255);
}

struct in_addr sh_host_address(unsigned int host, unsigned int n)
{
	return (struct in_addr){.s_addr = htonl(SH_HOSTS_BLOCK | (host & 255) << 8 | (n & 255))};
}

bool sh_address_host(struct in_addr address, unsigned int *host, unsigned int *n)
{
	in_addr_t a = ntohl(address.s_addr);

	if ((a & SH_HOSTS_NETMASK) != SH_HOSTS_BLOCK || (a & 255) == 0 || (a & 255) == 255)
		return false;
	*host = a >> 8 & 255;
	*n = a & 255;
	return true;
}

struct in6_addr sh_host_address6(unsigned int host, unsigned int n)
{
	struct in6_addr a = {.s6_addr = {0xfd, 'S', 'O', 'F', 'T', 'H'}};

	a.s6_addr[7] = host & 255;
	a.s6_addr[15] = n & 255;
	return a;
}

bool sh_address6_host(const struct in6_addr *address, unsigned int *host, unsigned int *n)
{
	struct in6_addr a;

	*host = address->s6_addr[7];
	*n = address->s6_addr[15];
	a = sh_host_address6(*host, *n);
	return *n && *n != 255 && !memcmp(&a, address, sizeof(a));
}
