// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* What the files of the library share: symbol versions, the kernel's ABI version, messages,
 * devices, drivers. Not installed. */

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
 * Symbol versions. If a function has another form in the 1.0 ABI, the current form is NAME_1_1 and
 * is bound with default_symver(), the old form is NAME_1_0 and is bound with symver(). All other
 * functions have their plain name, and libibverbs.map gives them their version. The static library
 * contains the current functions only.
 *
 * If the compiler has the attribute, use it, because the compiler then knows of the symbol. It does
 * not read assembly, which link-time optimization may move to a unit without the function.
 */
#ifdef PIC
#if defined(__has_attribute)
#if __has_attribute(__symver__)
#define SYMVER_ATTRIBUTE 1
#endif
#endif
#ifdef SYMVER_ATTRIBUTE
#define bind_symbol(function, symbol)                                                              \
	extern __typeof__(function) function __attribute__((__symver__(symbol)))
#else
#define bind_symbol(function, symbol)                                                              \
	__asm__(".symver " #function ", " symbol);                                                 \
	extern __typeof__(function) function
#endif
#define symver(function, name, version) bind_symbol(function, #name "@" version)
#define default_symver(function, name)	bind_symbol(function, #name "@@IBVERBS_1.1")
#else
#define symver(function, name, version) extern __typeof__(function) function
#define default_symver(function, name)                                                             \
	extern __typeof__(function) name __attribute__((alias(#function)))
#endif

/*
 * For errors that the library itself detects. Some callers check the return value, some errno, some
 * both.
 */
static inline int fail(int err)
{
	errno = err;
	return err;
}

/*
 * message.c: each call prints one line on stderr, after "libibverbs: Warning: " or "libibverbs:
 * Fatal: ".
 */
void ibverbs_warning(const char *format, ...) __attribute__((format(printf, 1, 2)));
void ibverbs_fatal(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * sysfs.c
 */

/* Reads a sysfs attribute by its full path, like ibv_read_sysfs_file(), but always NUL-terminates
 * the text. Returns the length or -errno. -EOVERFLOW: the text is too long, and its beginning fills
 * buf. */
int sysfs_read_text(const char *path, char *buf, size_t size);

/* Reads the names in a directory, except those that start with '.', into a NULL-terminated array in
 * natural order (uverbs2 before uverbs10). Free it with names_free(). Returns their number or
 * -errno. */
int names_read(const char *path, char ***names);
void names_free(char **names);

/*
 * getenv() for variables that a program must ignore if it has rights that its caller does not have,
 * from set-uid, set-gid or file capabilities. Returns NULL in such a program.
 */
const char *trusted_getenv(const char *name);

/* discovery.c: the uverbs devices of the machine */
struct uverbs_device {
	struct uverbs_device *next;
	char name[IBV_SYSFS_NAME_MAX];	/* uverbs0 */
	char ibdev[IBV_SYSFS_NAME_MAX]; /* mlx4_0 */
	char path[IBV_SYSFS_PATH_MAX];
	char ibdev_path[IBV_SYSFS_PATH_MAX];
	int abi_version; /* of its kernel driver; 0: not reported */
	bool claimed;
	bool declined; /* by its own driver, which has told the user why */
};

/* The kernel's uverbs ABI version, valid once discovery has succeeded. */
extern int abi_ver;

/* Finds the devices and their drivers. Returns the number of devices that have a driver, and in
 * *list an array of them, which the caller frees. Returns -errno on failure. The caller holds the
 * lock of the device list. */
int discover_devices(struct ibv_device ***list);

/* providers.c: drivers, and the plug-ins that contain them */

/* Offers the device to the registered drivers in the order of registration. Returns NULL if all of
 * them refuse it; dev->declined is set if one of them has told the user why. */
struct ibv_device *drivers_try(struct uverbs_device *dev);

/* Loads the plug-ins that the environment and the configuration directory name. */
void providers_load(void);

/* Warns of each unclaimed device, with the reasons, and of each plug-in that could not be used. */
void providers_report(const struct uverbs_device *devices);

/* events.c: the kind of object that an asynchronous event is about */
enum event_element { ELEMENT_PORT, ELEMENT_CQ, ELEMENT_QP, ELEMENT_SRQ, ELEMENT_XRC_RCV_QP };

/*
 * Also returns ELEMENT_PORT for unknown events and for those about the device: they carry no
 * object.
 */
enum event_element event_element_of(uint32_t event_type);

/* fork.c keeps count of registered memory: see ibv_dontfork_range(). */

/*
 * The single completion channel of kernel ABI 1 and 2, which GET_CONTEXT returns: abi_compat of the
 * context. The mutex of the context protects it.
 */
struct v2_channel {
	struct ibv_comp_channel channel;
	bool in_use;
};

#endif /* IBVERBS_H */
