/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the XRC programs of this folder share to be ranks on emulated hosts, as a launcher makes
 * them. A program calls ranks_main(). In the process that the test starts, this is the launcher: it
 * starts one node process on each host
 * (`softhca run --instance ... --host K`), which forks the ranks before any verb. Every rank runs
 * the program's function and ends with status 0.
 *
 * All of them map one file, the board: who is where, words for the program, mail between ranks
 * (what an MPI library has its launcher's network for), a barrier. Every wait is bounded: a rank
 * that hangs is ended by its own alarm, and when one rank has failed the others end, too.
 */
#ifndef XRC_RANKS_H
#define XRC_RANKS_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#define MAX_RANKS    16
#define MAX_QUEUES   3 /* XRC SRQs of a rank */
#define RANK_SECONDS 50
#define MAIL	     64 /* notes on the way from one rank to another */

#define CHECK(cond)                                                                                \
	do {                                                                                       \
		if (!(cond))                                                                       \
			check_failed(__FILE__, __LINE__, #cond, errno);                            \
	} while (0)
#define CHECK_EQ(a, b) check_equal(__FILE__, __LINE__, #a, #b, (long long)(a), (long long)(b))

void check_failed(const char *file, int line, const char *what, int err) __attribute__((noreturn));
void check_equal(const char *file, int line, const char *a, const char *b, long long va,
		 long long vb);

/* What a rank tells another one to get connected. */
struct note {
	uint32_t kind;	     /* the program's */
	uint32_t from, life; /* the sender, and how many held its place before */
	uint32_t to_life;    /* of the one that it is for: a successor does not get it */
	uint32_t serial;     /* of the connection: an answer has that of its question */
	uint32_t lid, qpn, psn;
	uint32_t srqn[MAX_QUEUES];
};

struct mailbox {
	uint32_t head, tail; /* written by the reader; by the sender */
	struct note note[MAIL];
};

struct board {
	uint32_t failed;
	uint32_t arrived, generation; /* of meet() */
	uint32_t show, shown;	      /* pictures asked for; taken */
	struct place {
		pid_t pid;
		uint32_t life;	 /* ranks that died in this place */
		uint32_t doomed; /* it is to be killed, and then: */
		uint32_t again;	 /* another one takes its place */
		uint32_t dead;	 /* the same, counted when the successor has been started */
		uint32_t ended;	 /* with status 0 */
		uint32_t srqn[MAX_QUEUES]; /* the SRQs of the rank that was here last */
	} rank[MAX_RANKS];
	uint64_t word[1024];			   /* the program's */
	struct mailbox mail[MAX_RANKS][MAX_RANKS]; /* [to][from] */
};

extern struct board *board;
extern int me, total, hosts, local, host,
	place; /* ranks are numbered host by host: me = host * local + place */
extern uint32_t my_life;
extern const char *directory; /* the test's, for files */

/* PROGRAM DIRECTORY HOSTS LOCAL: never returns in a rank. Returns the status of the whole. */
int ranks_main(int argc, char **argv, void (*run)(void));

/* Words of the board: release and acquire. */
void post(unsigned int word, uint64_t value);
uint64_t look(unsigned int word);
uint64_t add(unsigned int word, uint64_t value);
/* Nothing to do: let others run. Ends this rank when another one has failed. */
void idle(unsigned int times);
/* Wait for all n; work, when given, is called meanwhile and says whether it found anything to do.
 */
void meet(uint32_t n, bool (*work)(void));
void await_count(const uint32_t *word, uint32_t value, bool (*work)(void));
void await(unsigned int word, uint64_t value, bool (*work)(void));
/* All n meet, and the launcher writes what `softhca show --json` says to DIRECTORY/up-N.json, N
 * from 1. */
void show(uint32_t n, bool (*work)(void));
/* Milliseconds of a clock that only goes forward. */
uint64_t now_ms(void);

/* Mail on the board: never lost, in order. */
void mail_send(int to, const struct note *note);
bool mail_next(struct note *note);

/* Contents that tell who sent what to whom. */
uint8_t content(uint32_t from, uint32_t to, uint32_t number, size_t i);

#endif
