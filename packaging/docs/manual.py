"""Writes the manual as plain HTML: one folder, relative links, no script.

    manual.py BINARY FOLDER [--catalog FOLDER]

Its pages are the articles and the tutorial of Sources/inlet/inlet.docc, and the reference pages that reference.py makes of
what the program prints. --catalog also writes the catalog with these pages, for `docc convert`: there, links are DocC's own.
Prints what is wrong (broken links, pages that are missing or that nothing links to), and exits 1 then.
"""

import re
import shutil
import sys
from collections import Counter
from html import escape
from pathlib import Path
from urllib.parse import unquote

from markdown_it import MarkdownIt

import commands
import reference
import tutorial
from program import Program

ROOT = Path(__file__).resolve().parents[2]
CATALOG = ROOT / "Sources/inlet/inlet.docc"
STYLE = Path(__file__).with_name("manual.css")
# ManualFiles.largest: the page serves no larger file.
LARGEST = 1 << 20

# All pages in reading order. A page that is missing, and one that is not here, is an error.
PARTS = {
    "Start": ["inlet", "GetStarted", "FirstDelivery", "Recipes", "Promises", "MovingOver"],
    "Destinations": ["Destinations", "Destination-R2", "Destination-S3", "Destination-Folder", "Destination-GigHive",
                     "Destination-VOPI", "Destination-Roboscope"],
    "Files": ["Watching", "Cards", "Routes", "Delivery", "AfterDelivery"],
    "Running": ["Operating", "Page", "CommandLine", "Metrics", "HomeAssistant", "Logs", "Notifications", "Troubleshooting",
                "Security"],
    "Fleets": ["Fleet", "FleetPostgreSQL", "FleetWhen"],
    "Reference": [*reference.PAGES, "Glossary"],
    "More": ["Benchmarks", "Scale", "Contributing"],
}
ORDER = [name for names in PARTS.values() for name in names]
ELSEWHERE = re.compile(r"^(?:https?:|mailto:)")
# Its text may hold code and one level of brackets.
LINK = re.compile(r"(?<!!)\[((?:[^\[\]`]|`[^`]*`|\[[^\]]*\])*)\]\(([^()\s]+)\)")


def slug(heading, seen):
    """The anchor that GitHub gives a heading."""
    words = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
    seen[words] += 1
    return words if seen[words] == 1 else f"{words}-{seen[words] - 1}"


def docc_anchor(heading):
    """The anchor that DocC gives a heading (urlReadableFragment)."""
    words = "-".join(part for part in re.split(r"[\s\-–—]+", heading.strip()) if part)
    return "".join(letter for letter in words if letter == "-" or letter.isalnum() or letter in "$+<=>^|~")


class Page:
    """One page: its Markdown, and as parsed."""

    def __init__(self, name, text, titles, parser):
        self.name, self.text = name, text
        self.file = "index.html" if name == "inlet" else f"{name}.html"
        self.tokens = parser.parse(titled(without_directives(text), titles))
        self.title, self.headings, self.links, self.images = name, [], [], []
        seen, heading = Counter(), name
        for index, token in enumerate(self.tokens):
            if token.type == "heading_open":
                inline = self.tokens[index + 1]
                words = "".join(child.content for child in inline.children if child.type in ("text", "code_inline"))
                token.attrSet("id", slug(words, seen))
                self.headings.append((int(token.tag[1]), words, token.attrGet("id")))
                heading = words
                if token.tag == "h1":
                    self.title = words
            elif token.type == "table_open":
                # Those who hear the page are told where they are.
                token.meta["caption"] = heading
            elif token.type in ("th_open", "td_open"):
                # The page's policy allows no style in an element.
                align = (token.attrs.pop("style", "") or "").rpartition(":")[2]
                token.attrs |= ({"scope": "col"} if token.tag == "th" else {}) | ({"class": align} if align else {})
            for child in token.children or []:
                if child.type == "link_open":
                    self.links.append(child)
                elif child.type == "image":
                    self.images.append(child)
        self.anchors = {anchor for _, _, anchor in self.headings}


def without_directives(text):
    """Without `@Metadata { … }` and its like, and without the symbol that a landing page is named after."""
    text = re.sub(r"^@\w+(?:\([^)]*\))?\s*\{\n(?:.*\n)*?\}\n", "", text, flags=re.MULTILINE)
    return re.sub(r"^# ``(\w+)``", lambda symbol: f"# {symbol[1].capitalize()}", text)


def titled(text, titles):
    """With links by DocC's `<doc:PAGE>`, as it wants them below "Topics", as links with the page's title."""
    return re.sub(r"<doc:([\w-]+)>", lambda link: f"[{titles.get(link[1], link[1])}]({link[1]}.md)", text)


def target_of(href):
    """(page, anchor) of a link within the manual; None for another."""
    path, _, anchor = unquote(href).partition("#")
    if path and ("/" in path or Path(path).suffix not in (".md", ".tutorial")):
        return None
    return (Path(path).stem if path else "", anchor)


class Manual:
    def __init__(self, program):
        self.program = program
        parser = MarkdownIt("commonmark", {"html": False}).enable("table")
        self.parser = parser
        parser.add_render_rule("fence", fence)
        parser.add_render_rule("table_open", table)
        parser.add_render_rule("table_close", lambda *_: "</table></div>\n")
        self.generated = reference.pages(program)
        texts = {path.stem: path.read_text(encoding="utf-8") for path in sorted(CATALOG.glob("*.md"))} | self.generated
        for path in sorted(CATALOG.glob("*.tutorial")):
            if path.stem in ORDER:
                texts[path.stem] = tutorial.read(path)
        self.missing = [name for name in ORDER if name not in texts]
        self.unlisted = [name for name in texts if name not in ORDER]
        titles = {name: found[1] for name, text in texts.items() if (found := re.search(r"^# (.+)$", text, re.MULTILINE))}
        self.pages = {name: Page(name, texts[name], titles, parser) for name in ORDER if name in texts}
        self.files = {}

    # MARK: - What is wrong

    def faults(self):
        yield from (f"the page {name} is missing" for name in self.missing)
        yield from (f"{name} has no place in PARTS of packaging/docs/manual.py" for name in self.unlisted)
        yield from reference.unanswered(self.program)
        yield from commands.unexplained("inlet", self.program.root)
        reached = {"inlet"}
        for page in self.pages.values():
            for link in page.links:
                href = link.attrGet("href")
                fault = self.fault(page, href)
                if fault:
                    yield f"{page.name}: {href}: {fault}"
                elif (target := target_of(href)) and target[0] not in ("", page.name):
                    reached.add(target[0])
            for image in page.images:
                if not self.place(image.attrGet("src")).is_file():
                    yield f"{page.name}: {image.attrGet('src')}: there is no such picture"
        yield from (f"{name}: no page links to it" for name in self.pages if name not in reached)

    def fault(self, page, href):
        if ELSEWHERE.match(href):
            return None
        target = target_of(href)
        if target is None:
            place = self.place(href)
            return None if place.is_relative_to(ROOT) and place.exists() else "there is no such file"
        other = self.pages.get(target[0] or page.name)
        if not other:
            return "there is no such page"
        return "no heading has this anchor" if target[1] and target[1] not in other.anchors else None

    @staticmethod
    def place(href):
        return (CATALOG / unquote(href).partition("#")[0]).resolve()

    # MARK: - HTML

    def write(self, folder):
        folder.mkdir(parents=True, exist_ok=True)
        names = list(self.pages)
        for index, page in enumerate(self.pages.values()):
            before = self.pages[names[index - 1]] if index else None
            after = self.pages[names[index + 1]] if index + 1 < len(names) else None
            self.files[page.file] = self.html(page, before, after).encode()
        self.files["style.css"] = STYLE.read_bytes()
        for name, content in self.files.items():
            if len(content) > LARGEST:
                sys.exit(f"{name} is larger than {LARGEST} bytes")
            (folder / name).write_bytes(content)
            (folder / name).chmod(0o644)

    def html(self, page, before, after):
        for link in page.links:
            self.point(link)
        for image in page.images:
            place = self.place(image.attrGet("src"))
            if place.is_file():
                self.files[place.name] = place.read_bytes()
            image.attrSet("src", place.name)
            image.attrSet("loading", "lazy")
        body = self.parser.renderer.render(page.tokens, self.parser.options, {})
        # The chapters stand behind the first paragraph, which says what the page is for.
        begin = body.find("</p>", body.find("</h1>")) + len("</p>")
        title = "Inlet: the manual" if page.name == "inlet" else f"{page.title} · Inlet"
        return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(title)}</title>
<link rel="stylesheet" href="style.css">
</head>
<body>
<a class="skip" href="#_content">Skip to the content</a>
<header><a class="brand" href="index.html">Inlet</a> <span>manual of version {escape(self.program.version.split()[-1])}</span>
<a class="jump" href="#_pages">All pages</a></header>
<div class="columns">
<main id="_content">
<article>
{body[:begin]}{contents(page)}{body[begin:]}</article>
<nav class="turn" aria-label="Neighbouring pages">{turn(before, "prev", "Previous")}{turn(after, "next", "Next")}</nav>
</main>
{self.navigation(page)}
</div>
</body>
</html>
"""

    def navigation(self, page):
        lines = ['<nav id="_pages" aria-label="All pages">']
        for part, names in PARTS.items():
            lines += [f"<h2>{part}</h2>", "<ul>"]
            for name in names:
                if other := self.pages.get(name):
                    mark = ' aria-current="page"' if other is page else ""
                    lines.append(f'<li><a href="{other.file}"{mark}>{escape(other.title.partition(":")[0])}</a></li>')
            lines.append("</ul>")
        return "\n".join([*lines, "</nav>"])

    def point(self, link):
        """Has a link lead to a page of HTML. Files of the repository are not in this folder: their names stay."""
        href = link.attrGet("href")
        if ELSEWHERE.match(href):
            return
        target = target_of(href)
        if target is None:
            link.tag = "span"
            link.attrs = {}
            return
        other = self.pages.get(target[0])
        anchor = f"#{target[1]}" if target[1] else ""
        link.attrSet("href", (other.file if other else "") + anchor)

    # MARK: - DocC

    def write_catalog(self, folder):
        shutil.copytree(CATALOG, folder, dirs_exist_ok=True)
        texts = {name: page.text for name, page in self.pages.items() if (CATALOG / f"{name}.md").exists()} | self.generated
        for name, text in texts.items():
            (folder / f"{name}.md").write_text(self.for_docc(self.pages[name], text), encoding="utf-8")
        # DocC's pages ask for it, and complain where it is missing.
        (folder / "theme-settings.json").write_text("{}\n")
        for image in {image.attrGet("src") for page in self.pages.values() for image in page.images}:
            if "/" in image and self.place(image).is_file():
                shutil.copy(self.place(image), folder)

    def for_docc(self, page, text):
        """Links as DocC has them, so that it checks them, too."""
        def link(found):
            words, href = found[1], found[2]
            if ELSEWHERE.match(href):
                return found[0]
            target = target_of(href)
            if target is None:
                # A file of the repository: only its name.
                return words
            other = self.pages.get(target[0] or page.name)
            anchor = next((f"#{docc_anchor(heading)}" for _, heading, mark in (other.headings if other else [])
                           if mark == target[1] and mark), "")
            return f"[{words}](doc:{target[0] or page.name}{anchor})"

        def line(text):
            text = re.sub(r"!\[([^\]]*)\]\((?:[^)]*/)?([^)/]*)\)", r"![\1](\2)", text)
            return LINK.sub(link, text)

        out, fenced = [], False
        for one in text.split("\n"):
            fenced ^= bool(re.match(r"\s*```", one))
            out.append(one if fenced else line(one))
        return "\n".join(out)


def contents(page):
    """The chapters of a page that has several."""
    chapters = [(level, words, anchor) for level, words, anchor in page.headings if level == 2]
    if len(chapters) < 3:
        return ""
    items = "".join(f'<li><a href="#{anchor}">{escape(words)}</a></li>' for _, words, anchor in chapters)
    return f'\n<nav class="contents" aria-label="On this page"><ul>{items}</ul></nav>\n'


def turn(page, relation, words):
    if not page:
        return "<span></span>"
    return f'<a rel="{relation}" href="{page.file}"><small>{words}</small> {escape(page.title)}</a>'


def fence(self, tokens, index, options, env):
    token = tokens[index]
    language = token.info.split()[0] if token.info.strip() else "text"
    text = escape(token.content, quote=False)
    if language in ("yaml", "sh"):
        text = re.sub(r"(?m)(^|(?<=\s))(#.*)$", r"\1<i>\2</i>", text)
    return f'<pre tabindex="0"><code class="{escape(language)}">{text}</code></pre>\n'


def table(self, tokens, index, options, env):
    return f'<div class="table"><table>\n<caption>{escape(tokens[index].meta["caption"])}</caption>\n'


def main(arguments):
    if len(arguments) not in (2, 4) or arguments[2:3] not in ([], ["--catalog"]):
        sys.exit(__doc__)
    manual = Manual(Program(arguments[0]))
    faults = list(manual.faults())
    if len(arguments) == 4:
        manual.write_catalog(Path(arguments[3]))
    manual.write(Path(arguments[1]))
    for fault in faults:
        print(fault)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
