// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Connections by address. The layouts are frozen ABI: programs built years ago share them. */

#ifndef RDMA_RDMA_CMA_H
#define RDMA_RDMA_CMA_H

#include <stdint.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <infiniband/verbs.h>
#include <infiniband/sa.h>
#include <infiniband/ib.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Conventions, unless a function says otherwise:
 *  - a function that returns int returns 0, or -1 with errno set; one that returns a pointer
 *    returns NULL with errno set;
 *  - the first call finds the kernel's connection manager. Any call may fail with ENODEV (there is
 *    no RDMA device), EPERM (the kernel's interface has another version) or the errno of open() on
 *    /dev/infiniband/rdma_cm: ENOENT, EACCES, EMFILE;
 *  - what the kernel refuses fails with its errno: EINVAL (the id is in another state, or a value
 *    is not valid), ENOMEM, ENODEV (the device has gone);
 *  - on an id without a channel of the program's (rdma_create_id() with NULL) a call waits until
 *    its event has come, and fails if the event is a failure: ECONNREFUSED for a rejection, else
 *    the event's status. On other ids it returns at once, and the event comes to the channel;
 *  - threads may make all calls at the same time, but must not destroy an id or a channel that
 *    another thread uses.
 */

/* What has happened to an id: rdma_get_cm_event(3) says what each means. */
enum rdma_cm_event_type {
	RDMA_CM_EVENT_ADDR_RESOLVED,
	RDMA_CM_EVENT_ADDR_ERROR,
	RDMA_CM_EVENT_ROUTE_RESOLVED,
	RDMA_CM_EVENT_ROUTE_ERROR,
	RDMA_CM_EVENT_CONNECT_REQUEST,
	RDMA_CM_EVENT_CONNECT_RESPONSE,
	RDMA_CM_EVENT_CONNECT_ERROR,
	RDMA_CM_EVENT_UNREACHABLE,
	RDMA_CM_EVENT_REJECTED,
	RDMA_CM_EVENT_ESTABLISHED,
	RDMA_CM_EVENT_DISCONNECTED,
	RDMA_CM_EVENT_DEVICE_REMOVAL,
	RDMA_CM_EVENT_MULTICAST_JOIN,
	RDMA_CM_EVENT_MULTICAST_ERROR,
	RDMA_CM_EVENT_ADDR_CHANGE,
	RDMA_CM_EVENT_TIMEWAIT_EXIT
};

/* The port space of an id: which ports it competes for, and what it is made for. TCP: reliable
 * connections; UDP and IPOIB: datagrams, IPOIB with the Q_Key of IP over InfiniBand; IB: any, by
 * the type of the QP. */
enum rdma_port_space {
	RDMA_PS_IPOIB = 0x0002,
	RDMA_PS_TCP = 0x0106,
	RDMA_PS_UDP = 0x0111,
	RDMA_PS_IB = 0x013F
};

/* Parts of a service id, in host order: port space and port. */
#define RDMA_IB_IP_PS_MASK   0xFFFFFFFFFFFF0000ULL
#define RDMA_IB_IP_PORT_MASK 0x000000000000FFFFULL
#define RDMA_IB_IP_PS_TCP    0x0000000001060000ULL
#define RDMA_IB_IP_PS_UDP    0x0000000001110000ULL
#define RDMA_IB_PS_IB	     0x00000000013F0000ULL

/* The Q_Key of QPs in RDMA_PS_UDP. */
#define RDMA_UDP_QKEY 0x01234567

/* Types of ids that make the XRC objects of this generation, in rdma_addrinfo.ai_qp_type and
 * rdma_cm_id.qp_type. They are the kernel's numbers. SEND: rdma_create_qp() makes an XRC QP; RECV:
 * it makes an XRC receive QP. */
enum rdma_xrc_type { RDMA_XRC_SEND = 9, RDMA_XRC_RECV = 10 };

/* The addresses of one side of a path. GIDs and the P_Key are in network order; zero as long as
 * the id has no device. */
struct rdma_ib_addr {
	union ibv_gid sgid;
	union ibv_gid dgid;
	uint16_t pkey;
};

/* The addresses of an id. */
struct rdma_addr {
	union {
		struct sockaddr src_addr;
		struct sockaddr_in src_sin;
		struct sockaddr_in6 src_sin6;
		struct sockaddr_storage src_storage;
	};
	union {
		struct sockaddr dst_addr;
		struct sockaddr_in dst_sin;
		struct sockaddr_in6 dst_sin6;
		struct sockaddr_storage dst_storage;
	};
	union {
		struct rdma_ib_addr ibaddr;
	} addr;
};

/* The route of an id. path_rec has num_paths elements; NULL until the route is known. */
struct rdma_route {
	struct rdma_addr addr;
	struct ibv_sa_path_rec *path_rec;
	int num_paths;
};

/* A channel for events, from rdma_create_event_channel(). fd is readable while an event waits;
 * programs may poll it and make it non-blocking. */
struct rdma_event_channel {
	int fd;
};

/* What a socket is for TCP: one end of a connection, a listener, or a datagram service. The library
 * allocates it. Programs read it, and may set context. */
struct rdma_cm_id {
	struct ibv_context *verbs; /* the device; NULL while the address leaves it open */
	struct rdma_event_channel *channel;
	void *context;	   /* the program's */
	struct ibv_qp *qp; /* of rdma_create_qp() */
	struct rdma_route route;
	enum rdma_port_space ps;
	uint8_t port_num;	     /* of verbs; 0 without a device */
	struct rdma_cm_event *event; /* without a channel of the program's: the last event */
	struct ibv_comp_channel *send_cq_channel; /* those that rdma_create_qp() has made */
	struct ibv_cq *send_cq;
	struct ibv_comp_channel *recv_cq_channel;
	struct ibv_cq *recv_cq;
	struct ibv_srq *srq;	  /* of rdma_create_srq() */
	struct ibv_pd *pd;	  /* of the program, or the library's own of this device */
	enum ibv_qp_type qp_type; /* or enum rdma_xrc_type */
};

/* "As much as the device and the request allow", for the two depths of rdma_conn_param. */
enum { RDMA_MAX_RESP_RES = 0xFF, RDMA_MAX_INIT_DEPTH = 0xFF };

/*
 * Parameters of a connection. In an event, private_data is as long as the message has room, filled
 * with zeros, and belongs to the event. responder_resources: RDMA READs and atomics that this side
 * accepts at once; initiator_depth: those that it issues. srq and qp_num are read only if the id
 * has no QP.
 */
struct rdma_conn_param {
	const void *private_data;
	uint8_t private_data_len;
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t flow_control;
	uint8_t retry_count;	 /* 0-7 */
	uint8_t rnr_retry_count; /* 0-7; 7: without limit */
	uint8_t srq;
	uint32_t qp_num;
};

/* How a datagram service or a multicast group is reached. */
struct rdma_ud_param {
	const void *private_data;
	uint8_t private_data_len;
	struct ibv_ah_attr ah_attr;
	uint32_t qp_num;
	uint32_t qkey;
};

/* An event, from rdma_get_cm_event(). It belongs to the library until rdma_ack_cm_event(). */
struct rdma_cm_event {
	struct rdma_cm_id *id;	      /* of CONNECT_REQUEST: a new id */
	struct rdma_cm_id *listen_id; /* of CONNECT_REQUEST: the listener; else NULL */
	enum rdma_cm_event_type event;
	int status; /* 0; -errno; of REJECTED a reason, of UNREACHABLE of a datagram id too */
	union {
		struct rdma_conn_param conn;
		struct rdma_ud_param ud;
	} param;
};

/* Flags of rdma_addrinfo. PASSIVE: the address is for listening; NUMERICHOST: node is no name;
 * NOROUTE: do not ask for a route; FAMILY: ai_family of the hints counts. */
#define RAI_PASSIVE	0x00000001
#define RAI_NUMERICHOST 0x00000002
#define RAI_NOROUTE	0x00000004
#define RAI_FAMILY	0x00000008

/* An address with all that a connection to it needs, from rdma_getaddrinfo(). */
struct rdma_addrinfo {
	int ai_flags; /* RAI_* */
	int ai_family;
	int ai_qp_type; /* enum ibv_qp_type or enum rdma_xrc_type */
	int ai_port_space;
	socklen_t ai_src_len;
	socklen_t ai_dst_len;
	struct sockaddr *ai_src_addr;
	struct sockaddr *ai_dst_addr;
	char *ai_src_canonname;
	char *ai_dst_canonname;
	size_t ai_route_len; /* bytes of ai_route */
	void *ai_route;	     /* struct ibv_path_data[] */
	size_t ai_connect_len;
	void *ai_connect; /* what goes before the private data of a request */
	struct rdma_addrinfo *ai_next;
};

/* Options of rdma_set_option(): a level, */
enum { RDMA_OPTION_ID = 0, RDMA_OPTION_IB = 1 };

/* the names of level RDMA_OPTION_ID: TOS uint8_t; REUSEADDR int: the port may be bound twice as
 * long as no id listens on it; AFONLY int: an IPv6 "any" address leaves the IPv4 ones alone; */
enum { RDMA_OPTION_ID_TOS = 0, RDMA_OPTION_ID_REUSEADDR = 1, RDMA_OPTION_ID_AFONLY = 2 };

/* and of level RDMA_OPTION_IB: the path, struct ibv_path_data[], in place of
 * rdma_resolve_route(). */
enum { RDMA_OPTION_IB_PATH = 1 };

/*
 * Channels
 */

/* Opens a channel for events. EMFILE, ENFILE, ENOMEM; ENOENT or EACCES: the device file is missing
 * or not for this user; ENODEV; EPERM. */
struct rdma_event_channel *rdma_create_event_channel(void);

/* Closes the channel. The program must have destroyed its ids, or moved them to other channels, and
 * acknowledged its events. */
void rdma_destroy_event_channel(struct rdma_event_channel *channel);

/*
 * Ids
 */

/* Makes an id whose events go to channel. With NULL the id gets a channel of its own, and calls
 * wait. EINVAL: ps is unknown to the kernel; ENOMEM; without channel also what
 * rdma_create_event_channel() says. */
int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
		   enum rdma_port_space ps);

/* Makes an id from what rdma_getaddrinfo() returned: bound to the source with RAI_PASSIVE, else
 * with resolved address and route, and with a QP if qp_init_attr is given. pd may be NULL.
 * A passive id keeps qp_init_attr for the ids of rdma_get_request(). The failures are those of
 * rdma_create_id(), rdma_bind_addr() or rdma_resolve_addr(), rdma_resolve_route() and
 * rdma_create_qp(). */
int rdma_create_ep(struct rdma_cm_id **id, struct rdma_addrinfo *res, struct ibv_pd *pd,
		   struct ibv_qp_init_attr *qp_init_attr);

/* Destroys QP, SRQ and id of rdma_create_ep(). */
void rdma_destroy_ep(struct rdma_cm_id *id);

/* Ends all that the id does and destroys it. Waits until the program has acknowledged all events
 * that it has got for the id. The program must have destroyed the QP. EINVAL, ENOENT: the id is not
 * of this process. */
int rdma_destroy_id(struct rdma_cm_id *id);

/* Binds the id to an address of this machine, or to "any" of a family; port 0: the kernel chooses.
 * EADDRINUSE, EADDRNOTAVAIL: port or address; EACCES: a port below 1024; ENODEV: no RDMA device has
 * the address; EINVAL: bound already, or an unknown family. */
int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr);

/* Finds the device for dst_addr; src_addr may be NULL. The event is ADDR_RESOLVED or ADDR_ERROR
 * (-ETIMEDOUT after timeout_ms, -ENODEV). EINVAL: an unknown family, or two different ones, or not
 * the state for it; ENETUNREACH. */
int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src_addr, struct sockaddr *dst_addr,
		      int timeout_ms);

/* Finds the path to the resolved address. The event is ROUTE_RESOLVED or ROUTE_ERROR. EINVAL: no
 * address has been resolved, or timeout_ms is 0. */
int rdma_resolve_route(struct rdma_cm_id *id, int timeout_ms);

/* Makes a QP for the id and takes it to INIT, for datagrams to RTS. pd NULL: the library's own;
 * CQs that are NULL are made with the sizes of cap, each with a completion channel. cap becomes the
 * granted sizes. EINVAL: the id has a QP or no device, or pd is of another device; else the errno
 * of ibv_create_qp() and ibv_modify_qp(). */
int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *qp_init_attr);

/* Destroys the id's QP and the CQs that came with it. */
void rdma_destroy_qp(struct rdma_cm_id *id);

/* Makes an SRQ in id->srq, which later QPs of the id use. On an id of type RDMA_XRC_RECV it is an
 * XRC SRQ of the library's own domain. EINVAL: the id has an SRQ or no device, or pd is of another
 * device; else the errno of ibv_create_srq(). */
int rdma_create_srq(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_srq_init_attr *attr);

/* Destroys id->srq, and its CQ if the library made it. */
void rdma_destroy_srq(struct rdma_cm_id *id);

/*
 * Connections
 */

/* Asks the peer for a connection, or for the address of its datagram service. The event is
 * ESTABLISHED (CONNECT_RESPONSE if the id has no QP), REJECTED, UNREACHABLE or CONNECT_ERROR.
 * EINVAL: no route; a depth above the device's; too much private data (56 bytes fit, 180 for
 * datagrams); neither QP nor conn_param. conn_param NULL: as much as there is. */
int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *conn_param);

/* Listens. backlog: how many requests may wait to be read; 0 or less: as many as the kernel allows.
 * EADDRINUSE, EADDRNOTAVAIL: another id listens there; EINVAL: it listens already. */
int rdma_listen(struct rdma_cm_id *id, int backlog);

/* Takes the next request to an id without a channel of the program's. The new id has a QP if the
 * listener was made with qp_init_attr by rdma_create_ep(). EINVAL: the listener has a channel of
 * the program's; else the failures of rdma_get_cm_event() and rdma_create_qp(). */
int rdma_get_request(struct rdma_cm_id *listen, struct rdma_cm_id **id);

/*
 * Accepts a request. The event is ESTABLISHED, but for datagrams none comes. conn_param NULL: as
 * much as device and request allow. EINVAL: the peer has gone; too much private data (196 bytes
 * fit, 136 for datagrams); a depth above the device's; neither QP nor conn_param. After a failure
 * the request is rejected.
 */
int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *conn_param);

/* Rejects a request. 148 bytes of private data fit, 136 for datagrams; EINVAL: more, or no
 * request. */
int rdma_reject(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len);

/* Tells the kernel what the program has got for the QP as an asynchronous event;
 * IBV_EVENT_COMM_EST: establishes a connection whose last message was lost. EINVAL. */
int rdma_notify(struct rdma_cm_id *id, enum ibv_event_type event);

/* Moves the QP to ERR and ends the connection; repeating it succeeds. Both sides get DISCONNECTED.
 * EINVAL: the id has never had a connection. */
int rdma_disconnect(struct rdma_cm_id *id);

/* Joins the group addr; context comes in the event's private_data. The event is MULTICAST_JOIN or
 * MULTICAST_ERROR. The library attaches the id's QP. EINVAL: no device, or not an id for
 * datagrams. */
int rdma_join_multicast(struct rdma_cm_id *id, struct sockaddr *addr, void *context);

/* Detaches the QP, leaves the group, and waits until the group's events are acknowledged.
 * EADDRNOTAVAIL: the id has not joined it. */
int rdma_leave_multicast(struct rdma_cm_id *id, struct sockaddr *addr);

/*
 * Events
 */

/* Waits for an event. EAGAIN: the channel is non-blocking and there is no event; EINTR; ENOMEM.
 * The program must acknowledge each event. */
int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event);

/* Frees the event and what it points to; not the id. EINVAL: event is NULL. */
int rdma_ack_cm_event(struct rdma_cm_event *event);

/* The name of an event, such as "RDMA_CM_EVENT_REJECTED"; "UNKNOWN EVENT" for another value. */
const char *rdma_event_str(enum rdma_cm_event_type event);

/* Moves the id, and its events that have not been read, to channel; NULL: to one of its own. Waits
 * until the events that have been read are acknowledged. EINVAL: NULL, and it has one of its own
 * already. */
int rdma_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel);

/*
 * The rest
 */

/* The port that the id is bound to, in network order; 0 without. */
uint16_t rdma_get_src_port(struct rdma_cm_id *id);

/* The port of the peer, in network order; 0 without. */
uint16_t rdma_get_dst_port(struct rdma_cm_id *id);

/* The id's own address. */
static inline struct sockaddr *rdma_get_local_addr(struct rdma_cm_id *id)
{
	return &id->route.addr.src_addr;
}

/* The peer's address. */
static inline struct sockaddr *rdma_get_peer_addr(struct rdma_cm_id *id)
{
	return &id->route.addr.dst_addr;
}

/* Returns a NULL-terminated array of all devices, open; free it with rdma_free_devices(). The
 * contexts stay open as long as the process. *num_devices (unless NULL) becomes their number. */
struct ibv_context **rdma_get_devices(int *num_devices);

/* Frees the array. */
void rdma_free_devices(struct ibv_context **list);

/* Sets an option of the id. EINVAL: optlen or the value; ENOSYS: the kernel does not know the
 * option. */
int rdma_set_option(struct rdma_cm_id *id, int level, int optname, void *optval, size_t optlen);

/* Finds the addresses of a node and a service, and a route if ibacm knows one. Free the result with
 * rdma_freeaddrinfo(). Returns 0, a code of getaddrinfo(), or -1 with errno set: EINVAL: node,
 * service and hints are all NULL; ENOMEM. */
int rdma_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints,
		     struct rdma_addrinfo **res);

/* Frees the result with all that it points to. */
void rdma_freeaddrinfo(struct rdma_addrinfo *res);

#ifdef __cplusplus
}
#endif

#endif /* RDMA_RDMA_CMA_H */
