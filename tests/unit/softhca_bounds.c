// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: the device takes no bounds from device memory. The test overwrites each word of the
 * header that says how large something is, or where it is, with several values. Messages then still
 * arrive, and the device still refuses offsets that lie outside. sh_dev_attach() refuses a header
 * that does not fit the memory it is in.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#include "softhca/device/memory/copy.h"
#include "softhca/device/memory/event.h"
#include "softhca/device/memory/instance.h"
#include "softhca/device/memory/tables.h"
#include "softhca/device/memory/umem.h"
#include "softhca/device/queues/transitions.h"
#include "softhca_pair.h"

static const struct {
	const char *name;
	size_t at, size;
	bool checked; /* sh_dev_attach() refuses any other value */
} words[] = {
#define WORD(field, checked)                                                                       \
	{                                                                                          \
#field, offsetof(struct sh_instance, field),                                       \
			sizeof(((struct sh_instance *)0)->field), checked                          \
	}
	WORD(magic, true),	   WORD(size, true),	  WORD(hosts, true),
	WORD(hcas_per_host, true), WORD(ports, true),	  WORD(hcas, true),
	WORD(pool_off, true),	   WORD(pool_size, true), WORD(shared_off, true),
	WORD(shared_size, true),   WORD(cqe_size, true),  WORD(ctx_off, false),
	WORD(proc_off, false),	   WORD(exec_off, false), WORD(evq_off, false),
	WORD(xrc_reg_off, false),  WORD(hca_off, false),  WORD(hca_span, false),
#undef WORD
};
#define WORDS (sizeof(words) / sizeof(words[0]))

static const uint64_t values[] = {
	0, 3, 255, 0x100000, UINT32_MAX, UINT64_C(1) << 40, INT64_MAX, UINT64_MAX,
};
#define VALUES (sizeof(values) / sizeof(values[0]))

/* Exchanges the word and the value. */
static void swap(struct sh_instance *inst, size_t word, uint64_t *value)
{
	unsigned char old[8] = {0};
	void *at = (char *)inst + words[word].at;

	memcpy(old, at, words[word].size);
	memcpy(at, value, words[word].size);
	memcpy(value, old, sizeof(old));
}

static bool same(size_t word, uint64_t a, uint64_t b)
{
	return words[word].size == 4 ? (uint32_t)a == (uint32_t)b : a == b;
}

static void test_attach(void **state)
{
	struct mock *m = mock_new(&(struct mock_config){.hosts = 2});
	struct sh_dev dev, before;

	(void)state;
	memset(&dev, 0x5a, sizeof(dev));
	before = dev;
	for (size_t w = 0; w < WORDS; w++)
		for (size_t v = 0; words[w].checked && v < VALUES; v++) {
			uint64_t value = values[v];

			swap(m->inst, w, &value);
			if (!same(w, value, values[v]))
				assert_int_equal(sh_dev_attach(&dev, m->inst, m->size), -EPROTO);
			assert_memory_equal(&dev, &before, sizeof(dev));
			swap(m->inst, w, &value);
		}
	assert_int_equal(sh_dev_attach(&dev, m->inst, m->size - 4096), -EPROTO);
	assert_int_equal(sh_dev_attach(&dev, m->inst, m->size + 4096), -EPROTO);
	assert_int_equal(sh_dev_attach(&dev, m->inst, 0), -EPROTO);
	assert_memory_equal(&dev, &before, sizeof(dev));
	assert_int_equal(sh_dev_attach(&dev, m->inst, m->size), 0);
	assert_int_equal(dev.hcas, 2);
	assert_int_equal(dev.shared_off, m->dev.shared_off);
	mock_free(m);
}

/*
 * Checks that the device refuses offsets and numbers outside device memory, the pool, the shared
 * area and the tables.
 */
static void nothing_outside(struct tpair *p)
{
	struct sh_dev *dev = &p->m->dev;
	struct sh_umem mem = {.len = 4096, .ctx = p->a.ctx};
	struct sh_seg seg = {.len = 64};
	const uint64_t outside[] = {
		8,
		SH_HCA_OFF,
		dev->pool_off - 8,
		dev->size,
		dev->size - 8,
		UINT64_MAX - 4096,
		UINT64_C(1) << 62,
	};

	for (size_t i = 0; i < sizeof(outside) / sizeof(outside[0]); i++) {
		mem.shm_off = outside[i];
		assert_null(sh_umem_at(dev, &mem, 0, 64));
		assert_null(sh_umem_in_place(dev, &mem, 0, 64));
		seg.addr = outside[i] | SH_SEG_SHARED;
		assert_null(sh_shared_at(dev, &seg));
	}
	seg.addr = (dev->shared_off - 8) | SH_SEG_SHARED;
	assert_null(sh_shared_at(dev, &seg));
	assert_null(sh_hca(dev, dev->hcas));
	assert_null(sh_hca(dev, 255));
	assert_null(sh_qp_slot(dev, dev->hcas, 1));
}

static void everything_works(struct tpair *p, uint32_t n)
{
	struct twr wr = tpair_wr(p, MLX4_OPCODE_SEND, 3000);
	struct sh_qp_attr attr = {.port_num = 2};

	tfill(p->amem, 3000, n);
	memset(p->bmem, 0, 3000);
	tpair_recv(p, 0, 3000);
	tqp_send(&p->a, &wr);
	texpect(&p->acq[0], MLX4_OPCODE_SEND, true, n);
	texpect(&p->bcq[1], MLX4_CQE_RECV_SEND, false, n);
	assert_memory_equal(p->bmem, p->amem, 3000);
	assert_int_equal(tqp_modify(&p->b, &attr, SH_QPA_PORT), -EINVAL);
}

static void test_overwritten(void **state)
{
	struct tpair p;
	uint32_t n = 0;

	(void)state;
	tpair_open(&p, &(struct tpair_opts){.type = SH_QPT_RC});
	for (size_t w = 0; w < WORDS; w++)
		for (size_t v = 0; v < VALUES; v++) {
			uint64_t value = values[v];

			swap(p.m->inst, w, &value);
			nothing_outside(&p);
			everything_works(&p, n++);
			swap(p.m->inst, w, &value);
		}
	tpair_close(&p);
}

/*
 * The device takes no more spilled records than there is room for, even if device memory says that
 * there are more.
 */
static void test_spilled(void **state)
{
	static const uint32_t wrong[] = {SH_EVQ_SPILL + 1, 0x7fffffff, UINT32_MAX};
	struct mock *m = mock_new(NULL);
	uint32_t ctx = mock_ctx(m, 0), evq = sh_ctx(&m->dev, ctx)->async_evq;
	struct sh_evq *q = sh_evq(&m->dev, evq), next;

	(void)state;
	m->shared->room = 0;
	assert_int_equal(sh_evq_init(&m->daemon, evq + 1, ctx, 16, 1), 0);
	next = q[1];
	for (int i = 0; i < 3; i++) {
		uint32_t counter = 7;

		q->spilled = wrong[i];
		assert_int_equal(sh_async_event(&m->dev, ctx, 1, 9), 0);
		q->spilled = wrong[i];
		assert_in_range(sh_evq_end(&m->dev, evq, &counter, 1, SH_EV_QP), 0, 7);
		q->spilled = wrong[i];
		assert_in_range(sh_evq_flush(&m->daemon, evq), 0, SH_EVQ_SPILL);
		assert_memory_equal(&next, &q[1], sizeof(next));
	}
	mock_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_attach),
		cmocka_unit_test(test_overwritten),
		cmocka_unit_test(test_spilled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
