// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* `softhca show`. */
#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "softhca.h"
#include "waits.h"
#include "softhca/host/client.h"
#include "softhca/host/paths.h"
#include "softhca/host/places.h"

static int print(const char *text, size_t len, bool json)
{
	bool written = true;

	if (json)
		written = fwrite(text, 1, len, stdout) == len && fputc('\n', stdout) != EOF;
	else
		render_text(text, len);
	if (written && fflush(stdout) == 0)
		return 0;
	complain("cannot write the output: %s", strerror(errno));
	return EXIT_SELF;
}

char *show_fetch(const char *instance, size_t *len)
{
	const struct sh_show request = {.type = SH_MSG_SHOW};
	struct sh_hello_reply hello;
	char dir[PATH_MAX], *text = NULL;
	int control, status, fd = -1;
	struct stat st;

	control = reach(instance, dir, &hello);
	if (control < 0)
		return NULL;
	status = ask(control, &request, sizeof(request), &fd);
	close(control);
	if (status)
		return NULL;
	errno = EIO; /* for a short read, which sets none */
	if (fstat(fd, &st) == 0)
		text = malloc((size_t)st.st_size + 1);
	if (!text || pread(fd, text, (size_t)st.st_size, 0) != st.st_size) {
		complain("cannot read the daemon's answer: %s", strerror(errno));
		free(text);
		text = NULL;
	} else {
		*len = (size_t)st.st_size;
	}
	close(fd);
	return text;
}

static int show_one(const char *instance, bool json)
{
	size_t len;
	char *text = show_fetch(instance, &len);
	int status = text ? print(text, len, json) : EXIT_SELF;

	free(text);
	return status;
}

/*
 * Tells what the daemon of an instance has left. One that ends removes it itself, and holds the
 * lock until then.
 */
static void tell_left(const char *name, const char *dir)
{
	char lock[PATH_MAX + 8];

	snprintf(lock, sizeof(lock), "%s/lock", dir);
	if (sh_instance_alive(dir) || access(lock, F_OK))
		return;
	complain("%s is left of the instance \"%s\", whose daemon, process %ld, was killed: "
		 "softhca start %s starts it again; any softhca run or start removes what is left, "
		 "once no program uses it",
		 dir, name, daemon_pid(dir), name);
}

/*
 * {"name": ..., "hosts": N, "pid": N} of an instance that answers, or NULL. Sets *failed if the
 * instance should answer and does not.
 */
static json_t *describe(const char *place, const char *name, bool *failed)
{
	struct sh_hello_reply hello;
	char path[PATH_MAX];
	int control;

	if (snprintf(path, sizeof(path), "%s/%s", place, name) >= (int)sizeof(path))
		return NULL;
	control = greet(path, &hello);
	if (control == -ETIMEDOUT) {
		complain_silence(name, path);
		*failed = true;
	}
	if (control == -ENOENT || control == -ECONNREFUSED)
		tell_left(name, path);
	if (control < 0)
		return NULL;
	close(control);
	return json_pack("{s:s, s:i, s:I}", "name", name, "hosts", (int)hello.hosts, "pid",
			 (json_int_t)daemon_pid(path));
}

/* Adds the instances of one place. If the user has named the place, tells what is wrong with it. */
static void describe_place(unsigned int index, json_t *list, bool *failed)
{
	char place[PATH_MAX], why[SH_PLACE_WHY];
	struct dirent *entry;
	int err = sh_place(index, place);
	DIR *dir;

	if (err) {
		if (!sh_place_named() || index)
			return;
		complain("SOFTHCA_DIR cannot be used (%s): set it to a directory of yours that "
			 "only you can write to",
			 strerror(-err));
		*failed = true;
		return;
	}
	err = sh_place_check(place, why, sizeof(why));
	if (err && err != -ENOENT && sh_place_named()) {
		complain("SOFTHCA_DIR cannot be used (%s: %s): set it to a directory of yours that "
			 "only you can "
			 "write to",
			 place, why);
		*failed = true;
	}
	dir = err ? NULL : opendir(place);
	while (dir && (entry = readdir(dir)))
		if (sh_name_valid(entry->d_name))
			json_array_append_new(list, describe(place, entry->d_name, failed));
	if (dir)
		closedir(dir);
}

static int show_all(bool json)
{
	json_t *list = json_array(), *all;
	bool failed = false;
	char *text;
	int status;

	if (complain_no_proc()) {
		json_decref(list);
		return EXIT_SELF;
	}
	for (unsigned int i = 0; i < SH_PLACES; i++)
		describe_place(i, list, &failed);
	if (!json && !json_array_size(list)) {
		json_decref(list);
		if (failed)
			return EXIT_SELF;
		puts("No instance runs. softhca start NAME starts one.");
		return 0;
	}
	all = json_pack("{s:i, s:o}", "version", SH_SHOW_VERSION, "instances", list);
	text = all ? json_dumps(all, JSON_INDENT(2)) : NULL;
	status = text ? print(text, strlen(text), json) : EXIT_SELF;
	free(text);
	json_decref(all);
	return failed ? EXIT_SELF : status;
}

int verb_show(int argc, char **argv)
{
	const char *name = NULL;
	bool json = false, waits = false;

	for (int i = 1; i < argc; i++) {
		if (is_help(argv[i])) {
			puts("Usage: softhca show [--json] [NAME]\n"
			     "       softhca show --waits [--json] NAME\n\n"
			     "Show what an instance holds: QPs, CQs, SRQs, XRC domains with their "
			     "inodes and registrations,\n"
			     "memory regions, counters. Without NAME, list the instances that run. "
			     "With --waits, show what\n"
			     "each thread waits for, and whether a wake-up is lost.");
			return 0;
		}
		if (!strcmp(argv[i], "--json")) {
			json = true;
		} else if (!strcmp(argv[i], "--waits")) {
			waits = true;
		} else if (argv[i][0] == '-' || name) {
			complain("softhca show takes --json, --waits and one name, not \"%s\"",
				 argv[i]);
			return EXIT_USAGE;
		} else {
			name = argv[i];
		}
	}
	if (waits && !name) {
		complain("softhca show --waits needs the name of an instance; softhca show lists "
			 "those that run");
		return EXIT_USAGE;
	}
	if (waits)
		return show_waits(name, json);
	return name ? show_one(name, json) : show_all(json);
}
