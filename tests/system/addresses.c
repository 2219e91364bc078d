// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What a program on host OWN of an instance sees of its addresses: interfaces in getifaddrs(), the
 * source of UDP sockets towards host PEER, and sockets as without softhca. PORTS: how many ports
 * OWN has. Exits 1 and names what is not so. With the words "wire ADDRESS PREFIX" instead: whether
 * getifaddrs() lists that address of a port on the wire.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static char own[32], peer[32];

static void must(int ok, const char *what)
{
	if (ok)
		return;
	printf("%s: %s\n", what, strerror(errno));
	exit(1);
}

static struct sockaddr_in at(const char *address, int port)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};

	must(inet_pton(AF_INET, address, &in.sin_addr) == 1, address);
	return in;
}

static int port_of(int fd)
{
	struct sockaddr_in in;
	socklen_t len = sizeof(in);

	must(!getsockname(fd, (struct sockaddr *)&in, &len), "getsockname");
	return ntohs(in.sin_port);
}

static void source_is(int fd, const char *address, const char *what)
{
	struct sockaddr_in in;
	socklen_t len = sizeof(in);
	char text[32];

	must(!getsockname(fd, (struct sockaddr *)&in, &len), "getsockname");
	inet_ntop(AF_INET, &in.sin_addr, text, sizeof(text));
	if (!strcmp(text, address))
		return;
	printf("%s: the source is %s, not %s\n", what, text, address);
	exit(1);
}

static int bound(int type, const char *address)
{
	struct sockaddr_in in = at(address, 0);
	int fd = socket(AF_INET, type, 0);

	must(fd >= 0 && !bind(fd, (struct sockaddr *)&in, sizeof(in)), "bind");
	return fd;
}

static int connected(int fd, const char *address, int port)
{
	struct sockaddr_in in = at(address, port);

	errno = 4711;
	must(!connect(fd, (struct sockaddr *)&in, sizeof(in)), "connect");
	must(errno == 4711, "connect() left errno alone");
	return fd;
}

/* The one that has come, and from where. */
static void comes(int fd, const char *from, const char *what)
{
	struct sockaddr_in in;
	socklen_t len = sizeof(in);
	char text[32], data[8];

	must(recvfrom(fd, data, sizeof(data), 0, (struct sockaddr *)&in, &len) == 3 &&
		     !memcmp(data, "abc", 3),
	     "recvfrom");
	inet_ntop(AF_INET, &in.sin_addr, text, sizeof(text));
	if (!strcmp(text, from))
		return;
	printf("%s: it came from %s, not %s\n", what, text, from);
	exit(1);
}

/* Those of the ports come last, in order, with names that nothing else has. */
static void interfaces(int ports)
{
	struct ifaddrs *list, *i, *j;
	struct sockaddr_in *in, *mask;
	char wanted[32];
	int n = 0, loopback = 0;

	must(!getifaddrs(&list), "getifaddrs");
	for (i = list; i; i = i->ifa_next) {
		in = (struct sockaddr_in *)i->ifa_addr;
		if (i->ifa_flags & IFF_LOOPBACK)
			loopback = 1;
		if (!in || in->sin_family != AF_INET || ntohl(in->sin_addr.s_addr) >> 16 != 0x7f80)
			continue;
		snprintf(wanted, sizeof(wanted), "%.*s%d", (int)(strrchr(own, '.') - own + 1), own,
			 ++n);
		must(in->sin_addr.s_addr == at(wanted, 0).sin_addr.s_addr, wanted);
		must((i->ifa_flags & (IFF_UP | IFF_RUNNING | IFF_MULTICAST)) ==
				     (IFF_UP | IFF_RUNNING | IFF_MULTICAST) &&
			     !(i->ifa_flags & IFF_LOOPBACK),
		     "flags");
		mask = (struct sockaddr_in *)i->ifa_netmask;
		must((mask->sin_addr.s_addr & in->sin_addr.s_addr) ==
			     (mask->sin_addr.s_addr & at(peer, 0).sin_addr.s_addr),
		     "netmask");
		for (j = list; j != i; j = j->ifa_next)
			must(strcmp(j->ifa_name, i->ifa_name), i->ifa_name);
	}
	must(n == ports, "an interface of each port");
	must(loopback, "the machine's interfaces");
	freeifaddrs(list);
	freeifaddrs(NULL);
}

/* With a wire, a port's interface has its address there, and nothing is of the block of hosts. */
static int on_wire(const char *address, unsigned int bits)
{
	int ipv4 = !strchr(address, ':');
	struct ifaddrs *list, *i;
	uint8_t wanted[16], *mask;
	unsigned int n;
	int found = 0;

	must(inet_pton(ipv4 ? AF_INET : AF_INET6, address, wanted) == 1, address);
	must(!getifaddrs(&list), "getifaddrs");
	for (i = list; i; i = i->ifa_next) {
		const struct sockaddr_in *in = (struct sockaddr_in *)i->ifa_addr;
		const struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)i->ifa_addr;

		if (in && in->sin_family == AF_INET)
			must(ntohl(in->sin_addr.s_addr) >> 16 != 0x7f80, "an address of the block");
		if (!in || strncmp(i->ifa_name, "ib", 2) ||
		    in->sin_family != (ipv4 ? AF_INET : AF_INET6) ||
		    memcmp(ipv4 ? (void *)&in->sin_addr : (void *)&in6->sin6_addr, wanted,
			   ipv4 ? 4 : 16) != 0)
			continue;
		must((i->ifa_flags & (IFF_UP | IFF_RUNNING | IFF_LOOPBACK)) ==
			     (IFF_UP | IFF_RUNNING),
		     "flags");
		mask = ipv4 ? (uint8_t *)&((struct sockaddr_in *)i->ifa_netmask)->sin_addr
			    : ((struct sockaddr_in6 *)i->ifa_netmask)->sin6_addr.s6_addr;
		for (n = 0; n < (ipv4 ? 32 : 128); n++)
			must((mask[n / 8] >> (7 - n % 8) & 1) == (n < bits), "netmask");
		found++;
	}
	freeifaddrs(list);
	must(found == 1, "an interface with the address");
	return 0;
}

static void udp(void)
{
	int there = bound(SOCK_DGRAM, peer), any = bound(SOCK_DGRAM, "0.0.0.0"), fd, port;
	struct sockaddr_in to = at(peer, port_of(there)), none = {.sin_family = AF_UNSPEC};

	/* Connected: the host's address, with a port, and the peer sees it. */
	fd = connected(socket(AF_INET, SOCK_DGRAM, 0), peer, port_of(there));
	source_is(fd, own, "connected");
	must(port_of(fd) != 0, "a port");
	must(send(fd, "abc", 3, 0) == 3, "send");
	comes(there, own, "connected");
	/* The destination is taken away, and with it the source. */
	must(!connect(fd, (struct sockaddr *)&none, sizeof(none)), "AF_UNSPEC");
	source_is(fd, "0.0.0.0", "AF_UNSPEC");
	source_is(connected(fd, "127.0.0.1", 9), "127.0.0.1", "connected again");
	close(fd);
	/* The host's own other address. */
	source_is(connected(socket(AF_INET, SOCK_DGRAM, 0), own, 9), own, "towards itself");
	/* A port of its own stays, and an address. */
	fd = bound(SOCK_DGRAM, "0.0.0.0");
	port = port_of(fd);
	must(port_of(connected(fd, peer, 9)) == port, "the socket's own port");
	close(fd);
	source_is(connected(bound(SOCK_DGRAM, "127.0.0.7"), peer, 9), "127.0.0.7",
		  "its own address");

	/* Not connected. */
	errno = 4711;
	must(sendto(any, "abc", 3, 0, (struct sockaddr *)&to, sizeof(to)) == 3 && errno == 4711,
	     "sendto");
	comes(there, own, "sendto");
	source_is(any, "0.0.0.0", "after sendto");
	to = at("127.0.0.1", port_of(any));
	must(sendto(any, "abc", 3, 0, (struct sockaddr *)&to, sizeof(to)) == 3, "sendto elsewhere");
	comes(any, "127.0.0.1", "sendto elsewhere");
}

/* Sockets that have nothing to do with the instance. */
static void others(void)
{
	int server = bound(SOCK_STREAM, "127.0.0.1"), fd, taken;
	struct sockaddr_in to = at("127.0.0.1", port_of(server));
	char data[3];

	must(!listen(server, 1), "listen");
	fd = connected(socket(AF_INET, SOCK_STREAM, 0), "127.0.0.1", port_of(server));
	source_is(fd, "127.0.0.1", "TCP");
	taken = accept(server, NULL, NULL);
	must(write(fd, "abc", 3) == 3 && read(taken, data, 3) == 3, "TCP");
	must(connect(fd, (struct sockaddr *)&to, sizeof(to)) == -1 && errno == EISCONN,
	     "connected twice");
	source_is(connected(socket(AF_INET, SOCK_DGRAM, 0), "127.0.0.1", 9), "127.0.0.1", "UDP");
	source_is(connected(socket(AF_INET, SOCK_DGRAM, 0), "127.128.255.7", 9), "127.0.0.1",
		  "no host of the instance");
	for (int type = SOCK_STREAM; type <= SOCK_DGRAM; type++) {
		fd = socket(AF_INET, type, 0);
		must(connect(fd, (void *)16, sizeof(to)) == -1 && errno == EFAULT, "a bad address");
		must(connect(fd, NULL, sizeof(to)) == -1 && errno == EFAULT, "no address");
		must(connect(fd, (struct sockaddr *)&to, 3) == -1 && errno == EINVAL,
		     "a short address");
		close(fd);
		must(connect(fd, (struct sockaddr *)&to, sizeof(to)) == -1 && errno == EBADF,
		     "a closed descriptor");
	}
	must(sendto(socket(AF_INET, SOCK_DGRAM, 0), data, 3, 0, (void *)16, sizeof(to)) == -1 &&
		     errno == EFAULT,
	     "a bad address of sendto");
}

int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	if (!strcmp(argv[1], "wire"))
		return on_wire(argv[2], (unsigned int)atoi(argv[3]));
	snprintf(own, sizeof(own), "127.128.%s.1", argv[1]);
	snprintf(peer, sizeof(peer), "127.128.%s.1", argv[2]);
	alarm(50);
	interfaces(atoi(argv[3]));
	udp();
	others();
	return 0;
}
