"""The chart of throughput.py: a panel a load, a bar a client."""

from collections.abc import Iterator
from xml.sax.saxutils import escape

from agent import HERE
from groups import Group, speed_text, summary, title

# Its style is chart.css: colours that stand out on white as on black; text follows what the reader prefers.
COLUMNS, PANEL, GAP, MARGIN = 2, 470, 30, 20
NAME, BAR, LINE, TITLE = 96, 180, 22, 34


def text(x: float, y: float, words: str, kind: str = "", end: bool = False) -> str:
    anchor = ' text-anchor="end"' if end else ""
    return f'<text x="{x:.0f}" y="{y:.0f}" class="{kind}"{anchor}>{escape(words)}</text>'


def bars(group: Group, left: float, top: float) -> Iterator[str]:
    """The lines of one panel below its title."""
    figures = [(name, one) for name in group["clients"] if (one := summary(group, name))]
    most = max((one["most"] for _, one in figures), default=1)
    for number, (name, one) in enumerate(figures):
        y, width, is_many = top + number * LINE, one["speed"] / most * BAR, one["rounds"] > 1
        low, high = (left + NAME + one[key] / most * BAR for key in ("least", "most"))
        yield text(left + NAME - 8, y + 12, name, end=True)
        yield (f'<rect x="{left + NAME}" y="{y}" width="{max(width, 1):.1f}" height="{LINE - 6}" rx="2" '
               f'class="{"inlet" if name.startswith("inlet") else "peer"}"/>')
        if is_many:
            yield f'<path d="M{low:.1f} {y + LINE / 2 - 3:.1f}H{high:.1f}" class="spread"/>'
        beside, said = max(left + NAME + width, high if is_many else 0) + 6, speed_text(group, one["speed"])
        yield text(beside, y + 12, said)
        yield text(beside + 7 * len(said) + 4, y + 12, f"{one['cpu']:.1f} CPU s, {one['own']:.0f} MiB", "less")


def height(group: Group) -> int:
    return TITLE + LINE * sum(1 for rounds in group["clients"].values() if rounds) + GAP


def draw(groups: list[Group]) -> str:
    """The panels, row by row; each row is as high as its highest."""
    shapes, top = [], MARGIN
    for at in range(0, len(groups), COLUMNS):
        for column, group in enumerate(groups[at:at + COLUMNS]):
            left = MARGIN + column * (PANEL + GAP)
            shapes += [text(left, top + 14, title(group), "title"), *bars(group, left, top + TITLE - 8)]
        top += max(map(height, groups[at:at + COLUMNS]))
    width = 2 * MARGIN + COLUMNS * PANEL + (COLUMNS - 1) * GAP
    shapes.append(text(MARGIN, top, "Bars are medians, lines the slowest to the fastest round; longer is faster. CPU seconds "
                       "and memory (RssAnon) are the client's, all its processes together.", "less"))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{top + MARGIN}" '
            f'viewBox="0 0 {width} {top + MARGIN}" role="img" aria-label="Throughput of inlet and of its peers">\n'
            f"<style>{(HERE / 'chart.css').read_text()}</style>\n" + "\n".join(shapes) + "\n</svg>\n")
