"""Draws what throughput.py measured as one SVG: a panel a load, a bar a client.

    chart.py THROUGHPUT.json > THROUGHPUT.svg
"""

import json
import sys
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from targets import is_big, sample, sample_group, speed_text, summary, title

COLUMNS, PANEL, GAP, MARGIN = 2, 470, 30, 20
NAME, BAR, LINE, TITLE = 96, 180, 22, 34
# Colours that stand out on white as on black; text follows what the reader prefers.
STYLE = """
  text { font: 12px system-ui, sans-serif; fill: #1f2328 }
  .title { font-weight: 600; font-size: 13px }
  .less { fill: #59636e; font-size: 11px }
  .inlet { fill: #0969da }
  .peer { fill: #8c959f }
  .spread { stroke: #1f2328; stroke-width: 1 }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc }
    .less { fill: #9198a1 }
    .inlet { fill: #4493f8 }
    .peer { fill: #656c76 }
    .spread { stroke: #f0f6fc }
  }
"""


def text(x, y, words, kind="", end=False):
    anchor = ' text-anchor="end"' if end else ""
    return f'<text x="{x:.0f}" y="{y:.0f}" class="{kind}"{anchor}>{escape(words)}</text>'


def bars(group, left, top):
    """The lines of one panel below its title."""
    figures = [(name, summary(group, name)) for name in group["clients"] if group["clients"][name]]
    most = max((one["most"] for _, one in figures), default=1)
    for number, (name, one) in enumerate(figures):
        y = top + number * LINE
        width = one["speed"] / most * BAR
        yield text(left + NAME - 8, y + 12, name, end=True)
        yield (f'<rect x="{left + NAME}" y="{y}" width="{max(width, 1):.1f}" height="{LINE - 6}" rx="2" '
               f'class="{"inlet" if name.startswith("inlet") else "peer"}"/>')
        if one["rounds"] > 1:
            low, high = (left + NAME + one[key] / most * BAR for key in ("least", "most"))
            yield f'<path d="M{low:.1f} {y + LINE / 2 - 3:.1f}H{high:.1f}" class="spread"/>'
        beside = left + NAME + max(width, one["most"] / most * BAR if one["rounds"] > 1 else 0) + 6
        said = speed_text(group, one["speed"])
        yield text(beside, y + 12, said)
        yield text(beside + 7 * len(said) + 4, y + 12, f"{one['cpu']:.1f} CPU s, {one['rss']:.0f} MiB", "less")


def height(group):
    return TITLE + LINE * sum(1 for rounds in group["clients"].values() if rounds) + GAP


def draw(groups):
    """The panels, row by row; each row is as high as its highest."""
    shapes, top = [], MARGIN
    for at in range(0, len(groups), COLUMNS):
        row = groups[at:at + COLUMNS]
        for column, group in enumerate(row):
            left = MARGIN + column * (PANEL + GAP)
            shapes.append(text(left, top + 14, title(group), "title"))
            shapes += bars(group, left, top + TITLE - 8)
        top += max(map(height, row))
    width = 2 * MARGIN + COLUMNS * PANEL + (COLUMNS - 1) * GAP
    shapes.append(text(MARGIN, top, "Bars are medians, lines the slowest to the fastest round; longer is faster. CPU seconds "
                       "and peak memory are the client's.", "less"))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{top + MARGIN}" '
            f'viewBox="0 0 {width} {top + MARGIN}" role="img" aria-label="Throughput of inlet and of its peers">\n'
            f"<style>{STYLE}</style>\n" + "\n".join(shapes) + "\n</svg>\n")


def self_test():
    groups = [sample_group(1 << 30, r2=[sample(2), sample(4)], curl=[sample(2)], s5cmd=[]),
              sample_group(9, s3=[sample(1)], **{"<odd & name>": [sample(2)]})]
    root = ElementTree.fromstring(draw(groups))
    space = "{http://www.w3.org/2000/svg}"
    rectangles = list(root.iter(space + "rect"))
    words = [one.text for one in root.iter(space + "text")]
    lengths = [float(one.get("width")) for one in rectangles]
    if len(rectangles) != 4 or "s5cmd" in words or "<odd & name>" not in words:
        raise SystemExit(f"the chart has other bars: {words}")
    if abs(lengths[2] / lengths[3] - 2) > 0.01 or not {"0.75 GiB/s", "2 files/s"} <= set(words):
        raise SystemExit(f"bars or figures are wrong: {lengths} {words}")
    if not is_big(groups[0]) or is_big(groups[1]):
        raise SystemExit("is_big is wrong")
    ElementTree.fromstring(draw([]))
    print("ok    chart")


if __name__ == "__main__":
    with open(sys.argv[1]) as file:
        sys.stdout.write(draw(json.load(file)["groups"]))
