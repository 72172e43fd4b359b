"""Times models before and after their norms are patched: tokens a second, and the share of a step that RMSNorm takes.

    python3 bench/models/end_to_end.py                                          all models, eager and as a CUDA graph
    python3 bench/models/end_to_end.py --models qwen3-8b:bfloat16 --inputs decode_1,prefill_2048
    python3 bench/models/end_to_end.py --add --models qwen3-8b:float16 --inputs decode_1 --compile
    python3 bench/models/end_to_end.py --tiny --output build/end_to_end         whether it works, on any machine

Needs PyTorch with CUDA, transformers, the package of python/ and an NVIDIA GPU with 40 GB; nothing is downloaded, since
the weights are random. Writes profiling_results/<gpu>/header/end_to_end.csv after each input of each model, so that an
interrupted run leaves what it has measured; --add keeps what is stored of other inputs, so that a long run can be made
in parts. All variants of an input take turns in one process on the same weights; only in eager mode under torch.compile
each is timed as soon as it is compiled. Exit code 1 if a time cannot be, or if the logits of a variant are wrong: more
than twice as far as those of the stock model from the logits that the same model has with norms computed in float64.

Variants: stock; patched (rms_norm.torch.patch_transformers); patched_pdl (the same, with dependent launches);
without_norms (each RMSNorm hands on what it gets: the floor for norms that are not fused with anything).
"""

import argparse
import contextlib
import pathlib
import re
import sys
import time
import types

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT)]
from ladder.core import command_line, ladders, machine, results
from ladder.core.ladders import Unusable
from ladder.measure import graph_timing

from bench.models import model_tables
from bench.norm import competitors, peers

MODELS = """
qwen3-8b:bfloat16 qwen3-8b:float16 qwen3-8b:mixed qwen2.5-7b:float16 qwen2.5-7b:float32 qwen3-vl-8b:float16
llama-3-8b:bfloat16
""".split()
WAYS = ["eager", "graph"]
STEPS = 3  # of an eager sample: the host runs ahead of the GPU within it
BOUNDS = 3, 12  # samples
TIMES_STOCK = 2  # how many times the stock model's error another variant's may be: its roundings are other ones


def words(known):
    def read(text):
        chosen = [word for word in text.split(",") if word]
        unknown = [word for word in chosen if word not in known]
        if unknown or not chosen:
            raise argparse.ArgumentTypeError(f"{text}: known are {', '.join(known)}")
        return chosen

    return read


def duration(text):
    try:
        if 0 <= float(text) < float("inf"):
            return float(text)
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"{text} is not a number of seconds")


def arguments():
    parser = argparse.ArgumentParser(
        prog="end_to_end", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", default=",".join(MODELS), help="MODEL:TYPES with commas; by default %(default)s")
    parser.add_argument("--inputs", help="with commas, as in decode_1,prefill_2048,image; by default each model's")
    parser.add_argument("--variants", help="with commas; by default stock,patched,patched_pdl,without_norms")
    parser.add_argument("--ways", type=words(WAYS), default=WAYS, help="eager, graph or both; by default both")
    parser.add_argument(
        "--compile",
        nargs="?",
        const="stock,patched",
        metavar="VARIANTS",
        help="also these under torch.compile, which takes half a minute for each input; by default stock,patched",
    )
    parser.add_argument("--seconds", type=duration, default=4.0, help="to measure each input in each way; by default 4")
    parser.add_argument("--layers", type=peers.positive, help="of the language model; by default as configured")
    parser.add_argument("--tiny", action="store_true", help="tiny models, which also a CPU can run")
    parser.add_argument("--add", action="store_true", help="keep the rows of inputs that are not measured now")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=pathlib.Path, metavar="DIRECTORY", help="where end_to_end.csv goes")
    parser.set_defaults(job="end_to_end", run=run)
    return parser


def complete(given, models):
    """The arguments with what follows from them: (model, types, input names) of all the work."""
    try:
        given.variants = words(models.VARIANTS)(given.variants) if given.variants else list(models.VARIANTS)
        given.compile = words(models.VARIANTS)(given.compile) if given.compile else []
    except argparse.ArgumentTypeError as error:
        raise ladders.BadCommand(str(error))
    given.work = []
    for spec in given.models.split(","):
        name, _, kind = spec.partition(":")
        kind = kind or "float16"
        if name not in models.ARCHITECTURES or kind not in models.TYPES:
            known = f"{', '.join(models.ARCHITECTURES)}, with one of {', '.join(models.TYPES)}"
            raise ladders.BadCommand(f"{spec} is no model; say MODEL:TYPES, of {known}")
        inputs = given.inputs.split(",") if given.inputs else models.input_names(name, given.tiny)
        for one in inputs:
            if not re.fullmatch(r"(decode|prefill)_[1-9]\d*", one) and (one, name) != ("image", "qwen3-vl-8b"):
                raise ladders.BadCommand(f"{one} is no input of {name}; say decode_BATCH, prefill_TOKENS or image")
        given.work.append((name, kind, inputs))
    return given


class Device:
    """The GPU and its figures; with --tiny, the CPU where there is no GPU."""

    def __init__(self, torch, tiny):
        self.torch, self.is_gpu = torch, torch.cuda.is_available()
        if not self.is_gpu and not tiny:
            raise Unusable("an NVIDIA GPU is needed that PyTorch can use; --tiny tries the program without one")
        import transformers

        self.versions = {"torch": torch.__version__, "transformers": transformers.__version__}
        if self.is_gpu:
            gpu = peers.Gpu(torch)
            self.name, self.facts, self.peak, self.stream = "cuda", gpu.facts, gpu.peak, gpu.stream
        else:
            self.name, self.peak, self.stream = "cpu", 0.0, None
            self.facts = {"gpu": "CPU device", "cuda_runtime": "", "driver": "", "date": "", "sm_clock_mhz": ""}

    def synchronize(self):
        if self.is_gpu:
            self.torch.cuda.synchronize()

    def current(self):
        return self.torch.cuda.stream(self.stream) if self.is_gpu else contextlib.nullcontext()

    def free(self):
        if self.is_gpu:
            self.torch.cuda.empty_cache()


class Graph:
    """One step, captured on the current stream after it has been called there."""

    def __init__(self, device, one):
        torch = device.torch
        self.one, self.stream = one, device.stream
        self.begin, self.end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        device.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        self.graph.capture_begin(capture_error_mode="thread_local")
        try:
            self.output = one()
        except Exception:
            with contextlib.suppress(Exception):  # the capture is broken too, and the first reason is the one to tell
                self.graph.capture_end()
            raise
        self.graph.capture_end()

    def milliseconds(self):
        """Of a replay that follows another, which hides the time in which the host submits it."""
        self.graph.replay()
        self.begin.record(self.stream)
        self.graph.replay()
        self.end.record(self.stream)
        self.end.synchronize()
        return self.begin.elapsed_time(self.end)


def own_code(function):
    """The function with a code object of its own, by which torch.compile tells apart what it has compiled."""
    code = function.__code__.replace()
    return types.FunctionType(code, function.__globals__, function.__name__, None, function.__closure__)


def output_of(result):
    return getattr(result, "pooler_output", result)


class Contest:
    """All variants of one input of one model: a row for each variant in each way."""

    def __init__(self, device, models, model, work, one, given):
        self.device, self.torch, self.models, self.model, self.given = device, device.torch, models, model, given
        self.name, self.kind, self.one = *work, one
        self.rows = {}
        with models.exact_norms(model):
            self.exact = self.logits(one.step)
        # Where stock is exact, as in an encoder without RMSNorm, one rounding.
        kind = models.MADE_IN.get(self.kind, self.kind)
        self.limit = TIMES_STOCK * max(self.error(self.logits(one.step)), graph_timing.UNIT_ROUNDOFF[kind])

    def note(self, key, verdict, reason="", **values):
        self.rows[key] = {**self.rows.get(key, {}), "verdict": verdict, "reason": reason, **values}

    def state(self, variant):
        return self.models.VARIANTS[variant](self.model)

    def logits(self, step):
        self.one.reset()
        return output_of(step()).float().flatten(0, -2).clone()

    def error(self, logits):
        """The largest of a sequence, relative to its logits with exact norms."""
        return float(((logits - self.exact).norm(dim=1) / self.exact.norm(dim=1)).max())

    def check(self, key, result):
        """Whether the logits are as near to those with exact norms as the stock model's are; NaN is wrong."""
        got = output_of(result).float().flatten(0, -2)
        if key[0] == "without_norms":
            right = bool(self.torch.isfinite(got).all())
            self.note(key, "ok" if right else "wrong", "" if right else "the logits are not finite")
            return right
        error = self.error(got)
        right = error <= self.limit
        reason = "" if right else f"the error of the logits is {error:.3g}, and may be {self.limit:.3g}"
        self.note(key, "ok" if right else "wrong", reason, error=f"{error:.2e}")
        return right

    def attempt(self, key, call):
        """What call() returns; None where it refuses or its result is wrong."""
        try:
            return call()
        except Exception as error:  # whatever a variant raises; the others go on
            self.note(key, "refused", competitors.first_line(error))
            return None

    def warm(self, key, step):
        """Two steps; whether the second one's logits are right."""
        for _ in range(2):
            self.one.reset()
            result = step()
        return self.check(key, result)

    def eager_sample(self, step):
        self.one.reset()
        self.device.synchronize()
        begin = time.perf_counter()
        for _ in range(STEPS):
            step()
        self.device.synchronize()
        return 1e3 * (time.perf_counter() - begin) / STEPS

    def samples(self, names, sample):
        """{name: samples} in alternating order, as many as the seconds allow."""
        least, most = (1, 1) if self.given.tiny else BOUNDS
        found, begin, last, turn = {name: [] for name in names}, time.monotonic(), most, 0
        while names and turn < last:
            for name in graph_timing.turns(names, turn):
                found[name].append(sample(name))
            turn += 1
            if turn == 1:
                last = max(least, min(most, int(self.given.seconds / (time.monotonic() - begin))))
        return found

    def note_times(self, way, compiled, found):
        for variant, samples in found.items():
            median, spread = graph_timing.summarize(samples)
            key = (variant, compiled, way)
            values = {"milliseconds": f"{median:.4f}", "spread_percent": f"{spread:.1f}", "samples": len(samples)}
            if self.one.name != "image":
                values["tokens_per_s"] = f"{1e3 * self.one.tokens * self.one.batch / median:.1f}"
            if median < self.least():
                reason = f"{median:.3f} ms, where reading the weights takes at least {self.least():.3f} ms"
                self.note(key, "impossible", reason)
            else:
                self.note(key, self.rows[key]["verdict"], self.rows[key]["reason"], **values)

    def least(self):
        """Milliseconds that the datasheet's bandwidth needs to read the weights of a step."""
        if not self.device.peak or self.one.name == "image":
            return 0.0
        read = [*self.models.body_of(self.model).layers.parameters(), *self.model.lm_head.parameters()]
        return 1e3 * sum(weight.numel() * weight.element_size() for weight in read) / self.device.peak

    def eager(self):
        right = []
        for variant in self.given.variants:
            with self.state(variant):
                key = (variant, "", "eager")
                if self.attempt(key, lambda: self.warm(key, self.one.step)):
                    right.append(variant)

        def sample(variant):
            with self.state(variant):
                return self.eager_sample(self.one.step)

        if "eager" in self.given.ways:
            self.note_times("eager", "", self.samples(right, sample))
        else:
            self.rows.clear()
        return right

    def compiled(self, right):
        """{variant: its compiled step}, timed in eager mode as soon as it is compiled."""
        steps = {}
        for variant in (variant for variant in right if variant in self.given.compile):
            key, step = (variant, "torch.compile", "eager"), own_code(self.one.step)
            with self.state(variant):
                begin = time.monotonic()
                step = self.torch.compile(step, fullgraph=True, dynamic=False)
                if not self.attempt(key, lambda: self.warm(key, step)):
                    continue
                self.rows[key]["compile_seconds"] = f"{time.monotonic() - begin:.0f}"
                steps[variant] = step
                if "eager" in self.given.ways:
                    found = self.samples([variant], lambda _: self.eager_sample(step))
                    self.note_times("eager", "torch.compile", found)
        return steps

    def graphs(self, steps, compiled):
        found = {}
        for variant, step in steps.items():
            key = (variant, compiled, "graph")
            with self.state(variant):
                self.one.reset()
                graph = self.attempt(key, lambda: Graph(self.device, step))
            if graph:
                found[variant, compiled] = graph
        return found

    def replay(self, graphs):
        def sample(name):
            self.one.reset()
            return graphs[name].milliseconds()

        found = self.samples(list(graphs), sample)
        for (variant, compiled), graph in graphs.items():
            self.one.reset()
            graph.graph.replay()
            if self.check((variant, compiled, "graph"), graph.output):
                self.note_times("graph", compiled, {variant: found[variant, compiled]})

    def measure(self):
        right = self.eager()
        steps = self.compiled(right)
        if "graph" not in self.given.ways:
            return self.finished()
        if self.one.captures:
            for compiled, names in (("", right), ("torch.compile", steps)):
                for variant in names:
                    self.note((variant, compiled, "graph"), "refused", self.one.captures)
        elif self.device.is_gpu:
            graphs = self.graphs(dict.fromkeys(right, self.one.step), "")
            self.replay({**graphs, **self.graphs(steps, "torch.compile")})
        return self.finished()

    def finished(self):
        """The rows in the order of the variants, complete."""
        timed = self.model.model.visual if self.one.name == "image" else self.model
        common = {
            **{"model": self.models.TITLES[self.name], "types": self.kind, "input": self.one.name},
            **{"batch": self.one.batch, "tokens": self.one.tokens},
            **{"layers": self.model.config.get_text_config().num_hidden_layers},
            **{"norms": len(self.models.norms_of(timed)), "limit": f"{self.limit:.2e}"},
            **self.device.versions,
            **self.device.facts,
        }
        table = []
        for (variant, compiled, way), row in self.rows.items():
            row = {**dict.fromkeys(model_tables.COLUMNS, ""), **common, **row}
            row.update(variant=variant, compiled=compiled, way=way)
            table.append([str(row[column]) for column in model_tables.COLUMNS])
        return table


def work_of(device, models, given, store):
    """Measures all of it; store(rows) after each input."""
    for name, kind, inputs in given.work:
        begin = time.monotonic()
        model = models.build(name, kind, device.name, given.tiny, given.layers, given.seed)
        device.synchronize()
        print(f"end_to_end: {models.TITLES[name]} {kind}, built in {time.monotonic() - begin:.0f} s", flush=True)
        for input_name in inputs:
            begin = time.monotonic()
            try:
                one = models.make_input(model, input_name, given.tiny)
                rows = Contest(device, models, model, (name, kind), one, given).measure()
            except device.torch.cuda.OutOfMemoryError:
                print(f"end_to_end:   {input_name}: left out, this GPU's memory is too small", flush=True)
                continue
            store(rows)
            print(f"end_to_end:   {model_tables.line_of(rows)} ({time.monotonic() - begin:.0f} s)", flush=True)
            del one
            device.free()
        del model
        device.free()


def run(given):
    try:
        import torch
        import transformers  # noqa: F401

        from bench.models import models
    except ImportError as error:
        raise Unusable(f"PyTorch and transformers are needed (pip install -r bench/requirements.txt): {error}")
    try:
        import rms_norm.torch  # noqa: F401
    except ImportError as error:
        raise Unusable(f"the package of python/ is needed (pip install ./python): {error}")
    complete(given, models)
    device = Device(torch, given.tiny)
    if not device.is_gpu and any(kind == "float8" for _, kind, _ in given.work):
        raise Unusable("float8 products with a scale of each row need an NVIDIA GPU")
    if given.tiny and not given.output:
        raise ladders.BadCommand("--tiny needs --output: tiny models are no results")
    output = (given.output or results.target("", device.facts["gpu"]) / results.HEADER).absolute()
    output.mkdir(parents=True, exist_ok=True)
    path, before = output / "end_to_end.csv", machine.clocks()
    table = model_tables.kept(path) if given.add else {}

    def store(rows):
        table[model_tables.point(dict(zip(model_tables.COLUMNS, rows[0])))] = rows
        model_tables.store(path, [row for rows in table.values() for row in rows])

    torch._dynamo.config.recompile_limit = max(64, torch._dynamo.config.recompile_limit)
    with torch.no_grad(), device.current():
        work_of(device, models, given, store)
    text = machine.environment(device.facts["gpu"], device.facts["cuda_runtime"], before, machine.clocks())
    text += "".join(f"{name}: {version}\n" for name, version in device.versions.items())
    (output / "end_to_end_environment.txt").write_text(text, encoding="utf-8")
    print(f"\n{model_tables.printed(path)}")
    return int(model_tables.is_wrong(path))


def main(words=None):
    """The exit code."""
    return command_line.exit_code(arguments(), words, "what was measured is stored")


if __name__ == "__main__":
    sys.exit(main())
