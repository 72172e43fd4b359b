"""Times what a norm adds to a layer of a model: chains of norms and matrix products, beside the peers.

    make chain                                       both forms of a layer, on the shapes of the tables
    make chain ARGS="--residual --hidden 4096 --rows 16,128,256 --peers liger,torch_compile"
    make chain ARGS=--float8                         a layer in float8, beside the same layer in bfloat16
    make chain ARGS="--variant held=build/held.so --variant first=build/first.so --rows 256"

A chain is one CUDA graph of several layers, each with weights of its own (bench/norm/chain_timing.py). What a norm
adds is the time of the chain less that of the same chain without norms, a layer. "Nothing" is the chain without norms
once more, and "this header, again" the same library once more, at another address: controls of the measurement. Needs
PyTorch with CUDA, nvcc and an NVIDIA GPU, and is run after pip install liger-kernel flashinfer-python quack-kernels,
each of which may be missing.
"""

import argparse
import pathlib
import random
import time
import types

from ladder.core import ladders, machine, results
from ladder.measure import graph_timing

from bench.norm import chain_tables, chain_timing, competitors, peer_tables, peers
from bench.norm.chain_tables import NOTHING
from bench.norm.chain_timing import ATTENTION, FLOAT8, RESIDUAL

ROWS = [1, 16, 64, 128, 256, 512, 1024, 2048, 4096, 8192]
FLOAT8_ROWS, FLOAT8_HIDDEN = [1, 16, 64, 256, 1024, 4096], [4096]
# Hidden size: intermediate size, of Qwen3 1.7B, 8B and 14B and of Llama 3 70B; all have 8 heads of 128 for k and for v.
MODELS = {2048: 6144, 4096: 12288, 5120: 17408, 8192: 28672}
KEYS_AND_VALUES = 2 * 8 * 128


class TorchInPlace(competitors.Torch):
    """As Torch, but the sum is written over the residual."""

    def plain_residual(self, x, r, weight):
        r.add_(x)
        return self.torch.nn.functional.rms_norm(r, r.shape[-1:], weight, competitors.EPS)

    def residual(self, x, r, weight, y, s):
        return self.call("residual", x, r, weight), r


IN_PLACE = {
    "torch_eager": TorchInPlace,
    "torch_compile_in_place": lambda torch: TorchInPlace(torch, compiled=True),
}


def numbers(text):
    return [peers.positive(part) for part in text.split(",")]


def variant(text):
    name, _, path = text.partition("=")
    if not name or not path:
        raise argparse.ArgumentTypeError(
            f"{text} is no variant; say NAME=PATH, PATH of a library of bench/abi/rms_norm"
        )
    return name, pathlib.Path(path)


def arguments(parser):
    parser.add_argument("--residual", action="store_true", help="only residual add + norm, before the MLP's products")
    parser.add_argument("--attention", action="store_true", help="only norm forward, before attention's products")
    parser.add_argument("--float8", action="store_true", help="only the MLP's products in float8, and in bfloat16")
    parser.add_argument("--rows", type=numbers, help="with commas; by default " + ",".join(map(str, ROWS)))
    parser.add_argument("--hidden", type=numbers, help="with commas; by default " + ",".join(map(str, MODELS)))
    parser.add_argument("--inner", type=peers.positive, help="width between the two products, instead of the models'")
    parser.add_argument("--peers", type=peers.names, help="only these, with commas: " + ", ".join(competitors.PEERS))
    parser.add_argument(
        "--library", type=pathlib.Path, metavar="PATH", help="bench/abi/rms_norm, built; else it is compiled"
    )
    parser.add_argument(
        "--variant",
        type=variant,
        action="append",
        metavar="NAME=PATH",
        help="one more library of bench/abi/rms_norm to time",
    )
    parser.add_argument("--no-plain", action="store_true", help="the header with dependent launch only")
    parser.add_argument("--no-pdl", action="store_true", help="leave out programmatic dependent launch")
    parser.add_argument("--new-memory", action="store_true", help="the sum to new memory, not over the residual")
    parser.add_argument("--layers", type=peers.positive, help="of a chain; by default as many as keep the weights cold")
    parser.add_argument(
        "--split", action="store_true", help="also how long norms and products are on the GPU, by PyTorch's profiler"
    )
    parser.add_argument("--seconds", type=float, default=4.0, help="of timing a shape; by default %(default)s")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=pathlib.Path, metavar="DIRECTORY", help="where the CSV goes")
    parser.add_argument("--add", action="store_true", help="keep the CSV's rows of other shapes than this run's")


def complete(given):
    """The arguments with what follows from them: whether this run may be stored, and its shapes."""
    changed = (given.inner, given.library, given.variant, given.peers, given.no_plain, given.no_pdl, given.new_memory)
    changed = any(value not in (None, False) for value in (*changed, given.layers, given.split))
    chosen = any((given.rows, given.hidden, given.residual, given.attention))
    given.default_run = not changed and (given.add or not chosen)
    given.peers = competitors.BY_DEFAULT if given.peers is None else given.peers
    unknown = [hidden for hidden in given.hidden or [] if hidden not in MODELS and not given.inner]
    if unknown:
        raise ladders.BadCommand(f"--hidden {unknown[0]}: no model of this size is known here, so say --inner, too")
    both = given.residual == given.attention and not given.float8
    asked = ((RESIDUAL, given.residual or given.float8), (ATTENTION, given.attention), (FLOAT8, given.float8))
    forms = [form for form, is_asked in asked if is_asked or (both and form != FLOAT8)]
    rows_by_default, hidden_by_default = (FLOAT8_ROWS, FLOAT8_HIDDEN) if given.float8 else (ROWS, MODELS)
    given.work = [
        chain_timing.Shape(form, rows, hidden, inner_of(given, form, hidden))
        for form in forms
        for hidden in given.hidden or hidden_by_default
        for rows in given.rows or rows_by_default
    ]
    return given


def inner_of(given, form, hidden):
    by_model = hidden + KEYS_AND_VALUES if form == ATTENTION else MODELS.get(hidden)
    return given.inner or by_model


def makers(torch, lib, given):
    """{name: what makes the competitor}."""
    found = {}
    libraries = {"": lambda: lib}
    for name, path in given.variant or []:
        libraries[name] = lambda path=path: competitors.library(path.absolute())
    for variant_name, library in libraries.items():
        for name, dependent, left_out in (
            (peer_tables.OURS, False, given.no_plain),
            (peer_tables.OURS_PDL, True, given.no_pdl),
        ):
            if not left_out:
                name = f"{variant_name}{name.removeprefix(peer_tables.OURS)}" if variant_name else name
                found[name] = lambda library=library, dependent=dependent: competitors.Ours(torch, library(), dependent)
    if not given.no_plain:
        found[chain_tables.AGAIN] = lambda: competitors.Ours(torch, competitors.loaded_again(lib))
    if given.float8:
        found[peer_tables.APART] = lambda: competitors.Apart(torch, competitors.Ours(torch, lib))
    for name in given.peers:
        found[name] = lambda name=name: competitors.PEERS[name](torch)
        if not given.new_memory and name == "torch_compile":
            found["torch_compile_in_place"] = lambda: IN_PLACE["torch_compile_in_place"](torch)
        if not given.new_memory and name in IN_PLACE:
            found[name] = lambda name=name: IN_PLACE[name](torch)
    return found


def load(torch, lib, given):
    """{name: competitor, or the Missing that says why there is none}."""

    def say(name, why):
        print(f"chain: {chain_tables.title(name)} is missing: {why}", flush=True)

    return competitors.made(makers(torch, lib, given), say)


def overwrites(competitor, new_memory):
    """(whether its residual form writes over the residual, whether over x)."""
    if isinstance(competitor, (competitors.Ours, competitors.Apart)):
        return not new_memory, not new_memory
    if isinstance(competitor, TorchInPlace):
        return True, False
    return competitor.in_place, competitor.in_place


def norm_of(competitor, layers, new_memory):
    """norm(x, r, weight) -> (y, r) as Layers.run() wants it. In place is as in vLLM: y over x, the sum over r."""
    if layers.shape.form == FLOAT8:
        return quantized_norm_of(competitor, layers, new_memory)
    if layers.shape.form == ATTENTION:
        return lambda x, r, weight: (competitor.forward(x, weight, layers.y), r)
    if overwrites(competitor, new_memory)[0]:
        return lambda x, r, weight: competitor.residual(x, r, weight, x, r)
    return lambda x, r, weight: competitor.residual(x, r, weight, layers.y, layers.other_sum(r))


def quantized_norm_of(competitor, layers, new_memory):
    def norm(x, r, weight):
        given = {"x": x, "r": r, "s": layers.other_sum(r) if new_memory else r, "q": layers.y}
        entry = types.SimpleNamespace(**given, scale=layers.scale, scales=None, y=None)
        q, _, s, _ = competitor.quantized(competitors.FORMS["add_fp8_static"], entry, weight)
        return q, s

    return norm


def takes_part(competitor, form):
    """Whether it has such a norm. Those in place are PyTorch's own, whose quantized norms have new memory."""
    if form == FLOAT8 and isinstance(competitor, TorchInPlace):
        return False
    method = {RESIDUAL: "residual", ATTENTION: "forward", FLOAT8: "quantized"}[form]
    return isinstance(competitor, competitors.Missing) or getattr(competitor, method, None) is not None


class Contest:
    """All competitors at one shape: row by name, as chain_tables.COLUMNS wants them."""

    def __init__(self, gpu, loaded, shape, given):
        self.gpu, self.torch, self.shape, self.given = gpu, gpu.torch, shape, given
        self.loaded = {name: one for name, one in loaded.items() if takes_part(one, shape.form)}
        self.rows = {}

    def note(self, name, verdict, reason="", **values):
        version = getattr(self.loaded.get(name), "version", "")
        about = {"verdict": verdict, "reason": reason, "version": version}
        self.rows[name] = {**self.rows.get(name, {}), **about, **values}

    def check_norm(self, norm):
        """What is wrong with a norm of fresh random input, or ""."""
        shape, residual = self.shape, self.shape.form == RESIDUAL
        if shape.form == FLOAT8:
            form = competitors.FORMS["add_fp8_static"]
            about = (form, competitors.BLOCK, self.layers.scale)
            entry = graph_timing.QuantizedEntry(self.torch, shape.rows, shape.hidden, chain_timing.DTYPE, *about)
            q, s = norm(entry.x.clone(), entry.r.clone(), self.layers.norms[0])
            about = (self.torch, entry, form, self.layers.norms[0], q, None, s, None)
            return graph_timing.quantized_errors(*about, chain_timing.DTYPE)[1]
        entry = graph_timing.Entry(self.torch, shape.rows, shape.hidden, chain_timing.DTYPE, residual)
        x, r = entry.x.clone(), entry.r.clone() if residual else None
        y, s = norm(x, r, self.layers.norms[0])
        tolerance = graph_timing.tolerance(chain_timing.DTYPE, shape.hidden, residual)
        return graph_timing.errors(self.torch, entry, self.layers.norms[0], y, s, tolerance, chain_timing.DTYPE)[1]

    def check_pass(self, run):
        """(worst relative error of a row after a pass, what is wrong or ""); NaN is wrong."""
        self.layers.restart()
        x, r = run()
        got = [x] if self.shape.form == ATTENTION else [x, r]
        worst = chain_timing.worst_row_error(zip(got, self.expected))
        right = worst <= self.layers.tolerance
        return worst, "" if right else f"a row's relative error after {self.layers.count} layers is {worst:.3g}"

    def is_right(self, name, norm):
        """Whether it is; where it is wrong or refuses, that is noted."""
        try:
            wrong = self.check_norm(norm)
            worst, wrong_pass = self.check_pass(lambda: self.layers.run(norm))
            wrong = wrong or wrong_pass
            self.note(name, "wrong" if wrong else "ok", wrong, worst_error=f"{worst:.3e}")
            if not wrong:
                self.note_launches(name, norm)
            return not wrong
        except Exception as error:  # whatever a library raises where it refuses; the others go on
            self.note(name, "refused", competitors.first_line(error))
            return False

    def captured(self, name, norm):
        """Its graph with the activations where they are now, after a call of it, since what a library compiles at the
        first call it cannot compile within a capture. None where it refuses."""
        try:
            self.layers.run(norm)
            return chain_timing.Graph(self.torch, self.layers, norm)
        except Exception as error:  # as above
            self.note(name, "refused", competitors.first_line(error))
            return None

    def note_launches(self, name, norm):
        """How many launches its norm is, from the nodes of its graph beside those of the products alone."""
        nodes = chain_timing.node_count(self.torch, self.layers, norm)
        if nodes and self.nodes:
            self.note(name, "ok", launches=f"{(nodes - self.nodes) / self.layers.count:g}")

    def note_split(self, base, graphs):
        """Microseconds a layer that norms and products are on the GPU: a dependent launch's include its wait."""
        products = set(chain_timing.kernel_times(self.torch, base))
        for name, graph in graphs.items():
            times = chain_timing.kernel_times(self.torch, graph)
            of_norms = sum(spent for kernel, spent in times.items() if kernel not in products)
            of_products = sum(times.values()) - of_norms
            for what, spent in (("norm_kernels", of_norms), ("product_kernels", of_products)):
                self.rows[name][f"{what}_microseconds"] = f"{spent / self.layers.count:.3f}"

    def memory_of(self, name):
        if self.shape.form == ATTENTION or name == NOTHING:
            return ""
        return "in place" if overwrites(self.loaded[name], self.given.new_memory)[0] else "new"

    def right_norms(self):
        """{name: norm} of the competitors that are right, and of nothing."""
        layers = self.layers

        nothing = layers.without_norm
        layers.restart()
        self.expected = [tensor.clone() for tensor in layers.run(layers.reference)]
        layers.run(nothing)
        self.nodes = chain_timing.node_count(self.torch, layers, nothing)
        self.note(NOTHING, "ok")
        found = {NOTHING: nothing}
        for name, competitor in self.loaded.items():
            if isinstance(competitor, competitors.Missing):
                self.note(name, "missing", str(competitor))
                continue
            norm = norm_of(competitor, layers, self.given.new_memory)
            if self.is_right(name, norm):
                found[name] = norm
        return found

    def check_timed(self, name, graph):
        """Notes a graph that was timed and gives something wrong."""
        worst, wrong = self.check_pass(lambda: (graph.replay(), graph.outputs)[1])
        if wrong:
            self.note(name, "wrong", f"after timing, {wrong}", worst_error=f"{worst:.3e}")

    def measure(self):
        torch, places = self.torch, random.Random(self.given.seed)
        torch.manual_seed(self.given.seed)
        count = self.given.layers or self.shape.layers(self.gpu.l2_bytes)
        kind = chain_timing.Float8Layers if self.shape.form == FLOAT8 else chain_timing.Layers
        self.layers = layers = kind(torch, self.shape, count)
        norms, clock = self.right_norms(), chain_timing.Clock(torch, self.gpu.stream)
        samples = {name: [] for name in norms}
        for _ in range(chain_timing.PLACES):
            layers.place(places)
            ready = {name: norm for name, norm in norms.items() if self.rows[name]["verdict"] == "ok"}
            graphs = {name: self.captured(name, norm) for name, norm in ready.items()}
            graphs = {name: graph for name, graph in graphs.items() if graph}
            base = chain_timing.Graph(torch, layers, norms[NOTHING])
            layers.restart()
            measured = chain_timing.measure(clock, graphs, base, count, self.given.seconds / chain_timing.PLACES)
            for name, graph in graphs.items():
                samples[name].append(measured[name])
                if name != NOTHING:
                    self.check_timed(name, graph)
        for name, of_places in samples.items():
            if self.rows[name]["verdict"] == "ok":
                summary = chain_timing.summary(of_places)
                values = {f"{key}_microseconds": f"{value:.3f}" for key, value in summary.items()}
                rounds = sum(len(one.added) for one in of_places)
                self.note(name, "ok", rounds=rounds, places=len(of_places), **values)
        if self.given.split:
            self.note_split(base, graphs)
        return self.finished()

    def finished(self):
        """The rows in the order of the competitors, complete."""
        shape = self.shape
        common = {
            **{"form": shape.form, "rows": shape.rows, "hidden": shape.hidden, "inner": shape.inner},
            **{"dtype": chain_timing.DTYPE, "layers": self.layers.count, **self.gpu.facts},
        }
        table = []
        for name in [*self.loaded, NOTHING]:
            row = {**dict.fromkeys(chain_tables.COLUMNS, ""), **common, "competitor": name, **self.rows[name]}
            if row["verdict"] == "ok":
                row["memory"] = self.memory_of(name)
            table.append([str(row[column]) for column in chain_tables.COLUMNS])
        return table


def run(given):
    complete(given)
    torch = peers.requirements()
    gpu = peers.Gpu(torch)
    lib = competitors.library(given.library.absolute()) if given.library else peers.build_library(torch)
    stored = results.target("", gpu.gpu) / results.HEADER if given.default_run else ladders.ROOT / "build/chain"
    output = (given.output or stored).absolute()
    output.mkdir(parents=True, exist_ok=True)
    path, before = output / ("chain_float8.csv" if given.float8 else "chain.csv"), machine.clocks()
    table = chain_tables.kept(path, given.work) if given.add else []
    with torch.no_grad(), torch.cuda.stream(gpu.stream):
        loaded = load(torch, lib, given)
        for place, shape in enumerate(given.work, 1):
            start = time.monotonic()
            print(f"chain: [{place}/{len(given.work)}] {shape}: ", end="", flush=True)
            try:
                rows = Contest(gpu, loaded, shape, given).measure()
            except torch.cuda.OutOfMemoryError:
                print("left out, this GPU's memory is too small", flush=True)
            else:
                table += rows
                chain_tables.store(path, table)
                print(f"{chain_tables.line_of(rows)} ({time.monotonic() - start:.0f} s)", flush=True)
            torch.cuda.empty_cache()
    asked = {name: one for name, one in loaded.items() if name in given.peers}
    text = peers.environment(gpu, asked, before, machine.clocks())
    path.with_name(f"{path.stem}_environment.txt").write_text(text, encoding="utf-8")
    if not path.is_file():
        return 1
    print(f"\n{chain_tables.printed(path)}")
    return int(chain_tables.is_wrong(path, set(given.peers)))
