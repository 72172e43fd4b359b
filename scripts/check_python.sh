#!/bin/bash
# Usage: check_python.sh [pytest's options]
# Builds the Python package for this machine's GPU and runs its PyTorch tests, the documents' programs and tiny models
# on it, several files at a time; then prints and stores what one eager call takes the host.
#
# $PYTHON (python3) must have PyTorch with CUDA, and what requirements.txt and requirements-torch.txt name. Without a
# network, WHEELS=folder gives what is missing: it goes into an environment of its own in build/, beside all that
# $PYTHON has.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
"$python" -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null ||
  { echo "check_python: $python has no PyTorch that can use a GPU; say which one has, as in PYTHON=path/to/python" >&2; exit 1; }
mkdir -p build/check_python

if [ -n "${WHEELS:-}" ]; then
  environment=$PWD/build/check_python/environment
  "$python" -m venv --without-pip "$environment"
  seen='import site; print(*[f"import site; site.addsitedir({path!r})" for path in [*site.getsitepackages(),
                                                            site.getusersitepackages()]], sep="\n")'
  "$python" -c "$seen" >"$(echo "$environment"/lib/python3*/site-packages)/of_python.pth"
  python=$environment/bin/python PATH=$environment/bin:$PATH
  "$python" -m pip install --quiet --no-index --no-deps --disable-pip-version-check "$WHEELS"/*.whl
fi

# One name for this run, by which the first of the processes installs the package for all.
export BACKEND=cuda TORCH=1 PYTHONPATH=$PWD/tests:$PWD/tests/python:$PWD/tools${PYTHONPATH:+:$PYTHONPATH} PYTEST_XDIST_TESTRUNUID=$$
"$python" -c 'import python_package; python_package.install()'
processes=()
for test in python_torch python_compilers python_suites document_programs tiny_models; do
  "$python" -m pytest -q -p no:cacheprovider "$@" "tests/python/test_$test.py" >"build/check_python/$test.log" 2>&1 &
  processes+=($!)
done
failed=0
for process in "${processes[@]}"; do wait "$process" || failed=1; done
for log in build/check_python/*.log; do
  echo "$log: $(tail -n 1 "$log")"
  grep -E '^(FAILED|ERROR)' "$log" || true
done
[ $failed = 0 ] || { echo "check_python: a test failed; the logs say why" >&2; exit 1; }
PYTHONPATH=$PWD/build/python_package/cuda/site:$PYTHONPATH "$python" bench/norm/host_time.py
