"""A DocC tutorial as Markdown: directives (`@Step { … }`) become chapters, numbered steps and code blocks."""

import re
from pathlib import Path

DIRECTIVE = re.compile(r"@(\w+)(?:\((.*?)\))?\s*(\{)?", re.DOTALL)
ARGUMENT = re.compile(r'(\w+):\s*(?:"([^"]*)"|([^\s,"]+))')
LANGUAGES = {".sh": "sh", ".yaml": "yaml", ".yml": "yaml", ".json": "json"}


def parse(text):
    """[text or (name, arguments, children)], to the end or to the brace that closes it; and what follows."""
    parts = []
    while text:
        found = re.search(r"^[ \t]*(?:@\w+|\})", text, re.MULTILINE)
        if not found:
            parts.append(text)
            return parts, ""
        parts.append(text[:found.start()])
        text = text[found.start():].lstrip(" \t")
        if text.startswith("}"):
            return parts, text[1:]
        mark = DIRECTIVE.match(text)
        text = text[mark.end():]
        arguments = {name: quoted or bare for name, quoted, bare in ARGUMENT.findall(mark[2] or "")}
        children = []
        if mark[3]:
            children, text = parse(text)
        parts.append((mark[1], arguments, children))
    return parts, ""


def dedented(text):
    return "\n".join(line.strip() for line in text.strip().split("\n"))


def markdown(parts, folder):
    return "\n\n".join(block for part in parts if (block := shown(part, folder)))


def shown(part, folder):
    if isinstance(part, str):
        return dedented(part)
    name, arguments, children = part
    body = markdown(children, folder)
    if name == "Tutorial" and "time" in arguments:
        title, _, rest = body.partition("\n\n")
        return f"{title}\n\n{rest.partition(chr(10) * 2)[0]}\n\nIt takes about {arguments['time']} minutes.\n\n" \
            + rest.partition("\n\n")[2]
    if name == "Intro":
        return f"# {arguments['title']}\n\n{body}"
    if name == "Section":
        return f"## {arguments['title']}\n\n{body}"
    if name == "Steps":
        steps = [step for step in children if not isinstance(step, str)]
        return "\n\n".join(numbered(index, markdown(step[2], folder)) for index, step in enumerate(steps, 1))
    if name == "Image":
        return f"![{arguments.get('alt', '')}]({arguments['source']})"
    if name == "Code":
        file = folder / arguments["file"]
        language = LANGUAGES.get(file.suffix, "text")
        return f"*{arguments['name']}*\n\n```{language}\n{file.read_text(encoding='utf-8').rstrip()}\n```"
    return body


def numbered(number, body):
    mark = f"{number}. "
    lines = body.split("\n")
    return "\n".join([mark + lines[0], *(" " * len(mark) + line if line else "" for line in lines[1:])])


def read(path):
    """The tutorial at `path` as a page of the manual."""
    parts, _ = parse(Path(path).read_text(encoding="utf-8"))
    return markdown(parts, Path(path).parent) + "\n"
