// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: the library finds drivers by configuration and environment, and plug-ins by name. It
 * reports what is wrong with one of them in libibverbs's usual words, and the devices of the others
 * still work.
 */
#include "discovery_child.h"

static void configuration_grammar(void **state)
{
	char from[2 * FAKE_PATH_MAX], to[2 * FAKE_PATH_MAX];

	(void)state;
	fake_sysfs_device(tree, "uverbs0", "alpha_0", "fake_a");
	fake_sysfs_device(tree, "uverbs1", "beta_0", "fake_b");
	/* A file may have any name, and its last line need not end in a newline. */
	fake_file(tree, "config/some name",
		  "# driver no_such_1\n\n   # driver no_such_2\n \t driver\t%sfake_a rest\nbogus "
		  "no_such_3\ndriver %sfake_b",
		  PLUGINS "lib", PLUGINS "lib");
	fake_file(tree, "config/directory/file", "driver no_such_4\n");
	fake_file(tree, "elsewhere", "driver %sfake_silent\n", PLUGINS "lib");
	snprintf(from, sizeof(from), "%s/elsewhere", tree);
	snprintf(to, sizeof(to), "%s/config/link", tree);
	assert_int_equal(symlink(from, to), 0);
	/* Opening this file would block for ever. */
	snprintf(to, sizeof(to), "%s/config/fifo", tree);
	assert_int_equal(mkfifo(to, 0666), 0);

	run(print_devices);
	assert_contains(child_out, A_LINE("alpha_0", "uverbs0"));
	assert_contains(child_out, A_LINE("beta_0", "uverbs1"));
	assert_contains(child_out, "2 devices");
	assert_line(child_err, WARNING, "ignoring bad config directive", "bogus");
	assert_lacks(strstr(child_err, "bad config") + 1, "bad config");
	assert_lacks(child_err, NO_DRIVER);
	assert_lacks(child_log, "no_such");
	assert_contains(child_log, "fake_silent loaded");
	/* The driver of the last line comes first. */
	assert_order(child_log, "fake_b loaded", "fake_a loaded");
}

static void names_of_plugins(void **state)
{
	(void)state;
	fake_sysfs_device(tree, "uverbs0", "alpha_0", "fake_a");
	fake_sysfs_device(tree, "uverbs1", "beta_0", "fake_b");
	fake_file(tree, "config/a", "driver fake_a\n");
	fake_file(tree, "config/b", "driver " PLUGINS "libfake_b\n");

	run(print_devices);
	assert_contains(child_out, "2 devices");
	assert_contains(child_log, "dlopen libfake_a-rdmav2.so\n");
	/* This plug-in is not on the search path, but in the library's own directory. */
	assert_contains(child_log, "dlopen " IBV_LIBDIR "/libfake_a-rdmav2.so\n");
	assert_contains(child_log, "dlopen " PLUGINS "libfake_b-rdmav2.so\n");
	assert_string_equal(child_err, "");
}

static void environment_lists(void **state)
{
	(void)state;
	fake_sysfs_device(tree, "uverbs0", "alpha_0", "fake_a");
	fake_file(tree, "config/c", "driver %sfake_silent\n", PLUGINS "lib");
	setenv("RDMAV_DRIVERS", "no_such_1;" PLUGINS "libfake_b:" PLUGINS "libfake_a", 1);
	setenv("IBV_DRIVERS", "no_such_2", 1);

	run(print_devices);
	assert_contains(child_out, A_LINE("alpha_0", "uverbs0"));
	assert_order(child_log, "dlopen libno_such_1-rdmav2.so", "fake_b loaded");
	assert_order(child_log, "fake_b loaded", "fake_a loaded");
	assert_order(child_log, "fake_a loaded", "fake_silent loaded");
	assert_lacks(child_log, "no_such_2");
}

static void environment_second_choice(void **state)
{
	(void)state;
	fake_sysfs_device(tree, "uverbs0", "alpha_0", "fake_a");
	setenv("IBV_DRIVERS", PLUGINS "libfake_a", 1);
	run(print_devices);
	assert_contains(child_out, "1 devices");

	/* The variable is set, but empty. */
	setenv("RDMAV_DRIVERS", "", 1);
	run(print_devices);
	assert_contains(child_out, "0 devices");
}

static void missing_provider(void **state)
{
	(void)state;
	fake_sysfs_device(tree, "uverbs0", "alpha_0", "fake_a");
	fake_sysfs_device(tree, "uverbs1", "gamma_0", "no_such");
	fake_file(tree, "config/c", "driver fake_a\ndriver no_such\n");

	run(print_devices);
	assert_contains(child_out, A_LINE("alpha_0", "uverbs0"));
	assert_contains(child_out, "1 devices");
	assert_line(child_err, WARNING NO_DRIVER, "/class/infiniband_verbs/uverbs1", "gamma_0");
	assert_line(child_err, WARNING, "couldn't load driver 'no_such'", "libno_such-rdmav2.so");
	assert_line(child_err, WARNING, "couldn't load driver 'no_such'",
		    "(named in '" IBV_CONFIG_DIR "')");
	assert_lacks(child_err, "uverbs0");
}

/* What names a provider that is missing is what the user has to change. */
static void missing_provider_is_blamed_on_what_names_it(void **state)
{
	(void)state;
	fake_sysfs_device(tree, "uverbs0", "alpha_0", "fake_a");
	fake_file(tree, "config/c", "driver fake_a\n");
	setenv("RDMAV_DRIVERS", "no_such", 1);
	run(print_devices);
	assert_line(child_err, WARNING, "couldn't load driver 'no_such'",
		    "take it out of 'RDMAV_DRIVERS'.");
	assert_lacks(child_err, IBV_CONFIG_DIR);

	unsetenv("RDMAV_DRIVERS");
	setenv("IBV_DRIVERS", "no_such", 1);
	run(print_devices);
	assert_line(child_err, WARNING, "couldn't load driver 'no_such'",
		    "take it out of 'IBV_DRIVERS'.");

	unsetenv("IBV_DRIVERS");
	fake_file(tree, "config/c", "driver fake_a\ndriver no_such\n");
	run(print_devices);
	assert_line(child_err, WARNING, "couldn't load driver 'no_such'",
		    "take it out of '" IBV_CONFIG_DIR "'.");

	/* Where a device has no driver, that is what the warning is about. */
	fake_sysfs_device(tree, "uverbs1", "gamma_0", "no_such");
	setenv("RDMAV_DRIVERS", "no_such", 1);
	run(print_devices);
	assert_line(child_err, WARNING NO_DRIVER, "gamma_0", "(named in 'RDMAV_DRIVERS')");
	assert_lacks(child_err, IBV_CONFIG_DIR);
}

static void broken_provider(void **state)
{
	(void)state;
	fake_sysfs_device(tree, "uverbs0", "alpha_0", "fake_a");
	fake_sysfs_device(tree, "uverbs1", "gamma_0", "fake_broken");
	fake_file(tree, "config/c", "driver fake_broken\ndriver fake_a\n");

	run(print_devices);
	assert_contains(child_out, A_LINE("alpha_0", "uverbs0"));
	assert_contains(child_out, "1 devices");
	assert_line(child_err, WARNING, "libfake_broken-rdmav2.so", "gamma_0");
	assert_line(child_err, WARNING, "couldn't load driver 'fake_broken'",
		    "a_function_that_is_nowhere");
}

static void provider_without_operations(void **state)
{
	(void)state;
	fake_sysfs_device(tree, "uverbs0", "alpha_0", "fake_a");
	fake_sysfs_device(tree, "uverbs1", "gamma_0", "fake_no_ops");
	fake_file(tree, "config/c", "driver fake_no_ops\ndriver fake_a\n");

	run(print_devices);
	assert_contains(child_out, A_LINE("alpha_0", "uverbs0"));
	assert_contains(child_out, "1 devices");
	assert_line(child_err, WARNING, "libfake_no_ops-rdmav2.so", "gamma_0");
}

static void provider_of_1_0_only(void **state)
{
	(void)state;
	fake_sysfs_device(tree, "uverbs0", "alpha_0", "fake_a");
	fake_sysfs_device(tree, "uverbs1", "gamma_0", "fake_1_0");
	fake_file(tree, "config/c", "driver fake_1_0\ndriver fake_a\n");

	run(print_devices);
	assert_contains(child_out, A_LINE("alpha_0", "uverbs0"));
	assert_contains(child_out, "1 devices");
	assert_line(child_err, WARNING, "libfake_1_0-rdmav2.so", "openib_driver_init");
	assert_line(child_err, WARNING, "libfake_1_0-rdmav2.so", "gamma_0");
	assert_lacks(child_log, "called");
}

static void provider_of_another_abi(void **state)
{
	(void)state;
	fake_sysfs_device(tree, "uverbs0", "alpha_0", "fake_a");
	fake_sysfs_device(tree, "uverbs1", "gamma_0", "fake_b");
	fake_file(tree, "class/infiniband_verbs/uverbs1/abi_version", "17\n");
	fake_file(tree, "config/c", "driver fake_a\ndriver fake_b\n");

	run(print_devices);
	assert_contains(child_out, A_LINE("alpha_0", "uverbs0"));
	assert_contains(child_out, "1 devices");
	assert_contains(child_log, "fake_b offered uverbs1 17");
	assert_line(child_err, WARNING NO_DRIVER, "libfake_b-rdmav2.so", "gamma_0");
	assert_line(child_err, NO_DRIVER, "uverbs1", "17");
	assert_ptr_equal(strchr(child_err, '\n'), child_err + strlen(child_err) - 1);
}

/* If the provider has printed the reason, the library prints nothing. */
static void provider_that_says_why(void **state)
{
	(void)state;
	fake_sysfs_device(tree, "uverbs0", "alpha_0", "fake_a");
	fake_sysfs_device(tree, "uverbs1", "gamma_0", "fake_b");
	fake_file(tree, "class/infiniband_verbs/uverbs1/abi_version", "17\n");
	fake_file(tree, "config/c", "driver fake_a\ndriver fake_b\n");
	setenv("FAKE_DECLINES", "1", 1);

	run(print_devices);
	unsetenv("FAKE_DECLINES");
	assert_contains(child_out, A_LINE("alpha_0", "uverbs0"));
	assert_contains(child_out, "1 devices");
	assert_contains(child_err, "fake_b cannot drive ");
	assert_contains(child_err, "/class/infiniband_verbs/uverbs1\n");
	assert_ptr_equal(strchr(child_err, '\n'), child_err + strlen(child_err) - 1);
}

static void missing_configuration(void **state)
{
	char path[2 * FAKE_PATH_MAX];

	(void)state;
	fake_sysfs_device(tree, "uverbs0", "alpha_0", "fake_a");
	snprintf(path, sizeof(path), "%s/config", tree);
	assert_int_equal(rmdir(path), 0);
	setenv("RDMAV_DRIVERS", PLUGINS "libfake_a", 1);

	run(print_devices);
	assert_contains(child_out, "1 devices");
	assert_line(child_err, WARNING, "couldn't open config directory", IBV_CONFIG_DIR);
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

/*
 * Drivers that are already registered claim all devices, so the library neither loads nor looks for
 * others.
 */
static void registered_before(void **state)
{
	(void)state;
	fake_file(tree, "config/c", "driver no_such\nnonsense\n");
	setenv("RDMAV_DRIVERS", "no_such", 1);
	fake_sysfs_device(tree, "uverbs0", "alpha_0", "fake_a");
	run(with_static_driver);
	assert_contains(child_out, A_LINE("alpha_0", "uverbs0"));
	assert_string_equal(child_log, "");
	assert_string_equal(child_err, "");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(configuration_grammar),
		TEST(names_of_plugins),
		TEST(environment_lists),
		TEST(environment_second_choice),
		TEST(missing_provider),
		TEST(broken_provider),
		TEST(provider_without_operations),
		TEST(provider_of_1_0_only),
		TEST(provider_of_another_abi),
		TEST(provider_that_says_why),
		TEST(missing_configuration),
		TEST(registered_before),
		TEST(missing_provider_is_blamed_on_what_names_it),
	};

	return cmocka_run_group_tests_name("providers", tests, NULL, NULL);
}
