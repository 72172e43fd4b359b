"""make peers ARGS=--all-reduce and its table, with stand-ins for the GPUs, for make and for both programs."""

import argparse
import types

import pytest
from ladder.core import ladders, machine, results

from bench.norm import peers
from bench.norm.all_reduce import job, tables

OF_HEADER = """ranks,rows,cols,dtype,competitor,us,least_us
2,64,4096,bfloat16,header_one_shot,4.000,3.900
2,64,4096,bfloat16,header_one_shot_dependent,3.000,2.900
2,64,4096,bfloat16,header_sharded,1.000,0.900
2,64,4096,bfloat16,nccl_alone,2.000,1.900
2,64,4096,bfloat16,nccl_header_norm,9.000,8.900
"""
OF_PACKAGE = """ranks,rows,cols,dtype,competitor,us
2,64,4096,bfloat16,package,5.000
2,64,4096,bfloat16,torch_nccl,1.500
2,64,4096,bfloat16,torch_nccl_compile,6.000
"""


def started(monkeypatch, tmp_path, *words, gpus=2, codes=(0, 0), package=OF_PACKAGE):
    """The job's exit code, and the commands that it ran; the programs end with these codes."""
    commands, left = [], list(codes)

    def run(*command, **options):
        commands.append([str(word) for word in command])
        text, word = (OF_HEADER, "--csv") if commands[-1][0].endswith("all_reduce") else (package, "peers.py")
        place = next(i for i, one in enumerate(commands[-1]) if one.endswith(word))
        with open(commands[-1][place + 1], "w") as file:
            file.write(text)
        return types.SimpleNamespace(returncode=left.pop(0))

    cuda = types.SimpleNamespace(device_count=lambda: gpus, nccl=types.SimpleNamespace(version=lambda: (2, 28, 9)))
    facts = {**dict.fromkeys(results.OF_THE_RUN, ""), "gpu": "NVIDIA Fake 9000", "cuda_runtime": "13.0"}
    monkeypatch.setattr(peers, "requirements", lambda: types.SimpleNamespace(cuda=cuda))
    monkeypatch.setattr(peers, "Gpu", lambda torch: types.SimpleNamespace(gpu="NVIDIA Fake 9000", facts=facts))
    monkeypatch.setattr(machine, "build", lambda *targets: commands.append(list(targets)))
    monkeypatch.setattr(machine, "clocks", lambda: dict.fromkeys(machine.CLOCKS, ""))
    monkeypatch.setattr(machine, "workplace", lambda job: (tmp_path, tmp_path))
    monkeypatch.setattr(machine, "run", run)
    monkeypatch.setattr(machine, "environment", lambda gpu, *rest: f"GPU: {gpu}\n")
    monkeypatch.setattr(results, "store", lambda: tmp_path / "profiling_results")
    monkeypatch.setattr(results, "shown", lambda path: str(path))
    parser = argparse.ArgumentParser()
    peers.arguments(parser)
    return peers.run(parser.parse_args(["--all-reduce", *words])), commands


def test_both_programs_are_stored_in_one_table(monkeypatch, tmp_path, capsys):
    code, commands = started(monkeypatch, tmp_path)
    assert code == 0 and commands[0] == ["bench/norm/all_reduce/program"] and len(commands) == 3
    folder = tmp_path / "profiling_results/fake-9000x2/header"
    assert "GPUs: 2 of one host" in (folder / "all_reduce_environment.txt").read_text()
    stored = results.read(folder / "all_reduce.csv", tables.COLUMNS)
    assert [row["competitor"] for row in stored].count("package") == 1 and len(stored) == 8
    assert {row["gpu"] for row in stored} == {"NVIDIA Fake 9000"} and stored[0]["least_microseconds"] == "3.900"
    shown = capsys.readouterr().out
    # The fastest peer with a norm over the fastest form whose residual is whole: neither a sum alone nor the sharded one.
    assert shown.splitlines()[-1].split()[-1] == "2.00" and "torch.compile" in shown
    page = tables.markdown(folder / "all_reduce.csv", folder / "README.md")
    assert "| 64 × 4096 | 4.00 | 3.00 | 1.00 | 5.00 | 2.00 | 9.00 | 1.50 | 6.00 | 2.00 |" in page and "2 ranks" in page


def test_a_quick_run_stores_nothing_beside_the_whole_one(monkeypatch, tmp_path):
    _, commands = started(monkeypatch, tmp_path, "--quick", "--output", str(tmp_path / "out"))
    assert all("--quick" in command for command in commands[1:]) and (tmp_path / "out/all_reduce.csv").is_file()
    assert not (tmp_path / "profiling_results").exists()


def test_without_the_package_the_header_is_timed_alone(monkeypatch, tmp_path, capsys):
    code, _ = started(monkeypatch, tmp_path, codes=(0, 1), package=OF_PACKAGE.partition("\n")[0] + "\n")
    stored = results.read(tmp_path / "profiling_results/fake-9000x2/header/all_reduce.csv")
    assert code == 0 and len(stored) == 5 and "are left out" in capsys.readouterr().out


def test_what_is_refused(monkeypatch, tmp_path):
    for words, options, why in (
        (["--backward"], {}, "not --backward"),
        ([], {"gpus": 1}, "needs two GPUs"),
        ([], {"codes": (1,)}, "nothing was stored"),
    ):
        with pytest.raises(ladders.Unusable, match=why):
            started(monkeypatch, tmp_path, *words, **options)
        assert not (tmp_path / "profiling_results").exists()


def test_each_name_that_a_program_writes_has_a_title():
    sources = [(ladders.ROOT / job.FOLDER / name).read_text() for name in ("main.cu", "peers.py")]
    assert all(sum(f'"{name}"' in source for source in sources) == 1 for name in tables.TITLES)


@pytest.mark.parametrize("rates", [{tables.LINK: 258.048}, {tables.LINK: 1, tables.LINK_TO_ALL: 258.048}])
def test_the_model_of_the_bytes_stands_beside_the_times(tmp_path, monkeypatch, rates):
    monkeypatch.setattr(results, "shown", lambda path: str(path))
    folder, times = tmp_path / "fake-9000x4", {"header_one_shot": (4.0, 9.5), "header_two_shot": (5.0, 8.5)}
    (folder / "header").mkdir(parents=True)
    rows = [
        {"ranks": 4, "rows": rows, "cols": 4096, "competitor": name, "microseconds": us}
        for i, rows in enumerate((1, 64))
        for name, us in ((name, each[i]) for name, each in times.items())
    ]
    table = [[{"dtype": "bfloat16", **row}.get(column, "") for column in tables.COLUMNS] for row in rows]
    results.write_csv(folder / "header/all_reduce.csv", tables.COLUMNS, table)
    (folder / "tensor_parallel").mkdir()
    results.write_csv(folder / "tensor_parallel/link.csv", ["what", "gb_per_s"], [["other", 1], *rates.items()])
    page = tables.model_beside_times(folder / "header/all_reduce.csv", tmp_path / "README.md")
    # 63 more rows of 8192 bytes, at 258.048 GB/s 2 us: three times in one shot, one and a half times in two.
    assert "| 1 × 4096 |  | 4.00 |  | 5.00 |" in page and "| 64 × 4096 | 10.00 | 9.50 | 8.00 | 8.50 |" in page
