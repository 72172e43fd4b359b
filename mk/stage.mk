# The rules of a leaf: its Makefile sets NAME (the program) and SOURCES, then includes this file. PROGRAMS are further
# programs without the harness, for a lecture's first pages: each is one .cu file that nvcc compiles without options.
# LINKED is a program of a folder below this one, w2l3/test_w2l3: make test_w2l3 builds it and puts a link to it here.
# REPEATED are those of SOURCES that only include another folder's file. ENGINE is the library that mk/ENGINE.mk finds; a ladder's
# is in its ladder.json.
# make            builds ./NAME, a link to the program of the chosen backend
# make run        builds and starts it, with the options in ARGS
# make program    builds it below build/<backend>/ without touching the link
# make PROGRAM    builds ./PROGRAM, one of PROGRAMS
# make objects    only compiles
# make gpu-code   only compiles, and only what is for the GPU
# make analyze    builds it for the CPU device with the hooks of simt/analyze, starts it and reports on its kernels
# make debug      builds it for a debugger, on the CPU device
# In a ladder, make STAGE builds a stage's own program; where stages are files (reduction5.cu), there are run-STAGE and
# analyze-STAGE too.
ROOT := $(patsubst %/mk/stage.mk,%,$(lastword $(MAKEFILE_LIST)))
include $(ROOT)/mk/config.mk

HERE := $(shell realpath --relative-to='$(ROOT)' .)
OUT := $(BUILD)/$(HERE)
ANALYZED := $(ROOT)/build/analyze/$(HERE)
OBJECTS := $(SOURCES:%=$(OUT)/%.o)

# The ladder that this folder belongs to: what its ladder.json says is linked in, its list of stages can be included. A
# program of a student's file stands elsewhere, and overrides this.
ifneq ($(origin LADDER),override)
  LADDER := $(firstword $(foreach folder,. .. ../..,$(if $(wildcard $(folder)/ladder.json),$(folder))))
  LADDER := $(if $(LADDER),$(shell realpath --relative-to='$(ROOT)' '$(LADDER)'))
endif
ifneq ($(LADDER),)
  DESCRIPTION := $(BUILD)/$(LADDER)/ladder.cpp.o
  CUFLAGS += -I$(ROOT)/build/generated/$(HERE)
endif
ifeq ($(LADDER),$(HERE))
  STAGE_FOLDERS := $(patsubst %/Makefile,%,$(wildcard [0-9]*_*/Makefile))
  STAGE_FILES := $(basename $(wildcard *[0-9].cu))
endif
LIBRARIES := $(DESCRIPTION) $(LIBCOMMON)
ifneq ($(origin ENGINE),file)
  ENGINE := $(if $(LADDER),$(shell sed -n 's/^ *"engine": "\(.*\)",$$/\1/p' '$(ROOT)/$(LADDER)/ladder.json'))
endif
ifneq ($(ENGINE),)
  include $(ROOT)/mk/$(ENGINE).mk
  $(if $(FOUND_$(ENGINE)),,$(error $(HERE) needs $(ENGINE): $(INSTALL_$(ENGINE))))
endif

.PHONY: all run program programs objects gpu-code analyze analyzed prepare clean $(STAGE_FOLDERS) $(STAGE_FILES) $(PROGRAMS) $(notdir $(LINKED))
all: program $(PROGRAMS)
	@[ "$$(readlink $(NAME))" = '$(OUT)/$(NAME)' ] || ln -sfn '$(OUT)/$(NAME)' $(NAME)
	@echo '$(HERE)/$(NAME) is ready'

run: all
	@./$(NAME) $$ARGS

program: $(OUT)/$(NAME) $(PROGRAMS:%=$(OUT)/%)
programs: program $(STAGE_FILES:%=$(OUT)/%)
objects: $(filter-out $(REPEATED:%=$(OUT)/%.o),$(OBJECTS)) $(PROGRAMS:%=$(OUT)/%.cu.o)
gpu-code: PREPARED := gpu-code
gpu-code: $(patsubst %,$(OUT)/%.fatbin,$(filter-out $(REPEATED),$(filter %.cu,$(SOURCES))) $(PROGRAMS:%=%.cu))

$(STAGE_FOLDERS):
	@$(MAKE) -C $@
$(STAGE_FILES): %: $(OUT)/%
	@ln -sfn '$<' '$@_test'
	@echo '$(HERE)/$@_test is ready'
$(PROGRAMS): %: $(OUT)/%
	@ln -sfn '$<' '$@'
	@echo '$(HERE)/$@ is ready'
$(notdir $(LINKED)): prepare
	@$(MAKE) -C $(dir $(LINKED)) program
	@ln -sfn '$(OUT)/$(LINKED)' '$@'
	@echo '$(HERE)/$@ is ready'
$(STAGE_FILES:%=run-%): run-%: %
	@./$*_test $$ARGS

# The libraries belong to the root, one make at a time; here they count as changed only if their files did.
prepare:
ifneq ($(LIBS),ready)
	@mkdir -p $(ROOT)/build && flock -o $(ROOT)/build/lock $(MAKE) -C $(ROOT) -f mk/libs.mk $(PREPARED)
endif
$(FLAGS_FILE) $(LIBRARIES) $(LIBSIMT): prepare
	@:

ifneq ($(filter tests/%,$(HERE)),)
prepare: doctest
.PHONY: doctest
doctest:
	@CXX='$(CXX)' $(ROOT)/scripts/check_tools.sh doctest
endif

COMPILED := $(OBJECTS) $(STAGE_FILES:%=$(OUT)/%.cu.o) $(PROGRAMS:%=$(OUT)/%.cu.o)
# Kernels of mutants and experiments run on small inputs: they take half as long to compile so, and are as right. Of an
# experiment's, the addresses are not checked.
ifeq ($(BACKEND),cpu)
  ifeq ($(notdir $(HERE)),mutants)
    CUFLAGS += -O1
  endif
  $(OUT)/experiments/%.o: CUFLAGS += -O1 -Xcompiler -fno-sanitize=alignment
endif
$(COMPILED): $(OUT)/%.o: % $(FLAGS_FILE) $(DEVICE_FILES) | prepare
	$(compile)
$(OUT)/%.fatbin: % $(FLAGS_FILE) | prepare
	$(compile-gpu-code)

$(OUT)/$(NAME): $(OBJECTS) $(LIBRARIES) $(LIBSIMT)
	@echo "  link     $(HERE)/$(NAME)"
	@$(COMPILER) $(OBJECTS) $(LIBRARIES) $(LINK_OPTIONS) -o $@
$(STAGE_FILES:%=$(OUT)/%): %: %.cu.o $(LIBRARIES) $(LIBSIMT)
	@echo "  link     $(HERE)/$(@F)"
	@$(COMPILER) $< $(LIBRARIES) -o $@
$(PROGRAMS:%=$(OUT)/%): %: %.cu.o $(LIBSIMT)
	@echo "  link     $(HERE)/$(@F)"
	@$(COMPILER) $< -o $@

# The build for analysis: the file with the kernels is compiled anew; everything else is that of the CPU device.
# A ladder's programs count on the smaller input of ladder.json and check a few ragged ones; mutants take other options.
ANALYSED = $(if $(filter $(LADDER),$(HERE)),$(1),$(notdir $(HERE)))
REPORT = build/analyze/$$id/$(ANALYSED).html
ifneq ($(and $(LADDER),$(filter-out $(LADDER)/mutants,$(HERE))),)
  ANALYZE_ALWAYS := --analyze
  ANALYZE_INPUT := $$(PYTHONPATH=tools python3 -B -m ladder analyze-options $(LADDER))
endif
define look
@cd $(ROOT) && id=$$(cat 'build/generated/$(LADDER)/id.txt' 2>/dev/null); mkdir -p build/analyze/$$id && \
  options="$(ANALYZE_ALWAYS) $${ARGS:-$(ANALYZE_INPUT)}" && \
  simt/analyze --program 'build/analyze/$(HERE)/$(1)' --html "$(REPORT)" --name "$(ANALYSED)" -- $$options
endef

analyze:
	@$(MAKE) BACKEND=cpu analyzed
	$(call look,$(NAME))
analyzed: $(ANALYZED)/$(NAME)
$(STAGE_FILES:%=analyze-%): analyze-%:
	@$(MAKE) BACKEND=cpu 'analyzed-$*'
	$(call look,$*)
$(patsubst %,analyzed-%,$(STAGE_FILES) $(PROGRAMS)): analyzed-%: $(ANALYZED)/%

# For simt/analyze, which was given the file FILE of this folder: builds its program for analysis and prints where it is
# from the root, the options that it always gets, and those that it gets where there are no others.
ANALYZED_OF = $(if $(filter $(FILE),$(SOURCES)),$(NAME),$(filter $(FILE:.cu=),$(STAGE_FILES) $(PROGRAMS)))
OPTIONS_OF = $(if $(filter $(ANALYZED_OF),$(PROGRAMS)),'' '','$(ANALYZE_ALWAYS)' "$(ANALYZE_INPUT)")
.PHONY: program-for-analysis
program-for-analysis:
	@[ -n '$(ANALYZED_OF)' ] || { echo '$(HERE)/Makefile does not build $(FILE)' >&2; exit 2; }
	@$(MAKE) BACKEND=cpu '$(if $(filter $(FILE),$(SOURCES)),analyzed,analyzed-$(ANALYZED_OF))' >&2
	@cd $(ROOT) && printf '%s\n' 'build/analyze/$(HERE)/$(ANALYZED_OF)' $(OPTIONS_OF)

$(ANALYZED)/%.cu.o: %.cu $(FLAGS_FILE) $(DEVICE_FILES) | prepare
	$(call compile,--analyze)

# simtcc would build it in silence.
ANALYSIS := $(ROOT)/build/simt/libsimt_analysis.a
$(ANALYSIS): prepare
ifneq ($(LIBS),ready)
	@$(MAKE) -s -C $(ROOT)/simt -j"$$(python3 -B $(ROOT)/simt/driver/jobs.py)" BUILD=../build/simt CXX='$(CXX)' ../build/simt/$(@F)
endif

$(ANALYZED)/$(NAME): $(ANALYZED)/main.cu.o $(filter-out $(OUT)/main.cu.o,$(OBJECTS)) $(LIBRARIES) $(LIBSIMT) $(ANALYSIS)
	@echo "  link     $(HERE)/$(NAME) for analysis"
	@$(COMPILER) --analyze $(filter %.o %/libcommon.a,$^) -o $@
$(STAGE_FILES:%=$(ANALYZED)/%): $(ANALYZED)/%: $(ANALYZED)/%.cu.o $(LIBRARIES) $(LIBSIMT) $(ANALYSIS)
	@echo "  link     $(HERE)/$* for analysis"
	@$(COMPILER) --analyze $(filter %.o %/libcommon.a,$^) -o $@
$(PROGRAMS:%=$(ANALYZED)/%): $(ANALYZED)/%: $(ANALYZED)/%.cu.o $(LIBSIMT) $(ANALYSIS)
	@echo "  link     $(HERE)/$* for analysis"
	@$(COMPILER) --analyze $< -o $@

# For a debugger: the program of FILE, one of this folder's, on the CPU device; its kernels are not optimized, and
# build/debug/program leads to it.
DEBUGGED := $(ROOT)/build/debug/$(HERE)
DEBUGGED_OF = $(or $(filter $(basename $(FILE)),$(STAGE_FILES) $(PROGRAMS)),$(NAME))
.PHONY: debug debugged
debug:
	@$(MAKE) BACKEND=cpu FILE='$(FILE)' debugged
debugged: $(DEBUGGED)/$(DEBUGGED_OF)
	@ln -sfn '$(HERE)/$(DEBUGGED_OF)' $(ROOT)/build/debug/program
$(DEBUGGED)/%.cu.o: CUFLAGS := $(call unoptimized,$(CUFLAGS)) -g
$(DEBUGGED)/%.cu.o: %.cu $(FLAGS_FILE) $(DEVICE_FILES) | prepare
	$(compile)
$(DEBUGGED)/$(NAME): $(DEBUGGED)/main.cu.o $(filter-out $(OUT)/main.cu.o,$(OBJECTS)) $(LIBRARIES) $(LIBSIMT)
	@echo "  link     $(HERE)/$(@F) for a debugger"
	@$(COMPILER) $(filter %.o %/libcommon.a,$^) -o $@
$(patsubst %,$(DEBUGGED)/%,$(STAGE_FILES) $(PROGRAMS)): %: %.cu.o $(LIBRARIES) $(LIBSIMT)
	@echo "  link     $(HERE)/$(@F) for a debugger"
	@$(COMPILER) $< $(LIBRARIES) -o $@

clean:
	rm -rf $(ROOT)/build/*/$(HERE) $(NAME) $(PROGRAMS) $(notdir $(LINKED)) $(STAGE_FILES:%=%_test)

-include $(COMPILED:=.d) $(wildcard $(OUT)/*.fatbin.d) $(wildcard $(ANALYZED)/*.d $(DEBUGGED)/*.d)
