// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * `softhca top` on a terminal: asks the daemon in a process of its own, so that keys work while the
 * daemon does not answer. See top.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "softhca.h"
#include "top.h"

/* Before the text: when the daemon had answered, by the clock of top_seconds(). */
#define STAMP sizeof(double)

static bool write_all(int fd, const void *from, size_t len)
{
	for (const char *at = from; len;) {
		ssize_t written = write(fd, at, len);

		if (written <= 0)
			return false;
		at += written;
		len -= (size_t)written;
	}
	return true;
}

/* The terminal sends its signals to this process, too: the one that shows the tables ends it. */
static __attribute__((noreturn)) void answer(const char *instance, pid_t top, int fd)
{
	size_t len;
	char *text;
	double at;

	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_DFL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != top)
		_exit(1);
	text = show_fetch(instance, &len);
	at = top_seconds();
	_exit(text && write_all(fd, &at, sizeof(at)) && write_all(fd, text, len) ? 0 : 1);
}

bool top_ask(struct top_question *q, const char *instance)
{
	pid_t top = getpid();
	int ends[2];

	*q = (struct top_question){.fd = -1};
	if (pipe2(ends, O_CLOEXEC) < 0) {
		complain("cannot ask the daemon: cannot make a pipe: %s", strerror(errno));
		return false;
	}
	/* Where the caller ignores it, no child can be waited for. */
	signal(SIGCHLD, SIG_DFL);
	q->began = top_seconds();
	q->pid = fork();
	if (q->pid == 0)
		answer(instance, top, ends[1]);
	close(ends[1]);
	if (q->pid < 0) {
		complain("cannot ask the daemon: %s", strerror(errno));
		close(ends[0]);
		q->pid = 0;
		return false;
	}
	q->fd = ends[0];
	return true;
}

bool top_asking(const struct top_question *q)
{
	return q->pid > 0;
}

void top_forget(struct top_question *q)
{
	if (!top_asking(q))
		return;
	kill(q->pid, SIGKILL);
	while (waitpid(q->pid, NULL, 0) < 0 && errno == EINTR)
		;
	close(q->fd);
	free(q->text);
	*q = (struct top_question){.fd = -1};
}

/* All has been read. */
static enum top_answer conclude(struct top_question *q, const char *instance, struct top_look *look)
{
	json_t *root = NULL;
	int status = -1;
	double at = 0;

	while (waitpid(q->pid, &status, 0) < 0 && errno == EINTR)
		;
	q->pid = 0;
	close(q->fd);
	q->fd = -1;
	if (!status && q->len > STAMP) {
		memcpy(&at, q->text, STAMP);
		root = json_loadb(q->text + STAMP, q->len - STAMP, 0, NULL);
	}
	free(q->text);
	q->text = NULL;
	if (status) /* the process has said why */
		return TOP_FAILED;
	if (root && top_look_init(look, root, at))
		return TOP_ANSWERED;
	complain("cannot read what the daemon of \"%s\" says: it is not valid JSON, or memory ran "
		 "out",
		 instance);
	return TOP_FAILED;
}

enum top_answer top_hear(struct top_question *q, const char *instance, struct top_look *look)
{
	struct pollfd ready = {.fd = q->fd, .events = POLLIN};
	ssize_t got;

	while (poll(&ready, 1, 0) > 0) {
		if (q->len == q->room) {
			size_t room = q->room ? q->room * 2 : 65536;
			char *text = realloc(q->text, room);

			if (!text) {
				complain("memory ran out");
				return TOP_FAILED;
			}
			q->text = text;
			q->room = room;
		}
		got = read(q->fd, q->text + q->len, q->room - q->len);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return conclude(q, instance, look);
		q->len += (size_t)got;
	}
	return TOP_WAITING;
}
