"""Makes what a command asks for: each .cu goes through g++'s preprocessor, translate.py and g++."""

import contextlib
import os
import re
import shlex
import sys
from pathlib import Path

from . import INCLUDES, SIMT, TOOLKIT
from .absent import refuse_toolkit
from .builds import BUILDS, CUDA_MACROS, CUDA_WARNINGS, OF_MACHINE
from .failure import Failure
from .messages import in_the_students_words, without_what_c_allows
from .runtime_library import linked_with
from .tools import Tools


class Compiler:
    """Carries out a command, with a folder for what is temporary."""

    def __init__(self, command, folder):
        self.command = command
        self.folder = folder
        self.tools = Tools(command, folder)
        self.parts = {}  # dependency file -> the dependencies of each source

    def options_for(self, language):
        command = self.command
        options = [f"-std={command.standard}"] if language in ("cu", "c++", "c++-cpp-output") else []
        own = command.options + [command.build["optimization"]] if "optimization" in command.build else command.options
        # libbacktrace does not join a relative folder with that of the compilation, so the debug information has none. Of
        # the two rules the last is tried first: absolute paths stay as they are.
        options += [f"-fdebug-prefix-map=={os.getcwd()}/", "-fdebug-prefix-map=/=/"]
        options += [f"-fdebug-prefix-map={INCLUDES[0]}=/simt/include"] if TOOLKIT else []
        options += command.build["compile"] + OF_MACHINE.get(self.tools.machine, [])
        if language in ("c", "c++"):  # has no kernels, and takes twice as long to compile with it
            options = [option for option in options if option != "-fsanitize=alignment"]
        return options + (CUDA_WARNINGS if language == "cu" else []) + own

    def macros_for(self, language):
        options = ["-D__NVCC__", "-D__SIMT__=1"]
        for folder in INCLUDES:
            options += ["-isystem", str(folder)]
        return options + (CUDA_MACROS if language == "cu" else []) + self.command.macros

    def preprocess(self, path, language, *arguments):
        """g++ on a source as the student wrote it; other languages than CUDA may be compiled at once."""
        options = self.options_for(language) + self.macros_for(language)
        language = "c++" if language == "cu" else language
        self.tools.run_gxx(["-x", language, *options, *arguments, path], cached="-c" in arguments)

    def dependencies_for(self, target, number):
        """The options that write dependencies into a temporary file."""
        command = self.command
        if not command.dependencies:
            return []
        part = os.path.join(self.folder, f"{number}.d")
        default = os.path.splitext(target)[0] + ".d" if command.mode == "c" else target + ".d"
        self.parts.setdefault(command.dependency_file or default, []).append(part)
        named = "-MT" in command.targets or "-MQ" in command.targets
        return [command.dependencies, "-MF", part, *command.targets, *([] if named else ["-MQ", target])]

    def write_dependencies(self):
        for path, parts in self.parts.items():
            if not self.command.dry:
                Path(path).write_text("".join(Path(part).read_text() for part in parts))

    @contextlib.contextmanager
    def under_another_name(self, output):
        """Where to write an output, which gets its name when it is whole: what is killed leaves no half of it."""
        if self.command.dry or self.command.verbose or os.path.exists(output) and not os.path.isfile(output):
            yield output
            return
        part = f"{output}.{os.getpid()}.part"
        try:
            yield part
            os.replace(part, os.path.realpath(output))
        finally:
            with contextlib.suppress(OSError):
                os.unlink(part)

    def compile(self, number, output, target):
        with self.under_another_name(output) as part:
            self.compile_to(number, part, target)

    def compile_to(self, number, output, target):
        path, language = self.command.inputs[number]
        dependencies = self.dependencies_for(target, number)
        if language == "c" and not self.command.dry and self.uses_cuda(path, number):
            self.compile_c(path, number, output, dependencies)
            return
        if language != "cu":
            self.preprocess(path, language, *dependencies, "-c", "-o", output)
            return
        stem = os.path.join(self.folder, f"{number}-{Path(path).stem}")
        if self.command.keep:
            stem = os.path.join(self.command.keep, Path(path).stem)
        preprocessed, translated = stem + ".ii", stem + ".translated.ii"
        self.preprocess(path, language, *dependencies, "-E", "-o", preprocessed)
        if self.command.verbose:
            print("#$", shlex.join([str(SIMT / "translate.py"), preprocessed, "-o", translated]), file=sys.stderr)
        if not self.command.dry:
            self.translate(path, preprocessed, translated)
        options = self.options_for(language)
        arguments = ["-x", "c++-cpp-output", *options, "-c", translated, "-o", output]
        self.tools.run_gxx(arguments, in_the_students_words, cached=True, checked=True)

    def uses_cuda(self, path, number):
        """Whether a C file includes CUDA's headers, which are C++ here; what g++ -E prints of it is kept."""
        self.preprocess(path, "c++", "-E", "-o", self.preprocessed_c(number))
        text = Path(self.preprocessed_c(number)).read_text(errors="surrogateescape")
        return any(f'"{folder}/' in text for folder in INCLUDES)

    def preprocessed_c(self, number):
        return os.path.join(self.folder, f"{number}-c.ii")

    def compile_c(self, path, number, output, dependencies):
        """A C file with CUDA's headers as C++ with the linkage of C."""
        from preprocessed import read_text, with_c_linkage, write_text

        if dependencies:
            self.preprocess(path, "c++", *dependencies, "-E", "-o", self.preprocessed_c(number))
        wrapped = os.path.join(self.folder, f"{number}-linked.ii")
        write_text(wrapped, with_c_linkage(read_text(self.preprocessed_c(number))))
        options = [*self.options_for("c++-cpp-output"), "-fpermissive", "-Wno-write-strings"]
        self.tools.run_gxx(["-x", "c++-cpp-output", *options, "-c", wrapped, "-o", output], without_what_c_allows)

    def translate(self, path, preprocessed, translated):
        # Imported here, since Python takes a while to read the translator, and only a .cu needs it.
        from preprocessed import read_text, write_text
        from translate import TranslateError, translate, with_host_halves

        text = read_text(preprocessed)
        refuse_toolkit(re.findall(r'^# 1 "(/[^"\n]+)" 1', text, re.MULTILINE))
        notes, headers, halves = [], [], []
        kernels_apart = self.command.build["kernels_apart"]
        try:
            code = translate(text, kernels_apart, notes, headers, halves)
            # What few programs need, so that few pay for it: the header that the translated text needs, and the host's
            # half of a function that __CUDA_ARCH__ divides.
            included = [word for header in headers for word in ("-include", header)]
            if headers:
                self.preprocess(path, "cu", *included, "-E", "-o", preprocessed)
                text = read_text(preprocessed)
            if halves:
                of_host = preprocessed + ".host"
                self.preprocess(path, "cu", *included, "-U__CUDA_ARCH__", "-E", "-o", of_host)
                text = with_host_halves(text, read_text(of_host))
            if headers or halves:
                code = translate(text, kernels_apart)
        except TranslateError as error:
            print(error, file=sys.stderr)
            raise Failure("")
        write_text(translated, code)
        if notes and "-w" not in self.command.options and self.command.build is BUILDS["run"]:
            print(*notes, sep="\n", file=sys.stderr)

    def compile_all(self, target=None):
        """The object of each input, by its index; objects that nobody asked for are temporary."""
        objects = {}
        for number, (path, language) in enumerate(self.command.inputs):
            objects[number] = path
            if language:
                kept = os.path.join(self.folder, f"{number}-{Path(path).stem}.o")
                objects[number] = kept if target else self.command.object_of(path)
                self.compile(number, objects[number], target or objects[number])
        return objects

    def finish(self):
        command = self.command
        if command.keep:
            os.makedirs(command.keep, exist_ok=True)
        if command.mode in ("E", "M", "MM"):
            self.show()
        elif command.mode == "c":
            self.compile_all()
        elif command.mode == "dlink":  # nvcc's device link makes an object; there is nothing to put into it
            output = command.output or "a_dlink.o"
            self.tools.run_gxx(["-x", "c++", "-c", os.devnull, "-o", output])
        elif command.mode == "lib":
            output = command.output or "a.a"
            self.tools.run(["ar", "rcs", output, *self.compile_all(output).values()])
        else:
            output = command.output or "a.out"
            objects = self.compile_all(output)
            items = [objects[item] if isinstance(item, int) else item for item in command.link]
            with self.under_another_name(output) as part:
                self.tools.run_gxx([*items, *linked_with(command, self.tools.gxx), "-o", part])
        self.write_dependencies()

    def show(self):
        """-E, -M and -MM: what g++ prints, for each source."""
        command = self.command
        place = command.output or (command.dependency_file if command.mode != "E" else None)
        part = os.path.join(self.folder, "shown")
        with contextlib.ExitStack() as stack:
            out = stack.enter_context(open(place, "wb")) if place and not command.dry else sys.stdout.buffer
            for number, (path, language) in enumerate(command.inputs):
                if language:
                    target = command.object_of(path) if command.mode == "E" else ""
                    extra = command.targets if command.mode != "E" else self.dependencies_for(target, number)
                    self.preprocess(path, language, f"-{command.mode}", *extra, "-o", part)
                    out.write(b"" if command.dry else Path(part).read_bytes())
            out.flush()
