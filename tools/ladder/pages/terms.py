"""Where the pages use a word of the glossary for the first time, and whether they link it there.

python3 -m ladder terms names the places without a link; with --write it puts the links in.
"""

import os
import re

from ..core import ladders, markers, results
from ..core.ladders import Unusable

GLOSSARY = "GLOSSARY.md"
PAGES = re.compile(
    r"(README|COURSE|COMMANDS|DEBUGGING|FAQ)\.md|(lectures|assignment\d)/.*"
)  # from the root; others are no part of the course
TERMS = {  # the place in the glossary: the word as it stands in a sentence
    "sm": r"SMs?",
    "lane": r"lanes?|warps?",
    "barrier": r"barriers?",
    "shuffle": r"shuffles?",
    "cluster": r"clusters?",
    "grid-barrier": r"barriers? over the grid|cooperative launch(?:es)?",
    "fence": r"fences?|atomic operations?",
    "dependent-launch": r"dependent launch(?:es)?",
    "bulk-copy": r"bulk cop(?:y|ies)|mbarriers?",
    "cp-async": r"cp\.async",
    "dp4a": r"dp4a",
    "sector": r"sectors?|coalesced",
    "bank": r"bank conflicts?|banks?",
    "wavefront": r"wavefronts?",
    "local": r"local memory",
    "policy": r"cache polic(?:y|ies)|evict_first|evict_last",
    "latency": r"latency",
    "occupancy": r"occupancy",
    "critical-path": r"critical path",
    "roofline": r"roofline",
    "tensor-core": r"tensor cores?",
    "datasheet": r"datasheet",
    "copy-kernel": r"copy kernel",
    "cold-cache": r"cold cache",
    "graph": r"CUDA graphs?",
    "oracle": r"oracle",
    "race": r"races?",
}
NO_PROSE = re.compile(
    r"^```.*?^```|<!-- (?:table|figures)\S*:begin.*?:end -->|<!--.*?-->|^#.*?$|^\|.*?$|!?\[[^\]]*\]\([^)]*\)|`[^`\n]*`"
    r"|^<.*?$",
    re.MULTILINE | re.DOTALL,
)


def arguments(parser):
    parser.add_argument("--write", action="store_true", help="put the links in")


def prose(text):
    """The text with blanks in place of code, tables, headings, comments and links, so that places stay the same."""
    return NO_PROSE.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), text)


def uses(words):
    """{place in the glossary: (where, the word)} of first uses. In "barrier over the grid" no barrier is used: of words
    that overlap the longer one counts."""
    found = {}
    every = [
        (use.start(), -use.end(), use.group(), place)
        for place, pattern in TERMS.items()
        for use in re.finditer(rf"(?<![\w-])(?:{pattern})(?![\w-])", words)
    ]
    free = 0
    for where, end, word, place in sorted(every):
        if where >= free:
            found.setdefault(place, (where, word))
            free = -end
    return found


def unlinked(text):
    """[(where, the word, its place in the glossary)] of first uses without a link, the last one first."""
    found = []
    for place, (where, word) in uses(prose(text)).items():
        if not 0 <= text.find(f"{GLOSSARY}#{place})") < where:
            found.append((where, word, place))
    return sorted(found, reverse=True)


def linked(text, glossary):
    """The text with a link at each of these places; glossary: the way there."""
    for where, word, place in unlinked(text):
        text = f"{text[:where]}[{word}]({glossary}#{place}){text[where + len(word) :]}"
    return text


def pages():
    return [page for page in markers.pages() if PAGES.fullmatch(str(page.relative_to(ladders.ROOT)))]


def run(given):
    lacking = []
    for page in pages():
        text = page.read_text(encoding="utf-8")
        found = unlinked(text)
        lacking += [f"{results.shown(page)}: {word} (#{place})" for _, word, place in found]
        if given.write and found:
            page.write_text(linked(text, os.path.relpath(ladders.ROOT / GLOSSARY, page.parent)), encoding="utf-8")
    if lacking and not given.write:
        raise Unusable("\n  ".join(["used before the glossary is linked; --write links them:", *lacking]))
