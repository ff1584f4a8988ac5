#!/usr/bin/env bash
# Builds OUT/libcuda.a, which stands for the NVIDIA driver's libcuda.so.1 when a program is linked: one trampoline for
# each function that INCLUDE/cuda.h declares, and gpu/cuda/libcuda/libcuda.c, which opens the driver's library when
# the program asks for it. So the program starts on a machine without a driver.
#
#   scripts/libcuda.sh INCLUDE OUT
#
# CC is the C compiler. An archive that is newer than the header, the source and this script is kept.
set -euo pipefail
include=$(readlink -f "$1") out=$2
source=$(dirname "${BASH_SOURCE[0]}")/../gpu/cuda/libcuda/libcuda.c
archive=$out/libcuda.a cc=${CC:-cc}
if [ "$archive" -nt "$include/cuda.h" ] && [ "$archive" -nt "${BASH_SOURCE[0]}" ] && [ "$archive" -nt "$source" ] &&
	[ "$(cat "$out/made-of" 2>/dev/null)" = "$include $cc" ]; then
	exit 0
fi

mkdir -p "$out"
tmp=$(mktemp -d "$out/.make-XXXXXX")
trap 'rm -rf "$tmp"' EXIT
# Twice: where a function has several versions, the header declares the old names only with the internal switch.
for switch in -U__CUDA_API_VERSION_INTERNAL -D__CUDA_API_VERSION_INTERNAL; do
	echo '#include <cuda.h>' | "$cc" -E -P "$switch" "-I$include" -
done | tr '\n' ' ' | grep -oE 'CUresult +cu[A-Za-z0-9_]+ *\(' | sed -E 's/CUresult +//; s/ *\(//' | grep -vx cuInit | sort -u >"$tmp/names"
[ -s "$tmp/names" ] || { echo "error: $include/cuda.h declares no function" >&2; exit 1; }

# Hidden: a library that is loaded later must find the driver's functions and not these.
case $("$cc" -dumpmachine) in
x86_64-*) jump='endbr64; movq xtts_cuda_table+\2(%rip), %r11; jmp *%r11' ;;
aarch64-*) jump='hint #34; adrp x16, xtts_cuda_table+\2; ldr x16, [x16, #:lo12:xtts_cuda_table+\2]; br x16' ;;
*) echo "error: no trampolines for $("$cc" -dumpmachine)" >&2; exit 1 ;;
esac
{
	echo .text
	awk '{ print $1, 8 * (NR - 1) }' "$tmp/names" | sed -E "s/(.*) (.*)/.globl \1; .hidden \1; .type \1, %function; \1: $jump/"
	echo '.data; .balign 8; .globl xtts_cuda_table; .hidden xtts_cuda_table; xtts_cuda_table:'
	sed 's/.*/.quad xtts_cuda_early/' "$tmp/names"
	echo '.section .data.rel.ro, "aw"; .balign 8; .globl xtts_cuda_names; .hidden xtts_cuda_names; xtts_cuda_names:'
	awk '{ print ".quad 1000" NR "f" } END { print ".quad 0" }' "$tmp/names"
	echo '.section .rodata'
	awk '{ print "1000" NR ": .asciz \"" $1 "\"" }' "$tmp/names"
	echo '.section .note.GNU-stack, "", %progbits'
} >"$tmp/trampolines.s"
"$cc" -c -o "$tmp/trampolines.o" "$tmp/trampolines.s"
"$cc" -c -O2 -fPIC -Wall -Werror -o "$tmp/source.o" "$source"
"$cc" -r -nostdlib -o "$tmp/libcuda.o" "$tmp/trampolines.o" "$tmp/source.o" # one object, so that the linker takes all or nothing
"${AR:-ar}" rcs "$tmp/libcuda.a" "$tmp/libcuda.o"
mv "$tmp/libcuda.a" "$archive" # in one step: another build may be linking
echo "$include $cc" >"$out/made-of"
