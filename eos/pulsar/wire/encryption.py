"""End-to-end encryption, in the format of Pulsar's own clients.

The payload of an entry, compressed first, is encrypted by AES-256-GCM: the tag of 16 bytes stands after it, and nothing
else is authenticated. The metadata tells the nonce (`encryption_param`), and for each public key its name and the data
key, encrypted by it with RSA-OAEP (SHA-1, MGF1 with SHA-1, no label): MessageCryptoBc of Pulsar 4.2.4, MessageCrypto.cc
of the C++ client. Everything else in the metadata stays in the clear.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from eos.config import EncryptionKeys, KeyFiles
from eos.errors import InvalidInput
from eos.pulsar.wire.checksum import Buffer
from eos.pulsar.wire.encryption_keys import library, private_keys, public_key
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.pulsar_pb2 import MessageMetadata

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.padding import OAEP
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

TAG_BYTES = 16
_DATA_KEY_BITS = 256
_NONCE_BYTES = 12
_KEPT_DATA_KEYS = 1_000

Decrypt = Callable[[Entry], Entry]
"""Returns an entry in the clear; one that is not encrypted as it is."""


@dataclass(frozen=True, slots=True)
class Envelope:
    """The things that a reader needs beside its private key.

    Attributes:
        keys: by the name of each public key: the data key, encrypted by it.
        nonce: of this payload.
    """

    keys: Mapping[str, bytes]
    nonce: bytes

    def describe(self, metadata: MessageMetadata) -> None:
        """Write it into the metadata of a frame."""
        for name, value in self.keys.items():
            metadata.encryption_keys.add(key=name, value=value)
        metadata.encryption_param = self.nonce


class DataKey:
    """A fresh data key. It never leaves the process that drew it: nothing shows it, and it can't be pickled.

    GCM with the same key and nonce for two payloads gives away both, and lets anybody forge more. So the nonces count:
    a number is never given twice, and no other process, fork aside, knows the key. A forked process draws a new one.

    Attributes:
        overhead: bytes by which an encrypted frame is longer.
    """

    def __init__(self, keys: EncryptionKeys) -> None:
        """Args: the public keys, for which it is encrypted. Raises InvalidInput where the library is missing."""
        library()
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        secret = AESGCM.generate_key(_DATA_KEY_BITS)
        self._cipher = AESGCM(secret)
        self._keys = {name: bytes(public_key(text).encrypt(secret, _oaep())) for name, text in keys}
        self._nonces = itertools.count()  # its `next` is one step, also for several threads
        metadata = MessageMetadata()
        Envelope(self._keys, bytes(_NONCE_BYTES)).describe(metadata)
        self.overhead = metadata.ByteSize() + TAG_BYTES

    def encrypt(self, payload: Buffer) -> tuple[bytes, Envelope]:
        """Return the encrypted payload, and what is to be said of it in the metadata."""
        nonce = next(self._nonces).to_bytes(_NONCE_BYTES)
        plain = memoryview(payload).cast("B")  # Arrow's buffers say that they hold signed bytes, which is refused
        return bytes(self._cipher.encrypt(nonce, plain, None)), Envelope(self._keys, nonce)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a data key stays in its process")


class Decryptor:
    """Decrypts entries with private keys. Each data key is decrypted once, as long as it is among the newest thousand.

    For one thread at a time.
    """

    def __init__(self, private_keys: Mapping[str, RSAPrivateKey]) -> None:
        """Args: by their names."""
        self._private_keys = dict(private_keys)
        self._data_keys: OrderedDict[bytes, AESGCM] = OrderedDict()

    def __call__(self, entry: Entry) -> Entry:
        """Return the entry in the clear; one that is not encrypted as it is.

        Raises InvalidInput where no private key fits, DamagedFrame where the bytes are not what was encrypted.
        """
        if not entry.metadata.encryption_keys:
            return entry
        from cryptography.exceptions import InvalidTag

        cipher = self._cipher(entry)
        try:
            plain = cipher.decrypt(entry.metadata.encryption_param, entry.packed, None)
        except (InvalidTag, ValueError) as error:
            raise entry.damaged("what is stored is not what its writer has encrypted. Its tag does not fit") from error
        metadata = MessageMetadata()
        metadata.CopyFrom(entry.metadata)
        metadata.ClearField("encryption_keys")
        metadata.ClearField("encryption_param")
        return Entry(entry.id, metadata, plain, entry.size, entry.topic, entry.most)

    def _cipher(self, entry: Entry) -> AESGCM:
        given = [one for one in entry.metadata.encryption_keys if one.key in self._private_keys]
        for one in given:
            cipher = self._data_keys.get(one.value)
            if cipher is None:
                cipher = self._decrypted(self._private_keys[one.key], one.value)
            if cipher is not None:
                self._keep(one.value, cipher)
                return cipher
        if not given:
            names = ", ".join(map(repr, self._private_keys))
            raise InvalidInput(f"{encrypted(entry)}; decryption_keys has {names}. Give the private key of one of them.")
        names = ", ".join(repr(one.key) for one in given)
        raise InvalidInput(
            f"{encrypted(entry)}; the private key that decryption_keys has for {names} does not fit. It is not the "
            "other half of the public key by which this entry was encrypted. Give the one that is."
        )

    def _decrypted(self, private_key: RSAPrivateKey, value: bytes) -> AESGCM | None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        try:
            return AESGCM(private_key.decrypt(value, _oaep()))
        except ValueError:  # says nothing of why, lest it help a sender of forged ones
            return None

    def _keep(self, value: bytes, cipher: AESGCM) -> None:
        self._data_keys[value] = cipher
        self._data_keys.move_to_end(value)
        if len(self._data_keys) > _KEPT_DATA_KEYS:
            self._data_keys.popitem(last=False)


def decryptor_of(files: KeyFiles) -> Decryptor:
    """Return a decryptor with the private keys of these files, as they are now. Raises InvalidInput."""
    return Decryptor(private_keys(files))


def as_it_is(entry: Entry) -> Entry:
    """Return the entry, encrypted or not: for who looks at what stays in the clear, and for who has no private key."""
    return entry


def encrypted(entry: Entry) -> str:
    """Say for which keys an entry is encrypted."""
    names = ", ".join(repr(one.key) for one in entry.metadata.encryption_keys)
    return f"{entry} is encrypted for the key{'s' if len(entry.metadata.encryption_keys) > 1 else ''} {names}"


def _oaep() -> OAEP:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import padding

    return padding.OAEP(mgf=padding.MGF1(hashes.SHA1()), algorithm=hashes.SHA1(), label=None)
