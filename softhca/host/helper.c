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
#include "process.h"
#include "sys.h"

#define MAX_CALLS (1u << 20)   /* address space only: pages come with use */
#define STACK	  (256 * 1024) /* in addition to what the C library keeps of a thread */

struct call {
	uint64_t deadline;
	void (*fn)(struct sh_dev *, uint64_t, uint64_t);
	uint64_t a, b;
};

static pthread_mutex_t heap_lock = PTHREAD_MUTEX_INITIALIZER;
static struct call *heap; /* min-heap by deadline */
static unsigned int ncalls;
static uint64_t sleeping_until; /* how long the helper sleeps; 0 while it is awake */

static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;
static bool running;
static __thread bool starting;
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

static void sift_up(unsigned int i)
{
	struct call c = heap[i];

	while (i && heap[(i - 1) / 2].deadline > c.deadline) {
		heap[i] = heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	heap[i] = c;
}

static void sift_down(void)
{
	struct call c = heap[ncalls];
	unsigned int i = 0;

	for (;;) {
		unsigned int child = 2 * i + 1;

		if (child >= ncalls)
			break;
		if (child + 1 < ncalls && heap[child + 1].deadline < heap[child].deadline)
			child++;
		if (heap[child].deadline >= c.deadline)
			break;
		heap[i] = heap[child];
		i = child;
	}
	heap[i] = c;
}

static bool heap_alloc(void)
{
	void *p;
	int err;

	if (heap)
		return true;
	p = sh_mmap_unlocked(NULL, MAX_CALLS * sizeof(*heap), PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0, &err);
	if (!p)
		return false;
	heap = p;
	return true;
}

/* ---- the thread ---- */

/*
 * Carries out the calls that are due. Returns the time of the next one, UINT64_MAX if there is
 * none.
 */
static uint64_t run_due(void)
{
	struct sh_dev *dev = sh_process.dev;
	struct call c;

	for (;;) {
		pthread_mutex_lock(&heap_lock);
		if (!ncalls || heap[0].deadline > dev->ops->now(dev->host)) {
			sleeping_until = ncalls ? heap[0].deadline : UINT64_MAX;
			pthread_mutex_unlock(&heap_lock);
			return sleeping_until;
		}
		c = heap[0];
		ncalls--;
		if (ncalls)
			sift_down();
		pthread_mutex_unlock(&heap_lock);
		if (sh_enter(dev)) {
			c.fn(dev, c.a, c.b);
			sh_leave(dev);
		}
	}
}

static void *helper_main(void *arg)
{
	struct sh_dev *dev = arg;
	uint32_t *word, seen;

	__atomic_store_n(&number, (int)syscall(SYS_gettid), __ATOMIC_RELEASE);
	prctl(PR_SET_NAME, "softhca", 0, 0, 0);
	for (;;) {
		struct timespec ts;
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
		until = run_due();
		ts.tv_sec = (time_t)(until / 1000000000);
		ts.tv_nsec = (long)(until % 1000000000);
		sh_wait_begin(dev, SH_WAITS_HELPER, until, seen);
		/*
		 * FUTEX_WAIT_BITSET takes an absolute deadline. If the word has changed since
		 * `seen`, it returns at once.
		 */
		futex(word, FUTEX_WAIT_BITSET, seen, until == UINT64_MAX ? NULL : &ts);
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
 * The process ends with the last thread of the program, by pthread_exit() or its function's return.
 * The C library tells by this count, which the helper must not be in.
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

	if (!map_stack())
		return EAGAIN;
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
	uint64_t all = ~UINT64_C(0), old;
	int err = 0;

	if (__atomic_load_n(&running, __ATOMIC_ACQUIRE))
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
	ncalls = 0;
	sleeping_until = 0;
	number = 0;
	running = false;
}

/* Once in the life of a process. The message does not blame device memory, which is in order. */
static void say_full(void)
{
	static const char line[] =
		"softhca: there is no room for another timer of this process: it has set a "
		"million, or the limit "
		"of addresses is too low (ulimit -v unlimited): "
		"time-outs come late, and delayed packets are lost; use fewer QPs, or end the "
		"delay (softhca fault NAME delay off)\n";
	static atomic_bool said;

	if (!atomic_exchange(&said, true))
		sh_write(STDERR_FILENO, line, sizeof(line) - 1);
}

int sh_host_defer(void *host, uint64_t deadline_ns, void (*fn)(struct sh_dev *, uint64_t, uint64_t),
		  uint64_t a, uint64_t b)
{
	bool wake = false, full = false;

	(void)host;
	pthread_mutex_lock(&heap_lock);
	if (heap_alloc() && ncalls < MAX_CALLS) {
		heap[ncalls] = (struct call){.deadline = deadline_ns, .fn = fn, .a = a, .b = b};
		sift_up(ncalls++);
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
