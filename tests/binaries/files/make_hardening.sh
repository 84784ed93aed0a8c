#!/bin/bash
# Makes the samples in hardening/ from hardening.c and frames.c. Needs, from Debian:
# clang gcc-aarch64-linux-gnu gcc-arm-linux-gnueabihf.
set -eu
cd "$(dirname "$0")"
mkdir -p hardening
none="-g0 -fPIC -fno-asynchronous-unwind-tables -fno-stack-protector -fno-stack-clash-protection"

make() { # processor, level, name, flags
  $1-gcc -$2 $none $4 -c hardening.c -o hardening/${1%%-*}-$2-$3.o
  $1-strip --strip-debug hardening/${1%%-*}-$2-$3.o
}

for level in O0 O2; do
  for processor in aarch64-linux-gnu arm-linux-gnueabihf; do
    make $processor $level plain ""
    make $processor $level stack -fstack-protector-strong
  done
  make aarch64-linux-gnu $level branches -mbranch-protection=standard
  make aarch64-linux-gnu $level returns "-mbranch-protection=pac-ret -march=armv8.3-a"
  make arm-linux-gnueabihf $level probes -fstack-clash-protection
done

frames() { # width, name, flags
  clang -O2 -m$1 $none $3 -c frames.c -o hardening/clang-$1-$2.o
  strip --strip-debug hardening/clang-$1-$2.o
}

for width in 64 32; do
  frames $width plain ""
  frames $width probes -fstack-clash-protection
done
