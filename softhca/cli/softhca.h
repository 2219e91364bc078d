/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The `softhca` command: one function for each verb, and what the verbs share. A verb gets its own
 * arguments (argv[0] is the verb) and returns the exit status: 0, EXIT_USAGE for a misused command
 * line, or EXIT_SELF for a failure of softhca itself.
 */
#ifndef SOFTHCA_CLI_SOFTHCA_H
#define SOFTHCA_CLI_SOFTHCA_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "softhca/host/instdir.h"
#include "softhca/kernel/kernel.h"
#include "softhca/protocol.h"
#include "softhca/wire/address.h"

#define EXIT_USAGE 2
#define EXIT_SELF  125 /* as with env and nice: softhca did not start the command */

int verb_run(int argc, char **argv);
int verb_start(int argc, char **argv);
int verb_stop(int argc, char **argv);
int verb_show(int argc, char **argv);
int verb_port(int argc, char **argv);
int verb_capture(int argc, char **argv);
int verb_fault(int argc, char **argv);
int verb_graph(int argc, char **argv);
int verb_top(int argc, char **argv);
int verb_trace(int argc, char **argv);
int verb_doctor(int argc, char **argv);

/* Prints "softhca: ..." on standard error. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Is the word --help or -h? */
bool is_help(const char *word);

/* ---- options.c ---- */

/* run: which libibverbs the command gets. */
enum library { LIBRARY_AUTO, LIBRARY_OURS, LIBRARY_SYSTEM };

struct run_options {
	struct sh_config device;
	struct sh_wire_words words; /* as given; device.wire is what they say */
	uint64_t cm_timeout_ns;	    /* 0: not given */
	const char *instance;	    /* run: the running instance to use */
	unsigned int host;
	bool host_given;
	const char *mmio; /* as given, or NULL */
	enum library library;
	bool stats, require_traffic; /* run */
	bool trace, summary;	     /* trace: the rest is its own */
	const char *trace_out, *trace_json;
};

/*
 * Parses the options of run, trace (as argv[0] says) and start, up to the first word that is not an
 * option. Returns the index of that word, -1 after a message, or -2 after an answer to --help.
 */
int parse_run_options(int argc, char **argv, bool start, struct run_options *opt);

/* Parses a whole number in [min, max]. False after a message about `what`. */
bool parse_number(const char *what, const char *text, unsigned long min, unsigned long max,
		  unsigned long *value);

/*
 * Parses the number of a QP that --qp names, at least `min`, as softhca and the ibv_ tools print it
 * ("0x000048") or in decimal ("72"). False after a message.
 */
bool parse_qp(const char *text, unsigned long min, unsigned long *qpn);

/*
 * Parses a time such as "500us", "2ms" or "1s", in [min_ns, max_ns]. False after a message, which
 * begins with `what`: it says from when to when.
 */
bool parse_length(const char *what, const char *text, uint64_t min_ns, uint64_t max_ns,
		  uint64_t *ns);

/* Parses the host that --host names, "1" or "host1". False after a message. */
bool parse_host(const char *text, unsigned long *host);

/*
 * The value of argv[*at] if that is this option, as --option VALUE or --option=VALUE, or NULL if
 * the option has none. Moves *at to the last word of it. False: it is another word.
 */
bool take_value(const char *option, int argc, char **argv, int *at, const char **value);

/* ---- run.c ---- */

/* `softhca run`, or `softhca trace` if argv[0] says so. */
int run_command(int argc, char **argv);

/*
 * Finds the preloaded library: beside this program in a build tree, relative to the program when it
 * is installed, else where it was to be installed.
 */
bool find_shim(char path[PATH_MAX]);

/*
 * Puts `first` and `separator` in front of the environment variable's value. Returns 0, or -1 and
 * errno.
 */
int prepend(const char *name, const char *first, char separator);

/* ---- library.c ---- */

/*
 * Puts libibverbs, librdmacm and the provider that belong to this softhca in front, if the command
 * is to have them. shim, the path of the preloaded library, leads to them. Returns 0, or -errno
 * after a message.
 */
int choose_library(enum library choice, const char *command, const char *shim);

/* Tells why the command sees no device, if that can be told from its file. */
void tell_unreached(const char *command);

/* The path of the libibverbs that belongs to this softhca. False: there is no such file. */
bool own_library(const char *shim, char path[PATH_MAX]);

/* ---- stats.c ---- */

/*
 * What has gone over the HCAs of an instance so far, and what programs have left open. NULL after a
 * message.
 */
struct stats *stats_take(const char *dir);
void stats_free(struct stats *stats);

/* Prints on standard error, for each HCA that was used, what happened between the two. */
void stats_print(const struct stats *before, const struct stats *after);

/* Did a packet go over any HCA between the two? */
bool stats_traffic(const struct stats *before, const struct stats *after);

/* ---- launch.c ---- */

/*
 * Starts the daemon of an instance and waits until clients can connect. Returns 0, or -errno after
 * a message. -EEXIST: the name is taken. If leased, there is no message for that: the caller has
 * made the name up and can take another one.
 */
int launch_daemon(const char *dir, const struct run_options *opt, bool leased);

/*
 * Makes the place of instances, and clears away what dead instances have left there. Returns 0, or
 * -errno after a message.
 */
int prepare_place(char path[PATH_MAX]);

/* Tells what is left of a dead instance: what softhca did not make, or could not remove. */
void complain_left(const char *dir, const struct sh_left *left);

/*
 * Holds the lease of an instance until this process ends, and its children that have not called
 * exec. Returns 0 or -errno.
 */
int take_lease(const char *dir);

/* ---- talk.c ---- */

/*
 * Connects and says hello, with a limit on how long that and every later answer may take. Returns a
 * descriptor or -errno.
 */
int greet(const char *dir, struct sh_hello_reply *hello);

/* Prints the message for -ETIMEDOUT. */
void complain_silence(const char *instance, const char *dir);

/*
 * Prints the message for an instance that does not run: where softhca looked for it, or that it has
 * ended. dir: its directory, or NULL; err: the -errno that tells so.
 */
void complain_absent(const char *instance, const char *dir, int err);

/*
 * Prints the message for an instance of another user, in directory dir. False, without a message:
 * this user may go there.
 */
bool complain_foreign(const char *instance, const char *dir);

/* Prints the message for a missing /proc. Returns whether it is missing. */
bool complain_no_proc(void);

/* The daemon's process number, as the instance directory has it, or 0. */
long daemon_pid(const char *dir);

/* Resolves the name, connects and says hello. Returns a descriptor, or -errno after a message. */
int reach(const char *instance, char dir[PATH_MAX], struct sh_hello_reply *hello);

/*
 * Sends a request that a struct sh_status answers. *fd takes the descriptor that comes with the
 * answer, unless fd is NULL. Returns 0, or EXIT_SELF after a message.
 */
int ask(int control, const void *request, size_t len, int *fd);

/* The same, to an instance by its name. */
int send_to(const char *instance, const void *request, size_t len);

/* ---- ending.c ---- */

/*
 * Has the daemon at the other end of the connection end, and waits until the daemon and its
 * directory are gone. Returns 0, or EXIT_SELF after a message: the daemon does not answer, or takes
 * too long, or the directory holds something that softhca did not make.
 */
int end_instance(int control, const char *dir);

/* ---- show.c ---- */

/* What an instance holds, as JSON of *len bytes, which the caller frees. NULL after a message. */
char *show_fetch(const char *instance, size_t *len);

/* ---- render.c ---- */

/*
 * Within 100 columns. What does not fit goes to lines of its own, which begin at `hang`, broken at
 * a blank.
 */
void print_wrapped(int indent, int hang, const char *text);

/*
 * Prints the JSON for people: each member of the object as a line, a list of objects as an aligned
 * table.
 */
void render_text(const char *json, size_t len);

#endif
