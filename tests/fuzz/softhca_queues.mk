# WQEs, doorbell records and doorbells, as the device reads them.
check_PROGRAMS += softhca_queues
softhca_queues_SOURCES = softhca_queues.c revive.h ../unit/softhca_pair.c ../unit/softhca_mock.c
softhca_queues_CPPFLAGS = $(softhca_memory_CPPFLAGS)
softhca_queues_LDADD = $(softhca_memory_LDADD)
