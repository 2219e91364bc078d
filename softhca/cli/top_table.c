// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Tables of `softhca top`: what two looks have in common, as rates. An object that only the second
 * look has was made in between: all that it has counted is new.
 */
#include <ctype.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "plural.h"
#include "top.h"

enum kind {
	TEXT,  /* at the left edge of its column */
	COUNT, /* as it is now */
	RATE,  /* a second */
};

struct column {
	const char *title;
	int width;
	enum kind kind;
};

/* Widths and the blanks between columns make 79 at most. The last column of text may be cut. */
static const struct column processes[] = {
	{"PID", 7, TEXT},     {"COMMAND", 15, TEXT}, {"HOST", 5, COUNT},   {"QPS", 5, COUNT},
	{"SENT/s", 6, RATE},  {"RECV/s", 6, RATE},   {"OUT B/s", 7, RATE}, {"IN B/s", 6, RATE},
	{"RETRY/s", 7, RATE}, {"DROP/s", 6, RATE},
};
static const struct column hcas[] = {
	{"HCA", 14, TEXT},    {"QPS", 6, COUNT},    {"SENT/s", 7, RATE},
	{"RECV/s", 7, RATE},  {"OUT B/s", 8, RATE}, {"IN B/s", 8, RATE},
	{"RETRY/s", 7, RATE}, {"RNR/s", 7, RATE},   {"DROP/s", 7, RATE},
};
static const struct column ports[] = {
	{"PORT", 16, TEXT},  {"STATE", 6, TEXT},   {"LID", 5, COUNT},	{"PKT OUT", 8, RATE},
	{"PKT IN", 8, RATE}, {"OUT B/s", 8, RATE}, {"IN B/s", 8, RATE}, {"LOST/s", 7, RATE},
};
static const struct column qps[] = {
	{"QP", 19, TEXT},     {"TYPE", 4, TEXT},   {"STATE", 5, TEXT},	 {"WAIT", 4, COUNT},
	{"SENT/s", 6, RATE},  {"RECV/s", 6, RATE}, {"OUT B/s", 7, RATE}, {"IN B/s", 6, RATE},
	{"RETRY/s", 7, RATE}, {"DROP/s", 6, RATE},
};
static const struct column domains[] = {
	{"XRC DOMAIN", 20, TEXT}, {"INODE", 10, TEXT}, {"OPENS", 5, COUNT}, {"QPS", 4, COUNT},
	{"SRQS", 4, COUNT},	  {"RECV/s", 6, RATE}, {"IN B/s", 6, RATE}, {"PROCESSES", 17, TEXT},
};

#define SIZE(x) (sizeof(x) / sizeof((x)[0]))
static const struct view {
	const char *name;
	const struct column *column;
	unsigned int columns, first;
} views[TOP_VIEWS] = {
	[TOP_PROCESSES] = {"processes", processes, SIZE(processes), 4},
	[TOP_HCAS] = {"hcas", hcas, SIZE(hcas), 2},
	[TOP_PORTS] = {"ports", ports, SIZE(ports), 3},
	[TOP_QPS] = {"qps", qps, SIZE(qps), 4},
	[TOP_DOMAINS] = {"domains", domains, SIZE(domains), 5},
};

const char *top_view_name(enum top_view view)
{
	return views[view].name;
}

unsigned int top_columns(enum top_view view)
{
	return views[view].columns;
}

const char *top_column_title(enum top_view view, unsigned int column)
{
	return views[view].column[column].title;
}

unsigned int top_column_first(enum top_view view)
{
	return views[view].first;
}

int top_column(enum top_view view, const char *title)
{
	for (unsigned int i = 0; i < views[view].columns; i++)
		if (!strcasecmp(views[view].column[i].title, title))
			return (int)i;
	return -1;
}

/* ---- looks ---- */

static json_int_t integer(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

static const char *string(const json_t *object, const char *key)
{
	const char *value = json_string_value(json_object_get(object, key));

	return value ? value : "";
}

static const json_t *list(const json_t *object, const char *key)
{
	return json_object_get(object, key);
}

/* fn(arg, name of the HCA, HCA) for each. Stops where that returns false, and returns that. */
static bool each_hca(const json_t *root, bool (*fn)(void *arg, const char *name, json_t *hca),
		     void *arg)
{
	json_t *host, *hca;
	size_t h, i;

	json_array_foreach(list(root, "hosts"), h, host)
	{
		json_array_foreach(list(host, "hcas"), i, hca)
		{
			char name[40];

			snprintf(name, sizeof(name), "host%d/%.20s", (int)integer(host, "host"),
				 string(hca, "device"));
			if (!fn(arg, name, hca))
				return false;
		}
	}
	return true;
}

static bool note_things(void *arg, const char *name, json_t *hca)
{
	json_t *things = arg, *qp, *port;
	char key[64];
	size_t i;

	json_array_foreach(list(hca, "qps"), i, qp)
	{
		snprintf(key, sizeof(key), "%s/qp%d", name, (int)integer(qp, "qpn"));
		if (json_object_set(things, key, qp))
			return false;
	}
	json_array_foreach(list(hca, "ports"), i, port)
	{
		snprintf(key, sizeof(key), "%s:%d", name, (int)integer(port, "port"));
		if (json_object_set(things, key, port))
			return false;
	}
	return !json_object_set(things, name, hca);
}

bool top_look_init(struct top_look *look, json_t *root, double at)
{
	*look = (struct top_look){.root = root, .at = at, .things = json_object()};
	if (look->things && each_hca(root, note_things, look->things))
		return true;
	top_look_drop(look);
	return false;
}

void top_look_drop(struct top_look *look)
{
	json_decref(look->root);
	json_decref(look->things);
	*look = (struct top_look){0};
}

/* ---- rates ---- */

struct making {
	struct top_table *t;
	const struct top_look *before, *after;
	const struct top_filter *filter;
	bool no_memory;
};

/*
 * By how much a counter has grown. One that has become less belongs to an object that is new, or it
 * is one of 32 bits that began again at 0.
 */
static double grown(const json_t *before, const json_t *after, const char *counter)
{
	json_int_t was = integer(before, counter), is = integer(after, counter);

	if (is >= was)
		return (double)(is - was);
	if (was <= UINT32_MAX && was - is > INT32_MAX)
		return (double)(is + (json_int_t)UINT32_MAX + 1 - was);
	return (double)is;
}

static double per_second(const struct making *m, double grown)
{
	double passed = m->after->at - m->before->at;

	return passed > 0 ? grown / passed : 0;
}

static struct top_row *add_row(struct making *m, const char *key)
{
	struct top_table *t = m->t;
	struct top_row *grown, *row;

	if (t->rows % 64 == 0) {
		grown = realloc(t->row, (t->rows + 64) * sizeof(*grown));
		if (!grown) {
			m->no_memory = true;
			return NULL;
		}
		t->row = grown;
	}
	row = &t->row[t->rows++];
	memset(row, 0, sizeof(*row));
	snprintf(row->key, sizeof(row->key), "%s", key);
	return row;
}

/* Puts text into column i; what others wrote may hold anything. */
static void put(struct top_row *row, unsigned int i, const char *text)
{
	size_t n = 0;

	for (; text[n] && n < sizeof(row->text[i]) - 1; n++)
		row->text[i][n] = (char)(isprint((unsigned char)text[n]) ? text[n] : '?');
	row->text[i][n] = 0;
}

/* Is the row of this key what the filter asks for, or part of it? */
static bool wanted(const struct making *m, const char *key)
{
	return !m->filter->key[0] || !strcmp(m->filter->key, key);
}

/* A number in five characters at most: 999, 9.99k, 99.9k, 999k, 1.00M. */
static void short_number(double n, char text[16])
{
	static const char unit[] = " kMGTP";
	unsigned int u = 0;

	while (n >= 999.5 && u < sizeof(unit) - 2) {
		n /= 1000;
		u++;
	}
	if (!u)
		snprintf(text, 16, "%.*f", n > 0 && n < 9.95 && floor(n) != n ? 1 : 0, n);
	else
		snprintf(text, 16, "%.*f%c", n < 9.995 ? 2 : n < 99.95 ? 1 : 0, n, unit[u]);
}

/* ---- views ---- */

/* A receive QP of an XRC domain belongs to no process. */
static void add_qp(const struct making *m, struct top_row *row, const json_t *was, const json_t *qp)
{
	row->value[3]++;
	row->value[4] += per_second(m, grown(was, qp, "messages_sent"));
	row->value[5] += per_second(m, grown(was, qp, "messages_received"));
	row->value[6] += per_second(m, grown(was, qp, "xmit_data"));
	row->value[7] += per_second(m, grown(was, qp, "rcv_data"));
	row->value[8] += per_second(m, grown(was, qp, "retries"));
	row->value[9] += per_second(m, grown(was, qp, "drops"));
}

static struct top_row *find_process(const struct top_table *t, json_int_t pid)
{
	char key[24];

	snprintf(key, sizeof(key), "%d", (int)pid);
	for (size_t i = 0; i < t->rows; i++)
		if (!strcmp(t->row[i].key, key))
			return &t->row[i];
	return NULL;
}

static bool add_qps_of_hca(void *arg, const char *name, json_t *hca)
{
	struct making *m = arg;
	const json_t *qp;
	size_t i;

	json_array_foreach(list(hca, "qps"), i, qp)
	{
		struct top_row *row = find_process(m->t, integer(qp, "pid"));
		char key[64];

		snprintf(key, sizeof(key), "%s/qp%d", name, (int)integer(qp, "qpn"));
		if (row)
			add_qp(m, row, json_object_get(m->before->things, key), qp);
	}
	return true;
}

static void make_processes(struct making *m)
{
	const json_t *process;
	size_t i;

	json_array_foreach(list(m->after->root, "processes"), i, process)
	{
		struct top_row *row;
		char pid[24];

		snprintf(pid, sizeof(pid), "%d", (int)integer(process, "pid"));
		if (!wanted(m, pid) || find_process(m->t, integer(process, "pid")))
			continue;
		row = add_row(m, pid);
		if (!row)
			return;
		put(row, 0, pid);
		put(row, 1, string(process, "command"));
		row->value[2] = (double)integer(process, "host");
	}
	each_hca(m->after->root, add_qps_of_hca, m);
}

static double drops(const json_t *before, const json_t *after)
{
	const json_t *value;
	const char *key;
	double sum = 0;

	json_object_foreach((json_t *)after, key, value) if (!strncmp(key, "drops_", 6)) sum +=
		grown(before, after, key);
	return sum;
}

static bool make_hca(void *arg, const char *name, json_t *hca)
{
	static const char *const counter[] = {"messages_sent", "messages_received", "xmit_data",
					      "rcv_data",      "retries",	    "rnr_retries"};
	struct making *m = arg;
	const json_t *is = json_object_get(hca, "counters");
	const json_t *was = json_object_get(json_object_get(m->before->things, name), "counters");
	struct top_row *row;

	if (!wanted(m, name))
		return true;
	row = add_row(m, name);
	if (!row)
		return false;
	put(row, 0, name);
	row->value[1] = (double)json_array_size(list(hca, "qps"));
	for (unsigned int i = 0; i < SIZE(counter); i++)
		row->value[2 + i] = per_second(m, grown(was, is, counter[i]));
	row->value[8] = per_second(m, drops(was, is));
	return true;
}

static bool make_ports(void *arg, const char *name, json_t *hca)
{
	static const char *const counter[] = {"xmit_packets", "rcv_packets", "xmit_data",
					      "rcv_data"};
	struct making *m = arg;
	const json_t *port;
	size_t i;

	if (!wanted(m, name))
		return true;
	json_array_foreach(list(hca, "ports"), i, port)
	{
		const json_t *was;
		struct top_row *row;
		char key[64];

		snprintf(key, sizeof(key), "%s:%d", name, (int)integer(port, "port"));
		was = json_object_get(m->before->things, key);
		row = add_row(m, key);
		if (!row)
			return false;
		put(row, 0, key);
		put(row, 1, string(port, "state"));
		row->value[2] = (double)integer(port, "lid");
		for (unsigned int c = 0; c < SIZE(counter); c++)
			row->value[3 + c] = per_second(m, grown(was, port, counter[c]));
		row->value[7] = per_second(m, grown(was, port, "xmit_discards") +
						      grown(was, port, "rcv_errors") +
						      grown(was, port, "rcv_constraint"));
	}
	return true;
}

/* Does a filter by process, HCA, port or XRC domain take this QP? */
static bool takes_qp(const struct making *m, const char *hca, const json_t *qp)
{
	char port[64], domain[64], pid[24];

	snprintf(port, sizeof(port), "%s:%d", hca, (int)integer(qp, "port"));
	snprintf(domain, sizeof(domain), "%s/xrcd%d", hca, (int)integer(qp, "xrcd"));
	snprintf(pid, sizeof(pid), "%d", (int)integer(qp, "pid"));
	return wanted(m, hca) || wanted(m, port) || wanted(m, pid) ||
	       (json_object_get(qp, "xrcd") && wanted(m, domain));
}

/* Of XRC_INI and XRC_TGT, what tells them from XRC. */
static const char *short_type(const char *type)
{
	return strncmp(type, "XRC_", 4) ? type : type + 4;
}

static bool make_qps(void *arg, const char *name, json_t *hca)
{
	static const char *const counter[] = {"messages_sent", "messages_received", "xmit_data",
					      "rcv_data",      "retries",	    "drops"};
	struct making *m = arg;
	const json_t *qp;
	size_t i;

	json_array_foreach(list(hca, "qps"), i, qp)
	{
		const json_t *was;
		struct top_row *row;
		char key[64], shown[64];

		if (!takes_qp(m, name, qp))
			continue;
		snprintf(key, sizeof(key), "%s/qp%d", name, (int)integer(qp, "qpn"));
		was = json_object_get(m->before->things, key);
		row = add_row(m, key);
		if (!row)
			return false;
		/*
		 * As ibv_ tools and softhca show have it. The key has it in decimal: see compare().
		 */
		snprintf(shown, sizeof(shown), "%s/0x%06x", name + strlen("host"),
			 (unsigned int)integer(qp, "qpn"));
		put(row, 0, shown);
		put(row, 1, short_type(string(qp, "type")));
		put(row, 2, string(qp, "state"));
		row->value[3] = (double)integer(qp, "send_outstanding");
		for (unsigned int c = 0; c < SIZE(counter); c++)
			row->value[4 + c] = per_second(m, grown(was, qp, counter[c]));
	}
	return true;
}

/* Adds a process to the list of those that use a domain, if it is not there. */
static void add_user(const struct making *m, char users[TOP_WIDTH], json_int_t pid)
{
	const json_t *process;
	const char *command = "";
	char word[48];
	size_t i, len = strlen(users);

	json_array_foreach(list(m->after->root, "processes"), i,
			   process) if (integer(process, "pid") == pid) command =
		string(process, "command");
	snprintf(word, sizeof(word), "%.20s:%d", command, (int)pid);
	for (const char *at = strstr(users, word); at; at = strstr(at + 1, word))
		if ((at == users || at[-1] == ' ') &&
		    (!at[strlen(word)] || at[strlen(word)] == ' '))
			return;
	if (len + strlen(word) + 2 <= TOP_WIDTH)
		snprintf(users + len, TOP_WIDTH - len, "%s%s", len ? " " : "", word);
}

static bool make_domains(void *arg, const char *name, json_t *hca)
{
	struct making *m = arg;
	const json_t *domain, *thing;
	size_t d, i;

	json_array_foreach(list(hca, "xrc_domains"), d, domain)
	{
		json_int_t number = integer(domain, "xrcd");
		char users[TOP_WIDTH] = "", key[64];
		struct top_row *row;

		snprintf(key, sizeof(key), "%s/xrcd%d", name, (int)number);
		row = wanted(m, key) ? add_row(m, key) : NULL;
		if (m->no_memory)
			return false;
		if (!row)
			continue;
		put(row, 0, key);
		if (json_is_integer(json_object_get(domain, "inode")))
			snprintf(row->text[1], sizeof(row->text[1]), "%lld",
				 (long long)integer(domain, "inode"));
		else
			put(row, 1, "none");
		row->value[2] = (double)integer(domain, "opens");
		json_array_foreach(list(hca, "srqs"), i,
				   thing) if (integer(thing, "xrcd") == number)
		{
			row->value[4]++;
			add_user(m, users, integer(thing, "pid"));
		}
		json_array_foreach(list(hca, "qps"), i, thing) if (integer(thing, "xrcd") == number)
		{
			char qp[64];
			const json_t *was;

			snprintf(qp, sizeof(qp), "%s/qp%d", name, (int)integer(thing, "qpn"));
			was = json_object_get(m->before->things, qp);
			row->value[3]++;
			row->value[5] += per_second(m, grown(was, thing, "messages_received"));
			row->value[6] += per_second(m, grown(was, thing, "rcv_data"));
			if (integer(thing, "pid"))
				add_user(m, users, integer(thing, "pid"));
		}
		put(row, 7, users[0] ? users : "-");
	}
	return true;
}

/* ---- the table ---- */

/* Of the rows that qsort() compares; the command has one thread. */
static struct {
	unsigned int column;
	enum kind kind;
	bool reversed;
} sorting;

static int compare(const void *a, const void *b)
{
	const struct top_row *x = a, *y = b;
	unsigned int c = sorting.column;
	int order;

	/* The first column names the row, as its key does, which has all numbers in decimal. */
	if (!c)
		order = strverscmp(x->key, y->key);
	else if (sorting.kind == TEXT)
		order = strverscmp(x->text[c], y->text[c]);
	else
		order = (x->value[c] < y->value[c]) - (x->value[c] > y->value[c]);
	if (sorting.reversed)
		order = -order;
	/* Rows that are equal do not change places from look to look. */
	return order ? order : strverscmp(x->key, y->key);
}

bool top_table_make(struct top_table *t, const struct top_look *before,
		    const struct top_look *after, enum top_view view,
		    const struct top_filter *filter, unsigned int sort, bool reversed)
{
	static bool (*const make[TOP_VIEWS])(void *arg, const char *name, json_t *hca) = {
		[TOP_HCAS] = make_hca,
		[TOP_PORTS] = make_ports,
		[TOP_QPS] = make_qps,
		[TOP_DOMAINS] = make_domains,
	};
	struct making m = {.t = t, .before = before, .after = after, .filter = filter};

	*t = (struct top_table){.view = view};
	if (view == TOP_PROCESSES)
		make_processes(&m);
	else
		each_hca(after->root, make[view], &m);
	if (m.no_memory) {
		top_table_drop(t);
		return false;
	}
	for (size_t i = 0; i < t->rows; i++)
		for (unsigned int c = 0; c < views[view].columns; c++)
			if (views[view].column[c].kind != TEXT)
				short_number(t->row[i].value[c], t->row[i].text[c]);
	sorting.column = sort;
	sorting.kind = views[view].column[sort].kind;
	sorting.reversed = reversed;
	if (t->rows)
		qsort(t->row, t->rows, sizeof(t->row[0]), compare);
	return true;
}

void top_table_drop(struct top_table *t)
{
	free(t->row);
	t->row = NULL;
	t->rows = 0;
}

/*
 * Puts a cell at the end of a line, as wide as its column. Of a name that is too long, the end is
 * what tells it from others.
 */
static size_t put_cell(char line[TOP_WIDTH], size_t at, unsigned int i, const struct column *c,
		       const char *text)
{
	size_t len = strlen(text), width = (size_t)c->width;
	int n;

	if (!i && len > width)
		n = snprintf(line + at, TOP_WIDTH - at, "<%s", text + len - width + 1);
	else
		n = snprintf(line + at, TOP_WIDTH - at, c->kind == TEXT ? "%s%-*.*s" : "%s%*.*s",
			     i ? " " : "", c->width, c->width, text);
	return n < 0 || at + (size_t)n >= TOP_WIDTH ? TOP_WIDTH - 1 : at + (size_t)n;
}

/* A line ends where its text ends. */
static void end_line(char line[TOP_WIDTH], size_t at)
{
	while (at && line[at - 1] == ' ')
		at--;
	line[at] = 0;
}

void top_heading(enum top_view view, char line[TOP_WIDTH])
{
	size_t at = 0;

	for (unsigned int i = 0; i < views[view].columns; i++)
		at = put_cell(line, at, i, &views[view].column[i], views[view].column[i].title);
	end_line(line, at);
}

void top_line(const struct top_table *t, const struct top_row *row, char line[TOP_WIDTH])
{
	size_t at = 0;

	for (unsigned int i = 0; i < views[t->view].columns; i++)
		at = put_cell(line, at, i, &views[t->view].column[i], row->text[i]);
	end_line(line, at);
}

static bool count_traffic(void *arg, const char *name, json_t *hca)
{
	double *sum = arg;
	const json_t *counters = json_object_get(hca, "counters");

	(void)name;
	sum[0] += (double)integer(counters, "messages_sent");
	sum[1] += (double)json_array_size(list(hca, "qps"));
	sum[2] += (double)integer(counters, "xmit_data");
	return true;
}

void top_summary(const struct top_look *before, const struct top_look *after, char line[TOP_WIDTH])
{
	const struct making m = {.before = before, .after = after};
	const char *path = string(after->root, "instance"), *name = strrchr(path, '/');
	size_t clients = json_array_size(list(after->root, "processes"));
	char sent[16], data[16], commands[16], text[160];
	double was[3] = {0}, is[3] = {0};

	each_hca(before->root, count_traffic, was);
	each_hca(after->root, count_traffic, is);
	short_number(per_second(&m, is[0] - was[0]), sent);
	short_number(per_second(&m, is[2] - was[2]), data);
	short_number(per_second(&m, grown(json_object_get(before->root, "daemon"),
					  json_object_get(after->root, "daemon"), "commands")),
		     commands);
	snprintf(text, sizeof(text),
		 "%.20s: %zu process%s, %.0f QP%s; %s messages/s, %sB/s; %s commands/s",
		 name ? name + 1 : path, clients, clients == 1 ? "" : "es", is[1],
		 plural((uint64_t)is[1]), sent, data, commands);
	snprintf(line, TOP_WIDTH, "%.*s", TOP_WIDTH - 1, text);
}

bool top_drill(const struct top_table *t, const struct top_row *row, enum top_view *view,
	       struct top_filter *filter)
{
	static const char *const what[TOP_VIEWS] = {"process", "HCA", "port", NULL, "XRC domain"};

	if (!what[t->view])
		return false;
	*view = t->view == TOP_HCAS ? TOP_PORTS : TOP_QPS;
	snprintf(filter->key, sizeof(filter->key), "%s", row->key);
	snprintf(filter->title, sizeof(filter->title), "of %s %.40s", what[t->view], row->key);
	return true;
}
