// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * `softhca graph`: the fabric of an instance, its hosts and processes, their QPs and XRC domains,
 * in the language of Graphviz (DOT). Draws what `softhca show --json` prints, and keeps no state.
 *
 * Each thing has a name that is the same in every picture: "host0/mlx4_0/qp0x000048". Pictures of
 * one instance can therefore be compared.
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plural.h"
#include "softhca.h"

struct graph {
	const json_t *root;
	bool by_process; /* a process is one node: its QPs are counted, not drawn */
	json_t *qps;	 /* name of the node -> QP */
	json_t *edges;	 /* by_process: name of the edge -> how many QPs */
};

/* An HCA, with the name that its nodes begin with. */
struct hca {
	const json_t *json;
	char name[64];
};

static json_int_t integer(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

/* Of a QP or an SRQ, or what is counted there. */
static unsigned int number_of(const json_t *object, const char *key)
{
	return (unsigned int)integer(object, key);
}

static const char *string(const json_t *object, const char *key)
{
	const char *value = json_string_value(json_object_get(object, key));

	return value ? value : "";
}

static struct hca hca_at(const json_t *host, const json_t *json)
{
	struct hca hca = {.json = json};

	snprintf(hca.name, sizeof(hca.name), "host%d/%s", (int)integer(host, "host"),
		 string(json, "device"));
	return hca;
}

/* Text of others inside a quoted string of DOT. */
static void put_text(const char *text)
{
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			putchar('\\');
		putchar((unsigned char)*text < ' ' ? '?' : *text);
	}
}

/* The name of a process: what it calls itself, as far as that is known. */
static void put_process(const struct graph *g, json_int_t pid)
{
	const json_t *process;
	size_t i;

	json_array_foreach(json_object_get(g->root, "processes"), i, process)
	{
		if (integer(process, "pid") != pid || !*string(process, "command"))
			continue;
		put_text(string(process, "command"));
		putchar(' ');
		break;
	}
	printf("%d", (int)pid);
}

/* The port that has this LID. False: none has. */
static bool find_lid(const struct graph *g, json_int_t lid, struct hca *found)
{
	const json_t *host, *hca, *port;
	size_t h, i, p;

	json_array_foreach(json_object_get(g->root, "hosts"), h, host)
		json_array_foreach(json_object_get(host, "hcas"), i, hca) json_array_foreach(
			json_object_get(hca, "ports"), p, port) if (integer(port, "lid") == lid)
	{
		*found = hca_at(host, hca);
		return true;
	}
	return false;
}

static const json_t *find_qp(const struct graph *g, const struct hca *hca, json_int_t qpn)
{
	char name[96];

	snprintf(name, sizeof(name), "%s/qp0x%06x", hca->name, (unsigned int)qpn);
	return json_object_get(g->qps, name);
}

/* So that find_qp() need not look at all. False where memory runs out. */
static bool index_qps(struct graph *g)
{
	json_t *host, *json, *qp;
	size_t h, i, q;

	json_array_foreach(json_object_get(g->root, "hosts"), h, host)
		json_array_foreach(json_object_get(host, "hcas"), i, json)
	{
		const struct hca hca = hca_at(host, json);

		json_array_foreach(json_object_get(json, "qps"), q, qp)
		{
			char name[96];

			snprintf(name, sizeof(name), "%s/qp0x%06x", hca.name, number_of(qp, "qpn"));
			if (json_object_set(g->qps, name, qp))
				return false;
		}
	}
	return true;
}

static bool is_receive_qp(const json_t *qp)
{
	return !strcmp(string(qp, "type"), "XRC_TGT");
}

static json_int_t lid_of(const struct hca *hca, json_int_t number)
{
	const json_t *port;
	size_t i;

	json_array_foreach(json_object_get(hca->json, "ports"), i,
			   port) if (integer(port, "port") == number) return integer(port, "lid");
	return 0;
}

/* Is `to` connected to `from`, as well as the other way round? */
static bool answers(const struct hca *here, const json_t *from, const json_t *to)
{
	return integer(to, "dest_qpn") == integer(from, "qpn") &&
	       integer(to, "dlid") == lid_of(here, integer(from, "port"));
}

/* ---- what is in an HCA ---- */

static void put_receive_qp(const struct hca *hca, const json_t *qp)
{
	const json_t *registration;
	size_t i;

	printf("\t\t\t\"%s/qp0x%06x\" [label=\"XRC receive QP 0x%06x\\n%s\\nregistered by:",
	       hca->name, number_of(qp, "qpn"), number_of(qp, "qpn"), string(qp, "state"));
	json_array_foreach(json_object_get(qp, "registrations"), i, registration)
		printf(" %d", (int)integer(registration, "pid"));
	puts("\", style=rounded];");
}

static void put_domains(const struct graph *g, const struct hca *hca)
{
	const json_t *domain, *qp;
	size_t i, j;

	json_array_foreach(json_object_get(hca->json, "xrc_domains"), i, domain)
	{
		size_t receivers = json_array_size(json_object_get(domain, "receive_qps"));

		printf("\t\t\t\"%s/xrcd%d\" [shape=folder, label=\"XRC domain %d", hca->name,
		       (int)integer(domain, "xrcd"), (int)integer(domain, "xrcd"));
		if (json_object_get(domain, "inode"))
			printf("\\ninode %lld", (long long)integer(domain, "inode"));
		if (g->by_process)
			printf("\\n%zu receive QP%s", receivers, plural(receivers));
		puts("\"];");
	}
	if (g->by_process)
		return;
	json_array_foreach(json_object_get(hca->json, "qps"), j, qp) if (is_receive_qp(qp))
		put_receive_qp(hca, qp);
}

/* "4 RC, 1 UD", of one process. */
static void put_kinds(const struct hca *hca, json_int_t pid)
{
	static const char *const kinds[] = {"RC", "UC", "UD", "XRC_INI"};
	const json_t *qp;
	size_t i;

	for (unsigned int k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		unsigned int number = 0;

		json_array_foreach(json_object_get(hca->json, "qps"), i, qp) number +=
			integer(qp, "pid") == pid && !strcmp(string(qp, "type"), kinds[k]);
		if (number)
			printf("\\n%u %s", number, kinds[k]);
	}
}

static void put_queues(const struct hca *hca, json_int_t pid)
{
	const json_t *srq, *qp;
	size_t i;

	json_array_foreach(json_object_get(hca->json, "qps"), i,
			   qp) if (integer(qp, "pid") == pid && !is_receive_qp(qp))
		printf("\t\t\t\t\"%s/qp0x%06x\" [label=\"%s 0x%06x\\n%s\"];\n", hca->name,
		       number_of(qp, "qpn"), string(qp, "type"), number_of(qp, "qpn"),
		       string(qp, "state"));
	json_array_foreach(json_object_get(hca->json, "srqs"), i,
			   srq) if (integer(srq, "pid") == pid)
		printf("\t\t\t\t\"%s/srq0x%06x\" [shape=cylinder, label=\"SRQ 0x%06x\\n%u "
		       "receive%s\"];\n",
		       hca->name, number_of(srq, "srqn"), number_of(srq, "srqn"),
		       number_of(srq, "available"), plural(number_of(srq, "available")));
}

static void put_process_node(const struct graph *g, const struct hca *hca, json_int_t pid)
{
	if (g->by_process) {
		printf("\t\t\t\"%s/process%d\" [shape=component, label=\"", hca->name, (int)pid);
		put_process(g, pid);
		put_kinds(hca, pid);
		puts("\"];");
		return;
	}
	printf("\t\t\tsubgraph \"cluster_%s/process%d\" {\n\t\t\t\tlabel=\"", hca->name, (int)pid);
	put_process(g, pid);
	/* Graphviz draws no box around nothing. */
	printf("\";\n\t\t\t\t\"%s/process%d\" [shape=point, style=invis];\n", hca->name, (int)pid);
	put_queues(hca, pid);
	puts("\t\t\t}");
}

/* Has one of the first `count` contexts this process? */
static bool seen(const json_t *contexts, size_t count, json_int_t pid)
{
	for (size_t i = 0; i < count; i++)
		if (integer(json_array_get(contexts, i), "pid") == pid)
			return true;
	return false;
}

static void put_hca(const struct graph *g, const struct hca *hca)
{
	const json_t *contexts = json_object_get(hca->json, "contexts"), *context, *port;
	size_t i;

	printf("\t\tsubgraph \"cluster_%s\" {\n\t\t\tlabel=\"%s %s%s\";\n", hca->name,
	       string(hca->json, "device"), string(hca->json, "node_guid"),
	       json_is_true(json_object_get(hca->json, "fatal")) ? " (fatal error)" : "");
	json_array_foreach(json_object_get(hca->json, "ports"), i, port)
		printf("\t\t\t\"%s/port%d\" [shape=cds, label=\"port %d, LID %d\\n%s\"];\n",
		       hca->name, (int)integer(port, "port"), (int)integer(port, "port"),
		       (int)integer(port, "lid"), string(port, "state"));
	json_array_foreach(contexts, i, context) if (!seen(contexts, i, integer(context, "pid")))
		put_process_node(g, hca, integer(context, "pid"));
	put_domains(g, hca);
	puts("\t\t}");
}

/* ---- what leads from one to another ---- */

/* By process: one more QP on the edge between two nodes. Returns false where memory runs out. */
static bool count_edge(struct graph *g, const char *from, const char *to, const char *kind)
{
	json_int_t number;
	char *edge;
	bool ok;

	if (asprintf(&edge, "\"%s\" -> \"%s\" [label=\"%s: ", from, to, kind) < 0)
		return false;
	number = integer(g->edges, edge);
	ok = !json_object_set_new(g->edges, edge, json_integer(number + 1));
	free(edge);
	return ok;
}

static bool connect_processes(struct graph *g, const struct hca *here, const json_t *qp,
			      const struct hca *there, const json_t *peer)
{
	char from[96], to[96];

	snprintf(from, sizeof(from), "%s/process%d", here->name, (int)integer(qp, "pid"));
	if (is_receive_qp(peer))
		snprintf(to, sizeof(to), "%s/xrcd%d", there->name, (int)integer(peer, "xrcd"));
	else
		snprintf(to, sizeof(to), "%s/process%d", there->name, (int)integer(peer, "pid"));
	return count_edge(g, from, to, string(qp, "type"));
}

/* The edge to a QP of another instance, which is seen on a wire by its LID alone; or to nothing. */
static void put_far(const struct graph *g, const struct hca *here, unsigned int qpn, int dlid,
		    unsigned int dest)
{
	struct hca own;
	bool far = json_object_get(g->root, "wire") && !find_lid(g, dlid, &own);

	printf("\t\"LID %d, QP 0x%06x\" [shape=plaintext, label=\"LID %d, QP 0x%06x:\\n%s\"];\n",
	       dlid, dest, dlid, dest, far ? "on the wire" : "not there");
	printf("\t\"%s/qp0x%06x\" -> \"LID %d, QP 0x%06x\"%s;\n", here->name, qpn, dlid, dest,
	       far ? "" : " [style=dashed]");
}

/* The edge of one QP to the one that it is connected to. False where memory runs out. */
static bool put_connection(struct graph *g, const struct hca *here, const json_t *qp)
{
	unsigned int qpn = number_of(qp, "qpn"), dest = number_of(qp, "dest_qpn");
	const char *state = string(qp, "state");
	const json_t *peer = NULL;
	bool both;
	struct hca there;

	if (is_receive_qp(qp) || !dest || !strcmp(state, "RESET") || !strcmp(state, "INIT"))
		return true;
	if (find_lid(g, integer(qp, "dlid"), &there))
		peer = find_qp(g, &there, dest);
	if (!peer) {
		if (!g->by_process)
			put_far(g, here, qpn, (int)integer(qp, "dlid"), dest);
		return true;
	}
	both = !is_receive_qp(peer) && answers(here, qp, peer);
	/* One edge for a pair: that of the QP whose name comes first. */
	if (both &&
	    (strcmp(here->name, there.name) > 0 || (!strcmp(here->name, there.name) && qpn > dest)))
		return true;
	if (g->by_process)
		return connect_processes(g, here, qp, &there, peer);
	printf("\t\"%s/qp0x%06x\" -> \"%s/qp0x%06x\"%s;\n", here->name, qpn, there.name, dest,
	       both ? " [dir=both]" : "");
	return true;
}

/* Where receive WQEs come from: SRQs of QPs, and of XRC domains. */
static void put_receives(const struct graph *g, const struct hca *hca)
{
	const json_t *qp, *srq;
	size_t i;

	if (!g->by_process)
		json_array_foreach(json_object_get(hca->json, "qps"), i, qp)
		{
			if (is_receive_qp(qp))
				printf("\t\"%s/qp0x%06x\" -> \"%s/xrcd%d\" [style=dotted];\n",
				       hca->name, number_of(qp, "qpn"), hca->name,
				       (int)integer(qp, "xrcd"));
			else if (integer(qp, "srq"))
				printf("\t\"%s/qp0x%06x\" -> \"%s/srq0x%06x\" [style=dotted];\n",
				       hca->name, number_of(qp, "qpn"), hca->name,
				       number_of(qp, "srq"));
		}
	json_array_foreach(json_object_get(hca->json, "srqs"), i,
			   srq) if (json_object_get(srq, "xrcd"))
	{
		printf("\t\"%s/xrcd%d\" -> ", hca->name, (int)integer(srq, "xrcd"));
		if (g->by_process)
			printf("\"%s/process%d\"", hca->name, (int)integer(srq, "pid"));
		else
			printf("\"%s/srq0x%06x\"", hca->name, number_of(srq, "srqn"));
		puts(" [style=dotted];");
	}
}

static bool put_edges(struct graph *g, const struct hca *hca)
{
	const json_t *port, *qp;
	size_t i;

	json_array_foreach(json_object_get(hca->json, "ports"), i, port) printf(
		"\t\"%s/port%d\" -> fabric [dir=none%s];\n", hca->name, (int)integer(port, "port"),
		strcmp(string(port, "state"), "ACTIVE") ? ", style=dashed, color=red" : "");
	json_array_foreach(json_object_get(hca->json, "qps"), i,
			   qp) if (!put_connection(g, hca, qp)) return false;
	put_receives(g, hca);
	return true;
}

/* False where memory runs out. */
static bool draw(struct graph *g, const char *name)
{
	const json_t *host, *hca, *number;
	bool ok = true;
	const char *edge;
	size_t h, i;

	printf("digraph \"");
	put_text(name);
	puts("\" {\n"
	     "\trankdir=LR;\n"
	     "\tgraph [fontname=\"sans-serif\", fontsize=11, style=rounded, color=gray40];\n"
	     "\tnode [fontname=\"sans-serif\", fontsize=10, shape=box];\n"
	     "\tedge [fontname=\"sans-serif\", fontsize=9];\n"
	     "\tfabric [shape=ellipse, label=\"fabric\"];");
	json_array_foreach(json_object_get(g->root, "hosts"), h, host)
	{
		printf("\tsubgraph \"cluster_host%d\" {\n\t\tlabel=\"host%d\";\n",
		       (int)integer(host, "host"), (int)integer(host, "host"));
		json_array_foreach(json_object_get(host, "hcas"), i, hca)
		{
			const struct hca at = hca_at(host, hca);

			put_hca(g, &at);
		}
		puts("\t}");
	}
	json_array_foreach(json_object_get(g->root, "hosts"), h, host)
		json_array_foreach(json_object_get(host, "hcas"), i, hca)
	{
		const struct hca at = hca_at(host, hca);

		ok = ok && put_edges(g, &at);
	}
	json_object_foreach((json_t *)g->edges, edge, number)
		printf("\t%s%d\"];\n", edge, (int)json_integer_value(number));
	puts("}");
	return ok;
}

static int graph_one(const char *instance, bool by_process)
{
	size_t len;
	char *text = show_fetch(instance, &len);
	struct graph g = {.by_process = by_process};
	json_t *root;
	bool ok;

	if (!text)
		return EXIT_SELF;
	root = json_loadb(text, len, 0, NULL);
	free(text);
	g.root = root;
	g.qps = json_object();
	g.edges = json_object();
	ok = root && g.qps && g.edges && index_qps(&g) && draw(&g, instance);
	json_decref(g.qps);
	json_decref(root);
	json_decref(g.edges);
	if (!ok) {
		complain("cannot draw %s: the daemon's answer is not valid JSON, or memory ran out",
			 instance);
		return EXIT_SELF;
	}
	if (!ferror(stdout) && fflush(stdout) == 0)
		return 0;
	complain("cannot write the output: %s", strerror(errno));
	return EXIT_SELF;
}

int verb_graph(int argc, char **argv)
{
	const char *name = NULL;
	bool by_process = false;

	for (int i = 1; i < argc; i++) {
		if (is_help(argv[i])) {
			puts("Usage: softhca graph [--processes] NAME\n\n"
			     "Print the fabric of an instance, its hosts and processes, their QPs, "
			     "SRQs and XRC domains, as a\n"
			     "graph in DOT, the language of Graphviz. With --processes, a process "
			     "is "
			     "one node, and an edge counts\n"
			     "the QPs between two. Try: softhca graph NAME | dot -Tsvg "
			     ">fabric.svg");
			return 0;
		}
		if (!strcmp(argv[i], "--processes")) {
			by_process = true;
		} else if (argv[i][0] == '-' || name) {
			complain("softhca graph takes --processes and one name, not \"%s\"",
				 argv[i]);
			return EXIT_USAGE;
		} else {
			name = argv[i];
		}
	}
	if (name)
		return graph_one(name, by_process);
	complain("softhca graph needs the name of an instance; softhca show lists those that run");
	return EXIT_USAGE;
}
