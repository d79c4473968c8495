import InletCore

/// Who may see and command the agent over the network: `dashboard:`.
extension SettingsReader {
    mutating func dashboard(_ section: Section<DashboardKeys>) -> DashboardSettings? {
        guard let text = section.listen else { return nil }
        let listen: ListenAddress
        do throws(ListenAddress.Fault) {
            listen = try ListenAddress(text)
        } catch {
            report(section.position(\.listen), error.description)
            return nil
        }
        let settings = DashboardSettings(
            listen: listen, token: section.token, password: section.password, readOnlyToken: section.readOnlyToken,
            hosts: section.hosts ?? [], proxy: section.proxy ?? false)
        checkSecrets(section)
        if let reader = settings.readOnlyToken, reader == settings.token || reader == settings.password {
            report(
                section.position(\.readOnlyToken), "'read_only_token' must differ from what may do everything")
        }
        checkOpenness(settings, section)
        for host in settings.hosts where host.isEmpty || host.contains("/") || host.contains(" ") {
            report(
                section.position(\.hosts),
                "\(Quotation.of(host)) is no name of a host: write it without http:// and path, as in inlet.example")
        }
        return settings
    }

    /// A shorter one can be guessed by whoever reaches the port.
    private static let shortestSecret = 8

    private mutating func checkSecrets(_ section: Section<DashboardKeys>) {
        for key in [\DashboardKeys.token, \.password, \.readOnlyToken] {
            guard let secret = section[dynamicMember: key], secret.reveal().utf8.count < Self.shortestSecret else {
                continue
            }
            report(
                section.position(key),
                "'\(section.keyName(key))' has fewer than \(Self.shortestSecret) characters; 'openssl rand -hex 16' makes a good one"
            )
        }
        for key in [\DashboardKeys.token, \.readOnlyToken] {
            guard let secret = section[dynamicMember: key],
                !secret.reveal().utf8.allSatisfy({ (0x21...0x7E).contains($0) })
            else { continue }
            report(
                section.position(key),
                "'\(section.keyName(key))' goes in a header: only letters, digits and signs of ASCII, no spaces")
        }
    }

    /// Reports what only makes sense, or only is safe, where a token or a password is asked for.
    private mutating func checkOpenness(_ settings: DashboardSettings, _ section: Section<DashboardKeys>) {
        guard settings.isOpen, section.place(\.token) == nil, section.place(\.password) == nil else { return }
        if !settings.listen.isLoopback {
            return report(
                section.position(\.listen),
                "other machines can reach \(settings.listen.text): give a 'token' or a 'password', or listen at 127.0.0.1:\(settings.listen.port)"
            )
        }
        var forOthers: [(String, SourcePosition)] = []
        if !settings.hosts.isEmpty { forOthers.append((section.keyName(\.hosts), section.position(\.hosts))) }
        if settings.proxy { forOthers.append((section.keyName(\.proxy), section.position(\.proxy))) }
        for (name, place) in forOthers {
            report(
                place,
                "'\(name)' is for those who come from elsewhere, and without a 'token' or a 'password' they might do everything; give one of them too"
            )
        }
        if settings.readOnlyToken != nil {
            report(
                section.position(\.readOnlyToken),
                "without a 'token' or a 'password' everybody on this machine may do everything; give one of them too")
        }
    }
}
