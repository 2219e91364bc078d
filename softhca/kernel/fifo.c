// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * See fifo.h. A thread that slept in read() has taken a byte away. Whatever becomes of that thread,
 * the next change of the file, and each second's tick, make the FIFO as full as it must be.
 *
 * IN_CLOSE_NOWRITE says that the program's end may be closed. inotify also says it when another
 * process has looked into the FIFO, by O_PATH in kernels before 6.11, and does not say it when its
 * queue has overflowed. So fifo_unused() asks the FIFO itself whether it has a reader besides the
 * daemon. A process that writes to the FIFO meanwhile could get a SIGPIPE. Clients write to event
 * queues, so those have a lock of the program's open file (flock()) instead, which ends with its
 * last descriptor.
 *
 * Kernels report a close before they take the reader away. A process that has no processor at this
 * moment is a reader for longer, and inotify reports nothing a second time: the doubt has to last.
 * A look costs some system calls, and after an overflow all files are in doubt. So each request
 * looks only for the first SOON_NS, in which most closes end, and the tick does it for the rest of
 * the doubt.
 *
 * The program's end is open for reading only, though most programs open their file for writing,
 * too: with an end for both, a thread that sleeps in read() would sleep on when the daemon has
 * ended. So the FIFO's name says what the file was opened for, and the shim holds the program to
 * it.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "softhca/host/process.h"
#include "softhca/protocol.h"
#include "fifo.h"
#include "kern.h"
#include "lists.h"
#include "user.h"

#define DOUBT_NS   (60 * UINT64_C(1000000000))
#define SOON_NS	   UINT64_C(100000000)
#define SHARES	   4	/* of the descriptors: a process may open files for one */
#define MOST_BYTES 4096 /* a FIFO has room for it at least */

static void path_of(const struct fifo *f, char path[64])
{
	int n = snprintf(path, 64, "%s/%u.%u", f->dir, f->index, f->generation);

	if (f->mode != O_RDONLY)
		snprintf(path + n, 64 - (size_t)n, ".%u", f->mode);
}

/* How many files a process has opened. They may be other processes' by now. */
struct fifo_owner {
	pid_t pid;
	uint32_t files;
	UT_hash_handle hh;
};

static uint32_t share(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0 || files.rlim_cur / SHARES > UINT32_MAX)
		return UINT32_MAX;
	return (uint32_t)(files.rlim_cur / SHARES);
}

static int own(struct fifo *f, pid_t pid)
{
	struct fifo_owner *o;

	HASH_FIND(hh, f->k->fifo_owners, &pid, sizeof(pid), o);
	if (o && o->files >= share())
		return -EMFILE;
	if (!o) {
		o = calloc(1, sizeof(*o));
		if (!o)
			return -ENOMEM;
		o->pid = pid;
		HASH_ADD(hh, f->k->fifo_owners, pid, sizeof(o->pid), o);
		if (!o->hh.tbl) {
			free(o);
			return -ENOMEM;
		}
	}
	o->files++;
	f->owner = o;
	return 0;
}

static void disown(struct fifo *f)
{
	if (--f->owner->files)
		return;
	HASH_DELETE(hh, f->k->fifo_owners, f->owner);
	free(f->owner);
}

int fifo_open(struct fifo *f, struct kernel *k, const struct fifo_opening *o, int *fd)
{
	struct stat st;
	char path[64];
	int err;

	*f = (struct fifo){.k = k,
			   .dir = o->dir,
			   .index = o->index,
			   .generation = o->generation,
			   .mode = o->flags & O_ACCMODE};
	err = own(f, o->pid);
	if (err)
		return err;
	f->fd = -1;
	path_of(f, path);
	if (mkfifoat(k->dir_fd, path, 0600 | o->mark) < 0) {
		err = -errno;
		goto err_owner;
	}
	f->fd = openat(k->dir_fd, path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (f->fd < 0 || fstat(f->fd, &st) < 0)
		goto fail;
	f->dev = st.st_dev;
	f->ino = st.st_ino;
	*fd = openat(k->dir_fd, path, O_RDONLY | O_CLOEXEC | (int)(o->flags & SH_FIFO_FLAGS));
	if (*fd >= 0)
		return 0;
fail:
	/* To the program it is not its own limit. */
	err = errno == EMFILE ? -ENFILE : -errno;
	if (f->fd >= 0)
		close(f->fd);
	unlinkat(k->dir_fd, path, 0);
err_owner:
	disown(f);
	return err;
}

static void believe(struct fifo *f)
{
	if (f->doubted)
		f->k->doubted--;
	f->doubted = 0;
}

void fifo_close(struct fifo *f)
{
	char path[64];

	believe(f);
	path_of(f, path);
	unlinkat(f->k->dir_fd, path, 0);
	close(f->fd);
	disown(f);
}

bool fifo_name(const char *name, uint32_t *index, uint32_t *generation)
{
	return sscanf(name, "%u.%u", index, generation) == 2;
}

int fifo_of_fd(struct kernel *k, pid_t tid, int fd, dev_t *dev, ino_t *ino)
{
	struct stat st;
	int own, err;

	own = client_file(k, tid, fd);
	if (own < 0)
		return own == -ENOMEM ? own : -ENOENT;
	err = fstat(own, &st) < 0 ? -EINVAL : 0;
	close(own);
	if (err)
		return err;
	*dev = st.st_dev;
	*ino = st.st_ino;
	return 0;
}

/* Opens the daemon's end for reading again. Its number stays the same. */
static int make_whole(struct fifo *f)
{
	char path[64];
	int fd, err;

	if (!f->half)
		return 0;
	path_of(f, path);
	fd = openat(f->k->dir_fd, path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	err = dup3(fd, f->fd, O_CLOEXEC) < 0 ? -errno : 0;
	close(fd);
	f->half = err;
	return err;
}

void fifo_level(struct fifo *f, uint32_t unread)
{
	int want = unread < MOST_BYTES ? (int)unread : MOST_BYTES, held;
	char bytes[256], taken[256];
	ssize_t n = 1;

	memset(bytes, SH_FIFO_BYTE, sizeof(bytes));
	(void)make_whole(f);
	if (ioctl(f->fd, FIONREAD, &held) < 0)
		return;
	for (; n > 0 && held < want; held += (int)n)
		n = write(f->fd, bytes, want - held < 256 ? want - held : 256);
	for (; n > 0 && held > want; held -= (int)n)
		n = read(f->fd, taken, held - want < 256 ? held - want : 256);
}

void fifo_doubt(struct fifo *f)
{
	if (!f->doubted)
		f->k->doubted++;
	f->doubted = sh_now() + DOUBT_NS;
	f->k->doubt_soon = sh_now() + SOON_NS;
}

/*
 * Is an end open for reading? Meanwhile the daemon's own is not, and another one of it keeps
 * readers from seeing the end of the FIFO. -errno: the daemon has no descriptor left for it. If it
 * has none to open its end again, the answer holds all the same, and the next call opens it.
 */
static int has_reader(struct fifo *f)
{
	struct pollfd p = {.fd = f->fd, .events = POLLOUT};
	char path[64];
	int fd, err;

	path_of(f, path);
	err = make_whole(f);
	if (err)
		return err;
	fd = openat(f->k->dir_fd, path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	err = dup3(fd, f->fd, O_CLOEXEC) < 0 ? -errno : 0;
	close(fd);
	if (err)
		return err;
	f->half = true;
	if (poll(&p, 1, 0) < 0)
		p.revents = 0;
	(void)make_whole(f);
	return !(p.revents & POLLERR);
}

bool fifo_lock(struct fifo *f, int fd)
{
	f->locked = flock(fd, LOCK_SH | LOCK_NB) == 0;
	return f->locked;
}

static int is_locked(struct fifo *f)
{
	if (flock(f->fd, LOCK_EX | LOCK_NB) < 0)
		return 1;
	(void)flock(f->fd, LOCK_UN);
	return 0;
}

bool fifo_unused(struct fifo *f)
{
	int used;

	if (!f->doubted)
		return false;
	used = f->locked ? is_locked(f) : has_reader(f);
	/* The same doubt, and not again and again: most files that are looked into live on. */
	if ((used > 0 && sh_now() >= f->doubted) || (f->locked && !used))
		believe(f);
	return !used;
}
