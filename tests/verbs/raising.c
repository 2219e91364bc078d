// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: a sender is killed, or stopped, before and after each of its system calls while its
 * message raises a completion event. The receiver reads one event for the message if it has arrived
 * and none if it has not, and can destroy its CQ. A sender that is stopped keeps it from nothing,
 * also if the kernel has disarmed it before. The same where the record of the event cannot go into the FIFO at once, or where the receiver
 * cannot open the FIFO to see what has become of the record.
 * Quick: half
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#include "softhca/device/memory/thread_pointer.h"
#include "verbs_test.h"

#define LEN 64

enum word { LID, QPN_HERE, QPN_THERE, ROUND, STRUCK, LAST, ARRIVED, TROUBLE };
enum trouble { NONE, SENDER_HAS_NO_FILES, RECEIVER_HAS_NO_FILES, FIFO_IS_FULL };

static void files(bool allow)
{
	struct rlimit limit;

	CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = allow ? limit.rlim_max : 0;
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* What earlier events have left open does not help the sender. close() would leave it alone. */
static void close_fifos(void)
{
	char name[40], path[4096];

	for (int fd = 3; fd < 4096; fd++) {
		int flags = fcntl(fd, F_GETFL);
		ssize_t len;

		if (flags < 0 || (flags & O_ACCMODE) != O_RDWR)
			continue;
		snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
		len = readlink(name, path, sizeof(path) - 1);
		if (len < 0)
			continue;
		path[len] = '\0';
		if (strstr(path, "/events/"))
			CHECK_EQ(syscall(SYS_close, fd), 0);
	}
}

/* Fills the FIFO of a channel, and returns with how many bytes. */
static size_t fill_fifo(const struct ibv_comp_channel *channel)
{
	char name[40];
	uint64_t nothing = 0;
	size_t len = 0;
	int fd;

	snprintf(name, sizeof(name), "/proc/self/fd/%d", channel->fd);
	fd = open(name, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	CHECK(fd >= 0);
	CHECK(fcntl(fd, F_SETPIPE_SZ, 4096) >= 0);
	while (write(fd, &nothing, sizeof(nothing)) == sizeof(nothing))
		len += sizeof(nothing);
	CHECK_EQ(errno, EAGAIN);
	CHECK_EQ(close(fd), 0);
	return len;
}

static void drain_fifo(const struct ibv_comp_channel *channel, size_t len)
{
	uint64_t nothing;

	for (; len; len -= sizeof(nothing)) {
		CHECK_EQ(read(channel->fd, &nothing, sizeof(nothing)), sizeof(nothing));
		CHECK_EQ(nothing, 0);
	}
}

/* A message from another QP to the CQ: whatever the sender had locked is free. */
static void send_to(struct side *s)
{
	struct ibv_qp *from = make_qp(s, IBV_QPT_RC, NULL, NULL, NULL);
	struct ibv_qp *to = make_qp(s, IBV_QPT_RC, NULL, NULL, NULL);

	connect_pair(s, from, to);
	CHECK_EQ(post_recv1(to, s, 3, 0, 8), 0);
	CHECK_EQ(post_send1(from, s, 4, LEN / 2, 8, IBV_SEND_SIGNALED), 0);
	expect_wc(s->rcq, 3, IBV_WC_SUCCESS);
	expect_wc(s->scq, 4, IBV_WC_SUCCESS);
	CHECK_EQ(ibv_destroy_qp(from), 0);
	CHECK_EQ(ibv_destroy_qp(to), 0);
}

static void round_of_receiver(uint64_t round)
{
	unsigned int events = 0, messages = 0;
	enum trouble trouble;
	size_t filled = 0;
	struct pollfd ready;
	struct ibv_cq *cq;
	void *cq_context;
	struct ibv_qp *qp;
	struct ibv_wc wc;
	struct link l;
	struct side s;

	side_open(&s, LEN, 16, SIDE_CHANNEL);
	qp = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	post(LID, s.lid);
	post(QPN_HERE, qp->qp_num);
	meet(2);
	link_defaults(&l, s.lid, (uint32_t)board->word[QPN_THERE]);
	connect_qp(qp, &l);
	/* The first event opens files, which later ones do not. */
	CHECK_EQ(post_recv1(qp, &s, 1, 0, LEN), 0);
	CHECK_EQ(post_recv1(qp, &s, 2, 0, LEN), 0);
	CHECK_EQ(ibv_req_notify_cq(s.rcq, 0), 0);
	meet(2);
	CHECK_EQ(ibv_get_cq_event(s.channel, &cq, &cq_context), 0);
	ibv_ack_cq_events(cq, 1);
	expect_wc(s.rcq, 1, IBV_WC_SUCCESS);
	CHECK_EQ(ibv_req_notify_cq(s.rcq, 0), 0);
	trouble = (enum trouble)board->word[TROUBLE];
	if (trouble == FIFO_IS_FULL)
		filled = fill_fifo(s.channel);
	if (trouble == RECEIVER_HAS_NO_FILES)
		files(false);
	meet(2);
	await(STRUCK, round);
	/* This takes the lock of the CQ, and so finds what the sender has left. */
	CHECK_EQ(ibv_req_notify_cq(s.rcq, 0), 0);
	while (ibv_poll_cq(s.rcq, 1, &wc)) {
		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
		messages++;
	}
	CHECK(messages <= 1);
	if (trouble == RECEIVER_HAS_NO_FILES)
		files(true);
	drain_fifo(s.channel, filled);
	ready = (struct pollfd){.fd = s.channel->fd, .events = POLLIN};
	/* The daemon brings a record that took a detour. */
	while (poll(&ready, 1, trouble != NONE && events < messages ? 20000 : 0) == 1) {
		CHECK_EQ(ibv_get_cq_event(s.channel, &cq, &cq_context), 0);
		CHECK(cq == s.rcq);
		ibv_ack_cq_events(cq, 1);
		events++;
	}
	CHECK_EQ(events, messages);
	send_to(&s);
	post(ARRIVED, board->word[ARRIVED] + messages);
	CHECK_EQ(ibv_destroy_qp(qp), 0);
	/* Waits until as many events are acknowledged as the device has reported. */
	side_close(&s);
}

static void receiver(int unused)
{
	(void)unused;
	for (uint64_t round = 1; !board->word[LAST]; round++) {
		round_of_receiver(round);
		post(ROUND, round);
	}
}

static void sender(int unused)
{
	struct ibv_qp *qp;
	struct link l;
	struct side s;

	(void)unused;
	side_open(&s, LEN, 16, 0);
	qp = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	post(QPN_THERE, qp->qp_num);
	meet(2);
	link_defaults(&l, (uint16_t)board->word[LID], (uint32_t)board->word[QPN_HERE]);
	connect_qp(qp, &l);
	meet(2);
	CHECK_EQ(post_send1(qp, &s, 0, 0, LEN, IBV_SEND_SIGNALED), 0);
	expect_wc(s.scq, 0, IBV_WC_SUCCESS);
	meet(2);
	if (board->word[TROUBLE] == SENDER_HAS_NO_FILES) {
		close_fifos();
		files(false);
	}
	CHECK_EQ(ptrace(PTRACE_TRACEME, 0, NULL, NULL), 0);
	raise(SIGSTOP);
	CHECK_EQ(post_send1(qp, &s, 1, 0, LEN, IBV_SEND_SIGNALED), 0);
	_exit(0);
}

/*
 * Takes the sender up to that many beginnings and ends of system calls. False: it has ended before.
 */
static bool take_to(pid_t pid, unsigned int stops)
{
	int status, signal = 0;

	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFSTOPPED(status));
	CHECK_EQ(WSTOPSIG(status), SIGSTOP);
	CHECK_EQ(ptrace(PTRACE_SETOPTIONS, pid, NULL,
			(void *)(PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL)),
		 0);
	while (stops) {
		CHECK_EQ(ptrace(PTRACE_SYSCALL, pid, NULL, (void *)(long)signal), 0);
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		signal = 0;
		if (WIFEXITED(status)) {
			CHECK_EQ(WEXITSTATUS(status), 0);
			return false;
		}
		CHECK(WIFSTOPPED(status));
		if (WSTOPSIG(status) == (SIGTRAP | 0x80))
			stops--;
		else
			signal = WSTOPSIG(status); /* a doorbell that traps */
	}
	return true;
}

/* The sender is killed, and the receiver finds what it has left. */
static void dies(pid_t pid, uint64_t round)
{
	CHECK_EQ(kill(pid, SIGKILL), 0);
	join_killed(pid, SIGKILL);
	post(STRUCK, round);
	await(ROUND, round);
}

/* Can the life of a stopped thread be ended here? docs/architecture.md, "Stopped in the middle". */
static bool can_be_thrown(void)
{
#ifdef __x86_64__
	const unsigned int *rseq = dlsym(RTLD_DEFAULT, "__rseq_size");
	unsigned int major = 0, minor = 0;
	struct utsname name;

	CHECK_EQ(uname(&name), 0);
	return rseq && *rseq && sscanf(name.release, "%u.%u", &major, &minor) == 2 &&
	       (major == 5 || (major == 6 && minor < 19));
#else
	return false;
#endif
}

/* The sender is stopped until the receiver has ended the round, where that is possible. */
static void stops(pid_t pid, uint64_t round)
{
	int status;

	CHECK_EQ(ptrace(PTRACE_DETACH, pid, NULL, (void *)(long)SIGSTOP), 0);
	CHECK_EQ(waitpid(pid, &status, WUNTRACED), pid);
	post(STRUCK, round);
	if (WIFSTOPPED(status)) {
		if (can_be_thrown())
			await(ROUND, round);
		else
			sleep_ms(100);
		CHECK_EQ(kill(pid, SIGCONT), 0);
		join(pid);
	} else { /* its last system call does not return */
		CHECK(WIFEXITED(status));
		CHECK_EQ(WEXITSTATUS(status), 0);
	}
	await(ROUND, round);
}

/*
 * The same for a thread that has lost the processor just before one of the calls that raise the event: the kernel
 * has disarmed it (softhca/device/memory/life.h).
 */
static void stops_disarmed(pid_t pid, uint64_t round)
{
#ifdef __x86_64__
	const ptrdiff_t *rseq = dlsym(RTLD_DEFAULT, "__rseq_offset");
	struct user_regs_struct regs;

	CHECK_EQ(ptrace(PTRACE_GETREGS, pid, NULL, &regs), 0);
	if (can_be_thrown() && (regs.orig_rax == SYS_fstat || regs.orig_rax == SYS_utimensat ||
				regs.orig_rax == SYS_write))
		/* The first thread of a child has its area where its parent's has it, and the word in it there. */
		CHECK_EQ(
			ptrace(PTRACE_POKEDATA, pid, (char *)sh_thread_pointer() + *rseq + 8, NULL),
			0);
#endif
	stops(pid, round);
}

/* Strikes at every such place, and returns the number of the round after the last. */
static uint64_t at_each(void (*strike)(pid_t, uint64_t), uint64_t round)
{
	for (unsigned int place = 0;; place++, round++) {
		pid_t pid = spawn(sender, 0);

		if (!take_to(pid, place))
			break;
		strike(pid, round);
	}
	return round;
}

/* The same, and some of the messages have arrived. */
static uint64_t with_trouble(enum trouble trouble, void (*strike)(pid_t, uint64_t), uint64_t round)
{
	uint64_t arrived = board->word[ARRIVED], first = round;

	post(TROUBLE, trouble);
	round = at_each(strike, round);
	/* The last sender was not struck. */
	post(STRUCK, round);
	await(ROUND, round);
	arrived = board->word[ARRIVED] - arrived;
	printf("# trouble %d: %u rounds, the message had arrived in %u\n", trouble,
	       (unsigned int)(round + 1 - first), (unsigned int)arrived);
	CHECK(arrived > 2);
	return round + 1;
}

int main(void)
{
	uint64_t round = 1;
	pid_t other;

	test_begin();
	other = spawn(receiver, 0);
	for (enum trouble trouble = NONE; trouble <= FIFO_IS_FULL; trouble++)
		round = with_trouble(trouble, dies, round);
	post(TROUBLE, NONE);
	round = at_each(stops, round);
	post(STRUCK, round);
	await(ROUND, round);
	round = at_each(stops_disarmed, round + 1);
	post(LAST, 1);
	post(STRUCK, round);
	join(other);
	printf("# %u rounds, the message had arrived in %u\n", (unsigned int)round,
	       (unsigned int)board->word[ARRIVED]);
	return 0;
}
