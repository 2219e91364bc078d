# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=sh
#
# Sourced by the rule that runs the scripts of the full tier, in a line of make's. Scripts run side by side, and each of them
# starts makes of its own: all of these together run no more jobs than `make -jN check` was given. make closes its jobserver
# for what is no make, so this keeps it open as 8 and 9, which no script uses for anything else; FULL_JOBS names it to lib.sh.
# Without -jN, FULL_JOBS is empty: the scripts run one after the other, and each uses all processors.
FULL_JOBS=
case " ${MAKEFLAGS:-} " in
*" --jobserver-auth=fifo:"* | *" --jobserver-auth="[0-9],[0-9]" "*)
	FULL_JOBS=${MAKEFLAGS##*--jobserver-auth=}
	FULL_JOBS=${FULL_JOBS%% *} ;;
esac
case $FULL_JOBS in
[0-9],[0-9])
	eval "exec 8<&${FULL_JOBS%,*} 9>&${FULL_JOBS#*,}"
	FULL_JOBS=8,9 ;;
esac
export FULL_JOBS
