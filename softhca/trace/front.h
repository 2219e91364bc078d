/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* A function that stands in front of one of the library's: what such functions have in common. */
#ifndef SOFTHCA_TRACE_FRONT_H
#define SOFTHCA_TRACE_FRONT_H

#include <errno.h>
#include <stdlib.h>

#include "call.h"

#define IN_FRONT __attribute__((visibility("default")))

/*
 * `real`: the function of the same name. A program that calls a function which its library has not
 * would not have started.
 */
#define REAL_OF(library, function, version)                                                        \
	static __typeof__(function) *real;                                                         \
	if (!real) {                                                                               \
		int errno_ = errno;                                                                \
		real = (__typeof__(real))call_real(library, #function, version);                   \
		if (!real)                                                                         \
			abort();                                                                   \
		errno = errno_;                                                                    \
	}
#define REAL(function) REAL_OF("libibverbs.so.1", function, "IBVERBS_1.1")

/*
 * The whole of a function that gives nothing but an error number. say: what writes its arguments to
 * &c. The arguments themselves follow.
 */
#define PLAIN_OF(version, function, say, ...)                                                      \
	({                                                                                         \
		REAL_OF("libibverbs.so.1", function, version)                                      \
		struct call c;                                                                     \
		int ret_;                                                                          \
                                                                                                   \
		call_begin(&c, #function, false);                                                  \
		say;                                                                               \
		call_enter(&c);                                                                    \
		ret_ = real(__VA_ARGS__);                                                          \
		call_returned(&c, ret_);                                                           \
		call_end(&c);                                                                      \
		ret_;                                                                              \
	})
#define PLAIN(function, say, ...) PLAIN_OF("IBVERBS_1.1", function, say, __VA_ARGS__)

#endif
