"""What becomes of a __shared__ declaration: references into the memory that the runtime gives each block.

    __shared__ float s[8];    typedef float simt_T_s[8]; struct simt_S_s {};
                              simt_T_s& s = ::simt::shared<simt_T_s, simt_S_s>();
    extern __shared__ T s[];  typedef T simt_T_s[]; simt_T_s& s = ::simt::dynamic_shared<simt_T_s>();

The tag `simt_S_s` tells a variable from all others. Where the declaration asks for an alignment, the memory is that of
a tag with an aligned member. The members of an anonymous union become references of their own.
"""

from typing import NamedTuple, Optional

ATTRIBUTES = {"__attribute__", "__attribute", "alignas"}
CLASS_KEYS = {"class", "struct", "union"}
STORAGE = {"__shared__", "static", "extern", "inline", "__extension__"}
QUALIFIERS = {"const", "volatile", "__restrict__", "__restrict"}
BUILTIN_TYPES = set(
    "void bool char wchar_t char8_t char16_t char32_t short int long float double signed unsigned auto "
    "__int128 _Float16 _Float32 _Float64 __bf16".split()
)
TYPE_OPERATORS = {"decltype", "typeof", "__typeof__", "__typeof"}
UNUSED = "__attribute__((unused))"


class Refusal(Exception):
    """(index of a token, a sentence about it)"""


class Specifiers(NamedTuple):
    """What a declaration says before its declarators."""

    words: list[int]  # the tokens that make the type
    alignments: list[str]
    attributes: list[str]
    body: Optional[tuple[int, int]]  # the braces of a class that is defined here
    is_anonymous: bool  # whether that class has no name
    end: int


class Declarator(NamedTuple):
    name: int  # its token
    end: int  # the token after its last bracket
    alignments: list[str]
    attributes: list[str]


class Reference(NamedTuple):
    """How a function reaches a variable."""

    name: str
    declaration: str
    type_name: Optional[str]


class SharedDeclaration:
    """The declaration in the tokens begin..end-1 of a source, `__shared__` at keyword."""

    def __init__(self, source, begin, keyword, end):
        self.source, self.tokens = source, source.tokens
        self.keyword, self.end = keyword, end
        self.specifiers = self.read_specifiers(begin, end)
        if self.specifiers.end <= keyword or not self.specifiers.words:
            raise Refusal(keyword, "cannot read this __shared__ declaration")
        self.is_dynamic = "extern" in self.tokens[begin : self.specifiers.end]

    def rewrite(self, in_function):
        """(text, references): the text declares them at its place in a function."""
        source, specifiers = self.source, self.specifiers
        resume_type = source.resume(source.starts[specifiers.words[0]])
        type_text, text, references = self.words(specifiers.words), [], []
        if specifiers.body:  # the class once, then its variables
            name = f"simt_B_{specifiers.body[0]}"
            text.append(f"typedef {resume_type}{type_text} {name};")
            type_text = name
        if specifiers.end == self.end:
            tag, references = self.members(type_text)
            text += [tag] + [reference.declaration for reference in references if in_function]
        for first, last in source.split(specifiers.end, self.end):
            declarator = self.read_declarator(first, last)
            name = self.tokens[declarator.name]
            alias = f"simt_T_{name}"
            if not self.is_dynamic and self.tokens[declarator.name + 1 : declarator.name + 3] == ["[", "]"]:
                sentence = f"the size of {name} is missing; dynamic shared memory is declared extern __shared__"
                raise Refusal(declarator.name, sentence)
            before = source.slice(first, declarator.name)
            behind = source.slice(declarator.name + 1, declarator.end)
            behind = source.resume(source.ends[declarator.name]) + behind if behind else ""
            text.append(f"typedef {resume_type}{type_text} {before}{alias}{behind};")
            memory = f"::simt::dynamic_shared<{alias}>()"
            if not self.is_dynamic:
                tag, memory = self.tag(name, alias, specifiers.alignments + declarator.alignments)
                text.append(tag)
            references.append(Reference(name, f"{alias}& {name} {UNUSED} = {memory};", alias))
            if in_function:
                attributes = " ".join(specifiers.attributes + declarator.attributes)
                resume_name = source.resume(source.starts[declarator.name])
                text.append(f"{alias}& {resume_name}{name} {attributes} = {memory};")
        return " ".join(text), references

    @staticmethod
    def tag(name, type_text, alignments):
        """(the declaration of a variable's tag, the expression for its memory)"""
        if not alignments:
            return f"struct simt_S_{name} {{}};", f"::simt::shared<{type_text}, simt_S_{name}>()"
        alignment = " ".join(sorted(alignments, reverse=True))  # alignas must stand before __attribute__
        tag = f"struct simt_S_{name} {{ {alignment} {type_text} value; }};"
        return tag, f"::simt::shared<simt_S_{name}, simt_S_{name}>().value"

    def members(self, type_text):
        """(tag, references) of an anonymous union's members."""
        if not self.specifiers.body or not self.specifiers.is_anonymous:
            raise Refusal(self.keyword, "this __shared__ declaration names no variable")
        tag, memory = self.tag(type_text, type_text, self.specifiers.alignments)
        names = self.member_names(*self.specifiers.body)
        return tag, [Reference(name, f"auto& {name} {UNUSED} = {memory}.{name};", None) for name in names]

    def member_names(self, open_, close):
        names, begin = [], open_ + 1
        while begin < close:
            end = begin
            while end < close and self.tokens[end] != ";":
                end = max(end + 1, self.source.after_group(end))
            specifiers = self.read_specifiers(begin, end)
            if specifiers.end == end and specifiers.body and specifiers.is_anonymous:
                names += self.member_names(*specifiers.body)
            for first, last in self.source.split(specifiers.end, end):
                names.append(self.tokens[self.read_declarator(first, last).name])
            begin = end + 1
        return names

    def read_specifiers(self, k, end):
        tokens, source = self.tokens, self.source
        words, alignments, attributes = [], [], []
        body, is_anonymous, has_type = None, False, False
        while k < end:
            start = k
            if tokens[k] in STORAGE:
                k += 1
                continue
            attribute, k = self.read_attribute(k)
            if attribute:
                (alignments if "align" in attribute else attributes).append(attribute)
                continue
            if tokens[k] in QUALIFIERS or tokens[k] in BUILTIN_TYPES:
                has_type = has_type or tokens[k] in BUILTIN_TYPES
                k += 1
            elif has_type:
                break
            elif tokens[k] in CLASS_KEYS or tokens[k] == "enum":
                k = self.read_attribute(k + 1)[1]
                names, _, k = source.read_name(k)
                is_anonymous = not names
                brace = next((j for j in range(k, end) if tokens[j] == "{"), end)
                if tokens[k] in (":", "{") and brace < end:
                    body, k = (brace, source.match[brace]), source.after_group(brace)
            elif tokens[k] in TYPE_OPERATORS:
                k = source.after_group(k + 1)
                if tokens[k] == "::":
                    k = source.read_name(k)[2]
            else:
                names, _, k = source.read_name(k)
                if not names:
                    raise Refusal(start, "cannot read the type of this __shared__ declaration")
            has_type = has_type or tokens[start] not in QUALIFIERS
            words += range(start, k)
        return Specifiers(words, alignments, attributes, body, is_anonymous, k)

    def read_attribute(self, k):
        """(text or "", index after it) of __attribute__((...)), alignas(...) or [[...]]."""
        if self.tokens[k] not in ATTRIBUTES and self.tokens[k : k + 2] != ["[", "["]:
            return "", k
        end = max(k + 1, self.source.after_group(k + (self.tokens[k] != "[")))
        return self.source.slice(k, end), end

    def read_declarator(self, first, last):
        tokens, k, alignments, attributes = self.tokens, first, [], []
        while k < last and (tokens[k] in QUALIFIERS or tokens[k] in ("*", "&", "(")):
            k += 1
        name = end = k
        if k == last or not tokens[k].isidentifier():
            raise Refusal(self.keyword, "cannot read this __shared__ declaration")
        while k < last:
            attribute, k = self.read_attribute(k)
            if attribute:
                (alignments if "align" in attribute else attributes).append(attribute)
            elif k == name or tokens[k] == "[" or tokens[k] in ("(", ")") and "(" in tokens[first:name]:
                k = end = max(k + 1, self.source.after_group(k))
            elif tokens[k] in ("=", "{", "("):
                sentence = f"the __shared__ variable {tokens[name]} cannot have an initializer; assign it in the kernel"
                raise Refusal(name, f"{sentence}, then call __syncthreads()")
            else:
                raise Refusal(k, "cannot read this __shared__ declaration")
        return Declarator(name, end, alignments, attributes)

    def words(self, indices):
        """The text of these tokens; the body of a class keeps its lines."""
        source, parts, start = self.source, [], 0
        for n in range(1, len(indices) + 1):
            if n == len(indices) or indices[n] != indices[n - 1] + 1:
                first, last = indices[start], indices[n - 1]
                text = source.text[source.starts[first] : source.ends[last]]
                parts.append(text if "{" in self.tokens[first:last] else source.slice(first, last + 1))
                start = n
        return " ".join(parts)
