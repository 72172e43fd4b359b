"""What a norm adds to a layer: a chain of layers in one CUDA graph, timed beside the same chain without its norms.

A layer is as a model has it, without what stands between its matrix products:

    residual     y, r = norm(x + r); h = y @ up; x = h @ down             hidden -> intermediate -> hidden
    attention    y = norm(x); h = y @ qkv; x = h[:, :hidden] @ out        hidden -> q + k + v -> hidden
    float8       as residual; y, up, h and down are e4m3, x and r bfloat16

Each layer has weights of its own, so that they are cold as in a model. Before the first layer stands one more matrix
product, so that each norm follows one. Activations are the same memory for all competitors, and all are timed with the
activations at several places: where a short y lies changes a layer's time by up to a microsecond. All multiprocessors
read its few lines at once, and likely it matters which slices of the L2 cache have them.
"""

import contextlib
import ctypes
import math
import statistics
import time

from ladder.measure import graph_timing

DTYPE = "bfloat16"
RESIDUAL, ATTENTION, FLOAT8 = "residual", "attention", "float8"
LEAST_LAYERS, MOST_LAYERS, MOST_MICROSECONDS = 2, 24, 4000.0
PLACES = 8  # of the activations
ALIGNMENT, SPREAD = 512, 1 << 20  # bytes: what an allocator aligns to, and how far a place may be from its begin
TENSOR_RATE, MEMORY_RATE = 600e12, 4e12  # FLOP/s and bytes/s, roughly an H200's: only the number of layers needs them


class Shape:
    """Rows × hidden, and the width between the two matrix products of a layer. str() names it."""

    def __init__(self, form, rows, hidden, inner):
        self.form, self.rows, self.hidden, self.inner = form, rows, hidden, inner
        self.down_in = hidden if form == ATTENTION else inner
        self.weight_elements = hidden * inner + self.down_in * hidden

    def __str__(self):
        return f"{self.form} {self.rows} × {self.hidden}, {self.inner} between"

    def layers(self, l2_bytes):
        """So many that the weights are eight times the L2 cache, but not above about four milliseconds."""
        weight_bytes = (1 if self.form == FLOAT8 else 2) * self.weight_elements
        by_weights = math.ceil(8 * l2_bytes / weight_bytes)
        seconds = max(2.0 * self.rows * self.weight_elements / TENSOR_RATE, weight_bytes / MEMORY_RATE)
        by_time = int(MOST_MICROSECONDS / (1e6 * seconds))
        return max(LEAST_LAYERS, min(max(6, by_weights), by_time, MOST_LAYERS))


class Layers:
    """The weights and the activations of a chain. All values have variance one, but the sums', which grow."""

    def __init__(self, torch, shape, count, device="cuda"):
        self.torch, self.shape, self.count = torch, shape, count
        rows, hidden = shape.rows, shape.hidden

        def random(*size):
            return torch.empty(size, dtype=getattr(torch, DTYPE), device=device).normal_()

        self.norms = [random(hidden) for _ in range(count)]
        self.ups = [self.factor(random(shape.inner, hidden)) for _ in range(count)]
        self.downs = [self.factor(random(hidden, shape.down_in)) for _ in range(count)]
        self.first, self.start = self.activation(random(rows, shape.inner)), random(rows, hidden)
        self.x, self.r, self.h = (torch.empty_like(t) for t in (self.start, self.start, self.first))
        self.y = self.activation(self.start)
        self.sums = [torch.empty_like(self.r) for _ in range(2)]
        self.gap = ALIGNMENT
        self.restart()

    def factor(self, weights):
        """The weights of a product, from normal numbers."""
        return weights.mul_(weights.shape[1] ** -0.5)

    def activation(self, numbers):
        """What a product reads beside its weights."""
        return numbers.clone()

    def multiply(self, activation, weights, out):
        self.torch.mm(activation, weights.t(), out=out)

    def without_norm(self, x, r, weight):
        """In the place of a norm: what is multiplied where there is none."""
        return x, r

    def place(self, numbers):
        """Moves the activations to other places in memory, as a random.Random says; also what a norm allocates."""

        def elsewhere(tensor):
            size = tensor.numel() * tensor.element_size()
            begin = ALIGNMENT * numbers.randrange(SPREAD // ALIGNMENT)
            memory = self.torch.empty(size + SPREAD, dtype=self.torch.uint8, device=tensor.device)
            return memory[begin : begin + size].view(tensor.dtype).view(tensor.shape)

        self.x, self.y, self.r, self.h = map(elsewhere, (self.x, self.y, self.r, self.h))
        self.sums = list(map(elsewhere, self.sums))
        self.gap = ALIGNMENT * numbers.randrange(1, SPREAD // ALIGNMENT)
        self.restart()

    def restart(self):
        """The residual as before the first layer, and NaN in all that a pass must write."""
        self.r.copy_(self.start)
        for tensor in (self.x, self.y, self.h, *self.sums):
            tensor.view(self.torch.uint8).fill_(0xFF)

    def other_sum(self, r):
        """Memory for a new sum that is not r's."""
        return self.sums[r is self.sums[0]]

    def run(self, norm):
        """One pass; norm(x, r, weight) -> (y, r). What it returns is read and overwritten by the next pass."""
        x, r, inner = self.x, self.r, self.shape.down_in
        self.multiply(self.first[:, :inner], self.downs[-1], x)
        for weight, up, down in zip(self.norms, self.ups, self.downs):
            y, r = norm(x, r, weight)
            self.multiply(y, up, self.h)
            del y  # so that an allocator gives its block to the next layer, as in a model
            self.multiply(self.h[:, :inner], down, x)
        return x, r

    def reference(self, x, r, weight):
        """The norm in float32, sum and output rounded once."""
        if self.shape.form != ATTENTION:
            r = x + r
            x = r
        wide = x.float()
        scale = self.torch.rsqrt(wide.square().mean(dim=1, keepdim=True) + graph_timing.EPS)
        return (wide * scale * weight.float()).to(x.dtype), r

    @property
    def tolerance(self):
        """The largest relative error of a row after the pass. A layer rounds five times (the sum, the normalized value,
        its product with the weight, and each matrix product's output), and a random matrix keeps relative errors."""
        return 5 * self.count * graph_timing.UNIT_ROUNDOFF[DTYPE]


class Float8Layers(Layers):
    """The same of products of e4m3 (cuBLASLt's, through torch._scaled_mm), with one scale for all activations and one for
    the weights of a product: that of what the norm ends in, and of what the first product ends in, is given."""

    SCALE = 2.0**-4  # by which a number of variance one is too large for e4m3 at 28

    def __init__(self, torch, shape, count, device="cuda"):
        self.kind = torch.float8_e4m3fn
        self.scale = torch.tensor([self.SCALE], device=device)
        # Weights are stored as normal numbers. What a product stores as e4m3 is divided by SCALE by that of its weights.
        self.scales_of_weights = {
            (cols, kind): torch.tensor([cols**-0.5 / divisor], device=device)
            for cols in (shape.hidden, shape.inner)
            for kind, divisor in ((getattr(torch, DTYPE), 1.0), (self.kind, self.SCALE))
        }
        super().__init__(torch, shape, count, device)
        self.still = self.activation(self.start)

    def factor(self, weights):
        return weights.to(self.kind)

    def activation(self, numbers):
        return (numbers / self.SCALE).to(self.kind)

    def multiply(self, activation, weights, out):
        scales = self.scale, self.scales_of_weights[weights.shape[1], out.dtype]
        self.torch._scaled_mm(activation, weights.t(), *scales, out_dtype=out.dtype, use_fast_accum=True, out=out)

    def without_norm(self, x, r, weight):
        return self.still, r

    def reference(self, x, r, weight):
        y, r = super().reference(x, r, weight)
        return self.activation(y.float()), r

    @property
    def tolerance(self):
        """Two kernels round a number to neighbours now and then, which are 1/8 or 1/16 of it apart."""
        return self.count / 16


def worst_row_error(pairs):
    """The worst relative error of a row of any (got, expected), NaN where anything is NaN."""
    errors = []
    for got, expected in pairs:
        got, expected = got.float(), expected.float()
        errors.append(float(((got - expected).norm(dim=1) / expected.norm(dim=1)).max()))
    return math.nan if any(map(math.isnan, errors)) else max(errors)


class Graph:
    """One pass, captured. The norm must have been called before, so that nothing is compiled within the capture."""

    def __init__(self, torch, layers, norm, **options):
        self.graph = torch.cuda.CUDAGraph(**options)
        self.graph.capture_begin(capture_error_mode="thread_local")
        try:
            self.gap = layers.start.new_empty(layers.gap, dtype=torch.uint8)  # before what the norm allocates
            self.outputs = layers.run(norm)
        except Exception:
            with contextlib.suppress(Exception):  # the capture is broken too, and the first reason is the one to tell
                self.graph.capture_end()
            raise
        self.graph.capture_end()

    def replay(self):
        self.graph.replay()


def node_count(torch, layers, norm):
    """How many launches a pass is; None where this PyTorch or this driver does not say."""
    try:
        graph = Graph(torch, layers, norm, keep_graph=True).graph
        count = ctypes.c_size_t()
        error = ctypes.CDLL("libcuda.so.1").cuGraphGetNodes(
            ctypes.c_void_p(graph.raw_cuda_graph()), None, ctypes.byref(count)
        )
    except Exception:  # an older PyTorch keeps no graph: the count is left out
        return None
    return None if error else count.value


def kernel_times(torch, graph, passes=5):
    """{kernel: microseconds of a pass}, from PyTorch's profiler: the time that each is on the GPU."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        for _ in range(passes):
            graph.replay()
        torch.cuda.synchronize()
    times = {}
    for event in profile.events():
        if event.device_type == torch.autograd.DeviceType.CUDA:
            times[event.name] = times.get(event.name, 0.0) + event.time_range.elapsed_us() / passes
    return times


class Clock:
    """Times replays on a stream, without waiting in between: microseconds by read() once all are done."""

    def __init__(self, torch, stream):
        self.torch, self.stream, self.pairs, self.used = torch, stream, [], 0

    def time(self, graph):
        """The replay before the timed one leaves the caches as a chain of this kind does."""
        if self.used == len(self.pairs):
            self.pairs.append([self.torch.cuda.Event(enable_timing=True) for _ in range(2)])
        begin, end = self.pairs[self.used]
        self.used += 1
        graph.replay()
        begin.record(self.stream)
        graph.replay()
        end.record(self.stream)

    def read(self):
        used, self.used = self.used, 0
        self.stream.synchronize()
        return [1e3 * begin.elapsed_time(end) for begin, end in self.pairs[:used]]


def one_round(clock, graphs, base, order):
    """{name: (microseconds of its chain, those of the chain without norms beside it)}. The chain without norms runs
    before and after each, and their mean is what counts, so that a steady drift of the clocks cancels."""
    clock.time(base)
    for name in order:
        clock.time(graphs[name])
        clock.time(base)
    times = clock.read()
    return {
        name: (times[2 * place + 1], (times[2 * place] + times[2 * place + 2]) / 2) for place, name in enumerate(order)
    }


class Samples:
    """Of one competitor at one place: microseconds a layer that its norms add, of its chain, and of that without."""

    def __init__(self, layers):
        self.layers, self.added, self.chain, self.base = layers, [], [], []

    def add(self, chain, base):
        self.added.append((chain - base) / self.layers)
        self.chain.append(chain / self.layers)
        self.base.append(base / self.layers)


def summary(places):
    """Of one competitor's Samples at all places: medians of the places' medians; the 10th and the 90th percentile of
    all rounds; and the error of the median of what is added, half the width of its interval of about 95 % (1.57 times
    the interquartile range of the places' medians over the root of their count: McGill, Tukey, Larsen 1978)."""
    added, chain, base = (
        [statistics.median(getattr(one, what)) for one in places] for what in ("added", "chain", "base")
    )
    rounds = [value for one in places for value in one.added]
    return {
        "added": statistics.median(added),
        "error": 1.57 * (percentile(added, 0.75) - percentile(added, 0.25)) / math.sqrt(len(added)),
        "low": percentile(rounds, 0.1),
        "high": percentile(rounds, 0.9),
        "chain": statistics.median(chain),
        "products": statistics.median(base),
    }


def percentile(values, part):
    ordered = sorted(values)
    return ordered[round(part * (len(ordered) - 1))]


def measure(clock, graphs, base, layers, seconds, bounds=(2, 40), warm_up=1):
    """{name: Samples} of as many rounds as the seconds allow, within bounds; all take turns, in alternating order."""
    samples, turn = {name: Samples(layers) for name in graphs}, -warm_up
    begin, last = time.monotonic(), bounds[0]
    while turn < last:
        times = one_round(clock, graphs, base, graph_timing.turns(list(graphs), turn))
        turn += 1
        if turn > 0:
            for name, pair in times.items():
                samples[name].add(*pair)
        elif turn == 0:
            last = max(bounds[0], min(bounds[1], int(seconds * warm_up / (time.monotonic() - begin))))
    return samples
