#!/bin/bash
# Usage: gpu_check.sh [DIRECTORY]
# Builds and checks everything on a machine with a GPU: the ladder with its timings, each stage's own program, the
# mutants, and compute-sanitizer's four tools on every stage. Results, logs and the environment go to DIRECTORY
# (default profiling_results/<gpu>). Exit 0 only if nothing failed. Changes no setting of the GPU.
set -uo pipefail
here=$PWD
cd "$(dirname "$0")/.."
fail() { echo "gpu_check: $*" >&2; exit 2; }

gpu=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -1)
[ -n "$gpu" ] || fail "nvidia-smi shows no GPU on this machine; make test checks everything on the CPU device instead"
export NVCC=${NVCC:-$(command -v nvcc || echo "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc")}
[ -x "$NVCC" ] || fail "no nvcc on PATH, in \$CUDA_HOME/bin or in /usr/local/cuda/bin; install NVIDIA's CUDA toolkit"
sanitizer=$(command -v compute-sanitizer || ls "$(dirname "$NVCC")/compute-sanitizer" 2>/dev/null || true)

slug=$(tr '[:upper:]' '[:lower:]' <<<"${gpu#NVIDIA }" | sed 's/[^a-z0-9]\+/-/g; s/^-\|-$//g')
out=${1:-profiling_results/$slug}
[[ -z ${1:-} || $out == /* ]] || out=$here/$out
mkdir -p "$out/logs" && : >"$out/summary.txt" || fail "cannot write to $out"
out=$(cd "$out" && pwd)

# step NAME COMMAND... : runs it with its output in logs/NAME.log and notes ok, FAILED or skipped (exit 77).
step() {
  local name=$1 verdict start=$SECONDS rc
  shift
  "$@" >"$out/logs/$name.log" 2>&1 </dev/null
  rc=$?
  case $rc in 0) verdict=ok ;; 77) verdict=skipped ;; 124) verdict="FAILED (timeout)" ;; *) verdict="FAILED (exit $rc)" ;; esac
  printf '%-32s %-18s %4d s\n' "$name" "$verdict" $((SECONDS - start)) | tee -a "$out/summary.txt"
  [[ $rc -eq 0 || $rc -eq 77 ]]
}
# The same beside others, six at a time.
together() {
  while [ "$(jobs -rp | wc -l)" -ge 6 ]; do wait -n; done
  step "$@" &
}
# sanitize TOOL PROGRAM... : under compute-sanitizer, where it is.
sanitize() {
  [ -n "$sanitizer" ] || return 77
  timeout 300 "$sanitizer" --tool "$1" --error-exitcode 99 "${@:2}"
}
# The unit tests of common/, where doctest is.
unit_tests() {
  scripts/check_tools.sh doctest || return 77
  make -j"$(nproc)" BACKEND=cuda tests/cpp/program && timeout 300 build/cuda/tests/cpp/common_test
}
# mutant PROGRAM NAME REASON : right when it is rejected (exit 1) and the rejection says REASON.
mutant() {
  local said rc
  said=$(timeout 300 "$1" --mutant "$2" 2>&1)
  rc=$?
  echo "$said"
  [[ $rc -eq 1 && $said == *"$3"* ]] && return 0
  [ $rc -eq 77 ] && return 77
  echo "exit code $rc; wanted a rejection (exit code 1) that says '$3'"
  return 1
}

{
  date -u '+date: %Y-%m-%d %H:%M UTC'
  echo "commit: $(git rev-parse --short HEAD 2>/dev/null || echo unknown)$(git diff --quiet HEAD 2>/dev/null || echo ' and local changes')"
  nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.sm,clocks.mem,clocks.max.sm,clocks.max.mem,power.limit,persistence_mode --format=csv
  "$NVCC" --version | tail -2
  g++ --version | head -1
  uname -sr
} >"$out/environment.txt"

ladder=assignment1/rms_norm/matrix
step build make -j"$(nproc)" BACKEND=cuda $ladder/program $ladder/mutants/program \
  $(printf '%s/program ' $ladder/[0-9]*) || { tail -20 "$out/logs/build.log"; exit 1; }

bin=build/cuda/$ladder
step ladder timeout 300 $bin/rms_norm_matrix_test --csv "$out/rms_norm_matrix.csv" # alone, since it is timed
cp "$out/logs/ladder.log" "$out/rms_norm_matrix.txt"
step unit-tests unit_tests

[ -n "$sanitizer" ] || echo "no compute-sanitizer on PATH or beside nvcc: its four tools are skipped"
for program in $bin/[0-9]*/rms_norm_test; do
  stage=$(basename "$(dirname "$program")")
  together "stage-$stage" timeout 300 "$program" --no-timing
  for tool in memcheck racecheck initcheck synccheck; do
    together "$tool-$stage" sanitize $tool "$program" --rows 3 --cols 1025 --no-timing
  done
done
while IFS=$'\t' read -r name _ reason _; do
  together "mutant-$name" mutant $bin/mutants/rms_norm_mutants "$name" "$reason"
done < <($bin/mutants/rms_norm_mutants --list | tail -n +2 | sed 's/  \+/\t/g')
wait

sort -o "$out/summary.txt" "$out/summary.txt"
echo
cat "$out/environment.txt" "$out/rms_norm_matrix.txt"
echo
awk -v out="$out" '
  { verdicts[$2]++ }
  $2 == "FAILED" { print "failed: " $1 ", see logs/" $1 ".log" }
  END { printf "%s: %d ok, %d failed, %d skipped\n", out, verdicts["ok"], verdicts["FAILED"], verdicts["skipped"]
        exit verdicts["FAILED"] > 0 }' "$out/summary.txt"
