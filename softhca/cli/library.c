// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Decides which libibverbs and librdmacm the command of `softhca run` gets. The loader by itself
 * takes the first libibverbs.so.1 that it finds. For a program that was linked against OFED's, that
 * may be rdma-core's, or the loader may find no libibverbs.so.1; so with librdmacm.so.1. For such a
 * program both libraries that softhca was built or installed with go in front: they belong
 * together. If the loader serves a program well, this file changes nothing for it.
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

#define LIBRARY	   "libibverbs.so.1"
#define LIBRARY_CM "librdmacm.so.1"

/* softhca's own libraries. */
struct ours {
	char verbs[PATH_MAX], provider[PATH_MAX],
		cm[PATH_MAX]; /* directories; cm: "" if it has none */
	bool installed;
};

/* ---- where softhca's own library is ---- */

/*
 * In a build tree libtool keeps the shim in a directory .libs. Only that tells: a prefix may lie in
 * the build tree, and the build tree's libraries are where they would be if the shim were its own.
 */
static bool in_build_tree(const char *shim, int dir)
{
	return dir >= 6 && !strncmp(shim + dir - 6, "/.libs", 6);
}

/* The directory of a part, in the build tree or in the prefix, if it has that file. */
static bool find_part(const char *shim, const char *part, const char *file, char found[PATH_MAX])
{
	int dir = (int)(strrchr(shim, '/') - shim);
	char path[PATH_MAX * 2];
	size_t len;

	if (in_build_tree(shim, dir))
		len = (size_t)snprintf(path, PATH_MAX, "%.*s/../../../%s/.libs", dir, shim, part);
	else
		len = (size_t)snprintf(path, PATH_MAX, "%.*s/..", dir, shim);
	snprintf(path + len, sizeof(path) - len, "/%s", file);
	if (access(path, R_OK))
		return false;
	path[len] = '\0';
	return realpath(path, found);
}

static bool find_ours(const char *shim, struct ours *ours)
{
	bool tree = in_build_tree(shim, (int)(strrchr(shim, '/') - shim));

	if (!find_part(shim, "libibverbs", LIBRARY, ours->verbs) ||
	    !find_part(shim, "libmlx4", "", ours->provider))
		return false;
	if (!find_part(shim, "librdmacm", LIBRARY_CM, ours->cm))
		ours->cm[0] = '\0';
	/*
	 * A library that was moved after it was configured looks in the wrong place for the list of
	 * providers.
	 */
	ours->installed = !tree && !strncmp(shim, SHIM_DIR "/", sizeof(SHIM_DIR));
	return true;
}

bool own_library(const char *shim, char path[PATH_MAX])
{
	struct ours ours;

	return find_ours(shim, &ours) &&
	       snprintf(path, PATH_MAX, "%s/" LIBRARY, ours.verbs) < PATH_MAX;
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
static bool find_in(const char *dirs, const char *library, const char *program,
		    char found[PATH_MAX])
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
		full = snprintf(found, PATH_MAX, "%.*s%.*s/%s",
				before == program ? origin : (int)strlen(before), before, len, dirs,
				library);
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
static bool serves(const struct elf *program, const char *name, const char *path)
{
	void *library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);

	return library && elf_each_symbol(program, name, has_symbol, library);
}

static bool same_file(const char *one, const char *other)
{
	struct stat a, b;

	return !stat(one, &a) && !stat(other, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/*
 * True if the library that the loader takes lacks something that the program needs. Also true if
 * the loader takes softhca's in a place where it does not find its provider.
 */
static bool lacks(const struct elf *program, const char *path, const char *name,
		  const char *our_dir, const struct ours *ours)
{
	char linked[PATH_MAX], own[PATH_MAX * 2];
	const char *theirs = name;

	/* A DT_RPATH comes before LD_LIBRARY_PATH, so the variable would change nothing. */
	if (!elf_needs(program, name) ||
	    (!program->runpath && find_in(program->rpath, name, path, linked)))
		return false;
	snprintf(own, sizeof(own), "%s/%s", our_dir, name);
	if (!find_in(getenv("LD_LIBRARY_PATH"), name, path, linked) &&
	    find_in(program->runpath, name, path, linked))
		theirs = linked;
	if (theirs == linked && same_file(linked, own))
		return !ours->installed;
	return !serves(program, name, theirs);
}

/* Does softhca's own library have what the program takes from it? */
static bool we_serve(const struct elf *program, const char *name, const char *our_dir)
{
	char own[PATH_MAX * 2];

	snprintf(own, sizeof(own), "%s/%s", our_dir, name);
	return !elf_needs(program, name) || serves(program, name, own);
}

static bool theirs_lack(const struct elf *program, const char *path, const struct ours *ours)
{
	return lacks(program, path, LIBRARY, ours->verbs, ours) ||
	       (ours->cm[0] && lacks(program, path, LIBRARY_CM, ours->cm, ours));
}

/* In this order: librdmacm finds the libibverbs that has been loaded. */
static bool ours_serve(const struct elf *program, const char *path, const struct ours *ours)
{
	(void)path;
	return we_serve(program, LIBRARY, ours->verbs) &&
	       (!ours->cm[0] || we_serve(program, LIBRARY_CM, ours->cm));
}

/*
 * Asks in a child: the question loads libraries, whose constructors run, and reads a file that may
 * contain anything. Each question has a child, since a library stays loaded.
 */
static bool ask_child(bool (*question)(const struct elf *, const char *, const struct ours *),
		      const char *command, const struct ours *ours)
{
	char path[PATH_MAX];
	struct elf program;
	int status = 1;
	pid_t pid;

	pid = fork();
	if (pid == 0) {
		fclose(stderr);
		_exit(find_command(command, path) && !elf_open(&program, path) &&
				      question(&program, path, ours)
			      ? 0
			      : 1);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return pid > 0 && status == 0;
}

void tell_unreached(const char *command)
{
	static const char *const why[] = {
		[ELF_STATIC] =
			"it is linked statically, so no loader runs that could put softhca's "
			"library into it: link it dynamically, or run it where there is an HCA",
		[ELF_32] = "it is a program of 32 bits, into which the loader cannot put softhca's "
			   "library of 64: build it for 64 bits, or run it where there is an HCA",
		[ELF_MACHINE] =
			"it is a program for another machine, into which no loader can put "
			"softhca's library: build it for this one, or run it where there is an HCA",
	};
	char path[PATH_MAX];
	int status = 0;
	pid_t pid = fork();

	/* In a child, since the file may be cut off while it is read. */
	if (pid == 0)
		_exit(find_command(command, path) ? (int)elf_reach(path) : ELF_REACHED);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (pid < 0 || !WIFEXITED(status) || WEXITSTATUS(status) == ELF_REACHED)
		return;
	complain("%s sees no device: %s. What it starts sees one", command,
		 why[WEXITSTATUS(status)]);
}

static bool wants_ours(const char *command, const struct ours *ours)
{
	return ask_child(theirs_lack, command, ours) && ask_child(ours_serve, command, ours);
}

/* ---- the verb ---- */

/* In front, unless it is there already. */
static int add_directory(const char *dir, const char *known)
{
	return dir[0] && strcmp(dir, known) ? prepend("LD_LIBRARY_PATH", dir, ':') : 0;
}

int choose_library(enum library choice, const char *command, const char *shim)
{
	struct ours ours;

	if (choice == LIBRARY_SYSTEM)
		return 0;
	if (!find_ours(shim, &ours)) {
		if (choice == LIBRARY_AUTO)
			return 0;
		complain("--libibverbs ours: the " LIBRARY
			 " of this softhca is not installed (looked for it beside %s): install "
			 "it, or set LD_LIBRARY_PATH",
			 shim);
		return -ENOENT;
	}
	if (choice == LIBRARY_AUTO && !wants_ours(command, &ours))
		return 0;
	if (add_directory(ours.cm, ours.verbs) || add_directory(ours.provider, ours.verbs) ||
	    prepend("LD_LIBRARY_PATH", ours.verbs, ':') ||
	    (!ours.installed && !getenv("RDMAV_DRIVERS") && !getenv("IBV_DRIVERS") &&
	     setenv("RDMAV_DRIVERS", "mlx4", 1))) {
		complain("cannot set the environment of the command: %s", strerror(errno));
		return -ENOMEM;
	}
	return 0;
}
