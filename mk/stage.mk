# The rules of a leaf: its Makefile sets NAME (the program) and SOURCES, then includes this file.
# make            builds ./NAME, a link to the program of the chosen backend
# make run        builds and starts it, with the options in ARGS
# make program    builds it below build/<backend>/ without touching the link
# make objects    only compiles
# make analyze    builds it for the CPU device with the hooks of simt/analyze, starts it and reports on its kernels
ROOT := $(patsubst %/mk/stage.mk,%,$(lastword $(MAKEFILE_LIST)))
include $(ROOT)/mk/config.mk

HERE := $(shell realpath --relative-to='$(ROOT)' .)
OUT := $(BUILD)/$(HERE)
PROGRAM := $(OUT)/$(NAME)
OBJECTS := $(SOURCES:%=$(OUT)/%.o)

.PHONY: all run program objects analyze analyzed prepare clean
all: program
	@[ "$$(readlink $(NAME))" = '$(PROGRAM)' ] || ln -sfn '$(PROGRAM)' $(NAME)
	@echo '$(HERE)/$(NAME) is up to date'

run: all
	@./$(NAME) $$ARGS

program: $(PROGRAM)
objects: $(OBJECTS)

# The libraries belong to the root, one make at a time; here they count as changed only if their files did.
prepare:
	@mkdir -p $(ROOT)/build && flock -o $(ROOT)/build/lock $(MAKE) -C $(ROOT) -f mk/libs.mk
$(FLAGS_FILE) $(LIBCOMMON) $(LIBSIMT): prepare
	@:

ifneq ($(filter tests/%,$(HERE)),)
prepare: doctest
.PHONY: doctest
doctest:
	@CXX='$(CXX)' $(ROOT)/scripts/check_tools.sh doctest
endif

$(OBJECTS): $(OUT)/%.o: % $(FLAGS_FILE) $(DEVICE_FILES) | prepare
	$(compile)

$(PROGRAM): $(OBJECTS) $(LIBCOMMON) $(LIBSIMT)
	@echo "  link     $(HERE)/$(NAME)"
	@$(COMPILER) $(OBJECTS) $(LIBCOMMON) -o $@

# The build for analysis: main.cu, which includes the kernels, is compiled anew; everything else is that of the CPU device.
ANALYZED := $(ROOT)/build/analyze/$(HERE)
REPORT := build/analyze/$(notdir $(HERE)).html
ANALYZE_ARGS := $(if $(filter lectures/% %/mutants,$(HERE)),$$ARGS,--no-small --no-timing $${ARGS:---rows 64 --cols 8192})

analyze:
	@$(MAKE) BACKEND=cpu analyzed
	@cd $(ROOT) && simt/analyze --program 'build/analyze/$(HERE)/$(NAME)' --html '$(REPORT)' -- $(ANALYZE_ARGS)

analyzed: $(ANALYZED)/$(NAME)

$(ANALYZED)/main.cu.o: main.cu $(FLAGS_FILE) $(DEVICE_FILES) | prepare
	$(call compile,--analyze)

$(ANALYZED)/$(NAME): $(ANALYZED)/main.cu.o $(filter-out $(OUT)/main.cu.o,$(OBJECTS)) $(LIBCOMMON) $(LIBSIMT) \
                     $(shell find $(ROOT)/simt/analysis -type f)
	@echo "  link     $(HERE)/$(NAME) for analysis"
	@$(COMPILER) --analyze $(filter %.o %/libcommon.a,$^) -o $@

clean:
	rm -rf $(ROOT)/build/*/$(HERE) $(NAME)

-include $(OBJECTS:=.d) $(ANALYZED)/main.cu.o.d
