#!/bin/bash
# Usage: check_python.sh [pytest's options]
# Builds the Python package for this machine's GPU and runs its PyTorch tests, the documents' programs and tiny models
# on it; then prints and stores what one eager call takes the host. $PYTHON (python3) must have PyTorch with CUDA, and
# what requirements.txt and requirements-torch.txt name.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
"$python" -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null ||
  { echo "check_python: $python has no PyTorch that can use a GPU; say which one has, as in PYTHON=path/to/python" >&2; exit 1; }
# Without conftest.py's hooks, which build the course's programs.
export BACKEND=cuda TORCH=1 PYTHONPATH=$PWD/tests:$PWD/tools${PYTHONPATH:+:$PYTHONPATH}
"$python" -m pytest --noconftest -q "$@" tests/test_python_torch.py tests/test_python_suites.py \
  tests/test_document_programs.py tests/test_end_to_end.py
PYTHONPATH=$PWD/build/python_package/cuda/site:$PYTHONPATH "$python" bench/host_time.py
