// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Reads /proc/PID/status line by line. The line of a user's groups may be hundreds of thousands of
 * bytes long, and stands before others, so only the beginning of each line is kept. Owns nothing.
 */
#include <stdbool.h>
#include <string.h>

#include "status.h"
#include "sys.h"

#define LINE 64 /* bytes of a line that are kept: the longest name and a value */

static void take(const char *line, struct sh_status_field *field, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		size_t len = strlen(field[i].name);

		if (strncmp(line, field[i].name, len))
			continue;
		line += len + strspn(line + len, " \t");
		len = strnlen(line, sizeof(field[i].value) - 1);
		memcpy(field[i].value, line, len);
		field[i].value[len] = '\0';
		return;
	}
}

int sh_status_read(const char *path, struct sh_status_field *field, size_t n)
{
	int fd = sh_open_own(path, O_RDONLY);
	char text[1024], line[LINE];
	size_t len = 0;
	long got;

	if (fd < 0)
		return fd;
	for (size_t i = 0; i < n; i++)
		field[i].value[0] = '\0';
	while ((got = sh_read(fd, text, sizeof(text))) > 0) {
		for (long i = 0; i < got; i++) {
			if (text[i] != '\n') {
				if (len < sizeof(line) - 1)
					line[len++] = text[i];
				continue;
			}
			line[len] = '\0';
			take(line, field, n);
			len = 0;
		}
	}
	sh_close(fd);
	return (int)got;
}
