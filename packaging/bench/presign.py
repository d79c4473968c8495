"""Presigned URLs as an S3 store makes and refuses them: they expire, and any change breaks their signature."""

import datetime
import hashlib
import hmac
import json
import secrets
import urllib.parse

from loopback_http import Reply


def xml(status, code, words):
    """How an S3 store says no."""
    return Reply(status, f"<Error><Code>{code}</Code><Message>{words}</Message></Error>".encode(),
                 {"Content-Type": "application/xml"})


class Signer:
    def __init__(self, origin, expiry):
        self._origin, self._expiry, self._secret = origin, expiry, secrets.token_bytes(32)

    def _signature(self, method, path, fields, content_type):
        text = "\n".join([method, path, json.dumps(sorted(fields.items())), content_type])
        return hmac.new(self._secret, text.encode(), hashlib.sha256).hexdigest()

    def url(self, method, path, content_type="", **fields):
        fields["X-Amz-Date"] = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
        fields["X-Amz-Expires"] = str(self._expiry)
        if content_type:
            fields["X-Amz-SignedHeaders"] = "content-type;host"
        fields["X-Amz-Signature"] = self._signature(method, path, fields, content_type)
        return self._origin + urllib.parse.quote(path) + "?" + urllib.parse.urlencode(fields)

    def check(self, request, path):
        """The query's fields, or the 403 that an S3 store answers."""
        fields = dict(urllib.parse.parse_qsl(request.query))
        given = fields.pop("X-Amz-Signature", "")
        content_type = request.headers.get("content-type", "") if "X-Amz-SignedHeaders" in fields else ""
        method = "GET" if request.method == "HEAD" else request.method
        if not hmac.compare_digest(given, self._signature(method, path, fields, content_type)):
            return None, xml(403, "SignatureDoesNotMatch", "The signature does not match.")
        signed = datetime.datetime.strptime(fields["X-Amz-Date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=datetime.timezone.utc)
        age = (datetime.datetime.now(datetime.timezone.utc) - signed).total_seconds()
        if age > int(fields["X-Amz-Expires"]):
            return None, xml(403, "AccessDenied", "Request has expired")
        return fields, None
