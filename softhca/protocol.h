/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The language between the daemon of an instance (softhca/kernel), the preloaded library
 * (softhca/shim) and the command (softhca/cli): the instance directory and the messages on its
 * control socket.
 *
 *	<place>/NAME/			mode 0700; place: see softhca/host/places.h
 *	    control			SOCK_SEQPACKET listening socket
 *	    lock			flock()ed exclusively by the daemon while it lives: free = a dead instance.
 *					Its contents are the marker, see below
 *	    lease			see below
 *	    pid				the daemon's process number, decimal
 *	    files/c<ctx>.<gen>		one per open() of a device: what the kernel maps as UAR (page 0) and
 *					BlueFlame (page 1). Length 0: stores raise SIGBUS (trap). Two pages: memory (kick)
 *	    files/l<ctx>.<gen>		mapped with MADV_DONTFORK by the opener: its close says that the address space ended
 *	    events/<evq>.<gen>		FIFOs: completion channels and async files
 *	    channels/<n>.<gen>[.<mode>]	FIFOs, one per open() of rdma_cm: a byte for each unread event; mode: O_ACCMODE
 *					of the open(), if it is not O_RDONLY. The same of umad and issm: mads/<n>...
 *	    host<K>/sys/...		what /sys is to processes of host K (class/infiniband, class/infiniband_verbs, ...)
 *	    host<K>/dev/infiniband/{uverbs<N>,rdma_cm}	regular files, so that stat and access find something
 *	    host<K>/{etc/hostname,proc/sys/kernel/hostname,proc/sys/kernel/random/boot_id}	where hosts have names of their own
 *	    runs/<pid>.<start>		one per `softhca run` in an instance of several hosts, with its host's number: see
 *					softhca/host/runs.h. The run takes it away at its end, when no process is left that descends
 *					from it; otherwise, or when it was killed, it stays as long as the instance
 *	<place>/.new-X/			an instance that is being made or removed; X: 16 hexadecimal digits
 *	<place>/.new-X.lock		its lock while .new-X is empty
 *	<place>/lock			in $SOFTHCA_DIR/softhca only: flock()ed shared by every daemon below it. Never removed
 *
 * The daemon makes files with mknod(), so that the only IN_CLOSE_WRITE of a file is its last
 * user's. Files and FIFOs are unlinked by the daemon when their context is released.
 *
 * Lease: every process image of the instance opens lease O_RDWR, takes flock(LOCK_SH), maps one
 * page of it and closes the descriptor. The lock lasts until the mapping ends, at exec or exit.
 * When the daemon can lock the file exclusively, no process of the instance is left, and an
 * instance made by `softhca run` ends. The daemon looks a second time one second later, since a
 * process may be between exec and the constructor of its shim.
 *
 * The marker tells an instance from a directory that merely has its name. lock is a regular file of
 * the effective user with one link, which contains SH_MARKER with the number of its own inode: a
 * copy is no instance. Only the process that holds the exclusive lock removes an instance, and it
 * removes only what SH_INSTANCE_CONTENTS lists: name, type and owner must fit. At every moment of
 * making and removing, a marker identifies what is there. The maker creates .new-X.lock with its
 * contents, locked. Then it makes .new-X, renames the lock into it, fills it, and renames it to
 * NAME when clients can connect. The remover takes these steps in reverse.
 *
 * Environment: SOFTHCA_INSTANCE (directory, or a name to be looked for in the places), SOFTHCA_HOST
 * (number, default 0), SOFTHCA_RUN (the run that set it: softhca/host/runs.h), SOFTHCA_MMIO (kick
 * or trap: this process only).
 *
 * Every request is answered by one reply; a connection carries one at a time. Numbers are
 * host-endian.
 */
#ifndef SOFTHCA_PROTOCOL_H
#define SOFTHCA_PROTOCOL_H

#include <stddef.h>
#include <stdint.h>

#define SH_WIRE_VERSION	    17
#define SH_MSG_MAX	    65536
#define SH_MAX_ACTIONS	    64
#define SH_MAX_RINGS	    2
#define SH_COMMAND_MAX	    512		/* bytes of a command that the daemon looks at */
#define SH_COMMAND_EXTENDED 0x80000000u /* in a command's number */

#define SH_MARKER     "softhca instance, inode %llu\n"
#define SH_MARKER_MAX 64
#define SH_NEW	      ".new-"
#define SH_NEW_DIGITS 16
#define SH_NEW_LOCK   ".lock"

/*
 * X(type, path) for everything that an instance directory can have. '#' stands for a decimal
 * number, '@' for a hexadecimal one. Either takes up to 10 digits, so a 64-bit number (the clock
 * ticks of runs) is '#' or '##'. Types: f regular file, d directory, p FIFO, s socket, l symbolic
 * link. A directory comes before what is in it. If the daemon makes anything that this list lacks,
 * that stays behind when the instance ends.
 */
#define SH_PCI "host#/sys/devices/pci0000:00/0000:@:00.0"
#define SH_IB  SH_PCI "/infiniband/mlx4_#"
#define SH_CNT SH_IB "/ports/#/counters"
#define SH_HW  SH_IB "/hw_counters"
#define SH_MAD "host#/sys/class/infiniband_mad"
#define SH_UV  SH_PCI "/infiniband_verbs/uverbs#"
#define SH_UM  SH_PCI "/infiniband_mad/umad#"
#define SH_SM  SH_PCI "/infiniband_mad/issm#"
/* A table. */
/* clang-format off */
#define SH_INSTANCE_CONTENTS(X)                                                                        \
	X('f', "lock") X('f', "lease") X('f', "pid") X('s', "control")                                 \
	X('d', "files") X('f', "files/c#.#") X('f', "files/l#.#")                                      \
	X('d', "events") X('p', "events/#.#")                                                          \
	X('d', "host#") X('d', "host#/dev") X('d', "host#/dev/infiniband")                             \
	X('f', "host#/dev/infiniband/uverbs#") X('f', "host#/dev/infiniband/rdma_cm")                  \
	X('f', "host#/dev/infiniband/umad#") X('f', "host#/dev/infiniband/issm#")                      \
	X('d', "mads") X('p', "mads/#.#") X('p', "mads/#.#.#")                                        \
	X('d', "channels") X('p', "channels/#.#") X('p', "channels/#.#.#")                            \
	X('d', "host#/etc") X('f', "host#/etc/hostname") X('f', "host#/addresses")                     \
	X('d', "host#/proc") X('d', "host#/proc/sys")                                                \
	X('d', "host#/proc/sys/kernel") X('f', "host#/proc/sys/kernel/hostname")                       \
	X('d', "host#/proc/sys/kernel/random") X('f', "host#/proc/sys/kernel/random/boot_id")          \
	X('d', "runs") X('f', "runs/#.#") X('f', "runs/#.##")                                          \
	X('d', "host#/sys") X('d', "host#/sys/class")                                                  \
	X('d', SH_MAD) X('f', SH_MAD "/abi_version") X('l', SH_MAD "/umad#") X('l', SH_MAD "/issm#")   \
	X('d', SH_PCI "/infiniband_mad")                                                               \
	X('d', SH_UM) X('f', SH_UM "/ibdev") X('f', SH_UM "/port") X('f', SH_UM "/dev")                \
	X('l', SH_UM "/device")                                                                        \
	X('d', SH_SM) X('f', SH_SM "/ibdev") X('f', SH_SM "/port") X('f', SH_SM "/dev")                \
	X('l', SH_SM "/device")                                                                        \
	X('d', "host#/sys/class/misc") X('d', "host#/sys/class/misc/rdma_cm")                          \
	X('f', "host#/sys/class/misc/rdma_cm/abi_version") X('f', "host#/sys/class/misc/rdma_cm/dev")  \
	X('d', "host#/sys/class/infiniband") X('l', "host#/sys/class/infiniband/mlx4_#")               \
	X('d', "host#/sys/class/infiniband_verbs")                                                     \
	X('f', "host#/sys/class/infiniband_verbs/abi_version")                                         \
	X('l', "host#/sys/class/infiniband_verbs/uverbs#")                                             \
	X('d', "host#/sys/devices") X('d', "host#/sys/devices/pci0000:00")                             \
	X('d', SH_PCI) X('f', SH_PCI "/vendor") X('f', SH_PCI "/subsystem_vendor")                     \
	X('f', SH_PCI "/device") X('f', SH_PCI "/subsystem_device") X('f', SH_PCI "/class")            \
	X('f', SH_PCI "/revision") X('f', SH_PCI "/irq") X('f', SH_PCI "/numa_node")                   \
	X('f', SH_PCI "/current_link_speed") X('f', SH_PCI "/current_link_width")                      \
	X('f', SH_PCI "/modalias") X('f', SH_PCI "/local_cpus") X('f', SH_PCI "/local_cpulist")        \
	X('d', SH_PCI "/infiniband") X('d', SH_IB) X('l', SH_IB "/device")                             \
	X('f', SH_IB "/node_type") X('f', SH_IB "/node_guid") X('f', SH_IB "/sys_image_guid")          \
	X('f', SH_IB "/node_desc") X('f', SH_IB "/hw_rev") X('f', SH_IB "/fw_ver")                     \
	X('f', SH_IB "/hca_type") X('f', SH_IB "/board_id")                                            \
	X('d', SH_IB "/ports") X('d', SH_IB "/ports/#")                                                \
	X('f', SH_IB "/ports/#/state") X('f', SH_IB "/ports/#/phys_state")                             \
	X('f', SH_IB "/ports/#/lid") X('f', SH_IB "/ports/#/sm_lid") X('f', SH_IB "/ports/#/rate")     \
	X('f', SH_IB "/ports/#/lid_mask_count") X('f', SH_IB "/ports/#/sm_sl")                         \
	X('f', SH_IB "/ports/#/cap_mask") X('f', SH_IB "/ports/#/link_layer")                          \
	X('d', SH_IB "/ports/#/gids") X('f', SH_IB "/ports/#/gids/#")                                  \
	X('d', SH_IB "/ports/#/pkeys") X('f', SH_IB "/ports/#/pkeys/#")                                \
	X('d', SH_CNT)                                                                                        \
	X('f', SH_CNT "/symbol_error") X('f', SH_CNT "/link_error_recovery")                                  \
	X('f', SH_CNT "/link_downed") X('f', SH_CNT "/port_rcv_errors")                                       \
	X('f', SH_CNT "/port_rcv_remote_physical_errors") X('f', SH_CNT "/port_rcv_switch_relay_errors")      \
	X('f', SH_CNT "/port_xmit_discards") X('f', SH_CNT "/port_xmit_constraint_errors")                    \
	X('f', SH_CNT "/port_rcv_constraint_errors") X('f', SH_CNT "/local_link_integrity_errors")            \
	X('f', SH_CNT "/excessive_buffer_overrun_errors") X('f', SH_CNT "/VL15_dropped")                      \
	X('f', SH_CNT "/port_xmit_data") X('f', SH_CNT "/port_rcv_data")                                      \
	X('f', SH_CNT "/port_xmit_packets") X('f', SH_CNT "/port_rcv_packets")                                \
	X('f', SH_CNT "/port_xmit_wait") X('f', SH_CNT "/unicast_xmit_packets")                               \
	X('f', SH_CNT "/unicast_rcv_packets") X('f', SH_CNT "/multicast_xmit_packets")                        \
	X('f', SH_CNT "/multicast_rcv_packets")                                                               \
	X('d', SH_HW)                                                                                         \
	X('f', SH_HW "/lifespan") X('f', SH_HW "/rq_num_dup") X('f', SH_HW "/rq_num_oos")                     \
	X('f', SH_HW "/rq_num_rnr") X('f', SH_HW "/sq_num_rnr") X('f', SH_HW "/sq_num_to")                    \
	X('f', SH_HW "/rq_num_lle") X('f', SH_HW "/sq_num_lle") X('f', SH_HW "/rq_num_lqpoe")                 \
	X('f', SH_HW "/sq_num_lqpoe") X('f', SH_HW "/rq_num_lpe") X('f', SH_HW "/sq_num_lpe")                 \
	X('f', SH_HW "/rq_num_wrfe") X('f', SH_HW "/sq_num_wrfe") X('f', SH_HW "/sq_num_mwbe")                \
	X('f', SH_HW "/sq_num_bre") X('f', SH_HW "/sq_num_rire") X('f', SH_HW "/rq_num_rire")                 \
	X('f', SH_HW "/sq_num_rae") X('f', SH_HW "/rq_num_rae") X('f', SH_HW "/sq_num_roe")                   \
	X('f', SH_HW "/sq_num_tree") X('f', SH_HW "/sq_num_rree") X('f', SH_HW "/sq_num_oos")                 \
	X('f', SH_HW "/rq_num_udsdprd") X('f', SH_HW "/num_cqovf")                                            \
	X('d', SH_PCI "/infiniband_verbs") X('d', SH_UV) X('l', SH_UV "/device")                       \
	X('f', SH_UV "/ibdev") X('f', SH_UV "/dev") X('f', SH_UV "/abi_version")
/* clang-format on */

enum sh_msg_type {
	SH_MSG_HELLO = 1, /* first message of a connection */
	SH_MSG_OPEN,	  /* open() of a device node */
	SH_MSG_OPENED,	  /* the file of the context is open, life file mapped */
	SH_MSG_KICK,	  /* operations are wrapped: the context's file may get its pages */
	SH_MSG_COMMAND,	  /* write() on a context's file */
	SH_MSG_MAP_FAILED, /* an action could not be carried out: use the fall-back way for that range */
	SH_MSG_CHANGED, /* pages of registered memory change */
	SH_MSG_SHOW,	/* reply carries a descriptor of a memfd with JSON */
	SH_MSG_PORT,
	SH_MSG_FAULT,
	SH_MSG_STOP,
	SH_MSG_CM_OPEN,	   /* open() of rdma_cm */
	SH_MSG_CM_COMMAND, /* write() on it */
	SH_MSG_MAD_OPEN,   /* open() of umad */
	SH_MSG_MAD_CALL,   /* write(), read() or ioctl() on it */
	SH_MSG_COUNTERS,   /* a program opens a file with counters: it is to say what is so now */
	SH_MSG_CAPTURE,	   /* a capture begins or ends; it ends with the connection, too */
	SH_MSG_DESCRIPTOR, /* a descriptor that the next command names */
};

struct sh_hello {
	uint32_t type, version;
	/* As the client sees it. That of a shim must be the daemon's number for it, too. */
	uint32_t pid;
	uint32_t host;
	uint32_t client; /* 1: a shim (gets a process slot); 0: the command */
	uint32_t again;	 /* a process image that lost its connection: 1 + the slot it has; else 0 */
	uint64_t witness; /* of a shim: the address of its witness, host/witness.h */
};
struct sh_hello_reply { /* with the memfd of the device memory attached when error is 0 */
	int32_t error; /* positive errno: EPERM no access to the client's memory, EPROTO version, EAGAIN full */
	uint32_t proc;
	uint64_t size;
	uint32_t hosts, reserved;
};

struct sh_open {
	uint32_t type, device; /* N of uverbsN, counted per host */
	uint32_t reserved[2];
};
struct sh_open_reply {
	int32_t error;
	uint32_t ctx, generation, reserved;
};

struct sh_opened {
	uint32_t type, ctx;
}; /* reply: struct sh_status */

struct sh_kick {
	uint32_t type, ctx, generation, reserved;
}; /* reply: struct sh_status */

struct sh_status {
	int32_t error; /* positive errno or 0 */
	uint32_t reserved;
	/*
	 * For the command, NUL-terminated: what went wrong and what to do; a remark, if error is 0.
	 */
	char text[496];
};

/*
 * The daemon writes the response to the memory of the caller (process_vm_*), as a kernel does;
 * descriptors named in a command are looked up through /proc/<tid>/fd. The command itself, as it is
 * in the caller's memory, comes with the message. If the shim cannot read all of it, nothing comes,
 * and the daemon reads as much as there is by itself.
 *
 *	struct sh_command
 *	struct sh_pin_result		in the second pass, see below
 *	bytes of the command		here of them: none, or as many as len says, SH_COMMAND_MAX at most
 */
struct sh_command {
	uint32_t type, ctx;
	uint32_t tid;		/* calling thread: whose descriptors the command means */
	uint32_t cap_ipc_lock;	/* nonzero: no RLIMIT_MEMLOCK accounting */
	uint64_t addr, len;	/* of write() */
	uint64_t memlock_limit; /* RLIMIT_MEMLOCK soft limit, bytes */
	uint32_t here, reserved;
};
/*
 * The kernel lets the daemon look at a process's descriptors only if it may trace the process.
 * Where it may not, the error of the reply to a command is -1 - the number of the descriptor, and
 * nothing has happened. The shim then hands the descriptor over, attached to this message, and
 * sends the command again. No descriptor: there is none of that number.
 */
struct sh_descriptor {
	uint32_t type;
	int32_t number;
}; /* reply: struct sh_status */
/*
 * Commands of both faces that register no memory, and that programs give often. With them the shim
 * leaves cap_ipc_lock and memlock_limit 0, which costs it three system calls less.
 */
enum sh_command_number {
	SH_COMMAND_QUERY_DEVICE = 1, /* QUERY_PORT and ALLOC_PD in between */
	SH_COMMAND_DEALLOC_PD = 4,
	SH_COMMAND_DEREG_MR = 13,
	SH_COMMAND_CREATE_COMP_CHANNEL = 17,
	SH_COMMAND_DESTROY_CQ = 20,
	SH_COMMAND_QUERY_QP = 25,
	SH_COMMAND_MODIFY_QP = 26,
	SH_COMMAND_DESTROY_QP = 27,
	SH_COMMAND_ATTACH_MCAST = 30,
	SH_COMMAND_DETACH_MCAST = 31,
	SH_COMMAND_DESTROY_SRQ = 35,
	SH_COMMAND_OPEN_QP = 40, /* CREATE_XRC_RCV_QP on the ofed face, where four more follow */
	SH_COMMAND_UNREG_XRC_RCV_QP = 44,
};
/*
 * The shim carries these out before write() returns, and before it sends another request about the
 * same context. The daemon serves one command after the other. So no command uses a doorbell record
 * in a page that is not mapped yet.
 */
enum sh_action_kind {
	SH_ACTION_QUEUE, /* map device memory over these pages (MAP_SHARED|MAP_FIXED); contents are there already */
	/*
	 * The same, after copying the contents there, if the program cannot tell; else
	 * SH_MSG_CHANGED
	 */
	SH_ACTION_SHARE,
	/*
	 * Make them private again if possible, with the contents that device memory has; then
	 * SH_MSG_CHANGED
	 */
	SH_ACTION_GIVE_BACK,
};
struct sh_action {
	uint64_t uaddr, len, shm_off;
	uint64_t kind;
};
/* nfds descriptors attached, in order of fd_where. The message ends with the last action. */
struct sh_command_reply {
	int32_t error; /* positive errno, or 0: write() returns len */
	uint32_t nfds;
	uint64_t
		fd_where[2]; /* address in the caller where the new descriptor's number goes, u32 */
	uint64_t fd_cloexec; /* bit i: descriptor i gets FD_CLOEXEC */
	uint32_t nactions, nrings;
	uint32_t ring
		[SH_MAX_RINGS]; /* QPNs whose send queue is to be looked at now (moved to RTS or ERR) */
	/* what kick needs: the object this command made, or 0 */
	uint32_t made_kind;   /* enum sh_made */
	uint32_t made_number; /* QPN, CQN */
	uint32_t made_handle; /* uverbs handle */
	uint32_t pin_check;   /* nonzero on a first pass: see below */
	uint64_t made_user_handle;
	/*
	 * REG_MR and queue memory: pages must be there. The daemon answers a first pass with
	 * pin_check = 1 and the range below; the shim populates it (MADV_POPULATE_READ or _WRITE,
	 * or a touch of each page) unless it says SH_SHARE_PRIVATE, and sends SH_MSG_COMMAND again
	 * with pin_result. error is 0 and nothing has happened yet.
	 */
	uint64_t pin_addr, pin_len;
	uint32_t pin_write;
	uint32_t pin_share; /* nonzero: say whether the pages can become device memory */
	struct sh_action action[SH_MAX_ACTIONS];
};
#define SH_COMMAND_REPLY(nactions)                                                                 \
	(offsetof(struct sh_command_reply, action) + (nactions) * sizeof(struct sh_action))
/* Follows struct sh_command in the second pass. */
struct sh_pin_result {
	uint32_t done;	/* 1 */
	int32_t error;	/* positive errno: EFAULT */
	uint32_t share; /* enum sh_share, of all pages of the range */
	uint32_t reserved;
	uint64_t have_off; /* SH_SHARE_HAVE: where the first page is in device memory */
};
enum sh_share {
	SH_SHARE_NO,
	SH_SHARE_PRIVATE, /* private anonymous memory, which can be exchanged without the program noticing */
	SH_SHARE_HAVE, /* device memory already, in one piece */
};
enum sh_made { SH_MADE_NONE, SH_MADE_QP, SH_MADE_CQ };

struct sh_map_failed {
	uint32_t type, ctx;
	uint64_t uaddr, len;
}; /* reply: struct sh_status */

/*
 * Before pages that are device memory change their meaning (munmap, mremap, ...) the shim has them
 * revoked: when the answer comes, the device reaches that memory by the process's addresses only.
 * Afterwards it says which are mapped no more.
 */
enum sh_changed { SH_CHANGED_REVOKE, SH_CHANGED_GONE };
struct sh_changed_msg {
	uint32_t type, what;
	uint64_t uaddr, len;
}; /* reply: struct sh_status */

#define SH_CM_MINOR 58 /* of rdma_cm, whose major number is 10 */

/* Commands that the shim knows: those that may give an id a port, and the one that waits. */
enum sh_cm_number {
	SH_CM_BIND_IP = 2,
	SH_CM_RESOLVE_IP = 3,
	SH_CM_LISTEN = 7,
	SH_CM_GET_EVENT = 12,
	SH_CM_BIND = 20,
	SH_CM_RESOLVE_ADDR = 21,
};
struct sh_cm_header { /* of each command; in: bytes that follow, out: room for the response */
	uint32_t number;
	uint16_t in, out;
};
#define SH_CM_EVENT_ROOM 328 /* for the response: kernels of both faces tell of an event then */

/*
 * Of the flags with which a program opens umad or rdma_cm: its descriptor has these. What it may
 * do, O_ACCMODE, is in the file's name.
 */
#define SH_FIFO_FLAGS (O_APPEND | O_NONBLOCK | O_SYNC | O_NOATIME)

struct sh_cm_open {
	uint32_t type, flags; /* of open() */
}; /* reply: struct sh_cm_reply, with the program's descriptor attached when error is 0 */

/*
 * As SH_MSG_COMMAND: bytes of the command follow. EAGAIN: there is no event. The shim then sleeps
 * in read() of the descriptor, and asks again.
 */
struct sh_cm_command {
	uint32_t type, tid;
	uint32_t channel, generation; /* from the name of the file */
	uint32_t privileged;	      /* nonzero: may use ports below 1024 */
	uint32_t here;		      /* as in struct sh_command */
	uint64_t addr, len;	      /* of write() */
};				      /* reply: struct sh_cm_reply */
struct sh_cm_reply {
	int32_t error; /* positive errno, or 0: write() returns len */
	uint32_t reserved;
};

struct sh_mad_open {
	uint32_t type, minor; /* N of umadN, 64 + N of issmN; counted per host */
	uint32_t flags;	      /* of open() */
}; /* reply: struct sh_mad_reply, with the program's descriptor attached when result is 0 */

/*
 * The FIFO of a umad or rdma_cm file has this byte for each unread datagram or event. A process
 * that reads it without knowing what the file is recognizes it; no text in UTF-8 has it.
 */
#define SH_FIFO_BYTE 0xf5
/*
 * Of the mode of an rdma_cm file's FIFO that was opened for reading and writing. It means nothing
 * to the kernel, and no other FIFO has it: the shim may take what it knows of an inode for true
 * (shim/files/fifo_known.h).
 */
#define SH_FIFO_MARK 01000
enum sh_mad_what { SH_MAD_WRITE, SH_MAD_READ, SH_MAD_IOCTL };
/*
 * The daemon reads and writes the memory of the caller. -EAGAIN: there is nothing to read. The shim
 * then sleeps in read() of the descriptor, as for rdma_cm.
 */
struct sh_mad_call {
	uint32_t type, what;
	uint32_t index, generation; /* from the name of the file */
	uint64_t request;	    /* of ioctl() */
	uint64_t addr, len;
}; /* reply: struct sh_mad_reply */
struct sh_mad_reply {
	int64_t result; /* what the call returns, or -errno */
};

struct sh_show {
	uint32_t type, reserved;
}; /* reply: struct sh_status with a descriptor attached when error is 0 */

enum sh_port_what {
	SH_PORT_UP,
	SH_PORT_DOWN,
	SH_PORT_LID,
	SH_PORT_PKEY,
	SH_PORT_SM,
	SH_PORT_FATAL
};
struct sh_port_msg {
	uint32_t type, host, hca, port, what, a, b,
		reserved; /* hca counted per host; port 1.. ; lid N: a, b not 0: also another's; pkey I V: a, b; sm N: a */
};			  /* reply: struct sh_status */

#define SH_FAULT_ADDRESS 48
struct sh_fault_msg {
	uint32_t type,
		kind; /* enum sh_fault_kind of device/memory/layout.h, or one of those below */
	uint32_t rate,
		count; /* per million, or the next count packets; one of them 0; both: it ends */
	uint64_t delay_ns;	/* of delayed packets; 0: as it is */
	uint32_t from, to, qpn; /* SH_FAULT_ANY (device/transport/fault.h): not named */
	uint32_t seeded, seed;	/* seeded 0: the seed of the instance */
	uint32_t reserved;
	uint64_t bits; /* a second, of SH_FAULT_LIMIT */
	/* Ends that are named by an address, as text, in place of from and to; "": none. */
	char from_address[SH_FAULT_ADDRESS], to_address[SH_FAULT_ADDRESS];
};			     /* reply: struct sh_status */
#define SH_FAULT_CM_DROP 253 /* CM messages are lost; qpn is not named */
#define SH_FAULT_SEED	 254 /* the choices of all rates begin anew, from seed */
#define SH_FAULT_OFF	 255 /* every kind with this scope; without a scope, everything */

struct sh_counters_msg {
	uint32_t type, reserved;
}; /* reply: struct sh_status */

/*
 * The packets that the capture names go to the tap (device/memory/tap.h), which the command reads
 * in device memory.
 */
struct sh_capture_msg {
	uint32_t type;
	uint32_t on;	    /* nonzero: it begins; 0: it ends */
	uint32_t snap;	    /* bytes of payload to keep of each packet */
	uint32_t host, qpn; /* SH_TAP_ANY: not named */
	uint32_t reserved;
}; /* reply: struct sh_status, with the memfd of device memory attached when one has begun */

struct sh_stop {
	uint32_t type, reserved;
}; /* reply: struct sh_status, then the daemon ends */

#endif
