#!/bin/bash
# Makes the samples in pe/ and macho/ from containers.c and from assembly. Needs, from Debian:
# gcc-mingw-w64-x86-64 gcc-mingw-w64-i686 clang-14 lld-14 llvm-14; and the Python package ziglang
# for the Python in $ZIG_PYTHON.
set -eu
cd "$(dirname "$0")"
zig="${ZIG_PYTHON:-python3} -m ziglang cc -g0 -fno-sanitize=all -fno-stack-protector -fno-ident"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bare="-ffreestanding -fno-builtin -nostdlib -shared"

# Windows: gcc, for x86-64 and x86; whole and stripped.
for level in O0 O2; do
  for target in x86_64:DllMain i686:_DllMain@12; do
    cpu=${target%%:*}
    $cpu-w64-mingw32-gcc -$level $bare -Wl,-e,${target##*:},--no-insert-timestamp \
      containers.c -lkernel32 -o pe/gcc-$cpu-$level.dll
    $cpu-w64-mingw32-strip -o pe/gcc-$cpu-$level-stripped.dll pe/gcc-$cpu-$level.dll
  done
done

# Windows: clang and lld-link, without symbols, for x86-64 and ARM64.
for cpu in x86_64 aarch64; do
  for level in O0 O2; do
    $zig -target $cpu-windows-gnu -$level $bare -Wl,-e,DllMain containers.c -lkernel32 \
      -o "$work/clang.dll"
    cp "$work/clang.dll" pe/clang-$cpu-$level.dll
  done
done

# Windows: what MSVC would make.
clang-14 -target x86_64-w64-mingw32 -c pe/msvc64.s -o "$work/msvc64.o"
x86_64-w64-mingw32-ld -s -shared --no-insert-timestamp -e leaf "$work/msvc64.o" -o pe/msvc64.dll
i686-w64-mingw32-as pe/msvc32.s -o "$work/msvc32.o"
i686-w64-mingw32-ld -s -shared --no-insert-timestamp --exclude-all-symbols -e _entry@12 \
  "$work/msvc32.o" -o pe/msvc32.dll

# macOS: objects, and libraries by LLVM's linker, which lists function starts.
for target in x86_64:x86_64 arm64:aarch64; do
  arch=${target%%:*} cpu=${target##*:}
  for level in O0 O2; do
    clang-14 -target $arch-apple-macos11 -$level -fno-ident -c containers.c \
      -o macho/clang-$cpu-$level.o
    ld64.lld-14 -arch $arch -platform_version macos 11.0 13.3 -dylib -undefined dynamic_lookup \
      macho/clang-$cpu-$level.o -o macho/lld-$cpu-$level.dylib
  done
  llvm-strip-14 -x -o macho/lld-$cpu-O2-stripped.dylib macho/lld-$cpu-O2.dylib
done
# The same by Zig's linker, which leaves that list empty.
$zig -target x86_64-macos -O2 -shared containers.c -o macho/zig-x86_64-O2.dylib
llvm-strip-14 -x -o macho/zig-x86_64-O2-stripped.dylib macho/zig-x86_64-O2.dylib
# A program, which has a base address; and a library with the mark of encrypted ones, not set.
clang-14 -target arm64-apple-ios14 -O2 -fno-ident -c containers.c -o "$work/ios.o"
ld64.lld-14 -arch x86_64 -platform_version macos 11.0 13.3 -execute -e _choose \
  -undefined dynamic_lookup macho/clang-x86_64-O2.o -o macho/lld-x86_64-program
ld64.lld-14 -arch arm64 -platform_version ios 14.0 14.0 -dylib -encryptable \
  -undefined dynamic_lookup "$work/ios.o" -o macho/lld-ios.dylib
# Fat files, of objects and of archives.
llvm-lipo-14 -create macho/clang-x86_64-O2.o macho/clang-aarch64-O2.o -output macho/fat.o
for cpu in x86_64 aarch64; do
  llvm-ar-14 --format=darwin rcD "$work/$cpu.a" macho/clang-$cpu-O0.o macho/clang-$cpu-O2.o
done
llvm-lipo-14 -create "$work/x86_64.a" "$work/aarch64.a" -output macho/fat.a
chmod -x pe/* macho/*
