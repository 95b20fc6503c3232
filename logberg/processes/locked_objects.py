"""Writes objects to S3 that appear once and stay: conditional PUT, and S3's object lock.

Rule: an object is written with `If-None-Match: *`, so the storage refuses to replace one. With
`lock_days` it also gets a retention in mode COMPLIANCE, which nobody can shorten, the account's
owner included; the bucket must have been made with object lock. pyarrow, which does all else with
object storage here, can say neither, so the request is made and signed here (AWS Signature 4).

Keys come from the URL's options or the environment (`AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`,
`AWS_SESSION_TOKEN`). Nothing else is looked for.
"""

import base64
import hmac
import os
import re
import ssl
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from hashlib import md5, sha256
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Final
from urllib.parse import quote, urlsplit

from audit.places.remote import s3_options, without_secrets

_TIMEOUT_S: Final = 30.0
_SERVICE: Final = "s3"
_CODE = re.compile(rb"<Code>([A-Za-z]+)</Code>")


class LockedObjects:
    """A part of a bucket to which objects are only added."""

    def __init__(self, url: str, lock_days: int) -> None:
        """Raises OSError if the URL or the environment lacks something; the message says what."""
        try:
            options = s3_options(url)
        except ValueError as error:
            raise OSError(str(error)) from error
        parts = urlsplit(url)
        self._shown = without_secrets(url)
        self._lock_days = lock_days
        self._key = options.get("access_key") or os.environ.get("AWS_ACCESS_KEY_ID", "")
        self._secret = options.get("secret_key") or os.environ.get("AWS_SECRET_ACCESS_KEY", "")
        self._token = "" if "access_key" in options else os.environ.get("AWS_SESSION_TOKEN", "")
        if not self._key or not self._secret:
            raise OSError(
                f"{self._shown}: heads are written with keys from the URL or the environment; set "
                "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
            )
        self._region = options.get("region") or os.environ.get("AWS_DEFAULT_REGION", "us-east-1")
        endpoint = options.get("endpoint_override", "")
        scheme = options.get("scheme", "https")
        if not endpoint and os.environ.get("AWS_ENDPOINT_URL"):
            found = urlsplit(os.environ["AWS_ENDPOINT_URL"])
            endpoint, scheme = found.netloc, found.scheme
        self._host = endpoint or f"s3.{self._region}.amazonaws.com"
        self._is_tls = scheme != "http"
        bucket = parts.netloc.rpartition("@")[2]
        self._path = f"/{bucket}/{parts.path.strip('/')}".rstrip("/")

    def put_new(self, name: str, content: bytes) -> bool:
        """Write an object; False if there is one of this name. Raises OSError."""
        path = quote(f"{self._path}/{name}")
        headers = self._signed(path, content, datetime.now(UTC))
        try:
            status, body = self._send(path, content, headers)
        except (OSError, HTTPException) as error:
            raise OSError(f"{self._shown} can't be written: {error}") from error
        if status == HTTPStatus.OK:
            return True
        if status == HTTPStatus.PRECONDITION_FAILED:
            return False
        code = _CODE.search(body)
        said = code[1].decode() if code else body[:200].decode(errors="replace")
        raise OSError(f"{self._shown} can't be written: status {status}, {said}")

    def _send(self, path: str, content: bytes, headers: Mapping[str, str]) -> tuple[int, bytes]:
        connection = (
            HTTPSConnection(self._host, timeout=_TIMEOUT_S, context=ssl.create_default_context())
            if self._is_tls
            else HTTPConnection(self._host, timeout=_TIMEOUT_S)
        )
        try:
            connection.request("PUT", path, content, dict(headers))
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def _signed(self, path: str, content: bytes, now: datetime) -> dict[str, str]:
        """Return the request's headers, with its signature."""
        time = now.strftime("%Y%m%dT%H%M%SZ")
        headers = {
            # MD5 and SHA-256 are what S3 asks for with a lock; they protect the way there.
            "content-md5": base64.b64encode(md5(content, usedforsecurity=False).digest()).decode(),
            "host": self._host,
            "if-none-match": "*",
            "x-amz-content-sha256": sha256(content).hexdigest(),
            "x-amz-date": time,
        }
        if self._lock_days:
            until = now + timedelta(days=self._lock_days)
            headers["x-amz-object-lock-mode"] = "COMPLIANCE"
            headers["x-amz-object-lock-retain-until-date"] = until.strftime("%Y-%m-%dT%H:%M:%SZ")
        if self._token:
            headers["x-amz-security-token"] = self._token
        names = ";".join(sorted(headers))
        lines = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
        asked = f"PUT\n{path}\n\n{lines}\n{names}\n{headers['x-amz-content-sha256']}"
        scope = f"{time[:8]}/{self._region}/{_SERVICE}/aws4_request"
        said = f"AWS4-HMAC-SHA256\n{time}\n{scope}\n{sha256(asked.encode()).hexdigest()}"
        key = f"AWS4{self._secret}".encode()
        for part in scope.split("/"):
            key = hmac.digest(key, part.encode(), "sha256")
        signature = hmac.digest(key, said.encode(), "sha256").hex()
        headers["authorization"] = (
            f"AWS4-HMAC-SHA256 Credential={self._key}/{scope}, SignedHeaders={names}, "
            f"Signature={signature}"
        )
        return headers
