// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * See fifo.h. The file's name tells the daemon which one it is: duplicates, inherited and passed
 * descriptors all have it. Nothing is kept here.
 */
#include <limits.h>
#include <pthread.h>
#include <string.h>

#include "softhca/host/sys.h"
#include "softhca/protocol.h"
#include "softhca/shim/attach.h"
#include "fifo.h"

/*
 * Here and in take_numbers() by hand: printf() and scanf() of the C library note what is to be
 * undone if the call is left, also for text in memory. A handler of the application that jumps out
 * of them crashes there.
 */
void shim_put_number(char *to, unsigned int n)
{
	char digits[16];
	int len = 0;

	do
		digits[len++] = (char)('0' + n % 10);
	while (n /= 10);
	while (len)
		*to++ = digits[--len];
	*to = '\0';
}

/* Numbers with dots between them, as many as there are, up to three. Returns how many. */
static int take_numbers(const char *at, uint32_t *first, uint32_t *second, uint32_t *third)
{
	uint32_t number[3] = {0};
	int n = 0;

	while (n < 3 && *at >= '0' && *at <= '9') {
		while (*at >= '0' && *at <= '9')
			number[n] = number[n] * 10 + (uint32_t)(*at++ - '0');
		n++;
		if (*at++ != '.')
			break;
	}
	if (n > 0)
		*first = number[0];
	if (n > 1)
		*second = number[1];
	if (n > 2)
		*third = number[2];
	return n;
}

bool shim_fd_path(int fd, char path[PATH_MAX])
{
	char link[64] = "/proc/thread-self/fd/";
	long n;

	if (fd < 0)
		return false;
	shim_put_number(link + strlen(link), (unsigned int)fd);
	n = sh_sys(syscall(SYS_readlinkat, AT_FDCWD, link, path, PATH_MAX - 1));
	if (n < 0)
		return false;
	path[n] = '\0';
	return true;
}

/*
 * What follows the directory of the instance in a path, or NULL. An instance that has ended gets a
 * new name beside the others before its directory is removed (host/instdir.c), and its open files
 * have that name from then on.
 */
static const char *in_instance(const char *path, bool *removed)
{
	const char *last = strrchr(shim.dir, '/');
	size_t len = strlen(shim.dir), base = last ? (size_t)(last + 1 - shim.dir) : 0;
	const char *name = path + base;

	*removed = strncmp(path, shim.dir, len) || path[len] != '/';
	if (!*removed)
		return path + len + 1;
	if (strncmp(path, shim.dir, base) || strncmp(name, SH_NEW, strlen(SH_NEW)))
		return NULL;
	name += strlen(SH_NEW) + strspn(name + strlen(SH_NEW), "0123456789abcdef");
	return *name == '/' ? name + 1 : NULL;
}

bool shim_fifo_of_stat(int fd, const struct stat *st, const char *dir, struct shim_fifo *f)
{
	size_t dir_len = strlen(dir);
	char path[PATH_MAX];
	const char *at;
	bool removed;

	if (!S_ISFIFO(st->st_mode) || st->st_dev != shim.files_dev || !shim_fd_path(fd, path))
		return false;
	f->dir = dir;
	f->mode = O_RDONLY;
	f->known = 0;
	at = in_instance(path, &removed);
	if (!at || strncmp(at, dir, dir_len) || at[dir_len] != '/' ||
	    take_numbers(at + dir_len + 1, &f->index, &f->generation, &f->mode) < 2)
		return false;
	/*
	 * It may have been another instance, and this one's daemon must not take it for a file of
	 * its own.
	 */
	if (removed)
		f->generation = 0;
	return true;
}

int shim_fifo_open(int flags, const void *req, size_t req_len, void *reply, size_t reply_len,
		   int (*error)(const void *reply))
{
	unsigned int nfds = 0;
	int fds[4], err;

	err = shim_control_to_open();
	if (err)
		return err;
	err = shim_request_now(req, req_len, reply, reply_len, fds, &nfds);
	shim_control_put();
	if (!err)
		err = error(reply);
	if (!err && nfds != 1)
		err = -EIO;
	if (err) {
		while (nfds)
			sh_close(fds[--nfds]);
		return err;
	}
	if (!(flags & O_CLOEXEC))
		sh_fcntl(fds[0], F_SETFD, 0);
	return fds[0];
}

int shim_fifo_ask(uint32_t generation, uint32_t known, const void *req, size_t req_len, void *reply,
		  size_t reply_len)
{
	int err;

	if (!generation)
		return -EIO;
	err = shim_control_get();
	if (err)
		return err == -EMFILE || err == -ENFILE || err == -ENOMEM ? err : -EIO;
	err = known && known != shim_control_number()
		      ? -ENODEV
		      : shim_request_now(req, req_len, reply, reply_len, NULL, NULL);
	shim_control_put();
	return err;
}

/*
 * The byte that it takes away is the daemon's to make good (kernel/fifo.c). The end of the FIFO is
 * the daemon's end.
 */
static long sleep_in(int fd)
{
	int type, ignored;
	char byte;
	long n;

	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
	n = sh_sys(syscall(SYS_read, fd, &byte, sizeof(byte)));
	pthread_setcanceltype(type, &ignored);
	return n ? n : -EIO;
}

static void close_twin(void *fd)
{
	sh_close(*(int *)fd);
}

int shim_fifo_still(int fd, const struct shim_fifo *f)
{
	struct shim_fifo now;
	struct stat st;

	if (sh_fstat(fd, &st) < 0 || !shim_fifo_of_stat(fd, &st, f->dir, &now) ||
	    now.index != f->index)
		return -EBADF;
	if (!now.generation)
		return -EIO;
	return now.generation == f->generation ? 0 : -EBADF;
}

#define LOST (-4096L) /* no error that the kernel returns */

/* LOST: the thread has slept, and the program has put another file under the number meanwhile. */
static long sleep_and_ask(int fd, const struct shim_fifo *f, long (*ask)(void *arg), void *arg)
{
	long ret = shim_fifo_still(fd, f);

	while (!ret) {
		ret = sleep_in(fd);
		if (ret < 0)
			return ret;
		ret = ask(arg);
		if (ret != -EAGAIN)
			return ret;
		ret = shim_fifo_still(fd, f);
		if (ret == -EBADF)
			return LOST;
	}
	return ret;
}

static long sleep_in_twin(int fd, const struct shim_fifo *f, long (*ask)(void *arg), void *arg)
{
	int twin = sh_fd_twin(fd);
	long ret;

	if (twin == -EBADF)
		return twin;
	if (twin < 0)
		return sleep_and_ask(fd, f, ask, arg);
	pthread_cleanup_push(close_twin, &twin);
	ret = sleep_and_ask(twin, f, ask, arg);
	pthread_cleanup_pop(1);
	return ret;
}

/*
 * As a kernel does, a thread that sleeps holds the file: another thread may close the descriptor,
 * or open another file under its number.
 */
long shim_fifo_wait(int fd, const struct shim_fifo *f, long (*ask)(void *arg), void *arg)
{
	long ret;

	do
		ret = sleep_in_twin(fd, f, ask, arg);
	while (ret == LOST);
	return ret;
}
