"""Calls that nvcc refuses are compile errors with the caller's line, and no others are."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from execution_space import name_of


def compiled(source, tmp_path, *options):
    return subprocess.run(
        [str(HERE.parent / "simtcc"), "-O0", "-c", str(source), "-o", str(tmp_path / "made.o"), *options],
        cwd=str(tmp_path),
        capture_output=True,
        text=True,
    )


def test_what_nvcc_accepts(tmp_path):
    for options in (["-w"], ["-w", "-O2"], ["-w", "--analyze"]):
        result = compiled(HERE / "calls/accepted.cu", tmp_path, *options)
        assert (result.returncode, result.stderr) == (0, ""), options


def test_what_nvcc_refuses(tmp_path):
    source = HERE / "calls/refused.cu"
    result = compiled(source, tmp_path, "-w")
    assert result.returncode == 1 and not (tmp_path / "made.o").exists()
    found = {}
    for line in result.stderr.splitlines():
        file, number, kind, sentence = re.fullmatch(r"(.*?):(\d+): (error): (.*)", line).groups()
        assert file == str(source)
        found.setdefault(int(number), []).append(sentence.replace(str(HERE / "calls") + "/", ""))
    expected = {}
    for number, line in enumerate(source.read_text().splitlines(), 1):
        code, _, comment = line.partition("//")
        if code.strip() and comment and "namespace" not in comment:
            expected[number] = comment.strip()
    assert found.keys() == expected.keys(), (found.keys() ^ expected.keys(), result.stderr)
    for number, sentence in expected.items():
        assert any(said.startswith(sentence) for said in found[number]), (sentence, found[number])


def test_it_is_refused_when_compiled_again(tmp_path):
    """What ccache keeps has passed."""
    (tmp_path / "wrong.cu").write_text("__global__ void k(int* a) { *a = 1; }\nvoid f(int* a) { k(a); }\n")
    first, second = compiled("wrong.cu", tmp_path), compiled("wrong.cu", tmp_path)
    assert (
        first.stderr
        == second.stderr
        == ("wrong.cu:2: error: f calls the kernel k like a function; launch it: k<<<blocks, threads>>>(...)\n")
    )


@pytest.mark.parametrize(
    "said, name",
    [
        ("int host(int)", "host"),
        ("T ns::twice(T) [with T = float]", "ns::twice"),
        ("ns::C<T>::C(int) [with T = int]", "the constructor of ns::C"),
        ("virtual ns::C::~C()", "the destructor of ns::C"),
        ("int F::operator()(int) const", "F::operator()"),
        ("bool operator<(const A&, const A&)", "operator<"),
        ("std::ostream& operator<<(std::ostream&, const A&)", "operator<<"),
        ("A::operator float() const", "A::operator float"),
        ("T A<T>::at(std::map<int, std::pair<int, int> >&) [with T = B<int>]", "A::at"),
    ],
)
def test_names(said, name):
    assert name_of(said) == name
