/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * `softhca show --waits`: makes one report of two looks at an instance. waits.c judges and makes
 * the JSON; waits_words.c has the words for it.
 */
#ifndef SOFTHCA_CLI_WAITS_H
#define SOFTHCA_CLI_WAITS_H

#include "look.h"

#define WORDS 400

/* What two looks tell of something under way. */
enum verdict {
	VERDICT_WAITS,	 /* it waits for what its text says */
	VERDICT_MOVES,	 /* it moved between the two looks, or has come since */
	VERDICT_STOPPED, /* its process is stopped, and cannot carry it on */
	VERDICT_STARVED, /* its process is ready and had no processor */
	VERDICT_LOST,	 /* no thread carries it on: a bug of softhca */
};
const char *verdict_word(enum verdict v);

const char *state_word(char state);
bool is_stopped(char state);

/* What a thread waits for or does; dir is the instance's directory. */
void task_words(char text[WORDS], const struct look *l, const struct task *t, const char *dir);
void lock_words(char text[WORDS], const struct look *l, const struct sh_held *h);
/* What it is about ("mlx4_0 QP 0x00004a"), and what is under way. */
void due_name(char text[WORDS], const struct look *l, const struct sh_due *d);
void due_words(char text[WORDS], const struct look *l, const struct sh_due *d);
const char *due_kind_word(enum sh_due_kind kind);

/* 0, or EXIT_SELF after a message. */
int show_waits(const char *instance, bool json);

#endif
