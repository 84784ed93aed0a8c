#!/bin/sh
# Makes squashfs/*.sqfs: four files, by mksquashfs of Debian's squashfs-tools 4.5.1 (and lzma by itself).
set -eu
cd "$(dirname "$0")"
root=$(mktemp -d)
mkdir -p "$root/bin" "$root/etc" squashfs
cp show/shapes.o "$root/bin/shapes.o"
cp x86/gcc-shared-O2-stripped "$root/bin/tool"
: > "$root/etc/empty"
{ head -c 20000 /dev/zero; printf end; } > "$root/etc/holes"
ln -s tool "$root/bin/link"
for compression in gzip xz zstd lzma lzo lz4; do
    mksquashfs "$root" "squashfs/$compression.sqfs" -comp $compression -b 4096 -noappend \
        -all-root -all-time 0 -mkfs-time 0 -no-xattrs -quiet -no-progress
done
rm -r "$root"
