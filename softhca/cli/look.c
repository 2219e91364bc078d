// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* See look.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "look.h"
#include "softhca/device/memory/instance.h"
#include "softhca/host/process.h"

#define MEMORY "/memfd:softhca (deleted)"

/* ---- device memory ---- */

int look_open(long daemon)
{
	char path[64], target[sizeof(MEMORY)];
	struct dirent *entry;
	int fd = -ENOENT;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%ld/fd", daemon);
	dir = opendir(path);
	if (!dir)
		return -errno;
	while (fd == -ENOENT && (entry = readdir(dir))) {
		ssize_t len = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target));

		if (len != sizeof(MEMORY) - 1 || memcmp(target, MEMORY, sizeof(MEMORY) - 1))
			continue;
		fd = openat(dirfd(dir), entry->d_name, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			fd = -errno;
	}
	closedir(dir);
	return fd;
}

static int read_all(int fd, char *to, off_t from, off_t end)
{
	while (from < end) {
		ssize_t got = pread(fd, to + from, (size_t)(end - from), from);

		if (got <= 0)
			return got ? -errno : -EIO;
		from += got;
	}
	return 0;
}

/*
 * Copies the parts where the file has pages. Elsewhere the copy is zero, as the file is, and takes
 * no pages.
 */
static int copy_extents(int fd, char *to, off_t end)
{
	off_t from = 0, upto;
	int err = 0;

	while (!err && from < end) {
		from = lseek(fd, from, SEEK_DATA);
		if (from < 0)
			return errno == ENXIO ? 0 : -errno;
		if (from >= end)
			break;
		upto = lseek(fd, from, SEEK_HOLE);
		if (upto < 0)
			return -errno;
		if (upto > end)
			upto = end;
		if (mprotect(to + from, (size_t)(upto - from), PROT_READ | PROT_WRITE))
			return -errno;
		err = read_all(fd, to, from, upto);
		from = upto;
	}
	return err;
}

/*
 * Copies all but the registered memory of the programs. That is the largest part, and this command
 * has no business with it.
 */
static int copy_memory(struct look *l, int memory)
{
	static struct sh_instance header; /* larger than some stacks */
	struct stat st;
	char *at;
	int err;

	if (fstat(memory, &st))
		return -errno;
	if (st.st_size < (off_t)SH_HCA_OFF || read_all(memory, (char *)&header, 0, sizeof(header)))
		return -EPROTO;
	if (header.shared_off > (uint64_t)st.st_size)
		return -EPROTO;
	at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		  -1, 0);
	if (at == MAP_FAILED)
		return -errno;
	err = copy_extents(memory, at, (off_t)header.shared_off);
	if (!err)
		err = sh_dev_attach(&l->dev, (struct sh_instance *)at, (uint64_t)st.st_size);
	if (err)
		munmap(at, (size_t)st.st_size);
	return err;
}

/* ---- threads ---- */

/*
 * Reads the beginning of a file of /proc. False: the file does not exist, or this user may not read
 * it.
 */
static bool proc_read(char *text, size_t size, uint32_t pid, uint32_t tid, const char *name)
{
	char path[96];
	ssize_t got;
	int fd;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/task/%" PRIu32 "/%s", pid, tid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	got = read(fd, text, size - 1);
	close(fd);
	text[got > 0 ? got : 0] = '\0';
	return got > 0;
}

static void ask_kernel(struct task *t)
{
	char text[512];
	const char *name_end;

	if (proc_read(text, sizeof(text), t->pid, t->tid, "stat")) {
		/* The name before it may contain anything. */
		name_end = strrchr(text, ')');
		t->state = name_end && name_end[1] ? name_end[2] : 0;
	}
	if (!proc_read(text, sizeof(text), t->pid, t->tid, "schedstat") ||
	    sscanf(text, "%" SCNu64 " %" SCNu64, &t->ran_ns, &t->queued_ns) != 2)
		t->ran_ns = t->queued_ns = 0;
	t->call = t->arg = -1;
	if (proc_read(text, sizeof(text), t->pid, t->tid, "syscall") &&
	    sscanf(text, "%ld %lx", &t->call, (unsigned long *)&t->arg) != 2)
		t->call = t->arg = -1;
}

static struct task *new_task(struct look *l)
{
	struct task *grown;

	if (l->ntasks % 64 == 0) {
		grown = realloc(l->task, (l->ntasks + 64) * sizeof(*grown));
		if (!grown) {
			l->no_memory = true;
			return NULL;
		}
		l->task = grown;
	}
	return memset(&l->task[l->ntasks++], 0, sizeof(struct task));
}

static int host_of(const struct sh_dev *dev, uint32_t proc)
{
	for (uint32_t i = 1; i < SH_MAX_CTX; i++)
		if (sh_ctx(dev, i)->state == SH_CTX_LIVE && sh_ctx(dev, i)->proc == proc)
			return (int)sh_ctx(dev, i)->host;
	return -1;
}

static void add_process(struct look *l, uint32_t proc)
{
	uint32_t pid = look_pid(l, proc);
	int host = proc ? host_of(&l->dev, proc) : -1;
	struct dirent *entry;
	struct task *t;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/task", pid);
	dir = opendir(path);
	if (!dir)
		return;
	while ((entry = readdir(dir))) {
		unsigned long tid = strtoul(entry->d_name, NULL, 10);

		t = tid ? new_task(l) : NULL;
		if (!t)
			continue;
		t->proc = proc;
		t->pid = pid;
		t->tid = (uint32_t)tid;
		t->host = host;
		ask_kernel(t);
	}
	closedir(dir);
}

static void note_slot(void *arg, const struct sh_thread *slot)
{
	struct look *l = arg;

	for (unsigned int i = 0; i < l->ntasks; i++)
		if (l->task[i].tid == slot->tid && l->task[i].proc == slot->proc) {
			l->task[i].announced = true;
			l->task[i].slot = *slot;
		}
}

/* ---- the whole ---- */

static void note_due(void *arg, const struct sh_due *due)
{
	struct look *l = arg;
	struct sh_due *grown;

	if (l->ndue % 64 == 0) {
		grown = realloc(l->due, (l->ndue + 64) * sizeof(*grown));
		if (!grown) {
			l->no_memory = true;
			return;
		}
		l->due = grown;
	}
	l->due[l->ndue++] = *due;
}

static void note_held(void *arg, const struct sh_held *held)
{
	struct look *l = arg;
	struct sh_held *grown;

	if (l->nheld % 64 == 0) {
		grown = realloc(l->held, (l->nheld + 64) * sizeof(*grown));
		if (!grown) {
			l->no_memory = true;
			return;
		}
		l->held = grown;
	}
	l->held[l->nheld++] = *held;
}

int look_take(struct look *l, int memory)
{
	int err;

	*l = (struct look){0};
	err = copy_memory(l, memory);
	if (err)
		return err;
	l->now = sh_now();
	for (uint32_t i = 0; i < SH_MAX_PROC; i++)
		if (look_pid(l, i))
			add_process(l, i);
	sh_each_thread(&l->dev, note_slot, l);
	l->unseen = sh_each_due(&l->dev, note_due, l);
	sh_each_held(&l->dev, note_held, l);
	if (!l->no_memory)
		return 0;
	look_drop(l);
	return -ENOMEM;
}

void look_drop(struct look *l)
{
	if (l->dev.inst)
		munmap(l->dev.inst, l->dev.size);
	free(l->task);
	free(l->due);
	free(l->held);
	*l = (struct look){0};
}

const struct task *look_task(const struct look *l, uint32_t pid, uint32_t tid)
{
	for (unsigned int i = 0; i < l->ntasks; i++)
		if (l->task[i].pid == pid && l->task[i].tid == tid)
			return &l->task[i];
	return NULL;
}

uint32_t look_pid(const struct look *l, uint32_t proc)
{
	const struct sh_proc *p = sh_proc(&l->dev, proc);

	return p ? p->pid : 0;
}
