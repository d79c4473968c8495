"""Just enough Swift for line counts and word searches: what is code, and where functions begin and end."""

import re

# A text of several lines begins on the next one: #""""# is two quotes.
_OPENING = re.compile(r'(#*)("""(?=[ \t]*\n)|")')


def without_comments_and_strings(text):
    """The same text, same length and line breaks, with the inside of comments and string literals blanked."""
    out = list(text)

    def blank(first, last):
        for index in range(first, last):
            if out[index] != "\n":
                out[index] = " "

    def comment_end(index):
        if text.startswith("//", index):
            end = text.find("\n", index)
            return len(text) if end < 0 else end
        depth = 0
        # Swift's block comments nest.
        while index < len(text):
            if text.startswith("/*", index):
                depth, index = depth + 1, index + 2
            elif text.startswith("*/", index):
                depth, index = depth - 1, index + 2
                if depth == 0:
                    return index
            else:
                index += 1
        return index

    def string_end(index, hashes, quotes):
        """The index after the closing quotes; interpolations may hold strings of their own."""
        closing, escape = quotes + hashes, "\\" + hashes
        while index < len(text):
            if text.startswith(closing, index):
                return index + len(closing)
            if text.startswith(escape + "(", index):
                index = code_end(index + len(escape) + 1)
            elif text.startswith(escape, index):
                index += len(escape) + 1
            elif quotes == '"' and text[index] == "\n":
                # Not a string after all (a quote in a regex literal): give the line up, not the file.
                return index
            else:
                index += 1
        return index

    def code_end(index):
        """Past the parenthesis that closes an interpolation."""
        depth = 1
        while index < len(text) and depth:
            if match := _OPENING.match(text, index):
                index = string_end(match.end(), match[1], match[2])
                continue
            depth += {"(": 1, ")": -1}.get(text[index], 0)
            index += 1
        return index

    index = 0
    while index < len(text):
        if text.startswith(("//", "/*"), index):
            end = comment_end(index)
        elif text.startswith("#/", index):
            # A regex: its slashes begin no comment, its braces no body.
            closed = text.find("/#", index + 2)
            end = len(text) if closed < 0 else closed + 2
        elif match := _OPENING.match(text, index):
            end = string_end(match.end(), match[1], match[2])
        else:
            index += 1
            continue
        blank(index, end)
        index = end
    return "".join(out)


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
    while index < len(code):
        if code[index] == opening:
            depth += 1
        elif code[index] == closing:
            depth -= 1
            if depth == 0:
                return index
        index += 1
    return index - 1


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
