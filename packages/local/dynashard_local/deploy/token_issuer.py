"""An OpenID Connect issuer over HTTPS: serves the discovery document and the key set that gateways read."""

import json
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from threading import Thread
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

from dynashard_local.gateway.tokens import Issuer

AUDIENCE = "dynashard-local"


@contextmanager
def serving(folder: Path) -> Iterator[tuple[Issuer, Path]]:
    """Serve an issuer on a free port; yields it, and its certificate, which is written to `folder`."""
    documents: dict[str, Mapping[str, Any]] = {}

    class Documents(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = documents.get(self.path)
            body = json.dumps(found).encode()
            self.send_response(404 if found is None else 200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_arguments: object) -> None:
            """Log nothing."""

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    certificate = _certificate(key, folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Documents)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    issuer = Issuer(key, f"https://127.0.0.1:{server.server_port}", AUDIENCE)
    documents["/.well-known/openid-configuration"] = issuer.discovery()
    documents["/.well-known/jwks.json"] = issuer.jwks()
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield issuer, certificate
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _certificate(key: rsa.RSAPrivateKey, folder: Path) -> Path:
    """Write a self-signed certificate for this machine's own address, in one file with its key."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "local issuer")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = folder / "issuer.pem"
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    return path
