// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The children of the discovery tests, and what they print. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "discovery_child.h"

char tree[FAKE_PATH_MAX];
char child_out[16384], child_err[16384], child_log[16384];

/* Paths are redirected in children only. */
static int redirecting;

static const char *redirect(const char *path, char *buf, size_t size)
{
	if (redirecting && !strncmp(path, IBV_CONFIG_DIR, strlen(IBV_CONFIG_DIR))) {
		snprintf(buf, size, "%s/config%s", tree, path + strlen(IBV_CONFIG_DIR));
		return buf;
	}
	if (redirecting && !strncmp(path, IBV_LIBDIR "/", strlen(IBV_LIBDIR "/"))) {
		snprintf(buf, size, "%s%s", PLUGINS, path + strlen(IBV_LIBDIR "/"));
		return buf;
	}
	return path;
}

static void note(const char *what, const char *detail)
{
	char line[2 * FAKE_PATH_MAX];
	int fd = open(getenv("FAKE_LOG"), O_WRONLY | O_CREAT | O_APPEND, 0666);

	snprintf(line, sizeof(line), "%s %s\n", what, detail);
	if (fd < 0 || write(fd, line, strlen(line)) < 0)
		abort();
	close(fd);
}

#define NEXT(type, name) ((type)dlsym(RTLD_NEXT, name))

DIR *opendir(const char *dir)
{
	char buf[2 * FAKE_PATH_MAX];

	return NEXT(__typeof__(&opendir), "opendir")(redirect(dir, buf, sizeof(buf)));
}

FILE *fopen(const char *path, const char *mode)
{
	char buf[2 * FAKE_PATH_MAX];

	return NEXT(__typeof__(&fopen), "fopen")(redirect(path, buf, sizeof(buf)), mode);
}

int stat(const char *path, struct stat *st)
{
	char buf[2 * FAKE_PATH_MAX];

	return fstatat(AT_FDCWD, redirect(path, buf, sizeof(buf)), st, 0);
}

int access(const char *path, int mode)
{
	char buf[2 * FAKE_PATH_MAX];

	return faccessat(AT_FDCWD, redirect(path, buf, sizeof(buf)), mode, 0);
}

void *dlopen(const char *file, int flags)
{
	char buf[2 * FAKE_PATH_MAX];

	if (redirecting && file)
		note("dlopen", file);
	return NEXT(__typeof__(&dlopen), "dlopen")(file ? redirect(file, buf, sizeof(buf)) : NULL,
						   flags);
}

static void slurp(const char *name, char *text, size_t size)
{
	char path[2 * FAKE_PATH_MAX];
	size_t len = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", tree, name);
	f = fopen(path, "r");
	if (f) {
		len = fread(text, 1, size - 1, f);
		fclose(f);
	}
	text[len] = 0;
}

void run(void (*child)(void))
{
	char path[2 * FAKE_PATH_MAX];
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		alarm(60);
		snprintf(path, sizeof(path), "%s/err", tree);
		if (!freopen(path, "w", stderr))
			_exit(99);
		setbuf(stderr, NULL);
		snprintf(path, sizeof(path), "%s/out", tree);
		if (!freopen(path, "w", stdout))
			_exit(99);
		snprintf(path, sizeof(path), "%s/log", tree);
		setenv("FAKE_LOG", path, 1);
		redirecting = 1;
		child();
		fflush(stdout);
		/* _exit() skips the exit handlers of the test framework. */
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	slurp("out", child_out, sizeof(child_out));
	slurp("err", child_err, sizeof(child_err));
	slurp("log", child_log, sizeof(child_log));
	if (status)
		print_error("child status %d\nout:\n%serr:\n%s", status, child_out, child_err);
	assert_int_equal(status, 0);
}

int make_tree(void **state)
{
	char path[2 * FAKE_PATH_MAX];

	(void)state;
	alarm(300);
	fake_tree_make(tree);
	chmod(tree, 0755);
	setenv("SYSFS_PATH", tree, 1);
	unsetenv("RDMAV_DRIVERS");
	unsetenv("IBV_DRIVERS");
	unsetenv("RDMAV_FORK_SAFE");
	unsetenv("IBV_FORK_SAFE");
	fake_sysfs_abi(tree, 6);
	snprintf(path, sizeof(path), "%s/config", tree);
	return mkdir(path, 0755);
}

int remove_tree(void **state)
{
	(void)state;
	fake_tree_remove(tree);
	return 0;
}

static int is_below(const char *path, const char *class, const char *name)
{
	char must[2 * FAKE_PATH_MAX];

	snprintf(must, sizeof(must), "%s/%s/%s", tree, class, name);
	return !strcmp(path, must);
}

void print_devices(void)
{
	struct ibv_device **list;
	int i, n = -1;

	errno = 0;
	list = ibv_get_device_list(&n);
	if (!list) {
		printf("none, errno %s, count %d\n", errno == ENOSYS ? "ENOSYS" : strerror(errno),
		       n);
		return;
	}
	for (i = 0; i < n; ++i)
		printf("%s %s %d %d %016llx %d %d\n", list[i]->name, list[i]->dev_name,
		       list[i]->node_type, list[i]->transport_type,
		       (unsigned long long)__builtin_bswap64(ibv_get_device_guid(list[i])),
		       is_below(list[i]->dev_path, "class/infiniband_verbs", list[i]->dev_name),
		       is_below(list[i]->ibdev_path, "class/infiniband", list[i]->name));
	if (list[n])
		printf("the list does not end\n");
	printf("%d devices\n", n);
	ibv_free_device_list(list);
}

void assert_contains(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("\"%s\" is not in:\n%s", part, text);
}

void assert_lacks(const char *text, const char *part)
{
	if (strstr(text, part))
		fail_msg("\"%s\" is in:\n%s", part, text);
}

void assert_order(const char *text, const char *first, const char *second)
{
	const char *a = strstr(text, first), *b = strstr(text, second);

	if (!a || !b || a > b)
		fail_msg("\"%s\" is not before \"%s\" in:\n%s", first, second, text);
}

void assert_line(const char *text, const char *part1, const char *part2, const char *part3)
{
	const char *line = text, *end;
	char copy[4096];

	for (; *line; line = *end ? end + 1 : end) {
		end = strchrnul(line, '\n');
		snprintf(copy, sizeof(copy), "%.*s", (int)(end - line), line);
		if (strstr(copy, part1) && strstr(copy, part2) && strstr(copy, part3))
			return;
	}
	fail_msg("no line has \"%s\", \"%s\" and \"%s\":\n%s", part1, part2, part3, text);
}
