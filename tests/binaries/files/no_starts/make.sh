#!/bin/sh
# Makes no_starts.elf: no symbols, no unwind tables, no section headers but those of the code.
set -e
cd "$(dirname "$0")"
gcc -O1 -static -nostdlib -fno-pic -no-pie -fno-ipa-cp -fno-asynchronous-unwind-tables \
    -fcf-protection=none -Wl,-z,noseparate-code -Wl,--build-id=none -Wl,-z,norelro \
    no_starts.c -o no_starts.elf
nm no_starts.elf
strip -R .comment -R .eh_frame -R .note.gnu.property no_starts.elf
