"""A picture as plain SVG, put together from rectangles, lines and words. It has a white ground, so that it is readable on a
dark page, too."""

from html import escape

from ..core import results

INK, GREY, PALE = "#222222", "#666666", "#dddddd"
FONT = "system-ui, 'DejaVu Sans', Arial, sans-serif"


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
