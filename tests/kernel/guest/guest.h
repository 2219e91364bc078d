// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What the tests in the guest share: checks, how a test is listed, and a rig of the objects that
 * most of them need. Each test runs in a process of its own, with a time limit; a check that fails,
 * or any wait that does not end, fails that test alone. They use the public verbs only.
 */

#ifndef TESTS_KERNEL_GUEST_H
#define TESTS_KERNEL_GUEST_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What the guest's init has set up. */
#define DEVICE "rxe0"
#define NETDEV "dummy0"

struct guest_test {
	const char *name;
	void (*run)(void);
};

/* One list per subject, ended by a test without a name. */
extern const struct guest_test device_tests[], memory_tests[], completion_tests[], srq_tests[],
	qp_tests[], ah_tests[], rc_tests[], ud_tests[], pingpong_tests[], multicast_tests[],
	xrc_tests[], event_tests[];

/*
 * Where the test is, for the report of one that fails or never comes further: the last check, and
 * the last place from which one of the functions that wait or compare was called.
 */
extern const char *volatile guest_where, *volatile guest_from;

#define GUEST_STRING(x)	 #x
#define GUEST_LINE(line) GUEST_STRING(line)
#define GUEST_PLACE	 __FILE__ ":" GUEST_LINE(__LINE__)
#define HERE		 (guest_where = GUEST_PLACE)
#define FROM_HERE	 (guest_from = GUEST_PLACE)

_Noreturn void guest_fail(const char *text);
_Noreturn void guest_fail_value(const char *text, long long value, long long expected);

/* The test ends here when the condition is false. */
#define CHECK(condition)                                                                           \
	do {                                                                                       \
		HERE;                                                                              \
		if (!(condition))                                                                  \
			guest_fail(#condition);                                                    \
	} while (0)

#define CHECK_EQ(actual, expected)                                                                 \
	do {                                                                                       \
		HERE;                                                                              \
		long long value_ = (long long)(actual), expected_ = (long long)(expected);         \
		if (value_ != expected_)                                                           \
			guest_fail_value(#actual, value_, expected_);                              \
	} while (0)

/* A call that returns NULL, with this errno. */
#define CHECK_REFUSED(call, error)                                                                 \
	do {                                                                                       \
		HERE;                                                                              \
		errno = 0;                                                                         \
		if (call)                                                                          \
			guest_fail(#call " is not refused");                                       \
		CHECK_EQ(errno, error);                                                            \
	} while (0)

/* A child that runs the function, with its end of a socket pair, and dies with the test. */
struct peer {
	pid_t pid;
	int fd;
};
struct peer peer_start(void (*run)(int fd));
/* Waits for it and checks that none of its checks failed. */
void peer_finish(struct peer *peer);
/* Tells the other side a value and gets its. */
uint32_t peer_exchange(int fd, uint32_t value);

/*
 * The rig
 */

#define RIG_BUF	   (1 << 17)
#define RIG_CQE	   256
#define RIG_WR	   32
#define RIG_SGE	   4
#define RIG_INLINE 64
#define RIG_QKEY   0x11111111
#define RIG_PSN	   0x123456
#define RIG_MTU	   1024
#define GRH_SIZE   40

struct rig {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq; /* on the channel; of every QP of the rig */
	uint8_t *buf;	   /* RIG_BUF bytes */
	struct ibv_mr *mr; /* of buf, with all access */
	int gid_index;	   /* the interface's IPv4 address */
	union ibv_gid gid;
};

struct ibv_context *open_device(void);
/* Waits until the interface has a GID of its family: they come a little after its link. */
int find_gid(struct ibv_context *context, bool ipv4, union ibv_gid *gid);

void rig_up(struct rig *rig);
/* Everything is destroyed, none of it is busy. The QPs of the test have to be gone. */
void rig_down(struct rig *rig);

struct ibv_qp *rig_qp(struct rig *rig, enum ibv_qp_type type, struct ibv_srq *srq);
struct ibv_srq *rig_srq(struct rig *rig, uint32_t max_wr);
struct ibv_ah_attr rig_ah_attr(const struct rig *rig);
struct ibv_ah *rig_ah(struct rig *rig);

/*
 * The attributes of the transition to the next state, for the type of the QP; the mask comes back.
 */
int init_attr(const struct ibv_qp *qp, struct ibv_qp_attr *attr);
int rtr_attr(const struct rig *rig, const struct ibv_qp *qp, uint32_t dest,
	     struct ibv_qp_attr *attr);
int rts_attr(const struct ibv_qp *qp, struct ibv_qp_attr *attr);

void qp_to_init(struct ibv_qp *qp);
void qp_to_rtr(struct rig *rig, struct ibv_qp *qp, uint32_t dest);
void qp_to_rts(struct ibv_qp *qp);
void qp_to_state(struct ibv_qp *qp, enum ibv_qp_state state);
/* From RESET to RTS. */
void qp_connect(struct rig *rig, struct ibv_qp *qp, uint32_t dest);
void connect_pair(struct rig *rig, struct ibv_qp *a, struct ibv_qp *b);
/* From RTS to SQD; returns when the event says that every send has completed. */
void qp_drain(struct rig *rig, struct ibv_qp *qp);
enum ibv_qp_state qp_queried_state(struct ibv_qp *qp);

/* Requests on [offset, offset + length) of the rig's buffer; wr_id is the offset. */
struct ibv_sge rig_sge(const struct rig *rig, size_t offset, uint32_t length);
void post_recv(struct rig *rig, struct ibv_qp *qp, size_t offset, uint32_t length);
void post_srq_recv(struct rig *rig, struct ibv_srq *srq, size_t offset, uint32_t length);
void post_send(struct rig *rig, struct ibv_qp *qp, size_t offset, uint32_t length, int flags);
void post_ud_send(struct rig *rig, struct ibv_qp *qp, struct ibv_ah *ah, uint32_t qpn,
		  size_t offset, uint32_t length);

/* The next completion of the CQ. */
struct ibv_wc wait_wc(struct ibv_cq *cq);
/* The same, with the status. */
struct ibv_wc wait_status(struct ibv_cq *cq, enum ibv_wc_status status);
/*
 * The completions of a send and of the receive that it went to, in either order; the receive's
 * comes back.
 */
struct ibv_wc wait_recv_and_send(struct ibv_cq *cq);
/* Waits for the channel's event, checks that it is the CQ's and acknowledges it. */
void wait_cq_event(struct ibv_comp_channel *channel, struct ibv_cq *cq);
/*
 * Waits for an asynchronous event of the type; those of the port that come between are passed over.
 * It is to be acknowledged.
 */
struct ibv_async_event wait_async_event(struct ibv_context *context, enum ibv_event_type type);
/* Whether the descriptor is readable at once. */
bool readable(int fd);

void fill(uint8_t *to, size_t length, unsigned int seed);
void check_content(const uint8_t *from, size_t length, unsigned int seed);

#define wait_wc(cq)			  (FROM_HERE, wait_wc(cq))
#define wait_status(cq, status)		  (FROM_HERE, wait_status(cq, status))
#define wait_recv_and_send(cq)		  (FROM_HERE, wait_recv_and_send(cq))
#define wait_cq_event(channel, cq)	  (FROM_HERE, wait_cq_event(channel, cq))
#define wait_async_event(context, type)	  (FROM_HERE, wait_async_event(context, type))
#define check_content(from, length, seed) (FROM_HERE, check_content(from, length, seed))

#endif /* TESTS_KERNEL_GUEST_H */
