import InletConfig
import InletCore
import SystemPackage
import Testing

/// `proxy:`, and the files of `log:`.
struct NetworkSettingsTests {
    private static func text(_ top: String, destination: String = "") -> String {
        """
        \(top)
        destinations: { store: { type: r2, api: "https://a.example"\(destination) } }
        """
    }

    @Test func `a proxy is one word, an address or a mapping`() throws {
        #expect(try parse(Self.text("")).settings.proxy == nil)
        let off = try parse(Self.text("proxy: off")).settings.proxy
        #expect(off != nil && off?.server == nil)
        let plain = try parse(Self.text("proxy: http://p.example:3128")).settings.proxy
        #expect(plain?.server?.description == "http://p.example:3128" && plain?.exceptions.isEmpty == true)
        let whole = try parse(
            Self.text(
                """
                proxy:
                  url: socks5h://p.example:1080
                  user: me
                  password: "${env:CANARY}"
                  no_proxy: [a.example, "10.0.0.0/8,b.example:81"]
                """)
        ).settings.proxy
        #expect(whole?.server?.scheme == .socks5h && whole?.server?.password?.reveal() == "canary-value")
        #expect(whole?.exceptions.entry(for: "b.example", port: 81) == "b.example:81")
        #expect(!"\(whole as Any)".contains("canary"))
        let own = try parse(Self.text("", destination: ", proxy: off")).settings.destinations[0].values
        #expect(ProxyKeys.key().value(in: own).url?.reveal() == "off")
    }

    @Test func `what is shown of a proxy has no login in it, and loads again`() throws {
        let config = try parse(
            Self.text(
                "proxy: \"http://me:canary@p.example:3128\"",
                destination: ", proxy: { url: \"${env:CANARY}\" }"
                    .replacing("${env:CANARY}", with: "http://p.example:1")))
        let shown = ConfigPrinter.show(config, types: standInTypes)
        #expect(shown.contains("url: \"http://***@p.example:3128\"") && shown.contains("url: \"http://p.example:1\""))
        #expect(!shown.contains("canary"))
        #expect(ConfigPrinter.show(try parse(shown), types: standInTypes) == shown)
    }

    @Test(arguments: [
        ("proxy: http://p.example", "", "'url' names no port; write for example http://proxy.example:3128"),
        ("proxy: false", "", "'url' names no port"),
        ("proxy: { user: me }", "", "required key 'url' is missing in proxy"),
        ("proxy: { url: off, user: me }", "", "'user' has no effect"),
        ("proxy: { url: \"http://p:1\", no_proxy: 10.0.0.0/40 }", "", "'no_proxy' has '10.0.0.0/40'"),
        ("proxy: { url: \"http://p:1\", no_prox: x }", "", "did you mean 'no_proxy'?"),
        ("", ", proxy: ftp://p:1", "'url' has an unknown scheme; use one of http, https, socks5, socks5h"),
        ("log: { max_size: 1KiB }", "", "'max_size' must be 64KiB or more, or off"),
        ("log: { max_size: big }", "", "'big' is not a size; write for example 8MiB, 6GB, or off"),
        ("log: { keep: 0 }", "", "'keep' is 0; it must be from 1 to 1000"),
    ])
    func `what cannot be meant is refused`(_ top: String, _ destination: String, _ expected: String) {
        let said = complaints(Self.text(top, destination: destination))
        #expect(said.contains(expected), "\(said)")
    }

    @Test func `no error quotes the password of a proxy`() {
        let said = complaints(Self.text("proxy: http://me:canary@p.example"))
        #expect(said.contains("names no port") && !said.contains("canary"), "\(said)")
    }

    @Test func `a log has a size and a number, or no end`() throws {
        let usual = try parse(Self.text("")).settings.log
        #expect(usual == LogSettings() && usual.maxSize == 50 << 20 && usual.keep == 5)
        let log = try parse(Self.text("log: { output: journald, max_size: off, keep: 9 }")).settings.log
        #expect(log.output == "journald" && log.maxSize == nil && log.keep == 9)
        #expect(try parse(Self.text("log: { output: a.log, max_size: 1MiB }")).settings.log.output == "/nowhere/a.log")
    }
}

/// `notify:`, `ping_url:` and what belongs to it.
struct NotifySettingsTests {
    @Test func `receivers and the ping are read with their defaults`() throws {
        let settings = try parse(
            small(
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
        #expect(ops.events == Set(NotificationEvent.usual) && !ops.events.contains(.delivered))
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
            small(
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
        ("notify: [{ name: a }]", "a receiver needs one of webhook, exec, ntfy, gotify"),
        ("notify: [{ name: a, webhook: 'https://x', exec: [/bin/true] }]", "either 'webhook' or 'exec', not both"),
        ("notify: [{ name: a, exec: [rescan] }]", "must start with the program's absolute path"),
        ("notify: [{ name: a, exec: /bin/true, secret: s }]", "remove 'secret': it is for webhook, not for exec"),
        ("notify: [{ ntfy: 'https://n/t', server: 'https://x' }]", "it is for pushover, telegram, not for ntfy"),
        ("notify: [{ gotify: 'https://g' }]", "'gotify' also needs 'token': the token of its application"),
        ("notify: [{ pushover: key }]", "'pushover' also needs 'token'"),
        ("notify: [{ telegram: 1 }]", "'telegram' also needs 'token': the token of its bot"),
        ("notify: [{ discord: 'https://d', apprise: 'https://a' }]", "either 'apprise' or 'discord', not both"),
        ("notify: [{ smtp: 'smtps://m' }]", "'smtp' also needs 'to'"),
        ("notify: [{ smtp: 'smtps://m', to: [] }]", "'smtp' also needs 'to'"),
        ("notify: [{ smtp: 'smtps://m', to: a@b, user: u }]", "'user' also needs 'password'"),
        ("notify: [{ smtp: 'smtps://m', to: a@b, password: canary }]", "'password' also needs 'user'"),
        ("notify: [{ smtp: 'smtps://m', to: 'A <a@b>' }]", "is not a mail address; write name@example.com"),
        ("notify: [{ smtp: 'smtps://m', to: a@b, from: nobody }]", "'nobody' is not a mail address"),
        ("notify: [{ ntfy: 'https://n/t' }, { ntfy: 'https://n/u' }]", "give this receiver a 'name': one above is"),
        ("notify: [{ name: a, exec: /bin/true, routes: al }]", "did you mean 'all'?"),
        ("notify: [{ name: a, exec: /bin/true, on: done }]", "'on' must be one of"),
        ("notify: [{ name: a, exec: /bin/true }, { name: a, exec: /bin/true }]", "has the same name"),
        ("notify: [{ name: a, exec: /bin/true, ca_file: /ca.pem }]", "a program needs none"),
        ("ping_url: https://x\nping_interval: 1s", "must be 10s or longer"),
    ])
    func `what cannot be meant is refused at its place`(_ notify: String, _ expected: String) {
        let errors = #expect(throws: ConfigErrors.self) { _ = try parse(small(notify)) }
        #expect(errors.map { "\($0)" }?.contains(expected) == true, "\(errors.map { "\($0)" } ?? "")")
    }
}

/// Services of `notify:`.
struct MessageServiceSettingsTests {
    private static let usual: [(String, MessageService)] = [
        ("ntfy: 'https://ntfy.sh/canary'", .ntfy(topic: Secret("https://ntfy.sh/canary"), token: nil)),
        (
            "ntfy: 'https://ntfy.sh/canary', token: tk_canary",
            .ntfy(topic: Secret("https://ntfy.sh/canary"), token: Secret("tk_canary"))
        ),
        (
            "gotify: 'https://push.lan', token: canary",
            .gotify(server: "https://push.lan", token: Secret("canary"))
        ),
        (
            "pushover: canary-user, token: canary",
            .pushover(
                user: Secret("canary-user"), token: Secret("canary"), server: "https://api.pushover.net")
        ),
        ("apprise: 'https://a/notify/canary'", .apprise(Secret("https://a/notify/canary"))),
        (
            "discord: 'https://discord.com/api/webhooks/1/canary'",
            .discord(Secret("https://discord.com/api/webhooks/1/canary"))
        ),
        (
            "telegram: -1001, token: '1:canary', server: 'https://bot.lan'",
            .telegram(chat: "-1001", token: Secret("1:canary"), server: "https://bot.lan")
        ),
        (
            "smtp: 'smtps://mail.lan', user: me@mail.lan, password: canary, to: [a@b.c, d@e.f]",
            .smtp(
                MailAccount(
                    server: "smtps://mail.lan", user: "me@mail.lan", password: Secret("canary"), from: "me@mail.lan",
                    to: ["a@b.c", "d@e.f"]))
        ),
        (
            "smtp: 'smtp://mail.lan', to: a@b.c",
            .smtp(MailAccount(server: "smtp://mail.lan", from: "a@b.c", to: ["a@b.c"]))
        ),
    ]

    @Test(arguments: usual)
    func `a service is read, named by its kind, and shows no secret`(_ keys: String, _ expected: MessageService) throws
    {
        let config = try parse(small("notify: [{ \(keys) }]"))
        let receiver = try #require(config.settings.notify.first)
        #expect(receiver.receiver == .service(expected))
        #expect(receiver.name == expected.kind && keys.hasPrefix("\(expected.kind):"))
        #expect(receiver.events.contains(.volumeProblem) && !receiver.events.contains(.delivered))
        #expect(!"\(receiver)".contains("canary"))
        #expect(!ConfigPrinter.show(config, types: standInTypes).contains("canary"))
    }

    @Test func `only an address that a phone subscribes to is a subscription`() {
        let all = Self.usual.map { $0.1.subscription?.reveal() }
        #expect(all.prefix(2) == ["https://ntfy.sh/canary", "https://ntfy.sh/canary"])
        #expect(all.dropFirst(2).allSatisfy { $0 == nil })
    }
}

/// `dashboard:`.
struct DashboardSettingsTests {
    @Test(arguments: ["", "dashboard:", "dashboard:\n  # listen: 127.0.0.1:8844"])
    func `without the section nothing listens`(_ dashboard: String) throws {
        #expect(try parse(small(dashboard)).settings.dashboard == nil)
    }

    @Test func `all of it is read, and no secret is shown`() throws {
        let config = try parse(
            small(
                """
                dashboard:
                  listen: 0.0.0.0:8844
                  token: canary-token
                  password: "canary passphrase"
                  read_only_token: canary-reader
                  kiosk_token: canary-kiosk
                  hosts: [inlet.example, "nas.lan:8844"]
                  proxy: true
                """))
        let settings = try #require(config.settings.dashboard)
        #expect(settings.listen == ListenAddress(host: "0.0.0.0", port: 8844) && !settings.isOpen)
        #expect(settings.token?.reveal() == "canary-token" && settings.password?.reveal() == "canary passphrase")
        #expect(settings.readOnlyToken?.reveal() == "canary-reader")
        #expect(settings.kioskToken?.reveal() == "canary-kiosk")
        #expect(settings.hosts == ["inlet.example", "nas.lan:8844"] && settings.proxy)
        #expect(!"\(settings)".contains("canary"))
        #expect(!ConfigPrinter.show(config, types: standInTypes).contains("canary"))
    }

    @Test(arguments: [
        ("127.0.0.1:8844", true), ("localhost:80", true), ("[::1]:8844", true), ("127.9.9.9:1", true),
    ])
    func `on loopback nothing more is needed`(_ listen: String, _ isLoopback: Bool) throws {
        let settings = try parse(small("dashboard: { listen: \"\(listen)\" }")).settings.dashboard
        #expect(
            settings?.listen.isLoopback == isLoopback && settings?.listen.text == listen && settings?.isOpen == true)
    }

    @Test(arguments: [
        ("listen: 8844", "needs an address and a port; write for example 127.0.0.1:8844"),
        ("listen: \":8844\"", "127.0.0.1:8844 for this machine only, 0.0.0.0:8844 for its networks"),
        ("listen: \"*:8844\"", "127.0.0.1:8844 for this machine only"),
        ("listen: \"127.0.0.1:0\"", "a port from 1 to 65535"),
        ("listen: \"127.0.0.1:http\"", "a port from 1 to 65535"),
        ("listen: \"127.0.0.1:+80\"", "a port from 1 to 65535"),
        ("listen: \"::1:8844\"", "without brackets; write it as in [::1]:8844"),
        ("listen: \"[127.0.0.1]:8844\"", "no IPv6 address in its brackets"),
        ("listen: \"300.1.1.1:8844\"", "needs an address of this machine"),
        ("listen: \"http://127.0.0.1:8844\"", "without brackets"),
        ("listen: \"0.0.0.0:8844\"", "add a 'token' or a 'password', or listen at 127.0.0.1:8844"),
        ("listen: \"[::]:8844\"", "add a 'token' or a 'password', or listen at"),
        ("listen: \"nas.lan:8844\"", "add a 'token' or a 'password', or listen at"),
        ("listen: \"0.0.0.0:8844\", read_only_token: abcdefgh", "add a 'token' or a 'password', or listen at"),
        ("listen: \"0.0.0.0:8844\", password: canary1", "'password' needs at least 8 characters"),
        ("listen: \"127.0.0.1:8844\", token: \"canary with spaces\"", "is sent in a header"),
        ("listen: \"127.0.0.1:8844\", read_only_token: canary-reader", "everyone on this machine has full access"),
        (
            "listen: \"127.0.0.1:8844\", token: canary-token, read_only_token: canary-token",
            "must differ from 'token' and 'password'"
        ),
        ("listen: \"127.0.0.1:8844\", kiosk_token: canary-kiosk", "everyone on this machine has full access"),
        (
            "listen: \"127.0.0.1:8844\", token: canary-token, read_only_token: canary-less, kiosk_token: canary-less",
            "must differ from 'token', 'password' and 'read_only_token'"
        ),
        (
            "listen: \"127.0.0.1:8844\", token: canary-token, kiosk_token: canary1",
            "'kiosk_token' needs at least 8 characters"
        ),
        ("listen: \"127.0.0.1:8844\", hosts: [\"http://inlet.example/\"]", "is not a host name"),
        ("listen: \"127.0.0.1:8844\", hosts: inlet.example", "'hosts' admits other machines"),
        ("listen: \"127.0.0.1:8844\", proxy: true", "'proxy' admits other machines"),
        ("token: canary-token", "required key 'listen' is missing"),
        ("listen: \"127.0.0.1:8844\", tokn: canary-token", "did you mean 'token'?"),
    ])
    func `what cannot be meant is refused with its remedy, and without its secrets`(_ keys: String, _ expected: String)
    {
        let errors = #expect(throws: ConfigErrors.self) { _ = try parse(small("dashboard: { \(keys) }")) }
        #expect("\(errors as Any)".contains(expected), "\(errors as Any)")
        #expect(!"\(errors as Any)".contains("canary"), "\(errors as Any)")
    }
}
