"""Just enough Swift for line counts and word searches: what is code, and where functions begin and end."""

import re

# A text of several lines begins on the next one: #""""# is two quotes.
_STRING = r'(#*)("""(?=[ \t]*\n)|")'
# A regex's slashes begin no comment, its braces no body.
SKIPPED = re.compile(r"//[^\n]*|/\*|#/|" + _STRING)
_IN_CODE = re.compile("[()]|" + _STRING)


def without_comments_and_strings(text):
    """The same text, same length and line breaks, with the inside of comments and string literals blanked."""
    out, index = [], 0
    while mark := SKIPPED.search(text, index):
        end = skipped_end(text, mark)
        out += [text[index:mark.start()], re.sub(r"[^\n]", " ", text[mark.start():end])]
        index = end
    return "".join([*out, text[index:]])


def skipped_end(text, mark):
    """The index after the comment, regex or literal that a match of `SKIPPED` begins."""
    end = mark.end()
    if mark[0] == "/*":
        # They nest.
        return closing(text, mark.start(), "/*", "*/") + 2
    if mark[0] == "#/":
        return text.find("/#", end) + 2 if "/#" in text[end:] else len(text)
    return _string_end(text, end, mark[1], mark[2]) if mark[2] else end


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
        index = code_end(text, mark.end()) if mark[0] == escape + "(" else mark.end()
    return len(text)


def code_end(text, index):
    """Past the parenthesis that closes an interpolation."""
    depth = 1
    while depth and (mark := _IN_CODE.search(text, index)):
        depth += {"(": 1, ")": -1}.get(mark[0], 0)
        index = _string_end(text, mark.end(), mark[1], mark[2]) if mark[2] else mark.end()
    return index if depth == 0 else len(text)


_DECLARATION = re.compile(r"( *)[^/\n]*?(?<![.\w`])(func\s*(?:`[^`]*`|[^\s(<]*)|init(?=[?!]?\s*[(<])|deinit(?=\s*\{)|"
                          r"subscript(?=\s*[(<])|var\s+\w+(?=\s*:[^=]*\{$))")


def functions(code):
    """(line, title, lines) of each function, initialiser, subscript and computed property of more than one line, by how the
    formatter moves lines in; blanked code is expected."""
    lines = code.split("\n")
    for first, line in enumerate(lines):
        if match := _DECLARATION.match(line):
            # The declaration's own further lines begin so, the body is further in, and what ends neither was a requirement.
            within = tuple(match[1] + mark for mark in " ){>`") + ("#",)
            end = next((number for number in range(first + 1, len(lines))
                       if lines[number].strip() and not lines[number].startswith(within)), first)
            if lines[end].startswith(match[1] + "}"):
                yield first + 1, match[2], end - first + 1


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
