package import InletCore
import Synchronization
package import SystemPackage

/// A loopback server that speaks GigHive's two upload transports: one form, and tus with finalize. It stores uploads on
/// disk, and has the limits, refusals and races of the real server.
///
/// Assets and unfinished uploads survive on disk for the next sandbox. `rules` and `faults` change its behaviour while
/// it runs. For `inlet demo` and the tests; it listens on 127.0.0.1 only, without TLS.
package final class GigHiveSandbox: LoopbackSandbox {
    package let server: SandboxServer<GigHiveOperation>
    private let service: GigHiveService

    /// - Parameters:
    ///   - directory: The folder of media, catalog and unfinished uploads; created if missing.
    ///   - passwords: The passwords of `admin`, `uploader` and `viewer`, the users of an installation.
    ///   - port: 0 = the system chooses one.
    /// - Throws: If the directory cannot be created, read or written.
    package init(
        directory: FilePath, passwords: [String: Secret], rules: GigHiveRules = GigHiveRules(),
        faults plan: FaultPlan<GigHiveOperation> = .none, port: Int = 0
    ) throws {
        service = try GigHiveService(root: directory, passwords: passwords, rules: rules)
        // The layer below refuses a body that is too long or cut off.
        let router = SandboxRouter(plan, service.routes) { refusal, _ in .page(refusal.status, "Bad Request") }
        server = SandboxServer(port: port, router)
    }

    /// Its behaviour; a change applies from the next request on.
    package var rules: GigHiveRules {
        get { service.rules.withLock { $0 } }
        set { service.rules.withLock { $0 = newValue } }
    }

    /// The library, oldest first.
    package func assets() -> [GigHiveAsset] { service.library.assets() }

    /// Ids of tus uploads whose bytes are still outside the library, sorted.
    package func openUploads() -> [String] {
        service.uploads.withLock { $0.values.filter { !$0.isGone }.map(\.id) }.sorted()
    }
}

/// The GigHive sandbox's operations, for counters and faults.
package enum GigHiveOperation: String, SandboxOperation {
    /// POST of a multipart form to `/api/uploads` or `/api/uploads.php`.
    case upload
    /// GET of one asset's metadata.
    case asset
    /// POST `/api/uploads/finalize`.
    case finalize
    /// Calls of tus below `/files/`; the last is DELETE of an upload.
    case tusOptions, tusCreate, tusPatch, tusHead, tusDelete
    /// POST `/db/delete_media_files.php`.
    case delete
    /// GET of a guest's token.
    case guest
    /// Any other request.
    case other
}

package typealias GigHiveFault = OperationFault<GigHiveOperation>

extension FaultReply {
    /// An error in the application's words: `error` is `Server Error`, `Server error`, `Bad Request` …
    package static func gigHive(_ status: Int, error: String, message: String? = nil) -> FaultReply {
        func text(_ text: String) -> String { text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"") }
        let second = message.map { #","message":"\#(text($0))""# } ?? ""
        return FaultReply(status, type: "application/json", body: #"{"error":"\#(text(error))"\#(second)}"#)
    }

    /// An error page of Apache, ModSecurity or a proxy.
    package static func page(_ status: Int, _ title: String) -> FaultReply {
        let body =
            "<!DOCTYPE HTML>\n<html><head><title>\(status) \(title)</title></head><body><h1>\(title)</h1></body></html>\n"
        return FaultReply(status, type: "text/html; charset=iso-8859-1", body: body)
    }

    /// An error in the tus server's words, e.g. `ERR_UPLOAD_LOCKED: file currently locked`.
    package static func tus(_ status: Int, _ text: String) -> FaultReply {
        FaultReply(status, type: "text/plain; charset=utf-8", body: text + "\n")
    }

    /// A limit of the proxy in front: only the status and the proxy's mark.
    package static let cloudflareLimit = FaultReply(413, fields: ["cf-ray": "8f1c0ffee0ddf00d-FRA"], body: "")
}

/// Behaviour that differs between installations; may be changed while it runs.
package struct GigHiveRules: Sendable {
    /// How the firewall in front (ModSecurity) treats bodies over the limit.
    package enum Firewall: Sendable {
        /// There is none: the application's own checks answer.
        case off
        /// The firewall of a standard installation. It only detects, but still ends such a request with 500.
        case detects
        /// 413.
        case blocks
    }

    /// A valid `X-Upload-Token`, and the event that its uploads go to.
    package struct UploadToken: Sendable {
        package var token: Secret
        /// `YYYY-MM-DD`.
        package var eventDate: String
        package var orgName: String
        package var eventType: String

        package init(_ token: Secret, eventDate: String, orgName: String, eventType: String = "wedding") {
            self.token = token
            self.eventDate = eventDate
            self.orgName = orgName
            self.eventType = eventType
        }
    }

    /// UPLOAD_MAX_BYTES: the limit of one media file.
    package var maximumBytes: Int64
    /// The web server's limit for a form's body (Apache's LimitRequestBody), in bytes; nil = none.
    package var formLimit: Int64?
    package var firewall: Firewall
    /// Whether a PATCH counts only with its whole body, as behind a firewall that reads it first. A cut one then leaves
    /// the offset unchanged.
    package var holdsBackPatches: Bool
    /// How long after the last byte finalize learns of a tus upload.
    package var hookDelay: Duration
    /// How long finalize waits for that.
    package var hookWait: Duration
    /// How long finalize works on a file. Another finalize of the same upload fails meanwhile.
    package var finalizeTime = Duration.zero
    package var guestTokens: [UploadToken]

    package init(
        maximumBytes: Int64 = 6_442_450_944, formLimit: Int64? = 1 << 30, firewall: Firewall = .detects,
        holdsBackPatches: Bool = true, hookDelay: Duration = .zero, hookWait: Duration = .seconds(2),
        guestTokens: [UploadToken] = []
    ) {
        self.maximumBytes = maximumBytes
        self.formLimit = formLimit
        self.firewall = firewall
        self.holdsBackPatches = holdsBackPatches
        self.hookDelay = hookDelay
        self.hookWait = hookWait
        self.guestTokens = guestTokens
    }
}
