"""Prints whether TX checksum offload, TSO and GSO of `air0` are enabled: 0 or 1 on a line each.

SIOCETHTOOL with `struct ethtool_value` (<linux/sockios.h>, <linux/ethtool.h>).
"""

import array
import fcntl
import socket
import struct
import sys

SIOCETHTOOL = 0x8946
COMMANDS = {"ETHTOOL_GTXCSUM": 0x16, "ETHTOOL_GTSO": 0x1E, "ETHTOOL_GGSO": 0x23}

with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
    for command in COMMANDS.values():
        value = array.array("I", [command, 0])
        fcntl.ioctl(any_socket, SIOCETHTOOL, struct.pack("16sP16x", b"air0", value.buffer_info()[0]))
        sys.stdout.write(f"{value[1]}\n")
