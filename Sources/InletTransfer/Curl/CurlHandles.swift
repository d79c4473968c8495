import CCurl
import InletCore

/// Idle handles of one loop, kept because creating one costs more than a small request's own work.
///
/// libcurl keeps nothing of a request in a handle across a reset: only name look-ups, TLS sessions, a connection's
/// number. A handle with a shape keeps the options of it.
struct CurlHandles {
    private var free: [CurlHandle] = []
    private let most: Int

    /// - Parameter most: as many as run at once; more would only cost memory.
    init(most: Int) { self.most = most }

    var count: Int { free.count }

    /// nil when memory is out.
    mutating func take(for submission: Submission) -> CurlHandle? {
        Self.isUsual(submission) ? free.popLast() ?? CurlHandle() : CurlHandle()
    }

    /// Keeps the handle of a successful request, without what was the request's own; others are dropped with everything
    /// they may still hold.
    mutating func giveBack(_ easy: CurlHandle, of submission: Submission, isWell: Bool) {
        guard isWell, free.count < most, Self.isUsual(submission) else { return }
        if easy.shape == nil { easy.reset() } else { easy.clear() }
        if easy.setUp == CURLE_OK { free.append(easy) }
    }

    /// Only a handle without a session shows a certificate, and a download's buffer is too large for a kept handle.
    private static func isUsual(_ submission: Submission) -> Bool {
        !submission.request.readsCertificate && submission.sink == nil
    }
}

/// The settings that small uploads one after the other have in common: a kept handle needs only the rest. Setting it up
/// anew takes longer than all else that is done for one.
struct RequestShape: Equatable {
    private let method: String
    private let proxy: ProxyServer?
    private let isSecure: Bool
    private let connectTimeout: Duration

    /// nil for every other request.
    init?(_ submission: Submission, inlineBody: [UInt8]?) {
        let request = submission.request
        guard inlineBody != nil, submission.sink == nil, !request.readsCertificate, request.unixSocket == nil,
            request.url.reach == nil
        else { return nil }
        (method, proxy) = (request.method, submission.proxy)
        (isSecure, connectTimeout) = (request.url.scheme == "https", request.connectTimeout)
    }
}

/// Owner of one `CURL` and of the objects that must outlive it. Used by one thread at a time.
///
/// Setters after a failed one do nothing, so `setUp` is checked once, at the end.
final class CurlHandle {
    let handle: UnsafeMutableRawPointer
    /// The first failure of a setter.
    private(set) var setUp = CURLE_OK
    /// The shape that it stays set up for after a request; nil where it must be set up anew.
    var shape: RequestShape?
    private var fields: UnsafeMutablePointer<curl_slist>?
    private var names: UnsafeMutablePointer<curl_slist>?
    /// Its sessions must outlive the handle.
    private var multi: CurlMulti?
    private let message: UnsafeMutablePointer<CChar>
    /// libcurl may still speak while the handle is cleaned up.
    private let remarks = ConnectionRemarks()

    /// nil when memory is out.
    init?() {
        guard let handle = curl_easy_init() else { return nil }
        self.handle = handle
        message = .allocate(capacity: Int(CURL_ERROR_SIZE))
        message.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
        note(inlet_curl_set_error_buffer(handle, message))
    }

    deinit {
        curl_easy_cleanup(handle)
        curl_slist_free_all(fields)
        curl_slist_free_all(names)
        message.deallocate()
    }

    /// Forgets the request: every option, and the header's lines with their secrets. Not while it runs.
    func reset() {
        shape = nil
        curl_easy_reset(handle)
        curl_slist_free_all(fields)
        fields = nil
        message[0] = 0
        setUp = CURLE_OK
        note(inlet_curl_set_error_buffer(handle, message))
        // libcurl keeps the buffer of the last body, however small, and believes it to have the usual size: this frees
        // it.
        set(CURLOPT_UPLOAD_BUFFERSIZE, Self.usualBuffer)
    }

    /// Forgets what was one request's alone: the header's lines with their secrets, and the body. Its URL stays, which is
    /// not a secret in such requests, and a proxy's login.
    func clear() {
        note(inlet_curl_set_list(handle, CURLOPT_HTTPHEADER, nil))
        curl_slist_free_all(fields)
        fields = nil
        message[0] = 0
        note(inlet_curl_drop_body(handle))
    }

    /// libcurl's default.
    private static let usualBuffer = 64 << 10

    func set(_ option: CURLoption, _ value: Int) { note(inlet_curl_set_long(handle, option, value)) }
    func set(_ option: CURLoption, _ value: Bool) { set(option, value ? 1 : 0) }
    func set(_ option: CURLoption, _ value: String) { note(inlet_curl_set_string(handle, option, value)) }
    func set(_ option: CURLoption, offset: Int64) { note(inlet_curl_set_offset(handle, option, curl_off_t(offset))) }
    func set(_ option: CURLoption, path: UnsafePointer<CChar>) { note(inlet_curl_set_string(handle, option, path)) }
    func note(_ code: CURLcode) { if setUp == CURLE_OK { setUp = code } }

    /// Lets the handle resume TLS sessions of other handles.
    func shareSessions(of multi: CurlMulti) {
        guard let sessions = multi.sessions else { return }
        self.multi = multi
        note(inlet_curl_set_share(handle, sessions))
    }

    /// Adds one line to the request's header.
    func add(field: String) {
        guard let longer = curl_slist_append(fields, field) else { return note(CURLE_OUT_OF_MEMORY) }
        fields = longer
    }

    /// The same for a line that ends with a zero; curl copies it.
    func add(line: [UInt8]) {
        let longer = line.withUnsafeBytes { bytes in
            bytes.baseAddress.flatMap { curl_slist_append(fields, $0.assumingMemoryBound(to: CChar.self)) }
        }
        guard let longer else { return note(CURLE_OUT_OF_MEMORY) }
        fields = longer
    }

    /// Resolves names from `answers` instead of DNS (CURLOPT_RESOLVE); once for a handle.
    func resolve(_ answers: [String]) {
        if names == nil { for answer in answers { names = curl_slist_append(names, answer) } }
        note(inlet_curl_set_list(handle, CURLOPT_RESOLVE, names))
    }

    /// Resumes a body that its callback has paused; only before the end of the request.
    func goOn() { curl_easy_pause(handle, CInt(CURLPAUSE_CONT)) }

    /// Passes the added lines to curl.
    func setFields() { note(inlet_curl_set_list(handle, CURLOPT_HTTPHEADER, fields)) }

    /// libcurl's own sentence on the failure, or its general text for `code`.
    func detail(_ code: CURLcode) -> String {
        message[0] == 0 ? String(cString: curl_easy_strerror(code)) : String(cString: message)
    }

    /// Status of the answer so far; 0 before there is one.
    var status: Int { Int(inlet_curl_status(handle)) }

    /// Status of the proxy's answer to a tunnel request; 0 when there was no request or no answer.
    var connectStatus: Int { Int(inlet_curl_connect_status(handle)) }

    /// The server's own certificate in PEM, if requested and TLS was used.
    var certificate: String? { inlet_curl_certificate(handle).map { String(cString: $0) } }

    /// The facts of that certificate, and the version of TLS, if both were requested.
    var peer: PeerCertificate? {
        PeerCertificate(version: remarks.version) { name in
            inlet_curl_certificate_fact(handle, name).map { String(cString: $0) }
        }
    }

    /// Listens for the version of TLS. Only for a handle that is not used again.
    func noteVersion() {
        note(
            inlet_curl_set_remarks(
                handle, Unmanaged.passUnretained(remarks).toOpaque(), ConnectionRemarks.take))
    }

    /// The peer's address, if a connection was made for this request.
    var newAddress: String? {
        guard let text = inlet_curl_new_address(handle) else { return nil }
        return text.pointee == 0 ? nil : String(cString: text)
    }

    /// Whether the connection is established and the request may be under way.
    var isConnected: Bool { inlet_curl_time_to_send(handle) > 0 }

    /// Bytes in the kernel that the peer has not acknowledged; 0 where that is unknown.
    var unacknowledged: Int { max(0, Int(inlet_curl_unacknowledged(handle))) }
}

/// Remarks of libcurl on a connection while it is made. Used by the handle's thread.
private final class ConnectionRemarks {
    /// `TLSv1.3`; nil until it is known.
    private(set) var version: String?

    private static let opening = "SSL connection using "

    static let take: curl_debug_callback = { _, kind, text, count, context in
        guard kind == CURLINFO_TEXT, let context, let text else { return 0 }
        let line = String(decoding: UnsafeRawBufferPointer(start: text, count: count), as: UTF8.self)
        guard line.hasPrefix(opening) else { return 0 }
        let remarks = Unmanaged<ConnectionRemarks>.fromOpaque(context).takeUnretainedValue()
        remarks.version = String(line.dropFirst(opening.count).prefix { !$0.isWhitespace })
        return 0
    }
}

/// Owns a `CURLM` with its connections, and the TLS sessions that the handles of a thread share.
///
/// `@unchecked`: other threads only write to the loop's eventfd, by `wakeUp`; its own thread does everything else.
final class CurlMulti: @unchecked Sendable {
    private let handle: UnsafeMutableRawPointer
    private let loop: UnsafeMutablePointer<inlet_curl_loop>
    /// A `CURLSH` that keeps TLS sessions (RFC 8446 2.2). Without it libcurl keeps them with each handle. Parallel
    /// requests have separate handles, so each would make a full handshake. libcurl looks sessions up by host, port and
    /// everything that decides about trust. nil when memory is out or libcurl has no TLS: handshakes are then full.
    fileprivate let sessions: UnsafeMutableRawPointer?

    /// The library's own state, set up once, on first use. Before 7.84 `curl_global_init` must not run twice at the
    /// same time.
    static let isLibraryReady = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK

    /// nil when memory or descriptors are out.
    init?() {
        guard Self.isLibraryReady, let handle = curl_multi_init() else { return nil }
        let loop = UnsafeMutablePointer<inlet_curl_loop>.allocate(capacity: 1)
        guard inlet_curl_loop_begin(loop, handle) else {
            curl_multi_cleanup(handle)
            inlet_curl_loop_end(loop)
            loop.deallocate()
            return nil
        }
        (self.handle, self.loop) = (handle, loop)
        let sessions = curl_share_init()
        let isKept = sessions.map { inlet_curl_share_sessions($0) == CURLSHE_OK } ?? false
        if let sessions, !isKept { curl_share_cleanup(sessions) }
        self.sessions = isKept ? sessions : nil
    }

    deinit {
        curl_multi_cleanup(handle)
        if let sessions { curl_share_cleanup(sessions) }
        inlet_curl_loop_end(loop)
        loop.deallocate()
    }

    /// Ends the current or the next `wait`. From any thread.
    func wakeUp() { inlet_curl_loop_wake(loop) }

    /// How many connections may be open, idle ones among them.
    func keep(connections: Int) { _ = inlet_curl_multi_set_long(handle, CURLMOPT_MAXCONNECTS, connections) }

    func add(_ easy: CurlHandle) -> Bool { curl_multi_add_handle(handle, easy.handle) == CURLM_OK }

    func remove(_ easy: CurlHandle) { curl_multi_remove_handle(handle, easy.handle) }

    /// Waits for a socket, a timer of libcurl, `wakeUp`, or `limit`, and acts on what has come; without a limit
    /// indefinitely.
    func wait(atMost limit: Duration?) {
        let milliseconds = limit.map { CInt(clamping: max(0, Int64(($0 / .milliseconds(1)).rounded(.up)))) }
        inlet_curl_loop_wait(loop, milliseconds ?? -1)
    }

    /// The handle of the next transfer that has ended.
    func nextEnded() -> (easy: UnsafeMutableRawPointer, code: CURLcode)? {
        var easy: UnsafeMutableRawPointer?
        var code = CURLE_OK
        guard inlet_curl_multi_next_ended(handle, &easy, &code), let easy else { return nil }
        return (easy, code)
    }
}
