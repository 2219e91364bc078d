/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * `softhca top`: what goes over an instance, as rates. A look is what `softhca show --json` prints;
 * two looks make a table (top_table.c), which top.c prints or top_screen.c shows. The latter asks
 * for each look by top_ask.c.
 */
#ifndef SOFTHCA_CLI_TOP_H
#define SOFTHCA_CLI_TOP_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define TOP_WIDTH 80 /* of a line, with its newline */

enum top_view { TOP_PROCESSES, TOP_HCAS, TOP_PORTS, TOP_QPS, TOP_DOMAINS, TOP_VIEWS };

/* What the table is about: rows that belong to one row of another table. */
struct top_filter {
	char key[64];	/* the other row's; empty: everything */
	char title[64]; /* what it is, for people */
};

struct top_look {
	json_t *root;
	double at;	/* seconds since some time */
	json_t *things; /* "host0/mlx4_0/qp1048648" and the like -> the object in root */
};

#define TOP_CELLS 10

struct top_row {
	char key[64];			 /* tells it from all other rows of the view */
	char text[TOP_CELLS][TOP_WIDTH]; /* of each column */
	double value[TOP_CELLS];	 /* of columns of numbers */
};

struct top_table {
	enum top_view view;
	struct top_row *row;
	size_t rows;
};

/* Takes over root. False where memory runs out, and root is dropped. */
bool top_look_init(struct top_look *look, json_t *root, double at);
void top_look_drop(struct top_look *look);

/* The word that --view takes. */
const char *top_view_name(enum top_view view);
/* The number of the column with this title, upper case or not, or -1. */
int top_column(enum top_view view, const char *title);
unsigned int top_columns(enum top_view view);
const char *top_column_title(enum top_view view, unsigned int column);
/* By which a view is sorted at first. */
unsigned int top_column_first(enum top_view view);

/*
 * Makes the rows of a view, sorted by a column: numbers with the largest first, text from a to z;
 * the other way round if reversed. Returns false where memory runs out.
 */
bool top_table_make(struct top_table *t, const struct top_look *before,
		    const struct top_look *after, enum top_view view,
		    const struct top_filter *filter, unsigned int sort, bool reversed);
void top_table_drop(struct top_table *t);

/* The lines of a table, without newlines: what the columns are, and a row. */
void top_heading(enum top_view view, char line[TOP_WIDTH]);
void top_line(const struct top_table *t, const struct top_row *row, char line[TOP_WIDTH]);
/* What the instance is, and what its daemon does. */
void top_summary(const struct top_look *before, const struct top_look *after, char line[TOP_WIDTH]);

/* The view that shows what a row is made of, and its filter. False: nothing shows that. */
bool top_drill(const struct top_table *t, const struct top_row *row, enum top_view *view,
	       struct top_filter *filter);

/* A clock that only goes forward. */
double top_seconds(void);

/*
 * Shows tables on the terminal until the person quits or `looks` tables have been shown (0: no
 * bound). Returns the exit status.
 */
int top_screen(const char *instance, double delay, unsigned long looks, enum top_view view,
	       unsigned int sort);

/* ---- top_ask.c ---- */

/* A look that a process has been started to ask the daemon for. */
struct top_question {
	pid_t pid;
	int fd;	      /* can be read when the answer comes */
	double began; /* by top_seconds() */
	char *text;   /* what has come so far */
	size_t len, room;
};

enum top_answer { TOP_WAITING, TOP_ANSWERED, TOP_FAILED };

/* False: after a message. */
bool top_ask(struct top_question *q, const char *instance);
bool top_asking(const struct top_question *q);
/* Fills in the look if the answer has come, and does not wait for it. Failed: after a message. */
enum top_answer top_hear(struct top_question *q, const char *instance, struct top_look *look);
/* The answer is not wanted any more, or has come. */
void top_forget(struct top_question *q);

#endif
