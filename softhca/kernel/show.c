// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* What an instance holds, as JSON, for the softhca command and for tests. Changes nothing. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <jansson.h>

#include "softhca/device/memory/fault_rule.h"
#include "softhca/device/queues/cq.h"
#include "softhca/device/queues/qp.h"
#include "softhca/device/queues/srq.h"
#include "softhca/kernel/uverbs/command.h"
#include "softhca/kernel/uverbs/context.h"
#include "softhca/kernel/uverbs/evq.h"
#include "softhca/kernel/uverbs/objects.h"
#include "kern.h"
#include "process.h"
#include "show.h"

/*
 * The output. It is written while objects are looked up, since there can be too much of it to keep
 * in memory.
 */
struct out {
	FILE *f;
	unsigned int depth;
	bool begun;			/* the innermost object or array has something in it */
};

static void new_line(struct out *o)
{
	fprintf(o->f, "\n%*s", (int)o->depth * 2, "");
}

/* Precedes each value. The elements of an array have no names. */
static void item(struct out *o, const char *name)
{
	if (o->begun)
		fputc(',', o->f);
	if (o->depth)
		new_line(o);
	if (name)
		fprintf(o->f, "\"%s\": ", name);
	o->begun = true;
}

static void add_int(struct out *o, const char *name, uint64_t value)
{
	item(o, name);
	fprintf(o->f, "%" PRId64, (int64_t)value);
}

/* Text of the daemon's own, in which nothing needs escaping. */
static void add_text(struct out *o, const char *name, const char *value)
{
	item(o, name);
	fprintf(o->f, "\"%s\"", value);
}

/* A number in the form that the field writes it in. */
static void add_hex(struct out *o, const char *name, const char *format, uint64_t value)
	__attribute__((format(printf, 3, 0)));
static void add_hex(struct out *o, const char *name, const char *format, uint64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), format, value);
	add_text(o, name, text);
}

/* Text that others chose; left out if it is not valid text. */
static void add_path(struct out *o, const char *name, const char *value)
{
	json_t *string = json_string(value);

	if (!string)
		return;
	item(o, name);
	json_dumpf(string, o->f, JSON_ENCODE_ANY);
	json_decref(string);
}

static void add_word(struct out *o, const char *name, const char *word)
{
	item(o, name);
	fputs(word, o->f);
}

static void begin(struct out *o, const char *name, char bracket)
{
	item(o, name);
	fputc(bracket, o->f);
	o->depth++;
	o->begun = false;
}

static void end(struct out *o, char bracket)
{
	o->depth--;
	if (o->begun)
		new_line(o);
	fputc(bracket, o->f);
	o->begun = true;
}

static void begin_array(struct out *o, const char *name)
{
	begin(o, name, '[');
}

static void end_array(struct out *o)
{
	end(o, ']');
}

static void begin_object(struct out *o, const char *name)
{
	begin(o, name, '{');
}

static void end_object(struct out *o)
{
	end(o, '}');
}

static const char *type_name(uint32_t type)
{
	switch (type) {
	case SH_QPT_RC:
		return "RC";
	case SH_QPT_UC:
		return "UC";
	case SH_QPT_UD:
		return "UD";
	case SH_QPT_XRC:
		return "XRC";
	case SH_QPT_XRC_INI:
		return "XRC_INI";
	case SH_QPT_XRC_TGT:
		return "XRC_TGT";
	}
	return "unknown";
}

static const char *state_name(uint32_t state)
{
	static const char *const name[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};

	return state < sizeof(name) / sizeof(name[0]) ? name[state] : "unknown";
}

static void registrations(const struct kqp *qp, struct out *o)
{
	const struct kxrc_reg *reg;

	begin_array(o, "registrations");
	DL_FOREACH(qp->regs, reg) {
		begin_object(o, NULL);
		add_int(o, "context", reg->ctx->index);
		add_int(o, "pid", reg->ctx->proc->pid);
		end_object(o);
	}
	end_array(o);
}

static void show_qp_state(const struct sh_qp_info *info, struct out *o)
{
	add_text(o, "state", state_name(info->state));
	add_int(o, "send_cq", info->send_cqn);
	add_int(o, "recv_cq", info->recv_cqn);
	add_int(o, "srq", info->srqn);
	add_int(o, "dest_qpn", info->dest_qpn);
	add_int(o, "dlid", info->dlid);
	add_int(o, "port", info->port);
	add_int(o, "send_outstanding", info->sq_posted_unfinished);
	add_int(o, "recv_posted", info->rq_available);
	add_int(o, "retries_left", info->retry_left);
	add_int(o, "rnr_retries_left", info->rnr_left);
	add_int(o, "messages_sent", info->messages_sent);
	add_int(o, "messages_received", info->messages_received);
}

static void show_qps(struct kernel *k, uint32_t hca, struct out *o)
{
	struct sh_qp_info info;
	struct kqp *qp, *tmp;

	begin_array(o, "qps");
	HASH_ITER(hh, k->objects[hca].qps, qp, tmp) {
		begin_object(o, NULL);
		add_int(o, "qpn", qp->qpn);
		add_text(o, "type", type_name(qp->type));
		if (qp->ctx) {
			add_int(o, "context", qp->ctx->index);
			add_int(o, "pid", qp->ctx->proc->pid);
		} else {
			registrations(qp, o);
		}
		if (qp->pd)
			add_int(o, "pd", qp->pd->pdn);
		if (qp->d)
			add_int(o, "xrcd", qp->d->xrcdn);
		add_text(o, "queue_memory", qp->buf.shm ? "shared" : qp->ctx ? "copied" : "none");
		add_int(o, "queue_bytes", qp->buf.len);
		if (sh_qp_info(&k->dev, hca, qp->qpn, &info) == 0)
			show_qp_state(&info, o);
		end_object(o);
	}
	end_array(o);
}

static void show_cq(struct kernel *k, uint32_t hca, const struct kcq *cq, struct out *o)
{
	struct sh_cq_info info;

	add_int(o, "cqn", cq->cqn);
	add_int(o, "context", cq->u.ctx->index);
	add_int(o, "pid", cq->u.ctx->proc->pid);
	add_int(o, "entries", cq->entries);
	add_int(o, "users", cq->refs);
	add_text(o, "queue_memory", cq->buf.shm ? "shared" : "copied");
	add_int(o, "queue_bytes", cq->buf.len);
	if (cq->evq)
		add_int(o, "channel", cq->evq->index);
	if (sh_cq_query(&k->dev, hca, cq->cqn, &info) < 0)
		return;
	add_int(o, "producer", info.producer);
	add_int(o, "consumer", info.consumer);
	add_int(o, "armed", info.armed);
	add_int(o, "overrun", info.overrun);
	add_int(o, "events", info.comp_events);
}

static void show_srq(struct kernel *k, uint32_t hca, const struct ksrq *srq, struct out *o)
{
	struct sh_srq_info info;

	add_int(o, "srqn", srq->srqn);
	add_int(o, "context", srq->u.ctx->index);
	add_int(o, "pid", srq->u.ctx->proc->pid);
	add_int(o, "pd", srq->pd->pdn);
	add_int(o, "max_wr", srq->max - 1);
	add_int(o, "users", srq->refs);
	add_text(o, "queue_memory", srq->buf.shm ? "shared" : "copied");
	add_int(o, "queue_bytes", srq->buf.len);
	if (srq->d) {
		add_int(o, "xrcd", srq->d->xrcdn);
		add_int(o, "cq", srq->cq->cqn);
	}
	if (sh_srq_query(&k->dev, hca, srq->srqn, &info) < 0)
		return;
	add_int(o, "available", info.available);
	add_int(o, "limit", info.limit);
}

/* By the names of the verbs, less their IBV_ACCESS_. */
static void show_access(uint32_t access, struct out *o)
{
	static const char *const name[] = {"LOCAL_WRITE", "REMOTE_WRITE", "REMOTE_READ", "REMOTE_ATOMIC", "MW_BIND"};

	begin_array(o, "access");
	for (size_t i = 0; i < sizeof(name) / sizeof(name[0]); i++)
		if (access & 1u << i)
			add_text(o, NULL, name[i]);
	end_array(o);
}

static void show_mr(const struct kmr *mr, struct out *o)
{
	add_hex(o, "key", "0x%08" PRIx64, mr->key);
	add_int(o, "context", mr->u.ctx->index);
	add_int(o, "pid", mr->u.ctx->proc->pid);
	add_int(o, "pd", mr->pd->pdn);
	add_hex(o, "address", "0x%" PRIx64, mr->start);
	add_int(o, "length", mr->len);
	show_access(mr->access, o);
}

static void show_pd(const struct kpd *pd, struct out *o)
{
	add_int(o, "pdn", pd->pdn);
	add_int(o, "context", pd->u.ctx->index);
	add_int(o, "pid", pd->u.ctx->proc->pid);
	add_int(o, "users", pd->refs);
}

static void show_type(struct kernel *k, uint32_t hca, enum uobj_type type, const char *name, struct out *o)
{
	const struct uobj *u;
	uint32_t i;

	begin_array(o, name);
	for (i = 1; i < SH_MAX_CTX; i++) {
		if (!k->ctx[i] || k->ctx[i]->hca != hca)
			continue;
		DL_FOREACH(k->ctx[i]->objs[type], u) {
			begin_object(o, NULL);
			if (type == UO_PD)
				show_pd((const struct kpd *)u, o);
			else if (type == UO_CQ)
				show_cq(k, hca, (const struct kcq *)u, o);
			else if (type == UO_SRQ)
				show_srq(k, hca, (const struct ksrq *)u, o);
			else
				show_mr((const struct kmr *)u, o);
			end_object(o);
		}
	}
	end_array(o);
}

static void show_xrcds(struct kernel *k, uint32_t hca, struct out *o)
{
	const struct kxrcd *d;
	const struct kqp *qp;

	begin_array(o, "xrc_domains");
	DL_FOREACH(k->objects[hca].xrcds, d) {
		begin_object(o, NULL);
		add_int(o, "xrcd", d->xrcdn);
		if (d->fd >= 0) {
			add_int(o, "device", d->key.dev);
			add_int(o, "inode", d->key.ino);
		} else {
			add_word(o, "device", "null");
			add_word(o, "inode", "null");
		}
		add_int(o, "opens", d->opens);
		add_int(o, "users", d->users);
		begin_array(o, "receive_qps");
		DL_FOREACH2(d->qps, qp, dnext) {
			begin_object(o, NULL);
			add_int(o, "qpn", qp->qpn);
			registrations(qp, o);
			end_object(o);
		}
		end_array(o);
		end_object(o);
	}
	end_array(o);
}

static void show_contexts(struct kernel *k, uint32_t hca, struct out *o)
{
	const struct kevq *q;
	uint32_t i;

	begin_array(o, "contexts");
	for (i = 1; i < SH_MAX_CTX; i++) {
		const struct kctx *ctx = k->ctx[i];

		if (!ctx || ctx->hca != hca)
			continue;
		begin_object(o, NULL);
		add_int(o, "context", i);
		add_int(o, "pid", ctx->proc->pid);
		add_text(o, "state", ctx->state == KC_RELEASING ? "releasing" : ctx->gone ? "memory gone" :
			 ctx->state == KC_OPENING ? "opening" : "open");
		add_text(o, "doorbells", sh_ctx(&k->dev, i)->kick ? "kick" : "trap");
		add_int(o, "commands", ctx->commands);
		add_int(o, "locked_pages", ctx->proc->locked);
		begin_array(o, "event_queues");
		DL_FOREACH(ctx->evqs, q) {
			const struct sh_evq *shared = sh_evq(&k->dev, q->index);

			begin_object(o, NULL);
			add_int(o, "queue", q->index);
			add_text(o, "kind", q->async ? "async" : "completion");
			add_int(o, "users", q->refs);
			add_int(o, "spilled", shared->spilled);
			add_int(o, "lost", shared->lost);
			end_object(o);
		}
		end_array(o);
		end_object(o);
	}
	end_array(o);
}

static void show_ports(struct kernel *k, uint32_t index, struct out *o)
{
	const struct sh_hca *hca = sh_hca(&k->dev, index);
	uint32_t p, i;

	begin_array(o, "ports");
	for (p = 0; p < k->cfg.device.ports; p++) {
		const struct sh_port *port = &hca->port[p];

		begin_object(o, NULL);
		add_int(o, "port", p + 1);
		add_text(o, "state", port->state == 4 ? "ACTIVE" : "DOWN");
		add_int(o, "lid", port->lid);
		add_int(o, "sm_lid", port->sm_lid);
		begin_array(o, "pkeys");
		for (i = 0; i < SH_PKEYS; i++) {
			if (!port->pkey[i])
				continue;
			begin_object(o, NULL);
			add_int(o, "index", i);
			add_hex(o, "pkey", "0x%04" PRIx64, port->pkey[i]);
			end_object(o);
		}
		end_array(o);
		end_object(o);
	}
	end_array(o);
}

static void show_counters(struct kernel *k, uint32_t index, struct out *o)
{
	const uint64_t *left = k->objects[index].left;
	struct sh_counters counters, *c = &counters;

	sh_counters(&k->dev, index, c);
	begin_object(o, "counters");
	add_int(o, "xmit_packets", c->xmit_packets);
	add_int(o, "xmit_data", c->xmit_data);
	add_int(o, "rcv_packets", c->rcv_packets);
	add_int(o, "rcv_data", c->rcv_data);
	add_int(o, "messages_sent", c->messages_sent);
	add_int(o, "messages_received", c->messages_received);
	add_int(o, "drops_no_qp", c->drops_no_qp);
	add_int(o, "drops_state", c->drops_state);
	add_int(o, "drops_pkey", c->drops_pkey);
	add_int(o, "drops_qkey", c->drops_qkey);
	add_int(o, "drops_icrc", c->drops_icrc);
	add_int(o, "drops_no_wqe", c->drops_no_wqe);
	add_int(o, "drops_lid", c->drops_lid);
	add_int(o, "drops_port", c->drops_port);
	add_int(o, "drops_path", c->drops_path);
	add_int(o, "drops_mcast", c->drops_mcast);
	add_int(o, "drops_memory", c->drops_memory);
	add_int(o, "drops_fault", c->drops_fault);
	add_int(o, "retries", c->retries);
	add_int(o, "rnr_retries", c->rnr_retries);
	add_int(o, "naks_sent", c->naks_sent);
	add_int(o, "rnr_naks_sent", c->rnr_naks_sent);
	add_int(o, "duplicates", c->duplicates);
	add_int(o, "out_of_sequence", c->out_of_sequence);
	add_int(o, "copies_fallback", c->copies_fallback);
	add_int(o, "copies_foreign", c->copies_foreign);
	add_int(o, "left_pds", left[UO_PD]);
	add_int(o, "left_mrs", left[UO_MR]);
	add_int(o, "left_cqs", left[UO_CQ]);
	add_int(o, "left_srqs", left[UO_SRQ]);
	add_int(o, "left_qps", left[UO_QP]);
	add_int(o, "left_xrc_domains", left[UO_XRCD]);
	end_object(o);
}

static void show_hca(struct kernel *k, uint32_t index, struct out *o)
{
	char text[32];
	uint64_t guid = sh_hca(&k->dev, index)->node_guid;

	snprintf(text, sizeof(text), "mlx4_%u", k->hcas[index].unit);
	add_text(o, "device", text);
	snprintf(text, sizeof(text), "%04x:%04x:%04x:%04x", (unsigned int)(guid >> 48), (unsigned int)(guid >> 32 & 0xffff),
		 (unsigned int)(guid >> 16 & 0xffff), (unsigned int)(guid & 0xffff));
	add_text(o, "node_guid", text);
	add_word(o, "fatal", k->hcas[index].fatal ? "true" : "false");
	show_ports(k, index, o);
	show_contexts(k, index, o);
	show_type(k, index, UO_PD, "pds", o);
	show_type(k, index, UO_CQ, "cqs", o);
	show_type(k, index, UO_SRQ, "srqs", o);
	show_type(k, index, UO_MR, "mrs", o);
	show_qps(k, index, o);
	show_xrcds(k, index, o);
	show_counters(k, index, o);
}

static void show_processes(struct kernel *k, struct out *o)
{
	uint32_t i;

	begin_array(o, "processes");
	for (i = 1; i < SH_MAX_PROC; i++) {
		if (!k->proc[i])
			continue;
		begin_object(o, NULL);
		add_int(o, "pid", k->proc[i]->pid);
		add_int(o, "slot", i);
		add_int(o, "host", k->proc[i]->host);
		add_word(o, "connected", k->proc[i]->connected ? "true" : "false");
		add_int(o, "locked_pages", k->proc[i]->locked);
		end_object(o);
	}
	end_array(o);
}

static void add_host(struct out *o, const char *name, uint32_t host)
{
	char text[16];

	if (host == SH_FAULT_ANY) {
		add_word(o, name, "null");
		return;
	}
	snprintf(text, sizeof(text), "host%u", host);
	add_text(o, name, text);
}

static void show_faults(struct kernel *k, struct out *o)
{
	static const char *const name[] = {"drop", "delay", "duplicate", "corrupt"};
	const struct sh_faults *f = &k->dev.inst->faults;

	add_int(o, "fault_seed", k->fault_seed);
	add_int(o, "fault_delay_us", f->rule[SH_FAULT_DELAY].delay_ns / 1000);
	begin_array(o, "faults");
	for (uint32_t i = 0; i < SH_FAULT_RULES; i++) {
		const struct sh_fault_rule *rule = &f->rule[i];
		struct sh_fault_scope scope = sh_fault_unpack(rule->scope);

		if (!rule->rate && !rule->count && !rule->done)
			continue;
		begin_object(o, NULL);
		add_text(o, "fault", name[scope.kind]);
		add_host(o, "from", scope.from);
		add_host(o, "to", scope.to);
		if (scope.qpn == SH_FAULT_ANY)
			add_word(o, "qp", "null");
		else
			add_int(o, "qp", scope.qpn);
		add_int(o, "rate_per_million", rule->rate);
		add_int(o, "count", rule->count);
		if (scope.kind == SH_FAULT_DELAY)
			add_int(o, "delay_us", rule->delay_ns / 1000);
		else
			add_word(o, "delay_us", "null");
		add_int(o, "seed", rule->seed);
		add_int(o, "done", rule->done);
		end_object(o);
	}
	end_array(o);
}

static void show_daemon(struct kernel *k, struct out *o)
{
	begin_object(o, "daemon");
	add_int(o, "commands", k->count.commands);
	add_int(o, "failed", k->count.failed);
	add_int(o, "ranges_shared", k->count.queues_shared);
	add_int(o, "ranges_copied", k->count.queues_copied);
	add_int(o, "maps_failed", k->count.maps_failed);
	add_int(o, "pool_pages", k->pool.npages);
	add_int(o, "pool_pages_used", k->pool.used);
	add_int(o, "regions_shared", k->count.regions_shared);
	add_int(o, "regions_private", k->count.regions_private);
	add_int(o, "regions_revoked", k->count.regions_revoked);
	add_int(o, "shared_pages_used", k->shared.used);
	add_int(o, "contexts_releasing", k->releasing);
	end_object(o);
}

static void show_all(struct kernel *k, struct out *o)
{
	const struct sh_config *cfg = &k->cfg.device;
	uint32_t h, i;

	begin_object(o, NULL);
	add_int(o, "version", SH_SHOW_VERSION);
	add_path(o, "instance", k->dir);
	add_int(o, "pid", getpid());
	add_text(o, "kernel", k->face->name);
	add_text(o, "mmio", cfg->trap ? "trap" : "kick");
	add_int(o, "driver_abi", cfg->driver_abi);
	add_int(o, "cqe_size", cfg->cqe_size);
	show_daemon(k, o);
	show_processes(k, o);
	show_faults(k, o);
	begin_array(o, "hosts");
	for (h = 0; h < cfg->hosts; h++) {
		begin_object(o, NULL);
		add_int(o, "host", h);
		begin_array(o, "hcas");
		for (i = 0; i < cfg->hcas_per_host; i++) {
			begin_object(o, NULL);
			show_hca(k, h * cfg->hcas_per_host + i, o);
			end_object(o);
		}
		end_array(o);
		end_object(o);
	}
	end_array(o);
	end_object(o);
	fputc('\n', o->f);
}

int show_make(struct kernel *k)
{
	struct out o = {0};
	int fd, own, err;

	fd = memfd_create("softhca-show", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	o.f = own < 0 ? NULL : fdopen(own, "w");
	if (!o.f) {
		err = -errno;
		if (own >= 0)
			close(own);
		close(fd);
		return err;
	}
	show_all(k, &o);
	err = ferror(o.f) ? -EIO : 0;
	if (fclose(o.f) || lseek(fd, 0, SEEK_SET) < 0)
		err = -EIO;
	if (!err)
		return fd;
	close(fd);
	return err;
}
