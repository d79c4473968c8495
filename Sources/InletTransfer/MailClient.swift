import CCurl
package import InletCore
package import InletLinux
import Synchronization

/// The address of a mail server: `smtps://host`, with TLS from the start, or `smtp://host`, with STARTTLS (RFC 3207).
package struct MailServer: Sendable, Hashable {
    let host: String
    let port: UInt16
    /// TLS from the start (RFC 8314).
    let isWrapped: Bool

    /// For a client of the server; relays between servers use port 25.
    private static let submission: UInt16 = 587

    /// nil for anything but such an address.
    package init?(_ text: String) {
        guard let parts = HTTPURL.parts(of: text), ["smtp", "smtps"].contains(parts.scheme), !parts.host.isEmpty,
            parts.path == "/", parts.query == nil, !text.contains("#"),
            parts.host.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "%") })
        else { return nil }
        (host, isWrapped) = (parts.host, parts.scheme == "smtps")
        // libcurl's default for smtp is 25.
        let authority = parts.text.split(separator: "/", omittingEmptySubsequences: true).dropFirst().first ?? ""
        port = isWrapped || authority.hasSuffix(":\(parts.port)") ? parts.port : Self.submission
    }

    package var isLoopback: Bool { HostScope(host) == .loopback }

    /// Host and port, an IPv6 address in brackets.
    package var authority: String { (host.contains(":") ? "[\(host)]" : host) + ":\(port)" }

    fileprivate var url: String { (isWrapped ? "smtps://" : "smtp://") + authority }
}

/// Hands mails to one server (RFC 5321, RFC 4954), a connection for each. Without a proxy.
package struct MailClient: Sendable {
    package let server: MailServer
    private let login: (user: String, password: Secret)?
    private let trust: Trust
    /// Whether mails may travel without TLS when the server offers none.
    private let allowsPlain: Bool
    private let timeout: Duration
    private let pool: BlockingPool

    /// The server's last line.
    package enum Reply: Sendable, Equatable {
        case accepted
        case refused(code: Int, text: String)
    }

    /// - Parameters:
    ///   - timeout: for all of a mail.
    ///   - pool: where it waits for the server.
    package init(
        _ server: MailServer, login: (user: String, password: Secret)?, trust: Trust, allowsPlain: Bool,
        timeout: Duration, pool: BlockingPool
    ) {
        (self.server, self.login, self.trust, self.allowsPlain) = (server, login, trust, allowsPlain)
        (self.timeout, self.pool) = (timeout, pool)
    }

    /// Sends a mail once, to all recipients or to none. A cancelled task ends it within a second.
    ///
    /// - Parameter mail: the whole text (RFC 5322), lines ending with CR LF.
    /// - Throws: `.cancelled`, or why there is no answer.
    package func send(_ mail: [UInt8], from sender: String, to recipients: [String]) async throws(TransferError)
        -> Reply
    {
        let session = MailSession(mail)
        let result = await withTaskCancellationHandler {
            await pool.run { self.perform(session, from: sender, to: recipients) }
        } onCancel: {
            session.isCancelled.store(true, ordering: .relaxed)
        }
        return try result.get()
    }

    private var label: String { "mail to \(server.authority)" }

    /// Blocks.
    private func perform(_ session: MailSession, from sender: String, to recipients: [String]) -> Result<
        Reply, TransferError
    > {
        guard CurlMulti.isLibraryReady, let easy = CurlHandle() else {
            return .failure(TransferError(.outOfResources, "\(label): out of memory", isOutage: true))
        }
        var list: UnsafeMutablePointer<curl_slist>?
        // Used until the handle is gone.
        defer { withExtendedLifetime(easy) { curl_slist_free_all(list) } }
        for recipient in recipients { list = curl_slist_append(list, "<\(recipient)>") }
        configure(easy, session, from: sender)
        easy.note(inlet_curl_set_list(easy.handle, CURLOPT_MAIL_RCPT, list))
        let code =
            easy.setUp == CURLE_OK ? withExtendedLifetime(session) { curl_easy_perform(easy.handle) } : easy.setUp
        return outcome(code, easy, session)
    }

    private func configure(_ easy: CurlHandle, _ session: MailSession, from sender: String) {
        let context = Unmanaged.passUnretained(session).toOpaque()
        easy.note(inlet_curl_allow_mail_only(easy.handle))
        easy.set(CURLOPT_URL, server.url)
        easy.set(CURLOPT_PROXY, "")
        easy.set(CURLOPT_NOSIGNAL, true)
        easy.set(CURLOPT_USE_SSL, Int((allowsPlain ? CURLUSESSL_TRY : CURLUSESSL_ALL).rawValue))
        easy.trust(trust)
        easy.set(CURLOPT_TIMEOUT_MS, Int(max(1, timeout.milliseconds)))
        easy.set(CURLOPT_CONNECTTIMEOUT_MS, Int(max(1, min(timeout, .seconds(10)).milliseconds)))
        if let login {
            easy.set(CURLOPT_USERNAME, login.user)
            easy.set(CURLOPT_PASSWORD, login.password.reveal())
        }
        easy.set(CURLOPT_MAIL_FROM, "<\(sender)>")
        easy.note(
            inlet_curl_set_callbacks(
                easy.handle, context, MailSession.ignore, MailSession.takeLine, MailSession.takeProgress))
        easy.note(inlet_curl_set_upload(easy.handle, context, MailSession.giveText, MailSession.rewind))
        easy.set(CURLOPT_INFILESIZE_LARGE, offset: Int64(session.mail.count))
        easy.note(inlet_curl_leave_resolver(easy.handle))
    }

    private func outcome(_ code: CURLcode, _ easy: CurlHandle, _ session: MailSession) -> Result<Reply, TransferError> {
        if code == CURLE_OK { return .success(.accepted) }
        if session.isCancelled.load(ordering: .relaxed) {
            return .failure(TransferError(.cancelled, "\(label) was cancelled", isOutage: false))
        }
        func failure(_ code: ErrorCode, _ why: String) -> Result<Reply, TransferError> {
            .failure(TransferError(code, "\(label): \(why)", isOutage: true))
        }
        switch code {
        case CURLE_USE_SSL_FAILED:
            return failure(
                .tlsFailed,
                "the server offers no STARTTLS; use smtps://, or set allow_http: true to send without encryption")
        case CURLE_OPERATION_TIMEDOUT: return failure(.timedOut, "no answer within \(DurationText.format(timeout))")
        default: break
        }
        let status = easy.status
        if status >= 400 {
            let said = Redactor(login.map { [$0.password] } ?? []).redacted(session.refusal)
            return .success(.refused(code: status, text: DisplayText.escape(said.prefix(200))))
        }
        if code == CURLE_LOGIN_DENIED {
            return failure(.badAnswer, "the server offers no login that Inlet knows (PLAIN, LOGIN, CRAM-MD5)")
        }
        if code == CURLE_WEIRD_SERVER_REPLY {
            return failure(.badAnswer, "the answer is not SMTP; check host and port")
        }
        return .failure(TransferError(code, label, detail: easy.detail(code), answered: status > 0))
    }
}

/// One mail on its way. curl calls back on the thread that performs; only `isCancelled` is set from elsewhere.
private final class MailSession: @unchecked Sendable {
    let mail: [UInt8]
    let isCancelled = Atomic<Bool>(false)
    private var place = 0
    /// The server's last line that refuses something (RFC 5321, 4.2.1).
    private(set) var refusal: [UInt8] = []

    init(_ mail: [UInt8]) { self.mail = mail }

    private static func from(_ context: UnsafeMutableRawPointer?) -> MailSession? {
        context.map { Unmanaged<MailSession>.fromOpaque($0).takeUnretainedValue() }
    }

    static let ignore: curl_write_callback = { _, size, count, _ in size * count }

    static let takeLine: curl_write_callback = { bytes, size, count, context in
        guard let session = from(context), let bytes else { return 0 }
        let line = UnsafeRawBufferPointer(start: bytes, count: size * count).prefix(1000)
        let isRefusal = line.first == UInt8(ascii: "4") || line.first == UInt8(ascii: "5")
        if isRefusal { session.refusal = line.filter { $0 != 0x0D && $0 != 0x0A } }
        return size * count
    }

    static let takeProgress: curl_xferinfo_callback = { context, _, _, _, _ in
        from(context)?.isCancelled.load(ordering: .relaxed) ?? true ? 1 : 0
    }

    static let giveText: curl_read_callback = { buffer, size, count, context in
        guard let session = from(context), let buffer else { return Int(CURL_READFUNC_ABORT) }
        let room = UnsafeMutableRawBufferPointer(start: buffer, count: size * count)
        let piece = session.mail[session.place...].prefix(room.count)
        room.copyBytes(from: piece)
        session.place += piece.count
        return piece.count
    }

    static let rewind: curl_seek_callback = { context, offset, origin in
        guard let session = from(context), origin == 0, (0...session.mail.count).contains(Int(offset)) else {
            return CInt(CURL_SEEKFUNC_FAIL)
        }
        session.place = Int(offset)
        return CInt(CURL_SEEKFUNC_OK)
    }
}
