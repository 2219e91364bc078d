// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The TCP connection over which two ping-pongs exchange their addresses, and the text format of the
 * addresses. Keeps no socket beyond the call. All generations of these tools exchange these
 * bytes. */

#include <config.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "pingpong.h"

uint32_t pp_random_psn(void)
{
	uint32_t psn;
	/* getrandom() needs glibc 2.25. */
	int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read(fd, &psn, sizeof psn) != sizeof psn)
		psn = (uint32_t)getpid() * 2654435761u ^ (uint32_t)time(NULL);
	if (fd >= 0)
		close(fd);
	return psn & 0xffffff;
}

/* ---- Text format ---- */

void pp_format_dest(enum pp_wire wire, const struct pp_dest *dest, char *msg)
{
	char gid[PP_GID_DIGITS + 1];

	for (int i = 0; i < 16; i++)
		snprintf(gid + 2 * i, 3, "%02x", dest->gid.raw[i]);
	if (wire == PP_WIRE_XRC)
		snprintf(msg, PP_WIRE_XRC_LEN, "%04x:%06x:%06x:%06x:%06x:%32s", dest->lid,
			 dest->qpn & 0xffffff, dest->send_qpn & 0xffffff, dest->psn & 0xffffff,
			 dest->srqn & 0xffffff, gid);
	else
		snprintf(msg, PP_WIRE_PLAIN_LEN, "%04x:%06x:%06x:%s", dest->lid,
			 dest->qpn & 0xffffff, dest->psn & 0xffffff, gid);
}

static int parse_gid(const char *text, union ibv_gid *gid)
{
	if (strspn(text, "0123456789abcdefABCDEF") != PP_GID_DIGITS || text[PP_GID_DIGITS])
		return -EPROTO;
	for (int i = 0; i < 16; i++) {
		unsigned int byte;

		if (sscanf(text + 2 * i, "%2x", &byte) != 1)
			return -EPROTO;
		gid->raw[i] = byte;
	}
	return 0;
}

int pp_parse_dest(enum pp_wire wire, const char *msg, struct pp_dest *dest)
{
	struct pp_dest new = {};
	unsigned int lid;
	char gid[PP_GID_DIGITS + 1];
	int fields;

	if (wire == PP_WIRE_XRC)
		fields = 6 - sscanf(msg, "%4x:%6x:%6x:%6x:%6x:%32s", &lid, &new.qpn, &new.send_qpn,
				    &new.psn, &new.srqn, gid);
	else
		fields = 4 - sscanf(msg, "%4x:%6x:%6x:%32s", &lid, &new.qpn, &new.psn, gid);
	if (fields || parse_gid(gid, &new.gid))
		return -EPROTO;
	new.lid = lid;
	if (wire == PP_WIRE_PLAIN)
		new.send_qpn = new.qpn;
	*dest = new;
	return 0;
}

/* ---- Sockets ---- */

static void set_timeout(int sock, int seconds)
{
	struct timeval limit = {.tv_sec = seconds};

	if (!seconds)
		return;
	setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

/* Returns a socket connected to one of the addresses, or the -errno of the last attempt. */
static int connect_any(const struct addrinfo *list, int timeout)
{
	int err = EADDRNOTAVAIL;

	for (const struct addrinfo *ai = list; ai; ai = ai->ai_next) {
		int sock = socket(ai->ai_family, ai->ai_socktype | SOCK_CLOEXEC, ai->ai_protocol);

		if (sock < 0) {
			err = errno;
			continue;
		}
		set_timeout(sock, timeout);
		if (!connect(sock, ai->ai_addr, ai->ai_addrlen))
			return sock;
		err = errno == EINPROGRESS ? ETIMEDOUT : errno;
		close(sock);
	}
	return -err;
}

static const char *connect_advice(int err)
{
	switch (err) {
	case ECONNREFUSED:
		return "No server listens there. Start it first: the same command without the host "
		       "name, with the same -p. With "
		       "--timeout this side waits for it.";
	case ENETUNREACH:
	case EHOSTUNREACH:
		return "No route leads to that address. Give one of the server's host that `ping` "
		       "reaches from here; on one machine, "
		       "127.0.0.1.";
	case ETIMEDOUT:
		return "That host does not answer: is it up, and does a firewall let port -p "
		       "through?";
	default:
		return "Start the server side first: the same command without the host name, with "
		       "the same -p.";
	}
}

int pp_connect(const struct pp_options *opt)
{
	const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
	const uint64_t deadline = pp_now_usec() + opt->timeout * 1000000ull;
	struct addrinfo *list;
	char service[16];
	int ret;

	snprintf(service, sizeof service, "%d", opt->port);
	ret = getaddrinfo(opt->server, service, &hints, &list);
	if (ret)
		return pp_fail(ret == EAI_SYSTEM ? errno : 0,
			       "Give the name or address of the server's host; `getent hosts NAME` "
			       "shows whether a name is known here.",
			       "%s for %s:%d", gai_strerror(ret), opt->server, opt->port);
	for (;;) {
		ret = connect_any(list, opt->timeout);
		if (ret != -ECONNREFUSED || pp_now_usec() >= deadline)
			break;
		/* A time limit also covers a server that starts later than the client. */
		nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
	}
	freeaddrinfo(list);
	if (ret < 0)
		pp_fail(ret, connect_advice(-ret), "Couldn't connect to %s:%d", opt->server,
			opt->port);
	return ret;
}

static int listen_on(int family, int port, int backlog)
{
	const struct sockaddr_in6 any6 = {
		.sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = IN6ADDR_ANY_INIT};
	const struct sockaddr_in any4 = {
		.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_ANY)}};
	const int on = 1, off = 0;
	int sock = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int err;

	if (sock < 0)
		return -errno;
	setsockopt(sock, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (family == AF_INET6)
		setsockopt(sock, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
	if (!(family == AF_INET6 ? bind(sock, (const struct sockaddr *)&any6, sizeof any6)
				 : bind(sock, (const struct sockaddr *)&any4, sizeof any4)) &&
	    !listen(sock, backlog))
		return sock;
	err = errno;
	close(sock);
	return -err;
}

static const char *listen_advice(int err)
{
	switch (err) {
	case EADDRINUSE:
		return "Another program on this machine uses the port; -p chooses a different one "
		       "(on both sides).";
	case EACCES:
		return "Ports below 1024 are root's; -p chooses a different one (on both sides).";
	default:
		return NULL;
	}
}

int pp_listen(const struct pp_options *opt, int backlog)
{
	int sock = listen_on(AF_INET6, opt->port, backlog);

	if (sock == -EAFNOSUPPORT || sock == -EADDRNOTAVAIL)
		sock = listen_on(AF_INET, opt->port, backlog);
	if (sock < 0)
		return pp_fail(sock, listen_advice(-sock), "Couldn't listen to port %d", opt->port);
	set_timeout(sock, opt->timeout);
	return sock;
}

int pp_accept(const struct pp_options *opt, int listener)
{
	int sock;

	do
		sock = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	while (sock < 0 && (errno == EINTR || errno == ECONNABORTED));
	if (sock < 0 && errno == EAGAIN)
		return pp_fail(ETIMEDOUT,
			       "Start the client side: the same command with this host's name.",
			       "No client connected to port %d in %d second%s", opt->port,
			       opt->timeout, pp_plural(opt->timeout));
	if (sock < 0)
		return pp_fail(errno, NULL, "accept() failed on port %d", opt->port);
	set_timeout(sock, opt->timeout);
	return sock;
}

/* ---- Messages ---- */

static int send_all(int sock, const char *data, size_t length)
{
	while (length) {
		ssize_t n = send(sock, data, length, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? -ETIMEDOUT : -errno;
		data += n;
		length -= n;
	}
	return 0;
}

static int recv_all(int sock, char *data, size_t length)
{
	while (length) {
		ssize_t n = recv(sock, data, length, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? -ETIMEDOUT : -errno;
		if (!n)
			return -ECONNRESET;
		data += n;
		length -= n;
	}
	return 0;
}

static size_t wire_length(enum pp_wire wire)
{
	return wire == PP_WIRE_XRC ? PP_WIRE_XRC_LEN : PP_WIRE_PLAIN_LEN;
}

int pp_send_dest(int sock, enum pp_wire wire, const struct pp_dest *dest, int n)
{
	const size_t length = wire_length(wire);
	char *msg = malloc(n * length);
	int ret;

	if (!msg)
		return pp_fail(ENOMEM, NULL, "Couldn't allocate %d message%s", n, pp_plural(n));
	for (int i = 0; i < n; i++)
		pp_format_dest(wire, &dest[i], msg + i * length);
	ret = send_all(sock, msg, n * length);
	free(msg);
	return ret ? pp_fail(ret, "The other side closed the connection; its own message says why.",
			     "Couldn't send local address")
		   : 0;
}

int pp_recv_dest(int sock, enum pp_wire wire, struct pp_dest *dest, int n)
{
	char msg[PP_WIRE_XRC_LEN + 1] = "";

	for (int i = 0; i < n; i++) {
		int ret = recv_all(sock, msg, wire_length(wire));

		if (ret)
			return pp_fail(ret,
				       "Is the other side the same tool? Its own message may say "
				       "why it stopped.",
				       "%d/%d: Couldn't read remote address", i, n);
		ret = pp_parse_dest(wire, msg, &dest[i]);
		if (ret)
			return pp_fail(ret, "Is the other side the same tool?",
				       "%d/%d: Couldn't parse remote address '%s'", i, n, msg);
	}
	return 0;
}

int pp_send_word(int sock, const char *word)
{
	int ret = send_all(sock, word, strlen(word) + 1);

	return ret ? pp_fail(ret, "The other side closed the connection; its own message says why.",
			     "Couldn't send '%s'", word)
		   : 0;
}

int pp_recv_word(int sock, const char *word)
{
	char got[16] = "";
	int ret = recv_all(sock, got, strlen(word) + 1);

	if (ret)
		return pp_fail(ret, "The other side stopped; its own message says why.",
			       "Couldn't read '%s' from the other side", word);
	if (strcmp(got, word))
		return pp_fail(EPROTO, "Is the other side the same tool?",
			       "The other side sent '%s' instead of '%s'", got, word);
	return 0;
}

void pp_linger(int sock)
{
	char byte;

	/* If the peer is older, it has closed its end long before, and recv() returns at once. */
	shutdown(sock, SHUT_WR);
	while (recv(sock, &byte, 1, 0) < 0 && errno == EINTR)
		;
	close(sock);
}
