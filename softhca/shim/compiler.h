/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the preloaded library asks of the compiler. Variables of a thread are TLS: access to one
 * must not allocate, because it may happen in a signal handler or inside malloc().
 */
#ifndef SOFTHCA_SHIM_COMPILER_H
#define SOFTHCA_SHIM_COMPILER_H

#define TLS	    __thread __attribute__((tls_model("initial-exec")))
#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#endif
