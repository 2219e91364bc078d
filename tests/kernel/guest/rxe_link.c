// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Makes a Soft-RoCE device on a network interface: the RDMA netlink request that "rdma link add NAME type rxe netdev
 * NETDEV" sends.
 *
 *	nlmsghdr (type: NLDEV client, NEWLINK), then attributes: device name, link type, interface name; each a string
 *	with its NUL, padded to 4. The answer is an acknowledgement with 0 or a negative errno. */

#include <errno.h>
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct request {
	struct nlmsghdr header;
	char attributes[256];
};

struct answer {
	struct nlmsghdr header;
	struct nlmsgerr error;
	char rest[256];
};

static void add_string(struct request *request, int type, const char *text)
{
	struct nlattr attr = {.nla_len = NLA_HDRLEN + strlen(text) + 1, .nla_type = type};
	char *to = (char *)request + request->header.nlmsg_len;

	memcpy(to, &attr, sizeof(attr));
	strcpy(to + NLA_HDRLEN, text);
	request->header.nlmsg_len += NLA_ALIGN(attr.nla_len);
}

/* 0 or -errno. */
static int new_link(const char *name, const char *netdev)
{
	struct request request = {
		.header =
			{
				.nlmsg_len = NLMSG_HDRLEN,
				.nlmsg_type =
					RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_NEWLINK),
				.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK,
			},
	};
	struct answer answer;
	int fd, ret = 0;
	ssize_t n;

	add_string(&request, RDMA_NLDEV_ATTR_DEV_NAME, name);
	add_string(&request, RDMA_NLDEV_ATTR_LINK_TYPE, "rxe");
	add_string(&request, RDMA_NLDEV_ATTR_NDEV_NAME, netdev);

	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);
	if (fd < 0)
		return -errno;

	if (send(fd, &request, request.header.nlmsg_len, 0) < 0) {
		ret = -errno;
		goto out;
	}
	n = recv(fd, &answer, sizeof(answer), 0);
	if (n < 0)
		ret = -errno;
	else if ((size_t)n < offsetof(struct answer, rest) ||
		 answer.header.nlmsg_type != NLMSG_ERROR)
		ret = -EPROTO;
	else
		ret = answer.error.error;
out:
	close(fd);
	return ret;
}

int main(int argc, char **argv)
{
	int ret;

	if (argc != 3 || strlen(argv[1]) > 63 || strlen(argv[2]) > 15) {
		fprintf(stderr, "usage: %s NAME NETDEV\n", argv[0]);
		return 2;
	}

	ret = new_link(argv[1], argv[2]);
	if (ret) {
		fprintf(stderr, "%s: %s on %s: %s\n", argv[0], argv[1], argv[2], strerror(-ret));
		return 1;
	}

	return 0;
}
