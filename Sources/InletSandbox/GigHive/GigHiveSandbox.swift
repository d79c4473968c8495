package import InletCore
import Synchronization
package import SystemPackage

/// A loopback server that speaks GigHive's two upload transports, one form and tus with finalize, and keeps what it
/// receives on disk, with the limits, refusals and races of the real one.
///
/// Assets and unfinished uploads are found again by the next sandbox on the same directory; `rules` and `faults` change
/// how it behaves while it runs. For `inlet demo` and the tests; it listens on 127.0.0.1 only, without TLS.
package final class GigHiveSandbox: LoopbackSandbox {
    package let server: SandboxServer<GigHiveOperation>
    private let service: GigHiveService

    /// - Parameters:
    ///   - directory: Where media, the catalog and unfinished uploads are kept; made when missing.
    ///   - passwords: Of `admin`, `uploader` and `viewer`, the users that an installation has.
    ///   - port: 0 = one that the system chooses.
    /// - Throws: When the directory cannot be made, read or written.
    package init(
        directory: FilePath, passwords: [String: Secret], rules: GigHiveRules = GigHiveRules(),
        faults plan: FaultPlan<GigHiveOperation> = .none, port: Int = 0
    ) throws {
        service = try GigHiveService(root: directory, passwords: passwords, rules: rules)
        // What the layer beneath refuses is a body that is too long, or cut off.
        let router = SandboxRouter(plan, service.routes) { refusal, _ in .page(refusal.status, "Bad Request") }
        server = SandboxServer(port: port, router)
    }

    /// How it behaves; a change counts from the next request on.
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

/// What a client may ask of the GigHive sandbox; counters and faults go by these.
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
    /// A request that is none of these.
    case other
}

package typealias GigHiveFault = OperationFault<GigHiveOperation>

extension FaultReply {
    /// An error as the application words it: `error` is `Server Error`, `Server error`, `Bad Request` …
    package static func gigHive(_ status: Int, error: String, message: String? = nil) -> FaultReply {
        func text(_ text: String) -> String { text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"") }
        let second = message.map { #","message":"\#(text($0))""# } ?? ""
        return FaultReply(status, type: "application/json", body: #"{"error":"\#(text(error))"\#(second)}"#)
    }

    /// An error page as Apache, ModSecurity or a proxy answers it.
    package static func page(_ status: Int, _ title: String) -> FaultReply {
        let body =
            "<!DOCTYPE HTML>\n<html><head><title>\(status) \(title)</title></head><body><h1>\(title)</h1></body></html>\n"
        return FaultReply(status, type: "text/html; charset=iso-8859-1", body: body)
    }

    /// An error as the tus server words it, e.g. `ERR_UPLOAD_LOCKED: file currently locked`.
    package static func tus(_ status: Int, _ text: String) -> FaultReply {
        FaultReply(status, type: "text/plain; charset=utf-8", body: text + "\n")
    }

    /// A limit of the proxy in front: nothing but the status and the proxy's mark.
    package static let cloudflareLimit = FaultReply(413, fields: ["cf-ray": "8f1c0ffee0ddf00d-FRA"], body: "")
}

/// What of the sandbox's behaviour differs from installation to installation; may be changed while it runs.
package struct GigHiveRules: Sendable {
    /// What the firewall in front (ModSecurity) does with bodies over the limit.
    package enum Firewall: Sendable {
        /// There is none: the application's own checks answer.
        case off
        /// The firewall of a standard installation, which detects only, but still ends such a request with 500.
        case detects
        /// 413.
        case blocks
    }

    /// What `X-Upload-Token` may be, and the event that its uploads go to.
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

    /// UPLOAD_MAX_BYTES: bytes of one media file.
    package var maximumBytes: Int64
    /// The web server's limit for a form's body (Apache's LimitRequestBody), in bytes; nil = none.
    package var formLimit: Int64?
    package var firewall: Firewall
    /// A PATCH counts only when its whole body has come, as behind a firewall that reads it first; a cut one leaves the
    /// offset as it was.
    package var holdsBackPatches: Bool
    /// How long after the last byte a tus upload is known to finalize.
    package var hookDelay: Duration
    /// How long finalize waits for that.
    package var hookWait: Duration
    /// How long finalize works on a file; another finalize of the same upload fails in that time.
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
