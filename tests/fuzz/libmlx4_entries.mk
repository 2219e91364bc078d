# Completion queue entries, as the provider reads them, on the fake kernel of its tests.
check_PROGRAMS += libmlx4_entries
libmlx4_entries_SOURCES = libmlx4_entries.c ../../libmlx4/tests/fake-kernel.c ../../libmlx4/tests/kinds.c
libmlx4_entries_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/libmlx4/src -I$(top_srcdir)/libmlx4/tests
# Each of its files defines it for itself.
libmlx4_entries_CFLAGS = $(AM_CFLAGS) -U_GNU_SOURCE
# The archive whole, for the constructor that registers the provider.
libmlx4_entries_LDFLAGS = $(AM_LDFLAGS) -Wl,--whole-archive,$(top_builddir)/libmlx4/libmlx4.a,--no-whole-archive \
	-Wl,--wrap=calloc -Wl,--wrap=posix_memalign -Wl,--wrap=mmap -Wl,--wrap=munmap
libmlx4_entries_LDADD = libdriver.a $(top_builddir)/libibverbs/libibverbs.la -lcmocka
