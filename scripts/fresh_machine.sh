#!/bin/bash
# Usage: fresh_machine.sh bookworm|trixie|forky|jammy|noble [COMMAND ...]
# Makes a fresh Debian 12, 13 or 14, Ubuntu 22.04 or 24.04 with debootstrap, clones HEAD into it and runs the README's two
# commands there as an ordinary user who may use sudo, or those that are given (each one argument, such as
# 'make test FULL=1'). Needs root and the network.
#   FOLDER=dir       where the machine is made and kept, with a new clone each time; default: in /var/tmp, and deleted
#   MIRROR=url       where the distribution's packages come from
#   ARCH=arm64       for another processor, which QEMU emulates; first: apt-get install qemu-user-static binfmt-support.
#                    QEMU 7.2 takes more memory than machines have for the addresses that the CPU device reserves; 10.0 works
#   PACKAGES='a b'   more packages: with PACKAGES=g++-13 trixie compiles with Ubuntu 24.04's g++, and with
#                    PACKAGES='g++ g++-13' FULL=1 compiles with both
# The new machine uses this machine's proxy and certificate authority (http_proxy, PIP_..., ca-certificates.crt) too.
set -euo pipefail
refuse() { echo "fresh_machine: $*" >&2; exit 2; }

distribution=${1:-}
arch=${ARCH:-$(dpkg --print-architecture 2>/dev/null || true)}
case $distribution in
  bookworm | trixie | forky) mirror=http://deb.debian.org/debian components=main script=sid ;;
  jammy | noble)
    mirror=http://archive.ubuntu.com/ubuntu components=main,universe script=gutsy
    [ "$arch" = amd64 ] || mirror=http://ports.ubuntu.com/ubuntu-ports ;;
  *) refuse "'$distribution' is not a distribution that is known here; say bookworm, trixie, forky, jammy or noble." ;;
esac
shift
[ $# -gt 0 ] || set -- 'make run' 'make test'
mirror=${MIRROR:-$mirror}
[ "$(id -u)" -eq 0 ] || refuse "making a machine needs root; say sudo $0 $distribution."
for tool in debootstrap unshare git dpkg; do
  command -v $tool >/dev/null || refuse "$tool is missing; install it with apt-get install debootstrap util-linux git."
done
scripts=${DEBOOTSTRAP_DIR:-/usr/share/debootstrap}/scripts
[ -e "$scripts/$distribution" ] && script=$scripts/$distribution || script=$scripts/$script # an old debootstrap

repository=$(git -C "$(dirname "$0")" rev-parse --show-toplevel)
if [ -n "${FOLDER:-}" ]; then
  mkdir -p "$FOLDER" && machine=$(realpath "$FOLDER")
else
  machine=$(mktemp -d "/var/tmp/fresh_$distribution.XXXXXX")
fi
# All mounts are in namespaces of their own, which end with the processes in them; rm would leave a mount alone all the same.
clean() { [ -n "${FOLDER:-}" ] || rm -rf --one-file-system "$machine"; }
trap clean EXIT
trap 'exit 130' INT TERM HUP

if [ ! -e "$machine/.made" ]; then
  [ -z "$(ls -A "$machine")" ] || refuse "$machine is neither empty nor a machine that was made here; name another FOLDER."
  echo "fresh_machine: making $distribution for $arch from $mirror in $machine"
  log=$machine.debootstrap.log packages="git make ca-certificates sudo ${PACKAGES:-}"
  unshare --mount debootstrap --arch="$arch" --variant=minbase --components=$components --include="$(echo $packages | tr ' ' ,)" \
    "$distribution" "$machine" "$mirror" "$script" >"$log" 2>&1 ||
    { tail -n 5 "$log" >&2; refuse "debootstrap failed (its last lines are above, all of them in $log)."; }
  rm "$log"
  chroot "$machine" useradd --create-home --home-dir /srv/student --shell /bin/bash student
  echo 'student ALL=(ALL) NOPASSWD: ALL' >"$machine/etc/sudoers.d/student"
  touch "$machine/.made"
fi
cat /etc/ssl/certs/ca-certificates.crt >"$machine/etc/ssl/certs/ca-certificates.crt"
cat /etc/resolv.conf >"$machine/etc/resolv.conf"
echo "127.0.0.1 localhost $(uname -n)" >"$machine/etc/hosts"
course=/srv/course
rm -rf "$machine$course"
git clone -q "file://$repository" "$machine$course"
chroot "$machine" chown -R student: "$course"
echo "fresh_machine: $distribution with $(git -C "$repository" log -1 --format='%h, "%s"')"

# Runs with its own /proc, pseudo-terminals and shared memory. The bash that waits is process 1, which no Ctrl-C ends.
inside() { # inside COMMAND
  env -i HOME=/srv/student USER=student LANG=C.UTF-8 TERM="${TERM:-dumb}" PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    PIP_CERT=/etc/ssl/certs/ca-certificates.crt $(env | grep -iE '^(https?_proxy|no_proxy|PIP_INDEX_URL)=' || true) \
    unshare --mount --pid --fork --kill-child bash -c '
      mount -t proc proc "$0/proc" && mount -t tmpfs tmpfs "$0/dev/shm" &&
      mount -t devpts -o newinstance,ptmxmode=0666 devpts "$0/dev/pts" && exec chroot --userspec=student:student "$0" bash -c "cd $1 && $2; exit"' \
    "$machine" "$course" "$1" </dev/null
}

said=() failed=0
for command; do
  echo "fresh_machine: $command"
  SECONDS=0 verdict=passed
  inside "$command" || { verdict="FAILED with exit code $?" failed=1; }
  said+=("$(printf '%s: %s after %d min %02d s: %s' $distribution "$verdict" $((SECONDS / 60)) $((SECONDS % 60)) "$command")")
done
printf '%s\n' "" "${said[@]}"
exit $failed
