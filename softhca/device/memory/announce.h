/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A thread that is about to sleep announces in its slot (struct sh_exec) what it waits for, for
 * `softhca show --waits`. Only threads that sleep anyway do so: a message costs nothing for it.
 * Only the thread writes its announcement. The command reads it without a lock, so it may find
 * parts of two announcements; a second look shows that.
 *
 * If a signal handler leaves a sleep by siglongjmp(), the announcement stays until the thread's
 * next one. The state that the kernel reports of the thread then tells that it does not sleep.
 */
#ifndef SOFTHCA_DEVICE_MEMORY_ANNOUNCE_H
#define SOFTHCA_DEVICE_MEMORY_ANNOUNCE_H

#include "dev.h"

/* What a thread waits for, with the meaning of its two words. */
enum sh_waits {
	SH_WAITS_NOT,
	SH_WAITS_LOCK, /* a lock of the device. a: offset of the struct sh_lock */
	SH_WAITS_DOZE, /* a CQE, in poll_cq. a: sh_proc.roused when the thread went to sleep */
	/*
	 * The helper thread's next timer. a: when it is due, UINT64_MAX: no timer is set; b:
	 * sh_proc.attention as the helper thread last saw it.
	 */
	SH_WAITS_HELPER,
	/* The daemon's answer. a: enum sh_msg_type; b: for SH_MSG_COMMAND, the uverbs command. */
	SH_WAITS_REQUEST,
	SH_WAITS_CONTROL, /* another thread of the process that uses the control connection */
	/*
	 * The end of an exchange of pages, or of copies into them. a: number of the process that
	 * has the pages.
	 */
	SH_WAITS_PAGES,
	/*
	 * A copy that the daemon makes (host/ferry.h). a: the process (struct sh_proc) whose memory
	 * it is.
	 */
	SH_WAITS_COPY,
};

/* Announces a sleep. A thread without a slot gets one. If no slot is left, nothing is announced. */
void sh_wait_begin(struct sh_dev *dev, enum sh_waits what, uint64_t a, uint64_t b);
void sh_wait_end(struct sh_dev *dev);

#endif
