#!/bin/bash
# Usage: setup_user.sh
# Set-up without root on Debian and Ubuntu: downloads g++ and the libraries with all that they need, and unpacks them into
# .local/, 1 GB. .local/compiler/g++ is a g++ that finds them; .local/activate puts it first on PATH.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/apt_folder.sh
fail() { echo "setup-user: $*" >&2; exit 1; }
for tool in apt-get dpkg python3; do
  command -v $tool >/dev/null || fail "needs $tool, and there is none; MACHINES.md says what to do on a cluster"
done

here=$PWD/.local
if [ ! -e .local/activate ]; then
  echo "setup-user: downloading g++, CLI11 and Boost.Context into .local, which needs 1 GB"
  rm -rf .local
  mkdir -p .local/compiler
  apt_folder "$here/apt"
  apt-get "${apt[@]}" update || fail "apt-get update failed (see above); a proxy is set with http_proxy"
  gxx=$(apt-cache "${apt[@]}" pkgnames g++- | grep -xE 'g\+\+-1[2-5]' | sort -V | tail -n 1)
  [ -n "$gxx" ] || fail "this distribution has no g++ 12 or newer"
  apt-get "${apt[@]}" install --download-only -y --no-install-recommends "$gxx" libcli11-dev libboost-context-dev >/dev/null ||
    fail "apt-get could not download them (see above)"
  for folder in bin sbin lib lib64; do # where / and /usr are one
    mkdir -p .local/usr/$folder
    ln -sfn usr/$folder .local/$folder
  done
  for package in .local/apt/archives/*.deb; do dpkg-deb --fsys-tarfile "$package" | tar -x -C .local --keep-directory-symlink; done
  rm -rf .local/apt .local/etc .local/usr/share .local/var
  rm -f .local/usr/lib/*/libboost_context.so # programs shall not need it later: the archive is linked
  triplet=$(basename "$(dirname .local/usr/lib/*/libc.so)")
  for tool in g++ ar as ld nm objcopy; do
    command=$triplet-$tool options=
    [ $tool != g++ ] || command=$triplet-$gxx options="--sysroot='$here'"
    cat >.local/compiler/$tool <<EOF
#!/bin/sh
PATH='$here/compiler':"\$PATH" LD_LIBRARY_PATH='$here/usr/lib/$triplet' exec '$here/usr/bin/$command' $options "\$@"
EOF
    chmod +x .local/compiler/$tool
  done
  echo "export PATH='$here/compiler':\"\$PATH\"" >.local/activate
fi
echo "#include <CLI/CLI.hpp>" | .local/compiler/g++ -std=c++17 -fsyntax-only -x c++ - || fail ".local/compiler/g++ does not work (see above)"
echo "setup-user: ready; in each new shell, type first: source .local/activate"
