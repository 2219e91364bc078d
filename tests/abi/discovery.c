// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: the library finds devices in sysfs, and looks again as long as there are none. It
 * reports what is wrong in libibverbs's usual words, and heeds the environment and the limits of
 * the process.
 */
#include <errno.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

#include "discovery_child.h"

static void again_with_devices(void)
{
	print_devices();
	fake_sysfs_abi(tree, 6);
	fake_sysfs_device(tree, "uverbs0", "alpha_0", "fake_a");
	print_devices();
}

static void no_kernel_support(void **state)
{
	char path[2 * FAKE_PATH_MAX];

	(void)state;
	snprintf(path, sizeof(path), "%s/class", tree);
	fake_tree_remove(path);
	fake_file(tree, "config/c", "driver fake_a\n");
	/* The library is silent, and does not look again. */
	run(again_with_devices);
	assert_string_equal(child_out,
			    "none, errno ENOSYS, count 0\nnone, errno ENOSYS, count 0\n");
	assert_string_equal(child_err, "");

	/* A class without a version counts as no class. */
	fake_sysfs_device(tree, "uverbs0", "alpha_0", "fake_a");
	snprintf(path, sizeof(path), "%s/class/infiniband_verbs/abi_version", tree);
	assert_int_equal(unlink(path), 0);
	run(print_devices);
	assert_string_equal(child_out, "none, errno ENOSYS, count 0\n");
	assert_string_equal(child_err, "");
}

static void kernel_abi_out_of_range(void **state)
{
	static const int versions[] = {0, 7};
	size_t i;

	(void)state;
	for (i = 0; i < 2; ++i) {
		fake_sysfs_abi(tree, versions[i]);
		run(print_devices);
		assert_string_equal(child_out, "none, errno ENOSYS, count 0\n");
		assert_line(child_err, "libibverbs: Fatal: ", "kernel ABI version",
			    "doesn't match library version");
	}
}

/* The library does not remember that it found nothing, */
static void nothing_is_not_cached(void **state)
{
	(void)state;
	fake_file(tree, "config/c", "driver fake_a\n");
	run(again_with_devices);
	assert_string_equal(child_out, "0 devices\n" A_LINE("alpha_0", "uverbs0") "1 devices\n");
}

static void again_without_devices(void)
{
	char path[2 * FAKE_PATH_MAX];

	print_devices();
	snprintf(path, sizeof(path), "%s/class", tree);
	fake_tree_remove(path);
	fake_sysfs_device(tree, "uverbs1", "alpha_1", "fake_a");
	fake_file(tree, "class/infiniband/alpha_0/node_guid", "0002:c903:0001:0203\n");
	print_devices();
}

/* but it remembers that it found something. */
static void devices_are_cached(void **state)
{
	const char *loaded;

	(void)state;
	fake_file(tree, "config/c", "driver fake_a\n");
	fake_sysfs_device(tree, "uverbs0", "alpha_0", "fake_a");
	run(again_without_devices);
	assert_string_equal(child_out, A_LINE("alpha_0", "uverbs0") "1 devices\n" A_LINE(
					       "alpha_0", "uverbs0") "1 devices\n");
	loaded = strstr(child_log, "fake_a loaded");
	assert_non_null(loaded);
	assert_null(strstr(loaded + 1, "fake_a loaded"));
}

/*
 * Devices that no driver claims count as no devices: the library starts again, with new memory and
 * a new list.
 */
static void unclaimed_are_looked_at_again(void)
{
	print_devices();
	print_devices();
	fake_file(tree, "class/infiniband_verbs/uverbs0/device/driver_name", "fake_a\n");
	print_devices();
}

static void retry_after_unclaimed(void **state)
{
	(void)state;
	fake_file(tree, "config/c", "driver fake_a\n");
	fake_sysfs_device(tree, "uverbs0", "alpha_0", "fake_b");
	run(unclaimed_are_looked_at_again);
	assert_string_equal(child_out,
			    "0 devices\n0 devices\n" A_LINE("alpha_0", "uverbs0") "1 devices\n");
}

static void entries_of_the_class(void **state)
{
	char from[2 * FAKE_PATH_MAX], to[2 * FAKE_PATH_MAX];

	(void)state;
	fake_file(tree, "config/c", "driver fake_a\n");
	fake_sysfs_device(tree, ".hidden", "hidden_0", "fake_a");
	fake_file(tree, "class/infiniband_verbs/uverbs7", "a file\n");
	fake_sysfs_device(tree, "uverbs1", "alpha_1", "fake_a");
	fake_sysfs_device(tree, "uverbs2", "alpha_2", "fake_a");
	snprintf(to, sizeof(to), "%s/class/infiniband_verbs/uverbs2/ibdev", tree);
	assert_int_equal(unlink(to), 0);
	/* The library follows links. */
	snprintf(from, sizeof(from), "%s/class/infiniband_verbs/uverbs1", tree);
	snprintf(to, sizeof(to), "%s/devices", tree);
	assert_int_equal(rename(from, to), 0);
	assert_int_equal(symlink(to, from), 0);

	run(print_devices);
	assert_string_equal(child_out, A_LINE("alpha_1", "uverbs1") "1 devices\n");
	assert_line(child_err, WARNING, "uverbs2", "ibdev");
	assert_lacks(child_err, "uverbs7");
}

static void no_driver_abi(void **state)
{
	char path[2 * FAKE_PATH_MAX];

	(void)state;
	fake_file(tree, "config/c", "driver fake_a\n");
	fake_sysfs_device(tree, "uverbs0", "alpha_0", "fake_a");
	snprintf(path, sizeof(path), "%s/class/infiniband_verbs/uverbs0/abi_version", tree);
	assert_int_equal(unlink(path), 0);
	run(print_devices);
	assert_contains(child_log, "fake_a offered uverbs0 0\n");
}

static void node_types(void **state)
{
	static const char *const types[] = {"1: CA",   "2: switch", "3: router",
					    "4: RNIC", "5: new",    "0: nothing"};
	char path[2 * FAKE_PATH_MAX], uverbs[16], name[16];
	size_t i;

	(void)state;
	fake_file(tree, "config/c", "driver fake_a\n");
	for (i = 0; i < 6; ++i) {
		snprintf(uverbs, sizeof(uverbs), "uverbs%zu", i);
		snprintf(name, sizeof(name), "alpha_%zu", i);
		fake_sysfs_device(tree, uverbs, name, "fake_a");
		snprintf(path, sizeof(path), "class/infiniband/%s/node_type", name);
		fake_file(tree, path, "%s\n", types[i]);
	}
	fake_sysfs_device(tree, "uverbs6", "alpha_6", "fake_a");
	snprintf(path, sizeof(path), "%s/class/infiniband/alpha_6/node_type", tree);
	assert_int_equal(unlink(path), 0);

	run(print_devices);
	assert_contains(child_out, "alpha_0 uverbs0 1 0 ");
	assert_contains(child_out, "alpha_1 uverbs1 2 0 ");
	assert_contains(child_out, "alpha_2 uverbs2 3 0 ");
	assert_contains(child_out, "alpha_3 uverbs3 4 1 ");
	assert_contains(child_out, "alpha_4 uverbs4 -1 -1 ");
	assert_contains(child_out, "alpha_5 uverbs5 -1 -1 ");
	assert_contains(child_out, "alpha_6 uverbs6 -1 -1 ");
	assert_contains(child_out, "7 devices");
	assert_line(child_err, WARNING, "node_type", "alpha_6");
	assert_lacks(child_err, "alpha_4");
}

static void print_sysfs_path(void)
{
	printf("%s\n", ibv_get_sysfs_path());
}

static void sysfs_path(void **state)
{
	char with_slashes[2 * FAKE_PATH_MAX];

	(void)state;
	snprintf(with_slashes, sizeof(with_slashes), "%s///", tree);
	setenv("SYSFS_PATH", with_slashes, 1);
	run(print_sysfs_path);
	assert_int_equal(strncmp(child_out, tree, strlen(tree)), 0);
	assert_string_equal(child_out + strlen(tree), "\n");

	unsetenv("SYSFS_PATH");
	run(print_sysfs_path);
	assert_string_equal(child_out, "/sys\n");
}

static int started_by_another;

/*
 * Takes precedence over the C library's getuid(), also in libibverbs: without root a process cannot
 * have two users.
 */
uid_t getuid(void)
{
	return syscall(SYS_getuid) + started_by_another;
}

static void as_set_uid(void)
{
	/* As in a set-uid program: the real user is still root, the effective one nobody. */
	if (!geteuid() && setresuid(-1, 65534, -1))
		_exit(98);
	started_by_another = getuid() == geteuid();
	print_sysfs_path();
}

static void set_uid_programs_trust_nothing(void **state)
{
	(void)state;
	run(as_set_uid);
	assert_string_equal(child_out, "/sys\n");
}

/*
 * What a program prints whose file has given it rights. It is a copy of this program, after exec.
 */
static const char *copy_of_this;

static int say_and_end(void)
{
	/* The file system or the container may have taken the rights away. */
	if (!getauxval(AT_SECURE)) {
		puts("no rights");
		return 0;
	}
	puts(ibv_get_sysfs_path());
	ibv_free_device_list(ibv_get_device_list(NULL));
	return 0;
}

static void run_the_copy(void)
{
	const char *emulator = getenv("EMULATOR");

	/*
	 * The system cannot execute a program of another machine, and an emulator passes on no
	 * rights.
	 */
	if (emulator && *emulator) {
		puts("no rights");
		fflush(NULL);
		_exit(0);
	}
	fflush(NULL);
	execl(copy_of_this, "copy", "say", (char *)NULL);
	_exit(97);
}

static void as_somebody(void)
{
	if (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534))
		_exit(98);
	run_the_copy();
}

/* The copy uses this build's library too, because the library's directory is in the program. */
static void copy_this_program(char path[2 * FAKE_PATH_MAX])
{
	char buf[65536];
	int from = open("/proc/self/exe", O_RDONLY), to;
	ssize_t n;

	snprintf(path, 2 * FAKE_PATH_MAX, "%s/copy", tree);
	to = open(path, O_WRONLY | O_CREAT | O_EXCL, 0755);
	assert_true(from >= 0 && to >= 0);
	while ((n = read(from, buf, sizeof(buf))) > 0)
		assert_int_equal(write(to, buf, n), n);
	close(from);
	close(to);
	assert_int_equal(chmod(tree, 0777), 0);
	copy_of_this = path;
}

static void expect_no_trust(void (*child)(void))
{
	setenv("RDMAV_DRIVERS", PLUGINS "libfake_a", 1);
	setenv("IBV_DRIVERS", PLUGINS "libfake_b", 1);
	run(child);
	if (!strcmp(child_out, "no rights\n")) {
		print_message("# SKIP programs get no rights by their files here\n");
		return;
	}
	assert_string_equal(child_out, "/sys\n");
	assert_lacks(child_log, "loaded");
}

static void set_gid_programs_trust_nothing(void **state)
{
	char path[2 * FAKE_PATH_MAX];

	(void)state;
	if (geteuid()) {
		print_message("# SKIP only root makes a file somebody else's\n");
		return;
	}
	copy_this_program(path);
	assert_int_equal(chown(path, -1, 65534), 0);
	assert_int_equal(chmod(path, 02755), 0);
	expect_no_trust(run_the_copy);
}

static void programs_with_capabilities_trust_nothing(void **state)
{
	/*
	 * CAP_DAC_OVERRIDE, permitted and effective: struct vfs_cap_data, revision 2. It lets the
	 * program find this build's library below /root, too, where others may not look. Without it
	 * another library would be loaded.
	 */
	static const unsigned char cap[20] = {1, 0, 0, 2, 2};
	char path[2 * FAKE_PATH_MAX];

	(void)state;
	if (geteuid()) {
		print_message("# SKIP only root gives a file capabilities\n");
		return;
	}
	copy_this_program(path);
	if (setxattr(path, "security.capability", cap, sizeof(cap), 0)) {
		print_message("# SKIP no capabilities of files here: %s\n", strerror(errno));
		return;
	}
	expect_no_trust(as_somebody);
}

static void with_little_memory(void)
{
	struct rlimit limit = {32768, 32768};

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
	assert_line(child_err, WARNING, "RLIMIT_MEMLOCK is 32768", "ulimit -l");
	run(print_devices);
	if (!geteuid())
		assert_lacks(child_err, "RLIMIT_MEMLOCK");
}

static void fork_safe_child(void)
{
	char *page = aligned_alloc(65536, 65536);

	print_devices();
	/* The first registration without fork support makes it too late for fork support. */
	ibv_dontfork_range(page, 65536);
	printf("fork_init %d\n", ibv_fork_init());
}

static void fork_safe(void **state)
{
	(void)state;
	run(fork_safe_child);
	assert_contains(child_out, "fork_init 22\n");
	setenv("RDMAV_FORK_SAFE", "", 1);
	run(fork_safe_child);
	assert_contains(child_out, "fork_init 0\n");
	unsetenv("RDMAV_FORK_SAFE");
	setenv("IBV_FORK_SAFE", "0", 1);
	run(fork_safe_child);
	assert_contains(child_out, "fork_init 0\n");
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		TEST(no_kernel_support),
		TEST(kernel_abi_out_of_range),
		TEST(nothing_is_not_cached),
		TEST(devices_are_cached),
		TEST(retry_after_unclaimed),
		TEST(entries_of_the_class),
		TEST(no_driver_abi),
		TEST(node_types),
		TEST(sysfs_path),
		TEST(set_uid_programs_trust_nothing),
		TEST(locked_memory),
		TEST(fork_safe),
		TEST(set_gid_programs_trust_nothing),
		TEST(programs_with_capabilities_trust_nothing),
	};

	if (argc == 2 && !strcmp(argv[1], "say"))
		return say_and_end();

	return cmocka_run_group_tests_name("discovery", tests, NULL, NULL);
}
