"""The markers of the pages: comments that say where a table stands, and what a stage's page says of its stage.

    <!-- table:NAME:begin WORD... KEY=VALUE... -->      what stands in between is made by make readme
    <!-- table:NAME:end -->
    <!-- figures:begin KEY=VALUE... -->                 the figures of the page's own stage, or of its own ladder
    <!-- figures:end -->
    <!-- stage idea="..." change="..." removes="..." -->   for the lists of stages on other pages

NAME is a table of the ladder in whose folder the page lies; on another page the ladder stands before it: matrix/counters.
python3 -m ladder readme --names prints every NAME with its words and values. Where input=NAME is one, the counters are
those of a profile of ladder.json, not of the main input. gpu=h100x4 takes the results of that GPU. What
cpu_device claims of a stage's accesses is WANTED below.

A page of several stages names the stage first: <!-- stage reduction5 change="..." -->.
"""

import math
import re
from dataclasses import dataclass

from . import ladders, results
from .ladders import Unusable

# The last one is python/repository/, which is there while pip makes a source distribution.
ELSEWHERE = {".git", ".venv", "build", "node_modules", "repository"}
BLOCK = re.compile(r"^<!-- (?:table:([\w/-]+)|(figures)):(begin|end)(.*?) -->$", re.MULTILINE)
STAGE = re.compile(r"^<!-- stage\b(.*?)-->$", re.MULTILINE | re.DOTALL)
WORD = re.compile(r'(\w+)="([^"]*)"|(\w+)=(\S*)|(\S+)')
CLAIMS = ("loads", "stores", "asked", "barriers", "shuffles")
OF_SHARED_LOADS = ("lanes", "conflicts")
WANTED = (
    "what its kernel asks of memory on the input of make analyze, for example loads=16x16 stores=16x16 asked=8 "
    "barriers=1 shuffles=5: bytes per lane x sectors per request of its global loads and stores (several with commas), "
    "bytes that its loads ask for an element, barriers of a block (1x8 where each of its 8 rows takes one), shuffles of a warp"
)


@dataclass(frozen=True)
class Block:
    """One place for a table: its words and values as in the marker, and where its inside begins and ends."""

    page: object
    name: str
    words: list
    values: dict
    start: int
    end: int

    @property
    def where(self):
        return f"{results.shown(self.page)}: {written(self.name)}"


def written(name, kind="begin"):
    return f"<!-- {name if name == 'figures' else f'table:{name}'}:{kind} -->"


def words_of(text):
    """(words, {key: value}) of a marker's contents."""
    words, values = [], {}
    for quoted_key, quoted, key, value, word in WORD.findall(text):
        if word:
            words.append(word)
        else:
            values[quoted_key or key] = " ".join(quoted.split()) if quoted_key else value
    return words, values


def blocks(page, text):
    """The blocks of a page; Unusable if a marker lacks its other half."""
    found, opened = [], None
    for marker in BLOCK.finditer(text):
        name, kind = marker.group(1) or marker.group(2), marker.group(3)
        where = f"{results.shown(page)}: {written(name, kind)}"
        if kind == "begin":
            if opened:
                raise Unusable(f"{where} comes before {written(opened[0], 'end')}")
            opened = (name, *words_of(marker.group(4)), marker.end())
        elif not opened or opened[0] != name:
            raise Unusable(f"{where} has no {written(name)} before it")
        else:
            found.append(Block(page, *opened, marker.start()))
            opened = None
    if opened:
        raise Unusable(f"{results.shown(page)}: {written(opened[0])} has no {written(opened[0], 'end')}")
    return found


def stage_of(ladder, block):
    """The stage of a block: the one that it names, or that of the page; None on the ladder's own page."""
    name = block.words[0] if block.words else block.page.parent.name
    stage = next((stage for stage in ladder.stages if stage.name == name), None)
    if block.words and not stage:
        raise Unusable(f"{block.where}: there is no stage {name} in {ladder.id}")
    return stage


def pages():
    """Every page of the tree."""
    root = ladders.ROOT
    return sorted(path for path in root.rglob("*.md") if not ELSEWHERE & set(path.relative_to(root).parts))


def text_of(page):
    return page.read_text(encoding="utf-8") if page.is_file() else ""


def is_of(stage, words):
    """Whether a marker on the stage's page belongs to the stage: it names the stage, or the page has no other."""
    return words[:1] == [stage.name] or (not words and stage.folder != stage.ladder.folder)


def said(stage):
    """{"idea": ..., "change": ..., "removes": ...} of the stage's marker; Unusable if there is none."""
    for marker in STAGE.finditer(text_of(stage.page)):
        words, values = words_of(marker.group(1))
        if is_of(stage, words):
            return values
    name = "" if stage.folder != stage.ladder.folder else f" {stage.name}"
    example = f'<!-- stage{name} idea="..." change="..." removes="..." -->'
    raise Unusable(
        f"{results.shown(stage.page)} says nothing of {stage.name} to the lists of stages: it needs {example}"
    )


def claims(stage):
    """What the page claims about the stage's counters, as the words of its marker; Unusable if it claims nothing."""
    for block in blocks(stage.page, text_of(stage.page)):
        if block.name == "cpu_device" and is_of(stage, block.words):
            if set(CLAIMS) <= set(block.values):
                return block.values
    raise Unusable(f"{results.shown(stage.page)}: {written('cpu_device')} of {stage.name} must say {WANTED}")


def pairs(claim):
    """The (bytes per lane, sectors per request) of a claim: "4x32,2x11.75" -> [(4, 32), (2, 11.75)]."""
    each = [pair.split("x") for pair in claim.split(",") if pair]
    return [(int(lane), float(sectors) if "." in sectors else int(sectors)) for lane, sectors in each]


def is_number(claim):
    return bool(re.fullmatch(r"[0-9.]+", claim or ""))


def total(claim):
    """ "1x8+1" -> 9: one for each of 8 rows, and one more."""
    return sum(math.prod(map(float, term.split("x"))) for term in claim.split("+"))
