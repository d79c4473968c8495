import InletCore

/// Who may see and command the agent over the network: `dashboard:`.
extension SettingsReader {
    mutating func dashboard() -> DashboardSettings? {
        guard let text = file.dashboardListen else { return nil }
        let listen: ListenAddress
        do throws(PatternError) {
            listen = try ListenAddress(text)
        } catch {
            report(file.position(\.dashboardListen), error.description)
            return nil
        }
        let settings = DashboardSettings(
            listen: listen, token: file.dashboardToken, password: file.dashboardPassword,
            readOnlyToken: file.dashboardReadOnlyToken,
            hosts: file.dashboardHosts ?? [], proxy: file.dashboardProxy ?? false)
        checkSecrets()
        if let reader = settings.readOnlyToken, reader == settings.token || reader == settings.password {
            report(
                file.position(\.dashboardReadOnlyToken), "'read_only_token' must differ from what may do everything")
        }
        checkOpenness(settings)
        for host in settings.hosts where host.isEmpty || host.contains("/") || host.contains(" ") {
            report(
                file.position(\.dashboardHosts),
                "\(SecretMask.quoted(host)) is no name of a host: write it without http:// and path, as in inlet.example"
            )
        }
        return settings
    }

    /// A shorter one can be guessed by whoever reaches the port.
    private static let shortestSecret = 8

    private mutating func checkSecrets() {
        for key in [\ConfigKeys.dashboardToken, \.dashboardPassword, \.dashboardReadOnlyToken] {
            guard let secret = file[dynamicMember: key], secret.reveal().utf8.count < Self.shortestSecret else {
                continue
            }
            report(
                file.position(key),
                "'\(file.keyName(key))' has fewer than \(Self.shortestSecret) characters; 'openssl rand -hex 16' makes a good one"
            )
        }
        for key in [\ConfigKeys.dashboardToken, \.dashboardReadOnlyToken] {
            guard let secret = file[dynamicMember: key],
                !secret.reveal().utf8.allSatisfy({ (0x21...0x7E).contains($0) })
            else { continue }
            report(
                file.position(key),
                "'\(file.keyName(key))' goes in a header: only letters, digits and signs of ASCII, no spaces")
        }
    }

    /// Reports what only makes sense, or only is safe, where a token or a password is asked for.
    private mutating func checkOpenness(_ settings: DashboardSettings) {
        guard settings.isOpen, file.place(\.dashboardToken) == nil, file.place(\.dashboardPassword) == nil else {
            return
        }
        if !settings.listen.isLoopback {
            return report(
                file.position(\.dashboardListen),
                "other machines can reach \(settings.listen.text): give a 'token' or a 'password', or listen at 127.0.0.1:\(settings.listen.port)"
            )
        }
        var forOthers: [(String, SourcePosition)] = []
        if !settings.hosts.isEmpty {
            forOthers.append((file.keyName(\.dashboardHosts), file.position(\.dashboardHosts)))
        }
        if settings.proxy { forOthers.append((file.keyName(\.dashboardProxy), file.position(\.dashboardProxy))) }
        for (name, place) in forOthers {
            report(
                place,
                "'\(name)' is for those who come from elsewhere, and without a 'token' or a 'password' they might do everything; give one of them too"
            )
        }
        if settings.readOnlyToken != nil {
            report(
                file.position(\.dashboardReadOnlyToken),
                "without a 'token' or a 'password' everybody on this machine may do everything; give one of them too")
        }
    }
}
