// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* What the tools share. Those that return int return 0, or -1 after a message to standard error. */
#ifndef TOOL_H
#define TOOL_H

#include <stdbool.h>

#include <rdma/rdma_cma.h>

/* Prints "WHAT: reason of errno" to standard error. Returns -1. */
int tool_fail(const char *what);

/* The same with the address, of IPv4 or IPv6, and the port that it was about. */
int tool_fail_at(const char *what, const struct sockaddr *addr);

/* rdma_getaddrinfo() with a message. NULL on failure. */
struct rdma_addrinfo *tool_address(const char *node, const char *service, int flags, int qp_type);

/* Reads a decimal, octal or hexadecimal number of least to most, and nothing behind it. */
bool tool_number(const char *text, long least, long most, long *value);

/* The same with a message, in which what names the number. */
int tool_named_number(const char *name, const char *what, const char *text, long least, long most,
		      long *value);

/*
 * Takes a port by its number or by the name of its service, which is looked up later. getaddrinfo()
 * takes the lower 16 bits of larger numbers: they are refused here.
 */
int tool_port(const char *name, const char *text, const char **port);

/* Takes what -f says: name, ip, ipv6 or gid. */
int tool_format(struct rdma_addrinfo *hints, const char *text);

/* A tool that makes one connection, and prints when it starts and how it ends. */
struct tool_program {
	const char *name;    /* in what it prints; NULL: the name it is called by */
	const char *letters; /* of its options, for getopt(): h, s, p and c */
	const char *usage;   /* what follows "usage: NAME" */
	const char *server;  /* without -s */
	int xrc_type;	     /* the type of its ids for -c x */
	int (*run)(const char *server, const char *port, int qp_type);
};

/* What usage says of -c. */
#define TOOL_TYPES                                                                                 \
	"\t[-c communication type]\n"                                                              \
	"\t    r - RC: reliable-connected (default)\n"                                             \
	"\t    x - XRC: extended-reliable-connected\n"

/* The main() of such a tool. Returns what it exits with. */
int tool_main(const struct tool_program *program, int argc, char **argv);

/* Listens at res, takes one request, has serve() do the rest, and destroys both ids. attr: of the
 * QP of the request's id; NULL: serve() makes it. */
int tool_serve(struct rdma_addrinfo *res, struct ibv_qp_init_attr *attr,
	       int (*serve)(struct rdma_cm_id *id));

/* A QP for one message of size bytes in each direction, sent inline if the device can. */
struct ibv_qp_init_attr tool_one_message(uint32_t size);

/* What follows the name of things that are counted: "" of one, else "s". */
static inline const char *tool_plural(unsigned long n)
{
	return n == 1 ? "" : "s";
}

#endif
