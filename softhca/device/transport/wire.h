/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The wire: how requests leave the instance, and what comes from other ones. One process of the
 * instance, the wire's engine (softhca/wire), has the sockets. It runs the requesters of QPs whose
 * requests leave. In any other process, a requester that comes to such a request stops there, and
 * asks the engine to go on. So the order of a send queue is kept, wherever its requests go.
 *
 * Packets on the wire get lost, so each requester has a window: at most so many PSNs are without an
 * answer. As inside an instance, the requester and the completer decide by acknowledgements, NAKs
 * and timers which packets are sent again, and when.
 */
#ifndef SOFTHCA_DEVICE_TRANSPORT_WIRE_H
#define SOFTHCA_DEVICE_TRANSPORT_WIRE_H

#include "softhca/device/queues/wqe.h"
#include "fabric.h"
#include "gsi.h"

/*
 * How long answers from one port on the wire take. The engine keeps one of these for each port,
 * zeroed at first. Its threads write without a lock: if two of them race and a time is lost, one
 * packet may be sent twice.
 */
struct sh_wire_pace {
	uint64_t longest, at; /* the longest time of late, in ns, and when it was taken */
	uint64_t timed, from; /* the packet that is being timed, 0: none is; and when it was sent */
};

/* What is to become of a packet that is sent. */
enum sh_wire_fate { SH_WIRE_WHOLE, SH_WIRE_CORRUPT };

struct sh_wire_ops {
	/*
	 * Sends one packet to the port that has that LID on the wire, or to the group of its GRH if
	 * that LID is a group's, from the port with the LID p->slid. payload: p->payload.len bytes.
	 * Corrupt: it arrives with a wrong bit.
	 */
	void (*send)(struct sh_dev *dev, const struct sh_packet *p, uint16_t dlid,
		     const unsigned char *payload, enum sh_wire_fate fate);
	/*
	 * These three, or NULL: the packets of a run need not leave one by one. gather() is like
	 * send(), but the packet may wait until the calling thread calls flush(), behind those that
	 * the thread gathered before. begin() comes before a run or a turn, and forgets what waits.
	 * A thread that is thrown out of a run begins it anew, and what had waited is lost on the
	 * wire. A thread that is thrown within a turn goes on with that turn, and what waits leaves
	 * with the rest.
	 */
	void (*begin)(struct sh_dev *dev);
	void (*gather)(struct sh_dev *dev, const struct sh_packet *p, uint16_t dlid,
		       const unsigned char *payload);
	void (*flush)(struct sh_dev *dev);
	/*
	 * Where the payload of the packet that the thread gathers next is best put, up to 4096
	 * bytes of it: from there it is sent without another copy. NULL, or returns NULL: anywhere.
	 */
	unsigned char *(*room)(struct sh_dev *dev, const struct sh_packet *p, uint16_t dlid);
	/* The calling thread's turn, zeroed at first. NULL: threads have no turns. */
	struct sh_wire_turn *(*turn)(struct sh_dev *dev);
	/* What is known of the time that answers from that LID take. NULL: nothing ever is. */
	struct sh_wire_pace *(*pace)(struct sh_dev *dev, uint16_t dlid);
	/*
	 * A management datagram has come, of the class of the communication manager. False: it is
	 * lost. NULL: QP 1 has no receiver.
	 */
	bool (*mad)(struct sh_dev *dev, const struct sh_wire_mad *m);
};

/*
 * May a port on the wire have this LID? Ports of the instance come first. Or is it a group's, which
 * may have members elsewhere? Without a wire the first comparison of LIDs says no.
 */
static inline bool sh_wire_leads(const struct sh_dev *dev, uint16_t dlid)
{
	uint32_t hca, port;

	if (!dlid || dlid > __atomic_load_n(&dev->inst->wire.leads, __ATOMIC_RELAXED))
		return false;
	if (dlid > __atomic_load_n(&dev->inst->wire.last_lid, __ATOMIC_RELAXED) &&
	    !sh_wire_listed(&dev->inst->wire.list, dlid))
		return dlid >= SH_LID_GROUPS;
	return !sh_lid_lookup(dev, dlid, &hca, &port);
}

enum sh_wire_admitted {
	SH_WIRE_SEND,	  /* *p goes now; it may be shorter than it was */
	SH_WIRE_LATER,	  /* nothing goes now */
	SH_WIRE_TOO_LONG, /* nothing of this WQE ever goes: it is longer than a packet */
};
/*
 * Decides about a run that the requester has built and that leaves the instance. A run, or a part
 * of it, that does not go is taken back: the requester will build it again, in the engine, or when
 * an answer has come. The caller holds the requester's lock, and wqe is the WQE that *p was built
 * of.
 */
enum sh_wire_admitted sh_wire_admit(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp,
				    const struct sh_wqe *wqe, struct sh_packet *p);

/*
 * Sends a run, in the engine. *resp: SH_PKT_NONE, or that the payload could not be read. A datagram
 * to a group is for the members elsewhere: sh_transmit() delivers it to those of the instance.
 */
void sh_wire_transmit(struct sh_dev *dev, const struct sh_packet *p, struct sh_packet *resp);

/*
 * Sends one packet that leaves the instance, if no fault hits it. payload: p->payload.len bytes. In
 * the engine, inside of device code.
 */
void sh_wire_leave(struct sh_dev *dev, struct sh_hca *hca, const struct sh_packet *p, uint16_t dlid,
		   const unsigned char *payload);

/*
 * The same for a packet of a run. Outside of a turn it may wait for the packets that follow, until
 * sh_wire_end_run(), which the thread calls before it leaves device code. While a capture or a
 * fault looks at each packet, none waits.
 */
void sh_wire_begin_run(struct sh_dev *dev);
/* Where to put its payload. NULL: anywhere. */
unsigned char *sh_wire_room_in_run(struct sh_dev *dev, const struct sh_packet *p, uint16_t dlid);
void sh_wire_leave_in_run(struct sh_dev *dev, struct sh_hca *hca, const struct sh_packet *p,
			  uint16_t dlid, const unsigned char *payload);
void sh_wire_end_run(struct sh_dev *dev);

/*
 * A thread's turn lasts from sh_wire_begin_turn() to sh_wire_end_turn(). In a turn the packets of
 * all QPs wait if they may, so that those for one address leave with one system call. They leave
 * when the turn ends, or before that when there is no room for more. Both functions are called in
 * device code, outside of sh_catch(), with no lock. A turn within a turn is part of it.
 *
 * A QP's packets leave in the order in which they were built, whichever thread builds them: a
 * thread that keeps the QP remains the one that runs its requester until they have left.
 */
#define SH_WIRE_KEPT 64
struct sh_wire_turn {
	uint32_t depth; /* 0: the thread has no turn */
	uint32_t n;
	uint32_t unpaced; /* how many packets of UC and UD were sent in this turn */
	uint64_t waits;	  /* how many packets were made to wait, in all turns */
	struct {
		struct sh_qp *qp;
		uint32_t hca, qpn;
		uint32_t token; /* 0: the QP was released */
		bool again;	/* and is to be looked at again */
		bool more;	/* the helper thread is to go on when the turn has ended */
	} kept[SH_WIRE_KEPT];
};
void sh_wire_begin_turn(struct sh_dev *dev);
void sh_wire_end_turn(struct sh_dev *dev);
/* sh_catch() in a turn of its own, for the helper thread, which enters the device for it. */
void sh_catch_in_turn(struct sh_dev *dev, uint32_t a, uint32_t b, uint64_t c, sh_caught_fn *fn);
bool sh_wire_in_turn(const struct sh_dev *dev);
uint64_t sh_wire_waits(struct sh_dev *dev);
/*
 * This thread has run the QP's engine with that token. waited: what sh_wire_waits() said before. If
 * packets were made to wait since then, the thread keeps the QP until its turn ends: true. The
 * caller holds the requester's lock.
 */
bool sh_wire_keep(struct sh_dev *dev, const struct sh_hca *hca, struct sh_qp *qp, uint32_t token,
		  uint64_t waited);
/*
 * Makes room to keep the QP of this packet, which the thread is about to send. The caller holds no
 * lock.
 */
void sh_wire_make_room(struct sh_dev *dev, const struct sh_packet *p);
/*
 * No answers pace the packets of UC and UD, and a program that posts as fast as this thread sends
 * would keep it from everything else. So a turn sends only so many of them. True: it has, and will
 * ask the helper thread to go on when it ends. Otherwise counts the packets that are sent now. The
 * caller holds the requester's lock.
 */
#define SH_WIRE_UNPACED 256
bool sh_wire_is_enough(struct sh_dev *dev, const struct sh_hca *hca, struct sh_qp *qp,
		       uint32_t packets);
/* Does this thread keep it? */
bool sh_wire_keeps(struct sh_dev *dev, const struct sh_qp *qp);

/* What the faults of its link make of a packet that has come. */
enum sh_wire_verdict { SH_WIRE_OPEN, SH_WIRE_COMES, SH_WIRE_LOST, SH_WIRE_DAMAGED };
/*
 * Does a packet that has come get past the faults of its link? (The faults of packets that leave
 * hit them at their sender.) False: it is lost, and counted. A rule is asked only once about a
 * packet: *verdict is SH_WIRE_OPEN at first, and the caller keeps it for its thread's next life.
 */
bool sh_wire_gets_in(struct sh_dev *dev, struct sh_hca *hca, uint32_t port,
		     const struct sh_packet *p, enum sh_wire_verdict *verdict);
/* Shows a capture a packet that has come, and what its fault is, in the thread's first life. */
void sh_wire_show_in(struct sh_dev *dev, const struct sh_packet *p, enum sh_wire_verdict verdict);

/*
 * A packet has come to this port: *p has its contents. The caller is in device code, and holds no
 * lock. Answers go out before it returns. While this thread is stopped, others can take from it
 * what it holds (memory/life.h): it then begins anew with this packet.
 */
void sh_wire_arrive(struct sh_dev *dev, uint32_t hca, uint32_t port, const struct sh_packet *p);
/*
 * The same for a datagram to the group in its GRH. ports: a bit for each port that it has come to,
 * in the order of the wire's addresses.
 */
void sh_wire_arrive_group(struct sh_dev *dev, uint64_t ports, const struct sh_packet *p);

/*
 * Requesters of softhca ask for no more than a window at a time, but others may ask for 1 GiB. So
 * the answer to a READ leaves in portions of this many packets, and in between the engine executes
 * what else comes. sh_wire_go_on() sends one portion of the READ that has waited longest; true:
 * more are due. For the thread that calls sh_wire_arrive(), inside of device code as well.
 */
#define SH_WIRE_PORTION 64
bool sh_wire_go_on(struct sh_dev *dev);

/*
 * How long a requester that is sending waits for an answer before it sends its oldest packet ahead
 * of time (timer.c): at least twice as long as answers of its peer have taken of late. The caller
 * of these holds the requester's lock, in the engine.
 */
uint64_t sh_wire_pace(struct sh_dev *dev, const struct sh_qp *qp);
/*
 * Packets have left that will be answered: times the newest one, if no other one to that peer is
 * timed.
 */
void sh_wire_pace_begin(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, uint64_t now);
/* Answers have come: takes the time, if they are to the packet that was timed. */
void sh_wire_pace_end(struct sh_dev *dev, struct sh_hca *hca, const struct sh_qp *qp);
/*
 * The requester goes back. An answer to a packet that was sent twice may be to either one, so it
 * says nothing.
 */
void sh_wire_pace_again(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp);
/*
 * An answer has come that repeats an earlier one. If it is to the packet that was sent ahead of
 * time, nothing had been lost: the wait was too short.
 */
void sh_wire_pace_twice(struct sh_dev *dev, struct sh_qp *qp);

/*
 * The engine has come: it goes on with everything that was left to it before. The calling thread is
 * the last one of its process to end.
 */
void sh_wire_begin(struct sh_dev *dev);

/*
 * This process has left a request to the engine. From now on the process looks now and then whether
 * the engine lives (wire_watch.c). If it does not, the process's own threads run its requesters:
 * what they send arrives nowhere, so the retries of reliable services run out, as if the cable had
 * been pulled.
 */
void sh_wire_watch(struct sh_dev *dev);

#define SH_COUNT_WIRE(dev, what, n)                                                                \
	__atomic_fetch_add(&(dev)->inst->wire.what, (n), __ATOMIC_RELAXED)

#endif
