/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A thread that is about to sleep says so in its slot (struct sh_exec), and for what: for `softhca
 * show --waits`. Only whoever sleeps anyway announces himself; no path on which a message goes
 * does. The words are the thread's own; the command reads them without a lock and so may find those
 * of two sleeps mixed, which a second look shows.
 *
 * A signal handler that leaves a sleep by siglongjmp() leaves its announcement, until the thread's
 * next one. The state that the kernel gives of the thread tells.
 */
#ifndef SOFTHCA_DEVICE_MEMORY_ANNOUNCE_H
#define SOFTHCA_DEVICE_MEMORY_ANNOUNCE_H

#include "dev.h"

/* What a thread waits for, with the meaning of its two words. */
enum sh_waits {
	SH_WAITS_NOT,
	SH_WAITS_LOCK,	  /* a lock of the device. a: offset of the struct sh_lock */
	SH_WAITS_DOZE,	  /* a CQE, in poll_cq. a: sh_proc.roused as it goes to sleep */
	SH_WAITS_HELPER,  /* the helper thread: a timer. a: when it is due, UINT64_MAX = none; b:
			     attention as seen */
	SH_WAITS_REQUEST, /* the daemon's answer. a: enum sh_msg_type; b: of SH_MSG_COMMAND, the
			     uverbs command */
	SH_WAITS_CONTROL, /* another thread of the process that uses the control connection */
	SH_WAITS_PAGES, /* the end of an exchange of pages, or of copies into them. a: number of the
			   process */
};

/* A thread without a slot gets one, unless none is left: then it says nothing. */
void sh_wait_begin(struct sh_dev *dev, enum sh_waits what, uint64_t a, uint64_t b);
void sh_wait_end(struct sh_dev *dev);

#endif
