internal import Foundation
package import InletCore
internal import InletLinux
internal import InletTransfer

/// Sends messages to one service, in the service's own form.
package struct MessageClient: Sendable {
    enum Way: Sendable {
        case post(HTTPURL, HTTPClient)
        case mail(MailClient, MailAccount)
    }

    let service: MessageService
    let way: Way
    let timeout: Duration

    /// Where messages go, without anything secret.
    package var host: String {
        switch way {
        case .post(let url, _): url.authority
        case .mail(let client, _): client.server.authority
        }
    }

    /// Sends `message` once.
    ///
    /// - Parameters:
    ///   - id: the same for every attempt.
    ///   - machine: this machine's name.
    package func send(_ message: NotificationMessage, id: String, machine: String, at now: WallTime) async
        -> NotificationOutcome
    {
        switch way {
        case .post(let url, let client): await post(message, to: url, client, at: now)
        case .mail(let client, let account):
            await Self.mail(Mail(message, account, id: id, machine: machine, at: now), client)
        }
    }

    // MARK: - HTTP

    private func post(
        _ message: NotificationMessage, to url: HTTPURL, _ client: HTTPClient, at now: WallTime
    ) async -> NotificationOutcome {
        let (headers, body) = service.request(message)
        var request = HTTPRequest(
            "POST", url, headers: headers, body: .bytes(body), answerDeadline: timeout, stallTimeout: timeout,
            connectTimeout: min(timeout, .seconds(10)))
        request.secrets = service.secrets
        do throws(TransferError) {
            let answer = try await client.send(request)
            return service.outcome(answer) ?? Webhook.outcome(answer, from: url, now: now)
        } catch {
            if error.code == .cancelled { return .cancelled }
            return .unanswered(after: nil, reason: url.hidingPath(in: error.reason))
        }
    }

    // MARK: - Mail

    private static func mail(_ mail: Mail, _ client: MailClient) async -> NotificationOutcome {
        do throws(TransferError) {
            switch try await client.send(mail.text, from: mail.from, to: mail.to) {
            case .accepted: return .taken
            case .refused(let code, let text):
                let reason = "\(client.server.authority) answered: \(text)"
                // RFC 5321, section 4.2.1: 4yz is transient.
                return code < 500 ? .unanswered(after: nil, reason: reason) : .refused(reason: reason, tries: nil)
            }
        } catch {
            return error.code == .cancelled ? .cancelled : .unanswered(after: nil, reason: error.reason)
        }
    }
}

// MARK: - What each service takes

extension MessageService {
    private typealias Member = JSONValue

    /// The header and body of a message.
    func request(_ message: NotificationMessage) -> (headers: HTTPFields, body: [UInt8]) {
        let json: HTTPFields = [("Content-Type", "application/json")]
        switch self {
        case .ntfy(_, let token):
            let login = token.map { [("Authorization", "Bearer \($0.reveal())")] } ?? []
            return (json + login, ntfy(message).bytes)
        case .gotify(_, let token): return (json + [("X-Gotify-Key", token.reveal())], Self.gotify(message).bytes)
        case .pushover(let user, let token, _):
            return ([("Content-Type", "application/x-www-form-urlencoded")], Self.pushover(message, user, token))
        case .apprise: return (json, Self.apprise(message).bytes)
        case .discord: return (json, Self.discord(message).bytes)
        case .telegram(let chat, _, _): return (json, Self.telegram(message, chat).bytes)
        case .smtp: return ([], [])
        }
    }

    /// "Publish as JSON": to the server's root. 4096 bytes become a message, more an attachment.
    private func ntfy(_ message: NotificationMessage) -> Member {
        .members([
            "topic": topic.map { .string($0) },
            "title": .string(message.title.shortened(to: Self.longestTitle, by: \.utf8.count)),
            "message": .string(message.text.shortened(to: 4000, by: \.utf8.count)),
            "priority": Member(message.isUrgent ? 4 : 3),
            "tags": .array(message.tags.map { .string($0) }),
            "click": message.link.map { .string($0) },
        ])
    }

    /// The topic's name; nil for other services, or an address without one.
    var topic: String? {
        guard case .ntfy(let topic, _) = self else { return nil }
        let name = topic.reveal().split(separator: "/", omittingEmptySubsequences: false).last.map(String.init) ?? ""
        let isName = Self.isWord(name, "-_") && (1...64).contains(name.utf8.count)
        return isName && topic.reveal().split(separator: "/").count > 2 ? name : nil
    }

    /// Whether it has only ASCII letters, digits and characters of `others`.
    static func isWord(_ text: String, _ others: String) -> Bool {
        text.unicodeScalars.allSatisfy {
            $0.isASCII && ($0.properties.isAlphabetic || ("0"..."9").contains($0)) || others.unicodeScalars.contains($0)
        }
    }

    /// Priorities of 8 and more ring.
    private static func gotify(_ message: NotificationMessage) -> Member {
        let click = message.link.map { Member.object(["click": .object(["url": .string($0)])]) }
        return .members([
            "title": .string(message.title), "message": .string(message.text),
            "priority": Member(message.isUrgent ? 8 : 5),
            "extras": click.map { .object(["client::notification": $0]) },
        ])
    }

    /// "Message API": 250 characters of title, 1024 of message, 512 of address. Priority 1 passes quiet hours.
    private static func pushover(_ message: NotificationMessage, _ user: Secret, _ token: Secret) -> [UInt8] {
        var fields = [
            ("token", token.reveal()), ("user", user.reveal()),
            ("title", message.title.shortened(to: longestTitle, by: \.unicodeScalars.count)),
            ("message", message.text.shortened(to: 1024, by: \.unicodeScalars.count)),
            ("priority", message.isUrgent ? "1" : "0"),
        ]
        if let link = message.link, link.utf8.count <= 512 { fields.append(("url", link)) }
        let pairs = fields.map { "\($0)=\(Percent.encode($1[...]))" }
        return Array(pairs.joined(separator: "&").utf8)
    }

    private static func apprise(_ message: NotificationMessage) -> Member {
        .object([
            "title": .string(message.title), "body": .string(withLink(message.text, message.link)),
            "type": .string(message.isUrgent ? "failure" : "info"), "format": .string("text"),
        ])
    }

    /// "Execute Webhook": at most 2000 characters; mentions nobody; flag 4 shows no previews of links.
    private static func discord(_ message: NotificationMessage) -> Member {
        let tail = message.link.map { "\n\($0)" } ?? ""
        let title = message.title.shortened(to: longestTitle, by: \.utf16.count)
        let head = "**\(alarm(message))\(markdown(title[...]))**\n"
        // An escape must not be cut from its character.
        let text = message.text.shortened(to: 2000 - head.utf16.count - tail.utf16.count) { markdown($0).utf16.count }
        return .object([
            "content": .string(head + markdown(text[...]) + tail),
            "allowed_mentions": .object(["parse": .array([])]), "flags": Member(4),
        ])
    }

    /// Discord's Markdown, with every character that has a meaning there escaped.
    private static func markdown(_ text: Substring) -> String {
        String(text.flatMap { "\\*_~`|>#[]()<@".contains($0) ? ["\\", $0] : [$0] })
    }

    /// "sendMessage" without `parse_mode`: plain text, at most 4096 characters.
    private static func telegram(_ message: NotificationMessage, _ chat: String) -> Member {
        let tail = message.link.map { "\n\($0)" } ?? ""
        let head = alarm(message) + message.title.shortened(to: longestTitle, by: \.utf16.count) + "\n"
        let text = message.text.shortened(to: 4096 - head.utf16.count - tail.utf16.count, by: \.utf16.count)
        return .object([
            "chat_id": .string(chat), "text": .string(head + text + tail),
            "link_preview_options": .object(["is_disabled": .boolean(true)]),
        ])
    }

    /// For services without priorities.
    private static func alarm(_ message: NotificationMessage) -> String { message.isUrgent ? "❗ " : "" }

    static func withLink(_ text: String, _ link: String?) -> String { link.map { "\(text)\n\($0)" } ?? text }

    private static let longestTitle = 250

    // MARK: - Answers

    /// The meaning of an answer that is not the usual one.
    func outcome(_ answer: HTTPResponse) -> NotificationOutcome? {
        switch self {
        case .apprise where answer.status == 204:
            .refused(reason: "Apprise has no service to notify under this address", tries: nil)
        case .telegram where answer.status == 429 && answer.header("Retry-After") == nil:
            JSON.value(answer.body)?["parameters"]?["retry_after"]?.integer.map {
                .unanswered(after: .seconds(min(max($0, 0), 86_400)), reason: "Telegram asks for a pause of \($0) s")
            }
        default: nil
        }
    }

    /// Credentials, which must not appear in a reason.
    var secrets: [Secret] {
        switch self {
        case .ntfy(let topic, let token): [topic, self.topic.map { Secret($0) }, token].compactMap(\.self)
        case .gotify(_, let token): [token]
        case .pushover(let user, let token, _): [user, token]
        case .apprise(let address), .discord(let address): [address]
        case .telegram(_, let token, _): [token]
        case .smtp(let account): [account.password].compactMap(\.self)
        }
    }
}
