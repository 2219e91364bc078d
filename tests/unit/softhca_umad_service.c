// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: services of the subnet administrator: who registers, finds, changes and deletes
 * them, their keys, partitions and leases, and how many there may be.
 */
#include "softhca/host/process.h"
#include "softhca/kernel/umad/sa_service.h"
#include "softhca_umad_rig.h"

enum { GET = 1, SET = 2, GET_TABLE = 0x12, DELETE = 0x15, SERVICE_RECORD = 0x31 };
enum { ID = 1 << 0, GID = 1 << 1, PKEY = 1 << 2, LEASE = 1 << 4, KEY = 1 << 5, NAME = 1 << 6 };
enum { DATA8 = 1 << 7, RID = ID | GID };
enum { INVALID = 0x0200, NO_RECORDS = 0x0300, NO_RESOURCES = 0x0100, INSUFFICIENT = 0x0600 };

static uint32_t agent[2];

static void up(struct rig *r)
{
	begin_hosts(r, 1, 2);
	for (int i = 0; i < 2; i++)
		assert_int_equal(reg(r, i, 1, 3, 2, 1, 0, 0, &agent[i]), 0);
}

/* A record to ask with, of this service. */
static uint8_t *service(struct rig *r, int i, uint8_t method, uint64_t mask, uint64_t number)
{
	uint8_t *m = request(r, agent[i], 1, 3, 2, method, SERVICE_RECORD), *s = m + 56;

	mad_put64(m, 48, mask);
	mad_put64(s, 0, number);
	s[8] = 0xfe;
	s[9] = 0x80;
	s[23] = 9;
	return s;
}

/* The status of the answer, whose record is in *record. */
static uint32_t ask(struct rig *r, int i, const uint8_t **record)
{
	assert_int_equal(put(r, i, 320), 320);
	assert_int_equal(get(r, i, 320), 320);
	assert_int_equal(r->in[64 + 3], mad(r)[3] == SET ? 0x81 : mad(r)[3] | 0x80);
	*record = r->in + 64 + 56;
	return mad16(r->in + 64, 4);
}

/* How many records a question gets. */
static long table(struct rig *r, int i)
{
	long n;

	assert_int_equal(put(r, i, 320), 320);
	n = get(r, i, sizeof(r->in));
	assert_true(n >= 64 + 56);
	assert_int_equal(mad16(r->in + 64, 4), 0);
	assert_int_equal((n - 64 - 56) % SERVICE_RECORD_SIZE, 0);
	return (n - 64 - 56) / SERVICE_RECORD_SIZE;
}

static void registered(void **state)
{
	const uint8_t *got;
	uint8_t *s;
	struct rig r;

	(void)state;
	up(&r);
	service(&r, 0, GET, ID, 0x77);
	assert_int_equal(ask(&r, 0, &got), NO_RECORDS);
	/* What is to be known of it. */
	service(&r, 0, SET, ID | NAME, 0x77);
	assert_int_equal(ask(&r, 0, &got), INSUFFICIENT);
	s = service(&r, 0, SET, RID | NAME | DATA8 | LEASE, 0x77);
	mad_put32(s, 28, UINT32_MAX);
	strcpy((char *)s + 48, "name of it");
	s[112] = 0x5a;
	s[167] = 0xff; /* which the question does not name */
	assert_int_equal(ask(&r, 0, &got), 0);
	assert_int_equal(mad16(r.in + 64, 44), SERVICE_RECORD_SIZE / 8);
	assert_int_equal(mad64(got, 0), 0x77);
	assert_int_equal(mad16(got, 24), 0xffff);
	assert_int_equal(mad32(got, 28), UINT32_MAX);
	assert_string_equal((const char *)got + 48, "name of it");
	assert_int_equal(got[112], 0x5a);
	assert_int_equal(got[167], 0xff);
	/* Another host finds it by its number, its name, its data, and not by others. */
	service(&r, 1, GET, ID, 0x77);
	assert_int_equal(ask(&r, 1, &got), 0);
	assert_int_equal(got[112], 0x5a);
	s = service(&r, 1, GET_TABLE, NAME, 0);
	strcpy((char *)s + 48, "name of it");
	assert_int_equal(table(&r, 1), 1);
	service(&r, 1, GET_TABLE, DATA8, 0)[112] = 0x5a;
	assert_int_equal(table(&r, 1), 1);
	service(&r, 1, GET_TABLE, DATA8, 0)[112] = 0x5b;
	assert_int_equal(table(&r, 1), 0);
	service(&r, 1, GET_TABLE, ID, 0x78);
	assert_int_equal(table(&r, 1), 0);
	/* The same one again takes its place; one with another GID stands beside it. */
	service(&r, 0, SET, RID | DATA8, 0x77)[112] = 0x11;
	assert_int_equal(ask(&r, 0, &got), 0);
	service(&r, 0, SET, RID, 0x77)[23] = 10;
	assert_int_equal(ask(&r, 0, &got), 0);
	service(&r, 1, GET_TABLE, ID, 0x77);
	assert_int_equal(table(&r, 1), 2);
	/* Several fit a Get. */
	service(&r, 1, GET, ID, 0x77);
	assert_int_equal(ask(&r, 1, &got), 0x0400);
	service(&r, 0, DELETE, NAME, 0x77)[23] = 11;
	assert_int_equal(ask(&r, 0, &got), NO_RECORDS);
	service(&r, 0, DELETE, NAME, 0x77);
	assert_int_equal(ask(&r, 0, &got), 0);
	assert_int_equal(got[112], 0x11);
	assert_int_equal(ask(&r, 0, &got), NO_RECORDS);
	service(&r, 1, GET_TABLE, 0, 0);
	assert_int_equal(table(&r, 1), 1);
	end(&r);
}

static void keys(void **state)
{
	const uint8_t *got;
	struct rig r;

	(void)state;
	up(&r);
	service(&r, 0, SET, RID | KEY, 5)[32] = 0x42;
	assert_int_equal(ask(&r, 0, &got), 0);
	assert_int_equal(got[32], 0);
	/* The key is told to nobody who asks without that of the subnet manager. */
	service(&r, 1, GET, ID, 5);
	assert_int_equal(ask(&r, 1, &got), 0);
	assert_int_equal(got[32], 0);
	assert_int_equal(got[112], 0);
	service(&r, 1, GET, ID, 5);
	mad_put64(mad(&r), 36, 1);
	assert_int_equal(ask(&r, 1, &got), 0);
	assert_int_equal(got[32], 0x42);
	/* Who knows it finds the service by it. It protects nothing, as with OpenSM. */
	service(&r, 1, GET, ID | KEY, 5)[32] = 0x43;
	assert_int_equal(ask(&r, 1, &got), NO_RECORDS);
	service(&r, 1, GET, ID | KEY, 5)[32] = 0x42;
	assert_int_equal(ask(&r, 1, &got), 0);
	assert_int_equal(got[32], 0);
	service(&r, 1, DELETE, RID, 5);
	assert_int_equal(ask(&r, 1, &got), 0);
	end(&r);
}

static void partitions(void **state)
{
	const uint8_t *got;
	struct sh_port *p;
	struct rig r;

	(void)state;
	up(&r);
	p = &sh_hca(&r.t->k.dev, 0)->port[0];
	mad_put16(service(&r, 0, SET, RID | PKEY, 6), 24, 0x8005);
	assert_int_equal(ask(&r, 0, &got), INVALID);
	p->pkey[3] = 0x8005;
	assert_int_equal(ask(&r, 0, &got), 0);
	/* The other host is not in it. */
	service(&r, 1, GET, ID, 6);
	assert_int_equal(ask(&r, 1, &got), NO_RECORDS);
	mad_put16(service(&r, 1, DELETE, RID | PKEY, 6), 24, 0x8005);
	assert_int_equal(ask(&r, 1, &got), NO_RECORDS);
	sh_hca(&r.t->k.dev, 1)->port[0].pkey[1] = 0x0005;
	assert_int_equal(ask(&r, 1, &got), 0);
	end(&r);
}

static void leases(void **state)
{
	const uint64_t second = UINT64_C(1000000000);
	uint64_t begun, due;
	const uint8_t *got;
	struct rig r;

	(void)state;
	up(&r);
	mad_put32(service(&r, 0, SET, RID | LEASE, 1), 28, 0);
	assert_int_equal(ask(&r, 0, &got), INVALID);
	begun = sh_now();
	mad_put32(service(&r, 0, SET, RID | LEASE, 1), 28, 1000);
	assert_int_equal(ask(&r, 0, &got), 0);
	assert_int_equal(mad32(got, 28), 1000);
	mad_put32(service(&r, 0, SET, RID | LEASE, 2), 28, 2000);
	assert_int_equal(ask(&r, 0, &got), 0);
	service(&r, 0, SET, RID, 3);
	assert_int_equal(ask(&r, 0, &got), 0);
	assert_int_equal(mad32(got, 28), UINT32_MAX);
	assert_true(r.t->k.umad->due && r.t->k.umad->due <= begun + 60000 * second);
	/* What is left of it is told. */
	due = sa_service_due(r.t->k.umad, begun);
	assert_true(due >= begun + 1000 * second && due < begun + 1400 * second);
	service(&r, 1, GET, ID, 2);
	assert_int_equal(ask(&r, 1, &got), 0);
	assert_true(mad32(got, 28) <= 2000 && mad32(got, 28) > 1000);
	/* The first ends, then the second; the third stays. */
	due = sa_service_due(r.t->k.umad, due);
	assert_true(due >= begun + 2000 * second);
	service(&r, 1, GET_TABLE, 0, 0);
	assert_int_equal(table(&r, 1), 2);
	assert_int_equal(sa_service_due(r.t->k.umad, due), 0);
	assert_int_equal(table(&r, 1), 1);
	assert_int_equal(mad64(r.in + 64, 56), 3);
	end(&r);
}

/* A port has its share, and a subnet manager that begins knows nothing of what was before. */
static void limits(void **state)
{
	struct kproc p = {.host = 1, .pid = getpid()};
	struct umad_file *issm;
	const uint8_t *got;
	struct rig r;
	int fd;

	(void)state;
	up(&r);
	for (uint64_t i = 0; i < 64; i++) {
		service(&r, 0, SET, RID, 100 + i);
		assert_int_equal(ask(&r, 0, &got), 0);
	}
	service(&r, 0, SET, RID, 200);
	assert_int_equal(ask(&r, 0, &got), NO_RESOURCES);
	service(&r, 1, SET, RID, 200);
	assert_int_equal(ask(&r, 1, &got), 0);
	service(&r, 0, DELETE, RID, 100);
	assert_int_equal(ask(&r, 0, &got), 0);
	service(&r, 0, SET, RID, 201);
	assert_int_equal(ask(&r, 0, &got), 0);
	assert_int_equal(r.t->k.umad->nservices, 65);
	assert_int_equal(umad_open(r.t->k.umad, &p, UMAD_MINORS, O_RDWR, &issm, &fd), 0);
	assert_int_equal(r.t->k.umad->nservices, 0);
	assert_null(r.t->k.umad->services);
	umad_free(issm);
	close(fd);
	end(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(registered), cmocka_unit_test(keys),
		cmocka_unit_test(partitions), cmocka_unit_test(leases),
		cmocka_unit_test(limits),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
