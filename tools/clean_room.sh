#!/bin/sh
# Runs a command with an empty HOME and an empty TMPDIR, which are removed afterwards, so that
# nothing an earlier run left behind decides. Paths are short: sockets lie in them.
set -u

room=$(mktemp -d /tmp/gk.XXXXXX) || exit 1
trap 'rm -rf "$room"' EXIT
mkdir "$room/home" "$room/tmp"
# As /tmp is: some tests read their files as another user.
chmod 755 "$room" && chmod 1777 "$room/tmp"
HOME="$room/home" TMPDIR="$room/tmp" "$@"
