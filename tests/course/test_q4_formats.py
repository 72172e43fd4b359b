"""The formats of assignment2/q4_gemm beside PyPI's gguf, another reader and writer of them, bit for bit."""

import subprocess

import gguf
import numpy
import pytest
from conftest import program

FOLDER = "assignment2/q4_gemm/formats"
pytestmark = pytest.mark.builds(FOLDER)

Q4_0, Q8_0 = gguf.GGMLQuantizationType.Q4_0, gguf.GGMLQuantizationType.Q8_0
PLACES = ["host", "device"]


def formats(*words, given=b""):
    result = subprocess.run([program(FOLDER), *words], input=given, capture_output=True, timeout=60)
    return result.returncode, result.stdout, result.stderr.decode()


def blocks_of(numbers, *words):
    status, written, said = formats(*words, given=numbers.astype(numpy.float32).tobytes())
    assert status == 0, said
    return numpy.frombuffer(written, numpy.uint8)


def numbers():
    """Blocks of many sizes; of zeros, of one number, of two that are equally far from zero, of halves."""
    random = numpy.random.default_rng(1)
    rows = [random.standard_normal(32) * 2.0**power for power in range(-12, 12) for _ in range(200)]
    rows += [random.uniform(-1, 1, 32).astype(numpy.float32) for _ in range(500)]
    rows += [numpy.zeros(32), numpy.ones(32), -numpy.ones(32), numpy.eye(32)[31], -3 * numpy.eye(32)[0]]
    rows += [
        numpy.tile([4.0, -4.0], 16),
        numpy.tile([-4.0, 4.0], 16),
        numpy.arange(32) - 16,
        (numpy.arange(32) - 16) / 2,
    ]
    rows += [numpy.full(32, 1e-7), numpy.full(32, -60000.0), numpy.r_[127, numpy.arange(31) + 0.5]]
    return numpy.array(rows, numpy.float32)


@pytest.mark.parametrize("place", PLACES)
def test_q4_0_is_what_gguf_writes(place):
    given = numbers()
    assert numpy.array_equal(blocks_of(given, "q4_0", place), gguf.quants.quantize(given, Q4_0).reshape(-1))


@pytest.mark.parametrize("place", PLACES)
def test_q4_0_is_what_gguf_reads(place):
    """An error of half a step, or of a whole one on the side that -8 is not on."""
    given = numbers()
    written = blocks_of(given, "q4_0", place).reshape(-1, 18)
    read = gguf.quants.dequantize(written, Q4_0)
    step = numpy.abs(written[:, :2].copy().view(numpy.float16).astype(numpy.float64))
    assert (numpy.abs(read - given) <= 1.01 * step + 2.0**-11 * numpy.abs(given) + 2.0**-20).all()


@pytest.mark.parametrize("place", PLACES)
def test_q8_1_is_the_q8_0_of_gguf_and_the_sum(place):
    """gguf cannot write q8_1, which never lies in a file. Its numbers and d are q8_0's."""
    given = numbers()
    written = blocks_of(given, "q8_1", place).reshape(-1, 36)
    wanted = gguf.quants.quantize(given, Q8_0).reshape(-1, 34)
    assert numpy.array_equal(written[:, :2], wanted[:, :2]) and numpy.array_equal(written[:, 4:], wanted[:, 2:])
    d = numpy.abs(given).max(axis=1) / numpy.float32(127)
    sums = wanted[:, 2:].copy().view(numpy.int8).sum(axis=1, dtype=numpy.int32).astype(numpy.float32)
    with numpy.errstate(over="ignore"):
        assert numpy.array_equal(written[:, 2:4].copy().view(numpy.float16)[:, 0], (sums * d).astype(numpy.float16))


@pytest.mark.parametrize("blocks", [1, 2, 257])
def test_repacked_weights_are_the_same_bits_in_another_order(blocks):
    written = numpy.random.default_rng(2).integers(0, 256, (blocks, 18), dtype=numpy.uint8)
    status, repacked, said = formats("repack", given=written.tobytes())
    assert status == 0, said
    assert repacked == written[:, 2:].tobytes() + written[:, :2].tobytes()


@pytest.mark.parametrize(
    "words, given, said",
    [
        ([], b"", "say q4_0 or q8_1"),
        (["q4_1", "host"], b"", "say q4_0 or q8_1"),
        (["q4_0", "host"], b"1234", "4 bytes came; give one or more times 128"),
        (["repack"], b"", "0 bytes came; give one or more times 18"),
    ],
)
def test_what_it_cannot_do_is_a_sentence(words, given, said):
    status, written, why = formats(*words, given=given)
    assert status == 2 and written == b"" and said in why and len(why.splitlines()) == 1
