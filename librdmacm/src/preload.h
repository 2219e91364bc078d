// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* What the files of librspreload.so share: preload*.c. The program gets numbers of its own for
 * rsockets: a descriptor of /dev/null each, so that the kernel gives the number to no other
 * file. */
#ifndef PRELOAD_H
#define PRELOAD_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#define PUBLIC __attribute__((visibility("default")))

/* Rsockets have numbers below. */
enum { PL_NUMBERS = 1 << 16 };

/* In place of the rsocket of a parent: no call takes it. */
enum { PL_OF_PARENT = INT_MAX };

/* An option of sockets that the program has set. */
struct pl_option {
	socklen_t len;
	uint8_t value[16]; /* as much as any has that rsockets know */
};
enum { PL_OPTIONS = 13 };

/*
 * One rsocket; dup2() makes several numbers of it. The memory may be used again, but is never
 * freed.
 */
struct pl_socket {
	struct pl_socket *next; /* of those that are not in use */
	int rs;
	pid_t pid;
	int domain, type, protocol;
	unsigned int refs;
	int error; /* met by a call that had already done something: for the next one */
	/* What a plain socket in its place has of it: */
	struct pl_option options[PL_OPTIONS];
	struct sockaddr_storage bound; /* that bind() has given to it; of length 0: none */
	socklen_t bound_len;
};

/* ---- Numbers (preload_fd.c) ---- */

/* The rsocket behind a number, or -1: the number is the system's. */
int pl_get(int fd);
struct pl_socket *pl_find(int fd);
/* Does this process share the memory of another one, which has made the numbers, until it executes
 * a program, as after vfork()? Then it may not change them. */
bool pl_is_borrowed(const struct pl_socket *socket);
/*
 * FD_CLOEXEC as the program has set it, which fcntl() tells. A new number has it in any case: what
 * the program executes gets no rsocket.
 */
bool pl_cloexec(int fd);
void pl_set_cloexec(int fd, bool wanted);
/* Whether this is a child of a process that had rsockets. */
bool pl_is_child(void);
/* A new number for the socket; -1 and errno. */
int pl_add(struct pl_socket *socket);
/*
 * Gives this number, which the caller has made, to the socket too, without FD_CLOEXEC. One that is
 * too high is closed: -1 and EMFILE.
 */
int pl_share(int fd, struct pl_socket *socket);
/* Takes the number away. The socket, if this was its last number; else NULL. */
struct pl_socket *pl_remove(int fd);
/* A new number for a new rsocket, which is closed if there is none: -1 and errno. */
int pl_make(int rs, int domain, int type, int protocol);
/* Takes the number away, and closes its rsocket if this was the last one. */
int pl_forget(int fd);

/*
 * The next number from there on that librdmacm has for itself in this process, or -1. To the
 * program it is no open file: no call of the program's takes it away. A child has a copy of it,
 * with which it does as it likes.
 */
int pl_next_kept(int from);

/*
 * Makes this number, an open file of the program, the new rsocket's; that is closed if it cannot
 * be: -1. The number's FD_CLOEXEC stays.
 */
int pl_make_at(int fd, int rs);

/* ---- Sockets that become rsockets when they are used (preload_fork.c) ---- */

/* Whether the program asks for that. */
bool pl_forks(void);
int pl_fork_socket(int domain, int type, int protocol);
/* The calls of these names have succeeded. */
void pl_fork_listens(int fd);
void pl_fork_accepted(int listener, int fd);
void pl_fork_connects(int fd);
/* The number is no more what it was. */
void pl_fork_forget(int fd);
/* Before data pass: the number may be an rsocket's from then on. Waits for the peer. */
void pl_fork_begin(int fd);

/* ---- Which sockets (preload_config.c) ---- */

bool pl_wanted(int domain, int type, int protocol);
/* Options for each new rsocket, from the environment. */
void pl_set_options(int rs);

/* ---- The calls behind (preload.c) ---- */

/* The call of this name that the library behind has. Looked up at each use until it is known. */
#define PL_REAL(name)                                                                              \
	({                                                                                         \
		static void *known_;                                                               \
		(__typeof__(name) *)pl_next(&known_, #name);                                       \
	})
void *pl_next(void **known, const char *name);

/* Of a thread that librdmacm works for */
extern __thread unsigned int pl_inside;
/* What librdmacm calls by names of this library is not the program's. */
#define IN(call)                                                                                   \
	({                                                                                         \
		__typeof__(call) ret_;                                                             \
		pl_inside++;                                                                       \
		ret_ = (call);                                                                     \
		pl_inside--;                                                                       \
		ret_;                                                                              \
	})

/* ---- Options (preload_option.c) ---- */

/* The program has set this option of the socket. */
void pl_keep_option(struct pl_socket *known, int level, int name, const void *value, socklen_t len);
/*
 * Gives the plain socket those of the old one. Both kinds know these options; one that this kernel
 * refuses is left out.
 */
void pl_give_options(const struct pl_socket *old, int fd);
/*
 * Gives the rsocket what the program has set of the socket; buffers' sizes have been decided by
 * then.
 */
void pl_take_options(int fd, int rs);

/* ---- Data (preload_data.c) ---- */

/* pl_find(), for calls by which data pass. */
static inline struct pl_socket *pl_use(int fd)
{
	struct pl_socket *known = pl_find(fd);

	if (known || !pl_forks())
		return known;
	pl_fork_begin(fd);
	return pl_find(fd);
}

/*
 * True, with errno: there is an error for this call, which was made on rs. No call gets it a second
 * time.
 */
bool pl_take_error(struct pl_socket *known, int rs);

#endif
