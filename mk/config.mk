# What every build shares: backend, architectures, compilers, flags, places.
# The file that includes this one sets ROOT, the way from its folder to the repository's root.

SHELL := /bin/bash
.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += --no-print-directory --no-builtin-rules
comma := ,

# Backend: cuda if there are nvcc and a GPU, else cpu; BACKEND=... overrides.
ifndef NVCC
  NVCC := $(firstword $(shell command -v nvcc) $(wildcard $(CUDA_HOME)/bin/nvcc /usr/local/cuda/bin/nvcc \
    $(ROOT)/.venv/lib/python3*/site-packages/nvidia/cu13/bin/nvcc))
endif
ifndef BACKEND
  HAS_GPU := $(shell { timeout 20 nvidia-smi -L 2>/dev/null | grep -q '^GPU' || [ -e /dev/nvidia0 ]; } && echo yes)
  BACKEND := $(if $(and $(NVCC),$(HAS_GPU)),cuda,cpu)
  BACKEND_WHY := $(if $(NVCC),$(if $(HAS_GPU),there are nvcc and a GPU,there is nvcc$(comma) but no GPU),$\
    $(if $(HAS_GPU),there is a GPU$(comma) but no nvcc,there is neither nvcc nor a GPU))
endif
BACKEND_WHY ?= as asked
ifneq ($(BACKEND),$(filter cuda cpu,$(firstword $(BACKEND))))
  $(error BACKEND=$(BACKEND) is not a backend; say BACKEND=cuda for nvcc, BACKEND=cpu for the CPU device, or leave it out)
endif

# Architectures (cuda only): numbers as in sm_NN with nvcc's letters, ARCHS="80 89 90a 120"; by default this machine's GPU,
# with Hopper's own instructions (90a).
ifeq ($(BACKEND),cuda)
  ifndef ARCHS
    ARCHS := $(shell timeout 20 nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | tr -d . | grep -x '[0-9]*' | sort -u | sed 's/^90$$/90a/')
    ARCHS := $(or $(strip $(ARCHS)),90)
  endif
endif

# The host compiler: g++ 12 or newer; if g++ itself is older, a newer one that is installed beside it.
ifeq ($(origin CXX),default)
  CXX := $(or $(shell for c in g++ g++-15 g++-14 g++-13 g++-12; do v=$$($$c -dumpversion 2>/dev/null) \
    && [ "$${v%%.*}" -ge 12 ] && echo $$c && break; done),g++)
endif

# nvcc's options; simt/simtcc takes the same. With -O3, g++ takes almost half as long again as with -O2, and its kernels
# run as long.
OPTIMIZATION ?= $(if $(filter cuda,$(BACKEND)),-O3,-O2)
CUFLAGS := $(OPTIMIZATION) -std=c++17 -lineinfo -I$(ROOT) -Xcompiler -Wall,-Wextra
ifeq ($(BACKEND),cuda)
  # Skeletons, which a student tree has in the place of kernels, leave variables unused.
  CUFLAGS += $(if $(wildcard $(ROOT)/exercises/left_out.txt),,-Werror all-warnings)
  COMPILER := $(NVCC) $(if $(filter-out g++,$(CXX)),-ccbin $(CXX)) \
              $(foreach a,$(ARCHS),-gencode arch=compute_$(a)$(comma)code=sm_$(a))
else
  COMPILER := CXX='$(CXX)' $(ROOT)/simt/simtcc
endif

# Places: objects and programs lie below build/<backend>/ at the path of their source.
BUILD_NAME ?= $(BACKEND)
BUILD := $(ROOT)/build/$(BUILD_NAME)
FLAGS_FILE := $(BUILD)/flags.txt
LIBCOMMON := $(BUILD)/libcommon.a
ifeq ($(BACKEND),cpu)
  LIBSIMT := $(ROOT)/build/simt/libsimt.a
  DEVICE_FILES := $(wildcard $(addprefix $(ROOT)/simt/,simtcc *.py driver/*.py)) \
    $(shell find $(ROOT)/simt/include $(ROOT)/simt/extras/include -type f 2>/dev/null)
endif

ifneq ($(BACKEND_SAID),$(BACKEND))
  $(info backend: $(BACKEND)$(if $(filter cuda,$(BACKEND)), for $(ARCHS:%=sm_%)) ($(BACKEND_WHY)))
endif
export BACKEND ARCHS
export BACKEND_SAID := $(BACKEND)

# $(call compile), $(call compile,MORE OPTIONS) or $(call compile,MORE OPTIONS,WHAT TO MAKE)
define compile
@mkdir -p $(@D)
@echo "  compile  $(if $(HERE),$(HERE)/)$(patsubst $(ROOT)/%,%,$<)"
@$(COMPILER) $(1) $(CUFLAGS) -MMD -MP -MF $@.d $(or $(2),-c) $< -o $@
endef

# $(call unoptimized,FLAGS): for what takes longer to optimize than to run. Only levels change: nvcc has -Ofc, too.
unoptimized = $(foreach flag,$(1),$(if $(filter -O1 -O2 -O3,$(flag)),-O0,$(flag)))

# The GPU's code alone, to see that it compiles: without the host's, and with fewer optimizations where nvcc can, it takes
# a third of the time.
FAST = $(if $(shell $(NVCC) --help | grep -e --Ofast-compile),-Ofc max)
compile-gpu-code = $(call compile,$(FAST),-fatbin)
