"""The keys of end-to-end encryption, as callers give them: checked at the start, before any entry needs them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from eos.config import FILE, EncryptionKeys, KeyFiles
from eos.credentials import SecretUnreadable, check_path, text_of
from eos.errors import InvalidInput
from eos.json_reader import read_json

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey

LEAST_BITS = 2048
_PEM = "-----BEGIN "
_MAKE_ONE = "openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out PRIVATE"
_PUBLIC_HALF = "openssl pkey -in PRIVATE -pubout -out PUBLIC"


def library() -> None:
    """Raise InvalidInput where the library for encryption is missing."""
    try:
        import cryptography  # noqa: F401
    except ImportError as error:
        raise InvalidInput(
            f"encryption needs what can't be imported here: {error}. Install it with pip install "
            '"spark-pulsar-eos[encryption]", on every machine that runs tasks.'
        ) from error


def public_keys(given: object) -> EncryptionKeys:
    """Return the public keys of an option `encryption_keys`, each as PEM text, in the order of their names.

    Args: {name: "file:PATH" of a PEM file, or PEM text}.

    Raises InvalidInput: no such dict; a file that can't be read; no public key of RSA, or too short a one; the library
    is missing. The content of a key is not in the message.
    """
    if not isinstance(given, Mapping) or not given:
        shown = "empty" if isinstance(given, Mapping) else type(given).__name__
        raise InvalidInput(
            f"encryption_keys= is {shown}. It must be a dict with a public key at least, such as "
            '{"flights": "file:/etc/pulsar/flights.public.pem"}.'
        )
    library()
    return tuple(sorted((_name("encryption_keys", name), _public(name, given[name])) for name in given))


def key_files(given: str) -> KeyFiles:
    """Return names and files of the private keys of an option `decryption_keys`, each read once to check it.

    Args: the JSON object {name: "file:PATH" of a PEM file}.

    Raises InvalidInput: no such object; a file that can't be read, or holds no private key of RSA that is usable
    without a passphrase; the library is missing. The content of a key is not in the message.
    """
    try:
        found: object = read_json(given)
    except ValueError:
        found = None  # said without the error, which holds the whole text: it may be a key
    if not isinstance(found, dict) or not found:
        raise InvalidInput(
            'decryption_keys must be a JSON object of names and files, such as {"flights": '
            '"file:/etc/pulsar/flights.pem"}.'
        )
    files = []
    for name, file in found.items():
        where = _where("decryption_keys", _name("decryption_keys", name))
        if not isinstance(file, str) or not file.startswith(FILE):
            raise InvalidInput(
                f'{where} must be "file:PATH", of a file on every machine that runs tasks. A private key among the '
                "options would be in Spark's logs and plans."
            )
        files.append((name, file.removeprefix(FILE)))
    private_keys(tuple(files))
    return tuple(files)


def private_keys(files: KeyFiles) -> dict[str, RSAPrivateKey]:
    """Return the private keys of these files. Raises InvalidInput as `key_files` does."""
    library()
    return {name: _private(_where("decryption_keys", name), path) for name, path in files}


@lru_cache(maxsize=64)
def public_key(text: str) -> RSAPublicKey:
    """Return a public key. Args: PEM text that was checked."""
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    return load_pem_public_key(text.encode())


def _name(option: str, name: object) -> str:
    if not isinstance(name, str) or not name:
        raise InvalidInput(f"{option}: {name!r} can't name a key. A name is a text that is not empty.")
    return name


def _where(option: str, name: str) -> str:
    return f"{option}[{name!r}]"


def _read(where: str, path: str) -> str:
    check_path(where, path)
    try:
        return text_of(Path(path))
    except SecretUnreadable as why:
        raise InvalidInput(f"{where}: {path} can't be read: {why}.") from None


def _public(name: str, given: object) -> str:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    where = _where("encryption_keys", name)
    if not isinstance(given, str) or not given.lstrip().startswith((FILE, _PEM)):
        raise InvalidInput(
            f'{where} must be "file:PATH" of a PEM file, or PEM text that begins with -----BEGIN PUBLIC KEY-----.'
        )
    text = given.lstrip()
    if text.startswith(FILE):
        where = f"{where}, {text}"
        text = _read(_where("encryption_keys", name), text.removeprefix(FILE))
    if "PRIVATE KEY-----" in text:
        raise InvalidInput(
            f"{where} is a private key. A writer needs the public half alone, and tasks must not carry the other: "
            f"{_PUBLIC_HALF}"
        )
    if "CERTIFICATE-----" in text:
        raise InvalidInput(
            f"{where} is a certificate. Take the public key out of it: openssl x509 -in CERTIFICATE -pubkey -noout"
        )
    try:
        key = public_key(text)
    except (ValueError, UnsupportedAlgorithm):
        raise InvalidInput(
            f"{where} is not a public key in PEM, such as begins with -----BEGIN PUBLIC KEY-----. To make one: "
            f"{_MAKE_ONE}, then {_PUBLIC_HALF}"
        ) from None
    if not isinstance(key, RSAPublicKey):
        raise InvalidInput(
            f"{where} is a key of another kind than RSA. Of the official clients only the Java client could read what "
            f"an EC key encrypts, and none takes another kind. Make one of RSA: {_MAKE_ONE}, then {_PUBLIC_HALF}"
        )
    if key.key_size < LEAST_BITS:
        raise InvalidInput(
            f"{where} has {key.key_size} bits, and is too easily broken. It must have {LEAST_BITS} or more. To make "
            f"one: {_MAKE_ONE}, then {_PUBLIC_HALF}"
        )
    return bytes(key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)).decode()


def _private(where: str, path: str) -> RSAPrivateKey:
    text = _read(where, path)
    where = f"{where}, {path}"
    if "PUBLIC KEY-----" in text or "CERTIFICATE-----" in text:
        raise InvalidInput(f"{where} holds no private key but a public one. It can encrypt, and not decrypt.")
    return _loaded(where, text)


@lru_cache(maxsize=64)  # to load one takes some 50 ms: it is checked whether it is a key of RSA at all
def _loaded(where: str, text: str) -> RSAPrivateKey:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(text.encode(), None)
    except TypeError:
        raise InvalidInput(
            f"{where} is locked by a passphrase. Write it without one, readable by this job's user alone: openssl pkey "
            "-in LOCKED -out PRIVATE"
        ) from None
    except (ValueError, UnsupportedAlgorithm):
        raise InvalidInput(
            f"{where} is not a private key in PEM, such as begins with -----BEGIN PRIVATE KEY-----."
        ) from None
    if not isinstance(key, RSAPrivateKey):
        raise InvalidInput(
            f"{where} is a key of another kind than RSA. This library cannot read what the Java client encrypted by an "
            "EC key."
        )
    return key
