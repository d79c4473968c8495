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
                report(entry.position(\.name), "a receiver above has the same name")
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
        guard let name = section.name else { return nil }
        values.checkName(name, at: section.position(\.name), of: "a receiver")
        guard let receiver = receiver(section) else { return nil }
        var settings = NotifySettings(
            name: name, receiver: receiver, secret: section.secret, timeout: section.timeout)
        settings.routes = section.routes ?? []
        (settings.allowsHTTP, settings.caFile) = (section.allowHTTP, section.caFile)
        (settings.positions, settings.position) = (section.values.positions, section.values.position)
        if case .exec = receiver, settings.secret != nil {
            report(section.position(\.secret), "remove 'secret': it signs webhook requests, and a program needs none")
        }
        if case .exec = receiver, settings.caFile != nil {
            report(
                section.position(\.caFile), "remove 'ca_file': it is for webhooks, and a program needs none")
        }
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

    /// Exactly one of `webhook` and `exec`; nil after a report.
    private mutating func receiver(_ section: Section<NotifyKeys>) -> NotifySettings.Receiver? {
        switch (section.webhook, section.exec) {
        case (let url?, nil): return .webhook(url)
        case (nil, let words?):
            return program(words, at: section.position(\.exec), of: section.keyName(\.exec)).map { .exec($0) }
        case (_?, _?): report(section.position(\.exec), "give a receiver either 'webhook' or 'exec', not both")
        case (nil, nil):
            // An unreadable value has its own error.
            if section.place(\.webhook) == nil, section.place(\.exec) == nil {
                report(section.values.position, "a receiver needs 'webhook' or 'exec'")
            }
        }
        return nil
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
