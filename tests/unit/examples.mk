# Unit tests of what the ping-pong tools share.

examples_cppflags = $(AM_CPPFLAGS) -I$(top_srcdir)/examples
examples_libs = $(top_builddir)/examples/libpingpong.la $(top_builddir)/libibverbs/libibverbs.la -lcmocka

examples_tests = pingpong_exchange pingpong_content
check_PROGRAMS += $(examples_tests)
pingpong_exchange_SOURCES = pingpong_exchange.c
pingpong_exchange_CPPFLAGS = $(examples_cppflags)
pingpong_exchange_LDADD = $(examples_libs)
pingpong_content_SOURCES = pingpong_content.c
pingpong_content_CPPFLAGS = $(examples_cppflags)
pingpong_content_LDADD = $(examples_libs)
