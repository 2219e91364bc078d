// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The memory that messages are sent from and received into, and the check that the message that
 * arrives is the one that was sent. Reads a receive slot only after its completion and before it is
 * posted again, so that the device cannot write to it meanwhile.
 *
 * A verified message is a stream of odd bytes that depends on the sender (its send QPN and PSN), on
 * the number of the message and on the offset. Memory that waits for a message holds an even byte,
 * so a byte that was not written cannot pass for one that was. */

#include <config.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pingpong.h"

#define GUARD_BYTE 0xa6
#define EMPTY_BYTE 0x5a
#define PLAIN_BYTE 0x7b
#define ODD_BYTES  0x0101010101010101ull

/* The limit of memory for verified slots. It is exceeded only if fewer than the required slots
 * would fit. */
#define SLOT_BUDGET (64ul << 20)

static uint64_t mix(uint64_t x)
{
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9ull;
	x ^= x >> 27;
	x *= 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

static uint64_t first_word(uint64_t stream, uint64_t iter)
{
	return mix(mix(stream) + iter * 0x9e3779b97f4a7c15ull);
}

/* Word K of a message, in the same memory order on all machines. Its first byte counts messages, so
 * that adjacent messages of one byte differ. */
static uint64_t pattern_word(uint64_t first, uint64_t iter, uint64_t k)
{
	uint64_t word = mix(first + k * 0xd1342543de82ef95ull) | ODD_BYTES;

	if (!k)
		word = (word & ~0xffull) | ((iter << 1 | 1) & 0xff);
	return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? word : __builtin_bswap64(word);
}

static char *send_buffer(const struct pp_content *content, int send)
{
	return content->base + content->stride * send;
}

static char *slot_buffer(const struct pp_content *content, int slot)
{
	return content->base + content->stride * (content->sends + slot);
}

/* Fills as these tools always have: later generations, run with -c, expect the first byte of each
 * page to be 0. */
static void fill_plain(char *message, uint32_t size)
{
	const long page = sysconf(_SC_PAGESIZE);

	memset(message, PLAIN_BYTE, size);
	for (uint64_t i = 0; i < size; i += page)
		message[i] = 0;
}

int pp_content_init(struct pp_content *content, struct ibv_pd *pd, const struct pp_options *opt,
		    uint32_t headroom, int sends, int min_slots, int max_slots)
{
	struct pp_content new = {.size = opt->size,
				 .headroom = headroom,
				 .sends = sends,
				 .slots = 1,
				 .verify = opt->verify};
	int ret;

	new.stride =
		(2 * PP_GUARD + headroom + (size_t)opt->size + PP_GUARD - 1) & -(size_t)PP_GUARD;
	if (opt->verify) {
		size_t slots = SLOT_BUDGET / new.stride;

		if (slots > (size_t)max_slots)
			slots = max_slots;
		new.slots = slots < (size_t)min_slots ? min_slots : (int)slots;
	} else {
		new.sends = 1; /* all messages have the same content */
	}
	new.length = new.stride *(new.sends + new.slots);

	new.free_slots = calloc(new.slots, sizeof *new.free_slots);
	if (!new.free_slots)
		return pp_fail(ENOMEM, NULL, "Couldn't allocate the list of %d receive buffer%s",
			       new.slots, pp_plural(new.slots));
	new.base =
		mmap(NULL, new.length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (new.base == MAP_FAILED) {
		ret = pp_fail(errno, "Choose a smaller size (-s) or fewer QPs or clients.",
			      "Couldn't allocate work buf of %zu bytes", new.length);
		goto err_list;
	}
	memset(new.base, GUARD_BYTE, new.length);
	for (int i = 0; i < new.sends; i++)
		fill_plain(send_buffer(&new, i) + PP_GUARD, opt->size);
	for (int i = 0; i < new.slots; i++) {
		memset(slot_buffer(&new, i) + PP_GUARD, EMPTY_BYTE, headroom + (size_t)opt->size);
		new.free_slots[i] = i;
	}
	new.free_count = new.slots;

	errno = 0;
	new.mr = ibv_reg_mr(pd, new.base, new.length, IBV_ACCESS_LOCAL_WRITE);
	if (!new.mr) {
		ret = pp_fail(errno, pp_memory_advice(errno), "Couldn't register MR of %zu bytes",
			      new.length);
		goto err_base;
	}
	*content = new;
	return 0;

err_base:
	munmap(new.base, new.length);
err_list:
	free(new.free_slots);
	return ret;
}

int pp_content_free(struct pp_content *content)
{
	int err = content->mr ? ibv_dereg_mr(content->mr) : 0;

	if (err)
		return pp_fail(err, NULL, "Couldn't deregister MR");
	if (content->base)
		munmap(content->base, content->length);
	free(content->free_slots);
	*content = (struct pp_content){};
	return 0;
}

int pp_content_depth(const struct pp_content *content, int wanted)
{
	return content->verify && content->slots < wanted ? content->slots : wanted;
}

int pp_take_slot(struct pp_content *content)
{
	int slot;

	if (!content->verify)
		return 0;
	slot = content->free_slots[content->free_head];
	content->free_head = (content->free_head + 1) % content->slots;
	content->free_count--;
	return slot;
}

static void free_slot(struct pp_content *content, int slot)
{
	content->free_slots[(content->free_head + content->free_count++) % content->slots] = slot;
}

void pp_slot_sge(const struct pp_content *content, int slot, struct ibv_sge *sge)
{
	*sge = (struct ibv_sge){.addr = (uintptr_t)slot_buffer(content, slot) + PP_GUARD,
				.length = content->headroom + content->size,
				.lkey = content->mr->lkey};
}

void pp_send_sge(const struct pp_content *content, int send, struct ibv_sge *sge)
{
	*sge = (struct ibv_sge){
		.addr = (uintptr_t)send_buffer(content, content->verify ? send : 0) + PP_GUARD,
		.length = content->size,
		.lkey = content->mr->lkey};
}

void pp_write_message(struct pp_content *content, int send, uint64_t stream, uint64_t iter)
{
	const uint64_t first = first_word(stream, iter);
	char *message = send_buffer(content, send) + PP_GUARD;
	uint64_t word;
	uint32_t i;

	if (!content->verify)
		return;
	for (i = 0; content->size - i >= sizeof word; i += sizeof word) {
		word = pattern_word(first, iter, i / sizeof word);
		memcpy(message + i, &word, sizeof word);
	}
	word = pattern_word(first, iter, i / sizeof word);
	memcpy(message + i, &word, content->size - i);
}

/* Returns the offset of the first byte that differs from message ITER, or SIZE. */
static uint32_t first_difference(const char *message, uint32_t size, uint64_t stream, uint64_t iter)
{
	const uint64_t first = first_word(stream, iter);
	uint64_t word;
	uint32_t i, j;

	for (i = 0; size - i >= sizeof word; i += sizeof word) {
		word = pattern_word(first, iter, i / sizeof word);
		if (memcmp(message + i, &word, sizeof word))
			break;
	}
	if (i == size)
		return size;
	word = pattern_word(first, iter, i / sizeof word);
	for (j = i; j < size && j < i + sizeof word; j++)
		if ((uint8_t)message[j] != ((uint8_t *)&word)[j - i])
			return j;
	return size;
}

static bool untouched(const char *from, const char *to)
{
	while (from < to)
		if ((uint8_t)*from++ != GUARD_BYTE)
			return false;
	return true;
}

int pp_check_message(struct pp_content *content, int slot, uint64_t stream, uint64_t iter,
		     uint32_t byte_len)
{
	char *buffer = slot_buffer(content, slot);
	char *message = buffer + PP_GUARD + content->headroom;
	uint32_t at;

	if (!content->verify)
		return 0;
	if (byte_len != content->headroom + content->size)
		return pp_fail(EBADMSG, "Both sides need the same size (-s).",
			       "Message %" PRIu64 " has %" PRIu32 " byte%s instead of %" PRIu32,
			       iter, byte_len, pp_plural(byte_len),
			       content->headroom + content->size);
	at = first_difference(message, content->size, stream, iter);
	if (at < content->size)
		return pp_fail(EBADMSG,
			       "Contents are checked only between two of these tools, both run "
			       "with the option that checks.",
			       "Message %" PRIu64 " differs from what was sent at byte %" PRIu32
			       " of %" PRIu32 " (found 0x%02x, receive buffer %d)",
			       iter, at, content->size, (uint8_t)message[at], slot);
	if (!untouched(buffer, buffer + PP_GUARD) ||
	    !untouched(message + content->size, buffer + content->stride))
		return pp_fail(
			EBADMSG, "The device wrote outside the memory that the receive named.",
			"Message %" PRIu64 " touched bytes around receive buffer %d", iter, slot);
	memset(buffer + PP_GUARD, EMPTY_BYTE, content->headroom + (size_t)content->size);
	free_slot(content, slot);
	content->verified++;
	return 0;
}

void pp_print_verified(const struct pp_content *content)
{
	if (content->verify)
		printf("contents of %" PRIu64 " message%s verified\n", content->verified,
		       pp_plural(content->verified));
}
