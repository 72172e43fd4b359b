"""The sandbox of make grade: what is in it, what it says where there is none, and what a file cannot do in it."""

import os
import subprocess
import sys

import pytest
from conftest import ROOT
from ladder.core import ladders
from ladder.grader import sandbox

needs = pytest.mark.skipif(bool(sandbox.missing()), reason=sandbox.missing() or "there is a sandbox")


@pytest.fixture(autouse=True)
def forget(monkeypatch):
    monkeypatch.delenv("SANDBOX", raising=False)
    sandbox.missing.cache_clear()
    yield
    sandbox.missing.cache_clear()


def run(*words, written=(), seconds=20):
    done = subprocess.run(sandbox.command(words, seconds, written), capture_output=True, text=True, cwd=ROOT)
    return done.returncode, done.stdout + done.stderr


def test_without_bubblewrap_a_grade_has_limits_and_instructors_a_sentence(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "bubblewrap is not installed: apt install bubblewrap" == sandbox.missing()
    assert not sandbox.is_used() and sandbox.command(["true"], 7)[:2] == ["/bin/sh", "-c"]
    monkeypatch.setenv("SANDBOX", "require")
    with pytest.raises(ladders.Unusable, match="SANDBOX=require, and there is none: bubblewrap is not installed"):
        sandbox.command(["true"], 7)
    monkeypatch.setenv("SANDBOX", "on")
    with pytest.raises(ladders.BadCommand, match="SANDBOX=on: say SANDBOX=require"):
        sandbox.command(["true"], 7)


def test_where_user_namespaces_are_forbidden_the_sentence_says_so(monkeypatch, tmp_path):
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\necho 'No permissions to create new namespace' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert "user namespaces are not allowed here: No permissions" in sandbox.missing() and not sandbox.is_used()


def test_a_program_that_writes_or_takes_too_much_is_ended(tmp_path):
    file = tmp_path / "large"
    code, said = run("sh", "-c", f"head -c {2 * sandbox.FILE} /dev/zero > {file}", written=[tmp_path])
    assert code != 0 and file.stat().st_size <= sandbox.FILE
    code, said = run(sys.executable, "-c", f"bytearray({2 * sandbox.MEMORY})")
    assert code != 0 and "MemoryError" in said
    code, said = run("sh", "-c", "while :; do :; done", seconds=1)
    assert code != 0


def test_the_environment_of_what_is_started_has_no_secrets(monkeypatch):
    monkeypatch.setenv("SOME_TOKEN", "secret")
    monkeypatch.setenv("SIMT_WORKERS", "1")
    given = sandbox.environment(LADDER_RUNNER="x")
    assert "SOME_TOKEN" not in given and given["SIMT_WORKERS"] == "1" and given["LADDER_RUNNER"] == "x"


@needs
def test_inside_there_is_the_tree_to_read_and_nothing_else(tmp_path):
    code, said = run("sh", "-c", f"ls {ROOT}/simt && ls /etc /home /root {tmp_path.parent}")
    assert "analyze" in said and "passwd" not in said and code != 0
    for path in (ROOT / "README.md", ROOT / "tools/new", "/usr/new"):
        code, said = run("sh", "-c", f"echo echo >> {path}")
        assert code != 0 and ("Read-only" in said or "Permission denied" in said)
    assert "echo" not in (ROOT / "README.md").read_text(encoding="utf-8")[-9:] and not (ROOT / "tools/new").exists()


@needs
def test_a_compiler_that_is_installed_elsewhere_is_there(monkeypatch, tmp_path):
    """As conda's, whose headers and libraries lie beside it; and one in the home, without the home."""
    tool, home = tmp_path / "tools/bin/my-g++", tmp_path / "home"
    for file in (tool, tool.parent.parent / "include/a.h", tmp_path / "more/b.h", home / "bin/g++", home / "secret"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("#!/bin/sh\necho compiled\n")
        file.chmod(0o755)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", f"{home / 'bin'}:{tool.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("CXX", "my-g++")
    monkeypatch.setenv("CPATH", f"{tmp_path / 'more'}:{tmp_path / 'missing'}")
    code, said = run("sh", "-c", f"my-g++ && ls {tmp_path}/tools/include {tmp_path}/more")
    assert code == 0 and all(word in said for word in ("compiled", "a.h", "b.h")), said
    monkeypatch.delenv("CXX")
    code, said = run("sh", "-c", f"g++ && ls {home}")
    assert code == 0 and "compiled" in said and "secret" not in said, said


@needs
def test_inside_there_is_no_network_and_one_sees_no_other_process():
    code, said = run(sys.executable, "-c", "import socket; socket.create_connection(('127.0.0.1', 22), 1)")
    assert code != 0 and ("refused" in said or "unreachable" in said)
    code, said = run("sh", "-c", "ls /proc | grep -c '^[0-9]'")
    assert code == 0 and int(said) < 8


@needs
@pytest.mark.parametrize("place", ["/", "/dev", "/dev/shm", "/etc", str(ROOT.parent), str(ROOT / "build")])
def test_no_place_but_a_small_one_can_be_filled(place):
    """All of it but /tmp is memory of the machine that no limit of a file would save, or the disk."""
    code, said = run("sh", "-c", f"echo here > {place}/file")
    assert code != 0 and "Read-only" in said, said
    code, said = run("df", "--output=size", "-k", "/tmp")
    assert code == 0 and int(said.split()[-1]) == sandbox.TEMPORARY >> 10


@needs
def test_what_others_have_handed_in_cannot_be_read(monkeypatch):
    folder = ROOT / "build/test_sandbox"
    monkeypatch.setattr(sandbox, "HIDDEN", [*sandbox.HIDDEN])
    sandbox.hide(folder)
    for name in ("mine", "of_another"):
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / "file").write_text("text")
    words = sandbox.command(["sh", "-c", f"cat {folder}/*/file; ls {ROOT}/.git {ROOT}/my"], 20, read=[folder / "mine"])
    said = subprocess.run(words, capture_output=True, text=True)
    assert said.stdout.partition(str(ROOT))[0] == "text" and "config" not in said.stdout


BOMB = """
import os, time
made = 0
try:
    for made in range(2000):
        if os.fork() == 0:
            time.sleep(60)
except OSError as error:
    print(made, error)
"""


@needs
def test_a_fork_bomb_stays_small():
    code, said = run(sys.executable, "-c", BOMB)
    made = int(said.split()[0])
    assert code == 0 and "unavailable" in said and 32 < made < sandbox.PROCESSES, said


@needs
@pytest.mark.skipif(not sandbox.is_root(), reason="for root")
def test_what_root_grades_runs_as_a_user_who_has_nothing(tmp_path):
    (tmp_path / "file").write_text("")
    code, said = run("sh", "-c", f"id -u; id -G; grep -h Cap /proc/self/status; rm {tmp_path}/file", written=[tmp_path])
    user, groups, *capabilities = said.splitlines()
    assert code == 0 and int(user) > sandbox.USERS and groups == user
    assert [int(line.split()[1], 16) for line in capabilities] == [0] * 5


@needs
def test_what_is_started_ends_with_the_sandbox():
    """A fork bomb: all of its processes are gone when its first one ends."""
    mark = f"3{os.getpid()}"
    code, said = run("sh", "-c", f"for i in 1 2 3 4 5 6 7 8; do sleep {mark} & done; exit 3")
    assert code == 3
    left = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout
    assert f"sleep {mark}" not in left.splitlines()


@needs
def test_only_the_folders_that_are_named_can_be_written(tmp_path):
    code, said = run("sh", "-c", f"echo here > {tmp_path}/file; echo there > /tmp/file", written=[tmp_path])
    assert code == 0, said
    assert (tmp_path / "file").read_text() == "here\n" and not os.path.exists("/tmp/file")
