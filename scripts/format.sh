#!/bin/bash
# Usage: format.sh -i (rewrites) | --dry-run (only says what differs, the default)
# Formats every C++ and CUDA file with clang-format 14, except those whose odd layout tests the translator.
cd "$(dirname "$0")/.." || exit 2
for tool in .venv/bin/clang-format clang-format-14 clang-format; do
  if $tool --version 2>/dev/null | grep -q 'version 14\.'; then
    find . \( -name '.?*' -o -name build -o -path ./my -o -path ./simt/tests/translate \) -prune -o -type f \
      \( -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' \) -print0 | xargs -0 "$tool" --Werror "${@:---dry-run}"
    exit
  fi
done
echo "clang-format 14 is not here, and other versions format differently: scripts/setup.sh test installs it into .venv." >&2
exit 3
