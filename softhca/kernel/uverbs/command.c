// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * One write() on an open device file: framing, the table of the face, the response. The daemon
 * trusts neither what a client writes nor the way it dies. The checks are those of the kernel, in
 * its order.
 *
 * Ordinary commands (hdr.in_words * 4 is the length):
 *	unknown number, or not the device's		EINVAL (mainline: EOPNOTSUPP for the latter)
 *	before GET_CONTEXT				EINVAL
 *	shorter than its structure			EINVAL (mainline: ENOSPC)
 *	less room for the response than it has		ENOSPC
 *	ends nothing, and the device has failed		EIO
 *	memory not there				EFAULT
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "softhca/kernel/ports.h"
#include "softhca/kernel/process.h"
#include "command.h"
#include "commands.h"
#include "context.h"
#include "uverbs.h"

int call_respond(struct call *c, const void *core, size_t len, const void *drv, size_t drv_len)
{
	struct kernel *k = c->k;
	size_t room = c->out_len > c->core_out ? c->out_len - c->core_out : 0;

	if (len > c->out_len)
		len = c->out_len;
	if (drv_len > room)
		drv_len = room;
	if (drv_len && client_write(k, &c->proc->user, c->resp + c->core_out, drv, drv_len) < 0)
		return -EFAULT;
	if (len && client_write(k, &c->proc->user, c->resp, core, len) < 0)
		return -EFAULT;
	return 0;
}

int call_driver(struct call *c, void *drv, size_t len)
{
	if (c->in_len < c->core_in + len || c->core_in + len > sizeof(c->in))
		return -EFAULT;
	memcpy(drv, c->in + c->core_in, len);
	return 0;
}

void call_fd(struct call *c, int fd, uint64_t where)
{
	uint32_t i = c->r->nfds++;

	c->fds[i] = fd;
	c->r->fd_where[i] = where;
	/* Kernels that have the mainline commands make descriptors for a process close-on-exec. */
	if (c->k->cfg.device.face == SH_FACE_MAINLINE)
		c->r->fd_cloexec |= UINT64_C(1) << i;
}

int call_owner(struct call *c)
{
	return c->proc == c->ctx->proc && !c->ctx->gone ? 0 : -EINVAL;
}

int call_left(struct call *c, uint64_t moment)
{
	if (all_left(c->k, moment))
		return 0;
	if (!c->late)
		return -EINPROGRESS;
	wait_no_more(c->k, moment);
	return 0;
}

static int user_in(struct call *c, uint64_t addr, size_t len)
{
	if (len > sizeof(c->in))
		len = sizeof(c->in);
	memset(c->in + (c->here ? len : 0), 0, sizeof(c->in) - (c->here ? len : 0));
	if (c->here) {
		memcpy(c->in, c->here, len);
		return 0;
	}
	return client_read(c->k, &c->proc->user, addr, c->in, len);
}

/* A second header follows the first one. The structures of extended commands begin after both. */
static int run_extended(struct call *c, uint64_t len, bool whole)
{
	const struct face *f = c->k->uverbs->face;
	const struct command *cmd;
	struct uv_hdr hdr;
	struct uv_ex_hdr ex;
	uint32_t number;

	memcpy(&hdr, c->in, sizeof(hdr));
	number = hdr.command & UV_COMMAND_MASK;
	if (hdr.command & ~(UV_EXTENDED | UV_COMMAND_MASK))
		return -EINVAL;
	cmd = number < f->nextended ? &f->extended[number] : NULL;
	if (!cmd || !cmd->fn)
		return -EOPNOTSUPP;
	if (c->k->hcas[c->ctx->hca].fatal)
		return -EIO;
	if (!c->ctx->started)
		return -EINVAL;
	if (len < sizeof(hdr) + sizeof(ex))
		return -EINVAL;
	if (!whole)
		return -EFAULT;
	memcpy(&ex, c->in + sizeof(hdr), sizeof(ex));
	if ((uint64_t)(hdr.in_words + ex.provider_in_words) * 8 != len - sizeof(hdr) - sizeof(ex))
		return -EINVAL;
	if (hdr.in_words * 8u < cmd->in)
		return -ENOSPC;
	if (ex.reserved)
		return -EINVAL;
	if (ex.response) {
		if (!hdr.out_words && !ex.provider_out_words)
			return -EINVAL;
		if (hdr.out_words * 8u < cmd->out)
			return -ENOSPC;
	} else if (hdr.out_words || ex.provider_out_words) {
		return -EINVAL;
	}
	c->resp = ex.response;
	c->in_len = len;
	c->core_in = sizeof(hdr) + sizeof(ex) + hdr.in_words * 8;
	c->core_out = hdr.out_words * 8;
	c->out_len = c->core_out + ex.provider_out_words * 8;
	return cmd->fn(c);
}

/*
 * Does a failed device still take the command? It takes those that end objects, which needs no
 * device.
 */
static bool ends_something(const struct command *cmd)
{
	static int (*const fn[])(struct call *) = {
		cmd_dealloc_pd,	 cmd_dereg_mr,	       cmd_destroy_ah,	 cmd_destroy_cq,
		cmd_destroy_srq, cmd_destroy_qp,       cmd_detach_mcast, cmd_close_xrc_domain,
		cmd_close_xrcd,	 cmd_unreg_xrc_rcv_qp,
	};

	for (size_t i = 0; i < sizeof(fn) / sizeof(fn[0]); i++)
		if (cmd->fn == fn[i])
			return true;
	return false;
}

static int run(struct call *c, uint64_t addr, uint64_t len)
{
	const struct face *f = c->k->uverbs->face;
	const struct command *cmd;
	struct uv_hdr hdr;
	bool whole;

	if (len < sizeof(hdr))
		return -EINVAL;
	/*
	 * A kernel reads the header first, and finds what is wrong there before it looks further.
	 */
	whole = user_in(c, addr, len) == 0;
	if (!whole && user_in(c, addr, sizeof(hdr)) < 0)
		return -EFAULT;
	memcpy(&hdr, c->in, sizeof(hdr));
	if (f->has_extended && hdr.command & UV_EXTENDED)
		return run_extended(c, len, whole);
	if ((uint64_t)hdr.in_words * 4 != len)
		return -EINVAL;
	if (hdr.command >= f->ncommands)
		return -EINVAL;
	cmd = &f->commands[hdr.command];
	if (!c->ctx->started && hdr.command != UV_GET_CONTEXT)
		return -EINVAL;
	if (!cmd->fn)
		return f->absent;
	if (c->k->hcas[c->ctx->hca].fatal && !ends_something(cmd))
		return -EIO;
	c->in_len = len;
	c->out_len = hdr.out_words * 4;
	c->core_in = cmd->in;
	c->core_out = cmd->drv ? cmd->drv : cmd->out;
	if (c->out_len < cmd->out)
		return -ENOSPC;
	if (len < cmd->in)
		return f->truncated;
	if (!whole)
		return -EFAULT;
	if (cmd->out)
		memcpy(&c->resp, c->in + offsetof(struct uv_plain, response), sizeof(c->resp));
	return cmd->fn(c);
}

void command_reply_clear(struct sh_command_reply *r)
{
	memset(r, 0, SH_COMMAND_REPLY(0));
}

bool command_run(struct call *c, uint64_t addr, uint64_t len)
{
	struct sh_command_reply *r = c->r;
	int err;

	command_reply_clear(r);
	err = run(c, addr, len);
	if (err < 0) {
		while (r->nfds)
			close(c->fds[--r->nfds]);
		command_reply_clear(r);
	}
	if (err == -EINPROGRESS && !c->late)
		return false;
	if (err == -EINPROGRESS)
		err = -EBUSY;
	c->k->count.commands++;
	c->ctx->commands++;
	if (err < 0) {
		r->error = -err;
		c->k->count.failed++;
	}
	return true;
}
