#!/bin/bash
# Usage: libraries.sh FOLDER
# Boost.Context for 64-bit Arm, out of this distribution's package. apt-get gets folders of its own, so that this
# machine keeps its one architecture.
set -euo pipefail
mkdir -p "$1" && folder=$(realpath "$1")
[ ! -e "$folder/libboost_context.a" ] || exit 0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
mkdir -p lists/partial cache/archives/partial
touch status
options=(-qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User=root)
options+=(-o "Dir::State::Lists=$work/lists" -o "Dir::State::Status=$work/status" -o "Dir::Cache=$work/cache")
apt-get "${options[@]}" update
package=$(apt-cache "${options[@]}" depends libboost-context-dev | sed -n 's/.*Depends: \(libboost-context.*-dev\).*/\1/p')
apt-get "${options[@]}" download "$package"
dpkg -x ./*.deb files
cp files/usr/lib/aarch64-linux-gnu/libboost_context.a "$folder"
