"""Network settings for providers: proxies, certificates, and addresses without secrets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    import ssl

_LOOPBACK = frozenset(("localhost", "::1", "ip6-localhost"))


class Address(Struct, frozen=True, kw_only=True):
    """The parts of a base URL that are not secret."""

    scheme: str
    host: str
    port: int | None
    path: str
    """The path, without a `/` at its end."""

    @property
    def place(self) -> str:
        """The address without the path, for messages: `https://host:port`."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}{'' if self.port is None else f':{self.port}'}"


def address_of(base_url: str) -> Address | None:
    """Return the parts of `base_url`; None if it is not an http or https URL with a host."""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(base_url.strip())
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return None
    return Address(scheme=parts.scheme, host=parts.hostname, port=port, path=parts.path.rstrip("/"))


def is_local_host(host: str) -> bool:
    """Return whether the host name `host` means this machine. No name is resolved."""
    bare = host.lower().rstrip(".")
    return bare in _LOOPBACK or bare.endswith(".localhost") or _is_127(bare)


def _is_127(host: str) -> bool:
    numbers = host.split(".")
    return len(numbers) == 4 and numbers[0] == "127" and all(number.isdigit() for number in numbers)


def proxy_for(address: Address, environ: Mapping[str, str]) -> str | None:
    """Return the URL of the proxy for `address`; None if it is reached directly. The environment names
    proxies (`HTTPS_PROXY`, …) and exceptions (`NO_PROXY`).

    Lower-case names override upper-case ones, as in curl. This machine is never reached through a proxy.
    """
    if is_local_host(address.host):
        return None
    if _is_excepted(address, _either(environ, "no_proxy")):
        return None
    proxy = _either(environ, f"{address.scheme}_proxy") or _either(environ, "all_proxy")
    if not proxy:
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _either(environ: Mapping[str, str], name: str) -> str:
    """Return the value of a variable by its lower-case or upper-case name; empty if neither is set."""
    return environ.get(name) or environ.get(name.upper()) or ""


def _is_excepted(address: Address, no_proxy: str) -> bool:
    """Return whether `NO_PROXY` excepts the address from proxies."""
    host = address.host.lower()
    for entry in no_proxy.lower().replace(" ", ",").split(","):
        name, _, port = entry.partition(":") if entry.count(":") == 1 else (entry, "", "")
        name = name.strip("[]").removeprefix("*").removeprefix(".")
        if entry == "*":
            return True
        if not name or (port and port != str(address.port)):
            continue
        if host == name or host.endswith(f".{name}"):
            return True
    return False


def trusted_certificates(environ: Mapping[str, str]) -> ssl.SSLContext:
    """Return a TLS context with the trusted certificates: the system's and Mozilla's, or those in
    `SSL_CERT_FILE` and `SSL_CERT_DIR`.

    Takes 30 to 55 ms, so create it once, in a thread. Raises `OSError` (of which `ssl.SSLError` is a
    subclass) if a file is invalid.
    """
    import ssl

    file, folder = environ.get("SSL_CERT_FILE"), environ.get("SSL_CERT_DIR")
    if file or folder:
        return ssl.create_default_context(cafile=file or None, capath=folder or None)
    import certifi  # httpx brings it

    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    return context


def context_without_certificates() -> ssl.SSLContext:
    """Return a TLS context without certificates. Use it for plain http, to save the 30 ms in which
    certificates are loaded."""
    import ssl

    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
