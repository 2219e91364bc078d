// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Names and addresses of hosts, as text and numbers only. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "address.h"

#define WIRE_NAME "softhca-"

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

void sh_wire_name(char name[SH_WIRE_NAME], const char *address)
{
	snprintf(name, SH_WIRE_NAME, WIRE_NAME "%s", address);
	for (char *c = name; *c; c++)
		if (*c == '.' || *c == ':')
			*c = '-';
}

static bool read_as(const char *text, int family, char by, char address[INET6_ADDRSTRLEN])
{
	size_t len = strlen(text);
	struct in6_addr any;

	len -= len && text[len - 1] == '.';
	if (len >= INET6_ADDRSTRLEN)
		return false;
	for (size_t i = 0; i < len; i++) {
		if (text[i] == '.' || text[i] == ':')
			return false;
		address[i] = text[i] == '-' ? by : text[i];
	}
	address[len] = '\0';
	return inet_pton(family, address, &any) == 1;
}

bool sh_wire_name_address(const char *name, char address[INET6_ADDRSTRLEN])
{
	size_t len = strlen(WIRE_NAME);

	return !strncasecmp(name, WIRE_NAME, len) && (read_as(name + len, AF_INET, '.', address) ||
						      read_as(name + len, AF_INET6, ':', address));
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
