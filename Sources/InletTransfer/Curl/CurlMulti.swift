import CCurl

/// Owner of one `CURLM` with its connections.
///
/// `@unchecked`: libcurl lets other threads call `curl_multi_wakeup` while the loop's own thread does everything else,
/// and `wakeUp` is all that `TransferMailbox` shows to other threads.
final class CurlMulti: @unchecked Sendable {
    private let handle: UnsafeMutableRawPointer

    /// nil when memory is out. `idleConnections` is how many are kept for the next request.
    init?(idleConnections: Int) {
        guard CurlLibrary.isReady, let handle = curl_multi_init() else { return nil }
        self.handle = handle
        _ = inlet_curl_multi_set_long(handle, CURLMOPT_MAXCONNECTS, idleConnections)
    }

    deinit { curl_multi_cleanup(handle) }

    /// Ends the current or the next `wait`. From any thread.
    func wakeUp() { curl_multi_wakeup(handle) }

    func add(_ easy: CurlEasy) -> Bool { curl_multi_add_handle(handle, easy.handle) == CURLM_OK }

    func remove(_ easy: CurlEasy) { curl_multi_remove_handle(handle, easy.handle) }

    /// Does what can be done without waiting.
    func perform() {
        var running: CInt = 0
        curl_multi_perform(handle, &running)
    }

    /// Waits for a socket, a timer of libcurl's, `wakeUp`, or `limit`; without a limit for as long as it takes.
    func wait(atMost limit: Duration?) {
        let milliseconds = limit.map { CInt(clamping: max(0, Int64(($0 / .milliseconds(1)).rounded(.up)))) }
        curl_multi_poll(handle, nil, 0, milliseconds ?? .max, nil)
    }

    /// The next transfer that has ended, by its handle.
    func nextEnded() -> (easy: UnsafeMutableRawPointer, code: CURLcode)? {
        var easy: UnsafeMutableRawPointer?
        var code = CURLE_OK
        guard inlet_curl_multi_next_ended(handle, &easy, &code), let easy else { return nil }
        return (easy, code)
    }
}

/// The library's process-wide state.
enum CurlLibrary {
    /// Set up once, on first use; before 7.84 `curl_global_init` must not run twice at the same time.
    static let isReady = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK
}
