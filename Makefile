# The root names the jobs and hands each to the folder that it concerns. The build rules are in mk/.
ROOT := .
ifneq ($(filter all stage programs gpu-code libs gpu-libs %/linked %/program %/programs %/gpu-code,$(or $(MAKECMDGOALS),all)),)
  include mk/config.mk
else
  SHELL := /bin/bash
  MAKEFLAGS += --no-print-directory
endif

# The ladders whose programs make builds and links here; make run starts the first one's.
LADDERS := assignment1/rms_norm/matrix assignment1/rms_norm/vector assignment1/rms_norm/precision \
           assignment1/rms_norm/serving assignment1/rms_norm/inference assignment2/q4_gemm
ifdef BACKEND
  include mk/nccl.mk
  WITHOUT_NCCL := $(if $(FOUND_nccl),,%assignment3/tensor_parallel assignment3/tensor_parallel/%)
  ONLY_TIMED := $(if $(and $(FOUND_nccl),$(filter cuda,$(BACKEND))),,bench/norm/all_reduce)
  $(if $(WITHOUT_NCCL),$(info assignment3/tensor_parallel is left out: $(INSTALL_nccl)))
  LADDERS += $(if $(FOUND_nccl),assignment3/tensor_parallel)
endif
PROGRAMS := $(foreach ladder,$(LADDERS),$(shell sed -n 's/^NAME := //p' $(ladder)/Makefile))
PROGRAM := $(firstword $(PROGRAMS))
# Every folder with a program of its own, and those of them that are a stage, whose kernel the ladder's program has too.
LEAVES = $(filter-out $(WITHOUT_NCCL) $(ONLY_TIMED),$(patsubst %/Makefile,%,$(shell grep -rl --include=Makefile mk/stage.mk assignment* lectures bench tests 2>/dev/null)))
STAGES = $(patsubst %/kernel.cuh,%,$(shell find assignment* lectures -path '*/[0-9]*_*/kernel.cuh'))
export S ARGS RESULTS GPU GUESS
# make s=05 would set another variable, and be ignored.
$(foreach pair,S:s ARGS:args GPU:gpu GUESS:guess FILE:file RESULTS:results OUT:out SUBMISSIONS:submissions BACKEND:backend ARCHS:archs,$\
  $(foreach small,$(lastword $(subst :, ,$(pair))),$(if $(filter command line,$(origin $(small))),$\
  $(error $(small)=$($(small)): names are capitals; say $(firstword $(subst :, ,$(pair)))=$($(small))))))

.PHONY: all help run setup-user test start stage analyze exercise grade try hint solution watch quiz class student-tree bench \
        peers chain tune plots readme site slides profile programs gpu-code libs gpu-libs analysis-libs debug compile_commands.json compile-check headers format clean

all: $(LADDERS:%=%/linked)
%/linked: libs
	@$(MAKE) -C $* LIBS=ready
	@name=$$(sed -n 's/^NAME := //p' $*/Makefile); [ "$$(readlink $$name)" = $*/$$name ] || ln -sfn $*/$$name $$name

help:
	@echo 'make                    build ./$(PROGRAM) and those of the other ladders (rms_norm_vector_test, ...), all stages of one each'
	@echo 'make run                install what is missing, build, run it on the real input, draw the plot (2 minutes)'
	@echo 'make setup-user         on Debian and Ubuntu without root: unpack g++ and the libraries into .local/'
	@echo 'make test               install what is missing, run the quick tests (8 minutes); CI runs all, with FULL=1 TORCH=1.'
	@echo '                        TORCH=1 installs PyTorch (5 GB) and tests the Python package with it too'
	@echo '                        one test in ten seconds: .venv/bin/python -m pytest tests/pages/test_questions.py'
	@echo 'make stage S=05         build and run one stage; S is its number or name (05, vector/05, W2L1/5), a ladder or a folder'
	@echo '                        (10 seconds)'
	@echo 'make analyze S=05       count its accesses to memory line by line and look for races (40 seconds the first time,'
	@echo '                        then 5); needs no GPU. S=all (3 minutes) stores the counts of every stage in profiling_results/cpu_device/'
	@echo 'make start              install what is missing, write the first exercise to my/ and grade it at every save, then the next'
	@echo 'make exercise S=05      write the skeleton of an exercise to my/; S=W2L1/5, S=vector/07: those of other ladders'
	@echo 'make grade S=05         check it: right values, no hazards, and the idea in the counters; needs no GPU (10 seconds).'
	@echo '                        Without S: which exercises are done, tried and open. SANDBOX=require, for instructors: only in'
	@echo '                        a sandbox (apt install bubblewrap)'
	@echo 'make try S=05           run your file on the input ARGS="--rows 1 --cols 33"; what its kernels print is shown (10 seconds)'
	@echo 'make hint S=05          the next hint; make solution S=05 shows the stage, make watch S=05 grades at every save'
	@echo 'make quiz               a kernel that is wrong on purpose: which line, and what would show it?'
	@echo 'make class SUBMISSIONS=folder   grade the files of a class, a folder per student, into build/class/gradebook.csv (10 seconds a file)'
	@echo 'make student-tree OUT=folder    write the tree that students get: skeletons, no solutions (5 seconds)'
	@echo 'make bench              measure the GPU of this machine, store the results in profiling_results/<gpu>/ (minutes);'
	@echo '                        S=vector measures one ladder only, S=vector/controls one of its sweeps'
	@echo 'make peers              time the header in include/ against every peer that is installed; needs PyTorch'
	@echo 'make chain              time what the header and its peers add to a layer of a model; needs PyTorch'
	@echo 'make tune               measure which kernels the header should choose on this GPU, and write its policy;'
	@echo '                        S=backward does it for gradients, S=q4_gemm for include/q4_gemm'
	@echo 'make profile S=05       read the hardware counters of one stage, or with S=all of every stage'
	@echo 'make plots              draw the stored results of a GPU into plots/; needs no GPU'
	@echo 'make readme             write the stored figures into the pages; needs no GPU'
	@echo 'make site               build the course as pages for a browser, build/site/index.html, with the reports of every'
	@echo '                        stage, which it counts the first time; needs no GPU'
	@echo 'make slides             make slides for the four core weeks from the pages, build/slides/; needs no GPU (2 seconds)'
	@echo 'make programs           build every program, run none'
	@echo 'make debug FILE=...     build the program of a kernel file for gdb, build/debug/program; F5 in VS Code does it (10 seconds)'
	@echo 'make compile_commands.json  how clangd reads each file; make writes it, too'
	@echo 'make compile-check      compile every .cu for sm_80, sm_87, sm_89, sm_90a, sm_120: needs nvcc, not a GPU'
	@echo 'make headers            pack the headers in include/ for CMake: build/rms_norm_ladder-headers.tar.gz'
	@echo 'make format             format every C++ and CUDA file with clang-format, and every Python file with ruff'
	@echo 'make clean              remove what was built'
	@echo
	@echo 'The times are those of two cores without a GPU, the first time, without downloads.'
	@echo
	@echo 'BACKEND=cuda|cpu        nvcc or the CPU device; by default cuda if there are nvcc and a GPU'
	@echo 'ARCHS="80 90a"          GPU architectures of a cuda build; by default those of this machine'
	@echo 'ARGS="--rows 7"         options of the program that make run, stage, analyze, peers or chain starts'
	@echo 'RESULTS=dir             where make bench, make profile, make class and make analyze S=all store results'
	@echo 'GPU=h200                the GPU whose stored results make plots, make readme and make tune use'

setup-user:
	@scripts/setup_user.sh
run:
	@scripts/setup.sh run
	@[ -e $(PROGRAM) ] || echo 'run: the first build compiles the CPU device or the kernels for the GPU, the harness and every stage'
	@$(MAKE) -j"$$(python3 -B simt/driver/jobs.py)" $(firstword $(LADDERS))/linked
	@mkdir -p build/run && ./$(PROGRAM) --csv build/run/rms_norm_matrix.csv $$ARGS
	@[ ! -e .venv/installed.txt ] || .venv/bin/python plots/plot_bandwidth.py --run build/run/rms_norm_matrix.csv
	@echo 'run: now the programs of the other ladders, $(wordlist 2,9,$(PROGRAMS:%=./%)); Ctrl-C leaves them out'
	@$(MAKE) -j"$$(python3 -B simt/driver/jobs.py)" all

test:
	@[ -d tests ] || { echo 'test: this tree has no tests of the course; make grade checks your exercises' >&2; exit 2; }
	@scripts/setup.sh test
	@.venv/bin/python -m pytest -rsfE -n "$$(python3 -B simt/driver/jobs.py)" --dist loadfile --no-loadscope-reorder --max-worker-restart=0 --durations=10 tests $$ARGS

# The jobs of tools/ladder: python3 -m ladder --help, with tools/ on PYTHONPATH, and after it what the user has there.
bench profile stage analyze peers chain tune plots readme site start exercise grade try hint solution watch quiz class \
  student-tree slides: \
  export PYTHONPATH := $(CURDIR)/tools$(addprefix :,$(PYTHONPATH))
stage:
	@python3 -B -m ladder stage "$$S"
analyze:
	@python3 -B -m ladder analyze "$$S" --results "$$RESULTS"
exercise hint solution:
	@python3 -B -m ladder $@ "$$S"
# Code 3, that something is not right yet, is no error of make's.
grade try watch:
	@python3 -B -m ladder $@ "$$S" || { code=$$?; [ $$code = 3 ] || exit $$code; }
start:
	@scripts/setup.sh start
	@python3 -B -m ladder start "$$S" || { code=$$?; [ $$code = 3 ] || exit $$code; }
quiz:
	@python3 -B -m ladder quiz "$$S" --guess "$$GUESS" || { code=$$?; [ $$code = 3 ] || exit $$code; }
class:
	@python3 -B -m ladder class "$$SUBMISSIONS" --results "$$RESULTS" $$ARGS
student-tree:
	@python3 -B -m ladder student-tree "$$OUT" $$ARGS
bench:
	@python3 -B -m ladder bench "$$S" --results "$$RESULTS"
profile:
	@python3 -B -m ladder profile "$$S" --results "$$RESULTS"
peers:
	@python3 -B -m ladder peers $$ARGS
chain:
	@python3 -B -m ladder chain $$ARGS
tune:
	@python3 -B -m ladder tune "$$S" --gpu "$$GPU"
readme:
	@python3 -B -m ladder readme --gpu "$$GPU"
plots:
	@scripts/setup.sh plots
	@.venv/bin/python -B -m ladder plot --gpu "$$GPU"
slides:
	@scripts/setup.sh plots
	@.venv/bin/python -B -m ladder slides
site:
	@scripts/setup.sh site
	@.venv/bin/python -B -m ladder site $$ARGS

# The libraries once for all leaves, which are told so.
libs:
	@mkdir -p build && flock -o build/lock $(MAKE) -f mk/libs.mk
gpu-libs:
	@mkdir -p build && flock -o build/lock $(MAKE) -f mk/libs.mk gpu-code
analysis-libs:
	@mkdir -p build && flock -o build/lock $(MAKE) -f mk/libs.mk analysis
programs: $(LEAVES:%=%/programs)
COMPILED := $(filter-out bench/% lectures/W2L1_reduction/controls tests/% $(STAGES),$(LEAVES))
gpu-code: $(COMPILED:%=%/gpu-code)
%/program: libs
	@$(MAKE) -C $* program LIBS=ready
%/analyzed: analysis-libs
	@$(MAKE) -C $* analyzed LIBS=ready
%/programs: libs
	@$(MAKE) -C $* programs LIBS=ready
%/gpu-code: gpu-libs
	@$(MAKE) -C $* gpu-code LIBS=ready

# What an editor asks for: the program of FILE, a stage's or an exercise's.
debug:
	@folder=$$(dirname '$(FILE)') locked=; \
	case '$(FILE)' in my/*) folder=$$(PYTHONPATH=tools python3 -B -m ladder own-folder '$(FILE)') || exit 2; \
	  locked="flock -o $$folder/.lock" ;; esac; \
	grep -qs 'mk/stage\.mk$$' "$$folder/Makefile" || \
	{ echo "debug: FILE='$(FILE)' has no program; give a file beside a Makefile, or an exercise of my/" >&2; exit 2; }; \
	$$locked $(MAKE) -C "$$folder" debug FILE='$(notdir $(FILE))'
compile_commands.json:
	@PYTHONPATH=tools python3 -B -m ladder.core.editor

# A build of its own, so that what make BACKEND=cuda has built stays as it is.
compile-check:
	@$(MAKE) gpu-code BACKEND=cuda ARCHS='$(or $(ARCHS),80 87 89 90a 120)' BUILD_NAME=compile-check

headers:
	@mkdir -p build
	@tar -czf build/rms_norm_ladder-headers.tar.gz --transform 's,^,rms_norm_ladder-headers/,' LICENSE -C include $(notdir $(wildcard include/*))
	@echo 'headers: build/rms_norm_ladder-headers.tar.gz'

format:
	@scripts/format.sh -i

# make 05_warp_shuffle, make vector/05_warp_shuffle, make W2L1/reduction5: the stage's own program.
.DEFAULT:
	@PYTHONPATH=tools python3 -B -m ladder build '$@'

# Of links, those that lead into build/ of this tree; the programs in the root are links to such links.
clean:
	@find . \( -path ./.git -o -path ./.venv \) -prune -o -type l -exec bash -c \
	  '[[ $$(readlink -m "$$1") != "$$(pwd -P)"/build/* ]] || rm "$$1"' - {} \;
	rm -f $(PROGRAMS)
	rm -rf build
