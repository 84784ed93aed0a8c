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

# Another program may hold apt's locks, of packages or of lists: wait for it, up to ten minutes.
patiently() {
    for _ in $(seq 60); do
        if output=$($as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq "$@" 2>&1); then
            return 0
        fi
        case "$output" in
            *"Could not get lock"* | *"Unable to lock"*) sleep 10 ;;
            *) return 1 ;;
        esac
    done
    return 1
}

install() {
    patiently install -y --no-install-recommends chromium
}

echo "Installing Debian's Chromium for the tests of the page ..."
# The lists of packages may be missing, or older than the packages.
install || { patiently update && install; } || {
    echo "$output" >&2
    give_up "apt-get could not install it (see above)"
}
