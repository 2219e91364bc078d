// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Processes. A process slot belongs to one image of a process.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "softhca/device/memory/exec.h"
#include "softhca/host/moves.h"
#include "softhca/host/process.h"
#include "softhca/host/status.h"
#include "softhca/host/witness.h"
#include "freezer.h"
#include "kern.h"
#include "orphans.h"
#include "process.h"
#include "room.h"
#include "window.h"

/* A process with more threads is not looked at: that would take too long. */
#define THREADS 256
/* A thread that the freezer holds, and that has slept for so long, is not about to go on. */
#define FROZEN_NS UINT64_C(15000000)
/*
 * A thread of device code whose page comes from swap, a file server or userfaultfd sleeps in the
 * midst of its copy, which it will finish. The kernel says the same of it as of one that the
 * freezer holds.
 */
#define ASLEEP_NS UINT64_C(5000000000)
/* One look serves all requests that a round of the daemon's loop tries again. */
#define LOOK_NS UINT64_C(5000000)

static uint32_t free_slot(const struct kernel *k)
{
	uint32_t i;

	for (i = 1; i < SH_MAX_PROC; i++)
		if (!k->proc[i])
			return i;
	return 0;
}

/* Ends earlier images of this process, which has executed another program. */
static void bury_old_images(struct kernel *k, pid_t pid)
{
	uint32_t i;

	for (i = 1; i < SH_MAX_PROC; i++)
		if (k->proc[i] && k->proc[i]->pid == pid && !k->proc[i]->connected)
			proc_dead(k, k->proc[i]);
}

static void close_memory(struct user *user)
{
	if (user->mem > 0)
		close(user->mem);
	user->mem = 0;
}

int proc_attach(struct kernel *k, pid_t pid, uint32_t host, uint32_t again, uint64_t witness,
		struct kproc **out)
{
	struct user user = {.pid = pid, .witness = witness};
	struct sh_proc *slot;
	struct kproc *p;
	char byte;
	int err;

	if (again && again - 1 < SH_MAX_PROC) {
		p = k->proc[again - 1];
		if (p && p->pid == pid && p->user.witness == witness && !p->connected &&
		    p->host == host && client_read(k, &p->user, witness, &byte, 1) == 0) {
			p->connected = true;
			p->refs++;
			*out = p;
			return 0;
		}
	}
	if (client_read(k, &user, witness, &byte, 1) < 0)
		return -EPERM;
	bury_old_images(k, pid);
	err = k->user->hold ? k->user->hold(k->user_arg, &user) : 0;
	if (err)
		return err;
	p = calloc(1, sizeof(*p));
	if (p)
		p->slot = free_slot(k);
	if (!p || !p->slot) {
		err = p ? -EAGAIN : -ENOMEM;
		close_memory(&user);
		free(p);
		return err;
	}
	p->pid = pid;
	p->host = host;
	p->user = user;
	p->connected = true;
	p->refs = 1;
	p->pidfd = syscall(SYS_pidfd_open, pid, 0);
	/*
	 * A system without this call (Linux before 5.3, some containers) has the daemon look at the
	 * process instead.
	 */
	if (p->pidfd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM)) {
		close_memory(&p->user);
		free(p);
		return -EAGAIN;
	}
	slot = sh_proc(&k->dev, p->slot);
	memset(slot, 0, sizeof(*slot));
	__atomic_store_n(&slot->pid, pid, __ATOMIC_RELEASE);
	k->proc[p->slot] = p;
	*out = p;
	return 0;
}

void proc_put(struct kernel *k, struct kproc *p)
{
	(void)k;
	if (--p->refs)
		return;
	if (p->gone) {
		if (p->pidfd >= 0)
			close(p->pidfd);
		free(p);
	}
}

bool number_stopped(int number)
{
	char path[64], text[512], *at;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", number);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return false;
	text[n] = 0;
	/* The state is behind the name, which may contain anything. */
	at = strrchr(text, ')');
	return at && at[1] == ' ' && (at[2] == 'T' || at[2] == 't');
}

/* Does the thread sleep, and how often has it left its processor? */
static bool sleeps(int pid, const char *tid, uint64_t *switches)
{
	enum { STATE, SLEPT, PREEMPTED, FIELDS };
	struct sh_status_field field[FIELDS] = {
		[STATE] = {.name = "State:"},
		[SLEPT] = {.name = "voluntary_ctxt_switches:"},
		[PREEMPTED] = {.name = "nonvoluntary_ctxt_switches:"},
	};
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%.16s/status", pid, tid);
	if (sh_status_read(path, field, FIELDS) || !field[SLEPT].value[0] ||
	    !field[PREEMPTED].value[0] || field[STATE].value[0] == 'R')
		return false;
	*switches =
		strtoull(field[SLEPT].value, NULL, 10) + strtoull(field[PREEMPTED].value, NULL, 10);
	return true;
}

/* The same of all threads. The sum changes, too, when a thread comes or ends. */
static bool all_sleep(int pid, uint64_t *sum)
{
	unsigned int threads = 0;
	const struct dirent *d;
	bool sleep = true;
	char path[64];
	uint64_t n;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	if (!dir)
		return false;
	*sum = 0;
	while (sleep && (d = readdir(dir))) {
		if (d->d_name[0] == '.')
			continue;
		sleep = ++threads <= THREADS && sleeps(pid, d->d_name, &n);
		if (sleep)
			*sum += n + (strtoull(d->d_name, NULL, 10) << 32);
	}
	closedir(dir);
	return sleep && threads;
}

bool proc_asleep(struct kproc *p, uint64_t ns)
{
	uint64_t now = sh_now(), sum;

	if (!all_sleep(p->pid, &sum)) {
		p->asleep = 0;
		return false;
	}
	if (!p->asleep || p->switches != sum) {
		p->switches = sum;
		p->asleep = now;
	}
	return now - p->asleep >= ns;
}

bool proc_stands(struct kproc *p)
{
	uint64_t now = sh_now();
	char path[32];

	if (p->looked && now - p->looked < LOOK_NS)
		return p->stands;
	snprintf(path, sizeof(path), "/proc/%d", p->pid);
	p->stands =
		proc_asleep(p, FROZEN_NS) && (now - p->asleep >= ASLEEP_NS || freezer_holds(path));
	p->looked = now;
	return p->stands;
}

bool proc_lives(struct kernel *k, const struct kproc *p)
{
	char byte;

	/* EPERM: it has another user by now. */
	return !p->gone && (kill(p->pid, 0) == 0 || errno == EPERM) &&
	       client_read(k, &p->user, p->user.witness, &byte, 1) == 0;
}

bool proc_ended(const struct kproc *p)
{
	char byte;
	struct iovec local[] = {{0}, {.iov_base = &byte, .iov_len = 1}};
	struct iovec remote[] = {{0},
				 {.iov_base = (void *)(uintptr_t)p->user.witness, .iov_len = 1}};
	long done = sh_witness_readv(p->pid, p->user.witness, local, 1, remote, 1);

	if (done == -EPERM && p->user.mem > 0)
		done = sh_witness_move(p->user.mem, p->user.witness, &byte, 1, false);
	return done == -ESRCH;
}

void proc_dead(struct kernel *k, struct kproc *p)
{
	if (p->gone)
		return;
	p->gone = true;
	p->refs++;
	ROOMS(dead, k, p);
	/* The process still lives if it is the instance that ends. */
	sh_proc_gone(&k->dev, p->slot, proc_ended(p));
	sh_moves_sweep(&k->dev.inst->moves);
	orphans_free(k);
	windows_end(k, p);
	__atomic_store_n(&sh_proc(&k->dev, p->slot)->pid, 0, __ATOMIC_RELEASE);
	k->proc[p->slot] = NULL;
	close_memory(&p->user);
	if (p->pidfd >= 0) {
		close(p->pidfd);
		p->pidfd = -1;
	}
	proc_put(k, p);
}

void proc_detach(struct kernel *k, struct kproc *p)
{
	p->connected = false;
	ROOMS(detached, k, p);
	/*
	 * A process may close the connection and live on: the shim makes another one and names its
	 * slot.
	 */
	if (proc_lives(k, p)) {
		p->refs--; /* proc_dead() finds it by its slot */
		return;
	}
	proc_dead(k, p);
	proc_put(k, p);
}
