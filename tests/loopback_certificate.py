"""A certificate for localhost, valid from 2020 to 2120, which nobody trusts unless told to; for tests alone."""

from __future__ import annotations

import ssl
from pathlib import Path

CERTIFICATE = """\
-----BEGIN CERTIFICATE-----
MIIBmTCCAT6gAwIBAgIBATAKBggqhkjOPQQDAjAUMRIwEAYDVQQDDAlsb2NhbGhv
c3QwIBcNMjAwMTAxMDAwMDAwWhgPMjEyMDAxMDEwMDAwMDBaMBQxEjAQBgNVBAMM
CWxvY2FsaG9zdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABGfAESlDJL5zkhoI
oqEd0MQIZBkZAM0pKhRxVitmmHTFcBV4JRbeY3mTRSUtMYWP3JUfPzZGXeqf/gR8
q1kK7XKjfzB9MBoGA1UdEQQTMBGCCWxvY2FsaG9zdIcEfwAAATAPBgNVHRMBAf8E
BTADAQH/MA4GA1UdDwEB/wQEAwIChDAdBgNVHQ4EFgQUu0w3VYlfJR6arUPRT+aG
htnhouMwHwYDVR0jBBgwFoAUu0w3VYlfJR6arUPRT+aGhtnhouMwCgYIKoZIzj0E
AwIDSQAwRgIhAIhUZQJZlLCYh7vwo66GN/H5/g4IwyyQDk47MBS1fQLZAiEArk4e
0/Uda8QUiZ3eejAJhhX9o45tABhTXKt/opwn2W0=
-----END CERTIFICATE-----
"""
KEY = """\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgvZNW4Gk/qdlCkqd8
qx96QFt9OidIDt9+gKtCQcYr2tShRANCAARnwBEpQyS+c5IaCKKhHdDECGQZGQDN
KSoUcVYrZph0xXAVeCUW3mN5k0UlLTGFj9yVHz82Rl3qn/4EfKtZCu1y
-----END PRIVATE KEY-----
"""


def certificate_file(folder: Path) -> Path:
    """A file with the certificate, for [tls] ca_file."""
    path = folder / "authority.pem"
    path.write_text(CERTIFICATE, encoding="ascii")
    return path


def server_context(folder: Path) -> ssl.SSLContext:
    """What a server needs to speak TLS with it."""
    both = folder / "server.pem"
    both.write_text(KEY + CERTIFICATE, encoding="ascii")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(both)
    return context
