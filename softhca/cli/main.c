// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The command line of softhca: finds the verb. */
#include "config.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "softhca.h"

static const struct verb {
	const char *name, *what;
	int (*run)(int argc, char **argv);
} verbs[] = {
	{"run", "run a command on a software HCA, in an instance of its own or a running one",
	 verb_run},
	{"start", "start an instance that runs until it is stopped", verb_start},
	{"stop", "end an instance", verb_stop},
	{"show", "list the instances, or what one of them holds", verb_show},
	{"graph", "draw the fabric of an instance: hosts, processes, QPs, XRC domains (DOT)",
	 verb_graph},
	{"top", "show what goes over an instance while it goes: processes, HCAs, ports, QPs",
	 verb_top},
	{"port", "change the state, LID, P_Key or SM of a port", verb_port},
	{"fault", "drop, delay, duplicate or corrupt packets", verb_fault},
	{"capture", "show the packets of an instance, or write them to a file for Wireshark",
	 verb_capture},
	{"trace", "run a command as run does, and write down its verbs; draw a time line of them",
	 verb_trace},
	{"doctor", "check whether softhca can work on this machine, and say what to change",
	 verb_doctor},
};

#define NVERBS (sizeof(verbs) / sizeof(verbs[0]))

void complain(const char *format, ...)
{
	va_list args;

	fputs("softhca: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
}

bool is_help(const char *word)
{
	return !strcmp(word, "--help") || !strcmp(word, "-h");
}

static void usage(FILE *out)
{
	fputs("Usage: softhca VERB [OPTIONS] ...\n\n"
	      "A software ConnectX: programs that use InfiniBand verbs run on it, on a machine "
	      "without an HCA.\n\n",
	      out);
	for (size_t i = 0; i < NVERBS; i++)
		fprintf(out, "  %-7s %s\n", verbs[i].name, verbs[i].what);
	fputs("\nsofthca VERB --help, or softhca help VERB, tells more. Try: softhca run -- "
	      "ibv_devinfo\n",
	      out);
}

static const struct verb *find_verb(const char *name)
{
	for (size_t i = 0; i < NVERBS; i++)
		if (!strcmp(name, verbs[i].name))
			return &verbs[i];
	if (name[0] == '-')
		complain("the verb stands in front of its options: softhca VERB %s ...; softhca "
			 "--help lists the verbs",
			 name);
	else
		complain("unknown verb \"%s\"; softhca --help lists the verbs", name);
	return NULL;
}

/* `softhca help VERB` is `softhca VERB --help`. */
static int help(int argc, char **argv)
{
	char option[] = "--help", *words[] = {argv[1], option, NULL};
	const struct verb *verb;

	if (argc < 2 || is_help(argv[1])) {
		usage(stdout);
		return 0;
	}
	if (argc > 2) {
		complain("softhca help takes one verb; leave out \"%s\"", argv[2]);
		return EXIT_USAGE;
	}
	verb = find_verb(argv[1]);
	return verb ? verb->run(2, words) : EXIT_USAGE;
}

/*
 * Standard descriptors that are closed would be given to pipes and sockets of ours, which the
 * daemon then replaces with its own. They stay closed for a command that is executed.
 */
static void fill_standard_descriptors(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd > STDERR_FILENO)
		close(fd);
}

int main(int argc, char **argv)
{
	const struct verb *verb;

	fill_standard_descriptors();
	if (argc < 2) {
		usage(stderr);
		return EXIT_USAGE;
	}
	if (!strcmp(argv[1], "help"))
		return help(argc - 1, argv + 1);
	if (is_help(argv[1])) {
		usage(stdout);
		return 0;
	}
	if (!strcmp(argv[1], "--version")) {
		puts("softhca " PACKAGE_VERSION);
		return 0;
	}
	verb = find_verb(argv[1]);
	return verb ? verb->run(argc - 1, argv + 1) : EXIT_USAGE;
}
