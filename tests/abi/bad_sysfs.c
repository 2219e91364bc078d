// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: sysfs files that are missing, empty, huge or full of garbage end in an error and
 * never in a crash. Where there is something to say, a line names the file and what it holds. Other
 * devices still work. Each case is a process of its own; a driver in the program takes every
 * device.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "fake_sysfs.h"

#include <infiniband/driver.h>

#define CLASS	"class/infiniband_verbs/"
#define WARNING "libibverbs: Warning: "
#define FATAL	"libibverbs: Fatal: "

static char root[FAKE_PATH_MAX];
static char out[8192];

static struct ibv_context *alloc_context(struct ibv_device *device, int cmd_fd)
{
	(void)device;
	(void)cmd_fd;
	return NULL;
}

static void free_context(struct ibv_context *context)
{
	(void)context;
}

static struct ibv_device *driver(const char *path, int abi_version)
{
	static struct ibv_device devices[4];
	static int used;

	(void)path;
	(void)abi_version;
	devices[used].ops.alloc_context = alloc_context;
	devices[used].ops.free_context = free_context;
	return &devices[used++];
}

/* Prints a line for each device and its tables, or the errno. */
static void look(void)
{
	struct ibv_context context = {.ops.alloc_pd = NULL};
	struct ibv_device **list;
	union ibv_gid gid;
	uint16_t pkey;
	int i, n, ret;

	ibv_register_driver("every", driver);
	list = ibv_get_device_list(&n);
	if (!list) {
		printf("errno %d\n", errno);
		return;
	}
	for (i = 0; i < n; ++i) {
		printf("%s type %d guid %llx", list[i]->name, list[i]->node_type,
		       (unsigned long long)__builtin_bswap64(ibv_get_device_guid(list[i])));
		context.device = list[i];
		memset(&gid, 0, sizeof(gid));
		errno = 0;
		ret = ibv_query_gid(&context, 1, 0, &gid);
		printf(" gid %d errno %d ..%02x", ret, errno, gid.raw[15]);
		pkey = 0;
		errno = 0;
		ret = ibv_query_pkey(&context, 1, 0, &pkey);
		printf(" pkey %d errno %d %04x\n", ret, errno, __builtin_bswap16(pkey));
	}
	printf("%d devices\n", n);
	ibv_free_device_list(list);
}

/* Both devices, as in the case without damage. */
#define GOOD "type 1 guid 2c90300010203 gid 0 errno 0 ..42 pkey 0 errno 0 8001\n"

static void run(void)
{
	int fds[2], status;
	size_t len = 0;
	ssize_t got;
	pid_t pid;

	fflush(NULL);
	assert_int_equal(pipe(fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		alarm(60);
		dup2(fds[1], 1);
		dup2(fds[1], 2);
		setbuf(stdout, NULL);
		look();
		_exit(0);
	}
	close(fds[1]);
	while (len < sizeof(out) - 1 && (got = read(fds[0], out + len, sizeof(out) - 1 - len)) > 0)
		len += got;
	out[len] = 0;
	close(fds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (status)
		fail_msg("status %d:\n%s", status, out);
}

static int setup(void **state)
{
	static const char *const names[] = {"alpha_0", "beta_0"};
	char path[FAKE_PATH_MAX], uverbs[32];
	int i;

	(void)state;
	fake_tree_make(root);
	setenv("SYSFS_PATH", root, 1);
	unsetenv("RDMAV_DRIVERS");
	unsetenv("IBV_DRIVERS");
	fake_sysfs_abi(root, 6);
	for (i = 0; i < 2; ++i) {
		snprintf(uverbs, sizeof(uverbs), "uverbs%d", i);
		fake_sysfs_device(root, uverbs, names[i], "every");
		snprintf(path, sizeof(path), "class/infiniband/%s/ports/1/gids/0", names[i]);
		fake_file(root, path, "fe80:0000:0000:0000:0002:c903:0001:0042\n");
		snprintf(path, sizeof(path), "class/infiniband/%s/ports/1/pkeys/0", names[i]);
		fake_file(root, path, "0x8001\n");
	}
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	fake_tree_remove(root);
	return 0;
}

enum kind { MISSING, DIRECTORY, CONTENT };

/* What is done to a file, and which part of it a message shows. */
struct harm {
	enum kind kind;
	const char *content;
	size_t times;
	const char *shown;
};

static void do_harm(const char *file, const struct harm *harm)
{
	char path[2 * FAKE_PATH_MAX];
	size_t i;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", root, file);
	if (harm->kind != CONTENT && unlink(path))
		fake_die("unlink", path);
	if (harm->kind == DIRECTORY && mkdir(path, 0755))
		fake_die("mkdir", path);
	if (harm->kind != CONTENT)
		return;
	f = fopen(path, "w");
	if (!f)
		fake_die("fopen", path);
	for (i = 0; i < harm->times; ++i)
		fwrite(harm->content, 1, strlen(harm->content), f);
	fclose(f);
}

/* Asserts that one line begins so and has the file and the value. */
static void assert_told(const char *begin, const char *file, const char *value)
{
	const char *line, *end;
	char copy[2048];

	for (line = out; *line; line = *end ? end + 1 : end) {
		end = strchrnul(line, '\n');
		snprintf(copy, sizeof(copy), "%.*s", (int)(end - line), line);
		if (!strncmp(copy, begin, strlen(begin)) && strstr(copy, file) &&
		    strstr(copy, value))
			return;
	}
	fail_msg("no line \"%s\" with \"%s\" and \"%s\":\n%s", begin, file, value, out);
}

static void assert_has(const char *part)
{
	if (!strstr(out, part))
		fail_msg("\"%s\" is not in:\n%s", part, out);
}

static void assert_quiet(void)
{
	if (strstr(out, "libibverbs:"))
		fail_msg("said too much:\n%s", out);
}

#define FORTY "4444444444444444444444444444444444444444"

/* These are for every file that holds just a number. */
static const struct harm bad_numbers[] = {
	{DIRECTORY, NULL, 0, "cannot be read"},
	{CONTENT, "", 1, "is empty"},
	{CONTENT, "\n", 1, "is empty"},
	{CONTENT, "six\n", 1, "holds 'six'"},
	{CONTENT, "6 and more\n", 1, "holds '6 and more'"},
	{CONTENT, "-3\n", 1, "holds '-3'"},
	{CONTENT, "99999999999999999999\n", 1, "holds '99999999999999999999'"},
	{CONTENT, "4", 3000, "holds '" FORTY "...'"},
	{CONTENT, "4", 100000, "holds '" FORTY "...'"},
	{CONTENT, "\1\2\xff\n", 1,
	 "holds '?"
	 "?"
	 "?'"},
};

#define NUMBER(array) (sizeof(array) / sizeof((array)[0]))

static void good(void **state)
{
	(void)state;
	run();
	assert_string_equal(out, "alpha_0 " GOOD "beta_0 " GOOD "2 devices\n");
}

static void kernel_abi(void **state)
{
	static const char *const unknown[] = {"0", "7", "2147483647"};
	char expected[32];
	size_t i;

	(void)state;
	snprintf(expected, sizeof(expected), "errno %d\n", ENOSYS);
	for (i = 0; i < NUMBER(bad_numbers); ++i) {
		do_harm(CLASS "abi_version", &bad_numbers[i]);
		run();
		assert_told(FATAL, CLASS "abi_version'", bad_numbers[i].shown);
		assert_told(FATAL, "kernel ABI version", "SYSFS_PATH");
		assert_has(expected);
		if (bad_numbers[i].kind == DIRECTORY) {
			teardown(state);
			setup(state);
		}
	}
	for (i = 0; i < NUMBER(unknown); ++i) {
		fake_file(root, CLASS "abi_version", "%s\n", unknown[i]);
		run();
		assert_told(FATAL, CLASS "abi_version'", "doesn't match library version");
		assert_told(FATAL "kernel ABI version ", unknown[i], "6");
		assert_has(expected);
	}

	/* A machine without RDMA is not a fault. */
	do_harm(CLASS "abi_version", &(struct harm){.kind = MISSING});
	run();
	assert_string_equal(out, expected);
}

static void driver_abi(void **state)
{
	size_t i;

	for (i = 0; i < NUMBER(bad_numbers); ++i) {
		do_harm(CLASS "uverbs0/abi_version", &bad_numbers[i]);
		run();
		assert_told(WARNING, CLASS "uverbs0/abi_version'", bad_numbers[i].shown);
		assert_has("beta_0 " GOOD "1 devices\n");
		if (bad_numbers[i].kind == DIRECTORY) {
			teardown(state);
			setup(state);
		}
	}
}

static void device_names(void **state)
{
	static const struct harm harms[] = {
		{MISSING, NULL, 0, "cannot be read (No such file"},
		{CONTENT, "", 1, "is empty"},
		{CONTENT, "../../../etc\n", 1, "holds '../../../etc'"},
		{CONTENT, "a/b\n", 1, "holds 'a/b'"},
		{CONTENT, "..\n", 1, "holds '..'"},
		{CONTENT, "two names\n", 1, "holds 'two names'"},
		{CONTENT, "\x1b[2J\n", 1, "holds '?[2J'"},
		{CONTENT, "4", 64, "holds '" FORTY "...'"},
		{CONTENT, "4", 20000, "holds '" FORTY "...'"},
	};
	size_t i;

	(void)state;
	for (i = 0; i < NUMBER(harms); ++i) {
		/* MISSING comes first, so later cases find no file and write a new one. */
		do_harm(CLASS "uverbs0/ibdev", &harms[i]);
		run();
		assert_told(WARNING "ignoring ", CLASS "uverbs0/ibdev'", harms[i].shown);
		assert_has("beta_0 " GOOD "1 devices\n");
	}

	/* A good name, but no such device: the device has no attributes. */
	fake_file(root, CLASS "uverbs0/ibdev", "gamma_0\n");
	run();
	assert_told(WARNING, "class/infiniband/gamma_0/node_type'", "cannot be read");
	assert_has("gamma_0 type -1 guid 0 gid -1 errno 2 ..00 pkey -1 errno 2 0000\n");
	assert_has("beta_0 " GOOD "2 devices\n");
}

static void node_type(void **state)
{
	static const struct harm harms[] = {
		{CONTENT, "", 1, "is empty"},
		{CONTENT, "CA\n", 1, "holds 'CA'"},
		{CONTENT, "-1: CA\n", 1, "holds '-1: CA'"},
		{CONTENT, "99999999999999999999: CA\n", 1, "holds '99999999999999999999: CA'"},
		{CONTENT, "x", 9000, "holds 'xxxx"},
		{MISSING, NULL, 0, "cannot be read"},
	};
	size_t i;

	(void)state;
	for (i = 0; i < NUMBER(harms); ++i) {
		do_harm("class/infiniband/alpha_0/node_type", &harms[i]);
		run();
		assert_told(WARNING, "class/infiniband/alpha_0/node_type'", harms[i].shown);
		assert_has("alpha_0 type -1 guid 2c90300010203 ");
		assert_has("beta_0 " GOOD "2 devices\n");
	}
}

/* The calls return these errors themselves, so the library prints no line. */
static void tables(void **state)
{
	static const struct harm harms[] = {
		{CONTENT, "", 1, NULL},
		{CONTENT, "garbage\n", 1, NULL},
		{CONTENT, "0x12345\n", 1, NULL},
		{CONTENT, "0x80010\n", 1, NULL},
		{CONTENT, "0x8001 \n", 1, NULL},
		{CONTENT, "fe80:0000:0000:0000:0002:c903:0001:004\n", 1, NULL},
		{CONTENT, "fe80:0000:0000:0000:0002:c903:0001:0042:\n", 1, NULL},
		{CONTENT, "fe80:0000:0000:0000:0002:c9030:001:0042\n", 1, NULL},
		{CONTENT, "fe80:0000:0000:0000:0002:c9xx:0001:0042\n", 1, NULL},
		{CONTENT, "0002:c903:0001:02\n", 1, NULL},
		{CONTENT, "0002:c903:0001:0203:0405\n", 1, NULL},
		{CONTENT, "4", 70000, NULL},
	};
	size_t i;

	(void)state;
	for (i = 0; i < NUMBER(harms); ++i) {
		do_harm("class/infiniband/alpha_0/node_guid", &harms[i]);
		do_harm("class/infiniband/alpha_0/ports/1/gids/0", &harms[i]);
		do_harm("class/infiniband/alpha_0/ports/1/pkeys/0", &harms[i]);
		run();
		assert_has("alpha_0 type 1 ");
		assert_has(" gid -1 errno 22 ..00 pkey -1 errno 22 0000\n");
		if (!strstr(out, "alpha_0 type 1 guid 0 ") &&
		    !strstr(out, "alpha_0 type 1 guid 2c90300010002 "))
			fail_msg("case %zu: a GUID:\n%s", i, out);
		assert_has("beta_0 " GOOD "2 devices\n");
		assert_quiet();
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	static const struct CMUnitTest tests[] = {
		TEST(good),	    TEST(kernel_abi), TEST(driver_abi),
		TEST(device_names), TEST(node_type),  TEST(tables),
	};

	alarm(200);
	return cmocka_run_group_tests_name("bad sysfs", tests, NULL, NULL);
}
