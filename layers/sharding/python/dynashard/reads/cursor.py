"""Cursors of keyset pagination: opaque, versioned, signed tokens that continue a listing.

A token is the signed, compressed JSON of the listing's position, and the fingerprint of its query. Its first character
is the format of that JSON (`cursor_formats`). itsdangerous signs (HMAC-SHA256) and rotates keys: it signs with the last
key of its list and verifies with all.
"""

import hmac
import re
import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import orjson

from dynashard.cursor_keys import CursorKeys
from dynashard.errors import ConfigurationError, InvalidCursorError
from dynashard.reads.cursor_formats import ISSUED, reader_of

if TYPE_CHECKING:
    from itsdangerous import Signer

MIN_KEY_BYTES: Final = 16
FINGERPRINT_BYTES: Final = 8
MAX_LENGTH: Final = 64 * 1024
"""The most characters of a token; the listing with the longest sort keys needs fewer."""
_RAW: Final = b"\0"
_PACKED: Final = b"\1"
_SHORT: Final = 80
"""Bytes of a text that is not compressed, because that would save hardly any."""
_NO_HEADER: Final = -15
"""Makes zlib omit header and checksum, because the signature makes them superfluous."""
_SMALL: Final = (-12, 6)
"""The window and memory for texts of a few KB: zlib would take longer to clear its usual 256 KB than to compress."""
_TOKEN: Final = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]")
"""The one spelling of a token: base64 itself would accept other characters in between and unused bits at the end."""
_SALT: Final = b"dynashard.cursor"
_DAMAGED: Final = "the cursor is damaged; send it exactly as it was returned, or list from the start"


class CursorCodec:
    """Issues and reads cursors.

    `keys` are secrets of at least 16 bytes, newest first: the first signs, all verify. To rotate, put a new one in
    front, and remove the last one when no cursor signed with it is in use. `CursorKeys` are read from where they are
    stored for the first cursor, and again for a cursor that they do not verify. A missing or short key raises
    `ConfigurationError`.
    """

    def __init__(self, keys: Sequence[str] | CursorKeys) -> None:
        self._keys = keys
        self._made = None if isinstance(keys, CursorKeys) else (keys, _signer_of(keys))

    def issue(self, state: Any, fingerprint: bytes) -> str:
        """Return the token for a state of JSON values."""
        raw = orjson.dumps(state)
        packed = _packed(raw) if len(raw) > _SHORT else raw
        body = _PACKED + packed if len(packed) < len(raw) else _RAW + raw
        encoded = urlsafe_b64encode(fingerprint + body).rstrip(b"=")
        return self._signer.sign(ISSUED + encoded).decode()

    def read(self, token: str, fingerprint: bytes) -> Any:
        """Return the state of a token, in the format that is issued.

        Raises:
            InvalidCursorError: it is damaged, forged or not of this query.
            UnsupportedCursorError: it is genuine, and of a format that this release does not read.
        """
        if len(token) > MAX_LENGTH or not _TOKEN.fullmatch(token):
            raise InvalidCursorError(_DAMAGED, field="cursor")
        signed = self._verified(token)
        # The token is genuine, though perhaps of another release or for another query.
        as_issued, encoded = reader_of(signed[:1]), signed[1:]
        plain = urlsafe_b64decode(encoded + b"=" * (-len(encoded) % 4))
        if not hmac.compare_digest(plain[:FINGERPRINT_BYTES], fingerprint):
            raise InvalidCursorError(
                "the cursor was issued for another listing; repeat the query it came from", field="cursor"
            )
        kind, body = plain[FINGERPRINT_BYTES : FINGERPRINT_BYTES + 1], plain[FINGERPRINT_BYTES + 1 :]
        return as_issued(orjson.loads(zlib.decompress(body, wbits=_NO_HEADER) if kind == _PACKED else body))

    def _verified(self, token: str) -> bytes:
        from itsdangerous import BadSignature  # noqa: PLC0415 - only for cursors

        try:
            try:
                return self._signer.unsign(token)
            except BadSignature:
                if not isinstance(self._keys, CursorKeys):
                    raise
                return self._signer_with(self._keys.after_unknown_key()).unsign(token)
        except BadSignature as error:
            raise InvalidCursorError(_DAMAGED, field="cursor") from error

    @property
    def _signer(self) -> "Signer":
        return self._signer_with(self._keys.current() if isinstance(self._keys, CursorKeys) else self._keys)

    def _signer_with(self, keys: Sequence[str]) -> "Signer":
        made = self._made
        if made is None or made[0] != keys:
            made = self._made = (keys, _signer_of(keys))
        return made[1]


def _packed(raw: bytes) -> bytes:
    deflate = zlib.compressobj(9, zlib.DEFLATED, *_SMALL)
    return deflate.compress(raw) + deflate.flush()


def _signer_of(keys: Sequence[str]) -> "Signer":
    from itsdangerous.signer import Signer, SigningAlgorithm  # noqa: PLC0415 - only for cursors

    if isinstance(keys, str):
        raise ConfigurationError("cursor_keys is a text; write a list of texts, the newest first")
    if not isinstance(keys, Sequence) or not all(isinstance(key, str) for key in keys):
        raise ConfigurationError("cursor_keys must be a list of texts, the newest first")
    if not keys or any(len(key.encode()) < MIN_KEY_BYTES for key in keys):
        raise ConfigurationError(f"cursors need signing keys of at least {MIN_KEY_BYTES} bytes each")

    class Sha256(SigningAlgorithm):
        """HMAC by one call, which takes a fourth of the time of an object."""

        def get_signature(self, key: bytes, value: bytes) -> bytes:
            return hmac.digest(key, value, "sha256")

    # The keys are derived as the signer would for each cursor again.
    derived = [hmac.digest(key.encode(), _SALT, "sha256") for key in reversed(keys)]
    return Signer(derived, key_derivation="none", algorithm=Sha256())
