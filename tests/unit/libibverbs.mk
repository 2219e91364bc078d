# Unit tests of libibverbs.
