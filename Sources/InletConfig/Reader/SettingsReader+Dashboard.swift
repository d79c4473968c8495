import InletCore

/// Who may see and command the agent over the network: `dashboard:`.
extension SettingsReader {
    mutating func dashboard(_ top: ConfigSection) -> DashboardSettings? {
        guard top.positions["dashboard"] != nil, let section = top.section("dashboard"),
            let text = section.string("listen")
        else { return nil }
        let listen: ListenAddress
        do throws(ListenAddress.Fault) {
            listen = try ListenAddress(text)
        } catch {
            report(position("listen", section), error.description)
            return nil
        }
        let settings = DashboardSettings(
            listen: listen, token: section.secret("token"), password: section.secret("password"),
            readOnlyToken: section.secret("read_only_token"), hosts: section.strings("hosts") ?? [],
            proxy: section.boolean("proxy") ?? false)
        checkSecrets(settings, section)
        checkHosts(section)
        return settings
    }

    private mutating func checkSecrets(_ settings: DashboardSettings, _ section: ConfigSection) {
        let all = [
            ("token", settings.token), ("password", settings.password), ("read_only_token", settings.readOnlyToken),
        ]
        for case (let key, let secret?) in all where secret.reveal().utf8.count < KeyTables.shortestDashboardSecret {
            report(
                position(key, section),
                "'\(key)' has fewer than \(KeyTables.shortestDashboardSecret) characters; 'openssl rand -hex 16' makes a good one"
            )
        }
        for case (let key, let secret?) in [all[0], all[2]] where !Self.canBeHeader(secret) {
            report(
                position(key, section), "'\(key)' goes in a header: only letters, digits and signs of ASCII, no spaces")
        }
        if let reader = settings.readOnlyToken, reader == settings.token || reader == settings.password {
            report(position("read_only_token", section), "'read_only_token' must differ from what may do everything")
        }
        guard settings.isOpen, section.positions["token"] == nil, section.positions["password"] == nil else { return }
        if !settings.listen.isLoopback {
            report(
                position("listen", section),
                "other machines can reach \(settings.listen.text): give a 'token' or a 'password', or listen at 127.0.0.1:\(settings.listen.port)"
            )
            return
        }
        for key in ["hosts", "proxy"] where key == "proxy" ? settings.proxy : !settings.hosts.isEmpty {
            report(
                position(key, section),
                "'\(key)' is for those who come from elsewhere, and without a 'token' or a 'password' they might do everything; give one of them too"
            )
        }
        if settings.readOnlyToken != nil {
            report(
                position("read_only_token", section),
                "without a 'token' or a 'password' everybody on this machine may do everything; give one of them too")
        }
    }

    private static func canBeHeader(_ secret: Secret) -> Bool {
        secret.reveal().utf8.allSatisfy { (0x21...0x7E).contains($0) }
    }

    private mutating func checkHosts(_ section: ConfigSection) {
        for host in section.strings("hosts") ?? [] where host.isEmpty || host.contains("/") || host.contains(" ") {
            report(
                position("hosts", section),
                "\(Quotation.of(host)) is no name of a host: write it without http:// and path, as in inlet.example")
        }
    }
}
