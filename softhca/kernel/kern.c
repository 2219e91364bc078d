// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The kernel without its sockets: the instance directory, device memory, number spaces. It is made
 * and taken down as a whole.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "softhca/host/client.h"
#include "softhca/host/memory.h"
#include "softhca/host/process.h"
#include "softhca/device/memory/exec.h"
#include "softhca/wire/loopback.h"
#include "aside.h"
#include "counters.h"
#include "fs.h"
#include "identity.h"
#include "kern.h"
#include "ports.h"
#include "process.h"
#include "room.h"
#include "sysfs.h"

#define TAKE_OVER_MS 10000 /* how long another process may need to remove a dead instance */

/* What the user can do about it. */
static const char *advice(int err)
{
	switch (err) {
	case -ENOSPC:
	case -EDQUOT:
		return "; free some room there, or set SOFTHCA_DIR to a directory of yours that "
		       "has some";
	case -EACCES:
	case -EPERM:
	case -EROFS:
		return "; set SOFTHCA_DIR to a directory of yours that you can write to";
	case -EFBIG:
		return "; device memory counts as a file: raise the limit of file sizes where you "
		       "start "
		       "the instance (ulimit -f unlimited)";
	case -ENOMEM:
		return "; raise the limit of addresses (ulimit -v unlimited) or the memory limit "
		       "of the container, or use "
		       "fewer HCAs";
	case -EMFILE:
		return "; raise the limit of open files (ulimit -n 1024)";
	}
	return "";
}

static int make_directory(struct kernel *k, char *text, size_t text_len)
{
	char base[PATH_MAX];
	int err;

	snprintf(base, sizeof(base), "%.*s", (int)(strrchr(k->dir, '/') - k->dir), k->dir);
	err = sh_instdir_make(&k->at, base);
	if (err < 0)
		snprintf(text, text_len, "cannot make a directory there: %s%s", strerror(-err),
			 advice(err));
	k->dir_fd = k->at.dir_fd;
	return err;
}

/*
 * A daemon that lives accepts connections, even if it is stopped. Any other holder of the lock is a
 * process that removes a dead instance.
 */
static bool answers(const char *dir)
{
	int fd = sh_client_connect(dir);

	if (fd >= 0)
		close(fd);
	return fd != -ENOENT && fd != -ECONNREFUSED;
}

/* The name is taken. Returns 0 if it is free now. */
static int take_over(struct kernel *k, const char *name, char *text, size_t text_len)
{
	static const struct timespec tick = {.tv_nsec = 5000000};
	struct sh_left left = {.why = ""};
	int err, waited = 0;

	while ((err = sh_instance_remove(k->dir, &left)) == -EBUSY && !answers(k->dir) &&
	       waited < TAKE_OVER_MS) {
		nanosleep(&tick, NULL);
		waited += 5;
	}
	if (err == -EBUSY)
		snprintf(text, text_len,
			 "an instance \"%s\" runs already: choose another name, or end "
			 "it with softhca stop %s",
			 name, name);
	else if (err == -ETXTBSY)
		snprintf(text, text_len,
			 "the daemon of an earlier instance \"%s\" has ended, but "
			 "programs that use it have not: end them (fuser -v %.200s/lease lists "
			 "them), "
			 "or choose another name",
			 name, k->dir);
	else if (err == -ENODATA || err == -EPERM)
		snprintf(text, text_len,
			 "something with that name exists which softhca did not make: "
			 "move it away, or choose another name");
	else if (err && left.path[0])
		snprintf(text, text_len,
			 "an earlier instance cannot be removed because of %.200s in it: "
			 "%s; move it away, or choose another name",
			 left.path, left.why);
	else if (err)
		snprintf(text, text_len,
			 "the remains of an earlier instance cannot be removed: %s%s",
			 strerror(-err), advice(err));
	return err == -EBUSY ? -EEXIST : err;
}

int kern_publish(struct kernel *k, char *text, size_t text_len)
{
	const char *name = strrchr(k->dir, '/') + 1;
	int err;

	while ((err = sh_instdir_publish(&k->at, name)) == -EEXIST || err == -ENOTEMPTY) {
		err = take_over(k, name, text, text_len);
		if (err)
			return err;
	}
	if (err)
		snprintf(text, text_len, "cannot give the new directory its name: %s%s",
			 strerror(-err), advice(err));
	return err;
}

static int fill_directory(struct kernel *k)
{
	int err = 0;

	for (uint32_t i = 0; rooms[i]; i++)
		for (uint32_t j = 0; j < ROOM_DIRS && rooms[i]->dirs[j].name; j++)
			if (mkdirat(k->dir_fd, rooms[i]->dirs[j].name, 0700) < 0)
				return -errno;
	k->lease_fd = openat(k->dir_fd, "lease", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (k->lease_fd < 0 || ftruncate(k->lease_fd, K_PAGE) < 0)
		return -errno;
	err = file_write(k->dir_fd, "pid", "%d\n", getpid());
	if (err == 0)
		err = identity_make(k);
	return err < 0 ? err : sysfs_make(k);
}

static int make_memory(struct kernel *k)
{
	void *base;
	int err;

	k->mem_size = sh_instance_size(&k->cfg.device);
	k->memfd = memfd_create("softhca", MFD_CLOEXEC);
	if (k->memfd < 0 || ftruncate(k->memfd, k->mem_size) < 0)
		return -errno;
	base = sh_memory_map(k->memfd, k->mem_size, sh_instance_tables(&k->cfg.device), &err);
	if (!base)
		return err;
	k->cfg.device.fault_seed = (uint32_t)sh_now();
	err = sh_instance_init(base, k->memfd, &k->cfg.device);
	if (!err)
		err = sh_dev_attach(&k->dev, base, k->mem_size);
	if (err < 0) {
		sh_memory_drop(base);
		return err;
	}
	err = sh_memory_begin(&k->dev, k->memfd);
	if (err < 0) {
		k->dev.inst = NULL;
		return err;
	}
	sh_loopback_begin(&k->dev);
	k->fault_seed = k->dev.inst->faults.rule[0].seed;
	sh_proc(&k->dev, 0)->pid = getpid();
	*sh_ctx(&k->dev, 0) =
		(struct sh_ctx){.state = SH_CTX_LIVE, .pid = getpid(), .generation = 1};
	err = pool_init(&k->pool, k->memfd, k->dev.pool_off, k->dev.shared_off - k->dev.pool_off,
			true);
	if (!err)
		err = pool_init(&k->shared, k->memfd, k->dev.shared_off,
				k->dev.size - k->dev.shared_off, false);
	if (err < 0)
		return err;
	return sh_process_init(&k->dev, k->dir);
}

static int make_tables(struct kernel *k)
{
	uint32_t per_host = k->cfg.device.hcas_per_host, hcas = k->cfg.device.hosts * per_host, i;
	int err;

	k->hcas = calloc(hcas, sizeof(*k->hcas));
	if (!k->hcas)
		return -ENOMEM;
	for (i = 0; i < hcas; i++) {
		k->hcas[i].host = i / per_host;
		k->hcas[i].unit = i % per_host;
	}
	err = counters_init(k);
	for (i = 0; !err && rooms[i]; i++)
		if (rooms[i]->init)
			err = rooms[i]->init(k);
	return err;
}

static bool config_ok(const struct sh_config *c)
{
	return c->hosts && c->hcas_per_host && c->hosts <= SH_MAX_HCAS &&
	       c->hcas_per_host <= SH_MAX_HCAS && c->hosts * c->hcas_per_host <= SH_MAX_HCAS &&
	       c->ports >= 1 && c->ports <= SH_MAX_PORTS &&
	       (c->cqe_size == 32 || (c->cqe_size == 64 && c->driver_abi == 4)) &&
	       c->driver_abi >= 2 && c->driver_abi <= 4 &&
	       (c->face == SH_FACE_OFED || c->face == SH_FACE_MAINLINE);
}

int kern_init(struct kernel *k, const struct sh_kernel_config *cfg, char *text, size_t text_len)
{
	int err;

	memset(k, 0, sizeof(*k));
	k->cfg = *cfg;
	k->at = (struct sh_instdir)SH_INSTDIR_NONE;
	k->dir_fd = k->lease_fd = k->memfd = k->epoll = -1;
	k->user = &user_real;
	k->wanted = -1;
	if (!sh_page_size_known(sysconf(_SC_PAGESIZE), text, text_len))
		return -ENOTSUP;
	if (!config_ok(&cfg->device)) {
		snprintf(text, text_len,
			 "no instance can be so: use at most %d HCAs of 1 or %d ports, and driver "
			 "ABI 2 to 4; "
			 "64-byte CQEs need driver ABI 4",
			 SH_MAX_HCAS, SH_MAX_PORTS);
		return -EINVAL;
	}
	if (access("/proc/self/fd", X_OK) < 0) {
		snprintf(text, text_len,
			 "there is no /proc, through which the device reaches the memory and the "
			 "files of "
			 "programs: mount it (mount -t proc proc /proc)");
		return -ENOENT;
	}
	if (snprintf(k->dir, sizeof(k->dir), "%s", cfg->dir) >= (int)sizeof(k->dir) - 64) {
		snprintf(text, text_len,
			 "the path of the instance directory is too long: set SOFTHCA_DIR to a "
			 "shorter one");
		return -ENAMETOOLONG;
	}
	err = make_directory(k, text, text_len);
	if (err < 0)
		return err;
	err = make_memory(k);
	if (err == 0)
		err = make_tables(k);
	if (err == 0)
		err = fill_directory(k);
	if (err < 0) {
		snprintf(text, text_len,
			 "cannot make the device memory and the files of the instance: %s%s",
			 strerror(-err), advice(err));
		kern_exit(k);
	}
	return err;
}

bool kern_ends(const struct kernel *k)
{
	return k->stop;
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

/*
 * Once the clients have closed what they have open of FIFOs, threads that read from them find the
 * end. Pairs with pipe_get(), which opens none from then on, and with the helper thread.
 */
static void tell_end(struct kernel *k, uint32_t slot)
{
	struct sh_proc *p = sh_proc(&k->dev, slot);

	__atomic_store_n(&p->ended, 1, __ATOMIC_RELEASE);
	__atomic_add_fetch(&p->attention, 1, __ATOMIC_SEQ_CST);
	sh_host_wake(NULL, slot);
}

/*
 * Clients may still run. Their memory is not touched any more: what they wrote to it stays theirs.
 */
void kern_exit(struct kernel *k)
{
	uint64_t lived[SH_MAX_PROC / 64] = {0};
	uint32_t i;

	k->stop = true;
	pool_keep(&k->pool);
	pool_keep(&k->shared);
	if (k->dev.inst)
		ROOMS(end, k);
	for (i = 1; k->dev.inst && i < SH_MAX_PROC; i++)
		if (k->proc[i]) {
			lived[i / 64] |= UINT64_C(1) << (i % 64);
			proc_dead(k, k->proc[i]);
		}
	for (i = 1; i < SH_MAX_PROC; i++)
		if (lived[i / 64] & UINT64_C(1) << (i % 64))
			tell_end(k, i);
	aside_end(k);
	if (k->dev.ops)
		sh_process_stop();
	sh_process_forget_calls();
	ROOMS(exit, k);
	counters_exit(k);
	free(k->hcas);
	pool_exit(&k->pool);
	pool_exit(&k->shared);
	if (k->dev.inst) {
		sh_exec_release();
		sh_memory_end(&k->dev);
	}
	close_fd(k->memfd);
	close_fd(k->lease_fd);
	(void)sh_instdir_end(&k->at, NULL);
	memset(k, 0, sizeof(*k));
	k->at = (struct sh_instdir)SH_INSTDIR_NONE;
	k->dir_fd = k->lease_fd = k->memfd = k->epoll = -1;
}
