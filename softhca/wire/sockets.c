// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * See sockets.h. The ICRC covers the identification, DF and both addresses. So a socket is bound to
 * one address and never connected, and asks for no fragments: then the identification is 0. IPv6
 * has neither of the two.
 */
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

#define BUFFER	       (4 << 20)
#define MEMINFO	       55 /* SO_MEMINFO, and its words; headers of glibc before 2.26 do not have it */
#define MEMINFO_DROPS  8
#define MEMINFO_WORDS  16
#define NO_CHECK6_RX   102 /* UDP_NO_CHECK6_RX; likewise before 2.22 or so */
#define MULTICAST6_ALL 29  /* IPV6_MULTICAST_ALL; before 2.29 */
/* IPv4, UDP, and the most that stands in front of and behind a payload; as Soft-RoCE counts. */
#define OVERHEAD 80

static bool is_loopback(struct sh_ip a)
{
	return sh_ip_is4(a) && (a.lo >> 24 & 0xff) == 127;
}

/* Is that address of the machine one that the caller looks for? */
typedef bool wanted_fn(struct sh_ip has, const void *arg);

/* Is one of the machine's addresses wanted? name: its interface; may be NULL. */
static bool machine_has(wanted_fn *wanted, const void *arg, char name[IFNAMSIZ])
{
	struct ifaddrs *all, *i;
	bool found = false;

	if (getifaddrs(&all))
		return false;
	for (i = all; i && !found; i = i->ifa_next) {
		const union sh_wire_at *at = (const void *)i->ifa_addr;
		uint16_t port;

		if (!at || (at->any.sa_family != AF_INET && at->any.sa_family != AF_INET6))
			continue;
		found = wanted(sh_wire_from(at, &port), arg);
		if (found && name)
			snprintf(name, IFNAMSIZ, "%s", i->ifa_name);
	}
	freeifaddrs(all);
	return found;
}

/* All of 127/8 is local. */
static bool is_at_home(struct sh_ip has, const void *arg)
{
	const struct sh_ip *address = arg;

	return sh_ip_same(has, *address) || (is_loopback(*address) && is_loopback(has));
}

/* The interface that has the address. */
static bool interface_of(struct sh_ip address, char name[IFNAMSIZ])
{
	return machine_has(is_at_home, &address, name);
}

static bool is_another(struct sh_ip has, const void *arg)
{
	const struct sh_wire_config *wire = arg;

	for (uint32_t n = 0; n < wire->n; n++)
		if (sh_ip_same(wire->address[n], has))
			return false;
	return sh_wire_lid(wire, has) != 0;
}

bool sh_wire_shared(const struct sh_wire_config *wire)
{
	return is_loopback(wire->network) || machine_has(is_another, wire, NULL);
}

static uint32_t overhead(struct sh_ip address)
{
	return sh_ip_is4(address) ? OVERHEAD : OVERHEAD - SH_IPV4_BYTES + SH_IPV6_BYTES;
}

/*
 * The most that a packet to or from this address can carry: a power of two; 0: too little, or
 * unknown.
 */
static uint32_t mtu_of(int fd, struct sh_ip address)
{
	struct ifreq req = {.ifr_mtu = 0};
	uint32_t mtu = 4096;

	if (!interface_of(address, req.ifr_name) || ioctl(fd, SIOCGIFMTU, &req) < 0)
		return 0;
	while (mtu >= 256 && (int)(mtu + overhead(address)) > req.ifr_mtu)
		mtu /= 2;
	return mtu < 256 ? 0 : mtu;
}

/* A word of an address, 0 to 3. Those of IPv4 have the last one. */
static uint32_t word_of(struct sh_ip a, uint32_t w)
{
	uint64_t half = w < 2 ? a.hi : a.lo;

	return (uint32_t)(w % 2 ? half : half >> 32);
}

#define TAKE ((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, UINT32_MAX))
#define DROP ((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 0))
#define LOAD(at)                                                                                   \
	((struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)SKF_NET_OFF + (at)))
#define KEEP(w) ((struct sock_filter)BPF_STMT(BPF_ST, w))
#define KEPT(w) ((struct sock_filter)BPF_STMT(BPF_LD | BPF_MEM, w))
#define MASK(m) ((struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, m))
/* Goes on if the word is the same, and else leaves so many out. */
#define SAME(word, away) ((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, word, 0, away))
/* The words, kept and compared; a peer; and the end. */
#define FILTER_MOST (4 * 2 + 4 * 3 + 1 + SH_WIRE_PEERS * (4 * 2 + 1) + 1)

/*
 * Has the kernel drop what comes from elsewhere. Before the socket has an address. The words of the
 * source in the IP header are compared one by one.
 */
static int filter(int fd, const struct sh_wire_config *wire)
{
	struct sock_filter code[FILTER_MOST];
	bool is4 = sh_ip_is4(wire->network);
	uint32_t bits = is4 ? 96 + wire->prefix : wire->prefix;
	uint32_t words = (bits + 31) / 32, first = is4 ? 3 : 0, source = is4 ? 12 : 8;
	struct sock_fprog program = {0, code};

	for (uint32_t w = first; w < 4; w++) {
		code[program.len++] = LOAD(source + 4 * (w - first));
		code[program.len++] = KEEP(w);
	}
	for (uint32_t w = first; w < words; w++) {
		uint32_t left = bits - 32 * w;

		code[program.len++] = KEPT(w);
		code[program.len++] = MASK(left < 32 ? ~(UINT32_MAX >> left) : UINT32_MAX);
		/* Each word that follows takes three, and then the packet is taken. */
		code[program.len++] =
			SAME(word_of(wire->network, w), (uint8_t)(3 * (words - 1 - w) + 1));
	}
	code[program.len++] = TAKE;
	for (uint32_t i = 0; i < wire->peers; i++) {
		for (uint32_t w = first; w < 4; w++) {
			code[program.len++] = KEPT(w);
			code[program.len++] = SAME(word_of(wire->list.at[i].address, w),
						   (uint8_t)(2 * (3 - w) + 1));
		}
		code[program.len++] = TAKE;
	}
	code[program.len++] = DROP;
	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
}

unsigned int sh_wire_index(struct sh_ip address)
{
	char name[IFNAMSIZ];

	return interface_of(address, name) ? if_nametoindex(name) : 0;
}

/*
 * What is sent to groups leaves by the interface that has the address, and is for its link alone.
 */
static int set_group_way(int fd, struct sh_ip address)
{
	unsigned int index = sh_wire_index(address);
	struct ip_mreqn way = {.imr_ifindex = (int)index};
	int hops = 1;

	if (!index)
		return 0; /* the MTU cannot be found out, either, which says what to do */
	if (sh_ip_is4(address))
		return setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &way, sizeof(way))
			       ?: setsockopt(fd, IPPROTO_IP, IP_MULTICAST_TTL, &hops, sizeof(hops));
	return setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, &index, sizeof(index))
		       ?: setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, &hops, sizeof(hops));
}

/* Before the socket has an address. */
static int set_options(int fd, bool is4)
{
	int probe = is4 ? IP_PMTUDISC_PROBE : IPV6_PMTUDISC_PROBE, on = 1;

	if (is4)
		return setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &probe, sizeof(probe));
	/* Soft-RoCE and cards send no checksum of UDP, which IPv6 takes for an error. */
	if (setsockopt(fd, IPPROTO_UDP, NO_CHECK6_RX, &on, sizeof(on)) < 0 ||
	    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) < 0)
		return -1;
	return setsockopt(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &probe, sizeof(probe));
}

static int open_one(const struct sh_wire_config *wire, struct sh_ip address)
{
	union sh_wire_at at;
	socklen_t len = sh_wire_at(&at, address, SH_ROCE_PORT);
	int fd = socket(at.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0), size = BUFFER, err;

	if (fd < 0)
		return -errno;
	/* The kernel grants as much as it allows; `show` tells how much. */
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	if (filter(fd, wire) < 0 || set_options(fd, sh_ip_is4(address)) < 0 ||
	    set_group_way(fd, address) < 0 || bind(fd, &at.any, len) < 0) {
		err = -errno;
		close(fd);
		return err;
	}
	return fd;
}

static void say(char *text, size_t len, struct sh_ip address, int err)
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
			 "%s is no address of this machine: choose one that ip address lists%s",
			 name,
			 sh_ip_is4(address)
				 ? ""
				 : ", and wait until it is no longer tentative if it is new");
	else if (err == -EAFNOSUPPORT)
		snprintf(text, len,
			 "this machine's kernel has no IPv6, so it cannot have %s: name an address "
			 "of IPv4",
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
				 "the interface that has %s carries packets of less than %u bytes: "
				 "raise its MTU (ip link set DEVICE mtu 1500)",
				 name, 256 + overhead(wire->address[i]));
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

/* ---- groups ---- */

int sh_wire_move(int fd, struct sh_ip address)
{
	return set_group_way(fd, address);
}

/* Joins the group at an interface, or leaves it there. */
static int membership(int fd, struct sh_ip group, unsigned int index, bool join)
{
	bool is4 = sh_ip_is4(group);
	struct ip_mreqn four = {.imr_multiaddr.s_addr = htonl((uint32_t)group.lo),
				.imr_ifindex = (int)index};
	struct ipv6_mreq six = {.ipv6mr_interface = index};

	sh_ip_put(group, &six.ipv6mr_multiaddr);
	if (is4)
		return setsockopt(fd, IPPROTO_IP, join ? IP_ADD_MEMBERSHIP : IP_DROP_MEMBERSHIP,
				  &four, sizeof(four));
	return setsockopt(fd, IPPROTO_IPV6, join ? IPV6_JOIN_GROUP : IPV6_LEAVE_GROUP, &six,
			  sizeof(six));
}

/* Kernels give a socket what any socket of the machine has joined, unless told not to. */
static int own_groups_only(int fd, bool is4)
{
	int off = 0;

	if (is4)
		return setsockopt(fd, IPPROTO_IP, IP_MULTICAST_ALL, &off, sizeof(off));
	/*
	 * Linux before 4.20 does not know it, and looks at the interface alone, which has been
	 * bound.
	 */
	(void)setsockopt(fd, IPPROTO_IPV6, MULTICAST6_ALL, &off, sizeof(off));
	return 0;
}

int sh_wire_open_group(const struct sh_wire_config *wire, uint32_t number, const uint8_t mgid[16],
		       uint64_t *ports)
{
	struct sh_ip group = sh_wire_group(wire->network, mgid);
	unsigned int index = sh_wire_index(wire->address[number]);
	union sh_wire_at at;
	socklen_t len = sh_wire_at(&at, group, SH_ROCE_PORT);
	int fd, size = BUFFER, on = 1, err;

	if (!index)
		return -ENODEV;
	*ports = 0;
	for (uint32_t i = 0; i < wire->n; i++)
		if (sh_wire_index(wire->address[i]) == index) {
			if (i < number)
				return -EALREADY;
			*ports |= UINT64_C(1) << i;
		}
	if (!sh_ip_is4(group))
		at.in6.sin6_scope_id = index;
	fd = socket(at.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	/* Other instances of this machine may be members, too. */
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 || filter(fd, wire) < 0 ||
	    set_options(fd, sh_ip_is4(group)) < 0 || own_groups_only(fd, sh_ip_is4(group)) < 0 ||
	    bind(fd, &at.any, len) < 0 || membership(fd, group, index, true) < 0) {
		err = -errno;
		close(fd);
		return err;
	}
	return fd;
}

void sh_wire_close_group(const struct sh_wire_config *wire, uint32_t number, int fd,
			 const uint8_t mgid[16])
{
	/* An interface that has gone has no members. */
	(void)membership(fd, sh_wire_group(wire->network, mgid),
			 sh_wire_index(wire->address[number]), false);
	close(fd);
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
