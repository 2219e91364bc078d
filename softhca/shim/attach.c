// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * This process as part of an instance: environment, lease, control connection, fork. Owns struct shim, shim_dev and
 * the connection, which control_lock protects; a connection belongs to one process, and a forked child makes its own.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>

#include "softhca/host/client.h"
#include "softhca/host/paths.h"
#include "softhca/host/process.h"
#include "shim.h"

struct shim shim;
struct sh_dev shim_dev;
uint32_t shim_stale;
bool shim_ready;

static pthread_mutex_t control_lock = PTHREAD_MUTEX_INITIALIZER;
static TLS bool mine;		/* this thread has it */
static struct {
	int pid;			/* whose connection it is; 0 = none */
	int fd, memfd;
	struct sh_ident id, mem_id;
} control = {.fd = -1, .memfd = -1};

/* Held by a mapping, so that neither close() nor closefrom() of the program gives it back. */
static void take_lease(void)
{
	char path[PATH_MAX];
	int fd, err;

	snprintf(path, sizeof(path), "%.*s/lease", PATH_MAX - 64, shim.dir);
	fd = sh_open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return;
	if (sh_sys(syscall(SYS_flock, fd, LOCK_SH | LOCK_NB)) == 0)
		sh_mmap(NULL, SHIM_PAGE, PROT_NONE, MAP_SHARED, fd, 0, &err);
	sh_close(fd);
}

static void forked_child(void)
{
	/* Another thread of the parent may have held any of them. */
	control_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	mine = false;
	shim_context_forked();
	shim_dontfork_forked();
	shim_signals_forked();
	if (!shim_dev.inst)
		return;
	/* The parent's socket: our end of it must not keep it open. */
	if (control.pid && sh_ident_holds(control.fd, &control.id))
		sh_close(control.fd);
	control.pid = 0;
	control.fd = -1;
	sh_process_forked();
	shim_memory_forked();
	shim_share_child();
	__atomic_store_n(&shim_stale, 1, __ATOMIC_RELEASE);
}

static void init_once(void)
{
	const char *instance = getenv("SOFTHCA_INSTANCE");
	const char *host = getenv("SOFTHCA_HOST");
	struct stat st;
	int len;

	if (!instance || !*instance || sh_instance_dir(shim.dir, instance))
		return;
	shim.host = host ? (unsigned int)strtoul(host, NULL, 10) : 0;
	len = snprintf(shim.root, sizeof(shim.root), "%.*s/host%u", PATH_MAX - 64, shim.dir, shim.host);
	shim.root_len = (size_t)len;
	if (sh_stat(shim.root, &st) < 0)
		return;
	shim.files_dev = st.st_dev;
	take_lease();
	if (sh_sys(syscall(SYS_access, "/proc/sys/kernel/yama", F_OK)) == 0)
		prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	shim_signals_init();
	pthread_atfork(shim_share_prepare, shim_share_parent, forked_child);
	shim.active = true;
}

void shim_init(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	static TLS bool inside;

	/*
	 * The initialization itself calls functions of this library. And sanitizers in a program call some before libc has
	 * its environment: that is too early to tell.
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
}

/* ---- the connection; control_lock is held ---- */

static void drop_connection(void)
{
	if (control.pid == getpid() && sh_ident_holds(control.fd, &control.id))
		sh_close(control.fd);
	control.fd = -1;
	control.pid = 0;
}

/* Device memory is mapped once in the life of an address space. */
static int attach(const struct sh_hello_reply *hello, int memfd)
{
	const char *mmio = getenv("SOFTHCA_MMIO");
	struct sh_instance *inst = shim_dev.inst;

	if (!inst) {
		inst = sh_client_map(memfd, hello->size);
		if (!inst)
			return -errno;
		if (inst->magic != SH_MAGIC || inst->size != hello->size) {
			sh_munmap(inst, hello->size);
			return -EPROTO;
		}
	}
	shim_dev.inst = inst;
	shim_dev.proc = hello->proc;
	shim.trap = mmio && *mmio ? !strcmp(mmio, "trap") : inst->trap;
	return sh_process_init(&shim_dev, shim.dir);
}

static int connect_now(void)
{
	uint32_t again = shim_dev.inst && !shim_stale ? shim_dev.proc + 1 : 0;
	struct sh_hello_reply hello;
	int fd, memfd = -1, err;

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
		control.memfd = sh_fd_high(memfd);
		sh_ident_take(control.memfd, &control.mem_id);
	}
	control.fd = sh_fd_high(fd);
	sh_ident_take(control.fd, &control.id);
	control.pid = getpid();
	__atomic_store_n(&shim_stale, 0, __ATOMIC_RELEASE);
	return 0;
fail:
	if (memfd >= 0)
		sh_close(memfd);
	sh_close(fd);
	return err;
}

bool shim_control_mine(void)
{
	return mine;
}

int shim_control_get(void)
{
	int err = 0;

	/* Said before it is so, and until it is no more: a handler comes at any moment. */
	mine = true;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	pthread_mutex_lock(&control_lock);
	if (control.pid != getpid() || !sh_ident_holds(control.fd, &control.id)) {
		control.pid = 0;
		err = connect_now();
	}
	if (err)
		shim_control_put();
	return err;
}

void shim_control_put(void)
{
	pthread_mutex_unlock(&control_lock);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	mine = false;
}

int shim_request(const void *req, size_t len, void *reply, size_t rlen, int *fds, unsigned int *nfds)
{
	int err = sh_client_request(control.fd, req, len, reply, rlen, fds, nfds);

	/* The daemon is gone, as a device is that was pulled out. */
	if (err)
		drop_connection();
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
