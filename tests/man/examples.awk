# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Write the examples of man pages and of Markdown files to files in `dir`, named FILE.NUMBER.c (or .sh; .out: what the
# program before it prints). In man pages, they are the literal blocks after a comment: C, or Output. In Markdown, they
# are fenced as c or sh; a shell example after the line <!-- run --> is to be run and ends in .run. Starts a C file with a
# #line that names the source.

function begin(suffix) {
	if (suffix == "out")
		target = dir "/" base "." program ".out"
	else
		target = dir "/" base "." ++number "." suffix
	if (suffix == "c") {
		program = number
		printf "#line %d \"%s\"\n", FNR + 1, base > target
	}
	printf "" > target
}

FNR == 1 {
	base = FILENAME
	sub(/.*\//, "", base)
	number = 0
	target = pending = ""
	run = 0
	man = base ~ /\.[1-8]$/
}
man && /^\.\\" C$/ { pending = "c"; next }
man && /^\.\\" Output$/ { pending = "out"; next }
man && pending && /^\.Bd / { begin(pending); pending = ""; next }
man && /^\.Ed/ { target = ""; next }
!man && target && /^```/ { target = ""; next }
!man && !fence && /^```c$/ { begin("c"); next }
!man && !fence && /^<!-- run -->$/ { run = 1; next }
!man && !fence && /^```sh$/ { begin(run ? "run" : "sh"); run = 0; next }
!man && /^```/ { fence = !fence; next }
target {
	line = $0
	if (man) {
		gsub(/\\&/, "", line)
		gsub(/\\\(aq/, "'", line)
		gsub(/\\\(ti/, "~", line)
		gsub(/\\e/, "\\", line)
	}
	print line > target
}
