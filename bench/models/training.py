"""Times a training step of models before and after their norms are patched, and the memory that a step takes.

    python3 bench/models/training.py                                             Llama, Qwen3 and Gemma, 4096 tokens
    python3 bench/models/training.py --models qwen3-8b --layers 4 --tokens 2048
    python3 bench/models/training.py --tiny --output build/training              whether it works, on any machine

Needs PyTorch with CUDA, transformers, the package of python/ and an NVIDIA GPU with 80 GB; nothing is downloaded, since
the weights are random. Writes profiling_results/<gpu>/header/training.csv after each model. A step is a forward pass, the
loss and the backward pass, in eager mode and in bfloat16; all variants of a model take turns in one process on the same
weights. Exit code 1 if the gradients of a variant are wrong: more than twice as far as those of the stock model from the
gradients that the same model has with norms computed in float64.

Variants: stock; patched (rms_norm.torch.patch_transformers); liger (each RMSNorm is Liger's); without_norms (each RMSNorm
hands on what it gets: the floor for norms that are not fused with anything).
"""

import argparse
import math
import pathlib
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT)]
from ladder.core import command_line, ladders, machine, results
from ladder.core.ladders import Unusable
from ladder.measure import graph_timing

from bench.models import end_to_end, training_tables
from bench.norm import competitors, peers

MODELS = ["llama-3-8b", "qwen3-8b", "gemma-7b"]
BOUNDS = 3, 12  # samples


def arguments():
    parser = argparse.ArgumentParser(
        prog="training", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", type=end_to_end.words(MODELS), default=MODELS, help=", ".join(MODELS))
    parser.add_argument("--layers", type=peers.positive, help="by default 8, of which a GPU with 80 GB has room")
    parser.add_argument("--tokens", type=peers.positive, help="by default 4096")
    parser.add_argument("--seconds", type=end_to_end.duration, default=10.0, help="to time each model; by default 10")
    parser.add_argument("--tiny", action="store_true", help="tiny models, which also a CPU can run")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=pathlib.Path, metavar="DIRECTORY", help="where training.csv goes")
    parser.set_defaults(job="training", run=run)
    return parser


class Contest:
    """All variants of one model: a row for each."""

    def __init__(self, device, models, name, given):
        self.device, self.torch, self.models, self.name, self.given = device, device.torch, models, name, given
        self.kind = "float32" if given.tiny else "bfloat16"
        self.model = models.build(name, self.kind, device.name, given.tiny, given.layers, given.seed)
        self.model.requires_grad_(True).train()
        self.tokens = models.random_tokens(self.model, 1, given.tokens)
        self.variants = {
            **{name: models.VARIANTS[name] for name in ("stock", "patched")},
            **{"liger": models.liger_norms, "without_norms": models.without_norms},
        }
        self.rows = {}

    def note(self, variant, verdict, reason="", **values):
        self.rows[variant] = {**self.rows.get(variant, {}), "verdict": verdict, "reason": reason, **values}

    def step(self):
        self.model.zero_grad(set_to_none=True)
        self.model(input_ids=self.tokens, labels=self.tokens, use_cache=False).loss.backward()

    def gradients(self):
        self.step()
        return [parameter.grad for parameter in self.model.parameters()]

    def error(self, exact):
        """Of all gradients together: the norm of the difference over the norm. NaN where a gradient is missing."""
        squares = [0.0, 0.0]
        for expected, parameter in zip(exact, self.model.parameters()):
            if parameter.grad is None:
                return math.nan
            for place, one in enumerate((parameter.grad - expected, expected)):
                squares[place] += float(one.norm(dtype=self.torch.float32)) ** 2
        return math.sqrt(squares[0] / squares[1])

    def check(self):
        """The variants whose gradients are right."""
        with self.models.exact_norms(self.model):
            exact = self.gradients()
        limit, right = math.inf, []
        for variant, state in self.variants.items():
            try:
                with state(self.model):
                    self.step()
                error = self.error(exact)
            except ImportError:
                self.note(variant, "missing", "not installed: pip install liger-kernel")
                continue
            except Exception as error:  # whatever a variant raises; the others go on
                self.note(variant, "refused", competitors.first_line(error))
                continue
            if variant == "stock":
                limit = end_to_end.TIMES_STOCK * max(error, graph_timing.UNIT_ROUNDOFF[self.kind])
            if variant == "without_norms":
                self.note(variant, "ok")
            elif error <= limit:
                self.note(variant, "ok", error=f"{error:.2e}", limit=f"{limit:.2e}")
            else:
                reason = f"the error of the gradients is {error:.3g}, and may be {limit:.3g}"
                self.note(variant, "wrong", reason, error=f"{error:.2e}", limit=f"{limit:.2e}")
                continue
            right.append(variant)
        self.model.zero_grad(set_to_none=True)
        return right

    def megabytes(self):
        """The most memory of a step beyond what there is without one."""
        if not self.device.is_gpu:
            self.step()
            return ""
        cuda = self.torch.cuda
        self.model.zero_grad(set_to_none=True)
        self.device.synchronize()
        cuda.reset_peak_memory_stats()
        before = cuda.memory_allocated()
        self.step()
        self.device.synchronize()
        return f"{(cuda.max_memory_allocated() - before) / 1e6:.0f}"

    def sample(self):
        """Milliseconds of a step, by the GPU's clock where there is one."""
        self.model.zero_grad(set_to_none=True)
        self.device.synchronize()
        begin = time.perf_counter()
        self.step()
        self.device.synchronize()
        return 1e3 * (time.perf_counter() - begin)

    def measure(self):
        right = self.check()
        for variant in right:
            with self.variants[variant](self.model):
                self.rows[variant]["step_mb"] = self.megabytes()
        least, most = (1, 1) if self.given.tiny else BOUNDS
        samples, begin, last, turn = {variant: [] for variant in right}, time.monotonic(), most, 0
        while right and turn < last:
            for variant in graph_timing.turns(right, turn):
                with self.variants[variant](self.model):
                    samples[variant].append(self.sample())
            turn += 1
            if turn == 1:
                last = max(least, min(most, int(self.given.seconds / (time.monotonic() - begin))))
        for variant, found in samples.items():
            median, spread = graph_timing.summarize(found)
            self.rows[variant].update(milliseconds=f"{median:.3f}", spread_percent=f"{spread:.1f}", samples=len(found))
        return self.finished()

    def finished(self):
        common = {
            **{"model": self.models.TITLES[self.name], "tokens": self.given.tokens},
            **{"layers": self.model.config.num_hidden_layers, "norms": len(self.models.norms_of(self.model))},
            **self.device.versions,
            **self.device.facts,
        }
        table = []
        for variant, row in self.rows.items():
            row = {**dict.fromkeys(training_tables.COLUMNS, ""), **common, **row, "variant": variant}
            if variant == "liger":
                row["version"] = competitors.version_of("liger_kernel")
            table.append([str(row[column]) for column in training_tables.COLUMNS])
        return table


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
    device = end_to_end.Device(torch, given.tiny)
    if given.tiny and not given.output:
        raise ladders.BadCommand("--tiny needs --output: tiny models are no results")
    given.tokens = given.tokens or (16 if given.tiny else 4096)
    given.layers = given.layers or (2 if given.tiny else 8)
    output = (given.output or results.target("", device.facts["gpu"]) / results.HEADER).absolute()
    output.mkdir(parents=True, exist_ok=True)
    path, before, table = output / "training.csv", machine.clocks(), []
    with device.current():
        for name in given.models:
            begin = time.monotonic()
            try:
                rows = Contest(device, models, name, given).measure()
            except torch.cuda.OutOfMemoryError:
                print(f"training: {models.TITLES[name]}: left out, this GPU's memory is too small", flush=True)
                continue
            table += rows
            training_tables.store(path, table)
            print(f"training: {models.TITLES[name]} is measured ({time.monotonic() - begin:.0f} s)", flush=True)
            device.free()
    text = machine.environment(device.facts["gpu"], device.facts["cuda_runtime"], before, machine.clocks())
    text += "".join(f"{name}: {version}\n" for name, version in device.versions.items())
    (output / "training_environment.txt").write_text(text, encoding="utf-8")
    if not table:
        return 1
    print(f"\n{training_tables.printed(path)}")
    return int(training_tables.is_wrong(path))


def main(words=None):
    """The exit code."""
    return command_line.exit_code(arguments(), words, "what was measured is stored")


if __name__ == "__main__":
    sys.exit(main())
