// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * `softhca run --stats`: what went over each HCA while the command ran, and what programs left
 * open. Looks at the counters of the instance twice and takes the difference. In an instance that
 * other programs use at the same time, their traffic is in it, too. Reads what `softhca show
 * --json` prints, and keeps no state.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "plural.h"
#include "softhca.h"

struct stats {
	json_t *root;
};

static const struct {
	const char *counter, *one, *many;
} left_open[] = {
	{"left_qps", "QP", "QPs"}, {"left_srqs", "SRQ", "SRQs"},
	{"left_cqs", "CQ", "CQs"}, {"left_mrs", "memory region", "memory regions"},
	{"left_pds", "PD", "PDs"}, {"left_xrc_domains", "XRC domain", "XRC domains"},
};

struct stats *stats_take(const char *dir)
{
	struct stats *stats = calloc(1, sizeof(*stats));
	size_t len;
	char *text = show_fetch(dir, &len);

	if (text && stats)
		stats->root = json_loadb(text, len, 0, NULL);
	free(text);
	if (stats && stats->root)
		return stats;
	if (text)
		complain("cannot tell what went over the HCAs: the daemon's answer is not valid "
			 "JSON, or memory ran out");
	stats_free(stats);
	return NULL;
}

void stats_free(struct stats *stats)
{
	if (!stats)
		return;
	json_decref(stats->root);
	free(stats);
}

/* HCA i of host h, or NULL after the last one. */
static const json_t *hca_of(const struct stats *stats, size_t h, size_t i)
{
	const json_t *host = json_array_get(json_object_get(stats->root, "hosts"), h);

	return json_array_get(json_object_get(host, "hcas"), i);
}

static size_t number_of(const struct stats *stats, size_t *per_host)
{
	const json_t *hosts = json_object_get(stats->root, "hosts");

	*per_host = json_array_size(json_object_get(json_array_get(hosts, 0), "hcas"));
	return json_array_size(hosts) * *per_host;
}

static json_int_t counter(const json_t *hca, const char *name)
{
	return json_integer_value(json_object_get(json_object_get(hca, "counters"), name));
}

struct pair {
	const json_t *before, *after;
};

static json_int_t grown(struct pair hca, const char *name)
{
	return counter(hca.after, name) - counter(hca.before, name);
}

static bool used(struct pair hca)
{
	return grown(hca, "xmit_packets") || grown(hca, "rcv_packets");
}

bool stats_traffic(const struct stats *before, const struct stats *after)
{
	size_t per_host, n = number_of(after, &per_host);

	for (size_t i = 0; i < n; i++) {
		struct pair hca = {hca_of(before, i / per_host, i % per_host),
				   hca_of(after, i / per_host, i % per_host)};

		/* What a fault took was sent. */
		if (grown(hca, "xmit_packets") || grown(hca, "drops_fault"))
			return true;
	}
	return false;
}

static void print_used(const char *name, struct pair hca)
{
	json_int_t sent = grown(hca, "messages_sent"), out = grown(hca, "xmit_data"),
		   received = grown(hca, "messages_received"), in = grown(hca, "rcv_data");

	complain("%s: sent %" JSON_INTEGER_FORMAT " message%s, %" JSON_INTEGER_FORMAT
		 " byte%s; received %" JSON_INTEGER_FORMAT " message%s, %" JSON_INTEGER_FORMAT
		 " byte%s",
		 name, sent, plural((uint64_t)sent), out, plural((uint64_t)out), received,
		 plural((uint64_t)received), in, plural((uint64_t)in));
}

static void print_left(const char *name, struct pair hca)
{
	const char *separator = " left open when its program closed the device or ended: ";
	bool any = false;

	for (size_t i = 0; i < sizeof(left_open) / sizeof(left_open[0]); i++) {
		json_int_t n = grown(hca, left_open[i].counter);

		if (!n)
			continue;
		if (!any)
			fprintf(stderr, "softhca: %s:", name);
		fprintf(stderr, "%s%" JSON_INTEGER_FORMAT " %s", separator, n,
			n == 1 ? left_open[i].one : left_open[i].many);
		separator = ", ";
		any = true;
	}
	if (any)
		fputc('\n', stderr);
}

/* The programs that are still there. The process softhca-wire is the instance's own. */
static size_t programs(const struct stats *s)
{
	const json_t *wire = json_object_get(s->root, "wire"), *process;
	json_int_t own = json_integer_value(json_object_get(wire, "pid"));
	size_t i, n = 0;

	json_array_foreach(json_object_get(s->root, "processes"), i, process) n +=
		json_integer_value(json_object_get(process, "pid")) != own;
	return n;
}

void stats_print(const struct stats *before, const struct stats *after)
{
	size_t per_host, n = number_of(after, &per_host);
	size_t open = programs(after);

	for (size_t i = 0; i < n; i++) {
		struct pair hca = {hca_of(before, i / per_host, i % per_host),
				   hca_of(after, i / per_host, i % per_host)};
		const char *device = json_string_value(json_object_get(hca.after, "device"));
		char name[64];

		snprintf(name, sizeof(name), "host %zu, %s", i / per_host, device ? device : "?");
		if (used(hca))
			print_used(name, hca);
		print_left(name, hca);
	}
	if (open)
		complain("%zu process%s of the instance still run%s; traffic from now on is not "
			 "counted here",
			 open, open == 1 ? "" : "es", open == 1 ? "s" : "");
}
