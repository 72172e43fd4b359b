"""The exercises without building any: each cut applies, the rules for a file's text hold, the ideas are judged from counts.

What is built and graded is in test_grading.py.
"""

import argparse
import concurrent.futures
import functools
import io
import json
import os
import re
import shutil
import sys
import time
import types

import pytest
from conftest import ROOT, full_but, make, run
from ladder.core import ladders, machine
from ladder.grader import exercises, grade, ideas, programs, rules, symbols, workplace
from ladder.measure import cpu_device
from submitted import all_of, edited, exercise_of, of, source

COURSE = exercises.course()
each = pytest.mark.parametrize("exercise", COURSE, ids=lambda exercise: exercise.id)


def given(asked):
    return argparse.Namespace(exercise=asked)


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """The student's folder, empty."""
    monkeypatch.setattr(exercises, "MINE", tmp_path / "my")
    return tmp_path / "my"


# --- The pages and the skeletons -----------------------------------------------------------------------------


def test_every_page_is_an_exercise_of_the_course():
    pages = {page for page in exercises.FOLDER.rglob("*.md") if page.name != "README.md"}
    assert pages == {exercise.page for exercise in COURSE} and len(pages) >= 25


@each
def test_every_cut_applies_and_says_what_is_missing(exercise):
    skeleton = grade.skeleton(exercise)
    assert skeleton.count(exercises.MARK) == sum(cut.put.count(exercises.MARK) for cut in exercise.cuts) > 0
    assert max(map(len, skeleton.splitlines())) <= 120
    assert skeleton.startswith(f"// Exercise {exercise.stage.name}: ")
    assert source(exercise).split("\n\n", 1)[0] not in skeleton, "the stage's own comment must not stand there"


@each
def test_every_exercise_has_two_or_three_hints(exercise):
    assert len(exercise.hints) in (2, 3)


@each
def test_the_figures_wanted_are_those_that_are_stored(exercise):
    """The stage itself has the idea; its count is read from profiling_results/, and not typed, except for another input."""
    typed = [name for name, said in exercise.wants.items() if re.fullmatch(r"[\d.]+", said)]
    assert typed == (
        ["barriers", "blocks", "threads"] if exercise.input else ["smem"] if "smem" in exercise.wants else []
    )
    if not exercise.input:
        counts = ideas.Counts.read(cpu_device.path_of(exercise.stage), exercise.given, source(exercise))
        assert ideas.complaints(exercise, counts) == []
    assert all(ideas.wishes(exercise))


def test_the_list_in_the_readme_is_the_course():
    page = (exercises.FOLDER / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `S=(\S+)` \| (.*?) \|", page, re.M)
    assert listed == [(exercise.asked, exercise.title) for exercise in COURSE]


def test_a_cut_whose_line_has_changed_does_not_apply():
    cut = exercises.Cut("  b", "  c", "  // YOUR CODE")
    assert cut.apply("a\n  b\n  x\n  c\nd", "here") == "a\n  // YOUR CODE\nd"
    for text, times in (("a\n  c", "not"), ("  b\n  b\n  c", "2 times")):
        with pytest.raises(ladders.Unusable, match=f"here: .* stands {times} in"):
            cut.apply(text, "here")


# --- The rules for the text ------------------------------------------------------------------------------------


@each
def test_skeleton_and_solution_break_no_rule(exercise):
    skeleton = grade.skeleton(exercise)
    assert rules.broken(exercise, skeleton, skeleton) == []
    assert rules.broken(exercise, source(exercise), skeleton) == []


SUBMISSIONS = all_of()
FOOLING = of("fooling")
BUILT = {"constants", "a loop on the host", "nothing is launched"}  # graded in test_grading.py


@pytest.mark.parametrize("one", [one for one in FOOLING if one.name not in BUILT], ids=lambda one: one.name)
def test_what_only_looks_like_a_solution_breaks_a_rule(one):
    found = rules.broken(exercise_of(one.asked), edited(one), grade.skeleton(exercise_of(one.asked)))
    assert any(one.said[0] in line for line in found), found


@each
def test_the_submissions_are_edits_that_apply_and_break_no_rule(exercise):
    skeleton = grade.skeleton(exercise)
    for one in SUBMISSIONS:
        if exercise_of(one.asked) == exercise:
            text = edited(one)
            assert text != source(exercise) and one.said, one
            assert rules.broken(exercise, text, skeleton) == [], one


@each
def test_every_exercise_has_six_wrong_submissions(exercise):
    """Those that are written, and the launch without its stream and with its arguments exchanged, of test_grading.py."""
    wrong = [one.name for one in SUBMISSIONS if exercise_of(one.asked) == exercise and not one.passes]
    assert len(wrong) >= 4 and len(set(wrong)) == len(wrong)


def test_wrong_names_are_not_two_things():
    names = [(one.asked, one.name) for one in SUBMISSIONS + FOOLING]
    assert len(set(names)) == len(names) > 200


def test_comments_and_strings_may_say_anything():
    exercise = exercises.find("05")
    skeleton = grade.skeleton(exercise)
    text = skeleton.replace(
        "constexpr int kWarpSize", "// the oracle says exit()\n/* cudaMemcpy */ constexpr int kWarpSize"
    )
    assert rules.broken(exercise, text, skeleton) == []


def test_lines_that_go_on_are_joined_and_all_others_stay():
    assert rules.spliced("a\\\nb\\ \nc\nd\\") == "abc\n\n\nd\\"


OF_OBJECTS = [
    ("U", "simt::launch_kernel(simt::LaunchConfig const&, simt::BoundKernel const*)", ""),
    ("U", "simt::is_profiling", "calls simt::is_profiling, which has nothing to do"),
    ("U", "cudaGetDevice(int*)", ""),
    ("U", "cudaMemcpy(void*, void const*, unsigned long, cudaMemcpyKind)", "calls cudaMemcpy"),
    ("U", "cudaProfilerStop()", "calls cudaProfilerStop"),
    ("U", "std::__throw_length_error(char const*)", ""),
    ("U", "std::basic_ofstream<char, std::char_traits<char> >::basic_ofstream(char const*)", "calls std::basic_of"),
    ("U", "rsqrtf", ""),
    ("U", "memcpy", ""),
    ("U", "std::__basic_file<char>::open(char const*, std::_Ios_Openmode, int)", "calls std::__basic_file"),
    ("U", "std::thread::_M_start_thread(std::unique_ptr<std::thread::_State>)", "calls std::thread"),
    ("u", "simt::is_profiling", "defines simt::is_profiling outside"),
    (
        "W",
        "ladder::judge::SharedMemory::of(ladder::judge::Request const&, bool)",
        "defines ladder::judge::SharedMemory",
    ),
    ("u", "simt::shared<float [8], ladder::matrix::warp_shuffle::kernel(float*)::simt_S_sums>()::variable", ""),
    ("W", "ladder::matrix::warp_shuffle::launch(float*)", ""),
    ("U", "system", "calls system, which"),
    ("U", "open", "calls open, which"),
    ("U", "__tsan_read4", "calls __tsan_read4"),
    ("U", "ladder::RmsNorm::get()", "calls ladder::RmsNorm::get()"),
    ("T", "ladder::matrix::warp_shuffle::kernel(float*)", ""),
    ("T", "ladder::judged::launch(ladder::Arguments const&, CUstream_st*)", ""),
    ("T", "main", "defines main outside its namespace ladder::matrix::warp_shuffle"),
    ("T", "operator new(unsigned long)", "defines operator new"),
    ("B", "ladder::counter", "defines ladder::counter outside"),
]


@pytest.mark.parametrize("kind, name, said", OF_OBJECTS, ids=lambda one: str(one)[:24])
def test_symbols_of_an_object(kind, name, said):
    found = symbols.sentence(kind, name, "ladder::matrix::warp_shuffle", False)
    assert said in found if said else not found
    assert not symbols.sentence("U", "__tsan_read4", "ladder::matrix::warp_shuffle", True)
    of_header = "void simt::combine_shuffle<(simt::Shuffle)3>(simt::Exchange&, unsigned int)"
    assert not symbols.sentence("W", of_header, "ladder::matrix::warp_shuffle", False, is_own=False)


@pytest.mark.parametrize(
    "name", ["setenv", "ncclMemAlloc", "cudaMemcpy(void*, void const*, unsigned long, cudaMemcpyKind)"]
)
def test_what_headers_of_several_devices_call_no_other_file_and_no_text_may(name):
    assert symbols.sentence("U", name, "ladder::tensor_parallel::pull", False)
    assert not symbols.sentence("U", name, "ladder::tensor_parallel::pull", False, True)
    assert "calls ncclAllReduce" in symbols.sentence("U", "ncclAllReduce", "ladder::tensor_parallel::pull", False, True)
    exercise = exercises.find("tensor_parallel/03")
    text = source(exercise).replace("if (call.rows == 0) return;", f"{name.partition('(')[0]}();", 1)
    (said,) = rules.broken(exercise, text, grade.skeleton(exercise))
    assert name.partition("(")[0] in said


def test_bytes_over_the_link_have_a_floor_and_a_ceiling_in_both_directions():
    exercise = exercises.find("tensor_parallel/03")
    counts = ideas.Counts.read(cpu_device.path_of(exercise.stage), exercise.given)
    whole = 2 * 8 * 4096 * 2  # both ranks' partial results
    for link, said in [
        ((whole, 128), ""),
        ((whole // 2, 128), "requires 131,072 bytes over the link as loads: yours are 65,536"),
        ((2 * whole, 128), "requires 131,072 bytes over the link as loads: yours are 262,144"),
        ((whole, whole), "requires 0 bytes over the link as stores: yours are 131,072"),
    ]:
        counts.link = link
        assert ideas.complaints(exercise, counts) == ([said] if said else [])
        assert not ideas.unlinked(exercise, counts)
    counts.link = (0, 128)
    assert ideas.unlinked(exercise, counts).startswith("requires loads over the link")


def test_files_that_the_compiler_read_are_known_ones(tmp_path):
    """The judge's own list is what a file may read, with the CPU device's headers and the system's."""
    exercise = exercises.find("05")
    work = workplace.Workplace(exercise, tmp_path / exercise.file.name, "tests/foreign")
    both = f"{ROOT}/common/stage.h {ROOT}/simt/include/cuda_fp16.h /usr/include/math.h {work.file}"
    for file, more in (
        (work.built("judge").parent / "judge.cu.o.d", ""),
        *zip([f.with_name("student.cu.o.d") for f in work.objects], ("", "/etc/hostname")),
    ):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"x: {both} {more}\\\n  {ROOT}/common/types.h\n")
    assert list(rules.foreign(work)) == ["the compiler read /etc/hostname for your file, and yours must be your own"]
    work.objects[0].with_name("student.cu.o.d").write_text(f"x: {exercise.stage.source}\n")
    assert "05_warp_shuffle/kernel.cuh for your file" in next(rules.foreign(work))


# --- The ideas, judged from the stored counts of other stages -----------------------------------------------------

JUDGED = [
    ("05", "matrix/02_reduction5", r"requires at most 1 barrier per row: yours has 9, most of them in line \d+"),
    (
        "W2L1/3",
        "W2L1/reduction2",
        r"requires at most 88.58 requests to shared memory for 1000 elements: yours makes \d+",
    ),
    ("04", "matrix/02_reduction5", r"requires loads of 16 bytes: line \d+ moves 4"),
    ("06", "matrix/05_warp_shuffle", r"requires stores of 16 bytes: line \d+ moves 4"),
    (
        "07",
        "matrix/06_vectorized",
        r"requires each input element to be read once: yours is read 2.0 times \(loads .*: line \d+",
    ),
    (
        "08",
        "matrix/07_registers",
        r"requires at most 5 shuffles of a warp: yours has 10, most of them in line 15 of common/",
    ),
    ("02", "matrix/01_basic", r"requires coalesced requests: a load in line \d+ touches 32 sectors where 4 would do"),
    ("W2L1/1", "W2L1/reduction0", r"requires 20.4 lanes in a load from shared memory, on average: line \d+ has 5.4"),
    (
        "W2L1/2",
        "W2L1/reduction1",
        r"requires no bank conflicts: a shared load in line \d+ takes 3.92 wavefronts where 1 would do",
    ),
    ("W2L1/8", "W2L1/reduction7", r"requires at most 1 kernel launch: yours makes 2"),
    (
        "vector/07",
        "vector/06_vectorized",
        r"requires one of the kernels to have no barrier: yours all have one \(line \d+ of common",
    ),
    (
        "W2L3/2",
        "W2L3/transpose_v1",
        r"requires no bank conflicts: a shared load in line \d+ takes 32 wavefronts where 1 would do",
    ),
    (
        "W2L3/1",
        "W2L3/transpose_v0",
        r"requires coalesced requests: a store in line \d+ touches 32 sectors where 4 would do",
    ),
    ("W1L1/3", "W1L1/vector_add2", r"requires a grid that just fills the GPU, 8,192 threads: yours has 32,768"),
    (
        "q4_gemm/08",
        "q4_gemm/07_repacked",
        r"requires 90 % of the bytes to be brought by asynchronous copies: yours bring 0 %; line \d+ loads",
    ),
]


@pytest.mark.parametrize("asked, judged, said", JUDGED, ids=lambda one: str(one)[:24])
def test_the_counts_of_a_stage_that_lacks_the_idea_are_complained_of(asked, judged, said):
    exercise, other = exercises.find(asked), ladders.find(judged)
    counts = ideas.Counts.read(cpu_device.path_of(other), other.ladder.analyze, "")
    found = ideas.complaints(exercise, counts)
    assert any(re.search(said, line) for line in found), found


@each
def test_one_thread_never_shows_the_idea(exercise):
    """The stage's own counts, as if one thread, or one for each block, had made each of its requests."""
    for grid in ("1x1x1", None):
        counts = ideas.stored(exercise)
        for row in counts.sums + counts.rows:
            row.update(block="1x1x1", grid=grid or row["grid"], lanes=row["requests"])
        found = ideas.complaints(exercise, counts)
        assert any("threads" in line or "lanes of a warp" in line for line in found), found


def test_a_launch_of_which_one_block_does_the_work_is_seen_through():
    exercise = exercises.find("W1L1/2")
    counts = ideas.stored(exercise)
    total = sum(counts.total("bytes", kind) for kind in ("global load", "global store"))
    counts.busiest_bytes = total / 256
    assert any("one thread of yours moves 0.39 % of all bytes" in line for line in ideas.complaints(exercise, counts))


def test_kernels_that_the_counters_did_not_see_have_no_idea():
    exercise = exercises.find("W1L1/2")
    counts = ideas.stored(exercise)
    for row in counts.sums:
        row["distinct_bytes"] = "4"
    assert any("loaded by your kernels while they are counted" in one for one in ideas.complaints(exercise, counts))


def test_a_grid_fills_a_larger_gpu_too():
    exercise = exercises.find("W1L1/3")
    counts = ideas.stored(exercise)
    counts.elsewhere = (6, 12288)
    assert not ideas.complaints(exercise, counts)
    counts.elsewhere = (6, counts.threads)
    (said,) = ideas.complaints(exercise, counts)
    assert "one with 6 multiprocessors holds 12,288 threads, and your launcher starts 8,192 there" in said


def test_the_values_of_the_counted_run_are_judged(tmp_path):
    exercise = exercises.find("05")
    work = types.SimpleNamespace(
        exercise=exercise, file=tmp_path / "x.cuh", inside=[], path=tmp_path, built=lambda kind: tmp_path / kind
    )
    work.file.write_text("")
    kernel = {"static_shared": 0, "dynamic_shared": 0, "busiest_thread_bytes": 1}

    def run(verdict, command, **environment):
        assert environment["LADDER_RUNNER"].endswith("/counts") and tmp_path / "judge" in command
        (tmp_path / "analysis.json").write_text(json.dumps({"hazards": [], "kernels": [kernel]}))
        shutil.copy(cpu_device.path_of(exercise.stage), tmp_path / "analysis.csv")
        (tmp_path / "analysis_values.csv").write_text(f"verdict\n{verdict}\n")
        return 1, f"{exercise.stage.name} {verdict}: 64 x 8192: 3 of 524288 elements wrong"

    said = [grade.analyze(work, 1, functools.partial(run, verdict))[2] for verdict in ("PASS", "FAIL")]
    assert said == ["", "64 x 8192: 3 of 524288 elements wrong"]


# --- The commands ------------------------------------------------------------------------------------------------


def test_a_skeleton_is_written_once_and_never_over_a_file(mine, capsys):
    grade.write_skeleton(given("05"))
    assert "line " in capsys.readouterr().out
    file = mine / "05_warp_shuffle.cuh"
    file.write_text("mine")
    with pytest.raises(ladders.Unusable, match="there already"):
        grade.write_skeleton(given("matrix/05"))
    assert file.read_text() == "mine"
    grade.write_skeleton(given("W2L1/5"))
    assert (mine / "W2L1/reduction5.cu").is_file()


def test_hints_come_one_after_the_other_and_the_last_stays(mine, capsys):
    for number in (1, 2, 3, 3):
        grade.hint(given("05"))
        assert capsys.readouterr().out.startswith(f"Hint {number} of 3:")


def test_the_table_says_what_is_done_tried_and_open(mine, capsys):
    grade.write_skeleton(given("05"))
    grade.write_skeleton(given("06"))
    done = exercises.find("05")
    exercises.remember({**exercises.progress(), "grades": {done.id: [grade.digest(done.file.read_text()), ""]}})
    capsys.readouterr()
    grade.print_table()
    said = capsys.readouterr().out
    assert re.search(r"^  done +S=05 ", said, re.M) and re.search(r"^  tried +S=06 .*: not graded yet", said, re.M)
    assert re.search(r"^  open +S=07 ", said, re.M) and f"1 of {len(COURSE)} done, 1 tried" in said
    assert "Next: make exercise S=W1L1/1" in said
    done.file.write_text("changed")
    assert grade.state(done, exercises.progress()) == ("tried", "not graded since it was changed")


def test_lists_of_exercises_are_columns(capsys):
    """A long name, as precision/04, moves no title."""
    grade.print_table()
    lists = [exercises.listing().splitlines(), capsys.readouterr().out.split("\n")[: len(COURSE)]]
    for lines in lists:
        titles = {line.index(one.title) for line, one in zip(lines, COURSE)}
        assert len(lines) == len(COURSE) and len(titles) == 1


def test_who_reads_only_the_first_lines_gets_no_traceback():
    said = run("bash", "-c", f"'{sys.executable}' -m ladder solution 05 | head -1; echo $PIPESTATUS")
    assert re.fullmatch(r"// 05_warp_shuffle: .*\n(0|141)\n", said.stdout) and said.stderr == ""


def test_the_solution_is_the_stage(mine, capsys):
    grade.solution(given("05"))
    assert source(exercises.find("05")) in capsys.readouterr().out


def test_without_a_file_grade_says_how_to_get_one(mine):
    with pytest.raises(ladders.Unusable, match="make exercise S=05 writes it"):
        grade.run(given("05"))


def test_watch_grades_at_every_save_and_at_no_other_time(mine, monkeypatch, capsys):
    exercise = exercises.find("05")
    grade.write_skeleton(given("05"))
    graded, looks = [], iter(range(6))

    def sleep(seconds):
        look = next(looks)
        if look == 3:
            exercise.file.write_text("saved")
        if look == 5:
            raise KeyboardInterrupt

    monkeypatch.setattr(grade, "grade_and_remember", lambda one: graded.append(one.file.read_text()))
    monkeypatch.setattr(grade.time, "sleep", sleep)
    with pytest.raises(KeyboardInterrupt):
        grade.watch(given("05"))
    assert graded == [grade.skeleton(exercise), "saved"]


@pytest.mark.parametrize("asked", full_but(["11", "no_such_stage", "vector"], "11"))
def test_what_is_no_exercise_is_a_bad_command_line(asked):
    done = make("exercise", f"S={asked}")
    assert done.returncode == 2 and "S=" in done.stderr and "Traceback" not in done.stderr


def test_a_gpu_that_cannot_be_used_fails_nothing(mine, monkeypatch, capsys):
    def missing():
        raise ladders.Unusable("nvcc is needed")

    monkeypatch.setattr(machine, "gpu", lambda: "NVIDIA H200")
    monkeypatch.setattr(machine, "find_nvcc", missing)
    grade.time_on_gpu(exercises.find("05"))
    assert capsys.readouterr().out == "No time on the GPU: nvcc is needed\n"


def test_a_gpu_s_time_stands_beside_the_stage_s_own(mine, monkeypatch, capsys, tmp_path):
    times = iter([12.5, 11.9])

    def start(self, command, **environment):
        (path,) = [command[place + 1] for place, word in enumerate(command) if word == "--csv"]
        path.write_text(f"stage,microseconds\nx,{next(times)}\n")
        return 0, ""

    grade.write_skeleton(given("05"))
    capsys.readouterr()
    monkeypatch.setattr(machine, "gpu", lambda: "NVIDIA H200")
    monkeypatch.setattr(machine, "find_nvcc", lambda: "nvcc")
    monkeypatch.setattr(machine, "make", lambda *words, quiet=False: (0, ""))
    monkeypatch.setattr(programs.Programs, "run", start)
    monkeypatch.setattr(programs, "make", lambda waiting, *words, before: (0, ""))
    monkeypatch.setattr(grade.stage, "target", lambda one: ("", "05*/graded", ""))
    monkeypatch.setattr(grade, "built_for_gpu", lambda one: tmp_path / "program")
    grade.time_on_gpu(exercises.find("05"))
    assert capsys.readouterr().out == "On this NVIDIA H200: yours 12.50 µs, the stage's 11.90 µs.\n"


def test_the_students_folder_is_not_tracked():
    assert "/my/" in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()


# --- What goes wrong around a grade ---------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding, line", [("latin-1", 3), ("utf-16", 1), ("utf-16-le", 1)])
def test_a_file_in_another_encoding_gets_a_sentence(mine, encoding, line):
    exercise = exercises.find("05")
    text = f"// one\n// two\n// blöcke\n{source(exercise)}"
    file = exercises.folder_of(exercise.file) / exercise.file.name
    file.write_bytes(text.encode(encoding, errors="replace"))
    report = grade.grade(exercise, file)
    assert report.build == [f"line {line}: the file is not text in UTF-8; let your editor save it with this encoding"]
    assert grade.state(exercise, exercises.progress()) == ("tried", "not graded yet")
    file.write_text(text, encoding="utf-8")
    assert not exercises.wrong_encoding(file)


def test_a_file_named_my_gets_a_sentence(mine):
    mine.write_text("")
    for job in (grade.write_skeleton, grade.hint):
        with pytest.raises(ladders.Unusable, match="my is a file, and must be a folder"):
            job(given("W2L1/5"))
    with pytest.raises(ladders.Unusable, match="there is no"):
        grade.run(given("05"))


@pytest.mark.parametrize(
    "text", ["", "[]", "null", '{"hints": 3}', '{"grades": {"matrix/05_warp_shuffle": 1}}', '{"quiz": {}}', "\0"]
)
def test_broken_progress_is_begun_anew(mine, text, capsys):
    mine.mkdir()
    (mine / ".progress.json").write_text(text, encoding="utf-8")
    assert exercises.progress() == {"hints": {}, "grades": {}, "quiz": []}
    grade.print_table()
    grade.hint(given("05"))
    assert exercises.progress()["hints"] == {"matrix/05_warp_shuffle": 1}


def test_two_graders_lose_nothing_of_what_the_other_one_notes(mine):
    def note(number):
        with exercises.changed_progress() as known:
            time.sleep(0.01)
            known["quiz"].append(str(number))

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(note, range(16)))
    assert sorted(map(int, exercises.progress()["quiz"])) == list(range(16))


def test_one_grader_at_a_time_is_at_an_exercise(monkeypatch, tmp_path):
    monkeypatch.setattr(workplace, "ROOT", tmp_path)
    at_work = []

    def work(number):
        with workplace.Workplace.of(exercises.find("05"), tmp_path / "05_warp_shuffle.cuh"):
            at_work.append(number)
            time.sleep(0.02)
            assert at_work == [number]
            at_work.remove(number)

    monkeypatch.setattr(workplace.results, "shown", str)
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        list(pool.map(work, range(3)))


def test_small_letters_are_noticed():
    done = make("grade", "s=05")
    assert done.returncode == 2 and "s=05: names are capitals; say S=05" in done.stderr


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_lines_fit_the_terminal_and_have_colour_there(mine, monkeypatch, columns):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.delenv("NO_COLOR", raising=False)
    exercise = exercises.find("05")
    exercises.folder_of(exercise.file)
    exercise.file.write_text(source(exercise), encoding="utf-8")
    grade.print_report(exercise, grade.Report(values=["this is a sentence of many words " * 9]), 1)
    said = terminal.getvalue()
    assert "\033[1;31mnot yet:\033[0m" in said
    lines = [re.sub(r"\033\[[\d;]*m", "", line) for line in said.splitlines()]
    assert max(len(line) for line in lines if "/" not in line) <= min(columns, grade.WIDTH)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\033" not in grade.coloured("passed", "green")


def test_a_program_that_computes_too_long_is_ended(monkeypatch):
    monkeypatch.setattr(programs, "SECONDS", 1)
    begun = time.monotonic()
    assert programs.Programs().run(["sh", "-c", "while :; do :; done"])[0] == 124
    assert programs.Programs().run(["sleep", "100"])[0] == 124
    assert time.monotonic() - begun < 60


# --- What a grade says, and how it leads on ----------------------------------------------------------------------


def printed(capsys, exercise, report):
    exercise.file.parent.mkdir(parents=True, exist_ok=True)
    if not exercise.file.is_file():
        exercise.file.write_text(source(exercise), encoding="utf-8")
    grade.print_report(exercise, report, 1)
    return capsys.readouterr().out


@pytest.mark.parametrize("kind", ["build", "values", "hazards", "ideas", "rules"])
def test_every_rejection_ends_with_the_command_that_shows_ones_own_kernel(mine, capsys, kind):
    exercise = exercises.find("W2L1/2")
    said = printed(capsys, exercise, grade.Report(**{kind: ["requires something"]})).splitlines()
    assert said[-1] == f"Your kernel line by line: make analyze S={exercise.file}" and "make try S=W2L1/2" in said[-2]


def test_a_comment_that_is_left_over_is_a_reminder(mine, capsys):
    exercise = exercises.find("05")
    exercise.file.parent.mkdir()
    exercise.file.write_text(source(exercise) + "// YOUR CODE: done\n", encoding="utf-8")
    said = printed(capsys, exercise, grade.Report())
    assert "passed" in said and "A reminder: a comment YOUR CODE still stands in line" in said
    exercise.file.write_text(grade.skeleton(exercise), encoding="utf-8")
    assert "To do, as the comments say:" in printed(capsys, exercise, grade.Report(values=["no"]))


def test_after_a_pass_ones_own_counts_stand_beside_the_stage_s(mine, capsys):
    exercise = exercises.find("05")
    counts = ideas.Counts.read(cpu_device.path_of(exercise.stage), exercise.given, "")
    said = printed(capsys, exercise, grade.Report(counts=counts))
    assert re.search(r"yours +stage\n", said) and re.search(r"barriers of a block +1 +1\n", said)


def test_few_hazards_are_shown_and_the_others_counted():
    assert grade.few(["a", "b"]) == ["a", "b"]
    assert grade.few(list("abcd"))[2].startswith("and 2 more of the kind")


def test_a_file_is_named_by_its_line_and_others_from_the_root(mine):
    exercise = exercises.find("05")
    said = f"at ../../../../{exercise.file}:7, {ROOT}/common/launch.h:3 and ../../common/check.cpp:9"
    assert programs.shown_paths(said, exercise.file) == "at line 7, common/launch.h:3 and common/check.cpp:9"


def test_a_program_that_hangs_ends_the_others():
    started = programs.Programs()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        long = pool.submit(started.run, ["sleep", "60"])
        hangs = pool.submit(started.run, ["bash", "-c", f"sleep 0.2; echo {programs.HANGS}"])
        assert hangs.result() == (0, f"{programs.HANGS}\n") and long.result(timeout=20) == (124, "")
    assert started.run(["true"]) == (124, ""), "nothing is started any more"


def test_a_wait_is_not_silent():
    said = io.StringIO()
    with programs.Waiting(said, patience=0.05) as waiting:
        waiting.now = "building: 3 files"
        time.sleep(0.3)
    assert said.getvalue().startswith("building: 3 files, 0 s\n")
    quick = io.StringIO()
    with programs.Waiting(quick):
        pass
    assert quick.getvalue() == ""


def test_start_leads_from_one_exercise_to_the_next(mine, monkeypatch, capsys):
    """Each save is graded; the second one of the first exercise passes."""
    graded = []

    def grade_it(exercise):
        graded.append(exercise.asked)
        if len(graded) == 4:
            raise KeyboardInterrupt
        passed = graded.count(exercise.asked) == 2
        known = exercises.progress()
        known["grades"][exercise.id] = [grade.digest(exercise.file.read_text()), "" if passed else "no"]
        exercises.remember(known)
        return passed

    def sleep(seconds):
        newest = max(mine.rglob("*.cu*"), key=lambda path: path.stat().st_mtime_ns)
        os.utime(newest, ns=(0, newest.stat().st_mtime_ns + 1))

    monkeypatch.setattr(grade, "grade_and_remember", grade_it)
    monkeypatch.setattr(grade.time, "sleep", sleep)
    with pytest.raises(KeyboardInterrupt):
        grade.begin(given(""))
    assert graded == ["W1L1/1", "W1L1/1", "W1L1/2", "W1L1/2"]
    said = capsys.readouterr().out
    assert "vector_add1.cu in your editor" in said and "lectures/W1L1_first_kernel/README.md" in said


def test_one_s_own_file_is_a_stage_for_the_other_jobs(mine):
    exercise = exercises.find("05")
    for asked in (exercise.file, exercise.file.with_suffix("")):
        assert exercises.of_file(str(asked)) == exercise
    assert exercises.of_file("05") is None and exercises.of_file("") is None
    assert exercises.of_file(str(mine / "other.cu")) is None


def test_a_launch_whose_arguments_are_exchanged_is_named():
    exercise = exercises.find("W1L1/3")
    counts = ideas.Counts.read(cpu_device.path_of(exercise.stage), exercise.given)
    assert ideas.exchanged(exercise, counts) == ""
    for row in counts.sums + counts.rows:
        row["grid"], row["block"] = row["block"], row["grid"]
    assert ideas.exchanged(exercise, counts).startswith(
        "requires a grid of 32 blocks of 256 threads: yours has a grid of 256 blocks of 32"
    )
