#!/bin/bash
# Usage: setup.sh start|run|test|plots|site|nvcc
# Installs what is missing on Debian or Ubuntu and says what and why first: packages through apt-get, Python's into .venv.
# Quick and silent when all is there.
set -euo pipefail
cd "$(dirname "$0")/.."
goal=${1:-run}
fail() { echo "setup: $*" >&2; exit 1; }
# The Python packages only draw the plot of make run: it goes on without them.
fail_python() {
  [ "$goal" = run ] || fail "$*"
  echo "setup: $*; going on without the plot" >&2
  exit 0
}

has_gcc12() { gcc12 >/dev/null; }
gcc12() {
  local c v
  for c in ${CXX:-} g++ g++-15 g++-14 g++-13 g++-12; do
    v=$($c -dumpversion 2>/dev/null) && [ "${v%%.*}" -ge 12 ] && echo "$c" && return
  done
  return 1
}
# The compiler knows its own folders, and those of CPATH. Before there is one, only the usual place can be looked at.
has_header() {
  local gxx
  if gxx=$(gcc12); then "$gxx" -E -P -x c++ - <<<"#include <$1>" >/dev/null 2>&1; else [ -e "/usr/include/$1" ]; fi
}
no_ccache=build/no-ccache # written if ccache could not be installed, so that setup tries only once
has_ccache() { [ -e $no_ccache ] || command -v ccache >/dev/null; }
can_install() { command -v apt-get >/dev/null && { [ "$(id -u)" -eq 0 ] || sudo -n true 2>/dev/null; }; }
with_torch() { [ "$goal" = test ] && [ -n "${TORCH:-}" ] && [ "$TORCH" != 0 ]; }
has_python_h() { python3 -c 'import os, sysconfig; os.stat(sysconfig.get_path("include") + "/Python.h")' 2>/dev/null; }
with_nvcc() {
  [ "$goal" = nvcc ] || { [ "$goal" = test ] && [ -n "${FULL:-}" ] && [ "$FULL" != 0 ] && ! has_nvcc; }
}
has_nvcc() { command -v nvcc >/dev/null || [ -x "${CUDA_HOME:-}/bin/nvcc" ] || [ -x /usr/local/cuda/bin/nvcc ]; }
has_venv() { [ -x .venv/bin/python ] || python3 -c 'import ensurepip, venv' 2>/dev/null; }

packages=()
need() { # need PACKAGE WHY : after a failed check
  [ ${#packages[@]} -gt 0 ] || echo "setup: this machine lacks"
  printf '  %-22s %s\n' "$1" "$2"
  packages+=("$1")
}
check() {
  packages=()
  command -v python3 >/dev/null || need python3 "translates CUDA launches for the CPU device, draws the plot, runs the tests"
  [ "$goal" = start ] || has_venv || need python3-venv "holds the Python packages of requirements.txt in .venv"
  [ "$goal" != plots ] || return 0
  has_gcc12 || need g++ "compiles the CPU device and the programs (12 or newer)"
  has_header CLI/CLI.hpp || need libcli11-dev "parses the programs' options"
  has_header boost/context/detail/fcontext.hpp || need libboost-context-dev "switches between CUDA threads on the CPU device"
  [ "$goal" = test ] || return 0
  command -v ps >/dev/null || need procps "lists processes, in the tests of what simtcc leaves behind"
  has_header doctest/doctest.h || need doctest-dev "runs the C++ unit tests"
  ! with_torch || has_python_h || need python3-dev "compiles what torch.compile writes, in the tests with PyTorch"
}

# What is missing on the disk is said before a compiler or pip finds out.
needs_disk() { # needs_disk FOLDER MEGABYTES WHAT [ADVICE]
  local free
  free=$(df -Pm "$1" 2>/dev/null | awk 'NR == 2 { print $4 }')
  [ "${free:-$2}" -ge "$2" ] || fail "$free MB are free in $1, and $3 needs $2 MB${4:+; $4}"
}
temporary=${TMPDIR:-/tmp}
[ -d "$temporary" ] || temporary=/tmp
needs_disk "$temporary" 50 "a compiler" "TMPDIR=folder names another place for temporary files"
[ -e build/simt/libsimt.a ] || needs_disk . 300 "what make builds"
[ "$goal" = start ] || [ -e .venv/installed.txt ] || needs_disk . 800 "what make builds, with the Python packages"

check
! command -v python3 >/dev/null || python3 -c 'import sys; sys.exit(sys.version_info < (3, 9))' ||
  fail "python3 is $(python3 --version | cut -d" " -f2), and 3.9 or newer is needed first on PATH"
# ccache only saves time: it is installed with other packages or if no password is needed, and this may fail.
wished=()
if [ "$goal" = test ] && ! has_ccache && { [ ${#packages[@]} -gt 0 ] || can_install; }; then
  need ccache "keeps compiled files, so that a second build is quicker (optional)"
  unset 'packages[-1]'
  wished=(ccache)
fi
if [ $((${#packages[@]} + ${#wished[@]})) -gt 0 ]; then
  # If the default g++ is older than 12, a newer one goes beside it.
  version_of() { apt-cache policy "$1" 2>/dev/null | sed -n 's/^  Candidate: \([0-9]*:\)\?//p'; }
  choose_gxx() {
    local i v
    for i in "${!packages[@]}"; do
      [ "${packages[i]}" = g++ ] || continue
      v=$(version_of g++)
      [ "${v%%.*}" -ge 12 ] 2>/dev/null || [ -z "$v" ] || packages[i]=g++-12
    done
    by_hand="apt-get update && apt-get install ${packages[*]}"
  }
  command -v apt-get >/dev/null || fail "there is no apt-get here; install what Debian and Ubuntu call ${packages[*]}, or see MACHINES.md"
  choose_gxx
  as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || fail "neither root nor sudo; as root: $by_hand; without root: make setup-user"
    as_root=(sudo)
    [ -t 0 ] || sudo -n true 2>/dev/null || fail "sudo asks for a password; type: sudo ${by_hand/&& /&& sudo }; without root: make setup-user"
  fi
  echo "setup: installing through apt-get"
  # sudo forgets the proxy.
  mapfile -t proxies < <(env | grep -iE '^(https?|ftp|no)_proxy=')
  apt() { "${as_root[@]}" env "${proxies[@]}" DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=120 "$@" >/dev/null; }
  install() { apt install -y --no-install-recommends "$@"; }
  apt update || [ ${#packages[@]} -eq 0 ] || fail "apt-get update failed (see above); by hand: $by_hand"
  choose_gxx
  [ ${#packages[@]} -eq 0 ] || install "${packages[@]}" || fail "apt-get install failed (see above); by hand: $by_hand"
  if [ ${#wished[@]} -gt 0 ] && ! install "${wished[@]}"; then
    echo "setup: ccache could not be installed (see above); going on without it"
    mkdir -p build && touch $no_ccache
  fi
  check
  [ ${#packages[@]} -eq 0 ] || fail "still missing after apt-get install: ${packages[*]}; install it by hand"
fi

# The CPU device, so that a first compilation does not wait for it.
if [ "$goal" != plots ] && [ "$goal" != site ]; then
  device() { env -u MAKEFLAGS -u MFLAGS make -s -C simt CXX="$(gcc12)" "$@"; }
  device -q || {
    echo "setup: building the CPU device, which takes a minute or two"
    device -j"$(python3 -B simt/driver/jobs.py)"
  }
fi

[ "$goal" != start ] || exit 0
if ! { [ -x .venv/bin/python ] && .venv/bin/python -c '' && cmp -s requirements.txt .venv/installed.txt; } 2>/dev/null; then
  echo "setup: installing pytest, clang-format, ruff, NumPy, matplotlib and ncu-report into .venv (requirements.txt)"
  [ -x .venv/bin/python ] && .venv/bin/python -c '' 2>/dev/null || { rm -rf .venv; python3 -m venv .venv; } ||
    fail_python "python3 -m venv failed (see above); install python3-venv by hand"
  .venv/bin/python -m pip install --quiet --disable-pip-version-check -r requirements.txt ||
    fail_python "pip could not install requirements.txt (see above); by hand: .venv/bin/pip install -r requirements.txt"
  cp requirements.txt .venv/installed.txt
fi

if [ "$goal" = site ] && ! cmp -s tools/site/requirements.txt .venv/installed_site.txt; then
  echo "setup: installing Zensical, which makes the pages of the site, into .venv (tools/site/requirements.txt)"
  .venv/bin/python -m pip install --quiet --disable-pip-version-check -r tools/site/requirements.txt ||
    fail "pip could not install it (see above); by hand: .venv/bin/pip install -r tools/site/requirements.txt"
  cp tools/site/requirements.txt .venv/installed_site.txt
fi

if with_torch && ! cmp -s requirements-torch.txt .venv/installed_torch.txt; then
  echo "setup: installing PyTorch and transformers into .venv (requirements-torch.txt), which needs 5 GB, and 8 while it lasts"
  .venv/bin/python -m pip install --quiet --no-compile --no-cache-dir --disable-pip-version-check -r requirements-torch.txt ||
    fail "pip could not install requirements-torch.txt (see above); by hand: .venv/bin/pip install -r requirements-torch.txt"
  cp requirements-torch.txt .venv/installed_torch.txt
fi

if with_nvcc && ! cmp -s requirements-nvcc.txt .venv/installed_nvcc.txt; then
  echo "setup: installing nvcc into .venv (requirements-nvcc.txt), which needs 200 MB: the tests compile for GPUs, too"
  .venv/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-nvcc.txt ||
    fail "pip could not install requirements-nvcc.txt (see above); by hand: .venv/bin/pip install -r requirements-nvcc.txt"
  ln -sfn lib "$(dirname .venv/lib/python3*/site-packages/nvidia/cu13/lib)/lib64" # where nvcc looks for what it links
  cp requirements-nvcc.txt .venv/installed_nvcc.txt
fi
