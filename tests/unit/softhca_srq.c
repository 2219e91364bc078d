// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: the device takes the receives of an SRQ in the order of their links, as far as the
 * doorbell record goes, and raises the limit event once.
 */
#include <endian.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "mlx4-format.h"
#include "softhca_mock.h"
#include "softhca/device/queues/srq.h"
#include "softhca/device/queues/srq_receives.h"

#define SRQN	70
#define ENTRIES 8
#define SHIFT	6 /* three scatter entries */

/* An SRQ, and the provider's view of it. */
struct srq {
	struct mock *m;
	uint32_t ctx;
	struct sh_umem buf, db;
	uint32_t head, tail;
	uint16_t counter;
};

static struct mlx4_wqe_srq_next *wqe(struct srq *s, uint32_t i)
{
	return (void *)((char *)mock_ptr(&s->buf) + ((size_t)i << SHIFT));
}

static void srq_open(struct srq *s, bool shared)
{
	struct sh_srq_init init = {0};
	uint32_t i;

	memset(s, 0, sizeof(*s));
	s->m = mock_new(NULL);
	s->ctx = mock_ctx(s->m, 0);
	s->buf = mock_umem(s->m, s->ctx, ENTRIES << SHIFT, shared);
	s->db = mock_umem(s->m, s->ctx, 4096, shared);
	s->tail = ENTRIES - 1;
	for (i = 0; i < ENTRIES; i++)
		wqe(s, i)->next_wqe_index = htobe16((i + 1) % ENTRIES);
	init.ctx = s->ctx;
	init.pdn = 5;
	init.log_size = 3;
	init.wqe_shift = SHIFT;
	init.max_sge = 3;
	init.user_handle = 0xabcd;
	init.buf = s->buf;
	init.db = s->db;
	assert_int_equal(sh_srq_create(&s->m->daemon, 0, SRQN, &init), 0);
}

static bool post(struct srq *s)
{
	struct mlx4_wqe_data *d = (void *)(wqe(s, s->head) + 1);

	if (s->head == s->tail)
		return false;
	d[0] = (struct mlx4_wqe_data){htobe32(100 + s->head), htobe32(0x1000),
				      htobe64(0x7000 + s->head)};
	d[1] = (struct mlx4_wqe_data){0, htobe32(MLX4_INVALID_LKEY), 0};
	s->head = be16toh(wqe(s, s->head)->next_wqe_index);
	*(__be32 *)mock_ptr(&s->db) = htobe32(++s->counter);
	return true;
}

static void give_back(struct srq *s, uint32_t index)
{
	wqe(s, s->tail)->next_wqe_index = htobe16(index);
	s->tail = index;
}

static int take(struct srq *s, uint32_t *index)
{
	struct sh_srq *srq = sh_srq_get(&s->m->dev, 0, SRQN);
	struct sh_txn_open t;
	int err;

	sh_lock(&s->m->dev, &srq->lock);
	sh_txn_begin(&t, &s->m->dev, &srq->txn, &srq->lock);
	err = sh_srq_take(&t, sh_hca(&s->m->dev, 0), srq, index);
	sh_txn_commit(&t);
	sh_unlock(&s->m->dev, &srq->lock);
	return err;
}

static void serves_in_link_order_for_ever(void **state)
{
	uint32_t want[64], wfirst = 0, wlast = 0, seed = 7, i, index;
	uint32_t out[ENTRIES], nout = 0;
	struct srq s;
	int shared;

	(void)state;
	for (shared = 0; shared < 2; shared++) {
		wfirst = wlast = nout = 0;
		srq_open(&s, shared);
		assert_int_equal(take(&s, &index), -ENOENT);
		for (i = 0; i < 600000; i++) { /* the 16 bits of the record wrap twice */
			uint32_t h = s.head;

			seed = seed * 1103515245 + 12345;
			switch ((seed >> 16) % 3) {
			case 0:
				if (post(&s))
					want[wlast++ % 64] = h;
				break;
			case 1:
				if (wfirst == wlast) {
					assert_int_equal(take(&s, &index), -ENOENT);
					break;
				}
				assert_int_equal(take(&s, &index), 0);
				assert_int_equal(index, want[wfirst++ % 64]);
				out[nout++] = index;
				break;
			case 2: /* complete out of order */
				if (!nout)
					break;
				h = (seed >> 8) % nout;
				give_back(&s, out[h]);
				out[h] = out[--nout];
				break;
			}
		}
		assert_true(s.counter != 0);
		mock_free(s.m);
	}
}

static void reads_scatter_lists(void **state)
{
	struct sh_sge sge[4];
	struct sh_srq *srq;
	struct mlx4_wqe_data *d;
	struct srq s;
	uint32_t index;

	(void)state;
	srq_open(&s, true);
	srq = sh_srq_get(&s.m->dev, 0, SRQN);
	post(&s);
	assert_int_equal(take(&s, &index), 0);
	assert_int_equal(sh_srq_scatter(&s.m->dev, srq, index, sge, 4), 1);
	assert_int_equal(sge[0].len, 100);
	assert_int_equal(sge[0].key, 0x1000);
	assert_int_equal(sge[0].addr, 0x7000);
	/* A list that fills the WQE has no terminator. */
	d = (void *)(wqe(&s, 2) + 1);
	d[0] = d[1] = d[2] = (struct mlx4_wqe_data){htobe32(9), htobe32(0x2000), htobe64(1)};
	assert_int_equal(sh_srq_scatter(&s.m->dev, srq, 2, sge, 4), 3);
	assert_int_equal(sh_srq_scatter(&s.m->dev, srq, 2, sge, 2), 2);
	d[0].lkey = htobe32(MLX4_INVALID_LKEY);
	assert_int_equal(sh_srq_scatter(&s.m->dev, srq, 2, sge, 4), 0);
	assert_int_equal(sh_srq_scatter(&s.m->dev, srq, ENTRIES, sge, 4), -EFAULT);
	mock_free(s.m);
}

static void the_limit_fires_once(void **state)
{
	uint32_t index, evq, i;
	struct sh_srq_info info;
	struct srq s;

	(void)state;
	srq_open(&s, true);
	evq = sh_ctx(&s.m->dev, s.ctx)->async_evq;
	for (i = 0; i < 5; i++)
		post(&s);
	assert_int_equal(sh_srq_limit(&s.m->daemon, 0, SRQN, ENTRIES), -EINVAL);
	assert_int_equal(sh_srq_limit(&s.m->daemon, 0, SRQN, 3), 0);
	take(&s, &index); /* 4 left */
	take(&s, &index); /* 3 left */
	assert_int_equal(mock_records(s.m, evq), 0);
	assert_int_equal(sh_srq_query(&s.m->daemon, 0, SRQN, &info), 0);
	assert_int_equal(info.limit, 3);
	assert_int_equal(info.available, 3);
	take(&s, &index);
	assert_int_equal(mock_records(s.m, evq), 1);
	assert_int_equal(mock_record(s.m, evq, 0)->type, 15);
	assert_int_equal(mock_record(s.m, evq, 0)->element, 0xabcd);
	take(&s, &index);
	assert_int_equal(mock_records(s.m, evq), 1);
	assert_int_equal(sh_srq_query(&s.m->daemon, 0, SRQN, &info), 0);
	assert_int_equal(info.limit, 0);
	/*
	 * If the SRQ is below its limit when it is armed, the next receive taken raises the event.
	 */
	assert_int_equal(sh_srq_limit(&s.m->daemon, 0, SRQN, 5), 0);
	assert_int_equal(mock_records(s.m, evq), 1);
	take(&s, &index);
	assert_int_equal(mock_records(s.m, evq), 2);
	assert_int_equal(sh_srq_destroy(&s.m->daemon, 0, SRQN, &i), 0);
	assert_int_equal(i, 2);
	assert_int_equal(take(&s, &index), -EFAULT);
	assert_int_equal(sh_srq_limit(&s.m->daemon, 0, SRQN, 1), -ENOENT);
	mock_free(s.m);
}

/*
 * While the lock is taken, the SRQ cannot be destroyed. But nobody gets a receive from it any more,
 * so that those who take the lock in turn soon leave it alone.
 */
static void one_that_ends_serves_nothing(void **state)
{
	uint32_t index, events = 7;
	struct sh_srq *srq;
	struct srq s;

	(void)state;
	srq_open(&s, true);
	post(&s);
	post(&s);
	assert_int_equal(sh_srq_limit(&s.m->daemon, 0, SRQN, 5), 0);
	assert_int_equal(take(&s, &index), 0);
	srq = sh_srq_get(&s.m->dev, 0, SRQN);
	sh_lock(&s.m->dev, &srq->lock);
	assert_int_equal(sh_srq_destroy(&s.m->daemon, 0, SRQN, &events), -EINPROGRESS);
	assert_int_equal(events, 7);
	sh_unlock(&s.m->dev, &srq->lock);
	assert_int_equal(take(&s, &index), -EFAULT);
	assert_int_equal(sh_srq_limit(&s.m->daemon, 0, SRQN, 1), -ENOENT);
	assert_int_equal(sh_srq_destroy(&s.m->daemon, 0, SRQN, &events), 0);
	assert_int_equal(events, 1);
	assert_int_equal(s.m->shared->complaints, 0);
	mock_free(s.m);
}

static void a_link_that_leads_out_is_an_srq_error(void **state)
{
	uint32_t index, evq;
	struct srq s;

	(void)state;
	srq_open(&s, true);
	evq = sh_ctx(&s.m->dev, s.ctx)->async_evq;
	post(&s);
	post(&s);
	wqe(&s, 0)->next_wqe_index = htobe16(ENTRIES);
	assert_int_equal(take(&s, &index), -EFAULT);
	assert_int_equal(mock_records(s.m, evq), 1);
	assert_int_equal(mock_record(s.m, evq, 0)->type, 14);
	assert_int_equal(take(&s, &index), -EFAULT);
	assert_int_equal(mock_records(s.m, evq), 1);
	mock_free(s.m);
}

static void scribbled_state_is_not_followed(void **state)
{
	struct sh_srq *srq;
	struct sh_sge sge[4];
	uint32_t index, n;
	struct srq s;

	(void)state;
	for (n = 0; n < 3; n++) {
		srq_open(&s, true);
		post(&s);
		srq = sh_srq_get(&s.m->dev, 0, SRQN);
		if (n == 0)
			srq->head = 0x80000000;
		else if (n == 1)
			srq->log_size = 60;
		else
			srq->wqe_shift = 40;
		assert_int_equal(take(&s, &index), -EFAULT);
		assert_int_equal(sh_srq_scatter(&s.m->dev, srq, 0, sge, 4), -EFAULT);
		assert_int_equal(s.m->shared->complaints, 1);
		assert_int_equal(mock_records(s.m, sh_ctx(&s.m->dev, s.ctx)->async_evq), 1);
		assert_int_equal(mock_record(s.m, sh_ctx(&s.m->dev, s.ctx)->async_evq, 0)->type,
				 14);
		assert_int_equal(sh_srq_destroy(&s.m->daemon, 0, SRQN, &index), 0);
		assert_int_equal(index, 1);
		mock_free(s.m);
	}
}

static void a_dead_owner_serves_nothing(void **state)
{
	uint32_t index;
	struct srq s;

	(void)state;
	srq_open(&s, true);
	post(&s);
	sh_ctx(&s.m->dev, s.ctx)->state = SH_CTX_GONE;
	assert_int_equal(take(&s, &index), -EFAULT);
	mock_free(s.m);
	srq_open(&s, false);
	post(&s);
	mock_unmap(s.m, s.ctx, mock_ptr(&s.buf));
	assert_int_equal(take(&s, &index), -EFAULT);
	mock_free(s.m);
}

static void bad_creations_change_nothing(void **state)
{
	struct sh_srq_init init = {0};
	struct srq s;

	(void)state;
	srq_open(&s, true);
	init.ctx = s.ctx;
	init.log_size = 3;
	init.wqe_shift = SHIFT;
	init.buf = s.buf;
	init.db = s.db;
	assert_int_equal(sh_srq_create(&s.m->daemon, 0, SRQN, &init), -EEXIST);
	init.log_size = 4;
	assert_int_equal(sh_srq_create(&s.m->daemon, 0, SRQN + 1, &init), -EINVAL);
	init.log_size = 3;
	init.wqe_shift = 3;
	assert_int_equal(sh_srq_create(&s.m->daemon, 0, SRQN + 1, &init), -EINVAL);
	init.wqe_shift = SHIFT;
	init.db.len = 2;
	assert_int_equal(sh_srq_create(&s.m->daemon, 0, SRQN + 1, &init), -EINVAL);
	assert_null(sh_srq_get(&s.m->dev, 0, SRQN + 1));
	mock_free(s.m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(serves_in_link_order_for_ever),
		cmocka_unit_test(reads_scatter_lists),
		cmocka_unit_test(the_limit_fires_once),
		cmocka_unit_test(one_that_ends_serves_nothing),
		cmocka_unit_test(a_link_that_leads_out_is_an_srq_error),
		cmocka_unit_test(scribbled_state_is_not_followed),
		cmocka_unit_test(a_dead_owner_serves_nothing),
		cmocka_unit_test(bad_creations_change_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
