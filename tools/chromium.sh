#!/bin/sh
# Installs Debian's Chromium, in which the page is tested, unless a Chromium is there already.
set -eu

for program in chromium chromium-browser google-chrome; do
    if command -v "$program" >/dev/null; then
        exit 0
    fi
done

give_up() {
    echo "The page is tested in Chromium, and $1." >&2
    echo "Install it by hand (on Debian: apt-get install chromium) and run make test again." >&2
    exit 1
}

command -v apt-get >/dev/null || give_up "this system has no apt-get to install it with"
if [ "$(id -u)" -eq 0 ]; then
    as_root=""
elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
    as_root="sudo -n"
else
    give_up "installing it needs root, or sudo without a password"
fi

install() {
    $as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y --no-install-recommends -qq chromium >/dev/null
}

echo "Installing Debian's Chromium for the tests of the page ..."
install 2>/dev/null || {
    # The lists of packages may be missing, or older than the packages.
    $as_root apt-get update -qq && install
} || give_up "apt-get could not install it (see above)"
