internal import InletCore
internal import InletTransfer

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
