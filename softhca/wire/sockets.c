// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * See sockets.h. The ICRC covers the identification, DF and both addresses. So a socket is bound to
 * one address and never connected, and asks for no fragments: then the identification is 0.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/filter.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "address.h"
#include "softhca/packet/headers.h"
#include "sockets.h"

#define BUFFER	      (4 << 20)
#define MEMINFO	      55 /* SO_MEMINFO, and its words; headers of glibc before 2.26 do not have it */
#define MEMINFO_DROPS 8
#define MEMINFO_WORDS 16
/* IP, UDP, and the most that stands in front of and behind a payload; as Soft-RoCE counts. */
#define OVERHEAD 80

/* The interface that has the address. All of 127/8 is local. */
static bool interface_of(uint32_t address, char name[IFNAMSIZ])
{
	struct ifaddrs *all, *i;
	bool found = false;

	if (getifaddrs(&all))
		return false;
	for (i = all; i && !found; i = i->ifa_next) {
		const struct sockaddr_in *in = (const void *)i->ifa_addr;

		if (!in || in->sin_family != AF_INET)
			continue;
		found = ntohl(in->sin_addr.s_addr) == address ||
			(address >> 24 == 127 && ntohl(in->sin_addr.s_addr) >> 24 == 127);
		if (found)
			snprintf(name, IFNAMSIZ, "%s", i->ifa_name);
	}
	freeifaddrs(all);
	return found;
}

/* The most that a packet to or from this address can carry: a power of two; 0: too little, or unknown. */
static uint32_t mtu_of(int fd, uint32_t address)
{
	struct ifreq req = {.ifr_mtu = 0};
	uint32_t mtu = 4096;

	if (!interface_of(address, req.ifr_name) || ioctl(fd, SIOCGIFMTU, &req) < 0)
		return 0;
	while (mtu >= 256 && (int)(mtu + OVERHEAD) > req.ifr_mtu)
		mtu /= 2;
	return mtu < 256 ? 0 : mtu;
}

/* Has the kernel drop what comes from elsewhere. Before the socket has an address. */
static int filter(int fd, const struct sh_wire_config *wire)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)SKF_NET_OFF + 12),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, wire->netmask),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, wire->network, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
}

static int open_one(const struct sh_wire_config *wire, uint32_t address)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(SH_ROCE_PORT)};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), probe = IP_PMTUDISC_PROBE;
	int size = BUFFER, err;

	if (fd < 0)
		return -errno;
	at.sin_addr.s_addr = htonl(address);
	/* The kernel grants as much as it allows; `show` tells how much. */
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	if (filter(fd, wire) < 0 ||
	    setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &probe, sizeof(probe)) < 0 ||
	    bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0) {
		err = -errno;
		close(fd);
		return err;
	}
	return fd;
}

static void say(char *text, size_t len, uint32_t address, int err)
{
	char name[SH_WIRE_TEXT];

	sh_wire_text(name, address);
	if (err == -EADDRINUSE)
		snprintf(text, len,
			 "UDP port %d of %s is taken: by another instance with that address, or by "
			 "Soft-RoCE in the kernel (rdma link); end it, or choose another address",
			 SH_ROCE_PORT, name);
	else if (err == -EADDRNOTAVAIL)
		snprintf(text, len,
			 "%s is no address of this machine: choose one that ip address lists",
			 name);
	else
		snprintf(text, len, "cannot make the wire's socket at %s: %s", name,
			 strerror(-err));
}

int sh_wire_open(struct sh_wire_config *wire, int fd[SH_WIRE_MOST], char *text, size_t len)
{
	char name[SH_WIRE_TEXT];
	uint32_t i, mtu;

	wire->mtu = 4096;
	for (i = 0; i < wire->n; i++) {
		fd[i] = open_one(wire, wire->address[i]);
		if (fd[i] < 0) {
			int err = fd[i];

			say(text, len, wire->address[i], err);
			wire->n = i;
			sh_wire_close(wire, fd);
			return err;
		}
		mtu = mtu_of(fd[i], wire->address[i]);
		if (!mtu) {
			sh_wire_text(name, wire->address[i]);
			snprintf(text, len,
				 "the interface that has %s carries packets of less than %d bytes: "
				 "raise its MTU (ip link set DEVICE mtu 1500)",
				 name, 256 + OVERHEAD);
			wire->n = i + 1;
			sh_wire_close(wire, fd);
			return -EMSGSIZE;
		}
		if (mtu < wire->mtu)
			wire->mtu = mtu;
	}
	return 0;
}

void sh_wire_close(const struct sh_wire_config *wire, const int fd[SH_WIRE_MOST])
{
	for (uint32_t i = 0; i < wire->n; i++)
		close(fd[i]);
}

unsigned int sh_wire_buffer(int fd)
{
	int size = 0;
	socklen_t len = sizeof(size);

	return getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, &len) < 0 ? 0 : (unsigned int)size;
}

unsigned int sh_wire_dropped(int fd)
{
	uint32_t info[MEMINFO_WORDS] = {0};
	socklen_t len = sizeof(info);

	return getsockopt(fd, SOL_SOCKET, MEMINFO, info, &len) < 0 ? 0 : info[MEMINFO_DROPS];
}
