"""What becomes of inline PTX: C++ that calls include/simt/ptx.h, one call an instruction.

    asm("add.s32 %0, %1, 3;" : "=r"(a) : "r"(b));
    do { uint64_t simt_p0 = 0; auto& simt_l0 = a; uint64_t simt_p1 = ::simt::ptx::in<'r'>(b);
         simt_p0 = ::simt::ptx::add<int32_t>(simt_p1, 3); ::simt::ptx::out<'r'>(simt_l0, simt_p0); } while (0);

Every register is a word of 64 bits; the instruction's type says how many of them count and what they mean. What is not
listed here is refused by its name.
"""

import re
from typing import NamedTuple

TYPES = {f"{kind}{bits}": f"{'int' if kind == 's' else 'uint'}{bits}_t" for kind in "sub" for bits in (8, 16, 32, 64)}
TYPES.update(f32="float", f64="double", pred="bool")
TYPES.update({name: f"::simt::ptx::{name}" for name in ("f16", "bf16", "f16x2", "bf16x2", "tf32")})
REALS = {TYPES[name] for name in ("f32", "f64", "f16", "bf16")}
REGISTER_BITS = {"h": 16, "r": 32, "l": 64, "f": 32, "d": 64, "n": 64}

ELEMENTWISE = dict.fromkeys(
    "not neg abs popc clz brev ex2 lg2 rcp rsqrt sqrt sin cos tanh".split(), 1
)  # of one operand
ELEMENTWISE.update(dict.fromkeys("add sub mul div rem min max and or xor shl shr".split(), 2), fma=3)
WITHOUT_EFFECT = {"rn", "ftz", "approx", "full", "lo", "rni"}  # modifiers that CPU arithmetic needs no telling of

SPECIAL = {"%clock": "clock64()", "%clock64": "clock64()", "%globaltimer": "clock64()", "%warpsize": "32"}
SPECIAL.update({"%laneid": "::simt::lane_id()", "%warpid": "::simt::warp_id()", "%smid": "0", "%nsmid": "4"})
SPECIAL.update({"%gridid": "0", "%WARP_SZ": "32", "WARP_SZ": "32"})
SPECIAL.update({"%lanemask_eq": "(1u << ::simt::lane_id())", "%lanemask_lt": "((1u << ::simt::lane_id()) - 1)"})
SPECIAL.update({"%lanemask_le": "((2u << ::simt::lane_id()) - 1)", "%lanemask_ge": "(~0u << ::simt::lane_id())"})
SPECIAL.update({"%lanemask_gt": "(~1u << ::simt::lane_id())", "%dynamic_smem_size": "::simt::dynamic_shared_size()"})
SPECIAL.update({"%cluster_ctarank": "__clusterRelativeBlockRank()", "%cluster_nctarank": "__clusterSizeInBlocks()"})
for axis in "xyz":
    SPECIAL.update({f"%tid.{axis}": f"::threadIdx.{axis}", f"%ntid.{axis}": f"::blockDim.{axis}"})
    SPECIAL.update({f"%ctaid.{axis}": f"::blockIdx.{axis}", f"%nctaid.{axis}": f"::gridDim.{axis}"})
    SPECIAL.update({f"%cluster_ctaid.{axis}": f"__clusterRelativeBlockIdx().{axis}"})
    SPECIAL.update({f"%cluster_nctaid.{axis}": f"__clusterDim().{axis}"})
    SPECIAL.update({f"%clusterid.{axis}": f"__clusterIdx().{axis}"})

MMA_TYPES = {  # the types of the factors and the depths that they come with
    "f16": (8, 16),
    "bf16": (8, 16),
    "tf32": (4, 8),
    "s8": (16, 32),
    "u8": (16, 32),
    "f64": (4,),
}
MBARRIER_WITHOUT_EFFECT = set(
    "noComplete b64 release acquire relaxed cta cluster shared shared::cta shared::cluster".split()
)
ADVICE = [  # what to use instead of the instructions that start so
    (
        "cp.async.bulk.tensor",
        "use cuda::device::experimental::cp_async_bulk_tensor_2d_global_to_shared and its relatives of "
        "<cuda/barrier>, or give it a CPU form under #ifdef __SIMT__",
    ),
    (
        "cp.async.bulk",
        "use cuda::device::memcpy_async_tx of <cuda/barrier>, or give it a CPU form under #ifdef __SIMT__",
    ),
    ("cp.async", "use __pipeline_memcpy_async, __pipeline_commit and __pipeline_wait_prior of <cuda_pipeline.h>"),
    ("ld.", "use __ldg, __ldcs, __ldcg or __ldlu"),
    ("st.", "use __stcs, __stcg or __stwt"),
    ("shfl", "use __shfl_sync and its relatives"),
    ("red.", "use atomicAdd and its relatives"),
    ("atom.", "use atomicAdd and its relatives"),
    ("bar", "use __syncthreads, __syncwarp or cooperative groups"),
    ("fence", "use __threadfence and its relatives"),
    ("mbarrier", "use cuda::barrier of <cuda/barrier>"),
    ("mapa", "use cluster_group::map_shared_rank of <cooperative_groups.h>"),
    ("", "use the CUDA C++ function of that name, or give it a CPU form under #ifdef __SIMT__"),
]


class Refused(Exception):
    """A sentence about the code."""


class Operand(NamedTuple):
    constraint: str
    expression: str


def split(text):
    """The parts between the commas outside brackets."""
    parts, depth, start = [], 0, 0
    for k, c in enumerate(text):
        depth += (c in "{[(") - (c in "}])")
        if c == "," and depth == 0:
            parts.append(text[start:k].strip())
            start = k + 1
    last = text[start:].strip()
    return parts + [last] if last or parts else []


def without_comments(code):
    return re.sub(r"//[^\n]*|/\*.*?\*/", " ", code, flags=re.DOTALL)


class Assembly:
    """One asm statement."""

    def __init__(self, code, outputs: list[Operand], inputs: list[Operand]):
        self.code = code
        self.outputs = outputs
        self.operands = outputs + inputs
        self.registers = {}  # PTX's name -> ours
        self.labels = {}
        self.lines = []

    def translate(self):
        """The C++ statement. Raises Refused."""
        for k, operand in enumerate(self.operands):
            letter = operand.constraint.strip("=+&")
            if letter not in REGISTER_BITS or "%" in operand.constraint:
                raise Refused(f'the CPU device does not know the constraint "{operand.constraint}"')
            if k < len(self.outputs):
                first = f"::simt::ptx::in<'{letter}'>(simt_l{k})" if "+" in operand.constraint else "0"
                self.lines.append(f"auto& simt_l{k} = ({operand.expression}); uint64_t simt_p{k} = {first};")
            else:
                self.lines.append(f"const uint64_t simt_p{k} = ::simt::ptx::in<'{letter}'>({operand.expression});")
        self.statements(without_comments(self.code).replace("%=", "0"))  # the number that makes a label unique
        for k, operand in enumerate(self.outputs):
            letter = operand.constraint.strip("=+&")
            self.lines.append(f"::simt::ptx::out<'{letter}'>(simt_l{k}, simt_p{k});")
        labels = f"__label__ {', '.join(self.labels.values())}; " if self.labels else ""
        return f"do {{ {labels}{' '.join(self.lines)} }} while (0)"

    def statements(self, code):
        statements = self.cut(code)
        names = [statement[:-1] for statement in statements if statement.endswith(":")]
        self.labels = {name: "simt_to_" + re.sub(r"\W", "_", name) for name in names}
        for statement in statements:
            if statement in ("{", "}"):
                self.lines.append(statement)
            elif statement.endswith(":"):
                self.lines.append(f"{self.labels[statement[:-1]]}:;")
            elif statement.startswith(".reg"):
                self.declare(statement)
            else:
                self.instruction(statement)

    @staticmethod
    def cut(code):
        """Statements, labels, and the braces around some statements: a brace after an operand holds a vector."""
        statements, current = [], ""
        depth = 0
        code = " ".join(code.split())
        for k, c in enumerate(code):
            if c == "{" and not current.strip():
                statements.append("{")
            elif c == "}" and not current.strip() and depth == 0:
                statements.append("}")
            elif c == ":" and ":" not in (code[k - 1], code[k + 1 : k + 2]) and re.fullmatch(r"\s*[$%\w]+\s*", current):
                statements.append(current.strip() + ":")
                current = ""
            elif c == ";":
                if current.strip():
                    statements.append(current.strip())
                current = ""
            else:
                depth += (c == "{") - (c == "}")
                current += c
        if current.strip():
            raise Refused(f"the PTX `{current.strip()}` lacks its semicolon")
        return statements

    def declare(self, statement):
        words = re.fullmatch(r"\.reg\s+(?:\.v\d\s+)?\.(\w+)\s+(.*)", statement)
        if not words:
            raise Refused(f"the CPU device cannot read the PTX `{statement}`")
        for name in split(words[2]):
            counted = re.fullmatch(r"(%?[\w$]+)<(\d+)>", name)
            names = [f"{counted[1]}{k}" for k in range(int(counted[2]))] if counted else [name]
            for each in names:
                self.registers[each] = "simt_r_" + re.sub(r"\W", "_", each)
                self.lines.append(f"uint64_t {self.registers[each]} = 0; (void){self.registers[each]};")

    # Operands.

    def register(self, text):
        """The variable of a register, or None."""
        number = re.fullmatch(r"%(\d+)", text)
        if number and int(number[1]) < len(self.operands):
            return f"simt_p{number[1]}"
        return self.registers.get(text)

    def value(self, text, of="uint64_t"):
        text = text.strip()
        if text.startswith("!"):
            return f"!{self.value(text[1:])}"
        if self.register(text):
            return self.register(text)
        if text in SPECIAL:
            raise Refused(f"only mov reads the PTX register {text}")
        bits = re.fullmatch(r"0[fF]([0-9a-fA-F]{8})|0[dD]([0-9a-fA-F]{16})", text)
        if bits:
            return f"uint64_t{{0x{bits[1] or bits[2]}}}"
        integer = re.fullmatch(r"(-?)\s*(0[xX][0-9a-fA-F]+|\d+)U?", text)
        if integer and of not in REALS:
            return f"static_cast<uint64_t>({integer[1]}{integer[2]}ll)"
        if of in REALS and re.fullmatch(r"-?\d+(\.\d*)?([eE][-+]?\d+)?", text):
            return f"::simt::ptx::bits<{of}>(static_cast<{of}>({text}))"
        raise Refused(f"the CPU device does not know the PTX operand {text}")

    def vector(self, text):
        return split(text[1:-1]) if text.startswith("{") else [text]

    def address(self, text, space):
        inside = re.fullmatch(r"\[\s*([^\[\]+]+?)\s*(?:\+\s*([^\[\]]+?)\s*)?\]", text)
        if not inside:
            raise Refused(f"the CPU device does not know the PTX address {text}")
        base, offset = self.value(inside[1]), self.value(inside[2]) if inside[2] else "0"
        kind = "shared" if space.startswith("shared") else "generic"
        return f"::simt::ptx::{kind}({base}, {offset})"

    def set(self, text, value):
        if text == "_":
            self.lines.append(f"(void)({value});")
        elif self.register(text):
            self.lines.append(f"{self.register(text)} = {value};")
        else:
            raise Refused(f"the PTX operand {text} takes no result")

    # Instructions.

    def instruction(self, statement):
        guard = re.match(r"@(!?)([%\w$]+)\s+", statement)
        if guard:
            self.lines.append(f"if ({guard[1]}(bool({self.value(guard[2])}))) {{")
            statement = statement[guard.end() :]
        opcode, _, rest = statement.partition(" ")
        parts = opcode.split(".")
        handler = getattr(self, f"on_{parts[0]}", None)
        if parts[0] in ELEMENTWISE and handler is None:
            handler = self.elementwise
        try:
            done = handler and handler(parts, split(rest))
        except (IndexError, KeyError, ValueError):
            done = False
        if not done:
            advice = next(advice for start, advice in ADVICE if opcode.startswith(start))
            raise Refused(f"the PTX instruction {opcode} cannot run on the CPU device; {advice}")
        if guard:
            self.lines.append("}")

    def elementwise(self, parts, arguments):
        types = [part for part in parts if part in TYPES]
        others = set(parts[1:]) - set(types) - WITHOUT_EFFECT
        if len(types) != 1 or others - {"sat", "relu"} or len(arguments) != ELEMENTWISE[parts[0]] + 1:
            return False
        of = TYPES[types[0]]
        values = ", ".join(self.value(argument, of) for argument in arguments[1:])
        value = f"::simt::ptx::{parts[0]}_<{of}>({values})"
        for name in sorted(others):
            value = f"::simt::ptx::{name}_<{of}>({value})"
        self.set(arguments[0], value)
        return True

    def on_mul(self, parts, arguments):
        return self.widening(parts, arguments) if {"wide", "hi"} & set(parts) else self.elementwise(parts, arguments)

    def on_mad(self, parts, arguments):
        if {"wide", "hi"} & set(parts):
            return self.widening(parts, arguments)
        return self.elementwise(["fma", *parts[1:]], arguments)

    def widening(self, parts, arguments):
        _, way, type_ = parts
        of = TYPES[type_]
        values = [self.value(argument) for argument in arguments[1:]]
        product = f"::simt::ptx::mul_{way}<{of}>({values[0]}, {values[1]})"
        if parts[0] == "mad":
            wide = TYPES[f"{type_[0]}{2 * int(type_[1:])}"] if way == "wide" else of
            product = f"::simt::ptx::add_<{wide}>({product}, {values[2]})"
        self.set(arguments[0], product)
        return True

    def on_mov(self, parts, arguments):
        of, source, target = TYPES[parts[-1]], self.vector(arguments[1]), self.vector(arguments[0])
        if len(source) > 1:  # into one register
            bits = 8 * {"b32": 4, "b64": 8}[parts[-1]] // len(source)
            pieces = [f"::simt::ptx::low({self.value(piece)}, {bits}) << {bits * k}" for k, piece in enumerate(source)]
            self.set(target[0], " | ".join(pieces))
        elif len(target) > 1:
            bits = 8 * {"b32": 4, "b64": 8}[parts[-1]] // len(target)
            whole = self.value(source[0])
            self.lines.append(f"{{ const uint64_t simt_whole = {whole};")
            for k, piece in enumerate(target):
                self.set(piece, f"::simt::ptx::low(simt_whole >> {bits * k}, {bits})")
            self.lines.append("}")
        elif source[0] in SPECIAL:
            self.set(target[0], f"static_cast<uint64_t>({SPECIAL[source[0]]})")
        else:
            self.set(target[0], f"::simt::ptx::bits<{of}>(::simt::ptx::get<{of}>({self.value(source[0], of)}))")
        return True

    def on_cvta(self, parts, arguments):
        self.set(arguments[0], self.value(arguments[1]))
        return True

    def on_cvt(self, parts, arguments):
        to, from_ = [part for part in parts if part in TYPES][:2]
        modes = set(parts[1:]) - {to, from_, "ftz"}
        mode = (modes & {"rn", "rz", "rm", "rp", "rni", "rzi", "rmi", "rpi", "rna"} or {"rn"}).pop()
        if modes - {mode, "sat"}:
            return False
        way = {"n": "nearest", "z": "zero", "m": "down", "p": "up"}[mode[1]]
        values = ", ".join(self.value(argument, TYPES[from_]) for argument in arguments[1:])
        whole = "true" if mode.endswith("i") else "false"
        value = f"::simt::ptx::cvt<{TYPES[to]}, {TYPES[from_]}, ::simt::Round::{way}, {whole}>({values})"
        if "sat" in modes:
            value = f"::simt::ptx::sat_<{TYPES[to]}>({value})"
        self.set(arguments[0], value)
        return True

    def call(self, name, arguments, of=""):
        values = ", ".join(self.value(argument, of.strip("<>") or "uint64_t") for argument in arguments[1:])
        self.set(arguments[0], f"::simt::ptx::{name}{of}({values})")
        return True

    def on_lop3(self, parts, arguments):
        return parts[1:] == ["b32"] and self.call("lop3", arguments)

    def on_prmt(self, parts, arguments):
        return parts[1:] == ["b32"] and self.call("prmt", arguments)

    def on_bfe(self, parts, arguments):
        return self.call("bfe", arguments, f"<{TYPES[parts[1]]}>")

    def on_bfi(self, parts, arguments):
        return self.call("bfi", arguments, f"<{TYPES[parts[1]]}>")

    def on_shf(self, parts, arguments):
        return self.call("shf", arguments, f"<{str(parts[1] == 'l').lower()}, {str(parts[2] == 'clamp').lower()}>")

    def on_dp4a(self, parts, arguments):
        a, b = (TYPES[part.replace("32", "8")] for part in parts[1:])
        return self.call("dp4a", arguments, f"<{a}, {b}>")

    def on_selp(self, parts, arguments):
        return self.call("selp", arguments, f"<{TYPES[parts[1]]}>")

    def on_setp(self, parts, arguments):
        operator = {
            "eq": "==",
            "ne": "!=",
            "lt": "<",
            "le": "<=",
            "gt": ">",
            "ge": ">=",
            "lo": "<",
            "ls": "<=",
            "hi": ">",
            "hs": ">=",
        }[parts[1]]
        of = TYPES[parts[-1]]
        if set(parts[2:-1]) - {"ftz"} or "|" in arguments[0]:
            return False
        one, other = (f"::simt::ptx::get<{of}>({self.value(argument, of)})" for argument in arguments[1:])
        self.set(arguments[0], f"uint64_t({one} {operator} {other})")
        return True

    # Memory.

    def place(self, parts):
        """(space, order, scope, vector length, type) of an access."""
        words, space, order, scope, length = parts[1:-1], "generic", "plain", "device", 1
        for word in words:
            if word in ("global", "shared", "shared::cta", "shared::cluster", "const", "local", "generic"):
                space = word
            elif word in ("volatile", "relaxed", "acquire", "release", "mmio"):
                order = word
            elif word in ("cta", "gpu", "sys", "cluster"):
                scope = {"cta": "block", "sys": "system"}.get(word, "device")
            elif word in ("v2", "v4", "v8"):
                length = int(word[1])
            elif word not in ("nc", "weak", "ca", "cg", "cs", "lu", "cv", "wb", "wt") and "::" not in word:
                raise KeyError(word)
        return space, order, scope, length, TYPES[parts[-1]]

    def on_ld(self, parts, arguments):
        space, order, scope, length, of = self.place(parts)
        address, targets = self.address(arguments[1], space), self.vector(arguments[0])
        if len(targets) != length:
            return False
        if order == "plain":
            self.lines.append(f"{{ const auto simt_v = ::simt::ptx::load<{of}, {length}>({address});")
            for k, target in enumerate(targets):
                self.set(target, f"simt_v.item[{k}]")
            self.lines.append("}")
            return True
        if length > 1:
            return False
        self.set(targets[0], f"::simt::ptx::load_{order}<{of}, ::simt::Reach::{scope}>({address})")
        return True

    def on_ldu(self, parts, arguments):
        return self.on_ld(parts, arguments)

    def on_st(self, parts, arguments):
        space, order, scope, length, of = self.place(parts)
        address = self.address(arguments[0], space)
        values = [self.value(piece, of) for piece in self.vector(arguments[1])]
        if len(values) != length or (length > 1 and order != "plain"):
            return False
        if order == "plain":
            self.lines.append(f"{{ const uint64_t simt_v[] = {{{', '.join(values)}}};")
            self.lines.append(f"::simt::ptx::store<{of}, {length}>({address}, simt_v); }}")
        else:
            self.lines.append(f"::simt::ptx::store_{order}<{of}, ::simt::Reach::{scope}>({address}, {values[0]});")
        return True

    def on_prefetch(self, parts, arguments):
        return True

    on_prefetchu = on_applypriority = on_setmaxnreg = on_prefetch

    def on_createpolicy(self, parts, arguments):
        self.set(arguments[0], "0")
        return True

    def atomic(self, parts, target, arguments):
        words, space, scope, order = [], "generic", "", "relaxed"
        for part in parts[1:]:
            if part in ("global", "shared", "shared::cta", "shared::cluster"):
                space = part
            elif part in ("cta", "cluster", "gpu", "sys"):
                scope = {"cta": "_block", "sys": "_system"}.get(part, "")
            elif part in ("relaxed", "acquire", "release", "acq_rel"):
                order = part
            elif part != "noftz" and "::" not in part:
                words.append(part)
        name, type_ = words
        function = {
            "add": "Add",
            "min": "Min",
            "max": "Max",
            "and": "And",
            "or": "Or",
            "xor": "Xor",
            "exch": "Exch",
            "cas": "CAS",
            "inc": "Inc",
            "dec": "Dec",
        }[name]
        of = {
            "u32": "unsigned",
            "b32": "unsigned",
            "s32": "int",
            "u64": "unsigned long long",
            "f32": "float",
            "b64": "unsigned long long",
            "s64": "long long",
            "f64": "double",
        }[type_]
        if type_ == "s64" and name == "add":
            of = "unsigned long long"
        values = "".join(f", ::simt::ptx::get<{of}>({self.value(each, of)})" for each in arguments[1:])
        address = f"static_cast<{of}*>({self.address(arguments[0], space)})"
        fence = f"__threadfence{scope}();"
        self.lines += [fence] * (order in ("release", "acq_rel"))
        self.set(target, f"::simt::ptx::bits<{of}>(::atomic{function}{scope}({address}{values}))")
        self.lines += [fence] * (order in ("acquire", "acq_rel"))
        return True

    def on_atom(self, parts, arguments):
        return self.atomic(parts, arguments[0], arguments[1:])

    def on_red(self, parts, arguments):
        return self.atomic(parts, "_", arguments)

    def on_cp(self, parts, arguments):
        if parts[1:3] == ["async", "bulk"]:
            return self.bulk_copy(parts[3:], arguments)
        words = [part for part in parts[1:] if not part.startswith("L2::")]
        if words == ["async", "commit_group"]:
            self.lines.append("__pipeline_commit();")
        elif words == ["async", "wait_all"]:
            self.lines.append("__pipeline_commit(); __pipeline_wait_prior(0);")
        elif words == ["async", "wait_group"]:
            self.lines.append(f"__pipeline_wait_prior({self.value(arguments[0])});")
        elif words[:2] in (["async", "ca"], ["async", "cg"]) and words[2][:6] == "shared" and words[3:] == ["global"]:
            size = self.value(arguments[2])
            kept = self.value(arguments[3]) if len(arguments) == 4 else size
            target, source = self.address(arguments[0], "shared"), self.address(arguments[1], "global")
            self.lines.append(f"::simt::ptx::cp_async({target}, {source}, {size}, {kept});")
            return len(arguments) in (3, 4) and (
                words[1] == "ca" or arguments[2] == "16" or arguments[2].startswith("%")
            )
        else:
            return False
        return True

    def bulk_copy(self, words, arguments):
        if words[0] in ("commit_group", "wait_group", "prefetch"):
            return True  # what goes to global memory is there when its instruction is over
        if words[-1] == "L2::cache_hint":
            words, arguments = words[:-1], arguments[:-1]
        to, from_, way = words
        target, source = self.address(arguments[0], to), self.address(arguments[1], from_)
        values = f"{target}, {source}, {self.value(arguments[2])}"
        shared = ("shared::cta", "shared::cluster")
        if to in shared and from_ in ("global", "shared::cta") and way == "mbarrier::complete_tx::bytes":
            return self.run(f"::simt::ptx::bulk_to_shared({values}, {self.address(arguments[3], to)})")
        is_group = to == "global" and from_ == "shared::cta" and way == "bulk_group" and len(arguments) == 3
        return is_group and self.run(f"::simt::ptx::bulk_to_global({values})")

    def on_mbarrier(self, parts, arguments):
        words = [part for part in parts[1:] if part not in MBARRIER_WITHOUT_EFFECT]
        space = next((part for part in parts if part.startswith("shared")), "generic")
        (name, *more), place = words, next(k for k, argument in enumerate(arguments) if argument.startswith("["))
        barrier = f"::simt::ptx::mbarrier({self.address(arguments[place], space)})"
        values = [self.value(argument) for argument in arguments[place + 1 :]]
        site = "::simt::Site::here()"
        if name == "init" and not more:
            return self.run(f"{barrier}.init(static_cast<int64_t>({values[0]}))")
        if name == "inval" and not more:
            return self.run(f"{barrier}.invalidate()")
        if name in ("expect_tx", "complete_tx") and not more:
            sign = {"expect_tx": "", "complete_tx": "-"}[name]
            return self.run(f"{barrier}.arrive(0, 0, {sign}static_cast<int64_t>({values[0]}), {site}, [] {{}})")
        if name in ("arrive", "arrive_drop") and more in ([], ["expect_tx"]):
            threads, bytes_ = ("1", values[0]) if more else (values[0] if values else "1", "0")
            threads = f"static_cast<int64_t>({threads})"
            dropped = threads if name == "arrive_drop" else "0"
            arrival = f"{barrier}.arrive({threads}, {dropped}, static_cast<int64_t>({bytes_}), {site}, [] {{}})"
            self.set(arguments[0] if place else "_", arrival)
            return True
        if name in ("try_wait", "test_wait") and more in ([], ["parity"]):
            mask = "1" if more else "7"
            self.set(arguments[0], f"uint64_t({barrier}.test(static_cast<unsigned>({values[0]}), {mask}, {site}))")
            return True
        return False

    # Waiting and the lanes of a warp.

    def run(self, code):
        self.lines.append(f"{code};")
        return True

    def on_bra(self, parts, arguments):
        return arguments[0] in self.labels and self.run(f"goto {self.labels[arguments[0]]}")

    def on_elect(self, parts, arguments):
        target, _, predicate = (part.strip() for part in arguments[0].partition("|"))
        mask = f"static_cast<unsigned>({self.value(arguments[1])})"
        self.lines.append(f"{{ __syncwarp({mask}); const uint64_t simt_leader = __ffs(static_cast<int>({mask})) - 1;")
        self.set(target, "simt_leader")
        self.set(predicate, "uint64_t(::simt::lane_id() == simt_leader)")
        self.lines.append("}")
        return parts[1:] == ["sync"]

    def on_bar(self, parts, arguments):
        if parts[1:] == ["warp", "sync"]:
            return self.run(f"__syncwarp(static_cast<unsigned>({self.value(arguments[0])}))")
        words = [part for part in parts[1:] if part != "cta"]
        return words in (["sync"], ["sync", "aligned"]) and arguments == ["0"] and self.run("__syncthreads()")

    def on_barrier(self, parts, arguments):
        if parts[1] == "cluster":
            name = {"arrive": "__cluster_barrier_arrive", "wait": "__cluster_barrier_wait"}[parts[2]]
            return self.run(f"{name}()")
        return self.on_bar(parts, arguments)

    def on_membar(self, parts, arguments):
        name = {"cta": "__threadfence_block", "gl": "__threadfence", "sys": "__threadfence_system"}[parts[1]]
        return self.run(f"{name}()")

    def on_fence(self, parts, arguments):
        if parts[1] in ("proxy", "mbarrier_init"):
            return True  # all accesses take one way here
        scope = {"cta": "_block", "gpu": "", "cluster": "_cluster", "sys": "_system"}[parts[-1]]
        return parts[1] in ("acq_rel", "sc", "acquire", "release") and self.run(f"__threadfence{scope}()")

    def on_griddepcontrol(self, parts, arguments):
        wait = {"wait": "cudaGridDependencySynchronize", "launch_dependents": "cudaTriggerProgrammaticLaunchCompletion"}
        return self.run(f"{wait[parts[1]]}()")

    def on_nanosleep(self, parts, arguments):
        return self.run("::simt::yield()")

    def on_multimem(
        self, parts, arguments
    ):  # headers of NCCL's programs have it in functions that not all of them call
        return self.run("::simt::ptx::refuse_multimem()")

    def on_trap(self, parts, arguments):
        return self.run("__trap()")

    def on_activemask(self, parts, arguments):
        self.set(arguments[0], "__activemask()")
        return True

    def on_shfl(self, parts, arguments):
        if parts[1] != "sync":
            return False
        kind = {"idx": "index", "up": "up", "down": "down", "bfly": "butterfly"}[parts[2]]
        target, _, predicate = (part.strip() for part in arguments[0].partition("|"))
        values = ", ".join(self.value(argument) for argument in arguments[1:])
        self.lines.append("{ bool simt_in_range = false;")
        self.set(target, f"::simt::ptx::shfl<::simt::Shuffle::{kind}>({values}, simt_in_range)")
        if predicate:
            self.set(predicate, "uint64_t(simt_in_range)")
        self.lines.append("}")
        return True

    def on_vote(self, parts, arguments):
        name = {"all": "__all_sync", "any": "__any_sync", "uni": "__uni_sync", "ballot": "__ballot_sync"}[parts[2]]
        mask, predicate = self.value(arguments[2]), self.value(arguments[1])
        self.set(arguments[0], f"uint64_t({name}(static_cast<unsigned>({mask}), bool({predicate})))")
        return parts[1] == "sync"

    def on_match(self, parts, arguments):
        of = TYPES[parts[-1]]
        value = f"::simt::ptx::get<{of}>({self.value(arguments[1])})"
        self.set(arguments[0], f"__match_any_sync(static_cast<unsigned>({self.value(arguments[2])}), {value})")
        return parts[1] == "any"

    def on_redux(self, parts, arguments):
        of = {"s32": "int", "u32": "unsigned", "b32": "unsigned"}[parts[-1]]
        name = {"add": "add", "min": "min", "max": "max", "and": "and", "or": "or", "xor": "xor"}[parts[2]]
        value = f"static_cast<{of}>({self.value(arguments[1])})"
        result = f"__reduce_{name}_sync(static_cast<unsigned>({self.value(arguments[2])}), {value})"
        self.set(arguments[0], f"::simt::ptx::bits<{of}>({result})")
        return True

    def on_mapa(self, parts, arguments):
        address = self.address(f"[{arguments[1]}]", "shared")
        rank = self.value(arguments[2])
        self.set(arguments[0], f"::simt::ptx::mapa({address}, {rank})")
        return parts[-1] in ("u32", "u64")

    # Tensor cores.

    def array(self, name, text):
        self.lines.append(f"const uint64_t {name}[] = {{{', '.join(self.value(each) for each in self.vector(text))}}};")
        return len(self.vector(text))

    def on_mma(self, parts, arguments):
        shape, types = re.fullmatch(r"m(\d+)n8k(\d+)", parts[3]), [part for part in parts if part in TYPES]
        if parts[1:3] != ["sync", "aligned"] or not shape or parts[4:6] != ["row", "col"] or len(types) != 4:
            return False
        rows, depth, (d, a, b, c) = int(shape[1]), int(shape[2]), types
        sums = {"f16": ("f32", "f16"), "s8": ("s32",), "u8": ("s32",), "f64": ("f64",)}.get(a, ("f32",))
        if depth not in MMA_TYPES[a] or (a == "f64") != (rows == 8) or d not in sums or c != d:
            return False
        if b != a and {a, b} != {"s8", "u8"} or set(parts[6:]) - set(types) - {"satfinite"} or "satfinite" in parts:
            return False
        self.lines.append("{")
        targets = self.vector(arguments[0])
        counts = [self.array(f"simt_{name}", text) for name, text in zip("abc", arguments[1:])]
        self.lines.append(f"uint64_t simt_d[{len(targets)}];")
        names = ", ".join(TYPES[each] for each in (d, a, b))
        call = f"::simt::ptx::mma<{rows}, {depth}, {names}, {len(targets)}, {counts[0]}, {counts[1]}, {counts[2]}>"
        self.lines.append(f"{call}(simt_d, simt_a, simt_b, simt_c);")
        for k, target in enumerate(targets):
            self.set(target, f"simt_d[{k}]")
        self.lines.append("}")
        return True

    def on_ldmatrix(self, parts, arguments):
        words = [part for part in parts[1:] if not part.startswith("shared")]
        trans = "trans" in words
        if [word for word in words if word != "trans"][:3] != ["sync", "aligned", "m8n8"] or words[-1] != "b16":
            return False
        targets = self.vector(arguments[0])
        if f"x{len(targets)}" not in words:
            return False
        address = self.address(arguments[1], "shared")
        self.lines.append(f"{{ uint32_t simt_d[{len(targets)}];")
        self.lines.append(f"::simt::ptx::ldmatrix<{len(targets)}, {str(trans).lower()}>(simt_d, {address});")
        for k, target in enumerate(targets):
            self.set(target, f"simt_d[{k}]")
        self.lines.append("}")
        return True

    def on_stmatrix(self, parts, arguments):
        words = [part for part in parts[1:] if not part.startswith("shared")]
        trans = "trans" in words
        if [word for word in words if word != "trans"][:3] != ["sync", "aligned", "m8n8"] or words[-1] != "b16":
            return False
        self.lines.append("{")
        count = self.array("simt_a", arguments[1])
        address = self.address(arguments[0], "shared")
        self.lines.append(f"::simt::ptx::stmatrix<{count}, {str(trans).lower()}>({address}, simt_a); }}")
        return f"x{count}" in words
