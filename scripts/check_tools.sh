#!/bin/bash
# Usage: check_tools.sh cpu|cuda|doctest
# Says in one sentence what a build (or the unit tests) lacks and the command that installs it; exit 1 then.
CXX=${CXX:-g++}
packages=() missing=()
lacks() { missing+=("$1"); packages+=("$2"); }

# One run of the preprocessor answers for the compiler and every header.
facts=$($CXX -E -P -x c++ - 2>/dev/null <<'ASK'
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12
gcc12
#endif
#if __has_include(<CLI/CLI.hpp>)
cli11
#endif
#if __has_include(<boost/context/detail/fcontext.hpp>)
boost
#endif
#if __has_include(<backtrace.h>)
backtrace
#endif
#if __has_include(<doctest/doctest.h>)
doctest
#endif
ASK
)
has() { [[ $facts == *"$1"* ]]; }

if ! command -v "${CXX%% *}" >/dev/null; then
  lacks "a C++ compiler" "g++"
  facts="gcc12 cli11 boost backtrace doctest" # the headers cannot be asked for yet; look for their files
  [ -e /usr/include/CLI/CLI.hpp ] || facts=${facts/cli11/}
  [ -e /usr/include/boost/context/detail/fcontext.hpp ] || facts=${facts/boost/}
  [ -e /usr/include/doctest/doctest.h ] || facts=${facts/doctest/}
fi
case $1 in
  cuda)
    command -v "$NVCC" >/dev/null || {
      echo "BACKEND=cuda needs nvcc, and it is not on PATH, in \$CUDA_HOME/bin or in /usr/local/cuda/bin: install NVIDIA's CUDA toolkit, or say BACKEND=cpu." >&2
      exit 1
    }
    release=$("$NVCC" --version | sed -n 's/.*release \([0-9.]*\).*/\1/p')
    [ "${release%%.*}" -ge 12 ] || {
      echo "BACKEND=cuda needs CUDA 12.0 or newer, and $NVCC is of CUDA $release: install NVIDIA's CUDA toolkit and say NVCC=/usr/local/cuda/bin/nvcc, or say BACKEND=cpu." >&2
      exit 1
    }
    has gcc12 || lacks "g++ 12 or newer (CXX=$CXX is $($CXX --version | sed 1q))" g++-12
    command -v python3 >/dev/null || lacks python3 python3
    has cli11 || lacks CLI11 libcli11-dev ;;
  cpu)
    has gcc12 || lacks "g++ 12 or newer (CXX=$CXX is $($CXX --version | sed 1q))" g++-12
    command -v python3 >/dev/null || lacks python3 python3
    has cli11 || lacks CLI11 libcli11-dev
    has boost || lacks Boost.Context libboost-context-dev
    ! has gcc12 || has backtrace || lacks "libbacktrace (part of Debian's and Ubuntu's gcc)" "libgcc-$($CXX -dumpversion | cut -d. -f1)-dev" ;;
  doctest) has doctest || lacks doctest doctest-dev ;;
esac

[ ${#missing[@]} -eq 0 ] && exit 0
list=$(printf ', %s' "${missing[@]}")
echo "The build lacks ${list:2}: install with 'sudo apt-get update && sudo apt-get install ${packages[*]}', or let 'make $([ "$1" = doctest ] && echo test || echo run)' do it." >&2
exit 1
