// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: responses are kept as requests are, by RMPP until they are acknowledged and else by
 * their time limit, although nothing answers them.
 */
#include "softhca/host/process.h"
#include "softhca/kernel/umad/segments.h"
#include "softhca_umad_server.h"

enum { ACTIVE = 1, ACK = 2 };

/*
 * A response that has a time limit is sent again as often as its sender said, since nothing answers
 * it, and then the sender reads its header with the error. While it waits, it cannot be sent once
 * more to the same place.
 */
static void response_with_limit(void **state)
{
	const struct umad_hdr *h;
	uint8_t asked[64 + 24];
	struct rig r;
	uint8_t *m;

	(void)state;
	up_to_serve(&r, 0);
	h = (const void *)r.in;
	m = request(&r, client, TO_SERVER, VENDOR, 1, METHOD_SET, 0x20);
	mad_put32(m, 36, 0x1405);
	assert_int_equal(put(&r, 0, 320), 320);
	assert_int_equal(get(&r, 1, 320), 320);
	memcpy(asked, r.in, sizeof(asked));
	m = request(&r, server, 1, VENDOR, 1, METHOD_GET | 0x80, 0x20);
	memcpy(m + AT_TID, asked + 64 + AT_TID, 8);
	mad_put32(m, 36, 0x1405);
	((struct umad_hdr *)r.out)->retries = 2;
	assert_int_equal(put(&r, 1, 320), 320);
	assert_int_equal(put(&r, 1, 320), -EINVAL);
	assert_int_equal(get(&r, 0, 320), 320);
	assert_int_equal(h->status, 0);
	assert_null(r.f[0]->sent);
	/* Somebody else may have asked by the same number. */
	((struct umad_hdr *)r.out)->lid = htobe16(5);
	((struct umad_hdr *)r.out)->timeout_ms = 0;
	assert_int_equal(put(&r, 1, 320), 320);
	for (int i = 0; i < 3; i++) {
		nothing_for(&r, 1);
		r.f[1]->sent->due = 1;
		umad_timer_ready(r.t->k.umad);
		nothing_for(&r, 0);
	}
	assert_int_equal(get(&r, 1, 320), 64 + 24);
	assert_int_equal(h->status, ETIMEDOUT);
	assert_int_equal(h->id, server);
	assert_int_equal(r.in[64 + 3], METHOD_GET | 0x80);
	assert_null(r.f[1]->sent);
	end(&r);
}

/*
 * A file asks itself: a response that is sent again may end a request that is sent again as well.
 */
static void response_to_itself(void **state)
{
	uint32_t asks;
	struct rig r;
	uint8_t *m;

	(void)state;
	up_to_serve(&r, 0);
	assert_int_equal(reg(&r, 1, 1, VENDOR, 1, 0, 0x1405, 0, &asks), 0);
	for (int i = 0; i < 2; i++) {
		m = request(&r, asks, TO_SERVER, VENDOR, 1, METHOD_SET, 0x20);
		mad_put32(m, 36, 0x1405);
		((struct umad_hdr *)r.out)->retries = 3;
		assert_int_equal(put(&r, 1, 320), 320);
		assert_int_equal(get(&r, 1, 320), 320);
		if (i)
			break;
		m[3] = METHOD_GET | 0x80;
		memcpy(m + AT_TID, r.in + 64 + AT_TID, 8);
		((struct umad_hdr *)r.out)->id = server;
		assert_int_equal(put(&r, 1, 320), 320);
		assert_int_equal(get(&r, 1, 320), 320);
	}
	/* The response is first, and then the new request with the number of the old one. */
	r.f[1]->sent->due = r.f[1]->sent->next->due = 1;
	umad_timer_ready(r.t->k.umad);
	assert_int_equal(get(&r, 1, 320), 320);
	assert_int_equal(r.in[64 + 3], METHOD_GET | 0x80);
	nothing_for(&r, 1);
	assert_null(r.f[1]->sent->next);
	end(&r);
}

/* A table of a server with RMPP: that waits for acknowledgements, with or without a time limit. */
static void table_of_server(void **state)
{
	static uint8_t what[64 + VENDOR_DATA + LONG];
	struct umad_hdr *h = (struct umad_hdr *)what;
	struct rig r;
	uint8_t *m;

	(void)state;
	for (int limit = 0; limit < 2; limit++) {
		for (int rmpp = 0; rmpp < 2; rmpp++) {
			uint8_t tid[8];

			begin_hosts(&r, 1, 4);
			assert_int_equal(
				reg(&r, 1, 1, VENDOR, 1, 1, 0x1405, 1 << METHOD_GET, &server), 0);
			assert_int_equal(reg(&r, 0, 1, VENDOR, 1, rmpp, 0x1405, 0, &client), 0);
			m = request(&r, client, TO_SERVER, VENDOR, 1, METHOD_GET, 0x20);
			mad_put32(m, 36, 0x1405);
			assert_int_equal(put(&r, 0, 320), 320);
			assert_int_equal(get(&r, 1, 320), 320);
			memcpy(tid, r.in + 64 + AT_TID, 8);
			m = request(&r, server, 1, VENDOR, 1, METHOD_GET | 0x80, 0x20);
			memcpy(m + AT_TID, tid, 8);
			m[24] = m[25] = 1;
			m[26] = ACTIVE;
			mad_put32(m, 36, 0x1405);
			memset(what, 0, sizeof(what));
			memcpy(what, r.out, 64 + VENDOR_DATA);
			h->timeout_ms = limit ? 60000 : 0;
			h->retries = 1;
			assert_int_equal(umad_write(r.f[1], what, sizeof(what)),
					 (long)sizeof(what));
			if (rmpp) {
				/* It has arrived, and is not sent again. */
				assert_int_equal(get(&r, 0, sizeof(r.in)), (long)sizeof(what));
				if (limit)
					assert_int_equal(r.f[1]->sent->retries, 0);
				else
					assert_null(r.f[1]->sent);
				end(&r);
				continue;
			}
			for (int i = 0; i < 2; i++) {
				assert_int_equal(get(&r, 0, 320), 320);
				assert_int_equal(mad32(r.in + 64, 28), 1);
				assert_int_equal(get(&r, 0, 320), -EAGAIN);
				assert_true(r.f[1]->sent->due <= sh_now() + 2000000000);
				r.f[1]->sent->due = 1;
				umad_timer_ready(r.t->k.umad);
			}
			assert_int_equal(get(&r, 1, 320), 64 + 24);
			assert_int_equal(((const struct umad_hdr *)r.in)->status, ETIMEDOUT);
			nothing_for(&r, 0);
			(void)segments_due(r.t->k.umad, UINT64_C(1) << 60);
			assert_null(r.t->k.umad->segments);
			/* Once more, and the client acknowledges it. */
			m = request(&r, client, TO_SERVER, VENDOR, 1, METHOD_GET, 0x20);
			mad_put32(m, 36, 0x1405);
			assert_int_equal(put(&r, 0, 320), 320);
			assert_int_equal(get(&r, 1, 320), 320);
			assert_int_equal(umad_write(r.f[1], what, sizeof(what)),
					 (long)sizeof(what));
			for (uint32_t n = 1; n <= 3; n++) {
				assert_int_equal(get(&r, 0, 320), 320);
				assert_int_equal(mad32(r.in + 64, 28), n);
				m = request(&r, client, TO_SERVER, VENDOR, 1, METHOD_GET, 0x20);
				((struct umad_hdr *)r.out)->timeout_ms = 0;
				m[24] = 1;
				m[25] = ACK;
				m[26] = ACTIVE;
				mad_put32(m, 28, n);
				mad_put32(m, 32, n + 1);
				mad_put32(m, 36, 0x1405);
				assert_int_equal(put(&r, 0, 320), 320);
			}
			assert_null(r.t->k.umad->segments);
			assert_int_equal(r.f[1]->sent != NULL, limit);
			nothing_for(&r, 1);
			end(&r);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(response_with_limit),
		cmocka_unit_test(response_to_itself),
		cmocka_unit_test(table_of_server),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
