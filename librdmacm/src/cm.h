// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What the files of this library share. Internal functions return 0 or -errno; the public ones turn
 * that into -1 and errno by cm_return().
 *
 * GET_EVENT on a channel that blocks may sleep for ever, and other threads must be able to write
 * commands meanwhile. So no lock of this library's is held then, but in one place of a datagram
 * rsocket (rs.h). Other commands are answered at once: the probe of the kernel's commands, and
 * rsockets, write them with a lock. The declaration of each lock says what it protects.
 */
#ifndef CM_H
#define CM_H

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include <rdma/rdma_cma.h>
#include <rdma/rdma_cma_abi.h>

#define PUBLIC __attribute__((visibility("default")))

static inline int cm_return(int ret)
{
	if (ret >= 0)
		return ret;
	errno = -ret;
	return -1;
}

/* ---- The kernel's interface, and devices (device.c) ---- */

struct cm_device {
	struct ibv_device *device;
	uint64_t guid;		   /* network order */
	struct ibv_context *verbs; /* opened at the first use, for good */
	struct ibv_pd *pd;	   /* as long as there are users */
	unsigned int users;
	uint8_t max_responder_resources;
	uint8_t max_initiator_depth;
	struct ibv_xrc_domain *domain; /* the library's own; as long as there are users of it */
	unsigned int domain_users;
	struct cm_device *next;
};

/* Reads the kernel's version and finds the devices; no more, once that has succeeded. */
int cm_start(void);

/* 3 or 4; after cm_start(). */
int cm_abi(void);

struct cm_id;

/* Gives the id the device with this GUID and its PD, if it has no device yet. */
int cm_device_attach(struct cm_id *id, uint64_t guid);
void cm_device_detach(struct cm_id *id);

/* The library's own XRC domain of the device, for QPs and SRQs that come without one. */
int cm_domain_get(struct cm_device *dev, struct ibv_xrc_domain **domain);
void cm_domain_put(struct cm_device *dev);

/* ---- Commands (command.c) ---- */

/* Writes a command whose structure begins with its head. */
int cm_command(int fd, unsigned int number, void *cmd, size_t size, size_t room);

#define CM_COMMAND(fd, number, cmd) cm_command(fd, number, cmd, sizeof(*(cmd)), 0)
#define CM_COMMAND_RESP(fd, number, cmd, resp)                                                     \
	((cmd)->response = (uintptr_t)(resp),                                                      \
	 cm_command(fd, number, cmd, sizeof(*(cmd)), sizeof(*(resp))))

/*
 * Between these a thread is not cancelled. Cancellation acts where commands are written, and the
 * calls that these two surround must not be left half done.
 */
static inline int cm_hold_cancel(void)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	return state;
}

/*
 * The same where a call of the program's begins, which is a cancellation point as long as it has
 * done nothing.
 */
static inline int cm_begin(void)
{
	pthread_testcancel();
	return cm_hold_cancel();
}

static inline void cm_let_cancel(int state)
{
	pthread_setcancelstate(state, NULL);
}

/* ---- Descriptors that the library has for itself (kept.c) ---- */

/* Returns fd. */
int cm_keep(int fd);
/* Before it is closed. */
void cm_give_up(int fd);
/* The next one from there on, or -1. */
int cm_next_kept(int from);

/* ---- Ids (id.c) ---- */

struct cm_multicast;

struct cm_id {
	struct rdma_cm_id id; /* first: programs have its address */
	struct cm_device *dev;
	uint32_t handle;
	bool sync;	    /* it has a channel of its own */
	bool disconnected;  /* a synchronous id has got DISCONNECTED */
	bool connect_error; /* the library has given up the connection: what follows is swallowed */
	uint8_t responder_resources; /* of the request, then those agreed upon */
	uint8_t initiator_depth;

	/* For the ids of rdma_get_request(); NULL: they get no QP. */
	struct ibv_qp_init_attr *qp_init_attr;
	struct ibv_pd *listen_pd;

	void *connect; /* what goes before the private data of a request */
	size_t connect_len;

	/* XRC: the receive QP that id.qp describes, and whether QP and SRQ are in dev->domain */
	bool xrc_recv;
	bool qp_in_domain;
	bool srq_in_domain;
	uint32_t srq_size;
	struct ibv_cq *srq_cq; /* made for an XRC SRQ */

	/*
	 * rdma_migrate_id(): where the id is for the kernel already. Not NULL until the program has
	 * acknowledged what was read from the old channel, id.channel. The mutex is held while the
	 * kernel moves the id, and while the library gives commands for an event.
	 */
	struct rdma_event_channel *moved_to;
	pthread_mutex_t moving;

	pthread_mutex_t mutex; /* protects what follows */
	pthread_cond_t cond;   /* events_completed has changed */
	uint32_t events_completed;
	uint32_t events_reported; /* once it is destroyed */
	bool left_behind; /* by a destroyer that was cancelled: the last acknowledgement frees it */
	struct cm_multicast *groups;
	struct cm_multicast *left_groups; /* likewise: they go with the id */
};

static inline struct cm_id *to_cm_id(struct rdma_cm_id *id)
{
	return (struct cm_id *)id;
}

/* The channel to which the id's commands go. */
static inline int cm_fd(const struct cm_id *id)
{
	const struct rdma_event_channel *to = __atomic_load_n(&id->moved_to, __ATOMIC_ACQUIRE);

	return (to ? to : id->id.channel)->fd;
}

/* What goes to the kernel for an id's type of QP, and back into a type that verbs know. */
static inline bool cm_is_ud(const struct cm_id *id)
{
	return id->id.qp_type == IBV_QPT_UD;
}

static inline bool cm_is_xrc(const struct cm_id *id)
{
	return (int)id->id.qp_type == RDMA_XRC_SEND || (int)id->id.qp_type == RDMA_XRC_RECV;
}

/* An id without a kernel's number. */
int cm_id_alloc(struct rdma_event_channel *channel, void *context, enum rdma_port_space ps,
		int qp_type, struct cm_id **id);
/* Frees the id without asking the kernel. */
void cm_id_free(struct cm_id *id);
/* In a child: frees what it has of the id, which stays its parent's. */
void cm_id_forget(struct cm_id *id);
/* An id made in the kernel too; qp_type 0: by the port space. */
int cm_id_create(struct rdma_event_channel *channel, void *context, enum rdma_port_space ps,
		 int qp_type, struct cm_id **id);

/* Waits until the program has acknowledged so many events. */
void cm_id_await(struct cm_id *id, uint32_t reported);
/* Counts an event as acknowledged. */
void cm_id_complete(struct cm_id *id);

/* Ids by the kernel's number (idmap.c). */
int cm_map_add(struct cm_id *id);
void cm_map_remove(struct cm_id *id);
struct cm_id *cm_map_find(uint32_t handle);

/* ---- Addresses and the two families of commands (address.c, family*.c) ---- */

/* Bytes of a socket address; 0: not a family for this library. */
size_t cm_addr_len(const struct sockaddr *addr);

struct cm_family {
	int (*bind)(struct cm_id *id, const struct sockaddr *addr, size_t len);
	int (*resolve)(struct cm_id *id, const struct sockaddr *src, size_t src_len,
		       const struct sockaddr *dst, size_t dst_len, int timeout_ms);
	/* Brings addresses, GIDs and device up to date. */
	int (*query_addr)(struct cm_id *id);
	/* Brings the path up to date; of the old commands also the addresses. */
	int (*query_path)(struct cm_id *id);
	int (*join)(struct cm_id *id, const struct sockaddr *addr, size_t len, uint64_t uid,
		    uint32_t *handle);
	bool has_ib; /* AF_IB */
};

extern const struct cm_family cm_family_ip, cm_family_ib;

/* The commands that the kernel has; asks once. NULL and errno if that fails. */
const struct cm_family *cm_family(void);

/* Puts n path records into the id; frees those that it has. */
int cm_set_paths(struct cm_id *id, size_t n, struct ibv_sa_path_rec **first);

/* ---- QPs (qp.c, srq.c) ---- */

/* Moves the QP with the kernel's attributes. A depth of 0xff is left to the kernel. */
int cm_qp_to_init(struct cm_id *id);
int cm_qp_to_rtr(struct cm_id *id, uint8_t responder_resources);
int cm_qp_to_rts(struct cm_id *id, uint8_t initiator_depth);
void cm_qp_to_err(struct cm_id *id);
/* Programs of before XRC leave the last member out; only an XRC QP has it. */
void cm_copy_init_attr(const struct cm_id *id, struct ibv_qp_init_attr *to,
		       const struct ibv_qp_init_attr *from);

/* A CQ with a channel of its own. */
int cm_create_cq(struct cm_id *id, uint32_t size, struct ibv_comp_channel **channel,
		 struct ibv_cq **cq);
void cm_destroy_cq(struct ibv_comp_channel **channel, struct ibv_cq **cq);

/* ---- Connections (connect.c) ---- */

/* The active side has got the answer: takes the QP to RTS and says so. */
int cm_connect_response(struct cm_id *id);

/* ---- Events (event.c, complete.c) ---- */

struct cm_event {
	struct rdma_cm_event event; /* first */
	uint8_t private_data[RDMA_MAX_PRIVATE_DATA];
	struct cm_id *id;	    /* whose count it is in */
	struct cm_multicast *group; /* likewise */
	bool counted;		    /* it is acknowledged already as far as they are concerned */
};

/* Ends the id's interest in an event; the program still has it. */
void cm_event_count(struct cm_event *event);

/* On a synchronous id waits for the event of a call and turns it into a result. */
int cm_complete(struct cm_id *id);
/* Acknowledges the last event of a synchronous id. */
void cm_forget_event(struct cm_id *id);

/* ---- Multicast (multicast.c) ---- */

struct cm_multicast {
	struct cm_id *id;
	void *context;
	struct sockaddr_storage addr;
	size_t addr_len;
	uint32_t handle;
	union ibv_gid mgid;
	uint16_t mlid;
	/* Protected by id->mutex: */
	bool joining; /* the command has not returned: its thread has the group, too */
	bool attached;
	uint32_t events_completed;
	struct cm_multicast *next;
};

/* The port has joined: attaches the id's QP. */
int cm_multicast_joined(struct cm_multicast *group, const struct ibv_ah_attr *ah);
/* Frees all groups of an id that is gone from the kernel. */
void cm_multicast_free_all(struct cm_id *id);

/* ---- Routes (route.c) ---- */

/*
 * Gives the id this path, or, if there is none or the kernel does not take it, lets the kernel look
 * for one.
 */
int cm_ask_route(struct cm_id *id, int timeout_ms, const struct ibv_path_data *paths, size_t n);

/* ---- ibacm (acm.c) ---- */

/* If not, cm_acm_paths() asks no service, and returns at once. */
bool cm_acm_is_there(void);

/* Asks ibacm for the path between two addresses; src may be NULL. *paths is for free(). Without an
 * answer *n is 0: that is no failure. */
void cm_acm_paths(const struct sockaddr *src, const struct sockaddr *dst,
		  struct ibv_path_data **paths, size_t *n);

#endif
