# NCCL, for programs of several GPUs: its headers and its library, or what to install. The CPU device has its own.
ifeq ($(BACKEND),cuda)
  NCCL_HOME ?= $(firstword $(patsubst %/include/nccl_device.h,%,$(wildcard $(addsuffix /include/nccl_device.h,\
    $(shell python3 -c 'import nvidia.nccl as found; print(*found.__path__)' 2>/dev/null) $(CUDA_HOME) \
    $(patsubst %/bin/nvcc,%,$(NVCC)) /usr/local/cuda /usr \
    $(wildcard $(ROOT)/.venv/lib/python3*/site-packages/nvidia/nccl)))))
  NCCL_LIBRARY := $(firstword $(wildcard $(addsuffix /libnccl.so.2,$(NCCL_HOME)/lib $(NCCL_HOME)/lib64 \
    $(NCCL_HOME)/lib/x86_64-linux-gnu $(NCCL_HOME)/lib/aarch64-linux-gnu)))
  FOUND_nccl := $(NCCL_LIBRARY)
  CUFLAGS += -isystem $(NCCL_HOME)/include
  LINK_OPTIONS := -Xlinker $(NCCL_LIBRARY) -Xlinker -rpath -Xlinker $(dir $(NCCL_LIBRARY))
else
  FOUND_nccl := $(wildcard $(ROOT)/simt/extras/include/nccl.h)
endif
INSTALL_nccl := nccl_device.h and libnccl.so.2 of NCCL 2.28 or newer were not found; say pip install nvidia-nccl-cu13 \
  (or apt install libnccl-dev), or NCCL_HOME=/its/folder
