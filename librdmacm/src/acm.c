// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Asks ibacm, a service of the machine that knows paths. A file of ibacm's says where it listens.
 * If ibacm is not there, does not answer in time or does not know the path, the library goes on
 * without it. Each question has a connection of its own, so no thread waits for another one's.
 *
 * A message is a head and up to 8 elements. Numbers are in host order; addresses and paths are in
 * network order.
 *
 *   OFFSET  SIZE  MEANING                     OFFSET  SIZE  MEANING
 *   0       1     version: 1                  16 + n x 72: an element
 *   1       1     operation: 1, answers 0x81    0     4     flags
 *   2       1     status: 0                     4     2     type: 2 IPv4, 3 IPv6, 0x10 path
 *   3       3     -                             6     2     -
 *   6       2     bytes of the message          8     64    address or path
 *   8       8     number of the question
 */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "cm.h"

enum {
	ACM_VERSION = 1,
	ACM_RESOLVE = 1,
	ACM_ANSWER = 0x80,
	ACM_IP = 2,
	ACM_IP6 = 3,
	ACM_PATH = 0x10,
	ACM_SOURCE = 1,
	ACM_DEST = 2,
	ACM_ELEMENTS = 8,
	ACM_SECONDS = 5,
};

struct acm_element {
	uint32_t flags;
	uint16_t type;
	uint16_t reserved;
	union {
		uint8_t address[64];
		struct ibv_path_record path;
	} info;
};

struct acm_message {
	uint8_t version;
	uint8_t operation;
	uint8_t status;
	uint8_t data[3];
	uint16_t length;
	uint64_t number;
	struct acm_element element[ACM_ELEMENTS];
};

_Static_assert(sizeof(struct acm_element) == 72, "an element of a message");
_Static_assert(offsetof(struct acm_message, element) == 16, "the head of a message");

static const char socket_path[] = "/var/run/ibacm.sock", port_path[] = "/var/run/ibacm.port";

bool cm_acm_is_there(void)
{
	return !access(socket_path, F_OK) || !access(port_path, F_OK);
}

/*
 * Makes the system call directly. librspreload.so makes plain sockets for calls of the program's
 * that are inside this library; but rsockets ask in a thread of their own, which it would not know.
 */
static int plain_socket(int family)
{
	return cm_keep((int)syscall(SYS_socket, family, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

static void close_plain(int fd)
{
	cm_give_up(fd);
	close(fd);
}

static int connect_to(const struct sockaddr *addr, socklen_t len)
{
	struct timeval limit = {.tv_sec = ACM_SECONDS};
	int fd = plain_socket(addr->sa_family);

	if (fd < 0)
		return -1;
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) ||
	    connect(fd, addr, len)) {
		close_plain(fd);
		return -1;
	}
	return fd;
}

static int acm_connect(void)
{
	struct sockaddr_un local = {.sun_family = AF_UNIX};
	struct sockaddr_in loopback = {.sin_family = AF_INET};
	unsigned int port = 0;
	FILE *file;
	int fd;

	memcpy(local.sun_path, socket_path, sizeof(socket_path));
	fd = access(socket_path, F_OK) ? -1 : connect_to((void *)&local, sizeof(local));
	if (fd >= 0)
		return fd;
	file = fopen(port_path, "re");
	if (!file)
		return -1;
	if (fscanf(file, "%u", &port) != 1 || port > 0xffff)
		port = 0;
	fclose(file);
	if (!port)
		return -1;
	loopback.sin_port = htons(port);
	loopback.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return connect_to((void *)&loopback, sizeof(loopback));
}

static bool is_any(const struct sockaddr *addr)
{
	const struct sockaddr_in *in = (const void *)addr;
	const struct sockaddr_in6 *in6 = (const void *)addr;

	if (!addr)
		return true;
	if (addr->sa_family == AF_INET)
		return !in->sin_addr.s_addr;
	return addr->sa_family != AF_INET6 || IN6_IS_ADDR_UNSPECIFIED(&in6->sin6_addr);
}

static void put_address(struct acm_message *msg, unsigned int flags, const struct sockaddr *addr)
{
	struct acm_element *element = (void *)((uint8_t *)msg + msg->length);

	element->flags = flags;
	if (addr->sa_family == AF_INET) {
		element->type = ACM_IP;
		memcpy(element->info.address, &((const struct sockaddr_in *)addr)->sin_addr, 4);
	} else {
		element->type = ACM_IP6;
		memcpy(element->info.address, &((const struct sockaddr_in6 *)addr)->sin6_addr, 16);
	}
	msg->length += sizeof(*element);
}

static bool transfer(int fd, struct acm_message *msg)
{
	ssize_t got;
	size_t have = 0;

	if (send(fd, msg, msg->length, MSG_NOSIGNAL) != msg->length)
		return false;
	memset(msg, 0, sizeof(*msg));
	do {
		got = recv(fd, (uint8_t *)msg + have, sizeof(*msg) - have, 0);
		if (got <= 0)
			return false;
		have += got;
	} while (have < offsetof(struct acm_message, element) || have < msg->length);

	return msg->version == ACM_VERSION && msg->operation == (ACM_RESOLVE | ACM_ANSWER) &&
	       !msg->status && have == msg->length;
}

/* Copies the paths of an answer. */
static void collect(const struct acm_message *msg, struct ibv_path_data **paths, size_t *n)
{
	size_t elements =
		(msg->length - offsetof(struct acm_message, element)) / sizeof(struct acm_element);
	struct ibv_path_data *found = calloc(ACM_ELEMENTS, sizeof(*found));
	size_t i;

	if (!found)
		return;
	for (i = 0; i < elements; i++) {
		if (msg->element[i].type != ACM_PATH)
			continue;
		found[*n].flags = msg->element[i].flags;
		found[*n].path = msg->element[i].info.path;
		++*n;
	}
	if (*n)
		*paths = found;
	else
		free(found);
}

void cm_acm_paths(const struct sockaddr *src, const struct sockaddr *dst,
		  struct ibv_path_data **paths, size_t *n)
{
	struct acm_message msg = {
		.version = ACM_VERSION,
		.operation = ACM_RESOLVE,
		.length = offsetof(struct acm_message, element),
	};
	int fd, state;

	*paths = NULL;
	*n = 0;
	if (is_any(dst))
		return;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	fd = acm_connect();
	if (fd >= 0) {
		if (!is_any(src))
			put_address(&msg, ACM_SOURCE, src);
		put_address(&msg, ACM_DEST, dst);
		if (transfer(fd, &msg))
			collect(&msg, paths, n);
		close_plain(fd);
	}
	pthread_setcancelstate(state, NULL);
}
