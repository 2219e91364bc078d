// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: under librspreload.so, a program with an rsocket that destroys the queues and channels of an id itself. Their
 * descriptors are closed, and what gets the numbers can be closed as well.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

#include "check.h"

static struct rdma_cm_id *id_with_queues(void)
{
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC};
	struct sockaddr_in addr = {.sin_family = AF_INET};
	struct rdma_cm_id *id;

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	attr.cap.max_send_wr = attr.cap.max_recv_wr = 4;
	attr.cap.max_send_sge = attr.cap.max_recv_sge = 1;
	CHECK(!rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP));
	CHECK(!rdma_resolve_addr(id, NULL, (struct sockaddr *)&addr, 10000));
	CHECK(!rdma_create_qp(id, NULL, &attr));
	CHECK(id->send_cq_channel && id->recv_cq_channel);
	return id;
}

static void is_free(int fd)
{
	errno = 0;
	CHECK(fcntl(fd, F_GETFD) == -1 && errno == EBADF);
	CHECK(dup2(0, fd) == fd);
	CHECK(!close(fd));
	errno = 0;
	CHECK(fcntl(fd, F_GETFD) == -1 && errno == EBADF);
}

static void destroy(struct ibv_cq **cq, struct ibv_comp_channel **channel)
{
	CHECK(!ibv_destroy_cq(*cq));
	CHECK(!ibv_destroy_comp_channel(*channel));
	*cq = NULL;
	*channel = NULL;
}

int main(void)
{
	struct rdma_cm_id *id;
	int rsocket, send_fd, recv_fd;

	alarm(60);
	rsocket = socket(AF_INET, SOCK_STREAM, 0);
	CHECK(rsocket >= 0);

	id = id_with_queues();
	send_fd = id->send_cq_channel->fd;
	recv_fd = id->recv_cq_channel->fd;
	CHECK(!ibv_destroy_qp(id->qp));
	id->qp = NULL;
	destroy(&id->send_cq, &id->send_cq_channel);
	destroy(&id->recv_cq, &id->recv_cq_channel);
	is_free(send_fd);
	is_free(recv_fd);
	CHECK(!rdma_destroy_id(id));

	/* The library does it. */
	id = id_with_queues();
	send_fd = id->send_cq_channel->fd;
	recv_fd = id->recv_cq_channel->fd;
	rdma_destroy_qp(id);
	is_free(send_fd);
	is_free(recv_fd);
	CHECK(!rdma_destroy_id(id));
	CHECK(!close(rsocket));
	return 0;
}
