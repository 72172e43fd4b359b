"""What registers by name: jobs, tables and plots; and that nothing in tools/ knows what compares with others."""

import re
import subprocess
import sys

import pytest
from conftest import ROOT
from ladder.core import ladders, registry, results
from ladder.core.ladders import Unusable
from ladder.pages import index

HEAVY = ("matplotlib", "pandas", "torch", "bench.norm.peers", "ladder.pages.ladder_tables")


def test_nothing_in_tools_imports_bench():
    for path in (ROOT / "tools").rglob("*.py"):
        assert not re.search(r"^\s*(from|import) bench\b", path.read_text(encoding="utf-8"), re.MULTILINE), path


def test_every_plugin_s_modules_and_folders_are_there():
    registry.load_pages()
    assert {"counters", "header/chain", "serving/grid_summary"} <= set(registry.TABLES)
    assert {"{ladder}_bandwidth", "header_peers"} <= set(registry.PLOTS)
    assert {"bench", "peers"} <= set(registry.listed("JOBS"))
    assert all((ROOT / folder / "Makefile").is_file() for folder in registry.listed("PROGRAMS").values())


def test_a_name_is_registered_once():
    registry.load_pages()
    with pytest.raises(ValueError, match="header/chain is registered twice"):
        registry.csv_table("header/chain")(lambda path, page: "")
    with pytest.raises(ValueError, match="header_peers is registered twice"):
        registry.plot("header_peers")(lambda folder, ladder, target: None)


@pytest.mark.parametrize("job", ["stage", "exercise", "list", "bench", "peers"])
def test_a_job_imports_no_other_one_s_modules(job):
    """What students run without set-up must not need what tables and plots need."""
    code = f"import sys; from ladder.__main__ import parser_for; parser_for(['{job}']); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert set(loaded.split()) & set(HEAVY) == ({"bench.norm.peers"} if job == "peers" else set())


def test_every_stored_file_has_a_command_that_writes_it():
    climbed = {ladder.id: ladder for ladder in ladders.all_ladders()}
    files = [path for path in results.store().glob("*/**/*") if path.is_file() and "logs" not in path.parts]
    commands = {index.kind_of(path, climbed)[1] for path in files}
    assert len(files) > 300 and "make peers" in commands and "make analyze S=W1L1/all" in commands
    for orphan in ("h200/header/teams.csv", "h200/matrix/widths.csv", "h200/notes.txt"):
        with pytest.raises(Unusable, match="no command is known that writes it"):
            index.kind_of(results.store() / orphan, climbed)


def test_readme_names_every_table(capsys):
    from ladder.__main__ import main

    assert main(["readme", "--names"]) == 0
    said = capsys.readouterr().out
    assert all(f"{name} {one.form}".strip() + "\n" in said for name, one in registry.TABLES.items())
