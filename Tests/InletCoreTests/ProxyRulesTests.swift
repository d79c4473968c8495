import InletCore
import Testing

/// Which way a request goes, decided without a network.
struct ProxyRulesTests {
    private static func rules(_ environment: [String: String]) -> ProxyRules { ProxyRules { environment[$0] } }

    private static func settings(
        _ url: String, user: String? = nil, password: String? = nil, noProxy: [String]? = nil
    ) throws(ProxySettings.Fault) -> ProxySettings {
        var section = ConfigSection(values: [:], positions: [:], position: SourcePosition(line: 1, column: 1))
        section.values["url"] = .secret(Secret(url))
        if let user { section.values["user"] = .string(user) }
        if let password { section.values["password"] = .secret(Secret(password)) }
        if let noProxy { section.values["no_proxy"] = .list(noProxy.map { .string($0) }) }
        return try ProxySettings(Section(ProxyKeys(), section))
    }

    @Test(
        arguments: [
            (["https_proxy": "http://a:1", "HTTPS_PROXY": "http://b:2"], "https", "http://a:1"),
            (["HTTPS_PROXY": "http://b:2"], "https", "http://b:2"),
            (["https_proxy": "", "HTTPS_PROXY": "http://b:2"], "https", "http://b:2"),
            (["HTTPS_PROXY": "http://b:2"], "http", nil),
            (["http_proxy": "http://a:1"], "http", "http://a:1"),
            (["http_proxy": "http://a:1"], "https", nil),
            // A header of any client becomes HTTP_PROXY in programs that a web server starts.
            (["HTTP_PROXY": "http://b:2"], "http", nil),
            (["all_proxy": "socks5h://c"], "http", "socks5h://c:1080"),
            (["ALL_PROXY": "socks5://c:9"], "https", "socks5://c:9"),
            (["ALL_PROXY": "http://c:9", "https_proxy": "https://a"], "https", "https://a:443"),
            (["https_proxy": "a.example:3128"], "https", "http://a.example:3128"),
            ([:], "https", nil),
        ] as [([String: String], String, String?)])
    func `the usual variables hold as curl takes them`(
        _ environment: [String: String], _ scheme: String, _ expected: String?
    ) {
        let choice = Self.rules(environment).choice(scheme: scheme, host: "store.example", port: 443)
        #expect(choice.server?.description == expected, "\(choice)")
    }

    @Test(
        arguments: [
            ("example.com", "example.com", 443, true), ("example.com", "a.b.example.com", 443, true),
            ("example.com", "badexample.com", 443, false), (".example.com", "example.com", 443, true),
            ("*.example.com", "a.example.com", 443, true), ("EXAMPLE.com", "example.com", 443, true),
            ("example.com.", "example.com", 443, true), ("example.com", "example.com.", 443, true),
            ("example.com:8443", "example.com", 8443, true), ("example.com:8443", "example.com", 443, false),
            ("a.example, b.example", "b.example", 443, true), ("a.example b.example", "b.example", 443, true),
            ("10.0.0.0/8", "10.200.3.4", 443, true), ("10.0.0.0/8", "11.0.0.1", 443, false),
            ("10.1.128.0/17", "10.1.127.255", 443, false), ("10.1.128.0/17", "10.1.128.0", 443, true),
            ("0.0.0.0/0", "192.0.2.1", 443, true), ("0.0.0.0/0", "store.example", 443, false),
            ("192.0.2.7", "192.0.2.7", 443, true), ("192.0.2.7:81", "192.0.2.7", 80, false),
            ("fd00::/8", "fd12::1", 443, true), ("fd00::/8", "fe80::1", 443, false),
            ("[2001:db8::1]:8443", "2001:db8::1", 8443, true), ("2001:db8::1", "2001:db8:0:0:0:0:0:1", 443, true),
            ("10.0.0.0/8", "::ffff:10.1.2.3", 443, true),
            ("*", "anything.example", 443, true), ("*", "192.0.2.1", 80, true), ("0.0.2.1", "192.0.2.1", 80, false),
            ("2.1", "192.0.2.1", 80, false), ("10.0.0.0/99", "10.0.0.1", 443, false), ("", "a.example", 443, false),
        ] as [(String, String, UInt16, Bool)])
    func `what no_proxy names is reached directly`(_ list: String, _ host: String, _ port: UInt16, _ isDirect: Bool) {
        let rules = Self.rules(["ALL_PROXY": "http://p:1", "NO_PROXY": list])
        let choice = rules.choice(scheme: "https", host: host, port: port)
        #expect((choice.server == nil) == isDirect, "\(choice)")
        if isDirect, case .direct(let why) = choice { #expect(why.hasSuffix("of NO_PROXY")) }
    }

    @Test(arguments: ["localhost", "a.localhost", "127.0.0.1", "127.9.9.9", "::1", "0.0.0.0", "::ffff:127.0.0.1"])
    func `this machine is reached directly, unless a destination asks for its proxy itself`(_ host: String) throws {
        let settings = try Self.settings("http://p:1")
        let environment = Self.rules(["ALL_PROXY": "http://p:1"])
        #expect(environment.choice(scheme: "http", host: host, port: 80).server == nil)
        let whole = ProxyRules(settings, isOwn: false)
        #expect(whole.choice(scheme: "http", host: host, port: 80).server == nil)
        let own = ProxyRules(settings, isOwn: true)
        #expect(own.choice(scheme: "http", host: host, port: 80).server?.host == "p")
    }

    @Test func `off goes around every proxy, and what is set says where`() throws {
        let off = ProxyRules(try Self.settings("off"), isOwn: true)
        #expect(
            off.choice(scheme: "https", host: "a.example", port: 443)
                == .direct(why: "'proxy' of the destination is off"))
        let on = ProxyRules(try Self.settings("http://p:1", noProxy: ["b.example"]), isOwn: false)
        #expect(
            on.choice(scheme: "https", host: "a.example", port: 443)
                == .by(try ProxyServer("http://p:1", usualPort: false), why: "by 'proxy' of the configuration"))
        #expect(on.choice(scheme: "https", host: "b.example", port: 443) == .direct(why: "'b.example' of no_proxy"))
    }

    @Test func `a variable that names no proxy is not gone around`() {
        let rules = Self.rules(["https_proxy": "socks4://user:canary@p:1"])
        guard case .unusable(let why) = rules.choice(scheme: "https", host: "a.example", port: 443) else {
            Issue.record("it was taken")
            return
        }
        #expect(why.contains("https_proxy") && why.contains("socks5h") && !why.contains("canary"))
    }

    @Test func `a login may stand in the address or beside it, and never shows`() throws {
        let inside = try ProxyServer("http://me%40work:can%3Aary@Proxy.Example:3128/", usualPort: false)
        #expect(inside.user == "me@work" && inside.password?.reveal() == "can:ary")
        #expect("\(inside)" == "http://proxy.example:3128")
        let beside = try Self.settings("http://p:1", user: "me", password: "canary")
        #expect(beside.server?.user == "me" && beside.server?.password?.reveal() == "canary")
        #expect(!"\(beside)".contains("canary") && !"\(inside)".contains("ary@"))
        #expect(
            try ProxyServer("http://[2001:db8::1]:3128", usualPort: false).description == "http://[2001:db8::1]:3128")
    }

    @Test(
        arguments: [
            ("http://p", nil, nil, [], "url", "names no port"), ("ftp://p:1", nil, nil, [], "url", "unknown scheme"),
            ("http://:1", nil, nil, [], "url", "names no host"), ("http://p:0", nil, nil, [], "url", "names no port"),
            ("http://p:70000", nil, nil, [], "url", "names no port"),
            ("http://u:%zz@p:1", nil, nil, [], "url", "percent-encoded"),
            ("http://u@p:1", "u", nil, [], "user", "too"), ("http://p:1", nil, "x", [], "password", "'user'"),
            ("http://p:1", "a:b", nil, [], "user", "':'"), ("off", "u", nil, [], "user", "off"),
            ("http://p:1", nil, nil, ["a.example", "10.0.0.0/33"], "no_proxy", "10.0.0.0/33"),
        ] as [(String, String?, String?, [String], String, String)])
    func `what cannot be used is refused by its key`(
        _ url: String, _ user: String?, _ password: String?, _ noProxy: [String], _ key: String, _ words: String
    ) {
        let fault = #expect(throws: ProxySettings.Fault.self) {
            _ = try Self.settings(url, user: user, password: password, noProxy: noProxy)
        }
        #expect(fault?.key == key && fault?.message.contains(words) == true, "\(fault.map { "\($0)" } ?? "")")
    }
}

@Suite struct IPAddressTests {
    @Test(
        arguments: [
            ("127.0.0.1", [127, 0, 0, 1]), ("0.0.0.0", [0, 0, 0, 0]), ("::ffff:10.0.0.1", [10, 0, 0, 1]),
            ("::1", [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
            ("fe80::1%eth0", [0xFE, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
            ("2001:db8:1:2:3:4:5:6", [0x20, 1, 0x0D, 0xB8, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6]),
            ("::", [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        ] as [(String, [UInt8])])
    func `an address is its bytes`(text: String, bytes: [UInt8]) throws {
        #expect(try #require(IPAddress(text)).bytes == bytes)
    }

    @Test(arguments: [
        "", "localhost", "1.2.3", "1.2.3.4.5", "256.1.1.1", "01.2.3.4", "1.2.3.-4", "1..2.3", ":::", "1::2::3",
        "12345::", "::g", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "[::1]", "::1.2.3", "+1.2.3.4",
    ])
    func `what is none is none`(text: String) { #expect(IPAddress(text) == nil) }

    @Test(arguments: [
        ("127.0.0.1", true), ("127.255.0.9", true), ("::1", true), ("::ffff:127.0.0.1", true), ("0.0.0.0", false),
        ("10.0.0.1", false), ("::", false), ("::2", false), ("1::1", false),
    ])
    func `only this machine is loopback`(text: String, isLoopback: Bool) {
        #expect(IPAddress(text)?.isLoopback == isLoopback)
    }

    @Test func `the addresses of one network count as one person`() {
        #expect(IPAddress("2001:db8::1")?.network == IPAddress("2001:db8::ffff:2")?.network)
        #expect(IPAddress("2001:db8::1")?.network != IPAddress("2001:db8:0:1::1")?.network)
        #expect(IPAddress("10.0.0.1")?.network != IPAddress("10.0.0.2")?.network)
    }
}
