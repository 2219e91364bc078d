// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Talks to the daemon of an instance. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "softhca.h"
#include "softhca/host/client.h"
#include "softhca/host/paths.h"
#include "softhca/host/places.h"

#define PATIENCE 10 /* seconds after which a daemon counts as not answering */

long daemon_pid(const char *dir)
{
	char path[PATH_MAX];
	long pid = 0;
	FILE *file;

	if (snprintf(path, sizeof(path), "%s/pid", dir) >= (int)sizeof(path))
		return 0;
	file = fopen(path, "re");
	if (!file)
		return 0;
	if (fscanf(file, "%ld", &pid) != 1)
		pid = 0;
	fclose(file);
	return pid;
}

int greet(const char *dir, struct sh_hello_reply *hello)
{
	const struct timeval patience = {.tv_sec = PATIENCE};
	int fd = sh_client_connect(dir), err;

	if (fd < 0)
		return fd;
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)))
		err = -errno;
	else
		err = sh_client_hello(fd, 0, 0, hello, NULL);
	if (!err)
		return fd;
	close(fd);
	return err;
}

void complain_silence(const char *instance, const char *dir)
{
	complain("instance \"%s\" did not answer within %d seconds: its daemon, process %ld, is "
		 "stopped or stuck; "
		 "kill -CONT %ld continues it, kill -KILL %ld ends it",
		 instance, PATIENCE, daemon_pid(dir), daemon_pid(dir), daemon_pid(dir));
}

bool complain_no_proc(void)
{
	if (!access("/proc/self/fd", X_OK))
		return false;
	complain("there is no /proc, through which softhca reaches instances: mount it (mount -t "
		 "proc proc /proc)");
	return true;
}

static void complain_place(int err)
{
	char place[PATH_MAX], why[SH_PLACE_WHY] = "";

	if (!sh_place(0, place) && sh_place_check(place, why, sizeof(why)))
		complain("SOFTHCA_DIR cannot be used (%s: %s): set it to a directory of yours that "
			 "only you can "
			 "write to",
			 place, why);
	else
		complain("SOFTHCA_DIR cannot be used (%s): set it to a directory of yours that "
			 "only you can write to",
			 strerror(-err));
}

/* The places that a name is looked for in; behind one that is passed over, the reason. */
static void list_places(char *list, size_t len)
{
	char place[PATH_MAX], why[SH_PLACE_WHY];
	size_t at = 0;

	*list = '\0';
	for (unsigned int i = 0; i < SH_PLACES; i++) {
		int err = sh_place(i, place), n;

		if (err)
			continue;
		err = sh_place_check(place, why, sizeof(why));
		if (err && err != -ENOENT)
			n = snprintf(list + at, len - at, "%s%s (passed over: %s)", at ? ", " : "",
				     place, why);
		else
			n = snprintf(list + at, len - at, "%s%s", at ? ", " : "", place);
		if (n > 0)
			at = at + (size_t)n < len ? at + (size_t)n : len - 1;
	}
}

void complain_absent(const char *instance, const char *dir, int err)
{
	static char list[SH_PLACES * (PATH_MAX + SH_PLACE_WHY + 32)]; /* the stack may be small */
	char lock[PATH_MAX + 8];

	snprintf(lock, sizeof(lock), "%s/lock", dir ?: "");
	if (dir && !access(lock, F_OK)) {
		complain("no instance \"%s\" runs: that in %s has ended (%s); softhca show lists "
			 "those that run, "
			 "softhca start makes one",
			 instance, dir, strerror(-err));
		return;
	}
	if (strchr(instance, '/')) {
		complain("no instance runs in %s (%s); softhca show lists those that run, softhca "
			 "start makes one",
			 instance, strerror(-err));
		return;
	}
	list_places(list, sizeof(list));
	complain("no instance \"%s\" of user %u runs; looked for it in %s%s; softhca show lists "
		 "those that run, "
		 "softhca start makes one",
		 instance, (unsigned int)geteuid(), list,
		 sh_place_named() ? ", where SOFTHCA_DIR says" : "");
}

bool complain_foreign(const char *instance, const char *dir)
{
	char path[PATH_MAX], *slash;
	struct stat st;

	snprintf(path, sizeof(path), "%s", dir);
	/* What cannot be looked at lies in a directory that can. */
	while (stat(path, &st) && errno == EACCES && (slash = strrchr(path, '/')) && slash > path)
		*slash = '\0';
	if (access(dir, X_OK) == 0 || errno != EACCES || st.st_uid == geteuid())
		return false;
	complain("%s belongs to user %u, and only that user can use the instance \"%s\": call "
		 "this command as that user, or make an instance of your own with softhca start",
		 path, (unsigned int)st.st_uid, instance);
	return true;
}

/* What the daemon answers when it has no descriptor left is not about this program. */
static void complain_answer(int err)
{
	if (err == EMFILE || err == ENFILE)
		complain("the daemon of the instance has no descriptor left: end some of the "
			 "instance's programs, or start it under a higher limit (ulimit -n)");
	else
		complain("%s", strerror(err));
}

int reach(const char *instance, char dir[PATH_MAX], struct sh_hello_reply *hello)
{
	int fd, err;

	err = sh_instance_dir(dir, instance);
	if (err == -EINVAL) {
		complain("\"%s\" cannot be the name of an instance: use up to 64 letters, digits, "
			 "'.', '_' and '-'",
			 instance);
		return err;
	}
	if (err && err != -ENOENT && sh_place_named() && !strchr(instance, '/')) {
		complain_place(err);
		return err;
	}
	fd = err ? err : greet(dir, hello);
	if (fd == -ETIMEDOUT)
		complain_silence(instance, dir);
	else if (fd < 0 && complain_no_proc())
		return fd;
	else if (fd == -ENOENT || fd == -ECONNREFUSED)
		complain_absent(instance, err ? NULL : dir, fd);
	else if (fd < 0 && !complain_foreign(instance, dir))
		complain("cannot connect to instance \"%s\": %s", instance, strerror(-fd));
	return fd;
}

int ask(int control, const void *request, size_t len, int *fd)
{
	struct sh_status status;
	int fds[SH_CLIENT_FDS];
	unsigned int nfds = 0;
	int err;

	err = sh_client_request(control, request, len, &status, sizeof(status), fds, &nfds);
	if (err == -ETIMEDOUT) {
		complain("the daemon of the instance did not answer within %d seconds; softhca "
			 "show --waits NAME says whether "
			 "it is stopped",
			 PATIENCE);
		return EXIT_SELF;
	}
	if (err) {
		complain("the daemon of the instance ended before it answered (%s); start the "
			 "instance again; "
			 "dmesg says whether the kernel killed it",
			 strerror(-err));
		return EXIT_SELF;
	}
	status.text[sizeof(status.text) - 1] = '\0';
	if (!status.error && fd && !nfds)
		status.error = EPROTO;
	for (unsigned int i = 0; i < nfds; i++) {
		if (!status.error && fd && i == 0)
			*fd = fds[i];
		else
			close(fds[i]);
	}
	if (status.text[0])
		complain("%s", status.text);
	else if (status.error)
		complain_answer(status.error);
	return status.error ? EXIT_SELF : 0;
}

int send_to(const char *instance, const void *request, size_t len)
{
	struct sh_hello_reply hello;
	char dir[PATH_MAX];
	int control = reach(instance, dir, &hello);
	int status;

	if (control < 0)
		return EXIT_SELF;
	status = ask(control, request, len, NULL);
	close(control);
	return status;
}
