import InletConfig
import InletCore
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
        ("proxy: { url: off, user: me }", "", "'user' belongs to no proxy"),
        ("proxy: { url: \"http://p:1\", no_proxy: 10.0.0.0/40 }", "", "'no_proxy' has '10.0.0.0/40'"),
        ("proxy: { url: \"http://p:1\", no_prox: x }", "", "did you mean 'no_proxy'?"),
        ("", ", proxy: ftp://p:1", "'url' has a scheme other than http, https, socks5, socks5h"),
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
