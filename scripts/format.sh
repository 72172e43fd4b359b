#!/bin/bash
# Usage: format.sh -i (rewrites) | --dry-run (only says what differs, the default)
# Formats every C++ and CUDA file with clang-format 14, except those whose odd layout tests the translator, and every
# Python file with ruff, which also says what is wrong with it (pyproject.toml).
cd "$(dirname "$0")/.." || exit 2
tool() { # tool NAME VERSION NAMES... : the first of the names that is of this version
  local name
  for name in ".venv/bin/$1" "${@:3}"; do
    "$name" --version 2>/dev/null | grep -qF " $2" && echo "$name" && return
  done
  echo "format: $1 $2 is not here, and other versions format differently: scripts/setup.sh test installs it into .venv." >&2
  exit 3
}
clang_format=$(tool clang-format 'version 14.' clang-format-14 clang-format) || exit
ruff=$(tool ruff "$(sed -n 's/^ruff==//p' requirements.txt)" ruff) || exit

failed=0
find . \( -name '.?*' -o -name build -o -path ./my -o -path ./simt/tests/translate \) -prune -o -type f \
  \( -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' \) -print0 |
  xargs -0 "$clang_format" --Werror "${1:---dry-run}" || failed=1
if [ "${1:-}" = -i ]; then
  "$ruff" check --quiet --fix && "$ruff" format --quiet
else
  "$ruff" check --quiet && "$ruff" format --quiet --check
fi || failed=1
exit $failed
