// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: devices are found in sysfs, drivers by configuration and environment, plug-ins by name; what is wrong
 * is told in the known words, and the other devices still work. Each test is a process of its own, in a tree of its
 * own. The configuration directory and the library's own directory are compiled in: the functions below, which come
 * before those of the C library, send what is asked there to the tree.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "fake_sysfs.h"

#include <infiniband/driver.h>

#define PLUGINS FAKE_PLUGIN_DIR "/"

static char root[FAKE_PATH_MAX];
static char out[16384], err[16384], log_text[16384];

/* Only a child has somewhere to be sent. */
static int redirecting;

static const char *redirect(const char *path, char *buf, size_t size)
{
	if (redirecting && !strncmp(path, IBV_CONFIG_DIR, strlen(IBV_CONFIG_DIR))) {
		snprintf(buf, size, "%s/config%s", root, path + strlen(IBV_CONFIG_DIR));
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

int scandir(const char *dir, struct dirent ***list, int (*filter)(const struct dirent *),
	    int (*compare)(const struct dirent **, const struct dirent **))
{
	char buf[2 * FAKE_PATH_MAX];

	return NEXT(__typeof__(&scandir), "scandir")(redirect(dir, buf, sizeof(buf)), list, filter, compare);
}

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
	return NEXT(__typeof__(&dlopen), "dlopen")(file ? redirect(file, buf, sizeof(buf)) : NULL, flags);
}

static void slurp(const char *name, char *text, size_t size)
{
	char path[2 * FAKE_PATH_MAX];
	size_t len = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	f = fopen(path, "r");
	if (f) {
		len = fread(text, 1, size - 1, f);
		fclose(f);
	}
	text[len] = 0;
}

/* Runs the function in a child; what it prints, what goes to stderr and what is logged is in out, err and log_text. */
static void run(void (*child)(void))
{
	char path[2 * FAKE_PATH_MAX];
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		alarm(60);
		snprintf(path, sizeof(path), "%s/err", root);
		if (!freopen(path, "w", stderr))
			_exit(99);
		setbuf(stderr, NULL);
		snprintf(path, sizeof(path), "%s/out", root);
		if (!freopen(path, "w", stdout))
			_exit(99);
		snprintf(path, sizeof(path), "%s/log", root);
		setenv("FAKE_LOG", path, 1);
		redirecting = 1;
		child();
		fflush(stdout);
		/* Without the exit handlers of the test framework. */
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	slurp("out", out, sizeof(out));
	slurp("err", err, sizeof(err));
	slurp("log", log_text, sizeof(log_text));
	if (status)
		print_error("child status %d\nout:\n%serr:\n%s", status, out, err);
	assert_int_equal(status, 0);
}

static int setup(void **state)
{
	char path[2 * FAKE_PATH_MAX];

	(void)state;
	alarm(300);
	fake_tree_make(root);
	chmod(root, 0755);
	setenv("SYSFS_PATH", root, 1);
	unsetenv("RDMAV_DRIVERS");
	unsetenv("IBV_DRIVERS");
	unsetenv("RDMAV_FORK_SAFE");
	unsetenv("IBV_FORK_SAFE");
	fake_sysfs_abi(root, 6);
	snprintf(path, sizeof(path), "%s/config", root);
	return mkdir(path, 0755);
}

static int teardown(void **state)
{
	(void)state;
	fake_tree_remove(root);
	return 0;
}

static int is_below(const char *path, const char *class, const char *name)
{
	char must[2 * FAKE_PATH_MAX];

	snprintf(must, sizeof(must), "%s/%s/%s", root, class, name);
	return !strcmp(path, must);
}

/* One line for each device, or the errno. */
static void print_devices(void)
{
	struct ibv_device **list;
	int i, n = -1;

	errno = 0;
	list = ibv_get_device_list(&n);
	if (!list) {
		printf("none, errno %s, count %d\n", errno == ENOSYS ? "ENOSYS" : strerror(errno), n);
		return;
	}
	for (i = 0; i < n; ++i)
		printf("%s %s %d %d %016llx %d %d\n", list[i]->name, list[i]->dev_name, list[i]->node_type,
		       list[i]->transport_type,
		       (unsigned long long)__builtin_bswap64(ibv_get_device_guid(list[i])),
		       is_below(list[i]->dev_path, "class/infiniband_verbs", list[i]->dev_name),
		       is_below(list[i]->ibdev_path, "class/infiniband", list[i]->name));
	if (list[n])
		printf("the list does not end\n");
	printf("%d devices\n", n);
	ibv_free_device_list(list);
}

static void assert_contains(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("\"%s\" is not in:\n%s", part, text);
}

static void assert_lacks(const char *text, const char *part)
{
	if (strstr(text, part))
		fail_msg("\"%s\" is in:\n%s", part, text);
}

static void assert_order(const char *text, const char *first, const char *second)
{
	const char *a = strstr(text, first), *b = strstr(text, second);

	if (!a || !b || a > b)
		fail_msg("\"%s\" is not before \"%s\" in:\n%s", first, second, text);
}

/* One line of text has all the parts. */
static void assert_line(const char *text, const char *part1, const char *part2, const char *part3)
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

#define WARNING "libibverbs: Warning: "
#define NO_DRIVER "no userspace device-specific driver found for"
#define A_LINE(dev, uverbs) dev " " uverbs " 1 0 0002c90300010203 1 1\n"

static void configuration_grammar(void **state)
{
	char from[2 * FAKE_PATH_MAX], to[2 * FAKE_PATH_MAX];

	(void)state;
	fake_sysfs_device(root, "uverbs0", "alpha_0", "fake_a");
	fake_sysfs_device(root, "uverbs1", "beta_0", "fake_b");
	/* Any name will do, and the last line may lack its end. */
	fake_file(root, "config/some name", "# driver no_such_1\n\n   # driver no_such_2\n \t driver\t%sfake_a rest\nbogus no_such_3\ndriver %sfake_b",
		  PLUGINS "lib", PLUGINS "lib");
	fake_file(root, "config/directory/file", "driver no_such_4\n");
	fake_file(root, "elsewhere", "driver %sfake_silent\n", PLUGINS "lib");
	snprintf(from, sizeof(from), "%s/elsewhere", root);
	snprintf(to, sizeof(to), "%s/config/link", root);
	assert_int_equal(symlink(from, to), 0);
	/* Whoever opened this would wait for ever. */
	snprintf(to, sizeof(to), "%s/config/fifo", root);
	assert_int_equal(mkfifo(to, 0666), 0);

	run(print_devices);
	assert_contains(out, A_LINE("alpha_0", "uverbs0"));
	assert_contains(out, A_LINE("beta_0", "uverbs1"));
	assert_contains(out, "2 devices");
	assert_line(err, WARNING, "ignoring bad config directive", "bogus");
	assert_lacks(strstr(err, "bad config") + 1, "bad config");
	assert_lacks(err, NO_DRIVER);
	assert_lacks(log_text, "no_such");
	assert_contains(log_text, "fake_silent loaded");
	/* The last line is first. */
	assert_order(log_text, "fake_b loaded", "fake_a loaded");
}

static void names_of_plugins(void **state)
{
	(void)state;
	fake_sysfs_device(root, "uverbs0", "alpha_0", "fake_a");
	fake_sysfs_device(root, "uverbs1", "beta_0", "fake_b");
	fake_file(root, "config/a", "driver fake_a\n");
	fake_file(root, "config/b", "driver " PLUGINS "libfake_b\n");

	run(print_devices);
	assert_contains(out, "2 devices");
	assert_contains(log_text, "dlopen libfake_a-rdmav2.so\n");
	/* Not on the search path, but in the library's own directory. */
	assert_contains(log_text, "dlopen " IBV_LIBDIR "/libfake_a-rdmav2.so\n");
	assert_contains(log_text, "dlopen " PLUGINS "libfake_b-rdmav2.so\n");
	assert_string_equal(err, "");
}

static void environment_lists(void **state)
{
	(void)state;
	fake_sysfs_device(root, "uverbs0", "alpha_0", "fake_a");
	fake_file(root, "config/c", "driver %sfake_silent\n", PLUGINS "lib");
	setenv("RDMAV_DRIVERS", "no_such_1;" PLUGINS "libfake_b:" PLUGINS "libfake_a", 1);
	setenv("IBV_DRIVERS", "no_such_2", 1);

	run(print_devices);
	assert_contains(out, A_LINE("alpha_0", "uverbs0"));
	assert_order(log_text, "dlopen libno_such_1-rdmav2.so", "fake_b loaded");
	assert_order(log_text, "fake_b loaded", "fake_a loaded");
	assert_order(log_text, "fake_a loaded", "fake_silent loaded");
	assert_lacks(log_text, "no_such_2");
}

static void environment_second_choice(void **state)
{
	(void)state;
	fake_sysfs_device(root, "uverbs0", "alpha_0", "fake_a");
	setenv("IBV_DRIVERS", PLUGINS "libfake_a", 1);
	run(print_devices);
	assert_contains(out, "1 devices");

	/* Set, though to nothing. */
	setenv("RDMAV_DRIVERS", "", 1);
	run(print_devices);
	assert_contains(out, "0 devices");
}

static void missing_provider(void **state)
{
	(void)state;
	fake_sysfs_device(root, "uverbs0", "alpha_0", "fake_a");
	fake_sysfs_device(root, "uverbs1", "gamma_0", "no_such");
	fake_file(root, "config/c", "driver fake_a\ndriver no_such\n");

	run(print_devices);
	assert_contains(out, A_LINE("alpha_0", "uverbs0"));
	assert_contains(out, "1 devices");
	assert_line(err, WARNING NO_DRIVER, "/class/infiniband_verbs/uverbs1", "gamma_0");
	assert_line(err, WARNING, "couldn't load driver 'no_such'", "libno_such-rdmav2.so");
	assert_lacks(err, "uverbs0");
}

static void broken_provider(void **state)
{
	(void)state;
	fake_sysfs_device(root, "uverbs0", "alpha_0", "fake_a");
	fake_sysfs_device(root, "uverbs1", "gamma_0", "fake_broken");
	fake_file(root, "config/c", "driver fake_broken\ndriver fake_a\n");

	run(print_devices);
	assert_contains(out, A_LINE("alpha_0", "uverbs0"));
	assert_contains(out, "1 devices");
	assert_line(err, WARNING, "libfake_broken-rdmav2.so", "gamma_0");
	assert_line(err, WARNING, "couldn't load driver 'fake_broken'", "a_function_that_is_nowhere");
}

static void provider_without_operations(void **state)
{
	(void)state;
	fake_sysfs_device(root, "uverbs0", "alpha_0", "fake_a");
	fake_sysfs_device(root, "uverbs1", "gamma_0", "fake_no_ops");
	fake_file(root, "config/c", "driver fake_no_ops\ndriver fake_a\n");

	run(print_devices);
	assert_contains(out, A_LINE("alpha_0", "uverbs0"));
	assert_contains(out, "1 devices");
	assert_line(err, WARNING, "libfake_no_ops-rdmav2.so", "gamma_0");
}

static void provider_of_1_0_only(void **state)
{
	(void)state;
	fake_sysfs_device(root, "uverbs0", "alpha_0", "fake_a");
	fake_sysfs_device(root, "uverbs1", "gamma_0", "fake_1_0");
	fake_file(root, "config/c", "driver fake_1_0\ndriver fake_a\n");

	run(print_devices);
	assert_contains(out, A_LINE("alpha_0", "uverbs0"));
	assert_contains(out, "1 devices");
	assert_line(err, WARNING, "libfake_1_0-rdmav2.so", "openib_driver_init");
	assert_line(err, WARNING, "libfake_1_0-rdmav2.so", "gamma_0");
	assert_lacks(log_text, "called");
}

static void provider_of_another_abi(void **state)
{
	(void)state;
	fake_sysfs_device(root, "uverbs0", "alpha_0", "fake_a");
	fake_sysfs_device(root, "uverbs1", "gamma_0", "fake_b");
	fake_file(root, "class/infiniband_verbs/uverbs1/abi_version", "17\n");
	fake_file(root, "config/c", "driver fake_a\ndriver fake_b\n");

	run(print_devices);
	assert_contains(out, A_LINE("alpha_0", "uverbs0"));
	assert_contains(out, "1 devices");
	assert_contains(log_text, "fake_b offered uverbs1 17");
	assert_line(err, WARNING NO_DRIVER, "libfake_b-rdmav2.so", "gamma_0");
	assert_line(err, NO_DRIVER, "uverbs1", "17");
	assert_ptr_equal(strchr(err, '\n'), err + strlen(err) - 1);
}

/* What the provider has said, once, the library does not say again. */
static void provider_that_says_why(void **state)
{
	(void)state;
	fake_sysfs_device(root, "uverbs0", "alpha_0", "fake_a");
	fake_sysfs_device(root, "uverbs1", "gamma_0", "fake_b");
	fake_file(root, "class/infiniband_verbs/uverbs1/abi_version", "17\n");
	fake_file(root, "config/c", "driver fake_a\ndriver fake_b\n");
	setenv("FAKE_DECLINES", "1", 1);

	run(print_devices);
	unsetenv("FAKE_DECLINES");
	assert_contains(out, A_LINE("alpha_0", "uverbs0"));
	assert_contains(out, "1 devices");
	assert_contains(err, "fake_b cannot drive ");
	assert_contains(err, "/class/infiniband_verbs/uverbs1\n");
	assert_ptr_equal(strchr(err, '\n'), err + strlen(err) - 1);
}

static void missing_configuration(void **state)
{
	char path[2 * FAKE_PATH_MAX];

	(void)state;
	fake_sysfs_device(root, "uverbs0", "alpha_0", "fake_a");
	snprintf(path, sizeof(path), "%s/config", root);
	assert_int_equal(rmdir(path), 0);
	setenv("RDMAV_DRIVERS", PLUGINS "libfake_a", 1);

	run(print_devices);
	assert_contains(out, "1 devices");
	assert_line(err, WARNING, "couldn't open config directory", IBV_CONFIG_DIR);
}

static void again_with_devices(void)
{
	print_devices();
	fake_sysfs_abi(root, 6);
	fake_sysfs_device(root, "uverbs0", "alpha_0", "fake_a");
	print_devices();
}

static void no_kernel_support(void **state)
{
	char path[2 * FAKE_PATH_MAX];

	(void)state;
	snprintf(path, sizeof(path), "%s/class", root);
	fake_tree_remove(path);
	fake_file(root, "config/c", "driver fake_a\n");
	/* Silent, and not looked at again. */
	run(again_with_devices);
	assert_string_equal(out, "none, errno ENOSYS, count 0\nnone, errno ENOSYS, count 0\n");
	assert_string_equal(err, "");

	/* A class without its version is none either. */
	fake_sysfs_device(root, "uverbs0", "alpha_0", "fake_a");
	snprintf(path, sizeof(path), "%s/class/infiniband_verbs/abi_version", root);
	assert_int_equal(unlink(path), 0);
	run(print_devices);
	assert_string_equal(out, "none, errno ENOSYS, count 0\n");
	assert_string_equal(err, "");
}

static void kernel_abi_out_of_range(void **state)
{
	static const int versions[] = { 0, 7 };
	size_t i;

	(void)state;
	for (i = 0; i < 2; ++i) {
		fake_sysfs_abi(root, versions[i]);
		run(print_devices);
		assert_string_equal(out, "none, errno ENOSYS, count 0\n");
		assert_line(err, "libibverbs: Fatal: ", "kernel ABI version", "doesn't match library version");
	}
}

/* That nothing was found is not remembered, */
static void nothing_is_not_cached(void **state)
{
	(void)state;
	fake_file(root, "config/c", "driver fake_a\n");
	run(again_with_devices);
	assert_string_equal(out, "0 devices\n" A_LINE("alpha_0", "uverbs0") "1 devices\n");
}

static void again_without_devices(void)
{
	char path[2 * FAKE_PATH_MAX];

	print_devices();
	snprintf(path, sizeof(path), "%s/class", root);
	fake_tree_remove(path);
	fake_sysfs_device(root, "uverbs1", "alpha_1", "fake_a");
	fake_file(root, "class/infiniband/alpha_0/node_guid", "0002:c903:0001:0203\n");
	print_devices();
}

/* that something was, is. */
static void devices_are_cached(void **state)
{
	const char *loaded;

	(void)state;
	fake_file(root, "config/c", "driver fake_a\n");
	fake_sysfs_device(root, "uverbs0", "alpha_0", "fake_a");
	run(again_without_devices);
	assert_string_equal(out, A_LINE("alpha_0", "uverbs0") "1 devices\n" A_LINE("alpha_0", "uverbs0") "1 devices\n");
	loaded = strstr(log_text, "fake_a loaded");
	assert_non_null(loaded);
	assert_null(strstr(loaded + 1, "fake_a loaded"));
}

/* Unclaimed devices alone are no devices: all of it is done again, memory and list included. */
static void unclaimed_are_looked_at_again(void)
{
	print_devices();
	print_devices();
	fake_file(root, "class/infiniband_verbs/uverbs0/device/driver_name", "fake_a\n");
	print_devices();
}

static void retry_after_unclaimed(void **state)
{
	(void)state;
	fake_file(root, "config/c", "driver fake_a\n");
	fake_sysfs_device(root, "uverbs0", "alpha_0", "fake_b");
	run(unclaimed_are_looked_at_again);
	assert_string_equal(out, "0 devices\n0 devices\n" A_LINE("alpha_0", "uverbs0") "1 devices\n");
}

static void entries_of_the_class(void **state)
{
	char from[2 * FAKE_PATH_MAX], to[2 * FAKE_PATH_MAX];

	(void)state;
	fake_file(root, "config/c", "driver fake_a\n");
	fake_sysfs_device(root, ".hidden", "hidden_0", "fake_a");
	fake_file(root, "class/infiniband_verbs/uverbs7", "a file\n");
	fake_sysfs_device(root, "uverbs1", "alpha_1", "fake_a");
	fake_sysfs_device(root, "uverbs2", "alpha_2", "fake_a");
	snprintf(to, sizeof(to), "%s/class/infiniband_verbs/uverbs2/ibdev", root);
	assert_int_equal(unlink(to), 0);
	/* Links are followed. */
	snprintf(from, sizeof(from), "%s/class/infiniband_verbs/uverbs1", root);
	snprintf(to, sizeof(to), "%s/devices", root);
	assert_int_equal(rename(from, to), 0);
	assert_int_equal(symlink(to, from), 0);

	run(print_devices);
	assert_string_equal(out, A_LINE("alpha_1", "uverbs1") "1 devices\n");
	assert_line(err, WARNING, "uverbs2", "ibdev");
	assert_lacks(err, "uverbs7");
}

static void no_driver_abi(void **state)
{
	char path[2 * FAKE_PATH_MAX];

	(void)state;
	fake_file(root, "config/c", "driver fake_a\n");
	fake_sysfs_device(root, "uverbs0", "alpha_0", "fake_a");
	snprintf(path, sizeof(path), "%s/class/infiniband_verbs/uverbs0/abi_version", root);
	assert_int_equal(unlink(path), 0);
	run(print_devices);
	assert_contains(log_text, "fake_a offered uverbs0 0\n");
}

static void node_types(void **state)
{
	static const char *const types[] = { "1: CA", "2: switch", "3: router", "4: RNIC", "5: new", "0: nothing" };
	char path[2 * FAKE_PATH_MAX], uverbs[16], name[16];
	size_t i;

	(void)state;
	fake_file(root, "config/c", "driver fake_a\n");
	for (i = 0; i < 6; ++i) {
		snprintf(uverbs, sizeof(uverbs), "uverbs%zu", i);
		snprintf(name, sizeof(name), "alpha_%zu", i);
		fake_sysfs_device(root, uverbs, name, "fake_a");
		snprintf(path, sizeof(path), "class/infiniband/%s/node_type", name);
		fake_file(root, path, "%s\n", types[i]);
	}
	fake_sysfs_device(root, "uverbs6", "alpha_6", "fake_a");
	snprintf(path, sizeof(path), "%s/class/infiniband/alpha_6/node_type", root);
	assert_int_equal(unlink(path), 0);

	run(print_devices);
	assert_contains(out, "alpha_0 uverbs0 1 0 ");
	assert_contains(out, "alpha_1 uverbs1 2 0 ");
	assert_contains(out, "alpha_2 uverbs2 3 0 ");
	assert_contains(out, "alpha_3 uverbs3 4 1 ");
	assert_contains(out, "alpha_4 uverbs4 -1 -1 ");
	assert_contains(out, "alpha_5 uverbs5 -1 -1 ");
	assert_contains(out, "alpha_6 uverbs6 -1 -1 ");
	assert_contains(out, "7 devices");
	assert_line(err, WARNING, "node_type", "alpha_6");
	assert_lacks(err, "alpha_4");
}

static struct ibv_device static_device;

static struct ibv_context *static_alloc(struct ibv_device *device, int cmd_fd)
{
	(void)device;
	(void)cmd_fd;
	return NULL;
}

static void static_free(struct ibv_context *context)
{
	(void)context;
}

static struct ibv_device *static_init(const char *uverbs_sys_path, int abi_version)
{
	(void)uverbs_sys_path;
	(void)abi_version;
	static_device.ops.alloc_context = static_alloc;
	static_device.ops.free_context = static_free;
	return &static_device;
}

static void with_static_driver(void)
{
	ibv_register_driver("static", static_init);
	print_devices();
}

/* All devices claimed by drivers that are registered already: nothing is loaded, not even looked for. */
static void registered_before(void **state)
{
	(void)state;
	fake_file(root, "config/c", "driver no_such\nnonsense\n");
	setenv("RDMAV_DRIVERS", "no_such", 1);
	fake_sysfs_device(root, "uverbs0", "alpha_0", "fake_a");
	run(with_static_driver);
	assert_contains(out, A_LINE("alpha_0", "uverbs0"));
	assert_string_equal(log_text, "");
	assert_string_equal(err, "");
}

static void print_sysfs_path(void)
{
	printf("%s\n", ibv_get_sysfs_path());
}

static void sysfs_path(void **state)
{
	char with_slashes[2 * FAKE_PATH_MAX];

	(void)state;
	snprintf(with_slashes, sizeof(with_slashes), "%s///", root);
	setenv("SYSFS_PATH", with_slashes, 1);
	run(print_sysfs_path);
	assert_int_equal(strncmp(out, root, strlen(root)), 0);
	assert_string_equal(out + strlen(root), "\n");

	unsetenv("SYSFS_PATH");
	run(print_sysfs_path);
	assert_string_equal(out, "/sys\n");
}

static int started_by_another;

/* In front of the C library's for the library too: who is not root cannot become two users. */
uid_t getuid(void)
{
	return syscall(SYS_getuid) + started_by_another;
}

static void as_set_uid(void)
{
	/* Root is still the real user and nobody the effective one: as in a set-uid program. */
	if (!geteuid() && setresuid(-1, 65534, -1))
		_exit(98);
	started_by_another = getuid() == geteuid();
	print_sysfs_path();
}

static void set_uid_programs_trust_nothing(void **state)
{
	(void)state;
	run(as_set_uid);
	assert_string_equal(out, "/sys\n");
}

static void with_little_memory(void)
{
	struct rlimit limit = { 32768, 32768 };

	if (setrlimit(RLIMIT_MEMLOCK, &limit))
		_exit(98);
	if (!geteuid() && setresuid(65534, 65534, 65534))
		_exit(98);
	print_devices();
}

static void locked_memory(void **state)
{
	(void)state;
	run(with_little_memory);
	assert_line(err, WARNING, "RLIMIT_MEMLOCK is 32768", "ulimit -l");
	run(print_devices);
	if (!geteuid())
		assert_lacks(err, "RLIMIT_MEMLOCK");
}

static void fork_safe_child(void)
{
	char *page = aligned_alloc(65536, 65536);

	print_devices();
	/* The door is closed by the first registration without it. */
	ibv_dontfork_range(page, 65536);
	printf("fork_init %d\n", ibv_fork_init());
}

static void fork_safe(void **state)
{
	(void)state;
	run(fork_safe_child);
	assert_contains(out, "fork_init 22\n");
	setenv("RDMAV_FORK_SAFE", "", 1);
	run(fork_safe_child);
	assert_contains(out, "fork_init 0\n");
	unsetenv("RDMAV_FORK_SAFE");
	setenv("IBV_FORK_SAFE", "0", 1);
	run(fork_safe_child);
	assert_contains(out, "fork_init 0\n");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	static const struct CMUnitTest tests[] = {
		TEST(configuration_grammar),	   TEST(names_of_plugins),	  TEST(environment_lists),
		TEST(environment_second_choice),   TEST(missing_provider),	  TEST(broken_provider),
		TEST(provider_without_operations), TEST(provider_of_1_0_only),	  TEST(provider_of_another_abi),
		TEST(provider_that_says_why),
		TEST(missing_configuration),	   TEST(no_kernel_support),	  TEST(kernel_abi_out_of_range),
		TEST(nothing_is_not_cached),	   TEST(devices_are_cached),	  TEST(retry_after_unclaimed),
		TEST(entries_of_the_class),	   TEST(no_driver_abi),		  TEST(node_types),
		TEST(registered_before),	   TEST(sysfs_path),		  TEST(set_uid_programs_trust_nothing),
		TEST(locked_memory),		   TEST(fork_safe),
	};

	return cmocka_run_group_tests_name("discovery", tests, NULL, NULL);
}
