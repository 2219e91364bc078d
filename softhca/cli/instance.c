// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* `softhca start` and `softhca stop`. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "softhca.h"
#include "softhca/host/paths.h"

/* The lock alone does not tell: another command that removes a dead instance may hold it. */
static bool runs(const char *dir)
{
	struct sh_hello_reply hello;
	int control;

	if (sh_instance_alive(dir) != 1)
		return false;
	control = greet(dir, &hello);
	if (control >= 0)
		close(control);
	return control != -ENOENT && control != -ECONNREFUSED;
}

int verb_start(int argc, char **argv)
{
	char place[PATH_MAX], dir[PATH_MAX];
	struct run_options opt;
	int word = parse_run_options(argc, argv, true, &opt);
	const char *name;

	if (word < 0)
		return word == -2 ? 0 : EXIT_USAGE;
	if (word != argc - 1) {
		complain("softhca start takes one name, behind its options: softhca start "
			 "[OPTIONS] NAME");
		return EXIT_USAGE;
	}
	name = argv[word];
	if (!sh_name_valid(name)) {
		complain("\"%s\" cannot be the name of an instance: use up to 64 letters, digits, "
			 "'.', '_' and '-', but not "
			 "\"lock\"",
			 name);
		return EXIT_USAGE;
	}
	if (prepare_place(place))
		return EXIT_SELF;
	/*
	 * softhca looks for a name in every place, so an instance in another place is in the way,
	 * too.
	 */
	if (!sh_instance_dir(dir, name) && runs(dir)) {
		complain("an instance \"%s\" runs already; softhca stop %s ends it", name, name);
		return EXIT_SELF;
	}
	if (snprintf(dir, sizeof(dir), "%s/%s", place, name) >= (int)sizeof(dir)) {
		complain("%s is too long a path for an instance; set SOFTHCA_DIR to a shorter one",
			 place);
		return EXIT_SELF;
	}
	if (launch_daemon(dir, &opt, false))
		return EXIT_SELF;
	printf("Instance %s runs. Use it with: softhca run --instance %s -- COMMAND\n", name, name);
	return 0;
}

int verb_stop(int argc, char **argv)
{
	struct sh_hello_reply hello;
	char dir[PATH_MAX];
	int control, status;

	if (argc == 2 && is_help(argv[1])) {
		puts("Usage: softhca stop NAME\n\nEnd an instance. Programs that still use it get "
		     "a fatal event, and their device is gone.");
		return 0;
	}
	if (argc > 1 && argv[1][0] == '-') {
		complain("softhca stop has no option %s: name the instance that is to end; softhca "
			 "show lists those that run",
			 argv[1]);
		return EXIT_USAGE;
	}
	if (argc != 2) {
		complain("softhca stop takes one name: softhca stop NAME; softhca show lists those "
			 "that run");
		return EXIT_USAGE;
	}
	control = reach(argv[1], dir, &hello);
	if (control < 0)
		return EXIT_SELF;
	status = end_instance(control, dir);
	close(control);
	return status;
}
