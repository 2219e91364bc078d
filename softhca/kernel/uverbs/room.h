/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * uverbs as a room of the daemon.
 */
#ifndef SOFTHCA_KERNEL_UVERBS_ROOM_H
#define SOFTHCA_KERNEL_UVERBS_ROOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct conn;
struct kernel;
struct out;
struct server;

extern const struct room uverbs_room;

enum uverbs_dir { UVERBS_FILES, UVERBS_EVENTS }; /* as in its dirs */

/* show.c */
void uverbs_show_daemon(struct kernel *k, struct out *o);
void uverbs_show_hca(struct kernel *k, uint32_t hca, struct out *o);
void uverbs_show_counters(struct kernel *k, uint32_t hca, struct out *o);

/* requests.c */
int uverbs_serve(struct server *s, struct conn *c, const void *m, size_t len, bool late);

#endif
