#!/bin/bash
# Usage: libraries.sh FOLDER
# Boost.Context for 64-bit Arm, out of this distribution's package. apt-get gets folders of its own, so that this
# machine keeps its one architecture.
set -euo pipefail
source "$(dirname "$0")/../../../scripts/apt_folder.sh"
mkdir -p "$1" && folder=$(realpath "$1")
[ ! -e "$folder/libboost_context.a" ] || exit 0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
apt_folder "$work/apt"
apt+=(-o APT::Architecture=arm64 -o APT::Architectures=arm64)
apt-get "${apt[@]}" update
package=$(apt-cache "${apt[@]}" depends libboost-context-dev | sed -n 's/.*Depends: \(libboost-context.*-dev\).*/\1/p')
apt-get "${apt[@]}" download "$package"
dpkg -x ./*.deb files
cp files/usr/lib/aarch64-linux-gnu/libboost_context.a "$folder"
