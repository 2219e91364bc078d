// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* What the files of the library share among themselves: symbol versions, the kernel's ABI version,
 * messages, devices found, drivers. Never installed. */

#ifndef IBVERBS_H
#define IBVERBS_H

#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <errno.h>
#include <stdbool.h>
#include <infiniband/driver.h>

#ifdef HAVE_VALGRIND_MEMCHECK_H
#include <valgrind/memcheck.h>
#else
#define VALGRIND_MAKE_MEM_DEFINED(addr, len) ((void)(addr), (void)(len))
#endif

/*
 * Symbol versions. A function of which the 1.0 ABI has another form is defined as NAME_1_1 and bound with
 * default_symver(); its old form, NAME_1_0, with symver(). All others have their plain name, and
 * libibverbs.map gives them their version. The static library has the current functions only.
 *
 * Where the compiler has the attribute it knows the symbol. It does not look into assembly, and with
 * link-time optimization that may end up in another unit than the function.
 */
#ifdef PIC
#if defined(__has_attribute)
#if __has_attribute(__symver__)
#define SYMVER_ATTRIBUTE 1
#endif
#endif
#ifdef SYMVER_ATTRIBUTE
#define bind_symbol(function, symbol) \
	extern __typeof__(function) function __attribute__((__symver__(symbol)))
#else
#define bind_symbol(function, symbol) \
	__asm__(".symver " #function ", " symbol); \
	extern __typeof__(function) function
#endif
#define symver(function, name, version) bind_symbol(function, #name "@" #version)
#define default_symver(function, name) bind_symbol(function, #name "@@IBVERBS_1.1")
#else
#define symver(function, name, version) extern __typeof__(function) function
#define default_symver(function, name) extern __typeof__(function) name __attribute__((alias(#function)))
#endif

/* For what the library itself finds wrong: callers look at the return value or at errno, some at both. */
static inline int fail(int err)
{
	errno = err;
	return err;
}

/*
 * message.c: one line each on stderr, after "libibverbs: Warning: " or "libibverbs: Fatal: ".
 */
void ibverbs_warning(const char *format, ...) __attribute__((format(printf, 1, 2)));
void ibverbs_fatal(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * sysfs.c
 */

/* Reads a sysfs attribute by its whole path, as ibv_read_sysfs_file() does, but the text always ends with
 * a NUL. Its length, or -errno; -EOVERFLOW when it does not fit, and buf is full of its beginning. */
int sysfs_read_text(const char *path, char *buf, size_t size);

/* The names in a directory but those starting with '.', in their natural order (uverbs2 before uverbs10),
 * in an array that ends with NULL and is for names_free(). Their number, or -errno. */
int names_read(const char *path, char ***names);
void names_free(char **names);

/*
 * As getenv(), for what must not be believed in a program that has rights which its caller does not
 * have: set-uid, set-gid, capabilities of its file. NULL there.
 */
const char *trusted_getenv(const char *name);

/*
 * discovery.c: the uverbs devices of the machine
 */
struct uverbs_device {
	struct uverbs_device *next;
	char name[IBV_SYSFS_NAME_MAX];	/* uverbs0 */
	char ibdev[IBV_SYSFS_NAME_MAX];	/* mlx4_0 */
	char path[IBV_SYSFS_PATH_MAX];
	char ibdev_path[IBV_SYSFS_PATH_MAX];
	int abi_version;		/* of its kernel driver; 0: not given */
	bool claimed;
	bool declined;			/* by its own driver, which has told the user why */
};

/* The kernel's uverbs ABI version, valid once discovery has succeeded. */
extern int abi_ver;

/* Finds the devices and the drivers for them. Returns the number of devices that have one, in *list, an
 * array for the caller to free; 0 also when there is none. -errno on failure. Not reentrant: the caller
 * holds the lock of the device list. */
int discover_devices(struct ibv_device ***list);

/*
 * providers.c: drivers, and the plug-ins they come in
 */

/* Offers the device to every registered driver, in the order of registration. NULL if none takes it; dev->declined tells
 * whether one of them has said why. */
struct ibv_device *drivers_try(struct uverbs_device *dev);

/* Loads the plug-ins that the environment and the configuration directory name. */
void providers_load(void);

/* The warnings: for each device not claimed, why; for each plug-in that could not be used. */
void providers_report(const struct uverbs_device *devices);

/*
 * events.c: what an asynchronous event is about
 */
enum event_element { ELEMENT_PORT, ELEMENT_CQ, ELEMENT_QP, ELEMENT_SRQ, ELEMENT_XRC_RCV_QP };

/* Also ELEMENT_PORT for events about the device, or unknown: they carry no object. */
enum event_element event_element_of(uint32_t event_type);

/*
 * fork.c keeps books on registered memory: see ibv_dontfork_range().
 */

/*
 * The single completion channel of kernel ABI 1 and 2, which comes with the context: its abi_compat.
 * Guarded by the context's mutex.
 */
struct v2_channel {
	struct ibv_comp_channel channel;
	bool in_use;
};

#endif /* IBVERBS_H */
