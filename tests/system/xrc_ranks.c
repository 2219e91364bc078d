// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* See xrc_ranks.h. */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "xrc_ranks.h"

struct board *board;
int me = -1, total, hosts, local, host, place;
uint32_t my_life;
const char *directory;

static const char *self;

/* ---- failures ---- */

static void __attribute__((noreturn)) fail(void)
{
	if (board)
		__atomic_store_n(&board->failed, 1, __ATOMIC_RELEASE);
	exit(1);
}

void check_failed(const char *file, int line, const char *what, int err)
{
	fprintf(stderr, "%s:%d: rank %d: not so: %s (errno %d, %s)\n", file, line, me, what, err,
		strerror(err));
	fail();
}

void check_equal(const char *file, int line, const char *a, const char *b, long long va,
		 long long vb)
{
	if (va == vb)
		return;
	fprintf(stderr, "%s:%d: rank %d: %s is %lld, %s is %lld\n", file, line, me, a, va, b, vb);
	fail();
}

/* The alarm. It says which rank has not come to its end, for the reader of the log. */
static void too_long(int signal)
{
	char text[] = "a rank has waited too long: 00\n";

	(void)signal;
	text[sizeof(text) - 4] = (char)('0' + me / 10 % 10);
	text[sizeof(text) - 3] = (char)('0' + me % 10);
	if (write(2, text, sizeof(text) - 1) < 0)
		_exit(2);
	__atomic_store_n(&board->failed, 1, __ATOMIC_RELEASE);
	_exit(1);
}

static void be_bounded(void)
{
	signal(SIGALRM, too_long);
	alarm(RANK_SECONDS);
}

/* ---- the board ---- */

static void map_board(bool fresh)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/board", directory);
	if (fresh)
		unlink(path);
	fd = open(path, O_RDWR | O_CLOEXEC | (fresh ? O_CREAT | O_EXCL : 0), 0600);
	CHECK(fd >= 0);
	if (fresh)
		CHECK_EQ(ftruncate(fd, sizeof(*board)), 0);
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(board != MAP_FAILED);
	close(fd);
}

void post(unsigned int word, uint64_t value)
{
	__atomic_store_n(&board->word[word], value, __ATOMIC_RELEASE);
}

uint64_t look(unsigned int word)
{
	return __atomic_load_n(&board->word[word], __ATOMIC_ACQUIRE);
}

uint64_t add(unsigned int word, uint64_t value)
{
	return __atomic_fetch_add(&board->word[word], value, __ATOMIC_ACQ_REL);
}

static void doze(unsigned int us)
{
	struct timespec t = {.tv_nsec = us * 1000L};

	nanosleep(&t, NULL);
}

void idle(unsigned int times)
{
	if (__atomic_load_n(&board->failed, __ATOMIC_ACQUIRE))
		exit(1);
	if (times < 20)
		sched_yield();
	else
		doze(times < 200 ? 50 : 1000);
}

void await_count(const uint32_t *word, uint32_t value, bool (*work)(void))
{
	unsigned int times = 0;

	while ((int32_t)(__atomic_load_n(word, __ATOMIC_ACQUIRE) - value) < 0) {
		if (work && work())
			times = 0;
		else
			idle(times++);
	}
}

void await(unsigned int word, uint64_t value, bool (*work)(void))
{
	unsigned int times = 0;

	while (look(word) < value) {
		if (work && work())
			times = 0;
		else
			idle(times++);
	}
}

void meet(uint32_t n, bool (*work)(void))
{
	uint32_t generation = __atomic_load_n(&board->generation, __ATOMIC_ACQUIRE);

	if (__atomic_add_fetch(&board->arrived, 1, __ATOMIC_ACQ_REL) == n) {
		__atomic_store_n(&board->arrived, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&board->generation, generation + 1, __ATOMIC_RELEASE);
		return;
	}
	await_count(&board->generation, generation + 1, work);
}

void show(uint32_t n, bool (*work)(void))
{
	uint32_t wanted = __atomic_load_n(&board->shown, __ATOMIC_ACQUIRE) + 1;

	meet(n, work);
	__atomic_store_n(&board->show, wanted, __ATOMIC_RELEASE);
	await_count(&board->shown, wanted, work);
	meet(n, work);
}

uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

void mail_send(int to, const struct note *note)
{
	struct mailbox *box = &board->mail[to][me];

	CHECK(box->tail - __atomic_load_n(&box->head, __ATOMIC_ACQUIRE) < MAIL);
	box->note[box->tail % MAIL] = *note;
	__atomic_store_n(&box->tail, box->tail + 1, __ATOMIC_RELEASE);
}

bool mail_next(struct note *note)
{
	for (int from = 0; from < total; from++) {
		struct mailbox *box = &board->mail[me][from];

		if (box->head == __atomic_load_n(&box->tail, __ATOMIC_ACQUIRE))
			continue;
		*note = box->note[box->head % MAIL];
		__atomic_store_n(&box->head, box->head + 1, __ATOMIC_RELEASE);
		return true;
	}
	return false;
}

uint8_t content(uint32_t from, uint32_t to, uint32_t number, size_t i)
{
	return (uint8_t)(from * 31 + to * 17 + number * 7 + i + (i >> 8) * 13);
}

/* ---- launcher, node, rank ---- */

static void start_rank(int p, void (*run)(void))
{
	struct place *r = &board->rank[host * local + p];
	pid_t node = getpid(), pid;

	fflush(NULL);
	pid = fork();
	CHECK(pid >= 0);
	if (pid) {
		__atomic_store_n(&r->pid, pid, __ATOMIC_RELEASE);
		return;
	}
	/* The node is killed when the test is: its ranks go with it. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	CHECK_EQ(getppid(), node);
	place = p;
	me = host * local + p;
	my_life = r->life;
	be_bounded();
	run();
	exit(0);
}

/* A rank has ended. Its successor, if there is to be one, starts before others are told. */
static bool ended(int p, int status, void (*run)(void))
{
	struct place *r = &board->rank[host * local + p];

	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && r->doomed) {
		r->doomed = 0;
		__atomic_store_n(&r->life, r->life + 1, __ATOMIC_RELEASE);
		if (r->again) {
			r->again = 0;
			start_rank(p, run);
		}
		__atomic_store_n(&r->dead, r->dead + 1, __ATOMIC_RELEASE);
		return true;
	}
	if (!status) {
		__atomic_store_n(&r->ended, 1, __ATOMIC_RELEASE);
		return true;
	}
	fprintf(stderr, "rank %d ended with status 0x%x\n", host * local + p, status);
	__atomic_store_n(&board->failed, 1, __ATOMIC_RELEASE);
	/* A rank that is stopped has to go on to see it. */
	for (int i = 0; i < total; i++)
		if (board->rank[i].pid > 0)
			kill(board->rank[i].pid, SIGCONT);
	return false;
}

static int run_node(void (*run)(void))
{
	int status, bad = 0;
	pid_t pid;

	for (int p = 0; p < local; p++)
		start_rank(p, run);
	while ((pid = wait(&status)) > 0)
		for (int p = 0; p < local; p++)
			if (board->rank[host * local + p].pid == pid)
				bad |= !ended(p, status, run);
	return bad;
}

static pid_t start_node(int k)
{
	const char *softhca = getenv("SOFTHCA"), *instance = getenv("SOFTHCA_INSTANCE");
	char number[16], count[16], each[16];
	pid_t pid;

	CHECK(softhca && instance);
	snprintf(number, sizeof(number), "%d", k);
	snprintf(count, sizeof(count), "%d", hosts);
	snprintf(each, sizeof(each), "%d", local);
	pid = fork();
	CHECK(pid >= 0);
	if (pid)
		return pid;
	execl(softhca, softhca, "run", "--instance", instance, "--host", number, "--", self,
	      directory, count, each, number, (char *)NULL);
	fprintf(stderr, "%s: %s\n", softhca, strerror(errno));
	_exit(127);
}

static void take_picture(uint32_t n)
{
	char command[8192];

	snprintf(command, sizeof(command), "'%s' show --json '%s' >'%s/up-%u.json'",
		 getenv("SOFTHCA"), getenv("SOFTHCA_INSTANCE"), directory, n);
	if (system(command))
		__atomic_store_n(&board->failed, 1, __ATOMIC_RELEASE);
}

static int launch(void)
{
	int running = 0, bad = 0, status;
	pid_t pid;

	map_board(true);
	for (int k = 0; k < hosts; k++, running++)
		start_node(k);
	while (running) {
		uint32_t wanted = __atomic_load_n(&board->show, __ATOMIC_ACQUIRE);

		if (wanted != board->shown) {
			take_picture(wanted);
			__atomic_store_n(&board->shown, wanted, __ATOMIC_RELEASE);
		}
		pid = waitpid(-1, &status, WNOHANG);
		CHECK(pid >= 0);
		if (!pid) {
			doze(1000);
			continue;
		}
		running--;
		if (status) {
			__atomic_store_n(&board->failed, 1, __ATOMIC_RELEASE);
			bad = 1;
		}
	}
	return bad || board->failed;
}

int ranks_main(int argc, char **argv, void (*run)(void))
{
	if (argc < 4) {
		fprintf(stderr, "usage: %s DIRECTORY HOSTS LOCAL, in softhca run\n", argv[0]);
		return 2;
	}
	self = argv[0];
	directory = argv[1];
	hosts = atoi(argv[2]);
	local = atoi(argv[3]);
	total = hosts * local;
	/*
	 * Launcher and nodes wait a little longer than ranks do, so that a rank that hangs can
	 * report first.
	 */
	alarm(RANK_SECONDS + 10);
	CHECK(hosts > 0 && local > 0 && total <= MAX_RANKS);
	if (argc == 4)
		return launch();
	host = atoi(argv[4]);
	map_board(false);
	return run_node(run);
}
