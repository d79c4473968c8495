import Foundation
import InletTestSupport
import SystemPackage
import Testing

/// A canary in every place that takes a credential, and no trace of it in anything that Inlet writes or says.
@Suite(.serialized, .timeLimit(.minutes(8))) struct CanaryTests {
    /// Places whose credential goes another way than the one that the configuration below has for their section: a proxy
    /// has its login in its address or beside it.
    private static let elsewhere: Set = [
        "r2.proxy.url", "s3.proxy.url", "gighive.proxy.url", "vopi.proxy.url", "roboscope.proxy.url",
        "top.proxy.password",
    ]

    private static let markers = Data(
        ##"{"markers":[{"label":"a","p1":[0,0,0],"p2":[1,0,0],"p3":[1,1,0],"p4":[0,1,0],"color":"#FF8800"}]}"##.utf8)

    @Test func `every place that takes a credential has a canary in it`() throws {
        let place = try CanaryPlace()
        let text = String(decoding: try place.place.content(place.place.configuration), as: UTF8.self)
        #expect(CanaryPlace.places.count >= 20)
        for name in CanaryPlace.places.subtracting(Self.elsewhere) {
            let variable = "S_" + name.replacing(".", with: "_").uppercased()
            #expect(text.contains("${env:\(variable)}"), "no canary in \(name): give it one in CanaryPlace")
        }
        #expect(Self.elsewhere.isSubset(of: CanaryPlace.places))
    }

    @Test func `no credential shows anywhere while servers repeat them all`() async throws {
        let scene = try CanaryPlace()
        let place = scene.place
        let environment = scene.environment
        let agent = try place.start("run", environment: environment)
        let log = place.folder.path.appending("inlet.log")
        func logged(_ text: String) -> Bool { (try? place.content(log))?.range(of: Data(text.utf8)) != nil }
        try await agent.wait("it is ready") { logged("agent.ready") }
        for name in CanaryPlace.destinations {
            let isList = name == "spaces"
            try place.put(
                FilePath("\(name)/\(isList ? "markers.json" : "clip.mp4")"), isList ? Self.markers : bytes(2000))
        }
        try await agent.wait("every destination has refused something") {
            let lines = String(decoding: try place.content(log), as: UTF8.self).split(separator: "\n")
            let told = lines.filter { $0.contains("job.failed") || $0.contains("job.retry") || $0.contains(".down") }
            return CanaryPlace.destinations.allSatisfy { name in told.contains { $0.contains("\"\(name)\"") } }
        }
        try await agent.wait("a reason is beside its file") {
            Place.files(below: place.drop).keys.contains { $0.hasSuffix("reason.json") }
        }
        var texts = try await Self.commands(place, environment)
        texts.merge(try await Self.answers(scene)) { $1 }
        texts["command line"] = String(
            decoding: try place.content(FilePath("/proc/\(agent.id)/cmdline")), as: UTF8.self)
        // While it runs: what the journal has not yet taken over is in its log.
        Self.search(scene, files: Place.files(below: place.folder.path))
        try await agent.stop()
        texts["output"] = agent.output
        texts["errors"] = agent.errors
        #expect(try String(decoding: place.content(log), as: UTF8.self).contains("***"))
        for (what, text) in texts { Self.search(scene, Data(text.utf8), what) }
        Self.search(scene, files: Place.files(below: place.folder.path))
    }

    private static func search(_ scene: CanaryPlace, _ content: Data, _ what: String) {
        for (name, canary) in scene.canaries {
            let trace = canary.trace(in: content)
            #expect(trace == nil, "\(name) in \(what): \(trace ?? "")")
        }
    }

    /// Everything below the folder but the first login, which is the user's own, and renewed ones, for which there is a folder.
    private static func search(_ scene: CanaryPlace, files: [String: Data]) {
        #expect(files.keys.contains("state/journal.sqlite"), "\(files.keys.sorted())")
        for (name, content) in files where name != "login" {
            guard name.hasPrefix("state/tokens/") else {
                search(scene, content, name)
                continue
            }
            let path = scene.place.folder.path.string + "/" + name
            let mode = try? FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
            #expect(mode == 0o600, "\(name)")
        }
    }

    private static func commands(_ place: Place, _ environment: [String: String]) async throws -> [String: String] {
        var texts: [String: String] = [:]
        for command in [
            ["config", "show"], ["config", "diff"], ["check"], ["check", "--json"],
            ["route", place.drop.appending("spiral").appending("x.mp4").string], ["status"], ["status", "--json"],
            ["queue", "list"], ["queue", "list", "--json"], ["queue", "show", "1"], ["queue", "show", "2", "--json"],
            ["receipts"], ["reload"], ["run", "--dry-run"], ["verify", "--all"], ["notify", "test", "ops"],
            ["queue", "backup"], ["gighive", "delete", "1"], ["limit"], ["batch", "list"],
        ] {
            texts["inlet " + command.joined(separator: " ")] = try await place.said(command, environment)
        }
        for command in [
            ["send", place.configuration.string, "--to", "spiral"],
            ["storage", "list", "archive"], ["fetch", "film.mov", "--from", "archive", "--output", "fetched"],
            ["vopi", "jobs", "--destination", "products"], ["vopi", "jobs", "--destination", "movies"],
            ["roboscope", "spaces", "list", "--destination", "spaces"],
        ] {
            // One answer in each of the ways of the server: of some, a command shows only what it can read.
            var said = ""
            var asked = 0
            while asked < 4 || asked < 16 && !said.contains("***") {
                said += try await place.said(command, environment)
                asked += 1
            }
            texts["inlet " + command.joined(separator: " ")] = said
            #expect(said.contains("***"), "no server was asked by \(command): \(said)")
        }
        return texts
    }

    /// What the API says on its port and on the control socket: every GET that ends.
    private static func answers(_ scene: CanaryPlace) async throws -> [String: String] {
        let login = ["Authorization": "Bearer " + scene.text("top.dashboard.token")]
        let document = try await RawClient(port: scene.port).request("GET", "/api/v1/openapi.json", headers: login)
        let root = try JSONSerialization.jsonObject(with: Data(document.body.utf8)) as? [String: Any]
        let paths = try #require(root?["paths"] as? [String: [String: Any]])
        let asked = paths.filter { $0.value["get"] != nil }.keys.filter {
            !$0.contains("event") && !$0.contains("follow")
        }
        #expect(asked.count >= 8, "\(asked)")
        var texts: [String: String] = [:]
        for path in asked + ["/", "/metrics", "/healthz", "/readyz"] {
            let path = path.replacing("{id}", with: "1")
            let answer = try await RawClient(port: scene.port).request("GET", path, headers: login)
            texts["GET \(path)"] = answer.body + answer.headers.values.joined()
            let socket = try RawClient(unixSocket: scene.place.state.appending("control.sock"))
            texts["socket \(path)"] = try await socket.request("GET", path).body
        }
        let reader = ["Authorization": "Bearer " + scene.text("top.dashboard.read_only_token")]
        for path in ["/api/v1/status", "/api/v1/session", "/"] {
            texts["reader \(path)"] = try await RawClient(port: scene.port).request("GET", path, headers: reader).body
        }
        #expect(texts["GET /api/v1/status"]?.contains("spiral") == true, "\(texts.keys.sorted())")
        return texts
    }
}

extension Place {
    fileprivate func said(_ command: [String], _ environment: [String: String]) async throws -> String {
        let result = try await inlet(command, environment: environment)
        return result.output + result.errors
    }
}
