"""Put on the path of a program under test: it refuses, and notes, every address beyond this machine."""

import ipaddress
import os
import sys

_NAMES = {"localhost", "", None}


def _is_here(host: object) -> bool:
    if isinstance(host, bytes):
        host = host.decode()
    if host in _NAMES or not isinstance(host, str):
        return host in _NAMES
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def _watch(event: str, arguments: tuple[object, ...]) -> None:
    if event == "socket.getaddrinfo":
        host = arguments[0]
    elif event in ("socket.connect", "socket.sendto") and isinstance(arguments[1], tuple):
        host = arguments[1][0]
    else:
        return
    if not _is_here(host):
        with open(os.environ["BEYOND_LOOPBACK"], "a", encoding="utf-8") as notes:  # noqa: PTH123 - light to import
            notes.write(f"{event} {host}\n")
        raise OSError(f"{event} {host}: beyond loopback")


sys.addaudithook(_watch)
