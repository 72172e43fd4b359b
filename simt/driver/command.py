"""What a command line asks for."""

import os
import re
import shlex
import sys
from pathlib import Path

from . import TOOLKIT, VERSION
from .absent import DROPPED_LIBRARIES, REFUSED_LIBRARIES, WHAT_THERE_IS, is_toolkit
from .builds import BUILDS
from .failure import wrong_usage
from .options import (
    FLAGS,
    GLUED,
    HELP,
    LANGUAGES,
    LINKED,
    NO_EFFECT,
    NO_EFFECT_VALUES,
    REFUSED,
    SHORT,
    VALUES,
    WERROR_KINDS,
)


def words_of(value):
    """The parts of a list option: commas separate, and so do blanks before a dash, as in -Xcompiler "-Wall -Wextra"."""
    parts = [part.replace("\\,", ",") for part in re.split(r"(?<!\\),", value)]
    return [word for part in parts for word in re.split(r"\s+(?=-)", part.strip()) if word]


def describe_toolkit():
    """What CMake reads of nvcc -v: where all is, the last link line, which has the text of LIBRARIES, and GPUs to name."""
    for line in (
        f"TOP={TOOLKIT}",
        f"NVVMIR_LIBRARY_DIR={TOOLKIT}/nvvm/libdevice",
        f"PATH={os.environ.get('PATH', '')}",
        f"INCLUDES={shlex.quote(f'-I{TOOLKIT}/include')}",
        f"LIBRARIES={shlex.quote(f'-L{TOOLKIT}/lib64')}",
        "ARCHITECTURE=-arch compute_90",
    ):
        print("#$", line, file=sys.stderr)


class Command:
    """What the command line asks for."""

    def __init__(self, arguments):
        self.mode = "link"
        self.build = BUILDS["run"]
        self.output = self.directory = self.compiler = self.dependency_file = None
        self.inputs = []  # (path, language); the language is None for what is only linked
        self.link = []  # inputs' indices and linker options, in order
        self.macros = []  # options of the preprocessor
        self.options = []  # of every compilation
        self.standard = "gnu++17"
        self.dependencies = None  # -MD or -MMD
        self.targets = []
        self.verbose = self.dry = self.forward = False
        self.keep = None
        self.read(list(arguments))
        self.check()

    def read(self, arguments):
        language = None
        while arguments:
            argument = arguments.pop(0)
            if not argument.startswith("-") or argument == "-":
                self.add_input(argument, language)
                continue
            spelled, equals, value = argument.lstrip("-").partition("=")
            name = SHORT.get(spelled, spelled)
            if name in FLAGS and not equals:
                self.flag(name)
            elif name == "O" and not equals and not (arguments and re.fullmatch("[0-3]", arguments[0])):
                self.options.append("-O1")
            elif name in VALUES or name in NO_EFFECT_VALUES:
                if not equals:
                    if not arguments:
                        raise wrong_usage(f"the option {argument} lacks its value")
                    if name == "Werror" and not WERROR_KINDS.issuperset(arguments[0].split(",")):
                        raise wrong_usage(f"write -Werror all-warnings; after it stands {arguments[0]}")
                    value = arguments.pop(0)
                if name == "x":
                    if value not in ("cu", "c++", "c"):
                        raise wrong_usage(f"-x {value} is not known; the languages are cu, c++ and c")
                    language = value
                elif name == "optf":
                    arguments[:0] = self.read_file(value)
                elif name in VALUES:
                    self.value(name, value)
            elif name in NO_EFFECT:
                pass
            elif name in REFUSED:
                raise wrong_usage(f"{argument} makes no sense on the CPU device: it has no GPU code")
            elif GLUED.fullmatch(argument):
                self.value(*GLUED.fullmatch(argument).groups())
            elif argument.startswith("-Wl,"):
                self.link.append(argument)
            elif argument.startswith("-W"):
                self.options.append(argument)
            elif self.forward:
                self.options.append(argument)
                self.link.append(argument)
            else:
                hint = f"; for g++ write -Xcompiler {argument}" if re.match("-[fmpsg]", argument) else ""
                raise wrong_usage(f"unknown option {argument}{hint}")

    @staticmethod
    def read_file(path):
        try:
            return shlex.split(Path(path).read_text())
        except OSError as error:
            raise wrong_usage(f"{path}: {error.strerror}")

    def add_input(self, path, language):
        if language is None and not LINKED.search(path):
            suffix = Path(path).suffix
            if suffix in (".ptx", ".cubin", ".fatbin"):
                raise wrong_usage(f"{path} is GPU code, which the CPU device cannot run")
            if suffix not in LANGUAGES:
                raise wrong_usage(f"{path}: only .cu, .cpp, .cc, .cxx, .c, .o, .a and .so files are known; see also -x")
            language = LANGUAGES[suffix]
        if path != "-" and not os.path.isfile(path):
            raise wrong_usage(f"{path}: no such file")
        self.link.append(len(self.inputs))
        self.inputs.append((path, language))

    def flag(self, name):
        if name == "help":
            print(HELP)
            sys.exit(0)
        if name == "version":
            # The words by which CMake knows nvcc; it then asks for a toolkit, which a checkout is not.
            driver = "nvcc: NVIDIA (R) Cuda compiler driver\n" if TOOLKIT else ""
            print(f"{driver}simtcc {VERSION}: CUDA C++ for the CPU device")
            print("Cuda compilation tools, release 13.0, V13.0.0")
            sys.exit(0)
        if name in ("c", "dc", "E", "M", "MM", "lib", "dlink"):
            self.mode = "c" if name == "dc" else name
            self.macros += ["-D__CUDACC_RDC__"] if name == "dc" else []
        elif name in ("MD", "MMD"):
            self.dependencies = f"-{name}"
        elif name == "MP":
            self.targets.append("-MP")
        elif name == "G":
            self.options += ["-g", "-O0"]
        elif name in ("g", "w"):
            self.options.append(f"-{name}")
        elif name == "pg":
            self.link.append("-pg")
            self.options.append("-pg")
        elif name == "shared":  # bound to its own device: a process may have NVIDIA's runtime, too
            self.link += ["-shared", "-Wl,-Bsymbolic"]
        elif name in ("v", "dryrun"):
            self.verbose, self.dry = True, self.dry or name == "dryrun"
            if TOOLKIT and name == "v":
                describe_toolkit()
        elif name == "analyze":
            self.build = BUILDS["analysis"]
        elif name == "keep":
            self.keep = self.keep or "."
        elif name.endswith("extended-lambda"):
            self.macros.append("-D__CUDACC_EXTENDED_LAMBDA__")
        elif name == "expt-relaxed-constexpr":
            self.macros.append("-D__CUDACC_RELAXED_CONSTEXPR__")
        else:
            self.forward = True

    def value(self, name, value):
        if name in ("I", "isystem"):
            # The headers of a CUDA toolkit must not come before those of the device.
            self.macros += ["-idirafter" if is_toolkit(value) else f"-{name}", value]
        elif name in ("D", "U", "include"):
            self.macros += [f"-{name}", value]
        elif name == "o":
            self.output = value
        elif name == "odir":
            self.directory = value
        elif name == "O":
            self.options.append(f"-O{value}")
        elif name == "std":
            year = re.fullmatch(r"(?:c|gnu)\+\+(?:(98|03|0x|11|1y|14)|17|1z|20|2a|23|2b|26|2c)", value)
            if not year:
                raise wrong_usage(f"-std={value} is not known; write -std=c++17 or -std=c++20")
            self.standard = "gnu++17" if year[1] else value  # the device's headers need C++17
        elif name == "l":
            for library in value.split(","):
                self.add_library(library)
        elif name == "L":
            self.link.append(f"-L{value}")
        elif name == "Xcompiler":
            self.options += words_of(value)
            self.link += words_of(value)
        elif name == "Xlinker":
            for word in words_of(value):
                self.link += ["-Xlinker", word]
        elif name == "ccbin":
            self.compiler = value
        elif name == "MF":
            self.dependency_file = value
        elif name in ("MT", "MQ"):
            self.targets += [f"-{name}", value]
        elif name == "Werror":
            for kind in value.split(","):  # another kind than nvcc's is one of g++'s
                if kind == "all-warnings":
                    self.options.append("-Werror")
                elif kind not in WERROR_KINDS:
                    self.options.append(f"-Werror={kind}")
        elif name == "keep-dir":
            self.keep = value
        elif name == "fmad":
            self.options += ["-ffp-contract=off"] if value == "false" else []
        elif name == "default-stream":
            self.macros += ["-DCUDA_API_PER_THREAD_DEFAULT_STREAM"] if value == "per-thread" else []
        elif name == "rdc":
            self.macros += ["-D__CUDACC_RDC__"] if value == "true" else []

    def add_library(self, library):
        if REFUSED_LIBRARIES.match(library):
            raise wrong_usage(f"-l{library}: the CPU device does not have this library; {WHAT_THERE_IS}")
        if library not in DROPPED_LIBRARIES:
            self.link.append(f"-l{library}")

    def check(self):
        if not self.inputs:
            raise wrong_usage("no input file; write simtcc my.cu -o my, or --help")
        sources = [path for path, language in self.inputs if language]
        if self.mode not in ("link", "lib", "dlink"):
            if not sources:
                raise wrong_usage(f"-{self.mode} needs a source file")
            if self.output and self.mode == "c" and len(sources) > 1:
                raise wrong_usage(f"-o {self.output} with -c takes one source file, not {len(sources)}")
        outputs = [self.object_of(path) for path in sources] if self.mode == "c" else [self.output]
        for output in filter(None, outputs):
            directory = os.path.dirname(output) or "."
            if not os.path.isdir(directory):
                raise wrong_usage(f"{output}: there is no folder {directory}")
            if any(os.path.exists(output) and os.path.samefile(output, path) for path, _ in self.inputs if path != "-"):
                raise wrong_usage(f"the output {output} is also an input")

    def object_of(self, path):
        name = ("a" if path == "-" else Path(path).stem) + ".o"
        return self.output or os.path.join(self.directory or "", name)
