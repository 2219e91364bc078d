# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# The SYNOPSIS of an mdoc page as one line per function: "HEADER TYPE NAME(ARGUMENTS)". Only .In, .Ft, .Fo, .Fa and .Fc
# may stand there; anything else comes out as it is, and fits no prototype.

function unquote(text) {
	gsub(/"/, "", text)
	return text
}

/^\.Sh / { inside = $0 == ".Sh SYNOPSIS"; next }
!inside { next }
/^\.In / { header = $2; next }
/^\.Ft / { type = unquote(substr($0, 5)); next }
/^\.Fo / { name = $2; arguments = ""; separator = ""; next }
/^\.Fa / { arguments = arguments separator unquote(substr($0, 5)); separator = ", "; next }
/^\.Fc/ { print header " " type (type ~ /\*$/ ? "" : " ") name "(" arguments ")"; next }
{ print FILENAME ": " $0 }
