@testable import InletDashboard

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
