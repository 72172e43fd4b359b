#!/bin/bash
# Usage: test_and_benchmark_layernorm.sh [options of benchmark_layernorm.py]
# The document's script: tests all kernels, then times its grid before and after, in one table. $PYTHON (python3) must have
# PyTorch, pytest and the package of python/.
set -euo pipefail
cd "$(dirname "$0")"
python=${PYTHON:-python3}
"$python" -m pytest -q -p no:cacheprovider test_layernorm.py
"$python" benchmark_layernorm.py --grid --num-iters 12 "$@"
