import InletCore
import SystemPackage

/// Who is told of what happens: `notify:`, `ping_url:` and what belongs to it.
extension SettingsReader {
    mutating func readNotifications(_ section: ConfigSection, into settings: inout Settings) {
        let routes = Set(settings.routes.map(\.name))
        for entry in sections("notify", of: section, root) {
            guard let receiver = notify(entry.section, entry.node, routes) else { continue }
            if settings.notify.contains(where: { $0.name == receiver.name }) {
                report(position("name", entry.section), "a receiver above has the same name")
            }
            settings.notify.append(receiver)
        }
        guard let url = section.secret("ping_url") else { return }
        let interval = section.duration("ping_interval") ?? .seconds(300)
        if interval < KeyTables.shortestPing {
            report(position("ping_interval", section), "'ping_interval' must be 10s or longer")
        }
        settings.ping = PingSettings(
            url: url, interval: interval, allowsHTTP: section.boolean("ping_allow_http") ?? false,
            caFile: section.string("ping_ca_file").map { FilePath($0) }, position: position("ping_url", section))
    }

    private mutating func notify(
        _ section: ConfigSection, _ node: YAMLNode, _ routes: Set<String>
    ) -> NotifySettings? {
        guard let name = section.string("name") else { return nil }
        values.checkName(name, at: position("name", section), of: "a receiver")
        guard let receiver = receiver(section) else { return nil }
        var settings = NotifySettings(
            name: name, receiver: receiver, secret: section.secret("secret"),
            timeout: section.duration("timeout") ?? .seconds(10), allowsHTTP: section.boolean("allow_http") ?? false,
            caFile: section.string("ca_file").map { FilePath($0) }, positions: section.positions,
            position: section.position)
        if case .exec = receiver, settings.secret != nil {
            report(position("secret", section), "'secret' signs what a webhook gets; a program needs none")
        }
        if case .exec = receiver, settings.caFile != nil {
            report(position("ca_file", section), "'ca_file' is for what a webhook is trusted by; a program needs none")
        }
        if settings.timeout < .milliseconds(100) || settings.timeout > .seconds(3600) {
            report(position("timeout", section), "'timeout' must be from 100ms to 1h")
        }
        if let events = section.strings("on") {
            settings.events = Set(events.compactMap(NoticeEvent.init))
            if events.isEmpty { report(position("on", section), "'on' is empty: it would never be told anything") }
        }
        settings.routes = section.strings("routes") ?? []
        for (text, node) in texts("routes", section, node) where !routes.contains(text) {
            let hint = Suggestion.nearest(to: text, in: Array(routes)).map { "; did you mean '\($0)'?" } ?? ""
            report(node.position, "no route is called \(Quotation.of(text))\(hint)")
        }
        return settings
    }

    /// Exactly one of `webhook` and `exec`; nil after a report.
    private mutating func receiver(_ section: ConfigSection) -> NotifySettings.Receiver? {
        let (url, words) = (section.secret("webhook"), section.strings("exec"))
        switch (url, words) {
        case (let url?, nil): return .webhook(url)
        case (nil, let words?):
            if words.first?.hasPrefix("/") == true { return .exec(words) }
            report(
                position("exec", section),
                "'exec' begins with the program's whole path, such as /usr/local/bin/rescan: no shell looks for it")
        case (_?, _?): report(position("exec", section), "a receiver has either 'webhook' or 'exec', not both")
        case (nil, nil):
            // A value that could not be read has its own error.
            if section.positions["webhook"] == nil, section.positions["exec"] == nil {
                report(section.position, "a receiver needs 'webhook' or 'exec'")
            }
        }
        return nil
    }
}
