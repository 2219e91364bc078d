// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * For names.sh: every call that resolves a host's name or address, asked for one host of an
 * instance; TCP by name; who this host is. Asks from a constructor, from main, from threads and
 * from a forked child. Prints what is wrong, exits 1.
 * Usage: names WORD [HOST]: forward, backward, errors, lone (all about HOST), serve, connect,
 * identity
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

static int bad;

#define check(condition, ...)                                                                      \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			printf("line %d: not so: %s: ", __LINE__, #condition);                     \
			printf(__VA_ARGS__);                                                       \
			printf("\n");                                                              \
			bad = 1;                                                                   \
		}                                                                                  \
	} while (0)

static char name[16], address[20]; /* of the host that is asked for */
static struct in_addr in;

static void about(const char *host)
{
	snprintf(name, sizeof(name), "host%s", host);
	snprintf(address, sizeof(address), "127.128.%s.1", host);
	inet_pton(AF_INET, address, &in);
}

static void host_is(const struct hostent *e, int family, const void *wanted, int len,
		    const char *how)
{
	check(e, "%s", how);
	if (!e)
		return;
	check(!strcmp(e->h_name, name), "%s: %s", how, e->h_name);
	check(e->h_aliases && !e->h_aliases[0], "%s: aliases", how);
	check(e->h_addrtype == family && e->h_length == len, "%s: family %d, length %d", how,
	      e->h_addrtype, e->h_length);
	check(e->h_addr_list[0] && !memcmp(e->h_addr_list[0], wanted, (size_t)len), "%s: address",
	      how);
	check(e->h_addr_list[0] && !e->h_addr_list[1], "%s: one address", how);
	check((uintptr_t)e->h_addr_list % sizeof(void *) == 0, "%s: alignment", how);
}

/*
 * Tries each size of buffer, from 0 on. The call returns ERANGE until the result fits, and writes
 * nothing behind it.
 */
static void by_name_r(const char *as, int two, size_t skew)
{
	struct hostent e, *res;
	char buf[256] __attribute__((aligned(16)));
	int small = 0;

	for (size_t n = 0; n < 128; n++) {
		int h = 77, ret;

		memset(buf, 0x5a, sizeof(buf));
		res = &e;
		errno = 0;
		ret = two ? gethostbyname2_r(as, AF_INET, &e, buf + skew, n, &res, &h)
			  : gethostbyname_r(as, &e, buf + skew, n, &res, &h);
		for (size_t i = skew + n; i < sizeof(buf); i++)
			check(buf[i] == 0x5a, "%s: %zu bytes, byte %zu written", as, n, i);
		if (ret == ERANGE) {
			check(!res && h == NETDB_INTERNAL && errno == ERANGE, "%zu: %p %d %d", n,
			      (void *)res, h, errno);
			check(!small, "%zu bytes are too few, fewer were not", n);
			continue;
		}
		small = 1;
		check(!ret && res == &e, "%zu: %d", n, ret);
		host_is(res, AF_INET, &in, 4, "gethostbyname_r");
	}
	check(small, "%s: never enough", as);
}

static void addrinfo(const char *as, const char *service, const struct addrinfo *hints, int count,
		     int port)
{
	struct addrinfo *list = NULL;
	int ret = getaddrinfo(as, service, hints, &list), n = 0;

	check(!ret, "%s: %s", as, gai_strerror(ret));
	if (ret)
		return;
	for (const struct addrinfo *a = list; a; a = a->ai_next, n++) {
		const struct sockaddr_in *sin = (const void *)a->ai_addr;

		check(a->ai_family == AF_INET && a->ai_addrlen == sizeof(*sin) &&
			      sin->sin_family == AF_INET,
		      "%s", as);
		check(sin->sin_addr.s_addr == in.s_addr, "%s: %s", as, inet_ntoa(sin->sin_addr));
		check(ntohs(sin->sin_port) == port, "%s: port %d", as, ntohs(sin->sin_port));
		check(!hints || !hints->ai_socktype || a->ai_socktype == hints->ai_socktype, "%s",
		      as);
		if (hints && hints->ai_flags & AI_CANONNAME && !n)
			check(a->ai_canonname && !strcmp(a->ai_canonname, name), "%s: %s", as,
			      a->ai_canonname);
		else
			check(!a->ai_canonname, "%s", as);
	}
	check(n == count, "%s: %d entries, not %d", as, n, count);
	freeaddrinfo(list);
}

static void forward_as(const char *as)
{
	struct addrinfo h = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
	struct addrinfo *list = NULL;
	int ret;

	addrinfo(as, NULL, NULL, 3, 0);
	addrinfo(as, NULL, &h, 1, 0);
	addrinfo(as, "4711", &h, 1, 4711);
	h.ai_family = AF_UNSPEC;
	addrinfo(as, "4711", &h, 1, 4711);
	h.ai_flags = AI_CANONNAME;
	addrinfo(as, NULL, &h, 1, 0);
	h.ai_flags = AI_CANONNAME | AI_PASSIVE | AI_ADDRCONFIG | AI_NUMERICSERV;
	addrinfo(as, "80", &h, 1, 80);
	h.ai_family = AF_INET;
	addrinfo(as, "80", &h, 1, 80);
	h.ai_socktype = SOCK_DGRAM;
	addrinfo(as, "80", &h, 1, 80);
	h.ai_socktype = 0;
	h.ai_protocol = IPPROTO_TCP;
	addrinfo(as, "80", &h, 1, 80);
	h = (struct addrinfo){.ai_flags = AI_CANONNAME};
	addrinfo(as, NULL, &h, 3, 0);

	h = (struct addrinfo){
		.ai_family = AF_INET6, .ai_flags = AI_V4MAPPED, .ai_socktype = SOCK_STREAM};
	ret = getaddrinfo(as, "9", &h, &list);
	check(!ret, "%s", gai_strerror(ret));
	if (!ret) {
		const struct sockaddr_in6 *sin6 = (const void *)list->ai_addr;

		check(IN6_IS_ADDR_V4MAPPED(&sin6->sin6_addr) &&
			      !memcmp(sin6->sin6_addr.s6_addr + 12, &in, 4),
		      "%s", as);
		freeaddrinfo(list);
	}

	host_is(gethostbyname(as), AF_INET, &in, 4, "gethostbyname");
	host_is(gethostbyname2(as, AF_INET), AF_INET, &in, 4, "gethostbyname2");
	by_name_r(as, 0, 0);
	by_name_r(as, 1, 3);
}

static void forward(void)
{
	char dotted[20], loud[16];

	snprintf(dotted, sizeof(dotted), "%s.", name);
	for (size_t i = 0; i <= strlen(name); i++)
		loud[i] = (char)(name[i] >= 'a' ? name[i] - 32 : name[i]);
	forward_as(name);
	forward_as(dotted);
	forward_as(loud);
}

static void address_is(struct in_addr a)
{
	struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons(4711), .sin_addr = a};
	struct sockaddr_in6 sin6 = {.sin6_family = AF_INET6,
				    .sin6_addr = {.s6_addr = {[10] = 0xff, [11] = 0xff}}};
	char node[64], serv[16], number[20];
	struct hostent e, *res = NULL;
	char buf[256];
	int h = 77, ret;

	memcpy(sin6.sin6_addr.s6_addr + 12, &a, 4);
	inet_ntop(AF_INET, &a, number, sizeof(number));
	host_is(gethostbyaddr(&a, 4, AF_INET), AF_INET, &a, 4, "gethostbyaddr");
	ret = gethostbyaddr_r(&a, 4, AF_INET, &e, buf, sizeof(buf), &res, &h);
	check(!ret && res == &e, "%d", ret);
	host_is(res, AF_INET, &a, 4, "gethostbyaddr_r");
	errno = 0;
	ret = gethostbyaddr_r(&a, 4, AF_INET, &e, buf, 16, &res, &h);
	check(ret == ERANGE && !res && h == NETDB_INTERNAL && errno == ERANGE, "%d %p %d %d", ret,
	      (void *)res, h, errno);
	host_is(gethostbyaddr(&sin6.sin6_addr, 16, AF_INET6), AF_INET6, &sin6.sin6_addr, 16,
		"IPv4 mapped");

	for (int flags = 0; flags < 16; flags++) {
		int given = (flags & 1 ? NI_NAMEREQD : 0) | (flags & 2 ? NI_NOFQDN : 0) |
			    (flags & 4 ? NI_DGRAM : 0) | (flags & 8 ? NI_NUMERICSERV : 0);

		ret = getnameinfo((void *)&sin, sizeof(sin), node, sizeof(node), serv, sizeof(serv),
				  given);
		check(!ret && !strcmp(node, name) && !strcmp(serv, "4711"), "flags %d: %d %s %s",
		      given, ret, node, serv);
		ret = getnameinfo((void *)&sin6, sizeof(sin6), node, sizeof(node), NULL, 0, given);
		check(!ret && !strcmp(node, name), "flags %d: %d %s", given, ret, node);
	}
	ret = getnameinfo((void *)&sin, sizeof(sin), node, sizeof(node), serv, sizeof(serv),
			  NI_NUMERICHOST);
	check(!ret && !strcmp(node, number) && !strcmp(serv, "4711"), "%d %s %s", ret, node, serv);
	ret = getnameinfo((void *)&sin, sizeof(sin), NULL, 0, serv, sizeof(serv), 0);
	check(!ret && !strcmp(serv, "4711"), "%d %s", ret, serv);
	for (socklen_t n = 1; n <= strlen(name); n++) {
		memset(node, 0x5a, sizeof(node));
		ret = getnameinfo((void *)&sin, sizeof(sin), node, n, NULL, 0, 0);
		check(ret == EAI_OVERFLOW && node[n] == 0x5a, "%u bytes: %d", n, ret);
	}
	check(!getnameinfo((void *)&sin, sizeof(sin), node, (socklen_t)strlen(name) + 1, NULL, 0,
			   0),
	      "just enough");
	check(getnameinfo((void *)&sin, sizeof(sin), node, sizeof(node), serv, 2, 0) ==
		      EAI_OVERFLOW,
	      "service");
	check(getnameinfo((void *)&sin, sizeof(sin) - 1, node, sizeof(node), NULL, 0, 0) ==
		      EAI_FAMILY,
	      "short sockaddr");
	check(getnameinfo((void *)&sin, sizeof(sin), node, sizeof(node), NULL, 0, 1 << 30) ==
		      EAI_BADFLAGS,
	      "flags");
}

/* The instance of the test has 2 HCAs of 2 ports for each host: four addresses. */
static void backward(void)
{
	struct in_addr a = in;

	for (uint32_t n = 1; n <= 4; n++) {
		a.s_addr = htonl((ntohl(in.s_addr) & ~255u) | n);
		address_is(a);
	}
}

static void errors(void)
{
	/* Few, since the machine's resolver is asked for them and may take its time. */
	static const char *const unknown[] = {"host3", "host01"};
	static const char *const foreign[] = {"127.128.3.1", "127.128.0.5"};
	struct addrinfo h = {.ai_family = AF_INET6}, *list;
	struct hostent e, *res;
	char buf[256], node[64];
	int err, ret;

	check(getaddrinfo(name, NULL, &h, &list) == EAI_NONAME, "no IPv6");
	h.ai_family = AF_UNIX;
	check(getaddrinfo(name, NULL, &h, &list) == EAI_FAMILY, "no such family");
	h = (struct addrinfo){.ai_flags = AI_NUMERICHOST};
	check(getaddrinfo(name, NULL, &h, &list) == EAI_NONAME, "a name is no number");
	h = (struct addrinfo){.ai_flags = 1 << 30};
	check(getaddrinfo(name, NULL, &h, &list) == EAI_BADFLAGS, "flags");
	h = (struct addrinfo){.ai_socktype = 77};
	check(getaddrinfo(name, NULL, &h, &list) == EAI_SOCKTYPE, "type");
	h = (struct addrinfo){.ai_socktype = SOCK_STREAM};
	check(getaddrinfo(name, "no-such-service", &h, &list) == EAI_SERVICE, "service");
	h.ai_flags = AI_NUMERICSERV;
	check(getaddrinfo(name, "http", &h, &list) == EAI_NONAME, "service by number");
	check(!gethostbyname2(name, AF_INET6) && h_errno, "no IPv6");
	res = &e;
	ret = gethostbyname2_r(name, AF_INET6, &e, buf, sizeof(buf), &res, &err);
	check(!ret && !res && err == HOST_NOT_FOUND, "%d %d", ret, err);
	check(gethostbyname2_r(name, 77, &e, buf, sizeof(buf), &res, &err) == EAFNOSUPPORT && !res,
	      "family");
	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
		check(getaddrinfo(unknown[i], NULL, NULL, &list), "%s", unknown[i]);
		check(!gethostbyname(unknown[i]), "%s", unknown[i]);
		check(h_errno == HOST_NOT_FOUND || h_errno == TRY_AGAIN || h_errno == NO_DATA ||
			      h_errno == NO_RECOVERY,
		      "%s: %d", unknown[i], h_errno);
	}
	for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++) {
		struct sockaddr_in sin = {.sin_family = AF_INET};

		inet_pton(AF_INET, foreign[i], &sin.sin_addr);
		check(!getnameinfo((void *)&sin, sizeof(sin), node, sizeof(node), NULL, 0, 0) &&
			      !strcmp(node, foreign[i]),
		      "%s: %s", foreign[i], node);
	}
	check(gethostbyaddr_r(&in, 3, AF_INET, &e, buf, sizeof(buf), &res, &err) && !res,
	      "three bytes");
}

static void *in_thread(void *arg)
{
	struct hostent e, *res;
	char buf[256];
	int err;

	(void)arg;
	for (int i = 0; i < 200; i++) {
		addrinfo(name, "1",
			 &(struct addrinfo){.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, 1,
			 1);
		check(!gethostbyname_r(name, &e, buf, sizeof(buf), &res, &err) && res,
		      "in a thread");
		check(gethostbyname(name), "in a thread");
	}
	return NULL;
}

static void elsewhere(void)
{
	pthread_t thread[4];
	int status;
	pid_t pid;

	for (int i = 0; i < 4; i++)
		if (pthread_create(&thread[i], NULL, in_thread, NULL))
			exit(1);
	pid = fork();
	if (pid == 0) {
		forward();
		backward();
		fflush(stdout);
		_exit(bad);
	}
	check(waitpid(pid, &status, 0) == pid && status == 0, "in a forked child");
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
}

/*
 * The only host of an instance keeps the machine's name, and host0 is another name for it. The
 * machine's resolver is asked first each time.
 */
static void lone(void)
{
	struct sockaddr_in sin = {.sin_family = AF_INET};
	struct hostent e, *res = NULL;
	char machine[256], buf[2048], node[64];
	struct addrinfo *list;
	int err, ret;

	about("0");
	sin.sin_addr = in;
	addrinfo(name, "1", &(struct addrinfo){.ai_family = AF_INET, .ai_flags = AI_CANONNAME}, 3,
		 1);
	host_is(gethostbyname(name), AF_INET, &in, 4, "gethostbyname");
	host_is(gethostbyname2(name, AF_INET), AF_INET, &in, 4, "gethostbyname2");
	ret = gethostbyname_r(name, &e, buf, sizeof(buf), &res, &err);
	check(!ret && res == &e, "%d", ret);
	host_is(res, AF_INET, &in, 4, "gethostbyname_r");
	ret = gethostbyname2_r(name, AF_INET, &e, buf, 8, &res, &err);
	check(ret == ERANGE && !res && err == NETDB_INTERNAL, "%d %d", ret, err);
	host_is(gethostbyaddr(&in, 4, AF_INET), AF_INET, &in, 4, "gethostbyaddr");
	ret = gethostbyaddr_r(&in, 4, AF_INET, &e, buf, sizeof(buf), &res, &err);
	check(!ret && res == &e, "%d", ret);
	host_is(res, AF_INET, &in, 4, "gethostbyaddr_r");
	ret = getnameinfo((void *)&sin, sizeof(sin), node, sizeof(node), NULL, 0, 0);
	check(!ret && !strcmp(node, name), "%d %s", ret, node);
	check(getaddrinfo("host1", NULL, NULL, &list), "host1 of one");
	check(!gethostname(machine, sizeof(machine)) && strcmp(machine, "host0"), "%s", machine);
}

/*
 * Listens at the address of this host's own name, prints the port, accepts one connection and sends
 * the host's name.
 */
static int serve(void)
{
	struct addrinfo h = {.ai_family = AF_INET,
			     .ai_socktype = SOCK_STREAM,
			     .ai_flags = AI_PASSIVE},
			*list;
	struct sockaddr_in sin;
	socklen_t len = sizeof(sin);
	char self[64];
	int fd, to;

	alarm(50);
	if (gethostname(self, sizeof(self)) || getaddrinfo(self, "0", &h, &list))
		return 1;
	fd = socket(list->ai_family, list->ai_socktype, 0);
	if (fd < 0 || bind(fd, list->ai_addr, list->ai_addrlen) || listen(fd, 1) ||
	    getsockname(fd, (void *)&sin, &len))
		return 1;
	freeaddrinfo(list);
	printf("%d\n", ntohs(sin.sin_port));
	fflush(stdout);
	to = accept(fd, NULL, NULL);
	return to < 0 || write(to, self, strlen(self)) < 0;
}

static int reach(const char *host, const char *port)
{
	struct addrinfo h = {.ai_socktype = SOCK_STREAM}, *list;
	char said[64] = "";
	int fd;

	alarm(50);
	if (getaddrinfo(host, port, &h, &list))
		return 1;
	fd = socket(list->ai_family, list->ai_socktype, 0);
	if (fd < 0 || connect(fd, list->ai_addr, list->ai_addrlen) ||
	    read(fd, said, sizeof(said) - 1) <= 0)
		return 1;
	freeaddrinfo(list);
	printf("%s\n", said);
	return strcasecmp(said, host) != 0;
}

static int identity(void)
{
	struct utsname u;
	char self[64];

	if (uname(&u) || gethostname(self, sizeof(self)) || strcmp(u.nodename, self))
		return 1;
	printf("%s %lx\n", self, (unsigned long)gethostid());
	return 0;
}

static struct addrinfo *early;
static int early_ret = 77;

/* Before main, and perhaps before the constructor of a preloaded library. */
static __attribute__((constructor(101))) void ask_early(void)
{
	const char *host = getenv("EARLY");

	if (host)
		early_ret = getaddrinfo(host, NULL, NULL, &early);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "serve"))
		return serve();
	if (!strcmp(what, "connect") && argc == 4)
		return reach(argv[2], argv[3]);
	if (!strcmp(what, "identity"))
		return identity();
	if (!strcmp(what, "lone")) {
		lone();
		return bad;
	}
	about(argc > 2 ? argv[2] : "0");
	check(!getenv("EARLY") || !early_ret, "in a constructor: %d", early_ret);
	if (!early_ret)
		freeaddrinfo(early);
	if (!strcmp(what, "forward"))
		forward();
	else if (!strcmp(what, "backward"))
		backward();
	else if (!strcmp(what, "errors"))
		errors();
	else if (!strcmp(what, "elsewhere"))
		elsewhere();
	else
		return 2;
	return bad;
}
