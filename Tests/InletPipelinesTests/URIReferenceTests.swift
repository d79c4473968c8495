import Foundation
import InletCore
import InletTestSupport
import SystemPackage
import Testing

@testable import InletPipelines

/// Where relative redirects lead.
@Suite(.timeLimit(.minutes(8))) struct URIReferenceTests {
    /// RFC 3986, sections 5.4.1 and 5.4.2; the fragments, which are never sent, left out of the results.
    private static let examples = [
        ("g:h", "g:h"), ("g", "http://a/b/c/g"), ("./g", "http://a/b/c/g"), ("g/", "http://a/b/c/g/"),
        ("/g", "http://a/g"), ("//g", "http://g"), ("?y", "http://a/b/c/d;p?y"), ("g?y", "http://a/b/c/g?y"),
        ("#s", "http://a/b/c/d;p?q"), ("g#s", "http://a/b/c/g"), ("g?y#s", "http://a/b/c/g?y"),
        (";x", "http://a/b/c/;x"), ("g;x", "http://a/b/c/g;x"), ("g;x?y#s", "http://a/b/c/g;x?y"),
        ("", "http://a/b/c/d;p?q"), (".", "http://a/b/c/"), ("./", "http://a/b/c/"), ("..", "http://a/b/"),
        ("../", "http://a/b/"), ("../g", "http://a/b/g"), ("../..", "http://a/"), ("../../", "http://a/"),
        ("../../g", "http://a/g"), ("../../../g", "http://a/g"), ("../../../../g", "http://a/g"),
        ("/./g", "http://a/g"), ("/../g", "http://a/g"), ("g.", "http://a/b/c/g."), (".g", "http://a/b/c/.g"),
        ("g..", "http://a/b/c/g.."), ("..g", "http://a/b/c/..g"), ("./../g", "http://a/b/g"),
        ("./g/.", "http://a/b/c/g/"), ("g/./h", "http://a/b/c/g/h"), ("g/../h", "http://a/b/c/h"),
        ("g;x=1/./y", "http://a/b/c/g;x=1/y"), ("g;x=1/../y", "http://a/b/c/y"),
        ("g?y/./x", "http://a/b/c/g?y/./x"), ("g?y/../x", "http://a/b/c/g?y/../x"),
        ("g#s/../x", "http://a/b/c/g"), ("http:g", "http:g"),
    ]

    @Test func `a reference means what RFC 3986 says it means`() {
        for (reference, meaning) in Self.examples {
            #expect(URIReference.resolved(reference, at: "http://a/b/c/d;p?q") == meaning, "'\(reference)'")
        }
        #expect(URIReference.resolved("g", at: "http://a") == "http://a/g")
        // A colon behind a slash or a question mark begins no address.
        #expect(URIReference.resolved("g/a:b", at: "http://a/b") == "http://a/g/a:b")
        #expect(URIReference.resolved("?at=10:30", at: "http://a/b") == "http://a/b?at=10:30")
    }

    @Test func `a file behind a redirect without a leading slash is fetched`() async throws {
        let server = try ScriptedServer { connection in
            while true {
                let request = try connection.readRequest()
                if request.line.contains(" /shop/latest ") {
                    try connection.answer("302 Found", headers: "Location: v2/model.glb?id=7\r\n", "")
                } else if request.line.contains(" /shop/v2/model.glb?id=7 ") {
                    let body = request.line.hasPrefix("HEAD") ? "" : "abc"
                    try connection.answer("200 OK", headers: "ETag: \"v\"\r\n", body)
                } else {
                    try connection.answer("404 Not Found", "no")
                }
            }
        }
        let directory = try TemporaryDirectory()
        let target = directory.path.appending("model.glb")
        let web = WebFetch(userAgent: "inlet-tests/1")
        defer { web.shutdown() }
        let fetched = try await web.fetch("http://127.0.0.1:\(server.port)/shop/latest", FetchOrder(file: target))
        #expect(fetched.size == 3)
        #expect(try String(contentsOfFile: target.string, encoding: .utf8) == "abc")
    }

    @Test(arguments: ["https://169.254.169.254/latest/meta-data", "https://168.63.129.16/p", "https://cdn.test:25/p"])
    func `a redirect to where a cloud keeps its credentials, or to another protocol's port, is refused`(
        target: String
    ) async throws {
        let server = try ScriptedServer { connection in
            _ = try connection.readRequest()
            try connection.answer("302 Found", headers: "Location: \(target)\r\n", "")
        }
        let directory = try TemporaryDirectory()
        let web = WebFetch(userAgent: "inlet-tests/1")
        defer { web.shutdown() }
        let error = await #expect(throws: DeliveryError.self) {
            try await web.fetch(
                "http://127.0.0.1:\(server.port)/p", FetchOrder(file: directory.path.appending("file")))
        }
        #expect(error?.code == .forbiddenURL && error?.verdict == .giveUp)
    }
}
