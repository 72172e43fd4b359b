"""A picture as plain SVG, put together from rectangles, lines and words; and what makes a picture dark on a dark page.

The ground is white where a viewer knows no dark pages, and never transparent, so a picture is readable on any page.
"""

from html import escape

from ..core import results

INK, GREY, PALE = "#222222", "#666666", "#dddddd"
ON_BRIGHT = "#111111"  # words on a box whose colour is bright on a dark page, too
# On a dark page: colours of a light one, as what matplotlib and Picture write, and what takes their place.
DARK = {
    "#ffffff": "#16171d",
    "#000000": "#e4e6eb",
    "#222222": "#e4e6eb",
    "#444444": "#b4b7bf",
    "#666666": "#a2a6af",
    "#7a5c00": "#b08f3a",
    "#aaaaaa": "#6a6e78",
    "#bbbbbb": "#767a84",
    "#cccccc": "#4c505a",
    "#dddddd": "#363a44",
    "#eeeeee": "#2a2d36",
    "#eef3f8": "#232b36",
    "#f2f2f2": "#2a2d36",
    "#fff3d6": "#43391f",
}
TEXT = "#5ab0e8"  # blue words
FONT = "system-ui, 'DejaVu Sans', Arial, sans-serif"


def dark_style():
    """Rules of CSS that give a picture other greys on a dark page. White words stay, since they stand on coloured boxes."""
    rules = [f"svg{{fill:{DARK['#000000']}}}"]  # words of matplotlib that are black say no colour
    for light, dark in DARK.items():
        for property in ("fill", "stroke"):
            shapes = ("path", "rect") if light == "#ffffff" else ("",)
            chosen = [
                f"{shape}[{how}]"
                for shape in shapes
                for how in (f'style*="{property}: {light}"', f'{property}="{light}"')
            ]
            rules.append(f"{','.join(chosen)}{{{property}:{dark}!important}}")
    for words in ('g[style*="fill: #0072b2"]', 'text[fill="#0072B2"]'):
        rules.append(f"{words}{{fill:{TEXT}!important}}")
    return "@media (prefers-color-scheme:dark){" + "".join(rules) + "}"


class Picture:
    """Places and sizes are in pixels, from the upper left corner; what stands first is drawn first."""

    def __init__(self, width, height, title):
        self.width, self.height, self.title, self.parts = width, height, title, []

    def box(self, x, y, width, height, fill="none", stroke="none", round=0):
        self.parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{round}" fill="{fill}" stroke="{stroke}"/>'
        )

    def line(self, x1, y1, x2, y2, color=GREY, width=1, dash="", arrow=False):
        more = f' stroke-dasharray="{dash}"' if dash else ""
        more += ' marker-end="url(#tip)"' if arrow else ""
        place = f'x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}"'
        self.parts.append(f'<line {place} stroke="{color}" stroke-width="{width}"{more}/>')

    def arrow(self, x1, y1, x2, y2, color=GREY, width=1.4, dash=""):
        self.line(x1, y1, x2, y2, color, width, dash, arrow=True)

    def words(self, x, y, text, size=13, color=INK, at="start", bold=False):
        weight = ' font-weight="bold"' if bold else ""
        self.parts.append(
            f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{color}" text-anchor="{at}"{weight}>{escape(text)}</text>'
        )

    def fixed(self, x, y, text, size=12):
        """Text in which all letters are equally wide, with its blanks."""
        style = 'font-family="\'DejaVu Sans Mono\', Menlo, Consolas, monospace" xml:space="preserve"'
        self.parts.append(f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{INK}" {style}>{escape(text)}</text>')

    def save(self, target):
        text = "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" width="{self.width}" '
                f'height="{self.height}" role="img" font-family="{FONT}">',
                f"<title>{escape(self.title)}</title>",
                f"<style>{dark_style()}</style>",
                '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
                f'<path d="M0 0L8 4L0 8z" fill="{GREY}"/></marker></defs>',
                f'<rect width="{self.width}" height="{self.height}" rx="6" fill="#ffffff" stroke="{PALE}"/>',
                *self.parts,
                "</svg>\n",
            ]
        )
        target.parent.mkdir(parents=True, exist_ok=True)
        target.with_suffix(".svg").write_text(text, encoding="utf-8")
        print(f"plot: {results.shown(target)}.svg")
