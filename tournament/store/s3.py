"""Blobs as objects of an S3-compatible store, for sites of several machines. Needs the extra ``s3``.

Credentials come from where boto3 looks for them: ``AWS_ACCESS_KEY_ID`` and ``AWS_SECRET_ACCESS_KEY``, the file
that ``AWS_SHARED_CREDENTIALS_FILE`` names, or the machine's own role.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from django.core.files import File
from storages.backends.s3 import S3Storage

from tournament.store.errors import StoreUnavailableError
from tournament.store.storage import StoredBlob

_NOT_FOUND = {"404", "NoSuchKey", "NotFound"}
_YOUNG_SECONDS = 6 * 3600
"""What was written so lately need not be renewed: the sweep spares a whole day."""


class S3BlobStorage(S3Storage):  # type: ignore[misc]  # untyped
    """Private objects below a prefix, each put by one request, so whole or not at all."""

    def __init__(
        self,
        *,
        bucket: str,
        prefix: str = "",
        endpoint: str = "",
        region: str = "",
        style: str = "",
    ) -> None:
        super().__init__(
            bucket_name=bucket,
            location=prefix,
            endpoint_url=endpoint or None,
            region_name=region or None,
            default_acl=None,
            file_overwrite=True,
            client_config=Config(
                connect_timeout=5,
                read_timeout=30,
                retries={"mode": "standard", "total_max_attempts": 3},
                s3={"addressing_style": style or "auto"},
                # Blobs carry their own hash, and not every server knows the newer checksums.
                request_checksum_calculation="when_required",
                response_checksum_validation="when_required",
            ),
        )
        self._process = os.getpid()

    def url(self, name: str, *_args: Any, **_kwargs: Any) -> str:
        """Blobs have no address: views decide who may read them. Raises ValueError."""
        raise ValueError(f"the blob {name} is private and has no URL")

    def renew(self, name: str, size: int) -> bool:
        """Let an object be as young as a new one; False if there is none, or one of another size."""
        found = self._look_at(name)
        if found is None or found["ContentLength"] != size:
            return False
        if (datetime.now(UTC) - found["LastModified"]).total_seconds() > _YOUNG_SECONDS:
            with _answering():
                self._client.copy_object(
                    **self._object(name),
                    CopySource=self._object(name),
                    MetadataDirective="REPLACE",
                )
        return True

    def read(self, name: str) -> bytes:
        """All of an object. Raises FileNotFoundError."""
        with _answering():
            try:
                data: bytes = self._client.get_object(**self._object(name))["Body"].read()
            except ClientError as error:
                if _is_missing(error):
                    raise FileNotFoundError(name) from error
                raise
        return data

    def exists(self, name: str) -> bool:
        """Whether there is such an object."""
        return self._look_at(name) is not None

    def delete(self, name: str) -> None:
        """Let go of an object; nothing happens if there is none."""
        with _answering():
            self._client.delete_object(**self._object(name))

    def listing(self, start: str = "") -> Iterator[StoredBlob]:
        """All objects whose name begins so, with when each was last put there by the store's clock."""
        prefix = self._key("")
        pages = self._client.get_paginator("list_objects_v2")
        with _answering():
            for page in pages.paginate(Bucket=self.bucket_name, Prefix=prefix + start):
                for found in page.get("Contents", ()):
                    yield StoredBlob(
                        found["Key"].removeprefix(prefix), found["LastModified"], found["Size"]
                    )

    def _save(self, name: str, content: File[Any]) -> str:
        with _answering():
            self._client.put_object(**self._object(name), Body=content.read())
        return name

    def _look_at(self, name: str) -> Mapping[str, Any] | None:
        """What the store says of an object; None if there is none."""
        with _answering():
            try:
                found: Mapping[str, Any] = self._client.head_object(**self._object(name))
            except ClientError as error:
                if _is_missing(error):
                    return None
                raise
        return found

    @property
    def _client(self) -> Any:
        """This thread's connections; never those of the process that this one is a fork of."""
        if self._process != os.getpid():
            self.__setstate__(self.__getstate__())
            self._process = os.getpid()
        return self.connection.meta.client

    def _object(self, name: str) -> dict[str, str]:
        return {"Bucket": self.bucket_name, "Key": self._key(name)}

    def _key(self, name: str) -> str:
        return f"{self.location}/{name}" if self.location else name


def _is_missing(error: ClientError) -> bool:
    return error.response.get("Error", {}).get("Code") in _NOT_FOUND


@contextmanager
def _answering() -> Iterator[None]:
    """Tell what the store refuses, or that it does not answer, as an error of ours."""
    try:
        yield
    except (BotoCoreError, ClientError) as error:
        raise StoreUnavailableError(str(error)) from error
