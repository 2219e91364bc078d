// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Runs and their descendants. Reads /proc and keeps no state of its own. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "procstat.h"
#include "runs.h"
#include "sys.h"

#define GENERATIONS 256 /* how many parents are checked */
#define TRIES	    8	/* if one of them ends meanwhile */

struct stat_line {
	long parent;
	unsigned long long start;
	bool ended;
};

/*
 * Reads what /proc says of a process. Returns 0 or -errno; -ESRCH for a zombie, which no longer has
 * children.
 */
static int read_stat(long pid, struct stat_line *st)
{
	char path[40], text[1024], state;
	const char *s;
	int err;

	snprintf(path, sizeof(path), "/proc/%ld/stat", pid);
	s = sh_proc_stat(path, text, sizeof(text), &err);
	if (!s)
		return err < 0 ? err : -EPROTO; /* as an analyser sees that it fails */
	if (sscanf(s,
		   " %c %ld %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d "
		   "%llu",
		   &state, &st->parent, &st->start) != 3)
		return -EPROTO;
	return state == 'Z' || state == 'X' ? -ESRCH : 0;
}

static int record_path(char path[PATH_MAX], const char *dir, const char *tag)
{
	int len = snprintf(path, PATH_MAX, "%s/runs/%s", dir, tag);

	return len >= PATH_MAX ? -ENAMETOOLONG : 0;
}

int sh_run_record(const char *dir, unsigned int host, char tag[SH_RUN_TAG])
{
	char path[PATH_MAX], text[16];
	struct stat_line st;
	int fd, len, err;

	err = read_stat(getpid(), &st);
	if (err)
		return err;
	snprintf(tag, SH_RUN_TAG, "%d.%llu", getpid(), st.start);
	err = record_path(path, dir, tag);
	if (err)
		return err;
	fd = sh_openat(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return fd;
	len = snprintf(text, sizeof(text), "%u\n", host);
	err = (int)sh_write(fd, text, (size_t)len);
	sh_close(fd);
	if (err == len)
		return 0;
	unlink(path);
	return err < 0 ? err : -ENOSPC;
}

void sh_run_forget(const char *dir, const char *tag)
{
	char path[PATH_MAX];

	if (record_path(path, dir, tag) == 0)
		unlink(path);
}

/* The host in a record, or -1 if there is no record. */
static int recorded(const char *dir, const char *tag)
{
	char path[PATH_MAX], text[16];
	long len;
	int fd;

	if (record_path(path, dir, tag))
		return -1;
	fd = sh_open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -1;
	len = sh_read(fd, text, sizeof(text) - 1);
	sh_close(fd);
	if (len <= 0 || text[0] < '0' || text[0] > '9')
		return -1;
	text[len] = '\0';
	return atoi(text);
}

/* The nearest recorded run above this process: its host, tag and start. -1: there is none. */
static int nearest_run(const char *dir, char tag[SH_RUN_TAG], unsigned long long *start)
{
	for (int try = 0; try < TRIES; try++) {
		long pid = getppid();
		int n, err = 0;

		for (n = 0; n < GENERATIONS && pid > 0; n++) {
			struct stat_line st;
			int host;

			err = read_stat(pid, &st);
			if (err)
				break;
			snprintf(tag, SH_RUN_TAG, "%ld.%llu", pid, st.start);
			host = recorded(dir, tag);
			if (host >= 0) {
				*start = st.start;
				return host;
			}
			pid = st.parent;
		}
		/* A parent that has just ended has given its children to another process. */
		if (err != -ENOENT && err != -ESRCH)
			break;
	}
	return -1;
}

/* Is the tag that of a run which began after that time, has ended and left descendants behind? */
static bool orphans_of(const char *dir, const char *tag, unsigned long long after)
{
	struct stat_line st;
	char again[SH_RUN_TAG];
	unsigned long long start;
	long pid;

	/* The tag must be exactly as a run writes it, so that the path leads nowhere else. */
	if (sscanf(tag, "%ld.%llu", &pid, &start) != 2)
		return false;
	snprintf(again, sizeof(again), "%ld.%llu", pid, start);
	if (strcmp(again, tag) || start < after || recorded(dir, tag) < 0)
		return false;
	return read_stat(pid, &st) != 0 || st.start != start;
}

/* The variables of the environment with which a process image began; "" if it does not have one. */
struct variables {
	char run[SH_RUN_TAG], host[16];
};

static void take_value(char *to, size_t room, const char *entry, const char *name)
{
	size_t len = strlen(name);

	/* No run writes a value that is too long. */
	if (!strncmp(entry, name, len) && strlen(entry + len) < room)
		strcpy(to, entry + len);
}

static void take_variable(struct variables *v, const char *entry)
{
	take_value(v->run, sizeof(v->run), entry, "SOFTHCA_RUN=");
	take_value(v->host, sizeof(v->host), entry, "SOFTHCA_HOST=");
}

static void read_variables(long pid, struct variables *v)
{
	char path[40], text[4096], entry[SH_RUN_TAG + 16];
	size_t n = 0;
	long len;
	int fd;

	*v = (struct variables){"", ""};
	snprintf(path, sizeof(path), "/proc/%ld/environ", pid);
	fd = sh_open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	while ((len = sh_read(fd, text, sizeof(text))) > 0)
		for (long i = 0; i < len; i++) {
			/* What does not fit is neither of the two. */
			if (n < sizeof(entry))
				entry[n] = text[i];
			n++;
			if (text[i])
				continue;
			if (n <= sizeof(entry))
				take_variable(v, entry);
			n = 0;
		}
	sh_close(fd);
}

/*
 * For a process that a daemon starts with an environment carried to it, where the daemon has
 * outlived its run: the process is on the daemon's host. The daemon is the first parent, below the
 * nearest run, whose own tag differs from the process's and names a run that has ended. -1: there
 * is no such parent.
 */
static int orphan_above(const char *dir, const char *tag, const char *above,
			unsigned long long after)
{
	long pid = getppid();

	for (int n = 0; n < GENERATIONS && pid > 0; n++) {
		char own[SH_RUN_TAG], *end;
		struct stat_line st;
		struct variables v;
		unsigned long host;

		if (read_stat(pid, &st))
			return -1;
		snprintf(own, sizeof(own), "%ld.%llu", pid, st.start);
		if (!strcmp(own, above))
			return -1;
		read_variables(pid, &v);
		if (*v.run && strcmp(v.run, tag) && orphans_of(dir, v.run, after)) {
			host = strtoul(v.host, &end, 10);
			return v.host[0] < '0' || v.host[0] > '9' || *end || host > INT_MAX
				       ? recorded(dir, v.run)
				       : (int)host;
		}
		pid = st.parent;
	}
	return -1;
}

int sh_run_host(const char *dir, const char *tag, int *nearest)
{
	unsigned long long start = 0;
	char above[SH_RUN_TAG] = "";
	int host;

	*nearest = nearest_run(dir, above, &start);
	if (*nearest < 0)
		above[0] = '\0';
	if (tag && *above && !strcmp(tag, above))
		return -1;
	/*
	 * The process's own run has ended, and an older run further up has inherited the process.
	 * It has not moved.
	 */
	if (tag && orphans_of(dir, tag, *nearest < 0 ? 0 : start))
		return -1;
	host = orphan_above(dir, tag ? tag : "", above, *nearest < 0 ? 0 : start);
	return host >= 0 ? host : *nearest;
}
