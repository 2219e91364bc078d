// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* `softhca start` and `softhca stop`. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "softhca.h"
#include "softhca/host/paths.h"

#define STOP_WAIT_MS 10000

int verb_start(int argc, char **argv)
{
	char base[PATH_MAX], dir[PATH_MAX];
	struct run_options opt;
	int word = parse_run_options(argc, argv, true, &opt);
	const char *name;

	if (word < 0)
		return word == -2 ? 0 : EXIT_USAGE;
	if (word != argc - 1) {
		complain("softhca start takes one name: softhca start [OPTIONS] NAME");
		return EXIT_USAGE;
	}
	name = argv[word];
	if (!sh_name_valid(name)) {
		complain("\"%s\" cannot be a name: up to 64 letters, digits, '.', '_' and '-'", name);
		return EXIT_USAGE;
	}
	if (prepare_base(base) || sh_instance_dir(dir, name))
		return EXIT_SELF;
	if (sh_instance_alive(dir) == 1) {
		complain("an instance \"%s\" runs already; softhca stop %s ends it", name, name);
		return EXIT_SELF;
	}
	sh_instance_remove(dir);
	if (launch_daemon(dir, &opt.device, false))
		return EXIT_SELF;
	printf("Instance %s runs. Use it with: softhca run --instance %s -- COMMAND\n", name, name);
	return 0;
}

int verb_stop(int argc, char **argv)
{
	static const struct timespec tick = {.tv_nsec = 5000000};
	const struct sh_stop request = {.type = SH_MSG_STOP};
	struct sh_hello_reply hello;
	char dir[PATH_MAX];
	int control, status;

	if (argc == 2 && !strcmp(argv[1], "--help")) {
		puts("Usage: softhca stop NAME\n\nEnd an instance. Programs that still use it find their device gone.");
		return 0;
	}
	if (argc != 2) {
		complain("softhca stop takes one name: softhca stop NAME");
		return EXIT_USAGE;
	}
	control = reach(argv[1], dir, &hello);
	if (control < 0)
		return EXIT_SELF;
	status = ask(control, &request, sizeof(request), NULL);
	close(control);
	if (status)
		return status;
	for (int waited = 0; sh_instance_alive(dir) == 1; waited += 5) {
		if (waited > STOP_WAIT_MS) {
			complain("the daemon of \"%s\" was told to end and has not yet", argv[1]);
			return EXIT_SELF;
		}
		nanosleep(&tick, NULL);
	}
	return 0;
}
