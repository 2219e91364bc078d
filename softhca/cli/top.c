// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* `softhca top`: its command line, and tables one below the other (--batch). See top.h. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "softhca.h"
#include "softhca/host/process.h"
#include "top.h"

struct options {
	const char *name;
	enum top_view view;
	const char *sort;
	uint64_t delay_ns;
	unsigned long looks;
	bool batch;
};

double top_seconds(void)
{
	return (double)sh_now() / 1e9;
}

static const char *instance;

/* Fills in a look. False: after a message. */
static bool take(struct top_look *look)
{
	size_t len;
	char *text = show_fetch(instance, &len);
	json_t *root = text ? json_loadb(text, len, 0, NULL) : NULL;

	free(text);
	if (!text)
		return false;
	if (root && top_look_init(look, root, top_seconds()))
		return true;
	complain("cannot read what the daemon of \"%s\" says: it is not valid JSON, or memory ran "
		 "out",
		 instance);
	return false;
}

static void sleep_for(double s)
{
	struct timespec t = {.tv_sec = (time_t)s, .tv_nsec = (long)((s - (double)(time_t)s) * 1e9)};

	while (nanosleep(&t, &t) && errno == EINTR)
		;
}

static int print_table(const struct top_look *before, const struct top_look *after,
		       enum top_view view, unsigned int sort)
{
	const struct top_filter all = {0};
	struct top_table t;
	char line[TOP_WIDTH];

	if (!top_table_make(&t, before, after, view, &all, sort, false)) {
		complain("memory ran out");
		return EXIT_SELF;
	}
	top_summary(before, after, line);
	puts(line);
	top_heading(view, line);
	puts(line);
	for (size_t i = 0; i < t.rows; i++) {
		top_line(&t, &t.row[i], line);
		puts(line);
	}
	top_table_drop(&t);
	if (fflush(stdout) == 0)
		return 0;
	complain("cannot write the output: %s", strerror(errno));
	return EXIT_SELF;
}

static int batch(double delay, unsigned long looks, enum top_view view, unsigned int sort)
{
	struct top_look before, after;
	int status = 0;

	if (!take(&before))
		return EXIT_SELF;
	for (unsigned long i = 0; !status && (!looks || i < looks); i++) {
		sleep_for(delay);
		if (!take(&after)) {
			status = EXIT_SELF;
			break;
		}
		if (i)
			putchar('\n');
		status = print_table(&before, &after, view, sort);
		top_look_drop(&before);
		before = after;
	}
	top_look_drop(&before);
	return status;
}

/* ---- the command line ---- */

static int usage(void)
{
	puts("Usage: softhca top [--view VIEW] [--sort COLUMN] [--delay TIME] [--count N] "
	     "[--batch] "
	     "NAME\n\n"
	     "Show what goes over an instance, a second at a time. VIEW is processes, hcas, ports, "
	     "qps or\n"
	     "domains (XRC domains and who uses them). COLUMN is the title of one. TIME is from "
	     "100ms to\n"
	     "1000s (default: 1s). With --count, end after N tables. With --batch, print tables "
	     "one "
	     "below the\n"
	     "other; so it is without a terminal, too. While a table is shown, the key h tells "
	     "what "
	     "the keys do.");
	return 0;
}

static bool parse_view(const char *word, enum top_view *view)
{
	for (*view = 0; *view < TOP_VIEWS; ++*view)
		if (!strcmp(word, top_view_name(*view)))
			return true;
	complain("there is no view \"%s\": choose processes, hcas, ports, qps or domains", word);
	return false;
}

static bool parse_sort(const struct options *o, unsigned int *sort)
{
	int column = o->sort ? top_column(o->view, o->sort) : (int)top_column_first(o->view);
	char titles[256] = "";

	if (column >= 0) {
		*sort = (unsigned int)column;
		return true;
	}
	for (unsigned int i = 0; i < top_columns(o->view); i++)
		snprintf(titles + strlen(titles), sizeof(titles) - strlen(titles), "%s\"%s\"",
			 i ? ", " : "", top_column_title(o->view, i));
	complain("the view %s has no column \"%s\": choose one of %s", top_view_name(o->view),
		 o->sort, titles);
	return false;
}

/* Returns 0, EXIT_USAGE after a message, or -1 after an answer to --help. */
static int parse(int argc, char **argv, struct options *o)
{
	for (int i = 1; i < argc; i++) {
		const char *value;

		if (is_help(argv[i])) {
			usage();
			return -1;
		}
		if (!strcmp(argv[i], "--batch")) {
			o->batch = true;
		} else if (take_value("--view", argc, argv, &i, &value)) {
			if (!value || !parse_view(value, &o->view))
				goto no_value;
		} else if (take_value("--sort", argc, argv, &i, &value)) {
			if (!value)
				goto no_value;
			o->sort = value;
		} else if (take_value("--delay", argc, argv, &i, &value)) {
			if (!value ||
			    !parse_length("--delay must be from 100ms to 1000s", value, 100000000,
					  UINT64_C(1000000000000), &o->delay_ns))
				goto no_value;
		} else if (take_value("--count", argc, argv, &i, &value)) {
			if (!value || !parse_number("--count", value, 1, 1000000000, &o->looks))
				goto no_value;
		} else if (argv[i][0] == '-' || o->name) {
			complain("softhca top takes options and one name, not \"%s\": softhca top "
				 "--help lists them",
				 argv[i]);
			return EXIT_USAGE;
		} else {
			o->name = argv[i];
		}
		continue;
	no_value:
		if (!value)
			complain("option %s needs a value behind it; softhca top --help says which",
				 argv[argc - 1]);
		return EXIT_USAGE;
	}
	if (o->name)
		return 0;
	complain("softhca top needs the name of an instance; softhca show lists those that run");
	return EXIT_USAGE;
}

int verb_top(int argc, char **argv)
{
	struct options o = {.delay_ns = 1000000000};
	unsigned int sort = 0;
	double delay;
	int status = parse(argc, argv, &o);

	if (status)
		return status < 0 ? 0 : status;
	if (!parse_sort(&o, &sort))
		return EXIT_USAGE;
	instance = o.name;
	delay = (double)o.delay_ns / 1e9;
	if (o.batch || !isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO))
		return batch(delay, o.looks, o.view, sort);
#ifdef HAVE_NCURSES
	return top_screen(instance, delay, o.looks, o.view, sort);
#else
	complain("this softhca was built without ncurses: add --batch");
	return EXIT_SELF;
#endif
}
