#!/bin/bash
# Usage: check_python.sh [pytest's options]
# Builds the Python package for this machine's GPU and runs its PyTorch tests on it. $PYTHON (python3) must have PyTorch
# with CUDA, and what requirements.txt and requirements-torch.txt name.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
"$python" -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null ||
  { echo "check_python: $python has no PyTorch that can use a GPU; say which one has, as in PYTHON=path/to/python" >&2; exit 1; }
# Without conftest.py's hooks, which build the course's programs.
BACKEND=cuda PYTHONPATH=tests exec "$python" -m pytest --noconftest -q tests/test_python_torch.py "$@"
