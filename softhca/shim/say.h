/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Messages on standard error, about this process.
 */
#ifndef SOFTHCA_SHIM_SAY_H
#define SOFTHCA_SHIM_SAY_H

void shim_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/*
 * Keeps a message, which is printed once, when the program looks for devices: the shim calls
 * shim_say_now() for each path that may be a device's.
 */
void shim_say_later(const char *format, ...) __attribute__((format(printf, 1, 2)));
void shim_say_now(const char *path);
/*
 * Says once why the daemon cannot be reached; err is the -errno of shim_control_get(). Prints
 * nothing for errors that softhca does not cause.
 */
void shim_say_unreachable(int err);

#endif
