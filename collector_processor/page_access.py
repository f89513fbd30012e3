"""Who may use the API and read the metrics: the tokens of the receivers, and the service's own commands."""

from __future__ import annotations

import base64
import hmac
import secrets
from collections.abc import Mapping

from redfirst.collector_processor.receiving.refusals import Refusal, Refused
from redfirst.collector_processor.receiving.tenants import Tenants

_BASIC = "basic "
_BEARER = "bearer "


def own_token() -> str:
    """A token for the commands that may read the home's lock: made at each start, kept nowhere else."""
    return secrets.token_urlsafe(32)


class PageAccess:
    """Whose runs a request may see and change."""

    def __init__(self, tenants: Tenants | None = None, *, own: str = "", only_own: bool = False) -> None:
        """``own`` is of the service's own commands; with ``only_own`` nobody else is let in."""
        self._tenants = tenants or Tenants()
        self._own = own.encode()
        self._only_own = only_own

    def limited_to(self, headers: Mapping[str, str]) -> str | None:
        """The tenant whose runs alone a request with these headers (names in lower case) is about; None: all of them.

        Raises:
            Refused: no token, one that nobody has, or one of another tenant than the request names.
        """
        token = _token(headers.get("authorization", ""))
        if self._own and hmac.compare_digest(self._own, token.encode("utf-8", "surrogateescape")):
            return None
        if self._only_own:
            raise Refused(Refusal.NO_TOKEN, "This port is for redfirst's own commands on this machine.")
        if not self._tenants:
            return None
        return self._tenants.of({**headers, "authorization": f"Bearer {token}"})


def _token(authorization: str) -> str:
    """The bearer token; a browser sends it as the password that it asked a person for."""
    scheme = authorization[: len(_BASIC)].lower()
    if scheme == _BASIC:
        try:
            return base64.b64decode(authorization[len(_BASIC) :], validate=True).decode().partition(":")[2]
        except ValueError:  # no base64, or no UTF-8 in it
            return ""
    return authorization[len(_BEARER) :].strip() if authorization[: len(_BEARER)].lower() == _BEARER else ""
