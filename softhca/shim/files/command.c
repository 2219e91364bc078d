// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * write() on a device file. The command goes to the daemon, which reads it from this process's
 * memory and answers it there. What only this process can do (pin, map, take descriptors) is done
 * here before write() returns. The thread holds the connection from the request until all of that
 * is done, so that no other thread's command sees pages that are half exchanged.
 */
#include <linux/capability.h>
#include <string.h>
#include <sys/resource.h>

#include "softhca/host/sys.h"
#include "softhca/protocol.h"
#include "softhca/shim/attach.h"
#include "softhca/shim/doorbells/bus.h"
#include "command.h"
#include "context.h"
#include "events.h"
#include "touch.h"
#include "softhca/shim/doorbells/kick.h"
#include "softhca/shim/memory/memory.h"
#include "softhca/shim/memory/share.h"
#include "softhca/shim/say.h"
#include "softhca/shim/stack.h"

bool shim_has_cap(unsigned int cap)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	if (sh_sys(syscall(SYS_capget, &header, data)) < 0)
		return false;
	return (data[cap / 32].effective >> (cap % 32) & 1) && !sh_in_user_namespace();
}

static void close_fds(const int *fds, unsigned int nfds)
{
	for (unsigned int i = 0; i < nfds; i++)
		sh_close(fds[i]);
}

struct request { /* of the first pass */
	struct sh_command cmd;
	char text[SH_COMMAND_MAX];
};

/* How much the daemon may write as an answer, as the command says. */
static uint64_t answer_room(const struct request *req)
{
	struct {
		uint32_t number;
		uint16_t in, out;
		uint64_t answer;
		uint16_t more_in, more_out; /* of an extended command */
	} head = {0};
	uint32_t here = req->cmd.here;

	memcpy(&head, req->text, here < sizeof(head) ? here : sizeof(head));
	return head.number & SH_COMMAND_EXTENDED ? (head.out + (uint64_t)head.more_out) * 8
						 : head.out * UINT64_C(4);
}

/*
 * Reads the command from the application's memory, as a kernel does: the address may be a mistake.
 * If not all of it is there, the daemon finds out what is wrong.
 */
static void take_command(struct request *req)
{
	struct sh_command *cmd = &req->cmd;

	cmd->here = cmd->len < SH_COMMAND_MAX ? (uint32_t)cmd->len : SH_COMMAND_MAX;
	if (cmd->here && sh_peek_as(cmd->tid, req->text, cmd->addr, cmd->here))
		cmd->here = 0;
	if (cmd->len > cmd->here)
		touch(cmd->addr, cmd->len, false);
	touch_answer(req->text, cmd->here, answer_room(req));
}

/* May the daemon count memory for it? So it may for what the shim could not read. */
static bool may_lock(const struct request *req)
{
	uint32_t number;

	if (req->cmd.here < sizeof(number))
		return true;
	memcpy(&number, req->text, sizeof(number));
	switch (number) {
	case SH_COMMAND_QUERY_DEVICE ... SH_COMMAND_DEALLOC_PD:
	case SH_COMMAND_DEREG_MR:
	case SH_COMMAND_CREATE_COMP_CHANNEL:
	case SH_COMMAND_DESTROY_CQ:
	case SH_COMMAND_QUERY_QP:
	case SH_COMMAND_MODIFY_QP:
	case SH_COMMAND_DESTROY_QP:
	case SH_COMMAND_ATTACH_MCAST:
	case SH_COMMAND_DETACH_MCAST:
	case SH_COMMAND_DESTROY_SRQ:
	case SH_COMMAND_OPEN_QP ... SH_COMMAND_UNREG_XRC_RCV_QP:
		return false;
	}
	return true;
}

static void take_limit(struct sh_command *cmd)
{
	struct rlimit memlock;

	cmd->cap_ipc_lock = shim_has_cap(CAP_IPC_LOCK);
	if (getrlimit(RLIMIT_MEMLOCK, &memlock) == 0)
		cmd->memlock_limit = memlock.rlim_cur;
}

/*
 * Sends the command, and in between pins what the daemon asks for. The caller has just found the
 * connection in order.
 */
static int transact(const struct request *first, struct sh_command_reply *reply, int *fds,
		    unsigned int *nfds)
{
	const uint32_t here = first->cmd.here;
	struct {
		struct sh_command cmd;
		struct sh_pin_result pin;
		char text[SH_COMMAND_MAX];
	} again;
	int err;

	err = shim_request_now(first, sizeof(first->cmd) + here, reply, sizeof(*reply), fds, nfds);
	if (err || reply->error || !reply->pin_check)
		return err;
	close_fds(fds, *nfds);
	again.cmd = first->cmd;
	memcpy(again.text, first->text, here);
	again.pin.done = 1;
	again.pin.error = 0;
	again.pin.share = SH_SHARE_NO;
	again.pin.have_off = again.pin.reserved = 0;
	if (reply->pin_share)
		shim_share_examine(reply->pin_addr, reply->pin_len, &again.pin);
	/*
	 * Pages that are about to be exchanged need not be present, and are known to be writable.
	 */
	if (again.pin.share != SH_SHARE_PRIVATE)
		again.pin.error = -shim_populate(reply->pin_addr, reply->pin_len, reply->pin_write);
	return shim_request(&again, sizeof(again.cmd) + sizeof(again.pin) + here, reply,
			    sizeof(*reply), fds, nfds);
}

static int place_fds(const struct sh_command_reply *reply, const int *fds, unsigned int nfds)
{
	for (unsigned int i = 0; i < nfds && i < 2; i++) {
		int err;

		if (!(reply->fd_cloexec >> i & 1))
			sh_fcntl(fds[i], F_SETFD, 0);
		shim_event_note(fds[i]);
		err = sh_poke(reply->fd_where[i], &fds[i], sizeof(int));
		if (err)
			return err;
	}
	return 0;
}

/*
 * 0, or -EIO: the device would use other pages than the program does, because the daemon lives and
 * cannot be told which those are. What the command has made remains until the context ends, but the
 * program does not have it.
 */
static int map_pages(const struct shim_ctx *ctx, const struct sh_command_reply *reply)
{
	int err = 0;

	for (unsigned int i = 0; i < reply->nactions && i < SH_MAX_ACTIONS; i++) {
		const struct sh_action *action = &reply->action[i];
		struct sh_map_failed failed = {
			.type = SH_MSG_MAP_FAILED,
			.ctx = ctx->index,
			.uaddr = action->uaddr,
			.len = action->len,
		};
		struct sh_status status;

		if (action->kind == SH_ACTION_SHARE) {
			if (shim_share(action) == -ENOTCONN)
				err = -EIO;
			continue;
		}
		if (action->kind == SH_ACTION_GIVE_BACK) {
			shim_give_back(action);
			continue;
		}
		shim_share_queue(action);
		if (shim_map_action(action)) {
			shim_control_again();
			if (shim_request(&failed, sizeof(failed), &status, sizeof(status), NULL,
					 NULL) &&
			    !shim_control_gone())
				err = -EIO;
		}
	}
	return err;
}

static void note_object(struct shim_ctx *ctx, const struct sh_command_reply *reply)
{
	if (reply->made_kind == SH_MADE_NONE)
		return;
	if (reply->made_kind == SH_MADE_CQ)
		shim_set_cqn(ctx, reply->made_handle, reply->made_number);
	if (ctx->kicked)
		return;
	if (reply->made_kind == SH_MADE_CQ && ctx->nearly_cq < SHIM_EARLY)
		ctx->early_cq[ctx->nearly_cq++] = reply->made_number;
	if (reply->made_kind == SH_MADE_QP && ctx->nearly_qp < SHIM_EARLY)
		ctx->early_qp[ctx->nearly_qp++] = reply->made_number;
	if (reply->made_user_handle) {
		ctx->pending[ctx->npending % SHIM_PENDING] = reply->made_user_handle;
		ctx->npending++;
	}
}

struct job {
	struct shim_ctx *ctx;
	const void *buf;
	size_t len;
	struct sh_command_reply reply;
};

static int carry_out(void *arg)
{
	struct job *j = arg;
	struct request req;
	unsigned int nfds = 0;
	int fds[4], err;

	req.cmd = (struct sh_command){
		.type = SH_MSG_COMMAND,
		.ctx = j->ctx->index,
		.tid = (uint32_t)syscall(SYS_gettid),
		.addr = (uintptr_t)j->buf,
		.len = j->len,
	};
	take_command(&req);
	if (may_lock(&req))
		take_limit(&req.cmd);
	err = shim_control_get();
	if (err)
		return err == -EMFILE || err == -ENFILE || err == -ENOMEM ? err : -EIO;
	err = transact(&req, &j->reply, fds, &nfds);
	if (!err) {
		err = -j->reply.error;
		if (err == -ENFILE)
			shim_say_unreachable(err);
	}
	if (!err)
		err = place_fds(&j->reply, fds, nfds);
	if (err) {
		close_fds(fds, nfds);
		shim_control_put();
		return err;
	}
	err = map_pages(j->ctx, &j->reply);
	if (err) {
		shim_control_put();
		return err;
	}
	note_object(j->ctx, &j->reply);
	if (shim.trap ? !j->ctx->wrapped : !j->ctx->kicked)
		shim_kick_try(j->ctx);
	shim_control_put();
	return 0;
}

long shim_command(struct shim_ctx *ctx, const void *buf, size_t len)
{
	struct job j;
	int err;

	j.ctx = ctx;
	j.buf = buf;
	j.len = len;
	err = stack_spare(carry_out, &j);
	if (err)
		return err;
	for (unsigned int i = 0; i < j.reply.nrings && i < SH_MAX_RINGS; i++)
		shim_ring(ctx->index, j.reply.ring[i]);
	return (long)len;
}
