#!/bin/bash
# Usage: check_archs.sh 80 90a ... ; says which of them nvcc cannot compile for; exit 1 then.
codes=$("$NVCC" --list-gpu-code) || exit 1
for arch in "$@"; do
  grep -qx "sm_${arch%[af]}" <<<"$codes" && continue
  echo "ARCHS: nvcc $("$NVCC" --version | grep -o 'release [0-9.]*') has no sm_$arch; it has $(sort -V <<<"${codes//sm_/}" | xargs)." >&2
  exit 1
done
