#!/bin/sh
# Makes configure and the Makefile.in files, here and in libmlx4/.
set -e
cd "$(dirname "$0")"
for dir in . libmlx4; do
	mkdir -p "$dir/config"
	(cd "$dir" && autoreconf --force --install)
done
