"""Drawings of one warp's request: its addresses in 32-byte sectors, or in the 32 banks of shared memory. SVG."""

from .words import count, distance

CELL, GAP = 17, 5  # pixels: a 4-byte word; between two sectors
SECTORS_A_ROW = 5
BANKS = 32


def words_of(addresses, size):
    """{word's number: [lanes that access a part of it]}, in order of the words."""
    words = {}
    for lane, offset in addresses:
        for word in range(offset // 4, (offset + size - 1) // 4 + 1):
            words.setdefault(word, []).append(lane)
    return dict(sorted(words.items()))


def label(lanes):
    return str(lanes[0]) if len(lanes) == 1 else f"{lanes[0]}+"


def title(lanes):
    return f"lane {lanes[0]}" if len(lanes) == 1 else f"lanes {', '.join(map(str, lanes))}"


def cell(x, y, lanes, kind):
    if not lanes:
        return f'<rect class="idle" x="{x}" y="{y}" width="{CELL}" height="{CELL}"/>'
    return (
        f'<g><title>{title(lanes)}</title><rect class="{kind}" x="{x}" y="{y}" width="{CELL}" height="{CELL}"/>'
        f'<text x="{x + CELL / 2}" y="{y + CELL - 5}">{label(lanes)}</text></g>'
    )


def svg(width, height, parts, what):
    return (
        f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" aria-label="{what}">'
        f"{''.join(parts)}</svg>"
    )


def sectors(addresses, size):
    """The sectors that a request touches, eight words each; a word holds the number of the lane that requests it."""
    words = words_of(addresses, size)
    touched = sorted({word // 8 for word in words})
    width, height = 8 * CELL + GAP, CELL + 16
    parts = []
    for position, sector in enumerate(touched):
        x, y = position % SECTORS_A_ROW * (width + 14), position // SECTORS_A_ROW * (height + 6)
        gap = sector - touched[position - 1] if position else 1
        said = f"byte {32 * sector:,}" if position == 0 else "" if gap == 1 else f"+ {distance(32 * gap)}"
        parts.append(f'<text class="where" x="{x}" y="{y + 10}">{said}</text>')
        parts += [cell(x + CELL * i, y + 13, words.get(8 * sector + i), "used") for i in range(8)]
        parts.append(f'<rect class="frame" x="{x}" y="{y + 13}" width="{8 * CELL}" height="{CELL}"/>')
    rows = -(-len(touched) // SECTORS_A_ROW)
    return svg(SECTORS_A_ROW * (width + 14), rows * (height + 6), parts, count(len(touched), "sector"))


def banks(addresses, size):
    """The words that a request accesses, each in the column of its bank: a column of two takes two turns."""
    words = words_of(addresses, size)
    columns = [[] for _ in range(BANKS)]
    for word, lanes in words.items():
        columns[word % BANKS].append(lanes)
    deepest = max(map(len, columns))
    parts = [f'<text class="bank" x="{bank * CELL + CELL / 2}" y="10">{bank}</text>' for bank in range(BANKS)]
    for bank, column in enumerate(columns):
        kind = "used" if len(column) < 2 else "clash"
        cells = column or [None]
        parts += [cell(bank * CELL, 14 + depth * CELL, lanes, kind) for depth, lanes in enumerate(cells)]
    return svg(BANKS * CELL, 16 + deepest * CELL, parts, f"at most {count(deepest, 'word')} in one bank")


def picture(access):
    """The worst request of a line as an SVG; None where none is kept."""
    addresses = (access.worst or {}).get("addresses")
    if not addresses:
        return None
    return (sectors if access.is_global else banks)(addresses, access.size)
