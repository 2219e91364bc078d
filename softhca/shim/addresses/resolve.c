// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Names of the instance's hosts, forward and backward, by the calls of libc that resolve
 * (softhca/host/address.h has the names and addresses). Two ways are not covered: getaddrinfo_a()
 * resolves in libc's own threads by a call that cannot be replaced, and the functions of <resolv.h>
 * ask name servers. In an instance of several hosts the instance answers before the machine's
 * resolver. A single host keeps the machine's name; host0 is another name for it if the resolver
 * does not know host0. With a wire, names that have an address in them mean it, forward alone.
 */
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softhca/host/address.h"
#include "softhca/host/sys.h"
#include "softhca/shim/attach.h"
#include "softhca/shim/interpose.h"
#include "resolve.h"

#define ADDRESS_MAX sizeof(struct in6_addr)

/* Is it such a name, in an instance with a wire? The address, as text. */
static bool on_wire(const char *name, char address[INET6_ADDRSTRLEN])
{
	char path[PATH_MAX];

	if (!name || !sh_wire_name_address(name, address) || !shim_active())
		return false;
	snprintf(path, sizeof(path), "%.*s/addresses", PATH_MAX - 64, shim.root);
	return sh_sys(syscall(SYS_faccessat, AT_FDCWD, path, F_OK)) == 0;
}

static bool has_host(int host)
{
	return (unsigned int)host == shim.host ||
	       (shim.several && shim_host_exists((unsigned int)host));
}

/* The host of this instance that the name means, or -1. */
static int host_of(const char *name)
{
	int host = name ? sh_host_of_name(name) : -1;

	return host >= 0 && shim_active() && has_host(host) ? host : -1;
}

/* Address n would be that of HCA (n - 1) / ports, port (n - 1) % ports + 1. */
bool shim_has_address(unsigned int host, unsigned int n)
{
	static const char class[] = "/sys/class/infiniband/mlx4_";
	unsigned int ports;
	char path[PATH_MAX];

	if (n == 1)
		return true;
	snprintf(path, sizeof(path), "%.*s/host%u%s0/ports/2", PATH_MAX - 128, shim.dir, host,
		 class);
	ports = sh_sys(syscall(SYS_faccessat, AT_FDCWD, path, F_OK)) == 0 ? 2 : 1;
	snprintf(path, sizeof(path), "%.*s/host%u%s%u/ports/1", PATH_MAX - 128, shim.dir, host,
		 class, (n - 1) / ports);
	return sh_sys(syscall(SYS_faccessat, AT_FDCWD, path, F_OK)) == 0;
}

int shim_host_at(const void *address, socklen_t len, int family)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	struct in_addr in;
	unsigned int host, n;

	if (family == AF_INET && len == sizeof(in))
		memcpy(&in, address, sizeof(in));
	else if (family == AF_INET6 && len == sizeof(struct in6_addr) &&
		 !memcmp(address, mapped, sizeof(mapped)))
		memcpy(&in, (const char *)address + sizeof(mapped), sizeof(in));
	else
		return -1;
	if (!sh_address_host(in, &host, &n) || !shim_active() || !has_host((int)host) ||
	    !shim_has_address(host, n))
		return -1;
	return (int)host;
}

/* ---- getaddrinfo, getnameinfo ---- */

/* Answers as the resolver does for a machine with one IPv4 address. */
static int host_addrinfo(int host, const char *service, const struct addrinfo *hints,
			 struct addrinfo **res)
{
	struct addrinfo ours = {.ai_flags = AI_V4MAPPED};
	char address[SH_HOST_ADDRESS];
	struct in_addr in = sh_host_address((unsigned int)host, 1);
	int err;

	if (hints)
		ours = *hints;
	/* The host has this address, whatever interfaces the machine has. */
	ours.ai_flags &= ~AI_ADDRCONFIG;
	inet_ntop(AF_INET, &in, address, sizeof(address));
	err = REAL(getaddrinfo)(address, service, &ours, res);
	if (err == EAI_ADDRFAMILY)
		return EAI_NONAME;
	/*
	 * libc has put the address there. The name has room: it has at most 7 characters, an
	 * address at least 11.
	 */
	if (!err && *res && (*res)->ai_canonname)
		sh_host_name((*res)->ai_canonname, (unsigned int)host);
	return err;
}

/* The same for a name of the wire, whose canonical form is longer than an address. */
static int wire_addrinfo(const char *address, const char *service, const struct addrinfo *hints,
			 struct addrinfo **res)
{
	struct addrinfo ours = {.ai_flags = AI_V4MAPPED};
	char own[SH_WIRE_NAME], *canonical;
	int err;

	if (hints)
		ours = *hints;
	ours.ai_flags &= ~AI_ADDRCONFIG;
	err = REAL(getaddrinfo)(address, service, &ours, res);
	if (err || !*res || !(*res)->ai_canonname)
		return err == EAI_ADDRFAMILY ? EAI_NONAME : err;
	sh_wire_name(own, address);
	canonical = strdup(own);
	if (!canonical)
		return 0;
	free((*res)->ai_canonname);
	(*res)->ai_canonname = canonical;
	return 0;
}

EXPORT int getaddrinfo(const char *restrict node, const char *restrict service,
		       const struct addrinfo *restrict hints, struct addrinfo **restrict res)
{
	int host = host_of(node), err;
	char address[INET6_ADDRSTRLEN];

	if (!(hints && hints->ai_flags & AI_NUMERICHOST) && on_wire(node, address))
		return wire_addrinfo(address, service, hints, res);
	if (host < 0 || (hints && hints->ai_flags & AI_NUMERICHOST))
		return REAL(getaddrinfo)(node, service, hints, res);
	if (!shim.several) {
		err = REAL(getaddrinfo)(node, service, hints, res);
		if (err != EAI_NONAME && err != EAI_NODATA && err != EAI_AGAIN && err != EAI_FAIL)
			return err;
	}
	return host_addrinfo(host, service, hints, res);
}

static int host_at_sockaddr(const struct sockaddr *sa, socklen_t len)
{
	if (len >= sizeof(struct sockaddr_in) && sa->sa_family == AF_INET)
		return shim_host_at(&((const struct sockaddr_in *)sa)->sin_addr,
				    sizeof(struct in_addr), AF_INET);
	if (len >= sizeof(struct sockaddr_in6) && sa->sa_family == AF_INET6)
		return shim_host_at(&((const struct sockaddr_in6 *)sa)->sin6_addr,
				    sizeof(struct in6_addr), AF_INET6);
	return -1;
}

EXPORT int getnameinfo(const struct sockaddr *restrict sa, socklen_t len, char *restrict node,
		       socklen_t nodelen, char *restrict service, socklen_t servicelen, int flags)
{
	char number[INET6_ADDRSTRLEN], name[SH_HOST_NAME];
	int host = -1, err;

	if (sa && node && nodelen && !(flags & NI_NUMERICHOST))
		host = host_at_sockaddr(sa, len);
	if (host >= 0 && !shim.several) {
		err = REAL(getnameinfo)(sa, len, node, nodelen, service, servicelen,
					flags | NI_NAMEREQD);
		if (err != EAI_NONAME && err != EAI_AGAIN)
			return err;
	}
	if (host < 0)
		return REAL(getnameinfo)(sa, len, node, nodelen, service, servicelen, flags);
	/* Fills in the service, and checks the arguments. */
	err = REAL(getnameinfo)(sa, len, number, sizeof(number), service, servicelen,
				(flags & ~NI_NAMEREQD) | NI_NUMERICHOST);
	if (err)
		return err;
	sh_host_name(name, (unsigned int)host);
	if (strlen(name) >= nodelen)
		return EAI_OVERFLOW;
	strcpy(node, name);
	return 0;
}

/* ---- gethostby*_r ---- */

/* Puts one host into the caller's buffer, in libc's form. Returns 0 or ERANGE. */
static int fill(const char *name, const void *address, socklen_t len, int family,
		struct hostent *ent, char *buf, size_t buflen, struct hostent **res, int *h_err)
{
	size_t skip = -(uintptr_t)buf % sizeof(char *), need;
	char *text, **list;

	/* A list of one address and one of no alias, each with its end; then what they point to. */
	need = skip + 3 * sizeof(char *) + ADDRESS_MAX + strlen(name) + 1;
	if (buflen < need) {
		*res = NULL;
		*h_err = NETDB_INTERNAL;
		errno = ERANGE;
		return ERANGE;
	}
	list = (char **)(void *)(buf + skip);
	text = (char *)(list + 3);
	list[0] = memcpy(text, address, len);
	list[1] = NULL;
	list[2] = NULL;
	*ent = (struct hostent){
		.h_name = strcpy(text + ADDRESS_MAX, name),
		.h_aliases = list + 2,
		.h_addrtype = family,
		.h_length = (int)len,
		.h_addr_list = list,
	};
	*res = ent;
	*h_err = NETDB_SUCCESS;
	return 0;
}

/* Forward. A host has no IPv6 address: a question for one is no error, but gets no answer. */
static int fill_by_name(int host, int family, struct hostent *ent, char *buf, size_t buflen,
			struct hostent **res, int *h_err)
{
	struct in_addr in = sh_host_address((unsigned int)host, 1);
	char name[SH_HOST_NAME];

	sh_host_name(name, (unsigned int)host);
	if (family == AF_INET)
		return fill(name, &in, sizeof(in), AF_INET, ent, buf, buflen, res, h_err);
	*res = NULL;
	*h_err = HOST_NOT_FOUND;
	return 0;
}

/* The same for a name of the wire: it has an address of one family. */
static int fill_by_wire(const char *address, int family, struct hostent *ent, char *buf,
			size_t buflen, struct hostent **res, int *h_err)
{
	char name[SH_WIRE_NAME];
	struct in6_addr in;

	sh_wire_name(name, address);
	if (inet_pton(family, address, &in) == 1)
		return fill(name, &in, family == AF_INET ? sizeof(struct in_addr) : sizeof(in),
			    family, ent, buf, buflen, res, h_err);
	*res = NULL;
	*h_err = HOST_NOT_FOUND;
	return 0;
}

/* Does libc not know the name, or can it not ask? Then a single host's other name counts. */
static bool unknown(int ret, const struct hostent *res, int h_err)
{
	return !res && ret != ERANGE && h_err != NETDB_INTERNAL;
}

EXPORT int gethostbyname2_r(const char *restrict name, int family, struct hostent *restrict ent,
			    char *restrict buf, size_t buflen, struct hostent **restrict res,
			    int *restrict h_err)
{
	int host = family == AF_INET || family == AF_INET6 ? host_of(name) : -1, ret;
	char address[INET6_ADDRSTRLEN];

	if ((family == AF_INET || family == AF_INET6) && on_wire(name, address))
		return fill_by_wire(address, family, ent, buf, buflen, res, h_err);
	if (host < 0 || !shim.several) {
		ret = REAL(gethostbyname2_r)(name, family, ent, buf, buflen, res, h_err);
		if (host < 0 || !unknown(ret, *res, *h_err))
			return ret;
	}
	return fill_by_name(host, family, ent, buf, buflen, res, h_err);
}

EXPORT int gethostbyname_r(const char *restrict name, struct hostent *restrict ent,
			   char *restrict buf, size_t buflen, struct hostent **restrict res,
			   int *restrict h_err)
{
	int host = host_of(name), ret;
	char address[INET6_ADDRSTRLEN];

	if (on_wire(name, address))
		return fill_by_wire(address, AF_INET, ent, buf, buflen, res, h_err);
	if (host < 0 || !shim.several) {
		ret = REAL(gethostbyname_r)(name, ent, buf, buflen, res, h_err);
		if (host < 0 || !unknown(ret, *res, *h_err))
			return ret;
	}
	return fill_by_name(host, AF_INET, ent, buf, buflen, res, h_err);
}

EXPORT int gethostbyaddr_r(const void *restrict address, socklen_t len, int family,
			   struct hostent *restrict ent, char *restrict buf, size_t buflen,
			   struct hostent **restrict res, int *restrict h_err)
{
	int host = shim_host_at(address, len, family), ret;
	char name[SH_HOST_NAME];

	if (host < 0 || !shim.several) {
		ret = REAL(gethostbyaddr_r)(address, len, family, ent, buf, buflen, res, h_err);
		if (host < 0 || !unknown(ret, *res, *h_err))
			return ret;
	}
	sh_host_name(name, (unsigned int)host);
	return fill(name, address, len, family, ent, buf, buflen, res, h_err);
}

/* ---- the same in this library's memory, which the next such call may overwrite ---- */

static struct hostent static_ent;
static char static_buf[128] __attribute__((aligned(16)));

static struct hostent *static_by_name(int host, int family)
{
	struct hostent *res;

	fill_by_name(host, family, &static_ent, static_buf, sizeof(static_buf), &res, &h_errno);
	return res;
}

static struct hostent *static_by_wire(const char *address, int family)
{
	struct hostent *res;

	fill_by_wire(address, family, &static_ent, static_buf, sizeof(static_buf), &res, &h_errno);
	return res;
}

EXPORT struct hostent *gethostbyname(const char *name)
{
	char address[INET6_ADDRSTRLEN];
	int host = host_of(name);
	struct hostent *res;

	if (on_wire(name, address))
		return static_by_wire(address, AF_INET);
	if (host < 0 || !shim.several) {
		res = REAL(gethostbyname)(name);
		if (host < 0 || !unknown(0, res, h_errno))
			return res;
	}
	return static_by_name(host, AF_INET);
}

EXPORT struct hostent *gethostbyname2(const char *name, int family)
{
	int host = family == AF_INET || family == AF_INET6 ? host_of(name) : -1;
	char address[INET6_ADDRSTRLEN];
	struct hostent *res;

	if ((family == AF_INET || family == AF_INET6) && on_wire(name, address))
		return static_by_wire(address, family);
	if (host < 0 || !shim.several) {
		res = REAL(gethostbyname2)(name, family);
		if (host < 0 || !unknown(0, res, h_errno))
			return res;
	}
	return static_by_name(host, family);
}

EXPORT struct hostent *gethostbyaddr(const void *address, socklen_t len, int family)
{
	int host = shim_host_at(address, len, family);
	char name[SH_HOST_NAME];
	struct hostent *res;

	if (host < 0 || !shim.several) {
		res = REAL(gethostbyaddr)(address, len, family);
		if (host < 0 || !unknown(0, res, h_errno))
			return res;
	}
	sh_host_name(name, (unsigned int)host);
	fill(name, address, len, family, &static_ent, static_buf, sizeof(static_buf), &res,
	     &h_errno);
	return res;
}
