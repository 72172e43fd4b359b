#!/bin/bash
# Usage: nvcc_for_wheels.sh FOLDER REPOSITORY
# Installs the compiler of requirements-nvcc.txt into a folder, where .github/workflows/wheels.yml builds for CUDA.
set -euo pipefail
python=$(command -v /opt/python/cp312-cp312/bin/python || command -v python3)
"$python" -m pip install --quiet --disable-pip-version-check --target "$1" -r "$2/requirements-nvcc.txt"
ln -sfn lib "$1/nvidia/cu13/lib64" # where nvcc looks for what it links
chmod -R +x "$1/nvidia/cu13/bin" "$1/nvidia/cu13/nvvm/bin"
"$1/nvidia/cu13/bin/nvcc" --version
