"""Several traces compared: sums side by side, and one report of a connection of each.

| module | what |
| --- | --- |
| `table` | sums over all connections of each trace, as a frame |
| `report` | the HTML file |
| `figures` | its figures |
| `differences` | its table of differences |
| `sentences` | its sentences |
"""

from airpath.trace.compare.table import compare, labels, note_on_quic

__all__ = ["compare", "labels", "note_on_quic"]
