// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The source of UDP sockets towards hosts of the instance. Linux would choose 127.0.0.1; on a
 * network it is the own host's address, and programs connect a socket to learn that address. So
 * connect() binds a socket without an address first. IP_BIND_ADDRESS_NO_PORT leaves the port to
 * connect(), as without this file, and marks the socket: where connect() takes the destination away
 * again, the source goes with it. sendto() gives a datagram the source without binding the socket,
 * which may send elsewhere. All other sockets and calls are left alone.
 */
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>

#include "softhca/host/address.h"
#include "softhca/host/sys.h"
#include "softhca/shim/attach.h"
#include "softhca/shim/interpose.h"
#include "resolve.h"
#include "softhca/shim/sandbox.h"

static bool get_option(int fd, int level, int name, int *value)
{
	socklen_t len = sizeof(*value);

	return sh_sys(syscall(SYS_getsockopt, fd, level, name, value, &len)) == 0;
}

static bool set_mark(int fd, int on)
{
	return sh_sys(syscall(SYS_setsockopt, fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on,
			      sizeof(on))) == 0;
}

static bool bind_to(int fd, struct in_addr address)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr = address};

	return sh_sys(syscall(SYS_bind, fd, &in, sizeof(in))) == 0;
}

static bool own_address(int fd, struct sockaddr_in *in)
{
	socklen_t len = sizeof(*in);

	return sh_sys(syscall(SYS_getsockname, fd, in, &len)) == 0 && in->sin_family == AF_INET;
}

/* The source address of an IPv4 socket without a port. */
static bool without_port(int fd, struct in_addr *source)
{
	struct sockaddr_in in;

	if (!own_address(fd, &in) || in.sin_port)
		return false;
	*source = in.sin_addr;
	return true;
}

/*
 * Reads the address that a UDP socket is to be used with. The address of other sockets is not
 * looked at; it may be bad, which is the kernel's to say.
 * A process that has confined itself may not make these calls.
 */
static bool destination(int fd, const void *addr, socklen_t len, struct sockaddr_in *to)
{
	struct iovec local = {.iov_base = to, .iov_len = sizeof(*to)};
	struct iovec remote = {.iov_base = (void *)(uintptr_t)addr, .iov_len = sizeof(*to)};
	int type;

	if (len < remote.iov_len)
		local.iov_len = remote.iov_len = len;
	memset(to, 0, sizeof(*to));
	return addr && len >= sizeof(to->sin_family) && shim_active() && !sandbox_told() &&
	       get_option(fd, SOL_SOCKET, SO_TYPE, &type) && type == SOCK_DGRAM &&
	       sh_sys(syscall(SYS_process_vm_readv, getpid(), &local, 1UL, &remote, 1UL, 0UL)) ==
		       (long)local.iov_len;
}

/*
 * Where this host sends from to that address of the instance. A host reaches itself from the
 * address that it asks for. False: it is not of the instance.
 */
static bool source_for(const struct sockaddr_in *to, struct in_addr *source)
{
	int host = to->sin_family == AF_INET
			   ? shim_host_at(&to->sin_addr, sizeof(to->sin_addr), AF_INET)
			   : -1;

	if (host < 0)
		return false;
	*source = (unsigned int)host == shim.host ? to->sin_addr : sh_host_address(shim.host, 1);
	return true;
}

/* Gives the socket the source for this destination. False: it is none of those. */
static bool give_source(int fd, const struct sockaddr_in *to)
{
	struct in_addr source, own;
	int marked;

	if (!source_for(to, &source) || !without_port(fd, &own) || own.s_addr != INADDR_ANY)
		return false;
	/* The program's own use of the option stays. */
	if (!get_option(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &marked) ||
	    (!marked && !set_mark(fd, 1)))
		return false;
	if (bind_to(fd, source))
		return true;
	if (!marked)
		(void)set_mark(fd, 0);
	return false;
}

static void take_source(int fd)
{
	struct in_addr source;
	unsigned int host, n;
	int marked;

	if (without_port(fd, &source) && sh_address_host(source, &host, &n) &&
	    get_option(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &marked) && marked)
		(void)bind_to(fd, (struct in_addr){.s_addr = INADDR_ANY});
}

EXPORT int connect(int fd, __CONST_SOCKADDR_ARG addr, socklen_t len)
{
	int saved = errno, ret;
	struct sockaddr_in to;
	bool udp = destination(fd, addr.__sockaddr__, len, &to), given;

	given = udp && len >= sizeof(to) && give_source(fd, &to);
	errno = saved;
	ret = REAL(connect)(fd, addr, len);
	saved = errno;
	if (udp && (ret ? given : to.sin_family == AF_UNSPEC))
		take_source(fd);
	errno = saved;
	return ret;
}

EXPORT ssize_t sendto(int fd, const void *buf, size_t n, int flags, __CONST_SOCKADDR_ARG addr,
		      socklen_t len)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(struct in_pktinfo))];
	} control = {.head = {.cmsg_len = CMSG_LEN(sizeof(struct in_pktinfo)),
			      .cmsg_level = IPPROTO_IP,
			      .cmsg_type = IP_PKTINFO}};
	struct iovec iov = {.iov_base = (void *)(uintptr_t)buf, .iov_len = n};
	struct in_pktinfo info = {0};
	struct sockaddr_in to, own;
	struct msghdr msg = {.msg_name = &to,
			     .msg_namelen = sizeof(to),
			     .msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control.room,
			     .msg_controllen = sizeof(control.room)};
	int saved = errno;
	bool ours;

	ours = addr.__sockaddr__ && len >= sizeof(to) &&
	       destination(fd, addr.__sockaddr__, len, &to) &&
	       source_for(&to, &info.ipi_spec_dst) && own_address(fd, &own) &&
	       own.sin_addr.s_addr == INADDR_ANY;
	errno = saved;
	if (!ours)
		return REAL(sendto)(fd, buf, n, flags, addr, len);
	memcpy(CMSG_DATA(&control.head), &info, sizeof(info));
	return REAL(sendmsg)(fd, &msg, flags);
}
