import InletTestSupport

@testable import InletDashboard

/// A request that nobody has good reasons to send, and what may be answered to it.
struct HostileRequest: Sendable {
    var bytes: [UInt8]
    /// Where no secret is asked for.
    var statuses: Set<Int>
    /// Whether it may have the same answer without a secret: it asks for nothing that needs one.
    var isPublic = false

    init(_ text: String, _ statuses: Set<Int>, isPublic: Bool = false) {
        (bytes, self.statuses, self.isPublic) = (Array(text.utf8), statuses, isPublic)
    }

    init(bytes: [UInt8], _ statuses: Set<Int>) { (self.bytes, self.statuses) = (bytes, statuses) }
}

/// The kinds of attack that scanners of web servers try (OWASP ZAP's list), and what breaks HTTP and JSON.
enum HostileRequests {
    static let all = methods + paths + targets + heads + frames + orders

    static let host = "Host: 127.0.0.1\r\n"
    static let marks = host + "Content-Type: application/json\r\nX-Inlet: 1\r\n"

    private static func get(_ path: String, _ statuses: Set<Int>, isPublic: Bool = false) -> HostileRequest {
        HostileRequest("GET \(path) HTTP/1.1\r\n\(host)\r\n", statuses, isPublic: isPublic)
    }

    private static let methods =
        ["OPTIONS", "TRACE", "PUT", "PATCH", "DELETE", "PROPFIND", "MKCOL", "LOCK", "SEARCH", "CONNECT"].flatMap {
            [
                HostileRequest("\($0) /api/v1/status HTTP/1.1\r\n\(marks)\r\n", [405]),
                HostileRequest("\($0) /api/v1/status HTTP/1.1\r\n\(host)\r\n", [403]),
                HostileRequest("\($0) / HTTP/1.1\r\n\(host)\r\n", [405], isPublic: true),
            ]
        }
        + ["get", "FOO", "GETT", "G\u{0}T", ""].map { HostileRequest("\($0) / HTTP/1.1\r\n\(host)\r\n", [400]) }
        + ["X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"].map {
            HostileRequest("GET /api/v1/pause HTTP/1.1\r\n\(marks)\($0): POST\r\n\r\n", [405])
        } + [HostileRequest("CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n", [421])]

    private static let paths: [HostileRequest] =
        [
            "/assets/../", "/assets/../../etc/passwd", "/assets/%2e%2e/", "/assets/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
            "/assets/..%252f..%252fetc/passwd", "/assets/..;/", "/..\\..\\etc\\passwd", "/%5c..%5c..%5cetc%5cpasswd",
            "/assets/%c0%ae%c0%ae/", "/%00", "/assets/app.js%00.txt", "/assets//etc/passwd", "//etc/passwd",
            "/api/v1/jobs/%00", "/api/v1/jobs/%zz", "/api/v1/jobs/1%00", "/api/v1/jobs/../status",
            "/api/v1/jobs/99999999999999999999", "/api/v1/jobs/-1", "/api/v1/jobs/0x1", "/api/v1/jobs/1.5",
            "/api/v1/jobs/%31%0d%0aSet-Cookie:%20a=b", "/api/v1/batches/..%2f..%2fetc/offload", "/api/v1/%61dmin",
            "/.git/config", "/.env", "/server-status", "/etc/passwd", "/cgi-bin/sh", "/index.php?page=../../etc/passwd",
            "/api/v1/status;x=y", "/api/v1/status%20", "/api/v1/tokens/disk", "*", "/<script>alert(1)</script>",
        ].map { get($0, [400, 404, 405]) }
        + [
            "/api/v1/jobs?q=%0d%0aSet-Cookie:%20a=b", "/api/v1/jobs?q=%ff%fe%00", "/api/v1/jobs?",
            "/api/v1/jobs?q='%20OR%201=1--", "/api/v1/jobs?q=%25%25%25",
            "/api/v1/jobs?destination=';DROP%20TABLE%20file;--", "/api/v1/jobs?path=**/**/**/**/**/*a*b*c*d*",
        ].map { get($0, [200]) }
        + [
            "/api/v1/jobs?before=99999999999999999999", "/api/v1/jobs?state=%00", "/api/v1/jobs?path=%5b%5b%5b",
            "/api/v1/jobs?state=" + String(repeating: "pending,", count: 900), "/api/v1/log?level=%27",
            "/api/v1/jobs?limit=-5", "/api/v1/jobs?limit=zz", "/api/v1/jobs?limit=1&limit=2", "/api/v1/jobs?=&&&=",
            "/api/v1/jobs?%", "/api/v1/jobs?limit=10001", "/api/v1/jobs?state=",
            "/api/v1/jobs?state=failed&state=pending", "/api/v1/status?x=y", "/readyz?dry_run=1", "/metrics?x",
            "/api/v1/jobs?label=a", "/api/v1/jobs?batch=1e9", "/api/v1/jobs?q=" + String(repeating: "a", count: 1001),
        ].map { get($0, [400]) }
        + ["api", "/\u{1}", "/a b", "/?\u{7f}\u{1}"].map { get($0, [400]) }
        + [
            get("/" + String(repeating: "a", count: 9000), [413], isPublic: true),
            get("/" + String(repeating: "a", count: 30_000), [400]),
            get("/healthz?" + String(repeating: "a", count: 9000), [413], isPublic: true),
        ]

    /// Whole addresses in the place of paths (RFC 9112, 3.2.2).
    private static let targets: [HostileRequest] =
        [
            "http://evil.example/api/v1/status", "http://evil.example:80/", "HTTP://EVIL.EXAMPLE/api/v1/status",
            "http://127.0.0.1@evil.example/api/v1/status", "http://evil.example@127.0.0.1/api/v1/status",
            "http://evil.example/api/v1/session", "http://evil.example?http://127.0.0.1/", "http:///api/v1/status",
            "http://127.0.0.1:8844/api/v1/status",
        ].map { get($0, [400]) }
        + [
            get("http://127.0.0.1/api/v1/status", [200]), get("HTTP://127.0.0.1/api/v1/jobs?limit=1", [200]),
            get("http://127.0.0.1/api/v1/../nothing", [404]),
            HostileRequest("GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n", [421]),
            HostileRequest("POST http://evil.example/api/v1/pause HTTP/1.1\r\n\(marks)\r\n", [400]),
        ]

    private static func asked(_ lines: String, _ statuses: Set<Int>, version: String = "1.1") -> HostileRequest {
        HostileRequest("GET /api/v1/status HTTP/\(version)\r\n\(lines)\r\n", statuses)
    }

    private static let heads: [HostileRequest] =
        [
            "\(host)Host: evil.example\r\n", "Host: 127.0.0.1, evil.example\r\nHost: 127.0.0.1\r\n",
            "Host: 127.0.0.1:8844, evil.example\r\n", "Host: localhost:80@evil.example\r\n",
            "Host: 127.0.0.1@evil.example\r\n",
            "\(host)X-A: a\u{0}b\r\n", "\(host)X-A: a\rb\r\n", "\(host)X-A: a\r\n folded\r\n", "\(host)X A: b\r\n",
            "\(host)X-A : b\r\n", "\(host)no colon\r\n", "\(host): no name\r\n",
            "\(host)X-Long: \(String(repeating: "y", count: 20_000))\r\n",
            host + (0..<101).map { "X-\($0): y\r\n" }.joined(),
        ].map { asked($0, [400]) }
        + [
            "", "Host:\r\n", "Host: evil.example\r\n", "Host: 127.0.0.1.evil.example\r\n",
            "Host: evil.example:8844\r\n",
            "Host: 2130706433\r\n", "Host: 0x7f.1\r\n",
            "Host: [::ffff:1.2.3.4]\r\n",
            "Host: localhost.evil.example\r\n", "Host: ../../etc\r\n",
        ].map { asked($0, [421]) }
        + [asked(host, [400], version: "3.0"), asked(host, [400], version: "x"), asked(host, [400], version: "1.9")]
        + [
            "Sec-Fetch-Site: cross-site\r\n", "Sec-Fetch-Site: same-site\r\n", "Sec-Fetch-Site: x\r\n",
            "X-Forwarded-For: 127.0.0.1\r\n", "Via: 1.1 evil\r\n", "Forwarded: for=127.0.0.1\r\n",
        ].map { asked(host + $0, [403]) }
        + [
            "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: AAAA\r\n", "Authorization: Bearer \r\n",
            "Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABk\r\n",
            "Range: bytes=\(String(repeating: "0-1,", count: 1000))2-3\r\n", "Cookie: inlet_session=' OR 1=1\r\n",
            "Accept-Encoding: \(String(repeating: "gzip,", count: 1000))\r\n", "X-Original-URL: /api/v1/pause\r\n",
            "Cookie: inlet_session=;inlet_session=\(String(repeating: "a", count: 5000))\r\n", "Expect: 200-ok\r\n",
        ].map { asked(host + $0, [200]) }

    private static func frame(_ fields: String, _ rest: String, _ statuses: Set<Int> = [400]) -> HostileRequest {
        HostileRequest("POST /api/v1/limits HTTP/1.1\r\n\(marks)\(fields)\r\n\(rest)", statuses)
    }

    private static let frames: [HostileRequest] =
        [
            "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
            "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n",
            "Transfer-Encoding : chunked\r\n", "Content-Length: 2\r\nContent-Length: 4\r\n",
        ].map { frame($0, "0\r\n\r\nGET /smuggled HTTP/1.1\r\n\(host)\r\n") }
        + ["2, 2", "-2", "+2", "0x2", "2 2", "99999999999999999999999", "2\u{0}", "two"].map {
            frame("Content-Length: \($0)\r\n", "{}")
        }
        + ["xchunked", "gzip", "identity", "chunked, chunked", "\"chunked\""].map {
            frame("Transfer-Encoding: \($0)\r\n", "zz\r\n{}\r\n0\r\n\r\n")
        }
        + [
            "zz\r\n{}\r\n0\r\n\r\n", "ffffffffffffffffff\r\n{}", "-2\r\n{}\r\n0\r\n\r\n", "0x2\r\n{}\r\n0\r\n\r\n",
            "2\r\n{}}}\r\n0\r\n\r\n", "2\n{}\n0\n\n", "\r\n2\r\n{}", "2 2\r\n{}\r\n0\r\n\r\n",
        ].map { frame("Transfer-Encoding: chunked\r\n", $0) }
        + [
            HostileRequest("GET /\r\n\r\n", [400]), HostileRequest("\r\n\r\n\r\nX\r\n\r\n", [400]),
            HostileRequest("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", [400]),
            HostileRequest(bytes: [0x16, 3, 1, 2, 0, 1, 0, 1, 0xFC, 3, 3, 0x0D, 0x0A, 0x0D, 0x0A], [400]),
            HostileRequest(
                bytes: Array("GET /".utf8) + [0xFF, 0xFE] + Array(" HTTP/1.1\r\n\(host)\r\n".utf8), [400, 404]),
        ]
}

/// Bodies that are no orders, or odd ones.
extension HostileRequests {
    static let orders =
        notJSON.flatMap { body in ["queue/list", "limits", "route", "log/level"].map { post($0, body, [400]) } }
        + odd.map { post($0, Array($1.utf8), $2) }

    private static func post(_ path: String, _ body: [UInt8], _ statuses: Set<Int>) -> HostileRequest {
        let head = "POST /api/v1/\(path) HTTP/1.1\r\n\(marks)Content-Length: \(body.count)\r\n\r\n"
        return HostileRequest(bytes: Array(head.utf8) + body, statuses)
    }

    private static let notJSON: [[UInt8]] =
        [
            " ", "[", "{", "null", "[]", "\"x\"", "1e999", "NaN", "{,}", "{} {}", "{/**/}", "{'a': 1}", "{\"a\": 01}",
            "{\"limit\": \"\\ud800\"}", "{\"path\": \"\\x\"}",
            "<?xml version=\"1.0\"?><!DOCTYPE a [<!ENTITY b SYSTEM \"file:///etc/passwd\">]><a>&b;</a>",
            "a=b&c=d", "limit: 5", String(repeating: "[", count: 10_000),
            String(repeating: "[", count: 10_000) + String(repeating: "]", count: 10_000),
            String(repeating: "{\"a\":", count: 10_000), "{\"a\": " + String(repeating: "9", count: 5000),
        ].map { Array($0.utf8) }
        + [
            [0x7B, 0x00, 0x7D], [0xFF, 0xFE, 0xFD], [0xC0, 0xAF],
            Array("{\"limit\": \"".utf8) + [0xFF, 0xC0, 0x80] + Array("\"}".utf8),
        ]

    private static let odd: [(String, String, Set<Int>)] = [
        ("queue/list", "{\"states\": [\(repeated("\"pending\"", 9000))]}", [400]),
        ("queue/list", "{\"states\": [\"pending\\u0000\"]}", [400]), ("queue/list", "{\"jobs\": [1e999]}", [400]),
        ("queue/list", "{\"jobs\": [99999999999999999999]}", [400]), ("queue/list", "{\"jobs\": [1.5]}", [400]),
        ("queue/list", "{\"jobs\": [\(repeated("1", 10_001))]}", [400]), ("queue/list", "{\"jobs\": {}}", [400]),
        ("queue/list", "{\"__proto__\": {}}", [400]), ("queue/list", "{\"labels\": {\"a\": null}}", [400]),
        ("queue/list", "{\"older_ms\": -1}", [400]), ("queue/list", "{\"path\": \"[\"}", [400]),
        ("queue/list", "{\"limit\": \(Int64.min), \"older_ms\": \(Int64.max)}", [200]),
        ("queue/list", "{\"limit\": 1, \"limit\": 2}", [200, 400]),
        ("queue/list", "{\"jobs\": [\(Int64.min), \(Int64.max), 0]}", [200]),
        ("queue/list", "{\"destination\": \"' OR 1=1 --\", \"code\": \"\\u0000\"}", [200]),
        ("queue/list", "{\"path\": \"\(String(repeating: "*", count: 60_000))\"}", [200, 400]),
        ("queue/cancel?dry_run=1&dry_run=0", "{\"jobs\": []}", [400]), ("queue/cancel", "{\"JOBS\": []}", [400]),
        ("limits", "{\"limit\": 5}", [400]), ("limits", "{\"limit\": \"5MiB\\u0000\"}", [200]),
        ("limits", "{\"limit\": \"99999999999999999999999TiB\"}", [200]),
        ("route", "{\"path\": \"\\u0000\"}", [400]), ("route", "{\"path\": \"a\\u0000b\"}", [400]),
        ("route", "{\"path\": \"\(String(repeating: "x", count: 256))\"}", [400]),
        ("route", "{\"path\": \"/\(String(repeating: "x/", count: 2100))\"}", [400]),
        ("route", "{\"path\": \"drop/../../../etc/shadow\"}", [200]), ("route", "{\"path\": \"/etc/shadow\"}", [200]),
        ("route", "{\"path\": \"/a\", \"size\": \(Int64.min)}", [400]),
        ("route", "{\"path\": \"/a\", \"size\": \(Int64.max)}", [200]),
        ("route", "{\"path\": \"a\", \"root\": \"\\u0000\"}", [200, 400]),
        ("roots/resume", "{\"text\": \"/proc/1/root\"}", [200]), ("roots/resume", "{\"path\": [0]}", [400]),
        ("roots/resume", "{\"path\": [256]}", [400]), ("roots/resume", "{\"path\": []}", [400]),
        ("pause?destination=../../etc", "{}", [200]), ("pause?destination=%00", "{}", [200]),
        ("jobs/1/undo/gighive", "{}", [404]), ("send", "{\"paths\": [\"L2V0Yy9zaGFkb3c=\"]}", [404]),
        ("queue/backup", "{}", [404]), ("tokens/disk", "{}", [404]), ("follow", "[1]", [404]),
        ("contents", "{}", [404]), ("proofs", "{}", [404]), ("log/level", "{\"level\": \"\\u0000\"}", [200]),
    ]

    private static func repeated(_ text: String, _ count: Int) -> String {
        Array(repeating: text, count: count).joined(separator: ",")
    }
}
