# What make grade builds of a student's file, beside the program that make try starts: the judge, which has the
# declaration of the stage and no kernel of it, and the runner, which has the student's object, the CPU device and
# nothing else, once more with the hooks of simt/analyze.
include $(dir $(lastword $(MAKEFILE_LIST)))stage.mk

OF_GRADE := $(addprefix $(OUT)/,judge.cu.o student/student.cu.o)
RUNNER := $(addprefix $(BUILD)/common/,judge/runner.cpp.o operators/calls.cpp.o)
.PHONY: judge runner prepared student
student: $(OUT)/student/student.cu.o $(ANALYZED)/student/student.cu.o
judge: $(OUT)/judge
prepared: $(RUNNER) $(LIBSIMT) $(ANALYSIS)
runner: $(OUT)/runner $(ANALYZED)/runner

# -Wconversion: for indices that are too narrow
$(OUT)/student/student.cu.o $(ANALYZED)/student/student.cu.o: \
  CUFLAGS += -Xcompiler -fvisibility=hidden -Xcompiler -Wconversion -Xcompiler -Wsign-conversion
$(OF_GRADE): $(OUT)/%.o: % $(FLAGS_FILE) $(DEVICE_FILES) | prepare
	$(compile)
$(RUNNER): prepare
	@:
$(OUT)/judge: $(OUT)/judge.cu.o $(LIBRARIES) $(LIBSIMT)
	@echo "  link     $(HERE)/$(@F)"
	@$(COMPILER) $< $(LIBRARIES) -o $@
$(OUT)/runner: $(OUT)/student/student.cu.o $(RUNNER) $(LIBSIMT)
	@echo "  link     $(HERE)/$(@F)"
	@$(COMPILER) $(filter %.o,$^) -o $@
$(ANALYZED)/runner: $(ANALYZED)/student/student.cu.o $(RUNNER) $(LIBSIMT) $(ANALYSIS)
	@echo "  link     $(HERE)/$(@F) for analysis"
	@$(COMPILER) --analyze $(filter %.o,$^) -o $@
-include $(OF_GRADE:=.d) $(ANALYZED)/student/student.cu.o.d
