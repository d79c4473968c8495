import HTTPTypes
import InletCore
import Testing

@testable import InletDashboard

/// What may come in, by a request's head alone.
@Suite struct RequestFilterTests {
    private static func gate(_ host: String, hosts: [String] = []) -> RequestFilter {
        RequestFilter(DashboardSettings(listen: ListenAddress(host: host, port: 8844), hosts: hosts))
    }

    private static func head(
        _ method: HTTPRequest.Method = .get, host: String? = nil, _ fields: HTTPFields = [:]
    ) -> HTTPRequest {
        HTTPRequest(method: method, scheme: "http", authority: host, path: "/", headerFields: fields)
    }

    @Test(
        arguments: [
            ("127.0.0.1", "127.0.0.1:8844", true), ("127.0.0.1", "localhost", true),
            ("127.0.0.1", "LOCALHOST:8844", true),
            ("127.0.0.1", "[::1]:8844", true), ("127.0.0.1", "127.0.0.2", true), ("127.0.0.1", "evil.example", false),
            ("127.0.0.1", "evil.example:8844", false), ("127.0.0.1", "127.0.0.1.evil.example", false),
            ("127.0.0.1", "192.168.1.5:8844", false), ("127.0.0.1", "", false), ("127.0.0.1", nil, false),
            ("127.0.0.1", "inlet.example", true), ("127.0.0.1", "Inlet.Example:443", true),
            ("127.0.0.1", "nas.lan:8844", true), ("127.0.0.1", "nas.lan:80", false),
            ("127.0.0.1", "localhost.evil", false),
            ("192.168.1.5", "192.168.1.5:8844", true), ("192.168.1.5", "192.168.1.6:8844", false),
            ("0.0.0.0", "192.168.1.5:8844", true), ("::", "[fe80::1]:8844", true), ("0.0.0.0", "evil.example", false),
            ("nas.local", "nas.local:8844", true),
        ] as [(String, String?, Bool)])
    func `a name that is not ours is not answered`(listen: String, host: String?, isFine: Bool) {
        let gate = Self.gate(listen, hosts: ["inlet.example", "nas.lan:8844"])
        let fault = gate.hostFault(Self.head(host: host))
        #expect((fault == nil) == isFine, "\(fault as Any)")
        #expect(fault == nil || fault?.status == 421 && fault?.code == "host")
    }

    private static let fine = head(
        .post, host: "127.0.0.1:8844",
        [
            .origin: "http://127.0.0.1:8844", .fetchSite: "same-origin", .mark: "1",
            .contentType: "application/json; charset=utf-8",
        ])

    private static let changes: [(change: @Sendable (inout HTTPRequest) -> Void, isFine: Bool)] = [
        ({ _ in }, true),
        ({ $0.headerFields[.contentType] = "application/x-www-form-urlencoded" }, false),
        ({ $0.headerFields[.contentType] = "text/plain" }, false),
        ({ $0.headerFields[.contentType] = nil }, false),
        ({ $0.headerFields[.mark] = nil }, false),
        ({ $0.headerFields[.mark] = "0" }, false),
        ({ ($0.headerFields[.mark], $0.headerFields[.authorization]) = (nil, "Bearer x") }, true),
        ({ ($0.headerFields[.mark], $0.headerFields[.authorization]) = (nil, "Basic x") }, false),
        ({ $0.headerFields[.origin] = nil }, true),
        ({ $0.headerFields[.origin] = "null" }, false),
        ({ $0.headerFields[.origin] = "http://evil.example" }, false),
        ({ $0.headerFields[.origin] = "http://127.0.0.1:9999" }, false),
        ({ $0.headerFields[.origin] = "https://127.0.0.1:8844" }, true),
        ({ $0.headerFields[.fetchSite] = "cross-site" }, false),
        ({ $0.headerFields[.fetchSite] = "same-site" }, false),
        ({ $0.headerFields[.fetchSite] = "none" }, true),
        ({ $0.headerFields[.fetchSite] = nil }, true),
        (
            {
                ($0.method, $0.headerFields[.mark], $0.headerFields[.origin], $0.headerFields[.contentType]) = (
                    .get, nil, "http://evil.example", nil
                )
            }, true
        ),
        ({ ($0.method, $0.headerFields[.mark]) = (.delete, nil) }, false),
        ({ ($0.method, $0.headerFields[.fetchSite]) = (.get, "cross-site") }, false),
        ({ ($0.method, $0.headerFields[.fetchSite]) = (.head, "same-site") }, false),
        ({ ($0.method, $0.headerFields[.fetchSite]) = (.get, "none") }, true),
    ]

    @Test(arguments: changes.indices)
    func `what changes something comes from our own page or from a program`(number: Int) {
        var head = Self.fine
        Self.changes[number].change(&head)
        let fault = Self.gate("127.0.0.1").crossFault(head)
        #expect((fault == nil) == Self.changes[number].isFine, "\(head) \(fault as Any)")
        #expect(fault == nil || fault?.status == 403 && fault?.code == "csrf")
    }

    @Test(
        arguments: [
            (.none, .nothing, nil), (.none, .read, "login_needed"), (.none, .full, "login_needed"), (.read, .read, nil),
            (.read, .full, "read_only"), (.full, .read, nil), (.full, .full, nil), (.full, .socket, "not_found"),
            (.none, .socket, "not_found"), (.none, .cards, "login_needed"), (.kiosk, .cards, nil),
            (.kiosk, .nothing, nil), (.kiosk, .read, "kiosk"), (.kiosk, .full, "kiosk"), (.kiosk, .socket, "not_found"),
            (.read, .cards, nil), (.full, .cards, nil),
        ] as [(Access, Endpoint.Need, String?)])
    func `each role has what it may have`(access: Access, need: Endpoint.Need, code: String?) {
        #expect(RequestFilter.accessFault(access, need)?.code == code)
    }

    @Test(
        arguments: [
            "127.0.0.1, evil.example", "127.0.0.1:8844, evil.example", "127.0.0.1:8844,evil.example", "localhost:x",
            "localhost:80@evil.example", "localhost@evil.example", "[::1]evil.example", "[::1]:80,evil.example", "[::1",
            "localhost:65536", "localhost:+80", "localhost:80:80", "localhost evil.example", "localhost:8844/evil",
        ])
    func `a request names one host`(host: String) {
        let gate = Self.gate("127.0.0.1", hosts: [host])
        #expect(gate.hostFault(Self.head(host: host))?.status == 400)
        #expect(gate.hostFault(Self.head(host: "127.0.0.1", [.host: "127.0.0.1"]))?.status == 400)
    }

    @Test(arguments: [("localhost", "127.0.0.1"), ("LOCALHOST", "127.0.0.1"), ("::1", "::1"), ("nas.lan", "nas.lan")])
    func `localhost is this machine, whatever else the name is given to`(host: String, bound: String) {
        #expect(ListenAddress(host: host, port: 1).bindHost == bound)
    }

    @Test func `a token is read out of its header`() {
        let tokens = ["Bearer abc", "bearer  abc ", "bearer \tabc", "Basic abc"].map {
            Self.head(.get, [.authorization: $0]).bearer
        }
        #expect(tokens == ["abc", "abc", "abc", nil] && Self.head().bearer == nil)
    }
}
