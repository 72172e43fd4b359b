#!/bin/bash
# Usage: find_stage.sh STAGE [JOB]
# Prints the folder of the stage or lecture named by number (5, 05, W1L2), name (05_warp_shuffle) or path.
cd "$(dirname "$0")/.." || exit 2
shopt -s nullglob
asked=${1%/} job=${2:-stage}
stages=(assignment*/*/*/[0-9]*_*/Makefile assignment*/*/*/mutants/Makefile lectures/*/Makefile lectures/*/*/Makefile)
stages=("${stages[@]%/Makefile}")
found=()
for stage in "${stages[@]}"; do
  name=${stage##*/}
  number=${name%%_*}
  case $asked in
    "$stage" | "./$stage" | "$PWD/$stage" | "$name" | "$number" | "${number#0}") found+=("$stage") ;;
  esac
done

[ ${#found[@]} -eq 1 ] && { echo "${found[0]}"; exit 0; }
case "$asked,${#found[@]}" in
  ,*) [ "$job" != analyze ] || echo "make analyze counts what each line of a stage's kernels asks of memory and looks for races."
    echo "make $job needs S=<stage>, for example: make $job S=${stages[0]##*/}. The stages:" ;;
  *,0) echo "There is no stage '$asked'; choose one of:" ;;
  *) echo "S=$asked means more than one stage; name the folder:"; stages=("${found[@]}") ;;
esac >&2
printf '  %s\n' "${stages[@]}" >&2
exit 2
