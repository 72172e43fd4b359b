"""The tokens of a preprocessed text: their brackets and names, and the file, line and column of each."""

import bisect
import os
import re

TOKEN = re.compile(
    r"""(?P<directive>^[ \t]*\#[^\n]*)
      | (?P<comment>//[^\n]* | /\*(?s:.*?)\*/)
      | (?:u8|[uUL])?R"(?P<delimiter>[^()\\\s]{0,16})\((?s:.*?)\)(?P=delimiter)"\w*
      | (?:u8|[uUL])?"(?:[^"\\\n]|\\.)*"(?:(?!__)\w+)?
      | (?:u8|[uUL])?'(?:[^'\\\n]|\\.)+'\w*
      | (?:[^\W\d]|\\U[0-9a-f]{8})(?:\w|\\U[0-9a-f]{8})*
      | \.?\d(?:[eEpP][+-]|'\w|[\w.])*
      | <<[ \t]*<(?!=) | <=> | <<=? | <= | >= | == | != | :: | -> | && | \|\| | \.\.\.    # '>' always stands alone
      | \S""",
    re.VERBOSE | re.MULTILINE,
)
MARKER = re.compile(r'^# (\d+) ("(?:[^"\\\n]|\\.)*")((?: \d)*)[ \t\r]*$', re.MULTILINE)
CUDA_WORD = re.compile(r"\b__(?:global|shared|device|host)__\b")
SPACES = {"__device__", "__host__"}  # where a function runs; Source.spaces has them, the tokens do not
UNKNOWN_PRAGMA = re.compile(r"\s*#\s*pragma\s+(?:unroll|nounroll|nv_|hd_warning|diag_)")
EMPTY_MACRO = re.compile(r"\b__(?:constant|managed|grid_constant)__\b")

OPENERS = {"(": ")", "[": "]", "{": "}"}
CLOSERS = {closer: opener for opener, closer in OPENERS.items()}


def unquote(name):
    """The path that a line marker quotes."""
    escaped = re.compile(rb"\\([0-7]{3}|.)")
    quoted = name[1:-1].encode("utf-8", "surrogateescape")
    return os.fsdecode(escaped.sub(lambda m: bytes([int(m[1], 8)]) if len(m[1]) == 3 else m[1], quoted))


def read_text(path):
    with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
        return file.read()


def write_text(path, text):
    with open(path, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
        file.write(text)


def restore_blanks(text):
    """Give the lines that the preprocessor left as they were their own blanks again, for the columns of messages."""

    def restored(line, own):
        own = EMPTY_MACRO.sub(lambda macro: " " * len(macro[0]), own)
        comments = [comment.start() for comment in re.finditer(r"//|/\*", own)]
        return next((own[:end] for end in [len(own)] + comments if own[:end].split() == line.split()), line)

    files, out, end = {}, [], 0
    marks = list(MARKER.finditer(text))
    for mark, following in zip(marks, [mark.start() for mark in marks[1:]] + [len(text)]):
        if "3" in mark[3] or mark[2].startswith('"<'):
            continue
        if mark[2] not in files:
            try:
                files[mark[2]] = read_text(unquote(mark[2])).split("\n")
            except OSError:
                files[mark[2]] = []
        first, own = int(mark[1]) - 1, files[mark[2]]
        lines = text[mark.end() + 1 : following].split("\n")
        for n in range(min(len(lines), len(own) - first)):
            if lines[n] and lines[n][0] != "#" and lines[n] != own[first + n]:
                lines[n] = restored(lines[n], own[first + n].rstrip("\r"))
        out += [text[end : mark.end() + 1], "\n".join(lines)]
        end = following
    return "".join(out) + text[end:]


def with_c_linkage(text):
    """The text with the lines of its own files, which are those that are no system headers, in extern "C" blocks."""
    marks = list(MARKER.finditer(text))
    own = {mark[2] for mark in marks if "3" not in mark[3] and not mark[2].startswith('"<')}
    out, end, inside = [], 0, False
    for mark in marks:
        if (mark[2] in own) != inside:
            out += [text[end : mark.start()], "} " if inside else 'extern "C" {', "\n"]
            end, inside = mark.start(), not inside
    return "".join(out) + text[end:] + ("\n}\n" if inside else "")


class Source:
    """The tokens of the text that needs reading, the pairs of their brackets, and where each stands."""

    def __init__(self, text):
        self.text = text
        self.tokens = []  # the text of each token
        self.starts = []  # its offset
        self.ends = []  # the offset after it
        self.match = []  # the index of the bracket that closes or opens this one, else -1
        self.pragmas = []  # (start, end) of the pragmas that g++ does not know
        self.spaces = []  # (index of the token that follows, word, start) of each word of SPACES
        self.marks = [(1, '"<input>"', "")]  # (line, quoted file, flags) of each line marker
        self.mark_starts = [0]  # the offset of the first line that it rules
        self.newlines = [newline.start() for newline in re.finditer("\n", text)]
        self._lex(self._files_to_read())
        self.tokens += [""] * 4  # those who look ahead stay inside
        self.starts += [len(text)] * 4
        self.ends += [len(text)] * 4
        self._pair()

    def _files_to_read(self):
        """The quoted names of the files that are no system headers, and of the system headers that hold CUDA code."""
        files, name, start = set(), '"<input>"', 0
        for mark in MARKER.finditer(self.text):
            if CUDA_WORD.search(self.text, start, mark.start()):
                files.add(name)
            name, start = mark[2], mark.end()
            if "3" not in mark[3]:
                files.add(name)
        if CUDA_WORD.search(self.text, start):
            files.add(name)
        return files

    def _lex(self, files):
        text, position = self.text, 0
        while position is not None:
            for token in TOKEN.finditer(text, position):
                if token[0] in SPACES:
                    self.spaces.append((len(self.tokens), token[0], token.start()))
                elif token.lastgroup in (None, "delimiter"):
                    self.tokens.append(self._word(token[0]))
                    self.starts.append(token.start())
                    self.ends.append(token.end())
                elif token.lastgroup == "directive":
                    mark = MARKER.match(text, token.start())
                    if mark and mark[2] not in files:
                        # A system header's macro stands under the name of the file that uses it, and is read.
                        read = (m.start() for m in MARKER.finditer(text, mark.end()) if m[2] in files)
                        position = next(read, None)
                        break
                    if mark:
                        self.marks.append((int(mark[1]), mark[2], mark[3]))
                        self.mark_starts.append(mark.end() + 1)
                    elif UNKNOWN_PRAGMA.match(token[0]):
                        self.pragmas.append(token.span())
            else:
                position = None

    @staticmethod
    def _word(word):
        if word[0] == "<" and word[-1] == "<" and len(word) > 2:
            return "<<<"
        if "\\U" in word and word[-1] not in "\"'":  # g++ -E prints a letter outside ASCII so
            return re.sub(r"\\U(\w{8})", lambda letter: chr(int(letter[1], 16)), word)
        return word

    def _pair(self):
        """Match the brackets; one that the student forgot leaves those around it alone, and g++ says so."""
        self.match = [-1] * len(self.tokens)
        stack = []
        for i, token in enumerate(self.tokens):
            if token in OPENERS:
                stack.append(i)
            elif token in CLOSERS:
                depth = len(stack) - 1
                while depth >= 0 and self.tokens[stack[depth]] not in ("{", CLOSERS[token]):
                    depth -= 1
                if depth >= 0 and self.tokens[stack[depth]] == CLOSERS[token]:
                    self.match[i] = stack[depth]
                    self.match[stack[depth]] = i
                    del stack[depth:]

    def spaces_among(self, begin, end):
        """The words of SPACES that stand before or among the tokens begin..end-1, after the token before them."""
        first = bisect.bisect_left(self.spaces, (begin,))
        return {word for _, word, _ in self.spaces[first : bisect.bisect_left(self.spaces, (end,))]}

    def slice(self, begin, end):
        """The text of tokens begin..end-1, on one line."""
        if begin >= end:
            return ""
        text = self.text[self.starts[begin] : self.ends[end - 1]]
        return " ".join(self.tokens[begin:end]) if "\n" in text else text

    def place(self, offset):
        """(line, quoted file, flags of the marker) at an offset."""
        k = bisect.bisect_right(self.mark_starts, offset) - 1
        line, name, flags = self.marks[k]
        start, end = (bisect.bisect_left(self.newlines, x) for x in (self.mark_starts[k], offset))
        return line + end - start, name, flags

    def in_system_macro(self, i):
        return "3" in self.place(self.starts[i])[2]

    def resume(self, offset):
        """A line marker and blanks: what follows stands on the line and column of the offset."""
        line, name, flags = self.place(offset)
        kept = "".join(f" {flag}" for flag in "34" if flag in flags)
        before = self.text[self.text.rfind("\n", 0, offset) + 1 : offset]
        return f"\n# {line} {name}{kept}\n" + " " * len(before.encode("utf-8", "surrogateescape"))

    def after_group(self, i):
        """The index after the bracketed group that starts at i, or i if none starts there."""
        return self.match[i] + 1 if self.match[i] > i else i

    def angle(self, i):
        """The index of the '>' that closes the '<' at i, or of the '<' that opens the '>', or -1 for a comparison."""
        step = 1 if self.tokens[i] == "<" else -1
        depth, k = 0, i
        while 0 <= k < len(self.tokens):
            token = self.tokens[k]
            if token in ("<", ">"):
                depth += step if token == "<" else -step
                if depth == 0:
                    return k
            elif (self.match[k] - k) * step > 0 and self.match[k] >= 0:
                k = self.match[k]
            elif token in OPENERS or token in CLOSERS or token == ";":
                return -1
            k += step
        return -1

    def split(self, begin, end):
        """The (begin, end) of each part between the commas that are outside brackets of every kind."""
        parts, start, depth, k = [], begin, 0, begin
        while k < end:
            token = self.tokens[k]
            if self.match[k] > k:
                k = self.match[k]
            elif token == "<":
                depth += 1
            elif token == ">":
                depth = max(0, depth - 1)
            elif token == "," and depth == 0:
                parts.append((start, k))
                start = k + 1
            k += 1
        return parts + [(start, end)] if end > begin else []

    def read_name(self, i):
        """(names, (begin, end) of the last name's template arguments or None, index after it) of `a::b<c>::d<e>` at i.

        The names are empty if there is no name.
        """
        tokens, names, start = self.tokens, [], i
        while True:
            arguments = None
            while tokens[i] in ("::", "template", "typename"):
                i += 1
            if not tokens[i].isidentifier():
                return [], None, start
            names.append(tokens[i])
            i += 1
            if tokens[i] == "<" and self.angle(i) > 0:
                arguments = (i + 1, self.angle(i))
                i = self.angle(i) + 1
            if tokens[i] != "::":
                return names, arguments, i
