// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* What an instance holds, as JSON, for the softhca command and for tests. Changes nothing. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <jansson.h>

#include "kern.h"

static void add_int(json_t *o, const char *name, uint64_t value)
{
	json_object_set_new(o, name, json_integer((json_int_t)value));
}

static void add_text(json_t *o, const char *name, const char *value)
{
	json_object_set_new(o, name, json_string(value));
}

static json_t *add_array(json_t *o, const char *name)
{
	json_t *a = json_array();

	json_object_set(o, name, a);
	json_decref(a);
	return a;
}

static json_t *add_object(json_t *array)
{
	json_t *o = json_object();

	json_array_append(array, o);
	json_decref(o);
	return o;
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

static json_t *registrations(const struct kqp *qp)
{
	const struct kreg *reg;
	json_t *a = json_array(), *o;

	DL_FOREACH(qp->regs, reg) {
		o = add_object(a);
		add_int(o, "context", reg->ctx->index);
		add_int(o, "pid", reg->ctx->proc->pid);
	}
	return a;
}

static void show_qps(struct kernel *k, uint32_t hca, json_t *out)
{
	json_t *list = add_array(out, "qps"), *o;
	struct sh_qp_info info;
	struct kqp *qp, *tmp;

	HASH_ITER(hh, k->hcas[hca].qps, qp, tmp) {
		o = add_object(list);
		add_int(o, "qpn", qp->qpn);
		add_text(o, "type", type_name(qp->type));
		if (qp->ctx) {
			add_int(o, "context", qp->ctx->index);
			add_int(o, "pid", qp->ctx->proc->pid);
		} else {
			json_object_set_new(o, "registrations", registrations(qp));
		}
		if (qp->pd)
			add_int(o, "pd", qp->pd->pdn);
		if (qp->d)
			add_int(o, "xrcd", qp->d->xrcdn);
		add_text(o, "queue_memory", qp->buf.shm ? "shared" : qp->ctx ? "copied" : "none");
		add_int(o, "queue_bytes", qp->buf.len);
		if (sh_qp_info(&k->dev, hca, qp->qpn, &info) < 0)
			continue;
		add_text(o, "state", state_name(info.state));
		add_int(o, "send_cq", info.send_cqn);
		add_int(o, "recv_cq", info.recv_cqn);
		add_int(o, "srq", info.srqn);
		add_int(o, "dest_qpn", info.dest_qpn);
		add_int(o, "dlid", info.dlid);
		add_int(o, "port", info.port);
		add_int(o, "send_outstanding", info.sq_posted_unfinished);
		add_int(o, "recv_posted", info.rq_available);
		add_int(o, "retries_left", info.retry_left);
		add_int(o, "rnr_retries_left", info.rnr_left);
		add_int(o, "messages_sent", info.messages_sent);
		add_int(o, "messages_received", info.messages_received);
	}
}

static void show_cq(struct kernel *k, uint32_t hca, const struct kcq *cq, json_t *o)
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

static void show_srq(struct kernel *k, uint32_t hca, const struct ksrq *srq, json_t *o)
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

static void show_mr(const struct kmr *mr, json_t *o)
{
	char text[32];

	snprintf(text, sizeof(text), "0x%08x", mr->key);
	add_text(o, "key", text);
	add_int(o, "context", mr->u.ctx->index);
	add_int(o, "pid", mr->u.ctx->proc->pid);
	add_int(o, "pd", mr->pd->pdn);
	snprintf(text, sizeof(text), "0x%llx", (unsigned long long)mr->start);
	add_text(o, "address", text);
	add_int(o, "length", mr->len);
	add_int(o, "access", mr->access);
}

static void show_objects(struct kernel *k, uint32_t hca, json_t *out)
{
	json_t *pds = add_array(out, "pds"), *cqs = add_array(out, "cqs"), *srqs = add_array(out, "srqs");
	json_t *mrs = add_array(out, "mrs"), *o;
	const struct uobj *u;
	uint32_t i;

	for (i = 1; i < SH_MAX_CTX; i++) {
		const struct kctx *ctx = k->ctx[i];

		if (!ctx || ctx->hca != hca)
			continue;
		DL_FOREACH(ctx->objs[UO_PD], u) {
			o = add_object(pds);
			add_int(o, "pdn", ((const struct kpd *)u)->pdn);
			add_int(o, "context", i);
			add_int(o, "pid", ctx->proc->pid);
			add_int(o, "users", ((const struct kpd *)u)->refs);
		}
		DL_FOREACH(ctx->objs[UO_CQ], u)
			show_cq(k, hca, (const struct kcq *)u, add_object(cqs));
		DL_FOREACH(ctx->objs[UO_SRQ], u)
			show_srq(k, hca, (const struct ksrq *)u, add_object(srqs));
		DL_FOREACH(ctx->objs[UO_MR], u)
			show_mr((const struct kmr *)u, add_object(mrs));
	}
}

static void show_xrcds(struct kernel *k, uint32_t hca, json_t *out)
{
	json_t *list = add_array(out, "xrc_domains"), *o;
	const struct kxrcd *d;
	struct kqp *qp, *tmp;

	DL_FOREACH(k->hcas[hca].xrcds, d) {
		json_t *qps;

		o = add_object(list);
		add_int(o, "xrcd", d->xrcdn);
		if (d->fd >= 0) {
			add_int(o, "device", d->key.dev);
			add_int(o, "inode", d->key.ino);
		} else {
			json_object_set_new(o, "device", json_null());
			json_object_set_new(o, "inode", json_null());
		}
		add_int(o, "opens", d->opens);
		add_int(o, "users", d->users);
		qps = add_array(o, "receive_qps");
		HASH_ITER(hh, k->hcas[hca].qps, qp, tmp) {
			json_t *r;

			if (qp->ctx || qp->d != d)
				continue;
			r = add_object(qps);
			add_int(r, "qpn", qp->qpn);
			json_object_set_new(r, "registrations", registrations(qp));
		}
	}
}

static void show_contexts(struct kernel *k, uint32_t hca, json_t *out)
{
	json_t *list = add_array(out, "contexts"), *o, *evqs, *e;
	const struct kevq *q;
	uint32_t i;

	for (i = 1; i < SH_MAX_CTX; i++) {
		const struct kctx *ctx = k->ctx[i];

		if (!ctx || ctx->hca != hca)
			continue;
		o = add_object(list);
		add_int(o, "context", i);
		add_int(o, "pid", ctx->proc->pid);
		add_text(o, "state", ctx->state == KC_RELEASING ? "releasing" : ctx->gone ? "memory gone" :
			 ctx->state == KC_OPENING ? "opening" : "open");
		add_text(o, "doorbells", sh_ctx(&k->dev, i)->kick ? "kick" : "trap");
		add_int(o, "commands", ctx->commands);
		add_int(o, "locked_pages", ctx->proc->locked);
		evqs = add_array(o, "event_queues");
		DL_FOREACH(ctx->evqs, q) {
			const struct sh_evq *shared = sh_evq(&k->dev, q->index);

			e = add_object(evqs);
			add_int(e, "queue", q->index);
			add_text(e, "kind", q->async ? "async" : "completion");
			add_int(e, "users", q->refs);
			add_int(e, "spilled", shared->spilled);
			add_int(e, "lost", shared->lost);
		}
	}
}

static void show_ports(struct kernel *k, uint32_t index, json_t *out)
{
	const struct sh_hca *hca = sh_hca(&k->dev, index);
	json_t *list = add_array(out, "ports"), *o, *pkeys;
	uint32_t p, i;

	for (p = 0; p < k->cfg.device.ports; p++) {
		const struct sh_port *port = &hca->port[p];

		o = add_object(list);
		add_int(o, "port", p + 1);
		add_text(o, "state", port->state == 4 ? "ACTIVE" : "DOWN");
		add_int(o, "lid", port->lid);
		add_int(o, "sm_lid", port->sm_lid);
		pkeys = add_array(o, "pkeys");
		for (i = 0; i < SH_PKEYS; i++) {
			json_t *e;

			if (!port->pkey[i])
				continue;
			e = add_object(pkeys);
			add_int(e, "index", i);
			add_int(e, "pkey", port->pkey[i]);
		}
	}
}

static void show_counters(const struct sh_hca *hca, json_t *out)
{
	const struct sh_counters *c = &hca->counters;
	json_t *o = json_object();

	add_int(o, "xmit_packets", c->xmit_packets);
	add_int(o, "xmit_data", c->xmit_data);
	add_int(o, "rcv_packets", c->rcv_packets);
	add_int(o, "rcv_data", c->rcv_data);
	add_int(o, "drops_no_qp", c->drops_no_qp);
	add_int(o, "drops_state", c->drops_state);
	add_int(o, "drops_pkey", c->drops_pkey);
	add_int(o, "drops_qkey", c->drops_qkey);
	add_int(o, "drops_icrc", c->drops_icrc);
	add_int(o, "drops_no_wqe", c->drops_no_wqe);
	add_int(o, "retries", c->retries);
	add_int(o, "rnr_retries", c->rnr_retries);
	add_int(o, "naks_sent", c->naks_sent);
	add_int(o, "rnr_naks_sent", c->rnr_naks_sent);
	add_int(o, "duplicates", c->duplicates);
	add_int(o, "out_of_sequence", c->out_of_sequence);
	add_int(o, "copies_fallback", c->copies_fallback);
	json_object_set_new(out, "counters", o);
}

static void show_hca(struct kernel *k, uint32_t index, json_t *out)
{
	char text[32];
	uint64_t guid = sh_hca(&k->dev, index)->node_guid;

	snprintf(text, sizeof(text), "mlx4_%u", k->hcas[index].unit);
	add_text(out, "device", text);
	snprintf(text, sizeof(text), "%04x:%04x:%04x:%04x", (unsigned int)(guid >> 48), (unsigned int)(guid >> 32 & 0xffff),
		 (unsigned int)(guid >> 16 & 0xffff), (unsigned int)(guid & 0xffff));
	add_text(out, "node_guid", text);
	show_ports(k, index, out);
	show_contexts(k, index, out);
	show_objects(k, index, out);
	show_qps(k, index, out);
	show_xrcds(k, index, out);
	show_counters(sh_hca(&k->dev, index), out);
}

static void show_processes(struct kernel *k, json_t *out)
{
	json_t *list = add_array(out, "processes"), *o;
	uint32_t i;

	for (i = 1; i < SH_MAX_PROC; i++) {
		if (!k->proc[i])
			continue;
		o = add_object(list);
		add_int(o, "pid", k->proc[i]->pid);
		add_int(o, "slot", i);
		add_int(o, "host", k->proc[i]->host);
		json_object_set_new(o, "connected", json_boolean(k->proc[i]->connected));
		add_int(o, "locked_pages", k->proc[i]->locked);
	}
}

static void show_faults(struct kernel *k, json_t *out)
{
	static const char *const name[SH_FAULT_KINDS] = {"drop", "delay", "duplicate", "corrupt"};
	const struct sh_faults *f = &k->dev.inst->faults;
	json_t *list = add_array(out, "faults"), *o;
	int i;

	for (i = 0; i < SH_FAULT_KINDS; i++) {
		if (!f->rate[i] && !f->count[i] && !f->done[i])
			continue;
		o = add_object(list);
		add_text(o, "fault", name[i]);
		add_int(o, "rate_per_million", f->rate[i]);
		add_int(o, "count", f->count[i]);
		add_int(o, "done", f->done[i]);
	}
}

static json_t *show_all(struct kernel *k)
{
	const struct sh_config *cfg = &k->cfg.device;
	json_t *out = json_object(), *hosts, *host, *hcas, *o;
	uint32_t h, i;

	add_text(out, "instance", k->dir);
	add_int(out, "pid", getpid());
	add_text(out, "kernel", k->face->name);
	add_text(out, "mmio", cfg->trap ? "trap" : "kick");
	add_int(out, "driver_abi", cfg->driver_abi);
	add_int(out, "cqe_size", cfg->cqe_size);
	o = json_object();
	add_int(o, "commands", k->count.commands);
	add_int(o, "failed", k->count.failed);
	add_int(o, "ranges_shared", k->count.queues_shared);
	add_int(o, "ranges_copied", k->count.queues_copied);
	add_int(o, "maps_failed", k->count.maps_failed);
	add_int(o, "pool_pages", k->pool.npages);
	add_int(o, "pool_pages_used", k->pool.used);
	add_int(o, "contexts_releasing", k->releasing);
	json_object_set_new(out, "daemon", o);
	show_processes(k, out);
	show_faults(k, out);
	hosts = add_array(out, "hosts");
	for (h = 0; h < cfg->hosts; h++) {
		host = add_object(hosts);
		add_int(host, "host", h);
		hcas = add_array(host, "hcas");
		for (i = 0; i < cfg->hcas_per_host; i++)
			show_hca(k, h * cfg->hcas_per_host + i, add_object(hcas));
	}
	return out;
}

int show_make(struct kernel *k)
{
	json_t *all = show_all(k);
	char *text = json_dumps(all, JSON_INDENT(2));
	size_t len, at = 0;
	ssize_t n;
	int fd, err = 0;

	json_decref(all);
	if (!text)
		return -ENOMEM;
	fd = memfd_create("softhca-show", MFD_CLOEXEC);
	if (fd < 0) {
		err = -errno;
		free(text);
		return err;
	}
	for (len = 0; text[len]; len++)
		;
	text[len++] = '\n';
	while (at < len) {
		n = write(fd, text + at, len - at);
		if (n < 0) {
			err = -errno;
			break;
		}
		at += n;
	}
	free(text);
	if (err < 0 || lseek(fd, 0, SEEK_SET) < 0) {
		close(fd);
		return err < 0 ? err : -EIO;
	}
	return fd;
}
