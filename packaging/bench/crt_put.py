"""Puts the files of a folder to the S3 sink on 127.0.0.1's standard port with the AWS Common Runtime.

    crt_put.py FOLDER [CA-FILE]     with a CA file: over TLS
"""

import sys
from pathlib import Path
from threading import Semaphore

from awscrt.http import HttpHeaders, HttpRequest
from awscrt.io import ClientBootstrap, ClientTlsContext, DefaultHostResolver, EventLoopGroup, TlsContextOptions
from awscrt.s3 import S3Client, S3RequestTlsMode, S3RequestType

HOST = "127.0.0.1"
# Requests that the library is given before others have ended.
AHEAD = 500


def connect(authority: str | None) -> S3Client:
    events, connection = EventLoopGroup(), None
    if authority:
        options = TlsContextOptions()
        options.override_default_trust_store_from_path(ca_filepath=authority)
        connection = ClientTlsContext(options).new_connection_options()
        connection.set_server_name(HOST)
    return S3Client(bootstrap=ClientBootstrap(events, DefaultHostResolver(events)), region="us-east-1",
                    tls_mode=S3RequestTlsMode.ENABLED if authority else S3RequestTlsMode.DISABLED,
                    tls_connection_options=connection)


def put(client: S3Client, path: Path, free: Semaphore):
    headers = HttpHeaders([("host", HOST), ("content-length", str(path.stat().st_size))])
    free.acquire()
    return client.make_request(
        type=S3RequestType.PUT_OBJECT, request=HttpRequest("PUT", f"/bench/crt/{path.name}", headers),
        send_filepath=str(path), on_done=lambda **_: free.release()).finished_future


if __name__ == "__main__":
    store, places = connect((sys.argv[2:] or [None])[0]), Semaphore(AHEAD)
    for done in [put(store, path, places) for path in sorted(Path(sys.argv[1]).iterdir())]:
        done.result()
