// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: a sender is stopped at many of its instructions, its life in the device cannot be
 * ended, and it stays stopped. What others call returns all the same: senders to the same queues,
 * and the receiver, which sends, arms its CQ and fails. Nothing is lost: when the sender goes on,
 * all messages have arrived once, and each request has its one completion. So it is with a thread
 * that is stopped with the lock of a CQ alone, with that of an event queue or of a word; UC and UD
 * may lose a message, but no receive.
 */
#include "softhca/device/memory/event.h"
#include "softhca_stands_rig.h"

/* Another sender to the same queues. Its atomic operation is to the victim's word. */
static void another_sends(struct scene *s, const struct plot *plot, pid_t pid)
{
	struct twr wr = other_wr(s), add = s->wr;
	struct arrivals n;

	wr.signaled = add.signaled = true;
	add.sge[0] = (struct tsge){s->p.amem + 40000, 8, 0x3000};
	begin_calls(s);
	tqp_send(&s->c, &wr);
	if (is_atomic(plot))
		tqp_send(&s->c, &add);
	end_calls(s, pid);
	if (is_atomic(plot)) {
		texpect(&s->ccq[0], MLX4_OPCODE_SEND, true, 0);
		assert_int_equal(completions(&s->ccq[0], plot->opcode), 1);
		assert_int_equal(*(uint64_t *)(uintptr_t)s->wr.raddr, 2 * ADDED);
	} else {
		assert_int_equal(completions(&s->ccq[0], MLX4_OPCODE_SEND), 1);
	}
	n = take_arrivals(s, plot);
	assert_int_equal(n.from_a, is_write(plot) || is_atomic(plot) ? 0 : plot->chain + 1);
	/* UC and UD do not repeat a message. */
	assert_in_range(n.from_c, !may_lose(plot), 1);
	assert_int_equal(events(s), is_armed(plot));
	assert_true(!is_write(plot) || written(s, plot));
	s->p.m->dev.proc = 1;
	once_more(s);
}

/*
 * The receiver sends from the QP that the victim sends to, and from another one, with one CQ for
 * both directions.
 */
static void receiver_sends(struct scene *s, const struct plot *plot, pid_t pid)
{
	struct tpair *p = &s->p;
	struct twr to_a = tpair_wr(p, MLX4_OPCODE_SEND, 100), to_c = to_a;
	unsigned int sent = 0, got = 0;
	struct mlx4_cqe cqe;

	to_a.sge[0] = to_c.sge[0] = (struct tsge){p->bmem + 500000, 100, p->bkey};
	/* This does not take the express way, and so needs both locks of the victim's QP. */
	if (plot->type != SH_QPT_UD)
		to_a.sge[0].len = SH_SHORT + 1000;
	to_a.signaled = to_c.signaled = true;
	to_a.dqpn = p->a.qpn;
	to_c.dqpn = s->c.qpn;
	to_a.dlid = to_c.dlid = tlid(p->m, 0);
	to_a.av_pd = to_c.av_pd = p->b.pdn;
	begin_calls(s);
	tqp_send(&p->b, &to_a);
	tqp_send(&s->d, &to_c);
	end_calls(s, pid);
	while (tcq_poll(&p->bcq[1], &cqe)) {
		if (cqe.owner_sr_opcode & MLX4_CQE_IS_SEND)
			sent++;
		else
			got++;
		assert_int_not_equal(cqe.owner_sr_opcode & 0x1f, MLX4_CQE_ERROR);
	}
	assert_int_equal(sent, 2);
	assert_int_equal(got, is_write(plot) || is_atomic(plot) ? 0 : plot->chain + 1);
	got = completions(&p->acq[1], MLX4_CQE_RECV_SEND);
	assert_in_range(got, !may_lose(plot), 1);
	got = completions(&s->ccq[1], MLX4_CQE_RECV_SEND);
	assert_in_range(got, !may_lose(plot), 1);
	p->m->dev.proc = 1;
	once_more(s);
}

/* The receiver reads from the victim's memory: what comes back needs the same CQ. */
static void receiver_reads(struct scene *s, const struct plot *plot, pid_t pid)
{
	struct tpair *p = &s->p;
	struct twr wr = tpair_wr(p, MLX4_OPCODE_RDMA_READ, 100);
	unsigned int read = 0;
	struct mlx4_cqe cqe;

	if (may_lose(plot)) {
		kill(pid, SIGCONT);
		ended(pid);
		return;
	}
	wr.sge[0] = (struct tsge){p->bmem + 500000, 100, p->bkey};
	wr.signaled = true;
	wr.raddr = (uintptr_t)p->amem + 1000; /* where the victim's answers do not come */
	wr.rkey = p->akey;
	begin_calls(s);
	tqp_send(&p->b, &wr);
	end_calls(s, pid);
	while (tcq_poll(&p->bcq[1], &cqe)) {
		assert_int_not_equal(cqe.owner_sr_opcode & 0x1f, MLX4_CQE_ERROR);
		read += !!(cqe.owner_sr_opcode & MLX4_CQE_IS_SEND);
	}
	assert_int_equal(read, 1);
	assert_memory_equal(p->bmem + 500000, p->amem + 1000, 100);
	p->m->dev.proc = 1;
	once_more(s);
}

/* The receiver arms its CQ, and waits for an event. */
static void receiver_arms(struct scene *s, const struct plot *plot, pid_t pid)
{
	const bool comes = !is_write(plot) && !is_atomic(plot);

	begin_calls(s);
	tcq_arm(&s->p.bcq[1], false);
	end_calls(s, pid);
	assert_int_equal(events(s), is_armed(plot) || comes);
	assert_int_equal(take_arrivals(s, plot).from_a, comes ? plot->chain + 1 : 0);
	s->p.m->dev.proc = 1;
	once_more(s);
}

/* The receiver posts what it may not send: its QP fails, and the receives are flushed. */
static void receiver_fails(struct scene *s, const struct plot *plot, pid_t pid)
{
	struct tpair *p = &s->p;
	struct twr wr = tpair_wr(p, MLX4_OPCODE_SEND, 100);
	unsigned int flushed = 0, failed = 0;
	struct mlx4_cqe cqe;

	wr.sge[0] = (struct tsge){p->bmem, 100, p->bkey + 0x100};
	wr.dqpn = p->a.qpn;
	wr.dlid = tlid(p->m, 0);
	wr.av_pd = p->b.pdn;
	begin_calls(s);
	tqp_send(&p->b, &wr);
	end_calls(s, pid);
	assert_int_equal(tqp_state(&p->b), may_lose(plot) ? SH_QPS_SQE : SH_QPS_ERR);
	while (tcq_poll(&p->bcq[1], &cqe)) {
		if ((cqe.owner_sr_opcode & 0x1f) != MLX4_CQE_ERROR)
			continue;
		if (cqe.syndrome == MLX4_SYNDROME_WR_FLUSH)
			flushed++;
		else
			failed++;
	}
	assert_int_equal(failed, 1);
	assert_true(flushed <= RECEIVES);
	p->m->dev.proc = 1;
}

/* ---- the requester's lock is gone when it comes back ---- */

/*
 * A thread delivers a message to the QP that the receiver sends from, just while the receiver's own
 * message is on its way, and is stopped with the locks of the QP.
 */
static void test_taken_meanwhile(void **state)
{
	static const struct plot plot[] = {
		{"RC", SH_QPT_RC, false, MLX4_OPCODE_SEND, 200, NULL, 0},
		{"UC", SH_QPT_UC, false, MLX4_OPCODE_SEND, 200, NULL, 0},
	};

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct scene *s = calloc(1, sizeof(*s));
		struct tpair *p = &s->p;
		struct twr wr;
		pid_t pid;

		scene_open(s, &plot[i]);
		without_ends(p->m);
		take_while_copying();
		tqp_ctx(&p->b)->timeout = 0;
		for (int k = 0; k < 2; k++)
			tqp_recv(&p->a, &(struct tsge){p->amem + 100000, 65536, p->akey}, 1);
		wr = tpair_wr(p, MLX4_OPCODE_SEND, SH_SHORT + 1000);
		wr.sge[0] = (struct tsge){p->bmem + 500000, SH_SHORT + 1000, p->bkey};
		wr.signaled = true;
		pid = stand_to_take(s, &p->b);
		tqp_send(&p->b, &wr);
		assert_true(taken_next.lock->owner != 0);
		/* Another one is posted meanwhile. */
		tqp_send(&p->b, &wr);
		assert_int_equal(completions(&p->bcq[0], MLX4_OPCODE_SEND), 0);
		__atomic_store_n(&taken_next.lock->owner, 0, __ATOMIC_SEQ_CST);
		taken_next.lock = NULL;
		end_calls(s, pid);
		assert_int_equal(completions(&p->bcq[0], MLX4_OPCODE_SEND), 2);
		assert_int_equal(completions(&p->acq[1], MLX4_CQE_RECV_SEND), 2);
		p->m->dev.proc = 1;
		tpair_close(p);
		free(s);
	}
}

/* ---- the thread that stands has one lock, and none of those that come before it ---- */

/*
 * The sender refuses its own request; the peer does; the memory of the request has gone unnoticed.
 */
enum failure { OF_SENDER, OF_PEER, OF_MEMORY };
struct failing {
	struct plot plot;
	enum failure why;
};

/*
 * A request fails while the CQ of the send queue is not to be had. Nothing is done by halves: the
 * QP fails later, and then the request has its completion, before that of the next one, which is
 * not sent.
 */
static void fails_later(const struct failing *f)
{
	struct scene *s = calloc(1, sizeof(*s));
	struct tpair *p = &s->p;
	const bool lossy = may_lose(&f->plot);
	static uint8_t gone[4096];
	struct twr wr, next;
	struct mlx4_cqe cqe;
	pid_t pid;

	scene_open(s, &f->plot);
	without_ends(p->m);
	tqp_recv(&s->c, &(struct tsge){p->amem + 180000, 4096, 0x3000}, 1);
	/* The QP waits for ever for an answer that does not come. */
	tqp_ctx(&s->d)->timeout = 0;
	wr = next = tpair_wr(p, f->why == OF_PEER ? MLX4_OPCODE_RDMA_WRITE : MLX4_OPCODE_SEND, 100);
	next.opcode = MLX4_OPCODE_SEND;
	wr.signaled = next.signaled = true;
	wr.dqpn = next.dqpn = s->c.qpn;
	wr.dlid = next.dlid = tlid(p->m, 0);
	wr.av_pd = next.av_pd = s->d.pdn;
	wr.raddr = (uintptr_t)p->amem;
	wr.rkey = 0x3100;
	next.sge[0] = (struct tsge){p->bmem + 500000, 100, p->bkey};
	wr.sge[0] = next.sge[0];
	if (f->why == OF_SENDER)
		wr.sge[0].key += 0x100;
	if (f->why == OF_MEMORY)
		wr.sge[0] = (struct tsge){gone, 100, without_memory(p, gone, sizeof(gone))};
	pid = stand_with(s, lock_of_cq(&p->bcq[0]));
	tqp_send(&s->d, &wr);
	tqp_send(&s->d, &next);
	texpect_none(&p->bcq[0]);
	assert_int_equal(tqp_state(&s->d), SH_QPS_RTS);
	go_on_from(s, pid, lock_of_cq(&p->bcq[0]));
	for (uint16_t i = 0; i < 2; i++) {
		assert_true(tcq_poll(&p->bcq[0], &cqe));
		assert_int_equal(cqe.owner_sr_opcode & 0x1f, MLX4_CQE_ERROR);
		assert_int_equal(cqe.wqe_index, htobe16(i));
		assert_int_equal(cqe.syndrome, i		   ? MLX4_SYNDROME_WR_FLUSH
					       : f->why == OF_PEER ? MLX4_SYNDROME_REM_ACCESS
								   : MLX4_SYNDROME_LOC_PROT);
	}
	texpect_none(&p->bcq[0]);
	assert_int_equal(tqp_state(&s->d), lossy ? SH_QPS_SQE : SH_QPS_ERR);
	/* The receive of a peer that has refused a request is flushed. */
	assert_int_equal(completions(&s->ccq[1], MLX4_CQE_ERROR), f->why == OF_PEER);
	/* The victim's message has arrived. */
	assert_int_equal(take_arrivals(s, &f->plot).from_a, 1);
	p->m->dev.proc = 1;
	once_more(s);
	tpair_close(p);
	free(s);
}

static void test_fails_later(void **state)
{
	static const struct failing failing[] = {
		{{"RC", SH_QPT_RC, true, MLX4_OPCODE_SEND, 200, NULL, 0}, OF_SENDER},
		{{"RC, at the peer", SH_QPT_RC, true, MLX4_OPCODE_SEND, 200, NULL, 0}, OF_PEER},
		{{"UC", SH_QPT_UC, true, MLX4_OPCODE_SEND, 200, NULL, 0}, OF_SENDER},
		{{"UD", SH_QPT_UD, true, MLX4_OPCODE_SEND, 200, NULL, 0}, OF_SENDER},
		{{"RC, no memory", SH_QPT_RC, true, MLX4_OPCODE_SEND, 200, NULL, 0}, OF_MEMORY},
		{{"UC, no memory", SH_QPT_UC, true, MLX4_OPCODE_SEND, 200, NULL, 0}, OF_MEMORY},
		{{"UD, no memory", SH_QPT_UD, true, MLX4_OPCODE_SEND, 200, NULL, 0}, OF_MEMORY},
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(failing) / sizeof(failing[0]); i++) {
		print_message("# %s\n", failing[i].plot.name);
		fails_later(&failing[i]);
	}
}

static uint64_t lost_at_receiver(const struct scene *s)
{
	struct sh_counters c;

	sh_counters(&s->p.m->daemon, 1, &c);
	return c.drops_memory;
}

/*
 * A message of UC or UD finds the CQ of its receive not to be had: it is lost, and counted. Its
 * receive is there for the next one, and no QP fails.
 */
static void loses_no_receive(const struct plot *plot, uint8_t opcode)
{
	struct scene *s = calloc(1, sizeof(*s));
	const unsigned int receives = plot->srq ? RECEIVES - 1 : 1;
	struct tpair *p = &s->p;
	struct arrivals n;
	uint64_t lost;
	struct twr wr;
	pid_t pid;

	scene_open(s, plot);
	without_ends(p->m);
	wr = other_wr(s);
	wr.opcode = opcode;
	wr.raddr = (uintptr_t)p->bmem;
	wr.rkey = p->bkey;
	wr.signaled = true;
	lost = lost_at_receiver(s);
	pid = stand_with(s, lock_of_cq(&p->bcq[1]));
	tqp_send(&s->c, &wr);
	assert_int_equal(completions(&s->ccq[0], opcode), 1);
	assert_int_equal(lost_at_receiver(s), lost + 1);
	texpect_none(&p->bcq[1]);
	go_on_from(s, pid, lock_of_cq(&p->bcq[1]));
	assert_int_equal(tqp_state(&s->d), SH_QPS_RTS);
	assert_int_equal(tasync(p->m, p->b.ctx, SH_QPE_FATAL), 0);
	n = take_arrivals(s, plot);
	assert_int_equal(n.from_a, 1);
	assert_int_equal(n.from_c, 0);
	p->m->dev.proc = 2;
	wr = other_wr(s);
	for (unsigned int i = 0; i < receives; i++)
		tqp_send(&s->c, &wr);
	assert_int_equal(take_arrivals(s, plot).from_c, receives);
	p->m->dev.proc = 1;
	tpair_close(p);
	free(s);
}

static void test_loses_no_receive(void **state)
{
	static const struct {
		struct plot plot;
		uint8_t opcode;
	} losing[] = {
		{{"UC", SH_QPT_UC, false, MLX4_OPCODE_SEND, 200, NULL, 0}, MLX4_OPCODE_SEND},
		{{"UC to an SRQ", SH_QPT_UC, true, MLX4_OPCODE_SEND, 200, NULL, 0},
		 MLX4_OPCODE_SEND},
		{{"WRITE with immediate over UC", SH_QPT_UC, false, MLX4_OPCODE_SEND, 200, NULL, 0},
		 MLX4_OPCODE_RDMA_WRITE_IMM},
		{{"UD", SH_QPT_UD, false, MLX4_OPCODE_SEND, 200, NULL, 0}, MLX4_OPCODE_SEND},
		{{"UD to an SRQ", SH_QPT_UD, true, MLX4_OPCODE_SEND, 200, NULL, 0},
		 MLX4_OPCODE_SEND},
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(losing) / sizeof(losing[0]); i++) {
		print_message("# %s\n", losing[i].plot.name);
		loses_no_receive(&losing[i].plot, losing[i].opcode);
	}
}

/*
 * What raises an event of the receiver: a message to its armed CQ, the arming of a CQ that has one,
 * a request that it refuses.
 */
enum raise { MESSAGE, ARMING, REFUSAL };

/* Its event queue is not to be had: the event comes later, and once. */
static void raised_later(enum raise what)
{
	static const struct plot plot = {"RC", SH_QPT_RC, false, MLX4_OPCODE_SEND, 200, NULL, 0};
	struct scene *s = calloc(1, sizeof(*s));
	struct tpair *p = &s->p;
	struct sh_dev *dev;
	struct sh_lock *lock;
	struct twr wr;
	pid_t pid;

	scene_open(s, &plot);
	without_ends(p->m);
	dev = &p->m->dev;
	wr = other_wr(s);
	wr.signaled = true;
	if (what == REFUSAL) {
		wr.opcode = MLX4_OPCODE_RDMA_WRITE;
		wr.raddr = (uintptr_t)p->bmem;
		wr.rkey = p->bkey + 0x100;
		lock = &sh_evq(dev, sh_ctx(dev, p->b.ctx)->async_evq)->lock;
	} else {
		lock = &sh_evq(dev, p->bcq[1].evq)->lock;
	}
	if (what == MESSAGE)
		tcq_arm(&p->bcq[1], false);
	pid = stand_with(s, lock);
	tqp_send(&s->c, &wr);
	if (what == ARMING)
		tcq_arm(&p->bcq[1], false);
	/* The sender is not told of it, and does not wait. */
	if (what == REFUSAL)
		texpect_error(&s->ccq[0], MLX4_SYNDROME_REM_ACCESS, true, 0);
	else
		texpect(&s->ccq[0], MLX4_OPCODE_SEND, true, 0);
	assert_int_equal(events(s), 0);
	assert_int_equal(tasync(p->m, p->b.ctx, SH_QPE_ACCESS_ERR), 0);
	if (what != REFUSAL)
		assert_int_equal(take_arrivals(s, &plot).from_c, 1);
	go_on_from(s, pid, lock);
	assert_int_equal(events(s), what != REFUSAL);
	assert_int_equal(tasync(p->m, p->b.ctx, SH_QPE_ACCESS_ERR), what == REFUSAL);
	p->m->dev.proc = 1;
	once_more(s);
	assert_int_equal(events(s), what != REFUSAL);
	tpair_close(p);
	free(s);
}

static void test_raised_later(void **state)
{
	(void)state;
	for (enum raise what = MESSAGE; what <= REFUSAL; what++)
		raised_later(what);
}

/* Stops the victim at every so many instructions, and does not end its life. */
static void stand_at_each(const struct plot *plot, bool one_cq,
			  void (*then)(struct scene *, const struct plot *, pid_t))
{
	unsigned int n, apart, visible, stands = 0;
	bool alive = true;

	n = steps_of(plot, &visible);
	apart = n / (SANITIZED ? 5 : stride() == 1 ? 25 : 12) + 1;
	for (unsigned int i = apart / 2; alive && i < n; i += apart) {
		struct scene *s = calloc(1, sizeof(*s));
		pid_t pid;

		scene_open(s, plot);
		without_ends(s->p.m);
		if (one_cq)
			tqp_ctx(&s->p.b)->send_cqn = tqp_ctx(&s->d)->send_cqn = s->p.bcq[1].cqn;
		/* Nothing is repeated because an answer does not come. */
		tqp_ctx(&s->c)->timeout = tqp_ctx(&s->d)->timeout = tqp_ctx(&s->p.b)->timeout = 0;
		for (uint32_t k = 0; k < 2; k++) {
			tqp_recv(&s->p.a, &(struct tsge){s->p.amem + 100000, 65536, s->p.akey}, 1);
			tqp_recv(&s->c, &(struct tsge){s->p.amem + 180000, 4096, 0x3000}, 1);
		}
		pid = victim(s);
		alive = walk(pid, i);
		if (alive) {
			stop(pid);
			then(s, plot, pid);
			stands++;
		}
		tpair_close(&s->p);
		free(s);
	}
	print_message("# %s: %u instructions, stood at %u\n", plot->name, n, stands);
	assert_true(stands > 3);
}

static void test_another_sends(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < sizeof(plots) / sizeof(plots[0]); i += EACH)
		stand_at_each(&plots[i], false, another_sends);
}

/* Without what has no receive of its own at the victim: SRQs, and XRC. */
static void each_of_two_ways(void (*then)(struct scene *, const struct plot *, pid_t))
{
	static const struct plot two_ways[] = {
		{"SEND to an RQ", SH_QPT_RC, false, MLX4_OPCODE_SEND, 200, NULL, 0},
		{"large SEND to an RQ", SH_QPT_RC, false, MLX4_OPCODE_SEND, 8200, NULL, 0},
		{"SENDs to an RQ", SH_QPT_RC, false, MLX4_OPCODE_SEND, 200, NULL, 3},
		{"WRITE", SH_QPT_RC, false, MLX4_OPCODE_RDMA_WRITE, 100, NULL, 0},
		{"atomic operation", SH_QPT_RC, false, MLX4_OPCODE_ATOMIC_FA, 8, adds, 0},
		{"SEND to an armed CQ", SH_QPT_RC, false, MLX4_OPCODE_SEND, 200, armed, 0},
		{"SEND over UC", SH_QPT_UC, false, MLX4_OPCODE_SEND, 200, NULL, 0},
		{"SEND over UD", SH_QPT_UD, false, MLX4_OPCODE_SEND, 200, NULL, 0},
	};

	for (unsigned int i = 0; i < sizeof(two_ways) / sizeof(two_ways[0]); i++)
		stand_at_each(&two_ways[i], true, then);
}

static void test_receiver_sends(void **state)
{
	(void)state;
	each_of_two_ways(receiver_sends);
}

static void test_receiver_reads(void **state)
{
	(void)state;
	each_of_two_ways(receiver_reads);
}

static void test_receiver_arms(void **state)
{
	(void)state;
	each_of_two_ways(receiver_arms);
}

static void test_receiver_fails(void **state)
{
	(void)state;
	each_of_two_ways(receiver_fails);
}

/*
 * A thread stands with the lock of a word. Atomic operations on others go on; but one on the same
 * place in another page waits, since that may be the same page.
 */
static void test_words(void **state)
{
	static const struct plot plot = {
		"atomic operation", SH_QPT_RC, true, MLX4_OPCODE_ATOMIC_FA, 8, adds, 0};
	static const uint64_t others[] = {8, 4088, 4096 + 8, 4096};
	struct scene *s = calloc(1, sizeof(*s));
	struct sh_lock *lock;
	uint64_t word;
	struct twr add;
	pid_t pid;

	(void)state;
	scene_open(s, &plot);
	without_ends(s->p.m);
	word = s->wr.raddr;
	lock = &sh_hca(&s->p.m->dev, 1)->atomic_lock[word % 4096 / 8];
	pid = stand_with(s, lock);
	add = s->wr;
	add.sge[0] = (struct tsge){s->p.amem + 40000, 8, 0x3000};
	add.signaled = true;
	for (unsigned int i = 0; i < 4; i++) {
		const bool waits = others[i] % 4096 == 0;

		add.raddr = word + others[i];
		tqp_send(&s->c, &add);
		assert_int_equal(completions(&s->ccq[0], MLX4_OPCODE_ATOMIC_FA), !waits);
		assert_int_equal(*(uint64_t *)(uintptr_t)add.raddr, waits ? 0 : ADDED);
	}
	go_on_from(s, pid, lock);
	assert_int_equal(completions(&s->ccq[0], MLX4_OPCODE_ATOMIC_FA), 1);
	assert_int_equal(*(uint64_t *)(uintptr_t)add.raddr, ADDED);
	assert_int_equal(*(uint64_t *)(uintptr_t)word, ADDED);
	tpair_close(&s->p);
	free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_another_sends),  cmocka_unit_test(test_receiver_sends),
		cmocka_unit_test(test_receiver_reads), cmocka_unit_test(test_receiver_arms),
		cmocka_unit_test(test_receiver_fails), cmocka_unit_test(test_taken_meanwhile),
		cmocka_unit_test(test_fails_later),    cmocka_unit_test(test_loses_no_receive),
		cmocka_unit_test(test_raised_later),   cmocka_unit_test(test_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
