// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Speaking with the daemon of an instance. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "softhca.h"
#include "softhca/host/client.h"
#include "softhca/host/paths.h"

int reach(const char *instance, char dir[PATH_MAX], struct sh_hello_reply *hello)
{
	int fd, err;

	err = sh_instance_dir(dir, instance);
	if (err == -EINVAL) {
		complain("\"%s\" cannot be an instance: names are letters, digits, '.', '_' and '-'", instance);
		return err;
	}
	fd = err ? err : sh_client_connect(dir);
	if (fd < 0) {
		complain("no instance \"%s\" runs (%s); softhca show lists those that do, softhca start makes one",
			 instance, strerror(-fd));
		return fd;
	}
	err = sh_client_hello(fd, 0, 0, hello, NULL);
	if (err) {
		complain("instance \"%s\" does not answer: %s", instance, strerror(-err));
		close(fd);
		return err;
	}
	return fd;
}

int ask(int control, const void *request, size_t len, int *fd)
{
	struct sh_status status;
	int fds[SH_CLIENT_FDS];
	unsigned int nfds = 0;
	int err;

	err = sh_client_request(control, request, len, &status, sizeof(status), fds, &nfds);
	if (err) {
		complain("the daemon does not answer: %s", strerror(-err));
		return EXIT_SELF;
	}
	status.text[sizeof(status.text) - 1] = '\0';
	if (!status.error && fd && !nfds)
		status.error = EPROTO;
	for (unsigned int i = 0; i < nfds; i++) {
		if (!status.error && fd && i == 0)
			*fd = fds[i];
		else
			close(fds[i]);
	}
	if (status.error)
		complain("%s", status.text[0] ? status.text : strerror(status.error));
	return status.error ? EXIT_SELF : 0;
}
