import Foundation
import SystemPackage
import Testing

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
                + "secret_key: sandbox-secret-93f1, part_size: 5MiB, multipart_threshold: 5MiB"
        case .form, .tus:
            "type: gighive, url: \"\(url)\", user: uploader, password: \(ConfigText.apiKey), chunk_size: 5MiB, "
                + "transport: \(self == .tus ? "tus" : "multipart")"
        case .folder: "type: folder, path: library"
        case .vopi:
            "type: vopi, url: \"\(url)\", poll: 1s, results: pictures, auth: { api_key: \(ConfigText.apiKey) }"
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
