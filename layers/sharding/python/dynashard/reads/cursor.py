"""Cursors: opaque, versioned, signed tokens that continue a listing.

A token is the signed, compressed JSON of where the listing stands and the fingerprint of the question it answers.
Signing and key rotation are itsdangerous': the last key of the list signs, all of them verify.
"""

import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from collections.abc import Sequence
from hashlib import sha256
from hmac import compare_digest
from typing import Any, Final

import orjson
from itsdangerous import BadSignature, Signer

from dynashard.errors import ConfigurationError, InvalidCursorError

VERSION: Final = b"1"
MIN_KEY_BYTES: Final = 16
_MAX_TOKEN: Final = 64 * 1024
_MAX_STATE: Final = 4 * 1024 * 1024
_FINGERPRINT_BYTES: Final = 8


class CursorCodec:
    """Issues and reads cursors.

    Args:
        keys: secrets of at least 16 bytes, newest first: the first signs, all verify. To rotate, put a new one in
            front and take the last one away when no cursor signed with it is in use any more.

    Raises:
        ConfigurationError: no key, or one that is too short.
    """

    def __init__(self, keys: Sequence[str]) -> None:
        if not keys or any(len(key.encode()) < MIN_KEY_BYTES for key in keys):
            raise ConfigurationError(f"cursors need signing keys of at least {MIN_KEY_BYTES} bytes each")
        self._signer = Signer(
            list(reversed(keys)), salt=b"dynashard.cursor", key_derivation="hmac", digest_method=sha256
        )

    def issue(self, state: Any, fingerprint: bytes) -> str:
        """A token for a state of JSON values."""
        packed = zlib.compress(orjson.dumps(state), level=9, wbits=-15)
        raw = orjson.dumps(state)
        body = b"\1" + packed if len(packed) < len(raw) else b"\0" + raw
        return self._signer.sign(VERSION + urlsafe_b64encode(fingerprint + body).rstrip(b"=")).decode()

    def read(self, token: str, fingerprint: bytes) -> Any:
        """The state of a token.

        Raises:
            InvalidCursorError: damaged, forged, of another version, or issued for another question.
        """
        try:
            if len(token) > _MAX_TOKEN:
                raise InvalidCursorError(_DAMAGED, field="cursor")
            signed = self._signer.unsign(token.encode("ascii"))
            if signed[:1] != VERSION:
                raise InvalidCursorError("the cursor is of another version; list from the start", field="cursor")
            encoded = signed[1:]
            plain = urlsafe_b64decode(encoded + b"=" * (-len(encoded) % 4))
            if not compare_digest(plain[:_FINGERPRINT_BYTES], fingerprint):
                raise InvalidCursorError(
                    "the cursor was issued for another listing; repeat the query it came from", field="cursor"
                )
            return orjson.loads(_unpacked(plain[_FINGERPRINT_BYTES:]))
        except (BadSignature, UnicodeEncodeError, Base64Error, zlib.error, orjson.JSONDecodeError) as error:
            raise InvalidCursorError(_DAMAGED, field="cursor") from error


_DAMAGED: Final = "the cursor is damaged; pass it on exactly as it was answered, or list from the start"


def _unpacked(body: bytes) -> bytes:
    if body[:1] == b"\0":
        return body[1:]
    return zlib.decompressobj(wbits=-15).decompress(body[1:], _MAX_STATE)


def pack_texts(texts: Sequence[str]) -> list[Any]:
    """Texts without what all of them begin with, which comes first."""
    first, last = min(texts), max(texts)
    length = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))
    shared = first[:length]
    return [shared, *(text[len(shared) :] for text in texts)]


def unpack_texts(packed: Sequence[str]) -> list[str]:
    """The texts that `pack_texts` packed."""
    shared, *rest = packed
    return [shared + text for text in rest]
