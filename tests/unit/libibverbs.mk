# Unit tests of libibverbs. Those that need a device have the fake one of tests/abi.

ibverbs = $(top_builddir)/libibverbs/libibverbs.la

libibverbs_tests = libibverbs_ah libibverbs_events libibverbs_fork libibverbs_hugepages libibverbs_marshall \
	libibverbs_ranges libibverbs_sysfs libibverbs_tables libibverbs_verbs libibverbs_xrc
check_PROGRAMS += $(libibverbs_tests)

libibverbs_ah_SOURCES = libibverbs_ah.c libibverbs_provider.c
libibverbs_ah_LDADD = $(ibverbs) -lcmocka
libibverbs_events_SOURCES = libibverbs_events.c libibverbs_provider.c
libibverbs_events_LDADD = $(ibverbs) -lcmocka
libibverbs_fork_SOURCES = libibverbs_fork.c libibverbs_provider.c libibverbs_smaps.h
libibverbs_fork_LDADD = $(ibverbs) -lcmocka
libibverbs_hugepages_SOURCES = libibverbs_hugepages.c libibverbs_smaps.h
libibverbs_hugepages_LDADD = $(ibverbs) -lcmocka
libibverbs_marshall_SOURCES = libibverbs_marshall.c
libibverbs_marshall_LDADD = $(ibverbs) -lcmocka
libibverbs_ranges_SOURCES = libibverbs_ranges.c
libibverbs_ranges_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/libibverbs
libibverbs_ranges_LDADD = -lcmocka
libibverbs_sysfs_SOURCES = libibverbs_sysfs.c libibverbs_provider.c
libibverbs_sysfs_LDADD = $(ibverbs) -lcmocka
libibverbs_tables_SOURCES = libibverbs_tables.c
libibverbs_tables_LDADD = $(ibverbs) -lcmocka
libibverbs_verbs_SOURCES = libibverbs_verbs.c libibverbs_provider.c
libibverbs_verbs_LDADD = $(ibverbs) -lcmocka
libibverbs_xrc_SOURCES = libibverbs_xrc.c libibverbs_provider.c
libibverbs_xrc_LDADD = $(ibverbs) -lcmocka
