#!/usr/bin/env python3
"""Turn preprocessed CUDA C++ into C++ that g++ compiles for the CPU device.

The input is what `g++ -E` prints, so macros and includes are resolved and line markers name the student's file and
line. A system header (marker flag 3) without CUDA words is copied unread. The rest is cut into tokens, walked once with
just enough memory of namespaces, classes and functions, and these words are rewritten in place:

    k<<<g, b>>>(x)            ::simt::launch(k, ::simt::LaunchConfig("k", g, b))(x)
    k<<<g, b>>>(x)            ::simt::launch_deduced([&](auto... simt_args) { ::simt::runs::on_both(); k(simt_args...); },
                              find, ...)(x)
                              where k has template arguments to deduce, omitted arguments or overloads; find(types...)
                              is k's address
    __shared__ ...            a reference to the block's memory: see shared_memory.py
    (void*)k<float>           (void*)::simt::handle<k<float>>()
    __global__, __device__, __host__, __launch_bounds__(n), #pragma unroll        blanks
    __device__ void f() {     void f() { ::simt::runs::on_device();     for execution_space.py; so with each function
    __device__ int x;         int x; static const ::simt::DeviceVariable simt_V_x(x);    in a namespace
    __noinline__              __attribute__((noinline))
    asm("membar.gl;")         C++ for the PTX instructions that ptx.py knows; any other is refused

A shared variable is static in CUDA, a reference here: functions that name a namespace's one, and lambdas that name any,
declare it again at their head. After a rewrite, a line marker and blanks put the rest of the line back on its line and
column, so that g++ and gdb speak of the student's text. What cannot be translated is an error with file and line, never
a guess.
"""

import argparse
import re
import sys
from typing import NamedTuple

import ptx
from preprocessed import CLOSERS, Source, read_text, restore_blanks, unquote, write_text
from shared_memory import ATTRIBUTES, CLASS_KEYS, Reference, Refusal, SharedDeclaration

LAUNCH_ATTRIBUTES = {"__launch_bounds__", "__maxnreg__", "__cluster_dims__"}
LAUNCH_CALLS = {"cudaLaunchKernelEx", "cudaLaunchKernelExC", "cudaLaunchKernel", "cudaLaunchCooperativeKernel"}
CONTROL = {"if", "while", "for", "switch", "constexpr"}
OPERATORS = set(
    """sizeof alignof __alignof __alignof__ typeid noexcept new delete co_await not compl and or xor bitand bitor
    not_eq and_eq or_eq xor_eq""".split()
)
STATEMENT_WORDS = CONTROL | OPERATORS | {"return", "else", "do", "goto", "co_return", "co_yield", "throw", "case"}

FUNDAMENTAL = set("const bool char short int long unsigned signed float double size_t *".split())

ARCHITECTURES_MACRO = re.compile(r"^\s*#\s*if[^\n]*__CUDA_ARCH__[^\n]*\n\s*#\s*define\s+(\w+)", re.MULTILINE)

REFUSED_NAMES = {
    "cudaSurfaceObject_t": "the CPU device has no surface objects; write the memory through a pointer",
    "__block_size__": "the CPU device has no __block_size__; use __cluster_dims__ and the launch configuration",
}
REFUSED_TEMPLATES = {
    "texture": "texture references left CUDA with version 12; use a texture object, cudaTextureObject_t",
    "surface": "surface references left CUDA with version 12; write the memory through a pointer",
}

LINEAR_THREAD = "(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z))"
PTX_VALUES = {  # instructions that read one register into their operand
    "mov.u32 %0, %laneid;": f"{LINEAR_THREAD} % 32",
    "mov.u32 %0, %warpid;": f"{LINEAR_THREAD} / 32",
    "mov.u64 %0, %clock64;": "clock64()",
    "mov.u64 %0, %globaltimer;": "clock64()",
}
PTX_STATEMENTS = {
    "membar.cta;": "__threadfence_block()",
    "membar.gl;": "__threadfence()",
    "membar.sys;": "__threadfence_system()",
    "bar.sync 0;": "__syncthreads()",
    "griddepcontrol.wait;": "cudaGridDependencySynchronize()",
    "griddepcontrol.launch_dependents;": "cudaTriggerProgrammaticLaunchCompletion()",
}


class TranslateError(Exception):
    """What the translator refuses: one line `file:line: error: sentence` each."""


def is_type(word):
    """Whether a name after this word may be declared there."""
    return word.isidentifier() and word not in STATEMENT_WORDS


class Function(NamedTuple):
    """The body that is being walked; the braced initializer of a namespace's variable counts as one."""

    head: int  # the first token of its declaration
    open: int
    close: int
    is_body: bool


class Kernel(NamedTuple):
    """One declaration of a __global__ function."""

    path: str  # ns::Class::name
    parameters: list[list[str]]  # the tokens of each parameter without its default
    has_defaults: bool
    template_parameters: int  # 0 for no template
    has_pack: bool
    cluster: str  # "x, y, z" or ""

    def redeclares(self, other):
        """Whether both declare one function, as far as tokens show: a parameter may lack its name."""

        def same(a, b):
            a, b = sorted((a, b), key=len)
            return a == b or a == b[:-1] or len(a) > 1 and a[:-1] == b[:-1]

        return (
            (self.path, self.template_parameters) == (other.path, other.template_parameters)
            and len(self.parameters) == len(other.parameters)
            and all(map(same, self.parameters, other.parameters))
        )


class Launch(NamedTuple):
    first: int  # the first token of the kernel
    open: int  # <<<
    close: int  # the first of >>>
    in_function: bool


class SharedVariable(NamedTuple):
    reference: Reference
    namespace: tuple[str, ...]
    scope_end: int  # the token that closes the block of its declaration


class Translator:
    def __init__(self, text, kernels_apart=False):
        self.kernels_apart = kernels_apart
        self.source = Source(text)
        self.tokens, self.match = self.source.tokens, self.source.match
        self.edits = []  # (start, end, new text)
        self.errors = []  # (offset, sentence)
        self.notes = []  # lines
        self.uses_ptx = False
        self.shared_bodies = []  # the '{' of each function that runs on both
        self.begin = 0  # the first token of the statement that is being walked
        self.scopes = []  # (kind, name, closing brace) of the namespaces and classes around it
        self.function = None
        self.blocks = []  # the closing braces around it in the function
        self.kernels = {}  # name -> its Kernels
        self.host_functions = set()  # names
        self.declared = {}  # name -> where the functions of that name run that are declared without a body
        self.launches = []
        self.handles = []  # (first token, index after the last) of the names cast to a void pointer
        self.launch_calls = []
        self.shared = []
        self.barriers = {}  # (file, line) -> how many barriers it has
        self.handlers = {
            ";": self.on_semicolon,
            ":": self.on_colon,
            "{": self.on_open,
            "}": self.on_close,
            "(": self.on_cast,
            "[": self.on_bracket,
            "reinterpret_cast": self.on_reinterpret_cast,
            "decltype": self.on_decltype,
            "__attribute__": self.on_attribute,
            "__attribute": self.on_attribute,
            "__noinline__": self.on_noinline,
            "__global__": self.on_global,
            "__syncthreads": self.on_barrier,
            "__shared__": self.on_shared,
            "<<<": self.on_launch,
            **dict.fromkeys(["asm", "__asm__", "__asm"], self.on_asm),
            **dict.fromkeys(LAUNCH_ATTRIBUTES, self.on_launch_attribute),
            **dict.fromkeys(LAUNCH_CALLS, self.on_launch_call),
            **dict.fromkeys(REFUSED_NAMES, self.on_refused_name),
            **dict.fromkeys(REFUSED_TEMPLATES, self.on_refused_template),
        }

    def translate(self):
        i, end = 0, len(self.tokens)
        while i < end:
            handler = self.handlers.get(self.tokens[i])
            i = handler(i) if handler else i + 1
        for launch in self.launches:  # now every kernel is known
            self.rewrite_launch(launch)
        for first, behind in self.handles:
            self.rewrite_handle(first, behind)
        for i in self.launch_calls:
            self.check_launch_call(i)
        self.edits += [(start, end, " " * (end - start)) for start, end in self.source.pragmas]
        self.edits += [(start, start + len(word), " " * len(word)) for _, word, start in self.source.spaces]
        if self.errors:
            raise TranslateError("\n".join(self.error_lines()))
        return self.apply_edits() + self.declarations()

    def error(self, i, sentence):
        self.errors.append((self.source.starts[i], sentence))

    def error_lines(self):
        lines = []
        for offset, sentence in sorted(self.errors):
            line, name, _ = self.source.place(offset)
            lines.append(f"{unquote(name)}:{line}: error: {sentence}")
        return list(dict.fromkeys(lines))

    # Edits.

    def replace(self, first, last, text):
        self.edits.append((self.source.starts[first], self.source.ends[last], text))

    def insert_before(self, i, text):
        self.edits.append((self.source.starts[i], self.source.starts[i], text))

    def blank(self, first, last):
        for i in range(first, last + 1):
            self.replace(i, i, " " * len(self.tokens[i]))

    def apply_edits(self):
        text, out, position, moved = self.source.text, [], 0, False
        edits = sorted(self.edits, key=lambda edit: edit[:2])
        followers = [edit[0] for edit in edits[1:]] + [None]
        for (start, end, new), follower in zip(edits, followers):
            out += [text[position:start], new]
            position = end
            one_line = "\n" not in new and "\n" not in text[start:end]
            moved = moved or len(new) != end - start or not one_line
            if moved and follower != end:
                rest = text[end : text.find("\n", end) + 1 or None]
                if rest.strip() or not one_line:
                    out.append(self.source.resume(end))
                moved = False
        return "".join(out) + text[position:]

    # Statements and scopes.

    def namespace(self):
        return tuple(name for kind, name, _ in self.scopes if kind == "namespace" and name)

    def on_semicolon(self, i):
        if self.function:
            self.note_discarded(i)
        else:
            kind, name = self.classify(self.begin, i) if "(" in self.tokens[self.begin : i] else ("variable", "")
            self.note_function(kind, name, i)
            if kind == "function" and not self.in_system_file(i):
                self.note_declaration(name, i)
            elif kind in ("variable", "initializer") and "__device__" in self.source.spaces_among(self.begin, i):
                self.note_device_variables(i)
        self.begin = i + 1
        return i + 1

    def note_device_variables(self, i):
        """Tell the runtime of the variables that are declared before the ';' at i."""
        tokens, k, names, name = self.tokens, self.begin, [], None
        if any(kind != "namespace" for kind, _, _ in self.scopes) or {
            "extern",
            "template",
            "constexpr",
            "typedef",
            "using",
            "friend",
        }.intersection(tokens[k:i]):
            return
        while k < i:
            if tokens[k] in ATTRIBUTES:
                k = self.source.after_group(k + 1)
            elif tokens[k] == "<" and k < self.source.angle(k) < i:
                k = self.source.angle(k) + 1
            elif tokens[k] in ("=", ",") or tokens[k] in ("[", "{", "(") and name:
                names, name, value = [*names, name], None, tokens[k] != ","
                while value and k < i and tokens[k] != ",":
                    k = max(k + 1, self.source.after_group(k))
                k += tokens[k] == ","
            else:
                name = tokens[k] if tokens[k].isidentifier() else name
                k = max(k + 1, self.source.after_group(k))
        names += [name] if name else []
        behind = self.source.ends[i]
        text = "".join(f" static const ::simt::DeviceVariable simt_V_{each}({each});" for each in names if each)
        self.edits.append((behind, behind, text))

    def note_discarded(self, i):
        """A call of CUDA that is a statement of its own, ending at i: what it returns is thrown away."""
        tokens, k = self.tokens, self.match[i - 1] - 1 if self.tokens[i - 1] == ")" else -1
        if k < 1 or not tokens[k].startswith("cuda") or tokens[k].endswith("_t"):
            return
        first = k - (tokens[k - 1] == "::")
        before = tokens[first - 1]
        opened = self.match[first - 1] if before == ")" else -1
        begins = before in (";", "{", "}", "else", "do") or opened > 0 and tokens[opened - 1] in CONTROL
        if (
            begins
            and not self.in_system_file(i)
            and self.runs(self.function.head, self.function.open) in ("on_host", "on_both")
        ):
            self.insert_before(first, f'::simt::Discarded("{tokens[k]}"), ')

    def note_function(self, kind, name, end):
        """Remember a host function of a namespace: it may overload a kernel."""
        in_namespace = all(scope[0] == "namespace" for scope in self.scopes)
        if kind == "function" and in_namespace and "__global__" not in self.tokens[self.begin : end]:
            self.host_functions.add(name)

    # Where functions run.

    def runs(self, begin, end):
        """on_host, on_device, on_both or as_kernel, of the function whose declaration has the tokens begin..end-1."""
        if "__global__" in self.tokens[begin:end]:
            return "as_kernel"
        words = self.source.spaces_among(begin, end)
        return "on_host" if "__device__" not in words else "on_both" if "__host__" in words else "on_device"

    def note_declaration(self, name, end):
        """What a definition leaves out may stand in the declaration, and it may be in another file."""
        runs = self.runs(self.begin, end)
        self.declared[name] = runs if self.declared.get(name, runs) == runs else "on_both"

    def say_where_it_runs(self, name, open_):
        """Let a function say it. Those that g++ computes cannot, and nvcc takes them for both."""
        words, runs = self.tokens[self.begin : open_], self.runs(self.begin, open_)
        is_silent = {"constexpr", "consteval", "requires"}.intersection(words) or self.in_system_file(open_)
        if is_silent and runs != "as_kernel":
            return
        if runs != "as_kernel" and self.declared.get(name, runs) != runs:
            runs = "on_both"
        if runs == "on_both":
            self.shared_bodies.append(open_)
        behind = self.source.ends[open_]
        self.edits.append((behind, behind, f" ::simt::runs::{runs}();"))

    def note_volatile(self, head, open_):
        """Volatile stores one after the other without __syncwarp() were right when the lanes of a warp ran in step."""
        tokens, close = self.tokens, self.match[open_]
        words = tokens[head:close]
        if "volatile" not in words or "__syncwarp" in words or self.runs(head, open_) == "on_host":
            return
        for k in range(head, close):
            names = [k + 2 + n for n in (0, 1, 2) if tokens[k + n + 1] == "*"] if tokens[k] == "volatile" else []
            stores = self.stores_through(tokens[names[0]], open_, close) if names else []
            if len(stores) > 1:
                line, name, _ = self.source.place(self.source.starts[stores[0]])
                self.notes.append(
                    f"{unquote(name)}:{line}: note: volatile does not keep the lanes of a warp in step; put __syncwarp() "
                    "between these lines, or let simt/analyze look for races in place of simtcc"
                )
                return

    def stores_through(self, name, begin, end):
        """Where name[...] is assigned to."""
        tokens, stores = self.tokens, []
        for k in range(begin, end):
            if tokens[k] == name and tokens[k + 1] == "[" and self.match[k + 1] > k:
                after = self.match[k + 1] + 1
                after += tokens[after] in "+-*/|&^"
                if tokens[after] == "=":
                    stores.append(k)
        return stores

    def bodies(self):
        """{(file, line of its '{', which one of the line): (start, end)} of the functions that run on both."""
        found = {}
        for open_ in self.shared_bodies:
            line, file, _ = self.source.place(self.source.starts[open_])
            nth = sum(key[:2] == (file, line) for key in found)
            found[file, line, nth] = (self.source.starts[open_], self.source.ends[self.match[open_]])
        return found

    def has_halves(self):
        """Whether a function that runs on both has lines that __CUDA_ARCH__ chooses, or names a macro that it chooses."""
        texts = {}
        for (file, line, _), (_, end) in self.bodies().items():
            if file not in texts:
                try:
                    texts[file] = read_text(unquote(file))
                except OSError:
                    texts[file] = ""
            names = "|".join(["__CUDA_ARCH__", *ARCHITECTURES_MACRO.findall(texts[file])])
            last = self.source.place(end - 1)[0]
            if re.search(rf"\b({names})\b", "\n".join(texts[file].split("\n")[line - 1 : last])):
                return True
        return False

    def in_system_file(self, i):
        return "3" in self.source.place(self.source.starts[i])[2]

    def declarations(self):
        """A comment, for calls of functions that other files define."""
        return "".join(f"\n// simt: {name} {runs}" for name, runs in sorted(self.declared.items()) if runs != "on_both")

    def on_colon(self, i):
        if self.function or self.tokens[i - 1] in ("public", "private", "protected"):
            self.begin = i + 1
        return i + 1

    def on_open(self, i):
        kind, name = ("block", "") if self.function else self.classify(self.begin, i)
        close = self.match[i] if self.match[i] > i else len(self.tokens)
        if kind == "skip":
            return close + 1
        if kind in ("namespace", "class"):
            self.scopes.append((kind, name, close))
        else:
            self.blocks.append(close)
        if kind in ("function", "initializer"):
            self.function = Function(self.begin, i, close, kind == "function")
        if kind == "function":
            self.note_function(kind, name, i)
            self.say_where_it_runs(name, i)
            self.note_volatile(self.begin, i)
            self.bring_shared(self.begin, i)
        if kind != "initializer":
            self.begin = i + 1
        return i + 1

    def on_close(self, i):
        if self.scopes and i == self.scopes[-1][2]:
            self.scopes.pop()
        if self.blocks and i == self.blocks[-1]:
            self.blocks.pop()
        if self.function and i == self.function.close:
            function, self.function = self.function, None
            if not function.is_body:
                return i + 1  # the declaration goes on
        self.begin = i + 1
        return i + 1

    def classify(self, begin, brace):
        """(kind, name) of what the '{' opens that follows the tokens begin..brace-1 outside a function."""
        tokens, source, words, k = self.tokens, self.source, [], begin
        if self.is_in_parentheses(begin, brace):
            return "initializer", ""  # of a parameter
        while k < brace:  # words = these tokens without attributes and template arguments, each (...) as "()"
            token = tokens[k]
            if token in ATTRIBUTES:
                k = source.after_group(k + 1)
            elif token == "operator":
                words.append(token)
                k = source.after_group(k + 1) if tokens[k + 1] == "(" else k + 1
                while k < brace and tokens[k] != "(":
                    k += 1
            elif token == "<" and k < source.angle(k) < brace:
                k = source.angle(k) + 1
            elif source.after_group(k) > k:
                words += ["()"] if token == "(" else []
                k = source.after_group(k)
            else:
                words.append(token)
                k += 1
        call = words.index("()") if "()" in words else len(words)
        colon = words.index(":") if ":" in words else len(words)
        if "namespace" in words[:2]:
            is_inline = words[0] == "inline"
            return "namespace", "" if is_inline else "".join(words[words.index("namespace") + 1 :])
        if len(words) == 2 and words[0] == "extern":
            return "namespace", ""
        if "=" in words[:call]:
            return "initializer", ""
        if "enum" in words and call == len(words):
            return "skip", ""
        key = next((k for k, word in enumerate(words[: min(call, colon)]) if word in CLASS_KEYS), None)
        if key is not None and colon <= call:
            return "class", "".join(word for word in words[key + 1 : colon] if word != "final")
        if call == len(words):
            return "initializer", ""
        if colon < len(words) and (tokens[brace - 1].isidentifier() or tokens[brace - 1] == ">"):
            return "skip", ""  # the initializer of a member
        return "function", words[call - 1] if call else ""

    def is_in_parentheses(self, begin, i):
        k = begin
        while k < i:
            if self.match[k] > i and self.tokens[k] == "(":
                return True
            k = max(k + 1, self.source.after_group(k))
        return False

    def on_attribute(self, i):
        """Skip __attribute__((...)): the words inside are g++'s."""
        return max(i + 1, self.source.after_group(i + 1))

    def on_bracket(self, i):
        """Skip [[...]]; a lambda that names shared variables brings them."""
        before, k = self.tokens[i - 1], self.source.after_group(i)
        if self.tokens[i + 1] == "[":
            return max(i + 1, k)
        is_subscript = before in (")", "]") or before[-1:].isalnum() and before not in STATEMENT_WORDS
        if is_subscript or before[-1:] in ("_", '"') or k == i:
            return i + 1
        if self.tokens[k] == "<" and self.source.angle(k) > 0:
            k = self.source.angle(k) + 1
        while self.tokens[k] not in ("{", ";", ",", "=", ")", "]", "}", ""):
            k = max(k + 1, self.source.after_group(k))
        if self.tokens[k] == "{":
            self.bring_shared(i, k)
        return i + 1

    def on_noinline(self, i):
        self.replace(i, i, "__attribute__((noinline))")
        return i + 1

    def on_refused_name(self, i):
        if not self.source.in_system_macro(i):
            self.error(i, REFUSED_NAMES[self.tokens[i]])
        return i + 1

    def on_refused_template(self, i):
        if i == self.begin and self.tokens[i + 1] == "<" and not self.function:
            self.error(i, REFUSED_TEMPLATES[self.tokens[i]])
        return i + 1

    # Shared memory.

    def on_shared(self, i):
        end = i
        while self.tokens[end] and self.tokens[end] != ";":
            end = max(end + 1, self.source.after_group(end))
        try:
            if not self.function and self.scopes and self.scopes[-1][0] == "class":
                raise Refusal(i, "a member cannot be __shared__; declare it in the kernel")
            text, references = SharedDeclaration(self.source, self.begin, i, end).rewrite(self.function is not None)
            self.replace(self.begin, end, text)
            scope_end = self.blocks[-1] if self.blocks else len(self.tokens)
            self.shared += [SharedVariable(reference, self.namespace(), scope_end) for reference in references]
        except Refusal as refusal:
            self.error(*refusal.args)
        self.begin = end + 1
        return end + 1

    def shared_references(self, i):
        """The shared variables that can be named at i, by name."""
        namespace = self.namespace()
        self.shared = [variable for variable in self.shared if variable.scope_end > i]
        visible = [v.reference for v in self.shared if v.namespace == namespace[: len(v.namespace)]]
        return {reference.name: reference for reference in visible}

    def bring_shared(self, head, open_):
        """Declare the shared variables that a body names, unless it is host code or has its own of that name."""
        if not self.shared or self.match[open_] < 0:
            return
        references = self.shared_references(open_)
        words, body = self.tokens[head:open_], self.tokens[open_ : self.match[open_]]
        named = references.keys() & set(body)
        if not named or "<<<" in body or "main" in words:
            return
        own = {b for a, b in zip(words, words[1:]) if is_type(a) or a in ("*", "&", "&&", ">", "...")}
        own |= {b for a, b in zip(body, body[1:]) if is_type(a)}
        if named - own:  # the second pair of braces lets the body have variables of these names after all
            declarations = " ".join(references[name].declaration for name in sorted(named - own))
            self.insert_before(open_ + 1, f" {declarations} {{")
            self.insert_before(self.match[open_], "}")

    def on_decltype(self, i):
        """decltype of a shared variable is its type, not that of the reference."""
        if self.tokens[i + 1] == "(" and self.match[i + 1] == i + 3:
            reference = self.shared_references(i).get(self.tokens[i + 2])
            if reference and reference.type_name:
                self.replace(i, i + 3, reference.type_name)
        return i + 1

    def on_barrier(self, i):
        """Number the barriers of one line: threads at two of them do not meet."""
        if self.tokens[i + 1 : i + 3] == ["(", ")"] and self.function and not self.in_system_file(i):
            place = self.source.place(self.source.starts[i])[:2]
            self.barriers[place] = self.barriers.get(place, 0) + 1
            if self.barriers[place] > 1:
                self.insert_before(i + 2, f"::simt::Site::here({self.barriers[place]})")
        return i + 1

    # Kernels.

    def on_launch_attribute(self, i):
        end = max(i + 1, self.source.after_group(i + 1))
        self.blank(i, end - 1)
        return end

    def on_global(self, i):
        """Record the kernel that is declared, and leave a plain function."""
        tokens, source, k = self.tokens, self.source, i + 1
        self.replace(i, i, "__attribute__((noinline))" if self.kernels_apart else " " * len(tokens[i]))
        while True:
            names, _, end = source.read_name(k)
            if tokens[k] in ATTRIBUTES or tokens[k] in LAUNCH_ATTRIBUTES:
                k = max(k + 1, source.after_group(k + 1))
            elif names and tokens[end] == "(" and source.after_group(end) > end:
                break
            elif names:
                k = end
            elif tokens[k] in ("", ";", "{", "}", "="):
                self.error(i, "__global__ must stand in the declaration of a function")
                return i + 1
            else:
                k = max(k + 1, source.after_group(k))
        head = tokens[self.begin : k]
        if "void" not in head and "auto" not in head:
            self.error(i, "a kernel must return void")
        is_instantiation = "template" in head[:2] and head[head.index("template") + 1] != "<"
        if not is_instantiation and head[:3] != ["template", "<", ">"]:
            self.record_kernel(self.begin, names, end)
        return i + 1

    def record_kernel(self, begin, names, open_):
        tokens, source, template, k = self.tokens, self.source, [], begin
        while tokens[k] == "template" and source.angle(k + 1) > 0:
            template = source.split(k + 2, source.angle(k + 1))
            k = source.angle(k + 1) + 1
        parameters, has_defaults, is_auto = [], False, False
        for first, end in source.split(open_ + 1, self.match[open_]):
            words = tokens[first:end]
            if "=" in words:
                has_defaults = True
                words = words[: words.index("=")]
            is_auto = is_auto or "auto" in words
            parameters.append(words)
        has_pack = is_auto or any("..." in tokens[first:end] for first, end in template)
        path = "::".join([name for _, name, _ in self.scopes if name] + names)
        cluster = self.read_cluster(begin, open_, template)
        kernel = Kernel(path, parameters, has_defaults, max(len(template), is_auto), has_pack, cluster)
        known = self.kernels.setdefault(names[-1], [])
        for n, other in enumerate(known):
            if kernel.redeclares(other):
                defaults, cluster = has_defaults or other.has_defaults, cluster or other.cluster
                known[n] = other._replace(has_defaults=defaults, cluster=cluster)
                return
        known.append(kernel)

    def read_cluster(self, begin, end, template):
        """The arguments of __cluster_dims__ among tokens begin..end-1."""
        at = next((k for k in range(begin, end) if self.tokens[k] == "__cluster_dims__"), None)
        if at is None or self.tokens[at + 1] != "(":
            return ""
        words = self.tokens[at + 2 : self.match[at + 1]]
        if {self.tokens[k] for part in template for k in range(*part)}.intersection(filter(str.isidentifier, words)):
            self.error(at, "__cluster_dims__ must not depend on a template argument; launch with cudaLaunchKernelEx")
        return " ".join(words)

    # Launches.

    def on_launch(self, i):
        if self.tokens[i - 1] == "operator":
            return i + 1
        first, close = self.launched(i), self.launch_close(i)
        if close is None:
            self.error(i, "this launch has no '>>>(arguments)' that ends its '<<<'")
        elif first is None:
            self.error(i, "cannot tell which kernel '<<<' launches; put its name in parentheses")
        elif self.function and "__global__" in self.tokens[self.function.head : self.function.open]:
            self.error(i, "the CPU device has no dynamic parallelism: a kernel cannot launch a kernel")
        elif "<" not in self.tokens[i:close] and not 2 <= len(self.source.split(i + 1, close)) <= 4:
            self.error(i, "a launch takes <<<grid, block>>>, then optionally the shared memory's bytes and a stream")
        else:
            self.launches.append(Launch(first, i, close, self.function is not None))
        return i + 1

    def launch_close(self, i):
        """The first '>' of the '>>>' that ends the launch at i: it precedes '(' and closes no templates."""
        tokens, k, opened, fallback = self.tokens, i + 1, 0, None
        while tokens[k] and tokens[k] not in CLOSERS and tokens[k] != ";":
            run = 0
            while tokens[k + run] == ">":
                run += 1
            if run >= 3 and tokens[k + run] == "(":
                if opened < run:
                    return k + run - 3
                fallback = k + run - 3
            opened += (tokens[k] == "<") - run
            k = max(k + max(1, run), self.source.after_group(k))
        return fallback

    def launched(self, i):
        """The first token of the expression before '<<<' at i, or None."""
        tokens, k = self.tokens, i - 1
        while k >= 0:
            if tokens[k] == ">":
                k = self.source.angle(k) - 1
                if k < 0:
                    return None
            if tokens[k] in (")", "]"):
                k = self.match[k]
                if k < 0 or tokens[k] == "(" and not self.continues_before(k - 1):
                    return k if k >= 0 else None
                k -= 1
            elif tokens[k].isidentifier():
                k -= tokens[k - 1] == "template"
                before = tokens[k - 1]
                if before == "::" and (tokens[k - 2] in STATEMENT_WORDS or not self.continues_before(k - 2)):
                    return k - 1
                if before not in ("::", ".", "->"):
                    return k
                k -= 2
            else:
                return None
        return None

    def continues_before(self, k):
        """Whether the token at k ends an expression that a following '(' would call."""
        token = self.tokens[k]
        if token == ")" and self.match[k] > 0:
            return self.tokens[self.match[k] - 1] not in CONTROL
        if token == ">":
            return self.source.angle(k) > 0
        return token == "]" or token.isidentifier() and token not in STATEMENT_WORDS

    def rewrite_launch(self, launch):
        source = self.source
        kernels, arguments = self.find_kernels(launch.first, launch.open)
        text = source.slice(launch.first, launch.open)
        label = '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
        given = source.split(launch.close + 4, self.match[launch.close + 3])
        if self.needs_deduction(kernels, arguments, given):
            capture = "&" if launch.in_function else ""
            self.insert_before(
                launch.first, f"::simt::launch_deduced([{capture}](auto... simt_args) {{ ::simt::runs::on_both(); "
            )
            find = self.find_by_types(kernels, text, given, capture)
            self.replace(launch.open, launch.open, f"(simt_args...); }}, {find}, ::simt::LaunchConfig({label}, ")
            for first, end in given:
                if self.tokens[first:end] == ["__null"]:
                    self.replace(first, first, "nullptr")
                elif self.tokens[first] == "{":
                    self.error(first, "write the type of a braced argument, like float2{1, 2}: this kernel deduces it")
        else:
            self.insert_before(launch.first, "::simt::launch(")
            self.replace(launch.open, launch.open, f", ::simt::LaunchConfig({label}, ")
        cluster = next((f".cluster({kernel.cluster})" for kernel in kernels if kernel.cluster), "")
        self.replace(launch.close, launch.close + 2, f"){cluster})")

    def find_kernels(self, first, end):
        """The kernels that the tokens first..end-1 may name, and the range of their template arguments or None."""
        while self.tokens[first] == "(" and self.match[first] == end - 1:
            first, end = first + 1, end - 1
        first += self.tokens[first] == "&"
        names, arguments, behind = self.source.read_name(first)
        if not names or behind != end:
            return [], None
        known, path = self.kernels.get(names[-1], []), "::".join(names)
        return [kernel for kernel in known if f"::{kernel.path}".endswith(f"::{path}")] or known, arguments

    def needs_deduction(self, kernels, arguments, given):
        """Whether a launch needs overload resolution with its arguments rather than the kernel's address."""
        if len(kernels) != 1:
            return len(kernels) > 1
        kernel, explicit = kernels[0], 0
        if kernel.path.split("::")[-1] in self.host_functions:
            return True
        if arguments:
            if "..." in self.tokens[arguments[0] : arguments[1]]:
                return True
            explicit = len(self.source.split(*arguments))
        has_expansion = any("..." in self.tokens[first:end] for first, end in given)
        omitted = kernel.has_defaults and (has_expansion or len(given) != len(kernel.parameters))
        return omitted or kernel.has_pack or explicit < kernel.template_parameters

    def find_by_types(self, kernels, text, given, capture):
        """A lambda that gives the address of the launched kernel for the types of its arguments."""
        if len(given) != len(kernels[0].parameters) or kernels[0].has_pack or "\n" in text:
            return "nullptr"

        def parameter(n):
            words = kernels[0].parameters[n] if len(kernels) == 1 else []
            plain = words if set(words) <= FUNDAMENTAL else words[:-1]  # without its name
            if plain and set(plain) <= FUNDAMENTAL:
                return " ".join(plain)
            return f"::simt::As{'Const' * ('const' in words and '*' in words)}<decltype(simt_{n})>"

        names = [f"auto simt_{n}" for n in range(len(given))]
        types = ", ".join(map(parameter, range(len(given))))
        kernel = f"static_cast<void (*)({types})>({text})"
        return f"[{capture}]({', '.join(names)}) -> decltype({kernel}) {{ return {text}; }}"

    # Kernels as void pointers and as arguments of the launch functions.

    def on_cast(self, i):
        """(void*)kernel and (const void*)kernel."""
        if self.tokens[i + 1] in ("void", "const") and self.is_void_pointer(i + 1, self.match[i]):
            self.note_handle(self.match[i] + 1)
        return i + 1

    def on_reinterpret_cast(self, i):
        close = self.source.angle(i + 1)
        if close > 0 and self.is_void_pointer(i + 2, close):
            self.note_handle(close + 1)
        return i + 1

    def is_void_pointer(self, begin, end):
        return sorted(self.tokens[begin:end]) in (["*", "void"], ["*", "const", "void"])

    def note_handle(self, i):
        while self.tokens[i] in ("(", "&"):
            i += 1
        names, _, end = self.source.read_name(i)
        if not names or self.tokens[end] in ("(", "[", ".", "->", "{", "<<<"):
            return
        if self.function:  # a parameter or a variable may have a kernel's name
            head, body = self.function.head, self.tokens[self.function.open : i]
            is_assigned = any(body[k] == names[-1] and body[k + 1] == "=" for k in range(len(body) - 1))
            if names[-1] in self.tokens[head : self.function.open] or is_assigned:
                return
        self.handles.append((i, end))

    def rewrite_handle(self, first, behind):
        kernels, _ = self.find_kernels(first, behind)
        if kernels:
            if self.tokens[first - 1] == "&":
                self.blank(first - 1, first - 1)
            self.insert_before(first, "::simt::handle<")
            self.edits.append((self.source.ends[behind - 1], self.source.ends[behind - 1], ">()"))

    def on_launch_call(self, i):
        self.launch_calls.append(i)
        return i + 1

    def check_launch_call(self, i):
        for name in self.tokens[i + 1 : self.source.after_group(i + 1)]:
            if any(kernel.cluster for kernel in self.kernels.get(name, [])):
                self.error(
                    i,
                    f"give {name} its cluster with cudaLaunchAttributeClusterDimension or launch it with <<<>>>: "
                    "on the CPU device this call does not see __cluster_dims__",
                )

    # Inline PTX.

    def on_asm(self, i):
        open_ = i + 1
        while self.tokens[open_].isidentifier():
            open_ += 1
        if self.tokens[open_] != "(" or self.match[open_] < 0 or self.source.in_system_macro(i):
            return i + 1
        close, k, text = self.match[open_], open_ + 1, ""
        while self.tokens[k].endswith('"'):
            text += self.string(self.tokens[k])
            k += 1
        text = text.replace("%%", "%")
        code = " ".join(text.split())
        if not code or not self.function and i != self.begin:  # a compiler barrier, or the symbol of a declaration
            return close + 1
        operands = self.asm_operands(k, close)
        if code in PTX_STATEMENTS and not any(operands):
            self.replace(i, close, PTX_STATEMENTS[code])
        elif code in PTX_VALUES and list(map(len, operands)) == [1, 0]:
            self.replace(i, close, f"({operands[0][0].expression}) = {PTX_VALUES[code]}")
        else:
            try:
                self.replace(i, close, ptx.Assembly(text, *operands).translate())
                self.uses_ptx = True
            except ptx.Refused as refused:
                self.error(i, str(refused))
        return close + 1

    @staticmethod
    def string(token):
        """The text of a literal."""
        raw = re.match(r'R"(.*?)\((.*)\)\1"$', token, re.DOTALL)
        return raw[2] if raw else token[token.index('"') + 1 : -1].replace("\\n", "\n").replace("\\t", " ")

    def asm_operands(self, k, close):
        """The outputs and the inputs of an asm statement whose code ends before token k."""
        sections, section = [[], []], -1
        while k < close:
            token = self.tokens[k]
            if token in (":", "::"):
                section += len(token)
            elif token == "(" and self.tokens[k - 1].endswith('"') and section in (0, 1):
                expression = self.source.slice(k + 1, self.match[k])
                sections[section].append(ptx.Operand(self.tokens[k - 1][1:-1], expression))
                k = self.match[k]
            k += 1
        return sections


def with_host_halves(text, host_text):
    """The device's preprocessed text in which host code runs what the preprocessor leaves of a __host__ __device__
    function without __CUDA_ARCH__."""
    text, host_text = restore_blanks(text), restore_blanks(host_text)
    translators = [Translator(text), Translator(host_text)]
    for translator in translators:
        translator.translate()
    bodies, out, position = [translator.bodies() for translator in translators], [], 0
    for (file, line, nth), (start, end) in sorted(bodies[0].items(), key=lambda item: item[1]):
        other = bodies[1].get((file, line, nth))
        if not other or text[start:end].split() == host_text[slice(*other)].split():
            continue
        last = translators[0].source.place(end - 1)[0]
        out += [text[position:start], "{ if (::simt::in_kernel()) ", text[start:end], " else", f"\n# {line} {file}\n"]
        out += [host_text[slice(*other)], " }", f"\n# {last} {file}\n"]
        position = end
    return "".join(out) + text[position:]


def translate(text, kernels_apart=False, notes=None, headers=None, halves=None):
    """The C++ for a text that `g++ -E` printed. Raises TranslateError. Kernels may be kept from being inlined. What a
    reader should know of the source is added to the notes, what it must include to the headers, and True to the halves
    where with_host_halves() has something to do."""
    translator = Translator(restore_blanks(text), kernels_apart)
    translated = translator.translate()
    if notes is not None:
        notes += dict.fromkeys(translator.notes)
    if headers is not None and translator.uses_ptx:
        headers.append("simt/ptx.h")
    if headers is not None and "__nv_atomic_" in text:
        headers.append("simt/nv_atomic.h")
    if halves is not None and translator.has_halves():
        halves.append(True)
    return translated


def main():
    parser = argparse.ArgumentParser(description="Translate preprocessed CUDA C++ for the CPU device.")
    parser.add_argument("input", help="what g++ -E printed")
    parser.add_argument("-o", "--output", default="/dev/stdout", help="where to write (default: standard output)")
    options = parser.parse_args()
    try:
        write_text(options.output, translate(read_text(options.input)))
    except OSError as error:
        sys.exit(f"translate.py: {error.filename}: {error.strerror}")
    except TranslateError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
