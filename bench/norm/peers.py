"""Times the production header against its peers on this machine's GPU.

    make peers                                       all forms, on the shapes of the tables
    make peers ARGS="--forward --shape 64x4096:bf16 --shape 8192x8192:f32:noweight"
    make peers ARGS=--step                           forward and backward through autograd; needs the package of python/
    make peers ARGS="--quantized --peers torch_compile"
    make peers ARGS="--peers liger,quack --quick --output DIRECTORY"
    make peers ARGS=--all-reduce                     the norm behind an all-reduce, on 2 to 8 GPUs; needs NCCL 2.28 or newer

Needs PyTorch with CUDA, nvcc and an NVIDIA GPU. A peer that is not installed is named in the table; to install them:
pip install liger-kernel flashinfer-python quack-kernels vllm. The default run writes profiling_results/<gpu>/header/, any
other build/peers/results/: peers_forward.csv, peers_residual.csv, peers_backward.csv, and one of each form that ends in 8
bits, as peers_fp8_token.csv (after each shape, so that an interrupted run leaves what it has measured), and
peers_environment.txt. A wrong result of the header's, or a measurement that cannot be, ends
with exit code 1.
"""

import argparse
import datetime
import math
import pathlib
import re
import sys
import time

from ladder.core import ladders, machine, results
from ladder.core.ladders import Unusable
from ladder.measure import graph_timing, kernel_library

from bench.norm import competitors, peer_tables

FORWARD = """
8192x8192:f32:noweight 1x4096 16x4096 64x4096 256x4096 2048x4096 8192x4096 4096x8192 32768x4096 32768x8192 32768x1024
32768x256 8192x16384 4096x32768 4096x65536 1x1048576 1x4096:f32 64x4096:f32 8192x8192:f32 8192x4096:f32
""".split()
RESIDUAL = "1x4096 16x4096 64x4096 256x4096 2048x4096 8192x4096 4096x8192 32768x4096 8192x16384".split()
BACKWARD = """
1x4096 4x4096 16x4096 64x1024 128x4096 128x8192 512x4096 2048x4096 8192x4096 4096x8192 8192x2048 32768x1024 65536x256
16384x128 100000x64 4096x5120 2048x7168 1024x16384 512x32768 16x65536 256x65536 333x7777 4096x4095 2048x4096:f32
8192x1024:f32 256x65536:f32
""".split()
QUANTIZED = "1x4096 64x4096 512x4096 2048x4096 8192x4096 8192x8192".split()
STEP = "512x4096 2048x4096 8192x4096 4096x8192 32768x1024 16384x128 8192x4096:f32".split()
QUICK = ["1x4096", "2048x4096", "1x1048576"]
DTYPES = {short: name for name, short in peer_tables.DTYPES.items()}


class Shape:
    def __init__(self, text):
        match = re.fullmatch(r"(\d+)x(\d+)(?::(\w+))?(:noweight)?", text)
        dtype = match and (match.group(3) or "bf16")
        if not match or dtype not in DTYPES or not int(match.group(1)) or not int(match.group(2)):
            raise argparse.ArgumentTypeError(f"{text} is no shape; say 64x4096, 64x4096:f32 or 64x4096:bf16:noweight")
        self.rows, self.cols, self.dtype = int(match.group(1)), int(match.group(2)), DTYPES[dtype]
        self.weight = not match.group(4)

    def __str__(self):
        return peer_tables.shape_name((self.rows, self.cols, self.dtype, str(int(self.weight))))


def names(text):
    chosen = [name for name in text.split(",") if name]
    unknown = [name for name in chosen if name not in competitors.PEERS]
    if unknown:
        known = ", ".join(competitors.PEERS)
        raise argparse.ArgumentTypeError(f"unknown peer {', '.join(unknown)}; known are {known}")
    return chosen


def positive(text):
    if not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(f"{text} is not a whole number above 0")
    return int(text)


def arguments(parser):
    parser.add_argument("--forward", action="store_true", help="time RMSNorm forward only")
    parser.add_argument("--residual", action="store_true", help="time residual add + RMSNorm only")
    parser.add_argument("--backward", action="store_true", help="time the gradients of x and the weight only")
    parser.add_argument("--step", action="store_true", help="time forward and backward, as training calls them, only")
    parser.add_argument("--quantized", action="store_true", help="time the norms that end in 8 bits only")
    parser.add_argument("--all-reduce", action="store_true", help="time the norm behind an all-reduce over GPUs only")
    parser.add_argument(
        "--shape", type=Shape, action="append", help="ROWSxCOLS[:bf16|f16|f32][:noweight]; may be repeated"
    )
    parser.add_argument("--peers", type=names, help="only these, with commas: " + ", ".join(competitors.PEERS))
    parser.add_argument("--no-pdl", action="store_true", help="leave out programmatic dependent launch")
    parser.add_argument("--quick", action="store_true", help="three shapes, five replays")
    parser.add_argument("--replays", type=positive, help="timed replays of each graph; by default 12")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=pathlib.Path, metavar="DIRECTORY", help="where the CSVs go")


def complete(given):
    """The arguments with what follows from them: whether it is the default run, and the shapes of each operator."""
    changed = (given.shape, given.peers, given.no_pdl, given.quick, given.replays)
    given.default_run = all(value in (None, False) for value in changed)
    given.replays = given.replays or (5 if given.quick else 12)
    given.peers = competitors.BY_DEFAULT if given.peers is None else given.peers
    one_of = (given.forward, given.residual, given.backward, given.quantized)
    everything = not given.step and len(set(one_of)) == 1
    given.work = [
        (operator, given.shape or [Shape(text) for text in (QUICK if given.quick else by_default)])
        for operator, asked, by_default in (
            ("forward", given.forward, FORWARD),
            ("residual", given.residual, RESIDUAL),
            ("backward", given.backward, BACKWARD),
            ("step", given.step, STEP),
            *((form, given.quantized, QUANTIZED) for form in competitors.FORMS),
        )
        if asked or everything and operator != "step"
    ]
    return given


def requirements():
    """PyTorch; Unusable with one sentence on what is needed."""
    try:
        import torch
    except ImportError:
        raise Unusable("PyTorch is needed to time the peers (pip install torch), with an NVIDIA GPU and nvcc")
    if not torch.cuda.is_available():
        raise Unusable("an NVIDIA GPU is needed that PyTorch can use, and torch.cuda.is_available() says no")
    machine.find_nvcc()
    return torch


def build_library(torch):
    """bench/abi/rms_norm for this GPU, in build/peers/."""
    major, minor = torch.cuda.get_device_capability()
    command = [machine.find_nvcc(), "-t", "0", f"-arch=sm_{major}{minor}"]
    target = ladders.ROOT / "build/peers/librms_norm.so"
    return competitors.library(kernel_library.build_folder(ladders.ROOT / "bench/abi/rms_norm", target, command))


class Gpu:
    """The GPU's figures that the measurements need."""

    def __init__(self, torch):
        properties = torch.cuda.get_device_properties(0)
        self.torch, self.gpu, self.l2_bytes = torch, properties.name, properties.L2_cache_size
        clock, width = (getattr(properties, name, 0) for name in ("memory_clock_rate", "memory_bus_width"))
        self.peak = 2.0 * 1000.0 * clock * width / 8.0  # bytes a second; two transfers a clock
        self.stream = torch.cuda.Stream()
        found = re.match(r"\d+", machine.query("clocks.max.sm"))
        self.facts = {
            "gpu": self.gpu,
            "cuda_runtime": torch.version.cuda or "",
            "driver": machine.query("driver_version"),
            "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
            "sm_clock_mhz": found.group() if found else "",
        }


def load(torch, lib, arguments):
    """{name: competitor, or the Missing that says why there is none}."""
    makers = {peer_tables.OURS: lambda: competitors.Ours(torch, lib)}
    makers[peer_tables.OURS_INVARIANT] = lambda: competitors.Ours(torch, lib, batch_invariant=True)
    makers[peer_tables.OURS_RSTD] = lambda: competitors.OursWithRstd(torch, lib)
    if not arguments.no_pdl:
        makers[peer_tables.OURS_PDL] = lambda: competitors.Ours(torch, lib, dependent_launch=True)
        makers[peer_tables.OURS_RSTD_PDL] = lambda: competitors.OursWithRstd(torch, lib, dependent_launch=True)
    makers.update((name, lambda name=name: competitors.PEERS[name](torch)) for name in arguments.peers)
    if any(operator == "step" for operator, _ in arguments.work):
        makers[peer_tables.PACKAGE] = lambda: competitors.Package(torch)
    if any(operator in competitors.FORMS for operator, _ in arguments.work):
        makers[peer_tables.APART] = lambda: competitors.Apart(torch, competitors.Ours(torch, lib))

    def say(name, why):
        print(f"peers: {peer_tables.title(name)} is missing: {why}", flush=True)

    return competitors.made(makers, say)


def copy_launches(lib, stream):
    """The ceiling: a copy of the same bytes, by a kernel and by the runtime."""

    def kernel(entry):
        size = entry.source.numel() * entry.source.element_size()
        pointers = entry.source.data_ptr(), entry.target.data_ptr()
        competitors.checked(lib, lib.rms_norm_copy(*pointers, size, stream.cuda_stream))
        return entry.target, None

    def memcpy(entry):
        return entry.target.copy_(entry.source, non_blocking=True), None

    return {"copy_kernel": kernel, "copy_memcpy": memcpy}


class Contest:
    """All competitors at one shape: row by name, as peer_tables.COLUMNS wants them."""

    def __init__(self, gpu, lib, loaded, operator, shape, arguments):
        self.gpu, self.torch, self.shape, self.residual = gpu, gpu.torch, shape, operator == "residual"
        self.operator, self.loaded, self.arguments = operator, loaded, arguments
        self.matrix_bytes = shape.rows * shape.cols * graph_timing.ITEM_BYTES[shape.dtype]
        self.moved = self.matrix_bytes * (4 if self.residual else 2)
        self.pairs = graph_timing.pair_count(self.moved)
        self.tolerance = graph_timing.tolerance(shape.dtype, shape.cols, self.residual)
        self.copies = copy_launches(lib, gpu.stream)
        self.rows = {}

    def entry(self):
        return graph_timing.Entry(self.torch, self.shape.rows, self.shape.cols, self.shape.dtype, self.residual)

    def launch_of(self, competitor):
        if self.residual:
            return lambda e: competitor.residual(e.x, e.r, self.weight, e.y, e.s)
        return lambda e: (competitor.forward(e.x, self.weight, e.y), None)

    def works_in_place(self, competitor):
        return self.residual and competitor.in_place

    def note(self, name, verdict, reason="", **values):
        version = getattr(self.loaded.get(name), "version", "")
        about = {"verdict": verdict, "reason": reason, "version": version}
        self.rows[name] = {**self.rows.get(name, {}), **about, **values}

    def check(self, name, launch, in_place):
        """A launch on fresh random input; notes a wrong one, and says whether it is right."""
        entry = self.entry()
        entry.target.fill_(math.nan)
        y, s = launch(entry.clone_inputs() if in_place else entry)
        if name in self.copies:
            worst, wrong = 0.0, "" if self.torch.equal(entry.target, entry.source) else "the copy differs"
        else:
            worst, wrong = self.errors(entry, y, s)
        self.note(name, "wrong" if wrong else "ok", wrong, worst_error=f"{worst:.3e}")
        return not wrong

    def spoil(self, outputs):
        for tensor in outputs:
            tensor is None or tensor.fill_(math.nan)

    def errors(self, entry, y, s):
        return graph_timing.errors(self.torch, entry, self.weight, y, s, self.tolerance, self.shape.dtype)

    def prepare(self, name, launch, in_place):
        """Its graph, None where it is wrong or refuses."""
        try:
            if not self.check(name, launch, in_place):
                return None
            pool = [entry.clone_inputs() for entry in self.pool] if in_place else self.pool
            return graph_timing.Graph(self.torch, self.gpu.stream, launch, pool)
        except Exception as error:  # whatever a library raises where it refuses; the others go on
            self.note(name, "refused", competitors.first_line(error))
            return None

    def check_timed(self, name, graph, launch, in_place):
        """After timing: what the graph wrote over NaN, and one launch on fresh input."""
        if in_place or name in self.copies:
            return self.check(name, launch, in_place)
        for outputs in graph.outputs:
            self.spoil(outputs)
        graph.graph.replay()
        for place in sorted({0, len(self.pool) // 2, len(self.pool) - 1}):
            worst, wrong = self.errors(self.pool[place], *graph.outputs[place])
            if wrong:
                self.note(name, "wrong", f"after timing, {wrong}", worst_error=f"{worst:.3e}")
                return False
        return self.check(name, launch, in_place)

    def measure(self):
        torch, shape = self.torch, self.shape
        torch.manual_seed(self.arguments.seed)
        self.weight = torch.empty(shape.cols, dtype=getattr(torch, shape.dtype), device="cuda").normal_()
        if not shape.weight:
            self.weight = None
        self.pool = [self.entry() for _ in range(self.pairs)]
        launches = {name: (launch, False) for name, launch in self.copies.items()}
        for name, competitor in self.loaded.items():
            if isinstance(competitor, competitors.Missing):
                self.note(name, "missing", str(competitor))
            else:
                launches[name] = self.launch_of(competitor), self.works_in_place(competitor)
        graphs = {name: self.prepare(name, *launch) for name, launch in launches.items()}
        graphs = {name: graph for name, graph in graphs.items() if graph}

        samples = {name: [] for name in graphs}
        for replay in range(-3, self.arguments.replays):
            for name in graph_timing.turns(list(graphs), replay):
                sample = graphs[name].time()
                if replay >= 0:
                    samples[name].append(sample)
        for name, graph in graphs.items():
            try:
                if self.check_timed(name, graph, *launches[name]):
                    self.note_time(name, samples[name], graph.launches, launches[name][1])
            except Exception as error:
                self.note(name, "refused", f"after timing, {competitors.first_line(error)}")
        return self.finished()

    def note_time(self, name, samples, launches, in_place):
        median, spread = graph_timing.summarize(samples)
        footprint = self.moved / 2 if in_place else self.moved
        gpu = self.gpu
        least = graph_timing.least_microseconds(self.moved, footprint, self.pairs, gpu.l2_bytes, gpu.peak)
        if median < least:
            reason = f"{median:.2f} us, where the datasheet's bandwidth needs at least {least:.2f} us"
            self.note(name, "impossible", reason)
            return
        rate = self.moved / median / 1e3
        datasheet = f"{1e11 * rate / gpu.peak:.1f}" if gpu.peak else ""
        self.note(
            name,
            "ok",
            microseconds=f"{median:.3f}",
            spread_percent=f"{spread:.1f}",
            gb_per_s=f"{rate:.1f}",
            percent_of_datasheet=datasheet,
            launches=launches,
        )

    def finished(self):
        """The rows in the order of the columns of the table, complete."""
        copies = [float(self.rows[name]["microseconds"]) for name in self.copies if "microseconds" in self.rows[name]]
        pool_bytes = self.pairs * self.moved
        shape, order = self.shape, [*self.loaded, *self.copies]
        common = {
            **{"rows": shape.rows, "cols": shape.cols, "dtype": shape.dtype, "weight": int(shape.weight)},
            **{"pairs": self.pairs, "pool_bytes": pool_bytes, "replays": self.arguments.replays, **self.gpu.facts},
            "cache": graph_timing.cache_state(pool_bytes, self.gpu.l2_bytes),
        }
        table = []
        for name in order:
            row = {**dict.fromkeys(peer_tables.COLUMNS, ""), **common, "competitor": name, **self.rows[name]}
            if row["microseconds"] and copies:
                row["percent_of_copy"] = f"{100 * min(copies) / float(row['microseconds']):.1f}"
            table.append([str(row[column]) for column in peer_tables.COLUMNS])
        return table


class BackwardContest(Contest):
    """The same of the gradients of x and the weight."""

    def __init__(self, gpu, lib, loaded, operator, shape, arguments):
        loaded.pop(peer_tables.OURS_INVARIANT, None)  # the header's dx always is
        super().__init__(gpu, lib, loaded, operator, shape, arguments)
        self.moved = 3 * self.matrix_bytes
        self.pairs = graph_timing.pair_count(self.moved)

    def entry(self):
        return graph_timing.BackwardEntry(self.torch, self.shape.rows, self.shape.cols, self.shape.dtype)

    def launch_of(self, competitor):
        def launch(e):
            dweight = None if self.weight is None else e.dweight
            return competitor.backward(e.dy, e.x, self.weight, e.rstd, e.dx, dweight)

        return launch

    def works_in_place(self, competitor):
        return getattr(competitor, "backward_in_place", False)

    def errors(self, entry, dx, dweight):
        return graph_timing.backward_errors(self.torch, entry, self.weight, dx, dweight, self.shape.dtype)


class StepContest(BackwardContest):
    """The same of a forward and a backward pass through autograd."""

    def __init__(self, gpu, lib, loaded, operator, shape, arguments):
        super().__init__(gpu, lib, loaded, operator, shape, arguments)
        self.moved = 5 * self.matrix_bytes
        self.pairs = graph_timing.pair_count(self.moved)

    def entry(self):
        return graph_timing.StepEntry(self.torch, self.shape.rows, self.shape.cols, self.shape.dtype)

    def launch_of(self, competitor):
        return lambda e: competitor.step(e.x, self.weight, e.dy)

    def spoil(self, outputs):
        (y, dx), dweight = outputs
        y.fill_(math.nan)
        super().spoil((dx, dweight))

    def errors(self, entry, results_of_x, dweight):
        y, dx = results_of_x
        worst, wrong = super().errors(entry, dx, dweight)
        forward = graph_timing.errors(self.torch, entry, self.weight, y, None, self.tolerance, self.shape.dtype)
        return max(worst, forward[0]), wrong or forward[1]


class QuantizedContest(Contest):
    """The same of norms that end in 8 bits."""

    SCALE = 0.02  # where one is given: some of the numbers are too large for it

    def __init__(self, gpu, lib, loaded, operator, shape, arguments):
        loaded.pop(peer_tables.OURS_INVARIANT, None)  # it always is
        super().__init__(gpu, lib, loaded, operator, shape, arguments)
        self.form = competitors.FORMS[operator]
        self.scale = gpu.torch and gpu.torch.tensor([self.SCALE], device="cuda")
        item = graph_timing.ITEM_BYTES[shape.dtype]
        self.moved = shape.rows * shape.cols * (item * (1 + 2 * self.form.adds + self.form.keeps_norm) + 1)
        self.pairs = graph_timing.pair_count(self.moved)

    def entry(self):
        shape = self.shape
        about = (self.form, competitors.BLOCK, self.scale)
        return graph_timing.QuantizedEntry(self.torch, shape.rows, shape.cols, shape.dtype, *about)

    def launch_of(self, competitor):
        def launch(e):
            q, *others = competitor.quantized(self.form, e, self.weight)
            return q, others

        return launch

    def works_in_place(self, competitor):
        return self.form.adds and competitor.in_place

    def spoil(self, outputs):
        q, others = outputs
        q.view(self.torch.uint8).fill_(0xFF)  # NaN, and -1 as int8
        super().spoil(others)

    def errors(self, entry, q, others):
        about = (self.torch, entry, self.form, self.weight)
        return graph_timing.quantized_errors(*about, q, *others, self.shape.dtype)


def contest(operator, loaded):
    """The class of a contest, and who takes part in it."""
    kind, method = Contest, operator
    if operator == "backward":
        kind = BackwardContest
    elif operator == "step":
        kind = StepContest
    elif operator in competitors.FORMS:
        kind, method = QuantizedContest, "quantized"
    package, others = loaded.get(peer_tables.PACKAGE), {**loaded}
    others.pop(peer_tables.PACKAGE, None)
    if kind is StepContest:
        others[peer_tables.OURS] = package
        others.pop(peer_tables.OURS_PDL, None)
    there = {
        name: one for name, one in others.items() if isinstance(one, competitors.Missing) or getattr(one, method, None)
    }
    return kind, there


def store(path, rows):
    results.replace(path, lambda partial: results.write_csv(partial, peer_tables.COLUMNS, rows))


def line_of(rows, seconds):
    """What one shape gave, for the progress."""
    by_name = {row["competitor"]: row for row in (dict(zip(peer_tables.COLUMNS, row)) for row in rows)}
    cells = [f"{peer_tables.title(name)} {peer_tables.cell(by_name, name)}" for name in by_name]
    factors = [peer_tables.speed_up(by_name, name) for name in (peer_tables.OURS, peer_tables.OURS_PDL)]
    said = " / ".join(f"{factor:.2f}" for factor in factors if factor)
    return ", ".join(cells) + (f"; {said} times the fastest peer's speed" if said else "") + f" ({seconds:.0f} s)"


def complaints(path):
    """Sentences on wrong results of the header's and on measurements that cannot be."""
    said = []
    for key, rows in peer_tables.read(path).items():
        for name, row in rows.items():
            header = not peer_tables.is_peer(name) and row["verdict"] in ("wrong", "refused")
            if header or row["verdict"] == "impossible":
                where = f"{path.stem} {peer_tables.shape_name(key)}"
                said.append(f"{where}: {peer_tables.title(name)} {row['verdict']}: {row['reason']}")
    return said


def environment(gpu, loaded, before, after):
    text = machine.environment(gpu.gpu, gpu.facts["cuda_runtime"], before, after)
    compiler = re.findall(r"release [\d.]+, V[\d.]+", machine.output_of(machine.find_nvcc(), "--version"))
    lines = [f"nvcc: {compiler[-1]}"] if compiler and "nvcc:" not in text else []
    for name, competitor in loaded.items():
        if peer_tables.is_peer(name):
            missing = isinstance(competitor, competitors.Missing)
            lines.append(f"{peer_tables.title(name)}: " + (f"missing, {competitor}" if missing else competitor.version))
    triton = competitors.version_of("triton")
    return text + "".join(f"{line}\n" for line in lines + ([f"Triton: {triton}"] if triton else []))


def run(given):
    if given.all_reduce:
        from bench.norm.all_reduce import job

        return job.run(given)
    complete(given)
    torch = requirements()
    gpu = Gpu(torch)
    lib = build_library(torch)
    stored = results.target("", gpu.gpu) / results.HEADER if given.default_run else ladders.ROOT / "build/peers/results"
    output = (given.output or stored).absolute()
    output.mkdir(parents=True, exist_ok=True)
    before, total, done, files = machine.clocks(), sum(len(shapes) for _, shapes in given.work), 0, []
    with torch.no_grad(), torch.cuda.stream(gpu.stream):
        loaded = load(torch, lib, given)
        for operator, shapes in given.work:
            table = []
            files.append(output / f"peers_{operator}.csv")
            for shape in shapes:
                done, start = done + 1, time.monotonic()
                print(f"peers: [{done}/{total}] {operator} {shape}: ", end="", flush=True)
                try:
                    kind, those = contest(operator, loaded)
                    rows = kind(gpu, lib, those, operator, shape, given).measure()
                except torch.cuda.OutOfMemoryError:
                    print("left out, this GPU's memory is too small", flush=True)
                else:
                    table += rows
                    store(files[-1], table)
                    print(line_of(rows, time.monotonic() - start), flush=True)
                torch.cuda.empty_cache()
    text = environment(gpu, loaded, before, machine.clocks())
    (output / "peers_environment.txt").write_text(text, encoding="utf-8")
    said = []
    for path in files:
        if path.is_file():
            print(f"\n{peer_tables.FILES[path.stem]}, microseconds ({results.shown(path)})")
            print(peer_tables.printed(peer_tables.read(path)))
            said += complaints(path)
    if said:
        print("\n" + "\n".join(said), file=sys.stderr)
        return 1
