import InletCore
import SystemPackage

/// The receivers of notifications: `notify:`, and the dead man's switch: `ping_url:` and its options.
extension SettingsReader {
    mutating func notifications(of routes: [Route]) -> [NotifySettings] {
        let names = Set(routes.map(\.name))
        var receivers: [NotifySettings] = []
        for entry in file.notify {
            guard let receiver = notify(entry, names) else { continue }
            if receivers.contains(where: { $0.name == receiver.name }) {
                report(
                    entry.position(\.name),
                    entry.name == nil
                        ? "give this receiver a 'name': one above is called '\(receiver.name)' too"
                        : "a receiver above has the same name")
            }
            receivers.append(receiver)
        }
        return receivers
    }

    mutating func ping() -> PingSettings? {
        guard let url = file.pingURL else { return nil }
        if file.pingInterval < Self.shortestPing {
            report(file.position(\.pingInterval), "'ping_interval' must be 10s or longer")
        }
        return PingSettings(
            url: url, interval: file.pingInterval, allowsHTTP: file.pingAllowHTTP, caFile: file.pingCAFile,
            position: file.position(\.pingURL))
    }

    /// Monitoring services count more frequent requests as abuse.
    private static let shortestPing = Duration.seconds(10)

    private mutating func notify(_ section: Section<NotifyKeys>, _ routes: Set<String>) -> NotifySettings? {
        guard let receiver = receiver(section) else { return nil }
        if let name = section.name { values.checkName(name, at: section.position(\.name), of: "a receiver") }
        var settings = NotifySettings(
            name: section.name ?? receiver.kind, receiver: receiver, secret: section.secret, timeout: section.timeout)
        settings.routes = section.routes ?? []
        (settings.allowsHTTP, settings.caFile) = (section.allowHTTP, section.caFile)
        (settings.positions, settings.position) = (section.values.positions, section.values.position)
        checkUse(of: section, by: receiver)
        if settings.timeout < .milliseconds(100) || settings.timeout > .seconds(3600) {
            report(section.position(\.timeout), "'timeout' must be from 100ms to 1h")
        }
        if let events = section.on {
            settings.events = Set(events)
            if events.isEmpty {
                report(section.position(\.on), "'on' is empty; name the events to send, or leave the key out")
            }
        }
        for (text, node) in texts(section, \.routes) where !routes.contains(text) {
            let hint = Suggestion.hint(text, in: Array(routes))
            report(node.position, "there is no route \(SecretMask.quoted(text))\(hint)")
        }
        return settings
    }

    /// Reports keys that do nothing for this kind of receiver.
    private mutating func checkUse(of section: Section<NotifyKeys>, by receiver: NotifySettings.Receiver) {
        let keys = NotifyKeys.all
        let users: [(KeySpec, [KeySpec])] = [
            (keys.secret.spec, [keys.webhook.spec]),
            (keys.token.spec, [keys.ntfy.spec, keys.gotify.spec, keys.pushover.spec, keys.telegram.spec]),
            (keys.server.spec, [keys.pushover.spec, keys.telegram.spec]),
            (keys.user.spec, [keys.smtp.spec]), (keys.password.spec, [keys.smtp.spec]),
            (keys.from.spec, [keys.smtp.spec]), (keys.to.spec, [keys.smtp.spec]),
        ]
        for (key, kinds) in users {
            guard let place = section.values.positions[key.name] else { continue }
            let names = kinds.map(\.name)
            if !names.contains(receiver.kind) {
                report(
                    place, "remove '\(key.name)': it is for \(names.joined(separator: ", ")), not for \(receiver.kind)")
            }
        }
        if case .exec = receiver, section.caFile != nil {
            report(section.position(\.caFile), "remove 'ca_file': it is for servers, and a program needs none")
        }
    }

    /// The one receiver that the entry names; nil after a report.
    private mutating func receiver(_ section: Section<NotifyKeys>) -> NotifySettings.Receiver? {
        let keys = NotifyKeys.all
        let kinds = [
            keys.webhook.spec, keys.exec.spec, keys.ntfy.spec, keys.gotify.spec, keys.pushover.spec, keys.apprise.spec,
            keys.discord.spec, keys.telegram.spec, keys.smtp.spec,
        ].map(\.name)
        let given = kinds.filter { section.values.positions[$0] != nil }
        guard given.count == 1 else {
            let position = given.dropFirst().first.flatMap { section.values.positions[$0] } ?? section.values.position
            let list = kinds.dropLast().joined(separator: ", ") + " or " + (kinds.last ?? "")
            report(
                position,
                given.isEmpty
                    ? "a receiver needs one of \(list)"
                    : "give a receiver either '\(given[0])' or '\(given[1])', not both")
            return nil
        }
        // An unreadable value has its own error.
        if let url = section.webhook { return .webhook(url) }
        if let words = section.exec {
            return program(words, at: section.position(\.exec), of: section.keyName(\.exec)).map { .exec($0) }
        }
        return service(section).map { .service($0) }
    }

    private mutating func service(_ section: Section<NotifyKeys>) -> MessageService? {
        if let topic = section.ntfy { return .ntfy(topic: topic, token: section.token) }
        if let address = section.apprise { return .apprise(address) }
        if let address = section.discord { return .discord(address) }
        if let address = section.smtp { return mail(section, address).map { .smtp($0) } }
        let needs = "the token of its application"
        if let server = section.gotify {
            return token(section, "gotify", needs).map { .gotify(server: server, token: $0) }
        }
        if let user = section.pushover {
            let server = section.server ?? "https://api.pushover.net"
            return token(section, "pushover", needs).map { .pushover(user: user, token: $0, server: server) }
        }
        guard let chat = section.telegram else { return nil }
        let server = section.server ?? "https://api.telegram.org"
        return token(section, "telegram", "the token of its bot").map {
            .telegram(chat: chat, token: $0, server: server)
        }
    }

    /// The token; nil after a report.
    private mutating func token(_ section: Section<NotifyKeys>, _ kind: String, _ which: String) -> Secret? {
        if section.token == nil, section.place(\.token) == nil {
            report(section.values.position, "'\(kind)' also needs 'token': \(which)")
        }
        return section.token
    }

    private mutating func mail(_ section: Section<NotifyKeys>, _ server: String) -> MailAccount? {
        if (section.user == nil) != (section.password == nil) {
            let (given, other) = section.user == nil ? ("password", "user") : ("user", "password")
            report(section.values.position, "'\(given)' also needs '\(other)'")
        }
        let recipients = section.to ?? []
        if recipients.isEmpty, section.place(\.to) == nil || section.to != nil {
            report(section.values.position, "'smtp' also needs 'to': the addresses of the recipients")
        }
        let user = section.user.flatMap { Self.isAddress($0) ? $0 : nil }
        guard let sender = section.from ?? user ?? recipients.first else { return nil }
        let places =
            (section.from.map { [($0, section.position(\.from))] } ?? [])
            + recipients.map { ($0, section.position(\.to)) }
        for (address, place) in places where !Self.isAddress(address) {
            report(place, "\(SecretMask.quoted(address)) is not a mail address; write name@example.com")
        }
        return MailAccount(server: server, user: section.user, password: section.password, from: sender, to: recipients)
    }

    /// A plain address (RFC 5321) in ASCII, without a name and quotes: nothing in it may end a line or a command.
    private static func isAddress(_ text: String) -> Bool {
        let halves = text.split(separator: "@", omittingEmptySubsequences: false)
        let isPlain = text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && !"<>()[]\\,;:\"".utf8.contains($0) }
        return isPlain && text.utf8.count <= 254 && halves.count == 2 && !halves[0].isEmpty && !halves[1].isEmpty
    }

    /// The words of a command that is run without a shell; nil after a report.
    mutating func program(_ words: [String], at position: SourcePosition, of key: String) -> [String]? {
        if words.first?.hasPrefix("/") == true { return words }
        report(
            position,
            "'\(key)' must start with the program's absolute path, such as /usr/local/bin/rescan; no shell looks for it"
        )
        return nil
    }
}
