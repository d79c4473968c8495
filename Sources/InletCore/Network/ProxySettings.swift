/// `proxy:` of the configuration, or of one destination.
package struct ProxySettings: Sendable, Hashable {
    /// A value that cannot be used.
    package struct Fault: Error, Sendable, Equatable {
        package var key: String
        /// Continues "`key` …"; quotes no secret.
        package var message: String
    }

    /// nil is `off`: everything is reached directly, whatever the environment says.
    package var server: ProxyServer?
    package var exceptions: ProxyExceptions

    /// - Parameter section: read from what was filled in.
    package init(_ section: Section<ProxyKeys>) throws(Fault) {
        let exceptions = section.noProxy ?? []
        for text in exceptions {
            guard let entry = ProxyExceptions.unreadable(in: text) else { continue }
            throw Fault(
                key: "no_proxy",
                message:
                    "has '\(DisplayText.escape(entry))', which is no host, host:port, address or network like 10.0.0.0/8"
            )
        }
        self.exceptions = ProxyExceptions(exceptions)
        guard let text = section.url?.reveal() else { throw Fault(key: "url", message: "is missing") }
        let (user, password) = (section.user, section.password)
        if text == "off" {
            if let key = user != nil ? "user" : password != nil ? "password" : nil {
                throw Fault(key: key, message: "belongs to no proxy: 'url' is off")
            }
            return
        }
        do throws(ProxyServer.Fault) {
            server = try ProxyServer(text, usualPort: false)
        } catch {
            throw Fault(key: "url", message: error.message)
        }
        try logIn(user, password)
    }

    private mutating func logIn(_ user: String?, _ password: Secret?) throws(Fault) {
        guard let user else {
            if password != nil { throw Fault(key: "password", message: "needs a 'user' beside it") }
            return
        }
        guard server?.user == nil else {
            throw Fault(key: "user", message: "stands in 'url' too; name it once")
        }
        guard !user.isEmpty, !user.contains(":"), !user.unicodeScalars.contains(where: { $0.value < 0x20 }) else {
            throw Fault(key: "user", message: "must be a name without ':' (RFC 7617, section 2)")
        }
        server?.user = user
        server?.password = password
    }
}
