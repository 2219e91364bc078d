// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: after a signal handler leaves a post with siglongjmp(), the device goes on working
 * for its thread. Nothing is lost or done twice, no lock stays held, and commands that wait for
 * posts to end succeed. So it does after jumps out of calls that change mappings. The program reads
 * back its handlers as it has set them, and they get what belongs to their signals, also where no
 * more signals can be queued.
 *
 * The storm of signals runs in kick only. In trap a store to a doorbell raises a signal, and
 * softhca's handler for it runs with all other signals blocked. So the program's handlers find
 * nothing to jump out of.
 *
 * A jump may leave a lock of the provider held, on a card as here; that is the program's affair. So
 * the handler jumps only when it has interrupted softhca's library, or the system call by which the
 * library lets handlers run.
 * Quick: half
 */
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>

#include "verbs_test.h"

#define JUMPS  3000
#define CALLS  30000 /* of the handler, if few of them find something to jump out of */
#define POSTED 8     /* receives */

static struct side s;
static struct ibv_qp *a, *b;
static sigjmp_buf back;
static volatile sig_atomic_t armed, calls, jumps;
static uintptr_t shim_from, shim_to;

static int find_shim(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size, (void)arg;
	if (!strstr(info->dlpi_name, "softhca-shim"))
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_LOAD && (p->p_flags & PF_X)) {
			shim_from = info->dlpi_addr + p->p_vaddr;
			shim_to = shim_from + p->p_memsz;
		}
	}
	return 1;
}

static uintptr_t counter(const ucontext_t *uc)
{
#if defined(__x86_64__)
	return (uintptr_t)uc->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
	return (uintptr_t)uc->uc_mcontext.pc;
#else
#error "where is the program counter?"
#endif
}

static void jump(int sig, siginfo_t *info, void *context)
{
	uintptr_t at = counter(context), call = (uintptr_t)syscall;

	(void)sig, (void)info;
	calls++;
	if (!armed || !((at >= shim_from && at < shim_to) || (at >= call && at < call + 64)))
		return;
	armed = 0;
	jumps++;
	siglongjmp(back, 1);
}

/* ---- messages ---- */

static uint64_t next_id = 1, last_sent;

static void take_events(void)
{
	struct pollfd p = {.fd = s.channel->fd, .events = POLLIN};
	struct ibv_cq *cq;
	void *arg;

	while (poll(&p, 1, 0) > 0) {
		CHECK_EQ(ibv_get_cq_event(s.channel, &cq, &arg), 0);
		ibv_ack_cq_events(cq, 1);
	}
}

static void drain(void)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(s.scq, 1, &wc) == 1) {
		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
		/* Completions come in order, and none comes twice. */
		CHECK(wc.wr_id > last_sent);
		last_sent = wc.wr_id;
	}
	while (ibv_poll_cq(s.rcq, 1, &wc) == 1) {
		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
		CHECK_EQ(post_recv1(b, &s, 0, 4096, 64), 0);
	}
}

static void post_one(uint64_t id)
{
	if (id % 2)
		CHECK_EQ(post_send1(a, &s, id, 0, 64, IBV_SEND_SIGNALED), 0);
	else
		CHECK_EQ(post_rdma1(a, &s, IBV_WR_RDMA_WRITE, id, 0, 64, (uintptr_t)s.buf + 8192,
				    s.mr->rkey, IBV_SEND_SIGNALED),
			 0);
}

/* Everything that was posted gets done, and so does one more message. */
static void settle(void)
{
	uint64_t id = next_id++;

	post_one(id);
	while (last_sent < id)
		drain();
	CHECK_EQ(last_sent, id);
}

static void storm(void)
{
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
	struct itimerspec often = {{0, 70000}, {0, 70000}};
	timer_t timer;

	CHECK_EQ(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
	CHECK_EQ(timer_settime(timer, 0, &often, NULL), 0);
	while (jumps < JUMPS && calls < CALLS) {
		uint64_t id = next_id++;

		CHECK_EQ(ibv_req_notify_cq(s.rcq, 0), 0);
		if (!sigsetjmp(back, 1)) {
			armed = 1;
			post_one(id);
			armed = 0;
		}
		settle();
		take_events();
	}
	CHECK_EQ(timer_delete(timer), 0);
	CHECK(jumps > 0);
}

/* ---- handlers are what the program made them ---- */

static volatile sig_atomic_t got, value;

static void with_info(int sig, siginfo_t *info, void *context)
{
	(void)context;
	got = sig;
	value = info->si_value.sival_int;
}

static void plain(int sig)
{
	got = sig;
}

static void handlers(void)
{
	struct sigaction act = {.sa_sigaction = with_info, .sa_flags = SA_SIGINFO | SA_NODEFER},
			 old;
	struct sigaction once = {.sa_handler = plain, .sa_flags = (int)SA_RESETHAND};

	/* The program set this handler before it opened the device. */
	CHECK_EQ(sigaction(SIGUSR2, NULL, &old), 0);
	CHECK(old.sa_handler == plain);
	CHECK_EQ(old.sa_flags & ~0x04000000,
		 SA_RESTART); /* but for SA_RESTORER, which the C library adds */
	CHECK_EQ(raise(SIGUSR2), 0);
	CHECK_EQ(got, SIGUSR2);
	sigaddset(&act.sa_mask, SIGHUP);
	CHECK_EQ(sigaction(SIGUSR2, &act, &old), 0);
	CHECK(old.sa_handler == plain && !(old.sa_flags & SA_SIGINFO));
	CHECK_EQ(sigqueue(getpid(), SIGUSR2, (union sigval){.sival_int = 4711}), 0);
	CHECK_EQ(value, 4711);
	CHECK_EQ(sigaction(SIGUSR2, &once, &old), 0);
	CHECK(old.sa_sigaction == with_info);
	CHECK_EQ(old.sa_flags & ~0x04000000, SA_SIGINFO | SA_NODEFER);
	CHECK_EQ(sigismember(&old.sa_mask, SIGHUP), 1);
	got = 0;
	CHECK_EQ(raise(SIGUSR2), 0);
	CHECK_EQ(got, SIGUSR2);
	CHECK_EQ(sigaction(SIGUSR2, NULL, &old), 0);
	CHECK(old.sa_handler == SIG_DFL);
	CHECK(signal(SIGUSR2, plain) == SIG_DFL);
	CHECK(signal(SIGUSR2, SIG_IGN) == plain);
	CHECK(signal(SIGUSR2, plain) == SIG_IGN);
	/* A child of vfork() changes only its own handlers, not those of its parent. */
	{
		pid_t pid = vfork();

		if (!pid) {
			signal(SIGUSR2, SIG_DFL);
			signal(SIGUSR1, plain);
			_exit(0);
		}
		join(pid);
	}
	CHECK_EQ(sigaction(SIGUSR2, NULL, &old), 0);
	CHECK(old.sa_handler == plain);
	CHECK_EQ(sigaction(SIGUSR1, NULL, &old), 0);
	CHECK(old.sa_sigaction == jump);
}

/* ---- handlers run on the stack of the thread, whatever it is in the midst of ---- */

static uintptr_t stack_from, stack_to;
static volatile sig_atomic_t elsewhere, during;

static void look(int sig)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);

	(void)sig;
	during++;
	if (here < stack_from || here >= stack_to)
		elsewhere++;
}

static void own_stack(void)
{
	struct itimerval often = {.it_interval = {0, 150}, .it_value = {0, 150}}, never = {0};
	struct sigaction act = {.sa_handler = look, .sa_flags = SA_RESTART};
	pthread_attr_t attr;
	size_t size;
	void *at;

	CHECK_EQ(pthread_getattr_np(pthread_self(), &attr), 0);
	CHECK_EQ(pthread_attr_getstack(&attr, &at, &size), 0);
	pthread_attr_destroy(&attr);
	stack_from = (uintptr_t)at;
	stack_to = stack_from + size;
	CHECK_EQ(sigaction(SIGALRM, &act, NULL), 0);
	CHECK_EQ(setitimer(ITIMER_REAL, &often, NULL), 0);
	while (during < 1000) {
		struct ibv_mr *mr = ibv_reg_mr(s.pd, s.buf, 4096, IBV_ACCESS_LOCAL_WRITE);
		struct ibv_context *other = ibv_open_device(s.context->device);

		CHECK(mr);
		CHECK(other);
		CHECK_EQ(ibv_dereg_mr(mr), 0);
		CHECK_EQ(ibv_close_device(other), 0);
	}
	CHECK_EQ(setitimer(ITIMER_REAL, &never, NULL), 0);
	CHECK(signal(SIGALRM, SIG_DFL) != SIG_ERR);
	CHECK_EQ(elsewhere, 0);
	alarm(test_seconds());
}

/* ---- jumps out of calls that change mappings ---- */

static void leap(int sig, siginfo_t *info, void *context)
{
	(void)sig, (void)info, (void)context;
	calls++;
	if (!armed)
		return;
	armed = 0;
	jumps++;
	siglongjmp(back, 1);
}

/* Memory that the program keeps from its children stays away from them. */
static void kept_away(void *kept)
{
	int status;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (!pid)
		_exit(msync(kept, 4096, MS_ASYNC) != -1 || errno != ENOMEM);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
}

static void mappings(void)
{
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
	struct itimerspec often = {{0, 70000}, {0, 70000}};
	struct sigaction act = {.sa_sigaction = leap, .sa_flags = SA_SIGINFO | SA_RESTART}, old;
	timer_t timer;
	uint8_t *kept =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr;

	CHECK(kept != MAP_FAILED);
	*kept = 1;
	CHECK_EQ(madvise(kept, 4096, MADV_DONTFORK), 0);
	mr = ibv_reg_mr(s.pd, kept, 4096, IBV_ACCESS_LOCAL_WRITE);
	CHECK(mr);
	kept_away(kept);
	jumps = calls = 0;
	CHECK_EQ(sigaction(SIGUSR1, &act, &old), 0);
	CHECK_EQ(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
	CHECK_EQ(timer_settime(timer, 0, &often, NULL), 0);
	while (jumps < JUMPS && calls < CALLS) {
		void *p;

		if (sigsetjmp(back, 1))
			continue;
		armed = 1;
		p = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		madvise(p, 4096, MADV_DONTDUMP);
		munmap(p, 4096);
		armed = 0;
	}
	CHECK_EQ(timer_delete(timer), 0);
	CHECK(jumps > 0);
	CHECK_EQ(sigaction(SIGUSR1, &old, NULL), 0);
	kept_away(kept);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	CHECK_EQ(munmap(kept, 4096), 0);
}

/* ---- where the queue of signals is full ---- */

#define VALUE 4711

static volatile sig_atomic_t strangers;

static void jump_with_value(int sig, siginfo_t *info, void *context)
{
	if (info->si_signo != sig || info->si_code != SI_TIMER || info->si_value.sival_int != VALUE)
		strangers++;
	jump(sig, info, context);
}

/*
 * The handler gets what belongs to its signal all the same, and its jump leaves a working device.
 */
static void full_queue(int sig)
{
	struct sigevent event = {
		.sigev_notify = SIGEV_SIGNAL, .sigev_signo = sig, .sigev_value.sival_int = VALUE};
	struct itimerspec often = {{0, 70000}, {0, 70000}};
	struct sigaction act = {.sa_sigaction = jump_with_value,
				.sa_flags = SA_SIGINFO | SA_RESTART},
			 old;
	struct ibv_port_attr attr;
	struct rlimit was, none;
	timer_t timer;

	jumps = calls = strangers = 0;
	CHECK_EQ(sigaction(sig, &act, &old), 0);
	CHECK_EQ(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
	CHECK_EQ(getrlimit(RLIMIT_SIGPENDING, &was), 0);
	none = (struct rlimit){0, was.rlim_max};
	CHECK_EQ(setrlimit(RLIMIT_SIGPENDING, &none), 0);
	CHECK_EQ(timer_settime(timer, 0, &often, NULL), 0);
	while (jumps < JUMPS / 10 && calls < CALLS) {
		if (sigsetjmp(back, 1))
			continue;
		armed = 1;
		(void)ibv_query_port(s.context, 1, &attr);
		armed = 0;
	}
	CHECK_EQ(timer_delete(timer), 0);
	CHECK_EQ(setrlimit(RLIMIT_SIGPENDING, &was), 0);
	CHECK(jumps > 0);
	CHECK_EQ(strangers, 0);
	CHECK_EQ(sigaction(sig, &old, NULL), 0);
}

static void *waits(void *arg)
{
	pthread_barrier_wait(arg);
	return NULL;
}

/* softhca still knows what the program has mapped, and shares it beside a thread. */
static void known(void)
{
	const size_t len = 16 * 4096;
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	uint64_t shared = hca_counter("regions_shared");
	pthread_barrier_t end;
	struct ibv_mr *mr;
	pthread_t t;
	void *p;

	/* Else threads keep memory private. */
	if (fd < 0)
		return;
	close(fd);
	pthread_barrier_init(&end, NULL, 2);
	CHECK_EQ(pthread_create(&t, NULL, waits, &end), 0);
	p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(p != MAP_FAILED);
	mr = ibv_reg_mr(s.pd, p, len, IBV_ACCESS_LOCAL_WRITE);
	CHECK(mr);
	if (!SANITIZED)
		CHECK_EQ(hca_counter("regions_shared"), shared + 1);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	CHECK_EQ(munmap(p, len), 0);
	pthread_barrier_wait(&end);
	CHECK_EQ(pthread_join(t, NULL), 0);
}

int main(void)
{
	struct sigaction act = {.sa_sigaction = jump, .sa_flags = SA_SIGINFO | SA_RESTART};
	const char *mmio = getenv("SOFTHCA_MMIO");
	struct ibv_mr *mr;

	test_begin();
	CHECK_EQ(sigaction(SIGUSR1, &act, NULL), 0);
	CHECK(signal(SIGUSR2, plain) == SIG_DFL);
	side_open(&s, 3 * 4096, 64, SIDE_CHANNEL);
	a = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	b = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	connect_pair(&s, a, b);
	for (int i = 0; i < POSTED; i++)
		CHECK_EQ(post_recv1(b, &s, 0, 4096, 64), 0);
	dl_iterate_phdr(find_shim, NULL);
	CHECK(shim_to);
	CHECK(mmio);
	if (!strcmp(mmio, "kick"))
		storm();
	else
		settle();
	handlers();
	own_stack();
	mappings();
	known();
	full_queue(SIGUSR1);
	full_queue(SIGRTMIN);
	/* The daemon waits until no thread uses the key. */
	mr = ibv_reg_mr(s.pd, s.buf, 4096, IBV_ACCESS_LOCAL_WRITE);
	CHECK(mr);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	CHECK_EQ(to_state(a, IBV_QPS_ERR), 0);
	CHECK_EQ(ibv_destroy_qp(a), 0);
	CHECK_EQ(ibv_destroy_qp(b), 0);
	side_close(&s);
	printf("%d calls, %d jumps\n", (int)calls, (int)jumps);
	return 0;
}
