#!/bin/bash
# Makes the samples in evidence/ from speech.c. Needs, from Debian: gcc, gcc-i686-linux-gnu,
# gcc-aarch64-linux-gnu, gcc-arm-linux-gnueabihf, gcc-mips-linux-gnu, gcc-mipsel-linux-gnu,
# gcc-mips64el-linux-gnuabi64, gcc-mingw-w64-x86-64, gcc-mingw-w64-i686, clang-14 and lld-14.
set -eu
cd "$(dirname "$0")"
flags="-O2 -g0 -w -ffreestanding -fno-builtin -nostdlib -shared -fno-stack-protector -fno-ident"
flags="$flags -fno-asynchronous-unwind-tables -funwind-tables"
page="-Wl,-z,max-page-size=4096,--build-id=none"

# Linux: the imports stay undefined.
for target in x86_64:x86_64-linux-gnu i686:i686-linux-gnu aarch64:aarch64-linux-gnu \
  arm:arm-linux-gnueabihf mips:mips-linux-gnu mipsel:mipsel-linux-gnu \
  mips64el:mips64el-linux-gnuabi64; do
  name=${target%%:*} tools=${target##*:}
  $tools-gcc $flags $page -fPIC speech.c -o evidence/$name.so
  $tools-strip -o evidence/$name-stripped.so evidence/$name.so
done

# Windows.
for cpu in x86_64 i686; do
  entry=$([ $cpu = i686 ] && echo _speaks || echo speaks)
  $cpu-w64-mingw32-gcc $flags -Wl,-e,$entry,--no-insert-timestamp speech.c -lmsvcrt \
    -o evidence/$cpu.dll
  $cpu-w64-mingw32-strip -o evidence/$cpu-stripped.dll evidence/$cpu.dll
done

# macOS.
for target in x86_64:x86_64 arm64:aarch64; do
  arch=${target%%:*} name=${target##*:}
  clang-14 -target $arch-apple-macos11 -O2 -g0 -w -ffreestanding -fno-builtin -c speech.c \
    -o evidence/$name.o
  ld64.lld-14 -arch $arch -platform_version macos 11.0 11.0 -dylib -undefined dynamic_lookup \
    evidence/$name.o -o evidence/$name.dylib
done
chmod -x evidence/*
