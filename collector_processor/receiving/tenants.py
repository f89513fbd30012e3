"""Bearer tokens: who may send, and for which tenant."""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence

from redfirst.collector_processor.posting.poster import from_environment
from redfirst.collector_processor.receiving.refusals import Refusal, Refused
from redfirst.collector_processor.settings import DEFAULT_TENANT, TokenSettings
from redfirst.evaluators.errors import ConfigurationError

TENANT_HEADER = "x-redfirst-tenant"
"""Names the tenant that a sender means; refused when its token is another's."""

_SCHEME = "bearer "


class Tenants:
    """Tokens and whose they are. Without tokens everybody may send."""

    def __init__(self, tokens: Sequence[tuple[str, str]] = ()) -> None:
        """``tokens`` are pairs of tenant and token; a tenant may have several, so that they can be changed."""
        self._tokens = [(tenant, token.encode()) for tenant, token in tokens]

    def __bool__(self) -> bool:
        return bool(self._tokens)

    def of(self, headers: Mapping[str, str]) -> str:
        """The tenant of a request with these headers (names in lower case).

        Raises:
            Refused: no token, one that nobody has, or one of another tenant than the request names.
        """
        tenant = self._of(headers.get("authorization", "")) if self._tokens else DEFAULT_TENANT
        meant = headers.get(TENANT_HEADER)
        if meant is not None and meant != tenant:
            raise Refused(
                Refusal.OTHER_TENANT,
                f"{TENANT_HEADER} names another tenant than the token's; leave it out or send that tenant's token.",
            )
        return tenant

    def _of(self, authorization: str) -> str:
        given = authorization[len(_SCHEME) :].strip() if authorization.lower().startswith(_SCHEME) else ""
        found = None
        for tenant, token in self._tokens:  # all of them, so that the time tells nothing
            if hmac.compare_digest(token, given.encode("utf-8", "surrogateescape")):
                found = tenant
        if found is None:
            what = "The token is not known here" if given else "A token is needed"
            raise Refused(Refusal.NO_TOKEN, f"{what}; send authorization: Bearer TOKEN (serve: tokens).")
        return found


def configured_tenants(entries: Sequence[TokenSettings], environment: Mapping[str, str]) -> Tenants:
    """The configured tokens, read from the environment.

    Raises:
        ConfigurationError: a variable is not set, holds no token, or two tenants have one token.
    """
    found: dict[str, str] = {}
    for entry in entries:
        where = f"serve: tokens: {entry.tenant}"
        token = from_environment(entry.token, environment, where)
        if not token.isascii() or not token.isprintable() or " " in token:
            raise ConfigurationError(
                f"{where}: {entry.token} holds no token; use letters, digits and -._~+/=."
            )
        if found.setdefault(token, entry.tenant) != entry.tenant:
            raise ConfigurationError(
                f"{where}: {found[token]} has the same token; each tenant needs its own."
            )
    return Tenants([(tenant, token) for token, tenant in found.items()])
