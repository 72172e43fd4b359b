"""The options of nvcc that simtcc takes, by what becomes of them."""

import re

HELP = """\
simtcc my.cu -o my      compiles CUDA C++ for the CPU device; the options are nvcc's

  -o FILE  -c  -E  -shared  -lib                 what to make
  -I DIR  -isystem DIR  -include FILE  -D X[=V]  -U X  -std=c++17|c++20  -x cu|c++|c
  -O0..-O3  -g  -G  -w  -W...  -Werror all-warnings  -fmad=false
  -l LIB  -L DIR  -Xcompiler A,B  -Xlinker A,B  -ccbin G++
  -M  -MM  -MD  -MMD  -MF FILE  -MT TARGET  -MP  dependencies for make
  --analyze                                      a program that counts and checks what its kernels do
  -v  --dryrun  --keep  --keep-dir DIR            what is done
nvcc's options about GPU code (-arch, -gencode, -lineinfo, -Xptxas, ...) are accepted and have no effect.
Environment: CXX (g++ 12 or newer), SIMT_BUILD_DIR (where libsimt.a is kept)."""

LANGUAGES = {".cu": "cu", ".c": "c", ".ii": "c++-cpp-output", ".i": "cpp-output"}
LANGUAGES.update(dict.fromkeys([".cpp", ".cc", ".cxx", ".c++", ".C", ".cp"], "c++"))
LINKED = re.compile(r"\.(o|obj|a|so|lo)(\.[\d.]+)?$")

SHORT = {  # nvcc's long names; either form is written with one dash or two
    "output-file": "o",
    "compile": "c",
    "device-c": "dc",
    "preprocess": "E",
    "device-link": "dlink",
    "include-path": "I",
    "system-include": "isystem",
    "pre-include": "include",
    "define-macro": "D",
    "undefine-macro": "U",
    "library": "l",
    "library-path": "L",
    "optimize": "O",
    "debug": "g",
    "device-debug": "G",
    "compiler-options": "Xcompiler",
    "linker-options": "Xlinker",
    "compiler-bindir": "ccbin",
    "disable-warnings": "w",
    "generate-dependencies": "M",
    "generate-nonsystem-dependencies": "MM",
    "generate-dependencies-with-compile": "MD",
    "generate-nonsystem-dependencies-with-compile": "MMD",
    "dependency-output": "MF",
    "dependency-target-name": "MT",
    "generate-dependency-targets": "MP",
    "verbose": "v",
    "save-temps": "keep",
    "h": "help",
    "V": "version",
    "output-directory": "odir",
    "options-file": "optf",
    "relocatable-device-code": "rdc",
    "profile": "pg",
    "forward-unknown-opts": "forward-unknown-to-host-compiler",
    "forward-unknown-to-host-linker": "forward-unknown-to-host-compiler",
}
FLAGS = set("c dc E dlink lib shared M MM MD MMD MP g G w v dryrun keep help version pg".split())
FLAGS |= {
    "analyze",
    "forward-unknown-to-host-compiler",
    "extended-lambda",
    "expt-extended-lambda",
    "expt-relaxed-constexpr",
}
VALUES = set("o odir I isystem include D U l L O x std Xcompiler Xlinker ccbin MF MT MQ Werror".split())
VALUES |= {"keep-dir", "optf", "fmad", "default-stream", "rdc"}
GLUED = re.compile(r"-(isystem|[IDULlOt])(.+)", re.DOTALL)
NO_EFFECT = set(
    """lineinfo generate-line-info use_fast_math m64 dw device-w link nodlink no-device-link dlto dlink-time-opt lto
    restrict extra-device-vectorization src-in-ptx source-in-ptx res-usage resource-usage ewp extensible-whole-program
    err-no display-error-number no-err-no no-display-error-number nohdinitlist no-host-device-initializer-list
    nohdmoveforward no-host-device-move-forward allow-unsupported-compiler no-compress noprof dont-use-profile
    keep-device-functions objtemp objdir-as-tempdir use-local-env gen-opt-lto reloc-ptx relocatable-ptx jobserver
    Wreorder Wdefault-stream-launch Wmissing-launch-bounds Wext-lambda-captures-this
    Wno-deprecated-gpu-targets fdevice-syntax-only""".split()
)
NO_EFFECT_VALUES = set(
    """arch gpu-architecture code gpu-code gencode generate-code maxrregcount Xptxas ptxas-options Xnvlink
    nvlink-options Xcudafe Xfatbin Xarchive archive-options threads t split-compile split-compile-extended
    diag-suppress diag_suppress diag-warn diag_warn diag-error diag_error cudart cudadevrt machine m ftz prec-div
    prec-sqrt ldir libdevice-directory target-dir target-directory opt-info optimization-info Ofc Ofast-compile time
    brief-diag brief-diagnostics jtd jump-table-density compress-mode static-global-template-stub dopt
    device-entity-has-hidden-visibility arbin archiver-binary e entries""".split()
)
WERROR_KINDS = set("all-warnings cross-execution-space-call reorder default-stream-launch".split())
WERROR_KINDS |= set("missing-launch-bounds ext-lambda-captures-this deprecated-declarations".split())
REFUSED = set("cuda cubin fatbin ptx optix-ir ltoir run sanitize qpp-config clean clean-targets".split())
