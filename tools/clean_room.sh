#!/bin/sh
# Runs a command with an empty HOME and an empty TMPDIR, which are removed afterwards, so that
# nothing an earlier run left behind decides. Paths are short: sockets lie in them.
set -u

room=$(mktemp -d /tmp/gk.XXXXXX) || exit 1
trap 'rm -rf "$room"' EXIT
mkdir "$room/home" "$room/tmp"
HOME="$room/home" TMPDIR="$room/tmp" "$@"
