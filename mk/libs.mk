# What every program needs first, always run in the root: make -f mk/libs.mk
# The tools are checked once, a change of flags is noticed, the CPU device's runtime and common/ become libraries.
ROOT := .
include mk/config.mk

COMMON_OBJECTS := $(patsubst %,$(BUILD)/%.o,$(wildcard common/*.cpp common/*.cu))

.PHONY: prepare FORCE
prepare: $(LIBCOMMON) $(LIBSIMT)

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

$(COMMON_OBJECTS): $(BUILD)/%.o: % $(FLAGS_FILE) $(DEVICE_FILES) | $(LIBSIMT)
	$(compile)

$(LIBCOMMON): $(COMMON_OBJECTS)
	@rm -f $@ && ar rcs $@ $^

-include $(COMMON_OBJECTS:=.d)
