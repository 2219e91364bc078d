// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Drivers and the plug-ins that contain them. A plug-in registers its drivers from an ELF
 * constructor, so the list of drivers has a lock of its own. Everything else runs under the lock of
 * the device list. A plug-in is never unloaded. Errors are kept, and reported in one line per
 * device. */

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ibverbs.h"

#define STRING(x)	   #x
#define EXPANDED_STRING(x) STRING(x)
#define PLUGIN_SUFFIX	   "-" EXPANDED_STRING(IBV_DEVICE_LIBRARY_EXTENSION) ".so"

struct driver {
	struct driver *next;
	const char *name;
	ibv_driver_init_func init;
	bool broken; /* has made a device without operations */
};

struct plugin {
	struct plugin *next;
	char *name;	    /* as configured */
	const char *source; /* what names it: a variable, or the configuration directory */
	void *handle;
	char *error; /* why it is of no use; NULL: it is usable */
	bool warned;
};

static pthread_mutex_t drivers_lock = PTHREAD_MUTEX_INITIALIZER;
static struct driver *drivers, **drivers_tail = &drivers;

static struct plugin *plugins;
static bool static_linking;

void ibv_register_driver(const char *name, ibv_driver_init_func init_func)
{
	struct driver *driver;

	driver = calloc(1, sizeof(*driver));
	if (!driver) {
		ibverbs_warning("no memory to register driver '%s'. Its devices are left out.",
				name);
		return;
	}

	driver->name = name;
	driver->init = init_func;

	pthread_mutex_lock(&drivers_lock);
	*drivers_tail = driver;
	drivers_tail = &driver->next;
	pthread_mutex_unlock(&drivers_lock);
}

/* Drivers are only ever appended, so the lock protects each step and need not protect the whole
 * walk. */
static struct driver *next_driver(struct driver *driver)
{
	struct driver *next;

	pthread_mutex_lock(&drivers_lock);
	next = driver ? driver->next : drivers;
	pthread_mutex_unlock(&drivers_lock);

	return next;
}

static struct driver *last_driver(void)
{
	struct driver *driver = NULL, *next;

	while ((next = next_driver(driver)))
		driver = next;

	return driver;
}

struct ibv_device *drivers_try(struct uverbs_device *dev)
{
	struct driver *driver = NULL;
	struct ibv_device *vdev;

	while ((driver = next_driver(driver))) {
		errno = 0;
		vdev = driver->init(dev->path, dev->abi_version);
		if (!vdev && errno == EPROTONOSUPPORT) {
			/* The device's own driver has told the user what is wrong. It is not asked
			 * again. */
			dev->declined = true;
			return NULL;
		}
		if (!vdev)
			continue;
		if (vdev->ops.alloc_context && vdev->ops.free_context)
			return vdev;
		driver->broken = true;
	}

	return NULL;
}

/* Opens the plug-in with dlopen(), first by the normal search path, then in the library's own
 * directory, which is rarely on that path. Returns NULL with *error on failure; *error may be NULL,
 * and the caller frees it. */
static void *open_plugin(const char *name, char **error)
{
	char *file, *installed;
	void *handle = NULL;

	*error = NULL;
	if (asprintf(&file, "%s%s%s", name[0] == '/' ? "" : "lib", name, PLUGIN_SUFFIX) < 0)
		return NULL;

	handle = dlopen(file, RTLD_NOW);
	if (handle)
		goto out;

	*error = strdup(dlerror());
	if (name[0] == '/' || asprintf(&installed, "%s/%s", IBV_LIBDIR, file) < 0)
		goto out;

	/* If the file exists, its error says more than that of the search path. */
	if (!access(installed, F_OK)) {
		free(*error);
		*error = NULL;
		handle = dlopen(installed, RTLD_NOW);
		if (!handle)
			*error = strdup(dlerror());
	}
	free(installed);
out:
	free(file);
	return handle;
}

/* Returns the file that contains the function. */
static const char *file_of(ibv_driver_init_func function)
{
	Dl_info info;

	return dladdr((void *)(uintptr_t)function, &info) && info.dli_fname ? info.dli_fname
									    : "linked in";
}

static const char *file_of_plugin(const struct plugin *plugin)
{
	struct link_map *map;

	return dlinfo(plugin->handle, RTLD_DI_LINKMAP, &map) ? plugin->name : map->l_name;
}

static bool has_driver(const char *file)
{
	struct driver *driver = NULL;

	while ((driver = next_driver(driver)))
		if (!strcmp(file_of(driver->init), file))
			return true;

	return false;
}

/* Finds the plug-in of that name or adds it. Returns NULL if there is no memory. */
static struct plugin *find_plugin(const char *name)
{
	struct plugin *plugin;

	for (plugin = plugins; plugin; plugin = plugin->next)
		if (!strcmp(plugin->name, name))
			return plugin;

	plugin = calloc(1, sizeof(*plugin));
	if (!plugin)
		return NULL;

	plugin->name = strdup(name);
	if (!plugin->name) {
		free(plugin);
		return NULL;
	}

	plugin->next = plugins;
	plugins = plugin;
	return plugin;
}

/* Source: what names the plug-in. It is kept, not copied. */
static void load_plugin(const char *name, const char *source)
{
	struct driver *last = last_driver();
	struct plugin *plugin;
	const char *file;
	int len;

	/* A constructor runs only once, so loading the plug-in again would register no driver. */
	plugin = find_plugin(name);
	if (!plugin || plugin->handle)
		return;

	/* The variable comes before the directory, and is what the user sees first. */
	if (!plugin->source)
		plugin->source = source;
	free(plugin->error);
	plugin->handle = open_plugin(name, &plugin->error);
	if (!plugin->handle || last != last_driver())
		return;

	/* No new driver. This is no error if the program has already loaded the plug-in. */
	file = file_of_plugin(plugin);
	if (has_driver(file))
		return;

	if (dlsym(plugin->handle, "openib_driver_init"))
		len = asprintf(&plugin->error,
			       "%s has only the entry point of libibverbs 1.0 "
			       "(openib_driver_init), which is not called",
			       file);
	else
		len = asprintf(&plugin->error, "%s registers no driver", file);
	if (len < 0)
		plugin->error = NULL;
}

struct name {
	struct name *next;
	char text[];
};

static void push_name(struct name **names, const char *text, size_t len)
{
	struct name *name;

	name = malloc(sizeof(*name) + len + 1);
	if (!name) {
		ibverbs_warning("no memory to note driver '%.*s'. Its devices may be left out.",
				(int)len, text);
		return;
	}

	memcpy(name->text, text, len);
	name->text[len] = '\0';
	name->next = *names;
	*names = name;
}

static void read_config_line(struct name **names, const char *file, const char *line)
{
	static const char blank[] = " \t\r\n";
	size_t len;

	line += strspn(line, blank);
	len = strcspn(line, blank);
	if (!len || line[0] == '#')
		return;

	if (len != strlen("driver") || strncmp(line, "driver", len)) {
		ibverbs_warning("ignoring bad config directive '%.*s' in '%s'. The only directive "
				"is: driver NAME.",
				(int)len, line, file);
		return;
	}

	line += len;
	line += strspn(line, blank);
	len = strcspn(line, blank);
	if (!len) {
		ibverbs_warning("ignoring bad config directive 'driver' in '%s'. It needs a name.",
				file);
		return;
	}

	push_name(names, line, len);
}

static void read_config_file(struct name **names, const char *path)
{
	char *line = NULL;
	size_t size = 0;
	FILE *file;

	file = fopen(path, "re");
	if (!file) {
		ibverbs_warning("couldn't read config file '%s': %s. Its drivers are left out.",
				path, strerror(errno));
		return;
	}

	while (getline(&line, &size, file) >= 0)
		read_config_line(names, path, line);

	free(line);
	fclose(file);
}

/* Returns the names in the configuration directory, the last one first. */
static struct name *read_config(void)
{
	struct name *names = NULL;
	char **files, *path;
	struct stat st;
	int i, n;

	n = names_read(IBV_CONFIG_DIR, &files);
	if (n < 0) {
		ibverbs_warning("couldn't open config directory '%s': %s. Install a provider: its "
				"file there (NAME.driver, "
				"holding 'driver NAME') makes it known.",
				IBV_CONFIG_DIR, strerror(-n));
		return NULL;
	}

	for (i = 0; i < n; ++i) {
		if (asprintf(&path, "%s/%s", IBV_CONFIG_DIR, files[i]) < 0)
			continue;
		if (!stat(path, &st) && S_ISREG(st.st_mode))
			read_config_file(&names, path);
		free(path);
	}

	names_free(files);
	return names;
}

static void load_from_environment(void)
{
	const char *variable = "RDMAV_DRIVERS";
	char *list, *rest, *name;
	const char *env;

	env = trusted_getenv(variable);
	if (!env) {
		variable = "IBV_DRIVERS";
		env = trusted_getenv(variable);
	}
	if (!env)
		return;

	list = strdup(env);
	if (!list)
		return;

	rest = list;
	while ((name = strsep(&rest, ":;")))
		if (name[0])
			load_plugin(name, variable);

	free(list);
}

void providers_load(void)
{
	struct name *names, *name;
	void *self;

	/* A statically linked program has already registered all the drivers that it contains. */
	self = dlopen(NULL, RTLD_NOW);
	static_linking = !self;
	if (static_linking)
		return;
	dlclose(self);

	names = read_config();
	load_from_environment();
	while ((name = names)) {
		names = name->next;
		load_plugin(name->text, IBV_CONFIG_DIR);
		free(name);
	}
}

/* Writes all possible reasons why the device has no driver, as one piece of text. */
static void write_reasons(FILE *text, const struct uverbs_device *dev)
{
	const char *separator = "";
	struct driver *driver = NULL;
	struct plugin *plugin;

	for (plugin = plugins; plugin; plugin = plugin->next)
		if (plugin->error) {
			fprintf(text, "%scouldn't load driver '%s': %s (named in '%s')", separator,
				plugin->name, plugin->error, plugin->source);
			separator = "; ";
		}

	while ((driver = next_driver(driver))) {
		fprintf(text, "%s'%s' (%s) %s", separator, driver->name, file_of(driver->init),
			driver->broken ? "is broken: it makes devices without operations" : "");
		if (!driver->broken)
			fprintf(text, "does not take it (its kernel driver has ABI version %d)",
				dev->abi_version);
		separator = "; ";
	}

	if (static_linking)
		fprintf(text, "%sthe program is linked statically and its driver is not linked in",
			separator);
	else if (!separator[0])
		fprintf(text, "%sno driver is configured in '%s'", separator, IBV_CONFIG_DIR);
}

static void report_device(const struct uverbs_device *dev)
{
	char *reasons = NULL;
	size_t size;
	FILE *text;

	text = open_memstream(&reasons, &size);
	if (text) {
		write_reasons(text, dev);
		fclose(text);
	}

	ibverbs_warning("no userspace device-specific driver found for %s (%s): %s. Install its "
			"provider, or name the "
			"provider in RDMAV_DRIVERS.",
			dev->path, dev->ibdev, reasons ? reasons : "no memory to say why");
	free(reasons);
}

void providers_report(const struct uverbs_device *devices)
{
	const struct uverbs_device *dev;
	struct plugin *plugin;
	bool told = false;

	for (dev = devices; dev; dev = dev->next)
		if (!dev->claimed && !dev->declined) {
			report_device(dev);
			told = true;
		}

	for (plugin = plugins; plugin; plugin = plugin->next) {
		if (plugin->error && !plugin->warned && !told)
			ibverbs_warning("couldn't load driver '%s': %s. Install it, or take it out "
					"of '%s'.",
					plugin->name, plugin->error, plugin->source);
		plugin->warned = true;
	}
}
