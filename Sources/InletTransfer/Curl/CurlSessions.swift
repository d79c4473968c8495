import CCurl

/// Owner of a `CURLSH` that keeps TLS sessions (RFC 8446 2.2) for the handles of one thread. Without it libcurl keeps them
/// with each handle, and requests that run at once have handles of their own: each would make a whole handshake.
///
/// libcurl looks sessions up by host, port and everything that decides about trust.
final class CurlSessions {
    let handle: UnsafeMutableRawPointer

    /// nil when memory is out or libcurl has no TLS; then handshakes are whole.
    init?() {
        guard CurlLibrary.isReady, let handle = curl_share_init() else { return nil }
        guard inlet_curl_share_sessions(handle) == CURLSHE_OK else {
            curl_share_cleanup(handle)
            return nil
        }
        self.handle = handle
    }

    deinit { curl_share_cleanup(handle) }
}
