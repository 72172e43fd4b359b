"""Every command that a page shows exists: the jobs of make, the stages and exercises that it names, and the variables."""

import functools
import re

import pytest
from conftest import ROOT
from ladder.core import ladders, markers
from ladder.grader import exercises

PAGES = {page.relative_to(ROOT).as_posix(): page.read_text(encoding="utf-8") for page in markers.pages()}
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
JOBS = set(re.search(r"^\.PHONY: ((?:.*\\\n)*.*)", MAKEFILE, re.MULTILINE).group(1).replace("\\", " ").split())
COMMAND = re.compile(
    r"(?:^|(?<=[`(]))make((?: [a-z\d][\w-]*(?![\w=]))*)((?: [A-Z]+=(?:\"[^\"\n]*\"|[^\s`\"',;)]+))*)", re.MULTILINE
)
CODE = re.compile(r"^```bash\n(.*?)^```|(`make [^`]*`)", re.MULTILINE | re.DOTALL)
NEW = "17"  # the stage that CONTRIBUTING.md adds


def commands(text):
    """[(jobs, {variable: value})] of the commands in blocks and in sentences."""
    code = "\n".join(block or sentence for block, sentence in CODE.findall(text))
    found = [(jobs.split(), re.findall(r"([A-Z]+)=\"?([^\s\"]*)", more)) for jobs, more in COMMAND.findall(code)]
    return [(jobs, dict(values)) for jobs, values in found]


@functools.cache
def is_there(job, name):
    if name in ("all", "...", "…") or name == "header" and job == "bench":
        return True
    if name.startswith("my/"):
        return exercises.of_file(name) is not None
    if job in ("exercise", "grade", "hint", "solution", "start", "try", "watch"):
        return (ROOT / "exercises" / f"{ladders.find(name).id}.md").is_file()
    if (ROOT / name / "Makefile").is_file():
        return True
    ladder, _, last = name.rpartition("/")
    ids = {one.id: one for one in ladders.all_ladders()}
    if ladder in ids and (last == "all" or last in ids[ladder].sweeps):
        return True
    return bool(ladders.find(name))


@pytest.mark.parametrize("name", PAGES)
def test_commands_of_a_page(name):
    beside = (ROOT / name).with_name("Makefile")
    linked = re.findall(
        r"^LINKED := .*?(\w+)$", beside.read_text(encoding="utf-8") if beside.is_file() else "", re.MULTILINE
    )
    for jobs, values in commands(PAGES[name]):
        for job in jobs:
            if not re.match(r"\d", job) and not (ROOT / name).with_name(job).exists():
                assert job in {*JOBS, *linked}, f"make {job}"
        if values.get("S") and not (values["S"].startswith(NEW) and name == "CONTRIBUTING.md"):
            assert is_there(jobs[0], values["S"]), values["S"]


def test_the_page_of_commands_has_every_job_of_make():
    """But those that make itself uses."""
    shown = {job for jobs, _ in commands(PAGES["COMMANDS.md"]) for job in jobs}
    helped = set(re.findall(r"^\t@echo 'make ([\w-]+)", MAKEFILE, re.MULTILINE))
    assert shown >= helped - {"compile_commands", "programs", "format"}, helped - shown


def test_variables_of_the_cpu_device():
    runtime = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "simt").rglob("*.[ch]*"))
    for name, text in PAGES.items():
        for variable in re.findall(r"\b(SIMT_[A-Z]+)=", text):
            assert f'"{variable}"' in runtime, f"{name}: {variable}"


def test_what_is_not_there_is_found():
    assert commands('`make stage S=05 ARGS="--rows 3"` and\n```bash\nmake grad S=1 # no\n```\n') == [
        (["stage"], {"S": "05", "ARGS": "--rows"}),
        (["grad"], {"S": "1"}),
    ]
    with pytest.raises(ladders.BadCommand):
        is_there("stage", "99")
    assert not is_there("grade", "11")
