/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The `softhca` command: one function per verb, and what they share. A verb gets its own arguments (argv[0] is the
 * verb) and returns the exit status: 0, EXIT_USAGE for a misused command line, EXIT_SELF for its own failure.
 */
#ifndef SOFTHCA_CLI_SOFTHCA_H
#define SOFTHCA_CLI_SOFTHCA_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "softhca/host/instdir.h"
#include "softhca/kernel/kernel.h"
#include "softhca/wire.h"

#define EXIT_USAGE	2
#define EXIT_SELF	125	/* as env and nice: the command was not started because of us */

int verb_run(int argc, char **argv);
int verb_start(int argc, char **argv);
int verb_stop(int argc, char **argv);
int verb_show(int argc, char **argv);
int verb_port(int argc, char **argv);
int verb_fault(int argc, char **argv);
int verb_doctor(int argc, char **argv);

/* "softhca: ..." on standard error. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- options.c ---- */

/* run: which libibverbs the command gets. */
enum library { LIBRARY_AUTO, LIBRARY_OURS, LIBRARY_SYSTEM };

struct run_options {
	struct sh_config device;
	const char *instance;		/* run: a running one */
	unsigned int host;
	bool host_given;
	const char *mmio;		/* as given, or NULL */
	enum library library;
	bool stats, require_traffic;	/* run */
};

/*
 * Parse the options of run and start, stopping at the first word that is none. Returns the index of that word, or
 * -1 after a message, or -2 after --help was answered.
 */
int parse_run_options(int argc, char **argv, bool start, struct run_options *opt);

/* A whole number in [min, max]: true, or false after a message about `what`. */
bool parse_number(const char *what, const char *text, unsigned long min, unsigned long max,
		  unsigned long *value);

/* ---- run.c ---- */

/* The preloaded library: beside this program in a build tree, relative to it when installed, else where it was to be. */
bool find_shim(char path[PATH_MAX]);

/* Put `first` in front of what the environment variable has; keep the rest, behind `separator`. 0, or -1 and errno. */
int prepend(const char *name, const char *first, char separator);

/* ---- library.c ---- */

/*
 * Put the libibverbs and the provider that belong to this softhca in front, where the command is to have them. shim: the
 * path of the preloaded library, by which they are found. 0, or -errno after a message.
 */
int choose_library(enum library choice, const char *command, const char *shim);

/* The path of the libibverbs that belongs to it; false: there is none. */
bool own_library(const char *shim, char path[PATH_MAX]);

/* ---- stats.c ---- */

/* What went over the HCAs of an instance until now, and what programs left open. NULL after a message. */
struct stats *stats_take(const char *dir);
void stats_free(struct stats *stats);

/* Says on standard error, for each HCA that was used, what came about between the two. */
void stats_print(const struct stats *before, const struct stats *after);

/* Whether a packet went over any HCA between the two. */
bool stats_traffic(const struct stats *before, const struct stats *after);

/* ---- launch.c ---- */

/*
 * Start the daemon of an instance and wait until clients can connect: 0, or -errno after a message. -EEXIST: the name is
 * taken; without a message where leased, since the caller has made the name up and can take another one.
 */
int launch_daemon(const char *dir, const struct sh_config *device, bool leased);

/* Make the place of instances, clear away what dead ones left there. 0, or -errno after a message. */
int prepare_place(char path[PATH_MAX]);

/* What a dead instance has that softhca did not make. */
void complain_left(const char *dir, const struct sh_left *left);

/* Hold the lease of an instance until this process and its unexec'ed children end. 0 or -errno. */
int take_lease(const char *dir);

/* ---- talk.c ---- */

/* Connect and say hello, with a limit on how long that and every later answer may take: a descriptor, or -errno. */
int greet(const char *dir, struct sh_hello_reply *hello);

/* The message for -ETIMEDOUT. */
void complain_silence(const char *instance, const char *dir);

/* The process number that the instance directory has of its daemon, or 0. */
long daemon_pid(const char *dir);

/* Resolve the name, connect, say hello: a descriptor, or -errno after a message. */
int reach(const char *instance, char dir[PATH_MAX], struct sh_hello_reply *hello);

/* One request that is answered by a struct sh_status; *fd (or NULL) takes an attached descriptor. 0 or EXIT_SELF. */
int ask(int control, const void *request, size_t len, int *fd);

/* The same to an instance by its name. 0, or EXIT_SELF after a message. */
int send_to(const char *instance, const void *request, size_t len);

/* ---- ending.c ---- */

/*
 * Have the daemon at the other end of the connection end, and wait until it is gone, and its directory with it. 0, or
 * EXIT_SELF after a message: it does not answer, or takes too long, or something is in the directory that is not ours.
 */
int end_instance(int control, const char *dir);

/* ---- show.c ---- */

/* What an instance holds, as JSON of *len bytes, which the caller frees. NULL after a message. */
char *show_fetch(const char *instance, size_t *len);

/* ---- render.c ---- */

/* What `show` prints for people: every member of the object as a line, a list of objects as an aligned table. */
void render_text(const char *json, size_t len);

#endif
