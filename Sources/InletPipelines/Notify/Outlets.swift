package import InletCore
internal import InletLinux
internal import InletTransfer

/// Who is told what happens, ready to be told.
package struct Outlets: Sendable {
    /// By receiver; the others are programs.
    package var webhooks: [String: Webhook] = [:]
    package var ping: DeadManPing?

    package init() {}
}

extension PipelineFactory {
    /// - Throws: `SettingFault` naming the key whose value cannot be used.
    package func webhook(_ settings: NotifySettings) throws(SettingFault) -> Webhook? {
        guard case .webhook(let address) = settings.receiver else { return nil }
        var signature: NoticeSignature?
        if let secret = settings.secret {
            signature = NoticeSignature(secret)
            guard signature != nil else {
                throw SettingFault(key: "secret", message: "begins with whsec_, but what follows is not base64")
            }
        }
        let url = try Self.url(
            address, "webhook", allowHTTP: settings.allowsHTTP, otherwise: "allow_http: true for this receiver")
        return Webhook(
            url: url, signature: signature, client: client(Trust(caFile: settings.caFile)), timeout: settings.timeout)
    }

    /// To another machine by https, unless somebody says otherwise: who reads the address can speak for this agent, and a ping
    /// that tells of a failure says what is wrong.
    ///
    /// - Throws: `SettingFault` as `webhook` does.
    package func ping(_ settings: PingSettings) throws(SettingFault) -> DeadManPing {
        let url = try Self.url(
            settings.url, "ping_url", allowHTTP: settings.allowsHTTP, otherwise: "ping_allow_http: true")
        return DeadManPing(url: url, client: client(Trust(caFile: settings.caFile)))
    }

    /// The fault does not quote the address.
    private static func url(
        _ text: Secret, _ key: String, allowHTTP: Bool, otherwise: String
    ) throws(SettingFault) -> HTTPURL {
        do throws(TransferError) {
            return try HTTPURL(text.reveal(), rules: .configured(allowHTTP: allowHTTP))
        } catch {
            let why =
                error.code == .insecureURL
                ? "is not encrypted; use https, or set \(otherwise)"
                : "is no http or https address that can be used"
            throw SettingFault(key: key, message: why)
        }
    }
}

/// Tells a monitoring service that we are well, or that we are not (healthchecks.io: "Pinging API"; others know only the plain
/// address). A ping is worth something only now: it is never repeated or kept.
package struct DeadManPing: Sendable {
    package enum Signal: Sendable, Equatable {
        case start
        case success
        /// With what is wrong.
        case fail(String)

        /// What goes below the address; nil for the plain one, which every service knows.
        var suffix: String? {
            switch self {
            case .start: "start"
            case .success: nil
            case .fail: "fail"
            }
        }
    }

    /// What came of it.
    package enum Answer: Sendable, Equatable {
        case taken
        /// The service answers, but does not know this signal.
        case unknown
        /// What went wrong; names the host only.
        case failed(String)
        case cancelled
    }

    private static let timeout = Duration.seconds(10)
    /// Enough for a reason; services keep 10 kB or more.
    private static let longestBody = 1000

    private let url: HTTPURL
    private let client: HTTPClient

    init(url: HTTPURL, client: HTTPClient) {
        self.url = url
        self.client = client
    }

    package func send(_ signal: Signal) async -> Answer {
        var request = HTTPRequest(
            "GET", signal.suffix.map { url.appending(path: $0) } ?? url, answerDeadline: Self.timeout,
            stallTimeout: Self.timeout, connectTimeout: Self.timeout)
        if case .fail(let reason) = signal {
            request.method = "POST"
            request.headers = [("Content-Type", "text/plain; charset=utf-8")]
            request.body = .bytes(Array(reason.utf8.prefix(Self.longestBody)))
        }
        do throws(TransferError) {
            let status = try await client.send(request).status
            if (200..<300).contains(status) { return .taken }
            if signal.suffix != nil, [404, 405].contains(status) { return .unknown }
            return .failed("\(url.authority) answered \(status)")
        } catch {
            return error.code == .cancelled ? .cancelled : .failed(request.url.hidingPath(in: error.reason))
        }
    }
}
