// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Makes this process part of an instance: environment, lease, control connection, fork. Owns struct
 * shim, shim_dev and the connection, which control_lock protects. A connection belongs to one
 * process; a forked child makes its own.
 */
#include "config.h"

#include <linux/magic.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/statfs.h>

#include "softhca/device/memory/announce.h"
#include "softhca/device/memory/dev.h"
#include "softhca/device/memory/instance.h"
#include "softhca/host/client.h"
#include "softhca/host/descriptors.h"
#include "softhca/host/memory.h"
#include "softhca/host/paths.h"
#include "softhca/host/process.h"
#include "softhca/host/runs.h"
#include "softhca/host/sys.h"
#include "softhca/host/witness.h"
#include "softhca/protocol.h"
#include "softhca/wire/loopback.h"
#include "attach.h"
#include "compiler.h"
#include "softhca/shim/files/context.h"
#include "softhca/shim/memory/fork.h"
#include "softhca/shim/signals/handlers.h"
#include "softhca/shim/memory/marks.h"
#include "softhca/shim/memory/memory.h"
#include "softhca/shim/memory/own.h"
#include "real.h"
#include "sandbox.h"
#include "say.h"
#include "softhca/shim/memory/share.h"
#include "softhca/shim/signals/alternate.h"
#include "softhca/shim/signals/signals.h"
#include "stack.h"
#include "softhca/shim/memory/still.h"
#include "softhca/shim/signals/timers.h"
#include "softhca/shim/doorbells/trap.h"

struct shim shim;
struct sh_dev shim_dev;
uint32_t shim_unusual;
bool shim_ready;

static pthread_mutex_t control_lock = PTHREAD_MUTEX_INITIALIZER;
static TLS bool mine; /* this thread holds control_lock, or is about to */
static struct {
	int pid;   /* the process that made the connection; 0: no connection */
	bool gone; /* nor a daemon */
	int fd, memfd;
	int lease; /* or -1 */
	struct sh_ident id, mem_id;
	struct sh_ident root; /* of the directories in which the connection was made */
	uint32_t number;      /* how many there have been */
} control = {.fd = -1, .memfd = -1, .lease = -1};

/*
 * Not 0 in the address space in which the connection was made: the kernel clears it in a child that
 * has a copy of that. NULL: it cannot be told.
 */
static uint32_t *here;

/* All of shim_dev stands, for threads that have no lock. */
static bool described;

/* A mapping holds the lease, so that the program's close() and closefrom() do not give it back. */
static void take_lease(void)
{
	char path[PATH_MAX];
	struct statfs fs;
	int fd, err;

	snprintf(path, sizeof(path), "%.*s/lease", PATH_MAX - 64, shim.dir);
	fd = sh_open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return;
	if (sh_sys(syscall(SYS_flock, fd, LOCK_SH | LOCK_NB)) == 0) {
		sh_mmap(NULL, SHIM_PAGE, PROT_NONE, MAP_SHARED, fd, 0, &err);
		/* There a mapping is of the file below, and the lock goes with the descriptor. */
		if (sh_sys(syscall(SYS_fstatfs, fd, &fs)) == 0 &&
		    fs.f_type == OVERLAYFS_SUPER_MAGIC) {
			control.lease = sh_fd_high(fd);
			return;
		}
	}
	sh_close(fd);
}

static void begin_child(void)
{
	/* Before anything in the child uses the pages that this puts in place. */
	shim_fork_child();
	/* Another thread of the parent may have held any of these locks. */
	control_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	mine = false;
	sh_descriptors_here();
	sh_memory_forked();
	shim_context_forked();
	marks_forked();
	shim_signals_forked();
	shim_trap_forked();
	still_forked();
	stack_forked();
	own_forked();
	timers_forked();
	sh_process_leads();
	if (!shim_dev.inst)
		return;
	/* The socket is the parent's. The child's copy must not keep it open. */
	if (control.pid && sh_ident_holds(control.fd, &control.id))
		sh_close(control.fd);
	control.pid = 0;
	control.fd = -1;
	sh_process_forked();
	shim_share_forked();
	__atomic_store_n(&shim_unusual, SHIM_STALE + alternate_forked(), __ATOMIC_RELEASE);
}

void shim_forked(void)
{
	begin_child();
	/* A handler that came before would find locks whose holders do not exist in the child. */
	shim_fork_unblock();
}

bool shim_host_exists(unsigned int host)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%.*s/host%u", PATH_MAX - 64, shim.dir, host);
	return sh_sys(syscall(SYS_faccessat, AT_FDCWD, path, F_OK)) == 0;
}

/*
 * The number in SOFTHCA_HOST, or 0 if it is not set. SH_MAX_HCAS: the text cannot be the number of
 * a host.
 */
static unsigned int host_by_variable(const char *text)
{
	unsigned long host;
	char *end;

	if (!text || !*text)
		return 0;
	errno = 0;
	host = strtoul(text, &end, 10);
	return errno || *end || *text < '0' || *text > '9' || host > SH_MAX_HCAS
		       ? SH_MAX_HCAS
		       : (unsigned int)host;
}

/* Which of several hosts this image of a process is on. */
static unsigned int choose_host(const char *variable)
{
	int nearest, host = sh_run_host(shim.dir, getenv("SOFTHCA_RUN"), &nearest);

	if (host < 0 && (!variable || !*variable))
		host = nearest;
	return host >= 0 ? (unsigned int)host : host_by_variable(variable);
}

static void complain_host(const char *variable)
{
	unsigned int hosts = 0;

	while (hosts < SH_MAX_HCAS && shim_host_exists(hosts))
		hosts++;
	/* An instance without any host has ended. */
	if (!hosts && sh_sys(syscall(SYS_faccessat, AT_FDCWD, shim.dir, X_OK)) == -EACCES)
		shim_say_later("there is no device: the instance %.200s belongs to another user; "
			       "run this program as that user, or in an instance of your own",
			       shim.dir);
	else if (!hosts)
		shim_say_later("there is no device: the instance %.200s has ended or never "
			       "existed; softhca show lists those that "
			       "run",
			       shim.dir);
	if (!hosts || !variable)
		return;
	shim_say_later("there is no device: SOFTHCA_HOST is \"%.32s\", and the instance has %u "
		       "host%s, counted from 0: set it to "
		       "one of them, or unset it",
		       variable, hosts, hosts == 1 ? "" : "s");
}

/* If the daemon has written one: the host is not the machine then. */
static void read_name(void)
{
	char path[PATH_MAX];
	long fd, n;

	snprintf(path, sizeof(path), "%.*s/etc/hostname", PATH_MAX - 64, shim.root);
	fd = sh_sys(syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC));
	if (fd < 0)
		return;
	n = sh_sys(syscall(SYS_read, (int)fd, shim.name, sizeof(shim.name) - 1));
	(void)sh_sys(syscall(SYS_close, (int)fd));
	shim.name[n > 0 ? n : 0] = '\0';
	shim.name[strcspn(shim.name, "\n")] = '\0';
}

static void init_once(void)
{
	const char *instance = getenv("SOFTHCA_INSTANCE");
	const char *host = getenv("SOFTHCA_HOST");
	struct stat st;
	char resolved[PATH_MAX];
	int len;

	if (!instance || !*instance)
		return;
	if (sh_instance_dir(shim.dir, instance)) {
		shim_say_later("there is no device: SOFTHCA_INSTANCE is \"%.200s\", and no such "
			       "instance runs; softhca show lists "
			       "those that run, and softhca run sets the variable",
			       instance);
		return;
	}
	/* The path in the form in which the kernel names mapped and opened files. */
	if (realpath(shim.dir, resolved) && strlen(resolved) < PATH_MAX - 64)
		strcpy(shim.dir, resolved);
	shim.several = shim_host_exists(1);
	shim.host = shim.several ? choose_host(host) : host_by_variable(host);
	len = snprintf(shim.root, sizeof(shim.root), "%.*s/host%u", PATH_MAX - 64, shim.dir,
		       shim.host);
	shim.root_len = (size_t)len;
	if (sh_stat(shim.root, &st) < 0) {
		complain_host(host);
		return;
	}
	read_name();
	shim.files_dev = st.st_dev;
	take_lease();
	if (sh_sys(syscall(SYS_faccessat, AT_FDCWD, "/proc/sys/kernel/yama", F_OK)) == 0)
		prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	sh_process_prepare();
	shim_signals_init();
	still_init();
	own_init();
	pthread_atfork(shim_fork_prepare, shim_fork_parent, shim_forked);
	sh_descriptors_here();
	shim.active = true;
}

void shim_init(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	static TLS bool inside;

	/*
	 * The initialization itself calls functions of this library. Sanitizers in a program call
	 * some of them before libc has its environment, which is too early to tell.
	 */
	if (inside || !environ)
		return;
	inside = true;
	pthread_once(&once, init_once);
	inside = false;
	__atomic_store_n(&shim_ready, true, __ATOMIC_RELEASE);
}

static __attribute__((constructor)) void loaded(void)
{
	shim_init();
	if (shim.active)
		real_find();
}

/* ---- the connection; control_lock is held ---- */

bool shim_borrowed(void)
{
	const int pid = control.pid;

	return pid && pid != getpid() && here && __atomic_load_n(here, __ATOMIC_RELAXED) &&
	       sh_sys(syscall(SYS_kill, pid, 0)) != -ESRCH;
}

static void mark_here(void)
{
	int err;

	if (!here) {
		here = sh_mmap(NULL, SHIM_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			       -1, 0, &err);
		if (here && sh_madvise((uintptr_t)here, SHIM_PAGE, MADV_WIPEONFORK)) {
			sh_munmap(here, SHIM_PAGE);
			here = NULL;
		}
	}
	if (here)
		__atomic_store_n(here, 1, __ATOMIC_RELAXED);
}

/*
 * Asked once for each request. A child that was made by clone(), or by the system call fork itself,
 * is another process although no handler of fork() has run in it. Over its parent's connection the
 * daemon would take its commands for its parent's, and would answer into its parent's memory. Only
 * for a child that uses that memory is this right. Where the program has closed the descriptor, the
 * number is another file's or nobody's: what goes there would be the program's data.
 */
static bool connected(void)
{
	return (control.pid == getpid() || shim_borrowed()) &&
	       sh_ident_holds(control.fd, &control.id);
}

static void drop_connection(void)
{
	if (shim_borrowed())
		return;
	if (connected())
		sh_close(control.fd);
	control.fd = -1;
	control.pid = 0;
}

/*
 * Is the page size supported? The daemon complains first where there is one, but a client may be in
 * a machine of another kind.
 */
static bool usable_here(void)
{
	static bool said;
	char text[256], line[300];
	int len;

	if (sh_page_size_known(sysconf(_SC_PAGESIZE), text, sizeof(text)))
		return true;
	len = snprintf(line, sizeof(line), "softhca: %s\n", text);
	if (!said)
		sh_write(STDERR_FILENO, line, (size_t)len);
	said = true;
	return false;
}

/* A process maps device memory once in the life of its address space. */
static int attach(const struct sh_hello_reply *hello, int memfd)
{
	const char *mmio = getenv("SOFTHCA_MMIO");
	struct sh_dev dev = {.proc = hello->proc};
	struct sh_instance *inst;
	struct sh_ident id;
	off_t size;
	int err;

	/*
	 * Another instance may have the name by now. Its contexts and handles have the same
	 * numbers, and belong to other processes.
	 */
	if (shim_dev.inst && (!sh_ident_take(memfd, &id) || !shim_memory_is(id.dev, id.ino)))
		return -ECONNREFUSED;
	if (!shim_dev.inst) {
		/* The size is the file's: other processes write to the header. */
		size = sh_sys(syscall(SYS_lseek, memfd, 0L, SEEK_END));
		if (size < 0 || (uint64_t)size != hello->size)
			return size < 0 ? (int)size : -EPROTO;
		inst = sh_memory_map(memfd, hello->size, SH_CTX_OFF, &err);
		if (!inst)
			return err;
		err = sh_dev_attach(&dev, inst, hello->size);
		if (err) {
			sh_memory_drop(inst);
			return err;
		}
		err = sh_memory_begin(&dev, memfd);
		if (err)
			return err;
		sh_loopback_begin(&dev);
		shim_dev = dev;
	}
	shim_dev.proc = hello->proc;
	__atomic_store_n(&sh_proc(&shim_dev, shim_dev.proc)->base, (uintptr_t)shim_dev.inst,
			 __ATOMIC_RELEASE);
	/* Made for the hello. */
	shim_dev.witness = sh_witness(&err);
	if (mmio && *mmio && strcmp(mmio, "kick") && strcmp(mmio, "trap")) {
		shim_say("SOFTHCA_MMIO is \"%.32s\", which is neither kick nor trap: using what "
			 "the instance was started with",
			 mmio);
		mmio = NULL;
	}
#ifndef HAVE_TRAP
	if (mmio && !strcmp(mmio, "trap")) {
		shim_say("SOFTHCA_MMIO is \"trap\", which works on x86-64 only: using kick");
		mmio = "kick";
	}
#endif
	shim.trap = mmio && *mmio ? !strcmp(mmio, "trap") : shim_dev.inst->trap;
	err = sh_process_init(&shim_dev, shim.dir);
	if (!err)
		__atomic_store_n(&described, true, __ATOMIC_RELEASE);
	return err;
}

static struct sh_ident root(void)
{
	struct stat st = {0};

	(void)sh_stat("/", &st);
	return (struct sh_ident){st.st_dev, st.st_ino};
}

static int connect_now(void)
{
	uint32_t again = shim_dev.inst && !shim_stale() ? shim_dev.proc + 1 : 0;
	struct sh_hello_reply hello;
	int fd, memfd = -1, err;

	if (!usable_here())
		return -ENOTSUP;
	fd = sh_client_connect(shim.dir);
	if (fd < 0)
		return fd;
	err = sh_client_hello(fd, shim.host, again, &hello, &memfd);
	if (!err)
		err = attach(&hello, memfd);
	if (err)
		goto fail;
	if (control.memfd >= 0 && sh_ident_holds(control.memfd, &control.mem_id)) {
		sh_close(memfd);
	} else {
		control.memfd = memfd;
		sh_ident_take(control.memfd, &control.mem_id);
	}
	control.fd = fd;
	sh_ident_take(control.fd, &control.id);
	control.pid = getpid();
	mark_here();
	control.root = root();
	/* 0 means none. */
	__atomic_store_n(&control.number, control.number + 1 ?: 1, __ATOMIC_RELAXED);
	__atomic_fetch_and(&shim_unusual, ~SHIM_STALE, __ATOMIC_RELEASE);
	return 0;
fail:
	if (memfd >= 0)
		sh_close(memfd);
	sh_close(fd);
	return err;
}

/*
 * Does this error mean that there is no daemon? Others are limits of this process, or of what it
 * may do by now. Below another root the instance's directory is not to be found, though it may
 * exist.
 */
static bool says_gone(int err)
{
	struct sh_ident now = root();

	if (err == -ENOENT)
		return now.ino == control.root.ino && now.dev == control.root.dev;
	return err == -ECONNREFUSED || err == -ECONNRESET || err == -EPIPE;
}

/* Makes the connection anew if the program has closed it. */
static int reconnect(void)
{
	int err;

	if (connected())
		return 0;
	/* The parent would be left with a descriptor that is its child's. */
	if (shim_borrowed())
		return -EBUSY;
	control.pid = 0;
	err = connect_now();
	control.gone = says_gone(err);
	return err;
}

/*
 * Announces what this thread is about to sleep for on account of the connection, and with
 * SH_WAITS_NOT that it has woken up. A process without a connection of its own, such as a forked
 * child, announces nothing: it would speak for its parent.
 */
static void announce(enum sh_waits what, uint64_t a, uint64_t b)
{
	int saved = errno;

	/* Another thread may attach this process at this moment: pairs with attach(). */
	if (!__atomic_load_n(&described, __ATOMIC_ACQUIRE) || shim_stale())
		return;
	if (what == SH_WAITS_NOT)
		sh_wait_end(&shim_dev);
	else
		sh_wait_begin(&shim_dev, what, a, b);
	errno = saved;
}

bool shim_control_mine(void)
{
	return mine;
}

void shim_control_hold(void)
{
	/*
	 * Set before the lock is taken, and cleared after it is released: a signal handler may run
	 * at any moment.
	 */
	mine = true;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (!pthread_mutex_trylock(&control_lock))
		return;
	announce(SH_WAITS_CONTROL, 0, 0);
	pthread_mutex_lock(&control_lock);
	announce(SH_WAITS_NOT, 0, 0);
}

int shim_control_get(void)
{
	int err;

	/* Not in shim_control_hold(): its other callers call it only after a request. */
	shim_handlers_begin();
	shim_control_hold();
	err = reconnect();
	if (err)
		shim_control_put();
	return err;
}

void shim_control_reach(void)
{
	shim_handlers_begin();
	shim_control_hold();
	shim_control_again();
}

void shim_control_again(void)
{
	/* A filter may end the program for socket(). */
	if (!connected() && !sandboxed())
		(void)reconnect();
}

bool shim_control_gone(void)
{
	return control.gone && !connected();
}

int shim_control_to_open(void)
{
	int err;

	/* What it opens would be noted as its parent's. */
	if (shim_borrowed())
		return -EBUSY;
	err = shim_control_get();
	if (err)
		shim_say_unreachable(err);
	switch (err) {
	case -ENOENT:
	case -ESRCH:
	case -ECONNREFUSED:
	case -ECONNRESET:
	case -EPIPE:
		return -ENXIO;
	}
	return err;
}

uint32_t shim_control_number(void)
{
	return __atomic_load_n(&control.number, __ATOMIC_RELAXED);
}

void shim_control_put(void)
{
	pthread_mutex_unlock(&control_lock);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	mine = false;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	shim_signals_release();
}

/* Moves one of the connection's descriptors from that number. */
static bool move(int *fd, int from)
{
	int twin = *fd == from ? sh_fd_twin(from) : -1;

	if (twin < 0)
		return false;
	*fd = twin;
	sh_close(from);
	return true;
}

bool shim_control_move(int fd)
{
	bool moved;

	/* In a handler, which has interrupted a use. */
	if (mine)
		return false;
	shim_control_hold();
	/* A handler that jumped away from the cache of events would leave its lock held. */
	moved = move(&control.fd, fd) || move(&control.memfd, fd) || move(&control.lease, fd) ||
		sh_event_move(fd);
	shim_control_put();
	return moved;
}

/* The number of a command, from its header. 0: the shim could not read it. */
static uint32_t uverbs_command(const void *req, size_t len)
{
	const struct sh_command *cmd = req;
	uint32_t number;

	if (cmd->here < sizeof(number))
		return 0;
	memcpy(&number, (const char *)req + len - cmd->here, sizeof(number));
	return number;
}

int shim_request(const void *req, size_t len, void *reply, size_t rlen, int *fds,
		 unsigned int *nfds)
{
	/* A caller that must not connect now may have no connection. */
	if (!connected())
		return -EIO;
	return shim_request_now(req, len, reply, rlen, fds, nfds);
}

int shim_request_now(const void *req, size_t len, void *reply, size_t rlen, int *fds,
		     unsigned int *nfds)
{
	uint32_t type = *(const uint32_t *)req;
	int err;

	announce(SH_WAITS_REQUEST, type, type == SH_MSG_COMMAND ? uverbs_command(req, len) : 0);
	err = sh_client_request(control.fd, req, len, reply, rlen, fds, nfds);
	if (!err && (type == SH_MSG_COMMAND || type == SH_MSG_CM_COMMAND)) {
		int32_t error;

		/* The first word of both replies: the daemon may not look at a descriptor. */
		memcpy(&error, reply, sizeof(error));
		if (error < 0)
			err = sh_client_give(control.fd, -1 - error);
		if (error < 0 && !err)
			err = sh_client_request(control.fd, req, len, reply, rlen, fds, nfds);
	}
	announce(SH_WAITS_NOT, 0, 0);
	/*
	 * The daemon is gone, as a device is that was pulled out. EMFILE is a limit of this
	 * process, and the connection is good.
	 */
	if (err && err != -EMFILE) {
		drop_connection();
		control.gone = err == -ECONNRESET;
	}
	return err == -ECONNRESET ? -EIO : err;
}

int shim_memory_fd(void)
{
	return sh_ident_holds(control.memfd, &control.mem_id) ? control.memfd : -1;
}

bool shim_memory_is(dev_t dev, ino_t ino)
{
	return ino && ino == control.mem_id.ino && dev == control.mem_id.dev;
}

bool shim_refresh(void)
{
	if (shim_control_get())
		return false;
	shim_control_put();
	return sh_process_helper() == 0;
}
