"""Stores a file by FTP in active mode and fetches it again: SERVER FILE NAME FETCHED."""

import ftplib
import sys
from pathlib import Path

server, file, name, fetched = sys.argv[1:]
with ftplib.FTP(server, timeout=20) as ftp:
    ftp.login()
    ftp.set_pasv(False)
    with Path(file).open("rb") as content:
        ftp.storbinary(f"STOR {name}", content)
    with Path(fetched).open("wb") as out:
        ftp.retrbinary(f"RETR {name}", out.write)
