"""The tables of a trace and their columns. Plain Python without Polars, as `airpath.tables` is."""

TIME = "Int64"
"""Nanoseconds since 1 January 1970, UTC."""

TABLES: dict[str, dict[str, str]] = {
    "connections": {
        "connection": "Int64",
        "client": "String",
        "server": "String",
        "client_address": "String",
        "client_port": "Int64",
        "server_address": "String",
        "server_port": "Int64",
        "tunnel": "String",
        "start": TIME,
        "duration_s": "Float64",
        "segments": "Int64",
        "outcome": "String",
    },
    "observations": {
        "connection": "Int64",
        "frame": "Int64",
        "time": TIME,
        "from": "String",
        "flags": "String",
        "offset": "Int64",
        "length": "Int64",
        "acknowledged": "Int64",
        "window": "Int64",
        "outstanding": "Int64",
        "round_trip": "Int64",
        "round_trip_of": "Int64",
        "retransmission": "String",
        "retransmission_of": "Int64",
        "needless": "Int64",
        "needless_by": "String",
        "events": "String",
    },
    "selective": {
        "connection": "Int64",
        "frame": "Int64",
        "time": TIME,
        "from": "String",
        "left": "Int64",
        "right": "Int64",
        "duplicate": "Boolean",
    },
}
"""The tables and their columns, by Polars' names of their types."""
