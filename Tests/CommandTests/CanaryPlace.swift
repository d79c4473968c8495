import Foundation
import InletConfig
import InletCore
import InletPipelines
import InletTestSupport
import Synchronization
import SystemPackage

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
        return Set(own + ValueKind.section(ConfigKeys.all.specs).secretPaths.map { "top.\($0)" })
    }()

    /// Where nothing else may follow but letters, digits, `-` and `_`.
    private static let plain: Set = ["gighive.upload_token", "s3.access_key", "top.ping_url", "top.notify.webhook"]

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
                         read_only_token: \(reference("top.dashboard.read_only_token")) }
            proxy: { url: "http://me:${env:\(Self.variable("top.proxy.url"))}@127.0.0.1:\(server.port)" }
            ping_url: "\(url)/ping/${env:\(Self.variable("top.ping_url"))}"
            ping_interval: 10s
            notify:
              - { name: ops, webhook: "\(url)/hooks/${env:\(Self.variable("top.notify.webhook"))}",
                  secret: \(reference("top.notify.secret")), on: [failed, destination_down] }
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
