import InletCore

/// Access to the agent over the network: `dashboard:`.
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
        var settings = DashboardSettings(
            listen: listen, token: file.dashboardToken, password: file.dashboardPassword,
            readOnlyToken: file.dashboardReadOnlyToken,
            kioskToken: file.dashboardKioskToken, hosts: file.dashboardHosts ?? [], proxy: file.dashboardProxy ?? false)
        settings.login = file.dashboardLogin ?? .open
        settings.mayEdit = file.dashboardEdit ?? false
        checkSecrets()
        if let reader = settings.readOnlyToken, reader == settings.token || reader == settings.password {
            report(
                file.position(\.dashboardReadOnlyToken), "'read_only_token' must differ from 'token' and 'password'")
        }
        if let kiosk = settings.kioskToken,
            [settings.token, settings.password, settings.readOnlyToken].contains(kiosk)
        {
            report(
                file.position(\.dashboardKioskToken),
                "'kiosk_token' must differ from 'token', 'password' and 'read_only_token'")
        }
        checkOpenness(settings)
        for host in settings.hosts where host.isEmpty || host.contains("/") || host.contains(" ") {
            report(
                file.position(\.dashboardHosts),
                "\(SecretMask.quoted(host)) is not a host name; write it without http:// and path, as in inlet.example"
            )
        }
        return settings
    }

    /// Anyone who reaches the port could guess a shorter one.
    private static let shortestSecret = 8
    private static var tokensForLess: [KeyPath<ConfigKeys, Key<Secret?>>] {
        [\.dashboardReadOnlyToken, \.dashboardKioskToken]
    }

    private mutating func checkSecrets() {
        for key in [\ConfigKeys.dashboardToken, \.dashboardPassword] + Self.tokensForLess {
            guard let secret = file[dynamicMember: key], secret.reveal().utf8.count < Self.shortestSecret else {
                continue
            }
            report(
                file.position(key),
                "'\(file.keyName(key))' needs at least \(Self.shortestSecret) characters; 'openssl rand -hex 16' makes a good one"
            )
        }
        for key in [\ConfigKeys.dashboardToken] + Self.tokensForLess {
            guard let secret = file[dynamicMember: key],
                !secret.reveal().utf8.allSatisfy({ (0x21...0x7E).contains($0) })
            else { continue }
            report(
                file.position(key),
                "'\(file.keyName(key))' is sent in a header; use only ASCII letters, digits and symbols, no spaces")
        }
    }

    /// Reports settings that make sense, or are safe, only with a token or a password.
    private mutating func checkOpenness(_ settings: DashboardSettings) {
        guard settings.hasNoSecret, file.place(\.dashboardToken) == nil, file.place(\.dashboardPassword) == nil else {
            return
        }
        if !settings.listen.isLoopback {
            return report(
                file.position(\.dashboardListen),
                "add a 'token' or a 'password', or listen at 127.0.0.1:\(settings.listen.port): other machines can reach \(settings.listen.text)"
            )
        }
        var forOthers: [(String, SourcePosition)] = []
        if settings.isOpen, !settings.hosts.isEmpty {
            forOthers.append((file.keyName(\.dashboardHosts), file.position(\.dashboardHosts)))
        }
        if settings.isOpen, settings.proxy {
            forOthers.append((file.keyName(\.dashboardProxy), file.position(\.dashboardProxy)))
        }
        for (name, place) in forOthers {
            report(
                place,
                "add a 'token' or a 'password': '\(name)' admits other machines, which would have full access"
            )
        }
        for key in Self.tokensForLess where file[dynamicMember: key] != nil {
            report(
                file.position(key),
                settings.isOpen
                    ? "add a 'token' or a 'password': without one, everyone on this machine has full access"
                    : "add a 'token' or a 'password': with 'login: link' alone, a browser cannot log in by it")
        }
    }
}
