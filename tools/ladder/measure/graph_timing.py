"""Times competitors against each other: CUDA graphs of back-to-back launches over one pool of inputs and outputs.

The pool is 600 MB or 64 pairs, so that what is large is not served from a warm L2 cache. Every output of the pool stays
alive, also of those that allocate it themselves: the allocator would give them the same block at each launch, and their
writes would never leave the cache. All take turns at each replay, in alternating order, so that a drift hits all alike.
"""

import contextlib
import math
import statistics

POOL_BYTES, MOST_PAIRS = 600e6, 64  # as kPoolBytes of common/timing.h
GRAPH_MICROSECONDS, MOST_LAUNCHES = 2000.0, 2048
UNIT_ROUNDOFF = {"float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}
SMALLEST = {"float32": 2.0**-126, "float16": 2.0**-22, "bfloat16": 2.0**-126}  # below it, digits are lost
ITEM_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}
EPS = 1e-6


def pair_count(pair_bytes):
    return max(2, min(MOST_PAIRS, math.ceil(POOL_BYTES / pair_bytes)))


def cache_state(pool_bytes, l2_bytes):
    """Whether the L2 cache holds the pool: all of it, a good part, or a negligible part."""
    if pool_bytes <= l2_bytes:
        return "all"
    return "partly" if pool_bytes < 4 * l2_bytes else "no"


def least_microseconds(moved_bytes, footprint_bytes, pairs, l2_bytes, peak_bytes_per_second):
    """What the datasheet's bandwidth allows for a launch: even if all of the cache held bytes of the pool, the others
    come from memory. 0 if the whole pool fits, or if the datasheet is unknown."""
    outside = max(0.0, 1.0 - l2_bytes / (pairs * footprint_bytes))
    return 1e6 * moved_bytes * outside / peak_bytes_per_second if peak_bytes_per_second else 0.0


def tolerance(dtype, cols, residual):
    """The largest relative error of a right result. In the output's type: one rounding at the end, one of the
    normalized value ("llama"), one of the sum where there is a residual. In float32: common/operators/rms_norm.cpp."""
    u, n = 2.0**-24, float(cols)
    likely = 4 * math.sqrt(n) * u + min(0.08 * (n * u) ** 1.5, 0.01)
    in_float32 = 8 * u + 0.5 * min((n - 1) * u, likely)
    return (3 if residual else 2) * UNIT_ROUNDOFF[dtype] * (1 + 2.0**-6) + in_float32


def summarize(samples):
    """(median, spread from the 10th to the 90th percentile in percent of the median)."""
    ordered = sorted(samples)
    low, high = (ordered[round(p * (len(ordered) - 1))] for p in (0.1, 0.9))
    median = statistics.median(ordered)
    return median, 100 * (high - low) / median


def turns(names, replay):
    """The order at one replay: each starts in turn, and every other replay goes backwards."""
    start = (replay // 2) % len(names)
    order = names[start:] + names[:start]
    return order[::-1] if replay % 2 else order


class Entry:
    """One input and output of the pool. x and r lie in one block and y and s in another, so that one copy moves both;
    each starts on a 512-byte boundary, as an allocation of its own would."""

    def __init__(self, torch, rows, cols, dtype, residual):
        count = rows * cols
        step = -(-count // 256) * 256
        kind = getattr(torch, dtype)
        self.source = torch.empty(step * (1 + residual), dtype=kind, device="cuda").normal_()
        self.target = torch.empty_like(self.source)
        matrices = [block[:count].view(rows, cols) for block in (self.source, self.target)]
        self.x, self.y = matrices
        self.r = self.s = None
        if residual:
            self.r, self.s = (block[step : step + count].view(rows, cols) for block in (self.source, self.target))

    def clone_inputs(self):
        """The same inputs in separate memory, for a competitor that works in place."""
        copy = object.__new__(Entry)
        copy.source, copy.target, copy.y, copy.s = self.source.clone(), self.target, self.y, self.s
        count, step = self.x.numel(), len(self.source) // 2
        copy.x = copy.source[:count].view(self.x.shape)
        copy.r = copy.source[step : step + count].view(self.x.shape)
        return copy


class BackwardEntry:
    """The same of a backward pass: x and dy, and dx and dweight. source and target are what a copy of as many bytes as
    x, dy and dx have moves."""

    def __init__(self, torch, rows, cols, dtype):
        count = rows * cols
        self.step = -(-count // 512) * 512
        kind = getattr(torch, dtype)
        self.inputs = torch.empty(2 * self.step, dtype=kind, device="cuda").normal_()
        self.target = torch.empty(self.step // 2 * 3, dtype=kind, device="cuda")
        self.dweight = torch.full((cols,), math.nan, dtype=kind, device="cuda")
        self.dx = self.target[:count].view(rows, cols)
        self.view()
        self.rstd = torch.rsqrt(self.x.float().square().mean(dim=1, keepdim=True) + EPS)

    def view(self):
        self.source = self.inputs[: len(self.target)]
        count, shape = self.dx.numel(), self.dx.shape
        self.x, self.dy = (self.inputs[begin : begin + count].view(shape) for begin in (0, self.step))

    def clone_inputs(self):
        """The same inputs in separate memory, for a competitor that works in place."""
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__, inputs=self.inputs.clone())
        copy.view()
        return copy


class QuantizedEntry:
    """The same of a norm that ends in 8 bits: x and r, q, s and y, and float32 scales. source and target are what a copy
    of as many bytes as x, r, q, s and y have moves."""

    def __init__(self, torch, rows, cols, dtype, form, block, scale):
        count, kind = rows * cols, getattr(torch, dtype)
        step = -(-count // 256) * 256
        read, written = 2 * step * (1 + form.adds), step * (1 + 2 * form.adds + 2 * form.keeps_norm)
        self.bytes = (read + written) // 2  # that a copy reads, and that it writes
        copied = -(-self.bytes // 2)
        self.inputs = torch.empty(max(read // 2, copied), dtype=kind, device=scale.device).normal_()
        self.target = torch.empty(max(-(-written // 2), copied), dtype=kind, device=scale.device)
        outputs, self.target = self.target.view(torch.uint8), self.target[:copied]
        self.q = outputs[:count].view(getattr(torch, form.code)).view(rows, cols)
        begin_of_y = step * (1 + 2 * form.adds)
        self.s, self.y = (
            outputs[begin : begin + 2 * count].view(kind).view(rows, cols) if there else None
            for begin, there in ((step, form.adds), (begin_of_y, form.keeps_norm))
        )
        blocks = {"tensor": 0, "row": 1, "block": -(-cols // block)}[form.scaling]
        self.scales = torch.empty(rows, blocks, dtype=torch.float32, device=scale.device) if blocks else None
        self.scale, self.rows_and_cols = scale, (rows, cols)
        self.view()

    def view(self):
        count, (rows, cols) = self.q.numel(), self.rows_and_cols
        self.source = self.inputs[: len(self.target)]
        self.x = self.inputs[:count].view(rows, cols)
        self.r = None if self.s is None else self.inputs[-(-count // 256) * 256 :][:count].view(rows, cols)

    clone_inputs = BackwardEntry.clone_inputs


def quantized_errors(torch, entry, form, weight, q, scales, s, norm, dtype):
    """As errors(), of numbers of 8 bits times their scales. A competitor may round the norm to the type once or twice."""
    (rows, cols), u = entry.x.shape, UNIT_ROUNDOFF[dtype]
    if q.shape != entry.x.shape or str(q.dtype).rpartition(".")[2] != form.code:
        return math.nan, f"the output is {tuple(q.shape)} {q.dtype}"
    found, of_sums, of_norms = (Errors(torch, SMALLEST[dtype]) for _ in range(3))
    width = cols if scales is None else -(-cols // scales.shape[1])
    inexact = 3 * u + 2.0**-12  # of the norm, before it is quantized
    digits, unit = (0.0, 0.5) if form.code == "int8" else (2.0**-4, 2.0**-10)
    block = max(1, 2**24 // cols)
    for begin in range(0, rows, block):
        part = slice(begin, begin + block)
        y = entry.x[part].double()
        if form.adds:
            y += entry.r[part].double()
            of_sums.add(s[part], y, 2 * u, begin, "sum")
        y *= torch.rsqrt(y.square().mean(dim=1, keepdim=True) + EPS)
        if weight is not None:
            y *= weight.double()
        if form.keeps_norm:
            of_norms.add(norm[part], y, inexact, begin, "norm")
        scale = entry.scale.double()
        if scales is not None:
            padded = torch.nn.functional.pad(y, (0, -cols % width)).view(len(y), -1, width)
            expected = (padded.abs().amax(dim=2) / form.largest).clamp(min=form.least_scale)
            found.floor = 0.0
            found.add(scales[part], expected, inexact, begin, "scale")
            scale = scales[part].double().repeat_interleave(width, dim=1)[:, :cols]
        y = torch.minimum(torch.maximum(y, -(form.largest + (form.code == "int8")) * scale), form.largest * scale)
        found.floor = 1.01 * unit * scale.expand_as(y)
        found.add(q[part].double() * scale, y, digits + inexact, begin, "output")
    wrong = [f"{one.wrong} wrong elements, {one.first}" for one in (found, of_sums, of_norms) if one.wrong]
    return found.worst, "; ".join(wrong)


class StepEntry(BackwardEntry):
    """The same of a forward and a backward pass together. The copy moves as many bytes as x, y, x again, dy and dx have."""

    def __init__(self, torch, rows, cols, dtype):
        super().__init__(torch, rows, cols, dtype)
        self.r = None
        self.source = torch.empty(self.step // 2 * 5, dtype=self.inputs.dtype, device="cuda").normal_()
        self.target = torch.empty_like(self.source)


def backward_errors(torch, entry, weight, dx, dweight, dtype):
    """As errors(). A competitor may round the products of dy and x to the type before it adds them up."""
    rows, cols = entry.x.shape
    allowed = 4 * UNIT_ROUNDOFF[dtype] + 8 * math.sqrt(cols) * UNIT_ROUNDOFF["float32"]
    found, sums, squares = Errors(torch, 0.0), 0.0, 0.0
    block = max(1, 2**24 // cols)
    for begin in range(0, rows, block):
        part = slice(begin, begin + block)
        x, dy = entry.x[part].double(), entry.dy[part].double()
        rstd = torch.rsqrt(x.square().mean(dim=1, keepdim=True) + EPS)
        g, terms = dy if weight is None else dy * weight.double(), dy * x * rstd
        products = g * x
        expected = rstd * (g - x * rstd**2 * products.mean(dim=1, keepdim=True))
        size = rstd * (g.abs() + x.abs() * rstd**2 * products.abs().mean(dim=1, keepdim=True))
        found.floor = allowed * size + SMALLEST[dtype]
        found.add(dx[part], expected, 0.0, begin, "dx")
        sums, squares = sums + terms.sum(dim=0), squares + terms.square().sum(dim=0)
    if weight is not None:
        found.floor = allowed * (sums.abs() + squares.sqrt())[None] + SMALLEST[dtype]
        found.add(dweight[None], sums[None], 0.0, 0, "dweight")
    return found.worst, f"{found.wrong} wrong elements, {found.first}" if found.wrong else ""


def errors(torch, entry, weight, y, s, tolerance, dtype):
    """(worst relative error, what is wrong or ""), against float64, a block of rows at a time. NaN is wrong."""
    rows, cols = entry.x.shape
    if y.shape != entry.x.shape or y.dtype != entry.x.dtype:
        return math.nan, f"the output is {tuple(y.shape)} {y.dtype}"
    found = Errors(torch, SMALLEST[dtype])
    block = max(1, 2**25 // cols)
    for begin in range(0, rows, block):
        part = slice(begin, begin + block)
        expected = entry.x[part].double()
        if entry.r is not None:
            expected += entry.r[part].double()
            found.add(s[part], expected, 2 * UNIT_ROUNDOFF[dtype], begin, "sum")
        expected *= torch.rsqrt(expected.square().mean(dim=1, keepdim=True) + EPS)
        if weight is not None:
            expected *= weight.double()
        found.add(y[part], expected, tolerance, begin, "output")
    return found.worst, f"{found.wrong} wrong elements, {found.first}" if found.wrong else ""


class Errors:
    """The worst relative error, how many elements are wrong, and the first of them."""

    def __init__(self, torch, floor):
        self.torch, self.floor, self.worst, self.wrong, self.first = torch, floor, 0.0, 0, ""

    def add(self, got, expected, tolerance, begin, what):
        """Compares rows from `begin` on; the comparison is written so that NaN fails."""
        got = got.double()
        error = (got - expected).abs()
        bad = ~(error <= tolerance * expected.abs() + self.floor)
        count = int(bad.sum())
        if count and not self.first:
            row, col = divmod(int(bad.flatten().to(self.torch.uint8).argmax()), expected.shape[1])
            values = f"expected {expected[row, col]:.6g}, got {got[row, col]:.6g}"
            self.first = f"first the {what} ({begin + row}, {col}): {values}"
        relative = float((error / expected.abs().clamp_min(64 * self.floor)).max())
        self.wrong += count
        self.worst = relative if not relative <= self.worst else self.worst


class Graph:
    """launch(entry) -> outputs over every entry of the pool, round after round."""

    def __init__(self, torch, stream, launch, pool):
        self.torch, self.stream, self.launch, self.pool = torch, stream, launch, pool
        self.begin, self.end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        self.capture(1)
        once = min(self.time() for _ in range(2)) * len(pool)
        rounds = math.ceil(GRAPH_MICROSECONDS / max(once, 1.0))
        self.capture(max(1, min(rounds, MOST_LAUNCHES // len(pool))))

    def capture(self, rounds):
        self.graph, self.outputs = None, []
        self.graph = self.torch.cuda.CUDAGraph()
        self.graph.capture_begin(capture_error_mode="thread_local")
        try:
            for _ in range(rounds):
                self.outputs.clear()  # so that the next round gets this round's blocks again, and no fewer
                for entry in self.pool:
                    self.outputs.append(self.launch(entry))
        except Exception:
            with contextlib.suppress(Exception):  # the capture is broken too, and the first reason is the one to tell
                self.graph.capture_end()
            raise
        self.graph.capture_end()
        self.launches = rounds * len(self.pool)

    def time(self):
        """Microseconds per launch. The replay before the timed one hides the time in which the CPU submits it."""
        self.graph.replay()
        self.begin.record(self.stream)
        self.graph.replay()
        self.end.record(self.stream)
        self.end.synchronize()
        return 1e3 * self.begin.elapsed_time(self.end) / self.launches
