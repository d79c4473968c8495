import Glibc
import InletCore
import InletTestSupport
import SystemPackage
import Testing

@testable import InletTransfer

/// URLs that a server has sent, against what their names resolve to. All names end in `.test`: no resolver is asked.
@Suite(.timeLimit(.minutes(15))) struct AddressGuardTests {
    /// A server that notes what it is asked, and answers each.
    private func server(_ seen: Seen<String>) throws -> ScriptedServer {
        try ScriptedServer { connection in
            while true {
                let line = try connection.readRequest().line
                seen.append(line)
                try connection.answer("200 OK", line.hasPrefix("HEAD") ? "" : "here")
            }
        }
    }

    private func client(_ names: String..., proxies: ProxyRules = .none) -> HTTPClient {
        HTTPClient(
            ClientOptions(trust: .system, userAgent: "inlet-tests/1", names: names), connectionsPerHost: 1,
            proxies: proxies)
    }

    private func configured(_ text: String) throws -> HTTPURL {
        try HTTPURL(text, rules: .configured(allowHTTP: true))
    }

    /// A URL that a server at `api` has sent.
    private func sent(_ text: String, by api: String) throws -> HTTPURL {
        try HTTPURL(text, rules: .sentByServer(at: try configured(api), allowHTTP: true))
    }

    private func error(_ client: HTTPClient, _ url: HTTPURL) async -> TransferError? {
        await failure(client, HTTPRequest("GET", url))
    }

    @Test(arguments: [
        "127.0.0.1", "0.0.0.0", "10.1.2.3", "192.168.1.1", "169.254.169.254", "168.63.129.16", "[::1]", "[fd00::1]",
        "[::ffff:127.0.0.1]", "10.1.2.3,127.0.0.1,[::1]",
    ]) func `a public API's name that resolves to an address near us is not connected to`(addresses: String)
        async throws
    {
        let seen = Seen<String>()
        let server = try server(seen)
        let client = client("rebind.test:\(server.port):\(addresses)")
        let error = await error(
            client, try sent("http://rebind.test:\(server.port)/p?s=canary", by: "http://api.test/"))
        #expect(error?.code == .forbiddenURL && error?.isOutage == false)
        #expect(error?.reason.contains("rebind.test leads to") == true)
        #expect(error?.reason.contains("canary") == false)
        #expect(server.connections == 0)
    }

    @Test func `what a person has named may lead anywhere`() async throws {
        let seen = Seen<String>()
        let server = try server(seen)
        let client = client("named.test:\(server.port):127.0.0.1")
        #expect(await error(client, try configured("http://named.test:\(server.port)/p")) == nil)
    }

    @Test func `of several addresses those are used that may be`() async throws {
        let seen = Seen<String>()
        let server = try server(seen)
        let client = client("several.test:\(server.port):169.254.169.254,127.0.0.1")
        let url = try sent("http://several.test:\(server.port)/p", by: "http://127.0.0.1/")
        #expect(await error(client, url) == nil)
        #expect(seen.all == ["GET /p HTTP/1.1"])
    }

    @Test func `an address that may be used and does not answer is an outage as any other`() async throws {
        var server: ScriptedServer? = try ScriptedServer { _ in }
        let port = try #require(server?.port)
        server = nil
        let client = client("down.test:\(port):169.254.169.254,127.0.0.1")
        let error = await error(client, try sent("http://down.test:\(port)/p", by: "http://127.0.0.1/"))
        #expect(error?.code == .connectFailed && error?.isOutage == true)
    }

    @Test func `a kept connection of a destination with other rights is not used`() async throws {
        let seen = Seen<String>()
        let server = try server(seen)
        let client = client("kept.test:\(server.port):127.0.0.1")
        let text = "http://kept.test:\(server.port)"
        #expect(await error(client, try configured(text + "/own")) == nil)
        let error = await error(client, try sent(text + "/other", by: "http://api.test/"))
        #expect(error?.code == .forbiddenURL && error?.reason.contains("127.0.0.1") == true)
        #expect(seen.all == ["GET /own HTTP/1.1"])
        // One that may use it does.
        #expect(await self.error(client, try configured(text + "/again")) == nil)
    }

    @Test func `an API near us under a name may name what is as near, once it has answered from there`() async throws {
        let seen = Seen<String>()
        let server = try server(seen)
        let client = client("near.test:\(server.port):127.0.0.1", "store.test:\(server.port):127.0.0.1")
        let (api, store) = ("http://near.test:\(server.port)/", "http://store.test:\(server.port)/p")
        #expect(throws: TransferError.self) { try sent("http://127.0.0.1:\(server.port)/p", by: api) }
        #expect(await error(client, try sent(store, by: api))?.code == .forbiddenURL)
        #expect(await error(client, try configured(api)) == nil)
        #expect(await error(client, try sent(store, by: api)) == nil)
        #expect(await error(client, try sent("http://127.0.0.1:\(server.port)/q", by: api)) == nil)
        #expect(seen.all == ["GET / HTTP/1.1", "GET /p HTTP/1.1", "GET /q HTTP/1.1"])
    }

    @Test func `an API that nobody has asked anything is asked where it is, once`() async throws {
        let seen = Seen<String>()
        let server = try server(seen)
        let client = client("early.test:\(server.port):127.0.0.1", "kept-store.test:\(server.port):127.0.0.1")
        let api = "http://early.test:\(server.port)/"
        for _ in 0..<2 { try await client.acquaint(with: try configured(api)) }
        #expect(await error(client, try sent("http://kept-store.test:\(server.port)/p", by: api)) == nil)
        try await client.acquaint(with: try configured("http://127.0.0.1:\(server.port)/"))
        #expect(seen.all == ["HEAD / HTTP/1.1", "GET /p HTTP/1.1"])
    }

    @Test func `a proxy and a Unix socket are where a person wants them`() async throws {
        let seen = Seen<String>()
        let proxy = try server(seen)
        let rules = ProxyRules(environment: { $0 == "http_proxy" ? "http://127.0.0.1:\(proxy.port)" : nil })
        let url = try sent("http://far.test/p", by: "http://api.test/")
        #expect(await error(client(proxies: rules), url) == nil)
        #expect(seen.all == ["GET http://far.test/p HTTP/1.1"])

        let directory = try TemporaryDirectory()
        let path = directory.path.appending("socket")
        let socket = try ScriptedServer(unixSocket: path) { connection in
            _ = try connection.readRequest()
            try connection.answer()
        }
        #expect(await failure(client(), HTTPRequest("GET", url, unixSocket: path)) == nil)
        #expect(socket.connections == 1)
    }

    // MARK: - What is known of hosts

    @Test func `where a host has answered from is remembered, without TLS only the first time`() {
        let hosts = HostScopeCache()
        #expect(hosts.scopes(of: "a.test") == [.anywhere])
        hosts.note("a.test", .privateNetwork, isProven: false)
        hosts.note("a.test", .loopback, isProven: false)
        #expect(hosts.scopes(of: "a.test") == [.privateNetwork])
        hosts.note("a.test", .anywhere, isProven: true)
        #expect(hosts.scopes(of: "a.test") == [.privateNetwork, .anywhere])
        hosts.note("10.0.0.1", .loopback, isProven: true)
        hosts.note("localhost", .anywhere, isProven: true)
        #expect(hosts.scopes(of: "10.0.0.1") == [.privateNetwork])
        #expect(hosts.scopes(of: "localhost") == [.loopback])
        for number in 0..<5000 { hosts.note("h\(number).test", .loopback, isProven: true) }
        let known = (0..<5000).filter { hosts.scopes(of: "h\($0).test") == [.loopback] }
        #expect(known.count == 999)
    }

    @Test(
        arguments: [
            (.anywhere, [.anywhere]), (.privateNetwork, [.anywhere, .privateNetwork]),
            (.linkLocal, [.anywhere, .privateNetwork, .linkLocal]),
            (.loopback, [.anywhere, .privateNetwork, .loopback]),
            (.platform, [.anywhere, .privateNetwork, .platform]),
        ] as [(HostScope, [HostScope])])
    func `a server may name what is not closer than it is, and the cloud's own addresses never`(
        api: HostScope, named: [HostScope]
    ) {
        let reach = Set([api]).reach
        for scope in HostScope.allCases { #expect(reach.contains(scope) == named.contains(scope), "\(scope)") }
    }

    // MARK: - Addresses

    @Test(
        arguments: [
            ("8.8.8.8", .anywhere), ("127.0.0.1", .loopback), ("127.255.0.1", .loopback), ("0.0.0.0", .loopback),
            ("10.0.0.1", .privateNetwork), ("172.16.0.1", .privateNetwork), ("192.168.0.1", .privateNetwork),
            ("192.0.0.8", .privateNetwork), ("192.0.1.8", .anywhere), ("192.0.0.192", .platform),
            ("100.64.0.1", .privateNetwork), ("100.100.100.200", .platform), ("224.0.0.1", .privateNetwork),
            ("169.254.1.1", .linkLocal), ("169.254.169.254", .platform), ("169.254.170.2", .platform),
            ("169.254.169.123", .linkLocal), ("169.254.0.23", .platform),
            ("168.63.129.16", .platform), ("168.63.129.17", .anywhere),
            ("::1", .loopback), ("::", .loopback), ("::127.0.0.1", .loopback), ("::ffff:10.0.0.1", .privateNetwork),
            ("::ffff:8.8.8.8", .anywhere), ("::ffff:0:127.0.0.1", .loopback), ("::ffff:168.63.129.16", .platform),
            ("64:ff9b::127.0.0.1", .loopback), ("64:ff9b::8.8.8.8", .anywhere),
            ("64:ff9b:1::8.8.8.8", .privateNetwork), ("2001::1", .privateNetwork), ("2001:1::1", .privateNetwork),
            ("2001:200::1", .anywhere), ("2001:4860:4860::8888", .anywhere), ("2002:7f00:1::", .loopback),
            ("2002:808:808::", .anywhere), ("fe80::1", .linkLocal), ("fec0::1", .privateNetwork),
            ("fd00::1", .privateNetwork), ("fd00:ec2::254", .platform), ("fd00:ec2::23", .platform),
            ("fd20:ce::254", .platform), ("fe80::a9fe:a9fe", .platform), ("fd00:42::42", .platform),
            ("ff02::1", .privateNetwork),
        ] as [(String, HostScope)])
    func `an address has one scope, as text and as the kernel has it`(text: String, scope: HostScope) throws {
        #expect(HostScope(text) == scope)
        if text.contains(":") {
            var address = sockaddr_in6()
            address.sin6_family = sa_family_t(AF_INET6)
            #expect(inet_pton(AF_INET6, text, &address.sin6_addr) == 1)
            #expect(withUnsafeBytes(of: address) { $0.baseAddress.flatMap { HostScope(socketAddress: $0) } } == scope)
        } else {
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            #expect(inet_pton(AF_INET, text, &address.sin_addr) == 1)
            #expect(withUnsafeBytes(of: address) { $0.baseAddress.flatMap { HostScope(socketAddress: $0) } } == scope)
        }
    }

    @Test func `a Unix socket has none, and what nobody knows is the closest`() {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        #expect(withUnsafeBytes(of: address) { $0.baseAddress.flatMap { HostScope(socketAddress: $0) } } == nil)
        address.sun_family = sa_family_t(AF_NETLINK)
        #expect(withUnsafeBytes(of: address) { $0.baseAddress.flatMap { HostScope(socketAddress: $0) } } == .loopback)
    }
}
