import Foundation
import InletCore
import InletLinux
import InletSandbox
import InletTestSupport
import Synchronization
import SystemPackage
import Testing

/// Runs `body` beside an S3 sandbox, in a place that is configured for it.
///
/// - Parameters:
///   - more: more keys of the destination. Without `verify` it is `md5`, for which a store is asked nothing.
///   - route: more keys of the only route.
func withS3(
    _ more: String = "", route: [String] = [], _ body: @Sendable @escaping (Place, S3Sandbox) async throws -> Void
) async throws {
    let place = try Place()
    let account = S3Sandbox.Account(
        accessKey: "AKIDEXAMPLE", secretKey: Secret("sandbox-secret-93f1"), region: "us-east-1")
    let sandbox = try S3Sandbox(directory: place.folder.path.appending("store"), account: account)
    try await whileServing({ try await sandbox.run() }) {
        var config = ConfigText()
        config.destination =
            "type: s3, endpoint: \"http://127.0.0.1:\(try await sandbox.port())\", region: us-east-1, "
            + "bucket: sandbox, access_key: AKIDEXAMPLE, secret_key: sandbox-secret-93f1"
            + (more.contains("verify: ") ? "" : ", verify: md5") + (more.isEmpty ? "" : ", " + more)
        config.route += route
        try place.configure(config)
        try await body(place, sandbox)
    }
}

/// The password of every login of `withGigHive`.
let gigHivePassword = "gig-canary-8842"

/// Runs `body` beside a GigHive sandbox, in a place that is configured for it; the parameters as those of `withS3`.
func withGigHive(
    _ more: String = "", route: [String] = [],
    _ body: @Sendable @escaping (Place, GigHiveSandbox) async throws -> Void
) async throws {
    let place = try Place()
    let password = Secret(gigHivePassword)
    let sandbox = try GigHiveSandbox(
        directory: place.folder.path.appending("gighive"),
        passwords: ["admin": password, "uploader": password, "viewer": password])
    try await whileServing({ try await sandbox.run() }) {
        var config = ConfigText()
        config.destination =
            "type: gighive, url: \"http://127.0.0.1:\(try await sandbox.port())\", user: uploader, "
            + "password: \"\(gigHivePassword)\", chunk_size: 5MiB" + (more.isEmpty ? "" : ", " + more)
        config.route += route
        try place.configure(config)
        try await body(place, sandbox)
    }
}

/// Runs `body` on a machine with a Roboscope sandbox as destination `spaces`, whose files go to a Spiral sandbox.
///
/// - Parameters:
///   - route: more keys of the only route.
///   - clock: what the Roboscope sandbox's locks go by.
func withRoboscope(
    route: String = "", clock: @escaping @Sendable () -> WallTime = { .now },
    _ body: @Sendable @escaping (Place, RoboscopeSandbox, SpiralSandbox) async throws -> Void
) async throws {
    let place = try Place()
    let sandbox = RoboscopeSandbox(token: Secret("space-token-5521"), clock: clock)
    try await withSandbox(place.folder.path.appending("store")) { spiral, port in
        try await whileServing({ try await sandbox.run() }) {
            try place.configure(
                text: """
                    state_dir: state
                    log: { level: debug }
                    destinations:
                      store: { type: r2, api: "http://127.0.0.1:\(port)",
                               public_url: "http://127.0.0.1:\(port)/public",
                               api_key: "\(ConfigText.apiKey)" }
                      spaces: { type: roboscope, url: "http://127.0.0.1:\(try await sandbox.port())/api/v1",
                                storage: store, token: space-token-5521 }
                    watch:
                      - { path: drop, settle: 0s }
                    routes:
                      - { name: all, to: spaces, key: "models/{dir}/{name}"\(route.isEmpty ? "" : ", " + route) }

                    """)
            try await body(place, sandbox, spiral)
        }
    }
}

extension Place {
    /// Puts a list of so many markers into the folder of the space `atrium`.
    func putMarkers(_ count: Int) throws {
        let list = (0..<count).map { #"{"p1":[\#($0),0,0],"p2":[1,0,0],"p3":[1,1,0],"p4":[0,1,0]}"# }
        try put("atrium/markers.json", Data("[\(list.joined(separator: ","))]".utf8))
    }
}

extension RoboscopeSandbox {
    /// Expects so many markers, each with a stamp of its own.
    func expectMarkers(_ count: Int, sourceLocation: SourceLocation = #_sourceLocation) {
        let stamps = markers().compactMap { $0.customProps["ingest_id"]?.text }
        #expect(
            stamps.count == count && Set(stamps).count == count && markers().count == count,
            sourceLocation: sourceLocation)
    }
}

/// Runs `body` beside a VOPI sandbox, on a machine whose one destination it is, logged in.
func withVOPI(
    _ rules: VOPIRules = VOPIRules(pace: .polls(steps: 8)), credits: Int = 5, route: [String] = [],
    _ body: @Sendable @escaping (Place, VOPISandbox) async throws -> Void
) async throws {
    let place = try Place()
    let sandbox = try VOPISandbox(
        directory: place.folder.path.appending("vopi"), apiKey: Secret("vopi-key-7731"), credits: credits, rules: rules)
    try await whileServing({ try await sandbox.run() }) {
        let login = try place.folder.write((sandbox.signIn().refreshToken.reveal() + "\n").utf8, to: "login")
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: login.string)
        var config = ConfigText()
        let auth = rules.generation == .bearer ? "{ refresh_token_file: login }" : "{ api_key: \"vopi-key-7731\" }"
        config.destination =
            "type: vopi, url: \"http://127.0.0.1:\(try await sandbox.port())\", poll: 1s, results: pictures, "
            + "auth: \(auth)"
        config.route += route
        try place.configure(config)
        try await body(place, sandbox)
    }
}

extension Place {
    /// What was fetched of a VOPI job, by the paths below its folder; parts of files too.
    func results(of job: String) -> [String: Data] {
        Self.files(below: folder.path.appending("pictures").appending(job))
    }

    /// Files below a folder, hidden ones too, by their paths; not the lock of a watched folder.
    static func files(below folder: FilePath) -> [String: Data] {
        let names = FileManager.default.enumerator(atPath: folder.string)?.compactMap { $0 as? String } ?? []
        return Dictionary(
            uniqueKeysWithValues: names.filter { $0 != ".inlet/lock" }.compactMap { name in
                let path = folder.string + "/" + name
                var isFolder: ObjCBool = false
                _ = FileManager.default.fileExists(atPath: path, isDirectory: &isFolder)
                return isFolder.boolValue ? nil : FileManager.default.contents(atPath: path).map { (name, $0) }
            })
    }
}

extension VOPISandbox {
    /// What was made of a job, as its objects' bytes.
    func made(of job: String) throws -> Set<Data> {
        Set(try pictures(of: job).map { try Data(contentsOf: URL(fileURLWithPath: $0.object.path.string)) })
    }
}

/// A receiver that takes notices as long as it is open, and otherwise says that it has no time.
final class NoticeReceiver: Sendable {
    private let taken = Mutex<[ReceivedRequest]>([])
    private let refused = Mutex<[ReceivedRequest]>([])
    private let isOpen = Mutex(true)

    var notices: [ReceivedRequest] { taken.withLock(\.self) }
    var turnedAway: [ReceivedRequest] { refused.withLock(\.self) }
    func open(_ open: Bool) { isOpen.withLock { $0 = open } }

    func serve(_ connection: ServerConnection) throws {
        while true {
            let request = try connection.readRequest()
            if isOpen.withLock(\.self) {
                taken.withLock { $0.append(request) }
                try connection.answer("204 No Content")
            } else {
                refused.withLock { $0.append(request) }
                try connection.answer("503 Busy")
            }
        }
    }
}

/// TLS with a certificate of its own, on a port of this machine, before a server that has none.
final class TLSFront: Sendable {
    static var isAvailable: Bool {
        ["/usr/bin/openssl", "/usr/bin/python3"].allSatisfy(FileManager.default.isExecutableFile)
    }

    let certificate: FilePath
    let origin: String
    private let process: Process

    private static let script = """
        import socket, ssl, sys, threading
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(sys.argv[1], sys.argv[2])
        door = socket.create_server(("127.0.0.1", 0))
        print(door.getsockname()[1], flush=True)

        def pump(source, target):
            try:
                while data := source.recv(65536):
                    target.sendall(data)
                target.shutdown(socket.SHUT_WR)
            except OSError:
                pass

        def serve(client):
            try:
                near = context.wrap_socket(client, server_side=True)
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", int(sys.argv[3])))
            threading.Thread(target=pump, args=(far, near), daemon=True).start()
            pump(near, far)

        while True:
            threading.Thread(target=serve, args=(door.accept()[0],), daemon=True).start()
        """

    init(in place: Place, before port: Int) async throws {
        certificate = place.folder.path.appending("certificate.pem")
        let key = place.folder.path.appending("key.pem")
        let script = try place.folder.write(Self.script.utf8, to: "front.py")
        let made = Process()
        made.executableURL = URL(fileURLWithPath: "/usr/bin/openssl")
        made.arguments = [
            "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
            "-subj",
            "/CN=nas", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key.string, "-out", certificate.string,
        ]
        (made.standardOutput, made.standardError) = (FileHandle.nullDevice, FileHandle.nullDevice)
        try made.run()
        try await eventually("the certificate is made") { !made.isRunning }
        process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/python3")
        process.arguments = [script.string, certificate.string, key.string, String(port)]
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        Leash.hold(process.processIdentifier)
        let line = String(decoding: output.fileHandleForReading.availableData, as: UTF8.self)
        origin = "https://127.0.0.1:\(try #require(Int(line.trimmingCharacters(in: .whitespacesAndNewlines))))"
    }

    deinit { process.terminate() }
}
