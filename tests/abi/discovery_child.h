// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What the tests of discovery share. Each case runs in a child, in a directory tree of its own. The
 * configuration directory and the library's own directory are compiled into the library. So this
 * test stands in for functions of the C library, and leads paths below these directories to the
 * tree.
 */
#ifndef DISCOVERY_CHILD_H
#define DISCOVERY_CHILD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fake_sysfs.h"

#include <infiniband/driver.h>

#define PLUGINS	  FAKE_PLUGIN_DIR "/"
#define WARNING	  "libibverbs: Warning: "
#define NO_DRIVER "no userspace device-specific driver found for"
/* What print_devices() prints for a good device. */
#define A_LINE(dev, uverbs) dev " " uverbs " 1 0 0002c90300010203 1 1\n"

extern char tree[FAKE_PATH_MAX];
extern char child_out[16384], child_err[16384], child_log[16384];

/*
 * For each test: a tree with nothing but the kernel's ABI version, and an environment that names
 * this tree only.
 */
int make_tree(void **state);
int remove_tree(void **state);
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_tree, remove_tree)

/* Runs the function in a child; what it prints, writes to stderr and logs is in the texts above. */
void run(void (*child)(void));

/* For a child: one line for each device, or the errno. */
void print_devices(void);

void assert_contains(const char *text, const char *part);
void assert_lacks(const char *text, const char *part);
void assert_order(const char *text, const char *first, const char *second);
/* Asserts that one line of the text contains all the parts. */
void assert_line(const char *text, const char *part1, const char *part2, const char *part3);

#endif
