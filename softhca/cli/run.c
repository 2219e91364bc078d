// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * `softhca run`: prepares the instance and the environment. In everything else neither the command
 * nor its caller can tell this from running the command directly. Waits with signals blocked and
 * takes them one by one, so there are no handlers.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "softhca.h"
#include "softhca/host/client.h"
#include "softhca/host/paths.h"
#include "softhca/host/runs.h"
#include "softhca/host/status.h"
#include "trace.h"

#define SHIM "libsofthca-shim.so"

/* ---- environment ---- */

bool find_shim(char path[PATH_MAX])
{
	static const char *const places[] = {"/../shim/.libs/" SHIM, "/../../shim/.libs/" SHIM,
					     "/../lib/softhca/" SHIM};
	char self[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	if (len > 0) {
		self[len] = '\0';
		slash = strrchr(self, '/');
		*slash = '\0';
		for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
			char candidate[PATH_MAX * 2];

			snprintf(candidate, sizeof(candidate), "%s%s", self, places[i]);
			if (realpath(candidate, path))
				return true;
		}
	}
	return realpath(SHIM_DIR "/" SHIM, path) != NULL;
}

int prepend(const char *name, const char *first, char separator)
{
	const char *rest = getenv(name);
	char *value;
	int err;

	if (!rest || !*rest)
		return setenv(name, first, 1);
	if (asprintf(&value, "%s%c%s", first, separator, rest) < 0)
		return -1;
	err = setenv(name, value, 1);
	free(value);
	return err;
}

/*
 * A relative SOFTHCA_DIR means this process's directory, even in processes that have gone to
 * another.
 */
static int name_place(void)
{
	const char *dir = getenv("SOFTHCA_DIR");
	char *full;
	int err = 0;

	if (!dir || !*dir || *dir == '/')
		return 0;
	full = realpath(dir, NULL);
	if (full)
		err = setenv("SOFTHCA_DIR", full, 1);
	free(full);
	return err;
}

/*
 * tag: this run's, or an empty one if there is only one host. The tag of a run further up says
 * nothing here.
 */
static int set_environment(const char *dir, const struct run_options *opt, const char *tag,
			   const char *command)
{
	char shim[PATH_MAX], host[16];
	const char *asan = getenv("ASAN_OPTIONS");
	char *value = NULL;

	if (!find_shim(shim)) {
		complain("%s is neither where it was installed (%s) nor beside this program: "
			 "install softhca again",
			 SHIM, SHIM_DIR);
		return -1;
	}
	if (choose_library(opt->library, command, shim))
		return -1;
	snprintf(host, sizeof(host), "%u", opt->host);
	if (prepend("LD_PRELOAD", shim, ':') || setenv("SOFTHCA_INSTANCE", dir, 1) ||
	    setenv("SOFTHCA_HOST", host, 1) ||
	    (*tag ? setenv("SOFTHCA_RUN", tag, 1) : unsetenv("SOFTHCA_RUN")) ||
	    (opt->mmio && setenv("SOFTHCA_MMIO", opt->mmio, 1)) || name_place())
		goto failed;
	/*
	 * A program built with ASan refuses to start if anything is loaded before ASan's runtime.
	 * The last word wins.
	 */
	if (asprintf(&value, "%s%sverify_asan_link_order=0", asan ? asan : "",
		     asan && *asan ? ":" : "") < 0 ||
	    setenv("ASAN_OPTIONS", value, 1))
		goto failed;
	free(value);
	return 0;
failed:
	complain("cannot set the environment of the command: %s", strerror(errno));
	return -1;
}

/* ---- the command ---- */

static struct sigaction children; /* what this program was started with for SIGCHLD */

/* Where it is ignored no child can be waited for; the command has it as it was. */
static void hear_of_children(void)
{
	struct sigaction act = {.sa_handler = SIG_DFL};

	sigaction(SIGCHLD, &act, &children);
}

static void exec_command(char **argv, const sigset_t *mask, int report, pid_t run)
{
	int err;

	/*
	 * A user who kills this program outright means the command: env and nice, for instance,
	 * become the command.
	 */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != run)
		_exit(EXIT_SELF);
	sigprocmask(SIG_SETMASK, mask, NULL);
	sigaction(SIGCHLD, &children, NULL);
	execvp(argv[0], argv);
	err = errno;
	if (write(report, &err, sizeof(err)) != sizeof(err))
		_exit(EXIT_SELF);
	_exit(err == ENOENT ? 127 : 126);
}

/*
 * Returns the command's process number, or -1 after a message. *failed: the errno of the exec, else
 * 0.
 */
static pid_t spawn(char **argv, const sigset_t *mask, int *failed)
{
	pid_t run = getpid(), pid;
	int report[2];
	ssize_t got;

	*failed = 0;
	if (pipe2(report, O_CLOEXEC) < 0) {
		complain("cannot start %s: cannot make a pipe: %s", argv[0], strerror(errno));
		return -1;
	}
	pid = fork();
	if (pid == 0)
		exec_command(argv, mask, report[1], run);
	close(report[1]);
	if (pid < 0) {
		complain("cannot start %s: %s", argv[0], strerror(errno));
	} else {
		do
			got = read(report[0], failed, sizeof(*failed));
		while (got < 0 && errno == EINTR);
		if (got != sizeof(*failed))
			*failed = 0;
	}
	close(report[0]);
	return pid;
}

/* ---- waiting ---- */

static const int forwarded[] = {SIGHUP,	 SIGINT,  SIGQUIT, SIGTERM, SIGUSR1,
				SIGUSR2, SIGALRM, SIGCONT, SIGTSTP, SIGWINCH};

/* The process of go_on_with(), also when it has ended: its signal may still be there. */
static pid_t watcher;

/*
 * The terminal sends its signals to the command as well, since that is in the same process group. A
 * signal that is sent to this process alone is passed on, with its value; not what the watcher
 * sends.
 */
static void pass_on(pid_t pid, const siginfo_t *info)
{
	if (info->si_code == SI_KERNEL || (info->si_code == SI_QUEUE && info->si_pid == watcher))
		return;
	if (info->si_code == SI_QUEUE)
		sigqueue(pid, info->si_signo, info->si_value);
	else
		kill(pid, info->si_signo);
}

/*
 * Does a thread of the process run? If its first thread has ended, the process itself counts as a
 * zombie, while others are stopped.
 */
static bool goes_on(pid_t pid)
{
	struct sh_status_field state = {.name = "State:"};
	const struct dirent *entry;
	bool stopped = false, any = false;
	char path[64];
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	tasks = opendir(path);
	if (!tasks)
		return false;
	while ((entry = readdir(tasks)) && !stopped) {
		char file[sizeof(path) + sizeof(entry->d_name) + 8];

		snprintf(file, sizeof(file), "%s/%s/status", path, entry->d_name);
		state.value[0] = 0;
		if (entry->d_name[0] == '.' || sh_status_read(file, &state, 1) || !state.value[0])
			continue;
		any = true;
		stopped = state.value[0] == 'T' || state.value[0] == 't';
	}
	closedir(tasks);
	return any && !stopped;
}

/*
 * A process of its own, since a stopped one sees nothing: continues this program as soon as the
 * command goes on, by whatever means that was continued. It has its own process group, so that the
 * terminal does not stop it.
 */
static __attribute__((noreturn)) void go_on_with(pid_t pid, pid_t run)
{
	const struct timespec pause = {.tv_nsec = 20000000};

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (getppid() == run) {
		if (goes_on(pid))
			sigqueue(run, SIGCONT, (union sigval){0});
		nanosleep(&pause, NULL);
	}
	_exit(0);
}

/*
 * Stops when the command has stopped, so that the shell sees its job stopped. When either is
 * continued, the other one goes on, too.
 */
static void stop_along(pid_t pid)
{
	pid_t run = getpid();

	watcher = fork();
	if (watcher == 0)
		go_on_with(pid, run);
	raise(SIGSTOP);
	if (watcher > 0) {
		kill(watcher, SIGKILL);
		waitpid(watcher, NULL, 0);
	}
}

/*
 * Reaps what has ended, which includes orphans of the command. True when the command has ended,
 * with its status.
 */
static bool reap(pid_t pid, int *status)
{
	bool ended = false;
	int one;
	pid_t who;

	while ((who = waitpid(-1, &one, WNOHANG | WUNTRACED)) > 0) {
		if (who != pid)
			continue;
		if (WIFSTOPPED(one)) {
			stop_along(pid);
		} else {
			*status = one;
			ended = true;
		}
	}
	return ended;
}

static int wait_for(pid_t pid, const sigset_t *signals)
{
	siginfo_t info;
	int status = 0;

	while (!reap(pid, &status)) {
		if (sigwaitinfo(signals, &info) < 0)
			continue;
		if (info.si_signo != SIGCHLD)
			pass_on(pid, &info);
	}
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Has the command left processes in the background? They are children of this process now. */
static bool left_behind(void)
{
	pid_t who;

	do
		who = waitpid(-1, NULL, WNOHANG);
	while (who > 0);
	return who == 0;
}

/* No process uses the instance any more, so it is gone when this program returns. */
static void end_own(const char *dir)
{
	struct sh_hello_reply hello;
	int control = greet(dir, &hello);

	if (control < 0)
		return;
	(void)end_instance(control, dir);
	close(control);
}

/* ---- what went over the HCAs ---- */

static bool counted(const struct run_options *opt)
{
	return opt->stats || opt->require_traffic;
}

/* Prints what was asked for, and returns the exit status of the run. */
static int conclude(const struct run_options *opt, const char *dir, const struct stats *before,
		    int status)
{
	struct stats *after = stats_take(dir);
	bool traffic;

	if (!after)
		return opt->require_traffic && !status ? EXIT_SELF : status;
	traffic = stats_traffic(before, after);
	if (opt->stats)
		stats_print(before, after);
	if (!traffic && (opt->stats || !status))
		complain(
			"nothing went over an HCA: no process sent a packet.%s",
			status ? ""
			       : " The program may have chosen another transport, as MPI libraries "
				 "do by themselves: tell it to use the HCA");
	stats_free(after);
	return opt->require_traffic && !traffic && !status ? EXIT_SELF : status;
}

/* ---- the verb ---- */

/* A process in another PID namespace may have the same number and the same place. */
static bool free_name(char dir[PATH_MAX], const char *place)
{
	for (int i = 0; i < 1000; i++) {
		char more[16] = "";
		struct stat st;

		if (i)
			snprintf(more, sizeof(more), ".%d", i);
		if (snprintf(dir, PATH_MAX, "%s/run-%ld%s", place, (long)getpid(), more) >=
		    PATH_MAX - 64)
			return false;
		if (lstat(dir, &st) < 0)
			return true;
	}
	return false;
}

/*
 * Without --host, a SOFTHCA_HOST that was set by hand outside of any instance chooses the host.
 * Inside this instance the variable says where the caller is, and the default stays 0. In both
 * cases it must name a host. Returns 0, or EXIT_SELF after a message.
 */
static int default_host(struct run_options *opt, const char *dir, unsigned int hosts)
{
	const char *text = getenv("SOFTHCA_HOST"), *inside = getenv("SOFTHCA_INSTANCE");
	char own[PATH_MAX];
	unsigned long host;
	char *end;

	if (opt->host_given || !text || !*text)
		return 0;
	if (inside && *inside && (sh_instance_dir(own, inside) || strcmp(own, dir)))
		return 0;
	errno = 0;
	host = strtoul(text, &end, 10);
	if (errno || *end || *text < '0' || *text > '9' || host >= hosts) {
		complain("SOFTHCA_HOST is \"%s\", and the instance has %u host%s, counted from 0: "
			 "set it to one of them, or "
			 "unset it",
			 text, hosts, hosts == 1 ? "" : "s");
		return EXIT_SELF;
	}
	if (!inside || !*inside)
		opt->host = (unsigned int)host;
	return 0;
}

/*
 * Makes or finds the instance to run in, and gives its number of hosts. Returns 0, or EXIT_SELF
 * after a message.
 */
static int get_instance(struct run_options *opt, char dir[PATH_MAX], unsigned int *hosts)
{
	struct sh_hello_reply hello;
	char place[PATH_MAX];
	int control, err;

	if (!opt->instance) {
		if (prepare_place(place))
			return EXIT_SELF;
		*hosts = opt->device.hosts;
		do {
			if (!free_name(dir, place)) {
				complain("%s is too long a path for an instance, or every name "
					 "there is taken; set "
					 "SOFTHCA_DIR to another directory",
					 place);
				return EXIT_SELF;
			}
			if (default_host(opt, dir, *hosts))
				return EXIT_SELF;
			err = launch_daemon(dir, opt, true);
		} while (err == -EEXIST);
		return err ? EXIT_SELF : 0;
	}
	control = reach(opt->instance, dir, &hello);
	if (control < 0)
		return EXIT_SELF;
	close(control);
	if (opt->host >= hello.hosts) {
		complain("instance \"%s\" has %u host%s, counted from 0: there is no host %u",
			 opt->instance, hello.hosts, hello.hosts == 1 ? "" : "s", opt->host);
		return EXIT_SELF;
	}
	*hosts = hello.hosts;
	return default_host(opt, dir, *hosts);
}

int run_command(int argc, char **argv)
{
	struct run_options opt;
	struct stats *before = NULL;
	struct trace *trace = NULL;
	sigset_t signals, mask;
	char dir[PATH_MAX], tag[SH_RUN_TAG] = "";
	unsigned int hosts;
	bool left;
	int word, failed, status, err;
	pid_t pid;

	word = parse_run_options(argc, argv, false, &opt);
	if (word < 0)
		return word == -2 ? 0 : EXIT_SELF;
	if (word >= argc) {
		complain("softhca %s needs a command: softhca %s [OPTIONS] -- COMMAND", argv[0],
			 argv[0]);
		return EXIT_SELF;
	}
	hear_of_children();
	if (get_instance(&opt, dir, &hosts))
		return EXIT_SELF;

	err = take_lease(dir);
	if (err) {
		complain("cannot use the instance in %s: locking its file \"lease\" failed (%s); "
			 "start it again if it has "
			 "ended",
			 dir, strerror(-err));
		return EXIT_SELF;
	}
	err = hosts > 1 ? sh_run_record(dir, opt.host, tag) : 0;
	if (err)
		complain("cannot write into %s on which host this command runs: %s", dir,
			 strerror(-err));
	if (!err && counted(&opt)) {
		before = stats_take(dir);
		err = before ? 0 : -EIO;
	}
	if (err || set_environment(dir, &opt, tag, argv[word]) ||
	    (opt.trace && !(trace = trace_begin(&opt, dir)))) {
		stats_free(before);
		if (*tag)
			sh_run_forget(dir, tag);
		if (!opt.instance)
			end_own(dir);
		return EXIT_SELF;
	}
	tell_unreached(argv[word]);
	/*
	 * Orphans of the command become children of this process, which tells whether any are left.
	 */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	for (size_t i = 0; i < sizeof(forwarded) / sizeof(forwarded[0]); i++)
		sigaddset(&signals, forwarded[i]);
	sigprocmask(SIG_BLOCK, &signals, &mask);

	pid = spawn(argv + word, &mask, &failed);
	if (pid < 0)
		status = EXIT_SELF;
	else
		status = wait_for(pid, &signals);
	if (failed)
		complain("cannot run %s: %s", argv[word], strerror(failed));
	if (pid >= 0 && !failed && counted(&opt))
		status = conclude(&opt, dir, before, status);
	stats_free(before);
	if (trace_end(trace, pid >= 0 && !failed) && !status)
		status = EXIT_SELF;
	/*
	 * Processes that are left behind still descend from this run and need its record. The
	 * instance ends with its last process.
	 */
	/*
	 * When process 1 of a container ends, the kernel ends all other processes in it. The daemon
	 * is among its children there.
	 */
	left = left_behind() && getpid() != 1;
	if (!left && *tag)
		sh_run_forget(dir, tag);
	if (!left && !opt.instance)
		end_own(dir);
	return status;
}

int verb_run(int argc, char **argv)
{
	return run_command(argc, argv);
}
