"""All competitors at one shape, checked, timed in alternating order, and checked again.

A module of gemm_peers.py, no command.
"""

import math

from ladder.measure import graph_timing

from bench.gemm import gemm_competitors, gemm_tables
from bench.gemm.gemm_tables import COLD, NORM, PEERS, WARM
from bench.norm import competitors


class Contest:
    """All competitors of one kind at one shape: rows by (competitor, cache), as gemm_tables.COLUMNS wants them."""

    def __init__(self, gpu, kind, loaded, matrix, n, given):
        self.gpu, self.torch, self.kind, self.loaded, self.matrix = gpu, gpu.torch, kind, loaded, matrix
        self.n, self.given, self.rows, self.timers = n, given, {}, {}

    def note(self, key, verdict, reason="", **values):
        self.rows[key] = {**self.rows.get(key, {}), "verdict": verdict, "reason": reason, **values}

    def check(self, key, timer):
        """Whether what it computes is right."""
        limit = self.loaded[key[0]].limit
        for y in timer.results():
            error, wrong = self.error_of(y, self.expected[self.loaded[key[0]].quantizes], limit)
            self.note(key, "wrong" if wrong else "ok", wrong, error=f"{error:.2e}", limit=f"{limit:.2e}")
            if wrong:
                return False
        return True

    def error_of(self, y, expected, limit):
        if y.shape != expected.shape:
            return math.nan, f"y is {tuple(y.shape)}"
        return gemm_competitors.error_of(self.torch, y, expected, limit)

    def prepare(self, name, competitor):
        """Its timers, cold and, where the L2 cache holds one copy of the weights, warm; none where it is wrong."""
        for cache in (COLD, WARM):
            try:
                copies = competitor.copies(self.matrix)
                if cache == WARM and (self.kind == NORM or competitor.weight_bytes(self.matrix) > self.gpu.l2_bytes):
                    break
                timer = competitor.timer(copies if cache == COLD else copies[:1], self.matrix, self.x)
                if self.check((name, cache), timer):
                    self.timers[name, cache] = timer
                else:
                    timer.close()
            except Exception as error:  # whatever a library raises where it refuses; the others go on
                if isinstance(error, self.torch.cuda.OutOfMemoryError):
                    raise
                self.note((name, cache), "refused", competitors.first_line(error))
                break

    def measure(self):
        """The rows, complete, in the order of the competitors."""
        for name, competitor in self.loaded.items():
            if isinstance(competitor, competitors.Missing):
                self.note((name, COLD), "missing", str(competitor))
            elif not hasattr(competitor, "takes") or competitor.takes(self.matrix, self.n):
                self.prepare(name, competitor)
        try:
            samples = {key: [] for key in self.timers}
            for replay in range(-2, self.given.replays):
                for key in graph_timing.turns(list(self.timers), replay):
                    sample = self.timers[key].time()
                    if replay >= 0:
                        samples[key].append(sample)
            for key, timer in self.timers.items():
                if self.check(key, timer):
                    self.note_time(key, samples[key], timer.copies)
        finally:
            for timer in self.timers.values():
                timer.close()
        return self.finished()

    def note_time(self, key, samples, copies):
        median, spread = graph_timing.summarize(samples)
        size, (m, n, k) = self.loaded[key[0]].weight_bytes(self.matrix), (self.matrix.m, self.n, self.matrix.k)
        least = graph_timing.least_microseconds(size, size, copies, self.gpu.l2_bytes, self.gpu.peak)
        values = {"copies": copies, "weight_bytes": size}
        if median < least:
            reason = f"{median:.2f} us, where the datasheet's bandwidth needs at least {least:.2f} us for the weights"
            self.note(key, "impossible", reason, **values)
            return
        self.note(
            key,
            "ok",
            microseconds=f"{median:.3f}",
            spread_percent=f"{spread:.1f}",
            **values,
            gb_per_s=f"{size / median / 1e3:.1f}",
            tflop_per_s=f"{2.0 * m * n * k / median / 1e6:.2f}",
        )

    def finished(self):
        columns, table = gemm_tables.COLUMNS[self.kind], []
        common = {**{"m": self.matrix.m, "k": self.matrix.k, "n": self.n}, **self.gpu.facts}
        for (name, cache), row in self.rows.items():
            competitor = self.loaded[name]
            about = {key: getattr(competitor, key, "") for key in ("version", "rounds")}
            row = {**common, **about, "competitor": name, "cache": cache, "replays": self.given.replays, **row}
            table.append([str(row.get(column, "")) for column in columns])
        return table


class Products(Contest):
    def __init__(self, gpu, loaded, matrix, n, given):
        super().__init__(gpu, PEERS, loaded, matrix, n, given)
        self.x = gemm_competitors.columns(self.torch, n, matrix.k)
        quantized = gemm_competitors.in_q8_1(self.torch, self.x)
        self.expected = {False: matrix.times(self.x), True: matrix.times(quantized)}
