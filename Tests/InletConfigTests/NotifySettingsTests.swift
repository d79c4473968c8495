import InletConfig
import InletCore
import SystemPackage
import Testing

/// `notify:`, `ping_url:` and what belongs to it.
struct NotifySettingsTests {
    private static func text(_ notify: String) -> String {
        """
        destinations: { lib: { type: folder, path: /lib } }
        watch: [{ path: /srv/drop }]
        routes: [{ name: all, to: lib }]
        \(notify)
        """
    }

    @Test func `receivers and the ping are read with their defaults`() throws {
        let settings = try parse(
            Self.text(
                """
                notify:
                  - { name: ops, webhook: "https://hooks.example/canary", secret: whsec_AAAA }
                  - { name: scan, exec: [/bin/true, "a b"], on: delivered, routes: all, timeout: 30s }
                ping_url: https://ping.example/canary
                """)
        ).settings
        let ops = try #require(settings.notify.first)
        #expect(
            ops.receiver == .webhook(Secret("https://hooks.example/canary")) && ops.secret?.reveal() == "whsec_AAAA")
        #expect(ops.events == Set(NoticeEvent.usual) && !ops.events.contains(.delivered))
        #expect(ops.routes.isEmpty && ops.timeout == .seconds(10) && !ops.allowsHTTP)
        let scan = try #require(settings.notify.last)
        #expect(scan.receiver == .exec(["/bin/true", "a b"]) && scan.events == [.delivered] && scan.routes == ["all"])
        #expect(scan.timeout == .seconds(30))
        #expect(
            settings.ping?.url.reveal() == "https://ping.example/canary" && settings.ping?.interval == .seconds(300))
        #expect(!"\(settings.notify) \(settings.ping as Any)".contains("canary"))
        #expect(ops.caFile == nil && settings.ping?.caFile == nil && settings.ping?.allowsHTTP == false)
    }

    @Test func `what they are trusted by is read, and that plain http may go to others`() throws {
        let settings = try parse(
            Self.text(
                """
                notify: [{ name: ops, webhook: "https://hooks.example/x", ca_file: /etc/ca.pem }]
                ping_url: http://ping.example/x
                ping_allow_http: true
                ping_ca_file: /etc/other.pem
                """)
        ).settings
        #expect(settings.notify.first?.caFile == "/etc/ca.pem")
        #expect(settings.ping?.allowsHTTP == true && settings.ping?.caFile == "/etc/other.pem")
    }

    @Test(arguments: [
        ("notify: [{ name: a }]", "a receiver needs 'webhook' or 'exec'"),
        ("notify: [{ name: a, webhook: 'https://x', exec: [/bin/true] }]", "either 'webhook' or 'exec', not both"),
        ("notify: [{ name: a, exec: [rescan] }]", "begins with the program's whole path"),
        ("notify: [{ name: a, exec: /bin/true, secret: s }]", "a program needs none"),
        ("notify: [{ name: a, exec: /bin/true, routes: al }]", "did you mean 'all'?"),
        ("notify: [{ name: a, exec: /bin/true, on: done }]", "'on' is one of"),
        ("notify: [{ name: a, exec: /bin/true }, { name: a, exec: /bin/true }]", "has the same name"),
        ("notify: [{ name: a, exec: /bin/true, ca_file: /ca.pem }]", "a program needs none"),
        ("ping_url: https://x\nping_interval: 1s", "must be 10s or longer"),
    ])
    func `what cannot be meant is refused at its place`(_ notify: String, _ expected: String) {
        let errors = #expect(throws: ConfigErrors.self) { _ = try parse(Self.text(notify)) }
        #expect(errors.map { "\($0)" }?.contains(expected) == true, "\(errors.map { "\($0)" } ?? "")")
    }
}
