"""Refuses the calls that nvcc refuses: of host functions by device code, of device functions by host code, of kernels by
anyone.

The translator lets each function of the program say where it runs, by an empty function that it calls first. Who calls
whom is read in a dump of g++, `-fdump-ipa-cgraph`, where overloads, templates and operators are resolved and nothing is
inlined yet. A function that says nothing belongs to its callers: lambdas, what the compiler generates, constexpr
functions, and the libraries, of which a few names are known to run on the host only. __host__ __device__ functions may
call everything, as nvcc only warns there.
"""

import re
from typing import NamedTuple, Optional

MARKER = re.compile(r"_ZN4simt4runs\d+(on_host|on_device|on_both|as_kernel)Ev\b")
OWN = re.compile(r"_ZN[VK]*4simt")  # the CPU device's functions, which may use what they like
LAUNCHES = re.compile(r"_ZN4simt13run_as_kernel")  # of these what they are given to call: it is device code
SYMBOL = re.compile(r"^(.*?)/(\d+) \((.*)\)(?: @\S+)?$")
FILE_MARK = re.compile(r'^# \d+ "((?:[^"\\\n]|\\.)*)"((?: \d)*)', re.MULTILINE)
DECLARED = re.compile(r"^// simt: (\S+) (\S+)$", re.MULTILINE)
EDGE = re.compile(r'^edge: \{ sourcename: "([^"]*)" targetname: "([^"]*)" label: "([^"]*):(\d+):\d+" \}', re.MULTILINE)
NODE = re.compile(r'^node: \{ title: "([^"]*)" label: "(?:[^"\\]|\\.)*?\\n([^"\\]*):(\d+):\d+', re.MULTILINE)

HOST_CLASSES = set(
    "vector deque list forward_list map multimap set multiset unordered_map unordered_multimap unordered_set "
    "unordered_multiset basic_string function shared_ptr weak_ptr thread mutex condition_variable future promise "
    "random_device mersenne_twister_engine basic_ostream basic_istream basic_ifstream basic_ofstream "
    "basic_stringstream basic_ostringstream basic_istringstream ios_base basic_regex any".split()
)
HOST_OBJECTS = {"basic_ostream": "cout and the like", "ios_base": "cout and the like", "basic_string": "string"}
CLASS_OF = re.compile(r"_ZT?N?[VK]*(?:NSt7__cxx11|N?St7__cxx11|St)(\d+)")
STREAM_OR_STRING = re.compile(r"_ZN?K?S([osi])|_ZSt[a-z]{2}I")
HOST_C = set(
    "rand srand rand_r random srandom drand48 srand48 lrand48 exit _exit quick_exit atexit system getenv setenv "
    "fopen fclose fread fseek ftell fgets fgetc getc getchar scanf fscanf sscanf fprintf sprintf snprintf fflush "
    "strlen strcmp strncmp strcpy strncpy strcat strncat strchr strstr strtok strdup atoi atol atof strtol strtod "
    "strtof qsort bsearch realloc calloc gettimeofday clock_gettime sleep usleep nanosleep pthread_create "
    "__isoc99_scanf __isoc99_fscanf __isoc99_sscanf __isoc23_scanf __isoc23_fscanf __isoc23_sscanf".split()
)


class Function(NamedTuple):
    symbol: str
    said: str  # its declaration, as g++ prints it
    is_defined: bool
    runs: Optional[str]  # what its marker says
    alias: Optional[str]
    calls: tuple[str, ...]  # numbers of functions, as the dump names them


class Call(NamedTuple):
    """A call that nvcc refuses."""

    steps: tuple[tuple[str, str], ...]  # (caller, called) from a function of the program to the refused one
    sentence: str  # with {caller} and {where}: the function that the program calls and the place of its definition


def read_graph(dump):
    """{number: Function} of the dump."""
    begin = dump.rfind("\nInitial Symbol table:")  # the second, where every function has its symbol
    end = dump.find("\nRemoving unused symbols:", begin)
    lines, functions, head, fields = dump[begin:end].split("\n"), {}, None, {}

    def add():
        if not head or "function" not in fields.get("Type", ""):
            return
        calls = tuple(re.findall(r"/(\d+)(?= |$)", fields.get("Calls", "")))
        marker = MARKER.search(fields.get("Calls", ""))
        alias = re.search(r"/(\d+) \(alias\)", fields.get("References", ""))
        is_defined = "definition" in fields["Type"]
        functions[head[2]] = Function(head[1], head[3], is_defined, marker and marker[1], alias and alias[1], calls)

    for line in lines:
        if line[:2] == "  ":
            name, _, value = line.strip().partition(": ")
            fields.setdefault(name.rstrip(":"), value)
        elif line:
            add()
            head, fields = SYMBOL.match(line), {}
    add()
    return functions


def outside_brackets(text):
    """(position, character) of what stands outside <>, () and {}."""
    depth = 0
    for i, character in enumerate(text):
        if character in ">)}" and text[i - 1 : i + 1] != "->":
            depth = max(0, depth - 1)
        if depth == 0:
            yield i, character
        if character in "<({":
            depth += 1


def name_of(said):
    """scale::operator() of `float scale<T>::operator()(float) const [with T = int]`."""
    said = re.sub(r"operator(<<?=?|>>?=?|<=>|->\*?|\(\))", lambda m: "operator" + ESCAPED.sub(escape, m[1]), said)
    said = said.split(" [with ")[0]
    end = next((i for i, character in outside_brackets(said) if character == "(" and i), len(said))
    while said[end:].startswith("(") and re.match(r"\([^()]*\)::", said[end:]):  # f(int)::<lambda(int)>
        inner = next((i for i, c in outside_brackets(said[end + 1 :]) if c == "("), len(said))
        end = min(len(said), end + 1 + inner)
    begin = max(
        (i + 1 for i, c in outside_brackets(said[:end]) if c == " " and "operator " not in said[: i + 1]), default=0
    )
    plain, depth = "", 0
    for character in said[begin:end]:
        depth += (character == "<") - (character == ">")
        if depth == 0 and character != ">":
            plain += character
    names = UNESCAPED.sub(unescape, plain.lstrip("*&")).split("::")
    if len(names) > 1 and names[-2] and names[-1].lstrip("~") == names[-2]:
        return f"the {'de' if names[-1][0] == '~' else 'con'}structor of {'::'.join(names[:-1])}"
    return "::".join(filter(None, names)) or said


ESCAPED, UNESCAPED = re.compile(r"[<>()]"), re.compile("[\ue000-\ue003]")


def escape(m):
    return chr(0xE000 + "<>()".index(m[0]))


def unescape(m):
    return "<>()"[ord(m[0]) - 0xE000]


def host_library(function):
    """What a function of the libraries that cannot run on the device is called, or None."""
    symbol = function.symbol
    if symbol in HOST_C:
        return f"{symbol.replace('__isoc99_', '').replace('__isoc23_', '')}()"
    if "__throw_" in symbol or not symbol.startswith("_Z"):
        return None
    at = CLASS_OF.match(symbol)
    name = symbol[at.end() : at.end() + int(at[1])] if at else None
    if name in HOST_CLASSES:
        return "std::" + HOST_OBJECTS.get(name, name)
    stream = STREAM_OR_STRING.match(symbol)
    if not function.is_defined and stream and ("basic_ostream" in function.said or "ostream" in function.said):
        return "std::cout and the like"
    return None


class Checker:
    def __init__(self, functions, declared):
        self.functions, self.declared = functions, declared

    def resolved(self, number):
        function = self.functions.get(number)
        while function and function.alias:
            function = self.functions.get(function.alias)
        return function

    def runs(self, function):
        """Where a function runs: by its own word, or by its declaration where another file defines it."""
        if function.runs or function.is_defined or function.symbol.startswith("_ZNSt"):
            return function.runs
        return self.declared.get(name_of(function.said).split("::")[-1])

    def refused(self):
        """The calls that nvcc refuses."""
        for mine, judge in ((("on_device", "as_kernel"), self.judge_for_device), (("on_host",), self.judge_for_host)):
            is_of_device = "on_device" in mine
            queue = [
                (function, ())
                for function in self.functions.values()
                if function.runs in mine or (is_of_device and LAUNCHES.match(function.symbol))
            ]
            seen = set()
            while queue:
                function, steps = queue.pop(0)
                for number in dict.fromkeys(function.calls):
                    called = self.resolved(number)
                    if not called or MARKER.match(called.symbol) or LAUNCHES.match(called.symbol):
                        continue
                    path = (*steps, (function.symbol, self.functions[number].symbol))
                    runs = self.runs(called)
                    is_own = any(OWN.match(symbol) for step in path for symbol in step)
                    sentence = judge(function, called, runs)
                    if sentence and (runs or not is_own):
                        yield Call(path, sentence)
                    elif not runs and called.is_defined and (called.symbol, is_own) not in seen:
                        seen.add((called.symbol, is_own))
                        queue.append((called, path))

    def judge_for_device(self, caller, called, runs):
        name = name_of(called.said)
        if runs == "as_kernel":
            return f"{{caller}} calls the kernel {name}; only host code launches kernels, so make {name} a __device__ function"
        if runs == "on_host":
            return (
                f"{{caller}} calls {name}, which runs on the host only; write __device__ before {name}{{where}}, or "
                "__host__ __device__ if host code calls it too"
            )
        if runs:
            return None
        if called.symbol in {"__cxa_throw"} | HOST_C and not caller.runs and "<lambda" not in caller.said:
            return None  # a header's own affair
        if called.symbol == "__cxa_throw":
            return "{caller} throws an exception, which device code cannot do; return a value that tells of the error"
        library = host_library(called)
        if library:
            instead = "use an array, or a pointer to memory from cudaMalloc"
            if "cout" in library or "print" in library:
                instead = "use printf"
            elif library.endswith("()"):
                instead = "call it before the launch and pass the kernel what it returns"
            return f"{{caller}} uses {library}, which exists on the host only; {instead}"
        return None

    def judge_for_host(self, caller, called, runs):
        name = name_of(called.said)
        if runs == "as_kernel":
            return f"{{caller}} calls the kernel {name} like a function; launch it: {name}<<<blocks, threads>>>(...)"
        if runs == "on_device":
            return (
                f"{{caller}} runs on the host and calls {name}, which is __device__; call it in a kernel, or write "
                f"__host__ __device__ before {name}{{where}}"
            )
        return None


def files_of(text):
    """The files of a translated text that are no system headers."""
    return {mark[1] for mark in FILE_MARK.finditer(text) if "3" not in mark[2]}


def messages(calls, functions, files, graph):
    """file:line: error: sentence, one line each, by the places in g++'s -fcallgraph-info."""

    def plain(title):
        return title.rpartition(":")[2]

    places, definitions, said = {}, {}, {f.symbol: f for f in functions.values()}
    for source, target, file, line in EDGE.findall(graph):
        places.setdefault((plain(source), plain(target)), (file, int(line)))
    for title, file, line in NODE.findall(graph):
        definitions.setdefault(plain(title), (file, int(line)))
    lines = []
    for call in calls:
        root, refused = call.steps[0][0], call.steps[-1][1]
        # What the compiler generated is passed over: the reader has written its caller, or a lambda.
        written = [step for step in call.steps if step[0] == root or "<lambda" in said[step[0]].said]
        known = [(places.get(step), step[0]) for step in reversed(written)]
        place, caller = next(
            ((at, symbol) for at, symbol in known if at and at[0] in files), (definitions.get(root), root)
        )
        file, line = place or ("<input>", 0)
        name = "the kernel " * (said[caller].runs == "as_kernel") + name_of(said[caller].said)
        if "<lambda" in said[caller].said:
            name = "this lambda"
        where = definitions.get(refused)
        where = f" ({'line ' if where[0] == file else where[0] + ':'}{where[1]})" if where and where[0] in files else ""
        lines.append((file, line, call.sentence.format(caller=name, where=where)))
    return [f"{file}:{line}: error: {sentence}" for file, line, sentence in dict.fromkeys(sorted(lines))]


def check(dump, text, make_graph):
    """The error messages for a translated text and its dump; make_graph() is the text of -fcallgraph-info without inlining."""
    functions = read_graph(dump)
    calls = list(Checker(functions, dict(DECLARED.findall(text))).refused())
    return messages(calls, functions, files_of(text), make_graph()) if calls else []
