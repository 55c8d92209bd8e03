"""Write the pages of `pages/` from the tables of their sources.

Sources give numbers of objects, shares and ranges. Sizes within a range are spread evenly, and
references within a document too: both are choices of ours, the same for all pages.
"""

from dataclasses import dataclass, field
from pathlib import Path

PAGES = Path(__file__).parent.parent / "pages"


@dataclass
class Page:
    """A page under construction."""

    name: str
    title: str
    source: str
    lines: list[str] = field(default_factory=list)

    def add(self, name: str, kind: str, size: int, **keys: str | int | bool) -> None:
        """Add an object."""
        self.lines += ["", "[[object]]", f'name = "{name}"', f'type = "{kind}"', f'size = "{size} B"']
        for key, value in keys.items():
            text = str(value).lower() if isinstance(value, (bool, int)) else f'"{value}"'
            self.lines.append(f"{key} = {text}")

    def write(self) -> None:
        """Write the file."""
        head = ["format = 1", f'name = "{self.name}"', f'title = "{self.title}"', f'source = "{self.source}"']
        (PAGES / f"{self.name}.page").write_text("\n".join([*head, *self.lines, ""]), encoding="utf-8")


def spread(least: float, most: float, number: int) -> list[int]:
    """Return sizes in the middles of equal parts of a range."""
    return [round(least + (most - least) * (index + 0.5) / number) for index in range(number)]


def shares(total: float, number: int) -> list[int]:
    """Return sizes that grow evenly and sum up to a total: the largest is three times the least."""
    mean = total / number
    sizes = spread(mean / 2, mean * 3 / 2, number)
    sizes[-1] += round(total) - sum(sizes)
    return sizes


def interleaved(groups: list[list[tuple[str, int]]]) -> list[tuple[str, int]]:
    """Return the members of all groups, each group spread evenly over the whole."""
    places = [
        ((index + 0.5) / len(group), number, member)
        for number, group in enumerate(groups)
        for index, member in enumerate(group)
    ]
    return [member for _, _, member in sorted(places)]


def static_site() -> None:
    """The static test site of the study gprs-proxy."""
    page = Page(
        "static-site",
        "the static test site of the study gprs-proxy: one index and 45 images",
        "gprs-proxy, Table 1; sizes spread evenly over its ranges, the image above 10 KB has 12 KB",
    )
    page.add("index.html", "document", 40_000)
    groups = [spread(200, 2_000, 20), spread(2_000, 5_000, 20), spread(5_000, 10_000, 4), [12_000]]
    images = interleaved([[("image", size) for size in group] for group in groups])
    for index, (_, size) in enumerate(images):
        page.add(f"image-{index}.gif", "image", size, at=f"{round(40_000 * (index + 1) / (len(images) + 1))} B")
    page.write()


def front_page() -> None:
    """The dynamic site of the study gprs-proxy."""
    page = Page(
        "front-page",
        "a front page with scripts and frames: 109 requests, as the dynamic site of the study gprs-proxy",
        "gprs-proxy, Fig. 17 (109 connections without persistence) and section C.1 (an index of 40 to 50 KB). "
        "The study prints no more: kinds, sizes and references of the other objects are our choice",
    )
    page.add("index.html", "document", 45_000, wait="50 ms")
    page.add("main.css", "style", 6_000, at="500 B")
    groups = [
        [("image", size) for size in spread(100, 2_000, 60)],
        [("image", size) for size in spread(2_000, 5_000, 20)],
    ]
    groups.append([("script", size) for size in spread(1_000, 6_000, 8)])
    groups.append([("document", size) for size in spread(1_000, 3_000, 4)])
    objects = interleaved(groups)
    for index, (kind, size) in enumerate(objects):
        at = f"{round(45_000 * (index + 1) / (len(objects) + 1))} B"
        suffix = {"image": "gif", "script": "js", "document": "html"}[kind]
        keys = {"process": "50 ms"} if kind == "script" else {"wait": "50 ms"} if kind == "document" else {}
        page.add(f"{kind}-{index}.{suffix}", kind, size, at=at, **keys)
    referrers = [f"{kind}-{index}" for index, (kind, _) in enumerate(objects) if kind in ("script", "document")]
    for index, size in enumerate(spread(500, 4_000, 15)):
        referrer = referrers[index % len(referrers)]
        suffix = "js" if referrer.startswith("script") else "html"
        page.add(f"banner-{index}.gif", "image", size, referrer=f"{referrer}.{suffix}")
    page.write()


def umts_live(name: str, title: str, objects: int, kilobytes: float, percent: dict[str, float], html: int) -> None:
    """Write a page of the study umts-live from its Table VI."""
    page = Page(
        name,
        title,
        "umts-live, Table VI, in kB of 1024 B: the first page is printed with 60.3 kbit/s in 13.9 s. Numbers of "
        "objects by type, sizes of single objects, and the compression of text to 30 % are our choice",
    )
    total = kilobytes * 1_024
    # Printed shares are rounded: they are scaled to a sum of 100.
    percent = {key: share * 100 / sum(percent.values()) for key, share in percent.items()}
    text = {
        "document": ("html", percent["html"]),
        "style": ("css", percent["css"]),
        "script": ("js", percent["script"]),
    }
    pictures = {"gif": percent["gif"], "jpg": percent["jpeg"]}
    index_size = round(total * percent["html"] / 100 / (1 + 0.1 * (html - 1)))
    rest = round(total * percent["html"] / 100) - index_size
    page.add("index.html", "document", index_size, compressed=f"{round(index_size * 0.3)} B")
    others: list[list[tuple[str, int]]] = []
    if html > 1:
        others.append([("document", size) for size in shares(rest, html - 1)])
    others += [[(kind, round(total * text[kind][1] / 100))] for kind in ("style", "script") if text[kind][1]]
    number = objects - 1 - sum(len(group) for group in others)
    # As many GIFs as are smaller on average by three.
    gifs = round(number * 3 * pictures["gif"] / (3 * pictures["gif"] + pictures["jpg"])) if pictures["jpg"] else number
    others.append([("gif", size) for size in shares(total * pictures["gif"] / 100, gifs)])
    others.append([("jpg", size) for size in shares(total * pictures["jpg"] / 100, number - gifs)])
    ordered = interleaved(others)
    for index, (kind, size) in enumerate(ordered):
        at = f"{round(index_size * (index + 1) / (len(ordered) + 1))} B"
        if kind in text:
            page.add(f"{kind}-{index}.{text[kind][0]}", kind, size, compressed=f"{round(size * 0.3)} B", at=at)
        else:
            page.add(f"image-{index}.{kind}", "image", size, at=at)
    page.write()


def median() -> None:
    """A page of median weight."""
    page = Page(
        "median-2024",
        "a page of median weight of October 2024: 71 requests, 2652 KB",
        "HTTP Archive, Web Almanac 2024, Page Weight, desktop home pages, crawl of October 2024: medians of all bytes "
        "(2652 KB) and requests (71), of images (1054 KB, 18), scripts (613 KB, 24), fonts (131 KB), styles (78 KB) "
        "and HTML (18 KB). The remainder is other data. Numbers of the other types, six origins, compression to 30 % "
        "and the times of servers and scripts are our choice",
    )
    kilobyte = 1_024
    page.add("index.html", "document", round(18 * kilobyte / 0.3), compressed=f"{18 * kilobyte} B", wait="100 ms")
    content = round(18 * kilobyte / 0.3)
    origins = ["www", "static", "images", "tags", "ads", "fonts"]
    groups = [
        ("style", shares(78 * kilobyte, 8), "static", True),
        ("script", shares(613 * kilobyte, 24), "", True),
        ("image", shares(1_054 * kilobyte, 18), "images", False),
        ("font", shares(131 * kilobyte, 4), "fonts", False),
        ("data", shares((2_652 - 1_054 - 613 - 131 - 78 - 18) * kilobyte, 16), "", False),
    ]
    styles: list[str] = []
    scripts: list[str] = []
    for kind, sizes, origin, compresses in groups:
        for index, size in enumerate(sizes):
            name = f"{kind}-{index}"
            host = origin or origins[(1, 3, 4)[index % 3]]
            keys: dict[str, str] = {"origin": f"{host}.example.com", "wait": "30 ms", "cache": "fresh"}
            if compresses:
                keys["compressed"] = f"{size} B"
            if kind == "script":
                keys["process"] = "20 ms"
                scripts.append(name)
            if kind == "style":
                styles.append(name)
            if kind == "font":
                keys["referrer"] = styles[index % len(styles)]
            elif kind == "data":
                keys |= {"referrer": scripts[index % len(scripts)], "cache": "never"}
            else:
                share = {"style": 0.1, "script": 0.9, "image": 0.9}[kind]
                keys["at"] = f"{round(content * share * (index + 1) / (len(sizes) + 1))} B"
            page.add(name, kind, round(size / 0.3) if compresses else size, **keys)
    page.write()


def main() -> None:
    """Write all pages."""
    static_site()
    front_page()

    def shares_of(*percent: float) -> dict[str, float]:
        return dict(zip(("html", "gif", "jpeg", "css", "script"), percent, strict=True))

    umts_live("umts-live-yahoo", "a portal: 15 objects, 102.4 kB", 15, 102.4, shares_of(77.7, 13.8, 8.4, 0, 0), 3)
    umts_live(
        "umts-live-star-wars",
        "many images: 70 objects, 430.2 kB",
        70,
        430.2,
        shares_of(24.7, 46.2, 26.1, 0.7, 2.0),
        5,
    )
    umts_live("umts-live-cnn", "a front page: 70 objects, 178.1 kB", 70, 178.1, shares_of(28.4, 39.5, 17.6, 14.4, 0), 1)
    median()


if __name__ == "__main__":
    main()
