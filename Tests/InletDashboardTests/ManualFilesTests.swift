import Foundation
import InletCore
import InletTestSupport
import SystemPackage
import Testing

@testable import InletDashboard

/// The manual below `/manual/`, from a real folder and over real connections.
@Suite(.serialized) struct ManualFilesTests {
    private static let policy =
        "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; "
        + "frame-ancestors 'none'"

    /// A folder with a manual, and a secret beside it.
    private static func folder() throws -> (place: TemporaryDirectory, manual: FilePath) {
        let place = try TemporaryDirectory()
        let manual = place.path.appending("manual")
        try FileManager.default.createDirectory(
            atPath: manual.appending("inner").string, withIntermediateDirectories: true)
        let files = [
            "manual/index.html": "<title>Inlet</title>", "manual/Cards.html": "<title>Cards</title>",
            "manual/style.css": "p { color: red }", "manual/picture.svg": "<svg/>", "manual/notes.txt": "secret",
            "manual/.hidden.html": "secret", "manual/inner/page.html": "secret", "secret.html": "secret",
        ]
        for (name, text) in files {
            try text.write(toFile: place.path.pushing(FilePath(name)).string, atomically: true, encoding: .utf8)
        }
        try FileManager.default.createSymbolicLink(
            atPath: manual.appending("link.html").string, withDestinationPath: "../secret.html")
        try FileManager.default.createDirectory(
            atPath: manual.appending("folder.html").string, withIntermediateDirectories: false)
        return (place, manual)
    }

    @Test func `its files have their types and a policy of their own, for everybody`() async throws {
        let (place, manual) = try Self.folder()
        defer { withExtendedLifetime(place) {} }
        try await DashboardScene(token: "full-token", manual: [manual]).serving { port in
            let client = try RawClient(port: port)
            for (path, type, text) in [
                ("", "text/html; charset=utf-8", "<title>Inlet</title>"),
                ("index.html", "text/html; charset=utf-8", "<title>Inlet</title>"),
                ("Cards.html", "text/html; charset=utf-8", "<title>Cards</title>"),
                ("style.css", "text/css; charset=utf-8", "p { color: red }"),
                ("picture.svg", "image/svg+xml", "<svg/>"),
            ] {
                let answer = try await client.request("GET", "/manual/\(path)")
                #expect(answer.status == 200 && answer.body == text, "\(path)")
                #expect(answer.headers["content-type"] == type, "\(path)")
                #expect(answer.headers["content-security-policy"] == Self.policy, "\(path)")
                #expect(answer.headers["x-content-type-options"] == "nosniff", "\(path)")
            }
            let page = try await client.request("GET", "/")
            #expect(page.headers["content-security-policy"]?.contains("script-src 'self'") == true)
            let moved = try await client.request("GET", "/manual")
            #expect(moved.status == 308 && moved.headers["location"] == "/manual/")
        }
    }

    @Test func `a file that has not changed is not sent again, and nothing but reading is allowed`() async throws {
        let (place, manual) = try Self.folder()
        defer { withExtendedLifetime(place) {} }
        try await DashboardScene(manual: [manual]).serving { port in
            let client = try RawClient(port: port)
            let page = try await client.request("GET", "/manual/Cards.html")
            let tag = try #require(page.headers["etag"])
            let again = try await client.request("GET", "/manual/Cards.html", headers: ["If-None-Match": tag])
            #expect(again.status == 304 && again.body.isEmpty)
            try "changed".write(toFile: manual.appending("Cards.html").string, atomically: true, encoding: .utf8)
            let fresh = try await client.request("GET", "/manual/Cards.html", headers: ["If-None-Match": tag])
            #expect(fresh.status == 200 && fresh.body == "changed")
            let post = try await client.request(
                "POST", "/manual/Cards.html", headers: DashboardScene.marks, body: "{}")
            #expect(post.status == 405 && post.headers["allow"] == "GET")
        }
    }

    @Test(arguments: [
        "../secret.html", "%2e%2e/secret.html", "..%2fsecret.html", "inner/page.html", "inner/../index.html",
        "./index.html",
        "/etc/passwd", "//secret.html", "link.html", "folder.html", ".hidden.html", "notes.txt", "index.html%00.css",
        "index.html/", "index", "INDEX.HTML", "inner", "x.html",
    ])
    func `no path leads out of the folder, through a link, or to another kind of file`(path: String) async throws {
        let (place, manual) = try Self.folder()
        defer { withExtendedLifetime(place) {} }
        try await DashboardScene(manual: [manual]).serving { port in
            let answer = try await RawClient(port: port).request("GET", "/manual/" + path)
            #expect(answer.status == 404, "\(answer.status)")
            #expect(!answer.body.contains("secret"))
        }
    }

    @Test func `a file that is too large is not served`() async throws {
        let (place, manual) = try Self.folder()
        defer { withExtendedLifetime(place) {} }
        let large = Data(repeating: 0x78, count: ManualFiles.largest + 1)
        try large.write(to: URL(fileURLWithPath: manual.appending("large.html").string))
        try await DashboardScene(manual: [manual]).serving { port in
            let client = try RawClient(port: port)
            #expect(try await client.request("GET", "/manual/large.html").status == 404)
        }
    }

    @Test func `the first folder that is there counts, and without one the answer says how to install it`() async throws
    {
        let (place, manual) = try Self.folder()
        let nowhere = place.path.appending("nowhere")
        try await DashboardScene(manual: [nowhere, manual]).serving { port in
            let answer = try await RawClient(port: port).request("GET", "/manual/")
            #expect(answer.status == 200)
        }
        try await DashboardScene(manual: [nowhere]).serving { port in
            let answer = try await RawClient(port: port).request("GET", "/manual/")
            #expect(answer.status == 404 && answer.body.contains("Inlet's Debian package"))
            #expect(answer.headers["content-security-policy"] == Self.policy)
        }
    }
}
