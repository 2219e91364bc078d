// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The helper thread, one in each process. It sleeps on the process's attention word until another
 * process asks for its attention or the earliest deferred call is due. Owns the heap of deferred
 * calls, which heap_lock protects. All its signals are blocked.
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "softhca/device/memory/announce.h"
#include "softhca/device/memory/exec.h"
#include "softhca/device/transport/doorbell.h"
#include "calls.h"
#include "process.h"
#include "procstat.h"
#include "sys.h"

/*
 * Timers that a process may have set: the most for which it has addresses. They are taken at once,
 * because the program may give up its system calls later. Pages come with use.
 */
#define MAX_CALLS (1u << 20)
#define MIN_CALLS (1u << 12)
#define STACK	  (256 * 1024) /* in addition to what the C library keeps of a thread */
/* How often a helper that sleeps looks whether the first thread lives, or any thread. */
#define LOOK_NS	     UINT64_C(1000000000)
#define LAST_LOOK_NS UINT64_C(100000000)

static pthread_mutex_t heap_lock = PTHREAD_MUTEX_INITIALIZER;
static struct sh_calls heap;
static unsigned int room;	/* in the heap, in calls */
static uint64_t sleeping_until; /* how long the helper sleeps; 0 while it is awake */

static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;
static bool running;
static __thread bool starting;
static __thread bool is_helper;
static pthread_t thread;
static int number; /* the kernel's number of the thread; 0 until it runs */
static atomic_bool stop;

/*
 * The helper's stack, where the C library keeps the thread's variables and descriptor, too. It is
 * mapped before the thread exists and stays mapped, so that its place is known at any time. A
 * forked child has it as a copy, for a helper of its own.
 */
static char *stack;
static size_t stack_size;

static uint32_t *watched; /* the attention word of this process */

/*
 * The process's first thread holds this robust mutex for life, so that the end of that thread can
 * be seen without a system call.
 */
static pthread_mutex_t leads;
static bool has_leader, leader_gone;

static uint32_t *attention(void)
{
	return __atomic_load_n(&watched, __ATOMIC_ACQUIRE);
}

static long futex(uint32_t *word, int op, uint32_t val, const struct timespec *timeout)
{
	return sh_sys(
		syscall(SYS_futex, word, op, val, timeout, NULL, (long)FUTEX_BITSET_MATCH_ANY));
}

static void nudge(void)
{
	__atomic_add_fetch(attention(), 1, __ATOMIC_SEQ_CST);
	futex(attention(), FUTEX_WAKE, INT_MAX, NULL);
}

void sh_helper_look(void)
{
	if (__atomic_load_n(&running, __ATOMIC_ACQUIRE))
		nudge();
}

/* ---- the heap; heap_lock is held ---- */

static bool heap_alloc(void)
{
	int err;

	for (unsigned int n = MAX_CALLS; !heap.call && n >= MIN_CALLS; n /= 2) {
		heap.call =
			sh_mmap_unlocked(NULL, n * sizeof(*heap.call), PROT_READ | PROT_WRITE,
					 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0, &err);
		room = n;
	}
	return heap.call;
}

/* ---- the thread ---- */

/*
 * Carries out the calls that are due. Returns the time of the next one, UINT64_MAX if there is
 * none.
 */
static uint64_t run_due(void)
{
	struct sh_dev *dev = sh_process.dev;
	struct sh_call c;

	for (;;) {
		pthread_mutex_lock(&heap_lock);
		if (!heap.used || heap.call[0].deadline > dev->ops->now(dev->host)) {
			sleeping_until = heap.used ? heap.call[0].deadline : UINT64_MAX;
			pthread_mutex_unlock(&heap_lock);
			return sleeping_until;
		}
		c = sh_calls_take(&heap);
		pthread_mutex_unlock(&heap_lock);
		if (sh_enter(dev)) {
			c.fn(dev, c.a, c.b);
			sh_leave(dev);
		}
	}
}

/*
 * Has the first thread ended? It may do so by a direct system call, or because seccomp ends it. The
 * C library does not know of either.
 */
static bool leader_ended(void)
{
	/* This thread keeps the mutex then. */
	if (has_leader && !leader_gone && pthread_mutex_trylock(&leads) == EOWNERDEAD)
		leader_gone = true;
	return leader_gone;
}

/*
 * The links are ., .. and one for each thread. The first thread stays a zombie until the last one
 * ends.
 */
static bool is_last(void)
{
	struct stat st;

	return !sh_stat("/proc/self/task", &st) && st.st_nlink <= 4;
}

/*
 * What a parent that waits for the process is to learn of the first thread's end: status << 8, or
 * the signal by which seccomp has ended the thread. 0 if that cannot be known.
 */
static int leaders_status(void)
{
	char text[1024];
	int err, status = 0;
	const char *at = sh_proc_stat("/proc/self/stat", text, sizeof(text), &err);

	/* The last of 52 fields. What is behind the name begins with a space and the third one. */
	for (int field = 3; at && field <= 52; field++)
		at = strchr(at, ' ') ? strchr(at, ' ') + 1 : NULL;
	while (at && *at >= '0' && *at <= '9')
		status = status * 10 + *at++ - '0';
	return status;
}

/*
 * Ends the process as its last thread would have. The kernel has forgotten the status of that one,
 * so the status of the first thread stands in for it.
 */
static __attribute__((noreturn)) void end_process(void)
{
	int status = leaders_status(), sig = status & 0x7f;
	struct {
		void *handler;
		unsigned long flags, restorer;
		uint64_t mask;
	} none = {0};
	uint64_t set = sig ? ~(UINT64_C(1) << (sig - 1)) : 0;

	if (sig) {
		syscall(SYS_rt_sigaction, sig, &none, NULL, sizeof(set));
		syscall(SYS_rt_sigprocmask, SIG_SETMASK, &set, NULL, sizeof(set));
		syscall(SYS_tgkill, getpid(), (int)syscall(SYS_gettid), sig);
	}
	for (;;)
		syscall(SYS_exit, status >> 8 & 0xff);
}

/*
 * Sleeps until the word is not `seen` any more, or until a deadline, UINT64_MAX if there is none.
 */
static void rest(uint32_t *word, uint32_t seen, uint64_t until)
{
	uint64_t look;
	int err;

	do {
		struct timespec ts;
		bool ended = leader_ended();

		if (ended && is_last())
			end_process();
		look = sh_now() + (ended ? LAST_LOOK_NS : LOOK_NS);
		if (look > until)
			look = until;
		ts.tv_sec = (time_t)(look / 1000000000);
		ts.tv_nsec = (long)(look % 1000000000);
		/*
		 * FUTEX_WAIT_BITSET takes an absolute deadline. If the word has changed since
		 * `seen`, it returns at once.
		 */
		err = (int)futex(word, FUTEX_WAIT_BITSET, seen, &ts);
	} while (err == -ETIMEDOUT && look != until);
}

static void *helper_main(void *arg)
{
	struct sh_dev *dev = arg;
	uint32_t *word, seen;

	is_helper = true;
	__atomic_store_n(&number, (int)syscall(SYS_gettid), __ATOMIC_RELEASE);
	prctl(PR_SET_NAME, "softhca", 0, 0, 0);
	for (;;) {
		uint64_t until;

		word = attention();
		seen = __atomic_load_n(word, __ATOMIC_SEQ_CST);
		/*
		 * The value of one word says nothing of another one: sh_helper_watch() names the
		 * new word before it changes the old.
		 */
		if (word != attention())
			continue;
		/* Read after the word: sh_process_stop() sets stop, then changes the word. */
		if (atomic_load(&stop))
			break;
		if (sh_enter(dev)) {
			sh_attention(dev);
			sh_leave(dev);
		}
		/* Pairs with tell_end(). */
		if (__atomic_load_n(&sh_proc(dev, dev->proc)->ended, __ATOMIC_ACQUIRE))
			sh_event_reset();
		until = run_due();
		sh_wait_begin(dev, SH_WAITS_HELPER, until, seen);
		rest(word, seen, until);
		__atomic_store_n(&sleeping_until, 0, __ATOMIC_RELAXED);
		sh_wait_end(dev);
	}
	return NULL;
}

static void (*tls_info)(size_t *, size_t *);
static unsigned int *thread_count; /* NULL: the C library does not show it */

void sh_helper_prepare(void)
{
	tls_info = (void (*)(size_t *, size_t *))dlsym(RTLD_DEFAULT, "_dl_get_tls_static_info");
	thread_count = dlsym(RTLD_DEFAULT, "__nptl_nthreads");
	sh_process_leads();
}

void sh_process_leads(void)
{
	pthread_mutexattr_t attr;

	has_leader = leader_gone = false;
	if ((int)syscall(SYS_gettid) != getpid() || pthread_mutexattr_init(&attr))
		return;
	if (!pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST) &&
	    !pthread_mutex_init(&leads, &attr))
		has_leader = !pthread_mutex_lock(&leads);
	pthread_mutexattr_destroy(&attr);
}

size_t sh_thread_size(void)
{
	size_t size = 1 << 20, align;

	sh_process_prepare();
	if (tls_info)
		tls_info(&size, &align);
	return size;
}

/* Maps a guard page with the stack above it. */
static bool map_stack(void)
{
	size_t size = SH_FIRST_PAGE +
		      ((STACK + sh_thread_size() + SH_FIRST_PAGE - 1) & ~(SH_FIRST_PAGE - 1));
	char *mem;

	if (stack)
		return true;
	mem = sh_pages(size);
	if (!mem)
		return false;
	if (sh_sys(syscall(SYS_mprotect, mem, SH_FIRST_PAGE, (long)PROT_NONE)) < 0) {
		sh_munmap(mem, size);
		return false;
	}
	stack_size = size;
	__atomic_store_n(&stack, mem, __ATOMIC_RELEASE);
	return true;
}

/*
 * When the last thread of the program ends, by pthread_exit() or its function's return, the process
 * ends. The C library finds that out by this count, which the helper must not be in.
 */
static void count_threads(unsigned int by)
{
	if (thread_count)
		__atomic_add_fetch(thread_count, by, __ATOMIC_SEQ_CST);
}

static int create(void)
{
	pthread_attr_t attr;
	int err;

	bool there;

	if (!map_stack())
		return ENOMEM;
	pthread_mutex_lock(&heap_lock);
	there = heap_alloc();
	pthread_mutex_unlock(&heap_lock);
	if (!there)
		return ENOMEM;
	pthread_attr_init(&attr);
	err = pthread_attr_setstack(&attr, stack + SH_FIRST_PAGE, stack_size - SH_FIRST_PAGE);
	if (!err) {
		starting = true;
		err = pthread_create(&thread, &attr, helper_main, sh_process.dev);
		starting = false;
	}
	if (!err)
		count_threads(-1u);
	pthread_attr_destroy(&attr);
	return err;
}

int sh_process_helper(void)
{
	/*
	 * All but the C library's own, 32 and 33. setuid() and its like have each thread of the
	 * process change its user, by 33, and wait for that.
	 */
	uint64_t all = ~(UINT64_C(3) << 31), old;
	int err = 0;

	/*
	 * The helper calls this for each timer that it sets. Before its creator has noted that it
	 * runs, it would wait here, and a thread that stops it again would wait for it with the
	 * lock held.
	 */
	if (is_helper || __atomic_load_n(&running, __ATOMIC_ACQUIRE))
		return 0;
	pthread_mutex_lock(&start_lock);
	if (!running) {
		/*
		 * The thread inherits the mask. The system call is direct, because in a client the
		 * shim stands before the library's function.
		 */
		syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &old, sizeof(all));
		atomic_store(&stop, false);
		err = create();
		syscall(SYS_rt_sigprocmask, SIG_SETMASK, &old, NULL, sizeof(old));
		__atomic_store_n(&running, !err, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&start_lock);
	return -err;
}

bool sh_process_helper_starting(void)
{
	return starting;
}

int sh_process_threads(void)
{
	return __atomic_load_n(&running, __ATOMIC_ACQUIRE);
}

int sh_process_helper_thread(void)
{
	return __atomic_load_n(&number, __ATOMIC_ACQUIRE);
}

bool sh_process_helper_memory(uint64_t *low, uint64_t *high)
{
	*low = (uintptr_t)__atomic_load_n(&stack, __ATOMIC_ACQUIRE);
	*high = *low + stack_size;
	return *low;
}

void sh_process_stop(void)
{
	pthread_mutex_lock(&start_lock);
	if (running) {
		count_threads(1);
		atomic_store(&stop, true);
		nudge();
		pthread_join(thread, NULL);
		number = 0;
		running = false;
	}
	pthread_mutex_unlock(&start_lock);
}

void sh_process_forget_calls(void)
{
	pthread_mutex_lock(&heap_lock);
	heap.used = 0;
	pthread_mutex_unlock(&heap_lock);
}

void sh_helper_watch(void)
{
	uint32_t *old = attention();

	__atomic_store_n(&watched, &sh_proc(sh_process.dev, sh_process.dev->proc)->attention,
			 __ATOMIC_RELEASE);
	/*
	 * The process has a new connection. The thread goes on, but it sleeps on the word of the
	 * old one.
	 */
	if (old && running) {
		__atomic_add_fetch(old, 1, __ATOMIC_SEQ_CST);
		futex(old, FUTEX_WAKE, INT_MAX, NULL);
	}
}

void sh_helper_forked(void)
{
	heap_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	start_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	heap.used = 0;
	sleeping_until = 0;
	number = 0;
	running = false;
}

/* Once in the life of a process. The message does not blame device memory, which is in order. */
static void say_full(void)
{
	static const char line[] =
		"softhca: there is no room for another timer of this process: it has set a "
		"million, or a limit of its memory "
		"was too low when it began (ulimit -v unlimited, ulimit -d unlimited): "
		"some time-outs do not come, and delayed packets are lost; use fewer QPs, or end "
		"the "
		"delay (softhca fault NAME delay off)\n";
	static atomic_bool said;

	if (!atomic_exchange(&said, true))
		sh_write(STDERR_FILENO, line, sizeof(line) - 1);
}

int sh_host_defer(void *host, uint64_t deadline_ns, void (*fn)(struct sh_dev *, uint64_t, uint64_t),
		  uint64_t a, uint64_t b, bool once)
{
	const struct sh_call call = {.deadline = deadline_ns, .fn = fn, .a = a, .b = b};
	bool wake = false, full = false;

	(void)host;
	pthread_mutex_lock(&heap_lock);
	if (once && sh_calls_has(&heap, &call)) {
		/* That one has not begun: the helper thread takes it out first. */
	} else if (heap_alloc() && heap.used < room) {
		sh_calls_put(&heap, &call);
		/*
		 * A helper that is awake looks at the heap, under the lock, before it sleeps again.
		 */
		wake = deadline_ns < __atomic_load_n(&sleeping_until, __ATOMIC_RELAXED);
	} else {
		full = true;
	}
	pthread_mutex_unlock(&heap_lock);
	if (full)
		say_full();
	if (!__atomic_load_n(&running, __ATOMIC_ACQUIRE))
		sh_process_helper();
	else if (wake)
		__atomic_add_fetch(attention(), 1, __ATOMIC_SEQ_CST);
	else
		return full ? -ENOMEM : 0;
	return full ? -ENOMEM : 1;
}

void sh_host_wake(void *host, uint32_t proc)
{
	struct sh_proc *p = sh_proc(sh_process.dev, proc);

	(void)host;
	/* Wakes all sleepers: in the daemon two threads sleep on the word. */
	if (p)
		futex(&p->attention, FUTEX_WAKE, INT_MAX, NULL);
}

void sh_host_rouse(void *host, uint32_t proc)
{
	struct sh_proc *p = sh_proc(sh_process.dev, proc);

	(void)host;
	if (p)
		futex(&p->roused, FUTEX_WAKE, INT_MAX, NULL);
}
