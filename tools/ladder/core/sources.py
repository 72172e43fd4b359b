"""The C++ that make writes from the folders of a ladder: the list of its stages, its description, the list of its mutants.

They go to build/generated/<ladder's path>/, and are touched only where they change, so that nothing is compiled anew.
Every make starts this module by itself, python3 -m ladder.core.sources, since to import all of the jobs takes longer.
"""

import re
import sys

from . import editor, ladders
from .ladders import ROOT, Unusable

GENERATED = ROOT / "build/generated"
MADE = "// Made by make from {}. Do not edit.\n"


def require_names(path, name, namespace):
    """A stage is found by its folder, so the names in its source must agree with it."""
    text = path.read_text(encoding="utf-8")
    for wanted in (f"namespace {namespace} {{", f'"{name}"'):
        if wanted not in text:
            raise Unusable(
                f"{path.relative_to(ROOT)} must have {wanted}, so that it agrees with its place; see CONTRIBUTING.md"
            )


def operators(stage):
    """The headers of operators that its source includes."""
    return re.findall(r'^#include "(common/operators/\S+)"', stage.source.read_text(encoding="utf-8"), re.M)


def named(stage):
    """The stage in the list; of one whose kernel is left out, a stage that refuses every input."""
    if not stage.is_left_out:
        return f"{stage.namespace}::stage"
    kind = re.search(r"^inline const (Stage<\w+>)", stage.source.read_text(encoding="utf-8"), re.M).group(1)
    said = f"the kernel is an exercise; make exercise S={stage.asked}"
    refuses = f'{{0, [](const Shape&) {{ return "{said}"; }}}}'
    return f'{kind}{{"{stage.name}", "{said}", nullptr, {refuses}}}'


def stages(ladder):
    """stages.cuh: every stage of the ladder, in order."""
    for stage in ladder.stages:
        require_names(stage.source, stage.name, f"ladder::{ladder.namespace}::{stage.namespace}")
    included = [own.relative_to(ROOT) for stage in ladder.stages if not stage.is_left_out for own in [stage.source]]
    included += [header for stage in ladder.stages if stage.is_left_out for header in operators(stage)]
    lines = [
        MADE.format(f"the folders of {ladder.path}"),
        "#pragma once",
        "#define LADDER_ALL_STAGES",
        "#include <vector>",
        "",
    ]
    lines += [f'#include "{path}"' for path in dict.fromkeys(included)]
    lines += ["", f"namespace ladder::{ladder.namespace} {{", ""]
    lines += ["inline const std::vector<AnyStage> stages = {"]
    lines += [f"    {named(stage)}," for stage in ladder.stages]
    return "\n".join([*lines, "};", "", f"}}  // namespace ladder::{ladder.namespace}", ""])


def mutants(ladder):
    """mutants.cuh: every known-wrong kernel of the ladder."""
    for name in ladder.mutants:
        require_names(ladder.folder / f"mutants/{name}.cuh", name, f"ladder::{ladder.namespace}::mutants::{name}")
    lines = [MADE.format(f"the files of {ladder.path}/mutants"), "#pragma once", "#include <vector>", ""]
    lines += [f'#include "{ladder.path}/mutants/{name}.cuh"' for name in ladder.mutants]
    lines += ["", f"namespace ladder::{ladder.namespace}::mutants {{", ""]
    lines += ["inline const std::vector<AnyMutant> all = {"]
    lines += [f"    {name}::mutant," for name in ladder.mutants]
    return "\n".join([*lines, "};", "", f"}}  // namespace ladder::{ladder.namespace}::mutants", ""])


def description(ladder):
    """ladder.cpp: what ladder.json says to the programs of the ladder."""
    given = ", ".join(f'{{"{name}", {value}}}' for name, value in ladder.main.items())
    on_cpu = ", ".join(f'{{"{name}", {value}}}' for name, value in ladder.cpu_device.items())
    unit = "".join(f', "{name}", "{parameter}"' for name, parameter in (ladder.unit or {"": ""}).items())
    labels = ", ".join(f'{{"{label}", "{stage}"}}' for label, stage in ladder.labels.items())
    return (
        MADE.format(f"{ladder.path}/ladder.json")
        + '#include "common/description.h"\n\n'
        + f'const ladder::Description ladder::description = {{"{ladder.id}", "{ladder.baseline}", '
        + f"{{{given}}}{unit}, {{{on_cpu}}}, {{{labels}}}}};\n"
    )


def write():
    """All of them, for all ladders."""
    made = {}
    for ladder in ladders.all_ladders():
        made[ladder.path / "ladder.cpp"] = description(ladder)
        made[ladder.path / "id.txt"] = f"{ladder.id}\n"  # for mk/stage.mk
        if not ladder.named_stages:
            made[ladder.path / "stages.cuh"] = stages(ladder)
        if ladder.mutants:
            made[ladder.path / "mutants/mutants.cuh"] = mutants(ladder)
    for name, text in made.items():
        path = GENERATED / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    try:
        write()
        editor.write()
    except Unusable as error:
        sys.exit(f"sources: {error}")
