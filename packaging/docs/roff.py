"""Text as roff(7), in the man macros: what groff and mandoc show is what was written, and can be copied from the page."""

import re

# What roff would make other characters of, or that stands in commands that people copy.
SPECIAL = {"\\": "\\e", "'": "\\(aq", "`": "\\(ga", "^": "\\(ha", "~": "\\(ti", '"': "\\(dq", "-": "\\-"}


def code(text):
    """A part of a command: all its dashes are to be copied."""
    return "".join(
        SPECIAL.get(letter) or (letter if " " <= letter <= "~" else f"\\[u{ord(letter):04X}]") for letter in text)


def escape(text):
    """One line, fit for running text and for a macro's argument."""
    plain = code(text)
    # Paths, options and names of variables are not to be hyphenated.
    plain = re.sub(r"(?<!\S)(\S*(?:[/_]|\\-\\-)\S*)", r"\\%\1", plain)
    # Of a dash between words no copy is wanted, and a line may be broken there.
    return re.sub(r"(?<=[A-Za-z])\\-(?=[A-Za-z])", "-", plain)


def line(text):
    """A line of running text: one that begins like a request is none. (An escaped quote begins with a backslash.)"""
    return "\\&" + text if text.startswith(".") else text


def bold(text):
    return f"\\fB{code(text)}\\fR"


def italic(text):
    return f"\\fI{code(text)}\\fR"


def subheading(text):
    return f'.SS "{code(text)}"'


def paragraph(text):
    return [".PP", *(line(escape(part.strip())) for part in text.split("\n"))]


def verbatim(lines):
    """As it stands, moved in."""
    return [".PP", ".RS 4", ".EX", *(line(code(text)) for text in lines), ".EE", ".RE"]


def tagged(tag, *body):
    """An entry of a list: `tag` is roff already, the body is lines of it."""
    # A name with a dash in it stays in one piece.
    return [".TP", "\\%" + tag, *(body or ["\\&"])]


def entry(name, said):
    """One of plain text."""
    return tagged(bold(name), line(escape(said)))


def page(name, number, day, version, sections):
    """`sections`: their lines by their titles; one without any is left out."""
    head = f'.TH "{escape(name).upper()}" "{number}" "{day}" "{escape(version)}" "Inlet"'
    lines = [text for title, body in sections.items() if body for text in (f'.SH "{escape(title)}"', *body)]
    # A heading begins a paragraph: mandoc objects to a second request.
    lines = [text for before, text in zip(["", *lines], lines) if text != ".PP" or not before.startswith((".SH", ".SS"))]
    # Left-adjusted: options and paths are not to be pulled apart.
    return "\n".join([head, ".ad l", *lines]) + "\n"
