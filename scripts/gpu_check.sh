#!/bin/bash
# Usage: gpu_check.sh [DIRECTORY [PART...]]
# Builds and checks everything on a machine with a GPU, or the PARTs that are named:
#   bench    make bench
#   profile  make profile S=all
#   counts   the CPU device's counts beside Nsight Compute's
#   header   the production headers' tests, and compute-sanitizer's tools on them
#   stages   every ladder's stages, each by its own program and under compute-sanitizer, controls, mutants; unit tests
#   W2L1     the same of one ladder; python3 -m ladder list names them
# Results and gpu_check.txt (each part's latest outcome) go to DIRECTORY (default profiling_results/<gpu>), logs to its
# folder logs/. The exit code is 0 only if nothing failed. It changes no setting of the GPU.
set -uo pipefail
here=$PWD
cd "$(dirname "$0")/.." || exit 1
fail() { echo "gpu_check: $*" >&2; exit 2; }

export PYTHONPATH=$PWD/tools
ladder() { python3 -B -m ladder "$@"; }
listed=$(ladder list --programs) || fail "the ladders cannot be read, see above"
ids=$(cut -d / -f 1 <<<"$listed" | sort -u | tr '\n' ' ')
all="bench profile counts header stages"
parts=${*:2}
for part in $parts; do
  [[ " $all $ids" == *" $part "* ]] || fail "there is no part '$part'; the parts are $all, and the ladders $ids"
done
wanted() { [[ " ${parts:-$all} " == *" $1 "* ]]; }
! wanted stages || parts="${parts:-$all} $ids"

gpu=$(nvidia-smi -i 0 --query-gpu=name --format=csv,noheader 2>/dev/null)
[ -n "$gpu" ] || fail "nvidia-smi shows no GPU on this machine; make test checks everything on the CPU device instead"
export NVCC=${NVCC:-$(command -v nvcc || echo "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc")}
[ -x "$NVCC" ] || fail "no nvcc on PATH, in \$CUDA_HOME/bin or in /usr/local/cuda/bin; install NVIDIA's CUDA toolkit"
sanitizer=$(command -v compute-sanitizer || ls "$(dirname "$NVCC")/compute-sanitizer" 2>/dev/null || true)

out=${1:-$(ladder where)}
[[ -z ${1:-} || $out == /* ]] || out=$here/$out
mkdir -p "$out/logs" && touch "$out/gpu_check.txt" || fail "cannot write to $out"
out=$(cd "$out" && pwd)
ran=$out/logs/ran.txt && : >"$ran"

# step NAME COMMAND... : runs it with its output in logs/NAME.log and notes ok, FAILED or skipped (exit 77).
step() {
  local name=$1 verdict start=$SECONDS rc
  shift
  "$@" >"$out/logs/$name.log" 2>&1 </dev/null
  rc=$?
  case $rc in 0) verdict=ok ;; 77) verdict=skipped ;; 124) verdict="FAILED (timeout)" ;; *) verdict="FAILED (exit $rc)" ;; esac
  printf '%-32s %-18s %4d s\n' "$name" "$verdict" $((SECONDS - start)) | tee -a "$ran"
  [[ $rc -eq 0 || $rc -eq 77 ]]
}
# The same beside others, on all processors but two. Each has another one of the GPUs that are like the first as its first.
at_once=$(($(nproc) > 8 ? $(nproc) - 2 : 6))
devices=${CUDA_VISIBLE_DEVICES:-$(nvidia-smi --query-gpu=uuid,name --format=csv,noheader | sed -n "s/, $gpu$//p" | paste -sd,)}
together() {
  while [ "$(jobs -rp | wc -l)" -ge $at_once ]; do wait -n; done
  CUDA_VISIBLE_DEVICES=$devices step "$@" &
  [[ $devices != *,* ]] || devices=${devices#*,},${devices%%,*}
}
# sanitize TOOL [OPTION...] PROGRAM... : runs it under compute-sanitizer, if that is installed. Errors that CUDA returns
# are the program's to judge: a test of either header asks for more memory than there is, and NCCL for kernels that it
# has for other GPUs.
sanitize() {
  [ -n "$sanitizer" ] || return 77
  local returned=
  [ "$1" != memcheck ] || returned="--report-api-errors no"
  # shellcheck disable=SC2086
  timeout 300 "$sanitizer" --tool "$1" $returned --error-exitcode 99 "${@:2}"
}
# The unit tests of common/, if doctest is installed.
unit_tests() {
  scripts/check_tools.sh doctest || return 77
  make -j"$(nproc)" BACKEND=cuda tests/harness/cpp/program && timeout 300 build/cuda/tests/harness/cpp/common_test
}
# The counters of all stages, if Nsight Compute is installed and may read them.
profile() {
  ladder profile all --results "$out" && return 0
  grep -q 'ERR_NVGPUCTRPERM\|is not on PATH' "$out/logs/profile.log" && return 77 || return 1
}
# The CPU device's counts beside those of Nsight Compute.
counts() { command -v ncu >/dev/null || return 77; ladder compare --results "$out"; }
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

header=tests/headers/rms_norm
shapes="--rows 1,3,20 --cols 1,64,1000,1025,4096,70000"  # every kernel of the header, for tools that take their time
# Of the ladders that are wanted: their folders, and of each stage a line of ladder list --programs.
folders= stages= programs=
while read -r folder; do
  of_folder=$(grep -F "	$folder/" <<<"$listed") || continue
  wanted "${of_folder%%/*}" || continue
  if grep -q '"ranks"' "$folder/ladder.json" && [ "$(nvidia-smi -L | grep -c '^GPU')" -lt 2 ]; then
    echo "$folder needs two GPUs and is skipped"
    continue
  fi
  folders+=" $folder" stages+="$of_folder"$'\n'
done < <(ladder list --folders)
if [ -n "$folders" ]; then
  programs=$(printf '%s/program ' $folders; cut -f 2 <<<"${stages%$'\n'}" | sort -u | tr '\n' ' ')
  for folder in $folders; do
    for more in mutants controls bfloat16; do [ ! -d "$folder/$more" ] || programs+=" $folder/$more/program"; done
  done
fi
! wanted header || programs+=" $header/program $header/teams/program tests/headers/q4_gemm/program tests/headers/q4_gemm/hazards/program tests/headers/dependent/program"
# shellcheck disable=SC2086
step build make -j"$(nproc)" BACKEND=cuda $programs || { tail -20 "$out/logs/build.log"; exit 1; }
teams=build/cuda/$header/teams/teams_test header=build/cuda/$header/header_test
q4_header=build/cuda/tests/headers/q4_gemm/q4_header_test q4_hazards=build/cuda/tests/headers/q4_gemm/hazards/q4_hazards
dependent=build/cuda/tests/headers/dependent/dependent_test

# These alone, since they are timed or counted.
! wanted bench || step bench ladder bench --results "$out" || tail -20 "$out/logs/bench.log"
! wanted profile || step profile profile || tail -20 "$out/logs/profile.log"
! wanted counts || step counts counts || tail -20 "$out/logs/counts.log"

[ -n "$sanitizer" ] || echo "no compute-sanitizer on PATH or beside nvcc: its four tools are skipped"
if wanted header; then
  for part in 1 2 3 4; do together header-$part timeout 500 $header --part $part,4; done
  together memcheck-header sanitize memcheck $header --quick
  for tool in racecheck initcheck synccheck; do
    # shellcheck disable=SC2086
    together $tool-header sanitize $tool $header $shapes
  done
  together teams timeout 60 $teams
  together q4-header timeout 100 $q4_header
  together dependent-launches timeout 60 $dependent
  for tool in memcheck racecheck initcheck; do together $tool-teams sanitize $tool $teams; done
  # A block has more barriers than synccheck expects.
  together synccheck-teams sanitize synccheck --num-cuda-barriers 1024 $teams
  # racecheck does not come to an end with all tests of this header.
  for tool in memcheck initcheck synccheck; do together $tool-q4-header sanitize $tool $q4_header --quick; done
  together racecheck-q4-header sanitize racecheck $q4_hazards
fi
! wanted stages || together unit-tests unit_tests
if [ -n "$stages" ]; then
  # Each program with its name, the options of a stage, and a small input for the sanitizers.
  checked=$(
    while IFS=$'\t' read -r stage _ program small options; do
      printf '%s|%s|%s|%s\n' "${stage/\//-}" "$(compgen -G "build/cuda/$program" | head -1)" "$options" "$small"
    done <<<"${stages%$'\n'}"
    for program in $(printf 'build/cuda/%s/controls/*_controls ' $folders) $(printf 'build/cuda/%s/bfloat16/*_test ' $folders); do
      [ -x "$program" ] || continue
      kind=$(basename "${program%/*}") && folder=${program#build/cuda/} && folder=${folder%/"$kind"/*}
      small=$(awk -F'\t' -v of="$folder/" 'index($2, of) == 1 { print $4; exit }' <<<"$stages")
      printf '%s|%s||%s --no-small\n' "$kind-$(basename "$folder")" "$program" "$small"
    done
  )
  while IFS='|' read -r name program options _; do
    case $name in controls-* | bfloat16-*) ;; *) name=stage-$name ;; esac
    # shellcheck disable=SC2086
    together "$name" timeout 550 "$program" $options --no-timing
  done <<<"$checked"
  for program in $(printf 'build/cuda/%s/mutants/*_mutants ' $folders); do
    [ -x "$program" ] || continue
    name=${program#build/cuda/} && name=$(basename "${name%/mutants/*}")
    while IFS=$'\t' read -r mutant _ reason _; do
      together "mutant-$name-$mutant" mutant "$program" "$mutant" "$reason"
    done < <("$program" --list | tail -n +2 | sed 's/  \+/\t/g')
  done
  for tool in memcheck racecheck initcheck synccheck; do
    while IFS='|' read -r name program options small; do
      # shellcheck disable=SC2086
      together "$tool-$name" sanitize $tool "$program" $options $small --no-timing
    done <<<"$checked"
  done
fi
wait

# The outcomes of this run, and the earlier ones of parts that did not run now.
sort -s -u -k1,1 -o "$out/gpu_check.txt" "$ran" "$out/gpu_check.txt"
echo
[ ! -e "$out/environment.txt" ] || cat "$out/environment.txt"
! wanted bench || cat "$out/logs/bench.log"
awk -v out="$out" '
  { verdicts[$2]++ }
  $2 == "FAILED" { print "failed: " $1 ", see logs/" $1 ".log" }
  END { printf "%s: %d ok, %d failed, %d skipped\n", out, verdicts["ok"], verdicts["FAILED"], verdicts["skipped"]
        exit verdicts["FAILED"] > 0 }' "$ran"
