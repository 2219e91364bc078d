# What libibverbs reads: sysfs, and the files of its configuration directory. The parts that read are compiled anew, since
# the directory is compiled in.
check_PROGRAMS += libibverbs_files
libibverbs_files_SOURCES = libibverbs_files.c libibverbs_files.h ../../libibverbs/device.c ../../libibverbs/discovery.c \
	../../libibverbs/sysfs.c ../../libibverbs/verbs.c
libibverbs_files_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/libibverbs -include $(srcdir)/libibverbs_files.h
libibverbs_files_LDADD = libdriver.a $(top_builddir)/libibverbs/libibverbs.la $(SYSFS_LIBS)
