"""Just enough Swift for line counts and word searches: what is code, and where functions begin and end."""

import re

# A text of several lines begins on the next one: #""""# is two quotes.
_STRING = r'(#*)("""(?=[ \t]*\n)|")'
# A regex's slashes begin no comment, its braces no body.
_SKIPPED = re.compile(r"//[^\n]*|/\*|#/|" + _STRING)
_IN_CODE = re.compile("[()]|" + _STRING)


def without_comments_and_strings(text):
    """The same text, same length and line breaks, with the inside of comments and string literals blanked."""
    out, index = [], 0
    while mark := _SKIPPED.search(text, index):
        end = mark.end()
        if mark[0] == "/*":
            # They nest.
            end = closing(text, mark.start(), "/*", "*/") + 2
        elif mark[0] == "#/":
            end = text.find("/#", end) + 2 if "/#" in text[end:] else len(text)
        elif mark[2]:
            end = _string_end(text, end, mark[1], mark[2])
        out += [text[index:mark.start()], re.sub(r"[^\n]", " ", text[mark.start():end])]
        index = end
    return "".join([*out, text[index:]])


def _string_end(text, index, hashes, quotes):
    """The index after the closing quotes; interpolations may hold strings of their own."""
    end, escape = quotes + hashes, "\\" + hashes
    # What is not closed on its line is no string after all (a quote in a regex literal): the line is given up, not the file.
    marks = re.compile(f"{re.escape(end)}|{re.escape(escape)}." + ("|\n" if quotes == '"' else ""), re.DOTALL)
    while mark := marks.search(text, index):
        if mark[0] == end:
            return mark.end()
        if mark[0] == "\n":
            return mark.start()
        index = _code_end(text, mark.end()) if mark[0] == escape + "(" else mark.end()
    return len(text)


def _code_end(text, index):
    """Past the parenthesis that closes an interpolation."""
    depth = 1
    while depth and (mark := _IN_CODE.search(text, index)):
        depth += {"(": 1, ")": -1}.get(mark[0], 0)
        index = _string_end(text, mark.end(), mark[1], mark[2]) if mark[2] else mark.end()
    return index if depth == 0 else len(text)


_DECLARATION = re.compile(r"(?<![.\w`])(func\s+(?:`[^`]*`|[^\s(<]+)|init(?=[?!]?\s*[(<])|deinit(?=\s*\{)|subscript(?=\s*[(<]))")
_PROPERTY = re.compile(r"(?<![.\w`])(var\s+\w+)\s*:[^={}\n]*(?=\{)")
# A line that begins so, or a closing brace, ends a declaration that has no body (a protocol's requirement).
_NEXT = re.compile(r"\s*(?:[@}]|(?:package|public|internal|private|fileprivate|static|mutating|func|var|let|init|associatedtype|"
                   r"case|struct|enum|class|extension|typealias|subscript)\b)")


def functions(code):
    """(line, title, lines) of each function, initialiser, subscript and computed property; blanked code is expected."""
    found = [(match, _body_start(code, match.end())) for match in _DECLARATION.finditer(code)]
    found += [(match, match.end()) for match in _PROPERTY.finditer(code)]
    for match, start in sorted(found, key=lambda pair: pair[0].start()):
        if start is None:
            continue
        end = closing(code, start, "{", "}")
        first = code.count("\n", 0, match.start()) + 1
        yield first, match[1], code.count("\n", match.start(), end) + 1


def closing(code, index, opening, closing):
    """The index of what closes the bracket at `index`."""
    depth = 0
    for mark in re.compile(f"{re.escape(opening)}|{re.escape(closing)}").finditer(code, index):
        depth += 1 if mark[0] == opening else -1
        if depth == 0:
            return mark.start()
    return len(code) - 1


_TYPE = re.compile(r"(?<![.\w`])(?:struct|enum|class|actor|extension)\s+(\w+(?:\.\w+)*)[^{}]*\{")
_TEST = re.compile(r"@Test\b[^`]*?\bfunc\s+`([^`]+)`")


def tests(code):
    """(the types around it, name) of each test of Swift Testing whose name is a sentence; blanked code is expected."""
    types = [(match.start(), closing(code, match.end() - 1, "{", "}"), match[1]) for match in _TYPE.finditer(code)]
    for match in _TEST.finditer(code):
        yield [name for start, end, name in types if start < match.start() < end], match[1]


def _body_start(code, index):
    while index < len(code):
        if code[index] == "{":
            return index
        if code[index] == "(":
            index = closing(code, index, "(", ")")
        elif code[index] == "\n" and _NEXT.match(code, index + 1):
            return None
        elif code[index] in "};":
            return None
        index += 1
    return None


_DIRECTIVE = re.compile(r"[ \t]*#(if|elseif|else|endif)\b[ \t]*(.*)")


def debug_lines(code):
    """The numbers of the lines that only debug builds have: those between `#if DEBUG` and its `#else`."""
    found, conditions = set(), []
    for number, line in enumerate(code.split("\n"), 1):
        if match := _DIRECTIVE.match(line):
            if match[1] == "endif":
                conditions.pop()
            elif match[1] == "if":
                conditions.append(match[2].strip())
            else:
                conditions[-1] = match[2].strip()
        elif "DEBUG" in conditions:
            found.add(number)
    return found
