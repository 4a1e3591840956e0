"""Draws images/loop.svg, the picture of the loop, in colours that read well on light and dark pages."""

from pathlib import Path

FILE = Path(__file__).parent / "images/loop.svg"
WIDTH, HEIGHT, BOX, TALL = 660, 270, 188, 84
GREY, BLUE, ORANGE, GREEN = "#7d8794", "#0a6ebd", "#c2560c", "#107a52"
BOXES = {
    "plan": (0, 10, BLUE, "Plan", "before data is touched"),
    "train": (236, 10, BLUE, "Train", "clipped, with noise"),
    "certificate": (472, 10, GREEN, "Certificate", "anyone can recompute it"),
    "label": (118, 176, ORANGE, "People label", "only what was selected"),
    "select": (354, 176, BLUE, "Select", "privately, by the model"),
}
ARROWS = [
    ("M 192 52 H 228", None),
    ("M 428 52 H 464", None),
    ("M 362 98 L 420 168", None),
    ("M 350 218 H 314", None),
    ("M 240 172 L 298 102", ("again", 238, 140)),
]


def drawing() -> str:
    style = 'font-family="system-ui, sans-serif" text-anchor="middle" role="img"'
    tip = 'viewBox="0 0 10 10" refX="7" refY="5" markerWidth="7" markerHeight="7" orient="auto"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" {style}>',
        "<title>The loop: plan, train, select, people label, train again; at the end a certificate</title>",
        f'<defs><marker id="tip" {tip}><path d="M 0 0 L 10 5 L 0 10 z" fill="{GREY}"/></marker></defs>',
    ]
    for x, y, colour, title, words in BOXES.values():
        middle = x + BOX / 2
        parts += [
            f'<rect x="{x}" y="{y}" width="{BOX}" height="{TALL}" rx="10" fill="{colour}"/>',
            f'<text x="{middle:g}" y="{y + 38}" font-size="21" font-weight="600" fill="#fff">{title}</text>',
            f'<text x="{middle:g}" y="{y + 63}" font-size="13.5" fill="#fff">{words}</text>',
        ]
    for path, label in ARROWS:
        parts.append(
            f'<path d="{path}" fill="none" stroke="{GREY}" stroke-width="2.5" marker-end="url(#tip)"/>'
        )
        if label:
            words, x, y = label
            parts.append(
                f'<text x="{x}" y="{y}" font-size="15" fill="{GREY}">{words}</text>'
            )
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    FILE.write_text(drawing(), encoding="utf-8")
