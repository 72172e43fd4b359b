# What every program needs first, always run in the root: make -f mk/libs.mk
# It checks the tools once, detects a change of flags, writes the ladders' lists of stages, and compiles the CPU
# device's runtime, common/ and the ladders' descriptions.
ROOT := .
include mk/config.mk

COMMON_OBJECTS := $(patsubst %,$(BUILD)/%.o,$(wildcard common/*.cpp common/*.cu common/operators/*.cpp))
# How much memory there is, libsimt.a knows on the CPU device.
COMMON_OBJECTS += $(if $(filter cuda,$(BACKEND)),$(BUILD)/simt/runtime/capacity.cpp.o)
LADDERS := $(patsubst %/ladder.json,%,$(shell find assignment* lectures -name ladder.json 2>/dev/null))
RUNNER := $(if $(filter cpu,$(BACKEND)),$(BUILD)/common/judge/runner.cpp.o)  # of mk/grade.mk
DESCRIPTIONS := $(LADDERS:%=$(BUILD)/%/ladder.cpp.o)

.PHONY: prepare gpu-code analysis sources FORCE
prepare: $(LIBCOMMON) $(LIBSIMT) $(DESCRIPTIONS) $(RUNNER)
gpu-code: sources $(patsubst %,$(BUILD)/%.fatbin,$(wildcard common/*.cu))

$(BUILD)/tools.ok: scripts/check_tools.sh
	@NVCC='$(NVCC)' CXX='$(CXX)' scripts/check_tools.sh $(BACKEND)
	@mkdir -p $(@D) && touch $@

# Rewritten only when it differs, so that every object is rebuilt when the compiler or a flag changes.
$(FLAGS_FILE): export LINE = $(COMPILER) $(CUFLAGS)
$(FLAGS_FILE): $(BUILD)/tools.ok FORCE
	@line="$$LINE # $$($(if $(filter cuda,$(BACKEND)),$(NVCC),$(CXX)) --version | tr '\n' ' ')"; \
	[ "$$line" = "$$(cat $@ 2>/dev/null)" ] || \
	{ $(if $(filter cuda,$(BACKEND)),NVCC='$(NVCC)' scripts/check_archs.sh $(ARCHS) &&) echo "$$line" > $@; }

$(LIBSIMT): $(BUILD)/tools.ok FORCE
	@$(MAKE) -s -C simt BUILD=../build/simt CXX='$(CXX)'

analysis: prepare
	@$(MAKE) -s -C simt BUILD=../build/simt CXX='$(CXX)' ../build/simt/libsimt_analysis.a

# What is made from the folders of a ladder. It counts as changed only if its text did.
MADE := $(LADDERS:%=%/ladder.cpp)
sources: $(BUILD)/tools.ok
	@PYTHONPATH=tools python3 -B -m ladder.core.sources
$(MADE:%=build/generated/%): sources
	@:
$(MADE:%=$(BUILD)/%.o): $(BUILD)/%.o: build/generated/% $(FLAGS_FILE) $(DEVICE_FILES) | $(LIBSIMT)
	$(compile)
$(BUILD)/%.o: % $(FLAGS_FILE) $(DEVICE_FILES) | $(LIBSIMT)
	$(compile)

$(BUILD)/%.fatbin: % $(FLAGS_FILE)
	$(compile-gpu-code)

# What reads the command line and writes the tables does so once, and takes longer to optimize than to compile.
$(patsubst %,$(BUILD)/common/%.cpp.o,command_line options report run_mutants run_all table): CUFLAGS := $(call unoptimized,$(CUFLAGS))

$(LIBCOMMON): $(COMMON_OBJECTS)
	@rm -f $@ && ar rcs $@ $^

-include $(addsuffix .d,$(COMMON_OBJECTS) $(DESCRIPTIONS) $(RUNNER))
