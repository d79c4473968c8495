import Foundation
import InletConfig
import InletCore
import InletPipelines
import InletTestSupport
import Synchronization
import SystemPackage
import Testing

/// A canary in every place that takes a credential, and no trace of it in anything that Inlet writes or says.
@Suite(.serialized, .timeLimit(.minutes(15))) struct CanaryTests {
    /// Places whose credential goes another way than the one that the configuration below has for their section: a proxy
    /// has its login in its address or beside it. An agent in a fleet that does not answer sends nothing:
    /// `FleetRefusalTests` has that canary.
    private static let elsewhere: Set = [
        "r2.proxy.url", "s3.proxy.url", "gighive.proxy.url", "vopi.proxy.url", "roboscope.proxy.url",
        "top.proxy.password", "top.fleet.url",
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
            // The file of the last one is searched with all others.
            ["doctor"], ["doctor", "--json"], ["support"],
        ] + CanaryPlace.services.map({ ["notify", "test", $0] }) {
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
            // The one answer with a credential: a phone's address, for a full login.
            !$0.contains("event") && !$0.contains("follow") && $0 != "/api/v1/receivers"
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
        for path in ["/api/v1/status", "/api/v1/session", "/api/v1/receivers", "/"] {
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

/// A machine with a credential in every place of the configuration that takes one, and a server at the other end of everything
/// that refuses what it is asked, and repeats it.
final class CanaryPlace: Sendable {
    /// One for each place, by `TYPE.PLACE`.
    let canaries: [String: Canary]
    let place: Place
    let port: Int
    private let server: ScriptedServer

    /// Names of destinations and the folders whose files go there.
    static let destinations = ["spiral", "archive", "stage", "guest", "products", "movies", "spaces"]
    /// All places, by the key tables.
    static let places: Set<String> = {
        let types = DestinationKinds.types
        let own = types.flatMap { type in ValueKind.section(type.keys).secretPaths.map { "\(type.name).\($0)" } }
        return Set(own + ValueKind.section(ConfigKeys.specs).secretPaths.map { "top.\($0)" })
    }()

    /// Where nothing else may follow but letters, digits, `-` and `_`.
    private static let plain: Set = [
        "gighive.upload_token", "s3.access_key", "top.ping_url", "top.notify.webhook", "top.notify.ntfy",
        "top.notify.apprise", "top.notify.discord", "top.notify.token",
    ]
    /// Receivers that are services.
    static let services = ["ntfy", "gotify", "pushover", "apprise", "discord", "telegram", "smtp"]

    init() throws {
        let names = Self.places.sorted() + ["vopi.login"]
        canaries = Dictionary(
            uniqueKeysWithValues: names.enumerated().map { number, name in
                let middle = Self.plain.contains(name) || name.hasSuffix("proxy.url") ? "-canary-" : "-c/+\"<&%n-"
                return (name, Canary("Qx\(10 + number)vKz9\(middle)\(10 + number)wPq3Rt"))
            })
        place = try Place()
        port = try FreePort.any()
        let turns = Mutex<[String: Int]>([:])
        server = try ScriptedServer { connection in
            while true {
                let request = try connection.readRequest()
                // Who asks the same four times is refused in all four ways, whatever else is asked meanwhile.
                let turn = turns.withLock { turns in
                    let turn = turns[request.line] ?? turns.count
                    turns[request.line] = turn + 1
                    return turn
                }
                // Who logs in with a password is refused his file in the service's own words, which ends it, with its reason.
                let isOwn = request.headers["authorization"]?.hasPrefix("Basic ") ?? false
                let (type, body) = Self.refusal(request, isOwn ? 1 : turn)
                try connection.answer(isOwn ? "413 Bad" : "400 Bad", headers: "Content-Type: \(type)\r\n", body)
            }
        }
        let login = try place.folder.write((text("vopi.login") + "\n").utf8, to: "login")
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: login.string)
        try place.configure(text: configuration)
    }

    func text(_ name: String) -> String { canaries[name]?.text ?? "" }

    /// The environment that the configuration's references are found in.
    var environment: [String: String] {
        Dictionary(uniqueKeysWithValues: canaries.map { (Self.variable($0.key), $0.value.text) })
    }

    private static func variable(_ name: String) -> String { "S_" + name.replacing(".", with: "_").uppercased() }

    private func reference(_ name: String) -> String { "\"${env:\(Self.variable(name))}\"" }

    /// All that was sent, as text, JSON, XML or a page.
    private static func refusal(_ request: ReceivedRequest, _ turn: Int) -> (type: String, body: String) {
        let logins = request.headers.values.compactMap { value -> String? in
            guard value.hasPrefix("Basic ") else { return nil }
            return Data(base64Encoded: String(value.dropFirst(6))).map { String(decoding: $0, as: UTF8.self) }
        }
        let said = ([request.line] + request.headers.values + logins + [String(decoding: request.body, as: UTF8.self)])
            .map { String($0.prefix(600)) }.joined(separator: " ")
        let escaped = said.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing("\"", with: "&quot;")
        switch turn % 4 {
        case 0: return ("text/plain", said)
        case 1:
            let json = try? JSONSerialization.data(withJSONObject: ["error": said, "message": said])
            return ("application/json", String(decoding: json ?? Data(), as: UTF8.self))
        case 2:
            return ("application/xml", "<Error><Code>InvalidArgument</Code><Message>\(escaped)</Message></Error>")
        default: return ("text/html", "<html><body>\(escaped)</body></html>")
        }
    }

    private var url: String { "http://127.0.0.1:\(server.port)" }

    private var configuration: String {
        let told = "'\(place.folder.path)/told'"
        let routes = Self.destinations.map { name in
            "  - { name: \(name), match: { path: \"\(name)/**\" }, to: \(name), key: \"{dir}/{name}\", "
                + "on_failure: quarantine, retry: { attempts: 1, backoff: 100ms } }"
        }
        return """
            state_dir: state
            log: { level: debug, output: inlet.log }
            dashboard: { listen: "127.0.0.1:\(port)", token: \(reference("top.dashboard.token")),
                         password: \(reference("top.dashboard.password")),
                         read_only_token: \(reference("top.dashboard.read_only_token")),
                         kiosk_token: \(reference("top.dashboard.kiosk_token")) }
            proxy: { url: "http://me:${env:\(Self.variable("top.proxy.url"))}@127.0.0.1:\(server.port)" }
            ping_url: "\(url)/ping/${env:\(Self.variable("top.ping_url"))}"
            ping_interval: 10s
            notify:
              - { name: ops, webhook: "\(url)/hooks/${env:\(Self.variable("top.notify.webhook"))}",
                  secret: \(reference("top.notify.secret")), on: [failed, destination_down] }
            \(services)
              - { name: program, on: [failed, destination_down],
                  exec: [/bin/sh, -c, "cat >>\(told); (env; cat /proc/$$/cmdline) >>\(told)"] }
            destinations:
            \(destinations)
            watch:
              - { path: drop, settle: 0s }
            routes:
            \(routes.joined(separator: "\n"))

            """
    }

    private var services: String {
        let token = "token: \(reference("top.notify.token"))"
        return [
            "ntfy: \"\(url)/${env:\(Self.variable("top.notify.ntfy"))}\", \(token)", "gotify: \"\(url)\", \(token)",
            "pushover: \(reference("top.notify.pushover")), \(token), server: \"\(url)\"",
            "apprise: \"\(url)/notify/${env:\(Self.variable("top.notify.apprise"))}\"",
            "discord: \"\(url)/hooks/${env:\(Self.variable("top.notify.discord"))}\"",
            "telegram: 1, \(token), server: \"\(url)\"",
            "smtp: \"smtp://127.0.0.1:\(server.port)\", user: me, password: \(reference("top.notify.password")), "
                + "to: me@example.com, timeout: 500ms",
        ].map { "  - { on: [failed, destination_down], \($0) }" }.joined(separator: "\n")
    }

    private var destinations: String {
        func proxy(_ type: String) -> String {
            "proxy: { url: \"\(url)\", user: me, password: \(reference("\(type).proxy.password")) }"
        }
        return """
              spiral: { type: r2, api: "\(url)", api_key: \(reference("r2.api_key")), \(proxy("r2")) }
              archive: { type: s3, endpoint: "\(url)", region: us-east-1, bucket: media,
                         access_key: \(reference("s3.access_key")), secret_key: \(reference("s3.secret_key")),
                         session_token: \(reference("s3.session_token")), \(proxy("s3")) }
              stage: { type: gighive, url: "\(url)", user: me, password: \(reference("gighive.password")),
                       \(proxy("gighive")) }
              guest: { type: gighive, url: "\(url)", upload_token: \(reference("gighive.upload_token")),
                       tos_accepted: true }
              products: { type: vopi, url: "\(url)", results: pictures, \(proxy("vopi")),
                          auth: { api_key: \(reference("vopi.auth.api_key")) } }
              movies: { type: vopi, url: "\(url)", results: pictures, auth: { refresh_token_file: login } }
              spaces: { type: roboscope, url: "\(url)/api/v1", storage: spiral,
                        token: \(reference("roboscope.token")), \(proxy("roboscope")) }
            """
    }
}
