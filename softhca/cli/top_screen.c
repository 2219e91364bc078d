// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* `softhca top` on a terminal: the table, the keys, and what they do. See top.h. */
#include <ncurses.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "softhca.h"
#include "top.h"

#define HEAD	    3	/* lines above the rows */
#define FIRST_DELAY 0.3 /* seconds to the first table */
#define DEPTH	    3	/* rows that were entered, one in the other */
#define SILENCE	    1.0 /* seconds without an answer after which the screen says so */

struct place {
	enum top_view view;
	struct top_filter filter;
	unsigned int sort;
	bool reversed;
	char chosen[64]; /* key of the row */
};

struct screen {
	struct place at;
	struct place from[DEPTH];
	unsigned int depth;
	struct top_look before, after;
	struct top_table table;
	size_t chosen, first; /* rows: that of the cursor, the topmost on the screen */
	bool help, held;
	bool failed; /* there was a message */
	const char *instance;
	struct top_question question;
	bool silent; /* the screen says that no answer comes */
};

static volatile sig_atomic_t ended;

static void on_signal(int number)
{
	(void)number;
	ended = 1;
}

/* ---- the table ---- */

static bool make_table(struct screen *s)
{
	top_table_drop(&s->table);
	if (!top_table_make(&s->table, &s->before, &s->after, s->at.view, &s->at.filter, s->at.sort,
			    s->at.reversed))
		return false;
	/* The cursor stays on its row, wherever that is now. */
	for (size_t i = 0; i < s->table.rows; i++)
		if (!strcmp(s->table.row[i].key, s->at.chosen))
			s->chosen = i;
	if (s->chosen >= s->table.rows)
		s->chosen = s->table.rows ? s->table.rows - 1 : 0;
	return true;
}

static void choose(struct screen *s, size_t row)
{
	s->chosen = row;
	if (row < s->table.rows)
		snprintf(s->at.chosen, sizeof(s->at.chosen), "%s", s->table.row[row].key);
}

static void go(struct screen *s, enum top_view view, const struct top_filter *filter)
{
	s->at = (struct place){.view = view, .sort = top_column_first(view)};
	if (filter)
		s->at.filter = *filter;
	s->chosen = s->first = 0;
}

static void enter(struct screen *s)
{
	struct top_filter filter;
	enum top_view view;

	if (s->chosen >= s->table.rows || s->depth == DEPTH ||
	    !top_drill(&s->table, &s->table.row[s->chosen], &view, &filter))
		return;
	choose(s, s->chosen);
	s->from[s->depth++] = s->at;
	go(s, view, &filter);
}

static void leave(struct screen *s)
{
	if (!s->depth)
		return;
	s->at = s->from[--s->depth];
	s->first = 0;
}

/* ---- drawing ---- */

static void draw_help(void)
{
	static const char *const text[] = {
		"p  processes          up, down, page up, page down, home, end  move the cursor",
		"d  HCAs (devices)     enter      what this row is made of: its ports, its QPs",
		"o  ports              backspace  back",
		"n  QPs (numbers)      < >        sort by another column",
		"x  XRC domains        r          sort the other way round",
		"                      space      hold, and go on",
		"h  this page          q          quit",
		"",
		"SENT and RECV are messages, OUT and IN payload, in bytes. RETRY: a QP began",
		"again after a timeout or a sequence NAK; of QPs and processes, after an RNR NAK",
		"too. DROP: packets for it that vanished; softhca show tells why. LOST:",
		"packets lost or damaged on the way. WAIT: requests that are not complete. A",
		"QP is named by its host, its HCA and its number.",
	};

	for (unsigned int i = 0; i < sizeof(text) / sizeof(text[0]); i++)
		mvaddstr(HEAD + (int)i, 0, text[i]);
}

static void draw_heading(const struct screen *s)
{
	const char *title = top_column_title(s->at.view, s->at.sort);
	char line[TOP_WIDTH];
	const char *at;

	top_heading(s->at.view, line);
	attron(A_REVERSE);
	mvprintw(HEAD - 1, 0, "%-*s", TOP_WIDTH - 1, line);
	at = strstr(line, title);
	if (at) {
		attron(A_BOLD | A_UNDERLINE);
		mvaddstr(HEAD - 1, (int)(at - line), title);
		attroff(A_BOLD | A_UNDERLINE);
	}
	attroff(A_REVERSE);
}

static void draw_rows(struct screen *s)
{
	size_t fit = LINES > HEAD ? (size_t)(LINES - HEAD) : 1;

	if (s->chosen < s->first)
		s->first = s->chosen;
	if (s->chosen >= s->first + fit)
		s->first = s->chosen - fit + 1;
	for (size_t i = 0; i < fit && s->first + i < s->table.rows; i++) {
		char line[TOP_WIDTH];

		top_line(&s->table, &s->table.row[s->first + i], line);
		if (s->first + i == s->chosen)
			attron(A_STANDOUT);
		mvaddnstr(HEAD + (int)i, 0, line, COLS);
		attroff(A_STANDOUT);
	}
	if (!s->table.rows)
		mvaddstr(HEAD, 0, "(none)");
}

static void draw(struct screen *s)
{
	char line[TOP_WIDTH];

	erase();
	top_summary(&s->before, &s->after, line);
	mvaddnstr(0, 0, line, COLS);
	mvprintw(1, 0, "%s %s%s%s  (h: help, q: quit)", top_view_name(s->at.view),
		 s->at.filter.title, s->held ? "  [held]" : "",
		 s->silent ? "  [the daemon does not answer]" : "");
	draw_heading(s);
	if (s->help)
		draw_help();
	else
		draw_rows(s);
	refresh();
}

/* ---- keys ---- */

static void move_cursor(struct screen *s, int key)
{
	size_t page = LINES > HEAD ? (size_t)(LINES - HEAD) : 1, last;

	if (!s->table.rows)
		return;
	last = s->table.rows - 1;
	switch (key) {
	case KEY_UP:
		choose(s, s->chosen ? s->chosen - 1 : 0);
		break;
	case KEY_DOWN:
		choose(s, s->chosen < last ? s->chosen + 1 : last);
		break;
	case KEY_PPAGE:
		choose(s, s->chosen > page ? s->chosen - page : 0);
		break;
	case KEY_NPAGE:
		choose(s, s->chosen + page < last ? s->chosen + page : last);
		break;
	case KEY_HOME:
		choose(s, 0);
		break;
	case KEY_END:
		choose(s, last);
		break;
	}
}

/* False: the person quits. */
static bool on_key(struct screen *s, int key)
{
	static const char keys[TOP_VIEWS] = {'p', 'd', 'o', 'n', 'x'};
	unsigned int columns = top_columns(s->at.view);

	s->help = !s->help && (key == 'h' || key == '?');
	for (unsigned int i = 0; i < TOP_VIEWS; i++)
		if (key == keys[i]) {
			s->depth = 0;
			go(s, i, NULL);
		}
	switch (key) {
	case 'q':
		return false;
	case '<':
		s->at.sort = (s->at.sort + columns - 1) % columns;
		break;
	case '>':
		s->at.sort = (s->at.sort + 1) % columns;
		break;
	case 'r':
		s->at.reversed = !s->at.reversed;
		break;
	case ' ':
		s->held = !s->held;
		break;
	case '\n':
	case '\r':
	case KEY_ENTER:
		enter(s);
		break;
	case KEY_BACKSPACE:
	case KEY_LEFT:
	case '\b':
	case 127:
		leave(s);
		break;
	default:
		move_cursor(s, key);
	}
	return true;
}

static bool fails(struct screen *s, const char *message)
{
	if (message)
		complain("%s", message);
	s->failed = true;
	return false;
}

/* Before the first table there is nothing that keys could change. False: as on_key(). */
static bool take_key(struct screen *s, int key)
{
	if (!s->after.root)
		return key != 'q';
	if (!on_key(s, key))
		return false;
	if (!make_table(s))
		return fails(s, "memory ran out");
	draw(s);
	return true;
}

/* Says once that the daemon is silent. */
static void tell_silence(struct screen *s)
{
	if (s->silent || !top_asking(&s->question) || top_seconds() - s->question.began < SILENCE)
		return;
	s->silent = true;
	if (s->after.root) {
		draw(s);
		return;
	}
	mvprintw(0, 0, "softhca top: the daemon of %s does not answer  (q: quit)", s->instance);
	refresh();
}

/* Waits for a key, for the answer, or for so many seconds, but for no more than 0.2. */
static void wait_for_either(const struct screen *s, double left)
{
	struct pollfd either[] = {{.fd = STDIN_FILENO, .events = POLLIN},
				  {.fd = s->held ? -1 : s->question.fd, .events = POLLIN}};

	/* A signal may come before poll(): so that does not wait for long. */
	poll(either, 2, left > 0.2 ? 200 : (int)(left * 1000) + 1);
}

/*
 * Takes keys until the time has come. Then, if there is a look to fill in, asks for it, and takes
 * keys until the daemon has answered. While the user holds the table it asks for no look, and an
 * answer waits. False: the person quits, a signal came, or there was a message.
 */
static bool keys_until(struct screen *s, double next, struct top_look *now)
{
	timeout(0);
	for (;;) {
		double left = next - top_seconds();
		int key = getch();

		if (ended)
			return false;
		if (key != ERR) {
			if (!take_key(s, key))
				return false;
			continue;
		}
		if (!s->held && top_asking(&s->question)) {
			switch (top_hear(&s->question, s->instance, now)) {
			case TOP_ANSWERED:
				s->silent = false;
				return true;
			case TOP_FAILED:
				return fails(s, NULL);
			case TOP_WAITING:
				tell_silence(s);
			}
		} else if (!s->held && left <= 0) {
			if (!now)
				return true;
			if (!top_ask(&s->question, s->instance))
				return fails(s, NULL);
		}
		wait_for_either(s, s->held || left <= 0 ? 1 : left);
	}
}

/* ---- the whole ---- */

/*
 * The first look makes no table: rates take two. The last table is shown for as long as the others.
 */
static void show(struct screen *s, double delay, unsigned long looks)
{
	double next =
		s->before.root ? top_seconds() + (delay < FIRST_DELAY ? delay : FIRST_DELAY) : 0;

	mvaddstr(0, 0, "softhca top: looking ...");
	refresh();
	for (unsigned long tables = 0;;) {
		bool last = looks && tables == looks;
		struct top_look now;

		if (!keys_until(s, next, last ? NULL : &now) || last)
			return;
		next = top_seconds() + delay;
		if (!s->before.root) {
			s->before = now;
			next = top_seconds() + (delay < FIRST_DELAY ? delay : FIRST_DELAY);
			continue;
		}
		if (s->after.root) {
			top_look_drop(&s->before);
			s->before = s->after;
		}
		s->after = now;
		if (!make_table(s)) {
			fails(s, "memory ran out");
			return;
		}
		draw(s);
		tables++;
	}
}

/*
 * Standard error goes to a file while the screen is the terminal's; what was written there comes
 * afterwards. Returns the descriptor that was standard error, or -1.
 */
static int hold_errors(int *file)
{
	int saved = -1;

	*file = memfd_create("softhca-top", MFD_CLOEXEC);
	if (*file >= 0)
		saved = dup(STDERR_FILENO);
	if (saved >= 0)
		dup2(*file, STDERR_FILENO);
	return saved;
}

static void release_errors(int saved, int file)
{
	char text[4096];
	ssize_t len;

	if (saved >= 0) {
		fflush(stderr);
		dup2(saved, STDERR_FILENO);
		close(saved);
		len = pread(file, text, sizeof(text), 0);
		if (len > 0)
			fwrite(text, 1, (size_t)len, stderr);
	}
	if (file >= 0)
		close(file);
}

/* Asks for the first look. An instance that is not there is told before there is a screen. */
static bool first_look(struct screen *s)
{
	struct pollfd answer = {.events = POLLIN};

	if (!top_ask(&s->question, s->instance))
		return false;
	answer.fd = s->question.fd;
	poll(&answer, 1, (int)(FIRST_DELAY * 1000));
	return top_hear(&s->question, s->instance, &s->before) != TOP_FAILED;
}

static void on_terminal(struct screen *s, double delay, unsigned long looks)
{
	SCREEN *terminal = newterm(NULL, stdout, stdin);

	if (!terminal) {
		fails(s, "cannot use this terminal: set TERM to one that this machine knows, or "
			 "add --batch");
		return;
	}
	cbreak();
	noecho();
	keypad(stdscr, TRUE);
	curs_set(0);
	show(s, delay, looks);
	endwin();
	delscreen(terminal);
}

int top_screen(const char *instance, double delay, unsigned long looks, enum top_view view,
	       unsigned int sort)
{
	const struct sigaction end = {.sa_handler = on_signal};
	struct screen s = {.at = {.view = view, .sort = sort}, .instance = instance};
	int saved, file;

	sigaction(SIGINT, &end, NULL);
	sigaction(SIGTERM, &end, NULL);
	saved = hold_errors(&file);
	if (first_look(&s))
		on_terminal(&s, delay, looks);
	else
		s.failed = true;
	release_errors(saved, file);
	top_forget(&s.question);
	top_look_drop(&s.before);
	top_look_drop(&s.after);
	top_table_drop(&s.table);
	return s.failed ? EXIT_SELF : 0;
}
