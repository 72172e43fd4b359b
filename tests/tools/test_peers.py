"""make peers and the tables of its results, on invented numbers and with a stand-in for PyTorch."""

import argparse
import contextlib
import math
import types

import pytest
from fake_ladder import ladder_csv
from fakes import NAMES, Machine
from ladder import __main__ as command_line
from ladder.core import ladders, machine, results
from ladder.measure import graph_timing

from bench.norm import competitors, peer_tables, peers


def row(competitor, microseconds=None, shape=(64, 4096, "bfloat16", 1), **values):
    rows, cols, dtype, weight = shape
    known = {"rows": rows, "cols": cols, "dtype": dtype, "weight": weight, "competitor": competitor, "cache": "no"}
    known.update(replays=12, gpu="NVIDIA Fake 9000", cuda_runtime="13.0", date="2026-01-31", sm_clock_mhz="10")
    known.update(verdict="ok", microseconds="" if microseconds is None else microseconds)
    return [str({**dict.fromkeys(peer_tables.COLUMNS, ""), **known, **values}[name]) for name in peer_tables.COLUMNS]


LONG = (8, 1048576, "bfloat16", 1)
ROWS = [
    row("ours", 2.0, cache="all"),
    row("ours_pdl", 1.5, cache="all"),
    row("liger", 3.0, cache="all"),
    row("quack", cache="all", verdict="missing", reason="not installed: pip install quack-kernels"),
    row("copy_kernel", 1.75, cache="all"),
    row("ours", 9.0, LONG),
    row("ours_pdl", 8.0, LONG),
    row("liger", None, LONG, verdict="refused", reason="RuntimeError: n exceeds 65536"),
    row("torch_eager", 4.5, LONG, verdict="ok"),
    row("quack", None, LONG, verdict="missing", reason="not installed: pip install quack-kernels"),
    row("copy_kernel", 4.0, LONG),
]


def stored(path, rows=ROWS):
    path.parent.mkdir(parents=True, exist_ok=True)
    peers.store(path, rows)
    return peer_tables.read(path)


@pytest.fixture
def shapes(tmp_path):
    return stored(tmp_path / "peers_forward.csv")


def test_speed_up_is_against_the_fastest_peer_and_never_against_a_copy_or_ourselves(shapes):
    first, second = shapes.values()
    assert peer_tables.fastest_peer(first) == ("liger", 3.0)
    assert peer_tables.fastest_peer(second) == ("torch_eager", 4.5)
    assert peer_tables.speed_up(first, "ours") == 1.5 and peer_tables.speed_up(first, "ours_pdl") == 2.0
    mean, worst, key, count = peer_tables.summary(shapes, "ours")
    assert mean == pytest.approx(math.sqrt(1.5 * 0.5)) and worst == 0.5 and count == 2
    assert peer_tables.shape_name(key) == "8 × 1048576 bfloat16"


@pytest.mark.parametrize("form", ["ours_invariant", "ours_rstd", "ours_rstd_pdl"])
def test_other_forms_of_the_header_are_no_peers(tmp_path, form):
    rows = [row("ours", 2.0), row(form, 1.0), row("liger", 3.0)]
    shapes = stored(tmp_path / "peers_forward.csv", rows)
    assert peer_tables.fastest_peer(next(iter(shapes.values()))) == ("liger", 3.0)
    header, (line,) = peer_tables.lines(shapes)
    assert line[header.index(peer_tables.title(form))] == "1.00"


def test_a_wrong_or_unbelievable_competitor_is_never_the_fastest(tmp_path):
    rows = [
        row("ours", 2.0),
        row("liger", 3.0),
        row("quack", 1.0, verdict="wrong", reason="7 wrong elements"),
        row("torch_eager", 0.1, verdict="impossible", reason="0.10 us"),
    ]
    shapes = stored(tmp_path / "peers_forward.csv", rows)
    (rows,) = shapes.values()
    assert peer_tables.fastest_peer(rows) == ("liger", 3.0)
    text = peer_tables.printed(shapes)
    assert "QuACK everywhere: wrong (7 wrong elements)" in text and "torch eager everywhere: not believed" in text


def test_the_table_names_who_is_missing_and_why(shapes):
    header, lines = peer_tables.lines(shapes)
    cells = [dict(zip(header, line)) for line in lines]
    assert header[2:5] == ["this header", "with PDL", "copy kernel"]
    assert [line["QuACK"] for line in cells] == ["missing", "missing"]
    assert [line["Liger"] for line in cells] == ["3.00", "refuses"]
    assert [line["fastest peer"] for line in cells] == ["Liger", "torch eager"]
    assert [line["speed-up"] for line in cells] == ["1.50", "0.50"]
    assert [line["speed-up with PDL"] for line in cells] == ["2.00", "0.56"]
    said = peer_tables.printed(shapes)
    assert "QuACK everywhere: missing (not installed: pip install quack-kernels)." in said
    assert "Liger at 8 × 1048576 bfloat16: refuses (RuntimeError: n exceeds 65536)." in said
    assert "The pool fits in the L2 cache at 64 × 4096 bfloat16." in said


def test_no_peer_at_all_gives_a_table_without_speed_ups(tmp_path):
    shapes = stored(tmp_path / "peers_forward.csv", [row("ours", 2.0), row("copy_kernel", 1.0)])
    assert peer_tables.lines(shapes)[1][0][-2:] == ["", ""]
    assert peer_tables.verdicts(shapes) == []


@pytest.mark.parametrize("text, problem", [("", "holds no rows"), ("a,b\n", "lacks the column")])
def test_a_file_that_is_no_comparison_is_named(tmp_path, text, problem):
    path = tmp_path / "peers_forward.csv"
    path.write_text(text and text or ",".join(peer_tables.COLUMNS) + "\n")
    with pytest.raises(ladders.Unusable, match=problem):
        peer_tables.read(path)


# The method.


def test_the_pool_is_600_megabytes_or_64_pairs():
    assert graph_timing.pair_count(16384) == 64
    assert graph_timing.pair_count(20e6) == 30
    assert graph_timing.pair_count(2e9) == 2


def test_only_bytes_that_no_cache_can_hold_must_come_from_memory():
    least = graph_timing.least_microseconds
    assert least(1e6, 1e6, 50, 60e6, 5e12) == 0  # the pool fits
    assert least(1e9, 1e9, 2, 0, 5e12) == pytest.approx(200)
    assert least(1e6, 1e6, 120, 60e6, 5e12) == pytest.approx(0.1)  # half of it does not fit
    assert least(1e9, 1e9, 2, 0, 0) == 0  # the datasheet is unknown
    assert [graph_timing.cache_state(size, 60) for size in (60, 61, 239, 240)] == ["all", "partly", "partly", "no"]


def test_every_competitor_takes_every_place():
    names = ["a", "b", "c"]
    orders = [graph_timing.turns(names, replay) for replay in range(6)]
    assert all(sorted(order) == names for order in orders)
    for place in range(3):
        assert sorted(order[place] for order in orders) == ["a", "a", "b", "b", "c", "c"]


def test_median_and_spread():
    assert graph_timing.summarize([3.0, 1.0, 2.0]) == (2.0, 100.0)
    assert graph_timing.summarize([5.0] * 12) == (5.0, 0.0)


def test_the_tolerance_admits_one_rounding_more_for_a_residual_and_no_wrong_epsilon():
    for dtype, u in graph_timing.UNIT_ROUNDOFF.items():
        forward, residual = (graph_timing.tolerance(dtype, 4096, residual) for residual in (False, True))
        assert 2 * u < forward < residual < 3.1 * u + 1e-5
    assert graph_timing.tolerance("bfloat16", 2**20, True) < 0.013


def contest(shape="8192x8192:f32", operator="forward"):
    gpu = types.SimpleNamespace(torch=None, stream=None, l2_bytes=60e6, peak=4.8e12, facts={"gpu": "Fake"})
    arguments = types.SimpleNamespace(seed=1, replays=3)
    loaded = {"ours": types.SimpleNamespace(version="", in_place=False), "quack": competitors.Missing("not here")}
    return peers.Contest(gpu, None, loaded, operator, peers.Shape(shape), arguments)


def test_a_time_below_the_datasheet_is_an_error_of_the_measurement():
    # 536.9 MB at 4.8 TB/s are 111.8 us; the cache can hold 60 MB of the pool's 1073.7.
    for microseconds, verdict in ((105.0, "impossible"), (106.0, "ok")):
        run_once = contest()
        run_once.note_time("ours", [microseconds] * 3, 2, False)
        assert run_once.rows["ours"]["verdict"] == verdict
        assert ("microseconds" in run_once.rows["ours"]) == (verdict == "ok")


def test_a_row_is_complete_and_says_what_the_copy_took():
    it = contest("64x4096", "residual")
    it.note("quack", "missing", "not here")
    for name, microseconds in (("ours", 4.0), ("copy_kernel", 2.0), ("copy_memcpy", 3.0)):
        it.note_time(name, [microseconds] * 3, 64, False)
    rows = {line[4]: dict(zip(peer_tables.COLUMNS, line)) for line in it.finished()}
    assert list(rows) == ["ours", "quack", "copy_kernel", "copy_memcpy"]
    assert rows["ours"]["percent_of_copy"] == "50.0" and rows["ours"]["cache"] == "partly"
    assert rows["ours"]["gb_per_s"] == f"{4 * 64 * 4096 * 2 / 4e3:.1f}"
    assert rows["quack"]["reason"] == "not here" and rows["quack"]["microseconds"] == ""


# The competitors.


def test_a_peer_that_is_not_installed_says_how_to_install_it(tmp_path, monkeypatch):
    with pytest.raises(competitors.Missing, match="not installed: pip install some-package"):
        competitors.import_peer("surely_not_installed.norm", "some-package")
    (tmp_path / "half_installed.py").write_text("import surely_not_installed\n")
    (tmp_path / "broken_peer.py").write_text("raise OSError('libcudart.so.99: cannot open\\nmore')\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(competitors.Missing, match="needs the module surely_not_installed"):
        competitors.import_peer("half_installed", "some-package")
    with pytest.raises(competitors.Missing, match="OSError: libcudart.so.99: cannot open$"):
        competitors.import_peer("broken_peer", "some-package")


def test_one_that_cannot_be_made_does_not_stop_the_others(monkeypatch, capsys):
    def broken(torch):
        raise RuntimeError("its compiler failed")

    monkeypatch.setattr(competitors, "Ours", lambda *arguments, **named: "ours")
    monkeypatch.setattr(competitors, "PEERS", {"liger": broken, "quack": lambda torch: "quack"})
    arguments = types.SimpleNamespace(no_pdl=True, peers=["liger", "quack"], work=[])
    loaded = peers.load(None, None, arguments)
    assert loaded["ours"] == "ours" and loaded["quack"] == "quack"
    assert str(loaded["liger"]) == "RuntimeError: its compiler failed"
    assert "Liger is missing: RuntimeError: its compiler failed" in capsys.readouterr().out


def test_only_one_form_of_the_header_reads_a_stored_rstd():
    torch, calls = pytest.importorskip("torch"), []
    ours = competitors.Ours.__new__(competitors.Ours)
    ours.arguments = lambda x, weight: ((0, 0), ())
    ours.lib = types.SimpleNamespace(rms_norm_backward=lambda *given: calls.append(given) or 0)
    dy, x, dx, weight, dweight, rstd, workspace = (torch.zeros(2, 4) for _ in range(7))
    ours.gradient_workspaces = {x.shape: workspace}
    for ours.__class__ in (competitors.Ours, competitors.OursWithRstd):
        ours.backward(dy, x, weight, rstd, dx, dweight)
    before, after = ([one.data_ptr() for one in given] for given in ((dy, x), (weight, dx, dweight, workspace)))
    assert calls[0] == (0, 0, before[0], None, before[1], None, *after)
    assert calls[1] == (0, 0, before[0], None, before[1], rstd.data_ptr(), *after)
    assert not any(getattr(ours, name) for name in ("forward", "residual", "quantized"))


# The command.


@pytest.mark.parametrize(
    "text, needed",
    [
        ("raise ImportError('no torch')", "PyTorch is needed"),
        ("class cuda:\n    is_available = staticmethod(lambda: False)", "an NVIDIA GPU is needed"),
        ("class cuda:\n    is_available = staticmethod(lambda: True)", "nvcc is needed"),
    ],
)
def test_without_pytorch_a_gpu_or_nvcc_it_says_so_and_ends_with_1(tmp_path, text, needed):
    tree = Machine(tmp_path)
    tree.write("libraries/torch.py", text + "\n")
    tools = f"{tree.root}/libraries:{tree.root}/tools"
    result = tree.start("peers", PYTHONPATH=tools, NVCC=str(tmp_path / "none"))
    assert result.returncode == 1 and needed in result.stderr and len(result.stderr.splitlines()) == 1, result.stderr


@pytest.mark.parametrize(
    "words, complaint",
    [
        (["--shape", "64by4096"], "64by4096 is no shape"),
        (["--shape", "0x4096"], "0x4096 is no shape"),
        (["--shape", "64x4096:int8"], "64x4096:int8 is no shape"),
        (["--peers", "liger,nobody"], "unknown peer nobody"),
        (["--replays", "0"], "0 is not a whole number above 0"),
    ],
)
def test_a_bad_command_line_ends_with_2(words, complaint, capsys):
    assert command_line.main(["peers", *words]) == 2 and complaint in capsys.readouterr().err


def chosen(words):
    parser = argparse.ArgumentParser()
    peers.arguments(parser)
    return peers.complete(parser.parse_args(words))


def test_the_default_run_covers_all_operators_and_only_it_replaces_the_stored_tables():
    default = chosen([])
    counts = [("forward", 20), ("residual", 9), ("backward", 26), *((form, 6) for form in competitors.FORMS)]
    assert [(operator, len(shapes)) for operator, shapes in default.work] == counts
    assert default.default_run and default.replays == 12
    assert str(default.work[0][1][0]) == "8192 × 8192 float32, no weight"
    for words in (["--quick"], ["--shape", "1x7"], ["--peers", "liger"], ["--no-pdl"], ["--replays", "3"]):
        assert not chosen(words).default_run
    assert [operator for operator, _ in chosen(["--residual"]).work] == ["residual"]
    assert [operator for operator, _ in chosen(["--backward"]).work] == ["backward"]
    assert [operator for operator, _ in chosen(["--step"]).work] == ["step"]
    assert [operator for operator, _ in chosen(["--step", "--backward"]).work] == ["backward", "step"]
    assert [operator for operator, _ in chosen(["--quantized"]).work] == list(competitors.FORMS)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_wrong_gradients_are_seen(dtype):
    torch = pytest.importorskip("torch")
    torch.manual_seed(1)
    x, dy = (torch.randn(40, 64, dtype=torch.float64).to(getattr(torch, dtype)) for _ in range(2))
    weight = torch.randn(64, dtype=torch.float64).to(x.dtype)
    leaves = [tensor.double().requires_grad_() for tensor in (x, weight)]
    torch.nn.functional.rms_norm(leaves[0], (64,), leaves[1], graph_timing.EPS).backward(dy.double())
    dx, dweight = (leaf.grad.to(x.dtype) for leaf in leaves)
    entry = argparse.Namespace(x=x, dy=dy)

    def wrong(dx, dweight):
        return graph_timing.backward_errors(torch, entry, weight, dx, dweight, dtype)[1]

    assert wrong(dx, dweight) == ""
    one_wrong = dx.clone()
    one_wrong[39, 63] = math.nan
    assert "first the dx (39, 63)" in wrong(one_wrong, dweight)
    without_mean = dy * weight * torch.rsqrt(x.square().mean(dim=1, keepdim=True) + graph_timing.EPS)
    assert "dx" in wrong(without_mean.to(x.dtype), dweight)
    assert "first the dweight" in wrong(dx, dweight - dy[39] * x[39])  # a row is not there
    assert "first the dweight" in wrong(dx, dweight.roll(1))


def test_a_step_is_the_packages_and_its_three_results_are_compared(monkeypatch):
    torch = pytest.importorskip("torch")
    for name in ("empty", "full"):
        made = getattr(torch, name)
        monkeypatch.setattr(torch, name, lambda *given, made=made, device, **named: made(*given, **named))
    torch.manual_seed(1)
    package, gpu = competitors.Torch(torch), argparse.Namespace(torch=torch, stream=None)
    loaded = {"ours": competitors.Ours, "ours_pdl": competitors.Ours, "package": package, "flashinfer": object()}
    kind, there = peers.contest("step", loaded)
    assert there == {"ours": package} and "package" not in peers.contest("forward", loaded)[1]
    contest = kind(gpu, None, there, "step", peers.Shape("40x64:f32"), argparse.Namespace())
    contest.weight, entry = torch.randn(64), contest.entry()
    assert contest.moved == 5 * 4 * 40 * 64 and entry.clone_inputs().dy.equal(entry.dy)
    launch = contest.launch_of(package)
    assert contest.errors(entry, *launch(entry))[1] == ""
    for place, expected in enumerate(["first the output (3, 0)", "first the dx (3, 0)", "first the dweight (0, 0)"]):
        (y, dx), dweight = launch(entry)
        (y[3], dx[3], dweight)[place][0] += 1
        assert expected in contest.errors(entry, (y, dx), dweight)[1]
    (y, dx), dweight = launch(entry)
    contest.spoil(((y, dx), dweight))
    assert all(bool(tensor.isnan().all()) for tensor in (y, dx, dweight))


@pytest.mark.parametrize("name", competitors.FORMS)
def test_wrong_numbers_of_8_bits_are_seen(name):
    """PyTorch's own functions are right; one code, one scale, one sum or truncation is not."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(1)
    form, weight = competitors.FORMS[name], torch.randn(320).bfloat16()
    entry = graph_timing.QuantizedEntry(torch, 5, 320, "bfloat16", form, competitors.BLOCK, torch.tensor([0.02]))
    assert entry.clone_inputs().x.equal(entry.x) and len(entry.source) == len(entry.target)
    columns = 256 if form.scaling == "block" else 320  # torch.Tensor.view() knows no shorter block
    entry.x, entry.q, weight = entry.x[:, :columns].contiguous(), entry.q[:, :columns], weight[:columns]
    entry.r = entry.r if entry.r is None else entry.r[:, :columns].contiguous()
    q, scales, s, y = competitors.Torch(torch).quantized(form, entry, weight)
    assert (y is None) == (entry.y is None) == (not form.keeps_norm)

    def wrong(q, scales, s, y=y):
        return graph_timing.quantized_errors(torch, entry, form, weight, q, scales, s, y, "bfloat16")[1]

    assert wrong(q, scales, s) == ""
    one = q.view(torch.uint8).clone()
    one[4, columns - 1] ^= 0x10
    assert f"first the output (4, {columns - 1})" in wrong(one.view(q.dtype), scales, s)
    assert wrong((q.view(torch.uint8) - (q.view(torch.uint8) % 128 > 0).byte()).view(q.dtype), scales, s)
    assert "the output is" in wrong(q.view(torch.uint8), scales, s)
    if scales is not None:
        assert "first the scale" in wrong(q, scales * 1.02, s)
    if s is not None:
        assert "first the sum" in wrong(q, scales, s.roll(1, 0))
    if y is not None:
        assert "first the norm" in wrong(q, scales, s, y.roll(1, 0))


class FakeTorch:
    """What run() itself asks of PyTorch."""

    class cuda:
        OutOfMemoryError = MemoryError
        stream = staticmethod(contextlib.nullcontext)
        empty_cache = staticmethod(lambda: None)

    no_grad = staticmethod(contextlib.nullcontext)


def fake_run(monkeypatch, tmp_path, outcomes, *words):
    """The job with a Contest whose outcomes are given, one per shape: rows, or what is raised."""
    outcomes = iter(outcomes)

    class Contest:
        def __init__(self, *arguments):
            pass

        def measure(self):
            outcome = next(outcomes)
            if isinstance(outcome, BaseException):
                raise outcome
            return outcome

    gpu = types.SimpleNamespace(gpu="NVIDIA Fake 9000", stream=None, facts={"cuda_runtime": "13.0"})
    monkeypatch.setattr(machine, "find_nvcc", lambda: "nvcc")
    monkeypatch.setattr(peers, "requirements", FakeTorch)
    monkeypatch.setattr(peers, "Gpu", lambda torch: gpu)
    monkeypatch.setattr(peers, "build_library", lambda torch: None)
    monkeypatch.setattr(peers, "load", lambda *arguments: {"liger": competitors.Missing("not installed")})
    monkeypatch.setattr(peers, "Contest", Contest)
    return peers.run(chosen(["--output", str(tmp_path), *words]))


TWO = ["--forward", "--shape", "64x4096", "--shape", "8x1048576"]


def test_an_interrupted_run_leaves_the_shapes_that_were_measured(monkeypatch, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        fake_run(monkeypatch, tmp_path, [ROWS[:5], KeyboardInterrupt()], *TWO)
    assert len(results.read(tmp_path / "peers_forward.csv", peer_tables.COLUMNS)) == 5
    assert [path.name for path in tmp_path.iterdir()] == ["peers_forward.csv"]


def test_a_whole_run_stores_the_tables_and_the_environment(monkeypatch, tmp_path, capsys):
    fake_run(monkeypatch, tmp_path, [ROWS[:5], ROWS[5:]], *TWO)
    shown = capsys.readouterr().out
    assert "[2/2] forward 8 × 1048576 bfloat16: this header 9.00" in shown and "0.866 times as fast" in shown
    facts = (tmp_path / "peers_environment.txt").read_text()
    assert "GPU: NVIDIA Fake 9000" in facts and "Liger: missing, not installed" in facts
    assert not list(tmp_path.glob(".*"))


def test_a_shape_that_does_not_fit_is_left_out(monkeypatch, tmp_path, capsys):
    fake_run(monkeypatch, tmp_path, [MemoryError(), ROWS[5:]], *TWO)
    assert "left out" in capsys.readouterr().out
    assert len(peer_tables.read(tmp_path / "peers_forward.csv")) == 1


@pytest.mark.parametrize(
    "bad",
    [row("ours", None, verdict="wrong", reason="3 wrong"), row("liger", None, verdict="impossible", reason="0.01 us")],
)
def test_a_wrong_header_or_an_impossible_time_ends_with_1(monkeypatch, tmp_path, capsys, bad):
    assert fake_run(monkeypatch, tmp_path, [[bad]], "--forward", "--shape", "64x4096") == 1
    assert bad[peer_tables.COLUMNS.index("reason")] in capsys.readouterr().err


def test_a_wrong_peer_is_no_failure_of_the_command(monkeypatch, tmp_path):
    rows = [row("ours", 2.0), row("liger", None, verdict="wrong", reason="3 wrong")]
    assert not fake_run(monkeypatch, tmp_path, [rows], "--forward", "--shape", "64x4096")


# The page and the plot.


@pytest.fixture
def tree(tmp_path):
    tree = Machine(tmp_path)
    tree.store = tree.root / "profiling_results/fake-9000/header"
    tree.write("profiling_results/fake-9000/matrix/main.csv", ladder_csv())
    names = ("peers_plot", "peers_forward", "peers_residual")
    blocks = [f"<!-- table:header/{name}:begin -->\nNot yet.\n<!-- table:header/{name}:end -->\n" for name in names]
    tree.write("bench/README.md", "\n".join(blocks))
    tree.write("README.md", "<!-- table:matrix/ladder:begin -->\n<!-- table:matrix/ladder:end -->\n")
    claims = "loads=4x4 stores=4x4 asked=8 barriers=0 shuffles=0"
    text = "<!-- figures:begin -->\n<!-- figures:end -->\n"
    text += f"<!-- table:cpu_device:begin {claims} -->\n<!-- table:cpu_device:end -->\n"
    for ladder, stages in NAMES.items():
        for stage in stages:
            if (tree.root / ladder / stage).is_dir():
                tree.write(f"{ladder}/{stage}/README.md", text)
    return tree


def page_of(tree, *arguments):
    return tree.run("readme", *arguments), (tree.root / "bench/README.md").read_text(encoding="utf-8")


def test_the_page_keeps_its_sentences_until_peers_were_measured_and_is_stale_then(tree):
    assert tree.run("readme").returncode == 0
    result, page = page_of(tree)
    assert result.returncode == 0 and page.count("Not yet.") == 3
    stored(tree.store / "peers_forward.csv")
    result, _ = page_of(tree, "--check")
    assert result.returncode == 1 and "bench/README.md" in result.stderr
    assert tree.run("readme").returncode == 0
    result, page = page_of(tree)
    assert result.returncode == 0 and page.count("Not yet.") == 2
    assert "| 64 × 4096 | bf16 | 2.00 | 1.50 | 1.75 | 3.00 | missing |  | Liger | 1.50 | 2.00 |" in page
    assert "Plain launch: 0.866 times as fast as the fastest peer" in page
    assert "NVIDIA Fake 9000" in page and "(../profiling_results/fake-9000/header/peers_forward.csv)" in page
    assert page_of(tree, "--check")[0].returncode == 0
    stored(tree.store / "peers_forward.csv", [row("ours", 2.5), *ROWS[1:]])
    assert page_of(tree, "--check")[0].returncode == 1


def test_the_peers_are_drawn_from_the_stored_files(tree):
    (tree.root / "profiling_results/fake-9000/matrix/main.csv").unlink()
    stored(tree.store / "peers_forward.csv")
    stored(tree.store / "peers_residual.csv", ROWS[:5])
    for folder in ("first", "second"):
        drawn = tree.run("plot", "--out", tree.root / folder)
        assert drawn.returncode == 0, drawn.stderr
    first, second = ((tree.root / folder / "fake-9000_header_peers.svg").read_text() for folder in ("first", "second"))
    assert first == second and "Liger" in first and "NVIDIA Fake 9000" in first
