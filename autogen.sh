#!/bin/sh
# Makes configure and the Makefile.in files, here, in libmlx4/ and in librdmacm/. Until all are made there is a file
# config/autogen.unfinished, by which scripts/build knows a run that was interrupted.
set -e
cd "$(dirname "$0")"
for need in autoreconf:autoconf automake:automake libtoolize:libtool; do
	command -v "${need%:*}" >/dev/null || {
		echo "$0: ${need%:*} is missing. Install it: Debian or RPM package ${need#*:}" >&2
		exit 1
	}
done
mkdir -p config
: >config/autogen.unfinished
# Side by side. Unlike jobs of the shell, what xargs starts ends when Ctrl-C is pressed.
printf '%s\n' . libmlx4 librdmacm | xargs -P 3 -I DIR sh -c \
	'mkdir -p "DIR/config" && cd DIR && rm -rf autom4te.cache && autoreconf --force --install --no-recursive'
rm config/autogen.unfinished
