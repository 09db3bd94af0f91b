# Read by the setup.sh of each editor. What comes over a network is asked for again before it is given up: three
# times, ten seconds apart and then thirty.

# again WHAT COMMAND...: runs a command until it goes well.
again() {
    what=$1
    shift
    for pause in 10 30 0; do
        if "$@"; then return 0; fi
        if [ "$pause" = 0 ]; then break; fi
        echo "$what: that failed; once more in $pause s ..." >&2
        sleep "$pause"
    done
    echo "$what: failed three times. Is the network there? What is missing can be installed by hand; then run this again." >&2
    return 1
}

# debian PACKAGE...: installs Debian packages, where we may.
debian() {
    if [ "$(id -u)" = 0 ]; then as_root=""; else as_root="sudo"; fi
    again "apt-get update" $as_root apt-get -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 update -qq
    again "installing $*" $as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 \
        -o Acquire::Retries=3 install -y -qq --no-install-recommends "$@" >/dev/null
}
