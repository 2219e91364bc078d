// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Copies a file to a server by rsockets. The client sends commands and waits for the answer of
 * each:
 *
 *	OFFSET SIZE
 *	0      1    version, 0
 *	1      1    command; answers have ANSWER in it
 *	2      2    bytes of all that comes here but the file's, in the order of x86
 *	4      4    OPEN: mode of the file; in an answer the errno, or 0
 *	8      8    0
 *	16          OPEN: path with its 0, filled to 8 bytes; WRITE: 8 bytes, size of the file,
 *		    which follows
 */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"
#include "stream.h"
#include "tool.h"

enum { OPEN = 1, CLOSE = 2, WRITE = 3, ANSWER = 0x80, CHUNK = 1 << 20 };

struct header {
	uint8_t version;
	uint8_t command;
	uint16_t length;
	uint32_t data;
	uint64_t id;
};

_Static_assert(sizeof(struct header) == 16, "layout of the header");

static char chunk[CHUNK];

static void step(const char *text)
{
	printf("%s", text);
	fflush(stdout);
}

/* Says why the file at path cannot be used. */
static int file_fails(const char *what, const char *path, int error)
{
	fflush(stdout);
	fprintf(stderr, "rcopy: %s %s: %s\n", what, path, strerror(error));
	return -1;
}

/* ---- The client ---- */

static int command(struct stream *stream, uint8_t what, uint32_t data, const void *more,
		   size_t length)
{
	struct header header = {.command = what, .length = sizeof(header) + length, .data = data};

	return stream_send(stream, (char *)&header, sizeof(header)) ||
			       (length && stream_send(stream, more, length))
		       ? -1
		       : 0;
}

/* The errno that the server tells, 0, or -1. */
static int answer(struct stream *stream, uint8_t what)
{
	struct header header;

	if (stream_receive(stream, (char *)&header, sizeof(header)))
		return -1;
	if (!header.version && header.command == (what | ANSWER) &&
	    header.length == sizeof(header) && header.data <= INT_MAX)
		return header.data;
	fflush(stdout);
	fprintf(stderr, "rcopy: invalid length %d or bad command response %x:%x\n", header.length,
		header.command, what | ANSWER);
	return -1;
}

static int open_there(struct stream *stream, const char *path, mode_t mode)
{
	size_t length = (strlen(path) + 1 + 7) / 8 * 8;
	char name[PATH_MAX + 8] = "";
	int ret;

	if (strlen(path) >= PATH_MAX)
		return file_fails("cannot copy to", path, ENAMETOOLONG);
	strcpy(name, path);
	step("opening...");
	if (command(stream, OPEN, mode, name, length))
		return -1;
	ret = answer(stream, OPEN);
	return ret > 0 ? file_fails("the server cannot open", path, ret) : ret;
}

static int write_there(struct stream *stream, int fd, const char *path, uint64_t size)
{
	uint64_t left = size;
	ssize_t n;
	int ret;

	step("transferring...");
	if (command(stream, WRITE, 0, &size, sizeof(size)))
		return -1;
	while (left) {
		n = read(fd, chunk, left < CHUNK ? left : CHUNK);
		if (n < 0)
			return file_fails("cannot read", path, errno);
		if (!n) {
			fflush(stdout);
			fprintf(stderr, "rcopy: %s has become shorter; copy it again\n", path);
			return -1;
		}
		if (stream_send(stream, chunk, n))
			return -1;
		left -= n;
	}
	ret = answer(stream, WRITE);
	return ret > 0 ? file_fails("the server cannot write", path, ret) : ret;
}

static int close_there(struct stream *stream, const char *path)
{
	int ret;

	step("closing...");
	if (command(stream, CLOSE, 0, NULL, 0))
		return -1;
	ret = answer(stream, CLOSE);
	return ret > 0 ? file_fails("the server cannot finish", path, ret) : ret;
}

static int client(struct stream *stream, const char *source, const char *destination)
{
	struct stat stat;
	double start, took;
	int ret = -1, fd = open(source, O_RDONLY);

	if (fd < 0)
		return file_fails("cannot read", source, errno);
	if (fstat(fd, &stat) || !S_ISREG(stat.st_mode)) {
		file_fails("cannot copy", source, S_ISREG(stat.st_mode) ? errno : EINVAL);
	} else if (!stream_connect(stream) && !open_there(stream, destination, stat.st_mode)) {
		start = clock_us();
		ret = write_there(stream, fd, source, stat.st_size);
		took = clock_us() - start;
		if (!ret)
			ret = close_there(stream, destination);
		if (!ret)
			printf("done\n%lld bytes in %.2f seconds = %.2f Gb/sec\n",
			       (long long)stat.st_size, took / 1e6,
			       stat.st_size * 8.0 / (1000 * took));
	}
	stream_close(stream);
	close(fd);
	return ret;
}

/* ---- The server ---- */

struct file {
	int fd;
	char path[PATH_MAX + 8];
};

static int take_path(struct stream *stream, struct file *file, const struct header *header)
{
	size_t length = header->length - sizeof(*header);

	step("opening: ");
	if (!length || length > sizeof(file->path)) {
		fprintf(stderr, "rcopy: a path of %zu byte%s; another program may be the client\n",
			length, tool_plural(length));
		return -1;
	}
	if (stream_receive(stream, file->path, length))
		return -1;
	file->path[length - 1] = 0;
	printf("%s, ", file->path);
	if (file->fd >= 0)
		close(file->fd);
	file->fd = open(file->path, O_WRONLY | O_CREAT | O_TRUNC, header->data & 0777);
	return file->fd < 0 ? errno : 0;
}

/* Takes the data even if they cannot be written, so that the client hears of it. */
static int take_data(struct stream *stream, struct file *file, const struct header *header)
{
	int error = file->fd < 0 ? EBADF : 0;
	uint64_t size, left;
	size_t n, written;
	ssize_t ret;

	if (header->length != sizeof(*header) + sizeof(size) ||
	    stream_receive(stream, (char *)&size, sizeof(size)))
		return -1;
	step("transferring");
	for (left = size; left; left -= n) {
		n = left < CHUNK ? left : CHUNK;
		if (stream_receive(stream, chunk, n))
			return -1;
		for (written = 0; !error && written < n; written += ret) {
			ret = write(file->fd, chunk + written, n - written);
			if (ret < 0) {
				error = errno;
				break;
			}
		}
	}
	if (!error)
		printf("...%llu bytes...", (unsigned long long)size);
	return error;
}

static int take_close(struct file *file)
{
	int ret = file->fd < 0 ? EBADF : close(file->fd) ? errno : 0;

	file->fd = -1;
	step("closing...");
	return ret;
}

static int take_command(struct stream *stream, struct file *file, const struct header *header)
{
	if (header->version || header->length < sizeof(*header)) {
		fprintf(stderr, "rcopy: invalid version %d or length %d\n", header->version,
			header->length);
		return -1;
	}
	switch (header->command) {
	case OPEN:
		return take_path(stream, file, header);
	case WRITE:
		return take_data(stream, file, header);
	case CLOSE:
		return take_close(file);
	default:
		fprintf(stderr, "rcopy: unknown command %x\n", header->command);
		return -1;
	}
}

static void serve(struct stream *stream)
{
	struct file file = {.fd = -1};
	struct header header;
	bool closed = false;
	int error = 0;

	while (!error && !closed) {
		if (stream_receive(stream, (char *)&header, sizeof(header)))
			break;
		error = take_command(stream, &file, &header);
		if (error < 0)
			break;
		if (error)
			file_fails("cannot use", file.path, error);
		closed = header.command == CLOSE;
		header = (struct header){.command = header.command | ANSWER,
					 .length = sizeof(header),
					 .data = error};
		if (stream_send(stream, (char *)&header, sizeof(header)))
			break;
	}
	if (file.fd >= 0)
		close(file.fd);
	printf(closed && !error ? "done\n" : "\n");
}

static int server(struct stream *stream)
{
	struct sockaddr_storage from;
	char text[INET6_ADDRSTRLEN];
	const void *addr;
	socklen_t len;
	int listener = stream_listen(stream);

	if (listener < 0)
		return -1;
	for (;;) {
		step("waiting for connection...");
		len = sizeof(from);
		if (stream_accept(stream, listener, (struct sockaddr *)&from, &len))
			break;
		addr = from.ss_family == AF_INET6
			       ? (const void *)&((struct sockaddr_in6 *)&from)->sin6_addr
			       : (const void *)&((struct sockaddr_in *)&from)->sin_addr;
		inet_ntop(from.ss_family == AF_INET6 ? AF_INET6 : AF_INET, addr, text,
			  sizeof(text));
		printf("client: %s\n", text);
		serve(stream);
		stream_close(stream);
	}
	stream->calls->close(listener);
	return -1;
}

static int usage(const char *name, int status)
{
	printf("usage 1: %s [options]\n"
	       "\t     starts the server application\n"
	       "\t[-p  port_number]\n"
	       "usage 2: %s source server[:destination] [options]\n"
	       "\t     source - file name and path\n"
	       "\t     server - name or address\n"
	       "\t     destination - file name and path\n"
	       "\t[-p  port_number]\n",
	       name, name);
	return status;
}

int main(int argc, char **argv)
{
	struct stream stream = STREAM_DEFAULTS("rcopy", NULL);
	char *colon;
	int option;

	stream.fd = -1;
	stream.blocking = true;
	stream.port = "7427";
	while ((option = getopt(argc, argv, "hp:")) != -1) {
		if (option == 'h')
			return usage(argv[0], 0);
		if (option == '?')
			return usage(argv[0], 1);
		if (tool_port("rcopy", optarg, &stream.port))
			return 1;
	}
	if (optind == argc)
		return server(&stream) ? 1 : 0;
	if (argc - optind != 2)
		return usage(argv[0], 1);
	colon = strchr(argv[optind + 1], ':');
	if (colon)
		*colon++ = 0;
	stream.server = argv[optind + 1];
	return client(&stream, argv[optind], colon && *colon ? colon : argv[optind]) ? 1 : 0;
}
