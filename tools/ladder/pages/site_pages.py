"""The pages of the site that the tree has in another form: the first page, and a page per exercise that leads the student."""

import os
import re

from ..core import results
from ..core.ladders import ROOT, Unusable
from ..grader import exercises, grade

COMMANDS = ROOT / "COMMANDS.md"
PLAN = re.compile(r"^\| week \|.*\n(?:\|.*\n)+", re.M)
BUTTON = "{ .md-button .md-button--primary }"


def states():
    """{what S= says: done, tried or open}; empty where no file has been graded."""
    known = exercises.progress()
    return {one.asked: grade.state(one, known)[0] for one in exercises.course()} if known["grades"] else {}


def done_of(found):
    done = sum(state == "done" for state in found.values())
    return f"You have done {done} of {len(found)} exercises."


def with_progress(text):
    """The table of all exercises with a column that says which are done; the text itself before the first grade."""
    found = states()
    if not found:
        return text
    text = re.sub(
        r"^\| exercise \| .*\|\n\|---.*\|$",
        lambda head: head.group().replace("|\n", "| yours |\n") + "---|",
        text,
        flags=re.M,
    )
    text = re.sub(
        r"^\| `S=(\S+)` \| .*\|$", lambda row: f"{row.group()} {found.get(row.group(1), '')} |", text, flags=re.M
    )
    return text.replace("\n| exercise | ", f"\n{done_of(found)}\n\n| exercise | ", 1)


def first_page(site):
    """What README.md says before its first section, with a button in front of its picture, and the core's plan."""
    readme = ROOT / "README.md"
    lead = readme.read_text(encoding="utf-8").partition("\n## ")[0]
    plan = PLAN.search((ROOT / "COURSE.md").read_text(encoding="utf-8"))
    picture = re.search(r"^!\[.*\)$", lead, re.M)
    if not plan or not picture:
        raise Unusable("README.md must begin with a picture, and COURSE.md must have the table of the weeks")
    found = states()
    following = next((one for one in exercises.course() if found.get(one.asked, "done") != "done"), None)
    where, said = "exercises/README.md#the-first-one", "Write your first kernel"
    if following:
        where, said = results.shown(following.page), f"Go on with {following.stage.name}"
    elif found:
        where, said = "COURSE.md#advanced", "Go on with the advanced parts"
    head, caption = lead[: picture.start()], lead[picture.end() :]
    progress = f"{done_of(found)}\n\n" if found else ""
    text = (
        f"{head}\n[{said}]({where}){BUTTON}\n\n{progress}{picture.group()}\n{caption}\n## The plan\n\n{plan.group()}\n"
        "After the core you choose among the [advanced parts](COURSE.md#advanced). [What you need](README.md#what-it-needs), "
        "and three [commands to start with](README.md#start), have a page of their own.\n"
    )
    return "---\nhide:\n  - toc\n---\n\n" + site.translated(readme, text)


def folded(title, text):
    return f"<details><summary>{title}</summary>\n\n{text}\n\n</details>\n"


def hints_of(exercise):
    """Each hint folded inside of the one before, since make hint gives one after the other."""
    text = ""
    for place in range(len(exercise.hints), 0, -1):
        text = folded(f"Hint {place} of {len(exercise.hints)}", f"{exercise.hints[place - 1]}\n\n{text}".rstrip())
    return text


def exercise_page(site, exercise, title_of):
    """The commands, the task, what the grader requires, the skeleton, the way back and on, the hints, the solution."""
    course, page, stage, asked = exercises.course(), exercise.page, exercise.stage, exercise.asked
    place, state = course.index(exercise), states().get(asked)

    def linked(target, said=""):
        return f"[{said or title_of(target)}]({os.path.relpath(target, page.parent)})"

    ways = [f"Lecture: {linked(exercise.lecture)}"]
    if stage.page != exercise.lecture:
        ways.append(f"Stage: {linked(stage.page)}, which leads to the exercise and then explains the solution")
    if after := course[place + 1 : place + 2]:
        ways.append(f"Next: {linked(after[0].page, f'{after[0].stage.name}, {after[0].title}')}")
    ways.append(f"{linked(exercises.FOLDER / 'README.md', 'All exercises')}, and what the grader checks")
    source = stage.source.read_text(encoding="utf-8").strip("\n")
    solution = f"```cuda\n{source}\n```\n\n`make solution S={asked}` prints it, and {linked(stage.page)} explains it."
    lines = [
        f"# {stage.name}: {exercise.title}",
        f"Exercise {place + 1} of {len(course)}{f', **{state}**' if state else ''}. {linked(COMMANDS, 'What the commands need')}.",
        f"```bash\nmake exercise S={asked}    # writes the skeleton to my/\nmake grade S={asked}       # grades it\n```",
        exercise.task,
        "## What the grader requires",
        f"The grader counts on {grade.ladder_words(exercise)}.",
        "\n".join(f"- {wish}" for wish in grade.wanted(exercise)),
        "## The skeleton",
        f"```cuda\n{exercise.skeleton([]).strip(chr(10))}\n```",
        "## Where it belongs",
        "\n".join(f"- {way}" for way in ways),
        "## Hints",
        f"`make hint S={asked}` prints them one after the other.",
        hints_of(exercise),
        *([] if stage.is_left_out else ["## Solution", folded("Solution", solution)]),
    ]
    return site.translated(page, "\n\n".join(lines))
