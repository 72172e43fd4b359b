#!/usr/bin/env python3
"""Turn preprocessed CUDA C++ into C++ that g++ compiles for the CPU device.

The input is what `g++ -E` prints, so macros and includes are resolved and line markers name the student's file and
line. A system header (marker flag 3) without CUDA words is copied unread. The rest is cut into tokens, walked once with
just enough memory of namespaces, classes and functions, and these words are rewritten in place:

    k<<<g, b>>>(x)            ::simt::launch(k, ::simt::LaunchConfig("k", g, b))(x)
    k<<<g, b>>>(x)            ::simt::launch_deduced([&](auto... simt_args) { k(simt_args...); }, ...)(x)
                              where k has template arguments to deduce, omitted arguments or overloads
    __shared__ float s[8];    typedef float simt_T_s[8]; struct simt_S_s {};
                              simt_T_s& s = ::simt::shared<simt_T_s, simt_S_s>();
    extern __shared__ T s[];  typedef T simt_T_s[]; simt_T_s& s = ::simt::dynamic_shared<simt_T_s>();
    (void*)k<float>           (void*)::simt::handle<k<float>>()
    __global__, __launch_bounds__(n), #pragma unroll        blanks
    __noinline__              __attribute__((noinline))
    asm("membar.gl;")         a C++ expression for a few harmless PTX instructions; any other PTX is refused

The tag `simt_S_s` tells each variable from all others; where the declaration asks for an alignment, the memory is that
of a tag with an aligned member. A shared variable of a namespace becomes a reference at the head of each later function
that names it. After a rewrite, a line marker and blanks put the rest of the line back on its line and column, so that
g++ and gdb speak of the student's text. What cannot be translated is an error with file and line, never a guess.
"""

import argparse
import bisect
import re
import sys
from typing import List, NamedTuple, Optional, Tuple

TOKEN = re.compile(
    r"""(?P<directive>^[ \t]*\#[^\n]*)
      | (?P<comment>//[^\n]* | /\*(?s:.*?)\*/)
      | (?:u8|[uUL])?R"(?P<delimiter>[^()\\\s]{0,16})\((?s:.*?)\)(?P=delimiter)"\w*
      | (?:u8|[uUL])?"(?:[^"\\\n]|\\.)*"\w*
      | (?:u8|[uUL])?'(?:[^'\\\n]|\\.)+'\w*
      | [^\W\d]\w*
      | \.?\d(?:[eEpP][+-]|'\w|[\w.])*
      | <<<(?!=) | <=> | <<=? | <= | >= | == | != | :: | -> | && | \|\| | \.\.\.  # '>' stands alone: '>>>' may be three
      | \S""",
    re.VERBOSE | re.MULTILINE,
)
MARKER = re.compile(r'^# (\d+) ("(?:[^"\\\n]|\\.)*")((?: \d)*)[ \t\r]*$', re.MULTILINE)
CUDA_WORD = re.compile(r"\b__(?:global|shared)__\b")
UNKNOWN_PRAGMA = re.compile(r"\s*#\s*pragma\s+(?:unroll|nounroll|nv_|hd_warning|diag_)")

OPENERS = {"(": ")", "[": "]", "{": "}"}
CLOSERS = {closer: opener for opener, closer in OPENERS.items()}
CLASS_KEYS = {"class", "struct", "union"}
ATTRIBUTES = {"__attribute__", "__attribute", "alignas", "_Alignas"}
LAUNCH_ATTRIBUTES = {"__launch_bounds__", "__maxnreg__", "__cluster_dims__"}
LAUNCH_CALLS = {"cudaLaunchKernelEx", "cudaLaunchKernelExC", "cudaLaunchKernel", "cudaLaunchCooperativeKernel"}
STORAGE = {"__shared__", "static", "extern", "inline", "__extension__"}
QUALIFIERS = {"const", "volatile", "__restrict__", "__restrict"}
BUILTIN_TYPES = set(
    "void bool char wchar_t char8_t char16_t char32_t short int long float double signed unsigned auto "
    "__int128 _Float16 _Float32 _Float64 __bf16".split()
)
TYPE_OPERATORS = {"decltype", "typeof", "__typeof__", "__typeof"}
CONTROL = {"if", "while", "for", "switch"}
STATEMENT_WORDS = CONTROL | {"return", "else", "do", "co_return", "co_yield", "throw", "case"}
UNUSED = "__attribute__((unused))"

REFUSED_NAMES = {
    "cudaTextureObject_t": "the CPU device has no texture objects; read the memory through a pointer",
    "cudaSurfaceObject_t": "the CPU device has no surface objects; write the memory through a pointer",
    "__block_size__": "the CPU device has no __block_size__; use __cluster_dims__ and the launch configuration",
}
REFUSED_TEMPLATES = {
    "texture": "texture references left CUDA with version 12; read the memory through a pointer",
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
PTX_ADVICE = [  # what to use instead of the instructions that start so
    ("cp.async.bulk", "use cuda::memcpy_async, or give it a CPU form under #ifdef __SIMT__"),
    ("cp.async", "use __pipeline_memcpy_async, __pipeline_commit and __pipeline_wait_prior of <cuda_pipeline.h>"),
    ("ld.", "use __ldg, __ldcs, __ldcg or __ldlu"),
    ("st.", "use __stcs, __stcg or __stwt"),
    ("shfl", "use __shfl_sync and its relatives"),
    ("red.", "use atomicAdd and its relatives"),
    ("atom.", "use atomicAdd and its relatives"),
    ("bar", "use __syncthreads, __syncwarp or cooperative groups"),
    ("fence", "use __threadfence and its relatives"),
    ("mapa", "use cluster_group::map_shared_rank of <cooperative_groups.h>"),
    ("", "use the CUDA C++ function of that name, or give it a CPU form under #ifdef __SIMT__"),
]


class TranslateError(Exception):
    """What the translator refuses: one line `file:line: error: sentence` each."""


class Refusal(Exception):
    """A sentence about the token of an index."""


def unquote(name):
    """The file that a line marker names; the text is read as Latin-1, one character a byte."""
    name = re.sub(r"\\(\d{3}|.)", lambda m: chr(int(m[1], 8)) if len(m[1]) == 3 else m[1], name[1:-1])
    return name.encode("latin-1").decode("utf-8", "replace")


class Source:
    """The tokens of the text that needs reading, the pairs of their brackets, and where each stands."""

    def __init__(self, text):
        self.text = text
        self.tokens = []  # the text of each token
        self.starts = []  # its offset
        self.match = []  # the index of the bracket that closes or opens this one, else -1
        self.pragmas = []  # (start, end) of the pragmas that g++ does not know
        self.marks = [(1, '"<input>"', "")]  # (line, quoted file, flags) of each line marker
        self.mark_starts = [0]  # the offset of the first line that it rules
        self.newlines = [newline.start() for newline in re.finditer("\n", text)]
        self._lex(self._files_to_read())
        self.tokens += [""] * 4  # those who look ahead stay inside
        self.starts += [len(text)] * 4
        self._pair()

    def _files_to_read(self):
        """The quoted names of the files that are no system headers, and of the system headers that hold CUDA code."""
        files, name, start = set(), '"<input>"', 0
        for mark in MARKER.finditer(self.text):
            if CUDA_WORD.search(self.text, start, mark.start()):
                files.add(name)
            name, start = mark[2], mark.end()
            if "3" not in mark[3]:
                files.add(name)
        if CUDA_WORD.search(self.text, start):
            files.add(name)
        return files

    def _lex(self, files):
        text, position = self.text, 0
        while position is not None:
            for token in TOKEN.finditer(text, position):
                if token.lastgroup in (None, "delimiter"):
                    self.tokens.append(token[0])
                    self.starts.append(token.start())
                elif token.lastgroup == "directive":
                    mark = MARKER.match(text, token.start())
                    if mark and mark[2] not in files:
                        # A system header's macro stands under the name of the file that uses it, and is read.
                        read = (m.start() for m in MARKER.finditer(text, mark.end()) if m[2] in files)
                        position = next(read, None)
                        break
                    if mark:
                        self.marks.append((int(mark[1]), mark[2], mark[3]))
                        self.mark_starts.append(mark.end() + 1)
                    elif UNKNOWN_PRAGMA.match(token[0]):
                        self.pragmas.append(token.span())
            else:
                position = None

    def _pair(self):
        self.match = [-1] * len(self.tokens)
        stack = []
        for i, token in enumerate(self.tokens):
            if token in OPENERS:
                stack.append(i)
            elif token in CLOSERS:
                while stack and self.tokens[stack[-1]] != CLOSERS[token]:
                    stack.pop()  # never closed: g++ will say so
                if stack:
                    self.match[i] = stack.pop()
                    self.match[self.match[i]] = i

    def end(self, i):
        return self.starts[i] + len(self.tokens[i])

    def slice(self, begin, end):
        """The text of tokens begin..end-1, on one line."""
        if begin >= end:
            return ""
        text = self.text[self.starts[begin] : self.end(end - 1)]
        return " ".join(self.tokens[begin:end]) if "\n" in text else text

    def place(self, offset):
        """(line, quoted file, flags of the marker) at an offset."""
        k = bisect.bisect_right(self.mark_starts, offset) - 1
        line, name, flags = self.marks[k]
        start, end = (bisect.bisect_left(self.newlines, x) for x in (self.mark_starts[k], offset))
        return line + end - start, name, flags

    def in_system_macro(self, i):
        return "3" in self.place(self.starts[i])[2]

    def resume(self, offset):
        """A line marker and blanks: what follows stands on the line and column of the offset."""
        line, name, flags = self.place(offset)
        kept = "".join(f" {flag}" for flag in "34" if flag in flags)
        return f"\n# {line} {name}{kept}\n" + " " * (offset - self.text.rfind("\n", 0, offset) - 1)

    def after_group(self, i):
        """The index behind the bracketed group that starts at i, or i where none does."""
        return self.match[i] + 1 if self.match[i] > i else i

    def angle(self, i):
        """The index of the '>' that closes the '<' at i, or -1 where it is a comparison."""
        depth, k = 0, i
        while k < len(self.tokens):
            token = self.tokens[k]
            if token == "<":
                depth += 1
            elif token == ">":
                depth -= 1
                if depth == 0:
                    return k
            elif self.match[k] > k:
                k = self.match[k]
            elif token in OPENERS or token in CLOSERS or token == ";":
                return -1
            k += 1
        return -1

    def angle_back(self, i):
        """The index of the '<' that opens the '>' at i, or -1."""
        depth, k = 0, i
        while k >= 0:
            token = self.tokens[k]
            if token == ">":
                depth += 1
            elif token == "<":
                depth -= 1
                if depth == 0:
                    return k
            elif 0 <= self.match[k] < k:
                k = self.match[k]
            elif token in OPENERS or token in CLOSERS or token == ";":
                return -1
            k -= 1
        return -1

    def split(self, begin, end):
        """The (begin, end) of each part between the commas that stand outside brackets of every kind."""
        parts, start, depth, k = [], begin, 0, begin
        while k < end:
            token = self.tokens[k]
            if self.match[k] > k:
                k = self.match[k]
            elif token == "<":
                depth += 1
            elif token == ">":
                depth = max(0, depth - 1)
            elif token == "," and depth == 0:
                parts.append((start, k))
                start = k + 1
            k += 1
        return parts + [(start, end)] if end > begin else []

    def read_name(self, i):
        """(names, (begin, end) of the last name's template arguments or None, index behind) of `a::b<c>::d<e>` at i.

        The names are empty where no name stands.
        """
        tokens, names, start = self.tokens, [], i
        while True:
            arguments = None
            while tokens[i] in ("::", "template", "typename"):
                i += 1
            if not tokens[i].isidentifier():
                return [], None, start
            names.append(tokens[i])
            i += 1
            if tokens[i] == "<" and self.angle(i) > 0:
                arguments = (i + 1, self.angle(i))
                i = self.angle(i) + 1
            if tokens[i] != "::":
                return names, arguments, i


class Function(NamedTuple):
    """The body that is being walked; the braced initializer of a namespace's variable counts as one."""

    head: int  # the first token of its declaration
    open: int
    close: int
    is_body: bool


class Kernel(NamedTuple):
    """One declaration of a __global__ function."""

    path: str  # ns::Class::name
    parameters: List[List[str]]  # the tokens of each parameter without its default
    has_defaults: bool
    template_parameters: int  # 0 for no template
    has_pack: bool
    cluster: str  # "x, y, z" or ""

    def redeclares(self, other):
        """Whether both declare one function, as far as tokens tell: a parameter may lack its name."""

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


class Specifiers(NamedTuple):
    """What a declaration says before its declarators."""

    words: List[int]  # the tokens that make the type
    alignments: List[str]
    attributes: List[str]
    body: Optional[Tuple[int, int]]  # the braces of a class defined here
    is_named: bool  # whether that class has a name
    end: int


class Translator:
    def __init__(self, text):
        self.source = Source(text)
        self.tokens, self.match = self.source.tokens, self.source.match
        self.edits = []  # (start, end, new text)
        self.errors = []  # (offset, sentence)
        self.begin = 0  # the first token of the statement that is being walked
        self.scopes = []  # (kind, name, index of the closing brace)
        self.function = None
        self.kernels = {}  # name -> its Kernels
        self.launches = []
        self.handles = []  # (first token, index behind) of the names cast to a void pointer
        self.launch_calls = []
        self.namespace_shared = {}  # name -> the declaration of its reference
        self.anonymous_unions = 0
        self.handlers = {
            ";": self.on_semicolon,
            ":": self.on_colon,
            "{": self.on_open,
            "}": self.on_close,
            "(": self.on_cast,
            "reinterpret_cast": self.on_reinterpret_cast,
            "[": self.on_attribute,
            "__attribute__": self.on_attribute,
            "__attribute": self.on_attribute,
            "__noinline__": self.on_noinline,
            "__global__": self.on_global,
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
        for start, end in self.source.pragmas:
            self.edits.append((start, end, " " * (end - start)))
        if self.errors:
            raise TranslateError("\n".join(self.error_lines()))
        return self.apply_edits()

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
        self.edits.append((self.source.starts[first], self.source.end(last), text))

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

    def on_semicolon(self, i):
        self.begin = i + 1
        return i + 1

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
        elif kind != "block":
            self.function = Function(self.begin, i, close, kind == "function")
        if kind != "initializer":
            self.begin = i + 1
        return i + 1

    def on_close(self, i):
        if self.scopes and i == self.scopes[-1][2]:
            self.scopes.pop()
        if self.function and i == self.function.close:
            function, self.function = self.function, None
            if not function.is_body:
                return i + 1  # the declaration goes on
            self.bring_namespace_shared(function)
        self.begin = i + 1
        return i + 1

    def classify(self, begin, brace):
        """(kind, name) of what the '{' opens that follows the tokens begin..brace-1 outside a function."""
        tokens, source, words, k = self.tokens, self.source, [], begin
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
            return "namespace", "".join(words[words.index("namespace") + 1 :])
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
        return "function", ""

    def on_attribute(self, i):
        """Skip __attribute__((...)) and [[...]]: the words inside are g++'s."""
        if self.tokens[i] != "[":
            return max(i + 1, self.source.after_group(i + 1))
        return max(i + 1, self.source.after_group(i)) if self.tokens[i + 1] == "[" else i + 1

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

    # Kernels.

    def on_launch_attribute(self, i):
        end = max(i + 1, self.source.after_group(i + 1))
        self.blank(i, end - 1)
        return end

    def on_global(self, i):
        """Record the kernel that is declared, and leave a plain function."""
        tokens, source, k = self.tokens, self.source, i + 1
        self.blank(i, i)
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
                k = self.source.angle_back(k) - 1
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
        """Whether the token at k ends an expression that a '(' behind it would call."""
        token = self.tokens[k]
        if token == ")" and self.match[k] > 0:
            return self.tokens[self.match[k] - 1] not in CONTROL | {"constexpr"}
        if token == ">":
            return self.source.angle_back(k) > 0
        return token == "]" or token.isidentifier() and token not in STATEMENT_WORDS

    def rewrite_launch(self, launch):
        source = self.source
        kernels, arguments = self.find_kernels(launch.first, launch.open)
        text = source.slice(launch.first, launch.open)
        label = '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
        given = source.split(launch.close + 4, self.match[launch.close + 3])
        if self.needs_deduction(kernels, arguments, given):
            capture = "&" if launch.in_function else ""
            self.insert_before(launch.first, f"::simt::launch_deduced([{capture}](auto... simt_args) {{ ")
            self.replace(launch.open, launch.open, f"(simt_args...); }}, ::simt::LaunchConfig({label}, ")
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
        if arguments:
            if "..." in self.tokens[arguments[0] : arguments[1]]:
                return True
            explicit = len(self.source.split(*arguments))
        omitted = kernel.has_defaults and len(given) != len(kernel.parameters)
        return omitted or kernel.has_pack or explicit < kernel.template_parameters

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
            self.edits.append((self.source.end(behind - 1), self.source.end(behind - 1), ">()"))

    def on_launch_call(self, i):
        self.launch_calls.append(i)
        return i + 1

    def check_launch_call(self, i):
        for name in self.tokens[i + 1 : self.source.after_group(i + 1)]:
            if any(kernel.cluster for kernel in self.kernels.get(name, [])):
                self.error(i, f"give {name} its cluster with cudaLaunchAttributeClusterDimension or launch it with <<<>>>: "
                              "on the CPU device this call does not see __cluster_dims__")

    # Shared memory.

    def on_shared(self, i):
        end = i
        while self.tokens[end] and self.tokens[end] != ";":
            end = max(end + 1, self.source.after_group(end))
        try:
            if not self.function and self.scopes and self.scopes[-1][0] == "class":
                raise Refusal(i, "a member cannot be __shared__; declare it in the kernel")
            self.rewrite_shared(self.begin, i, end)
        except Refusal as refusal:
            self.error(*refusal.args)
        self.begin = end + 1
        return end + 1

    def rewrite_shared(self, begin, keyword, end):
        tokens, source = self.tokens, self.source
        specifiers = self.read_specifiers(begin, end)
        if specifiers.end <= keyword or not specifiers.words:
            raise Refusal(keyword, "cannot read this __shared__ declaration")
        is_dynamic = "extern" in tokens[begin : specifiers.end]
        type_text, text = self.words(specifiers.words), []
        resume_type = source.resume(source.starts[specifiers.words[0]])
        if specifiers.body:
            name = f"simt_B_{self.name_class()}"
            text.append(f"typedef {resume_type}{type_text} {name};")
            type_text = name
        if specifiers.end == end:
            text += self.share_members(specifiers, type_text, keyword)
        for first, last in source.split(specifiers.end, end):
            name, stop, alignments, attributes = self.read_declarator(first, last)
            s = tokens[name]
            if not is_dynamic and tokens[name + 1 : name + 3] == ["[", "]"]:
                raise Refusal(name, f"the size of {s} is missing; dynamic shared memory is declared extern __shared__")
            declarator = f"{source.slice(first, name)}simt_T_{s}{source.slice(name + 1, stop)}"
            text.append(f"typedef {resume_type}{type_text} {declarator};")
            if is_dynamic:
                initializer = f"::simt::dynamic_shared<simt_T_{s}>()"
            else:
                tag, initializer = self.tag(s, f"simt_T_{s}", specifiers.alignments + alignments)
                text.append(tag)
            if self.function:
                attributes = " ".join(specifiers.attributes + attributes)
                resume_name = source.resume(source.starts[name])
                text.append(f"simt_T_{s}& {resume_name}{s} {attributes} = {initializer};")
            else:
                self.namespace_shared[s] = f"simt_T_{s}& {s} {UNUSED} = {initializer};"
        self.replace(begin, end, " ".join(text))

    @staticmethod
    def tag(name, type_text, alignments):
        """The type that tells a variable from all others, and the expression for its memory."""
        if not alignments:
            return f"struct simt_S_{name} {{}};", f"::simt::shared<{type_text}, simt_S_{name}>()"
        alignment = " ".join(sorted(alignments, reverse=True))  # alignas must stand before __attribute__
        tag = f"struct simt_S_{name} {{ {alignment} {type_text} value; }};"
        return tag, f"::simt::shared<simt_S_{name}, simt_S_{name}>().value"

    def share_members(self, specifiers, type_text, keyword):
        """The declarations for an anonymous union: its members become references of their own."""
        if not specifiers.body or specifiers.is_named:
            raise Refusal(keyword, "this __shared__ declaration names no variable")
        tag, initializer = self.tag(type_text.replace("simt_B_", ""), type_text, specifiers.alignments)
        text = [tag]
        for name in self.member_names(*specifiers.body):
            reference = f"auto& {name} {UNUSED} = {initializer}.{name};"
            if self.function:
                text.append(reference)
            else:
                self.namespace_shared[name] = reference
        return text

    def member_names(self, open_, close):
        names, begin = [], open_ + 1
        while begin < close:
            end = begin
            while end < close and self.tokens[end] != ";":
                end = max(end + 1, self.source.after_group(end))
            specifiers = self.read_specifiers(begin, end)
            if specifiers.end == end and specifiers.body and not specifiers.is_named:
                names += self.member_names(*specifiers.body)
            for first, last in self.source.split(specifiers.end, end):
                names.append(self.tokens[self.read_declarator(first, last)[0]])
            begin = end + 1
        return names

    def read_specifiers(self, k, end):
        tokens, source = self.tokens, self.source
        words, alignments, attributes, body, is_named, has_type = [], [], [], None, False, False
        while k < end:
            start = k
            if tokens[k] in STORAGE:
                k += 1
                continue
            if tokens[k] in ATTRIBUTES or tokens[k : k + 2] == ["[", "["]:
                k = source.after_group(k + (tokens[k] != "["))
                text = source.slice(start, k)
                (alignments if "align" in text else attributes).append(text)
                continue
            if tokens[k] in QUALIFIERS or tokens[k] in BUILTIN_TYPES:
                has_type = has_type or tokens[k] in BUILTIN_TYPES
                k += 1
            elif has_type:
                break
            elif tokens[k] in CLASS_KEYS or tokens[k] == "enum":
                k += 1
                while tokens[k] in ATTRIBUTES:
                    k = source.after_group(k + 1)
                names, _, k = source.read_name(k)
                is_named, has_type = bool(names), True
                brace = next((j for j in range(k, end) if tokens[j] == "{"), end) if tokens[k] in (":", "{") else end
                if brace < end:
                    body, k = (brace, self.match[brace]), source.after_group(brace)
            elif tokens[k] in TYPE_OPERATORS:
                k = source.after_group(k + 1)
                if tokens[k] == "::":
                    k = source.read_name(k)[2]
                has_type = True
            else:
                names, _, k = source.read_name(k)
                has_type = True
                if not names:
                    raise Refusal(start, "cannot read the type of this __shared__ declaration")
            words += range(start, k)
        return Specifiers(words, alignments, attributes, body, is_named, k)

    def read_declarator(self, first, last):
        """(token of the name, index behind the declarator, alignments, other attributes)."""
        tokens, k, alignments, attributes = self.tokens, first, [], []
        while k < last and (tokens[k] in QUALIFIERS or tokens[k] in ("*", "&", "(")):
            k += 1
        name, stop = k, k + 1
        if k == last or not tokens[k].isidentifier():
            raise Refusal(min(k, last - 1), "cannot read this __shared__ declaration")
        k += 1
        while k < last:
            start = k
            if tokens[k] in ATTRIBUTES or tokens[k : k + 2] == ["[", "["]:
                k = self.source.after_group(k + (tokens[k] != "["))
                text = self.source.slice(start, k)
                (alignments if "align" in text else attributes).append(text)
            elif tokens[k] == "[" or tokens[k] in ("(", ")") and "(" in tokens[first:name]:
                k = stop = max(k + 1, self.source.after_group(k))
            elif tokens[k] in ("=", "{", "("):
                raise Refusal(name, f"the __shared__ variable {tokens[name]} cannot have an initializer; "
                                    "assign it in the kernel and call __syncthreads()")
            else:
                raise Refusal(k, "cannot read this __shared__ declaration")
        return name, stop, alignments, attributes

    def words(self, indices):
        """The text of these tokens; the body of a class keeps its lines."""
        source, parts, start = self.source, [], 0
        for n in range(1, len(indices) + 1):
            if n == len(indices) or indices[n] != indices[n - 1] + 1:
                first, last = indices[start], indices[n - 1]
                has_body = "{" in self.tokens[first:last]
                text = source.text[source.starts[first] : source.end(last)]
                parts.append(text if has_body else source.slice(first, last + 1))
                start = n
        return " ".join(parts)

    def name_class(self):
        self.anonymous_unions += 1
        return self.anonymous_unions

    def bring_namespace_shared(self, function):
        """Declare at the head of a body the shared variables of namespaces that it names."""
        if not self.namespace_shared:
            return
        hidden = self.tokens[function.head : function.open]
        named = set(self.tokens[function.open : function.close]).difference(hidden)
        references = [self.namespace_shared[name] for name in sorted(named) if name in self.namespace_shared]
        if references:  # the second pair of braces lets the body have a variable of that name
            self.insert_before(function.open + 1, f" {' '.join(references)} {{")
            self.insert_before(function.close, "}")

    # Inline PTX.

    def on_asm(self, i):
        open_ = i + 1
        while self.tokens[open_].isidentifier():
            open_ += 1
        if self.tokens[open_] != "(" or self.match[open_] < 0 or self.source.in_system_macro(i):
            return i + 1
        close, k, code = self.match[open_], open_ + 1, ""
        while self.tokens[k].endswith('"'):
            code += self.tokens[k][self.tokens[k].index('"') + 1 : -1]
            k += 1
        code = " ".join(re.sub(r"\\[nt]", " ", code).replace("%%", "%").split())
        if not code or not self.function and i != self.begin:  # a compiler barrier, or the symbol of a declaration
            return close + 1
        operands = [j for j in range(k, close) if self.tokens[j] == "(" and self.tokens[j - 1].endswith('"')]
        if code in PTX_STATEMENTS and not operands:
            self.replace(i, close, PTX_STATEMENTS[code])
        elif code in PTX_VALUES and len(operands) == 1:
            operand = self.source.slice(operands[0], self.match[operands[0]] + 1)
            self.replace(i, close, f"{operand} = {PTX_VALUES[code]}")
        else:
            advice = next(advice for start, advice in PTX_ADVICE if code.lstrip("{ ").startswith(start))
            self.error(i, f"inline PTX cannot run on the CPU device; {advice}")
        return close + 1


def translate(text):
    """The C++ for a text that `g++ -E` printed, read as Latin-1. Raises TranslateError."""
    return Translator(text).translate()


def main():
    parser = argparse.ArgumentParser(description="Translate preprocessed CUDA C++ for the CPU device.")
    parser.add_argument("input", help="what g++ -E printed")
    parser.add_argument("-o", "--output", help="where to write (default: standard output)")
    options = parser.parse_args()
    try:
        with open(options.input, encoding="latin-1", newline="") as file:
            result = translate(file.read())
        with open(options.output or 1, "w", encoding="latin-1", newline="") as file:
            file.write(result)
    except OSError as error:
        sys.exit(f"translate.py: {error.filename}: {error.strerror}")
    except TranslateError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
