// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A provider plug-in for the discovery tests, built several times. It takes the devices whose
 * attribute device/driver_name is FAKE_NAME and whose kernel driver has ABI version 3. It notes in
 * the file $FAKE_LOG that it was loaded and which devices it was offered. With $FAKE_DECLINES it
 * reports itself what it does not drive.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/driver.h>

#ifdef FAKE_BROKEN
extern void a_function_that_is_nowhere(void);
void needs_it(void);
void needs_it(void)
{
	a_function_that_is_nowhere();
}
#endif

static void note(const char *what, const char *detail, int number)
{
	const char *log = getenv("FAKE_LOG");
	char line[256];
	int fd;

	if (!log)
		return;
	fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0666);
	if (fd < 0)
		return;
	snprintf(line, sizeof(line), "%s %s%s%s %d\n", FAKE_NAME, what, *detail ? " " : "", detail,
		 number);
	if (write(fd, line, strlen(line)) < 0)
		abort();
	close(fd);
}

#ifndef FAKE_1_0
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

static struct ibv_device *init(const char *uverbs_sys_path, int abi_version)
{
	struct ibv_device *device;
	char name[64] = "";

	note("offered", strrchr(uverbs_sys_path, '/') + 1, abi_version);
	if (ibv_read_sysfs_file(uverbs_sys_path, "device/driver_name", name, sizeof(name)) < 0)
		return NULL;
	if (strcmp(name, FAKE_NAME))
		return NULL;
	if (abi_version != 3) {
		/* Like a provider that prints the reason itself, if the test asks for that. */
		errno = EAGAIN;
		if (getenv("FAKE_DECLINES")) {
			fprintf(stderr, FAKE_NAME " cannot drive %s\n", uverbs_sys_path);
			errno = EPROTONOSUPPORT;
		}
		return NULL;
	}

	device = calloc(1, sizeof(*device));
	if (!device)
		return NULL;
#ifndef FAKE_NO_OPS
	device->ops.alloc_context = alloc_context;
	device->ops.free_context = free_context;
#else
	(void)alloc_context;
	(void)free_context;
#endif
	return device;
}

static __attribute__((constructor)) void register_driver(void)
{
	note("loaded", "", 0);
#ifndef FAKE_SILENT
	ibv_register_driver(FAKE_NAME, init);
#else
	(void)init;
#endif
}
#else
struct ibv_device *openib_driver_init(void *sysfs_class_device);
struct ibv_device *openib_driver_init(void *sysfs_class_device)
{
	(void)sysfs_class_device;
	note("called", "", 0);
	return NULL;
}
#endif
