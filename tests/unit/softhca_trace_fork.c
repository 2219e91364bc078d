// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The library of `softhca trace` in a program whose thread forks, or leaves by siglongjmp() from a
 * signal handler, at the instant at which another call of it holds the lock of its operations.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "softhca/trace/extended.h"
#include "softhca/trace/ops.h"

/* extended_wrap() runs under the lock. This one keeps whoever calls it there for a while. */
static enum { PASS, STAY, RAISE } what;
static int arrived[2];

bool extended_wrap(struct ibv_context *context, struct extended_ops *real)
{
	(void)context, (void)real;
	if (what == STAY) {
		assert_int_equal(write(arrived[1], "", 1), 1);
		/* Only a fork that waits for the lock takes longer for it. */
		usleep(200000);
	} else if (what == RAISE) {
		raise(SIGUSR1);
	}
	return false;
}

static int post(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	(void)qp, (void)wr, (void)bad;
	return 0;
}

static struct ibv_context *new_context(void)
{
	struct ibv_context *context = calloc(1, sizeof(*context));

	assert_non_null(context);
	context->ops.post_send = post;
	return context;
}

static void end_context(struct ibv_context *context)
{
	what = PASS;
	ops_forget(context);
	free(context);
}

static void *wrap(void *context)
{
	ops_wrap(context);
	return NULL;
}

/* The child's own verbs do not wait for a thread that it has not. */
static void test_fork_while_another_thread_wraps(void **state)
{
	struct ibv_context *first = new_context(), *second = new_context();
	pthread_t thread;
	int status;
	pid_t pid;
	char c;

	(void)state;
	assert_int_equal(pipe(arrived), 0);
	what = STAY;
	assert_int_equal(pthread_create(&thread, NULL, wrap, first), 0);
	assert_int_equal(read(arrived[0], &c, 1), 1);
	pid = fork();
	if (!pid) {
		alarm(10);
		what = PASS;
		ops_wrap(second);
		ops_forget(first);
		_exit(second->ops.post_send == post);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	pthread_join(thread, NULL);
	end_context(first);
	end_context(second);
	close(arrived[0]);
	close(arrived[1]);
	assert_int_equal(status, 0);
}

static sigjmp_buf back;

static void leave(int signal)
{
	(void)signal;
	siglongjmp(back, 1);
}

/* The signal comes when the lock is free, and the next call finds it so. */
static void test_handler_that_does_not_return(void **state)
{
	struct ibv_context *first = new_context(), *second = new_context();
	volatile bool left = false;

	(void)state;
	signal(SIGUSR1, leave);
	what = RAISE;
	if (!sigsetjmp(back, 1))
		ops_wrap(first);
	else
		left = true;
	assert_true(left);
	alarm(10);
	what = PASS;
	ops_wrap(second);
	alarm(0);
	assert_ptr_not_equal(second->ops.post_send, post);
	/* What was wrapped when the signal came is whole. */
	assert_ptr_not_equal(first->ops.post_send, post);
	signal(SIGUSR1, SIG_DFL);
	end_context(first);
	end_context(second);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fork_while_another_thread_wraps),
		cmocka_unit_test(test_handler_that_does_not_return),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
