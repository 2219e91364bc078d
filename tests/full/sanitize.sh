#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: unit and ABI tests of everything, and the system tests with our libraries and tools, under ASan and
# UBSan, leaks included. The device that the system tests run on is the ordinary build's: a preloaded library cannot be
# sanitized. So of tests/verbs those run whose subject is what a program calls in our libraries. With SANITIZED=all, as
# scripts/test long sets it, all of tests/verbs run, in each way of MMIO, and the fuzz tests. ROWS=all, which that sets as well, has each script of tests/system
# run all that it has.
. "$top_srcdir/tests/full/lib.sh" || exit 1
# The long ones ran in the ordinary build.
export TIER=quick FUZZ_RUNS="${FUZZ_RUNS:-300}"

dir=$top_builddir/full-sanitize
rm -rf "$dir"
flags="-g1 -O1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all"
export ASAN_OPTIONS="detect_leaks=1:abort_on_error=0"
export UBSAN_OPTIONS="print_stacktrace=1"
ok "everything compiles with sanitizers" \
	"$top_srcdir/scripts/build" "$dir" --disable-static CFLAGS="$flags" LDFLAGS="-fsanitize=address,undefined"
# These stop a thread, or kill a process, at each instruction of a piece of code that other tests run as a whole.
stepped="softhca_kernel_scale softhca_transport_kill softhca_transport_rearm softhca_transport_refused softhca_transport_replace \
	softhca_transport_stop softhca_transport_stop_once"
[ "${SANITIZED:-}" != all ] || stepped=
export TEST_CFLAGS="-g1 -O0 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all"
check "$dir/tests/unit" TESTS="\$(filter-out $stepped,\$(check_PROGRAMS))"
check "$dir/libmlx4"
if [ "${SANITIZED:-}" = all ]; then
	for tests in tests/abi tests/fuzz librdmacm; do
		check "$dir/$tests"
	done
else
	# Headers and exported names are the ordinary build's, and fuzz.sh has the corpora under sanitizers.
	# shellcheck disable=SC2016 # make expands it
	check "$dir/tests/abi" TESTS='$(cmocka_tests)'
	# shellcheck disable=SC2016
	check "$dir/librdmacm/tests" TESTS='$(check_PROGRAMS)'
fi
export SOFTHCA=$top_builddir/softhca/cli/softhca
# Those where our libraries and tools run; in the others they would be loaded by somebody else's program. Faults and hosts are the device's.
scripts="pingpong_ours.sh port_events.sh cm_library.sh cm_steps.sh librdmacm.sh preload.sh rsockets.sh rsocket_tools.sh xrc_by_address.sh"
[ "${SANITIZED:-}" != all ] || scripts="$scripts faults.sh hosts.sh"
check "$dir/tests/system" TESTS="$scripts"
# These fault on purpose, are killed, and end without tidying up: what they leave is theirs.
export ASAN_OPTIONS="detect_leaks=0:abort_on_error=0:handle_segv=0:handle_sigbus=0"
# AddressSanitizer keeps its marks of frames that an asynchronous cancellation has passed over.
unwatched=cancelled
if [ "${SANITIZED:-}" = all ]; then
	check "$dir/tests/verbs" TESTS="\$(filter-out $unwatched,\$(PROGRAMS_C)) abi_programs.sh"
else
	# Here softhca meets the sanitizer: its heap, its signal handlers, its fork(). A trapped store faults, so in both ways.
	meeting="shared_memory shim_fork shim_signals threads"
	check "$dir/tests/verbs" TESTS="$meeting"
	# The subject of these is the device and the shim, which are not sanitized.
	others="address_space core_dump exec_memory frozen_clock raising locked_memory small_stack \
		shared_memory_advice shared_memory_beside shared_memory_child shared_memory_daemon shared_memory_filled shared_memory_fork shared_memory_heap shared_memory_helper shared_memory_mappings shared_memory_marks shared_memory_moves shared_memory_pieces shared_memory_pins shared_memory_race shared_memory_sleepers \
		stopped stopped_inside stopped_mesh \
		shim_closing shim_constructor shim_descriptors shim_errno shim_first_open shim_handlers shim_jumps shim_lost_files shim_sandbox shim_threads"
	# The libraries store to the device in the same way whoever notices that.
	WAYS=kick check "$dir/tests/verbs" TESTS="\$(filter-out $meeting $others $unwatched,\$(PROGRAMS_C)) abi_programs.sh"
fi
finish
