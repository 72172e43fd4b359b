"""One plain sentence about a line whose requests could be fewer or cheaper, with its reason read off one warp."""

from .words import distance, number

MUCH = 0.1  # a width is worth a remark if the line makes this share of the kernel's requests
TINY = 0.02  # a relative excess below it is rounding: a tail of a row


def stride(access):
    """Bytes from lane to lane in the worst request; None where they differ, or one lane alone is active."""
    addresses = sorted(map(tuple, (access.worst or {}).get("addresses", [])))
    steps = {(b - a) / (other - lane) for (lane, a), (other, b) in zip(addresses, addresses[1:])}
    step = steps.pop() if len(steps) == 1 else 0.5
    return int(step) if step == int(step) else None


def apart(step):
    if step is None:
        return "the lanes' addresses follow no single step"
    return f"neighbouring lanes are {distance(abs(step))} apart"


def of_global(access, requests):
    """`requests` are the kernel's own to global memory, all together."""
    step = stride(access)
    if access.excess > TINY * access.transfers:
        addresses = (access.worst or {}).get("addresses") or [[0, 0]]
        why = apart(step)
        if step == access.size and addresses[0][1] % 32:
            why = f"neighbouring elements, but from {distance(addresses[0][1] % 32)} past the start of a sector"
        elif step == access.size:
            why = f"of neighbouring elements, only {len(addresses)} are requested"
        return (
            f"{number(access.per_request)} sectors per request where {number(access.ideal_per_request)} would do: {why}"
        )
    if access.kind != "atomic" and step == access.size and access.size in (1, 2, 4, 8):
        if access.requests >= MUCH * requests and not access.is_async:
            share = {2: "half", 4: "a quarter", 8: "an eighth", 16: "a sixteenth"}[16 // access.size]
            return (
                f"neighbouring elements: 16 bytes per lane instead of {access.size} would take {share} of the requests"
            )
    return None


def of_shared(access):
    if access.excess <= TINY * access.transfers:
        return None
    said = f"{number(access.per_request)} wavefronts per request where {number(access.ideal_per_request)} would do"
    if access.kind == "atomic":
        return f"{said}: lanes that access the same word, or words of one bank, take turns"
    step = stride(access)
    if step and step % 128 == 0:
        return f"{said}: neighbouring lanes are {distance(abs(step))} apart, so all access the same bank"
    return f"{said}: {apart(step)}, and different words of one bank take turns"


def remark(access, kernel):
    """What to say about a line, or None if there is nothing to improve."""
    if not access.is_global:
        return of_shared(access)
    return of_global(access, sum(each.requests for each in kernel.accesses if each.is_global))
