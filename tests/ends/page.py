"""Writes a page of 70 objects of 1 to 12 kB into a folder: `page.py FOLDER`.

Prints the bytes of all files. The page's own script waits for the load event, then writes the
browser's timings into the page's body as JSON.
"""

import json
import sys
from pathlib import Path

OBJECTS = 70

folder = Path(sys.argv[1])
total = 0
tags = []
for number in range(OBJECTS):
    size = 1000 + 11_000 * number // (OBJECTS - 1)
    drawing = f'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><!--{"x" * (size - 80)}--></svg>'
    (folder / f"{number}.svg").write_text(drawing)
    tags.append(f'<img src="{number}.svg">')
    total += len(drawing)
script = """
    addEventListener("load", () => setTimeout(() => {
        const [page] = performance.getEntriesByType("navigation");
        const images = performance.getEntriesByType("resource").filter(each => each.name.endsWith(".svg"));
        document.body.textContent = JSON.stringify({
            load_ms: page.loadEventStart, first_byte_ms: page.responseStart, objects: images.length,
            bytes: images.reduce((sum, each) => sum + each.encodedBodySize, 0),
            failed: images.filter(each => !each.responseStatus).map(each => each.name),
        });
    }, 0));
"""
(folder / "index.html").write_text(f"<!doctype html><body>{''.join(tags)}<script>{script}</script></body>")
sys.stdout.write(json.dumps({"objects": OBJECTS, "bytes": total}))
