/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The language between the daemon of an instance (softhca/kernel), the preloaded library (softhca/shim) and
 * the command (softhca/cli): the instance directory and the messages on its control socket.
 *
 *	<base>/NAME/			mode 0700; base: see sh_base_dir() in softhca/host/paths.c
 *	    control			SOCK_SEQPACKET listening socket
 *	    lock			flock()ed exclusively by the daemon while it lives: free = a dead instance
 *	    lease			see below
 *	    pid				the daemon's process number, decimal
 *	    files/c<ctx>.<gen>		one per open() of a device: what the kernel maps as UAR (page 0) and
 *					BlueFlame (page 1). Length 0: stores raise SIGBUS (trap). Two pages: memory (kick)
 *	    files/l<ctx>.<gen>		mapped with MADV_DONTFORK by the opener: its close says that the address space ended
 *	    events/<evq>.<gen>		FIFOs: completion channels and async files
 *	    host<K>/sys/...		what /sys is to processes of host K (class/infiniband, class/infiniband_verbs, ...)
 *	    host<K>/dev/infiniband/uverbs<N>	regular files, so that stat and access find something
 *
 * The daemon makes files with mknod(), so that the only IN_CLOSE_WRITE of a file is its last user's. Files and
 * FIFOs are unlinked by the daemon when their context is released.
 *
 * Lease: every process image of the instance opens lease O_RDWR, takes flock(LOCK_SH), maps one page of it and
 * closes the descriptor: the lock lasts until the mapping goes, at exec or exit. When it can be locked
 * exclusively, nobody is left; an instance made by `softhca run` then ends (after a second look one second later:
 * a process may be between exec and its constructor).
 *
 * Environment: SOFTHCA_INSTANCE (directory, or a name below the base), SOFTHCA_HOST (number, default 0),
 * SOFTHCA_MMIO (kick or trap: this process only).
 *
 * Every request is answered by one reply; a connection carries one at a time. Numbers are host-endian.
 */
#ifndef SOFTHCA_WIRE_H
#define SOFTHCA_WIRE_H

#include <stdint.h>

#define SH_WIRE_VERSION	2
#define SH_MSG_MAX	65536
#define SH_MAX_ACTIONS	64
#define SH_MAX_RINGS	64

enum sh_msg_type {
	SH_MSG_HELLO = 1,	/* first message of a connection */
	SH_MSG_OPEN,		/* open() of a device node */
	SH_MSG_OPENED,		/* the file of the context is open, life file mapped */
	SH_MSG_COMMAND,		/* write() on a context's file */
	SH_MSG_MAP_FAILED,	/* an action could not be carried out: use the fall-back way for that range */
	SH_MSG_CHANGED,		/* pages of registered memory change */
	SH_MSG_SHOW,		/* reply carries a descriptor of a memfd with JSON */
	SH_MSG_PORT,
	SH_MSG_FAULT,
	SH_MSG_STOP,
};

struct sh_hello {
	uint32_t type, version;
	uint32_t pid;
	uint32_t host;
	uint32_t client;	/* 1: a shim (gets a process slot); 0: the command */
	uint32_t again;		/* a process image that lost its connection: 1 + the slot it has; else 0 */
	uint64_t probe_addr;	/* address of a u64 holding SH_PROBE in the client, read with process_vm_readv */
};
#define SH_PROBE UINT64_C(0x736f66746863610a)
struct sh_hello_reply {		/* with the memfd of the device memory attached when error is 0 */
	int32_t error;		/* positive errno: EPERM no access to the client's memory, EPROTO version, EAGAIN full */
	uint32_t proc;
	uint64_t size;
	uint32_t hosts, reserved;
};

struct sh_open {
	uint32_t type, device;	/* N of uverbsN, counted per host */
	uint32_t reserved[2];
};
struct sh_open_reply {
	int32_t error;
	uint32_t ctx, generation, reserved;
};

struct sh_opened {
	uint32_t type, ctx;
};				/* reply: struct sh_status */

struct sh_status {
	int32_t error;		/* positive errno or 0 */
	uint32_t reserved;
	char text[496];		/* for the command: what went wrong and what to do, NUL-terminated */
};

/*
 * The daemon reads the command from, and writes the response to, the memory of the caller (process_vm_*), as a
 * kernel does; descriptors named in a command are looked up through /proc/<tid>/fd.
 */
struct sh_command {
	uint32_t type, ctx;
	uint32_t tid;		/* calling thread: whose descriptors the command means */
	uint32_t cap_ipc_lock;	/* nonzero: no RLIMIT_MEMLOCK accounting */
	uint64_t addr, len;	/* of write() */
	uint64_t memlock_limit;	/* RLIMIT_MEMLOCK soft limit, bytes */
};
/* Done by the shim before write() returns, and before it sends another request about the same context: with the
 * daemon serving one command after the other, nobody can use a record in a page that is not mapped yet. */
enum sh_action_kind {
	SH_ACTION_QUEUE,	/* map device memory over these pages (MAP_SHARED|MAP_FIXED); contents are there already */
	SH_ACTION_SHARE,	/* the same, after copying the contents there, with every writer held off; SH_MSG_CHANGED if not */
	SH_ACTION_GIVE_BACK,	/* make them private again if that can be, with what is in device memory; then SH_MSG_CHANGED */
};
struct sh_action {
	uint64_t uaddr, len, shm_off;
	uint64_t kind;
};
struct sh_command_reply {	/* nfds descriptors attached, in order of fd_where */
	int32_t error;		/* positive errno, or 0: write() returns len */
	uint32_t nfds;
	uint64_t fd_where[2];	/* address in the caller where the new descriptor's number goes, u32 */
	uint64_t fd_cloexec;	/* bit i: descriptor i gets FD_CLOEXEC */
	uint32_t nactions, nrings;
	struct sh_action action[SH_MAX_ACTIONS];
	uint32_t ring[SH_MAX_RINGS];	/* QPNs whose send queue is to be looked at now (moved to RTS or ERR) */
	/* what kick needs: the object this command made, or 0 */
	uint32_t made_kind;	/* enum sh_made */
	uint32_t made_number;	/* QPN, CQN */
	uint32_t made_handle;	/* uverbs handle */
	uint32_t pin_check;	/* nonzero on a first pass: see below */
	uint64_t made_user_handle;
	/*
	 * REG_MR and queue memory: pages must be there. The daemon answers a first pass with pin_check = 1 and the
	 * range below; the shim populates it (MADV_POPULATE_READ or _WRITE, or a touch of each page) unless it says
	 * SH_SHARE_PRIVATE, and sends
	 * SH_MSG_COMMAND again with pin_result. error is 0 and nothing has happened yet.
	 */
	uint64_t pin_addr, pin_len;
	uint32_t pin_write;
	uint32_t pin_share;	/* nonzero: say whether the pages can become device memory */
};
/* struct sh_command of the second pass is followed by this. */
struct sh_pin_result {
	uint32_t done;		/* 1 */
	int32_t error;		/* positive errno: EFAULT */
	uint32_t share;		/* enum sh_share, of all pages of the range */
	uint32_t reserved;
	uint64_t have_off;	/* SH_SHARE_HAVE: where the first page is in device memory */
};
enum sh_share {
	SH_SHARE_NO,
	SH_SHARE_PRIVATE,	/* private anonymous memory whose other writers can be held off */
	SH_SHARE_HAVE,		/* device memory already, in one piece */
};
enum sh_made { SH_MADE_NONE, SH_MADE_QP, SH_MADE_CQ };

struct sh_map_failed {
	uint32_t type, ctx;
	uint64_t uaddr, len;
};				/* reply: struct sh_status */

/*
 * Before pages that are device memory change their meaning (munmap, mremap, ...) the shim has them revoked: when the answer
 * comes, the device reaches that memory by the process's addresses only. Afterwards it says which are mapped no more.
 */
enum sh_changed { SH_CHANGED_REVOKE, SH_CHANGED_GONE };
struct sh_changed_msg {
	uint32_t type, what;
	uint64_t uaddr, len;
};				/* reply: struct sh_status */

struct sh_show {
	uint32_t type, reserved;
};				/* reply: struct sh_status with a descriptor attached when error is 0 */

enum sh_port_what { SH_PORT_UP, SH_PORT_DOWN, SH_PORT_LID, SH_PORT_PKEY, SH_PORT_SM, SH_PORT_FATAL };
struct sh_port_msg {
	uint32_t type, host, hca, port, what, a, b, reserved;	/* hca counted per host; port 1.. ; lid N: a; pkey I V: a, b; sm N: a */
};				/* reply: struct sh_status */

struct sh_fault_msg {
	uint32_t type, kind;	/* enum sh_fault_kind of device/layout.h, or SH_FAULT_CLEAR */
	uint32_t rate, count;	/* per million, or the next count packets; one of them 0 */
};				/* reply: struct sh_status */
#define SH_FAULT_CLEAR	255

struct sh_stop {
	uint32_t type, reserved;
};				/* reply: struct sh_status, then the daemon ends */

#endif
