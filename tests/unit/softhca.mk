# Unit tests of softhca.
