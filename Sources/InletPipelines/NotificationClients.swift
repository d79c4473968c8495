internal import Foundation
package import InletCore
internal import InletLinux
internal import InletTransfer

/// The configured notification receivers that are reached over the network, by their names.
package struct NotificationClients: Sendable {
    package var webhooks: [String: Webhook] = [:]
    package var services: [String: MessageClient] = [:]
    package var ping: HealthPing?

    package init() {}
}

extension PipelineFactory {
    /// - Throws: `SettingFault` naming the key whose value cannot be used.
    package func webhook(_ settings: NotifySettings) throws(SettingFault) -> Webhook? {
        guard case .webhook(let address) = settings.receiver else { return nil }
        var signature: WebhookSignature?
        if let secret = settings.secret {
            signature = WebhookSignature(secret)
            guard signature != nil else {
                throw SettingFault(key: "secret", message: "must be base64 after whsec_")
            }
        }
        let url = try Self.url(
            address.reveal(), "webhook", allowHTTP: settings.allowsHTTP, otherwise: Self.allowing)
        return Webhook(
            url: url, signature: signature, client: try client(Trust(caFile: settings.caFile)),
            timeout: settings.timeout)
    }

    private static let allowing = "allow_http: true for this receiver"

    /// - Throws: `SettingFault` as for `webhook`.
    package func messages(_ settings: NotifySettings) throws(SettingFault) -> MessageClient? {
        guard case .service(let service) = settings.receiver else { return nil }
        return MessageClient(service: service, way: try way(service, settings), timeout: settings.timeout)
    }

    private func way(
        _ service: MessageService, _ settings: NotifySettings
    ) throws(SettingFault) -> MessageClient.Way {
        func url(_ text: String, _ key: String) throws(SettingFault) -> HTTPURL {
            try Self.url(text, key, allowHTTP: settings.allowsHTTP, otherwise: Self.allowing)
        }
        let trust = Trust(caFile: settings.caFile)
        let target: HTTPURL
        switch service {
        case .ntfy(let topic, _):
            // Also checks the address.
            let whole = try url(topic.reveal(), service.kind)
            guard let name = service.topic else {
                throw SettingFault(
                    key: service.kind, message: "must be the address of a topic, such as https://ntfy.sh/TOPIC")
            }
            target = try url(String(whole.text.dropLast(name.utf8.count)), service.kind)
        case .gotify(let server, _): target = try url(server, service.kind).appending(path: "message")
        case .pushover(_, _, let server): target = try url(server, "server").appending(path: "1/messages.json")
        case .apprise(let address): target = try url(address.reveal(), service.kind)
        // Otherwise Discord answers before it has kept the message.
        case .discord(let address):
            target = try url(address.reveal(), service.kind).appending(queryItem: "wait", "true")
        case .telegram(_, let token, let server):
            guard MessageService.isWord(token.reveal(), ":-_") else {
                throw SettingFault(key: "token", message: "must be a bot's token, such as 123456:ABC-DEF")
            }
            // Its colon must stay one.
            let base = try url(server, "server").text.trimmingCharacters(in: ["/"])
            target = try url("\(base)/bot\(token.reveal())/sendMessage", "server")
        case .smtp(let account): return .mail(try mailClient(account, settings, trust), account)
        }
        return .post(target, try client(trust))
    }

    private func mailClient(
        _ account: MailAccount, _ settings: NotifySettings, _ trust: Trust
    ) throws(SettingFault) -> MailClient {
        guard let server = MailServer(account.server) else {
            throw SettingFault(
                key: NotifyKeys.all.smtp.spec.name,
                message: "must be smtps://HOST or smtp://HOST; write the login as 'user' and 'password'")
        }
        let login = account.user.flatMap { user in account.password.map { (user, $0) } }
        return MailClient(
            server, login: login, trust: trust, allowsPlain: settings.allowsHTTP || server.isLoopback,
            timeout: settings.timeout, pool: mailPool)
    }

    /// Another machine needs https unless the configuration allows otherwise: whoever reads the address can speak for
    /// this agent, and a failure's ping says what is wrong.
    ///
    /// - Throws: `SettingFault` as for `webhook`.
    package func ping(_ settings: PingSettings) throws(SettingFault) -> HealthPing {
        let url = try Self.url(
            settings.url.reveal(), "ping_url", allowHTTP: settings.allowsHTTP, otherwise: "ping_allow_http: true")
        return HealthPing(url: url, client: try client(Trust(caFile: settings.caFile)))
    }

    /// The fault does not quote the address.
    private static func url(
        _ text: String, _ key: String, allowHTTP: Bool, otherwise: String
    ) throws(SettingFault) -> HTTPURL {
        do throws(TransferError) {
            return try HTTPURL(text, rules: .configured(allowHTTP: allowHTTP))
        } catch {
            let why =
                error.code == .insecureURL
                ? "is not encrypted; use https, or set \(otherwise)"
                : "must be an http:// or https:// address"
            throw SettingFault(key: key, message: why)
        }
    }
}

/// Reports our health to a monitoring service (healthchecks.io: "Pinging API"; other services know only the plain
/// address). A ping matters only now, so it is never repeated or stored.
package struct HealthPing: Sendable {
    package enum Signal: Sendable, Equatable {
        case start
        case success
        case fail(String)

        /// The path below the address; nil for the plain one, which every service knows.
        var suffix: String? {
            switch self {
            case .start: "start"
            case .success: nil
            case .fail: "fail"
            }
        }
    }

    package enum Outcome: Sendable, Equatable {
        case taken
        /// The service answers, but does not support this signal.
        case unknown
        /// The fault; names only the host.
        case failed(String)
        case cancelled
    }

    private static let timeout = Duration.seconds(10)
    /// Enough for a reason; services keep 10 kB or more.
    private static let longestBody = 1000

    let url: HTTPURL
    let client: HTTPClient

    package func send(_ signal: Signal) async -> Outcome {
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

/// The outcome of an attempt to notify a receiver.
package enum NotificationOutcome: Sendable, Equatable {
    case taken
    /// The receiver does not answer, or asks for time: no other notice would arrive either.
    case unanswered(after: Duration?, reason: String)
    /// The receiver answers, but refuses this notice. At most `tries` in all, where that is not nil.
    case refused(reason: String, tries: Int?)
    /// Another attempt is useless.
    case gone(reason: String)
    case cancelled
}

/// Posts notices to one address. Reasons name only its host: the rest of the address may be a credential.
package struct Webhook: Sendable {
    let url: HTTPURL
    let signature: WebhookSignature?
    let client: HTTPClient
    let timeout: Duration

    package var host: String { url.authority }

    /// Posts `body`, a JSON object, once.
    ///
    /// - Parameter id: the same for every attempt, so that a receiver can recognise a repetition (`webhook-id`).
    package func post(_ body: [UInt8], id: String, at now: WallTime) async -> NotificationOutcome {
        let time = now.milliseconds / 1000
        var headers: HTTPFields = [
            ("Content-Type", "application/json"), ("webhook-id", id), ("webhook-timestamp", String(time)),
        ]
        if let signature { headers += signature.headers(id: id, time: time, body: body) }
        let request = HTTPRequest(
            "POST", url, headers: headers, body: .bytes(body), answerDeadline: timeout, stallTimeout: timeout,
            connectTimeout: min(timeout, .seconds(10)))
        do throws(TransferError) {
            return Self.outcome(try await client.send(request), from: url, now: now)
        } catch {
            if error.code == .cancelled { return .cancelled }
            return .unanswered(after: nil, reason: url.hidingPath(in: error.reason))
        }
    }

    /// Only 2xx is success. Redirects are not followed: a signed notice goes to the configured address or nowhere.
    static func outcome(_ answer: HTTPResponse, from url: HTTPURL, now: WallTime) -> NotificationOutcome {
        // Many servers quote the path that they refuse.
        var answer = answer
        answer.body = url.hidingItself(in: Array(answer.body.prefix(16 << 10)))
        let said = DeliveryError.excerpt(answer)
        let reason = "\(url.authority) answered \(answer.status)" + (said.isEmpty ? "" : ": \(said)")
        return switch answer.status {
        case 200..<300: .taken
        case 300..<400: .refused(reason: reason + " (a redirect, which is not followed)", tries: nil)
        case 410: .gone(reason: reason)
        case 408, 425, 429, 500...: .unanswered(after: answer.retryAfter(now: now), reason: reason)
        default: .refused(reason: reason, tries: nil)
        }
    }
}

extension HTTPURL {
    /// `text` without this address's path, where it quotes the address.
    func hidingPath(in text: String) -> String { text.replacing(redacted, with: "\(scheme)://\(authority)") }

    /// `bytes` without this address's path and query, and without their parts where these stand alone.
    func hidingItself(in bytes: [UInt8]) -> [UInt8] {
        Redactor(quotable.map { Secret($0) }).redacted(bytes)
    }

    /// The parts that may be credentials, as sent and as a server may have decoded them.
    private var quotable: [String] {
        let query = text.firstIndex(of: "?").map { text[$0...].dropFirst() } ?? ""
        // Shorter parts are not credentials, but pieces of words.
        let parts = (path.split(separator: "/") + query.split { "&=;#".contains($0) }).filter { $0.utf8.count >= 6 }
        let whole = [path[...], query].filter { $0.utf8.count > 1 }
        return (whole + parts).flatMap { [String($0), Percent.decode($0)] }
    }
}

/// Proves to a receiver that a notice is ours and complete: Standard Webhooks 1.0.0, and also GitHub's older
/// `X-Hub-Signature-256`, which does not cover the time.
struct WebhookSignature: Sendable {
    /// A secret with this prefix is base64 of the key's bytes (Standard Webhooks 1.0.0, "Signature scheme").
    static let prefix = "whsec_"

    private let key: [UInt8]
    private let text: [UInt8]

    /// nil when what follows `whsec_` is not base64.
    init?(_ secret: Secret) {
        let whole = secret.reveal()
        text = Array(whole.utf8)
        guard whole.hasPrefix(Self.prefix) else {
            key = text
            return
        }
        guard let bytes = Data(base64Encoded: String(whole.dropFirst(Self.prefix.count))), !bytes.isEmpty else {
            return nil
        }
        key = Array(bytes)
    }

    /// - Parameters:
    ///   - id: the same for every attempt of a notice.
    ///   - time: of this attempt, in seconds since 1970; receivers refuse notices that are minutes old.
    func headers(id: String, time: Int64, body: [UInt8]) -> HTTPFields {
        let signed = Array("\(id).\(time).".utf8) + body
        let hub = MessageCode(key: text).code(of: body).hex
        return [
            ("webhook-signature", "v1," + Data(MessageCode(key: key).code(of: signed)).base64EncodedString()),
            ("X-Hub-Signature-256", "sha256=" + hub),
        ]
    }
}
