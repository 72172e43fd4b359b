"""Figures in sentences: computed from the stored files, and written or checked by make readme like the tables.

    takes <!--= us 05 -->181.27<!--/--> µs, <!--= less(us 06, us 05) -->27.5<!--/--> % less; it is
    <!--= us 05 < us 04 ? faster : slower -->slower<!--/-->

What stands between the two comments is made; how it stands says how it is made: 181.27, 181 and 6,291,456 keep their
digits; two, twice, half, "a third" or "nine tenths" become the nearest such word; the name of a stage may be its number.
A marker never begins a line or a list item, where Markdown would end the paragraph. Its parts:

    CELL     COLUMN [ROW ...] [without ROW ...] [in FILE] [KEY=VALUE ...] [ROWSxCOLS]
             COLUMN  of a CSV, us and *_us for microseconds, copy for copy_microseconds; or a counter of Nsight Compute
                     by its short name in counters.py, of the stage's main profile (in one_row: of another one)
             ROW     a stage by name or number, with its ladder before it where the page has another: vector/05; or what
                     stands in the column stage, competitor or variant, else in the first one. No ROW: all of them
             FILE    main if not said; controls, by_columns, ...; header/peers_forward; of another ladder vector/main
             KEY=VALUE, 16384x4096   the input, where a file has several; the ladder's main one if not said
             gpu=h100x4   of that GPU
    EXPR     CELL, 1.5, + - * / ( ), and of two values less(a, b), more(a, b): by how many percent a is less, more than b;
             of several min, max, sum, mean, geomean, count, lowest, highest (the latter two: the name of the row);
             round(a, 10) for "about 180"
    each EXPR   inside of min, max, geomean, count, all: once for every input of the file; count(each us a < us b) counts
                inputs, all(each us a < us b) ? ... is a comparison; of two comparisons each (us a < us b and ...);
                by=KEY,KEY says which columns make an input, if not the ladder's or those before the name
    EXPR < EXPR [and ...] ? WORDS : WORDS   also <= > >=; near(a, b, 1) within 1 %; lowest(us) is 05 06, one of these

After the expression or at the end "; in FILE KEY=VALUE" is said for all cells of the marker; <!--; in FILE KEY=VALUE --> on a line of its own is
that for all markers below it on the page.
"""

import ast
import contextlib
import operator
import re
import statistics
from dataclasses import dataclass, replace

from ..core import ladders, results
from ..core.ladders import Unusable
from ..measure import counters

PLACE = re.compile(  # code is skipped: in it a marker is an example
    r"^ *(?P<fence>```|~~~).*?^ *(?P=fence)|(?P<tick>`+)(?!`)(?:(?!\n\n).)+?(?<!`)(?P=tick)(?!`)"
    r"|<!--=(?P<asked>.*?)-->(?P<stands>(?:(?!<!--|\n\n).)*)<!--/-->|<!--;(?P<defaults>.*?)-->|(?P<stray><!--[=/])",
    re.MULTILINE | re.DOTALL,
)
PARTS = re.compile(
    r"(?P<expression>[^?;]+)(?:;(?P<rows>[^?;]+))?(?:\?(?P<yes>.+?) : (?P<no>[^;]+))?(?:;(?P<options>.+))?"
)
BEGINS_A_LINE = re.compile(r"(?:^|\n)[\s>]*(?:(?:[-*+]|\d+[.)])\s+)?$")
BLOCK_INSIDE = re.compile(r"\n\s*(?:[-+*>#|:=]|\d+[.)]\s)")  # a list, a quotation: where a line begins so, it is one
TOKEN = re.compile(r'[^\s(),"]*"[^"]*"|\w+=[^\s(),"]+(?:,[^\s(),"]+)*|[(),]|[^\s(),]+')
NAMES = ("stage", "competitor", "variant")
SHORT_COLUMNS = {"us": "microseconds", "copy": "copy_microseconds", "ms": "milliseconds"}
INTEGERS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty"
).split()
TIMES = ["never", "once", "twice", *(f"{integer} times" for integer in INTEGERS[3:])]
SHARES = {
    **{"half": 1 / 2, "a third": 1 / 3, "a quarter": 1 / 4, "a fifth": 1 / 5, "a sixth": 1 / 6, "a seventh": 1 / 7},
    **{
        "an eighth": 1 / 8,
        "a ninth": 1 / 9,
        "a tenth": 1 / 10,
        "two thirds": 2 / 3,
        "two fifths": 2 / 5,
        "three fifths": 3 / 5,
        "three quarters": 3 / 4,
    },
    **{"four fifths": 4 / 5, "nine tenths": 9 / 10},
}
ARITHMETIC, COMPARISONS = "+-*/", ("<", "<=", ">", ">=")
ARITHMETIC_OF = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}
COMPARISON_OF = {ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge}
OF_MANY = {
    **{"min": min, "max": max, "sum": sum, "mean": statistics.mean, "geomean": statistics.geometric_mean},
    **{"all": all, "count": lambda values: sum(value is not False for value in values)},
}
OF_NUMBERS = {
    "less": lambda a, b: 100 * (b - a) / b,
    "more": lambda a, b: 100 * (a - b) / b,
    "round": lambda a, step: step * round(a / step),
    "near": lambda a, b, percent: abs(a / b - 1) <= percent / 100,
}
OF_NAMES = {"lowest": min, "highest": max}
FUNCTIONS = (*OF_MANY, *OF_NUMBERS, *OF_NAMES)


class Missing(Exception):
    """A cell that is empty, or a file that only another GPU has."""


@dataclass(frozen=True)
class Wrong:
    where: str
    asked: str
    stands: str
    computed: str

    def __str__(self):
        return f'{self.where}: the page says "{self.stands}", and {self.asked} is {self.computed}'


def written(value, stands):
    """The value in the form of the text that stands there: with as many digits, or as a word of the same kind."""
    word = stands.lower()
    if isinstance(value, str):
        value = value.split("_")[0] if stands.strip("`").isdigit() else value
        return f"`{value}`" if stands[:1] == "`" else value
    near = max(0, round(value))
    if word in TIMES and near < len(TIMES):
        said = TIMES[near]
    elif word in INTEGERS and near < len(INTEGERS):
        said = INTEGERS[near]
    elif word in SHARES and any(abs(value / share - 1) < 0.2 for share in SHARES.values()):
        said = min(SHARES, key=lambda share: abs(SHARES[share] - value))
    elif re.fullmatch(r"-?[\d,]*\.?\d+", stands):
        said = f"{value:{',' * (',' in stands)}.{len(stands.partition('.')[2])}f}"
    else:
        said = f"{value:.3g}"
    return said[:1].upper() + said[1:] if stands[:1].isupper() else said


class Figures:
    """The figures of all pages, from the folder of a GPU's results."""

    def __init__(self, folder):
        self.folder, self.stored = folder, {}
        self.ladders = {ladder.id: ladder for ladder in ladders.all_ladders()}

    def renewed(self, page, text):
        """(the text with its figures computed, [Wrong])."""
        own = [ladder for ladder in self.ladders.values() if ladder.folder in (page.parent, page.parent.parent)]
        here = Where(own[0], own[0].id) if own else Where(None)
        defaults, result, last, wrong = here, "", 0, []
        for place in PLACE.finditer(text) if self.folder else ():
            where = f"{results.shown(page)}:{text.count(chr(10), 0, place.start()) + 1}"
            asked = " ".join((place["asked"] or place["defaults"] or "").split())
            stands = " ".join((place["stands"] or "").split())
            try:
                if place["stray"]:
                    raise Unusable("a figure stands between <!--= what is asked --> and <!--/-->, in one paragraph")
                if place["defaults"]:
                    defaults = here.narrowed(self, TOKEN.findall(asked))[0]
                if not place["asked"]:
                    continue
                line = text[text.rfind("\n", 0, place.start()) + 1 : place.start()]
                if line.startswith("|") and "\n" in place[0]:
                    raise Unusable("a row of a table is one line, its figures too")
                begins = BEGINS_A_LINE.search(text[: place.start()]) or BLOCK_INSIDE.search(place[0])
                if begins or place["stands"].endswith("\n"):
                    raise Unusable(
                        "Markdown ends the paragraph where a line begins with a comment or an operator; put a word first"
                    )
                computed = written(Question(self, defaults).answer(asked), stands)
            except Missing as missing:
                if self.folder == results.stored():
                    raise Unusable(f"{where}: {asked}: {missing}")
                continue
            except (Unusable, ArithmeticError, TypeError, ValueError) as error:
                raise Unusable(": ".join(filter(None, [where, asked, str(error)])))
            if computed != stands:
                wrong.append(Wrong(where, asked, stands, computed))
                result += text[last : place.start("stands")] + computed
                last = place.end("stands")
        return result + text[last:], wrong

    def rows(self, path):
        """Of a CSV; of a folder of counters, a row for each stage."""
        if path not in self.stored:
            short = {metric: name for name, metric in counters.SHORT.items()}
            self.stored[path] = (
                [
                    {"stage": csv.stem, **{short.get(row["metric"]): row["value"] for row in results.read(csv)}}
                    for csv in sorted(path.glob("*.csv"))
                ]
                if path.is_dir()
                else results.read(path)
            )
        return self.stored[path]


@dataclass(frozen=True)
class Where:
    """The rows that cells are taken from: a file, and what its columns must hold."""

    ladder: object
    folder: str = ""  # below the GPU's: the ladder's, or header
    file: str = results.MAIN
    keys: tuple = ()
    gpu: str = ""  # whose results, if not those of the page's tables

    def narrowed(self, figures, words):
        """(Where with "in FILE" and KEY=VALUE of the words, the other words); another file has none of the keys."""
        where, others, words = self, [], list(words)
        while words:
            word = words.pop(0)
            key, equals, value = word.partition("=")
            if word == "in" and words:
                folder, _, file = words.pop(0).rpartition("/")
                ladder = figures.ladders.get(folder) if folder else where.ladder
                where = Where(ladder, folder or where.folder, f"{file}.csv")
            elif equals and key == "gpu":
                where = replace(where, gpu=value)
            elif equals:
                where = replace(where, keys=(*where.keys, (key, value.strip('"'))))
            elif where.ladder and re.fullmatch(r"\d+(x\d+)+", word):
                where = replace(where, keys=(*where.keys, *zip(where.ladder.main, word.split("x"))))
            elif "/" in word and word.partition("/")[0] in figures.ladders:
                folder, _, name = word.partition("/")
                where = where if folder == where.folder else Where(figures.ladders[folder], folder)
                others.append(name)
            else:
                others.append(word)
        return where, others

    def name(self, word):
        """A stage's name by its number; any other word stays."""
        stage = self.ladder.stage(word) if self.ladder else None
        return stage.name if stage else word

    def path(self, figures, column):
        """The CSV that holds the column, or the folder with a CSV of counters for each stage."""
        store = results.stored(self.gpu) if self.gpu else results.measured(figures.folder, self.folder, self.file)
        profile = store / self.folder / (f"ncu_{self.file[:-4]}" if self.file != results.MAIN else "ncu")
        found = [folder / self.folder / self.file for folder in (store, results.store() / results.CPU_DEVICE)]
        found = [path for path in found if path.is_file()]
        counted = profile if profile.is_dir() else profile.with_name("ncu")
        if column in counters.SHORT and counted.is_dir() and not (found and column in figures.rows(found[0])[0]):
            return counted
        if found:
            return found[0]
        if list(results.store().glob(f"*/{self.folder}/{self.file}")):
            raise Missing(f"{results.shown(store / self.folder / self.file)} is not stored")
        there = sorted(path.stem for path in (store / self.folder).glob("*.csv"))
        raise Unusable(
            f"there is no {self.folder or 'ladder'}/{self.file}; say in FILE, of {', '.join(there) or 'LADDER/'}"
        )


class Question:
    """What one marker asks. Cells are read first; Python's parser reads the arithmetic around them, and no other Python
    has a meaning here. A part's value is a number, a truth, a name, or a list of (number, name, row); in "each" it is
    asked of a case, the rows of one input."""

    def __init__(self, figures, where):
        self.figures, self.where, self.cells = figures, where, {}

    def answer(self, text):
        parts = PARTS.fullmatch(text)
        if not parts:
            raise Unusable('it is no EXPRESSION ["? WORDS : WORDS"] ["; in FILE KEY=VALUE"]')
        self.where, others = self.where.narrowed(self.figures, TOKEN.findall(parts["rows"] or parts["options"] or ""))
        if others:
            raise Unusable(f"after ; stand in FILE and KEY=VALUE, not {' '.join(others)}")
        value = self.one(self.parsed(parts["expression"]), None)
        if isinstance(value, bool) != bool(parts["yes"]):
            raise Unusable("a comparison has two texts, a < b ? WORDS : WORDS, and nothing else has them")
        return parts["yes" if value else "no"].strip() if parts["yes"] else value

    def parsed(self, text):
        """The syntax tree of the expression, with a name in the place of each cell."""
        code, words = [], []

        def end_of_words():
            if len(words) == 1 and code[-1:] != ["is"] and re.fullmatch(r"\d*\.?\d+(e\d+)?", words[0]):
                code.append(words[0])
            elif words:
                code.append(f"cell{len(self.cells)}")
                self.cells[code[-1]] = list(words)
            words.clear()

        for token in TOKEN.findall(text):
            if token == "(" and words:
                if words not in [[name] for name in FUNCTIONS]:
                    raise Unusable(f"there is no function {' '.join(words)}; there is {', '.join(FUNCTIONS)}")
                code += [words.pop(), token]
            elif token in ARITHMETIC or token in COMPARISONS or token in ("(", ")", ",", "and", "is"):
                end_of_words()
                code.append(token)
            elif token == "each":
                code.append("not")  # binds as each does: weaker than a comparison, stronger than and
            else:
                words.append(token)
        end_of_words()
        try:
            return ast.parse(" ".join(code), mode="eval").body
        except SyntaxError:
            raise Unusable("an operator, a value or a parenthesis is missing or too many")

    def one(self, node, case):
        """A single value."""
        value = self.value(node, case)
        if not isinstance(value, list):
            return value
        if len(value) != 1:
            rows = [row for _, _, row in value]
            differing = {key: sorted({row[key] for row in rows}) for key in rows[0]}
            said = [f"{key}={'|'.join(values)}" for key, values in differing.items() if len(values) > 1]
            raise Unusable(f"{len(value)} rows fit, and one is wanted; say which: {', '.join(said[:4])}")
        return value[0][0]

    def value(self, node, case):
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            return self.cell(self.cells[node.id], case)
        if isinstance(node, ast.BinOp):
            return ARITHMETIC_OF[type(node.op)](self.one(node.left, case), self.one(node.right, case))
        if isinstance(node, ast.BoolOp):
            return all([self.one(part, case) for part in node.values])  # noqa: C419 each is asked, so that each is right
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return self.each(node.operand)
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Is):
            return self.value(node.left, case) in map(self.where.name, self.cells[node.comparators[0].id])
        if isinstance(node, ast.Compare):
            values = [self.one(part, case) for part in (node.left, *node.comparators)]
            return all(COMPARISON_OF[type(sign)](a, b) for sign, a, b in zip(node.ops, values, values[1:]))
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            raise Unusable("an operator or a value is missing")
        name = node.func.id
        if name in OF_NUMBERS:
            return OF_NUMBERS[name](*(self.one(argument, case) for argument in node.args))
        found = [self.value(argument, case) for argument in node.args]
        if name in OF_NAMES:
            return OF_NAMES[name](found[0], key=operator.itemgetter(0))[1]
        return OF_MANY[name]([one[0] for part in found for one in (part if isinstance(part, list) else [(part,)])])

    def each(self, node):
        """Of every input of the file: by=KEY,KEY, else the ladder's parameters or what stands before the name."""
        rows = self.rows(self.where, "", None)
        if not rows:
            raise Unusable("no input of the file has all of these")
        columns, keys = list(rows[0]), dict(self.where.keys)
        own = list(self.where.ladder.main) if self.where.ladder else []
        by = own if own and set(own) <= set(columns) else columns[: columns.index(name_column(columns))]
        by = keys["by"].split(",") if "by" in keys else by
        cases, values = {}, []
        for place, row in enumerate(rows):
            cases.setdefault(tuple(row[key] for key in by) or place, []).append(row)
        for case in cases.values():
            with contextlib.suppress(Missing):
                values.append((self.one(node, case), "", {}))
        if not values:
            raise Unusable("no input of the file has all of these")
        return values

    def rows(self, where, column, case):
        """The rows with the wanted keys, of the case if the cell is of its file."""
        path = where.path(self.figures, column)
        every = self.figures.rows(path)
        if column not in ("", *every[0]):
            raise Unusable(f"{results.shown(path)} has no column {column}; it has {', '.join(filter(None, every[0]))}")
        inside = case is not None and path == self.where.path(self.figures, column)
        rows = case if inside else every
        if path.is_dir():
            return rows
        for key, value in dict(where.keys).items():
            if key != "by":
                if key not in every[0]:
                    raise Unusable(f"{results.shown(path)} has no column {key}; it has {', '.join(every[0])}")
                if value not in [row[key] for row in every]:
                    there = ", ".join(dict.fromkeys(row[key] for row in every))
                    raise Unusable(f"{results.shown(path)} has no {key}={value}; it has {there}")
                rows = [row for row in rows if row[key] == value]
        main = where.ladder.main if where.ladder and column and not inside else {}
        if not set(main) & {key for key, _ in where.keys}:
            of_main = [row for row in rows if all(row.get(key) == str(value) for key, value in main.items())]
            rows = of_main or rows
        return rows

    def cell(self, words, case):
        """[(number, name, row)] of COLUMN [ROW ...] [without ROW ...] [in FILE] [KEY=VALUE ...]."""
        column = SHORT_COLUMNS.get(words[0], re.sub(r"_us$", "_microseconds", words[0]))
        where, others = self.where.narrowed(self.figures, words[1:])
        at = others.index("without") if "without" in others else len(others)
        names, left_out = [[where.name(word) for word in part] for part in (others[:at], others[at + 1 :])]
        rows = self.rows(where, column, case)
        every = self.figures.rows(where.path(self.figures, column))
        key = name_column(every[0])
        there = dict.fromkeys(row[key] for row in every)
        unknown = [name for name in (*names, *left_out) if name not in there]
        if unknown:
            raise Unusable(f"there is no row {' '.join(unknown)}; there is {', '.join(there)}")
        rows = [row for row in rows if row[key] not in left_out and (not names or row[key] in names)]
        numbers = [(results.number(row, column), row[key], row) for row in rows if row[column] != counters.MISSING]
        known = [number for number in numbers if number[0] is not None]
        if not known or names and len(known) < len(rows):
            raise Missing(f"{column} of {' '.join(names)} is not stored")
        return known


def name_column(columns):
    return next((name for name in NAMES if name in columns), next(iter(columns)))
