#!/bin/bash
# Usage: toolkit.sh oldest|newest FOLDER
# What compiles CUDA: the oldest release that the course takes, whose compiler is in Ubuntu 24.04's package and whose
# headers are NVIDIA's wheels, or the newest that NVIDIA's wheels have. FOLDER/nvcc starts it. Needs no root.
set -euo pipefail
source "$(dirname "$0")/../../../scripts/apt_folder.sh"
[ ! -x "$2/nvcc" ] || exit 0
rm -rf "$2" && mkdir -p "$2" && cd "$2"
wheels() { python3 -m pip install --quiet --disable-pip-version-check --no-compile --target wheels "$@"; }

if [ "$1" = newest ]; then
  wheels nvidia-cuda-nvcc nvidia-cuda-cccl
  root=$(realpath wheels/nvidia/cu*)
  chmod -R +x "$root/bin" "$root/nvvm/bin"
else
  # libcu++ is in the wheels from 12.4 on.
  wheels --no-deps nvidia-cuda-nvcc-cu12==12.0.140 nvidia-cuda-runtime-cu12==12.0.146 nvidia-cuda-cccl-cu12==12.4.127.post1
  apt_folder "$PWD/apt"
  echo "deb [trusted=yes] ${MIRROR:-http://archive.ubuntu.com/ubuntu} noble multiverse" >apt/sources.list
  apt+=(-o Dir::Etc::SourceList="$PWD/apt/sources.list" -o Dir::Etc::SourceParts=/dev/null)
  mkdir -p toolkit/bin toolkit/include
  apt-get "${apt[@]}" update
  apt-get "${apt[@]}" download nvidia-cuda-toolkit=12.0.*
  dpkg -x nvidia-cuda-toolkit_*.deb package && rm nvidia-cuda-toolkit_*.deb
  cp -r package/usr/lib/nvidia-cuda-toolkit/bin/{nvcc,cicc,crt} package/usr/bin/{cudafe++,ptxas,fatbinary} toolkit/bin/
  for part in runtime nvcc cccl; do cp -r wheels/nvidia/cuda_$part/include/. toolkit/include/; done
  cp -r wheels/nvidia/cuda_nvcc/nvvm toolkit/
  printf '%s\n' 'TOP = $(_HERE_)/..' 'NVVMIR_LIBRARY_DIR = $(TOP)/nvvm/libdevice' 'PATH += $(_HERE_):' \
    'INCLUDES += "-isystem" "$(TOP)/include" $(_SPACE_)' >toolkit/bin/nvcc.profile
  rm -rf package wheels apt
  root=$PWD/toolkit
fi
printf '#!/bin/bash\nexec "%s/bin/nvcc" "$@"\n' "$root" >nvcc.new
chmod +x nvcc.new && mv nvcc.new nvcc
