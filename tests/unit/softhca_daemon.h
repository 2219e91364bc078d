/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A daemon in a process of its own, and clients of it that do what they like.
 */
#ifndef SOFTHCA_DAEMON_H
#define SOFTHCA_DAEMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <jansson.h>

#include "softhca/protocol.h"

/* ---- the daemon ---- */

extern char daemon_dir[64];    /* of the instance */
extern bool daemon_old_kernel; /* the next daemon has a kernel without close_range() */

/* For cmocka_run_group_tests(). Each daemon has removed its instance, or the second one fails. */
int daemon_make_base(void **state);
int daemon_remove_base(void **state);

/* Returns when the daemon has announced st. */
pid_t daemon_launch(bool leased, struct sh_status *st);
pid_t daemon_start(void);
void daemon_stop(pid_t pid);
/* A connection that has said nothing yet, and one that has said hello. */
int daemon_connect(void);
int daemon_hello(bool shim, uint32_t again, struct sh_hello_reply *r);
json_t *daemon_show(void);	       /* what `softhca show --json` prints */
json_t *daemon_hca(json_t *j);	       /* the first HCA in it */
size_t daemon_count(const char *what); /* objects of this kind that the first HCA has */
size_t daemon_processes(void);

/* ---- a client ---- */

struct client {
	int fd, file, life;
	uint32_t slot, ctx, generation;
};

void client_hello(struct client *c, uint32_t again);
void client_open(struct client *c);
/* Returns the error of the reply. fd: the descriptor that comes with it, if one does. */
int client_command(struct client *c, uint32_t number, void *buf, size_t len, size_t out,
		   struct sh_command_reply *r, int *fd);
int client_plain(struct client *c, uint32_t number, size_t out, int *fd);

#endif
