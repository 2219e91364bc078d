// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: a sender is stopped at many of its instructions, and its life ends. When it
 * continues, no message is lost and none arrives twice: also if the sender waits for more than
 * one, if each receive must fail, or if its QP has been moved to ERR meanwhile.
 */
#include "softhca_stop_rig.h"

/*
 * The victim stays stopped, and another process moves its QP to ERR. Each of its messages has
 * arrived, or its send is flushed.
 */
static void none_vanishes(struct scene *s, const struct plot *plot, pid_t pid)
{
	const struct sh_qp_attr to = {.qp_state = SH_QPS_ERR};
	bool told[16] = {false};
	struct mlx4_cqe cqe;
	unsigned int i;
	int err;

	stop(pid);
	alarm(60);
	while ((err = sh_qp_modify(&s->p.m->daemon, 0, s->p.a.qpn, &to, SH_QPA_STATE)) ==
	       -EINPROGRESS)
		look_again(&s->p.m->daemon);
	assert_int_equal(err, 0);
	alarm(0);
	kill(pid, SIGCONT);
	ended(pid);
	while (tcq_poll(&s->p.acq[0], &cqe)) {
		i = be16toh((uint16_t)cqe.wqe_index);
		assert_in_range(i, 0, plot->chain);
		assert_false(told[i]);
		told[i] = true;
	}
	for (i = take_arrivals(s, plot).from_a; i <= plot->chain; i++)
		assert_true(told[i]);
}

/*
 * How many WRITEs with immediate data of the victim have told the receiver. Asserts that each of
 * them is in a receive of its own.
 */
static unsigned int immediates(struct scene *s)
{
	bool seen[RECEIVES] = {false};
	struct mlx4_cqe cqe;
	unsigned int n = 0;

	for (; tcq_poll(&s->p.bcq[1], &cqe); n++) {
		uint16_t index = be16toh((uint16_t)cqe.wqe_index);

		if ((cqe.owner_sr_opcode & 0x1f) == MLX4_CQE_ERROR)
			break;
		assert_int_equal(cqe.owner_sr_opcode & 0x1f, MLX4_CQE_RECV_RDMA_WRITE_IMM);
		assert_in_range(index, 0, RECEIVES - 1);
		assert_false(seen[index]);
		seen[index] = true;
	}
	return n;
}

/* The victim stays stopped, and its life ends. Each of its WRITEs arrives once. */
static void each_once(struct scene *s, const struct plot *plot, pid_t pid)
{
	stop(pid);
	alarm(60);
	left(&s->p.m->daemon);
	alarm(0);
	kill(pid, SIGCONT);
	ended(pid);
	assert_int_equal(immediates(s), plot->chain + 1);
	assert_memory_equal((void *)(uintptr_t)s->wr.raddr, s->p.amem, plot->len);
}

/*
 * The victim stays stopped, and its QP is moved to ERR. Each of its WRITEs has arrived, once, or is
 * flushed.
 */
static void none_doubled(struct scene *s, const struct plot *plot, pid_t pid)
{
	const struct sh_qp_attr to = {.qp_state = SH_QPS_ERR};
	bool flushed[16] = {false};
	struct mlx4_cqe cqe;
	unsigned int i, n;
	int err;

	stop(pid);
	alarm(60);
	while ((err = sh_qp_modify(&s->p.m->daemon, 0, s->p.a.qpn, &to, SH_QPA_STATE)) ==
	       -EINPROGRESS)
		look_again(&s->p.m->daemon);
	assert_int_equal(err, 0);
	alarm(0);
	n = immediates(s);
	assert_in_range(n, 0, plot->chain + 1);
	kill(pid, SIGCONT);
	ended(pid);
	/* What is flushed does not arrive when the victim goes on. */
	assert_int_equal(immediates(s), 0);
	while (tcq_poll(&s->p.acq[0], &cqe)) {
		i = be16toh((uint16_t)cqe.wqe_index);
		assert_in_range(i, 0, plot->chain);
		assert_false(flushed[i]);
		flushed[i] = true;
	}
	for (i = n; i <= plot->chain; i++)
		assert_true(flushed[i]);
}

/*
 * The victim is stopped while it fails a receive. A QP that has failed one is in ERR, and none is
 * failed twice.
 */
static void fails_whole(struct scene *s, const struct plot *plot, pid_t pid)
{
	stop(pid);
	alarm(60);
	left(&s->p.m->daemon);
	alarm(0);
	kill(pid, SIGCONT);
	ended(pid);
	assert_int_equal(tqp_state(&s->p.b) == SH_QPS_ERR, failed(s, plot));
	if (plot->srq)
		assert_int_equal(sh_srq_get(&s->p.m->dev, 1, 0x60)->consumed, failed(s, plot));
}

/*
 * What the receiver can see before the sender has its acknowledgement is not done again. This stops
 * the sender at the instructions from there on.
 */
static void test_done_once(void **state)
{
	unsigned int apart = SANITIZED	     ? 25
			     : stride() == 1 ? 3
					     : 15,
		     far = 100, visible, thrown, all = 0;

	(void)state;
	for (unsigned int i = 0; i < sizeof(plots) / sizeof(plots[0]); i += EACH) {
		if (!is_write(&plots[i]) && !is_atomic(&plots[i]) && !is_armed(&plots[i]))
			continue;
		steps_of(&plots[i], &visible);
		assert_int_not_equal(visible, 0);
		thrown = 0;
		/*
		 * The instructions around the one that makes it visible are the ones that matter.
		 */
		for (unsigned int at = visible - 3; at < visible + far;
		     at += at < visible + 5 ? 1 : apart) {
			enum stopped how = stop_at(&plots[i], at, others_go_on);

			if (how == ENDED)
				break;
			thrown += how == THROWN;
		}
		printf("# %s: %u lives ended when the message was visible\n", plots[i].name,
		       thrown);
		all += thrown;
		/* All but the instruction that commits. In other memory the system commits. */
		assert_true(thrown >= 7 || SANITIZED);
	}
	assert_true(all > 0 || SANITIZED);
}

static void test_error_meanwhile(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < sizeof(plots) / sizeof(plots[0]); i += EACH)
		if (plots[i].chain && !may_lose(&plots[i]))
			stop_at_each(&plots[i], none_vanishes);
}

/* Chains of WRITEs with immediate data, in memory of both kinds. */
static void test_immediates(void **state)
{
	static const struct plot chains[] = {
		{"WRITEs with immediate", SH_QPT_RC, false, MLX4_OPCODE_RDMA_WRITE_IMM, 200, NULL,
		 3},
		{"shared WRITEs with immediate", SH_QPT_RC, false, MLX4_OPCODE_RDMA_WRITE_IMM, 200,
		 in_shared, 3},
		{"shared WRITEs with immediate to an SRQ", SH_QPT_RC, true,
		 MLX4_OPCODE_RDMA_WRITE_IMM, 203, in_shared, 3},
		{"shared WRITEs with immediate to a CQ that seems full", SH_QPT_RC, false,
		 MLX4_OPCODE_RDMA_WRITE_IMM, 200, shared_nearly_full, 3},
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(chains) / sizeof(chains[0]); i++) {
		stop_at_each(&chains[i], each_once);
		stop_at_each(&chains[i], none_doubled);
	}
}

/* An unreliable service does not send again, so the thread must not leave a receive half failed. */
static void test_failed_receive(void **state)
{
	static const struct plot failing[] = {
		{"UD SEND to a key that is gone", SH_QPT_UD, false, MLX4_OPCODE_SEND, 200, key_gone,
		 0},
		{"UD SEND to a full CQ", SH_QPT_UD, false, MLX4_OPCODE_SEND, 200, cq_full, 0},
		{"RC SEND to a full CQ", SH_QPT_RC, true, MLX4_OPCODE_SEND, 200, cq_full, 0},
		{"UC SEND to a full CQ", SH_QPT_UC, false, MLX4_OPCODE_SEND, 200, cq_full, 0},
		{"UC WRITE to a full CQ", SH_QPT_UC, false, MLX4_OPCODE_RDMA_WRITE_IMM, 200,
		 cq_full, 0},
	};
	unsigned int before = 100, far = 160,
		     apart = SANITIZED	     ? 60
			     : stride() == 1 ? 5
					     : 45,
		     visible, thrown;

	(void)state;
	for (unsigned int i = 0; i < sizeof(failing) / sizeof(failing[0]); i++) {
		steps_of(&failing[i], &visible);
		assert_true(visible > before);
		thrown = 0;
		for (unsigned int at = visible - before; at < visible + far; at += apart) {
			enum stopped how = stop_at(&failing[i], at, fails_whole);

			if (how == ENDED)
				break;
			thrown += how == THROWN;
		}
		printf("# %s: %u lives ended\n", failing[i].name, thrown);
		assert_true(thrown > 0 || SANITIZED);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_done_once),
		cmocka_unit_test(test_error_meanwhile),
		cmocka_unit_test(test_immediates),
		cmocka_unit_test(test_failed_receive),
	};
	struct mock *m = mock_new(NULL);
	bool can = can_be_thrown();

	mock_free(m);
	if (!can) {
		printf("1..0 # SKIP no restartable sequences on this system\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
