// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What libibverbs reads: a tree of sysfs, the files of its configuration directory, and the
 * environment's list of drivers. The tree has two devices. An input says which files are different,
 * missing, or something else. Then the library discovers the devices, and the target asks for their
 * GUIDs, GIDs and P_Keys.
 *
 *	BYTE	OF A RECORD
 *	0	which file (modulo their number)
 *	1	bits 0-2: contents, a directory, missing, a link to itself, contents many times over, another name
 *	2	bytes that follow
 *	3..	the contents, or the name
 */
#include <ftw.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/types.h>

#include "providers.c"

#include "tests/abi/fake_sysfs.h"
#include "xrc.h"

enum kind { CONTENTS, DIRECTORY, MISSING, LINK, LONG, NAME, KINDS };

#define VERBS "sys/class/infiniband_verbs/"
#define IB    "sys/class/infiniband/"

/* The last one is the environment. */
static const struct file {
	const char *path, *text;
} files[] = {
	{VERBS "abi_version", "6\n"},
	{VERBS "uverbs0/ibdev", "mlx4_0\n"},
	{VERBS "uverbs0/abi_version", "3\n"},
	{VERBS "uverbs0/vendor", "0x15b3\n"},
	{VERBS "uverbs1/ibdev", "mthca0\n"},
	{VERBS "uverbs1/abi_version", "1\n"},
	{VERBS "uverbs1/vendor", "0x15b3\n"},
	{IB "mlx4_0/node_type", "1: CA\n"},
	{IB "mlx4_0/node_guid", "0002:c903:0001:0203\n"},
	{IB "mlx4_0/ports/1/gids/0", "fe80:0000:0000:0000:0002:c903:0001:0204\n"},
	{IB "mlx4_0/ports/1/pkeys/0", "0xffff\n"},
	{IB "mthca0/node_type", "1: CA\n"},
	{IB "mthca0/node_guid", "0002:c903:0001:0303\n"},
	{IB "mthca0/ports/1/gids/0", "fe80:0000:0000:0000:0002:c903:0001:0304\n"},
	{IB "mthca0/ports/1/pkeys/0", "0x8001\n"},
	{"etc/mlx4.driver", "# a comment\ndriver mlx4\n"},
	{"etc/mthca.driver", "driver mthca\n"},
	{NULL, ""},
};
enum { FILES = sizeof(files) / sizeof(files[0]) };

char fuzz_config_dir[64];
static char base[FAKE_PATH_MAX];
static bool changed[FILES];
static char *extra; /* an entry that an input named */

/* What the library would print. It is formatted so that the sanitizers check it. */
static void say(const char *format, va_list args)
{
	static char line[65536];
	int len = vsnprintf(line, sizeof(line), format, args);

	if (len < 0 || !line[0])
		abort();
}

void ibverbs_warning(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(format, args);
	va_end(args);
}

void ibverbs_fatal(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(format, args);
	va_end(args);
}

/* These are never called, because no device is opened. */

struct xrc_context *xrc_chosen(const struct ibv_context *context)
{
	(void)context;
	return NULL;
}

void xrc_release(struct xrc_context *xrc)
{
	(void)xrc;
}

int xrc_supported(struct ibv_context *context)
{
	(void)context;
	return 0;
}

/* ---- a driver that takes each device whose attribute names it ---- */

static struct ibv_context *alloc_context(struct ibv_device *device, int fd)
{
	(void)device;
	(void)fd;
	return NULL;
}

static void free_context(struct ibv_context *context)
{
	(void)context;
}

static struct ibv_device *init(const char *path, int abi_version)
{
	struct ibv_device *device;
	char text[8];
	int len;

	len = ibv_read_sysfs_file(path, "vendor", text, sizeof(text));
	if (len > (int)sizeof(text))
		abort();
	if (len < 4 || memcmp(text, "0x15", 4) || abi_version > 100) {
		errno = len == 3 ? EPROTONOSUPPORT : ENODEV;
		return NULL;
	}
	device = calloc(1, sizeof(*device));
	if (!device)
		abort();
	device->ops.alloc_context = len == 5 ? NULL : alloc_context;
	device->ops.free_context = free_context;
	if (len == 5) {
		free(device);
		return NULL;
	}
	return device;
}

/* ---- the tree ---- */

static void path_of(const char *name, char *path)
{
	snprintf(path, FAKE_PATH_MAX + 512, "%s/%s", base, name);
}

static void set_up(void)
{
	char sys[FAKE_PATH_MAX + 512];
	unsigned int i;

	fake_tree_make(base);
	path_of("sys", sys);
	setenv("SYSFS_PATH", sys, 1);
	snprintf(fuzz_config_dir, sizeof(fuzz_config_dir), "%.50s/etc", base);
	for (i = 0; files[i].path; i++)
		fake_file(base, files[i].path, "%s", files[i].text);
	ibv_register_driver("fuzz", init);
}

static void take_down(void) __attribute__((destructor));
static void take_down(void)
{
	if (base[0])
		fake_tree_remove(base);
}

static void put_file(const char *path, const uint8_t *data, size_t len, unsigned int times)
{
	FILE *f = fopen(path, "w");

	if (!f)
		fake_die("fopen", path);
	while (times--)
		fwrite(data, 1, len, f);
	fclose(f);
}

static void put_back(unsigned int i)
{
	char path[FAKE_PATH_MAX + 512];

	changed[i] = false;
	if (!files[i].path) {
		unsetenv("RDMAV_DRIVERS");
		return;
	}
	path_of(files[i].path, path);
	(void)remove(path);
	fake_file(base, files[i].path, "%s", files[i].text);
}

/* Adds an entry beside the file, under any name that a directory takes. */
static void add_name(unsigned int i, const uint8_t *data, size_t len)
{
	char path[FAKE_PATH_MAX + 512], *name;
	size_t k;

	if (!files[i].path || extra || !len)
		return;
	path_of(files[i].path, path);
	name = strrchr(path, '/') + 1;
	if (strstr(files[i].path, "uverbs"))
		name = strstr(path, "uverbs");
	for (k = 0; k < len && k < 255; k++)
		name[k] = data[k] && data[k] != '/' ? data[k] : '_';
	name[k] = '\0';
	if (!strcmp(name, ".") || !strcmp(name, ".."))
		return;
	if (access(path, F_OK) == 0)
		return;
	if (data[0] & 1 ? mkdir(path, 0700) : symlink("uverbs0", path))
		return;
	extra = strdup(path);
}

static void change(unsigned int i, unsigned int kind, const uint8_t *data, size_t len)
{
	char path[FAKE_PATH_MAX + 512], text[256];

	if (kind == NAME) {
		add_name(i, data, len);
		return;
	}
	if (changed[i])
		put_back(i);
	changed[i] = true;
	if (!files[i].path) {
		memcpy(text, data, len);
		text[len] = '\0';
		setenv("RDMAV_DRIVERS", text, 1);
		return;
	}
	path_of(files[i].path, path);
	(void)remove(path);
	switch (kind) {
	case CONTENTS:
		put_file(path, data, len, 1);
		break;
	case DIRECTORY:
		(void)mkdir(path, 0700);
		break;
	case LINK:
		/* Fails where a directory with something in it could not be removed. */
		if (symlink(path, path))
			return;
		break;
	case LONG:
		put_file(path, data, len, 64);
		break;
	}
}

/* ---- what the target asks for ---- */

static void ask(struct ibv_device *device)
{
	struct ibv_context context = {.device = device};
	union ibv_gid gid;
	uint16_t pkey;
	int i;

	if (strlen(device->name) >= sizeof(device->name) ||
	    strlen(device->dev_name) >= sizeof(device->dev_name) ||
	    strlen(device->dev_path) >= sizeof(device->dev_path) || strchr(device->name, '/'))
		abort();
	(void)ibv_get_device_guid(device);
	for (i = 0; i < 2; i++) {
		(void)ibv_query_gid(&context, 1, i, &gid);
		(void)ibv_query_pkey(&context, 1, i, &pkey);
	}
}

/* Clears what the library keeps from one discovery to the next. */
static void forget(void)
{
	struct plugin *plugin;

	while ((plugin = plugins)) {
		plugins = plugin->next;
		free(plugin->error);
		free(plugin->name);
		free(plugin);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ibv_device **list = NULL;
	unsigned int i;
	int count;
	size_t n;

	if (!base[0])
		set_up();
	for (; size >= 3; data += 3 + n, size -= 3 + n) {
		n = data[2] < size - 3 ? data[2] : size - 3;
		change(data[0] % FILES, data[1] % 8 % KINDS, data + 3, n);
	}
	count = discover_devices(&list);
	for (int k = 0; k < count; k++) {
		ask(list[k]);
		free(list[k]);
	}
	free(list);
	forget();
	if (extra) {
		(void)remove(extra);
		free(extra);
		extra = NULL;
	}
	for (i = 0; i < FILES; i++)
		if (changed[i])
			put_back(i);
	return 0;
}
