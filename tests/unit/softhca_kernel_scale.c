// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: what a command costs the kernel with few and with many objects alive. A parent
 * single-steps a child and counts the instructions. The test measures no time.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "softhca_kernel.h"
#include "softhca/device/memory/qp_attr.h"
#include "softhca/kernel/uverbs/uverbs-abi.h"

#define FEW   16
#define MANY  2000
#define PAIRS 3	   /* of measurements; the lowest one counts */
#define SLACK 1500 /* instructions that a longer chain or a new window may cost */

enum { MARK_BEGIN = SIGUSR1, MARK_END = SIGUSR2 };

/* ---- the child: commands between two signals to itself ---- */

static struct kt *t;
static struct kctx *ctx;
static uint32_t pd, domain; /* domain: only OFED has receive QPs without handles */
static struct kt_queue cq;
static struct kt_queue qp[MANY + 1];
static uint32_t mr[MANY + 1], receiver[MANY + 1];
static uint32_t alive;
static char page[4096] __attribute__((aligned(4096)));

#define MUST(x)                                                                                    \
	do {                                                                                       \
		if (x)                                                                             \
			_exit(3);                                                                  \
	} while (0)

/* The parent counts from the first signal to the second. It swallows both. */
#define COUNTED(x)                                                                                 \
	do {                                                                                       \
		raise(MARK_BEGIN);                                                                 \
		MUST(x);                                                                           \
		raise(MARK_END);                                                                   \
	} while (0)

static uint32_t key;

static int create(uint32_t i)
{
	return kt_qp(t, ctx, UV_QPT_RC, pd, cq.handle, -1, &qp[i]);
}

static int destroy(uint32_t i)
{
	return kt_destroy(t, ctx, UV_DESTROY_QP, qp[i].handle);
}

static int query(uint32_t i)
{
	struct uv_query_qp_resp resp;
	struct uv_query_qp cmd = {.response = (uintptr_t)&resp, .qp_handle = qp[i].handle};

	return kt_cmd(t, ctx, UV_QUERY_QP, &cmd, sizeof(cmd), sizeof(resp));
}

static int modify(uint32_t i)
{
	struct uv_modify_qp cmd = {
		.qp_handle = qp[i].handle,
		.attr = {.attr_mask =
				 UV_QP_STATE | UV_QP_PKEY_INDEX | UV_QP_PORT | UV_QP_ACCESS_FLAGS,
			 .qp_state = SH_QPS_INIT,
			 .port_num = 1},
	};

	return kt_cmd(t, ctx, UV_MODIFY_QP, &cmd, sizeof(cmd), 0);
}

static int reg(uint32_t i)
{
	return kt_mr(t, ctx, pd, page, sizeof(page), SH_LOCAL_WRITE, &mr[i], &key);
}

static int dereg(uint32_t i)
{
	return kt_dealloc(t, ctx, UV_DEREG_MR, mr[i]);
}

static int create_receiver(uint32_t i)
{
	struct uv_create_xrc_rcv_qp_resp resp;
	struct uv_create_xrc_rcv_qp cmd = {.response = (uintptr_t)&resp,
					   .xrc_domain_handle = domain};
	int err;

	if (t->k.cfg.device.face != SH_FACE_OFED)
		return 0;
	err = kt_cmd(t, ctx, UV_CREATE_XRC_RCV_QP, &cmd, sizeof(cmd), sizeof(resp));
	receiver[i] = resp.qpn;
	return err;
}

static int end_receiver(uint32_t i)
{
	struct uv_reg_xrc_rcv_qp cmd = {.xrc_domain_handle = domain, .qp_num = receiver[i]};

	if (t->k.cfg.device.face != SH_FACE_OFED)
		return 0;
	return kt_cmd(t, ctx, UV_UNREG_XRC_RCV_QP, &cmd, sizeof(cmd), 0);
}

static void grow(uint32_t to)
{
	for (; alive < to; alive++) {
		MUST(create(alive));
		MUST(reg(alive));
		MUST(create_receiver(alive));
	}
}

/*
 * Ends an old object, another one in each round, makes it again, and then makes one more. The old
 * object is far from both ends of a list: the worst case for code that searches from either end.
 */
static void sample(uint32_t round)
{
	uint32_t some = alive / 4 + 3 * round;

	COUNTED(query(some));
	COUNTED(destroy(some));
	kt_queue_free(&qp[some]);
	COUNTED(create(some));
	COUNTED(create(alive));
	COUNTED(modify(some));
	COUNTED(dereg(some));
	COUNTED(reg(some));
	COUNTED(end_receiver(some));
	COUNTED(create_receiver(some));
	MUST(destroy(alive));
	kt_queue_free(&qp[alive]);
	MUST(destroy(some));
	kt_queue_free(&qp[some]);
	MUST(create(some));
}

static const char *const step_name[] = {
	"query",      "destroy",  "create",	      "create another",	    "modify",
	"deregister", "register", "end a receive QP", "create a receive QP"};
#define STEPS (sizeof(step_name) / sizeof(step_name[0]))

static void __attribute__((noreturn)) child(enum sh_face face)
{
	int i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	t = kt_start(face, 1, 1);
	t->cap = true;
	ctx = kt_open(t, 0);
	MUST(kt_pd(t, ctx, &pd));
	MUST(kt_cq(t, ctx, 10, -1, &cq));
	if (face == SH_FACE_OFED)
		MUST(kt_xrcd(t, ctx, -1, 0, &domain));
	ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	raise(SIGSTOP);
	grow(FEW);
	for (i = 0; i < PAIRS; i++)
		sample((uint32_t)i);
	grow(MANY);
	for (i = 0; i < PAIRS; i++)
		sample((uint32_t)i);
	kt_stop(t);
	_exit(0);
}

/* ---- the parent counts ---- */

static int next_stop(pid_t pid, int request, int with)
{
	int status;

	if (ptrace(request, pid, NULL, (void *)(intptr_t)with) < 0 ||
	    waitpid(pid, &status, 0) != pid)
		return -1;
	return status;
}

/* Instructions of the next counted command; -1 when the child has ended. */
static long count_one(pid_t pid, int *status)
{
	long steps = 0;

	do
		*status = next_stop(pid, PTRACE_CONT, 0);
	while (WIFSTOPPED(*status) && WSTOPSIG(*status) != MARK_BEGIN);
	if (!WIFSTOPPED(*status))
		return -1;
	for (;;) {
		*status = next_stop(pid, PTRACE_SINGLESTEP, 0);
		if (!WIFSTOPPED(*status))
			return -1;
		if (WSTOPSIG(*status) == MARK_END)
			return steps;
		steps++;
	}
}

static void count_all(enum sh_face face, long least[2][STEPS])
{
	unsigned int round, pair, step;
	int status = 0;
	pid_t pid;
	long n;

	memset(least, 0x7f, sizeof(long) * 2 * STEPS);
	fflush(NULL);
	pid = fork();
	if (!pid)
		child(face);
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_EXITKILL), 0);
	for (round = 0; round < 2; round++)
		for (pair = 0; pair < PAIRS; pair++)
			for (step = 0; step < STEPS; step++) {
				n = count_one(pid, &status);
				if (n < 0)
					goto ended;
				if (n < least[round][step])
					least[round][step] = n;
			}
	do
		status = next_stop(pid, PTRACE_CONT, 0);
	while (WIFSTOPPED(status));
ended:
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		fail_msg("the child that runs the commands ended with status 0x%x", status);
}

static void compare(enum sh_face face)
{
	long least[2][STEPS];
	unsigned int step;

	count_all(face, least);
	for (step = 0; step < STEPS; step++)
		print_message("# %s: %ld instructions with %d alive, %ld with %d\n",
			      step_name[step], least[0][step], FEW, least[1][step], MANY);
	for (step = 0; step < STEPS; step++)
		if (least[1][step] > least[0][step] + SLACK)
			fail_msg("%s costs %ld instructions with %d alive and %ld with %d",
				 step_name[step], least[0][step], FEW, least[1][step], MANY);
}

static void ofed(void **state)
{
	(void)state;
	compare(SH_FACE_OFED);
}

static void mainline(void **state)
{
	(void)state;
	compare(SH_FACE_MAINLINE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ofed),
		cmocka_unit_test(mainline),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
