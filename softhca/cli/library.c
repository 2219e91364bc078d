// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Decides which libibverbs the command of `softhca run` gets. The loader by itself takes the first
 * libibverbs.so.1 that it finds. For a program that was linked against OFED's, that may be
 * rdma-core's, or the loader may find no libibverbs.so.1. For such a program the library that
 * softhca was built or installed with goes in front. If the loader serves a program well, this file
 * changes nothing for it.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "executable.h"
#include "softhca.h"

#define LIBRARY "libibverbs.so.1"

/* ---- where softhca's own library is ---- */

/*
 * In a build tree libtool keeps the shim in a directory .libs. Only that tells: a prefix may lie in
 * the build tree, and the build tree's libraries are where they would be if the shim were its own.
 */
static bool in_build_tree(const char *shim, int dir)
{
	return dir >= 6 && !strncmp(shim + dir - 6, "/.libs", 6);
}

static bool find_ours(const char *shim, char library[PATH_MAX], char provider[PATH_MAX],
		      bool *installed)
{
	int dir = (int)(strrchr(shim, '/') - shim);
	bool tree = in_build_tree(shim, dir);
	char path[PATH_MAX * 2];

	snprintf(path, sizeof(path), "%.*s%s/" LIBRARY, dir, shim,
		 tree ? "/../../../libibverbs/.libs" : "/..");
	if (access(path, R_OK))
		return false;
	*strrchr(path, '/') = '\0';
	if (!realpath(path, library))
		return false;
	snprintf(path, sizeof(path), "%.*s%s", dir, shim, tree ? "/../../../libmlx4/.libs" : "/..");
	if (!realpath(path, provider))
		return false;
	/*
	 * A library that was moved after it was configured looks in the wrong place for the list of
	 * providers.
	 */
	*installed = !tree && !strncmp(shim, SHIM_DIR "/", sizeof(SHIM_DIR));
	return true;
}

bool own_library(const char *shim, char path[PATH_MAX])
{
	char library[PATH_MAX], provider[PATH_MAX];
	bool installed;

	return find_ours(shim, library, provider, &installed) &&
	       snprintf(path, PATH_MAX, "%s/" LIBRARY, library) < PATH_MAX;
}

/* ---- what the command needs ---- */

/* Finds the command as execvp() does. */
static bool find_command(const char *name, char path[PATH_MAX])
{
	const char *dirs = getenv("PATH"), *end;

	if (strchr(name, '/'))
		return snprintf(path, PATH_MAX, "%s", name) < PATH_MAX;
	for (; dirs; dirs = *end ? end + 1 : NULL) {
		int len, full;

		end = strchrnul(dirs, ':');
		len = (int)(end - dirs);
		full = snprintf(path, PATH_MAX, "%.*s%s%s", len, dirs, len ? "/" : "", name);
		if (full < PATH_MAX && !access(path, X_OK))
			return true;
	}
	return false;
}

/*
 * Finds the library in a list of directories with colons, and gives its path. $ORIGIN is the
 * directory of the program.
 */
static bool find_in(const char *dirs, const char *program, char found[PATH_MAX])
{
	static const char *const origins[] = {"$ORIGIN", "${ORIGIN}"};
	const char *slash = strrchr(program, '/'), *end;
	int origin = slash ? (int)(slash - program) : 0;

	for (; dirs; dirs = *end ? end + 1 : NULL) {
		const char *before = "";
		int len, full;

		end = strchrnul(dirs, ':');
		for (size_t i = 0; i < 2; i++) {
			if (!strncmp(dirs, origins[i], strlen(origins[i]))) {
				before = origin ? program : ".";
				dirs += strlen(origins[i]);
			}
		}
		len = (int)(end - dirs);
		full = snprintf(found, PATH_MAX, "%.*s%.*s/" LIBRARY,
				before == program ? origin : (int)strlen(before), before, len,
				dirs);
		if ((len || *before) && full < PATH_MAX && !access(found, R_OK))
			return true;
	}
	return false;
}

static bool has_symbol(void *library, const char *symbol, const char *version)
{
	return dlvsym(library, symbol, version) != NULL;
}

/* Does the library have what the program takes from it? A missing library does not. */
static bool serves(const struct elf *program, const char *path)
{
	void *library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);

	return library && elf_each_symbol(program, LIBRARY, has_symbol, library);
}

static bool same_file(const char *one, const char *other)
{
	struct stat a, b;

	return !stat(one, &a) && !stat(other, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/*
 * True if the library that the loader takes lacks something that the program needs, and softhca's
 * has it all. Also true if the loader takes softhca's in a place where it does not find its
 * provider.
 */
static bool wants_ours(const char *command, const char *ours, bool installed)
{
	char path[PATH_MAX], linked[PATH_MAX];
	const char *theirs = LIBRARY;
	struct elf program;

	if (!find_command(command, path) || elf_open(&program, path))
		return false;
	/* A DT_RPATH comes before LD_LIBRARY_PATH, so the variable would change nothing. */
	if (!elf_needs(&program, LIBRARY) ||
	    (!program.runpath && find_in(program.rpath, path, linked)))
		return false;
	if (!find_in(getenv("LD_LIBRARY_PATH"), path, linked) &&
	    find_in(program.runpath, path, linked))
		theirs = linked;
	if (theirs == linked && same_file(linked, ours))
		return !installed;
	return !serves(&program, theirs) && serves(&program, ours);
}

/*
 * Asks in a child: the question loads libraries, whose constructors run, and reads a file that may
 * contain anything.
 */
static bool ask_child(const char *command, const char *ours, bool installed)
{
	int status = 1;
	pid_t pid;

	pid = fork();
	if (pid == 0) {
		fclose(stderr);
		_exit(wants_ours(command, ours, installed) ? 0 : 1);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return pid > 0 && status == 0;
}

/* ---- the verb ---- */

int choose_library(enum library choice, const char *command, const char *shim)
{
	char library[PATH_MAX], provider[PATH_MAX], file[PATH_MAX + 32];
	bool installed;

	if (choice == LIBRARY_SYSTEM)
		return 0;
	if (!find_ours(shim, library, provider, &installed)) {
		if (choice == LIBRARY_AUTO)
			return 0;
		complain("--libibverbs ours: the " LIBRARY
			 " of this softhca is not installed (looked for it beside %s): install "
			 "it, or set LD_LIBRARY_PATH",
			 shim);
		return -ENOENT;
	}
	snprintf(file, sizeof(file), "%s/" LIBRARY, library);
	if (choice == LIBRARY_AUTO && !ask_child(command, file, installed))
		return 0;
	if ((strcmp(library, provider) && prepend("LD_LIBRARY_PATH", provider, ':')) ||
	    prepend("LD_LIBRARY_PATH", library, ':') ||
	    (!installed && !getenv("RDMAV_DRIVERS") && !getenv("IBV_DRIVERS") &&
	     setenv("RDMAV_DRIVERS", "mlx4", 1))) {
		complain("cannot set the environment of the command: %s", strerror(errno));
		return -ENOMEM;
	}
	return 0;
}
