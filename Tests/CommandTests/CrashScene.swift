import Foundation
import InletCore
import InletSandbox
import InletTestSupport
import InletTransfer
import SystemPackage
import Testing

/// A machine with a destination of some kind, and what its server has.
struct CrashScene: Sendable {
    let place: Place
    /// The SHA-256 of the contents that have arrived, as often as they did.
    let stored: @Sendable () throws -> [Digest]
    /// Uploads that were begun, have bytes, and nobody will end.
    var leftovers: @Sendable () throws -> [String] = { [] }
    /// What else must hold, after so many files.
    var check: @Sendable (Int) throws -> Void = { _ in }

    static func content(_ path: FilePath) throws -> Digest {
        Checksum.sha256(try Data(contentsOf: URL(fileURLWithPath: path.string)))
    }

    /// Of these uploads of a store those that have parts. One without may be left over: the process died before it learned
    /// its id.
    static func withParts(_ uploads: [String], in store: FilePath) throws -> [String] {
        try uploads.filter { id in
            let folder = store.appending("uploads").appending(id)
            return try FileManager.default.contentsOfDirectory(atPath: folder.string).contains { $0.hasPrefix("part-") }
        }
    }
}

extension CrashScene {
    /// With a server that stores objects.
    init(
        _ place: Place, objects: @escaping @Sendable () -> [StoredObject],
        uploads: @escaping @Sendable () -> [String], check: @escaping @Sendable (Int) throws -> Void = { _ in }
    ) {
        self.init(
            place: place, stored: { try objects().map { try Self.content($0.path) } },
            leftovers: { try Self.withParts(uploads(), in: place.folder.path.appending("store")) }, check: check)
    }

    fileprivate static func gigHive(_ place: Place, _ sandbox: GigHiveSandbox) -> CrashScene {
        CrashScene(
            place: place,
            stored: {
                try sandbox.assets().flatMap { asset in
                    try asset.entries.map { _ in try CrashScene.content(asset.path) }
                }
            },
            leftovers: { sandbox.openUploads() })
    }

    fileprivate static func vopi(_ place: Place, _ sandbox: VOPISandbox) -> CrashScene {
        CrashScene(
            place: place,
            stored: {
                // A job that has ended takes its video away.
                let videos = Dictionary(sandbox.videos().map { ($0.publicURL, $0.sha256) }, uniquingKeysWith: { $1 })
                return sandbox.jobs().compactMap { videos[$0.videoURL] }
            },
            check: { files in
                #expect(sandbox.jobs().count == files && sandbox.tally.charges == files)
                for job in sandbox.jobs() { #expect(place.results(of: job.id)["product.json"] != nil) }
            })
    }

    fileprivate static func roboscope(
        _ place: Place, _ sandbox: RoboscopeSandbox, _ spiral: SpiralSandbox
    ) -> CrashScene {
        CrashScene(place, objects: spiral.objects, uploads: spiral.openUploads) { files in
            let spaces = sandbox.spaces()
            #expect(spaces.count == files && Set(spaces.map(\.key)).count == files)
            for space in spaces { #expect(space.modelGLBURL?.hasSuffix("/\(space.key).glb") ?? false, "\(space)") }
        }
    }
}

extension CrashKind {
    /// Runs `body` beside the servers of this kind, on a machine that is configured for them.
    func withScene(_ body: @Sendable @escaping (CrashScene) async throws -> Void) async throws {
        switch self {
        case .r2, .r2Parts:
            try await withSpiral { place, sandbox in
                try configure(place, try await sandbox.port())
                try await body(CrashScene(place, objects: sandbox.objects, uploads: sandbox.openUploads))
            }
        case .s3, .s3Parts:
            try await withS3 { place, sandbox in
                try configure(place, try await sandbox.port())
                try await body(CrashScene(place, objects: sandbox.objects, uploads: sandbox.openUploads))
            }
        case .form, .tus:
            try await withGigHive { place, sandbox in
                try configure(place, try await sandbox.port())
                try await body(.gigHive(place, sandbox))
            }
        case .folder:
            let place = try Place()
            try configure(place, 0)
            try await body(
                CrashScene(
                    place: place, stored: { Place.files(below: place.library).values.map { Checksum.sha256($0) } }))
        case .vopi:
            let rules = VOPIRules(generation: .apiKey, pace: .polls(steps: 8))
            try await withVOPI(rules, credits: 1000) { place, sandbox in
                try configure(place, try await sandbox.port())
                try await body(.vopi(place, sandbox))
            }
        case .roboscope:
            try await withRoboscope { place, sandbox, spiral in
                let url = "http://127.0.0.1:\(try await sandbox.port())/api/v1"
                let spaces = "spaces: { type: roboscope, url: \"\(url)\", storage: store, token: space-token-5521 }"
                try configure(place, try await spiral.port(), more: "  " + spaces, to: "spaces")
                try await body(.roboscope(place, sandbox, spiral))
            }
        }
    }

    private func configure(_ place: Place, _ port: Int, more: String = "", to destination: String = "store") throws {
        try place.configure(
            text: """
                state_dir: state
                log: { level: debug }
                destinations:
                  store: { \(configuration("http://127.0.0.1:\(port)")) }
                \(more)
                watch:
                  - { path: drop, settle: 0s }
                routes:
                \(routes(to: destination))
                """)
    }
}

/// What a delivery may be to when the process dies: each kind has a server of its own, and steps of its own.
enum CrashKind: String, CaseIterable, Sendable, CustomTestStringConvertible {
    case r2, r2Parts, s3, s3Parts, form, tus, folder, vopi, roboscope

    var testDescription: String { rawValue }

    /// Whether files are sent in two parts, or chunks.
    private var isInParts: Bool { [.r2Parts, .s3Parts, .tus].contains(self) }

    /// What every file passes that is archived.
    private static let everywhere = [
        "admitting", "admitted", "claimed", "settling", "afterComplete", "delivered", "intending", "intentWritten",
        "renamedAway", "moveNoted", "moved", "disposed", "finished",
    ]
    private static let parts = [
        "noting:upload", "uploadCreated", "noting:part", "noted:part", "partUploaded:2", "noting:completing",
        "beforeComplete", "claimed", "afterComplete", "delivered",
    ]

    /// Values of INLET_FAILPOINT. Between VOPI's notes `creating` and `job` the request for the job goes out; who dies there
    /// waits a minute, which `VOPIKillTests` does by its clock.
    var points: [String] {
        switch self {
        case .r2, .s3: Self.everywhere
        case .r2Parts, .s3Parts: Self.parts
        case .form: Self.everywhere + ["noting:answer", "noted:answer"]
        case .tus:
            [
                "noting:upload", "noted:upload", "noting:offset", "noted:offset", "noting:sent", "noted:sent",
                "noting:answer", "noted:answer", "claimed", "afterComplete", "delivered",
            ]
        case .folder:
            ["opening", "opened", "recovered", "noting:copying", "noted:copying", "copied", "renamed"] + Self.everywhere
        case .vopi:
            Self.everywhere + [
                "noting:upload", "noted:upload", "noting:sent", "noted:sent", "noted:job", "noting:results",
                "noted:results",
            ]
        case .roboscope:
            Self.everywhere + [
                "claimed:2", "settling:2", "afterComplete:2", "delivered:2", "noting:completing", "noted:completing",
            ]
        }
    }

    /// Uploads that nobody can know of may be left: their ids were lost with the process. They hold no byte.
    var mostOrphans: Int { self == .tus ? 1 : 0 }

    var size: Int { isInParts ? (5 << 20) + 1 : 20_000 }

    var ending: String {
        switch self {
        case .form, .tus, .vopi: "mp4"
        case .roboscope: "glb"
        default: "bin"
        }
    }

    /// The fields of the one destination of the routes, besides `type`s that need two.
    func configuration(_ url: String) -> String {
        let spiral = "type: r2, api: \"\(url)\", dialect: v1, api_key: \(ConfigText.apiKey), part_size: 5MiB"
        return switch self {
        case .r2, .r2Parts: spiral
        case .s3, .s3Parts:
            "type: s3, endpoint: \"\(url)\", region: us-east-1, bucket: sandbox, access_key: AKIDEXAMPLE, "
                + "secret_key: sandbox-secret-93f1, part_size: 5MiB, multipart_threshold: 5MiB, verify: md5"
        case .form, .tus:
            "type: gighive, url: \"\(url)\", user: uploader, password: \(gigHivePassword), chunk_size: 5MiB, "
                + "transport: \(self == .tus ? "tus" : "multipart")"
        case .folder: "type: folder, path: library"
        case .vopi:
            "type: vopi, url: \"\(url)\", poll: 1s, results: pictures, auth: { api_key: vopi-key-7731 }"
        case .roboscope: spiral + ", public_url: \"\(url)/public\""
        }
    }

    /// Three routes, by what becomes of the source.
    func routes(to destination: String = "store") -> String {
        let fields =
            switch self {
            case .form, .tus: ", with: { org_name: crash, event_date: \"2026-11-21\" }"
            case .roboscope: ", with: { space: \"{stem}\" }"
            default: ""
            }
        return ["keep", "archive", "delete"].map { name in
            "  - { name: \(name), match: { path: \"\(name)/**\" }, to: \(destination), key: \"{dir}/{name}\", "
                + "on_success: \(name)\(fields) }\n"
        }.joined()
    }
}

/// A file that is on its way when the process dies at `point`.
struct CrashFile: Sendable {
    let name: FilePath
    let content: Data
    let point: String
    let disposition: String

    /// - Parameter number: unlike those of all other files of the place.
    init(_ kind: CrashKind, _ number: Int, _ point: String) {
        self.point = point
        let kindNumber = CrashKind.allCases.firstIndex(of: kind) ?? 0
        let turn = number + kindNumber
        let failpoint = point.prefix { $0 != ":" }
        disposition =
            switch failpoint {
            // These a file that is kept does not pass, or only together with the next.
            case "delivered", "moveNoted", "moved": "archive"
            case "intending", "intentWritten", "renamedAway", "disposed": turn % 2 == 0 ? "archive" : "delete"
            default: ["keep", "archive", "delete"][turn % 3]
            }
        name = FilePath("\(disposition)/f\(number).\(kind.ending)")
        // No two have one length.
        content = bytes(kind.size + number, seed: UInt64(100 * kindNumber + number + 1))
    }

    /// Whether everything was done when the process died.
    var wasFinished: Bool { point == "finished" }
}

/// Where the process dies in tests of one thing each: values of INLET_FAILPOINT. Those of everyday deliveries are
/// `CrashKind.points`.
///
/// A test goes through its list by name, so that `FailpointTableTests` can see that each failpoint is in one.
enum CrashPoints: String, CaseIterable, Sendable {
    case sidecar, lateSidecar, companion, unit, places, rejected, otherDisk, held, leftover
    case command, receipt, endNotice, takenNotice, destinationNotice, manifest
    case version, fail, expiry, formTooLarge, putOff, sentAgain, lockWait, markers

    var list: [String] {
        switch self {
        case .sidecar:
            [
                "admitting", "admitted", "claimed:2", "settling:2", "delivered", "delivered:2", "intending",
                "moveNoted", "moved", "moved:2", "disposed", "disposed:2", "finished", "finished:2",
            ]
        case .companion:
            [
                "derived", "admitting", "admitted", "claimed", "claimed:2", "settling:2", "delivered", "delivered:2",
                "intending", "moved", "disposed", "disposed:2", "finished", "finished:2",
            ]
        case .lateSidecar: ["admitting", "admitted", "delivered", "finished"]
        case .unit:
            [
                "admitting", "admitted:2", "closingUnit", "unitClosed", "claimed:2", "delivered", "delivered:2",
                "moved:2", "disposed:3", "finished", "finished:3",
            ]
        case .places:
            [
                "claimed:2", "settling", "afterComplete", "afterComplete:2", "delivered", "delivered:2", "intending",
                "disposed", "finished",
            ]
        case .rejected:
            [
                "admitting", "admitted", "intending", "intentWritten", "renamedAway", "moveNoted", "moved",
                "reasonWritten", "disposed", "finished",
            ]
        case .otherDisk: ["renamedAway", "moveNoted", "moveCopied", "moved", "disposed"]
        case .held: ["intentWritten", "renamedAway", "moveNoted", "moved", "disposed"]
        case .leftover: ["abandoned", "leftoverRemoved"]
        case .command: ["acting", "acted"]
        case .receipt: ["disposed", "receiptWritten"]
        case .endNotice: ["disposed", "finished"]
        case .takenNotice: ["noticeTaken", "noticeRemoved"]
        case .destinationNotice: ["posting", "posted"]
        case .manifest: ["listAtHome", "generationWritten", "listsWritten", "listsDone"]
        default: notes
        }
    }

    /// At notes that deliveries leave only when something has gone wrong, or where people work too.
    private var notes: [String] {
        switch self {
        case .version:
            ["noting:key", "noted:key", "afterComplete", "settling", "delivered", "disposed", "finished"]
        case .fail: ["claimed", "afterComplete", "settling", "delivered", "disposed", "finished"]
        case .expiry: ["noting:stale", "noted:stale", "noting:expired:2", "noted:expired:2"]
        case .formTooLarge: ["noting:transport", "noted:transport"]
        case .putOff: ["noting:finalize", "noted:finalize"]
        case .sentAgain: ["noting:second", "noted:second"]
        case .lockWait: ["noting:locked", "noted:locked"]
        case .markers:
            [
                "noting:lock_token", "noted:lock_token", "noting:completing", "noted:completing", "noting:completing:2",
                "noted:completing:2",
            ]
        default: []
        }
    }
}
