// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: attributes and path records are converted between the kernel's form and the
 * application's: every field, and no other byte.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <infiniband/marshall.h>

/* Fills an object with bytes that differ from their neighbours and are not 0. */
static void fill(void *object, size_t size, unsigned int start)
{
	unsigned char *byte = object;
	size_t i;

	for (i = 0; i < size; ++i)
		byte[i] = 1 + (start + i) % 250;
}

#define SAME(field) assert_true((uint64_t)dst.field == (uint64_t)src.field)

static void check_ah(const struct ibv_ah_attr *to, const struct ibv_kern_ah_attr *from)
{
	const struct ibv_ah_attr dst = *to;
	const struct ibv_kern_ah_attr src = *from;

	assert_memory_equal(dst.grh.dgid.raw, src.grh.dgid, 16);
	SAME(grh.flow_label);
	SAME(grh.sgid_index);
	SAME(grh.hop_limit);
	SAME(grh.traffic_class);
	SAME(dlid);
	SAME(sl);
	SAME(src_path_bits);
	SAME(static_rate);
	SAME(is_global);
	SAME(port_num);
}

static void ah_attr(void **state)
{
	struct ibv_kern_ah_attr src;
	struct ibv_ah_attr dst;

	(void)state;
	fill(&src, sizeof(src), 3);
	memset(&dst, 0xee, sizeof(dst));
	ibv_copy_ah_attr_from_kern(&dst, &src);
	check_ah(&dst, &src);
}

static void qp_attr(void **state)
{
	struct ibv_kern_qp_attr src;
	struct ibv_qp_attr dst;

	(void)state;
	fill(&src, sizeof(src), 0);
	memset(&dst, 0xee, sizeof(dst));
	ibv_copy_qp_attr_from_kern(&dst, &src);

	SAME(qp_state);
	SAME(cur_qp_state);
	SAME(path_mtu);
	SAME(path_mig_state);
	SAME(qkey);
	SAME(rq_psn);
	SAME(sq_psn);
	SAME(dest_qp_num);
	assert_int_equal(dst.qp_access_flags, src.qp_access_flags);
	assert_int_equal(dst.cap.max_send_wr, src.max_send_wr);
	assert_int_equal(dst.cap.max_recv_wr, src.max_recv_wr);
	assert_int_equal(dst.cap.max_send_sge, src.max_send_sge);
	assert_int_equal(dst.cap.max_recv_sge, src.max_recv_sge);
	assert_int_equal(dst.cap.max_inline_data, src.max_inline_data);
	check_ah(&dst.ah_attr, &src.ah_attr);
	check_ah(&dst.alt_ah_attr, &src.alt_ah_attr);
	SAME(pkey_index);
	SAME(alt_pkey_index);
	SAME(en_sqd_async_notify);
	SAME(sq_draining);
	SAME(max_rd_atomic);
	SAME(max_dest_rd_atomic);
	SAME(min_rnr_timer);
	SAME(port_num);
	SAME(timeout);
	SAME(retry_cnt);
	SAME(rnr_retry);
	SAME(alt_port_num);
	SAME(alt_timeout);
}

/* clang-format off */
#define PATH_FIELDS(X)                                                                                 \
	X(dlid) X(slid) X(raw_traffic) X(flow_label) X(reversible) X(mtu) X(pkey) X(hop_limit)         \
	X(traffic_class) X(numb_path) X(sl) X(mtu_selector) X(rate_selector) X(rate)                   \
	X(packet_life_time_selector) X(packet_life_time) X(preference)
/* clang-format on */

static void path_record(void **state)
{
	struct ibv_kern_path_rec kern, back;
	struct ibv_sa_path_rec path;

	(void)state;
	fill(&kern, sizeof(kern), 0);
	/* The MTU has one byte in the application's form. */
	kern.mtu = 5;
	memset(&path, 0, sizeof(path));
	ibv_copy_path_rec_from_kern(&path, &kern);
	assert_memory_equal(path.dgid.raw, kern.dgid, 16);
	assert_memory_equal(path.sgid.raw, kern.sgid, 16);
#define X(field) assert_int_equal(path.field, kern.field);
	PATH_FIELDS(X)
#undef X

	memset(&back, 0, sizeof(back));
	ibv_copy_path_rec_to_kern(&back, &path);
	assert_memory_equal(&back, &kern, sizeof(kern));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(ah_attr),
		cmocka_unit_test(qp_attr),
		cmocka_unit_test(path_record),
	};

	return cmocka_run_group_tests_name("marshall", tests, NULL, NULL);
}
