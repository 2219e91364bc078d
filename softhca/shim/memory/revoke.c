// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Revokes the keys of this process's regions when the daemon has been killed. Programs go on then,
 * and their devices write to registered memory as before. So what the daemon would do before pages
 * are exchanged this process does by itself. It finds the keys in device memory, whose tables it
 * has mapped. It reads them only where the file has pages, since a look elsewhere would allocate
 * some: they take a descriptor of the file.
 *
 * A daemon that lives, but whose connection was lost in a way that looks like its end, is not
 * disturbed: it does not give pages out again that a process has not given back.
 */
#include <errno.h>
#include <time.h>
#include <unistd.h>

#include "softhca/device/memory/exec.h"
#include "softhca/device/memory/life.h"
#include "softhca/device/memory/revoke.h"
#include "softhca/host/process.h"
#include "softhca/host/sys.h"
#include "softhca/shim/attach.h"
#include "ranges.h"
#include "revoke.h"

#define PATIENCE_NS UINT64_C(2000000000)
/* Until the next look; each nap is twice the one before. */
#define FIRST_NAP_NS   50000
#define LAST_NAP_NS    10000000
#define SUSPECT_NAP_NS 1500000 /* after such a nap a thread may be stopped */

/*
 * The moment of the last revocation that may not be over. The daemon may have been killed in the
 * middle of one, so the first call waits in any case.
 */
static struct {
	uint64_t moment; /* 0: there is none */
	bool begun;
	bool late; /* it has been waited for long enough */
} revoked;

/* ---- the keys ---- */

/* The next part of [*at, end) that has pages. Returns its length, 0: there is none, or -errno. */
static long next_part(int fd, uint64_t *at, uint64_t end)
{
	long from = sh_sys(syscall(SYS_lseek, fd, *at, SEEK_DATA)), to;

	if (from == -ENXIO || (from >= 0 && (uint64_t)from >= end))
		return 0;
	if (from < 0)
		return from;
	to = sh_sys(syscall(SYS_lseek, fd, from, SEEK_HOLE));
	if (to < 0)
		return to;
	if ((uint64_t)to > end)
		to = (long)end;
	*at = (uint64_t)from;
	return to - from;
}

static int take_off_in(int fd, uint32_t hca, const struct range *r, bool *found)
{
	uint64_t len, at = sh_keys(hca, &len), end = at + len;
	long part;

	for (; at < end && (part = next_part(fd, &at, end)); at += (uint64_t)part) {
		if (part < 0)
			return (int)part;
		*found |= sh_keys_unshare(&shim_dev, hca, at, (uint64_t)part, r->shm,
					  r->shm + r->len);
	}
	return 0;
}

static int take_off(const struct ranges *regions, uint64_t addr, uint64_t len, bool *found)
{
	int fd = shim_memory_fd(), err = 0;

	/* The daemon of an instance that was stopped has ended all keys with their contexts. */
	if (fd < 0)
		return sh_any_ctx_live(&shim_dev) ? -ENOTCONN : 0;
	for (size_t i = ranges_find(regions, addr);
	     i < regions->count && regions->at[i].uaddr < addr + len; i++)
		for (uint32_t hca = 0; !err && hca < shim_dev.hcas; hca++)
			err = take_off_in(fd, hca, &regions->at[i], found);
	return err ? -ENOTCONN : 0;
}

/* ---- the threads that may have looked them up ---- */

static bool over(void)
{
	/* It may take mutexes of threads that have died. */
	struct sh_door *door = sh_pin();
	bool is = sh_grace_over(&shim_dev, 0, revoked.moment);

	sh_unpin(door);
	return is;
}

static int await_grace(void)
{
	struct timespec nap = {.tv_nsec = FIRST_NAP_NS};
	uint64_t until = sh_now() + PATIENCE_NS;

	while (!over()) {
		if (revoked.late || sh_now() > until) {
			revoked.late = true;
			return -EBUSY;
		}
		syscall(SYS_nanosleep, &nap, NULL);
		if (nap.tv_nsec >= SUSPECT_NAP_NS)
			sh_grace_suspect(&shim_dev, revoked.moment);
		if (nap.tv_nsec < LAST_NAP_NS)
			nap.tv_nsec *= 2;
	}
	revoked.moment = 0;
	revoked.late = false;
	return 0;
}

int revoke_here(const struct ranges *regions, uint64_t addr, uint64_t len)
{
	bool found = false;
	int err;

	/* A handler of a signal that cannot wait: the thread itself may have looked keys up. */
	if (sh_inside())
		return -EBUSY;
	err = take_off(regions, addr, len, &found);
	if (found || !revoked.begun) {
		revoked.moment = sh_grace_begin(&shim_dev);
		revoked.begun = true;
		revoked.late = false;
	}
	return err ? err : revoked.moment ? await_grace() : 0;
}
