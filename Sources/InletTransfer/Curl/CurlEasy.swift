import CCurl

/// Owner of one `CURL` and of what libcurl expects to outlive it. Used by one thread at a time.
///
/// Setters after a failed one do nothing, so that `setUp` is looked at once, at the end.
final class CurlEasy {
    let handle: UnsafeMutableRawPointer
    /// The first failure of a setter.
    private(set) var setUp = CURLE_OK
    private var fields: UnsafeMutablePointer<curl_slist>?
    private var names: UnsafeMutablePointer<curl_slist>?
    /// Must outlive the handle.
    private var sessions: CurlSessions?
    private let message: UnsafeMutablePointer<CChar>

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

    /// Forgets the request: every option, and the header's lines with what is secret in them. Not while it runs.
    func reset() {
        curl_easy_reset(handle)
        curl_slist_free_all(fields)
        fields = nil
        message[0] = 0
        setUp = CURLE_OK
        note(inlet_curl_set_error_buffer(handle, message))
        // libcurl keeps the buffer of the last body, however small, and believes it to be of the usual size: this frees it.
        set(CURLOPT_UPLOAD_BUFFERSIZE, Self.usualBuffer)
    }

    /// libcurl's own choice.
    private static let usualBuffer = 64 << 10

    func set(_ option: CURLoption, _ value: Int) { note(inlet_curl_set_long(handle, option, value)) }
    func set(_ option: CURLoption, _ value: Bool) { set(option, value ? 1 : 0) }
    func set(_ option: CURLoption, _ value: String) { note(inlet_curl_set_string(handle, option, value)) }
    func set(_ option: CURLoption, offset: Int64) { note(inlet_curl_set_offset(handle, option, curl_off_t(offset))) }
    func set(_ option: CURLoption, path: UnsafePointer<CChar>) { note(inlet_curl_set_string(handle, option, path)) }
    func note(_ code: CURLcode) { if setUp == CURLE_OK { setUp = code } }

    /// Lets the handle go on with TLS sessions that others have begun.
    func share(_ sessions: CurlSessions) {
        self.sessions = sessions
        note(inlet_curl_set_share(handle, sessions.handle))
    }

    /// Adds one line to the request's header.
    func add(field: String) {
        guard let longer = curl_slist_append(fields, field) else { return note(CURLE_OUT_OF_MEMORY) }
        fields = longer
    }

    /// The same of a line that ends with a zero; curl copies it.
    func add(line: [UInt8]) {
        let longer = line.withUnsafeBytes { bytes in
            bytes.baseAddress.flatMap { curl_slist_append(fields, $0.assumingMemoryBound(to: CChar.self)) }
        }
        guard let longer else { return note(CURLE_OUT_OF_MEMORY) }
        fields = longer
    }

    /// Has names answered by `answers` instead of by DNS (CURLOPT_RESOLVE); once for a handle.
    func resolve(_ answers: [String]) {
        if names == nil { for answer in answers { names = curl_slist_append(names, answer) } }
        note(inlet_curl_set_list(handle, CURLOPT_RESOLVE, names))
    }

    /// Lets a body go on that its callback has paused; before the end of the request only.
    func goOn() { curl_easy_pause(handle, CInt(CURLPAUSE_CONT)) }

    /// Hands the added lines over.
    func setFields() { note(inlet_curl_set_list(handle, CURLOPT_HTTPHEADER, fields)) }

    /// libcurl's own sentence on the failure, or its general text for `code`.
    func detail(_ code: CURLcode) -> String {
        message[0] == 0 ? String(cString: curl_easy_strerror(code)) : String(cString: message)
    }

    /// Status of the answer so far; 0 before there is one.
    var status: Int { Int(inlet_curl_status(handle)) }

    /// Status of the proxy's answer when it was asked for a tunnel; 0 when it was not, or has not answered.
    var connectStatus: Int { Int(inlet_curl_connect_status(handle)) }

    /// The server's own certificate in PEM, where it was asked for and TLS was spoken.
    var certificate: String? { inlet_curl_certificate(handle).map { String(cString: $0) } }

    /// The address of the other end, where a connection was made for this request.
    var newAddress: String? {
        guard let text = inlet_curl_new_address(handle) else { return nil }
        return text.pointee == 0 ? nil : String(cString: text)
    }

    /// Whether the connection stands and the request may be on its way.
    var isConnected: Bool { inlet_curl_time_to_send(handle) > 0 }

    /// Bytes in the kernel that the peer has not acknowledged; 0 where that is not known.
    var unacknowledged: Int { max(0, Int(inlet_curl_unacknowledged(handle))) }
}
